/* Imports a tar stream: keeps documents until they can become nodes, and takes chunks over as they
 * come. */
#include "stream_in.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../../base/alloc.h"
#include "../../base/buf.h"
#include "../../base/hash.h"
#include "../../base/json.h"
#include "../../base/node_path.h"
#include "../../nd/shape.h"
#include "../../work/session.h"
#include "../../zarr/doc/meta.h"
#include "../../zarr/transfer.h"
#include "../documents.h"
#include "../in_place.h"
#include "../foreign/protocol.h"
#include "../xfer.h"
#include "stream_out.h"

/* Documents of a stream that wait until all of them can become nodes, parents first. */

/* The number of bytes at which waiting documents become nodes. */
#define BRC_STREAM_DOCS_MOST ((size_t)32 << 20)

typedef struct brc_stream_doc {
    const char *inner; /* the node's path in the stream, "a/b"; "" is its root */
    const char *text;
    size_t len;
} brc_stream_doc;

typedef struct brc_stream_docs {
    brc_arena arena;
    void *items; /* brc_stream_doc[] */
    size_t n, cap, bytes;
} brc_stream_docs;

/* The documents, as they came in a stream, of the arrays whose chunks are encoded again. */

typedef struct brc_stream_sources {
    brc_arena arena;
    size_t bytes;
    brc_id_table by_node; /* of brc_span, by stream_node_id() */
} brc_stream_sources;

/* ==== stream docs ================================ */

static int keep_text(brc_stream_docs *docs, const void *text, size_t len, const char **out,
                     brc_error *err)
{
    char *to = brc_arena_take(&docs->arena, len + 1);
    if (!to)
        return brc_nomem(err);
    if (len > 0)
        memcpy(to, text, len);
    to[len] = '\0';
    *out = to;
    return BRC_OK;
}

static int stream_docs_add(brc_stream_docs *docs, const char *inner, size_t inner_len,
                           const brc_buf *text, brc_error *err)
{
    brc_stream_doc doc = { .len = text->len };
    BRC_TRY(brc_grow_array(&docs->items, &docs->cap, docs->n + 1, sizeof(doc), err));
    BRC_TRY(keep_text(docs, inner, inner_len, &doc.inner, err));
    BRC_TRY(keep_text(docs, text->data, text->len, &doc.text, err));
    ((brc_stream_doc *)docs->items)[docs->n++] = doc;
    docs->bytes += sizeof(doc) + inner_len + text->len;
    return BRC_OK;
}

static int doc_order(const void *a, const void *b)
{
    return brc_path_order(((const brc_stream_doc *)a)->inner, ((const brc_stream_doc *)b)->inner);
}

/* Sorts parents first. BRC_EINVAL if a node has two documents. */
static int stream_docs_sort(brc_stream_docs *docs, brc_error *err)
{
    const brc_stream_doc *items = docs->items;
    if (docs->n > 1)
        qsort(docs->items, docs->n, sizeof(*items), doc_order);
    for (size_t i = 1; i < docs->n; i++)
        if (strcmp(items[i - 1].inner, items[i].inner) == 0)
            return brc_fail(err, BRC_EINVAL, "the node '%.300s' has two documents", items[i].inner);
    return BRC_OK;
}

static void stream_docs_dispose(brc_stream_docs *docs)
{
    brc_arena_dispose(&docs->arena);
    free(docs->items);
    memset(docs, 0, sizeof(*docs));
}

/* ==== stream sources ================================ */

static void stream_sources_init(brc_stream_sources *sources)
{
    memset(sources, 0, sizeof(*sources));
    sources->by_node = (brc_id_table)BRC_ID_TABLE_INIT(sizeof(brc_span));
}

static void stream_sources_dispose(brc_stream_sources *sources)
{
    brc_arena_dispose(&sources->arena);
    brc_id_table_dispose(&sources->by_node);
}

/* Makes the id of the node at the first `len` bytes of the path in the stream. */
static brc_oid stream_node_id(const char *inner, size_t len)
{
    return brc_hash_object(BRC_HASH_XXH128, BRC_KIND_DOCUMENT, inner, len);
}

/* Keeps the members that are needed to decode the array's chunks, without attributes. BRC_ELIMIT if
 * all together exceed `most` bytes. */
static int stream_sources_keep(brc_stream_sources *sources, const char *inner,
                               const brc_json *doc, uint64_t most, brc_error *err)
{
    brc_oid id = stream_node_id(inner, strlen(inner));
    brc_json *copy;
    brc_buf text = BRC_BUF_INIT;
    void *place;
    uint8_t *kept;
    int rc;
    BRC_TRY(brc_json_clone(&copy, doc, err));
    brc_json_remove(copy, "attributes");
    BRC_GO(brc_json_write(&text, copy, 0, err));
    BRC_GO(brc_arena_copy(&sources->arena, text.data, text.len, &kept, err));
    BRC_GO(brc_id_table_add(&sources->by_node, &id, &place, err));
    *(brc_span *)place = (brc_span){ kept, text.len };
    sources->bytes += text.len + 4 * sizeof(brc_oid);
    if (sources->bytes > most)
        rc = brc_fail(err, BRC_ELIMIT,
                      "the documents of its arrays need more than %llu MiB of memory to re-encode "
                      "them: import it in parts",
                      (unsigned long long)(most >> 20));
done:
    brc_json_free(copy);
    brc_buf_dispose(&text);
    return rc;
}

