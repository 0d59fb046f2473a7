/* Tar streams: what is written reads back, and what an enemy writes is refused. */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../kit/suite.h"
#include "../kit/tar_kit.h"

TEST_SUITE(tar);

#define OK(expr) ck_assert_int_eq((expr), BRC_OK)

/* The members of a stream, "name=bytes;" each. Returns what reading ended with. */
static int read_all(const brc_buf *stream, size_t step, uint64_t limit, brc_buf *seen,
                    brc_error *err)
{
    tar_kit_bytes bytes = { stream->data, stream->len, step };
    brc_tar_source source = tar_kit_source(&bytes);
    brc_buf content = BRC_BUF_INIT;
    brc_tar_member member;
    brc_tar_in *in;
    int rc = brc_tar_in_open(&in, &source, "it", err);
    while (rc >= 0 && (rc = brc_tar_next(in, &member, err)) > 0) {
        ck_assert(brc_tar_name_ok(member.name));
        content.len = 0;
        OK(brc_buf_text(seen, member.name, NULL));
        OK(brc_buf_byte(seen, '=', NULL));
        rc = brc_tar_read(in, limit, &content, err);
        if (rc < 0)
            break;
        ck_assert_uint_eq(content.len, member.size);
        OK(brc_buf_append(seen, content.data, content.len, NULL));
        OK(brc_buf_byte(seen, ';', NULL));
    }
    if (rc == 0)
        ck_assert_uint_eq(bytes.len, 0); /* the source is read to its end */
    brc_buf_dispose(&content);
    brc_tar_in_free(in);
    return rc;
}

/* The stream gives this text and ends well. */
static void gives(const brc_buf *stream, const char *text)
{
    static const size_t steps[] = { 0, 1, 511, 513 };
    for (size_t i = 0; i < 4; i++) {
        brc_error err = BRC_ERROR_INIT;
        brc_buf seen = BRC_BUF_INIT;
        int rc = read_all(stream, steps[i], 1 << 20, &seen, &err);
        ck_assert_msg(rc == 0, "%s", err.message);
        OK(brc_buf_terminate(&seen, NULL));
        ck_assert_str_eq((char *)seen.data, text);
        brc_buf_dispose(&seen);
    }
}

/* Reading the stream fails with this code, and a message with these words. */
static void fails(brc_buf *stream, int code, const char *words)
{
    brc_error err = BRC_ERROR_INIT;
    brc_buf seen = BRC_BUF_INIT;
    int rc = read_all(stream, 0, 1 << 20, &seen, &err);
    ck_assert_msg(rc == code && strstr(err.message, words), "%d: %s (not '%s')", rc, err.message,
                  words);
    ck_assert_int_eq(err.code, rc);
    brc_buf_dispose(&seen);
    brc_buf_dispose(stream);
}

static void put_text(brc_tar_out *out, const char *name, const char *text)
{
    OK(brc_tar_put(out, name, (brc_span){ (const uint8_t *)text, strlen(text) }, NULL));
}

static void write_sample(brc_buf *stream)
{
    brc_tar_sink sink = tar_kit_sink(stream);
    brc_tar_out *out;
    OK(brc_tar_out_open(&out, &sink, "it", NULL));
    put_text(out, "zarr.json", "{}");
    put_text(out, "a/c/0/1", "");
    put_text(out, "grün/zarr.json", "[1]");
    OK(brc_tar_finish(out, NULL));
    brc_tar_out_free(out);
}

CASE("good");

/* ---- good streams -------------------------------------------------------------------- */

TEST(what_is_written_reads_back)
{
    brc_buf stream = BRC_BUF_INIT, again = BRC_BUF_INIT;
    ck_assert_str_eq(setlocale(LC_CTYPE, NULL), "C");
    write_sample(&stream);
    gives(&stream, "zarr.json={};a/c/0/1=;grün/zarr.json=[1];");
    write_sample(&again);
    ck_assert_uint_eq(stream.len, again.len);
    ck_assert_int_eq(memcmp(stream.data, again.data, stream.len), 0);
    brc_buf_dispose(&stream);
    brc_buf_dispose(&again);
}

