/*
 * api_node.c - see api_node.h; and the questions "tree" and "node".
 */
#include "api_node.h"

#include <stdlib.h>
#include <string.h>

#include "../breccia_codec.h"
#include "api_log.h"

enum {
    NODES_MOST = 10000,
    NODES_USUAL = 2000,
    DEPTH_MOST = 100,
    DATED_COMMITS = 200, /* newest commits that are asked what they changed    */
    DATED_MS = 150,
    COORDINATES_MOST = 4096
};

/* ---- lists -------------------------------- */

static int entry_of_array(serve_call *call, serve_entry *entry)
{
    const brc_array_info *info;
    brc_array *array;
    int rc = brc_array_open(&array, call->session, entry->path, call->err);

    if (rc < 0)
        return rc;
    info = brc_array_describe(array);
    entry->ndim = info->ndim;
    entry->elements = 1;
    for (int i = 0; i < info->ndim; i++) {
        entry->shape[i] = info->shape[i];
        entry->elements *= (double)info->shape[i];
    }
    entry->dtype = strdup(info->dtype);
    rc = entry->dtype ? brc_array_stat(&entry->chunks, &entry->stored, array, call->err)
                      : brc_fail(call->err, BRC_ENOMEM, "out of memory");
    brc_array_free(array);
    return rc;
}

static uint64_t path_depth(const char *path)
{
    uint64_t depth = 0;

    for (const char *p = path; *p; p++)
        depth += *p == '/' && p[1] != '\0';
    return depth;
}

static int entries_add(serve_entries *out, serve_call *call, const brc_node *node)
{
    serve_entry *entry = &out->nodes[out->n];

    memset(entry, 0, sizeof(*entry));
    entry->kind = node->kind;
    entry->path = strdup(node->path);
    if (!entry->path)
        return brc_fail(call->err, BRC_ENOMEM, "out of memory");
    out->n++;
    return BRC_OK;
}

int serve_entries_read(serve_entries *out, serve_call *call, const char *path, uint64_t depth,
                       uint64_t most)
{
    const uint64_t above = path_depth(path);
    const brc_node *node;
    int rc;

    memset(out, 0, sizeof(*out));
    out->nodes = calloc((size_t)most, sizeof(*out->nodes));
    if (!out->nodes)
        return brc_fail(call->err, BRC_ENOMEM, "out of memory");
    SERVE_TRY(brc_list(&call->iter, call->session, path, BRC_LIST_RECURSE, call->err));
    while ((rc = brc_next(call->iter, &node, call->err)) == 1) {
        if (path_depth(node->path) > above + depth)
            continue;
        if (out->n == most) {
            out->more = 1;
            break;
        }
        SERVE_TRY(entries_add(out, call, node));
    }
    serve_drop_iter(call);
    for (size_t i = 0; i < out->n && rc >= 0; i++)
        if (out->nodes[i].kind == BRC_ARRAY)
            rc = entry_of_array(call, &out->nodes[i]);
    return rc < 0 ? rc : BRC_OK;
}

void serve_entries_free(serve_entries *entries)
{
    for (size_t i = 0; i < entries->n; i++) {
        free(entries->nodes[i].path);
        free(entries->nodes[i].dtype);
    }
    free(entries->nodes);
    memset(entries, 0, sizeof(*entries));
}

/* ---- what changed last -------------------------------- */

struct dating {
    serve_entries *entries;
    const brc_commit *commit;
    size_t left;
};

static int is_at_or_above(const char *path, const char *below)
{
    const size_t len = strlen(path);

    return strcmp(path, "/") == 0 ||
           (strncmp(path, below, len) == 0 && (below[len] == '\0' || below[len] == '/'));
}

/* Notes the commit of a change for the node and the groups above it; a move takes what is below
 * along. */
static int date_change(void *ctx, const brc_change *change)
{
    static const brc_oid zero;
    struct dating *d = ctx;

    for (size_t i = 0; i < d->entries->n; i++) {
        serve_entry *entry = &d->entries->nodes[i];
        const int moved = change->what == BRC_MOVED && is_at_or_above(change->path, entry->path);

        if (memcmp(&entry->last, &zero, sizeof(zero)) != 0 ||
            (!moved && !is_at_or_above(entry->path, change->path)))
            continue;
        entry->last = d->commit->id;
        entry->last_time = d->commit->time_us;
        d->left--;
    }
    return BRC_OK;
}

