/* See scenario.h. */
#include "fsck_kit.h"
#include "scenario.h"

#include <check.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/buf.h"
#include "../../src/base/file.h"
#include "../../src/store/db.h"
#include "folder.h"
#include "own_rows.h"
#include "reserved.h"
#include "s3_server.h"

/* ---- the repository -------------------------------- */

void scenario_folder_in(scenario *t, int where)
{
    memset(t, 0, sizeof(*t));
    folder_make(t->dir, sizeof(t->dir), where);
    snprintf(t->file, sizeof(t->file), "%s/test.brc", t->dir);
}

void scenario_folder(scenario *t)
{
    scenario_folder_in(t, FOLDER_FAST);
}

int scenario_give(void *ctx, const brc_server *from, brc_credentials *out, brc_error *err)
{
    const char *key = getenv("AWS_ACCESS_KEY_ID"), *secret = getenv("AWS_SECRET_ACCESS_KEY");
    (void)ctx;
    (void)from;
    (void)err;
    snprintf(out->key, sizeof(out->key), "%s", key != NULL ? key : "key");
    snprintf(out->secret, sizeof(out->secret), "%s", secret != NULL ? secret : "secret");
    return BRC_OK;
}

static s3_server *server; /* NULL: no test of this process has asked for a bucket */

char *scenario_bucket(char out[300], const char *prefix)
{
    if (server == NULL)
        server = s3_server_start();
    snprintf(out, 300,
             "{\"name\":\"s3\",\"configuration\":{\"endpoint\":\"%s\",\"bucket\":\"box\","
             "\"prefix\":\"%s\"}}",
             s3_server_endpoint(server), prefix);
    return out;
}

/* Returns the backend of all chunks, or NULL. "s3" stands for a bucket on a server in this process,
 * which processes that it starts use too. */
static const char *backend_of_all(void)
{
    const char *backend = getenv("BRECCIA_BACKEND");
    char text[300];
    if (backend != NULL && strcmp(backend, "s3") == 0) {
        scenario_bucket(text, "");
        setenv("BRECCIA_BACKEND", text, 1);
        backend = getenv("BRECCIA_BACKEND");
    }
    return backend != NULL && backend[0] != '\0' ? backend : NULL;
}

int scenario_connect(breccia **out, const char *file, const brc_open_opts *given, brc_error *err)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    if (given != NULL)
        opts = *given;
    if (opts.credentials == NULL && (backend_of_all() != NULL || server != NULL))
        opts.credentials = scenario_give;
    return brc_open(out, file, &opts, err);
}

void scenario_open(scenario *t, const brc_open_opts *given, uint32_t flags)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    if (given != NULL)
        opts = *given;
    opts.flags |= flags;
    OK(t, scenario_connect(&t->repo, t->file, &opts, &t->err));
    const char *backend = backend_of_all();
    if (opts.flags & BRC_OPEN_CREATE && backend != NULL)
        OK(t, brc_config_set(t->repo, "backend", backend, &t->err));
    int mode = opts.flags & BRC_OPEN_READONLY ? BRC_SESSION_VIEW : BRC_SESSION_WRITE;
    OK(t, brc_session_open(&t->session, t->repo, NULL, mode, &t->err));
}

void scenario_open_vfs(scenario *t, const char *vfs)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.vfs = vfs;
    scenario_open(t, &opts, 0);
}

breccia *scenario_handle(scenario *t, int wait_ms)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    breccia *repo;
    opts.wait_ms = wait_ms;
    OK(t, scenario_connect(&repo, t->file, &opts, &t->err));
    return repo;
}

void scenario_start(scenario *t)
{
    scenario_folder(t);
    scenario_open(t, NULL, BRC_OPEN_CREATE);
}

void scenario_close(scenario *t)
{
    brc_session_free(t->session);
    brc_free(t->repo);
    t->session = NULL;
    t->repo = NULL;
}

void scenario_reopen(scenario *t)
{
    scenario_close(t);
    scenario_open(t, NULL, 0);
}

void scenario_stop(scenario *t)
{
    scenario_close(t);
    brc_tree_remove(t->dir);
}

