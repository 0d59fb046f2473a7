/* See hdf5_same.h. */
#include "hdf5_same.h"

#include <stdlib.h>
#include <string.h>

#include "hdf5_kit.h"

typedef struct same_side {
    hid_t file, object;
} same_side;

/* ---- elements -------------------------------- */

static void name_of(char *name, size_t size, hid_t file, H5R_type_t kind, const void *reference)
{
    static const uint8_t nothing[sizeof(hdset_reg_ref_t)];
    name[0] = '\0';
    if (memcmp(reference, nothing, kind == H5R_OBJECT ? sizeof(hobj_ref_t) : sizeof(nothing)) == 0)
        return;
    hid_t object = H5(H5Rdereference2(file, H5P_DEFAULT, kind, reference));
    H5(H5Iget_name(object, name, size));
    H5(H5Oclose(object));
}

static void same_reference(hid_t file_a, hid_t file_b, hid_t type, const void *a, const void *b,
                           const char *label)
{
    char name_a[256], name_b[256];
    H5R_type_t kind = H5Tequal(type, H5T_STD_REF_OBJ) > 0 ? H5R_OBJECT : H5R_DATASET_REGION;
    name_of(name_a, sizeof(name_a), file_a, kind, a);
    name_of(name_b, sizeof(name_b), file_b, kind, b);
    ck_assert_msg(strcmp(name_a, name_b) == 0, "%s: to %s instead of %s", label, name_b, name_a);
    if (kind == H5R_OBJECT || !name_a[0])
        return;
    hid_t space_a = H5(H5Rget_region(file_a, kind, a)),
          space_b = H5(H5Rget_region(file_b, kind, b));
    hssize_t n = H5(H5Sget_select_npoints(space_a));
    ck_assert_int_eq(H5Sget_select_npoints(space_b), n);
    ck_assert_int_eq(H5Sget_select_type(space_a), H5Sget_select_type(space_b));
    if (H5Sget_select_type(space_a) == H5S_SEL_HYPERSLABS) { /* as many, and none besides */
        hid_t both = H5(H5Scombine_select(space_a, H5S_SELECT_OR, space_b));
        ck_assert_int_eq(H5Sget_select_npoints(both), n);
        H5(H5Sclose(both));
    } else if (H5Sget_select_type(space_a) == H5S_SEL_POINTS) {
        hsize_t points_a[64], points_b[64];
        size_t size = (size_t)n * (size_t)H5(H5Sget_simple_extent_ndims(space_a)) * sizeof(hsize_t);
        ck_assert_uint_le(size, sizeof(points_a));
        H5(H5Sget_select_elem_pointlist(space_a, 0, (hsize_t)n, points_a));
        H5(H5Sget_select_elem_pointlist(space_b, 0, (hsize_t)n, points_b));
        ck_assert_mem_eq(points_a, points_b, size);
    }
    H5(H5Sclose(space_a));
    H5(H5Sclose(space_b));
}

