/*
 * Checks the global heap, see hdf5_heap.h. The bytes ("HDF5 File Format Specification", III.E and
 * VIII.A.3):
 *
 *   an element      u32 length in items, address of a collection, u32 number of an object in it
 *   a region        address and number alone
 *   a collection    "GCOL", u8 1, 3 bytes 0, its size; then objects
 *   an object       u16 number (0: the rest is free), u16, u32, its size; its bytes, padded to a
 *                   multiple of 8
 *
 * The file's header says how many bytes addresses and sizes have.
 */
#include "hdf5_heap.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/file.h"
#include "hdf5_chunks.h"

enum {
    COLLECTIONS = 4, /* collections kept in memory: lists in lists alternate between a few */
    DEEPEST = 32,    /* levels of types in one another */
    UNSET = -1
};
#define MOST_HEAP ((uint64_t)1 << 31)

typedef struct heap_object {
    uint64_t at, len; /* in the collection's bytes */
} heap_object;

typedef struct heap_collection {
    uint64_t address;
    brc_buf bytes; /* empty: no collection is kept here */
    heap_object *objects;
    size_t n;
} heap_collection;

typedef struct heap_check {
    int fd;
    uint64_t base; /* the file's base, which is added to addresses */
    size_t address_len, size_len;
    heap_collection kept[COLLECTIONS];
    size_t next;
    const char *label;
    brc_buf raw, stored;
    hid_t copy; /* a dataset of bytes in memory, with the dataset's filters */
    hid_t copy_file;
    uint32_t copy_mask; /* the filters that chunk and copy lack, see copy_make() */
} heap_check;

static int heap_damaged(const heap_check *h, brc_error *err)
{
    return brc_fail(err, BRC_EINVAL,
                    "%s: an element of variable length refers to a place in the file that has no "
                    "element of its length",
                    h->label);
}

static uint64_t heap_number(const uint8_t *at, size_t len)
{
    uint64_t value = 0;
    for (size_t i = len; i-- > 0;)
        value = value << 8 | at[i];
    return value;
}

/* ---- collections -------------------------------- */

static int heap_read_at(const heap_check *h, uint64_t address, brc_buf *out, uint64_t len,
                        brc_error *err)
{
    uint64_t at;
    if (len > MOST_HEAP || __builtin_add_overflow(h->base, address, &at) || at > INT64_MAX)
        return heap_damaged(h, err);
    out->len = 0;
    BRC_TRY(brc_buf_reserve(out, (size_t)len, err));
    if (brc_fd_read_at(h->fd, out->data, (size_t)len, at, h->label, NULL) < 0)
        return heap_damaged(h, err);
    out->len = (size_t)len;
    return BRC_OK;
}

/* Lists the objects of a collection. An object, or the free rest (number 0, whose size includes its
 * header), must not reach beyond the collection, because the library does not check where an object
 * ends. */
static int list_objects(const heap_check *h, heap_collection *c, brc_error *err)
{
    const size_t before = 8 + h->size_len;
    void *objects = NULL;
    size_t cap = 0;
    int rc = BRC_OK;
    for (uint64_t at = before, step; c->bytes.len - at >= before; at += step) {
        const uint64_t left = c->bytes.len - at,
                       len = heap_number(c->bytes.data + at + 8, h->size_len);
        const size_t number = (size_t)heap_number(c->bytes.data + at, 2);
        step = number > 0 ? before + (len + 7) / 8 * 8 : len;
        if (len > left || step < before || step > left) {
            rc = heap_damaged(h, err);
            goto done;
        }
        if (number >= c->n) {
            BRC_GO(brc_grow_array(&objects, &cap, number + 1, sizeof(heap_object), err));
            c->objects = objects;
            memset(c->objects + c->n, 0, (number + 1 - c->n) * sizeof(heap_object));
            c->n = number + 1;
        }
        if (number > 0)
            c->objects[number] = (heap_object){ at + before, len };
    }
done:
    c->objects = objects;
    return rc;
}

static void collection_dispose(heap_collection *c)
{
    brc_buf_dispose(&c->bytes);
    free(c->objects);
    *c = (heap_collection){ 0 };
}

