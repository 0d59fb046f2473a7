/* An array of a session. Its chunks are those of its entry's map, with the draft's rows laid over them. */
#ifndef BRC_ZARR_ARRAY_H
#define BRC_ZARR_ARRAY_H

#include "../../flow/write.h"
#include "../../nd/shape.h"
#include "../../work/session.h"
#include "../doc/meta.h"

struct brc_array {
    brc_session *session;
    char *path;
    brc_entry entry;
    int64_t row;       /* its row in the draft; 0: none                           */
    brc_draft_stack stack; /* that row and the rows below it                      */
    int is_own;        /* the row belongs to the draft that changes go to         */
    int row_has_chunks;
    int has_keys;      /* the draft has keys that are neither nodes nor chunks, here or elsewhere */
    brc_meta meta;
    brc_oid meta_doc;  /* the document from which `meta` was read                 */
    char *backend;     /* the backend of its storage options; NULL: the file itself */
    char *full;        /* the backend in full form, for new chunks; NULL: not read yet */
    brc_oid storage;   /* the document from which the backend was read            */
    int plain;         /* `meta` describes the decoded chunks: see brc_array_open_plain() */
    brc_array_info info;
    uint64_t version, changes; /* when entry and row were read                    */
    int is_read;
    char *prototype;   /* the buffer prototype of tensors that are read; NULL: the repository's */
    /* For an array that stays as it was at one moment: brc_array_freeze(). */
    int is_frozen;
    int is_held;                    /* nobody writes into its rows: brc_array_freeze_held()     */
    struct brc_frozen_rows *frozen; /* the uncommitted chunks; NULL: none, or too many to keep */
    brc_draft_head of;              /* the draft at that moment                         */
};

/* Describes an array as an entry of a snapshot has it, to be read within the caller's transaction. Only the
 * repository of `view` is used. `view` and `path` are borrowed; brc_meta_dispose() of its meta releases the
 * array. */
BRC_MUST_USE int brc_array_of_entry(brc_array *out, brc_session *view, char *path, const brc_entry *entry, brc_error *err);
/* Frees what the array has allocated, but does not release the session. */
void brc_array_release(brc_array *a);
/* Brings entry and meta up to date, within a transaction of either kind. */
BRC_MUST_USE int brc_array_sync(brc_array *a, brc_error *err);
/* Brings the session up to date too. */
BRC_MUST_USE int brc_array_follow(brc_array *a, brc_error *err);
BRC_MUST_USE int brc_array_begin_read(brc_array *a, brc_error *err);
void brc_array_end_read(brc_array *a);
/* Freezes the array as it is now, for reads of more than one transaction. Call within brc_array_begin_read(). If
 * the array has too many uncommitted chunks to remember, its reads fail with BRC_ESTALE once the draft has changed.
 * brc_array_free() releases it. */
BRC_MUST_USE int brc_array_freeze(brc_array **out, brc_array *a, brc_error *err);
/* Freezes the array with these rows in place of its own. Nobody may write into the rows as long as they exist. */
BRC_MUST_USE int brc_array_freeze_held(brc_array **out, brc_array *a, const brc_draft_stack *rows, brc_error *err);
/* Begins a change: afterwards the array has a draft row. */
BRC_MUST_USE int brc_array_begin(brc_array *a, brc_error *err);
BRC_MUST_USE int brc_array_end(brc_array *a, int rc, brc_error *err);
/* Describes the array as the file has it, after a change was undone, and makes the next call look it up again. */
void brc_array_forget(brc_array *a);
/* Calls brc_bulk_end_with(); if the change was undone, describes the array as the file has it. */
BRC_MUST_USE int brc_array_bulk_end(brc_array *a, int rc, brc_error *err);
/* Notes, in a bulk write, a chunk that is about to be changed in part; id zero: the chunk is absent. */
BRC_MUST_USE int brc_array_note_old(brc_array *a, const uint64_t *index, const brc_oid *id, brc_error *err);
/* Call after brc_change_run(), outside of every transaction; rc: the result of that call. */
void brc_array_changed(brc_array *a, int rc);
/* Fails if the array's chunks cannot be encoded. */
BRC_MUST_USE int brc_array_can_write(const brc_array *a, brc_error *err);
/* Sets another document, or another chunk map, for the array. */
BRC_MUST_USE int brc_array_put_entry(brc_array *a, const brc_json *doc, const brc_oid *map, brc_error *err);

/* Reads the array's storage options (meta.c), within a transaction of either kind. */
BRC_MUST_USE int brc_array_read_storage(brc_array *a, brc_error *err);
/* array_change.c: turns a backend for new chunks, as users write it, into full form, with a NUL behind it; and sets
 * the backend of a new array that names none, by the repository's setting. */
#define BRC_SETTING_BACKEND "backend"
#define BRC_SETTING_CODECS "codecs"
BRC_MUST_USE int brc_backend_of_text(const brc_registry *reg, const char *text, brc_buf *full, brc_error *err);
BRC_MUST_USE int brc_entry_take_default(brc_session *s, brc_entry *entry, brc_error *err);
/* Makes the document of a new array; its codecs are those of the setting if the specification names none and they
 * fit. */
