/*
 * print_array.h - an array's elements as NumPy prints them.
 */
#ifndef BRC_CLI_CMD_PRINT_ARRAY_H
#define BRC_CLI_CMD_PRINT_ARRAY_H

#include "../../src/breccia.h"

/* ---- stream array -------------------------------- */

/*
 * print_array.h - the elements of cli->array for programs, in bounded memory.
 */

struct cli;

/* {"shape": ..., "data_type": ..., "data": ...} */
int cli_stream_json(struct cli *cli, const brc_sel *sel);
/* One line per row of the last axis. */
int cli_stream_csv(struct cli *cli, const brc_sel *sel);
/* The bytes of a .npy file. */
int cli_stream_npy(struct cli *cli, const brc_sel *sel);
/* Canonical bytes. */
int cli_stream_raw(struct cli *cli, const brc_sel *sel);
/* Fills the selection from standard input, which must be its canonical bytes and nothing
 * more. */
int cli_stream_input(struct cli *cli, const brc_sel *sel);

/* ---- print array -------------------------------- */

struct cli;

/* Prints a selection of cli->array in brackets and aligned; beyond 1000 elements only the
 * first and last three along each axis. */
int cli_print_array(struct cli *cli, const brc_sel *sel);

#endif
