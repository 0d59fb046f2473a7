/* Converts Zarr's types to HDF5's, see hdf5_type.h. */
#include <stdio.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../nd/dtype.h"
#include "../../codec/registry.h"
#include "../lib/netcdf_plan.h"
#include "hdf5_type.h"

#define TAG_MAX 255 /* the most bytes of an opaque type's tag */

typedef struct type_writer {
    const brc_registry *reg;
    const char *label;
    int how;
    int depth; /* 1: not inside another type */
} type_writer;

static int make_any(const type_writer *w, hid_t *out, size_t *size, const brc_json *data_type,
                    const brc_json *note, brc_error *err);

/* Fails with the library's error if `ok` is 0 or there is no type. */
static int finish_type(const type_writer *w, hid_t *out, int ok, brc_error *err)
{
    if (*out >= 0 && ok)
        return BRC_OK;
    int rc = brc_hdf5_fail(err, BRC_EINVAL, "%s: its data type cannot be made in HDF5",
                           w->label);
    brc_hdf5_close(*out);
    *out = BRC_HDF5_NONE;
    return rc;
}

static int is_text(const brc_json *note, const char *name, const char *want)
{
    return brc_json_is(brc_json_member(note, name), want);
}

/* ---- names -------------------------------- */

static const brc_hdf5_float *float_named(const char *name, int is_complex)
{
    if (strcmp(name, "complex_float32") == 0)
        name = "complex64";
    if (strcmp(name, "complex_float64") == 0)
        name = "complex128";
    for (int i = 0; i < BRC_HDF5_FLOATS; i++) {
        const brc_hdf5_float *f = &brc_hdf5_floats[i];
        if (strcmp(is_complex ? f->complex_dtype : f->dtype, name) == 0)
            return f;
    }
    return NULL;
}

/* Returns whether the type comes from a plug-in; then it is written as bytes. */
static int is_own(const brc_dtype *type)
{
    static const char *const names[] = { "bool",       "string",
                                         "bytes",      "variable_length_bytes",
                                         "binary",     "struct",
                                         "structured", "null_terminated_bytes",
                                         "raw_bytes" };
    static const unsigned sizes[] = { 2, 4, 8, 16, 32, 64 };
    char name[16];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(type->name, names[i]) == 0)
            return 1;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        snprintf(name, sizeof(name), "uint%u", sizes[i]);
        if (strcmp(type->name, name) == 0 || strcmp(type->name, name + 1) == 0)
            return 1;
    }
    return float_named(type->name, 0) || float_named(type->name, 1) ||
           (type->name[0] == 'r' && strspn(type->name + 1, "0123456789") == strlen(type->name) - 1);
}

/* ---- enums -------------------------------- */

/* Makes a boolean in h5py's form. */
static int make_bool(const type_writer *w, hid_t *out, brc_error *err)
{
    int8_t no = 0, yes = 1;
    *out = H5Tenum_create(H5T_NATIVE_INT8);
    int ok = *out >= 0 && H5Tenum_insert(*out, "FALSE", &no) >= 0 &&
             H5Tenum_insert(*out, "TRUE", &yes) >= 0;
    return finish_type(w, out, ok, err);
}

/* Adds a member to the enum. Returns 0 if its value is not an integer of this size. */
static int add_enum_member(hid_t type, hid_t base, size_t size, int is_signed,
                           const brc_json *member)
{
    union { /* the library converts in place */
        uint8_t bytes[8];
        int64_t i;
        uint64_t u;
    } v = { { 0 } };
    int64_t most = INT64_MAX >> (64 - 8 * size);
    int fits = is_signed ? brc_json_int(member, -most - 1, most, &v.i)
                         : brc_json_uint(member, UINT64_MAX >> (64 - 8 * size), &v.u);
    return fits &&
           H5Tconvert(brc_hdf5_integer(8, is_signed), base, 1, v.bytes, NULL,
                           H5P_DEFAULT) >= 0 &&
           H5Tenum_insert(type, brc_json_name(member), v.bytes) >= 0;
}

/* Makes an enum. Sets *out to BRC_HDF5_NONE if the note's members do not fit. */
static void make_enum(hid_t *out, size_t size, int is_signed,
                      const brc_json *members)
{
    hid_t base = brc_hdf5_integer(size, is_signed);
    int ok = 1;
    if (brc_json_kind(members) != BRC_JSON_OBJECT)
        return;
    *out = H5Tenum_create(base);
    for (const brc_json *m = brc_json_first(members); m && ok; m = brc_json_next(m))
        ok = *out >= 0 && add_enum_member(*out, base, size, is_signed, m);
    if (!ok || brc_json_count(members) == 0) {
        brc_hdf5_close(*out);
        *out = BRC_HDF5_NONE;
    }
}

