/* Imports whose stream a program writes: what becomes of it when the program fails. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../../src/breccia.h"
#include "../../src/xfer/foreign/foreign.h"
#include "../../src/xfer/foreign/protocol.h"
#include "../kit/exchange_kit.h"
#include "../kit/process_kit.h"
#include "../kit/suite.h"
#include "../kit/tar_kit.h"

TEST_SUITE(foreign);

#define DO(expr) ck_assert_int_eq((expr), BRC_OK)
#define GROUP "{\"zarr_format\":3,\"node_type\":\"group\"}"
#define ARRAY                                                                                      \
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[4,6],\"data_type\":\"uint16\","         \
    "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[2,3]}},"             \
    "\"chunk_key_encoding\":{\"name\":\"default\",\"configuration\":{\"separator\":\"/\"}},"       \
    "\"fill_value\":0,\"codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]}"

static exchange_kit kit;

/* A repository whose converters are in the folder "libexec", and a stream in "good.tar". */
static void open_with_test_converters(breccia **repo, brc_session **session, const char *name)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    char folder[512];
    snprintf(folder, sizeof(folder), "%s/libexec", kit.dir);
    opts.flags = BRC_OPEN_CREATE;
    opts.libexec = folder;
    DO(brc_open(repo, exchange_path(&kit, name), &opts, &kit.err));
    DO(brc_session_open(session, *repo, NULL, BRC_SESSION_WRITE, &kit.err));
}

static void begin(void)
{
    brc_buf tar = BRC_BUF_INIT;
    uint8_t chunk[12];
    for (uint8_t i = 0; i < 12; i++)
        chunk[i] = i;
    exchange_folder_start(&kit);
    DO(brc_dir_make(exchange_path(&kit, "libexec"), NULL));
    open_with_test_converters(&kit.repo, &kit.session, "test.brc");
    tar_kit_file(&tar, "zarr.json", GROUP);
    tar_kit_file(&tar, "a/zarr.json", ARRAY);
    tar_kit_member(&tar, '0', "a/c/0/0", NULL, 12, chunk, 12);
    tar_kit_member(&tar, '0', "a/c/1/1", NULL, 12, chunk, 12);
    tar_kit_end(&tar);
    exchange_file(&kit, "good.tar", tar.data, tar.len);
    exchange_text(&kit, "x.h5", "the file");
    brc_buf_dispose(&tar);
}

static void finish(void)
{
    exchange_stop(&kit);
}

/* The converter "fake" is this script of sh. */
static void make_converter(const char *script)
{
    brc_buf text = BRC_BUF_INIT;
    DO(brc_buf_printf(&text, NULL, "#!/bin/sh\ncd %s || exit 1\n%s\n", kit.dir, script));
    remove(exchange_path(&kit, "libexec/fake"));
    const char *path = exchange_file(&kit, "libexec/fake", text.data, text.len);
    ck_assert_int_eq(chmod(path, 0755), 0);
    brc_buf_dispose(&text);
}

static int import_fake(const char *path)
{
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    brc_foreign what = { .session = kit.session,
                         .converter = "fake",
                         .file = exchange_path(&kit, "x.h5"),
                         .opts = &opts };
    DO(brc_begin(kit.repo, NULL));
    int rc = brc_foreign_import(&what, path, &kit.err);
    DO(brc_end(kit.repo, rc == BRC_OK ? BRC_END_KEEP : 0, NULL));
    return rc;
}

static void nothing_is_left(void)
{
    exchange_must_be_clean(&kit);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD);
}

static void fake_fails(const char *script, int code, const char *words)
{
    make_converter(script);
    int rc = import_fake("/x");
    ck_assert_msg(rc == code && strstr(kit.err.message, words), "%s: %d: %s (not '%s')", script, rc,
                  rc < 0 ? kit.err.message : "imported", words);
    ck_assert_int_eq(kit.err.code, rc);
    nothing_is_left();
}

