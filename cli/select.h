/*
 * select.h - SLICE: by position, by the names of dimensions, and by the values of coordinates.
 */
#ifndef BRC_CLI_SELECT_H
#define BRC_CLI_SELECT_H

#include "../src/breccia.h"

struct cli;

/* Reads SLICE as a selection of an array of the session; NULL selects everything. [0:10, :] goes by position,
 * [time=0, lat=10:20] by the names of dimensions, {time=2020-05-01, lat=30:60} by the values of the arrays that have the
 * coordinates. The last is as xarray's sel(): both ends belong to the selection, and a value that is not there is an
 * error. */
int cli_select_in(struct cli *cli, brc_session *session, brc_array *array, const char *slice, brc_sel *out);
/* Takes the SLICE off *path, unless cli->session has a node of that very name; *slice is NULL without one. */
int cli_split_slice(struct cli *cli, const char **path, const char **slice);

#endif
