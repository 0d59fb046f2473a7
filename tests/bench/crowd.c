/*
 * One file, many at once: a bulk writer, four readers at 50 reads a second each, four committers at
 * 10 commits a second each, in both journal modes. What is measured of a step runs from the moment
 * at which it was due: whoever is kept waiting is late for the next one too, and that counts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

enum { READERS = 4, COMMITTERS = 4, ACTORS = READERS + COMMITTERS, READS_A_SECOND = 50,
       COMMITS_A_SECOND = 10, STEPS_MOST = 100000, CHUNKS = 64, CHUNK_LEN = 16384 };

/* Memory that all processes share. */
typedef struct crowd {
    atomic_int is_over;
    double bulk_s;
    size_t n[ACTORS];
    double took[ACTORS][STEPS_MOST];
} crowd;

typedef struct crowd_plan {
    const bench_opts *o;
    char file[600], source[600];
    int wal;
    size_t bytes;   /* of the source */
    int is_small;   /* it is cut into chunks of 1 KiB, not of 1 MiB */
    crowd *shared;
} crowd_plan;

static void sleep_until(double when)
{
    double left = when - now_s();
    if (left > 0)
        nanosleep(&(struct timespec){(time_t)left, (long)((left - (double)(time_t)left) * 1e9)},
                  NULL);
}

static breccia *open_file(const crowd_plan *p, brc_pool *pool)
{
    breccia *handle;
    brc_error err = BRC_ERROR_INIT;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.pool = pool;
    must(brc_open(&handle, p->file, &opts, &err), &err, "open");
    return handle;
}

/* ---- the actors ---------------------------------------------------------------------- */

typedef void (*step_fn)(void *ctx, size_t i);

/* Steps at a steady rate until it is over. */
static void act(const crowd_plan *p, int who, double rate, step_fn step, void *ctx)
{
    double start = now_s() + 0.01 * who;
    size_t n = 0;
    while (!atomic_load(&p->shared->is_over) && n < STEPS_MOST) {
        double due = start + (double)n / rate;
        sleep_until(due);
        step(ctx, n);
        p->shared->took[who][n++] = now_s() - due;
    }
    p->shared->n[who] = n;
}

typedef struct reading {
    brc_array *array;
    uint64_t random;
    float *into;
} reading;

static void read_step(void *ctx, size_t i)
{
    reading *r = ctx;
    brc_error err = BRC_ERROR_INIT;
    brc_sel sel = BRC_SEL_INIT;
    (void)i;
    sel.start[0] = splitmix64(&r->random) % CHUNKS * CHUNK_LEN;
    sel.count[0] = CHUNK_LEN;
    sel.step[0] = 1;
    sel.ndim = 1;
    must(brc_array_read(r->array, &sel, r->into, CHUNK_LEN * sizeof(float), &err), &err, "read");
}

static void act_reader(const crowd_plan *p, int who)
{
    brc_session *s;
    brc_error err = BRC_ERROR_INIT;
    reading r = {.random = (uint64_t)who, .into = must_alloc(CHUNK_LEN * sizeof(float))};
    breccia *handle = open_file(p, NULL);
    must(brc_session_open(&s, handle, "main", BRC_SESSION_VIEW, &err), &err, "session");
    must(brc_array_open(&r.array, s, "/a", &err), &err, "array");
    act(p, who, READS_A_SECOND, read_step, &r);
    brc_array_free(r.array);
    brc_session_free(s);
    brc_free(handle);
    free(r.into);
}

typedef struct committing {
    breccia *handle;
    brc_session *session;
} committing;

static void commit_step(void *ctx, size_t i)
{
    committing *c = ctx;
    char value[24];
    brc_oid id;
    brc_error err = BRC_ERROR_INIT;
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    opts.message = "next";
    snprintf(value, sizeof(value), "%zu", i + 1);
    must(brc_begin(c->handle, &err), &err, "begin");
    must(brc_attrs_set(c->session, "/", "n", value, &err), &err, "attrs");
    must(brc_session_commit(&id, c->session, &opts, &err), &err, "commit");
    must(brc_end(c->handle, BRC_END_KEEP, &err), &err, "end");
}

static void act_committer(const crowd_plan *p, int who)
{
    char branch[16];
    brc_error err = BRC_ERROR_INIT;
    committing c = {.handle = open_file(p, NULL)};
    snprintf(branch, sizeof(branch), "branch%d", who - READERS);
    must(brc_session_open(&c.session, c.handle, branch, BRC_SESSION_WRITE, &err), &err, "session");
    act(p, who, COMMITS_A_SECOND, commit_step, &c);
    brc_session_free(c.session);
    brc_free(c.handle);
}

