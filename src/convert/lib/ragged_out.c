/*
 * Exports groups and arrays as one dataset of ragged elements, see ragged.h.
 *
 * A list is written as a whole, but its items come as several arrays, one after the other. So all
 * arrays wait in a temporary file (spool.h), and the dataset is written from this file run by run.
 *
 *   fixed     items, in the array's C order
 *   variable  for each item the place and length of its bytes, u64 each; bytes end with a zero
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert_program.h"
#include "ragged.h"

typedef struct ragged_array {
    const brc_node_out *node;
    size_t item; /* bytes of an item in the spool */
    uint64_t at; /* where the items begin */
    uint64_t n;  /* the number of items */
    int is_placed, is_offsets;
    uint64_t listed; /* offsets: the number of items that the values must have */
} ragged_array;

struct brc_ragged_out {
    brc_convert *c;
    const brc_node_out *group, *leaf;
    const brc_ragged *type;
    const char *note;
    int ndim;
    uint64_t shape[BRC_MAX_NDIM];
    ragged_array *arrays;
    size_t n, cap;
    size_t nodes, met; /* nodes in the group, and nodes that have a place in the type */
};

typedef struct ragged_place {
    uint64_t at, len;
} ragged_place;

/* Fails with the sentence and the remedy. */
static int does_not_fit(const brc_ragged_out *out, brc_error *err, const char *format, ...)
    BRC_PRINTF(3, 4);
static int does_not_fit(const brc_ragged_out *out, brc_error *err, const char *format, ...)
{
    brc_error own = BRC_ERROR_INIT;
    char text[sizeof(own.message)];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return brc_fail(err, BRC_EUNSUPPORTED,
                    "%s stands for one dataset, but %s: correct this, or remove the group's "
                    "attribute %s to export its arrays as they are",
                    out->group->path, text, out->note);
}

/* ---- the nodes -------------------------------- */

/* The shape that the arrays of a list, or of the whole dataset, must share. */
typedef struct ragged_extent {
    int known, ndim;
    uint64_t shape[BRC_MAX_NDIM];
    const brc_node_out *by; /* the array that sets the shape */
} ragged_extent;

typedef struct node_walk {
    brc_ragged_out *out;
    ragged_extent *extent;
    int in_list;
    int nextra; /* axes of arrays in the type */
    uint64_t extra[BRC_MAX_NDIM];
    int lists; /* 1: lists alone; 0: leaves alone */
    int depth;
} node_walk;

static int match_type(const node_walk *w, brc_ragged *type, const char *key, brc_error *err);

/* Finds the array or group with this key, which must exist. */
static int find_node(const node_walk *w, const char *key, int is_array, const brc_node_out **found,
                     brc_error *err)
{
    const brc_node_out *node = brc_convert_node_at(w->out->c, key + (*key == '/'));
    if (!node || (node->meta != NULL) != is_array)
        return does_not_fit(w->out, err, "it has no %s %s", is_array ? "array" : "group",
                            key + (*key == '/'));
    if (brc_json_count(brc_json_member(node->doc, "attributes")) > 0 && node != w->out->group)
        return does_not_fit(w->out, err, "%s has attributes, which the dataset cannot "
                                         "have", node->path);
    w->out->met += node != w->out->group;
    *found = node;
    return BRC_OK;
}

static int add_array(brc_ragged_out *out, brc_ragged *type, const brc_node_out *node, size_t item,
                     brc_error *err)
{
    BRC_TRY(
        brc_grow_array((void **)&out->arrays, &out->cap, out->n + 1, sizeof(*out->arrays), err));
    ragged_array *array = &out->arrays[out->n];
    *array = (ragged_array){ .node = node, .item = item };
    uint64_t bytes;
    array->n = brc_shape_count(node->meta->ndim, node->meta->shape);
    if (!brc_mul_u64(array->n, item, &bytes))
        return brc_fail(err, BRC_ELIMIT, "%s has too many elements", node->path);
    type->column = out->n++;
    return BRC_OK;
}

/* Makes room for an array when its first elements come. Other groups have been written by then. */
static int place_in_spool(const brc_ragged_out *out, ragged_array *a, brc_error *err)
{
    if (a->is_placed)
        return BRC_OK;
    a->is_placed = 1;
    return brc_spool_take(&out->c->spool, a->n * a->item, &a->at, err);
}

