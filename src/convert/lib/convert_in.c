/* Writes the stream of an import: documents, then the chunks of one array after the other. */
#include <stdlib.h>
#include <string.h>

#include "../../codec/chain.h"
#include "../../nd/box.h"
#include "../../nd/shape.h"
#include "../../xfer/foreign/protocol.h"
#include "convert_program.h"

/* ---- members -------------------------------- */

/* Joins "/a/b" and "zarr.json" to "a/b/zarr.json". */
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
    BRC_GO(brc_json_write(&text, doc, 0, err));
    brc_watch_step(&c->watch);
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

int brc_convert_dtype_json(brc_json **out, const char *dtype, brc_error *err)
{
    *out = NULL;
    if (dtype[0] == '{' || dtype[0] == '"')
        return brc_json_parse(out, dtype, strlen(dtype), 0, err);
    if (!brc_utf8_valid(dtype, strlen(dtype)))
        return brc_fail(err, BRC_EINVAL, "the name of a data type is not UTF-8");
    *out = brc_json_new_string(dtype);
    return *out ? BRC_OK : brc_nomem(err);
}

int brc_convert_dtype_open(brc_dtype **out, const brc_registry *reg, const char *dtype,
                           brc_error *err)
{
    brc_json *json;
    *out = NULL;
    BRC_TRY(brc_convert_dtype_json(&json, dtype, err));
    int rc = brc_dtype_open(out, reg, json, NULL, err);
    brc_json_free(json);
    return rc;
}

