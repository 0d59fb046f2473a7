/* Trees of files to import: the common part, directories and zip archives. */
#include "tree_in.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../base/alloc.h"
#include "../../base/file.h"
#include "../../base/json.h"
#include "../../work/session.h"
#include "../../zarr/transfer.h"
#include "../input.h"
#include "../tree_names.h"
#include "../zip.h"

/* ==== tree in ================================ */

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

/* ==== tree dir ================================ */

/* A directory as a tree. */

/* Makes a file's name: a directory needs only its own name without slashes at the end. */
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

static int dir_size(brc_tree_in *tree, const char *path, uint64_t *bytes, brc_error *err)
{
    struct stat st;
    char *file;
    BRC_TRY(dir_file(&file, tree, path, err));
    *bytes = lstat(file, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
    free(file);
    return BRC_OK;
}

static int dir_place(brc_tree_in *tree, const char *path, brc_buf *out, uint64_t *offset,
                     brc_error *err)
{
    char *file;
    *offset = 0;
    if (!tree->repo)
        return BRC_OK;
    BRC_TRY(dir_file(&file, tree, path, err));
    const int rc = brc_external_place(out, tree->repo->store, file, NULL, err);
    free(file);
    return rc;
}

static int dir_files_place(brc_tree_in *tree, const char *dir, const char *begin,
                           const brc_external_files *files, brc_buf *out, brc_error *err)
{
    brc_buf stem = BRC_BUF_INIT;
    if (!tree->repo)
        return BRC_OK;
    int rc = brc_buf_printf(&stem, err, "%s%s%s/%s", tree->name, *dir ? "/" : "", dir, begin);
    if (rc == BRC_OK)
        rc = brc_buf_terminate(&stem, err);
    if (rc == BRC_OK)
        rc = brc_external_files_place(out, tree->repo->store, (const char *)stem.data, files, err);
    brc_buf_dispose(&stem);
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
    tree->place = dir_place;
    tree->files_place = dir_files_place;
    tree->size = dir_size;
    tree->read = dir_read;
    tree->close = dir_close;
    *out = tree;
    return BRC_OK;
}

/* ==== tree zip ================================ */

/*
 * A zip archive as a tree. The hierarchy is at the archive's top level, or in one folder there, as
 * in an archive of a folder.
 *
 * libzip decompresses; the archive's directory was checked before (zip.h), and an entry that does
 * not have exactly the bytes that its record states is refused.
 */

/* The most bytes that deflate makes of one. */
#define DEFLATE_MOST 1032
#define INFLATE_STEP ((size_t)1 << 20)

typedef struct zip_tree {
    brc_tree_in tree;
    zip_t *archive;
    brc_zip_dir dir;
    const char *root; /* "" or "data.zarr/": points into dir */
    size_t root_len;
} zip_tree;

/* ---- finding -------------------------------- */

static const char *entry_name(const void *items, size_t i, size_t *len)
{
    const brc_zip_entry *e = (const brc_zip_entry *)items + i;
    *len = e->name_len;
    return e->name;
}

static brc_tree_names zip_names(const zip_tree *t)
{
    return (brc_tree_names){ t->dir.entries, t->dir.n, entry_name, t->root, t->root_len };
}

/* Finds a file, or NULL; *is_dir: there are files below it. */
static int find_file(const brc_zip_entry **out, int *is_dir, const zip_tree *t, const char *path,
                     brc_error *err)
{
    const brc_tree_names names = zip_names(t);
    size_t at;
    BRC_TRY(brc_tree_names_find(&at, is_dir, &names, path, err));
    *out = at < t->dir.n ? &t->dir.entries[at] : NULL;
    return BRC_OK;
}

static int zip_kind(brc_tree_in *tree, const char *path, int *kind, brc_error *err)
{
    const brc_zip_entry *e;
    int is_dir;
    BRC_TRY(find_file(&e, &is_dir, (zip_tree *)tree, path, err));
    *kind = is_dir       ? BRC_ENTRY_DIR
            : !e         ? BRC_ENTRY_NONE
            : e->is_link ? BRC_ENTRY_LINK
                         : BRC_ENTRY_FILE;
    return BRC_OK;
}

static int zip_each(brc_tree_in *tree, const char *path, brc_tree_found_fn found, void *ctx,
                    brc_error *err)
{
    const brc_tree_names names = zip_names((const zip_tree *)tree);
    return brc_tree_names_each(&names, path, found, ctx, err);
}

/* ---- reading -------------------------------- */

/* Compares the stated size with what the entry can hold, before memory is allocated. */
static int check_archive_entry(const brc_zip_entry *e, const char *label, uint64_t limit,
                               brc_error *err)
{
    if (e->is_link)
        return brc_fail(err, BRC_EINVAL, "%s is a symbolic link: it is not followed", label);
    if (e->is_encrypted)
        return brc_fail(err, BRC_EUNSUPPORTED, "%s is encrypted: unpack the archive first", label);
    if (e->method != ZIP_CM_STORE && e->method != ZIP_CM_DEFLATE)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "%s is compressed with method %d of zip: stored and deflated entries can "
                        "be read",
                        label, e->method);
    if (e->size > limit)
        return brc_fail(err, BRC_ELIMIT, "%s is %llu bytes long, more than %llu", label,
                        (unsigned long long)e->size, (unsigned long long)limit);
    if (e->method == ZIP_CM_DEFLATE && e->size / DEFLATE_MOST > e->packed)
        return brc_fail(err, BRC_EINVAL, "%s does not have the size that it claims: %llu bytes "
                                         "cannot come from %llu",
                        label, (unsigned long long)e->size, (unsigned long long)e->packed);
    return BRC_OK;
}

