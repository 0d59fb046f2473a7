#include "in_place.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../backends/external.h"
#include "../base/file.h"
#include "../work/session.h"

/* ---- places -------------------------------- */

/* Returns the path as a place has it: without the folder if the file lies beneath it. */
static const char *path_in_place(const char *real, const char *folder)
{
    const size_t len = strlen(folder);
    return strncmp(real, folder, len) == 0 ? real + len : real;
}

int brc_external_place(brc_buf *out, const brc_store *store, const char *file,
                       const struct stat *st, brc_error *err)
{
    struct stat own;
    char *folder = NULL, *real = realpath(file, NULL);
    int rc;

    out->len = 0;
    if (real == NULL || (st == NULL && stat(real, &own) != 0)) {
        rc = brc_fail_os(err, errno, "cannot open", file);
        goto done;
    }
    st = st != NULL ? st : &own;
    folder = brc_external_folder(brc_store_file(store));
    if (folder == NULL) {
        rc = brc_nomem(err);
        goto done;
    }
    const brc_external_name name = { .size = (uint64_t)st->st_size,
                                     .time_ns = brc_external_time(st),
                                     .path = path_in_place(real, folder) };
    BRC_GO(brc_external_write(out, &name, err));
    rc = brc_buf_terminate(out, err);
done:
    free(folder);
    free(real);
    return rc;
}

/* Writes the stem without the links in its folder's path. */
static int real_stem(char **out, const char *stem, const char *folder, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    char *dir, *real = NULL;
    const char *slash = strrchr(stem, '/');
    BRC_TRY(slash != NULL ? brc_dup_n(&dir, stem, (size_t)(slash - stem) + 1, err)
                          : brc_dup(&dir, "./", err));
    real = realpath(dir, NULL);
    int rc = real != NULL ? BRC_OK : brc_fail_os(err, errno, "cannot open", dir);
    if (rc == BRC_OK)
        rc = brc_buf_printf(&text, err, "%s%s%s", real, strcmp(real, "/") == 0 ? "" : "/",
                            slash != NULL ? slash + 1 : stem);
    if (rc == BRC_OK)
        rc = brc_buf_terminate(&text, err);
    if (rc == BRC_OK)
        rc = brc_dup(out, path_in_place((const char *)text.data, folder), err);
    brc_buf_dispose(&text);
    free(real);
    free(dir);
    return rc;
}

uint64_t brc_external_number(const brc_external_files *files, size_t i)
{
    uint64_t number = 0;
    for (int k = 0; k < files->ndim; k++)
        number = number * files->count[k] + files->index[i * (size_t)files->ndim + (size_t)k];
    return number;
}

/* Finds the time of the file that was changed last. Returns 0 if one is not a regular file. */
static int last_time(brc_external_name *name, const brc_external_files *files, const char *folder)
{
    char path[BRC_EXTERNAL_PATH];
    struct stat st;
    for (size_t i = 0; i < files->n; i++) {
        const uint64_t number = brc_external_number(files, i);
        if (!brc_external_path(path, folder, name, number) || lstat(path, &st) != 0 ||
            !S_ISREG(st.st_mode))
            return 0;
        const int64_t time_ns = brc_external_time(&st);
        name->time_ns = i == 0 || time_ns > name->time_ns ? time_ns : name->time_ns;
    }
    return files->n > 0;
}

int brc_external_files_place(brc_buf *out, const brc_store *store, const char *stem,
                             const brc_external_files *files, brc_error *err)
{
    brc_external_name name = { .ndim = files->ndim, .separator = files->separator };
    char *folder = brc_external_folder(brc_store_file(store)), *real = NULL;
    int rc = BRC_OK;
    out->len = 0;
    if (folder == NULL)
        return brc_nomem(err);
    /* An offset and the length of a file together fit into a number of SQLite. */
    if (files->ndim == 0 || brc_shape_count(files->ndim, files->count) > INT64_MAX / 2)
        goto done;
    memcpy(name.count, files->count, sizeof(uint64_t) * (size_t)files->ndim);
    BRC_GO(real_stem(&real, stem, folder, err));
    name.path = real;
    if (!last_time(&name, files, folder))
        goto done;
    BRC_GO(brc_external_write(out, &name, err));
    rc = brc_buf_terminate(out, err);
done:
    free(real);
    free(folder);
    return rc;
}

/* ---- elements -------------------------------- */

