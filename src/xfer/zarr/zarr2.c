/* Whole documents: translates .zarray, .zgroup and .zattrs to zarr.json, and back. */
#include "zarr2.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../nd/dtype.h"

static int zarr2_codecs_read(brc_buf *out, brc_zarr2_type *type, const brc_json *zarray,
                             size_t ndim, brc_error *err);
static int zarr2_codecs_write(brc_buf *out, char *order, const brc_json *doc, brc_error *err);

/* ==== zarr2 doc ================================ */

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

/* Puts all attributes except `but`; NULL: all. */
static int put_attributes(brc_buf *out, const brc_json *zattrs, const char *but, brc_error *err)
{
    int n = 0;
    for (const brc_json *m = brc_json_first(zattrs); m; m = brc_json_next(m)) {
        const char *name = brc_json_name(m);
        if (but && strcmp(name, but) == 0)
            continue;
        BRC_TRY(brc_buf_text(out, n++ ? "," : ",\"attributes\":{", err));
        BRC_TRY(brc_json_quote(out, name, strlen(name), err));
        BRC_TRY(brc_buf_byte(out, ':', err));
        BRC_TRY(brc_json_write(out, m, 0, err));
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

/* Puts the chunk shape; old writers gave an axis of 0 a chunk of 0, which means 1. */
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

/* Tells whether the value can be xarray's attribute: a list of strings, one per axis. */
static int are_names(const brc_json *names, size_t ndim)
{
    if (brc_json_kind(names) != BRC_JSON_ARRAY || brc_json_count(names) != ndim)
        return 0;
    for (const brc_json *v = brc_json_first(names); v; v = brc_json_next(v))
        if (brc_json_kind(v) != BRC_JSON_STRING)
            return 0;
    return 1;
}

/* Turns xarray's attribute into the names of the axes; an attribute that does not fit stays. */
static int put_names_and_attributes(brc_buf *out, const brc_json *zattrs, size_t ndim,
                                    brc_error *err)
{
    const brc_json *names = brc_json_member(zattrs, DIMENSIONS);
    if (!are_names(names, ndim))
        return put_attributes(out, zattrs, NULL, err);
    BRC_TRY(put_attributes(out, zattrs, DIMENSIONS, err));
    BRC_TRY(brc_buf_text(out, ",\"dimension_names\":", err));
    return brc_json_write(out, names, 0, err);
}

/* Writes the document without the note. */
static int put_array(brc_buf *out, const brc_json *zarray, const brc_json *zattrs, char separator,
                     int texts, const brc_registry *reg, brc_error *err)
{
    brc_zarr2_type type = { BRC_BUF_INIT, 0, '|', 0, 0 };
    brc_buf codecs = BRC_BUF_INIT;
    const brc_json *shape = brc_json_member(zarray, "shape");
    size_t ndim = brc_json_count(shape);
    int rc;

    BRC_GO(check_format(zarray, err));
    BRC_GO(check_attributes(zattrs, err));
    BRC_GO(brc_zarr2_type_read(&type, brc_json_member(zarray, "dtype"), err));
    type.texts = texts;
    BRC_GO(brc_buf_text(out, "{\"zarr_format\":3,\"node_type\":\"array\"", err));
    BRC_GO(put_chunks(out, shape, brc_json_member(zarray, "chunks"), err));
    BRC_GO(brc_buf_text(out, ",\"shape\":", err));
    BRC_GO(brc_json_write(out, shape, 0, err));
    BRC_GO(put_keys(out, zarray, separator, err));
    BRC_GO(zarr2_codecs_read(&codecs, &type, zarray, ndim, err));
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

/* `texts`: objects are taken for texts where their filter leaves that open. */
static int array_from(brc_json **out, const brc_json *zarray, const brc_json *zattrs,
                      char separator, int texts, const brc_registry *reg, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc;

    *out = NULL;
    BRC_GO(put_array(&text, zarray, zattrs, separator, texts, reg, err));
    BRC_GO(brc_json_parse_document(out, (const char *)text.data, text.len, err));
done:
    brc_buf_dispose(&text);
    return rc;
}

/* Tells whether the fill value is a number although the elements are not numbers. Readers interpret
 * such a number differently, so the value is written back as it was read. */
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

/* Tells whether the translation back equals the .zarray, except for the separator, which v2 need
 * not state, and such a fill value. */
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

/* Keeps the .zarray in the document if the translation back would not restore it. */
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
                      char separator, int texts, const brc_registry *reg, brc_error *err)
{
    int lacks_fill = brc_json_kind(brc_json_member(zarray, "fill_value")) == BRC_JSON_NULL;
    BRC_TRY(array_from(out, zarray, zattrs, separator, texts, reg, err));
    /* for a type that v3 lacks, null is the fill value itself */
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

/* Reads an array. Writers of v2 have NaN and the infinities as words in the fill value, where v3
 * and other writers of v2 have texts. */
static int read_with_words(brc_json **out, const brc_json *zarray, const brc_json *zattrs,
                      char separator, int texts, const brc_registry *reg, brc_error *err)
{
    brc_json *clean;
    *out = NULL;
    BRC_TRY(brc_json_clone(&clean, zarray, err));
    brc_json_nan_to_text(clean);
    int rc = read_array(out, clean, zattrs, separator, texts, reg, err);
    brc_json_free(clean);
    return rc;
}

int brc_zarr2_array_read(brc_json **out, const brc_json *zarray, const brc_json *zattrs,
                         char separator, const brc_registry *reg, brc_error *err)
{
    return read_with_words(out, zarray, zattrs, separator, 0, reg, err);
}

/* In order F, numcodecs writes lists of the elements as the array has them and reads them as the
 * memory has them, so their order is not certain. */
int brc_zarr2_texts_import(brc_json **out, const brc_json *zarray, const brc_json *zattrs,
                           char separator, const brc_registry *reg, brc_error *err)
{
    static const char *const ids[] = { "json2", "msgpack2" };
    const brc_json *id = brc_json_member(
        brc_json_item(brc_json_member(zarray, "filters"), 0), "id");

    *out = NULL;
    if (!brc_json_is(brc_json_member(zarray, "dtype"), "|O") || brc_json_choice(id, ids, 2) < 0 ||
        (brc_json_is(brc_json_member(zarray, "order"), "F") &&
         brc_json_count(brc_json_member(zarray, "shape")) > 1))
        return BRC_OK;
    return read_with_words(out, zarray, zattrs, separator, 1, reg, err);
}

/* ---- to v2 -------------------------------- */

/* Tells whether this is an array of v3 without axes, which need not state that it has no names
 * for them; xarray cannot read an array of v2 that does not. An array that came from v2 has v2's
 * keys. */
static int is_scalar_of_v3(const brc_json *doc)
{
    const brc_json *shape = brc_json_member(doc, "shape");
    const brc_json *keys = brc_json_member(doc, "chunk_key_encoding");
    const brc_json *name = brc_json_kind(keys) == BRC_JSON_OBJECT ? brc_json_member(keys, "name")
                                                                  : keys;
    return brc_json_kind(shape) == BRC_JSON_ARRAY && brc_json_count(shape) == 0 &&
           brc_json_is(name, "default");
}

/* Makes the names of the axes in the form of xarray's attribute; *out NULL: none. */
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

/* Makes the attributes, with those names. */
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
    BRC_TRY(brc_json_parse(zgroup, text, sizeof(text) - 1, 0, err));
    int rc = attributes_to(zattrs, doc, err);
    if (rc < 0) {
        brc_json_free(*zgroup);
        *zgroup = NULL;
    }
    return rc;
}

/* Puts the separator of v2 that gives the keys the same order of parts. */
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
    return brc_json_write(out, chunks, 0, err);
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
    BRC_GO(brc_json_write(out, shape, 0, err));
    BRC_GO(put_grid(out, doc, err));
    BRC_GO(zarr2_codecs_write(&codecs, &order, doc, err));
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

/* Gives the .zarray the document's fill value, if v2 can express it. */
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
    BRC_GO(brc_json_parse(&fresh, (const char *)text.data, text.len, 0, err));
    BRC_GO(copy_fill(zarray, fresh, err));
done:
    brc_json_free(fresh);
    brc_buf_dispose(&text);
    return rc;
}

/* Takes the note's .zarray with the present shape and separator if it means the same as the
 * document; otherwise *out stays NULL. */
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
    const int texts = brc_json_is(brc_json_member(doc, "data_type"), "string");
    rc = array_from(&then, zarray, NULL, '.', texts, reg, &why);
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

/* Copies members that neither format knows. */
static int copy_unknown(brc_json *zarray, const brc_json *doc, brc_error *err)
{
    static const char *const known[] = {
        "node_type",  "data_type",       "chunk_grid",           "chunk_key_encoding", "codecs",
        "attributes", "dimension_names", "storage_transformers", BRC_ZARR2_NOTE
    };
    for (const brc_json *m = brc_json_first(doc); m; m = brc_json_next(m)) {
        const char *name = brc_json_name(m);
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
        BRC_GO(brc_json_parse(zarray, (const char *)text.data, text.len, 0, err));
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

/* ==== zarr2 codecs ================================ */

/*
 * Translates order, filters and compressor to one codec list, and back.
 *
 * v2 applies the filters in turn and then the compressor. Only their names say which of them work
 * on elements and which on bytes; in v3, "bytes" stands between the two kinds. A filter for objects
 * takes the place of "bytes".
 *
 *   order F     -> transpose with the axes reversed
 *   elements    -> numcodecs.delta ...           (array to array)
 *   the point   -> bytes, vlen-utf8, vlen-bytes, numcodecs.zfpy ...
 *   bytes       -> blosc, gzip, zstd, crc32c, numcodecs.zlib ...
 */

enum { ON_ELEMENTS = 1, ON_TEXTS, ON_OBJECTS, INTO_BYTES, MAYBE_TEXTS, UNREADABLE };

typedef struct known_filter {
    const char *id;
    int works;
} known_filter;

/* All others work on bytes. */
static const known_filter known_filters[] = {
    { "delta", ON_ELEMENTS },    { "fixedscaleoffset", ON_ELEMENTS }, { "quantize", ON_ELEMENTS },
    { "bitround", ON_ELEMENTS }, { "astype", ON_ELEMENTS },           { "packbits", ON_ELEMENTS },
    { "vlen-utf8", ON_OBJECTS }, { "vlen-bytes", ON_OBJECTS },        { "zfpy", INTO_BYTES },
    { "pcodec", INTO_BYTES },    { "vlen-array", UNREADABLE },        { "json2", MAYBE_TEXTS },
    { "json", UNREADABLE },      { "msgpack2", MAYBE_TEXTS },          { "msgpack", UNREADABLE },
    { "pickle", UNREADABLE },    { "categorize", ON_TEXTS },
};

static int filter_works(const char *id)
{
    for (size_t i = 0; i < sizeof(known_filters) / sizeof(known_filters[0]); i++)
        if (strcmp(known_filters[i].id, id) == 0)
            return known_filters[i].works;
    return 0;
}

/* ---- from v2 -------------------------------- */

typedef struct codec_reader {
    brc_buf *out;
    const brc_json *dtype; /* the array's type ...                   */
    brc_zarr2_type *array; /* ... its parts ...                      */
    char order;            /* ... and the order of the output of the filters so far */
    uint64_t size;
    int is_bytes;     /* elements have become bytes */
    int is_numbers;   /* objects are numbers now */
    char pointer[32]; /* "/filters/1"        */
} codec_reader;

static int bad_filter(const codec_reader *r, int code, brc_error *err, const char *id,
                      const char *what)
{
    return brc_fail(err, code, "%s: \"%.60s\" %s", r->pointer, id, what);
}

static int begin_codec(codec_reader *r, const char *prefix, const char *name, brc_error *err)
{
    if (r->out->data[r->out->len - 1] != '[')
        BRC_TRY(brc_buf_byte(r->out, ',', err));
    BRC_TRY(brc_buf_printf(r->out, err, "{\"name\":"));
    brc_buf full = BRC_BUF_INIT;
    int rc = brc_buf_printf(&full, err, "%s%s", prefix, name);
    if (rc == BRC_OK)
        rc = brc_json_quote(r->out, (const char *)full.data, full.len, err);
    brc_buf_dispose(&full);
    return rc;
}

/* Copies all members except the id as the configuration; zarr-python wants the configuration even
 * if it is empty. */
static int copy_configuration(codec_reader *r, const brc_json *item, brc_error *err)
{
    int n = 0;
    BRC_TRY(brc_buf_text(r->out, ",\"configuration\":{", err));
    for (const brc_json *m = brc_json_first(item); m; m = brc_json_next(m)) {
        const char *name = brc_json_name(m);
        if (strcmp(name, "id") == 0)
            continue;
        BRC_TRY(brc_buf_text(r->out, n++ ? "," : "", err));
        BRC_TRY(brc_json_quote(r->out, name, strlen(name), err));
        BRC_TRY(brc_buf_byte(r->out, ':', err));
        BRC_TRY(brc_json_write(r->out, m, 0, err));
    }
    return brc_buf_text(r->out, "}}", err);
}

/* Adds "bytes", where elements become bytes. */
static int pass_the_point(codec_reader *r, brc_error *err)
{
    r->is_bytes = 1;
    BRC_TRY(begin_codec(r, "", "bytes", err));
    if (r->order == '|')
        return brc_buf_byte(r->out, '}', err);
    return brc_buf_printf(r->out, err, ",\"configuration\":{\"endian\":\"%s\"}}",
                          r->order == '>' ? "big" : "little");
}

/* Returns an integer of a compressor that matters only for writing, as a value that v3 accepts. */
static int64_t setting(const brc_json *item, const char *name, int64_t otherwise, int64_t min,
                       int64_t max)
{
    int64_t value;
    if (!brc_json_int(brc_json_member(item, name), INT64_MIN, INT64_MAX, &value))
        return otherwise;
    return value < min ? min : value > max ? max : value;
}

static int read_blosc(codec_reader *r, const brc_json *item, brc_error *err)
{
    static const char *const shuffles[] = { "noshuffle", "shuffle", "bitshuffle" };
    uint64_t size = r->size > 0 && r->size <= 255 ? r->size : 1;
    const brc_json *cname = brc_json_member(item, "cname");
    const char *name = "lz4";
    int64_t shuffle = setting(item, "shuffle", 1, -1, 3);

    if ((cname && !brc_json_text(cname, &name)) || shuffle == 3)
        return bad_filter(r, BRC_EINVAL, err, "blosc", "has an unknown cname or shuffle");
    if (shuffle == -1)
        shuffle = r->size == 1 ? 2 : 1;
    size = (uint64_t)setting(item, "typesize", (int64_t)size, 1, 255);
    BRC_TRY(begin_codec(r, "", "blosc", err));
    BRC_TRY(brc_buf_text(r->out, ",\"configuration\":{\"cname\":", err));
    BRC_TRY(brc_json_quote(r->out, name, strlen(name), err));
    return brc_buf_printf(
        r->out, err, ",\"clevel\":%d,\"shuffle\":\"%s\",\"typesize\":%llu,\"blocksize\":%lld}}",
        (int)setting(item, "clevel", 5, 0, 9), shuffles[shuffle], (unsigned long long)size,
        (long long)setting(item, "blocksize", 0, 0, INT32_MAX));
}

/* Reads the codecs that v3 has under another name and configuration. */
static int read_core(codec_reader *r, const char *id, const brc_json *item, int *is_core,
                     brc_error *err)
{
    const brc_json *location = brc_json_member(item, "location");
    int checksum = 0;

    *is_core = 1;
    if (strcmp(id, "blosc") == 0)
        return read_blosc(r, item, err);
    if (strcmp(id, "gzip") == 0) {
        int64_t level = setting(item, "level", 1, -1, 9);
        BRC_TRY(begin_codec(r, "", id, err));
        return brc_buf_printf(r->out, err, ",\"configuration\":{\"level\":%d}}",
                              level < 0 ? 6 : (int)level);
    }
    if (strcmp(id, "zstd") == 0) {
        (void)brc_json_bool(brc_json_member(item, "checksum"), &checksum);
        BRC_TRY(begin_codec(r, "", id, err));
        return brc_buf_printf(r->out, err, ",\"configuration\":{\"level\":%d%s}}",
                              (int)setting(item, "level", 0, -131072, 22),
                              checksum ? ",\"checksum\":true" : "");
    }
    if (strcmp(id, "imagecodecs_lzf") == 0) {
        BRC_TRY(begin_codec(r, "", id, err));
        return copy_configuration(r, item, err);
    }
    if (strcmp(id, "crc32c") == 0 && (!location || brc_json_is(location, "end"))) {
        BRC_TRY(begin_codec(r, "", id, err));
        return brc_buf_byte(r->out, '}', err);
    }
    *is_core = 0;
    return BRC_OK;
}

static int read_on_bytes(codec_reader *r, const char *id, const brc_json *item, brc_error *err)
{
    int is_core;
    if (!r->is_bytes)
        BRC_TRY(pass_the_point(r, err));
    BRC_TRY(read_core(r, id, item, &is_core, err));
    if (is_core)
        return BRC_OK;
    BRC_TRY(begin_codec(r, "numcodecs.", id, err));
    return copy_configuration(r, item, err);
}

/* Reads a member that names a data type; leaves *type alone if there is none. */
static int read_filter_type(const codec_reader *r, const brc_json *item, const char *member,
                            brc_zarr2_type *type, brc_error *err)
{
    const brc_json *name = brc_json_member(item, member);
    if (!name || brc_json_kind(name) == BRC_JSON_NULL)
        return BRC_OK;
    int rc = brc_zarr2_type_of_filter(type, name, err);
    if (rc < 0) {
        brc_context(err, "%s/%s", r->pointer, member);
        return rc;
    }
    brc_buf_dispose(&type->json);
    return BRC_OK;
}

/* Reads a filter on elements. Its input must have the type that the filter was made for, otherwise
 * its bytes mean something else; its output is the input of the next one. */
static int read_on_elements(codec_reader *r, const char *id, const brc_json *item, brc_error *err)
{
    int is_astype = strcmp(id, "astype") == 0;
    brc_zarr2_type in = { BRC_BUF_INIT, 0, r->order, r->size, 0 }, out;

    if (r->is_bytes)
        return bad_filter(r, BRC_EUNSUPPORTED, err, id,
                          "works on elements and comes after a filter that works on bytes, which "
                          "Zarr v3 cannot express");
    BRC_TRY(read_filter_type(r, item, is_astype ? "decode_dtype" : "dtype", &in, err));
    if (in.size != r->size || (in.order != r->order && in.order != '|' && r->order != '|'))
        return bad_filter(r, BRC_EUNSUPPORTED, err, id,
                          "is for elements of another size or byte order");
    out = in;
    BRC_TRY(read_filter_type(r, item, is_astype ? "encode_dtype" : "astype", &out, err));
    if (strcmp(id, "packbits") == 0) {
        out.size = 1;
        out.order = '|';
    }
    r->size = out.size;
    r->order = out.order;
    BRC_TRY(begin_codec(r, "numcodecs.", id, err));
    return copy_configuration(r, item, err);
}

static int read_on_objects(codec_reader *r, const char *id, brc_error *err)
{
    if (r->array->kind != 'O' || r->is_bytes)
        return bad_filter(r, BRC_EUNSUPPORTED, err, id, "is for an array of objects");
    r->is_bytes = 1;
    r->size = 1;
    BRC_TRY(brc_buf_text(&r->array->json, strcmp(id, "vlen-utf8") == 0 ? "\"string\"" : "\"bytes\"",
                         err));
    BRC_TRY(begin_codec(r, "", id, err));
    return brc_buf_byte(r->out, '}', err);
}

/* Reads "categorize", which turns the texts of any array into numbers. */
static int read_on_texts(codec_reader *r, const char *id, const brc_json *item, brc_error *err)
{
    brc_zarr2_type out = { BRC_BUF_INIT, 'u', '|', 1, 0 };

    if (r->is_bytes || r->is_numbers || (r->array->kind != 'O' && r->array->kind != 'U'))
        return bad_filter(r, BRC_EUNSUPPORTED, err, id, "is for an array of texts");
    BRC_TRY(read_filter_type(r, item, "astype", &out, err));
    if (r->array->kind == 'O')
        BRC_TRY(brc_buf_text(&r->array->json, "\"string\"", err));
    r->is_numbers = 1;
    r->size = out.size;
    r->order = out.order;
    BRC_TRY(begin_codec(r, "numcodecs.", id, err));
    return copy_configuration(r, item, err);
}

/* Keeps an array of objects in a form that is not read: pickle is code, and the other forms do not
 * give an array of one type. The array is kept because this build lacks a codec of that name. */
static int read_unreadable(codec_reader *r, const char *id, const brc_json *item, brc_error *err)
{
    if (filter_works(id) == MAYBE_TEXTS)
        r->is_bytes = 1;
    if (r->array->kind == 'O') {
        r->is_bytes = 1;
        BRC_TRY(brc_zarr2_type_opaque(r->array, r->dtype, err));
    }
    r->size = 1;
    r->order = '|';
    BRC_TRY(begin_codec(r, "numcodecs.", id, err));
    return copy_configuration(r, item, err);
}

/* Takes the objects of a filter that stores any, for texts. */
static int read_as_texts(codec_reader *r, const char *id, const brc_json *item, brc_error *err)
{
    r->is_bytes = 1;
    r->size = 1;
    r->order = '|';
    BRC_TRY(brc_buf_text(&r->array->json, "\"string\"", err));
    BRC_TRY(begin_codec(r, "numcodecs.", id, err));
    return copy_configuration(r, item, err);
}

static int read_filter(codec_reader *r, const brc_json *item, brc_error *err)
{
    const brc_json *member = brc_json_member(item, "id");
    const char *id;

    if (!brc_json_text(member, &id) || !*id)
        return brc_fail(err, BRC_EINVAL,
                        "%s: must be an object with the member \"id\", a name without U+0000",
                        r->pointer);
    int works = filter_works(id);
    if (works == MAYBE_TEXTS && r->array->texts && r->array->kind == 'O' && !r->is_bytes)
        return read_as_texts(r, id, item, err);
    if (works == UNREADABLE || works == MAYBE_TEXTS)
        return read_unreadable(r, id, item, err);
    if (works == ON_OBJECTS)
        return read_on_objects(r, id, err);
    if (works == ON_TEXTS)
        return read_on_texts(r, id, item, err);
    if (r->array->kind == 'O' && !r->is_bytes && !r->is_numbers)
        return bad_filter(r, BRC_EINVAL, err, id,
                          "comes before the filter that turns objects into bytes");
    if (works == ON_ELEMENTS)
        return read_on_elements(r, id, item, err);
    if (works != INTO_BYTES)
        return read_on_bytes(r, id, item, err);
    if (r->is_bytes)
        return bad_filter(r, BRC_EUNSUPPORTED, err, id, "comes after elements have become bytes");
    r->is_bytes = 1;
    r->size = 1;
    BRC_TRY(begin_codec(r, "numcodecs.", id, err));
    return copy_configuration(r, item, err);
}

static int read_order(codec_reader *r, const brc_json *order, size_t ndim, brc_error *err)
{
    int is_c = brc_json_is(order, "C");
    if (!is_c && !brc_json_is(order, "F"))
        return brc_fail(err, BRC_EINVAL, "/order: must be \"C\" or \"F\"");
    if (is_c || ndim < 2)
        return BRC_OK;
    BRC_TRY(begin_codec(r, "", "transpose", err));
    BRC_TRY(brc_buf_text(r->out, ",\"configuration\":{\"order\":[", err));
    for (size_t i = ndim; i-- > 0;)
        BRC_TRY(brc_buf_printf(r->out, err, "%zu%s", i, i > 0 ? "," : "]}}"));
    return BRC_OK;
}

/* Appends v3's codec list for a .zarray's order, filters and compressor, and gives `type` its json
 * if it is an object. */
static int zarr2_codecs_read(brc_buf *out, brc_zarr2_type *type, const brc_json *zarray,
                             size_t ndim, brc_error *err)
{
    codec_reader r = {
        out, brc_json_member(zarray, "dtype"), type, type->order, type->size, 0, 0, ""
    };
    const brc_json *filters = brc_json_member(zarray, "filters");
    const brc_json *compressor = brc_json_member(zarray, "compressor");
    size_t i = 0;

    BRC_TRY(brc_buf_byte(out, '[', err));
    BRC_TRY(read_order(&r, brc_json_member(zarray, "order"), ndim, err));
    if (filters && brc_json_kind(filters) != BRC_JSON_NULL &&
        brc_json_kind(filters) != BRC_JSON_ARRAY)
        return brc_fail(err, BRC_EINVAL, "/filters: must be null or a list");
    for (const brc_json *f = brc_json_first(filters); f; f = brc_json_next(f)) {
        brc_buf pointer = BRC_FIXED_BUF((uint8_t *)r.pointer, sizeof(r.pointer));
        BRC_TRY(brc_buf_printf(&pointer, err, "/filters/%zu", i++));
        BRC_TRY(read_filter(&r, f, err));
    }
    memcpy(r.pointer, "/compressor", sizeof("/compressor"));
    if (compressor && brc_json_kind(compressor) != BRC_JSON_NULL)
        BRC_TRY(read_filter(&r, compressor, err));
    if (type->kind == 'O' && !r.is_bytes && !r.is_numbers)
        return brc_fail(err, BRC_EINVAL,
                        "/filters: an array of objects needs a filter that turns them into bytes");
    if (!r.is_bytes)
        BRC_TRY(pass_the_point(&r, err));
    return brc_buf_byte(out, ']', err);
}

/* ---- to v2 -------------------------------- */

static int no_v2_codec(brc_error *err, size_t i, const char *name)
{
    return brc_fail(err, BRC_EUNSUPPORTED, "/codecs/%zu: Zarr v2 has no form for \"%.60s\"", i,
                    name);
}

/* Writes a transpose at the front: *f is 1 if it reverses the axes. */
static int write_order(const brc_named *codec, size_t ndim, int *f, brc_error *err)
{
    const brc_json *order = brc_json_member(codec->config, "order");
    int is_list = brc_json_kind(order) == BRC_JSON_ARRAY;
    size_t i = 0, kept = 0, reversed = 0;
    uint64_t axis;

    for (const brc_json *v = brc_json_first(order); v; v = brc_json_next(v), i++)
        if (brc_json_uint(v, ndim, &axis)) {
            kept += axis == i;
            reversed += axis == ndim - 1 - i;
        }
    *f = is_list ? reversed == ndim && kept != ndim : brc_json_is(order, "F");
    if (!*f && !brc_json_is(order, "C") && kept != ndim)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "/codecs/0: Zarr v2 has no form for a transpose that does not reverse all "
                        "axes");
    return BRC_OK;
}

/* Writes a type that does not state its order: "f4", or v3's name. */
static int write_plain_type(brc_buf *out, const brc_json *name, char order, brc_error *err)
{
    const char *text;
    brc_zarr2_type type;

    BRC_TRY(brc_zarr2_type_of_filter(&type, name, err));
    int is_v3 = type.json.len == 0;
    brc_buf_dispose(&type.json);
    if (is_v3 || !brc_json_text(name, &text))
        return brc_zarr2_type_write(out, name, order, err);
    return brc_buf_printf(out, err, "\"%c%s\"", type.order == '|' ? '|' : order,
                          text + (*text == '='));
}

static int write_config_member(brc_buf *out, const brc_json *m, char order, brc_error *err)
{
    const char *name = brc_json_name(m), *text;
    BRC_TRY(brc_buf_byte(out, ',', err));
    BRC_TRY(brc_json_quote(out, name, strlen(name), err));
    BRC_TRY(brc_buf_byte(out, ':', err));
    int is_type = strcmp(name, "dtype") == 0 || strcmp(name, "astype") == 0 ||
                  strcmp(name, "encode_dtype") == 0 || strcmp(name, "decode_dtype") == 0;
    if (!is_type || !brc_json_text(m, &text) || *text == '|')
        return brc_json_write(out, m, 0, err);
    if (*text != '<' && *text != '>')
        return write_plain_type(out, m, order, err);
    size_t at = out->len + 1; /* after the quote */
    BRC_TRY(brc_json_write(out, m, 0, err));
    out->data[at] = (uint8_t)order; /* the elements have the same order for all filters */
    return BRC_OK;
}

static int write_blosc(brc_buf *out, const brc_named *codec, brc_error *err)
{
    const brc_json *shuffle = brc_json_member(codec->config, "shuffle");
    const char *cname;
    int number = !shuffle || brc_json_is(shuffle, "noshuffle") ? 0
                 : brc_json_is(shuffle, "shuffle")             ? 1
                                                               : 2;
    if (!brc_json_text(brc_json_member(codec->config, "cname"), &cname))
        cname = "lz4";
    BRC_TRY(brc_buf_text(out, "{\"id\":\"blosc\",\"cname\":", err));
    BRC_TRY(brc_json_quote(out, cname, strlen(cname), err));
    return brc_buf_printf(out, err, ",\"clevel\":%d,\"shuffle\":%d,\"blocksize\":%lld}",
                          (int)setting(codec->config, "clevel", 5, 0, 9), number,
                          (long long)setting(codec->config, "blocksize", 0, 0, INT32_MAX));
}

/* Tells whether a codec that v2 has under the same name, but not for all types, fits this type. */
static int fits_type(const char *codec, const char *type)
{
    if (strcmp(codec, "bitround") == 0)
        return strcmp(type, "float16") == 0 || strcmp(type, "float32") == 0 ||
               strcmp(type, "float64") == 0;
    if (strcmp(codec, "vlen-utf8") == 0)
        return strcmp(type, "string") == 0;
    return strcmp(codec, "vlen-bytes") != 0 || strcmp(type, "string") != 0;
}

/* Tells whether the member has its default and is not known to all readers of the format. */
static int is_new_default(const char *codec, const brc_json *m)
{
    int checksum = 1;
    return strcmp(codec, "zstd") == 0 && strcmp(brc_json_name(m), "checksum") == 0 &&
           brc_json_bool(m, &checksum) && !checksum;
}

/* Writes one codec as a filter: {"id": ..., and its configuration}. */
static int write_filter(brc_buf *out, size_t i, const brc_named *codec, const char *type,
                        char order, brc_error *err)
{
    static const char *const core[] = { "blosc",     "gzip",       "zstd",
                                        "crc32c",    "bitround",   "vlen-utf8",
                                        "vlen-bytes", "imagecodecs_lzf" };
    static const char prefix[] = "numcodecs.";
    size_t n = sizeof(prefix) - 1, k = 0;
    const char *id = codec->name;

    if (strcmp(id, "blosc") == 0)
        return write_blosc(out, codec, err);
    while (k < sizeof(core) / sizeof(core[0]) && strcmp(core[k], id) != 0)
        k++;
    if (k == sizeof(core) / sizeof(core[0])) {
        if (strncmp(id, prefix, n) != 0)
            return no_v2_codec(err, i, id);
        id += n;
    }
    if (!fits_type(codec->name, type))
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "/codecs/%zu: Zarr v2 has no form for \"%s\" on %.60s", i, id, type);
    BRC_TRY(brc_buf_text(out, "{\"id\":", err));
    BRC_TRY(brc_json_quote(out, id, strlen(id), err));
    for (const brc_json *m = brc_json_first(codec->config); m; m = brc_json_next(m))
        if (!is_new_default(codec->name, m))
            BRC_TRY(write_config_member(out, m, order, err));
    return brc_buf_byte(out, '}', err);
}

/* Finds the byte order in "bytes", wherever that stands. */
static int find_order(char *order, const brc_json *codecs, brc_error *err)
{
    brc_named codec;
    *order = '<';
    for (const brc_json *v = brc_json_first(codecs); v; v = brc_json_next(v)) {
        BRC_TRY(brc_named_read(&codec, v, err));
        if (brc_json_is(brc_json_member(codec.config, "endian"), "big") &&
            (strcmp(codec.name, "bytes") == 0 || strcmp(codec.name, "endian") == 0))
            *order = '>';
    }
    return BRC_OK;
}

/* Tells whether the codec works on bytes and could be v2's compressor. */
static int is_on_bytes(const char *name)
{
    static const char *const core[] = { "blosc", "gzip", "zstd", "crc32c" };
    for (size_t i = 0; i < sizeof(core) / sizeof(core[0]); i++)
        if (strcmp(name, core[i]) == 0)
            return 1;
    if (strncmp(name, "numcodecs.", 10) != 0)
        return 0;
    int works = filter_works(name + 10);
    return works == 0 || works == INTO_BYTES;
}

/* Appends the members "order", "filters" and "compressor" for the codecs of a document of v3, and
 * returns the byte order of the elements: '<' if none is stated. */
static int zarr2_codecs_write(brc_buf *out, char *order, const brc_json *doc, brc_error *err)
{
    const brc_json *codecs = brc_json_member(doc, "codecs");
    size_t ndim = brc_json_count(brc_json_member(doc, "shape"));
    brc_buf filters = BRC_BUF_INIT;
    brc_named codec, type;
    size_t i = 0;
    int f = 0, rc;

    BRC_GO(brc_named_read(&type, brc_json_member(doc, "data_type"), err));
    BRC_GO(find_order(order, codecs, err));
    const brc_json *v = brc_json_first(codecs);
    BRC_GO(brc_named_read(&codec, v, err));
    if (strcmp(codec.name, "transpose") == 0) {
        BRC_GO(write_order(&codec, ndim, &f, err));
        v = brc_json_next(v);
        i++;
    }
    const brc_json *compressor = NULL;
    for (; v; v = brc_json_next(v), i++) {
        BRC_GO(brc_named_read(&codec, v, err));
        if (strcmp(codec.name, "bytes") == 0 || strcmp(codec.name, "endian") == 0)
            continue;
        if (!brc_json_next(v) && is_on_bytes(codec.name)) {
            compressor = v;
            break;
        }
        BRC_GO(brc_buf_byte(&filters, filters.len ? ',' : '[', err));
        BRC_GO(write_filter(&filters, i, &codec, type.name, *order, err));
    }
    BRC_GO(brc_buf_printf(out, err, "\"order\":\"%c\",\"filters\":", f ? 'F' : 'C'));
    if (filters.len > 0)
        BRC_GO(brc_buf_append(out, filters.data, filters.len, err));
    BRC_GO(brc_buf_text(out, filters.len ? "],\"compressor\":" : "null,\"compressor\":", err));
    rc = compressor ? write_filter(out, i, &codec, type.name, *order, err)
                    : brc_buf_text(out, "null", err);
done:
    brc_buf_dispose(&filters);
    return rc;
}
