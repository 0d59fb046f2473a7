/*
 * history.c - commits, refs, and the results of merge, cherry-pick, revert and rebase.
 */
#include "history.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../cli.h"
#include "element_lines.h"

/* ==== merge, cherry-pick, revert and rebase ============== */

/* ---- the open operation --------------------------------- */

int cli_on_open(struct cli *cli)
{
    const int ends = cli_has(cli, "continue") + cli_has(cli, "abort") + cli_has(cli, "skip");
    const int settles = cli_has(cli, "ours") || cli_has(cli, "theirs");

    if (cli->args.before_dashes == 2 && ends == 0)
        return 0;
    if (cli->args.before_dashes != 1 || (ends == 0 && !settles))
        return cli_usage(cli, "%s needs FILE and REV; PATHs come after --", cli->command->name);
    if (ends + settles > 1)
        return cli_usage(cli, "give only one of --continue, --abort, --ours and --theirs");
    return 1;
}

/* Reads the open operation of the branch; fails where another command began that operation. */
static int command_state(struct cli *cli, brc_open_state *out)
{
    CLI_TRY(brc_merge_state(out, NULL, cli->repo, &cli->err));
    if (out->draft == 0 || strcmp(out->op, cli->command->name) == 0)
        return BRC_OK;
    return cli_fail(cli, BRC_EMISUSE,
                    "%s: the open operation is a %s: 'breccia %s --continue' commits it, and "
                    "--abort drops it",
                    cli_operand(cli, 0), out->op, out->op);
}

int cli_continue(struct cli *cli, brc_open_state *was, brc_pick_result *out,
                 const brc_pick_opts *opts)
{
    CLI_TRY(command_state(cli, was));
    CLI_TRY(brc_continue(out, &cli->iter, cli->repo, opts, &cli->err));
    if (out->draft != was->draft)
        cli_done(cli);
    return BRC_OK;
}

static int abort_open(struct cli *cli)
{
    brc_open_state state = BRC_OPEN_STATE_INIT;

    CLI_TRY(command_state(cli, &state));
    CLI_TRY(brc_abort(cli->repo, &cli->err));
    cli_done(cli);
    cli_answer(cli, CLI_FIELDS({ "result", CLI_WORD("aborted") }), "the %s was dropped",
               cli->command->name);
    return BRC_OK;
}

void cli_say_moved(struct cli *cli, const brc_open_state *was, int64_t draft, const char *branch)
{
    if (draft != 0 && draft != was->draft)
        cli_say(cli, "%s has moved since the %s began: --theirs is the version that was settled "
                     "before",
                cli_escaped(cli, branch), was->op);
}

static int settle_open(struct cli *cli)
{
    brc_open_state state = BRC_OPEN_STATE_INIT;
    struct cli_sides sides;
    uint64_t settled;
    const uint32_t side = cli_has(cli, "ours") ? BRC_MERGE_OURS : BRC_MERGE_THEIRS;

    CLI_TRY(cli_sides(cli, &sides));
    CLI_TRY(command_state(cli, &state));
    CLI_TRY(brc_merge_settle(&settled, cli->repo, side, sides.paths, sides.npaths, &cli->err));
    cli_done(cli);
    CLI_TRY(brc_merge_state(&state, NULL, cli->repo, &cli->err));
    cli_answer(cli, CLI_FIELDS({ "settled", CLI_OF(settled) }, { "open", CLI_OF(state.open) }),
               "settled %" PRIu64 "; %" PRIu64 " of %" PRIu64 " still open", settled, state.open,
               state.conflicts);
    return BRC_OK;
}

int cli_run_open(struct cli *cli, cli_go_on go_on, const void *opts)
{
    const char *branch;

    CLI_TRY(cli_open(cli, 0));
    CLI_TRY(cli_branch(cli, &branch));
    if (cli_has(cli, "abort"))
        return abort_open(cli);
    return cli_has(cli, "continue") || cli_has(cli, "skip") ? go_on(cli, branch, opts)
                                                            : settle_open(cli);
}

/* ---- results --------------------------------------------------------------- */