static int stream_sources_find(brc_json **out, const brc_stream_sources *sources,
                               const char *inner, brc_error *err)
{
    const brc_oid id = stream_node_id(inner, strlen(inner));
    const brc_span *doc = brc_id_table_find(&sources->by_node, &id);
    if (!doc)
        return brc_fail(err, BRC_EINTERNAL, "the document of %s is lost", inner);
    return brc_json_parse(out, (const char *)doc->data, doc->len, 0, err);
}

/* ==== stream in ================================ */

/* Turns members into nodes and chunks. */

#define STORED_MOST ((uint64_t)INT32_MAX) /* bytes of one stored chunk */
/* The size of the table of chunks that have come; each place has 64 adjacent chunks. When the table
 * is full it is cleared, and a chunk that comes again then replaces the first one. */
#define SEEN_MOST ((size_t)1 << 20)
/* The most places of arrays whose chunks were left out; one more is an error. */
#define LEFT_MOST ((size_t)1 << 20)

struct brc_stream {
    brc_session *session;
    breccia *repo;
    brc_tar_in *tar;
    brc_stream_opts opts;
    int recodes;          /* chunks are not taken over as they come           */
    int tar_failed;       /* the failure has the stream's name in front       */
    const char *path;     /* the node that the stream's root becomes          */
    brc_tar_member member; /* the next one                                    */
    int has_member, ended;
    int later;            /* the last chunk was only named                    */
    int excluded;         /* some members before the next one are excluded    */
    brc_stream_file file; /* the file to which members refer                  */
    brc_chunk_place at;   /* of an import that leaves chunks in the file: where the last one lies */
    brc_buf place;        /* of the file; empty before it is needed           */
    brc_stream_docs docs; /* documents that have come and are not nodes yet   */
    int has_nodes;        /* documents have become nodes: others do so at once */
    brc_consolidated *copies; /* the consolidated metadata of the groups that have come */
    brc_import_notes notes;
    uint64_t bytes;       /* of the arrays                                    */
    brc_buf text;         /* of a document                                    */
    brc_stream_sources sources; /* documents of arrays whose chunks are recoded */
    brc_id_table seen;    /* chunks that have come: see SEEN_MOST             */
    brc_id_table left;    /* places of possible arrays with a chunk that was left out */
    uint64_t nodes;       /* the number of nodes made, without the root       */
    /* The array whose chunks come. */
    brc_array *array;
    char *inner;          /* its path in the stream */
    size_t inner_len;
    brc_oid inner_id;
    brc_json *source;     /* for a recoded array: its document there, and the meaning of that */
    brc_meta meta;
};

int brc_stream_open(brc_stream **out, brc_session *s, brc_tar_in *tar, const brc_stream_opts *opts,
                    brc_error *err)
{
    brc_stream *stream;
    *out = NULL;
    BRC_TRY(brc_new((void **)&stream, sizeof(*stream), err));
    stream->session = s;
    stream->repo = brc_session_repo(s);
    stream->tar = tar;
    stream->opts = *opts;
    stream->file.name = opts->file;
    stream->recodes = opts->file || opts->xfer->chunk || opts->xfer->codecs_json;
    stream->seen = (brc_id_table)BRC_ID_TABLE_INIT(sizeof(uint64_t));
    stream->seen.max = SEEN_MOST;
    stream->left = (brc_id_table)BRC_ID_TABLE_INIT(1);
    stream_sources_init(&stream->sources);
    *out = stream;
    return BRC_OK;
}

/* Notes which chunks of the array that comes to its end are stored. */
static int note_stored(brc_stream *w, brc_error *err)
{
    return w->array && brc_is_external(w->opts.xfer) ? brc_external_note(&w->notes, w->array, err)
                                                     : BRC_OK;
}

static void leave_array(brc_stream *w)
{
    brc_array_free(w->array);
    brc_json_free(w->source);
    brc_meta_dispose(&w->meta);
    free(w->inner);
    w->array = NULL;
    w->source = NULL;
    w->inner = NULL;
    memset(&w->meta, 0, sizeof(w->meta));
}

