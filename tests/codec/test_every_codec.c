/* Every codec of the registry, with every data type that it takes: what is encoded decodes
 * to the same, or loses only once. A codec or a type that is new has to be told how it is
 * configured, or these tests fail. */
#include <stdlib.h>
#include <string.h>

#include "../../src/base/json.h"
#include "../kit/chain_fixture.h"
#include "../kit/codec_kit.h"
#include "../kit/codec_lists.h"
#include "../kit/suite.h"

TEST_SUITE(every_codec);

#define MOST_LISTS 4 /* about one codec: more would not be gone through         */

CASE("each", .setup = codecs_setup, .teardown = codecs_teardown, .timeout = UNTIMED);

TEST(P16_every_codec_of_the_registry_has_a_list)
{
    brc_iter *it;
    const brc_codec_info *info;
    int n = 0;

    ck_assert_int_eq(brc_registry_list(&it, codecs_reg, BRC_LIST_CODECS, &codecs_err), BRC_OK);
    for (; brc_next(it, &info, &codecs_err) == 1; n++) {
        ck_assert_msg(codec_list_of(info->name, 0) != NULL,
                      "tests/kit/codec_lists.c has no list about %s", info->name);
        ck_assert_msg(codec_list_of(info->name, MOST_LISTS) == NULL,
                      "more than %d lists are about %s", MOST_LISTS, info->name);
    }
    brc_iter_free(it);
    ck_assert_int_gt(n, 30);
}

TEST(P16_every_data_type_of_the_registry_is_tried)
{
    brc_iter *it;
    const brc_dtype_info *info;
    int n = 0;

    ck_assert_int_eq(brc_registry_list(&it, codecs_reg, BRC_LIST_DTYPES, &codecs_err), BRC_OK);
    for (; brc_next(it, &info, &codecs_err) == 1; n++)
        ck_assert_msg(!(info->flags & BRC_DTYPE_CONFIGURED) ||
                          codec_kit_configured(info->name, 0) != NULL,
                      "tests/kit/codec_kit.c has no configuration of %s", info->name);
    brc_iter_free(it);
    ck_assert_int_gt(n, 30);
}

LOOP(P16_every_codec_holds_what_the_kit_asks, 0, MOST_LISTS)
{
    char why[1024] = "no data type was taken";
    brc_iter *it;
    const brc_codec_info *info;
    int n = 0;

    ck_assert_int_eq(brc_registry_list(&it, codecs_reg, BRC_LIST_CODECS, &codecs_err), BRC_OK);
    while (brc_next(it, &info, &codecs_err) == 1) {
        const codec_list *list = codec_list_of(info->name, (size_t)_i);
        if (list == NULL || !(info->flags & BRC_IMPL_CHOSEN))
            continue;
        codec_kit kit = { .reg = codecs_reg,
                          .codecs = list->list,
                          .ndim = list->ndim,
                          .tame = list->tame,
                          .rounds = 4,
                          .seed = 1611 + (uint64_t)n };
        ck_assert_msg(codec_kit_run(&kit, why, sizeof(why)) == 0, "%s: %s", info->name, why);
        n++;
    }
    brc_iter_free(it);
    ck_assert_int_gt(n, 0);
}

/* ---- the same again ---- */

/* A specification says all by itself: told in full and opened again it tells the same and encodes
 * to the same bytes, which decode to what was encoded. */
TEST(seed_P3_a_specification_gives_the_same_each_time)
{
    enum { LEN = 600 };
    uint8_t data[LEN];
    brc_iter *it;
    const brc_codec_info *info;
    int n = 0;

    for (int i = 0; i < LEN; i++)
        data[i] = (uint8_t)(i / 5 % 40);
    ck_assert_int_eq(brc_registry_list(&it, codecs_reg, BRC_LIST_CODECS, &codecs_err), BRC_OK);
    while (brc_next(it, &info, &codecs_err) == 1) {
        brc_buf full = BRC_BUF_INIT, again = BRC_BUF_INIT, first = BRC_BUF_INIT,
                second = BRC_BUF_INIT, out = BRC_BUF_INIT;
        if (strcmp(info->kind, "bytes->bytes") != 0)
            continue;
        codecs_open_bytes(codec_list_of(info->name, 0)->list, LEN);
        ck_assert_int_eq(brc_chain_write(codecs_chain, &full, &codecs_err), BRC_OK);
        ck_assert_int_eq(brc_buf_terminate(&full, &codecs_err), BRC_OK);
        codecs_encode(data, LEN, &first);
        codecs_open_bytes((const char *)full.data, LEN);
        ck_assert_int_eq(brc_chain_write(codecs_chain, &again, &codecs_err), BRC_OK);
        ck_assert_int_eq(brc_buf_terminate(&again, &codecs_err), BRC_OK);
        ck_assert_str_eq((const char *)again.data, (const char *)full.data);
        codecs_encode(data, LEN, &second);
        ck_assert_msg(first.len == second.len && memcmp(first.data, second.data, first.len) == 0,
                      "%s", info->name);
        ck_assert_int_eq(codecs_decode(second.data, second.len, &out), BRC_OK);
        ck_assert_uint_eq(out.len, LEN);
        ck_assert_mem_eq(out.data, data, LEN);
        brc_buf *all[] = {&full, &again, &first, &second, &out};
        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
            brc_buf_dispose(all[i]);
        n++;
    }
    brc_iter_free(it);
    ck_assert_int_gt(n, 15);
}

/* ---- bombs -------------------------------------------------------------------------- */

/* A chunk that would be a million bytes, where 100 are: no codec that bytes come from
 * takes more memory for it than some blocks. */
