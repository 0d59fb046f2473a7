/*
 * See wal_check.h. The checks rely on these facts:
 *
 * Each transaction is synced before the next one writes. So a frame with a wrong checksum may be
 * followed by the rest of one transaction, which was never acknowledged; if another transaction
 * follows, the frame was whole once, and the log is damaged.
 *
 * Between a log's beginning and its end the file's pages change only to the log's content of them.
 * Page 1 has a counter, which grows by one if another connection wrote the page before. So the
 * file's first bytes are those of a frame, or have the counter that the first such frame follows.
 * If no transaction of the log touches page 1, none changes the number of pages.
 */
#include "wal_check.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_LEN = 32, FRAME_LEN = 24, FILE_HEADER_LEN = 100, COUNTER_AT = 24, PAGES_AT = 28,
       VALID_FOR_AT = 92 };

#define MARK 0x377f0682u /* the last bit: checksums of big-endian words */
#define VERSION 3007000u

typedef struct wal_walk {
    sqlite3_file *wal;
    sqlite3_int64 frames; /* the most that the log's size allows */
    uint32_t page;
    int big;              /* checksums are of big-endian words */
    uint8_t salts[8];
    uint32_t sum[2];      /* of all frames before this one */
    uint8_t *frame;
    uint8_t now[FILE_HEADER_LEN]; /* the file's first bytes          */
    /* Facts about the transactions up to the last whole one: */
    uint32_t pages;       /* the file's pages after the last one; 0: there is none */
    int has_first, is_first_met; /* page 1 is in the log; the file has the log's page 1 */
    uint32_t first_counter;
    /* Facts about the transaction that is being read: */
    int has_page, is_page_met;
    uint32_t page_counter;
} wal_walk;