int serve_entries_date(serve_entries *entries, serve_call *call)
{
    struct dating d = { entries, NULL, entries->n };
    const brc_commit *commit;
    const int64_t begun = serve_elapsed_ms(call);
    brc_iter *log;
    uint64_t n;
    int rc;

    call->out->immutable = 0; /* another answer may have more                   */
    if (!call->out->commit[0])
        return BRC_OK;
    SERVE_TRY(brc_log(&log, call->repo, call->out->commit, NULL, call->err));
    for (int i = 0; i < DATED_COMMITS && d.left > 0; i++) {
        rc = brc_next(log, &commit, call->err);
        if (rc <= 0 || serve_elapsed_ms(call) - begun > DATED_MS)
            break;
        d.commit = commit;
        if (serve_touched_by(call, commit, &n, date_change, &d) < 0)
            break; /* the dates are a side dish                                 */
    }
    brc_iter_free(log);
    return BRC_OK;
}

/* ---- the array that shows most -------------------------------- */

static int shows_numbers(const serve_entry *entry)
{
    static const char *const names[] = { "bool", "int", "uint", "float", "bfloat" };

    for (size_t i = 0; entry->dtype && i < sizeof(names) / sizeof(names[0]); i++)
        if (strncmp(entry->dtype, names[i], strlen(names[i])) == 0)
            return 1;
    return 0;
}

static int show_rank(const serve_entry *entry)
{
    if (!entry->dtype || entry->elements <= 0)
        return 0;
    return !shows_numbers(entry) ? 1 : entry->ndim >= 2 && entry->chunks > 0 ? 3 : 2;
}

const serve_entry *serve_entries_best(const serve_entries *entries)
{
    const serve_entry *best = NULL;

    for (size_t i = 0; i < entries->n; i++) {
        const serve_entry *one = &entries->nodes[i];

        if (show_rank(one) == 0)
            continue;
        if (!best || show_rank(one) > show_rank(best) ||
            (show_rank(one) == show_rank(best) && one->elements > best->elements))
            best = one;
    }
    return best;
}

/* ---- tree -------------------------------- */

static void put_tree_entry(serve_json *json, const serve_entry *entry)
{
    static const brc_oid zero;

    serve_json_open(json, NULL, '{');
    serve_json_text(json, "path", entry->path);
    serve_json_text(json, "kind", entry->kind == BRC_ARRAY ? "array" : "group");
    if (entry->kind == BRC_ARRAY) {
        serve_json_text(json, "dtype", entry->dtype);
        serve_json_dims(json, "shape", entry->shape, entry->ndim);
        serve_json_uint(json, "chunks", entry->chunks);
        serve_json_uint(json, "stored", entry->stored);
    }
    if (memcmp(&entry->last, &zero, sizeof(zero)) != 0) {
        serve_json_id(json, "last", &entry->last);
        serve_json_int(json, "last_time", entry->last_time);
    }
    serve_json_close(json, '}');
}

int serve_tree(serve_call *call)
{
    uint64_t depth = DEPTH_MOST, most = NODES_USUAL;
    const char *dated = serve_param(call, "dated");
    const serve_entry *best;
    serve_entries entries;
    int rc;

    SERVE_TRY(serve_open_version(call));
    serve_put_version(call);
    SERVE_TRY(serve_uint_param(call, "depth", 0, DEPTH_MOST, &depth));
    SERVE_TRY(serve_uint_param(call, "n", 1, NODES_MOST, &most));
    rc = serve_entries_read(&entries, call, serve_path_param(call), depth, most);
    if (rc >= 0 && dated && strcmp(dated, "0") != 0)
        rc = serve_entries_date(&entries, call);
    serve_json_open(&call->json, "nodes", '[');
    for (size_t i = 0; i < entries.n && rc >= 0; i++)
        put_tree_entry(&call->json, &entries.nodes[i]);
    serve_json_close(&call->json, ']');
    serve_json_bool(&call->json, "more", entries.more);
    best = serve_entries_best(&entries);
    serve_json_text(&call->json, "best", best ? best->path : NULL);
    serve_entries_free(&entries);
    return rc;
}

/* ---- one node -------------------------------- */

int serve_document(brc_json **out, const brc_json **names, serve_call *call, const char *path)
{
    brc_buf text = BRC_BUF_INIT;
    const brc_json *list;
    int rc = brc_node_json(&text, call->session, path, call->err);

    *out = NULL;
    *names = NULL;
    if (rc >= 0)
        rc = brc_json_parse(out, (const char *)text.data, text.len, BRC_JSON_NAN, call->err);
    brc_buf_dispose(&text);
    if (rc < 0)
        return rc;
    list = brc_json_member(*out, "dimension_names");
    if (brc_json_kind(list) != BRC_JSON_ARRAY)
        list = brc_json_member(brc_json_member(*out, "attributes"), "_ARRAY_DIMENSIONS");
    if (brc_json_kind(list) == BRC_JSON_ARRAY &&
        brc_json_count(list) == brc_json_count(brc_json_member(*out, "shape")))
        *names = list;
    return BRC_OK;
}

