/* How the cost of uncommitted trees, and of comparing trees, grows. */
#include <stdio.h>
#include <stdlib.h>

#include "scale.h"

enum { EACH = 10 };

/* ---- uncommitted trees -------------------------------- */

static scale_cost moves_in_a_session(const bench_opts *o, size_t n)
{
    repo r;
    char from[80], to[80];
    brc_error err = BRC_ERROR_INIT;
    scale_open(&r, o);
    scale_tree(&r, "/from", n, n);
    scale_cost start = scale_start();
    scale_begin(&r);
    for (size_t i = 0; i < n; i++) {
        snprintf(from, sizeof(from), "/from/g0/a%zu", i);
        snprintf(to, sizeof(to), "/to/b%zu", i);
        must(brc_node_move(r.session, from, to, 0, &err), &err, "a move");
    }
    scale_end(&r);
    scale_cost cost = scale_stop(start);
    scale_close(&r);
    return cost;
}

static scale_cost list_all(const bench_opts *o, size_t n)
{
    repo r;
    const brc_node *node;
    brc_iter *it;
    brc_error err = BRC_ERROR_INIT;
    size_t count = 0;
    int rc;
    scale_open(&r, o);
    scale_tree(&r, "", n, EACH);
    scale_cost start = scale_start();
    must(brc_list(&it, r.session, "/", BRC_LIST_RECURSE, &err), &err, "ls -r");
    while ((rc = brc_next(it, &node, &err)) > 0)
        count++;
    scale_cost cost = scale_stop(start);
    must(rc, &err, "ls -r");
    must_be(count == 1 + n + (n + EACH - 1) / EACH, "ls -r of all nodes");
    brc_iter_free(it);
    scale_close(&r);
    return cost;
}

static scale_cost remove_groups(const bench_opts *o, size_t n)
{
    repo r;
    char path[80];
    brc_error err = BRC_ERROR_INIT;
    scale_open(&r, o);
    scale_tree(&r, "", n, EACH);
    scale_cost start = scale_start();
    scale_begin(&r);
    for (size_t i = 0; i < n / EACH; i++) {
        snprintf(path, sizeof(path), "/g%zu", i);
        must(brc_node_remove(r.session, path, &err), &err, "rm");
    }
    scale_end(&r);
    scale_cost cost = scale_stop(start);
    scale_close(&r);
    return cost;
}

static scale_cost export_all(const bench_opts *o, size_t n)
{
    repo r;
    char dest[600];
    brc_error err = BRC_ERROR_INIT;
    scale_open(&r, o);
    scale_tree(&r, "", n, EACH);
    snprintf(dest, sizeof(dest), "%s/all.zip", o->dir);
    scale_cost start = scale_start();
    must(brc_export(r.session, "/", dest, NULL, &err), &err, "export");
    scale_cost cost = scale_stop(start);
    remove_file(dest);
    scale_close(&r);
    return cost;
}

/* ---- comparing -------------------------------- */

/* The whole list of changes, counted. */
static scale_cost diff_cost(const repo *r, const char *a, const char *b, size_t *count)
{
    brc_iter *it;
    const brc_change *change;
    brc_error err = BRC_ERROR_INIT;
    int rc;
    *count = 0;
    scale_cost start = scale_start();
    must(brc_diff(&it, r->handle, a, b, NULL, &err), &err, "diff");
    while ((rc = brc_next(it, &change, &err)) > 0)
        ++*count;
    scale_cost cost = scale_stop(start);
    must(rc, &err, "diff");
    brc_iter_free(it);
    return cost;
}

static scale_cost status_of_added(const bench_opts *o, size_t n)
{
    repo r;
    size_t count;
    scale_open(&r, o);
    scale_tree(&r, "", n, EACH);
    scale_cost cost = diff_cost(&r, NULL, NULL, &count);
    must_be(count == n + (n + EACH - 1) / EACH, "a change for each node");
    scale_close(&r);
    return cost;
}

static scale_cost diff_of_added(const bench_opts *o, size_t n)
{
    repo r;
    size_t count;
    scale_open(&r, o);
    scale_tree(&r, "/first", 1, 1);
    repo_commit(&r, "one");
    scale_tree(&r, "", n, EACH);
    repo_commit(&r, "all");
    scale_cost cost = diff_cost(&r, "HEAD~1", "HEAD", &count);
    must_be(count == n + (n + EACH - 1) / EACH, "a change for each node");
    scale_close(&r);
    return cost;
}

