#include "xfer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/node_path.h"
#include "../base/part.h"
#include "../base/pattern.h"
#include "../base/sized.h"
#include "../nd/shape.h"
#include "../zarr/transfer.h"

/* ==== dimensions ================================ */

/* A name in a group. */
typedef struct scope {
    const char *name;
    const char *group; /* "/a/b"; "" is the root, so that a group above always has a shorter path */
    size_t group_len;
} scope;

typedef struct axis_use {
    scope in;
    const char *array;
    uint64_t length;
    int is_coordinate;
    size_t order; /* the order in which they were found */
} axis_use;

typedef struct scope_list {
    void *items;
    size_t n, cap;
} scope_list;

typedef struct dimensions {
    brc_session *session;
    brc_dimensions_rule rule;
    brc_arena texts;
    scope_list owners; /* groups that have a dimension of their own                  */
    scope_list apart;  /* groups whose arrays are not compared, under the name "" */
    void *uses;
    size_t nuses, uses_cap;
} dimensions;

static int compare_scopes(const void *a, const void *b)
{
    const scope *x = a, *y = b;
    int by_name = strcmp(x->name, y->name);
    size_t shorter = x->group_len < y->group_len ? x->group_len : y->group_len;
    if (by_name != 0)
        return by_name;
    int by_group = memcmp(x->group, y->group, shorter);
    return by_group != 0 ? by_group : (x->group_len > y->group_len) - (x->group_len < y->group_len);
}

/* Sorts the uses of one dimension: coordinates first, then in the order in which they were
 * found. */
static int compare_uses(const void *a, const void *b)
{
    const axis_use *x = a, *y = b;
    int by_scope = compare_scopes(&x->in, &y->in);
    if (by_scope != 0 || x->is_coordinate != y->is_coordinate)
        return by_scope != 0 ? by_scope : y->is_coordinate - x->is_coordinate;
    return (x->order > y->order) - (x->order < y->order);
}

static int keep_name(const char **out, dimensions *d, const char *text, brc_error *err)
{
    uint8_t *copy = NULL;
    BRC_TRY(brc_arena_copy(&d->texts, text, strlen(text) + 1, &copy, err));
    *out = (const char *)copy;
    return BRC_OK;
}

/* ---- collecting names -------------------------------- */

static int add_scope(scope_list *list, scope one, brc_error *err)
{
    BRC_TRY(brc_grow_array(&list->items, &list->cap, list->n + 1, sizeof(scope), err));
    ((scope *)list->items)[list->n++] = one;
    return BRC_OK;
}

static int look_at_group(dimensions *d, const char *path, const brc_json *doc, brc_error *err)
{
    const brc_json *attrs = brc_json_member(doc, "attributes");
    const brc_json *note = brc_json_member(attrs, BRC_NETCDF_GROUP_NOTE);
    scope own = { .name = "" };

    BRC_TRY(keep_name(&own.group, d, strcmp(path, "/") == 0 ? "" : path, err));
    own.group_len = strlen(own.group);
    if (d->rule == BRC_DIMENSIONS_ZARR &&
        (brc_json_member(attrs, "multiscales") ||
         brc_json_member(brc_json_member(attrs, "ome"), "multiscales")))
        BRC_TRY(add_scope(&d->apart, own, err));
    const brc_json *dims = brc_json_member(note, "dimensions");
    if (brc_json_kind(dims) != BRC_JSON_OBJECT)
        return BRC_OK;
    for (const brc_json *v = brc_json_first(dims); v; v = brc_json_next(v)) {
        BRC_TRY(keep_name(&own.name, d, brc_json_name(v), err));
        BRC_TRY(add_scope(&d->owners, own, err));
    }
    return BRC_OK;
}

static int add_use(dimensions *d, const char *array, const char *name, uint64_t length, int ndim,
                   brc_error *err)
{
    const char *leaf = strrchr(array, '/');
    axis_use use = { .array = array, .length = length, .order = d->nuses };

    BRC_TRY(keep_name(&use.in.name, d, name, err));
    use.in.group = array;
    use.in.group_len = (size_t)(leaf - array);
    use.is_coordinate = ndim == 1 && strcmp(leaf + 1, name) == 0;
    if (use.is_coordinate)
        BRC_TRY(add_scope(&d->owners, use.in, err));
    BRC_TRY(brc_grow_array(&d->uses, &d->uses_cap, d->nuses + 1, sizeof(use), err));
    ((axis_use *)d->uses)[d->nuses++] = use;
    return BRC_OK;
}

