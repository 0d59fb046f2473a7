/* Elements of chunks and shards beyond the array's edge: a smaller shape clears them, whether it
 * is set by key or by brc_array_resize(); elements that a client sets there stay. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/buf.h"
#include "../../src/breccia.h"
#include "../kit/ios.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(key_edges);

#define BYTES "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define ZSTD "{\"name\":\"zstd\",\"configuration\":{\"level\":3}}"
#define SHARD(edges, codecs, where) \
    "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[" edges \
    "],\"codecs\":[" codecs "],\"index_codecs\":[" BYTES \
    ",{\"name\":\"crc32c\"}],\"index_location\":\"" where "\"}}"

static void set_shape(scenario *t, const char *shape, const char *shard, const char *codecs)
{
    char document[2048];
    snprintf(document, sizeof(document),
             "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[%s],\"data_type\":\"uint16\","
             "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[%s]}},"
             "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":0,\"codecs\":[%s]}",
             shape, shard, codecs);
    OK(t, brc_key_set(t->session, "a/zarr.json", document, strlen(document), 0, &t->err));
}

static void line_is(scenario *t, const uint16_t *want, uint64_t n)
{
    uint16_t got[64];
    brc_array *a = scenario_array_at(t, t->session, "/a");
    OK(t, brc_array_read(a, NULL, got, n * sizeof(*got), &t->err));
    ck_assert_mem_eq(got, want, n * sizeof(*got));
    brc_array_free(a);
}

static void resize_line(scenario *t, uint64_t n)
{
    scenario_resize(t, t->session, "/a", n);
}

static const uint16_t line[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
#define LINE_SHARD "12", SHARD("4", BYTES "," ZSTD, "end")

static void line_start(scenario *t)
{
    scenario_start(t);
    set_shape(t, "10", LINE_SHARD);
    scenario_write(t, t->session, "/a", line, sizeof(line));
}

static void line_of(scenario *t, brc_session *s, const char *path, const uint16_t *want, uint64_t n)
{
    uint16_t got[64];
    brc_array *a = scenario_array_at(t, s, path);
    ck_assert_uint_eq(brc_array_describe(a)->shape[0], n);
    OK(t, brc_array_read(a, NULL, got, n * sizeof(*got), &t->err));
    ck_assert_mem_eq(got, want, n * sizeof(*got));
    brc_array_free(a);
}

/* Arrays, a copy of every key in a file of its own, and an export that is imported. */
static void all_readers_see(scenario *t, const uint16_t *want, uint64_t n)
{
    static int exports;
    brc_buf value = BRC_BUF_INIT;
    char dest[160], source[200];
    scenario copy;
    brc_iter *it;
    brc_session *s;
    const char *key;
    line_of(t, t->session, "/a", want, n);
    scenario_start(&copy);
    OK(t, brc_keys(&it, t->session, "", 0, &t->err));
    while (brc_next(it, &key, &t->err) > 0) {
        value.len = 0;
        OK(t, brc_key_get(&value, t->session, key, NULL, NULL, &t->err));
        OK(&copy, brc_key_set(copy.session, key, value.data, value.len, 0, &copy.err));
    }
    brc_iter_free(it);
    line_of(&copy, copy.session, "/a", want, n);
    scenario_commit(&copy, "every key is a node or a chunk");
    scenario_stop(&copy);
    snprintf(dest, sizeof(dest), "%s/%d.zarr", t->dir, exports++);
    snprintf(source, sizeof(source), "%s/a", dest);
    OK(t, brc_export(t->session, "/", dest, NULL, &t->err));
    OK(t, brc_session_open(&s, t->repo, NULL, BRC_SESSION_PRIVATE, &t->err));
    OK(t, brc_import(s, source, "/b", NULL, &t->err));
    line_of(t, s, "/b", want, n);
    OK(t, brc_session_discard(s, &t->err));
    brc_session_free(s);
    brc_buf_dispose(&value);
}

static const struct {
    const char *chunk, *codecs;
    int per; /* elements of a key */
} forms[] = {{LINE_SHARD, 12}, {"4", BYTES "," ZSTD, 4}, {"4", BYTES, 4}};
enum { FORMS = 3, CUTS = 3, WAYS = 3, COMMITS = 8 };

/* Makes the array smaller in one of three ways: as zarr-python does, which deletes the outer keys
 * first; by its document alone; by its document in a transaction. */
