/* See hdf5_kit.h. */
#include "hdf5_kit.h"
#include "ios.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/json.h"
#include "../../src/zarr/array/array.h"

int64_t hdf5_checked(int64_t result, const char *call)
{
    ck_assert_msg(result >= 0, "%s failed", call);
    return result;
}

/* ---- making files -------------------------------- */

hid_t hdf5_new_file(exchange_kit *kit, const char *name, int old)
{
    hid_t access = H5(H5Pcreate(H5P_FILE_ACCESS)), create = H5(H5Pcreate(H5P_FILE_CREATE));
    H5(H5Pset_sym_k(create, 1, 1)); /* small files: every byte of some is damaged */
    H5(H5Pset_istore_k(create, 1));
    H5(H5Pset_meta_block_size(access, 1));
    H5(H5Pset_small_data_block_size(access, 1));
    H5(H5Pset_libver_bounds(access, old ? H5F_LIBVER_EARLIEST : H5F_LIBVER_V18, H5F_LIBVER_LATEST));
    hid_t file = H5(H5Fcreate(exchange_path(kit, name), H5F_ACC_EXCL, create, access));
    H5(H5Pclose(access));
    H5(H5Pclose(create));
    return file;
}

hid_t hdf5_new_dataset(hid_t file, const char *name, hid_t type, int ndim, const hsize_t *shape,
                       hid_t plist, hid_t memory, const void *data)
{
    hid_t space = ndim == 0 ? H5(H5Screate(H5S_SCALAR)) : H5(H5Screate_simple(ndim, shape, NULL));
    hid_t set = H5(H5Dcreate2(file, name, type, space, H5P_DEFAULT, plist, H5P_DEFAULT));
    if (data)
        H5(H5Dwrite(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data));
    H5(H5Sclose(space));
    return set;
}

void hdf5_put(hid_t file, const char *name, hid_t type, hsize_t n, hid_t memory, const void *data)
{
    H5(H5Dclose(hdf5_new_dataset(file, name, type, 1, &n, H5P_DEFAULT, memory, data)));
}

void hdf5_put_attribute(hid_t object, const char *name, hid_t type, int ndim, const hsize_t *shape,
                        hid_t memory, const void *data)
{
    hid_t space = ndim < 0    ? H5(H5Screate(H5S_NULL))
                  : ndim == 0 ? H5(H5Screate(H5S_SCALAR))
                              : H5(H5Screate_simple(ndim, shape, NULL));
    hid_t attribute = H5(H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT));
    if (data)
        H5(H5Awrite(attribute, memory, data));
    H5(H5Aclose(attribute));
    H5(H5Sclose(space));
}

hid_t hdf5_chunked(int ndim, const hsize_t *chunk)
{
    hid_t plist = H5(H5Pcreate(H5P_DATASET_CREATE));
    H5(H5Pset_chunk(plist, ndim, chunk));
    return plist;
}

/* ---- import and export -------------------------------- */

void hdf5_import_ok(exchange_kit *kit, const char *name, const char *path)
{
    int rc = brc_import(kit->session, exchange_path(kit, name), path, NULL, &kit->err);
    ck_assert_msg(rc == BRC_OK, "%s", kit->err.message);
}

void hdf5_import_says(exchange_kit *kit, const char *name, int code, const char *says)
{
    int clean = 0;
    int rc = brc_import(kit->session, exchange_path(kit, name), "/bad", NULL, &kit->err);
    ck_assert_msg(rc == code, "%d instead of %d: %s", rc, code, rc < 0 ? kit->err.message : "ok");
    ck_assert_msg(strstr(kit->err.message, says), "\"%s\" is not in \"%s\"", says,
                  kit->err.message);
    ck_assert_int_eq(brc_session_clean(&clean, kit->session, NULL), BRC_OK);
    ck_assert_int_eq(clean, 1);
}

void hdf5_export_ok(exchange_kit *kit, const char *path, const char *name)
{
    int rc = brc_export(kit->session, path, exchange_path(kit, name), NULL, &kit->err);
    ck_assert_msg(rc == BRC_OK, "%s", kit->err.message);
}

/* ---- what is there now -------------------------------- */

const char *hdf5_member(exchange_kit *kit, const char *path, const char *name)
{
    static char text[8192];
    brc_buf doc = BRC_BUF_INIT, member = BRC_BUF_INIT;
    brc_json *json = NULL;
    int rc = brc_node_json(&doc, kit->session, path, &kit->err);
    ck_assert_msg(rc == BRC_OK, "%s", kit->err.message);
    ck_assert_int_eq(brc_json_parse(&json, (char *)doc.data, doc.len, BRC_JSON_NAN,
                                    &kit->err), BRC_OK);
    if (brc_json_member(json, name))
        ck_assert_int_eq(brc_json_write(&member, brc_json_member(json, name), 0,
                                        &kit->err), BRC_OK);
    snprintf(text, sizeof(text), "%.*s", (int)member.len, member.data ? (char *)member.data : "");
    brc_json_free(json);
    brc_buf_dispose(&doc);
    brc_buf_dispose(&member);
    return text;
}

