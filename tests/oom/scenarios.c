/*
 * The calls that are made while memory runs out. No chain here has blosc in it: c-blosc does not
 * survive a failed allocation of its own.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/base/error.h"
#include "../../src/base/file.h"
#include "../../src/xfer/npy/npy.h"
#include "../../src/zarr/tensor/arrow_abi.h"
#include "../../src/zarr/tensor/dlpack_abi.h"
#include "oom.h"
#include "../kit/ios.h"

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define ZSTD "[" LITTLE ",{\"name\":\"zstd\",\"configuration\":{\"level\":1}}]"
#define GZIP                                                                \
    "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}," LITTLE \
    ",{\"name\":\"gzip\",\"configuration\":{\"level\":1}},{\"name\":\"crc32c\"}]"

enum { ROWS = 20, COLUMNS = 16 };

static void oom_values(int32_t *out, int first)
{
    for (int i = 0; i < ROWS * COLUMNS; i++)
        out[i] = first + i / 5;
}

/* ---- opening -------------------------------- */

static int open_repository(oom_state *s, uint32_t flags, brc_error *err)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.flags = flags;
    opts.pool = s->pool;
    return brc_open(&s->repo, s->file, &opts, err);
}

static int step_create(oom_state *s, brc_error *err)
{
    return open_repository(s, BRC_OPEN_CREATE, err);
}

static int step_open(oom_state *s, brc_error *err)
{
    return open_repository(s, 0, err);
}

static int step_session(oom_state *s, brc_error *err)
{
    return brc_session_open(&s->session, s->repo, NULL, BRC_SESSION_WRITE, err);
}

static int step_array(oom_state *s, brc_error *err)
{
    return brc_array_open(&s->array, s->session, "/g/a", err);
}

/* ---- changing -------------------------------- */

static int create_array(oom_state *s, const char *path, const char *codecs, brc_error *err)
{
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    const uint64_t shape[2] = { ROWS, COLUMNS }, chunk[2] = { 8, 8 };
    brc_array_free(s->array);
    spec.ndim = 2;
    spec.shape = shape;
    spec.chunk = chunk;
    spec.dtype = "int32";
    spec.codecs_json = codecs;
    spec.attrs_json = "{\"title\":\"x\",\"n\":18446744073709551615}";
    return brc_array_create(&s->array, s->session, path, &spec, err);
}

static int step_create_array(oom_state *s, brc_error *err)
{
    return create_array(s, "/new/b", ZSTD, err);
}

static int step_write(oom_state *s, brc_error *err)
{
    int32_t data[ROWS * COLUMNS];
    oom_values(data, 500);
    return brc_array_write(s->array, NULL, data, sizeof(data), err);
}

static int step_write_part(oom_state *s, brc_error *err)
{
    brc_sel sel = BRC_SEL_INIT;
    int32_t data[ROWS * COLUMNS];
    oom_values(data, 9000);
    BRC_TRY(brc_sel_parse(&sel, s->array, "[3:12, 1:9:2]", err));
    return brc_array_write(s->array, &sel, data, (size_t)brc_sel_count(&sel) * 4, err);
}

static int step_fill(oom_state *s, brc_error *err)
{
    brc_sel sel = BRC_SEL_INIT;
    int32_t value = 7;
    BRC_TRY(brc_sel_parse(&sel, s->array, "[:8, :8]", err));
    return brc_array_fill(s->array, &sel, &value, err);
}

static int step_batch(oom_state *s, brc_error *err)
{
    brc_sel one = BRC_SEL_INIT, two = BRC_SEL_INIT;
    int32_t data[ROWS * COLUMNS];
    oom_values(data, -300);
    BRC_TRY(brc_sel_parse(&one, s->array, "[0]", err));
    BRC_TRY(brc_sel_parse(&two, s->array, "[19]", err));
    brc_io io[] = { IO_OF(s->array, &one, data, COLUMNS * 4),
                    IO_OF(s->array, &two, data, COLUMNS * 4) };
    return brc_write(io, 2, err);
}

