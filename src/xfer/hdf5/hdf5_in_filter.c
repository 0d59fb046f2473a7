/*
 * Chunks of a dataset, read and decoded by ourselves.
 *
 * The library does not look whether a chunk, taken through its filters, has as many
 * bytes as it should: a short one lets it read memory that is not its own, and a stream
 * that never ends takes all there is. The filters that files have (shuffle, deflate,
 * fletcher32) are codecs here as well, whose result is of the right length or an error.
 * Chunks with other filters are left to the library.
 */
#include <stdlib.h>
#include <string.h>

#include "hdf5_in.h"

#define FILTERS_MAX 8

/* A filter of a chunk may be left out for that chunk: a bit in its mask. */
typedef struct filter_chain {
    unsigned mask;
    brc_chain *chain;
} filter_chain;

struct brc_hdf5_chunks {
    brc_hdf5_layout layout;
    unsigned nfilters;
    brc_buf codecs[FILTERS_MAX]; /* JSON of each                                    */
    filter_chain *chains;
    size_t nchains, chains_cap;
    brc_dtype *byte;
    brc_scratch *scratch;
    uint64_t elements, bytes; /* of a chunk, in the file                            */
    brc_buf stored, decoded;
    uint8_t *other; /* for the library's conversion                       */
};

/* ---- filters as codecs -------------------------------- */

static int filter_codec(brc_buf *out, H5Z_filter_t id, unsigned value, brc_error *err)
{
    switch (id) {
    case H5Z_FILTER_SHUFFLE:
        return brc_buf_printf(out, err,
                              "{\"name\":\"numcodecs.shuffle\",\"configuration\":"
                              "{\"elementsize\":%u}}",
                              value ? value : 1);
    case H5Z_FILTER_DEFLATE:
        return brc_buf_printf(out, err,
                              "{\"name\":\"numcodecs.zlib\",\"configuration\":{\"level\":1}}");
    case H5Z_FILTER_FLETCHER32:
        return brc_buf_printf(out, err, "{\"name\":\"numcodecs.fletcher32\"}");
    default:
        return BRC_OK; /* not ours */
    }
}

/* *ours: all of them are. */
static int read_filters(brc_hdf5_chunks *c, hid_t plist, int *ours, brc_error *err)
{
    const brc_hdf5 *lib = &c->layout.in->lib;
    int n = lib->H5Pget_nfilters(plist);
    *ours = n >= 0 && n <= FILTERS_MAX;
    for (int i = 0; i < n && *ours; i++) {
        unsigned flags = 0, config = 0, values[4] = { 0 };
        size_t count = 4;
        H5Z_filter_t id =
            lib->H5Pget_filter2(plist, (unsigned)i, &flags, &count, values, 0, NULL, &config);
        BRC_TRY(filter_codec(&c->codecs[i], id, count > 0 ? values[0] : 0, err));
        *ours = c->codecs[i].len > 0;
    }
    c->nfilters = *ours ? (unsigned)n : 0;
    return BRC_OK;
}

static int open_chain(brc_hdf5_chunks *c, unsigned mask, brc_chain **out, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    brc_json *json = NULL;
    int rc;
    BRC_GO(brc_buf_text(&text, "[{\"name\":\"bytes\"}", err));
    for (unsigned i = 0; i < c->nfilters; i++) {
        if (mask & 1u << i)
            continue;
        BRC_GO(brc_buf_byte(&text, ',', err));
        BRC_GO(brc_buf_append(&text, c->codecs[i].data, c->codecs[i].len, err));
    }
    BRC_GO(brc_buf_byte(&text, ']', err));
    BRC_GO(brc_json_parse(&json, (const char *)text.data, text.len, err));
    BRC_GO(brc_chain_open(out, c->layout.in->reg, json, 1, &c->bytes, c->byte,
                          (brc_span){ NULL, 0 }, err));
done:
    brc_json_free(json);
    brc_buf_dispose(&text);
    return rc;
}