int cli_sides(struct cli *cli, struct cli_sides *out)
{
    const int ours = cli_has(cli, "ours"), theirs = cli_has(cli, "theirs");

    *out = (struct cli_sides){ ours, theirs, NULL, 0 };
    if (ours && theirs)
        return cli_usage(cli, "--ours and --theirs exclude each other");
    if (cli->args.noperands == cli->args.before_dashes)
        return BRC_OK;
    if (!ours && !theirs)
        return cli_usage(cli, "PATHs after -- need --ours or --theirs");
    out->paths = cli->args.operands + cli->args.before_dashes;
    out->npaths = cli->args.noperands - cli->args.before_dashes;
    return BRC_OK;
}

int cli_pick_sides(struct cli *cli, brc_pick_opts *opts)
{
    struct cli_sides sides;

    CLI_TRY(cli_sides(cli, &sides));
    opts->flags |= sides.ours ? BRC_PICK_OURS : sides.theirs ? BRC_PICK_THEIRS : 0;
    opts->paths = sides.paths;
    opts->npaths = sides.npaths;
    return BRC_OK;
}

int cli_commit_words(struct cli *cli, const char **message, const char **author, int64_t *time_us)
{
    *message = cli_value(cli, "message");
    *author = cli_value(cli, "author");
    if (*message && (*message)[0] == '\0')
        return cli_usage(cli, "option --message: the text is empty");
    if (*author && (*author)[0] == '\0')
        return cli_usage(cli, "option --author: the name is empty");
    return cli_date_option(cli, time_us);
}

static int put_conflict(struct cli *cli, struct cli_list *list, const brc_conflict *c)
{
    struct cli_differing elements = { c->values, c->nvalues, c->array, 1, NULL };
    struct cli_texts lines = { NULL, 0 };
    const char *values = NULL;

    if (c->elements > c->nvalues)
        elements.more = cli_text(cli, "... and %" PRIu64 " more", c->elements - c->nvalues);
    if (c->nvalues > 0)
        CLI_TRY(cli->json ? cli_differing_json(cli, &elements, &values)
                          : cli_differing_lines(cli, &elements, &lines));
    return cli_list_put(
        cli, list,
        CLI_FIELDS({ NULL, CLI_WORD(c->settled ? "settled" : "conflict"), .lead = "" },
                   { NULL, CLI_OF(c->kind), .lead = ": " },
                   { "path", CLI_OF(c->path), .lead = " " },
                   { "kind", CLI_OF(c->kind) },
                   { "key", CLI_OF(c->key), .optional = 1, .lead = " " },
                   { NULL, CLI_OF(lines), .form = CLI_AS_LINES, .lead = "\n      " },
                   { "settled", CLI_OF(c->settled), .optional = 1 },
                   { "elements", CLI_OF(c->elements), .optional = 1 },
                   { "values", CLI_OF(values), .form = CLI_AS_JSON, .optional = 1 }));
}

int cli_put_conflicts(struct cli *cli)
{
    struct cli_list list;
    const brc_conflict *c;
    int rc;

    cli_list_begin(cli, &list, "conflicts", CLI_SAID);
    while ((rc = brc_next(cli->iter, &c, &cli->err)) > 0)
        CLI_TRY(put_conflict(cli, &list, c));
    return cli_list_end(cli, &list, rc);
}

int cli_print_picked(struct cli *cli, const brc_pick_result *r, const char *result, int numbers)
{
    const int conflicts = r->result == BRC_PICK_CONFLICT;

    cli_begin(cli, NULL, '{');
    cli_put_members(
        cli, CLI_FIELDS({ "result", CLI_OF(result) },
                        { conflicts ? "at" : NULL, CLI_OF(r->at) },
                        { conflicts ? NULL : "commit", CLI_OF(r->commit) },
                        { numbers ? "commits" : NULL, CLI_OF(r->made) },
                        { numbers ? "skipped" : NULL, CLI_OF(r->skipped) },
                        { numbers && r->draft != 0 ? "left" : NULL, CLI_OF(r->left) }));
    CLI_TRY(cli_put_conflicts(cli));
    cli_finish(cli, '{');
    return BRC_OK;
}

/* ==== lanes of the commit graph ========================== */