static uint32_t word_big(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static uint32_t word_little(const uint8_t *at)
{
    return (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

static void add_words(uint32_t sum[2], const uint8_t *data, size_t len, int big)
{
    for (size_t i = 0; i + 8 <= len; i += 8) {
        sum[0] += (big ? word_big(data + i) : word_little(data + i)) + sum[1];
        sum[1] += (big ? word_big(data + i + 4) : word_little(data + i + 4)) + sum[0];
    }
}

static int wal_read(const wal_walk *w, void *into, size_t len, sqlite3_int64 at)
{
    return w->wal->pMethods->xRead(w->wal, into, (int)len, at);
}

static int read_frame(wal_walk *w, sqlite3_int64 i)
{
    sqlite3_int64 len = FRAME_LEN + (sqlite3_int64)w->page;
    return wal_read(w, w->frame, (size_t)len, HEADER_LEN + i * len);
}

/* Returns 1 if the frame belongs to this log and its checksum follows w->sum, that of the frame
 * before. Sets w->sum to the sum in the frame, for the next one. */
static int frame_follows(wal_walk *w, int *is_of_log)
{
    uint32_t sum[2] = {w->sum[0], w->sum[1]};
    add_words(sum, w->frame, 8, w->big);
    add_words(sum, w->frame + FRAME_LEN, w->page, w->big);
    w->sum[0] = word_big(w->frame + 16);
    w->sum[1] = word_big(w->frame + 20);
    *is_of_log = memcmp(w->frame + 8, w->salts, sizeof(w->salts)) == 0;
    return *is_of_log && word_big(w->frame) != 0 && sum[0] == w->sum[0] && sum[1] == w->sum[1];
}

static void note_frame(wal_walk *w)
{
    const uint8_t *page = w->frame + FRAME_LEN;
    if (word_big(w->frame) == 1) {
        if (!w->has_page)
            w->page_counter = word_big(page + COUNTER_AT);
        w->has_page = 1;
        w->is_page_met |= memcmp(page, w->now, FILE_HEADER_LEN) == 0;
    }
    if (word_big(w->frame + 4) == 0)
        return;
    w->pages = word_big(w->frame + 4);
    if (w->has_page && !w->has_first) {
        w->has_first = 1;
        w->first_counter = w->page_counter;
    }
    w->is_first_met |= w->is_page_met;
    w->has_page = w->is_page_met = 0;
}

/* Looks for a transaction that follows another one, after a frame that is not whole (in
 * w->frame). */
static int look_behind(wal_walk *w, sqlite3_int64 i, int *verdict)
{
    int ends = word_big(w->frame + 4) != 0, is_of_log = 1, rc;
    for (i++; i < w->frames && is_of_log; i++) {
        rc = read_frame(w, i);
        if (rc != SQLITE_OK)
            return rc;
        int follows = frame_follows(w, &is_of_log);
        if (follows && ends)
            *verdict = BRC_WAL_DAMAGED;
        ends = follows && word_big(w->frame + 4) != 0;
    }
    return SQLITE_OK;
}

static int walk_log(wal_walk *w, int *verdict)
{
    int is_of_log;
    for (sqlite3_int64 i = 0; i < w->frames; i++) {
        int rc = read_frame(w, i);
        if (rc != SQLITE_OK)
            return rc;
        if (frame_follows(w, &is_of_log)) {
            note_frame(w);
            continue;
        }
        return is_of_log ? look_behind(w, i, verdict) : SQLITE_OK;
    }
    return SQLITE_OK;
}

static int is_page_size(uint32_t n)
{
    return n >= 512 && n <= 65536 && (n & (n - 1)) == 0;
}

static int read_log_header(wal_walk *w, sqlite3_int64 size, int *verdict)
{
    uint8_t header[HEADER_LEN];
    int rc = wal_read(w, header, sizeof(header), 0);
    if (rc != SQLITE_OK)
        return rc;
    w->big = word_big(header) & 1;
    w->page = word_big(header + 8);
    if ((word_big(header) & ~1u) != MARK || word_big(header + 4) != VERSION ||
        !is_page_size(w->page)) {
        *verdict = BRC_WAL_NONE;
        return SQLITE_OK;
    }
    memcpy(w->salts, header + 16, sizeof(w->salts));
    add_words(w->sum, header, 24, w->big);
    if (w->sum[0] != word_big(header + 24) || w->sum[1] != word_big(header + 28))
        *verdict = BRC_WAL_DAMAGED;
    w->frames = (size - HEADER_LEN) / (FRAME_LEN + (sqlite3_int64)w->page);
    return SQLITE_OK;
}

static int follows_state(const wal_walk *w)
{
    uint32_t counter = word_big(w->now + COUNTER_AT);
    uint32_t page = (uint32_t)w->now[16] << 8 | w->now[17];
    if (w->pages == 0)
        return 1; /* the log has no transaction */
    if ((page == 1 ? 65536 : page) != w->page)
        return 0;
    if (w->has_first)
        return w->is_first_met || counter == w->first_counter || counter + 1 == w->first_counter;
    return counter != word_big(w->now + VALID_FOR_AT) || word_big(w->now + PAGES_AT) == w->pages;
}

int brc_wal_check(sqlite3_file *file, sqlite3_file *wal, int *verdict)
{
    wal_walk w = {.wal = wal};
    sqlite3_int64 size = 0;
    *verdict = BRC_WAL_OWN;
    int rc = wal->pMethods->xFileSize(wal, &size);
    if (rc != SQLITE_OK || size < HEADER_LEN + FRAME_LEN + 512)
        return rc; /* the log has no frame */
    rc = file->pMethods->xRead(file, w.now, sizeof(w.now), 0);
    if (rc == SQLITE_OK)
        rc = read_log_header(&w, size, verdict);
    if (rc != SQLITE_OK || *verdict != BRC_WAL_OWN)
        return rc;
    w.frame = malloc((size_t)w.page + FRAME_LEN);
    if (w.frame == NULL)
        return SQLITE_NOMEM;
    rc = walk_log(&w, verdict);
    if (rc == SQLITE_OK && *verdict == BRC_WAL_OWN && !follows_state(&w))
        *verdict = BRC_WAL_OTHER_STATE;
    free(w.frame);
    return rc;
}
