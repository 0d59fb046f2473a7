/* Shards whose inner chunks are the stored unit, as a stranger may have made them: taken
 * apart, each part decoded, every byte of them wrong once in every way. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../codecs/lib/crc32c_sum.h"
#include "../../src/zarr/stored/shard.h"
#include "../../src/zarr/transfer.h"
#include "../kit/exchange_kit.h"
#include "../kit/suite.h"

TEST_SUITE(shard_split);

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define CRC "{\"name\":\"crc32c\"}"
#define GZIP "{\"name\":\"gzip\",\"configuration\":{\"level\":1}}"
#define SHARD(inner, codecs, index, where)                                                      \
    "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":" inner ",\"codecs\":["  \
    codecs "],\"index_codecs\":[" index "],\"index_location\":\"" where "\"}}"
#define DOCUMENT(codecs)                                                                        \
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[4,4],\"data_type\":\"uint16\","      \
    "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[4,4]}},"          \
    "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":5,\"codecs\":[" codecs "]}"

static const struct {
    const char *document;
    int checked; /* every byte is under a checksum */
} shards[] = {
    { DOCUMENT(SHARD("[2,2]", LITTLE "," CRC, LITTLE "," CRC, "end")), 1 },
    { DOCUMENT(SHARD("[2,2]", LITTLE, LITTLE, "start")), 0 },
    { DOCUMENT(SHARD("[2,2]", SHARD("[1,2]", LITTLE "," CRC, LITTLE "," CRC, "start"),
                     LITTLE "," CRC, "end")),
      1 },
    { DOCUMENT(SHARD("[2,2]", LITTLE "," GZIP "," CRC, LITTLE "," CRC, "end")), 1 },
};
#define SHARDS (int)(sizeof(shards) / sizeof(shards[0]))

/* One shard of 4 by 4 elements, in a repository of its own. */
typedef struct shard_trial {
    exchange_kit kit;
    brc_array *a;
    brc_scratch *scratch;
    brc_shard_parts parts;
    uint16_t plain[16], got[16];
    brc_buf stored, part;
} shard_trial;

static void shard_begin(shard_trial *x, int i)
{
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;

    memset(x, 0, sizeof(*x));
    exchange_start(&x->kit);
    spec.metadata_json = shards[i].document;
    ck_assert_msg(brc_array_create(&x->a, x->kit.session, "/a", &spec, &x->kit.err) == BRC_OK,
                  "%s", x->kit.err.message);
    for (uint16_t k = 0; k < 16; k++)
        x->plain[k] = k % 4 < 2 && k < 8 ? 5 : (uint16_t)(k * 300);
    ck_assert_int_eq(brc_array_write(x->a, NULL, x->plain, sizeof(x->plain), &x->kit.err), BRC_OK);
    ck_assert_int_eq(brc_key_get(&x->stored, x->kit.session, "a/c/0/0", NULL, NULL,
                                 &x->kit.err), BRC_OK);
    ck_assert_int_eq(brc_scratch_new(&x->scratch, &x->kit.err), BRC_OK);
    ck_assert_int_gt(x->a->meta.nlevels, 0);
}

static void shard_end(shard_trial *x)
{
    brc_scratch_free(x->scratch);
    brc_array_free(x->a);
    free(x->parts.items);
    brc_buf_dispose(&x->stored);
    brc_buf_dispose(&x->part);
    exchange_stop(&x->kit);
}

/* Decodes one part into its place in x->got. */
static int take_part(shard_trial *x, const brc_shard_part *part)
{
    const brc_meta *m = &x->a->meta;
    const uint64_t *chunk = m->grid.chunk;

    x->part.len = 0;
    int rc = brc_chain_decode(m->forms->chain, x->scratch, part->bytes, NULL, &x->part,
                              &x->kit.err);
    if (rc < 0)
        return rc;
    ck_assert_uint_eq(x->part.len, chunk[0] * chunk[1] * 2);
    for (uint64_t row = 0; row < chunk[0]; row++)
        memcpy(x->got + (part->index[0] * chunk[0] + row) * 4 + part->index[1] * chunk[1],
               x->part.data + row * chunk[1] * 2, chunk[1] * 2);
    return BRC_OK;
}

/* Reads these bytes as a shard: x->got, or an error's code. */
static int take_shard(shard_trial *x, brc_span bytes)
{
    static const uint64_t outer[BRC_MAX_NDIM];

    for (int i = 0; i < 16; i++)
        x->got[i] = 5;
    int rc = brc_shard_split(&x->parts, &x->a->meta, x->scratch, outer, bytes, &x->kit.err);
    for (size_t i = 0; i < x->parts.n && rc == BRC_OK; i++) {
        const brc_shard_part *part = &((brc_shard_part *)x->parts.items)[i];
        ck_assert(part->bytes.data >= bytes.data &&
                  part->bytes.data + part->bytes.len <= bytes.data + bytes.len);
        rc = take_part(x, part);
    }
    return rc;
}

CASE("shards", .timeout = 60);

