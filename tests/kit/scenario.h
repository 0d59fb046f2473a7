/* A temporary repository behind the public API, arrays in it, models of arrays in
 * plain memory, and a look at the file with SQLite. A failure here fails the test. */
#ifndef BRC_TESTS_SCENARIO_H
#define BRC_TESTS_SCENARIO_H

#include "../../src/breccia.h"

/* The call, which is given &(t)->err, must succeed, or fail with this code. */
#define OK(t, call) ck_assert_msg((call) == BRC_OK, "%s", (t)->err.message)
#define FAILS(t, code, call) scenario_fails((call), (code), &(t)->err, __FILE__, __LINE__)

typedef struct scenario {
    char dir[64];         /* a temporary folder             */
    char file[96];        /* "test.brc" in it               */
    breccia *repo;
    brc_session *session; /* the current branch, to write   */
    brc_error err;
} scenario;

void scenario_start(scenario *t);
/* Only the folder, with the name of the file; _in: in a place of folder.h. */
void scenario_folder(scenario *t);
void scenario_folder_in(scenario *t, int where);
/* Opens the file, BRC_OPEN_CREATE or not; opts NULL: the defaults. */
void scenario_open(scenario *t, const brc_open_opts *opts, uint32_t flags);
/* The file through a VFS of this name. */
void scenario_open_vfs(scenario *t, const char *vfs);
/* Another handle on the file; how long it waits for locks: as brc_open_opts.wait_ms. */
breccia *scenario_handle(scenario *t, int wait_ms);
/* A brc_credentials_fn: the credentials of the environment, or any where it has none. */
int scenario_give(void *ctx, const brc_server *from, brc_credentials *out, brc_error *err);
/* brc_open(), with these credentials if BRECCIA_BACKEND says where all chunks go, or after scenario_bucket(): for handles
 * of suites that run with every backend. */
int scenario_connect(breccia **out, const char *file, const brc_open_opts *opts, brc_error *err);
/* The specification of a bucket on a server in this process, which handles that are opened later may use. Returns `out`. */
char *scenario_bucket(char out[300], const char *prefix);
void scenario_close(scenario *t);
void scenario_reopen(scenario *t);
void scenario_stop(scenario *t);
/* The scenario of a file of tests, and functions for CASE: T_start() and T_stop(). At its end the
 * file is whole. */
#define SCENARIO_FIXTURE(t)                                \
    static scenario t;                                     \
    __attribute__((unused)) static void t##_start(void)    \
    {                                                      \
        scenario_start(&t);                                \
    }                                                      \
    __attribute__((unused)) static void t##_stop(void)     \
    {                                                      \
        scenario_whole(&t);                                \
        scenario_stop(&t);                                 \
    }
/* T_numbers() starts with the numbers 0, 1, 2 ... below n as "/a", in chunks of that many,
 * committed. */
#define SCENARIO_NUMBERS_FIXTURE(t, n, chunk)              \
    SCENARIO_FIXTURE(t)                                    \
    static void t##_numbers(void)                          \
    {                                                      \
        scenario_start(&t);                                \
        scenario_numbers(&t, "/a", (n), (chunk), 0);       \
        scenario_commit(&t, "first");                      \
    }
void scenario_fails(int rc, int code, const brc_error *err, const char *file, int line);

/* A new array; chunk, fill and codecs may be NULL. */
brc_array *scenario_array(scenario *t, const char *path, const char *dtype, int ndim,
                          const uint64_t *shape, const uint64_t *chunk, const char *fill,
                          const char *codecs);
/* An array of any session; the caller frees it. */
brc_array *scenario_array_at(scenario *t, brc_session *s, const char *path);
/* All elements of an array read or written; all (slice NULL) or those of a slice, "[5:6]", set to
 * one value. */
void scenario_read(scenario *t, brc_session *s, const char *path, void *out, size_t len);
void scenario_write(scenario *t, brc_session *s, const char *path, const void *data, size_t len);
void scenario_fill(scenario *t, brc_session *s, const char *path, const char *slice, const void *value);
/* Another length of an array of one axis, other codecs (as brc_array_set_codecs() takes them),
 * another backend. */
