/* Direct reads: see direct.h. The layout of pages and cells is that of
 * https://sqlite.org/fileformat2.html */
#include "direct.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../base/alloc.h"
#include "../base/file.h"
#include "db.h"
#include "vfs.h"

enum {
    LEAST = 32 << 10,        /* stored bytes for which finding the spot pays           */
    CONTENT = BRC_PAGE_SIZE - 4, /* bytes of an overflow page, behind the next page's number */
    KEPT = 8,                /* pages of the tree that are kept                         */
    DEEPEST = 12,            /* levels of a tree                                        */
    TYPE_INTERIOR = 5,
    TYPE_LEAF = 13,
    RUN = 256                /* pages of one system call                                */
};

/* Pages of the tree of table blob, as they were when FILE's change counter was `counter`. */
struct brc_direct_tree {
    uint32_t counter, root;
    uint32_t numbers[KEPT]; /* 0: none */
    unsigned next;
    uint8_t pages[KEPT][BRC_PAGE_SIZE];
};

static uint32_t get_u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static size_t get_u16(const uint8_t *p)
{
    return (size_t)p[0] << 8 | p[1];
}

/* Reads a varint of SQLite. Returns its length, or 0 if the page ends before. */
static size_t get_varint(const uint8_t *p, size_t room, uint64_t *out)
{
    uint64_t value = 0;
    for (size_t i = 0; i < 9 && i < room; i++) {
        value = i == 8 ? value << 8 | p[i] : value << 7 | (p[i] & 0x7f);
        if (i == 8 || !(p[i] & 0x80)) {
            *out = value;
            return i + 1;
        }
    }
    return 0;
}

/* ---- the tree -------------------------------- */

/* Reads the number of the root page. Returns 0 if it is not as expected. */
static int find_root(brc_store *store, struct brc_direct_tree *d)
{
    sqlite3_stmt *st;
    int64_t root = 0;
    if (d->root != 0)
        return 1;
    if (brc_stmt(store, "SELECT rootpage FROM sqlite_schema WHERE name='blob' AND type='table'",
                 &st, NULL) < 0 ||
        brc_ask_number(store, st, &root, NULL) < 0 || root < 2 || root > UINT32_MAX)
        return 0;
    d->root = (uint32_t)root;
    return 1;
}

/* Drops the pages that were kept if FILE has changed. Returns 0 if it cannot be told. */
static int is_fresh(struct brc_direct_tree *d, int fd)
{
    uint8_t counter[4];
    if (pread(fd, counter, sizeof(counter), 24) != (ssize_t)sizeof(counter))
        return 0;
    if (get_u32(counter) == d->counter)
        return 1;
    memset(d->numbers, 0, sizeof(d->numbers));
    d->counter = get_u32(counter);
    return 1;
}

/* Returns a page of the tree, or NULL. */
static const uint8_t *tree_page(struct brc_direct_tree *d, int fd, uint32_t number)
{
    for (unsigned i = 0; i < KEPT; i++)
        if (d->numbers[i] == number)
            return d->pages[i];
    const unsigned i = d->next++ % KEPT;
    d->numbers[i] = 0;
    if (number < 2 || pread(fd, d->pages[i], BRC_PAGE_SIZE, (off_t)(number - 1) * BRC_PAGE_SIZE) !=
                          BRC_PAGE_SIZE)
        return NULL;
    d->numbers[i] = number;
    return d->pages[i];
}

/* Reads the key of a cell of an interior page. Returns 0 if the page is damaged. */
static int interior_key(const uint8_t *page, size_t i, int64_t *key)
{
    uint64_t value;
    const size_t at = get_u16(page + 12 + 2 * i);
    if (at + 4 >= BRC_PAGE_SIZE || get_varint(page + at + 4, BRC_PAGE_SIZE - at - 4, &value) == 0)
        return 0;
    *key = (int64_t)value;
    return 1;
}

/* Returns the number of the child that has the row, or 0. */
static uint32_t interior_child(const uint8_t *page, int64_t row)
{
    size_t low = 0, n = get_u16(page + 3), high = n;
    int64_t key;
    if (12 + 2 * n > BRC_PAGE_SIZE)
        return 0;
    while (low < high) { /* the first cell whose key is not below the row */
        const size_t mid = (low + high) / 2;
        if (!interior_key(page, mid, &key))
            return 0;
        if (key < row)
            low = mid + 1;
        else
            high = mid;
    }
    return low == n ? get_u32(page + 8) : get_u32(page + get_u16(page + 12 + 2 * low));
}

/* A cell of a leaf: its payload begins at `at` of the page, and has `len` bytes. */
typedef struct leaf_cell {
    int64_t row;
    uint64_t len;
    size_t at;
} leaf_cell;

static int read_cell(const uint8_t *page, size_t i, leaf_cell *out)
{
    uint64_t row;
    const size_t at = get_u16(page + 8 + 2 * i);
    if (at >= BRC_PAGE_SIZE)
        return 0;
    const size_t a = get_varint(page + at, BRC_PAGE_SIZE - at, &out->len);
    const size_t b = a == 0 ? 0 : get_varint(page + at + a, BRC_PAGE_SIZE - at - a, &row);
    if (b == 0)
        return 0;
    out->row = (int64_t)row;
    out->at = at + a + b;
    return 1;
}

static int find_cell(const uint8_t *page, int64_t row, leaf_cell *out)
{
    size_t low = 0, n = get_u16(page + 3), high = n;
    if (8 + 2 * n > BRC_PAGE_SIZE)
        return 0;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (!read_cell(page, mid, out))
            return 0;
        if (out->row == row)
            return 1;
        if (out->row < row)
            low = mid + 1;
        else
            high = mid;
    }
    return 0;
}