/* The ranges of a stream, "name=at+len/step*pieces;" each. */
static void gives_ranges(const brc_buf *stream, const char *text)
{
    tar_kit_bytes bytes = { stream->data, stream->len, 0 };
    brc_tar_source source = tar_kit_source(&bytes);
    brc_error err = BRC_ERROR_INIT;
    brc_buf seen = BRC_BUF_INIT;
    brc_tar_member m;
    brc_tar_in *in;
    int rc;
    OK(brc_tar_in_open(&in, &source, "it", &err));
    while ((rc = brc_tar_next(in, &m, &err)) > 0) {
        const brc_tar_range *r = &m.range;
        ck_assert_uint_eq(m.size, 0);
        OK(m.refers ? brc_buf_printf(&seen, NULL, "%s=%llu+%llu/%llu*%llu;", m.name,
                                     (unsigned long long)r->at, (unsigned long long)r->len,
                                     (unsigned long long)r->step, (unsigned long long)r->pieces)
                    : brc_buf_printf(&seen, NULL, "%s;", m.name));
    }
    ck_assert_msg(rc == 0, "%s", err.message);
    OK(brc_buf_terminate(&seen, NULL));
    ck_assert_str_eq((char *)seen.data, text);
    brc_buf_dispose(&seen);
    brc_tar_in_free(in);
}

TEST(ranges_read_back)
{
    const brc_tar_range one = { 7, 3, 0, 1 }, many = { 0, 5, 1u << 20, UINT64_C(1) << 33 };
    brc_buf stream = BRC_BUF_INIT;
    brc_tar_sink sink = tar_kit_sink(&stream);
    brc_tar_out *out;
    OK(brc_tar_out_open(&out, &sink, "it", NULL));
    OK(brc_tar_put_range(out, "a/c/0", &one, NULL));
    OK(brc_tar_put_range(out, "a/elements", &many, NULL));
    put_text(out, "a/c/1", "");
    OK(brc_tar_finish(out, NULL));
    brc_tar_out_free(out);
    gives_ranges(&stream, "a/c/0=7+3/0*1;a/elements=0+5/1048576*8589934592;a/c/1;");
    stream.len = 0;
    tar_kit_range(&stream, "b", "0 9223372036854775807");
    tar_kit_range(&stream, "c", "1 2 3 4");
    tar_kit_end(&stream);
    gives_ranges(&stream, "b=0+9223372036854775807/0*1;c=1+2/3*4;");
    brc_buf_dispose(&stream);
}

TEST(bad_ranges_are_refused)
{
    static const char *const bad[] = {
        "1",      "1 ",     "1 2 ",    " 1 2",    "1  2",      "1 2 3",   "1 2 3 4 5",
        "-1 2",  "1 -2",   "+1 2",   "01 2",    "1 02",    "0x1 2",     "1,2",     "1\t2",
        "1 2\n", "1 2 3 0", "a b",   "1 2 3 -1", "1.0 2",  "18446744073709551616 1",
        "1 18446744073709551616",    "9223372036854775807 1",  "1 9223372036854775807",
        "18446744073709551615 18446744073709551615",
        "0 4611686018427387904 0 2", "0 1 9223372036854775807 2",
        "0 1 9223372036854775807 9223372036854775807", "5 0 9223372036854775807 2",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        brc_buf stream = BRC_BUF_INIT;
        tar_kit_range(&stream, "a/c/0", bad[i]);
        tar_kit_end(&stream);
        fails(&stream, BRC_EINVAL, "the member 'a/c/0' has an attribute breccia.range that is not");
    }
    brc_buf stream = BRC_BUF_INIT;
    tar_kit_range(&stream, "a/c/0", "1 2");
    stream.len -= 512; /* in place of its header, one of a member that has bytes */
    tar_kit_file(&stream, "a/c/0", "and bytes");
    tar_kit_end(&stream);
    fails(&stream, BRC_EINVAL, "the member 'a/c/0' has bytes, and an attribute");
}

