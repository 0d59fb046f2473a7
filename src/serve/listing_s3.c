/*
 * Lists in the form of S3's ListObjects and ListObjectsV2. The path of the request is the bucket,
 * with whatever is in front of the prefix. Keys are relative to that path.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../breccia_codec.h"
#include "keys.h"
#include "listing.h"

/* The most items of one answer. */
enum { ITEMS_MOST = 1000 };

typedef struct s3_list {
    const serve_request *q;
    const char *prefix; /* the parameter                                   */
    char *above;        /* of it, what is in front of the last name        */
    const char *after;  /* items up to this one have been listed           */
    int by_directory;   /* the delimiter is "/"                            */
    int encodes;        /* keys are percent-encoded                        */
    uint64_t most;
    serve_target target; /* path and prefix together                        */
    serve_names names;   /* full keys; one that ends with "/" is a directory */
} s3_list;

int serve_is_s3(const serve_query *query)
{
    return serve_query_get(query, "list-type") != NULL ||
           serve_query_get(query, "delimiter") != NULL || serve_query_get(query, "prefix") != NULL;
}

/* ---- the request -------------------------------- */

/* Reads the path with the prefix behind it as one target. */
static int read_joined(s3_list *l, brc_error *err)
{
    brc_buf uri = BRC_BUF_INIT;
    const char *path = l->q->uri;
    const size_t len = strcspn(path, "?");
    int rc = brc_buf_append(&uri, path, len, err);
    if (rc == BRC_OK && len > 0 && path[len - 1] != '/')
        rc = brc_buf_append(&uri, "/", 1, err);
    if (rc == BRC_OK)
        rc = serve_url_escape(&uri, l->prefix, 1, err);
    if (rc == BRC_OK)
        rc = brc_buf_append(&uri, "", 1, err);
    if (rc == BRC_OK)
        rc = serve_target_read(&l->target, (const char *)uri.data, l->q->token, err);
    brc_buf_dispose(&uri);
    return rc;
}

