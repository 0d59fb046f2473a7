/* Documents with a string or a name that contains U+0000, or a value of another kind, in every
 * place: they are refused with a reason that points at the place, or kept as they are.
 * Never a crash. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/codec/registry.h"
#include "../../src/xfer/zarr/zarr2.h"
#include "../../src/zarr/doc/meta.h"
#include "../../src/zarr/transfer.h"
#include "../kit/exchange_kit.h"
#include "../kit/json_places.h"
#include "../kit/dtype_kit.h"
#include "../kit/suite.h"

TEST_SUITE(json_places);

typedef struct place_check {
    exchange_kit *kit;
    size_t refused, kept;
} place_check;

static brc_json *read_place(const json_place *place)
{
    brc_error err = BRC_ERROR_INIT;
    brc_json *doc = NULL;
    int rc = brc_json_parse(&doc, place->text, place->len, BRC_JSON_NAN, &err);

    ck_assert_msg(rc == BRC_OK, "%s: %s", place->text, err.message);
    return doc;
}

static int begins(const char *text, const char *with)
{
    size_t len = strlen(with);
    return strncmp(text, with, len) == 0 && (text[len] == 0 || strchr(":/", text[len]));
}

/* The error names the member of the document in which the place is; of a codec, which,
 * unless there is another that this build lacks. */
static void check_pointer(const json_place *place, const brc_error *err, int rc)
{
    char top[64];

    ck_assert_msg(rc == BRC_EINVAL || rc == BRC_EUNSUPPORTED || rc == BRC_ELIMIT, "%s: %d %s",
                  place->text, rc, err->message);
    if (!place->has_nul) /* and so below the root */
        return;
    size_t len = strcspn(place->pointer + 1, "/") + 1;
    if (begins(place->pointer, "/codecs") && place->pointer[len] == '/' &&
        !strstr(place->text, "org.example.none"))
        len += strcspn(place->pointer + len + 1, "/") + 1;
    snprintf(top, sizeof(top), "%.*s", (int)len, place->pointer);
    ck_assert_msg(begins(err->message, top), "%s: \"%s\" does not begin with %s", place->text,
                  err->message, top);
}

/* ---- Zarr v3 ------------------------------------------------------------------------ */

/* Where any string or name is as good as another. */
static int is_free_text(const json_place *place, const brc_json *doc)
{
    static const char *const frees[] = { "/attributes", "/dimension_names", "/extra" };

    for (size_t i = 0; i < sizeof(frees) / sizeof(frees[0]); i++)
        if (begins(place->pointer, frees[i]))
            return 1;
    /* a member that may be ignored */
    if (place->is_name && strchr(place->pointer + 1, '/') == NULL)
        return 1;
    return begins(place->pointer, "/fill_value") &&
           brc_json_is(brc_json_member(doc, "data_type"), "string");
}

/* The repository gives the document back as it took it. */
static void check_kept(place_check *check, const json_place *place, const brc_json *doc, int kind)
{
    brc_session *s = check->kit->session;
    brc_error *err = &check->kit->err;
    brc_array *a = NULL;
    brc_json *got;
    int rc = kind == BRC_ARRAY ? brc_array_create_doc(&a, s, "/n", doc, err)
                               : brc_group_create_doc(s, "/n", doc, err);

    ck_assert_msg(rc == BRC_OK, "%s: %s", place->text, err->message);
    brc_array_free(a);
    ck_assert_int_eq(brc_node_doc(&got, s, "/n", err), BRC_OK);
    ck_assert_msg(brc_json_equal(got, doc), "%s", place->text);
    brc_json_free(got);
    ck_assert_int_eq(brc_node_remove(s, "/n", err), BRC_OK);
}

