/*
 * changes.c - lists of changed nodes.
 */
#include "changes.h"

#include "../cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_COLUMNS = 48 };

static const char *change_word(int what)
{
    switch (what) {
    case BRC_ADDED:
        return "added";
    case BRC_REMOVED:
        return "removed";
    case BRC_MOVED:
        return "moved";
    default:
        return "changed";
    }
}

/* ---- JSON --------------------------------------------------------------------------- */

static void put_elements_json(struct cli *cli, const brc_change *change)
{
    cli_json_member_uint(cli, "elements_changed", change->elements_changed);
    cli_json_member_uint(cli, "elements_added", change->elements_added);
    cli_json_member_uint(cli, "elements_removed", change->elements_removed);
    if (!isnan(change->max_abs)) {
        cli_json_key(cli, "max_abs");
        cli_json_double(cli, change->max_abs);
    }
    if (change->elements_changed == 0)
        return;
    cli_json_member_dims(cli, "first", change->first, change->ndim);
    cli_json_member_dims(cli, "last", change->last, change->ndim);
}

static void put_change_json(struct cli *cli, const brc_change *change)
{
    cli_json_open(cli, '{');
    cli_json_member(cli, "path", change->path);
    cli_json_member(cli, "node_type", change->kind == BRC_ARRAY ? "array" : "group");
    cli_json_member(cli, "change", change_word(change->what));
    if (change->what == BRC_MOVED && change->from)
        cli_json_member(cli, "from", change->from);
    cli_json_member_bool(cli, "storage_only", (change->flags & BRC_CHANGE_STORAGE));
    cli_json_key(cli, "metadata");
    cli_json_open_line(cli, '[');
    for (size_t i = 0; i < change->nmetadata; i++)
        cli_json_string(cli, change->metadata[i]);
    cli_json_close(cli, '[');
    cli_json_member_uint(cli, "chunks_added", change->chunks_added);
    cli_json_member_uint(cli, "chunks_removed", change->chunks_removed);
    cli_json_member_uint(cli, "chunks_changed", change->chunks_changed);
    if ((change->flags & BRC_CHANGE_ELEMENTS))
        put_elements_json(cli, change);
    if (change->elements_why)
        cli_json_member(cli, "elements_not_compared", change->elements_why);
    cli_json_close(cli, '{');
}

/* ---- text --------------------------------------------------------------------------- */

struct change_row {
    int what;
    const char *name, *detail;
};

struct change_rows {
    struct change_row *rows;
    size_t n, cap;
    uint64_t added, removed, changed; /* chunks, of all rows */
    struct {
        uint64_t changed, added, removed;
    } elements; /* of all rows */
};

static const char *joined(struct cli *cli, const char *text, const char *more)
{
    return text[0] ? cli_text(cli, "%s; %s", text, more) : more;
}

/* "chunks: 2 added, 1 changed" */
static const char *chunk_words(struct cli *cli, const brc_change *change)
{
    const struct {
        uint64_t n;
        const char *word;
    } parts[] = { { change->chunks_added, "added" },
                  { change->chunks_removed, "removed" },
                  { change->chunks_changed, "changed" } };
    const char *out = "";

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (parts[i].n)
            out = cli_text(cli, "%s%s %llu %s", out, out[0] ? "," : "chunks:",
                           (unsigned long long)parts[i].n, parts[i].word);
    return out;
}

/* The box of the differences, as a SLICE. */
static const char *box_words(struct cli *cli, const brc_change *change)
{
    const char *out = "[";

    for (int i = 0; i < change->ndim; i++) {
        const char *comma = i ? ", " : "";

        if (change->first[i] == change->last[i])
            out = cli_text(cli, "%s%s%llu", out, comma, (unsigned long long)change->first[i]);
        else
            out = cli_text(cli, "%s%s%llu:%llu", out, comma, (unsigned long long)change->first[i],
                           (unsigned long long)change->last[i] + 1);
    }
    return cli_text(cli, "%s]", out);
}

static const char *differing_words(struct cli *cli, const brc_change *change)
{
    char number[CLI_DOUBLE_CAP];
    const char *out;

    if (change->elements_changed == 0)
        return "no element differs";
    out = cli_text(cli, "%llu element%s in %s", (unsigned long long)change->elements_changed,
                   change->elements_changed == 1 ? " differs" : "s differ",
                   box_words(cli, change));
    if (isnan(change->max_abs))
        return out;
    return cli_text(cli, "%s, by at most %s", out, cli_format_double(number, change->max_abs));
}

static char *lay_text(char *at, const char *text)
{
    size_t len = strlen(text);

    memcpy(at, text, len);
    return at + len;
}

/* "storage only: /codecs, /storage", made in one piece however many there are. */
static const char *metadata_words(struct cli *cli, const brc_change *change)
{
    static const char storage[] = "storage only: ";
    size_t len = sizeof(storage);
    char *out, *at;

    for (size_t i = 0; i < change->nmetadata; i++)
        len += strlen(cli_escaped(cli, change->metadata[i])) + 2;
    out = at = cli_alloc(cli, len, 1);
    if ((change->flags & BRC_CHANGE_STORAGE))
        at = lay_text(at, change->nmetadata ? storage : "storage only");
    for (size_t i = 0; i < change->nmetadata; i++)
        at = lay_text(lay_text(at, i ? ", " : ""), cli_escaped(cli, change->metadata[i]));
    *at = '\0';
    return out;
}

