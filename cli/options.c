/*
 * options.c - options, operands and the names of commands.
 */
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* ==== names that a mistyped word may have meant ========== */

/* Returns the Levenshtein distance of two short words, counting two swapped letters as one mistake;
 * 99 if a word is long. */
static unsigned word_distance(const char *a, const char *b)
{
    unsigned rows[3][33]; /* the current row and the two rows above */
    size_t n = strlen(a), m = strlen(b);

    if (n > 32 || m > 32)
        return 99;
    for (size_t j = 0; j <= m; j++)
        rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= n; i++) {
        unsigned *row = rows[i % 3], *above = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];

        row[0] = (unsigned)i;
        for (size_t j = 1; j <= m; j++) {
            row[j] = above[j - 1] + (a[i - 1] != b[j - 1]);
            if (above[j] + 1 < row[j])
                row[j] = above[j] + 1;
            if (row[j - 1] + 1 < row[j])
                row[j] = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < row[j])
                row[j] = before[j - 2] + 1;
        }
    }
    return rows[n % 3][m];
}

static int resembles(const char *word, size_t letters, const char *name)
{
    size_t common = 0;

    while (word[common] && word[common] == name[common])
        common++;
    return (letters > 0 && common == letters) || (common >= 3 && common + 2 >= letters) ||
           word_distance(word, name) <= (letters > 5 ? 2u : letters > 2 ? 1u : 0u);
}

void cli_similar(char *out, size_t cap, const char *word, const char *prefix,
                 const char *const *names, size_t n)
{
    const char *found[4];
    size_t nfound = 0, len = 0, letters = strlen(word);

    for (size_t i = 0; i < n && nfound < 4; i++) /* one mistake is likelier than several */
        if (letters > 2 && word_distance(word, names[i]) == 1)
            found[nfound++] = names[i];
    const int one_off = nfound > 0;
    for (size_t i = 0; i < n && nfound < 4 && !one_off; i++)
        if (resembles(word, letters, names[i]))
            found[nfound++] = names[i];
    out[0] = '\0';
    for (size_t i = 0; i < nfound && len < cap; i++)
        len += (size_t)snprintf(out + len, cap - len, "%s%s%s",
                                i == 0 ? "" : i + 1 == nfound ? " or " : ", ", prefix, found[i]);
}

/* ==== commands by name =================================== */

const struct cli_command *cli_command_find(const struct cli *cli, const char *name)
{
    for (const struct cli_command *const *c = cli->commands; *c; c++)
        if (strcmp((*c)->name, name) == 0)
            return *c;
    return NULL;
}

/* Words of git and of file systems, and what to say here. */
static const struct {
    const char *word, *advice;
} foreign_words[] = {
    { "add", "changes need no staging: 'breccia commit' takes all of them" },
    { "cat", "'breccia read' prints elements, 'breccia info' metadata" },
    { "checkout", "'breccia switch' changes the branch, 'breccia restore' brings back a node" },
    { "clean", "'breccia reset FILE HEAD --hard' drops uncommitted changes" },
    { "clone", "'breccia backup FILE DEST' copies a repository, also while others write" },
    { "copy", "it is 'breccia cp'" },
    { "delete", "it is 'breccia rm' for nodes, 'breccia branch -d' for branches" },
    { "dump", "'breccia read' prints elements, 'breccia export' writes a node as other files" },
    { "fetch", "a repository is one file: 'breccia backup' copies it, also while others write" },
    { "draw", "it is 'breccia read --image', and of a line --plot" },
    { "get", "it is 'breccia read'" },
    { "head", "'breccia log -n 1' shows the newest commit, 'breccia branch' the current branch" },
    { "image", "it is 'breccia read --image', of two versions 'breccia diff --image'" },
    { "list", "it is 'breccia ls'" },
    { "mkdir", "it is 'breccia group'" },
    { "move", "it is 'breccia mv'" },
    { "new", "it is 'breccia init' for a repository, 'breccia create' for an array" },
    { "plot", "it is 'breccia read --plot', and of a picture --image" },
    { "pull", "a repository is one file: 'breccia backup' copies it, also while others write" },
    { "push", "a repository is one file: 'breccia backup' copies it, also while others write" },
    { "put", "it is 'breccia write'" },
    { "reflog", "it is 'breccia oplog'" },
    { "remove", "it is 'breccia rm'" },
    { "rename", "it is 'breccia mv' for nodes, 'breccia branch -m' for branches" },
    { "set", "it is 'breccia write' for elements, 'breccia attrs' for attributes" },
    { "stash", "uncommitted changes stay with their branch: just 'breccia switch'" },
    { "stats", "it is 'breccia info FILE PATH --stats'" },
    { "tree", "it is 'breccia ls -r'" },
    { "verify", "it is 'breccia fsck'" },
    { "view", "'breccia read' prints elements, with --image a picture; 'breccia info' metadata" },
};

