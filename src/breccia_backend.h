/*
 * breccia_backend.h - for authors of backends, which store the bytes of chunks elsewhere.
 *
 * The repository's file holds the catalogue and the history. The storage options of an array say
 * where its chunks are; they are versioned with the array: {"name": "org.example.dir",
 * "configuration": {...}}. The default, "inline", is the file itself. Documents, map nodes and
 * commits are always in the file, so everything except the values can be read without the backend.
 *
 * The table of functions here follows the rules of breccia_codec.h: `size` comes first and fields
 * are only appended; `ctx` is the first argument; destroy(ctx) is called once. In addition, the
 * functions called between open() and close() share one `state`, which belongs to one open
 * repository.
 *
 * A backend stores an object permanently, either under one name, the canonical name of the object's
 * stored bytes, or in a place (a pack, a file, an object in a bucket) at an offset
 * (brc_stored_put_at). The object's row in the file records both, so a backend needs no look-ups of
 * its own.
 *   - Bytes never change. A put() of a name that exists brings the same bytes: it succeeds, and may
 *     leave the old bytes as they are. The name must never show a part of the bytes.
 *   - A place has one name forever, and no other place gets that name, not even from another
 *     process or repository: draw the name at random, or derive it from the contents.
 *   - Bytes that put() got before flush() returned success survive a crash or a power cut. Only
 *     then are the objects entered in the file. Bytes that no row of the file names are therefore
 *     garbage, left by a killed process or an undone transaction. A backend need not know which
 *     bytes are garbage: list() reports what there is, and drop() removes it.
 *   - Garbage is removed only where list() reports BRC_KEPT_OWN: other repositories, and copies of
 *     the file, may store in the same place, and this file does not know their names. A writer that
 *     puts bytes during a garbage collection puts them again in the transaction that names them.
 *   - Several processes and repositories may put the same bytes at the same time.
 *   - The library verifies the checksum of everything that fetch() returns, whatever the backend
 *     has checked itself. fetch() must return all `len` bytes or fail; wrong bytes are detected and
 *     do no harm.
 *   - Only drop() removes anything, and only garbage collection calls it.
 *
 * A repository's file, and the configuration in it, may come from a stranger: open() must not
 * follow the configuration to anything that a stranger must not choose. A location next to the file
 * (host->file) is harmless, an arbitrary path is not. The same holds for the names of places, the
 * offsets and the lengths that fetch() and drop() get: they are what put() gave only if nobody has
 * changed the file.
 */
#ifndef BRECCIA_BACKEND_H
#define BRECCIA_BACKEND_H

#include "breccia_codec.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The stored bytes of one object. The library owns the structures of a call; an array holds
 * pointers to them, so that `size` can grow. */
typedef struct brc_stored {
    size_t size;
    brc_oid id;           /* the object's id: the hash of its canonical bytes         */
    uint64_t sum;         /* the checksum of the stored bytes: an object that is encoded in two ways has
                           * two sums */
    uint64_t len;         /* number of stored bytes                                   */
    uint8_t *into;        /* fetch(): memory for `len` bytes                          */
    const uint8_t *data;  /* put(): the bytes; never NULL, even if len is 0           */
    int status;           /* fetch() and drop() set it to BRC_OK or an error code; it is
                           * BRC_BACKEND_NOT_DONE before */
    int64_t number;       /* for the library's own use                                */
    uint64_t offset;      /* fetch(): offset of the first byte in the place; 0 without a place */
    const char *place;    /* fetch() and drop(): the place's name as put() gave it; NULL: the bytes are
                           * under the canonical name */
    uint32_t flags;       /* drop(): BRC_STORED_OWN                                   */
    uint32_t reserved;    /* 0                                                        */
    const char *leaves;   /* put(): the place in which the object lies and which it is to leave, because the
                           * place will be dropped: put() must choose another. NULL: any place    */
} brc_stored;
/* list() reported BRC_KEPT_OWN for the item. If that no longer holds, drop() keeps the item and
 * returns BRC_OK. The check and the removal must be one atomic step, even if others put bytes
 * meanwhile. */
enum { BRC_STORED_OWN = 1 };
#define BRC_BACKEND_NOT_DONE 1

