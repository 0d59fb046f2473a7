/*
 * Other people's files that moved: gives their places in the backend "external" their new names.
 *
 * The files are looked at, and compared if their times differ, without a lock; the names change in
 * one short transaction.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../backends/external.h"
#include "../base/alloc.h"
#include "../base/file.h"
#include "../store/change.h"
#include "../work/session.h"

enum { OBJECTS_AT_ONCE = 256 };

typedef struct moved_place {
    int64_t seq;
    char *name, *now; /* of the place, before and after */
    int compares;     /* the time of a file is another: its bytes are compared */
    char *stem;       /* of a grid of files: where they are now; NULL: one file */
    int64_t time_ns;  /* of the file of the grid that was changed last */
} moved_place;

typedef struct file_move {
    breccia *repo;
    const char *given, *given_to; /* OLD and NEW, for messages */
    char *from[2], *to;  /* absolute: OLD as it is written, OLD and NEW without links */
    char *folder;        /* of the repository's file */
    int64_t backend;
    brc_store_backend *b;
    void *places;        /* moved_place[], by number */
    size_t n, cap;
    uint64_t files;      /* in all places */
    int lists;           /* objects are to be listed */
    void *objects;       /* brc_object[] in grids and in files to compare */
    size_t nobjects, objects_cap;
    brc_buf name, bytes;
} file_move;

static void forget_places(file_move *m)
{
    for (size_t i = 0; i < m->n; i++) {
        free(((moved_place *)m->places)[i].name);
        free(((moved_place *)m->places)[i].now);
        free(((moved_place *)m->places)[i].stem);
    }
    m->n = m->nobjects = 0;
    m->files = 0;
    m->lists = 0;
}

static void file_move_dispose(file_move *m)
{
    forget_places(m);
    free(m->places);
    free(m->objects);
    free(m->from[0]);
    free(m->from[1]);
    free(m->to);
    free(m->folder);
    brc_buf_dispose(&m->name);
    brc_buf_dispose(&m->bytes);
}

/* ---- paths -------------------------------- */

/* Makes a path absolute, as it is written. */
static int absolute_path(char **out, const char *path, brc_error *err)
{
    char *here = NULL;
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    if (path[0] == '/')
        return brc_dup_n(out, path, len, err);
    here = realpath(".", NULL);
    if (here == NULL)
        return brc_fail_os(err, errno, "cannot find", "the current folder");
    int rc = brc_dup_n(out, path, len, err);
    char *relative = *out;
    if (rc == BRC_OK)
        rc = brc_path_join(out, here, relative, err);
    free(relative);
    free(here);
    return rc;
}

/* Follows the links in as much of an absolute path as exists. */
static int real_path(char **out, const char *path, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    char *head, *real;
    BRC_TRY(brc_dup(&head, path, err));
    while ((real = realpath(*head ? head : "/", NULL)) == NULL && *head)
        *strrchr(head, '/') = '\0';
    int rc = brc_buf_printf(&text, err, "%s%s",
                            real != NULL && strcmp(real, "/") != 0 ? real : "",
                            path + strlen(head));
    if (rc == BRC_OK && text.len == 0)
        rc = brc_buf_text(&text, "/", err);
    if (rc == BRC_OK)
        rc = brc_buf_take_text(&text, out, err);
    brc_buf_dispose(&text);
    free(head);
    free(real);
    return rc;
}

/* Returns what of a path is beneath `above`, or NULL. */
static const char *path_beneath(const char *path, const char *above)
{
    const size_t len = strcmp(above, "/") == 0 ? 0 : strlen(above);
    return strncmp(path, above, len) == 0 && (path[len] == '/' || path[len] == '\0') ? path + len
                                                                                     : NULL;
}

/* ---- places -------------------------------- */

static int no_chunks(const file_move *m, brc_error *err)
{
    return brc_fail(err, BRC_ENOTFOUND, "no chunks lie beneath %s, so none move to %s", m->given,
                    m->given_to);
}

