/*
 * Finds the elements of virtual datasets and of datasets with external storage, see hdf5_in.h.
 *
 * Where the library cannot open a source, it reads fill values; where a raw file is too short, it
 * reads zeros. So the converter opens every source first, and the sources of sources, and keeps
 * them open. When the library opens a source a second time, this takes neither descriptors nor much
 * memory.
 */
#include "hdf5_elsewhere.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "hdf5_in.h"

static int hdf5_file_named(char **out, const char *above, const char *name, brc_error *err);
static hid_t hdf5_file_other(const char *path);
static const char *hdf5_unreached(int code);
static const char *hdf5_unreached_remedy(int code);

/* ==== hdf5 sources ================================ */

/* The most virtual datasets that may lie in one another as sources. */
#define MOST_NESTED 16
/* The most files of one dataset: each file takes a descriptor (sandbox.c) and half a MiB in the
 * library. */
#define MOST_FILES 1000
/* The most datasets in these files, and members of a series; the most mappings. */
#define MOST_SETS 20000
#define MOST_MAPPINGS 100000
#define RAW_NAME_MAX 4096

#define COPY_IT "copy it with its elements first (h5repack)"

/* An open file, whose key is its path, or an open dataset, whose key is the file's path and the
 * dataset's name. */
typedef struct held_id {
    char *key;
    hid_t id;
    unsigned long file; /* of a dataset: the number of its file */
    haddr_t address;
} held_id;

struct brc_hdf5_sources {
    const brc_hdf5_in *in;
    const char *label;
    hid_t type;         /* of the dataset's elements                           */
    void *files, *sets; /* trees of tsearch() with held_id */
    const char **paths; /* of the open files */
    size_t nfiles, nsets, paths_cap;
    held_id above[MOST_NESTED]; /* the virtual datasets around the current source */
    int depth;
};

/* A part of a virtual dataset, which is taken from a dataset in a file. The names are those in the
 * mapping. */
typedef struct source_part {
    const char *above; /* the path of the file of the virtual dataset */
    hid_t parent, set; /* the ids of this file and of the virtual dataset */
    const char *file, *name;
    hid_t taken, given; /* the selections in the virtual dataset and in the source */
    uint64_t number;    /* the number of the part, counted from 0 */
    uint64_t member;    /* the number of the member, if the part is a series */
} source_part;

/* ---- what is held -------------------------------- */

static int by_key(const void *a, const void *b)
{
    return strcmp(((const held_id *)a)->key, ((const held_id *)b)->key);
}

static held_id *find_held(void *const *tree, char *key)
{
    held_id wanted = { .key = key };
    held_id *const *found = tfind(&wanted, tree, by_key);
    return found ? *found : NULL;
}

static void let_go(void *item)
{
    held_id *held = item;
    brc_hdf5_close(held->id);
    free(held->key);
    free(held);
}

/* Adds an open file or dataset to the tree. Takes over the key and the id, also on failure. */
static int hold(void **tree, char *key, hid_t id, held_id **out, brc_error *err)
{
    held_id *held;
    int rc = brc_new((void **)&held, sizeof(*held), err);
    if (rc < 0) {
        brc_hdf5_close(id);
        free(key);
        return rc;
    }
    *held = (held_id){ .key = key, .id = id };
    if (!tsearch(held, tree, by_key)) {
        let_go(held);
        return brc_nomem(err);
    }
    *out = held;
    return BRC_OK;
}

/* ---- refusals -------------------------------- */

static int refuse_source(const brc_hdf5_sources *s, const source_part *part, const char *remedy,
                         const char *what, brc_error *err)
{
    return brc_part_refuse(err, BRC_PART_STORAGE, remedy,
                           "%.200s takes elements from the dataset %.100s of the file %.100s, %s",
                           s->label, part->name, part->file, what);
}

static int too_much(const brc_hdf5_sources *s, const char *what, int most, brc_error *err)
{
    return brc_part_refuse(err, BRC_PART_SIZE, COPY_IT,
                           "%.200s takes its elements from more than %d %s", s->label, most, what);
}

/* ---- is it what it should be -------------------------------- */

/* Returns whether the type `to` has all values of the type `from`. */
static int is_widened(hid_t from, hid_t to)
{
    H5T_class_t class = H5Tget_class(from);
    if (class != H5Tget_class(to) || (class != H5T_INTEGER && class != H5T_FLOAT))
        return 0;
    size_t small = H5Tget_size(from), large = H5Tget_size(to);
    if (class == H5T_FLOAT || H5Tget_sign(from) == H5Tget_sign(to))
        return small <= large;
    return H5Tget_sign(from) == H5T_SGN_NONE && small < large;
}

