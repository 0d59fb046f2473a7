/*
 * page.c - the page: page/index.html with what a version has in its slots.
 */
#include "page.h"

#include <stdio.h>
#include <string.h>

#include "../breccia_codec.h"
#include "page_files.h"
#include "route.h"

/* ---- files -------------------------------- */

int serve_asset(serve_answer *out, const char *name, brc_error *err)
{
    static const struct {
        const char *name, *type, *text;
    } files[] = { { "app.js", "text/javascript; charset=utf-8", page_file_app },
                  { "style.css", "text/css; charset=utf-8", page_file_style } };

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        if (strcmp(name, files[i].name) == 0) {
            out->type = files[i].type;
            snprintf(out->etag, sizeof(out->etag), "%s-%s", name, page_files_sum);
            SERVE_TRY(brc_buf_append(&out->body, files[i].text, strlen(files[i].text), err));
            return 1;
        }
    return 0;
}

/* ---- slots -------------------------------- */

static void put_page_title(serve_page_state *p)
{
    serve_put_some(p, p->call.limits->file ? p->call.limits->file : "breccia", 200);
}

/* The rest of a URL of another file of the page. */
static void put_asset_query(serve_page_state *p)
{
    if (p->file) {
        serve_put(p, "?file=");
        if (p->rc >= 0)
            p->rc = serve_url_escape(p->out, p->file, 1, p->err);
    }
}

static void put_where(serve_page_state *p)
{
    serve_put(p, "Version <bdi>");
    serve_put_some(p, p->rev ? p->rev : "of the current branch", 100);
    serve_put(p, "</bdi>");
    if (p->call.out->commit[0])
        serve_putf(p, " (<code>%.8s</code>)", p->call.out->commit);
    if (p->rev) {
        serve_put(p, " · <a ");
        serve_put_href(p, p->view, NULL, p->path, NULL, NULL);
        serve_put(p, ">back to the newest</a>");
    }
}

static const struct {
    const char *view, *title;
} tabs[] = { { "overview", "Overview" }, { "node", "Data" },  { "diff", "Compare" },
             { "sizes", "Sizes" },       { "open", "Open in" } };

static void put_tabs(serve_page_state *p)
{
    for (size_t i = 0; i < sizeof(tabs) / sizeof(tabs[0]); i++) {
        serve_put(p, "<li><a ");
        serve_put_href(p, tabs[i].view, p->rev, strcmp(p->path, "/") != 0 ? p->path : NULL, p->a,
                       p->b);
        if (strcmp(tabs[i].view, p->view) == 0)
            serve_put(p, " aria-current=\"page\"");
        serve_putf(p, ">%s</a></li>", tabs[i].title);
    }
}

/* The title of the window: the file, the view, the node. */
static void put_window_title(serve_page_state *p)
{
    put_page_title(p);
    for (size_t i = 0; i < sizeof(tabs) / sizeof(tabs[0]); i++)
        if (strcmp(tabs[i].view, p->view) == 0)
            serve_putf(p, " · %s", tabs[i].title);
    if (strcmp(p->path, "/") != 0) {
        serve_put(p, " · ");
        serve_put_some(p, p->path, 200);
    }
}

static void put_main(serve_page_state *p)
{
    static const struct {
        const char *view;
        int (*part)(serve_page_state *p);
    } parts[] = { { "node", serve_part_node }, { "diff", serve_part_diff },
                  { "sizes", serve_part_sizes }, { "open", serve_part_open } };

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (strcmp(parts[i].view, p->view) == 0) {
            serve_part(p, parts[i].part);
            return;
        }
    serve_part(p, serve_part_overview);
}

static void put_tree(serve_page_state *p)
{
    serve_part(p, serve_part_tree);
}

static void put_filter(serve_page_state *p)
{
    const char *filter = serve_param(&p->call, "filter");

    if (filter)
        serve_put_text(p, filter);
}

static void put_hidden_file(serve_page_state *p)
{
    if (!p->file)
        return;
    serve_put(p, "<input type=\"hidden\" name=\"file\" value=\"");
    serve_put_text(p, p->file);
    serve_put(p, "\">");
}

static void put_timeline(serve_page_state *p)
{
    serve_part(p, serve_part_timeline);
}

static const struct {
    const char *name;
    void (*put)(serve_page_state *p);
} slots[] = { { "title", put_page_title },
              { "heading", put_window_title },
              { "assets", put_asset_query },
              { "where", put_where },
              { "tabs", put_tabs },
              { "main", put_main },
              { "tree", put_tree },
              { "filter", put_filter },
              { "file", put_hidden_file },
              { "timeline", put_timeline } };

static void put_slot(serve_page_state *p, const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++)
        if (strlen(slots[i].name) == len && memcmp(slots[i].name, name, len) == 0)
            slots[i].put(p);
}

/* Copies the template; "{{name}}" is a slot. */
static void put_template(serve_page_state *p, const char *text)
{
    for (;;) {
        const char *open = strstr(text, "{{"), *close = open ? strstr(open, "}}") : NULL;

        if (!close) {
            serve_put(p, text);
            return;
        }
        if (p->rc >= 0)
            p->rc = brc_buf_append(p->out, text, (size_t)(open - text), p->err);
        put_slot(p, open + 2, (size_t)(close - open - 2));
        text = close + 2;
    }
}

/* ---- the page -------------------------------- */

static int page_begin(serve_page_state *p, brc_error *err)
{
    brc_error own = BRC_ERROR_INIT;
    const char *path = serve_param(&p->call, "path");

    p->file = serve_param(&p->call, "file");
    p->view = serve_param(&p->call, "view");
    p->rev = serve_param(&p->call, "rev");
    p->path = path ? path : "/";
    p->a = serve_param(&p->call, "a");
    p->b = serve_param(&p->call, "b");
    if (!p->view)
        p->view = path ? "node" : "overview";
    SERVE_TRY(serve_open_version(&p->call));
    if (brc_node_kind(&p->kind, p->call.session, p->path, &own) >= 0)
        return BRC_OK;
    return own.code == BRC_EINVAL ? BRC_OK : brc_fail(err, own.code, "%s", own.message);
}

/* Answers only a part, for the script: "main" or "timeline". */
static void put_fragment(serve_page_state *p, const char *part)
{
    if (strcmp(part, "timeline") == 0)
        put_timeline(p);
    else
        put_template(p, "<title>{{heading}}</title><p id=\"where\">{{where}}</p>"
                        "<ul id=\"tabs\">{{tabs}}</ul>"
                        "<main id=\"main\" tabindex=\"-1\">{{main}}</main>");
}

int serve_page(serve_answer *out, breccia *repo, const serve_query *query,
               const serve_limits *limits, brc_error *err)
{
    const serve_limits own_limits = serve_page_limits(limits);
    serve_page_state p;
    const char *part;
    int rc;

    memset(&p, 0, sizeof(p));
    p.out = &out->body;
    p.err = err;
    out->type = "text/html; charset=utf-8";
    out->body.limit = 16 << 20;
    snprintf(out->headers, sizeof(out->headers),
             "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
             "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action "
             "'self'\n");
    serve_call_begin(&p.call, out, repo, query, &own_limits, err);
    rc = page_begin(&p, err);
    if (rc >= 0) {
        part = serve_param(&p.call, "part");
        if (part)
            put_fragment(&p, part);
        else
            put_template(&p, page_file_index);
        rc = p.rc;
    }
    out->immutable = 0;
    serve_entries_free(&p.entries);
    serve_call_end(&p.call);
    return rc;
}
