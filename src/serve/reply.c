#include "reply.h"

#include <string.h>

#include "../breccia_codec.h"

/* ---- replies -------------------------------- */

void serve_reply_dispose(serve_reply *reply)
{
    brc_buf_dispose(&reply->answer.body);
    brc_buf_dispose(&reply->location);
    memset(reply, 0, sizeof(*reply));
}

void serve_reply_fail(serve_reply *reply, int status, const char *text)
{
    serve_reply_dispose(reply);
    reply->answer.status = status;
    reply->answer.type = "text/plain; charset=utf-8";
    if (brc_buf_printf(&reply->answer.body, NULL, "%s\n", text) < 0)
        brc_buf_dispose(&reply->answer.body);
    reply->length = reply->answer.body.len;
    if (status == 503)
        reply->retry_after = 1;
}

/* ---- parts -------------------------------- */

int serve_range_counts(brc_key_range *range, const serve_request *q, const char *etag)
{
    return serve_range_read(range, q->is_head ? NULL : q->range) &&
           (q->if_range == NULL || serve_etag_matches(q->if_range, etag, 1));
}

void serve_reply_part(serve_reply *out, uint64_t start, uint64_t whole)
{
    out->whole = whole;
    out->start = start;
    out->answer.status = out->answer.body.len > 0 ? 206 : 416;
    if (out->answer.body.len == 0)
        brc_buf_dispose(&out->answer.body);
}

void serve_reply_cut(serve_reply *out, const serve_request *q)
{
    serve_answer *a = &out->answer;
    brc_key_range range;
    const size_t len = a->body.len;
    out->has_ranges = 1;
    out->length = len;
    if (q->is_head || serve_etag_matches(q->if_none_match, a->etag, 0)) {
        brc_buf_dispose(&a->body);
        return;
    }
    if (!serve_range_counts(&range, q, a->etag))
        return;
    uint64_t start = range.start < len ? range.start : len, end = len;
    if (range.kind == BRC_RANGE_LAST)
        start = range.start < len ? len - range.start : 0;
    if (range.kind == BRC_RANGE_BETWEEN && range.end < len)
        end = range.end;
    if (end > start)
        memmove(a->body.data, a->body.data + start, (size_t)(end - start));
    a->body.len = end > start ? (size_t)(end - start) : 0;
    serve_reply_part(out, start, len);
}
