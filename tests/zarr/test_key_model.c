/* The key view against a model: a directory, which is a set of names with bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/buf.h"
#include "../../src/breccia.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(key_model);

enum { STEPS = 10000, FILES_MOST = 512 };

typedef struct model_file {
    char *key;
    uint8_t *data;
    size_t len;
} model_file;

typedef struct model_dir {
    scenario t;
    model_file files[FILES_MOST];
    size_t n;
    uint64_t seed;
    char *documents[16]; /* as the key view gives them */
    size_t ndocuments;
    int commits, refused, loose_seen;
} model_dir;

/* ---- the model -------------------------------- */

static model_file *file_find(model_dir *m, const char *key)
{
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->files[i].key, key) == 0)
            return &m->files[i];
    return NULL;
}

static void file_set(model_dir *m, const char *key, const void *data, size_t len)
{
    model_file *f = file_find(m, key);
    if (f == NULL) {
        ck_assert_uint_lt(m->n, FILES_MOST);
        f = &m->files[m->n++];
        f->key = strdup(key);
        f->data = NULL;
    }
    free(f->data);
    f->data = malloc(len + 1);
    memcpy(f->data, data, len);
    f->len = len;
}

static void file_drop(model_dir *m, size_t i)
{
    free(m->files[i].key);
    free(m->files[i].data);
    m->files[i] = m->files[--m->n];
}

static void file_delete(model_dir *m, const char *key)
{
    model_file *f = file_find(m, key);
    if (f != NULL)
        file_drop(m, (size_t)(f - m->files));
}

/* ---- what is tried -------------------------------- */

#define HEAD "{\"zarr_format\":3,\"node_type\":\"array\",\"fill_value\":0,"
#define GRID(shape, chunk) \
    "\"shape\":" shape ",\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":" \
    chunk "}},"
#define DEFAULT_KEYS "\"chunk_key_encoding\":{\"name\":\"default\"},"
#define BYTES "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define BIG "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"

/* No two of them have the same keys and elements, and other codecs, or another shape: a smaller one
 * cuts chunks, which no directory does (suite key_edges). */
static const char *const arrays[] = {
    HEAD GRID("[6]", "[4]") DEFAULT_KEYS "\"data_type\":\"uint8\",\"codecs\":[" BYTES "]}",
    HEAD GRID("[3]", "[4]") DEFAULT_KEYS "\"data_type\":\"int8\",\"codecs\":[" BYTES "]}",
    HEAD GRID("[23]", "[4]") DEFAULT_KEYS "\"data_type\":\"float8_e5m2\",\"codecs\":[" BYTES "]}",
    HEAD GRID("[6]", "[2]") DEFAULT_KEYS "\"data_type\":\"uint16\",\"codecs\":[" BIG "]}",
    HEAD GRID("[3,3]", "[2,2]") DEFAULT_KEYS "\"data_type\":\"uint8\",\"codecs\":[" BYTES "]}",
    HEAD GRID("[4]", "[4]") "\"chunk_key_encoding\":{\"name\":\"v2\"},\"data_type\":\"uint8\","
                            "\"codecs\":[" BYTES "]}",
    HEAD GRID("[8]", "[4]") DEFAULT_KEYS
    "\"data_type\":\"int8\",\"codecs\":[{\"name\":\"sharding_indexed\",\"configuration\":{"
    "\"chunk_shape\":[2],\"codecs\":[" BYTES "],\"index_codecs\":[" BYTES "]}}]}",
};

static const char *const paths[] = { "", "a/", "b/", "a/x/", "g/h/i/", "ab/" };
static const char *const names[] = { "zarr.json", "zarr.json", "zarr.json", "c/0", "c/0", "c/1",
                                     "c/2", "c/5", "c/0/0", "c/1/1", "c/1/0", "0", "1", "c", "foo",
                                     ".zattrs", "zarr.json/x", "c/00", "c/0/" };
#define SIZE(list) (sizeof(list) / sizeof((list)[0]))

/* The documents as they come back, so that the model holds the same bytes. */
static void read_documents(model_dir *m)
{
    scenario t;
    brc_buf out = BRC_BUF_INIT;
    char path[16], key[32];
    scenario_start(&t);
    for (size_t i = 0; i < SIZE(arrays); i++) {
        brc_array *a;
        brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
        spec.metadata_json = arrays[i];
        snprintf(path, sizeof(path), "/d%zu", i);
        snprintf(key, sizeof(key), "d%zu/zarr.json", i);
        OK(&t, brc_array_create(&a, t.session, path, &spec, &t.err));
        brc_array_free(a);
        OK(&t, brc_key_get(&out, t.session, key, NULL, NULL, &t.err));
        m->documents[m->ndocuments++] = strndup((const char *)out.data, out.len);
    }
    OK(&t, brc_group_create(t.session, "/g", "{\"n\":1}", &t.err));
    OK(&t, brc_key_get(&out, t.session, "g/zarr.json", NULL, NULL, &t.err));
    for (int i = 0; i < 4; i++)
        m->documents[m->ndocuments++] = strndup((const char *)out.data, out.len);
    m->documents[m->ndocuments++] = strdup("");
    m->documents[m->ndocuments++] = strdup("{\"node_type\":\"group\"");
    brc_buf_dispose(&out);
    scenario_stop(&t);
}