static int find_collection(heap_check *h, uint64_t address, const heap_collection **out,
                           brc_error *err)
{
    for (size_t i = 0; i < COLLECTIONS; i++)
        if (h->kept[i].bytes.len > 0 && h->kept[i].address == address) {
            *out = &h->kept[i];
            return BRC_OK;
        }
    heap_collection *c = &h->kept[h->next++ % COLLECTIONS];
    collection_dispose(c);
    c->address = address;
    BRC_TRY(heap_read_at(h, address, &c->bytes, 8 + h->size_len, err));
    const int is_one = memcmp(c->bytes.data, "GCOL\1", 5) == 0;
    const uint64_t len = heap_number(c->bytes.data + 8, h->size_len);
    c->bytes.len = 0;
    if (!is_one || len < 8 + h->size_len)
        return heap_damaged(h, err);
    BRC_TRY(heap_read_at(h, address, &c->bytes, len, err));
    *out = c;
    return list_objects(h, c, err);
}

/* ---- elements -------------------------------- */

static int is_list(hid_t type)
{
    return H5Tget_class(type) == H5T_VLEN ||
           (H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) > 0);
}

/* Returns how many bytes an element has in the file. The library gives the size in memory. */
static size_t file_size(const heap_check *h, hid_t type, int depth)
{
    const H5T_class_t kind = H5Tget_class(type);
    size_t size = H5Tget_size(type);
    if (is_list(type))
        return 8 + h->address_len;
    if (kind == H5T_REFERENCE)
        return h->address_len + (H5Tequal(type, H5T_STD_REF_DSETREG) > 0 ? 4 : 0);
    if (kind == H5T_ARRAY && depth < DEEPEST) {
        hid_t inner = H5Tget_super(type);
        const size_t before = H5Tget_size(inner);
        size = before > 0 ? size / before * file_size(h, inner, depth + 1) : 0;
        brc_hdf5_close(inner);
    }
    const int members = kind == H5T_COMPOUND && depth < DEEPEST ? H5Tget_nmembers(type) : 0;
    for (int i = 0; i < members; i++) {
        hid_t member = H5Tget_member_type(type, (unsigned)i);
        size += file_size(h, member, depth + 1) - H5Tget_size(member);
        brc_hdf5_close(member);
    }
    return size;
}

/* Returns where a member begins in the file. Members before it may be longer in the file than in
 * memory. */
static size_t file_offset(const heap_check *h, hid_t type, int member, int depth)
{
    const size_t in_memory = H5Tget_member_offset(type, (unsigned)member);
    const int members = H5Tget_nmembers(type);
    size_t offset = in_memory;
    for (int i = 0; i < members; i++)
        if (H5Tget_member_offset(type, (unsigned)i) < in_memory) {
            hid_t before = H5Tget_member_type(type, (unsigned)i);
            offset += file_size(h, before, depth + 1) - H5Tget_size(before);
            brc_hdf5_close(before);
        }
    return offset;
}

static int check_items(heap_check *h, hid_t type, const uint8_t *at, uint64_t n, int depth,
                       brc_error *err);

/* Returns whether elements of the type name an object in a heap. */
static int names_heap(hid_t type, int depth)
{
    const H5T_class_t kind = H5Tget_class(type);
    int names = is_list(type) || (kind == H5T_REFERENCE && H5Tequal(type, H5T_STD_REF_DSETREG) > 0);
    if (kind == H5T_ARRAY && depth < DEEPEST) {
        hid_t inner = H5Tget_super(type);
        names = names_heap(inner, depth + 1);
        brc_hdf5_close(inner);
    }
    const int members = kind == H5T_COMPOUND ? H5Tget_nmembers(type) : 0;
    for (int i = 0; i < members && !names && depth < DEEPEST; i++) {
        hid_t member = H5Tget_member_type(type, (unsigned)i);
        names = names_heap(member, depth + 1);
        brc_hdf5_close(member);
    }
    return names;
}

