#include "path_log.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/id_table.h"
#include "commit.h"
#include "path_before.h"

/* A node that is looked for in a commit that was not visited yet. */
typedef struct log_place {
    uint32_t next; /* 1 more than the next of the same commit; 0: none */
    char *path;
    brc_oid root;
    brc_entry entry; /* kind 0: the commit has nothing there */
} log_place;

struct brc_path_log {
    brc_store *store;
    int full, met;
    brc_id_table first; /* of a commit's id: 1 more than its first place */
    void *places;       /* log_place[] */
    size_t n, cap;
    uint32_t unused;    /* 1 more than the first of the places that are free */
    size_t open;        /* places of commits that were not visited */
    char *told;         /* the path that was given last */
};

/* A node in one of the parents of a commit. */
typedef struct log_parent {
    const char *path; /* NULL: it is another node, or the node is new */
    brc_oid root;
    brc_entry entry;
} log_parent;

static log_place *log_place_at(const brc_path_log *log, uint32_t i)
{
    return (log_place *)log->places + (i - 1);
}

void brc_path_log_free(brc_path_log *log)
{
    if (log == NULL)
        return;
    for (uint32_t i = 1; i <= log->n; i++)
        free(log_place_at(log, i)->path);
    free(log->places);
    free(log->told);
    brc_id_table_dispose(&log->first);
    free(log);
}

/* ---- places -------------------------------- */

static int new_place(brc_path_log *log, uint32_t *out, brc_error *err)
{
    if (log->unused != 0) {
        *out = log->unused;
        log->unused = log_place_at(log, *out)->next;
        return BRC_OK;
    }
    if (log->n >= UINT32_MAX - 1)
        return brc_fail(err, BRC_ELIMIT, "there are too many commits to look through");
    BRC_TRY(brc_grow_array(&log->places, &log->cap, log->n + 1, sizeof(log_place), err));
    *out = (uint32_t)++log->n;
    memset(log_place_at(log, *out), 0, sizeof(log_place));
    return BRC_OK;
}

/* Two children may lead to the same place. */
static int add_place(brc_path_log *log, const brc_oid *commit, const char *path,
                     const brc_oid *root, const brc_entry *entry, brc_error *err)
{
    void *p;
    char *copy;
    uint32_t i;
    BRC_TRY(brc_id_table_add(&log->first, commit, &p, err));
    uint32_t *first = p;
    for (i = *first; i != 0; i = log_place_at(log, i)->next)
        if (strcmp(log_place_at(log, i)->path, path) == 0)
            return BRC_OK;
    BRC_TRY(brc_dup(&copy, path, err));
    int rc = new_place(log, &i, err);
    if (rc < 0) {
        free(copy);
        return rc;
    }
    *log_place_at(log, i) = (log_place){ *first, copy, *root, *entry };
    *first = i;
    log->open++;
    return BRC_OK;
}

static void free_place(brc_path_log *log, uint32_t i)
{
    log_place *place = log_place_at(log, i);
    free(place->path);
    place->path = NULL;
    place->next = log->unused;
    log->unused = i;
    log->open--;
}

int brc_path_log_new(brc_path_log **out, brc_store *store, const brc_oid *tip, const char *path,
                     int full, brc_error *err)
{
    void *p;
    brc_oid root;
    brc_entry entry;
    *out = NULL;
    BRC_TRY(brc_new(&p, sizeof(brc_path_log), err));
    brc_path_log *log = p;
    log->store = store;
    log->full = full;
    log->first = (brc_id_table)BRC_ID_TABLE_INIT(sizeof(uint32_t));
    int rc = BRC_OK;
    if (!brc_oid_is_zero(tip)) {
        BRC_GO(brc_commit_root(store, tip, &root, err));
        BRC_GO(brc_snapshot_find(store, &root, path, &entry, err));
        BRC_GO(add_place(log, tip, path, &root, &entry, err));
    }
done:
    if (rc < 0)
        brc_path_log_free(log);
    else
        *out = log;
    return rc;
}

/* ---- a commit -------------------------------- */

/* A node that is not there now is looked for under the same path. */
static int parent_at(brc_path_log *log, const brc_commit *commit, size_t i, const log_place *now,
                     brc_buf *buf, log_parent *out, brc_error *err)
{
    int has;
    memset(out, 0, sizeof(*out));
    if (now->entry.kind == 0) {
        out->path = now->path;
        BRC_TRY(brc_commit_root(log->store, &commit->parents[i], &out->root, err));
        return brc_snapshot_find(log->store, &out->root, now->path, &out->entry, err);
    }
    BRC_TRY(brc_path_before(buf, &has, log->store, commit, i, now->path, &out->root, &out->entry,
                            err));
    out->path = has ? (const char *)buf->data : NULL;
    return BRC_OK;
}

/* *changed: it differs from every parent. */
static int visit_place(brc_path_log *log, const brc_commit *commit, const log_place *now,
                       int *changed, brc_error *err)
{
    brc_buf buf = BRC_BUF_INIT;
    log_parent before;
    int rc = BRC_OK;
    *changed = now->entry.kind != 0 || commit->nparents > 0;
    for (size_t i = 0; i < commit->nparents; i++) {
        BRC_GO(parent_at(log, commit, i, now, &buf, &before, err));
        if (before.path == NULL || strcmp(before.path, now->path) != 0 ||
            !brc_entry_equal(&now->entry, &before.entry))
            continue;
        *changed = 0;
        if (!log->full) {
            rc = add_place(log, &commit->parents[i], before.path, &before.root, &before.entry, err);
            goto done;
        }
    }
    for (size_t i = 0; i < commit->nparents; i++) {
        if (commit->nparents > 1) /* else it was looked at above */
            BRC_GO(parent_at(log, commit, i, now, &buf, &before, err));
        if (before.path != NULL)
            BRC_GO(add_place(log, &commit->parents[i], before.path, &before.root, &before.entry,
                             err));
        log->met |= before.entry.kind != 0;
    }
done:
    brc_buf_dispose(&buf);
    return rc;
}

int brc_path_log_visit(brc_path_log *log, const brc_commit *commit, const char **path,
                       brc_error *err)
{
    uint32_t *first = brc_id_table_find(&log->first, &commit->id), next;
    int touched = 0, changed;
    if (first == NULL)
        return 0;
    uint32_t i = *first;
    *first = 0;
    for (; i != 0; i = next) {
        log_place now = *log_place_at(log, i); /* they may be moved as others are added */
        next = now.next;
        log->met |= now.entry.kind != 0;
        BRC_TRY(visit_place(log, commit, &now, &changed, err));
        if (changed && !touched) {
            free(log->told);
            log->told = now.path;
            log_place_at(log, i)->path = NULL;
        }
        touched |= changed;
        free_place(log, i);
    }
    *path = log->told;
    return touched;
}

int brc_path_log_is_done(const brc_path_log *log)
{
    return log->open == 0;
}

int brc_path_log_met(const brc_path_log *log)
{
    return log->met;
}
