/*
 * cmd_completion.c - completion: scripts for shells, and the words that these scripts ask for.
 *
 * A script hands over the words that were typed, the last of which is to be completed. The option
 * tables and usage texts, from which the help is made too, and the repository that the words name
 * say what the word may become.
 */
#include "../cli.h"
#include "../help.h"
#include "../topics.h"
#include "commands.h"
#include "history.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORDS_MOST = 4096 };

/* ---- scripts -------------------------------- */

static const char bash_script[] =
    "# bash completion of breccia: source <(breccia completion bash)\n"
    "_breccia() {\n"
    "    local line\n"
    "    COMPREPLY=()\n"
    "    while IFS= read -r line; do\n"
    "        COMPREPLY+=(\"$(printf %q \"${line%%$'\\t'*}\")\")\n"
    "    done < <(\"${COMP_WORDS[0]}\" completion words -- "
    "\"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
    "    case ${COMPREPLY[0]-} in */) compopt -o nospace 2>/dev/null ;; esac\n"
    "}\n"
    "complete -o bashdefault -o default -F _breccia breccia\n";

static const char zsh_script[] =
    "#compdef breccia\n"
    "# zsh completion of breccia: source <(breccia completion zsh), behind compinit\n"
    "_breccia() {\n"
    "    local line\n"
    "    local -a values folders\n"
    "    while IFS= read -r line; do\n"
    "        case ${line%%$'\\t'*} in\n"
    "        */) folders+=(\"${line%%$'\\t'*}\") ;;\n"
    "        *) values+=(\"${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}\") ;;\n"
    "        esac\n"
    "    done < <(\"${words[1]}\" completion words -- \"${(@)words[2,CURRENT]}\" 2>/dev/null)\n"
    "    (( $#folders )) && compadd -S '' -a folders\n"
    "    (( $#values )) && _describe -t values breccia values\n"
    "    (( $#folders + $#values )) || _files\n"
    "}\n"
    "if [ \"${funcstack[1]}\" = _breccia ]; then _breccia \"$@\"; else compdef _breccia breccia; "
    "fi\n";

static const char fish_script[] =
    "# fish completion of breccia: breccia completion fish | source\n"
    "function __breccia_words\n"
    "    set -l given (commandline -opc)\n"
    "    set -l found ($given[1] completion words -- $given[2..-1] (commandline -ct) 2>/dev/null)\n"
    "    if test (count $found) -gt 0\n"
    "        printf '%s\\n' $found\n"
    "    else\n"
    "        __fish_complete_path (commandline -ct)\n"
    "    end\n"
    "end\n"
    "complete -c breccia -f -a '(__breccia_words)'\n";

/* ---- words -------------------------------- */

struct completing {
    const char *word; /* the one to complete: what is there of it */
    const char *file; /* the repository, or NULL                  */
    const struct cli_command *command; /* NULL: the command itself is completed */
    size_t operand; /* which one is completed; FILE is 0        */
    int dashes; /* "--" has ended the options               */
    const struct cli_option *valued; /* the option whose value is completed, or NULL */
};

static void offer(struct cli *cli, const struct completing *at, const char *word,
                  const char *about)
{
    if (strncmp(word, at->word, strlen(at->word)) == 0 && !strpbrk(word, "\n\t"))
        cli_printf(cli, "%s\t%s\n", word, about);
}

static void offer_options(struct cli *cli, const struct completing *at,
                          const struct cli_option *options)
{
    for (; options && options->name; options++)
        offer(cli, at, cli_text(cli, "--%s", options->name), options->help);
}

static void offer_commands(struct cli *cli, const struct completing *at)
{
    for (const struct cli_command *const *c = cli->commands; *c; c++)
        offer(cli, at, (*c)->name, (*c)->summary);
}

/* Offers the words between the bars of "a|b|c". */
static void offer_choices(struct cli *cli, const struct completing *at, const char *choices)
{
    while (*choices) {
        size_t n = strcspn(choices, "|");

        offer(cli, at, cli_text(cli, "%.*s", (int)n, choices), "");
        choices += n + (choices[n] == '|');
    }
}

/* Returns FILE of FILE@REV. */
static const char *file_part(struct cli *cli, const char *name)
{
    const char *file = name;

    for (size_t n = strlen(name); n > 0 && access(file, F_OK) != 0; n--)
        if (name[n] == '@')
            file = cli_text(cli, "%.*s", (int)n, name);
    return file;
}

/* Opens the repository, without waiting for others. Nothing is offered of one that cannot be read.
 * */