static int check_data_type(const brc_ragged_out *out, const brc_ragged *leaf,
                           const brc_node_out *node, brc_error *err)
{
    brc_json *noted;
    const char *dtype = leaf->dtype;
    BRC_TRY(brc_convert_dtype_json(&noted, dtype, err));
    int same = brc_json_equal(noted, brc_json_member(node->doc, "data_type"));
    brc_json_free(noted);
    return same ? BRC_OK
                : does_not_fit(out, err, "the data type of %s is no longer %.100s",
                               node->path, dtype);
}

static int match_leaf(const node_walk *w, brc_ragged *leaf, const char *key, brc_error *err)
{
    ragged_extent *e = w->extent;
    const brc_node_out *node;
    BRC_TRY(find_node(w, key, 1, &node, err));
    const brc_meta *m = node->meta;
    BRC_TRY(check_data_type(w->out, leaf, node, err));
    if (m->ndim != e->ndim + w->nextra + leaf->ndim)
        return does_not_fit(w->out, err, "%s has %d axes instead of %d", node->path, m->ndim,
                            e->ndim + w->nextra + leaf->ndim);
    for (int i = 0; i < m->ndim; i++) {
        const int inner = i - e->ndim;
        if (inner < 0 && !e->known)
            e->shape[i] = m->shape[i];
        uint64_t want = inner < 0           ? e->shape[i]
                        : inner < w->nextra ? w->extra[inner]
                                            : leaf->shape[inner - w->nextra];
        if (m->shape[i] != want)
            return does_not_fit(w->out, err, "%s has %llu element%s along axis %d, and %s %llu",
                                node->path, (unsigned long long)m->shape[i],
                                m->shape[i] == 1 ? "" : "s", i,
                                inner < 0 ? e->by->path : "its type", (unsigned long long)want);
    }
    if (!e->known)
        e->by = node;
    e->known = 1;
    if (!w->in_list && !w->out->leaf)
        w->out->leaf = node;
    return add_array(w->out, leaf, node,
                     m->type->item_size ? m->type->item_size : sizeof(ragged_place), err);
}

/* Sets the shape by the offsets if no array has set it. */
static int settle_extent(const node_walk *w, const brc_node_out *offsets, uint64_t n,
                         brc_error *err)
{
    ragged_extent *e = w->extent;
    uint64_t each = brc_shape_count(w->nextra, w->extra), want;
    if (!e->known && (w->in_list || e->ndim == 1) && each > 0 && n % each == 0)
        e->shape[0] = n / each;
    if (!brc_mul_u64(brc_shape_count(e->ndim, e->shape), each, &want) || want != n)
        return does_not_fit(w->out, err, "%s has %llu lists, and %llu are needed", offsets->path,
                            (unsigned long long)n, (unsigned long long)want);
    if (!e->known)
        e->by = offsets;
    e->known = 1;
    return BRC_OK;
}

static int child_key(char **out, const node_walk *w, const char *key, const char *name,
                     brc_error *err)
{
    return brc_convert_node_path(out, w->out->c, *key ? key : "/", name, err);
}

/* Matches the nodes of a list, or of the whole dataset: first arrays, because they set the number
 * of elements. */
static int match_all(const node_walk *w, brc_ragged *type, const char *key, brc_error *err)
{
    node_walk inner = *w;
    for (inner.lists = 0; inner.lists <= 1; inner.lists++)
        BRC_TRY(match_type(&inner, type, key, err));
    return BRC_OK;
}

static int match_values(const node_walk *w, brc_ragged *list, size_t column, const char *key,
                        brc_error *err)
{
    ragged_extent e = { .ndim = 1 };
    node_walk inner = *w;
    inner.extent = &e;
    inner.in_list = 1;
    inner.nextra = 0;
    BRC_TRY(match_all(&inner, list->items, key, err));
    w->out->arrays[column].is_offsets = 1;
    w->out->arrays[column].listed = e.shape[0];
    return BRC_OK;
}

static int match_list(const node_walk *w, brc_ragged *list, const char *key, brc_error *err)
{
    const brc_node_out *node;
    char *offsets = NULL, *values = NULL;
    int rc;
    BRC_TRY(find_node(w, key, 0, &node, err));
    BRC_GO(child_key(&offsets, w, key, BRC_RAGGED_OFFSETS, err));
    BRC_GO(child_key(&values, w, key, BRC_RAGGED_VALUES, err));
    BRC_GO(find_node(w, offsets, 1, &node, err));
    const brc_meta *m = node->meta;
    if (strcmp(m->type->name, "int64") != 0 || m->ndim != 1 || m->shape[0] == 0) {
        rc = does_not_fit(w->out, err,
                          "%s is not an int64 array with one element more than there are lists",
                          node->path);
        goto done;
    }
    BRC_GO(settle_extent(w, node, m->shape[0] - 1, err));
    BRC_GO(add_array(w->out, list, node, sizeof(int64_t), err));
    rc = match_values(w, list, list->column, values, err);
done:
    free(offsets);
    free(values);
    return rc;
}