int cli_command_unknown(struct cli *cli, const char *name)
{
    const char *names[64];
    char similar[160];
    size_t n = 0;

    for (size_t i = 0; i < sizeof(foreign_words) / sizeof(foreign_words[0]); i++)
        if (strcmp(foreign_words[i].word, name) == 0)
            return cli_usage(cli, "unknown command '%s': %s", name, foreign_words[i].advice);

    for (const struct cli_command *const *c = cli->commands; *c && n < 64; c++)
        names[n++] = (*c)->name;
    cli_similar(similar, sizeof(similar), name, "", names, n);
    if (similar[0])
        return cli_usage(cli, "unknown command '%s'; did you mean %s?", name, similar);
    return cli_usage(cli, "unknown command '%s'", name);
}

/* ==== the command line =================================== */

static const struct cli_option *option_named(const struct cli *cli, const char *name, size_t len)
{
    for (size_t t = 0; t < 2; t++)
        for (const struct cli_option *o = cli->args.tables[t]; o && o->name; o++)
            if (strlen(o->name) == len && memcmp(o->name, name, len) == 0)
                return o;
    return NULL;
}

static const struct cli_option *option_by_letter(const struct cli *cli, char letter)
{
    for (size_t t = 0; t < 2; t++)
        for (const struct cli_option *o = cli->args.tables[t]; o && o->name; o++)
            if (o->letter == letter)
                return o;
    return NULL;
}

static int is_operand(const char *arg)
{
    char second = arg[0] == '-' ? arg[1] : '\0';

    return arg[0] != '-' || second == '\0' || second == '.' || (second >= '0' && second <= '9');
}

/* Options of git and of file systems, by command, and what to say here. */
static const struct {
    const char *command, *option, *advice;
} foreign_options[] = {
    { "config", "--global", "it is --user" },
    { "config", "--list", "'breccia config FILE' and 'breccia config --user' list the settings" },
    { "config", "-l", "'breccia config FILE' and 'breccia config --user' list the settings" },
    { "diff", "--cached", "changes need no staging: 'breccia diff FILE' shows all of them" },
    { "diff", "--staged", "changes need no staging: 'breccia diff FILE' shows all of them" },
    { "diff", "--name-only", "'breccia diff --stat' shows only counts" },
    { "log", "--after", "it is --since" },
    { "log", "--all", "a log starts at one version: name it, as in 'breccia log FILE REV'" },
    { "log", "--before", "it is --until" },
    { "log", "-p", "'breccia log --stat' shows counts, 'breccia log PATH --values' values" },
    { "log", "--patch", "'breccia log --stat' shows counts, 'breccia log PATH --values' values" },
    { "ls", "-R", "it is -r" },
    { "ls", "-a", "all names are listed" },
    { "reset", "--soft", "uncommitted changes stay unless --hard is given" },
    { "reset", "--mixed", "uncommitted changes stay unless --hard is given" },
    { "rm", "-r", "a group goes with everything in it" },
    { "rm", "--recursive", "a group goes with everything in it" },
    { "show", "-p", "--elements shows how many elements differ, and by how much" },
    { "tag", "-a", "a tag keeps its message (-m) without it" },
};

