/*
 * An array's backend: chosen, recorded, changed, versioned. B lines are those of the proposal that
 * codec_change has for codecs; the backends are docs/extending/dirstore.c and its like.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../kit/dirs_kit.h"
#include "../kit/plugin_kit.h"
#include "../kit/suite.h"
#include "../kit/versions.h"

TEST_SUITE(array_backend);

/* ---- creation and introspection -------------------------------- */

EACH(R1_R2_H4_B01_B02_B03_the_backend_is_recorded_in_full, families)
{
    const family *const f = &families[_i];
    char quoted[300];
    const char *const given[][2] = {
        { NULL, INLINE },
        { "inline", INLINE },
        { "{\"name\":\"inline\",\"configuration\":{}}", INLINE },
        { f->least, f->full },
        { quoted, f->full },
        { f->a_in_words, f->a },
        { f->b, f->b },
    };
    dirs d;
    dirs_start(&d);
    snprintf(quoted, sizeof(quoted), strcmp(f->least, f->name) == 0 ? "\"%s\"" : "%s", f->least);
    for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
        char path[8];
        snprintf(path, sizeof(path), "/%zu", i);
        brc_array *a = dirs_new(&d, path, given[i][0]);
        ck_assert_str_eq(brc_array_describe(a)->backend_json, given[i][1]);
        /* R2: what is reported can be given */
        OK(&d.t, brc_array_set_backend(a, brc_array_describe(a)->backend_json, &d.t.err));
        ck_assert_str_eq(brc_array_describe(a)->backend_json, given[i][1]);
        brc_array_free(a);
    }
    dirs_stop(&d);
}

/* The specification that one array reports makes another that reports the same. */
EACH(H1_a_twin_is_made_of_what_is_reported, families)
{
    const family *const f = &families[_i];
    static const char gzip[] = "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}},"
                               "{\"name\":\"gzip\",\"configuration\":{\"level\":1}}]";
    dirs d;
    brc_array *twin;
    dirs_start(&d);
    brc_array *a = dirs_new(&d, "/a", f->a);
    OK(&d.t, brc_array_set_codecs(a, gzip, 0, &d.t.err));
    const uint64_t shape = N;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    spec.ndim = 1;
    spec.shape = &shape;
    spec.dtype = "int32";
    spec.codecs_json = brc_array_describe(a)->codecs_json;
    spec.backend_json = brc_array_describe(a)->backend_json;
    OK(&d.t, brc_array_create(&twin, d.t.session, "/twin", &spec, &d.t.err));
    ck_assert_str_eq(brc_array_describe(twin)->codecs_json, gzip);
    ck_assert_str_eq(brc_array_describe(twin)->backend_json, f->a);
    brc_array_free(twin);
    brc_array_free(a);
    dirs_stop(&d);
}

EACH(H4_R1_B04_B05_B06_B07_B22_a_wrong_backend_makes_nothing, families)
{
    const family *const f = &families[_i];
    const struct {
        const char *text, *words;
        int code;
    } wrong[] = {
        { "{\"configuration\":{\"folder\":\"a\"}}", "name", BRC_EINVAL },
        { f->wrong, f->words, BRC_EINVAL },
        { "org.example.none", "inline, pack, external, s3, org.example.dir", BRC_EUNSUPPORTED },
        { "{\"name\":\"org.example.none\"}", "org.example.none", BRC_EUNSUPPORTED },
        { "5", "a backend is", BRC_EINVAL },
        { "null", "a backend is", BRC_EINVAL },
        { "[\"org.example.dir\"]", "a backend is", BRC_EINVAL },
        { "{\"name\":7}", "name", BRC_EINVAL },
        { "{\"name\":\"org.example.dir\",\"configuration\":5}", "configuration", BRC_EINVAL },
        { "{\"name\":\"org.example.dir\",\"folder\":\"a\"}", "folder", BRC_EINVAL },
        { "{\"name\":\"org.example.dir\",\"configuration\":{\"fodler\":\"a\"}}", "fodler",
          BRC_EINVAL },
        { IN("dir", "a/b"), "folder", BRC_EINVAL },
        { IN("dir", ".."), "folder", BRC_EINVAL },
        { "{\"name\":\"inline\",\"configuration\":{\"level\":1}}", "level", BRC_EINVAL },
        { "", "", BRC_EINVAL },
        { "{\"name\":", "", BRC_EINVAL },
    };
    static const uint64_t shape = N;
    dirs d;
    dirs_start(&d);
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    spec.ndim = 1;
    spec.shape = &shape;
    spec.dtype = "int32";
    brc_array *kept = dirs_new(&d, "/kept", f->a), *a;
    scenario_commit(&d.t, "kept");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        spec.backend_json = wrong[i].text;
        FAILS(&d.t, wrong[i].code, brc_array_create(&a, d.t.session, "/a", &spec, &d.t.err));
        ck_assert_ptr_null(a);
        dirs_say(&d, wrong[i].words);
        /* B22: nor does a change */
        FAILS(&d.t, wrong[i].code, brc_array_set_backend(kept, wrong[i].text, &d.t.err));
        ck_assert_str_eq(brc_array_describe(kept)->backend_json, f->a);
        ck_assert_int_eq(scenario_clean(&d.t), 1);
    }
    dirs_put_chunk(&d, kept, 0, 5);
    ck_assert_int_eq(dirs_chunks(&d, f->a), 1);
    dirs_hold(&d, f, 1);
    brc_array_free(kept);
    dirs_stop(&d);
}

