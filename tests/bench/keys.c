/* The key view: one chunk by its key beside the same chunk read as an array, one set beside one
 * written, and a directory of many keys listed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "../kit/ios.h"

enum { CHUNKS = 256, CHUNK = 16384, SETS = 32, LISTED = 100000 };

typedef struct keys_run {
    repo r;
    uint32_t *data; /* of one chunk */
    char key[CHUNKS][32];
} keys_run;

static void keys_make(keys_run *run, const bench_opts *o, const char *codecs)
{
    brc_error err = BRC_ERROR_INIT;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    const uint64_t shape[1] = {(uint64_t)CHUNKS * CHUNK}, chunk[1] = {CHUNK};
    spec.ndim = 1;
    spec.shape = shape;
    spec.chunk = chunk;
    spec.dtype = "uint32";
    spec.codecs_json = codecs;
    repo_make(&run->r, o, "keys.brc", 0, &spec);
    uint32_t *all = must_alloc(sizeof(*all) * CHUNKS * CHUNK);
    for (size_t i = 0; i < (size_t)CHUNKS * CHUNK; i++)
        all[i] = (uint32_t)(i * i % 4093);
    must(brc_array_write(run->r.array, NULL, all, sizeof(*all) * CHUNKS * CHUNK, &err), &err,
         "writing");
    free(all);
    repo_commit(&run->r, "keys");
    run->data = must_alloc(sizeof(*run->data) * CHUNK);
    const char *path = brc_array_describe(run->r.array)->path + 1;
    for (int i = 0; i < CHUNKS; i++)
        snprintf(run->key[i], sizeof(run->key[i]), "%s%sc/%d", path, *path != '\0' ? "/" : "", i);
}

static void keys_end(keys_run *run)
{
    repo_close(&run->r);
    remove_file(run->r.path);
    free(run->data);
}

static took get_by_key(keys_run *run)
{
    brc_error err = BRC_ERROR_INIT;
    brc_buf out = BRC_BUF_INIT;
    const took start = start_clock();
    for (int i = 0; i < CHUNKS; i++)
        must(brc_key_get(&out, run->r.session, run->key[i * 37 % CHUNKS], NULL, NULL,
                         &err), &err, "a key");
    const took t = stop_clock(start);
    brc_buf_dispose(&out);
    return t;
}

static brc_sel chunk_sel(const keys_run *run, int i)
{
    brc_sel sel = BRC_SEL_INIT;
    sel_all(&sel, run->r.array);
    sel.start[0] = (uint64_t)(i * 37 % CHUNKS) * CHUNK;
    sel.count[0] = CHUNK;
    return sel;
}

static took get_by_array(keys_run *run)
{
    brc_error err = BRC_ERROR_INIT;
    const took start = start_clock();
    for (int i = 0; i < CHUNKS; i++) {
        const brc_sel sel = chunk_sel(run, i);
        must(brc_array_read(run->r.array, &sel, run->data, sizeof(*run->data) * CHUNK, &err), &err,
             "a chunk");
    }
    return stop_clock(start);
}

/* One transaction each; other elements every time, so that each chunk is new. */
static took change(keys_run *run, int by_key, uint32_t *number)
{
    brc_error err = BRC_ERROR_INIT;
    const took start = start_clock();
    for (int i = 0; i < SETS; i++) {
        const brc_sel sel = chunk_sel(run, i);
        for (int k = 0; k < CHUNK; k++)
            run->data[k] = (uint32_t)k % 251 + *number;
        ++*number;
        const size_t len = sizeof(*run->data) * CHUNK;
        must(by_key ? brc_key_set(run->r.session, run->key[i * 37 % CHUNKS], run->data, len, 0,
                                  &err)
                    : brc_array_write(run->r.array, &sel, run->data, len, &err),
             &err, "a change");
    }
    return stop_clock(start);
}

static void list_directory(const bench_opts *o)
{
    const uint64_t shape[1] = {LISTED}, chunk[1] = {1};
    brc_error err = BRC_ERROR_INIT;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_iter *it;
    const char *name;
    repo r;
    int rc;
    size_t n = 0;
    spec.ndim = 1;
    spec.shape = shape;
    spec.chunk = chunk;
    spec.dtype = "uint8";
    spec.codecs_json = "[{\"name\":\"bytes\"}]";
    repo_make(&r, o, "keys.brc", 0, &spec);
    const uint8_t one = 1;
    must(brc_array_fill(r.array, NULL, &one, &err), &err, "filling");
    repo_commit(&r, "listed");
    char dir[64];
    const char *path = brc_array_describe(r.array)->path + 1;
    snprintf(dir, sizeof(dir), "%s%sc", path, *path != '\0' ? "/" : "");
    const took start = start_clock();
    must(brc_keys(&it, r.session, dir, BRC_KEYS_DIR, &err), &err, "listing");
    while ((rc = brc_next(it, &name, &err)) > 0)
        n++;
    must(rc, &err, "listing");
    const took t = stop_clock(start);
    brc_iter_free(it);
    must_be(n == LISTED, "every key is listed once");
    report_value("list a directory of 100,000 keys", t.cpu * 1e9 / LISTED, "ns a key", JUST_SHOWN,
                 0, "processor time");
    repo_close(&r);
    remove_file(r.path);
}

void bench_keys(const bench_opts *o)
{
    static const struct {
        const char *name, *codecs;
    } cases[] = {{"zstd-3", CODECS_ZSTD_3}, {"no codec", CODECS_RAW}};
    report_head("Keys", "one chunk of 64 KiB by its key, beside the array's read and write of it");
    for (size_t c = 0; c < 2; c++) {
        keys_run run;
        series key = {.n = 0}, array = {.n = 0};
        char label[64];
        keys_make(&run, o, cases[c].codecs);
        for (int i = 0; i < o->pairs + 1; i++) {
            const took a = get_by_key(&run), b = get_by_array(&run);
            if (i == 0) /* warm */
                continue;
            series_add(&key, a);
            series_add(&array, b);
        }
        snprintf(label, sizeof(label), "get, %s", cases[c].name);
        report_ratio(label, &key, &array, (double)CHUNKS * CHUNK * 4 / (double)MIB, AT_LEAST, 0.9);
        if (c == 1) { /* bytes that a client has encoded are those of the elements */
            uint32_t number = 1000;
            key.n = array.n = 0;
            for (int i = 0; i < o->pairs; i++) {
                series_add(&key, change(&run, 1, &number));
                series_add(&array, change(&run, 0, &number));
            }
            report_ratio("set, one transaction each, no codec", &key, &array,
                         (double)SETS * CHUNK * 4 / (double)MIB, JUST_SHOWN, 0);
        }
        keys_end(&run);
    }
    list_directory(o);
}
