/* Reads the dimensions, types and attributes of NetCDF-4 files, see hdf5_netcdf.h. */
#include "hdf5_netcdf.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/node_path.h"

typedef struct dimension {
    haddr_t address; /* of the dimension's scale */
    char *path;      /* path of the dimension, such as "/g/x" */
    size_t group;    /* length of the group's path in it: "/g", "" */
    uint64_t length;
    int64_t number; /* _Netcdf4Dimid; negative: the scale has none */
    int grows, is_variable;
    int is_used; /* a variable of the dimension's own group has it */
} dimension;

typedef struct named_type {
    hid_t id;
    char *path;
    int64_t age; /* the order in which types of its group were made */
} named_type;

struct brc_hdf5_netcdf {
    dimension *dims; /* sorted by address */
    size_t n, cap;
    named_type *types;
    size_t ntypes, types_cap;
    int has_groups; /* the file has groups besides the root */
};

const brc_hdf5_netcdf brc_hdf5_netcdf_elsewhere;

/* ==== netCDF's own attributes ================================ */

/* Reads the first bytes of an attribute that is one text of a fixed or variable length. The caller
 * clears *out before. */
static int attr_text(char *out, size_t size, hid_t object, const char *name)
{
    hid_t attr = H5Aexists(object, name) > 0 ? H5Aopen(object, name, H5P_DEFAULT) : BRC_HDF5_NONE;
    hid_t space = attr < 0 ? BRC_HDF5_NONE : H5Aget_space(attr), type = BRC_HDF5_NONE;
    char *text = NULL;
    int is = 0;
    if (space >= 0 && H5Sget_simple_extent_npoints(space) == 1)
        type = H5Aget_type(attr);
    if (type >= 0 && H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) > 0) {
        is = H5Aread(attr, type, &text) >= 0 && text;
        if (is)
            memcpy(out, text, strnlen(text, size - 1));
        (void)H5free_memory(text);
    } else if (type >= 0 && H5Tget_class(type) == H5T_STRING && H5Tget_size(type) < 4096) {
        char whole[4096];
        is = H5Aread(attr, type, whole) >= 0;
        size_t len = H5Tget_size(type);
        if (is)
            memcpy(out, whole, len < size ? len : size - 1);
    }
    brc_hdf5_close(type);
    brc_hdf5_close(space);
    brc_hdf5_close(attr);
    return is;
}

/* Reads an attribute of n integers. Returns 1 if the attribute is one. */
static int attr_integers(int *out, int n, hid_t object, const char *name)
{
    hid_t attr = H5Aexists(object, name) > 0 ? H5Aopen(object, name, H5P_DEFAULT) : BRC_HDF5_NONE;
    hid_t space = attr < 0 ? BRC_HDF5_NONE : H5Aget_space(attr);
    hid_t type = attr < 0 ? BRC_HDF5_NONE : H5Aget_type(attr);
    int is = space >= 0 && type >= 0 && H5Tget_class(type) == H5T_INTEGER &&
             H5Sget_simple_extent_npoints(space) == n && H5Aread(attr, H5T_NATIVE_INT, out) >= 0;
    brc_hdf5_close(type);
    brc_hdf5_close(space);
    brc_hdf5_close(attr);
    return is;
}

static int is_scale(hid_t dataset)
{
    char text[32] = "";
    return attr_text(text, sizeof(text), dataset, "CLASS") && strcmp(text, "DIMENSION_SCALE") == 0;
}

static int is_no_variable(hid_t dataset)
{
    char text[sizeof(BRC_HDF5_NO_VARIABLE)] = "";
    return attr_text(text, sizeof(text), dataset, "NAME") &&
           strcmp(text, BRC_HDF5_NO_VARIABLE) == 0;
}

static herr_t find_dimid(hid_t group, const char *name, const H5L_info_t *info, void *ctx)
{
    const brc_hdf5_in *in = ctx;
    if (info->type != H5L_TYPE_HARD)
        return 0;
    hid_t object = H5Oopen(group, name, in->links);
    int found =
        object >= 0 && H5Iget_type(object) == H5I_DATASET && H5Aexists(object, BRC_HDF5_DIMID) > 0;
    brc_hdf5_close(object);
    return found;
}

