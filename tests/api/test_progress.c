/* The arguments of a progress function: one total that stays, a count that never falls and
 * reaches it; that it can stop the call; and the line that the command makes of it. */
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../cli/cli.h"
#include "../../cli/cmd/commands.h"
#include "../../src/base/buf.h"
#include "../../src/breccia.h"
#include "../kit/converters.h"
#include "../kit/exchange_kit.h"
#include "../kit/suite.h"

TEST_SUITE(progress);

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
    t->bad |= t->total > 0 && total != t->total; /* once it is known */
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
    opts.libexec = converters_folder();
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

CASE("progress", .setup = progress_setup, .teardown = progress_teardown);

TEST(f16_import_has_one_total)
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

/* Compares HEAD with the uncommitted state. Returns the bytes of chunks that were read for that. */
static uint64_t bytes_compared(uint64_t values)
{
    brc_diff_opts opts = BRC_DIFF_OPTS_INIT;
    const brc_change *change;
    brc_iter *it;
    opts.flags = BRC_DIFF_ELEMENTS;
    opts.values = values;
    listen_anew(0);
    DONE(brc_diff(&it, kit.repo, "HEAD", NULL, &opts, &kit.err));
    ck_assert_int_eq(brc_next(it, &change, &kit.err), 1);
    ck_assert_uint_eq(change->nvalues, values);
    brc_iter_free(it);
    return heard.done;
}

/* No chunk is decoded once for the figures, and again for the values. */
TEST(f26_values_come_with_the_figures)
{
    const uint32_t element = 7;
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_sel some = BRC_SEL_INIT;
    brc_array *a;
    brc_oid id;
    opts.message = "before";
    bring_in("a.npy", "/a");
    DONE(brc_session_commit(&id, kit.session, &opts, &kit.err));
    DONE(brc_array_open(&a, kit.session, "/a", &kit.err));
    DONE(brc_sel_parse(&some, a, "[::32, 5]", &kit.err));
    DONE(brc_array_fill(a, &some, &element, &kit.err));
    brc_array_free(a);
    const uint64_t figures = bytes_compared(0);
    ck_assert_uint_gt(figures, BYTES / 2);
    ck_assert_uint_eq(bytes_compared(3), figures);
    ck_assert_uint_eq(bytes_compared(16), figures);
}

/* Two arrays of BYTES each below /g and one of BYTES / 4, in a file of each format. */
static void make_hierarchy(const char *name, const char *format)
{
    static int made;
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    if (!made++) {
        brc_array *a;
        uint64_t quarter[2] = { ROWS / 4, COLUMNS };
        bring_in("a.npy", "/g/a");
        bring_in("a.npy", "/g/below/b");
        bring_in("a.npy", "/g/small");
        DONE(brc_array_open(&a, kit.session, "/g/small", &kit.err));
        DONE(brc_array_resize(a, quarter, &kit.err));
        brc_array_free(a);
    }
    opts.format = format;
    DONE(brc_export(kit.session, "/g", exchange_path(&kit, name), &opts, &kit.err));
}

static uint64_t import_bytes(const char *name, const brc_xfer_opts *opts)
{
    uint64_t bytes;
    DONE(brc_import_bytes(&bytes, kit.session, exchange_path(&kit, name), opts, &kit.err));
    return bytes;
}

static const struct {
    const char *name, *format, *inner;
} hierarchies[] = { { "h.zarr", "zarr3", "/below" }, { "h2", "zarr2", "below" },
                    { "h.zip", "zip", "/below" },    { "h.npz", "npz", "below/b" },
                    { "h.nc", "netcdf", "/below" },  { "h.h5", "hdf5", "/below" } };
enum { HIERARCHIES = sizeof(hierarchies) / sizeof(hierarchies[0]) };

/* Lengths that an archive names hold a header as well. */
static void check_near(const char *what, uint64_t bytes, uint64_t want)
{
    ck_assert_msg(bytes >= want && bytes < want + 4096, "%s: %llu and not %llu", what,
                  (unsigned long long)bytes, (unsigned long long)want);
}

