#include "node_path.h"

#include <stdlib.h>
#include <string.h>

#include "utf8.h"

int brc_name_is_dots(const char *name, size_t len)
{
    size_t dots = 0;
    while (dots < len && name[dots] == '.')
        dots++;
    return dots == len;
}

int brc_name_check(const char *name, size_t len, brc_error *err)
{
    if (len == 0)
        return brc_fail(err, BRC_EINVAL, "a node's name cannot be empty");
    if (len > BRC_NAME_MAX)
        return brc_fail(err, BRC_ELIMIT, "the node name '%.40s...' is longer than %d bytes", name,
                        BRC_NAME_MAX);
    if (!brc_utf8_valid(name, len))
        return brc_fail(err, BRC_EINVAL, "a node's name is not valid UTF-8");
    if (memchr(name, '/', len) != NULL)
        return brc_fail(err, BRC_EINVAL, "the node name '%.*s' contains '/'", (int)len, name);
    if (brc_name_is_dots(name, len))
        return brc_fail(err, BRC_EINVAL, "the node name '%.*s' consists of dots only", (int)len,
                        name);
    if (len >= 2 && memcmp(name, "__", 2) == 0)
        return brc_fail(err, BRC_EINVAL,
                        "the node name '%.*s' begins with '__', which Zarr reserves", (int)len,
                        name);
    if (len == 9 && memcmp(name, "zarr.json", 9) == 0)
        return brc_fail(err, BRC_EINVAL, "a node cannot be called 'zarr.json'");
    return BRC_OK;
}

int brc_name_is_stored(const char *name, size_t len, brc_error *err)
{
    int rc = brc_name_check(name, len, err);
    if (rc == BRC_OK || rc == BRC_ENOMEM)
        return rc;
    brc_context(err, "a child's name is damaged");
    if (err != NULL)
        brc_error_recode(err, BRC_ECORRUPT);
    return BRC_ECORRUPT;
}

int brc_path_is_stored(const char *path, size_t len, size_t depth, brc_error *err)
{
    if (depth > BRC_DEPTH_MAX)
        return brc_fail(err, BRC_ECORRUPT,
                        "%.300s is damaged: it is more than %d names deep, the limit", path,
                        BRC_DEPTH_MAX);
    if (len > BRC_PATH_MAX)
        return brc_fail(err, BRC_ECORRUPT,
                        "%.300s... is damaged: its path has more than %d bytes, the limit",
                        path, BRC_PATH_MAX);
    return BRC_OK;
}

int brc_path_is_normal(const char *path, brc_error *err)
{
    const char *at = path;
    size_t depth = 0;
    if (strcmp(path, "/") == 0)
        return BRC_OK;
    for (; *at == '/' && depth <= BRC_DEPTH_MAX; depth++) {
        size_t len = strcspn(++at, "/");
        BRC_TRY(brc_name_is_stored(at, len, err));
        at += len;
    }
    if (depth == 0)
        return brc_fail(err, BRC_ECORRUPT, "'%.200s' is not a path", path);
    return brc_path_is_stored(path, strlen(path), depth, err);
}

int brc_path_order(const char *a, const char *b)
{
    const unsigned char *x = (const unsigned char *)a, *y = (const unsigned char *)b;
    while (*x == *y && *x != 0) {
        x++;
        y++;
    }
    int cx = *x == '/' ? 1 : *x == 0 ? 0 : *x + 1, cy = *y == '/' ? 1 : *y == 0 ? 0 : *y + 1;
    return cx - cy;
}

int brc_path_normal(brc_buf *out, const char *path, brc_error *err)
{
    out->len = 0;
    size_t depth = 0;
    if (*path == '/')
        path++;
    while (*path != '\0') {
        size_t len = strcspn(path, "/");
        BRC_TRY(brc_name_check(path, len, err));
        BRC_TRY(brc_buf_byte(out, '/', err));
        BRC_TRY(brc_buf_append(out, path, len, err));
        path += len;
        if (*path == '/')
            path++;
        if (++depth > BRC_DEPTH_MAX || out->len > BRC_PATH_MAX)
            return brc_fail(err, BRC_ELIMIT,
                            "a path has more than %d bytes or more than %d names in it",
                            BRC_PATH_MAX, BRC_DEPTH_MAX);
    }
    if (out->len == 0)
        BRC_TRY(brc_buf_byte(out, '/', err));
    return brc_buf_terminate(out, err);
}

int brc_node_join(char **out, const char *path, const char *name, brc_error *err)
{
    size_t len = strlen(path);
    while (len > 0 && path[len - 1] == '/')
        len--;
    brc_buf text = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_buf_append(&text, path, len, err));
    BRC_GO(brc_buf_byte(&text, '/', err));
    BRC_GO(brc_buf_text(&text, name, err));
    BRC_GO(brc_buf_take_text(&text, out, err));
done:
    brc_buf_dispose(&text);
    return rc;
}

int brc_document_key(const char *key, size_t *len)
{
    static const char own[] = "zarr.json";
    size_t n = strlen(key), tail = sizeof(own) - 1;
    if (n < tail || strcmp(key + n - tail, own) != 0 || (n > tail && key[n - tail - 1] != '/'))
        return 0;
    *len = n > tail ? n - tail - 1 : 0;
    return 1;
}

static void trim_slashes(const char **path, size_t *len)
{
    while (*len > 0 && **path == '/') {
        ++*path;
        --*len;
    }
    while (*len > 0 && (*path)[*len - 1] == '/')
        --*len;
}

int brc_path_is_same(const char *path, size_t len, const char *other)
{
    size_t n = strlen(other);
    trim_slashes(&path, &len);
    trim_slashes(&other, &n);
    return n > 0 && n == len && memcmp(path, other, n) == 0;
}

/* ---- lists of paths -------------------------------- */

static int paths_order(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void brc_paths_sort(const char **paths, size_t n)
{
    if (n > 1)
        qsort(paths, n, sizeof(*paths), paths_order);
}

/* The first `len` bytes of a path, as a path. */
static int have_start(const char *const *sorted, size_t n, const char *path, size_t len,
                      size_t *looks)
{
    while (n > 0) {
        const size_t half = n / 2;
        int order = strncmp(path, sorted[half], len);
        if (order == 0 && sorted[half][len] == '\0')
            return 1;
        if (looks != NULL)
            ++*looks;
        if (order > 0) {
            sorted += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return 0;
}

int brc_paths_have(const char *const *sorted, size_t n, const char *path, size_t *looks)
{
    return have_start(sorted, n, path, strlen(path), looks);
}

int brc_paths_cover(const char *const *sorted, size_t n, const char *path, size_t *looks)
{
    if (have_start(sorted, n, "/", 1, looks))
        return 1;
    for (size_t len = 1; path[len - 1] != '\0'; len++)
        if ((path[len] == '/' || path[len] == '\0') && have_start(sorted, n, path, len, looks))
            return 1;
    return 0;
}