/* Finds the object that the element names. It must have `len` bytes; UINT64_MAX: any length. */
static int find_heap_object(heap_check *h, const uint8_t *at, uint64_t len, const uint8_t **out,
                            brc_error *err)
{
    const heap_collection *c = NULL;
    const uint64_t address = heap_number(at, h->address_len);
    const size_t number = (size_t)heap_number(at + h->address_len, 4);
    BRC_TRY(find_collection(h, address, &c, err));
    if (number == 0 || number >= c->n || c->objects[number].at == 0 ||
        (len != UINT64_MAX && c->objects[number].len != len))
        return heap_damaged(h, err);
    *out = c->bytes.data + c->objects[number].at;
    return BRC_OK;
}

/* The facts about a type of lists, which are asked of the library once. */
typedef struct list_type {
    hid_t base; /* the type of items; texts: BRC_HDF5_NONE */
    size_t size;
    int names; /* the items themselves name objects in a heap */
} list_type;

/* Checks a list. Lists in lists are checked in a copy, because another collection may replace the
 * one that they lie in. */
static int check_list(heap_check *h, const list_type *type, const uint8_t *at, int depth,
                      brc_error *err)
{
    const uint64_t n = heap_number(at, 4);
    const uint8_t *data;
    void *copy = NULL;
    if (n == 0 || heap_number(at + 4, h->address_len) == 0)
        return BRC_OK;
    if (type->size == 0 || n > MOST_HEAP / type->size)
        return heap_damaged(h, err);
    BRC_TRY(find_heap_object(h, at + 4, n * type->size, &data, err));
    if (!type->names)
        return BRC_OK;
    BRC_TRY(brc_new_big(&copy, (size_t)(n * type->size), err));
    memcpy(copy, data, (size_t)(n * type->size));
    int rc = check_items(h, type->base, copy, n, depth + 1, err);
    free(copy);
    return rc;
}

static int check_heap_lists(heap_check *h, hid_t type, const uint8_t *at, uint64_t n, int depth,
                            brc_error *err)
{
    list_type list = { .base = BRC_HDF5_NONE, .size = 1 };
    const size_t step = file_size(h, type, depth);
    int rc = BRC_OK;
    if (H5Tget_class(type) == H5T_VLEN) {
        list.base = H5Tget_super(type);
        list.size = file_size(h, list.base, depth + 1);
        list.names = names_heap(list.base, depth);
    }
    for (uint64_t i = 0; rc == BRC_OK && i < n; i++)
        rc = check_list(h, &list, at + i * step, depth, err);
    brc_hdf5_close(list.base);
    return rc;
}

static int check_compound(heap_check *h, hid_t type, const uint8_t *at, int depth, brc_error *err)
{
    const int members = H5Tget_nmembers(type);
    for (int i = 0; i < members; i++) {
        hid_t member = H5Tget_member_type(type, (unsigned)i);
        int rc = check_items(h, member, at + file_offset(h, type, i, depth), 1, depth + 1, err);
        brc_hdf5_close(member);
        BRC_TRY(rc);
    }
    return BRC_OK;
}

static int check_array(heap_check *h, hid_t type, const uint8_t *at, int depth, brc_error *err)
{
    hid_t inner = H5Tget_super(type);
    const size_t size = H5Tget_size(inner);
    int rc =
        size > 0 ? check_items(h, inner, at, H5Tget_size(type) / size, depth + 1, err) : BRC_OK;
    brc_hdf5_close(inner);
    return rc;
}

/* Checks an element of a type that names objects in a heap. */
static int check_element(heap_check *h, hid_t type, const uint8_t *at, int depth, brc_error *err)
{
    const uint8_t *region;
    switch (H5Tget_class(type)) {
    case H5T_COMPOUND:
        return check_compound(h, type, at, depth, err);
    case H5T_ARRAY:
        return check_array(h, type, at, depth, err);
    case H5T_REFERENCE:
        return heap_number(at, h->address_len) == 0
                   ? BRC_OK
                   : find_heap_object(h, at, UINT64_MAX, &region, err);
    default:
        return check_heap_lists(h, type, at, 1, depth, err);
    }
}