int brc_hdf5_is_netcdf(const brc_hdf5_in *in)
{
    return H5Aexists(in->id, "_NCProperties") > 0 ||
           H5Literate(in->id, H5_INDEX_NAME, H5_ITER_INC, NULL, find_dimid,
                      (void *)(uintptr_t)in) > 0;
}

/* ==== dimensions ================================ */

static int by_scale(const void *a, const void *b)
{
    haddr_t x = ((const dimension *)a)->address, y = ((const dimension *)b)->address;
    return (x > y) - (x < y);
}

static dimension *dim_at(const brc_hdf5_netcdf *netcdf, haddr_t address)
{
    dimension key = { .address = address };
    return netcdf->n > 0
               ? bsearch(&key, netcdf->dims, netcdf->n, sizeof(*netcdf->dims), by_scale)
               : NULL;
}

static dimension *dim_numbered(const brc_hdf5_netcdf *netcdf, int number)
{
    for (size_t i = 0; i < netcdf->n; i++)
        if (netcdf->dims[i].number == number)
            return &netcdf->dims[i];
    return NULL;
}

static dimension *dim_of(const brc_hdf5_netcdf *netcdf, hid_t dataset)
{
    H5O_info_t info;
    return H5Oget_info2(dataset, &info, H5O_INFO_BASIC) < 0 ? NULL : dim_at(netcdf, info.addr);
}

typedef struct axes_reader {
    const brc_hdf5_netcdf *netcdf;
    dimension **dims;
} axes_reader;

static int take_axis(void *ctx, hid_t dataset, const void *reference, int axis, brc_error *err)
{
    const axes_reader *r = ctx;
    hobj_ref_t address;
    (void)dataset, (void)err;
    memcpy(&address, reference, sizeof(address));
    if (!r->dims[axis])
        r->dims[axis] = dim_at(r->netcdf, address);
    return BRC_OK;
}

/* Sets dims[] to the dimension of each axis, or to NULL where the axis has none. */
static int find_axes(dimension **dims, const brc_hdf5_netcdf *netcdf, hid_t dataset, int ndim,
                     const char *label, brc_error *err)
{
    axes_reader r = { netcdf, dims };
    int numbers[BRC_MAX_NDIM];
    memset(dims, 0, BRC_MAX_NDIM * sizeof(*dims));
    if (ndim < 1 || ndim > BRC_MAX_NDIM || netcdf->n == 0)
        return BRC_OK;
    if (attr_integers(numbers, ndim, dataset, BRC_HDF5_COORDINATES))
        for (int i = 0; i < ndim; i++)
            dims[i] = dim_numbered(netcdf, numbers[i]);
    if (!dims[0])
        dims[0] = dim_of(netcdf, dataset);
    return brc_hdf5_scales_read(dataset, ndim, take_axis, &r, label, err);
}

int brc_hdf5_is_dimension(const brc_hdf5_in *in, hid_t dataset)
{
    const dimension *dim = in->netcdf ? dim_of(in->netcdf, dataset) : NULL;
    return dim && !dim->is_variable;
}

const char *brc_hdf5_variable_name(const char *link)
{
    const char prefix[] = BRC_HDF5_NOT_COORDINATE;
    const size_t len = sizeof(prefix) - 1;
    return strncmp(link, prefix, len) == 0 && link[len] ? link + len : link;
}

static const char *dim_name(const dimension *dim)
{
    return strrchr(dim->path, '/') + 1;
}

int brc_hdf5_netcdf_axes(char **names, uint64_t *shape, const brc_hdf5_in *in, hid_t dataset,
                         int ndim, const char *label, brc_error *err)
{
    dimension *dims[BRC_MAX_NDIM];
    BRC_TRY(find_axes(dims, in->netcdf, dataset, ndim, label, err));
    for (int i = 0; i < ndim; i++) {
        if (!dims[i])
            continue;
        const char *name = dim_name(dims[i]);
        if (!brc_utf8_valid(name, strlen(name)))
            return brc_fail(err, BRC_EINVAL, "%s: a dimension's name is not UTF-8", label);
        if (strncmp(name, BRC_NETCDF_NAMELESS, strlen(BRC_NETCDF_NAMELESS)) != 0)
            BRC_TRY(brc_dup(&names[i], name, err));
        if (dims[i]->grows && dims[i]->length > shape[i])
            shape[i] = dims[i]->length;
    }
    return BRC_OK;
}

