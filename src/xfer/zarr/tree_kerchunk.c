/*
 * A set of Kerchunk's references as a tree of files. The set may come from a stranger, and names
 * any file: only regular files are opened, never the repository's own, and the import tells of
 * files outside the set's folder.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../backends/external.h"
#include "../../base/alloc.h"
#include "../../base/file.h"
#include "../../base/part.h"
#include "../../work/session.h"
#include "../in_place.h"
#include "../input.h"
#include "../tree_names.h"
#include "kerchunk.h"
#include "tree_in.h"

typedef struct refs_tree {
    brc_tree_in tree;
    brc_kerchunk refs;
    char *folder;       /* of the set, with its "/"; "": the current one    */
    char *real;         /* the same without links                           */
    char *file;         /* the file that is open; NULL: none                */
    int fd;
    struct stat st;     /* of that file                                     */
    brc_buf place;      /* of that file; empty: not asked for               */
    char *outside;      /* the first file outside the folder; NULL: none    */
} refs_tree;

/* ---- addresses -------------------------------- */

/* Returns the address behind "SCHEME://", or NULL if there is no scheme. */
static const char *behind_scheme(const char *url)
{
    const char *colon = strstr(url, "://");
    for (const char *p = url; colon && p < colon; p++)
        if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
              *p == '+' || *p == '-' || *p == '.'))
            return NULL;
    return colon && colon > url ? colon + 3 : NULL;
}

/* Returns the path of a file on this machine, or NULL if the address names something else. */
static const char *local_path(const char *url)
{
    const char *rest = behind_scheme(url);
    if (strstr(url, "::"))
        return NULL;
    if (!rest)
        return *url ? url : NULL;
    const int is_file = strncmp(url, "file://", 7) == 0 || strncmp(url, "local://", 8) == 0;
    return is_file && *rest == '/' ? rest : NULL;
}

static int refuse_address(const refs_tree *t, const brc_kerchunk_ref *ref, brc_error *err)
{
    const char *rest = behind_scheme(ref->url);
    if (!rest || strstr(ref->url, "::") || strncmp(ref->url, "file://", 7) == 0)
        return brc_part_refuse(err, BRC_PART_STORAGE,
                               "write the path of the file into the references",
                               "%s: %.200s lies at \"%.200s\", which is not a file on this machine",
                               t->tree.name, ref->key, ref->url);
    return brc_part_refuse(err, BRC_PART_STORAGE,
                           "download the file, and write its path into the references",
                           "%s: %.200s lies at %.200s, and chunks at %.*s addresses cannot be read "
                           "yet",
                           t->tree.name, ref->key, ref->url, (int)(rest - 3 - ref->url), ref->url);
}

static int local_file(char **out, const refs_tree *t, const brc_kerchunk_ref *ref, brc_error *err)
{
    const char *path = local_path(ref->url);
    brc_buf text = BRC_BUF_INIT;
    int rc;
    *out = NULL;
    if (!path)
        return refuse_address(t, ref, err);
    BRC_GO(brc_buf_printf(&text, err, "%s%s", *path == '/' ? "" : t->folder, path));
    rc = brc_buf_take_text(&text, out, err);
done:
    brc_buf_dispose(&text);
    return rc;
}

/* ---- the open file -------------------------------- */

static void shut_local(refs_tree *t)
{
    if (t->fd >= 0)
        close(t->fd);
    free(t->file);
    t->fd = -1;
    t->file = NULL;
    t->place.len = 0;
}

/* Notes a file that the folder of the set does not hold. */
static int tell_outside(refs_tree *t, const char *file, brc_error *err)
{
    if (t->outside || !t->real)
        return BRC_OK;
    char *real = realpath(file, NULL);
    const size_t len = strlen(t->real);
    const int is_inside = real && strncmp(real, t->real, len) == 0 && real[len] == '/';
    free(real);
    return is_inside ? BRC_OK : brc_dup(&t->outside, file, err);
}