TEST(names_of_every_length_read_back)
{
    char name[1400];
    for (size_t len = 1; len < sizeof(name); len = len < 300 ? len + 1 : len + 97) {
        brc_buf stream = BRC_BUF_INIT, want = BRC_BUF_INIT;
        brc_tar_sink sink = tar_kit_sink(&stream);
        brc_tar_out *out;
        for (size_t i = 0; i < len; i++)
            name[i] = i % 50 == 49 && i + 1 < len ? '/' : 'x';
        name[len] = '\0';
        OK(brc_tar_out_open(&out, &sink, "it", NULL));
        put_text(out, name, "1");
        OK(brc_tar_finish(out, NULL));
        brc_tar_out_free(out);
        OK(brc_buf_printf(&want, NULL, "%s=1;", name));
        gives(&stream, (char *)want.data);
        brc_buf_dispose(&stream);
        brc_buf_dispose(&want);
    }
}

TEST(sizes_around_the_blocks_read_back)
{
    static const size_t sizes[] = { 0, 1, 511, 512, 513, 65535, 65536, 65537, 262144, 900001 };
    brc_buf stream = BRC_BUF_INIT;
    brc_tar_sink sink = tar_kit_sink(&stream);
    brc_tar_out *out;
    uint8_t *data = malloc(1 << 20);
    for (size_t i = 0; i < 1 << 20; i++)
        data[i] = (uint8_t)(i * 31 + i / 256);
    OK(brc_tar_out_open(&out, &sink, "it", NULL));
    for (size_t i = 0; i < 10; i++) {
        char name[8];
        snprintf(name, sizeof(name), "%zu", i);
        OK(brc_tar_put(out, name, (brc_span){ data, sizes[i] }, NULL));
    }
    OK(brc_tar_finish(out, NULL));
    brc_tar_out_free(out);

    tar_kit_bytes bytes = { stream.data, stream.len, 0 };
    brc_tar_source source = tar_kit_source(&bytes);
    brc_buf content = BRC_BUF_INIT;
    brc_tar_member member;
    brc_tar_in *in;
    OK(brc_tar_in_open(&in, &source, "it", NULL));
    for (size_t i = 0; i < 10; i++) {
        ck_assert_int_eq(brc_tar_next(in, &member, NULL), 1);
        ck_assert_uint_eq(member.size, sizes[i]);
        if (i == 7)
            continue; /* what is not read is passed over */
        content.len = 0;
        OK(brc_tar_read(in, sizes[i], &content, NULL));
        ck_assert_uint_eq(content.len, sizes[i]);
        ck_assert_int_eq(memcmp(content.data, data, sizes[i]), 0);
    }
    ck_assert_int_eq(brc_tar_next(in, &member, NULL), 0);
    brc_tar_in_free(in);
    brc_buf_dispose(&content);
    brc_buf_dispose(&stream);
    free(data);
}

TEST(what_other_tars_write_is_read)
{
    brc_buf stream = BRC_BUF_INIT;
    static const uint8_t zeroes[10240];
    tar_kit_member(&stream, '5', "./", NULL, 0, "", 0);
    tar_kit_file(&stream, "./zarr.json", "{}");
    tar_kit_member(&stream, '5', "./a/", NULL, 0, "", 0);
    tar_kit_member(&stream, '\0', "a/zarr.json", NULL, 1, "x", 1);
    tar_kit_member(&stream, 'L', "././@LongLink", NULL, 6, "b/c/d", 6); /* GNU's long name */
    tar_kit_file(&stream, "b", "y");
    tar_kit_member(&stream, 'x', "PaxHeader", NULL, 14, "14 path=grün\n", 14);
    tar_kit_file(&stream, "gr", "z");
    tar_kit_file(&stream, "f\xc3\xbcr", "w");
    tar_kit_end(&stream);
    OK(brc_buf_append(&stream, zeroes, sizeof(zeroes), NULL));
    gives(&stream, "zarr.json={};a/zarr.json=x;b/c/d=y;grün=z;für=w;");
    brc_buf_dispose(&stream);
}

CASE("hostile");

/* ---- hostile streams ----------------------------------------------------------------- */

