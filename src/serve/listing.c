#include "listing.h"

#include <stdlib.h>
#include <string.h>

#include "../breccia_codec.h"
#include "made.h"

static int put(brc_buf *out, const char *text, brc_error *err)
{
    return brc_buf_append(out, text, strlen(text), err);
}

/* ---- pages -------------------------------- */

static int begin_page(serve_reply *out, const char *title, brc_error *err)
{
    brc_buf *body = &out->answer.body;
    out->answer.type = "text/html; charset=utf-8";
    int rc = put(body,
                 "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta "
                 "name=\"viewport\" content=\"width=device-width\"><link rel=\"icon\" "
                 "href=\"data:,\"><title>",
                 err);
    if (rc == BRC_OK)
        rc = serve_html_escape(body, title, err);
    if (rc == BRC_OK)
        rc = put(body, "</title></head>\n<body>\n<h1>", err);
    if (rc == BRC_OK)
        rc = serve_html_escape(body, title, err);
    return rc == BRC_OK ? put(body, "</h1>\n<ul>\n", err) : rc;
}

static int end_page(serve_reply *out, brc_error *err)
{
    return put(&out->answer.body, "</ul>\n</body></html>\n", err);
}

/* Adds a link, of which the address is BEFORE, the escaped name and BEHIND. */
static int put_link(brc_buf *out, const char *before, const char *name, const char *behind,
                    const char *shown, brc_error *err)
{
    int rc = put(out, "<li><a href=\"", err);
    if (rc == BRC_OK)
        rc = put(out, before, err);
    if (rc == BRC_OK)
        rc = serve_url_escape(out, name, 1, err);
    if (rc == BRC_OK)
        rc = put(out, behind, err);
    if (rc == BRC_OK)
        rc = put(out, "\">", err);
    if (rc == BRC_OK)
        rc = serve_html_escape(out, shown, err);
    return rc == BRC_OK ? put(out, "</a></li>\n", err) : rc;
}

int serve_list_files(serve_reply *out, serve_files *files, const serve_request *q, brc_error *err)
{
    brc_buf names = BRC_BUF_INIT;
    const char *folder = serve_query_get(&q->target->query, "folder");
    if (!q->may_wait)
        return brc_fail(err, BRC_EBUSY, "a worker does this");
    folder = folder != NULL ? folder : "";
    int rc = serve_files_list(&names, files, folder, err);
    if (rc == BRC_OK)
        rc = begin_page(out, *folder != '\0' ? folder : "breccia", err);
    for (size_t at = 0; at < names.len && rc == BRC_OK; at += strlen((char *)names.data + at) + 1) {
        const char *name = (char *)names.data + at;
        const size_t len = strlen(name);
        const int is_folder = name[len - 1] == '/';
        brc_buf full = BRC_BUF_INIT;
        rc = brc_buf_printf(&full, err, "%s%s%.*s", folder, *folder != '\0' ? "/" : "",
                            (int)(len - (size_t)is_folder), name);
        if (rc == BRC_OK)
            rc = put_link(&out->answer.body, is_folder ? "?folder=" : "?file=", (char *)full.data,
                          "", name, err);
        brc_buf_dispose(&full);
    }
    brc_buf_dispose(&names);
    return rc == BRC_OK ? end_page(out, err) : rc;
}

int serve_list_names(serve_reply *out, serve_files *files, const serve_request *q, brc_error *err)
{
    brc_buf names = BRC_BUF_INIT;
    if (!q->may_wait)
        return brc_fail(err, BRC_EBUSY, "a worker does this");
    int rc = serve_files_list(&names, files, q->target->name, err);
    if (rc == BRC_OK)
        rc = begin_page(out, *q->target->name != '\0' ? q->target->name : q->target->rev, err);
    for (size_t at = 0; at < names.len && rc == BRC_OK; at += strlen((char *)names.data + at) + 1) {
        const char *name = (char *)names.data + at;
        const char *behind = name[strlen(name) - 1] == '/' ? "" : ".zarr/";
        rc = put_link(&out->answer.body, "./", name, behind, name, err);
    }
    brc_buf_dispose(&names);
    return rc == BRC_OK ? end_page(out, err) : rc;
}

/* ---- directories -------------------------------- */

int serve_directory(serve_names *out, const serve_version *version, int format,
                    const char *directory, brc_error *err)
{
    brc_iter *it;
    const char *name;
    int rc;
    if (format == 2) {
        rc = serve_list_v2(out, version, directory, err);
    } else {
        rc = brc_keys(&it, version->session, directory, BRC_KEYS_DIR, err);
        if (rc < 0)
            return rc;
        while ((rc = brc_next(it, &name, err)) > 0) {
            rc = serve_names_add(out, name, strlen(name), "", err);
            if (rc < 0)
                break;
        }
        brc_iter_free(it);
        if (rc == BRC_OK && *directory == '\0') /* which a new root need not have as a key */
            rc = serve_names_add(out, "zarr.json", 9, "", err);
    }
    serve_names_sort(out);
    return rc;
}

int serve_list_keys(serve_reply *out, serve_reader *reader, const serve_version *version,
                    const serve_request *q, brc_error *err)
{
    serve_names names = { 0 };
    const char *key = q->target->key;
    (void)reader;
    if (!q->may_wait)
        return brc_fail(err, BRC_EBUSY, "a worker does this");
    int rc = serve_directory(&names, version, q->target->format, key, err);
    if (rc == BRC_OK && names.n == 0)
        rc = brc_fail(err, BRC_ENOTFOUND, "there is no directory %.200s", key);
    if (rc == BRC_OK)
        rc = begin_page(out, *key != '\0' ? key : q->target->name, err);
    for (size_t i = 0; i < names.n && rc == BRC_OK; i++)
        rc = put_link(&out->answer.body, "./", names.names[i], "", names.names[i], err);
    serve_names_dispose(&names);
    return rc == BRC_OK ? end_page(out, err) : rc;
}
