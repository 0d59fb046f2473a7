/* Rollback journals: made by hand, or left behind by a writer that ends in the middle. */
#ifndef BRC_TESTS_JOURNAL_KIT_H
#define BRC_TESTS_JOURNAL_KIT_H

#include "../../src/base/buf.h"
#include "../../src/breccia.h"

/* A header of 512 bytes that promises this many records; release it with
 * brc_buf_dispose(). The records' random number is 7. */
brc_buf journal_kit_header(int64_t pages_before, uint32_t page_size, uint32_t records);
/* Another one after the records. */
void journal_kit_more(brc_buf *journal, int64_t pages_before, uint32_t page_size, uint32_t records);
void journal_kit_page(brc_buf *journal, uint32_t number, const uint8_t *page, uint32_t page_size);
/* The end that names a super-journal; `off` is added to its checksum. */
void journal_kit_name(brc_buf *journal, const char *name, uint32_t off);

/* One commit more, with a message and an attribute that say `n`. */
int journal_kit_commit(const char *file, int n, brc_error *err);
/* Opens it with BRC_OPEN_* and reads all of it. */
int journal_kit_look(const char *file, uint32_t flags, brc_error *err);
/* A process begins to change the file and ends: 0: where all is written and only the
 * journal's deletion is left; 1: with some pages written, page 1 not; 2: the same, and
 * the file grown. */
void journal_kit_leave(const char *file, int how);

#endif