static void shrink_by_key(scenario *t, int form, int way, uint64_t from, uint64_t to)
{
    char shape[24], key[24];
    const uint64_t per = (uint64_t)forms[form].per;
    snprintf(shape, sizeof(shape), "%d", (int)to);
    for (uint64_t i = (to + per - 1) / per; way == 0 && i * per < from; i++) {
        snprintf(key, sizeof(key), "a/c/%d", (int)i);
        OK(t, brc_key_delete(t->session, key, 0, &t->err));
    }
    if (way == 2)
        OK(t, brc_begin(t->repo, &t->err));
    set_shape(t, shape, forms[form].chunk, forms[form].codecs);
    if (way == 2)
        OK(t, brc_end(t->repo, BRC_END_KEEP, &t->err));
}

LOOP(what_a_smaller_shape_by_key_cuts_never_comes_back, 0, FORMS * WAYS * COMMITS)
{
    static const uint64_t cuts[CUTS] = {3, 6, 0};
    const int form = _i % FORMS, way = _i / FORMS % WAYS, commits = _i / FORMS / WAYS;
    for (int cut = 0; cut < CUTS; cut++) {
        uint16_t want[12] = {0};
        scenario t;
        memcpy(want, line, cuts[cut] * sizeof(*want));
        scenario_start(&t);
        set_shape(&t, "10", forms[form].chunk, forms[form].codecs);
        scenario_write(&t, t.session, "/a", line, sizeof(line));
        if (commits & 1)
            scenario_commit(&t, "ten");
        shrink_by_key(&t, form, way, 10, cuts[cut]);
        all_readers_see(&t, want, cuts[cut]);
        if (commits & 2)
            scenario_commit(&t, "cut");
        set_shape(&t, "12", forms[form].chunk, forms[form].codecs);
        all_readers_see(&t, want, 12);
        if (commits & 4)
            scenario_commit(&t, "grown");
        scenario_reopen(&t);
        all_readers_see(&t, want, 12);
        scenario_whole(&t);
        scenario_stop(&t);
    }
}

static void set_line(scenario *t, const char *key, const uint16_t *values)
{
    OK(t, brc_key_set(t->session, key, values, 4 * sizeof(*values), 0, &t->err));
}

static void line_key_is(scenario *t, const char *key, const uint16_t *values)
{
    brc_buf out = BRC_BUF_INIT;
    ck_assert_int_eq(scenario_has_key(t, t->session, key), values != NULL);
    if (values != NULL) {
        OK(t, brc_key_get(&out, t->session, key, NULL, NULL, &t->err));
        ck_assert_uint_eq(out.len, 4 * sizeof(*values));
        ck_assert_mem_eq(out.data, values, out.len);
    }
    brc_buf_dispose(&out);
}

/* A chunk may come before the document that has room for it; until then no commit can have it. */
LOOP(a_larger_shape_by_key_takes_what_was_set_for_it, 0, 2)
{
    static const uint16_t later[12] = {1, 2, 3, 4, 5, 6, 7, 8, 19, 20}, cut[4] = {5};
    scenario t;
    scenario_start(&t);
    set_shape(&t, "10", "4", BYTES);
    set_line(&t, "a/c/0", line);
    set_line(&t, "a/c/1", line + 4);
    set_line(&t, "a/c/2", later + 8);
    if (_i)
        scenario_commit(&t, "ten");
    set_shape(&t, "5", "4", BYTES);
    line_key_is(&t, "a/c/1", cut);
    line_key_is(&t, "a/c/2", NULL);
    scenario_commit(&t, "five");
    set_line(&t, "a/c/1", line + 4);
    set_line(&t, "a/c/2", later + 8);
    FAILS(&t, BRC_ECONFLICT, scenario_commit_of(&t, t.session, "early", NULL));
    ck_assert_ptr_nonnull(strstr(t.err.message, "'a/c/2'"));
    set_shape(&t, "10", "4", BYTES);
    line_is(&t, later, 10);
    scenario_commit(&t, "ten");
    scenario_whole(&t);
    scenario_stop(&t);
}

/* Its chunks cannot be decoded here: those outside go, the others stay as they are. */
TEST(a_smaller_shape_of_an_unknown_codec_drops_whole_chunks)
{
    const char *codecs = BYTES ",{\"name\":\"nobody.has.it\"}";
    scenario t;
    scenario_start(&t);
    set_shape(&t, "10", "4", codecs);
    set_line(&t, "a/c/1", line + 4);
    set_line(&t, "a/c/2", line);
    set_shape(&t, "5", "4", codecs);
    line_key_is(&t, "a/c/1", line + 4);
    line_key_is(&t, "a/c/2", NULL);
    scenario_commit(&t, "five");
    set_shape(&t, "10", "4", codecs);
    line_key_is(&t, "a/c/2", NULL);
    scenario_whole(&t);
    scenario_stop(&t);
}

