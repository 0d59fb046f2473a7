/*
 * picked.c - results of cherry-pick, revert and rebase; conflicts of these and of merge.
 */
#include "picked.h"

#include <inttypes.h>
#include <string.h>

#include "../cli.h"
#include "history.h"

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