TEST(f16_import_of_a_hierarchy_has_one_total)
{
    const uint64_t chunk[2] = { 100, 1024 };
    for (size_t i = 0; i < HIERARCHIES; i++) {
        const char *name = hierarchies[i].name, *inner = hierarchies[i].inner;
        brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
        brc_xfer_opts without = BRC_XFER_OPTS_INIT;
        unsigned char excluded = 0;
        char path[32];
        make_hierarchy(name, hierarchies[i].format);
        check_near(name, import_bytes(name, NULL), 2 * BYTES + BYTES / 4);

        snprintf(path, sizeof(path), "/in%zu", i);
        listen_anew(0);
        DONE(brc_import(kit.session, exchange_path(&kit, name), path, NULL, &kit.err));
        check_heard(name, 8, 0);
        check_near(name, heard.total, 2 * BYTES + BYTES / 4);

        snprintf(path, sizeof(path), "/cut%zu", i);
        opts.chunk = chunk;
        opts.nchunk = 2;
        listen_anew(0);
        DONE(brc_import(kit.session, exchange_path(&kit, name), path, &opts, &kit.err));
        check_heard(name, 8, 0);
        check_near(name, heard.total, 2 * BYTES + BYTES / 4);

        snprintf(path, sizeof(path), "/less%zu", i);
        without.exclude = &inner;
        without.nexclude = 1;
        without.excluded = &excluded;
        check_near(name, import_bytes(name, &without), BYTES + BYTES / 4);
        ck_assert_int_eq(excluded, 0);
        listen_anew(0);
        DONE(brc_import(kit.session, exchange_path(&kit, name), path, &without, &kit.err));
        ck_assert_int_eq(excluded, 1);
        check_near(name, heard.total, BYTES + BYTES / 4);
        check_heard(name, 8, 0);
    }
}

TEST(f16_several_sources_are_one_total)
{
    const char *const names[] = { "a.npy", "h.zarr", "f.npy", "h.h5" };
    uint64_t sum = 0;
    make_hierarchy("h.zarr", "zarr3");
    make_hierarchy("h.h5", "hdf5");
    for (size_t i = 0; i < 4; i++)
        sum += import_bytes(names[i], NULL);
    ck_assert_uint_eq(sum, 2 * (uint64_t)BYTES + 2 * (2 * BYTES + BYTES / 4));
    listen_anew(0);
    brc_progress_begin(kit.repo, "import", sum);
    for (size_t i = 0; i < 4; i++) {
        char path[16];
        snprintf(path, sizeof(path), "/many%zu", i);
        DONE(brc_import(kit.session, exchange_path(&kit, names[i]), path, NULL, &kit.err));
        ck_assert_uint_eq(heard.total, sum);
    }
    ck_assert_uint_eq(heard.done, sum); /* before it is said to be at its end, too */
    brc_progress_end(kit.repo, BRC_OK);
    check_heard("four sources", 16, sum);
}

/* A source that cannot be read has no total; the import says why. */
TEST(f16_what_cannot_be_measured)
{
    uint64_t bytes = 1;
    exchange_file(&kit, "bad.npy", "\x93NUMPY", 6);
    ck_assert_int_eq(brc_import_bytes(&bytes, kit.session, exchange_path(&kit, "bad.npy"), NULL,
                                      &kit.err), BRC_EINVAL);
    ck_assert_uint_eq(bytes, 0);
    ck_assert_int_eq(brc_import_bytes(&bytes, kit.session, exchange_path(&kit, "none"), NULL,
                                      &kit.err), BRC_ENOTFOUND);
    ck_assert_int_eq(brc_import_bytes(&bytes, kit.session, exchange_path(&kit, "test.brc"), NULL,
                                      &kit.err), BRC_EINVAL);
    ck_assert_int_eq(brc_import_bytes(NULL, kit.session, "x", NULL, &kit.err), BRC_EINVAL);
}

