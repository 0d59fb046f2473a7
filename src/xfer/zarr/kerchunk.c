#include "kerchunk.h"

#include <stdlib.h>
#include <string.h>

#include "../../nd/dtype_text.h"
#include "../tree_names.h"

/* ---- the list -------------------------------- */

static int is_key(const char *key)
{
    for (const char *part = key;; part++) {
        const size_t len = strcspn(part, "/");
        if (len == 0 || (len == 1 && part[0] == '.') || (len == 2 && memcmp(part, "..", 2) == 0))
            return 0;
        part += len;
        if (*part == 0)
            return 1;
    }
}

static int bad_ref(brc_error *err, const char *key, const char *what)
{
    return brc_fail(err, BRC_EINVAL, "the reference of \"%.200s\" %s", key, what);
}

/* Adds a file; `key` and ref->url live as long as the set. */
static int add_ref(brc_kerchunk *refs, const char *key, brc_kerchunk_ref ref, brc_error *err)
{
    if (!is_key(key) || strstr(key, BRC_JSON_NUL))
        return brc_fail(err, BRC_EINVAL,
                        "\"%.200s\" is not the path of a file of Zarr: it has an empty part, '.', "
                        "'..' or a zero byte",
                        key);
    if (refs->n == BRC_KERCHUNK_MOST)
        return brc_fail(err, BRC_ELIMIT, "there are more than %zu references: split the set",
                        BRC_KERCHUNK_MOST);
    BRC_TRY(brc_grow_array((void **)&refs->refs, &refs->cap, refs->n + 1, sizeof(ref), err));
    ref.key = key;
    ref.key_len = strlen(key);
    refs->refs[refs->n++] = ref;
    return BRC_OK;
}

/* Copies what a template made, terminated. */
static int keep_made(const char **out, brc_kerchunk *refs, const brc_buf *text, brc_error *err)
{
    uint8_t *copy;
    refs->made += text->len + 1;
    if (refs->made > BRC_KERCHUNK_BYTES)
        return brc_fail(err, BRC_ELIMIT,
                        "the templates make more than %llu bytes of paths and addresses",
                        (unsigned long long)BRC_KERCHUNK_BYTES);
    BRC_TRY(brc_arena_copy(&refs->arena, text->data, text->len + 1, &copy, err));
    *out = (const char *)copy;
    return BRC_OK;
}

static int render_kept(const char **out, brc_kerchunk *refs, const char *text,
                       const brc_kerchunk_names *names, brc_error *err)
{
    brc_buf made = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_kerchunk_render(&made, text, names, err));
    BRC_GO(brc_buf_terminate(&made, err));
    rc = keep_made(out, refs, &made, err);
done:
    brc_buf_dispose(&made);
    return rc;
}

/* ---- "refs" -------------------------------- */

/* Reads [URL], or [URL, OFFSET, LENGTH]. */
static int read_address(brc_kerchunk_ref *ref, brc_kerchunk *refs, const brc_json *value,
                      const brc_kerchunk_names *names, brc_error *err)
{
    const char *key = brc_json_name(value);
    const brc_json *url = brc_json_first(value), *offset = brc_json_next(url);
    const size_t n = brc_json_count(value);

    ref->whole = n == 1;
    if (brc_json_kind(value) != BRC_JSON_ARRAY || (n != 1 && n != 3))
        return bad_ref(err, key,
                       "is neither a text, nor a document, nor [ADDRESS], nor [ADDRESS, OFFSET, "
                       "LENGTH]");
    if (brc_json_kind(url) == BRC_JSON_NULL)
        return bad_ref(err, key, "has no address (null): write it into the references");
    if (!brc_json_text(url, &ref->url))
        return bad_ref(err, key, "has an address that is not a text");
    if (!ref->whole && (!brc_json_uint(offset, INT64_MAX, &ref->offset) ||
                        !brc_json_uint(brc_json_next(offset), INT64_MAX, &ref->len)))
        return bad_ref(err, key, "has an offset or a length that is not a number of bytes");
    if (names->templates && strstr(ref->url, "{{")) {
        const int rc = render_kept(&ref->url, refs, ref->url, names, err);
        if (rc < 0)
            brc_context(err, "the reference of \"%.200s\"", key);
        return rc;
    }
    return BRC_OK;
}

static int read_refs(brc_kerchunk *refs, const brc_json *list, const brc_kerchunk_names *names,
                     brc_error *err)
{
    for (const brc_json *value = brc_json_first(list); value; value = brc_json_next(value)) {
        const int kind = brc_json_kind(value);
        brc_kerchunk_ref ref = { .key = NULL };
        if (kind == BRC_JSON_STRING || kind == BRC_JSON_OBJECT)
            ref.data = value;
        else
            BRC_TRY(read_address(&ref, refs, value, names, err));
        BRC_TRY(add_ref(refs, brc_json_name(value), ref, err));
    }
    return BRC_OK;
}

