/*
 * Bits of a repository's file are flipped, one at a time: what is then read is right
 * or an error, never something else, and fsck notices everything that changes an
 * answer.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/base/buf.h"
#include "../../src/base/file.h"
#include "../../src/breccia.h"
#include "../kit/effort.h"
#include "../kit/fsck_kit.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(bit_flips);

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define BIG "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"

#define MAX_ANSWERS 64

/* Answers to a fixed list of questions: text or bytes, or that there was an error. */
typedef struct answers {
    brc_buf items[MAX_ANSWERS];
    int rc[MAX_ANSWERS];
    const char *what[MAX_ANSWERS];
    int n;
    int hashed; /* so many from the first come from what hangs on a commit */
} answers;

static void answers_dispose(answers *out)
{
    for (int i = 0; i < MAX_ANSWERS; i++)
        brc_buf_dispose(&out->items[i]);
}

static brc_buf *answer_begin(answers *out, const char *what)
{
    ck_assert_int_lt(out->n, MAX_ANSWERS);
    out->items[out->n].len = 0;
    out->what[out->n] = what;
    return &out->items[out->n];
}

static void answer_end(answers *out, int rc)
{
    out->rc[out->n++] = rc < 0 ? rc : BRC_OK;
}

/* ---- the questions -------------------------------- */

static int tell_refs(breccia *repo, brc_buf *out)
{
    brc_iter *it;
    const brc_ref *ref;
    char hex[65];
    const char *head;
    int rc = brc_refs(&it, repo, NULL);
    if (rc < 0)
        return rc;
    while ((rc = brc_next(it, &ref, NULL)) > 0)
        rc = brc_buf_printf(out, NULL, "%s %u %s %s\n", ref->name, (unsigned)ref->flags,
                            brc_oid_format(hex, &ref->id), ref->message);
    brc_iter_free(it);
    if (rc == BRC_OK)
        rc = brc_head(&head, repo, NULL);
    return rc < 0 ? rc : brc_buf_text(out, head, NULL);
}

static int tell_log(breccia *repo, const char *rev, brc_buf *out)
{
    brc_iter *it;
    const brc_commit *c;
    char hex[65];
    int rc = brc_log(&it, repo, rev, NULL, NULL);
    if (rc < 0)
        return rc;
    while ((rc = brc_next(it, &c, NULL)) > 0)
        rc = brc_buf_printf(out, NULL, "%s %s %s %lld %zu\n", brc_oid_format(hex, &c->id),
                            c->author, c->message, (long long)c->time_us, c->nparents);
    brc_iter_free(it);
    return rc;
}

static int tell_tree(brc_session *s, brc_buf *out)
{
    brc_iter *it;
    const brc_node *node;
    int rc = brc_list(&it, s, "/", BRC_LIST_RECURSE, NULL);
    if (rc < 0)
        return rc;
    while ((rc = brc_next(it, &node, NULL)) > 0)
        rc = brc_buf_printf(out, NULL, "%s %d\n", node->path, node->kind);
    brc_iter_free(it);
    return rc;
}

static int tell_array(brc_session *s, const char *path, brc_buf *out)
{
    brc_array *a;
    int rc = brc_array_open(&a, s, path, NULL);
    if (rc < 0)
        return rc;
    const brc_array_info *info = brc_array_describe(a);
    uint64_t n = info->item_size;
    for (int i = 0; i < info->ndim; i++)
        n *= info->shape[i];
    rc = n > 1 << 20 ? BRC_ELIMIT : brc_buf_printf(out, NULL, "%*s", (int)n, "");
    if (rc == BRC_OK)
        rc = brc_array_read(a, NULL, out->data, (size_t)n, NULL);
    brc_array_free(a);
    return rc;
}

static const char *const paths[] = { "/zstd", "/g/raw", "/g/big", "/g/turned", "/deep" };

static void ask_session(answers *out, breccia *repo, const char *rev, int mode)
{
    brc_session *s;
    brc_buf *item = answer_begin(out, "session");
    answer_end(out, brc_session_open(&s, repo, rev, mode, NULL));
    item = answer_begin(out, "tree");
    answer_end(out, s == NULL ? BRC_ECORRUPT : tell_tree(s, item));
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        item = answer_begin(out, "elements");
        answer_end(out, s == NULL ? BRC_ECORRUPT : tell_array(s, paths[i], item));
        item = answer_begin(out, "document");
        answer_end(out, s == NULL ? BRC_ECORRUPT : brc_node_json(item, s, paths[i], NULL));
    }
    brc_session_free(s);
}

