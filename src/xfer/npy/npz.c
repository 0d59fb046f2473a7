/*
 * Reads and writes .npz: a zip archive with one .npy file per array. "a/x.npy" becomes the array
 * a/x.
 *
 * A member is decompressed as far as its .npy header says, and one byte further; its size in the
 * archive's directory is only compared with that.
 */
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/node_path.h"
#include "../../work/session.h"
#include "../../zarr/transfer.h"
#include "../dest.h"
#include "../xfer.h"
#include "../zip.h"
#include "npy.h"

/* ==== npz ================================ */

/* ---- a member as an input --------------------------------------------------------- */

typedef struct member_input {
    brc_input in;
    zip_file_t *file;
    char *name;
} member_input;

static int member_read(brc_input *in, uint8_t *dst, size_t len, size_t *got, brc_error *err)
{
    member_input *m = (member_input *)in;
    zip_int64_t n = zip_fread(m->file, dst, len);
    if (n < 0) /* a wrong checksum is found after the last byte */
        return brc_zip_fail_read(err, zip_file_get_error(m->file), "cannot read", in->name);
    *got = (size_t)n;
    return BRC_OK;
}

static void member_close(brc_input *in)
{
    member_input *m = (member_input *)in;
    if (m->file)
        (void)zip_fclose(m->file);
    free(m->name);
    free(m);
}

static int open_member(brc_input **out, zip_t *archive, const brc_zip_entry *e, const char *file,
                       brc_error *err)
{
    member_input *m;
    brc_buf name = BRC_BUF_INIT;
    int rc;

    *out = NULL;
    BRC_TRY(brc_new((void **)&m, sizeof(*m), err));
    m->in.read = member_read;
    m->in.close = member_close;
    BRC_GO(brc_buf_printf(&name, err, "%s: %.*s", file, (int)e->name_len, e->name));
    BRC_GO(brc_buf_take_text(&name, &m->name, err));
    m->in.name = m->name;
    m->in.size = e->size;
    BRC_GO(brc_zip_entry_open(&m->file, archive, e, m->name, err));
    *out = &m->in;
done:
    brc_buf_dispose(&name);
    if (rc < 0)
        member_close(&m->in);
    return rc;
}

/* ---- the archive --------------------------------------------------------------------- */

typedef struct npz_import {
    brc_session *session;
    const char *file, *path;
    const brc_xfer_opts *opts;
    zip_t *archive;
    brc_zip_dir dir;
    brc_parts *parts; /* receives the members that cannot be kept */
} npz_import;

static int is_npy_name(const char *name)
{
    size_t len = strlen(name);
    return len >= 4 && strcmp(name + len - 4, ".npy") == 0;
}

/* Makes the path of the node for a member's array. */
static int member_node(char **node, const npz_import *job, const char *name, brc_error *err)
{
    char *part;
    int kind;

    *node = NULL;
    if (!is_npy_name(name))
        return brc_part_refuse(err, BRC_PART_OBJECT, NULL, "%s: its member %s is not a .npy file",
                               job->file, name);
    BRC_TRY(brc_dup_n(&part, name, strlen(name) - 4, err));
    int rc = *part ? brc_path_escape(node, job->path, part, BRC_NAMES_KEYS, err)
                   : brc_node_join(node, job->path, "%", err); /* the empty name, escaped */
    free(part);
    if (rc == BRC_OK)
        rc = brc_path_rename(node, job->path, job->opts, err);
    if (rc == BRC_OK)
        rc = brc_node_kind(&kind, job->session, *node, err);
    if (rc == BRC_OK && kind != 0)
        rc =
            brc_fail(err, BRC_EINVAL, "%s: there are two members named %s, or a group of that name",
                     job->file, name);
    if (rc < 0) {
        free(*node);
        *node = NULL;
    }
    return rc;
}

/* Tells whether a member is excluded by the name of the array, "a", of the file, "a.npy", or of a
 * group that contains it. */
static int member_is_excluded(const npz_import *job, const char *name, size_t len)
{
    const char *slash = name;
    while ((slash = memchr(slash, '/', len - (size_t)(slash - name))) != NULL) {
        if (slash > name && brc_is_excluded(job->opts, name, (size_t)(slash - name)))
            return 1;
        slash++;
    }
    return brc_is_excluded(job->opts, name, len) ||
           brc_is_excluded(job->opts, name, brc_without_ending(name, len, ".npy"));
}

static int import_member(const npz_import *job, const brc_zip_entry *entry, const char *name,
                         brc_error *err)
{
    brc_elements e = { 0 };
    brc_input *in = NULL;
    char *node = NULL;
    int rc;

    BRC_GO(member_node(&node, job, name, err));
    BRC_GO(open_member(&in, job->archive, entry, job->file, err));
    BRC_GO(brc_npy_open(&e, in, brc_session_registry(job->session), err));
    BRC_GO(brc_elements_import(job->session, node, &e, in, job->opts, err));
done:
    brc_elements_free(&e);
    brc_input_free(in);
    free(node);
    return rc;
}

static int take_member_of(const npz_import *job, const brc_zip_entry *entry, brc_error *err)
{
    char *name;

    if (entry->is_dir || member_is_excluded(job, entry->name, entry->name_len))
        return BRC_OK; /* groups follow from the members' names */
    BRC_TRY(brc_dup_n(&name, entry->name, entry->name_len, err));
    int rc = import_member(job, entry, name, err);
    name[brc_without_ending(name, entry->name_len, ".npy")] = '\0';
    rc = brc_part_settle(job->parts, rc, name, err);
    free(name);
    return rc;
}

