/* Restoring a region: whatever the grids, fill values and shapes then and now, the selection is
 * what it was and the rest is what it is. Chunks that are the same are not decoded. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/buf.h"
#include "../../src/breccia_codec.h"
#include "../kit/ios.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"
#include "../kit/watched_codec.h"

TEST_SUITE(restore);

#define EXTENT 17
#define SEEDS 60

static unsigned restore_random(unsigned *state, unsigned below)
{
    *state = *state * 1103515245u + 12345u;
    return (*state >> 16) % below;
}

/* ---- a codec that counts what it decodes -------------------------------- */

static atomic_int decoded;

static void count_restored(brc_span bytes)
{
    (void)bytes;
    atomic_fetch_add(&decoded, 1);
}

static const watcher restored = { "https://breccia.example/counted", NULL, count_restored };

#define COUNTED                                                                      \
    "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},"               \
    "{\"name\":\"https://breccia.example/counted\"},"                                   \
    "{\"name\":\"zstd\",\"configuration\":{\"level\":1}}]"

CASE("regions");

/* The array has 4 x 4 chunks of 4 x 4 elements. Rows 2 to 13 are restored: two rows of chunks are
 * whole. */
TEST(whole_chunks_that_are_the_same_are_not_decoded)
{
    scenario t;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    const uint64_t shape[2] = { 16, 16 }, chunk[2] = { 4, 4 };
    int32_t data[256], got[256];
    const int32_t other = 1000;
    brc_sel sel = BRC_SEL_INIT;
    scenario_folder(&t);
    brc_registry *reg = watched_registry(&restored, &t.err);
    opts.registry = reg;
    scenario_open(&t, &opts, BRC_OPEN_CREATE);
    brc_array *a = scenario_array(&t, "/a", "int32", 2, shape, chunk, NULL, COUNTED);
    for (int i = 0; i < 256; i++)
        data[i] = i / 16 >= 4 && i / 16 < 8 && i % 16 < 4 ? 0 : 1 + i / 16; /* one is absent */
    OK(&t, brc_array_write(a, NULL, data, sizeof(data), &t.err));
    scenario_commit(&t, "one");
    OK(&t, brc_array_fill(a, NULL, &other, &t.err));
    scenario_commit(&t, "two");
    OK(&t, brc_sel_parse(&sel, a, "[2:14, :]", &t.err));
    atomic_store(&decoded, 0);
    OK(&t, brc_array_restore(a, &sel, "HEAD~1", &t.err));
    const int then = atomic_load(&decoded);
    ck_assert_int_ge(then, 8);  /* the rows of chunks that are cut ... */
    ck_assert_int_le(then, 24); /* ... read, laid over what is there, and read back */
    OK(&t, brc_array_read(a, NULL, got, sizeof(got), &t.err));
    for (int i = 0; i < 256; i++)
        ck_assert_int_eq(got[i], i / 16 >= 2 && i / 16 < 14 ? data[i] : 1000);
    atomic_store(&decoded, 0);
    OK(&t, brc_array_restore(a, NULL, "HEAD~1", &t.err));
    ck_assert_int_eq(atomic_load(&decoded), 0);
    OK(&t, brc_array_restore(a, NULL, NULL, &t.err));
    ck_assert_int_eq(scenario_clean(&t), 1);
    brc_array_free(a);
    scenario_stop(&t);
    brc_registry_free(reg);
}

/* ---- whatever changed -------------------------------- */

typedef struct side {
    uint64_t shape[2], chunk[2];
} side;

/* Elements of a fixed size, or "" to "xxxxx" with their counts in front; part of the array is not
 * written. */
static void write_random_array(scenario *t, side *s, unsigned form, unsigned *state,
                               const char *dtype, const uint64_t *shape)
{
    char fill[8] = "0";
    brc_sel sel = BRC_SEL_INIT;
    for (int i = 0; i < 2; i++) {
        s->shape[i] = shape[i] + restore_random(state, 2) * restore_random(state, 5);
        s->chunk[i] = 1 + restore_random(&form, 7);
    }
    fill[0] = (char)('0' + restore_random(state, 2));
    const int is_text = strcmp(dtype, "string") == 0;
    brc_array *a = scenario_array(t, "/a", dtype, 2, s->shape, s->chunk, is_text ? "q" : fill,
                                  NULL);
    for (int n = 0; n < 2; n++) {
        brc_buf bytes = BRC_BUF_INIT;
        sel_all(&sel, a);
        for (int i = 0; i < 2; i++) {
            sel.start[i] = restore_random(state, (unsigned)s->shape[i]);
            sel.count[i] = 1 + restore_random(state, (unsigned)(s->shape[i] - sel.start[i]));
        }
        for (uint64_t i = 0; i < brc_sel_count(&sel); i++) {
            const uint32_t value = restore_random(state, 6);
            OK(t, brc_buf_append(&bytes, &value, 4, &t->err));
            OK(t, brc_buf_append(&bytes, "xxxxx", is_text ? value : 0, &t->err));
        }
        OK(t, brc_array_write(a, &sel, bytes.data, bytes.len, &t->err));
        brc_buf_dispose(&bytes);
    }
    brc_array_free(a);
}

