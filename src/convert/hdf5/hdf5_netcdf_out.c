/*
 * Writes NetCDF-4, except for the elements, by the conventions that hdf5_netcdf.h lists.
 *
 * HDF5 keeps the order in which objects and attributes are made, and netCDF lists variables, types
 * and attributes in this order. Types and dimensions are made before the variables that have them.
 */
#include <hdf5_hl.h> /* behind hdf5.h, as hdf5_lib.h asks for it */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/buf.h"
#include "../../breccia_types.h"
#include "hdf5_netcdf.h"
#include "hdf5_out.h"

/* The longest chunk. HDF5's chunks must be shorter than 4 GiB; a smaller bound keeps HDF5's memory
 * small. */
#define MAX_FILE_CHUNK (UINT64_C(1) << 30)
/* The default level of compression, which is fast. Level 4 would take twice the time, for 4 % on
 * winds. */
#define DEFLATE_LEVEL 1

typedef struct netcdf_writer {
    brc_hdf5_out *out;
    const brc_netcdf_plan *plan;
    hid_t *scales; /* of each dimension, by its number */
    hid_t *types;  /* the types that the file defines */
    size_t ntypes, types_cap;
} netcdf_writer;

/* ---- names -------------------------------- */

/* Returns whether the name has a character that netCDF-C would join with the one before. netCDF-C
 * looks for names in their composed form (NFC), and does not find others. */
static int has_combining(const char *name)
{
    const uint8_t *at = (const uint8_t *)name;
    size_t len;
    for (; (len = brc_utf8_step(at, strlen((const char *)at))) > 0; at += len) {
        uint32_t c = brc_utf8_code(at, len);
        if ((c >= 0x300 && c <= 0x36F) || c == 0x3099 || c == 0x309A ||
            (c >= 0x1161 && c <= 0x11C2))
            return 1;
    }
    return 0;
}

/* Returns why netCDF does not take a name, or NULL. */
static const char *fault_of_name(const char *name)
{
    const unsigned char *at = (const unsigned char *)name, first = *at;
    size_t len = strlen(name);
    if (len > NC_MAX_NAME)
        return "its name has more than 256 bytes";
    if (first < 0x80 && !(first >= '0' && first <= '9') && !(first >= 'A' && first <= 'Z') &&
        !(first >= 'a' && first <= 'z') && first != '_')
        return "its name does not begin with a letter, a digit or an underscore";
    for (; *at; at++)
        if (*at < ' ' || *at == 0x7F || *at == '/')
            return "its name has a slash or a control character";
    if (has_combining(name))
        return "its name has combining characters: write them in composed form (NFC)";
    return name[len - 1] == ' ' ? "its name ends with a blank" : NULL;
}

static int check_netcdf_name(const char *what, const char *label, const char *name, brc_error *err)
{
    const char *fault = fault_of_name(name);
    return fault ? brc_fail(err, BRC_EUNSUPPORTED, "%s %s: %s", what, label, fault) : BRC_OK;
}

static int check_netcdf_names(const brc_netcdf_plan *plan, brc_error *err)
{
    for (size_t i = 1; i < plan->ngroups; i++)
        BRC_TRY(check_netcdf_name("move or rename it: NetCDF cannot have the group",
                                  plan->groups[i].node->path, plan->groups[i].name, err));
    for (size_t i = 0; i < plan->nvars; i++)
        BRC_TRY(check_netcdf_name("move or rename it: NetCDF cannot have the variable",
                                  plan->vars[i].node->path, plan->vars[i].name, err));
    for (size_t i = 0; i < plan->ndims; i++)
        BRC_TRY(check_netcdf_name("NetCDF cannot have the dimension", plan->dims[i].name,
                                  plan->dims[i].name, err));
    return BRC_OK;
}

static const char *group_path(const brc_netcdf_plan *plan, int group)
{
    const brc_node_out *node = plan->groups[group].node;
    return node && *node->inner ? node->inner : "/";
}

int brc_hdf5_variable_path(char **out, const brc_netcdf_plan *plan, const brc_netcdf_var *var,
                           brc_error *err)
{
    int dim, is_other = brc_netcdf_plan_has_dim(plan, var->group, var->name, &dim) &&
                        !brc_netcdf_is_coordinate(plan, var);
    brc_buf path = BRC_BUF_INIT;
    int rc = brc_buf_printf(&path, err, "%s/%s%s", group_path(plan, var->group),
                            is_other ? BRC_HDF5_NOT_COORDINATE : "", var->name);
    if (rc == BRC_OK)
        rc = brc_buf_take_text(&path, out, err);
    brc_buf_dispose(&path);
    return rc;
}

/* ---- groups and dimensions -------------------------------- */

static int not_made(const char *what, const char *label, brc_error *err)
{
    return brc_hdf5_fail(err, BRC_EIO, "%s: %s cannot be made in HDF5", label, what);
}