/* Each array goes from one group to another by itself; half of them are equal. */
static scale_cost diff_of_moved_arrays(const bench_opts *o, size_t n)
{
    repo r;
    size_t count;
    char from[80], to[80];
    brc_error err = BRC_ERROR_INIT;
    scale_open(&r, o);
    scale_begin(&r);
    for (size_t i = 0; i < n; i++) {
        snprintf(from, sizeof(from), "/from/a%zu", i);
        scale_array(&r, from, i % 2 ? i : 0);
    }
    must(brc_group_create(r.session, "/to", "{\"other\":1}", &err), &err, "a group");
    scale_end(&r);
    repo_commit(&r, "before");
    scale_begin(&r);
    for (size_t i = 0; i < n; i++) {
        snprintf(from, sizeof(from), "/from/a%zu", i);
        snprintf(to, sizeof(to), "/to/b%zu", n - i);
        must(brc_node_move(r.session, from, to, 0, &err), &err, "a move");
    }
    scale_end(&r);
    scale_cost cost = diff_cost(&r, NULL, NULL, &count);
    must_be(count == n, "a move for each array");
    scale_close(&r);
    return cost;
}

static scale_cost diff_of_moved_groups(const bench_opts *o, size_t n)
{
    repo r;
    size_t count;
    char from[80], to[80];
    brc_error err = BRC_ERROR_INIT;
    scale_open(&r, o);
    scale_tree(&r, "/from", n, EACH);
    repo_commit(&r, "before");
    scale_begin(&r);
    for (size_t i = 0; i < n / EACH; i++) {
        snprintf(from, sizeof(from), "/from/g%zu", i);
        snprintf(to, sizeof(to), "/to/h%zu", i);
        must(brc_node_move(r.session, from, to, 0, &err), &err, "a move");
    }
    scale_end(&r);
    scale_cost cost = diff_cost(&r, NULL, NULL, &count);
    must_be(count == n / EACH + 1, "a move for each group");
    scale_close(&r);
    return cost;
}

/* Every second of n attributes changes, and their order turns round. */
static void attributes(const repo *r, size_t n, int turned)
{
    brc_error err = BRC_ERROR_INIT;
    brc_buf text = BRC_BUF_INIT;
    for (size_t i = 0; i < n; i++) {
        size_t name = turned ? n - 1 - i : i;
        must(brc_buf_printf(&text, &err, "%s\"k%zu\":%zu", i > 0 ? "," : "{", name,
                            turned && name % 2 ? 0 : name), &err, "a document");
    }
    must(brc_buf_text(&text, "}", &err), &err, "a document");
    must(brc_buf_terminate(&text, &err), &err, "a document");
    must(brc_group_create(r->session, "/g", (const char *)text.data, &err), &err, "a group");
    brc_buf_dispose(&text);
}

static scale_cost diff_of_attributes(const bench_opts *o, size_t n)
{
    repo r;
    size_t count;
    brc_error err = BRC_ERROR_INIT;
    scale_open(&r, o);
    attributes(&r, n, 0);
    repo_commit(&r, "before");
    must(brc_node_remove(r.session, "/g", &err), &err, "rm");
    attributes(&r, n, 1);
    scale_cost cost = diff_cost(&r, NULL, NULL, &count);
    must_be(count == 1, "one change");
    scale_close(&r);
    return cost;
}

const scale_case scale_nodes[] = {
    {"moves of uncommitted arrays", 500, moves_in_a_session, 0},
    {"ls -r of an uncommitted tree", 2000, list_all, 0},
    {"rm of uncommitted groups", 1000, remove_groups, 0},
    {"export of an uncommitted tree", 500, export_all, 0},
    {"status with added arrays", 4000, status_of_added, 0},
    {"diff of commits with added arrays", 4000, diff_of_added, 0},
    {"status with moved arrays", 2000, diff_of_moved_arrays, 0},
    {"status with moved groups, arrays in them", 2000, diff_of_moved_groups, 0},
    {"status with changed attributes", 2000, diff_of_attributes, 0},
    {NULL, 0, NULL, 0},
};
