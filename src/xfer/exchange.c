/* brc_import() and brc_export(): choose the format and the node, and do all or nothing. */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/node_path.h"
#include "../base/sized.h"
#include "../work/bulk_write.h"
#include "../work/session.h"
#include "../zarr/transfer.h"
#include "foreign/foreign.h"
#include "formats.h"
#include "stream/stream_out.h"
#include "xfer.h"

/* ---- import -------------------------------- */

static int group_is_empty(int *empty, brc_session *s, const char *path, brc_error *err)
{
    brc_iter *it;
    const brc_node *child;
    BRC_TRY(brc_list(&it, s, path, 0, err));
    int rc = brc_next(it, &child, err);
    brc_iter_free(it);
    *empty = rc == 0;
    return rc < 0 ? rc : BRC_OK;
}

/* The origin of an import: a source in a known format, or a stream that has begun. */
typedef struct origin {
    brc_session *session;
    const brc_xfer_opts *opts;
    const char *name; /* the node is named after it; NULL: no name */
    const brc_format *format;
    const brc_source *source;
    brc_stream *stream;
    brc_parts *parts; /* the parts that cannot be kept */
    int must_meet;    /* every node to be renamed must exist */
} origin;

static int is_group_there(int *is, const origin *from, brc_error *err)
{
    *is = 0;
    if (from->stream)
        return brc_stream_is_group(is, from->stream, err);
    return from->format->is_group ? from->format->is_group(is, from->session, from->source, err)
                                  : BRC_OK;
}

/* Makes the node's name; only the command knows the format of its file. */
static int name_node_of(char **out, const origin *from, brc_error *err)
{
    return from->opts->with ? brc_source_name_any(out, from->name, err)
                            : brc_source_name(out, from->name, err);
}

static int path_by_name(char **out, const origin *from, brc_error *err)
{
    char *name;
    *out = NULL;
    if (!from->name)
        return brc_fail(err, BRC_EINVAL,
                        "a stream has no name: give the path of the node that it becomes (only a "
                        "group needs none, in an empty repository)");
    BRC_TRY(name_node_of(&name, from, err));
    int rc = brc_node_join(out, "/", name, err);
    free(name);
    return rc;
}

/* Chooses the path of the node if the caller names none. */
static int choose_path(char **out, const origin *from, brc_error *err)
{
    int is_group, empty = 0, kind = 1;
    BRC_TRY(is_group_there(&is_group, from, err));
    if (is_group)
        BRC_TRY(group_is_empty(&empty, from->session, "/", err));
    if (empty)
        return brc_dup(out, "/", err);
    BRC_TRY(path_by_name(out, from, err));
    int rc = BRC_OK;
    if (is_group && (from->opts->flags & BRC_XFER_REPLACE))
        rc = brc_node_kind(&kind, from->session, *out, err);
    if (rc == BRC_OK && kind == 0)
        rc = brc_fail(err, BRC_ENOTFOUND,
                      "there is no node %s to replace: name one that exists (/: the root)", *out);
    if (rc < 0) {
        free(*out);
        *out = NULL;
    }
    return rc;
}

/* Turns "a/b/" into "/a/b". */
static int given_path(char **out, const char *path, brc_error *err)
{
    brc_buf normal = BRC_BUF_INIT;
    int rc;

    *out = NULL;
    BRC_GO(brc_path_normal(&normal, path, err));
    BRC_GO(brc_buf_take_text(&normal, out, err));
done:
    brc_buf_dispose(&normal);
    return rc;
}

/* Makes the path in a group that is named after the source. */
static int place_in(char **out, const char *group, const origin *from, brc_error *err)
{
    char *above, *name = NULL;
    int rc;

    *out = NULL;
    BRC_TRY(given_path(&above, group, err));
    BRC_GO(name_node_of(&name, from, err));
    BRC_GO(brc_node_join(out, above, name, err));
done:
    free(name);
    free(above);
    return rc;
}

