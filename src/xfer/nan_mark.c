/* See nan_mark.h. */
#include "nan_mark.h"

#include <math.h>
#include <string.h>

#include "../nd/bytes_json.h"

/* Every value below the attributes that is neither a list nor an object. */
typedef struct places {
    brc_buf pointer;
    void *ctx;
    int (*each)(void *ctx, const char *pointer, brc_json *value, brc_error *err);
} places;

static int walk_places(places *w, const brc_json *value, brc_error *err)
{
    const int kind = brc_json_kind(value);
    const size_t len = w->pointer.len;
    size_t i = 0;
    if (kind != BRC_JSON_OBJECT && kind != BRC_JSON_ARRAY) {
        BRC_TRY(brc_buf_terminate(&w->pointer, err));
        /* the document is the caller's to change */
        return w->each(w->ctx, (const char *)w->pointer.data, (brc_json *)(uintptr_t)value, err);
    }
    for (const brc_json *v = brc_json_first(value); v; v = brc_json_next(v), i++) {
        if (kind == BRC_JSON_OBJECT)
            BRC_TRY(brc_json_pointer_step(&w->pointer, brc_json_own_name(v), err));
        else
            BRC_TRY(brc_buf_printf(&w->pointer, err, "/%zu", i));
        BRC_TRY(walk_places(w, v, err));
        w->pointer.len = len;
    }
    return BRC_OK;
}

static int each_place(const brc_json *attrs, void *ctx,
                      int (*each)(void *, const char *, brc_json *, brc_error *), brc_error *err)
{
    places w = { BRC_BUF_INIT, ctx, each };
    int rc = walk_places(&w, attrs, err);
    brc_buf_dispose(&w.pointer);
    return rc;
}

/* ---- what stands for a number -------------------------------- */

/* xarray's form of a _FillValue: base64 of a little-endian double. */
static int packed_number(brc_buf *out, const char *literal, brc_error *err)
{
    double value = literal[0] == 'N' ? NAN : literal[0] == '-' ? -INFINITY : INFINITY;
    uint64_t bits;
    uint8_t le[8];
    memcpy(&bits, &value, sizeof(bits));
    brc_put_u64le(le, bits);
    BRC_TRY(brc_base64_write(out, le, sizeof(le), err));
    return brc_buf_terminate(out, err);
}

static int is_float_array(const brc_json *doc)
{
    static const char *const floats[] = { "float16", "float32", "float64" };
    return brc_json_choice(brc_json_member(doc, "data_type"), floats, 3) >= 0;
}

/* *out: NULL if it is the number's name. */
static int stand_in(brc_json **out, const brc_json *doc, int version, const char *pointer,
                    const char *literal, brc_error *err)
{
    const int is_array = brc_json_is(brc_json_member(doc, "node_type"), "array");
    const int is_fill = is_array && strcmp(pointer, "/_FillValue") == 0;
    const int is_missing = is_array && strcmp(pointer, "/missing_value") == 0;
    brc_buf text = BRC_BUF_INIT;
    int rc = BRC_OK;
    *out = NULL;
    if (is_fill && version == 3 && is_float_array(doc)) {
        rc = packed_number(&text, literal, err);
        *out = rc == BRC_OK ? brc_json_new_string((const char *)text.data) : NULL;
        brc_buf_dispose(&text);
    } else if (literal[0] == 'N' && (is_missing || (is_fill && version == 2))) {
        *out = brc_json_new_null();
    } else {
        return BRC_OK;
    }
    return *out || rc < 0 ? rc : brc_nomem(err);
}

/* Whether the value is one that stand_in() gives for the number, or its name. */
static int is_stand_in(int *is, const brc_json *value, const char *pointer, const char *literal,
                       brc_error *err)
{
    const int is_fill = strcmp(pointer, "/_FillValue") == 0;
    brc_buf text = BRC_BUF_INIT;
    *is = brc_json_is(value, literal);
    if (literal[0] == 'N' && (is_fill || strcmp(pointer, "/missing_value") == 0))
        *is |= brc_json_kind(value) == BRC_JSON_NULL;
    if (*is || !is_fill)
        return BRC_OK;
    int rc = packed_number(&text, literal, err);
    if (rc == BRC_OK)
        *is = brc_json_is(value, (const char *)text.data);
    brc_buf_dispose(&text);
    return rc;
}

/* ---- out -------------------------------- */

typedef struct marking {
    const brc_json *doc;
    int version;
    brc_json *numbers;
} marking;

static int mark_place(void *ctx, const char *pointer, brc_json *value, brc_error *err)
{
    marking *m = ctx;
    brc_json *other;
    if (!brc_json_is_nan(value))
        return BRC_OK;
    BRC_TRY(brc_json_add(m->numbers, pointer, brc_json_new_string(brc_json_literal(value)), err));
    BRC_TRY(stand_in(&other, m->doc, m->version, pointer, brc_json_literal(value), err));
    if (other)
        return brc_json_replace(value, other, err);
    brc_json_nan_to_text(value);
    return BRC_OK;
}

