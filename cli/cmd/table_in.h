/*
 * table_in.h - values from CSV.
 */
#ifndef BRC_CLI_CMD_TABLE_IN_H
#define BRC_CLI_CMD_TABLE_IN_H

#include <stddef.h>
#include <stdint.h>

#include "../../src/breccia.h"

struct cli;

/* Writes the elements of cli->array that the rows of a file name, "coordinate, ..., value": all or none. Sets *n to the
 * number of rows. */
int cli_write_points(struct cli *cli, const char *file, uint64_t *n);

/* Returns whether the name is that of a CSV file. */
int cli_is_csv(const char *name);
/* Makes the array `path` of cli->session from a table. `opts` has the shape of chunks, and BRC_XFER_REPLACE. */
int cli_import_csv(struct cli *cli, const char *file, const char *path, const brc_xfer_opts *opts);

#endif
