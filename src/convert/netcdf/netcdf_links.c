/*
 * The links of a NetCDF-4 file, which is an HDF5 file, looked through before netCDF-C
 * reads it: that library follows every link and reads whatever a data set names.
 *
 * Refused: links to other files and data sets whose bytes lie in other files, because
 * a stranger's file shall not bring in files of the reader's; groups that have two names
 * or are linked to by path, because netCDF-C walks in circles there.
 */
#include <hdf5.h>
#include <string.h>

#include "netcdf_lib.h"

typedef struct link_check {
    const char *file;
    int rc;
    brc_error *err;
} link_check;

static int refuse_link(link_check *check, const char *name, const char *what)
{
    check->rc = brc_fail(check->err, BRC_EINVAL, "%s: /%s %s", check->file, name, what);
    return 1; /* ends the walk */
}

static int check_data_set(link_check *check, hid_t group, const char *name)
{
    hid_t set = H5Dopen2(group, name, H5P_DEFAULT);
    hid_t plist = set < 0 ? -1 : H5Dget_create_plist(set);
    int outside = plist >= 0 &&
                  (H5Pget_external_count(plist) != 0 || H5Pget_layout(plist) == H5D_VIRTUAL);
    if (plist >= 0)
        H5Pclose(plist);
    if (set >= 0)
        H5Dclose(set);
    if (plist < 0)
        return refuse_link(check, name, "is a damaged data set");
    if (outside)
        return refuse_link(check, name, "has its data in other files, which are never opened");
    return 0;
}

static herr_t check_link(hid_t group, const char *name, const H5L_info_t *link, void *ctx)
{
    link_check *check = ctx;
    H5O_info_t object;

    if (link->type != H5L_TYPE_HARD && link->type != H5L_TYPE_SOFT)
        return refuse_link(check, name, "is a link to another file, which is never opened");
#if H5_VERSION_GE(1, 12, 0)
    herr_t found = H5Oget_info_by_name(group, name, &object, H5O_INFO_BASIC, H5P_DEFAULT);
#else
    herr_t found = H5Oget_info_by_name(group, name, &object, H5P_DEFAULT);
#endif
    if (found < 0)
        return refuse_link(check, name, "leads nowhere");
    if (object.type == H5O_TYPE_GROUP && (link->type == H5L_TYPE_SOFT || object.rc > 1))
        return refuse_link(check, name,
                           "is a group with more than one name, which NetCDF does not have");
    return object.type == H5O_TYPE_DATASET ? check_data_set(check, group, name) : 0;
}

int brc_netcdf_is_hdf5(const char *file)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* it would print, here and later */
    return H5Fis_hdf5(file) > 0;
}

int brc_netcdf_check_links(const char *file, brc_error *err)
{
    link_check check = { .file = file, .err = err };
    hid_t id = H5Fopen(file, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (id < 0)
        return brc_fail(err, BRC_EINVAL, "%s is truncated or damaged: libhdf5 cannot open it",
                        file);
    herr_t walked = H5Lvisit(id, H5_INDEX_NAME, H5_ITER_NATIVE, check_link, &check);
    if (walked < 0 && check.rc == BRC_OK)
        check.rc = brc_fail(err, BRC_EINVAL,
                            "%s is truncated or damaged: its groups cannot be read", file);
    H5Fclose(id);
    return check.rc;
}