static int keeps_values(hid_t from, hid_t to)
{
    hid_t a = H5Tget_native_type(from, H5T_DIR_ASCEND);
    hid_t b = H5Tget_native_type(to, H5T_DIR_ASCEND);
    int fits = H5Tequal(from, to) > 0 ||
               (a >= 0 && b >= 0 && (H5Tequal(a, b) > 0 || is_widened(a, b)));
    brc_hdf5_close(a);
    brc_hdf5_close(b);
    return fits;
}

/* Returns whether the selection lies within the dataset's shape; the selection's space may have
 * another shape. */
static int lies_within(hid_t selection, int ndim, const hsize_t *shape)
{
    hsize_t first[H5S_MAX_RANK], last[H5S_MAX_RANK], stride[H5S_MAX_RANK], count[H5S_MAX_RANK],
        block[H5S_MAX_RANK];
    if (H5Sget_simple_extent_ndims(selection) != ndim)
        return 0;
    if (H5Sis_regular_hyperslab(selection) > 0 &&
        H5Sget_regular_hyperslab(selection, first, stride, count, block) >= 0) {
        for (int i = 0; i < ndim; i++)
            last[i] = count[i] == H5S_UNLIMITED || block[i] == H5S_UNLIMITED
                          ? 0 /* an endless selection ends with the dataset */
                          : first[i] + (count[i] - 1) * stride[i] + block[i] - 1;
    } else if (H5Sget_select_bounds(selection, first, last) < 0) {
        return 0;
    }
    for (int i = 0; i < ndim; i++)
        if (last[i] >= shape[i])
            return 0;
    return 1;
}

/* Returns how many elements a part has; of a series, how many one member has. */
static uint64_t taken_elements(hid_t taken)
{
    hsize_t first[H5S_MAX_RANK], stride[H5S_MAX_RANK], count[H5S_MAX_RANK], block[H5S_MAX_RANK];
    uint64_t n = 1;
    if (H5Sis_regular_hyperslab(taken) <= 0 ||
        H5Sget_regular_hyperslab(taken, first, stride, count, block) < 0)
        return (uint64_t)H5Sget_select_npoints(taken);
    for (int i = 0; i < H5Sget_simple_extent_ndims(taken); i++)
        if (!brc_mul_u64(n, count[i] == H5S_UNLIMITED ? 1 : count[i], &n) ||
            !brc_mul_u64(n, block[i], &n))
            return UINT64_MAX;
    return n;
}

static int has_elements(hid_t source, const source_part *part)
{
    hsize_t shape[H5S_MAX_RANK];
    hid_t space = H5Dget_space(source);
    int ndim = space < 0 ? -1 : H5Sget_simple_extent_ndims(space), has = ndim >= 0;
    if (has && ndim > 0)
        has = H5Sget_simple_extent_dims(space, shape, NULL) == ndim;
    if (has && H5Sget_select_npoints(part->given) == 0)
        has = 1;
    else if (has && H5Sget_select_type(part->given) == H5S_SEL_ALL)
        has = (uint64_t)H5Sget_simple_extent_npoints(space) == taken_elements(part->taken);
    else if (has && ndim > 0)
        has = lies_within(part->given, ndim, shape);
    brc_hdf5_close(space);
    return has;
}

/* Checks that the library can read all of the source. `label` names the source in messages. */
static int check_stored(const brc_hdf5_sources *s, hid_t source, hid_t plist, hid_t type,
                        const char *label, brc_error *err)
{
    hsize_t dims[H5S_MAX_RANK];
    uint64_t shape[H5S_MAX_RANK];
    hid_t space = H5Dget_space(source);
    int ndim = space < 0 ? -1 : H5Sget_simple_extent_dims(space, dims, NULL);
    brc_hdf5_close(space);
    if (ndim < 0)
        return brc_hdf5_fail(err, BRC_EINVAL, "%s: its shape cannot be read", label);
    for (int i = 0; i < ndim; i++)
        shape[i] = dims[i];
    BRC_TRY(brc_hdf5_filters_check(s->in->convert, plist, source, label, err));
    return H5Pget_layout(plist) == H5D_CHUNKED
               ? BRC_OK
               : brc_hdf5_size_check(source, type, ndim, shape, label, err);
}

static int check_kind(const brc_hdf5_sources *s, const source_part *part, const held_id *source,
                      brc_error *err)
{
    hid_t type = H5Dget_type(source->id), plist = H5Dget_create_plist(source->id);
    brc_buf label = BRC_BUF_INIT;
    int rc;
    if (type < 0 || plist < 0) {
        rc = refuse_source(s, part, COPY_IT, "which cannot be read", err);
        goto done;
    }
    if (H5Tdetect_class(type, H5T_REFERENCE) > 0 && source->file != s->in->number) {
        rc = refuse_source(s, part, COPY_IT, "whose references are to objects of that file", err);
        goto done;
    }
    if (H5Pget_external_count(plist) > 0) {
        rc = refuse_source(s, part, COPY_IT, "whose elements are in raw files", err);
        goto done;
    }
    if (!keeps_values(type, s->type)) {
        rc = refuse_source(s, part, COPY_IT, "which has another data type", err);
        goto done;
    }
    BRC_GO(brc_buf_printf(&label, err, "%.200s: its source %.100s in %.100s", s->label, part->name,
                          part->file));
    BRC_GO(brc_buf_terminate(&label, err));
    rc = check_stored(s, source->id, plist, type, (const char *)label.data, err);
done:
    brc_buf_dispose(&label);
    brc_hdf5_close(type);
    brc_hdf5_close(plist);
    return rc;
}

