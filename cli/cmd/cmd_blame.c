/*
 * cmd_blame.c - blame: the commit that each chunk, or element, comes from.
 */
#include "../cli.h"
#include "commands.h"
#include "history.h"

static const struct cli_option blame_options[] = {
    { "elements", 0, 0, NULL, "list elements instead of chunks" },
    { "at", 0, 1, "REV", "blame this version instead of HEAD" },
    CLI_OPTIONS_END
};

/* Returns "[3, 4:9]", where the last axis has `count` elements that are `step` apart. */
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

static int put_blamed(struct cli *cli, struct cli_list *list, const brc_blamed *b, uint64_t step)
{
    const int elements = cli_has(cli, "elements"), before = (b->flags & BRC_BLAME_BEFORE) != 0;
    const char *place = cli->json ? NULL : blamed_place(cli, b, step);

    return cli_list_put(
        cli, list,
        CLI_FIELDS({ elements ? "element" : "chunk",
                     CLI_DIMS_OF(b->first, b->ndim) },
                   { elements ? "count" : NULL, CLI_OF(b->count) },
                   { NULL, CLI_OF(before), .lead = "before ", .color = CLI_YELLOW },
                   { "commit", CLI_OF(b->commit), .lead = "", .color = CLI_YELLOW },
                   { "time", CLI_OF(b->time_us), CLI_AS_TIME, .lead = "  " },
                   { NULL, CLI_OF(place), .lead = "  " },
                   { "author", CLI_OF(b->author), .lead = before ? NULL : "  ",
                     .narrow = CLI_CUT_END },
                   { "before", CLI_OF(before), .optional = 1, .lead = "  (expired)" }));
}

static int put_all_blamed(struct cli *cli, uint64_t step)
{
    struct cli_list list;
    const brc_blamed *b;
    int rc;

    cli_list_begin(cli, &list, NULL, CLI_ON_LINE);
    while ((rc = brc_next(cli->iter, &b, &cli->err)) > 0)
        CLI_TRY(put_blamed(cli, &list, b, step));
    return cli_list_end(cli, &list, rc);
}

static int run_blame(struct cli *cli)
{
    const char *path = cli_path(cli, cli_operand(cli, 1)), *at = cli_value(cli, "at");
    const char *slice = cli_operand(cli, 2);
    brc_sel sel = BRC_SEL_INIT;

    CLI_TRY(cli_open(cli, BRC_OPEN_READONLY));
    CLI_TRY(brc_session_open(&cli->session, cli->repo, at, BRC_SESSION_AT, &cli->err));
    CLI_TRY(cli_open_sliced(cli, &path, &slice));
    CLI_TRY(cli_select(cli, slice, &sel));
    CLI_TRY(brc_blame(&cli->iter, cli->array, &sel,
                      cli_has(cli, "elements") ? BRC_BLAME_ELEMENTS : 0, &cli->err));
    return put_all_blamed(cli, sel.ndim > 0 ? sel.step[sel.ndim - 1] : 1);
}

const struct cli_command cli_command_blame = {
    .name = "blame",
    .group = "Versions",
    .summary = "show which commit last changed each chunk",
    .usage = "FILE PATH [SLICE] [--elements] [--at REV]",
    .details = "Lists the stored chunks in row-major order, or with --elements runs of elements\n"
               "along the last axis. Uncommitted changes do not count. The command follows an\n"
               "array that was moved, and names the commit of the side from which a merge took\n"
               "an element.",
    .examples = "breccia blame climate.brc /t2m\n"
                "breccia blame climate.brc /t2m '[0:31, 5]' --elements --at v1.0",
    .options = blame_options,
    .min_operands = 2,
    .max_operands = 3,
    .flags = CLI_POOL | CLI_PATH | CLI_PAGED,
    .run = run_blame,
};
