#include "pack_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include <xxhash.h>

/* ---- heads and records -------------------------------- */

static void pack_put_u64(uint8_t *at, uint64_t n)
{
    for (int i = 0; i < 8; i++)
        at[i] = (uint8_t)(n >> (8 * i));
}

void brc_pack_head(uint8_t head[BRC_PACK_HEAD], const char *id, uint64_t pack_bytes)
{
    memset(head, 0, BRC_PACK_HEAD);
    memcpy(head, "BRCpack1", 8);
    memcpy(head + 8, id, strnlen(id, BRC_PACK_ID));
    pack_put_u64(head + 40, pack_bytes);
    pack_put_u64(head + 56, XXH3_64bits(head, 56));
}

int brc_pack_is_head_of(const uint8_t head[BRC_PACK_HEAD], const char *id, uint64_t pack_bytes)
{
    uint8_t wanted[BRC_PACK_HEAD];
    brc_pack_head(wanted, id, pack_bytes);
    return memcmp(head, wanted, BRC_PACK_HEAD) == 0;
}

int brc_pack_is_head(const uint8_t head[BRC_PACK_HEAD], const char *id)
{
    uint64_t pack_bytes = 0;
    for (int i = 7; i >= 0; i--)
        pack_bytes = pack_bytes << 8 | head[40 + i];
    return brc_pack_is_head_of(head, id, pack_bytes);
}

static void record_head(uint8_t head[BRC_PACK_RECORD], const brc_stored *item)
{
    memset(head, 0, BRC_PACK_RECORD);
    memcpy(head, "BRCr", 4);
    pack_put_u64(head + 8, item->len);
    pack_put_u64(head + 16, item->sum);
    memcpy(head + 24, item->id.bytes, sizeof(item->id.bytes));
    pack_put_u64(head + 56, XXH3_64bits(head, 56));
}

void brc_pack_record(uint8_t *to, const brc_stored *item)
{
    const size_t len = (size_t)item->len;
    record_head(to, item);
    if (len > 0)
        memcpy(to + BRC_PACK_RECORD, item->data, len);
    memset(to + BRC_PACK_RECORD + len, 0, -len % 8);
}

uint64_t brc_pack_room(uint64_t len)
{
    return len <= INT64_MAX / 2 ? BRC_PACK_RECORD + (len + 7) / 8 * 8 : 0;
}

/* ---- many pieces in one call -------------------------------- */

enum {
    PIECES = 1024, /* as many as one call of the kernel takes */
    GAP = 4096     /* objects closer together than this are read in one call */
};

typedef struct pieces {
    struct iovec at[PIECES];
    int n;
} pieces;

static void pieces_add(pieces *p, const void *data, size_t len)
{
    if (len > 0)
        p->at[p->n++] = (struct iovec){ (void *)(uintptr_t)data, len };
}

/* Moves all pieces, however often the kernel stops before the end. Returns 0, -1 at the end of the
 * file, or an errno. */
