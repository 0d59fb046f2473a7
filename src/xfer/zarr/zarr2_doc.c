/* Whole documents: .zarray, .zgroup and .zattrs as zarr.json, and back. */
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../nd/named.h"
#include "zarr2.h"

#define DIMENSIONS "_ARRAY_DIMENSIONS" /* xarray's attribute */

static const char *const zarray_members[] = {
    "zarr_format", "shape",      "chunks",
    "dtype",       "compressor", "fill_value",
    "order",       "filters",    "dimension_separator",
};

static int bad_member(brc_error *err, const char *pointer, const char *why)
{
    return brc_fail(err, BRC_EINVAL, "%s: %s", pointer, why);
}

static int check_format(const brc_json *doc, brc_error *err)
{
    int64_t format;
    if (brc_json_kind(doc) != BRC_JSON_OBJECT)
        return brc_fail(err, BRC_EINVAL, "it is not a JSON object");
    if (!brc_json_int(brc_json_member(doc, "zarr_format"), 2, 2, &format))
        return bad_member(err, "/zarr_format", "must be the integer 2");
    return BRC_OK;
}

static int check_attributes(const brc_json *zattrs, brc_error *err)
{
    if (zattrs && brc_json_kind(zattrs) != BRC_JSON_OBJECT)
        return brc_fail(err, BRC_EINVAL, ".zattrs is not a JSON object");
    return BRC_OK;
}

/* All attributes but `but`; NULL: all. */
static int put_attributes(brc_buf *out, const brc_json *zattrs, const char *but, brc_error *err)
{
    int n = 0;
    for (const brc_json *m = brc_json_first(zattrs); m; m = brc_json_next(m)) {
        const char *name = brc_json_own_name(m);
        if (but && strcmp(name, but) == 0)
            continue;
        BRC_TRY(brc_buf_text(out, n++ ? "," : ",\"attributes\":{", err));
        BRC_TRY(brc_json_quote(out, name, strlen(name), err));
        BRC_TRY(brc_buf_byte(out, ':', err));
        BRC_TRY(brc_json_write(out, m, err));
    }
    return n ? brc_buf_byte(out, '}', err) : BRC_OK;
}

int brc_zarr2_group_read(brc_json **out, const brc_json *zgroup, const brc_json *zattrs,
                         brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc;

    *out = NULL;
    BRC_GO(check_format(zgroup, err));
    BRC_GO(check_attributes(zattrs, err));
    BRC_GO(brc_buf_text(&text, "{\"zarr_format\":3,\"node_type\":\"group\"", err));
    BRC_GO(put_attributes(&text, zattrs, NULL, err));
    BRC_GO(brc_buf_byte(&text, '}', err));
    BRC_GO(brc_json_parse_document(out, (const char *)text.data, text.len, err));
done:
    brc_buf_dispose(&text);
    return rc;
}

/* ---- arrays from v2 -------------------------------- */

/* The chunk shape; a chunk of 0 along an axis of 0 is an old writer's and means 1. */
static int put_chunks(brc_buf *out, const brc_json *shape, const brc_json *chunks, brc_error *err)
{
    if (brc_json_kind(shape) != BRC_JSON_ARRAY)
        return bad_member(err, "/shape", "must be a list of integers");
    if (brc_json_kind(chunks) != BRC_JSON_ARRAY || brc_json_count(chunks) != brc_json_count(shape))
        return bad_member(err, "/chunks", "must be a list of as many integers as the shape");
    BRC_TRY(brc_buf_text(out,
                         ",\"chunk_grid\":{\"name\":\"regular\",\"configuration\":"
                         "{\"chunk_shape\":[",
                         err));
    const brc_json *s = brc_json_first(shape);
    for (const brc_json *c = brc_json_first(chunks); c;
         c = brc_json_next(c), s = brc_json_next(s)) {
        uint64_t extent, chunk;
        if (!brc_json_uint(s, INT64_MAX, &extent))
            return bad_member(err, "/shape", "must be a list of integers of 0 or more");
        if (!brc_json_uint(c, INT64_MAX, &chunk) || (chunk == 0 && extent > 0))
            return bad_member(err, "/chunks", "must be a list of integers of 1 or more");
        BRC_TRY(brc_buf_printf(out, err, "%s%llu", s == brc_json_first(shape) ? "" : ",",
                               (unsigned long long)(chunk > 0 ? chunk : 1)));
    }
    return brc_buf_text(out, "]}}", err);
}

