/* Types of NetCDF as data types of Zarr, see netcdf_type.h. */
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/json.h"
#include "netcdf_att.h"
#include "netcdf_type.h"

#define MAX_TYPE_DEPTH 16
#define MAX_TYPE_JSON ((size_t)1 << 20)
#define MAX_FIELD_ITEMS 4096 /* of an array that becomes a struct */
#define MAX_FIELD_NDIM 8
#define MAX_FIELD_BYTES ((size_t)16 << 20)

typedef struct type_in {
    int group;
    const char *label;
    brc_netcdf_type *out; /* whose moves are added to */
} type_in;

/* A type, or one that a field has, at these places in memory. */
typedef struct type_at {
    nc_type type;
    size_t file, here;
    size_t size; /* set: of what is here */
    int depth;
} type_at;

static int append_type(const type_in *in, type_at *at, brc_buf *json, brc_error *err);

static int cannot_read_type(const type_in *in, int status, brc_error *err)
{
    return brc_netcdf_fail(status, BRC_EINVAL, "cannot read the type of", in->label, err);
}

static int no_such_type(const type_in *in, const char *what, brc_error *err)
{
    return brc_part_refuse(err, BRC_PART_TYPE, NULL, "%s: Zarr has no data type for %s", in->label,
                           what);
}

static const char *plain_name(nc_type type)
{
    switch (type) {
    case NC_BYTE:
        return "\"int8\"";
    case NC_UBYTE:
        return "\"uint8\"";
    case NC_SHORT:
        return "\"int16\"";
    case NC_USHORT:
        return "\"uint16\"";
    case NC_INT:
        return "\"int32\"";
    case NC_UINT:
        return "\"uint32\"";
    case NC_INT64:
        return "\"int64\"";
    case NC_UINT64:
        return "\"uint64\"";
    case NC_FLOAT:
        return "\"float32\"";
    case NC_DOUBLE:
        return "\"float64\"";
    default:
        return NULL;
    }
}

static int append_chars(brc_buf *json, size_t n, brc_error *err)
{
    return brc_buf_printf(json, err,
                          "{\"name\":\"null_terminated_bytes\",\"configuration\":"
                          "{\"length_bytes\":%lu}}",
                          (unsigned long)n);
}

static int append_plain(const type_in *in, type_at *at, brc_buf *json, brc_error *err)
{
    const char *name = plain_name(at->type);
    at->size = brc_netcdf_atomic_size(at->type);
    if (at->type == NC_STRING)
        return no_such_type(in, "texts within a compound", err);
    BRC_TRY(brc_netcdf_add_move(in->out, at->file, at->here, at->size, err));
    return name ? brc_buf_text(json, name, err) : append_chars(json, 1, err);
}

/* ---- compounds --------------------------------------- */

typedef struct in_field {
    char name[BRC_NETCDF_NAME_MAX];
    size_t offset;
    nc_type type;
    int ndims, sizes[NC_MAX_VAR_DIMS];
} in_field;

static int read_in_field(const type_in *in, nc_type type, size_t i, in_field *out, brc_error *err)
{
    memset(out, 0, sizeof(*out));
    int status = nc_inq_compound_field(in->group, type, (int)i, out->name, &out->offset,
                                                &out->type, &out->ndims, out->sizes);
    if (status)
        return cannot_read_type(in, status, err);
    if (!brc_utf8_valid(out->name, strlen(out->name)))
        return brc_fail(err, BRC_EINVAL, "%s: a field's name is not UTF-8", in->label);
    return BRC_OK;
}

/* item: bytes of an element in the file's memory. */
static int append_array(const type_in *in, const in_field *field, int axis, size_t item,
                        type_at *at, brc_buf *json, brc_error *err)
{
    size_t here = at->here, step = item;
    if (axis == field->ndims)
        return append_type(in, at, json, err);
    for (int k = axis + 1; k < field->ndims; k++)
        step *= (size_t)field->sizes[k];
    BRC_TRY(brc_buf_text(json, "{\"name\":\"struct\",\"configuration\":{\"fields\":[", err));
    for (int i = 0; i < field->sizes[axis]; i++) {
        type_at one = *at;
        one.file += (size_t)i * step;
        one.here = here;
        BRC_TRY(brc_buf_printf(json, err, "%s{\"name\":\"%d\",\"data_type\":", i ? "," : "", i));
        BRC_TRY(append_array(in, field, axis + 1, item, &one, json, err));
        BRC_TRY(brc_buf_byte(json, '}', err));
        here += one.size;
    }
    at->size = here - at->here;
    return brc_buf_text(json, "]}}", err);
}

