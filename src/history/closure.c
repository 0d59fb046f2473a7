#include "closure.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/hash.h"
#include "../tree/map.h"

/* ==== node children ================================ */

void brc_children_dispose(brc_children *list)
{
    free(list->items);
    memset(list, 0, sizeof(*list));
}

const brc_child *brc_child_at(const brc_children *list, size_t i)
{
    return (const brc_child *)list->items + i;
}

int brc_children_add(brc_children *list, const brc_oid *id, int is_node, brc_error *err)
{
    if (brc_oid_is_zero(id))
        return BRC_OK;
    BRC_TRY(brc_grow_array(&list->items, &list->cap, list->n + 1, sizeof(brc_child), err));
    ((brc_child *)list->items)[list->n++] = (brc_child){*id, is_node};
    return BRC_OK;
}

static int child_of_node(void *ctx, const brc_oid *id, brc_error *err)
{
    return brc_children_add(ctx, id, 1, err);
}

/* Adds an item's references: an id is a chunk, and anything else is an entry. */
static int children_of_item(void *ctx, brc_span key, brc_span value, brc_error *err)
{
    brc_children *list = ctx;
    brc_entry entry;
    brc_oid id;
    (void)key;
    if (value.len == list->id_len) {
        memset(&id, 0, sizeof(id));
        memcpy(id.bytes, value.data, list->id_len);
        return brc_children_add(list, &id, 0, err);
    }
    BRC_TRY(brc_entry_decode(&entry, value, list->id_len, err));
    BRC_TRY(brc_children_add(list, &entry.doc, 0, err));
    BRC_TRY(brc_children_add(list, &entry.storage, 0, err));
    return brc_children_add(list, &entry.map, 1, err);
}

int brc_children_read(brc_children *list, brc_span node, brc_error *err)
{
    return brc_map_check_node(node, list->id_len, child_of_node, children_of_item, list, err);
}

/* ==== node walk ================================ */

/* A node whose items are being visited. Its bytes are a copy. */
typedef struct node_frame {
    struct node_frame *above;
    brc_oid id;
    int kind, is_root;
    size_t path_len, depth; /* of the group or array whose map contains the node */
    brc_node_reader reader;
    brc_node_facts facts;
    uint8_t bytes[];
} node_frame;

struct brc_node_walk {
    brc_store *store;
    node_frame *top;
    size_t level;
    brc_buf path;
    int left; /* the top node has been left, and is removed at the next step */
    /* the next node, reported or not */
    int due; /* 1: to be reported, 2: to be read */
    brc_oid due_id;
    brc_item due_claim;
    int due_has_claim, due_kind;
    size_t due_depth;
};

static int node_walk_new(brc_node_walk **out, brc_store *store, brc_error *err)
{
    void *p;
    *out = NULL;
    BRC_TRY(brc_new(&p, sizeof(brc_node_walk), err));
    *out = p;
    (*out)->store = store;
    return BRC_OK;
}

static void node_walk_pop(brc_node_walk *w)
{
    node_frame *f = w->top;
    w->top = f->above;
    w->level--;
    free(f);
}

/* Leaves the walk that has begun. */
static void node_walk_drop(brc_node_walk *w)
{
    while (w->top != NULL)
        node_walk_pop(w);
    w->due = w->left = 0;
}

static void node_walk_free(brc_node_walk *w)
{
    if (w == NULL)
        return;
    node_walk_drop(w);
    brc_buf_dispose(&w->path);
    free(w);
}

/* Begins the map of the group or array at the path in w->path. */
static void node_walk_due_map(brc_node_walk *w, const brc_oid *map, int kind, size_t depth)
{
    w->due = !brc_oid_is_zero(map);
    w->due_id = *map;
    w->due_kind = kind;
    w->due_has_claim = 0;
    w->due_depth = depth;
}

/* Begins a snapshot, or the map of an entry at a path; drops a walk that was begun before. A zero
 * id has no nodes. */
static int node_walk_snapshot(brc_node_walk *w, const brc_oid *root, brc_error *err)
{
    node_walk_drop(w);
    w->path.len = 0;
    BRC_TRY(brc_buf_terminate(&w->path, err));
    node_walk_due_map(w, root, 0, 0);
    return BRC_OK;
}

static int node_walk_entry(brc_node_walk *w, const char *path, const brc_entry *entry,
                           brc_error *err)
{
    size_t depth = 0;
    node_walk_drop(w);
    w->path.len = 0;
    BRC_TRY(brc_buf_text(&w->path, path, err));
    BRC_TRY(brc_buf_terminate(&w->path, err));
    for (const char *at = path; *at != '\0'; at++)
        depth += *at == '/' && at[1] != '\0';
    node_walk_due_map(w, &entry->map, entry->kind, depth);
    return BRC_OK;
}

