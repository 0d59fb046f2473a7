/* The objects that roots reach: all of them, each once, past damaged ones. */
#include <string.h>

#include "../../src/base/hash.h"
#include "../../src/history/closure.h"
#include "../../src/work/session.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(closure);

typedef struct tally {
    brc_id_table ids; /* of objects */
    size_t commits, nodes, entries, chunks, known, failed;
    brc_oid concerned; /* what the last failure was about */
} tally;
#define TALLY { .ids = BRC_ID_TABLE_INIT(0) }

static void tally_id(scenario *t, tally *n, const brc_oid *id)
{
    if (!brc_oid_is_zero(id))
        OK(t, brc_id_table_add(&n->ids, id, NULL, &t->err));
}

static void tally_step(scenario *t, tally *n, const brc_closure_step *at)
{
    switch (at->what) {
    case BRC_AT_VERSION:
        n->commits++;
        tally_id(t, n, &at->id);
        break;
    case BRC_AT_NODE:
        n->known += at->known != NULL;
        break;
    case BRC_AT_ENTRY:
        n->entries++;
        tally_id(t, n, &at->node.entry.doc);
        tally_id(t, n, &at->node.entry.storage);
        break;
    case BRC_AT_CHUNK:
        n->chunks++;
        tally_id(t, n, &at->node.chunk);
        break;
    case BRC_AT_LEAVE:
        n->nodes++;
        tally_id(t, n, &at->node.id);
        ++*(uint64_t *)at->keep;
        break;
    default:
        break;
    }
}

static brc_closure *closure_of(scenario *t)
{
    brc_closure *closure;
    OK(t, brc_closure_new(&closure, t->repo->store, sizeof(uint64_t), &t->err));
    return closure;
}

/* To the end, past damage. */
static void walk_all(scenario *t, brc_closure *closure, tally *n)
{
    brc_closure_step at;
    int rc;
    while ((rc = brc_closure_next(closure, &at, &t->err)) != 0) {
        if (rc > 0) {
            tally_step(t, n, &at);
            continue;
        }
        ck_assert_int_eq(rc, BRC_ECORRUPT);
        n->failed++;
        n->concerned = at.what == BRC_AT_COMMIT ? at.id : at.node.id;
    }
}

static void walk_and_free(scenario *t, brc_closure *closure, tally *n)
{
    walk_all(t, closure, n);
    brc_id_table_dispose(&n->ids);
    brc_closure_free(closure);
}

static brc_oid put_commit(scenario *t, const brc_oid *root, const brc_oid *parents, size_t n)
{
    brc_commit c = { .root = *root, .author = "A", .message = "m", .time_us = (int64_t)n,
                     .parents = parents, .nparents = n };
    OK(t, brc_store_begin(t->repo->store, &t->err));
    OK(t, brc_commit_put(t->repo->store, &c, NULL, &t->err));
    OK(t, brc_store_end(t->repo->store, 1, &t->err));
    return c.id;
}

static brc_oid root_of(scenario *t, const brc_oid *commit)
{
    brc_oid root;
    OK(t, brc_commit_root(t->repo->store, commit, &root, &t->err));
    return root;
}

static void add_commit(scenario *t, brc_closure *closure, const brc_oid *id, int is_new)
{
    ck_assert_int_eq(brc_closure_commit(closure, id, &t->err), is_new);
}

static const brc_oid no_snapshot;

/* ---- all of it -------------------------------- */

static void many_versions(scenario *t)
{
    scenario_start(t);
    scenario_numbers(t, "/g/a", 2000, 2, 1);
    scenario_commit(t, "one");
    for (int i = 0; i < 8; i++) {
        scenario_set_number(t, "/g/a", (uint64_t)i * 200, -i - 1);
        scenario_commit(t, "one changed");
    }
    OK(t, brc_ref_create(t->repo, "other", "HEAD~3", NULL, 0, &t->err));
    OK(t, brc_node_move(t->session, "/g", "/h/copy", BRC_NODE_COPY, &t->err));
    scenario_commit(t, "twice");
}

/* The snapshot of a root group alone: the first commit on a branch stores it on its way. */
static brc_oid plain_snapshot(scenario *t)
{
    brc_oid id;
    OK(t, brc_store_begin(t->repo->store, &t->err));
    OK(t, brc_snapshot_put(t->repo->store, &(brc_entry){ .kind = BRC_GROUP }, &id, &t->err));
    OK(t, brc_store_end(t->repo->store, 1, &t->err));
    return id;
}