TEST(every_truncation_is_an_error)
{
    brc_buf stream = BRC_BUF_INIT;
    write_sample(&stream);
    size_t whole = stream.len;
    for (size_t len = 0; len < whole; len++) {
        brc_error err = BRC_ERROR_INIT;
        brc_buf seen = BRC_BUF_INIT;
        stream.len = len;
        int rc = read_all(&stream, 0, 1 << 20, &seen, &err);
        ck_assert_msg(rc == BRC_EINVAL, "cut after %zu of %zu bytes: %d", len, whole, rc);
        ck_assert_ptr_nonnull(strstr(err.message, "truncated"));
        brc_buf_dispose(&seen);
    }
    stream.len = whole;
    brc_buf_dispose(&stream);
}

TEST(the_end_is_the_end)
{
    brc_buf stream = BRC_BUF_INIT;
    static const uint8_t zeroes[512];
    tar_kit_file(&stream, "a", "1");
    tar_kit_end(&stream);
    tar_kit_file(&stream, "b", "2");
    tar_kit_end(&stream);
    fails(&stream, BRC_EINVAL, "goes on after");

    tar_kit_file(&stream, "a", "1");
    tar_kit_end(&stream);
    OK(brc_buf_append(&stream, zeroes, 300, NULL));
    OK(brc_buf_byte(&stream, 1, NULL));
    fails(&stream, BRC_EINVAL, "goes on after");

    tar_kit_file(&stream, "a", "1");
    OK(brc_buf_append(&stream, zeroes, 512, NULL));
    tar_kit_file(&stream, "b", "2");
    tar_kit_end(&stream);
    fails(&stream, BRC_EINVAL, "goes on after");

    tar_kit_file(&stream, "a", "1");
    tar_kit_end(&stream);
    for (size_t i = 0; i < 10000; i++)
        OK(brc_buf_append(&stream, zeroes, 512, NULL));
    fails(&stream, BRC_EINVAL, "goes on after");
}

TEST(names_that_leave_are_refused)
{
    static const char *const names[] = {
        "/etc/passwd", "..", "../a", "a/../b", "a/..", "a//b", "a/./b", ".", "./",
        ".//a", "./../a", "\xff\xfe" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        brc_buf stream = BRC_BUF_INIT;
        brc_tar_sink sink = tar_kit_sink(&stream);
        brc_tar_out *out;
        ck_assert_msg(!brc_tar_name_ok(names[i]), "'%s' is allowed", names[i]);
        OK(brc_tar_out_open(&out, &sink, "it", NULL));
        ck_assert_int_eq(brc_tar_put(out, names[i], (brc_span){ NULL, 0 }, NULL), BRC_EINVAL);
        brc_tar_out_free(out);
        tar_kit_member(&stream, '0', names[i], NULL, 1, "x", 1);
        tar_kit_end(&stream);
        /* with a slash at its end it is a directory, in the oldest tars, and has no bytes */
        fails(&stream, BRC_EINVAL, strcmp(names[i], "./") == 0 ? "damaged" : "name");
    }
    char *longer = malloc(BRC_TAR_NAME_MAX + 2);
    memset(longer, 'a', BRC_TAR_NAME_MAX + 1);
    longer[BRC_TAR_NAME_MAX + 1] = '\0';
    ck_assert(!brc_tar_name_ok(longer));
    longer[BRC_TAR_NAME_MAX] = '\0';
    ck_assert(brc_tar_name_ok(longer));
    free(longer);
}

TEST(only_files_are_read)
{
    static const char types[] = "1234678";
    for (size_t i = 0; types[i]; i++) {
        brc_buf stream = BRC_BUF_INIT;
        tar_kit_file(&stream, "a", "1");
        tar_kit_member(&stream, types[i], "b", "a", 0, "", 0);
        tar_kit_end(&stream);
        if (types[i] == '7' || types[i] == '8') { /* contiguous, unknown: POSIX says "a file" */
            gives(&stream, "a=1;b=;");
            brc_buf_dispose(&stream);
            continue;
        }
        fails(&stream, BRC_EINVAL, "'b' is");
    }
}

/* A pax header of these records before a file of 4 bytes. */
static void pax_file(brc_buf *stream, const char *records)
{
    tar_kit_member(stream, 'x', "PaxHeader", NULL, strlen(records), records, strlen(records));
    tar_kit_file(stream, "a", "1234");
    tar_kit_end(stream);
}

