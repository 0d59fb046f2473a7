/*
 * bench --worker: one side of `make bench-peers`, in C. python/bench/worker.py is the same for
 * libraries of Python, and python/bench/peers.py asks both. Each line of standard input is a
 * request, a JSON object; each answer is a line. "do" is load (the source, and how arrays are
 * stored), prepare, run or check a row, or forget what is open. Only run measures:
 * {"wall":S,"synced":S,"cpu":S,"peak":BYTES}, where peak is the most memory resident beyond what
 * was resident after load.
 *
 * bench --child FILE COMMAND...: runs a command, and writes to FILE the seconds by the clock and
 * of the processor, and the peak of its memory in KiB. This process is small, so that the peak is
 * the command's.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kit/ios.h"
#include "worker.h"

/* ---- requests -------------------------------- */

uint64_t asked_number(const brc_json *q, const char *name)
{
    uint64_t n = 0;
    must_be(brc_json_uint(brc_json_member(q, name), UINT64_MAX, &n), name);
    return n;
}

const char *asked_text(const brc_json *q, const char *name)
{
    const char *text;
    must_be(brc_json_text(brc_json_member(q, name), &text), name);
    return text;
}

static int asked_list(const brc_json *q, const char *name, uint64_t *out)
{
    const brc_json *list = brc_json_member(q, name);
    int n = 0;
    for (const brc_json *item = brc_json_first(list); item != NULL; item = brc_json_next(item), n++)
        must_be(n < WORKER_DIMS && brc_json_uint(item, UINT64_MAX, &out[n]), name);
    return n;
}

void clock_on(worker *w)
{
    forget_peak();
    w->clock = start_clock();
}

void clock_off(worker *w)
{
    w->spent = stop_clock(w->clock);
}

/* ---- the store -------------------------------- */

static size_t worker_bytes(const worker *w)
{
    size_t n = w->item;
    for (int i = 0; i < w->ndim; i++)
        n *= w->shape[i];
    return n;
}

static void load_source(worker *w, const char *path)
{
    FILE *f = fopen(path, "rb");
    must_be(f != NULL && fread(w->src, 1, worker_bytes(w), f) == worker_bytes(w),
            "reading the source");
    fclose(f);
}

static const char *file_name(const brc_json *q)
{
    static char name[160];
    snprintf(name, sizeof(name), "%s.brc", asked_text(q, "name"));
    return name;
}

int worker_has(const worker *w, const brc_json *q)
{
    return access(in_dir(&w->o, file_name(q)), F_OK) == 0;
}

void worker_close(worker *w)
{
    if (w->r.handle != NULL)
        repo_close(&w->r);
    w->r.handle = NULL;
}

void worker_open(worker *w, const brc_json *q)
{
    worker_close(w);
    repo_open(&w->r, &w->o, file_name(q));
}

static void store_write(worker *w, const brc_json *q)
{
    brc_error err = BRC_ERROR_INIT;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    spec.ndim = w->ndim;
    spec.shape = w->shape;
    spec.chunk = w->chunk;
    spec.shard = w->sharded ? w->shard : NULL;
    spec.dtype = w->dtype;
    spec.codecs_json = w->codecs;
    repo_make(&w->r, &w->o, file_name(q), w->readback, &spec);
    must(brc_array_write(w->r.array, NULL, w->src, worker_bytes(w), &err), &err, "writing");
    repo_commit(&w->r, "written");
    worker_close(w);
}

static void store_prepare(worker *w, const brc_json *q)
{
    if (!worker_has(w, q))
        store_write(w, q);
    worker_open(w, q);
}

/* Drops a file from the page cache, so that it is read from the disk. */
static void cool(const char *path)
{
    int fd = open(path, O_RDONLY);
    must_be(fd >= 0 && fsync(fd) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0,
            "dropping a file from the page cache");
    close(fd);
}

/* ---- the flat file, with the chunks one after the other -------------------------------- */

