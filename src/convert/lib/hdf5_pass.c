/*
 * A filter may be left out for one chunk: where it would not have made it smaller, say. Such a
 * chunk is decoded here, and encoded again with all of them, at the level that costs the least.
 */
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../codec/chain.h"
#include "hdf5_pass.h"

#define FILTERS_MAX 8

/* The registered numbers of filters that are not part of the library. */
enum { FILTER_BZIP2 = 307, FILTER_BLOSC = 32001, FILTER_ZSTD = 32015 };

/* A filter of a chunk may be left out for that chunk: a bit in its mask. */
typedef struct filter_chain {
    unsigned mask;
    brc_chain *chain;
} filter_chain;

struct brc_hdf5_pass {
    brc_hdf5_layout layout;
    unsigned nfilters;
    int raw_edges;            /* chunks at the array's edge have no filters           */
    brc_buf filters[FILTERS_MAX]; /* each as a codec                                  */
    brc_buf codecs;           /* the list                                             */
    filter_chain *chains;
    size_t nchains, chains_cap;
    brc_dtype *byte;
    brc_scratch *scratch;
    uint64_t bytes;           /* of a chunk without filters                           */
    uint64_t grid[BRC_MAX_NDIM], at[BRC_MAX_NDIM];
    int begun;
    brc_buf stored, decoded, encoded;
    int refers;               /* long chunks are named by their place: at `base` and on */
    uint64_t base;
    brc_tar_range elements;   /* all of them, which are in no chunks                    */
};

/* ---- types -------------------------------- */

/* 1 if the elements in the file are those in memory, or those in the other byte order
 * (*swapped); 0 if the library has to convert them. */
static int is_same_number(hid_t file, hid_t memory, int *swapped)
{
    hid_t other = H5Tcopy(memory);
    H5T_order_t order = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? H5T_ORDER_LE : H5T_ORDER_BE;
    int same = other >= 0 && H5Tset_order(other, order) >= 0 && H5Tequal(file, other) > 0;
    brc_hdf5_close(other);
    *swapped = same;
    return same;
}

static int is_same_type(hid_t file, hid_t memory, int *swapped);

static int is_same_super(hid_t file, hid_t memory, int *swapped)
{
    int is_array = H5Tget_class(memory) == H5T_ARRAY;
    hid_t inner = H5Tget_super(file), wanted = is_array ? H5Tget_super(memory) : memory;
    int same = inner >= 0 && wanted >= 0 && is_same_type(inner, wanted, swapped);
    brc_hdf5_close(inner);
    if (is_array)
        brc_hdf5_close(wanted);
    return same;
}

/* An enum is read as its integers. */
static int is_same_type(hid_t file, hid_t memory, int *swapped)
{
    *swapped = 0;
    if (H5Tequal(file, memory) > 0)
        return 1;
    switch (H5Tget_class(file)) {
    case H5T_INTEGER:
    case H5T_FLOAT:
    case H5T_BITFIELD:
        return is_same_number(file, memory, swapped);
    case H5T_ENUM:
    case H5T_ARRAY:
        return is_same_super(file, memory, swapped);
    default:
        return 0;
    }
}

/* *out: the codec that makes elements of the file's bytes; empty where none does. */
static int bytes_codec(brc_buf *out, const brc_hdf5_layout *l, brc_error *err)
{
    int swapped, big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    if (!is_same_type(l->file_type, l->memory, &swapped))
        return BRC_OK;
    big ^= swapped ^ l->swap;
    if (l->dtype->swap_unit <= 1 && l->dtype->klass != BRC_CLASS_STRUCT)
        return brc_buf_text(out, "{\"name\":\"bytes\"}", err);
    return brc_buf_printf(out, err, "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"%s\"}}",
                          big ? "big" : "little");
}

/* ---- filters as codecs -------------------------------- */