/* ---- reading all of them -------------------------------- */

typedef struct file_walk {
    const brc_hdf5_in *in;
    brc_hdf5_netcdf *out;
    brc_error *err;
} file_walk;

/* Returns 1 with the extent of a dataset that has at least one axis, otherwise 0. */
static int read_axes(hid_t dataset, int *ndim, hsize_t *now, hsize_t *most)
{
    hid_t space = H5Dget_space(dataset);
    *ndim = space < 0 ? 0 : H5Sget_simple_extent_ndims(space);
    int has = *ndim > 0 && H5Sget_simple_extent_dims(space, now, most) == *ndim;
    brc_hdf5_close(space);
    return has;
}

static size_t group_part(const char *path)
{
    return (size_t)(strrchr(path, '/') - path);
}

static int add_scale_dim(const file_walk *w, hid_t dataset, const char *path)
{
    hsize_t now[H5S_MAX_RANK], most[H5S_MAX_RANK];
    brc_hdf5_netcdf *out = w->out;
    H5O_info_t info;
    int ndim, number;
    if (!is_scale(dataset) || H5Oget_info2(dataset, &info, H5O_INFO_BASIC) < 0 ||
        !read_axes(dataset, &ndim, now, most))
        return BRC_OK;
    BRC_TRY(brc_grow_array((void **)&out->dims, &out->cap, out->n + 1, sizeof(*out->dims), w->err));
    dimension *dim = &out->dims[out->n];
    *dim = (dimension){ .address = info.addr,
                        .group = group_part(path),
                        .length = now[0],
                        .number = -1,
                        .grows = most[0] == H5S_UNLIMITED,
                        .is_variable = !is_no_variable(dataset) };
    if (dim->grows) /* its length is that of the longest dataset */
        dim->length = 0;
    if (attr_integers(&number, 1, dataset, BRC_HDF5_DIMID))
        dim->number = number;
    BRC_TRY(brc_dup(&dim->path, path, w->err));
    out->n++;
    return BRC_OK;
}

static int is_before(const named_type *a, const named_type *b)
{
    const size_t len = group_part(a->path);
    return len == group_part(b->path) && strncmp(a->path, b->path, len) == 0 && a->age < b->age;
}

/* Adds a committed data type to the list, which keeps the types of a group in the order in which
 * they were made. */
static int add_type(const file_walk *w, hid_t type, const char *path)
{
    brc_hdf5_netcdf *out = w->out;
    H5L_info_t link;
    if (!brc_utf8_valid(path, strlen(path)) ||
        H5Lget_info(w->in->id, path, &link, H5P_DEFAULT) < 0)
        return BRC_OK;
    BRC_TRY(brc_grow_array((void **)&out->types, &out->types_cap, out->ntypes + 1,
                           sizeof(*out->types), w->err));
    named_type named = { .id = H5Tcopy(type), .age = link.corder_valid ? link.corder : 0 };
    int rc = brc_dup(&named.path, path, w->err);
    if (rc < 0) {
        brc_hdf5_close(named.id);
        return rc;
    }
    size_t at = out->ntypes++;
    for (; at > 0 && is_before(&named, &out->types[at - 1]); at--)
        out->types[at] = out->types[at - 1];
    out->types[at] = named;
    return BRC_OK;
}

static int take_dim_or_type(void *ctx, const char *path, H5O_type_t type)
{
    const file_walk *w = ctx;
    int rc = BRC_OK;
    w->out->has_groups |= type == H5O_TYPE_GROUP && strcmp(path, "/") != 0;
    if (type != H5O_TYPE_DATASET && type != H5O_TYPE_NAMED_DATATYPE)
        return BRC_OK;
    hid_t object = H5Oopen(w->in->id, path, w->in->links);
    if (object >= 0)
        rc = type == H5O_TYPE_DATASET ? add_scale_dim(w, object, path) : add_type(w, object, path);
    brc_hdf5_close(object);
    return rc;
}

/* Marks the dimensions that a dataset has. Ignores a dataset that cannot be read: its own import
 * fails later, with a message. */
