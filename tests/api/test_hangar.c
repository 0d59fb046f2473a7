/*
 * The faults of Hangar, the one earlier system that merges arrays: each is a test, named after
 * its number in the list of traps (docs/SCENARIOS.md says where the others are), and in both
 * directions where a merge is asked.
 */
#include <string.h>

#include "../../src/breccia_backend.h"
#include "../kit/fsck_kit.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"
#include "../kit/versions.h"

TEST_SUITE(hangar);

static scenario t;

static void hangar_setup(void)
{
    scenario_start(&t);
    scenario_numbers(&t, "/a", 8, 4, 1);
    scenario_numbers(&t, "/g/b", 8, 4, 1);
    scenario_commit(&t, "base");
    OK(&t, brc_ref_create(t.repo, "dev", NULL, NULL, 0, &t.err));
}

static void hangar_teardown(void)
{
    scenario_stop(&t);
}

/* The current one is main again afterwards. */
static void on_dev(void (*edit)(void))
{
    scenario_be_on(&t, "dev");
    edit();
    scenario_commit(&t, "on dev");
    scenario_be_on(&t, "main");
}

/* One on main, one on dev: a conflict, whichever is merged into the other. */
static void conflict_both_ways(void (*on_main)(void), void (*other)(void))
{
    on_dev(other);
    on_main();
    scenario_commit(&t, "on main");
    ck_assert_int_eq(scenario_merge(&t, "dev", BRC_MERGE_DRY_RUN), BRC_MERGE_CONFLICT);
    scenario_be_on(&t, "dev");
    ck_assert_int_eq(scenario_merge(&t, "main", BRC_MERGE_DRY_RUN), BRC_MERGE_CONFLICT);
    scenario_whole(&t);
}

static uint64_t count_log(const char *rev)
{
    const brc_commit *c;
    brc_iter *it;
    uint64_t n = 0;
    int rc;
    OK(&t, brc_log(&it, t.repo, rev, NULL, &t.err));
    while ((rc = brc_next(it, &c, &t.err)) > 0)
        n++;
    ck_assert_int_eq(rc, 0);
    brc_iter_free(it);
    return n;
}

/* ---- edits -------------------------------- */

static void writes(void)
{
    scenario_set_number(&t, "/a", 5, 55);
}

static void writes_in_group(void)
{
    scenario_set_number(&t, "/g/b", 5, 55);
}

static void adds_to_group(void)
{
    scenario_numbers(&t, "/g/new", 4, 2, 1);
}

static void deletes(void)
{
    OK(&t, brc_node_remove(t.session, "/a", &t.err));
}

static void deletes_group(void)
{
    OK(&t, brc_node_remove(t.session, "/g", &t.err));
}

static void replaces(void)
{
    const uint64_t shape = 5, chunk = 5;
    deletes();
    brc_array_free(scenario_array(&t, "/a", "float64", 1, &shape, &chunk, NULL, NULL));
}

static void replaces_by_group(void)
{
    deletes();
    OK(&t, brc_group_create(t.session, "/a", NULL, &t.err));
    scenario_numbers(&t, "/a/in", 4, 2, 1);
}

CASE("hangar", .setup = hangar_setup, .teardown = hangar_teardown);

/* ---- merges -------------------------------- */

LOOP(h01_a_write_to_an_array_that_is_deleted_is_no_orphan, 0, 2)
{
    conflict_both_ways(_i == 0 ? deletes : writes, _i == 0 ? writes : deletes);
}

LOOP(h01_what_is_new_in_a_group_that_is_deleted_is_not_lost, 0, 4)
{
    void (*const change)(void) = _i / 2 ? adds_to_group : writes_in_group;
    conflict_both_ways(_i % 2 ? change : deletes_group, _i % 2 ? deletes_group : change);
}

LOOP(h02_an_array_of_two_types_is_never_merged, 0, 2)
{
    conflict_both_ways(_i == 0 ? replaces : writes, _i == 0 ? writes : replaces);
}