/* Copies a box of the source into packed memory. */
static void gather(const worker *w, const uint64_t *start, const uint64_t *count, uint8_t *out)
{
    const size_t line = count[2] * w->item;
    for (uint64_t z = 0; z < count[0]; z++)
        for (uint64_t y = 0; y < count[1]; y++, out += line) {
            uint64_t row = (start[0] + z) * w->shape[1] + start[1] + y;
            memcpy(out, w->src + (row * w->shape[2] + start[2]) * w->item, line);
        }
}

static uint8_t *chunk_order(const worker *w, size_t *chunk_bytes)
{
    uint64_t at[3] = {0, 0, 0};
    uint8_t *ordered = must_alloc(worker_bytes(w)), *out = ordered;
    size_t len = w->item;
    for (int i = 0; i < 3; i++)
        len *= w->chunk[i];
    for (at[0] = 0; at[0] < w->shape[0]; at[0] += w->chunk[0])
        for (at[1] = 0; at[1] < w->shape[1]; at[1] += w->chunk[1])
            for (at[2] = 0; at[2] < w->shape[2]; at[2] += w->chunk[2], out += len)
                gather(w, at, w->chunk, out);
    *chunk_bytes = len;
    return ordered;
}

static void flat_prepare(worker *w, const brc_json *q)
{
    size_t len;
    (void)q;
    if (w->file.chunks != NULL)
        return;
    w->ordered = chunk_order(w, &len);
    flat_make(&w->file, &w->o, "flat", w->flat, worker_bytes(w) / len, len);
    flat_write(&w->file, w->ordered);
}

/* All that an import must do: read the source, put its chunks in order, encode and write them. */
static void flat_run_import(worker *w, const brc_json *q)
{
    size_t len;
    free(w->ordered);
    clock_on(w);
    load_source(w, asked_text(q, "source"));
    w->ordered = chunk_order(w, &len);
    clock_off(w);
    took written = flat_write(&w->file, w->ordered);
    w->spent.wall += written.wall;
    w->spent.cpu += written.cpu;
}

/* All that an export must do, but for the order of elements: read, decode and write a file. */
static void flat_run_export(worker *w, const brc_json *q)
{
    const size_t bytes = worker_bytes(w);
    clock_on(w);
    uint8_t *dst = must_alloc(bytes);
    flat_read(&w->file, dst, w->o.threads);
    FILE *f = fopen(asked_text(q, "dest"), "wb");
    must_be(f != NULL && fwrite(dst, 1, bytes, f) == bytes && fclose(f) == 0, "writing a file");
    clock_off(w);
    must_be(memcmp(dst, w->ordered, bytes) == 0, "reading the flat file");
    free(dst);
}

static void flat_run_write(worker *w, const brc_json *q)
{
    flat_prepare(w, q);
    forget_peak();
    w->spent = flat_write(&w->file, w->ordered);
}

static void flat_run_read(worker *w, const brc_json *q)
{
    uint8_t *dst = must_alloc(worker_bytes(w));
    if (brc_json_is(brc_json_member(q, "row"), "read-cold"))
        cool(w->file.path);
    forget_peak();
    w->spent = flat_read(&w->file, dst, w->o.threads);
    must_be(memcmp(dst, w->ordered, worker_bytes(w)) == 0, "reading the flat file");
    free(dst);
}

/* ---- whole arrays -------------------------------- */

static void run_write(worker *w, const brc_json *q)
{
    clock_on(w);
    store_write(w, q);
    clock_off(w);
}

/* Into memory that nobody has used before. */
static void run_read(worker *w, const brc_json *q)
{
    brc_error err = BRC_ERROR_INIT;
    const size_t bytes = worker_bytes(w);
    const int cold = brc_json_is(brc_json_member(q, "row"), "read-cold");
    if (cold) {
        worker_close(w);
        cool(in_dir(&w->o, file_name(q)));
    }
    clock_on(w);
    uint8_t *dst = must_alloc(bytes);
    if (cold)
        worker_open(w, q);
    must(brc_array_read(w->r.array, NULL, dst, bytes, &err), &err, "reading");
    clock_off(w);
    must_be(memcmp(dst, w->src, bytes) == 0, "reading what was written");
    free(dst);
}

