/*
 * page_node.c - the page of a node: what an array is, its first elements, what a group holds; and
 * how to open it elsewhere.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../breccia_codec.h"
#include "api_slice.h"
#include "page.h"

enum {
    ATTRIBUTE_SHOWN = 1000, /* bytes of an attribute                            */
    ATTRIBUTES_SHOWN = 200,
    CHILDREN_SHOWN = 1000,
    ROWS_SHOWN = 16,        /* of the table of elements                         */
    COLUMNS_SHOWN = 8
};

/* ---- documents -------------------------------- */

static int put_attribute_table(serve_page_state *p, const brc_json *attributes)
{
    brc_buf text = BRC_BUF_INIT;
    int rc = BRC_OK, n = 0;

    if (brc_json_count(attributes) == 0)
        return BRC_OK;
    serve_put(p, "<table><caption>Attributes</caption><tbody>\n");
    for (const brc_json *one = brc_json_first(attributes); one && n < ATTRIBUTES_SHOWN && rc >= 0;
         one = brc_json_next(one), n++) {
        text.len = 0;
        rc = brc_json_write(&text, one, 0, p->err);
        if (rc >= 0)
            rc = brc_buf_append(&text, "", 1, p->err);
        if (rc < 0)
            break;
        serve_put(p, "<tr><th scope=\"row\">");
        serve_put_name(p, brc_json_name(one));
        serve_put(p, "</th><td><bdi>");
        serve_put_some(p, (const char *)text.data, ATTRIBUTE_SHOWN);
        serve_put(p, "</bdi>");
        serve_row_end(p);
    }
    serve_put(p, "</tbody></table>\n");
    brc_buf_dispose(&text);
    return rc;
}

static int put_node_document(serve_page_state *p, const brc_json *document)
{
    brc_buf text = BRC_BUF_INIT;
    int rc = brc_json_write(&text, document, BRC_JSON_PRETTY, p->err);

    if (rc >= 0)
        rc = brc_buf_append(&text, "", 1, p->err);
    if (rc >= 0) {
        serve_put(p, "<details><summary>zarr.json</summary><pre tabindex=\"0\"><bdi>");
        serve_put_some(p, (const char *)text.data, 20000);
        serve_put(p, "</bdi></pre></details>\n");
    }
    brc_buf_dispose(&text);
    return rc;
}

/* ---- arrays -------------------------------- */

static void put_dims_row(serve_page_state *p, const char *name, const uint64_t *dims, int n)
{
    serve_row_begin(p, name);
    serve_put_dims(p, dims, n);
    serve_row_end(p);
}

static void put_text_row(serve_page_state *p, const char *name, const char *text)
{
    serve_row_begin(p, name);
    serve_put(p, "<bdi>");
    serve_put_some(p, text, ATTRIBUTE_SHOWN);
    serve_put(p, "</bdi>");
    serve_row_end(p);
}

static int put_array_facts(serve_page_state *p, const brc_json *names)
{
    const brc_array_info *info = brc_array_describe(p->call.array);
    uint64_t chunks, stored, all = 1;
    const char *name;

    SERVE_TRY(brc_array_stat(&chunks, &stored, p->call.array, p->err));
    serve_put(p, "<table><caption>The array</caption><tbody>\n");
    put_dims_row(p, "Shape", info->shape, info->ndim);
    if (names) {
        serve_row_begin(p, "Dimensions");
        for (const brc_json *one = brc_json_first(names); one; one = brc_json_next(one)) {
            serve_put_name(p, brc_json_text(one, &name) ? name : "?");
            serve_put(p, " ");
        }
        serve_row_end(p);
    }
    put_text_row(p, "Type", info->dtype);
    put_dims_row(p, info->shard ? "Inner chunks" : "Chunks", info->chunk, info->ndim);
    if (info->shard)
        put_dims_row(p, "Shards", info->shard, info->ndim);
    for (int i = 0; i < info->ndim; i++)
        if (__builtin_mul_overflow(all, info->grid[i], &all))
            all = UINT64_MAX;
    serve_row_begin(p, "Stored");
    serve_put_count(p, chunks);
    serve_put(p, " of ");
    serve_put_count(p, all);
    serve_put(p, " chunks, ");
    serve_put_bytes(p, stored);
    serve_row_end(p);
    put_text_row(p, "Codecs", info->codecs_json);
    if (strcmp(info->backend_json, "{\"name\":\"inline\"}") != 0)
        put_text_row(p, "Backend", info->backend_json);
    if (info->why)
        put_text_row(p, "Limits", info->why);
    serve_put(p, "</tbody></table>\n");
    return BRC_OK;
}