EACH(B11_B12_B13_B24_each_version_has_its_own, families)
{
    const family *const f = &families[_i];
    dirs d;
    dirs_start(&d);
    brc_array *a = dirs_new(&d, "/a", f->a);
    /* B12: what is reported can only be read */
    ck_assert(_Generic(&brc_array_describe(a)->backend_json, const char *const *: 1, default: 0));
    scenario_commit(&d.t, "one");
    OK(&d.t, brc_array_set_backend(a, f->b, &d.t.err));
    ck_assert_str_eq(brc_array_describe(a)->backend_json, f->b);
    scenario_commit(&d.t, "two");
    brc_array_free(a);
    dirs_reopen(&d);
    a = dirs_array(&d, d.t.session, "/a");
    ck_assert_str_eq(brc_array_describe(a)->backend_json, f->b);
    brc_array_free(a);
    brc_session *old = scenario_session(&d.t, d.t.repo, "main~1", BRC_SESSION_AT);
    a = dirs_array(&d, old, "/a");
    ck_assert_str_eq(brc_array_describe(a)->backend_json, f->a);
    FAILS(&d.t, BRC_EREADONLY, brc_array_set_backend(a, INLINE, &d.t.err));
    ck_assert_str_eq(brc_array_describe(a)->backend_json, f->a);
    brc_array_free(a);
    brc_session_free(old);
    dirs_stop(&d);
}

/* ---- changing -------------------------------- */

enum { PLACES = 4 };

/* The file, two configurations of a family, and a backend of another kind. */
static const char *place(const family *f, int i)
{
    const char *const all[PLACES] = { INLINE, f->a, f->b, HERE };
    return all[i];
}

LOOP(B14_B15_B16_B17_changing_moves_nothing, 0, FAMILIES * PLACES * PLACES)
{
    const family *const f = &families[_i / (PLACES * PLACES)];
    const char *from = place(f, _i / PLACES % PLACES), *to = place(f, _i % PLACES);
    const int is_same = _i / PLACES % PLACES == _i % PLACES;
    const int is_outside = from == f->a || from == f->b;
    brc_buf before = BRC_BUF_INIT, after = BRC_BUF_INIT;
    dirs d;
    dirs_start(&d);
    brc_array *a = dirs_new(&d, "/a", from);
    dirs_put(&d, a, 1000);
    scenario_commit(&d.t, "values");
    dirs_rows(&d, &before);
    if (is_outside)
        dirs_hold(&d, f, CHUNKS);
    OK(&d.t, brc_array_set_backend(a, to, &d.t.err));
    ck_assert_str_eq(brc_array_describe(a)->backend_json, to);
    dirs_check(&d, a, 1000);
    ck_assert_int_eq(scenario_clean(&d.t), is_same);
    if (!is_same)
        scenario_commit(&d.t, "changed");
    brc_array_free(a);
    dirs_reopen(&d);
    a = dirs_array(&d, d.t.session, "/a");
    dirs_check(&d, a, 1000);
    dirs_rows(&d, &after);
    ck_assert_uint_eq(before.len, after.len);
    ck_assert_mem_eq(before.data, after.data, before.len);
    if (is_outside)
        dirs_hold(&d, f, CHUNKS);
    brc_buf_dispose(&before);
    brc_buf_dispose(&after);
    brc_array_free(a);
    scenario_whole(&d.t);
    dirs_stop(&d);
}

