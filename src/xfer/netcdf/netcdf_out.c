/*
 * Writing NetCDF: NetCDF-4, or a classic file of the least version that can say what is
 * written: 2, or 5 where there are unsigned or 64-bit integers or very large arrays.
 *
 * Everything is looked at before anything is written: what cannot be said is refused then.
 */
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/json.h"
#include "../../zarr/transfer.h"
#include "../dest.h"
#include "netcdf_format.h"
#include "netcdf_out.h"

/* ---- the nodes ---------------------------------------------- */

static const char *last_part(const char *path)
{
    return strrchr(path, '/') + 1;
}

static int add_group(brc_netcdf_out *out, const char *path, int parent, brc_error *err)
{
    BRC_TRY(brc_grow_array(&out->groups, &out->groups_cap, out->ngroups + 1,
                           sizeof(brc_netcdf_group), err));
    brc_netcdf_group *g = brc_netcdf_group_at(out, (int)out->ngroups);
    *g = (brc_netcdf_group){ .parent = parent };
    out->ngroups++;
    if (!path)
        return BRC_OK;
    BRC_TRY(brc_dup(&g->path, path, err));
    g->name = last_part(g->path);
    return brc_node_doc(&g->doc, out->session, path, err);
}

static int add_var(brc_netcdf_out *out, const char *path, int group, brc_error *err)
{
    BRC_TRY(
        brc_grow_array(&out->vars, &out->vars_cap, out->nvars + 1, sizeof(brc_netcdf_var), err));
    brc_netcdf_var *v = brc_netcdf_var_at(out, out->nvars);
    *v = (brc_netcdf_var){ .group = group };
    BRC_TRY(brc_dup(&v->path, path, err));
    v->name = strcmp(path, "/") == 0 ? "data" : last_part(v->path);
    out->nvars++;
    return BRC_OK;
}

/* The group that the path is right in, going up from the one of the node before: nodes
 * come with all that is under them before their next sibling. */
static int group_holding(const brc_netcdf_out *out, int from, const char *path)
{
    for (; from > 0; from = brc_netcdf_group_at(out, from)->parent) {
        const char *above = brc_netcdf_group_at(out, from)->path;
        size_t len = strlen(above);
        if (strncmp(path, above, len) == 0 && path[len] == '/')
            return from;
    }
    return 0;
}

/* brc_nodes_each(): the group that it is in is the last one or above that. */
static int plan_node(void *ctx, const char *path, const char *inner, int kind, brc_error *err)
{
    brc_netcdf_out *out = ctx;

    if (*inner == 0) {
        BRC_TRY(add_group(out, kind == BRC_GROUP ? path : NULL, -1, err));
        return kind == BRC_ARRAY ? add_var(out, path, 0, err) : BRC_OK;
    }
    int group = group_holding(out, (int)out->ngroups - 1, path);
    if (kind == BRC_ARRAY)
        return add_var(out, path, group, err);
    if (out->classic)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "%s is a group, and classic NetCDF has none within a file: write "
                        "NetCDF-4 (--format netcdf), or export the group by itself",
                        path);
    return add_group(out, path, group, err);
}

/* Whether the root group has a node or a dimension of this name. */
static int name_is_taken(const void *ctx, const char *name)
{
    const brc_netcdf_out *out = ctx;
    for (size_t i = 1; i < out->ngroups; i++) {
        const brc_netcdf_group *g = brc_netcdf_group_at(out, (int)i);
        if (g->parent == 0 && strcmp(g->name, name) == 0)
            return 1;
    }
    for (size_t i = 0; i < out->nvars; i++) {
        const brc_netcdf_var *v = brc_netcdf_var_at(out, i);
        if (v->group == 0 && strcmp(v->name, name) == 0)
            return 1;
    }
    for (size_t i = 0; i < out->ndims; i++) {
        const brc_netcdf_dim *d = brc_netcdf_dim_at(out, (int)i);
        if (d->group == 0 && d->name && strcmp(d->name, name) == 0)
            return 1;
    }
    return 0;
}

/* ---- the plan ------------------------------------------------- */

static int put_group_atts(brc_netcdf_out *out, const brc_netcdf_group *g, int id, brc_error *err)
{
    brc_netcdf_att_place place = { out, id, NC_GLOBAL, NC_NAT, g->path };
    brc_netcdf_atts_out atts = { .label = g->path,
                                 .of = { .is_classic = out->classic },
                                 .ctx = &place,
                                 .put = brc_netcdf_put_att };
    return g->doc ? brc_netcdf_each_att(&atts, g->doc, err) : BRC_OK;
}

static int make_plan(brc_netcdf_out *out, const char *path, brc_error *err)
{
    brc_netcdf_axes *axes = NULL;
    int rc;

    BRC_GO(brc_nodes_each(out->session, path, plan_node, out, err));
    BRC_GO(brc_new_array((void **)&axes, out->nvars + 1, sizeof(*axes), err));
    for (size_t i = 0; i < out->nvars; i++)
        BRC_GO(brc_netcdf_plan_var(out, brc_netcdf_var_at(out, i), &axes[i], err));
    for (size_t i = 0; i < out->ngroups; i++)
        BRC_GO(put_group_atts(out, brc_netcdf_group_at(out, (int)i), -1, err));
    BRC_GO(brc_netcdf_plan_dims(out, axes, err));
done:
    for (size_t i = 0; axes && i < out->nvars; i++)
        for (int k = 0; k <= BRC_MAX_NDIM; k++)
            free(axes[i].names[k]);
    free(axes);
    return rc;
}

