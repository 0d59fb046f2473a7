/* The stream of an import: documents, then the chunks of one array after the other. */
#include <stdlib.h>
#include <string.h>

#include "../../codec/registry.h"
#include "chunk_boxes.h"
#include "convert_run.h"

/* ---- members -------------------------------- */

/* "/a/b" and "zarr.json" to "a/b/zarr.json" */
static int start_key(brc_buf *key, const char *path, brc_error *err)
{
    key->len = 0;
    path += *path == '/';
    if (!*path)
        return BRC_OK;
    BRC_TRY(brc_buf_text(key, path, err));
    return brc_buf_byte(key, '/', err);
}

static int convert_document(brc_convert *c, const char *path, const brc_json *doc, brc_error *err)
{
    brc_buf key = BRC_BUF_INIT, text = BRC_BUF_INIT;
    int rc;
    BRC_GO(start_key(&key, path, err));
    BRC_GO(brc_buf_text(&key, "zarr.json", err));
    BRC_GO(brc_buf_terminate(&key, err));
    BRC_GO(brc_json_write(&text, doc, err));
    rc = brc_tar_put(c->out, (const char *)key.data, (brc_span){ text.data, text.len }, err);
done:
    brc_buf_dispose(&key);
    brc_buf_dispose(&text);
    return rc;
}

int brc_convert_group(brc_convert *c, const char *path, const char *attrs_json, brc_error *err)
{
    brc_json *doc;
    if (c->phase != BRC_CONVERT_DOCS)
        return BRC_OK;
    BRC_TRY(brc_meta_new_group(&doc, attrs_json, err));
    int rc = convert_document(c, path, doc, err);
    brc_json_free(doc);
    return rc;
}

/* ---- an array's document -------------------------------- */

static int parse_type(brc_json **out, const char *dtype, brc_error *err)
{
    if (dtype[0] == '{' || dtype[0] == '"')
        return brc_json_parse(out, dtype, strlen(dtype), err);
    *out = brc_json_new_string(dtype);
    return *out ? BRC_OK : brc_nomem(err);
}

/* The codecs with which elements travel: their bytes, and nothing else. */
static int transport_codecs(brc_buf *out, const brc_convert *c, const char *dtype, brc_error *err)
{
    brc_json *json;
    brc_dtype *type = NULL;
    int rc;
    BRC_TRY(parse_type(&json, dtype, err));
    BRC_GO(brc_dtype_open(&type, c->registry, json, err));
    BRC_GO(brc_meta_plain_codecs(out, type, err));
    rc = brc_buf_terminate(out, err);
done:
    brc_dtype_free(type);
    brc_json_free(json);
    return rc;
}

static int add_notes(brc_json *doc, const brc_array_in *from, brc_error *err)
{
    brc_json *note;
    if (from->note) {
        BRC_TRY(brc_json_clone(&note, from->note, err));
        BRC_TRY(brc_json_set(doc, from->note_name, note, err));
    }
    return from->lacks_fill ? brc_meta_zarr2_note(doc, "fill_value", brc_json_new_null(), err)
                            : BRC_OK;
}

static int array_document(brc_json **out, const brc_convert *c, const brc_array_in *from,
                          brc_error *err)
{
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_buf codecs = BRC_BUF_INIT;
    int rc;

    *out = NULL;
    spec.ndim = from->ndim;
    spec.shape = from->shape;
    spec.dtype = from->dtype;
    spec.chunk = from->chunked ? from->chunk : NULL;
    spec.fill = from->fill;
    spec.attrs_json = from->attrs_json;
    spec.dimension_names = from->names;
    spec.codecs_json = from->codecs;
    if (!from->codecs) {
        BRC_GO(transport_codecs(&codecs, c, from->dtype, err));
        spec.codecs_json = (const char *)codecs.data;
    }
    BRC_GO(brc_meta_new_array(out, c->registry, &spec, err));
    BRC_GO(add_notes(*out, from, err));
done:
    brc_buf_dispose(&codecs);
    if (rc < 0) {
        brc_json_free(*out);
        *out = NULL;
    }
    return rc;
}

/* ---- an array's chunks -------------------------------- */

typedef struct chunk_writer {
    brc_convert *c;
    const brc_array_in *from;
    brc_meta meta;
    brc_form *form;
    brc_buf key;
    size_t key_base; /* bytes of the array's path in key       */
    brc_box_walk boxes;
    uint8_t *data;   /* of a box                               */
    size_t room;
    brc_buf chunk;   /* one that does not lie there in a piece */
    brc_buf encoded, elements;
    brc_span *spans; /* elements of variable length, in a box  */
    size_t spans_cap;
} chunk_writer;

static int put_chunk(chunk_writer *w, const uint64_t *index, brc_span stored, brc_error *err)
{
    w->key.len = w->key_base;
    BRC_TRY(brc_meta_key_format(&w->meta, index, &w->key, err));
    return brc_tar_put(w->c->out, (const char *)w->key.data, stored, err);
}