static void check_all(worker *w, const brc_json *q)
{
    brc_error err = BRC_ERROR_INIT;
    uint8_t *dst = must_alloc(worker_bytes(w));
    worker_open(w, q);
    must(brc_array_read(w->r.array, NULL, dst, worker_bytes(w), &err), &err, "reading");
    must_be(memcmp(dst, w->src, worker_bytes(w)) == 0, "reading what was written");
    free(dst);
    worker_close(w);
}

/* Elements that the request names get the next number, as the other sides do. */
static void change_source(worker *w, const brc_json *q)
{
    const brc_json *list = brc_json_member(q, "changed");
    for (const brc_json *item = brc_json_first(list); item != NULL; item = brc_json_next(item)) {
        uint64_t at = 0;
        float value;
        must_be(brc_json_uint(item, worker_bytes(w) / w->item - 1, &at), "changed");
        memcpy(&value, w->src + at * sizeof(value), sizeof(value));
        value += 1;
        memcpy(w->src + at * sizeof(value), &value, sizeof(value));
    }
}

static void run_rewrite(worker *w, const brc_json *q)
{
    brc_error err = BRC_ERROR_INIT;
    brc_oid id;
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    opts.message = "written again";
    opts.author = "bench";
    opts.flags = BRC_COMMIT_ALLOW_EMPTY;
    change_source(w, q);
    clock_on(w);
    must(brc_array_write(w->r.array, NULL, w->src, worker_bytes(w), &err), &err, "writing");
    must(brc_session_commit(&id, w->r.session, &opts, &err), &err, "a commit");
    clock_off(w);
}

/* ---- parts -------------------------------- */

static void box_at(const worker *w, const brc_json *corner, const uint64_t *count, brc_sel *sel)
{
    int i = 0;
    *sel = (brc_sel)BRC_SEL_INIT;
    sel_all(sel, w->r.array);
    for (const brc_json *n = brc_json_first(corner); n != NULL; n = brc_json_next(n), i++) {
        must_be(i < 3 && brc_json_uint(n, UINT64_MAX, &sel->start[i]), "a corner");
        sel->count[i] = count[i];
    }
}

static void run_boxes(worker *w, const brc_json *q)
{
    brc_error err = BRC_ERROR_INIT;
    const brc_json *boxes = brc_json_member(q, "boxes");
    const size_t n = brc_json_count(boxes);
    uint64_t count[WORKER_DIMS];
    size_t len = w->item;
    asked_list(q, "count", count);
    for (int i = 0; i < 3; i++)
        len *= count[i];
    brc_sel *sels = must_alloc(n * sizeof(*sels));
    uint8_t *got = must_alloc(len), *wanted = must_alloc(len);
    size_t i = 0;
    for (const brc_json *at = brc_json_first(boxes); at != NULL; at = brc_json_next(at))
        box_at(w, at, count, &sels[i++]);
    clock_on(w);
    for (i = 0; i < n; i++)
        must(brc_array_read(w->r.array, &sels[i], got, len, &err), &err, "reading a box");
    clock_off(w);
    for (i = 0; i < n; i++) {
        must(brc_array_read(w->r.array, &sels[i], got, len, &err), &err, "reading a box");
        gather(w, sels[i].start, count, wanted);
        must_be(memcmp(got, wanted, len) == 0, "reading a box of what was written");
    }
    free(sels);
    free(got);
    free(wanted);
}