static int put_keys(brc_buf *out, const brc_json *zarray, char separator, brc_error *err)
{
    const brc_json *member = brc_json_member(zarray, "dimension_separator");

    if (member) {
        separator = brc_json_is(member, "/") ? '/' : '.';
        if (separator == '.' && !brc_json_is(member, "."))
            return bad_member(err, "/dimension_separator", "must be \".\" or \"/\"");
    }
    return brc_buf_printf(out, err,
                          ",\"chunk_key_encoding\":{\"name\":\"v2\",\"configuration\":"
                          "{\"separator\":\"%c\"}}",
                          separator);
}

/* Whether these are names that xarray's attribute holds: strings, one per axis. */
static int are_names(const brc_json *names, size_t ndim)
{
    if (brc_json_kind(names) != BRC_JSON_ARRAY || brc_json_count(names) != ndim)
        return 0;
    for (const brc_json *v = brc_json_first(names); v; v = brc_json_next(v))
        if (brc_json_kind(v) != BRC_JSON_STRING)
            return 0;
    return 1;
}

/* xarray's attribute becomes the names of the axes; where it does not fit, it stays. */
static int put_names_and_attributes(brc_buf *out, const brc_json *zattrs, size_t ndim,
                                    brc_error *err)
{
    const brc_json *names = brc_json_member(zattrs, DIMENSIONS);
    if (!are_names(names, ndim))
        return put_attributes(out, zattrs, NULL, err);
    BRC_TRY(put_attributes(out, zattrs, DIMENSIONS, err));
    BRC_TRY(brc_buf_text(out, ",\"dimension_names\":", err));
    return brc_json_write(out, names, err);
}

/* The document without the note. */
static int put_array(brc_buf *out, const brc_json *zarray, const brc_json *zattrs, char separator,
                     const brc_registry *reg, brc_error *err)
{
    brc_zarr2_type type = { BRC_BUF_INIT, 0, '|', 0 };
    brc_buf codecs = BRC_BUF_INIT;
    const brc_json *shape = brc_json_member(zarray, "shape");
    size_t ndim = brc_json_count(shape);
    int rc;

    BRC_GO(check_format(zarray, err));
    BRC_GO(check_attributes(zattrs, err));
    BRC_GO(brc_zarr2_type_read(&type, brc_json_member(zarray, "dtype"), err));
    BRC_GO(brc_buf_text(out, "{\"zarr_format\":3,\"node_type\":\"array\"", err));
    BRC_GO(put_chunks(out, shape, brc_json_member(zarray, "chunks"), err));
    BRC_GO(brc_buf_text(out, ",\"shape\":", err));
    BRC_GO(brc_json_write(out, shape, err));
    BRC_GO(put_keys(out, zarray, separator, err));
    BRC_GO(brc_zarr2_codecs_read(&codecs, &type, zarray, ndim, err));
    BRC_GO(brc_buf_text(out, ",\"data_type\":", err));
    BRC_GO(brc_buf_append(out, type.json.data, type.json.len, err));
    BRC_GO(brc_buf_text(out, ",\"fill_value\":", err));
    BRC_GO(brc_zarr2_fill_read(out, brc_json_member(zarray, "fill_value"), &type, reg, err));
    BRC_GO(brc_buf_text(out, ",\"codecs\":", err));
    BRC_GO(brc_buf_append(out, codecs.data, codecs.len, err));
    BRC_GO(put_names_and_attributes(out, zattrs, ndim, err));
    BRC_GO(brc_buf_byte(out, '}', err));
done:
    brc_buf_dispose(&codecs);
    brc_buf_dispose(&type.json);
    return rc;
}

static int array_from(brc_json **out, const brc_json *zarray, const brc_json *zattrs,
                      char separator, const brc_registry *reg, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc;

    *out = NULL;
    BRC_GO(put_array(&text, zarray, zattrs, separator, reg, err));
    BRC_GO(brc_json_parse_document(out, (const char *)text.data, text.len, err));
done:
    brc_buf_dispose(&text);
    return rc;
}

/* A number as the fill value of elements that are not numbers. Readers interpret it
 * differently, so what is written is the value that was read. */
static int is_open_fill(const brc_json *zarray)
{
    const brc_json *dtype = brc_json_member(zarray, "dtype");
    const char *text;
    return brc_json_kind(brc_json_member(zarray, "fill_value")) == BRC_JSON_NUMBER &&
           (!brc_json_text(dtype, &text) || strspn(text, "<>|") != 1 || strchr("SUVO", text[1]));
}