void scenario_fails(int rc, int code, const brc_error *err, const char *file, int line)
{
    ck_assert_msg(rc == code, "%s:%d: the result is %d, not %d (%s)", file, line, rc, code,
                  rc < 0 ? err->message : "success");
    ck_assert_int_eq(err->code, code);
    ck_assert_int_ne(err->message[0], '\0');
}

/* ---- nodes -------------------------------- */

brc_array *scenario_array(scenario *t, const char *path, const char *dtype, int ndim,
                          const uint64_t *shape, const uint64_t *chunk, const char *fill,
                          const char *codecs)
{
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_array *a;
    spec.ndim = ndim;
    spec.shape = shape;
    spec.chunk = chunk;
    spec.dtype = dtype;
    spec.fill = fill;
    spec.codecs_json = codecs;
    OK(t, brc_array_create(&a, t->session, path, &spec, &t->err));
    return a;
}

void scenario_numbers(scenario *t, const char *path, uint64_t n, uint64_t chunk, int32_t first)
{
    brc_array *a = scenario_array(t, path, "int32", 1, &n, &chunk, NULL, NULL);
    int32_t *data = calloc(n + 1, sizeof(*data));
    ck_assert_ptr_nonnull(data);
    for (uint64_t i = 0; i < n; i++)
        data[i] = first + (int32_t)i;
    OK(t, brc_array_write(a, NULL, data, n * sizeof(*data), &t->err));
    free(data);
    brc_array_free(a);
}

brc_array *scenario_array_at(scenario *t, brc_session *s, const char *path)
{
    brc_array *a;
    OK(t, brc_array_open(&a, s, path, &t->err));
    return a;
}

void scenario_read(scenario *t, brc_session *s, const char *path, void *out, size_t len)
{
    brc_array *a = scenario_array_at(t, s, path);
    OK(t, brc_array_read(a, NULL, out, len, &t->err));
    brc_array_free(a);
}

void scenario_write(scenario *t, brc_session *s, const char *path, const void *data, size_t len)
{
    brc_array *a = scenario_array_at(t, s, path);
    OK(t, brc_array_write(a, NULL, data, len, &t->err));
    brc_array_free(a);
}

void scenario_fill(scenario *t, brc_session *s, const char *path, const char *slice,
                   const void *value)
{
    brc_array *a = scenario_array_at(t, s, path);
    brc_sel sel = BRC_SEL_INIT;
    if (slice != NULL)
        OK(t, brc_sel_parse(&sel, a, slice, &t->err));
    OK(t, brc_array_fill(a, slice != NULL ? &sel : NULL, value, &t->err));
    brc_array_free(a);
}

void scenario_recode(scenario *t, brc_session *s, const char *path, const char *codecs, int rewrite)
{
    brc_array *a = scenario_array_at(t, s, path);
    OK(t, brc_array_set_codecs(a, codecs, rewrite, &t->err));
    brc_array_free(a);
}

void scenario_set_backend(scenario *t, brc_session *s, const char *path, const char *backend)
{
    brc_array *a = scenario_array_at(t, s, path);
    OK(t, brc_array_set_backend(a, backend, &t->err));
    brc_array_free(a);
}

static brc_sel one_element(uint64_t i)
{
    brc_sel sel = BRC_SEL_INIT;
    sel.ndim = 1;
    sel.start[0] = i;
    sel.count[0] = sel.step[0] = 1;
    return sel;
}

int32_t scenario_number(scenario *t, brc_session *s, const char *path, uint64_t i)
{
    brc_array *a = scenario_array_at(t, s, path);
    brc_sel sel = one_element(i);
    int32_t value = 0;
    OK(t, brc_array_read(a, &sel, &value, sizeof(value), &t->err));
    brc_array_free(a);
    return value;
}

void scenario_set_number(scenario *t, const char *path, uint64_t i, int32_t value)
{
    scenario_put(t, t->session, path, i, value);
}

void scenario_put(scenario *t, brc_session *s, const char *path, uint64_t i, int32_t value)
{
    brc_array *a = scenario_array_at(t, s, path);
    brc_sel sel = one_element(i);
    OK(t, brc_array_write(a, &sel, &value, sizeof(value), &t->err));
    brc_array_free(a);
}

