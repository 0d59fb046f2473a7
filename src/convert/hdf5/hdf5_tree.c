/* The paths of a file's objects, see hdf5_tree.h. */
#include "hdf5_tree.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/node_path.h"
#include "../../codec/registry.h"

/* ==== hdf5 paths ================================ */

#define PATHS_BYTES ((size_t)256 << 20)

struct brc_hdf5_path {
    haddr_t address;
    H5O_type_t type;
    char *path;
    size_t first, n;            /* of a group: its part of paths->named */
    struct brc_hdf5_path *next; /* the object that was met next */
};

typedef struct paths_walk {
    brc_hdf5_paths *paths;
    hid_t links;
    struct brc_hdf5_path *now,
        *last; /* the group that is being read, and the object that was met last */
    const char *label;
    int rc;
    brc_error *err;
} paths_walk;

static int by_address(const void *a, const void *b)
{
    haddr_t x = ((const struct brc_hdf5_path *)a)->address;
    haddr_t y = ((const struct brc_hdf5_path *)b)->address;
    return (x > y) - (x < y);
}

static int take_bytes(paths_walk *w, size_t bytes)
{
    w->paths->taken += bytes;
    if (w->paths->taken <= PATHS_BYTES)
        return BRC_OK;
    return brc_fail(w->err, BRC_ELIMIT,
                    "%s: the paths of the file's objects have more than %zu MiB", w->label,
                    PATHS_BYTES >> 20);
}

/* Adds the object unless it has a path already. Takes over `path`. */
static int add_path(paths_walk *w, const H5O_info_t *info, char *path)
{
    struct brc_hdf5_path key = { .address = info->addr }, *item;
    int rc;
    if (tfind(&key, &w->paths->met, by_address)) {
        free(path);
        return BRC_OK;
    }
    rc = brc_new((void **)&item, sizeof(*item), w->err);
    if (rc < 0) {
        free(path);
        return rc;
    }
    item->address = info->addr;
    item->type = info->type;
    item->path = path;
    if (!tsearch(item, &w->paths->met, by_address)) {
        free(path);
        free(item);
        return brc_nomem(w->err);
    }
    if (w->last)
        w->last->next = item;
    else
        w->paths->first = item;
    w->last = item;
    return take_bytes(w, sizeof(*item) + strlen(path));
}

static int add_named(paths_walk *w, const char *name)
{
    brc_hdf5_paths *paths = w->paths;
    BRC_TRY(brc_grow_array((void **)&paths->named, &paths->named_cap, paths->nnamed + 1,
                           sizeof(*paths->named), w->err));
    BRC_TRY(brc_dup(&paths->named[paths->nnamed], name, w->err));
    paths->nnamed++;
    w->now->n++;
    return take_bytes(w, sizeof(*paths->named) + strlen(name));
}

static int take_object(paths_walk *w, hid_t object, const char *name)
{
    H5O_info_t info;
    char *path;
    if (H5Oget_info2(object, &info, H5O_INFO_BASIC) < 0)
        return BRC_OK;
    if (info.type == H5O_TYPE_NAMED_DATATYPE)
        BRC_TRY(add_named(w, name));
    BRC_TRY(brc_node_join(&path, w->now->path, name, w->err));
    if (strlen(path) > BRC_PATH_MAX) { /* no node can have this path */
        free(path);
        return BRC_OK;
    }
    return add_path(w, &info, path);
}

static herr_t take_path(hid_t group, const char *name, const H5L_info_t *info, void *ctx)
{
    paths_walk *w = ctx;
    if (info->type != H5L_TYPE_HARD)
        return 0;
    hid_t object = H5Oopen(group, name, w->links);
    if (object < 0)
        return 0;
    w->rc = take_object(w, object, name);
    brc_hdf5_close(object);
    return w->rc < 0 ? -1 : 0;
}

int brc_hdf5_paths_read(brc_hdf5_paths *out, hid_t file, hid_t links, const char *label,
                        brc_error *err)
{
    paths_walk w = { .paths = out, .links = links, .label = label, .err = err };
    H5O_info_t info;
    char *path;
    hid_t root = H5Oopen(file, "/", links);
    if (root < 0 || H5Oget_info2(root, &info, H5O_INFO_BASIC) < 0) {
        brc_hdf5_close(root);
        return BRC_OK;
    }
    brc_hdf5_close(root);
    BRC_TRY(brc_dup(&path, "/", err));
    BRC_TRY(add_path(&w, &info, path));
    for (w.now = out->first; w.now && w.rc == BRC_OK; w.now = w.now->next) {
        if (w.now->type != H5O_TYPE_GROUP)
            continue;
        hid_t group = H5Oopen(file, w.now->path, links);
        w.now->first = out->nnamed;
        if (group >= 0)
            (void)H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, NULL, take_path, &w);
        brc_hdf5_close(group);
    }
    return w.rc;
}

