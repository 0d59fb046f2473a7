/*
 * Bits are flipped in the pages of the rows that no id covers: drafts and what belongs to them,
 * refs, settings, and rows that are derived. What is read then is right, or an error, or fsck finds
 * the fault: nothing wrong goes unseen. `make bits` flips every bit, `make test` some.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../src/base/buf.h"
#include "../../src/base/file.h"
#include "../kit/effort.h"
#include "../kit/fsck_kit.h"
#include "../kit/sample_repo.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(draft_flips);

enum { PAGE = 16384 };

/* Their pages, and those of their indexes. */
static const char *const tables[] = {
    "draft", "draft_shared", "draft_node", "sqlite_autoindex_draft_node_1", "draft_chunk",
    "draft_doc", "draft_key", "draft_move", "node_total", "encoded", "commit_info", "ref", "oplog",
    "meta", "sqlite_sequence",
};
enum { TABLES = sizeof(tables) / sizeof(tables[0]) };

enum { REFS, DRAFTS, TREE, DOCUMENTS, ELEMENTS, SIZES, KEYS, CHANGES, QUESTIONS };
static const char *const questions[QUESTIONS] = {
    "refs", "drafts", "tree", "documents", "elements", "sizes", "keys", "changes",
};

typedef struct answers {
    brc_buf text[QUESTIONS];
    int rc[QUESTIONS];
    int faults; /* of fsck, also where it failed */
    int is_open;
} answers;

static scenario t;
static answers right, now;

/* ---- the repository ---------------------------------------------------------- */

/* Chunks in two rows, a compressed document, bytes under a loose key, and a private draft. */
static void change_more(void)
{
    static char text[3000];
    brc_session *mine;
    const uint8_t nine = 9;
    brc_array *a;
    brc_sel sel = { .size = sizeof(brc_sel), .ndim = 1,
                    .start = { 20 }, .count = { 3 }, .step = { 1 } };
    for (int i = 0; i < 2; i++) {
        OK(&t, brc_session_open(&mine, t.repo, NULL, BRC_SESSION_PRIVATE, &t.err));
        OK(&t, brc_array_open(&a, mine, "/many", &t.err));
        OK(&t, brc_array_fill(a, &sel, &nine, &t.err));
        brc_array_free(a);
        if (i == 0)
            OK(&t, brc_session_hand_over(mine, t.session, &t.err));
        brc_session_free(mine);
    }
    memset(text, 'x', sizeof(text) - 1);
    text[0] = text[sizeof(text) - 2] = '"';
    OK(&t, brc_attrs_set(t.session, "/g", "long", text, &t.err));
    OK(&t, brc_key_set(t.session, "stray/c/0", "abc", 3, 0, &t.err));
    scenario_sql(&t, "INSERT INTO encoded SELECT id, 1, 5, 6, row_sum('encoded', id, 1, 5, 6)"
                     " FROM object WHERE kind=1");
}

static void flips_setup(void)
{
    scenario_folder(&t);
    sample_repo_make(t.file);
    scenario_open(&t, NULL, 0);
    change_more();
    scenario_whole(&t);
    scenario_close(&t);
}

static void flips_teardown(void)
{
    for (int q = 0; q < QUESTIONS; q++) {
        brc_buf_dispose(&right.text[q]);
        brc_buf_dispose(&now.text[q]);
    }
    scenario_stop(&t);
}

/* ---- the questions ----------------------------------------------------------- */

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
        rc = brc_buf_printf(out, NULL, "%s %s %s\n", ref->name, brc_oid_format(hex, &ref->id),
                            ref->message);
    brc_iter_free(it);
    if (rc == BRC_OK)
        rc = brc_head(&head, repo, NULL);
    return rc < 0 ? rc : brc_buf_text(out, head, NULL);
}

static int tell_drafts(breccia *repo, brc_buf *out)
{
    brc_iter *it;
    const brc_draft *d;
    int rc = brc_drafts(&it, repo, NULL);
    if (rc < 0)
        return rc;
    while ((rc = brc_next(it, &d, NULL)) > 0)
        rc = brc_buf_printf(out, NULL, "%lld %s %u %llu %d\n", (long long)d->id, d->branch,
                            (unsigned)d->flags, (unsigned long long)d->nodes, d->owner);
    brc_iter_free(it);
    return rc;
}

static int tell_elements(brc_session *s, const char *path, int sizes, brc_buf *out)
{
    brc_array *a;
    uint64_t chunks, bytes;
    int rc = brc_array_open(&a, s, path, NULL);
    if (rc < 0)
        return rc;
    const brc_array_info *info = brc_array_describe(a);
    uint64_t n = info->item_size;
    for (int i = 0; i < info->ndim; i++)
        n *= info->shape[i];
    size_t at = out->len;
    if (sizes)
        rc = brc_array_stat(&chunks, &bytes, a, NULL);
    else
        rc = n > 1 << 16 ? BRC_ELIMIT : brc_buf_printf(out, NULL, "%*s", (int)n, "");
    if (rc == BRC_OK && sizes)
        rc = brc_buf_printf(out, NULL, "%s %llu %llu\n", path, (unsigned long long)chunks,
                            (unsigned long long)bytes);
    else if (rc == BRC_OK && info->item_size > 0)
        rc = brc_array_read(a, NULL, out->data + at, (size_t)n, NULL);
    brc_array_free(a);
    return rc;
}