void brc_stream_free(brc_stream *stream)
{
    if (!stream)
        return;
    leave_array(stream);
    stream_docs_dispose(&stream->docs);
    while (stream->copies)
        brc_consolidated_pop(&stream->copies);
    brc_import_notes_dispose(&stream->notes);
    stream_sources_dispose(&stream->sources);
    brc_id_table_dispose(&stream->seen);
    brc_id_table_dispose(&stream->left);
    brc_buf_dispose(&stream->text);
    brc_stream_file_close(&stream->file);
    brc_buf_dispose(&stream->place);
    brc_buf_dispose(&stream->at.place);
    free(stream);
}

/* ---- members ------------------------------------------------------------------------- */

static int member_fails(const brc_stream *w, const char *what, brc_error *err)
{
    return brc_fail(err, BRC_EINVAL, "the member '%.300s' %s", w->member.name, what);
}

static int named(const brc_stream *w, int rc, brc_error *err)
{
    if (rc < 0 && !w->tar_failed)
        brc_context(err, "%s", w->opts.name);
    return rc;
}

/* Returns the range of the next member's bytes, and takes the member. */
static int take_range(brc_stream *w, brc_stream_range *range, brc_error *err)
{
    w->has_member = 0;
    if (!w->file.name)
        return member_fails(w, "refers to another file, which only breccia's own converters may do",
                            err);
    int rc = brc_stream_range_open(range, &w->file, &w->member.range, err);
    if (rc < 0)
        brc_context(err, "/%.300s", w->member.name);
    return rc;
}

/* Tells whether the node is excluded, or cannot be kept. */
static int node_stays_out(const brc_stream *w, const char *name, size_t len)
{
    const brc_parts *parts = w->opts.parts;
    char path[BRC_PATH_MAX + 1];
    if (brc_is_excluded(w->opts.xfer, name, len))
        return 1;
    if (!parts || parts->known.n == 0 || len > BRC_PATH_MAX)
        return 0;
    memcpy(path, name, len);
    path[len] = '\0';
    return brc_parts_have(parts, path);
}

/* Tells whether a member belongs to a node that stays out, or to one under it. */
static int stays_out(const brc_stream *w, const char *name)
{
    const char *slash = name;
    int out = 0;
    if (w->opts.xfer->nexclude == 0 && (!w->opts.parts || w->opts.parts->known.n == 0))
        return 0;
    while (!out && (slash = strchr(slash, '/')) != NULL)
        out = node_stays_out(w, name, (size_t)(slash++ - name));
    return out;
}

/* Tells whether the node itself stays out. */
static int stays_out_whole(const brc_stream *w, const char *inner)
{
    return stays_out(w, inner) || node_stays_out(w, inner, strlen(inner));
}

/* Returns 1 if there is a next member, which stays the next one until it is taken. */
static int peek_member(brc_stream *w, brc_error *err)
{
    while (!w->has_member && !w->ended) {
        BRC_TRY(brc_task_step(w->repo, 0, err));
        int rc = brc_tar_next(w->tar, &w->member, err);
        w->tar_failed = rc < 0;
        if (rc < 0)
            return rc;
        w->ended = rc == 0;
        w->has_member = rc > 0 && !stays_out(w, w->member.name);
        w->excluded |= rc > 0 && !w->has_member;
    }
    return w->has_member;
}

/* A member whose bytes lie in the file, and their number. */
typedef struct referred_bytes {
    brc_stream_range range;
    size_t bytes;
} referred_bytes;

static int find_referred(brc_stream *w, uint64_t limit, referred_bytes *out, brc_error *err)
{
    uint64_t bytes;
    BRC_TRY(take_range(w, &out->range, err));
    if (!brc_tar_range_bytes(&w->member.range, &bytes) || bytes > limit)
        return brc_fail(err, BRC_ELIMIT, "the member '%.200s' is longer than %llu bytes",
                        w->member.name, (unsigned long long)limit);
    out->bytes = (size_t)bytes;
    return BRC_OK;
}

/* Any thread. */
static int read_referred(referred_bytes *r, brc_buf *out, brc_error *err)
{
    BRC_TRY(brc_buf_reserve(out, r->bytes, err));
    BRC_TRY(brc_stream_range_read(&r->range, out->data + out->len, r->bytes, err));
    out->len += r->bytes;
    return BRC_OK;
}

static int take_referred(brc_stream *w, uint64_t limit, brc_buf *out, brc_error *err)
{
    referred_bytes r;
    BRC_TRY(find_referred(w, limit, &r, err));
    return read_referred(&r, out, err);
}

static int take_member(brc_stream *w, uint64_t limit, brc_buf *out, brc_error *err)
{
    if (w->member.refers)
        return take_referred(w, limit, out, err);
    int rc = brc_tar_read(w->tar, limit, out, err);
    w->tar_failed = rc < 0;
    w->has_member = 0;
    return rc;
}

/* ---- documents ----------------------------------------------------------------------- */