static uint64_t below(model_dir *m, uint64_t n)
{
    return scenario_below(&m->seed, n);
}

static void pick_key(model_dir *m, char *key, size_t size)
{
    do
        snprintf(key, size, "%s%s", paths[below(m, SIZE(paths))], names[below(m, SIZE(names))]);
    while (key[strlen(key) - 1] == '/');
}

/* Chunks of four bytes, shards of two inner chunks, and others. */
static size_t pick_value(model_dir *m, const char *key, uint8_t *data, size_t size)
{
    const char *name = strrchr(key, '/') != NULL ? strrchr(key, '/') + 1 : key;
    size_t len = 4;
    if (strcmp(name, "zarr.json") == 0) {
        const char *text = m->documents[below(m, m->ndocuments)];
        ck_assert_uint_lt(strlen(text), size);
        memcpy(data, text, strlen(text));
        return strlen(text);
    }
    for (size_t i = 0; i < 4; i++)
        data[i] = (uint8_t)below(m, 2);
    if (below(m, 4) == 0) { /* a shard: at least one of its chunks is there */
        const int only = (int)below(m, 3);
        uint8_t index[32];
        memset(index, 0xff, sizeof(index));
        len = 0;
        for (int i = 0; i < 2; i++)
            if (only == 2 || only == i) {
                brc_put_u64le(index + 16 * i, len);
                brc_put_u64le(index + 16 * i + 8, 2);
                len += 2;
            }
        memcpy(data + len, index, sizeof(index));
        return len + sizeof(index);
    }
    if (below(m, 6) == 0)
        len = below(m, 7);
    return len;
}

/* ---- comparing -------------------------------- */

static void get_is(model_dir *m, const char *key)
{
    scenario *t = &m->t;
    const model_file *f = file_find(m, key);
    brc_buf out = BRC_BUF_INIT;
    brc_key_info info = BRC_KEY_INFO_INIT;
    int rc = brc_key_get(&out, t->session, key, NULL, NULL, &t->err);
    if (f == NULL) {
        ck_assert_msg(rc == BRC_ENOTFOUND, "'%s' is there: %.*s", key, (int)out.len, out.data);
        ck_assert_int_eq(brc_key_get(NULL, t->session, key, NULL, &info, &t->err), BRC_ENOTFOUND);
    } else {
        ck_assert_msg(rc == BRC_OK, "'%s' is not there: %s", key, t->err.message);
        ck_assert_msg(out.len == f->len && memcmp(out.data, f->data, f->len) == 0,
                      "'%s' has other bytes", key);
        OK(t, brc_key_get(NULL, t->session, key, NULL, &info, &t->err));
        ck_assert_uint_eq(info.length, f->len);
    }
    ck_assert_int_eq(scenario_has_key(t, t->session, key), f != NULL);
    brc_buf_dispose(&out);
}

static void range_is(model_dir *m, const char *key)
{
    scenario *t = &m->t;
    const model_file *f = file_find(m, key);
    brc_buf out = BRC_BUF_INIT;
    brc_key_range range = BRC_KEY_RANGE_INIT;
    range.kind = (int)below(m, 4);
    range.start = below(m, 40);
    range.end = below(m, 40);
    int rc = brc_key_get(&out, t->session, key, &range, NULL, &t->err);
    ck_assert_msg(rc == (f != NULL ? BRC_OK : BRC_ENOTFOUND), "'%s': %d", key, rc);
    if (f != NULL) {
        size_t from = 0, to = f->len;
        if (range.kind == BRC_RANGE_BETWEEN && range.end < to)
            to = range.end;
        if (range.kind == BRC_RANGE_BETWEEN || range.kind == BRC_RANGE_FROM)
            from = range.start;
        if (range.kind == BRC_RANGE_LAST)
            from = range.start < to ? to - range.start : 0;
        const size_t len = from < to ? to - from : 0;
        ck_assert_uint_eq(out.len, len);
        if (len > 0)
            ck_assert_mem_eq(out.data, f->data + from, len);
    }
    brc_buf_dispose(&out);
}

