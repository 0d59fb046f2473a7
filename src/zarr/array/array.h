/* An array of a session. Its chunks: the map of its entry, under the draft's rows. */
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
    int64_t row;       /* in the draft; 0: none                                   */
    brc_draft_stack stack; /* that row, and those below it                        */
    int is_own;        /* its row is of the draft that changes go to              */
    int row_has_chunks;
    int has_keys;      /* the draft has keys that are no nodes or chunks, here or elsewhere */
    brc_meta meta;
    brc_oid meta_doc;  /* the document that `meta` was read from                  */
    char *backend;     /* of its storage options; NULL: the file itself           */
    char *full;        /* the same in full form, for new chunks; NULL: not asked for yet */
    brc_oid storage;   /* the document that it was read from                      */
    int plain;         /* `meta` is of the decoded chunks: see brc_array_open_plain() */
    brc_array_info info;
    uint64_t version, changes; /* when entry and row were read                    */
    int is_read;
    /* Of an array that is what it was at one moment: brc_array_freeze(). */
    int is_frozen;
    int is_held;                    /* nobody writes into its rows: brc_array_freeze_held()     */
    struct brc_frozen_rows *frozen; /* its uncommitted chunks; NULL: none, or too many to keep */
    brc_draft_head of;              /* the draft then                                   */
};

/* An array as an entry of a snapshot has it, to be read within a transaction that the
 * caller holds. `view`: only its repository is looked at. `view` and `path` are borrowed;
 * brc_meta_dispose() of its meta releases the array. */
BRC_MUST_USE int brc_array_of_entry(brc_array *out, brc_session *view, char *path, const brc_entry *entry, brc_error *err);
/* What the array has allocated; the session is not its to let go. */
void brc_array_release(brc_array *a);
/* Brings entry and meta up to date, within a transaction of either kind. */
BRC_MUST_USE int brc_array_sync(brc_array *a, brc_error *err);
/* Of the session too. */
BRC_MUST_USE int brc_array_follow(brc_array *a, brc_error *err);
BRC_MUST_USE int brc_array_begin_read(brc_array *a, brc_error *err);
void brc_array_end_read(brc_array *a);
/* Within brc_array_begin_read(): the array as it is now, for reads of more than one transaction. Where
 * it has too many uncommitted chunks to remember, its reads fail with BRC_ESTALE once the draft has
 * changed. brc_array_free() releases it. */
BRC_MUST_USE int brc_array_freeze(brc_array **out, brc_array *a, brc_error *err);
/* The same with these rows in place of its own, into which nobody writes as long as they are there. */
BRC_MUST_USE int brc_array_freeze_held(brc_array **out, brc_array *a, const brc_draft_stack *rows, brc_error *err);
/* Begins a change: afterwards the array has a draft row. */
BRC_MUST_USE int brc_array_begin(brc_array *a, brc_error *err);
BRC_MUST_USE int brc_array_end(brc_array *a, int rc, brc_error *err);
/* A change of it was undone: it is described as the file has it, and looked up again. */
void brc_array_forget(brc_array *a);
/* brc_bulk_end_with(); if the change was undone, the array is described as the file has it. */
BRC_MUST_USE int brc_array_bulk_end(brc_array *a, int rc, brc_error *err);
/* A chunk that is about to be changed in part; id zero: it is absent. A bulk write notes it. */
BRC_MUST_USE int brc_array_note_old(brc_array *a, const uint64_t *index, const brc_oid *id, brc_error *err);
/* After brc_change_run(), outside of every transaction; rc: what that returned. */
void brc_array_changed(brc_array *a, int rc);
/* An error where its chunks cannot be encoded. */
BRC_MUST_USE int brc_array_can_write(const brc_array *a, brc_error *err);
/* Another document, or another chunk map, for the array. */
BRC_MUST_USE int brc_array_put_entry(brc_array *a, const brc_json *doc, const brc_oid *map, brc_error *err);

/* meta.c: reads its storage options, within a transaction of either kind. */
BRC_MUST_USE int brc_array_read_storage(brc_array *a, brc_error *err);
/* The number of the backend that new chunks go to, which is added where it is new. */
/* array_change.c: a backend as users give it, in full form with a NUL behind it; and what a new array
 * gets where none is given, by the repository's setting. */
