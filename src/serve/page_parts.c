/*
 * page_parts.c - the parts of the page that are always there: the tree, the timeline, what is here.
 */
#include <stdlib.h>
#include <string.h>

#include "../breccia_codec.h"
#include "api_log.h"
#include "api_node.h"
#include "page.h"
#include "serve_alarm.h"

enum {
    TREE_MOST = 2000,
    TREE_DEPTH = 100,
    TIMELINE_ROWS = 50,
    LANES_DRAWN = 12,
    LANE_WIDTH = 14,
    LANE_COLORS = 6,
    README_MOST = 4000,
    COUNT_MS = 30 /* the time that counting may take on the first screen        */
};

/* ---- tree -------------------------------- */

static size_t level_of(const char *path)
{
    size_t level = 0;

    for (const char *c = path; *c; c++)
        level += *c == '/' && c[1] != '\0';
    return level;
}

static const char *own_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

static const char *short_dtype(const char *dtype, char out[64])
{
    const char *name = dtype;
    size_t len;

    if (*dtype != '{' || strncmp(dtype, "{\"name\":\"", 9) != 0)
        return dtype;
    name += 9;
    len = strcspn(name, "\"");
    len = len < 63 ? len : 63;
    memcpy(out, name, len);
    out[len] = '\0';
    return strncmp(out, "numpy.", 6) == 0 ? out + 6 : out;
}

/* Writes a node's row with a bar for its share of the stored bytes. */
static void put_tree_row(serve_page_state *p, const serve_entry *entry, uint64_t most)
{
    static const brc_oid zero;
    char name[64];

    serve_put(p, "<a ");
    serve_put_href(p, "node", p->rev, entry->path, NULL, NULL);
    if (strcmp(entry->path, p->path) == 0)
        serve_put(p, " aria-current=\"page\"");
    serve_putf(p, " data-size=\"%llu\" data-last=\"%lld\">", (unsigned long long)entry->stored,
               (long long)entry->last_time);
    serve_put_name(p, own_name(entry->path));
    if (entry->kind == BRC_GROUP)
        serve_put(p, level_of(entry->path) ? "/" : "");
    serve_put(p, "</a>");
    if (entry->kind == BRC_ARRAY) {
        serve_put(p, " <small>");
        serve_put_dims(p, entry->shape, entry->ndim);
        serve_put(p, " ");
        serve_put_some(p, short_dtype(entry->dtype, name), 40);
        serve_put(p, " · ");
        serve_put_bytes(p, entry->stored);
        if (memcmp(&entry->last, &zero, sizeof(zero)) != 0) {
            serve_put(p, " · ");
            serve_put_time(p, entry->last_time);
        }
        serve_put(p, "</small>");
        serve_putf(p, "<svg class=\"bar\" width=\"100%%\" height=\"3\" aria-hidden=\"true\"><rect "
                      "width=\"%.1f%%\" height=\"3\"/></svg>",
                   most ? 100 * (double)entry->stored / (double)most : 0.0);
    }
}

/* Reads the nodes once for all parts. */
static int read_entries(serve_page_state *p)
{
    if (p->entries.nodes)
        return BRC_OK;
    return serve_entries_read(&p->entries, &p->call, "/", TREE_DEPTH, TREE_MOST);
}

int serve_part_tree(serve_page_state *p)
{
    const serve_entries *entries = &p->entries;
    uint64_t most = 0;
    size_t level = 0;

    SERVE_TRY(read_entries(p));
    SERVE_TRY(serve_entries_date(&p->entries, &p->call));
    for (size_t i = 0; i < entries->n; i++)
        most = entries->nodes[i].stored > most ? entries->nodes[i].stored : most;
    serve_put(p, "<ul class=\"tree\">\n");
    for (size_t i = 0; i < entries->n; i++) {
        const size_t own = level_of(entries->nodes[i].path);

        for (; level < own; level++)
            serve_put(p, "<ul>");
        for (; level > own; level--)
            serve_put(p, "</ul></li>");
        serve_put(p, i > 0 && own > 0 ? "\n<li>" : "<li>");
        put_tree_row(p, &entries->nodes[i], most);
        if (i + 1 == entries->n || level_of(entries->nodes[i + 1].path) <= own)
            serve_put(p, "</li>");
    }
    for (; level > 0; level--)
        serve_put(p, "</ul></li>");
    serve_put(p, "</ul>\n");
    if (entries->more)
        serve_putf(p, "<p>There are more than these %d nodes: open a group to see its own.</p>\n",
                   TREE_MOST);
    return BRC_OK;
}

