/*
 * history.c - results of cherry-pick, revert and rebase; conflicts of these and of merge.
 */
#include "history.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../cli.h"

/* ==== picked ================================ */

/* ---- what is open --------------------------------------------------------------- */

int cli_on_open(struct cli *cli)
{
    const int ends = cli_has(cli, "continue") + cli_has(cli, "abort") + cli_has(cli, "skip");
    const int settles = cli_has(cli, "ours") || cli_has(cli, "theirs");

    if (cli->args.before_dashes == 2 && ends == 0)
        return 0;
    if (cli->args.before_dashes != 1 || (ends == 0 && !settles))
        return cli_usage(cli, "%s needs FILE and REV; PATHs go behind --", cli->command->name);
    if (ends + settles > 1)
        return cli_usage(cli, "give only one of --continue, --abort, --ours and --theirs");
    return 1;
}

int cli_open_state(struct cli *cli, brc_open_state *out)
{
    CLI_TRY(brc_merge_state(out, NULL, cli->repo, &cli->err));
    if (out->draft == 0 || strcmp(out->op, cli->command->name) == 0)
        return BRC_OK;
    return cli_fail(cli, BRC_EMISUSE,
                    "%s: what is open is a %s: 'breccia %s --continue' commits it, and --abort "
                    "drops it",
                    cli_operand(cli, 0), out->op, out->op);
}

int cli_abort_open(struct cli *cli)
{
    brc_open_state state = BRC_OPEN_STATE_INIT;

    CLI_TRY(cli_open_state(cli, &state));
    CLI_TRY(brc_merge_abort(cli->repo, &cli->err));
    cli_done(cli);
    cli_say(cli, "the %s was dropped", cli->command->name);
    if (cli->json) {
        cli_json_open(cli, '{');
        cli_json_member(cli, "result", "aborted");
        cli_json_close(cli, '}');
    }
    return BRC_OK;
}

void cli_say_moved(struct cli *cli, const brc_open_state *was, int64_t draft, const char *branch)
{
    if (draft != 0 && draft != was->draft)
        cli_say(cli, "%s has moved since the %s began: --theirs is what was settled before",
                cli_escaped(cli, branch), was->op);
}

int cli_settle_open(struct cli *cli, const char *const *paths, size_t npaths)
{
    brc_open_state state = BRC_OPEN_STATE_INIT;
    uint64_t settled;
    const uint32_t side = cli_has(cli, "ours") ? BRC_MERGE_OURS : BRC_MERGE_THEIRS;

    CLI_TRY(cli_open_state(cli, &state));
    CLI_TRY(brc_merge_settle(&settled, cli->repo, side, paths, npaths, &cli->err));
    cli_done(cli);
    CLI_TRY(brc_merge_state(&state, NULL, cli->repo, &cli->err));
    cli_say(cli, "settled %" PRIu64 "; %" PRIu64 " of %" PRIu64 " still open", settled, state.open,
            state.conflicts);
    if (cli->json) {
        cli_json_open(cli, '{');
        cli_json_member_uint(cli, "settled", settled);
        cli_json_member_uint(cli, "open", state.open);
        cli_json_close(cli, '}');
    }
    return BRC_OK;
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
        return cli_usage(cli, "PATHs behind -- need --ours or --theirs");
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
    return cli_time_option(cli, "date", time_us);
}

static void put_conflict(struct cli *cli, const brc_conflict *c)
{
    if (!cli->json) {
        cli_say(cli, "%s: %s %s%s%s", c->settled ? "settled" : "conflict", c->kind,
                cli_escaped(cli, c->path), c->key ? " " : "",
                c->key ? cli_escaped(cli, c->key) : "");
        return;
    }
    cli_json_open(cli, '{');
    cli_json_member(cli, "path", c->path);
    cli_json_member(cli, "kind", c->kind);
    if (c->key)
        cli_json_member(cli, "key", c->key);
    if (c->settled)
        cli_json_member_bool(cli, "settled", 1);
    cli_json_close(cli, '}');
}