static void check_document(void *ctx, const json_place *place)
{
    place_check *check = ctx;
    brc_error err = BRC_ERROR_INIT;
    brc_json *doc = read_place(place), *zarray = NULL, *zattrs = NULL;
    brc_meta meta;
    int kind = 0;

    int rc = brc_meta_kind(doc, &kind, &err);
    if (rc == BRC_OK && kind == BRC_GROUP)
        rc = brc_meta_check_group(doc, &err);
    else if (rc == BRC_OK && (rc = brc_meta_open(&meta, dtype_kit_registry(), doc,
                                                 &err)) == BRC_OK) {
        rc = brc_meta_must_decode(&meta, &err);
        brc_meta_dispose(&meta);
    }
    if (rc < 0) {
        check_pointer(place, &err, rc);
        check->refused++;
    } else if (place->has_nul || place->is_name) {
        ck_assert_msg(is_free_text(place, doc), "%s: accepted", place->text);
        check_kept(check, place, doc, kind);
        check->kept++;
    }
    /* and what writes it as Zarr v2 may meet any document */
    if (brc_zarr2_array_write(&zarray, &zattrs, doc, 0, dtype_kit_registry(), NULL) == BRC_OK)
        ck_assert_ptr_nonnull(zarray);
    brc_json_free(zarray);
    brc_json_free(zattrs);
    brc_json_free(doc);
}

#define FREE_TEXTS                                                                           \
    "\"attributes\":{\"a\":\"b\",\"c\":[\"d\",{\"e\":\"f\"}]},"                              \
    "\"extra\":{\"must_understand\":false,\"x\":[\"y\"]}}"

static const char *const with_texts[] = {
    "{\"zarr_format\":3,\"node_type\":\"group\"," FREE_TEXTS,
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[4],\"data_type\":\"string\","
    "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[2]}},"
    "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":\"x\",\"codecs\":["
    "{\"name\":\"vlen-utf8\"}],\"dimension_names\":[\"time\"]," FREE_TEXTS,
};

CASE("places", .setup = dtype_kit_setup, .teardown = dtype_kit_teardown, .timeout = 120);

LOOP(f02_free_texts_are_kept, 0, 2)
{
    exchange_kit kit;
    brc_json *doc;
    place_check check = { &kit, 0, 0 };

    exchange_start(&kit);
    ck_assert_int_eq(brc_json_parse(&doc, with_texts[_i], strlen(with_texts[_i]), 0, &kit.err),
                     BRC_OK);
    json_places_each(doc, check_document, &check);
    ck_assert_uint_gt(check.refused, 40);
    /* texts with U+0000 in three places each, and names: a, c, e, x and extra itself */
    ck_assert_uint_eq(check.kept, 3 * (_i == 0 ? 4 : 6) + 5);
    brc_json_free(doc);
    exchange_stop(&kit);
}

TEST(f02_every_place_of_the_metadata_lists)
{
    exchange_kit kit;
    place_check check = { &kit, 0, 0 };
    size_t documents = 0, places = 0;

    exchange_start(&kit);
    for (brc_json *doc; (doc = metadata_document(documents)) != NULL; documents++) {
        places += json_places_each(doc, check_document, &check);
        brc_json_free(doc);
    }
    ck_assert_uint_gt(documents, 60);
    ck_assert_uint_gt(places, 150 * documents);
    ck_assert_uint_gt(check.refused, places / 2);
    exchange_stop(&kit);
}

/* ---- Zarr v2 ------------------------------------------------------------------------ */

/* The members of a .zarray that are kept come back as they were. */
static void check_back(const json_place *place, const brc_json *zarray, const brc_json *doc)
{
    brc_json *back, *zattrs;
    brc_error err = BRC_ERROR_INIT;
    int rc = brc_zarr2_array_write(&back, &zattrs, doc, 0, dtype_kit_registry(), &err);

    if (rc < 0) {
        ck_assert_msg(err.message[0] == '/', "%s: %s", place->text, err.message);
        return;
    }
    char top[64];
    if (place->has_nul) {
        snprintf(top, sizeof(top), "%.*s", (int)strcspn(place->pointer + 1, "/"),
                 place->pointer + 1);
        ck_assert_msg(brc_json_equal(brc_json_member(back, top), brc_json_member(zarray, top)),
                      "%s: %s came back as another", place->text, top);
    }
    brc_json_free(back);
    brc_json_free(zattrs);
}