static int unknown_option(struct cli *cli, const char *arg)
{
    const char *names[64];
    char similar[160];
    size_t n = 0;

    for (size_t t = 0; t < 2; t++)
        for (const struct cli_option *o = cli->args.tables[t]; o && o->name; o++)
            if (n < sizeof(names) / sizeof(names[0]))
                names[n++] = o->name;
    for (size_t i = 0; i < sizeof(foreign_options) / sizeof(foreign_options[0]); i++)
        if (cli->command && strcmp(foreign_options[i].command, cli->command->name) == 0 &&
            strcmp(foreign_options[i].option, arg) == 0)
            return cli_usage(cli, "unknown option %s: %s", arg, foreign_options[i].advice);
    cli_similar(similar, sizeof(similar), arg + strspn(arg, "-"), "--", names, n);
    if (strcmp(arg, "-f") == 0 || strcmp(arg, "--file") == 0)
        return cli_usage(cli, "%s FILE stands before the command", arg);
    if (arg[1] == '-' && similar[0])
        return cli_usage(cli, "unknown option %s; did you mean %s?", arg, similar);
    return cli_usage(cli, "unknown option %s", arg);
}

static void add_given(struct cli *cli, const struct cli_option *option, const char *first,
                      const char *second)
{
    struct cli_given *given = &cli->args.given[cli->args.ngiven++];

    given->option = option;
    given->value[0] = first;
    given->value[1] = second;
}

/* Takes the values of `option` from the arguments after *at. `first` is a value from the
 * same argument, or NULL. */
static int take_values(struct cli *cli, const struct cli_option *option, const char *first,
                       int argc, char **argv, int *at)
{
    const char *value[CLI_MAX_OPTION_VALUES] = { first, NULL };
    int have = first != NULL;

    while (have < option->nvalues) {
        if (*at + 1 >= argc)
            return cli_usage(cli, "option --%s needs %s", option->name, option->value);
        value[have++] = argv[++*at];
    }
    add_given(cli, option, value[0], value[1]);
    return BRC_OK;
}

static int parse_long_option(struct cli *cli, int argc, char **argv, int *at)
{
    const char *arg = argv[*at] + 2;
    const char *equals = strchr(arg, '=');
    size_t len = equals ? (size_t)(equals - arg) : strlen(arg);
    const struct cli_option *option = option_named(cli, arg, len);

    if (!option)
        return unknown_option(cli, cli_text(cli, "--%.*s", (int)len, arg));
    if (equals && option->nvalues == 0)
        return cli_usage(cli, "option --%s takes no value", option->name);
    if (equals && option->nvalues > 1)
        return cli_usage(cli, "option --%s takes two values: --%s %s", option->name, option->name,
                         option->value);
    return take_values(cli, option, equals ? equals + 1 : NULL, argc, argv, at);
}

/* Reads "-r", "-rl", "-n5" and "-n 5". */
static int parse_short_options(struct cli *cli, int argc, char **argv, int *at)
{
    const char *arg = argv[*at];

    for (const char *p = arg + 1; *p; p++) {
        const struct cli_option *option = option_by_letter(cli, *p);

        if (!option)
            return unknown_option(cli, p == arg + 1 && !p[1] ? arg : cli_text(cli, "-%c", *p));
        if (option->nvalues)
            return take_values(cli, option, p[1] ? p + 1 : NULL, argc, argv, at);
        add_given(cli, option, NULL, NULL);
    }
    return BRC_OK;
}

/* How many options and operands cli_args_insert() and cli_args_add() may add. */
enum { CLI_INSERTED = 4 };