/* ---- raw files -------------------------------- */

static int check_raw_file(const brc_hdf5_sources *s, const char *above, const char *name,
                          uint64_t end, brc_error *err)
{
    char *path;
    uint64_t size;
    BRC_TRY(hdf5_file_named(&path, above, name, err));
    int code = brc_convert_reach(s->in->convert, path, &size);
    free(path);
    if (code < 0)
        return brc_part_refuse(err, BRC_PART_STORAGE, hdf5_unreached_remedy(code),
                               "%.200s has elements in the raw file %.100s, %s", s->label, name,
                               hdf5_unreached(code));
    if (size < end)
        return brc_part_refuse(err, BRC_PART_STORAGE, "put the whole file there",
                               "%.200s has elements in the raw file %.100s, which has %llu bytes "
                               "and should have %llu",
                               s->label, name, (unsigned long long)size, (unsigned long long)end);
    return BRC_OK;
}

static int dataset_bytes(hid_t dataset, uint64_t *bytes)
{
    hid_t space = H5Dget_space(dataset), type = H5Dget_type(dataset);
    hssize_t n = space < 0 ? -1 : H5Sget_simple_extent_npoints(space);
    size_t size = type < 0 ? 0 : H5Tget_size(type);
    brc_hdf5_close(space);
    brc_hdf5_close(type);
    return n >= 0 && size > 0 && brc_mul_u64((uint64_t)n, size, bytes);
}

/* Checks that the raw files have all bytes of the dataset. Their pieces follow each other in a
 * list. */
static int check_raw_files(const brc_hdf5_sources *s, hid_t dataset, hid_t plist, const char *above,
                           brc_error *err)
{
    uint64_t left, end;
    int n = H5Pget_external_count(plist);
    if (n > MOST_FILES)
        return too_much(s, "raw files", MOST_FILES, err);
    if (n < 0 || !dataset_bytes(dataset, &left))
        return brc_hdf5_fail(err, BRC_EINVAL, "%s: its size cannot be read", s->label);
    for (int i = 0; i < n && left > 0; i++) {
        char name[RAW_NAME_MAX] = "";
        off_t offset = 0;
        hsize_t size = 0;
        if (H5Pget_external(plist, (unsigned)i, sizeof(name), name, &offset, &size) < 0 ||
            offset < 0 || memchr(name, 0, sizeof(name)) == NULL)
            return brc_hdf5_fail(err, BRC_EINVAL, "%s: its list of raw files cannot be read",
                                 s->label);
        uint64_t taken = size < left ? size : left;
        if (!brc_add_u64((uint64_t)offset, taken, &end))
            return brc_fail(err, BRC_EINVAL, "%s: its list of raw files is damaged", s->label);
        BRC_TRY(check_raw_file(s, above, name, end, err));
        left -= taken;
    }
    return left == 0 ? BRC_OK
                     : brc_fail(err, BRC_EINVAL,
                                "%s: its raw files have %llu bytes fewer than its shape needs",
                                s->label, (unsigned long long)left);
}

/* ---- does the library read them -------------------------------- */

/* Finds the first element of a selection, or of one member of a series. Returns 0 if this element
 * is not known. */
static int first_of(hid_t selection, uint64_t member, hsize_t *at)
{
    hsize_t stride[H5S_MAX_RANK], count[H5S_MAX_RANK], block[H5S_MAX_RANK];
    int ndim = H5Sget_simple_extent_ndims(selection);
    memset(at, 0, H5S_MAX_RANK * sizeof(*at));
    if (H5Sget_select_type(selection) == H5S_SEL_ALL) /* the selection has no axes of its own */
        return 1;
    if (H5Sis_regular_hyperslab(selection) <= 0 ||
        H5Sget_regular_hyperslab(selection, at, stride, count, block) < 0)
        return 0;
    for (int i = 0; i < ndim; i++)
        at[i] += count[i] == H5S_UNLIMITED ? member * stride[i] : 0;
    return 1;
}

static int read_first(hid_t dataset, hid_t type, const hsize_t *at, void *out)
{
    hid_t space = H5Dget_space(dataset), one = H5Screate(H5S_SCALAR);
    int done = space >= 0 && H5Sselect_elements(space, H5S_SELECT_SET, 1, at) >= 0 &&
               H5Sselect_valid(space) > 0 &&
               H5Dread(dataset, type, one, space, H5P_DEFAULT, out) >= 0;
    brc_hdf5_close(one);
    brc_hdf5_close(space);
    return done;
}

