#include "made.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "../breccia_codec.h"
#include "../breccia_json.h"

/* The most bytes of a made document. */
enum { DOCUMENT_MOST = 64 << 20 };

#define TRY(expr)             \
    do {                      \
        int try_rc_ = (expr); \
        if (try_rc_ < 0)      \
            return try_rc_;   \
    } while (0)

static int put_string(brc_buf *out, const char *text, brc_error *err)
{
    return brc_buf_append(out, text, strlen(text), err);
}

/* ---- consolidated metadata -------------------------------- */

/* Appends a document's members, without those that are copies of other documents. */
static int put_members(brc_buf *out, const brc_json *doc, brc_error *err)
{
    int n = 0;
    for (const brc_json *m = brc_json_first(doc); m != NULL; m = brc_json_next(m)) {
        const char *name = brc_json_name(m);
        if (strcmp(name, "consolidated_metadata") == 0)
            continue;
        TRY(put_string(out, n++ > 0 ? "," : "", err));
        TRY(brc_json_quote(out, name, strlen(name), err));
        TRY(put_string(out, ":", err));
        TRY(brc_json_write(out, m, 0, err));
    }
    return BRC_OK;
}

/* Appends the document of a node of format 3. */
static int put_node3(brc_buf *out, brc_session *s, const char *path, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    brc_json *doc = NULL;
    int rc = brc_node_json(&text, s, path, err);
    if (rc == BRC_OK)
        rc = brc_json_parse(&doc, (const char *)text.data, text.len, BRC_JSON_NAN, err);
    if (rc == BRC_OK)
        rc = put_string(out, "{", err);
    if (rc == BRC_OK)
        rc = put_members(out, doc, err);
    if (rc == BRC_OK)
        rc = put_string(out, "}", err);
    brc_json_free(doc);
    brc_buf_dispose(&text);
    return rc;
}

static int put_member_name(brc_buf *out, const char *inner, const char *name, brc_error *err)
{
    brc_buf full = BRC_BUF_INIT;
    int rc = brc_buf_printf(&full, err, "%s%s%s", inner, *inner != '\0' && *name != '\0' ? "/" : "",
                            name);
    if (rc == BRC_OK)
        rc = brc_json_quote(out, (const char *)full.data, full.len, err);
    brc_buf_dispose(&full);
    return rc == BRC_OK ? put_string(out, ":", err) : rc;
}

/* Appends the documents of a node of format 2. An array that it cannot express is left out. */
static int put_node2(brc_buf *out, brc_session *s, const brc_node *node, const char *inner,
                     brc_error *err)
{
    brc_buf own = BRC_BUF_INIT, attrs = BRC_BUF_INIT;
    const char *comma = out->len > 0 && out->data[out->len - 1] != '{' ? "," : "";
    int rc = brc_node_json_v2(&own, &attrs, s, node->path, err);
    if (rc == BRC_OK)
        rc = put_string(out, comma, err);
    if (rc == BRC_OK)
        rc = put_member_name(out, inner, node->kind == BRC_ARRAY ? ".zarray" : ".zgroup", err);
    if (rc == BRC_OK)
        rc = brc_buf_append(out, own.data, own.len, err);
    if (rc == BRC_OK && attrs.len > 0) {
        rc = put_string(out, ",", err);
        if (rc == BRC_OK)
            rc = put_member_name(out, inner, ".zattrs", err);
        if (rc == BRC_OK)
            rc = brc_buf_append(out, attrs.data, attrs.len, err);
    }
    brc_buf_dispose(&own);
    brc_buf_dispose(&attrs);
    return rc == BRC_EUNSUPPORTED ? BRC_OK : rc;
}

/* Appends the documents of all nodes below a group, in format 2 also its own. Returns 0 if there
 * are too many. */
