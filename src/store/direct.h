/*
 * Direct reads: stored bytes of large objects, read from the pages of FILE without SQLite, by any thread.
 *
 * SQLite hands out a row's bytes on one thread, by way of its page cache. Here the caller's thread only finds out where
 * the row of table blob lies, and the workers read its pages: a row that was written at once lies in pages that follow
 * each other.
 *
 *      leaf page of the table            overflow pages, usually one behind the other
 *      | ... | length | seq | header | first bytes | page number |
 *                                                        `--> | next page | bytes | next page | bytes ...
 *
 * Nothing is locked meanwhile, and nothing that is read here is believed: the checksum of the object decides. If it
 * differs, because others have changed FILE, or the pages do not follow each other, or FILE is damaged, the caller reads
 * the object again by SQLite, whose answer counts.
 */
#ifndef BRC_STORE_DIRECT_H
#define BRC_STORE_DIRECT_H

#include "store.h"

/* Where an object's stored bytes should be: `near` bytes at `at`, the rest in overflow pages from `page` on, behind the
 * first `skip` bytes of that page's content. */
typedef struct brc_spot {
    uint64_t at, page, near, skip;
} brc_spot;

/* Finds the spot of an object that lies in FILE. Returns 0 if SQLite has to read it: it is small, FILE has a log, or it
 * was not worth it lately. The caller's thread. */
int brc_direct_find(brc_store *store, const brc_object *o, brc_spot *out);
/* Reads the stored bytes into `into`. Returns 1, or 0 if what is there is not the object. Any thread. */
int brc_direct_read(const brc_store *store, const brc_object *o, const brc_spot *spot, uint8_t *into);
/* Says how many of the reads of a flow gave the object. */
void brc_direct_note(brc_store *store, uint64_t good, uint64_t bad);
void brc_direct_dispose(brc_store *store);

#endif
