/* Joined writes: whatever is written, read and cut, the file is as if each write had gone to it at
 * once, and has seen fewer of them; a disk that is full loses what a journal needs in no case. */
#include <stdlib.h>
#include <string.h>

#include "../../src/store/joined.h"
#include "../kit/store_kit.h"
#include "../kit/suite.h"

TEST_SUITE(joined);

enum { PAGE = 16, SIZE = 7 * PAGE, MOST = 64 * PAGE };

/* A file in memory. */
typedef struct memory_file {
    sqlite3_file base;
    uint8_t bytes[MOST];
    sqlite3_int64 size;
    unsigned writes;
    int is_full;
} memory_file;

static int memory_write(sqlite3_file *file, const void *data, int len, sqlite3_int64 at)
{
    memory_file *m = (memory_file *)file;
    if (m->is_full)
        return SQLITE_FULL;
    memcpy(m->bytes + at, data, (size_t)len);
    m->size = at + len > m->size ? at + len : m->size;
    m->writes++;
    return SQLITE_OK;
}

static int memory_read(sqlite3_file *file, void *into, int len, sqlite3_int64 at)
{
    memory_file *m = (memory_file *)file;
    memset(into, 0, (size_t)len);
    if (at < m->size)
        memcpy(into, m->bytes + at, (size_t)(m->size - at < len ? m->size - at : len));
    return at + len <= m->size ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

static int memory_size(sqlite3_file *file, sqlite3_int64 *size)
{
    *size = ((memory_file *)file)->size;
    return SQLITE_OK;
}

static const sqlite3_io_methods methods = {
    .iVersion = 1, .xWrite = memory_write, .xRead = memory_read, .xFileSize = memory_size};

static memory_file file, plain;
static brc_joined run;

static void setup(void)
{
    file = plain = (memory_file){.base = {.pMethods = &methods}};
    brc_joined_init(&run, SIZE, 0);
}

static void teardown(void)
{
    brc_joined_dispose(&run);
}

static void put(sqlite3_int64 at, int len, uint8_t value)
{
    uint8_t data[MOST];
    memset(data, value, (size_t)len);
    ck_assert_int_eq(brc_joined_write(&run, &file.base, data, len, at), SQLITE_OK);
    ck_assert_int_eq(memory_write(&plain.base, data, len, at), SQLITE_OK);
}

static void same(sqlite3_int64 at, int len)
{
    uint8_t a[MOST], b[MOST];
    sqlite3_int64 n, m;
    ck_assert_int_eq(brc_joined_read(&run, &file.base, a, len, at),
                     memory_read(&plain.base, b, len, at));
    ck_assert_int_eq(memcmp(a, b, (size_t)len), 0);
    ck_assert_int_eq(brc_joined_size(&run, &file.base, &n), SQLITE_OK);
    ck_assert_int_eq(memory_size(&plain.base, &m), SQLITE_OK);
    ck_assert_int_eq(n, m);
}

CASE("joined", .setup = setup, .teardown = teardown);

LOOP(a_file_is_as_if_nothing_were_joined, 0, 40)
{
    uint64_t seed = (uint64_t)_i + 1;
    sqlite3_int64 at = 0;
    for (int i = 0; i < 400; i++) {
        const uint64_t r = store_kit_random(&seed);
        int len = (int)(1 + store_kit_random(&seed) % (r % 9 == 0 ? 2 * SIZE : PAGE));
        if (r % 4 == 0 || at + len > MOST)
            at = (sqlite3_int64)(store_kit_random(&seed) % (MOST / 2));
        if (at + len > MOST)
            len = MOST - (int)at;
        put(at, len, (uint8_t)(i + 1));
        at += len;
        if (r % 7 == 0) { /* a truncation */
            const sqlite3_int64 to = (sqlite3_int64)(store_kit_random(&seed) % MOST);
            const sqlite3_int64 before = file.size > to ? file.size : to;
            brc_joined_cut(&run, to);
            ck_assert_int_eq(brc_joined_flush(&run, &file.base), SQLITE_OK);
            ck_assert_int_le(file.size, before);
            file.size = plain.size = plain.size < to ? plain.size : to;
            memset(file.bytes + file.size, 0, (size_t)(MOST - file.size));
            memset(plain.bytes + plain.size, 0, (size_t)(MOST - plain.size));
        }
        same((sqlite3_int64)(store_kit_random(&seed) % (MOST / 2)),
             (int)(1 + store_kit_random(&seed) % (MOST / 2)));
    }
    ck_assert_int_eq(brc_joined_flush(&run, &file.base), SQLITE_OK);
    ck_assert_int_eq(file.size, plain.size);
    ck_assert_int_eq(memcmp(file.bytes, plain.bytes, MOST), 0);
    ck_assert_uint_lt(file.writes, plain.writes);
}

TEST(neighbouring_pages_are_one_write)
{
    for (int i = 0; i < 21; i++)
        put(i * PAGE, PAGE, (uint8_t)i);
    ck_assert_int_eq(brc_joined_flush(&run, &file.base), SQLITE_OK);
    ck_assert_uint_eq(file.writes, 3);
    ck_assert_int_eq(memcmp(file.bytes, plain.bytes, MOST), 0);
}

/* The records of a journal that could not be written are written later; the pages of a file are
 * dropped, because SQLite plays the journal back over them. */
LOOP(a_full_disk_loses_nothing_that_a_journal_needs, 0, 2)
{
    uint8_t data[PAGE] = {1};
    brc_joined_init(&run, SIZE, _i);
    ck_assert_int_eq(brc_joined_write(&run, &file.base, data, PAGE, 0), SQLITE_OK);
    file.is_full = 1;
    ck_assert_int_eq(brc_joined_write(&run, &file.base, data, PAGE, 4 * PAGE), SQLITE_FULL);
    ck_assert_int_eq(brc_joined_flush(&run, &file.base), _i ? SQLITE_FULL : SQLITE_OK);
    file.is_full = 0;
    ck_assert_int_eq(brc_joined_flush(&run, &file.base), SQLITE_OK);
    ck_assert_int_eq(file.size, _i ? PAGE : 0);
}
