/*
 * cmd_blame.c - blame: the commit that each chunk, or element, comes from.
 */
#include "../cli.h"
#include "commands.h"
#include "history.h"

static const struct cli_option blame_options[] = {
    { "elements", 0, 0, NULL, "each element instead of each chunk" },
    { "at", 0, 1, "REV", "of this version (HEAD)" },
    CLI_OPTIONS_END
};

/* "[3, 4:9]": the last axis has `count` elements, `step` apart. */
static const char *blamed_place(struct cli *cli, const brc_blamed *b, uint64_t step)
{
    const char *out = "[";

    for (int i = 0; i < b->ndim; i++) {
        const unsigned long long first = b->first[i];

        out = cli_text(cli, "%s%s%llu", out, i ? ", " : "", first);
        if (i < b->ndim - 1 || b->count == 1)
            continue;
        out = cli_text(cli, "%s:%llu", out, first + (b->count - 1) * step + 1);
        if (step > 1)
            out = cli_text(cli, "%s:%llu", out, (unsigned long long)step);
    }
    return cli_text(cli, "%s]", out);
}

static void put_blamed_json(struct cli *cli, const brc_blamed *b)
{
    const int elements = cli_has(cli, "elements");
    char time[CLI_TIME_CAP];

    cli_json_open_line(cli, '{');
    cli_json_member_dims(cli, elements ? "element" : "chunk", b->first, b->ndim);
    if (elements)
        cli_json_member_uint(cli, "count", b->count);
    cli_json_key(cli, "commit");
    cli_json_id(cli, &b->commit);
    cli_json_member(cli, "time", cli_format_time(time, b->time_us));
    cli_json_member(cli, "author", b->author);
    if ((b->flags & BRC_BLAME_BEFORE))
        cli_json_member_bool(cli, "before", 1);
    cli_json_close(cli, '{');
}

static void put_blamed_text(struct cli *cli, const brc_blamed *b, uint64_t step)
{
    char time[CLI_TIME_CAP];

    cli_color(cli, CLI_YELLOW);
    cli_printf(cli, "%s%s", (b->flags & BRC_BLAME_BEFORE) ? "before " : "",
               cli_short_id(cli, &b->commit));
    cli_color_end(cli);
    cli_printf(cli, "  %s  %s  %s\n", cli_format_time(time, b->time_us),
               blamed_place(cli, b, step),
               (b->flags & BRC_BLAME_BEFORE) ? "(expired)" : cli_escaped(cli, b->author));
}

static int put_all_blamed(struct cli *cli, uint64_t step)
{
    const brc_blamed *b;
    int rc;

    while ((rc = brc_blame_next(cli->iter, &b, &cli->err)) > 0) {
        if (cli->json)
            put_blamed_json(cli, b);
        else
            put_blamed_text(cli, b, step);
        CLI_TRY(cli_out_check(cli));
    }
    return rc;
}

static int run_blame(struct cli *cli)
{
    const char *path = cli_path(cli, cli_operand(cli, 1)), *at = cli_value(cli, "at");
    brc_sel sel = BRC_SEL_INIT;
    int rc;

    CLI_TRY(cli_open(cli, BRC_OPEN_READONLY));
    CLI_TRY(brc_session_open(&cli->session, cli->repo, at, BRC_SESSION_AT, &cli->err));
    CLI_TRY(cli_open_array(cli, path));
    CLI_TRY(cli_select(cli, cli_operand(cli, 2), &sel));
    CLI_TRY(brc_blame(&cli->iter, cli->array, &sel,
                      cli_has(cli, "elements") ? BRC_BLAME_ELEMENTS : 0, &cli->err));
    if (cli->json)
        cli_json_open(cli, '[');
    rc = put_all_blamed(cli, sel.ndim > 0 ? sel.step[sel.ndim - 1] : 1);
    if (cli->json)
        cli_json_close(cli, '[');
    return rc;
}

const struct cli_command cli_command_blame = {
    .name = "blame",
    .group = "Versions",
    .summary = "show which commit last changed each chunk",
    .usage = "FILE PATH [SLICE] [--elements] [--at REV]",
    .details = "Lists the chunks that are stored, in row-major order, or with --elements runs of\n"
               "elements along the last axis. What is uncommitted does not count. An array that\n"
               "was moved is followed; what a merge took from one side is that side's.",
    .examples = "breccia blame climate.brc /t2m\n"
                "breccia blame climate.brc /t2m '[0:31, 5]' --elements --at v1.0",
    .options = blame_options,
    .min_operands = 2,
    .max_operands = 3,
    .flags = CLI_POOL | CLI_PATH,
    .run = run_blame,
};