/* Reads exactly `size` bytes; libzip compares the checksum at the end. */
static int read_exactly(zip_file_t *file, uint64_t size, brc_buf *out, const char *label,
                        brc_error *err)
{
    uint64_t left = size;
    for (;;) {
        uint8_t beyond;
        size_t step = left < INFLATE_STEP ? (size_t)left : INFLATE_STEP;
        if (step > 0)
            BRC_TRY(brc_buf_reserve(out, step, err));
        zip_int64_t n =
            step > 0 ? zip_fread(file, out->data + out->len, step) : zip_fread(file, &beyond, 1);
        if (n < 0)
            return brc_zip_fail_read(err, zip_file_get_error(file), "cannot read", label);
        if (n == 0 && left == 0)
            return BRC_OK;
        if (n == 0 || left == 0)
            return brc_fail(err, BRC_EINVAL, "%s does not have the size that it claims, %llu bytes",
                            label, (unsigned long long)size);
        out->len += (size_t)n;
        left -= (uint64_t)n;
    }
}

static int read_entry(zip_tree *t, const brc_zip_entry *e, const char *label, uint64_t limit,
                      brc_buf *out, brc_error *err)
{
    BRC_TRY(check_archive_entry(e, label, limit, err));
    zip_file_t *file;
    BRC_TRY(brc_zip_entry_open(&file, t->archive, e, label, err));
    int rc = read_exactly(file, e->size, out, label, err);
    (void)zip_fclose(file);
    return rc;
}

static int zip_read(brc_tree_in *tree, const char *path, uint64_t limit, brc_buf *out,
                    brc_error *err)
{
    zip_tree *t = (zip_tree *)tree;
    const brc_zip_entry *e;
    char *label = NULL;
    int is_dir, rc;

    BRC_GO(brc_tree_in_label(&label, tree, path, err));
    BRC_GO(find_file(&e, &is_dir, t, path, err));
    if (e)
        rc = read_entry(t, e, label, limit, out, err);
    else if (is_dir)
        rc = brc_fail(err, BRC_EINVAL, "%s is not a regular file", label);
    else
        rc = brc_fail(err, BRC_ENOTFOUND, "cannot open %s: there is no such entry", label);
done:
    free(label);
    return rc;
}

/* ---- opening -------------------------------- */

static int is_document(const char *name, size_t len)
{
    for (const char *const *doc = brc_zarr_documents; *doc; doc++)
        if (len == strlen(*doc) && memcmp(name, *doc, len) == 0)
            return 1;
    return 0;
}

/* Finds the hierarchy: the top level, or the one folder that holds a document. */
static int choose_root(zip_tree *t, const char *file, brc_error *err)
{
    size_t folders = 0;
    t->root = "";
    t->root_len = 0;
    for (size_t i = 0; i < t->dir.n; i++) {
        const brc_zip_entry *e = &t->dir.entries[i];
        const char *slash = memchr(e->name, '/', e->name_len);
        size_t len = slash ? (size_t)(slash - e->name) + 1 : 0;
        if (!is_document(e->name + len, e->name_len - len))
            continue;
        if (!slash) {
            t->root_len = 0;
            return BRC_OK;
        }
        if (folders > 0 && len == t->root_len && memcmp(t->root, e->name, len) == 0)
            continue;
        t->root = e->name;
        t->root_len = len;
        folders++;
    }
    if (folders == 1)
        return BRC_OK;
    return brc_fail(err, BRC_EUNSUPPORTED,
                    folders > 1 ? "%s has Zarr in several folders, but not at its top level: "
                                  "unpack it, then import one"
                                : "%s has no Zarr at its top level or in a folder there",
                    file);
}

/* ---- entries with one name -------------------------------- */