/* The attribute that says what stands for what; `numbers` is consumed. */
static int put_numbers_mark(brc_json *attrs, brc_json *numbers, brc_error *err)
{
    const brc_json *there = brc_json_member(attrs, BRC_NUMBERS_MARK);
    brc_json *mark = brc_json_new_object(), *own = NULL;
    brc_buf text = BRC_BUF_INIT;
    int rc = brc_json_add(mark, "numbers", numbers, err);
    if (rc == BRC_OK && there)
        rc = brc_json_clone(&own, there, err);
    if (rc == BRC_OK && there)
        rc = brc_json_add(mark, "own", own, err);
    if (rc < 0)
        goto done;
    BRC_GO(brc_json_write(&text, mark, err));
    BRC_GO(brc_buf_terminate(&text, err));
    rc = brc_json_set(attrs, BRC_NUMBERS_MARK, brc_json_new_string((const char *)text.data), err);
done:
    brc_buf_dispose(&text);
    brc_json_free(mark);
    return rc;
}

int brc_nan_mark(brc_nan_out *out, brc_json *doc, const char *path, brc_error *err)
{
    brc_json *attrs = (brc_json *)(uintptr_t)brc_json_member(doc, "attributes");
    marking m = { doc, out->version, NULL };
    if (brc_json_kind(attrs) != BRC_JSON_OBJECT)
        return BRC_OK;
    m.numbers = brc_json_new_object();
    int rc = m.numbers ? BRC_OK : brc_nomem(err);
    if (rc == BRC_OK && !out->tokens)
        rc = each_place(attrs, &m, mark_place, err);
    const int any = rc == BRC_OK && brc_json_first(m.numbers) != NULL;
    if (any)
        rc = brc_first_names_add(&out->nodes, path, err);
    if (rc < 0 || (!any && !brc_json_member(attrs, BRC_NUMBERS_MARK))) {
        brc_json_free(m.numbers);
        return rc;
    }
    return put_numbers_mark(attrs, m.numbers, err);
}

int brc_nan_warn(const brc_nan_out *out, brc_buf *warnings, brc_error *err)
{
    if (out->nodes.n == 0 || !warnings)
        return BRC_OK;
    BRC_TRY(brc_first_names_write(&out->nodes, warnings, err));
    BRC_TRY(brc_buf_text(warnings,
                         ": attributes that are NaN or infinite are written as marked texts, "
                         "because JSON has no such numbers; an import makes numbers of them again, "
                         "and zarr-python and xarray read numbers where you export with "
                         "--nan-tokens\n",
                         err));
    return brc_buf_terminate(warnings, err);
}

void brc_nan_out_dispose(brc_nan_out *out)
{
    brc_first_names_dispose(&out->nodes);
}

/* ---- in -------------------------------- */

/* *out: what the attribute says, if it is a mark. */
static int read_numbers_mark(brc_json **out, const brc_json *attribute, brc_error *err)
{
    static const char *const members[] = { "numbers", "own" };
    static const char *const literals[] = { "NaN", "Infinity", "-Infinity" };
    brc_error why = BRC_ERROR_INIT;
    const char *text;
    *out = NULL;
    if (!brc_json_text(attribute, &text))
        return BRC_OK;
    int rc = brc_json_parse_nan(out, text, strlen(text), &why);
    if (rc < 0)
        return rc == BRC_ENOMEM ? brc_nomem(err) : BRC_OK;
    const brc_json *numbers = brc_json_member(*out, "numbers");
    int is = brc_json_kind(numbers) == BRC_JSON_OBJECT &&
             brc_json_allow(*out, members, 2, NULL) == BRC_OK;
    for (const brc_json *v = brc_json_first(numbers); v && is; v = brc_json_next(v))
        is = brc_json_choice(v, literals, 3) >= 0;
    if (!is) {
        brc_json_free(*out);
        *out = NULL;
    }
    return BRC_OK;
}

static int restore_place(void *ctx, const char *pointer, brc_json *value, brc_error *err)
{
    const brc_json *number = brc_json_index_find(ctx, pointer);
    const char *literal;
    int is;
    if (!brc_json_text(number, &literal))
        return BRC_OK;
    BRC_TRY(is_stand_in(&is, value, pointer, literal, err));
    return is ? brc_json_replace(value, brc_json_new_number(literal), err) : BRC_OK;
}

int brc_nan_restore(brc_json *doc, brc_error *err)
{
    brc_json *attrs = (brc_json *)(uintptr_t)brc_json_member(doc, "attributes"), *mark, *own = NULL;
    brc_json_index index = { NULL, 0 };
    int rc;
    BRC_TRY(read_numbers_mark(&mark, brc_json_member(attrs, BRC_NUMBERS_MARK), err));
    if (!mark)
        return BRC_OK;
    const brc_json *was = brc_json_member(mark, "own");
    if (was)
        BRC_GO(brc_json_clone(&own, was, err));
    if (own)
        BRC_GO(brc_json_set(attrs, BRC_NUMBERS_MARK, own, err));
    else
        brc_json_remove(attrs, BRC_NUMBERS_MARK);
    BRC_GO(brc_json_index_make(&index, brc_json_member(mark, "numbers"), err));
    rc = each_place(attrs, &index, restore_place, err);
done:
    brc_json_index_dispose(&index);
    brc_json_free(mark);
    return rc;
}