/* "3 elements differ in [0:3], by at most 5; 100 elements added" */
static const char *element_words(struct cli *cli, const brc_change *change)
{
    const struct {
        uint64_t n;
        const char *word;
    } parts[] = { { change->elements_added, "added" }, { change->elements_removed, "removed" } };
    const char *out = change->what == BRC_CHANGED || change->what == BRC_MOVED
                          ? differing_words(cli, change)
                          : "";

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (parts[i].n)
            out = joined(cli, out,
                         cli_text(cli, "%s %s", cli_count(cli, parts[i].n, "element"),
                                  parts[i].word));
    return out;
}

static const char *change_detail(struct cli *cli, const brc_change *change, int stat)
{
    const char *out = !stat ? metadata_words(cli, change)
                            : (change->flags & BRC_CHANGE_STORAGE) ? "storage only" : "";
    const char *words;

    if (stat && change->nmetadata)
        out = joined(cli, out, "metadata");
    if (change->chunks_added || change->chunks_removed || change->chunks_changed)
        out = joined(cli, out, chunk_words(cli, change));
    if ((change->flags & BRC_CHANGE_ELEMENTS) && *(words = element_words(cli, change)))
        out = joined(cli, out, words);
    if (change->elements_why)
        out = joined(cli, out,
                     cli_text(cli, "elements cannot be compared: %s", change->elements_why));
    return out;
}

/* A count of elements stops at 2^64 - 1. */
static void add_up(uint64_t *sum, uint64_t more)
{
    *sum = more > UINT64_MAX - *sum ? UINT64_MAX : *sum + more;
}

static void keep_change_row(struct cli *cli, struct change_rows *rows, const brc_change *change,
                            int stat)
{
    struct change_row *row;
    const char *slash = change->kind == BRC_GROUP && strcmp(change->path, "/") != 0 ? "/" : "";

    rows->rows = cli_grow(rows->rows, rows->n, &rows->cap, sizeof(*rows->rows));
    row = &rows->rows[rows->n++];
    row->what = change->what;
    row->name = cli_text(cli, "%s%s", cli_escaped(cli, change->path), slash);
    if (change->what == BRC_MOVED && change->from)
        row->name = cli_text(cli, "%s%s -> %s", cli_escaped(cli, change->from), slash, row->name);
    row->detail = change_detail(cli, change, stat);
    rows->added += change->chunks_added;
    rows->removed += change->chunks_removed;
    rows->changed += change->chunks_changed;
    add_up(&rows->elements.changed, change->elements_changed);
    add_up(&rows->elements.added, change->elements_added);
    add_up(&rows->elements.removed, change->elements_removed);
}

static void print_change_rows(struct cli *cli, const struct change_rows *rows)
{
    static const enum cli_color colors[] = { CLI_PLAIN, CLI_GREEN, CLI_RED, CLI_CYAN, CLI_YELLOW };
    size_t width = 0;

    for (size_t i = 0; i < rows->n; i++) {
        size_t n = cli_text_width(rows->rows[i].name);

        width = n > width && n <= NAME_COLUMNS ? n : width;
    }
    for (size_t i = 0; i < rows->n; i++) {
        const struct change_row *row = &rows->rows[i];

        cli_puts(cli, "  ");
        cli_color(cli, colors[row->what >= BRC_ADDED && row->what <= BRC_CHANGED ? row->what : 0]);
        cli_put_padded(cli, change_word(row->what), 9);
        cli_color_end(cli);
        cli_put_padded(cli, row->name, row->detail[0] ? width + 2 : 0);
        cli_printf(cli, "%s\n", row->detail);
    }
}

static void print_stat_total(struct cli *cli, const struct change_rows *rows, int elements)
{
    cli_printf(cli, "  %s, chunks: %llu added, %llu removed, %llu changed",
               cli_count(cli, rows->n, "node"), (unsigned long long)rows->added,
               (unsigned long long)rows->removed, (unsigned long long)rows->changed);
    if (elements)
        cli_printf(cli, "; elements: %llu added, %llu removed, %llu changed",
                   (unsigned long long)rows->elements.added,
                   (unsigned long long)rows->elements.removed,
                   (unsigned long long)rows->elements.changed);
    cli_puts(cli, "\n");
}

/* ---- both --------------------------------------------------------------------------- */

static int each_change(struct cli *cli, struct cli_changes *changes, struct change_rows *rows)
{
    brc_diff_opts opts = BRC_DIFF_OPTS_INIT;
    const brc_change *change;
    int rc;

    opts.path = changes->path;
    opts.flags = changes->elements ? BRC_DIFF_ELEMENTS : 0;
    CLI_TRY(brc_diff(&cli->iter, cli->repo, changes->a, changes->b, &opts, &cli->err));
    while ((rc = brc_diff_next(cli->iter, &change, &cli->err)) == 1) {
        changes->nodes++;
        changes->differing += !(change->flags & BRC_CHANGE_STORAGE);
        if (cli->json)
            put_change_json(cli, change);
        else
            keep_change_row(cli, rows, change, changes->stat);
        CLI_TRY(cli_out_check(cli));
    }
    brc_iter_free(cli->iter);
    cli->iter = NULL;
    return rc;
}

int cli_put_changes(struct cli *cli, struct cli_changes *changes)
{
    struct change_rows rows = { .rows = NULL };
    int rc;

    changes->nodes = 0;
    changes->differing = 0;
    if (cli->json) {
        cli_json_key(cli, "nodes");
        cli_json_open(cli, '[');
    }
    rc = each_change(cli, changes, &rows);
    if (cli->json) {
        cli_json_close(cli, '[');
    } else if (rc >= 0 && rows.n > 0 && !changes->silent) {
        if (changes->title)
            cli_printf(cli, "%s\n", changes->title);
        print_change_rows(cli, &rows);
        if (changes->stat)
            print_stat_total(cli, &rows, changes->elements);
    }
    free(rows.rows);
    return rc;
}