static int put_nodes(brc_buf *out, brc_session *s, const char *path, int format, brc_error *err)
{
    brc_iter *it;
    const brc_node *node;
    const size_t skipped = strcmp(path, "/") == 0 ? 1 : strlen(path) + 1;
    size_t n = 0;
    int rc;
    TRY(brc_list(&it, s, path, BRC_LIST_RECURSE, err));
    while ((rc = brc_next(it, &node, err)) > 0) {
        const char *inner = strlen(node->path) > skipped ? node->path + skipped : "";
        if (n++ > SERVE_CONSOLIDATED_MOST || out->len > DOCUMENT_MOST)
            break;
        if (*inner == '\0' && format == 3)
            continue;
        if (format == 2) {
            rc = put_node2(out, s, node, inner, err);
        } else {
            rc = put_string(out, out->data[out->len - 1] != '{' ? "," : "", err);
            if (rc == BRC_OK)
                rc = put_member_name(out, inner, "", err);
            if (rc == BRC_OK)
                rc = put_node3(out, s, node->path, err);
        }
        if (rc < 0)
            break;
    }
    brc_iter_free(it);
    return rc < 0 ? rc : rc == 0;
}

/* Appends a group's document with those of all nodes below it, or without them if they are too
 * many. */
static int make_zarr_json(brc_buf *out, brc_session *s, const char *path, brc_error *err)
{
    TRY(put_node3(out, s, path, err));
    const size_t len = out->len;
    out->len--;
    TRY(put_string(out,
                   ",\"consolidated_metadata\":{\"kind\":\"inline\",\"must_understand\":false,"
                   "\"metadata\":{",
                   err));
    const int rc = put_nodes(out, s, path, 3, err);
    if (rc > 0)
        return put_string(out, "}}}", err);
    if (rc < 0)
        return rc;
    out->len = len;
    out->data[len - 1] = '}';
    return BRC_OK;
}

static int make_zmetadata(brc_buf *out, brc_session *s, const char *path, brc_error *err)
{
    TRY(put_string(out, "{\"zarr_consolidated_format\":1,\"metadata\":{", err));
    const int rc = put_nodes(out, s, path, 2, err);
    if (rc == 0)
        return brc_fail(err, BRC_ENOTFOUND, "%s has too many nodes for one document", path);
    return rc < 0 ? rc : put_string(out, "}}", err);
}

/* ---- documents of format 2 -------------------------------- */

static int make_document2(brc_buf *out, brc_session *s, const char *path, const char *name,
                          brc_error *err)
{
    brc_buf other = BRC_BUF_INIT;
    const int is_attrs = strcmp(name, ".zattrs") == 0;
    int rc = brc_node_json_v2(is_attrs ? &other : out, is_attrs ? out : &other, s, path, err);
    brc_buf_dispose(&other);
    if (rc == BRC_OK && out->len == 0)
        rc = brc_fail(err, BRC_ENOTFOUND, "%s has no attributes", path);
    return rc;
}

/* ---- which document a key is -------------------------------- */

typedef struct document {
    char *path;       /* of the node: "/a" */
    const char *name; /* ".zarray" ...     */
    int kind;         /* which the node must have; 0: any */
} document;

/* Returns 1 if the last part of the key is the name of a made document. */
static int document_of(document *out, int format, const char *key, brc_error *err)
{
    static const struct {
        const char *name;
        int format, kind;
    } names[] = { { "zarr.json", 3, BRC_GROUP },
                  { ".zgroup", 2, BRC_GROUP },
                  { ".zarray", 2, BRC_ARRAY },
                  { ".zattrs", 2, 0 },
                  { ".zmetadata", 2, BRC_GROUP } };
    const char *slash = strrchr(key, '/'), *name = slash != NULL ? slash + 1 : key;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].format != format || strcmp(names[i].name, name) != 0)
            continue;
        const size_t len = slash != NULL ? (size_t)(slash - key) : 0;
        out->path = malloc(len + 2);
        if (out->path == NULL)
            return brc_fail(err, BRC_ENOMEM, "out of memory");
        out->path[0] = '/';
        memcpy(out->path + 1, key, len);
        out->path[len + 1] = '\0';
        out->name = name;
        out->kind = names[i].kind;
        return 1;
    }
    return 0;
}