/* Returns the part of a document that defines its node, without members that writers change later.
 * NULL: the document is not JSON. */
static int node_itself(brc_json **out, zip_tree *t, const brc_zip_entry *e, const char *label,
                       brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc;

    *out = NULL;
    BRC_GO(read_entry(t, e, label, BRC_JSON_MAX_BYTES, &text, err));
    rc = brc_json_parse(out, (const char *)text.data, text.len, BRC_JSON_NAN, NULL);
    rc = rc == BRC_ENOMEM ? brc_nomem(err) : BRC_OK;
    if (*out) {
        brc_json_remove(*out, "attributes");
        brc_json_remove(*out, "consolidated_metadata");
    }
done:
    brc_buf_dispose(&text);
    return rc;
}

static const char *base_name(const brc_zip_entry *e, size_t *len)
{
    size_t at = e->name_len;
    while (at > 0 && e->name[at - 1] != '/')
        at--;
    *len = e->name_len - at;
    return e->name + at;
}

/* Refuses two documents of one name that define different nodes. zarr-python, and Python's zipfile
 * under it, rewrite a file by adding another entry, and read the last one in the directory: this
 * happens to chunks, and to documents whose attributes changed. Readers differ in what a node is if
 * its two documents disagree about it. */
static int check_twice(void *ctx, const brc_zip_entry *old, const brc_zip_entry *by,
                          brc_error *err)
{
    zip_tree *t = ctx;
    brc_json *before = NULL, *after = NULL;
    char *label;
    size_t len;
    const char *base = base_name(old, &len);
    int rc;

    if (!is_document(base, len) || (len == 10 && memcmp(base, ".zmetadata", len) == 0))
        return BRC_OK;
    BRC_TRY(brc_dup_n(&label, old->name, old->name_len, err));
    BRC_GO(node_itself(&before, t, old, label, err));
    BRC_GO(node_itself(&after, t, by, label, err));
    if (!before || !after || !brc_json_equal(before, after))
        rc = brc_fail(err, BRC_EINVAL,
                      "%s comes twice, and the node has two documents that differ: unpack the "
                      "archive, and import the folder",
                      label);
done:
    if (rc < 0)
        brc_context(err, "%s", t->tree.name);
    free(label);
    brc_json_free(before);
    brc_json_free(after);
    return rc;
}

static void zip_tree_close(brc_tree_in *tree)
{
    zip_tree *t = (zip_tree *)tree;
    if (t->archive)
        zip_discard(t->archive);
    brc_zip_dir_dispose(&t->dir);
    free(t->tree.name);
    free(t);
}

int brc_tree_zip_open(brc_tree_in **out, const char *file, brc_error *err)
{
    zip_tree *t;
    brc_buf name = BRC_BUF_INIT;
    int rc;

    *out = NULL;
    BRC_TRY(brc_new((void **)&t, sizeof(*t), err));
    t->tree.between = ": ";
    t->tree.kind = zip_kind;
    t->tree.each = zip_each;
    t->tree.read = zip_read;
    t->tree.close = zip_tree_close;
    BRC_GO(brc_dup(&t->tree.name, file, err));
    BRC_GO(brc_zip_open(&t->archive, &t->dir, file, err));
    BRC_GO(brc_zip_dir_sort(&t->dir, file, check_twice, t, err));
    BRC_GO(choose_root(t, file, err));
    BRC_GO(brc_buf_text(&name, file, err));
    if (t->root_len > 0) {
        BRC_GO(brc_buf_printf(&name, err, ": %.*s", (int)t->root_len - 1, t->root));
        t->tree.between = "/";
    }
    free(t->tree.name);
    BRC_GO(brc_buf_take_text(&name, &t->tree.name, err));
    *out = &t->tree;
done:
    brc_buf_dispose(&name);
    if (rc < 0)
        zip_tree_close(&t->tree);
    return rc;
}

int brc_zip_holds_zarr(int *holds, const char *file, brc_error *err)
{
    brc_zip_dir dir = { 0 };
    brc_error why = BRC_ERROR_INIT;
    uint64_t size;
    int fd;

    *holds = 0;
    BRC_TRY(brc_regular_open(&fd, &size, file, 1, err));
    int rc = brc_zip_dir_read(&dir, fd, size, file, &why);
    close(fd);
    for (size_t i = 0; i < dir.n && !*holds; i++) {
        const brc_zip_entry *e = &dir.entries[i];
        size_t at = e->name_len;
        while (at > 0 && e->name[at - 1] != '/')
            at--;
        *holds = is_document(e->name + at, e->name_len - at);
    }
    brc_zip_dir_dispose(&dir);
    return rc == BRC_ENOMEM ? brc_nomem(err) : BRC_OK;
}