/* Makes the properties of an object: no times, and an order of attributes and links. */
static hid_t ordered_plist(hid_t class_id)
{
    hid_t plist = H5Pcreate(class_id);
    if (plist >= 0 && H5Pset_obj_track_times(plist, 0) >= 0 &&
        H5Pset_attr_creation_order(plist, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED) >= 0 &&
        (class_id != H5P_GROUP_CREATE ||
         H5Pset_link_creation_order(plist, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED) >= 0))
        return plist;
    brc_hdf5_close(plist);
    return BRC_HDF5_NONE;
}

static int make_netcdf_groups(const netcdf_writer *w, brc_error *err)
{
    for (size_t i = 1; i < w->plan->ngroups; i++) {
        const brc_node_out *node = w->plan->groups[i].node;
        hid_t plist = ordered_plist(H5P_GROUP_CREATE);
        hid_t group =
            plist < 0 ? BRC_HDF5_NONE
                      : H5Gcreate2(w->out->id, node->inner, w->out->link_names, plist, H5P_DEFAULT);
        int rc = group < 0 ? not_made("the group", node->path, err) : BRC_OK;
        brc_hdf5_close(group);
        brc_hdf5_close(plist);
        BRC_TRY(rc);
    }
    return BRC_OK;
}

/* Writes an attribute of n integers; n 0: one integer as a scalar. */
static int put_integers(hid_t object, const char *name, const int *values, int n, const char *label,
                        brc_error *err)
{
    hsize_t count = (hsize_t)n;
    hid_t space = n == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &count, NULL);
    hid_t attr = space < 0
                     ? BRC_HDF5_NONE
                     : H5Acreate2(object, name, H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT);
    int rc = attr < 0 || H5Awrite(attr, H5T_NATIVE_INT, values) < 0
                 ? not_made("its dimensions", label, err)
                 : BRC_OK;
    brc_hdf5_close(attr);
    brc_hdf5_close(space);
    return rc;
}

/* Makes a dataset the scale of a dimension. */
static int make_scale(const netcdf_writer *w, int dim, hid_t dataset, const char *name,
                      const char *label, brc_error *err)
{
    w->scales[dim] = H5Iinc_ref(dataset) < 0 ? BRC_HDF5_NONE : dataset;
    if (w->scales[dim] < 0 || H5DSset_scale(dataset, name) < 0)
        return not_made("a dimension", label, err);
    return put_integers(dataset, BRC_HDF5_DIMID, &dim, 0, label, err);
}

/* Makes a dimension without a variable: a dataset whose elements are not stored. For a dimension
 * that grows, readers take the length from its variables. */
static int make_dimension(const netcdf_writer *w, int dim, brc_error *err)
{
    const brc_netcdf_dim *d = &w->plan->dims[dim];
    hsize_t length = d->unlimited ? 0 : d->length;
    hsize_t most = d->unlimited ? H5S_UNLIMITED : length, chunk = 1;
    char name[128];
    hid_t group = H5Gopen2(w->out->id, group_path(w->plan, d->group), H5P_DEFAULT);
    hid_t plist = ordered_plist(H5P_DATASET_CREATE), space = H5Screate_simple(1, &length, &most);
    hid_t set = BRC_HDF5_NONE;
    int rc;
    if (group >= 0 && plist >= 0 && space >= 0 &&
        (!d->unlimited || H5Pset_chunk(plist, 1, &chunk) >= 0))
        set = H5Dcreate2(group, d->name, H5T_IEEE_F32BE, space, w->out->link_names, plist,
                         H5P_DEFAULT);
    snprintf(name, sizeof(name), "%s.%10llu", BRC_HDF5_NO_VARIABLE, (unsigned long long)length);
    rc = set < 0 ? not_made("the dimension", d->name, err)
                 : make_scale(w, dim, set, name, d->name, err);
    brc_hdf5_close(set);
    brc_hdf5_close(space);
    brc_hdf5_close(plist);
    brc_hdf5_close(group);
    return rc;
}

static int make_dimensions(const netcdf_writer *w, brc_error *err)
{
    unsigned char *has_variable;
    int rc = BRC_OK;
    BRC_TRY(brc_new_array((void **)&has_variable, w->plan->ndims + 1, 1, err));
    for (size_t i = 0; i < w->plan->nvars; i++)
        if (brc_netcdf_is_coordinate(w->plan, &w->plan->vars[i]))
            has_variable[w->plan->vars[i].dims[0]] = 1;
    for (size_t i = 0; i < w->plan->ndims && rc == BRC_OK; i++)
        if (!has_variable[i])
            rc = make_dimension(w, (int)i, err);
    free(has_variable);
    return rc;
}

/* ---- types that the file defines -------------------------------- */