void scenario_resize(scenario *t, brc_session *s, const char *path, uint64_t n)
{
    brc_array *a = scenario_array_at(t, s, path);
    OK(t, brc_array_resize(a, &n, &t->err));
    brc_array_free(a);
}

int scenario_kind(scenario *t, const char *path)
{
    int kind;
    OK(t, brc_node_kind(&kind, t->session, path, &t->err));
    return kind;
}

int scenario_has(scenario *t, const char *path)
{
    return scenario_kind(t, path) != 0;
}

void scenario_session_fails(scenario *t, int code, const char *rev, int mode)
{
    brc_session *s = (brc_session *)t;
    FAILS(t, code, brc_session_open(&s, t->repo, rev, mode, &t->err));
    ck_assert_ptr_null(s);
}

int scenario_has_key(scenario *t, brc_session *s, const char *key)
{
    int rc = brc_key_get(NULL, s, key, NULL, NULL, &t->err);
    ck_assert_msg(rc == BRC_OK || rc == BRC_ENOTFOUND, "%s", t->err.message);
    return rc == BRC_OK;
}

int scenario_has_keys(scenario *t, brc_session *s, const char *dir)
{
    brc_iter *it;
    const char *name;
    OK(t, brc_keys(&it, s, dir, BRC_KEYS_DIR, &t->err));
    int rc = brc_next(it, &name, &t->err);
    ck_assert_msg(rc >= 0, "%s", t->err.message);
    brc_iter_free(it);
    return rc > 0;
}

brc_session *scenario_session(scenario *t, breccia *repo, const char *rev, int mode)
{
    brc_session *s;
    OK(t, brc_session_open(&s, repo, rev, mode, &t->err));
    return s;
}

brc_oid scenario_commit(scenario *t, const char *message)
{
    brc_oid id;
    OK(t, scenario_commit_of(t, t->session, message, &id));
    return id;
}

int scenario_commit_of(scenario *t, brc_session *s, const char *message, brc_oid *id)
{
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_oid made;
    opts.message = message;
    return brc_session_commit(id != NULL ? id : &made, s, &opts, &t->err);
}

int64_t scenario_draft(scenario *t, brc_session *s)
{
    brc_buf token = BRC_BUF_INIT;
    brc_session_info info = BRC_SESSION_INFO_INIT;
    OK(t, brc_session_token(&token, s, &t->err));
    OK(t, brc_session_stat(&info, s, &t->err));
    brc_buf_dispose(&token);
    return info.draft;
}

int scenario_draft_open(brc_session **out, breccia *repo, int64_t id, brc_error *err)
{
    char number[24];
    snprintf(number, sizeof(number), "%lld", (long long)id);
    return brc_session_open(out, repo, number, BRC_SESSION_TOKEN, err);
}

int scenario_is_clean(scenario *t, brc_session *s)
{
    int clean;
    OK(t, brc_session_clean(&clean, s, &t->err));
    return clean;
}

int scenario_clean(scenario *t)
{
    return scenario_is_clean(t, t->session);
}

void scenario_no_window(scenario *t)
{
    OK(t, brc_config_set(t->repo, "window", "0", &t->err));
}

void scenario_inline(scenario *t)
{
    OK(t, brc_config_set(t->repo, "backend", "inline", &t->err));
}

void scenario_whole(scenario *t)
{
    uint64_t checked;
    OK(t, brc_fsck(t->repo, 0, fsck_finds_nothing, NULL, NULL, &checked, &t->err));
}

char *scenario_tree(scenario *t, brc_session *s, const char *path, int recurse, char *out,
                    size_t size)
{
    brc_iter *it;
    const brc_node *node;
    size_t len = 0;
    int rc;
    *out = '\0';
    OK(t, brc_list(&it, s, path, recurse ? BRC_LIST_RECURSE : 0, &t->err));
    while ((rc = brc_next(it, &node, &t->err)) > 0) {
        int n = snprintf(out + len, size - len, "%s%s ", node->path,
                         node->kind == BRC_ARRAY ? "*" : "");
        ck_assert(n > 0 && (size_t)n < size - len);
        len += (size_t)n;
    }
    ck_assert_int_eq(rc, 0);
    brc_iter_free(it);
    return out;
}