static void prefix_is(model_dir *m, const char *prefix)
{
    scenario *t = &m->t;
    brc_iter *it;
    const char *key;
    size_t n = 0, want = 0;
    int rc;
    OK(t, brc_keys(&it, t->session, prefix, 0, &t->err));
    while ((rc = brc_next(it, &key, &t->err)) > 0) {
        n++;
        ck_assert_msg(strncmp(key, prefix, strlen(prefix)) == 0, "'%s' for '%s'", key, prefix);
        ck_assert_msg(file_find(m, key) != NULL, "'%s' is listed", key);
    }
    ck_assert_msg(rc == 0, "%s", t->err.message);
    brc_iter_free(it);
    for (size_t i = 0; i < m->n; i++)
        want += strncmp(m->files[i].key, prefix, strlen(prefix)) == 0;
    ck_assert_msg(n == want, "'%s': %zu keys, not %zu", prefix, n, want); /* each comes once */
}

static int is_in_dir(const model_dir *m, const char *dir, const char *name)
{
    const int is_dir = name[strlen(name) - 1] == '/';
    char key[128];
    snprintf(key, sizeof(key), "%s%s", dir, name);
    for (size_t i = 0; i < m->n; i++)
        if (is_dir ? strncmp(m->files[i].key, key, strlen(key)) == 0
                   : strcmp(m->files[i].key, key) == 0)
            return 1;
    return 0;
}

/* `dir`: "" or with a final slash. */
static void dir_is(model_dir *m, const char *dir)
{
    scenario *t = &m->t;
    brc_iter *it;
    const char *name;
    char seen[128][64];
    size_t n = 0, want = 0;
    int rc;
    OK(t, brc_keys(&it, t->session, dir, BRC_KEYS_DIR, &t->err));
    while ((rc = brc_next(it, &name, &t->err)) > 0) {
        ck_assert_msg(is_in_dir(m, dir, name), "'%s' in '%s'", name, dir);
        snprintf(seen[n], sizeof(seen[n]), "%s", name);
        for (size_t i = 0; i < n; i++)
            ck_assert_str_ne(seen[i], seen[n]);
        ck_assert_uint_lt(++n, 128);
    }
    ck_assert_int_eq(rc, 0);
    brc_iter_free(it);
    for (size_t i = 0; i < m->n; i++) {
        const char *key = m->files[i].key;
        if (strncmp(key, dir, strlen(dir)) != 0)
            continue;
        const size_t len = strcspn(key + strlen(dir), "/");
        int first = 1; /* of those with this name */
        for (size_t j = 0; j < i; j++)
            first &= strncmp(m->files[j].key, key, strlen(dir) + len) != 0 ||
                     m->files[j].key[strlen(dir) + len] != key[strlen(dir) + len];
        want += (size_t)first;
    }
    ck_assert_msg(n == want, "'%s': %zu names, not %zu", dir, n, want);
    ck_assert_int_eq(scenario_has_keys(t, t->session, dir), want > 0);
}

static void all_is(model_dir *m)
{
    prefix_is(m, "");
    for (size_t i = 0; i < m->n; i++)
        get_is(m, m->files[i].key);
    for (size_t i = 0; i < SIZE(paths); i++)
        dir_is(m, paths[i]);
    dir_is(m, "a/c/");
}

/* ---- steps -------------------------------- */

static void step_set(model_dir *m, const char *key)
{
    uint8_t data[2048];
    const size_t len = pick_value(m, key, data, sizeof(data));
    const uint32_t flags = below(m, 8) == 0 ? BRC_KEY_NEW : 0;
    const int is_old = flags != 0 && file_find(m, key) != NULL;
    int rc = brc_key_set(m->t.session, key, data, len, flags, &m->t.err);
    ck_assert_msg(rc == (is_old ? BRC_EEXISTS : BRC_OK), "'%s': %s", key, m->t.err.message);
    if (rc == BRC_OK)
        file_set(m, key, data, len);
}

static void step_set_many(model_dir *m)
{
    char keys[8][64];
    const char *key[8];
    uint8_t data[8][2048];
    const void *at[8];
    size_t lens[8];
    for (size_t i = 0; i < 8; i++) {
        pick_key(m, keys[i], sizeof(keys[i]));
        lens[i] = pick_value(m, keys[i], data[i], sizeof(data[i]));
        key[i] = keys[i];
        at[i] = lens[i] % 4 != 3 ? data[i] : NULL;
    }
    OK(&m->t, brc_key_set_many(m->t.session, key, at, lens, 8, &m->t.err));
    for (size_t i = 0; i < 8; i++)
        if (at[i] != NULL)
            file_set(m, key[i], at[i], lens[i]);
        else
            file_delete(m, key[i]);
}