static int append_field(const type_in *in, const in_field *field, type_at *at, brc_buf *json,
                        brc_error *err)
{
    size_t item = 0, n = 1;
    if (field->ndims == 0)
        return append_type(in, at, json, err);
    for (int k = 0; k < field->ndims; k++) {
        if (field->sizes[k] < 1 || (size_t)field->sizes[k] > MAX_FIELD_BYTES / n)
            return no_such_type(in, "a field that is an array without elements, or of too many",
                                err);
        n *= (size_t)field->sizes[k];
    }
    if (field->type == NC_CHAR && field->ndims == 1) {
        at->size = n;
        BRC_TRY(brc_netcdf_add_move(in->out, at->file, at->here, n, err));
        return append_chars(json, n, err);
    }
    if (n > MAX_FIELD_ITEMS || field->ndims > MAX_FIELD_NDIM)
        return no_such_type(in, "a field that is too large an array", err);
    int status = nc_inq_type(in->group, field->type, NULL, &item);
    return status ? cannot_read_type(in, status, err)
                  : append_array(in, field, 0, item, at, json, err);
}

static int append_compound(const type_in *in, type_at *at, size_t nfields, brc_buf *json,
                           brc_error *err)
{
    size_t here = at->here;
    in_field field;

    if (nfields == 0)
        return no_such_type(in, "a compound without fields", err);
    BRC_TRY(brc_buf_text(json, "{\"name\":\"struct\",\"configuration\":{\"fields\":[", err));
    for (size_t i = 0; i < nfields; i++) {
        BRC_TRY(read_in_field(in, at->type, i, &field, err));
        type_at one = { field.type, at->file + field.offset, here, 0, at->depth + 1 };
        BRC_TRY(brc_buf_text(json, i ? ",{\"name\":" : "{\"name\":", err));
        BRC_TRY(brc_json_quote(json, field.name, strlen(field.name), err));
        BRC_TRY(brc_buf_text(json, ",\"data_type\":", err));
        BRC_TRY(append_field(in, &field, &one, json, err));
        BRC_TRY(brc_buf_byte(json, '}', err));
        here += one.size;
    }
    at->size = here - at->here;
    return brc_buf_text(json, "]}}", err);
}

/* Two floats of one type that are a complex number by their names. */
static int find_complex(int *is, const type_in *in, nc_type type, size_t nfields, brc_error *err)
{
    static const char *const names[][2] = { { "r", "i" }, { "re", "im" }, { "real", "imag" } };
    in_field a, b;

    *is = 0;
    if (nfields != 2)
        return BRC_OK;
    BRC_TRY(read_in_field(in, type, 0, &a, err));
    BRC_TRY(read_in_field(in, type, 1, &b, err));
    if (a.type != b.type || (a.type != NC_FLOAT && a.type != NC_DOUBLE) || a.ndims || b.ndims ||
        a.offset != 0 || b.offset != brc_netcdf_atomic_size(a.type))
        return BRC_OK;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        *is |= strcmp(a.name, names[i][0]) == 0 && strcmp(b.name, names[i][1]) == 0;
    return BRC_OK;
}

static int append_struct(const type_in *in, type_at *at, size_t nfields, size_t size, brc_buf *json,
                         brc_error *err)
{
    int is_complex;
    BRC_TRY(find_complex(&is_complex, in, at->type, nfields, err));
    if (!is_complex)
        return append_compound(in, at, nfields, json, err);
    in->out->is_complex |= at->depth == 0;
    at->size = size;
    BRC_TRY(brc_netcdf_add_move(in->out, at->file, at->here, size, err));
    return brc_buf_text(json, size == 8 ? "\"complex64\"" : "\"complex128\"", err);
}

