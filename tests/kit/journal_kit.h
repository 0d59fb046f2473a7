/* Rollback journals: made by hand, or left behind by a writer that ends in the middle. */
#ifndef BRC_TESTS_JOURNAL_KIT_H
#define BRC_TESTS_JOURNAL_KIT_H

#include "../../src/base/buf.h"

/* A header of 512 bytes that promises so many records; release it with
 * brc_buf_dispose(). The records' random number is 7. */
brc_buf journal_kit_header(int64_t pages_before, uint32_t page_size, uint32_t records);
/* Another one behind the records. */
void journal_kit_more(brc_buf *journal, int64_t pages_before, uint32_t page_size, uint32_t records);
void journal_kit_page(brc_buf *journal, uint32_t number, const uint8_t *page, uint32_t page_size);
/* The end that names a super-journal; `off` is added to its checksum. */
void journal_kit_name(brc_buf *journal, const char *name, uint32_t off);

/* A VFS with which the process ends where its first journal would be deleted: all is
 * written then, and the journal still there. For a child process. */
#define JOURNAL_KIT_DIES "breccia-dies"
void journal_kit_register_dying(void);

#endif