/* Checks n elements of a type; types that are too deep in one another are not checked. */
static int check_items(heap_check *h, hid_t type, const uint8_t *at, uint64_t n, int depth,
                       brc_error *err)
{
    if (depth >= DEEPEST || !names_heap(type, depth))
        return BRC_OK;
    if (is_list(type))
        return check_heap_lists(h, type, at, n, depth, err);
    const size_t size = file_size(h, type, depth);
    for (uint64_t i = 0; i < n; i++)
        BRC_TRY(check_element(h, type, at + i * size, depth, err));
    return BRC_OK;
}

/* ---- elements as they are stored -------------------------------- */

/* Makes a dataset in memory whose chunks are bytes with the same filters. A stored chunk that is
 * written to this dataset and read again gives the elements as they lie in the file. If filters
 * were left out for the chunk, as shuffle is for lists, the whole dataset lacks them:
 * H5Dwrite_chunk() takes the mask, but H5Dread() forgets it (1.10.8). Returns 0 if the library
 * cannot make the dataset, for example because a filter decodes and does not encode. */
static int copy_make(heap_check *h, hid_t plist, size_t item, int ndim, const hsize_t *chunk,
                     uint32_t mask)
{
    if (h->copy >= 0 && h->copy_mask == mask)
        return 1;
    brc_hdf5_close(h->copy);
    brc_hdf5_close(h->copy_file);
    h->copy = h->copy_file = BRC_HDF5_NONE;
    h->copy_mask = mask;
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), make = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = H5Screate_simple(ndim, chunk, NULL), bytes = H5Tcreate(H5T_OPAQUE, item);
    int failed =
        H5Pset_fapl_core(access, (size_t)1 << 16, 0) < 0 || H5Pset_chunk(make, ndim, chunk) < 0;
    const int filters = H5Pget_nfilters(plist);
    for (int i = 0; i < filters && !failed; i++) {
        unsigned flags, values[64], config;
        size_t n = 64;
        H5Z_filter_t id = H5Pget_filter2(plist, (unsigned)i, &flags, &n, values, 0, NULL, &config);
        failed =
            id < 0 || n > 64 || (!(mask >> i & 1) && H5Pset_filter(make, id, flags, n, values) < 0);
    }
    if (!failed)
        h->copy_file = H5Fcreate("elements", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    if (h->copy_file >= 0)
        h->copy = H5Dcreate2(h->copy_file, "a", bytes, space, H5P_DEFAULT, make, H5P_DEFAULT);
    brc_hdf5_close(bytes);
    brc_hdf5_close(space);
    brc_hdf5_close(make);
    brc_hdf5_close(access);
    return h->copy >= 0;
}

/* The box of elements to check, and the dataset's shape and chunks. */
typedef struct heap_box {
    int ndim;
    hsize_t low[H5S_MAX_RANK], high[H5S_MAX_RANK]; /* both inclusive */
    hsize_t shape[H5S_MAX_RANK], chunk[H5S_MAX_RANK];
} heap_box;

static uint64_t box_items(const heap_box *box)
{
    uint64_t n = 1;
    for (int i = 0; i < box->ndim; i++)
        n *= box->chunk[i];
    return n;
}

/* Reads the elements of a chunk into h->raw. Leaves h->raw empty if the chunk is not stored, or if
 * a filter fails: then the read that follows reports the failure. */