BRC_MUST_USE int brc_new_array_doc(brc_json **out, brc_session *s, const brc_array_spec *given, brc_error *err);
/* Sets the default codecs; NULL: codecs are chosen by type again. BRC_EINVAL: the codecs are wrong;
 * BRC_EUNSUPPORTED: a codec is not known. */
BRC_MUST_USE int brc_default_codecs_set(breccia *repo, const char *codecs, brc_error *err);
/* Returns the number of the backend that new chunks go to; adds a backend that has no number yet. */
BRC_MUST_USE int brc_array_new_chunks(brc_array *a, int64_t *backend, brc_error *err);
/* Finds the number without adding the backend; -1: it has none yet. */
BRC_MUST_USE int brc_array_find_backend(brc_array *a, int64_t *backend, brc_error *err);

static inline brc_store *brc_array_store(const brc_array *a)
{
    return a->session->repo->store;
}

/* Looks up n chunks by index (n * ndim numbers, in row-major order): ids[i] is zero if chunk i is absent. */
BRC_MUST_USE int brc_array_chunk_ids(brc_array *a, size_t n, const uint64_t *indexes, brc_oid *ids, brc_error *err);
/* Calls `each` for every chunk, in the grid's order; `each` may write. */
typedef int (*brc_chunk_each_fn)(void *ctx, const uint64_t *index, const brc_oid *id, brc_error *err);
BRC_MUST_USE int brc_array_each_chunk(brc_array *a, brc_chunk_each_fn each, void *ctx, brc_error *err);
/* Returns the form of chunks of this shape, and the number of its encoding in the store: -1 if the encoding has
 * none yet, 0 if chunks are stored as they are. */
BRC_MUST_USE int brc_form_of_meta(brc_store *store, brc_meta *m, const uint64_t *chunk, brc_form **form, int64_t *encoding,
                                  brc_error *err);
/* Fills in what the write flow must know of a chunk of this shape: its encoding, its backend, and the content with
 * which it counts as absent. */
BRC_MUST_USE int brc_array_item(brc_array *a, const uint64_t *chunk, brc_write_item *item, brc_error *err);
/* Returns the number of bytes from one element to the next in the memory that regions are copied in; elements of
 * variable length are spans there, which point to the bytes. */
static inline size_t brc_array_unit(const brc_array *a)
{
    return brc_meta_is_variable(&a->meta) ? sizeof(brc_span) : a->meta.type->item_size;
}

/* Appends a selection's elements, packed and canonical; each element of variable length follows its length in
 * bytes. */
BRC_MUST_USE int brc_array_read_canonical(brc_array *a, const brc_sel *sel, brc_buf *out, brc_error *err);
/* Reads whole chunks, including the part outside the array, each into memory of its own: canonical, elements of a
 * fixed size. `indexes`: n * ndim numbers. */
BRC_MUST_USE int brc_array_read_chunks(brc_array *a, size_t n, const uint64_t *indexes, uint8_t *const *memory, brc_error *err);
/* Takes the elements of an array of the same type, within a change of `to`. sel NULL: all of them, into an array of
 * the same shape that has no chunks and whose stored chunks are cut differently. Otherwise only the selection,
 * which must be within both; chunks that are cut the same are taken over by id. */
BRC_MUST_USE int brc_array_recut(brc_array *to, brc_array *from, const brc_sel *sel, brc_error *err);
/* Records a chunk's new id. NULL: the chunk is absent. */
BRC_MUST_USE int brc_array_put_chunk(brc_array *a, const uint64_t *index, const brc_oid *id, brc_error *err);

/* Return the items of a batch, which are shorter from an older caller and longer from a newer one. */
static inline const brc_io *brc_io_at(const brc_io *io, size_t i)
{
    return (const brc_io *)((const char *)io + i * io->size);
}
static inline const brc_at *brc_io_positions(const brc_io *io)
{
    return io->size >= offsetof(brc_io, out) ? io->at : NULL;
}
static inline brc_buf *brc_io_out(const brc_io *io)
{
    return io->size >= offsetof(brc_io, stats) ? io->out : NULL;
}
static inline brc_buffer_stats *brc_io_stats(const brc_io *io)
{
    return io->size >= sizeof(*io) ? io->stats : NULL;
}
/* Fails with BRC_EINVAL unless n items describe arrays of one repository and memory for them. */
BRC_MUST_USE int brc_io_check(const brc_io *io, size_t n, int writes, brc_error *err);
/* Selects the whole array. */
void brc_sel_all(brc_sel *out, const brc_array *a);
/* Appends the selected elements to `out`, by brc_read(). */
BRC_MUST_USE int brc_array_read_elements(brc_array *a, const brc_sel *sel, brc_buf *out, brc_error *err);

/* Puts "PATH chunk (0, 1): " before the text of an error. */
void brc_array_name_chunk(const brc_array *a, const uint64_t *index, brc_error *err);

#endif
