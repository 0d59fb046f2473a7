/*
 * breccia_codec.h - for authors of codecs and data types.
 *
 * breccia.h is for users and promises more: declarations here may change with a minor version. The
 * built-in codecs (codecs/) and data types use only this header.
 *
 * A codec has two parts. Its specification (brc_codec_spec) defines the name in zarr.json: which
 * configuration is valid, and what the codec does to the shape, data type and length of its input.
 * An implementation (brc_codec_impl) does the work. A specification may have several
 * implementations; the usable one of the highest rank runs, and metadata never names it.
 *
 * Three rules hold for every table of functions here.
 *   - `size` comes first and is sizeof the structure; fields are only appended. The comment of a
 *     field says what it means if it is absent or zero.
 *   - `ctx` is the first argument of every function. `destroy(ctx)` is called once, when the
 *     registry is freed or the registration fails.
 *   - Functions run on several threads at once with one shared `state`; only `scratch` belongs to
 *     one thread.
 */
#ifndef BRECCIA_CODEC_H
#define BRECCIA_CODEC_H

#include "breccia_json.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct brc_span {
    const uint8_t *data;
    size_t len;
} brc_span;

/* ---- errors and bytes ------------------------------------------------------ */

/* Fills in the error (if err is not NULL) and returns `code`. The message is one sentence, without
 * a full stop, that names the thing at fault and, if there is one, the remedy. */
BRC_API int brc_fail(brc_error *err, int code, const char *format, ...) BRC_PRINTF(3, 4);
/* Puts "text: " before the message. */
BRC_API void brc_context(brc_error *err, const char *format, ...) BRC_PRINTF(2, 3);

/* Makes room for `more` bytes after buf->len. Fails with BRC_ELIMIT past buf->limit or the end of
 * fixed memory, and with BRC_ENOMEM if memory runs out. After success buf->data is not NULL, even
 * if `more` is 0, unless the buffer is fixed memory. */
BRC_API BRC_MUST_USE int brc_buf_reserve(brc_buf *buf, size_t more, brc_error *err);
BRC_API BRC_MUST_USE int brc_buf_append(brc_buf *buf, const void *data, size_t len, brc_error *err);
/* Appends text and a NUL that buf->len does not count, so that buf->data is a C string. */
BRC_API BRC_MUST_USE int brc_buf_printf(brc_buf *buf, brc_error *err, const char *format, ...) BRC_PRINTF(3, 4);

/* ---- data types -------------------------------------------------------------- */

enum {
    BRC_CLASS_BOOL = 1, BRC_CLASS_INT, BRC_CLASS_UINT, BRC_CLASS_FLOAT, BRC_CLASS_COMPLEX,
    BRC_CLASS_RAW, BRC_CLASS_STRING, BRC_CLASS_BYTES, BRC_CLASS_TIME, BRC_CLASS_STRUCT,
    BRC_CLASS_OPTIONAL
};

typedef struct brc_dtype brc_dtype;

/* How brc_dtype_ops.print writes an element. */
enum {
    BRC_PRINT_FILL = 0, /* fill_value JSON: parsing gives the same bits again */
    BRC_PRINT_JSON = 1, /* JSON for people: a NaN's payload may be lost       */
    BRC_PRINT_TEXT = 2  /* as NumPy prints it: no quotes                      */
};

/* Elements are in canonical form: little-endian, packed. */
typedef struct brc_dtype_ops {
    size_t size;
    /* Appends one element read from a fill_value. BRC_EINVAL says what is wrong. */
    int (*parse)(const brc_dtype *type, const brc_json *json, brc_buf *out, brc_error *err);
    int (*print)(const brc_dtype *type, const uint8_t *element, size_t len, int how, brc_buf *out, brc_error *err);
    /* Returns an element as a double, for differences. NULL: elements are not numbers. */
    double (*number)(const brc_dtype *type, const uint8_t *element);
    /* Converts n elements to the other byte order; dst may be src. NULL: reversing units of
     * swap_unit bytes is enough. For a type with parts of several widths, swap_unit is the
     * element's size. */
    void (*swap)(const brc_dtype *type, uint8_t *dst, const uint8_t *src, size_t n);
    /* Makes n stored elements canonical: corrects bits that carry no value. NULL: every bit pattern
     * is canonical. */
    void (*normalize)(const brc_dtype *type, uint8_t *data, size_t n);
    /* For types whose elements people do not write like a fill_value. Returns 1 after it has
     * appended the element, or 0 to leave the text to parse(). `json` is the text parsed as JSON,
     * or NULL if it is not JSON. Without this function, parse() gets JSON as it is and other text
     * as a JSON string. */
    int (*scan)(const brc_dtype *type, const char *text, const brc_json *json, brc_buf *out, brc_error *err);
} brc_dtype_ops;