EACH(H5_B18_B19_B20_chunks_of_one_array_lie_in_many_places, families)
{
    const family *const f = &families[_i];
    dirs d;
    dirs_start(&d);
    brc_array *a = dirs_new(&d, "/a", NULL);
    for (int i = 0; i < CHUNKS; i++) {
        OK(&d.t, brc_array_set_backend(a, place(f, i % PLACES), &d.t.err));
        dirs_put_chunk(&d, a, (uint64_t)i, 70 + i);
    }
    ck_assert_int_eq(dirs_chunks(&d, "inline"), CHUNKS / PLACES);
    for (int i = 1; i < PLACES; i++)
        ck_assert_int_eq(dirs_chunks(&d, place(f, i)), CHUNKS / PLACES);
    for (int pass = 0; pass < 3; pass++) {
        for (int i = 0; i < CHUNKS; i++)
            ck_assert_int_eq(dirs_get_chunk(&d, a, (uint64_t)i), 70 + i);
        if (pass == 0)
            scenario_commit(&d.t, "many");
        brc_array_free(a);
        dirs_reopen(&d);
        a = dirs_array(&d, d.t.session, "/a");
    }
    brc_array_free(a);
    scenario_whole(&d.t);
    dirs_stop(&d);
}

EACH(B21_what_is_left_out_is_the_new_ones_default, families)
{
    const family *const f = &families[_i];
    dirs d;
    dirs_start(&d);
    brc_array *a = dirs_new(&d, "/a", f->a);
    OK(&d.t, brc_array_set_backend(a, f->least, &d.t.err));
    ck_assert_str_eq(brc_array_describe(a)->backend_json, f->full);
    OK(&d.t, brc_array_set_backend(a, NULL, &d.t.err));
    ck_assert_str_eq(brc_array_describe(a)->backend_json, INLINE);
    brc_array_free(a);
    dirs_stop(&d);
}

EACH(B26_B27_B28_a_change_is_staged_and_storage_only, families)
{
    const family *const f = &families[_i];
    dirs d;
    brc_iter *it;
    const brc_change *change;
    dirs_start(&d);
    brc_array *a = dirs_new(&d, "/a", f->a);
    dirs_put(&d, a, 0);
    scenario_commit(&d.t, "values");
    OK(&d.t, brc_array_set_backend(a, INLINE, &d.t.err));
    ck_assert_int_eq(scenario_clean(&d.t), 0);
    OK(&d.t, brc_diff(&it, d.t.repo, NULL, NULL, NULL, &d.t.err));
    ck_assert_int_eq(brc_next(it, &change, &d.t.err), 1);
    ck_assert_str_eq(change->path, "/a");
    ck_assert_uint_ne(change->flags & BRC_CHANGE_STORAGE, 0);
    ck_assert_uint_eq(change->chunks_changed + change->chunks_added + change->chunks_removed, 0);
    ck_assert_int_eq(brc_next(it, &change, &d.t.err), 0);
    brc_iter_free(it);
    /* there and back */
    OK(&d.t, brc_array_set_backend(a, f->a, &d.t.err));
    ck_assert_int_eq(scenario_clean(&d.t), 1);
    /* discarded */
    OK(&d.t, brc_array_set_backend(a, INLINE, &d.t.err));
    OK(&d.t, brc_session_discard(d.t.session, &d.t.err));
    ck_assert_int_eq(scenario_clean(&d.t), 1);
    brc_array_free(a);
    a = dirs_array(&d, d.t.session, "/a");
    ck_assert_str_eq(brc_array_describe(a)->backend_json, f->a);
    /* alone */
    OK(&d.t, brc_array_set_backend(a, INLINE, &d.t.err));
    scenario_commit(&d.t, "inline");
    ck_assert_int_eq(scenario_clean(&d.t), 1);
    dirs_check(&d, a, 0);
    brc_array_free(a);
    dirs_stop(&d);
}

