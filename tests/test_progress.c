/* What a progress function is told: one total that stays, a count that never falls and
 * reaches it; and that it can stop the call. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../src/base/buf.h"
#include "../src/breccia.h"
#include "kit/exchange_kit.h"

Suite *progress_suite(void);

enum { ROWS = 512, COLUMNS = 1024, BYTES = ROWS * COLUMNS * 4 };

typedef struct told {
    size_t calls;
    uint64_t done, total, stop_at;
    int bad; /* it fell, went past its total, or the total changed */
} told;

static told heard;
static exchange_kit kit;

static int hear(void *ctx, const char *phase, uint64_t done, uint64_t total)
{
    told *t = ctx;
    t->bad |= phase == NULL || done < t->done || (total > 0 && done > total);
    t->bad |= t->calls > 0 && total != t->total;
    t->calls++;
    t->done = done;
    t->total = total;
    return t->stop_at > 0 && done >= t->stop_at;
}

static void listen_anew(uint64_t stop_at)
{
    memset(&heard, 0, sizeof(heard));
    heard.stop_at = stop_at;
}

/* At least `steps` calls, and the end is the total: `bytes`, where that is not 0. */
static void check_heard(const char *what, size_t steps, uint64_t bytes)
{
    ck_assert_msg(!heard.bad, "%s: it fell, or its total changed", what);
    ck_assert_msg(heard.calls >= steps, "%s: %zu calls", what, heard.calls);
    ck_assert_msg(heard.total > 0 && heard.done == heard.total, "%s: %llu of %llu", what,
                  (unsigned long long)heard.done, (unsigned long long)heard.total);
    if (bytes > 0)
        ck_assert_uint_eq(heard.total, bytes);
}

#define DONE(call) ck_assert_msg((call) == BRC_OK, "%s", kit.err.message)

static void progress_setup(void)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    brc_buf bytes = BRC_BUF_INIT;
    uint32_t *data = malloc(BYTES);
    ck_assert_ptr_nonnull(data);
    for (uint32_t i = 0; i < ROWS * COLUMNS; i++)
        data[i] = i * 2654435761u;
    exchange_start(&kit);
    brc_session_free(kit.session);
    brc_free(kit.repo);
    opts.progress = hear;
    opts.progress_ctx = &heard;
    opts.memory = 1 << 20;
    DONE(brc_open(&kit.repo, exchange_path(&kit, "test.brc"), &opts, &kit.err));
    DONE(brc_session_open(&kit.session, kit.repo, NULL, BRC_SESSION_WRITE, &kit.err));
    exchange_npy(&bytes, "{'descr': '<u4', 'fortran_order': False, 'shape': (512, 1024), }", data,
                 BYTES);
    exchange_file(&kit, "a.npy", bytes.data, bytes.len);
    brc_buf_dispose(&bytes);
    exchange_npy(&bytes, "{'descr': '<u4', 'fortran_order': True, 'shape': (512, 1024), }", data,
                 BYTES);
    exchange_file(&kit, "f.npy", bytes.data, bytes.len);
    brc_buf_dispose(&bytes);
    free(data);
}

static void progress_teardown(void)
{
    exchange_stop(&kit);
}

static void bring_in(const char *file, const char *path)
{
    static const uint64_t chunk[2] = { 32, 1024 };
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    opts.chunk = chunk;
    opts.nchunk = 2;
    listen_anew(0);
    DONE(brc_import(kit.session, exchange_path(&kit, file), path, &opts, &kit.err));
}

START_TEST(f16_import_has_one_total)
{
    bring_in("a.npy", "/a");
    check_heard("import of .npy", 16, BYTES);
    bring_in("f.npy", "/f");
    check_heard("import in the other order", 8, BYTES);
    listen_anew(0);
    DONE(brc_export(kit.session, "/", exchange_path(&kit, "both.npz"), NULL, &kit.err));
    check_heard("export of .npz", 16, 2 * BYTES);
    listen_anew(0);
    DONE(brc_import(kit.session, exchange_path(&kit, "both.npz"), "/npz", NULL, &kit.err));
    check_heard("import of .npz", 2, 0);
}
END_TEST

START_TEST(f16_export_has_one_total)
{
    static const char *const names[] = { "x.npy", "x.zarr", "x.zip", "x.h5", "x.nc" };
    brc_array *a;
    uint64_t large[2] = { 4 * ROWS, COLUMNS };
    bring_in("a.npy", "/a");
    DONE(brc_array_open(&a, kit.session, "/a", &kit.err)); /* three quarters are absent */
    DONE(brc_array_resize(a, large, &kit.err));
    brc_array_free(a);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        listen_anew(0);
        DONE(brc_export(kit.session, "/a", exchange_path(&kit, names[i]), NULL, &kit.err));
        check_heard(names[i], 2, 4 * BYTES);
    }
}
END_TEST

START_TEST(f16_elements_codecs_and_checks)
{
    brc_array *a;
    uint64_t checked;
    void *data = malloc(BYTES);
    bring_in("a.npy", "/a");
    DONE(brc_array_open(&a, kit.session, "/a", &kit.err));
    listen_anew(0);
    DONE(brc_array_read(a, NULL, data, BYTES, &kit.err));
    check_heard("read", 16, BYTES);
    listen_anew(0);
    DONE(brc_array_write(a, NULL, data, BYTES, &kit.err));
    check_heard("write", 16, BYTES);
    listen_anew(0);
    DONE(brc_array_load_npy(a, NULL, -1, exchange_path(&kit, "a.npy"), &kit.err));
    check_heard("load", 16, BYTES);
    listen_anew(0);
    DONE(brc_array_set_codecs(a, "[{\"name\":\"bytes\",\"configuration\":{\"endian\":"
                                 "\"big\"}}]", 1, &kit.err));
    check_heard("codecs", 16, BYTES);
    listen_anew(0);
    DONE(brc_fsck(kit.repo, 0, NULL, NULL, &checked, &kit.err));
    check_heard("fsck", 16, 0);
    listen_anew(0); /* two calls, one total */
    brc_progress_begin(kit.repo, "both", 2 * BYTES);
    DONE(brc_array_read(a, NULL, data, BYTES, &kit.err));
    DONE(brc_array_read(a, NULL, data, BYTES, &kit.err));
    brc_progress_end(kit.repo, BRC_OK);
    check_heard("two reads", 32, 2 * BYTES);
    brc_array_free(a);
    free(data);
}
END_TEST

/* A result other than 0 stops the call, and nothing has changed. */
START_TEST(f16_progress_stops_the_call)
{
    int kind;
    listen_anew(BYTES / 2);
    ck_assert_int_eq(brc_import(kit.session, exchange_path(&kit, "a.npy"), "/a", NULL, &kit.err),
                     BRC_EINTERRUPT);
    ck_assert_uint_lt(heard.done, BYTES);
    DONE(brc_node_kind(&kind, kit.session, "/a", &kit.err));
    ck_assert_int_eq(kind, 0);
    bring_in("a.npy", "/a"); /* the next one counts from the start */
    check_heard("import", 2, BYTES);
}
END_TEST

Suite *progress_suite(void)
{
    Suite *s = suite_create("progress");
    TCase *tc = tcase_create("progress");
    tcase_add_checked_fixture(tc, progress_setup, progress_teardown);
    tcase_add_test(tc, f16_import_has_one_total);
    tcase_add_test(tc, f16_export_has_one_total);
    tcase_add_test(tc, f16_elements_codecs_and_checks);
    tcase_add_test(tc, f16_progress_stops_the_call);
    suite_add_tcase(s, tc);
    return s;
}
