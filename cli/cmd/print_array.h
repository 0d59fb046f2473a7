/*
 * print_array.h - the elements of an array, for people and for programs.
 */
#ifndef BRC_CLI_CMD_PRINT_ARRAY_H
#define BRC_CLI_CMD_PRINT_ARRAY_H

#include "../../src/breccia.h"

/* ---- the elements of cli->array for programs, in bounded memory ---- */

struct cli;

/* Writes {"shape": ..., "data_type": ..., "data": ...}. */
int cli_stream_json(struct cli *cli, const brc_sel *sel);
/* Writes one line per row of the last axis. */
int cli_stream_csv(struct cli *cli, const brc_sel *sel);
/* Writes one field. Programs get the bytes as they are; on a terminal, characters that steer it are escaped. */
void cli_put_csv_field(struct cli *cli, const char *text, size_t len);
/* Writes the bytes of a .npy file. */
int cli_stream_npy(struct cli *cli, const brc_sel *sel);
/* Writes canonical bytes. */
int cli_stream_raw(struct cli *cli, const brc_sel *sel);
/* Fills the selection from standard input, which must have the canonical bytes of the selection
 * and nothing more. */
int cli_stream_input(struct cli *cli, const brc_sel *sel);

/* Grows the axis by the canonical bytes on standard input, to its end. */
int cli_append_input(struct cli *cli, int axis);

/* ---- print array -------------------------------- */

/* Prints a selection of cli->array in brackets and aligned. Of more than 1000 elements, it prints only
 * the first and last three along each axis. */
int cli_print_array(struct cli *cli, const brc_sel *sel);

#endif