LOOP(what_was_cut_by_key_is_gone_after_a_resize, 0, 8)
{
    static const uint16_t three[12] = {1, 2, 3}, two[12] = {1, 2};
    scenario t;
    line_start(&t);
    if (_i & 1)
        scenario_commit(&t, "ten");
    set_shape(&t, "3", LINE_SHARD);
    if (_i & 2)
        scenario_commit(&t, "three");
    if (_i & 4)
        resize_line(&t, 2);
    resize_line(&t, 12);
    line_is(&t, _i & 4 ? two : three, 12);
    set_shape(&t, "12", LINE_SHARD);
    line_is(&t, _i & 4 ? two : three, 12);
    scenario_whole(&t);
    scenario_stop(&t);
}

#define PLAIN "12", "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[4]," \
              "\"codecs\":[" BYTES "],\"index_codecs\":[" BYTES "]}}"
enum { PLAIN_BYTES = 24 + 3 * 16 };

/* Sets a shard of the elements 100 to 111 in an array of three elements. */
static void set_whole_shard(scenario *t, uint8_t shard[PLAIN_BYTES], uint16_t values[12])
{
    for (int i = 0; i < 12; i++)
        values[i] = (uint16_t)(100 + i);
    memcpy(shard, values, 12 * sizeof(*values));
    for (int i = 0; i < 3; i++) {
        brc_put_u64le(shard + 24 + 16 * i, (uint64_t)i * 8);
        brc_put_u64le(shard + 32 + 16 * i, 8);
    }
    set_shape(t, "3", PLAIN);
    OK(t, brc_key_set(t->session, "a/c/0", shard, PLAIN_BYTES, 0, &t->err));
}

/* Chunks that the shard holds beyond the array's end are dropped too, not only the elements of the
 * chunk that the end cuts. */
LOOP(a_resize_clears_what_a_shard_holds_beyond_the_edge, 0, 2)
{
    uint8_t shard[PLAIN_BYTES];
    uint16_t values[12];
    scenario t;
    scenario_start(&t);
    set_whole_shard(&t, shard, values);
    if (_i)
        scenario_commit(&t, "three");
    resize_line(&t, 12);
    memset(values + 3, 0, 9 * sizeof(*values));
    line_is(&t, values, 12);
    scenario_whole(&t);
    scenario_stop(&t);
}

/* A shard that is set has inner chunks that the array does not meet. */
TEST(a_shard_that_is_set_keeps_all_of_it)
{
    uint8_t shard[PLAIN_BYTES];
    uint16_t values[12];
    brc_buf is = BRC_BUF_INIT;
    scenario t;
    scenario_start(&t);
    set_whole_shard(&t, shard, values);
    OK(&t, brc_key_get(&is, t.session, "a/c/0", NULL, NULL, &t.err));
    ck_assert_uint_eq(is.len, sizeof(shard));
    ck_assert_mem_eq(is.data, shard, sizeof(shard));
    scenario_commit(&t, "three");
    set_shape(&t, "12", PLAIN);
    line_is(&t, values, 12);
    set_shape(&t, "3", PLAIN);
    OK(&t, brc_key_delete(t.session, "a/c/0", 0, &t.err)); /* with what is beyond */
    set_shape(&t, "12", PLAIN);
    memset(values, 0, sizeof(values));
    line_is(&t, values, 12);
    brc_buf_dispose(&is);
    scenario_whole(&t);
    scenario_stop(&t);
}

/* ---- against a model: all that a directory of two by two shards holds ---- */

enum { EDGE = 24, SHARD_EDGE = 12, STEPS = 60 };

static const struct {
    const char *codecs;
    uint64_t chunk[2];
} pipelines[] = {
    {SHARD("4,3", BYTES "," ZSTD, "end"), {4, 3}},
    {SHARD("1,6", BYTES, "start"), {1, 6}},
    {SHARD("6,6", SHARD("2,3", BYTES "," ZSTD, "start"), "end"), {2, 3}},
};

typedef struct edge_model {
    scenario t;
    const char *codecs;
    const uint64_t *chunk;
    uint64_t seed, shape[2];
    uint16_t held[EDGE][EDGE];
    int is_open[EDGE][EDGE]; /* nobody says whether it is still held, or cleared */
} edge_model;

