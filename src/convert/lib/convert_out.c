/* Reads the stream of an export: first the documents, then boxes of elements, array by array. */
#include <stdlib.h>
#include <string.h>

#include "../../base/node_path.h"
#include "../../codec/chain.h"
#include "../../xfer/foreign/protocol.h"
#include "convert_program.h"

#define EXPORT_STREAM "the stream of the export"

static int bad_stream(brc_error *err, const char *what, const char *member)
{
    return brc_fail(err, BRC_EINVAL, "%s: %.300s: %s", EXPORT_STREAM, member, what);
}

/* ---- documents -------------------------------- */

static int take_node(brc_convert *c, const char *inner, size_t len, brc_json *doc, brc_error *err)
{
    char *key = NULL, *text = NULL, *path = NULL;
    brc_meta *meta = NULL;
    int rc, kind;

    BRC_GO(brc_grow_array((void **)&c->nodes, &c->nodes_cap, c->nnodes + 1, sizeof(*c->nodes),
                          err));
    BRC_GO(brc_meta_kind(doc, &kind, err));
    BRC_GO(brc_dup_n(&key, inner, len, err));
    BRC_GO(brc_path_unescape(&text, key, c->names, err));
    BRC_GO(len > 0 ? brc_node_join(&path, c->path, key, err) : brc_dup(&path, c->path, err));
    if (kind == BRC_ARRAY) {
        BRC_GO(brc_new((void **)&meta, sizeof(*meta), err));
        rc = brc_meta_open(meta, c->registry, doc, err);
        if (rc == BRC_OK)
            rc = brc_meta_must_encode(meta, err);
        if (rc < 0) {
            brc_context(err, "%s cannot be read", path);
            goto done;
        }
    }
    c->nodes[c->nnodes++] = (brc_node_out){
        .path = path,
        .inner = text,
        .key = key,
        .doc = doc,
        .meta = meta,
        .codecs = brc_json_member(brc_json_member(doc, BRC_EXPORT_NOTE), "codecs"),
    };
    return BRC_OK;
done:
    if (meta)
        brc_meta_dispose(meta);
    free(meta);
    free(path);
    free(text);
    free(key);
    return rc;
}

static int take_document(brc_convert *c, const brc_tar_member *member, size_t len, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT, name = BRC_BUF_INIT;
    brc_json *doc = NULL;
    int rc;
    BRC_GO(brc_buf_append(&name, member->name, len, err));
    BRC_GO(brc_tar_read(c->in, BRC_JSON_MAX_BYTES, &text, err));
    rc = brc_json_parse_document(&doc, (const char *)text.data, text.len, err);
    if (rc < 0) {
        brc_context(err, "%s: %.300s", EXPORT_STREAM, member->name);
        goto done;
    }
    BRC_GO(take_node(c, (const char *)name.data, len, doc, err));
    doc = NULL;
done:
    brc_json_free(doc);
    brc_buf_dispose(&name);
    brc_buf_dispose(&text);
    return rc;
}

static int node_order(const void *a, const void *b)
{
    return brc_path_order(((const brc_node_out *)a)->key, ((const brc_node_out *)b)->key);
}

const brc_node_out *brc_convert_node_at(const brc_convert *c, const char *key)
{
    const brc_node_out like = { .key = (char *)(uintptr_t)key };
    return c->nnodes ? bsearch(&like, c->nodes, c->nnodes, sizeof(*c->nodes), node_order) : NULL;
}

/* Checks that the group of every node but the first came, and that no node came twice. */
static int check_nodes(brc_convert *c, brc_error *err)
{
    if (c->nnodes == 0 || c->nodes[0].key[0] != '\0')
        return bad_stream(err, "the stream must begin with it", "zarr.json");
    for (size_t i = 0; i < c->nnodes; i++) {
        brc_node_out *node = &c->nodes[i];
        char *above;
        node->number = i;
        if (i == 0)
            continue;
        if (strcmp(node->key, c->nodes[i - 1].key) == 0)
            return bad_stream(err, "it comes twice", node->key);
        const char *slash = strrchr(node->key, '/');
        BRC_TRY(brc_dup_n(&above, node->key, slash ? (size_t)(slash - node->key) : 0, err));
        const brc_node_out *group = brc_convert_node_at(c, above);
        free(above);
        if (!group || group->meta)
            return bad_stream(err, "it is in no group", node->key);
    }
    return BRC_OK;
}

