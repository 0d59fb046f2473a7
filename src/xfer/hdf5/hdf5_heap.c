/* The global heap, read by ourselves: see hdf5_heap.h. */
#include "hdf5_heap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../base/hash.h"
#include "../input.h"

/* All collections in memory together, but for one that is larger by itself. */
#define CACHE_LIMIT ((uint64_t)64 << 20)

/* ---- opening -------------------------------- */

/* From the elements in the file to opaque bytes of the same size: nothing is to be done. */
static herr_t keep_references(hid_t from, hid_t to, H5T_cdata_t *data, size_t n, size_t step,
                              size_t other_step, void *elements, void *other, hid_t transfer)
{
    (void)from, (void)to, (void)n, (void)step, (void)other_step, (void)elements, (void)other;
    (void)transfer;
    if (data->command == H5T_CONV_INIT)
        data->need_bkg = H5T_BKG_NO;
    return 0;
}

/* The library has conversions for all that uses it: this one has a name of its own, by
 * which it is taken out again. */
static int register_conversion(brc_hdf5_heap *heap, brc_error *err)
{
    const brc_hdf5 *lib = heap->lib;
    uint64_t tag;
    BRC_TRY(brc_random((uint8_t *)&tag, sizeof(tag), err));
    snprintf(heap->conversion, sizeof(heap->conversion), "breccia-%016llx",
             (unsigned long long)tag);
    hid_t list = lib->H5Tvlen_create(lib->H5T_NATIVE_UINT8_g);
    int failed = list < 0 || heap->reference < 0 ||
                 lib->H5Tregister(H5T_PERS_SOFT, heap->conversion, list, heap->reference,
                                  keep_references) < 0;
    int rc = failed ? brc_hdf5_fail(lib, err, BRC_EINTERNAL,
                                    "%s: elements of variable length cannot "
                                    "be read",
                                    heap->path)
                    : BRC_OK;
    if (failed)
        heap->conversion[0] = 0;
    brc_hdf5_close(lib, list);
    return rc;
}

/* Addresses count from the superblock, which a user block may precede. */
static int read_layout(brc_hdf5_heap *heap, hid_t file, brc_error *err)
{
    const brc_hdf5 *lib = heap->lib;
    hsize_t base = 0;
    hid_t plist = lib->H5Fget_create_plist(file);
    int failed = plist < 0 ||
                 lib->H5Pget_sizes(plist, &heap->address_size, &heap->length_size) < 0 ||
                 lib->H5Pget_userblock(plist, &base) < 0;
    int rc = failed
                 ? brc_hdf5_fail(lib, err, BRC_EINVAL, "%s: its layout cannot be read", heap->path)
                 : BRC_OK;
    brc_hdf5_close(lib, plist);
    if (rc == BRC_OK && (heap->address_size > 8 || heap->length_size > 8))
        rc = brc_fail(err, BRC_EUNSUPPORTED, "%s has addresses of more than 8 bytes", heap->path);
    heap->base = base;
    heap->reference_size = 4 + heap->address_size + 4;
    return rc;
}

int brc_hdf5_heap_open(brc_hdf5_heap *out, const brc_hdf5 *lib, hid_t file, const char *path,
                       brc_error *err)
{
    int rc;
    memset(out, 0, sizeof(*out));
    out->lib = lib;
    out->path = path;
    out->reference = BRC_HDF5_NONE;
    out->fd = -1;
    BRC_GO(read_layout(out, file, err));
    BRC_GO(brc_regular_open(&out->fd, &out->file_size, path, 1, err));
    out->reference = lib->H5Tcreate(H5T_OPAQUE, out->reference_size);
    BRC_GO(register_conversion(out, err));
done:
    if (rc < 0)
        brc_hdf5_heap_close(out);
    return rc;
}

static void drop_collection(brc_hdf5_collection *c)
{
    free(c->data);
    free(c->starts);
    memset(c, 0, sizeof(*c));
}

void brc_hdf5_heap_close(brc_hdf5_heap *heap)
{
    if (!heap->lib)
        return;
    for (size_t i = 0; i < BRC_HDF5_COLLECTIONS; i++)
        drop_collection(&heap->slots[i]);
    if (heap->conversion[0])
        (void)heap->lib->H5Tunregister(H5T_PERS_SOFT, heap->conversion, BRC_HDF5_NONE,
                                       BRC_HDF5_NONE, keep_references);
    brc_hdf5_close(heap->lib, heap->reference);
    if (heap->fd >= 0)
        close(heap->fd);
    memset(heap, 0, sizeof(*heap));
    heap->fd = -1;
}

/* ---- collections -------------------------------- */

static uint64_t little_number(const uint8_t *at, size_t size)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

static int bad_heap(const char *label, const char *what, brc_error *err)
{
    return brc_fail(err, BRC_EINVAL, "%s: an element of variable length %s", label, what);
}

