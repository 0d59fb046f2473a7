/*
 * Chunks of a merged base. Bases are merged by the ids of their chunks alone, and nothing is decoded
 * for it: a chunk that both of two bases changed gets an id of its own here, which says of what it is
 * merged. Its elements are merged where somebody asks for them, which few do; the chunks that it comes
 * from may be such chunks themselves. Elements on which bases do not agree are unknown.
 */
#ifndef BRC_ZARR_BASE_CHUNKS_H
#define BRC_ZARR_BASE_CHUNKS_H

#include "../base/arena.h"
#include "../base/id_table.h"
#include "merge_chunks.h"

typedef struct brc_base_form brc_base_form;

typedef struct brc_base_chunks {
    brc_id_table ids; /* size_t: the number of a chunk, from 1 on         */
    void *items;      /* each after those that it is merged of            */
    size_t n, cap;
    brc_arena keys;
    brc_base_form *forms;
} brc_base_chunks;
#define BRC_BASE_CHUNKS_INIT { .ids = BRC_ID_TABLE_INIT(sizeof(size_t)), .keys = BRC_ARENA_INIT }
void brc_base_chunks_dispose(brc_base_chunks *b);

/* How one array's chunks are merged in one merge of bases: its versions, BRC_SIDE_BASE (kind 0: there is none, and all
 * is unknown) to _THEIRS, and the merged document. *out lasts as long as `b`; NULL: not by element. Within a read. */
BRC_MUST_USE int brc_base_form_new(const brc_base_form **out, brc_base_chunks *b, breccia *repo, const char *path,
                                   const brc_entry side[BRC_SIDES], const brc_json *merged, brc_error *err);
/* A chunk that is merged of these (zero: absent) gets an id; form NULL: it is unknown as a whole. */
BRC_MUST_USE int brc_base_chunk_new(brc_base_chunks *b, const brc_base_form *form, brc_store *store, brc_span key,
                                    const brc_oid of[BRC_SIDES], brc_oid *id, brc_error *err);
int brc_base_chunk_is(const brc_base_chunks *b, const brc_oid *id);
/* Its elements. At most the chunks of one chain of bases are in memory that are still needed. */
BRC_MUST_USE int brc_base_chunk_make(const brc_base_chunks *b, const brc_oid *id, brc_made_chunk *out, brc_error *err);

#endif
