#include "rebase_kit.h"

#include <check.h>
#include <string.h>

static brc_oid commit_as(rebase_kit *k, const char *message, const char *author,
                         const char *meta, int64_t time)
{
    brc_commit_opts commit = BRC_COMMIT_OPTS_INIT;
    brc_oid id;
    commit.message = message;
    commit.author = author;
    commit.meta_json = meta;
    commit.time_us = time;
    OK(&k->t, brc_session_commit(&id, k->t.session, &commit, &k->t.err));
    return id;
}

void rk_start(rebase_kit *k)
{
    scenario_start(&k->t);
    scenario_numbers(&k->t, "/a", 10, 2, 1);
    scenario_numbers(&k->t, "/g/b", 4, 2, 1);
    OK(&k->t, brc_attrs_set(k->t.session, "/a", "k", "1", &k->t.err));
    scenario_commit(&k->t, "base");
    OK(&k->t, brc_ref_create(k->t.repo, "side", NULL, NULL, 0, &k->t.err));
    scenario_set_number(&k->t, "/a", 0, 50);
    scenario_set_number(&k->t, "/a", 2, 50);
    OK(&k->t, brc_attrs_set(k->t.session, "/a", "k", "2", &k->t.err));
    OK(&k->t, brc_node_move(k->t.session, "/g", "/h", 0, &k->t.err));
    k->main_tip = scenario_commit(&k->t, "main");
    scenario_be_on(&k->t, "side");
    scenario_set_number(&k->t, "/a", 4, 60);
    k->side[0] = commit_as(k, "one", "Ada <ada@example.org>", NULL, 11000000);
    scenario_set_number(&k->t, "/a", 0, 61);
    scenario_set_number(&k->t, "/g/b", 1, 61);
    OK(&k->t, brc_attrs_set(k->t.session, "/a", "k", "3", &k->t.err));
    k->side[1] = commit_as(k, "two\n\nand why", "Ada <ada@example.org>", "{\"run\":7}", 12000000);
    scenario_set_number(&k->t, "/a", 6, 62);
    k->side[2] = commit_as(k, "three", "Bob", NULL, 13000000);
    scenario_set_number(&k->t, "/a", 2, 63);
    k->side[3] = commit_as(k, "four", "Bob", NULL, 14000000);
    scenario_set_number(&k->t, "/a", 8, 64);
    k->side_tip = k->side[4] = commit_as(k, "five", "Bob", NULL, 15000000);
}

void rk_stop(rebase_kit *k)
{
    scenario_stop(&k->t);
}

brc_pick_result rk_rebase(rebase_kit *k, uint32_t flags)
{
    brc_pick_opts opts = BRC_PICK_OPTS_INIT;
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    opts.flags = flags;
    OK(&k->t, brc_rebase(&r, NULL, k->t.repo, "main", &opts, &k->t.err));
    return r;
}

int rk_continue(brc_pick_result *r, breccia *repo, uint32_t flags, brc_error *err)
{
    brc_pick_opts opts = BRC_PICK_OPTS_INIT;
    opts.flags = flags;
    return brc_continue(r, NULL, repo, &opts, err);
}

brc_pick_result rk_goes_on(rebase_kit *k, uint32_t flags)
{
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    OK(&k->t, rk_continue(&r, k->t.repo, flags, &k->t.err));
    return r;
}

void rk_settle(rebase_kit *k, uint32_t side_of)
{
    uint64_t n;
    OK(&k->t, brc_merge_settle(&n, k->t.repo, side_of, NULL, 0, &k->t.err));
}

brc_open_state rk_open(rebase_kit *k)
{
    brc_open_state state = BRC_OPEN_STATE_INIT;
    OK(&k->t, brc_merge_state(&state, NULL, k->t.repo, &k->t.err));
    return state;
}

void rk_stopped_at(rebase_kit *k, const brc_pick_result *r, int at, uint64_t made, uint64_t skipped)
{
    const brc_open_state state = rk_open(k);
    ck_assert_int_eq(r->result, BRC_PICK_CONFLICT);
    ck_assert_int_ne(r->draft, 0);
    ck_assert_int_eq(r->draft, state.draft);
    ck_assert(scenario_same(r->at, k->side[at]));
    ck_assert_uint_eq(r->made, made);
    ck_assert_uint_eq(r->skipped, skipped);
    ck_assert_uint_eq(r->left, (uint64_t)(4 - at));
    ck_assert_str_eq(state.op, "rebase");
    ck_assert_str_eq(state.rev, "main");
    ck_assert(scenario_same(state.at, k->side[at]));
    ck_assert_uint_eq(state.made, made);
    ck_assert_uint_eq(state.skipped, skipped);
    ck_assert_uint_eq(state.left, (uint64_t)(4 - at));
    ck_assert(scenario_same(scenario_id(&k->t, "side"), k->side_tip));
}

void rk_nothing_is_open(rebase_kit *k)
{
    ck_assert_int_eq(rk_open(k).draft, 0);
    ck_assert_int_eq(scenario_ask(&k->t, "SELECT count(*) FROM draft WHERE kind=3 AND state=1"), 0);
    ck_assert(scenario_clean(&k->t));
}

int rk_rows(rebase_kit *k)
{
    return (int)scenario_ask(&k->t, "SELECT count(*) FROM oplog WHERE op='rebase'");
}

int32_t rk_number(rebase_kit *k, uint64_t i)
{
    return scenario_number(&k->t, k->t.session, "/a", i);
}

void rk_commit_is(rebase_kit *k, const char *rev, const char *message, const char *author,
                  const char *meta, int64_t time)
{
    brc_commit *c;
    const brc_oid id = scenario_id(&k->t, rev);
    OK(&k->t, brc_commit_read(&c, k->t.repo, &id, &k->t.err));
    ck_assert_str_eq(c->message, message);
    ck_assert_str_eq(c->author, author);
    ck_assert_str_eq(c->meta_json, meta);
    ck_assert_int_eq(c->time_us, time);
    ck_assert_uint_eq(c->nparents, 1);
    brc_commit_free(c);
}