/* ---- any type ------------------------------------------ */

static int append_type(const type_in *in, type_at *at, brc_buf *json, brc_error *err)
{
    size_t size = 0, nfields = 0;
    nc_type base = NC_NAT;
    int kind = 0;

    if (at->depth > MAX_TYPE_DEPTH || json->len > MAX_TYPE_JSON)
        return brc_part_refuse(err, BRC_PART_TYPE, NULL, "%s: its type is too deep or too long",
                               in->label);
    if (brc_netcdf_atomic_size(at->type) > 0)
        return append_plain(in, at, json, err);
    int status =
        nc_inq_user_type(in->group, at->type, NULL, &size, &base, &nfields, &kind);
    if (status)
        return cannot_read_type(in, status, err);
    switch (kind) {
    case NC_ENUM:
        at->type = base;
        return append_plain(in, at, json, err);
    case NC_OPAQUE:
        at->size = size;
        BRC_TRY(brc_netcdf_add_move(in->out, at->file, at->here, size, err));
        return brc_buf_printf(json, err, "\"r%llu\"", 8ULL * size);
    case NC_COMPOUND:
        return append_struct(in, at, nfields, size, json, err);
    default:
        return no_such_type(in, "lists of variable length", err);
    }
}

/* Types of variable length, which only a whole variable can have. */
static int read_variable_type(brc_netcdf_type *out, const type_in *in, nc_type type, brc_error *err)
{
    size_t size = 0, nfields = 0;
    nc_type base = NC_NAT;
    int kind = 0;

    if (type == NC_STRING) {
        out->how = BRC_NETCDF_STRINGS;
        out->number = NC_STRING;
        return brc_buf_text(&out->dtype, "string", err);
    }
    int status = nc_inq_user_type(in->group, type, NULL, &size, &base, &nfields, &kind);
    if (status)
        return cannot_read_type(in, status, err);
    out->is_enum = kind == NC_ENUM;
    if (out->is_enum)
        out->number = base;
    if (kind != NC_VLEN || (base != NC_BYTE && base != NC_UBYTE && base != NC_CHAR))
        return BRC_OK;
    out->how = BRC_NETCDF_LISTS;
    return brc_buf_text(&out->dtype, "bytes", err);
}

/* A name alone where that is all; else JSON. */
static int finish_dtype(brc_netcdf_type *out, brc_error *err)
{
    uint8_t *text = out->dtype.data;
    if (out->how == BRC_NETCDF_PLAIN && text[0] == '"') {
        memmove(text, text + 1, out->dtype.len - 2);
        out->dtype.len -= 2;
    }
    return brc_buf_terminate(&out->dtype, err);
}

int brc_netcdf_type_in(brc_netcdf_type *out, int group, nc_type type,
                       const char *label, brc_error *err)
{
    type_in in = { group, label, out };
    type_at at = { .type = type };
    int rc, status;

    memset(out, 0, sizeof(*out));
    out->id = type;
    status = nc_inq_type(group, type, NULL, &out->file_size);
    if (status) {
        rc = cannot_read_type(&in, status, err);
        goto done;
    }
    if (plain_name(type) || type == NC_CHAR)
        out->number = type;
    else
        BRC_GO(read_variable_type(out, &in, type, err));
    if (out->how == BRC_NETCDF_PLAIN) {
        BRC_GO(append_type(&in, &at, &out->dtype, err));
        out->here_size = at.size;
    }
    BRC_GO(finish_dtype(out, err));
    const brc_netcdf_move *moves = out->moves;
    for (size_t i = 0; i < out->nmoves; i++)
        if (moves[i].file > out->file_size || moves[i].len > out->file_size - moves[i].file) {
            rc = brc_fail(err, BRC_EINVAL, "%s: its type has fields outside itself", label);
            goto done;
        }
    if (out->nmoves == 1 && out->file_size == out->here_size)
        out->nmoves = 0; /* all in one piece */
done:
    if (rc < 0)
        brc_netcdf_type_free(out);
    return rc;
}