/* After NODE: the node is not read, and LEAVE does not follow. After ENTRY: the entry's map is not
 * read. */
static void node_walk_skip(brc_node_walk *w)
{
    w->due = 0;
}

/* ---- nodes -------------------------------- */

static void step_at(const brc_node_walk *w, brc_node_step *out, int what, const node_frame *in)
{
    memset(out, 0, sizeof(*out));
    out->what = what;
    out->level = w->level;
    out->path = (const char *)w->path.data;
    out->path_len = w->path.len;
    if (in != NULL) {
        out->kind = in->kind;
        out->depth = in->depth;
    }
}

/* Reports the node that is due. */
static int node_walk_tell(brc_node_walk *w, brc_node_step *out)
{
    step_at(w, out, BRC_AT_NODE, NULL);
    out->kind = w->due_kind;
    out->depth = w->due_depth;
    out->id = w->due_id;
    out->is_root = !w->due_has_claim;
    out->claim = w->due_has_claim ? &w->due_claim : NULL;
    w->due = 2;
    return 1;
}

/* Reads the node that is due and moves before its first item. */
static int node_walk_read(brc_node_walk *w, brc_error *err)
{
    brc_span bytes;
    void *p;
    size_t size, id_len = brc_store_id_len(w->store);
    w->due = 0;
    BRC_TRY(brc_store_get(w->store, BRC_KIND_NODE, &w->due_id, &bytes, err));
    if (__builtin_add_overflow(sizeof(node_frame), bytes.len, &size))
        return brc_nomem(err);
    BRC_TRY(brc_new(&p, size, err));
    node_frame *f = p;
    memcpy(f->bytes, bytes.data, bytes.len);
    bytes.data = f->bytes;
    int rc = brc_node_facts_read(&f->facts, bytes, id_len, err);
    if (rc == BRC_OK && w->due_has_claim)
        rc = brc_node_facts_match(&f->facts, &w->due_claim, err);
    if (rc == BRC_OK && w->due_kind == 0 && (f->facts.level != 0 || f->facts.count != 1))
        rc = brc_fail(err, BRC_ECORRUPT, "a snapshot has nodes besides its root");
    if (rc == BRC_OK)
        rc = brc_node_open(&f->reader, bytes, id_len, err);
    if (rc < 0) {
        free(f);
        return rc;
    }
    f->id = w->due_id;
    f->kind = w->due_kind;
    f->is_root = !w->due_has_claim;
    f->path_len = w->path.len;
    f->depth = w->due_depth;
    f->above = w->top;
    w->top = f;
    w->level++;
    return BRC_OK;
}

/* ---- items -------------------------------- */

static int node_walk_child_path(brc_node_walk *w, const node_frame *f, brc_span key, brc_error *err)
{
    if (f->kind == 0)
        return brc_buf_byte(&w->path, '/', err);
    if (f->path_len > 1)
        BRC_TRY(brc_buf_byte(&w->path, '/', err));
    return brc_buf_append(&w->path, key.data, key.len - 1, err);
}

static int node_walk_entry_step(brc_node_walk *w, const node_frame *f, const brc_item *item,
                                brc_node_step *out, brc_error *err)
{
    const brc_span key = { item->key, item->bits / 8 };
    size_t id_len = brc_store_id_len(w->store);
    brc_entry entry;
    if (f->kind != 0)
        BRC_TRY(brc_child_decode(&entry, key, item->value, id_len, err));
    else if (key.len == 1 && key.data[0] == 0)
        BRC_TRY(brc_entry_decode(&entry, item->value, id_len, err));
    else
        return brc_fail(err, BRC_ECORRUPT, "a snapshot has no root node; run 'breccia fsck'");
    BRC_TRY(node_walk_child_path(w, f, key, err));
    BRC_TRY(brc_buf_terminate(&w->path, err));
    size_t depth = f->kind == 0 ? 0 : f->depth + 1;
    BRC_TRY(brc_path_is_stored((const char *)w->path.data, w->path.len, depth, err));
    step_at(w, out, BRC_AT_ENTRY, f);
    out->entry = entry;
    out->depth = depth;
    node_walk_due_map(w, &entry.map, entry.kind, depth);
    return 1;
}

static int node_walk_chunk_step(brc_node_walk *w, const node_frame *f, const brc_item *item,
                                brc_node_step *out, brc_error *err)
{
    if (item->value.len != brc_store_id_len(w->store))
        return brc_fail(err, BRC_ECORRUPT, "a chunk's entry is damaged; run 'breccia fsck'");
    step_at(w, out, BRC_AT_CHUNK, f);
    out->key = (brc_span){ item->key, item->bits / 8 };
    memcpy(out->chunk.bytes, item->value.data, item->value.len);
    return 1;
}

