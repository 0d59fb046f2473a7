/*
 * api.c - from a question's name to its answer: versions, limits, errors as JSON.
 */
#include "api.h"

#include <string.h>

#include "../breccia_codec.h"
#include "page.h"
#include "serve_alarm.h"

/* ---- answers -------------------------------- */

static const struct {
    const char *what;
    int (*answer)(serve_call *call);
    int is_whole; /* the answer is no JSON object                             */
} answers[] = {
    { "summary", serve_summary, 0 }, { "sound", serve_sound, 0 },
    { "tree", serve_tree, 0 },       { "node", serve_node, 0 },
    { "log", serve_log, 0 },         { "touched", serve_touched, 0 },
    { "slice", serve_slice, 1 },     { "chunks", serve_chunks, 0 },
    { "diff", serve_diff, 0 },       { "history", serve_history, 0 },
    { "blame", serve_blame, 0 },     { "sizes", serve_sizes, 0 },
    { "stats", serve_stats, 0 },
};

static int answer_error(serve_answer *out, int code, const char *message, brc_error *err)
{
    serve_json json = { &out->body, err, BRC_OK, 0 };

    out->status = serve_status(code);
    out->type = "application/json";
    out->immutable = 0;
    out->etag[0] = '\0';
    out->body.len = 0;
    serve_json_open(&json, NULL, '{');
    serve_json_text(&json, "error", message);
    serve_json_close(&json, '}');
    return json.rc;
}

static int answer_as(serve_call *call, size_t i)
{
    call->out->type = "application/json";
    if (answers[i].is_whole)
        return answers[i].answer(call);
    serve_json_open(&call->json, NULL, '{');
    SERVE_TRY(answers[i].answer(call));
    serve_json_close(&call->json, '}');
    return call->json.rc;
}

static size_t find_answer(const char *what)
{
    size_t i = 0;

    while (i < sizeof(answers) / sizeof(answers[0]) && strcmp(answers[i].what, what) != 0)
        i++;
    return i;
}

int serve_api(serve_answer *out, breccia *repo, const char *what, const serve_query *query,
              const serve_limits *limits, brc_error *err)
{
    const serve_limits own_limits = serve_page_limits(limits);
    const size_t i = find_answer(what);
    brc_error own = BRC_ERROR_INIT;
    serve_alarm alarm;
    serve_call call;
    int rc, late;

    rc = serve_asset(out, what, &own);
    if (rc != 0)
        return rc < 0 ? answer_error(out, rc, own.message, err) : BRC_OK;
    if (i == sizeof(answers) / sizeof(answers[0]))
        return answer_error(out, BRC_ENOTFOUND, "there is no such question", err);
    SERVE_TRY(serve_alarm_begin(&alarm, repo, own_limits.seconds * 1000, err));
    serve_call_begin(&call, out, repo, query, &own_limits, &own);
    out->body.limit = (size_t)own_limits.bytes / 2 + (16 << 20);
    rc = answer_as(&call, i);
    late = serve_alarm_end(&alarm);
    serve_call_end(&call);
    if (rc == BRC_EINTERRUPT && late)
        rc = brc_fail(&own, BRC_ELIMIT,
                      "it takes longer than %u s: ask for less, or use the command",
                      own_limits.seconds);
    return rc < 0 ? answer_error(out, rc, own.message, err) : BRC_OK;
}
