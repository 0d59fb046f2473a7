#include "tree_names.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"

int brc_tree_name_compare(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t n = a_len < b_len ? a_len : b_len, i = 0;
    while (i < n && a[i] == b[i])
        i++;
    if (i == n)
        return (a_len > b_len) - (a_len < b_len);
    if (a[i] == '/' || b[i] == '/')
        return a[i] == '/' ? -1 : 1;
    return (unsigned char)a[i] < (unsigned char)b[i] ? -1 : 1;
}

/* Returns the first item whose path does not sort before this one. */
static size_t lower_bound(const brc_tree_names *names, const char *path, size_t path_len)
{
    size_t low = 0, high = names->n, len;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const char *name = names->name(names->items, middle, &len);
        if (brc_tree_name_compare(name, len, path, path_len) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Makes the path in the list of a path in the tree, with "/" after it for a folder. */
static int listed_path(brc_buf *out, const brc_tree_names *names, const char *path, int is_dir,
                       brc_error *err)
{
    out->len = 0;
    BRC_TRY(brc_buf_append(out, names->root, names->root_len, err));
    BRC_TRY(brc_buf_text(out, path, err));
    if (is_dir && *path)
        BRC_TRY(brc_buf_byte(out, '/', err));
    return brc_buf_terminate(out, err);
}

int brc_tree_names_find(size_t *at, int *is_dir, const brc_tree_names *names, const char *path,
                        brc_error *err)
{
    brc_buf listed = BRC_BUF_INIT;
    int rc;

    *at = names->n;
    BRC_GO(listed_path(&listed, names, path, 0, err));
    const size_t i = lower_bound(names, (const char *)listed.data, listed.len);
    *is_dir = *path == 0;
    if (i < names->n && *path) {
        size_t len;
        const char *name = names->name(names->items, i, &len);
        const int begins = len >= listed.len && memcmp(name, listed.data, listed.len) == 0;
        if (begins && len == listed.len)
            *at = i;
        *is_dir = begins && len > listed.len && name[listed.len] == '/';
    }
done:
    brc_buf_dispose(&listed);
    return rc;
}

/* Returns the item after all those in the folder `path`, which ends with "/". */
static size_t behind_folder(const brc_tree_names *names, brc_buf *path)
{
    path->data[path->len - 1] = 1; /* sorts right after '/', and is not in a file's name */
    const size_t i = lower_bound(names, (const char *)path->data, path->len);
    path->data[path->len - 1] = '/';
    return i;
}

int brc_tree_names_below(size_t *at, size_t *end, const brc_tree_names *names, const char *path,
                         brc_error *err)
{
    brc_buf listed = BRC_BUF_INIT;
    int rc;

    *at = 0;
    *end = names->n;
    BRC_GO(listed_path(&listed, names, path, 1, err));
    if (listed.len > 0) {
        *at = lower_bound(names, (const char *)listed.data, listed.len);
        *end = behind_folder(names, &listed);
    }
done:
    brc_buf_dispose(&listed);
    return rc;
}

int brc_tree_names_each(const brc_tree_names *names, const char *path,
                        int (*found)(void *ctx, const char *name, brc_error *err), void *ctx,
                        brc_error *err)
{
    brc_buf listed = BRC_BUF_INIT;
    char *child = NULL;
    size_t i, end, len;
    int rc;

    BRC_GO(brc_tree_names_below(&i, &end, names, path, err));
    BRC_GO(listed_path(&listed, names, path, 1, err));
    const size_t base = listed.len;
    while (i < end) {
        const char *name = names->name(names->items, i, &len);
        const char *slash = memchr(name + base, '/', len - base);
        const size_t part = slash ? (size_t)(slash - name) - base : len - base;
        BRC_GO(brc_dup_n(&child, name + base, part, err));
        BRC_GO(found(ctx, child, err));
        free(child);
        child = NULL;
        i++;
        if (slash) {
            BRC_GO(brc_buf_append(&listed, name + base, part + 1, err));
            i = behind_folder(names, &listed);
            listed.len = base;
        }
    }
done:
    free(child);
    brc_buf_dispose(&listed);
    return rc;
}