/* ---- timeline -------------------------------- */

static int lane_x(int lane)
{
    return (lane < LANES_DRAWN ? lane : LANES_DRAWN) * LANE_WIDTH + LANE_WIDTH / 2;
}

static void put_lane_line(serve_page_state *p, int lane, int x1, const char *y1, int x2,
                          const char *y2)
{
    serve_putf(p, "<line class=\"l%d\" x1=\"%d\" y1=\"%s\" x2=\"%d\" y2=\"%s\"/>",
               lane % LANE_COLORS, x1, y1, x2, y2);
}

static void put_lanes(serve_page_state *p, const serve_row *row, int nlanes)
{
    const int x = lane_x(row->lane);

    serve_putf(p, "<svg class=\"lanes\" width=\"%d\" aria-hidden=\"true\">",
               lane_x(nlanes) + LANE_WIDTH / 2 - LANE_WIDTH);
    for (size_t i = 0; i < row->nedges; i++) {
        const int from = row->edges[i].from, to = row->edges[i].to;

        if (from < 0)
            put_lane_line(p, to, x, "50%", lane_x(to), "100%");
        else if (to < 0)
            put_lane_line(p, from, lane_x(from), "0", x, "50%");
        else
            put_lane_line(p, to, lane_x(from), "0", lane_x(to), "100%");
    }
    serve_putf(p, "<circle class=\"l%d\" cx=\"%d\" cy=\"50%%\" r=\"%d\"/></svg>",
               row->lane % LANE_COLORS, x, row->commit->nparents > 1 ? 3 : 5);
}

static void put_refs_of(serve_page_state *p, const serve_rows *rows, const brc_oid *id)
{
    for (size_t i = 0; i < rows->nrefs; i++) {
        const serve_ref *ref = &rows->refs[i];

        if (memcmp(&ref->id, id, sizeof(*id)) != 0)
            continue;
        serve_putf(p, " <span class=\"ref %s\">", ref->flags & BRC_REF_TAG ? "tag" : "branch");
        serve_put(p, ref->flags & BRC_REF_TAG ? "tag " : "branch ");
        serve_put_name(p, ref->name);
        serve_put(p, ref->flags & BRC_REF_CURRENT ? " (current)</span>" : "</span>");
    }
}

static void put_timeline_row(serve_page_state *p, const serve_rows *rows, size_t i, int nlanes)
{
    const brc_commit *commit = rows->rows[i].commit;
    char id[65];

    brc_oid_format(id, &commit->id);
    serve_putf(p, "<li data-id=\"%s\"%s>", id,
               strcmp(id, p->call.out->commit) == 0 ? " class=\"shown\"" : "");
    put_lanes(p, &rows->rows[i], nlanes);
    serve_put(p, "<div><a class=\"msg\" ");
    serve_put_href(p, "overview", id, NULL, NULL, NULL);
    serve_put(p, "><bdi>");
    serve_put_subject(p, commit->message);
    serve_put(p, "</bdi></a>");
    put_refs_of(p, rows, &commit->id);
    if (commit->nparents > 1)
        serve_put(p, " <span class=\"ref\">merge</span>");
    serve_put(p, "<br><small><bdi>");
    serve_put_some(p, commit->author, 100);
    serve_put(p, "</bdi> · ");
    serve_put_time(p, commit->time_us);
    serve_putf(p, " · <code>%.8s</code> <span class=\"touched\"></span></small></div><a "
                  "class=\"pick\" ", id);
    serve_put_href(p, "diff", NULL, NULL, NULL, id);
    serve_putf(p, " aria-label=\"Compare %.8s with what it is based on\">Compare</a></li>\n", id);
}

