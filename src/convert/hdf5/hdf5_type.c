/* Converts HDF5's types to Zarr's, see hdf5_type.h. */
#include "hdf5_type.h"

#include <stdlib.h>
#include <string.h>

#include "../../codec/registry.h"

/* A type that is being read: its Zarr data type, its type in memory and its note. */
typedef struct brc_hdf5_type_part {
    hid_t file;     /* borrowed                                       */
    hid_t memory;   /* owned */
    size_t size;    /* in memory */
    size_t at;      /* its offset in the memory of the whole element */
    brc_buf json;   /* its data type */
    brc_json *note; /* owned; NULL: no note */
} brc_hdf5_type_part;

typedef struct brc_hdf5_type_reader {
    const brc_registry *reg;
    brc_hdf5_type *out;
    const char *label;
    int how, depth;
} brc_hdf5_type_reader;

static int hdf5_part_read(brc_hdf5_type_reader *r, brc_hdf5_type_part *part, brc_error *err);

/* ==== hdf5 type ================================ */

#define TYPE_DEPTH 12

const brc_hdf5_float brc_hdf5_floats[BRC_HDF5_FLOATS] = {
    { "float8_e5m2", "complex_float8_e5m2", 1, 2, 5, 15, 0 },
    { "float8_e4m3", "complex_float8_e4m3", 1, 3, 4, 7, 0 },
    { "float8_e3m4", "complex_float8_e3m4", 1, 4, 3, 3, 0 },
    { "float16", "complex_float16", 2, 10, 5, 15, 1 },
    { "bfloat16", "complex_bfloat16", 2, 7, 8, 127, 0 },
    { "float32", "complex64", 4, 23, 8, 127, 1 },
    { "float64", "complex128", 8, 52, 11, 1023, 1 },
};

static void hdf5_part_close(brc_hdf5_type_part *part)
{
    brc_hdf5_close(part->memory);
    brc_buf_dispose(&part->json);
    brc_json_free(part->note);
}

static int no_zarr_type(const brc_hdf5_type_reader *r, const char *what, brc_error *err)
{
    return brc_part_refuse(err, BRC_PART_TYPE, NULL, "%s: %s has no data type in Zarr", r->label,
                           what);
}

static int hdf5_type_failed(const brc_hdf5_type_reader *r, brc_error *err)
{
    return brc_hdf5_fail(err, BRC_EINVAL, "%s: its data type cannot be read", r->label);
}

/* Adds a member to the note. Takes over the value. */
static int hdf5_part_note(brc_hdf5_type_part *part, const char *name, brc_json *value,
                          brc_error *err)
{
    if (!part->note)
        part->note = brc_json_new_object();
    if (!part->note) {
        brc_json_free(value);
        return brc_nomem(err);
    }
    return brc_json_set(part->note, name, value, err);
}

/* Copies the file's type, so that the caller can change the copy. */
static int hdf5_part_copy(const brc_hdf5_type_reader *r, brc_hdf5_type_part *part, size_t size,
                          brc_error *err)
{
    part->memory = H5Tcopy(part->file);
    part->size = size;
    return part->memory < 0 ? hdf5_type_failed(r, err) : BRC_OK;
}

static int native_order(const brc_hdf5_type_reader *r, hid_t type, brc_error *err)
{
    H5T_order_t order = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? H5T_ORDER_BE : H5T_ORDER_LE;
    return H5Tset_order(type, order) < 0 ? hdf5_type_failed(r, err) : BRC_OK;
}

/* ---- integers -------------------------------- */

hid_t brc_hdf5_integer(size_t size, int is_signed)
{
    switch (size) {
    case 1:
        return is_signed ? H5T_NATIVE_INT8 : H5T_NATIVE_UINT8;
    case 2:
        return is_signed ? H5T_NATIVE_INT16 : H5T_NATIVE_UINT16;
    case 4:
        return is_signed ? H5T_NATIVE_INT32 : H5T_NATIVE_UINT32;
    default:
        return is_signed ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT64;
    }
}

/* Returns the least of 1, 2, 4 and 8 that holds so many bytes, or 0. */
static size_t whole_size(size_t size)
{
    for (size_t n = 1; n <= 8; n *= 2)
        if (size <= n)
            return n;
    return 0;
}

static int add_part(brc_hdf5_type *out, size_t at, size_t size, unsigned bits, brc_error *err)
{
    BRC_TRY(brc_grow_array((void **)&out->parts, &out->parts_cap, out->nparts + 1,
                           sizeof(*out->parts), err));
    out->parts[out->nparts++] = (struct brc_hdf5_part){ at, size, bits };
    return BRC_OK;
}