static void ask_everything(answers *out, breccia *repo, int uncommitted)
{
    brc_buf *item;
    out->n = 0;
    item = answer_begin(out, "log");
    answer_end(out, tell_log(repo, "main", item));
    ask_session(out, repo, "main", BRC_SESSION_AT);
    ask_session(out, repo, "main~1", BRC_SESSION_AT);
    out->hashed = out->n;
    if (uncommitted)
        ask_session(out, repo, "main", BRC_SESSION_VIEW);
    item = answer_begin(out, "refs");
    answer_end(out, tell_refs(repo, item));
}

/* ---- the repository -------------------------------- */

static void import_stored(scenario *t, const char *path, const char *codecs, int first)
{
    char json[512], name[160];
    uint8_t data[6 * 8 * 2];
    for (int i = 0; i < 96; i++)
        data[i] = (uint8_t)(first + i * 5);
    snprintf(json, sizeof(json),
             "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[6,8],\"data_type\":\"uint16\","
             "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[6,8]}},"
             "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":0,\"codecs\":%s}",
             codecs);
    snprintf(name, sizeof(name), "%s/in%s/c/0/0", t->dir, path + 2);
    OK(t, brc_dir_make_parents(name, strlen(t->dir), &t->err));
    OK(t, brc_file_write(name, data, sizeof(data), &t->err));
    snprintf(name, sizeof(name), "%s/in%s/zarr.json", t->dir, path + 2);
    OK(t, brc_file_write(name, json, strlen(json), &t->err));
    snprintf(name, sizeof(name), "%s/in%s", t->dir, path + 2);
    OK(t, brc_import(t->session, name, path, NULL, &t->err));
}

/* A map of more than one node, of few objects. */
static void make_deep(scenario *t)
{
    uint64_t n = 150, each = 1;
    int32_t data[150];
    for (int i = 0; i < 150; i++)
        data[i] = 1000 + i % 7;
    brc_array *a = scenario_array(t, "/deep", "int32", 1, &n, &each, NULL, NULL);
    OK(t, brc_array_write(a, NULL, data, sizeof(data), &t->err));
    brc_array_free(a);
}

/* Every kind of object and of encoding; two commits, a tag, and where it is wanted
 * uncommitted changes. */
static void make_repository(scenario *t, int uncommitted)
{
    uint64_t shape[2] = { 10, 30 }, chunk[2] = { 5, 30 };
    int16_t data[300];
    scenario_start(t);
    for (int i = 0; i < 300; i++)
        data[i] = (int16_t)(i / 8);
    brc_array *a =
        scenario_array(t, "/zstd", "int16", 2, shape, chunk, "-1",
                       "[" LITTLE ",{\"name\":\"zstd\",\"configuration\":{\"level\":1}}]");
    OK(t, brc_array_write(a, NULL, data, sizeof(data), &t->err));
    for (int i = 0; i < 300; i++)
        data[i] = (int16_t)(i * 7919);
    brc_array *b = scenario_array(t, "/g/raw", "int16", 2, shape, chunk, NULL, "[" LITTLE "]");
    OK(t, brc_array_write(b, NULL, data, sizeof(data), &t->err));
    import_stored(t, "/g/big", "[" BIG "]", 1);
    import_stored(t, "/g/turned",
                  "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}," LITTLE "]", 90);
    make_deep(t);
    scenario_commit(t, "one");
    OK(t, brc_ref_create(t->repo, "v1", NULL, "first", BRC_REF_TAG, &t->err));
    OK(t, brc_attrs_set(t->session, "/zstd", "title", "\"two\"", &t->err));
    scenario_set_number(t, "/deep", 7, -7);
    scenario_commit(t, "two");
    if (uncommitted) {
        data[0] = 77;
        OK(t, brc_array_write(b, NULL, data, sizeof(data), &t->err));
        scenario_set_number(t, "/deep", 8, -8);
        OK(t, brc_node_remove(t->session, "/g/big", &t->err));
    }
    brc_array_free(a);
    brc_array_free(b);
    scenario_close(t);
}

/* ---- flipping -------------------------------- */

typedef struct flip_result {
    int opened, faults; /* faults: also where fsck itself failed */
    answers got;
} flip_result;

static void look_at_file(const scenario *t, flip_result *r, int uncommitted)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    breccia *repo;
    opts.flags = BRC_OPEN_READONLY;
    r->faults = 0;
    r->opened = brc_open(&repo, t->file, &opts, NULL) == BRC_OK;
    if (!r->opened)
        return;
    ask_everything(&r->got, repo, uncommitted);
    if (brc_fsck(repo, 0, fsck_counts, NULL, &r->faults, NULL, NULL) < 0)
        r->faults++;
    brc_free(repo);
}

