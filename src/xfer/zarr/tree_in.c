/* What is the same for all trees. */
#include "tree_in.h"

#include <stdlib.h>

#include "../../base/alloc.h"
#include "../../base/file.h"

const char *const brc_zarr_documents[] = { "zarr.json", ".zarray", ".zgroup", ".zmetadata",
                                           NULL };

int brc_tree_path(char **out, const char *dir, const char *name, brc_error *err)
{
    return *dir ? brc_path_join(out, dir, name, err) : brc_dup(out, name, err);
}

int brc_tree_in_label(char **out, const brc_tree_in *tree, const char *path, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc;

    *out = NULL;
    BRC_GO(brc_buf_printf(&text, err, "%s%s%s", tree->name, *path ? tree->between : "", path));
    BRC_GO(brc_buf_take_text(&text, out, err));
done:
    brc_buf_dispose(&text);
    return rc;
}

void brc_tree_in_free(brc_tree_in *tree)
{
    if (tree)
        tree->close(tree);
}