static int read_integer(const brc_hdf5_type_reader *r, brc_hdf5_type_part *part, brc_error *err)
{
    size_t size = H5Tget_size(part->file), bits = H5Tget_precision(part->file);
    H5T_sign_t sign = H5Tget_sign(part->file);
    H5T_order_t order = H5Tget_order(part->file);
    part->size = whole_size(size);
    if (size == 0 || bits == 0 || sign < 0 || sign >= H5T_NSGN)
        return hdf5_type_failed(r, err);
    if (part->size == 0 || (order != H5T_ORDER_LE && order != H5T_ORDER_BE))
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "%s: an integer of %zu bytes%s has no data type in Zarr", r->label, size,
                        part->size ? " in VAX order" : "");
    part->memory = H5Tcopy(brc_hdf5_integer(part->size, sign == H5T_SGN_2));
    if (part->memory < 0)
        return hdf5_type_failed(r, err);
    if (sign == H5T_SGN_2 && bits < 8 * part->size)
        BRC_TRY(add_part(r->out, part->at, part->size, (unsigned)bits, err));
    if (size > 1 || (bits != 2 && bits != 4) || H5Tget_offset(part->file) != 0)
        bits = 8 * part->size;
    return brc_buf_printf(&part->json, err, "\"%sint%zu\"", sign == H5T_SGN_2 ? "" : "u", bits);
}

static int read_bitfield(const brc_hdf5_type_reader *r, brc_hdf5_type_part *part, brc_error *err)
{
    const hid_t native[] = { H5T_NATIVE_B8, H5T_NATIVE_B16,
                             H5T_NATIVE_B32, H5T_NATIVE_B64 };
    size_t size = H5Tget_size(part->file), i = 0;
    part->size = whole_size(size);
    if (size == 0)
        return hdf5_type_failed(r, err);
    if (part->size == 0)
        return no_zarr_type(r, "a bit field of more than 8 bytes", err);
    while ((size_t)1 << i != part->size)
        i++;
    part->memory = H5Tcopy(native[i]);
    if (part->memory < 0)
        return hdf5_type_failed(r, err);
    BRC_TRY(hdf5_part_note(part, "class", brc_json_new_string("bitfield"), err));
    return brc_buf_printf(&part->json, err, "\"uint%zu\"", 8 * part->size);
}

/* ---- floats -------------------------------- */

/* The layout of a float that Zarr has, or NULL. */
static const brc_hdf5_float *float_layout(hid_t type)
{
    size_t size = H5Tget_size(type), sign = 0, exponent = 0, exponent_bits = 0, at = 0,
           bits = 0;
    H5T_order_t order = H5Tget_order(type);
    if (H5Tget_class(type) != H5T_FLOAT ||
        H5Tget_fields(type, &sign, &exponent, &exponent_bits, &at, &bits) < 0 ||
        H5Tget_norm(type) != H5T_NORM_IMPLIED || H5Tget_offset(type) != 0 ||
        H5Tget_precision(type) != 8 * size || (order != H5T_ORDER_LE && order != H5T_ORDER_BE))
        return NULL;
    for (int i = 0; i < BRC_HDF5_FLOATS; i++) {
        const brc_hdf5_float *f = &brc_hdf5_floats[i];
        if (f->size == size && sign == 8 * size - 1 && exponent == f->exponent_at &&
            exponent_bits == f->exponent_bits && at == 0 && bits == f->exponent_at &&
            H5Tget_ebias(type) == f->bias)
            return f;
    }
    return NULL;
}

/* Reads a float. The conversion changes the byte order alone, and so keeps the bits of a NaN. */
static int read_float(const brc_hdf5_type_reader *r, brc_hdf5_type_part *part, brc_error *err)
{
    const brc_hdf5_float *f = float_layout(part->file);
    if (!f)
        return brc_part_refuse(err, BRC_PART_TYPE, "convert them, for example to float64",
                               "%s: its floats of %zu bytes, %zu bits of them used, have no data "
                               "type in Zarr",
                               r->label, H5Tget_size(part->file), H5Tget_precision(part->file));
    BRC_TRY(hdf5_part_copy(r, part, f->size, err));
    BRC_TRY(native_order(r, part->memory, err));
    return brc_buf_printf(&part->json, err, "\"%s\"", f->dtype);
}

/* ---- enums -------------------------------- */

