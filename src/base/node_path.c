#include "node_path.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "buf.h"

/* ==== node path ================================ */

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

/* Returns whether the first `len` bytes of a path are one of the sorted paths. */
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

/* ==== name escape ================================ */

#define SHORTENED_TAIL ((size_t)18) /* "%~" and 16 digits */

/* ---- which names --------------------------------------------------------------------- */

static int is_control(unsigned char c)
{
    return c < 0x20 || c == 0x7F;
}

static int has_control(const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (is_control((unsigned char)name[i]))
            return 1;
    return 0;
}

/* Returns whether a name needs no escape, unless it looks like an escaped one. */
static int needs_no_escape(const char *name, size_t len)
{
    return brc_name_check(name, len, NULL) == BRC_OK && !has_control(name, len);
}

static int name_equals(const char *name, size_t len, const char *other)
{
    return len == strlen(other) && memcmp(name, other, len) == 0;
}

static int is_netcdf_name(const char *name, size_t len)
{
    unsigned char c = len > 0 ? (unsigned char)name[0] : 0;
    int begins = c >= 0x80 || c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                 (c >= 'a' && c <= 'z');
    return begins && name[len - 1] != ' ' && !has_control(name, len);
}

/* Returns whether the format allows this name. */
static int can_hold(const char *name, size_t len, int names)
{
    if (!brc_utf8_valid(name, len) || memchr(name, '/', len) != NULL)
        return 0;
    switch (names) {
    case BRC_NAMES_FILES:
        return len > 0 && !name_equals(name, len, ".") && !name_equals(name, len, "..") &&
               !name_equals(name, len, "zarr.json");
    case BRC_NAMES_HDF5:
        return len > 0 && !name_equals(name, len, ".");
    case BRC_NAMES_NETCDF:
        return is_netcdf_name(name, len);
    default:
        return 1;
    }
}

/* ---- the code ------------------------------------------------------------------------ */

/* Returns whether a name is refused as a whole, though each of its bytes is allowed. */
static int is_refused_whole(const char *name, size_t len)
{
    return (len >= 2 && memcmp(name, "__", 2) == 0) || name_equals(name, len, "zarr.json") ||
           brc_name_is_dots(name, len);
}