LOOP(h03_a_group_in_place_of_an_array_that_was_written, 0, 2)
{
    conflict_both_ways(_i == 0 ? replaces_by_group : writes, _i == 0 ? writes : replaces_by_group);
}

static void commit_at(int64_t time_us)
{
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_oid id;
    opts.message = "a clock that goes back";
    opts.time_us = time_us;
    OK(&t, brc_session_commit(&id, t.session, &opts, &t.err));
}

/* Where both parted the element is 0. Dev made it what it was before, 1: that is a change. */
TEST(h04_merge_bases_do_not_ask_the_clock)
{
    scenario_set_number(&t, "/a", 0, 0);
    commit_at(4000000);
    OK(&t, brc_ref_create(t.repo, "back", NULL, NULL, 0, &t.err));
    scenario_set_number(&t, "/g/b", 0, 7);
    commit_at(3000000);
    scenario_be_on(&t, "back");
    scenario_set_number(&t, "/a", 0, 1);
    commit_at(2000000);
    scenario_be_on(&t, "main");
    ck_assert_int_eq(scenario_merge(&t, "back", 0), BRC_MERGE_MERGED);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 1);
    ck_assert_int_eq(scenario_number(&t, t.session, "/g/b", 0), 7);
}

/* The first parent of the last merge has been seen already when its second is looked at. */
TEST(h05_a_log_has_every_parent)
{
    brc_oid id;
    brc_commit *c;
    on_dev(writes);
    writes_in_group();
    scenario_commit(&t, "on main");
    ck_assert_int_eq(scenario_merge(&t, "dev", 0), BRC_MERGE_MERGED);
    on_dev(adds_to_group);
    scenario_be_on(&t, "dev");
    ck_assert_int_eq(scenario_merge(&t, "main", 0), BRC_MERGE_MERGED);
    ck_assert_uint_eq(count_log("dev"), 6);
    ck_assert_uint_eq(count_log("main"), 4);
    ck_assert_uint_eq(count_log("main..dev"), 2);
    OK(&t, brc_resolve(&id, t.repo, "dev", &t.err));
    OK(&t, brc_commit_read(&c, t.repo, &id, &t.err));
    ck_assert_uint_eq(c->nparents, 2);
    brc_commit_free(c);
}

TEST(h08_what_was_merged_is_not_merged_again)
{
    on_dev(writes);
    writes_in_group();
    scenario_commit(&t, "on main");
    ck_assert_int_eq(scenario_merge(&t, "dev", 0), BRC_MERGE_MERGED);
    const uint64_t n = count_log("main");
    ck_assert_int_eq(scenario_merge(&t, "dev", 0), BRC_MERGE_UP_TO_DATE);
    ck_assert_int_eq(scenario_merge(&t, "dev", BRC_MERGE_NO_FF), BRC_MERGE_UP_TO_DATE);
    ck_assert_uint_eq(count_log("main"), n);
}

/* ---- looking -------------------------------- */

TEST(h06_the_start_of_another_id_finds_nothing)
{
    char hex[65], start[9];
    brc_oid id, found;
    OK(&t, brc_resolve(&id, t.repo, "main", &t.err));
    memcpy(start, brc_oid_format(hex, &id), 8);
    start[8] = '\0';
    OK(&t, brc_resolve(&found, t.repo, start, &t.err));
    ck_assert_mem_eq(&found, &id, sizeof(id));
    for (int i = 0; i < 8; i++) { /* the base is the only commit */
        start[i] = start[i] == '0' ? '1' : '0';
        FAILS(&t, BRC_ENOTFOUND, brc_resolve(&found, t.repo, start, &t.err));
        start[i] = hex[i];
    }
    FAILS(&t, BRC_ENOTFOUND, brc_resolve(&found, t.repo, "0000", &t.err));
}