static size_t lane_of(const struct cli_graph *graph, const brc_oid *id)
{
    size_t i = 0;

    while (i < graph->n && !cli_same_id(&graph->lanes[i], id))
        i++;
    return i;
}

static void insert_lane(struct cli_graph *graph, size_t at, const brc_oid *id)
{
    graph->lanes = cli_grow(graph->lanes, graph->n, &graph->cap, sizeof(*graph->lanes));
    memmove(graph->lanes + at + 1, graph->lanes + at, (graph->n - at) * sizeof(*graph->lanes));
    graph->lanes[at] = *id;
    graph->n++;
}

static void remove_lane(struct cli_graph *graph, size_t at)
{
    memmove(graph->lanes + at, graph->lanes + at + 1,
            (graph->n - at - 1) * sizeof(*graph->lanes));
    graph->n--;
}

/* Returns a blank line with two columns for each lane. */
static char *blank_line(struct cli *cli, size_t lanes)
{
    char *line = cli_alloc(cli, 2 * lanes + 2, 1);

    memset(line, ' ', 2 * lanes + 1);
    return line;
}

static void put_line(struct cli *cli, char *line)
{
    size_t len = strlen(line);

    while (len > 0 && line[len - 1] == ' ')
        len--;
    cli_put(cli, line, len);
    cli_puts(cli, "\n");
}

void cli_graph_enter(struct cli *cli, struct cli_graph *graph, const brc_commit *commit,
                     const char **first, const char **prefix)
{
    size_t at = lane_of(graph, &commit->id);
    char *star, *bars;

    if (at == graph->n)
        insert_lane(graph, at, &commit->id);
    star = blank_line(cli, graph->n);
    for (size_t i = 0; i < graph->n; i++)
        star[2 * i] = i == at ? '*' : '|';
    star[2 * graph->n] = '\0';
    bars = blank_line(cli, graph->n);
    for (size_t i = 0; i < graph->n; i++)
        bars[2 * i] = i == at && commit->nparents == 0 ? ' ' : '|';
    bars[2 * graph->n] = '\0';
    *first = star;
    *prefix = bars;
}

/* |\    A lane opens at `at`, and the lanes after it move to the right. */
static void draw_opening(struct cli *cli, const struct cli_graph *graph, size_t at)
{
    char *line = blank_line(cli, graph->n);

    for (size_t i = 0; i < graph->n; i++) {
        if (i < at)
            line[2 * i] = '|';
        else
            line[2 * i - 1] = '\\';
    }
    put_line(cli, line);
}

/* |_|/    The lane at `from` joins the lane at `to`, or just ends if to == from. The lanes after
 * it move to the left. */
static void draw_closing(struct cli *cli, const struct cli_graph *graph, size_t to, size_t from)
{
    char *line = blank_line(cli, graph->n);

    for (size_t i = 0; i < graph->n; i++) {
        if (i < from)
            line[2 * i] = '|';
        else if (i > from || to < from)
            line[2 * i - 1] = '/';
        if (i > to && i < from)
            line[2 * i - 1] = '_';
    }
    put_line(cli, line);
}

/* Joins lanes that wait for the same commit into the leftmost of them. */
static void close_equal_lanes(struct cli *cli, struct cli_graph *graph)
{
    for (size_t from = 1; from < graph->n; from++) {
        size_t to = lane_of(graph, &graph->lanes[from]);

        if (to == from)
            continue;
        draw_closing(cli, graph, to, from);
        remove_lane(graph, from--);
    }
}

void cli_graph_connect(struct cli *cli, struct cli_graph *graph, const brc_commit *commit)
{
    size_t at = lane_of(graph, &commit->id);

    if (at == graph->n)
        return;
    if (commit->nparents == 0) {
        if (at + 1 < graph->n)
            draw_closing(cli, graph, at, at);
        remove_lane(graph, at);
        return;
    }
    graph->lanes[at] = commit->parents[0];
    for (size_t i = 1; i < commit->nparents; i++) {
        insert_lane(graph, at + i, &commit->parents[i]);
        draw_opening(cli, graph, at + i);
    }
    close_equal_lanes(cli, graph);
}

void cli_graph_dispose(struct cli_graph *graph)
{
    free(graph->lanes);
    graph->lanes = NULL;
    graph->n = graph->cap = 0;
}