static int make_document(brc_buf *out, brc_session *s, const document *d, brc_error *err)
{
    if (strcmp(d->name, "zarr.json") == 0)
        return make_zarr_json(out, s, d->path, err);
    if (strcmp(d->name, ".zmetadata") == 0)
        return make_zmetadata(out, s, d->path, err);
    return make_document2(out, s, d->path, d->name, err);
}

/* Appends the document from the cache, or made now. Returns 0 if it is the file's own. */
static int get_document(brc_buf *out, serve_reader *reader, const serve_version *version,
                        const document *d, const serve_request *q, brc_error *err)
{
    brc_buf name = BRC_BUF_INIT;
    serve_cache *cache = serve_reader_cache(reader);
    int kind;
    int rc = brc_buf_printf(&name, err, "%" PRIu64 "/%s/%s:%s", serve_reader_number(reader),
                            version->hex, d->name, d->path);
    if (rc == BRC_OK)
        rc = serve_cache_get(out, cache, (const char *)name.data, err);
    if (rc != 0)
        goto done;
    rc = brc_node_kind(&kind, version->session, d->path, err);
    if (rc == BRC_OK && (kind == 0 || (d->kind != 0 && kind != d->kind))) {
        if (kind == 0 || strcmp(d->name, "zarr.json") != 0)
            rc = brc_fail(err, BRC_ENOTFOUND, "there is no %s at %s", d->name, d->path);
        goto done;
    }
    if (rc == BRC_OK && !q->may_wait)
        rc = brc_fail(err, BRC_EBUSY, "a worker does this");
    if (rc == BRC_OK)
        rc = make_document(out, version->session, d, err);
    if (rc == BRC_OK) {
        serve_cache_put(cache, (const char *)name.data, out);
        rc = 1;
    }
done:
    brc_buf_dispose(&name);
    return rc;
}

int serve_made_document(serve_reply *out, serve_reader *reader, const serve_version *version,
                        int format, const char *key, const serve_request *q, brc_error *err)
{
    document d = { 0 };
    XXH128_canonical_t digest;
    serve_answer *a = &out->answer;
    int rc = document_of(&d, format, key, err);
    if (rc <= 0)
        return rc;
    rc = get_document(&a->body, reader, version, &d, q, err);
    free(d.path);
    if (rc <= 0)
        return rc;
    a->type = "application/json";
    XXH128_canonicalFromHash(&digest, XXH3_128bits(a->body.data, a->body.len));
    for (size_t i = 0; i < sizeof(digest.digest); i++)
        (void)snprintf(a->etag + 2 * i, 3, "%02x", digest.digest[i]);
    serve_reply_cut(out, q);
    return 1;
}

/* ---- keys of format 2 -------------------------------- */

/* Reads "0", "1.2" or "1/2": returns how many numbers there are; 0 if it is something else. */
static int read_index_v2(uint64_t *index, const char *text, char separator)
{
    int n = 0;
    for (const char *p = text;; p++) {
        char *end;
        if (*p < '0' || *p > '9' || (*p == '0' && p[1] >= '0' && p[1] <= '9') || n == BRC_MAX_NDIM)
            return 0;
        index[n++] = strtoull(p, &end, 10);
        if (end - p > 19)
            return 0;
        p = end;
        if (*p == '\0')
            return n;
        if (*p != separator)
            return 0;
    }
}

static int separator_of(char *out, brc_session *s, const char *path, brc_error *err)
{
    brc_buf own = BRC_BUF_INIT, attrs = BRC_BUF_INIT;
    brc_json *doc = NULL;
    int rc = brc_node_json_v2(&own, &attrs, s, path, err);
    if (rc == BRC_OK)
        rc = brc_json_parse(&doc, (const char *)own.data, own.len, BRC_JSON_NAN, err);
    *out = brc_json_is(brc_json_member(doc, "dimension_separator"), "/") ? '/' : '.';
    brc_json_free(doc);
    brc_buf_dispose(&own);
    brc_buf_dispose(&attrs);
    return rc;
}