static int check_absent(brc_session *s, const char *path, brc_error *err)
{
    int kind;
    if (strcmp(path, "/") == 0)
        return BRC_OK; /* the root always exists; an empty one can be taken over */
    BRC_TRY(brc_node_kind(&kind, s, path, err));
    if (kind != 0)
        return brc_fail(err, BRC_EEXISTS,
                        "%s already exists: import to another path, or with --replace", path);
    return BRC_OK;
}

/* Removes all children of the root, and its attributes. */
static int clear_root(brc_session *s, brc_error *err)
{
    static const char plain[] = "{\"zarr_format\":3,\"node_type\":\"group\"}";
    brc_iter *it;
    const brc_node *child;
    int rc;
    BRC_TRY(brc_list(&it, s, "/", 0, err));
    while ((rc = brc_next(it, &child, err)) > 0)
        BRC_GO(brc_node_remove(s, child->path, err));
    if (rc == BRC_OK)
        rc = brc_key_set(s, "zarr.json", plain, strlen(plain), 0, err);
done:
    brc_iter_free(it);
    return rc;
}

/* Removes the node that the source replaces, within the import. */
static int remove_replaced(brc_session *s, const char *path, brc_error *err)
{
    int kind;
    if (strcmp(path, "/") == 0)
        return clear_root(s, err);
    BRC_TRY(brc_node_kind(&kind, s, path, err));
    return kind == 0 ? BRC_OK : brc_node_remove(s, path, err);
}

static int source_bytes(uint64_t *bytes, brc_session *s, const brc_format *format,
                        const brc_source *source, const brc_xfer_opts *opts, brc_error *err)
{
    brc_xfer_opts copy = *opts;
    copy.excluded = NULL; /* only the import reports these */
    copy.flags |= BRC_XFER_SKIP_UNSUPPORTED;
    *bytes = 0;
    return format->size(bytes, s, source, &copy, err);
}

/* Returns 0 if nobody asks for the size, if this import is a part of a larger task, or if the size
 * is not known: the import reports the reason. */
static uint64_t bytes_to_import(brc_session *s, const brc_format *format, const brc_source *source,
                                const brc_xfer_opts *opts)
{
    const breccia *repo = brc_session_repo(s);
    uint64_t bytes;
    if (!repo->progress || repo->task_depth > 0 ||
        source_bytes(&bytes, s, format, source, opts, NULL) < 0)
        return 0;
    return bytes;
}

static int import_counted(const origin *from, const char *path, brc_error *err)
{
    breccia *repo = brc_session_repo(from->session);
    uint64_t bytes = from->format->tells_progress
                         ? 0
                         : bytes_to_import(from->session, from->format, from->source, from->opts);
    brc_task task = brc_task_begin(repo, "import", bytes);
    int rc = from->format->import(from->session, from->source, path, from->opts, err);
    brc_task_end(repo, &task, rc);
    return rc;
}

static int import_new(const origin *from, const char *path, brc_error *err)
{
    BRC_TRY(check_absent(from->session, path, err));
    if (from->stream)
        return brc_stream_import(from->stream, path, err);
    return import_counted(from, path, err);
}

static int take_opts(brc_xfer_opts *out, const brc_xfer_opts *given, brc_error *err)
{
    BRC_TRY(brc_sized_in(out, sizeof(*out), offsetof(brc_xfer_opts, codecs_json), given,
                         "brc_xfer_opts", err));
    return brc_flags_check(out->flags,
                           BRC_XFER_CONSOLIDATED | BRC_XFER_INTO | BRC_XFER_SKIP_UNSUPPORTED |
                               BRC_XFER_NAN_TOKENS | BRC_XFER_UNEQUAL_DIMENSIONS |
                               BRC_XFER_STREAM | BRC_XFER_REPLACE | BRC_XFER_EXTERNAL,
                           "brc_xfer_opts", err);
}

