/* Errors, ids and filters of libhdf5, see hdf5_lib.h. */
#include "hdf5_lib.h"

#include <H5PLextern.h>
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/buf.h"
#include "../../base/file.h"

/* h5py's filter LZF, by liblzf. It only decodes, because other programs lack the filter. */

#define BRC_HDF5_LZF 32000
/* The filter's third value is the number of bytes of a chunk. The decoder trusts this value, so the
 * reader must have compared it with the dataset's chunks: libhdf5 does not check how many bytes a
 * filter gives. */
#define BRC_HDF5_LZF_BYTES 2
/* The bytes of a chunk of elements of variable length, for which libhdf5 sets no values of filters.
 * Bytes that a stream lacks become references that lead nowhere. */
#define BRC_HDF5_LZF_ROOM ((size_t)4 << 20)

/* ==== hdf5 lib ================================ */

/* Makes the library look for other files beside the file itself, by removing the folders from the
 * environment. */
static void forget_prefixes(void)
{
    static const char *const names[] = { "HDF5_EXT_PREFIX", "HDF5_EXTFILE_PREFIX",
                                         "HDF5_VDS_PREFIX" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        (void)unsetenv(names[i]);
}

int brc_hdf5_start(brc_error *err)
{
    forget_prefixes();
    if (H5open() < 0 || H5Eset_auto2(H5E_DEFAULT, NULL, NULL) < 0)
        return brc_fail(err, BRC_EUNSUPPORTED, "the HDF5 library cannot be started");
    return BRC_OK;
}

void brc_hdf5_close(hid_t id)
{
    if (id >= 0)
        (void)H5Idec_ref(id);
}

/* ---- errors -------------------------------- */

/* Takes the reason of an error. The library calls this function with the innermost error first. */
static herr_t take_reason(unsigned n, const H5E_error2_t *error, void *ctx)
{
    const char **reason = ctx;
    if (n == 0)
        *reason = error->desc;
    return 0;
}

int brc_hdf5_fail(brc_error *err, int code, const char *format, ...)
{
    brc_error own = BRC_ERROR_INIT;
    const char *reason = NULL;
    char text[sizeof(own.message)];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    (void)H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_reason, &reason);
    if (reason && *reason)
        return brc_fail(err, code, "%s (%s)", text, reason);
    return brc_fail(err, code, "%s", text);
}

/* ---- parts of a dataset, and names -------------------------------- */

hid_t brc_hdf5_select(hid_t space, int ndim, const brc_sel *box, const brc_sel *part)
{
    hsize_t start[H5S_MAX_RANK], at[H5S_MAX_RANK], count[H5S_MAX_RANK], whole[H5S_MAX_RANK];
    for (int i = 0; i < ndim; i++) {
        start[i] = part->start[i];
        at[i] = part->start[i] - box->start[i];
        count[i] = part->count[i];
        whole[i] = box->count[i];
    }
    if (ndim == 0)
        return H5Screate(H5S_SCALAR);
    hid_t memory = H5Screate_simple(ndim, whole, NULL);
    if (memory >= 0 && H5Sselect_hyperslab(memory, H5S_SELECT_SET, at, NULL, count, NULL) >= 0 &&
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0)
        return memory;
    brc_hdf5_close(memory);
    return BRC_HDF5_NONE;
}

int brc_hdf5_label(char **out, const char *file, const char *path, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_buf_printf(&text, err, "%s: %s", file, path));
    BRC_GO(brc_buf_take_text(&text, out, err));
done:
    brc_buf_dispose(&text);
    return rc;
}

/* ==== hdf5 lzf ================================ */

/* The filter LZF. */

#ifdef __has_include
#if __has_include(<lzf.h>)
#define HAS_LZF 1
#endif
#endif

#ifndef HAS_LZF

/* Does nothing, because this build lacks liblzf. */
static int hdf5_lzf_register(brc_error *err)
{
    (void)err;
    return BRC_OK;
}

#else

#include <lzf.h>
#include <string.h>

#define MOST_RATIO 88 /* three bytes stand for at most 264 */

/* Decodes a chunk as a filter of the library. Returns 0, the library's sign of failure, if the
 * chunk is damaged. */