/* Appends "/" and a name to the group of `path`, whose length without the last name is `len`. */
static int path_in(brc_buf *out, serve_call *call, const char *path, size_t len, const char *name)
{
    out->len = 0;
    return brc_buf_printf(out, call->err, "%.*s/%s", (int)len, path, name);
}

/* Opens the array of the dimension's name with one axis of this length, in the group of the array
 * or the nearest above. */
static int open_coordinate(brc_array **out, brc_buf *at, serve_call *call, const char *path,
                           const char *name, uint64_t length)
{
    size_t len = strlen(path);
    int kind;

    *out = NULL;
    if (!*name || strchr(name, '/'))
        return BRC_OK;
    while (len > 0) {
        do
            len--;
        while (len > 0 && path[len] != '/');
        SERVE_TRY(path_in(at, call, path, len, name));
        if (brc_node_kind(&kind, call->session, (const char *)at->data, NULL) < 0 ||
            kind != BRC_ARRAY)
            continue;
        SERVE_TRY(brc_array_open(out, call->session, (const char *)at->data, call->err));
        const brc_array_info *info = brc_array_describe(*out);
        if (info->ndim == 1 && info->shape[0] == length && (info->flags & BRC_ARRAY_READABLE))
            return BRC_OK;
        brc_array_free(*out);
        *out = NULL;
        return BRC_OK;
    }
    return BRC_OK;
}

/* Writes all elements of an array of one axis. */
static int put_axis_values(serve_call *call, brc_array *array)
{
    const brc_array_info *info = brc_array_describe(array);
    brc_buf bytes = BRC_BUF_INIT, text = BRC_BUF_INIT;
    brc_io io = BRC_IO_INIT;
    int rc;

    io.array = array;
    io.out = &bytes;
    bytes.limit = (size_t)call->limits->bytes;
    rc = brc_read(&io, 1, call->err);
    serve_json_open(&call->json, "values", '[');
    for (size_t at = 0; at < bytes.len && rc >= 0;) {
        text.len = 0;
        rc = brc_element_format(&text, array, bytes.data + at, BRC_ELEMENT_DATED, call->err);
        serve_json_raw(&call->json, NULL, text.data, text.len);
        at += serve_element_bytes(bytes.data + at, info->item_size);
    }
    serve_json_close(&call->json, ']');
    brc_buf_dispose(&bytes);
    brc_buf_dispose(&text);
    return rc;
}

static int put_coordinate(serve_call *call, const char *path, const char *name, uint64_t length)
{
    serve_json *json = &call->json;
    brc_buf at = BRC_BUF_INIT;
    const brc_json *names;
    brc_json *document = NULL;
    brc_array *array;
    int rc = open_coordinate(&array, &at, call, path, name, length);

    if (rc >= 0 && array && strcmp((const char *)at.data, path) != 0)
        rc = serve_document(&document, &names, call, (const char *)at.data);
    if (rc >= 0 && document) {
        serve_json_open(json, NULL, '{');
        serve_json_text(json, "path", (const char *)at.data);
        serve_json_text(json, "dtype", brc_array_describe(array)->dtype);
        serve_json_value(json, "attributes", brc_json_member(document, "attributes"));
        if (length <= COORDINATES_MOST)
            rc = put_axis_values(call, array);
        serve_json_close(json, '}');
    } else if (rc >= 0) {
        serve_json_text(json, NULL, NULL);
    }
    brc_json_free(document);
    brc_array_free(array);
    brc_buf_dispose(&at);
    return rc;
}

static int put_dimensions(serve_call *call, const char *path, const brc_json *names)
{
    const brc_array_info *info = brc_array_describe(call->array);
    const brc_json *name = brc_json_first(names);
    const char *text;
    int rc = BRC_OK;

    serve_json_open(&call->json, "dims", '[');
    for (; name; name = brc_json_next(name))
        serve_json_text(&call->json, NULL, brc_json_text(name, &text) ? text : NULL);
    serve_json_close(&call->json, ']');
    serve_json_open(&call->json, "coordinates", '[');
    name = brc_json_first(names);
    for (int i = 0; name && i < info->ndim && rc >= 0; i++, name = brc_json_next(name))
        rc = brc_json_text(name, &text)
                 ? put_coordinate(call, path, text, info->shape[i])
                 : (serve_json_text(&call->json, NULL, NULL), BRC_OK);
    serve_json_close(&call->json, ']');
    return rc;
}

