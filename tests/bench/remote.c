/* Chunks in a bucket, on a server in a process of its own whose answers take 50 ms. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kit/ios.h"
#include "../kit/s3_server.h"
#include "bench.h"

enum { DELAY_MS = 50, CHUNK = 16384, APART = 4, FILE_CHUNKS = 4000, READ_CHUNKS = 1000 };

/* The server, and what it is asked and tells through pipes. */
typedef struct remote {
    const bench_opts *o;
    pid_t pid;
    int to, from;
    char spec[300];
    size_t chunks; /* of the array */
    uint32_t *data;
} remote;

typedef struct counts {
    int requests, connections, at_once;
} counts;

/* Answers to "d" with a delay from now on, to "c" with the counts. */
static void remote_serve(int in, int out)
{
    s3_server *s = s3_server_start();
    char endpoint[64] = "", what;
    snprintf(endpoint, sizeof(endpoint), "%s", s3_server_endpoint(s));
    must_be(write(out, endpoint, sizeof(endpoint)) == sizeof(endpoint),
            "telling where a server is");
    while (read(in, &what, 1) == 1) {
        const counts c = {s3_server_requests(s), s3_server_connections(s), s3_server_at_once(s)};
        if (what == 'd')
            s3_server_delay(s, DELAY_MS);
        must_be(write(out, &c, sizeof(c)) == sizeof(c), "telling what was asked");
    }
    s3_server_stop(s);
    _exit(0);
}

static counts remote_ask(const remote *r, char what)
{
    counts c = { 0 };
    must_be(write(r->to, &what, 1) == 1 && read(r->from, &c, sizeof(c)) == sizeof(c),
            "asking the server");
    return c;
}

static void remote_start(remote *r)
{
    int to[2], from[2];
    char endpoint[64];
    must_be(pipe(to) == 0 && pipe(from) == 0, "making pipes");
    r->pid = fork();
    must_be(r->pid >= 0, "starting a process");
    if (r->pid == 0) {
        close(to[1]);
        close(from[0]);
        remote_serve(to[0], from[1]);
    }
    close(to[0]);
    close(from[1]);
    r->to = to[1];
    r->from = from[0];
    must_be(read(r->from, endpoint, sizeof(endpoint)) == sizeof(endpoint), "asking for the server");
    snprintf(r->spec, sizeof(r->spec),
             "{\"name\":\"s3\",\"configuration\":{\"endpoint\":\"%s\",\"bucket\":\"box\"}}",
             endpoint);
}

static void remote_stop(const remote *r)
{
    close(r->to);
    close(r->from);
    waitpid(r->pid, NULL, 0);
}

static int remote_give(void *ctx, const brc_server *server, brc_credentials *out, brc_error *err)
{
    (void)ctx;
    (void)server;
    (void)err;
    memcpy(out->key, "bench", 6);
    memcpy(out->secret, "secret", 7);
    return BRC_OK;
}

static void remote_open(const remote *r, repo *p, uint32_t flags)
{
    brc_error err = BRC_ERROR_INIT;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    snprintf(p->path, sizeof(p->path), "%s", in_dir(r->o, "remote.brc"));
    opts.flags = flags;
    opts.pool = r->o->pool;
    opts.credentials = remote_give;
    must(brc_open(&p->handle, p->path, &opts, &err), &err, "opening a repository");
    must(brc_session_open(&p->session, p->handle, NULL, BRC_SESSION_WRITE, &err), &err,
         "opening a session");
    if (flags == 0)
        must(brc_array_open(&p->array, p->session, "/a", &err), &err, "opening an array");
}