/* Reads the i-th member's name, as text, and its value. */
static int enum_member(const brc_hdf5_type_reader *r, const brc_hdf5_type_part *part, hid_t base,
                       unsigned i, brc_json **name, brc_json **value, brc_error *err)
{
    union { /* the library converts in place */
        uint8_t bytes[8];
        int64_t i;
        uint64_t u;
    } v = { { 0 } };
    int is_signed = H5Tget_sign(base) == H5T_SGN_2;
    *name = *value = NULL;
    if (H5Tget_size(base) > 8 || H5Tget_member_value(part->file, i, v.bytes) < 0 ||
        H5Tconvert(base, brc_hdf5_integer(8, is_signed), 1, v.bytes, NULL,
                           H5P_DEFAULT) < 0)
        return hdf5_type_failed(r, err);
    char *text = H5Tget_member_name(part->file, i);
    if (!text)
        return hdf5_type_failed(r, err);
    *name = brc_attr_text(text, strlen(text));
    (void)H5free_memory(text);
    *value = is_signed ? brc_attr_int(v.i) : brc_attr_uint(v.u);
    return *name && *value ? BRC_OK : brc_nomem(err);
}

static int read_members(const brc_hdf5_type_reader *r, const brc_hdf5_type_part *part, hid_t base,
                        brc_json **out, brc_error *err)
{
    int n = H5Tget_nmembers(part->file);
    *out = brc_json_new_object();
    if (!*out)
        return brc_nomem(err);
    if (n < 0)
        return hdf5_type_failed(r, err);
    for (int i = 0; i < n; i++) {
        brc_json *name, *value;
        const char *text;
        int rc = enum_member(r, part, base, (unsigned)i, &name, &value, err);
        if (rc == BRC_OK && brc_json_text(name, &text)) { /* the name was made of a C string */
            rc = brc_json_set(*out, text, value, err);
            value = NULL;
        }
        brc_json_free(name);
        brc_json_free(value);
        BRC_TRY(rc);
    }
    return BRC_OK;
}

/* Returns whether the enum is a boolean in h5py's form. */
static int is_bool_enum(const brc_json *members, size_t size)
{
    int64_t no, yes;
    return size == 1 && brc_json_count(members) == 2 &&
           brc_json_int(brc_json_member(members, "FALSE"), 0, 0, &no) &&
           brc_json_int(brc_json_member(members, "TRUE"), 1, 1, &yes);
}

static int read_enum(brc_hdf5_type_reader *r, brc_hdf5_type_part *part, brc_error *err)
{
    brc_hdf5_type_part base = {
        H5Tget_super(part->file), BRC_HDF5_NONE, 0, part->at, BRC_BUF_INIT, NULL
    };
    brc_json *members = NULL;
    int rc;

    if (base.file < 0)
        return hdf5_type_failed(r, err);
    /* the library takes one size for the other when it copies the members' values */
    if (H5Tget_size(base.file) != H5Tget_size(part->file)) {
        rc = hdf5_type_failed(r, err);
        goto done;
    }
    BRC_GO(read_integer(r, &base, err));
    BRC_GO(read_members(r, part, base.file, &members, err));
    if (r->how != BRC_HDF5_NETCDF && is_bool_enum(members, base.size)) {
        BRC_GO(add_part(r->out, part->at, 1, 0, err));
        BRC_GO(brc_buf_text(&part->json, "\"bool\"", err));
    } else {
        BRC_GO(hdf5_part_note(part, "enum", members, err));
        members = NULL;
        BRC_GO(brc_buf_append(&part->json, base.json.data, base.json.len, err));
    }
    part->size = base.size;
    if (r->how == BRC_HDF5_WRITING) {
        rc = hdf5_part_copy(r, part, base.size, err);
    } else {
        part->memory = base.memory;
        base.memory = BRC_HDF5_NONE;
    }
done:
    brc_json_free(members);
    brc_hdf5_close(base.file);
    hdf5_part_close(&base);
    return rc;
}

/* ---- strings and bytes -------------------------------- */

/* Reads a text of fixed length. The library ends texts at a zero byte or removes blanks, as each
 * file says; in memory texts are padded with zeros. */
static int append_text_type(brc_hdf5_type_part *part, brc_error *err)
{
    return brc_buf_printf(&part->json, err,
                          "{\"name\":\"null_terminated_bytes\",\"configuration\":"
                          "{\"length_bytes\":%zu}}",
                          part->size);
}