static void use_dims(const brc_hdf5_netcdf *out, hid_t dataset, const char *path)
{
    hsize_t now[H5S_MAX_RANK], most[H5S_MAX_RANK];
    dimension *dims[BRC_MAX_NDIM];
    const dimension *own = dim_of(out, dataset);
    int ndim;
    if ((own && !own->is_variable) || !read_axes(dataset, &ndim, now, most) ||
        ndim > BRC_MAX_NDIM || find_axes(dims, out, dataset, ndim, "", NULL) < 0)
        return;
    for (int i = 0; i < ndim; i++) {
        if (!dims[i])
            continue;
        if (dims[i]->grows && now[i] > dims[i]->length)
            dims[i]->length = now[i];
        dims[i]->is_used |= dims[i]->group == group_part(path) &&
                            strncmp(dims[i]->path, path, dims[i]->group) == 0;
    }
}

static int take_variable(void *ctx, const char *path, H5O_type_t type)
{
    const file_walk *w = ctx;
    hid_t dataset = type == H5O_TYPE_DATASET ? H5Oopen(w->in->id, path, w->in->links)
                                             : BRC_HDF5_NONE;
    if (dataset >= 0)
        use_dims(w->out, dataset, path);
    brc_hdf5_close(dataset);
    return BRC_OK;
}

int brc_hdf5_netcdf_open(brc_hdf5_in *in, brc_error *err)
{
    brc_hdf5_netcdf *out;
    BRC_TRY(brc_new((void **)&out, sizeof(*out), err));
    in->netcdf = out;
    in->how = BRC_HDF5_NETCDF;
    brc_convert_use_names(in->convert, BRC_NAMES_NETCDF);
    file_walk w = { in, out, err };
    BRC_TRY(brc_hdf5_paths_each(&in->paths, take_dim_or_type, &w));
    if (out->n > 0)
        qsort(out->dims, out->n, sizeof(*out->dims), by_scale);
    return brc_hdf5_paths_each(&in->paths, take_variable, &w);
}

void brc_hdf5_netcdf_free(const brc_hdf5_netcdf *netcdf)
{
    for (size_t i = 0; netcdf && i < netcdf->n; i++)
        free(netcdf->dims[i].path);
    for (size_t i = 0; netcdf && i < netcdf->ntypes; i++) {
        brc_hdf5_close(netcdf->types[i].id);
        free(netcdf->types[i].path);
    }
    if (netcdf) {
        free(netcdf->dims);
        free(netcdf->types);
    }
    free((void *)(uintptr_t)netcdf);
}

/* ==== attributes ================================ */

#define MAX_ATT_BYTES ((size_t)64 << 20)

/* Returns the netCDF type of an HDF5 type; for an enumeration, that of its base type. NC_NAT: the
 * type is not one of netCDF's built-in types. */
static nc_type netcdf_type_of(hid_t type)
{
    H5T_class_t class = H5Tget_class(type);
    size_t size = H5Tget_size(type);
    if (class == H5T_ENUM) {
        hid_t base = H5Tget_super(type);
        nc_type is = base < 0 ? NC_NAT : netcdf_type_of(base);
        brc_hdf5_close(base);
        return is;
    }
    if (class == H5T_INTEGER && H5Tget_precision(type) == 8 * size)
        return brc_netcdf_integer(size, H5Tget_sign(type) == H5T_SGN_NONE);
    if (class == H5T_FLOAT &&
        (H5Tequal(type, H5T_IEEE_F32LE) > 0 || H5Tequal(type, H5T_IEEE_F32BE) > 0))
        return NC_FLOAT;
    if (class == H5T_FLOAT &&
        (H5Tequal(type, H5T_IEEE_F64LE) > 0 || H5Tequal(type, H5T_IEEE_F64BE) > 0))
        return NC_DOUBLE;
    if (class != H5T_STRING)
        return NC_NAT;
    return H5Tis_variable_str(type) > 0 || size > 1 ? NC_STRING : NC_CHAR;
}

/* Returns whether NetCDF takes two types of variables or attributes for the same. */
static int same_netcdf_type(hid_t a, hid_t b)
{
    nc_type type = netcdf_type_of(a);
    return type == netcdf_type_of(b) && (type != NC_NAT || H5Tequal(a, b) > 0) &&
           (H5Tget_class(a) == H5T_ENUM) == (H5Tget_class(b) == H5T_ENUM);
}

