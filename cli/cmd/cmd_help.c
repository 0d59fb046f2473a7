/*
 * cmd_help.c - help.
 */
#include "../cli.h"
#include "../help.h"
#include "commands.h"

static int run_help(struct cli *cli)
{
    const char *name = cli_operand(cli, 0);
    const struct cli_command *command;

    cli->out.hold = 0; /* a page is text even with --json */
    if (!name) {
        cli_help_all(cli);
        return 0;
    }
    command = cli_command_find(cli, name);
    if (!command)
        return cli_command_unknown(cli, name);
    cli_help_command(cli, command);
    return 0;
}

const struct cli_command cli_command_help = {
    .name = "help",
    .group = "About",
    .summary = "this overview, or the page of one command",
    .usage = "[COMMAND]",
    .min_operands = 0,
    .max_operands = 1,
    .flags = CLI_NO_FILE,
    .run = run_help,
};