static int step_grow(oom_state *s, brc_error *err)
{
    int32_t data[3 * COLUMNS];
    memset(data, 5, sizeof(data));
    return brc_array_append(s->array, 0, 3, data, sizeof(data), err);
}

static int step_shrink(oom_state *s, brc_error *err)
{
    return brc_array_resize(s->array, (const uint64_t[]){ 13, 11 }, err);
}

static int step_codecs(oom_state *s, brc_error *err)
{
    return brc_array_set_codecs(s->array, GZIP, 0, err);
}

static int step_rewrite(oom_state *s, brc_error *err)
{
    return brc_array_set_codecs(s->array, GZIP, 1, err);
}

static int step_restore(oom_state *s, brc_error *err)
{
    brc_sel sel = BRC_SEL_INIT;
    BRC_TRY(brc_sel_parse(&sel, s->array, "[2:9]", err));
    return brc_array_restore(s->array, &sel, "main~1", err);
}

static int step_group(oom_state *s, brc_error *err)
{
    return brc_group_create(s->session, "/x/y/z", "{\"k\":[1,2]}", err);
}

static int step_attr(oom_state *s, brc_error *err)
{
    return brc_attrs_set(s->session, "/g", "k", "{\"deep\":[1,{\"er\":2.50}]}", err);
}

static int step_move(oom_state *s, brc_error *err)
{
    return brc_node_move(s->session, "/g", "/moved/g", 0, err);
}

static int step_copy(oom_state *s, brc_error *err)
{
    return brc_node_move(s->session, "/moved", "/copied", BRC_NODE_COPY, err);
}

static int step_remove(oom_state *s, brc_error *err)
{
    return brc_node_remove(s->session, "/moved", err);
}

static int step_restore_node(oom_state *s, brc_error *err)
{
    return brc_node_restore(s->session, "/g", "main~1", err);
}

static int step_discard(oom_state *s, brc_error *err)
{
    return brc_session_discard(s->session, err);
}

/* ---- looking -------------------------------- */

static int step_read(oom_state *s, brc_error *err)
{
    brc_sel sel = BRC_SEL_INIT;
    int32_t data[ROWS * COLUMNS], part[9 * COLUMNS];
    BRC_TRY(brc_array_read(s->array, NULL, data, sizeof(data), err));
    BRC_TRY(brc_sel_parse(&sel, s->array, "[3:12]", err));
    BRC_TRY(brc_array_read(s->array, &sel, part, sizeof(part), err));
    if (memcmp(part, data + 3 * COLUMNS, sizeof(part)) != 0)
        return brc_fail(err, BRC_EINTERNAL, "two reads differ");
    return BRC_OK;
}

static int step_look(oom_state *s, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    brc_stats stats = BRC_STATS_INIT;
    int clean, rc;
    uint64_t chunks, bytes;
    BRC_GO(brc_node_json(&text, s->session, "/g/a", err));
    BRC_GO(brc_attrs_get(&text, s->session, "/g/a", "title", err));
    BRC_GO(brc_key_get(&text, s->session, "g/a/c/0/1", NULL, NULL, err));
    BRC_GO(brc_session_clean(&clean, s->session, err));
    BRC_GO(brc_stat(s->repo, &stats, err));
    rc = brc_array_stat(&chunks, &bytes, s->array, err);
done:
    brc_buf_dispose(&text);
    return rc;
}

static int step_lists(oom_state *s, brc_error *err)
{
    brc_iter *it;
    const brc_node *node;
    const char *key;
    const brc_ref *ref;
    int rc;
    BRC_TRY(brc_list(&it, s->session, "/", BRC_LIST_RECURSE, err));
    while ((rc = brc_next(it, &node, err)) > 0)
        continue;
    brc_iter_free(it);
    BRC_TRY(rc);
    BRC_TRY(brc_keys(&it, s->session, "", 0, err));
    while ((rc = brc_next(it, &key, err)) > 0)
        continue;
    brc_iter_free(it);
    BRC_TRY(rc);
    BRC_TRY(brc_refs(&it, s->repo, err));
    while ((rc = brc_next(it, &ref, err)) > 0)
        continue;
    brc_iter_free(it);
    return rc;
}