/* ---- numbers -------------------------------- */

static int little(hid_t type)
{
    return H5Tset_order(type, H5T_ORDER_LE) >= 0;
}

static int make_integer(const type_writer *w, hid_t *out, const brc_dtype *type,
                        const brc_json *note, brc_error *err)
{
    int is_signed = type->klass == BRC_CLASS_INT;
    if (type->bits == 8 * type->item_size)
        make_enum(out, type->item_size, is_signed, brc_json_member(note, "enum"));
    if (*out >= 0)
        return BRC_OK;
    if (!is_signed && type->bits >= 8 && is_text(note, "class", "bitfield")) {
        const hid_t native[] = { H5T_NATIVE_B8,  H5T_NATIVE_B16, BRC_HDF5_NONE,
                                 H5T_NATIVE_B32, BRC_HDF5_NONE,         BRC_HDF5_NONE,
                                 BRC_HDF5_NONE,         H5T_NATIVE_B64 };
        *out = H5Tcopy(native[type->item_size - 1]);
        return finish_type(w, out, *out >= 0 && little(*out), err);
    }
    *out = H5Tcopy(brc_hdf5_integer(type->item_size, is_signed));
    int ok = *out >= 0 && little(*out);
    if (type->bits < 8)
        ok = ok && H5Tset_precision(*out, type->bits) >= 0;
    return finish_type(w, out, ok, err);
}

static int make_float(const type_writer *w, hid_t *out, const brc_hdf5_float *f, brc_error *err)
{
    *out = H5Tcopy(f->size == 8 ? H5T_IEEE_F64LE : H5T_IEEE_F32LE);
    int ok = *out >= 0;
    if (f->size < 4) /* the fields first, which must fit at every step */
        ok = ok &&
             H5Tset_fields(*out, 8 * f->size - 1, f->exponent_at, f->exponent_bits, 0,
                                f->exponent_at) >= 0 &&
             H5Tset_size(*out, f->size) >= 0 && H5Tset_ebias(*out, f->bias) >= 0;
    return finish_type(w, out, ok, err);
}

/* Chooses the names of a complex number's parts. */
static void part_names(const brc_json *note, const char *names[2])
{
    const brc_json *parts = brc_json_member(note, "parts");
    int is_long = brc_json_count(parts) == 2 && brc_json_kind(parts) == BRC_JSON_ARRAY &&
                  brc_json_is(brc_json_item(parts, 0), "real");
    names[0] = is_long ? "real" : "r";
    names[1] = is_long ? "imag" : "i";
}

static int make_complex(const type_writer *w, hid_t *out, const brc_hdf5_float *f,
                        const brc_json *note, brc_error *err)
{
    hid_t real = BRC_HDF5_NONE;
    const char *names[2];
    part_names(note, names);
    BRC_TRY(make_float(w, &real, f, err));
    *out = H5Tcreate(H5T_COMPOUND, 2 * f->size);
    int ok = *out >= 0 && H5Tinsert(*out, names[0], 0, real) >= 0 &&
             H5Tinsert(*out, names[1], f->size, real) >= 0;
    int rc = finish_type(w, out, ok, err);
    brc_hdf5_close(real);
    return rc;
}

/* ---- bytes and text -------------------------------- */

static int make_opaque(const type_writer *w, hid_t *out, size_t size, const char *before,
                       const char *tag, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_buf_text(&text, before, err));
    BRC_GO(brc_buf_text(&text, tag, err));
    BRC_GO(brc_buf_terminate(&text, err));
    if (text.len > TAG_MAX) {
        rc = brc_fail(err, BRC_EUNSUPPORTED, "%s: HDF5 has no data type for %.80s", w->label, tag);
        goto done;
    }
    *out = H5Tcreate(H5T_OPAQUE, size);
    rc = finish_type(w, out, *out >= 0 && H5Tset_tag(*out, (char *)text.data) >= 0, err);
done:
    brc_buf_dispose(&text);
    return rc;
}

