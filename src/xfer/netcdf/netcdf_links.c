/*
 * The links of a NetCDF-4 file, which is an HDF5 file, looked through before netCDF-C
 * reads it: that library follows every link and reads whatever a data set names.
 *
 * Refused: links to other files and data sets whose bytes lie in other files, because
 * a stranger's file shall not bring in files of the reader's; groups that have two names
 * or are linked to by path, because netCDF-C walks in circles there.
 */
#include <hdf5.h>
#include <stddef.h>
#include <string.h>

#include "late_libs.h"
#include "netcdf_lib.h"

/* HDF5 gives some of its functions other symbols by macros: the name is expanded. */
#define LINK_CALLS(X)        \
    X(H5open)                \
    X(H5Eget_auto2)          \
    X(H5Eset_auto2)          \
    X(H5Fopen)               \
    X(H5Fclose)              \
    X(H5Lvisit)              \
    X(H5Oget_info_by_name)   \
    X(H5Dopen2)              \
    X(H5Dget_create_plist)   \
    X(H5Dclose)              \
    X(H5Pget_external_count) \
    X(H5Pget_layout)         \
    X(H5Pclose)

#define READ_ONLY 0u /* H5F_ACC_RDONLY is a macro that calls the library by its name */

typedef struct link_calls {
#define X(name) __typeof__(name) *name;
    LINK_CALLS(X)
#undef X
} link_calls;

typedef struct link_check {
    link_calls lib;
    const char *file;
    int rc;
    brc_error *err;
} link_check;

static int load_links(link_calls *out, brc_error *err)
{
#define TEXT(name) TEXT_OF(name)
#define TEXT_OF(name) #name
    static const struct {
        const char *name;
        size_t at;
    } calls[] = {
#define X(name) { TEXT(name), offsetof(link_calls, name) },
        LINK_CALLS(X)
#undef X
    };
    void *handle, *symbol;

    BRC_TRY(brc_late_library(&handle, BRC_SONAME_HDF5, "NetCDF-4", err));
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        BRC_TRY(brc_late_symbol(&symbol, handle, BRC_SONAME_HDF5, calls[i].name, err));
        memcpy((char *)out + calls[i].at, &symbol, sizeof(symbol));
    }
    return BRC_OK;
}

static int refuse_link(link_check *check, const char *name, const char *what)
{
    check->rc = brc_fail(check->err, BRC_EINVAL, "%s: /%s %s", check->file, name, what);
    return 1; /* ends the walk */
}

static int check_data_set(link_check *check, hid_t group, const char *name)
{
    const link_calls *lib = &check->lib;
    hid_t set = lib->H5Dopen2(group, name, H5P_DEFAULT);
    hid_t plist = set < 0 ? -1 : lib->H5Dget_create_plist(set);
    int outside = plist >= 0 && (lib->H5Pget_external_count(plist) != 0 ||
                                 lib->H5Pget_layout(plist) == H5D_VIRTUAL);
    if (plist >= 0)
        lib->H5Pclose(plist);
    if (set >= 0)
        lib->H5Dclose(set);
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
    herr_t found =
        check->lib.H5Oget_info_by_name(group, name, &object, H5O_INFO_BASIC, H5P_DEFAULT);
#else
    herr_t found = check->lib.H5Oget_info_by_name(group, name, &object, H5P_DEFAULT);
#endif
    if (found < 0)
        return refuse_link(check, name, "leads nowhere");
    if (object.type == H5O_TYPE_GROUP && (link->type == H5L_TYPE_SOFT || object.rc > 1))
        return refuse_link(check, name, "is a group with more than one name, which NetCDF has not");
    return object.type == H5O_TYPE_DATASET ? check_data_set(check, group, name) : 0;
}

static int walk_links(link_check *check)
{
    const link_calls *lib = &check->lib;
    hid_t file = lib->H5Fopen(check->file, READ_ONLY, H5P_DEFAULT);
    if (file < 0)
        return brc_fail(check->err, BRC_EINVAL, "%s is no whole HDF5 file", check->file);
    herr_t walked = lib->H5Lvisit(file, H5_INDEX_NAME, H5_ITER_NATIVE, check_link, check);
    if (walked < 0 && check->rc == BRC_OK)
        check->rc = brc_fail(check->err, BRC_EINVAL, "%s has damaged groups", check->file);
    lib->H5Fclose(file);
    return check->rc;
}

int brc_netcdf_check_links(const char *file, brc_error *err)
{
    link_check check = { .file = file, .err = err };
    H5E_auto2_t report;
    void *report_ctx;

    BRC_TRY(load_links(&check.lib, err));
    if (check.lib.H5open() < 0)
        return brc_fail(err, BRC_EUNSUPPORTED, "libhdf5 does not start");
    check.lib.H5Eget_auto2(H5E_DEFAULT, &report, &report_ctx);
    check.lib.H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    int rc = walk_links(&check);
    check.lib.H5Eset_auto2(H5E_DEFAULT, report, report_ctx);
    return rc;
}