static void check_zarray(void *ctx, const json_place *place)
{
    place_check *check = ctx;
    brc_error err = BRC_ERROR_INIT;
    brc_json *zarray = read_place(place), *doc = NULL;

    int rc = brc_zarr2_array_read(&doc, zarray, NULL, '.', dtype_kit_registry(), &err);
    if (rc == BRC_OK) {
        check_back(place, zarray, doc);
        check->kept++;
    } else {
        ck_assert_msg(rc == BRC_EINVAL || rc == BRC_EUNSUPPORTED, "%s: %d", place->text, rc);
        ck_assert_msg(err.message[0] == '/' || brc_json_kind(zarray) != BRC_JSON_OBJECT, "%s: %s",
                      place->text, err.message);
        check->refused++;
    }
    brc_json_free(doc);
    brc_json_free(zarray);
}

TEST(f02_every_place_of_zarray_documents)
{
    place_check check = { NULL, 0, 0 };
    size_t documents = 0;

    for (brc_json *doc; (doc = zarr2_document(documents)) != NULL; documents++) {
        json_places_each(doc, check_zarray, &check);
        brc_json_free(doc);
    }
    ck_assert_uint_gt(documents, 40);
    ck_assert_uint_gt(check.refused, 100 * documents);
    ck_assert_uint_gt(check.kept, 10 * documents);
}

/* .zattrs, as attributes and as the names of dimensions; .zgroup. */
static void check_zattrs(void *ctx, const json_place *place)
{
    brc_json *zattrs = read_place(place), *doc = NULL, *back = NULL, *given = NULL;
    brc_error err = BRC_ERROR_INIT;
    int is_object = brc_json_kind(zattrs) == BRC_JSON_OBJECT;

    int rc = brc_zarr2_array_read(&doc, ctx, zattrs, '.', dtype_kit_registry(), &err);
    ck_assert_int_eq(rc, is_object ? BRC_OK : BRC_EINVAL);
    if (rc == BRC_OK) {
        ck_assert_int_eq(brc_zarr2_array_write(&back, &given, doc, 0, dtype_kit_registry(), &err),
                         BRC_OK);
        ck_assert_msg(brc_json_equal(given, zattrs) || brc_json_count(zattrs) == 0, "%s",
                      place->text);
    }
    brc_json_free(given);
    brc_json_free(back);
    brc_json_free(doc);
    given = back = doc = NULL;
    rc = brc_zarr2_group_read(&doc, zattrs, zattrs, &err);
    ck_assert_int_eq(rc, BRC_EINVAL);
    brc_json_free(zattrs);
}

TEST(f02_every_place_of_zattrs)
{
    static const char text[] = "{\"_ARRAY_DIMENSIONS\":[\"x\"],\"units\":\"m\",\"n\":[1,\"a\"]}";
    static const char small[] = "{\"zarr_format\":2,\"shape\":[4],\"chunks\":[2],\"dtype\":"
                                "\"|u1\",\"fill_value\":0,\"order\":\"C\",\"filters\":null,"
                                "\"compressor\":null}";
    brc_error err = BRC_ERROR_INIT;
    brc_json *zattrs, *zarray;

    ck_assert_int_eq(brc_json_parse(&zattrs, text, strlen(text), 0, &err), BRC_OK);
    ck_assert_int_eq(brc_json_parse(&zarray, small, strlen(small), 0, &err), BRC_OK);
    ck_assert_uint_gt(json_places_each(zattrs, check_zattrs, zarray), 60);
    brc_json_free(zarray);
    brc_json_free(zattrs);
}