/* ---- the file -------------------------------- */

static sqlite3 *file_db(const scenario *t)
{
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open_v2(t->file, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    ck_assert_int_eq(brc_row_sum_register(db), SQLITE_OK);
    sqlite3_busy_timeout(db, 30000);
    return db;
}

int64_t scenario_ask(scenario *t, const char *sql)
{
    sqlite3 *db = file_db(t);
    sqlite3_stmt *st;
    ck_assert_msg(reserved_stand_in(db) == SQLITE_OK, "%s", sqlite3_errmsg(db));
    ck_assert_msg(sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK, "%s",
                  sqlite3_errmsg(db));
    ck_assert_int_eq(sqlite3_step(st), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    sqlite3_close(db);
    return value;
}

static void change_file(scenario *t, const char *sql, int own)
{
    sqlite3 *db = file_db(t);
    if (own)
        ck_assert_msg(own_rows_for(db, sql) == SQLITE_OK, "%s", sqlite3_errmsg(db));
    ck_assert_msg(reserved_make(db, sql) == SQLITE_OK, "%s", sqlite3_errmsg(db));
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, "%s: %s", sql,
                  sqlite3_errmsg(db));
    sqlite3_close(db);
}

void scenario_sql(scenario *t, const char *sql)
{
    change_file(t, sql, 1);
}

void scenario_sql_shared(scenario *t, const char *sql)
{
    change_file(t, sql, 0);
}

void scenario_rows(scenario *t, const char *sql, brc_buf *out)
{
    sqlite3 *db = file_db(t);
    sqlite3_stmt *st;
    out->len = 0;
    ck_assert_msg(reserved_stand_in(db) == SQLITE_OK, "%s", sqlite3_errmsg(db));
    ck_assert_msg(sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK, "%s",
                  sqlite3_errmsg(db));
    while (sqlite3_step(st) == SQLITE_ROW)
        for (int i = 0; i < sqlite3_column_count(st); i++) {
            const char *text = (const char *)sqlite3_column_text(st, i);
            OK(t, brc_buf_printf(out, &t->err, "%s%c", text != NULL ? text : "-",
                                 i + 1 < sqlite3_column_count(st) ? ' ' : '\n'));
        }
    OK(t, brc_buf_terminate(out, &t->err));
    sqlite3_finalize(st);
    sqlite3_close(db);
}

int64_t scenario_unused(scenario *t)
{
    ck_assert_int_eq(scenario_ask(t, "SELECT count(*) FROM blob WHERE seq NOT IN"
                                     " (SELECT place FROM object WHERE backend=0)"), 0);
    ck_assert_int_eq(scenario_ask(t, "SELECT count(*) FROM object o LEFT JOIN blob b ON"
                                     " b.seq=o.place WHERE o.backend=0 AND (b.seq IS NULL OR"
                                     " o.offset<0 OR o.offset+o.stored>length(b.data))"), 0);
    ck_assert_int_eq(scenario_ask(t, "SELECT count(*) FROM object o JOIN blob b ON b.seq=o.place"
                                     " WHERE o.backend=0 AND o.stored>131072"
                                     " AND length(b.data)<>o.stored"), 0);
    return scenario_ask(t, "SELECT (SELECT total(length(data)) FROM blob)"
                           " - (SELECT total(stored) FROM object WHERE backend=0)");
}

/* ---- models -------------------------------- */

uint64_t scenario_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint64_t scenario_below(uint64_t *state, uint64_t n)
{
    return scenario_random(state) % n;
}

static uint64_t product(int ndim, const uint64_t *shape)
{
    uint64_t n = 1;
    for (int i = 0; i < ndim; i++)
        n *= shape[i];
    return n;
}

void model_new(model *m, int ndim, const uint64_t *shape, size_t item, const void *fill)
{
    memset(m, 0, sizeof(*m));
    m->ndim = ndim;
    m->item = item;
    if (ndim > 0)
        memcpy(m->shape, shape, (size_t)ndim * sizeof(*shape));
    if (fill != NULL)
        memcpy(m->fill, fill, item);
    m->len = product(ndim, m->shape) * item;
    m->data = malloc(m->len + 1);
    ck_assert_ptr_nonnull(m->data);
    for (size_t i = 0; i < m->len; i += item)
        memcpy(m->data + i, m->fill, item);
}

void model_free(model *m)
{
    free(m->data);
}

/* The element of the model at an index within the selection. */
static size_t model_offset(const model *m, const brc_sel *sel, const uint64_t *at)
{
    uint64_t offset = 0;
    for (int i = 0; i < m->ndim; i++)
        offset = offset * m->shape[i] + sel->start[i] + at[i] * sel->step[i];
    return offset * m->item;
}

static int64_t memory_offset(const model *m, const brc_sel *sel, const uint64_t *at,
                             const int64_t *strides)
{
    int64_t offset = 0;
    for (int i = 0; i < m->ndim; i++)
        offset = strides != NULL ? offset + (int64_t)at[i] * strides[i]
                                 : offset * (int64_t)sel->count[i] + (int64_t)at[i];
    return strides != NULL ? offset : offset * (int64_t)m->item;
}

static int next_index(const model *m, const brc_sel *sel, uint64_t *at)
{
    for (int i = m->ndim - 1; i >= 0; i--) {
        if (++at[i] < sel->count[i])
            return 1;
        at[i] = 0;
    }
    return 0;
}

void model_write(model *m, const brc_sel *sel, const void *src, const int64_t *strides)
{
    uint64_t at[BRC_MAX_NDIM] = { 0 };
    if (brc_sel_count(sel) == 0)
        return;
    do
        memcpy(m->data + model_offset(m, sel, at),
               (const uint8_t *)src + memory_offset(m, sel, at, strides), m->item);
    while (next_index(m, sel, at));
}

void model_read(const model *m, const brc_sel *sel, void *dst, const int64_t *strides)
{
    uint64_t at[BRC_MAX_NDIM] = { 0 };
    if (brc_sel_count(sel) == 0)
        return;
    do
        memcpy((uint8_t *)dst + memory_offset(m, sel, at, strides),
               m->data + model_offset(m, sel, at), m->item);
    while (next_index(m, sel, at));
}

void model_resize(model *m, const uint64_t *shape)
{
    model old = *m;
    brc_sel keep = BRC_SEL_INIT;
    keep.ndim = m->ndim;
    for (int i = 0; i < m->ndim; i++) {
        keep.count[i] = shape[i] < old.shape[i] ? shape[i] : old.shape[i];
        keep.step[i] = 1;
    }
    model_new(m, old.ndim, shape, old.item, old.fill);
    uint8_t *kept = malloc(brc_sel_count(&keep) * old.item + 1);
    ck_assert_ptr_nonnull(kept);
    model_read(&old, &keep, kept, NULL);
    model_write(m, &keep, kept, NULL);
    free(kept);
    model_free(&old);
}

void model_selection(const model *m, uint64_t *random, brc_sel *sel)
{
    *sel = (brc_sel)BRC_SEL_INIT;
    sel->ndim = m->ndim;
    for (int i = 0; i < m->ndim; i++) {
        uint64_t n = m->shape[i];
        sel->step[i] = scenario_below(random, 3) != 0 ? 1 : 1 + scenario_below(random, 9);
        if (n == 0 || scenario_below(random, 40) == 0)
            continue;
        if (scenario_below(random, 3) == 0) { /* all of the axis */
            sel->count[i] = (n - 1) / sel->step[i] + 1;
            continue;
        }
        sel->start[i] = scenario_below(random, n);
        sel->count[i] = 1 + scenario_below(random, (n - 1 - sel->start[i]) / sel->step[i] + 1);
    }
}

void model_bytes(uint64_t *random, void *out, size_t len)
{
    for (size_t i = 0; i < len; i++)
        ((uint8_t *)out)[i] = (uint8_t)scenario_random(random);
}

void model_check(const model *m, scenario *t, brc_array *a)
{
    uint8_t *got = malloc(m->len + 1);
    ck_assert_ptr_nonnull(got);
    memset(got, 0xa5, m->len + 1);
    OK(t, brc_array_read(a, NULL, got, m->len, &t->err));
    ck_assert_mem_eq(got, m->data, m->len);
    free(got);
}