/* Names a single array, which lies in the file's root under its own name. */
static int name_single(brc_convert *c, brc_error *err)
{
    if (c->nnodes != 1 || !c->nodes[0].meta)
        return BRC_OK;
    const char *slash = strrchr(c->path, '/');
    free(c->nodes[0].inner);
    c->nodes[0].inner = NULL;
    return brc_path_unescape(&c->nodes[0].inner, slash && slash[1] ? slash + 1 : "data", c->names,
                             err);
}

/* Reads all documents. *member is the first member after them; *more is 0 if there is none. */
static int read_documents(brc_convert *c, brc_tar_member *member, int *more, brc_error *err)
{
    size_t len;
    int rc;
    while ((rc = brc_tar_next(c->in, member, err)) > 0 && brc_document_key(member->name, &len))
        BRC_TRY(take_document(c, member, len, err));
    BRC_TRY(rc);
    *more = rc;
    if (c->nnodes > 0)
        qsort(c->nodes, c->nnodes, sizeof(*c->nodes), node_order);
    return check_nodes(c, err);
}

void brc_convert_nodes_free(brc_convert *c)
{
    for (size_t i = 0; i < c->nnodes; i++) {
        brc_node_out *node = &c->nodes[i];
        if (node->meta)
            brc_meta_dispose(node->meta);
        free(node->meta);
        brc_json_free(node->doc);
        free(node->inner);
        free(node->key);
        free(node->path);
    }
    free(c->nodes);
}

/* ---- chunks -------------------------------- */

typedef struct chunk_reader {
    brc_convert *c;
    const brc_driver *driver;
    void *state;
    brc_tar_member member; /* the next member */
    int more;              /* there is a next member */
    const brc_node_out *node;
    size_t key_base;       /* bytes of the array's path in a key */
    uint8_t *met;          /* a bit for each chunk of the array that came; NULL: not needed */
    brc_buf stored, decoded, part;
} chunk_reader;

/* Returns 1 with the chunk's index if the next member is a chunk of this array. */
static int is_next_chunk(const chunk_reader *r, uint64_t *index, brc_error *err)
{
    const char *key = r->member.name;
    int inside;
    if (!r->more || strncmp(key, r->node->key, r->key_base) != 0)
        return 0;
    if (r->key_base > 0 && key[r->key_base] != '/')
        return 0;
    key += r->key_base + (r->key_base > 0);
    if (!brc_meta_key_parse(r->node->meta, key, index, &inside))
        return 0;
    return inside ? 1 : bad_stream(err, "there is no such chunk", r->member.name);
}

static uint64_t chunk_number_of(const brc_grid *grid, const uint64_t *index)
{
    uint64_t number = 0;
    for (int i = 0; i < grid->ndim; i++)
        number = number * grid->count[i] + index[i];
    return number;
}

static int meet_chunk(const chunk_reader *r, const uint64_t *index, brc_error *err)
{
    if (!r->met)
        return BRC_OK;
    uint64_t number = chunk_number_of(&r->node->meta->grid, index);
    uint8_t bit = (uint8_t)(1u << number % 8);
    if (r->met[number / 8] & bit)
        return bad_stream(err, "it comes twice", r->member.name);
    r->met[number / 8] |= bit;
    return BRC_OK;
}

static void clip_box(const brc_meta *meta, const uint64_t *index, brc_sel *box, uint64_t *extent)
{
    *box = (brc_sel)BRC_SEL_INIT;
    box->ndim = meta->ndim;
    brc_grid_chunk(&meta->grid, index, box->start, extent);
    for (int i = 0; i < meta->ndim; i++) {
        uint64_t left = meta->shape[i] - box->start[i];
        box->count[i] = left < extent[i] ? left : extent[i];
        box->step[i] = 1;
    }
}

/* Copies the elements of the chunk that lie in the array to r->part, packed. */
static int clip_fixed(chunk_reader *r, const brc_sel *box, const uint64_t *extent, brc_error *err)
{
    size_t item = r->node->meta->type->item_size;
    int64_t from[BRC_MAX_NDIM], to[BRC_MAX_NDIM];
    size_t len = (size_t)brc_shape_count(box->ndim, box->count) * item;
    r->part.len = 0;
    BRC_TRY(brc_buf_reserve(&r->part, len, err));
    brc_strides_packed(box->ndim, extent, item, from);
    brc_strides_packed(box->ndim, box->count, item, to);
    brc_copy_box(box->ndim, box->count, item, r->part.data, to, r->decoded.data, from);
    r->part.len = len;
    return BRC_OK;
}

