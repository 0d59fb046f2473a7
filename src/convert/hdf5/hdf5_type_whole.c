/* The type of a dataset or attribute that becomes one data type, see hdf5_type.h. */
#include <stdlib.h>
#include <string.h>

#include "hdf5_type_part.h"

/* Strings and lists of bytes, which exist by themselves alone. */
static int read_list_type(brc_hdf5_type_reader *r, brc_hdf5_type_part *part, int kind,
                          brc_error *err)
{
    const char *name = kind == BRC_HDF5_STRING ? "\"string\"" : "\"bytes\"";
    r->out->kind = kind;
    if (kind == BRC_HDF5_STRING)
        BRC_TRY(brc_hdf5_part_copy(r, part, sizeof(char *), err));
    else
        part->memory = H5Tvlen_create(H5T_NATIVE_UINT8);
    part->size = kind == BRC_HDF5_STRING ? sizeof(char *) : sizeof(hvl_t);
    if (part->memory < 0)
        return brc_hdf5_type_failed(r, err);
    return brc_buf_text(&part->json, name, err);
}

/* References are text: see hdf5_reference.h. */
static int read_reference(brc_hdf5_type_reader *r, brc_hdf5_type_part *part, brc_error *err)
{
    int is_object = H5Tequal(part->file, H5T_STD_REF_OBJ) > 0;
    if (!is_object && H5Tequal(part->file, H5T_STD_REF_DSETREG) <= 0)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "%s: its references are of a kind that HDF5 1.10 does not have", r->label);
    r->out->kind = is_object ? BRC_HDF5_OBJECT : BRC_HDF5_REGION;
    BRC_TRY(
        brc_hdf5_part_copy(r, part, is_object ? sizeof(hobj_ref_t) : sizeof(hdset_reg_ref_t), err));
    BRC_TRY(brc_hdf5_part_note(part, "reference",
                               brc_json_new_string(is_object ? "object" : "region"), err));
    return brc_buf_text(&part->json, "\"string\"", err);
}

int brc_hdf5_is_byte_list(hid_t type)
{
    hid_t base = H5Tget_super(type);
    int is = base >= 0 && H5Tget_class(base) == H5T_INTEGER && H5Tget_size(base) == 1 &&
             H5Tget_sign(base) == H5T_SGN_NONE && H5Tget_precision(base) == 8;
    brc_hdf5_close(base);
    return is;
}

/* The element of an array type, whose axes become the dataset's last. */
static int read_array_type(brc_hdf5_type_reader *r, brc_hdf5_type_part *part, brc_error *err)
{
    hsize_t dims[BRC_MAX_NDIM];
    brc_hdf5_type_part item = { H5Tget_super(part->file), BRC_HDF5_NONE, 0, 0, BRC_BUF_INIT, NULL };
    int ndim = H5Tget_array_ndims(part->file), rc;
    uint64_t bytes;

    if (item.file < 0 || ndim < 0 || ndim > BRC_MAX_NDIM ||
        H5Tget_array_dims2(part->file, dims) < 0) {
        rc = brc_hdf5_type_failed(r, err);
        goto done;
    }
    BRC_GO(brc_hdf5_part_read(r, &item, err));
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
        rc = brc_hdf5_type_failed(r, err);
    brc_buf json = part->json;
    part->json = item.json;
    item.json = json;
    part->note = item.note;
    item.note = NULL;
done:
    brc_hdf5_close(item.file);
    brc_hdf5_part_close(&item);
    return rc;
}

static int read_whole(brc_hdf5_type_reader *r, brc_hdf5_type_part *part, brc_error *err)
{
    H5T_class_t class = H5Tget_class(part->file);
    if (class == H5T_STRING && H5Tis_variable_str(part->file) > 0)
        return read_list_type(r, part, BRC_HDF5_STRING, err);
    if (class == H5T_VLEN && brc_hdf5_is_byte_list(part->file))
        return read_list_type(r, part, BRC_HDF5_BYTES, err);
    if (class == H5T_ARRAY)
        return read_array_type(r, part, err);
    if (class == H5T_REFERENCE)
        return read_reference(r, part, err);
    return brc_hdf5_part_read(r, part, err);
}

int brc_hdf5_type_read(brc_hdf5_type *out, const brc_registry *reg, hid_t type, int writing,
                       const char *label, brc_error *err)
{
    brc_hdf5_type_reader r = { reg, out, label, writing, 0 };
    brc_hdf5_type_part part = { type, BRC_HDF5_NONE, 0, 0, BRC_BUF_INIT, NULL };
    int rc;

    memset(out, 0, sizeof(*out));
    out->memory = BRC_HDF5_NONE;
    BRC_GO(read_whole(&r, &part, err));
    int quoted = part.json.data[0] == '"'; /* a name stands without quotes */
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
    brc_hdf5_part_close(&part);
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

int brc_hdf5_dtype_json(brc_json **out, const char *dtype, brc_error *err)
{
    *out = NULL;
    if (dtype[0] == '{' || dtype[0] == '"')
        return brc_json_parse(out, dtype, strlen(dtype), err);
    if (!brc_utf8_valid(dtype, strlen(dtype)))
        return brc_fail(err, BRC_EINVAL, "the name of a data type is not UTF-8");
    *out = brc_json_new_string(dtype);
    return *out ? BRC_OK : brc_nomem(err);
}
