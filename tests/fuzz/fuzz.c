/* See fuzz.h. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../kit/ios.h"
#include "../kit/row_edits.h"

static const fuzz_harness harnesses[] = {
#define HARNESS(name) { #name, fuzz_##name },
#include "harnesses.h"
#undef HARNESS
};

const fuzz_harness *fuzz_harness_at(size_t i)
{
    return i < sizeof(harnesses) / sizeof(harnesses[0]) ? &harnesses[i] : NULL;
}

const fuzz_harness *fuzz_harness_named(const char *name)
{
    for (size_t i = 0; fuzz_harness_at(i) != NULL; i++)
        if (strcmp(harnesses[i].name, name) == 0)
            return &harnesses[i];
    return NULL;
}

_Noreturn void fuzz_broken(const char *file, int line, const char *what, const brc_error *err)
{
    fprintf(stderr, "%s:%d: it does not hold: %s%s%s\n", file, line, what, err ? "\nerror: " : "",
            err ? err->message : "");
    abort();
}

/* ---- what is kept -------------------------------- */

static struct {
    brc_registry *registry;
    brc_scratch *scratch;
    char dir[512], path[600];
    breccia *empty, *past;
    brc_session *session, *history;
    brc_buf base;
} kept;

const brc_registry *fuzz_registry(void)
{
    brc_error err = BRC_ERROR_INIT;
    if (kept.registry == NULL)
        FUZZ_TRUE(brc_registry_new(&kept.registry, &err) == BRC_OK, &err);
    return kept.registry;
}

brc_scratch *fuzz_scratch(void)
{
    brc_error err = BRC_ERROR_INIT;
    if (kept.scratch == NULL)
        FUZZ_TRUE(brc_scratch_new(&kept.scratch, &err) == BRC_OK, &err);
    return kept.scratch;
}

/* In memory where there is such a file system; the script that runs the fuzzers names a
 * folder, which it removes when one of them has died. */
static const char *fuzz_path(const char *name)
{
    const char *parent = getenv("TMPDIR");
    if (kept.dir[0] == '\0') {
        if (parent == NULL)
            parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
        snprintf(kept.dir, sizeof(kept.dir), "%s/breccia-fuzz-XXXXXX", parent);
        FUZZ_TRUE(mkdtemp(kept.dir) != NULL, NULL);
    }
    snprintf(kept.path, sizeof(kept.path), "%s/%s", kept.dir, name);
    return kept.path;
}

static void open_repository(breccia **repo, brc_session **session, const char *name)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    brc_error err = BRC_ERROR_INIT;
    opts.flags = BRC_OPEN_CREATE;
    opts.registry = fuzz_registry();
    FUZZ_TRUE(brc_open(repo, fuzz_path(name), &opts, &err) == BRC_OK, &err);
    int rc = brc_session_open(session, *repo, NULL, BRC_SESSION_WRITE, &err);
    FUZZ_TRUE(rc == BRC_OK, &err);
}

brc_session *fuzz_session(void)
{
    if (kept.session == NULL)
        open_repository(&kept.empty, &kept.session, "empty.brc");
    return kept.session;
}

/* An array of two chunks for each commit, of a type and shape of its own. */
static void add_array(brc_session *s, const char *path, const char *dtype, int ndim, brc_error *err)
{
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    const uint64_t shape[3] = { 4, 3, 2 }, chunk[3] = { 2, 3, 2 };
    brc_array *a;
    spec.ndim = ndim;
    spec.shape = shape;
    spec.chunk = chunk;
    spec.dtype = dtype;
    FUZZ_TRUE(brc_array_create(&a, s, path, &spec, err) == BRC_OK, err);
    uint8_t element[64] = { 1 };
    if (brc_array_describe(a)->item_size > 0)
        FUZZ_TRUE(brc_array_fill(a, NULL, element, err) == BRC_OK, err);
    brc_array_free(a);
}

static void commit_at(brc_session *s, int64_t time_us, brc_error *err)
{
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_oid id;
    opts.message = "a commit";
    opts.time_us = time_us;
    FUZZ_TRUE(brc_session_commit(&id, s, &opts, err) == BRC_OK, err);
}

static void make_history(void)
{
    brc_error err = BRC_ERROR_INIT;
    open_repository(&kept.past, &kept.history, "history.brc");
    add_array(kept.history, "/a", "float64", 3, &err);
    commit_at(kept.history, INT64_C(1700000000000000), &err);
    add_array(kept.history, "/g/b", "int8", 2, &err);
    commit_at(kept.history, INT64_C(1700000001000000), &err);
    FUZZ_TRUE(brc_ref_create(kept.past, "side", "main~1", NULL, 0, &err) == BRC_OK, &err);
    FUZZ_TRUE(brc_ref_create(kept.past, "v1", NULL, "a tag", BRC_REF_TAG, &err) == BRC_OK, &err);
    add_array(kept.history, "/g/t", "string", 1, &err);
}

brc_session *fuzz_history(void)
{
    if (kept.history == NULL)
        make_history();
    return kept.history;
}

