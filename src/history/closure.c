#include "closure.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/id_table.h"

struct brc_closure {
    brc_store *store;
    brc_node_walk *nodes;
    brc_id_table commits; /* met                                                   */
    brc_id_table known;   /* nodes that were left, in their context, with what is kept */
    void *due;            /* brc_oid[]: commits that were met and not yet told     */
    size_t ndue, due_cap;
    brc_commit *version;  /* whose snapshot is being walked                        */
    brc_oid context;      /* of chunk maps                                         */
    int after;            /* the last step, where it asks for something at the next */
    brc_oid at;           /* the commit that it told, or the node as `known` has it */
    uint64_t keep[];      /* the caller's, at LEAVE */
};

int brc_closure_new(brc_closure **out, brc_store *store, size_t keep_size, brc_error *err)
{
    void *p;
    size_t size;
    *out = NULL;
    if (__builtin_add_overflow(sizeof(brc_closure), keep_size, &size))
        return brc_nomem(err);
    BRC_TRY(brc_new(&p, size, err));
    brc_closure *c = p;
    c->store = store;
    c->commits = (brc_id_table)BRC_ID_TABLE_INIT(0);
    c->known = (brc_id_table)BRC_ID_TABLE_INIT(keep_size);
    int rc = brc_node_walk_new(&c->nodes, store, err);
    if (rc < 0)
        free(c);
    else
        *out = c;
    return rc;
}

void brc_closure_free(brc_closure *c)
{
    if (c == NULL)
        return;
    brc_node_walk_free(c->nodes);
    brc_id_table_dispose(&c->commits);
    brc_id_table_dispose(&c->known);
    brc_commit_free(c->version);
    free(c->due);
    free(c);
}

/* ---- roots -------------------------------- */

int brc_closure_commit(brc_closure *c, const brc_oid *id, brc_error *err)
{
    size_t met = c->commits.n;
    BRC_TRY(brc_grow_array(&c->due, &c->due_cap, c->ndue + 1, sizeof(brc_oid), err));
    BRC_TRY(brc_id_table_add(&c->commits, id, NULL, err));
    if (c->commits.n == met)
        return 0;
    ((brc_oid *)c->due)[c->ndue++] = *id;
    return 1;
}

int brc_closure_met(const brc_closure *c, const brc_oid *id)
{
    return brc_id_table_find(&c->commits, id) != NULL;
}

int brc_closure_refs(brc_closure *c, brc_error *err)
{
    brc_ref_row *rows;
    size_t n;
    BRC_TRY(brc_ref_list(c->store, "", &rows, &n, err));
    int rc = BRC_OK;
    for (size_t i = 0; i < n && rc >= 0; i++)
        if (rows[i].has_target)
            rc = brc_closure_commit(c, &rows[i].target, err);
    brc_ref_rows_free(rows, n);
    return rc < 0 ? rc : BRC_OK;
}

void brc_closure_drop(brc_closure *c)
{
    brc_node_walk_drop(c->nodes);
    brc_commit_free(c->version);
    c->version = NULL;
    c->after = 0;
}

int brc_closure_snapshot(brc_closure *c, const brc_oid *root, brc_error *err)
{
    brc_closure_drop(c);
    return brc_node_walk_snapshot(c->nodes, root, err);
}

int brc_closure_entry(brc_closure *c, const char *path, const brc_entry *entry, brc_error *err)
{
    brc_closure_drop(c);
    return brc_node_walk_entry(c->nodes, path, entry, err);
}

/* ---- what is remembered -------------------------------- */

brc_oid brc_id_in_context(const brc_oid *id, const brc_oid *context)
{
    brc_oid key = *id;
    for (size_t i = 0; i < 16; i++)
        key.bytes[16 + i] ^= context->bytes[i];
    return key;
}

void brc_closure_context(brc_closure *c, const brc_oid *context)
{
    c->context = *context;
}

/* The same bytes may be a map of one kind here and of another there: they are two nodes. */
static brc_oid known_as(const brc_closure *c, const brc_node_step *node)
{
    brc_oid context;
    memset(&context, 0, sizeof(context));
    if (node->kind == BRC_ARRAY)
        context = c->context;
    context.bytes[0] ^= (uint8_t)node->kind;
    return brc_id_in_context(&node->id, &context);
}

/* What the caller left of a node is kept now, when nothing can fail in between. */
static int keep_node(brc_closure *c, brc_error *err)
{
    void *value;
    BRC_TRY(brc_id_table_add(&c->known, &c->at, &value, err));
    memcpy(value, c->keep, c->known.value_size);
    return BRC_OK;
}

/* ---- steps -------------------------------- */

static int tell_commit(brc_closure *c, brc_closure_step *out)
{
    c->at = ((brc_oid *)c->due)[--c->ndue];
    c->after = out->what = BRC_AT_COMMIT;
    out->id = c->at;
    return 1;
}

static int read_version(brc_closure *c, brc_closure_step *out, brc_error *err)
{
    out->what = BRC_AT_COMMIT; /* what a failure is about */
    out->id = c->at;
    BRC_TRY(brc_commit_get(&c->version, c->store, &c->at, err));
    BRC_TRY(brc_node_walk_snapshot(c->nodes, &c->version->root, err));
    out->what = BRC_AT_VERSION;
    out->commit = c->version;
    return 1;
}

/* The snapshot has been walked. */
static int end_version(brc_closure *c, brc_error *err)
{
    int rc = BRC_OK;
    for (size_t i = 0; c->version != NULL && i < c->version->nparents && rc >= 0; i++)
        rc = brc_closure_commit(c, &c->version->parents[i], err);
    brc_commit_free(c->version);
    c->version = NULL;
    return rc < 0 ? rc : BRC_OK;
}

static int node_step(brc_closure *c, brc_closure_step *out, brc_error *err)
{
    int rc = brc_node_walk_next(c->nodes, &out->node, err);
    if (rc == 0)
        return 0;
    out->what = out->node.what;
    if (rc < 0 || (out->what != BRC_AT_NODE && out->what != BRC_AT_LEAVE))
        return rc;
    c->at = known_as(c, &out->node);
    void *known = brc_id_table_find(&c->known, &c->at);
    if (out->what == BRC_AT_NODE) {
        out->known = known;
        c->after = known != NULL ? BRC_AT_NODE : 0;
        return 1;
    }
    memset(c->keep, 0, c->known.value_size);
    if (known != NULL)
        memcpy(c->keep, known, c->known.value_size);
    out->keep = c->keep;
    c->after = BRC_AT_LEAVE;
    return 1;
}

int brc_closure_next(brc_closure *c, brc_closure_step *out, brc_error *err)
{
    int after = c->after;
    c->after = 0;
    out->what = out->node.what = 0;
    out->commit = NULL;
    out->known = out->keep = NULL;
    BRC_TRY(brc_store_check_interrupt(c->store, err));
    if (after == BRC_AT_COMMIT)
        return read_version(c, out, err);
    if (after == BRC_AT_LEAVE)
        BRC_TRY(keep_node(c, err));
    if (after == BRC_AT_NODE)
        brc_node_walk_skip(c->nodes);
    int rc = node_step(c, out, err);
    if (rc != 0)
        return rc;
    BRC_TRY(end_version(c, err));
    return c->ndue > 0 ? tell_commit(c, out) : 0;
}

void brc_closure_skip(brc_closure *c)
{
    if (c->after == BRC_AT_COMMIT)
        c->after = 0;
    else
        brc_node_walk_skip(c->nodes);
}

void brc_closure_again(brc_closure *c)
{
    c->after = 0;
}