static void step_delete_prefix(model_dir *m, const char *prefix)
{
    OK(&m->t, brc_key_delete(m->t.session, prefix, BRC_KEY_PREFIX, &m->t.err));
    for (size_t i = m->n; i > 0; i--)
        if (strncmp(m->files[i - 1].key, prefix, strlen(prefix)) == 0)
            file_drop(m, i - 1);
}

/* Adds the documents of groups that nobody wrote, as the commit does. */
static void learn_groups(model_dir *m)
{
    brc_iter *it;
    const char *key;
    brc_buf out = BRC_BUF_INIT;
    int rc;
    OK(&m->t, brc_keys(&it, m->t.session, "", 0, &m->t.err));
    while ((rc = brc_next(it, &key, &m->t.err)) > 0) {
        if (file_find(m, key) != NULL)
            continue;
        const size_t len = strlen(key);
        ck_assert_msg(len >= 9 && strcmp(key + len - 9, "zarr.json") == 0, "'%s' is new", key);
        OK(&m->t, brc_key_get(&out, m->t.session, key, NULL, NULL, &m->t.err));
        ck_assert_ptr_nonnull(memmem(out.data, out.len, "\"group\"", 7));
        file_set(m, key, out.data, out.len);
    }
    ck_assert_int_eq(rc, 0);
    brc_iter_free(it);
    brc_buf_dispose(&out);
}

/* A commit names the key that it refuses, and goes on without that key. */
static void step_commit(model_dir *m)
{
    scenario *t = &m->t;
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_oid id;
    int rc;
    opts.message = "model";
    opts.flags = BRC_COMMIT_ALLOW_EMPTY;
    while ((rc = brc_session_commit(&id, t->session, &opts, &t->err)) == BRC_ECONFLICT) {
        char *key = strchr(t->err.message, '\'') + 1;
        key = strndup(key, strcspn(key, "'"));
        m->refused++;
        all_is(m); /* a commit that fails changes nothing */
        if (file_find(m, key) == NULL) { /* a document that was deleted, with chunks below */
            ck_assert_msg(strstr(t->err.message, "was deleted") != NULL, "%s", t->err.message);
            OK(t, brc_key_set(t->session, key, m->documents[0], strlen(m->documents[0]), 0,
                              &t->err));
            file_set(m, key, m->documents[0], strlen(m->documents[0]));
        } else {
            m->loose_seen++;
            OK(t, brc_key_delete(t->session, key, 0, &t->err));
            file_delete(m, key);
        }
        free(key);
    }
    ck_assert_msg(rc == BRC_OK, "%s", t->err.message);
    m->commits++;
    learn_groups(m);
    all_is(m);
}

static void model_step(model_dir *m)
{
    char key[64];
    pick_key(m, key, sizeof(key));
    const uint64_t kind = below(m, 100);
    if (kind < 40)
        step_set(m, key);
    else if (kind < 42)
        step_set_many(m);
    else if (kind < 54) {
        OK(&m->t, brc_key_delete(m->t.session, key, 0, &m->t.err));
        file_delete(m, key);
    } else if (kind < 56) {
        key[below(m, strlen(key) + 1)] = '\0';
        if (strlen(key) > 1)
            step_delete_prefix(m, key);
    } else if (kind < 75)
        get_is(m, key);
    else if (kind < 88)
        range_is(m, key);
    else if (kind < 94) {
        key[below(m, strlen(key) + 1)] = '\0';
        prefix_is(m, key);
    } else
        dir_is(m, paths[below(m, SIZE(paths))]);
}

static void model_start(model_dir *m, uint64_t seed)
{
    memset(m, 0, sizeof(*m));
    m->seed = seed;
    read_documents(m);
    scenario_start(&m->t);
}

static void model_stop(model_dir *m)
{
    while (m->n > 0)
        file_drop(m, m->n - 1);
    for (size_t i = 0; i < m->ndocuments; i++)
        free(m->documents[i]);
    scenario_stop(&m->t);
}

CASE("key_model", .timeout = 120);

LOOP(every_answer_is_a_directory_s, 0, 4)
{
    static model_dir m;
    model_start(&m, (uint64_t)_i + 1);
    for (int i = 0; i < STEPS / 4; i++) {
        model_step(&m);
        if (i % 500 == 499) {
            all_is(&m);
            step_commit(&m);
            scenario_whole(&m.t);
            scenario_reopen(&m.t);
            all_is(&m);
        }
        if (i % 700 == 650) {
            scenario_whole(&m.t);
            scenario_reopen(&m.t);
            all_is(&m);
        }
        if (i % 900 == 899)
            step_delete_prefix(&m, "");
    }
    ck_assert_int_ge(m.commits, 5);
    ck_assert_int_ge(m.loose_seen, 20);
    ck_assert_int_ge(scenario_ask(&m.t, "SELECT count(*) FROM object WHERE kind=1"), 15);
    model_stop(&m);
}
