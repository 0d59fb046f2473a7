/* Reads and writes tar streams with libarchive. */
#include "tar.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <locale.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/error.h"
#include "../../base/file.h"
#include "../../base/buf.h"

/* The common part of reading and writing with libarchive. */

/*
 * libarchive converts names from and to UTF-8 by the locale of the calling thread, which may be
 * "C". Calls that handle names are therefore made in a UTF-8 locale of this thread only. If the
 * system has none, names beyond ASCII are refused.
 */
typedef struct brc_tar_locale {
    locale_t utf8, before;
} brc_tar_locale;

/* ==== tar name ================================ */

static int part_is_ok(const char *part, size_t len)
{
    return len > 0 && !(len == 1 && part[0] == '.') &&
           !(len == 2 && part[0] == '.' && part[1] == '.');
}

int brc_tar_name_ok(const char *name)
{
    size_t len = strlen(name);
    if (len > BRC_TAR_NAME_MAX || !brc_utf8_valid(name, len))
        return 0;
    for (;;) {
        size_t part = strcspn(name, "/");
        if (!part_is_ok(name, part))
            return 0;
        if (name[part] == '\0')
            return 1;
        name += part + 1;
    }
}

static void tar_locale_init(brc_tar_locale *l)
{
    static const char *const names[] = { "C.UTF-8", "UTF-8", "en_US.UTF-8" };
    l->utf8 = l->before = (locale_t)0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && l->utf8 == (locale_t)0; i++)
        l->utf8 = newlocale(LC_CTYPE_MASK, names[i], (locale_t)0);
}

static void tar_locale_dispose(brc_tar_locale *l)
{
    if (l->utf8 != (locale_t)0)
        freelocale(l->utf8);
}

static void tar_locale_enter(brc_tar_locale *l)
{
    if (l->utf8 != (locale_t)0)
        l->before = uselocale(l->utf8);
}

static void tar_locale_leave(brc_tar_locale *l)
{
    if (l->utf8 != (locale_t)0)
        uselocale(l->before);
}

/* ==== tar in ================================ */

/* Reads a tar stream through libarchive: only its tar format, without filters. */

#define BLOCK_BYTES ((size_t)256 << 10)
/* Headers of long names and the like have at most 1 MiB each; libarchive gets at most this many
 * bytes for one header. */
#define HEADER_MOST ((uint64_t)8 << 20)
#define PADDING_MOST ((uint64_t)4 << 20) /* zeros after the end */
#define RESERVE_MOST ((uint64_t)64 << 20) /* reserved on the word of a stated size */

struct brc_tar_in {
    brc_tar_source source;
    const char *name;
    int fd;
    struct archive *archive;
    struct archive_entry *entry;
    brc_tar_locale locale;
    brc_error error; /* of the source */
    int rc;          /* the last failure, which stays */
    int ended;       /* the source has ended */
    int is_open, in_header, was_read;
    uint64_t header_bytes; /* returned since this header began */
    uint64_t given;        /* bytes in all, `len` of them in the block */
    size_t len;
    uint8_t block[BLOCK_BYTES];
};

/* ---- the source ---------------------------------------------------------------------- */

static int read_descriptor(void *ctx, uint8_t *to, size_t cap, size_t *n, brc_error *err)
{
    const brc_tar_in *in = ctx;
    return brc_fd_read(in->fd, to, cap, n, in->name, err);
}

static int read_block(brc_tar_in *in)
{
    in->len = 0;
    if (in->ended)
        return BRC_OK;
    int rc = in->source.read(in->source.ctx, in->block, BLOCK_BYTES, &in->len, &in->error);
    if (rc < 0) {
        in->rc = rc;
        return rc;
    }
    in->ended = in->len == 0;
    in->given += in->len;
    return BRC_OK;
}

/* The read callback of libarchive. */
static la_ssize_t next_block(struct archive *a, void *ctx, const void **block)
{
    brc_tar_in *in = ctx;
    (void)a;
    if (read_block(in) < 0)
        return ARCHIVE_FATAL;
    in->header_bytes += in->len;
    if (in->in_header && in->header_bytes > HEADER_MOST) {
        in->rc = brc_fail(&in->error, BRC_ELIMIT, "a member's header is longer than %d MiB",
                          (int)(HEADER_MOST >> 20));
        return ARCHIVE_FATAL;
    }
    *block = in->block;
    return (la_ssize_t)in->len;
}