/* Levels are for encoding alone. */
static int filter_codec(brc_buf *out, H5Z_filter_t id, unsigned value, brc_error *err)
{
    switch (id) {
    case H5Z_FILTER_SHUFFLE:
        return brc_buf_printf(out, err,
                              "{\"name\":\"numcodecs.shuffle\",\"configuration\":"
                              "{\"elementsize\":%u}}",
                              value ? value : 1);
    case H5Z_FILTER_DEFLATE:
        return brc_buf_text(out, "{\"name\":\"numcodecs.zlib\",\"configuration\":{\"level\":0}}",
                            err);
    case H5Z_FILTER_FLETCHER32:
        return brc_buf_text(out, "{\"name\":\"numcodecs.fletcher32\"}", err);
    case FILTER_BZIP2:
        return brc_buf_text(out, "{\"name\":\"numcodecs.bz2\",\"configuration\":{\"level\":1}}",
                            err);
    case FILTER_ZSTD:
        return brc_buf_text(out,
                            "{\"name\":\"zstd\","
                            "\"configuration\":{\"level\":1,\"checksum\":false}}",
                            err);
    case FILTER_BLOSC:
        return brc_buf_text(out,
                            "{\"name\":\"blosc\",\"configuration\":{\"cname\":\"lz4\",\"clevel\":1,"
                            "\"shuffle\":\"noshuffle\",\"typesize\":1,\"blocksize\":0}}",
                            err);
    default:
        return BRC_OK; /* Zarr has none */
    }
}

/* *known: all of them are. */
static int read_filters(brc_hdf5_pass *pass, int *known, brc_error *err)
{
    hid_t plist = pass->layout.plist;
    unsigned options = 0;
    int n = H5Pget_nfilters(plist);
    *known = n >= 0 && n <= FILTERS_MAX;
    for (int i = 0; i < n && *known; i++) {
        unsigned flags = 0, config = 0, values[4] = { 0 };
        size_t count = 4;
        H5Z_filter_t id =
            H5Pget_filter2(plist, (unsigned)i, &flags, &count, values, 0, NULL, &config);
        BRC_TRY(filter_codec(&pass->filters[i], id, count > 0 ? values[0] : 0, err));
        *known = pass->filters[i].len > 0;
    }
    pass->nfilters = *known ? (unsigned)n : 0;
    if (*known && H5Pget_chunk_opts(plist, &options) >= 0)
        pass->raw_edges = (options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) != 0;
    return BRC_OK;
}

/* The list without the filters of a mask, behind a codec for the elements. */
static int codec_list(brc_buf *out, const brc_hdf5_pass *pass, const char *first, unsigned mask,
                      brc_error *err)
{
    BRC_TRY(brc_buf_byte(out, '[', err));
    BRC_TRY(brc_buf_text(out, first, err));
    for (unsigned i = 0; i < pass->nfilters; i++) {
        if (mask & 1u << i)
            continue;
        BRC_TRY(brc_buf_byte(out, ',', err));
        BRC_TRY(brc_buf_append(out, pass->filters[i].data, pass->filters[i].len, err));
    }
    BRC_TRY(brc_buf_byte(out, ']', err));
    return brc_buf_terminate(out, err);
}

/* Whether the elements lie in the file in one piece that is worth a reference, and which. */
static int is_in_one_piece(brc_hdf5_pass *pass)
{
    const brc_hdf5_layout *l = &pass->layout;
    uint64_t bytes;
    if (!pass->refers || H5Pget_layout(l->plist) != H5D_CONTIGUOUS ||
        H5Pget_external_count(l->plist) != 0 ||
        !brc_shape_bytes(l->array_ndim, l->shape, l->item, &bytes) ||
        bytes < BRC_CONVERT_REFERRED_LEAST || H5Dget_storage_size(l->dataset) < bytes)
        return 0;
    haddr_t at = H5Dget_offset(l->dataset); /* with the user block */
    pass->elements = (brc_tar_range){ at, bytes, 0, 1 };
    return at != HADDR_UNDEF && brc_tar_range_bytes(&pass->elements, &bytes);
}

/* *can: what is stored passes. */
static int look_at_chunks(brc_hdf5_pass *pass, int *can, brc_error *err)
{
    const brc_hdf5_layout *l = &pass->layout;
    for (int i = 0; i < l->ndim; i++)
        pass->grid[i] = brc_grid_extent(l->shape[i], l->chunk[i]);
    BRC_TRY(read_filters(pass, can, err));
    *can = *can && brc_shape_bytes(l->array_ndim, l->chunk, l->item, &pass->bytes);
    if (!*can)
        return BRC_OK;
    BRC_TRY(brc_dtype_open_name(&pass->byte, l->reg, "uint8", err));
    return brc_scratch_new(&pass->scratch, err);
}