static int look_at_file(struct stat *st, const char *path, brc_error *err)
{
    int why;
    const int fd = brc_external_open(path, st, &why);
    if (fd < 0 && why != 0)
        return brc_fail_os(err, why, "cannot open", path);
    if (fd < 0)
        return brc_fail(err, BRC_EINVAL, "%s is not a regular file", path);
    close(fd);
    return BRC_OK;
}

static int check_file_size(const char *path, const struct stat *st, uint64_t size,
                           const char *was, brc_error *err)
{
    if ((uint64_t)st->st_size == size)
        return BRC_OK;
    return brc_fail(err, BRC_EINVAL,
                    "%s has %" PRIu64 " bytes, and had %" PRIu64
                    " when it was imported as %s: the file is another",
                    path, (uint64_t)st->st_size, size, was);
}

/* Writes the place's name, with these paths and this time. */
static int name_now(const file_move *m, const brc_external_name *was, const char *path,
                    int64_t time_ns, moved_place *place, brc_error *err)
{
    const size_t len = strlen(m->folder);
    brc_external_name now = *was;
    brc_buf text = BRC_BUF_INIT;
    now.path = strncmp(path, m->folder, len) == 0 ? path + len : path;
    now.time_ns = time_ns;
    int rc = brc_external_write(&text, &now, err);
    if (rc == BRC_OK)
        rc = brc_buf_take_text(&text, &place->now, err);
    brc_buf_dispose(&text);
    return rc;
}

/* Takes one file as it is now. */
static int take_file(file_move *m, const brc_external_name *was, const char *path,
                     moved_place *place, brc_error *err)
{
    struct stat st;
    BRC_TRY(look_at_file(&st, path, err));
    BRC_TRY(check_file_size(path, &st, was->size, was->path, err));
    const int64_t time_ns = brc_external_time(&st);
    place->compares = !brc_external_is_time(was, time_ns);
    m->files++;
    m->lists |= place->compares;
    return name_now(m, was, path, time_ns, place, err);
}

/* Adds the place if its files lay beneath OLD. */
static int take_moved(file_move *m, int64_t seq, const char *name, brc_error *err)
{
    brc_external_name was;
    char *path = NULL, *now = NULL;
    int rc = BRC_OK;
    if (!brc_external_parse(&was, name))
        return BRC_OK; /* a read says what is wrong with it */
    rc = was.path[0] == '/' ? brc_dup(&path, was.path, err)
                            : brc_path_join(&path, m->folder, was.path, err);
    if (rc < 0)
        return rc;
    const char *rest = path_beneath(path, m->from[0]);
    if (rest == NULL)
        rest = path_beneath(path, m->from[1]);
    if (rest == NULL)
        goto done;
    BRC_GO(brc_grow_array(&m->places, &m->cap, m->n + 1, sizeof(moved_place), err));
    moved_place *place = (moved_place *)m->places + m->n;
    *place = (moved_place){ .seq = seq };
    BRC_GO(*rest ? brc_path_join(&now, m->to, rest + 1, err) : brc_dup(&now, m->to, err));
    BRC_GO(brc_dup(&place->name, name, err));
    m->n++;
    if (was.ndim > 0) {
        place->stem = now;
        place->time_ns = was.time_ns;
        now = NULL;
        m->lists = 1;
    } else {
        BRC_GO(take_file(m, &was, now, place, err));
    }
done:
    free(path);
    free(now);
    return rc;
}