/* One chunk of 64 MiB: the caller hears of every few MiB that are read of it. */
TEST(f16_told_while_a_large_part_is_read)
{
    const uint64_t chunk[1] = { 64 << 20 };
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    brc_buf bytes = BRC_BUF_INIT;
    exchange_npy(&bytes, "{'descr': '|u1', 'fortran_order': False, 'shape': (67108864,), }", "", 0);
    uint64_t size = bytes.len + chunk[0];
    exchange_file(&kit, "large.npy", bytes.data, bytes.len);
    brc_buf_dispose(&bytes);
    ck_assert_int_eq(truncate(exchange_path(&kit, "large.npy"), (off_t)size), 0);
    opts.chunk = chunk;
    opts.nchunk = 1;
    listen_anew(0);
    DONE(brc_import(kit.session, exchange_path(&kit, "large.npy"), "/l", &opts, &kit.err));
    check_heard("one large chunk", 16, chunk[0]);
}

TEST(f16_export_has_one_total)
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

TEST(f16_elements_codecs_and_checks)
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
    DONE(brc_fsck(kit.repo, 0, NULL, NULL, NULL, &checked, &kit.err));
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

/* A result other than 0 stops the call, and nothing has changed. */
TEST(f16_progress_stops_the_call)
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

/* A handle that was opened without a function gets one for a while. */
TEST(f16_another_function_is_told)
{
    breccia *other;
    uint64_t checked;
    bring_in("a.npy", "/a");
    DONE(brc_reopen(&other, kit.repo, &kit.err));
    listen_anew(0);
    DONE(brc_fsck(other, 0, NULL, NULL, NULL, &checked, &kit.err));
    ck_assert_uint_eq(heard.calls, 0);
    brc_progress_set(other, hear, &heard);
    DONE(brc_fsck(other, 0, NULL, NULL, NULL, &checked, &kit.err));
    check_heard("fsck", 16, 0);
    listen_anew(BYTES / 2);
    ck_assert_int_eq(brc_fsck(other, 0, NULL, NULL, NULL, &checked, &kit.err), BRC_EINTERRUPT);
    listen_anew(0);
    brc_progress_set(other, NULL, NULL);
    DONE(brc_fsck(other, 0, NULL, NULL, NULL, &checked, &kit.err));
    ck_assert_uint_eq(heard.calls, 0);
    brc_free(other);
}

/* ---- the line -------------------------------- */

#define MIB ((uint64_t)1 << 20)

static const char *text_of(uint64_t done, uint64_t total, int64_t ms)
{
    static char line[160];
    return cli_progress_text(line, sizeof(line), "import", done, total, ms);
}

CASE("line");

TEST(f16_text_of_the_line)
{
    char small[24];
    ck_assert_str_eq(text_of(300 * MIB, 1000 * MIB, 3000),
                     "import: 300.0 MiB of 1000.0 MiB (30 %), 100.0 MiB/s, 7 s left");
    ck_assert_str_eq(text_of(1024 * MIB, 10240 * MIB, 100000),
                     "import: 1.0 GiB of 10.0 GiB (10 %), 10.2 MiB/s, 15 min left");
    ck_assert_str_eq(text_of(300 * MIB, 0, 3000), "import: 300.0 MiB, 100.0 MiB/s");
    ck_assert_str_eq(text_of(0, MIB, 1000), "import: 0 B of 1.0 MiB (0 %), 0 B/s");
    ck_assert_str_eq(text_of(MIB, MIB, 1024),
                     "import: 1.0 MiB of 1.0 MiB (100 %), 1000.0 KiB/s, 0 s left");
    ck_assert_str_eq(text_of(1, UINT64_MAX, 1000), "import: 1 B of 16.0 EiB (0 %), 1 B/s");
    ck_assert_str_eq(text_of(0, 0, 0), "import: 0 B, 0 B/s");
    cli_progress_text(small, sizeof(small), "import", MIB, 2 * MIB, 1000); /* it is cut off */
    ck_assert_str_eq(small, "import: 1.0 MiB of 2.0 ");
}

static struct cli_progress line_from(int64_t ms)
{
    struct cli_progress p = { .enabled = 1, .began_ms = ms, .last_ms = ms, .total = 100 * MIB };
    return p;
}