static void run_rows(worker *w, const brc_json *q)
{
    brc_error err = BRC_ERROR_INIT;
    const brc_json *list = brc_json_member(q, "rows");
    const size_t n = brc_json_count(list), len = w->shape[1] * w->item;
    int64_t *rows = must_alloc(n * sizeof(*rows));
    uint8_t *got = must_alloc(n * len);
    brc_at at = BRC_AT_INIT;
    size_t i = 0;
    for (const brc_json *item = brc_json_first(list); item != NULL; item = brc_json_next(item))
        must_be(brc_json_int(item, 0, INT64_MAX, &rows[i++]), "rows");
    at.ndim = 2;
    at.index[0] = rows;
    at.count[0] = n;
    at.count[1] = w->shape[1];
    at.step[0] = at.step[1] = 1;
    clock_on(w);
    must(io_take(w->r.array, &at, PACKED(got, n * len), &err), &err, "reading rows");
    clock_off(w);
    for (i = 0; i < n; i++)
        must_be(memcmp(got + i * len, w->src + (size_t)rows[i] * len, len) == 0, "reading rows");
    free(rows);
    free(got);
}

static void run_open(worker *w, const brc_json *q)
{
    brc_error err = BRC_ERROR_INIT;
    const uint64_t times = asked_number(q, "times");
    uint8_t got[16];
    must_be(w->item <= sizeof(got), "an element");
    worker_close(w);
    if (brc_json_is(brc_json_member(q, "row"), "open-cold"))
        cool(in_dir(&w->o, file_name(q)));
    clock_on(w);
    for (uint64_t i = 0; i < times; i++) {
        brc_sel sel = BRC_SEL_INIT;
        worker_open(w, q);
        sel_all(&sel, w->r.array);
        for (int d = 0; d < w->ndim; d++)
            sel.count[d] = 1;
        must(brc_array_read(w->r.array, &sel, got, w->item, &err), &err, "reading an element");
        worker_close(w);
    }
    clock_off(w);
    must_be(memcmp(got, w->src, w->item) == 0, "reading the first element");
    worker_open(w, q);
}

/* ---- the loop -------------------------------- */

typedef void (*worker_fn)(worker *w, const brc_json *q);

typedef struct worker_row {
    const char *row;
    worker_fn steps[3]; /* prepare, run, check; NULL: nothing to do */
} worker_row;

static const worker_row worker_rows[] = {
    {"write", {NULL, run_write, check_all}},
    {"read", {store_prepare, run_read, NULL}},
    {"read-cold", {store_prepare, run_read, NULL}},
    {"rewrite-same", {store_prepare, run_rewrite, check_all}},
    {"rewrite-part", {store_prepare, run_rewrite, check_all}},
    {"chunk", {store_prepare, run_boxes, NULL}},
    {"slice", {store_prepare, run_boxes, NULL}},
    {"box", {store_prepare, run_boxes, NULL}},
    {"rows", {store_prepare, run_rows, NULL}},
    {"open", {store_prepare, run_open, NULL}},
    {"open-cold", {store_prepare, run_open, NULL}},
    {"commit", {grid_prepare, run_commit, NULL}},
    {"commits", {grid_prepare, run_commits, NULL}},
    {"log", {grid_prepare, run_log, NULL}},
    {"branch", {grid_prepare, run_branch, NULL}},
    {"switch", {grid_prepare, run_switch, NULL}},
    {"diff", {grid_prepare, run_diff, NULL}},
    {"merge", {grid_prepare, run_merge, NULL}},
    {"gc", {care_prepare, run_gc, NULL}},
    {"fsck", {care_prepare, run_fsck, NULL}},
    {NULL, {NULL, NULL, NULL}},
};

static const worker_row flat_rows[] = {
    {"write", {flat_prepare, flat_run_write, NULL}},
    {"read", {flat_prepare, flat_run_read, NULL}},
    {"read-cold", {flat_prepare, flat_run_read, NULL}},
    {"import", {flat_prepare, flat_run_import, NULL}},
    {"export", {flat_prepare, flat_run_export, NULL}},
    {NULL, {NULL, NULL, NULL}},
};

/* Frees what another load left. */
static void worker_unload(worker *w)
{
    worker_close(w);
    if (w->file.chunks != NULL)
        flat_free(&w->file);
    w->file = (flat_file){.codec = FLAT_NONE};
    free(w->ordered);
    free(w->src);
    w->ordered = w->src = NULL;
    *w->name = '\0';
    brc_pool_free(w->o.pool);
}

