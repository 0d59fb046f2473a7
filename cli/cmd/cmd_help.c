/*
 * cmd_help.c - help.
 */
#include "../cli.h"
#include "../help.h"
#include "../topics.h"
#include "commands.h"

#include <string.h>

static const struct cli_option help_options[] = {
    { "man", 0, 0, NULL, "print the manual page, for man(1)" },
    CLI_OPTIONS_END
};

static const struct cli_topic *topic_named(const char *name)
{
    for (const struct cli_topic *t = cli_topics(); t->name; t++)
        if (strcmp(t->name, name) == 0)
            return t;
    return NULL;
}

/* Topics are few and each is a plural: 'slice' and 'slics' mean 'slices'. */
static int page_unknown(struct cli *cli, const char *name)
{
    const char *names[8];
    char similar[80];
    size_t n = 0;

    for (const struct cli_topic *t = cli_topics(); t->name && n < 8; t++)
        names[n++] = t->name;
    cli_similar(similar, sizeof(similar), name, "", names, n);
    if (similar[0])
        return cli_usage(cli, "there is no page '%s'; did you mean %s?", name, similar);
    return cli_command_unknown(cli, name);
}

static int run_help(struct cli *cli)
{
    const char *name = cli_operand(cli, 0);
    const struct cli_command *command = name ? cli_command_find(cli, name) : NULL;
    const struct cli_topic *topic = name ? topic_named(name) : NULL;

    cli->out.hold = 0; /* a page is text even with --json */
    if (name && !command && !topic)
        return page_unknown(cli, name);
    if (topic && !command && cli_has(cli, "man"))
        return cli_command_unknown(cli, name);
    if (cli_has(cli, "man"))
        cli_help_man(cli, command);
    else if (command)
        cli_help_command(cli, command);
    else if (!topic)
        cli_help_all(cli);
    if (topic && !cli_has(cli, "man"))
        cli_printf(cli, "%sbreccia help %s: %s\n\n%s", command ? "\n" : "", topic->name,
                   topic->summary, topic->text);
    return 0;
}

const struct cli_command cli_command_help = {
    .name = "help",
    .group = "About",
    .summary = "this overview, or the page of a command or topic",
    .usage = "[COMMAND|TOPIC] [--man]",
    .examples = "breccia help merge\nbreccia help slices",
    .options = help_options,
    .min_operands = 0,
    .max_operands = 1,
    .flags = CLI_NO_FILE | CLI_PAGED,
    .run = run_help,
};
