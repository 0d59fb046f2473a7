/* The elements of an array as they leave: to a function of the caller, or into a file, as they are
 * or as a .npy file. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../base/sized.h"
#include "../../base/file.h"
#include "../../base/pool.h"
#include "../../work/session.h"
#include "../../zarr/array/array.h"
#include "../../zarr/transfer.h"
#include "../dest.h"
#include "npy.h"

/* ==== runs ================================ */

/* The bytes of a selection, run by run: elements in native byte order, or a .npy file. */
typedef struct out_runs {
    int is_npy;
    brc_element_runs elements;
    brc_npy_out npy;
} out_runs;

static int runs_start(out_runs *r, brc_array *a, const brc_sel *sel, int is_npy, brc_error *err)
{
    r->is_npy = is_npy;
    return is_npy ? brc_npy_out_start(&r->npy, a, sel, brc_session_registry(brc_array_session(a)),
                                      err)
                  : brc_element_runs_start(&r->elements, a, sel, err);
}

static int runs_next(out_runs *r, brc_span *run, brc_error *err)
{
    return r->is_npy ? brc_npy_out_next(&r->npy, run, err)
                     : brc_element_runs_next(&r->elements, run, err);
}

static void runs_end(out_runs *r)
{
    if (r->is_npy)
        brc_npy_out_stop(&r->npy);
    else
        brc_element_runs_end(&r->elements);
}

int brc_array_stream(brc_array *a, const brc_sel *sel, uint32_t flags,
                     int (*put)(void *ctx, const void *data, size_t len), void *ctx, brc_error *err)
{
    out_runs runs = {0};
    brc_span run;
    if (!a || !put)
        return brc_fail(err, BRC_EINVAL, "an array and a function are needed");
    BRC_TRY(brc_flags_check(flags, BRC_STREAM_NPY, "brc_array_stream()", err));
    int rc = runs_start(&runs, a, sel, flags != 0, err);
    while (rc >= 0 && (rc = runs_next(&runs, &run, err)) > 0) {
        if (put(ctx, run.data, run.len) == 0)
            continue;
        rc = brc_fail(err, BRC_EINTERRUPT, "stopped on request");
        break;
    }
    runs_end(&runs);
    return rc;
}

/* ==== into a file ================================ */

/*
 * A run is written by jobs on the pool, a part each, while the next run is read:
 *
 *      caller   | read 0 | read 1 | read 2 |
 *      workers           | write 0| write 1| write 2|
 *
 * Reading swaps the buffers of two runs, so it waits for the jobs of the run before the last.
 */
enum { PARTS = 16, PART_BYTES = 256 << 10 };

typedef struct file_part {
    brc_job job; /* must be first */
    int fd;
    const char *name;
    const uint8_t *data;
    size_t len;
    uint64_t at;
    int rc;
    brc_error err;
} file_part;

typedef struct file_out {
    int fd, in_parts; /* in_parts: the file is a regular one */
    const char *name;
    uint64_t at;
    brc_element_runs *all; /* what is written box by box */
    brc_group *group;
    uint8_t *data; /* the buffer of the run that is being written */
    size_t n;
    file_part parts[PARTS];
} file_out;

static void save_part(brc_job *job, unsigned worker)
{
    file_part *p = (file_part *)job;
    (void)worker;
    p->rc = brc_fd_write_at(p->fd, p->data, p->len, p->at, p->name, &p->err);
}

/* Waits for the parts of the last run. */
static int save_wait(file_out *f, brc_error *err)
{
    int rc = BRC_OK;
    if (f->group != NULL)
        brc_group_wait_all(f->group);
    for (size_t i = 0; rc == BRC_OK && i < f->n; i++) {
        rc = f->parts[i].rc;
        if (rc < 0)
            brc_fail(err, rc, "%s", f->parts[i].err.message);
    }
    f->n = 0;
    return rc;
}

static void save_submit(file_out *f, brc_span run)
{
    const size_t fits = (run.len + PARTS - 1) / PARTS;
    const size_t each = fits > PART_BYTES ? fits : PART_BYTES;
    for (size_t at = 0; at < run.len; at += each, f->n++) {
        file_part *p = &f->parts[f->n];
        *p = (file_part){.job.run = save_part, .fd = f->fd, .name = f->name, .at = f->at + at,
                         .data = (const uint8_t *)run.data + at, .err = BRC_ERROR_INIT,
                         .len = run.len - at < each ? run.len - at : each};
        brc_group_submit(f->group, &p->job);
    }
    f->at += run.len;
}

/* Returns the buffer in which the run lies, if the next run may be read into another. */
static uint8_t **run_buffer(out_runs *r, brc_span run)
{
    brc_element_runs *elements = r->is_npy ? &r->npy.runs : &r->elements;
    return run.data == elements->data ? &elements->data : NULL;
}

static int save_run(file_out *f, out_runs *r, brc_span run, brc_error *err)
{
    uint8_t **buffer = run_buffer(r, run);
    BRC_TRY(save_wait(f, err));
    if (!f->in_parts)
        return brc_fd_write(f->fd, run.data, run.len, f->name, err);
    save_submit(f, run);
    if (buffer == NULL)
        return save_wait(f, err);
    uint8_t *before = f->data;
    f->data = *buffer;
    *buffer = before;
    return BRC_OK;
}

