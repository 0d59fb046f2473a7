/* Chunks merged three ways against a plain merge of elements in memory: random versions, of every
 * data type, and the box of elements by itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/buf.h"
#include "../../src/nd/dtype.h"
#include "../kit/merge_kit.h"
#include "../kit/suite.h"

TEST_SUITE(merge_elements);

#define BYTES "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define NUMBERS { "0", "1", "2", "3" }
#define PAIRS { "[0, 0]", "[1, 0]", "[0, 1]", "[2, 1]" }
#define PLAIN(name) { "\"" name "\"", BYTES, NUMBERS }
#define PAIR(name) { "\"" name "\"", BYTES, PAIRS }
#define NAMED(name, config) "{\"name\":\"" name "\",\"configuration\":" config "}"

/* One for each data type that there is: the test fails if one is missing. */
static const merge_type types[] = {
    { "\"bool\"", BYTES, { "false", "true", "false", "true" } },
    PLAIN("int8"), PLAIN("int16"), PLAIN("int32"), PLAIN("int64"),
    PLAIN("uint8"), PLAIN("uint16"), PLAIN("uint32"), PLAIN("uint64"),
    { "\"float16\"", BYTES, { "0", "-0.0", "\"0x7e01\"", "1.5" } },
    { "\"float32\"", BYTES, { "0", "-0.0", "\"0x7fc00001\"", "\"0x7fc00002\"" } },
    { "\"float64\"", BYTES, { "0", "-0.0", "NaN", "\"0x7ff8000000000001\"" } },
    PAIR("complex64"), PAIR("complex128"), PAIR("complex_float16"), PAIR("complex_float32"),
    PAIR("complex_float64"),
    { "\"int2\"", BYTES, { "0", "1", "-1", "-2" } }, PLAIN("int4"), PLAIN("uint2"), PLAIN("uint4"),
    PLAIN("bfloat16"), PLAIN("float8_e3m4"), PLAIN("float8_e4m3"), PLAIN("float8_e4m3b11fnuz"),
    PLAIN("float8_e4m3fnuz"), PLAIN("float8_e4m3fn"), PLAIN("float8_e5m2"),
    PLAIN("float8_e5m2fnuz"),
    { "\"float8_e8m0fnu\"", BYTES, { "1", "2", "4", "8" } },
    PLAIN("float6_e2m3fn"), PLAIN("float6_e3m2fn"), PLAIN("float4_e2m1fn"),
    PAIR("complex_bfloat16"), PAIR("complex_float8_e3m4"), PAIR("complex_float8_e4m3"),
    PAIR("complex_float8_e4m3b11fnuz"), PAIR("complex_float8_e4m3fnuz"),
    PAIR("complex_float8_e5m2"), PAIR("complex_float8_e5m2fnuz"),
    { "\"complex_float8_e8m0fnu\"", BYTES, { "[1, 1]", "[2, 1]", "[1, 2]", "[4, 4]" } },
    PAIR("complex_float6_e2m3fn"), PAIR("complex_float6_e3m2fn"), PAIR("complex_float4_e2m1fn"),
    { "\"string\"", "{\"name\":\"vlen-utf8\"}", { "\"\"", "\"a\"", "\"b\"", "\"longer\"" } },
    { "\"bytes\"", "{\"name\":\"vlen-bytes\"}", { "\"\"", "\"YQ==\"", "\"YmI=\"", "\"AAAA\"" } },
    { "\"variable_length_bytes\"", "{\"name\":\"vlen-bytes\"}",
      { "\"\"", "\"YQ==\"", "\"YmI=\"", "\"AAAA\"" } },
    { "\"binary\"", "{\"name\":\"vlen-bytes\"}", { "\"\"", "\"YQ==\"", "\"YmI=\"", "\"AAAA\"" } },
    { NAMED("fixed_length_utf32", "{\"length_bytes\":8}"), BYTES,
      { "\"\"", "\"a\"", "\"ab\"", "\"b\"" } },
    { NAMED("null_terminated_bytes", "{\"length_bytes\":4}"), BYTES,
      { "\"\"", "\"YQ==\"", "\"YmI=\"", "\"YWE=\"" } },
    { NAMED("raw_bytes", "{\"length_bytes\":3}"), BYTES,
      { "\"AAAA\"", "\"AAAB\"", "\"AQAA\"", "\"CQkJ\"" } },
    { NAMED("numpy.datetime64", "{\"unit\":\"ns\",\"scale_factor\":1}"), BYTES,
      { "1600000000000000000", "1600000000000000001", "\"NaT\"", "1600000000000000005" } },
    { NAMED("numpy.timedelta64", "{\"unit\":\"s\",\"scale_factor\":10}"), BYTES,
      { "0", "10", "\"NaT\"", "-7" } },
    { NAMED("struct", "{\"fields\":[{\"name\":\"a\",\"data_type\":\"int32\"},"
                      "{\"name\":\"b\",\"data_type\":\"uint8\"}]}"),
      BYTES,
      { "{\"a\":0,\"b\":0}", "{\"a\":1,\"b\":0}", "{\"a\":0,\"b\":1}", "{\"a\":1,\"b\":1}" } },
    { NAMED("structured", "{\"fields\":[[\"a\",\"int16\"],[\"b\",\"uint8\"]]}"), BYTES,
      { "\"AAAA\"", "\"AQAA\"", "\"AAAB\"", "\"AQAB\"" } },
    { NAMED("zarrs.optional", "{\"name\":\"int32\"}"),
      "{\"name\":\"zarrs.optional\",\"configuration\":{\"mask_codecs\":[{\"name\":\"packbits\"}],"
      "\"data_codecs\":[" BYTES "]}}",
      { "null", "[0]", "[1]", "[2]" } },
    { "\"r24\"", BYTES, { "[0, 0, 0]", "[0, 0, 1]", "[1, 0, 0]", "[9, 9, 9]" } },
};
#define TYPES (sizeof(types) / sizeof(types[0]))