/* A data type bound to its configuration: immutable, shared by all threads. */
struct brc_dtype {
    size_t size;
    const char *json;  /* as zarr.json has it: "\"float32\"", or an object      */
    const char *name;  /* "float32"                                             */
    int klass;         /* BRC_CLASS_*                                           */
    size_t item_size;  /* bytes per element; 0: variable length                 */
    size_t swap_unit;  /* bytes to reverse for the other byte order; 1: none */
    unsigned bits;     /* bits that carry a value: 8 * item_size except in sub-byte types */
    const char *npy;   /* NumPy's descr in little-endian, "<f4"; NULL: none     */
    const brc_dtype_ops *ops;
    void *state;       /* for the specification's own use                       */
    const brc_registry *registry; /* set before open(), for types that contain others */
    const brc_dtype *inner; /* for BRC_CLASS_OPTIONAL: the type of the elements that are present. A stored
                             * element is a byte, 0 or 1, and an element of this type, which is zero if it
                             * is missing; with a variable length it is empty if it is missing, else a 1
                             * and the bytes of an element of this type */
};

typedef struct brc_dtype_spec {
    size_t size;
    const char *name;  /* as in zarr.json: a registered name or a URI           */
    void *ctx;
    /* Returns 1 if `name` belongs to the family that this specification describes ("r24" to
     * r<bits>). NULL: the specification describes only its own name. */
    int (*match)(void *ctx, const char *name);
    /* Fills in `out` except `registry`; config may be NULL. If it leaves out->json NULL, the
     * library makes that from name and config. */
    int (*open)(void *ctx, brc_dtype *out, const char *name, const brc_json *config, brc_error *err);
    void (*close)(void *ctx, brc_dtype *type); /* NULL: nothing to release      */
    void (*destroy)(void *ctx);
    const char *owner; /* who registers it, for messages; NULL: "a plug-in"     */
} brc_dtype_spec;

/* ---- codecs -------------------------------------------------------------------- */

/* The data between two codecs: an array in C order, or bytes. */
typedef struct brc_proto {
    size_t size;
    int ndim;                     /* -1: bytes                                  */
    uint64_t shape[BRC_MAX_NDIM];
    const brc_dtype *dtype;       /* the array's type; for bytes, the type of the array that they came from */
    uint64_t len;                 /* exact length in bytes, or BRC_LEN_VARIES   */
    uint64_t max_len;             /* the largest valid length, used as a limit  */
    const brc_registry *registry; /* for data types and inner chains            */
    brc_span fill;                /* the fill value, one canonical element; a codec that changes values or
                                   * the type changes it too. data NULL: not known */
    uint32_t flags;               /* set by open() in `out`: BRC_CODEC_* flags that this configuration adds
                                   * to those of the specification */
    uint32_t reserved;            /* 0                                          */
} brc_proto;
#define BRC_LEN_VARIES UINT64_MAX

enum { BRC_ARRAY_TO_ARRAY = 1, BRC_ARRAY_TO_BYTES = 2, BRC_BYTES_TO_BYTES = 3 };
enum {
    BRC_CODEC_LOSSY = 1,     /* decoding does not always return what was encoded */
    BRC_CODEC_NEEDS_FILL = 2 /* decoding needs the fill value: proto.fill          */
};

typedef struct brc_codec_spec {
    size_t size;
    const char *name;
    int kind;                 /* BRC_ARRAY_TO_ARRAY ...                         */
    uint32_t flags;
    void *ctx;
    /* Checks the configuration (NULL if there is none) against `in`, derives `out`, and makes the
     * immutable state. `out` arrives as a copy of `in`; for bytes, set its ndim to -1, its len and
     * its max_len. Setting *identity to 1 says that for this input both directions copy the bytes
     * unchanged. */
    int (*open)(void *ctx, void **state, const brc_json *config, const brc_proto *in, brc_proto *out,
                int *identity, brc_error *err);
    void (*close)(void *ctx, void *state);      /* NULL: nothing to release      */
    /* Appends the full configuration object, for new metadata. NULL: there is no configuration. */
    int (*write_config)(void *ctx, const void *state, brc_buf *out, brc_error *err);
    void (*destroy)(void *ctx);
    const char *owner;       /* who registers it, for messages; NULL: "a plug-in"     */
} brc_codec_spec;

