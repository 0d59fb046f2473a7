/*
 * See journal_check.h. SQLite plays back any file that has the journal's name. The checks rely on
 * these facts:
 *
 * Page 1 holds a counter that every transaction raises by one, so nearly every journal
 * holds page 1 as it was. SQLite writes page 1 once, when the transaction ends. So the
 * first sector of the file is either what the journal has of it, to the byte, or holds
 * the next counter. Any other counter belongs to another state. SQLite saves page 1 with the
 * first page that a transaction adds or gives back, and at its end in any case: a journal without
 * page 1 is of a transaction that wrote pages over and was stopped before. No counter says to
 * which state of the file such a journal belongs, so it counts only where it changes nothing.
 */
#include "journal_check.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define HEADER_LEN 28
#define FILE_HEADER_LEN 100
#define COUNTER_AT 24
#define PAGES_AT 28
#define VALID_FOR_AT 92
#define LOCK_BYTE 0x40000000 /* SQLite's: the page at this offset holds nothing */
#define UNCOUNTED 0xffffffffu /* records to the end of the file, the last ones may be bad */

static const uint8_t journal_mark[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};

typedef struct journal_walk {
    sqlite3_file *journal;
    sqlite3_int64 size, at;
    uint32_t sector, page, pages; /* the header's sizes, and how many pages the file had before */
    uint8_t *record;
    int verdict;
    sqlite3_file *file;
    uint8_t *page_now;
    int changes;   /* a record is not what the file has there     */
    int has_first; /* page 1 is among the records; `first` is its beginning */
    uint8_t first[FILE_HEADER_LEN];
} journal_walk;

