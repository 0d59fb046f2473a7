/* Documents of imports and exports: other chunks and codecs, numbers that JSON lacks, and
 * consolidated metadata. */
#include "documents.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/node_path.h"
#include "../nd/dtype_text.h"
#include "../work/session.h"
#include "../zarr/doc/meta.h"
#include "../zarr/transfer.h"
#include "xfer.h"

/* ==== array doc ================================ */

static int put_parsed(brc_json *doc, const char *member, const char *text, size_t len,
                      brc_error *err)
{
    brc_json *value;
    int rc = brc_json_parse(&value, text, len, 0, err);
    if (rc < 0) {
        brc_context(err, "%s", member);
        return rc;
    }
    return brc_json_set(doc, member, value, err);
}

/* Sets the codecs of a new array of this type. */
static int put_default_codecs(brc_json *doc, brc_session *s, brc_error *err)
{
    const brc_json *name = brc_json_member(doc, "data_type");
    brc_dtype *type = NULL;
    brc_buf text = BRC_BUF_INIT, dtype = BRC_BUF_INIT;
    int rc;

    BRC_GO(brc_dtype_open(&type, brc_session_registry(s), name, NULL, err));
    BRC_GO(brc_json_write(&dtype, name, 0, err));
    BRC_GO(brc_buf_terminate(&dtype, err));
    BRC_GO(brc_session_default_codecs(&text, s, (const char *)dtype.data, err));
    if (text.len == 0)
        BRC_GO(brc_meta_default_codecs(&text, type, err));
    rc = put_parsed(doc, "codecs", (const char *)text.data, text.len, err);
done:
    brc_dtype_free(type);
    brc_buf_dispose(&dtype);
    brc_buf_dispose(&text);
    return rc;
}

/* Completes the document, as that of a new array. */
static int complete_fresh(brc_json *doc, const brc_registry *reg, brc_error *err)
{
    brc_meta meta;
    BRC_TRY(brc_meta_open(&meta, reg, doc, err));
    int rc = brc_meta_must_encode(&meta, err);
    if (rc == BRC_OK)
        rc = brc_meta_set_codecs(doc, &meta, meta.codecs_json, 1, err);
    brc_meta_dispose(&meta);
    return rc;
}

static int change_document(brc_json *doc, brc_session *s, const char *path,
                           const brc_xfer_opts *opts, int fresh, brc_error *err)
{
    size_t ndim = brc_json_count(brc_json_member(doc, "shape"));
    if (opts->chunk && (opts->nchunk < 0 || (size_t)opts->nchunk != ndim))
        return brc_fail(err, BRC_EINVAL, "%s has %zu axes, the chunk shape %d", path, ndim,
                        opts->nchunk);
    if (opts->chunk)
        BRC_TRY(brc_meta_set_chunks(doc, opts->nchunk, opts->chunk, err));
    if (opts->codecs_json)
        BRC_TRY(put_parsed(doc, "codecs", opts->codecs_json, strlen(opts->codecs_json), err));
    else if (fresh)
        BRC_TRY(put_default_codecs(doc, s, err));
    return fresh ? complete_fresh(doc, brc_session_registry(s), err) : BRC_OK;
}

/* Checks that chunks can be decoded as they are and encoded as they will be, before a node is
 * made. */
static int check_recoding(const brc_json *doc, const brc_json *changed, const brc_registry *reg,
                          brc_error *err)
{
    brc_meta from, to = { 0 };
    int rc;
    BRC_TRY(brc_meta_open(&from, reg, doc, err));
    BRC_GO(brc_meta_must_decode(&from, err));
    BRC_GO(brc_meta_open(&to, reg, changed, err));
    BRC_GO(brc_meta_must_encode(&to, err));
done:
    brc_meta_dispose(&to);
    brc_meta_dispose(&from);
    return rc;
}

int brc_array_doc_changed(brc_json **out, brc_session *s, const brc_json *doc,
                          const char *path, const brc_xfer_opts *opts, int fresh, brc_error *err)
{
    *out = NULL;
    BRC_TRY(brc_json_clone(out, doc, err));
    int rc = change_document(*out, s, path, opts, fresh, err);
    if (rc == BRC_OK)
        rc = check_recoding(doc, *out, brc_session_registry(s), err);
    if (rc < 0) {
        brc_json_free(*out);
        *out = NULL;
    }
    return rc;
}