/* A box of elements of an array: count[i] > 0 elements along axis i, beginning at start[i]. */
typedef struct brc_box {
    size_t size;
    uint64_t start[BRC_MAX_NDIM], count[BRC_MAX_NDIM];
} brc_box;
#define BRC_BOX_INIT { sizeof(brc_box), { 0 }, { 0 } }

/* Memory that the processor does not reach, and the stream of the library's caller (breccia_buffer.h). */
typedef struct brc_there {
    size_t size;
    uint32_t device, device_id;
    void *stream;
} brc_there;

typedef struct brc_codec_impl {
    size_t size;
    const char *spec;         /* the specification's name                        */
    const char *name;         /* the implementation's own name: "libzstd"        */
    int rank;                 /* the usable implementation of the highest rank runs */
    int memory;               /* BRC_MEMORY_*, or another number of DLPack: the memory of src and dst. Only
                               * decode_there is used of an implementation for other memory than the host's */
    void *ctx;
    int (*probe)(void *ctx);  /* returns 0 if it cannot run on this machine; NULL: it always can */
    /* Makes the context of one thread for all chains that the thread runs, such as a compressor's
     * context. Take parameters from the `state` of each call: the state here is only that of the
     * first call. NULL: there is no context. */
    int (*scratch_new)(void *ctx, void **scratch, const void *state, brc_error *err);
    void (*scratch_free)(void *ctx, void *scratch);
    /* Both append to `dst`, which is empty. Call brc_buf_reserve() on `dst` first: it may be the
     * caller's own memory or have a limit. src and dst never overlap, and src.data is not NULL even
     * if src is empty. src may be hostile: whatever it contains, decode must not read outside src
     * or write past dst. */
    int (*encode)(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst, brc_error *err);
    int (*decode)(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst, brc_error *err);
    /* Process n items in one call; status[i] is the code of item i. The result and err are those of
     * the first item that fails. NULL: items are processed one at a time. */
    int (*encode_batch)(void *ctx, const void *state, void *scratch, size_t n, const brc_span *src,
                        brc_buf *const *dst, int *status, brc_error *err);
    int (*decode_batch)(void *ctx, const void *state, void *scratch, size_t n, const brc_span *src,
                        brc_buf *const *dst, int *status, brc_error *err);
    void (*destroy)(void *ctx);
    const char *owner;       /* who registers it, for messages; NULL: "a plug-in"     */
    /* For a codec that takes an array of elements of a fixed size: like decode, for a caller that
     * needs only the elements in `box` of that array. dst gets its full length; the other elements
     * may have any value. NULL: decode is used. */
    int (*decode_box)(void *ctx, const void *state, void *scratch, brc_span src, const brc_box *box,
                      brc_buf *dst, brc_error *err);
    /* For an array->array codec with decode_box: computes the box of the encoded array that
     * decode_box needs for these elements; the rest of its src may have any value. NULL: decode_box
     * needs the whole array. */
    void (*source_box)(void *ctx, const void *state, const brc_box *box, brc_box *out);
    /* For a bytes->bytes codec whose decoded length is known: like decode, for a caller that needs
     * only the bytes from `from` up to but not including `to`. dst gets its full length; the other
     * bytes may have any value and need not be decoded. NULL: decode is used. */
    int (*decode_part)(void *ctx, const void *state, void *scratch, brc_span src, uint64_t from, uint64_t to,
                       brc_buf *dst, brc_error *err);
    /* For memory that the processor does not reach: like decode_batch, where src[i].data and dst[i]->data are
     * addresses of that memory. dst[i]->limit bytes are there; the call sets dst[i]->len, and returns when the bytes
     * are there. It begins after what `there->stream` was asked to do before. A status of BRC_EUNSUPPORTED has the
     * chunk decoded in the host's memory. Memory that src points to is aligned to 64 bytes. */
    int (*decode_there)(void *ctx, const void *state, void *scratch, const brc_there *there, size_t n,
                        const brc_span *src, brc_buf *const *dst, int *status, brc_error *err);
    /* The cost of decoding: `cost` picoseconds for each decoded byte (0: not known, counted as 1,000) and `call_cost`
     * nanoseconds for each call, which is of up to 64 chunks for decode_there. For a device, the way through the codecs
     * that costs least is taken, the copy to the device (brc_buffer_prototype.cost) included. */
    uint32_t cost, call_cost;
    /* For decode_there: looks at a chunk while its encoded bytes are still in the host's memory. Returns 1 if
     * decode_there can decode it, or 0: then the chunk is decoded in the host's memory. It may shorten `src` to the
     * bytes that decode_there needs, without a header, say. dst->data is the address that the result will have (NULL:
     * one that is aligned to 64 bytes), and dst->limit may be lowered to the length that the result must have. With this
     * function, decode_there runs only as the first step on the device. NULL: it gets every chunk. */
    int (*takes_there)(void *ctx, const void *state, brc_span *src, brc_buf *dst);
    const char *why_not;      /* why probe() returns 0, for lists, without a full stop; NULL: "cannot run here" */
} brc_codec_impl;

