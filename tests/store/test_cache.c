/* Objects in memory: which stay and which go. */
#include <string.h>

#include "../../src/store/cache.h"
#include "../kit/suite.h"

TEST_SUITE(cache);

static brc_cache cache;

static void cache_setup(void)
{
    brc_cache_init(&cache, 1000);
}

static void cache_teardown(void)
{
    brc_cache_dispose(&cache);
}

/* Ten objects fill the cache. */
static void add(uint32_t number, int pinned)
{
    char data[100];
    brc_oid id = {{0}};
    memcpy(id.bytes, &number, sizeof(number));
    memset(data, (int)number, sizeof(data));
    ck_assert_int_eq(brc_cache_add(&cache, &id, 3, data, sizeof(data), pinned, NULL, NULL), BRC_OK);
}

static int holds(uint32_t number)
{
    brc_oid id = {{0}};
    memcpy(id.bytes, &number, sizeof(number));
    const brc_cached *e = brc_cache_find(&cache, &id);
    ck_assert(e == NULL || (e->blob->len == 100 && e->blob->data[99] == (uint8_t)number));
    return e != NULL;
}

CASE("objects", .setup = cache_setup, .teardown = cache_teardown);

TEST(f21_pinned_objects_leave_room_for_others)
{
    for (uint32_t i = 0; i < 10; i++)
        add(i, 0);
    for (uint32_t i = 100; i < 1100; i++) /* a hundred times the limit */
        add(i, 1);
    for (uint32_t i = 0; i < 10; i++)
        ck_assert_int_eq(holds(i), 1);
    add(10, 0);
    ck_assert_int_eq(holds(0), 0); /* the one that was used the longest time ago */
    for (uint32_t i = 1; i <= 10; i++)
        ck_assert_int_eq(holds(i), 1);
    for (uint32_t i = 100; i < 1100; i++)
        ck_assert_int_eq(holds(i), 1);
}

TEST(what_was_used_last_stays)
{
    for (uint32_t i = 0; i < 10; i++)
        add(i, i == 5);
    ck_assert_int_eq(holds(0), 1);
    ck_assert_int_eq(holds(5), 1); /* which is pinned, and not by age */
    add(10, 0);
    add(11, 0);
    ck_assert_int_eq(holds(1), 0);
    ck_assert_int_eq(holds(0), 1);
    ck_assert_int_eq(holds(2), 1);
}

TEST(pinned_ones_go_together_and_others_by_clearing)
{
    for (uint32_t i = 0; i < 20; i++)
        add(i, i % 2);
    brc_cache_clear(&cache);
    for (uint32_t i = 0; i < 20; i++)
        ck_assert_int_eq(holds(i), i % 2);
    for (uint32_t i = 0; i < 5; i++)
        add(2 * i, 0);
    brc_cache_drop_pinned(&cache);
    for (uint32_t i = 0; i < 20; i++)
        ck_assert_int_eq(holds(i), i % 2 == 0 && i < 10);
    ck_assert_uint_eq(cache.count, 5);
    ck_assert_uint_eq(cache.bytes, 500);
}