/* The chunks of an array whose elements lie in a file in their order. */
typedef struct lying_chunks {
    brc_array *a;
    const brc_external_elements *from;
    brc_chunk_place at;
    brc_buf place;                /* of the file */
    int order[BRC_MAX_NDIM];      /* axes, from the slowest in the file to the fastest */
    uint64_t count[BRC_MAX_NDIM]; /* whole chunks along each axis */
    uint64_t index[BRC_MAX_NDIM];
    int begun, later;
    size_t bytes;                 /* of a chunk */
} lying_chunks;

/* Returns the number, in the order of the file, of the axis along which chunks are cut: the axes
 * before it have chunks of one, those after it are whole. -1: chunks are not single ranges. */
static int range_axis(const lying_chunks *c)
{
    const brc_meta *m = &c->a->meta;
    int cut = 0;
    if (m->nlevels > 0 || !m->outer.regular)
        return -1;
    while (cut + 1 < m->ndim && m->grid.chunk[c->order[cut]] == 1)
        cut++;
    for (int i = cut + 1; i < m->ndim; i++)
        if (m->grid.chunk[c->order[i]] != m->shape[c->order[i]])
            return -1;
    if (cut > 0 && m->shape[c->order[cut]] % m->grid.chunk[c->order[cut]] != 0)
        return -1;
    return cut;
}

/* Returns the offset of the chunk's first byte among those of all elements. */
static uint64_t chunk_offset(const lying_chunks *c, const uint64_t *index)
{
    const brc_meta *m = &c->a->meta;
    uint64_t element = 0;
    for (int i = 0; i < m->ndim; i++) {
        const int axis = c->order[i];
        element = element * m->shape[axis] + index[axis] * m->grid.chunk[axis];
    }
    return element * m->type->item_size;
}

/* Sets *r to where a chunk's bytes begin. */
static void range_of_chunk(const lying_chunks *c, const uint64_t *index, brc_stream_range *r)
{
    const uint64_t offset = chunk_offset(c, index);
    *r = (brc_stream_range){ .file = c->from->file, .range = c->from->range };
    r->piece = offset / r->range.len;
    r->at = offset % r->range.len;
}

/* The load function of brc_chunk_source. */
static int load_lying(void *ctx, const uint64_t *index, brc_buf *stored, brc_error *err)
{
    const lying_chunks *c = ctx;
    brc_stream_range r;
    range_of_chunk(c, index, &r);
    BRC_TRY(brc_buf_reserve(stored, c->bytes, err));
    BRC_TRY(brc_stream_range_read(&r, stored->data, c->bytes, err));
    stored->len = c->bytes;
    return BRC_OK;
}

/* The next function of brc_chunk_source. */
static int next_lying(void *ctx, uint64_t *index, brc_buf *stored, brc_error *err)
{
    lying_chunks *c = ctx;
    const brc_meta *m = &c->a->meta;
    brc_stream_range r;
    if (c->begun && !brc_index_next(m->ndim, c->index, c->count))
        return 0;
    c->begun = 1;
    memcpy(index, c->index, sizeof(uint64_t) * (size_t)m->ndim);
    range_of_chunk(c, index, &r);
    if (c->bytes <= r.range.len - r.at) {
        BRC_TRY(brc_buf_append(&c->at.place, c->place.data, c->place.len, err));
        c->at.offset = r.range.at + r.piece * r.range.step + r.at;
    }
    (void)stored;
    c->later = 1;
    return 1;
}

/* Describes the chunks as they lie: with only a byte order, and an order of axes. */
static int lying_doc(brc_json **out, const lying_chunks *c, brc_error *err)
{
    const brc_meta *m = &c->a->meta;
    brc_buf text = BRC_BUF_INIT;
    brc_json *codecs = NULL;
    int rc;
    BRC_GO(brc_node_doc(out, c->a->session, c->a->path, err));
    BRC_GO(brc_buf_text(&text, c->from->fortran && m->ndim > 1
                                   ? "[{\"name\":\"transpose\",\"configuration\":{\"order\":["
                                   : "[",
                        err));
    for (int i = 0; c->from->fortran && m->ndim > 1 && i < m->ndim; i++)
        BRC_GO(brc_buf_printf(&text, err, "%d%s", c->order[i], i + 1 < m->ndim ? "," : "]}},"));
    if (m->type->swap_unit <= 1 && m->type->klass != BRC_CLASS_STRUCT)
        BRC_GO(brc_buf_text(&text, "{\"name\":\"bytes\"}]", err));
    else
        BRC_GO(brc_buf_printf(&text, err,
                              "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"%s\"}}]",
                              c->from->big ? "big" : "little"));
    BRC_GO(brc_json_parse(&codecs, (const char *)text.data, text.len, 0, err));
    rc = brc_json_set(*out, "codecs", codecs, err);
done:
    brc_buf_dispose(&text);
    if (rc < 0) {
        brc_json_free(*out);
        *out = NULL;
    }
    return rc;
}