static int match_fields(const node_walk *w, brc_ragged *type, const char *key, brc_error *err)
{
    const brc_node_out *node;
    if (!w->lists)
        BRC_TRY(find_node(w, key, 0, &node, err));
    for (size_t i = 0; i < type->n; i++) {
        char *field;
        BRC_TRY(child_key(&field, w, key, type->items[i].name, err));
        int rc = match_type(w, &type->items[i], field, err);
        free(field);
        BRC_TRY(rc);
    }
    return BRC_OK;
}

static int match_array(const node_walk *w, brc_ragged *type, const char *key, brc_error *err)
{
    node_walk inner = *w;
    if (inner.nextra + type->ndim > BRC_MAX_NDIM)
        return does_not_fit(w->out, err, "its type has more than %d axes", BRC_MAX_NDIM);
    for (int i = 0; i < type->ndim; i++)
        inner.extra[inner.nextra++] = type->shape[i];
    return match_type(&inner, type->items, key, err);
}

static int match_type(const node_walk *w, brc_ragged *type, const char *key, brc_error *err)
{
    node_walk inner = *w;
    if (inner.depth++ == BRC_RAGGED_DEPTH)
        return does_not_fit(w->out, err, "its type is nested more than %d deep", BRC_RAGGED_DEPTH);
    switch (type->kind) {
    case BRC_RAGGED_LEAF:
        return w->lists ? BRC_OK : match_leaf(&inner, type, key, err);
    case BRC_RAGGED_LIST:
        return w->lists ? match_list(&inner, type, key, err) : BRC_OK;
    case BRC_RAGGED_ARRAY:
        return match_array(&inner, type, key, err);
    default:
        return match_fields(&inner, type, key, err);
    }
}

/* Returns how many nodes the group contains. */
static size_t count_nodes(const brc_convert *c, const brc_node_out *group)
{
    size_t n = 0, len = strlen(group->key);
    for (size_t i = group->number + 1; i < c->nnodes; i++, n++)
        if (len > 0 &&
            (strncmp(c->nodes[i].key, group->key, len) != 0 || c->nodes[i].key[len] != '/'))
            break;
    return n;
}

/* Returns the path of the first node that has no place in the type. */
static const char *stray_node(const brc_ragged_out *out)
{
    for (size_t i = 1; i <= out->nodes; i++) {
        const brc_node_out *node = &out->c->nodes[out->group->number + i];
        int known = !node->meta;
        for (size_t k = 0; k < out->n && !known; k++)
            known = out->arrays[k].node == node;
        if (!known)
            return node->path;
    }
    return "a group in it";
}

int brc_ragged_out_open(brc_ragged_out **out, brc_convert *c, const brc_node_out *group,
                        brc_ragged *type, const char *note, int ndim, uint64_t *shape,
                        brc_error *err)
{
    ragged_extent e = { .ndim = ndim };
    node_walk w = { .extent = &e };
    brc_ragged_out *o;
    int rc;
    *out = NULL;
    BRC_TRY(brc_new((void **)&o, sizeof(*o), err));
    *o = (brc_ragged_out){ .c = c, .group = group, .type = type, .note = note, .ndim = ndim };
    o->nodes = count_nodes(c, group);
    w.out = o;
    memcpy(e.shape, shape, (size_t)ndim * sizeof(*shape));
    BRC_GO(match_all(&w, type, group->key, err));
    if (o->met != o->nodes) {
        rc = does_not_fit(o, err, "%s has no place in the dataset", stray_node(o));
        goto done;
    }
    memcpy(shape, e.shape, (size_t)ndim * sizeof(*shape));
    memcpy(o->shape, e.shape, sizeof(o->shape));
    *out = o;
done:
    if (rc < 0)
        brc_ragged_out_free(o);
    return rc;
}

void brc_ragged_out_free(brc_ragged_out *out)
{
    if (out)
        free(out->arrays);
    free(out);
}

size_t brc_ragged_out_nodes(const brc_ragged_out *out)
{
    return out->nodes;
}

