/*
 * Plug-in: a device that is none. The pages of its memory fault in every hand but its own, so that
 * code of the host that touches them is found. It has room for as many bytes as a test says; when
 * that is full, it spills to the host's memory if it may. If a test says so, it also has codecs.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <zstd.h>

#include "../../src/breccia_buffer.h"

#define DEVICE 12 /* DLPack's number for devices that have none of their own */

/* Counters that tests look at, and switches. */
BRC_API extern unsigned long device_from_host, device_to_host, device_fills, device_live,
    device_opened, device_closed, device_destroyed, device_room, device_fails_after, device_codecs,
    device_zstd_cost, device_decoded, device_refuses, device_looked;
unsigned long device_from_host, device_to_host, device_fills, device_live;
unsigned long device_opened, device_closed, device_destroyed;
unsigned long device_room; /* bytes that fit; 0: all              */
unsigned long device_fails_after; /* copies until one fails; 0: none does */

/* registers them: 1 zstd, 2 crc32c; 4: pins zstd; 8: zstd looks first */
unsigned long device_codecs;
unsigned long device_zstd_cost;   /* of a byte                       */
unsigned long device_decoded;     /* calls                           */
unsigned long device_looked;      /* chunks that were shown to zstd before */
/* 1: every chunk, 2: calls it damaged, 3: loses a byte, 4: the second of a call is damaged */
unsigned long device_refuses;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long held; /* bytes */

static size_t whole_pages(size_t len)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return len == 0 ? page : (len + page - 1) / page * page;
}

static int device_open(void *ctx, void **state, brc_error *err)
{
    (void)ctx;
    (void)err;
    *state = NULL;
    device_opened++;
    return BRC_OK;
}

static void device_close(void *ctx, void *state)
{
    (void)ctx;
    (void)state;
    device_closed++;
}

static int device_spill(size_t len, uint32_t flags, brc_block *out, brc_error *err)
{
    if (!(flags & BRC_ALLOC_SPILL))
        return brc_fail(err, BRC_ENOMEM, "the device has no room for %zu bytes", len);
    out->data = aligned_alloc(64, (len + 64) / 64 * 64);
    if (out->data == NULL)
        return brc_fail(err, BRC_ENOMEM, "the host has no room for %zu bytes either", len);
    out->len = len;
    out->device = BRC_MEMORY_HOST;
    out->flags = BRC_BLOCK_HOST | BRC_BLOCK_NEW | BRC_BLOCK_SPILLED;
    return BRC_OK;
}

static int device_alloc(void *ctx, void *state, size_t len, uint32_t flags, void *stream,
                        brc_block *out, brc_error *err)
{
    (void)ctx;
    (void)state;
    (void)stream;
    const size_t size = whole_pages(len);
    pthread_mutex_lock(&lock);
    const int is_full = device_room > 0 && held + size > device_room;
    if (!is_full)
        held += size;
    pthread_mutex_unlock(&lock);
    if (is_full)
        return device_spill(len, flags, out, err);
    void *p = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return brc_fail(err, BRC_ENOMEM, "the device has no room for %zu bytes", len);
    __atomic_fetch_add(&device_live, 1, __ATOMIC_RELAXED);
    out->data = p;
    out->len = len;
    out->flags = BRC_BLOCK_NEW;
    return BRC_OK;
}

static void device_free(void *ctx, void *state, const brc_block *block)
{
    (void)ctx;
    (void)state;
    if (block->flags & BRC_BLOCK_SPILLED) {
        free(block->data);
        return;
    }
    munmap(block->data, whole_pages(block->len));
    pthread_mutex_lock(&lock);
    held -= whole_pages(block->len);
    pthread_mutex_unlock(&lock);
    __atomic_fetch_sub(&device_live, 1, __ATOMIC_RELAXED);
}

/* Opens the pages around some bytes, as long as the lock is held. */
static int pages_around(const uint8_t *at, size_t len, int prot)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t from = (uintptr_t)at / page * page;
    const uintptr_t to = ((uintptr_t)at + len + page - 1) / page * page;
    return mprotect((void *)from, to - from, prot);
}

static int copy_rows(const brc_block *block, const brc_rows *rows, int to_device, brc_error *err)
{
    uint8_t *at = (uint8_t *)block->data + rows->at;
    const size_t span = (rows->rows - 1) * rows->pitch + rows->width;
    if (rows->size < sizeof(*rows) || rows->width == 0 || rows->rows == 0 ||
        rows->at > block->len || span > block->len - rows->at)
        return brc_fail(err, BRC_EINTERNAL, "rows leave the device's memory");
    pthread_mutex_lock(&lock);
    if (device_fails_after > 0 && --device_fails_after == 0) {
        pthread_mutex_unlock(&lock);
        return brc_fail(err, BRC_EIO, "the device has lost its power");
    }
    if (pages_around(at, span, PROT_READ | PROT_WRITE) != 0) {
        pthread_mutex_unlock(&lock);
        return brc_fail(err, BRC_EIO, "the device's memory cannot be reached");
    }
    for (size_t i = 0; i < rows->rows; i++) {
        uint8_t *there = at + i * rows->pitch, *here = rows->host + i * rows->host_pitch;
        memcpy(to_device ? there : here, to_device ? here : there, rows->width);
    }
    (void)pages_around(at, span, PROT_NONE);
    *(to_device ? &device_from_host : &device_to_host) += 1;
    pthread_mutex_unlock(&lock);
    return BRC_OK;
}

static int device_put(void *ctx, void *state, const brc_block *to, const brc_rows *rows,
                      brc_error *err)
{
    (void)ctx;
    (void)state;
    return copy_rows(to, rows, 1, err);
}