int brc_hdf5_paths_each(const brc_hdf5_paths *paths,
                        int (*take)(void *ctx, const char *path, H5O_type_t type), void *ctx)
{
    int rc = BRC_OK;
    for (const struct brc_hdf5_path *p = paths->first; p && rc == BRC_OK; p = p->next)
        rc = take(ctx, p->path, p->type);
    return rc;
}

static void free_path(void *item)
{
    struct brc_hdf5_path *path = item;
    free(path->path);
    free(path);
}

void brc_hdf5_paths_free(brc_hdf5_paths *paths)
{
    tdestroy(paths->met, free_path);
    for (size_t i = 0; i < paths->nnamed; i++)
        free(paths->named[i]);
    free(paths->named);
    memset(paths, 0, sizeof(*paths));
}

static const struct brc_hdf5_path *find_path(const brc_hdf5_paths *paths, haddr_t address)
{
    struct brc_hdf5_path key = { .address = address };
    struct brc_hdf5_path *const *found = tfind(&key, &paths->met, by_address);
    return found ? *found : NULL;
}

static const struct brc_hdf5_path *find_object(const brc_hdf5_paths *paths, hid_t object)
{
    H5O_info_t info;
    return H5Oget_info2(object, &info, H5O_INFO_BASIC) < 0 ? NULL : find_path(paths, info.addr);
}

/* Returns the part of `path` that follows `from`; NULL if `path` does not lie at or beneath
 * `from`. */
static const char *part_beneath(const char *path, const char *from)
{
    size_t len = strcmp(from, "/") == 0 ? 0 : strlen(from);
    if (strncmp(path, from, len) != 0 || (path[len] && path[len] != '/'))
        return NULL;
    return strcmp(path, "/") == 0 ? "" : path + len;
}

/* Appends "/a/b", the object's path in the imported file. Returns 1, or 0 if no path there leads to
 * the object. */
static int hdf5_path_put(const brc_hdf5_paths *paths, haddr_t address, brc_buf *out,
                         brc_error *err)
{
    const struct brc_hdf5_path *found = find_path(paths, address);
    const char *rest = found ? found->path : NULL;
    if (found && paths->from)
        rest = part_beneath(found->path, paths->from);
    if (!rest)
        return 0;
    if (paths->from)
        BRC_TRY(brc_buf_text(out, paths->to, err));
    BRC_TRY(brc_buf_text(out, rest, err));
    return 1;
}

const char *brc_hdf5_path_of_object(const brc_hdf5_paths *paths, hid_t object)
{
    const struct brc_hdf5_path *found = find_object(paths, object);
    return found ? found->path : NULL;
}

char *const *brc_hdf5_named_in(const brc_hdf5_paths *paths, hid_t group, size_t *n)
{
    const struct brc_hdf5_path *found = find_object(paths, group);
    *n = found ? found->n : 0;
    return *n > 0 ? paths->named + found->first : NULL;
}

/* ==== hdf5 reference ================================ */

/* Writes references as text, and reads them: see hdf5_tree.h. */

#define MOST_BLOCKS 4096 /* or points of a region */

static int bad_region(const char *label, brc_error *err)
{
    return brc_hdf5_fail(err, BRC_EINVAL, "%s: one of its references to a region cannot be read",
                         label);
}

/* ---- selections as text -------------------------------- */

static int append_slice(brc_buf *out, int axis, hsize_t from, hsize_t to, hsize_t step,
                        brc_error *err)
{
    BRC_TRY(brc_buf_printf(out, err, "%s%llu:%llu", axis > 0 ? ", " : "[", (unsigned long long)from,
                           (unsigned long long)to));
    return step > 1 ? brc_buf_printf(out, err, ":%llu", (unsigned long long)step) : BRC_OK;
}

/* Appends the selection as one box of slices. Returns 1 if it is one. */
static int append_regular(hid_t space, int ndim, brc_buf *out, brc_error *err)
{
    hsize_t start[H5S_MAX_RANK], stride[H5S_MAX_RANK], count[H5S_MAX_RANK], block[H5S_MAX_RANK];
    if (H5Sis_regular_hyperslab(space) <= 0 ||
        H5Sget_regular_hyperslab(space, start, stride, count, block) < 0)
        return 0;
    for (int i = 0; i < ndim; i++)
        if (count[i] == 0 || (block[i] != 1 && count[i] != 1))
            return 0;
    for (int i = 0; i < ndim; i++) {
        hsize_t last =
            count[i] == 1 ? start[i] + block[i] - 1 : start[i] + (count[i] - 1) * stride[i];
        BRC_TRY(append_slice(out, i, start[i], last + 1, count[i] == 1 ? 1 : stride[i], err));
    }
    BRC_TRY(brc_buf_byte(out, ']', err));
    return 1;
}