static int read_document(brc_stream *w, size_t inner_len, brc_error *err)
{
    brc_buf inner = BRC_BUF_INIT;
    int rc;
    w->text.len = 0;
    BRC_GO(brc_buf_append(&inner, w->member.name, inner_len, err));
    BRC_GO(take_member(w, BRC_JSON_MAX_BYTES, &w->text, err));
    rc = stream_docs_add(&w->docs, (const char *)inner.data, inner_len, &w->text, err);
done:
    brc_buf_dispose(&inner);
    return rc;
}

/* Finds *kind of the node whose document this is, and changes the document to its form in the
 * repository. */
static int take_parsed(brc_json *doc, int *kind, const brc_stream *w, brc_error *err)
{
    brc_json_remove(doc, "consolidated_metadata");
    if (!w->opts.file) /* a converter marks nothing */
        BRC_TRY(brc_nan_restore(doc, err));
    return brc_meta_kind(doc, kind, err);
}

static int parse_document(brc_json **out, int *kind, const brc_stream *w,
                          const brc_stream_doc *doc, brc_error *err)
{
    BRC_TRY(brc_json_parse_document(out, doc->text, doc->len, err));
    int rc = take_parsed(*out, kind, w, err);
    if (rc < 0) {
        brc_json_free(*out);
        *out = NULL;
    }
    return rc;
}

/* Makes the path of the node for a path in the stream; converters have escaped names already. */
static int node_path_of(char **out, const brc_stream *w, const char *inner, brc_error *err)
{
    if (*inner == '\0')
        return brc_dup(out, w->path, err);
    BRC_TRY(w->opts.file ? brc_node_join(out, w->path, inner, err)
                         : brc_path_escape(out, w->path, inner, BRC_NAMES_FILES, err));
    return brc_path_rename(out, w->path, w->opts.xfer, err);
}

static int make_array(brc_stream *w, const char *path, const char *inner, const brc_json *doc,
                      brc_error *err)
{
    brc_json *changed = NULL;
    brc_array *a = NULL;
    int rc;

    if (w->recodes)
        BRC_GO(brc_array_doc_changed(&changed, w->session, doc, path,
                                     w->opts.xfer, w->opts.file != NULL, err));
    BRC_GO(brc_array_create_doc(&a, w->session, path, changed ? changed : doc, err));
    const brc_array_info *info = brc_array_describe(a);
    brc_add_array_bytes(&w->bytes, info->ndim, info->shape, info->item_size);
    if (w->recodes)
        BRC_GO(stream_sources_keep(&w->sources, inner, doc, w->repo->pipe.memory, err));
done:
    brc_array_free(a);
    brc_json_free(changed);
    return rc;
}

/* Refuses an array's document that comes after chunks of the array were left out. */
static int comes_in_time(const brc_stream *w, const char *inner, brc_error *err)
{
    const brc_oid id = stream_node_id(inner, strlen(inner));
    return brc_id_table_find(&w->left, &id)
               ? brc_fail(err, BRC_EINVAL,
                          "it comes after chunks of its array: an array's zarr.json must come "
                          "before its chunks")
               : BRC_OK;
}

/* `json`: the document that came, or a copy. */
static int make_node(brc_stream *w, const char *inner, brc_json *json, brc_error *err)
{
    char *path = NULL;
    int kind, rc;

    BRC_GO(take_parsed(json, &kind, w, err));
    if (!w->opts.file) /* a converter has left them out already */
        BRC_GO(brc_attributes_pick(w->opts.xfer, inner, json, err));
    if (kind == BRC_ARRAY)
        BRC_GO(comes_in_time(w, inner, err));
    BRC_GO(node_path_of(&path, w, inner, err));
    rc = kind == BRC_ARRAY ? make_array(w, path, inner, json, err)
                           : brc_group_create_doc(w->session, path, json, err);
    w->nodes += rc == BRC_OK && *inner;
    if (rc == BRC_EEXISTS && *inner && w->opts.xfer->nrename == 0)
        rc = brc_fail(err, BRC_EEXISTS,
                      "it comes twice, or after the nodes in its group: a group's document comes "
                      "first");
done:
    free(path);
    return rc;
}

static int document_fails(const char *inner, int rc, brc_error *err)
{
    if (rc < 0)
        brc_context(err, "%s%szarr.json", inner, *inner ? "/" : "");
    return rc;
}

/* ---- copies of documents in the consolidated metadata of groups --------------------- */

/* Keeps the group's copies of documents under it, which may not come. */
static int keep_copies(brc_stream *w, const char *inner, const brc_json *doc, brc_error *err)
{
    const brc_json *member = brc_json_member(doc, "consolidated_metadata");
    brc_json *value;
    if (w->opts.file || !member)
        return BRC_OK;
    BRC_TRY(brc_json_clone(&value, member, err));
    return brc_consolidated_push(&w->copies, value, 3, inner, &w->notes, err);
}