/* Returns whether the reading of this part is checked. Only some are: each read goes through all
 * parts of the virtual dataset. */
static int is_sampled(const source_part *part)
{
    return part->number + part->member < 32 || (part->number + part->member) % 251 == 0;
}

static int is_of_lists(hid_t type)
{
    return H5Tdetect_class(type, H5T_VLEN) > 0 || H5Tdetect_class(type, H5T_STRING) > 0;
}

/* Returns whether another part of the virtual dataset may have this element too: then the element
 * may come from that part. */
static int is_elsewhere_too(hid_t plist, const source_part *part, const hsize_t *at)
{
    hsize_t first[H5S_MAX_RANK], last[H5S_MAX_RANK];
    size_t n = 0;
    int may = H5Pget_virtual_count(plist, &n) < 0;
    for (size_t i = 0; i < n && !may; i++) {
        if (i == part->number)
            continue;
        hid_t space = H5Pget_virtual_vspace(plist, i);
        int ndim = space < 0 ? 0 : H5Sget_simple_extent_ndims(space);
        may = 1;
        if (space >= 0 && H5Sget_select_bounds(space, first, last) >= 0)
            for (int k = 0; k < ndim; k++)
                may &= at[k] >= first[k] && at[k] <= last[k];
        brc_hdf5_close(space);
    }
    return may;
}

/* Checks that the library reads the part from the source. If the first element is a fill value
 * in the virtual dataset and another value in the source, then the library could not open the
 * source. */
static int check_reading(const brc_hdf5_sources *s, const source_part *part,
                         const held_id *source, brc_error *err)
{
    hsize_t to[H5S_MAX_RANK], from[H5S_MAX_RANK];
    hid_t plist = H5Dget_create_plist(part->set), type = BRC_HDF5_NONE;
    uint8_t *fill = NULL;
    int rc = BRC_OK;

    if (!is_of_lists(s->type) && first_of(part->taken, part->member, to) &&
        first_of(part->given, 0, from))
        type = H5Tget_native_type(s->type, H5T_DIR_ASCEND);
    size_t size = type < 0 ? 0 : H5Tget_size(type);
    if (size == 0 || plist < 0)
        goto done;
    BRC_GO(brc_new_array((void **)&fill, 3, size, err));
    if (H5Pget_fill_value(plist, type, fill) >= 0 &&
        read_first(part->set, type, to, fill + size) &&
        read_first(source->id, type, from, fill + 2 * size) &&
        memcmp(fill, fill + size, size) == 0 &&
        memcmp(fill, fill + 2 * size, size) != 0 && !is_elsewhere_too(plist, part, to))
        rc = refuse_source(s, part, COPY_IT, "which the HDF5 library takes for fill values", err);
done:
    free(fill);
    brc_hdf5_close(type);
    brc_hdf5_close(plist);
    return rc;
}

/* ---- sources -------------------------------- */

static int look_into(brc_hdf5_sources *s, const held_id *set, brc_error *err);

/* Opens a file, or finds the open one. Sets *code below 0 if there is no such file, and says
 * why. */
static int open_file(brc_hdf5_sources *s, const source_part *part, char *path, hid_t *file,
                     int *code, brc_error *err)
{
    uint64_t size;
    held_id *held = find_held(&s->files, path);
    *code = 0;
    if (!held) {
        char *key;
        *code = brc_convert_reach(s->in->convert, path, &size);
        if (*code < 0)
            return BRC_OK;
        if (s->nfiles == MOST_FILES)
            return too_much(s, "files", MOST_FILES, err);
        hid_t id = hdf5_file_other(path);
        if (id < 0)
            return refuse_source(s, part, COPY_IT, "which cannot be opened as HDF5", err);
        int rc = brc_dup(&key, path, err);
        if (rc < 0) {
            brc_hdf5_close(id);
            return rc;
        }
        BRC_TRY(hold(&s->files, key, id, &held, err));
        BRC_TRY(brc_grow_array((void **)&s->paths, &s->paths_cap, s->nfiles + 1,
                               sizeof(*s->paths), err));
        s->paths[s->nfiles++] = held->key;
    }
    *file = held->id;
    return BRC_OK;
}

/* Opens a dataset of the file, or finds the open one. Sets *out to NULL if there is no such
 * dataset. */