/* Imports the source, all at once or as the library does it. */
static void act_bulk(const crowd_plan *p, int one_transaction)
{
    brc_session *s;
    brc_pool *pool;
    brc_error err = BRC_ERROR_INIT;
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    const uint64_t small[3] = {1, 16, 16}, large[3] = {1, 512, 512};
    opts.chunk = p->is_small ? small : large;
    opts.nchunk = 3;
    must(brc_pool_new(&pool, p->o->threads, &err), &err, "threads");
    breccia *handle = open_file(p, pool);
    must(brc_session_open(&s, handle, "bulk", BRC_SESSION_WRITE, &err), &err, "session");
    double start = now_s();
    if (one_transaction)
        must(brc_begin(handle, &err), &err, "begin");
    must(brc_import(s, p->source, "/bulk", &opts, &err), &err, "import");
    if (one_transaction)
        must(brc_end(handle, BRC_END_KEEP, &err), &err, "end");
    p->shared->bulk_s = now_s() - start;
    brc_session_free(s);
    brc_free(handle);
    brc_pool_free(pool);
}

/* ---- the stage ------------------------------------------------------------------------- */

static void make_file(const crowd_plan *p)
{
    uint64_t shape = CHUNKS * CHUNK_LEN, chunk = CHUNK_LEN, state = 1;
    brc_array *a;
    breccia *handle;
    brc_session *s;
    brc_oid id;
    char name[16];
    brc_error err = BRC_ERROR_INIT;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    brc_commit_opts commit = BRC_COMMIT_OPTS_INIT;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    uint32_t *data = must_alloc(shape * 4);
    for (uint64_t i = 0; i < shape; i++)
        data[i] = (uint32_t)splitmix64(&state) >> 9 | 0x3f800000; /* in [1, 2) */
    opts.flags = BRC_OPEN_CREATE;
    commit.message = "first";
    spec.ndim = 1;
    spec.shape = &shape;
    spec.chunk = &chunk;
    spec.dtype = "float32";
    must(brc_open(&handle, p->file, &opts, &err), &err, "init");
    must(brc_session_open(&s, handle, NULL, BRC_SESSION_WRITE, &err), &err, "session");
    must(brc_array_create(&a, s, "/a", &spec, &err), &err, "create");
    must(brc_array_write(a, NULL, data, shape * 4, &err), &err, "write");
    must(brc_session_commit(&id, s, &commit, &err), &err, "commit");
    for (int i = 0; i <= COMMITTERS; i++) {
        snprintf(name, sizeof(name), i < COMMITTERS ? "branch%d" : "bulk", i);
        must(brc_ref_create(handle, name, NULL, NULL, 0, &err), &err, "branch");
    }
    must(brc_config_set(handle, "journal", p->wal ? "wal" : "rollback", &err), &err, "config");
    brc_array_free(a);
    brc_session_free(s);
    brc_free(handle);
    free(data);
}

/* A .npy file of noise in the low bits. */
static void make_source(const crowd_plan *p)
{
    uint64_t state = 7;
    char header[128];
    uint32_t *row = must_alloc(MIB);
    FILE *out = fopen(p->source, "wb");
    must_be(out != NULL, "creating the source");
    memset(header, ' ', sizeof(header));
    memcpy(header, "\223NUMPY\001\000\166\000", 10);
    int n = snprintf(header + 10, 117, "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, "
                                       "512, 512), }", p->bytes / MIB);
    header[10 + n] = ' ';
    header[127] = '\n';
    must_be(fwrite(header, sizeof(header), 1, out) == 1, "writing the source");
    for (size_t i = 0; i < p->bytes / MIB; i++) {
        for (size_t j = 0; j < MIB / 4; j++)
            row[j] = (uint32_t)splitmix64(&state) >> 9 | 0x3f800000;
        must_be(fwrite(row, MIB, 1, out) == 1, "writing the source");
    }
    must_be(fclose(out) == 0, "writing the source");
    free(row);
}

static pid_t start_actor(const crowd_plan *p, int who)
{
    fflush(stdout);
    pid_t child = fork();
    must_be(child >= 0, "a process");
    if (child > 0)
        return child;
    if (who < READERS)
        act_reader(p, who);
    else
        act_committer(p, who);
    _exit(0);
}

static pid_t start_bulk(const crowd_plan *p, int one_transaction)
{
    fflush(stdout);
    pid_t child = fork();
    must_be(child >= 0, "a process");
    if (child > 0)
        return child;
    act_bulk(p, one_transaction);
    _exit(0);
}

static void wait_for(pid_t child)
{
    int status;
    must_be(waitpid(child, &status, 0) == child && status == 0, "a process without a failure");
}

/* Where the others are. On a file beside it they take the same processor and the same disk, but
 * none of the locks: the rest is what sharing a file costs. */
enum { NOBODY, BESIDE, HERE };

/* Seconds that the import took. */
static double run_bulk(const crowd_plan *p, int one_transaction, int where)
{
    pid_t others[ACTORS];
    crowd_plan theirs = *p;
    make_file(p);
    if (where == BESIDE) {
        snprintf(theirs.file, sizeof(theirs.file), "%s/beside.brc", p->o->dir);
        make_file(&theirs);
    }
    atomic_store(&p->shared->is_over, 0);
    for (int i = 0; i < ACTORS && where != NOBODY; i++)
        others[i] = start_actor(&theirs, i);
    wait_for(start_bulk(p, one_transaction));
    atomic_store(&p->shared->is_over, 1);
    for (int i = 0; i < ACTORS && where != NOBODY; i++)
        wait_for(others[i]);
    remove_file(p->file);
    if (where == BESIDE)
        remove_file(theirs.file);
    return p->shared->bulk_s;
}