/* ---- "gen" -------------------------------- */

/* A dimension of a "gen": numbers in a list, or from a start on in steps. */
typedef struct gen_axis {
    const brc_json *list, *at;
    int64_t start, step;
} gen_axis;

typedef struct gen {
    const char *key, *url, *offset, *length;
    size_t naxes;
    gen_axis from[BRC_MAX_NDIM];
    brc_kerchunk_axis axes[BRC_MAX_NDIM];
    uint64_t count[BRC_MAX_NDIM], index[BRC_MAX_NDIM];
} gen;

/* Reads a member that may be missing. */
static int read_int(const brc_json *range, const char *name, int64_t *out)
{
    const brc_json *value = brc_json_member(range, name);
    return value == NULL || brc_json_int(value, -INT64_MAX, INT64_MAX, out);
}

/* Counts the numbers from start to stop, as Python's range() has them. */
static uint64_t count_range(int64_t start, int64_t stop, int64_t step)
{
    if (step > 0 ? stop <= start : stop >= start)
        return 0;
    const uint64_t span = step > 0 ? (uint64_t)stop - (uint64_t)start
                                   : (uint64_t)start - (uint64_t)stop;
    return (span - 1) / (uint64_t)(step > 0 ? step : -step) + 1;
}

static int read_axis(gen *g, const brc_json *value, brc_error *err)
{
    gen_axis *from = &g->from[g->naxes];
    int64_t stop = 0;
    *from = (gen_axis){ .step = 1 };
    if (brc_json_kind(value) == BRC_JSON_ARRAY) {
        from->list = from->at = brc_json_first(value);
        g->count[g->naxes] = brc_json_count(value);
        for (const brc_json *n = from->list; n; n = brc_json_next(n))
            if (!brc_json_int(n, INT64_MIN, INT64_MAX, &stop))
                return brc_fail(err, BRC_EINVAL, "its dimension \"%.200s\" has an item that is not "
                                                 "an integer",
                                brc_json_name(value));
    } else if (brc_json_member(value, "stop") == NULL || !read_int(value, "stop", &stop) ||
               !read_int(value, "start", &from->start) || !read_int(value, "step", &from->step) ||
               from->step == 0) {
        return brc_fail(err, BRC_EINVAL, "its dimension \"%.200s\" is neither a list of integers "
                                         "nor \"start\", \"stop\" and \"step\"",
                        brc_json_name(value));
    } else {
        g->count[g->naxes] = count_range(from->start, stop, from->step);
    }
    g->axes[g->naxes].name = brc_json_name(value);
    g->naxes++;
    return BRC_OK;
}

static int read_gen(gen *g, const brc_json *value, brc_error *err)
{
    const brc_json *axes = brc_json_member(value, "dimensions");
    const brc_json *offset = brc_json_member(value, "offset");
    const brc_json *length = brc_json_member(value, "length");
    memset(g, 0, sizeof(*g));
    if (!brc_json_text(brc_json_member(value, "key"), &g->key) ||
        !brc_json_text(brc_json_member(value, "url"), &g->url) ||
        (offset != NULL) != (length != NULL) || (offset && !brc_json_text(offset, &g->offset)) ||
        (length && !brc_json_text(length, &g->length)))
        return brc_fail(err, BRC_EINVAL, "it needs the texts \"key\" and \"url\", and \"offset\" "
                                         "and \"length\" or neither");
    const size_t naxes = brc_json_count(axes);
    if (brc_json_kind(axes) != BRC_JSON_OBJECT || naxes == 0 || naxes > BRC_MAX_NDIM)
        return brc_fail(err, BRC_EINVAL, "it needs 1 to %d \"dimensions\"", BRC_MAX_NDIM);
    for (const brc_json *axis = brc_json_first(axes); axis; axis = brc_json_next(axis))
        BRC_TRY(read_axis(g, axis, err));
    return BRC_OK;
}

/* Sets the values of the dimensions at g->index. */
static void set_axes(gen *g)
{
    for (size_t i = 0; i < g->naxes; i++) {
        gen_axis *from = &g->from[i];
        if (!from->list) {
            const uint64_t value = (uint64_t)from->start + g->index[i] * (uint64_t)from->step;
            g->axes[i].value = (int64_t)value;
            continue;
        }
        if (g->index[i] == 0)
            from->at = from->list;
        if (!brc_json_int(from->at, INT64_MIN, INT64_MAX, &g->axes[i].value))
            g->axes[i].value = 0; /* read_axis() has looked */
    }
}