static int read_string(const brc_hdf5_type_reader *r, brc_hdf5_type_part *part, brc_error *err)
{
    size_t size = H5Tget_size(part->file);
    if (size == 0)
        return hdf5_type_failed(r, err);
    BRC_TRY(hdf5_part_copy(r, part, size, err));
    /* a single character is not padded, whatever the file says */
    int is_character = size == 1 && r->how == BRC_HDF5_NETCDF;
    if (!is_character && H5Tset_strpad(part->memory, H5T_STR_NULLPAD) < 0)
        return hdf5_type_failed(r, err);
    if (H5Tget_cset(part->file) == H5T_CSET_UTF8)
        BRC_TRY(hdf5_part_note(part, "charset", brc_json_new_string("UTF-8"), err));
    return append_text_type(part, err);
}

static int is_character_type(hid_t type)
{
    return H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0 &&
           H5Tget_size(type) == 1;
}

/* Reads an array of characters, which is a text within a compound of NetCDF. Returns 1, or 0 for
 * any other array. */
static int try_characters(const brc_hdf5_type_reader *r, brc_hdf5_type_part *part, brc_error *err)
{
    hid_t base = r->how == BRC_HDF5_NETCDF ? H5Tget_super(part->file) : BRC_HDF5_NONE;
    int is = base >= 0 && is_character_type(base) && H5Tget_array_ndims(part->file) == 1 &&
             H5Tget_size(part->file) > 0;
    brc_hdf5_close(base);
    if (!is)
        return 0;
    BRC_TRY(hdf5_part_copy(r, part, H5Tget_size(part->file), err));
    BRC_TRY(append_text_type(part, err));
    return 1;
}

/* Sets *type to the type that the tag names, if that type has this size. */
static int tagged_type(const brc_hdf5_type_reader *r, const char *tag, size_t size,
                       brc_dtype **type, int *big, brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    int rc = BRC_OK;
    *type = NULL;
    *big = 0;
    if (strncmp(tag, "NUMPY:", 6) == 0 && strlen(tag) > 8)
        rc = brc_dtype_open_npy(type, big, r->reg, tag + 6, &why);
    if (rc == BRC_ENOMEM)
        return brc_nomem(err);
    if (*type && (*type)->item_size != size) {
        brc_dtype_free(*type);
        *type = NULL;
    }
    return BRC_OK;
}

static int tag_json(const brc_hdf5_type_reader *r, brc_hdf5_type_part *part, const char *tag,
                    brc_error *err)
{
    brc_dtype *type;
    int big;
    BRC_TRY(tagged_type(r, tag, part->size, &type, &big, err));
    int swap = type && type->swap_unit > 1 && big != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    if (type && !(swap && r->depth > 1)) { /* inside another type it stays bytes */
        r->out->swap |= swap;
        int rc = brc_buf_text(&part->json, type->json, err);
        brc_dtype_free(type);
        return rc;
    }
    brc_dtype_free(type);
    if (*tag)
        BRC_TRY(hdf5_part_note(part, "tag", brc_attr_text(tag, strlen(tag)), err));
    return brc_buf_printf(&part->json, err, "\"r%zu\"", 8 * part->size);
}

static int read_opaque(const brc_hdf5_type_reader *r, brc_hdf5_type_part *part, brc_error *err)
{
    size_t size = H5Tget_size(part->file);
    char *tag = H5Tget_tag(part->file);
    int rc;
    if (size == 0 || !tag)
        rc = hdf5_type_failed(r, err);
    else if ((rc = hdf5_part_copy(r, part, size, err)) == BRC_OK)
        rc = tag_json(r, part, tag, err);
    if (tag)
        (void)H5free_memory(tag);
    return rc;
}

/* ---- compounds -------------------------------- */

static int is_pair(const char *first, const char *second)
{
    return (strcmp(first, "r") == 0 && strcmp(second, "i") == 0) ||
           (strcmp(first, "re") == 0 && strcmp(second, "im") == 0) ||
           (strcmp(first, "real") == 0 && strcmp(second, "imag") == 0);
}