/* Positions count only in a regular file that is not appended to. */
static int file_start(file_out *f, brc_array *a, brc_error *err)
{
    struct stat st;
    const int how = fcntl(f->fd, F_GETFL);
    const off_t at = lseek(f->fd, 0, SEEK_CUR);
    f->in_parts = fstat(f->fd, &st) == 0 && S_ISREG(st.st_mode) && how >= 0 && !(how & O_APPEND) &&
                  at >= 0;
    f->at = at > 0 ? (uint64_t)at : 0;
    return f->in_parts ? brc_group_new(&f->group, brc_array_session(a)->repo->pipe.pool, err)
                       : BRC_OK;
}

/* ---- boxes -------------------------------- */

/* Writes the rows of a box, each where it belongs in the file. */
static int save_box(void *ctx, const uint64_t *at, const uint64_t *count, const uint8_t *data,
                    brc_error *err)
{
    const file_out *f = ctx;
    const brc_sel *all = &f->all->cut.within;
    uint64_t index[BRC_MAX_NDIM] = {0}, row = f->all->item;
    int axis = all->ndim;
    while (axis > 0 && (axis == all->ndim || count[axis] == all->count[axis]))
        row *= count[--axis];
    do {
        uint64_t place = 0;
        for (int i = 0; i < all->ndim; i++)
            place = place * all->count[i] + at[i] + index[i];
        BRC_TRY(brc_fd_write_at(f->fd, data, (size_t)row, f->at + place * f->all->item, f->name,
                                err));
        data += row;
    } while (brc_index_next(axis, index, count));
    return BRC_OK;
}

static int save_end(const file_out *f, brc_error *err)
{
    return lseek(f->fd, (off_t)f->at, SEEK_SET) < 0
               ? brc_fail_os(err, errno, "cannot write", f->name)
               : BRC_OK;
}

/* Lets the workers write what they have decoded. Returns 0 if elements must be read run by run. */
static int save_boxes(file_out *f, out_runs *r, brc_error *err)
{
    brc_span header;
    const brc_box_sink sink = {f, save_box};
    f->all = r->is_npy ? &r->npy.runs : &r->elements;
    if (!r->is_npy && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
        return 0;
    if (r->is_npy) {
        BRC_TRY(runs_next(r, &header, err));
        BRC_TRY(brc_fd_write_at(f->fd, header.data, header.len, f->at, f->name, err));
        f->at += header.len;
    }
    const int done = brc_element_runs_boxes(f->all, &sink, err);
    if (done > 0)
        f->at += brc_shape_count(f->all->cut.within.ndim, f->all->cut.within.count) * f->all->item;
    return done;
}

static int save_runs(file_out *f, out_runs *r, brc_error *err)
{
    brc_span run;
    int more;
    if (f->in_parts) {
        const int done = save_boxes(f, r, err);
        if (done != 0)
            return done < 0 ? done : save_end(f, err);
    }
    while ((more = runs_next(r, &run, err)) > 0)
        BRC_TRY(save_run(f, r, run, err));
    BRC_TRY(more);
    BRC_TRY(save_wait(f, err));
    return f->in_parts ? save_end(f, err) : BRC_OK;
}

int brc_array_save(brc_array *a, const brc_sel *sel, uint32_t flags, int fd, const char *name,
                   brc_error *err)
{
    file_out f = {.fd = fd, .name = name};
    out_runs runs = {0};
    if (!a || !name)
        return brc_fail(err, BRC_EINVAL, "an array and the name of a file are needed");
    BRC_TRY(brc_flags_check(flags, BRC_STREAM_NPY, "brc_array_save()", err));
    int rc = runs_start(&runs, a, sel, flags != 0, err);
    if (rc == BRC_OK)
        rc = file_start(&f, a, err);
    if (rc == BRC_OK)
        rc = save_runs(&f, &runs, err);
    brc_group_free(f.group); /* waits for what is under way */
    free(f.data);
    runs_end(&runs);
    return rc;
}

/* ---- a file of its own -------------------------------- */

static int write_file(brc_array *a, const brc_sel *sel, const brc_dest *dest, brc_error *err)
{
    const char *file = dest->in_place ? dest->path : dest->temp;
    int fd = open(file, O_WRONLY | O_CLOEXEC | (dest->in_place ? O_TRUNC : O_CREAT | O_EXCL), 0666);
    if (fd < 0)
        return brc_fail_os(err, errno, "cannot make", file);
    int rc = brc_array_save(a, sel, BRC_STREAM_NPY, fd, file, err);
    if (close(fd) < 0 && rc >= 0)
        rc = brc_fail_os(err, errno, "cannot write", file);
    return rc;
}

int brc_npy_save(brc_array *a, const brc_sel *sel, const char *file, int replace, brc_error *err)
{
    brc_dest dest = { 0 };
    int rc;
    BRC_GO(brc_dest_open(&dest, brc_array_session(a), file, replace, err));
    BRC_GO(write_file(a, sel, &dest, err));
    BRC_GO(brc_dest_finish(&dest, replace, err));
done:
    brc_dest_close(&dest);
    return rc;
}