static int what_of(const char *a, const char *b, const char *path)
{
    const brc_change *c;
    brc_iter *it;
    int what = 0, rc;
    OK(&t, brc_diff(&it, t.repo, a, b, NULL, &t.err));
    while ((rc = brc_next(it, &c, &t.err)) > 0)
        if (strcmp(c->path, path) == 0)
            what = c->what;
    ck_assert_int_eq(rc, 0);
    brc_iter_free(it);
    return what;
}

/* From the first to the second, whether one follows the other or not. */
TEST(h07_a_difference_has_one_direction)
{
    on_dev(adds_to_group);
    ck_assert_int_eq(what_of("main", "dev", "/g/new"), BRC_ADDED);
    ck_assert_int_eq(what_of("dev", "main", "/g/new"), BRC_REMOVED);
    scenario_numbers(&t, "/mine", 6, 2, 40);
    scenario_commit(&t, "on main");
    ck_assert_int_eq(what_of("main", "dev", "/g/new"), BRC_ADDED);
    ck_assert_int_eq(what_of("dev", "main", "/g/new"), BRC_REMOVED);
    ck_assert_int_eq(what_of("main", "dev", "/mine"), BRC_REMOVED);
    ck_assert_int_eq(what_of("dev", "main", "/mine"), BRC_ADDED);
}

TEST(h13_a_name_that_begins_with_another_is_another)
{
    char names[100];
    scenario_numbers(&t, "/ab", 4, 2, 1);
    OK(&t, brc_group_create(t.session, "/g2", NULL, &t.err));
    scenario_commit(&t, "names");
    OK(&t, brc_node_remove(t.session, "/a", &t.err));
    OK(&t, brc_node_move(t.session, "/g", "/h", 0, &t.err));
    ck_assert_str_eq(scenario_tree(&t, t.session, "/", 1, names, sizeof(names)),
                     "/ /ab* /g2 /h /h/b* ");
    scenario_commit(&t, "changes");
    ck_assert_int_eq(what_of("HEAD~1", "HEAD", "/ab"), 0);
    ck_assert_int_eq(what_of("HEAD~1", "HEAD", "/g2"), 0);
    brc_log_opts opts = BRC_LOG_OPTS_INIT;
    const brc_commit *c;
    brc_iter *it;
    opts.path = "/ab";
    OK(&t, brc_log(&it, t.repo, NULL, &opts, &t.err));
    ck_assert_int_eq(brc_next(it, &c, &t.err), 1);
    ck_assert_str_eq(c->message, "names");
    ck_assert_int_eq(brc_next(it, &c, &t.err), 0);
    brc_iter_free(it);
}

TEST(h14_what_was_read_is_a_copy)
{
    int32_t data[8];
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    for (int times = 0; times < 2; times++) {
        OK(&t, brc_array_read(a, NULL, data, sizeof(data), &t.err));
        for (int i = 0; i < 8; i++)
            ck_assert_int_eq(data[i], i + 1);
        memset(data, 0xff, sizeof(data));
    }
    brc_array_free(a);
    scenario_whole(&t);
}

/* Two handles, each with arrays that stay open. */
TEST(h15_what_was_written_is_read)
{
    breccia *other;
    brc_array *mine, *theirs;
    int32_t data[8];
    OK(&t, brc_reopen(&other, t.repo, &t.err));
    brc_session *s = scenario_session(&t, other, NULL, BRC_SESSION_VIEW);
    OK(&t, brc_array_open(&mine, t.session, "/a", &t.err));
    OK(&t, brc_array_open(&theirs, s, "/a", &t.err));
    for (int32_t round = 0; round < 6; round++) {
        for (int i = 0; i < 8; i++)
            data[i] = 100 * round + i;
        OK(&t, brc_array_write(mine, NULL, data, sizeof(data), &t.err));
        if (round % 2 == 1)
            scenario_commit(&t, "round");
        memset(data, 0, sizeof(data));
        OK(&t, brc_array_read(theirs, NULL, data, sizeof(data), &t.err));
        ck_assert_int_eq(data[7], 100 * round + 7);
        OK(&t, brc_array_read(mine, NULL, data, sizeof(data), &t.err));
        ck_assert_int_eq(data[7], 100 * round + 7);
    }
    brc_array_free(mine);
    brc_array_free(theirs);
    brc_session_free(s);
    brc_free(other);
}

