#include "keys.h"

#include <string.h>

#include "../breccia_codec.h"
#include "listing.h"
#include "made.h"

/* The most bytes of a value that is answered on a thread that answers others too, and on any. */
enum { QUICK_BYTES = 2 << 20, VALUE_BYTES = 1 << 30 };

static size_t slashes_in(const char *text)
{
    size_t n = 0;
    for (; *text != '\0'; text++)
        n += *text == '/';
    return n;
}

static int put_ups(brc_buf *out, size_t n, brc_error *err)
{
    int rc = BRC_OK;
    while (n-- > 0 && rc == BRC_OK)
        rc = brc_buf_append(out, "../", 3, err);
    return rc;
}

/* Says in the reply which version it is from: its id, the time of the commit, whether it may be
 * kept for ever, and otherwise the address at which it may, relative to that of the request: a
 * server in front may have other paths. */
static int name_version(serve_reply *out, const serve_version *version, const serve_request *q,
                        brc_error *err)
{
    const serve_target *t = q->target;
    memcpy(out->answer.commit, version->hex, sizeof(out->answer.commit));
    out->answer.immutable = version->named;
    out->modified_us = version->time_us;
    if (version->named)
        return BRC_OK;
    int rc = put_ups(&out->location, 2 + slashes_in(t->name) + slashes_in(t->key), err);
    if (rc == BRC_OK)
        rc = brc_buf_printf(&out->location, err, "%s/", version->hex);
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

/* ---- values -------------------------------- */

static int bound_work(const serve_version *version, const serve_request *q, brc_error *err)
{
    brc_key_limits limits = BRC_KEY_LIMITS_INIT;
    limits.decoded = q->limits.bytes;
    limits.bytes = q->may_wait ? VALUE_BYTES : QUICK_BYTES;
    limits.flags = q->may_wait ? 0 : BRC_KEYS_STORED;
    return brc_key_limit(version->session, &limits, err);
}

/* Reads the key's value, or the part that is asked for. */
static int read_value(serve_reply *out, brc_session *s, const char *key, const serve_request *q,
                      brc_error *err)
{
    brc_key_info info = BRC_KEY_INFO_INIT;
    brc_key_range range;
    serve_answer *a = &out->answer;
    out->has_ranges = 1;
    if (q->is_head || q->if_none_match != NULL || q->if_range != NULL) {
        int rc = brc_key_get(NULL, s, key, NULL, &info, err);
        if (rc < 0)
            return rc;
        memcpy(a->etag, info.etag, sizeof(info.etag));
        out->length = info.length;
        if (q->is_head || serve_etag_matches(q->if_none_match, a->etag, 0))
            return BRC_OK;
    }
    const int has_range = serve_range_counts(&range, q, a->etag);
    int rc = brc_key_get(&a->body, s, key, has_range ? &range : NULL, &info, err);
    if (rc < 0)
        return rc;
    memcpy(a->etag, info.etag, sizeof(info.etag));
    if (has_range)
        serve_reply_part(out,
                         range.kind == BRC_RANGE_LAST ? info.length - a->body.len : range.start,
                         info.length);
    return BRC_OK;
}

static int read_stored_value(serve_reply *out, const serve_version *version, const char *key,
                             const serve_request *q, brc_error *err)
{
    out->answer.type =
        key_ends_with(key, ".json") ? "application/json" : "application/octet-stream";
    int rc = bound_work(version, q, err);
    if (rc == BRC_OK)
        rc = read_value(out, version->session, key, q, err);
    if (rc == BRC_ELIMIT && !q->may_wait)
        return brc_fail(err, BRC_EBUSY, "a worker does this");
    return rc;
}

int serve_value(serve_reply *out, serve_reader *reader, const serve_version *version, int format,
                const char *key, const serve_request *q, brc_error *err)
{
    brc_buf own = BRC_BUF_INIT;
    int rc = serve_made_document(out, reader, version, format, key, q, err);
    if (rc != 0)
        return rc < 0 ? rc : BRC_OK;
    if (format == 3)
        return read_stored_value(out, version, key, q, err);
    rc = serve_key_of_v2(&own, version, key, err);
    if (rc == BRC_OK)
        rc = read_stored_value(out, version, (const char *)own.data, q, err);
    brc_buf_dispose(&own);
    return rc;
}

int serve_key(serve_reply *out, serve_reader *reader, const serve_request *q, brc_error *err)
{
    const serve_version *version;
    const char *key = q->target->key;
    int rc = serve_version_open(&version, reader, q->target->rev, err);
    if (rc == BRC_ENOTFOUND)
        out->is_gone = !serve_is_document(key);
    if (rc == BRC_OK)
        rc = name_version(out, version, q, err);
    if (rc < 0)
        return rc;
    if (*key == '\0' || key_ends_with(key, "/"))
        return serve_list_keys(out, reader, version, q, err);
    return serve_value(out, reader, version, q->target->format, key, q, err);
}
