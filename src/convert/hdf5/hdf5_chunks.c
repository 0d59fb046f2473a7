/*
 * Finds the stored chunks of a dataset. A header of a few bytes may describe more elements than can
 * ever be read, so the import reads only the chunks that the file stores.
 */
#include "hdf5_chunks.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../codec/chain.h"

/* ==== hdf5 chunks ================================ */

/* The most chunks that are listed by number: to find the i-th stored chunk, the library walks past
 * all chunks before it. */
#define LISTED_MAX 20000
/* The most chunks of a grid that are looked up one by one, where there are too many to list. */
#define GRID_MAX ((uint64_t)1 << 24)

typedef struct chunk_search {
    brc_hdf5_stored *out;
    hid_t dataset, space;
    int ndim;
    const uint64_t *shape, *chunk;
    uint64_t grid[BRC_MAX_NDIM];
    int exact;
    const char *label;
} chunk_search;

static int chunks_failed(const chunk_search *s, brc_error *err)
{
    return brc_hdf5_fail(err, BRC_EINVAL, "%s: its chunks cannot be found", s->label);
}

static int add_corner(const chunk_search *s, const hsize_t *corner, brc_error *err)
{
    uint64_t *to = s->out->corners + s->out->n * (size_t)s->ndim;
    for (int i = 0; i < s->ndim; i++) {
        if (corner[i] >= s->shape[i]) /* the dataset became smaller after the write */
            return BRC_OK;
        if (corner[i] % s->chunk[i] != 0)
            return brc_fail(err, BRC_EINVAL, "%s: a chunk in it begins within another", s->label);
        to[i] = corner[i];
    }
    s->out->n++;
    return BRC_OK;
}

static int list_chunks(const chunk_search *s, uint64_t n, brc_error *err)
{
    BRC_TRY(brc_new_array((void **)&s->out->corners, (size_t)n, (size_t)s->ndim * sizeof(uint64_t),
                          err));
    for (uint64_t i = 0; i < n; i++) {
        hsize_t corner[BRC_MAX_NDIM + 1] = { 0 }, size;
        haddr_t at;
        unsigned mask;
        if (H5Dget_chunk_info(s->dataset, s->space, i, corner, &mask, &at, &size) < 0)
            return chunks_failed(s, err);
        BRC_TRY(add_corner(s, corner, err));
    }
    return BRC_OK;
}

static int ask_for_chunks(const chunk_search *s, uint64_t n, brc_error *err)
{
    uint64_t index[BRC_MAX_NDIM] = { 0 }, found = 0;
    BRC_TRY(brc_new_array((void **)&s->out->corners, (size_t)n, (size_t)s->ndim * sizeof(uint64_t),
                          err));
    do {
        hsize_t corner[BRC_MAX_NDIM];
        brc_hdf5_chunk there;
        for (int i = 0; i < s->ndim; i++)
            corner[i] = index[i] * s->chunk[i];
        BRC_TRY(brc_hdf5_chunk_find(&there, s->dataset, corner, s->label, err));
        if (there.bytes > 0 && found++ < n)
            BRC_TRY(add_corner(s, corner, err));
    } while (brc_index_next(s->ndim, index, s->grid));
    if (found != n)
        return brc_fail(err, BRC_EINVAL, "%s has %llu chunk%s, but %llu can be found", s->label,
                        (unsigned long long)n, n == 1 ? "" : "s", (unsigned long long)found);
    return BRC_OK;
}

int brc_hdf5_is_written(hid_t dataset)
{
    return H5Dget_storage_size(dataset) > 0 || H5Dget_offset(dataset) != HADDR_UNDEF;
}

int brc_hdf5_is_virtual(hid_t dataset)
{
    hid_t plist = H5Dget_create_plist(dataset);
    int is = plist >= 0 && H5Pget_layout(plist) == H5D_VIRTUAL;
    brc_hdf5_close(plist);
    return is;
}

int brc_hdf5_chunk_find(brc_hdf5_chunk *out, hid_t dataset, const hsize_t *corner,
                        const char *label, brc_error *err)
{
    *out = (brc_hdf5_chunk){ .at = HADDR_UNDEF };
    if (H5Dget_chunk_info_by_coord(dataset, corner, &out->mask, &out->at, &out->bytes) < 0)
        return brc_hdf5_fail(err, BRC_EINVAL, "%s: one of its chunks cannot be found", label);
    if (out->at == HADDR_UNDEF)
        out->bytes = 0;
    return BRC_OK;
}

