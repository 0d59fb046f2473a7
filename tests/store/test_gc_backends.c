/*
 * The collection of garbage where chunks lie in other backends (tests/plugins/dirs.c): what is
 * dropped there, what stays because it shares a pack, and what becomes of it when a backend fails
 * or the collection is killed.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/codec/registry.h"
#include "../kit/dirs_kit.h"
#include "../kit/own_rows.h"
#include "../kit/plugin_kit.h"
#include "../kit/suite.h"

TEST_SUITE(gc_backends);

static dirs d;

static void backends_setup(void)
{
    dirs_start(&d);
    scenario_no_window(&d.t);
    brc_array_free(dirs_new(&d, "/none", NULL));
    scenario_commit(&d.t, "first");
}

static void backends_teardown(void)
{
    scenario_whole(&d.t);
    dirs_stop(&d);
}

static int collect_all(void)
{
    return brc_gc(d.t.repo, NULL, NULL, &d.t.err);
}

static int files(void)
{
    return dirs_files(&d, "a.chunks", NULL);
}

static int left_rows(void)
{
    return (int)scenario_ask(&d.t, "SELECT count(*) FROM removed WHERE backend<>0");
}

/* An uncommitted array, and nothing of it uncommitted any more. */
static void make_garbage_in(const char *backend, int32_t first)
{
    brc_array *a = dirs_new(&d, "/g", backend);
    dirs_put(&d, a, first);
    brc_array_free(a);
    OK(&d.t, brc_session_discard(d.t.session, &d.t.err));
}

static void set_stubborn(unsigned n)
{
    char path[4096];
    plugin_path(path, sizeof(path), "dirs");
    void *so = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    ck_assert_ptr_nonnull(so);
    unsigned *of = dlsym(so, "dirs_stubborn");
    ck_assert_ptr_nonnull(of);
    *of = n;
    dlclose(so);
}

static const char *const kinds[] = {DIR_A, HERE, IN("pack", "a.chunks"), IN("packs", "a.chunks")};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

CASE("backends", .setup = backends_setup, .teardown = backends_teardown, .timeout = 60);

LOOP(what_nothing_names_goes_there_too, 0, KINDS)
{
    brc_array *a = dirs_new(&d, "/a", kinds[_i]);
    dirs_put(&d, a, 3);
    brc_array_free(a);
    scenario_commit(&d.t, "kept");
    const int before = files();
    make_garbage_in(kinds[_i], 1000);
    ck_assert_int_gt(files(), before);
    OK(&d.t, collect_all());
    ck_assert_int_eq(files(), before);
    ck_assert_int_eq(left_rows(), 0);
    a = dirs_array(&d, d.t.session, "/a");
    dirs_check(&d, a, 3);
    brc_array_free(a);
}

TEST(a_pack_stays_as_long_as_something_lies_in_it)
{
    brc_array *a = dirs_new(&d, "/a", IN("pack", "a.chunks"));
    dirs_put(&d, a, 3);
    const int packs = files();
    brc_array *b = dirs_new(&d, "/b", NULL);
    dirs_put_chunk(&d, b, 0, 9);
    for (uint64_t i = 1; i < CHUNKS; i++) /* all but the first are overwritten */
        dirs_put_chunk(&d, a, i, 0);
    scenario_commit(&d.t, "one of them");
    OK(&d.t, collect_all());
    ck_assert_int_gt(files(), 0);
    ck_assert_int_le(files(), packs);
    ck_assert_int_eq(dirs_get_chunk(&d, a, 0), 3);
    ck_assert_int_eq(left_rows(), 0);
    dirs_put_chunk(&d, a, 0, 0);
    scenario_commit(&d.t, "none");
    OK(&d.t, brc_reset(d.t.repo, NULL, "HEAD~2", BRC_RESET_HARD, NULL, &d.t.err));
    OK(&d.t, collect_all());
    ck_assert_int_eq(files(), 0);
    ck_assert_int_eq((int)scenario_ask(&d.t, "SELECT count(*) FROM place"), 0);
    brc_array_free(a);
    brc_array_free(b);
}