/* Reads a complex number. Returns 1 if the members are its parts. */
static int try_complex(const brc_hdf5_type_reader *r, brc_hdf5_type_part *part, char *const *names,
                       const hid_t *types, brc_error *err)
{
    const brc_hdf5_float *f = is_pair(names[0], names[1]) ? float_layout(types[0]) : NULL;
    if (!f || H5Tequal(types[0], types[1]) <= 0)
        return 0;
    hid_t real = H5Tcopy(types[0]);
    part->size = 2 * f->size;
    part->memory = H5Tcreate(H5T_COMPOUND, part->size);
    int failed = real < 0 || part->memory < 0 || native_order(r, real, NULL) < 0 ||
                 H5Tinsert(part->memory, names[0], 0, real) < 0 ||
                 H5Tinsert(part->memory, names[1], f->size, real) < 0;
    brc_hdf5_close(real);
    if (failed)
        return hdf5_type_failed(r, err);
    if (strcmp(names[0], "r") != 0) {
        brc_json *parts = brc_json_new_array();
        int rc = parts ? BRC_OK : brc_nomem(err);
        for (int i = 0; i < 2 && rc == BRC_OK; i++)
            rc = brc_json_push(parts, brc_json_new_string(names[i]), err);
        if (rc < 0) {
            brc_json_free(parts);
            return rc;
        }
        BRC_TRY(hdf5_part_note(part, "parts", parts, err));
    }
    BRC_TRY(brc_buf_printf(&part->json, err, "\"%s\"", f->complex_dtype));
    return 1;
}

static int read_struct_member(brc_hdf5_type_reader *r, brc_hdf5_type_part *part, const char *name,
                              brc_hdf5_type_part *field, brc_json **notes, brc_error *err)
{
    if (!brc_utf8_valid(name, strlen(name)))
        return brc_fail(err, BRC_EINVAL, "%s: the name of a field is not UTF-8", r->label);
    int rc = hdf5_part_read(r, field, err);
    if (rc < 0) {
        brc_context(err, "the field \"%.60s\"", name);
        return rc;
    }
    BRC_TRY(brc_buf_text(&part->json, part->size ? ",{\"name\":" : "{\"name\":", err));
    BRC_TRY(brc_json_quote(&part->json, name, strlen(name), err));
    BRC_TRY(brc_buf_text(&part->json, ",\"data_type\":", err));
    BRC_TRY(brc_buf_append(&part->json, field->json.data, field->json.len, err));
    BRC_TRY(brc_buf_byte(&part->json, '}', err));
    part->size += field->size;
    if (!field->note)
        return BRC_OK;
    if (!*notes)
        *notes = brc_json_new_object();
    if (!*notes)
        return brc_nomem(err);
    brc_json *note = field->note;
    field->note = NULL;
    return brc_json_set(*notes, name, note, err);
}

/* Packs the fields in the order of the members. */
static int pack_fields(const brc_hdf5_type_reader *r, brc_hdf5_type_part *part, char *const *names,
                       const brc_hdf5_type_part *fields, size_t n, brc_error *err)
{
    part->memory = H5Tcreate(H5T_COMPOUND, part->size);
    if (part->memory < 0)
        return hdf5_type_failed(r, err);
    for (size_t i = 0; i < n; i++)
        if (H5Tinsert(part->memory, names[i], fields[i].at - part->at, fields[i].memory) <
            0)
            return hdf5_type_failed(r, err);
    return BRC_OK;
}

static int read_struct_type(brc_hdf5_type_reader *r, brc_hdf5_type_part *part, char *const *names,
                            const hid_t *types, size_t n, brc_error *err)
{
    brc_hdf5_type_part *fields = NULL;
    brc_json *notes = NULL;
    int rc;

    part->size = 0;
    BRC_GO(brc_new_array((void **)&fields, n, sizeof(*fields), err));
    for (size_t i = 0; i < n; i++)
        fields[i].memory = BRC_HDF5_NONE;
    BRC_GO(brc_buf_text(&part->json, "{\"name\":\"struct\",\"configuration\":{\"fields\":[", err));
    for (size_t i = 0; i < n; i++) {
        fields[i].file = types[i];
        fields[i].at = part->at + part->size;
        BRC_GO(read_struct_member(r, part, names[i], &fields[i], &notes, err));
    }
    BRC_GO(brc_buf_text(&part->json, "]}}", err));
    BRC_GO(pack_fields(r, part, names, fields, n, err));
    if (notes) {
        brc_json *given = notes;
        notes = NULL;
        BRC_GO(hdf5_part_note(part, "fields", given, err));
    }
done:
    for (size_t i = 0; fields && i < n; i++)
        hdf5_part_close(&fields[i]);
    free(fields);
    brc_json_free(notes);
    return rc;
}

/* Returns whether a member lies inside the compound. The library does not check this. */
static int member_is_inside(const brc_hdf5_type_part *part, unsigned i, hid_t type)
{
    size_t whole = H5Tget_size(part->file), size = H5Tget_size(type);
    size_t at = H5Tget_member_offset(part->file, i);
    return size > 0 && at <= whole && size <= whole - at;
}