void brc_hdf5_stored_free(brc_hdf5_stored *stored)
{
    free(stored->corners);
    memset(stored, 0, sizeof(*stored));
}

static int find_chunks(chunk_search *s, brc_error *err)
{
    hsize_t n = 0;
    if (H5Dget_num_chunks(s->dataset, s->space, &n) < 0)
        return chunks_failed(s, err);
    for (int i = 0; i < s->ndim; i++)
        s->grid[i] = brc_grid_extent(s->shape[i], s->chunk[i]);
    uint64_t all = brc_shape_count(s->ndim, s->grid);
    s->out->complete = n == all;
    s->out->all = n == all || (!s->exact && all / 4 <= n && n > 0);
    if (s->out->all || n == 0)
        return BRC_OK;
    if (n <= LISTED_MAX)
        return list_chunks(s, n, err);
    if (all <= GRID_MAX || all / 4 <= n)
        return ask_for_chunks(s, n, err);
    return brc_fail(err, BRC_ELIMIT,
                    "%s has %llu chunks in a grid of %llu, too sparse for this build: write it "
                    "with larger chunks",
                    s->label, (unsigned long long)n, (unsigned long long)all);
}

int brc_hdf5_stored_read(brc_hdf5_stored *out, hid_t dataset, int ndim, const uint64_t *shape,
                         const uint64_t *chunk, int exact, const char *label, brc_error *err)
{
    chunk_search s = { .out = out,
                       .dataset = dataset,
                       .ndim = ndim,
                       .shape = shape,
                       .chunk = chunk,
                       .exact = exact,
                       .label = label };
    memset(out, 0, sizeof(*out));
    if (brc_shape_count(ndim, shape) == 0)
        return BRC_OK;
    if (!chunk) {
        out->all = out->complete =
            brc_hdf5_is_virtual(dataset) || brc_hdf5_is_written(dataset);
        return BRC_OK;
    }
    s.space = H5Dget_space(dataset);
    int rc = s.space < 0 ? chunks_failed(&s, err) : find_chunks(&s, err);
    brc_hdf5_close(s.space);
    if (rc < 0)
        brc_hdf5_stored_free(out);
    return rc;
}

int brc_hdf5_stored_next(brc_hdf5_stored *stored, int ndim, int array_ndim, const uint64_t *shape,
                         const uint64_t *chunk, brc_sel *box)
{
    if (stored->at == stored->n)
        return 0;
    const uint64_t *corner = stored->corners + stored->at++ * (size_t)ndim;
    *box = (brc_sel)BRC_SEL_INIT;
    box->ndim = array_ndim;
    for (int i = 0; i < array_ndim; i++) {
        uint64_t first = i < ndim ? corner[i] : 0, left = shape[i] - first;
        uint64_t whole = i < ndim ? chunk[i] : shape[i];
        box->start[i] = first;
        box->count[i] = left < whole ? left : whole;
        box->step[i] = 1;
    }
    return 1;
}

/* ---- places in the file -------------------------------- */

#define TRIAL_BLOCK ((hsize_t)1 << 20) /* larger than everything that follows the block */

/* Finds out whether this build of the library adds the length of the user block to a chunk's
 * address, by a trial file in memory. Version 1.10 does not add the length, later versions do. */
static int library_adds_block(int *adds, brc_error *err)
{
    hsize_t one = 1, corner = 0;
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), create = H5Pcreate(H5P_FILE_CREATE);
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, &one, NULL);
    hid_t file = BRC_HDF5_NONE, set = BRC_HDF5_NONE;
    brc_hdf5_chunk chunk = { .bytes = 0 };
    int rc = BRC_OK;

    if (H5Pset_fapl_core(access, 4096, 0) >= 0 && H5Pset_userblock(create, TRIAL_BLOCK) >= 0 &&
        H5Pset_chunk(plist, 1, &one) >= 0 && H5Pset_alloc_time(plist, H5D_ALLOC_TIME_EARLY) >= 0)
        file = H5Fcreate("trial", H5F_ACC_TRUNC, create, access);
    if (file >= 0)
        set = H5Dcreate2(file, "d", H5T_NATIVE_UINT8, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    if (set >= 0)
        rc = brc_hdf5_chunk_find(&chunk, set, &corner, "a file in memory", err);
    if (rc == BRC_OK && chunk.bytes == 0)
        rc = brc_hdf5_fail(err, BRC_EINTERNAL, "a file in memory cannot be made");
    *adds = chunk.at >= TRIAL_BLOCK;
    const hid_t ids[] = { set, file, space, plist, create, access };
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
        brc_hdf5_close(ids[i]);
    return rc;
}