TEST(sparse_files_are_refused)
{
    brc_buf stream = BRC_BUF_INIT;
    pax_file(&stream, "27 GNU.sparse.size=1000000\n25 GNU.sparse.map=4096,4\n");
    fails(&stream, BRC_EINVAL, "sparse");
}

TEST(sizes_are_not_believed)
{
    brc_buf stream = BRC_BUF_INIT;
    tar_kit_member(&stream, '0', "a", NULL, (uint64_t)1 << 62, "x", 1);
    fails(&stream, BRC_ELIMIT, "longer than");
    /* within the limit, and not there: reserved is little of it */
    tar_kit_bytes bytes;
    brc_tar_source source = tar_kit_source(&bytes);
    brc_tar_in *in;
    brc_tar_member member;
    brc_buf content = BRC_BUF_INIT;
    tar_kit_member(&stream, '0', "a", NULL, (uint64_t)1 << 62, "x", 1);
    bytes = (tar_kit_bytes){ stream.data, stream.len, 0 };
    OK(brc_tar_in_open(&in, &source, "it", NULL));
    ck_assert_int_eq(brc_tar_next(in, &member, NULL), 1);
    ck_assert_uint_eq(member.size, (uint64_t)1 << 62);
    ck_assert_int_eq(brc_tar_read(in, UINT64_MAX, &content, NULL), BRC_EINVAL);
    ck_assert_uint_le(content.cap, (size_t)128 << 20);
    brc_tar_in_free(in);
    brc_buf_dispose(&content);
    brc_buf_dispose(&stream);
}

/* A source of one header, and then of the same block for ever. */
typedef struct endless {
    brc_buf head;
    size_t at;
    uint64_t given;
    const char *line;
} endless;

static int give_for_ever(void *ctx, uint8_t *to, size_t cap, size_t *n, brc_error *err)
{
    endless *e = ctx;
    (void)err;
    *n = cap < 4096 ? cap : 4096;
    for (size_t i = 0; i < *n; i++)
        to[i] = e->at < e->head.len ? e->head.data[e->at++]
                                    : (uint8_t)e->line[(e->at++ - e->head.len) % strlen(e->line)];
    e->given += *n;
    ck_assert_uint_lt(e->given, (uint64_t)64 << 20);
    return BRC_OK;
}

TEST(headers_without_end_are_refused)
{
    static const struct {
        char type;
        const char *records, *line;
    } endless_headers[] = {
        { 'x', NULL, "9 a=bcde\n" },                /* a pax header of any length      */
        { 'g', NULL, "9 a=bcde\n" },                /* the same for all members        */
        { 'L', NULL, "aaaaaaaa" },                  /* GNU's long name                 */
        { 'K', NULL, "aaaaaaaa" },                  /* GNU's long target               */
        { 'x', "22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n", "1\n" }, /* a sparse map */
    };
    for (size_t i = 0; i < sizeof(endless_headers) / sizeof(endless_headers[0]); i++) {
        endless e = { .line = endless_headers[i].line };
        const char *records = endless_headers[i].records;
        if (records) {
            tar_kit_member(&e.head, 'x', "x", NULL, strlen(records), records, strlen(records));
            tar_kit_member(&e.head, '0', "a", NULL, (uint64_t)1 << 50, "999999999\n", 10);
            e.head.len -= 512 - 10;
        } else {
            tar_kit_member(&e.head, endless_headers[i].type, "x", NULL, (uint64_t)1 << 50, "", 0);
        }
        brc_tar_source source = { &e, give_for_ever };
        brc_tar_in *in;
        brc_tar_member member;
        OK(brc_tar_in_open(&in, &source, "it", NULL));
        ck_assert_int_lt(brc_tar_next(in, &member, NULL), 0);
        ck_assert_int_lt(brc_tar_next(in, &member, NULL), 0); /* it stays so */
        brc_tar_in_free(in);
        brc_buf_dispose(&e.head);
    }
}

