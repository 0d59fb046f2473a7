/*
 * Everything that can be reached: refs, commits, snapshots, maps, drafts. What is
 * named but not there is a fault; and each fault learns who uses it. Maps that
 * were found whole are not walked again.
 */
#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "fsck.h"

typedef struct history_checker {
    breccia *repo;
    brc_store *store;
    brc_faults *faults;
    void *whole; /* tsearch of brc_oid: maps and commits without a fault under them */
    const char *what; /* "main (1a2b3c4d)": what is being walked */
} history_checker;

static int whole_order(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(brc_oid));
}

static int whole_add(history_checker *h, const brc_oid *id, brc_error *err)
{
    void *p;
    BRC_TRY(brc_new(&p, sizeof(brc_oid), err));
    memcpy(p, id, sizeof(*id));
    brc_oid **slot = tsearch(p, &h->whole, whole_order);
    if (slot == NULL || *slot != p)
        free(p);
    return slot == NULL ? brc_nomem(err) : BRC_OK;
}

static int is_whole(history_checker *h, const brc_oid *id)
{
    return tfind(id, &h->whole, whole_order) != NULL;
}

/* The fault of this id, which is made where the object is missing; NULL: it is all
 * right. */
static int fault_of(history_checker *h, const brc_oid *id, int kind, brc_fault **out,
                    brc_error *err)
{
    brc_object o = {.id = *id}, *one = &o;
    *out = brc_faults_find(h->faults, id);
    if (*out != NULL)
        return BRC_OK;
    BRC_TRY(brc_objects_find(h->store, &one, 1, err));
    if (!o.found)
        return brc_faults_add(h->faults, id, kind, 1, "it is named, but not there", out, err);
    if (o.kind != kind)
        return brc_faults_add(h->faults, id, kind, 0, "it is of another kind than it is used as",
                              out, err);
    return BRC_OK;
}

/* Notes who uses the object; *bad 1 where it is at fault. */
static int check_use(history_checker *h, const brc_oid *id, int kind, const char *path,
                     const char *part, int *bad, brc_error *err)
{
    brc_fault *fault;
    BRC_TRY(fault_of(h, id, kind, &fault, err));
    *bad = fault != NULL;
    if (fault == NULL)
        return BRC_OK;
    brc_buf text = BRC_BUF_INIT;
    int rc = brc_buf_printf(&text, err, "%s: %s%s%s", h->what, path, *part ? " " : "", part);
    if (rc == BRC_OK)
        rc = brc_fault_used_by(fault, (const char *)text.data, err);
    brc_buf_dispose(&text);
    return rc;
}

static int check_entry(history_checker *h, const brc_entry *entry, const char *path, int *bad,
                       brc_error *err);

/* One map of a node: its nodes, and below them chunks or children. */
typedef struct map_checker {
    history_checker *h;
    const char *path;
    int kind; /* of the node */
    int bad;
    void *below; /* brc_oid[]: child nodes to come */
    size_t n, cap;
} map_checker;

static int map_child(void *ctx, const brc_oid *id, brc_error *err)
{
    map_checker *m = ctx;
    BRC_TRY(brc_grow_array(&m->below, &m->cap, m->n + 1, sizeof(brc_oid), err));
    ((brc_oid *)m->below)[m->n++] = *id;
    return BRC_OK;
}

static int map_chunk(map_checker *m, brc_span key, brc_span value, brc_error *err)
{
    uint64_t index[BRC_MAX_NDIM];
    brc_oid id;
    int bad = 0, ndim = brc_chunk_key_decode(key.data, key.len, index);
    brc_buf part = BRC_BUF_INIT;
    memset(&id, 0, sizeof(id));
    if (ndim < 0 || value.len != brc_store_id_len(m->h->store))
        return brc_fail(err, BRC_ECORRUPT, "a chunk's entry is damaged");
    memcpy(id.bytes, value.data, value.len);
    int rc = brc_buf_text(&part, "chunk (", err);
    for (int i = 0; i < ndim && rc == BRC_OK; i++)
        rc = brc_buf_printf(&part, err, "%s%" PRIu64, i > 0 ? "," : "", index[i]);
    if (rc == BRC_OK)
        rc = brc_buf_printf(&part, err, ")");
    if (rc == BRC_OK)
        rc = check_use(m->h, &id, BRC_KIND_CHUNK, m->path, (const char *)part.data, &bad, err);
    m->bad |= bad;
    brc_buf_dispose(&part);
    return rc;
}

static int map_node(map_checker *m, brc_span key, brc_span value, brc_error *err)
{
    brc_entry entry;
    brc_buf path = BRC_BUF_INIT;
    int bad = 0;
    BRC_TRY(brc_entry_decode(&entry, value, brc_store_id_len(m->h->store), err));
    int rc = brc_buf_printf(&path, err, "%s%s%.*s", m->path, m->path[1] != '\0' ? "/" : "",
                            (int)(key.len > 0 ? key.len - 1 : 0), (const char *)key.data);
    if (rc == BRC_OK)
        rc = check_entry(m->h, &entry, (const char *)path.data, &bad, err);
    m->bad |= bad;
    brc_buf_dispose(&path);
    return rc;
}