static int find_chain(brc_hdf5_chunks *c, unsigned mask, brc_chain **out, brc_error *err)
{
    for (size_t i = 0; i < c->nchains; i++) {
        if (c->chains[i].mask == mask) {
            *out = c->chains[i].chain;
            return BRC_OK;
        }
    }
    BRC_TRY(brc_grow_array((void **)&c->chains, &c->chains_cap, c->nchains + 1, sizeof(*c->chains),
                           err));
    BRC_TRY(open_chain(c, mask, out, err));
    c->chains[c->nchains++] = (filter_chain){ mask, *out };
    return BRC_OK;
}

int brc_hdf5_chunks_open(brc_hdf5_chunks **out, const brc_hdf5_layout *layout, hid_t plist,
                         brc_error *err)
{
    brc_hdf5_chunks *c;
    size_t item = layout->file_size > layout->size ? layout->file_size : layout->size;
    uint64_t room = 0;
    int ours = 0, rc;

    *out = NULL;
    BRC_TRY(brc_new((void **)&c, sizeof(*c), err));
    c->layout = *layout;
    c->elements = brc_shape_count(layout->ndim, layout->chunk);
    int fits = brc_shape_bytes(layout->ndim, layout->chunk, item, &room) && room <= INT32_MAX;
    c->bytes = fits ? c->elements * layout->file_size : 0;
    BRC_GO(read_filters(c, plist, &ours, err));
    if (!fits && c->nfilters > 0) {
        rc =
            brc_fail(err, BRC_ELIMIT, "%s has compressed chunks of more than 2 GiB", layout->label);
        goto done;
    }
    if (!ours || !fits)
        goto done;
    BRC_GO(brc_dtype_open_name(&c->byte, layout->in->reg, "uint8", err));
    BRC_GO(brc_scratch_new(&c->scratch, err));
    *out = c;
    c = NULL;
done:
    brc_hdf5_chunks_close(c);
    return rc;
}

void brc_hdf5_chunks_close(brc_hdf5_chunks *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->nchains; i++)
        brc_chain_free(c->chains[i].chain);
    for (size_t i = 0; i < FILTERS_MAX; i++)
        brc_buf_dispose(&c->codecs[i]);
    free(c->chains);
    brc_scratch_free(c->scratch);
    brc_dtype_free(c->byte);
    brc_buf_dispose(&c->stored);
    brc_buf_dispose(&c->decoded);
    free(c->other);
    free(c);
}

/* ---- one chunk -------------------------------- */

static int chunk_failed(const brc_hdf5_chunks *c, brc_error *err)
{
    return brc_hdf5_fail(&c->layout.in->lib, err, BRC_EINVAL, "%s: a chunk of it cannot be read",
                         c->layout.label);
}

/* What is stored of the chunk, into c->stored. */
static int fetch_chunk(brc_hdf5_chunks *c, const hsize_t *corner, unsigned *mask, brc_error *err)
{
    const brc_hdf5 *lib = &c->layout.in->lib;
    hsize_t size = 0;
    uint32_t skipped = 0;
    if (lib->H5Dget_chunk_storage_size(c->layout.dataset, corner, &size) < 0)
        return chunk_failed(c, err);
    if (size > c->layout.in->heap->file_size)
        return brc_fail(err, BRC_EINVAL, "%s: a chunk of it is longer than the file",
                        c->layout.label);
    c->stored.len = 0;
    BRC_TRY(brc_buf_reserve(&c->stored, (size_t)size + 1, err));
    if (lib->H5Dread_chunk(c->layout.dataset, H5P_DEFAULT, corner, &skipped, c->stored.data) < 0)
        return chunk_failed(c, err);
    c->stored.len = (size_t)size;
    *mask = skipped & ((1u << c->nfilters) - 1);
    return BRC_OK;
}