EACH(B29_equal_options_are_one, families)
{
    const family *const f = &families[_i];
    dirs d;
    dirs_start(&d);
    brc_array *a = dirs_new(&d, "/a", f->a);
    scenario_commit(&d.t, "one");
    int64_t documents = scenario_ask(&d.t, "SELECT count(*) FROM object WHERE kind=2");
    brc_array *b = dirs_new(&d, "/b", f->a_in_words);
    dirs_put(&d, a, 0);
    dirs_put(&d, b, 500);
    scenario_commit(&d.t, "both");
    ck_assert_int_eq(scenario_ask(&d.t, "SELECT count(*) FROM backend"), 1);
    ck_assert_int_eq(scenario_ask(&d.t, "SELECT count(*) FROM object WHERE kind=2"), documents);
    brc_array_free(a);
    brc_array_free(b);
    dirs_stop(&d);
}

EACH(B23_a_change_takes_part_in_a_transaction, families)
{
    const family *const f = &families[_i];
    dirs d;
    dirs_start(&d);
    brc_array *a = dirs_new(&d, "/a", NULL);
    scenario_commit(&d.t, "empty");
    OK(&d.t, brc_begin(d.t.repo, &d.t.err));
    OK(&d.t, brc_array_set_backend(a, f->a, &d.t.err));
    dirs_put(&d, a, 1);
    OK(&d.t, brc_end(d.t.repo, 0, &d.t.err));
    ck_assert_int_eq(scenario_clean(&d.t), 1);
    ck_assert_int_eq(scenario_ask(&d.t, "SELECT count(*) FROM backend"), 0);
    dirs_put(&d, a, 2);
    ck_assert_int_eq(dirs_chunks(&d, "inline"), CHUNKS);
    /* the number that the undone one had is given to another */
    OK(&d.t, brc_array_set_backend(a, f->b, &d.t.err));
    dirs_put(&d, a, 300);
    OK(&d.t, brc_array_set_backend(a, f->a, &d.t.err));
    dirs_put(&d, a, 600);
    dirs_check(&d, a, 600);
    ck_assert_int_eq(dirs_chunks(&d, f->b), CHUNKS);
    ck_assert_int_eq(dirs_chunks(&d, f->a), CHUNKS);
    scenario_commit(&d.t, "values");
    scenario_whole(&d.t);
    brc_array_free(a);
    dirs_stop(&d);
}

/* ---- identity, branches -------------------------------- */

EACH(B30_the_same_content_is_stored_once_wherever_it_lies, families)
{
    const family *const f = &families[_i];
    dirs d;
    dirs_start(&d);
    brc_array *a = dirs_new(&d, "/a", f->a), *b = dirs_new(&d, "/b", NULL);
    brc_array *c = dirs_new(&d, "/c", f->b);
    dirs_put(&d, a, 7);
    int64_t objects = dirs_chunks(&d, "%");
    dirs_put(&d, b, 7);
    dirs_put(&d, c, 7);
    ck_assert_int_eq(dirs_chunks(&d, "%"), objects);
    dirs_hold(&d, f, CHUNKS);
    dirs_check(&d, b, 7);
    dirs_check(&d, c, 7);
    scenario_commit(&d.t, "three");
    scenario_whole(&d.t);
    brc_array_free(a);
    brc_array_free(b);
    brc_array_free(c);
    dirs_stop(&d);
}

EACH(B31_B33_branches_with_backends_of_their_own, families)
{
    const family *const f = &families[_i];
    dirs d;
    brc_session *side;
    brc_iter *it;
    const brc_change *change;
    dirs_start(&d);
    brc_array *a = dirs_new(&d, "/a", NULL);
    scenario_commit(&d.t, "empty");
    OK(&d.t, brc_ref_create(d.t.repo, "side", "main", NULL, 0, &d.t.err));
    OK(&d.t, brc_session_open(&side, d.t.repo, "side", BRC_SESSION_WRITE, &d.t.err));
    brc_array *b = dirs_array(&d, side, "/a");
    OK(&d.t, brc_array_set_backend(a, f->a, &d.t.err));
    OK(&d.t, brc_array_set_backend(b, f->b, &d.t.err));
    dirs_put(&d, a, 40);
    dirs_put(&d, b, 40);
    scenario_commit(&d.t, "both");
    OK(&d.t, scenario_commit_of(&d.t, side, "both", NULL));
    OK(&d.t, brc_diff(&it, d.t.repo, "main", "side", NULL, &d.t.err));
    ck_assert_int_eq(brc_next(it, &change, &d.t.err), 1);
    ck_assert_uint_ne(change->flags & BRC_CHANGE_STORAGE, 0);
    ck_assert_int_eq(brc_next(it, &change, &d.t.err), 0);
    brc_iter_free(it);
    ck_assert_str_eq(brc_array_describe(a)->backend_json, f->a);
    ck_assert_str_eq(brc_array_describe(b)->backend_json, f->b);
    dirs_put_chunk(&d, a, 0, -1);
    dirs_put_chunk(&d, b, 0, -2);
    ck_assert_int_eq(dirs_chunks(&d, f->a), CHUNKS + 1);
    ck_assert_int_eq(dirs_chunks(&d, f->b), 1);
    ck_assert_int_eq(dirs_get_chunk(&d, b, 0), -2);
    ck_assert_int_eq(dirs_get_chunk(&d, a, 1), 40 + CHUNK);
    ck_assert_int_eq(dirs_get_chunk(&d, b, 1), 40 + CHUNK);
    brc_array_free(a);
    brc_array_free(b);
    brc_session_free(side);
    dirs_stop(&d);
}