typedef struct attr_in {
    const char *name, *label;
    hid_t id, type, space;
    nc_type as;
    int ndim;
    hssize_t n;
} attr_in;

static int netcdf_attr_failed(const attr_in *a, brc_error *err)
{
    return brc_hdf5_fail(err, BRC_EINVAL, "%s, attribute %s: the attribute cannot be read",
                         a->label, a->name);
}

static void close_attr(attr_in *a)
{
    brc_hdf5_close(a->type);
    brc_hdf5_close(a->space);
    brc_hdf5_close(a->id);
}

/* Opens an attribute. A single text of a fixed length is a list of characters; several such texts
 * are a list of strings. */
static int open_attr(attr_in *a, hid_t object, const char *name, const char *label, brc_error *err)
{
    *a = (attr_in){ .name = name, .label = label, .type = BRC_HDF5_NONE, .space = BRC_HDF5_NONE };
    a->id = H5Aopen(object, name, H5P_DEFAULT);
    if (a->id >= 0) {
        a->type = H5Aget_type(a->id);
        a->space = H5Aget_space(a->id);
    }
    if (a->type < 0 || a->space < 0)
        return netcdf_attr_failed(a, err);
    a->as = netcdf_type_of(a->type);
    a->ndim = H5Sget_simple_extent_ndims(a->space);
    a->n = H5Sget_simple_extent_npoints(a->space);
    if (a->ndim < 0 || a->n < 0)
        return netcdf_attr_failed(a, err);
    if (H5Tget_class(a->type) == H5T_STRING && H5Tis_variable_str(a->type) <= 0) {
        a->as = a->ndim == 0 ? NC_CHAR : NC_STRING;
        if (a->as == NC_CHAR && a->n > 0)
            a->n = (hssize_t)H5Tget_size(a->type);
    }
    size_t size = H5Tget_size(a->type);
    if (size == 0 || (uint64_t)a->n > MAX_ATT_BYTES / (a->as == NC_CHAR ? 1 : size))
        return brc_part_refuse(err, BRC_PART_SIZE, NULL,
                               "%s: the attribute %s is longer than %zu bytes", label, name,
                               MAX_ATT_BYTES);
    return BRC_OK;
}

/* Returns the type in memory of the attribute's values, which have a built-in type; for texts, the
 * type in the file. */
static hid_t attr_memory(const attr_in *a)
{
    if (a->as == NC_CHAR || a->as == NC_STRING)
        return H5Tcopy(a->type);
    if (a->as == NC_FLOAT || a->as == NC_DOUBLE)
        return H5Tcopy(a->as == NC_FLOAT ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE);
    int is_signed = a->as == NC_BYTE || a->as == NC_SHORT || a->as == NC_INT || a->as == NC_INT64;
    return H5Tcopy(brc_hdf5_integer(brc_netcdf_atomic_size(a->as), is_signed));
}

/* Copies the library's texts, of fixed or variable length. */
static int take_library_texts(brc_netcdf_values *out, const attr_in *a, const uint8_t *data,
                              brc_error *err)
{
    int varies = H5Tis_variable_str(a->type) > 0;
    size_t size = H5Tget_size(a->type);
    char **texts;
    BRC_TRY(brc_new_array((void **)&out->texts, out->n + 1, sizeof(char *), err));
    BRC_TRY(brc_new_array(&out->data, out->n + 1, sizeof(char *), err));
    texts = out->data;
    for (size_t i = 0; i < out->n; i++, data += size) {
        const char *text = (const char *)data;
        if (varies)
            memcpy(&text, data, sizeof(text));
        BRC_TRY(brc_dup_n(&out->texts[i], text ? text : "",
                          varies ? (text ? strlen(text) : 0) : strnlen(text, size), err));
        texts[i] = out->texts[i];
    }
    return BRC_OK;
}

