/*
 * breccia_backend.h - for people who add backends: places where the stored bytes of chunks lie.
 *
 * The repository's file holds the catalogue and the history. Where an array's chunks lie is its
 * storage options, which are versioned with the array: {"name": "org.example.dir",
 * "configuration": {...}}. "inline" is the file itself, and the default. Documents, map nodes and
 * commits always are in the file, so everything but the values can be read without the backend.
 *
 * The rules of breccia_codec.h hold for the table here, except that the functions called between
 * open() and close() share one `state`, which belongs to one open repository: `size` comes first
 * and fields are only appended; `ctx` is the first argument; destroy(ctx) is called once.
 *
 * What a backend stores, it stores for good under one name, the canonical name of the object's
 * stored bytes, or in a place: a pack, a file, an object in a bucket, in which they begin at an
 * offset (brc_stored_put_at). The object's row in the file has all of this, so a backend needs no
 * look-ups of its own.
 *  - Bytes never change. put() of a name that is there already comes with the same bytes: it
 *    succeeds, and may leave them as they are. It never shows half of them under the name.
 *  - A place has one name for good, which no other gets, not even from another process or
 *    repository: draw it at random, or derive it from what is in it.
 *  - What put() was given before flush() returned success is still there after a crash or a power
 *    cut. Only then are the objects entered in the file, so what no row of the file names is
 *    garbage: of a killed process or an undone transaction. A backend need not know; list() says
 *    what there is, and drop() removes it.
 *  - That garbage is removed only where list() says BRC_KEPT_OWN: other repositories, and copies of
 *    the file, may have put theirs at the same place, and this file does not know their names. Who
 *    puts while garbage is collected puts again, in the transaction that names it.
 *  - The same bytes may be put by several processes and repositories at once.
 *  - The library checks the checksum of everything that fetch() gives, whatever the backend has
 *    checked itself. It must give all of `len` bytes or fail; wrong bytes are found, and harm
 *    nobody.
 *  - Nothing is dropped but by drop(), which only the collection of garbage calls.
 *
 * A repository's file may come from a stranger, and so may the configuration in it: open() must
 * not follow it to anything that a stranger may not choose. What lies beside the file (host->file)
 * is harmless, any path is not. The same is true of the names of places, of offsets and lengths that
 * fetch() and drop() get: they are what put() gave only if nobody has changed the file.
 */
#ifndef BRECCIA_BACKEND_H
#define BRECCIA_BACKEND_H

#include "breccia_codec.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The stored bytes of one object. The structures of a call are the library's; an array holds
 * pointers to them, so that `size` can grow. */
typedef struct brc_stored {
    size_t size;
    brc_oid id;           /* of the object: the hash of its canonical bytes           */
    uint64_t sum;         /* of the stored bytes: an object that is encoded in two ways has
                             two sums                                                 */
    uint64_t len;         /* stored bytes                                             */
    uint8_t *into;        /* fetch(): memory for `len` bytes                          */
    const uint8_t *data;  /* put(): the bytes; not NULL, even if there are none       */
    int status;           /* fetch() and drop() set it: BRC_OK or a code; it comes as
                             BRC_BACKEND_NOT_DONE                                     */
    int64_t number;       /* the library's own                                        */
    uint64_t offset;      /* fetch(): of the first byte in the place; 0 without one   */
    const char *place;    /* fetch() and drop(): the place's name, as put() gave it; NULL: the
                             canonical name says where                                */
    uint32_t flags;       /* drop(): BRC_STORED_OWN                                   */
    uint32_t reserved;    /* 0                                                        */
} brc_stored;
/* list() has said BRC_KEPT_OWN of it. If that is true no more, it stays, and that is BRC_OK: whether it
 * is, and its removal, are one, whoever puts meanwhile. */
enum { BRC_STORED_OWN = 1 };
#define BRC_BACKEND_NOT_DONE 1

/* The canonical name of stored bytes: the object's id and their sum, in lower-case hexadecimal
 * digits, with a hyphen between. It says all: what fetch() and drop() get is what put() got. Equal
 * names have equal bytes, whoever stored them. At most BRC_STORED_NAME_SIZE with the zero byte. */
#define BRC_STORED_NAME_SIZE 84
BRC_API char *brc_stored_name(char out[BRC_STORED_NAME_SIZE], const brc_stored *stored);
/* Sets `id` and `sum` from such a name: 1, or 0 if it is none. */
BRC_API int brc_stored_parse_name(brc_stored *stored, const char *name);

/* For put(): this object lies in the place of this name, from `offset` on, and not under its canonical
 * name. The name, UTF-8 of at most BRC_PLACE_MAX bytes, is copied; it is stored once for all that lies
 * there. What a backend keeps between objects is its own affair: `len` bytes from `offset` on are
 * this one's. If the object is put again, it may go somewhere else. On any thread. BRC_EINVAL: such a
 * name or offset cannot be stored. */
