/*
 * changes.c - lists of changed nodes.
 */
#include "changes.h"

#include "../cli.h"
#include "element_lines.h"

#include <inttypes.h>
#include <math.h>
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

/* Sums of all changes. */
struct change_sums {
    uint64_t added, removed, changed; /* chunks */
    struct {
        uint64_t changed, added, removed;
    } elements;
};

/* Adds up to 2^64 - 1, where a count of elements stops. */
static void add_up(uint64_t *sum, uint64_t more)
{
    *sum = more > UINT64_MAX - *sum ? UINT64_MAX : *sum + more;
}

/* ---- words -------------------------------------------------------------------------- */

static const char *joined(struct cli *cli, const char *text, const char *more)
{
    return text[0] ? cli_text(cli, "%s; %s", text, more) : more;
}

/* Returns "chunks: 2 added, 1 changed". */
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

/* Returns the boxes that hold the differences, as SLICEs. */
static const char *boxes_words(struct cli *cli, const brc_change *change)
{
    const int ndim = change->ndim;
    const char *out = "";

    for (size_t i = 0; i < change->nboxes; i++) {
        const uint64_t *first = change->boxes + 2 * i * (size_t)ndim;

        out = cli_text(cli, "%s%s%s", out, i ? ", " : "",
                       cli_box_words(cli, ndim, first, first + ndim));
    }
    return out;
}

static const char *differing_words(struct cli *cli, const brc_change *change, int close)
{
    char number[CLI_DOUBLE_CAP];
    const char *out;

    if (change->elements_changed == 0)
        return close ? "no element differs by more than the tolerance" : "no element differs";
    out = cli_text(cli, "%llu element%s in %s", (unsigned long long)change->elements_changed,
                   change->elements_changed == 1 ? " differs" : "s differ",
                   boxes_words(cli, change));
    if (isnan(change->max_abs))
        return out;
    out = cli_text(cli, "%s, by at most %s", out, cli_format_double(number, change->max_abs));
    if (!(change->mean_abs < change->max_abs)) /* all differ by the same */
        return out;
    return cli_text(cli, "%s (mean %.6g, RMS %.6g)", out, change->mean_abs, change->rms);
}

/* Returns "storage only: /codecs, /storage". */
static const char *metadata_words(struct cli *cli, const brc_change *change)
{
    const struct cli_texts list = { change->metadata, change->nmetadata };
    const char *words = cli_joined(cli, &list, ", ");

    if (!(change->flags & BRC_CHANGE_STORAGE))
        return words;
    return cli_text(cli, "storage only%s%s", words[0] ? ": " : "", words);
}

/* Returns "3 elements differ in [0:3], by at most 5; 100 elements added". */
static const char *element_words(struct cli *cli, const brc_change *change, int close)
{
    const struct {
        uint64_t n;
        const char *word;
    } parts[] = { { change->elements_added, "added" }, { change->elements_removed, "removed" } };
    const char *out = change->what == BRC_CHANGED || change->what == BRC_MOVED
                          ? differing_words(cli, change, close)
                          : "";

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (parts[i].n)
            out = joined(cli, out,
                         cli_text(cli, "%s %s", cli_count(cli, parts[i].n, "element"),
                                  parts[i].word));
    return out;
}

static const char *change_detail(struct cli *cli, const brc_change *change,
                                 const struct cli_changes *changes)
{
    const int stat = changes->stat;
    const char *out = !stat ? metadata_words(cli, change)
                            : (change->flags & BRC_CHANGE_STORAGE) ? "storage only" : "";
    const char *words =
        change->flags & BRC_CHANGE_ELEMENTS ? element_words(cli, change, changes->close) : "";

    if (stat && change->nmetadata)
        out = joined(cli, out, "metadata");
    if (change->chunks_added || change->chunks_removed || change->chunks_changed)
        out = joined(cli, out, chunk_words(cli, change));
    if (*words)
        out = joined(cli, out, words);
    if (change->elements_why && changes->elements)
        out = joined(cli, out,
                     cli_text(cli, "elements cannot be compared: %s", change->elements_why));
    return out;
}