static int encode_name(brc_buf *out, const char *name, size_t len, brc_error *err)
{
    const uint8_t *at = (const uint8_t *)name;
    size_t left = len;

    if (len == 0)
        return brc_buf_byte(out, '%', err);
    while (left > 0) {
        size_t step = brc_utf8_step(at, left);
        int coded = step == 0 || is_control(*at) || *at == '/' || *at == '%' ||
                    (left == len && is_refused_whole(name, len));
        if (step == 0)
            step = 1;
        BRC_TRY(coded ? brc_buf_printf(out, err, "%%%02X", *at)
                      : brc_buf_append(out, at, step, err));
        at += step;
        left -= step;
    }
    return BRC_OK;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Appends the name without one escape; *is becomes 0 if the name is not escaped. */
static int take_code_away(brc_buf *out, const char *name, size_t len, int *is, brc_error *err)
{
    *is = name_equals(name, len, "%");
    for (size_t i = 0; !*is && i < len; i++) {
        int high = -1, low = -1;
        if (name[i] == '%') {
            high = i + 2 < len ? hex_digit(name[i + 1]) : -1;
            low = i + 2 < len ? hex_digit(name[i + 2]) : -1;
            if (high < 0 || low < 0)
                return BRC_OK;
            i += 2;
        }
        BRC_TRY(brc_buf_byte(out, (uint8_t)(high >= 0 ? high * 16 + low : name[i]), err));
    }
    *is = 1;
    return BRC_OK;
}

/* Appends the name that import escaped, and sets *is if there was one. Each round takes one escape
 * away: a name that looked escaped was escaped for that reason. */
static int take_escape(brc_buf *out, const char *name, size_t len, int names, int *is,
                       brc_error *err)
{
    brc_buf one = BRC_BUF_INIT, again = BRC_BUF_INIT, below = BRC_BUF_INIT;
    int rc = BRC_OK;

    *is = 0;
    if (len == 0 || memchr(name, '%', len) == NULL)
        return BRC_OK;
    BRC_GO(take_code_away(&one, name, len, is, err));
    if (*is)
        BRC_GO(encode_name(&again, (const char *)one.data, one.len, err));
    *is = *is && again.len == len && memcmp(again.data, name, len) == 0;
    if (!*is)
        goto done;
    const char *inner = one.data ? (const char *)one.data : "";
    if (needs_no_escape(inner, one.len))
        BRC_GO(take_escape(&below, inner, one.len, names, is, err));
    else
        *is = can_hold(inner, one.len, names);
    if (*is)
        rc = brc_buf_append(out, inner, one.len, err);
done:
    brc_buf_dispose(&one);
    brc_buf_dispose(&again);
    brc_buf_dispose(&below);
    return rc;
}

/* Cuts the text after `start` so that it fits, between characters and between escapes. */
static int shorten(brc_buf *out, size_t start, brc_error *err)
{
    size_t len = out->len - start, keep = 0;
    if (len <= BRC_NAME_MAX)
        return BRC_OK;
    uint64_t hash = brc_hash_bytes(out->data + start, len);
    for (;;) {
        const uint8_t *at = out->data + start + keep;
        size_t step = *at == '%' ? 3 : brc_utf8_step(at, len - keep);
        if (keep + step > BRC_NAME_MAX - SHORTENED_TAIL)
            break;
        keep += step;
    }
    out->len = start + keep;
    return brc_buf_printf(out, err, "%%~%016" PRIx64, hash);
}

/* ---- names --------------------------------------------------------------------------- */

int brc_name_escape(brc_buf *out, const char *name, size_t len, int names, brc_error *err)
{
    brc_buf ignored = BRC_BUF_INIT;
    size_t start = out->len;
    int looks = 0, rc = BRC_OK;

    if (len <= BRC_NAME_MAX && needs_no_escape(name, len))
        rc = take_escape(&ignored, name, len, names, &looks, err);
    else
        looks = 1;
    brc_buf_dispose(&ignored);
    BRC_TRY(rc);
    if (!looks)
        return brc_buf_append(out, name, len, err);
    BRC_TRY(encode_name(out, name, len, err));
    return shorten(out, start, err);
}

int brc_name_unescape(brc_buf *out, const char *name, size_t len, int names, brc_error *err)
{
    int is;
    BRC_TRY(take_escape(out, name, len, names, &is, err));
    return is ? BRC_OK : brc_buf_append(out, name, len, err);
}

/* ---- paths --------------------------------------------------------------------------- */

typedef int (*name_fn)(brc_buf *out, const char *name, size_t len, int names, brc_error *err);

static int each_part(brc_buf *out, const char *path, int names, name_fn change, brc_error *err)
{
    for (;;) {
        size_t len = strcspn(path, "/");
        BRC_TRY(change(out, path, len, names, err));
        path += len;
        if (*path++ == '\0')
            return BRC_OK;
        BRC_TRY(brc_buf_byte(out, '/', err));
    }
}

int brc_path_escape(char **out, const char *above, const char *path, int names, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    size_t len = strlen(above);
    int rc = BRC_OK;

    *out = NULL;
    while (len > 0 && *path && above[len - 1] == '/')
        len--;
    BRC_GO(brc_buf_append(&text, above, len, err));
    if (*path) {
        BRC_GO(brc_buf_byte(&text, '/', err));
        BRC_GO(each_part(&text, path, names, brc_name_escape, err));
    }
    BRC_GO(brc_buf_take_text(&text, out, err));
done:
    brc_buf_dispose(&text);
    return rc;
}

int brc_path_unescape(char **out, const char *path, int names, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc;

    *out = NULL;
    BRC_GO(each_part(&text, path, names, brc_name_unescape, err));
    BRC_GO(brc_buf_take_text(&text, out, err));
done:
    brc_buf_dispose(&text);
    return rc;
}