static int read_values(brc_netcdf_values *out, const attr_in *a, brc_error *err)
{
    uint8_t *data = NULL;
    hid_t memory = attr_memory(a);
    int rc;
    memset(out, 0, sizeof(*out));
    out->type = a->as;
    out->n = (size_t)a->n;
    BRC_GO(brc_new_array((void **)&data, out->n + 1, H5Tget_size(memory), err));
    if (memory < 0 || (a->n > 0 && H5Aread(a->id, memory, data) < 0)) {
        rc = netcdf_attr_failed(a, err);
        goto done;
    }
    if (a->as == NC_STRING) {
        rc = take_library_texts(out, a, data, err);
        if (a->n > 0 && H5Tis_variable_str(a->type) > 0)
            (void)H5Dvlen_reclaim(memory, a->space, H5P_DEFAULT, data);
    } else {
        out->data = data;
        data = NULL;
    }
done:
    brc_hdf5_close(memory);
    free(data);
    if (rc < 0)
        brc_netcdf_values_free(out);
    return rc;
}

/* ---- one of them -------------------------------- */

typedef struct atts_walk {
    const brc_hdf5_in *in;
    brc_netcdf_atts_in *out;
    const brc_hdf5_netcdf_var *var; /* NULL: the attributes belong to a group */
    int rc;
    brc_error *err;
} atts_walk;

/* Takes a _FillValue of the variable's own type, which becomes Zarr's fill_value. Numbers and texts
 * keep the attribute as well, and complex numbers keep it as two numbers. */
static int take_own_fill(const atts_walk *w, const attr_in *a)
{
    const brc_hdf5_netcdf_var *var = w->var;
    uint8_t pair[2 * sizeof(double)];
    if (!var->dtype || var->dtype->klass != BRC_CLASS_COMPLEX || var->type->size > sizeof(pair) ||
        var->type->size < 8)
        return brc_netcdf_take_own_fill(w->out, w->err);
    if (H5Aread(a->id, var->type->memory, pair) < 0)
        return netcdf_attr_failed(a, w->err);
    return brc_netcdf_take_pair(w->out, var->type->size == 8 ? NC_FLOAT : NC_DOUBLE, pair, w->err);
}

/* Takes an attribute of a type that the file defines: objects, lists, texts. A list of one value
 * becomes that value, as for all types. */
static int take_other(const atts_walk *w, hid_t object, const attr_in *a)
{
    brc_json *value, *type, *one;
    BRC_TRY(brc_hdf5_attr_read(w->in, object, a->name, a->label, &value, &type, NULL, w->err));
    brc_json_free(type);
    if (a->ndim == 1 && a->n == 1 && brc_json_count(value) == 1) {
        int rc = brc_json_clone(&one, brc_json_first(value), w->err);
        brc_json_free(value);
        BRC_TRY(rc);
        value = one;
    }
    return brc_json_add(w->out->attrs, a->name, value, w->err);
}

static int take_attr(const atts_walk *w, hid_t object, const char *name)
{
    brc_netcdf_values values;
    attr_in a;
    if (!brc_utf8_valid(name, strlen(name)))
        return brc_part_refuse(w->err, BRC_PART_NAME, "rename it",
                               "%s: an attribute's name is not UTF-8", w->out->label);
    int rc = open_attr(&a, object, name, w->out->label, w->err);
    if (rc < 0)
        goto done;
    int is_own = w->var && strcmp(name, BRC_ATTR_FILL) == 0 && a.n == 1 && a.as == NC_NAT &&
                 same_netcdf_type(a.type, w->var->file);
    if (is_own) {
        rc = take_own_fill(w, &a);
    } else if (a.as == NC_NAT || a.ndim > 1) {
        rc = take_other(w, object, &a);
    } else if ((rc = read_values(&values, &a, w->err)) == BRC_OK) {
        rc = brc_netcdf_take_att(w->out, name, &values, w->err);
        brc_netcdf_values_free(&values);
    }
done:
    close_attr(&a);
    return rc;
}

int brc_hdf5_is_netcdfs_own(const char *name)
{
    static const char *const names[] = { "CLASS",        "DIMENSION_LIST",     "NAME",
                                         "_Format",      "REFERENCE_LIST",     "_IsNetcdf4",
                                         "_nc3_strict",  "_NCProperties",      BRC_HDF5_COORDINATES,
                                         BRC_HDF5_DIMID, "_SuperblockVersion", "_Codecs",
                                         "_NCZARR_ATTR" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(name, names[i]) == 0)
            return 1;
    return 0;
}