static int clip_variable(chunk_reader *r, const brc_sel *box, const uint64_t *extent,
                         brc_error *err)
{
    uint64_t at[BRC_MAX_NDIM] = { 0 };
    brc_reader in = brc_reader_of(r->decoded.data, r->decoded.len);
    r->part.len = 0;
    do {
        const uint8_t *start = in.at, *count = brc_read_bytes(&in, 4);
        size_t len = count ? brc_get_u32le(count) : 0;
        int inside = 1;
        if (!count || !brc_read_bytes(&in, len))
            return bad_stream(err, "its elements are truncated", r->member.name);
        for (int i = 0; i < box->ndim; i++)
            inside &= at[i] < box->count[i];
        if (inside)
            BRC_TRY(brc_buf_append(&r->part, start, len + 4, err));
    } while (brc_index_next(box->ndim, at, extent));
    return BRC_OK;
}

/* Returns whether the elements of a chunk over the array's edge that are not in the array have the
 * fill value: a reader would meet others if the array grew. Uses r->part. */
static int is_filled_beyond(chunk_reader *r, const brc_sel *box, const uint64_t *extent,
                            const brc_buf *chunk)
{
    const brc_buf *fill = &r->node->meta->fill;
    int64_t strides[BRC_MAX_NDIM];
    r->part.len = 0;
    if (fill->len == 0 || brc_buf_reserve(&r->part, chunk->len, NULL) < 0)
        return 0;
    brc_strides_packed(box->ndim, extent, fill->len, strides);
    brc_fill_run(r->part.data, chunk->len / fill->len, fill->len, fill->data);
    brc_copy_box(box->ndim, box->count, fill->len, r->part.data, strides, chunk->data, strides);
    return memcmp(r->part.data, chunk->data, chunk->len) == 0;
}

/* Hands the driver a chunk as it came, if the driver takes it. */
static int give_stored(const chunk_reader *r, const brc_sel *box, brc_error *err)
{
    brc_watch_step(&r->c->watch);
    return r->driver->put_stored(r->state, box, r->stored.data, r->stored.len, err);
}

/* Reads a chunk and hands it to the driver. */
static int give_chunk(chunk_reader *r, const uint64_t *index, brc_error *err)
{
    brc_meta *meta = r->node->meta;
    uint64_t extent[BRC_MAX_NDIM];
    brc_buf *give = &r->stored;
    brc_form *form;
    brc_sel box = BRC_SEL_INIT;
    int taken = 0;

    clip_box(meta, index, &box, extent);
    const int is_inside = memcmp(box.count, extent, (size_t)meta->ndim * sizeof(*extent)) == 0;
    const int is_coded = r->driver->put_stored != NULL && !brc_meta_is_variable(meta);
    BRC_TRY(brc_meta_form(meta, extent, &form, err));
    r->stored.len = r->decoded.len = 0;
    BRC_TRY(brc_tar_read(r->c->in, BRC_MAX_CHUNK_BYTES, &r->stored, err));
    if (is_coded && is_inside)
        taken = give_stored(r, &box, err);
    if (taken != 0)
        return taken < 0 ? taken : BRC_OK;
    if (!brc_chain_is_identity(form->chain) || r->stored.len != form->bytes) {
        BRC_TRY(brc_chain_decode(form->chain, r->c->scratch,
                                 (brc_span){ r->stored.data, r->stored.len }, NULL, &r->decoded,
                                 err));
        give = &r->decoded;
    }
    if (is_coded && !is_inside && give == &r->decoded && is_filled_beyond(r, &box, extent, give))
        taken = give_stored(r, &box, err);
    if (taken != 0)
        return taken < 0 ? taken : BRC_OK;
    if (!is_inside) {
        if (give == &r->stored) {
            brc_buf other = r->decoded;
            r->decoded = r->stored;
            r->stored = other;
        }
        BRC_TRY(brc_meta_is_variable(meta) ? clip_variable(r, &box, extent, err)
                                           : clip_fixed(r, &box, extent, err));
        give = &r->part;
    }
    if (!brc_meta_is_variable(meta))
        brc_dtype_native(meta->type, give->data, give->len);
    brc_watch_step(&r->c->watch);
    return r->driver->put(r->state, &box, give->data, give->len, err);
}