/* Collects the names as NetCDF's export does: dimension_names, or xarray's attribute of Zarr v2. */
static int look_at_array(dimensions *d, const char *path, const brc_json *doc, brc_error *err)
{
    const brc_json *names = brc_json_member(doc, "dimension_names");
    const brc_json *shape = brc_json_member(doc, "shape"), *name, *extent;
    const char *array, *text;
    uint64_t length;

    if (brc_json_kind(names) != BRC_JSON_ARRAY)
        names = brc_json_member(brc_json_member(doc, "attributes"), "_ARRAY_DIMENSIONS");
    size_t ndim = brc_json_count(shape);
    if (brc_json_kind(names) != BRC_JSON_ARRAY || brc_json_count(names) != ndim || ndim == 0)
        return BRC_OK;
    BRC_TRY(keep_name(&array, d, path, err));
    for (name = brc_json_first(names), extent = brc_json_first(shape); name && extent;
         name = brc_json_next(name), extent = brc_json_next(extent))
        if (brc_json_text(name, &text) && text[0] && brc_json_uint(extent, UINT64_MAX, &length))
            BRC_TRY(add_use(d, array, text, length, (int)ndim, err));
    return BRC_OK;
}

/* brc_nodes_each() */
static int look_for_names(void *ctx, const char *path, const char *inner, int kind, brc_error *err)
{
    dimensions *d = ctx;
    brc_json *doc;
    (void)inner;
    BRC_TRY(brc_node_doc(&doc, d->session, path, err));
    int rc = kind == BRC_ARRAY ? look_at_array(d, path, doc, err)
                               : look_at_group(d, path, doc, err);
    brc_json_free(doc);
    return rc;
}

/* ---- owners of dimensions -------------------------------- */

static void sort_scopes(const scope_list *list)
{
    if (list->n > 0)
        qsort(list->items, list->n, sizeof(scope), compare_scopes);
}

static int is_scope_in(const scope_list *sorted, const scope *one)
{
    return sorted->n > 0 &&
           bsearch(one, sorted->items, sorted->n, sizeof(scope), compare_scopes) != NULL;
}

/* Finds the group that has the array's dimension. */
static void settle_scope(const dimensions *d, axis_use *use)
{
    scope above = use->in;
    while (!is_scope_in(&d->owners, &above)) {
        if (above.group_len == 0)
            return;
        while (above.group[--above.group_len] != '/')
            continue;
    }
    use->in = above;
}

static void settle_scopes(dimensions *d)
{
    axis_use *uses = d->uses;
    size_t kept = 0;
    sort_scopes(&d->owners);
    sort_scopes(&d->apart);
    for (size_t i = 0; i < d->nuses; i++) {
        scope group = uses[i].in;
        group.name = "";
        if (is_scope_in(&d->apart, &group))
            continue;
        uses[kept] = uses[i];
        settle_scope(d, &uses[kept++]);
    }
    d->nuses = kept;
    if (kept > 0)
        qsort(uses, kept, sizeof(*uses), compare_uses);
}

static int refuse_lengths(const axis_use *a, const axis_use *b, brc_error *err)
{
    static const char remedy[] = "append to or resize the array whose length is wrong, or export "
                                 "with --unequal-dimensions";
    if (a->array == b->array)
        return brc_fail(err, BRC_EINVAL,
                        "%s has two dimensions called %s, of lengths %" PRIu64 " and %" PRIu64
                        ", but a data set's dimension has one length: %s",
                        a->array, a->in.name, a->length, b->length, remedy);
    return brc_fail(err, BRC_EINVAL,
                    "the dimension %s has length %" PRIu64 " in %s and length %" PRIu64
                    " in %s, but a data set's dimension has one length: %s",
                    a->in.name, a->length, a->array, b->length, b->array, remedy);
}

int brc_dimensions_check(brc_session *s, const char *path, brc_dimensions_rule rule, brc_error *err)
{
    dimensions d = { .session = s, .rule = rule, .texts = BRC_ARENA_INIT };
    int rc;

    BRC_GO(brc_nodes_each(s, path, look_for_names, &d, err));
    settle_scopes(&d);
    const axis_use *first = d.uses;
    for (size_t i = 1; i < d.nuses && rc == BRC_OK; i++) {
        const axis_use *use = (const axis_use *)d.uses + i;
        if (compare_scopes(&first->in, &use->in) != 0)
            first = use;
        else if (first->length != use->length &&
                 (first->array != use->array || rule != BRC_DIMENSIONS_ZARR))
            rc = refuse_lengths(first, use, err);
    }
done:
    free(d.owners.items);
    free(d.apart.items);
    free(d.uses);
    brc_arena_dispose(&d.texts);
    return rc;
}

/* ==== xfer nodes ================================ */

/* Visits the nodes under a path, handles a source's excluded nodes, and counts the bytes of
 * arrays. */