/* Writes the element at `at` as a cell, and returns the bytes that it takes. */
static size_t put_value_cell(serve_page_state *p, const uint8_t *at, brc_buf *text)
{
    text->len = 0;
    if (p->rc >= 0)
        p->rc = brc_element_format(text, p->call.array, at, BRC_ELEMENT_TEXT, p->err);
    if (p->rc >= 0)
        p->rc = brc_buf_append(text, "", 1, p->err);
    serve_put(p, "<td><bdi>");
    if (p->rc >= 0)
        serve_put_some(p, (const char *)text->data, 100);
    serve_put(p, "</bdi></td>");
    return serve_element_bytes(at, brc_array_describe(p->call.array)->item_size);
}

/* Chooses the first elements along the last two axes, and the first index along the others. */
static void choose_first(const brc_array_info *info, brc_sel *sel, uint64_t count[2])
{
    sel->ndim = info->ndim;
    count[0] = count[1] = 1;
    for (int i = 0; i < info->ndim; i++) {
        const int is_row = i == info->ndim - 2, is_column = i == info->ndim - 1;
        const uint64_t most = is_column && info->ndim > 1 ? COLUMNS_SHOWN
                              : is_row || is_column       ? ROWS_SHOWN
                                                          : 1;

        sel->step[i] = 1;
        sel->count[i] = info->shape[i] < most ? info->shape[i] : most;
        if (is_row || (is_column && info->ndim == 1))
            count[0] = sel->count[i];
        else if (is_column)
            count[1] = sel->count[i];
        else if (sel->count[i] == 0)
            count[0] = 0;
    }
}

static void put_first_rows(serve_page_state *p, const brc_array_info *info, const uint64_t count[2],
                           const brc_buf *bytes)
{
    brc_buf text = BRC_BUF_INIT;
    size_t at = 0;

    serve_put(p, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
                 "aria-label=\"First elements\"><table class=\"values\"><caption>First elements");
    if (info->ndim > 2)
        serve_put(p, ", at index 0 of the other axes");
    serve_put(p, "</caption><thead><tr><td></td>");
    for (uint64_t x = 0; x < count[1]; x++)
        serve_putf(p, "<th scope=\"col\">%" PRIu64 "</th>", x);
    serve_put(p, "</tr></thead><tbody>\n");
    for (uint64_t y = 0; y < count[0]; y++) {
        serve_putf(p, "<tr><th scope=\"row\">%" PRIu64 "</th>", y);
        for (uint64_t x = 0; x < count[1] && at < bytes->len; x++)
            at += put_value_cell(p, bytes->data + at, &text);
        serve_put(p, "</tr>\n");
    }
    serve_put(p, "</tbody></table></div>\n");
    brc_buf_dispose(&text);
}

/* Writes a table of the first elements, if that is within the limits. */
static int put_first_elements(serve_page_state *p)
{
    const brc_array_info *info = brc_array_describe(p->call.array);
    brc_buf bytes = BRC_BUF_INIT;
    brc_sel sel = BRC_SEL_INIT;
    brc_io io = BRC_IO_INIT;
    uint64_t count[2];
    serve_cut cut;
    int rc;

    if (!(info->flags & BRC_ARRAY_READABLE))
        return brc_fail(p->err, BRC_EUNSUPPORTED, "the elements cannot be read: %s", info->why);
    choose_first(info, &sel, count);
    SERVE_TRY(serve_cut_of(&cut, &p->call, &sel, COLUMNS_SHOWN + ROWS_SHOWN, 0));
    if (cut.by_budget)
        return brc_fail(p->err, BRC_ELIMIT, "the first elements lie in too many large chunks to be "
                                            "shown here");
    io.array = p->call.array;
    io.sel = &sel;
    io.out = &bytes;
    bytes.limit = 1 << 20;
    rc = brc_read(&io, 1, p->err);
    if (rc >= 0)
        put_first_rows(p, info, count, &bytes);
    brc_buf_dispose(&bytes);
    return rc;
}