static int open_set(brc_hdf5_sources *s, const source_part *part, const char *path, hid_t file,
                    held_id **out, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    H5O_info_t info;
    char *key;
    int rc;
    *out = NULL;
    BRC_GO(brc_buf_printf(&text, err, "%s\n%s", path, part->name));
    BRC_GO(brc_buf_take_text(&text, &key, err));
    *out = find_held(&s->sets, key);
    if (*out) {
        free(key);
        goto done;
    }
    hid_t id = H5Dopen2(file, part->name, s->in->links);
    if (id < 0 || H5Oget_info2(id, &info, H5O_INFO_BASIC) < 0) {
        brc_hdf5_close(id);
        free(key);
        goto done;
    }
    BRC_GO(hold(&s->sets, key, id, out, err));
    (*out)->file = info.fileno;
    (*out)->address = info.addr;
    if (++s->nsets > MOST_SETS)
        rc = too_much(s, "datasets", MOST_SETS, err);
done:
    brc_buf_dispose(&text);
    return rc;
}

/* Opens the source of a part and checks it. Sets *there to 0 if there is no such source; the caller
 * decides whether this is an error. */
static int take_source(brc_hdf5_sources *s, const source_part *part, int *there, brc_error *err)
{
    int is_own = strcmp(part->file, ".") == 0, code = 0, rc;
    hid_t file = BRC_HDF5_NONE;
    held_id *set = NULL;
    char *path = NULL;
    size_t known = s->nsets;

    *there = 0;
    if (is_own) {
        BRC_GO(brc_dup(&path, part->above, err));
        file = part->parent;
    } else {
        BRC_GO(hdf5_file_named(&path, part->above, part->file, err));
        BRC_GO(open_file(s, part, path, &file, &code, err));
    }
    if (code < 0 && code != -ENOENT) {
        rc = refuse_source(s, part, hdf5_unreached_remedy(code), hdf5_unreached(code), err);
        goto done;
    }
    if (code == -ENOENT)
        goto done;
    BRC_GO(open_set(s, part, path, file, &set, err));
    if (!set)
        goto done;
    *there = 1;
    for (int i = 0; i < s->depth; i++)
        if (s->above[i].file == set->file && s->above[i].address == set->address) {
            rc = refuse_source(s, part, COPY_IT, "which takes elements from it", err);
            goto done;
        }
    if (s->nsets > known) {
        BRC_GO(check_kind(s, part, set, err));
        BRC_GO(look_into(s, set, err));
    }
    if (!has_elements(set->id, part))
        rc = refuse_source(s, part, COPY_IT, "which has fewer elements than are taken", err);
    else if (is_sampled(part))
        rc = check_reading(s, part, set, err);
done:
    free(path);
    return rc;
}

static int refuse_missing(const brc_hdf5_sources *s, const source_part *part, brc_error *err)
{
    return refuse_source(s, part, "copy the file to that place, or leave this out with --exclude",
                         "which does not exist", err);
}

/* ---- names of a series -------------------------------- */

/* Writes a source's name: "%b" becomes the number, and "%%" one "%", as in the library. Sets *has
 * to 1 if the name contains "%b". */
static int spell_name(brc_buf *out, const char *name, uint64_t number, int *has, brc_error *err)
{
    out->len = 0;
    for (; *name; name++) {
        int sign = *name == '%' ? name[1] : 0;
        if (sign == 'b')
            BRC_TRY(brc_buf_printf(out, err, "%llu", (unsigned long long)number));
        else
            BRC_TRY(brc_buf_byte(out, (uint8_t)*name, err));
        *has |= sign == 'b';
        name += sign == 'b' || sign == '%';
    }
    return brc_buf_terminate(out, err);
}

/* Returns whether a selection has no end along an axis. Then the part is a series, and each member
 * gives one block. */
static int is_endless(hid_t space)
{
    hsize_t start[H5S_MAX_RANK], stride[H5S_MAX_RANK], count[H5S_MAX_RANK], block[H5S_MAX_RANK];
    int ndim = H5Sget_simple_extent_ndims(space), is = 0;
    if (H5Sis_regular_hyperslab(space) <= 0 ||
        H5Sget_regular_hyperslab(space, start, stride, count, block) < 0)
        return 0;
    for (int i = 0; i < ndim; i++)
        is |= count[i] == H5S_UNLIMITED || block[i] == H5S_UNLIMITED;
    return is;
}

/* Opens the members of a series, up to the last one that exists. The search ends after as many
 * missing members as the library's. */