static void worker_load(worker *w, const brc_json *q)
{
    static const char *const flats[] = {"none", "zstd", "blosc", "lz4"};
    const char *path = asked_text(q, "data");
    brc_error err = BRC_ERROR_INIT;
    worker_unload(w);
    w->o.threads = (unsigned)asked_number(q, "threads");
    must(brc_pool_new(&w->o.pool, w->o.threads, &err), &err, "starting threads");
    snprintf(w->folder, sizeof(w->folder), "%s", asked_text(q, "folder"));
    w->o.dir = w->folder;
    w->ndim = asked_list(q, "shape", w->shape);
    asked_list(q, "chunks", w->chunk);
    w->sharded = asked_list(q, "shards", w->shard) > 0;
    w->item = asked_number(q, "item");
    w->flat = brc_json_choice(brc_json_member(q, "flat"), flats, 4);
    w->readback = brc_json_is(brc_json_member(q, "readback"), "none") ? BRC_READBACK_NONE
                                                                       : BRC_READBACK_ALL;
    snprintf(w->dtype, sizeof(w->dtype), "%s", asked_text(q, "dtype"));
    snprintf(w->codecs, sizeof(w->codecs), "%s", asked_text(q, "codecs"));
    if (*path != '\0') {
        w->src = must_alloc(worker_bytes(w));
        load_source(w, path);
    }
    w->base = status_bytes("VmRSS:");
}

static worker_fn find_step(const worker *w, const brc_json *q, int step)
{
    const worker_row *row = w->flat >= 0 ? flat_rows : worker_rows;
    while (row->row != NULL && !brc_json_is(brc_json_member(q, "row"), row->row))
        row++;
    must_be(row->row != NULL, "a row that this side knows");
    return row->steps[step];
}

static void worker_answer(worker *w, const brc_json *q)
{
    static const char *const words[] = {"prepare", "run", "check", "load", "forget"};
    int step = brc_json_choice(brc_json_member(q, "do"), words, 5);
    must_be(step >= 0, "a request");
    if (step == 3)
        worker_load(w, q);
    else if (step == 4)
        worker_close(w);
    else {
        worker_fn fn = find_step(w, q, step);
        if (fn != NULL)
            fn(w, q);
    }
    if (step != 1)
        printf("{}\n");
    else
        printf("{\"wall\":%.9f,\"synced\":%.9f,\"cpu\":%.9f,\"peak\":%.0f}\n",
               w->spent.wall, w->spent.wall, w->spent.cpu, status_bytes("VmHWM:") - w->base);
    fflush(stdout);
}

int worker_main(void)
{
    worker *w = must_alloc(sizeof(*w));
    char *line = NULL;
    size_t room = 0;
    ssize_t len;
    brc_error err = BRC_ERROR_INIT;
    *w = (worker){.flat = -1};
    while ((len = getline(&line, &room, stdin)) > 0) {
        brc_json *q;
        must(brc_json_parse(&q, line, (size_t)len, 0, &err), &err, "a request");
        worker_answer(w, q);
        brc_json_free(q);
    }
    worker_close(w);
    free(line);
    return 0;
}

static double seconds_of(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

int child_main(char **argv)
{
    struct rusage used;
    int status;
    const double start = now_s();
    pid_t child = fork();
    must_be(child >= 0, "a process");
    if (child == 0) {
        execvp(argv[1], argv + 1);
        _exit(127);
    }
    must_be(wait4(child, &status, 0, &used) == child, "waiting for a process");
    const double wall = now_s() - start;
    FILE *f = fopen(argv[0], "w");
    must_be(f != NULL, "opening a file");
    fprintf(f, "%.9f %.6f %ld\n", wall, seconds_of(used.ru_utime) + seconds_of(used.ru_stime),
            used.ru_maxrss);
    fclose(f);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}
