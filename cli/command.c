/*
 * command.c - finds a command by its name.
 */
#include "cli.h"
#include "similar.h"

#include <string.h>

const struct cli_command *cli_command_find(const struct cli *cli, const char *name)
{
    for (const struct cli_command *const *c = cli->commands; *c; c++)
        if (strcmp((*c)->name, name) == 0)
            return *c;
    return NULL;
}

int cli_command_unknown(struct cli *cli, const char *name)
{
    const char *names[64];
    char similar[160];
    size_t n = 0;

    for (const struct cli_command *const *c = cli->commands; *c && n < 64; c++)
        names[n++] = (*c)->name;
    cli_similar(similar, sizeof(similar), name, "", names, n);
    if (similar[0])
        return cli_usage(cli, "unknown command '%s'; did you mean %s?", name, similar);
    return cli_usage(cli, "unknown command '%s'", name);
}
