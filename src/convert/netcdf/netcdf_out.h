/* Writing NetCDF: the plan of a file, made before anything is written. */
#ifndef BRC_CONVERT_NETCDF_NETCDF_OUT_H
#define BRC_CONVERT_NETCDF_NETCDF_OUT_H

#include "../lib/netcdf_att.h"
#include "netcdf_type.h"

/* The driver's state is a brc_netcdf_out, see brc_driver. */
BRC_MUST_USE int brc_netcdf_create(void **state, brc_convert *c, const char *file, int classic, brc_error *err);
BRC_MUST_USE int brc_netcdf_finish(void *state, brc_error *err);

typedef struct brc_netcdf_dim {
    char *name;      /* NULL: it has none yet, and gets one                       */
    uint64_t length;
    int group;       /* index of the group that has it                            */
    int fixed_place; /* the group is given: noted, or that of a coordinate        */
    int hidden_by;   /* one of that kind that its variables see under the name;
                        -1: none                                                  */
    int unlimited;
    int id;          /* in the file                                               */
} brc_netcdf_dim;

typedef struct brc_netcdf_group {
    const brc_node_out *node; /* NULL: a file of one array has none for its root  */
    const char *name;         /* the last part of the path                        */
    int parent;               /* index; -1: it is the root                        */
    int id;
} brc_netcdf_group;

typedef struct brc_netcdf_var {
    const brc_node_out *node; /* its array, or the group that it is               */
    const char *name;
    int group, ndim;  /* with the dimension of characters                         */
    uint64_t shape[BRC_MAX_NDIM + 1];
    int dims[BRC_MAX_NDIM + 1]; /* indices                                        */
    int id;
} brc_netcdf_var;

/* The elements of a variable that is written. */
typedef struct brc_netcdf_data {
    const brc_netcdf_var *var; /* NULL: none is */
    brc_netcdf_type type;
} brc_netcdf_data;

typedef struct brc_netcdf_out {
    brc_netcdf_run run;
    brc_convert *convert;
    const char *path; /* of the file, for messages                                */
    brc_netcdf_types types;
    int classic;    /* what was asked for                                         */
    int version;    /* of a classic file: 2 or 5; 4: NetCDF-4                     */
    int file;       /* its id; below 0: it is not open                            */
    brc_netcdf_data data;
    void *dims;     /* brc_netcdf_dim[]                                           */
    size_t ndims, dims_cap;
    void *groups;   /* brc_netcdf_group[]; the first is the root                  */
    size_t ngroups, groups_cap;
    void *vars;     /* brc_netcdf_var[]                                           */
    size_t nvars, vars_cap;
    struct brc_netcdf_ragged **ragged; /* groups that are variables, in the order of nodes */
    size_t nragged, ragged_cap;
    const brc_node_out *array;        /* the one that comes now                   */
    struct brc_netcdf_ragged *filled; /* the variable that it belongs to, or NULL */
} brc_netcdf_out;

static inline brc_netcdf_dim *brc_netcdf_dim_at(const brc_netcdf_out *out, int i)
{
    return (brc_netcdf_dim *)out->dims + i;
}
static inline brc_netcdf_group *brc_netcdf_group_at(const brc_netcdf_out *out, int i)
{
    return (brc_netcdf_group *)out->groups + i;
}
static inline brc_netcdf_var *brc_netcdf_var_at(const brc_netcdf_out *out, size_t i)
{
    return (brc_netcdf_var *)out->vars + i;
}
/* The document of a group; NULL if it has none. */
static inline const brc_json *brc_netcdf_group_doc(const brc_netcdf_group *group)
{
    return group->node ? group->node->doc : NULL;
}

/* Chooses the dimensions of all variables: their names are in names[] of each, ndim of
 * them, NULL if there is none. */
typedef struct brc_netcdf_axes {
    char *names[BRC_MAX_NDIM + 1];
} brc_netcdf_axes;

/* One array. Looks at it: shape, the names of its axes, the least version of the format
 * that can say it. */
BRC_MUST_USE int brc_netcdf_plan_var(brc_netcdf_out *out, brc_netcdf_var *var, brc_netcdf_axes *axes, brc_error *err);
/* Defines the variable with all its attributes. */
BRC_MUST_USE int brc_netcdf_define_var(brc_netcdf_out *out, brc_netcdf_var *var, brc_error *err);
/* Its elements, see brc_driver: the state is a brc_netcdf_out. */
BRC_MUST_USE int brc_netcdf_begin(void *state, const brc_node_out *array, int *all, brc_error *err);
BRC_MUST_USE int brc_netcdf_put(void *state, const brc_sel *box, const void *data, size_t len, brc_error *err);
BRC_MUST_USE int brc_netcdf_end(void *state, brc_error *err);

/* Attributes of a node: where `group` is -1, they are only looked at. */
typedef struct brc_netcdf_att_place {
    brc_netcdf_out *out;
    int group, var;
    nc_type type;      /* the variable's in the file                              */
    const char *label;
} brc_netcdf_att_place;
BRC_MUST_USE int brc_netcdf_put_att(void *place, const char *name, const brc_netcdf_values *values, brc_error *err);

#endif
