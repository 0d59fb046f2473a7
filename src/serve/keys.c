#include "keys.h"

#include <string.h>

#include "../breccia_codec.h"
#include "listing.h"

/* Says in the reply which version it is from: its id, the time of the commit, whether it may be
 * kept for ever, and otherwise the address at which it may. */
static int name_version(serve_reply *out, const serve_version *version, const serve_request *q,
                        brc_error *err)
{
    const serve_target *t = q->target;
    memcpy(out->answer.commit, version->hex, sizeof(out->answer.commit));
    out->answer.immutable = version->named;
    out->modified_us = version->time_us;
    if (version->named)
        return BRC_OK;
    int rc = brc_buf_printf(&out->location, err, "%s/%s%s/", q->prefix, t->format == 2 ? "v2/" : "",
                            version->hex);
    if (rc == BRC_OK)
        rc = serve_url_escape(&out->location, t->name, 1, err);
    if (rc == BRC_OK)
        rc = brc_buf_printf(&out->location, err, ".zarr/");
    return rc == BRC_OK ? serve_url_escape(&out->location, t->key, 1, err) : rc;
}

static int key_ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* Reads a key's value, or the part that is asked for. */
static int read_value(serve_reply *out, brc_session *s, const char *key, const serve_request *q,
                      brc_error *err)
{
    brc_key_info info = BRC_KEY_INFO_INIT;
    brc_key_range range;
    serve_answer *a = &out->answer;
    int has_range = serve_range_read(&range, q->range);
    out->has_ranges = 1;
    a->type = key_ends_with(key, ".json") ? "application/json" : "application/octet-stream";
    if (q->is_head || q->if_none_match != NULL || q->if_range != NULL) {
        int rc = brc_key_get(NULL, s, key, NULL, &info, err);
        if (rc < 0)
            return rc;
        memcpy(a->etag, info.etag, sizeof(info.etag));
        out->length = info.length;
        if (serve_etag_matches(q->if_none_match, a->etag, 0))
            return BRC_OK; /* 304 */
        has_range &= q->if_range == NULL || serve_etag_matches(q->if_range, a->etag, 1);
        if (q->is_head)
            return BRC_OK;
    }
    int rc = brc_key_get(&a->body, s, key, has_range ? &range : NULL, &info, err);
    if (rc < 0)
        return rc;
    memcpy(a->etag, info.etag, sizeof(info.etag));
    if (!has_range)
        return BRC_OK;
    out->whole = info.length;
    if (a->body.len == 0) {
        brc_buf_dispose(&a->body);
        a->status = 416;
        return BRC_OK;
    }
    a->status = 206;
    out->start = range.kind == BRC_RANGE_LAST ? info.length - a->body.len : range.start;
    return BRC_OK;
}

int serve_key(serve_reply *out, serve_reader *reader, const serve_request *q, brc_error *err)
{
    const serve_version *version;
    const char *key = q->target->key;
    int rc = serve_version_open(&version, reader, q->target->rev, err);
    if (rc == BRC_OK)
        rc = name_version(out, version, q, err);
    if (rc < 0)
        return rc;
    if (*key == '\0' || key_ends_with(key, "/"))
        return serve_list_keys(out, version, q, err);
    return read_value(out, version->session, key, q, err);
}