/* Writes the canonical name of stored bytes: the object's id and the sum of the bytes, in
 * lower-case hexadecimal digits with a hyphen between them. The name is complete: fetch() and
 * drop() get the name that put() got. Equal names have equal bytes, whoever stored them. The name
 * takes at most BRC_STORED_NAME_SIZE bytes with its NUL. Returns `out`. */
#define BRC_STORED_NAME_SIZE 84
BRC_API char *brc_stored_name(char out[BRC_STORED_NAME_SIZE], const brc_stored *stored);
/* Sets `id` and `sum` from a canonical name. Returns 1, or 0 if the name is not canonical. */
BRC_API int brc_stored_parse_name(brc_stored *stored, const char *name);

/* For put(): says that this object is in the place of this name, from `offset` on, and not under
 * its canonical name. The name, UTF-8 of at most BRC_PLACE_MAX bytes, is copied, and the file
 * stores it once for all objects in the place. The object occupies the `len` bytes from `offset`
 * on; the backend may use the bytes between objects as it likes. If the object is put again, it may
 * go to another place. May be called on any thread. Fails with BRC_EINVAL if the name or the offset
 * cannot be stored. */
#define BRC_PLACE_MAX 4096
BRC_API BRC_MUST_USE int brc_stored_put_at(brc_stored *stored, const char *place, uint64_t offset, brc_error *err);

/* An item that list() reports. */
typedef struct brc_kept {
    size_t size;
    const char *name;     /* a canonical name, or the name of a place                 */
    uint32_t flags;       /* BRC_KEPT_*                                               */
    uint64_t len;         /* number of bytes                                          */
    int64_t time_us;      /* about when it was put, since 1970-01-01 UTC; 0: not known */
} brc_kept;
enum {
    BRC_KEPT_PLACE = 1,   /* `name` is the name of a place                            */
    BRC_KEPT_OWN = 2      /* put() stored it for this repository's file (host->file), backend and
                           * configuration, and nothing was ever put there for another: if no row names it,
                           * it is garbage and is dropped */
};

/* Facts about the repository that a backend may use. The structure is valid until close(). */
typedef struct brc_backend_host {
    size_t size;
    const char *file;     /* absolute path of the repository's file; "": there is no file */
    uint32_t flags;       /* BRC_BACKEND_READONLY                                     */
    void *ctx;
    int (*stopped)(void *ctx); /* returns 1 if the caller has asked to stop; may be called on any thread. A
                                * function that takes seconds calls it, and fails with BRC_EINTERRUPT */
    const char *id;       /* 32 hexadecimal digits that name the repository: copies of the file have
                           * the same                                                 */
    /* Asks the caller for what a server is to be shown: see brc_credentials_fn. A backend that connects to a
     * server calls it before the first request, one call at a time, and sends nothing if it fails. The host
     * fails with BRC_EUNSUPPORTED if the caller has given no such function. */
    int (*credentials)(void *ctx, const brc_server *server, brc_credentials *out, brc_error *err);
    /* For a backend whose fetch() asks a server for ranges: objects that lie at most `gap` bytes apart in a place are
     * asked for together, in ranges of at most `range` bytes. 0: as the backend chooses. They may change between two
     * calls of the backend. */
    uint64_t gap, range;
} brc_backend_host;
enum { BRC_BACKEND_READONLY = 1 }; /* nothing will be put, flushed or dropped          */

enum { /* brc_backend.flags */
    /* fetch(), put() and flush() may be called on several threads at once. Without this flag they
     * are called one at a time, on the thread that uses the repository. */
    BRC_BACKEND_ON_WORKERS = 1,
    /* Places are packs of many objects. If half of a pack or more belongs to no object any more, a
     * collection of garbage puts the rest again, in other places, and then drops the pack. Without
     * this flag a place stays as long as one object is in it. */
    BRC_BACKEND_PACKS = 2,
    /* A call of fetch() takes a while, however few objects it reads. So the library asks for more
     * objects at once. */
    BRC_BACKEND_FAR = 4,
    /* The place is on the disk of the repository's file, so that put() and flush() take no longer than writes into the
     * file itself. A bulk write for which nobody waits then goes on in one transaction meanwhile. */
    BRC_BACKEND_NEAR = 8
};

