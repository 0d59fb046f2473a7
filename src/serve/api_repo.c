/*
 * api_repo.c - questions about a whole repository: what is here, whether it is sound, what its
 * bytes are for.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../breccia_codec.h"
#include "api.h"

enum {
    REFS_MOST = 1000,    /* of branches and of tags                            */
    DRAFTS_MOST = 100,
    FAULTS_MOST = 50,
    DU_ITEMS_MOST = 1000 /* of arrays, and of commits                          */
};

/* Above this many objects the sum would need more than 100 MiB of memory. */
#define DU_OBJECTS_MOST 500000

/* ---- branches, tags, uncommitted changes -------------------------------- */

static int put_refs(serve_call *call, const char *key, uint32_t kind)
{
    serve_json *json = &call->json;
    const brc_ref *ref;
    size_t n = 0;
    int rc;

    SERVE_TRY(brc_refs(&call->iter, call->repo, call->err));
    serve_json_open(json, key, '[');
    while ((rc = brc_next(call->iter, &ref, call->err)) == 1) {
        if ((ref->flags & BRC_REF_TAG) != kind || n++ >= REFS_MOST)
            continue;
        serve_json_open(json, NULL, '{');
        serve_json_text(json, "name", ref->name);
        if (ref->flags & BRC_REF_UNBORN)
            serve_json_text(json, "commit", NULL);
        else
            serve_json_id(json, "commit", &ref->id);
        if (ref->flags & BRC_REF_CURRENT)
            serve_json_bool(json, "current", 1);
        if (ref->message && *ref->message)
            serve_json_text(json, "message", ref->message);
        serve_json_close(json, '}');
    }
    serve_json_close(json, ']');
    serve_json_uint(json, kind ? "ntags" : "nbranches", n);
    serve_drop_iter(call);
    return rc;
}

static int put_drafts(serve_call *call)
{
    serve_json *json = &call->json;
    const brc_draft *draft;
    size_t n = 0;
    int rc;

    SERVE_TRY(brc_drafts(&call->iter, call->repo, call->err));
    serve_json_open(json, "drafts", '[');
    while ((rc = brc_next(call->iter, &draft, call->err)) == 1 && n++ < DRAFTS_MOST) {
        serve_json_open(json, NULL, '{');
        serve_json_text(json, "branch", draft->branch);
        serve_json_int(json, "time", draft->time_us);
        serve_json_uint(json, "nodes", draft->nodes);
        serve_json_bool(json, "private", (draft->flags & BRC_DRAFT_OWNED) != 0);
        serve_json_bool(json, "stale", (draft->flags & BRC_DRAFT_STALE) != 0);
        if (draft->op)
            serve_json_text(json, "open", draft->op);
        serve_json_close(json, '}');
    }
    serve_json_close(json, ']');
    serve_drop_iter(call);
    return rc < 0 ? rc : BRC_OK;
}

/* Says whether the current branch has uncommitted changes. */
static int put_is_clean(serve_call *call)
{
    brc_session *session;
    int clean = 1, rc;

    SERVE_TRY(brc_session_open(&session, call->repo, NULL, BRC_SESSION_VIEW, call->err));
    rc = brc_session_clean(&clean, session, call->err);
    brc_session_free(session);
    serve_json_bool(&call->json, "clean", clean);
    return rc;
}

/* ---- summary -------------------------------- */

static int put_counts(serve_call *call)
{
    brc_stats stats = BRC_STATS_INIT;
    const struct {
        const char *key;
        const uint64_t *value;
    } members[] = { { "commits", &stats.commits },
                    { "objects", &stats.objects },
                    { "chunks", &stats.chunks },
                    { "chunk_refs", &stats.chunk_refs },
                    { "stored_bytes", &stats.stored_bytes },
                    { "logical_bytes", &stats.logical_bytes },
                    { "file_bytes", &stats.file_bytes },
                    { "log_bytes", &stats.log_bytes },
                    { "outside_chunks", &stats.outside_chunks },
                    { "outside_bytes", &stats.outside_bytes },
                    { "deltas", &stats.deltas } };

    SERVE_TRY(brc_stat(call->repo, &stats, call->err));
    serve_json_open(&call->json, "counts", '{');
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
        serve_json_uint(&call->json, members[i].key, *members[i].value);
    serve_json_close(&call->json, '}');
    return BRC_OK;
}

static int put_last_commit(serve_call *call)
{
    serve_json *json = &call->json;
    brc_session_info info = BRC_SESSION_INFO_INIT;
    brc_commit *commit;

    SERVE_TRY(brc_session_stat(&info, call->session, call->err));
    if (!info.has_commit) {
        serve_json_text(json, "last", NULL);
        return BRC_OK;
    }
    SERVE_TRY(brc_commit_read(&commit, call->repo, &info.commit, call->err));
    serve_json_open(json, "last", '{');
    serve_json_id(json, "id", &commit->id);
    serve_json_text(json, "author", commit->author);
    serve_json_text(json, "message", commit->message);
    serve_json_int(json, "time", commit->time_us);
    serve_json_close(json, '}');
    brc_commit_free(commit);
    return BRC_OK;
}

int serve_summary(serve_call *call)
{
    const char *branch;
    const char *setting = serve_param(call, "counts");

    SERVE_TRY(serve_open_version(call));
    serve_put_version(call);
    serve_json_text(&call->json, "file", call->limits->file);
    serve_json_text(&call->json, "version", brc_version());
    SERVE_TRY(brc_head(&branch, call->repo, call->err));
    serve_json_text(&call->json, "branch", branch);
    SERVE_TRY(put_last_commit(call));
    SERVE_TRY(put_refs(call, "branches", 0));
    SERVE_TRY(put_refs(call, "tags", BRC_REF_TAG));
    SERVE_TRY(put_drafts(call));
    SERVE_TRY(put_is_clean(call));
    return setting && strcmp(setting, "0") != 0 ? put_counts(call) : BRC_OK;
}