void scenario_resize(scenario *t, brc_session *s, const char *path, uint64_t n);
void scenario_recode(scenario *t, brc_session *s, const char *path, const char *codecs, int rewrite);
void scenario_set_backend(scenario *t, brc_session *s, const char *path, const char *backend);
/* A new int32 array of one axis with the elements first, first + 1, ... */
void scenario_numbers(scenario *t, const char *path, uint64_t n, uint64_t chunk, int32_t first);
/* Its i-th element, as `s` sees it. */
int32_t scenario_number(scenario *t, brc_session *s, const char *path, uint64_t i);
void scenario_set_number(scenario *t, const char *path, uint64_t i, int32_t value);
/* The same in any session. */
void scenario_put(scenario *t, brc_session *s, const char *path, uint64_t i, int32_t value);
int scenario_has(scenario *t, const char *path);
/* Return whether a session has this key, and whether it has any key in this directory. */
int scenario_has_key(scenario *t, brc_session *s, const char *key);
int scenario_has_keys(scenario *t, brc_session *s, const char *dir);
brc_oid scenario_commit(scenario *t, const char *message);
int scenario_clean(scenario *t);
/* BRC_GROUP, BRC_ARRAY, or 0 where the path has no node. */
int scenario_kind(scenario *t, const char *path);
/* Tries to open a session, which must fail with this code. */
void scenario_session_fails(scenario *t, int code, const char *rev, int mode);
/* For any session: open one, commit and return the result (id may be NULL), say whether it has no
 * changes. */
brc_session *scenario_session(scenario *t, breccia *repo, const char *rev, int mode);
int scenario_commit_of(scenario *t, brc_session *s, const char *message, brc_oid *id);
int scenario_is_clean(scenario *t, brc_session *s);
/* The number of a private session's draft, which begins with the call if there is none; and a
 * session on a draft. */
int64_t scenario_draft(scenario *t, brc_session *s);
int scenario_draft_open(brc_session **out, breccia *repo, int64_t id, brc_error *err);
/* The log reaches back to nothing any more: a collection then removes all that no ref needs. */
void scenario_no_window(scenario *t);
/* From now on chunks of new arrays lie in the file, for tests of its rows, wherever BRECCIA_BACKEND puts
 * those of other tests. */
void scenario_inline(scenario *t);
/* No fault is found. */
void scenario_whole(scenario *t);
/* Nodes below a path, "/a /b/c ", in out. */
char *scenario_tree(scenario *t, brc_session *s, const char *path, int recurse, char *out,
                    size_t size);

/* With a connection of its own, which has row_sum(): the first column of the first row, a change,
 * and the rows as text. Before a change every object gets a row of stored bytes of its own
 * (own_rows.h), except by _shared. Not while t->repo is in a transaction. */
int64_t scenario_ask(scenario *t, const char *sql);
void scenario_sql(scenario *t, const char *sql);
void scenario_sql_shared(scenario *t, const char *sql);
void scenario_rows(scenario *t, const char *sql, brc_buf *out);

/* Rows of stored bytes are as they must be: each has an object, each object is inside one, and a
 * large one alone in its own. Gives the bytes in rows that no object has. */
int64_t scenario_unused(scenario *t);

/* splitmix64, and a number below n. */
uint64_t scenario_random(uint64_t *state);
uint64_t scenario_below(uint64_t *state, uint64_t n);

/* An array in plain memory. */
typedef struct model {
    int ndim;
    uint64_t shape[BRC_MAX_NDIM];
    size_t item;
    uint8_t fill[16];
    uint8_t *data;
    size_t len;
} model;

void model_new(model *m, int ndim, const uint64_t *shape, size_t item, const void *fill);
void model_free(model *m);
/* Keeps what both shapes hold; the rest is the fill value. */
void model_resize(model *m, const uint64_t *shape);
/* Where elements of the selection lie in memory with these strides (NULL: packed). */
void model_write(model *m, const brc_sel *sel, const void *src, const int64_t *strides);
void model_read(const model *m, const brc_sel *sel, void *dst, const int64_t *strides);
/* A selection inside the shape, possibly empty. */
void model_selection(const model *m, uint64_t *random, brc_sel *sel);
void model_bytes(uint64_t *random, void *out, size_t len);
/* The array has exactly these elements. */
void model_check(const model *m, scenario *t, brc_array *a);

#endif