static int read_raw_chunk(heap_check *h, hid_t dataset, hid_t plist, const heap_box *box,
                          const hsize_t *corner, uint64_t len, int is_filtered, brc_error *err)
{
    static const hsize_t first[H5S_MAX_RANK];
    brc_hdf5_chunk chunk;
    uint32_t mask;
    h->raw.len = 0;
    BRC_TRY(brc_hdf5_chunk_find(&chunk, dataset, corner, h->label, err));
    if (chunk.bytes == 0)
        return BRC_OK;
    if (chunk.bytes > MOST_HEAP || len > MOST_HEAP)
        return heap_damaged(h, err);
    BRC_TRY(brc_buf_reserve(&h->raw, (size_t)len, err));
    h->stored.len = 0;
    BRC_TRY(brc_buf_reserve(&h->stored, (size_t)chunk.bytes, err));
    if (H5Dread_chunk(dataset, H5P_DEFAULT, corner, &mask, h->stored.data) < 0)
        return BRC_OK;
    if (!is_filtered) {
        if (chunk.bytes != len)
            return heap_damaged(h, err);
        memcpy(h->raw.data, h->stored.data, (size_t)len);
    } else {
        if (!copy_make(h, plist, (size_t)(len / box_items(box)), box->ndim, box->chunk, mask))
            return BRC_OK;
        hid_t bytes = H5Dget_type(h->copy);
        int failed = H5Dwrite_chunk(h->copy, H5P_DEFAULT, 0, first, (size_t)chunk.bytes,
                                    h->stored.data) < 0 ||
                     H5Dread(h->copy, bytes, H5S_ALL, H5S_ALL, H5P_DEFAULT, h->raw.data) < 0;
        brc_hdf5_close(bytes);
        if (failed)
            return BRC_OK;
    }
    h->raw.len = (size_t)len;
    return BRC_OK;
}

static int check_heap_chunk(heap_check *h, hid_t type, const heap_box *box, const hsize_t *corner,
                            size_t item, brc_error *err)
{
    uint64_t low[H5S_MAX_RANK], count[H5S_MAX_RANK], index[H5S_MAX_RANK] = { 0 };
    for (int i = 0; i < box->ndim; i++) {
        const hsize_t last = corner[i] + box->chunk[i] - 1;
        low[i] = box->low[i] > corner[i] ? box->low[i] : corner[i];
        count[i] = (box->high[i] < last ? box->high[i] : last) - low[i] + 1;
    }
    const int last = box->ndim - 1;
    do {
        uint64_t at = 0;
        for (int i = 0; i <= last; i++)
            at = at * box->chunk[i] + (low[i] + index[i] - corner[i]);
        BRC_TRY(check_items(h, type, h->raw.data + at * item, count[last], 0, err));
    } while (brc_index_next(last, index, count));
    return BRC_OK;
}

static int is_partial(const heap_box *box, const hsize_t *corner)
{
    int is = 0;
    for (int i = 0; i < box->ndim; i++)
        is |= box->shape[i] - corner[i] < box->chunk[i];
    return is;
}

static int check_heap_chunks(heap_check *h, hid_t dataset, hid_t type, hid_t plist, heap_box *box,
                             brc_error *err)
{
    uint64_t index[H5S_MAX_RANK] = { 0 }, count[H5S_MAX_RANK];
    hsize_t corner[H5S_MAX_RANK];
    const size_t item = file_size(h, type, 0);
    const int filters = H5Pget_nfilters(plist);
    unsigned options = 0;
    uint64_t len = item;
    if (H5Pget_chunk(plist, box->ndim, box->chunk) != box->ndim ||
        H5Pget_chunk_opts(plist, &options) < 0)
        return heap_damaged(h, err);
    for (int i = 0; i < box->ndim; i++) {
        if (box->chunk[i] == 0 || !brc_mul_u64(len, box->chunk[i], &len))
            return heap_damaged(h, err);
        count[i] = box->high[i] / box->chunk[i] - box->low[i] / box->chunk[i] + 1;
    }
    do {
        for (int i = 0; i < box->ndim; i++)
            corner[i] = (box->low[i] / box->chunk[i] + index[i]) * box->chunk[i];
        const int is_plain = filters == 0 || ((options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) &&
                                              is_partial(box, corner));
        BRC_TRY(read_raw_chunk(h, dataset, plist, box, corner, len, !is_plain, err));
        if (h->raw.len > 0)
            BRC_TRY(check_heap_chunk(h, type, box, corner, item, err));
    } while (brc_index_next(box->ndim, index, count));
    return BRC_OK;
}

/* Checks the elements row by row. The library's offset of a contiguous dataset includes the bytes
 * before the file's base. */