/* Returns the leaf that has the row, or NULL. */
static const uint8_t *leaf_of_row(struct brc_direct_tree *d, int fd, int64_t row, uint32_t *number)
{
    *number = d->root;
    for (int depth = 0; depth < DEEPEST; depth++) {
        const uint8_t *page = tree_page(d, fd, *number);
        if (page == NULL || (page[0] != TYPE_INTERIOR && page[0] != TYPE_LEAF))
            return NULL;
        if (page[0] == TYPE_LEAF)
            return page;
        *number = interior_child(page, row);
    }
    return NULL;
}

/* ---- the spot -------------------------------- */

/* Returns how many bytes of a payload are in the leaf. */
static uint64_t local_bytes(uint64_t len)
{
    const uint64_t usable = BRC_PAGE_SIZE, most = usable - 35;
    const uint64_t least = (usable - 12) * 32 / 255 - 23;
    const uint64_t some = least + (len - least) % (usable - 4);
    return len <= most ? len : some <= most ? some : least;
}

/* Finds the column `data` in the record (NULL, data). Returns where it begins in the payload, or
 * 0. */
static uint64_t find_payload(const uint8_t *payload, size_t room, uint64_t *len)
{
    uint64_t header, first, second;
    const size_t a = get_varint(payload, room, &header);
    const size_t b = a == 0 ? 0 : get_varint(payload + a, room - a, &first);
    const size_t c = b == 0 ? 0 : get_varint(payload + a + b, room - a - b, &second);
    if (c == 0 || header != a + b + c || first != 0 || second < 12 || second % 2 != 0)
        return 0;
    *len = (second - 12) / 2;
    return header;
}

static int find_spot(const uint8_t *page, uint32_t number, const brc_object *o, brc_spot *out)
{
    leaf_cell cell;
    uint64_t len;
    if (!find_cell(page, o->place, &cell))
        return 0;
    const uint64_t local = local_bytes(cell.len);
    if (local + 4 > BRC_PAGE_SIZE - cell.at)
        return 0;
    const uint64_t begins = find_payload(page + cell.at, (size_t)local, &len);
    if (begins == 0 || begins + len != cell.len || o->offset > len || o->stored > len - o->offset)
        return 0;
    const uint64_t at = begins + o->offset;
    out->near = at >= local ? 0 : local - at < o->stored ? local - at : o->stored;
    out->at = (uint64_t)(number - 1) * BRC_PAGE_SIZE + cell.at + at;
    out->page = get_u32(page + cell.at + local);
    out->skip = 0;
    if (at > local) {
        out->page += (at - local) / CONTENT;
        out->skip = (at - local) % CONTENT;
    }
    return out->near == o->stored || out->page >= 2;
}

int brc_direct_find(brc_store *store, const brc_object *o, brc_spot *out)
{
    void *p;
    uint32_t number;
    const int fd = o->stored >= LEAST ? brc_vfs_descriptor(store->vfs) : -1;
    if (fd < 0 || store->write_depth > 0 || store->bulk.on)
        return 0;
    if (store->tree == NULL) {
        if (brc_new(&p, sizeof(struct brc_direct_tree), NULL) < 0)
            return 0;
        store->tree = p;
    }
    struct brc_direct_tree *d = store->tree;
    if (store->direct.bad > 8 + store->direct.good / 4) /* its pages do not follow each other */
        return 0;
    if (!find_root(store, d) || !is_fresh(d, fd))
        return 0;
    const uint8_t *leaf = leaf_of_row(d, fd, o->place, &number);
    return leaf != NULL && find_spot(leaf, number, o, out);
}

/* ---- reading -------------------------------- */

/* Reads pages that follow each other, up to RUN of them, without their first four bytes. */
static int read_run(int fd, uint64_t page, uint64_t skip, uint8_t *into, size_t len)
{
    struct iovec parts[2 * RUN];
    uint8_t number[4];
    size_t done = 0, total = 0;
    int n = 0;
    for (size_t i = 0; done < len; i++) {
        const size_t from = i == 0 ? (size_t)skip : 0;
        const size_t some = len - done < CONTENT - from ? len - done : CONTENT - from;
        if (i > 0) {
            parts[n++] = (struct iovec){number, sizeof(number)};
            total += sizeof(number);
        }
        parts[n++] = (struct iovec){into + done, some};
        total += some;
        done += some;
    }
    const off_t at = (off_t)((page - 1) * BRC_PAGE_SIZE + 4 + skip);
    return preadv(fd, parts, n, at) == (ssize_t)total;
}

int brc_direct_read(const brc_store *store, const brc_object *o, const brc_spot *spot,
                    uint8_t *into)
{
    const int fd = brc_vfs_descriptor(store->vfs);
    uint64_t page = spot->page, skip = spot->skip;
    size_t done = (size_t)spot->near;
    if (fd < 0 || (done > 0 && pread(fd, into, done, (off_t)spot->at) != (ssize_t)done))
        return 0;
    while (done < o->stored) {
        const uint64_t run = (uint64_t)RUN * CONTENT - skip;
        const size_t some = o->stored - done < run ? (size_t)(o->stored - done) : (size_t)run;
        if (page > UINT32_MAX || !read_run(fd, page, skip, into + done, some))
            return 0;
        done += some;
        page += RUN;
        skip = 0;
    }
    return brc_object_verify(o, into, NULL) == BRC_OK;
}

void brc_direct_note(brc_store *store, uint64_t good, uint64_t bad)
{
    store->direct.good += good;
    store->direct.bad += bad;
}

void brc_direct_dispose(brc_store *store)
{
    free(store->tree);
    store->tree = NULL;
}
