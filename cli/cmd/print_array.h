/*
 * print_array.h - an array's elements as NumPy prints them.
 */
#ifndef BRECCIA_CLI_PRINT_ARRAY_H
#define BRECCIA_CLI_PRINT_ARRAY_H

#include "../../src/breccia.h"

struct cli;

/* In brackets, aligned, and past 1000 elements the first and last three of each axis
 * only. Works on cli->array. */
int cli_print_array(struct cli *cli, const brc_sel *sel);

#endif