TEST(other_bytes_are_no_tar)
{
    static const char *const texts[] = { "x", "PK\3\4", "\x89HDF\r\n\x1a\n", "\x1f\x8b\x08",
                                         "\x28\xb5\x2f\xfd", "7z\xbc\xaf\x27\x1c" };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        brc_buf stream = BRC_BUF_INIT;
        OK(brc_buf_text(&stream, texts[i], NULL));
        while (stream.len < 2048)
            OK(brc_buf_byte(&stream, 'q', NULL));
        fails(&stream, BRC_EINVAL, "not a tar stream");
    }
}

/* Whatever a flipped bit does: an error, or members; never more, never a fault. */
TEST(flipped_bits_do_no_harm)
{
    brc_buf stream = BRC_BUF_INIT;
    write_sample(&stream);
    for (size_t bit = 0; bit < stream.len * 8; bit++) {
        brc_buf seen = BRC_BUF_INIT;
        stream.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        (void)!read_all(&stream, 0, 1 << 20, &seen, NULL);
        ck_assert_uint_lt(seen.len, 4096);
        stream.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        brc_buf_dispose(&seen);
    }
    brc_buf_dispose(&stream);
}

/* ---- descriptors --------------------------------------------------------------------- */

static volatile sig_atomic_t pipe_signals;

static void count_signal(int sig)
{
    (void)sig;
    pipe_signals++;
}

CASE("pipes");

TEST(a_reader_that_left_is_an_error)
{
    struct sigaction action = { .sa_handler = count_signal };
    uint8_t data[100000] = { 0 };
    brc_error err = BRC_ERROR_INIT;
    sigset_t mask, pending;
    brc_tar_out *out;
    int fds[2];
    sigaction(SIGPIPE, &action, NULL);
    ck_assert_int_eq(pipe(fds), 0);
    close(fds[0]);
    OK(brc_tar_out_open_fd(&out, fds[1], "the pipe", &err));
    int rc = brc_tar_put(out, "a", (brc_span){ data, sizeof(data) }, &err);
    if (rc == BRC_OK)
        rc = brc_tar_finish(out, &err);
    ck_assert_int_eq(rc, BRC_EIO);
    ck_assert_int_eq(err.detail, EPIPE);
    ck_assert_ptr_nonnull(strstr(err.message, "the pipe"));
    ck_assert_int_eq(brc_tar_finish(out, &err), BRC_EIO);
    brc_tar_out_free(out);
    close(fds[1]);
    ck_assert_int_eq(pipe_signals, 0);
    sigpending(&pending);
    ck_assert(!sigismember(&pending, SIGPIPE));
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    ck_assert(!sigismember(&mask, SIGPIPE));
}

TEST(a_signal_that_was_pending_stays)
{
    struct sigaction action = { .sa_handler = count_signal };
    sigset_t mask;
    int fds[2];
    sigaction(SIGPIPE, &action, NULL);
    sigemptyset(&mask);
    sigaddset(&mask, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &mask, NULL);
    raise(SIGPIPE);
    ck_assert_int_eq(pipe(fds), 0);
    close(fds[0]);
    ck_assert_int_eq(brc_fd_write(fds[1], "x", 1, "it", NULL), BRC_EIO);
    close(fds[1]);
    ck_assert_int_eq(pipe_signals, 0);
    pthread_sigmask(SIG_UNBLOCK, &mask, NULL);
    ck_assert_int_eq(pipe_signals, 1);
}

TEST(an_unfinished_stream_is_seen_to_be)
{
    brc_error err = BRC_ERROR_INIT;
    brc_tar_member member;
    brc_tar_out *out;
    brc_tar_in *in;
    int fds[2];
    ck_assert_int_eq(pipe(fds), 0);
    OK(brc_tar_out_open_fd(&out, fds[1], "it", &err));
    put_text(out, "a", "1");
    brc_tar_out_free(out);
    close(fds[1]);
    int rc = brc_tar_in_open_fd(&in, fds[0], "it", &err);
    ck_assert_int_eq(rc, BRC_OK);
    while ((rc = brc_tar_next(in, &member, &err)) > 0)
        ;
    ck_assert_int_eq(rc, BRC_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.message, "truncated"));
    brc_tar_in_free(in);
    close(fds[0]);
}
