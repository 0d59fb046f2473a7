/*
 * commands.h - the table of commands.
 *
 * Each command is one constant structure beside the function that runs it; the
 * table in commands.c lists them in the order of the help page.
 */
#ifndef BRECCIA_CLI_COMMANDS_H
#define BRECCIA_CLI_COMMANDS_H

#include "options.h"

enum { /* cli_command.flags */
    CLI_POOL = 1,    /* its work is spread over --threads workers             */
    CLI_NO_FILE = 2, /* the first operand is not a repository                 */
    CLI_PATH = 4     /* the second operand is the node that it works on       */
};

struct cli_command {
    const char *name;
    const char *group;   /* the heading under which the help lists it         */
    const char *summary; /* one line                                          */
    const char *usage;   /* behind "breccia NAME ", one form a line           */
    const char *details; /* paragraphs for `help NAME`, or NULL               */
    const char *examples; /* commands, one a line, or NULL                    */
    const struct cli_option *options;
    size_t min_operands, max_operands; /* FILE included                       */
    int flags;
    /* Returns 0, an exit status, or a BRC_E* code with cli->err filled in. */
    int (*run)(struct cli *cli);
};

extern const struct cli_command cli_command_init, cli_command_create, cli_command_group;
extern const struct cli_command cli_command_import, cli_command_export;
extern const struct cli_command cli_command_write, cli_command_append, cli_command_resize;
extern const struct cli_command cli_command_rm, cli_command_mv, cli_command_cp;
extern const struct cli_command cli_command_attrs, cli_command_codecs;
extern const struct cli_command cli_command_ls, cli_command_info, cli_command_read;
extern const struct cli_command cli_command_status, cli_command_commit, cli_command_log;
extern const struct cli_command cli_command_show, cli_command_diff;
extern const struct cli_command cli_command_branch, cli_command_tag, cli_command_switch;
extern const struct cli_command cli_command_restore, cli_command_reset;
extern const struct cli_command cli_command_fsck, cli_command_help;

/* All commands, ended by NULL. */
extern const struct cli_command *const cli_commands[];

/* The command of that name, or NULL. */
const struct cli_command *cli_command_find(const char *name);
/* Fills the error with what is like an unknown command's name. */
int cli_command_unknown(struct cli *cli, const char *name);
/* Prints the page of one command. */
void cli_help_command(struct cli *cli, const struct cli_command *command);
/* Prints the list of all. */
void cli_help_all(struct cli *cli);

#endif