/* Appends boxes, each by its first and last corner, or points. */
static int append_corners(const hsize_t *at, size_t n, int ndim, int points, brc_buf *out,
                          brc_error *err)
{
    for (size_t k = 0; k < n; k++, at += (points ? 1 : 2) * ndim) {
        for (int i = 0; i < ndim; i++)
            BRC_TRY(points ? brc_buf_printf(out, err, "%s%llu", i > 0 ? ", " : "[",
                                            (unsigned long long)at[i])
                           : append_slice(out, i, at[i], at[ndim + i] + 1, 1, err));
        BRC_TRY(brc_buf_byte(out, ']', err));
    }
    return BRC_OK;
}

static int append_list(hid_t space, int ndim, int points, brc_buf *out, const char *label,
                       brc_error *err)
{
    hssize_t n = points ? H5Sget_select_elem_npoints(space) : H5Sget_select_hyper_nblocks(space);
    hsize_t *at;
    if (n < 0 || ndim < 1)
        return bad_region(label, err);
    if (n > MOST_BLOCKS)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "%s: one of its references is to a region of more than %d parts", label,
                        MOST_BLOCKS);
    BRC_TRY(brc_new_array((void **)&at, (size_t)n, 2 * (size_t)ndim * sizeof(*at), err));
    herr_t status = points ? H5Sget_select_elem_pointlist(space, 0, (hsize_t)n, at)
                           : H5Sget_select_hyper_blocklist(space, 0, (hsize_t)n, at);
    int rc =
        status < 0 ? bad_region(label, err) : append_corners(at, (size_t)n, ndim, points, out, err);
    free(at);
    return rc;
}

static int append_selection(hid_t space, brc_buf *out, const char *label, brc_error *err)
{
    int ndim = H5Sget_simple_extent_ndims(space), rc;
    if (ndim < 0 || H5Sselect_valid(space) <= 0)
        return bad_region(label, err);
    switch (H5Sget_select_type(space)) {
    case H5S_SEL_NONE:
        return brc_buf_text(out, "[]", err);
    case H5S_SEL_ALL:
        return brc_buf_text(out, "[...]", err);
    case H5S_SEL_POINTS:
        return append_list(space, ndim, 1, out, label, err);
    case H5S_SEL_HYPERSLABS:
        rc = append_regular(space, ndim, out, err);
        return rc != 0 ? (rc < 0 ? rc : BRC_OK) : append_list(space, ndim, 0, out, label, err);
    default:
        return bad_region(label, err);
    }
}

/* ---- references as text -------------------------------- */

static int append_path(const brc_hdf5_paths *paths, haddr_t address, brc_buf *out,
                       const char *label, brc_error *err)
{
    int rc = hdf5_path_put(paths, address, out, err);
    if (rc != 0)
        return rc < 0 ? rc : BRC_OK;
    return paths->from
               ? brc_part_refuse(err, BRC_PART_VALUE, "link to a group around both",
                                 "%s: one of its references leads to an object of another file "
                                 "that the link to that file does not import",
                                 label)
               : brc_fail(
                     err, BRC_EUNSUPPORTED,
                     "%s: one of its references leads to an object that has no path in the file",
                     label);
}

static int append_region(const brc_hdf5_paths *paths, hid_t file, const void *reference,
                         brc_buf *out, const char *label, brc_error *err)
{
    H5O_info_t info;
    hid_t object = H5Rdereference2(file, H5P_DEFAULT, H5R_DATASET_REGION, reference);
    hid_t space = object < 0 ? BRC_HDF5_NONE : H5Rget_region(file, H5R_DATASET_REGION, reference);
    int rc;
    if (space < 0 || H5Oget_info2(object, &info, H5O_INFO_BASIC) < 0) {
        rc = bad_region(label, err);
        goto done;
    }
    BRC_GO(append_path(paths, info.addr, out, label, err));
    BRC_GO(brc_buf_byte(out, '#', err));
    rc = append_selection(space, out, label, err);
done:
    brc_hdf5_close(space);
    brc_hdf5_close(object);
    return rc;
}