/* Finds the path of the node that the source becomes, and tells the caller. */
static int place_origin(char **node, const origin *from, const char *path, brc_error *err)
{
    const brc_xfer_opts *opts = from->opts;
    int rc;

    *node = NULL;
    if ((opts->flags & BRC_XFER_INTO) && from->name)
        BRC_GO(place_in(node, path ? path : "/", from, err));
    else
        BRC_GO(path ? given_path(node, path, err) : choose_path(node, from, err));
    if (!opts->placed)
        return BRC_OK;
    BRC_GO(brc_buf_text(opts->placed, *node, err));
    rc = brc_buf_terminate(opts->placed, err);
done:
    if (rc < 0) {
        free(*node);
        *node = NULL;
    }
    return rc;
}

/* Begins the bulk write of an import. */
static int begin_import(const origin *from, const char *node, brc_error *err)
{
    if (from->opts->flags & BRC_XFER_REPLACE)
        BRC_TRY(remove_replaced(from->session, node, err));
    return brc_bulk_start(from->session, err);
}

/* Fails if some parts cannot be kept, unless the caller allows that. */
static int import_kept(const origin *from, int rc, brc_error *err)
{
    if (rc == BRC_EEXISTS && from->opts->nrename > 0)
        brc_context(err, "with the new names");
    for (size_t i = 0; rc >= 0 && from->must_meet && i < from->opts->nrename; i++)
        if (!from->opts->renamed[i])
            rc = brc_fail(err, BRC_ENOTFOUND, "nothing that is imported has the path %s",
                          from->opts->rename[i].from);
    if (rc < 0 || from->parts->n == 0 || (from->opts->flags & BRC_XFER_SKIP_UNSUPPORTED))
        return rc;
    return brc_parts_fail(from->parts, from->name ? from->name : "the stream", err);
}

/* Imports all or nothing. */
static int import_origin(const origin *from, const char *path, brc_error *err)
{
    char *node;
    BRC_TRY(place_origin(&node, from, path, err));
    int rc = begin_import(from, node, err);
    if (rc == BRC_OK)
        rc = brc_bulk_end_with(from->session, import_kept(from, import_new(from, node, err), err),
                               err);
    free(node);
    return rc;
}

/* Requires that all names were met if the caller does not ask which were. */
static int must_meet_names(origin *from, brc_xfer_opts *opts, brc_error *err)
{
    void *met;
    if (opts->nrename == 0 || opts->renamed)
        return BRC_OK;
    BRC_TRY(brc_new(&met, opts->nrename, err));
    opts->renamed = met;
    from->must_meet = 1;
    return BRC_OK;
}

/* Gives the list to the caller, whatever the result of the import. */
static int give_parts(const origin *from, int rc, brc_error *err)
{
    const brc_xfer_opts *opts = from->opts;
    brc_parts *parts = from->parts;
    if (from->must_meet)
        free(opts->renamed);
    if (opts->left_out) {
        int given = brc_parts_write(parts, opts->left_out, err);
        if (given == BRC_OK)
            given = brc_buf_terminate(opts->left_out, err);
        rc = rc < 0 || given == BRC_OK ? rc : given;
    }
    brc_parts_dispose(parts);
    return rc;
}

static int check_names(const brc_xfer_opts *opts, brc_error *err)
{
    for (size_t i = 0; i < opts->nrename; i++) {
        const char *from = opts->rename[i].from, *to = opts->rename[i].to;
        if (!from || brc_path_given_is(from, "", 0))
            return brc_fail(err, BRC_EINVAL,
                            "name a node to rename by its path below the imported node; the "
                            "imported node itself gets its name from the import's path");
        if (!to || strchr(to, '/') || !brc_name_is_safe(to, strlen(to)))
            return brc_fail(err, BRC_EINVAL,
                            "the new name of %s is '%s', which is not a name: a node stays in its "
                            "group when it is renamed",
                            from, to ? to : "");
        const char *path = from + (from[0] == '/');
        size_t len = strlen(path);
        while (path[len - 1] == '/')
            len--;
        for (size_t k = 0; k < i; k++)
            if (brc_path_given_is(opts->rename[k].from, path, len))
                return brc_fail(err, BRC_EINVAL, "%s is renamed twice: give it one new name", from);
    }
    return BRC_OK;
}