/* Goes to the next values, the last dimension first; returns 0 after the last. */
static int next_axes(gen *g)
{
    for (size_t i = g->naxes; i-- > 0;) {
        if (++g->index[i] < g->count[i]) {
            if (g->from[i].list)
                g->from[i].at = brc_json_next(g->from[i].at);
            return 1;
        }
        g->index[i] = 0;
    }
    return 0;
}

static int render_bytes(uint64_t *out, const char *text, const brc_kerchunk_names *names,
                        const char *key, brc_error *err)
{
    brc_buf made = BRC_BUF_INIT;
    int rc;
    *out = 0;
    BRC_GO(brc_kerchunk_render(&made, text, names, err));
    for (size_t i = 0; i < made.len; i++)
        if (made.data[i] < '0' || made.data[i] > '9' || !brc_mul_u64(*out, 10, out) ||
            !brc_add_u64(*out, (uint64_t)(made.data[i] - '0'), out) || *out > INT64_MAX)
            BRC_GO(bad_ref(err, key, "has an offset or a length that is not a number of bytes"));
    if (made.len == 0)
        rc = bad_ref(err, key, "has an offset or a length that is empty");
done:
    brc_buf_dispose(&made);
    return rc;
}

static int expand_gen(brc_kerchunk *refs, gen *g, const brc_json *templates, brc_error *err)
{
    const brc_kerchunk_names names = { templates, g->axes, g->naxes };
    uint64_t all = 1;
    for (size_t i = 0; i < g->naxes; i++)
        all = brc_mul_capped(all, g->count[i]);
    for (size_t i = 0; i < g->naxes; i++)
        if (g->count[i] == 0)
            return BRC_OK;
    if (all > BRC_KERCHUNK_MOST)
        return brc_fail(err, BRC_ELIMIT, "it makes more than %zu references: split the set",
                        BRC_KERCHUNK_MOST);
    do {
        brc_kerchunk_ref ref = { .whole = g->offset == NULL };
        const char *key;
        set_axes(g);
        BRC_TRY(render_kept(&key, refs, g->key, &names, err));
        BRC_TRY(render_kept(&ref.url, refs, g->url, &names, err));
        if (!ref.whole) {
            BRC_TRY(render_bytes(&ref.offset, g->offset, &names, key, err));
            BRC_TRY(render_bytes(&ref.len, g->length, &names, key, err));
        }
        BRC_TRY(add_ref(refs, key, ref, err));
    } while (next_axes(g));
    return BRC_OK;
}

static int read_gens(brc_kerchunk *refs, const brc_json *gens, const brc_json *templates,
                     brc_error *err)
{
    gen g;
    size_t i = 0;
    if (gens && brc_json_kind(gens) != BRC_JSON_ARRAY)
        return brc_fail(err, BRC_EINVAL, "\"gen\" is not a list");
    for (const brc_json *value = brc_json_first(gens); value; value = brc_json_next(value), i++) {
        int rc = read_gen(&g, value, err);
        if (rc == BRC_OK)
            rc = expand_gen(refs, &g, templates, err);
        if (rc < 0) {
            brc_context(err, "the item %zu of \"gen\"", i);
            return rc;
        }
    }
    return BRC_OK;
}

/* ---- the set -------------------------------- */

static int compare_refs(const void *a, const void *b)
{
    const brc_kerchunk_ref *x = a, *y = b;
    return brc_tree_name_compare(x->key, x->key_len, y->key, y->key_len);
}

static int sort_refs(brc_kerchunk *refs, brc_error *err)
{
    if (refs->n > 1)
        qsort(refs->refs, refs->n, sizeof(*refs->refs), compare_refs);
    for (size_t i = 1; i < refs->n; i++) {
        const brc_kerchunk_ref *a = &refs->refs[i - 1], *b = &refs->refs[i];
        const int begins = b->key_len >= a->key_len && memcmp(a->key, b->key, a->key_len) == 0;
        if (begins && a->key_len == b->key_len)
            return brc_fail(err, BRC_EINVAL, "\"%.200s\" has two references", a->key);
        if (begins && b->key[a->key_len] == '/')
            return brc_fail(err, BRC_EINVAL, "\"%.200s\" is a file and a folder", a->key);
    }
    return BRC_OK;
}

