/* Two handles that change one chunk of the shared draft at the same time, each a part of it: both
 * parts are there in the end, whatever the other does in between. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../kit/hook_codec.h"
#include "../kit/scenario.h"

Suite *partial_writes_suite(void);

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define ZSTD "{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":false}}"

enum { EDGE = 256, ELEMENTS = 4 * EDGE };

static scenario first, second;
static brc_registry *reg;
static pthread_t thread;
static int what;

static void partial_start(void)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    static int32_t numbers[ELEMENTS];
    const uint64_t shape = ELEMENTS, chunk = EDGE;
    reg = hook_registry(&first.err);
    ck_assert_ptr_nonnull(reg);
    scenario_folder(&first);
    opts.registry = reg;
    scenario_open(&first, &opts, BRC_OPEN_CREATE);
    for (int i = 0; i < ELEMENTS; i++)
        numbers[i] = i;
    brc_array *a = scenario_array(&first, "/a", "int32", 1, &shape, &chunk, "0",
                                  "[" LITTLE "," HOOK_CODEC "," ZSTD "]");
    OK(&first, brc_array_write(a, NULL, numbers, sizeof(numbers), &first.err));
    brc_array_free(a);
    scenario_commit(&first, "first");
    memcpy(second.file, first.file, sizeof(second.file));
    scenario_open(&second, &opts, 0);
}

static void partial_stop(void)
{
    hook_decode(NULL, NULL, 0);
    scenario_close(&second);
    scenario_stop(&first);
    brc_registry_free(reg);
}

static void write_part(scenario *t, const char *text, int32_t value)
{
    brc_array *a;
    brc_sel sel = BRC_SEL_INIT;
    OK(t, brc_array_open(&a, t->session, "/a", &t->err));
    OK(t, brc_sel_parse(&sel, a, text, &t->err));
    OK(t, brc_array_fill(a, &sel, &value, &t->err));
    brc_array_free(a);
}

static void *change_meanwhile(void *unused)
{
    brc_array *a;
    const uint64_t longer = 2 * ELEMENTS;
    (void)unused;
    if (what == 0) {
        write_part(&second, "[128:640]", 7);
        return NULL;
    }
    OK(&second, brc_array_open(&a, second.session, "/a", &second.err));
    OK(&second, what == 1 ? brc_array_set_codecs(a, "[" LITTLE "]", 1, &second.err)
                          : brc_array_resize(a, &longer, &second.err));
    brc_array_free(a);
    return NULL;
}

/* The other may come first or have to wait: it gets some time to come first. */
static void let_another_change(void *ctx)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 300000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    ck_assert_int_eq(pthread_create(&thread, NULL, change_meanwhile, NULL), 0);
    *(int *)ctx = pthread_timedjoin_np(thread, NULL, &until) != 0;
}

/* The first has read the chunk and has not stored it. */
START_TEST(both_parts_are_there)
{
    static int32_t got[ELEMENTS];
    int is_running = 0;
    brc_array *a;
    brc_sel sel = BRC_SEL_INIT;
    what = _i;
    hook_decode(let_another_change, &is_running, 1);
    write_part(&first, "[0:128]", 5);
    ck_assert_int_eq(hook_calls(), 1);
    if (is_running)
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
    OK(&first, brc_array_open(&a, first.session, "/a", &first.err));
    OK(&first, brc_sel_parse(&sel, a, "[0:1024]", &first.err));
    OK(&first, brc_array_read(a, &sel, got, sizeof(got), &first.err));
    for (int i = 0; i < ELEMENTS; i++)
        ck_assert_int_eq(got[i], i < 128 ? 5 : what == 0 && i < 640 ? 7 : i);
    ck_assert_uint_eq(brc_array_describe(a)->shape[0], what == 2 ? 2 * ELEMENTS : ELEMENTS);
    brc_array_free(a);
    scenario_whole(&first);
}
END_TEST

Suite *partial_writes_suite(void)
{
    Suite *suite = suite_create("partial_writes");
    TCase *tc = tcase_create("partial");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, partial_start, partial_stop);
    tcase_add_loop_test(tc, both_parts_are_there, 0, 3);
    suite_add_tcase(suite, tc);
    return suite;
}
