/* Documents of Zarr v2 for one node, and keys of chunks. */
#include <stdio.h>
#include <string.h>

#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(zarr2_view);

SCENARIO_FIXTURE(t)

CASE("zarr2_view", .setup = t_start, .teardown = t_stop);

static void made(brc_array *a)
{
    ck_assert(a != NULL);
    brc_array_free(a);
}

TEST(a_node_has_documents_of_version_2)
{
    brc_buf own = BRC_BUF_INIT, attrs = BRC_BUF_INIT;
    made(scenario_array(&t, "/g/a", "float32", 2, (uint64_t[]){ 4, 6 }, (uint64_t[]){ 2, 3 }, "1.5",
                        NULL));
    OK(&t, brc_attrs_set(t.session, "/g", "k", "[1, 2]", &t.err));
    OK(&t, brc_node_json_v2(&own, &attrs, t.session, "/g", &t.err));
    ck_assert_str_eq((char *)own.data, "{\"zarr_format\":2}");
    ck_assert_str_eq((char *)attrs.data, "{\"k\":[1,2]}");
    own.len = attrs.len = 0;
    OK(&t, brc_node_json_v2(&own, &attrs, t.session, "/g/a", &t.err));
    ck_assert(strstr((char *)own.data, "\"shape\":[4,6],\"chunks\":[2,3],\"dtype\":\"<f4\"") !=
              NULL);
    ck_assert(strstr((char *)own.data, "\"fill_value\":1.5") != NULL);
    ck_assert_uint_eq(attrs.len, 0);
    FAILS(&t, BRC_ENOTFOUND, brc_node_json_v2(&own, &attrs, t.session, "/no", &t.err));
    brc_buf_dispose(&own);
    brc_buf_dispose(&attrs);
}

TEST(what_version_2_cannot_express_is_an_error)
{
    brc_buf own = BRC_BUF_INIT, attrs = BRC_BUF_INIT;
    made(scenario_array(
        &t, "/t", "uint8", 3, (uint64_t[]){ 4, 6, 8 }, NULL, NULL,
        "[{\"name\": \"transpose\", \"configuration\": {\"order\": [1, 2, 0]}}, \"bytes\"]"));
    FAILS(&t, BRC_EUNSUPPORTED, brc_node_json_v2(&own, &attrs, t.session, "/t", &t.err));
    ck_assert(strstr(t.err.message, "/t") != NULL);
    ck_assert_uint_eq(own.len, 0);
    brc_buf_dispose(&own);
    brc_buf_dispose(&attrs);
}

/* TensorStore refuses members that it does not know, also those that say nothing new. */
TEST(a_checksum_is_only_named_if_there_is_one)
{
    static const char *const said[] = { "false", "true" };
    for (int i = 0; i < 2; i++) {
        brc_buf own = BRC_BUF_INIT, attrs = BRC_BUF_INIT;
        char codecs[200], path[8];
        (void)snprintf(path, sizeof(path), "/z%d", i);
        (void)snprintf(codecs, sizeof(codecs),
                       "[\"bytes\", {\"name\": \"zstd\", \"configuration\": {\"level\": 3, "
                       "\"checksum\": %s}}]",
                       said[i]);
        made(scenario_array(&t, path, "uint8", 1, (uint64_t[]){ 4 }, NULL, NULL, codecs));
        OK(&t, brc_node_json_v2(&own, &attrs, t.session, path, &t.err));
        ck_assert_int_eq(strstr((char *)own.data, "checksum") != NULL, i);
        brc_buf_dispose(&own);
        brc_buf_dispose(&attrs);
    }
}

TEST(a_chunk_has_a_key)
{
    brc_buf key = BRC_BUF_INIT;
    brc_array *a = scenario_array(&t, "/a", "uint8", 2, (uint64_t[]){ 4, 6 }, (uint64_t[]){ 2, 3 },
                                  NULL, NULL);
    OK(&t, brc_chunk_key(&key, a, (uint64_t[]){ 1, 20 }, &t.err));
    ck_assert_str_eq((char *)key.data, "c/1/20");
    brc_array_free(a);
    brc_buf_dispose(&key);
}
