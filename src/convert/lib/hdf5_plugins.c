/* Loading filters, see hdf5_plugins.h. */
#include "hdf5_plugins.h"

#include <H5PLextern.h>
#include <dirent.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/file.h"
#include "hdf5_lzf.h"

typedef H5PL_type_t plugin_type_function(void);
typedef const void *plugin_info_function(void);

/* ISO C has no conversion from what dlsym() gives to a function. */
static int find_function(void *library, const char *name, void *function, size_t size)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, size);
    return found != NULL;
}

/* 1 if it has become one of the filters; its library stays. */
static int register_filter(void *library)
{
    plugin_type_function *type;
    plugin_info_function *info;
    if (!find_function(library, "H5PLget_plugin_type", &type, sizeof(type)) ||
        !find_function(library, "H5PLget_plugin_info", &info, sizeof(info)) ||
        type() != H5PL_TYPE_FILTER)
        return 0;
    const H5Z_class2_t *filter = info();
    return filter && H5Zfilter_avail(filter->id) == 0 && H5Zregister(filter) >= 0;
}

static void load_plugin(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library && !register_filter(library))
        (void)dlclose(library);
}

/* In the order of their names, so that of two for one filter it is always the same. */
static int load_folder(const char *folder, brc_error *err)
{
    struct dirent **names = NULL;
    int n = scandir(folder, &names, NULL, alphasort), rc = BRC_OK;
    for (int i = 0; i < n; i++) {
        char *path = NULL;
        if (rc == BRC_OK && strstr(names[i]->d_name, ".so"))
            rc = brc_path_join(&path, folder, names[i]->d_name, err);
        if (path)
            load_plugin(path);
        free(path);
        free(names[i]);
    }
    free(names);
    return rc;
}

int brc_hdf5_plugins_load(const char *folders, brc_error *err)
{
    char *own, *next = NULL;
    int rc = BRC_OK;
    BRC_TRY(brc_hdf5_start(err));
    if (H5PLset_loading_state(0) < 0)
        return brc_fail(err, BRC_EUNSUPPORTED, "the HDF5 library cannot be started");
    BRC_TRY(brc_hdf5_lzf_register(err));
    BRC_TRY(brc_dup(&own, folders, err));
    for (char *at = strtok_r(own, ":", &next); at && rc == BRC_OK; at = strtok_r(NULL, ":", &next))
        rc = load_folder(at, err);
    free(own);
    return rc;
}