static int copy_fill(brc_json *to, const brc_json *from, brc_error *err)
{
    brc_json *fill;
    BRC_TRY(brc_json_clone(&fill, brc_json_member(from, "fill_value"), err));
    return brc_json_set(to, "fill_value", fill, err);
}

/* Whether what came back is the .zarray, but for the separator, which v2 need not
 * say, and an open fill value. */
static int says_the_same(int *same, const brc_json *back, const brc_json *zarray, brc_error *err)
{
    brc_json *x = NULL, *y = NULL;
    int rc;

    *same = 0;
    BRC_GO(brc_json_clone(&x, back, err));
    BRC_GO(brc_json_clone(&y, zarray, err));
    brc_json_remove(x, "dimension_separator");
    brc_json_remove(y, "dimension_separator");
    if (is_open_fill(y))
        BRC_GO(copy_fill(y, x, err));
    *same = brc_json_equal(x, y);
done:
    brc_json_free(x);
    brc_json_free(y);
    return rc;
}

/* Keeps the .zarray in the document where the way back would not give it. */
static int note_whole(brc_json *doc, const brc_json *zarray, const brc_registry *reg,
                      brc_error *err)
{
    brc_json *back = NULL, *zattrs = NULL, *copy = NULL;
    brc_error why = BRC_ERROR_INIT;
    int same = 0;

    int rc = brc_zarr2_array_write(&back, &zattrs, doc, 0, reg, &why);
    if (rc == BRC_ENOMEM)
        rc = brc_nomem(err);
    else
        rc = rc == BRC_OK ? says_the_same(&same, back, zarray, err) : BRC_OK;
    if (rc == BRC_OK && !same)
        rc = brc_json_clone(&copy, zarray, err);
    if (rc == BRC_OK && !same)
        rc = brc_meta_zarr2_note(doc, "zarray", copy, err);
    brc_json_free(zattrs);
    brc_json_free(back);
    return rc;
}

static int read_array(brc_json **out, const brc_json *zarray, const brc_json *zattrs,
                      char separator, const brc_registry *reg, brc_error *err)
{
    int lacks_fill = brc_json_kind(brc_json_member(zarray, "fill_value")) == BRC_JSON_NULL;
    BRC_TRY(array_from(out, zarray, zattrs, separator, reg, err));
    /* of a type that v3 lacks, null is the fill value itself */
    if (brc_json_kind(brc_json_member(*out, "fill_value")) == BRC_JSON_NULL)
        lacks_fill = 0;
    int rc = lacks_fill ? brc_meta_zarr2_note(*out, "fill_value", brc_json_new_null(), err)
                        : BRC_OK;
    if (rc == BRC_OK)
        rc = note_whole(*out, zarray, reg, err);
    if (rc < 0) {
        brc_json_free(*out);
        *out = NULL;
    }
    return rc;
}

/* Writers of v2 leave NaN and the infinities as words in the fill value, where v3 and other
 * writers of v2 have texts. */
int brc_zarr2_array_read(brc_json **out, const brc_json *zarray, const brc_json *zattrs,
                         char separator, const brc_registry *reg, brc_error *err)
{
    brc_json *clean;
    *out = NULL;
    BRC_TRY(brc_json_clone(&clean, zarray, err));
    brc_json_nan_to_text(clean);
    int rc = read_array(out, clean, zattrs, separator, reg, err);
    brc_json_free(clean);
    return rc;
}

/* ---- to v2 -------------------------------- */

/* An array of v3 without axes, which need not say that it has no names for them; xarray
 * cannot read an array of v2 that does not. One that came from v2 has v2's keys. */
static int is_scalar_of_v3(const brc_json *doc)
{
    const brc_json *shape = brc_json_member(doc, "shape");
    const brc_json *keys = brc_json_member(doc, "chunk_key_encoding");
    const brc_json *name = brc_json_kind(keys) == BRC_JSON_OBJECT ? brc_json_member(keys, "name")
                                                                  : keys;
    return brc_json_kind(shape) == BRC_JSON_ARRAY && brc_json_count(shape) == 0 &&
           brc_json_is(name, "default");
}

/* *out: the names of the axes as xarray wants them in an attribute; NULL: none. */
static int names_to(brc_json **out, const brc_json *doc, brc_error *err)
{
    const brc_json *names = brc_json_member(doc, "dimension_names");
    *out = NULL;
    if (brc_json_member(brc_json_member(doc, "attributes"), DIMENSIONS))
        return BRC_OK;
    if (are_names(names, brc_json_count(brc_json_member(doc, "shape"))))
        return brc_json_clone(out, names, err);
    if (!is_scalar_of_v3(doc))
        return BRC_OK;
    *out = brc_json_new_array();
    return *out ? BRC_OK : brc_nomem(err);
}