static int map_item(void *ctx, brc_span key, brc_span value, brc_error *err)
{
    map_checker *m = ctx;
    return m->kind == BRC_ARRAY ? map_chunk(m, key, value, err) : map_node(m, key, value, err);
}

static int check_map(history_checker *h, const brc_oid *id, int kind, const char *path, int *bad,
                     brc_error *err)
{
    map_checker m = {.h = h, .path = path, .kind = kind};
    brc_span held;
    brc_buf bytes = BRC_BUF_INIT;
    int rc, under;
    if (brc_oid_is_zero(id) || is_whole(h, id))
        return BRC_OK;
    BRC_GO(check_use(h, id, BRC_KIND_NODE, path, "map", &m.bad, err));
    if (m.bad)
        goto done;
    BRC_GO(brc_store_get(h->store, BRC_KIND_NODE, id, &held, err));
    BRC_GO(brc_buf_append(&bytes, held.data, held.len, err)); /* it may leave the cache */
    BRC_GO(brc_map_check_node((brc_span){bytes.data, bytes.len}, brc_store_id_len(h->store),
                              map_child, map_item, &m, err));
    for (size_t i = 0; i < m.n; i++) {
        under = 0;
        BRC_GO(check_map(h, &((brc_oid *)m.below)[i], kind, path, &under, err));
        m.bad |= under;
    }
    if (!m.bad)
        BRC_GO(whole_add(h, id, err));
done:
    *bad |= m.bad;
    brc_buf_dispose(&bytes);
    free(m.below);
    return rc;
}

static int check_entry(history_checker *h, const brc_entry *entry, const char *path, int *bad,
                       brc_error *err)
{
    int one = 0;
    if (!brc_oid_is_zero(&entry->doc))
        BRC_TRY(check_use(h, &entry->doc, BRC_KIND_DOCUMENT, path, "zarr.json", &one, err));
    *bad |= one;
    if (!brc_oid_is_zero(&entry->storage)) {
        BRC_TRY(check_use(h, &entry->storage, BRC_KIND_DOCUMENT, path, "storage", &one, err));
        *bad |= one;
    }
    return check_map(h, &entry->map, entry->kind, path, bad, err);
}

static int check_snapshot(history_checker *h, const brc_oid *root, brc_error *err)
{
    brc_entry entry;
    int bad = 0;
    if (brc_oid_is_zero(root) || is_whole(h, root))
        return BRC_OK;
    BRC_TRY(check_use(h, root, BRC_KIND_NODE, "/", "snapshot", &bad, err));
    if (bad)
        return BRC_OK;
    BRC_TRY(brc_snapshot_find(h->store, root, "/", &entry, err));
    BRC_TRY(check_entry(h, &entry, "/", &bad, err));
    return bad ? BRC_OK : whole_add(h, root, err);
}

/* A commit that cannot be read is a fault, and history behind it is out of reach. */
static int check_commit(history_checker *h, const char *ref, const brc_oid *id, brc_commit **out,
                        brc_error *err)
{
    char hex[65];
    brc_buf what = BRC_BUF_INIT;
    int bad, rc;
    *out = NULL;
    h->what = ref;
    BRC_TRY(check_use(h, id, BRC_KIND_COMMIT, "commit", brc_oid_format(hex, id), &bad, err));
    if (bad)
        return BRC_OK;
    BRC_GO(brc_commit_get(out, h->store, id, err));
    BRC_GO(brc_buf_printf(&what, err, "%s (%.8s)", ref, brc_oid_format(hex, id)));
    h->what = (const char *)what.data;
    rc = check_snapshot(h, &(*out)->root, err);
done:
    brc_buf_dispose(&what);
    if (rc < 0) {
        brc_commit_free(*out);
        *out = NULL;
    }
    return rc;
}

static int check_ref(history_checker *h, const brc_ref_row *row, brc_error *err)
{
    void *stack = NULL;
    size_t n = 0, cap = 0;
    brc_commit *commit = NULL;
    const char *name = strchr(row->name, '/') != NULL ? strchr(row->name, '/') + 1 : row->name;
    int rc = BRC_OK;
    if (!row->has_target)
        return BRC_OK;
    BRC_GO(brc_grow_array(&stack, &cap, 1, sizeof(brc_oid), err));
    ((brc_oid *)stack)[n++] = row->target;
    while (n > 0) {
        brc_oid id = ((brc_oid *)stack)[--n];
        if (is_whole(h, &id))
            continue;
        BRC_GO(brc_task_step(h->repo, 0, err));
        BRC_GO(check_commit(h, name, &id, &commit, err));
        if (commit == NULL)
            continue;
        BRC_GO(whole_add(h, &id, err)); /* met; its snapshot is walked once */
        BRC_GO(brc_grow_array(&stack, &cap, n + commit->nparents, sizeof(brc_oid), err));
        for (size_t i = 0; i < commit->nparents; i++)
            ((brc_oid *)stack)[n++] = commit->parents[i];
        brc_commit_free(commit);
        commit = NULL;
    }
done:
    brc_commit_free(commit);
    free(stack);
    return rc;
}

