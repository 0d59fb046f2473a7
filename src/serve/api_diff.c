/*
 * api_diff.c - what differs between two versions, when an array changed, and what its elements
 * come to.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../breccia_codec.h"
#include "api_node.h"

enum {
    CHANGES_MOST = 1000,
    POINTERS_MOST = 50,  /* members of a document that are shown                */
    BOXES_MOST = 100,
    HISTORY_MOST = 100,
    HISTORY_USUAL = 12,
    MEMBER_BYTES = 8192  /* of a member of a document                           */
};

/* ---- documents -------------------------------- */

/* Both versions of a diff. */
struct pair {
    serve_call *call;
    const char *rev[2];
    brc_session *session[2];
};

static int pair_session(struct pair *pair, int side)
{
    if (pair->session[side])
        return BRC_OK;
    return serve_session(&pair->session[side], pair->call, pair->rev[side]);
}

static void pair_free(struct pair *pair)
{
    brc_session_free(pair->session[0]);
    brc_session_free(pair->session[1]);
}

/* Reads a node's document of a version; *out is NULL if it has no such node. */
static int pair_document(brc_json **out, struct pair *pair, int side, const char *path)
{
    brc_buf text = BRC_BUF_INIT;
    brc_error *err = pair->call->err;
    int kind, rc;

    *out = NULL;
    SERVE_TRY(pair_session(pair, side));
    SERVE_TRY(brc_node_kind(&kind, pair->session[side], path, err));
    if (kind == 0)
        return BRC_OK;
    rc = brc_node_json(&text, pair->session[side], path, err);
    if (rc >= 0)
        rc = brc_json_parse(out, (const char *)text.data, text.len, BRC_JSON_NAN, err);
    brc_buf_dispose(&text);
    return rc;
}

/* Copies the next name of a JSON pointer, "~1" as "/" and "~0" as "~". Returns 0 if it does not
 * fit. */
static int pointer_name(char *out, size_t cap, const char **at)
{
    size_t n = 0;

    for (++*at; **at && **at != '/'; ++*at) {
        char c = **at;

        if (c == '~' && ((*at)[1] == '0' || (*at)[1] == '1'))
            c = *++*at == '0' ? '~' : '/';
        if (n + 1 >= cap)
            return 0;
        out[n++] = c;
    }
    out[n] = '\0';
    return 1;
}

static const brc_json *pointer_value(const brc_json *value, const char *pointer)
{
    char name[512];
    char *end;

    while (value && *pointer == '/') {
        if (!pointer_name(name, sizeof(name), &pointer))
            return NULL;
        if (brc_json_kind(value) == BRC_JSON_ARRAY) {
            const unsigned long i = strtoul(name, &end, 10);

            value = *end || end == name ? NULL : brc_json_item(value, i);
        } else {
            value = brc_json_member(value, name);
        }
    }
    return value;
}

static int put_side_member(serve_json *json, const char *key, const brc_json *value)
{
    brc_buf text = BRC_BUF_INIT;
    int rc;

    if (!value)
        return BRC_OK;
    rc = brc_json_write(&text, value, 0, json->err);
    if (rc >= 0 && text.len > MEMBER_BYTES)
        serve_json_uint(json, strcmp(key, "old") == 0 ? "old_bytes" : "new_bytes", text.len);
    else if (rc >= 0)
        serve_json_value(json, key, value);
    brc_buf_dispose(&text);
    return rc;
}

/* Writes the members that differ, the old value beside the new one. */
static int put_metadata(struct pair *pair, const brc_change *change)
{
    serve_json *json = &pair->call->json;
    brc_json *documents[2] = { NULL, NULL };
    int rc = BRC_OK;

    for (int side = 0; side < 2 && rc >= 0 && change->nmetadata > 0; side++)
        rc = pair_document(&documents[side], pair, side,
                           side == 0 && change->from ? change->from : change->path);
    serve_json_uint(json, "nmetadata", change->nmetadata);
    serve_json_open(json, "metadata", '[');
    for (size_t i = 0; i < change->nmetadata && i < POINTERS_MOST && rc >= 0; i++) {
        serve_json_open(json, NULL, '{');
        serve_json_text(json, "pointer", change->metadata[i]);
        rc = put_side_member(json, "old", pointer_value(documents[0], change->metadata[i]));
        if (rc >= 0)
            rc = put_side_member(json, "new", pointer_value(documents[1], change->metadata[i]));
        serve_json_close(json, '}');
    }
    serve_json_close(json, ']');
    brc_json_free(documents[0]);
    brc_json_free(documents[1]);
    return rc;
}