/* ---- groups -------------------------------- */

static int put_children(serve_page_state *p)
{
    serve_entries entries;
    int rc = serve_entries_read(&entries, &p->call, p->path, 1, CHILDREN_SHOWN);

    serve_put(p, "<table><caption>In this group</caption><thead><tr><th scope=\"col\">Name</th>"
                 "<th scope=\"col\">Shape</th><th scope=\"col\">Type</th>"
                 "<th scope=\"col\">Stored</th></tr></thead><tbody>\n");
    for (size_t i = 1; i < entries.n && rc >= 0; i++) {
        const serve_entry *one = &entries.nodes[i];

        serve_put(p, "<tr><th scope=\"row\"><a ");
        serve_put_href(p, "node", p->rev, one->path, NULL, NULL);
        serve_put(p, ">");
        serve_put_name(p, one->path);
        serve_put(p, "</a></th><td>");
        if (one->kind == BRC_ARRAY)
            serve_put_dims(p, one->shape, one->ndim);
        serve_put(p, "</td><td>");
        serve_put_some(p, one->dtype ? one->dtype : "group", 80);
        serve_put(p, "</td><td>");
        if (one->kind == BRC_ARRAY)
            serve_put_bytes(p, one->stored);
        serve_row_end(p);
    }
    serve_put(p, "</tbody></table>\n");
    if (entries.more)
        serve_putf(p, "<p>Only the first %d are shown.</p>\n", CHILDREN_SHOWN);
    serve_entries_free(&entries);
    return rc;
}

/* ---- a node -------------------------------- */

/* Marks the place where the script draws. */
static void put_viewer(serve_page_state *p, const char *path)
{
    serve_put(p, "<div id=\"viewer\" data-path=\"");
    serve_put_text(p, path);
    serve_put(p, "\"></div>\n");
}

static int put_array_node(serve_page_state *p, const brc_json *document, const brc_json *names)
{
    SERVE_TRY(serve_open_array(&p->call, p->path));
    put_viewer(p, p->path);
    serve_part(p, put_first_elements);
    SERVE_TRY(put_array_facts(p, names));
    return put_attribute_table(p, brc_json_member(document, "attributes"));
}

static int put_group_node(serve_page_state *p, const brc_json *document)
{
    serve_levels levels;
    int rc = serve_levels_read(&levels, &p->call, p->path);

    if (rc >= 0 && levels.n > 0)
        put_viewer(p, p->path);
    serve_levels_free(&levels);
    if (rc >= 0)
        rc = put_children(p);
    return rc < 0 ? rc : put_attribute_table(p, brc_json_member(document, "attributes"));
}

int serve_part_node(serve_page_state *p)
{
    const brc_json *names;
    brc_json *document;
    int rc;

    serve_put(p, "<h2>");
    serve_put_name(p, p->path);
    serve_put(p, "</h2>\n");
    if (p->kind == 0)
        return brc_fail(p->err, BRC_ENOTFOUND, "This version has no such node.");
    SERVE_TRY(serve_document(&document, &names, &p->call, p->path));
    rc = p->kind == BRC_ARRAY ? put_array_node(p, document, names) : put_group_node(p, document);
    if (rc >= 0)
        rc = put_node_document(p, document);
    brc_json_free(document);
    return rc;
}

/* ---- elsewhere -------------------------------- */

/* Writes a text as a literal of Python or JavaScript in HTML. */
static void put_literal(serve_page_state *p, const char *text)
{
    brc_buf quoted = BRC_BUF_INIT;

    if (p->rc >= 0)
        p->rc = brc_json_quote(&quoted, text, strlen(text), p->err);
    if (p->rc >= 0)
        p->rc = brc_buf_append(&quoted, "", 1, p->err);
    if (p->rc >= 0)
        serve_put_text(p, (const char *)quoted.data);
    brc_buf_dispose(&quoted);
}

