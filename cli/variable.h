/*
 * variable.h - an array as a variable: the names of its dimensions, its attributes, its coordinates.
 */
#ifndef BRC_CLI_VARIABLE_H
#define BRC_CLI_VARIABLE_H

#include "../src/breccia.h"
#include "../src/breccia_json.h"

struct cli;

struct cli_variable {
    const char *path;
    brc_json *document;      /* zarr.json                                      */
    const brc_json *attributes;
    int named;               /* whether a dimension has a name                 */
    const char *dims[BRC_MAX_NDIM]; /* "": the dimension has no name           */
};

/* Reads the document of an array of a session. The names are dimension_names, or xarray's attribute of Zarr v2. */
int cli_variable_read(struct cli *cli, brc_session *session, const char *path, struct cli_variable *out);
void cli_variable_free(struct cli_variable *variable);
/* Returns the attribute if it is a text, else NULL. */
const char *cli_variable_text(const struct cli_variable *variable, const char *name);
/* Returns the number of the dimension with this name, or -1. */
int cli_variable_axis(const struct cli_variable *variable, int ndim, const char *name);
/* Returns the names of the dimensions, or NULL if none has one: "time, lat, ?". */
const char *cli_variable_dims(struct cli *cli, const struct cli_variable *variable, int ndim);
/* Sets *out to the path of the array that has the coordinates of the dimension: the array of its name, with that
 * dimension alone, in the group of the array at `path` or in the nearest group above; or to NULL. */
int cli_coordinate_path(struct cli *cli, brc_session *session, const char *path, const char *dim, const char **out);

#endif