static int pieces_move(pieces *p, int fd, uint64_t offset,
                       ssize_t (*move)(int fd, const struct iovec *at, int n, off_t offset))
{
    struct iovec *at = p->at, *end = p->at + p->n;
    while (at < end) {
        ssize_t n = move(fd, at, (int)(end - at), (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : -1;
        offset += (uint64_t)n;
        for (; at < end && (size_t)n >= at->iov_len; at++)
            n -= (ssize_t)at->iov_len;
        if (n > 0) {
            at->iov_base = (uint8_t *)at->iov_base + n;
            at->iov_len -= (size_t)n;
        }
    }
    return 0;
}

/* ---- writing -------------------------------- */

/* Lets the disk begin with bytes that were written, so that the sync has less left to wait for.
 * Errors show in the sync. */
static void pack_begin(int fd, uint64_t at, uint64_t len)
{
#ifdef SYNC_FILE_RANGE_WRITE
    enum { LEAST = 32 << 10 };
    if (len >= LEAST)
        (void)!sync_file_range(fd, (off_t)at, (off_t)len, SYNC_FILE_RANGE_WRITE);
#else
    (void)fd, (void)at, (void)len;
#endif
}

int brc_pack_write(int fd, uint64_t offset, size_t n, brc_stored *const *items)
{
    static const uint8_t zeros[8];
    enum { AT_ONCE = PIECES / 3 };
    uint8_t heads[AT_ONCE][BRC_PACK_RECORD];
    pieces p;
    for (size_t i = 0; i < n;) {
        uint64_t len = 0;
        p.n = 0;
        for (int k = 0; k < AT_ONCE && i < n; k++, i++) {
            record_head(heads[k], items[i]);
            pieces_add(&p, heads[k], BRC_PACK_RECORD);
            pieces_add(&p, items[i]->data, (size_t)items[i]->len);
            pieces_add(&p, zeros, (size_t)(-items[i]->len % 8));
            len += brc_pack_room(items[i]->len);
        }
        const int why = pieces_move(&p, fd, offset, pwritev);
        if (why != 0)
            return why < 0 ? ENOSPC : why;
        pack_begin(fd, offset, len);
        offset += len;
    }
    return 0;
}

/* ---- reading -------------------------------- */

static int pack_read_one(int fd, const brc_stored *item)
{
    pieces p;
    p.n = 0;
    pieces_add(&p, item->into, (size_t)item->len);
    return pieces_move(&p, fd, item->offset, preadv);
}

/* Gathers objects that lie close together into one read; the bytes between them go to `gap`.
 * Returns the number of objects. */
static size_t pack_gather(pieces *p, size_t n, brc_stored *const *items, uint8_t gap[GAP])
{
    size_t taken = 0;
    uint64_t end = items[0]->offset;
    p->n = 0;
    while (taken < n && p->n + 2 <= PIECES) {
        const brc_stored *item = items[taken];
        if (item->offset < end || item->offset - end > GAP)
            break;
        pieces_add(p, gap, (size_t)(item->offset - end));
        pieces_add(p, item->into, (size_t)item->len);
        end = item->offset + item->len;
        taken++;
    }
    return taken;
}

/* Reads objects one by one that cannot be read together: then each has its own status. */
static void pack_read_apart(int fd, size_t n, brc_stored *const *items, int *why)
{
    for (size_t i = 0; i < n; i++) {
        const int failed = pack_read_one(fd, items[i]);
        items[i]->status = failed == 0 ? BRC_OK : failed < 0 ? BRC_ECORRUPT : BRC_EIO;
        if (failed > 0)
            *why = failed;
    }
}

void brc_pack_read(int fd, size_t n, brc_stored *const *items, int *why)
{
    uint8_t gap[GAP];
    pieces p;
    for (size_t i = 0; i < n;) {
        const size_t taken = pack_gather(&p, n - i, items + i, gap);
        if (taken > 1 && pieces_move(&p, fd, items[i]->offset, preadv) == 0) {
            for (size_t k = i; k < i + taken; k++)
                items[k]->status = BRC_OK;
        } else {
            pack_read_apart(fd, taken, items + i, why);
        }
        i += taken;
    }
}

/* Returns how many of the objects lie in the first one's place, one behind the other. */
static size_t run_in_place(size_t n, brc_stored *const *items)
{
    size_t same = 1;
    while (same < n && items[same]->place != NULL &&
           strcmp(items[same]->place, items[0]->place) == 0 &&
           items[same]->offset >= items[same - 1]->offset)
        same++;
    return same;
}

int brc_pack_fetch(size_t n, brc_stored *const *items,
                   int (*read)(void *state, size_t n, brc_stored *const *items, brc_error *err),
                   void *state, brc_error *err)
{
    int result = BRC_OK;
    for (size_t i = 0, same; i < n; i += same) {
        brc_error *first = result == BRC_OK ? err : NULL; /* the error is that of the first */
        const int has_place = items[i]->place != NULL;
        same = has_place ? run_in_place(n - i, items + i) : 1;
        const int rc = has_place ? read(state, same, items + i, first)
                                 : brc_fail(first, BRC_ENOTFOUND, "an object has no place");
        for (size_t k = i; k < i + same; k++)
            if (items[k]->status == BRC_BACKEND_NOT_DONE)
                items[k]->status = rc;
        if (result == BRC_OK)
            result = rc;
    }
    return result;
}
