/* Writes a node as a tar stream, waits for descriptors, and reads the ranges to which a stream
 * refers. */
#include "stream_out.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../base/file.h"
#include "../../base/node_path.h"
#include "../../work/session.h"
#include "../../zarr/doc/meta.h"
#include "../../zarr/transfer.h"
#include "../documents.h"
#include "../foreign/protocol.h"
#include "../xfer.h"

/* ==== stream fd ================================ */

#define LOOK_MS 100 /* between two looks for an interruption */
#define SOON_MS 5   /* a longer wait holds no lock             */

static int wait_until_ready(const brc_stream_fd *stream, short events, brc_error *err)
{
    struct pollfd fd = { stream->fd, events, 0 };
    int ready = 0;
    for (int ms = SOON_MS; ready <= 0; ms = LOOK_MS) {
        BRC_TRY(brc_task_step(stream->repo, 0, err));
        ready = poll(&fd, 1, ms);
        if (ready < 0 && errno != EINTR)
            return brc_fail_os(err, errno, "waiting for", stream->name);
        if (ready == 0)
            BRC_TRY(brc_store_rest(stream->repo->store, 1, err));
    }
    return BRC_OK;
}

static int read_when_there(void *ctx, uint8_t *to, size_t cap, size_t *n, brc_error *err)
{
    const brc_stream_fd *source = ctx;
    BRC_TRY(wait_until_ready(source, POLLIN, err));
    return brc_fd_read(source->fd, to, cap, n, source->name, err);
}

int brc_stream_fd_open(brc_tar_in **out, brc_stream_fd *source, breccia *repo, int fd,
                       const char *name, brc_error *err)
{
    brc_tar_source from = { source, read_when_there };
    *source = (brc_stream_fd){ .repo = repo, .fd = fd, .name = name };
    return brc_tar_in_open(out, &from, name, err);
}

static int write_when_room(void *ctx, const uint8_t *from, size_t len, brc_error *err)
{
    const brc_stream_fd *sink = ctx;
    while (len > 0) {
        BRC_TRY(wait_until_ready(sink, POLLOUT, err));
        ptrdiff_t n = brc_fd_write_some(sink->fd, from, len < sink->most ? len : sink->most);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return brc_fail_os(err, errno, "writing", sink->name);
        from += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return BRC_OK;
}

/* Opens a writer. A pipe that is ready has room for this many bytes: the write does not wait where
 * no interruption is looked for. */
int brc_stream_fd_create(brc_tar_out **out, brc_stream_fd *sink, breccia *repo, int fd,
                         const char *name, brc_error *err)
{
    brc_tar_sink to = { sink, write_when_room };
    struct stat st;
    int is_file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    *sink = (brc_stream_fd){ repo, fd, name, is_file ? SIZE_MAX : PIPE_BUF };
    return brc_tar_out_open(out, &to, name, err);
}

/* ==== stream file ================================ */

/* Reads the bytes to which a stream refers. */

/* Opens the file without waiting, in case that a pipe has taken its place. */
static int open_source(brc_stream_file *file, brc_error *err)
{
    struct stat st;
    file->fd = open(file->name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file->fd < 0)
        return brc_fail_os(err, errno, "cannot open", file->name);
    file->is_open = 1;
    if (fstat(file->fd, &st) < 0)
        return brc_fail_os(err, errno, "cannot read", file->name);
    file->size = (uint64_t)st.st_size;
    return S_ISREG(st.st_mode)
               ? BRC_OK
               : brc_fail(err, BRC_EINVAL, "%s is not a regular file", file->name);
}

void brc_stream_file_close(brc_stream_file *file)
{
    if (file->is_open)
        close(file->fd);
    file->is_open = 0;
}

int brc_stream_range_open(brc_stream_range *out, brc_stream_file *file, const brc_tar_range *range,
                          brc_error *err)
{
    uint64_t bytes;
    if (!file->is_open)
        BRC_TRY(open_source(file, err));
    *out = (brc_stream_range){ .file = file, .range = *range };
    if (brc_tar_range_bytes(range, &bytes) && range->at <= file->size &&
        range->step * (range->pieces - 1) + range->len <= file->size - range->at)
        return BRC_OK;
    return brc_fail(err, BRC_EINVAL,
                    "the file ends before these elements do: it is truncated or damaged");
}

int brc_stream_range_read(void *ctx, uint8_t *dst, size_t len, brc_error *err)
{
    brc_stream_range *r = ctx;
    while (len > 0) {
        if (r->at == r->range.len) {
            r->at = 0;
            r->piece++;
        }
        if (r->piece >= r->range.pieces)
            return brc_fail(err, BRC_EINTERNAL, "%s: a range is read beyond its end",
                            r->file->name);
        uint64_t left = r->range.len - r->at;
        size_t n = left < len ? (size_t)left : len;
        BRC_TRY(brc_fd_read_at(r->file->fd, dst, n,
                               r->range.at + r->piece * r->range.step + r->at, r->file->name,
                               err));
        r->at += n;
        dst += n;
        len -= n;
    }
    return BRC_OK;
}

/* ==== stream out ================================ */

/* Turns nodes and chunks into members. */

typedef struct stream_writer {
    brc_session *session;
    brc_tar_out *tar;
    int transport;
    brc_nan_out nan;
    brc_array *array; /* the array whose chunks are written  */
    brc_buf key;      /* of a member, which begins with ...  */
    size_t base;      /* ... this many bytes of the node's path */
} stream_writer;

/* Sets the key to "a/b/" for the node at "a/b", and to nothing for the first node. Converters undo
 * escapes themselves, because their formats allow other names than a tar stream. */
static int begin_key(stream_writer *w, const char *inner, brc_error *err)
{
    char *place = NULL;
    int rc = BRC_OK;

    w->key.len = 0;
    if (*inner && !w->transport)
        BRC_GO(brc_path_unescape(&place, inner, BRC_NAMES_FILES, err));
    if (*inner)
        BRC_GO(brc_buf_printf(&w->key, err, "%s/", place ? place : inner));
    w->base = w->key.len;
done:
    free(place);
    return rc;
}

/* ---- documents ----------------------------------------------------------------------- */

/* Notes the codecs that the array has in the repository. */
static int note_codecs(brc_json *plain, const brc_json *doc, brc_error *err)
{
    brc_json *note = NULL, *codecs = NULL;
    int rc;
    BRC_GO(brc_json_parse(&note, "{\"must_understand\":false}", 25, 0, err));
    BRC_GO(brc_json_clone(&codecs, brc_json_member(doc, "codecs"), err));
    rc = brc_json_set(note, "codecs", codecs, err);
    codecs = NULL;
    if (rc < 0)
        goto done;
    rc = brc_json_set(plain, BRC_EXPORT_NOTE, note, err);
    note = NULL;
done:
    brc_json_free(codecs);
    brc_json_free(note);
    return rc;
}

static int plain_document(brc_json **out, const stream_writer *w, const brc_json *doc,
                          brc_error *err)
{
    BRC_TRY(brc_meta_plain_doc(out, brc_session_registry(w->session), doc, w->transport, err));
    int rc = note_codecs(*out, doc, err);
    if (rc < 0) {
        brc_json_free(*out);
        *out = NULL;
    }
    return rc;
}

static int put_zarr_json(stream_writer *w, const brc_json *doc, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_buf_text(&w->key, "zarr.json", err));
    BRC_GO(brc_buf_terminate(&w->key, err));
    BRC_GO(brc_json_write(&text, doc, BRC_JSON_PRETTY, err));
    rc = brc_tar_put(w->tar, (const char *)w->key.data, (brc_span){ text.data, text.len }, err);
done:
    brc_buf_dispose(&text);
    return rc;
}