static int define_type(netcdf_writer *w, hid_t type, const brc_json *tree, const char *label,
                       brc_error *err);

static int is_defined_class(hid_t type)
{
    H5T_class_t class_id = H5Tget_class(type);
    return class_id == H5T_COMPOUND || class_id == H5T_OPAQUE || class_id == H5T_VLEN;
}

/* Defines the type of a field, or of the items of an array or list. */
static int define_part(netcdf_writer *w, hid_t part, const brc_json *tree, const char *label,
                       brc_error *err)
{
    int rc = BRC_OK;
    if (part >= 0 && H5Tget_class(part) == H5T_ARRAY) {
        hid_t item = H5Tget_super(part);
        const brc_json *of = brc_json_member(tree, "of");
        brc_hdf5_close(part);
        return define_part(w, item, of ? of : tree, label, err);
    }
    if (part < 0)
        return not_made("its data type", label, err);
    if (is_defined_class(part))
        rc = define_type(w, part, tree, label, err);
    brc_hdf5_close(part);
    return rc;
}

/* Defines the types of fields and of items of lists. netCDF looks for them among the types that
 * were defined before. */
static int define_parts(netcdf_writer *w, hid_t type, const brc_json *tree, const char *label,
                        brc_error *err)
{
    const brc_json *field = brc_json_first(brc_json_member(tree, "fields"));
    H5T_class_t class_id = H5Tget_class(type);
    int n = class_id == H5T_COMPOUND ? H5Tget_nmembers(type) : 0;
    if (class_id == H5T_VLEN)
        return define_part(w, H5Tget_super(type), brc_json_member(tree, "list"), label, err);
    for (int i = 0; i < n; i++) {
        BRC_TRY(define_part(w, H5Tget_member_type(type, (unsigned)i),
                            brc_json_member(field, "type"), label, err));
        field = field ? brc_json_next(field) : NULL;
    }
    return BRC_OK;
}

/* Returns whether a compound is a complex number in the form that readers recognize. */
static int is_complex_type(hid_t type)
{
    int is = H5Tget_class(type) == H5T_COMPOUND && H5Tget_nmembers(type) == 2 &&
             H5Tget_member_class(type, 0) == H5T_FLOAT && H5Tget_member_class(type, 1) == H5T_FLOAT;
    char *first = is ? H5Tget_member_name(type, 0) : NULL;
    char *second = is ? H5Tget_member_name(type, 1) : NULL;
    is = first && second && strcmp(first, "r") == 0 && strcmp(second, "i") == 0;
    if (first)
        (void)H5free_memory(first);
    if (second)
        (void)H5free_memory(second);
    return is;
}

/* Returns whether an object of the root group has this name or will have it. */
static int is_root_name(const netcdf_writer *w, const char *name)
{
    int dim;
    for (size_t i = 0; i < w->plan->nvars; i++)
        if (w->plan->vars[i].group == 0 && strcmp(w->plan->vars[i].name, name) == 0)
            return 1;
    return brc_netcdf_plan_has_dim(w->plan, 0, name, &dim) ||
           H5Lexists(w->out->id, name, H5P_DEFAULT) != 0;
}

/* Chooses a free name. `tree` is the note, which has the names of types of lists and compounds. */
static void name_type(char name[NC_MAX_NAME + 1], const netcdf_writer *w, hid_t type,
                      const brc_json *tree)
{
    const char *noted = NULL;
    char base[NC_MAX_NAME + 1];
    size_t size = H5Tget_size(type);
    int is_tree = brc_json_member(tree, "fields") || brc_json_member(tree, "list");
    if (is_tree && brc_json_text(brc_json_member(tree, "name"), &noted) && !fault_of_name(noted))
        snprintf(base, sizeof(base), "%s", noted);
    else if (is_complex_type(type))
        snprintf(base, sizeof(base), "_PFNC_%s_COMPLEX_TYPE", size > 8 ? "DOUBLE" : "FLOAT");
    else if (H5Tget_class(type) == H5T_OPAQUE)
        snprintf(base, sizeof(base), "opaque_%zu", size);
    else if (H5Tget_class(type) == H5T_VLEN)
        snprintf(base, sizeof(base), "%s", is_tree ? "list" : "bytes");
    else
        snprintf(base, sizeof(base), "%s", is_tree ? "row" : "struct");
    snprintf(name, NC_MAX_NAME + 1, "%s", base);
    for (unsigned i = 2; is_root_name(w, name); i++)
        snprintf(name, NC_MAX_NAME + 1, "%.*s_%u", NC_MAX_NAME - 12, base, i);
}

/* Commits a copy of the type, unless the file has an equal type: netCDF finds a variable's type by
 * comparing. */