/* Canonical bytes of a chunk, which for nearly all types are what travels. */
static int encode_chunk(chunk_writer *w, const uint64_t *index, brc_span chunk, brc_error *err)
{
    if (brc_chain_is_identity(w->form->chain))
        return put_chunk(w, index, chunk, err);
    w->encoded.len = 0;
    BRC_TRY(brc_chain_encode(w->form->chain, w->c->scratch, chunk, &w->encoded, err));
    return put_chunk(w, index, (brc_span){ w->encoded.data, w->encoded.len }, err);
}

static int next_box(chunk_writer *w, brc_sel *box, brc_error *err)
{
    if (w->from->next)
        return w->from->next(w->from->ctx, box, err);
    if (!brc_boxes_next(&w->boxes))
        return 0;
    *box = w->boxes.box;
    return 1;
}

/* Whether a chunk's elements lie in the box one behind the other: then nothing is copied. */
static int lies_in_one_piece(const brc_sel *box, const uint64_t *chunk, const uint64_t *in_box)
{
    int k = 0;
    while (k < box->ndim && chunk[k] == 1)
        k++;
    for (k++; k < box->ndim; k++) /* behind the first axis that is longer, all is taken */
        if (chunk[k] != box->count[k])
            return 0;
    for (k = 0; k < box->ndim; k++)
        if (in_box[k] + chunk[k] > box->count[k])
            return 0;
    return 1;
}

static int cut_fixed(chunk_writer *w, const brc_sel *box, const uint64_t *index, brc_error *err)
{
    const uint64_t *shape = w->meta.shape, *chunk = w->meta.grid.chunk;
    size_t item = w->meta.type->item_size;
    int64_t from[BRC_MAX_NDIM], to[BRC_MAX_NDIM], at = 0;
    brc_overlap part;

    if (!brc_overlap_of(&part, box, shape, chunk, index))
        return BRC_OK;
    brc_strides_packed(box->ndim, box->count, item, from);
    for (int i = 0; i < box->ndim; i++)
        at += (int64_t)part.in_sel[i] * from[i];
    if (lies_in_one_piece(box, chunk, part.in_sel))
        return encode_chunk(w, index, (brc_span){ w->data + at, w->form->bytes }, err);
    w->chunk.len = 0;
    BRC_TRY(brc_buf_reserve(&w->chunk, w->form->bytes, err));
    brc_strides_packed(box->ndim, chunk, item, to);
    if (memcmp(part.count, chunk, (size_t)box->ndim * sizeof(*chunk)) != 0)
        brc_fill_run(w->chunk.data, w->form->elements, item, w->meta.fill.data);
    brc_copy_box(box->ndim, part.count, item, w->chunk.data, to, w->data + at, from);
    return encode_chunk(w, index, (brc_span){ w->chunk.data, w->form->bytes }, err);
}

static int cut_variable(chunk_writer *w, const brc_sel *box, const uint64_t *index, brc_error *err)
{
    const uint64_t *chunk = w->meta.grid.chunk;
    uint64_t at[BRC_MAX_NDIM] = { 0 };
    brc_overlap part;

    if (!brc_overlap_of(&part, box, w->meta.shape, chunk, index))
        return BRC_OK;
    w->chunk.len = 0;
    do {
        uint64_t number = 0;
        int inside = 1;
        for (int i = 0; i < box->ndim; i++) {
            inside &= at[i] < part.count[i];
            number = number * box->count[i] + part.in_sel[i] + at[i];
        }
        brc_span element = { w->meta.fill.data, w->meta.fill.len };
        if (inside)
            element = w->spans[number];
        BRC_TRY(brc_buf_append(&w->chunk, element.data, element.len, err));
    } while (brc_index_next(box->ndim, at, chunk));
    return encode_chunk(w, index, (brc_span){ w->chunk.data, w->chunk.len }, err);
}

/* Every chunk of the box, each of which it holds whole. */
static int cut_box(chunk_writer *w, const brc_sel *box, brc_error *err)
{
    uint64_t first[BRC_MAX_NDIM], count[BRC_MAX_NDIM], step[BRC_MAX_NDIM] = { 0 };
    const uint64_t *chunk = w->meta.grid.chunk;
    for (int i = 0; i < box->ndim; i++) {
        first[i] = box->start[i] / chunk[i];
        count[i] = (box->start[i] + box->count[i] - 1) / chunk[i] - first[i] + 1;
    }
    do {
        uint64_t index[BRC_MAX_NDIM];
        for (int i = 0; i < box->ndim; i++)
            index[i] = first[i] + step[i];
        BRC_TRY(brc_meta_is_variable(&w->meta) ? cut_variable(w, box, index, err)
                                               : cut_fixed(w, box, index, err));
    } while (brc_index_next(box->ndim, step, count));
    return BRC_OK;
}