static void same_values(hid_t file_a, hid_t file_b, hid_t type, const uint8_t *a, const uint8_t *b,
                        const char *label)
{
    hsize_t dims[H5S_MAX_RANK], n = 1;
    hid_t base;
    size_t size = H5Tget_size(type);
    switch (H5Tget_class(type)) {
    case H5T_STRING:
        if (H5Tis_variable_str(type) > 0)
            ck_assert_msg(
                strcmp(*(char *const *)(const void *)a ? *(char *const *)(const void *)a : "",
                       *(char *const *)(const void *)b ? *(char *const *)(const void *)b : "") == 0,
                "%s: another text", label);
        else
            ck_assert_msg(memcmp(a, b, size) == 0, "%s: another text", label);
        return;
    case H5T_COMPOUND:
        for (int i = 0; i < H5Tget_nmembers(type); i++) {
            size_t at = H5Tget_member_offset(type, (unsigned)i);
            base = H5(H5Tget_member_type(type, (unsigned)i));
            same_values(file_a, file_b, base, a + at, b + at, label);
            H5(H5Tclose(base));
        }
        return;
    case H5T_VLEN: {
        const hvl_t *list_a = (const void *)a, *list_b = (const void *)b;
        ck_assert_msg(list_a->len == list_b->len, "%s: %zu items instead of %zu", label,
                      list_b->len, list_a->len);
        base = H5(H5Tget_super(type));
        n = list_a->len;
        if (n > 0 && (H5Tget_class(base) == H5T_INTEGER || H5Tget_class(base) == H5T_FLOAT)) {
            ck_assert_msg(memcmp(list_a->p, list_b->p, n * H5Tget_size(base)) == 0,
                          "%s: a list with another value", label);
            n = 0;
        }
        for (size_t i = 0; i < n; i++)
            same_values(file_a, file_b, base, (uint8_t *)list_a->p + i * H5Tget_size(base),
                        (uint8_t *)list_b->p + i * H5Tget_size(base), label);
        H5(H5Tclose(base));
        return;
    }
    case H5T_ARRAY:
        base = H5(H5Tget_super(type));
        for (int i = 0; i < H5(H5Tget_array_dims2(type, dims)); i++)
            n *= dims[i];
        for (size_t i = 0; i < n; i++)
            same_values(file_a, file_b, base, a + i * H5Tget_size(base), b + i * H5Tget_size(base),
                        label);
        H5(H5Tclose(base));
        return;
    case H5T_REFERENCE:
        same_reference(file_a, file_b, type, a, b, label);
        return;
    default:
        ck_assert_msg(memcmp(a, b, size) == 0, "%s: another value", label);
    }
}

static void same_elements(const same_side *a, const same_side *b, hid_t type, hid_t space,
                          const uint8_t *data_a, const uint8_t *data_b, const char *label)
{
    hssize_t n = H5(H5Sget_simple_extent_npoints(space));
    size_t size = H5Tget_size(type);
    for (hssize_t i = 0; i < n; i++)
        same_values(a->file, b->file, type, data_a + (size_t)i * size, data_b + (size_t)i * size,
                    label);
}

/* ---- types and shapes -------------------------------- */

static void same_types(const same_side *a, const same_side *b, hid_t type_a, hid_t type_b,
                       const char *label)
{
    char name_a[256] = "", name_b[256] = "";
    ck_assert_msg(H5Tequal(type_a, type_b) > 0, "%s: another type", label);
    ck_assert_msg(H5Tcommitted(type_a) == H5Tcommitted(type_b), "%s: its type is%s committed",
                  label, H5Tcommitted(type_b) > 0 ? "" : " not");
    if (H5Tcommitted(type_a) <= 0)
        return;
    H5O_info_t info_a, info_b;
    H5(H5Oget_info2(type_a, &info_a, H5O_INFO_BASIC));
    H5(H5Oget_info2(type_b, &info_b, H5O_INFO_BASIC));
    hobj_ref_t to_a = info_a.addr, to_b = info_b.addr;
    name_of(name_a, sizeof(name_a), a->file, H5R_OBJECT, &to_a);
    name_of(name_b, sizeof(name_b), b->file, H5R_OBJECT, &to_b);
    ck_assert_str_eq(name_a, name_b);
}

static void same_spaces(hid_t a, hid_t b, const char *label)
{
    ck_assert_msg(H5Sextent_equal(a, b) > 0, "%s: another shape", label);
}

/* ---- attributes -------------------------------- */

typedef struct same_attrs {
    const same_side *a, *b;
    const char *label;
} same_attrs;