/* ---- random versions -------------------------------- */

static uint64_t random_below(uint64_t *state, uint64_t n)
{
    return scenario_below(state, n);
}

static uint64_t volume(const merge_version *v)
{
    uint64_t n = 1;
    for (int i = 0; i < v->ndim; i++)
        n *= v->shape[i];
    return n;
}

static int advance(int ndim, const uint64_t *shape, uint64_t *at)
{
    for (int i = ndim - 1; i >= 0; i--) {
        if (++at[i] < shape[i])
            return 1;
        at[i] = 0;
    }
    return 0;
}

/* Its element, or -1. */
static int value_at(const merge_version *v, const uint64_t *at)
{
    uint64_t n = 0;
    for (int i = 0; i < v->ndim; i++) {
        if (at[i] >= v->shape[i])
            return -1;
        n = n * v->shape[i] + at[i];
    }
    return v->values[n];
}

static void set_at(merge_version *v, const uint64_t *at, int value)
{
    uint64_t n = 0;
    for (int i = 0; i < v->ndim; i++)
        n = n * v->shape[i] + at[i];
    v->values[n] = (uint8_t)value;
}

/* With another shape: what both hold stays, the rest is fill value. */
static void reshape_version(merge_version *v, const uint64_t *shape)
{
    const merge_version before = *v;
    uint64_t at[BRC_MAX_NDIM] = {0};
    memcpy(v->shape, shape, sizeof(v->shape));
    if (volume(v) == 0)
        return;
    do {
        const int old = value_at(&before, at);
        set_at(v, at, old < 0 ? v->fill : old);
    } while (advance(v->ndim, v->shape, at));
}

static void change_some(merge_version *v, uint64_t *random)
{
    uint64_t at[BRC_MAX_NDIM] = {0}, start[BRC_MAX_NDIM], count[BRC_MAX_NDIM];
    if (volume(v) == 0)
        return;
    for (int i = 0; i < v->ndim; i++) {
        start[i] = random_below(random, v->shape[i]);
        count[i] = v->shape[i] - start[i];
        count[i] = 1 + random_below(random, count[i] < 5 ? count[i] : 5);
    }
    const int all_one = random_below(random, 3) == 0, one = (int)random_below(random, MERGE_VALUES);
    do {
        uint64_t place[BRC_MAX_NDIM];
        for (int i = 0; i < v->ndim; i++)
            place[i] = start[i] + at[i];
        if (all_one || random_below(random, 2) == 0)
            set_at(v, place, all_one ? one : (int)random_below(random, MERGE_VALUES));
    } while (advance(v->ndim, count, at));
}