static void has_numbers(brc_session *s, const char *path)
{
    uint16_t *got = exchange_elements(s, path, 24 * sizeof(uint16_t));
    ck_assert_uint_eq(got[0], 0x0001);
    ck_assert_uint_eq(got[1], 0x0203);
    ck_assert_uint_eq(got[3], 0);
    ck_assert_uint_eq(got[23], 0x0a0b);
    free(got);
}

CASE("converters", .setup = begin, .teardown = finish, .timeout = 30);

/* ---- converters ---------------------------------------------------------------------- */

TEST(what_a_converter_writes_comes_in)
{
    brc_array *a;
    make_converter("echo \"$@\" >args; echo noise >&2; cat good.tar");
    int rc = import_fake("/x");
    ck_assert_msg(rc == BRC_OK, "%s", kit.err.message);
    has_numbers(kit.session, "/x/a");
    DO(brc_array_open(&a, kit.session, "/x/a", NULL));
    /* the stream's codecs are its own: the array has those of a new one */
    ck_assert_ptr_nonnull(strstr(brc_array_describe(a)->codecs_json, "blosc"));
    ck_assert_uint_eq(brc_array_describe(a)->chunk[1], 3);
    brc_array_free(a);
    brc_buf args = exchange_read(exchange_path(&kit, "args"));
    DO(brc_buf_terminate(&args, NULL));
    ck_assert_ptr_nonnull(strstr((char *)args.data, "import "));
    ck_assert_ptr_nonnull(strstr((char *)args.data, "/x.h5\n"));
    brc_buf_dispose(&args);
}

/* The file that the converter reads: the bytes 0, 1, 2 ... */
static void make_source(void)
{
    uint8_t bytes[100];
    for (uint8_t i = 0; i < 100; i++)
        bytes[i] = i;
    remove(exchange_path(&kit, "x.h5"));
    exchange_file(&kit, "x.h5", bytes, sizeof(bytes));
}

/* The stream "refers.tar": the array's document, and these members with their ranges. */
static void make_referring(size_t n, const char *const (*members)[2])
{
    brc_buf tar = BRC_BUF_INIT;
    tar_kit_file(&tar, "zarr.json", GROUP);
    tar_kit_file(&tar, "a/zarr.json", ARRAY);
    for (size_t i = 0; i < n; i++)
        tar_kit_range(&tar, members[i][0], members[i][1]);
    tar_kit_end(&tar);
    remove(exchange_path(&kit, "refers.tar"));
    exchange_file(&kit, "refers.tar", tar.data, tar.len);
    brc_buf_dispose(&tar);
}

static void has_number(const char *path, size_t at, unsigned want)
{
    uint16_t *got = exchange_elements(kit.session, path, 24 * sizeof(uint16_t));
    ck_assert_msg(got[at] == want, "%s[%zu] is %04x", path, at, got[at]);
    free(got);
}

/* Elements that lie in the file need not travel: chunks, which may overlap, and whole arrays. */
TEST(members_refer_to_the_file)
{
    static const char *const chunks[][2] = {
        { "a/c/0/0", "0 12" }, { "a/c/1/1", "0 12" }, { "a/c/0/1", "1 12" },
        { "a/c/1/0", "88 6 6 2" }, /* to its last byte */
    };
    static const char *const whole[][2] = { { "a/elements", "52 48" } };
    static const char *const rows[][2] = { { "a/elements", "4 12 20 4" } };
    make_source();
    make_converter("cat refers.tar");
    make_referring(4, chunks);
    ck_assert_msg(import_fake("/x") == BRC_OK, "%s", kit.err.message);
    has_number("/x/a", 0, 0x0001);
    has_number("/x/a", 3, 0x0102);
    has_number("/x/a", 23, 0x0a0b);
    has_number("/x/a", 12, 88 << 8 | 89);
    has_number("/x/a", 20, 98 << 8 | 99);
    make_referring(1, whole);
    ck_assert_msg(import_fake("/y") == BRC_OK, "%s", kit.err.message);
    has_number("/y/a", 0, 52 << 8 | 53);
    has_number("/y/a", 23, 98 << 8 | 99);
    make_referring(1, rows);
    ck_assert_msg(import_fake("/z") == BRC_OK, "%s", kit.err.message);
    has_number("/z/a", 5, 14 << 8 | 15);
    has_number("/z/a", 6, 24 << 8 | 25);
    has_number("/z/a", 23, 74 << 8 | 75);
}