/* Checks that the source is one whose files stay, and that its chunks need not be changed. */
static int check_external(const brc_xfer_opts *opts, brc_error *err)
{
    if (!(opts->flags & BRC_XFER_EXTERNAL))
        return BRC_OK;
    if ((opts->flags & BRC_XFER_STREAM) || opts->with)
        return brc_fail(err, BRC_EINVAL, "the chunks of a stream lie in no file: they cannot stay "
                                         "where they are (external)");
    if (opts->chunk || opts->codecs_json)
        return brc_fail(err, BRC_EINVAL, "chunks that stay where they are (external) keep their "
                                         "shape and their codecs: give no others");
    return BRC_OK;
}

static int take_import_opts(brc_xfer_opts *out, const brc_xfer_opts *given, brc_error *err)
{
    BRC_TRY(take_opts(out, given, err));
    if (out->format || (out->flags & BRC_XFER_CONSOLIDATED))
        return brc_fail(err, BRC_EINVAL,
                        "a format is for export: a source's is known by its content");
    BRC_TRY(check_external(out, err));
    return check_names(out, err);
}

/* Finds the format. Refuses to read the repository's own file. */
static int look_at_source(brc_source *source, const brc_format **format, const brc_session *s,
                          const char *name, brc_error *err)
{
    BRC_TRY(brc_check_file(brc_store_path(brc_session_repo(s)->store), name, err));
    BRC_TRY(brc_source_look(source, name, err));
    return brc_format_of_source(format, source, err);
}

/* Imports a command's output about the source; keeps nothing if the command fails in the end. */
static int import_with(const origin *from, const char *path, brc_error *err)
{
    brc_foreign what = { .session = from->session,
                         .command = from->opts->with,
                         .file = from->name,
                         .opts = from->opts,
                         .parts = from->parts };
    breccia *repo = brc_session_repo(from->session);
    brc_foreign_in *in;
    origin stream = *from;

    BRC_TRY(brc_foreign_open(&in, &what, err));
    stream.stream = brc_foreign_stream(in);
    char *node;
    brc_task task = brc_task_begin(repo, "import", 0);
    int rc = place_origin(&node, &stream, path, err), has_begun = 0;
    if (rc == BRC_OK) {
        rc = begin_import(from, node, err);
        has_begun = rc == BRC_OK;
    }
    if (has_begun)
        rc = import_new(&stream, node, err);
    rc = brc_foreign_close(in, rc, err);
    brc_task_end(repo, &task, rc);
    free(node);
    return has_begun ? brc_bulk_end_with(from->session, import_kept(from, rc, err), err) : rc;
}

/* Checks that there is either a name or a descriptor. */
static int check_where(const brc_session *s, const char *name, const brc_xfer_opts *opts,
                       brc_error *err)
{
    const int is_stream = (opts->flags & BRC_XFER_STREAM) != 0;
    if (!s || (is_stream ? opts->fd < 0 : !name))
        return brc_fail(err, BRC_EINVAL, is_stream
                                             ? "a session and a descriptor are needed"
                                             : "a session and the name of a file are needed");
    if (is_stream && name)
        return brc_fail(err, BRC_EINVAL, "a stream has a descriptor, not the name %.200s", name);
    return BRC_OK;
}

static int import_from_fd(brc_session *s, const char *path, brc_xfer_opts *opts,
                          brc_error *err)
{
    static const char name[] = "the stream";
    brc_parts parts = BRC_PARTS_INIT;
    brc_stream_fd source;
    brc_tar_in *tar = NULL;
    int rc;

    if (opts->with)
        return brc_fail(err, BRC_EINVAL, "a stream is written by a command, or comes from a "
                                         "descriptor: both are given");
    origin from = { .session = s, .opts = opts, .parts = &parts };
    brc_stream_opts stream = { .xfer = opts, .name = name, .parts = &parts };
    BRC_TRY(must_meet_names(&from, opts, err));
    BRC_GO(brc_stream_fd_open(&tar, &source, brc_session_repo(s), opts->fd, name, err));
    BRC_GO(brc_stream_open(&from.stream, s, tar, &stream, err));
    brc_task task = brc_task_begin(brc_session_repo(s), "import", 0);
    rc = import_origin(&from, path, err);
    brc_task_end(brc_session_repo(s), &task, rc);
done:
    brc_stream_free(from.stream);
    brc_tar_in_free(tar);
    return give_parts(&from, rc, err);
}