/* From the file's types to those in memory, in c->decoded. */
static int convert_chunk(brc_hdf5_chunks *c, brc_error *err)
{
    const brc_hdf5_layout *l = &c->layout;
    size_t whole = (size_t)c->elements * l->size;
    if (l->memory < 0)
        return BRC_OK;
    if (whole > c->decoded.len)
        BRC_TRY(brc_buf_reserve(&c->decoded, whole - c->decoded.len, err));
    if (!c->other)
        BRC_TRY(brc_new_array((void **)&c->other, c->elements, l->size, err));
    if (l->in->lib.H5Tconvert(l->file_type, l->memory, c->elements, c->decoded.data, c->other,
                              H5P_DEFAULT) < 0)
        return chunk_failed(c, err);
    c->decoded.len = whole;
    return BRC_OK;
}

static int decode_chunk(brc_hdf5_chunks *c, const hsize_t *corner, brc_error *err)
{
    unsigned mask = 0;
    brc_chain *chain = NULL;
    BRC_TRY(fetch_chunk(c, corner, &mask, err));
    BRC_TRY(find_chain(c, mask, &chain, err));
    c->decoded.len = 0;
    int rc = brc_chain_decode(chain, c->scratch, (brc_span){ c->stored.data, c->stored.len },
                              &c->decoded, err);
    if (rc < 0) {
        brc_context(err, "%s: a chunk of it", c->layout.label);
        return rc == BRC_ECORRUPT && err ? (err->code = BRC_EINVAL) : rc;
    }
    return convert_chunk(c, err);
}

/* ---- a box -------------------------------- */

/* The chunk's part of the box. */
static int copy_from_chunk(brc_hdf5_chunks *c, const brc_sel *box, const uint64_t *index,
                           uint8_t *dst, brc_error *err)
{
    const brc_hdf5_layout *l = &c->layout;
    int64_t from[BRC_MAX_NDIM], to[BRC_MAX_NDIM], at = 0, into = 0, still[BRC_MAX_NDIM] = { 0 };
    hsize_t corner[BRC_MAX_NDIM];
    brc_overlap part;

    if (!brc_overlap_of(&part, box, l->shape, l->chunk, index))
        return BRC_OK;
    brc_strides_packed(l->ndim, l->chunk, l->size, from);
    brc_strides_packed(l->ndim, box->count, l->size, to);
    for (int i = 0; i < l->ndim; i++) {
        corner[i] = index[i] * l->chunk[i];
        at += (int64_t)part.in_chunk[i] * from[i];
        into += (int64_t)part.in_sel[i] * to[i];
    }
    if (!brc_hdf5_is_stored(l->stored, l->ndim, l->shape, l->chunk, index)) {
        brc_copy_box(l->ndim, part.count, l->size, dst + into, to, l->fill, still);
        return BRC_OK;
    }
    BRC_TRY(decode_chunk(c, corner, err));
    brc_copy_box(l->ndim, part.count, l->size, dst + into, to, c->decoded.data + at, from);
    return BRC_OK;
}

int brc_hdf5_chunks_read(brc_hdf5_chunks *c, const brc_sel *box, void *dst, brc_error *err)
{
    const brc_hdf5_layout *l = &c->layout;
    uint64_t first[BRC_MAX_NDIM], count[BRC_MAX_NDIM], step[BRC_MAX_NDIM] = { 0 };
    brc_sel own = *box;

    own.ndim = l->ndim; /* the axes of the dataset itself */
    for (int i = 0; i < l->ndim; i++) {
        if (box->count[i] == 0)
            return BRC_OK;
        first[i] = box->start[i] / l->chunk[i];
        count[i] = (box->start[i] + box->count[i] - 1) / l->chunk[i] - first[i] + 1;
    }
    do {
        uint64_t index[BRC_MAX_NDIM];
        for (int i = 0; i < l->ndim; i++)
            index[i] = first[i] + step[i];
        BRC_TRY(copy_from_chunk(c, &own, index, dst, err));
    } while (brc_index_next(l->ndim, step, count));
    return BRC_OK;
}