int brc_hdf5_reference_text(const brc_hdf5_paths *paths, hid_t file, int is_region,
                            const void *reference, brc_buf *out, const char *label, brc_error *err)
{
    static const uint8_t nothing[sizeof(hdset_reg_ref_t) + sizeof(hobj_ref_t)];
    hobj_ref_t address;
    if (memcmp(reference, nothing, is_region ? sizeof(hdset_reg_ref_t) : sizeof(address)) == 0)
        return BRC_OK;
    if (is_region)
        return append_region(paths, file, reference, out, label, err);
    memcpy(&address, reference, sizeof(address));
    if (address == HADDR_UNDEF)
        return BRC_OK;
    return append_path(paths, address, out, label, err);
}

/* ---- text as references -------------------------------- */

/* The slices or integers in one bracket. */
typedef struct region_part {
    hsize_t start[H5S_MAX_RANK], stride[H5S_MAX_RANK], count[H5S_MAX_RANK];
    int ndim, points;
} region_part;

static int read_number(const char **text, hsize_t *out)
{
    char *end;
    if (**text < '0' || **text > '9')
        return 0;
    *out = strtoull(*text, &end, 10);
    *text = end;
    return 1;
}

static int read_part_axis(const char **text, region_part *part)
{
    hsize_t to, step = 1, *start = &part->start[part->ndim];
    if (part->ndim == H5S_MAX_RANK || !read_number(text, start))
        return 0;
    int is_point = **text != ':';
    if (part->ndim > 0 && is_point != part->points)
        return 0;
    part->points = is_point;
    to = *start + 1;
    if (!is_point) {
        ++*text;
        if (!read_number(text, &to) || to <= *start)
            return 0;
        if (**text == ':' && (++*text, !read_number(text, &step) || step == 0))
            return 0;
    }
    part->stride[part->ndim] = step;
    part->count[part->ndim] = (to - *start + step - 1) / step;
    part->ndim++;
    return 1;
}

static int read_part_text(const char **text, region_part *part)
{
    part->ndim = 0;
    if (*(*text)++ != '[')
        return 0;
    while (read_part_axis(text, part)) {
        if (**text == ']') {
            ++*text;
            return 1;
        }
        if (*(*text)++ != ',')
            return 0;
        *text += **text == ' ';
    }
    return 0;
}

/* Selects the region that the text names. Returns 0 if the text does not name a region of the
 * space. */
static int select_region(hid_t space, const char *text)
{
    int ndim = H5Sget_simple_extent_ndims(space), ok = H5Sselect_none(space) >= 0;
    region_part part;
    if (strcmp(text, "[]") == 0)
        return ok;
    if (strcmp(text, "[...]") == 0)
        return H5Sselect_all(space) >= 0;
    for (int first = 1, points = 0; ok && *text; first = 0) {
        ok = read_part_text(&text, &part) && part.ndim == ndim && (first || part.points == points);
        if (!ok)
            break;
        points = part.points;
        ok = points ? H5Sselect_elements(space, first ? H5S_SELECT_SET : H5S_SELECT_APPEND, 1,
                                         part.start) >= 0
                    : H5Sselect_hyperslab(space, first ? H5S_SELECT_SET : H5S_SELECT_OR, part.start,
                                          part.stride, part.count, NULL) >= 0;
    }
    return ok && H5Sselect_valid(space) > 0;
}

static int make_region(hid_t file, const char *path, const char *text, void *reference,
                       const char *label, brc_error *err)
{
    const char *selection = strrchr(text, '#');
    hid_t set = selection ? H5Dopen2(file, path, H5P_DEFAULT) : BRC_HDF5_NONE;
    hid_t space = set < 0 ? BRC_HDF5_NONE : H5Dget_space(set);
    int rc = space >= 0 && select_region(space, selection + 1);
    if (rc == 1 && H5Rcreate(reference, file, path, H5R_DATASET_REGION, space) < 0)
        rc = brc_hdf5_fail(err, BRC_EIO, "%s: a reference to %s cannot be made", label, text);
    brc_hdf5_close(space);
    brc_hdf5_close(set);
    return rc;
}

int brc_hdf5_reference_make(hid_t file, int is_region, const char *path, const char *text,
                            void *reference, const char *label, brc_error *err)
{
    if (is_region)
        return make_region(file, path, text, reference, label, err);
    if (H5Rcreate(reference, file, path, H5R_OBJECT, BRC_HDF5_NONE) < 0)
        return brc_hdf5_fail(err, BRC_EIO, "%s: a reference to %s cannot be made", label, text);
    return 1;
}

/* ==== hdf5 tree ================================ */

/* Trees of types, see hdf5_tree.h. */

#define TREE_DEPTH 12
#define MOST_COMPOUND ((uint64_t)1 << 28) /* the most bytes that a note can ask for */

typedef struct tree_reader {
    const brc_registry *reg;
    const char *label;
    int how, depth;
} tree_reader;

static int read_tree(tree_reader *r, brc_hdf5_tree *out, hid_t type, brc_error *err);