/* ---- failures ------------------------------------------------------------------------ */

static int tar_failure(brc_tar_in *in, int code, const char *text, brc_error *err)
{
    in->rc = brc_fail(&in->error, code, "%s", text);
    brc_context(&in->error, "%s", in->name);
    if (err)
        brc_error_copy(err, &in->error);
    return in->rc;
}

/* Fails with the error of libarchive, or of the source below it. */
static int damaged_tar(brc_tar_in *in, brc_error *err)
{
    if (in->rc < 0) {
        if (err)
            brc_error_copy(err, &in->error);
        return in->rc;
    }
    if (archive_errno(in->archive) == ENOMEM)
        return in->rc = brc_nomem(err);
    return tar_failure(in, BRC_EINVAL,
                       in->ended ? "the tar stream is truncated"
                                 : "this is not a tar stream, or it is damaged",
                       err);
}

/* ---- opening ------------------------------------------------------------------------- */

static int make_reader(brc_tar_in *in, brc_error *err)
{
    in->archive = archive_read_new();
    in->entry = archive_entry_new();
    if (!in->archive || !in->entry ||
        archive_read_support_format_tar(in->archive) != ARCHIVE_OK ||
        archive_read_set_read_callback(in->archive, next_block) != ARCHIVE_OK ||
        archive_read_set_callback_data(in->archive, in) != ARCHIVE_OK)
        return brc_nomem(err);
    return BRC_OK;
}

static int open_reader(brc_tar_in **out, const brc_tar_source *source, int fd, const char *name,
                       brc_error *err)
{
    brc_tar_in *in;
    *out = NULL;
    BRC_TRY(brc_new((void **)&in, sizeof(*in), err));
    in->source = *source;
    if (!in->source.ctx)
        in->source.ctx = in;
    in->fd = fd;
    in->name = name;
    in->was_read = 1;
    tar_locale_init(&in->locale);
    int rc = make_reader(in, err);
    if (rc < 0) {
        brc_tar_in_free(in);
        return rc;
    }
    *out = in;
    return BRC_OK;
}

int brc_tar_in_open(brc_tar_in **out, const brc_tar_source *source, const char *name,
                    brc_error *err)
{
    return open_reader(out, source, -1, name, err);
}

int brc_tar_in_open_fd(brc_tar_in **out, int fd, const char *name, brc_error *err)
{
    brc_tar_source source = { NULL, read_descriptor };
    return open_reader(out, &source, fd, name, err);
}

void brc_tar_in_free(brc_tar_in *in)
{
    if (!in)
        return;
    archive_entry_free(in->entry);
    archive_read_free(in->archive);
    tar_locale_dispose(&in->locale);
    free(in);
}

/* ---- the end ------------------------------------------------------------------------- */

static int all_zero(const uint8_t *bytes, size_t len)
{
    return len == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0);
}

/* Finishes the stream after two blocks of zeros. Writers pad after them, and need their output to
 * be read to the end. */
static int finish_stream(brc_tar_in *in, brc_error *err)
{
    if (in->ended)
        return tar_failure(in, BRC_EINVAL,
                           "the tar stream ends without its end-of-archive blocks: it is truncated",
                           err);
    uint64_t at = (uint64_t)archive_filter_bytes(in->archive, 0), end = at;
    size_t left = (size_t)(in->given - at);
    const uint8_t *from = in->block + in->len - left;
    while (left > 0 || !in->ended) {
        end += left;
        if (!all_zero(from, left) || end - at > PADDING_MOST)
            return tar_failure(in, BRC_EINVAL,
                               "the tar stream goes on after its end-of-archive blocks", err);
        if (read_block(in) < 0)
            return damaged_tar(in, err);
        from = in->block;
        left = in->len;
    }
    return 0;
}

/* ---- members ------------------------------------------------------------------------- */

static int refuse_member(brc_tar_in *in, const char *name, const char *why, brc_error *err)
{
    in->rc = brc_fail(&in->error, BRC_EINVAL, "%s: the member '%.200s' %s", in->name,
                      name ? name : "?", why);
    if (err)
        brc_error_copy(err, &in->error);
    return in->rc;
}

/* Parses numbers as in "1 22 333", without signs, leading zeros or anything else; returns how many,
 * or 0 for any other text. */