static int read_compound(brc_hdf5_type_reader *r, brc_hdf5_type_part *part, brc_error *err)
{
    int count = H5Tget_nmembers(part->file), rc = BRC_OK;
    size_t n = count > 0 ? (size_t)count : 0;
    char **names = NULL;
    hid_t *types = NULL;

    if (n == 0)
        return hdf5_type_failed(r, err);
    BRC_GO(brc_new_array((void **)&names, n, sizeof(*names), err));
    BRC_GO(brc_new_array((void **)&types, n, sizeof(*types), err));
    for (size_t i = 0; i < n; i++)
        types[i] = BRC_HDF5_NONE;
    for (size_t i = 0; i < n; i++) {
        names[i] = H5Tget_member_name(part->file, (unsigned)i);
        types[i] = H5Tget_member_type(part->file, (unsigned)i);
        if (!names[i] || types[i] < 0 || !member_is_inside(part, (unsigned)i, types[i])) {
            rc = hdf5_type_failed(r, err);
            goto done;
        }
    }
    if (n == 2)
        BRC_GO(try_complex(r, part, names, types, err));
    rc = rc > 0 ? BRC_OK : read_struct_type(r, part, names, types, n, err);
done:
    for (size_t i = 0; i < n; i++) {
        if (names && names[i])
            (void)H5free_memory(names[i]);
        if (types)
            brc_hdf5_close(types[i]);
    }
    free(names);
    free(types);
    return rc;
}

/* ---- arrays inside compounds -------------------------------- */

#define MAX_FIELD_JSON ((size_t)1 << 20)

typedef struct field_array {
    hid_t item;
    int ndim;
    hsize_t dims[H5S_MAX_RANK];
    brc_hdf5_type_part first; /* the first item; all others must be like it */
    size_t size;              /* of the items so far */
} field_array;

/* Reads an array as structs of the fields "0", "1", ..., one level for each axis. */
static int read_field_axis(brc_hdf5_type_reader *r, brc_hdf5_type_part *part, field_array *array,
                           int axis, brc_error *err)
{
    if (axis == array->ndim) {
        brc_hdf5_type_part item = { array->item,  BRC_HDF5_NONE, 0, part->at + array->size,
                                    BRC_BUF_INIT, NULL };
        int rc = hdf5_part_read(r, &item, err);
        if (rc == BRC_OK)
            rc = brc_buf_append(&part->json, item.json.data, item.json.len, err);
        if (rc == BRC_OK && part->json.len > MAX_FIELD_JSON)
            rc = brc_fail(err, BRC_ELIMIT, "%s: its data type is too long", r->label);
        array->size += item.size;
        if (array->first.memory < 0 && rc == BRC_OK)
            array->first = item;
        else
            hdf5_part_close(&item);
        return rc;
    }
    BRC_TRY(brc_buf_text(&part->json, "{\"name\":\"struct\",\"configuration\":{\"fields\":[", err));
    for (hsize_t i = 0; i < array->dims[axis]; i++) {
        BRC_TRY(brc_buf_printf(&part->json, err, "%s{\"name\":\"%llu\",\"data_type\":",
                               i > 0 ? "," : "", (unsigned long long)i));
        BRC_TRY(read_field_axis(r, part, array, axis + 1, err));
        BRC_TRY(brc_buf_byte(&part->json, '}', err));
    }
    return brc_buf_text(&part->json, "]}}", err);
}

static int note_field_array(brc_hdf5_type_part *part, field_array *array, brc_error *err)
{
    brc_json *shape = brc_json_new_array(), *note = array->first.note;
    int rc = shape ? BRC_OK : brc_nomem(err);
    for (int i = 0; i < array->ndim && rc == BRC_OK; i++)
        rc = brc_json_push(shape, brc_json_new_uint(array->dims[i]), err);
    if (rc < 0) {
        brc_json_free(shape);
        return rc;
    }
    BRC_TRY(hdf5_part_note(part, "array", shape, err));
    array->first.note = NULL;
    return note ? hdf5_part_note(part, "item", note, err) : BRC_OK;
}