static int tree_failed(const char *label, brc_error *err)
{
    return brc_hdf5_fail(err, BRC_EINVAL, "%s: its data type cannot be read", label);
}

/* ---- which types are one data type -------------------------------- */

/* Returns the number of items of an array type, with arrays in it multiplied in, up to a limit. */
static uint64_t count_items(hid_t type, int depth)
{
    uint64_t n = 1;
    hsize_t dims[H5S_MAX_RANK];
    if (H5Tget_class(type) != H5T_ARRAY || depth == TREE_DEPTH ||
        H5Tget_array_ndims(type) > H5S_MAX_RANK || H5Tget_array_dims2(type, dims) < 0)
        return 1;
    hid_t base = H5Tget_super(type);
    n = count_items(base, depth + 1);
    brc_hdf5_close(base);
    for (int i = 0; i < H5Tget_array_ndims(type); i++)
        if (!brc_mul_u64(n, dims[i], &n) || n > BRC_HDF5_FIELD_ITEMS)
            return UINT64_MAX;
    return n;
}

/* Returns whether the type can be a part of a data type. */
static int is_part_type(hid_t type, int depth)
{
    int is = 1;
    switch (H5Tget_class(type)) {
    case H5T_VLEN:
    case H5T_REFERENCE:
        return 0;
    case H5T_STRING:
        return H5Tis_variable_str(type) <= 0;
    case H5T_ARRAY: {
        hid_t base = H5Tget_super(type);
        is = count_items(type, depth) <= BRC_HDF5_FIELD_ITEMS &&
             (depth == TREE_DEPTH || is_part_type(base, depth + 1));
        brc_hdf5_close(base);
        return is;
    }
    case H5T_COMPOUND:
        for (int i = 0; i < H5Tget_nmembers(type) && is && depth < TREE_DEPTH; i++) {
            hid_t member = H5Tget_member_type(type, (unsigned)i);
            is = member < 0 || is_part_type(member, depth + 1);
            brc_hdf5_close(member);
        }
        return is;
    default:
        return 1;
    }
}

/* Returns whether the type, by itself, is one data type. An array may be large, because its axes
 * become the dataset's. */
int brc_hdf5_is_one_type(hid_t type, int how)
{
    switch (H5Tget_class(type)) {
    case H5T_STRING:
    case H5T_REFERENCE:
        return 1;
    case H5T_VLEN:
        return brc_hdf5_is_byte_list(type, how);
    case H5T_ARRAY: {
        hid_t base = H5Tget_super(type);
        int is = is_part_type(base, 0);
        brc_hdf5_close(base);
        return is;
    }
    default:
        return is_part_type(type, 0);
    }
}

/* ---- reading -------------------------------- */

static int read_tree_leaf(const tree_reader *r, brc_hdf5_tree *out, hid_t type, brc_error *err)
{
    out->kind = BRC_HDF5_LEAF;
    BRC_TRY(brc_hdf5_type_read(&out->type, r->reg, type, r->how, r->label, err));
    out->size = out->type.size;
    out->memory = H5Tcopy(out->type.memory);
    if (out->memory < 0)
        return tree_failed(r->label, err);
    int rc = brc_convert_dtype_open(&out->dtype, r->reg, out->type.dtype, err);
    if (rc < 0)
        brc_context(err, "%s", r->label);
    return rc;
}

static size_t align_place(size_t at)
{
    return (at + 7) / 8 * 8;
}

static int read_tree_field(tree_reader *r, brc_hdf5_tree *out, hid_t compound, unsigned i,
                           brc_error *err)
{
    char *name = H5Tget_member_name(compound, i);
    hid_t type = H5Tget_member_type(compound, i);
    size_t whole = H5Tget_size(compound), at = H5Tget_member_offset(compound, i);
    int rc;
    if (!name || type < 0 || at > whole || H5Tget_size(type) > whole - at) {
        rc = tree_failed(r->label, err);
        goto done;
    }
    if (!brc_utf8_valid(name, strlen(name))) {
        rc = brc_fail(err, BRC_EINVAL, "%s: the name of a field is not UTF-8", r->label);
        goto done;
    }
    rc = read_tree(r, out, type, err);
    out->file_at = at;
    if (rc == BRC_OK)
        rc = brc_dup(&out->name, name, err);
    if (rc < 0)
        brc_context(err, "the field \"%.60s\"", name);
done:
    if (name)
        (void)H5free_memory(name);
    brc_hdf5_close(type);
    return rc;
}