static int same_value(const merge_type *type, int a, int b)
{
    return a == b || (a >= 0 && b >= 0 && strcmp(type->values[a], type->values[b]) == 0);
}

/* ---- what must come out -------------------------------- */

typedef struct expectation {
    merge_version result;
    uint64_t conflicts, lost[BRC_SIDES];
} expectation;

static void expect_element(const merge_kit *k, expectation *e, const uint64_t *at)
{
    const merge_version *base = &k->v[BRC_SIDE_BASE];
    int b = base->is_there ? value_at(base, at) : -1;
    const int o = value_at(&k->v[BRC_SIDE_OURS], at), t = value_at(&k->v[BRC_SIDE_THEIRS], at);
    int value = o;
    if (b < 0 && base->is_there)
        b = base->fill;
    if (o < 0)
        value = t < 0 ? e->result.fill : t;
    else if (t < 0 || same_value(k->type, o, t) || (b >= 0 && same_value(k->type, b, t)))
        value = o;
    else if (b >= 0 && same_value(k->type, b, o))
        value = t;
    else
        e->conflicts++;
    set_at(&e->result, at, value);
}

static void expect_lost(const merge_kit *k, expectation *e, int side)
{
    const merge_version *v = &k->v[side], *base = &k->v[BRC_SIDE_BASE];
    uint64_t at[BRC_MAX_NDIM] = {0};
    if (!base->is_there || volume(v) == 0)
        return;
    do {
        const int b = value_at(base, at);
        if (value_at(&e->result, at) < 0)
            e->lost[side] += !same_value(k->type, value_at(v, at), b < 0 ? base->fill : b);
    } while (advance(v->ndim, v->shape, at));
}

/* An axis that both changed differently has the extent of ours: as where ours is favoured. */
static void expect(const merge_kit *k, expectation *e)
{
    const merge_version *o = &k->v[BRC_SIDE_OURS], *t = &k->v[BRC_SIDE_THEIRS];
    const merge_version *b = &k->v[BRC_SIDE_BASE];
    uint64_t at[BRC_MAX_NDIM] = {0};
    memset(e, 0, sizeof(*e));
    e->result = *o;
    for (int i = 0; i < o->ndim; i++)
        if (b->is_there && o->shape[i] == b->shape[i])
            e->result.shape[i] = t->shape[i];
    if (volume(&e->result) > 0)
        do
            expect_element(k, e, at);
        while (advance(o->ndim, e->result.shape, at));
    expect_lost(k, e, BRC_SIDE_OURS);
    expect_lost(k, e, BRC_SIDE_THEIRS);
}

/* ---- one trial -------------------------------- */

static void random_sides(merge_kit *k, uint64_t *random, int ndim)
{
    merge_version *b = &k->v[BRC_SIDE_BASE];
    memset(k->v, 0, sizeof(k->v));
    b->ndim = ndim;
    b->is_there = random_below(random, 8) != 0;
    b->fill = (int)random_below(random, MERGE_VALUES);
    b->shard = random_below(random, 4) == 0 ? 2 : 0;
    const int resizes = random_below(random, 2) == 0 && b->is_there;
    for (int i = 0; i < ndim; i++) {
        b->chunk[i] = 1 + random_below(random, 5);
        b->shape[i] = 1 + random_below(random, ndim > 2 ? 6 : 20);
        b->shape[i] *= random_below(random, 30) != 0;
    }
    memset(b->values, b->fill, sizeof(b->values));
    for (uint64_t i = random_below(random, 5); i > 0; i--)
        change_some(b, random);
    for (int s = BRC_SIDE_OURS; s <= BRC_SIDE_THEIRS; s++) {
        uint64_t shape[BRC_MAX_NDIM] = {0};
        k->v[s] = *b;
        k->v[s].is_there = 1;
        for (int i = 0; i < ndim; i++)
            shape[i] = resizes && random_below(random, 2) == 0
                           ? random_below(random, ndim > 2 ? 7 : 22)
                           : b->shape[i];
        reshape_version(&k->v[s], shape);
        for (uint64_t i = random_below(random, 5); i > 0; i--)
            change_some(&k->v[s], random);
    }
}

