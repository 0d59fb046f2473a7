#include "name_escape.h"

#include <inttypes.h>
#include <string.h>

#include "hash.h"
#include "node_path.h"
#include "utf8.h"

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

/* One that needs no escape, unless it looks like one. */
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

/* Whether the format can have this name. */
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

/* Whether a name is refused for how it begins, though each byte of it is allowed. */
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

/* Appends what is encoded so; *is 0 if nothing is. */
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

/* *is: whether the name is what import made of another one, which is appended. Each round takes
 * one escape away: a name that looks escaped was escaped for that. */
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

/* Cuts what stands behind `start` so that it fits: between characters, and between escapes. */
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
