/*
 * The global heaps of an HDF5 file, where texts, lists and references to dimensions lie.
 * libhdf5 (1.10 at least) follows the sizes in them without a look at where they lead: one
 * wrong bit is a crash, or a loop without an end. So they are looked through before.
 *
 *   heap     "GCOL", version 1, 3 zero bytes, size(u64) of the whole heap, objects
 *   object   index(u16), references(u16), 4 zero bytes, size(u64), that many bytes padded
 *            to 8; index 0 is the free space up to the heap's end, its size with the head
 *
 * (The HDF5 File Format Specification, III.E; numbers are little-endian.) Heaps are found
 * by their first eight bytes, wherever these are. An enemy who knows the format can still
 * write a heap that passes and lies elsewhere; chance cannot.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../base/alloc.h"
#include "../input.h"
#include "netcdf_lib.h"

#define SIGNATURE "GCOL\1\0\0\0"
#define SIGNATURE_LEN 8
#define HEAD 16 /* of a heap, and of an object in it */
#define PIECE ((size_t)1 << 20)
#define MAX_HEAP (UINT64_C(1) << 32)

typedef struct heap_file {
    int fd;
    uint64_t size;
    const char *name;
} heap_file;

static int damaged_heap(const heap_file *f, brc_error *err)
{
    return brc_fail(err, BRC_EINVAL, "%s is no whole HDF5 file: one of its heaps is damaged",
                    f->name);
}

/* All len bytes, which the file has. */
static int read_place(const heap_file *f, uint64_t at, uint8_t *dst, size_t len, brc_error *err)
{
    while (len > 0) {
        ssize_t n = pread(f->fd, dst, len, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return brc_fail_os(err, errno, "cannot read", f->name);
        if (n == 0)
            return brc_fail(err, BRC_EINVAL, "%s has become shorter", f->name);
        at += (uint64_t)n;
        dst += n;
        len -= (size_t)n;
    }
    return BRC_OK;
}

/* The heap that begins here. */
static int check_heap(const heap_file *f, uint64_t at, brc_error *err)
{
    uint8_t head[HEAD];
    uint64_t end, need;

    if (f->size - at < HEAD)
        return damaged_heap(f, err);
    BRC_TRY(read_place(f, at, head, HEAD, err));
    uint64_t size = brc_get_u64le(head + 8);
    if (size < HEAD || size > MAX_HEAP || size > f->size - at)
        return damaged_heap(f, err);
    end = at + size;
    for (at += HEAD; end - at >= HEAD; at += need) {
        BRC_TRY(read_place(f, at, head, HEAD, err));
        size = brc_get_u64le(head + 8);
        if (head[0] == 0 && head[1] == 0)
            return size == end - at ? BRC_OK : damaged_heap(f, err);
        if (size > end - at)
            return damaged_heap(f, err);
        need = HEAD + ((size + 7) & ~UINT64_C(7));
        if (need > end - at)
            return damaged_heap(f, err);
    }
    return BRC_OK;
}

static int check_piece(const heap_file *f, uint64_t at, const uint8_t *data, size_t len,
                       brc_error *err)
{
    const uint8_t *p = data, *end = data + len;
    while ((size_t)(end - p) >= SIGNATURE_LEN &&
           (p = memchr(p, SIGNATURE[0], (size_t)(end - p) - SIGNATURE_LEN + 1)) != NULL) {
        if (memcmp(p, SIGNATURE, SIGNATURE_LEN) == 0)
            BRC_TRY(check_heap(f, at + (uint64_t)(p - data), err));
        p++;
    }
    return BRC_OK;
}

static int check_pieces(const heap_file *f, uint8_t *piece, brc_error *err)
{
    /* pieces overlap by what is less than a signature */
    for (uint64_t at = 0; at < f->size; at += PIECE - SIGNATURE_LEN + 1) {
        size_t len = f->size - at < PIECE ? (size_t)(f->size - at) : PIECE;
        BRC_TRY(read_place(f, at, piece, len, err));
        BRC_TRY(check_piece(f, at, piece, len, err));
    }
    return BRC_OK;
}

int brc_netcdf_check_heaps(const char *file, brc_error *err)
{
    heap_file f = { .name = file };
    void *piece = NULL;
    int rc;

    BRC_TRY(brc_regular_open(&f.fd, &f.size, file, 1, err));
    BRC_GO(brc_new(&piece, PIECE, err));
    BRC_GO(check_pieces(&f, piece, err));
done:
    free(piece);
    close(f.fd);
    return rc;
}
