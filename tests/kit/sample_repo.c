/* See sample_repo.h. */
#include "sample_repo.h"

#include <stdio.h>
#include <stdlib.h>

#include "../../src/breccia.h"

#define MUST(condition)                                                       \
    ((condition) ? (void)0                                                    \
                 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition), abort()))

static brc_array *base_array(brc_session *s, const char *path, const char *dtype, int ndim,
                             const uint64_t *shape, const uint64_t *chunk, const char *codecs,
                             const void *element)
{
    brc_error err = BRC_ERROR_INIT;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_array *a;
    spec.ndim = ndim;
    spec.shape = shape;
    spec.chunk = chunk;
    spec.dtype = dtype;
    spec.codecs_json = codecs;
    MUST(brc_array_create(&a, s, path, &spec, &err) == BRC_OK);
    if (element != NULL)
        MUST(brc_array_fill(a, NULL, element, &err) == BRC_OK);
    return a;
}

static void base_commit(brc_session *s, const char *message, int64_t time_us)
{
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_oid id;
    opts.message = message;
    opts.author = "A";
    opts.time_us = time_us;
    opts.meta_json = "{\"n\":1}";
    MUST(brc_session_commit(&id, s, &opts, NULL) == BRC_OK);
}

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define GZIP "[" LITTLE ",{\"name\":\"gzip\",\"configuration\":{\"level\":1}}]"
#define SHARD                                                                               \
    "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[2],\"codecs\":[" LITTLE \
    "],\"index_codecs\":[" LITTLE "]}}]"

static void first_commit(brc_session *s)
{
    const uint64_t square[2] = { 20, 20 }, half[2] = { 20, 10 }, eight = 8, three = 3;
    const float f = 1.5f;
    const int16_t i = -2;
    static const uint8_t texts[] = { 2, 0, 0, 0, 'a', 'b', 0, 0, 0, 0, 1, 0, 0, 0, 'c' };
    brc_array *a = base_array(s, "/g/h/f", "float32", 2, square, half, GZIP, &f);
    brc_array_free(a);
    a = base_array(s, "/g/shards", "int16", 1, &eight, &eight, SHARD, &i);
    brc_array_free(a);
    a = base_array(s, "/texts", "string", 1, &three, &three, NULL, NULL);
    MUST(brc_array_write(a, NULL, texts, sizeof(texts), NULL) == BRC_OK);
    brc_array_free(a);
    MUST(brc_attrs_set(s, "/g", "title", "\"a group\"", NULL) == BRC_OK);
    base_commit(s, "first", INT64_C(1700000000000000));
}

/* 140 chunks: the map of them has an interior node. */
static void second_commit(brc_session *s)
{
    const uint64_t many = 140, one = 1, none = 0;
    uint8_t bytes[140];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(1 + i % 3);
    brc_array *a = base_array(s, "/many", "uint8", 1, &many, &one, NULL, NULL);
    MUST(brc_array_write(a, NULL, bytes, sizeof(bytes), NULL) == BRC_OK);
    brc_array_free(a);
    a = base_array(s, "/scalar", "float64", 0, &none, &none, NULL, NULL);
    brc_array_free(a);
    base_commit(s, "second", INT64_C(1700000001000000));
}

/* A chunk written, one dropped, a node made, one moved, one removed, attributes. */
static void base_draft(brc_session *s)
{
    const uint64_t eight = 8, four = 4;
    const uint8_t seven = 7, zero = 0;
    brc_sel sel = { .size = sizeof(brc_sel), .ndim = 1,
                    .start = { 3 }, .count = { 1 }, .step = { 1 } };
    brc_array *a;
    MUST(brc_array_open(&a, s, "/many", NULL) == BRC_OK);
    MUST(brc_array_fill(a, &sel, &seven, NULL) == BRC_OK);
    sel.start[0] = 5;
    MUST(brc_array_fill(a, &sel, &zero, NULL) == BRC_OK);
    brc_array_free(a);
    a = base_array(s, "/new/a", "uint8", 1, &eight, &four, NULL, &seven);
    brc_array_free(a);
    MUST(brc_node_move(s, "/texts", "/moved", 0, NULL) == BRC_OK);
    MUST(brc_node_remove(s, "/scalar", NULL) == BRC_OK);
    MUST(brc_attrs_set(s, "/", "title", "\"root\"", NULL) == BRC_OK);
}

void sample_repo_make(const char *path)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    brc_error err = BRC_ERROR_INIT;
    breccia *repo;
    brc_session *s;
    opts.flags = BRC_OPEN_CREATE;
    MUST(brc_open(&repo, path, &opts, &err) == BRC_OK);
    MUST(brc_session_open(&s, repo, NULL, BRC_SESSION_WRITE, &err) == BRC_OK);
    first_commit(s);
    MUST(brc_ref_create(repo, "v1", NULL, "a tag", BRC_REF_TAG, &err) == BRC_OK);
    MUST(brc_ref_create(repo, "side", NULL, NULL, 0, &err) == BRC_OK);
    second_commit(s);
    MUST(brc_ref_create(repo, "unborn/not", NULL, NULL, 0, &err) == BRC_OK);
    base_draft(s);
    brc_session_free(s);
    brc_free(repo);
}