static int make_fixed_text(const type_writer *w, hid_t *out, size_t size, const brc_json *note,
                           brc_error *err)
{
    *out = H5Tcopy(H5T_C_S1);
    int ok = *out >= 0 && H5Tset_size(*out, size) >= 0 &&
             H5Tset_strpad(*out, H5T_STR_NULLPAD) >= 0;
    if (is_text(note, "charset", "UTF-8"))
        ok = ok && H5Tset_cset(*out, H5T_CSET_UTF8) >= 0;
    return finish_type(w, out, ok, err);
}

static int make_variable(const type_writer *w, hid_t *out, int is_string, brc_error *err)
{
    *out = is_string ? H5Tcopy(H5T_C_S1) : H5Tvlen_create(H5T_NATIVE_UINT8);
    int ok = *out >= 0;
    if (is_string)
        ok = ok && H5Tset_size(*out, H5T_VARIABLE) >= 0 &&
             H5Tset_cset(*out, H5T_CSET_UTF8) >= 0;
    return finish_type(w, out, ok, err);
}

/* Makes an opaque type. Types that only NumPy has get h5py's tag; types that only Zarr has get no
 * tag, because h5py does not read tags that it does not know. */
static int make_bytes(const type_writer *w, hid_t *out, const brc_dtype *type, const brc_json *note,
                      brc_error *err)
{
    const char *tag;
    int use = brc_json_text(brc_json_member(note, "tag"), &tag) && type->klass == BRC_CLASS_RAW &&
              strlen(tag) <= TAG_MAX;
    if (type->item_size == 0)
        return brc_fail(err, BRC_EUNSUPPORTED, "%s: HDF5 has no data type for %s", w->label,
                        type->name);
    if (type->npy && type->klass != BRC_CLASS_RAW)
        return make_opaque(w, out, type->item_size, "NUMPY:", type->npy, err);
    return make_opaque(w, out, type->item_size, "", use ? tag : "", err);
}

/* ---- structs -------------------------------- */

/* Appends a field to the compound. */
static int add_compound_field(const type_writer *w, hid_t *out, size_t *at, const brc_json *field,
                              const brc_json *notes, int is_old, brc_error *err)
{
    const char *name;
    const brc_json *type = is_old ? brc_json_item(field, 1) : brc_json_member(field, "data_type");
    hid_t item = BRC_HDF5_NONE;
    size_t size = 0;
    if (!brc_json_text(is_old ? brc_json_item(field, 0) : brc_json_member(field, "name"), &name))
        return brc_fail(err, BRC_EUNSUPPORTED, "%s: a field's name has U+0000", w->label);
    int rc = make_any(w, &item, &size, type, brc_json_member(notes, name), err);
    if (rc < 0 && w->how == BRC_HDF5_NETCDF)
        brc_context(err, "the field %.80s", name);
    BRC_TRY(rc);
    rc = finish_type(w, out, H5Tinsert(*out, name, *at, item) >= 0, err);
    *at += size;
    brc_hdf5_close(item);
    return rc;
}

static int make_struct(const type_writer *w, hid_t *out, const brc_dtype *type,
                       const brc_json *data_type, const brc_json *note, brc_error *err)
{
    int is_old = strcmp(type->name, "structured") == 0; /* the fields of this type are pairs */
    const brc_json *notes = brc_json_member(note, "fields");
    brc_named named;
    size_t at = 0;

    BRC_TRY(brc_named_read(&named, data_type, err));
    *out = H5Tcreate(H5T_COMPOUND, type->item_size);
    BRC_TRY(finish_type(w, out, 1, err));
    const brc_json *f = brc_json_first(brc_json_member(named.config, "fields"));
    for (; f; f = brc_json_next(f)) {
        int rc = add_compound_field(w, out, &at, f, notes, is_old, err);
        if (rc < 0) {
            brc_hdf5_close(*out);
            *out = BRC_HDF5_NONE;
            return rc;
        }
    }
    return BRC_OK;
}

/* ---- any type -------------------------------- */

/* Returns the type of the items if a struct of fields "0", "1", ... stands for an array of n items;
 * otherwise NULL. */
static const brc_json *same_fields(const brc_json *data_type, uint64_t n)
{
    const brc_json *fields = brc_json_member(brc_json_member(data_type, "configuration"), "fields");
    const brc_json *first = brc_json_member(brc_json_item(fields, 0), "data_type");
    char name[24];
    uint64_t i = 0;
    if (brc_json_count(fields) != n)
        return NULL;
    for (const brc_json *f = brc_json_first(fields); f; f = brc_json_next(f)) {
        snprintf(name, sizeof(name), "%llu", (unsigned long long)i++);
        if (!brc_json_is(brc_json_member(f, "name"), name) ||
            !brc_json_equal(brc_json_member(f, "data_type"), first))
            return NULL;
    }
    return first;
}