/* Register a data type, a codec and an implementation. Each call copies the structure and its
 * names. Fails with BRC_EEXISTS if the name is taken (core names always are); the message says by
 * whom. Fails with BRC_EMISUSE if the registry is in use and can no longer change. Add a
 * specification before its implementations. */
BRC_API BRC_MUST_USE int brc_registry_add_dtype(brc_registry *reg, const brc_dtype_spec *spec, brc_error *err);
BRC_API BRC_MUST_USE int brc_registry_add_codec(brc_registry *reg, const brc_codec_spec *spec, brc_error *err);
BRC_API BRC_MUST_USE int brc_registry_add_impl(brc_registry *reg, const brc_codec_impl *impl, brc_error *err);
/* Adds another name for a codec that was added. The name is read in stored arrays but never
 * written. */
BRC_API BRC_MUST_USE int brc_registry_add_alias(brc_registry *reg, const char *alias, const char *codec, brc_error *err);

/* ---- plug-ins ------------------------------------------------------------------------
 *
 * A plug-in is a shared object that defines brc_plugin_init(); brc_registry_load()
 * calls it, and it adds what it has:
 *
 *     int brc_plugin_init(uint32_t abi, brc_registry *reg, brc_error *err)
 *     {
 *         int rc = BRC_PLUGIN_CHECK(abi, err);
 *         return rc < 0 ? rc : brc_registry_add_codec(reg, &my_codec, err);
 *     }
 *
 * If the result is negative, the plug-in is refused and what it had added is removed,
 * with the same calls of destroy() as when the registry is freed. The shared object is
 * closed after the last destroy().
 *
 * Build it with -shared -fPIC and without -lbreccia: the functions of this header are
 * found in the program that loads it. The `breccia` command offers them, and so does a
 * program that is linked with libbreccia.so. Link a program that contains libbreccia.a
 * with -rdynamic. If libbreccia.so itself was loaded by dlopen() without RTLD_GLOBAL
 * (by another language's module, say), link the plug-in with -lbreccia. */

/* The version of this interface. It changes when this header changes in a way that `size` cannot
 * bridge. */
#define BRC_PLUGIN_ABI 4
#define BRC_PLUGIN_CHECK(abi, err)                                                          \
    ((abi) == BRC_PLUGIN_ABI                                                                \
         ? BRC_OK                                                                           \
         : brc_fail((err), BRC_EUNSUPPORTED,                                                \
                    "it was built for plug-in ABI %u, and this breccia has %u: build it "   \
                    "again with this breccia's headers",                                    \
                    (unsigned)BRC_PLUGIN_ABI, (unsigned)(abi)))

/* Defined by the plug-in. */
BRC_API int brc_plugin_init(uint32_t abi, brc_registry *reg, brc_error *err);

/* ---- libraries that are loaded late ----------------------------------------------------
 *
 * A library that a plug-in or a program is linked with costs time at each start, whether it is
 * needed or not. brc_library_load() finds its functions when they are needed. Both lists end with
 * NULL. */
typedef struct brc_library {
    size_t size;
    const char *name;             /* "libzfp"                                                       */
    const char *use;              /* "with which chunks of \"zfp\" are read and written"            */
    const char *package;          /* the Debian package that has it                                 */
    const char *const *files;     /* "libzfp.so.1"; the first that can be loaded is taken           */
    const char *const *functions; /* their names                                                    */
} brc_library;
/* Sets the pointers to functions that `functions` consists of, in the order of library->functions.
 * Functions that the program or the module itself is linked with are taken from there. The library
 * stays loaded until the process ends. Several threads may call this at once. BRC_EUNSUPPORTED
 * names the library and its package if there is none, or one that lacks a function. */
BRC_API BRC_MUST_USE int brc_library_load(const brc_library *library, void *functions, brc_error *err);

/* ---- for codecs that hold others, or change the type --------------------------------- */