static int put_array_members(serve_call *call, const char *path, const brc_json *names)
{
    serve_json *json = &call->json;
    const brc_array_info *info;
    brc_buf fill = BRC_BUF_INIT;
    uint64_t chunks, stored;
    int rc;

    SERVE_TRY(serve_open_array(call, path));
    info = brc_array_describe(call->array);
    SERVE_TRY(brc_array_stat(&chunks, &stored, call->array, call->err));
    serve_json_text(json, "dtype", info->dtype);
    serve_json_uint(json, "item_size", info->item_size);
    serve_json_dims(json, "shape", info->shape, info->ndim);
    serve_json_dims(json, "chunk", info->chunk, info->ndim);
    serve_json_dims(json, "grid", info->grid, info->ndim);
    if (info->shard)
        serve_json_dims(json, "shard", info->shard, info->ndim);
    serve_json_bool(json, "regular", (info->flags & BRC_ARRAY_REGULAR) != 0);
    serve_json_raw(json, "codecs", info->codecs_json, strlen(info->codecs_json));
    serve_json_raw(json, "backend", info->backend_json, strlen(info->backend_json));
    serve_json_uint(json, "chunks", chunks);
    serve_json_uint(json, "stored", stored);
    if (info->why)
        serve_json_text(json, "why", info->why);
    if (info->fill) {
        rc = brc_element_format(&fill, call->array, info->fill, BRC_ELEMENT_DATED, call->err);
        serve_json_raw(json, "fill", fill.data, fill.len);
        brc_buf_dispose(&fill);
        SERVE_TRY(rc);
    }
    return put_dimensions(call, path, names);
}

int serve_node(serve_call *call)
{
    const char *path = serve_path_param(call);
    const brc_json *names;
    brc_json *document;
    int kind, rc;

    SERVE_TRY(serve_open_version(call));
    serve_put_version(call);
    SERVE_TRY(brc_node_kind(&kind, call->session, path, call->err));
    if (kind == 0)
        return brc_fail(call->err, BRC_ENOTFOUND, "this version has no node %.200s", path);
    serve_json_text(&call->json, "path", path);
    serve_json_text(&call->json, "kind", kind == BRC_ARRAY ? "array" : "group");
    SERVE_TRY(serve_document(&document, &names, call, path));
    serve_json_value(&call->json, "document", document);
    rc = kind == BRC_ARRAY ? put_array_members(call, path, names) : BRC_OK;
    if (rc >= 0 && kind == BRC_GROUP) {
        serve_levels levels;

        rc = serve_levels_read(&levels, call, path);
        serve_json_open(&call->json, "levels", '[');
        for (int i = 0; i < levels.n; i++)
            serve_json_text(&call->json, NULL, levels.paths[i]);
        serve_json_close(&call->json, ']');
        serve_levels_free(&levels);
    }
    brc_json_free(document);
    return rc;
}

/* ---- pictures in several sizes -------------------------------- */

/* Returns the list of levels: in version 0.5 of OME-Zarr below "ome", in 0.4 not. */
static const brc_json *datasets_of(const brc_json *document)
{
    const brc_json *attributes = brc_json_member(document, "attributes");
    const brc_json *ome = brc_json_member(attributes, "ome"), *list;

    list = brc_json_member(ome ? ome : attributes, "multiscales");
    return brc_json_member(brc_json_first(list), "datasets");
}

/* Adds a level if it is an array below the group. */
static int levels_add(serve_levels *out, serve_call *call, const char *group, const char *name)
{
    brc_buf path = BRC_BUF_INIT;
    int kind, rc;

    if (!*name || *name == '/' || strcmp(group, "/") == 0)
        group = "";
    rc = brc_buf_printf(&path, call->err, "%s/%s", group, *name == '/' ? name + 1 : name);
    if (rc >= 0 && brc_node_kind(&kind, call->session, (const char *)path.data, NULL) >= 0 &&
        kind == BRC_ARRAY) {
        out->paths[out->n] = strdup((const char *)path.data);
        out->n += out->paths[out->n] != NULL;
    }
    brc_buf_dispose(&path);
    return rc;
}

int serve_levels_read(serve_levels *out, serve_call *call, const char *group)
{
    const brc_json *names, *level;
    brc_json *document;
    const char *name;
    int rc;

    memset(out, 0, sizeof(*out));
    SERVE_TRY(rc = serve_document(&document, &names, call, group));
    for (level = brc_json_first(datasets_of(document));
         level && out->n < SERVE_LEVELS_MOST && rc >= 0; level = brc_json_next(level))
        if (brc_json_text(brc_json_member(level, "path"), &name))
            rc = levels_add(out, call, group, name);
    brc_json_free(document);
    return rc;
}

void serve_levels_free(serve_levels *levels)
{
    for (int i = 0; i < levels->n; i++)
        free(levels->paths[i]);
    memset(levels, 0, sizeof(*levels));
}