const brc_node_out *brc_ragged_out_leaf(const brc_ragged_out *out)
{
    return out->leaf;
}

/* ---- elements to the spool -------------------------------- */

/* Writes the items of a box to their places in the array. */
static int spool_box(const brc_ragged_out *out, const ragged_array *a, const brc_sel *box,
                     const uint8_t *data, brc_error *err)
{
    const brc_meta *m = a->node->meta;
    uint64_t index[BRC_MAX_NDIM] = { 0 };
    int64_t strides[BRC_MAX_NDIM];
    int outer = box->ndim > 0 ? box->ndim - 1 : 0;
    size_t run = a->item * (box->ndim > 0 ? (size_t)box->count[outer] : 1);
    brc_strides_packed(m->ndim, m->shape, a->item, strides);
    for (; outer > 0 && box->count[outer] == m->shape[outer]; outer--)
        run *= (size_t)box->count[outer - 1];
    do {
        uint64_t at = a->at;
        for (int i = 0; i < box->ndim; i++)
            at += (box->start[i] + (i < outer ? index[i] : 0)) * (uint64_t)strides[i];
        BRC_TRY(brc_spool_write(&out->c->spool, at, data, run, err));
        data += run;
    } while (brc_index_next(outer, index, box->count));
    return BRC_OK;
}

/* Appends the bytes to the spool, and writes their places to the items of the array. */
static int spool_variable(const brc_ragged_out *out, const ragged_array *a, const brc_sel *box,
                          const void *data, size_t len, brc_error *err)
{
    brc_reader r = brc_reader_of(data, len);
    uint64_t n = brc_shape_count(box->ndim, box->count), at;
    ragged_place *places = NULL;
    brc_buf bytes = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_new_array((void **)&places, n, sizeof(*places), err));
    for (uint64_t i = 0; i < n; i++) {
        const uint8_t *count = brc_read_bytes(&r, 4);
        uint32_t size = count ? brc_get_u32le(count) : 0;
        const uint8_t *from = brc_read_bytes(&r, size);
        if (!count || !from) {
            rc = brc_fail(err, BRC_EINTERNAL, "%s: its elements are too short", a->node->path);
            goto done;
        }
        places[i] = (ragged_place){ bytes.len, size };
        if (size > 0)
            BRC_GO(brc_buf_append(&bytes, from, size, err));
        BRC_GO(brc_buf_byte(&bytes, 0, err));
    }
    BRC_GO(brc_spool_take(&out->c->spool, bytes.len, &at, err));
    for (uint64_t i = 0; i < n; i++)
        places[i].at += at;
    BRC_GO(brc_spool_write(&out->c->spool, at, bytes.data, bytes.len, err));
    rc = spool_box(out, a, box, (const uint8_t *)places, err);
done:
    free(places);
    brc_buf_dispose(&bytes);
    return rc;
}

int brc_ragged_out_put(brc_ragged_out *out, const brc_node_out *array, const brc_sel *box,
                       const void *data, size_t len, brc_error *err)
{
    for (size_t i = 0; i < out->n; i++) {
        ragged_array *a = &out->arrays[i];
        if (a->node != array)
            continue;
        BRC_TRY(place_in_spool(out, a, err));
        return brc_meta_is_variable(array->meta) ? spool_variable(out, a, box, data, len, err)
                                                 : spool_box(out, a, box, data, err);
    }
    return brc_fail(err, BRC_EINTERNAL, "%s is not in %s", array->path, out->group->path);
}

/* ---- elements from the spool -------------------------------- */

typedef struct ragged_fill {
    const brc_ragged_out *out;
    const brc_ragged_writer *writer;
    brc_arena arena;
    size_t room; /* bytes left */
} ragged_fill;

static int fill_type(ragged_fill *f, const brc_ragged *type, uint64_t first, uint64_t n,
                     uint8_t *base, size_t stride, brc_error *err);

/* Takes room for n pieces of `size` bytes. Returns 1, or 0 if there is no room. */
static int take_room(ragged_fill *f, uint64_t n, size_t size, uint8_t **out, brc_error *err)
{
    uint64_t bytes;
    if (!brc_mul_u64(n, size, &bytes) || bytes > f->room)
        return 0;
    f->room -= (size_t)bytes;
    *out = brc_arena_take(&f->arena, (size_t)bytes + 1);
    if (!*out)
        return brc_nomem(err);
    memset(*out, 0, (size_t)bytes + 1);
    return 1;
}