int brc_add_doc_bytes(uint64_t *sum, const brc_registry *reg, const brc_json *doc, brc_error *err)
{
    const brc_json *shape = brc_json_member(doc, "shape");
    uint64_t extent[BRC_MAX_NDIM];
    brc_dtype *type = NULL;
    size_t ndim = brc_json_count(shape), item = 1;

    if (ndim > BRC_MAX_NDIM)
        return BRC_OK;
    for (size_t i = 0; i < ndim; i++)
        if (!brc_json_uint(brc_json_item(shape, i), UINT64_MAX, &extent[i]))
            return BRC_OK;
    int rc = brc_dtype_open(&type, reg, brc_json_member(doc, "data_type"), NULL, err);
    if (rc == BRC_OK)
        item = type->item_size;
    brc_dtype_free(type);
    brc_add_array_bytes(sum, (int)ndim, extent, item);
    return rc == BRC_ENOMEM ? rc : BRC_OK;
}

/* ==== nan mark ================================ */

/* A walk over every value below the attributes that is neither a list nor an object. */
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
            BRC_TRY(brc_json_pointer_step(&w->pointer, brc_json_name(v), err));
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

/* ---- values in place of numbers -------------------------------- */

/* Makes xarray's form of a _FillValue: base64 of a little-endian double. */
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

/* Makes the value that stands for a number; *out is NULL if it is the number's name. */
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

/* Tells whether the value is the one that stand_in() makes for the number, or its name. */
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

/* Sets the attribute that lists the numbers; `numbers` is consumed. */
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
    BRC_GO(brc_json_write(&text, mark, 0, err));
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