static int read_tree_fields(tree_reader *r, brc_hdf5_tree *out, hid_t type, brc_error *err)
{
    int n = H5Tget_nmembers(type);
    out->kind = BRC_HDF5_COMPOUND;
    if (n <= 0)
        return tree_failed(r->label, err);
    BRC_TRY(brc_new_array((void **)&out->items, (size_t)n, sizeof(*out->items), err));
    for (int i = 0; i < n; i++) {
        brc_hdf5_tree *field = &out->items[out->n++];
        field->memory = field->type.memory = BRC_HDF5_NONE;
        BRC_TRY(read_tree_field(r, field, type, (unsigned)i, err));
        field->at = align_place(out->size);
        out->size = field->at + field->size;
    }
    out->size = align_place(out->size);
    out->memory = H5Tcreate(H5T_COMPOUND, out->size);
    for (size_t i = 0; i < out->n; i++)
        if (out->memory < 0 ||
            H5Tinsert(out->memory, out->items[i].name, out->items[i].at, out->items[i].memory) < 0)
            return tree_failed(r->label, err);
    return BRC_OK;
}

/* Reads the type of the items of a list or an array. */
static int read_tree_base(tree_reader *r, brc_hdf5_tree *out, hid_t type, brc_error *err)
{
    BRC_TRY(brc_new_array((void **)&out->items, 1, sizeof(*out->items), err));
    out->n = 1;
    out->items->memory = out->items->type.memory = BRC_HDF5_NONE;
    hid_t base = H5Tget_super(type);
    int rc = base < 0 ? tree_failed(r->label, err) : read_tree(r, out->items, base, err);
    brc_hdf5_close(base);
    return rc;
}

static int read_tree_list(tree_reader *r, brc_hdf5_tree *out, hid_t type, brc_error *err)
{
    out->kind = BRC_HDF5_LIST;
    BRC_TRY(read_tree_base(r, out, type, err));
    out->size = sizeof(hvl_t);
    out->memory = H5Tvlen_create(out->items->memory);
    return out->memory < 0 ? tree_failed(r->label, err) : BRC_OK;
}

static int read_tree_array(tree_reader *r, brc_hdf5_tree *out, hid_t type, brc_error *err)
{
    hsize_t dims[H5S_MAX_RANK];
    uint64_t bytes;
    out->kind = BRC_HDF5_ARRAY;
    out->ndim = H5Tget_array_ndims(type);
    if (out->ndim < 1 || out->ndim > H5S_MAX_RANK || out->ndim > BRC_MAX_NDIM ||
        H5Tget_array_dims2(type, dims) < 0)
        return tree_failed(r->label, err);
    for (int i = 0; i < out->ndim; i++)
        out->shape[i] = dims[i];
    BRC_TRY(read_tree_base(r, out, type, err));
    if (!brc_shape_bytes(out->ndim, out->shape, out->items->size, &bytes) || bytes > UINT32_MAX)
        return brc_fail(err, BRC_ELIMIT, "%s: its elements have more than 2^32 bytes", r->label);
    out->size = (size_t)bytes;
    out->memory = H5Tarray_create2(out->items->memory, (unsigned)out->ndim, dims);
    return out->memory < 0 ? tree_failed(r->label, err) : BRC_OK;
}

static int read_tree(tree_reader *r, brc_hdf5_tree *out, hid_t type, brc_error *err)
{
    int rc;
    if (r->depth == TREE_DEPTH)
        return brc_fail(err, BRC_ELIMIT, "%s: its data type is nested more than %d deep", r->label,
                        TREE_DEPTH);
    r->depth++;
    out->file_size = H5Tget_size(type);
    if (brc_hdf5_is_one_type(type, r->how))
        rc = read_tree_leaf(r, out, type, err);
    else if (H5Tget_class(type) == H5T_COMPOUND)
        rc = read_tree_fields(r, out, type, err);
    else if (H5Tget_class(type) == H5T_VLEN)
        rc = read_tree_list(r, out, type, err);
    else
        rc = read_tree_array(r, out, type, err);
    r->depth--;
    return rc;
}

int brc_hdf5_tree_read(brc_hdf5_tree *out, const brc_registry *reg, hid_t type, int how,
                       const char *label, brc_error *err)
{
    tree_reader r = { reg, label, how, 0 };
    memset(out, 0, sizeof(*out));
    out->memory = out->type.memory = BRC_HDF5_NONE;
    int rc = read_tree(&r, out, type, err);
    if (rc < 0)
        brc_hdf5_tree_close(out);
    return rc;
}

int brc_hdf5_tree_refers(const brc_hdf5_tree *tree)
{
    if (tree->kind == BRC_HDF5_LEAF)
        return tree->type.kind == BRC_HDF5_OBJECT || tree->type.kind == BRC_HDF5_REGION;
    for (size_t i = 0; i < tree->n; i++)
        if (brc_hdf5_tree_refers(&tree->items[i]))
            return 1;
    return 0;
}

