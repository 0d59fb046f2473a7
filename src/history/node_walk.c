#include "node_walk.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"

/* A node whose items are being visited. The bytes are a copy. */
typedef struct node_frame {
    struct node_frame *above;
    brc_oid id;
    int kind, is_root;
    size_t path_len, depth; /* of the group or array whose map it is in */
    brc_node_reader reader;
    brc_node_facts facts;
    uint8_t bytes[];
} node_frame;

struct brc_node_walk {
    brc_store *store;
    node_frame *top;
    size_t level;
    brc_buf path;
    int left; /* the top node has been left, and goes at the next step */
    /* what comes next: a node that was reported, or one that was not */
    int due; /* 1: to be reported, 2: to be read */
    brc_oid due_id;
    brc_item due_claim;
    int due_has_claim, due_kind;
    size_t due_depth;
};

int brc_node_walk_new(brc_node_walk **out, brc_store *store, brc_error *err)
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

void brc_node_walk_drop(brc_node_walk *w)
{
    while (w->top != NULL)
        node_walk_pop(w);
    w->due = w->left = 0;
}

void brc_node_walk_free(brc_node_walk *w)
{
    if (w == NULL)
        return;
    brc_node_walk_drop(w);
    brc_buf_dispose(&w->path);
    free(w);
}

/* The map of a group or array, at the path in w->path. */
static void node_walk_due_map(brc_node_walk *w, const brc_oid *map, int kind, size_t depth)
{
    w->due = !brc_oid_is_zero(map);
    w->due_id = *map;
    w->due_kind = kind;
    w->due_has_claim = 0;
    w->due_depth = depth;
}

int brc_node_walk_snapshot(brc_node_walk *w, const brc_oid *root, brc_error *err)
{
    brc_node_walk_drop(w);
    w->path.len = 0;
    BRC_TRY(brc_buf_terminate(&w->path, err));
    node_walk_due_map(w, root, 0, 0);
    return BRC_OK;
}

int brc_node_walk_entry(brc_node_walk *w, const char *path, const brc_entry *entry, brc_error *err)
{
    size_t depth = 0;
    brc_node_walk_drop(w);
    w->path.len = 0;
    BRC_TRY(brc_buf_text(&w->path, path, err));
    BRC_TRY(brc_buf_terminate(&w->path, err));
    for (const char *at = path; *at != '\0'; at++)
        depth += *at == '/' && at[1] != '\0';
    node_walk_due_map(w, &entry->map, entry->kind, depth);
    return BRC_OK;
}

void brc_node_walk_skip(brc_node_walk *w)
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

/* Reads the node that is due and stands before its first item. */
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

int brc_node_walk_next(brc_node_walk *w, brc_node_step *out, brc_error *err)
{
    if (w->left) {
        w->left = 0;
        node_walk_pop(w);
    }
    if (w->due == 2) {
        (void)node_walk_tell(w, out); /* what a failure is about */
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
        if (rc < 0) { /* the path of what failed may have moved the buffer */
            w->path.len = w->top->path_len;
            w->path.data[w->path.len] = 0;
            out->path = (const char *)w->path.data;
            out->path_len = w->path.len;
        }
        if (rc != 0)
            return rc;
    }
}
