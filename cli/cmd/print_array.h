/*
 * print_array.h - an array's elements as NumPy prints them.
 */
#ifndef BRECCIA_CLI_PRINT_ARRAY_H
#define BRECCIA_CLI_PRINT_ARRAY_H

#include "../../src/breccia.h"

struct cli;

/* Prints a selection of cli->array in brackets and aligned; beyond 1000 elements only the
 * first and last three along each axis. */
int cli_print_array(struct cli *cli, const brc_sel *sel);

#endif