/* Makes an array of this shape. Sets *out to BRC_HDF5_NONE if the struct does not stand for one. */
static int make_field_array(const type_writer *w, hid_t *out, const brc_json *data_type,
                            const brc_json *note, brc_error *err)
{
    hsize_t dims[H5S_MAX_RANK];
    unsigned ndim = 0;
    hid_t item;
    size_t size;
    for (const brc_json *d = brc_json_first(brc_json_member(note, "array")); d;
         d = brc_json_next(d), ndim++) {
        uint64_t n;
        if (ndim == H5S_MAX_RANK || !brc_json_uint(d, BRC_HDF5_FIELD_ITEMS, &n) || n == 0)
            return BRC_OK;
        data_type = same_fields(data_type, n);
        if (!data_type)
            return BRC_OK;
        dims[ndim] = n;
    }
    if (ndim == 0)
        return BRC_OK;
    BRC_TRY(make_any(w, &item, &size, data_type, brc_json_member(note, "item"), err));
    *out = H5Tarray_create2(item, ndim, dims);
    brc_hdf5_close(item);
    return finish_type(w, out, 1, err);
}

static int make_by_class(const type_writer *w, hid_t *out, const brc_dtype *type,
                         const brc_json *data_type, const brc_json *note, brc_error *err)
{
    int is_complex = type->klass == BRC_CLASS_COMPLEX;
    const brc_hdf5_float *f = float_named(type->name, is_complex);
    /* h5py reads other floats as the next type that NumPy has, but not inside a compound */
    int is_lost = f && !f->common && (is_complex || w->depth > 1);
    if (!is_own(type) || is_lost)
        return make_bytes(w, out, type, note, err);
    switch (type->klass) {
    case BRC_CLASS_BOOL:
        return make_bool(w, out, err);
    case BRC_CLASS_INT:
    case BRC_CLASS_UINT:
        return make_integer(w, out, type, note, err);
    case BRC_CLASS_FLOAT:
    case BRC_CLASS_COMPLEX:
        return is_complex ? make_complex(w, out, f, note, err) : make_float(w, out, f, err);
    case BRC_CLASS_STRUCT:
        if (w->depth > 1)
            BRC_TRY(make_field_array(w, out, data_type, note, err));
        if (*out >= 0)
            return BRC_OK;
        return make_struct(w, out, type, data_type, note, err);
    case BRC_CLASS_BYTES:
        if (type->item_size > 0)
            return make_fixed_text(w, out, type->item_size, note, err);
        return make_variable(w, out, 0, err);
    case BRC_CLASS_STRING:
        if (is_text(note, "reference", "object") || is_text(note, "reference", "region")) {
            *out = H5Tcopy(is_text(note, "reference", "object") ? H5T_STD_REF_OBJ
                                                                : H5T_STD_REF_DSETREG);
            return finish_type(w, out, 1, err);
        }
        return make_variable(w, out, 1, err);
    default:
        return make_bytes(w, out, type, note, err);
    }
}

/* ---- for NetCDF -------------------------------- */

/* Adds the axes of an array, which is a struct of the fields "0", "1", ..., and those of arrays in
 * it. Returns the type of the items. */
static const brc_json *add_field_axes(const brc_json *data_type, hsize_t *dims, unsigned *ndim)
{
    uint64_t all = 1, n;
    for (;;) {
        const brc_json *config = brc_json_member(data_type, "configuration");
        n = brc_json_count(brc_json_member(config, "fields"));
        const brc_json *item = n > 0 ? same_fields(data_type, n) : NULL;
        if (!item || *ndim >= H5S_MAX_RANK - 1 || all > BRC_HDF5_FIELD_ITEMS / n)
            return data_type;
        all *= n;
        dims[(*ndim)++] = n;
        data_type = item;
    }
}

/* Makes a struct, or an array inside a struct. NetCDF lacks arrays of arrays, so characters are the
 * last axis. */
