/* Encodings in memory: found by number and by text, opened once, forgotten together. */
#include "../../src/store/encoding.h"
#include "../kit/suite.h"

TEST_SUITE(encoding_cache);

#define SPEC(codecs)                                                                   \
    "{\"codecs\":[" codecs "],\"data_type\":\"uint8\",\"fill_value\":7,\"shape\":[4]}"
static const char known[] = SPEC("{\"name\":\"bytes\"}");
static const char unknown[] = SPEC("{\"name\":\"bytes\"},{\"name\":\"of another build\"}");

static brc_registry *registry;
static brc_encoding_cache cache;

static void encoding_cache_setup(void)
{
    cache = (brc_encoding_cache){ NULL, 0, 0 };
    ck_assert_int_eq(brc_registry_new(&registry, NULL), BRC_OK);
}

static void encoding_cache_teardown(void)
{
    brc_encoding_cache_dispose(&cache);
    brc_registry_free(registry);
}

static brc_encoding_slot *add(int64_t id, const char *spec)
{
    brc_encoding_slot *slot = NULL;
    ck_assert_int_eq(brc_encoding_cache_add(&cache, id, spec, &slot, NULL), BRC_OK);
    return slot;
}

CASE("encoding_cache", .setup = encoding_cache_setup, .teardown = encoding_cache_teardown);

TEST(each_is_found_by_number_and_by_text)
{
    add(5, known);
    add(2, unknown);
    ck_assert_str_eq(brc_encoding_cache_by_id(&cache, 2)->spec, unknown);
    ck_assert_int_eq(brc_encoding_cache_by_spec(&cache, known)->id, 5);
    ck_assert_ptr_null(brc_encoding_cache_by_id(&cache, 3));
    ck_assert_ptr_null(brc_encoding_cache_by_spec(&cache, "{}"));
    brc_encoding_cache_forget(&cache);
    ck_assert_ptr_null(brc_encoding_cache_by_id(&cache, 2));
    ck_assert_ptr_null(brc_encoding_cache_by_spec(&cache, known));
}

TEST(a_chain_is_opened_once)
{
    const brc_chain *chain, *again;
    brc_encoding_slot *slot = add(1, known);
    ck_assert_int_eq(brc_encoding_slot_chain(slot, registry, &chain, NULL), BRC_OK);
    ck_assert_uint_eq(brc_chain_describe(chain)->decoded_len, 4);
    ck_assert_int_eq(brc_encoding_slot_chain(slot, registry, &again, NULL), BRC_OK);
    ck_assert_ptr_eq(again, chain);
    ck_assert_int_eq(
        brc_encoding_slot_chain(add(2, "{\"opaque\":true}"), registry, &chain, NULL), BRC_OK);
    ck_assert_ptr_null(chain);
}

/* Jobs may decode with a chain while its number is forgotten; with a new number it is the same. */
TEST(what_is_forgotten_stays_for_those_who_use_it)
{
    const brc_chain *chain, *again;
    const char *spec = add(1, known)->spec;
    ck_assert_int_eq(brc_encoding_slot_chain(brc_encoding_cache_by_id(&cache, 1), registry, &chain,
                                             NULL), BRC_OK);
    brc_encoding_cache_forget(&cache);
    ck_assert_ptr_null(brc_encoding_cache_by_id(&cache, 0));
    ck_assert_uint_eq(brc_chain_describe(chain)->decoded_len, 4);
    ck_assert_str_eq(spec, known);
    brc_encoding_slot *slot = add(7, known);
    ck_assert_int_eq(slot->id, 7);
    ck_assert_uint_eq(slot->seen, 0);
    ck_assert_int_eq(brc_encoding_slot_chain(slot, registry, &again, NULL), BRC_OK);
    ck_assert_ptr_eq(again, chain);
    ck_assert_uint_eq(cache.n, 1);
}

/* So that the next attempt begins as the first did. */
TEST(what_could_not_be_opened_leaves_nothing_behind)
{
    const brc_chain *chain;
    brc_encoding_slot *slot = add(1, unknown);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(brc_encoding_slot_chain(slot, registry, &chain, NULL), BRC_EUNSUPPORTED);
        ck_assert_ptr_null(chain);
        ck_assert_ptr_null(slot->type);
        ck_assert_uint_eq(slot->fill.len, 0);
    }
}

TEST(what_means_nothing_is_damage)
{
    brc_error err = BRC_ERROR_INIT;
    const brc_chain *chain;
    brc_encoding_slot *slot = add(1, "{\"shape\":[4],\"data_type\":5}");
    ck_assert_int_eq(brc_encoding_slot_chain(slot, registry, &chain, &err), BRC_ECORRUPT);
    ck_assert_int_eq(err.code, BRC_ECORRUPT);
}