static size_t parse_numbers(const char *text, size_t len, uint64_t *numbers, size_t most)
{
    size_t n = 0, at = 0;
    while (n < most) {
        size_t first = at;
        numbers[n] = 0;
        for (; at < len && text[at] >= '0' && text[at] <= '9'; at++)
            if (!brc_mul_u64(numbers[n], 10, &numbers[n]) ||
                !brc_add_u64(numbers[n], (uint64_t)(text[at] - '0'), &numbers[n]))
                return 0;
        if (at == first || (text[first] == '0' && at - first > 1))
            return 0;
        n++;
        if (at == len)
            return n;
        if (text[at++] != ' ')
            return 0;
    }
    return 0;
}

int brc_tar_range_bytes(const brc_tar_range *range, uint64_t *bytes)
{
    uint64_t end;
    return range->pieces > 0 && brc_mul_u64(range->len, range->pieces, bytes) &&
           *bytes <= INT64_MAX && brc_mul_u64(range->step, range->pieces - 1, &end) &&
           brc_add_u64(end, range->at, &end) && brc_add_u64(end, range->len, &end) &&
           end <= INT64_MAX;
}

/* Returns 1 if the member refers to a range, 0 if not, BRC_EINVAL if the attribute is not valid.
 * Ignores other extended attributes, which come from file systems. */
static int look_at_range(brc_tar_in *in, brc_tar_range *range, brc_error *err)
{
    const char *name;
    const void *value;
    uint64_t n[4] = { 0, 0, 0, 1 }, bytes;
    size_t len;
    (void)archive_entry_xattr_reset(in->entry);
    do {
        if (archive_entry_xattr_next(in->entry, &name, &value, &len) != ARCHIVE_OK)
            return 0;
    } while (name == NULL || strcmp(name, BRC_TAR_RANGE) != 0);
    size_t count = parse_numbers(value, len, n, 4);
    *range = (brc_tar_range){ n[0], n[1], n[2], n[3] };
    if ((count == 2 || count == 4) && brc_tar_range_bytes(range, &bytes))
        return 1;
    return refuse_member(in, archive_entry_pathname(in->entry),
                         "has an attribute " BRC_TAR_RANGE " that is not a range", err);
}

/* Returns 1 for a file, 0 for a directory, which is ignored. */
static int look_at_entry(brc_tar_in *in, brc_tar_member *member, brc_error *err)
{
    const char *name = archive_entry_pathname(in->entry);
    if (name == NULL)
        return refuse_member(in, name, "has a name that is not valid UTF-8", err);
    if (archive_entry_hardlink(in->entry) || archive_entry_symlink(in->entry))
        return refuse_member(in, name, "is a link: only files and directories are read", err);
    unsigned type = archive_entry_filetype(in->entry);
    if (type == AE_IFDIR)
        return 0;
    if (type != AE_IFREG)
        return refuse_member(in, name, "is neither a file nor a directory", err);
    if (archive_entry_sparse_reset(in->entry) > 0)
        return refuse_member(in, name, "is a sparse file: write it in full", err);
    const char *inner = name;
    while (inner[0] == '.' && inner[1] == '/')
        inner += 2;
    if (!brc_tar_name_ok(inner))
        return refuse_member(in, name, "has a name that leaves the hierarchy, or cannot be a key",
                             err);
    int64_t size = archive_entry_size(in->entry);
    if (!archive_entry_size_is_set(in->entry) || size < 0)
        return refuse_member(in, name, "has no size", err);
    member->name = inner;
    member->size = (uint64_t)size;
    member->refers = look_at_range(in, &member->range, err);
    if (member->refers > 0 && size > 0)
        return refuse_member(in, name, "has bytes, and an attribute " BRC_TAR_RANGE " too", err);
    return member->refers < 0 ? member->refers : 1;
}

/* Returns ARCHIVE_OK, ARCHIVE_EOF or a failure. */
static int next_header(brc_tar_in *in)
{
    if (!in->was_read && archive_read_data_skip(in->archive) != ARCHIVE_OK)
        return ARCHIVE_FATAL;
    in->was_read = 0;
    in->in_header = 1;
    in->header_bytes = 0;
    tar_locale_enter(&in->locale);
    int status = in->is_open ? ARCHIVE_OK : archive_read_open1(in->archive);
    in->is_open = 1;
    if (status == ARCHIVE_OK)
        status = archive_read_next_header2(in->archive, in->entry);
    tar_locale_leave(&in->locale);
    in->in_header = 0;
    return status;
}