EACH(B41_rewriting_follows_the_new_backend, families)
{
    const family *const f = &families[_i];
    static const char gzip[] = "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},"
                               "{\"name\":\"gzip\",\"configuration\":{\"level\":1}}]";
    static const char raw[] = "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]";
    dirs d;
    dirs_start(&d);
    brc_array *a = dirs_new(&d, "/a", f->a);
    OK(&d.t, brc_array_set_codecs(a, raw, 0, &d.t.err));
    dirs_put(&d, a, 90);
    brc_oid before = scenario_commit(&d.t, "big"), after;
    OK(&d.t, brc_array_set_backend(a, f->b, &d.t.err));
    OK(&d.t, brc_array_set_codecs(a, gzip, 1, &d.t.err));
    ck_assert_int_eq(dirs_chunks(&d, f->b), CHUNKS);
    dirs_check(&d, a, 90);
    /* what others may need stays: copies of the file have it too */
    dirs_hold(&d, f, 2 * CHUNKS);
    OK(&d.t, brc_array_set_backend(a, INLINE, &d.t.err));
    OK(&d.t, brc_array_set_codecs(a, raw, 1, &d.t.err));
    ck_assert_int_eq(dirs_chunks(&d, "inline"), CHUNKS);
    dirs_check(&d, a, 90);
    OK(&d.t, brc_array_set_backend(a, f->a, &d.t.err));
    after = scenario_clean(&d.t) ? before : scenario_commit(&d.t, "back");
    ck_assert_mem_eq(&before, &after, sizeof(before)); /* the same options, the same codecs */
    scenario_whole(&d.t);
    brc_array_free(a);
    dirs_stop(&d);
}

/* ---- many at once -------------------------------- */

EACH(one_batch_goes_to_several_places, families)
{
    const family *const f = &families[_i];
    const char *const places[] = { f->a, INLINE, f->b };
    int32_t data[3][N];
    brc_buffer buffers[3];
    brc_io io[3];
    dirs d;
    dirs_start(&d);
    for (int i = 0; i < 3; i++) {
        char path[] = { '/', (char)('a' + i), '\0' };
        dirs_values(data[i], 1000 * i + 1);
        buffers[i] = (brc_buffer){ .size = sizeof(buffers[i]),
                                   .data = data[i],
                                   .len = sizeof(data[i]) };
        io[i] = (brc_io){ .size = sizeof(io[i]), .array = dirs_new(&d, path, places[i]),
                          .buffer = &buffers[i] };
    }
    OK(&d.t, brc_write(io, 3, &d.t.err));
    for (int i = 0; i < 3; i++)
        dirs_check(&d, io[i].array, 1000 * i + 1);
    ck_assert_int_eq(dirs_chunks(&d, f->a), CHUNKS);
    ck_assert_int_eq(dirs_chunks(&d, "inline"), CHUNKS);
    ck_assert_int_eq(dirs_chunks(&d, f->b), CHUNKS);
    dirs_hold(&d, f, 2 * CHUNKS);
    for (int i = 0; i < 3; i++)
        brc_array_free(io[i].array);
    dirs_stop(&d);
}

/* An array "/a" in this backend, written with numbers that are all different. */
static brc_array *dirs_fill(dirs *d, const char *backend, uint64_t shape, uint64_t chunk,
                            int32_t *data)
{
    brc_array *a = scenario_array(&d->t, "/a", "int32", 1, &shape, &chunk, NULL, NULL);
    OK(&d->t, brc_array_set_backend(a, backend, &d->t.err));
    for (uint64_t i = 0; i < shape; i++)
        data[i] = (int32_t)(i * 2654435761u);
    OK(&d->t, brc_array_write(a, NULL, data, shape * sizeof(*data), &d->t.err));
    return a;
}