static void reserve_args(struct cli *cli, int argc, char **argv)
{
    struct cli_args *args = &cli->args;
    size_t more = 1;

    for (int i = 0; i < argc; i++) /* "-rl" is two options */
        more += strlen(argv[i]) + 1;
    args->given =
        cli_regrow(args->given, args->ngiven + more + CLI_INSERTED, sizeof(*args->given));
    args->operands =
        cli_regrow(args->operands, args->noperands + (size_t)argc + 1 + CLI_INSERTED,
                   sizeof(*args->operands));
}

int cli_args_parse(struct cli *cli, const struct cli_option *own, const struct cli_option *global,
                   int argc, char **argv)
{
    struct cli_args *args = &cli->args;
    int dashes = 0;

    args->tables[0] = own;
    args->tables[1] = global;
    reserve_args(cli, argc, argv);
    for (int i = 0; i < argc; i++) {
        const char *arg = argv[i];

        if (dashes || is_operand(arg)) {
            args->operands[args->noperands++] = arg;
        } else if (strcmp(arg, "--") == 0) {
            dashes = 1;
            args->before_dashes = args->noperands;
        } else if (arg[1] == '-') {
            CLI_TRY(parse_long_option(cli, argc, argv, &i));
        } else {
            CLI_TRY(parse_short_options(cli, argc, argv, &i));
        }
    }
    if (!dashes)
        args->before_dashes = args->noperands;
    return BRC_OK;
}

int cli_args_leading(struct cli *cli, const struct cli_option *own,
                     const struct cli_option *global, int argc, char **argv, int *used)
{
    int i = 0;

    cli->args.tables[0] = own;
    cli->args.tables[1] = global;
    reserve_args(cli, argc, argv);
    for (; i < argc && !is_operand(argv[i]); i++) {
        if (argv[i][1] == '-')
            CLI_TRY(parse_long_option(cli, argc, argv, &i));
        else
            CLI_TRY(parse_short_options(cli, argc, argv, &i));
    }
    *used = i;
    return BRC_OK;
}

void cli_args_insert(struct cli *cli, size_t index, const char *operand)
{
    struct cli_args *args = &cli->args;

    memmove(args->operands + index + 1, args->operands + index,
            (args->noperands - index) * sizeof(*args->operands));
    args->operands[index] = operand;
    args->noperands++;
    args->before_dashes++;
}

void cli_args_add(struct cli *cli, const char *name, const char *value)
{
    add_given(cli, option_named(cli, name, strlen(name)), value, NULL);
}

void cli_args_dispose(struct cli_args *args)
{
    free(args->given);
    free(args->operands);
    memset(args, 0, sizeof(*args));
}

static const struct cli_given *last_given(const struct cli *cli, const char *name)
{
    for (size_t i = cli->args.ngiven; i > 0; i--)
        if (strcmp(cli->args.given[i - 1].option->name, name) == 0)
            return &cli->args.given[i - 1];
    return NULL;
}

int cli_has(const struct cli *cli, const char *name)
{
    return last_given(cli, name) != NULL;
}

const char *cli_value(const struct cli *cli, const char *name)
{
    const struct cli_given *given = last_given(cli, name);

    return given ? given->value[0] : NULL;
}

const char *cli_second_value(const struct cli *cli, const char *name)
{
    const struct cli_given *given = last_given(cli, name);

    return given ? given->value[1] : NULL;
}

const char *cli_nth_value(const struct cli *cli, const char *name, size_t index)
{
    for (size_t i = 0; i < cli->args.ngiven; i++)
        if (strcmp(cli->args.given[i].option->name, name) == 0 && index-- == 0)
            return cli->args.given[i].value[0];
    return NULL;
}

const char *cli_operand(const struct cli *cli, size_t index)
{
    return index < cli->args.noperands ? cli->args.operands[index] : NULL;
}