static int define_type(netcdf_writer *w, hid_t type, const brc_json *tree, const char *label,
                       brc_error *err)
{
    char name[NC_MAX_NAME + 1];
    for (size_t i = 0; i < w->ntypes; i++)
        if (H5Tequal(w->types[i], type) > 0)
            return BRC_OK;
    BRC_TRY(define_parts(w, type, tree, label, err));
    BRC_TRY(
        brc_grow_array((void **)&w->types, &w->types_cap, w->ntypes + 1, sizeof(*w->types), err));
    name_type(name, w, type, tree);
    hid_t plist = H5Pcreate(H5P_DATATYPE_CREATE), named = H5Tcopy(type);
    int rc = plist < 0 || named < 0 || H5Pset_obj_track_times(plist, 0) < 0 ||
                     H5Tcommit2(w->out->id, name, named, w->out->link_names, plist, H5P_DEFAULT) < 0
                 ? not_made("its data type", label, err)
                 : BRC_OK;
    brc_hdf5_close(plist);
    if (rc < 0)
        brc_hdf5_close(named);
    else
        w->types[w->ntypes++] = named;
    return rc;
}

/* Makes the type in the file of a built-in type of netCDF. */
static int atomic_type(hid_t *out, const brc_registry *reg, nc_type id, const char *label,
                       brc_error *err)
{
    brc_json *json;
    BRC_TRY(brc_convert_dtype_json(&json, brc_netcdf_type_dtype(id), err));
    int rc = brc_hdf5_type_make(out, reg, json, NULL, BRC_HDF5_NETCDF, label, err);
    brc_json_free(json);
    return rc;
}

static int variable_type(netcdf_writer *w, const brc_netcdf_var *v, hid_t *out, brc_error *err)
{
    const brc_registry *reg = w->out->reg;
    const char *label = v->node->path;
    *out = BRC_HDF5_NONE;
    if (v->type.id != NC_NAT)
        return atomic_type(out, reg, v->type.id, label, err);
    int rc = brc_hdf5_type_make(out, reg, brc_json_member(v->node->doc, "data_type"), NULL,
                                BRC_HDF5_NETCDF, label, err);
    if (rc < 0) {
        brc_context(err, "%s", label);
        return rc;
    }
    BRC_TRY(brc_hdf5_native_layout(out, label, err));
    return define_type(w, *out, NULL, label, err);
}

/* ---- attributes -------------------------------- */

/* The object that an attribute is written to. */
typedef struct att_place {
    const netcdf_writer *w;
    hid_t object;
    hid_t type; /* a variable's type in the file; BRC_HDF5_NONE: the object is a group */
    const char *label;
} att_place;

/* Makes the type and the space of an attribute: characters are one text of a fixed length, other
 * values a list. An attribute without values has a null space. */
static int att_type_and_space(const att_place *p, const brc_netcdf_values *values, hid_t *type,
                              hid_t *space, brc_error *err)
{
    hsize_t n = values->n;
    if (values->type == NC_CHAR) {
        *type = H5Tcopy(H5T_C_S1);
        if (*type >= 0 && n > 1 && H5Tset_size(*type, n) < 0)
            return not_made("an attribute", p->label, err);
    } else if (values->type == NC_NAT) { /* a complex number has no netCDF type */
        n = 1;
        *type = H5Tcopy(p->type);
    } else {
        BRC_TRY(atomic_type(type, p->w->out->reg, values->type, p->label, err));
    }
    *space = n == 0                    ? H5Screate(H5S_NULL)
             : values->type == NC_CHAR ? H5Screate(H5S_SCALAR)
                                       : H5Screate_simple(1, &n, NULL);
    return *type < 0 || *space < 0 ? not_made("an attribute", p->label, err) : BRC_OK;
}

/* Makes the type of values in memory: the file's type in native order, or for a complex number two
 * doubles. */
static int values_memory(const brc_registry *reg, const brc_netcdf_values *values, hid_t file,
                         hid_t *out, brc_error *err)
{
    brc_json *json;
    *out = BRC_HDF5_NONE;
    if (values->type == NC_NAT) {
        BRC_TRY(brc_convert_dtype_json(&json, "complex128", err));
        int rc = brc_hdf5_type_make(out, reg, json, NULL, BRC_HDF5_NETCDF, "", err);
        brc_json_free(json);
        return rc < 0 ? rc : brc_hdf5_native_layout(out, "", err);
    }
    *out = values->type == NC_CHAR || values->type == NC_STRING
               ? H5Tcopy(file)
               : H5Tget_native_type(file, H5T_DIR_DEFAULT);
    return *out < 0 ? not_made("an attribute", "", err) : BRC_OK;
}

static int put_att_as(const att_place *p, const char *name, hid_t type, hid_t space, hid_t memory,
                      const void *data, brc_error *err)
{
    hid_t attr = H5Acreate2(p->object, name, type, space, p->w->out->attr_names, H5P_DEFAULT);
    int rc =
        attr < 0 || (memory >= 0 && H5Awrite(attr, memory, data) < 0)
            ? brc_hdf5_fail(err, BRC_EIO, "its attribute \"%.80s\" cannot be written to HDF5", name)
            : BRC_OK;
    brc_hdf5_close(attr);
    return rc;
}

