/*
 * Writing .npz: the arrays under a node, each a stored member. libzip asks for the
 * bytes while it closes the archive, so one slab is in memory at a time.
 */
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/name_escape.h"
#include "../../zarr/transfer.h"
#include "../dest.h"
#include "../xfer.h"
#include "../zip_archive.h"
#include "npy.h"
#include "npy_out.h"

typedef struct npz_out npz_out;

typedef struct member_out {
    npz_out *job;
    char *path; /* of the array  */
    uint64_t size;
    brc_array *array;
    brc_npy_out npy;
    brc_span piece;
    zip_error_t error;
} member_out;

struct npz_out {
    brc_session *session;
    size_t arrays; /* that were met */
    zip_t *archive;
    brc_error error; /* of the first member that failed; code 0: none */
};

static void stop_member(member_out *m)
{
    brc_npy_out_stop(&m->npy);
    brc_array_free(m->array);
    m->array = NULL;
    m->piece = (brc_span){ NULL, 0 };
}

static int start_member(member_out *m, brc_error *err)
{
    int rc;
    BRC_GO(brc_array_open(&m->array, m->job->session, m->path, err));
    BRC_GO(brc_npy_out_start(&m->npy, m->array, NULL, brc_session_registry(m->job->session), err));
    m->size = m->npy.size;
done:
    if (rc < 0)
        stop_member(m);
    return rc;
}

static zip_int64_t read_member(member_out *m, uint8_t *dst, size_t len, brc_error *err)
{
    size_t done = 0;
    while (done < len) {
        if (m->piece.len == 0) {
            int more = brc_npy_out_next(&m->npy, &m->piece, err);
            if (more < 0)
                return -1;
            if (more == 0)
                break;
        }
        size_t n = m->piece.len < len - done ? m->piece.len : len - done;
        memcpy(dst + done, m->piece.data, n);
        m->piece.data += n;
        m->piece.len -= n;
        done += n;
    }
    return (zip_int64_t)done;
}

/* What libzip asks a source for. */
static zip_int64_t member_command(void *ctx, void *data, zip_uint64_t len, zip_source_cmd_t command)
{
    member_out *m = ctx;
    switch (command) {
    case ZIP_SOURCE_SUPPORTS:
        return ZIP_SOURCE_SUPPORTS_READABLE;
    case ZIP_SOURCE_STAT:
        return brc_zip_stat(data, len, m->size);
    case ZIP_SOURCE_OPEN:
        stop_member(m);
        if (start_member(m, &m->job->error) == BRC_OK)
            return 0;
        break;
    case ZIP_SOURCE_READ: {
        zip_int64_t n = read_member(m, data, (size_t)len, &m->job->error);
        if (n >= 0)
            return n;
        break;
    }
    case ZIP_SOURCE_CLOSE:
        stop_member(m);
        return 0;
    case ZIP_SOURCE_ERROR:
        return zip_error_to_data(&m->error, data, len);
    case ZIP_SOURCE_FREE:
        stop_member(m);
        free(m->path);
        free(m);
        return 0;
    default:
        zip_error_set(&m->error, ZIP_ER_OPNOTSUPP, 0);
        return -1;
    }
    zip_error_set(&m->error, ZIP_ER_INTERNAL, 0);
    return -1;
}

/* `inner`: the array's path below the exported node. */
static int add_member(npz_out *job, const char *path, const char *inner, brc_error *err)
{
    member_out *m = NULL;
    brc_buf name = BRC_BUF_INIT;
    char *key = NULL;
    int rc;

    BRC_GO(brc_path_unescape(&key, inner, BRC_NAMES_KEYS, err));
    BRC_GO(brc_buf_printf(&name, err, "%s.npy", key));
    BRC_GO(brc_buf_terminate(&name, err));
    BRC_GO(brc_new((void **)&m, sizeof(*m), err));
    m->job = job;
    zip_error_init(&m->error);
    BRC_GO(brc_dup(&m->path, path, err));
    BRC_GO(start_member(m, err)); /* what cannot be written is refused before anything is */
    stop_member(m);
    member_out *given = m;
    m = NULL;
    BRC_GO(brc_zip_add(job->archive, (const char *)name.data, member_command, given, err));
done:
    if (m)
        free(m->path);
    free(m);
    free(key);
    brc_buf_dispose(&name);
    return rc;
}

/* brc_nodes_each(). The member is called what follows the exported node's path, or has
 * the array's own name where it is the node itself. */
static int add_node(void *ctx, const char *path, const char *inner, int kind, brc_error *err)
{
    npz_out *job = ctx;
    const char *slash = strrchr(path, '/');

    if (kind != BRC_ARRAY)
        return BRC_OK;
    job->arrays++;
    if (*inner == 0)
        inner = slash && slash[1] ? slash + 1 : "arr_0";
    return add_member(job, path, inner, err);
}

static int add_members(npz_out *job, const char *path, brc_error *err)
{
    BRC_TRY(brc_nodes_each(job->session, path, add_node, job, err));
    if (job->arrays > 0)
        return BRC_OK;
    return brc_fail(err, BRC_EINVAL, "%s has no arrays: there is nothing to write to a .npz file",
                    path);
}

static int close_archive(npz_out *job, const char *dest, brc_error *err)
{
    if (zip_close(job->archive) == 0) {
        job->archive = NULL;
        return BRC_OK;
    }
    if (job->error.code == 0)
        return brc_zip_fail_write(err, zip_get_error(job->archive), dest);
    if (err)
        brc_error_copy(err, &job->error);
    return job->error.code;
}

int brc_npz_export(brc_session *s, const char *path, const char *dest, const brc_xfer_opts *opts,
                   brc_error *err)
{
    npz_out job = { .session = s };
    brc_dest place;
    int rc;

    (void)opts;
    BRC_TRY(brc_dest_open(&place, s, dest, 0, err));
    BRC_GO(brc_zip_make(&job.archive, place.temp, dest, err));
    BRC_GO(add_members(&job, path, err));
    BRC_GO(close_archive(&job, dest, err));
    BRC_GO(brc_dest_finish(&place, 0, err));
done:
    if (job.archive)
        zip_discard(job.archive);
    brc_dest_close(&place);
    return rc;
}