/* ==== commits as JSON and text =========================== */

int cli_same_id(const brc_oid *a, const brc_oid *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

int cli_has_id(const brc_oid *id)
{
    static const brc_oid zero;

    return !cli_same_id(id, &zero);
}

int cli_refs_read(struct cli *cli, struct cli_refs *out)
{
    struct cli_ref *refs = NULL;
    size_t n = 0, cap = 0;
    const brc_ref *ref;
    int rc;

    out->n = 0;
    CLI_TRY(brc_refs(&cli->iter, cli->repo, &cli->err));
    while ((rc = brc_next(cli->iter, &ref, &cli->err)) == 1) {
        refs = cli_grow(refs, n, &cap, sizeof(*refs));
        refs[n].name = cli_text(cli, "%s", ref->name);
        refs[n].message = cli_text(cli, "%s", ref->message ? ref->message : "");
        refs[n].is_tag = (ref->flags & BRC_REF_TAG) != 0;
        refs[n].is_current = (ref->flags & BRC_REF_CURRENT) != 0;
        refs[n].is_unborn = (ref->flags & BRC_REF_UNBORN) != 0;
        refs[n++].id = ref->flags & BRC_REF_UNBORN ? (brc_oid){ 0 } : ref->id;
    }
    brc_iter_free(cli->iter);
    cli->iter = NULL;
    out->refs = cli_alloc(cli, n + 1, sizeof(*refs));
    if (n > 0)
        memcpy(out->refs, refs, n * sizeof(*refs));
    out->n = n;
    free(refs);
    return rc;
}

int cli_ref_find(struct cli *cli, const char *name, int is_tag, brc_oid *id)
{
    struct cli_refs refs;

    *id = (brc_oid){ 0 };
    CLI_TRY(cli_refs_read(cli, &refs));
    for (size_t i = 0; i < refs.n; i++)
        if (!refs.refs[i].is_tag == !is_tag && strcmp(refs.refs[i].name, name) == 0)
            *id = refs.refs[i].id;
    return BRC_OK;
}

int cli_refs_unborn(const struct cli_refs *refs)
{
    for (size_t i = 0; i < refs->n; i++)
        if (refs->refs[i].is_current)
            return refs->refs[i].is_unborn;
    return 0;
}

/* ---- commits -------------------------------------------- */

static struct cli_texts ref_names(struct cli *cli, const struct cli_refs *refs, const brc_oid *id,
                                  int is_tag)
{
    const char **names = cli_alloc(cli, refs->n, sizeof(*names));
    size_t n = 0;

    for (size_t i = 0; i < refs->n; i++)
        if (!refs->refs[i].is_tag == !is_tag && cli_same_id(&refs->refs[i].id, id))
            names[n++] = refs->refs[i].name;
    return (struct cli_texts){ names, n };
}

/* ---- text --------------------------------------------------------------------------- */

/* Prints " (HEAD -> main, tag: v1)". */
static void put_decoration(struct cli *cli, const struct cli_refs *refs, const brc_oid *id)
{
    const char *open = " (";

    for (size_t i = 0; i < refs->n; i++) {
        const struct cli_ref *ref = &refs->refs[i];

        if (!cli_same_id(&ref->id, id))
            continue;
        cli_puts(cli, open);
        cli_color(cli, ref->is_tag ? CLI_YELLOW : CLI_GREEN);
        cli_printf(cli, "%s%s", ref->is_tag ? "tag: " : ref->is_current ? "HEAD -> " : "",
                   cli_escaped(cli, ref->name));
        cli_color_end(cli);
        open = ", ";
    }
    if (strcmp(open, ", ") == 0)
        cli_puts(cli, ")");
}

void cli_commit_line(struct cli *cli, const brc_commit *commit, const struct cli_refs *refs,
                     const char *first)
{
    cli_puts(cli, first);
    cli_color(cli, CLI_YELLOW);
    cli_puts(cli, cli_short_id(cli, &commit->id));
    cli_color_end(cli);
    put_decoration(cli, refs, &commit->id);
    cli_printf(cli, " %s\n", cli_subject(cli, commit->message));
}

/* Prints a line of a message. A line without text does not end with blanks. */
static void put_message_line(struct cli *cli, const char *prefix, const char *line)
{
    const char *text = cli_subject(cli, line);
    int len = (int)strlen(prefix);

    while (!text[0] && len > 0 && prefix[len - 1] == ' ')
        len--;
    cli_printf(cli, "%.*s%s%s\n", len, prefix, text[0] ? "    " : "", text);
}

/* Prints the first line of a commit: its id, and the refs that name it. */
static void put_title(struct cli *cli, const brc_commit *commit, const struct cli_refs *refs,
                      const char *first)
{
    cli_puts(cli, first);
    cli_color(cli, CLI_YELLOW);
    cli_printf(cli, "commit %s", cli_long_id(cli, &commit->id));
    cli_color_end(cli);
    put_decoration(cli, refs, &commit->id);
    cli_puts(cli, "\n");
}

static void put_message(struct cli *cli, const char *message, const char *prefix)
{
    put_message_line(cli, prefix, "");
    while (*message) {
        size_t len = strcspn(message, "\n");

        put_message_line(cli, prefix, message);
        message += len + (message[len] == '\n');
    }
}

void cli_put_commit(struct cli *cli, const brc_commit *commit, const struct cli_refs *refs,
                    const char *path, const char *first, const char *prefix)
{
    struct cli_block *before = cli_memory_mark(cli);
    const int has_meta = commit->meta_json && commit->meta_json[0];
    const char *meta = has_meta ? commit->meta_json : "{}";
    const struct cli_ids parents = { commit->parents, commit->nparents };
    const int expired = (commit->flags & BRC_PAST_EXPIRED) != 0;

    if (!cli->json)
        put_title(cli, commit, refs, first);
    cli_put_lines(
        cli,
        CLI_FIELDS({ "id", CLI_OF(commit->id) },
                   { "parents", CLI_OF(parents), .lead = parents.n > 1 ? "Merge:" : NULL },
                   { "parents_expired", CLI_OF(expired), .optional = 1 },
                   { NULL, CLI_WORD(expired ? "commits before this one have expired" : NULL),
                     .lead = "Past:" },
                   { "author", CLI_OF(commit->author), .lead = "Author:", .none = "" },
                   { "time", CLI_OF(commit->time_us), CLI_AS_TIME, .lead = "Date:" },
                   { "message", CLI_OF(commit->message) },
                   { "branches", CLI_OF(ref_names(cli, refs, &commit->id, 0)) },
                   { "tags", CLI_OF(ref_names(cli, refs, &commit->id, 1)) },
                   { "meta", CLI_OF(meta), CLI_AS_JSON,
                     .lead = strcmp(meta, "{}") != 0 ? "Meta:" : NULL },
                   { "path", CLI_OF(path), .optional = 1, .lead = "Path:" }),
        prefix, 8, CLI_PLAIN);
    if (!cli->json)
        put_message(cli, commit->message, prefix);
    cli_memory_release(cli, before);
}

/* NULL where no name is known. A static program reads the file: the modules of another C library,
 * which would look further, are not for it. */
static const struct passwd *user_of_process(void)
{
#ifdef BRC_STATIC
    static struct passwd found;
    static char text[4096];
    struct passwd *entry = NULL;
    FILE *file = fopen("/etc/passwd", "re");

    while (file && fgetpwent_r(file, &found, text, sizeof(text), &entry) == 0)
        if (found.pw_uid == geteuid())
            break;
    if (file)
        fclose(file);
    return entry;
#else
    return getpwuid(geteuid());
#endif
}

int cli_default_author(struct cli *cli, const char **out)
{
    const struct passwd *entry;
    const char *user;
    char host[256] = "localhost";

    CLI_TRY(cli_setting(cli, "author", out, NULL));
    if (*out)
        return BRC_OK;
    entry = user_of_process();
    user = entry ? entry->pw_name : getenv("USER");
    user = user && user[0] ? user : "unknown";
    if (gethostname(host, sizeof(host)) == 0)
        host[sizeof(host) - 1] = '\0';
    *out = cli_text(cli, "%s <%s@%s>", user, user, host);
    return BRC_OK;
}