static int take_series(brc_hdf5_sources *s, const source_part *part, brc_error *err)
{
    brc_buf file = BRC_BUF_INIT, name = BRC_BUF_INIT;
    source_part one = *part;
    uint64_t missing = 0, gap = BRC_HDF5_SERIES_GAP;
    int rc = BRC_OK, there, has = 0;
    hid_t endless = is_endless(part->taken) ? part->taken : BRC_HDF5_NONE;

    for (uint64_t i = 0; missing <= gap; i++) {
        if (i - missing >= MOST_SETS) {
            rc = too_much(s, "datasets", MOST_SETS, err);
            break;
        }
        BRC_GO(spell_name(&file, part->file, i, &has, err));
        BRC_GO(spell_name(&name, part->name, i, &has, err));
        one.file = (const char *)file.data;
        one.name = (const char *)name.data;
        one.member = i;
        BRC_GO(take_source(s, &one, &there, err));
        if (!there && (i == 0 || !has || endless < 0)) {
            rc = refuse_missing(s, &one, err);
            break;
        }
        if (!has || endless < 0)
            break;
        if (there && missing > 0) {
            BRC_GO(spell_name(&file, part->file, i - missing, &has, err));
            BRC_GO(spell_name(&name, part->name, i - missing, &has, err));
            one.file = (const char *)file.data;
            one.name = (const char *)name.data;
            rc = refuse_missing(s, &one, err);
            break;
        }
        missing += !there;
    }
done:
    brc_buf_dispose(&file);
    brc_buf_dispose(&name);
    return rc;
}

/* ---- virtual datasets -------------------------------- */

/* One of the library's two functions that give a name of the i-th mapping. */
typedef ssize_t name_reader(hid_t plist, size_t i, char *name, size_t room);
static int mapping_name(char **out, name_reader *get, hid_t plist, size_t i, const char *label,
                        brc_error *err)
{
    ssize_t len = get(plist, i, NULL, 0);
    if (len < 0)
        return brc_hdf5_fail(err, BRC_EINVAL, "%s: the name of a source cannot be read", label);
    BRC_TRY(brc_new((void **)out, (size_t)len + 1, err));
    (void)get(plist, i, *out, (size_t)len + 1);
    return BRC_OK;
}

static int check_mapping(brc_hdf5_sources *s, hid_t parent, hid_t set, hid_t plist,
                         const char *above, size_t i, brc_error *err)
{
    char *file = NULL, *name = NULL;
    source_part part = { .above = above,
                         .number = i,
                         .parent = parent,
                         .set = set,
                         .taken = H5Pget_virtual_vspace(plist, i),
                         .given = H5Pget_virtual_srcspace(plist, i) };
    int rc;
    BRC_GO(mapping_name(&file, H5Pget_virtual_filename, plist, i, s->label, err));
    BRC_GO(mapping_name(&name, H5Pget_virtual_dsetname, plist, i, s->label, err));
    part.file = file;
    part.name = name;
    if (part.taken < 0 || part.given < 0)
        rc = brc_hdf5_fail(err, BRC_EINVAL, "%s: its sources cannot be read", s->label);
    else
        rc = take_series(s, &part, err);
done:
    brc_hdf5_close(part.taken);
    brc_hdf5_close(part.given);
    free(name);
    free(file);
    return rc;
}

static int check_mappings(brc_hdf5_sources *s, const held_id *set, hid_t plist, const char *above,
                          brc_error *err)
{
    size_t n = 0;
    if (H5Pget_virtual_count(plist, &n) < 0)
        return brc_hdf5_fail(err, BRC_EINVAL, "%s: its sources cannot be read", s->label);
    if (n > MOST_MAPPINGS)
        return too_much(s, "places", MOST_MAPPINGS, err);
    if (s->depth == MOST_NESTED)
        return brc_part_refuse(err, BRC_PART_STORAGE, COPY_IT,
                               "%.200s: sources of its sources are nested more than %d deep",
                               s->label, MOST_NESTED);
    hid_t file = H5Iget_file_id(set->id);
    int rc = file < 0 ? brc_hdf5_fail(err, BRC_EINVAL, "%s: its file is not known", s->label)
                      : BRC_OK;
    s->above[s->depth++] = *set;
    for (size_t i = 0; i < n && rc == BRC_OK; i++)
        rc = check_mapping(s, file, set->id, plist, above, i, err);
    s->depth--;
    brc_hdf5_close(file);
    return rc;
}

/* Opens and checks the sources of a dataset's elements. The dataset itself is open. */
static int look_into(brc_hdf5_sources *s, const held_id *set, brc_error *err)
{
    hid_t plist = H5Dget_create_plist(set->id);
    char *above = NULL;
    ssize_t len = H5Fget_name(set->id, NULL, 0);
    int rc;
    if (plist < 0 || len < 0) {
        rc = brc_hdf5_fail(err, BRC_EINVAL, "%s: its sources cannot be read", s->label);
        goto done;
    }
    BRC_GO(brc_new((void **)&above, (size_t)len + 1, err));
    (void)H5Fget_name(set->id, above, (size_t)len + 1);
    H5D_layout_t layout = H5Pget_layout(plist);
    if (layout == H5D_VIRTUAL)
        rc = check_mappings(s, set, plist, above, err);
    else if (layout == H5D_CONTIGUOUS && H5Pget_external_count(plist) > 0)
        rc = check_raw_files(s, set->id, plist, above, err);
done:
    free(above);
    brc_hdf5_close(plist);
    return rc;
}

