/* A folder with one store in it, and a connection of SQLite's own beside it, for
 * tests below the public functions. Everything fails the test that called it. */
#ifndef BRC_TESTS_STORE_KIT_H
#define BRC_TESTS_STORE_KIT_H

#include "../../src/store/store.h"

typedef struct store_kit {
    char dir[64];   /* a temporary folder  */
    char file[96];  /* "test.brc" in it    */
    brc_registry *reg;
    brc_store *store;
    brc_error err;
} store_kit;

/* Check tells its parent of each assertion that it passes: too slow where there are
 * millions of them. */
#define KIT_TRUE(condition)                              \
    do {                                                 \
        if (!(condition))                                \
            ck_abort_msg("it is not so: %s", #condition); \
    } while (0)

/* The call, which is given &(k)->err, must succeed, or fail with this code and
 * with these words in its message. */
#define KIT_OK(k, call)                                            \
    do {                                                           \
        int kit_rc_ = (call);                                      \
        if (kit_rc_ != BRC_OK)                                     \
            ck_abort_msg("%s", (k)->err.message);                  \
    } while (0)
#define KIT_FAILS(k, code, words, call) \
    store_kit_failed((call), (code), (words), &(k)->err, __FILE__, __LINE__)

void store_kit_folder(store_kit *k); /* no file yet                               */
void store_kit_start(store_kit *k);  /* with a new store, open                    */
void store_kit_start_big(store_kit *k); /* the same, for much data                */
void store_kit_stop(store_kit *k);
/* The kit of a file of tests, and functions for CASE: KIT_start() and KIT_stop(). */
#define STORE_KIT_FIXTURE(kit)        \
    static store_kit kit;             \
    static void kit##_start(void)     \
    {                                 \
        store_kit_start(&kit);        \
    }                                 \
    static void kit##_stop(void)      \
    {                                 \
        store_kit_stop(&kit);         \
    }
/* The same in a transaction, which is never committed; START is store_kit_start or store_kit_start_big. */
#define STORE_KIT_CHANGE_FIXTURE(kit, START)                       \
    static store_kit kit;                                          \
    static void kit##_start(void)                                  \
    {                                                              \
        START(&kit);                                               \
        KIT_OK(&kit, brc_store_begin(kit.store, &kit.err));        \
    }                                                              \
    static void kit##_stop(void)                                   \
    {                                                              \
        KIT_OK(&kit, brc_store_end(kit.store, 0, &kit.err));       \
        store_kit_stop(&kit);                                      \
    }
void store_kit_close(store_kit *k);
int store_kit_try(store_kit *k, uint32_t flags, int wait_ms);
void store_kit_open(store_kit *k);
void store_kit_reopen(store_kit *k);
void store_kit_failed(int rc, int code, const char *words, const brc_error *err, const char *file,
                      int line);

/* A commit without nodes, within a transaction. */
brc_oid store_kit_commit(store_kit *k, int64_t time_us, const char *message, const brc_oid *parents, size_t n);
/* A new shared draft over this commit (NULL: the empty snapshot), within a transaction. */
int64_t store_kit_draft(store_kit *k, const char *branch, const brc_oid *base);

/* With a connection of its own, which SQLite's defaults govern and which has row_sum(). Before a
 * change every object gets a row of stored bytes of its own (own_rows.h), except by _shared. */
void store_kit_sql(const store_kit *k, const char *sql);
void store_kit_sql_shared(const store_kit *k, const char *sql);
int64_t store_kit_ask(const store_kit *k, const char *sql);
/* The whole file: release with brc_buf_dispose(). */
brc_buf store_kit_bytes(const store_kit *k);

/* Files beside it: all of one, one replaced, one compared. */
brc_buf store_kit_read(const char *file);
void store_kit_put(const char *file, const brc_buf *content);
int store_kit_same(const char *file, const brc_buf *want);
/* A copy of a file, or one with this content, to which no journal or log belongs. */
void store_kit_copy(const char *from, const char *to);
void store_kit_put_alone(const char *file, const brc_buf *content);
/* Returns whether these bytes are in the file, or in a file that SQLite has beside it. */
int store_kit_holds(const char *file, const void *bytes, size_t len);

/* An id that nothing has: 16 bytes of it are `seed`. */
brc_oid store_kit_id(uint8_t seed);
uint64_t store_kit_random(uint64_t *state); /* splitmix64 */
uint64_t store_kit_below(uint64_t *state, uint64_t n);

#endif