/* Nothing else was thrown away here: what a marking by this walk left over would be lost. */
TEST(refs_reach_every_object)
{
    scenario t;
    tally n = TALLY;
    brc_object page[64];
    brc_oid after;
    size_t got, objects = 0;
    many_versions(&t);
    brc_closure *closure = closure_of(&t);
    OK(&t, brc_closure_refs(closure, &t.err));
    walk_all(&t, closure, &n);
    ck_assert_uint_eq(n.failed, 0);
    ck_assert_uint_eq(n.commits, 10);
    ck_assert_uint_eq((uint64_t)scenario_ask(&t, "SELECT count(*) FROM object WHERE kind=3"),
                      n.nodes + 1);
    brc_oid plain = plain_snapshot(&t);
    tally_id(&t, &n, &plain);
    memset(&after, 0, sizeof(after));
    for (;;) {
        OK(&t, brc_objects_page(t.repo->store, &after, page, 64, &got, &t.err));
        if (got == 0)
            break;
        for (size_t i = 0; i < got; i++)
            ck_assert_ptr_nonnull(brc_id_table_find(&n.ids, &page[i].id));
        objects += got;
        after = page[got - 1].id;
    }
    ck_assert_uint_eq(n.ids.n, objects);
    walk_and_free(&t, closure, &n);
    scenario_stop(&t);
}

TEST(each_comes_once_whatever_leads_to_it)
{
    scenario t;
    tally n = TALLY, more = TALLY;
    many_versions(&t);
    scenario_set_number(&t, "/g/a", 0, 77);
    brc_oid tip = scenario_commit(&t, "the last"), root = root_of(&t, &tip), pair[2] = { tip, tip };
    brc_oid twice = put_commit(&t, &root, pair, 2);
    brc_closure *closure = closure_of(&t);
    add_commit(&t, closure, &twice, 1);
    add_commit(&t, closure, &twice, 0);
    walk_all(&t, closure, &n);
    ck_assert_uint_eq(n.commits, 12);
    ck_assert_uint_gt(n.known, 0);
    add_commit(&t, closure, &tip, 0);
    OK(&t, brc_closure_snapshot(closure, &root, &t.err));
    walk_all(&t, closure, &more);
    ck_assert_uint_eq(more.commits + more.nodes + more.entries + more.chunks, 0);
    ck_assert_uint_eq(more.known, 1);
    brc_id_table_dispose(&more.ids);
    walk_and_free(&t, closure, &n);
    scenario_stop(&t);
}

/* ---- what the caller decides -------------------------------- */

TEST(a_skipped_commit_ends_its_line)
{
    scenario t;
    tally n = TALLY;
    brc_closure_step at;
    scenario_start(&t);
    brc_oid a = put_commit(&t, &no_snapshot, NULL, 0), b = put_commit(&t, &no_snapshot, &a, 1);
    brc_oid both[3] = { b, b, b }, c = put_commit(&t, &no_snapshot, both, 2);
    brc_closure *closure = closure_of(&t);
    add_commit(&t, closure, &c, 1);
    while (brc_closure_next(closure, &at, &t.err) > 0) {
        tally_step(&t, &n, &at);
        if (at.what == BRC_AT_COMMIT && brc_oid_cmp(&at.id, &b) == 0)
            brc_closure_skip(closure);
    }
    ck_assert_uint_eq(n.commits, 1);
    add_commit(&t, closure, &b, 0);
    add_commit(&t, closure, &a, 1);
    walk_all(&t, closure, &n);
    ck_assert_uint_eq(n.commits, 2);
    walk_and_free(&t, closure, &n);
    scenario_stop(&t);
}

TEST(a_known_node_is_read_again_on_request)
{
    scenario t;
    tally n = TALLY, again = TALLY;
    brc_closure_step at;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 12, 4, 1);
    brc_oid tip = scenario_commit(&t, "one"), root = root_of(&t, &tip);
    brc_closure *closure = closure_of(&t);
    add_commit(&t, closure, &tip, 1);
    walk_all(&t, closure, &n);
    OK(&t, brc_closure_snapshot(closure, &root, &t.err));
    while (brc_closure_next(closure, &at, &t.err) > 0) {
        if (at.what == BRC_AT_NODE) {
            ck_assert_uint_eq(*(const uint64_t *)at.known, 1);
            brc_closure_again(closure);
        }
        tally_step(&t, &again, &at);
        ck_assert(at.what != BRC_AT_LEAVE || *(uint64_t *)at.keep == 2);
    }
    ck_assert_uint_eq(again.nodes, n.nodes);
    ck_assert_uint_eq(again.chunks, 3);
    brc_id_table_dispose(&again.ids);
    walk_and_free(&t, closure, &n);
    scenario_stop(&t);
}

