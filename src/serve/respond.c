#include "respond.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../breccia_codec.h"
#include "keys.h"
#include "listing.h"

/* ---- one request -------------------------------- */

/* Fills in what an error says; returns 0 for one that passes if the request waits. */
static int reply_error(serve_reply *out, const serve_request *q, int rc, const brc_error *err)
{
    if (rc == BRC_EBUSY && !q->may_wait) {
        serve_reply_dispose(out);
        return 0;
    }
    char late[80];
    const char *text = err->message[0] != '\0' ? err->message : brc_strerror(rc);
    const int status = out->is_gone ? 410 : serve_status(rc);
    (void)snprintf(late, sizeof(late), "the request took longer than %u seconds",
                   q->limits.seconds);
    serve_reply_fail(out, status, rc == BRC_EINTERRUPT ? late : text);
    return 1;
}

/* Sends a client that left out the "/" at a directory's end to the right place. */
static int reply_slash(serve_reply *out, const serve_request *q, brc_error *err)
{
    brc_buf to = BRC_BUF_INIT;
    const size_t len = strcspn(q->uri, "?");
    size_t begin = len;
    while (begin > 0 && q->uri[begin - 1] != '/')
        begin--;
    int rc =
        brc_buf_printf(&to, err, "./%.*s/%s", (int)(len - begin), q->uri + begin, q->uri + len);
    if (rc < 0)
        return rc;
    serve_reply_fail(out, 301, "a directory's address ends with /");
    out->location = to;
    return BRC_OK;
}

typedef int (*reader_call)(serve_reply *out, serve_reader *reader, const serve_request *q,
                           brc_error *err);

/* Calls `work` with a reader of the file. */
static int with_reader(serve_reply *out, serve_files *files, const serve_request *q,
                       const char *name, reader_call work, brc_error *err)
{
    serve_reader *reader;
    int rc = serve_reader_take(&reader, files, name, q->may_wait, err);
    if (rc < 0) {
        out->is_gone = rc == BRC_EIO || (rc == BRC_ENOTFOUND && q->target->what == SERVE_IS_KEY &&
                                         !serve_is_document(q->target->key));
        return rc;
    }
    if (q->on_reader != NULL)
        q->on_reader(q->ctx, reader);
    rc = work(out, reader, q, err);
    if (q->on_reader != NULL)
        q->on_reader(q->ctx, NULL);
    serve_reader_hide(reader, err);
    serve_reader_give(reader, rc);
    return rc;
}

static int call_api(serve_reply *out, serve_reader *reader, const serve_request *q, brc_error *err)
{
    return serve_api(&out->answer, serve_reader_repo(reader), q->target->api, &q->target->query,
                     &q->limits, err);
}

static int call_page(serve_reply *out, serve_reader *reader, const serve_request *q, brc_error *err)
{
    return serve_page(&out->answer, serve_reader_repo(reader), &q->target->query, &q->limits, err);
}

/* Answers for the file that the query names, or the only one. */
static int reply_for_file(serve_reply *out, serve_files *files, const serve_request *q,
                          reader_call work, brc_error *err)
{
    serve_request own = *q;
    if (!q->may_wait)
        return brc_fail(err, BRC_EBUSY, "a worker does this");
    own.limits.file = serve_query_get(&q->target->query, "file");
    if (own.limits.file == NULL) {
        int rc = serve_files_only(&own.limits.file, files, err);
        if (rc < 0)
            return rc;
    }
    return with_reader(out, files, &own, own.limits.file, work, err);
}

static int reply_page(serve_reply *out, serve_files *files, const serve_request *q, brc_error *err)
{
    const char *only;
    if (serve_query_get(&q->target->query, "file") == NULL &&
        serve_files_only(&only, files, NULL) < 0)
        return serve_list_files(out, files, q, err);
    return reply_for_file(out, files, q, call_page, err);
}

static int reply_to(serve_reply *out, serve_files *files, const serve_request *q, brc_error *err)
{
    if (q->target->what != SERVE_NOTHING && q->target->what != SERVE_IS_API &&
        serve_is_s3(&q->target->query))
        return serve_list_s3(out, files, q, err);
    switch (q->target->what) {
    case SERVE_IS_PAGE:
        return reply_page(out, files, q, err);
    case SERVE_IS_API:
        return reply_for_file(out, files, q, call_api, err);
    case SERVE_IS_KEY:
        return with_reader(out, files, q, q->target->name, serve_key, err);
    case SERVE_IS_NAMES:
        return serve_list_names(out, files, q, err);
    case SERVE_IS_UNSLASHED:
        return reply_slash(out, q, err);
    default:
        serve_reply_fail(out, 404, "not found");
        return BRC_OK;
    }
}

/* An answer with a tag that the client has already is left out. */
static void shorten_reply(serve_reply *out, const serve_request *q)
{
    serve_answer *a = &out->answer;
    if (a->status == 0)
        a->status = 200;
    if (a->status == 200 && serve_etag_matches(q->if_none_match, a->etag, 0)) {
        a->status = 304;
        brc_buf_dispose(&a->body);
    }
    if (a->body.len > 0)
        out->length = a->body.len;
}

int serve_respond(serve_reply *out, serve_files *files, const serve_request *q)
{
    brc_error err = BRC_ERROR_INIT;
    memset(out, 0, sizeof(*out));
    const int rc = reply_to(out, files, q, &err);
    if (rc < 0)
        return reply_error(out, q, rc, &err);
    shorten_reply(out, q);
    return 1;
}