static void remote_write(remote *r)
{
    repo p;
    brc_error err = BRC_ERROR_INIT;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    uint64_t shape[1] = {r->chunks * CHUNK}, chunk[1] = {CHUNK}, random = 1;
    spec.ndim = 1;
    spec.shape = shape;
    spec.chunk = chunk;
    spec.dtype = "uint32";
    spec.codecs_json = CODECS_RAW;
    spec.backend_json = r->spec;
    for (size_t i = 0; i < shape[0]; i++)
        r->data[i] = (uint32_t)splitmix64(&random);
    remote_open(r, &p, BRC_OPEN_CREATE);
    must(brc_array_create(&p.array, p.session, "/a", &spec, &err), &err, "creating an array");
    must(brc_array_write(p.array, NULL, r->data, shape[0] * sizeof(*r->data), &err), &err,
         "writing");
    repo_commit(&p, "all");
    repo_close(&p);
}

/* One element of every fourth chunk, which are too far from each other to be read together. */
static void remote_scattered(const remote *r)
{
    repo p;
    brc_error err = BRC_ERROR_INIT;
    brc_sel sel = BRC_SEL_INIT;
    uint32_t got[READ_CHUNKS];
    char slice[64], context[120];
    remote_open(r, &p, 0);
    snprintf(slice, sizeof(slice), "[::%d]", APART * CHUNK);
    must(brc_sel_parse(&sel, p.array, slice, &err), &err, "a selection");
    const size_t n = r->chunks / APART;
    const counts before = remote_ask(r, 'c');
    const double start = now_s();
    must(brc_array_read(p.array, &sel, got, n * sizeof(*got), &err), &err, "reading");
    const double seconds = now_s() - start;
    const counts after = remote_ask(r, 'c');
    for (size_t i = 0; i < n; i++)
        must_be(got[i] == r->data[i * APART * CHUNK], "reading what was written");
    snprintf(context, sizeof(context), "%d requests on %d connections, %d at once",
             after.requests - before.requests, after.connections - before.connections,
             after.at_once);
    report_value("1,000 scattered chunks of 64 KiB, cold", seconds, "s", AT_MOST, 1.5, context);
    repo_close(&p);
}

static void remote_dense(const remote *r)
{
    repo p;
    brc_error err = BRC_ERROR_INIT;
    const size_t len = r->chunks * CHUNK * sizeof(uint32_t);
    uint32_t *got = must_alloc(len);
    char context[60];
    remote_open(r, &p, 0);
    const counts before = remote_ask(r, 'c');
    const double start = now_s();
    must(brc_array_read(p.array, NULL, got, len, &err), &err, "reading");
    const double seconds = now_s() - start;
    must_be(memcmp(got, r->data, len) == 0, "reading what was written");
    snprintf(context, sizeof(context), "%d requests, %.0f MB/s",
             remote_ask(r, 'c').requests - before.requests, (double)len / seconds / 1e6);
    report_value("the whole array, cold", seconds, "s", JUST_SHOWN, 0, context);
    free(got);
    repo_close(&p);
}

static void remote_commit(const remote *r)
{
    repo p;
    brc_error err = BRC_ERROR_INIT;
    brc_sel sel = BRC_SEL_INIT;
    const uint32_t value = 7;
    char context[60];
    remote_open(r, &p, 0);
    must(brc_sel_parse(&sel, p.array, "[100:101]", &err), &err, "a selection");
    const counts before = remote_ask(r, 'c');
    const double start = now_s();
    must(brc_array_write(p.array, &sel, &value, sizeof(value), &err), &err, "writing");
    repo_commit(&p, "one");
    snprintf(context, sizeof(context), "in %.0f ms", (now_s() - start) * 1e3);
    report_value("one changed chunk committed", remote_ask(r, 'c').requests - before.requests,
                 "requests", AT_MOST, 4, context);
    repo_close(&p);
}

void bench_remote(const bench_opts *o)
{
    remote r = {.o = o, .chunks = o->quick ? FILE_CHUNKS / 10 : FILE_CHUNKS};
    report_head("remote", "chunks in a bucket whose answers take 50 ms");
    remote_start(&r);
    r.data = must_alloc(r.chunks * CHUNK * sizeof(*r.data));
    remote_write(&r);
    remote_ask(&r, 'd');
    remote_scattered(&r);
    remote_dense(&r);
    remote_commit(&r);
    free(r.data);
    remote_stop(&r);
    remove_file(in_dir(o, "remote.brc"));
}