static int check_templates(const brc_json *templates, brc_error *err)
{
    const char *text;
    if (templates && brc_json_kind(templates) != BRC_JSON_OBJECT)
        return brc_fail(err, BRC_EINVAL, "\"templates\" is not an object");
    for (const brc_json *t = brc_json_first(templates); t; t = brc_json_next(t))
        if (!brc_json_text(t, &text))
            return brc_fail(err, BRC_EINVAL, "the template \"%.200s\" is not a text",
                            brc_json_name(t));
    return BRC_OK;
}

/* Reads a set of version 1, whose members are known. */
static int read_version1(brc_kerchunk *out, const brc_json *list, brc_error *err)
{
    static const char *const known[] = { "version", "templates", "gen", "refs" };
    const brc_json *templates = brc_json_member(out->doc, "templates");
    const brc_kerchunk_names names = { brc_json_first(templates) ? templates : NULL, NULL, 0 };
    BRC_TRY(brc_json_allow(out->doc, known, 4, err));
    BRC_TRY(check_templates(templates, err));
    if (list && brc_json_kind(list) != BRC_JSON_OBJECT)
        return brc_fail(err, BRC_EINVAL, "\"refs\" is not an object");
    BRC_TRY(read_refs(out, list, &names, err));
    return read_gens(out, brc_json_member(out->doc, "gen"), templates, err);
}

static int is_document_key(const brc_json *doc)
{
    static const char *const documents[] = { ".zgroup", ".zarray", "zarr.json", ".zmetadata" };
    for (const brc_json *m = brc_json_first(doc); m; m = brc_json_next(m)) {
        const char *slash = strrchr(brc_json_name(m), '/');
        const char *name = slash ? slash + 1 : brc_json_name(m);
        for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++)
            if (strcmp(name, documents[i]) == 0)
                return 1;
    }
    return 0;
}

int brc_is_kerchunk(const uint8_t *head, size_t n)
{
    size_t i = 0;
    while (i < n && head[i] != 0 && strchr(" \t\r\n", head[i]))
        i++;
    return i < n && head[i] == '{';
}

int brc_kerchunk_read(brc_kerchunk *out, const char *text, size_t len, brc_error *err)
{
    static const brc_kerchunk_names none = { NULL, NULL, 0 };
    uint64_t version = 0;
    memset(out, 0, sizeof(*out));
    const int rc = brc_json_parse(&out->doc, text, len, BRC_JSON_NAN, err);
    if (rc == BRC_ELIMIT)
        return brc_fail(err, BRC_ELIMIT,
                        "it has more than %zu bytes or %d values of JSON: split it, for example "
                        "into one set for each array",
                        BRC_JSON_MAX_BYTES, BRC_JSON_MAX_VALUES);
    BRC_TRY(rc);
    const brc_json *list = brc_json_member(out->doc, "refs");
    const brc_json *gens = brc_json_member(out->doc, "gen");
    const brc_json *stated = brc_json_member(out->doc, "version");
    if (stated && (!brc_json_uint(stated, UINT64_MAX, &version) || version > 1))
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "its \"version\" of Kerchunk references is not 0 or 1");
    if (list || (stated && gens))
        BRC_TRY(read_version1(out, list, err));
    else if (is_document_key(out->doc))
        BRC_TRY(read_refs(out, out->doc, &none, err));
    else
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "it is JSON, but no Kerchunk references: it has no \"refs\", and no key is "
                        "a document of Zarr (a zarr.json is imported with the folder in which it "
                        "lies)");
    return sort_refs(out, err);
}

int brc_kerchunk_data(brc_buf *out, const brc_kerchunk_ref *ref, uint64_t limit, brc_error *err)
{
    static const char marked[] = "base64:";
    const char *text = "";
    const size_t before = out->len;
    if (brc_json_kind(ref->data) == BRC_JSON_OBJECT) {
        BRC_TRY(brc_json_write(out, ref->data, 0, err));
    } else if (brc_json_text(ref->data, &text) && strncmp(text, marked, strlen(marked)) == 0) {
        const int rc = brc_base64_read(out, text + strlen(marked), err);
        if (rc == BRC_EINVAL)
            return bad_ref(err, ref->key, "is marked as base64 and is not");
        BRC_TRY(rc);
    } else {
        BRC_TRY(brc_string_read(out, ref->data, err));
    }
    return out->len - before <= limit
               ? BRC_OK
               : brc_fail(err, BRC_ELIMIT, "\"%.200s\" is longer than %llu bytes", ref->key,
                          (unsigned long long)limit);
}

void brc_kerchunk_dispose(brc_kerchunk *refs)
{
    free(refs->refs);
    brc_json_free(refs->doc);
    brc_arena_dispose(&refs->arena);
    memset(refs, 0, sizeof(*refs));
}