/* The first line within 300 ms of the first second, then five a second. */
TEST(f16_when_the_line_is_drawn)
{
    struct cli_progress p = line_from(5000);
    char line[160];
    int64_t first = 0, last = 0;
    int drawn = 0;
    for (int64_t now = 5000; now < 15000; now += 10) {
        p.done += MIB / 10;
        if (!cli_progress_line(&p, line, sizeof(line), "import", now))
            continue;
        first = first ? first : now;
        ck_assert(!last || now - last >= 200);
        last = now;
        drawn++;
    }
    ck_assert_int_ge(first, 6000);
    ck_assert_int_le(first, 6300);
    ck_assert_int_ge(drawn, 44);
    ck_assert_int_le(drawn, 46);
    ck_assert_str_eq(line, "import: 98.1 MiB of 100.0 MiB (98 %), 10.0 MiB/s, 1 s left");
    p = line_from(0);
    p.enabled = 0;
    ck_assert_int_eq(cli_progress_line(&p, line, sizeof(line), "import", 9000), 0);
}

/* Bytes that were read count before the library has taken them, and never past the total. */
TEST(f16_line_counts_what_is_read)
{
    struct cli_progress p = line_from(0);
    char line[160];
    p.read = 50 * MIB;
    ck_assert_int_eq(cli_progress_line(&p, line, sizeof(line), "write", 1000), 1);
    ck_assert_str_eq(line, "write: 50.0 MiB of 100.0 MiB (50 %), 50.0 MiB/s, 1 s left");
    p.done = 20 * MIB; /* it does not fall */
    ck_assert_int_eq(cli_progress_line(&p, line, sizeof(line), "write", 2000), 1);
    ck_assert_str_eq(line, "write: 50.0 MiB of 100.0 MiB (50 %), 25.0 MiB/s, 2 s left");
    p.read = 300 * MIB;
    ck_assert_int_eq(cli_progress_line(&p, line, sizeof(line), "write", 4000), 1);
    ck_assert_str_eq(line, "write: 100.0 MiB of 100.0 MiB (100 %), 25.0 MiB/s, 0 s left");
}

/* The command's own callback keeps what it was told, and the clock of a command that has run
 * for less than a second draws nothing. */
TEST(f16_line_keeps_what_it_was_told)
{
    struct cli cli = { .command = &cli_command_export, .progress = line_from(INT64_MAX / 2) };
    char line[160];
    ck_assert_int_eq(cli_progress_step(&cli, "x", 10 * MIB, 40 * MIB), 0);
    ck_assert_int_eq(cli.progress.shown, 0);
    ck_assert_int_eq(cli_progress_line(&cli.progress, line, sizeof(line), "export",
                                       cli.progress.began_ms + 1000), 1);
    ck_assert_str_eq(line, "export: 10.0 MiB of 40.0 MiB (25 %), 10.0 MiB/s, 3 s left");
}

/* A wider one would go on in the next line, and never be wiped. */
TEST(f16_line_is_cut_to_the_terminal)
{
    static const char drawn[] = "\rexport: 10.0 MiB of 40.0 MiB \033[K";
    const struct winsize narrow = { .ws_row = 24, .ws_col = 30 };
    struct cli cli = { .command = &cli_command_export, .progress = line_from(0) };
    char found[256];
    int master, terminal, before = dup(STDERR_FILENO);
    ck_assert_int_ge(before, 0);
    ck_assert_int_eq(openpty(&master, &terminal, NULL, NULL, &narrow), 0);
    ck_assert_int_eq(dup2(terminal, STDERR_FILENO), STDERR_FILENO);
    int rc = cli_progress_step(&cli, "x", 10 * MIB, 40 * MIB);
    ck_assert_int_eq(dup2(before, STDERR_FILENO), STDERR_FILENO);
    ck_assert_int_eq(rc, 0);
    ssize_t n = read(master, found, sizeof(found) - 1);
    ck_assert_int_gt(n, 0);
    found[n] = '\0';
    ck_assert_str_eq(found, drawn);
    close(before);
    close(master);
    close(terminal);
}