/* ---- failures -------------------------------- */

TEST(h18_a_call_that_fails_leaves_what_is_uncommitted)
{
    static const char nowhere[] = "0123456789abcdef0123456789abcdef";
    writes();
    FAILS(&t, BRC_ENOTFOUND, brc_ref_create(t.repo, "nowhere", nowhere, NULL, 0, &t.err));
    FAILS(&t, BRC_ENOTFOUND, brc_ref_create(t.repo, "nowhere", nowhere, NULL, BRC_REF_TAG, &t.err));
    FAILS(&t, BRC_ENOTFOUND, brc_switch(t.repo, "nowhere", BRC_SWITCH_DISCARD, &t.err));
    FAILS(&t, BRC_ENOTFOUND, brc_reset(t.repo, NULL, nowhere, BRC_RESET_HARD, NULL, &t.err));
    ck_assert(!scenario_clean(&t));
    scenario_reopen(&t);
    ck_assert(!scenario_clean(&t));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 5), 55);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 4), 5);
    scenario_commit(&t, "nothing was lost");
    ck_assert_uint_eq(count_log("main"), 2);
    scenario_whole(&t);
}

/* ---- codecs, backends and branches -------------------------------- */

#define PLAIN "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define PACK(bytes) "{\"name\":\"pack\",\"configuration\":{\"pack_bytes\":" bytes "}}"

/* Each test is made with codecs and with backends: from the file into packs and from there into
 * others, and the same with buckets. */
enum { BY_CODECS, BY_PACKS, BY_BUCKETS, WAYS };
static int way; /* one of these */

static void storage_setup(void)
{
    char text[300];
    scenario_bucket(text, "");
    hangar_setup();
}

CASE("storage", .setup = storage_setup, .teardown = hangar_teardown);

/* Gives an array's new chunks the first or the second of two ways to be stored. */
static void store_as(const char *path, int second)
{
    static const char *const ways[][2] = {
        { PLAIN ",{\"name\":\"gzip\",\"configuration\":{\"level\":1}}]",
          PLAIN ",{\"name\":\"gzip\",\"configuration\":{\"level\":2}}]" },
        { PACK("1048576"), PACK("2097152") },
    };
    char bucket[300];
    if (way == BY_CODECS)
        scenario_recode(&t, t.session, path, ways[way][second], 0);
    else
        scenario_set_backend(&t, t.session, path,
                             way == BY_PACKS ? ways[way][second]
                                             : scenario_bucket(bucket, second ? "two" : "one"));
}

static int is_stored_as_the_first(void)
{
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    const brc_array_info *info = brc_array_describe(a);
    static const char *const words[WAYS] = { "gzip", "1048576", "\"one\"" };
    const int is = strstr(way == BY_CODECS ? info->codecs_json : info->backend_json,
                          words[way]) != NULL;
    brc_array_free(a);
    return is;
}

static void encodes(void)
{
    store_as("/a", 0);
    writes();
}

static void encodes_else(void)
{
    store_as("/a", 1);
    scenario_set_number(&t, "/a", 1, 11);
}

/* B34 and B35: one side's, or both sides' the same; B39: fast-forward. */
LOOP(B34_B35_B39_the_storage_of_one_side_is_taken, 0, 3 * WAYS)
{
    const int which = _i % 3;
    way = _i / 3;
    on_dev(encodes);
    if (which == 1)
        scenario_set_number(&t, "/a", 1, 11);
    if (which == 2)
        store_as("/a", 0);
    if (which > 0)
        scenario_commit(&t, "on main");
    ck_assert_int_eq(scenario_merge(&t, "dev", 0),
                     which == 0 ? BRC_MERGE_FAST_FORWARD : BRC_MERGE_MERGED);
    ck_assert(is_stored_as_the_first());
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 5), 55);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 1), which == 1 ? 11 : 2);
    scenario_whole(&t);
}