int serve_part_timeline(serve_page_state *p)
{
    serve_rows rows;
    int nlanes = 1, rc = serve_rows_read(&rows, &p->call, TIMELINE_ROWS);

    for (size_t i = 0; i < rows.n; i++)
        nlanes = rows.rows[i].nlanes > nlanes ? rows.rows[i].nlanes : nlanes;
    if (nlanes > LANES_DRAWN + 1)
        nlanes = LANES_DRAWN + 1;
    if (rc >= 0) {
        serve_put(p, "<ol class=\"timeline\">\n");
        for (size_t i = 0; i < rows.n; i++)
            put_timeline_row(p, &rows, i, nlanes);
        serve_put(p, "</ol>\n");
        if (rows.n == 0)
            serve_put(p, "<p>No commit is here.</p>\n");
    }
    if (rows.next) {
        serve_put(p, "<p><a class=\"older\" ");
        serve_put_older(p, rows.next);
        serve_put(p, ">Older commits</a></p>\n");
    }
    serve_rows_free(&rows);
    return rc;
}

/* ---- overview -------------------------------- */

static int put_last_change(serve_page_state *p)
{
    brc_session_info info = BRC_SESSION_INFO_INIT;
    brc_commit *commit;
    char id[65];

    SERVE_TRY(brc_session_stat(&info, p->call.session, p->err));
    if (!info.has_commit) {
        serve_put(p, "<p>Nothing is committed yet: these are uncommitted changes.</p>\n");
        return BRC_OK;
    }
    SERVE_TRY(brc_commit_read(&commit, p->call.repo, &info.commit, p->err));
    serve_put(p, "<p class=\"message\"><bdi>");
    serve_put_some(p, commit->message, README_MOST);
    serve_put(p, "</bdi></p>\n<p>");
    serve_put_name(p, commit->author);
    serve_put(p, ", ");
    serve_put_time(p, commit->time_us);
    serve_putf(p, ", commit <code>%s</code>. <a ", brc_oid_format(id, &commit->id));
    serve_put_href(p, "diff", NULL, NULL, NULL, id);
    serve_put(p, ">What changed</a></p>\n");
    brc_commit_free(commit);
    return BRC_OK;
}

static int put_uncommitted(serve_page_state *p)
{
    brc_session *session;
    int clean, rc;

    SERVE_TRY(brc_session_open(&session, p->call.repo, NULL, BRC_SESSION_VIEW, p->err));
    rc = brc_session_clean(&clean, session, p->err);
    brc_session_free(session);
    if (rc < 0 || clean)
        return rc;
    serve_put(p, "<p class=\"note\">The current branch has <a ");
    serve_put_href(p, "diff", NULL, NULL, NULL, SERVE_UNCOMMITTED);
    serve_put(p, ">uncommitted changes</a>; ");
    serve_put(p, "<a ");
    serve_put_href(p, "overview", SERVE_UNCOMMITTED, NULL, NULL, NULL);
    serve_put(p, ">show them</a>.</p>\n");
    return BRC_OK;
}

/* Counts, if that takes a moment only. */
static int count_soon(brc_stats *stats, serve_page_state *p, int *counted)
{
    serve_alarm alarm;
    int rc;

    SERVE_TRY(serve_alarm_begin(&alarm, p->call.repo, COUNT_MS, p->err));
    rc = brc_stat(p->call.repo, stats, p->err);
    *counted = rc >= 0;
    return serve_alarm_end(&alarm) && rc == BRC_EINTERRUPT ? BRC_OK : rc;
}