const brc_buf *fuzz_base(void)
{
    if (kept.base.len == 0)
        kept.base = row_edits_base(fuzz_path("base.brc"));
    return &kept.base;
}

const char *fuzz_file(const char *name, const void *data, size_t len)
{
    brc_error err = BRC_ERROR_INIT;
    const char *path = fuzz_path(name);
    FILE *f = fopen(path, "wb");
    FUZZ_TRUE(f != NULL, &err);
    FUZZ_TRUE(len == 0 || fwrite(data, len, 1, f) == 1, NULL);
    FUZZ_TRUE(fclose(f) == 0, NULL);
    return path;
}

uint8_t *fuzz_bytes(const uint8_t *data, size_t len)
{
    uint8_t *out = malloc(len > 0 ? len : 1);
    FUZZ_TRUE(out != NULL, NULL);
    if (len > 0)
        memcpy(out, data, len);
    return out;
}

char *fuzz_text(const uint8_t *data, size_t len)
{
    char *out = malloc(len + 1);
    FUZZ_TRUE(out != NULL, NULL);
    if (len > 0)
        memcpy(out, data, len);
    out[len] = '\0';
    return out;
}

void fuzz_end(void)
{
    brc_session_free(kept.session);
    brc_session_free(kept.history);
    brc_free(kept.empty);
    brc_free(kept.past);
    brc_scratch_free(kept.scratch);
    brc_registry_free(kept.registry);
    brc_buf_dispose(&kept.base);
    if (kept.dir[0] != '\0')
        brc_tree_remove(kept.dir);
    memset(&kept, 0, sizeof(kept));
}

/* ---- reading what came in -------------------------------- */

#define READ_MAX ((uint64_t)1 << 20) /* elements of one array that are read */
#define KEYS_MAX 2000

static int may_fail(int rc, int also_allowed)
{
    return rc == BRC_OK || rc == BRC_EUNSUPPORTED || rc == BRC_ELIMIT || rc == also_allowed;
}

static void read_array(brc_session *s, const char *path, int also_allowed)
{
    brc_error err = BRC_ERROR_INIT;
    brc_buf out = BRC_BUF_INIT;
    brc_array *a;
    brc_sel all = BRC_SEL_INIT;
    uint64_t chunks, stored;

    int rc = brc_array_open(&a, s, path, &err);
    FUZZ_TRUE(may_fail(rc, also_allowed), &err);
    if (rc < 0)
        return;
    rc = brc_array_stat(&chunks, &stored, a, &err);
    FUZZ_TRUE(may_fail(rc, also_allowed), &err);
    sel_all(&all, a);
    if (brc_sel_count(&all) <= READ_MAX) {
        rc = io_elements(a, NULL, &out, &err);
        FUZZ_TRUE(may_fail(rc, also_allowed), &err);
    }
    brc_buf_dispose(&out);
    brc_array_free(a);
}

static void read_keys(brc_session *s, int also_allowed)
{
    brc_error err = BRC_ERROR_INIT;
    brc_iter *it;
    const char *key;
    int rc = brc_keys(&it, s, "", 0, &err);
    FUZZ_TRUE(may_fail(rc, also_allowed), &err);
    for (int i = 0; rc >= 0 && i < KEYS_MAX; i++) {
        brc_buf value = BRC_BUF_INIT;
        rc = brc_next(it, &key, &err);
        FUZZ_TRUE(rc == 1 || may_fail(rc, also_allowed), &err);
        if (rc <= 0)
            break;
        int got = brc_key_get(&value, s, key, NULL, NULL, &err);
        FUZZ_TRUE(may_fail(got, also_allowed), &err);
        brc_buf_dispose(&value);
    }
    brc_iter_free(it);
}

void fuzz_read_all(brc_session *s, int also_allowed)
{
    brc_error err = BRC_ERROR_INIT;
    brc_iter *it;
    const brc_node *node;
    int rc = brc_list(&it, s, "/", BRC_LIST_RECURSE, &err);
    FUZZ_TRUE(may_fail(rc, also_allowed), &err);
    while (rc >= 0 && (rc = brc_next(it, &node, &err)) == 1) {
        brc_buf text = BRC_BUF_INIT;
        int got = brc_node_json(&text, s, node->path, &err);
        FUZZ_TRUE(may_fail(got, also_allowed), &err);
        brc_buf_dispose(&text);
        if (node->kind == BRC_ARRAY)
            read_array(s, node->path, also_allowed);
    }
    FUZZ_TRUE(may_fail(rc, also_allowed), &err);
    brc_iter_free(it);
    read_keys(s, also_allowed);
}

void fuzz_import(const char *file)
{
    brc_error err = BRC_ERROR_INIT;
    brc_session *s = fuzz_session();
    FUZZ_TRUE(brc_begin(kept.empty, &err) == BRC_OK, &err);
    int rc = brc_import(s, file, "/x", NULL, &err);
    FUZZ_TRUE(rc != BRC_EINTERNAL && rc != BRC_EMISUSE, &err);
    if (rc == BRC_OK)
        fuzz_read_all(s, BRC_OK);
    FUZZ_TRUE(brc_end(kept.empty, 0, &err) == BRC_OK, &err);
}