static int step_log(oom_state *s, brc_error *err)
{
    brc_iter *it;
    const brc_commit *commit;
    int rc = BRC_OK, n = 0;
    for (int i = 0; i < 2 && rc == BRC_OK; i++) {
        const brc_log_opts opts = { .size = sizeof(opts), .path = i == 0 ? NULL : "/g/a" };
        BRC_TRY(brc_log(&it, s->repo, "main", &opts, err));
        while ((rc = brc_next(it, &commit, err)) > 0)
            n++;
        brc_iter_free(it);
    }
    return rc < 0 || n >= 4 ? rc : brc_fail(err, BRC_EINTERNAL, "the log is too short");
}

static int walk_diff(oom_state *s, const char *a, const char *b, brc_error *err)
{
    brc_diff_opts opts = BRC_DIFF_OPTS_INIT;
    brc_iter *it;
    const brc_change *change;
    int rc, n = 0;
    opts.flags = BRC_DIFF_ELEMENTS;
    BRC_TRY(brc_diff(&it, s->repo, a, b, &opts, err));
    while ((rc = brc_next(it, &change, err)) > 0)
        n++;
    brc_iter_free(it);
    return rc < 0 || n > 0 ? rc : brc_fail(err, BRC_EINTERNAL, "no difference");
}

static int step_diff(oom_state *s, brc_error *err)
{
    return walk_diff(s, NULL, NULL, err);
}

static int step_diff_versions(oom_state *s, brc_error *err)
{
    return walk_diff(s, "main~1", "main", err);
}

static int no_damage(void *ctx, const brc_damage *damage)
{
    (void)damage;
    ++*(int *)ctx;
    return 0;
}

static int step_fsck(oom_state *s, brc_error *err)
{
    int n = 0;
    BRC_TRY(brc_fsck(s->repo, 0, no_damage, NULL, &n, NULL, err));
    return n == 0 ? BRC_OK : brc_fail(err, BRC_EINTERNAL, "fsck finds damage that is not there");
}

/* ---- history -------------------------------- */

static int commit_with(oom_state *s, const char *message, uint32_t flags, brc_error *err)
{
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_oid id;
    opts.message = message;
    opts.author = "Ada";
    opts.meta_json = "{\"run\":1}";
    opts.time_us = 1700000000000000;
    opts.flags = flags;
    return brc_session_commit(&id, s->session, &opts, err);
}

static int step_commit(oom_state *s, brc_error *err)
{
    return commit_with(s, "three", 0, err);
}

static int step_amend(oom_state *s, brc_error *err)
{
    return commit_with(s, "three, in better words", BRC_COMMIT_AMEND, err);
}

static int step_branch(oom_state *s, brc_error *err)
{
    return brc_ref_create(s->repo, "dev", "main~1", NULL, 0, err);
}

static int step_tag(oom_state *s, brc_error *err)
{
    return brc_ref_create(s->repo, "v2", NULL, "two", BRC_REF_TAG, err);
}

static int step_rename(oom_state *s, brc_error *err)
{
    return brc_ref_rename(s->repo, "dev", "next", 0, err);
}

static int step_switch(oom_state *s, brc_error *err)
{
    return brc_switch(s->repo, "next", BRC_SWITCH_DISCARD, err);
}

static int step_switch_back(oom_state *s, brc_error *err)
{
    return brc_switch(s->repo, "main", 0, err);
}

static int step_delete(oom_state *s, brc_error *err)
{
    return brc_ref_delete(s->repo, "next", 0, err);
}