static int check_rows(heap_check *h, hid_t dataset, hid_t type, const heap_box *box, brc_error *err)
{
    uint64_t index[H5S_MAX_RANK] = { 0 }, count[H5S_MAX_RANK];
    const haddr_t start = H5Dget_offset(dataset);
    const size_t item = file_size(h, type, 0);
    const int last = box->ndim - 1;
    const uint64_t n = last < 0 ? 1 : box->high[last] - box->low[last] + 1;
    if (start == HADDR_UNDEF) /* nothing is stored, or the elements are in the object's header */
        return BRC_OK;
    for (int i = 0; i <= last; i++)
        count[i] = box->high[i] - box->low[i] + 1;
    do {
        uint64_t at = 0;
        for (int i = 0; i <= last; i++)
            at = at * box->shape[i] + box->low[i] + index[i];
        if (!brc_mul_u64(at, item, &at) || n > MOST_HEAP / item ||
            __builtin_add_overflow(at, start - h->base, &at))
            return heap_damaged(h, err);
        BRC_TRY(heap_read_at(h, at, &h->raw, n * item, err));
        BRC_TRY(check_items(h, type, h->raw.data, n, 0, err));
    } while (last > 0 && brc_index_next(last, index, count));
    return BRC_OK;
}

/* ---- the check -------------------------------- */

static int heap_start(heap_check *h, hid_t dataset)
{
    hid_t file = H5Iget_file_id(dataset);
    hid_t create = H5Fget_create_plist(file), access = H5Fget_access_plist(file);
    hsize_t block = 0;
    void *fd = NULL;
    int known = H5Pget_driver(access) == H5FD_SEC2 && H5Pget_userblock(create, &block) >= 0 &&
                H5Pget_sizes(create, &h->address_len, &h->size_len) >= 0 &&
                H5Fget_vfd_handle(file, H5P_DEFAULT, &fd) >= 0 && h->address_len <= 8 &&
                h->size_len <= 8;
    h->fd = known ? *(const int *)fd : UNSET;
    h->base = block;
    brc_hdf5_close(access);
    brc_hdf5_close(create);
    brc_hdf5_close(file);
    return known;
}

static int find_box(heap_box *box, hid_t dataset, hid_t space)
{
    hid_t whole = H5Dget_space(dataset);
    box->ndim = H5Sget_simple_extent_dims(whole, box->shape, NULL);
    int found = box->ndim >= 0 && H5Sget_simple_extent_npoints(whole) > 0;
    if (found && space != H5S_ALL && box->ndim > 0)
        found = H5Sget_select_npoints(space) > 0 &&
                H5Sget_select_bounds(space, box->low, box->high) >= 0;
    else
        for (int i = 0; i < box->ndim; i++)
            box->high[i] = box->shape[i] - 1;
    brc_hdf5_close(whole);
    return found;
}

static void heap_stop(heap_check *h)
{
    for (size_t i = 0; i < COLLECTIONS; i++)
        collection_dispose(&h->kept[i]);
    brc_buf_dispose(&h->raw);
    brc_buf_dispose(&h->stored);
    brc_hdf5_close(h->copy);
    brc_hdf5_close(h->copy_file);
}

int brc_hdf5_heap_check(hid_t dataset, hid_t space, const char *label, brc_error *err)
{
    heap_check h = {
        .fd = UNSET, .label = label, .copy = BRC_HDF5_NONE, .copy_file = BRC_HDF5_NONE
    };
    heap_box box = { 0 };
    hid_t type = H5Dget_type(dataset), plist = H5Dget_create_plist(dataset);
    const H5D_layout_t layout = H5Pget_layout(plist);
    int rc = BRC_OK;
    if (names_heap(type, 0) && heap_start(&h, dataset) && find_box(&box, dataset, space)) {
        if (layout == H5D_CHUNKED)
            rc = check_heap_chunks(&h, dataset, type, plist, &box, err);
        else if (layout == H5D_CONTIGUOUS)
            rc = check_rows(&h, dataset, type, &box, err);
    }
    heap_stop(&h);
    brc_hdf5_close(plist);
    brc_hdf5_close(type);
    return rc;
}
