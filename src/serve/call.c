/*
 * call.c - a question while it is answered: its parameters, its version, its limits.
 */
#include <string.h>

#include "../breccia_codec.h"
#include "api.h"
#include "serve_alarm.h"

/* ---- calls -------------------------------- */

void serve_call_begin(serve_call *call, serve_answer *out, breccia *repo, const serve_query *query,
                      const serve_limits *limits, brc_error *err)
{
    memset(call, 0, sizeof(*call));
    call->out = out;
    call->repo = repo;
    call->query = query;
    call->limits = limits;
    call->err = err;
    call->json = (serve_json){ &out->body, err, BRC_OK, 0 };
    call->begun_ms = serve_now_ms();
}

void serve_drop_iter(serve_call *call)
{
    brc_iter_free(call->iter);
    call->iter = NULL;
}

void serve_call_end(serve_call *call)
{
    serve_drop_iter(call);
    brc_array_free(call->array);
    brc_session_free(call->session);
    call->array = NULL;
    call->session = NULL;
}

int64_t serve_elapsed_ms(const serve_call *call)
{
    return serve_now_ms() - call->begun_ms;
}

/* ---- parameters -------------------------------- */

const char *serve_param(const serve_call *call, const char *name)
{
    const char *value = serve_query_get(call->query, name);

    return value && *value ? value : NULL;
}

int serve_uint_param(const serve_call *call, const char *name, uint64_t low, uint64_t high,
                     uint64_t *out)
{
    const char *text = serve_param(call, name);
    uint64_t value = 0;

    if (!text)
        return BRC_OK;
    for (const char *p = text; *p; p++)
        if (*p < '0' || *p > '9' || value > (UINT64_MAX - 9) / 10)
            return brc_fail(call->err, BRC_EINVAL, "%s must be a whole number", name);
        else
            value = value * 10 + (uint64_t)(*p - '0');
    if (value < low || value > high)
        return brc_fail(call->err, BRC_EINVAL, "%s must be %llu to %llu", name,
                        (unsigned long long)low, (unsigned long long)high);
    *out = value;
    return BRC_OK;
}

const char *serve_path_param(const serve_call *call)
{
    const char *path = serve_param(call, "path");

    return path ? path : "/";
}

/* ---- versions -------------------------------- */

int serve_session(brc_session **out, serve_call *call, const char *rev)
{
    brc_error ignored = BRC_ERROR_INIT;

    if (rev && strcmp(rev, SERVE_UNCOMMITTED) == 0)
        return brc_session_open(out, call->repo, NULL, BRC_SESSION_VIEW, call->err);
    if (rev || brc_session_open(out, call->repo, NULL, BRC_SESSION_AT, &ignored) < 0)
        return brc_session_open(out, call->repo, rev, rev ? BRC_SESSION_AT : BRC_SESSION_VIEW,
                                call->err);
    return BRC_OK;
}

int serve_open_version(serve_call *call)
{
    const char *rev = serve_param(call, "rev");
    brc_session_info info = BRC_SESSION_INFO_INIT;

    if (call->session)
        return BRC_OK;
    SERVE_TRY(serve_session(&call->session, call, rev));
    SERVE_TRY(brc_session_stat(&info, call->session, call->err));
    if (!info.has_commit)
        return BRC_OK;
    brc_oid_format(call->out->commit, &info.commit);
    call->out->immutable =
        info.mode == BRC_SESSION_AT && rev && strcmp(rev, call->out->commit) == 0;
    return BRC_OK;
}

int serve_open_array(serve_call *call, const char *path)
{
    return brc_array_open(&call->array, call->session, path, call->err);
}

void serve_put_version(serve_call *call)
{
    const char *rev = serve_param(call, "rev");

    serve_json_text(&call->json, "commit", call->out->commit[0] ? call->out->commit : NULL);
    if ((rev && strcmp(rev, SERVE_UNCOMMITTED) == 0) || !call->out->commit[0])
        serve_json_bool(&call->json, "uncommitted", 1);
}

/* ---- the page's own limits -------------------------------- */

enum { PAGE_CHUNKS = 64, PAGE_SECONDS = 2 };
#define PAGE_BYTES ((uint64_t)64 << 20)

serve_limits serve_page_limits(const serve_limits *limits)
{
    serve_limits out = *limits;

    out.bytes = out.bytes < PAGE_BYTES ? out.bytes : PAGE_BYTES;
    out.chunks = out.chunks < PAGE_CHUNKS ? out.chunks : PAGE_CHUNKS;
    if (out.seconds == 0 || out.seconds > PAGE_SECONDS)
        out.seconds = PAGE_SECONDS;
    return out;
}

/* ---- elements -------------------------------- */

size_t serve_element_bytes(const uint8_t *element, size_t item)
{
    uint32_t len = 0;

    if (item > 0)
        return item;
    for (int i = 0; i < 4; i++)
        len |= (uint32_t)element[i] << 8 * i;
    return 4 + (size_t)len;
}

/* ---- errors -------------------------------- */

int serve_status(int code)
{
    switch (code) {
    case BRC_EINVAL:
    case BRC_EMISUSE:
        return 400;
    case BRC_ENOTFOUND:
    case BRC_EAMBIGUOUS:
        return 404;
    case BRC_ELIMIT:
        return 413;
    case BRC_EUNSUPPORTED:
        return 501;
    case BRC_EBUSY:
    case BRC_ESTALE:
    case BRC_EINTERRUPT:
    case BRC_ENOMEM:
        return 503;
    default:
        return 500;
    }
}