static void sum_up(struct change_sums *sums, const brc_change *change)
{
    sums->added += change->chunks_added;
    sums->removed += change->chunks_removed;
    sums->changed += change->chunks_changed;
    add_up(&sums->elements.changed, change->elements_changed);
    add_up(&sums->elements.added, change->elements_added);
    add_up(&sums->elements.removed, change->elements_removed);
}

static const char *change_name(struct cli *cli, const brc_change *change, const char *from)
{
    const char *slash = change->kind == BRC_GROUP && strcmp(change->path, "/") != 0 ? "/" : "";

    return from ? cli_text(cli, "%s%s -> %s%s", from, slash, change->path, slash)
                : cli_text(cli, "%s%s", change->path, slash);
}

/* ---- lists below a node ------------------------------------------------------------- */

/* The lists of a node's elements, chunks and boxes: lines of text, or JSON. */
struct node_lists {
    struct cli_texts lines;
    const char *values, *boxes, *chunks; /* JSON; NULL: none */
};

static const char *chunk_json(struct cli *cli, const brc_change *change)
{
    const size_t ndim = (size_t)change->ndim;
    const char **parts = cli_alloc(cli, change->nchunks, sizeof(*parts));
    const struct cli_texts list = { parts, change->nchunks };

    for (size_t i = 0; i < change->nchunks; i++) {
        const uint64_t *chunk = change->chunks + i * (ndim + 1);

        parts[i] = cli_text(cli, "{\"chunk\":[%s],\"elements\":%" PRIu64 "}",
                            cli_dims_text(cli, chunk, change->ndim), chunk[ndim]);
    }
    return cli_text(cli, "[%s]", cli_joined(cli, &list, ","));
}

static const char *box_json(struct cli *cli, const brc_change *change)
{
    const char *out = "[";

    for (size_t i = 0; i < change->nboxes; i++) {
        const uint64_t *first = change->boxes + 2 * i * (size_t)change->ndim;

        out = cli_text(cli, "%s%s{\"first\":[%s],\"last\":[%s]}", out, i ? "," : "",
                       cli_dims_text(cli, first, change->ndim),
                       cli_dims_text(cli, first + change->ndim, change->ndim));
    }
    return cli_text(cli, "%s]", out);
}

/* Puts the chunks before the other lines. */
static void add_chunk_lines(struct cli *cli, const brc_change *change, struct cli_texts *lines)
{
    const size_t ndim = (size_t)change->ndim, n = change->nchunks;
    const char **all = cli_alloc(cli, n + lines->n, sizeof(*all));

    for (size_t i = 0; i < n; i++) {
        const uint64_t *chunk = change->chunks + i * (ndim + 1);

        all[i] = cli_text(cli, "chunk %s: %s",
                          cli_box_words(cli, change->ndim, chunk, chunk),
                          cli_count(cli, chunk[ndim], "element"));
    }
    for (size_t i = 0; i < lines->n; i++)
        all[n + i] = lines->texts[i];
    *lines = (struct cli_texts){ all, n + lines->n };
}

/* Counts the elements of which `values` are the first. */
static uint64_t listed_of(const brc_change *change, const struct cli_changes *changes)
{
    uint64_t n = change->elements_changed;

    if (changes->follow) {
        add_up(&n, change->elements_added);
        add_up(&n, change->elements_removed);
    }
    return n;
}

static int make_lists(struct cli *cli, const struct cli_changes *changes, const brc_change *change,
                      struct node_lists *out)
{
    const int more = (change->flags & BRC_CHANGE_MORE) != 0;
    const int known = (change->flags & BRC_CHANGE_ELEMENTS) != 0;
    struct cli_differing list = { change->values, change->nvalues, change->array, 0, NULL };

