/* Reading NetCDF: what its files share. */
#ifndef BRC_CONVERT_NETCDF_NETCDF_IN_H
#define BRC_CONVERT_NETCDF_NETCDF_IN_H

#include "netcdf_att.h"
#include "netcdf_type.h"

/* What the first round has seen of a variable, by its attributes. */
typedef struct brc_netcdf_seen {
    int is_bool, lacks_fill;
} brc_netcdf_seen;

typedef struct brc_netcdf_in {
    brc_netcdf_run run;
    brc_convert *convert;
    char *local;    /* the file's name as the libraries take it                   */
    int id;         /* of the open file, and its root group; below 0: it is closed */
    int is_netcdf4; /* its model: groups, types, chunks */
    int has_groups; /* besides the root                 */
    brc_netcdf_places places; /* of a classic file's elements */
    brc_netcdf_seen *vars; /* in the order of the walk */
    size_t nvars, vars_cap;
    size_t var_at; /* in the second */
} brc_netcdf_in;

/* The driver's state, see brc_driver. */
BRC_MUST_USE int brc_netcdf_open(void **state, brc_convert *c, const char *file, brc_error *err);
BRC_MUST_USE int brc_netcdf_walk(void *state, brc_error *err);

#endif