/* Makes the group that takes the members; the root is one already. */
static int make_group(const npz_import *job, brc_error *err)
{
    brc_iter *children = NULL;
    const brc_node *child;
    int rc;

    if (strcmp(job->path, "/") != 0)
        return brc_group_create(job->session, job->path, NULL, err);
    BRC_GO(brc_list(&children, job->session, "/", 0, err));
    BRC_GO(brc_next(children, &child, err));
    if (rc > 0)
        rc = brc_fail(err, BRC_EEXISTS, "the root group is not empty: name a path to import into");
done:
    brc_iter_free(children);
    return rc;
}

/* The import function of brc_format. */
static int import_npz(brc_session *s, const brc_source *source, const char *path,
                      const brc_xfer_opts *opts, brc_error *err)
{
    npz_import job = { .session = s,
                       .file = source->name,
                       .path = path,
                       .opts = opts,
                       .parts = source->parts };
    int rc;

    BRC_TRY(brc_zip_open(&job.archive, &job.dir, job.file, err));
    BRC_GO(make_group(&job, err));
    for (size_t i = 0; i < job.dir.n; i++)
        BRC_GO(take_member_of(&job, &job.dir.entries[i], err));
done:
    zip_discard(job.archive);
    brc_zip_dir_dispose(&job.dir);
    return rc < 0 ? rc : BRC_OK;
}

/* Sums the members' lengths that the archive states. */
static int npz_bytes(uint64_t *bytes, brc_session *s, const brc_source *source,
                     const brc_xfer_opts *opts, brc_error *err)
{
    npz_import job = { .session = s, .file = source->name, .path = "/", .opts = opts };

    *bytes = 0;
    BRC_TRY(brc_zip_open(&job.archive, &job.dir, job.file, err));
    for (size_t i = 0; i < job.dir.n; i++) {
        const brc_zip_entry *e = &job.dir.entries[i];
        if (!member_is_excluded(&job, e->name, e->name_len))
            brc_add_array_bytes(bytes, 1, &e->size, 1);
    }
    zip_discard(job.archive);
    brc_zip_dir_dispose(&job.dir);
    return BRC_OK;
}

/* ==== npz out ================================ */

/*
 * Writes .npz: the arrays under a node, each a stored member. libzip asks for the bytes while it
 * closes the archive, so one slab is in memory at a time.
 */

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
    size_t arrays; /* the number of arrays that were met */
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

/* Answers the requests of libzip to a source. */
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
    BRC_GO(start_member(m, err)); /* refuses before anything is written */
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

/* brc_nodes_each(). The member is named after the array's path below the exported node, or after
 * the array itself if that is the exported node. */
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

static int npz_export(brc_session *s, const char *path, const char *dest,
                      const brc_xfer_opts *opts, brc_error *err)
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

/* ==== npy formats ================================ */

/* The NumPy rows in the table of formats: .npy and .npz. */

static int probe_npy(int *is, const brc_source *source, brc_error *err)
{
    (void)err;
    *is = source->head_len >= BRC_NPY_MAGIC_LEN &&
          memcmp(source->head, BRC_NPY_MAGIC, BRC_NPY_MAGIC_LEN) == 0;
    return BRC_OK;
}

static int import_npy(brc_session *s, const brc_source *source, const char *path,
                      const brc_xfer_opts *opts, brc_error *err)
{
    return brc_elements_import_file(s, source->name, brc_npy_open, path, opts, err);
}

static int size_npy(uint64_t *bytes, brc_session *s, const brc_source *source,
                    const brc_xfer_opts *opts, brc_error *err)
{
    (void)opts;
    return brc_elements_file_bytes(bytes, s, source->name, brc_npy_open, err);
}

static int export_npy(brc_session *s, const char *path, const char *dest, const brc_xfer_opts *opts,
                      brc_error *err)
{
    brc_array *a;
    int kind;

    (void)opts;
    BRC_TRY(brc_node_kind(&kind, s, path, err));
    if (kind == BRC_GROUP)
        return brc_fail(err, BRC_EINVAL,
                        "%s is a group and .npy holds one array: write a .npz, or name an array",
                        path);
    BRC_TRY(brc_array_open(&a, s, path, err));
    int rc = brc_npy_save(a, NULL, dest, 0, err);
    brc_array_free(a);
    return rc;
}

/* Accepts any zip archive: the import reports if it does not consist of .npy files. */
static int probe_npz(int *is, const brc_source *source, brc_error *err)
{
    (void)err;
    *is = !source->is_gzip && brc_is_zip(source->head, source->head_len);
    return BRC_OK;
}

static const char *const npy_endings[] = { ".npy", NULL };
static const char *const npz_endings[] = { ".npz", NULL };

const brc_format brc_format_npy = {
    .name = "npy",
    .source_text = ".npy",
    .endings = npy_endings,
    .probe = probe_npy,
    .import = import_npy,
    .size = size_npy,
    .export = export_npy,
};

const brc_format brc_format_npz = {
    .name = "npz",
    .source_text = ".npz",
    .endings = npz_endings,
    .probe = probe_npz,
    .import = import_npz,
    .size = npz_bytes,
    .export = npz_export,
};