static int can_read(struct cli *cli, const struct completing *at)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;

    opts.flags = BRC_OPEN_READONLY;
    opts.wait_ms = -1;
    return at->file && brc_open(&cli->repo, file_part(cli, at->file), &opts, &cli->err) >= 0;
}

static void offer_refs(struct cli *cli, const struct completing *at)
{
    struct cli_refs refs;

    if (!can_read(cli, at) || cli_refs_read(cli, &refs) < 0)
        return;
    for (size_t i = 0; i < refs.n; i++)
        offer(cli, at, refs.refs[i].name, refs.refs[i].is_tag ? "tag" : "branch");
    offer(cli, at, "HEAD", "the current branch");
}

/* Offers the nodes in the group that the word names so far, as the user writes them: with or
 * without a leading "/". */
static void offer_paths(struct cli *cli, const struct completing *at)
{
    const char *slash = strrchr(at->word, '/');
    size_t len = slash ? (size_t)(slash - at->word) + 1 : 0, root = at->word[0] == '/';
    const char *parent =
        cli_text(cli, "/%.*s", len > root + 1 ? (int)(len - root) - 1 : 0, at->word + root);
    const brc_node *node;

    if (!can_read(cli, at) ||
        brc_session_open(&cli->session, cli->repo, NULL, BRC_SESSION_VIEW, &cli->err) < 0 ||
        brc_list(&cli->iter, cli->session, cli_path(cli, parent), 0, &cli->err) < 0)
        return;
    while (brc_next(cli->iter, &node, &cli->err) > 0) {
        const char *name = strrchr(node->path, '/') + 1;

        offer(cli, at,
              cli_text(cli, "%.*s%s%s", (int)len, at->word, name,
                       node->kind == BRC_GROUP ? "/" : ""),
              node->kind == BRC_GROUP ? "group" : "array");
    }
}

/* Returns whether a word of the usage stands for itself, as in "start" or "good|bad". */
static int is_literal(const char *name)
{
    return name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-|")] == '\0';
}

static void offer_settings(struct cli *cli, const struct completing *at)
{
    for (const char *const *key = cli_config_keys(); *key; key++)
        offer(cli, at, *key, "");
}

/* Offers what an argument may be that the usage calls by this name. Nothing is offered of files:
 * shells complete those. */
static void offer_named(struct cli *cli, const struct completing *at, const char *name)
{
    static const char *const refs[] = { "REV", "BRANCH", "NAME", "OLD", "ONTO", "A", "B",
                                         "BAD", "GOOD", "REV|A" };
    static const char *const paths[] = { "PATH", "FROM", "TO", "GROUP" };

    for (size_t i = 0; i < sizeof(refs) / sizeof(refs[0]); i++)
        if (strcmp(name, refs[i]) == 0)
            offer_refs(cli, at);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        if (strcmp(name, paths[i]) == 0)
            offer_paths(cli, at);
    if (strcmp(name, "COMMAND|TOPIC") == 0) {
        offer_commands(cli, at);
        for (const struct cli_topic *t = cli_topics(); t->name; t++)
            offer(cli, at, t->name, t->summary);
    }
    if (strcmp(name, "KEY") == 0 && strcmp(at->command->name, "config") == 0)
        offer_settings(cli, at);
    else if (is_literal(name))
        offer_choices(cli, at, name);
}

/* ---- usage texts -------------------------------- */

/* Returns the next word of a form of the usage without brackets and dots, and moves *form behind
 * it; NULL at the end of the form. Options, and their values, are left out. */
static const char *next_operand(struct cli *cli, const char **form)
{
    const char *at = *form;
    char *word;
    size_t n, skipped = 0;

    for (;;) {
        at += strspn(at, " []");
        n = strcspn(at, " \n");
        if (n == 0 || (n == 2 && memcmp(at, "--", 2) == 0))
            return NULL; /* paths follow "--" */
        if (at[0] != '-' && !skipped)
            break;
        skipped = at[0] == '-' && at[n - 1] != ']' && at[n] == ' ' && at[n + 1] != '[' &&
                  at[n + 1] != '-';
        at += n;
    }
    *form = at + n;
    word = cli_text(cli, "%.*s", (int)strcspn(at, " \n]."), at);
    return word;
}

/* Offers what operand number at->operand may be: all words of the usage that stand for themselves
 * there, and what the first form that has so many operands calls it. */
static void offer_operand(struct cli *cli, const struct completing *at)
{
    int named = 0;

    for (const char *form = at->command->usage; form;) {
        const char *rest = form, *name = NULL, *end = strchr(form, '\n');

        for (size_t i = 0; i <= at->operand && (name = next_operand(cli, &rest)) != NULL;)
            i++;
        if (name && (is_literal(name) || !named)) {
            offer_named(cli, at, name);
            named |= !is_literal(name);
        }
        form = end ? end + 1 : NULL;
    }
}