LOOP(fetching_is_for_many_and_on_workers_where_they_may, 0, 2)
{
    const char *name = _i ? "org.example.workers" : "org.example.here";
    static const uint64_t shape = 40000, chunk = 100;
    char path[4096];
    dirs d;
    dirs_start(&d);
    plugin_path(path, sizeof(path), "dirs");
    void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    ck_assert_ptr_nonnull(so);
    unsigned *fetched = dlsym(so, "dirs_fetched"), *most = dlsym(so, "dirs_most"),
             *elsewhere = dlsym(so, "dirs_elsewhere");
    int32_t *data = malloc(shape * sizeof(*data)), *got = malloc(shape * sizeof(*got));
    ck_assert(data != NULL && got != NULL);
    brc_array *a = dirs_fill(&d, name, shape, chunk, data);
    *fetched = *most = *elsewhere = 0;
    for (int tries = 0; tries == 0 || (_i && *elsewhere == 0 && tries < 200); tries++) {
        *fetched = 0; /* on a busy machine the caller's thread may be the first at every job */
        OK(&d.t, brc_array_read(a, NULL, got, shape * sizeof(*got), &d.t.err));
        ck_assert_mem_eq(got, data, shape * sizeof(*got));
        ck_assert_uint_eq(*fetched, (unsigned)(shape / chunk));
    }
    ck_assert_uint_gt(*most, 16);
    if (_i)
        ck_assert_uint_gt(*elsewhere, 0);
    else
        ck_assert_uint_eq(*elsewhere, 0);
    free(data);
    free(got);
    brc_array_free(a);
    dlclose(so);
    dirs_stop(&d);
}

/* A batch is one file; each object's row says which, and where in it. */
LOOP(chunks_lie_in_packs, 0, 2)
{
    static const uint64_t shape = 40000, chunk = 100;
    const char *name = _i ? IN("packs", "a.chunks") : IN("pack", "a.chunks");
    dirs d;
    dirs_start(&d);
    int32_t *data = malloc(shape * sizeof(*data)), *got = malloc(shape * sizeof(*got));
    ck_assert(data != NULL && got != NULL);
    brc_array *a = dirs_fill(&d, name, shape, chunk, data);
    const int packs = dirs_files(&d, "a.chunks", NULL);
    ck_assert_int_ge(packs, 1);
    ck_assert_int_le(packs, 40); /* of 400 chunks */
    ck_assert_int_eq(scenario_ask(&d.t, "SELECT count(*) FROM place"), packs);
    ck_assert_int_eq(scenario_ask(&d.t, "SELECT count(DISTINCT place * 1000000 + offset) FROM"
                                        " object WHERE kind=1 AND place>0"),
                     400);
    ck_assert_int_eq(scenario_ask(&d.t, "SELECT max(offset)>0 FROM object WHERE kind=1"), 1);
    scenario_commit(&d.t, "packed");
    for (int pass = 0; pass < 2; pass++) {
        memset(got, 0, shape * sizeof(*got));
        OK(&d.t, brc_array_read(a, NULL, got, shape * sizeof(*got), &d.t.err));
        ck_assert_mem_eq(got, data, shape * sizeof(*got));
        brc_array_free(a);
        dirs_reopen(&d);
        a = dirs_array(&d, d.t.session, "/a");
    }
    ck_assert_int_eq(dirs_get_chunk(&d, a, 5), data[5 * CHUNK]); /* one by itself */
    scenario_whole(&d.t);
    /* a number that an undone transaction had given is given to another name */
    const int64_t last = scenario_ask(&d.t, "SELECT max(seq) FROM place");
    OK(&d.t, brc_begin(d.t.repo, &d.t.err));
    dirs_put_chunk(&d, a, 0, -7);
    OK(&d.t, brc_end(d.t.repo, 0, &d.t.err));
    dirs_put_chunk(&d, a, 0, -8);
    ck_assert_int_eq(scenario_ask(&d.t, "SELECT max(seq) FROM place"), last + 1);
    ck_assert_int_eq(dirs_get_chunk(&d, a, 0), -8);
    /* moved out of the packs */
    OK(&d.t, brc_array_set_backend(a, DIR_B, &d.t.err));
    OK(&d.t, brc_array_set_codecs(a, "[{\"name\":\"bytes\",\"configuration\":{\"endian\":"
                                     "\"big\"}}]",
                                  1, &d.t.err));
    ck_assert_int_eq(dirs_chunks(&d, DIR_B), 400);
    ck_assert_int_eq(scenario_ask(&d.t, "SELECT count(*) FROM object WHERE place>0 AND backend>0"),
                     1); /* what the commit before has */
    ck_assert_int_eq(dirs_get_chunk(&d, a, 0), -8);
    scenario_commit(&d.t, "moved");
    scenario_whole(&d.t);
    free(data);
    free(got);
    brc_array_free(a);
    dirs_stop(&d);
}