static herr_t each_attr(hid_t object, const char *name, const H5A_info_t *info, void *ctx)
{
    atts_walk *w = ctx;
    brc_convert *c = w->in->convert;
    const char *path = brc_convert_path(c, w->out->label);
    (void)info;
    if (brc_hdf5_is_netcdfs_own(name) || brc_convert_lacks_attribute(c, path, name))
        return 0;
    w->rc = brc_convert_settle(c, take_attr(w, object, name), path, name, w->err);
    return w->rc < 0 ? -1 : 0;
}

/* Adds the meanings of an enumeration's values, in the form of the CF conventions. */
static int take_meanings(brc_netcdf_atts_in *out, const brc_json *members, brc_error *err)
{
    brc_json *values = NULL, *value;
    brc_buf meanings = BRC_BUF_INIT;
    int rc = BRC_OK;
    if (brc_json_count(members) == 0 || brc_json_member(out->attrs, "flag_values") ||
        brc_json_member(out->attrs, "flag_meanings"))
        return BRC_OK;
    values = brc_json_new_array();
    for (const brc_json *m = brc_json_first(members); m; m = brc_json_next(m)) {
        size_t start = meanings.len + (meanings.len > 0);
        BRC_GO(brc_buf_printf(&meanings, err, "%s%s", meanings.len > 0 ? " " : "",
                              brc_json_name(m)));
        for (size_t i = start; i < meanings.len; i++)
            if (meanings.data[i] == ' ')
                meanings.data[i] = '_';
        BRC_GO(brc_json_clone(&value, m, err));
        BRC_GO(brc_json_push(values, value, err));
    }
    BRC_GO(brc_buf_terminate(&meanings, err));
    BRC_GO(brc_json_set(out->attrs, "flag_meanings",
                        brc_json_new_string((const char *)meanings.data), err));
    rc = brc_json_set(out->attrs, "flag_values", values, err);
    values = NULL;
done:
    brc_json_free(values);
    brc_buf_dispose(&meanings);
    return rc;
}

int brc_hdf5_netcdf_atts(brc_netcdf_atts_in *out, const brc_hdf5_in *in, hid_t object,
                         const brc_hdf5_netcdf_var *var, const char *label, brc_error *err)
{
    atts_walk w = { in, out, var, BRC_OK, err };
    H5O_info_t info;
    out->label = label;
    out->of = (brc_netcdf_of){ .is_var = var != NULL };
    if (var) {
        out->of.type = netcdf_type_of(var->file);
        out->of.is_complex = var->dtype && var->dtype->klass == BRC_CLASS_COMPLEX;
    }
    out->attrs = brc_json_new_object();
    if (!out->attrs)
        return brc_nomem(err);
    if (H5Oget_info2(object, &info, H5O_INFO_NUM_ATTRS) < 0)
        return brc_hdf5_fail(err, BRC_EINVAL, "%s: its attributes cannot be read", label);
    BRC_TRY(brc_attr_check_count(info.num_attrs, label, err));
    /* netCDF-C keeps the order of creation; other writers may not */
    herr_t walked = H5Aiterate2(object, H5_INDEX_CRT_ORDER, H5_ITER_INC, NULL, each_attr, &w);
    if (walked < 0 && w.rc == BRC_OK && brc_json_count(out->attrs) == 0 && !out->note)
        walked = H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, NULL, each_attr, &w);
    if (w.rc < 0)
        return w.rc;
    if (walked < 0)
        return brc_hdf5_fail(err, BRC_EINVAL, "%s: its attributes cannot be read", label);
    return var ? take_meanings(out, brc_json_member(var->note, "enum"), err) : BRC_OK;
}

int brc_hdf5_netcdf_fill(int *found, void *element, hid_t dataset, const brc_hdf5_netcdf_var *var,
                         const char *label, brc_error *err)
{
    attr_in a;
    *found = 0;
    if (H5Aexists(dataset, BRC_ATTR_FILL) <= 0)
        return BRC_OK;
    int rc = open_attr(&a, dataset, BRC_ATTR_FILL, label, err);
    *found = rc == BRC_OK && a.n == 1 && same_netcdf_type(a.type, var->file) &&
             H5Tis_variable_str(a.type) == H5Tis_variable_str(var->file);
    if (*found && H5Aread(a.id, var->type->memory, element) < 0)
        rc = netcdf_attr_failed(&a, err);
    close_attr(&a);
    return rc;
}

/* ==== groups ================================ */

