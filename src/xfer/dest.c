/* Temporary names and the renaming to the final one, see dest.h. */
#include "dest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../base/alloc.h"
#include "../base/buf.h"
#include "../base/file.h"
#include "../base/hash.h"
#include "../work/session.h"
#include "../zarr/transfer.h"

static int check_free(const char *path, brc_error *err)
{
    struct stat st;
    if (lstat(path, &st) == 0)
        return brc_fail(err, BRC_EEXISTS, "%s already exists: remove it or choose another name",
                        path);
    if (errno != ENOENT)
        return brc_fail_os(err, errno, "cannot look at", path);
    return BRC_OK;
}

static int is_written_in_place(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

int brc_dest_open(brc_dest *out, const brc_session *s, const char *path, int replace,
                  brc_error *err)
{
    brc_buf temp = BRC_BUF_INIT;
    uint8_t tag[4];
    size_t len = strlen(path);
    int rc;

    memset(out, 0, sizeof(*out));
    while (len > 1 && path[len - 1] == '/')
        len--;
    if (len == 0)
        return brc_fail(err, BRC_EINVAL, "the name to write to is empty");
    BRC_GO(brc_dup_n(&out->path, path, len, err));
    BRC_GO(brc_check_file(brc_store_path(brc_session_repo(s)->store), out->path, err));
    out->in_place = replace && is_written_in_place(out->path);
    if (out->in_place)
        return BRC_OK;
    if (!replace)
        BRC_GO(check_free(out->path, err));
    BRC_GO(brc_random(tag, sizeof(tag), err));
    BRC_GO(brc_buf_printf(&temp, err, "%s.part-%02x%02x%02x%02x", out->path, tag[0], tag[1], tag[2],
                          tag[3]));
    BRC_GO(brc_buf_take_text(&temp, &out->temp, err));
done:
    brc_buf_dispose(&temp);
    if (rc < 0)
        brc_dest_close(out);
    return rc;
}

int brc_dest_finish(brc_dest *dest, int replace, brc_error *err)
{
    if (dest->in_place)
        return BRC_OK;
    int failed =
        renameat2(AT_FDCWD, dest->temp, AT_FDCWD, dest->path, replace ? 0 : RENAME_NOREPLACE);
    if (failed &&
        (errno == EINVAL || errno == ENOSYS)) { /* the file system cannot do it in one step */
        if (!replace)
            BRC_TRY(check_free(dest->path, err));
        failed = rename(dest->temp, dest->path);
    }
    if (failed)
        return brc_fail_os(err, errno, "cannot rename the finished", dest->path);
    free(dest->temp);
    dest->temp = NULL;
    return BRC_OK;
}

void brc_dest_close(brc_dest *dest)
{
    if (dest->temp)
        brc_tree_remove(dest->temp);
    free(dest->temp);
    free(dest->path);
    memset(dest, 0, sizeof(*dest));
}