/* Writes the codecs of elements in the stream: their bytes, without compression. */
static int transport_codecs(brc_buf *out, const brc_convert *c, const char *dtype, brc_error *err)
{
    brc_dtype *type;
    BRC_TRY(brc_convert_dtype_open(&type, c->registry, dtype, err));
    int rc = brc_meta_plain_codecs(out, type, err);
    brc_dtype_free(type);
    return rc < 0 ? rc : brc_buf_terminate(out, err);
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

/* Chooses chunks that are ranges of the file, for elements that lie there. */
static int choose_ranges(const brc_convert *c, const brc_array_in *from, uint64_t *chunk,
                         brc_error *err)
{
    brc_dtype *type;
    BRC_TRY(brc_convert_dtype_open(&type, c->registry, from->dtype, err));
    brc_range_chunks(from->ndim, from->shape, type->item_size, 0, from->elements->pieces, chunk);
    brc_dtype_free(type);
    return BRC_OK;
}

static int array_document(brc_json **out, const brc_convert *c, const brc_array_in *from,
                          brc_error *err)
{
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    uint64_t chunk[BRC_MAX_NDIM];
    brc_buf codecs = BRC_BUF_INIT;
    int rc;

    *out = NULL;
    spec.ndim = from->ndim;
    spec.shape = from->shape;
    spec.dtype = from->dtype;
    spec.chunk = from->chunked ? from->chunk : NULL;
    if (c->is_external && !from->chunked && from->codecs && from->elements) {
        BRC_GO(choose_ranges(c, from, chunk, err));
        spec.chunk = chunk;
    }
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
    int dry;         /* elements are read to check them, and not written */
    brc_meta meta;
    brc_form *form;
    brc_buf key;
    size_t key_base; /* bytes of the array's path in key */
    brc_cut boxes;
    uint8_t *data;   /* the elements of a box */
    size_t room;
    brc_buf encoded, elements;
    brc_chunk_cutter cutter;
} chunk_writer;

/* The most bytes of a box. A library cannot be stopped in the middle of a box. */
#define BOX_BYTES ((uint64_t)4 << 20)

static int put_stored(chunk_writer *w, const uint64_t *index, const brc_stored_in *stored,
                      brc_error *err)
{
    if (w->dry)
        return BRC_OK;
    w->key.len = w->key_base;
    BRC_TRY(brc_meta_key_format(&w->meta, index, &w->key, err));
    brc_watch_step(&w->c->watch);
    const char *key = (const char *)w->key.data;
    return stored->refers ? brc_tar_put_range(w->c->out, key, &stored->range, err)
                          : brc_tar_put(w->c->out, key, stored->bytes, err);
}

static int put_chunk(chunk_writer *w, const uint64_t *index, brc_span bytes, brc_error *err)
{
    return put_stored(w, index, &(brc_stored_in){ .bytes = bytes }, err);
}

/* Encodes a chunk's canonical bytes for the stream; for nearly all types the two are equal. */
static int encode_chunk(void *ctx, const uint64_t *index, brc_span chunk, brc_error *err)
{
    chunk_writer *w = ctx;
    if (brc_chain_is_identity(w->form->chain))
        return put_chunk(w, index, chunk, err);
    w->encoded.len = 0;
    BRC_TRY(brc_chain_encode(w->form->chain, w->c->scratch, chunk, &w->encoded, err));
    return put_chunk(w, index, (brc_span){ w->encoded.data, w->encoded.len }, err);
}

static int next_read_box(chunk_writer *w, brc_sel *box, brc_error *err)
{
    if (w->from->next)
        return w->from->next(w->from->ctx, box, err);
    if (!brc_cut_next(&w->boxes))
        return 0;
    *box = w->boxes.sel;
    return 1;
}

static int read_fixed_box(chunk_writer *w, const brc_sel *box, brc_error *err)
{
    uint64_t bytes;
    size_t len;
    if (!brc_shape_bytes(box->ndim, box->count, w->meta.type->item_size, &bytes) ||
        !brc_to_size(bytes, &len))
        return brc_fail(err, BRC_ELIMIT, "a chunk has more bytes than memory can hold");
    if (len > w->room) { /* usually the first box is the largest */
        free(w->data);
        w->data = NULL;
        w->room = 0;
        BRC_TRY(brc_new_big((void **)&w->data, len, err));
        w->room = len;
    }
    BRC_TRY(w->from->read(w->from->ctx, box, w->data, len, err));
    brc_dtype_native(w->meta.type, w->data, len);
    return brc_chunk_cut(&w->cutter, box, (brc_span){ w->data, len }, err);
}

static int convert_box(chunk_writer *w, const brc_sel *box, brc_error *err)
{
    if (!brc_meta_is_variable(&w->meta))
        return read_fixed_box(w, box, err);
    w->elements.len = 0;
    BRC_TRY(w->from->read_elements(w->from->ctx, box, &w->elements, err));
    return brc_chunk_cut(&w->cutter, box, (brc_span){ w->elements.data, w->elements.len }, err);
}

static int convert_elements(chunk_writer *w, brc_error *err)
{
    const brc_meta *m = &w->meta;
    brc_sel box = BRC_SEL_INIT;
    int rc;
    w->cutter = (brc_chunk_cutter){ .ndim = m->ndim,
                                    .shape = m->shape,
                                    .chunk = m->grid.chunk,
                                    .item = m->type->item_size,
                                    .fill = { m->fill.data, m->fill.len },
                                    .ctx = w,
                                    .put = encode_chunk };
    brc_sel_of_shape(&box, m->ndim, m->shape);
    brc_cut_chunks(&w->boxes, &box, m->grid.chunk, m->type->item_size, BOX_BYTES);
    while ((rc = next_read_box(w, &box, err)) > 0)
        BRC_TRY(convert_box(w, &box, err));
    return rc;
}

static int pass_stored(chunk_writer *w, brc_error *err)
{
    uint64_t index[BRC_MAX_NDIM];
    brc_stored_in stored;
    int rc;
    while ((rc = w->from->next_chunk(w->from->ctx, index, &stored, err)) > 0)
        BRC_TRY(put_stored(w, index, &stored, err));
    return rc;
}

static int pass_elements(chunk_writer *w, brc_error *err)
{
    BRC_TRY(brc_buf_text(&w->key, BRC_STREAM_ELEMENTS, err));
    BRC_TRY(brc_buf_terminate(&w->key, err));
    return brc_tar_put_range(w->c->out, (const char *)w->key.data, w->from->elements, err);
}

/* Returns whether the array need not be read: the import fails anyway, and elements that pass as
 * they are stored cannot name another part. */
static int is_idle(const chunk_writer *w)
{
    return w->c->parts.n > 0 && !w->c->skips && w->from->codecs;
}

static int put_array_data(chunk_writer *w, brc_error *err)
{
    if (is_idle(w))
        return BRC_OK;
    if (w->from->elements)
        return pass_elements(w, err);
    return w->from->codecs ? pass_stored(w, err) : convert_elements(w, err);
}

static int convert_chunks(brc_convert *c, const brc_array_in *from, const brc_json *doc, int dry,
                          brc_error *err)
{
    chunk_writer *w;
    int rc;
    BRC_TRY(brc_new((void **)&w, sizeof(*w), err));
    w->c = c;
    w->from = from;
    w->dry = dry;
    BRC_GO(brc_meta_open(&w->meta, c->registry, doc, err));
    BRC_GO(brc_meta_must_encode(&w->meta, err));
    BRC_GO(brc_meta_form(&w->meta, w->meta.grid.chunk, &w->form, err));
    BRC_GO(start_key(&w->key, from->path, err));
    w->key_base = w->key.len;
    rc = put_array_data(w, err);
done:
    free(w->data);
    brc_chunk_cutter_dispose(&w->cutter);
    brc_buf_dispose(&w->key);
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
    if (c->phase == BRC_CONVERT_CHUNKS)
        rc = convert_chunks(c, array, doc, 0, err);
    else if (array->doubtful && c->skips)
        rc = convert_chunks(c, array, doc, 1, err);
    if (rc == BRC_OK && c->phase == BRC_CONVERT_DOCS)
        rc = convert_document(c, array->path, doc, err);
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
    if (c->parts.n > 0 && !c->skips)
        rc = brc_parts_fail(&c->parts, c->file, err);
    else
        rc = brc_tar_finish(c->out, err);
done:
    driver->close(state);
    return rc;
}