static int visit_nodes(brc_session *s, const char *path, brc_node_fn each, void *ctx,
                       brc_error *err)
{
    brc_iter *it = NULL;
    const brc_node *node;
    size_t base = 0, n = 0;
    int rc;

    BRC_GO(brc_list(&it, s, path, BRC_LIST_RECURSE, err));
    while ((rc = brc_next(it, &node, err)) > 0) {
        if (n++ == 0)
            base = strlen(node->path);
        const char *inner = node->path + base;
        if (each)
            BRC_GO(each(ctx, node->path, inner + (*inner == '/'), node->kind, err));
    }
done:
    brc_iter_free(it);
    return rc;
}

int brc_nodes_each(brc_session *s, const char *path, brc_node_fn each, void *ctx, brc_error *err)
{
    BRC_TRY(visit_nodes(s, path, NULL, NULL, err));
    return visit_nodes(s, path, each, ctx, err);
}

void brc_add_array_bytes(uint64_t *sum, int ndim, const uint64_t *shape, size_t item)
{
    uint64_t bytes, more;
    if (brc_shape_bytes(ndim, shape, item > 0 ? item : 1, &bytes) &&
        brc_add_u64(*sum, bytes, &more))
        *sum = more;
}

static int note_met(const brc_xfer_opts *opts, size_t i)
{
    if (opts->excluded)
        opts->excluded[i] = 1;
    return 1;
}

int brc_is_excluded(const brc_xfer_opts *opts, const char *path, size_t len)
{
    int is = 0;
    for (size_t i = 0; opts && i < opts->nexclude; i++)
        if (brc_pattern_has_node(opts->exclude[i], path, len))
            is = note_met(opts, i);
    return is;
}

int brc_path_given_is(const char *given, const char *path, size_t len)
{
    given += *given == '/';
    size_t n = strlen(given);
    while (n > 0 && given[n - 1] == '/')
        n--;
    return n == len && memcmp(given, path, len) == 0;
}

/* Returns the new name of the node at the first `len` bytes of a path below the imported node, or
 * NULL. */
static const char *new_name(const brc_xfer_opts *opts, const char *inner, size_t len)
{
    for (size_t i = 0; i < opts->nrename; i++)
        if (brc_path_given_is(opts->rename[i].from, inner, len)) {
            if (opts->renamed)
                opts->renamed[i] = 1;
            return opts->rename[i].to;
        }
    return NULL;
}

int brc_path_rename(char **path, const char *above, const brc_xfer_opts *opts, brc_error *err)
{
    brc_buf out = BRC_BUF_INIT;
    const char *inner = *path + strlen(above), *part = inner += *inner == '/';
    int rc = BRC_OK;
    if (!opts || opts->nrename == 0 || *inner == '\0')
        return BRC_OK;
    BRC_GO(brc_buf_append(&out, *path, (size_t)(inner - *path), err));
    while (*part != '\0') {
        const char *end = strchrnul(part, '/');
        const char *name = new_name(opts, inner, (size_t)(end - inner));
        BRC_GO(name ? brc_buf_text(&out, name, err)
                    : brc_buf_append(&out, part, (size_t)(end - part), err));
        if (*end == '/')
            BRC_GO(brc_buf_byte(&out, '/', err));
        part = end + (*end == '/');
    }
    free(*path);
    *path = NULL;
    BRC_GO(brc_buf_take_text(&out, path, err));
done:
    brc_buf_dispose(&out);
    return rc;
}

static int lacks_attribute(const brc_xfer_opts *opts, const char *path, const char *name)
{
    int does = 0;
    for (size_t i = 0; i < opts->nexclude; i++)
        if (brc_pattern_has_attribute(opts->exclude[i], path, strlen(path), name))
            does = note_met(opts, i);
    return does;
}

int brc_attributes_pick(const brc_xfer_opts *opts, const char *path, brc_json *doc, brc_error *err)
{
    const brc_json *old = brc_json_member(doc, "attributes");
    if (!opts || opts->nexclude == 0 || brc_json_kind(old) != BRC_JSON_OBJECT)
        return BRC_OK;
    brc_json *kept = brc_json_new_object(), *copy;
    int rc = kept ? BRC_OK : brc_nomem(err);
    for (const brc_json *one = brc_json_first(old); one && rc == BRC_OK; one = brc_json_next(one)) {
        const char *name = brc_json_name(one);
        if (lacks_attribute(opts, path, name))
            continue;
        rc = brc_json_clone(&copy, one, err);
        if (rc == BRC_OK)
            rc = brc_json_add(kept, name, copy, err);
    }
    if (rc == BRC_OK)
        return brc_json_set(doc, "attributes", kept, err);
    brc_json_free(kept);
    return rc;
}

int brc_part_settle(brc_parts *parts, int rc, const char *path, brc_error *err)
{
    if (rc != BRC_EUNSUPPORTED)
        return rc;
    if (parts)
        BRC_TRY(brc_parts_add(parts, path, NULL, err, err));
    return 1;
}
