/*
 * Reading .npz: a zip archive with one .npy file per array. "a/x.npy" becomes the
 * array a/x.
 *
 * What a member inflates to is read as far as its .npy header says and one byte
 * further; its size in the archive's directory is only compared with it.
 */
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/name_escape.h"
#include "../../base/node_path.h"
#include "../../zarr/transfer.h"
#include "../xfer.h"
#include "../zip_archive.h"
#include "npy.h"

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
    if (n < 0) /* the checksum is compared at the end, so this may come after the last byte */
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
    brc_parts *parts; /* gets members that cannot be kept */
} npz_import;

static int is_npy_name(const char *name)
{
    size_t len = strlen(name);
    return len >= 4 && strcmp(name + len - 4, ".npy") == 0;
}

/* *node: the path of the member's array. */
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

/* By the name of the array, "a", or of the file, "a.npy", or by that of a group that it is in. */
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

/* The group that takes the members; the root is one already. */
static int make_group(const npz_import *job, brc_error *err)
{
    brc_iter *children = NULL;
    const brc_node *child;
    int rc;

    if (strcmp(job->path, "/") != 0)
        return brc_group_create(job->session, job->path, NULL, err);
    BRC_GO(brc_list(&children, job->session, "/", 0, err));
    BRC_GO(brc_list_next(children, &child, err));
    if (rc > 0)
        rc = brc_fail(err, BRC_EEXISTS, "the root group is not empty: name a path to import into");
done:
    brc_iter_free(children);
    return rc;
}

int brc_npz_import(brc_session *s, const brc_source *source, const char *path,
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

/* What the archive says of its members' lengths. */
int brc_npz_bytes(uint64_t *bytes, brc_session *s, const brc_source *source,
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