static int moved_place_order(const void *a, const void *b)
{
    const moved_place *x = a, *y = b;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

static int list_places(file_move *m, brc_error *err)
{
    brc_store *store = m->repo->store;
    brc_buf after = BRC_BUF_INIT;
    int64_t seq;
    int rc = brc_buf_terminate(&after, err);
    while (rc >= 0 &&
           (rc = brc_place_next(m->b, (const char *)after.data, &seq, &m->name, err)) > 0) {
        rc = take_moved(m, seq, (const char *)m->name.data, err);
        brc_buf swap = after;
        after = m->name;
        m->name = swap;
        if (rc == BRC_OK)
            rc = brc_store_check_interrupt(store, err);
    }
    brc_buf_dispose(&after);
    if (rc == BRC_OK && m->n == 0)
        rc = no_chunks(m, err);
    if (m->n > 1)
        qsort(m->places, m->n, sizeof(moved_place), moved_place_order);
    return rc;
}

/* ---- comparing bytes -------------------------------- */

static moved_place *place_of_object(const file_move *m, const brc_object *o)
{
    const moved_place wanted = { .seq = o->place };
    return m->n > 0 ? bsearch(&wanted, m->places, m->n, sizeof(wanted), moved_place_order) : NULL;
}

static int list_moved_objects(file_move *m, brc_error *err)
{
    brc_object page[OBJECTS_AT_ONCE];
    brc_oid after;
    size_t n;
    memset(&after, 0, sizeof(after));
    for (;;) {
        BRC_TRY(brc_objects_page(m->repo->store, &after, page, OBJECTS_AT_ONCE, &n, err));
        if (n == 0)
            return BRC_OK;
        after = page[n - 1].id;
        for (size_t i = 0; i < n; i++) {
            const moved_place *place = page[i].found && page[i].backend == m->backend
                                           ? place_of_object(m, &page[i])
                                           : NULL;
            if (place == NULL || (!place->compares && place->stem == NULL))
                continue;
            BRC_TRY(brc_grow_array(&m->objects, &m->objects_cap, m->nobjects + 1,
                                   sizeof(brc_object), err));
            ((brc_object *)m->objects)[m->nobjects++] = page[i];
        }
        BRC_TRY(brc_store_check_interrupt(m->repo->store, err));
    }
}

static int moved_object_order(const void *a, const void *b)
{
    return brc_object_place_order(a, b);
}

/* ---- grids of files -------------------------------- */

/* Looks at the file that an object in a grid is. */
static int take_grid_file(file_move *m, moved_place *place, const brc_object *o, brc_error *err)
{
    char path[BRC_EXTERNAL_PATH];
    brc_external_name now;
    struct stat st;
    if (!brc_external_parse(&now, place->name))
        return BRC_OK;
    now.path = place->stem;
    if (!brc_external_path(path, m->folder, &now, o->offset))
        return BRC_OK; /* a read says what is wrong with it */
    BRC_TRY(look_at_file(&st, path, err));
    BRC_TRY(check_file_size(path, &st, o->stored, now.path, err));
    const int64_t time_ns = brc_external_time(&st);
    place->compares |= !brc_external_is_time(&now, time_ns);
    place->time_ns = time_ns > place->time_ns ? time_ns : place->time_ns;
    m->files++;
    return brc_store_check_interrupt(m->repo->store, err);
}

/* Finds which grids are to be compared, and the new names of all. Objects of the others go from the
 * list. */
static int take_grids(file_move *m, brc_error *err)
{
    brc_object *objects = m->objects;
    moved_place *places = m->places;
    brc_external_name was;
    size_t kept = 0;
    for (size_t i = 0; i < m->nobjects; i++) {
        moved_place *place = place_of_object(m, &objects[i]);
        if (place->stem != NULL)
            BRC_TRY(take_grid_file(m, place, &objects[i], err));
    }
    for (size_t i = 0; i < m->n; i++)
        if (places[i].stem != NULL && brc_external_parse(&was, places[i].name))
            BRC_TRY(name_now(m, &was, places[i].stem, places[i].time_ns, &places[i], err));
    for (size_t i = 0; i < m->nobjects; i++)
        if (place_of_object(m, &objects[i])->compares)
            objects[kept++] = objects[i];
    m->nobjects = kept;
    return BRC_OK;
}

/* Reads an object at its new place, and compares the checksum of its stored bytes. */
static int compare_object(file_move *m, const brc_object *o, brc_error *err)
{
    brc_stored asked, *one = &asked;
    size_t len;
    if (!brc_to_size(o->stored, &len))
        return brc_fail(err, BRC_ELIMIT, "a chunk is too large for this machine's memory");
    m->bytes.len = 0;
    BRC_TRY(brc_buf_reserve(&m->bytes, len + 1, err));
    brc_object_ask(o, &asked);
    asked.into = m->bytes.data;
    asked.place = place_of_object(m, o)->now;
    BRC_TRY(brc_backend_fetch(m->b, 1, &one, err));
    BRC_TRY(brc_object_verify_in(o, m->bytes.data, asked.place, err));
    return brc_store_check_interrupt(m->repo->store, err);
}

static int compare_objects(file_move *m, brc_error *err)
{
    const brc_object *objects = m->objects;
    if (m->nobjects > 1)
        qsort(m->objects, m->nobjects, sizeof(brc_object), moved_object_order);
    for (size_t i = 0; i < m->nobjects; i++) {
        const int rc = compare_object(m, &objects[i], err);
        if (rc == BRC_ESTALE && err != NULL) /* the file was there a moment ago */
            brc_error_recode(err, BRC_ENOTFOUND);
        if (rc < 0)
            return rc == BRC_ESTALE ? BRC_ENOTFOUND : rc;
    }
    return BRC_OK;
}

/* ---- the change -------------------------------- */

static int find_moved(file_move *m, brc_error *err)
{
    brc_store *store = m->repo->store;
    forget_places(m);
    BRC_TRY(brc_store_begin_read(store, err));
    int rc = brc_backend_find(store, BRC_EXTERNAL_SPEC, &m->backend, err);
    if (rc == BRC_OK && m->backend <= 0)
        rc = no_chunks(m, err);
    if (rc == BRC_OK)
        rc = brc_backend_use(store, m->backend, &m->b, err);
    if (rc == BRC_OK)
        rc = list_places(m, err);
    if (rc == BRC_OK && m->lists)
        rc = list_moved_objects(m, err);
    brc_store_end_read(store);
    if (rc == BRC_OK)
        rc = take_grids(m, err);
    return rc;
}

static int moved_work(void *ctx, brc_error *err)
{
    BRC_TRY(find_moved(ctx, err));
    return compare_objects(ctx, err);
}

static int moved_commit(void *ctx, int insists, brc_error *err)
{
    file_move *m = ctx;
    const moved_place *places;
    if (insists)
        BRC_TRY(moved_work(m, err));
    places = m->places;
    for (size_t i = 0; i < m->n; i++) {
        const int rc = brc_place_rename(m->b, places[i].seq, places[i].name, places[i].now, err);
        if (rc != BRC_OK)
            return rc < 0 ? rc : BRC_CHANGE_AGAIN;
    }
    return BRC_OK;
}

static int open_move(file_move *m, const char *from, const char *to, brc_error *err)
{
    char *absolute = NULL;
    int rc;
    BRC_GO(absolute_path(&m->from[0], from, err));
    BRC_GO(real_path(&m->from[1], m->from[0], err));
    BRC_GO(absolute_path(&absolute, to, err));
    BRC_GO(real_path(&m->to, absolute, err));
    m->folder = brc_external_folder(brc_store_file(m->repo->store));
    rc = m->folder != NULL ? BRC_OK : brc_nomem(err);
done:
    free(absolute);
    return rc;
}

int brc_rebase_files(breccia *repo, const char *from, const char *to, uint64_t *places,
                     uint64_t *compared, brc_error *err)
{
    if (repo == NULL || from == NULL || to == NULL || *from == '\0' || *to == '\0')
        return brc_fail(err, BRC_EINVAL, "a repository and two paths are needed");
    file_move m = { .repo = repo, .given = from, .given_to = to };
    const brc_file_change change = { .ctx = &m, .work = moved_work, .commit = moved_commit };
    int rc = open_move(&m, from, to, err);
    if (rc == BRC_OK)
        rc = brc_change_run(repo->store, &change, err);
    if (rc > 0)
        rc = brc_change_is_late(repo->store, "the places of files were changed", "try again", err);
    if (rc == BRC_OK && places != NULL)
        *places = m.files;
    if (rc == BRC_OK && compared != NULL)
        *compared = m.nobjects;
    file_move_dispose(&m);
    return rc;
}
