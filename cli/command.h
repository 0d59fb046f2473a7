/*
 * command.h - what a command is: data, and the function that runs it.
 */
#ifndef BRECCIA_CLI_COMMAND_H
#define BRECCIA_CLI_COMMAND_H

#include "options.h"

enum { /* cli_command.flags */
    CLI_POOL = 1,    /* it works on --threads threads                        */
    CLI_NO_FILE = 2, /* the first operand is not a repository                 */
    CLI_PATH = 4     /* the second operand is the node that it works on       */
};

struct cli_command {
    const char *name;
    const char *group;   /* its heading in the help                           */
    const char *summary; /* one line                                          */
    const char *usage;   /* after "breccia NAME ", one form per line          */
    const char *details; /* paragraphs for `help NAME`, or NULL               */
    const char *examples; /* commands, one per line, or NULL                  */
    const struct cli_option *options;
    size_t min_operands, max_operands; /* FILE included                       */
    int flags;
    /* Returns 0, an exit status, or a BRC_E* code with cli->err filled in. */
    int (*run)(struct cli *cli);
};

/* The command of that name in cli->commands, or NULL. */
const struct cli_command *cli_command_find(const struct cli *cli, const char *name);
/* The error for an unknown name, with those that resemble it. */
int cli_command_unknown(struct cli *cli, const char *name);

#endif