/* Appends the chunk's key in the file, if `rest` is one of the array. Returns 0 if it is not. */
static int key_in_array(brc_buf *out, brc_session *s, const char *path, const char *rest,
                        brc_error *err)
{
    uint64_t index[BRC_MAX_NDIM] = { 0 };
    char separator;
    brc_array *a;
    TRY(separator_of(&separator, s, path, err));
    const int n = read_index_v2(index, rest, separator);
    TRY(brc_array_open(&a, s, path, err));
    const int ndim = brc_array_describe(a)->ndim;
    int rc = 0;
    if (n > 0 && (n == ndim || (ndim == 0 && n == 1 && index[0] == 0))) {
        rc = brc_buf_printf(out, err, "%s/", path + 1);
        if (rc == BRC_OK)
            rc = brc_chunk_key(out, a, index, err);
        rc = rc < 0 ? rc : 1;
    }
    brc_array_free(a);
    return rc;
}

/* Only an array ends where numbers begin, and of a key at most so many parts are numbers. */
int serve_key_of_v2(brc_buf *out, const serve_version *version, const char *key, brc_error *err)
{
    char path[5200];
    const size_t len = strlen(key);
    size_t at = len;
    int rc = 0;
    if (len + 2 > sizeof(path))
        return brc_fail(err, BRC_ENOTFOUND, "there is no key '%.200s'", key);
    path[0] = '/';
    memcpy(path + 1, key, len + 1);
    for (int i = 0; i < BRC_MAX_NDIM && at > 0 && rc == 0; i++) {
        const size_t end = i == 0 ? at : at - 1;
        int kind;
        at = end;
        while (at > 0 && path[at] != '/')
            at--;
        if (strspn(path + at + 1, "0123456789.") != end - at)
            break;
        path[at] = '\0';
        TRY(brc_node_kind(&kind, version->session, at > 0 ? path : "/", err));
        if (kind == BRC_ARRAY)
            rc = key_in_array(out, version->session, at > 0 ? path : "/", key + at, err);
        path[at] = '/';
        if (kind != 0)
            break;
    }
    if (rc == 0)
        rc = brc_fail(err, BRC_ENOTFOUND, "there is no key '%.200s'", key);
    return rc < 0 ? rc : BRC_OK;
}

/* ---- lists of format 2 -------------------------------- */

/* Adds what remains of a name behind the directory, up to the next "/". */
static int add_in_directory(serve_names *out, const char *name, const char *directory,
                            brc_error *err)
{
    const size_t len = strlen(directory);
    if (strncmp(name, directory, len) != 0 || name[len] == '\0')
        return BRC_OK;
    const char *slash = strchr(name + len, '/');
    return slash != NULL ? serve_names_add(out, name + len, (size_t)(slash - name) - len, "/", err)
                         : serve_names_add(out, name + len, strlen(name + len), "", err);
}

/* Makes the index of a chunk's key of format 3, "c/0/1", "c.0.1" or "0.1", one of format 2. */
static int put_key2(brc_buf *out, const char *key, char separator, brc_error *err)
{
    out->len = 0;
    if (*key == 'c')
        key += key[1] != '\0' ? 2 : 1;
    if (*key == '\0')
        key = "0";
    for (; *key != '\0'; key++) {
        const char c = *key >= '0' && *key <= '9' ? *key : separator;
        TRY(brc_buf_append(out, &c, 1, err));
    }
    return brc_buf_append(out, "", 1, err);
}