/* ---- drafts -------------------------------- */

typedef struct draft_chunks {
    history_checker *h;
    const char *path;
} draft_chunks;

static int check_draft_chunk(void *ctx, const uint8_t *key, size_t len, const brc_oid *id,
                             brc_error *err)
{
    draft_chunks *d = ctx;
    map_checker m = {.h = d->h, .path = d->path, .kind = BRC_ARRAY};
    if (id == NULL)
        return BRC_OK;
    return map_chunk(&m, (brc_span){key, len}, (brc_span){id->bytes, brc_store_id_len(d->h->store)},
                     err);
}

static int check_draft_row(history_checker *h, const brc_draft_node *row, brc_error *err)
{
    brc_entry entry;
    int bad = 0;
    draft_chunks d = {h, row->path};
    if (row->entry == NULL)
        return BRC_OK;
    BRC_TRY(brc_entry_decode(&entry, (brc_span){row->entry, row->entry_len},
                             brc_store_id_len(h->store), err));
    BRC_TRY(check_entry(h, &entry, row->path, &bad, err));
    return brc_draft_chunk_each(h->store, row->node, check_draft_chunk, &d, err);
}

static int check_draft(history_checker *h, const char *branch, brc_error *err)
{
    int has, has_base, rc;
    brc_oid base;
    brc_draft_node *rows = NULL;
    size_t n = 0;
    brc_buf what = BRC_BUF_INIT;
    BRC_GO(brc_draft_get(h->store, branch, &has, &has_base, &base, err));
    if (!has)
        goto done;
    BRC_GO(brc_buf_printf(&what, err, "%s (uncommitted)", branch));
    h->what = (const char *)what.data;
    if (has_base)
        BRC_GO(check_snapshot(h, &base, err));
    BRC_GO(brc_draft_node_list(h->store, branch, "/", 1, &rows, &n, err));
    for (size_t i = 0; i < n; i++)
        BRC_GO(check_draft_row(h, &rows[i], err));
done:
    brc_draft_nodes_free(rows, n);
    brc_buf_dispose(&what);
    return rc;
}

/* ---- refs -------------------------------- */

static int ref_fault(history_checker *h, const char *name, const char *message, brc_error *err)
{
    brc_oid none;
    brc_fault *fault;
    memset(&none, 0, sizeof(none));
    BRC_TRY(brc_faults_add(h->faults, &none, BRC_FAULT_REF, 0, message, &fault, err));
    return brc_fault_used_by(fault, name, err);
}

/* What is damaged in such a way that it cannot be followed is a fault of the ref. */
static int check_named(history_checker *h, const brc_ref_row *row, brc_error *err)
{
    brc_error found = BRC_ERROR_INIT;
    int is_branch = strncmp(row->name, "heads/", 6) == 0;
    if (!is_branch && strncmp(row->name, "tags/", 5) != 0)
        BRC_TRY(ref_fault(h, row->name, "it is neither a branch nor a tag", err));
    int rc = check_ref(h, row, &found);
    if (rc == BRC_ECORRUPT)
        rc = ref_fault(h, row->name, found.message, &found);
    if (rc == BRC_OK && is_branch) {
        rc = check_draft(h, row->name + 6, &found);
        if (rc == BRC_ECORRUPT)
            rc = ref_fault(h, row->name, found.message, &found);
    }
    if (rc < 0 && err != NULL)
        *err = found;
    return rc;
}

static int check_head(history_checker *h, const brc_ref_row *rows, size_t n, brc_error *err)
{
    const char *head;
    BRC_TRY(brc_head_get(h->store, &head, err));
    for (size_t i = 0; i < n; i++)
        if (strncmp(rows[i].name, "heads/", 6) == 0 && strcmp(rows[i].name + 6, head) == 0)
            return BRC_OK;
    return ref_fault(h, head, "it is the current branch, but there is no such branch", err);
}

int brc_check_history(breccia *repo, brc_faults *faults, brc_error *err)
{
    history_checker h = {.repo = repo, .store = repo->store, .faults = faults};
    brc_ref_row *rows;
    size_t n;
    BRC_TRY(brc_ref_list(repo->store, "", &rows, &n, err));
    int rc = check_head(&h, rows, n, err);
    for (size_t i = 0; i < n && rc == BRC_OK; i++)
        rc = check_named(&h, &rows[i], err);
    brc_ref_rows_free(rows, n);
    tdestroy(h.whole, free);
    return rc;
}