/* ---- elements -------------------------------- */

struct box {
    const uint64_t *first, *last;
    double size;
};

static int larger_box(const void *a, const void *b)
{
    const struct box *x = a, *y = b;

    return x->size != y->size ? (x->size < y->size ? 1 : -1)
                              : (x->first > y->first) - (x->first < y->first);
}

/* Writes the boxes of changed elements, the largest first. */
static int put_boxes(serve_call *call, const brc_change *change)
{
    serve_json *json = &call->json;
    const size_t ndim = (size_t)change->ndim;
    struct box *boxes = calloc(change->nboxes + 1, sizeof(*boxes));

    if (!boxes)
        return brc_fail(call->err, BRC_ENOMEM, "out of memory");
    for (size_t i = 0; i < change->nboxes; i++) {
        boxes[i].first = change->boxes + 2 * i * ndim;
        boxes[i].last = boxes[i].first + ndim;
        boxes[i].size = 1;
        for (size_t axis = 0; axis < ndim; axis++)
            boxes[i].size *= (double)(boxes[i].last[axis] - boxes[i].first[axis] + 1);
    }
    qsort(boxes, change->nboxes, sizeof(*boxes), larger_box);
    serve_json_uint(json, "nboxes", change->nboxes);
    serve_json_open(json, "boxes", '[');
    for (size_t i = 0; i < change->nboxes && i < BOXES_MOST; i++) {
        serve_json_open(json, NULL, '{');
        serve_json_dims(json, "first", boxes[i].first, change->ndim);
        serve_json_dims(json, "last", boxes[i].last, change->ndim);
        serve_json_real(json, "size", boxes[i].size);
        serve_json_close(json, '}');
    }
    serve_json_close(json, ']');
    free(boxes);
    return json->rc;
}

static int put_changed_elements(serve_call *call, const brc_change *change)
{
    serve_json *json = &call->json;

    if (!(change->flags & BRC_CHANGE_ELEMENTS))
        return BRC_OK;
    serve_json_open(json, "elements", '{');
    if (change->elements_why)
        serve_json_text(json, "why", change->elements_why);
    serve_json_uint(json, "changed", change->elements_changed);
    serve_json_uint(json, "added", change->elements_added);
    serve_json_uint(json, "removed", change->elements_removed);
    serve_json_real(json, "max", change->max_abs);
    serve_json_real(json, "mean", change->mean_abs);
    serve_json_real(json, "rms", change->rms);
    SERVE_TRY(put_boxes(call, change));
    serve_json_close(json, '}');
    return json->rc;
}

/* ---- changes -------------------------------- */

static int put_changed_node(struct pair *pair, const brc_change *change)
{
    static const char *const words[] = { "", "added", "removed", "moved", "changed" };
    serve_json *json = &pair->call->json;

    serve_json_open(json, NULL, '{');
    serve_json_text(json, "path", change->path);
    if (change->from)
        serve_json_text(json, "from", change->from);
    serve_json_text(json, "what", words[change->what]);
    serve_json_text(json, "kind", change->kind == BRC_ARRAY ? "array" : "group");
    serve_json_bool(json, "storage_only", (change->flags & BRC_CHANGE_STORAGE) != 0);
    serve_json_uint(json, "chunks_added", change->chunks_added);
    serve_json_uint(json, "chunks_removed", change->chunks_removed);
    serve_json_uint(json, "chunks_changed", change->chunks_changed);
    SERVE_TRY(put_metadata(pair, change));
    SERVE_TRY(put_changed_elements(pair->call, change));
    serve_json_close(json, '}');
    return json->rc;
}

/* Returns the revision as brc_diff() takes it: NULL are the uncommitted changes. */
static const char *diff_rev(const char *rev)
{
    return rev && strcmp(rev, SERVE_UNCOMMITTED) == 0 ? NULL : rev;
}