/* One block of lines; what stands for the URL is filled in by the script. */
static void put_lines(serve_page_state *p, const char *title, const char *before, const char *after)
{
    serve_putf(p, "<section><h3>%s</h3><pre tabindex=\"0\"><code>", title);
    serve_put(p, before);
    if (after) {
        serve_put(p, "<span class=\"url\">URL</span>");
        serve_put(p, after);
    }
    serve_put(p, "</code></pre></section>\n");
}

static void put_python(serve_page_state *p, const char *file)
{
    serve_put(p, "<section><h3>Python, with the file</h3><pre tabindex=\"0\"><code>import breccia\n"
                 "repo = breccia.open(");
    brc_buf name = BRC_BUF_INIT;
    if (p->rc >= 0)
        p->rc = brc_buf_printf(&name, p->err, "%s.brc", file);
    if (p->rc >= 0)
        put_literal(p, (const char *)name.data);
    brc_buf_dispose(&name);
    serve_put(p, ")\nview = repo.view(");
    put_literal(p, p->call.out->commit);
    serve_put(p, ")");
    if (p->path[0] && p->path[1]) {
        serve_put(p, "\nnode = view[");
        put_literal(p, p->path + 1);
        serve_put(p, "]");
    }
    serve_put(p, "</code></pre></section>\n");
}

int serve_part_open(serve_page_state *p)
{
    const char *file = p->call.limits->file ? p->call.limits->file : "";

    serve_put(p, "<h2>Open in</h2>\n");
    if (!p->call.out->commit[0]) {
        serve_put(p, "<p>Nothing is committed yet, and only commits have an address.</p>\n");
        return BRC_OK;
    }
    if (p->rev && strcmp(p->rev, SERVE_UNCOMMITTED) == 0)
        serve_put(p, "<p class=\"note\">Uncommitted changes have no address: this is the commit "
                     "below them.</p>\n");
    serve_put(p, "<p>Version <code>");
    serve_put_text(p, p->call.out->commit);
    serve_put(p, "</code> of ");
    serve_put_name(p, p->path);
    serve_put(p, " has an address of its own while this server runs: "
                 "<code class=\"url\">…</code>. Whoever has the address can read the "
                 "file.</p>\n<div id=\"open\" data-file=\"");
    serve_put_text(p, file);
    serve_putf(p, "\" data-commit=\"%s\" data-path=\"", p->call.out->commit);
    serve_put_text(p, p->path);
    serve_put(p, "\">\n");
    put_python(p, file);
    put_lines(p, "Python, over HTTP", "import zarr  # and fsspec, aiohttp\nnode = zarr.open(\"",
              "\", mode=\"r\")");
    put_lines(p, "xarray", "import xarray  # and zarr, fsspec, aiohttp\ndata = xarray.open_zarr(\"",
              "\", consolidated=True)");
    put_lines(p, "torch", "import torch, zarr\ntensor = torch.from_numpy(zarr.open_array(\"",
              "\", mode=\"r\")[:])");
    put_lines(p, "zarrita", "import * as zarr from \"zarrita\";\nconst node = await zarr.open(new "
                            "zarr.FetchStore(\"", "\"));");
    put_lines(p, "GDAL", "gdalinfo 'ZARR:\"/vsicurl/", "\"'");
    serve_put(p, "<p class=\"js\"><a id=\"neuroglancer\" "
                 "href=\"https://neuroglancer-demo.appspot.com/\" rel=\"noreferrer\">"
                 "Open in neuroglancer</a> · <a id=\"vizarr\" "
                 "href=\"https://hms-dbmi.github.io/vizarr/\" rel=\"noreferrer\">"
                 "Open in vizarr</a>. These are pages of others: the browser may ask whether they "
                 "may reach this machine, and the server must allow their origin "
                 "(<code>--allow-origin</code>).</p>\n</div>\n");
    return BRC_OK;
}