/* ---- the figures -------------------------------------------------------------------------- */

static size_t gather(const crowd_plan *p, int from, int to, double *into)
{
    size_t n = 0;
    for (int i = from; i < to; i++) {
        memcpy(into + n, p->shared->took[i], p->shared->n[i] * sizeof(double));
        n += p->shared->n[i];
    }
    must_be(n > 0, "steps of everybody");
    return n;
}

/* "ext4 on /dev/vda1", as the system says. */
static void name_disk(const char *dir, char out[200])
{
    struct stat st;
    char line[1000], type[60], source[100];
    unsigned high, low;
    FILE *in = fopen("/proc/self/mountinfo", "r");
    snprintf(out, 200, "%s", dir);
    while (in != NULL && stat(dir, &st) == 0 && fgets(line, sizeof(line), in) != NULL) {
        const char *dash = strstr(line, " - ");
        if (sscanf(line, "%*d %*d %u:%u", &high, &low) == 2 && dash != NULL &&
            major(st.st_dev) == high && minor(st.st_dev) == low &&
            sscanf(dash, " - %59s %99s", type, source) == 2)
            snprintf(out, 200, "%s on %s", type, source);
    }
    if (in != NULL)
        fclose(in);
}

typedef struct crowd_times {
    double one_transaction, alone, beside, here;
} crowd_times;

static void report_mode(const crowd_plan *p, const crowd_times *s)
{
    double *all = must_alloc((size_t)ACTORS * STEPS_MOST * sizeof(double)), worst;
    double mb = (double)p->bytes / 1e6;
    char context[120];
    size_t n = gather(p, 0, READERS, all);
    snprintf(context, sizeof(context), "%zu reads, p50 %.1f ms", n, 1000 * percentile(all, n, 50));
    report_value("readers' p99", 1000 * percentile(all, n, 99), "ms", AT_MOST, 100, context);
    worst = percentile(all, n, 100);
    report_value("readers' worst", worst, "s", AT_MOST, 1, "");
    n = gather(p, READERS, ACTORS, all);
    snprintf(context, sizeof(context), "%zu commits, p50 %.1f ms", n,
             1000 * percentile(all, n, 50));
    report_value("small commits' p99", 1000 * percentile(all, n, 99), "ms", AT_MOST, 250, context);
    if (percentile(all, n, 100) > worst)
        worst = percentile(all, n, 100);
    report_value("worst wait of all", worst, "s", AT_MOST, 2, "");
    snprintf(context, sizeof(context), "%.0f MB/s with the others, %.0f alone, %.0f in one "
                                       "transaction", mb / s->here, mb / s->alone,
             mb / s->one_transaction);
    report_value("bulk writer, of alone", s->alone / s->here, "", AT_LEAST, 0.8, context);
    snprintf(context, sizeof(context), "%.0f MB/s while the others are at a file beside it",
             mb / s->beside);
    report_value("bulk writer, of that", s->beside / s->here, "", JUST_SHOWN, 0, context);
    report_value("alone, of one transaction", s->one_transaction / s->alone, "", AT_LEAST, 0.9,
                 "");
    free(all);
}

static void run_mode(const crowd_plan *p, const char *disk)
{
    char what[400];
    crowd_times s;
    s.one_transaction = run_bulk(p, 1, NOBODY);
    s.alone = run_bulk(p, 0, NOBODY);
    s.beside = run_bulk(p, 0, BESIDE);
    s.here = run_bulk(p, 0, HERE);
    snprintf(what, sizeof(what), "journal %s, %s: a bulk writer of chunks of 1 %s, 4 readers at "
                                 "50 reads a second, 4 committers at 10",
             p->wal ? "wal" : "rollback", disk, p->is_small ? "KiB" : "MiB");
    report_head("many at once", what);
    report_mode(p, &s);
}

/* With small chunks it is a quarter of the bytes, which still takes longer. */
static void run_size(crowd_plan *p, const char *disk)
{
    const size_t all = p->o->quick ? 16 * MIB : p->o->bytes / MIB * MIB;
    p->bytes = p->is_small ? all / 4 / MIB * MIB : all;
    make_source(p);
    for (p->wal = 0; p->wal < 2; p->wal++)
        run_mode(p, disk);
    remove_file(p->source);
}

void crowd_run(const bench_opts *o)
{
    char disk[200];
    crowd_plan p = {.o = o};
    p.shared = mmap(NULL, sizeof(crowd), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must_be(p.shared != MAP_FAILED, "shared memory");
    snprintf(p.file, sizeof(p.file), "%s/crowd.brc", o->dir);
    snprintf(p.source, sizeof(p.source), "%s/crowd.npy", o->dir);
    name_disk(o->dir, disk);
    for (p.is_small = 0; p.is_small < 2; p.is_small++)
        run_size(&p, disk);
    munmap(p.shared, sizeof(crowd));
}