static int device_get(void *ctx, void *state, const brc_block *from, const brc_rows *rows,
                      brc_error *err)
{
    (void)ctx;
    (void)state;
    return copy_rows(from, rows, 0, err);
}

static int device_fill(void *ctx, void *state, const brc_block *to, size_t at, size_t count,
                       const void *element, size_t item, void *stream, brc_error *err)
{
    uint8_t *first = (uint8_t *)to->data + at;
    (void)ctx;
    (void)state;
    (void)stream;
    if (item > 4) /* as of devices that have no means for it */
        return BRC_FILL_OTHERWISE;
    if (at > to->len || count * item > to->len - at)
        return brc_fail(err, BRC_EINTERNAL, "a fill leaves the device's memory");
    pthread_mutex_lock(&lock);
    (void)pages_around(first, count * item, PROT_READ | PROT_WRITE);
    for (size_t i = 0; i < count; i++)
        memcpy(first + i * item, element, item);
    (void)pages_around(first, count * item, PROT_NONE);
    device_fills++;
    pthread_mutex_unlock(&lock);
    return BRC_OK;
}

static void device_destroy(void *ctx)
{
    (void)ctx;
    device_destroyed++;
}

/* ---- codecs -------------------------------- */

static int zstd_there(brc_span src, brc_buf *dst, brc_error *err)
{
    const size_t len = ZSTD_decompress(dst->data, dst->limit, src.data, src.len);
    if (ZSTD_isError(len))
        return brc_fail(err, BRC_ECORRUPT, "the device cannot decode it");
    dst->len = len;
    return BRC_OK;
}

/* Without a look at the checksum, which the host's implementation is there for. */
static int crc32c_there(brc_span src, brc_buf *dst, brc_error *err)
{
    if (src.len < 4 || src.len - 4 > dst->limit)
        return brc_fail(err, BRC_ECORRUPT, "the device cannot decode it");
    memcpy(dst->data, src.data, src.len - 4);
    dst->len = src.len - 4;
    return BRC_OK;
}

/* `ctx` says which codec. */
static int device_decode(void *ctx, const void *state, void *scratch, const brc_there *there,
                         size_t n, const brc_span *src, brc_buf *const *dst, int *status,
                         brc_error *err)
{
    int rc = BRC_OK;
    (void)state;
    (void)scratch;
    if (there->size < sizeof(*there) || there->device != DEVICE)
        return brc_fail(err, BRC_EINTERNAL, "it was given memory of another device");
    pthread_mutex_lock(&lock);
    device_decoded++;
    for (size_t i = 0; i < n; i++) {
        (void)pages_around(src[i].data, src[i].len, PROT_READ | PROT_WRITE);
        (void)pages_around(dst[i]->data, dst[i]->limit, PROT_READ | PROT_WRITE);
        const int is_bad = device_refuses == 2 || (device_refuses == 4 && i == 1);
        status[i] = device_refuses == 1 ? BRC_EUNSUPPORTED
                    : is_bad            ? brc_fail(err, BRC_ECORRUPT, "the device says so")
                    : ctx == NULL       ? zstd_there(src[i], dst[i], err)
                                        : crc32c_there(src[i], dst[i], err);
        rc = rc < 0 ? rc : status[i];
        dst[i]->len -= device_refuses == 3;
        (void)pages_around(src[i].data, src[i].len, PROT_NONE);
        (void)pages_around(dst[i]->data, dst[i]->limit, PROT_NONE);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

/* Takes whatever begins as a frame, in the host's memory; and only that length. */
static int zstd_looks(void *ctx, const void *state, brc_span *src, brc_buf *dst)
{
    const unsigned long long len = ZSTD_getFrameContentSize(src->data, src->len);
    (void)ctx;
    (void)state;
    __atomic_fetch_add(&device_looked, 1, __ATOMIC_RELAXED);
    if (len > dst->limit)
        return 0;
    dst->limit = (size_t)len;
    return 1;
}

static int add_device_codecs(brc_registry *reg, brc_error *err)
{
    static int other;
    brc_codec_impl impl = {.size = sizeof(impl),
                           .spec = "zstd",
                           .name = "org.example.device",
                           .memory = DEVICE,
                           .decode_there = device_decode,
                           .takes_there = device_codecs & 8 ? zstd_looks : NULL,
                           .cost = (uint32_t)device_zstd_cost};
    int rc = device_codecs & 1 ? brc_registry_add_impl(reg, &impl, err) : BRC_OK;
    impl.spec = "crc32c";
    impl.ctx = &other;
    impl.takes_there = NULL;
    impl.cost = 1;
    if (rc == BRC_OK && device_codecs & 2)
        rc = brc_registry_add_impl(reg, &impl, err);
    if (rc == BRC_OK && device_codecs & 4)
        rc = brc_registry_pin(reg, "zstd", impl.name, err);
    return rc;
}

int brc_plugin_init(uint32_t abi, brc_registry *reg, brc_error *err)
{
    const brc_buffer_prototype device = {.size = sizeof(device),
                                         .name = "org.example.device",
                                         .device = DEVICE,
                                         .open = device_open,
                                         .close = device_close,
                                         .alloc = device_alloc,
                                         .free = device_free,
                                         .from_host = device_put,
                                         .to_host = device_get,
                                         .fill = device_fill,
                                         .destroy = device_destroy};
    int rc = BRC_PLUGIN_CHECK(abi, err);
    if (rc == BRC_OK)
        rc = brc_registry_add_prototype(reg, &device, err);
    return rc < 0 ? rc : add_device_codecs(reg, err);
}