/* Reads items [first, first + n) of an array. Returns 1, or 0 if there is no room. */
static int fetch_items(ragged_fill *f, const ragged_array *a, uint64_t first, uint64_t n,
                       uint8_t **out, brc_error *err)
{
    int rc = take_room(f, n, a->item, out, err);
    if (rc != 1)
        return rc;
    if (first > a->n || n > a->n - first)
        return brc_fail(err, BRC_EINTERNAL, "%s has fewer elements than are needed", a->node->path);
    BRC_TRY(
        brc_spool_read(&f->out->c->spool, a->at + first * a->item, *out, (size_t)n * a->item, err));
    return 1;
}

/* Reads the bytes of items; items that follow each other in the spool are read at once. */
static int fetch_bytes(ragged_fill *f, const ragged_place *places, uint64_t n, uint8_t **out,
                       brc_error *err)
{
    const brc_spool *spool = &f->out->c->spool;
    uint64_t total = 0;
    uint8_t *to;
    for (uint64_t i = 0; i < n; i++)
        if (!brc_add_u64(total, places[i].len + 1, &total))
            return 0;
    int rc = take_room(f, total, 1, out, err);
    if (rc != 1)
        return rc;
    to = *out;
    for (uint64_t i = 0, k; i < n; i = k) {
        uint64_t at = places[i].at, len = places[i].len + 1;
        for (k = i + 1; k < n && places[k].at == at + len; k++)
            len += places[k].len + 1;
        BRC_TRY(brc_spool_read(spool, at, to, (size_t)len, err));
        to += len;
    }
    return 1;
}

static int fill_leaf(ragged_fill *f, const brc_ragged *leaf, uint64_t first, uint64_t n,
                     uint8_t *base, size_t stride, brc_error *err)
{
    const ragged_array *a = &f->out->arrays[leaf->column];
    const brc_ragged_writer *w = f->writer;
    uint64_t each = brc_ragged_count(leaf);
    int variable = leaf->type->item_size == 0;
    uint8_t *items, *bytes = NULL;
    int rc = fetch_items(f, a, first * each, n * each, &items, err);
    if (rc == 1 && variable)
        rc = fetch_bytes(f, (const ragged_place *)(const void *)items, n * each, &bytes, err);
    if (rc != 1)
        return rc;
    size_t step = each ? leaf->size / each : 0;
    for (uint64_t i = 0; i < n * each; i++, items += a->item) {
        ragged_place place = { 0, a->item };
        if (variable)
            memcpy(&place, items, sizeof(place));
        BRC_TRY(w->place(w->ctx, leaf, variable ? bytes : items, (size_t)place.len,
                         base + i / each * stride + i % each * step, &f->arena, err));
        if (variable)
            bytes += place.len + 1;
    }
    return 1;
}

/* Reads and checks the offsets of n lists: the lists must follow each other. */
static int fetch_offsets(ragged_fill *f, const ragged_array *a, uint64_t first, uint64_t n,
                         int64_t **out, brc_error *err)
{
    uint8_t *items;
    int rc = fetch_items(f, a, first, n + 1, &items, err);
    if (rc != 1)
        return rc;
    int64_t *at = (int64_t *)(void *)items;
    for (uint64_t i = 0; i <= n; i++) {
        int64_t least = i > 0 ? at[i - 1] : 0;
        if (at[i] < least || (uint64_t)at[i] > a->listed || (first + i == 0 && at[i] != 0))
            return does_not_fit(
                f->out, err,
                "element %llu of %s is %lld: offsets begin with 0, none is less than "
                "the one before, and the last is %llu, the number of values",
                (unsigned long long)(first + i), a->node->path, (long long)at[i],
                (unsigned long long)a->listed);
    }
    *out = at;
    return 1;
}

static int fill_ragged_list(ragged_fill *f, const brc_ragged *list, uint64_t first, uint64_t n,
                            uint8_t *base, size_t stride, brc_error *err)
{
    size_t size = list->items->size;
    int64_t *offsets = NULL;
    uint8_t *items;
    int rc = fetch_offsets(f, &f->out->arrays[list->column], first, n, &offsets, err);
    if (rc != 1)
        return rc;
    uint64_t from = (uint64_t)offsets[0], total = (uint64_t)offsets[n] - from;
    rc = take_room(f, total, size, &items, err);
    if (rc == 1 && total > 0)
        rc = fill_type(f, list->items, from, total, items, size, err);
    for (uint64_t i = 0; i < n && rc == 1; i++) {
        brc_ragged_list value = { (size_t)(offsets[i + 1] - offsets[i]), NULL };
        if (value.len > 0)
            value.p = items + ((uint64_t)offsets[i] - from) * size;
        memcpy(base + i * stride, &value, sizeof(value));
    }
    return rc;
}