static void model_by_key(edge_model *m)
{
    char shape[32];
    uint64_t was[2];
    memcpy(was, m->shape, sizeof(was));
    for (int i = 0; i < 2; i++) /* the shards stay: only what is in them is cut */
        m->shape[i] = SHARD_EDGE + 1 + scenario_below(&m->seed, EDGE - SHARD_EDGE);
    for (uint64_t i = 0; i < was[0]; i++)
        for (uint64_t j = 0; j < was[1]; j++)
            if (i >= m->shape[0] || j >= m->shape[1])
                m->held[i][j] = 0;
    snprintf(shape, sizeof(shape), "%d,%d", (int)m->shape[0], (int)m->shape[1]);
    set_shape(&m->t, shape, "12,12", m->codecs);
}

static void model_by_resize(edge_model *m, brc_array *a)
{
    uint64_t shape[2];
    for (int i = 0; i < 2; i++) {
        shape[i] = SHARD_EDGE + 1 + scenario_below(&m->seed, EDGE - SHARD_EDGE);
        if (scenario_below(&m->seed, 3) == 0)
            shape[i] = m->shape[i];
    }
    OK(&m->t, brc_array_resize(a, shape, &m->t.err));
    for (uint64_t i = 0; i < EDGE; i++)
        for (uint64_t j = 0; j < EDGE; j++) {
            const int was = i < m->shape[0] && j < m->shape[1];
            const int is = i < shape[0] && j < shape[1];
            if (is && !was) {
                m->held[i][j] = 0;
                m->is_open[i][j] = 0;
            }
            m->is_open[i][j] |= !is;
        }
    memcpy(m->shape, shape, sizeof(shape));
}

/* The elements beyond the edge of a chunk that is written may be cleared. */
static void model_opens(edge_model *m, uint64_t i, uint64_t j)
{
    const uint64_t corner[2] = {i - i % m->chunk[0], j - j % m->chunk[1]};
    for (uint64_t k = corner[0]; k < corner[0] + m->chunk[0]; k++)
        for (uint64_t l = corner[1]; l < corner[1] + m->chunk[1]; l++)
            m->is_open[k][l] |= k >= m->shape[0] || l >= m->shape[1];
}

static void model_by_write(edge_model *m, brc_array *a)
{
    uint16_t data[EDGE * EDGE];
    brc_sel sel = BRC_SEL_INIT;
    sel_all(&sel, a);
    for (int i = 0; i < 2; i++) {
        sel.start[i] = scenario_below(&m->seed, m->shape[i]);
        sel.count[i] = 1 + scenario_below(&m->seed, m->shape[i] - sel.start[i]);
    }
    size_t n = 0;
    for (uint64_t i = 0; i < sel.count[0]; i++)
        for (uint64_t j = 0; j < sel.count[1]; j++) {
            data[n] = (uint16_t)scenario_below(&m->seed, 3);
            m->held[sel.start[0] + i][sel.start[1] + j] = data[n++];
            model_opens(m, sel.start[0] + i, sel.start[1] + j);
        }
    OK(&m->t, brc_array_write(a, &sel, data, n * sizeof(*data), &m->t.err));
}

static void edge_model_is(edge_model *m, brc_array *a)
{
    uint16_t got[EDGE * EDGE];
    OK(&m->t, brc_array_read(a, NULL, got, m->shape[0] * m->shape[1] * sizeof(*got), &m->t.err));
    for (uint64_t i = 0; i < m->shape[0]; i++)
        for (uint64_t j = 0; j < m->shape[1]; j++) {
            if (m->is_open[i][j] && got[i * m->shape[1] + j] == 0)
                m->held[i][j] = 0;
            m->is_open[i][j] = 0;
            ck_assert_msg(got[i * m->shape[1] + j] == m->held[i][j], "[%d, %d]: %d, not %d", (int)i,
                          (int)j, got[i * m->shape[1] + j], m->held[i][j]);
        }
}

/* Written inside, cut by key and by resizing, committed. */
LOOP(shapes_against_a_model, 0, 9)
{
    edge_model m = {.seed = 40 + (uint64_t)_i, .codecs = pipelines[_i % 3].codecs,
                    .chunk = pipelines[_i % 3].chunk};
    scenario_start(&m.t);
    model_by_key(&m);
    for (int step = 0; step < STEPS; step++) {
        brc_array *a = scenario_array_at(&m.t, m.t.session, "/a");
        switch (scenario_below(&m.seed, 6)) {
        case 0:
            model_by_resize(&m, a);
            break;
        case 1:
        case 2:
            model_by_key(&m);
            break;
        case 3:
            if (!scenario_clean(&m.t))
                scenario_commit(&m.t, "step");
            break;
        default:
            model_by_write(&m, a);
        }
        edge_model_is(&m, a);
        brc_array_free(a);
    }
    scenario_whole(&m.t);
    scenario_stop(&m.t);
}