TEST(chunk_maps_are_known_by_their_context)
{
    scenario t;
    tally n = TALLY;
    brc_entry entry;
    brc_oid context;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 12, 4, 1);
    brc_oid tip = scenario_commit(&t, "one"), root = root_of(&t, &tip);
    OK(&t, brc_snapshot_find(t.repo->store, &root, "/a", &entry, &t.err));
    brc_closure *closure = closure_of(&t);
    memset(&context, 0, sizeof(context));
    for (int i = 0; i < 4; i++) { /* two contexts, twice each */
        context.bytes[5] = (uint8_t)(i / 2);
        brc_closure_context(closure, &context);
        OK(&t, brc_closure_entry(closure, "/a", &entry, &t.err));
        walk_all(&t, closure, &n);
        ck_assert_uint_eq(n.chunks, 3 * (uint64_t)(i / 2 + 1));
    }
    walk_and_free(&t, closure, &n);
    scenario_stop(&t);
}

TEST(dropped_in_the_middle)
{
    scenario t;
    tally n = TALLY;
    brc_closure_step at;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 12, 4, 1);
    brc_oid one = scenario_commit(&t, "one"), root = root_of(&t, &one);
    brc_oid behind = put_commit(&t, &no_snapshot, &one, 1), due = put_commit(&t, &root, NULL, 0);
    brc_oid top = put_commit(&t, &root, &behind, 1);
    brc_closure *closure = closure_of(&t);
    add_commit(&t, closure, &due, 1);
    add_commit(&t, closure, &top, 1);
    do
        ck_assert_int_eq(brc_closure_next(closure, &at, &t.err), 1);
    while (at.what != BRC_AT_LEAVE);
    brc_closure_drop(closure); /* before the node counts as left */
    walk_all(&t, closure, &n);
    ck_assert_uint_eq(n.commits, 1);
    ck_assert_uint_eq(n.chunks, 3);
    ck_assert_uint_eq(n.known, 0);
    add_commit(&t, closure, &behind, 1); /* no parent of what was dropped was met */
    walk_and_free(&t, closure, &n);
    scenario_stop(&t);
}

/* ---- damage -------------------------------- */

TEST(it_goes_on_after_a_commit_that_is_missing)
{
    scenario t;
    tally n = TALLY;
    brc_oid parents[2];
    scenario_start(&t);
    memset(parents, 0x5a, sizeof(parents));
    parents[0] = put_commit(&t, &no_snapshot, NULL, 0);
    memset(parents[1].bytes + brc_store_id_len(t.repo->store), 0,
           sizeof(brc_oid) - brc_store_id_len(t.repo->store));
    brc_oid tip = put_commit(&t, &no_snapshot, parents, 2);
    brc_closure *closure = closure_of(&t);
    add_commit(&t, closure, &tip, 1);
    walk_all(&t, closure, &n);
    ck_assert_uint_eq(n.failed, 1);
    ck_assert_int_eq(brc_oid_cmp(&n.concerned, &parents[1]), 0);
    ck_assert_uint_eq(n.commits, 2);
    walk_and_free(&t, closure, &n);
    scenario_stop(&t);
}

TEST(it_goes_on_after_a_node_that_is_missing)
{
    scenario t;
    tally n = TALLY;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 12, 4, 1);
    scenario_numbers(&t, "/b", 20, 4, 100);
    brc_oid first = scenario_commit(&t, "one");
    brc_oid gone = put_commit(&t, &first, &first, 1);
    brc_closure *closure = closure_of(&t);
    add_commit(&t, closure, &gone, 1); /* its snapshot is not a node; its parents are walked */
    walk_all(&t, closure, &n);
    ck_assert_uint_eq(n.failed, 1);
    ck_assert_int_eq(brc_oid_cmp(&n.concerned, &first), 0);
    ck_assert_uint_eq(n.commits, 2);
    ck_assert_uint_eq(n.chunks, 8);
    walk_and_free(&t, closure, &n);
    scenario_stop(&t);
}