TEST(bad_references_are_refused)
{
    static const struct {
        const char *member[1][2];
        int code;
        const char *words;
    } bad[] = {
        { { { "a/c/0/0", "89 12" } }, BRC_EINVAL, "x.h5: /a/c/0/0: the file ends before these" },
        { { { "a/c/0/0", "100 12" } }, BRC_EINVAL, "is truncated or damaged" },
        { { { "a/c/0/0", "9223372036854775000 12" } }, BRC_EINVAL, "is truncated or damaged" },
        { { { "a/c/0/0", "0 9223372036854775807" } }, BRC_EINVAL, "is truncated or damaged" },
        { { { "a/elements", "53 48" } }, BRC_EINVAL, "is truncated or damaged" },
        { { { "a/elements", "0 12 30 4" } }, BRC_EINVAL, "is truncated or damaged" },
        { { { "a/elements", "0 47" } }, BRC_EINVAL, "'a/elements' is not as long as its array" },
        { { { "a/elements", "0 49" } }, BRC_EINVAL, "is not as long as its array" },
        { { { "a/elements", "0 0" } }, BRC_EINVAL, "is not as long as its array" },
        { { { "b/elements", "0 48" } }, BRC_EINVAL, "is neither a document nor a chunk" },
        { { { "a/b/elements", "0 48" } }, BRC_EINVAL, "is not a chunk" },
        { { { "a/c/0/0", "0 11" } }, BRC_EINVAL, "chunk (0,0)" },
        { { { "a/c/0/0", "0 0" } }, BRC_EINVAL, "chunk (0,0)" },
        { { { "a/c/9/0", "0 12" } }, BRC_EINVAL, "lies outside the grid" },
        { { { "b/zarr.json", "89 12" } }, BRC_EINVAL, "is truncated or damaged" },
    };
    static const char *const good[1][2] = { { "a/c/0/0", "0 12" } };
    /* a chunk that is longer than any may be, of a file that has it */
    static const char *const large[1][2] = { { "a/c/0/0", "0 2147483648" } };
    make_source();
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        make_referring(1, bad[i].member);
        fake_fails("cat refers.tar", bad[i].code, bad[i].words);
    }
    make_referring(1, good);
    fake_fails("head -c 5 x.h5 >y; mv y x.h5; cat refers.tar", BRC_EINVAL,
               "is truncated or damaged");
    fake_fails("rm x.h5; cat refers.tar", BRC_ENOTFOUND, "cannot open");
    fake_fails("mkfifo x.h5; cat refers.tar", BRC_EINVAL, "is not a regular file");
    make_referring(1, large);
    fake_fails("rm x.h5; truncate -s 3G x.h5; cat refers.tar", BRC_ELIMIT,
               "'a/c/0/0' is longer than 2147483647 bytes");
}

TEST(its_error_is_ours)
{
    fake_fails("echo 'x.h5: it is not good' >&2; exit 65", BRC_EINVAL, "x.h5: it is not good");
    ck_assert_int_eq(kit.err.message[0], 'x');
    fake_fails("echo 'too much' >&2; exit 77", BRC_ELIMIT, "too much");
    fake_fails("cat good.tar; echo 'after all, no' >&2; exit 66", BRC_EMISUSE, "after all, no");
    fake_fails("head -c 2000 good.tar; echo 'in the middle' >&2; exit 65", BRC_EINVAL,
               "in the middle");
    fake_fails("exit 65", BRC_EINVAL, "the fake converter failed with exit status 65");
    fake_fails("echo why >&2; exit 1", BRC_EINVAL, "failed with exit status 1: why");
    fake_fails("cat good.tar; exit 1", BRC_EINVAL, "failed with exit status 1");
}