static int tell_node(brc_session *s, const brc_node *node, int question, brc_buf *out)
{
    brc_buf json = BRC_BUF_INIT;
    int rc = BRC_OK;
    if (question == TREE)
        return brc_buf_printf(out, NULL, "%s %d\n", node->path, node->kind);
    if (question != DOCUMENTS)
        return node->kind != BRC_ARRAY || strcmp(node->path, "/moved") == 0
                   ? BRC_OK
                   : tell_elements(s, node->path, question == SIZES, out);
    rc = brc_node_json(&json, s, node->path, NULL);
    if (rc == BRC_OK)
        rc = brc_buf_printf(out, NULL, "%s %s\n", node->path, (const char *)json.data);
    brc_buf_dispose(&json);
    return rc;
}

static int tell_nodes(brc_session *s, int question, brc_buf *out)
{
    brc_iter *it;
    const brc_node *node;
    int rc = brc_list(&it, s, "/", 1, NULL);
    while (rc >= 0 && (rc = brc_next(it, &node, NULL)) > 0)
        rc = tell_node(s, node, question, out);
    brc_iter_free(it);
    return rc;
}

static int tell_changes(breccia *repo, brc_buf *out)
{
    brc_iter *it;
    const brc_change *c;
    int rc = brc_diff(&it, repo, "main", NULL, NULL, NULL);
    while (rc >= 0 && (rc = brc_next(it, &c, NULL)) > 0)
        rc = brc_buf_printf(out, NULL, "%d %s %s\n", c->what, c->path,
                            c->from != NULL ? c->from : "");
    brc_iter_free(it);
    return rc;
}

static int answer(breccia *repo, brc_session *s, int question, brc_buf *out)
{
    switch (question) {
    case REFS:
        return tell_refs(repo, out);
    case DRAFTS:
        return tell_drafts(repo, out);
    case CHANGES:
        return tell_changes(repo, out);
    case KEYS:
        return s == NULL ? BRC_ECORRUPT : brc_key_get(out, s, "stray/c/0", NULL, NULL, NULL);
    default:
        return s == NULL ? BRC_ECORRUPT : tell_nodes(s, question, out);
    }
}

static void ask(answers *out)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    breccia *repo;
    brc_session *s;
    opts.flags = BRC_OPEN_READONLY;
    out->faults = 0;
    out->is_open = brc_open(&repo, t.file, &opts, NULL) == BRC_OK;
    if (!out->is_open)
        return;
    if (brc_session_open(&s, repo, "main", BRC_SESSION_VIEW, NULL) < 0)
        s = NULL;
    for (int q = 0; q < QUESTIONS; q++) {
        out->text[q].len = 0;
        out->rc[q] = answer(repo, s, q, &out->text[q]);
    }
    if (brc_fsck(repo, 0, fsck_counts, NULL, &out->faults, NULL, NULL) < 0)
        out->faults++;
    brc_session_free(s);
    brc_free(repo);
}

/* ---- flipping ---------------------------------------------------------------- */

static int is_used(const uint8_t *page, size_t at)
{
    size_t cells = (size_t)page[3] << 8 | page[4], content = (size_t)page[5] << 8 | page[6];
    return at < 8 + 2 * cells || at >= content;
}

/* Returns 1 if a reader would take a wrong answer for a right one. */
static int goes_unseen(const char *table, size_t bit)
{
    int is_wrong = 0;
    if (!now.is_open || now.faults > 0)
        return 0;
    for (int q = 0; q < QUESTIONS; q++) {
        const brc_buf *x = &now.text[q], *y = &right.text[q];
        int differs = now.rc[q] != right.rc[q] || x->len != y->len ||
                      (x->len > 0 && memcmp(x->data, y->data, x->len) != 0);
        if (differs)
            fprintf(stderr, "%s, bit %zu: %s: %d, and fsck finds nothing\n", table, bit,
                    questions[q], now.rc[q]);
        is_wrong |= differs;
    }
    return is_wrong;
}

CASE("draft_flips", .setup = flips_setup, .teardown = flips_teardown, .timeout = 600);

LOOP(nothing_wrong_goes_unseen, 0, TABLES)
{
    char sql[128];
    brc_buf file = BRC_BUF_INIT;
    int unseen = 0, found = 0;
    const size_t each = effort_step(29, 29);
    snprintf(sql, sizeof(sql), "SELECT rootpage FROM sqlite_schema WHERE name='%s'", tables[_i]);
    size_t from = ((size_t)scenario_ask(&t, sql) - 1) * PAGE;
    OK(&t, brc_file_read(&file, t.file, &t.err));
    const uint8_t *page = file.data + from;
    ck_assert(page[0] == 10 || page[0] == 13); /* all of it */
    ask(&right);
    ck_assert(right.is_open && right.faults == 0);
    for (int q = 0; q < QUESTIONS; q++)
        ck_assert_msg(right.rc[q] == BRC_OK && right.text[q].len > 0, "%s", questions[q]);
    int fd = open(t.file, O_RDWR);
    ck_assert_int_ge(fd, 0);
    for (size_t bit = (size_t)_i % each; bit < (size_t)PAGE * 8; bit += each) {
        if (!is_used(page, bit / 8))
            continue;
        uint8_t byte = (uint8_t)(page[bit / 8] ^ 1u << bit % 8);
        ck_assert_int_eq(pwrite(fd, &byte, 1, (off_t)(from + bit / 8)), 1);
        ask(&now);
        found += !now.is_open || now.faults > 0;
        unseen += goes_unseen(tables[_i], bit);
        ck_assert_int_eq(pwrite(fd, &page[bit / 8], 1, (off_t)(from + bit / 8)), 1);
    }
    close(fd);
    brc_buf_dispose(&file);
    ck_assert_int_eq(unseen, 0);
    ck_assert(found > 0 || (page[3] == 0 && page[4] == 0)); /* an empty one */
}
