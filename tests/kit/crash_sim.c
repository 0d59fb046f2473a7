/* See crash_sim.h. */
#include "crash_sim.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../../src/base/hash.h"
#include "store_kit.h"

#define SECTOR 512

void crash_disk_new(crash_disk *d, const fault_vfs *v)
{
    memset(d, 0, sizeof(*d));
    d->v = v;
    for (int i = 0; i < LOG_FILES; i++)
        d->now[i] = d->synced[i] = -1;
}

void crash_disk_free(crash_disk *d)
{
    for (size_t i = 0; i < d->ninodes; i++) {
        brc_buf_dispose(&d->inodes[i].synced);
        free(d->inodes[i].pending);
    }
    free(d->inodes);
    for (int i = 0; i < LOG_FILES; i++)
        brc_buf_dispose(&d->imagined[i]);
    brc_buf_dispose(&d->all);
}

/* ---- doing ---------------------------------------------------------------------- */

static void grow_to(brc_buf *content, size_t len)
{
    if (len <= content->len)
        return;
    ck_assert_int_eq(brc_buf_reserve(content, len - content->len, NULL), BRC_OK);
    memset(content->data + content->len, 0, len - content->len);
    content->len = len;
}

/* All of an operation, or where `random`, those sectors of it that it likes. */
static void apply(brc_buf *content, const log_op *op, uint64_t *random)
{
    if (op->what == LOG_TRUNCATE) {
        grow_to(content, (size_t)op->offset);
        content->len = (size_t)op->offset;
        return;
    }
    for (size_t from = 0, len; from < op->len; from += len) {
        size_t at = (size_t)op->offset + from;
        len = SECTOR - at % SECTOR < op->len - from ? SECTOR - at % SECTOR : op->len - from;
        if (random != NULL && store_kit_below(random, 2) == 0)
            continue;
        grow_to(content, at + len);
        memcpy(content->data + at, op->data + from, len);
    }
}

static void note_entry(crash_disk *d, int file, int inode)
{
    d->now[file] = inode;
    ck_assert_uint_lt(d->nentries, sizeof(d->entries) / sizeof(d->entries[0]));
    d->entries[d->nentries][0] = file;
    d->entries[d->nentries++][1] = inode;
}

static void sync_folder(crash_disk *d)
{
    memcpy(d->synced, d->now, sizeof(d->synced));
    d->nentries = 0;
}

static void sync_inode(crash_disk *d, crash_inode *inode)
{
    for (size_t i = 0; i < inode->npending; i++)
        apply(&inode->synced, &d->v->log[inode->pending[i]], NULL);
    inode->npending = 0;
}

int crash_disk_step(crash_disk *d)
{
    if (d->at == d->v->nlog)
        return 0;
    const log_op *op = &d->v->log[d->at];
    crash_inode *inode =
        op->file >= 0 && d->now[op->file] >= 0 ? &d->inodes[d->now[op->file]] : NULL;
    switch (op->what) {
    case LOG_MARK:
        d->acks++;
        break;
    case LOG_CREATE:
        d->inodes = realloc(d->inodes, (d->ninodes + 1) * sizeof(*d->inodes));
        memset(&d->inodes[d->ninodes], 0, sizeof(*d->inodes));
        note_entry(d, op->file, (int)d->ninodes++);
        break;
    case LOG_DELETE:
        note_entry(d, op->file, -1);
        break;
    case LOG_SYNC:
        sync_inode(d, inode);
        break;
    default:
        inode->pending = realloc(inode->pending, (inode->npending + 1) * sizeof(*inode->pending));
        inode->pending[inode->npending++] = d->at;
    }
    if (op->syncs_folder)
        sync_folder(d);
    d->at++;
    return 1;
}

/* ---- imagining --------------------------------------------------------------- */

static void content_of(const crash_disk *d, const crash_inode *inode, unsigned variant,
                       uint64_t *random, brc_buf *out)
{
    ck_assert_int_eq(brc_buf_append(out, inode->synced.data, inode->synced.len, NULL), BRC_OK);
    for (size_t i = 0; i < inode->npending && variant != CRASH_DROPPED; i++) {
        const log_op *op = &d->v->log[inode->pending[i]];
        uint64_t fate = variant == CRASH_KEPT ? 0 : store_kit_below(random, 3);
        if (fate < 2) /* kept, or torn */
            apply(out, op, fate == 1 ? random : NULL);
    }
}

brc_oid crash_disk_imagine(crash_disk *d, unsigned variant)
{
    uint64_t random = (uint64_t)d->at * 1000 + variant;
    int names[LOG_FILES];
    memcpy(names, d->synced, sizeof(names));
    size_t entries = variant == CRASH_DROPPED ? 0
                     : variant == CRASH_KEPT  ? d->nentries
                                              : (size_t)store_kit_below(&random, d->nentries + 1);
    for (size_t i = 0; i < entries; i++)
        names[d->entries[i][0]] = d->entries[i][1];
    d->all.len = 0;
    for (int i = 0; i < LOG_FILES; i++) {
        uint8_t is_there = names[i] >= 0;
        ck_assert_int_eq(brc_buf_append(&d->all, &is_there, 1, NULL), BRC_OK);
        d->imagined[i].len = 0;
        d->is_there[i] = is_there;
        if (!is_there)
            continue;
        content_of(d, &d->inodes[names[i]], variant, &random, &d->imagined[i]);
        ck_assert_int_eq(brc_buf_append(&d->all, d->imagined[i].data, d->imagined[i].len, NULL),
                         BRC_OK);
    }
    return brc_hash_object(BRC_HASH_XXH128, BRC_KIND_CHUNK, d->all.data, d->all.len);
}

void crash_disk_put(const crash_disk *d, const char *path)
{
    static const char *const endings[LOG_FILES] = {"", "-journal", "-wal"};
    for (int i = 0; i < LOG_FILES; i++) {
        char name[300];
        const brc_buf *content = &d->imagined[i];
        snprintf(name, sizeof(name), "%s%s", path, endings[i]);
        unlink(name);
        if (d->is_there[i])
            ck_assert_int_eq(brc_file_write(name, content->data, content->len, NULL), BRC_OK);
    }
}