void brc_hdf5_tree_close(brc_hdf5_tree *tree)
{
    for (size_t i = 0; i < tree->n; i++)
        brc_hdf5_tree_close(&tree->items[i]);
    free(tree->items);
    free(tree->name);
    free(tree->type_name);
    brc_dtype_free(tree->dtype);
    brc_hdf5_type_close(&tree->type);
    brc_hdf5_close(tree->memory);
    memset(tree, 0, sizeof(*tree));
    tree->memory = tree->type.memory = BRC_HDF5_NONE;
}

/* ---- as JSON -------------------------------- */

/* Makes an object with one member. Sets *out to NULL on failure. */
static int new_with(brc_json **out, const char *name, brc_json *value, brc_error *err)
{
    *out = brc_json_new_object();
    if (!*out) {
        brc_json_free(value);
        return brc_nomem(err);
    }
    return brc_json_set(*out, name, value, err);
}

static int leaf_json(brc_json **out, const brc_hdf5_tree *tree, brc_error *err)
{
    brc_json *data_type, *note;
    BRC_TRY(brc_convert_dtype_json(&data_type, tree->type.dtype, err));
    if (!tree->type.note && tree->type.ndim == 0) {
        *out = data_type;
        return BRC_OK;
    }
    BRC_TRY(new_with(out, "data_type", data_type, err));
    if (!tree->type.note)
        return BRC_OK;
    BRC_TRY(brc_json_clone(&note, tree->type.note, err));
    return brc_json_set(*out, "note", note, err);
}

/* Makes the JSON of a field. `end` is the end of the field before it. */
static int field_json(brc_json **out, const brc_hdf5_tree *tree, size_t end, brc_error *err)
{
    brc_json *type;
    BRC_TRY(new_with(out, "name", brc_json_new_string(tree->name), err));
    int rc = brc_hdf5_tree_json(&type, tree, err);
    if (rc == BRC_OK)
        rc = brc_json_set(*out, "type", type, err);
    if (rc == BRC_OK && tree->file_at != end)
        rc = brc_json_set(*out, "at", brc_json_new_uint(tree->file_at), err);
    if (rc < 0)
        brc_json_free(*out);
    return rc;
}

static int fields_json(brc_json **out, const brc_hdf5_tree *tree, brc_error *err)
{
    brc_json *fields = brc_json_new_array(), *field;
    size_t end = 0;
    if (!fields)
        return brc_nomem(err);
    BRC_TRY(new_with(out, "fields", fields, err));
    for (size_t i = 0; i < tree->n; i++) {
        BRC_TRY(field_json(&field, &tree->items[i], end, err));
        BRC_TRY(brc_json_push(fields, field, err));
        end = tree->items[i].file_at + tree->items[i].file_size;
    }
    return tree->file_size != end
               ? brc_json_set(*out, "size", brc_json_new_uint(tree->file_size), err)
               : BRC_OK;
}

/* Makes {"array": shape, "of": type}. Takes over `type`. */
static int array_json(brc_json **out, int ndim, const uint64_t *shape, brc_json *type,
                      brc_error *err)
{
    brc_json *dims = brc_json_new_array();
    int rc = dims ? BRC_OK : brc_nomem(err);
    for (int i = 0; i < ndim && rc == BRC_OK; i++)
        rc = brc_json_push(dims, brc_json_new_uint(shape[i]), err);
    if (rc < 0) {
        brc_json_free(dims);
        brc_json_free(type);
        return rc;
    }
    rc = new_with(out, "array", dims, err);
    if (rc < 0) {
        brc_json_free(type);
        return rc;
    }
    return brc_json_set(*out, "of", type, err);
}

int brc_hdf5_tree_json(brc_json **out, const brc_hdf5_tree *tree, brc_error *err)
{
    brc_json *type = NULL;
    int rc;
    *out = NULL;
    switch (tree->kind) {
    case BRC_HDF5_COMPOUND:
        rc = fields_json(out, tree, err);
        break;
    case BRC_HDF5_LIST:
        rc = brc_hdf5_tree_json(&type, tree->items, err);
        if (rc == BRC_OK)
            rc = new_with(out, "list", type, err);
        break;
    case BRC_HDF5_ARRAY:
        rc = brc_hdf5_tree_json(&type, tree->items, err);
        if (rc == BRC_OK)
            rc = array_json(out, tree->ndim, tree->shape, type, err);
        break;
    default:
        rc = leaf_json(&type, tree, err);
        if (rc < 0 || tree->type.ndim == 0)
            *out = type;
        else
            rc = array_json(out, tree->type.ndim, tree->type.shape, type, err);
    }
    if (rc == BRC_OK && tree->type_name)
        rc = brc_json_set(*out, "name", brc_json_new_string(tree->type_name), err);
    if (rc < 0) {
        brc_json_free(*out);
        *out = NULL;
    }
    return rc;
}

