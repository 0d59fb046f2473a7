/*
 * page_diff.c - the page of two versions, and that of sizes.
 */
#include <stdlib.h>
#include <string.h>

#include "../breccia_codec.h"
#include "page.h"

enum { CHANGES_SHOWN = 500, SIZES_SHOWN = 200 };

/* ---- which versions -------------------------------- */

static int put_choices(serve_page_state *p)
{
    const brc_ref *ref;
    int rc;

    serve_put(p, "<datalist id=\"revs\"><option value=\"" SERVE_UNCOMMITTED "\">uncommitted changes"
                 "</option>");
    SERVE_TRY(brc_refs(&p->call.iter, p->call.repo, p->err));
    while ((rc = brc_next(p->call.iter, &ref, p->err)) == 1) {
        serve_put(p, "<option value=\"");
        serve_put_text(p, ref->name);
        serve_put(p, "\"></option>");
    }
    serve_drop_iter(&p->call);
    serve_put(p, "</datalist>\n");
    return rc;
}

static void put_hidden(serve_page_state *p, const char *name, const char *value)
{
    if (!value)
        return;
    serve_putf(p, "<input type=\"hidden\" name=\"%s\" value=\"", name);
    serve_put_text(p, value);
    serve_put(p, "\">");
}

static void put_input(serve_page_state *p, const char *name, const char *label, const char *value)
{
    serve_putf(p, "<label>%s <input name=\"%s\" list=\"revs\" autocomplete=\"off\" "
                  "spellcheck=\"false\" value=\"", label, name);
    if (value)
        serve_put_text(p, value);
    serve_put(p, "\"></label>\n");
}

static int put_form(serve_page_state *p)
{
    serve_put(p, "<form class=\"pair\" method=\"get\">");
    put_hidden(p, "file", p->file);
    put_hidden(p, "view", "diff");
    if (strcmp(p->path, "/") != 0)
        put_hidden(p, "path", p->path);
    put_input(p, "a", "A (old)", p->a);
    put_input(p, "b", "B (new)", p->b);
    serve_put(p, "<button>Compare</button></form>\n<p><small>A branch, a tag, a commit or "
                 "<code>" SERVE_UNCOMMITTED "</code>; without A, what B is based on.</small></p>"
                 "\n");
    return put_choices(p);
}

/* ---- changes -------------------------------- */

static void put_parts(serve_page_state *p, const brc_change *change)
{
    const struct {
        uint64_t n;
        const char *words;
    } parts[] = { { change->chunks_added, "added" },
                  { change->chunks_changed, "changed" },
                  { change->chunks_removed, "removed" } };
    const char *before = "";

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i].n == 0)
            continue;
        serve_put(p, before);
        serve_put_count(p, parts[i].n);
        serve_putf(p, " %s", parts[i].words);
        before = ", ";
    }
}

static void put_change_row(serve_page_state *p, const brc_change *change)
{
    static const char *const words[] = { "", "added", "removed", "moved", "changed" };

    serve_put(p, "<tr><th scope=\"row\">");
    if (change->kind == BRC_ARRAY) {
        serve_put(p, "<a ");
        serve_put_href(p, "diff", NULL, change->path, p->a, p->b);
        serve_put(p, ">");
    }
    serve_put_name(p, change->path);
    serve_put(p, change->kind == BRC_ARRAY ? "</a></th><td>" : "</th><td>");
    serve_put(p, change->flags & BRC_CHANGE_STORAGE ? "storage only" : words[change->what]);
    if (change->from) {
        serve_put(p, " from ");
        serve_put_name(p, change->from);
    }
    serve_put(p, "</td><td>");
    put_parts(p, change);
    serve_put(p, "</td><td>");
    for (size_t i = 0; i < change->nmetadata && i < 20; i++) {
        serve_put(p, i ? ", " : "");
        serve_put_name(p, change->metadata[i]);
    }
    serve_row_end(p);
}

static const char *library_rev(const char *rev)
{
    return rev && strcmp(rev, SERVE_UNCOMMITTED) == 0 ? NULL : rev;
}

static int put_changes_table(serve_page_state *p)
{
    const char *b = p->b ? p->b : "HEAD";
    const brc_change *change;
    size_t n = 0;
    int rc;

    SERVE_TRY(brc_diff(&p->call.iter, p->call.repo, p->a, library_rev(b), NULL, p->err));
    serve_put(p, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
                 "aria-label=\"Changed nodes\"><table class=\"changes\">"
                 "<caption>Changed nodes</caption><thead><tr><th scope=\"col\">Node</th>"
                 "<th scope=\"col\">Change</th><th scope=\"col\">Chunks</th>"
                 "<th scope=\"col\">Metadata</th></tr></thead><tbody>\n");
    while ((rc = brc_next(p->call.iter, &change, p->err)) == 1 && n < CHANGES_SHOWN) {
        put_change_row(p, change);
        n++;
    }
    serve_put(p, "</tbody></table></div>\n");
    if (n == 0 && rc == 0)
        serve_put(p, "<p>Nothing differs.</p>\n");
    if (rc == 1)
        serve_putf(p, "<p>Only the first %d changes are shown.</p>\n", CHANGES_SHOWN);
    return rc < 0 ? rc : BRC_OK;
}

int serve_part_diff(serve_page_state *p)
{
    serve_put(p, "<h2>Compare two versions</h2>\n");
    serve_part(p, put_form);
    if (strcmp(p->path, "/") != 0) {
        serve_put(p, "<div id=\"differ\" data-path=\"");
        serve_put_text(p, p->path);
        serve_put(p, "\"></div>\n");
    }
    serve_part(p, put_changes_table);
    return BRC_OK;
}

