/*
 * options.c - the command line against the tables.
 */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

const struct cli_option cli_global_options[] = {
    { "json", 0, 0, NULL, "print one JSON document on standard output" },
    { "quiet", 'q', 0, NULL, "say nothing about what was done" },
    { "verbose", 'v', 0, NULL, "say more, also in errors" },
    { "no-progress", 0, 0, NULL, "no progress line" },
    { "color", 0, 1, "auto|always|never", "colours in text; auto: on a terminal" },
    { "threads", 0, 1, "N", "worker threads; all cores where not given" },
    { "plugin", 0, 1, "FILE", "load codecs and data types from this shared object; repeatable" },
    { "wait", 0, 1, "SECONDS", "how long to wait for a file that is in use (30)" },
    { "max-nodes", 0, 1, "N", "how many groups and arrays to visit at most (10000000)" },
    { "no-recover", 0, 0, NULL, "look at FILE as it stands; a left journal stays as it is" },
    { "help", 'h', 0, NULL, "show this page" },
    CLI_OPTIONS_END
};

static const struct cli_option *option_in(const struct cli_option *table, const char *name,
                                          size_t len)
{
    for (; table && table->name; table++)
        if (strlen(table->name) == len && memcmp(table->name, name, len) == 0)
            return table;
    return NULL;
}

static const struct cli_option *option_by_letter(const struct cli_option *table, char letter)
{
    for (; table && table->name; table++)
        if (table->letter == letter)
            return table;
    return NULL;
}

static int is_operand(const char *arg)
{
    char second = arg[0] == '-' ? arg[1] : '\0';

    return arg[0] != '-' || second == '\0' || second == '.' || (second >= '0' && second <= '9');
}