/* ---- from JSON -------------------------------- */

static int make_tree(hid_t *out, const brc_registry *reg, const brc_json *json, int how, int depth,
                     const char *label, brc_error *err);

static int cannot_make(const char *label, brc_error *err)
{
    return brc_hdf5_fail(err, BRC_EINVAL, "%s: its data type cannot be made in HDF5", label);
}

/* Returns a noted offset or size if it is at least `least`; otherwise `least`. */
static size_t noted_place(const brc_json *json, const char *name, size_t least)
{
    uint64_t n;
    return brc_json_uint(brc_json_member(json, name), MOST_COMPOUND, &n) && n > least ? (size_t)n
                                                                                      : least;
}

static int make_compound(hid_t *out, const brc_registry *reg, const brc_json *json, int how,
                         int depth, const char *label, brc_error *err)
{
    const brc_json *fields = brc_json_member(json, "fields");
    size_t at = 0;
    *out = H5Tcreate(H5T_COMPOUND, 1);
    for (const brc_json *f = brc_json_first(fields); f; f = brc_json_next(f)) {
        hid_t field;
        const char *name;
        if (*out < 0 || !brc_json_text(brc_json_member(f, "name"), &name))
            return cannot_make(label, err);
        BRC_TRY(make_tree(&field, reg, brc_json_member(f, "type"), how, depth, label, err));
        size_t size = H5Tget_size(field);
        at = noted_place(f, "at", at);
        int ok = H5Tset_size(*out, at + size) >= 0 && H5Tinsert(*out, name, at, field) >= 0;
        brc_hdf5_close(field);
        if (!ok)
            return cannot_make(label, err);
        at += size;
    }
    size_t size = noted_place(json, "size", at);
    return size > at && H5Tset_size(*out, size) < 0 ? cannot_make(label, err) : BRC_OK;
}

static int make_tree_array(hid_t *out, const brc_registry *reg, const brc_json *json, int how,
                           int depth, const char *label, brc_error *err)
{
    const brc_json *shape = brc_json_member(json, "array");
    hsize_t dims[H5S_MAX_RANK];
    unsigned ndim = 0;
    hid_t item;
    for (const brc_json *d = brc_json_first(shape); d; d = brc_json_next(d), ndim++) {
        uint64_t n = 0;
        if (ndim == H5S_MAX_RANK || !brc_json_uint(d, UINT32_MAX, &n))
            return cannot_make(label, err);
        dims[ndim] = n;
    }
    BRC_TRY(make_tree(&item, reg, brc_json_member(json, "of"), how, depth, label, err));
    *out = H5Tarray_create2(item, ndim, dims);
    brc_hdf5_close(item);
    return *out < 0 ? cannot_make(label, err) : BRC_OK;
}

static int make_any_tree(hid_t *out, const brc_registry *reg, const brc_json *json, int how,
                         int depth, const char *label, brc_error *err)
{
    const brc_json *list = brc_json_member(json, "list");
    const brc_json *data_type = brc_json_member(json, "data_type");
    hid_t item;
    if (depth > TREE_DEPTH)
        return brc_fail(err, BRC_ELIMIT, "%s: its data type is nested more than %d deep", label,
                        TREE_DEPTH);
    if (brc_json_member(json, "fields"))
        return make_compound(out, reg, json, how, depth, label, err);
    if (brc_json_member(json, "array"))
        return make_tree_array(out, reg, json, how, depth, label, err);
    if (!list)
        return brc_hdf5_type_make(out, reg, data_type ? data_type : json,
                                  brc_json_member(json, "note"), how, label, err);
    BRC_TRY(make_tree(&item, reg, list, how, depth, label, err));
    *out = H5Tvlen_create(item);
    brc_hdf5_close(item);
    return *out < 0 ? cannot_make(label, err) : BRC_OK;
}

static int make_tree(hid_t *out, const brc_registry *reg, const brc_json *json, int how, int depth,
                     const char *label, brc_error *err)
{
    *out = BRC_HDF5_NONE;
    if (!json)
        return cannot_make(label, err);
    int rc = make_any_tree(out, reg, json, how, depth + 1, label, err);
    if (rc < 0) {
        brc_hdf5_close(*out);
        *out = BRC_HDF5_NONE;
    }
    return rc;
}

int brc_hdf5_tree_make(hid_t *out, const brc_registry *reg, const brc_json *json, int how,
                       const char *label, brc_error *err)
{
    return make_tree(out, reg, json, how, 0, label, err);
}