static int read_parameters(s3_list *l, brc_error *err)
{
    const serve_query *query = &l->q->target->query;
    const char *text = serve_query_get(query, "prefix"), *most = serve_query_get(query, "max-keys");
    const char *encoding = serve_query_get(query, "encoding-type");
    l->prefix = text != NULL ? text : "";
    l->above = strdup(l->prefix);
    if (l->above == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    char *slash = strrchr(l->above, '/');
    if (slash != NULL)
        slash[1] = '\0';
    else
        l->above[0] = '\0';
    l->after = serve_query_get(query, "continuation-token");
    if (l->after == NULL)
        l->after = serve_query_get(query, "start-after");
    if (l->after == NULL)
        l->after = serve_query_get(query, "marker");
    text = serve_query_get(query, "delimiter");
    if (text != NULL && *text != '\0' && strcmp(text, "/") != 0)
        return brc_fail(err, BRC_EINVAL, "the delimiter of a list must be /");
    l->by_directory = text != NULL && *text == '/';
    l->encodes = encoding != NULL && strcmp(encoding, "url") == 0;
    l->most = most != NULL ? strtoull(most, NULL, 10) : ITEMS_MOST;
    if (l->most > ITEMS_MOST)
        l->most = ITEMS_MOST;
    return read_joined(l, err);
}

/* ---- names -------------------------------- */

/* Adds a name in the directory of the prefix, if it begins as the prefix does. */
static int add_below(s3_list *l, const char *name, brc_error *err)
{
    brc_buf full = BRC_BUF_INIT;
    int rc = brc_buf_printf(&full, err, "%s%s", l->above, name);
    if (rc == BRC_OK && strncmp((const char *)full.data, l->prefix, strlen(l->prefix)) == 0)
        rc = serve_names_add(&l->names, (const char *)full.data, full.len, "", err);
    brc_buf_dispose(&full);
    return rc;
}

/* Sets *directory to what of the target's key is in front of its last name; the caller frees it. */
static int directory_of(char **directory, const serve_target *t, brc_error *err)
{
    const char *slash = strrchr(t->key, '/');
    *directory = strndup(t->key, slash != NULL ? (size_t)(slash + 1 - t->key) : 0);
    return *directory != NULL ? BRC_OK : brc_fail(err, BRC_ENOMEM, "out of memory");
}

/* Tells whether names below this directory may begin as the prefix does. */
static int may_lead_to(const s3_list *l, const char *inside)
{
    const char *rest = l->prefix + strlen(l->above);
    const size_t n = strlen(inside), m = strlen(rest);
    return strncmp(inside, rest, n < m ? n : m) == 0;
}

/* Adds everything below a directory, `inner` is relative to that of the prefix. */
static int add_tree(s3_list *l, const serve_version *v, const char *directory, const char *inner,
                    unsigned depth, brc_error *err)
{
    serve_names here = { 0 };
    int rc = depth < 2000 ? serve_directory(&here, v, l->target.format, directory, err)
                          : brc_fail(err, BRC_ELIMIT, "the directories are nested too deeply");
    for (size_t i = 0; i < here.n && rc == BRC_OK; i++) {
        const char *name = here.names[i];
        brc_buf deeper = BRC_BUF_INIT, inside = BRC_BUF_INIT;
        rc = brc_buf_printf(&inside, err, "%s%s", inner, name);
        if (rc == BRC_OK && (l->by_directory || name[strlen(name) - 1] != '/'))
            rc = add_below(l, (const char *)inside.data, err);
        else if (rc == BRC_OK && may_lead_to(l, (const char *)inside.data)) {
            rc = brc_buf_printf(&deeper, err, "%s%s", directory, name);
            if (rc == BRC_OK)
                rc = add_tree(l, v, (const char *)deeper.data, (const char *)inside.data, depth + 1,
                              err);
        }
        brc_buf_dispose(&deeper);
        brc_buf_dispose(&inside);
    }
    serve_names_dispose(&here);
    return rc;
}

/* ---- the answer -------------------------------- */

static int put_text_element(brc_buf *out, const s3_list *l, const char *name, const char *text,
                            brc_error *err)
{
    int rc = brc_buf_printf(out, err, "<%s>", name);
    if (rc == BRC_OK)
        rc = l->encodes ? serve_url_escape(out, text, 1, err) : serve_html_escape(out, text, err);
    return rc == BRC_OK ? brc_buf_printf(out, err, "</%s>", name) : rc;
}

static int put_directory(brc_buf *out, const s3_list *l, const char *key, brc_error *err)
{
    int rc = brc_buf_printf(out, err, "<CommonPrefixes>");
    if (rc == BRC_OK)
        rc = put_text_element(out, l, "Prefix", key, err);
    return rc == BRC_OK ? brc_buf_printf(out, err, "</CommonPrefixes>") : rc;
}

static int put_object(brc_buf *out, const s3_list *l, serve_reader *reader, const serve_version *v,
                      const char *key, const char *directory, brc_error *err)
{
    char date[40] = "1970-01-01T00:00:00.000Z";
    const time_t seconds = (time_t)(v->time_us / 1000000);
    struct tm parts;
    serve_request head = *l->q;
    serve_reply found;
    brc_buf name = BRC_BUF_INIT;
    memset(&found, 0, sizeof(found));
    head.is_head = 1;
    head.range = head.if_none_match = head.if_range = NULL;
    int rc = brc_buf_printf(&name, err, "%s%s", directory, key + strlen(l->above));
    if (rc == BRC_OK)
        rc = serve_value(&found, reader, v, l->target.format, (const char *)name.data, &head, err);
    if (gmtime_r(&seconds, &parts) != NULL)
        (void)strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S.000Z", &parts);
    if (rc == BRC_OK)
        rc = brc_buf_printf(out, err, "<Contents>");
    if (rc == BRC_OK)
        rc = put_text_element(out, l, "Key", key, err);
    if (rc == BRC_OK)
        rc = brc_buf_printf(out, err,
                            "<LastModified>%s</LastModified><ETag>&quot;%s&quot;</ETag>"
                            "<Size>%" PRIu64 "</Size><StorageClass>STANDARD</StorageClass>"
                            "</Contents>",
                            date, found.answer.etag, found.length);
    serve_reply_dispose(&found);
    brc_buf_dispose(&name);
    return rc;
}

/* Appends the items that follow; *last is the last one if there are more. `reader` may be NULL if
 * all are directories. */
static int put_s3_items(brc_buf *out, const s3_list *l, serve_reader *reader,
                        const serve_version *v, const char *directory, uint64_t *n,
                        const char **last, brc_error *err)
{
    *n = 0;
    *last = NULL;
    const char *newest = "";
    for (size_t i = 0; i < l->names.n; i++) {
        const char *key = l->names.names[i];
        if (l->after != NULL && strcmp(key, l->after) <= 0)
            continue;
        if (*n == l->most) {
            *last = newest;
            break;
        }
        newest = key;
        ++*n;
        const int is_directory = key[strlen(key) - 1] == '/';
        int rc = is_directory ? put_directory(out, l, key, err)
                              : put_object(out, l, reader, v, key, directory, err);
        if (rc < 0)
            return rc;
    }
    return BRC_OK;
}

static int put_list(serve_reply *out, const s3_list *l, serve_reader *reader,
                    const serve_version *v, const char *directory, brc_error *err)
{
    brc_buf items = BRC_BUF_INIT, *body = &out->answer.body;
    uint64_t n;
    const char *last;
    int rc = put_s3_items(&items, l, reader, v, directory, &n, &last, err);
    out->answer.type = "application/xml";
    if (rc == BRC_OK)
        rc = brc_buf_printf(body, err,
                            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult "
                            "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name></Name>");
    if (rc == BRC_OK)
        rc = put_text_element(body, l, "Prefix", l->prefix, err);
    if (rc == BRC_OK)
        rc = brc_buf_printf(body, err,
                            "%s%s<KeyCount>%" PRIu64 "</KeyCount><MaxKeys>%" PRIu64 "</MaxKeys>"
                            "<IsTruncated>%s</IsTruncated>",
                            l->by_directory ? "<Delimiter>/</Delimiter>" : "",
                            l->encodes ? "<EncodingType>url</EncodingType>" : "", n, l->most,
                            last != NULL ? "true" : "false");
    if (rc == BRC_OK && last != NULL)
        rc = put_text_element(body, l, "NextContinuationToken", last, err);
    if (rc == BRC_OK && last != NULL)
        rc = put_text_element(body, l, "NextMarker", last, err);
    if (rc == BRC_OK)
        rc = brc_buf_append(body, items.data, items.len, err);
    if (rc == BRC_OK)
        rc = brc_buf_printf(body, err, "</ListBucketResult>\n");
    brc_buf_dispose(&items);
    return rc;
}

static int list_keys_s3(serve_reply *out, s3_list *l, serve_reader *reader, brc_error *err)
{
    const serve_version *v;
    char *directory = NULL;
    int rc = serve_version_open(&v, reader, l->target.rev, err);
    if (rc == BRC_OK)
        rc = directory_of(&directory, &l->target, err);
    if (rc == BRC_OK)
        rc = add_tree(l, v, directory, "", 0, err);
    serve_names_sort(&l->names);
    if (rc == BRC_OK)
        rc = put_list(out, l, reader, v, directory, err);
    free(directory);
    return rc;
}

/* Lists the files that are served as directories. */
static int list_names_s3(serve_reply *out, s3_list *l, serve_files *files, brc_error *err)
{
    brc_buf names = BRC_BUF_INIT;
    int rc = serve_files_list(&names, files, l->target.name, err);
    for (size_t at = 0; at < names.len && rc == BRC_OK; at += strlen((char *)names.data + at) + 1) {
        const char *name = (char *)names.data + at;
        brc_buf full = BRC_BUF_INIT;
        rc =
            brc_buf_printf(&full, err, "%s%s", name, name[strlen(name) - 1] == '/' ? "" : ".zarr/");
        if (rc == BRC_OK)
            rc = add_below(l, (const char *)full.data, err);
        brc_buf_dispose(&full);
    }
    serve_names_sort(&l->names);
    if (rc == BRC_OK)
        rc = put_list(out, l, NULL, NULL, "", err);
    brc_buf_dispose(&names);
    return rc;
}

static int list_s3(serve_reply *out, s3_list *l, serve_files *files, brc_error *err)
{
    serve_reader *reader;
    const serve_target *t = &l->target;
    if (t->what == SERVE_IS_NAMES)
        return list_names_s3(out, l, files, err);
    if (t->key == NULL) /* nothing is below a name that ends early */
        return put_list(out, l, NULL, NULL, "", err);
    int rc = serve_reader_take(&reader, files, t->name, 1, err);
    if (rc < 0)
        return rc;
    if (l->q->on_reader != NULL)
        l->q->on_reader(l->q->ctx, reader);
    rc = list_keys_s3(out, l, reader, err);
    if (l->q->on_reader != NULL)
        l->q->on_reader(l->q->ctx, NULL);
    serve_reader_hide(reader, err);
    serve_reader_give(reader, rc);
    return rc;
}

int serve_list_s3(serve_reply *out, serve_files *files, const serve_request *q, brc_error *err)
{
    s3_list l = { .q = q };
    if (!q->may_wait)
        return brc_fail(err, BRC_EBUSY, "a worker does this");
    int rc = read_parameters(&l, err);
    if (rc == BRC_OK)
        rc = list_s3(out, &l, files, err);
    serve_names_dispose(&l.names);
    serve_target_dispose(&l.target);
    free(l.above);
    return rc;
}