/* Compares a document that has come with its copy. */
static int meet_copy(brc_stream *w, const char *inner, const brc_json *doc, brc_error *err)
{
    brc_copied_node *copy = brc_consolidated_find(w->copies, inner);
    int differs = 0;
    if (!copy)
        return BRC_OK;
    copy->used = 1;
    BRC_TRY(brc_copy_differs(&differs, doc, copy->v3, err));
    return differs ? brc_first_names_add(&w->notes.differ, *inner ? inner : "/", err) : BRC_OK;
}

static int make_copied(brc_stream *w, brc_copied_node *copy, brc_error *err)
{
    brc_json *json;
    copy->used = 1;
    BRC_TRY(brc_json_clone(&json, copy->v3, err));
    int rc = document_fails(copy->path, make_node(w, copy->path, json, err), err);
    brc_json_free(json);
    if (rc == BRC_EUNSUPPORTED)
        rc = brc_part_settle(w->opts.parts, named(w, rc, err), copy->path, err);
    return rc < 0 ? rc : BRC_OK;
}

static int is_array_there(int *is, const brc_stream *w, const char *inner, brc_error *err)
{
    char *path;
    int kind;
    BRC_TRY(node_path_of(&path, w, inner, err));
    int rc = brc_node_kind(&kind, w->session, path, err);
    *is = rc == BRC_OK && kind == BRC_ARRAY;
    free(path);
    return rc;
}

/* Makes the nodes on the way to the first `len` bytes of the name, and the one there, of which
 * there are only copies: down to an array, or to an excluded node. */
static int make_copies_to(brc_stream *w, const char *name, size_t len, brc_error *err)
{
    int ends = w->copies == NULL;
    for (size_t i = 1; !ends && i <= len; i++) {
        char *inner;
        if (i < len && name[i] != '/')
            continue;
        if (node_stays_out(w, name, i))
            return BRC_OK;
        BRC_TRY(brc_dup_n(&inner, name, i, err));
        brc_copied_node *copy = brc_consolidated_find(w->copies, inner);
        int rc = copy && copy->v3 && !copy->used ? make_copied(w, copy, err) : BRC_OK;
        if (rc == BRC_OK && i < len)
            rc = is_array_there(&ends, w, inner, err);
        free(inner);
        if (rc < 0)
            return rc;
    }
    return BRC_OK;
}

/* Makes the nodes for which no document came. */
static int make_other_copies(brc_stream *w, brc_error *err)
{
    for (brc_consolidated *c = w->copies; c; c = c->outer) {
        for (size_t i = 0; i < c->n; i++) {
            brc_copied_node *node = (brc_copied_node *)c->nodes + i;
            if (node->used || node != brc_consolidated_find(w->copies, node->path))
                continue;
            BRC_TRY(brc_task_step(w->repo, 0, err));
            BRC_TRY(make_copies_to(w, node->path, strlen(node->path), err));
            if (!node->used && !stays_out_whole(w, node->path))
                BRC_TRY(brc_first_names_add(&w->notes.passed, node->path, err));
        }
    }
    return BRC_OK;
}

/* ---- nodes -------------------------------------------------------------------------- */

static int make_documented(brc_stream *w, const brc_stream_doc *doc, brc_error *err)
{
    const char *above = strrchr(doc->inner, '/');
    brc_json *json;
    int rc;
    if (above)
        BRC_TRY(make_copies_to(w, doc->inner, (size_t)(above - doc->inner), err));
    BRC_TRY(brc_json_parse_document(&json, doc->text, doc->len, err));
    BRC_GO(meet_copy(w, doc->inner, json, err));
    BRC_GO(keep_copies(w, doc->inner, json, err));
    rc = make_node(w, doc->inner, json, err);
done:
    brc_json_free(json);
    return rc;
}

/* Makes the node, unless it cannot be kept or is under such a node. */
static int bring_node(brc_stream *w, const brc_stream_doc *doc, brc_error *err)
{
    for (const char *slash = strchr(doc->inner, '/'); slash; slash = strchr(slash + 1, '/'))
        if (node_stays_out(w, doc->inner, (size_t)(slash - doc->inner)))
            return BRC_OK;
    int rc = document_fails(doc->inner, make_documented(w, doc, err), err);
    if (rc == BRC_EUNSUPPORTED && *doc->inner)
        rc = brc_part_settle(w->opts.parts, named(w, rc, err), doc->inner, err);
    return rc < 0 ? rc : BRC_OK;
}

/* Makes nodes of the waiting documents, parents first. The root's document is among the first ones,
 * so that nothing is added to a node that existed before. */
static int make_nodes(brc_stream *w, brc_error *err)
{
    BRC_TRY(stream_docs_sort(&w->docs, err));
    const brc_stream_doc *docs = w->docs.items;
    if (!w->has_nodes && (w->docs.n == 0 || *docs[0].inner))
        return brc_fail(err, BRC_EINVAL, "it has no zarr.json of its root before its chunks");
    for (size_t i = 0; i < w->docs.n; i++) {
        BRC_TRY(brc_task_step(w->repo, 0, err));
        BRC_TRY(bring_node(w, &docs[i], err));
    }
    stream_docs_dispose(&w->docs);
    w->has_nodes = 1;
    return BRC_OK;
}

