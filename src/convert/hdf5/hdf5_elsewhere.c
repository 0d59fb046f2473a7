/* Other files that an HDF5 file leads to, see hdf5_elsewhere.h. */
#include "hdf5_elsewhere.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"

/* Files that links lead to. Each takes a descriptor, and half a MiB in the library. */
#define MOST_OTHERS 200

/* ---- names -------------------------------- */

int brc_hdf5_file_named(char **out, const char *above, const char *name, brc_error *err)
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

const char *brc_hdf5_unreached(int code)
{
    switch (code) {
    case -ENOENT:
        return "which is not there";
    case -EACCES:
    case -EPERM:
        return "which may not be read";
    case -ENOMEM:
        return "for which there is no memory";
    default:
        return "which cannot be opened";
    }
}

const char *brc_hdf5_unreached_remedy(int code)
{
    switch (code) {
    case -ENOENT:
        return "put it there, or leave this out with --exclude";
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

/* The library asks before it opens the file of a link. */
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
        brc_hdf5_file_named(&path, above, file, NULL) < 0)
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
        return brc_part_refuse(err, BRC_PART_LINK, leave, "%s is a link to nothing in this file",
                               label);
    if (!e->file || !e->object)
        return brc_nomem(err);
    if (e->code < 0)
        return brc_part_refuse(err, BRC_PART_LINK, brc_hdf5_unreached_remedy(e->code),
                               "%s leads to %.100s in the file %.100s, %s", label, e->object,
                               e->file, brc_hdf5_unreached(e->code));
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

hid_t brc_hdf5_file_other(const char *path)
{
    /* Of all that have a file open this must be the same: the library opens some by itself. */
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), file = BRC_HDF5_NONE;
    if (access >= 0 && H5Pset_fclose_degree(access, H5F_CLOSE_WEAK) >= 0)
        file = H5Fopen(path, H5F_ACC_RDONLY, access);
    brc_hdf5_close(access);
    return file;
}

/* When it reads a virtual dataset, the library opens the sources by a list without a prefix, and
 * cannot where one is open by a list that has a prefix. So that is only for raw files. */
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
    *file = brc_hdf5_file_other(path);
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