TEST(X6_bombs_stop_at_the_limit_of_every_codec)
{
    enum { BIG = 1 << 20, SMALL = 100, ROOM = 1 << 18 };
    uint8_t *zeros = calloc(1, BIG);
    brc_buf stored = BRC_BUF_INIT, out = BRC_BUF_INIT;
    brc_iter *it;
    const brc_codec_info *info;
    int n = 0;

    ck_assert_int_eq(brc_registry_list(&it, codecs_reg, BRC_LIST_CODECS, &codecs_err), BRC_OK);
    while (brc_next(it, &info, &codecs_err) == 1) {
        const codec_list *list = codec_list_of(info->name, 0);
        if (strcmp(info->kind, "bytes->bytes") != 0)
            continue;
        codecs_open_bytes(list->list, BIG);
        codecs_encode(zeros, BIG, &stored);
        codecs_open_bytes(list->list, SMALL);
        brc_buf_dispose(&out);
        out = (brc_buf)BRC_BUF_INIT;
        ck_assert_msg(codecs_decode(stored.data, stored.len, &out) == BRC_ECORRUPT, "%s",
                      info->name);
        ck_assert_msg(out.cap <= ROOM, "%s took %zu bytes", info->name, out.cap);
        n++;
    }
    brc_iter_free(it);
    ck_assert_int_gt(n, 15);
    brc_buf_dispose(&stored);
    brc_buf_dispose(&out);
    free(zeros);
}

/* ---- chains of several --------------------------------------------------------------- */

/* Appends the one codec that a list is about. */
static void add_codec(brc_buf *chain, const brc_codec_info *info, const codec_list *list)
{
    brc_json *json = NULL;
    size_t at = strcmp(info->kind, "bytes->bytes") == 0 ? 1 : 0;

    ck_assert_int_eq(brc_json_parse(&json, list->list, strlen(list->list), 0, &codecs_err), BRC_OK);
    ck_assert_int_eq(brc_buf_printf(chain, NULL, chain->len > 0 ? "," : "["), BRC_OK);
    ck_assert_int_eq(brc_json_write(chain, brc_json_item(json, at), 0, NULL), BRC_OK);
    brc_json_free(json);
}

/* A codec in front of such a codec uses the bits itself: "numcodecs.packbits"
 * counts in them. */
static int leaves_bits_out(const codec_list *list)
{
    return strstr(list->list, "first_bit") != NULL || strstr(list->list, "last_bit") != NULL;
}

static const char *const tried_types[] = {
    "int32", "float64", "bool", "string", "uint8", "float32"
};
#define TRIED (sizeof(tried_types) / sizeof(tried_types[0]))

/* Returns 1 if the chain can store some type, 2 if the stored values are not exact. */
static int is_possible(const char *chain)
{
    static const uint64_t shape[2] = { 4, 6 };
    int possible = 0;

    for (size_t i = 0; i < TRIED && possible < 2; i++)
        if (codecs_try_open(chain, tried_types[i], 2, shape) == BRC_OK)
            possible = brc_chain_is_lossy(codecs_chain) ? 2 : 1;
    return possible;
}

/* A codec of this kind by chance, in a list that chunks of two axes may have. What one
 * codec has lost, another one may lose anew: there is one such in a chain. */
static void add_random(brc_buf *chain, const char *kind, int *lossy, uint64_t *random)
{
    brc_iter *it;
    const brc_codec_info *info;
    uint64_t seen = 0, at = codec_kit_random(random) % 64, which = codec_kit_random(random);
    const codec_list *list;

    for (int turn = 0; turn < 64 && seen <= at; turn++) {
        ck_assert_int_eq(brc_registry_list(&it, codecs_reg, BRC_LIST_CODECS, &codecs_err), BRC_OK);
        while (brc_next(it, &info, &codecs_err) == 1) {
            list = codec_list_of(info->name, which % MOST_LISTS);
            if (list == NULL)
                list = codec_list_of(info->name, 0);
            if (strcmp(info->kind, kind) != 0 || list == NULL || list->tame ||
                leaves_bits_out(list) ||
                (list->ndim != -1 && list->ndim != 2) || seen++ != at)
                continue;
            int loses = is_possible(list->list) == 2;
            if (!loses || !*lossy)
                add_codec(chain, info, list);
            *lossy |= loses;
            break;
        }
        brc_iter_free(it);
    }
}

LOOP(P16_chains_by_chance_hold_what_the_kit_asks, 0, 4)
{
    uint64_t random = 77 + (uint64_t)_i;
    int ran = 0;

    for (int n = 0; n < 12; n++) {
        char why[2048] = "";
        int lossy = 0;
        brc_buf chain = BRC_BUF_INIT;
        for (uint64_t k = codec_kit_random(&random) % 3; k > 0; k--)
            add_random(&chain, "array->array", &lossy, &random);
        add_random(&chain, "array->bytes", &lossy, &random);
        for (uint64_t k = codec_kit_random(&random) % 4; k > 0; k--)
            add_random(&chain, "bytes->bytes", &lossy, &random);
        ck_assert_int_eq(brc_buf_printf(&chain, NULL, "]"), BRC_OK);
        codec_kit kit = { .reg = codecs_reg,
                          .codecs = (const char *)chain.data,
                          .ndim = 2,
                          .rounds = 2,
                          .seed = random };
        if (is_possible(kit.codecs)) {
            ck_assert_msg(codec_kit_run(&kit, why, sizeof(why)) == 0, "%s", why);
            ran++;
        }
        brc_buf_dispose(&chain);
    }
    ck_assert_int_gt(ran, 0);
}
