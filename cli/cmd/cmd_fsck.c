/*
 * cmd_fsck.c - fsck.
 */
#include "../cli.h"
#include "commands.h"

#include <stdlib.h>

enum { DAMAGE_FOUND = 4 };

static const struct cli_option fsck_options[] = {
    { "no-decode", 0, 0, NULL, "do not decode chunks, only check their stored bytes" },
    CLI_OPTIONS_END
};

struct finding {
    const char *id, *kind, *message;
    const char **used_by;
    size_t nused_by;
    int missing;
};

struct findings {
    struct cli *cli;
    struct finding *list;
    size_t n, cap;
};

static int keep_finding(void *ctx, const brc_damage *damage)
{
    struct findings *found = ctx;
    struct cli *cli = found->cli;
    struct finding *finding;

    found->list = cli_grow(found->list, found->n, &found->cap, sizeof(*found->list));
    finding = &found->list[found->n++];
    finding->id = cli_long_id(cli, &damage->id);
    finding->kind = cli_text(cli, "%s", damage->kind);
    finding->message = cli_text(cli, "%s", damage->message ? damage->message : "");
    finding->missing = (damage->flags & BRC_DAMAGE_MISSING) != 0;
    finding->nused_by = damage->nused_by;
    finding->used_by = cli_alloc(cli, damage->nused_by + 1, sizeof(*finding->used_by));
    for (size_t i = 0; i < damage->nused_by; i++)
        finding->used_by[i] = cli_text(cli, "%s", damage->used_by[i]);
    return cli_signal() ? 1 : 0;
}

static void put_findings_json(struct cli *cli, const char *key, const struct findings *found,
                              int missing)
{
    cli_json_key(cli, key);
    cli_json_open(cli, '[');
    for (size_t i = 0; i < found->n; i++) {
        const struct finding *finding = &found->list[i];

        if (!finding->missing != !missing)
            continue;
        cli_json_open(cli, '{');
        cli_json_member(cli, "id", finding->id);
        cli_json_member(cli, "kind", finding->kind);
        cli_json_key(cli, "used_by");
        cli_json_open(cli, '[');
        for (size_t k = 0; k < finding->nused_by; k++)
            cli_json_string(cli, finding->used_by[k]);
        cli_json_close(cli, '[');
        cli_json_member(cli, "message", finding->message);
        cli_json_close(cli, '{');
    }
    cli_json_close(cli, '[');
}

static void put_findings_text(struct cli *cli, const struct findings *found)
{
    for (size_t i = 0; i < found->n; i++) {
        const struct finding *finding = &found->list[i];

        cli_color(cli, CLI_RED);
        cli_puts(cli, finding->missing ? "missing" : "damaged");
        cli_color_end(cli);
        cli_printf(cli, " %s %.8s: %s\n", finding->kind, finding->id,
                   cli_escaped(cli, finding->message));
        for (size_t k = 0; k < finding->nused_by; k++)
            cli_printf(cli, "    used by %s\n", cli_escaped(cli, finding->used_by[k]));
    }
}

static void put_fsck(struct cli *cli, const struct findings *found, uint64_t checked)
{
    size_t missing = 0;

    for (size_t i = 0; i < found->n; i++)
        missing += found->list[i].missing != 0;
    if (cli->json) {
        cli_json_open(cli, '{');
        cli_json_member_bool(cli, "ok", found->n == 0);
        cli_json_member_uint(cli, "objects_checked", checked);
        put_findings_json(cli, "damaged", found, 0);
        put_findings_json(cli, "missing", found, 1);
        cli_json_close(cli, '{');
        return;
    }
    put_findings_text(cli, found);
    if (found->n == 0)
        cli_say(cli, "%llu objects checked, all is well", (unsigned long long)checked);
    else
        cli_say(cli, "%llu objects checked: %zu damaged, %zu missing", (unsigned long long)checked,
                found->n - missing, missing);
}

static int run_fsck(struct cli *cli)
{
    struct findings found = { cli, NULL, 0, 0 };
    uint64_t checked = 0;
    int rc;

    CLI_TRY(cli_open(cli, BRC_OPEN_READONLY));
    rc = brc_fsck(cli->repo, cli_has(cli, "no-decode") ? BRC_FSCK_NO_DECODE : 0, keep_finding,
                  &found, &checked, &cli->err);
    if (rc >= 0) {
        put_fsck(cli, &found, checked);
        rc = found.n > 0 ? DAMAGE_FOUND : 0;
    }
    free(found.list);
    return rc;
}

const struct cli_command cli_command_fsck = {
    .name = "fsck",
    .group = "Keeping",
    .summary = "check everything that is stored",
    .usage = "FILE [--no-decode]",
    .details = "Hashes every object again, decodes every chunk and follows every commit to\n"
               "its chunks. The exit status is 4 if something is damaged or missing.",
    .examples = "breccia fsck climate.brc\nbreccia fsck climate.brc --json",
    .options = fsck_options,
    .min_operands = 1,
    .max_operands = 1,
    .flags = CLI_POOL,
    .run = run_fsck,
};