static uint32_t big_endian(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static int read_bytes(sqlite3_file *file, void *into, size_t len, sqlite3_int64 at)
{
    return file->pMethods->xRead(file, into, (int)len, at);
}

int brc_journal_check_end(sqlite3_file *journal, int *verdict)
{
    uint8_t end[16];
    sqlite3_int64 size = 0;
    *verdict = BRC_JOURNAL_OWN;
    int rc = journal->pMethods->xFileSize(journal, &size);
    if (rc != SQLITE_OK || size < (sqlite3_int64)sizeof(end))
        return rc;
    rc = read_bytes(journal, end, sizeof(end), size - (sqlite3_int64)sizeof(end));
    /* The name's own checksum does not matter: breccia never writes a name. */
    if (rc == SQLITE_OK && memcmp(end + 8, journal_mark, sizeof(journal_mark)) == 0 &&
        big_endian(end) != 0)
        *verdict = BRC_JOURNAL_NAMES_OTHER;
    return rc;
}

static int is_size(uint32_t n, uint32_t least)
{
    return n >= least && n <= 65536 && (n & (n - 1)) == 0;
}

/* Checks a record's checksum, the sum of every 200th byte from the end, as SQLite computes it. */
static int checksum_is_right(const journal_walk *w, uint32_t nonce)
{
    const uint8_t *data = w->record + 4;
    uint32_t sum = nonce;
    for (uint32_t i = w->page; i > 200; i -= 200)
        sum += data[i - 200];
    return sum == big_endian(data + w->page);
}

/* Compares a record with the file's page. Needed only until page 1 is met. */
static int compare_page(journal_walk *w, uint32_t number)
{
    if (w->has_first || w->changes)
        return SQLITE_OK;
    int rc = read_bytes(w->file, w->page_now, w->page, (sqlite3_int64)(number - 1) * w->page);
    if (rc != SQLITE_OK && rc != SQLITE_IOERR_SHORT_READ)
        return rc;
    w->changes = rc != SQLITE_OK || memcmp(w->page_now, w->record + 4, w->page) != 0;
    return SQLITE_OK;
}

static int read_one_record(journal_walk *w, uint32_t nonce)
{
    uint32_t lock_page = LOCK_BYTE / w->page + 1;
    sqlite3_int64 len = (sqlite3_int64)w->page + 8;
    if (w->size - w->at < len) {
        w->verdict = BRC_JOURNAL_DAMAGED;
        return SQLITE_OK;
    }
    int rc = read_bytes(w->journal, w->record, (size_t)len, w->at);
    if (rc != SQLITE_OK)
        return rc;
    w->at += len;
    uint32_t number = big_endian(w->record);
    if (number == 0 || number == lock_page || !checksum_is_right(w, nonce)) {
        w->verdict = BRC_JOURNAL_DAMAGED;
    } else if (number == 1 && !w->has_first) {
        w->has_first = 1;
        memcpy(w->first, w->record + 4, sizeof(w->first));
    } else {
        rc = compare_page(w, number);
    }
    return rc;
}

static int read_records(journal_walk *w, const uint8_t *header)
{
    uint32_t count = big_endian(header + 8), nonce = big_endian(header + 12);
    int rc = SQLITE_OK;
    for (uint32_t i = 0; i < count && w->verdict == BRC_JOURNAL_OWN && rc == SQLITE_OK; i++)
        rc = read_one_record(w, nonce);
    if (count == UNCOUNTED && w->verdict == BRC_JOURNAL_DAMAGED) {
        w->verdict = BRC_JOURNAL_OWN;
        w->at = w->size;
    }
    return rc;
}

/* Reads the first header, which gives the layout of the rest. */
static int read_first_header(journal_walk *w, uint8_t *header)
{
    int rc = w->journal->pMethods->xFileSize(w->journal, &w->size);
    if (rc == SQLITE_OK && w->size >= HEADER_LEN)
        rc = read_bytes(w->journal, header, HEADER_LEN, 0);
    if (rc != SQLITE_OK)
        return rc;
    if (w->size >= HEADER_LEN) {
        w->pages = big_endian(header + 16);
        w->sector = big_endian(header + 20);
        w->page = big_endian(header + 24);
    }
    if (w->size < HEADER_LEN || memcmp(header, journal_mark, sizeof(journal_mark)) != 0 ||
        !is_size(w->sector, 32) || !is_size(w->page, 512) || w->size < w->sector) {
        w->verdict = BRC_JOURNAL_NONE;
        return SQLITE_OK;
    }
    w->record = malloc((size_t)w->page + 8);
    w->page_now = malloc(w->page);
    return w->record != NULL && w->page_now != NULL ? SQLITE_OK : SQLITE_NOMEM;
}

static int walk_journal(journal_walk *w)
{
    uint8_t header[HEADER_LEN];
    int rc = read_first_header(w, header);
    while (rc == SQLITE_OK && w->verdict == BRC_JOURNAL_OWN) {
        w->at += w->sector;
        rc = read_records(w, header);
        w->at = (w->at + w->sector - 1) / w->sector * w->sector;
        /* Bytes without the mark were not synced: nothing relies on them. */
        if (rc != SQLITE_OK || w->at + w->sector > w->size)
            break;
        rc = read_bytes(w->journal, header, sizeof(header), w->at);
        if (rc == SQLITE_OK && memcmp(header, journal_mark, sizeof(journal_mark)) != 0)
            break;
    }
    return rc;
}

/* Returns 1 if a file with this header has this number of pages. Bytes after a file's
 * pages belong to nothing; then the header's number is smaller. */
static int pages_are(const journal_walk *w, const uint8_t *header, sqlite3_int64 file_size)
{
    uint32_t pages = big_endian(header + PAGES_AT);
    if (big_endian(header + COUNTER_AT) != big_endian(header + VALID_FOR_AT))
        return 1; /* written by an old SQLite: the number means nothing */
    return pages == w->pages ||
           (pages < w->pages && (sqlite3_int64)w->pages * w->page <= file_size);
}

static int is_same_state(const journal_walk *w, const uint8_t *now, sqlite3_int64 file_size)
{
    if (!w->has_first)
        return pages_are(w, now, file_size);
    uint32_t before = big_endian(w->first + COUNTER_AT), counter = big_endian(now + COUNTER_AT);
    uint32_t page = (uint32_t)w->first[16] << 8 | w->first[17];
    if ((page == 1 ? 65536 : page) != w->page || !pages_are(w, w->first, file_size))
        return 0;
    if (counter == before)
        return memcmp(w->first, now, FILE_HEADER_LEN) == 0;
    return counter == before + 1;
}

int brc_journal_check(sqlite3_file *file, sqlite3_file *journal, int *verdict)
{
    uint8_t now[FILE_HEADER_LEN] = {0};
    sqlite3_int64 file_size = 0;
    journal_walk w = {.journal = journal, .file = file};
    int rc = brc_journal_check_end(journal, verdict);
    if (rc != SQLITE_OK || *verdict != BRC_JOURNAL_OWN)
        return rc;
    rc = walk_journal(&w);
    if (rc == SQLITE_OK && w.verdict == BRC_JOURNAL_OWN) {
        rc = read_bytes(file, now, sizeof(now), 0);
        if (rc == SQLITE_OK || rc == SQLITE_IOERR_SHORT_READ)
            rc = file->pMethods->xFileSize(file, &file_size);
        if (w.pages == 0)
            w.verdict = BRC_JOURNAL_OF_NEW_FILE;
        else if (rc == SQLITE_OK && !is_same_state(&w, now, file_size))
            w.verdict = BRC_JOURNAL_OTHER_STATE;
        else if (rc == SQLITE_OK && !w.has_first && w.changes)
            w.verdict = BRC_JOURNAL_UNPROVEN;
    }
    free(w.record);
    free(w.page_now);
    *verdict = w.verdict;
    return rc;
}