    *out = (struct node_lists){ .values = NULL };
    if (cli->json) {
        if (known && change->nboxes > 0)
            out->boxes = box_json(cli, change);
        if (known && changes->chunks)
            out->chunks = chunk_json(cli, change);
        return changes->values > 0 && change->array ? cli_differing_json(cli, &list, &out->values)
                                                    : BRC_OK;
    }
    if (more)
        list.more = known ? cli_text(cli, "... and %" PRIu64 " more",
                                     listed_of(change, changes) - change->nvalues)
                          : "... and more: --elements counts them";
    CLI_TRY(cli_differing_lines(cli, &list, &out->lines));
    if (change->nchunks > 0)
        add_chunk_lines(cli, change, &out->lines);
    return BRC_OK;
}

static int put_change(struct cli *cli, struct cli_list *list, const brc_change *change,
                      const struct cli_changes *changes)
{
    static const enum cli_color colors[] = { CLI_PLAIN, CLI_GREEN, CLI_RED, CLI_CYAN, CLI_YELLOW };
    const int known = change->what >= BRC_ADDED && change->what <= BRC_CHANGED;
    const int elements = (change->flags & BRC_CHANGE_ELEMENTS) != 0;
    const uint64_t *first = elements && change->elements_changed > 0 ? change->first : NULL;
    const uint64_t *last = first ? change->last : NULL;
    const char *from = change->what == BRC_MOVED ? change->from : NULL;
    const char *name = cli->json ? NULL : change_name(cli, change, from);
    const char *detail = cli->json ? NULL : change_detail(cli, change, changes);
    const char *why = changes->elements ? change->elements_why : NULL;
    const struct cli_texts metadata = { change->metadata, change->nmetadata };
    struct node_lists lists;

    CLI_TRY(make_lists(cli, changes, change, &lists));
    return cli_list_put(
        cli, list,
        CLI_FIELDS({ "path", CLI_OF(change->path) },
                   { "node_type", CLI_WORD(change->kind == BRC_ARRAY ? "array" : "group") },
                   { "change", CLI_OF(change_word(change->what)), .lead = "  ", .width = 9,
                     .color = colors[known ? change->what : 0] },
                   { NULL, CLI_OF(name), .lead = "", .width = CLI_FIT, .most = NAME_COLUMNS,
                     .narrow = CLI_CUT_START },
                   { NULL, CLI_OF(detail), .lead = "  ", .narrow = CLI_WRAPPED },
                   { NULL, CLI_OF(lists.lines), .form = CLI_AS_LINES, .lead = "\n      " },
                   { "from", CLI_OF(from), .optional = 1 },
                   { "storage_only", CLI_OF((change->flags & BRC_CHANGE_STORAGE) != 0) },
                   { "metadata", CLI_OF(metadata) },
                   { "chunks_added", CLI_OF(change->chunks_added) },
                   { "chunks_removed", CLI_OF(change->chunks_removed) },
                   { "chunks_changed", CLI_OF(change->chunks_changed) },
                   { elements ? "elements_changed" : NULL, CLI_OF(change->elements_changed) },
                   { elements ? "elements_added" : NULL, CLI_OF(change->elements_added) },
                   { elements ? "elements_removed" : NULL, CLI_OF(change->elements_removed) },
                   { elements && !isnan(change->max_abs) ? "max_abs" : NULL,
                     CLI_OF(change->max_abs) },
                   { elements && !isnan(change->mean_abs) ? "mean_abs" : NULL,
                     CLI_OF(change->mean_abs) },
                   { elements && !isnan(change->rms) ? "rms" : NULL, CLI_OF(change->rms) },
                   { "first", CLI_DIMS_OF(first, change->ndim), .optional = 1 },
                   { "last", CLI_DIMS_OF(last, change->ndim), .optional = 1 },
                   { "boxes", CLI_OF(lists.boxes), .form = CLI_AS_JSON, .optional = 1 },
                   { "chunks", CLI_OF(lists.chunks), .form = CLI_AS_JSON, .optional = 1 },
                   { "values", CLI_OF(lists.values), .form = CLI_AS_JSON, .optional = 1 },
                   { "more_values", CLI_OF((change->flags & BRC_CHANGE_MORE) != 0),
                     .optional = 1 },
                   { "elements_not_compared", CLI_OF(why), .optional = 1 }));
}