static int read_field_array(brc_hdf5_type_reader *r, brc_hdf5_type_part *part, brc_error *err)
{
    field_array array = { .item = H5Tget_super(part->file), .first.memory = BRC_HDF5_NONE };
    uint64_t n = 1;
    int rc = try_characters(r, part, err);
    if (rc != 0) {
        rc = rc < 0 ? rc : BRC_OK;
        goto done;
    }
    array.ndim = H5Tget_array_ndims(part->file);
    if (array.item < 0 || array.ndim < 1 || array.ndim > H5S_MAX_RANK ||
        H5Tget_array_dims2(part->file, array.dims) < 0) {
        rc = hdf5_type_failed(r, err);
        goto done;
    }
    for (int i = 0; i < array.ndim; i++)
        if (array.dims[i] == 0 || !brc_mul_u64(n, array.dims[i], &n) || n > BRC_HDF5_FIELD_ITEMS) {
            rc = no_zarr_type(r, "an array of so many items inside another type", err);
            goto done;
        }
    BRC_GO(read_field_axis(r, part, &array, 0, err));
    part->size = array.size;
    part->memory = H5Tarray_create2(array.first.memory, (unsigned)array.ndim, array.dims);
    rc = part->memory < 0 ? hdf5_type_failed(r, err) : note_field_array(part, &array, err);
done:
    brc_hdf5_close(array.item);
    hdf5_part_close(&array.first);
    return rc;
}

/* ---- any type -------------------------------- */

static int read_class(brc_hdf5_type_reader *r, brc_hdf5_type_part *part, brc_error *err)
{
    switch (H5Tget_class(part->file)) {
    case H5T_INTEGER:
        return read_integer(r, part, err);
    case H5T_FLOAT:
        return read_float(r, part, err);
    case H5T_BITFIELD:
        return read_bitfield(r, part, err);
    case H5T_ENUM:
        return read_enum(r, part, err);
    case H5T_OPAQUE:
        return read_opaque(r, part, err);
    case H5T_COMPOUND:
        return read_compound(r, part, err);
    case H5T_STRING:
        if (H5Tis_variable_str(part->file) > 0)
            return no_zarr_type(r, "a string of variable length inside another type", err);
        return read_string(r, part, err);
    case H5T_REFERENCE:
        return no_zarr_type(r, "a reference inside another type", err);
    case H5T_TIME:
        return no_zarr_type(r, "HDF5's time", err);
    case H5T_VLEN:
        return no_zarr_type(r, "a list of variable length inside another type", err);
    case H5T_ARRAY:
        return read_field_array(r, part, err);
    default:
        return hdf5_type_failed(r, err);
    }
}

/* Reads a type of a fixed size, by itself or inside another. */
static int hdf5_part_read(brc_hdf5_type_reader *r, brc_hdf5_type_part *part, brc_error *err)
{
    if (r->depth == TYPE_DEPTH)
        return brc_part_refuse(err, BRC_PART_TYPE, NULL,
                               "%s: its data type is nested more than %d deep", r->label,
                               TYPE_DEPTH);
    r->depth++;
    int rc = read_class(r, part, err);
    r->depth--;
    return rc;
}

/* ==== hdf5 type whole ================================ */

/* The type of a dataset or attribute that becomes one data type, see hdf5_type.h. */

/* Reads strings and lists of bytes, which cannot be inside other types. */
static int read_list_type(brc_hdf5_type_reader *r, brc_hdf5_type_part *part, int kind,
                          brc_error *err)
{
    const char *name = kind == BRC_HDF5_STRING ? "\"string\"" : "\"bytes\"";
    r->out->kind = kind;
    if (kind == BRC_HDF5_STRING || r->how == BRC_HDF5_NETCDF)
        BRC_TRY(hdf5_part_copy(r, part, sizeof(char *), err));
    else
        part->memory = H5Tvlen_create(H5T_NATIVE_UINT8);
    part->size = kind == BRC_HDF5_STRING ? sizeof(char *) : sizeof(hvl_t);
    if (part->memory < 0)
        return hdf5_type_failed(r, err);
    return brc_buf_text(&part->json, name, err);
}

/* Reads a type of references, which become text: see hdf5_tree.h. */
static int read_reference(brc_hdf5_type_reader *r, brc_hdf5_type_part *part, brc_error *err)
{
    int is_object = H5Tequal(part->file, H5T_STD_REF_OBJ) > 0;
    if (!is_object && H5Tequal(part->file, H5T_STD_REF_DSETREG) <= 0)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "%s: its references are of a kind that HDF5 1.10 does not have", r->label);
    r->out->kind = is_object ? BRC_HDF5_OBJECT : BRC_HDF5_REGION;
    BRC_TRY(
        hdf5_part_copy(r, part, is_object ? sizeof(hobj_ref_t) : sizeof(hdset_reg_ref_t), err));
    BRC_TRY(hdf5_part_note(part, "reference",
                           brc_json_new_string(is_object ? "object" : "region"), err));
    return brc_buf_text(&part->json, "\"string\"", err);
}