/* Parses the attribute; *out is NULL unless it is a mark. */
static int read_numbers_mark(brc_json **out, const brc_json *attribute, brc_error *err)
{
    static const char *const members[] = { "numbers", "own" };
    static const char *const literals[] = { "NaN", "Infinity", "-Infinity" };
    brc_error why = BRC_ERROR_INIT;
    const char *text;
    *out = NULL;
    if (!brc_json_text(attribute, &text))
        return BRC_OK;
    int rc = brc_json_parse(out, text, strlen(text), BRC_JSON_NAN, &why);
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

/* ==== consolidated ================================ */

#define COPIES_MOST ((size_t)2 * BRC_JSON_MAX_VALUES) /* in groups within groups */

static brc_copied_node *nodes_of(const brc_consolidated *c)
{
    return c->nodes;
}

/* ---- reading -------------------------------- */

typedef struct copies_reader {
    brc_consolidated *into;
    int version;
    const char *base; /* the group's path */
    brc_import_notes *notes;
} copies_reader;

/* Tells whether nodes can have these names: refuses "zarr.json" and names that lead elsewhere. */
static int is_path_within(const char *path)
{
    if (strstr(path, BRC_JSON_NUL))
        return 0;
    for (const char *at = path;; at++) {
        size_t len = strcspn(at, "/");
        if (len == 0 || (len <= 2 && brc_name_is_dots(at, len)) ||
            (len == strlen("zarr.json") && strncmp(at, "zarr.json", len) == 0))
            return 0;
        at += len;
        if (*at == '\0')
            return 1;
    }
}

/* Adds the node at the path's first `len` bytes, under the group. */
static int add_copied(brc_copied_node **out, const copies_reader *r, const char *inner, size_t len,
                    brc_error *err)
{
    brc_consolidated *c = r->into;
    const size_t above = strlen(r->base), gap = above > 0 && len > 0;
    char *path = brc_arena_take(&c->arena, above + gap + len + 1);
    if (!path)
        return brc_nomem(err);
    memcpy(path, r->base, above + 1);
    if (gap)
        path[above] = '/';
    if (len > 0)
        memcpy(path + above + gap, inner, len);
    path[above + gap + len] = '\0';
    BRC_TRY(brc_grow_array(&c->nodes, &c->cap, c->n + 1, sizeof(**out), err));
    *out = &nodes_of(c)[c->n++];
    **out = (brc_copied_node){ .path = path };
    return BRC_OK;
}

static int read_copies(const copies_reader *r, const brc_json *copies, const char *above,
                       brc_error *err);

/* Reads a copy. A group's copy may contain copies itself. */
static int read_copy3(const copies_reader *r, const char *inner, const brc_json *copy,
                      brc_error *err)
{
    static const char *const types[] = { "array", "group" };
    const brc_json *more = brc_json_member(copy, "consolidated_metadata");
    brc_copied_node *node;
    if (brc_json_choice(brc_json_member(copy, "node_type"), types, 2) < 0 ||
        strcmp(brc_json_literal(brc_json_member(copy, "zarr_format")), "3") != 0)
        return brc_first_names_add(&r->notes->passed, inner, err);
    BRC_TRY(add_copied(&node, r, inner, strlen(inner), err));
    node->v3 = copy;
    return read_copies(r, brc_json_member(more, "metadata"), inner, err);
}

static int read_copy2(const copies_reader *r, const char *inner, const brc_json *copy,
                      brc_error *err)
{
    const char *slash = strrchr(inner, '/'), *file = slash ? slash + 1 : inner;
    const size_t len = slash ? (size_t)(slash - inner) : 0;
    const int is_array = strcmp(file, ".zarray") == 0, is_group = strcmp(file, ".zgroup") == 0;
    brc_copied_node *node;
    if (!is_array && !is_group && strcmp(file, ".zattrs") != 0)
        return brc_first_names_add(&r->notes->passed, inner, err);
    BRC_TRY(add_copied(&node, r, inner, len, err));
    *(is_array ? &node->zarray : is_group ? &node->zgroup : &node->zattrs) = copy;
    return BRC_OK;
}

static int read_copies(const copies_reader *r, const brc_json *copies, const char *above,
                       brc_error *err)
{
    for (const brc_json *v = brc_json_first(copies); v; v = brc_json_next(v)) {
        const char *name = brc_json_name(v);
        char *inner = NULL;
        int rc;
        if (!name)
            return BRC_OK; /* a list */
        if (*above)
            BRC_TRY(brc_node_join(&inner, above, name, err));
        const char *path = inner ? inner : name;
        if (!is_path_within(path) || brc_json_kind(v) != BRC_JSON_OBJECT)
            rc = brc_first_names_add(&r->notes->passed, path, err);
        else
            rc = r->version == 3 ? read_copy3(r, path, v, err) : read_copy2(r, path, v, err);
        free(inner);
        if (rc < 0)
            return rc;
    }
    return BRC_OK;
}

static int copies_order(const void *a, const void *b)
{
    return brc_path_order(((const brc_copied_node *)a)->path, ((const brc_copied_node *)b)->path);
}

/* Joins the parts of each node. */
static void join_parts(brc_consolidated *c)
{
    brc_copied_node *nodes = c->nodes;
    size_t n = 0;
    if (c->n > 1)
        qsort(nodes, c->n, sizeof(*nodes), copies_order);
    for (size_t i = 0; i < c->n; i++) {
        brc_copied_node *last = n > 0 ? &nodes[n - 1] : NULL;
        if (!last || strcmp(last->path, nodes[i].path) != 0) {
            nodes[n++] = nodes[i];
            continue;
        }
        last->v3 = last->v3 ? last->v3 : nodes[i].v3;
        last->zarray = last->zarray ? last->zarray : nodes[i].zarray;
        last->zgroup = last->zgroup ? last->zgroup : nodes[i].zgroup;
        last->zattrs = last->zattrs ? last->zattrs : nodes[i].zattrs;
    }
    c->n = n;
}

int brc_consolidated_unread(brc_import_notes *notes, const char *path, brc_error *err)
{
    return brc_first_names_add(&notes->unread, *path ? path : "/", err);
}

/* Notes a value of another form. zarr-python writes null if there are no copies. */
static int note_other_form(const brc_json *value, const char *path, brc_import_notes *notes,
                      brc_error *err)
{
    if (brc_json_kind(value) == BRC_JSON_NULL ||
        brc_json_kind(brc_json_member(value, "metadata")) == BRC_JSON_OBJECT)
        return BRC_OK;
    return brc_consolidated_unread(notes, path, err);
}

int brc_consolidated_push(brc_consolidated **chain, brc_json *value, int version, const char *path,
                          brc_import_notes *notes, brc_error *err)
{
    brc_consolidated *c;
    int rc = brc_new((void **)&c, sizeof(*c), err);
    if (rc < 0) {
        brc_json_free(value);
        return rc;
    }
    c->value = value;
    c->outer = *chain;
    *chain = c;
    const copies_reader r = { c, version, path, notes };
    rc = note_other_form(value, path, notes, err);
    if (rc == BRC_OK)
        rc = read_copies(&r, brc_json_member(value, "metadata"), "", err);
    c->total = c->n + (c->outer ? c->outer->total : 0);
    if (rc == BRC_OK && c->outer && c->total > COPIES_MOST)
        rc = brc_fail(err, BRC_ELIMIT,
                      "%.300s: groups within groups have more than %zu documents in their "
                      "consolidated metadata: import it in parts",
                      path, COPIES_MOST);
    if (rc < 0)
        brc_consolidated_pop(chain);
    else
        join_parts(c);
    return rc;
}

void brc_consolidated_pop(brc_consolidated **chain)
{
    brc_consolidated *c = *chain;
    if (!c)
        return;
    *chain = c->outer;
    brc_arena_dispose(&c->arena);
    brc_json_free(c->value);
    free(c->nodes);
    free(c);
}

/* ---- looking up -------------------------------- */

/* Returns the index of the first node that does not sort before the path. */
static size_t copy_place(const brc_consolidated *c, const char *path)
{
    size_t low = 0, high = c->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (brc_path_order(nodes_of(c)[mid].path, path) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

brc_copied_node *brc_consolidated_find(const brc_consolidated *chain, const char *path)
{
    for (const brc_consolidated *c = chain; c; c = c->outer) {
        size_t at = copy_place(c, path);
        if (at < c->n && strcmp(nodes_of(c)[at].path, path) == 0)
            return &nodes_of(c)[at];
    }
    return NULL;
}

/* Returns 1 if the node is in the folder or below. */
static int is_below(const char *path, const char *dir, size_t len)
{
    return *path && (len == 0 || (strncmp(path, dir, len) == 0 && path[len] == '/'));
}

/* Tells whether the first `len` bytes of `path` lead to a copy in an element of the chain before
 * `end`. */
static int is_in_inner(const brc_consolidated *chain, const brc_consolidated *end,
                       const char *path, size_t len, brc_buf *text, int *is, brc_error *err)
{
    *is = 0;
    if (chain == end)
        return BRC_OK;
    text->len = 0;
    BRC_TRY(brc_buf_append(text, path, len, err));
    BRC_TRY(brc_buf_terminate(text, err));
    const char *wanted = (const char *)text->data;
    for (const brc_consolidated *c = chain; c != end && !*is; c = c->outer) {
        size_t at = copy_place(c, wanted);
        *is = at < c->n && (strcmp(nodes_of(c)[at].path, wanted) == 0 ||
                            is_below(nodes_of(c)[at].path, wanted, len));
    }
    return BRC_OK;
}

typedef struct copies_walk {
    const brc_consolidated *chain;
    const char *dir;
    brc_buf text;
    int (*each)(void *ctx, const char *name, brc_error *err);
    void *ctx;
} copies_walk;

static int each_of_one(copies_walk *w, const brc_consolidated *c, brc_error *err)
{
    const size_t len = strlen(w->dir), skip = len + (len > 0);
    const char *last = NULL;
    size_t last_len = 0;
    for (size_t i = copy_place(c, w->dir); i < c->n; i++) {
        const char *path = nodes_of(c)[i].path;
        char *name;
        int known;
        if (strcmp(path, w->dir) == 0)
            continue;
        if (!is_below(path, w->dir, len))
            break;
        const size_t name_len = strcspn(path + skip, "/");
        if (last && name_len == last_len && memcmp(last, path + skip, name_len) == 0)
            continue;
        last = path + skip;
        last_len = name_len;
        BRC_TRY(is_in_inner(w->chain, c, path, skip + name_len, &w->text, &known, err));
        if (known)
            continue;
        BRC_TRY(brc_dup_n(&name, last, last_len, err));
        int rc = w->each(w->ctx, name, err);
        free(name);
        if (rc < 0)
            return rc;
    }
    return BRC_OK;
}

int brc_consolidated_each(const brc_consolidated *chain, const char *dir,
                          int (*each)(void *ctx, const char *name, brc_error *err), void *ctx,
                          brc_error *err)
{
    copies_walk w = { chain, dir, BRC_BUF_INIT, each, ctx };
    int rc = BRC_OK;
    for (const brc_consolidated *c = chain; c && rc == BRC_OK; c = c->outer)
        rc = each_of_one(&w, c, err);
    brc_buf_dispose(&w.text);
    return rc;
}

/* ---- notes of an import -------------------------------- */

int brc_copy_differs(int *differs, const brc_json *doc, const brc_json *copy, brc_error *err)
{
    brc_json *own = NULL, *other = NULL;
    int rc = BRC_OK;
    if (!doc || !copy)
        return BRC_OK;
    BRC_GO(brc_json_clone(&own, doc, err));
    BRC_GO(brc_json_clone(&other, copy, err));
    brc_json_remove(own, "consolidated_metadata");
    brc_json_remove(other, "consolidated_metadata");
    *differs |= !brc_json_equal(own, other);
done:
    brc_json_free(own);
    brc_json_free(other);
    return rc;
}

static int write_note(const brc_first_names *names, const char *source, const char *what,
                      brc_buf *warnings, brc_error *err)
{
    if (names->n == 0)
        return BRC_OK;
    BRC_TRY(brc_buf_printf(warnings, err, "%s: %s (%llu in all): ", source, what,
                           (unsigned long long)names->n));
    BRC_TRY(brc_first_names_write(names, warnings, err));
    return brc_buf_byte(warnings, '\n', err);
}

int brc_import_notes_write(const brc_import_notes *notes, const char *source, brc_buf *warnings,
                           brc_error *err)
{
    if (!warnings)
        return BRC_OK;
    BRC_TRY(write_note(&notes->differ, source,
                       "documents that differ from the consolidated metadata are imported in place "
                       "of it",
                       warnings, err));
    BRC_TRY(write_note(&notes->passed, source,
                       "entries of the consolidated metadata that describe no possible node are "
                       "left out",
                       warnings, err));
    BRC_TRY(write_note(&notes->unread, source,
                       "consolidated metadata that is not valid is left out", warnings, err));
    BRC_TRY(write_note(&notes->chunks, source, "chunks that belong to no array are left out",
                       warnings, err));
    BRC_TRY(write_note(&notes->inside, source,
                       "chunks that are not a range of a file, or a very short one, or have to be "
                       "converted, are stored in the repository, of these arrays",
                       warnings, err));
    return brc_buf_terminate(warnings, err);
}

int brc_is_like_chunk(const char *name, size_t len)
{
    size_t at = len > 0 && name[0] == 'c' && (len == 1 || name[1] == '.');
    while (at < len && (name[at] == '.' || (name[at] >= '0' && name[at] <= '9')))
        at++;
    return len > 0 && at == len && !brc_name_is_dots(name, len);
}

int brc_import_notes_barren(const brc_import_notes *notes, brc_error *err)
{
    return brc_fail(err, BRC_EINVAL,
                    "it has chunks (%.*s%s), but no document of an array: nothing is imported",
                    (int)notes->chunks.text.len, (const char *)notes->chunks.text.data,
                    notes->chunks.n > 5 ? " ..." : "");
}

void brc_import_notes_dispose(brc_import_notes *notes)
{
    brc_first_names_dispose(&notes->differ);
    brc_first_names_dispose(&notes->passed);
    brc_first_names_dispose(&notes->unread);
    brc_first_names_dispose(&notes->chunks);
    brc_first_names_dispose(&notes->inside);
}

/* ==== first names ================================ */

#define NAMES_MOST 5 /* names in a list */

int brc_first_names_add(brc_first_names *names, const char *name, brc_error *err)
{
    if (names->n++ < NAMES_MOST)
        return brc_buf_printf(&names->text, err, "%s%.300s", names->text.len > 0 ? ", " : "", name);
    return BRC_OK;
}

int brc_first_names_write(const brc_first_names *names, brc_buf *out, brc_error *err)
{
    BRC_TRY(brc_buf_append(out, names->text.data, names->text.len, err));
    if (names->n > NAMES_MOST)
        BRC_TRY(brc_buf_printf(out, err, " and %llu more",
                               (unsigned long long)(names->n - NAMES_MOST)));
    return BRC_OK;
}

void brc_first_names_dispose(brc_first_names *names)
{
    brc_buf_dispose(&names->text);
}

/* ==== names ================================ */

/* Names of nodes and files: checks them, handles their endings, and joins them to paths. */

int brc_name_is_safe(const char *name, size_t len)
{
    return brc_name_check(name, len, NULL) == BRC_OK;
}

int brc_path_is_safe(const char *path)
{
    for (;;) {
        size_t len = strcspn(path, "/");
        if (!brc_name_is_safe(path, len))
            return 0;
        if (path[len] == 0)
            return 1;
        path += len + 1;
    }
}

size_t brc_without_ending(const char *name, size_t len, const char *ending)
{
    size_t n = strlen(ending);
    if (len <= n)
        return len;
    for (size_t i = 0; i < n; i++) {
        char c = name[len - n + i];
        if ((c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c) != ending[i])
            return len;
    }
    return len - n;
}

size_t brc_before_ending(const char *name, size_t len)
{
    for (size_t i = len; i-- > 1;)
        if (name[i] == '.') {
            int letter = i + 1 < len ? name[i + 1] | 0x20 : 0;
            return letter >= 'a' && letter <= 'z' ? i : len;
        }
    return len;
}

int brc_has_ending(const char *name, const char *ending)
{
    size_t len = strlen(name);
    return brc_without_ending(name, len, ending) < len;
}