/* Opens a data type as zarr.json names it (`json`): a string, or an object with name and
 * configuration. If `json` is NULL, opens a type without configuration by its name, such as "uint64".
 * Fails with BRC_EUNSUPPORTED if the name is not known, and with BRC_EINVAL if the form is wrong.
 * Release the type with brc_dtype_free(). */
BRC_API BRC_MUST_USE int brc_dtype_open(brc_dtype **out, const brc_registry *reg, const brc_json *json,
                                        const char *name, brc_error *err);
BRC_API void brc_dtype_free(brc_dtype *type);
/* Appends one element read from text as people type it ("NaN", "1.5", "true", "[1, 2]"): by the
 * type's scan(), else as JSON if the text is JSON, else as a JSON string. */
BRC_API BRC_MUST_USE int brc_dtype_parse_text(const brc_dtype *type, const char *text,
                                              brc_buf *out, brc_error *err);
/* Swaps the byte order of n elements of a fixed size; dst may be src. */
BRC_API void brc_dtype_swap(const brc_dtype *type, uint8_t *dst, const uint8_t *src, size_t n);
/* Makes n stored elements canonical. Returns 1 if that can change any element of the type, else 0;
 * with n == 0 the call only says so, and `data` may be NULL. */
BRC_API int brc_dtype_normalize(const brc_dtype *type, uint8_t *data, size_t n);

/* A chain: a codec list bound to chunks of a shape and type. It is immutable and shared by all
 * threads. */
typedef struct brc_chain brc_chain;
/* The contexts and buffers of one worker, for any chain. */
typedef struct brc_scratch brc_scratch;

/* Binds a Zarr v3 codec list. The error says which item is wrong ("/codecs/1") and why:
 * BRC_EUNSUPPORTED if the codec's name is not known or the codec cannot run here, else BRC_EINVAL.
 * `type` must outlive the chain; `fill` is copied (data NULL: not known). */
BRC_API BRC_MUST_USE int brc_chain_open(brc_chain **out, const brc_registry *reg,
                                        const brc_json *codecs, int ndim, const uint64_t *shape,
                                        const brc_dtype *type, brc_span fill, brc_error *err);
/* Binds the same list for chunks of another shape. `chain` need not outlive the result. */
BRC_API BRC_MUST_USE int brc_chain_open_like(brc_chain **out, const brc_chain *chain, int ndim,
                                             const uint64_t *shape, brc_error *err);
BRC_API void brc_chain_free(brc_chain *chain);
/* A description of a chain, which belongs to the chain. */
typedef struct brc_chain_info {
    size_t size;
    uint32_t flags;       /* the BRC_CODEC_* flags of all its codecs together       */
    uint32_t reserved;    /* 0                                                      */
    uint64_t decoded_len; /* bytes of a decoded chunk; BRC_LEN_VARIES: the length varies */
    uint64_t encoded_len; /* the same for stored bytes                              */
    uint64_t encoded_max; /* no encoder returns more bytes                          */
} brc_chain_info;
BRC_API const brc_chain_info *brc_chain_describe(const brc_chain *chain);
/* Appends the list in full form. */
BRC_API BRC_MUST_USE int brc_chain_write(const brc_chain *chain, brc_buf *out, brc_error *err);

/* Makes the contexts and buffers of one worker, empty. Only one thread at a time may use them. */
BRC_API BRC_MUST_USE int brc_scratch_new(brc_scratch **out, brc_error *err);
BRC_API void brc_scratch_free(brc_scratch *scratch);

/* Decodes or encodes a chunk; dst is empty. Decoding returns exactly decoded_len bytes (if that is
 * known) or fails with BRC_ECORRUPT. dst may be fixed memory of that length, into which the last
 * codec then writes directly. Elements are canonical: in C order, little-endian and packed. An
 * element of variable length is its length in bytes, as a little-endian uint32, and the bytes.
 *
 * If `box` is not NULL, the caller needs only the elements in this box of the chunk: dst gets its full
 * length, and if the codecs can, only these elements are decoded. */
BRC_API BRC_MUST_USE int brc_chain_decode(const brc_chain *chain, brc_scratch *scratch, brc_span src,
                                          const brc_box *box, brc_buf *dst, brc_error *err);
BRC_API BRC_MUST_USE int brc_chain_encode(const brc_chain *chain, brc_scratch *scratch,
                                          brc_span src, brc_buf *dst, brc_error *err);

#ifdef __cplusplus
}
#endif
#endif /* BRECCIA_CODEC_H */