/* ---- sizes -------------------------------- */

#define DU_OBJECTS_SHOWN 500000

static void put_size_row(serve_page_state *p, const brc_du_item *item, uint64_t most)
{
    serve_put(p, "<tr><th scope=\"row\">");
    if (item->path) {
        serve_put(p, "<a ");
        serve_put_href(p, "node", p->rev, item->path, NULL, NULL);
        serve_put(p, ">");
        serve_put_name(p, item->path);
        serve_put(p, "</a>");
    } else {
        serve_put_commit(p, &item->id);
    }
    serve_put(p, "</th><td>");
    serve_put_bytes(p, item->bytes);
    serve_put(p, "</td><td>");
    serve_put_bytes(p, item->alone);
    serve_put(p, "</td><td>");
    serve_put_bytes(p, item->bytes - item->alone);
    serve_putf(p, "</td><td><svg class=\"bar\" width=\"100\" height=\"8\" "
                  "aria-hidden=\"true\"><rect width=\"%.1f\" height=\"8\"/></svg>",
               most ? 100 * (double)item->bytes / (double)most : 0.0);
    serve_row_end(p);
}

static void begin_sizes(serve_page_state *p, const char *caption, const char *of)
{
    serve_putf(p, "<table><caption>%s</caption><thead><tr><th scope=\"col\">%s</th>"
                  "<th scope=\"col\">Holds</th><th scope=\"col\">Own: freed if removed</th>"
                  "<th scope=\"col\">Shared</th><td></td></tr></thead><tbody>\n", caption, of);
}

/* Lists arrays, then commits, newest first. */
static int put_size_tables(serve_page_state *p, uint64_t most)
{
    const brc_du_item *item;
    size_t n = 0;
    int rc;

    begin_sizes(p, "By array, over all versions", "Array");
    while ((rc = brc_next(p->call.iter, &item, p->err)) == 1 && item->path)
        if (n++ < SIZES_SHOWN)
            put_size_row(p, item, most);
    serve_put(p, "</tbody></table>\n");
    begin_sizes(p, "By commit", "Commit");
    for (n = 0; rc == 1; rc = brc_next(p->call.iter, &item, p->err))
        if (n++ < SIZES_SHOWN)
            put_size_row(p, item, most);
    serve_put(p, "</tbody></table>\n");
    if (n > SIZES_SHOWN)
        serve_putf(p, "<p>The newest %d commits are shown.</p>\n", SIZES_SHOWN);
    return rc;
}

static int put_thinning(serve_page_state *p)
{
    static const uint32_t keep[] = { 1, 10, 100, 1000 };

    serve_put(p, "<table><caption>Freed by <code>breccia expire</code> and <code>gc</code>"
                 "</caption><thead><tr><th scope=\"col\">Kept of each branch</th><th scope=\"col\">"
                 "Commits gone</th><th scope=\"col\">Bytes freed</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < sizeof(keep) / sizeof(keep[0]); i++) {
        brc_expire_opts opts = BRC_EXPIRE_OPTS_INIT;
        brc_expire_report report = BRC_EXPIRE_REPORT_INIT;

        opts.flags = BRC_EXPIRE_DRY_RUN;
        opts.keep_last = keep[i];
        SERVE_TRY(brc_expire(&report, NULL, p->call.repo, &opts, p->err));
        serve_putf(p, "<tr><th scope=\"row\">newest %u</th><td>", keep[i]);
        serve_put_count(p, report.expired);
        serve_put(p, "</td><td>");
        serve_put_bytes(p, report.bytes);
        serve_row_end(p);
        if (report.expired == 0)
            break;
    }
    serve_put(p, "</tbody></table>\n");
    return BRC_OK;
}

static int put_sizes(serve_page_state *p)
{
    brc_du_report report = BRC_DU_REPORT_INIT;
    brc_stats stats = BRC_STATS_INIT;
    const struct {
        const char *name;
        const uint64_t *bytes;
    } rows[] = { { "In versions", &report.versions },
                 { "Only in uncommitted changes", &report.uncommitted },
                 { "Only for undo", &report.log },
                 { "Garbage", &report.garbage },
                 { "In all", &report.stored },
                 { "Of these outside the file", &report.outside },
                 { "The file", &stats.file_bytes } };

    SERVE_TRY(brc_stat(p->call.repo, &stats, p->err));
    if (stats.objects > DU_OBJECTS_SHOWN)
        return brc_fail(p->err, BRC_ELIMIT, "The file has too many objects to be summed up here: "
                                            "'breccia du' does it.");
    SERVE_TRY(brc_du(&report, &p->call.iter, p->call.repo, p->err));
    serve_put(p, "<table><caption>What the bytes are for</caption><tbody>\n");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        serve_row_begin(p, rows[i].name);
        serve_put_bytes(p, *rows[i].bytes);
        serve_row_end(p);
    }
    serve_put(p, "</tbody></table>\n");
    return put_size_tables(p, report.stored);
}

int serve_part_sizes(serve_page_state *p)
{
    serve_put(p, "<h2>Sizes</h2>\n<p>Stored bytes; what several hold is counted once for each of "
                 "them, and is shared.</p>\n");
    serve_part(p, put_sizes);
    serve_part(p, put_thinning);
    return BRC_OK;
}