/* ---- soundness -------------------------------- */

struct faults {
    serve_json *json;
    size_t n;
};

static int put_fault(void *ctx, const brc_damage *damage)
{
    struct faults *faults = ctx;

    if (faults->n++ >= FAULTS_MOST)
        return 0;
    serve_json_open(faults->json, NULL, '{');
    serve_json_text(faults->json, "kind", damage->kind);
    serve_json_text(faults->json, "message", damage->message);
    serve_json_bool(faults->json, "missing", (damage->flags & BRC_DAMAGE_MISSING) != 0);
    if (damage->nused_by > 0)
        serve_json_text(faults->json, "used_by", damage->used_by[0]);
    serve_json_close(faults->json, '}');
    return 0;
}

/* Checks everything but what decoding would show, if the time is enough for that. */
int serve_sound(serve_call *call)
{
    struct faults faults = { &call->json, 0 };
    uint64_t checked = 0;
    int rc;

    serve_json_open(&call->json, "faults", '[');
    rc = brc_fsck(call->repo, BRC_FSCK_NO_DECODE, put_fault, NULL, &faults, &checked, call->err);
    serve_json_close(&call->json, ']');
    if (rc < 0 && rc != BRC_EINTERRUPT)
        return rc;
    serve_json_uint(&call->json, "nfaults", faults.n);
    serve_json_uint(&call->json, "checked", checked);
    serve_json_bool(&call->json, "complete", rc >= 0);
    return BRC_OK;
}

/* ---- sizes -------------------------------- */

static void put_size(serve_json *json, const brc_du_item *item)
{
    serve_json_open(json, NULL, '{');
    if (item->path)
        serve_json_text(json, "path", item->path);
    else
        serve_json_id(json, "commit", &item->id);
    serve_json_uint(json, "bytes", item->bytes);
    serve_json_uint(json, "own", item->alone);
    serve_json_uint(json, "shared", item->bytes - item->alone);
    serve_json_close(json, '}');
}

/* Lists arrays, then commits; `n` has how many there are of each. */
static int put_all_sizes(serve_call *call, uint64_t n[2])
{
    serve_json *json = &call->json;
    const brc_du_item *item;
    int rc;

    serve_json_open(json, "arrays", '[');
    while ((rc = brc_next(call->iter, &item, call->err)) == 1 && item->path)
        if (n[0]++ < DU_ITEMS_MOST)
            put_size(json, item);
    serve_json_close(json, ']');
    serve_json_open(json, "commits", '[');
    for (; rc == 1; rc = brc_next(call->iter, &item, call->err))
        if (n[1]++ < DU_ITEMS_MOST)
            put_size(json, item);
    serve_json_close(json, ']');
    serve_drop_iter(call);
    return rc;
}

/* Lists what thinning to the newest commits of each branch would free. */
static int put_thinned(serve_call *call)
{
    static const uint32_t keep[] = { 1, 10, 100, 1000 };
    serve_json *json = &call->json;
    brc_expire_opts opts = BRC_EXPIRE_OPTS_INIT;
    int rc = BRC_OK;

    opts.flags = BRC_EXPIRE_DRY_RUN;
    serve_json_open(json, "expiry", '[');
    for (size_t i = 0; i < sizeof(keep) / sizeof(keep[0]) && rc >= 0; i++) {
        brc_expire_report report = BRC_EXPIRE_REPORT_INIT;

        if (serve_elapsed_ms(call) > SERVE_BUSY_MS)
            break;
        opts.keep_last = keep[i];
        rc = brc_expire(&report, NULL, call->repo, &opts, call->err);
        if (rc < 0 || report.expired == 0)
            break;
        serve_json_open(json, NULL, '{');
        serve_json_uint(json, "keep_last", keep[i]);
        serve_json_uint(json, "expired", report.expired);
        serve_json_uint(json, "freed", report.bytes);
        serve_json_close(json, '}');
    }
    serve_json_close(json, ']');
    return rc;
}

int serve_sizes(serve_call *call)
{
    serve_json *json = &call->json;
    brc_du_report report = BRC_DU_REPORT_INIT;
    brc_stats stats = BRC_STATS_INIT;
    uint64_t n[2] = { 0, 0 };

    SERVE_TRY(brc_stat(call->repo, &stats, call->err));
    if (stats.objects > DU_OBJECTS_MOST)
        return brc_fail(call->err, BRC_ELIMIT,
                        "the file has %" PRIu64 " objects, too many to be summed up here: "
                        "'breccia du' does",
                        stats.objects);
    SERVE_TRY(brc_du(&report, &call->iter, call->repo, call->err));
    serve_json_uint(json, "versions", report.versions);
    serve_json_uint(json, "uncommitted", report.uncommitted);
    serve_json_uint(json, "log", report.log);
    serve_json_uint(json, "garbage", report.garbage);
    serve_json_uint(json, "stored", report.stored);
    serve_json_uint(json, "outside", report.outside);
    serve_json_uint(json, "file_bytes", stats.file_bytes);
    SERVE_TRY(put_all_sizes(call, n));
    serve_json_uint(json, "narrays", n[0]);
    serve_json_uint(json, "ncommits", n[1]);
    return put_thinned(call);
}