/* ---- the words that were typed -------------------------------- */

/* Returns the option that takes the next word as its value, or NULL. */
static const struct cli_option *option_of(const struct cli_command *command, const char *word)
{
    const struct cli_option *tables[] = { command->options, cli_global_options };

    if (word[0] != '-' || strchr(word, '='))
        return NULL;
    for (size_t t = 0; t < 2; t++)
        for (const struct cli_option *o = tables[t]; o && o->name; o++)
            if (o->nvalues > 0 && ((word[1] == '-' && strcmp(word + 2, o->name) == 0) ||
                                   (o->letter && word[1] == o->letter && word[2] == '\0')))
                return o;
    return NULL;
}

/* Takes the words behind the command up to the one that is completed. */
static void read_operands(struct completing *at, size_t n, const char *const *words)
{
    at->operand = at->file ? 1 : 0;
    for (size_t i = 0; i < n; i++) {
        const struct cli_option *option = option_of(at->command, words[i]);

        if (option && i + 1 == n)
            at->valued = option;
        if (option)
            i += (size_t)option->nvalues;
        at->dashes |= strcmp(words[i], "--") == 0;
        if (option || (words[i][0] == '-' && words[i][1] != '\0'))
            continue;
        if (at->operand == 0)
            at->file = words[i];
        at->operand++;
    }
}

/* Returns how many words before the command there are, and notes FILE of -f. */
static size_t read_leading(struct completing *at, size_t n, const char *const *words)
{
    size_t i = 0;

    while (i < n && words[i][0] == '-') {
        const int is_file = strcmp(words[i], "-f") == 0 || strcmp(words[i], "--file") == 0;

        if (is_file && i + 1 < n)
            at->file = words[i + 1];
        i += is_file ? 2 : 1;
    }
    return i < n ? i : n;
}

static void complete_words(struct cli *cli, size_t n, const char *const *words)
{
    struct completing at = { .word = words[n - 1], .file = getenv("BRECCIA_FILE") };
    size_t first;

    at.file = at.file && at.file[0] ? at.file : NULL;
    first = read_leading(&at, n - 1, words);
    if (first == n - 1 && n > 1 && (strcmp(words[n - 2], "-f") == 0))
        return; /* a file */
    if (first == n - 1) {
        if (at.word[0] == '-')
            offer_options(cli, &at, cli_leading_options);
        offer_commands(cli, &at);
        return;
    }
    at.command = cli_command_find(cli, words[first]);
    if (!at.command)
        return;
    if (at.command->flags & CLI_NO_FILE)
        at.file = NULL;
    read_operands(&at, n - 1 - first - 1, words + first + 1);
    if (at.valued) {
        offer_named(cli, &at, at.valued->value ? at.valued->value : "");
    } else if (at.dashes) {
        offer_paths(cli, &at);
    } else if (at.word[0] == '-') {
        offer_options(cli, &at, at.command->options);
        offer_options(cli, &at, cli_global_options);
    } else {
        offer_operand(cli, &at);
    }
}

static int run_completion(struct cli *cli)
{
    static const char *const shells[] = { "bash", "zsh", "fish" };
    static const char *const scripts[] = { bash_script, zsh_script, fish_script };
    const char *what = cli_operand(cli, 0);

    cli->out.hold = 0; /* scripts and words are text even with --json */
    if (strcmp(what, "words") == 0 && cli->args.noperands > 1) {
        complete_words(cli, cli->args.noperands - 1, cli->args.operands + 1);
        return 0;
    }
    if (cli->args.noperands > 1)
        return cli_usage(cli, "completion: '%s' is one argument too many", cli_operand(cli, 1));
    for (size_t i = 0; i < 3; i++)
        if (strcmp(what, shells[i]) == 0) {
            cli_puts(cli, scripts[i]);
            return 0;
        }
    return cli_usage(cli, "completion: there is no script for '%s', only for bash, zsh and fish",
                     what);
}

const struct cli_command cli_command_completion = {
    .name = "completion",
    .group = "About",
    .summary = "print a script that completes words in your shell",
    .usage = "bash|zsh|fish",
    .details = "The script completes commands, options, branches, tags and the paths of the\n"
               "repository that was named. 'make install' puts the scripts where these shells\n"
               "look for them.",
    .examples = "breccia completion bash\nbreccia completion fish",
    .min_operands = 1,
    .max_operands = WORDS_MOST,
    .flags = CLI_NO_FILE,
    .run = run_completion,
};