typedef struct brc_backend {
    size_t size;
    const char *name;     /* a reversed domain name, which stays in files forever     */
    uint32_t flags;       /* BRC_BACKEND_*                                            */
    void *ctx;
    /* Checks a configuration (NULL: there is none) and appends it in full form: a JSON object with
     * every option, always in the same order, or nothing if there are no options. Equal options
     * give equal text, because versions are compared by it. Fails with BRC_EINVAL for an unknown
     * option (brc_json_allow) or an invalid value. It uses only its arguments, and may run on any
     * thread. */
    int (*check)(void *ctx, const brc_json *config, brc_buf *full, brc_error *err);
    /* Makes the state of one repository from a configuration in full form (NULL: there is none). It
     * is called when the first chunk is read or written there. If the place does not exist (the
     * file was copied without it), it fails with BRC_ENOTFOUND and says which place is missing and
     * what to do. If nothing was ever put there and the place is writable, it creates the place. */
    int (*open)(void *ctx, void **state, const brc_json *config, const brc_backend_host *host, brc_error *err);
    void (*close)(void *ctx, void *state);       /* NULL: nothing to release           */
    /* Reads n objects, in any order, each into its `into`, and sets each one's `status`. The result
     * and err are those of the first object that fails; the other objects are read all the same. */
    int (*fetch)(void *ctx, void *state, size_t n, brc_stored *const *items, brc_error *err);
    /* Stores n objects. After a failure none of them counts, although any of them may be stored.
     * Fails with BRC_ENOSPACE if the backend is full. NULL: the backend is read-only. */
    int (*put)(void *ctx, void *state, size_t n, brc_stored *const *items, brc_error *err);
    /* Makes everything durable whose put() has returned. It is called before the commit of the
     * transaction that names the objects; a failure undoes that transaction. NULL: put() makes its
     * objects durable. Where possible, put() and flush() are called while nobody waits for the
     * file. */
    int (*flush)(void *ctx, void *state, brc_error *err);
    /* Removes n objects or places. If `place` is not NULL, it removes everything in the place, and
     * the item has no id. Something that does not exist counts as removed (BRC_OK). NULL: nothing
     * can be removed. */
    int (*drop)(void *ctx, void *state, size_t n, brc_stored *const *items, brc_error *err);
    void (*destroy)(void *ctx);
    const char *owner;    /* who registers it, for messages; NULL: "a plug-in"         */
    /* Calls each() for everything that is stored, in any order, including what was never flushed.
     * It may leave out what is put meanwhile, and it must leave out what an unfinished put() has
     * written in part. If each() returns anything but BRC_OK, it stops and returns that. Only
     * garbage collection calls it, to find what no row names. NULL: the backend cannot list. */
    int (*list)(void *ctx, void *state, int (*each)(void *to, const brc_kept *kept, brc_error *err), void *to, brc_error *err);
    /* How long, in microseconds, a collection of garbage leaves bytes where they are after it found that no row
     * names them; drop() gets them in a later collection. 0: the same collection calls drop(). */
    int64_t hold_us;
    /* Tries whether the place keeps what the backend relies on, and calls each() for every promise: a sentence of
     * a few words ("reads ranges"), whether the promise holds, and what was seen if it does not ("": nothing to
     * say). It may write small things of its own, which it removes again. If each() returns anything but BRC_OK,
     * it stops and returns that. It fails only if the place cannot be asked. NULL: there is nothing to try. */
    int (*prove)(void *ctx, void *state, brc_promise_fn each, void *to, brc_error *err);
    /* Looks whether a place exists, at once: it reads no object and asks no server. Fails with BRC_ENOTFOUND and a
     * sentence that names what is missing. It is called where the user is told what lies where, for each place.
     * NULL: only fetch() finds that out. */
    int (*look)(void *ctx, void *state, const char *place, brc_error *err);
} brc_backend;

/* Registers a backend; copies the structure and its name. Fails with BRC_EEXISTS if the name is
 * taken ("inline" always is), and with BRC_EMISUSE if the registry is in use and can no longer
 * change. */
BRC_API BRC_MUST_USE int brc_registry_add_backend(brc_registry *reg, const brc_backend *backend, brc_error *err);

#ifdef __cplusplus
}
#endif
#endif /* BRECCIA_BACKEND_H */