int brc_hdf5_pass_open(brc_hdf5_pass **out, const brc_hdf5_layout *layout, brc_error *err)
{
    brc_hdf5_pass *pass;
    brc_buf first = BRC_BUF_INIT;
    int can, rc;

    *out = NULL;
    BRC_TRY(brc_new((void **)&pass, sizeof(*pass), err));
    pass->layout = *layout;
    BRC_GO(bytes_codec(&first, layout, err));
    if (first.len == 0)
        goto done;
    BRC_GO(brc_buf_terminate(&first, err));
    BRC_GO(brc_hdf5_base(&pass->base, &pass->refers, layout->dataset, err));
    pass->refers &= !layout->elsewhere;
    if (layout->chunk)
        BRC_GO(look_at_chunks(pass, &can, err));
    else
        can = is_in_one_piece(pass);
    if (!can)
        goto done;
    BRC_GO(codec_list(&pass->codecs, pass, (const char *)first.data, 0, err));
    *out = pass;
    pass = NULL;
done:
    brc_buf_dispose(&first);
    brc_hdf5_pass_close(pass);
    return rc;
}

void brc_hdf5_pass_close(brc_hdf5_pass *pass)
{
    if (!pass)
        return;
    for (size_t i = 0; i < pass->nchains; i++)
        brc_chain_free(pass->chains[i].chain);
    free(pass->chains);
    for (size_t i = 0; i < FILTERS_MAX; i++)
        brc_buf_dispose(&pass->filters[i]);
    brc_buf_dispose(&pass->codecs);
    brc_buf_dispose(&pass->stored);
    brc_buf_dispose(&pass->decoded);
    brc_buf_dispose(&pass->encoded);
    brc_scratch_free(pass->scratch);
    brc_dtype_free(pass->byte);
    free(pass);
}

void brc_hdf5_pass_describe(const brc_hdf5_pass *pass, brc_array_in *array)
{
    array->codecs = (const char *)pass->codecs.data;
    array->elements = pass->layout.chunk ? NULL : &pass->elements;
}

/* ---- a chunk whose filters were left out -------------------------------- */

static int open_chain(brc_hdf5_pass *pass, unsigned mask, brc_chain **out, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    brc_json *json = NULL;
    int rc;
    BRC_GO(codec_list(&text, pass, "{\"name\":\"bytes\"}", mask, err));
    BRC_GO(brc_json_parse(&json, (const char *)text.data, text.len, err));
    rc = brc_chain_open(out, pass->layout.reg, json, 1, &pass->bytes, pass->byte,
                        (brc_span){ NULL, 0 }, err);
done:
    brc_json_free(json);
    brc_buf_dispose(&text);
    return rc;
}

static int find_chain(brc_hdf5_pass *pass, unsigned mask, brc_chain **out, brc_error *err)
{
    for (size_t i = 0; i < pass->nchains; i++) {
        if (pass->chains[i].mask == mask) {
            *out = pass->chains[i].chain;
            return BRC_OK;
        }
    }
    BRC_TRY(brc_grow_array((void **)&pass->chains, &pass->chains_cap, pass->nchains + 1,
                           sizeof(*pass->chains), err));
    BRC_TRY(open_chain(pass, mask, out, err));
    pass->chains[pass->nchains++] = (filter_chain){ mask, *out };
    return BRC_OK;
}

static int add_filters(brc_hdf5_pass *pass, unsigned mask, brc_span *bytes, brc_error *err)
{
    brc_chain *some, *all;
    int rc;
    BRC_TRY(find_chain(pass, mask, &some, err));
    BRC_TRY(find_chain(pass, 0, &all, err));
    pass->decoded.len = pass->encoded.len = 0;
    BRC_GO(brc_chain_decode(some, pass->scratch, *bytes, &pass->decoded, err));
    BRC_GO(brc_chain_encode(all, pass->scratch,
                            (brc_span){ pass->decoded.data, pass->decoded.len }, &pass->encoded,
                            err));
    *bytes = (brc_span){ pass->encoded.data, pass->encoded.len };
done:
    if (rc < 0)
        brc_context(err, "%s: a chunk of it", pass->layout.label);
    if (rc == BRC_ECORRUPT && err)
        brc_error_recode(err, BRC_EINVAL);
    return rc == BRC_ECORRUPT ? BRC_EINVAL : rc;
}