/* The element at an index, as io_elements() gives it. */
static brc_buf element_at(scenario *t, brc_array *a, uint64_t i, uint64_t j)
{
    brc_buf out = BRC_BUF_INIT;
    brc_sel sel = { .size = sizeof(brc_sel), .ndim = 2,
                    .start = { i, j }, .count = { 1, 1 }, .step = { 1, 1 } };
    OK(t, io_elements(a, &sel, &out, &t->err));
    return out;
}

static int is_selected(const brc_sel *sel, int axis, uint64_t i)
{
    return i >= sel->start[axis] && (i - sel->start[axis]) % sel->step[axis] == 0 &&
           (i - sel->start[axis]) / sel->step[axis] < sel->count[axis];
}

static void check_restored(scenario *t, const brc_sel *sel, const uint64_t *shape)
{
    brc_session *one, *two;
    brc_array *a[3];
    OK(t, brc_session_open(&one, t->repo, "HEAD~1", BRC_SESSION_AT, &t->err));
    OK(t, brc_session_open(&two, t->repo, "HEAD", BRC_SESSION_AT, &t->err));
    OK(t, brc_array_open(&a[0], one, "/a", &t->err));
    OK(t, brc_array_open(&a[1], two, "/a", &t->err));
    OK(t, brc_array_open(&a[2], t->session, "/a", &t->err));
    for (uint64_t i = 0; i < shape[0]; i++)
        for (uint64_t j = 0; j < shape[1]; j++) {
            const int then = is_selected(sel, 0, i) && is_selected(sel, 1, j);
            brc_buf want = element_at(t, a[then ? 0 : 1], i, j), got = element_at(t, a[2], i, j);
            ck_assert_msg(got.len == want.len && memcmp(got.data, want.data, got.len) == 0,
                          "element %d, %d", (int)i, (int)j);
            brc_buf_dispose(&want);
            brc_buf_dispose(&got);
        }
    for (int i = 0; i < 3; i++)
        brc_array_free(a[i]);
    brc_session_free(one);
    brc_session_free(two);
}

LOOP(a_selection_is_what_it_was_and_the_rest_what_it_is, 0, SEEDS)
{
    unsigned state = 77 + 1000 * (unsigned)_i;
    const char *dtype = _i % 3 == 2 ? "string" : "int32";
    const uint64_t rows = 1 + restore_random(&state, EXTENT);
    const uint64_t shape[2] = { rows, 1 + restore_random(&state, 9) };
    const unsigned same_grid = restore_random(&state, 2);
    side then, now;
    brc_sel sel = { .size = sizeof(brc_sel), .ndim = 2 };
    scenario t;
    scenario_start(&t);
    const unsigned form = state;
    write_random_array(&t, &then, form, &state, dtype, shape);
    scenario_commit(&t, "one");
    OK(&t, brc_node_remove(t.session, "/a", &t.err));
    write_random_array(&t, &now, same_grid ? form : state, &state, dtype, shape);
    scenario_commit(&t, "two");
    for (int i = 0; i < 2; i++) {
        const int all = restore_random(&state, 2) == 0;
        sel.step[i] = all ? 1 : 1 + restore_random(&state, 3);
        sel.start[i] = all ? 0 : restore_random(&state, (unsigned)shape[i]);
        sel.count[i] = (shape[i] - sel.start[i] - 1) / sel.step[i] + 1;
    }
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    OK(&t, brc_array_restore(a, &sel, "HEAD~1", &t.err));
    brc_array_free(a);
    check_restored(&t, &sel, now.shape);
    scenario_whole(&t);
    scenario_stop(&t);
}

/* Nothing is stored on either side, and what that means has changed. */
TEST(absent_chunks_are_what_they_were)
{
    scenario t;
    const uint64_t shape[1] = { 9 }, chunk[1] = { 4 };
    int32_t got[9];
    scenario_start(&t);
    brc_array_free(scenario_array(&t, "/a", "int32", 1, shape, chunk, "5", NULL));
    scenario_commit(&t, "one");
    OK(&t, brc_node_remove(t.session, "/a", &t.err));
    brc_array *a = scenario_array(&t, "/a", "int32", 1, shape, chunk, "6", NULL);
    OK(&t, brc_array_restore(a, NULL, NULL, &t.err));
    OK(&t, brc_array_read(a, NULL, got, sizeof(got), &t.err));
    for (int i = 0; i < 9; i++)
        ck_assert_int_eq(got[i], 5);
    brc_array_free(a);
    scenario_stop(&t);
}