static int read_fixed_box(chunk_writer *w, const brc_sel *box, brc_error *err)
{
    uint64_t bytes;
    size_t len;
    if (!brc_shape_bytes(box->ndim, box->count, w->meta.type->item_size, &bytes) ||
        !brc_to_size(bytes, &len))
        return brc_fail(err, BRC_ELIMIT, "a chunk has more bytes than memory can");
    if (len > w->room) { /* most often the first box is the largest */
        free(w->data);
        w->data = NULL;
        w->room = 0;
        BRC_TRY(brc_new_big((void **)&w->data, len, err));
        w->room = len;
    }
    BRC_TRY(w->from->read(w->from->ctx, box, w->data, len, err));
    brc_dtype_native(w->meta.type, w->data, len);
    return BRC_OK;
}

static int read_variable_box(chunk_writer *w, const brc_sel *box, brc_error *err)
{
    uint64_t n = brc_shape_count(box->ndim, box->count);
    size_t need;
    if (!brc_to_size(n, &need))
        return brc_fail(err, BRC_ELIMIT, "a chunk has more elements than memory can");
    BRC_TRY(brc_grow_array((void **)&w->spans, &w->spans_cap, need, sizeof(*w->spans), err));
    w->elements.len = 0;
    BRC_TRY(w->from->read_elements(w->from->ctx, box, &w->elements, err));
    brc_reader in = brc_reader_of(w->elements.data, w->elements.len);
    for (uint64_t i = 0; i < n; i++) {
        const uint8_t *start = in.at, *count = brc_read_bytes(&in, 4);
        size_t len = count ? brc_get_u32le(count) : 0;
        if (!count || !brc_read_bytes(&in, len))
            return brc_fail(err, BRC_EINTERNAL, "%s: elements are missing", w->from->label);
        w->spans[i] = (brc_span){ start, len + 4 };
    }
    return BRC_OK;
}

static int convert_elements(chunk_writer *w, brc_error *err)
{
    brc_sel box;
    int rc;
    brc_boxes_start(&w->boxes, w->meta.ndim, w->meta.shape, w->meta.grid.chunk,
                    w->meta.type->item_size);
    while ((rc = next_box(w, &box, err)) > 0) {
        BRC_TRY(brc_meta_is_variable(&w->meta) ? read_variable_box(w, &box, err)
                                               : read_fixed_box(w, &box, err));
        BRC_TRY(cut_box(w, &box, err));
    }
    return rc;
}

static int pass_stored(chunk_writer *w, brc_error *err)
{
    uint64_t index[BRC_MAX_NDIM];
    brc_span stored;
    int rc;
    while ((rc = w->from->next_chunk(w->from->ctx, index, &stored, err)) > 0)
        BRC_TRY(put_chunk(w, index, stored, err));
    return rc;
}

static int convert_chunks(brc_convert *c, const brc_array_in *from, const brc_json *doc,
                          brc_error *err)
{
    chunk_writer *w;
    int rc;
    BRC_TRY(brc_new((void **)&w, sizeof(*w), err));
    w->c = c;
    w->from = from;
    BRC_GO(brc_meta_open(&w->meta, c->registry, doc, err));
    BRC_GO(brc_meta_must_encode(&w->meta, err));
    BRC_GO(brc_meta_form(&w->meta, w->meta.grid.chunk, &w->form, err));
    BRC_GO(start_key(&w->key, from->path, err));
    w->key_base = w->key.len;
    rc = from->codecs ? pass_stored(w, err) : convert_elements(w, err);
done:
    free(w->data);
    free(w->spans);
    brc_buf_dispose(&w->key);
    brc_buf_dispose(&w->chunk);
    brc_buf_dispose(&w->encoded);
    brc_buf_dispose(&w->elements);
    brc_meta_dispose(&w->meta);
    free(w);
    return rc;
}

int brc_convert_array(brc_convert *c, const brc_array_in *array, brc_error *err)
{
    brc_json *doc;
    int rc = array_document(&doc, c, array, err);
    if (rc < 0) {
        brc_context(err, "%s", array->label);
        return rc;
    }
    rc = c->phase == BRC_CONVERT_DOCS ? convert_document(c, array->path, doc, err)
                                      : convert_chunks(c, array, doc, err);
    brc_json_free(doc);
    return rc;
}

/* ---- the whole -------------------------------- */

int brc_convert_import(brc_convert *c, const brc_driver *driver, brc_error *err)
{
    void *state = NULL;
    int rc;
    BRC_GO(driver->open(&state, c, c->file, err));
    for (c->phase = BRC_CONVERT_DOCS; c->phase <= BRC_CONVERT_CHUNKS; c->phase++)
        BRC_GO(driver->walk(state, err));
    rc = brc_tar_finish(c->out, err);
done:
    driver->close(state);
    return rc;
}