static int make_netcdf_struct(const type_writer *w, hid_t *out, const brc_dtype *type,
                              const brc_json *data_type, brc_error *err)
{
    hsize_t dims[H5S_MAX_RANK], inner;
    unsigned ndim = 0;
    hid_t item;
    size_t size;
    const brc_json *of = w->depth > 1 ? add_field_axes(data_type, dims, &ndim) : data_type;
    if (ndim == 0)
        return make_struct(w, out, type, data_type, NULL, err);
    BRC_TRY(make_any(w, &item, &size, of, NULL, err));
    if (H5Tget_class(item) == H5T_ARRAY && H5Tget_array_dims2(item, &inner) == 1) {
        hid_t character = H5Tget_super(item);
        dims[ndim++] = inner;
        brc_hdf5_close(item);
        item = character;
    }
    *out = H5Tarray_create2(item, ndim, dims);
    brc_hdf5_close(item);
    return finish_type(w, out, 1, err);
}

static int make_characters(const type_writer *w, hid_t *out, size_t n, brc_error *err)
{
    hid_t character;
    hsize_t length = n;
    BRC_TRY(make_fixed_text(w, &character, 1, NULL, err));
    if (H5Tset_strpad(character, H5T_STR_NULLTERM) < 0) /* as netCDF-C does */
        return finish_type(w, &character, 0, err);
    if (n == 0) {
        *out = character;
        return BRC_OK;
    }
    *out = H5Tarray_create2(character, 1, &length);
    brc_hdf5_close(character);
    return finish_type(w, out, 1, err);
}

static int make_netcdf_number(const type_writer *w, hid_t *out, nc_type id, brc_error *err)
{
    size_t size = brc_netcdf_atomic_size(id);
    if (id == NC_FLOAT || id == NC_DOUBLE)
        *out = H5Tcopy(id == NC_DOUBLE ? H5T_IEEE_F64LE : H5T_IEEE_F32LE);
    else
        *out = H5Tcopy(brc_hdf5_integer(size, id == brc_netcdf_integer(size, 0)));
    return finish_type(w, out, *out >= 0 && little(*out), err);
}

static int make_for_netcdf(const type_writer *w, hid_t *out, const brc_dtype *type,
                           const brc_json *data_type, brc_error *err)
{
    brc_netcdf_type as;
    BRC_TRY(brc_netcdf_type_of(&as, type, 0, err));
    if (as.how != BRC_NETCDF_PLAIN || type->klass == BRC_CLASS_TIME ||
        (w->depth > 1 && type->item_size == 0))
        return brc_netcdf_no_type(type, err);
    if (as.id == NC_STRING)
        return make_variable(w, out, 1, err);
    if (as.id == NC_CHAR)
        return make_characters(w, out, as.chars, err);
    if (as.id != NC_NAT)
        return make_netcdf_number(w, out, as.id, err);
    switch (type->klass) {
    case BRC_CLASS_COMPLEX:
        return make_complex(w, out, float_named(type->name, 1), NULL, err);
    case BRC_CLASS_STRUCT:
        return make_netcdf_struct(w, out, type, data_type, err);
    case BRC_CLASS_BYTES:
        return make_variable(w, out, 0, err);
    default:
        return make_opaque(w, out, type->item_size, "", "", err);
    }
}

static int make_any(const type_writer *w, hid_t *out, size_t *size, const brc_json *data_type,
                    const brc_json *note, brc_error *err)
{
    brc_dtype *type;
    *out = BRC_HDF5_NONE;
    BRC_TRY(brc_dtype_open(&type, w->reg, data_type, NULL, err));
    *size = type->item_size;
    type_writer inner = *w;
    inner.depth++;
    int rc = w->how == BRC_HDF5_NETCDF ? make_for_netcdf(&inner, out, type, data_type, err)
                                       : make_by_class(&inner, out, type, data_type, note, err);
    brc_dtype_free(type);
    return rc;
}

int brc_hdf5_type_make(hid_t *out, const brc_registry *reg, const brc_json *data_type,
                       const brc_json *note, int how, const char *label, brc_error *err)
{
    type_writer w = { reg, label, how, 0 };
    size_t size;
    return make_any(&w, out, &size, data_type, note, err);
}

int brc_hdf5_native_layout(hid_t *type, const char *label, brc_error *err)
{
    type_writer w = { .label = label };
    hid_t native = H5Tget_native_type(*type, H5T_DIR_DEFAULT);
    brc_hdf5_close(*type);
    *type = native;
    return finish_type(&w, type, 1, err);
}