#define BRC_PLACE_MAX 4096
BRC_API BRC_MUST_USE int brc_stored_put_at(brc_stored *stored, const char *place, uint64_t offset, brc_error *err);

/* What list() finds. */
typedef struct brc_kept {
    size_t size;
    const char *name;     /* a canonical name, or a place's                           */
    uint32_t flags;       /* BRC_KEPT_*                                               */
    uint64_t len;         /* its bytes                                                */
    int64_t time_us;      /* when it was put, about, since 1970-01-01 UTC; 0: not known */
} brc_kept;
enum {
    BRC_KEPT_PLACE = 1,   /* `name` is a place's                                      */
    BRC_KEPT_OWN = 2      /* put() made it for this repository's file (host->file), backend and
                             configuration, and for no other has anything ever been put where
                             it is: what no row names is garbage, and is dropped      */
};

/* What a backend may know of the repository. It lives until close(). */
typedef struct brc_backend_host {
    size_t size;
    const char *file;     /* absolute path of the repository's file; "": it has none  */
    uint32_t flags;       /* BRC_BACKEND_READONLY                                     */
    void *ctx;
    int (*stopped)(void *ctx); /* from any thread: 1 if the caller has asked to stop. What takes
                                  seconds asks it, and fails with BRC_EINTERRUPT      */
} brc_backend_host;
enum { BRC_BACKEND_READONLY = 1 }; /* nothing will be put, flushed or dropped          */

enum { /* brc_backend.flags */
    /* fetch(), put() and flush() may be called on several threads at once. Without it they are
     * called on the thread that uses the repository, one at a time. */
    BRC_BACKEND_ON_WORKERS = 1
};

typedef struct brc_backend {
    size_t size;
    const char *name;     /* a reversed domain name: it stays in files for good       */
    uint32_t flags;       /* BRC_BACKEND_*                                            */
    void *ctx;
    /* Checks a configuration (NULL: there is none) and appends it in full form: every option,
     * always in the same order, as a JSON object; or nothing, if there are no options. Equal
     * options give equal text: it is compared between versions. Fails with BRC_EINVAL for an
     * option that it does not know (brc_json_allow) or a value that makes no sense. It touches
     * nothing but its arguments, and may run on any thread. */
    int (*check)(void *ctx, const brc_json *config, brc_buf *full, brc_error *err);
    /* Makes the state of one repository from a configuration in full form, NULL if it has none.
     * Called when the first chunk is read or written there. BRC_ENOTFOUND: the place is not there
     * (the file was copied without it): say which, and what to do. Where nothing was ever put, a
     * place that may be written is made. */
    int (*open)(void *ctx, void **state, const brc_json *config, const brc_backend_host *host, brc_error *err);
    void (*close)(void *ctx, void *state);       /* NULL: nothing to release           */
    /* Reads n objects, in an order of its own, each into `into`. Each one's `status` is set; the
     * result and err are those of the first that fails, and the others are read all the same. */
    int (*fetch)(void *ctx, void *state, size_t n, brc_stored *const *items, brc_error *err);
    /* Stores n objects. After a failure none of them counts; any may be there. BRC_ENOSPACE: it
     * is full. NULL: it can only be read. */
    int (*put)(void *ctx, void *state, size_t n, brc_stored *const *items, brc_error *err);
    /* Everything whose put() has returned is durable. Called before the transaction that names the
     * objects is committed; a failure undoes it. NULL: put() sees to that. Where that can be, put()
     * and flush() are called while nobody waits for the file. */
    int (*flush)(void *ctx, void *state, brc_error *err);
    /* Removes n objects, or places: where `place` is not NULL, all that is in it; the item has no id
     * then. What is not there is removed (BRC_OK). NULL: nothing can be removed. */
    int (*drop)(void *ctx, void *state, size_t n, brc_stored *const *items, brc_error *err);
    void (*destroy)(void *ctx);
    const char *owner;    /* who registers it, for messages; NULL: "a plug-in"         */
    /* Calls each() with everything that is there, in any order, also what was never flushed; what is
     * put meanwhile, it may leave out. A result of each() that is not BRC_OK ends it and is its own.
     * What a put() that goes on has half written is not there. Only the collection of garbage asks,
     * for what no row names. NULL: it cannot say. */
    int (*list)(void *ctx, void *state, int (*each)(void *to, const brc_kept *kept, brc_error *err), void *to, brc_error *err);
} brc_backend;

/* Copies the structure and its name. BRC_EEXISTS: the name is taken; "inline" always is.
 * BRC_EMISUSE: the registry is in use and can no longer change. */
BRC_API BRC_MUST_USE int brc_registry_add_backend(brc_registry *reg, const brc_backend *backend, brc_error *err);

#ifdef __cplusplus
}
#endif
#endif /* BRECCIA_BACKEND_H */