/* brc_nodes_each() */
static int write_document(void *ctx, const char *path, const char *inner, int kind, brc_error *err)
{
    stream_writer *w = ctx;
    brc_json *doc = NULL, *plain = NULL;
    int rc;

    BRC_GO(brc_node_doc(&doc, w->session, path, err));
    if (!w->transport)
        BRC_GO(brc_nan_mark(&w->nan, doc, path, err));
    if (w->transport && kind == BRC_ARRAY)
        BRC_GO(plain_document(&plain, w, doc, err));
    BRC_GO(begin_key(w, inner, err));
    rc = put_zarr_json(w, plain ? plain : doc, err);
done:
    if (rc < 0)
        brc_context(err, "%s", path);
    brc_json_free(plain);
    brc_json_free(doc);
    return rc;
}

/* ---- chunks -------------------------------------------------------------------------- */

/* The put function of brc_chunk_sink. */
static int write_stored(void *ctx, const uint64_t *index, brc_span stored, brc_error *err)
{
    stream_writer *w = ctx;
    w->key.len = w->base;
    BRC_TRY(brc_chunk_key_format(w->array, index, &w->key, err));
    BRC_TRY(brc_buf_terminate(&w->key, err));
    return brc_tar_put(w->tar, (const char *)w->key.data, stored, err);
}

/* brc_nodes_each() */
static int write_chunks(void *ctx, const char *path, const char *inner, int kind, brc_error *err)
{
    stream_writer *w = ctx;
    brc_chunk_sink sink = { w, write_stored, 0 };
    if (kind != BRC_ARRAY)
        return BRC_OK;
    BRC_TRY(begin_key(w, inner, err));
    BRC_TRY(w->transport ? brc_array_open_plain(&w->array, w->session, path, w->transport, err)
                         : brc_array_open(&w->array, w->session, path, err));
    int rc = brc_array_get_stored(w->array, &sink, err);
    brc_array_free(w->array);
    w->array = NULL;
    return rc;
}

int brc_stream_export(brc_session *s, const char *path, brc_tar_out *tar,
                      const brc_stream_out_opts *opts, brc_error *err)
{
    stream_writer w = { .session = s, .tar = tar, .transport = opts->transport,
                        .nan = { .tokens = opts->nan_tokens, .version = 3 } };
    int rc;
    BRC_GO(brc_nodes_each(s, path, write_document, &w, err));
    BRC_GO(brc_nodes_each(s, path, write_chunks, &w, err));
    BRC_GO(brc_tar_finish(tar, err));
    rc = brc_nan_warn(&w.nan, opts->warnings, err);
done:
    brc_nan_out_dispose(&w.nan);
    brc_buf_dispose(&w.key);
    return rc;
}