LOOP(X6_every_byte_of_a_shard_that_is_taken_apart, 0, SHARDS)
{
    shard_trial x;
    int right = 0;

    shard_begin(&x, _i);
    brc_span bytes = { x.stored.data, x.stored.len };
    ck_assert_int_eq(take_shard(&x, bytes), BRC_OK);
    ck_assert_mem_eq(x.got, x.plain, sizeof(x.plain));
    for (size_t at = 0; at < x.stored.len; at++) {
        uint8_t old = x.stored.data[at];
        for (int flip = 1; flip < 256; flip++) {
            x.stored.data[at] = (uint8_t)(old ^ flip);
            int rc = take_shard(&x, bytes);
            ck_assert_msg(rc == BRC_OK || rc == BRC_ECORRUPT, "byte %zu ^ %d: %s", at, flip,
                          x.kit.err.message);
            ck_assert(rc < 0 || !shards[_i].checked ||
                      memcmp(x.got, x.plain, sizeof(x.plain)) == 0);
            right += rc == BRC_OK;
        }
        x.stored.data[at] = old;
    }
    ck_assert_int_eq(right > 0, !shards[_i].checked);
    for (size_t cut = 0; cut < x.stored.len; cut++)
        ck_assert_int_eq(take_shard(&x, (brc_span){ x.stored.data, cut }), BRC_ECORRUPT);
    shard_end(&x);
}

/* ---- indexes that lie ----------------------------------------------------------------- */

#define NONE UINT64_MAX

/* Layout 1: the index of four entries, 64 bytes, and behind it three chunks of 8. */
static const struct {
    uint64_t offset, len;
    int code;
} entries[] = {
    { NONE, NONE, BRC_OK },
    { 64, 8, BRC_OK }, /* the same bytes twice: ranges may be shared      */
    { 66, 8, BRC_OK }, /* and overlap                                     */
    { 80, 8, BRC_OK },
    { 81, 8, BRC_ECORRUPT },
    { 88, 8, BRC_ECORRUPT },
    { 88, 0, BRC_ECORRUPT }, /* a chunk has bytes                         */
    { 64, 7, BRC_ECORRUPT },
    { 64, 9, BRC_ECORRUPT },
    { 63, 8, BRC_ECORRUPT }, /* a part of the index                       */
    { 0, 8, BRC_ECORRUPT },
    { 0, 0, BRC_ECORRUPT },
    { NONE, 8, BRC_ECORRUPT },
    { 64, NONE, BRC_ECORRUPT },
    { NONE - 1, NONE, BRC_ECORRUPT },
    { 64, NONE - 63, BRC_ECORRUPT }, /* their sum is 0                    */
    { NONE - 7, 8, BRC_ECORRUPT },
    { 64, UINT64_C(1) << 63, BRC_ECORRUPT },
};

EACH(X6_an_index_that_lies, entries)
{
    shard_trial x;

    shard_begin(&x, 1);
    ck_assert_uint_eq(x.stored.len, 64 + 3 * 8);
    for (size_t number = 0; number < 4; number++) {
        brc_buf lie = BRC_BUF_INIT;
        ck_assert_int_eq(brc_buf_append(&lie, x.stored.data, x.stored.len, NULL), BRC_OK);
        brc_put_u64le(lie.data + 16 * number, entries[_i].offset);
        brc_put_u64le(lie.data + 16 * number + 8, entries[_i].len);
        int rc = take_shard(&x, (brc_span){ lie.data, lie.len });
        ck_assert_msg(rc == entries[_i].code, "entry %zu: %d, %s", number, rc, x.kit.err.message);
        brc_buf_dispose(&lie);
    }
    shard_end(&x);
}

/* ---- on import ------------------------------------------------------------------------ */

static void shard_input(shard_trial *x, const char *dir, const void *data, size_t len)
{
    char name[64];

    snprintf(name, sizeof(name), "%s/zarr.json", dir);
    exchange_text(&x->kit, name, shards[3].document);
    snprintf(name, sizeof(name), "%s/c/0/0", dir);
    exchange_file(&x->kit, name, data, len);
}

/* 4 MiB of zeros in a chunk of 8 bytes. Nothing of the import stays. */
TEST(X6_a_bomb_in_a_shard_is_refused_on_import)
{
    shard_trial x;
    int kind;
    brc_buf bomb = BRC_BUF_INIT, zeros = BRC_BUF_INIT, index = BRC_BUF_INIT;
    uint8_t checksum[4];
    const brc_shard_level *level;

    shard_begin(&x, 3);
    ck_assert_int_eq(brc_buf_reserve(&zeros, 4 << 20, NULL), BRC_OK);
    memset(zeros.data, 0, 4 << 20);
    exchange_gzip(&bomb, zeros.data, 4 << 20);
    brc_put_u32le(checksum, brc_crc32c(bomb.data, bomb.len));
    ck_assert_int_eq(brc_buf_append(&bomb, checksum, 4, NULL), BRC_OK);
    uint8_t table[64];
    memset(table, 0xff, sizeof(table));
    brc_put_u64le(table, 0);
    brc_put_u64le(table + 8, bomb.len);
    level = &x.a->meta.levels[0];
    ck_assert_int_eq(brc_chain_encode(level->index, x.scratch, (brc_span){ table, 64 }, &index,
                                      &x.kit.err),
                     BRC_OK);
    ck_assert_int_eq(brc_buf_append(&bomb, index.data, index.len, NULL), BRC_OK);
    shard_input(&x, "bomb", bomb.data, bomb.len);
    ck_assert_int_eq(brc_import(x.kit.session, exchange_path(&x.kit, "bomb"), "/bomb", NULL,
                                &x.kit.err),
                     BRC_ECORRUPT);
    ck_assert_msg(strstr(x.kit.err.message, "decode to more than 8 bytes") != NULL, "%s",
                  x.kit.err.message);
    ck_assert_int_eq(brc_node_kind(&kind, x.kit.session, "/bomb", &x.kit.err), BRC_OK);
    ck_assert_int_eq(kind, 0);
    brc_buf_dispose(&bomb);
    brc_buf_dispose(&zeros);
    brc_buf_dispose(&index);
    shard_end(&x);
}