/* Far from everything that is not zero: the unused middle of a page. */
static int is_unused(const uint8_t *file, size_t len, size_t at)
{
    size_t from = at > 24 ? at - 24 : 0, to = at + 24 < len ? at + 24 : len;
    for (size_t i = from; i < to; i++)
        if (file[i] != 0)
            return 0;
    return 1;
}

/* Names of refs and uncommitted changes are rows that no hash covers: of these what
 * is wrong is counted apart. */
typedef struct flip_counts {
    long flips, refused, same, wrong, unnoticed, unhashed_wrong, unhashed_unnoticed;
} flip_counts;

static int is_wrong(const answers *got, const answers *right, int i)
{
    const brc_buf *x = &got->items[i], *y = &right->items[i];
    if (got->rc[i] != BRC_OK)
        return 0;
    return right->rc[i] != BRC_OK || x->len != y->len ||
           (x->len > 0 && memcmp(x->data, y->data, x->len) != 0);
}

static void judge(const flip_result *r, const answers *right, size_t bit, flip_counts *n)
{
    int wrong[2] = { 0, 0 }, differs[2] = { 0, 0 };
    n->flips++;
    n->refused += !r->opened;
    if (!r->opened)
        return;
    for (int i = 0; i < right->n; i++) {
        int unhashed = i >= right->hashed;
        wrong[unhashed] |= is_wrong(&r->got, right, i);
        differs[unhashed] |= r->got.rc[i] != right->rc[i];
        if (!unhashed && is_wrong(&r->got, right, i))
            fprintf(stderr, "bit %zu: wrong %s (question %d)\n", bit, right->what[i], i);
    }
    n->wrong += wrong[0];
    n->unhashed_wrong += wrong[1];
    n->same += !(wrong[0] | wrong[1] | differs[0] | differs[1]);
    if (r->faults > 0)
        return;
    n->unnoticed += wrong[0] | differs[0];
    n->unhashed_unnoticed += wrong[1] | differs[1];
    if (wrong[0] | differs[0])
        fprintf(stderr, "bit %zu: fsck does not notice it\n", bit);
}

static void flip_bits(int uncommitted, size_t step, flip_counts *n)
{
    scenario t;
    brc_buf file = BRC_BUF_INIT;
    flip_result right, r;
    memset(&right, 0, sizeof(right));
    memset(&r, 0, sizeof(r));
    memset(n, 0, sizeof(*n));
    make_repository(&t, uncommitted);
    OK(&t, brc_file_read(&file, t.file, &t.err));
    look_at_file(&t, &right, uncommitted);
    ck_assert(right.opened && right.faults == 0);
    for (int i = 0; i < right.got.n; i++)
        ck_assert(right.got.rc[i] == BRC_OK || strcmp(right.got.what[i], "elements") == 0 ||
                  strcmp(right.got.what[i], "document") == 0);
    int fd = open(t.file, O_RDWR);
    ck_assert_int_ge(fd, 0);
    for (size_t bit = step / 2; bit < file.len * 8; bit += step) {
        if (is_unused(file.data, file.len, bit / 8) && bit % 64 != 3)
            continue;
        uint8_t byte = (uint8_t)(file.data[bit / 8] ^ 1u << bit % 8);
        ck_assert_int_eq(pwrite(fd, &byte, 1, (off_t)(bit / 8)), 1);
        look_at_file(&t, &r, uncommitted);
        judge(&r, &right.got, bit, n);
        ck_assert_int_eq(pwrite(fd, &file.data[bit / 8], 1, (off_t)(bit / 8)), 1);
    }
    close(fd);
    answers_dispose(&right.got);
    answers_dispose(&r.got);
    brc_buf_dispose(&file);
    scenario_stop(&t);
}

/* Fewer where every read costs many times as much. */
static size_t flip_step(void)
{
    const char *preload = getenv("LD_PRELOAD");
    if (preload != NULL && strstr(preload, "vgpreload") != NULL)
        return 31 * 151;
    return 31 * effort_step(4, 7);
}

LOOP(D1_no_flipped_bit_gives_wrong_data, 0, 2)
{
    flip_counts n;
    flip_bits(_i, flip_step(), &n);
    ck_assert_int_eq(n.wrong, 0);
    ck_assert_int_eq(n.unnoticed, 0);
    ck_assert_int_gt(n.flips, 10);
    ck_assert_int_gt(n.same, 5);
    ck_assert_int_lt(n.unhashed_wrong, 60);
    ck_assert_int_lt(n.unhashed_unnoticed, 20);
}