/* Finds the number to add to a chunk's address to get its place in the file. *known is 0 if chunks
 * have no such place, because the library does not read the dataset's file by itself. */
static int hdf5_base(uint64_t *base, int *known, hid_t dataset, brc_error *err)
{
    hid_t file = H5Iget_file_id(dataset);
    hid_t create = H5Fget_create_plist(file), access = H5Fget_access_plist(file);
    hsize_t block = 0;
    int adds = 0, rc = BRC_OK;

    *known = H5Pget_driver(access) == H5FD_SEC2 && H5Pget_userblock(create, &block) >= 0;
    if (*known && block > 0)
        rc = library_adds_block(&adds, err);
    *base = adds ? 0 : block;
    brc_hdf5_close(access);
    brc_hdf5_close(create);
    brc_hdf5_close(file);
    return rc;
}

/* ==== hdf5 pass ================================ */

/*
 * HDF5 may leave out a filter for a single chunk, for example if the filter would not make the
 * chunk smaller. The converter decodes such a chunk, and encodes the chunk again with all filters,
 * at the level that costs the least.
 */

#define FILTERS_MAX 8

/* The registered numbers of filters that are not part of the library. */
enum { FILTER_BZIP2 = 307, FILTER_LZF = 32000, FILTER_BLOSC = 32001, FILTER_ZSTD = 32015 };

/* The codecs of chunks whose filters in `mask` were left out. */
typedef struct filter_chain {
    unsigned mask;
    brc_chain *chain;
} filter_chain;

struct brc_hdf5_pass {
    brc_hdf5_layout layout;
    unsigned nfilters;
    int raw_edges;            /* chunks at the array's edge have no filters           */
    brc_buf filters[FILTERS_MAX]; /* the codec of each filter */
    brc_buf codecs;           /* JSON: the list of all codecs */
    filter_chain *chains;
    size_t nchains, chains_cap;
    brc_dtype *byte;
    brc_scratch *scratch;
    uint64_t bytes;           /* of a chunk before the filters */
    uint64_t grid[BRC_MAX_NDIM], at[BRC_MAX_NDIM];
    int begun;
    brc_buf stored, decoded, encoded;
    int refers;               /* long chunks are sent as places, from `base` on */
    uint64_t base;
    brc_tar_range elements;   /* all elements, if the dataset has no chunks */
};

/* ---- types -------------------------------- */

/* Returns 1 if elements are the same in the file and in memory, except perhaps for the byte order
 * (*swapped); 0 if the library has to convert the elements. */
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

/* Compares an enum by its integers. */
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

/* Sets *out to the codec that turns the file's bytes into elements, or leaves *out empty if there
 * is no such codec. */
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

/* Makes the codec of a filter. Levels that the file lacks are the cheapest, because they matter
 * only for encoding. */
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
    case FILTER_LZF:
        return brc_buf_text(out,
                            "{\"name\":\"imagecodecs_lzf\",\"configuration\":{\"header\":false}}",
                            err);
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
        return BRC_OK; /* Zarr has no codec for this filter */
    }
}

/* Tells whether bytes keep the length that the array gives them: LZF needs it to decode. */
static int keeps_length(H5Z_filter_t id)
{
    return id == H5Z_FILTER_SHUFFLE || id == H5Z_FILTER_FLETCHER32;
}

/* Sets *known to 1 if there is a codec for each filter. */
static int read_filters(brc_hdf5_pass *pass, int *known, brc_error *err)
{
    hid_t plist = pass->layout.plist;
    unsigned options = 0;
    int n = H5Pget_nfilters(plist), varies = 0;
    *known = n >= 0 && n <= FILTERS_MAX;
    for (int i = 0; i < n && *known; i++) {
        unsigned flags = 0, config = 0, values[4] = { 0 };
        size_t count = 4;
        H5Z_filter_t id =
            H5Pget_filter2(plist, (unsigned)i, &flags, &count, values, 0, NULL, &config);
        BRC_TRY(filter_codec(&pass->filters[i], id, count > 0 ? values[0] : 0, err));
        *known = pass->filters[i].len > 0 && !(id == FILTER_LZF && varies);
        varies |= !keeps_length(id);
    }
    pass->nfilters = *known ? (unsigned)n : 0;
    if (*known && H5Pget_chunk_opts(plist, &options) >= 0)
        pass->raw_edges = (options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) != 0;
    return BRC_OK;
}