TEST(a_crash_is_one_sentence)
{
    fake_fails("kill -SEGV $$", BRC_EINVAL, "the fake converter crashed (SIGSEGV)");
    fake_fails("head -c 2000 good.tar; kill -SEGV $$", BRC_EINVAL, "crashed (SIGSEGV)");
    fake_fails("cat good.tar; kill -ABRT $$", BRC_EINVAL, "crashed (SIGABRT)");
    fake_fails("kill -SYS $$", BRC_EINVAL, "sandbox");
    fake_fails("ulimit -S -t 1; while :; do :; done", BRC_EINVAL, "processor time");
    fake_fails("kill -KILL $$", BRC_EINVAL, "was killed");
}

TEST(a_bad_stream_is_refused)
{
    fake_fails(":", BRC_EINVAL, "truncated");
    fake_fails("head -c 2000 good.tar", BRC_EINVAL, "truncated");
    fake_fails("yes", BRC_EINVAL, "not a tar stream");
    fake_fails("cat good.tar; yes", BRC_EINVAL, "goes on after");
    fake_fails("head -c 100000000 /dev/zero", BRC_EINVAL, "goes on after");
    fake_fails("cat x.h5; exec >&- 2>&-; sleep 1000", BRC_EINVAL, "truncated");
}

TEST(one_that_is_not_there_is_named)
{
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    brc_foreign what = {
        .session = kit.session, .converter = "nowhere", .file = "x.nc", .opts = &opts
    };
    ck_assert_int_eq(brc_foreign_import(&what, "/x", &kit.err), BRC_EUNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(kit.err.message, "libexec/nowhere"));
    make_converter("cat good.tar");
    ck_assert_int_eq(chmod(exchange_path(&kit, "libexec/fake"), 0644), 0);
    if (geteuid() != 0)
        ck_assert_int_eq(import_fake("/x"), BRC_EUNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(brc_libexec_default(), "libexec/breccia"));
}

TEST(what_was_left_out_is_told)
{
    const char *const out[] = { "a", "/none", "b/c" };
    uint8_t was[3] = { 0, 0, 0 };
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    brc_foreign what = { .session = kit.session,
                         .converter = "fake",
                         .file = exchange_path(&kit, "x.h5"),
                         .opts = &opts };
    opts.exclude = out;
    opts.nexclude = 3;
    opts.excluded = was;
    make_converter("[ \"$2 $3 $4 $5 $6 $7\" = '--exclude a --exclude /none --exclude b/c' ] ||"
                   " exit 1\necho noise >&2; echo 'excluded 2' >&2; echo 'excluded 17' >&2;"
                   " echo 'excluded x' >&2; cat good.tar");
    int rc = brc_foreign_import(&what, "/x", &kit.err);
    ck_assert_msg(rc == BRC_OK, "%s", kit.err.message);
    ck_assert_int_eq(was[0], 1); /* by us: it was in the stream */
    ck_assert_int_eq(was[1], 0);
    ck_assert_int_eq(was[2], 1);
}

#define PART(path)                                                                                 \
    "{\"path\":\"" path "\",\"kind\":\"link\",\"message\":\"m " path "\",\"remedy\":\"r\"}"

/* Each line that names a part the converter cannot keep counts, also where the converter fails
 * later. */