/* Adds the chunks of an array that are in a directory of it: "" or "0/". */
static int add_chunks2(serve_names *out, brc_session *s, const char *path, const char *directory,
                       brc_error *err)
{
    brc_buf prefix = BRC_BUF_INIT, name = BRC_BUF_INIT;
    brc_iter *it = NULL;
    const char *key;
    char separator;
    int rc = separator_of(&separator, s, path, err);
    if (rc == BRC_OK)
        rc = brc_buf_printf(&prefix, err, "%s/", path + 1);
    if (rc == BRC_OK)
        rc = brc_keys(&it, s, (const char *)prefix.data, 0, err);
    while (rc >= 0 && (rc = brc_next(it, &key, err)) > 0) {
        if (strcmp(key + prefix.len, "zarr.json") == 0)
            continue;
        rc = put_key2(&name, key + prefix.len, separator, err);
        if (rc == BRC_OK)
            rc = add_in_directory(out, (const char *)name.data, directory, err);
    }
    brc_iter_free(it);
    brc_buf_dispose(&prefix);
    brc_buf_dispose(&name);
    return rc;
}

/* Adds a node's documents. */
static int add_documents2(serve_names *out, brc_session *s, const char *path, int kind,
                          brc_error *err)
{
    brc_buf own = BRC_BUF_INIT, attrs = BRC_BUF_INIT;
    const char *name = kind == BRC_ARRAY ? ".zarray" : ".zgroup";
    int rc = brc_node_json_v2(&own, &attrs, s, path, err);
    if (rc == BRC_OK)
        rc = serve_names_add(out, name, strlen(name), "", err);
    if (rc == BRC_OK && attrs.len > 0)
        rc = serve_names_add(out, ".zattrs", 7, "", err);
    if (rc == BRC_OK && kind == BRC_GROUP)
        rc = serve_names_add(out, ".zmetadata", 10, "", err);
    brc_buf_dispose(&own);
    brc_buf_dispose(&attrs);
    return rc;
}

/* Returns 1 if format 2 can express the node, else 0. */
static int is_expressed2(brc_session *s, const brc_node *node, brc_error *err)
{
    brc_buf own = BRC_BUF_INIT, attrs = BRC_BUF_INIT;
    if (node->kind == BRC_GROUP)
        return 1;
    const int rc = brc_node_json_v2(&own, &attrs, s, node->path, err);
    brc_buf_dispose(&own);
    brc_buf_dispose(&attrs);
    return rc == BRC_EUNSUPPORTED ? 0 : rc < 0 ? rc : 1;
}

static int add_children2(serve_names *out, brc_session *s, const char *path, brc_error *err)
{
    brc_iter *it;
    const brc_node *node;
    int rc;
    TRY(brc_list(&it, s, path, 0, err));
    while ((rc = brc_next(it, &node, err)) > 0) {
        const char *name = strrchr(node->path, '/') + 1;
        rc = is_expressed2(s, node, err);
        if (rc > 0)
            rc = serve_names_add(out, name, strlen(name), "/", err);
        if (rc < 0)
            break;
    }
    brc_iter_free(it);
    return rc;
}

int serve_list_v2(serve_names *out, const serve_version *version, const char *directory,
                  brc_error *err)
{
    char path[5200];
    size_t len = strlen(directory);
    int kind = 0;
    if (len + 2 > sizeof(path))
        return BRC_OK;
    path[0] = '/';
    memcpy(path + 1, directory, len + 1);
    if (len > 0)
        path[len] = '\0';
    TRY(brc_node_kind(&kind, version->session, path, err));
    if (kind != 0)
        TRY(add_documents2(out, version->session, path, kind, err));
    if (kind == BRC_GROUP)
        return add_children2(out, version->session, path, err);
    while (kind == 0 && len > 0) { /* perhaps a directory of chunks */
        while (len > 0 && path[len] != '/')
            len--;
        path[len] = '\0';
        if (len == 0)
            return BRC_OK;
        TRY(brc_node_kind(&kind, version->session, path, err));
    }
    len = strlen(path);
    return kind == BRC_ARRAY ? add_chunks2(out, version->session, path,
                                           strlen(directory) >= len ? directory + len : "", err)
                             : BRC_OK;
}
