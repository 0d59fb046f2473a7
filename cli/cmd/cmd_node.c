/*
 * cmd_node.c - rm, mv, cp, attrs: nodes and their attributes.
 */
#include "../cli.h"
#include "commands.h"

#include <string.h>

/* ---- rm, mv, cp ------------------------------------------------------------------ */

static int run_rm(struct cli *cli)
{
    const char *path = cli_path(cli, cli_operand(cli, 1));

    CLI_TRY(cli_open_edit(cli));
    CLI_TRY(brc_node_remove(cli->session, path, &cli->err));
    cli_answer(cli, CLI_FIELDS({ "path", CLI_OF(path) }), "removed %s",
               cli_escaped(cli, path));
    return BRC_OK;
}

const struct cli_command cli_command_rm = {
    .name = "rm",
    .group = "Making and filling",
    .summary = "remove a node and all nodes under it",
    .usage = "FILE PATH",
    .details = "Committed versions keep the node.",
    .examples = "breccia rm climate.brc /scratch\nbreccia rm climate.brc /era5/debug",
    .min_operands = 2,
    .max_operands = 2,
    .flags = CLI_PATH,
    .run = run_rm,
};

static void print_from_to(struct cli *cli, const char *done, const char *from, const char *to)
{
    cli_answer(cli, CLI_FIELDS({ "from", CLI_OF(from) }, { "to", CLI_OF(to) }),
               "%s %s to %s", done, cli_escaped(cli, from), cli_escaped(cli, to));
}

static int run_mv(struct cli *cli)
{
    const char *from = cli_path(cli, cli_operand(cli, 1));
    const char *to = cli_path(cli, cli_operand(cli, 2));

    CLI_TRY(cli_open_edit(cli));
    CLI_TRY(brc_node_move(cli->session, from, to, 0, &cli->err));
    print_from_to(cli, "moved", from, to);
    return BRC_OK;
}

const struct cli_command cli_command_mv = {
    .name = "mv",
    .group = "Making and filling",
    .summary = "move or rename a node and all nodes under it",
    .usage = "FILE FROM TO",
    .details = "No chunk is copied.",
    .examples = "breccia mv climate.brc /t2m /surface/temperature\n"
                "breccia mv climate.brc /era5 /archive/era5",
    .min_operands = 3,
    .max_operands = 3,
    .run = run_mv,
};

static int run_cp(struct cli *cli)
{
    const char *from = cli_path(cli, cli_operand(cli, 1));
    const char *to = cli_path(cli, cli_operand(cli, 2));

    CLI_TRY(cli_open_edit(cli));
    CLI_TRY(brc_node_move(cli->session, from, to, BRC_NODE_COPY, &cli->err));
    print_from_to(cli, "copied", from, to);
    return BRC_OK;
}

const struct cli_command cli_command_cp = {
    .name = "cp",
    .group = "Making and filling",
    .summary = "copy a node and all nodes under it",
    .usage = "FILE FROM TO",
    .details = "No chunk is copied: both nodes share the stored chunks.",
    .examples = "breccia cp climate.brc /t2m /t2m_corrected\n"
                "breccia cp climate.brc /era5 /trial",
    .min_operands = 3,
    .max_operands = 3,
    .run = run_cp,
};

/* ---- attrs ----------------------------------------------------------------------- */

static const struct cli_option attrs_options[] = {
    { "unset", 0, 1, "KEY", "remove this attribute; repeatable" },
    { "at", 0, 1, "REV", "when reading: read this version instead of the current branch" },
    CLI_OPTIONS_END
};

struct attr_setting {
    const char *key, *json;
};

static int print_attrs(struct cli *cli, const char *path, const char *key)
{
    brc_buf json = BRC_BUF_INIT;
    int rc;

    CLI_TRY(cli_open_view(cli));
    rc = brc_attrs_get(&json, cli->session, path, key, &cli->err);
    if (rc >= 0)
        cli_json_document(cli, (const char *)json.data, json.len);
    brc_buf_dispose(&json);
    return rc;
}

static int apply_settings(struct cli *cli, const char *path, const struct attr_setting *settings,
                          size_t n)
{
    const char *key;

    for (size_t i = 0; i < n; i++)
        CLI_TRY(brc_attrs_set(cli->session, path, settings[i].key, settings[i].json, &cli->err));
    for (size_t i = 0; (key = cli_nth_value(cli, "unset", i)) != NULL; i++)
        CLI_TRY(brc_attrs_set(cli->session, path, key, NULL, &cli->err));
    return BRC_OK;
}

static void report_attrs(struct cli *cli, const char *path, const struct attr_setting *settings,
                         size_t n)
{
    const char **set = cli_alloc(cli, n, sizeof(*set));
    const char **unset = cli_alloc(cli, cli->args.ngiven, sizeof(*unset));
    struct cli_texts were_set = { set, n }, were_unset = { unset, 0 };

    for (size_t i = 0; i < n; i++)
        set[i] = settings[i].key;
    for (const char *key; (key = cli_nth_value(cli, "unset", were_unset.n)) != NULL;)
        unset[were_unset.n++] = key;
    cli_answer(cli,
               CLI_FIELDS({ "path", CLI_OF(path) }, { "set", CLI_OF(were_set) },
                          { "unset", CLI_OF(were_unset) }),
               "changed attributes of %s", cli_escaped(cli, path));
}

static int run_attrs(struct cli *cli)
{
    const char *path = cli_path(cli, cli_operand(cli, 1));
    size_t n = cli->args.noperands - 2;
    struct attr_setting *settings = cli_alloc(cli, n + 1, sizeof(*settings));

    if (!cli_has(cli, "unset") && (n == 0 || (n == 1 && !strchr(cli_operand(cli, 2), '='))))
        return print_attrs(cli, path, cli_operand(cli, 2));
    if (cli_has(cli, "at"))
        return cli_usage(cli, "--at is only for reading: a committed version cannot be changed");
    for (size_t i = 0; i < n; i++)
        CLI_TRY(cli_key_json(cli, "attribute ", cli_operand(cli, i + 2), BRC_JSON_NAN,
                             &settings[i].key, &settings[i].json));
    CLI_TRY(cli_open_edit(cli));
    CLI_TRY(brc_begin(cli->repo, &cli->err));
    CLI_TRY(cli_end(cli, apply_settings(cli, path, settings, n)));
    report_attrs(cli, path, settings, n);
    return BRC_OK;
}

const struct cli_command cli_command_attrs = {
    .name = "attrs",
    .group = "Making and filling",
    .summary = "read or change attributes",
    .usage = "FILE PATH [--at REV]\n"
             "FILE PATH KEY [--at REV]\n"
             "FILE PATH KEY=JSON ... [--unset KEY ...]",
    .details = "Attributes are printed as JSON. Numbers that JSON does not have are NaN,\n"
               "Infinity and -Infinity, and can be set too. A call makes all of its changes or\n"
               "none.",
    .examples = "breccia attrs climate.brc /t2m\n"
                "breccia attrs climate.brc /t2m units='\"K\"' valid_range='[180, 340]'\n"
                "breccia attrs climate.brc /t2m --unset comment",
    .options = attrs_options,
    .min_operands = 2,
    .max_operands = 256,
    .flags = CLI_PATH,
    .run = run_attrs,
};
