/* The page of a file. */
#include <string.h>

#include "../breccia_codec.h"
#include "answer.h"
#include "route.h"

int serve_page(serve_answer *out, breccia *repo, const serve_query *query,
               const serve_limits *limits, brc_error *err)
{
    brc_iter *refs;
    const brc_ref *ref;
    (void)query;
    out->type = "text/html; charset=utf-8";
    int rc = brc_buf_printf(&out->body, err,
                            "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>");
    if (rc == BRC_OK)
        rc = serve_html_escape(&out->body, limits->file, err);
    if (rc == BRC_OK)
        rc = brc_buf_printf(&out->body, err, "</title>\n<ul>\n");
    if (rc == BRC_OK)
        rc = brc_refs(&refs, repo, err);
    if (rc < 0)
        return rc;
    while (rc == BRC_OK && (rc = brc_next(refs, &ref, err)) > 0) {
        rc = brc_buf_printf(&out->body, err, "<li><a href=\"");
        if (rc == BRC_OK)
            rc = serve_url_escape(&out->body, ref->name, 0, err);
        if (rc == BRC_OK)
            rc = brc_buf_printf(&out->body, err, "/\">");
        if (rc == BRC_OK)
            rc = serve_html_escape(&out->body, ref->name, err);
        if (rc == BRC_OK)
            rc = brc_buf_printf(&out->body, err, "</a></li>\n");
    }
    brc_iter_free(refs);
    return rc == BRC_OK ? brc_buf_printf(&out->body, err, "</ul>\n") : rc;
}