int cli_put_conflicts(struct cli *cli)
{
    const brc_conflict *c;
    int rc;

    if (cli->json) {
        cli_json_key(cli, "conflicts");
        cli_json_open(cli, '[');
    }
    while ((rc = brc_conflicts_next(cli->iter, &c, &cli->err)) > 0)
        put_conflict(cli, c);
    if (cli->json)
        cli_json_close(cli, ']');
    return rc;
}

static void put_result(struct cli *cli, const brc_pick_result *r, const char *result, int numbers)
{
    cli_json_open(cli, '{');
    cli_json_member(cli, "result", result);
    if (r->result == BRC_PICK_CONFLICT)
        cli_json_member(cli, "at", cli_long_id(cli, &r->at));
    else
        cli_json_member(cli, "commit", cli_long_id(cli, &r->commit));
    if (numbers) {
        cli_json_member_uint(cli, "commits", r->made);
        cli_json_member_uint(cli, "skipped", r->skipped);
        if (r->draft != 0)
            cli_json_member_uint(cli, "left", r->left);
    }
}

int cli_print_picked(struct cli *cli, const brc_pick_result *r, const char *result, int numbers)
{
    int rc;

    if (cli->json)
        put_result(cli, r, result, numbers);
    rc = cli_put_conflicts(cli);
    if (cli->json)
        cli_json_close(cli, '}');
    return rc;
}

/* ==== graph ================================ */

/*
 * history.c - lanes of the commit graph.
 */

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

/* A blank line to draw on, with two columns for each lane. */
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

/* |\    a lane opens at `at`; those after it move to the right */
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

/* |_|/    the lane at `from` joins that at `to`, or (to == from) just ends; those after
 * it move to the left */
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

/* Lanes that wait for the same commit join the leftmost of them. */
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

/* ==== history ================================ */

/*
 * history.c - commits as JSON and text.
 */