#define BRC_SETTING_BACKEND "backend"
#define BRC_SETTING_CODECS "codecs"
BRC_MUST_USE int brc_backend_of_text(const brc_registry *reg, const char *text, brc_buf *full, brc_error *err);
BRC_MUST_USE int brc_entry_take_default(brc_session *s, brc_entry *entry, brc_error *err);
/* The document of a new array; its codecs are those of the setting where none are named and they fit. */
BRC_MUST_USE int brc_new_array_doc(brc_json **out, brc_session *s, const brc_array_spec *given, brc_error *err);
/* Sets them; NULL: they are chosen by type again. BRC_EINVAL, BRC_EUNSUPPORTED: they are wrong, or not known. */
BRC_MUST_USE int brc_default_codecs_set(breccia *repo, const char *codecs, brc_error *err);
BRC_MUST_USE int brc_array_new_chunks(brc_array *a, int64_t *backend, brc_error *err);
/* The same, without adding it: -1. */
BRC_MUST_USE int brc_array_find_backend(brc_array *a, int64_t *backend, brc_error *err);

static inline brc_store *brc_array_store(const brc_array *a)
{
    return a->session->repo->store;
}

/* Looks up n chunks by index (n * ndim numbers, in row-major order): ids[i] is zero if
 * chunk i is absent. */
BRC_MUST_USE int brc_array_chunk_ids(brc_array *a, size_t n, const uint64_t *indexes, brc_oid *ids, brc_error *err);
/* Every chunk, in the grid's order; `each` may write. */
typedef int (*brc_chunk_each_fn)(void *ctx, const uint64_t *index, const brc_oid *id, brc_error *err);
BRC_MUST_USE int brc_array_each_chunk(brc_array *a, brc_chunk_each_fn each, void *ctx, brc_error *err);
/* The form of chunks of this shape, and the number of its encoding in the store: -1 where it has none
 * yet, 0 where chunks are stored as they are. */
BRC_MUST_USE int brc_form_of_meta(brc_store *store, brc_meta *m, const uint64_t *chunk, brc_form **form, int64_t *encoding,
                                  brc_error *err);
/* What the write flow must know of a chunk of this shape: how it is encoded, where it goes, and when
 * it is absent. */
BRC_MUST_USE int brc_array_item(brc_array *a, const uint64_t *chunk, brc_write_item *item, brc_error *err);
/* Bytes from one element to the next in the memory that regions are copied in: for
 * elements of variable length these are spans that point to them. */
static inline size_t brc_array_unit(const brc_array *a)
{
    return brc_meta_is_variable(&a->meta) ? sizeof(brc_span) : a->meta.type->item_size;
}

/* Appends a selection's elements, packed and canonical; those of variable length each
 * after its length in bytes. */
BRC_MUST_USE int brc_array_read_canonical(brc_array *a, const brc_sel *sel, brc_buf *out, brc_error *err);
/* Whole chunks, including what is outside the array, each into memory of its own:
 * canonical, elements of a fixed size. n * ndim numbers. */
BRC_MUST_USE int brc_array_read_chunks(brc_array *a, size_t n, const uint64_t *indexes, uint8_t *const *memory, brc_error *err);
/* Within a change of `to`: takes the elements of an array of the same type. sel NULL: all, into an
 * array of the same shape that has none and whose stored chunks are cut otherwise. Else the
 * selection, which both have; where chunks are cut the same they are taken over by their ids. */
BRC_MUST_USE int brc_array_recut(brc_array *to, brc_array *from, const brc_sel *sel, brc_error *err);
/* Records a chunk's new id. NULL: it is absent. */
BRC_MUST_USE int brc_array_put_chunk(brc_array *a, const uint64_t *index, const brc_oid *id, brc_error *err);

/* Items of a batch: an older caller's are shorter, a newer one's longer. */
static inline const brc_io *brc_io_at(const brc_io *io, size_t i)
{
    return (const brc_io *)((const char *)io + i * io->size);
}
static inline const brc_at *brc_io_positions(const brc_io *io)
{
    return io->size >= sizeof(*io) ? io->at : NULL;
}
/* BRC_EINVAL unless n items describe arrays of one repository and memory for them. */
BRC_MUST_USE int brc_io_check(const brc_io *io, size_t n, brc_error *err);

/* Puts "PATH chunk (0, 1): " before an error. */
void brc_array_name_chunk(const brc_array *a, const uint64_t *index, brc_error *err);

#endif