static void print_stat_total(struct cli *cli, const struct change_sums *sums, uint64_t nodes,
                             int elements)
{
    cli_printf(cli, "  %s, chunks: %llu added, %llu removed, %llu changed",
               cli_count(cli, nodes, "node"), (unsigned long long)sums->added,
               (unsigned long long)sums->removed, (unsigned long long)sums->changed);
    if (elements)
        cli_printf(cli, "; elements: %llu added, %llu removed, %llu changed",
                   (unsigned long long)sums->elements.added,
                   (unsigned long long)sums->elements.removed,
                   (unsigned long long)sums->elements.changed);
    cli_puts(cli, "\n");
}

/* ---- lists -------------------------------------------------------------------------- */

/* Begins the comparison. Values that nobody asked for are left out where they cannot be read. */
static int begin_changes(struct cli *cli, struct cli_changes *changes)
{
    brc_diff_opts opts = BRC_DIFF_OPTS_INIT;
    const char *why;
    int rc;

    opts.path = changes->path;
    opts.flags = (changes->elements ? BRC_DIFF_ELEMENTS : 0) |
                 (changes->chunks ? BRC_DIFF_CHUNKS : 0) | (changes->close ? BRC_DIFF_CLOSE : 0) |
                 (changes->follow ? BRC_DIFF_MOVED | BRC_DIFF_ADDED : 0);
    opts.values = changes->values;
    opts.atol = changes->atol;
    opts.rtol = changes->rtol;
    opts.sel = changes->sel;
    rc = brc_diff(&cli->iter, cli->repo, changes->a, changes->b, &opts, &cli->err);
    if (rc >= 0 || changes->elements || changes->values == 0 || changes->values_asked ||
        rc == BRC_EINTERRUPT)
        return rc;
    why = cli_text(cli, "%s", cli->err.message);
    opts.values = changes->values = 0;
    CLI_TRY(brc_diff(&cli->iter, cli->repo, changes->a, changes->b, &opts, &cli->err));
    cli_say(cli, "elements are not shown: %s", why);
    return BRC_OK;
}

/* Tells whether a node has other values or metadata, as far as that was looked at. */
static int does_differ(const brc_change *change)
{
    if (change->flags & BRC_CHANGE_STORAGE)
        return 0;
    return !(change->flags & BRC_CHANGE_ELEMENTS) || change->what != BRC_CHANGED ||
           change->nmetadata > 0 || change->elements_changed > 0 || change->elements_added > 0 ||
           change->elements_removed > 0;
}

static int each_change(struct cli *cli, struct cli_changes *changes, struct cli_list *list,
                       struct change_sums *sums)
{
    const brc_change *change;
    int rc;

    CLI_TRY(begin_changes(cli, changes));
    while ((rc = brc_next(cli->iter, &change, &cli->err)) == 1) {
        changes->nodes++;
        changes->differing += (uint64_t)does_differ(change);
        sum_up(sums, change);
        CLI_TRY(put_change(cli, list, change, changes));
    }
    brc_iter_free(cli->iter);
    cli->iter = NULL;
    return rc;
}

int cli_put_changes(struct cli *cli, struct cli_changes *changes)
{
    struct change_sums sums = { .added = 0 };
    struct cli_list list;
    int lines;

    changes->nodes = 0;
    changes->differing = 0;
    cli_list_begin(cli, &list, "nodes", changes->silent ? CLI_SAID : 0);
    CLI_TRY(each_change(cli, changes, &list, &sums));
    lines = !cli->json && list.n > 0 && !changes->silent;
    if (lines && changes->title)
        cli_printf(cli, "%s\n", changes->title);
    CLI_TRY(cli_list_end(cli, &list, BRC_OK));
    if (lines && changes->stat)
        print_stat_total(cli, &sums, list.n, changes->elements);
    return BRC_OK;
}
