/* The nodes under a path, those of a source that stay out, and how many bytes arrays are. */
#include <stdlib.h>
#include <string.h>

#include "../base/iter.h"
#include "../base/node_path.h"
#include "../base/pattern.h"
#include "../nd/shape.h"
#include "xfer.h"

static int visit_nodes(brc_session *s, const char *path, brc_node_fn each, void *ctx,
                       brc_error *err)
{
    brc_iter *it = NULL;
    const brc_node *node;
    size_t base = 0, n = 0;
    int rc;

    BRC_GO(brc_list(&it, s, path, BRC_LIST_RECURSE, err));
    while ((rc = brc_list_next(it, &node, err)) > 0) {
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

/* The new name of the node at the first `len` bytes of a path below the imported node, or NULL. */
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
        const char *name = brc_json_own_name(one);
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