int brc_tar_next(brc_tar_in *in, brc_tar_member *member, brc_error *err)
{
    if (in->rc < 0)
        return damaged_tar(in, err);
    for (;;) {
        int status = next_header(in);
        if (status == ARCHIVE_EOF)
            return finish_stream(in, err);
        if (status != ARCHIVE_OK)
            return damaged_tar(in, err);
        tar_locale_enter(&in->locale);
        int rc = look_at_entry(in, member, err);
        tar_locale_leave(&in->locale);
        if (rc != 0)
            return rc;
    }
}

static int too_long(brc_tar_in *in, uint64_t limit, brc_error *err)
{
    in->rc = brc_fail(&in->error, BRC_ELIMIT,
                      "%s: the member '%.200s' is longer than %llu bytes", in->name,
                      archive_entry_pathname(in->entry), (unsigned long long)limit);
    if (err)
        brc_error_copy(err, &in->error);
    return in->rc;
}

int brc_tar_read(brc_tar_in *in, uint64_t limit, brc_buf *out, brc_error *err)
{
    const void *bytes;
    size_t len;
    int64_t offset;
    uint64_t size = (uint64_t)archive_entry_size(in->entry), done = 0;

    if (in->rc < 0)
        return damaged_tar(in, err);
    if (in->was_read)
        return brc_fail(err, BRC_EMISUSE, "%s: a member is read once", in->name);
    if (size > limit)
        return too_long(in, limit, err);
    BRC_TRY(brc_buf_reserve(out, (size_t)(size < RESERVE_MOST ? size : RESERVE_MOST), err));
    in->was_read = 1;
    for (;;) {
        int status = archive_read_data_block(in->archive, &bytes, &len, &offset);
        if (status == ARCHIVE_EOF)
            break;
        if (status != ARCHIVE_OK || (uint64_t)offset != done || len > size - done)
            return damaged_tar(in, err);
        BRC_TRY(brc_buf_append(out, bytes, len, err));
        done += len;
    }
    return done == size ? BRC_OK : damaged_tar(in, err);
}

/* ==== tar out ================================ */

/* Writes a tar stream through libarchive. */

#define OUT_BLOCK 65536 /* bytes that are written at a time */

struct brc_tar_out {
    brc_tar_sink sink;
    const char *name;
    int fd;
    struct archive *archive;
    struct archive_entry *entry;
    brc_tar_locale locale;
    brc_error error; /* of the sink */
    int rc;          /* the last failure, which stays */
};

static int write_descriptor(void *ctx, const uint8_t *from, size_t len, brc_error *err)
{
    const brc_tar_out *out = ctx;
    return brc_fd_write(out->fd, from, len, out->name, err);
}

/* The write callback of libarchive. */
static la_ssize_t write_block(struct archive *a, void *ctx, const void *bytes, size_t len)
{
    brc_tar_out *out = ctx;
    (void)a;
    if (out->rc == BRC_OK)
        out->rc = out->sink.write(out->sink.ctx, bytes, len, &out->error);
    return out->rc < 0 ? -1 : (la_ssize_t)len;
}

static int tar_write_failed(brc_tar_out *out, const char *name, brc_error *err)
{
    if (out->rc == BRC_OK)
        out->rc = archive_errno(out->archive) == ENOMEM
                      ? brc_nomem(&out->error)
                      : brc_fail(&out->error, BRC_EIO, "%s: %.200s: %s", out->name, name,
                                 archive_error_string(out->archive)
                                     ? archive_error_string(out->archive)
                                     : "libarchive cannot write it");
    if (err)
        brc_error_copy(err, &out->error);
    return out->rc;
}

static int open_stream(brc_tar_out *out, brc_error *err)
{
    out->archive = archive_write_new();
    out->entry = archive_entry_new();
    if (!out->archive || !out->entry)
        return brc_nomem(err);
    if (archive_write_set_format_pax_restricted(out->archive) != ARCHIVE_OK ||
        archive_write_add_filter_none(out->archive) != ARCHIVE_OK ||
        archive_write_set_bytes_per_block(out->archive, OUT_BLOCK) != ARCHIVE_OK ||
        archive_write_set_bytes_in_last_block(out->archive, 1) != ARCHIVE_OK ||
        archive_write_set_format_option(out->archive, NULL, "xattrheader", "SCHILY") !=
            ARCHIVE_OK ||
        archive_write_open(out->archive, out, NULL, write_block, NULL) != ARCHIVE_OK)
        return tar_write_failed(out, "opening", err);
    return BRC_OK;
}