static void check_merge(merge_kit *k, const char *label)
{
    expectation *e = malloc(sizeof(*e));
    ck_assert_ptr_nonnull(e);
    expect(k, e);
    merge_kit_run(k, &e->result);
    ck_assert_msg(k->merge.map != BRC_CHUNKS_APART, "%s: %s", label, k->merge.why);
    merge_kit_check(k, &e->result, label);
    uint64_t lost = e->lost[BRC_SIDE_OURS] + e->lost[BRC_SIDE_THEIRS];
    ck_assert_msg(k->elements == e->conflicts + lost, "%s: %llu conflicts, not %llu + %llu", label,
                  (unsigned long long)k->elements, (unsigned long long)e->conflicts,
                  (unsigned long long)lost);
    for (int s = BRC_SIDE_OURS; s <= BRC_SIDE_THEIRS; s++)
        ck_assert_msg(k->merge.lost[s] == e->lost[s], "%s: side %d lost %llu, not %llu", label, s,
                      (unsigned long long)k->merge.lost[s], (unsigned long long)e->lost[s]);
    const uint64_t changed = k->merge.changed;
    k->is_trial = 1;
    merge_kit_run(k, &e->result);
    k->is_trial = 0;
    ck_assert_msg(k->elements == e->conflicts + lost && k->merge.changed == changed,
                  "%s: another result where nothing is stored", label);
    free(e);
}

/* Both directions, and each side favoured: the same elements then, whichever is called ours. */
static void check_mirrored(merge_kit *k, const char *label)
{
    const merge_version ours = k->v[BRC_SIDE_OURS];
    const brc_entry entry = k->side[BRC_SIDE_OURS];
    check_merge(k, label);
    k->v[BRC_SIDE_OURS] = k->v[BRC_SIDE_THEIRS];
    k->side[BRC_SIDE_OURS] = k->side[BRC_SIDE_THEIRS];
    k->v[BRC_SIDE_THEIRS] = ours;
    k->side[BRC_SIDE_THEIRS] = entry;
    check_merge(k, label);
}

static void run_trials(const merge_type *type, uint64_t seed, int trials)
{
    merge_kit *k = malloc(sizeof(*k));
    ck_assert_ptr_nonnull(k);
    merge_kit_start(k, type);
    for (int i = 0; i < trials; i++) {
        char label[200];
        uint64_t random = seed + (uint64_t)i;
        random_sides(k, &random, i % 4);
        for (int s = 0; s < BRC_SIDES; s++)
            merge_kit_store(k, s);
        snprintf(label, sizeof(label), "%s, seed %llu", type->dtype,
                 (unsigned long long)(seed + (uint64_t)i));
        check_mirrored(k, label);
    }
    scenario_whole(&k->t);
    merge_kit_stop(k);
    free(k);
}

CASE("merge_elements", .timeout = 120);

LOOP(every_type, 0, TYPES)
{
    run_trials(&types[_i], (uint64_t)_i * 1000, 6);
}

LOOP(many_random_merges, 0, 2)
{
    run_trials(&types[_i == 0 ? 3 : 44], 100000 + (uint64_t)_i * 1000, 60);
}

TEST(no_type_is_left_out)
{
    size_t n;
    const brc_dtype_spec *specs = brc_dtype_builtins(&n);
    for (size_t i = 0; i < n; i++) {
        char quoted[64];
        int found = 0;
        snprintf(quoted, sizeof(quoted), "\"%s\"", specs[i].name);
        for (size_t j = 0; j < TYPES; j++)
            found |= strstr(types[j].dtype, quoted) != NULL;
        ck_assert_msg(found || strcmp(specs[i].name, "r<bits>") == 0, "%s", specs[i].name);
    }
}