/* Writes one attribute: the put function of brc_netcdf_atts_out. */
static int put_netcdf_att(void *ctx, const char *name, const brc_netcdf_values *values,
                          brc_error *err)
{
    static const char remedy[] = "remove or rename it: NetCDF cannot have the attribute";
    const att_place *p = ctx;
    hid_t type = BRC_HDF5_NONE, space = BRC_HDF5_NONE, memory = BRC_HDF5_NONE;
    int rc;
    BRC_TRY(check_netcdf_name(remedy, name, name, err));
    if (brc_hdf5_is_netcdfs_own(name))
        return brc_fail(err, BRC_EUNSUPPORTED, "%s %s: the name is one of netCDF's own", remedy,
                        name);
    BRC_GO(att_type_and_space(p, values, &type, &space, err));
    if (values->n > 0)
        BRC_GO(values_memory(p->w->out->reg, values, type, &memory, err));
    rc = put_att_as(p, name, type, space, memory, values->data, err);
done:
    brc_hdf5_close(memory);
    brc_hdf5_close(space);
    brc_hdf5_close(type);
    return rc;
}

/* ---- fill values -------------------------------- */

/* A dataset's creation properties, which take its fill value. */
typedef struct fill_place {
    const netcdf_writer *w;
    const brc_netcdf_var *var;
    hid_t plist, type;
    int is_set;
} fill_place;

static int set_netcdf_fill(const fill_place *p, hid_t memory, const void *value, brc_error *err)
{
    return H5Pset_fill_value(p->plist, memory, value) < 0
               ? not_made("its fill value", p->var->node->path, err)
               : BRC_OK;
}

/* Takes a _FillValue of the variable's type: the put function of brc_netcdf_atts_out. */
static int take_fill_att(void *ctx, const char *name, const brc_netcdf_values *values,
                         brc_error *err)
{
    fill_place *p = ctx;
    hid_t memory;
    if (strcmp(name, BRC_ATTR_FILL) != 0 || values->type != p->var->type.id ||
        (values->n != 1 && values->type != NC_NAT))
        return BRC_OK;
    BRC_TRY(values_memory(p->w->out->reg, values, p->type, &memory, err));
    int rc = set_netcdf_fill(p, memory, values->data, err);
    brc_hdf5_close(memory);
    p->is_set = rc == BRC_OK;
    return rc;
}

/* The array's fill value as an element in memory, for a type that the file defines. */
typedef struct own_fill {
    brc_hdf5_type type;
    uint8_t *element;
} own_fill;

static void close_own_fill(own_fill *own)
{
    brc_hdf5_type_close(&own->type);
    free(own->element);
}

static int open_own_fill(own_fill *own, const netcdf_writer *w, const brc_netcdf_var *v, hid_t type,
                         brc_error *err)
{
    const brc_buf *fill = &v->node->meta->fill;
    *own = (own_fill){ .type.memory = BRC_HDF5_NONE };
    BRC_TRY(brc_hdf5_type_read(&own->type, w->out->reg, type, BRC_HDF5_NETCDF, v->node->path, err));
    if (own->type.kind != BRC_HDF5_FIXED || own->type.size != fill->len)
        return BRC_OK;
    BRC_TRY(brc_new((void **)&own->element, fill->len, err));
    memcpy(own->element, fill->data, fill->len);
    brc_dtype_native(v->type.from, own->element, fill->len);
    return BRC_OK;
}

/* Sets a fill value of zeros, as netCDF-C does for types that a file defines. */
static int set_zero_fill(const fill_place *p, brc_error *err)
{
    void *zeros;
    BRC_TRY(brc_new(&zeros, H5Tget_size(p->type), err));
    int rc = set_netcdf_fill(p, p->type, zeros, err);
    free(zeros);
    return rc;
}

/* Sets NetCDF's own fill value for the type. */
static int set_default_fill(const fill_place *p, brc_error *err)
{
    static const char nothing[] = "";
    const char *text = nothing;
    uint8_t value[8];
    brc_netcdf_values values = { p->var->type.id, 1, value, NULL };
    hid_t memory;
    if (values.type == NC_STRING)
        return set_netcdf_fill(p, p->type, &text, err);
    if (values.type == NC_NAT)
        return set_zero_fill(p, err);
    if (brc_netcdf_default_fill(values.type, value) == 0)
        return BRC_OK;
    BRC_TRY(values_memory(p->w->out->reg, &values, p->type, &memory, err));
    int rc = set_netcdf_fill(p, memory, value, err);
    brc_hdf5_close(memory);
    return rc;
}