int brc_hdf5_is_byte_list(hid_t type, int how)
{
    hid_t base = H5Tget_super(type);
    int is = base >= 0 && H5Tget_class(base) == H5T_INTEGER && H5Tget_size(base) == 1 &&
             (H5Tget_sign(base) == H5T_SGN_NONE || how == BRC_HDF5_NETCDF) &&
             H5Tget_precision(base) == 8;
    is |= base >= 0 && how == BRC_HDF5_NETCDF && is_character_type(base);
    brc_hdf5_close(base);
    return is;
}

/* Reads an array type: its items become the elements, and its axes the dataset's last axes. */
static int read_array_type(brc_hdf5_type_reader *r, brc_hdf5_type_part *part, brc_error *err)
{
    hsize_t dims[BRC_MAX_NDIM];
    brc_hdf5_type_part item = { H5Tget_super(part->file), BRC_HDF5_NONE, 0, 0, BRC_BUF_INIT, NULL };
    int ndim = H5Tget_array_ndims(part->file), rc;
    uint64_t bytes;

    if (item.file < 0 || ndim < 0 || ndim > BRC_MAX_NDIM ||
        H5Tget_array_dims2(part->file, dims) < 0) {
        rc = hdf5_type_failed(r, err);
        goto done;
    }
    BRC_GO(hdf5_part_read(r, &item, err));
    r->out->ndim = ndim;
    for (int i = 0; i < ndim; i++)
        r->out->shape[i] = dims[i];
    if (!brc_shape_bytes(ndim, r->out->shape, item.size, &bytes) || bytes > UINT32_MAX) {
        rc = brc_part_refuse(err, BRC_PART_SIZE, NULL, "%s: its elements have more than 2^32 bytes",
                             r->label);
        goto done;
    }
    r->out->item = item.size;
    part->size = (size_t)bytes;
    part->memory = H5Tarray_create2(item.memory, (unsigned)ndim, dims);
    if (part->memory < 0)
        rc = hdf5_type_failed(r, err);
    brc_buf json = part->json;
    part->json = item.json;
    item.json = json;
    part->note = item.note;
    item.note = NULL;
done:
    brc_hdf5_close(item.file);
    hdf5_part_close(&item);
    return rc;
}

static int read_whole(brc_hdf5_type_reader *r, brc_hdf5_type_part *part, brc_error *err)
{
    H5T_class_t class = H5Tget_class(part->file);
    if (class == H5T_STRING && H5Tis_variable_str(part->file) > 0)
        return read_list_type(r, part, BRC_HDF5_STRING, err);
    if (class == H5T_VLEN && brc_hdf5_is_byte_list(part->file, r->how))
        return read_list_type(r, part, BRC_HDF5_BYTES, err);
    if (class == H5T_ARRAY) {
        int rc = try_characters(r, part, err);
        return rc == 0 ? read_array_type(r, part, err) : rc < 0 ? rc : BRC_OK;
    }
    if (class == H5T_REFERENCE)
        return read_reference(r, part, err);
    return hdf5_part_read(r, part, err);
}

int brc_hdf5_type_read(brc_hdf5_type *out, const brc_registry *reg, hid_t type, int how,
                       const char *label, brc_error *err)
{
    brc_hdf5_type_reader r = { reg, out, label, how, 0 };
    brc_hdf5_type_part part = { type, BRC_HDF5_NONE, 0, 0, BRC_BUF_INIT, NULL };
    int rc;

    memset(out, 0, sizeof(*out));
    out->memory = BRC_HDF5_NONE;
    BRC_GO(read_whole(&r, &part, err));
    int quoted = part.json.data[0] == '"'; /* a name is passed without quotes */
    BRC_GO(brc_dup_n(&out->dtype, (char *)part.json.data + quoted,
                     part.json.len - 2 * (size_t)quoted, err));
    out->memory = part.memory;
    out->size = part.size;
    if (out->ndim == 0)
        out->item = part.size;
    out->note = part.note;
    part.memory = BRC_HDF5_NONE;
    part.note = NULL;
done:
    hdf5_part_close(&part);
    if (rc < 0)
        brc_hdf5_type_close(out);
    return rc;
}

void brc_hdf5_type_close(brc_hdf5_type *type)
{
    brc_hdf5_close(type->memory);
    brc_json_free(type->note);
    free(type->dtype);
    free(type->parts);
    memset(type, 0, sizeof(*type));
    type->memory = BRC_HDF5_NONE;
}