/* Writes the list of codecs: `first`, which makes bytes of elements, and the filters that are not
 * in `mask`. */
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

/* Returns whether the elements lie in the file in one piece that is worth a reference, and sets
 * pass->elements to the piece. */
static int is_in_one_piece(brc_hdf5_pass *pass)
{
    const brc_hdf5_layout *l = &pass->layout;
    uint64_t bytes;
    if (!pass->refers || H5Pget_layout(l->plist) != H5D_CONTIGUOUS ||
        H5Pget_external_count(l->plist) != 0 ||
        !brc_shape_bytes(l->array_ndim, l->shape, l->item, &bytes) ||
        bytes < l->refers_from || H5Dget_storage_size(l->dataset) < bytes)
        return 0;
    haddr_t at = H5Dget_offset(l->dataset); /* includes the user block */
    pass->elements = (brc_tar_range){ at, bytes, 0, 1 };
    return at != HADDR_UNDEF && brc_tar_range_bytes(&pass->elements, &bytes);
}

/* Sets *can to 1 if stored chunks can pass as they are. */
static int look_at_chunks(brc_hdf5_pass *pass, int *can, brc_error *err)
{
    const brc_hdf5_layout *l = &pass->layout;
    for (int i = 0; i < l->ndim; i++)
        pass->grid[i] = brc_grid_extent(l->shape[i], l->chunk[i]);
    BRC_TRY(read_filters(pass, can, err));
    *can = *can && brc_shape_bytes(l->array_ndim, l->chunk, l->item, &pass->bytes);
    if (!*can)
        return BRC_OK;
    BRC_TRY(brc_dtype_open(&pass->byte, l->reg, NULL, "uint8", err));
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
    BRC_GO(hdf5_base(&pass->base, &pass->refers, layout->dataset, err));
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
    BRC_GO(brc_json_parse(&json, (const char *)text.data, text.len, 0, err));
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
    BRC_GO(brc_chain_decode(some, pass->scratch, *bytes, NULL, &pass->decoded, err));
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

/* Reads the bytes of a chunk as stored, and adds the filters that were left out to *mask. */
static int read_filtered(brc_hdf5_pass *pass, const hsize_t *corner, size_t size, unsigned *mask,
                         brc_error *err)
{
    const brc_hdf5_layout *l = &pass->layout;
    uint32_t skipped = 0;
    pass->stored.len = 0;
    BRC_TRY(brc_buf_reserve(&pass->stored, size, err));
    if (H5Dread_chunk(l->dataset, H5P_DEFAULT, corner, &skipped, pass->stored.data) < 0)
        return brc_hdf5_fail(err, BRC_EINVAL, "%s: one of its chunks cannot be read", l->label);
    *mask |= skipped;
    return BRC_OK;
}

/* Returns 1 with the chunk's bytes, or with their place; 0 if the chunk is not stored. */
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
                   : brc_fail(err, BRC_EINVAL, "%s: one of its chunks is missing", l->label);
    if (chunk.bytes > 2 * pass->bytes + 65536) /* these filters make no chunk that much longer */
        return brc_fail(err, BRC_EINVAL, "%s: one of its chunks is longer than any valid chunk",
                        l->label);
    unsigned every = (1u << pass->nfilters) - 1;
    unsigned mask = pass->raw_edges && cut_at_edge(l, index) ? every : chunk.mask & every;
    out->range = (brc_tar_range){ chunk.at + pass->base, chunk.bytes, 0, 1 };
    out->refers = pass->refers && mask == 0 && chunk.bytes >= l->refers_from &&
                  brc_tar_range_bytes(&out->range, &bytes);
    if (out->refers)
        return 1;
    BRC_TRY(read_filtered(pass, corner, (size_t)chunk.bytes, &mask, err));
    out->bytes = (brc_span){ pass->stored.data, (size_t)chunk.bytes };
    if (mask & every)
        BRC_TRY(add_filters(pass, mask & every, &out->bytes, err));
    return 1;
}

/* Returns 1 with the next index of the grid or of the listed chunks, or 0 at the end. */
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