int cli_same_id(const brc_oid *a, const brc_oid *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

int cli_refs_read(struct cli *cli, struct cli_refs *out)
{
    struct cli_ref *refs = NULL;
    size_t n = 0, cap = 0;
    const brc_ref *ref;
    int rc;

    out->n = 0;
    CLI_TRY(brc_refs(&cli->iter, cli->repo, &cli->err));
    while ((rc = brc_refs_next(cli->iter, &ref, &cli->err)) == 1) {
        refs = cli_grow(refs, n, &cap, sizeof(*refs));
        refs[n].name = cli_text(cli, "%s", ref->name);
        refs[n].message = cli_text(cli, "%s", ref->message ? ref->message : "");
        refs[n].is_tag = (ref->flags & BRC_REF_TAG) != 0;
        refs[n].is_current = (ref->flags & BRC_REF_CURRENT) != 0;
        refs[n].is_unborn = (ref->flags & BRC_REF_UNBORN) != 0;
        refs[n++].id = ref->id;
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

int cli_ref_find(struct cli *cli, const char *name, int is_tag, int *has, brc_oid *id)
{
    struct cli_refs refs;

    *has = 0;
    CLI_TRY(cli_refs_read(cli, &refs));
    for (size_t i = 0; i < refs.n && !*has; i++) {
        const struct cli_ref *ref = &refs.refs[i];

        *has = !ref->is_tag == !is_tag && !ref->is_unborn && strcmp(ref->name, name) == 0;
        *id = ref->id;
    }
    return BRC_OK;
}

int cli_refs_unborn(const struct cli_refs *refs)
{
    for (size_t i = 0; i < refs->n; i++)
        if (refs->refs[i].is_current)
            return refs->refs[i].is_unborn;
    return 0;
}

/* ---- JSON --------------------------------------------------------------------------- */

static void put_ref_names(struct cli *cli, const char *key, const struct cli_refs *refs,
                          const brc_oid *id, int is_tag)
{
    cli_json_key(cli, key);
    cli_json_open_line(cli, '[');
    for (size_t i = 0; i < refs->n; i++)
        if (!refs->refs[i].is_tag == !is_tag && !refs->refs[i].is_unborn &&
            cli_same_id(&refs->refs[i].id, id))
            cli_json_string(cli, refs->refs[i].name);
    cli_json_close(cli, '[');
}

void cli_commit_members(struct cli *cli, const brc_commit *commit, const struct cli_refs *refs)
{
    char time[CLI_TIME_CAP];
    const char *meta = commit->meta_json && commit->meta_json[0] ? commit->meta_json : "{}";

    cli_json_key(cli, "id");
    cli_json_id(cli, &commit->id);
    cli_json_key(cli, "parents");
    cli_json_open_line(cli, '[');
    for (size_t i = 0; i < commit->nparents; i++)
        cli_json_id(cli, &commit->parents[i]);
    cli_json_close(cli, '[');
    if (commit->flags & BRC_PAST_EXPIRED)
        cli_json_member_bool(cli, "parents_expired", 1);
    cli_json_member(cli, "author", commit->author);
    cli_json_member(cli, "time", cli_format_time(time, commit->time_us));
    cli_json_member(cli, "message", commit->message);
    put_ref_names(cli, "branches", refs, &commit->id, 0);
    put_ref_names(cli, "tags", refs, &commit->id, 1);
    cli_json_key(cli, "meta");
    cli_json_raw(cli, meta, strlen(meta));
}

/* ---- text --------------------------------------------------------------------------- */

/* " (HEAD -> main, tag: v1)" */
static void put_decoration(struct cli *cli, const struct cli_refs *refs, const brc_oid *id)
{
    const char *open = " (";

    for (size_t i = 0; i < refs->n; i++) {
        const struct cli_ref *ref = &refs->refs[i];

        if (ref->is_unborn || !cli_same_id(&ref->id, id))
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

const char *cli_subject(struct cli *cli, const char *message)
{
    return cli_escaped(cli, cli_text(cli, "%.*s", (int)strcspn(message, "\n"), message));
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

/* A line without text does not end with blanks either. */
static void put_message_line(struct cli *cli, const char *prefix, const char *line)
{
    const char *text = cli_subject(cli, line);
    int len = (int)strlen(prefix);

    while (!text[0] && len > 0 && prefix[len - 1] == ' ')
        len--;
    cli_printf(cli, "%.*s%s%s\n", len, prefix, text[0] ? "    " : "", text);
}

void cli_commit_text(struct cli *cli, const brc_commit *commit, const struct cli_refs *refs,
                     const char *path, const char *first, const char *prefix)
{
    char time[CLI_TIME_CAP];
    const char *line = commit->message;

    cli_puts(cli, first);
    cli_color(cli, CLI_YELLOW);
    cli_printf(cli, "commit %s", cli_long_id(cli, &commit->id));
    cli_color_end(cli);
    put_decoration(cli, refs, &commit->id);
    cli_puts(cli, "\n");
    if (commit->nparents > 1) {
        cli_printf(cli, "%sMerge: ", prefix);
        for (size_t i = 0; i < commit->nparents; i++)
            cli_printf(cli, " %s", cli_short_id(cli, &commit->parents[i]));
        cli_puts(cli, "\n");
    }
    if (commit->flags & BRC_PAST_EXPIRED)
        cli_printf(cli, "%sPast:   commits before this one have expired\n", prefix);
    cli_printf(cli, "%sAuthor: %s\n", prefix, cli_escaped(cli, commit->author));
    cli_printf(cli, "%sDate:   %s\n", prefix, cli_format_time(time, commit->time_us));
    if (commit->meta_json && strcmp(commit->meta_json, "{}") != 0 && commit->meta_json[0])
        cli_printf(cli, "%sMeta:   %s\n", prefix, cli_escaped(cli, commit->meta_json));
    if (path)
        cli_printf(cli, "%sPath:   %s\n", prefix, cli_escaped(cli, path));
    put_message_line(cli, prefix, "");
    while (*line) {
        size_t len = strcspn(line, "\n");

        put_message_line(cli, prefix, line);
        line += len + (line[len] == '\n');
    }
}

const char *cli_default_author(struct cli *cli)
{
    const char *author = getenv("BRECCIA_AUTHOR"), *user;
    const struct passwd *entry;
    char host[256] = "localhost";

    if (author && author[0])
        return author;
    entry = getpwuid(geteuid());
    user = entry ? entry->pw_name : getenv("USER");
    user = user && user[0] ? user : "unknown";
    if (gethostname(host, sizeof(host)) == 0)
        host[sizeof(host) - 1] = '\0';
    return cli_text(cli, "%s <%s@%s>", user, user, host);
}