LOOP(what_cannot_be_kept_is_told, 0, 2)
{
    static const char *const ends[] = { "cat good.tar", "echo words >&2; exit 76" };
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    brc_parts parts = BRC_PARTS_INIT;
    brc_foreign what = { .session = kit.session,
                         .converter = "fake",
                         .file = exchange_path(&kit, "x.h5"),
                         .opts = &opts,
                         .parts = &parts };
    brc_buf list = BRC_BUF_INIT, script = BRC_BUF_INIT;
    opts.flags = BRC_XFER_SKIP_UNSUPPORTED;
    DO(brc_buf_printf(&script, NULL,
                      "[ \"$2\" = --skip-unsupported ] || exit 1\n"
                      "cat >&2 <<'E'\nleft out " PART("/a") "\nleft out {\nleft out [1]\n"
                      "left out {\"path\":1}\nleft out 18446744073709551615\nleft out -1\n"
                      "left out " PART("/a@b") "\nleft out 3\nE\n%s",
                      ends[_i]));
    make_converter((char *)script.data);
    int rc = brc_foreign_import(&what, "/x", &kit.err);
    ck_assert_msg(rc == (_i ? BRC_EUNSUPPORTED : BRC_OK), "%d %s", rc, kit.err.message);
    ck_assert_uint_eq(parts.n, 5);
    DO(brc_parts_write(&parts, &list, NULL));
    DO(brc_buf_append(&list, "", 1, NULL));
    ck_assert_str_eq((char *)list.data,
                     "[" PART("/a") "," PART("/a@b") ","
                     "{\"path\":\"\",\"kind\":\"more\",\"message\":"
                     "\"3 more parts, which are not listed\",\"remedy\":\"\"}]");
    brc_buf_dispose(&list);
    brc_buf_dispose(&script);
    brc_parts_dispose(&parts);
}

TEST(bytes_are_known_from_the_documents)
{
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    brc_foreign what = { .session = kit.session,
                         .converter = "fake",
                         .file = exchange_path(&kit, "x.h5"),
                         .opts = &opts };
    uint64_t bytes = 0;
    make_converter("cat good.tar; sleep 1000"); /* nobody waits for the rest */
    DO(brc_foreign_bytes(&bytes, &what, &kit.err));
    ck_assert_uint_eq(bytes, 48);
    make_converter("echo no >&2; exit 65");
    ck_assert_int_eq(brc_foreign_bytes(&bytes, &what, &kit.err), BRC_EINVAL);
    ck_assert_str_eq(kit.err.message, "no");
}

static int stop_at_once(void *ctx, const char *phase, uint64_t done, uint64_t total)
{
    (void)ctx;
    (void)phase;
    (void)done;
    (void)total;
    return 1;
}

static void *interrupt_soon(void *arg)
{
    usleep(200000);
    brc_interrupt(arg, 1);
    return NULL;
}

TEST(an_interruption_ends_the_converter)
{
    pthread_t thread;
    make_converter("echo $$ >pid; head -c 2000 good.tar; exec sleep 1000");
    ck_assert_int_eq(pthread_create(&thread, NULL, interrupt_soon, kit.repo), 0);
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    brc_foreign what = { .session = kit.session,
                         .converter = "fake",
                         .file = exchange_path(&kit, "x.h5"),
                         .opts = &opts };
    ck_assert_int_eq(brc_foreign_import(&what, "/x", &kit.err), BRC_EINTERRUPT);
    pthread_join(thread, NULL);
    brc_buf pid = exchange_read(exchange_path(&kit, "pid"));
    DO(brc_buf_terminate(&pid, NULL));
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    process_must_go((pid_t)atol((char *)pid.data));
    brc_buf_dispose(&pid);

    brc_open_opts with = BRC_OPEN_OPTS_INIT;
    breccia *repo;
    brc_session *s;
    with.flags = BRC_OPEN_CREATE;
    with.progress = stop_at_once;
    DO(brc_open(&repo, exchange_path(&kit, "p.brc"), &with, &kit.err));
    DO(brc_session_open(&s, repo, NULL, BRC_SESSION_WRITE, &kit.err));
    opts.with = "exec sleep 1000";
    ck_assert_int_eq(brc_import(s, "x", NULL, &opts, &kit.err), BRC_EINTERRUPT);
    brc_session_free(s);
    brc_free(repo);
}

CASE("commands", .setup = begin, .teardown = finish, .timeout = 30);

/* ---- commands ------------------------------------------------------------------------ */