void hdf5_check_member(exchange_kit *kit, const char *path, const char *name, const char *json)
{
    const char *seen = hdf5_member(kit, path, name);
    ck_assert_msg(strcmp(seen, json) == 0, "%s of %s: %s instead of %s", name, path, seen, json);
}

void hdf5_check_attribute(exchange_kit *kit, const char *path, const char *name, const char *json)
{
    brc_buf value = BRC_BUF_INIT;
    int rc = brc_attrs_get(&value, kit->session, path, name, &kit->err);
    ck_assert_msg(rc == BRC_OK, "%s", kit->err.message);
    ck_assert_msg(value.len == strlen(json) && memcmp(value.data, json, value.len) == 0,
                  "%s of %s: %.*s instead of %s", name, path, (int)value.len, (char *)value.data,
                  json);
    brc_buf_dispose(&value);
}

void hdf5_check_bytes(exchange_kit *kit, const char *path, const void *expected, size_t len)
{
    uint8_t *seen = exchange_elements(kit->session, path, len);
    for (size_t i = 0; i < len; i++)
        ck_assert_msg(seen[i] == ((const uint8_t *)expected)[i], "%s, byte %zu: %02x, not %02x",
                      path, i, seen[i], ((const uint8_t *)expected)[i]);
    free(seen);
}

void hdf5_check_elements(exchange_kit *kit, const char *path, const void *expected, size_t len)
{
    brc_buf seen = BRC_BUF_INIT;
    brc_array *a;
    brc_sel all = BRC_SEL_INIT;
    int rc = brc_array_open(&a, kit->session, path, &kit->err);
    ck_assert_msg(rc == BRC_OK, "%s", kit->err.message);
    sel_all(&all, a);
    rc = io_elements(a, &all, &seen, &kit->err);
    ck_assert_msg(rc == BRC_OK, "%s", kit->err.message);
    ck_assert_msg(seen.len == len && memcmp(seen.data, expected, len) == 0, "%s: other elements",
                  path);
    brc_buf_dispose(&seen);
    brc_array_free(a);
}

void hdf5_check_values(exchange_kit *kit, const char *path, const char *json)
{
    brc_buf seen = BRC_BUF_INIT, text = BRC_BUF_INIT;
    brc_array *a;
    brc_sel all = BRC_SEL_INIT;
    int rc = brc_array_open(&a, kit->session, path, &kit->err);
    ck_assert_msg(rc == BRC_OK, "%s", kit->err.message);
    const brc_dtype *type = a->meta.type;
    ck_assert_msg(type != NULL, "%s: its data type is not known: it cannot be read", path);
    uint64_t n = brc_shape_count(a->meta.ndim, a->meta.shape);
    sel_all(&all, a);
    if (type->item_size > 0) {
        rc = brc_buf_reserve(&seen, (size_t)n * type->item_size, &kit->err);
        seen.len = (size_t)n * type->item_size;
        if (rc == BRC_OK)
            rc = brc_array_read(a, &all, seen.data, seen.len, &kit->err);
        brc_dtype_native(type, seen.data, seen.len);
    } else {
        rc = io_elements(a, &all, &seen, &kit->err);
    }
    ck_assert_msg(rc == BRC_OK, "%s", kit->err.message);
    ck_assert_int_eq(brc_buf_byte(&text, '[', &kit->err), BRC_OK);
    const uint8_t *at = seen.data;
    for (uint64_t i = 0; i < n; i++) {
        size_t len = type->item_size > 0 ? type->item_size : 4 + (size_t)brc_get_u32le(at);
        if (i > 0)
            ck_assert_int_eq(brc_buf_byte(&text, ',', &kit->err), BRC_OK);
        rc = type->ops->print(type, at, len, BRC_PRINT_FILL, &text, &kit->err);
        ck_assert_msg(rc == BRC_OK, "%s", kit->err.message);
        at += len;
    }
    ck_assert_int_eq(brc_buf_byte(&text, ']', &kit->err), BRC_OK);
    ck_assert_int_eq(brc_buf_terminate(&text, &kit->err), BRC_OK);
    ck_assert_msg(strcmp((char *)text.data, json) == 0, "%s: %s instead of %s", path,
                  (char *)text.data, json);
    brc_buf_dispose(&seen);
    brc_buf_dispose(&text);
    brc_array_free(a);
}

void hdf5_check_all(exchange_kit *kit, const char *root, const char *const *checks)
{
    for (; checks[0]; checks += 2) {
        char path[256];
        const char *attribute = strchr(checks[0], '@');
        int len = attribute ? (int)(attribute - checks[0]) : (int)strlen(checks[0]);
        snprintf(path, sizeof(path), "%s%.*s", root, len > 1 ? len : 0, checks[0]);
        if (attribute)
            hdf5_check_attribute(kit, path, attribute + 1, checks[1]);
        else
            hdf5_check_values(kit, path, checks[1]);
    }
}