/* Hands the driver the fill value for chunks that the stream lacks. */
static int give_fill(chunk_reader *r, const uint64_t *index, brc_error *err)
{
    brc_meta *meta = r->node->meta;
    uint64_t extent[BRC_MAX_NDIM], n;
    brc_sel box = BRC_SEL_INIT;
    size_t len;

    clip_box(meta, index, &box, extent);
    n = brc_shape_count(box.ndim, box.count);
    if (!brc_mul_u64(n, meta->fill.len, &n) || !brc_to_size(n, &len))
        return brc_fail(err, BRC_ELIMIT, "%s: a chunk has more bytes than memory can hold",
                        r->node->path);
    r->part.len = 0;
    BRC_TRY(brc_buf_reserve(&r->part, len, err));
    if (meta->fill.len > 0)
        brc_fill_run(r->part.data, len / meta->fill.len, meta->fill.len, meta->fill.data);
    r->part.len = len;
    if (!brc_meta_is_variable(meta))
        brc_dtype_native(meta->type, r->part.data, len);
    brc_watch_step(&r->c->watch);
    return r->driver->put(r->state, &box, r->part.data, len, err);
}

static int give_gaps(chunk_reader *r, brc_error *err)
{
    const brc_grid *grid = &r->node->meta->grid;
    uint64_t index[BRC_MAX_NDIM] = { 0 };
    do {
        uint64_t number = chunk_number_of(grid, index);
        if (!(r->met[number / 8] >> number % 8 & 1))
            BRC_TRY(give_fill(r, index, err));
    } while (brc_index_next(grid->ndim, index, grid->count));
    return BRC_OK;
}

static int start_gaps(chunk_reader *r, brc_error *err)
{
    const brc_grid *grid = &r->node->meta->grid;
    uint64_t n = brc_shape_count(grid->ndim, grid->count);
    if (n / 8 >= SIZE_MAX)
        return brc_fail(err, BRC_ELIMIT, "%s has too many chunks to be written in full",
                        r->node->path);
    return brc_new((void **)&r->met, (size_t)(n / 8 + 1), err);
}

static int give_node(chunk_reader *r, const brc_node_out *node, brc_error *err)
{
    const brc_meta *meta = node->meta;
    uint64_t index[BRC_MAX_NDIM];
    int all = 0, ours, has_elements = brc_shape_count(meta->ndim, meta->shape) > 0;

    r->node = node;
    /* a single array is the root, whose keys have no path */
    r->key_base = r->c->nnodes == 1 ? 0 : strlen(node->key);
    BRC_TRY(r->driver->begin(r->state, node, &all, err));
    if (all && has_elements)
        BRC_TRY(start_gaps(r, err));
    while ((ours = is_next_chunk(r, index, err)) > 0) {
        BRC_TRY(meet_chunk(r, index, err));
        BRC_TRY(give_chunk(r, index, err));
        r->more = brc_tar_next(r->c->in, &r->member, err);
        BRC_TRY(r->more);
    }
    BRC_TRY(ours);
    if (r->met)
        BRC_TRY(give_gaps(r, err));
    free(r->met);
    r->met = NULL;
    return r->driver->end(r->state, err);
}

static int give_nodes(chunk_reader *r, brc_error *err)
{
    for (size_t i = 0; i < r->c->nnodes; i++)
        if (r->c->nodes[i].meta)
            BRC_TRY(give_node(r, &r->c->nodes[i], err));
    if (r->more)
        return bad_stream(err, "it is not a chunk of any array, or comes after a later array's",
                          r->member.name);
    return BRC_OK;
}

/* ---- the whole -------------------------------- */

int brc_convert_export(brc_convert *c, const brc_driver *driver, int netcdf, brc_error *err)
{
    chunk_reader r = { .c = c, .driver = driver };
    int rc;
    if (netcdf)
        c->names = BRC_NAMES_NETCDF;
    BRC_GO(read_documents(c, &r.member, &r.more, err));
    BRC_GO(name_single(c, err));
    BRC_GO(driver->create(&r.state, c, c->file, netcdf, err));
    BRC_GO(give_nodes(&r, err));
    rc = driver->finish(r.state, err);
done:
    driver->close(r.state);
    free(r.met);
    brc_buf_dispose(&r.stored);
    brc_buf_dispose(&r.decoded);
    brc_buf_dispose(&r.part);
    return rc;
}