/* The attributes, with those names. */
static int attributes_to(brc_json **zattrs, const brc_json *doc, brc_error *err)
{
    const brc_json *attributes = brc_json_member(doc, "attributes");
    brc_json *names;

    *zattrs = NULL;
    BRC_TRY(names_to(&names, doc, err));
    int rc = BRC_OK;
    if (brc_json_count(attributes) > 0)
        rc = brc_json_clone(zattrs, attributes, err);
    else if (names && !(*zattrs = brc_json_new_object()))
        rc = brc_nomem(err);
    if (rc == BRC_OK && names) {
        rc = brc_json_set(*zattrs, DIMENSIONS, names, err);
        names = NULL;
    }
    brc_json_free(names);
    if (rc < 0) {
        brc_json_free(*zattrs);
        *zattrs = NULL;
    }
    return rc;
}

int brc_zarr2_group_write(brc_json **zgroup, brc_json **zattrs, const brc_json *doc, brc_error *err)
{
    static const char text[] = "{\"zarr_format\":2}";
    BRC_TRY(brc_json_parse(zgroup, text, sizeof(text) - 1, err));
    int rc = attributes_to(zattrs, doc, err);
    if (rc < 0) {
        brc_json_free(*zgroup);
        *zgroup = NULL;
    }
    return rc;
}

/* The separator of v2 that gives the keys the same order of parts. */
static int put_key_separator(brc_buf *out, const brc_json *doc, brc_error *err)
{
    brc_named keys;
    BRC_TRY(brc_named_read(&keys, brc_json_member(doc, "chunk_key_encoding"), err));
    const brc_json *separator = brc_json_member(keys.config, "separator");
    int is_v2 = strcmp(keys.name, "v2") == 0;
    if (!is_v2 && strcmp(keys.name, "default") != 0)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "/chunk_key_encoding: Zarr v2 has no form for \"%.60s\"", keys.name);
    int is_slash = separator ? brc_json_is(separator, "/") : !is_v2;
    return brc_buf_printf(out, err, ",\"dimension_separator\":\"%c\"", is_slash ? '/' : '.');
}

static int put_grid(brc_buf *out, const brc_json *doc, brc_error *err)
{
    brc_named grid;
    BRC_TRY(brc_named_read(&grid, brc_json_member(doc, "chunk_grid"), err));
    const brc_json *chunks = brc_json_member(grid.config, "chunk_shape");
    if (strcmp(grid.name, "regular") != 0 || !chunks)
        return brc_fail(err, BRC_EUNSUPPORTED, "/chunk_grid: Zarr v2 has no form for \"%.60s\"",
                        grid.name);
    BRC_TRY(brc_buf_text(out, ",\"chunks\":", err));
    return brc_json_write(out, chunks, err);
}

static int put_zarray(brc_buf *out, const brc_json *doc, int gaps, const brc_registry *reg,
                      brc_error *err)
{
    const brc_json *shape = brc_json_member(doc, "shape");
    brc_buf codecs = BRC_BUF_INIT;
    char order;
    int rc;

    if (brc_json_count(brc_json_member(doc, "storage_transformers")) > 0)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "/storage_transformers: Zarr v2 has no form for them");
    BRC_GO(brc_buf_text(out, "{\"zarr_format\":2,\"shape\":", err));
    BRC_GO(brc_json_write(out, shape, err));
    BRC_GO(put_grid(out, doc, err));
    BRC_GO(brc_zarr2_codecs_write(&codecs, &order, doc, err));
    BRC_GO(brc_buf_text(out, ",\"dtype\":", err));
    BRC_GO(brc_zarr2_type_write(out, brc_json_member(doc, "data_type"), order, err));
    BRC_GO(brc_buf_text(out, ",\"fill_value\":", err));
    BRC_GO(brc_zarr2_fill_write(out, doc, order, gaps, reg, err));
    BRC_GO(brc_buf_byte(out, ',', err));
    BRC_GO(brc_buf_append(out, codecs.data, codecs.len, err));
    BRC_GO(put_key_separator(out, doc, err));
    BRC_GO(brc_buf_byte(out, '}', err));
done:
    brc_buf_dispose(&codecs);
    return rc;
}