/* ---- from outside -------------------------------- */

int brc_hdf5_has_raw_files(hid_t dataset)
{
    hid_t plist = H5Dget_create_plist(dataset);
    int has = plist >= 0 && H5Pget_layout(plist) == H5D_CONTIGUOUS &&
              H5Pget_external_count(plist) > 0;
    brc_hdf5_close(plist);
    return has;
}

int brc_hdf5_sources_open(brc_hdf5_sources **out, const brc_hdf5_in *in, hid_t dataset,
                          const char *label, brc_error *err)
{
    held_id first = { .id = dataset };
    H5O_info_t info;
    *out = NULL;
    if (!brc_hdf5_is_virtual(dataset) && !brc_hdf5_has_raw_files(dataset))
        return BRC_OK;
    BRC_TRY(brc_new((void **)out, sizeof(**out), err));
    (*out)->in = in;
    (*out)->label = label;
    (*out)->type = H5Dget_type(dataset);
    if ((*out)->type < 0 || H5Oget_info2(dataset, &info, H5O_INFO_BASIC) < 0)
        return brc_hdf5_fail(err, BRC_EINVAL, "%s: its sources cannot be read", label);
    first.file = info.fileno;
    first.address = info.addr;
    return look_into(*out, &first, err);
}

int brc_hdf5_sources_stay(const brc_hdf5_sources *s, brc_error *err)
{
    uint64_t size;
    for (size_t i = 0; s && i < s->nfiles; i++)
        if (brc_convert_reach(s->in->convert, s->paths[i], &size) < 0)
            return brc_fail(err, BRC_EINVAL, "%.200s: its file %.200s went away while it was read",
                            s->label, s->paths[i]);
    return BRC_OK;
}

void brc_hdf5_sources_close(brc_hdf5_sources *s)
{
    if (!s)
        return;
    tdestroy(s->sets, let_go);
    tdestroy(s->files, let_go);
    free(s->paths);
    brc_hdf5_close(s->type);
    free(s);
}

/* ==== hdf5 elsewhere ================================ */

/* Other files to which an HDF5 file leads, see hdf5_elsewhere.h. */

/* The most files to which links lead. Each file takes a descriptor, and half a MiB in the
 * library. */
#define MOST_OTHERS 200

/* ---- names -------------------------------- */

/* Makes the path of the file that is called `name` in the file `above`. The caller frees the
 * path. */
static int hdf5_file_named(char **out, const char *above, const char *name, brc_error *err)
{
    const char *slash = *name == '/' ? NULL : strrchr(above, '/');
    brc_buf path = BRC_BUF_INIT;
    int rc = BRC_OK;
    *out = NULL;
    if (slash)
        BRC_GO(brc_buf_append(&path, above, (size_t)(slash - above) + 1, err));
    BRC_GO(brc_buf_text(&path, name, err));
    rc = brc_buf_take_text(&path, out, err);
done:
    brc_buf_dispose(&path);
    return rc;
}

/* Returns the clause of a message for a code of brc_convert_reach(), such as "which is not
 * there". */
static const char *hdf5_unreached(int code)
{
    switch (code) {
    case -ENOENT:
        return "which does not exist";
    case -EACCES:
    case -EPERM:
        return "which may not be read";
    case -ENOMEM:
        return "for which there is no memory";
    default:
        return "which cannot be opened";
    }
}

static const char *hdf5_unreached_remedy(int code)
{
    switch (code) {
    case -ENOENT:
        return "copy the file to that place, or leave this out with --exclude";
    case -EACCES:
    case -EPERM:
        return "only files beneath the imported file's folder are, by names without \"..\", hidden "
               "parts and symbolic links";
    default:
        return NULL;
    }
}

/* ---- links -------------------------------- */

void brc_hdf5_forget_link(brc_hdf5_elsewhere *e)
{
    free(e->object);
    free(e->file);
    e->object = e->file = NULL;
    e->links = e->code = 0;
}

/* The library calls this function before it opens the file of a link. */
static herr_t follow_link_out(const char *above, const char *group, const char *file,
                              const char *object, unsigned *flags, hid_t access, void *ctx)
{
    brc_hdf5_elsewhere *e = ctx;
    int links = e->links + 1;
    uint64_t size;
    char *path = NULL;
    (void)group, (void)flags, (void)access;
    brc_hdf5_forget_link(e);
    e->links = links;
    if (brc_dup(&e->file, file, NULL) < 0 || brc_dup(&e->object, object, NULL) < 0 ||
        hdf5_file_named(&path, above, file, NULL) < 0)
        e->code = -ENOMEM;
    else
        e->code = brc_convert_reach(e->convert, path, &size);
    free(path);
    return e->code < 0 ? -1 : 0;
}