static int step_reset(oom_state *s, brc_error *err)
{
    return brc_reset(s->repo, NULL, "main~1", 0, NULL, err);
}

static int step_reset_hard(oom_state *s, brc_error *err)
{
    return brc_reset(s->repo, NULL, "v1", BRC_RESET_HARD, NULL, err);
}

static int step_transaction(oom_state *s, brc_error *err)
{
    BRC_TRY(brc_begin(s->repo, err));
    int rc = step_group(s, err);
    if (rc == BRC_OK)
        rc = step_write(s, err);
    if (rc == BRC_OK)
        rc = commit_with(s, "all at once", 0, err);
    int end = brc_end(s->repo, rc == BRC_OK ? BRC_END_KEEP : 0, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

/* ---- exchange -------------------------------- */

static int step_import_npy(oom_state *s, brc_error *err)
{
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    const uint64_t chunk[2] = { 6, 16 };
    opts.chunk = chunk;
    opts.nchunk = 2;
    opts.codecs_json = ZSTD;
    return brc_import(s->session, s->npy, "/from/npy", &opts, err);
}

static int export_to(oom_state *s, const char *ending, brc_error *err)
{
    char name[128];
    snprintf(name, sizeof(name), "%s%s", s->out, ending);
    int rc = brc_export(s->session, "/g/a", name, NULL, err);
    if (rc < 0 && access(name, F_OK) == 0)
        return brc_fail(err, BRC_EINTERNAL, "a failed export left %s behind", name);
    return rc;
}

static int step_export_zarr(oom_state *s, brc_error *err)
{
    return export_to(s, ".zarr", err);
}

static int step_export_npy(oom_state *s, brc_error *err)
{
    return export_to(s, ".npy", err);
}

static int step_export_npz(oom_state *s, brc_error *err)
{
    return export_to(s, ".npz", err);
}

static int step_export_zip(oom_state *s, brc_error *err)
{
    return export_to(s, ".zarr.zip", err);
}

static int step_import_zarr(oom_state *s, brc_error *err)
{
    char name[128];
    snprintf(name, sizeof(name), "%s.zarr", s->out);
    return brc_import(s->session, name, "/from/zarr", NULL, err);
}

static int step_load_npy(oom_state *s, brc_error *err)
{
    return brc_array_load_npy(s->array, NULL, -1, s->npy, err);
}

/* ---- the list -------------------------------- */

/* ---- children of a session -------------------------------- */

static int step_private(oom_state *s, brc_error *err)
{
    return brc_session_open(&s->session, s->repo, NULL, BRC_SESSION_PRIVATE, err);
}

/* One element, and a key that is not a node: in a session that another handle's would be, too. */
static int write_in_child(oom_state *s, const char *token, const char *text, brc_error *err)
{
    brc_session *child;
    brc_array *a = NULL;
    brc_sel sel = BRC_SEL_INIT;
    int32_t value = 77;
    BRC_TRY(brc_session_open(&child, s->repo, token, BRC_SESSION_TOKEN, err));
    int rc = brc_array_open(&a, child, "/g/a", err);
    if (rc == BRC_OK)
        rc = brc_sel_parse(&sel, a, text, err);
    if (rc == BRC_OK)
        rc = brc_array_fill(a, &sel, &value, err);
    if (rc == BRC_OK)
        rc = brc_key_set(child, text, text, strlen(text), 0, err);
    brc_array_free(a);
    brc_session_free(child);
    return rc;
}

static int fork_one(oom_state *s, const char *text, brc_buf *token, brc_error *err)
{
    brc_session *child;
    BRC_TRY(brc_session_fork(&child, s->session, err));
    int rc = brc_session_token(token, child, err);
    brc_session_free(child);
    return rc < 0 ? rc : write_in_child(s, (const char *)token->data, text, err);
}

/* Twice: what the first wrote meets nothing; the second two have a chunk in common. */
static int step_children(oom_state *s, brc_error *err)
{
    brc_buf a = BRC_BUF_INIT, b = BRC_BUF_INIT;
    brc_iter *it = NULL;
    int rc = fork_one(s, "[1, 1]", &a, err);
    if (rc == BRC_OK)
        rc = fork_one(s, "[1, 2]", &b, err);
    if (rc == BRC_OK) {
        const char *tokens[] = {(const char *)a.data, (const char *)b.data};
        rc = brc_session_join(&it, s->session, tokens, 2, 0, err);
    }
    brc_iter_free(it);
    brc_buf_dispose(&a);
    brc_buf_dispose(&b);
    return rc;
}

/* Both have changed one chunk, so that they are merged. */
static int step_hand_over(oom_state *s, brc_error *err)
{
    brc_session *mine;
    brc_array *a = NULL;
    int32_t value = 78;
    brc_sel sel = BRC_SEL_INIT;
    BRC_TRY(brc_session_open(&mine, s->repo, NULL, BRC_SESSION_PRIVATE, err));
    int rc = brc_array_open(&a, mine, "/g/a", err);
    if (rc == BRC_OK)
        rc = brc_sel_parse(&sel, a, "[3, 2]", err);
    if (rc == BRC_OK)
        rc = brc_array_fill(a, &sel, &value, err);
    if (rc == BRC_OK)
        rc = brc_session_hand_over(mine, s->session, err);
    brc_array_free(a);
    brc_session_free(mine);
    return rc;
}

#define STEPS(...) (const oom_step[]){ __VA_ARGS__, NULL }
/* ---- tensors -------------------------------- */

static int step_tensor(oom_state *s, brc_error *err)
{
    brc_tensor_opts opts = BRC_TENSOR_OPTS_INIT;
    brc_tensor *t, *back = NULL;
    void *given = NULL;
    opts.prototype = "pool";
    BRC_TRY(brc_tensor_read(&t, s->array, &opts, err));
    int rc = brc_tensor_to_dlpack(&given, t, 0, err);
    brc_tensor_free(t);
    if (rc == BRC_OK)
        rc = brc_tensor_of_dlpack(&back, given, 0, err);
    if (rc < 0 && given != NULL)
        ((struct brc_dl_managed *)given)->deleter(given);
    brc_tensor_free(back);
    return rc;
}

/* A library that is not there: its implementations are added, with the reason. */
static int step_nvcomp(oom_state *s, brc_error *err)
{
    brc_registry *reg;
    (void)s;
    BRC_TRY(brc_registry_new(&reg, err));
    int rc = brc_registry_use_nvcomp(reg, "./libnvcomp.so", err);
    if (rc == BRC_EUNSUPPORTED)
        rc = brc_registry_pin(reg, "zstd", "libzstd", err);
    brc_registry_free(reg);
    for (int i = 0; i < 2; i++) /* the dynamic linker keeps its last message until then */
        (void)dlerror();
    return rc;
}

static int step_arrow(oom_state *s, brc_error *err)
{
    struct ArrowArrayStream stream;
    struct ArrowSchema schema;
    struct ArrowArray array;
    BRC_TRY(brc_arrow_stream(&stream, s->array, NULL, err));
    int rc = stream.get_schema(&stream, &schema) == 0 ? BRC_OK : BRC_ENOMEM;
    if (rc == BRC_OK)
        schema.release(&schema);
    if (rc == BRC_OK && stream.get_next(&stream, &array) != 0)
        rc = BRC_ENOMEM;
    else if (rc == BRC_OK && array.release != NULL)
        array.release(&array);
    stream.release(&stream);
    return rc < 0 ? brc_fail(err, rc, "out of memory") : rc;
}

#define OPENED step_open, step_session, step_array

static const oom_scenario make_file = { "create", 1, 0,
    STEPS(step_create, step_session, step_create_array, step_write, step_commit, step_read) };
static const oom_scenario write_array = { "write", 0, 0,
    STEPS(OPENED, step_write_part, step_write, step_fill, step_batch, step_read) };
static const oom_scenario write_pool = { "write, two threads", 0, 2,
    STEPS(OPENED, step_write_part, step_write, step_read) };
static const oom_scenario change_array = { "change", 0, 0,
                                           STEPS(OPENED, step_grow, step_shrink, step_codecs,
                                                 step_write_part, step_rewrite, step_restore) };
static const oom_scenario nodes = { "nodes", 0, 0,
    STEPS(OPENED, step_create_array, step_group, step_attr, step_move, step_copy, step_remove,
          step_restore_node, step_discard) };
static const oom_scenario look = { "look", 0, 0,
    STEPS(OPENED, step_read, step_tensor, step_arrow, step_look, step_lists, step_log) };
static const oom_scenario registry = { "registry", 0, 0, STEPS(step_nvcomp) };
static const oom_scenario diff = { "diff", 0, 0, STEPS(OPENED, step_diff, step_diff_versions) };
static const oom_scenario check = { "fsck", 0, 0, STEPS(step_open, step_fsck) };
static const oom_scenario commits = { "commit", 0, 0,
    STEPS(OPENED, step_write, step_commit, step_amend, step_reset, step_reset_hard) };
static const oom_scenario refs = { "refs", 0, 0,
                                   STEPS(step_open, step_branch, step_tag, step_rename, step_switch,
                                         step_switch_back, step_delete) };
static const oom_scenario transaction = { "transaction", 0, 0, STEPS(OPENED, step_transaction) };
static const oom_scenario imports = { "import and export", 0, 0,
    STEPS(OPENED, step_import_npy, step_export_zarr, step_import_zarr, step_load_npy) };
static const oom_scenario exports = { "export", 0, 0,
    STEPS(OPENED, step_export_npy, step_export_npz, step_export_zip) };

static const oom_scenario adoption = { "adoption", 0, 0,
    STEPS(OPENED, step_write_part, step_attr, step_hand_over, step_read) };
static const oom_scenario children = { "children", 0, 0,
    STEPS(step_open, step_private, step_array, step_write_part, step_attr, step_children) };

const oom_scenario *const oom_scenarios[] = { &make_file, &write_array, &write_pool, &change_array,
                                              &nodes,     &look,        &diff,       &check,
                                              &commits,   &refs,        &transaction, &imports,
                                              &exports,   &adoption,  &children,   &registry,
                                              NULL };

/* ---- what they start from -------------------------------- */

int oom_prepare(oom_state *s, brc_error *err)
{
    int32_t value = -1;
    brc_sel sel = BRC_SEL_INIT;
    BRC_TRY(step_create(s, err));
    BRC_TRY(step_session(s, err));
    BRC_TRY(create_array(s, "/g/a", ZSTD, err));
    BRC_TRY(step_write(s, err));
    BRC_TRY(commit_with(s, "one", 0, err));
    BRC_TRY(brc_ref_create(s->repo, "v1", NULL, NULL, BRC_REF_TAG, err));
    BRC_TRY(brc_sel_parse(&sel, s->array, "[5, 5]", err));
    BRC_TRY(brc_array_fill(s->array, &sel, &value, err));
    BRC_TRY(step_attr(s, err));
    BRC_TRY(commit_with(s, "two", 0, err));
    BRC_TRY(brc_sel_parse(&sel, s->array, "[18]", err)); /* and something uncommitted */
    BRC_TRY(brc_array_fill(s->array, &sel, &value, err));
    BRC_TRY(brc_npy_save(s->array, NULL, s->npy, 1, err));
    oom_close(s);
    return BRC_OK;
}

void oom_close(oom_state *s)
{
    brc_array_free(s->array);
    brc_session_free(s->session);
    brc_free(s->repo);
    s->array = NULL;
    s->session = NULL;
    s->repo = NULL;
}
