/* What .npz files and Zarr hierarchies in zip archives share. */
#include "zip_archive.h"

#include <string.h>
#include <unistd.h>

#include "input.h"

#define ZIP_DATE_1980 ((zip_uint16_t)(1 << 5 | 1))

int brc_zip_fail_read(brc_error *err, zip_error_t *ze, const char *what, const char *name)
{
    if (zip_error_code_zip(ze) == ZIP_ER_MEMORY)
        return brc_nomem(err);
    if (zip_error_system_type(ze) == ZIP_ET_SYS && zip_error_code_system(ze) > 0)
        return brc_fail_os(err, zip_error_code_system(ze), what, name);
    return brc_fail(err, BRC_EINVAL, "%s %s: %s", what, name, zip_error_strerror(ze));
}

int brc_zip_fail_write(brc_error *err, zip_error_t *ze, const char *name)
{
    /* libzip sometimes says nothing where an allocation of its own failed */
    if (zip_error_code_zip(ze) == ZIP_ER_MEMORY || zip_error_code_zip(ze) == ZIP_ER_OK)
        return brc_nomem(err);
    if (zip_error_system_type(ze) == ZIP_ET_SYS && zip_error_code_system(ze) > 0)
        return brc_fail_os(err, zip_error_code_system(ze), "cannot write", name);
    return brc_fail(err, BRC_EIO, "cannot write %s: %s", name, zip_error_strerror(ze));
}

/* libzip takes the descriptor over, or it is closed. */
static int open_with_libzip(zip_t **out, int fd, const char *file, brc_error *err)
{
    int code = 0;
    *out = zip_fdopen(fd, 0, &code);
    if (*out)
        return BRC_OK;
    zip_error_t ze;
    zip_error_init_with_code(&ze, code);
    int rc = brc_zip_fail_read(err, &ze, "cannot open", file);
    zip_error_fini(&ze);
    close(fd);
    return rc;
}

int brc_zip_open(zip_t **out, brc_zip_dir *dir, const char *file, brc_error *err)
{
    uint64_t size;
    int fd, rc;

    *out = NULL;
    memset(dir, 0, sizeof(*dir));
    BRC_TRY(brc_regular_open(&fd, &size, file, 1, err));
    BRC_GO(brc_zip_dir_read(dir, fd, size, file, err));
    BRC_GO(brc_zip_dir_check(dir, file, err));
    rc = open_with_libzip(out, fd, file, err);
    fd = -1;
    if (rc == BRC_OK && (uint64_t)zip_get_num_entries(*out, 0) != dir->n)
        rc = brc_fail(err, BRC_EINVAL, "%s: the archive can be read in two ways", file);
done:
    if (fd >= 0)
        close(fd);
    if (rc < 0) {
        zip_discard(*out);
        *out = NULL;
        brc_zip_dir_dispose(dir);
    }
    return rc;
}

int brc_zip_entry_open(zip_file_t **out, zip_t *archive, const brc_zip_entry *e, const char *label,
                       brc_error *err)
{
    const char *name = zip_get_name(archive, e->number, ZIP_FL_ENC_RAW);
    *out = NULL;
    if (!name || strlen(name) != e->own_len || memcmp(name, e->own, e->own_len) != 0)
        return brc_fail(err, BRC_EINVAL, "%s: its archive can be read in two ways", label);
    *out = zip_fopen_index(archive, e->number, 0);
    return *out ? BRC_OK : brc_zip_fail_read(err, zip_get_error(archive), "cannot open", label);
}

int brc_zip_make(zip_t **out, const char *file, const char *dest, brc_error *err)
{
    int code = 0;
    *out = zip_open(file, ZIP_CREATE | ZIP_EXCL, &code);
    if (*out)
        return BRC_OK;
    zip_error_t ze;
    zip_error_init_with_code(&ze, code);
    int rc = brc_zip_fail_write(err, &ze, dest);
    zip_error_fini(&ze);
    return rc;
}

int brc_zip_add(zip_t *archive, const char *name, zip_source_callback source, void *ctx,
                brc_error *err)
{
    zip_source_t *from = zip_source_function(archive, source, ctx);
    if (!from) {
        (void)source(ctx, NULL, 0, ZIP_SOURCE_FREE);
        return brc_nomem(err);
    }
    zip_int64_t i = zip_file_add(archive, name, from, ZIP_FL_ENC_UTF_8);
    if (i < 0) {
        zip_source_free(from);
        return brc_zip_fail_write(err, zip_get_error(archive), name);
    }
    if (zip_set_file_compression(archive, (zip_uint64_t)i, ZIP_CM_STORE, 0) < 0 ||
        zip_file_set_dostime(archive, (zip_uint64_t)i, 0, ZIP_DATE_1980, 0) < 0)
        return brc_zip_fail_write(err, zip_get_error(archive), name);
    return BRC_OK;
}

zip_int64_t brc_zip_stat(void *data, zip_uint64_t len, uint64_t size)
{
    zip_stat_t *st = data;
    if (len < sizeof(*st))
        return -1;
    zip_stat_init(st);
    st->size = size;
    st->valid |= ZIP_STAT_SIZE;
    return (zip_int64_t)sizeof(*st);
}