/* ---- chunks, one after the other -------------------------------- */

static int cut_at_edge(const brc_hdf5_layout *l, const uint64_t *index)
{
    for (int i = 0; i < l->ndim; i++)
        if (l->shape[i] - index[i] * l->chunk[i] < l->chunk[i])
            return 1;
    return 0;
}

/* The chunk's bytes, with all filters. */
static int read_filtered(brc_hdf5_pass *pass, const hsize_t *corner, size_t size, unsigned *mask,
                         brc_error *err)
{
    const brc_hdf5_layout *l = &pass->layout;
    uint32_t skipped = 0;
    pass->stored.len = 0;
    BRC_TRY(brc_buf_reserve(&pass->stored, size, err));
    if (H5Dread_chunk(l->dataset, H5P_DEFAULT, corner, &skipped, pass->stored.data) < 0)
        return brc_hdf5_fail(err, BRC_EINVAL, "%s: a chunk of it cannot be read", l->label);
    *mask |= skipped;
    return BRC_OK;
}

/* 1 and the bytes, or where they are; 0 where this chunk is not stored. */
static int fetch_chunk(brc_hdf5_pass *pass, const uint64_t *index, brc_stored_in *out,
                       brc_error *err)
{
    const brc_hdf5_layout *l = &pass->layout;
    hsize_t corner[BRC_MAX_NDIM];
    brc_hdf5_chunk chunk;
    uint64_t bytes;

    *out = (brc_stored_in){ .refers = 0 };
    for (int i = 0; i < l->ndim; i++)
        corner[i] = index[i] * l->chunk[i];
    BRC_TRY(brc_hdf5_chunk_find(&chunk, l->dataset, corner, l->label, err));
    if (chunk.bytes == 0)
        return l->has_gaps
                   ? 0
                   : brc_fail(err, BRC_EINVAL, "%s: a chunk of it is missing", l->label);
    if (chunk.bytes > 2 * pass->bytes + 65536) /* no filter of these makes so much of it */
        return brc_fail(err, BRC_EINVAL, "%s: a chunk of it is longer than any valid one",
                        l->label);
    unsigned every = (1u << pass->nfilters) - 1;
    unsigned mask = pass->raw_edges && cut_at_edge(l, index) ? every : chunk.mask & every;
    out->range = (brc_tar_range){ chunk.at + pass->base, chunk.bytes, 0, 1 };
    out->refers = pass->refers && mask == 0 && chunk.bytes >= BRC_CONVERT_REFERRED_LEAST &&
                  brc_tar_range_bytes(&out->range, &bytes);
    if (out->refers)
        return 1;
    BRC_TRY(read_filtered(pass, corner, (size_t)chunk.bytes, &mask, err));
    out->bytes = (brc_span){ pass->stored.data, (size_t)chunk.bytes };
    if (mask & every)
        BRC_TRY(add_filters(pass, mask & every, &out->bytes, err));
    return 1;
}

/* The next index of the grid, or of the chunks that are listed; 0: there is none. */
static int next_index(brc_hdf5_pass *pass, brc_hdf5_stored *stored, uint64_t *index)
{
    const brc_hdf5_layout *l = &pass->layout;
    if (stored->all) {
        if (pass->begun && !brc_index_next(l->ndim, pass->at, pass->grid))
            return 0;
        pass->begun = 1;
        memcpy(index, pass->at, (size_t)l->ndim * sizeof(*index));
    } else {
        if (stored->at == stored->n)
            return 0;
        const uint64_t *corner = stored->corners + stored->at++ * (size_t)l->ndim;
        for (int i = 0; i < l->ndim; i++)
            index[i] = corner[i] / l->chunk[i];
    }
    for (int i = l->ndim; i < l->array_ndim; i++)
        index[i] = 0;
    return 1;
}

int brc_hdf5_pass_next(brc_hdf5_pass *pass, brc_hdf5_stored *stored, uint64_t *index,
                       brc_stored_in *bytes, brc_error *err)
{
    while (next_index(pass, stored, index)) {
        int rc = fetch_chunk(pass, index, bytes, err);
        if (rc != 0)
            return rc;
    }
    return 0;
}
