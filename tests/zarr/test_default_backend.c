/* The backend that new arrays get by the repository's setting, imported ones too. */
#include "../kit/dirs_kit.h"
#include "../kit/suite.h"

TEST_SUITE(default_backend);

static void is_default(dirs *d, const char *json)
{
    brc_buf text = BRC_BUF_INIT;
    OK(&d->t, brc_config_get(&text, d->t.repo, "backend", &d->t.err));
    ck_assert_str_eq((const char *)text.data, json);
    brc_buf_dispose(&text);
}

static void has_backend(dirs *d, const char *path, const char *json)
{
    brc_array *a = dirs_array(d, d->t.session, path);
    ck_assert_str_eq(brc_array_describe(a)->backend_json, json);
    brc_array_free(a);
}

EACH(R3_a_default_is_recorded_in_new_arrays_alone, families)
{
    const family *const f = &families[_i];
    dirs d;
    dirs_start(&d);
    brc_array_free(dirs_new(&d, "/old", NULL));
    scenario_commit(&d.t, "old");
    is_default(&d, INLINE);
    OK(&d.t, brc_config_set(d.t.repo, "backend", f->a_in_words, &d.t.err));
    is_default(&d, f->a);
    ck_assert_int_eq(scenario_clean(&d.t), 1);
    brc_array *a = dirs_new(&d, "/new", NULL);
    dirs_put(&d, a, 5);
    dirs_hold(&d, f, CHUNKS);
    brc_array_free(a);
    brc_array_free(dirs_new(&d, "/given", f->b));
    brc_array_free(dirs_new(&d, "/file", "inline"));
    static const char doc[] = "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[4],"
                              "\"data_type\":\"int8\",\"chunk_grid\":{\"name\":\"regular\","
                              "\"configuration\":{\"chunk_shape\":[2]}},\"chunk_key_encoding\":"
                              "{\"name\":\"default\"},\"fill_value\":0,\"codecs\":[{\"name\":"
                              "\"bytes\"}]}";
    OK(&d.t, brc_key_set(d.t.session, "key/zarr.json", doc, sizeof(doc) - 1, 0, &d.t.err));
    OK(&d.t, brc_config_set(d.t.repo, "backend", f->least, &d.t.err));
    brc_array_free(dirs_new(&d, "/late", NULL));
    OK(&d.t, brc_config_set(d.t.repo, "backend", NULL, &d.t.err));
    brc_array_free(dirs_new(&d, "/last", NULL));
    ck_assert_int_eq(scenario_ask(&d.t, "SELECT count(*) FROM meta WHERE key LIKE 'config.%'"), 0);
    scenario_commit(&d.t, "new");
    OK(&d.t, brc_config_set(d.t.repo, "backend", f->b, &d.t.err));
    dirs_reopen(&d);
    is_default(&d, f->b);
    has_backend(&d, "/old", INLINE);
    has_backend(&d, "/new", f->a);
    has_backend(&d, "/given", f->b);
    has_backend(&d, "/file", INLINE);
    has_backend(&d, "/key", f->a);
    has_backend(&d, "/late", f->full);
    has_backend(&d, "/last", INLINE);
    scenario_whole(&d.t);
    dirs_stop(&d);
}

TEST(R3_a_default_that_is_wrong_or_not_known_is_refused)
{
    static const struct {
        const char *text, *words;
        int code;
    } wrong[] = {
        { "org.example.none", "inline, pack, external, s3, org.example.dir", BRC_EUNSUPPORTED },
        { "{\"name\":\"org.example.dir\",\"configuration\":{\"folder\":\"../x\"}}", "folder",
          BRC_EINVAL },
        { "{\"name\":\"org.example.dir\",\"options\":{}}", "options", BRC_EINVAL },
        { "[1]", "a backend is", BRC_EINVAL },
    };
    static const uint64_t shape = 4;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_array *a;
    dirs d;
    dirs_start(&d);
    OK(&d.t, brc_config_set(d.t.repo, "backend", DIR_A, &d.t.err));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        FAILS(&d.t, wrong[i].code, brc_config_set(d.t.repo, "backend", wrong[i].text, &d.t.err));
        dirs_say(&d, wrong[i].words);
        is_default(&d, DIR_A);
    }
    /* where the plug-in is not there, it can be read and unset, and arrays are made elsewhere */
    dirs_close(&d);
    scenario_open(&d.t, NULL, 0);
    is_default(&d, DIR_A);
    spec.ndim = 1;
    spec.shape = &shape;
    spec.dtype = "int8";
    FAILS(&d.t, BRC_EUNSUPPORTED, brc_array_create(&a, d.t.session, "/a", &spec, &d.t.err));
    dirs_say(&d, "org.example.dir");
    dirs_say(&d, "config FILE backend");
    ck_assert_int_eq(scenario_clean(&d.t), 1);
    spec.backend_json = "inline";
    OK(&d.t, brc_array_create(&a, d.t.session, "/a", &spec, &d.t.err));
    brc_array_free(a);
    OK(&d.t, brc_config_set(d.t.repo, "backend", NULL, &d.t.err));
    spec.backend_json = NULL;
    OK(&d.t, brc_array_create(&a, d.t.session, "/b", &spec, &d.t.err));
    brc_array_free(a);
    /* a file that was changed */
    OK(&d.t, brc_config_set(d.t.repo, "backend", "inline", &d.t.err));
    scenario_sql(&d.t, "INSERT INTO meta VALUES ('config.backend', '{}',"
                       " row_sum('meta', 'config.backend', '{}'))");
    FAILS(&d.t, BRC_ECORRUPT, brc_array_create(&a, d.t.session, "/c", &spec, &d.t.err));
    scenario_close(&d.t);
    dirs_open(&d, 0);
    dirs_stop(&d);
}

/* The sender's chunks lie in the file, or where the receiver's go. */
LOOP(B40_what_is_imported_goes_where_new_arrays_go, 0, 2 * FAMILIES)
{
    const family *const f = &families[_i / 2];
    char out[256];
    dirs d, e;
    dirs_start(&d);
    brc_array *a = dirs_new(&d, "/a", _i % 2 ? f->a : NULL);
    dirs_put(&d, a, 12);
    dirs_path(&d, out, sizeof(out), "out.zarr");
    OK(&d.t, brc_export(d.t.session, "/a", out, NULL, &d.t.err));
    brc_array_free(a);
    dirs_start(&e);
    OK(&e.t, brc_config_set(e.t.repo, "backend", f->b, &e.t.err));
    OK(&e.t, brc_import(e.t.session, out, "/b", NULL, &e.t.err));
    has_backend(&e, "/b", f->b);
    ck_assert_int_eq(dirs_chunks(&e, "inline"), 0);
    ck_assert_int_eq(dirs_chunks(&e, f->b), CHUNKS);
    a = dirs_array(&e, e.t.session, "/b");
    dirs_check(&e, a, 12);
    /* the same bytes again, for another place: they stay where they are */
    OK(&e.t, brc_config_set(e.t.repo, "backend", "inline", &e.t.err));
    OK(&e.t, brc_import(e.t.session, out, "/c", NULL, &e.t.err));
    has_backend(&e, "/c", INLINE);
    ck_assert_int_eq(dirs_chunks(&e, "inline"), 0);
    ck_assert_int_eq(dirs_chunks(&e, "%"), CHUNKS);
    brc_array_free(a);
    scenario_whole(&e.t);
    dirs_stop(&e);
    dirs_stop(&d);
}