static int open_writer(brc_tar_out **result, const brc_tar_sink *sink, int fd, const char *name,
                       brc_error *err)
{
    brc_tar_out *out;
    *result = NULL;
    BRC_TRY(brc_new((void **)&out, sizeof(*out), err));
    out->sink = *sink;
    if (!out->sink.ctx)
        out->sink.ctx = out;
    out->fd = fd;
    out->name = name;
    tar_locale_init(&out->locale);
    int rc = open_stream(out, err);
    if (rc < 0) {
        brc_tar_out_free(out);
        return rc;
    }
    *result = out;
    return BRC_OK;
}

int brc_tar_out_open(brc_tar_out **out, const brc_tar_sink *sink, const char *name, brc_error *err)
{
    return open_writer(out, sink, -1, name, err);
}

int brc_tar_out_open_fd(brc_tar_out **out, int fd, const char *name, brc_error *err)
{
    brc_tar_sink sink = { NULL, write_descriptor };
    return open_writer(out, &sink, fd, name, err);
}

/* Sets one date and one owner for all members: equal trees give equal streams. */
static void describe_member(struct archive_entry *entry, const char *name, size_t len)
{
    archive_entry_clear(entry);
    archive_entry_copy_pathname(entry, name);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, (int64_t)len);
    archive_entry_set_mtime(entry, 0, 0);
}

static void format_range(char *to, size_t cap, const brc_tar_range *range)
{
    int n = snprintf(to, cap, "%llu %llu", (unsigned long long)range->at,
                     (unsigned long long)range->len);
    if (range->pieces != 1)
        (void)snprintf(to + n, cap - (size_t)n, " %llu %llu", (unsigned long long)range->step,
                       (unsigned long long)range->pieces);
}

/* range NULL: the bytes follow. */
static int put_header(brc_tar_out *out, const char *name, size_t len, const brc_tar_range *range,
                      brc_error *err)
{
    char text[100];
    if (out->rc < 0)
        return tar_write_failed(out, name, err);
    if (!brc_tar_name_ok(name))
        return brc_fail(err, BRC_EINVAL, "%s: '%.200s' cannot be a member's name", out->name, name);
    tar_locale_enter(&out->locale);
    describe_member(out->entry, name, len);
    if (range) {
        format_range(text, sizeof(text), range);
        archive_entry_xattr_add_entry(out->entry, BRC_TAR_RANGE, text, strlen(text));
    }
    int status = archive_write_header(out->archive, out->entry);
    tar_locale_leave(&out->locale);
    return status == ARCHIVE_OK ? BRC_OK : tar_write_failed(out, name, err);
}

int brc_tar_put_range(brc_tar_out *out, const char *name, const brc_tar_range *range,
                      brc_error *err)
{
    BRC_TRY(put_header(out, name, 0, range, err));
    return archive_write_finish_entry(out->archive) == ARCHIVE_OK
               ? BRC_OK
               : tar_write_failed(out, name, err);
}

int brc_tar_put(brc_tar_out *out, const char *name, brc_span bytes, brc_error *err)
{
    BRC_TRY(put_header(out, name, bytes.len, NULL, err));
    for (size_t done = 0; done < bytes.len;) {
        la_ssize_t n = archive_write_data(out->archive, bytes.data + done, bytes.len - done);
        if (n <= 0)
            return tar_write_failed(out, name, err);
        done += (size_t)n;
    }
    if (archive_write_finish_entry(out->archive) != ARCHIVE_OK)
        return tar_write_failed(out, name, err);
    return BRC_OK;
}

int brc_tar_finish(brc_tar_out *out, brc_error *err)
{
    if (out->rc < 0 || archive_write_close(out->archive) != ARCHIVE_OK)
        return tar_write_failed(out, "the end", err);
    return BRC_OK;
}

void brc_tar_out_free(brc_tar_out *out)
{
    if (!out)
        return;
    archive_entry_free(out->entry);
    if (out->rc == BRC_OK)
        out->rc = BRC_EIO; /* otherwise the end would be written */
    if (out->archive) /* otherwise libarchive loses its block after a failure */
        (void)archive_write_close(out->archive);
    archive_write_free(out->archive);
    tar_locale_dispose(&out->locale);
    free(out);
}