/* Names the commit of a version. */
static int put_side(struct pair *pair, const char *key, int side)
{
    brc_session_info info = BRC_SESSION_INFO_INIT;

    SERVE_TRY(pair_session(pair, side));
    SERVE_TRY(brc_session_stat(&info, pair->session[side], pair->call->err));
    if (info.has_commit)
        serve_json_id(&pair->call->json, key, &info.commit);
    else
        serve_json_text(&pair->call->json, key, NULL);
    if (side == 1 && info.has_commit)
        brc_oid_format(pair->call->out->commit, &info.commit);
    return BRC_OK;
}

/* Sets pair->rev[0] to the first parent of the newer version, in `parent`, if no older one is
 * named. */
static int find_older(struct pair *pair, char parent[65])
{
    brc_session_info info = BRC_SESSION_INFO_INIT;
    brc_commit *commit;

    SERVE_TRY(pair_session(pair, 1));
    SERVE_TRY(brc_session_stat(&info, pair->session[1], pair->call->err));
    if (!info.has_commit)
        return BRC_OK;
    if (!diff_rev(pair->rev[1])) { /* what the uncommitted changes are based on  */
        pair->rev[0] = brc_oid_format(parent, &info.commit);
        return BRC_OK;
    }
    SERVE_TRY(brc_commit_read(&commit, pair->call->repo, &info.commit, pair->call->err));
    if (commit->nparents > 0)
        pair->rev[0] = brc_oid_format(parent, &commit->parents[0]);
    brc_commit_free(commit);
    return BRC_OK;
}

static int put_changes(struct pair *pair, const brc_diff_opts *opts)
{
    serve_call *call = pair->call;
    const brc_change *change;
    uint64_t n = 0;
    int rc;

    SERVE_TRY(brc_diff(&call->iter, call->repo, pair->rev[0], diff_rev(pair->rev[1]), opts,
                       call->err));
    serve_json_open(&call->json, "changes", '[');
    while ((rc = brc_next(call->iter, &change, call->err)) == 1 && n < CHANGES_MOST) {
        n++;
        SERVE_TRY(put_changed_node(pair, change));
    }
    serve_json_close(&call->json, ']');
    serve_json_bool(&call->json, "more", rc == 1);
    return rc < 0 ? rc : BRC_OK;
}

int serve_diff(serve_call *call)
{
    const char *elements = serve_param(call, "elements");
    brc_diff_opts opts = BRC_DIFF_OPTS_INIT;
    struct pair pair = { .call = call, .rev = { serve_param(call, "a"), serve_param(call, "b") } };
    char parent[65];
    int rc = BRC_OK;

    if (pair.rev[0] && strcmp(pair.rev[0], SERVE_UNCOMMITTED) == 0)
        return brc_fail(call->err, BRC_EINVAL, "uncommitted changes can only be the newer side");
    if (!pair.rev[1])
        pair.rev[1] = "HEAD";
    if (!pair.rev[0])
        rc = find_older(&pair, parent);
    opts.path = serve_param(call, "path");
    opts.flags = opts.path ? BRC_DIFF_MOVED : 0;
    if (elements && strcmp(elements, "0") != 0)
        opts.flags |= BRC_DIFF_ELEMENTS;
    if (rc >= 0 && pair.rev[0])
        rc = put_side(&pair, "a", 0);
    if (rc >= 0)
        rc = put_side(&pair, "b", 1);
    if (rc >= 0)
        rc = put_changes(&pair, &opts);
    serve_drop_iter(call);
    pair_free(&pair);
    return rc;
}

/* ---- history of a node -------------------------------- */

/* Writes what the array was in a version. */
static int put_version_of(serve_call *call, const brc_commit *commit)
{
    serve_json *json = &call->json;
    brc_session *session;
    brc_array *array = NULL;
    uint64_t chunks, stored;
    char id[65];
    int kind = 0, rc;

    SERVE_TRY(brc_session_open(&session, call->repo, brc_oid_format(id, &commit->id),
                               BRC_SESSION_AT, call->err));
    rc = brc_node_kind(&kind, session, commit->path, call->err);
    serve_json_bool(json, "there", kind != 0);
    if (rc >= 0 && kind == BRC_ARRAY)
        rc = brc_array_open(&array, session, commit->path, call->err);
    if (rc >= 0 && array) {
        const brc_array_info *info = brc_array_describe(array);

        serve_json_dims(json, "shape", info->shape, info->ndim);
        rc = brc_array_stat(&chunks, &stored, array, call->err);
        serve_json_uint(json, "chunks", chunks);
        serve_json_uint(json, "stored", stored);
    }
    brc_array_free(array);
    brc_session_free(session);
    return rc;
}