/* Collects documents up to the first chunk: a parent's may come after its children's. Returns 1 if
 * the next member is not a document, 0 at the end. */
static int take_documents(brc_stream *w, brc_error *err)
{
    size_t len;
    int rc;
    while ((rc = peek_member(w, err)) > 0 && brc_document_key(w->member.name, &len)) {
        BRC_TRY(read_document(w, len, err));
        if (w->docs.bytes > BRC_STREAM_DOCS_MOST)
            BRC_TRY(make_nodes(w, err));
    }
    if (rc < 0)
        return rc;
    BRC_TRY(make_nodes(w, err));
    return rc;
}

/* ---- the array to which a chunk belongs ---------------------------------------------- */

static int is_in_array(const brc_stream *w)
{
    const char *name = w->member.name;
    size_t len;
    return w->array && (w->inner_len == 0 || (strncmp(name, w->inner, w->inner_len) == 0 &&
                                              name[w->inner_len] == '/')) &&
           !brc_document_key(name, &len);
}

static int open_source_doc(brc_stream *w, brc_error *err)
{
    BRC_TRY(stream_sources_find(&w->source, &w->sources, w->inner, err));
    return brc_meta_open(&w->meta, brc_session_registry(w->session), w->source, err);
}

static int enter_array(brc_stream *w, const char *path, size_t inner_len, brc_error *err)
{
    w->inner_len = inner_len;
    w->inner_id = stream_node_id(w->member.name, inner_len);
    BRC_TRY(brc_dup_n(&w->inner, w->member.name, inner_len, err));
    BRC_TRY(brc_array_open(&w->array, w->session, path, err));
    return w->recodes ? open_source_doc(w, err) : BRC_OK;
}

/* Finds *kind of the node at the first `len` bytes of the member's name; enters an array. */
static int try_array(brc_stream *w, size_t len, int *kind, brc_error *err)
{
    char *inner, *path = NULL;
    int rc;
    BRC_TRY(brc_dup_n(&inner, w->member.name, len, err));
    BRC_GO(node_path_of(&path, w, inner, err));
    BRC_GO(brc_node_kind(kind, w->session, path, err));
    if (*kind == BRC_ARRAY)
        rc = enter_array(w, path, len, err);
done:
    free(path);
    free(inner);
    return rc;
}

static int no_such_array(const brc_stream *w, brc_error *err)
{
    const char *base = strrchr(w->member.name, '/');
    base = base ? base + 1 : w->member.name;
    if (strcmp(base, ".zarray") == 0 || strcmp(base, ".zgroup") == 0 ||
        strcmp(base, ".zattrs") == 0 || strcmp(base, ".zmetadata") == 0)
        return member_fails(
            w, "is of Zarr v2, but a stream is Zarr v3: import the directory instead", err);
    return member_fails(w,
                        "is neither a document nor a chunk of a known array: an array's zarr.json "
                        "comes before its chunks",
                        err);
}

/* Leaves out a chunk that belongs to no array, and notes the places where its array could be: all
 * parts of the name after such a place look like parts of a chunk's key. */
static int leave_chunk_out(brc_stream *w, brc_error *err)
{
    const char *name = w->member.name;
    size_t len = strlen(name);
    void *unused;
    BRC_TRY(brc_first_names_add(&w->notes.chunks, name, err));
    while (len > 0) {
        size_t part = len;
        while (part > 0 && name[part - 1] != '/')
            part--;
        if (!brc_is_like_chunk(name + part, len - part))
            break;
        len = part > 0 ? part - 1 : 0;
        const brc_oid id = stream_node_id(name, len);
        BRC_TRY(brc_id_table_add(&w->left, &id, &unused, err));
    }
    w->has_member = 0;
    return BRC_OK;
}

/* Tells whether a chunk can be left out, as in a directory: converters do not write such chunks,
 * and the memory for them stays small. */
static int can_leave_out(const brc_stream *w)
{
    const char *base = strrchr(w->member.name, '/');
    base = base ? base + 1 : w->member.name;
    return !w->opts.file && !w->member.refers && w->left.n < LEFT_MOST &&
           brc_is_like_chunk(base, strlen(base));
}

/* Finds the array to which the member belongs: the longest path that is not a group's. w->array
 * stays NULL if there is none, and the member was left out. */
static int find_array(brc_stream *w, brc_error *err)
{
    const char *name = w->member.name, *at = name;
    int kind = BRC_GROUP;

    if (is_in_array(w))
        return BRC_OK;
    BRC_TRY(note_stored(w, err));
    leave_array(w);
    BRC_TRY(make_copies_to(w, name, strlen(name), err));
    BRC_TRY(try_array(w, 0, &kind, err));
    while (kind == BRC_GROUP) {
        at += strcspn(at, "/");
        if (*at == '\0')
            break;
        BRC_TRY(try_array(w, (size_t)(at - name), &kind, err));
        at++;
    }
    if (w->array)
        return BRC_OK;
    return can_leave_out(w) ? leave_chunk_out(w, err) : no_such_array(w, err);
}

