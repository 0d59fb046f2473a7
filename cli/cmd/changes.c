/*
 * changes.c - lists of changed nodes.
 */
#include "changes.h"

#include "../cli.h"

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

/* Returns the box around the differences, as a SLICE. */
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

/* Adds up to 2^64 - 1, where a count of elements stops. */
static void add_up(uint64_t *sum, uint64_t more)
{
    *sum = more > UINT64_MAX - *sum ? UINT64_MAX : *sum + more;
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

static int put_change(struct cli *cli, struct cli_list *list, const brc_change *change, int stat)
{
    static const enum cli_color colors[] = { CLI_PLAIN, CLI_GREEN, CLI_RED, CLI_CYAN, CLI_YELLOW };
    const int known = change->what >= BRC_ADDED && change->what <= BRC_CHANGED;
    const int elements = (change->flags & BRC_CHANGE_ELEMENTS) != 0;
    const uint64_t *first = elements && change->elements_changed > 0 ? change->first : NULL;
    const uint64_t *last = first ? change->last : NULL;
    const char *from = change->what == BRC_MOVED ? change->from : NULL;
    const char *name = cli->json ? NULL : change_name(cli, change, from);
    const char *detail = cli->json ? NULL : change_detail(cli, change, stat);
    const struct cli_texts metadata = { change->metadata, change->nmetadata };

    return cli_list_put(
        cli, list,
        CLI_FIELDS({ "path", CLI_OF(change->path) },
                   { "node_type", CLI_WORD(change->kind == BRC_ARRAY ? "array" : "group") },
                   { "change", CLI_OF(change_word(change->what)), .lead = "  ", .width = 9,
                     .color = colors[known ? change->what : 0] },
                   { NULL, CLI_OF(name), .lead = "", .width = CLI_FIT, .most = NAME_COLUMNS },
                   { NULL, CLI_OF(detail), .lead = "  " },
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
                   { "first", CLI_DIMS_OF(first, change->ndim), .optional = 1 },
                   { "last", CLI_DIMS_OF(last, change->ndim), .optional = 1 },
                   { "elements_not_compared", CLI_OF(change->elements_why), .optional = 1 }));
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

static int each_change(struct cli *cli, struct cli_changes *changes, struct cli_list *list,
                       struct change_sums *sums)
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
        sum_up(sums, change);
        CLI_TRY(put_change(cli, list, change, changes->stat));
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