static int node_walk_item(brc_node_walk *w, node_frame *f, brc_node_step *out, brc_error *err)
{
    brc_item item;
    step_at(w, out, BRC_AT_LEAVE, f);
    out->is_root = f->is_root;
    out->id = f->id;
    out->facts = &f->facts;
    int rc = brc_node_next(&f->reader, &item, err);
    if (rc <= 0) {
        out->level--; /* as NODE reported it; f is freed at the next step */
        return rc < 0 ? rc : 2;
    }
    if (item.is_child) {
        w->due = 1;
        w->due_id = item.id;
        w->due_kind = f->kind;
        w->due_claim = item;
        w->due_has_claim = 1;
        w->due_depth = f->depth;
        return 0;
    }
    return f->kind == BRC_ARRAY ? node_walk_chunk_step(w, f, &item, out, err)
                                : node_walk_entry_step(w, f, &item, out, err);
}

/* Returns 1 with a step, or 0 at the end. After a failure *out is the node concerned. */
static int node_walk_next(brc_node_walk *w, brc_node_step *out, brc_error *err)
{
    if (w->left) {
        w->left = 0;
        node_walk_pop(w);
    }
    if (w->due == 2) {
        (void)node_walk_tell(w, out); /* the node that a failure concerns */
        BRC_TRY(node_walk_read(w, err));
    }
    for (;;) {
        if (w->due == 1)
            return node_walk_tell(w, out);
        if (w->top == NULL)
            return 0;
        w->path.len = w->top->path_len;
        BRC_TRY(brc_buf_terminate(&w->path, err));
        int rc = node_walk_item(w, w->top, out, err);
        if (rc == 2) {
            w->left = 1;
            return 1;
        }
        if (rc < 0) { /* finding the path of the failed node may have moved the buffer */
            w->path.len = w->top->path_len;
            w->path.data[w->path.len] = 0;
            out->path = (const char *)w->path.data;
            out->path_len = w->path.len;
        }
        if (rc != 0)
            return rc;
    }
}

/* ==== closure ================================ */

struct brc_closure {
    brc_store *store;
    brc_node_walk *nodes;
    brc_id_table commits; /* commits that were met                                 */
    brc_id_table known;   /* nodes that were left, in their context, with the kept values */
    void *due;            /* brc_oid[]: commits that were met but not reported yet */
    size_t ndue, due_cap;
    brc_commit *version;  /* the commit whose snapshot is being walked             */
    brc_oid context;      /* the context of chunk maps                             */
    int after;            /* the last step, if the next step must complete it */
    brc_oid at;           /* the commit that the last step reported, or the node's id in `known` */
    uint64_t keep[];      /* the caller's value at LEAVE */
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
    int rc = node_walk_new(&c->nodes, store, err);
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
    node_walk_free(c->nodes);
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
    node_walk_drop(c->nodes);
    brc_commit_free(c->version);
    c->version = NULL;
    c->after = 0;
}

int brc_closure_snapshot(brc_closure *c, const brc_oid *root, brc_error *err)
{
    brc_closure_drop(c);
    return node_walk_snapshot(c->nodes, root, err);
}

int brc_closure_entry(brc_closure *c, const char *path, const brc_entry *entry, brc_error *err)
{
    brc_closure_drop(c);
    return node_walk_entry(c->nodes, path, entry, err);
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

/* Returns the id under which a node is remembered. The same bytes may be a map of one kind here and
 * of another there: they are two nodes. */
static brc_oid known_as(const brc_closure *c, const brc_node_step *node)
{
    brc_oid context;
    memset(&context, 0, sizeof(context));
    if (node->kind == BRC_ARRAY)
        context = c->context;
    context.bytes[0] ^= (uint8_t)node->kind;
    return brc_id_in_context(&node->id, &context);
}

/* Keeps the caller's value for the node that was left, at a moment when nothing can fail in
 * between. */
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
    out->what = BRC_AT_COMMIT; /* the commit that a failure concerns */
    out->id = c->at;
    BRC_TRY(brc_commit_get(&c->version, c->store, &c->at, err));
    BRC_TRY(node_walk_snapshot(c->nodes, &c->version->root, err));
    out->what = BRC_AT_VERSION;
    out->commit = c->version;
    return 1;
}

/* Ends a version whose snapshot has been walked. */
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
    int rc = node_walk_next(c->nodes, &out->node, err);
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
        node_walk_skip(c->nodes);
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
        node_walk_skip(c->nodes);
}

void brc_closure_again(brc_closure *c)
{
    c->after = 0;
}
