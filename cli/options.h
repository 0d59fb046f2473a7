/*
 * options.h - options and operands as tables.
 *
 * A command describes its options as data; parsing, help and the reference
 * come from that one description.  Options may stand anywhere after the
 * command and `--` ends them.  What begins with "-" and a digit, a "." or
 * nothing at all is an operand: "-1:" is a slice and "-" standard input.
 */
#ifndef BRECCIA_CLI_OPTIONS_H
#define BRECCIA_CLI_OPTIONS_H

#include <stddef.h>

struct cli;

enum { CLI_MAX_OPTION_VALUES = 2 };

struct cli_option {
    const char *name;  /* long, without the dashes                            */
    char letter;       /* short, or 0                                         */
    int nvalues;       /* how many arguments it takes: 0, 1 or 2              */
    const char *value; /* what they are called in the help, or NULL           */
    const char *help;
};
/* Ends a table of options. */
#define CLI_OPTIONS_END { 0, 0, 0, 0, 0 }

/* One option as it stood on the command line. */
struct cli_given {
    const struct cli_option *option;
    const char *value[CLI_MAX_OPTION_VALUES];
};

struct cli_args {
    const struct cli_option *tables[2]; /* the command's (or NULL), everybody's */
    const char **operands;
    size_t noperands;
    size_t before_dashes; /* operands in front of "--", or all of them        */
    struct cli_given *given;
    size_t ngiven;
};

/* Reads `argv` (after the command's name) by the command's table (or NULL) and that
 * of what every command takes.  A fault is a usage error. */
int cli_args_parse(struct cli *cli, const struct cli_option *own, const struct cli_option *global,
                   int argc, char **argv);
/* Reads the options in front of the command; *used: how many arguments. */
int cli_args_leading(struct cli *cli, const struct cli_option *global, int argc, char **argv,
                     int *used);
void cli_args_dispose(struct cli_args *args);

/* Was the option given? */
int cli_has(const struct cli *cli, const char *name);
/* Its (last) value, or NULL. */
const char *cli_value(const struct cli *cli, const char *name);
/* The `index`th of its values where it may be repeated, or NULL. */
const char *cli_nth_value(const struct cli *cli, const char *name, size_t index);
/* The second value of an option that takes two. */
const char *cli_second_value(const struct cli *cli, const char *name);
/* The operand behind the command's name, FILE being 0; NULL where there is none. */
const char *cli_operand(const struct cli *cli, size_t index);

#endif