int brc_hdf5_link_refuse(const brc_hdf5_elsewhere *e, const char *label, brc_error *err)
{
    const char *leave = "remove it, or leave it out with --exclude";
    if (e->links == 0)
        return brc_part_refuse(err, BRC_PART_LINK, leave, "%s links to an object that this file "
                                                          "does not have",
                               label);
    if (!e->file || !e->object)
        return brc_nomem(err);
    if (e->code < 0)
        return brc_part_refuse(err, BRC_PART_LINK, hdf5_unreached_remedy(e->code),
                               "%s leads to %.100s in the file %.100s, %s", label, e->object,
                               e->file, hdf5_unreached(e->code));
    if (e->links > 1)
        return brc_part_refuse(err, BRC_PART_LINK, leave,
                               "%s leads through links of %d files to %.100s in the file %.100s, "
                               "which has no such object, or leads back",
                               label, e->links, e->object, e->file);
    return brc_part_refuse(err, BRC_PART_LINK, leave,
                           "%s leads to %.100s in the file %.100s, which is not HDF5 or has no "
                           "such object",
                           label, e->object, e->file);
}

/* ---- files -------------------------------- */

/* Opens another file to read. Returns its id, or BRC_HDF5_NONE. */
static hid_t hdf5_file_other(const char *path)
{
    /* All that open a file must set the same degree, and the library opens some files by itself. */
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), file = BRC_HDF5_NONE;
    if (access >= 0 && H5Pset_fclose_degree(access, H5F_CLOSE_WEAK) >= 0)
        file = H5Fopen(path, H5F_ACC_RDONLY, access);
    brc_hdf5_close(access);
    return file;
}

/* Makes the access lists of links and of datasets with raw files. To read a virtual dataset, the
 * library opens the sources by a list without a prefix, and fails if a source is open by a list
 * with a prefix. So only datasets with raw files get a prefix. */
static int make_links(hid_t *links, hid_t *raw, brc_hdf5_elsewhere *elsewhere)
{
    *links = H5Pcreate(H5P_DATASET_ACCESS);
    *raw = BRC_HDF5_NONE;
    if (*links < 0 || H5Pset_elink_cb(*links, follow_link_out, elsewhere) < 0 ||
        H5Pset_virtual_printf_gap(*links, BRC_HDF5_SERIES_GAP) < 0)
        return 0;
    *raw = H5Pcopy(*links);
    return *raw >= 0 && H5Pset_efile_prefix(*raw, "${ORIGIN}") >= 0;
}

int brc_hdf5_file_open(hid_t *file, hid_t *links, hid_t *raw, brc_hdf5_elsewhere *elsewhere,
                       const char *name, brc_error *err)
{
    char *path;
    int rc = BRC_OK;
    *file = BRC_HDF5_NONE;
    if (!make_links(links, raw, elsewhere))
        return brc_hdf5_fail(err, BRC_ENOMEM, "%s: cannot prepare to open it", name);
    BRC_TRY(brc_convert_real_path(&path, elsewhere->convert, err));
    *file = hdf5_file_other(path);
    if (*file < 0)
        rc = brc_hdf5_fail(err, BRC_EINVAL, "%s cannot be opened as HDF5", name);
    free(path);
    return rc;
}

static int add_other(brc_hdf5_elsewhere *e, hid_t object, unsigned long number, hid_t links,
                     const char *label, brc_error *err)
{
    if (e->n == MOST_OTHERS)
        return brc_part_refuse(err, BRC_PART_SIZE, "import some of these files by themselves",
                               "%s: links lead to more than %d other files", label, MOST_OTHERS);
    BRC_TRY(
        brc_grow_array((void **)&e->others, &e->cap, e->n + 1, sizeof(*e->others), err));
    brc_hdf5_other *other = &e->others[e->n];
    memset(other, 0, sizeof(*other));
    other->number = number;
    other->id = H5Iget_file_id(object);
    if (other->id < 0)
        return brc_hdf5_fail(err, BRC_EINVAL, "%s: its file cannot be opened", label);
    e->n++;
    return brc_hdf5_paths_read(&other->paths, other->id, links, label, err);
}

int brc_hdf5_other_find(const brc_hdf5_other **out, brc_hdf5_elsewhere *e, hid_t object,
                        unsigned long number, hid_t links, const char *label, brc_error *err)
{
    size_t i = 0;
    while (i < e->n && e->others[i].number != number)
        i++;
    if (i == e->n)
        BRC_TRY(add_other(e, object, number, links, label, err));
    *out = &e->others[i];
    return BRC_OK;
}

void brc_hdf5_elsewhere_free(brc_hdf5_elsewhere *e)
{
    for (size_t i = 0; i < e->n; i++) {
        brc_hdf5_close(e->others[i].id);
        brc_hdf5_paths_free(&e->others[i].paths);
    }
    free(e->others);
    brc_hdf5_forget_link(e);
    memset(e, 0, sizeof(*e));
}