static void free_plan(brc_netcdf_out *out)
{
    for (size_t i = 0; i < out->ngroups; i++) {
        brc_netcdf_group *g = brc_netcdf_group_at(out, (int)i);
        free(g->path);
        brc_json_free(g->doc);
    }
    for (size_t i = 0; i < out->nvars; i++)
        free(brc_netcdf_var_at(out, i)->path);
    for (size_t i = 0; i < out->ndims; i++)
        free(brc_netcdf_dim_at(out, (int)i)->name);
    free(out->groups);
    free(out->vars);
    free(out->dims);
    brc_netcdf_types_free(&out->types);
}

/* ---- the file ------------------------------------------------- */

static int define_groups(brc_netcdf_out *out, brc_error *err)
{
    for (size_t i = 0; i < out->ngroups; i++) {
        brc_netcdf_group *g = brc_netcdf_group_at(out, (int)i);
        g->id = out->file;
        if (g->parent < 0)
            continue;
        int status = out->lib.nc_def_grp(brc_netcdf_group_at(out, g->parent)->id, g->name, &g->id);
        if (status)
            return brc_netcdf_fail(&out->lib, status, BRC_EUNSUPPORTED,
                                   "move or rename it: NetCDF cannot have the group", g->path, err);
    }
    return BRC_OK;
}

static int define_dims(brc_netcdf_out *out, brc_error *err)
{
    for (size_t i = 0; i < out->ndims; i++) {
        brc_netcdf_dim *d = brc_netcdf_dim_at(out, (int)i);
        int status = out->lib.nc_def_dim(brc_netcdf_group_at(out, d->group)->id, d->name,
                                         d->unlimited ? NC_UNLIMITED : (size_t)d->length, &d->id);
        if (status)
            return brc_netcdf_fail(&out->lib, status, BRC_EUNSUPPORTED,
                                   "NetCDF cannot have the dimension", d->name, err);
    }
    return BRC_OK;
}

static int define_all(brc_netcdf_out *out, brc_error *err)
{
    int before;
    out->types.root = out->file;
    BRC_TRY(define_groups(out, err));
    BRC_TRY(define_dims(out, err));
    for (size_t i = 0; i < out->ngroups; i++) {
        const brc_netcdf_group *g = brc_netcdf_group_at(out, (int)i);
        BRC_TRY(put_group_atts(out, g, g->id, err));
    }
    for (size_t i = 0; i < out->nvars; i++)
        BRC_TRY(brc_netcdf_define_var(out, brc_netcdf_var_at(out, i), err));
    if (out->classic) /* every element is written: none is filled in before */
        (void)out->lib.nc_set_fill(out->file, NC_NOFILL, &before);
    int status = out->lib.nc_enddef(out->file);
    return status
               ? brc_netcdf_fail(&out->lib, status, BRC_EUNSUPPORTED, "cannot write", "NetCDF", err)
               : BRC_OK;
}

static int write_netcdf(brc_netcdf_out *out, const char *temp, const char *dest, brc_error *err)
{
    int mode = out->version == 4 ? NC_NETCDF4 : out->version == 5 ? NC_64BIT_DATA : NC_64BIT_OFFSET;
    char *local;

    BRC_TRY(brc_netcdf_path(&local, temp, err));
    int status = out->lib.nc_create(local, mode | NC_NOCLOBBER, &out->file);
    free(local);
    if (status)
        return brc_netcdf_fail(&out->lib, status, BRC_EIO, "cannot make", dest, err);
    int rc = define_all(out, err);
    for (size_t i = 0; i < out->nvars && rc == BRC_OK; i++)
        rc = brc_netcdf_write_var(out, brc_netcdf_var_at(out, i), err);
    if (rc < 0) {
        (void)out->lib.nc_abort(out->file); /* removes what it was defining */
        return rc;
    }
    status = out->lib.nc_close(out->file);
    return status ? brc_netcdf_fail(&out->lib, status, BRC_EIO, "cannot write", dest, err) : BRC_OK;
}

int brc_netcdf_export(brc_session *s, const char *path, const char *dest, int classic,
                      brc_error *err)
{
    brc_netcdf_out out = { .session = s, .classic = classic, .version = classic ? 2 : 4 };
    brc_dest place = { 0 };
    int rc;

    BRC_GO(brc_dest_open(&place, s, dest, 0, err));
    BRC_GO(brc_netcdf_load(&out.lib, err));
    out.types = (brc_netcdf_types){
        &out.lib, brc_session_registry(s), -1, &out, name_is_taken, NULL, 0, 0
    };
    BRC_GO(make_plan(&out, path, err));
    BRC_GO(write_netcdf(&out, place.temp, dest, err));
    BRC_GO(brc_dest_finish(&place, 0, err));
done:
    free_plan(&out);
    brc_dest_close(&place);
    return rc;
}