/* ---- chunks -------------------------------------------------------------------------- */

/* Fails with BRC_EINVAL if this chunk has come before. */
static int see_chunk(brc_stream *w, int ndim, const uint64_t *index, brc_error *err)
{
    struct {
        brc_oid array;
        uint64_t index[BRC_MAX_NDIM];
    } key;
    void *bits;
    memset(&key, 0, sizeof(key));
    key.array = w->inner_id;
    memcpy(key.index, index, (size_t)ndim * sizeof(*index));
    uint64_t bit = ndim > 0 ? UINT64_C(1) << (index[ndim - 1] & 63) : 1;
    if (ndim > 0)
        key.index[ndim - 1] >>= 6;
    brc_oid id = brc_hash_object(BRC_HASH_XXH128, BRC_KIND_CHUNK, &key, sizeof(key));
    BRC_TRY(brc_id_table_add(&w->seen, &id, &bits, err));
    if (*(uint64_t *)bits & bit)
        return member_fails(w, "comes twice", err);
    *(uint64_t *)bits |= bit;
    return BRC_OK;
}

static int parse_key(const brc_stream *w, uint64_t *index, int *inside)
{
    const char *key = w->member.name + w->inner_len + (w->inner_len > 0);
    return w->recodes ? brc_meta_key_parse(&w->meta, key, index, inside)
                      : brc_chunk_key_parse(w->array, key, index, inside);
}

/* Says where the member that was read lies, if it lies in the file and is to stay there. */
static int tell_place(brc_stream *w, brc_error *err)
{
    struct stat st;
    if (!w->member.refers || w->member.range.pieces != 1 || !brc_is_external(w->opts.xfer))
        return BRC_OK;
    if (w->place.len == 0) {
        if (fstat(w->file.fd, &st) != 0)
            return brc_fail_os(err, errno, "cannot read", w->file.name);
        BRC_TRY(brc_external_place(&w->place, w->repo->store, w->file.name, &st, err));
    }
    w->at.offset = w->member.range.at;
    return brc_buf_append(&w->at.place, w->place.data, w->place.len, err);
}

/* The load function of brc_chunk_source. */
static int load_of_array(void *ctx, const uint64_t *index, brc_buf *stored, brc_error *err)
{
    referred_bytes r;
    (void)ctx;
    (void)index;
    memcpy(&r, stored->data, sizeof(r));
    stored->len = 0;
    return read_referred(&r, stored, err);
}

/* Reads a chunk, or leaves that to load_of_array(), if its bytes lie in the file. */
static int take_stored(brc_stream *w, const uint64_t *index, brc_buf *stored, brc_error *err)
{
    referred_bytes r;
    w->later = 0;
    if (!w->recodes || !w->member.refers)
        return take_member(w, STORED_MOST, stored, err);
    BRC_TRY(find_referred(w, STORED_MOST, &r, err));
    w->later = brc_chunk_may_wait(&w->meta, index, r.bytes);
    return w->later ? brc_buf_append(stored, &r, sizeof(r), err) : read_referred(&r, stored, err);
}

/* The next function of brc_chunk_source: returns the array's chunks as long as they come in
 * sequence. */
static int next_of_array(void *ctx, uint64_t *index, brc_buf *stored, brc_error *err)
{
    brc_stream *w = ctx;
    int inside = 0, rc = peek_member(w, err);
    if (rc <= 0)
        return rc;
    if (!is_in_array(w))
        return 0;
    if (!parse_key(w, index, &inside))
        return member_fails(w, "is not a chunk: its name is not a chunk key of its array", err);
    if (!inside)
        return member_fails(w, "lies outside the grid of its array", err);
    BRC_TRY(see_chunk(w, brc_array_describe(w->array)->ndim, index, err));
    BRC_TRY(take_stored(w, index, stored, err));
    BRC_TRY(tell_place(w, err));
    return 1;
}

/* ---- all elements, contiguous in the file -------------------- */

/* Tells whether the array's elements travel as plain bytes. */
static int bytes_order(const brc_stream *w, int *big)
{
    const brc_json *codecs = brc_json_member(w->source, "codecs");
    const brc_json *codec = brc_json_item(codecs, 0);
    *big = brc_json_is(brc_json_member(brc_json_member(codec, "configuration"), "endian"), "big");
    return brc_json_count(codecs) == 1 && brc_json_is(brc_json_member(codec, "name"), "bytes") &&
           !brc_meta_is_variable(&w->meta);
}

/* Tells whether the member holds all elements, instead of chunks. */
static int are_elements(const brc_stream *w)
{
    return w->opts.file && w->member.refers &&
           strcmp(w->member.name + w->inner_len + (w->inner_len > 0), BRC_STREAM_ELEMENTS) == 0;
}