static int unknown_option(struct cli *cli, const struct cli_option *options, const char *arg)
{
    const char *names[64];
    char similar[160];
    size_t n = 0;
    const struct cli_option *tables[2] = { options, cli_global_options };

    for (size_t t = 0; t < 2; t++)
        for (const struct cli_option *o = tables[t]; o && o->name; o++)
            if (n < sizeof(names) / sizeof(names[0]))
                names[n++] = o->name;
    cli_similar(similar, sizeof(similar), arg + strspn(arg, "-"), names, n);
    if (arg[1] == '-' && similar[0])
        return cli_usage(cli, "unknown option %s: is it --%s?", arg, similar);
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

/* Takes the values of `option` from argv behind *at; `first` is one that stood
 * in the same argument. */
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

static int parse_long_option(struct cli *cli, const struct cli_option *options, int argc,
                             char **argv, int *at)
{
    const char *arg = argv[*at] + 2;
    const char *equals = strchr(arg, '=');
    size_t len = equals ? (size_t)(equals - arg) : strlen(arg);
    const struct cli_option *option = option_in(options, arg, len);

    if (!option)
        option = option_in(cli_global_options, arg, len);
    if (!option)
        return unknown_option(cli, options, cli_text(cli, "--%.*s", (int)len, arg));
    if (equals && option->nvalues == 0)
        return cli_usage(cli, "option --%s takes no value", option->name);
    if (equals && option->nvalues > 1)
        return cli_usage(cli, "option --%s needs %s behind it", option->name, option->value);
    return take_values(cli, option, equals ? equals + 1 : NULL, argc, argv, at);
}

/* "-r", "-rl", "-n5", "-n 5". */
static int parse_short_options(struct cli *cli, const struct cli_option *options, int argc,
                               char **argv, int *at)
{
    const char *arg = argv[*at];

    for (const char *p = arg + 1; *p; p++) {
        const struct cli_option *option = option_by_letter(options, *p);

        if (!option)
            option = option_by_letter(cli_global_options, *p);
        if (!option)
            return unknown_option(cli, options, p == arg + 1 && !p[1] ? arg
                                                                      : cli_text(cli, "-%c", *p));
        if (option->nvalues)
            return take_values(cli, option, p[1] ? p + 1 : NULL, argc, argv, at);
        add_given(cli, option, NULL, NULL);
    }
    return BRC_OK;
}

static void reserve_args(struct cli *cli, int argc, char **argv)
{
    struct cli_args *args = &cli->args;
    size_t more = 1;

    for (int i = 0; i < argc; i++) /* "-rl" is two options */
        more += strlen(argv[i]) + 1;
    args->given = cli_regrow(args->given, args->ngiven + more, sizeof(*args->given));
    args->operands =
        cli_regrow(args->operands, args->noperands + (size_t)argc + 1, sizeof(*args->operands));
}

static int read_globals(struct cli *cli)
{
    const char *color = "auto";
    uint64_t threads = 0;
    const char *wait = cli_value(cli, "wait");

    cli->json = cli_has(cli, "json");
    cli->quiet = cli_has(cli, "quiet");
    cli->verbose = cli_has(cli, "verbose");
    cli->no_progress = cli_has(cli, "no-progress");
    cli->help = cli_has(cli, "help");
    CLI_TRY(cli_choice_option(cli, "color", "auto|always|never", &color));
    CLI_TRY(cli_uint_option(cli, "threads", 0, 1024, &threads));
    cli->threads = (unsigned)threads;
    CLI_TRY(cli_uint_option(cli, "max-nodes", 1, UINT64_MAX, &cli->max_nodes));
    if (strcmp(color, "auto") != 0)
        cli->out.color = strcmp(color, "always") == 0;
    if (wait) {
        char *end = NULL;
        double seconds = strtod(wait, &end);

        if (!strchr("0123456789.", wait[0]) || *end || !(seconds >= 0 && seconds <= 1e6))
            return cli_usage(cli, "option --wait: '%s' is not a number of seconds",
                             cli_escaped(cli, wait));
        cli->wait_ms = seconds > 0 ? (int)(seconds * 1000) + (seconds < 0.001) : -1;
    }
    return BRC_OK;
}

int cli_args_parse(struct cli *cli, const struct cli_option *options, int argc, char **argv)
{
    struct cli_args *args = &cli->args;
    int dashes = 0;

    reserve_args(cli, argc, argv);
    for (int i = 0; i < argc; i++) {
        const char *arg = argv[i];

        if (dashes || is_operand(arg)) {
            args->operands[args->noperands++] = arg;
        } else if (strcmp(arg, "--") == 0) {
            dashes = 1;
            args->before_dashes = args->noperands;
        } else if (arg[1] == '-') {
            CLI_TRY(parse_long_option(cli, options, argc, argv, &i));
        } else {
            CLI_TRY(parse_short_options(cli, options, argc, argv, &i));
        }
    }
    if (!dashes)
        args->before_dashes = args->noperands;
    return read_globals(cli);
}

int cli_args_leading(struct cli *cli, int argc, char **argv, int *used)
{
    int i = 0;

    reserve_args(cli, argc, argv);
    for (; i < argc && !is_operand(argv[i]) && strcmp(argv[i], "--version") != 0; i++) {
        if (argv[i][1] == '-')
            CLI_TRY(parse_long_option(cli, NULL, argc, argv, &i));
        else
            CLI_TRY(parse_short_options(cli, NULL, argc, argv, &i));
    }
    *used = i;
    return read_globals(cli);
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

/* Levenshtein's distance of two short words; 99 for long ones. */
static unsigned word_distance(const char *a, const char *b)
{
    unsigned row[33];
    size_t n = strlen(a), m = strlen(b);

    if (n > 32 || m > 32)
        return 99;
    for (size_t j = 0; j <= m; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= n; i++) {
        unsigned diagonal = row[0];

        row[0] = (unsigned)i;
        for (size_t j = 1; j <= m; j++) {
            unsigned best = diagonal + (a[i - 1] != b[j - 1]);

            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[m];
}

void cli_similar(char *out, size_t cap, const char *word, const char *const *names, size_t n)
{
    const char *found[4];
    size_t nfound = 0, len = 0, letters = strlen(word);

    for (size_t i = 0; i < n && nfound < 4; i++) {
        size_t common = 0;

        while (word[common] && word[common] == names[i][common])
            common++;
        if ((letters > 0 && common == letters) || (common >= 3 && common + 2 >= letters) ||
            word_distance(word, names[i]) <= (letters > 3 ? 2u : 1u))
            found[nfound++] = names[i];
    }
    out[0] = '\0';
    for (size_t i = 0; i < nfound; i++) {
        const char *join = i == 0 ? "" : i + 1 == nfound ? " or " : ", ";
        size_t need = strlen(join) + strlen(found[i]);

        if (len + need + 1 > cap)
            break;
        memcpy(out + len, join, strlen(join));
        memcpy(out + len + strlen(join), found[i], strlen(found[i]) + 1);
        len += need;
    }
}