int serve_history(serve_call *call)
{
    serve_json *json = &call->json;
    brc_log_opts opts = BRC_LOG_OPTS_INIT;
    const brc_commit *commit;
    uint64_t n = HISTORY_USUAL;
    int rc;

    SERVE_TRY(serve_open_version(call));
    serve_put_version(call);
    SERVE_TRY(serve_uint_param(call, "n", 1, HISTORY_MOST, &n));
    opts.path = serve_path_param(call);
    serve_json_open(json, "commits", '[');
    if (!call->out->commit[0]) { /* nothing is committed yet                      */
        serve_json_close(json, ']');
        return BRC_OK;
    }
    SERVE_TRY(brc_log(&call->iter, call->repo, call->out->commit, &opts, call->err));
    while ((rc = brc_next(call->iter, &commit, call->err)) == 1) {
        if (n-- == 0)
            break;
        serve_json_open(json, NULL, '{');
        serve_json_id(json, "id", &commit->id);
        serve_json_text(json, "path", commit->path);
        serve_json_text(json, "author", commit->author);
        serve_json_int(json, "time", commit->time_us);
        serve_json_text(json, "message", commit->message);
        SERVE_TRY(put_version_of(call, commit));
        serve_json_close(json, '}');
    }
    serve_json_close(json, ']');
    serve_json_bool(json, "more", rc == 1);
    return rc < 0 ? rc : BRC_OK;
}

/* ---- statistics -------------------------------- */

static void put_bin(serve_json *json, const brc_stats_bin *bin)
{
    serve_json_open(json, NULL, '{');
    serve_json_raw(json, "from", bin->from, strlen(bin->from));
    if (bin->to)
        serve_json_raw(json, "to", bin->to, strlen(bin->to));
    serve_json_real(json, "low", bin->low);
    serve_json_real(json, "high", bin->high);
    serve_json_uint(json, "count", bin->count);
    serve_json_close(json, '}');
}

static int put_bins(serve_call *call)
{
    const brc_stats_bin *bin;
    int rc, values = 0;

    serve_json_open(&call->json, "bins", '[');
    while ((rc = brc_next(call->iter, &bin, call->err)) == 1) {
        if (!bin->to && !values) {
            values = 1;
            serve_json_close(&call->json, ']');
            serve_json_open(&call->json, "values", '[');
        }
        put_bin(&call->json, bin);
    }
    serve_json_close(&call->json, ']');
    return rc;
}

int serve_stats(serve_call *call)
{
    static const char *const of[] = { "", "values", "magnitudes", "lengths" };
    serve_json *json = &call->json;
    brc_array_summary sums = BRC_ARRAY_SUMMARY_INIT;
    brc_array_stats_opts opts = BRC_ARRAY_STATS_OPTS_INIT;
    brc_sel sel = BRC_SEL_INIT;

    SERVE_TRY(serve_open_version(call));
    serve_put_version(call);
    SERVE_TRY(serve_open_array(call, serve_path_param(call)));
    SERVE_TRY(brc_sel_parse(&sel, call->array, serve_param(call, "slice"), call->err));
    opts.sel = &sel;
    opts.field = serve_param(call, "field");
    SERVE_TRY(brc_array_stats(&sums, &call->iter, call->array, &opts, call->err));
    serve_json_text(json, "of", of[sums.of]);
    serve_json_uint(json, "count", sums.count);
    serve_json_uint(json, "nan", sums.nan);
    serve_json_uint(json, "fill", sums.fill);
    serve_json_uint(json, "infinite", sums.infinite);
    serve_json_raw(json, "min", sums.min, strlen(sums.min));
    serve_json_raw(json, "max", sums.max, strlen(sums.max));
    serve_json_raw(json, "mean_text", sums.mean_text, strlen(sums.mean_text));
    serve_json_real(json, "mean", sums.mean);
    serve_json_real(json, "std", sums.std);
    return put_bins(call);
}