/* Gives the .zarray the document's fill value, where v2 can say it. */
static int close_fill(brc_json *zarray, const brc_json *doc, int gaps, const brc_registry *reg,
                      brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    brc_json *fresh = NULL;
    brc_error why = BRC_ERROR_INIT;

    int rc = put_zarray(&text, doc, gaps, reg, &why);
    if (rc < 0) {
        rc = rc == BRC_ENOMEM ? brc_nomem(err) : BRC_OK;
        goto done;
    }
    BRC_GO(brc_json_parse(&fresh, (const char *)text.data, text.len, err));
    BRC_GO(copy_fill(zarray, fresh, err));
done:
    brc_json_free(fresh);
    brc_buf_dispose(&text);
    return rc;
}

/* The note's .zarray with the shape and separator of now, where it means what the
 * document says; else *out stays NULL. */
static int use_note(brc_json **out, const brc_json *doc, int gaps, const brc_registry *reg,
                    brc_error *err)
{
    static const char *const compared[] = { "data_type", "fill_value", "codecs", "chunk_grid" };
    const brc_json *zarray = brc_json_member(brc_json_member(doc, BRC_ZARR2_NOTE), "zarray");
    brc_json *copy = NULL, *then = NULL, *shape = NULL;
    brc_error why = BRC_ERROR_INIT;
    brc_buf text = BRC_BUF_INIT;
    int rc = BRC_OK, same = 1;

    if (!zarray)
        return BRC_OK;
    rc = array_from(&then, zarray, NULL, '.', reg, &why);
    if (rc < 0)
        return rc == BRC_ENOMEM ? brc_nomem(err) : BRC_OK;
    for (size_t i = 0; i < sizeof(compared) / sizeof(compared[0]); i++)
        same &=
            brc_json_equal(brc_json_member(then, compared[i]), brc_json_member(doc, compared[i]));
    if (!same)
        goto done;
    BRC_GO(brc_json_clone(&copy, zarray, err));
    BRC_GO(brc_json_clone(&shape, brc_json_member(doc, "shape"), err));
    BRC_GO(brc_json_set(copy, "shape", shape, err));
    if (is_open_fill(copy) || brc_meta_lacks_fill(doc))
        BRC_GO(close_fill(copy, doc, gaps, reg, err));
    BRC_GO(put_key_separator(&text, doc, err));
    if (text.data[text.len - 2] == '/' || brc_json_member(copy, "dimension_separator")) {
        char now[2] = { (char)text.data[text.len - 2], 0 };
        BRC_GO(brc_json_set(copy, "dimension_separator", brc_json_new_string(now), err));
    }
    *out = copy;
    copy = NULL;
done:
    brc_buf_dispose(&text);
    brc_json_free(copy);
    brc_json_free(then);
    return rc;
}

static int is_zarray_member(const char *name)
{
    for (size_t i = 0; i < sizeof(zarray_members) / sizeof(zarray_members[0]); i++)
        if (strcmp(name, zarray_members[i]) == 0)
            return 1;
    return 0;
}

/* Members that neither format knows are kept. */
static int copy_unknown(brc_json *zarray, const brc_json *doc, brc_error *err)
{
    static const char *const known[] = {
        "node_type",  "data_type",       "chunk_grid",           "chunk_key_encoding", "codecs",
        "attributes", "dimension_names", "storage_transformers", BRC_ZARR2_NOTE
    };
    for (const brc_json *m = brc_json_first(doc); m; m = brc_json_next(m)) {
        const char *name = brc_json_own_name(m);
        brc_json *copy;
        size_t i = 0, n = sizeof(known) / sizeof(known[0]);
        while (i < n && strcmp(known[i], name) != 0)
            i++;
        if (i < n || is_zarray_member(name))
            continue;
        BRC_TRY(brc_json_clone(&copy, m, err));
        BRC_TRY(brc_json_set(zarray, name, copy, err));
    }
    return BRC_OK;
}

int brc_zarr2_array_write(brc_json **zarray, brc_json **zattrs, const brc_json *doc, int gaps,
                          const brc_registry *reg, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc;

    *zarray = *zattrs = NULL;
    BRC_GO(use_note(zarray, doc, gaps, reg, err));
    if (!*zarray) {
        BRC_GO(put_zarray(&text, doc, gaps, reg, err));
        BRC_GO(brc_json_parse(zarray, (const char *)text.data, text.len, err));
    }
    BRC_GO(copy_unknown(*zarray, doc, err));
    BRC_GO(attributes_to(zattrs, doc, err));
done:
    brc_buf_dispose(&text);
    if (rc < 0) {
        brc_json_free(*zarray);
        *zarray = NULL;
    }
    return rc;
}