static int import_into(brc_session *s, const char *name, const char *path, brc_xfer_opts *opts,
                       brc_error *err)
{
    brc_parts parts = BRC_PARTS_INIT;
    brc_source source;

    if (opts->flags & BRC_XFER_STREAM)
        return import_from_fd(s, path, opts, err);
    origin from = { .session = s, .opts = opts, .name = name, .source = &source, .parts = &parts };
    BRC_TRY(must_meet_names(&from, opts, err));
    if (opts->with)
        return give_parts(&from, import_with(&from, path, err), err);
    int rc = look_at_source(&source, &from.format, s, name, err);
    if (rc < 0)
        return give_parts(&from, rc, err);
    source.parts = &parts;
    return give_parts(&from, import_origin(&from, path, err), err);
}

/* Removes the old node and imports the source in a private session, whose changes become those of
 * `s` only when all is there. */
static int import_over(brc_session *s, const char *name, const char *path, brc_xfer_opts *opts,
                       brc_error *err)
{
    brc_session *own;
    BRC_TRY(brc_session_can_change(s, err));
    BRC_TRY(brc_session_open(&own, brc_session_repo(s), s->branch, BRC_SESSION_PRIVATE, err));
    int rc = import_into(own, name, path, opts, err);
    if (rc == BRC_OK) {
        rc = brc_session_hand_over(own, s, err);
        if (rc == BRC_ECONFLICT)
            rc = brc_fail(err, rc, "the import conflicts with uncommitted changes: commit or drop "
                                   "these first");
    }
    const int dropped = rc < 0 ? brc_session_discard(own, NULL) : BRC_OK;
    brc_session_free(own);
    return rc < 0 ? rc : dropped;
}

int brc_import(brc_session *s, const char *name, const char *path, const brc_xfer_opts *given,
               brc_error *err)
{
    brc_xfer_opts opts;
    BRC_TRY(take_import_opts(&opts, given, err));
    BRC_TRY(check_where(s, name, &opts, err));
    return opts.flags & BRC_XFER_REPLACE ? import_over(s, name, path, &opts, err)
                                         : import_into(s, name, path, &opts, err);
}

int brc_import_bytes(uint64_t *bytes, brc_session *s, const char *name, const brc_xfer_opts *given,
                     brc_error *err)
{
    const brc_format *format;
    brc_source source;
    brc_xfer_opts opts;

    if (!bytes || !s || !name)
        return brc_fail(err, BRC_EINVAL, "a number, a session and a source are needed");
    *bytes = 0;
    BRC_TRY(take_opts(&opts, given, err));
    if (opts.with)
        return BRC_OK; /* a command is run only once */
    BRC_TRY(look_at_source(&source, &format, s, name, err));
    return source_bytes(bytes, s, format, &source, &opts, err);
}

/* ---- export -------------------------------- */

typedef struct export_size {
    brc_session *s;
    uint64_t bytes;
} export_size;

/* brc_nodes_each() */
static int add_array_bytes(void *ctx, const char *path, const char *inner, int kind, brc_error *err)
{
    export_size *sum = ctx;
    brc_array *a;
    (void)inner;
    if (kind != BRC_ARRAY)
        return BRC_OK;
    BRC_TRY(brc_array_open(&a, sum->s, path, err));
    const brc_array_info *info = brc_array_describe(a);
    brc_add_array_bytes(&sum->bytes, info->ndim, info->shape, info->item_size);
    brc_array_free(a);
    return BRC_OK;
}

/* Returns 0 if nobody asks for the size, or if it is not known: the export reports the reason. */
static uint64_t bytes_to_export(brc_session *s, const char *path)
{
    export_size sum = { s, 0 };
    if (!brc_session_repo(s)->progress || brc_nodes_each(s, path, add_array_bytes, &sum, NULL) < 0)
        return 0;
    return sum.bytes;
}