static size_t decode_lzf(unsigned flags, size_t n, const unsigned *values, size_t len, size_t *size,
                         void **data)
{
    size_t told = n > BRC_HDF5_LZF_BYTES ? values[BRC_HDF5_LZF_BYTES] : 0;
    size_t room = told ? told : BRC_HDF5_LZF_ROOM;
    if (!(flags & H5Z_FLAG_REVERSE) || len > UINT32_MAX || told / MOST_RATIO > len)
        return 0;
    uint8_t *decoded = H5allocate_memory(room, 0);
    size_t got = decoded ? lzf_decompress(*data, (unsigned)len, decoded, (unsigned)room) : 0;
    if (got == 0 || (told && got != told)) {
        (void)H5free_memory(decoded);
        return 0;
    }
    memset(decoded + got, 0xff, room - got);
    (void)H5free_memory(*data);
    *data = decoded;
    *size = room;
    return got;
}

/* Registers the filter with the library. */
static int hdf5_lzf_register(brc_error *err)
{
    /* The filter claims to encode too, so that hdf5_heap.c can make a dataset whose chunks are
     * decoded. decode_lzf() fails if it is asked to encode. */
    static const H5Z_class2_t filter = { H5Z_CLASS_T_VERS, BRC_HDF5_LZF, 1,    1,
                                         "lzf",            NULL,         NULL, decode_lzf };
    if (H5Zregister(&filter) < 0)
        return brc_fail(err, BRC_EUNSUPPORTED, "the HDF5 library cannot be started");
    return BRC_OK;
}

#endif

/* ==== hdf5 plugins ================================ */

/* Loads filters that are plug-ins, see hdf5_lib.h. */

typedef H5PL_type_t plugin_type_function(void);
typedef const void *plugin_info_function(void);

/* Finds a function of a plug-in. ISO C has no conversion from dlsym()'s pointer to a function. */
static int find_function(void *library, const char *name, void *function, size_t size)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, size);
    return found != NULL;
}

/* Registers the plug-in's filter. Returns 1 if this succeeds; then the plug-in must stay loaded. */
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

/* Loads the plug-ins of a folder in the order of their names, so that the same one of two plug-ins
 * for a filter is always used. */
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
    BRC_TRY(hdf5_lzf_register(err));
    BRC_TRY(brc_dup(&own, folders, err));
    for (char *at = strtok_r(own, ":", &next); at && rc == BRC_OK; at = strtok_r(NULL, ":", &next))
        rc = load_folder(at, err);
    free(own);
    return rc;
}

/* ==== hdf5 filters ================================ */

/* Checks the filters of datasets, see hdf5_lib.h. */

/* Returns the name that is registered for a filter's number, or NULL. */
static const char *filter_name(H5Z_filter_t id)
{
    static const struct {
        H5Z_filter_t id;
        const char *name;
    } names[] = { { H5Z_FILTER_SZIP, "szip" }, { 307, "bzip2" },      { 32000, "LZF" },
                  { 32001, "Blosc" },          { 32004, "LZ4" },      { 32008, "bitshuffle" },
                  { 32013, "ZFP" },            { 32015, "Zstandard" }, { 32017, "SZ" },
                  { 32018, "FCIDECOMP" },      { 32024, "SZ3" },      { 32026, "Blosc2" } };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].id == id)
            return names[i].name;
    return NULL;
}

/* Refuses a filter, by its registered name or else by its name in the file. */
static int refuse_filter(const brc_convert *c, H5Z_filter_t id, const char *said, const char *label,
                         brc_error *err)
{
    const char *known = filter_name(id), *name = known ? known : said;
    return brc_part_refuse(err, BRC_PART_FILTER,
                           "install it, and name its folder with --hdf5-plugins",
                           "%s needs the HDF5 filter %d (%s), which is not built in and not in %s",
                           label, (int)id, *name ? name : "without a name", brc_convert_plugins(c));
}

static int64_t stored_size(hid_t type, int64_t reference);

/* Returns how many bytes more a compound's fields take in the file than in memory. */
static int64_t more_in_fields(hid_t type, int64_t reference)
{
    int64_t more = 0;
    int n = H5Tget_nmembers(type);
    for (int i = 0; i < n; i++) {
        hid_t field = H5Tget_member_type(type, (unsigned)i);
        more += stored_size(field, reference) - (int64_t)H5Tget_size(field);
        brc_hdf5_close(field);
    }
    return more;
}

/* Returns how many bytes an element has in the file, where an element of variable length is a
 * reference. The library gives the size in memory. */
static int64_t stored_size(hid_t type, int64_t reference)
{
    int64_t size = (int64_t)H5Tget_size(type), inner;
    switch (H5Tget_class(type)) {
    case H5T_VLEN:
        return reference;
    case H5T_STRING:
        return H5Tis_variable_str(type) > 0 ? reference : size;
    case H5T_COMPOUND:
        return size + more_in_fields(type, reference);
    case H5T_ARRAY: {
        hid_t item = H5Tget_super(type);
        inner = (int64_t)H5Tget_size(item);
        size = inner > 0 ? size / inner * stored_size(item, reference) : 0;
        brc_hdf5_close(item);
        return size;
    }
    default:
        return size;
    }
}