static int set_netcdf_fill_value(const netcdf_writer *w, const brc_netcdf_var *v, hid_t plist,
                                 hid_t type, brc_error *err)
{
    fill_place place = { w, v, plist, type, 0 };
    brc_netcdf_atts_out atts = { .ctx = &place, .put = take_fill_att };
    BRC_TRY(brc_netcdf_var_atts(&atts, v, err));
    if (atts.own_fill && v->type.from) {
        own_fill own;
        int rc = open_own_fill(&own, w, v, type, err);
        if (rc == BRC_OK && own.element)
            rc = set_netcdf_fill(&place, own.type.memory, own.element, err);
        close_own_fill(&own);
        return rc;
    }
    if (place.is_set)
        return BRC_OK;
    if (!brc_netcdf_has_no_fill(v, atts.has_fill))
        return set_default_fill(&place, err);
    return H5Pset_fill_time(plist, H5D_FILL_TIME_NEVER) < 0
               ? not_made("its fill value", v->node->path, err)
               : BRC_OK;
}

/* ---- chunks and compression -------------------------------- */

/* Returns the level of deflate: the array's own if it is compressed by deflate; 0 if it is not
 * compressed. */
static int deflate_level(const brc_json *codecs)
{
    int64_t level = DEFLATE_LEVEL;
    if (!codecs)
        return DEFLATE_LEVEL;
    if (!brc_meta_compression(codecs, &level))
        return 0;
    return level > 0 ? (int)level : DEFLATE_LEVEL;
}

/* Chooses the chunks in the file: a chunk is no longer than a dimension that does not grow. Sets
 * *one to 1 if one chunk holds the whole variable. */
static void file_chunks(const brc_netcdf_plan *plan, const brc_netcdf_var *v,
                        const uint64_t *wanted, size_t size, hsize_t *chunk, int *one)
{
    uint64_t shape[BRC_MAX_NDIM + 1], bytes;
    *one = 1;
    for (int k = 0; k < v->ndim; k++) {
        const brc_netcdf_dim *d = &plan->dims[v->dims[k]];
        uint64_t n = wanted[k];
        if (n > d->length && (!d->unlimited || n > INT32_MAX))
            n = d->length;
        shape[k] = n > 0 ? n : 1;
        *one &= !d->unlimited && shape[k] == d->length;
    }
    while (!brc_shape_bytes(v->ndim, shape, size, &bytes) || bytes > MAX_FILE_CHUNK) {
        int largest = 0;
        for (int k = 1; k < v->ndim; k++)
            if (shape[k] > shape[largest])
                largest = k;
        if (shape[largest] == 1)
            break; /* a single element is larger */
        shape[largest] = (shape[largest] + 1) / 2;
        *one = 0;
    }
    for (int k = 0; k < v->ndim; k++)
        chunk[k] = shape[k];
}

/* Returns the level of compression of a variable. Lists and texts are not compressed, because HDF5
 * would compress their addresses alone. */
static int variable_level(const brc_netcdf_var *v)
{
    const brc_dtype *from = v->type.from;
    return from && from->item_size > 0 && v->type.id != NC_STRING ? deflate_level(v->node->codecs)
                                                                  : 0;
}

static int set_netcdf_storage(const netcdf_writer *w, const brc_netcdf_var *v, hid_t plist,
                              hid_t type, brc_error *err)
{
    const brc_hdf5_ragged *ragged = brc_hdf5_ragged_of_node(w->out, v->node);
    uint64_t wanted[BRC_MAX_NDIM + 1];
    hsize_t chunk[BRC_MAX_NDIM + 1];
    size_t size = H5Tget_size(type);
    int one, level = variable_level(v);
    if (v->ndim == 0)
        return BRC_OK;
    for (int k = 0; k < v->ndim; k++) {
        wanted[k] = v->shape[k]; /* of texts, and of lists without chunks */
        if (ragged && ragged->chunked)
            wanted[k] = ragged->chunk[k];
        else if (v->node->meta && k < v->node->meta->ndim)
            wanted[k] = v->node->meta->grid.chunk[k];
    }
    file_chunks(w->plan, v, wanted, size, chunk, &one);
    int whole = level == 0 && one && !(ragged && ragged->chunked);
    if ((!whole && H5Pset_chunk(plist, v->ndim, chunk) < 0) ||
        (level > 0 &&
         ((size > 1 && H5Pset_shuffle(plist) < 0) || H5Pset_deflate(plist, (unsigned)level) < 0)))
        return brc_hdf5_fail(err, BRC_EUNSUPPORTED, "NetCDF cannot have the chunks of %s",
                             v->node->path);
    return BRC_OK;
}

/* ---- variables -------------------------------- */