/* Stores the elements from the position `first` on of the slowest axis. */
static int store_rest(const lying_chunks *c, uint64_t first, brc_error *err)
{
    const brc_meta *m = &c->a->meta;
    brc_sel sel = BRC_SEL_INIT;
    brc_stream_range r = { .file = c->from->file, .range = c->from->range };
    brc_element_source source = { .ctx = &r, .fortran = c->from->fortran, .big = c->from->big,
                                  .read = brc_stream_range_read };
    brc_sel_of_shape(&sel, m->ndim, m->shape);
    if (m->ndim > 0) {
        const int axis = c->order[0];
        const uint64_t row = c->from->range.len * c->from->range.pieces / m->shape[axis];
        sel.start[axis] = first;
        sel.count[axis] = m->shape[axis] - first;
        r.piece = first * row / r.range.len;
        r.at = first * row % r.range.len;
    }
    return brc_array_write_stream(c->a, &sel, &source, err);
}

/* Takes the whole chunks, and stores what is cut off at the end of the slowest axis. */
static int take_ranges(lying_chunks *c, brc_error *err)
{
    const brc_meta *m = &c->a->meta;
    const brc_chunk_source source = { .ctx = c, .next = next_lying, .at = &c->at,
                                      .load = load_lying, .later = &c->later };
    uint64_t all = 1, bytes = m->type->item_size;
    brc_json *doc;
    for (int i = 0; i < m->ndim; i++) {
        c->count[i] = m->shape[i] / m->grid.chunk[i];
        all *= c->count[i] > 0;
        bytes *= m->grid.chunk[i]; /* not used if there is no whole chunk */
    }
    c->bytes = (size_t)bytes;
    if (all > 0) {
        BRC_TRY(lying_doc(&doc, c, err));
        const int rc = brc_array_put_recoded(c->a, doc, &source, err);
        brc_json_free(doc);
        BRC_TRY(rc);
    }
    const int axis = m->ndim > 0 ? c->order[0] : 0;
    return m->ndim > 0 && m->shape[axis] % m->grid.chunk[axis] != 0
               ? store_rest(c, c->count[axis] * m->grid.chunk[axis], err)
               : BRC_OK;
}

int brc_external_take(brc_array *a, const brc_external_elements *elements, brc_error *err)
{
    lying_chunks c = { .a = a, .from = elements };
    struct stat st;
    int rc;
    if (elements->range.len == 0)
        return BRC_OK;
    for (int i = 0; i < a->meta.ndim; i++)
        c.order[i] = elements->fortran ? a->meta.ndim - 1 - i : i;
    if (fstat(elements->file->fd, &st) != 0)
        return brc_fail_os(err, errno, "cannot read", elements->file->name);
    BRC_GO(brc_external_place(&c.place, brc_array_store(a), elements->file->name, &st, err));
    rc = range_axis(&c) >= 0 ? take_ranges(&c, err) : store_rest(&c, 0, err);
done:
    brc_buf_dispose(&c.place);
    brc_buf_dispose(&c.at.place);
    return rc;
}

/* ---- what is stored -------------------------------- */

typedef struct chunk_count {
    brc_store *store;
    uint64_t all, stored;
} chunk_count;

static int count_one(void *ctx, const uint64_t *index, const brc_oid *id, brc_error *err)
{
    chunk_count *count = ctx;
    brc_object there = { .id = *id }, *one = &there;
    (void)index;
    BRC_TRY(brc_objects_find(count->store, &one, 1, err));
    count->all++;
    count->stored += there.found && brc_is_in_file(there.backend);
    return brc_store_check_interrupt(count->store, err);
}

int brc_external_note(brc_import_notes *notes, brc_array *a, brc_error *err)
{
    chunk_count count = { .store = brc_array_store(a) };
    brc_buf text = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_array_each_chunk(a, count_one, &count, err));
    if (count.stored == 0)
        goto done;
    BRC_GO(brc_buf_printf(&text, err, "%s (%" PRIu64 " of %" PRIu64 ")", a->path, count.stored,
                          count.all));
    BRC_GO(brc_buf_terminate(&text, err));
    rc = brc_first_names_add(&notes->inside, (const char *)text.data, err);
done:
    brc_buf_dispose(&text);
    return rc;
}