static int by_number(const void *a, const void *b)
{
    int64_t x = (*(const dimension *const *)a)->number, y = (*(const dimension *const *)b)->number;
    return (x > y) - (x < y);
}

/* Lists the dimensions of the group with this path. The caller frees *out. */
static int dims_of_group(const dimension ***out, size_t *n, const brc_hdf5_netcdf *netcdf,
                         const char *path, brc_error *err)
{
    size_t len = strcmp(path, "/") == 0 ? 0 : strlen(path);
    BRC_TRY(brc_new_array((void **)out, netcdf->n + 1, sizeof(**out), err));
    *n = 0;
    for (size_t i = 0; i < netcdf->n; i++)
        if (netcdf->dims[i].group == len && strncmp(netcdf->dims[i].path, path, len) == 0)
            (*out)[(*n)++] = &netcdf->dims[i];
    qsort(*out, *n, sizeof(**out), by_number);
    return BRC_OK;
}

/* Notes the group's dimensions that grow, and those that no variable of the group has. If the file
 * has groups besides the root, notes all of them, so that an export knows to which group each
 * dimension belongs. */
static int note_group_dims(brc_json **note, const brc_hdf5_in *in, const char *path, brc_error *err)
{
    const dimension **dims;
    size_t n;
    int rc;
    BRC_TRY(dims_of_group(&dims, &n, in->netcdf, path, err));
    for (size_t i = 0; i < n; i++) {
        const char *name = dim_name(dims[i]);
        if (strncmp(name, BRC_NETCDF_NAMELESS, strlen(BRC_NETCDF_NAMELESS)) == 0 ||
            !(dims[i]->grows || !dims[i]->is_used || in->netcdf->has_groups))
            continue;
        if (!brc_utf8_valid(name, strlen(name))) {
            rc = brc_fail(err, BRC_EINVAL, "%s: %s: a dimension's name is not UTF-8", in->file,
                          path);
            goto done;
        }
        BRC_GO(brc_netcdf_note_dim(note, name, dims[i]->length, dims[i]->grows, err));
    }
    rc = BRC_OK;
done:
    free(dims);
    return rc;
}

int brc_hdf5_netcdf_group(const brc_hdf5_in *in, hid_t group, const char *path, const char *label,
                          brc_error *err)
{
    const char *own = brc_hdf5_path_of_object(&in->paths, group);
    brc_netcdf_atts_in atts = { .label = label };
    char *text = NULL;
    int rc;

    BRC_GO(brc_hdf5_netcdf_atts(&atts, in, group, NULL, label, err));
    if (own)
        BRC_GO(note_group_dims(&atts.note, in, own, err));
    BRC_GO(brc_netcdf_note_group(&atts, err));
    BRC_GO(brc_netcdf_atts_text(&text, &atts, err));
    BRC_GO(brc_convert_group(in->convert, path, text, err));
done:
    free(text);
    brc_json_free(atts.attrs);
    brc_json_free(atts.note);
    return rc;
}

/* ==== names of types ================================ */

/* Returns the name of a committed type. Of several equal types netCDF-C takes the oldest. */
static const char *name_of_type(const brc_hdf5_netcdf *netcdf, hid_t type)
{
    for (size_t i = 0; i < netcdf->ntypes; i++)
        if (H5Tequal(netcdf->types[i].id, type) > 0)
            return strrchr(netcdf->types[i].path, '/') + 1;
    return NULL;
}

int brc_hdf5_netcdf_name_types(const brc_hdf5_in *in, brc_hdf5_tree *tree, hid_t type,
                               brc_error *err)
{
    const char *name = tree->kind == BRC_HDF5_COMPOUND || tree->kind == BRC_HDF5_LIST
                           ? name_of_type(in->netcdf, type)
                           : NULL;
    int rc = name ? brc_dup(&tree->type_name, name, err) : BRC_OK;
    brc_json_free(tree->type.note);
    tree->type.note = NULL;
    for (size_t i = 0; i < tree->n && rc == BRC_OK; i++) {
        hid_t part = tree->kind == BRC_HDF5_COMPOUND ? H5Tget_member_type(type, (unsigned)i)
                                                     : H5Tget_super(type);
        if (part >= 0)
            rc = brc_hdf5_netcdf_name_types(in, &tree->items[i], part, err);
        brc_hdf5_close(part);
    }
    return rc;
}
