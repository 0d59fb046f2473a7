/* The paths of a file's objects, see hdf5_paths.h. */
#include "hdf5_paths.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/node_path.h"

#define PATHS_BYTES ((size_t)256 << 20)

struct brc_hdf5_path {
    haddr_t address;
    char *path;
    size_t first, n;            /* of a group: its part of paths->named               */
    struct brc_hdf5_path *next; /* among the groups that are still to be gone through */
};

typedef struct paths_walk {
    brc_hdf5_paths *paths;
    hid_t links;
    struct brc_hdf5_path *now, *last; /* the first and the last group in the queue */
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

/* *added: NULL if the object has a path already. `path` is taken over. */
static int add_path(paths_walk *w, haddr_t address, char *path, struct brc_hdf5_path **added)
{
    struct brc_hdf5_path key = { .address = address }, *item;
    int rc;
    *added = NULL;
    if (tfind(&key, &w->paths->met, by_address)) {
        free(path);
        return BRC_OK;
    }
    rc = brc_new((void **)&item, sizeof(*item), w->err);
    if (rc < 0) {
        free(path);
        return rc;
    }
    item->address = address;
    item->path = path;
    if (!tsearch(item, &w->paths->met, by_address)) {
        free(path);
        free(item);
        return brc_nomem(w->err);
    }
    *added = item;
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
    struct brc_hdf5_path *added;
    H5O_info_t info;
    char *path;
    if (H5Oget_info2(object, &info, H5O_INFO_BASIC) < 0)
        return BRC_OK;
    if (info.type == H5O_TYPE_NAMED_DATATYPE)
        BRC_TRY(add_named(w, name));
    BRC_TRY(brc_node_join(&path, w->now->path, name, w->err));
    if (strlen(path) > BRC_PATH_MAX) { /* no node has it */
        free(path);
        return BRC_OK;
    }
    BRC_TRY(add_path(w, info.addr, path, &added));
    if (!added || info.type != H5O_TYPE_GROUP)
        return BRC_OK;
    w->last->next = added;
    w->last = added;
    return BRC_OK;
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
    BRC_TRY(add_path(&w, info.addr, path, &w.now));
    for (w.last = w.now; w.now && w.rc == BRC_OK; w.now = w.now->next) {
        hid_t group = H5Oopen(file, w.now->path, links);
        w.now->first = out->nnamed;
        if (group >= 0)
            (void)H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, NULL, take_path, &w);
        brc_hdf5_close(group);
    }
    return w.rc;
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

/* What follows `from` in the path, if that is the same or around it; NULL: it is not. */
static const char *part_beneath(const char *path, const char *from)
{
    size_t len = strcmp(from, "/") == 0 ? 0 : strlen(from);
    if (strncmp(path, from, len) != 0 || (path[len] && path[len] != '/'))
        return NULL;
    return strcmp(path, "/") == 0 ? "" : path + len;
}

int brc_hdf5_path_put(const brc_hdf5_paths *paths, haddr_t address, brc_buf *out, brc_error *err)
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