static void put_counts_rows(serve_page_state *p, const brc_stats *stats)
{
    serve_row_begin(p, "Commits");
    serve_put_count(p, stats->commits);
    serve_row_end(p);
    serve_row_begin(p, "Chunks");
    serve_put_count(p, stats->chunks);
    serve_put(p, " stored, used ");
    serve_put_count(p, stats->chunk_refs);
    serve_put(p, " times");
    serve_row_end(p);
    serve_row_begin(p, "Stored");
    serve_put_bytes(p, stats->stored_bytes);
    serve_put(p, " for ");
    serve_put_bytes(p, stats->logical_bytes);
    serve_put(p, " decoded");
    serve_row_end(p);
    serve_row_begin(p, "File");
    serve_put_bytes(p, stats->file_bytes);
    serve_row_end(p);
}

static int put_totals(serve_page_state *p)
{
    brc_stats stats = BRC_STATS_INIT;
    const char *branch;
    int counted;

    SERVE_TRY(brc_head(&branch, p->call.repo, p->err));
    serve_put(p, "<table><caption>The whole file</caption><tbody id=\"totals\">\n");
    serve_row_begin(p, "Current branch");
    serve_put_name(p, branch);
    serve_row_end(p);
    SERVE_TRY(count_soon(&stats, p, &counted));
    if (counted)
        put_counts_rows(p, &stats);
    serve_row_begin(p, "Sound");
    serve_putf(p, "<span id=\"sound\" data-bytes=\"%llu\">not looked at: "
                  "<code>breccia fsck</code> reads everything</span>",
               counted ? (unsigned long long)stats.file_bytes : ~0ULL);
    serve_row_end(p);
    serve_put(p, "</tbody></table>\n");
    if (!counted)
        serve_put(p, "<p id=\"counts\">The file is large, and counting takes longer than this "
                     "page waits: <code>breccia info</code> does it.</p>\n");
    return BRC_OK;
}

static void put_readme(serve_page_state *p)
{
    static const char *const keys[] = { "readme", "README", "title", "description", "summary",
                                        "comment" };
    const brc_json *names;
    brc_json *document;
    const char *text;

    if (serve_document(&document, &names, &p->call, "/") < 0)
        return;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (brc_json_text(brc_json_member(brc_json_member(document, "attributes"), keys[i]),
                          &text) && *text) {
            serve_putf(p, "<section class=\"readme\"><h3>%s</h3>", keys[i]);
            serve_put(p, "<p class=\"message\"><bdi>");
            serve_put_some(p, text, README_MOST);
            serve_put(p, "</bdi></p></section>\n");
            break;
        }
    brc_json_free(document);
}

/* Names the array whose picture is shown. */
static int put_best(serve_page_state *p)
{
    const serve_entry *best;

    SERVE_TRY(read_entries(p));
    best = serve_entries_best(&p->entries);
    if (best) {
        serve_put(p, "<section class=\"preview\"><h3>Largest array: <a ");
        serve_put_href(p, "node", p->rev, best->path, NULL, NULL);
        serve_put(p, ">");
        serve_put_name(p, best->path);
        serve_put(p, "</a></h3>\n<p>");
        serve_put_dims(p, best->shape, best->ndim);
        serve_put(p, ", ");
        serve_put_bytes(p, best->stored);
        serve_put(p, " stored</p>\n<div id=\"preview\" data-path=\"");
        serve_put_text(p, best->path);
        serve_put(p, "\"></div></section>\n");
    }
    return BRC_OK;
}

int serve_part_overview(serve_page_state *p)
{
    serve_put(p, "<h2>What is here</h2>\n");
    serve_part(p, put_uncommitted);
    serve_put(p, "<section><h3>Last change</h3>\n");
    serve_part(p, put_last_change);
    serve_put(p, "</section>\n");
    put_readme(p);
    serve_part(p, put_best);
    serve_part(p, put_totals);
    serve_put(p, "<p>To open it elsewhere: <a ");
    serve_put_href(p, "open", p->rev, p->path, NULL, NULL);
    serve_put(p, ">lines for Python, xarray, torch, zarrita and GDAL</a>.</p>\n");
    return BRC_OK;
}