/* About the storage alone: a side is chosen, and both sides' values are there. */
LOOP(B36_two_sides_storage_is_a_conflict_without_data, 0, WAYS)
{
    const brc_conflict *c;
    brc_merge_opts opts = BRC_MERGE_OPTS_INIT;
    brc_merge_result r = BRC_MERGE_RESULT_INIT;
    brc_iter *it;
    way = _i;
    on_dev(encodes);
    encodes_else();
    scenario_commit(&t, "on main");
    opts.flags = BRC_MERGE_DRY_RUN;
    OK(&t, brc_merge(&r, &it, t.repo, "dev", &opts, &t.err));
    ck_assert_int_eq(r.result, BRC_MERGE_CONFLICT);
    ck_assert_int_eq(brc_next(it, &c, &t.err), 1);
    ck_assert_str_eq(c->path, "/a");
    ck_assert_str_eq(c->kind, "storage");
    ck_assert_int_eq(brc_next(it, &c, &t.err), 0);
    brc_iter_free(it);
    ck_assert_int_eq(scenario_merge(&t, "dev", BRC_MERGE_THEIRS), BRC_MERGE_MERGED);
    ck_assert(is_stored_as_the_first());
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 5), 55);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 1), 11);
    scenario_whole(&t);
}

/* A change of storage alone does not keep an array. */
static void encodes_only(void)
{
    store_as("/a", 0);
}

LOOP(B37_a_deleted_array_that_is_stored_otherwise_is_deleted, 0, 2 * WAYS)
{
    way = _i / 2;
    on_dev(_i % 2 == 0 ? encodes_only : deletes);
    (_i % 2 == 0 ? deletes : encodes_only)();
    scenario_commit(&t, "on main");
    ck_assert_int_eq(scenario_merge(&t, "dev", 0), BRC_MERGE_MERGED);
    int kind = -1;
    OK(&t, brc_node_kind(&kind, t.session, "/a", &t.err));
    ck_assert_int_eq(kind, 0);
    scenario_whole(&t);
}

static void makes(void)
{
    scenario_numbers(&t, "/new", 8, 4, 1);
}

static void makes_encoded(void)
{
    makes();
    store_as("/new", 0);
}

LOOP(B38_the_same_new_array_stored_otherwise_is_a_conflict, 0, 2 * WAYS)
{
    way = _i / 2;
    conflict_both_ways(_i % 2 == 0 ? makes : makes_encoded,
                       _i % 2 == 0 ? makes_encoded : makes);
    scenario_be_on(&t, "main");
    ck_assert_int_eq(scenario_merge(&t, "dev", BRC_MERGE_THEIRS), BRC_MERGE_MERGED);
    ck_assert_int_eq(scenario_number(&t, t.session, "/new", 5), 6);
}

/* ---- backends -------------------------------- */

static int stub_opened;

static int stub_check(void *ctx, const brc_json *config, brc_buf *full, brc_error *err)
{
    (void)ctx, (void)config, (void)full, (void)err;
    return BRC_OK;
}

static int stub_open(void *ctx, void **state, const brc_json *config, const brc_backend_host *host,
                     brc_error *err)
{
    (void)ctx, (void)state, (void)config, (void)host, (void)err;
    stub_opened++;
    return BRC_OK;
}

static int stub_fetch(void *ctx, void *state, size_t n, brc_stored *const *items, brc_error *err)
{
    (void)ctx, (void)state;
    for (size_t i = 0; i < n; i++)
        items[i]->status = BRC_ENOTFOUND;
    return brc_fail(err, BRC_ENOTFOUND, "it is elsewhere");
}

