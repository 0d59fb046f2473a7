/*
 * breccia_buffer.h - for authors of buffer prototypes: memory that elements are read into and
 * written from.
 *
 * A buffer prototype allocates memory of one kind and copies between that memory and the host's.
 * A call, an array or a repository names the prototype for its elements (docs/BUFFERS.md).
 * Documents and indexes of shards are always in the host's memory, and nothing that is stored
 * depends on a prototype.
 *
 * The table of functions here follows the rules of breccia_codec.h: `size` comes first and fields
 * are only appended; `ctx` is the first argument; destroy(ctx) is called once. In addition:
 *   - The functions called between open() and close() share one `state`. open() is called when the
 *     prototype is used first, and close() when its registry and all its memory have been freed. A
 *     plug-in stays loaded until then.
 *   - All functions may run on several threads at once, and free() on any thread at any time.
 *   - Numbers of devices are DLPack's; BRC_MEMORY_HOST is DLPack's 1.
 *   - `stream` is the stream in which the caller of the library works, in the form that DLPack has for
 *     the device, or NULL: the device's own default. Devices without streams ignore it.
 */
#ifndef BRECCIA_BUFFER_H
#define BRECCIA_BUFFER_H

#include "breccia_codec.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Memory that a prototype allocated. */
typedef struct brc_block {
    size_t size;
    void *data;         /* aligned to 64 bytes; an address of the device unless BRC_BLOCK_HOST */
    size_t len;
    uint32_t device;    /* BRC_MEMORY_*, or another number of DLPack            */
    uint32_t device_id; /* which of these devices; alloc() gets the one that is asked for */
    uint32_t flags;     /* BRC_BLOCK_*                                          */
    uint32_t reserved;  /* 0                                                    */
    void *own;          /* for the prototype's use                              */
} brc_block;
enum {
    BRC_BLOCK_HOST = 1, /* the processor may read and write the memory          */
    BRC_BLOCK_NEW = 2,  /* the system gave the memory: it was not recycled      */
    BRC_BLOCK_SPILLED = 4 /* the device was full: this is other memory            */
};

/* Rows of bytes to copy between a block and the host: row i is `width` bytes, at + i * pitch in the
 * block, and host + i * host_pitch. There is at least one row, and a width is never 0. */
typedef struct brc_rows {
    size_t size;
    size_t at, pitch;
    uint8_t *host;      /* from_host() only reads it                            */
    size_t host_pitch;
    size_t width, rows;
    void *stream;
} brc_rows;

enum { BRC_ALLOC_SPILL = 1 }; /* alloc(): if the device is full, other memory will do */

typedef struct brc_buffer_prototype {
    size_t size;
    const char *name;   /* "pool", or a reversed domain name; without ":"      */
    uint32_t device;    /* of the memory that alloc() returns, unless it spills */
    uint32_t flags;     /* BRC_PROTOTYPE_*                                      */
    void *ctx;
    /* Makes the state. Fails with BRC_EUNSUPPORTED and one sentence where the machine has no such memory; it
     * is then called again at the next use. NULL: there is no state. */
    int (*open)(void *ctx, void **state, brc_error *err);
    void (*close)(void *ctx, void *state); /* NULL: nothing to release          */
    /* Sets data, len, device and flags of `out`, which arrives zeroed but for device_id. len may be 0; what
     * was in the memory does not matter. Fails with BRC_ENOMEM and one sentence if there is no room; with
     * BRC_ALLOC_SPILL it may return memory of another kind instead, of which the flags say so. */
    int (*alloc)(void *ctx, void *state, size_t len, uint32_t flags, void *stream, brc_block *out, brc_error *err);
    void (*free)(void *ctx, void *state, const brc_block *block);
    /* Copy rows; they are never called for a block with BRC_BLOCK_HOST. If there is a record(), they may
     * return before the copy is done: the caller leaves the host's memory alone until an event that it
     * records afterwards in the same stream is done. `block` may also be memory that others allocated
     * (with `own` NULL). NULL: all memory of the prototype is the host's. */
    int (*from_host)(void *ctx, void *state, const brc_block *to, const brc_rows *rows, brc_error *err);
    int (*to_host)(void *ctx, void *state, const brc_block *from, const brc_rows *rows, brc_error *err);
    /* Writes an element of `item` bytes `count` times from byte `at` on, likewise. NULL: the library fills host
     * memory and copies that. A result of BRC_FILL_OTHERWISE asks for the same. */
    int (*fill)(void *ctx, void *state, const brc_block *to, size_t at, size_t count, const void *element, size_t item,
                void *stream, brc_error *err);
    /* Makes an event that is done when everything is done that was started in the stream of this device. */
    int (*record)(void *ctx, void *state, uint32_t device_id, void *stream, void **event, brc_error *err);
    /* Waits for an event, and releases it. Errors of the copies before it may show here. */
    int (*wait)(void *ctx, void *state, void *event, brc_error *err);
    void (*destroy)(void *ctx);
    const char *owner;  /* who registers it, for messages; NULL: "a plug-in"    */
    /* The prototype whose memory chunks are decoded into on their way to the device. NULL, or one that this
     * machine lacks: "pool". */
    const char *staging;
    /* The cost of a copy from the host: `cost` picoseconds for each byte (0: not known, counted as 100) and `call_cost`
     * nanoseconds for each call. See brc_codec_impl.cost. */
    uint32_t cost, call_cost;
} brc_buffer_prototype;
enum { BRC_PROTOTYPE_HOST = 1 }; /* the processor may read and write all memory of this device */
#define BRC_FILL_OTHERWISE 1

/* Registers a buffer prototype; copies the structure and its texts. Fails with BRC_EEXISTS if the name is
 * taken, and with BRC_EMISUSE if the registry is in use and can no longer change. */
BRC_API BRC_MUST_USE int brc_registry_add_prototype(brc_registry *reg, const brc_buffer_prototype *prototype, brc_error *err);

#ifdef __cplusplus
}
#endif
#endif /* BRECCIA_BUFFER_H */