static int read_at(const brc_hdf5_heap *heap, uint64_t at, void *dst, uint64_t len, brc_error *err)
{
    uint8_t *to = dst;
    while (len > 0) {
        ssize_t got = pread(heap->fd, to, len, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return brc_fail_os(err, got < 0 ? errno : EIO, "cannot read", heap->path);
        to += got;
        at += (uint64_t)got;
        len -= (uint64_t)got;
    }
    return BRC_OK;
}

/* A size in units of 8 bytes, as everything in a collection is; 0 where it goes past `left`. */
static uint64_t padded(uint64_t size, uint64_t left)
{
    return size <= left ? (size + 7) & ~UINT64_C(7) : 0;
}

/* Where each object begins. */
static int index_objects(const brc_hdf5_heap *heap, brc_hdf5_collection *c, const char *label,
                         brc_error *err)
{
    uint64_t head = (8 + heap->length_size + 7) & ~(size_t)7, at = head;
    size_t cap = 0;
    while (c->size - at >= head) {
        size_t index = (size_t)little_number(c->data + at, 2);
        uint64_t size = little_number(c->data + at + 8, heap->length_size);
        uint64_t left = c->size - at - head, whole = padded(size, left);
        if (index == 0) /* free space, to the end */
            break;
        if (size > left || whole > left)
            return bad_heap(label, "lies in a damaged collection", err);
        if (index >= c->n) {
            size_t had = cap;
            BRC_TRY(brc_grow_array((void **)&c->starts, &cap, index + 1, sizeof(*c->starts), err));
            memset(c->starts + had, 0, (cap - had) * sizeof(*c->starts));
            c->n = index + 1;
        }
        c->starts[index] = at;
        at += head + whole;
    }
    return BRC_OK;
}

/* Frees slots until there is room. */
static brc_hdf5_collection *free_slot(brc_hdf5_heap *heap, uint64_t size)
{
    brc_hdf5_collection *slot = &heap->slots[heap->next];
    uint64_t used = size;
    heap->next = (heap->next + 1) % BRC_HDF5_COLLECTIONS;
    drop_collection(slot);
    for (size_t i = 0; i < BRC_HDF5_COLLECTIONS; i++)
        used += heap->slots[i].size;
    for (size_t i = 0; i < BRC_HDF5_COLLECTIONS && used > CACHE_LIMIT; i++) {
        brc_hdf5_collection *c = &heap->slots[(heap->next + i) % BRC_HDF5_COLLECTIONS];
        used -= c->size;
        drop_collection(c);
    }
    return slot;
}

static int load_collection(brc_hdf5_heap *heap, uint64_t address, brc_hdf5_collection **out,
                           const char *label, brc_error *err)
{
    uint8_t head[16] = { 0 };
    size_t head_size = 8 + heap->length_size;
    uint64_t at = 0, size;

    if (!brc_add_u64(heap->base, address, &at) || at > heap->file_size ||
        heap->file_size - at < sizeof(head))
        return bad_heap(label, "lies outside the file", err);
    BRC_TRY(read_at(heap, at, head, head_size, err));
    size = little_number(head + 8, heap->length_size);
    if (memcmp(head, "GCOL\1", 5) != 0 || size < sizeof(head) || size > heap->file_size - at)
        return bad_heap(label, "lies where no collection is", err);
    brc_hdf5_collection *c = free_slot(heap, size);
    BRC_TRY(brc_new_big((void **)&c->data, (size_t)size, err));
    c->size = size;
    int rc = read_at(heap, at, c->data, size, err);
    if (rc == BRC_OK)
        rc = index_objects(heap, c, label, err);
    if (rc < 0) {
        drop_collection(c);
        return rc;
    }
    c->address = address;
    *out = c;
    return BRC_OK;
}

static int find_collection(brc_hdf5_heap *heap, uint64_t address, brc_hdf5_collection **out,
                           const char *label, brc_error *err)
{
    for (size_t i = 0; i < BRC_HDF5_COLLECTIONS; i++) {
        brc_hdf5_collection *c = &heap->slots[i];
        if (c->data && c->address == address) {
            *out = c;
            return BRC_OK;
        }
    }
    return load_collection(heap, address, out, label, err);
}

int brc_hdf5_heap_get(brc_hdf5_heap *heap, const uint8_t *reference, size_t unit, brc_span *out,
                      const char *label, brc_error *err)
{
    uint64_t n = little_number(reference, 4);
    uint64_t address = little_number(reference + 4, heap->address_size);
    size_t index = (size_t)little_number(reference + 4 + heap->address_size, 4);
    brc_hdf5_collection *c = NULL;

    *out = (brc_span){ (const uint8_t *)"", 0 };
    if (n == 0 || address == 0) /* never written */
        return BRC_OK;
    BRC_TRY(find_collection(heap, address, &c, label, err));
    uint64_t start = index < c->n ? c->starts[index] : 0;
    if (start == 0)
        return bad_heap(label, "is not in its collection", err);
    uint64_t head = (8 + heap->length_size + 7) & ~(size_t)7;
    uint64_t size = little_number(c->data + start + 8, heap->length_size);
    if (n > size / unit)
        return bad_heap(label, "is shorter than it says", err);
    *out = (brc_span){ c->data + start + head, (size_t)(n * unit) };
    return BRC_OK;
}