static int take_elements(brc_stream *w, brc_error *err)
{
    brc_stream_range range;
    brc_element_source source = { .ctx = &range, .read = brc_stream_range_read };
    uint64_t bytes, referred;
    if (!bytes_order(w, &source.big) ||
        !brc_shape_bytes(w->meta.ndim, w->meta.shape, w->meta.type->item_size, &bytes) ||
        !brc_tar_range_bytes(&w->member.range, &referred) || bytes != referred)
        return member_fails(w, "is not as long as its array", err);
    BRC_TRY(take_range(w, &range, err));
    const brc_external_elements from = { .file = &w->file, .range = range.range,
                                         .big = source.big };
    brc_task task = brc_task_begin(w->repo, "import", bytes);
    int rc = brc_is_external(w->opts.xfer) ? brc_external_take(w->array, &from, err)
                                           : brc_array_write_stream(w->array, NULL, &source, err);
    brc_task_end(w->repo, &task, rc);
    return rc;
}

/* Takes the rest. An array without elements asks for no chunk: a member that claims to be one would
 * stay. */
static int take_rest(brc_stream *w, brc_error *err)
{
    uint64_t index[BRC_MAX_NDIM];
    brc_buf stored = BRC_BUF_INIT;
    int rc;
    do
        rc = next_of_array(w, index, &stored, err);
    while (rc > 0);
    brc_buf_dispose(&stored);
    return rc;
}

static int take_chunks(brc_stream *w, brc_error *err)
{
    const int stay = brc_is_external(w->opts.xfer);
    const brc_chunk_source source = { .ctx = w, .next = next_of_array,
                                      .at = stay ? &w->at : NULL,
                                      .load = load_of_array, .later = &w->later };
    BRC_TRY(find_array(w, err));
    if (!w->array)
        return BRC_OK;
    if (are_elements(w))
        return take_elements(w, err);
    BRC_TRY(w->recodes ? brc_array_put_recoded(w->array, w->source, &source, err)
                       : brc_array_put_stored(w->array, &source, err));
    return take_rest(w, err);
}

/* ---- the functions ------------------------------------------------------------------- */

static int import_stream(brc_stream *w, brc_error *err)
{
    BRC_TRY(take_documents(w, err));
    brc_task_know(w->repo, w->bytes);
    brc_task task = brc_task_begin(w->repo, "import", w->bytes);
    int rc;
    do
        rc = w->has_member ? take_chunks(w, err) : BRC_OK;
    while (rc >= 0 && (rc = take_documents(w, err)) > 0);
    if (rc == BRC_OK)
        rc = note_stored(w, err);
    if (rc == BRC_OK)
        rc = make_other_copies(w, err);
    if (rc == BRC_OK && w->nodes == 0 && w->notes.chunks.n > 0 && !w->excluded)
        rc = brc_import_notes_barren(&w->notes, err);
    if (rc == BRC_OK)
        rc = brc_import_notes_write(&w->notes, w->opts.name, w->opts.xfer->warnings, err);
    brc_task_end(w->repo, &task, rc);
    return rc;
}

int brc_stream_import(brc_stream *stream, const char *path, brc_error *err)
{
    stream->path = path;
    return named(stream, import_stream(stream, err), err);
}

static int count_document(brc_stream *w, size_t inner_len, uint64_t *bytes, brc_error *err)
{
    brc_json *json;
    int kind;
    BRC_TRY(read_document(w, inner_len, err));
    int rc = parse_document(&json, &kind, w, w->docs.items, err);
    if (rc == BRC_OK && kind == BRC_ARRAY)
        rc = brc_add_doc_bytes(bytes, brc_session_registry(w->session), json, err);
    brc_json_free(json);
    stream_docs_dispose(&w->docs);
    return rc;
}

int brc_stream_bytes(uint64_t *bytes, brc_stream *stream, brc_error *err)
{
    size_t len;
    int rc;
    *bytes = 0;
    while ((rc = peek_member(stream, err)) > 0 && brc_document_key(stream->member.name, &len) &&
           (rc = count_document(stream, len, bytes, err)) == BRC_OK)
        ;
    return named(stream, rc < 0 ? rc : BRC_OK, err);
}

int brc_stream_is_group(int *is, brc_stream *stream, brc_error *err)
{
    brc_json *json = NULL;
    size_t len;
    int kind, rc = peek_member(stream, err);
    *is = 1;
    if (rc > 0 && brc_document_key(stream->member.name, &len) && len == 0) {
        rc = read_document(stream, 0, err);
        if (rc == BRC_OK)
            rc = parse_document(&json, &kind, stream, stream->docs.items, err);
        *is = rc == BRC_OK && kind == BRC_GROUP;
        brc_json_free(json);
    }
    return named(stream, rc < 0 ? rc : BRC_OK, err);
}
