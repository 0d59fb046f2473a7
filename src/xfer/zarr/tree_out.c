/* Writing a tree as a directory. */
#include "tree_out.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/file.h"
#include "../dest.h"

typedef struct dir_tree {
    brc_tree_out tree;
    brc_dest place;
    size_t root_len;
} dir_tree;

void brc_tree_out_free(brc_tree_out *tree)
{
    if (tree)
        tree->close(tree);
}

static int make_folder(brc_tree_out *tree, const char *path, brc_error *err)
{
    const dir_tree *t = (const dir_tree *)tree;
    char *dir = NULL;
    int rc;

    if (*path == 0)
        return brc_dir_make(t->place.temp, err);
    BRC_GO(brc_path_join(&dir, t->place.temp, path, err));
    BRC_GO(brc_dir_make_parents(dir, t->root_len, err));
    BRC_GO(brc_dir_make(dir, err));
done:
    free(dir);
    return rc;
}

static int put_file(brc_tree_out *tree, const char *path, brc_span bytes, brc_error *err)
{
    const dir_tree *t = (const dir_tree *)tree;
    char *file = NULL;
    int rc;

    BRC_GO(brc_path_join(&file, t->place.temp, path, err));
    rc = brc_file_write(file, bytes.data, bytes.len, NULL);
    if (rc == BRC_ENOTFOUND) { /* the first one in its directory */
        BRC_GO(brc_dir_make_parents(file, t->root_len, err));
        rc = brc_file_write(file, bytes.data, bytes.len, err);
    } else if (rc < 0) {
        rc = brc_file_write(file, bytes.data, bytes.len, err); /* says why */
    }
done:
    free(file);
    return rc;
}

static int finish_dir(brc_tree_out *tree, brc_error *err)
{
    return brc_dest_finish(&((dir_tree *)tree)->place, 0, err);
}

static void close_dir(brc_tree_out *tree)
{
    brc_dest_close(&((dir_tree *)tree)->place);
    free(tree);
}

int brc_tree_out_dir(brc_tree_out **out, const brc_session *s, const char *dest, brc_error *err)
{
    dir_tree *t;
    *out = NULL;
    BRC_TRY(brc_new((void **)&t, sizeof(*t), err));
    int rc = brc_dest_open(&t->place, s, dest, 0, err);
    if (rc < 0) {
        free(t);
        return rc;
    }
    t->root_len = strlen(t->place.temp);
    t->tree.folder = make_folder;
    t->tree.put = put_file;
    t->tree.finish = finish_dir;
    t->tree.close = close_dir;
    *out = &t->tree;
    return BRC_OK;
}