static herr_t same_attribute(hid_t object, const char *name, const H5A_info_t *info, void *ctx)
{
    const same_attrs *s = ctx;
    char label[512];
    (void)info;
    snprintf(label, sizeof(label), "%s @%s", s->label, name);
    ck_assert_msg(H5Aexists(s->b->object, name) > 0, "%s is missing", label);
    if (strcmp(name, "_NCProperties") == 0) /* says who wrote the file */
        return 0;
    hid_t a = H5(H5Aopen(object, name, H5P_DEFAULT)),
          b = H5(H5Aopen(s->b->object, name, H5P_DEFAULT));
    hid_t type_a = H5(H5Aget_type(a)), type_b = H5(H5Aget_type(b));
    hid_t space_a = H5(H5Aget_space(a)), space_b = H5(H5Aget_space(b));
    same_types(s->a, s->b, type_a, type_b, label);
    same_spaces(space_a, space_b, label);
    size_t n = (size_t)H5Sget_simple_extent_npoints(space_a) + 1;
    uint8_t *data_a = calloc(n, H5Tget_size(type_a)), *data_b = calloc(n, H5Tget_size(type_a));
    ck_assert(data_a && data_b);
    if (n > 1) {
        H5(H5Aread(a, type_a, data_a));
        H5(H5Aread(b, type_a, data_b));
        same_elements(s->a, s->b, type_a, space_a, data_a, data_b, label);
        H5(H5Dvlen_reclaim(type_a, space_a, H5P_DEFAULT, data_a));
        H5(H5Dvlen_reclaim(type_a, space_a, H5P_DEFAULT, data_b));
    }
    free(data_a);
    free(data_b);
    H5(H5Sclose(space_a));
    H5(H5Sclose(space_b));
    H5(H5Tclose(type_a));
    H5(H5Tclose(type_b));
    H5(H5Aclose(a));
    H5(H5Aclose(b));
    return 0;
}

static void same_attributes(const same_side *a, const same_side *b, const char *label)
{
    same_attrs s = { a, b, label };
    H5O_info_t info_a, info_b;
    H5(H5Aiterate2(a->object, H5_INDEX_NAME, H5_ITER_INC, NULL, same_attribute, &s));
    H5(H5Oget_info2(a->object, &info_a, H5O_INFO_NUM_ATTRS));
    H5(H5Oget_info2(b->object, &info_b, H5O_INFO_NUM_ATTRS));
    ck_assert_msg(info_a.num_attrs == info_b.num_attrs, "%s: %d attributes instead of %d", label,
                  (int)info_b.num_attrs, (int)info_a.num_attrs);
}

/* ---- storage -------------------------------- */

static void same_storage(hid_t a, hid_t b, const char *label)
{
    hid_t plist_a = H5(H5Dget_create_plist(a)), plist_b = H5(H5Dget_create_plist(b));
    hsize_t chunk_a[H5S_MAX_RANK], chunk_b[H5S_MAX_RANK];
    H5D_fill_value_t fill_a, fill_b;
    hid_t type = H5(H5Dget_type(a));
    int is_one = H5Tget_class(type) != H5T_VLEN && H5Tget_class(type) != H5T_COMPOUND;
    H5(H5Tclose(type));
    if (is_one && H5Pget_layout(plist_a) != H5D_CHUNKED) { /* then chunks are ours */
        H5(H5Pclose(plist_a));
        H5(H5Pclose(plist_b));
        return;
    }
    if (H5Pget_layout(plist_a) == H5D_CHUNKED) {
        int n = (int)H5(H5Pget_chunk(plist_a, H5S_MAX_RANK, chunk_a));
        ck_assert_msg(H5Pget_chunk(plist_b, H5S_MAX_RANK, chunk_b) == n, "%s: no chunks", label);
        ck_assert_mem_eq(chunk_a, chunk_b, (size_t)n * sizeof(chunk_a[0]));
    }
    H5(H5Pfill_value_defined(plist_a, &fill_a));
    H5(H5Pfill_value_defined(plist_b, &fill_b));
    ck_assert_msg(fill_a == fill_b, "%s: a fill value is set: %d instead of %d", label, fill_b,
                  fill_a);
    H5(H5Pclose(plist_a));
    H5(H5Pclose(plist_b));
}

/* ---- objects -------------------------------- */

static void same_dataset(const same_side *a, const same_side *b, const char *label)
{
    hid_t type_a = H5(H5Dget_type(a->object)), type_b = H5(H5Dget_type(b->object));
    hid_t space_a = H5(H5Dget_space(a->object)), space_b = H5(H5Dget_space(b->object));
    same_types(a, b, type_a, type_b, label);
    same_spaces(space_a, space_b, label);
    size_t n = (size_t)H5Sget_simple_extent_npoints(space_a) + 1;
    uint8_t *data_a = calloc(n, H5Tget_size(type_a)), *data_b = calloc(n, H5Tget_size(type_a));
    ck_assert(data_a && data_b);
    H5(H5Dread(a->object, type_a, H5S_ALL, H5S_ALL, H5P_DEFAULT, data_a));
    H5(H5Dread(b->object, type_a, H5S_ALL, H5S_ALL, H5P_DEFAULT, data_b));
    same_elements(a, b, type_a, space_a, data_a, data_b, label);
    H5(H5Dvlen_reclaim(type_a, space_a, H5P_DEFAULT, data_a));
    H5(H5Dvlen_reclaim(type_a, space_a, H5P_DEFAULT, data_b));
    free(data_a);
    free(data_b);
    H5(H5Sclose(space_a));
    H5(H5Sclose(space_b));
    H5(H5Tclose(type_a));
    H5(H5Tclose(type_b));
}