/* Opens the file of a reference unless it is open; takes `file`. */
static int open_local(refs_tree *t, char *file, brc_error *err)
{
    int rc = BRC_OK, why;
    if (t->file && strcmp(t->file, file) == 0) {
        free(file);
        return BRC_OK;
    }
    shut_local(t);
    if (t->tree.repo)
        rc = brc_check_file(brc_store_path(t->tree.repo->store), file, err);
    t->file = file;
    if (rc < 0)
        return rc;
    t->fd = brc_external_open(file, &t->st, &why);
    if (t->fd < 0)
        return why != 0 ? brc_fail_os(err, why, "cannot open", file)
                        : brc_fail(err, BRC_EINVAL, "%s is not a regular file", file);
    return tell_outside(t, file, err);
}

static int open_target(refs_tree *t, const brc_kerchunk_ref *ref, brc_error *err)
{
    char *file;
    BRC_TRY(local_file(&file, t, ref, err));
    const int rc = open_local(t, file, err);
    if (rc < 0) {
        shut_local(t);
        brc_context(err, "%.200s", ref->key);
    }
    return rc;
}

/* ---- the tree's functions -------------------------------- */

static const char *ref_name(const void *items, size_t i, size_t *len)
{
    const brc_kerchunk_ref *ref = (const brc_kerchunk_ref *)items + i;
    *len = ref->key_len;
    return ref->key;
}

static brc_tree_names keys_of(const refs_tree *t)
{
    return (brc_tree_names){ t->refs.refs, t->refs.n, ref_name, "", 0 };
}

/* Sets *out to the reference of a file, or to NULL. */
static int find_ref(const brc_kerchunk_ref **out, int *is_dir, const brc_tree_in *tree,
                    const char *path, brc_error *err)
{
    const refs_tree *t = (const refs_tree *)tree;
    const brc_tree_names keys = keys_of(t);
    size_t at;
    BRC_TRY(brc_tree_names_find(&at, is_dir, &keys, path, err));
    *out = at < t->refs.n ? &t->refs.refs[at] : NULL;
    return BRC_OK;
}

static int refs_kind(brc_tree_in *tree, const char *path, int *kind, brc_error *err)
{
    const brc_kerchunk_ref *ref;
    int is_dir;
    BRC_TRY(find_ref(&ref, &is_dir, tree, path, err));
    *kind = is_dir ? BRC_ENTRY_DIR : ref ? BRC_ENTRY_FILE : BRC_ENTRY_NONE;
    return BRC_OK;
}

static int refs_each(brc_tree_in *tree, const char *path, brc_tree_found_fn found, void *ctx,
                     brc_error *err)
{
    const brc_tree_names keys = keys_of((const refs_tree *)tree);
    return brc_tree_names_each(&keys, path, found, ctx, err);
}

static int refs_check(brc_tree_in *tree, const char *path, brc_error *err)
{
    const refs_tree *t = (const refs_tree *)tree;
    const brc_tree_names keys = keys_of(t);
    size_t at, end;
    BRC_TRY(brc_tree_names_below(&at, &end, &keys, path, err));
    for (; at < end; at++) {
        const brc_kerchunk_ref *ref = &t->refs.refs[at];
        if (!ref->data && !local_path(ref->url))
            return refuse_address(t, ref, err);
    }
    return BRC_OK;
}

static int refs_place(brc_tree_in *tree, const char *path, brc_buf *out, uint64_t *offset,
                      brc_error *err)
{
    refs_tree *t = (refs_tree *)tree;
    const brc_kerchunk_ref *ref;
    int is_dir;
    *offset = 0;
    BRC_TRY(find_ref(&ref, &is_dir, tree, path, err));
    if (!tree->repo || !ref || ref->data)
        return BRC_OK;
    BRC_TRY(open_target(t, ref, err));
    if (t->place.len == 0)
        BRC_TRY(brc_external_place(&t->place, tree->repo->store, t->file, &t->st, err));
    *offset = ref->whole ? 0 : ref->offset;
    BRC_TRY(brc_buf_append(out, t->place.data, t->place.len, err));
    return brc_buf_terminate(out, err);
}