TEST(a_command_is_run_by_sh)
{
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    brc_buf placed = BRC_BUF_INIT;
    opts.with = "cat \"$1\" | cat";
    opts.placed = &placed;
    int rc = brc_import(kit.session, exchange_path(&kit, "good.tar"), "/w", &opts, &kit.err);
    ck_assert_msg(rc == BRC_OK, "%s", kit.err.message);
    has_numbers(kit.session, "/w/a");
    ck_assert_str_eq((char *)placed.data, "/w");
    brc_array *a;
    DO(brc_array_open(&a, kit.session, "/w/a", NULL));
    ck_assert_ptr_nonnull(strstr(brc_array_describe(a)->codecs_json, "\"big\"")); /* as it came */
    brc_array_free(a);
    /* a source need not be a file, and gives the node its name */
    placed.len = 0;
    char command[600];
    snprintf(command, sizeof(command), "[ \"$1\" = http://x/y.zarr ] && cat %s",
             exchange_path(&kit, "good.tar"));
    opts.with = command;
    rc = brc_import(kit.session, "http://x/y.zarr", NULL, &opts, &kit.err);
    ck_assert_msg(rc == BRC_OK, "%s", kit.err.message);
    ck_assert_str_eq((char *)placed.data, "/y");
    brc_buf_dispose(&placed);
}

TEST(a_command_has_no_file_read)
{
    static const char *const chunk[1][2] = { { "a/c/0/0", "0 12" } };
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    opts.with = "cat \"$1\"";
    make_referring(1, chunk);
    int rc = brc_import(kit.session, exchange_path(&kit, "refers.tar"), "/w", &opts, &kit.err);
    ck_assert_int_eq(rc, BRC_EINVAL);
    ck_assert_ptr_nonnull(strstr(kit.err.message, "only breccia's own converters may do"));
    nothing_is_left();
}

TEST(a_command_that_fails_imports_nothing)
{
    static const struct {
        const char *command, *words;
    } bad[] = {
        { "cat \"$1\"; echo no >&2; exit 65", "failed with exit status 65: no" },
        { "cat \"$1\"; exit 63", "failed with exit status 63" },
        { "kill -SEGV $$", "crashed (SIGSEGV)" },
        { "no-such-command-here \"$1\"", "exit status 127" },
        { "exit 0", "truncated" },
        { "((", "exit status 2" },
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
        opts.with = bad[i].command;
        int rc = brc_import(kit.session, exchange_path(&kit, "good.tar"), "/w", &opts, &kit.err);
        ck_assert_msg(rc == BRC_EINVAL && strstr(kit.err.message, bad[i].words), "%d: %s", rc,
                      kit.err.message);
        nothing_is_left();
    }
}

/* ---- threads ------------------------------------------------------------------------- */

typedef struct importer {
    breccia *repo;
    brc_session *session;
    char file[512];
    int rc;
    brc_error err;
} importer;

static void *import_ten(void *arg)
{
    importer *one = arg;
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    brc_foreign what = { .session = one->session,
                         .converter = "fake",
                         .file = one->file,
                         .opts = &opts };
    for (int i = 0; i < 10 && one->rc == BRC_OK; i++) {
        char path[16];
        snprintf(path, sizeof(path), "/x%d", i);
        one->rc = brc_foreign_import(&what, path, &one->err);
    }
    return NULL;
}

CASE("threads", .setup = begin, .teardown = finish, .timeout = 30);

TEST(four_threads_import_at_once)
{
    importer all[4];
    pthread_t threads[4];
    make_converter("cat good.tar; echo noise >&2");
    for (int i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof(name), "t%d.brc", i);
        memset(&all[i], 0, sizeof(all[i]));
        snprintf(all[i].file, sizeof(all[i].file), "%s", exchange_path(&kit, "x.h5"));
        open_with_test_converters(&all[i].repo, &all[i].session, name);
        ck_assert_int_eq(pthread_create(&threads[i], NULL, import_ten, &all[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_msg(all[i].rc == BRC_OK, "%s", all[i].err.message);
        has_numbers(all[i].session, "/x9/a");
        brc_session_free(all[i].session);
        brc_free(all[i].repo);
    }
    nothing_is_left();
}