static int check_export_opts(const brc_xfer_opts *opts, brc_error *err)
{
    if (opts->chunk || opts->codecs_json || opts->nexclude || opts->nrename ||
        opts->with || opts->hdf5_plugins || (opts->flags & BRC_XFER_EXTERNAL))
        return brc_fail(err, BRC_EINVAL,
                        "chunks, codecs, commands, filters, names and excluded nodes are options "
                        "of import: an export has the array's own chunks and codecs");
    return BRC_OK;
}

static int export_checked(brc_session *s, const char *path, const char *dest,
                          const brc_xfer_opts *opts, brc_error *err)
{
    const brc_format *format;
    char *node;

    BRC_TRY(check_export_opts(opts, err));
    BRC_TRY(brc_format_of_dest(&format, dest, opts->format, err));
    if ((opts->flags & BRC_XFER_CONSOLIDATED) && !format->consolidates)
        return brc_fail(err, BRC_EINVAL, "only Zarr has consolidated metadata: %s is not Zarr",
                        dest);
    if ((opts->flags & BRC_XFER_NAN_TOKENS) && !format->consolidates)
        return brc_fail(err, BRC_EINVAL,
                        "only documents of Zarr can have NaN as a word: %s is not Zarr", dest);
    BRC_TRY(given_path(&node, path ? path : "/", err));
    breccia *repo = brc_session_repo(s);
    brc_task task = brc_task_begin(repo, "export", bytes_to_export(s, node));
    int rc = BRC_OK;
    if (format->dimensions && !(opts->flags & BRC_XFER_UNEQUAL_DIMENSIONS))
        rc = brc_dimensions_check(s, node, format->dimensions, err);
    if (rc == BRC_OK)
        rc = format->export(s, node, dest, opts, err);
    brc_task_end(repo, &task, rc);
    free(node);
    return rc;
}

static int export_to_fd(brc_session *s, const char *node, const brc_xfer_opts *opts,
                        brc_error *err)
{
    const brc_stream_out_opts out = { .nan_tokens = (opts->flags & BRC_XFER_NAN_TOKENS) != 0,
                                      .warnings = opts->warnings };
    breccia *repo = brc_session_repo(s);
    brc_stream_fd sink;
    brc_tar_out *tar;
    BRC_TRY(brc_stream_fd_create(&tar, &sink, repo, opts->fd, "the stream", err));
    brc_task task = brc_task_begin(repo, "export", bytes_to_export(s, node));
    int rc = brc_stream_export(s, node, tar, &out, err);
    brc_task_end(repo, &task, rc);
    brc_tar_out_free(tar);
    return rc;
}

static int export_fd_checked(brc_session *s, const char *path, const brc_xfer_opts *opts,
                             brc_error *err)
{
    char *node;

    BRC_TRY(check_export_opts(opts, err));
    if ((opts->flags & BRC_XFER_CONSOLIDATED) ||
        (opts->format && strcmp(opts->format, "zarr3") != 0))
        return brc_fail(err, BRC_EINVAL,
                        "a stream is always Zarr v3 without consolidated metadata: export other "
                        "formats to files");
    BRC_TRY(given_path(&node, path ? path : "/", err));
    int rc = export_to_fd(s, node, opts, err);
    free(node);
    return rc;
}

int brc_export(brc_session *s, const char *path, const char *dest, const brc_xfer_opts *given,
               brc_error *err)
{
    brc_xfer_opts opts;
    char *place; /* dest without slashes at its end */

    BRC_TRY(take_opts(&opts, given, err));
    BRC_TRY(check_where(s, dest, &opts, err));
    if (opts.flags & BRC_XFER_STREAM)
        return export_fd_checked(s, path, &opts, err);
    size_t len = strlen(dest);
    while (len > 1 && dest[len - 1] == '/')
        len--;
    BRC_TRY(brc_dup_n(&place, dest, len, err));
    int rc = export_checked(s, path, place, &opts, err);
    free(place);
    return rc;
}