EACH(what_goes_in_comes_out, families)
{
    const family *const f = &families[_i];
    char out[256];
    dirs d;
    dirs_start(&d);
    brc_array *a = dirs_new(&d, "/a", f->a);
    dirs_put(&d, a, 12);
    dirs_path(&d, out, sizeof(out), "out.zarr");
    OK(&d.t, brc_export(d.t.session, "/a", out, NULL, &d.t.err));
    OK(&d.t, brc_import(d.t.session, out, "/b", NULL, &d.t.err));
    brc_array *b = dirs_array(&d, d.t.session, "/b");
    dirs_check(&d, b, 12);
    ck_assert_str_eq(brc_array_describe(b)->backend_json, INLINE);
    uint64_t longer = N + 3;
    OK(&d.t, brc_array_resize(a, &longer, &d.t.err));
    OK(&d.t, brc_node_move(d.t.session, "/a", "/c", BRC_NODE_COPY, &d.t.err));
    brc_array *c = dirs_array(&d, d.t.session, "/c");
    ck_assert_str_eq(brc_array_describe(c)->backend_json, f->a);
    ck_assert_int_eq(dirs_get_chunk(&d, c, 1), 12 + CHUNK);
    brc_array_free(a);
    brc_array_free(b);
    brc_array_free(c);
    scenario_commit(&d.t, "all");
    scenario_whole(&d.t);
    dirs_stop(&d);
}

/* ---- open merges -------------------------------- */

#define DIR_C IN("dir", "c.chunks")

static void commit_backend(dirs *d, const char *backend)
{
    scenario_set_backend(&d->t, d->t.session, "/a", backend);
    scenario_commit(&d->t, backend);
}

static void open_storage_merge(dirs *d)
{
    brc_merge_opts opts = BRC_MERGE_OPTS_INIT;
    brc_merge_result r = BRC_MERGE_RESULT_INIT;
    brc_array_free(dirs_new(d, "/a", DIR_A));
    scenario_commit(&d->t, "base");
    OK(&d->t, brc_ref_create(d->t.repo, "side", NULL, NULL, 0, &d->t.err));
    commit_backend(d, DIR_B);
    scenario_be_on(&d->t, "side");
    commit_backend(d, DIR_C);
    scenario_be_on(&d->t, "main");
    opts.flags = BRC_MERGE_KEEP;
    OK(&d->t, brc_merge(&r, NULL, d->t.repo, "side", &opts, &d->t.err));
    ck_assert_int_eq(r.result, BRC_MERGE_CONFLICT);
    ck_assert_int_eq((int)scenario_ask(&d->t, "SELECT count(*) FROM conflict WHERE"
                                              " member='/storage' AND length(base)>0"), 1);
}

/* History that expires takes the commit that both began from, and what it alone has. */
TEST(what_a_conflict_of_storage_names_is_kept)
{
    dirs d;
    brc_expire_opts rules = BRC_EXPIRE_OPTS_INIT;
    dirs_start(&d);
    open_storage_merge(&d);
    scenario_no_window(&d.t);
    rules.keep_last = 1;
    OK(&d.t, brc_expire(NULL, NULL, d.t.repo, &rules, &d.t.err));
    OK(&d.t, brc_gc(d.t.repo, NULL, NULL, &d.t.err));
    ck_assert_int_eq((int)scenario_ask(&d.t, "SELECT count(*) FROM conflict WHERE"
                                             " base NOT IN (SELECT id FROM object)"), 0);
    scenario_whole(&d.t);
    dirs_stop(&d);
}