static herr_t same_object(hid_t root, const char *name, const H5O_info_t *info, void *ctx)
{
    same_side *sides = ctx, a = sides[0], b = sides[1];
    H5O_info_t seen;
    a.object = H5(H5Oopen(root, name, H5P_DEFAULT));
    b.object = H5Oopen(b.file, name, H5P_DEFAULT);
    ck_assert_msg(b.object >= 0, "%s is missing", name);
    H5(H5Oget_info2(b.object, &seen, H5O_INFO_BASIC));
    ck_assert_msg(info->type == seen.type, "%s is an object of another kind", name);
    if (info->type == H5O_TYPE_DATASET) {
        same_dataset(&a, &b, name);
        same_storage(a.object, b.object, name);
    }
    if (info->type == H5O_TYPE_NAMED_DATATYPE)
        ck_assert_msg(H5Tequal(a.object, b.object) > 0, "%s: another type", name);
    same_attributes(&a, &b, name);
    H5(H5Oclose(a.object));
    H5(H5Oclose(b.object));
    return 0;
}

static herr_t count_object(hid_t root, const char *name, const H5O_info_t *info, void *ctx)
{
    (void)root, (void)name, (void)info;
    ++*(int *)ctx;
    return 0;
}

void hdf5_same_files(const char *expected, const char *seen)
{
    /* to write: before it reads what is not stored, the library stores a fill value with texts */
    same_side sides[2] = { { H5(H5Fopen(expected, H5F_ACC_RDWR, H5P_DEFAULT)), 0 },
                           { H5(H5Fopen(seen, H5F_ACC_RDWR, H5P_DEFAULT)), 0 } };
    int n[2] = { 0, 0 };
    for (int i = 0; i < 2; i++)
        H5(H5Ovisit2(sides[i].file, H5_INDEX_NAME, H5_ITER_INC, count_object, &n[i],
                     H5O_INFO_BASIC));
    H5(H5Ovisit2(sides[0].file, H5_INDEX_NAME, H5_ITER_INC, same_object, sides, H5O_INFO_BASIC));
    ck_assert_msg(n[0] == n[1], "%d objects instead of %d", n[1], n[0]);
    for (int i = 0; i < 2; i++)
        H5(H5Fclose(sides[i].file));
}

/* ---- there and back -------------------------------- */

void hdf5_in_and_out_again(void (*put)(hid_t file), const char *const *checks)
{
    exchange_kit kit;
    exchange_start(&kit);
    hid_t file = hdf5_new_file(&kit, "x.h5", 0);
    put(file);
    H5(H5Fclose(file));
    hdf5_import_ok(&kit, "x.h5", "/in");
    hdf5_check_all(&kit, "/in", checks);
    hdf5_export_ok(&kit, "/in", "y.h5");
    hdf5_same_files(exchange_path(&kit, "x.h5"), exchange_path(&kit, "y.h5"));
    /* from another place, and once more */
    hdf5_export_ok(&kit, "/", "z.h5");
    hdf5_import_ok(&kit, "z.h5", "/again");
    hdf5_export_ok(&kit, "/again/in", "w.h5");
    hdf5_same_files(exchange_path(&kit, "x.h5"), exchange_path(&kit, "w.h5"));
    /* and through Zarr */
    hdf5_export_ok(&kit, "/in", "t.zarr");
    hdf5_import_ok(&kit, "t.zarr", "/three");
    hdf5_check_all(&kit, "/three", checks);
    hdf5_export_ok(&kit, "/three", "v.h5");
    hdf5_same_files(exchange_path(&kit, "x.h5"), exchange_path(&kit, "v.h5"));
    exchange_stop(&kit);
}
