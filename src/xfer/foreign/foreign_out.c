/* Running a program that reads a stream and writes a file. */
#include <string.h>

#include "../dest.h"
#include "../stream/stream_out.h"
#include "foreign_run.h"

typedef struct foreign_out {
    brc_foreign_run run;
    int gone; /* it does not read any more: it says why */
} foreign_out;

/* brc_tar_sink's write. */
static int feed_child(void *ctx, const uint8_t *from, size_t len, brc_error *err)
{
    foreign_out *out = ctx;
    BRC_TRY(brc_child_write(out->run.child, from, len, &out->gone, err));
    return out->gone ? brc_fail(err, BRC_EIO, "%s ended too early", out->run.label) : BRC_OK;
}

/* export [--classic] --path PATH FILE */
static int start_export(foreign_out *out, const brc_foreign *what, const char *path,
                        const char *temp, int classic, brc_error *err)
{
    const char *args[6] = { "export" };
    size_t n = 1;
    if (classic)
        args[n++] = "--classic";
    args[n++] = "--path";
    args[n++] = path;
    args[n] = temp;
    return brc_foreign_start(&out->run, what, args, 1, err);
}

static int feed_stream(foreign_out *out, const brc_foreign *what, const char *path, brc_error *err)
{
    brc_tar_sink sink = { out, feed_child };
    brc_tar_out *tar;
    BRC_TRY(brc_tar_out_open(&tar, &sink, what->file, err));
    const brc_stream_out_opts opts = { .transport = 1 };
    int rc = brc_stream_export(what->session, path, tar, &opts, err);
    brc_tar_out_free(tar);
    return rc;
}

/* If it ended before its stream did, it knows the reason. */
static int settle_export(foreign_out *out, const brc_foreign *what, int rc, brc_error *err)
{
    int status;
    if (rc < 0 && !out->gone)
        return rc;
    BRC_TRY(brc_child_end(out->run.child, 0, &status, err));
    return status != 0 ? brc_foreign_ended(&out->run, what, status, err) : rc;
}

static int run_exporter(const brc_foreign *what, const char *path, const char *temp, int classic,
                        brc_error *err)
{
    foreign_out out;
    memset(&out, 0, sizeof(out));
    int rc = start_export(&out, what, path, temp, classic, err);
    if (rc == BRC_OK)
        rc = settle_export(&out, what, feed_stream(&out, what, path, err), err);
    brc_foreign_stop(&out.run);
    return rc;
}

/* The converter knows the temporary name alone, and so does its library; the caller does not. */
static void name_asked_for(brc_error *err, const brc_dest *dest)
{
    size_t shown = strlen(dest->path), len = strlen(dest->temp);
    char *at = err->message;
    while ((at = strstr(at, dest->temp)) != NULL) {
        at += shown;
        memmove(at, at + len - shown, strlen(at + len - shown) + 1);
    }
}

int brc_foreign_export(const brc_foreign *what, const char *path, int classic, brc_error *err)
{
    brc_dest dest;
    BRC_TRY(brc_dest_open(&dest, what->session, what->file, 0, err));
    int rc = run_exporter(what, path, dest.temp, classic, err);
    if (rc < 0 && err)
        name_asked_for(err, &dest);
    if (rc == BRC_OK)
        rc = brc_dest_finish(&dest, 0, err);
    brc_dest_close(&dest);
    return rc;
}