/* Packs have numbers of their own, which are those of rows in the file, too. */
TEST(rows_of_the_file_are_closed_whatever_lies_elsewhere)
{
    brc_array *a = dirs_new(&d, "/a", IN("packs", "a.chunks"));
    for (uint64_t i = 0; i < CHUNKS; i++)
        dirs_put_chunk(&d, a, i, 100 + (int32_t)i);
    scenario_numbers(&d.t, "/here", 64, 1, 5000);
    scenario_commit(&d.t, "both");
    scenario_sql(&d.t, OWN_ROWS_HALVED);
    ck_assert_int_gt(scenario_ask(&d.t, "SELECT count(*) FROM object WHERE backend<>0 AND place IN"
                                        " (SELECT place FROM removed)"), 0);
    OK(&d.t, collect_all());
    ck_assert_int_eq((int)scenario_ask(&d.t, "SELECT count(*) FROM removed"), 0);
    for (uint64_t i = 0; i < CHUNKS; i++)
        ck_assert_int_eq(dirs_get_chunk(&d, a, i), 100 + (int32_t)i);
    for (uint64_t i = 0; i < 64; i++)
        ck_assert_int_eq(scenario_number(&d.t, d.t.session, "/here", i), 5000 + (int32_t)i);
    brc_array_free(a);
}

static const char *const stubborn[] = {IN("stubborn", "a.chunks"), IN("stubbornpack", "a.chunks")};

LOOP(what_a_backend_cannot_drop_stays_noted, 0, 2)
{
    brc_gc_report report = BRC_GC_REPORT_INIT;
    make_garbage_in(stubborn[_i], 1000);
    const int before = files();
    const int64_t objects = scenario_ask(&d.t, "SELECT count(*) FROM object");
    set_stubborn(_i == 0 ? 3 : 1);
    FAILS(&d.t, BRC_EIO, brc_gc(d.t.repo, NULL, &report, &d.t.err));
    dirs_say(&d, _i == 0 ? "could not remove 3 items," : "could not remove 1 item,");
    dirs_say(&d, "Permission denied");
    dirs_say(&d, "the next gc tries again");
    ck_assert_uint_ge(report.objects_removed, CHUNKS);
    ck_assert_int_lt(scenario_ask(&d.t, "SELECT count(*) FROM object"), objects);
    ck_assert_int_eq(files(), _i == 0 ? 3 : before);
    ck_assert_int_eq(left_rows(), _i == 0 ? 3 : 1);
    scenario_whole(&d.t);
    OK(&d.t, collect_all());
    ck_assert_int_eq(files(), 0);
    ck_assert_int_eq((int)scenario_ask(&d.t, "SELECT count(*) FROM place"), 0);
}

LOOP(what_is_written_again_meanwhile_is_not_dropped, 0, 2)
{
    make_garbage_in(stubborn[_i], 1000);
    set_stubborn(1000);
    FAILS(&d.t, BRC_EIO, collect_all());
    set_stubborn(0);
    brc_array *a = dirs_new(&d, "/again", stubborn[_i]);
    dirs_put(&d, a, 1000);
    scenario_commit(&d.t, "again");
    OK(&d.t, collect_all());
    dirs_check(&d, a, 1000);
    ck_assert_int_eq(left_rows(), 0);
    ck_assert_int_eq(files(), _i == 0 ? CHUNKS : 1);
    brc_array_free(a);
}

/* The collection dies within a drop that has done half of its work. */
TEST(killed_while_it_drops_it_is_gone_on_with)
{
    int status;
    make_garbage_in(IN("dropdies", "a.chunks"), 1000);
    dirs_close(&d);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        dirs_open(&d, 0);
        _exit(collect_all() != BRC_OK);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(files(), CHUNKS / 2);
    scenario_sql(&d.t, "UPDATE backend SET spec='" DIR_A "', checksum=row_sum('backend', id, '"
                       DIR_A "')");
    dirs_open(&d, 0);
    scenario_whole(&d.t);
    OK(&d.t, collect_all());
    ck_assert_int_eq(files(), 0);
    ck_assert_int_eq((int)scenario_ask(&d.t, "SELECT count(*) FROM place"), 0);
}

TEST(a_backend_that_is_not_known_here_keeps_what_it_has)
{
    make_garbage_in(DIR_A, 1000);
    dirs_close(&d);
    scenario_open(&d.t, NULL, 0);
    OK(&d.t, collect_all());
    ck_assert_int_eq(files(), CHUNKS);
    ck_assert_int_eq(left_rows(), CHUNKS);
    scenario_close(&d.t);
    dirs_open(&d, 0);
    OK(&d.t, collect_all());
    ck_assert_int_eq(files(), 0);
}