static hid_t variable_space(const brc_netcdf_plan *plan, const brc_netcdf_var *v)
{
    hsize_t shape[BRC_MAX_NDIM + 1], most[BRC_MAX_NDIM + 1];
    for (int k = 0; k < v->ndim; k++) {
        shape[k] = v->shape[k];
        most[k] = plan->dims[v->dims[k]].unlimited ? H5S_UNLIMITED : shape[k];
    }
    return v->ndim == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(v->ndim, shape, most);
}

static int create_variable(const netcdf_writer *w, const brc_netcdf_var *v, hid_t type, hid_t *out,
                           brc_error *err)
{
    hid_t plist = ordered_plist(H5P_DATASET_CREATE);
    hid_t space = v->ndim > H5S_MAX_RANK ? BRC_HDF5_NONE : variable_space(w->plan, v);
    char *path = NULL;
    int rc;
    *out = BRC_HDF5_NONE;
    if (plist < 0 || space < 0) {
        rc = not_made("a variable of its shape", v->node->path, err);
        goto done;
    }
    BRC_GO(set_netcdf_fill_value(w, v, plist, type, err));
    BRC_GO(set_netcdf_storage(w, v, plist, type, err));
    BRC_GO(brc_hdf5_variable_path(&path, w->plan, v, err));
    *out = H5Dcreate2(w->out->id, path, type, space, w->out->link_names, plist, H5P_DEFAULT);
    rc = *out < 0 ? not_made("it", v->node->path, err) : BRC_OK;
done:
    free(path);
    brc_hdf5_close(space);
    brc_hdf5_close(plist);
    return rc;
}

static int make_netcdf_variable(netcdf_writer *w, const brc_netcdf_var *v, brc_error *err)
{
    brc_hdf5_ragged *ragged = brc_hdf5_ragged_of_node(w->out, v->node);
    hid_t type = BRC_HDF5_NONE, set = BRC_HDF5_NONE;
    int rc;
    if (ragged)
        BRC_GO(define_type(w, ragged->file_type, brc_json_member(ragged->note, "type"),
                           v->node->path, err));
    else
        BRC_GO(variable_type(w, v, &type, err));
    BRC_GO(create_variable(w, v, ragged ? ragged->file_type : type, &set, err));
    if (brc_netcdf_is_coordinate(w->plan, v))
        BRC_GO(make_scale(w, v->dims[0], set, v->name, v->node->path, err));
    if (ragged) {
        ragged->id = set;
        ragged->space = H5Dget_space(set);
        set = BRC_HDF5_NONE;
    }
done:
    brc_hdf5_close(set);
    brc_hdf5_close(type);
    return rc;
}

/* Names the dimensions of a variable, by number and by scales. HDF5 attaches no scales to a
 * scale. */
static int attach_dimensions(const netcdf_writer *w, const brc_netcdf_var *v, hid_t set,
                             brc_error *err)
{
    if (v->ndim == 0)
        return BRC_OK;
    BRC_TRY(put_integers(set, BRC_HDF5_COORDINATES, v->dims, v->ndim, v->node->path, err));
    if (brc_netcdf_is_coordinate(w->plan, v))
        return BRC_OK;
    for (int k = 0; k < v->ndim; k++)
        if (H5DSattach_scale(set, w->scales[v->dims[k]], (unsigned)k) < 0)
            return not_made("its dimensions", v->node->path, err);
    return BRC_OK;
}

static int write_own_fill(const att_place *p, const brc_netcdf_var *v, brc_error *err)
{
    hsize_t one = 1;
    hid_t space = H5Screate_simple(1, &one, NULL);
    own_fill own;
    int rc = open_own_fill(&own, p->w, v, p->type, err);
    if (rc == BRC_OK && own.element)
        rc = put_att_as(p, BRC_ATTR_FILL, p->type, space, own.type.memory, own.element, err);
    close_own_fill(&own);
    brc_hdf5_close(space);
    return rc;
}

static int write_variable_atts(const netcdf_writer *w, const brc_netcdf_var *v, hid_t set,
                               brc_error *err)
{
    att_place place = { w, set, H5Dget_type(set), v->node->path };
    brc_netcdf_atts_out atts = { .ctx = &place, .put = put_netcdf_att };
    int rc =
        place.type < 0 ? not_made("it", v->node->path, err) : brc_netcdf_var_atts(&atts, v, err);
    if (rc == BRC_OK && atts.own_fill && v->type.from)
        rc = write_own_fill(&place, v, err);
    brc_hdf5_close(place.type);
    return rc;
}

static int finish_variable(const netcdf_writer *w, const brc_netcdf_var *v, brc_error *err)
{
    char *path;
    BRC_TRY(brc_hdf5_variable_path(&path, w->plan, v, err));
    hid_t set = H5Dopen2(w->out->id, path, H5P_DEFAULT);
    int rc = set < 0 ? not_made("it", v->node->path, err) : attach_dimensions(w, v, set, err);
    if (rc == BRC_OK)
        rc = write_variable_atts(w, v, set, err);
    brc_hdf5_close(set);
    free(path);
    return rc;
}

