/* Writing a tar stream through libarchive. */
#include "tar_out.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/fd.h"
#include "tar_lib.h"

#define OUT_BLOCK 65536 /* bytes that are written at a time */

struct brc_tar_out {
    brc_tar_sink sink;
    const char *name;
    int fd;
    struct archive *archive;
    struct archive_entry *entry;
    brc_tar_locale locale;
    brc_error error; /* of the sink */
    int rc;          /* what the last failure was: it stays */
};

static int write_descriptor(void *ctx, const uint8_t *from, size_t len, brc_error *err)
{
    const brc_tar_out *out = ctx;
    return brc_fd_write(out->fd, from, len, out->name, err);
}

/* libarchive's write callback. */
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
    brc_tar_locale_init(&out->locale);
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

/* One date and one owner for all: equal trees give equal streams. */
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
    brc_tar_locale_enter(&out->locale);
    describe_member(out->entry, name, len);
    if (range) {
        format_range(text, sizeof(text), range);
        archive_entry_xattr_add_entry(out->entry, BRC_TAR_RANGE, text, strlen(text));
    }
    int status = archive_write_header(out->archive, out->entry);
    brc_tar_locale_leave(&out->locale);
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
        out->rc = BRC_EIO; /* or the end would be written */
    if (out->archive) /* before it is freed: after a failure libarchive forgets its block else */
        (void)archive_write_close(out->archive);
    archive_write_free(out->archive);
    brc_tar_locale_dispose(&out->locale);
    free(out);
}