static int stub_put(void *ctx, void *state, size_t n, brc_stored *const *items, brc_error *err)
{
    (void)ctx, (void)state, (void)n, (void)items, (void)err;
    return BRC_OK;
}

/* A backend that accepts chunks and keeps none, or (takes 0) one that is read-only. */
static brc_registry *stub_start(int takes)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    brc_registry *reg;
    const brc_backend b = { .size = sizeof(b), .name = "org.example.stub", .check = stub_check,
                            .open = stub_open, .fetch = stub_fetch,
                            .put = takes ? stub_put : NULL };
    scenario_close(&t);
    OK(&t, brc_registry_new(&reg, &t.err));
    OK(&t, brc_registry_add_backend(reg, &b, &t.err));
    opts.registry = reg;
    scenario_open(&t, &opts, 0);
    stub_opened = 0;
    return reg;
}

static void set_backend(const char *path)
{
    scenario_set_backend(&t, t.session, path, "org.example.stub");
}

/* A lost chunk is an error, never the fill value, and fsck reports it. */
LOOP(h09_a_backend_that_stores_nothing_is_found_out, 0, 2)
{
    const int32_t nines[8] = { 9, 9, 9, 9, 9, 9, 9, 9 };
    int32_t got[8];
    int faults = 0;
    uint64_t checked;
    brc_array *a;
    brc_registry *reg = stub_start(1);
    set_backend("/a");
    scenario_commit(&t, "elsewhere");
    if (_i == 1) { /* it took chunks when the array got it */
        scenario_close(&t);
        brc_registry_free(reg);
        scenario_open(&t, NULL, 0);
        reg = stub_start(0);
    }
    OK(&t, brc_array_open(&a, t.session, "/a", &t.err));
    if (_i == 0) {
        OK(&t, brc_array_write(a, NULL, nines, sizeof(nines), &t.err));
        ck_assert_int_lt(brc_array_read(a, NULL, got, sizeof(got), &t.err), 0);
        OK(&t, brc_fsck(t.repo, 0, fsck_counts, NULL, &faults, &checked, &t.err));
        ck_assert_int_gt(faults, 0);
    } else {
        FAILS(&t, BRC_EUNSUPPORTED, brc_array_write(a, NULL, nines, sizeof(nines), &t.err));
        ck_assert_int_eq(scenario_clean(&t), 1);
        ck_assert_int_eq(scenario_number(&t, t.session, "/a", 5), 6);
        scenario_whole(&t);
    }
    brc_array_free(a);
    scenario_close(&t);
    brc_registry_free(reg);
    scenario_open(&t, NULL, 0);
}

/* Once for all arrays and sessions, and not before something is there to be read or written. */
TEST(h17_a_backend_is_opened_when_it_is_used_and_once)
{
    int32_t got[8] = { 0 };
    brc_array *a;
    brc_registry *reg = stub_start(1);
    set_backend("/a");
    set_backend("/g/b");
    scenario_commit(&t, "elsewhere");
    for (int i = 0; i < 6; i++) {
        OK(&t, brc_array_open(&a, t.session, i % 2 ? "/a" : "/g/b", &t.err));
        OK(&t, brc_array_read(a, NULL, got, sizeof(got), &t.err));
        brc_array_free(a);
        scenario_be_on(&t, i % 2 ? "dev" : "main");
    }
    ck_assert_int_eq(stub_opened, 0);
    scenario_be_on(&t, "main");
    for (int i = 0; i < 6; i++) {
        scenario_set_number(&t, i % 2 ? "/a" : "/g/b", i < 3 ? 0 : 4, 100 + i);
        ck_assert_int_eq(stub_opened, 1);
        OK(&t, brc_session_discard(t.session, &t.err));
    }
    scenario_close(&t);
    brc_registry_free(reg);
    scenario_open(&t, NULL, 0);
}
