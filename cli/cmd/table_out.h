/*
 * table_out.h - arrays as CSV.
 */
#ifndef BRC_CLI_CMD_TABLE_OUT_H
#define BRC_CLI_CMD_TABLE_OUT_H

#include "../../src/breccia.h"

struct cli;

/* Writes a selection of cli->array. The last axis is a line, without a header. Elements of a struct are rows with a column
 * for each field, and --coordinates makes a row of each element: its coordinates and its value. */
int cli_put_csv(struct cli *cli, const brc_sel *sel);
/* Writes cli->array to the file DEST, with the attribute "columns" as the header if it fits. */
int cli_export_csv(struct cli *cli, const char *dest);

#endif
