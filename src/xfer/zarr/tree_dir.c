/* A directory as a tree. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../../base/alloc.h"
#include "../../base/file.h"
#include "../../zarr/repo.h"
#include "../../zarr/transfer.h"
#include "../input.h"
#include "tree_in.h"

/* The name without slashes at its end is all that a directory needs. */
static int dir_file(char **out, const brc_tree_in *tree, const char *path, brc_error *err)
{
    return *path ? brc_path_join(out, tree->name, path, err) : brc_dup(out, tree->name, err);
}

static int entry_kind(const char *file)
{
    struct stat st;
    if (lstat(file, &st) < 0)
        return BRC_ENTRY_NONE;
    if (S_ISREG(st.st_mode))
        return BRC_ENTRY_FILE;
    if (S_ISDIR(st.st_mode))
        return BRC_ENTRY_DIR;
    if (!S_ISLNK(st.st_mode))
        return BRC_ENTRY_OTHER;
    return stat(file, &st) == 0 && S_ISDIR(st.st_mode) ? BRC_ENTRY_LINK_TO_DIR : BRC_ENTRY_LINK;
}

static int dir_kind(brc_tree_in *tree, const char *path, int *kind, brc_error *err)
{
    char *file;
    if (*path == 0) { /* the source itself may be named through a link */
        *kind = BRC_ENTRY_DIR;
        return BRC_OK;
    }
    BRC_TRY(dir_file(&file, tree, path, err));
    *kind = entry_kind(file);
    free(file);
    return BRC_OK;
}

static int check_stop(void *ctx, brc_error *err)
{
    const breccia *repo = ctx;
    return repo ? brc_store_check_interrupt(repo->store, err) : BRC_OK;
}

static int dir_each(brc_tree_in *tree, const char *path, brc_tree_found_fn found, void *ctx,
                    brc_error *err)
{
    char *file;
    BRC_TRY(dir_file(&file, tree, path, err));
    const brc_dir_check check = { check_stop, tree->repo };
    int rc = brc_dir_each_checked(file, found, ctx, &check, err);
    free(file);
    return rc;
}

static int dir_read(brc_tree_in *tree, const char *path, uint64_t limit, brc_buf *out,
                    brc_error *err)
{
    char *file;
    BRC_TRY(dir_file(&file, tree, path, err));
    int rc =
        tree->repo ? brc_check_file(brc_store_path(tree->repo->store), file, err) : BRC_OK;
    if (rc == BRC_OK)
        rc = brc_regular_read(out, file, limit, err);
    free(file);
    return rc;
}

static void dir_close(brc_tree_in *tree)
{
    free(tree->name);
    free(tree);
}

int brc_tree_dir_open(brc_tree_in **out, const brc_session *s, const char *dir, brc_error *err)
{
    brc_tree_in *tree;
    size_t len = strlen(dir);
    *out = NULL;
    while (len > 1 && dir[len - 1] == '/')
        len--;
    BRC_TRY(brc_new((void **)&tree, sizeof(*tree), err));
    int rc = brc_dup_n(&tree->name, dir, len, err);
    if (rc < 0) {
        free(tree);
        return rc;
    }
    tree->between = "/";
    tree->repo = s ? brc_session_repo(s) : NULL;
    tree->kind = dir_kind;
    tree->each = dir_each;
    tree->read = dir_read;
    tree->close = dir_close;
    *out = tree;
    return BRC_OK;
}