static int read_there(refs_tree *t, const brc_kerchunk_ref *ref, uint64_t limit, brc_buf *out,
                      brc_error *err)
{
    BRC_TRY(open_target(t, ref, err));
    const uint64_t size = (uint64_t)t->st.st_size;
    const uint64_t offset = ref->whole ? 0 : ref->offset, len = ref->whole ? size : ref->len;
    if (offset > size || len > size - offset)
        return brc_fail(err, BRC_EINVAL,
                        "%.200s is %llu bytes from byte %llu on of %s, which has only %llu: make "
                        "the references again",
                        ref->key, (unsigned long long)len, (unsigned long long)offset, t->file,
                        (unsigned long long)size);
    if (len > limit)
        return brc_fail(err, BRC_ELIMIT, "%.200s is %llu bytes long, more than %llu", ref->key,
                        (unsigned long long)len, (unsigned long long)limit);
    BRC_TRY(brc_buf_reserve(out, (size_t)len + 1, err));
    BRC_TRY(brc_fd_read_at(t->fd, out->data + out->len, (size_t)len, offset, t->file, err));
    out->len += (size_t)len;
    return BRC_OK;
}

static int refs_read(brc_tree_in *tree, const char *path, uint64_t limit, brc_buf *out,
                     brc_error *err)
{
    const brc_kerchunk_ref *ref;
    int is_dir;
    BRC_TRY(find_ref(&ref, &is_dir, tree, path, err));
    if (!ref)
        return brc_fail(err, BRC_ENOTFOUND, "%s has no reference of %s", tree->name, path);
    return ref->data ? brc_kerchunk_data(out, ref, limit, err)
                     : read_there((refs_tree *)tree, ref, limit, out, err);
}

static int refs_warn(brc_tree_in *tree, brc_buf *warnings, brc_error *err)
{
    const refs_tree *t = (const refs_tree *)tree;
    if (!t->outside)
        return BRC_OK;
    BRC_TRY(brc_buf_printf(warnings, err,
                           "%s: chunks come from files outside its folder, such as %.300s\n",
                           tree->name, t->outside));
    return brc_buf_terminate(warnings, err);
}

static void refs_close(brc_tree_in *tree)
{
    refs_tree *t = (refs_tree *)tree;
    shut_local(t);
    brc_buf_dispose(&t->place);
    brc_kerchunk_dispose(&t->refs);
    free(t->folder);
    free(t->real);
    free(t->outside);
    free(t->tree.name);
    free(t);
}

/* ---- opening -------------------------------- */

static int read_json(brc_kerchunk *out, const char *file, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    brc_input *in = NULL;
    const uint8_t *head;
    size_t got;
    int rc;
    memset(out, 0, sizeof(*out));
    BRC_GO(brc_input_open(&in, file, err));
    BRC_GO(brc_input_peek(in, &head, &got, err));
    BRC_GO(brc_buf_append(&text, head, got, err));
    while (got > 0 && text.len <= BRC_JSON_MAX_BYTES) {
        BRC_GO(brc_buf_reserve(&text, (size_t)1 << 16, err));
        BRC_GO(in->read(in, text.data + text.len, (size_t)1 << 16, &got, err));
        text.len += got;
    }
    rc = brc_kerchunk_read(out, (const char *)text.data, text.len, err);
    if (rc < 0)
        brc_context(err, "%s", file);
done:
    brc_input_free(in);
    brc_buf_dispose(&text);
    return rc;
}

static int find_folder(refs_tree *t, const char *file, brc_error *err)
{
    const char *slash = strrchr(file, '/');
    BRC_TRY(brc_dup_n(&t->folder, file, slash ? (size_t)(slash - file) + 1 : 0, err));
    t->real = realpath(*t->folder ? t->folder : ".", NULL);
    return t->real || errno != ENOMEM ? BRC_OK : brc_nomem(err);
}

int brc_tree_kerchunk_open(brc_tree_in **out, const brc_session *s, const char *file,
                           brc_error *err)
{
    refs_tree *t;
    int rc;

    *out = NULL;
    BRC_TRY(brc_new((void **)&t, sizeof(*t), err));
    t->fd = -1;
    t->tree.between = ": ";
    t->tree.repo = s ? brc_session_repo(s) : NULL;
    t->tree.kind = refs_kind;
    t->tree.each = refs_each;
    t->tree.check = refs_check;
    t->tree.place = refs_place;
    t->tree.read = refs_read;
    t->tree.warn = refs_warn;
    t->tree.close = refs_close;
    BRC_GO(brc_dup(&t->tree.name, file, err));
    BRC_GO(find_folder(t, file, err));
    BRC_GO(read_json(&t->refs, file, err));
    *out = &t->tree;
done:
    if (rc < 0)
        refs_close(&t->tree);
    return rc;
}