/* Returns how many bytes an element of a dataset has in the file; 0: this is not known. */
static uint64_t element_bytes(hid_t dataset)
{
    hid_t type = H5Dget_type(dataset), file = H5Iget_file_id(dataset);
    hid_t create = H5Fget_create_plist(file);
    size_t address = 0, length = 0;
    int64_t size = 0;
    if (type >= 0 && create >= 0 && H5Pget_sizes(create, &address, &length) >= 0)
        size = stored_size(type, 8 + (int64_t)address); /* length, address, index */
    brc_hdf5_close(create);
    brc_hdf5_close(file);
    brc_hdf5_close(type);
    return size > 0 ? (uint64_t)size : 0;
}

/* Returns whether elements have texts or lists of variable length. */
static int has_variable_items(hid_t dataset)
{
    hid_t type = H5Dget_type(dataset);
    int is = H5Tget_class(type) == H5T_VLEN || H5Tis_variable_str(type) > 0;
    brc_hdf5_close(type);
    return is;
}

/* Checks that the filter LZF decodes to the bytes of one chunk: see BRC_HDF5_LZF_BYTES. */
static int check_lzf(hid_t plist, hid_t dataset, const unsigned *values, size_t n,
                     const char *label, brc_error *err)
{
    hsize_t chunk[H5S_MAX_RANK];
    uint64_t bytes = 0, edges[H5S_MAX_RANK];
    int ndim = H5Pget_chunk(plist, H5S_MAX_RANK, chunk);
    for (int i = 0; i < ndim; i++)
        edges[i] = chunk[i];
    uint64_t told = n > BRC_HDF5_LZF_BYTES ? values[BRC_HDF5_LZF_BYTES] : 0;
    if (ndim < 0 || !brc_shape_bytes(ndim, edges, element_bytes(dataset), &bytes) ||
        (told > 0 ? bytes != told : bytes > BRC_HDF5_LZF_ROOM || !has_variable_items(dataset)))
        return brc_fail(err, BRC_EINVAL, "%s: its filter LZF is for chunks of another size", label);
    return BRC_OK;
}

/* Numbers of filters up to this one are libhdf5's own. */
#define OWN_FILTERS 255

int brc_hdf5_filters_note(brc_json *notes, hid_t plist, brc_error *err)
{
    brc_json *list = NULL, *one = NULL;
    int n = H5Pget_nfilters(plist), rc = BRC_OK;
    for (int i = 0; i < n; i++) {
        unsigned flags = 0, config = 0;
        size_t count = 0;
        H5Z_filter_t id =
            H5Pget_filter2(plist, (unsigned)i, &flags, &count, NULL, 0, NULL, &config);
        if (id <= OWN_FILTERS)
            continue;
        one = brc_json_new_object();
        if (!one || (!list && !(list = brc_json_new_array()))) {
            rc = brc_nomem(err);
            goto done;
        }
        BRC_GO(brc_json_set(one, "number", brc_json_new_uint((uint64_t)id), err));
        if (filter_name(id))
            BRC_GO(brc_json_set(one, "name", brc_json_new_string(filter_name(id)), err));
        brc_json *given = one;
        one = NULL;
        BRC_GO(brc_json_push(list, given, err));
    }
    if (list) {
        brc_json *given = list;
        list = NULL;
        rc = brc_json_set(notes, "filters", given, err);
    }
done:
    brc_json_free(one);
    brc_json_free(list);
    return rc;
}

int brc_hdf5_filters_check(const brc_convert *c, hid_t plist, hid_t dataset, const char *label,
                           brc_error *err)
{
    int n = H5Pget_nfilters(plist);
    if (n < 0)
        return brc_hdf5_fail(err, BRC_EINVAL, "%s: its filters cannot be read", label);
    for (int i = 0; i < n; i++) {
        unsigned flags = 0, config = 0, values[4] = { 0 };
        size_t count = 4;
        char name[64] = "";
        H5Z_filter_t id = H5Pget_filter2(plist, (unsigned)i, &flags, &count, values,
                                              sizeof(name) - 1, name, &config);
        if (id < 0)
            return brc_hdf5_fail(err, BRC_EINVAL, "%s: its filters cannot be read", label);
        if (H5Zfilter_avail(id) <= 0)
            return refuse_filter(c, id, name, label, err);
        if (id == BRC_HDF5_LZF)
            BRC_TRY(check_lzf(plist, dataset, values, count, label, err));
    }
    return BRC_OK;
}