/* ---- the file -------------------------------- */

static int write_group_atts(const netcdf_writer *w, int group, brc_error *err)
{
    const brc_node_out *node = w->plan->groups[group].node;
    if (!node)
        return BRC_OK;
    att_place place = { w, H5Gopen2(w->out->id, group_path(w->plan, group), H5P_DEFAULT),
                        BRC_HDF5_NONE, node->path };
    brc_netcdf_atts_out atts = { .label = node->path, .ctx = &place, .put = put_netcdf_att };
    int rc = place.object < 0 ? not_made("the group", node->path, err)
                              : brc_netcdf_each_att(&atts, node->doc, err);
    brc_hdf5_close(place.object);
    return rc;
}

/* Writes the attribute that names the file's writer, as every writer of NetCDF-4 does. */
static int write_properties(const netcdf_writer *w, brc_error *err)
{
    unsigned major = 0, minor = 0, release = 0;
    char text[128];
    (void)H5get_libversion(&major, &minor, &release);
    int n =
        snprintf(text, sizeof(text), "version=2,breccia=%d.%d.%d,hdf5=%u.%u.%u", BRC_VERSION_MAJOR,
                 BRC_VERSION_MINOR, BRC_VERSION_PATCH, major, minor, release);
    att_place place = { w, w->out->id, BRC_HDF5_NONE, w->out->file };
    brc_netcdf_values values = { NC_CHAR, (size_t)n, text, NULL };
    hid_t type = BRC_HDF5_NONE, space = BRC_HDF5_NONE;
    int rc = att_type_and_space(&place, &values, &type, &space, err);
    if (rc == BRC_OK)
        rc = put_att_as(&place, "_NCProperties", type, space, type, text, err);
    brc_hdf5_close(space);
    brc_hdf5_close(type);
    return rc;
}

static int write_netcdf(netcdf_writer *w, brc_error *err)
{
    const brc_netcdf_plan *plan = w->plan;
    BRC_TRY(write_properties(w, err));
    BRC_TRY(make_netcdf_groups(w, err));
    BRC_TRY(make_dimensions(w, err));
    for (size_t i = 0; i < plan->nvars; i++)
        BRC_TRY(make_netcdf_variable(w, &plan->vars[i], err));
    for (size_t i = 0; i < plan->ngroups; i++)
        BRC_TRY(write_group_atts(w, (int)i, err));
    for (size_t i = 0; i < plan->nvars; i++)
        BRC_TRY(finish_variable(w, &plan->vars[i], err));
    return BRC_OK;
}

/* Plans the shape and the axes' names of a group that stands for a variable. */
static int plan_ragged(const brc_hdf5_out *out, brc_netcdf_var *v, brc_error *err)
{
    const brc_hdf5_ragged *d = brc_hdf5_ragged_of_node(out, v->node);
    const brc_json *names = brc_hdf5_ragged_names(d);
    const char *text;
    v->ndim = d->ndim;
    memcpy(v->shape, d->shape, (size_t)d->ndim * sizeof(*d->shape));
    const brc_json *name = brc_json_kind(names) == BRC_JSON_ARRAY ? brc_json_first(names) : NULL;
    for (int k = 0; k < d->ndim && name; k++, name = brc_json_next(name))
        if (brc_json_text(name, &text) && *text)
            BRC_TRY(brc_dup(&v->names[k], text, err));
    return BRC_OK;
}

int brc_hdf5_netcdf_plan(brc_hdf5_out *out, brc_error *err)
{
    brc_netcdf_plan *plan = out->plan;
    BRC_TRY(brc_netcdf_plan_nodes(plan, out->convert, 0, err));
    for (size_t i = 0; i < plan->nvars; i++)
        if (!plan->vars[i].node->meta)
            BRC_TRY(plan_ragged(out, &plan->vars[i], err));
    BRC_TRY(brc_netcdf_plan_dims(plan, err));
    return check_netcdf_names(plan, err);
}

int brc_hdf5_netcdf_write(brc_hdf5_out *out, brc_error *err)
{
    netcdf_writer w = { .out = out, .plan = out->plan };
    BRC_TRY(brc_new_array((void **)&w.scales, w.plan->ndims + 1, sizeof(*w.scales), err));
    for (size_t i = 0; i < w.plan->ndims; i++)
        w.scales[i] = BRC_HDF5_NONE;
    int rc = write_netcdf(&w, err);
    for (size_t i = 0; i < w.plan->ndims; i++)
        brc_hdf5_close(w.scales[i]);
    for (size_t i = 0; i < w.ntypes; i++)
        brc_hdf5_close(w.types[i]);
    free(w.scales);
    free(w.types);
    return rc;
}
