/*
 * options.h - options and operands.
 *
 * A command describes its options in a table, which serves the parser and the help
 * pages.  Options may come anywhere after the command, and `--` ends them.  "-" alone,
 * or followed by a digit or a ".", begins an operand: "-1:" is a slice and "-" is
 * standard input.
 */
#ifndef BRC_CLI_OPTIONS_H
#define BRC_CLI_OPTIONS_H

#include <stddef.h>

/* ---- names that a mistyped word may have meant ---------- */

/* Writes to `out` those of the n `names` that resemble `word`, each after `prefix`, as in
 * "--a, --b or --c". Writes an empty string if no name does. */
void cli_similar(char *out, size_t cap, const char *word, const char *prefix,
                 const char *const *names, size_t n);

/* ---- options -------------------------------- */

struct cli;

enum { CLI_MAX_OPTION_VALUES = 2 };

struct cli_option {
    const char *name;  /* long, without the dashes                            */
    char letter;       /* short, or 0                                         */
    int nvalues;       /* how many arguments it takes: 0, 1 or 2              */
    const char *value; /* what the help calls them, or NULL                   */
    const char *help;
};
/* Ends a table of options. */
#define CLI_OPTIONS_END { 0, 0, 0, 0, 0 }

/* An option as it was given on the command line. */
struct cli_given {
    const struct cli_option *option;
    const char *value[CLI_MAX_OPTION_VALUES];
};

struct cli_args {
    const struct cli_option *tables[2]; /* the command's (or NULL), everybody's */
    const char **operands;
    size_t noperands;
    size_t before_dashes; /* how many operands come before "--"               */
    struct cli_given *given;
    size_t ngiven;
};

/* Reads `argv` (after the command's name) with the command's table (or NULL) and that
 * of the options that every command takes.  A mistake is a usage error. */
int cli_args_parse(struct cli *cli, const struct cli_option *own, const struct cli_option *global,
                   int argc, char **argv);
/* Reads the options before the command, of two tables, and sets *used to the number of their arguments. */
int cli_args_leading(struct cli *cli, const struct cli_option *own, const struct cli_option *global, int argc,
                     char **argv, int *used);
/* Inserts an operand as number `index`. Operands behind it move on by one. */
void cli_args_insert(struct cli *cli, size_t index, const char *operand);
/* Adds an option of the command's table with its value, as if the command line had it. */
void cli_args_add(struct cli *cli, const char *name, const char *value);
void cli_args_dispose(struct cli_args *args);

/* Returns whether the option was given. */
int cli_has(const struct cli *cli, const char *name);
/* Returns the last value of the option, or NULL. */
const char *cli_value(const struct cli *cli, const char *name);
/* Returns the value of occurrence number `index` of the option, or NULL. */
const char *cli_nth_value(const struct cli *cli, const char *name, size_t index);
/* Returns the second value of an option that takes two values. */
const char *cli_second_value(const struct cli *cli, const char *name);
/* Returns operand number `index` (FILE is 0), or NULL if there are fewer. */
const char *cli_operand(const struct cli *cli, size_t index);

/* ---- what a command is: data, and the function that runs it ---- */

enum { /* cli_command.flags */
    CLI_POOL = 1,    /* the command works on --threads threads               */
    CLI_NO_FILE = 2, /* the first operand is not a repository                 */
    CLI_PATH = 4,    /* the second operand is the node to work on             */
    CLI_LIST = 8,    /* with --list, the command needs no repository          */
    CLI_REV = 16,    /* the second operand is the version to read             */
    CLI_PAGED = 64,  /* long output on a terminal goes through a pager        */
    CLI_USER = 32,   /* with --user, the command needs no repository          */
    CLI_ROOT = 128   /* with --root, the command needs no repository          */
};

struct cli_command {
    const char *name;
    const char *group;   /* the heading of the command in the help            */
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

/* Returns the command of that name in cli->commands, or NULL. */
const struct cli_command *cli_command_find(const struct cli *cli, const char *name);
/* Fails with the error for an unknown name, which lists the names that resemble it. */
int cli_command_unknown(struct cli *cli, const char *name);

#endif