static int fill_array(ragged_fill *f, const brc_ragged *type, uint64_t first, uint64_t n,
                      uint8_t *base, size_t stride, brc_error *err)
{
    uint64_t each = brc_ragged_count(type);
    size_t size = type->items->size;
    uint8_t *items;
    int rc = take_room(f, n * each, size, &items, err);
    if (rc == 1)
        rc = fill_type(f, type->items, first * each, n * each, items, size, err);
    for (uint64_t i = 0; i < n && rc == 1; i++)
        memcpy(base + i * stride, items + i * each * size, (size_t)each * size);
    return rc;
}

/* Fills in elements [first, first + n) of a type. Returns 1, or 0 if there is no room. */
static int fill_type(ragged_fill *f, const brc_ragged *type, uint64_t first, uint64_t n,
                     uint8_t *base, size_t stride, brc_error *err)
{
    int rc = 1;
    switch (type->kind) {
    case BRC_RAGGED_LEAF:
        return fill_leaf(f, type, first, n, base, stride, err);
    case BRC_RAGGED_LIST:
        return fill_ragged_list(f, type, first, n, base, stride, err);
    case BRC_RAGGED_ARRAY:
        return fill_array(f, type, first, n, base, stride, err);
    default:
        for (size_t i = 0; i < type->n && rc == 1; i++)
            rc = fill_type(f, &type->items[i], first, n, base + type->items[i].at, stride, err);
        return rc;
    }
}

/* Writes a run. Returns 1, or 0 if the run takes more than `most` bytes. */
static int write_run(const brc_ragged_out *out, const brc_ragged_writer *writer, const brc_cut *run,
                     size_t most, brc_error *err)
{
    ragged_fill f = { out, writer, BRC_ARENA_INIT, most };
    int64_t strides[BRC_MAX_NDIM];
    uint64_t first = 0;
    uint8_t *elements = NULL;
    int rc;
    brc_strides_packed(out->ndim, out->shape, 1, strides);
    for (int i = 0; i < out->ndim; i++)
        first += run->sel.start[i] * (uint64_t)strides[i];
    BRC_GO(brc_new_array((void **)&elements, run->elements, out->type->size, err));
    rc = fill_type(&f, out->type, first, run->elements, elements, out->type->size, err);
    if (rc == 1) {
        rc = writer->write(writer->ctx, &run->sel, elements, err);
        rc = rc < 0 ? rc : 1;
    }
done:
    free(elements);
    brc_arena_dispose(&f.arena);
    return rc;
}

/* Checks that offsets end where the values end. A run would not see this if there are no lists. */
static int check_ends(const brc_ragged_out *out, brc_error *err)
{
    for (size_t i = 0; i < out->n; i++) {
        const ragged_array *a = &out->arrays[i];
        int64_t last;
        if (!a->is_offsets)
            continue;
        BRC_TRY(
            brc_spool_read(&out->c->spool, a->at + (a->n - 1) * a->item, &last, sizeof(last), err));
        if (last < 0 || (uint64_t)last != a->listed)
            return does_not_fit(out, err, "%s ends with %lld, and there are %llu values",
                                a->node->path, (long long)last, (unsigned long long)a->listed);
    }
    return BRC_OK;
}

int brc_ragged_out_write(brc_ragged_out *out, const brc_ragged_writer *writer, brc_error *err)
{
    brc_ragged_runs runs;
    const brc_cut *run;
    brc_sel all = BRC_SEL_INIT;
    size_t most;
    BRC_TRY(check_ends(out, err));
    brc_sel_of_shape(&all, out->ndim, out->shape);
    brc_ragged_runs_start(&runs, &all, writer->chunk, out->type->size);
    while (brc_ragged_runs_next(&runs, &run, &most)) {
        int rc = write_run(out, writer, run, most, err);
        BRC_TRY(rc);
        if (rc == 0 && !brc_ragged_runs_cut(&runs))
            return brc_fail(err, BRC_ELIMIT, "%s: one of its elements has more than %zu MiB",
                            out->group->path, BRC_RAGGED_ELEMENT >> 20);
        brc_watch_step(&out->c->watch);
    }
    return brc_spool_clear(&out->c->spool, err);
}
