/* brc_array_stats(): beside a plain computation, for each type; what is kept of statistics, and
 * when rows are dropped. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/zarr/array/array.h"
#include "../kit/ios.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"
#include "../kit/versions.h"

SCENARIO_NUMBERS_FIXTURE(t, 4096, 1024)

TEST_SUITE(array_stats);

/* ---- a plain computation -------------------------------- */

enum { KINDS_BOOL, KINDS_INT, KINDS_UINT, KINDS_FLOAT, KINDS_TIME, KINDS_COMPLEX };

static const struct typed {
    const char *dtype, *fill;
    int kind;
    size_t item;
} typed[] = {
    { "bool", "true", KINDS_BOOL, 1 },
    { "int8", "-3", KINDS_INT, 1 },
    { "int16", "7", KINDS_INT, 2 },
    { "int32", "-70000", KINDS_INT, 4 },
    { "int64", "5", KINDS_INT, 8 },
    { "uint8", "255", KINDS_UINT, 1 },
    { "uint16", "0", KINDS_UINT, 2 },
    { "uint32", "4000000000", KINDS_UINT, 4 },
    { "uint64", "18446744073709551615", KINDS_UINT, 8 },
    { "int4", "-8", KINDS_INT, 1 },
    { "uint2", "3", KINDS_UINT, 1 },
    { "float16", "0.5", KINDS_FLOAT, 2 },
    { "bfloat16", "\"NaN\"", KINDS_FLOAT, 2 },
    { "float8_e4m3", "1", KINDS_FLOAT, 1 },
    { "float32", "\"NaN\"", KINDS_FLOAT, 4 },
    { "float64", "-0.25", KINDS_FLOAT, 8 },
    { "{\"name\":\"numpy.datetime64\",\"configuration\":{\"unit\":\"ns\",\"scale_factor\":1}}",
      "\"NaT\"", KINDS_TIME, 8 },
    { "{\"name\":\"numpy.timedelta64\",\"configuration\":{\"unit\":\"D\",\"scale_factor\":1}}", "3",
      KINDS_TIME, 8 },
    { "complex64", "[3, 4]", KINDS_COMPLEX, 8 },
    { "complex128", "[0, 0]", KINDS_COMPLEX, 16 },
};

typedef struct naive {
    uint64_t n, nan, fill, infinite;
    long double sum, square, min, max, mean, std;
    uint8_t least[16], greatest[16];
} naive;

static long double magnitude(const uint8_t *p, size_t item)
{
    double parts[2];
    float small[2];
    if (item == 16) {
        memcpy(parts, p, 16);
        return hypot(parts[0], parts[1]);
    }
    memcpy(small, p, 8);
    return hypot((double)small[0], (double)small[1]);
}

/* Returns NaN for not-a-time too. */
static long double number_of(const struct typed *type, brc_array *a, const uint8_t *p)
{
    int64_t i = 0;
    uint64_t u = 0;
    float f;
    double d;
    if (type->kind == KINDS_COMPLEX)
        return magnitude(p, type->item);
    if (type->kind == KINDS_FLOAT && type->item == 4)
        return memcpy(&f, p, 4), (long double)f;
    if (type->kind == KINDS_FLOAT && type->item == 8)
        return memcpy(&d, p, 8), (long double)d;
    if (type->kind == KINDS_FLOAT)
        return (long double)a->meta.type->ops->number(a->meta.type, p);
    memcpy(&u, p, type->item);
    if (type->kind == KINDS_UINT || type->kind == KINDS_BOOL)
        return (long double)u;
    i = (int64_t)(u << (64 - 8 * type->item)) >> (64 - 8 * type->item);
    return type->kind == KINDS_TIME && i == INT64_MIN ? (long double)NAN : (long double)i;
}

static void naive_take(naive *out, const uint8_t *p, size_t item, long double v)
{
    if (isnan(v)) {
        out->nan++;
        return;
    }
    if (isinf(v))
        out->infinite++;
    if (out->n == 0 || v < out->min) {
        out->min = v;
        memcpy(out->least, p, item);
    }
    if (out->n == 0 || v > out->max) {
        out->max = v;
        memcpy(out->greatest, p, item);
    }
    out->sum += v;
    out->n++;
}

static void naive_of(naive *out, const struct typed *type, brc_array *a, const uint8_t *data,
                     size_t n)
{
    const uint8_t *fill = brc_array_describe(a)->fill;
    memset(out, 0, sizeof(*out));
    for (size_t i = 0; i < n; i++) {
        const uint8_t *p = data + i * type->item;
        out->fill += memcmp(p, fill, type->item) == 0;
        naive_take(out, p, type->item, number_of(type, a, p));
    }
    out->mean = out->sum / (long double)out->n;
    for (size_t i = 0; i < n; i++) {
        const long double v = number_of(type, a, data + i * type->item);
        if (!isnan(v))
            out->square += (v - out->mean) * (v - out->mean);
    }
    out->std = sqrtl(out->square / (long double)out->n);
}

static void near_enough(double found, long double wanted, long double scale)
{
    if (!isfinite(wanted)) {
        ck_assert_int_eq(isnan(found), isnan(wanted));
        ck_assert(isnan(found) || (long double)found == wanted);
        return;
    }
    ck_assert_msg(fabsl((long double)found - wanted) <= 1e-12L * scale, "%.17g is not %.17Lg",
                  found, wanted);
}

/* An end, as JSON has it: of the element, or of its magnitude. */
static void same_end(brc_array *a, const struct typed *type, const char *found,
                     const uint8_t *element, long double wanted)
{
    brc_buf text = BRC_BUF_INIT;
    if (type->kind == KINDS_COMPLEX) {
        near_enough(strtod(found, NULL), wanted, 1 + fabsl(wanted));
        return;
    }
    OK(&t, brc_element_format(&text, a, element, BRC_ELEMENT_JSON, &t.err));
    ck_assert_uint_eq(strlen(found), text.len);
    ck_assert_int_eq(memcmp(found, text.data, text.len), 0);
    brc_buf_dispose(&text);
}

/* ---- a result, with its bins -------------------------------- */

enum { MOST_BINS = 400 };

typedef struct whole_result {
    brc_array_summary s;
    size_t n, nbins;
    struct {
        char from[48], to[48];
        double low, high;
        uint64_t count;
    } bins[MOST_BINS];
} whole_result;

static void stats_with(whole_result *out, brc_array *a, const brc_array_stats_opts *opts)
{
    brc_iter *bins;
    const brc_stats_bin *bin;
    int rc;
    memset(out, 0, sizeof(*out));
    out->s = (brc_array_summary)BRC_ARRAY_SUMMARY_INIT;
    OK(&t, brc_array_stats(&out->s, &bins, a, opts, &t.err));
    while ((rc = brc_next(bins, &bin, &t.err)) == 1) {
        ck_assert_uint_lt(out->n, MOST_BINS);
        snprintf(out->bins[out->n].from, 48, "%s", bin->from);
        snprintf(out->bins[out->n].to, 48, "%s", bin->to != NULL ? bin->to : "");
        out->bins[out->n].low = bin->low;
        out->bins[out->n].high = bin->high;
        out->bins[out->n++].count = bin->count;
        out->nbins += bin->to != NULL;
    }
    ck_assert_int_eq(rc, 0);
    brc_iter_free(bins);
    ck_assert_uint_eq(out->nbins, (size_t)out->s.nbins);
    ck_assert_uint_eq(out->n - out->nbins, out->s.nvalues);
}

static void stats_of(whole_result *out, brc_array *a)
{
    stats_with(out, a, NULL);
}

static void stats_of_part(whole_result *out, brc_array *a, const brc_sel *sel)
{
    const brc_array_stats_opts opts = { sizeof(opts), sel, NULL };
    stats_with(out, a, &opts);
}

static void same_results(const whole_result *a, const whole_result *b)
{
    ck_assert_int_eq(memcmp(&a->s, &b->s, sizeof(a->s)), 0);
    ck_assert_uint_eq(a->n, b->n);
    ck_assert_int_eq(memcmp(a->bins, b->bins, sizeof(a->bins)), 0);
}

/* Edges and counts of the histogram are those of the elements, and so are values. */
static void check_bins(const whole_result *r, const struct typed *type, brc_array *a,
                       const uint8_t *data, size_t n)
{
    uint64_t counts[MOST_BINS] = { 0 }, inside = 0;
    ck_assert_uint_le(r->nbins, 20);
    for (size_t i = 0; i < n; i++) {
        const long double v = number_of(type, a, data + i * type->item);
        if (!isfinite(v))
            continue;
        inside++;
        for (size_t b = 0; b < r->n; b++)
            counts[b] += b < r->nbins ? v >= (long double)r->bins[b].low &&
                                            v < (long double)r->bins[b].high
                                      : v == (long double)r->bins[b].low;
    }
    for (size_t b = 0; b < r->n; b++) {
        ck_assert_msg(counts[b] == r->bins[b].count, "bin %zu, %s to %s: %llu, not %llu", b,
                      r->bins[b].from, r->bins[b].to, (unsigned long long)r->bins[b].count,
                      (unsigned long long)counts[b]);
        inside -= b < r->nbins ? counts[b] : 0;
        ck_assert(b == 0 || b >= r->nbins || r->bins[b].low == r->bins[b - 1].high);
    }
    ck_assert_uint_eq(inside, 0);
}

/* ---- every type -------------------------------- */

/* Elements that are near each other, or of any bits. */
static void put_elements(const struct typed *type, uint8_t *data, size_t n, int wild,
                         uint64_t *random)
{
    for (size_t i = 0; i < n; i++) {
        uint8_t *p = data + i * type->item;
        const uint64_t bits = scenario_random(random), more = scenario_random(random);
        const float f = (float)(250 + (double)(bits % 1000) / 10);
        const double d = -3 + (double)(bits % 100003) / 1e4;
        const int64_t near = (int64_t)(bits % 200) - 100;
        memset(p, 0, type->item);
        memcpy(p, &bits, type->item < 8 ? type->item : 8);
        if (type->item == 16)
            memcpy(p + 8, &more, 8);
        if (!wild && type->item == 4 && type->kind == KINDS_FLOAT)
            memcpy(p, &f, 4);
        else if (!wild && (type->kind == KINDS_COMPLEX || type->kind == KINDS_FLOAT) &&
                 type->item >= 8)
            memcpy(p, &d, 8);
        if (!wild && type->item == 16)
            memcpy(p + 8, &d, 8);
        if (!wild && type->item == 8 && type->kind != KINDS_FLOAT && type->kind != KINDS_COMPLEX)
            memcpy(p, &near, 8);
        if (type->kind == KINDS_BOOL)
            p[0] = bits & 1;
        if (strcmp(type->dtype, "int4") == 0)
            p[0] = (uint8_t)((int)(bits % 16) - 8);
        if (strcmp(type->dtype, "uint2") == 0)
            p[0] = bits % 4;
    }
}

static int sums_are_exact(const struct typed *type, int wild)
{
    return !wild || (type->kind != KINDS_FLOAT && type->kind != KINDS_COMPLEX);
}

/* Asks for the statistics, and compares them with a plain computation. */
static void check_result(whole_result *out, const brc_sel *sel, const struct typed *type,
                         brc_array *a, const uint8_t *data, size_t n, int wild)
{
    naive wanted;
    naive_of(&wanted, type, a, data, n);
    stats_of_part(out, a, sel);
    ck_assert_uint_eq(out->s.count, n);
    ck_assert_uint_eq(out->s.nan, wanted.nan);
    ck_assert_uint_eq(out->s.fill, wanted.fill);
    ck_assert_uint_eq(out->s.infinite, wanted.infinite);
    if (wanted.n > 0) {
        same_end(a, type, out->s.min, wanted.least, wanted.min);
        same_end(a, type, out->s.max, wanted.greatest, wanted.max);
    }
    if (wanted.n > 0 && sums_are_exact(type, wild) && wanted.infinite == 0) {
        near_enough(out->s.mean, wanted.mean, fabsl(wanted.max) + fabsl(wanted.min));
        near_enough(out->s.std, wanted.std, fabsl(wanted.max) + fabsl(wanted.min));
    }
    check_bins(out, type, a, data, n);
}

/* Chunks that the end cuts, chunks that were never written, and some thousand elements in one. */
static void check_type(const struct typed *type, int wild, int ndim, const uint64_t *shape,
                       const uint64_t *chunk, uint64_t rows)
{
    whole_result first, again;
    uint64_t random = 7, n = shape[0] * (ndim > 1 ? shape[1] : 1);
    uint8_t *data = calloc(n, type->item);
    brc_sel sel = BRC_SEL_INIT;
    brc_array *a = scenario_array(&t, "/x", type->dtype, ndim, shape, chunk, type->fill, NULL);
    sel_all(&sel, a);
    sel.count[0] = rows;
    const size_t some = (size_t)brc_sel_count(&sel);
    put_elements(type, data, some, wild, &random);
    OK(&t, brc_array_write(a, &sel, data, some * type->item, &t.err));
    sel_all(&sel, a);
    OK(&t, brc_array_read(a, &sel, data, n * type->item, &t.err));
    check_result(&first, NULL, type, a, data, n, wild);
    stats_of(&again, a);
    same_results(&first, &again);
    brc_array_free(a);
    OK(&t, brc_node_remove(t.session, "/x", &t.err));
    free(data);
}

CASE("types", .setup = t_numbers, .teardown = t_stop, .timeout = 120);

EACH(a_type_is_summed_up_as_plainly, typed)
{
    const uint64_t shape[] = { 71, 37 }, chunk[] = { 20, 16 };
    for (int wild = 0; wild < 2; wild++) {
        check_type(&typed[_i], wild, 2, shape, chunk, 50);
        check_type(&typed[_i], wild, 2, shape, chunk, 71);
    }
}

EACH(a_large_chunk_is_summed_up_as_plainly, typed)
{
    const uint64_t shape[] = { 70001 }, chunk[] = { 40000 };
    for (int wild = 0; wild < 2; wild++)
        check_type(&typed[_i], wild, 1, shape, chunk, 70001);
}

/* Boxes with and without steps, whole chunks and parts of them, some asked for again once whole
 * chunks have rows. */
EACH(a_part_is_summed_up_as_plainly, typed)
{
    static const char *const parts[] = { "[20:40,16:32]", "[3:71:7,5]", "[58]", "[:,30:37]",
                                         "[15:65,::17]", "[::3,1:36:5]", "[0:50]", "[4:4]" };
    const uint64_t shape[] = { 71, 37 }, chunk[] = { 20, 16 };
    const struct typed *type = &typed[_i];
    uint64_t random = 11;
    uint8_t *data = calloc(71 * 37, type->item);
    whole_result r;
    brc_sel sel = BRC_SEL_INIT;
    brc_array *a = scenario_array(&t, "/x", type->dtype, 2, shape, chunk, type->fill, NULL);
    OK(&t, brc_sel_parse(&sel, a, "[0:59]", &t.err));
    put_elements(type, data, 59 * 37, 0, &random);
    OK(&t, brc_array_write(a, &sel, data, 59 * 37 * type->item, &t.err));
    for (size_t i = 0; i < 2 * sizeof(parts) / sizeof(parts[0]); i++) {
        OK(&t, brc_sel_parse(&sel, a, parts[i / 2], &t.err));
        const size_t n = (size_t)brc_sel_count(&sel);
        OK(&t, brc_array_read(a, &sel, data, n * type->item, &t.err));
        check_result(&r, &sel, type, a, data, n, 0);
        if (i == 8)
            stats_of(&r, a);
    }
    brc_array_free(a);
    OK(&t, brc_node_remove(t.session, "/x", &t.err));
    free(data);
}

/* ---- what is kept -------------------------------- */

#define DAMAGE_CHUNKS                                                                         \
    "UPDATE blob SET data=zeroblob(length(data)) WHERE seq IN (SELECT place FROM object WHERE" \
    " kind=1 AND id IN (SELECT id FROM chunk_stats))"
#define KEPT "SELECT count(*) FROM chunk_stats"

CASE("kept", .setup = t_numbers, .teardown = t_stop);

static void stats_at(whole_result *out, const char *path)
{
    brc_array *a = scenario_array_at(&t, t.session, path);
    stats_of(out, a);
    brc_array_free(a);
}

/* Removes the array, so that the fsck of scenario_stop() does not find its damaged chunks. */
static void forget_numbers(void)
{
    OK(&t, brc_node_remove(t.session, "/a", &t.err));
    scenario_stop(&t);
    scenario_start(&t);
}

TEST(a_second_look_reads_no_chunk)
{
    whole_result first, again;
    stats_at(&first, "/a");
    ck_assert_int_eq(scenario_ask(&t, KEPT), 4);
    scenario_sql(&t, DAMAGE_CHUNKS);
    scenario_reopen(&t);
    stats_at(&again, "/a");
    same_results(&first, &again);
    ck_assert_str_eq(again.s.max, "4095");
    scenario_sql(&t, "DELETE FROM chunk_stats");
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    FAILS(&t, BRC_ECORRUPT, brc_array_stats(&again.s, NULL, a, NULL, &t.err));
    ck_assert_ptr_nonnull(strstr(t.err.message, "/a chunk (0)"));
    brc_array_free(a);
    forget_numbers();
}

/* Chunks within the part take their rows, and only those that it cuts are read. */
TEST(a_part_reads_the_chunks_that_it_cuts)
{
    whole_result r;
    brc_sel sel = BRC_SEL_INIT;
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    OK(&t, brc_sel_parse(&sel, a, "[1024:3000]", &t.err));
    stats_of_part(&r, a, &sel);
    ck_assert_int_eq(scenario_ask(&t, KEPT), 1); /* none of the cut one */
    ck_assert_str_eq(r.s.max, "2999");
    stats_of(&r, a);
    brc_array_free(a);
    scenario_sql(&t, DAMAGE_CHUNKS);
    scenario_reopen(&t);
    a = scenario_array_at(&t, t.session, "/a");
    OK(&t, brc_sel_parse(&sel, a, "[1024:3072]", &t.err));
    stats_of_part(&r, a, &sel);
    ck_assert_uint_eq(r.s.count, 2048);
    ck_assert_str_eq(r.s.min, "1024");
    ck_assert_str_eq(r.s.max, "3071");
    OK(&t, brc_sel_parse(&sel, a, "[1024:3071]", &t.err));
    const brc_array_stats_opts opts = { sizeof(opts), &sel, NULL };
    FAILS(&t, BRC_ECORRUPT, brc_array_stats(&r.s, NULL, a, &opts, &t.err));
    ck_assert_ptr_nonnull(strstr(t.err.message, "/a chunk (2)"));
    sel.count[0] = 4000;
    FAILS(&t, BRC_EINVAL, brc_array_stats(&r.s, NULL, a, &opts, &t.err));
    brc_array_free(a);
    forget_numbers();
}

TEST(a_new_version_costs_what_changed)
{
    whole_result first, again;
    stats_at(&first, "/a");
    scenario_sql(&t, DAMAGE_CHUNKS);
    scenario_reopen(&t);
    int32_t numbers[1024];
    for (int i = 0; i < 1024; i++)
        numbers[i] = 9000 + i % 2;
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    brc_sel sel = BRC_SEL_INIT;
    OK(&t, brc_sel_parse(&sel, a, "[1024:2048]", &t.err));
    OK(&t, brc_array_write(a, &sel, numbers, sizeof(numbers), &t.err));
    stats_of(&again, a);
    ck_assert_int_eq(scenario_ask(&t, KEPT), 5);
    ck_assert_str_eq(again.s.max, "9001");
    near_enough(again.s.mean, first.s.mean + (9000.5L - (1024 + 511.5L)) / 4, 1e4L);
    scenario_commit(&t, "second");
    stats_of(&again, a);
    ck_assert_int_eq(scenario_ask(&t, KEPT), 5);
    brc_array_free(a);
    forget_numbers();
}

TEST(rows_go_with_their_chunks)
{
    whole_result r;
    stats_at(&r, "/a");
    scenario_no_window(&t);
    scenario_collect(&t, 0);
    ck_assert_int_eq(scenario_ask(&t, KEPT), 4);
    scenario_numbers(&t, "/b", 1024, 1024, 77);
    stats_at(&r, "/b");
    ck_assert_int_eq(scenario_ask(&t, KEPT), 5);
    OK(&t, brc_session_discard(t.session, &t.err));
    scenario_collect(&t, 0);
    ck_assert_int_eq(scenario_ask(&t, KEPT), 4);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM chunk_stats WHERE id NOT IN"
                                      " (SELECT id FROM object)"),
                     0);
}

/* A row that does not match its checksum is not there, nor is one that cannot be true. */
TEST(a_damaged_row_counts_as_missing)
{
    whole_result first, again;
    stats_at(&first, "/a");
    scenario_sql(&t, "UPDATE chunk_stats SET summary=substr(summary, 1, 20)");
    scenario_reopen(&t);
    stats_at(&again, "/a");
    same_results(&first, &again);
    scenario_whole(&t); /* they are right again */
    static const char *const wrong[] = {
        "x''", "x'00'", "x'ff'", "zeroblob(900)", "substr(summary, 1, length(summary)-1)",
        "CAST(summary || x'00' AS BLOB)", "x'80088000' || substr(summary, 3)",
        "substr(summary, 1, 30) || x'ffffffff' || substr(summary, 35)", "'text'", "7", "NULL",
        "x'05' || substr(summary, 2)", /* of a chunk of five elements, not four */
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        char sql[500];
        snprintf(sql, sizeof(sql),
                 "UPDATE OR IGNORE chunk_stats SET summary=CAST(%s AS BLOB), checksum="
                 "row_sum('chunk_stats', id, form, CAST(%s AS BLOB)) WHERE %s IS NOT NULL",
                 wrong[i], wrong[i], wrong[i]);
        scenario_sql(&t, sql);
        scenario_reopen(&t);
        stats_at(&again, "/a");
        same_results(&first, &again);
    }
}

static int note_statistics(void *ctx, const brc_damage *damage)
{
    *(int *)ctx += strstr(damage->message, "the statistics of chunk") != NULL ? 1 : 100;
    return 0;
}

TEST(fsck_finds_a_damaged_row)
{
    whole_result first;
    int found = 0;
    stats_at(&first, "/a");
    scenario_sql(&t, "UPDATE chunk_stats SET form=form+1 WHERE id=(SELECT min(id) FROM"
                     " chunk_stats)");
    OK(&t, brc_fsck(t.repo, 0, note_statistics, NULL, &found, NULL, &t.err));
    ck_assert_int_eq(found, 1);
    scenario_sql(&t, "DELETE FROM chunk_stats");
}

TEST(a_file_that_is_read_only_is_summed_up_and_stays_as_it_is)
{
    whole_result first, again;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    scenario_close(&t);
    scenario_open(&t, &opts, BRC_OPEN_READONLY);
    brc_session *s = scenario_session(&t, t.repo, NULL, BRC_SESSION_VIEW);
    brc_array *a = scenario_array_at(&t, s, "/a");
    stats_of(&first, a);
    ck_assert_int_eq(
        scenario_ask(&t, "SELECT count(*) FROM sqlite_schema WHERE name='chunk_stats'"), 0);
    brc_array_free(a);
    brc_session_free(s);
    scenario_close(&t);
    scenario_open(&t, &opts, 0);
    stats_at(&again, "/a");
    same_results(&first, &again);
    ck_assert_int_eq(scenario_ask(&t, KEPT), 4);
}

/* Two arrays with the same bytes and other types, or another fill value, need rows of their own. */
TEST(a_row_is_of_one_type_and_fill_value)
{
    const uint64_t shape[] = { 2048 }, chunk[] = { 1024 };
    whole_result r;
    brc_array *a;
    int32_t numbers[2048];
    for (int i = 0; i < 2048; i++)
        numbers[i] = i % 2 ? -1 : 3;
    static const struct {
        const char *dtype, *fill, *min;
        uint64_t fills;
    } cases[] = {
        { "int32", "0", "-1", 0 },
        { "int32", "3", "-1", 1024 },
        { "uint32", "0", "3", 0 },
        { "float32", "0", "4e-45", 0 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char path[8];
        snprintf(path, sizeof(path), "/t%zu", i);
        a = scenario_array(&t, path, cases[i].dtype, 1, shape, chunk, cases[i].fill, NULL);
        OK(&t, brc_array_write(a, NULL, numbers, sizeof(numbers), &t.err));
        stats_of(&r, a);
        ck_assert_uint_eq(r.s.fill, cases[i].fills);
        ck_assert_str_eq(r.s.min, cases[i].min);
        brc_array_free(a);
    }
    ck_assert_int_eq(scenario_ask(&t, KEPT), 4);
}

/* ---- odd arrays -------------------------------- */

CASE("odd", .setup = t_numbers, .teardown = t_stop);

static void stats_of_new(whole_result *out, const char *dtype, int ndim, const uint64_t *shape,
                         const uint64_t *chunk, const char *fill)
{
    brc_array *a = scenario_array(&t, "/odd", dtype, ndim, shape, chunk, fill, NULL);
    stats_of(out, a);
    brc_array_free(a);
}

TEST(an_array_without_elements_has_no_ends)
{
    const uint64_t shape[] = { 0, 5 }, chunk[] = { 1, 5 };
    whole_result r;
    stats_of_new(&r, "float64", 2, shape, chunk, NULL);
    ck_assert_uint_eq(r.s.count, 0);
    ck_assert_str_eq(r.s.min, "");
    ck_assert_str_eq(r.s.mean_text, "");
    ck_assert(isnan(r.s.mean) && isnan(r.s.std));
    ck_assert_uint_eq(r.n, 0);
}

TEST(an_array_without_axes_has_one_element)
{
    const uint64_t shape[] = { 1 };
    whole_result r;
    brc_array *a = scenario_array(&t, "/odd", "int16", 0, shape, shape, "12", NULL);
    stats_of(&r, a);
    ck_assert_uint_eq(r.s.fill, 1);
    ck_assert_str_eq(r.s.max, "12");
    const int16_t v = -300;
    OK(&t, brc_array_write(a, NULL, &v, sizeof(v), &t.err));
    stats_of(&r, a);
    ck_assert_uint_eq(r.s.count, 1);
    ck_assert_uint_eq(r.s.fill, 0);
    ck_assert_str_eq(r.s.min, "-300");
    ck_assert(r.s.mean == -300 && r.s.std == 0);
    brc_array_free(a);
}

TEST(an_array_of_nothing_but_nan_has_no_ends)
{
    const uint64_t shape[] = { 5000 }, chunk[] = { 100 };
    whole_result r;
    stats_of_new(&r, "float32", 1, shape, chunk, "\"NaN\"");
    ck_assert_uint_eq(r.s.nan, 5000);
    ck_assert_uint_eq(r.s.fill, 5000);
    ck_assert_str_eq(r.s.min, "");
    ck_assert_uint_eq(r.n, 0);
}

TEST(infinity_is_an_end_and_in_no_bin)
{
    const uint64_t shape[] = { 6 }, chunk[] = { 6 };
    const double up[] = { 1, 2, INFINITY, 3, NAN, 2 };
    const double both[] = { 1, -INFINITY, INFINITY, 3, NAN, 2 };
    whole_result r;
    brc_array *a = scenario_array(&t, "/odd", "float64", 1, shape, chunk, NULL, NULL);
    OK(&t, brc_array_write(a, NULL, up, sizeof(up), &t.err));
    stats_of(&r, a);
    ck_assert_str_eq(r.s.min, "1.0");
    ck_assert_str_eq(r.s.max, "\"Infinity\"");
    ck_assert(r.s.mean == INFINITY && isnan(r.s.std));
    ck_assert_uint_eq(r.s.infinite, 1);
    OK(&t, brc_array_write(a, NULL, both, sizeof(both), &t.err));
    stats_of(&r, a);
    ck_assert_str_eq(r.s.min, "\"-Infinity\"");
    ck_assert(isnan(r.s.mean));
    uint64_t sum = 0;
    for (size_t i = 0; i < r.nbins; i++)
        sum += r.bins[i].count;
    ck_assert_uint_eq(sum, 3);
    brc_array_free(a);
}

TEST(chunks_that_are_absent_cost_nothing)
{
    const uint64_t shape[] = { UINT64_C(1) << 40, 1000 }, chunk[] = { 1000, 1000 };
    const uint64_t huge[] = { UINT64_C(1) << 40, UINT64_C(1) << 40 };
    whole_result r;
    brc_sel sel = BRC_SEL_INIT;
    brc_array *a = scenario_array(&t, "/odd", "uint64", 2, shape, chunk, "18446744073709551615",
                                  NULL);
    const uint64_t v = 1;
    OK(&t, brc_sel_parse(&sel, a, "[123456789, 5]", &t.err));
    OK(&t, brc_array_write(a, &sel, &v, sizeof(v), &t.err));
    stats_of(&r, a);
    ck_assert_uint_eq(r.s.count, (UINT64_C(1) << 40) * 1000);
    ck_assert_uint_eq(r.s.fill, r.s.count - 1);
    ck_assert_str_eq(r.s.min, "1");
    ck_assert_str_eq(r.s.max, "18446744073709551615");
    ck_assert(fabs(r.s.mean / 18446744073709551615.0 - 1) < 1e-12);
    ck_assert_str_eq(r.bins[r.nbins - 1].to, "18446744073709551616");
    brc_array_free(a);
    a = scenario_array(&t, "/huge", "uint8", 2, huge, chunk, NULL, NULL);
    FAILS(&t, BRC_ELIMIT, brc_array_stats(&r.s, NULL, a, NULL, &t.err));
    brc_array_free(a);
}

/* The numbers would all be equal if they were compared as doubles. */
TEST(large_integers_near_each_other_are_exact)
{
    const uint64_t shape[] = { 3000 }, chunk[] = { 1000 };
    int64_t numbers[3000];
    whole_result r;
    for (int i = 0; i < 3000; i++)
        numbers[i] = INT64_MAX - i % 3;
    brc_array *a = scenario_array(&t, "/odd", "int64", 1, shape, chunk, NULL, NULL);
    OK(&t, brc_array_write(a, NULL, numbers, sizeof(numbers), &t.err));
    stats_of(&r, a);
    ck_assert_str_eq(r.s.min, "9223372036854775805");
    ck_assert_str_eq(r.s.max, "9223372036854775807");
    near_enough(r.s.std, sqrtl(2.0L / 3), 1);
    ck_assert_uint_eq(r.s.nvalues, 3);
    ck_assert_str_eq(r.bins[r.nbins + 1].from, "9223372036854775806");
    ck_assert_uint_eq(r.bins[r.nbins + 1].count, 1000);
    ck_assert_str_eq(r.bins[r.nbins - 1].to, "9223372036854775808");
    brc_array_free(a);
}

/* Parts of such means and scales meet in a merge; a straight mean of floats loses them. */
TEST(a_small_spread_far_from_zero_is_kept)
{
    const uint64_t shape[] = { 100000 }, chunk[] = { 9000 };
    double *numbers = malloc(100000 * sizeof(double));
    whole_result r;
    for (int i = 0; i < 100000; i++)
        numbers[i] = 1e9 + (i % 2 ? 1e-3 : -1e-3) + (i == 99999 ? 1e-2 : 0);
    brc_array *a = scenario_array(&t, "/odd", "float64", 1, shape, chunk, NULL, NULL);
    OK(&t, brc_array_write(a, NULL, numbers, 100000 * sizeof(double), &t.err));
    stats_of(&r, a);
    ck_assert(fabs(r.s.std - 1.0006e-3) < 1e-6);
    free(numbers);
    brc_array_free(a);
}

TEST(texts_are_summed_up_by_their_lengths)
{
    const uint64_t shape[] = { 7, 3 }, chunk[] = { 4, 2 };
    static const char *const words[] = { "", "a", "\xc3\xbc", "ccc", "fill" };
    whole_result r;
    brc_sel sel = BRC_SEL_INIT;
    uint8_t bytes[200];
    size_t at = 0;
    brc_array *a = scenario_array(&t, "/odd", "string", 2, shape, chunk, "\"fill\"", NULL);
    OK(&t, brc_sel_parse(&sel, a, "[0:5]", &t.err));
    for (int i = 0; i < 15; i++) {
        const char *word = words[i % 5];
        const uint8_t len = (uint8_t)strlen(word);
        memcpy(bytes + at, (uint8_t[]){ len, 0, 0, 0 }, 4);
        memcpy(bytes + at + 4, word, len);
        at += 4U + len;
    }
    OK(&t, brc_array_write(a, &sel, bytes, at, &t.err));
    stats_of(&r, a);
    ck_assert_int_eq(r.s.of, BRC_STATS_LENGTHS);
    ck_assert_uint_eq(r.s.count, 21);
    ck_assert_uint_eq(r.s.fill, 9);
    ck_assert_str_eq(r.s.min, "0");
    ck_assert_str_eq(r.s.max, "4");
    near_enough(r.s.mean, (3 * (0 + 1 + 2 + 3 + 4) + 6 * 4) / 21.0L, 4);
    OK(&t, brc_sel_parse(&sel, a, "[1:7:2,1:3]", &t.err)); /* words 4, 5, 10 and 11, two absent */
    stats_of_part(&r, a, &sel);
    ck_assert_uint_eq(r.s.count, 6);
    ck_assert_uint_eq(r.s.fill, 3);
    ck_assert_str_eq(r.s.min, "0");
    near_enough(r.s.mean, (4 + 0 + 0 + 1 + 4 + 4) / 6.0L, 4);
    brc_array_free(a);
}

#define FIELD(name, type) "{\"name\":\"" name "\",\"data_type\":" type "}"
#define FIELDS(list) "{\"name\":\"struct\",\"configuration\":{\"fields\":[" list "]}}"
#define WITH_FIELDS                                                                            \
    FIELDS(FIELD("x", "\"int16\"") "," FIELD("t", "\"r8\"") ","                                \
           FIELD("at", FIELDS(FIELD("z", "\"float32\""))) "," FIELD("at.z", "\"bool\""))

TEST(a_field_is_summed_up_by_itself)
{
    const uint64_t shape[] = { 300, 2 }, chunk[] = { 128, 1 };
    uint8_t *data = calloc(600, 8);
    whole_result r, part;
    brc_sel sel = BRC_SEL_INIT;
    brc_array_stats_opts opts = { sizeof(opts), NULL, "x" };
    brc_array *a = scenario_array(&t, "/f", WITH_FIELDS, 2, shape, chunk,
                                  "{\"x\":5,\"t\":[0],\"at\":{\"z\":0.5},\"at.z\":true}", NULL);
    for (int i = 0; i < 600; i++) {
        const float z = (float)(i % 8) / 8;
        memcpy(data + 8 * i, (uint8_t[]){ (uint8_t)(i & 255), (uint8_t)(i >> 8), 9 }, 3);
        memcpy(data + 8 * i + 3, &z, 4);
        data[8 * i + 7] = i % 3 == 0;
    }
    OK(&t, brc_array_write(a, NULL, data, 600 * 8, &t.err));
    stats_with(&r, a, &opts);
    ck_assert_str_eq(r.s.max, "599");
    ck_assert_uint_eq(r.s.fill, 1);
    near_enough(r.s.mean, 299.5L, 600);
    OK(&t, brc_sel_parse(&sel, a, "[10:20,1]", &t.err));
    opts.sel = &sel;
    stats_with(&part, a, &opts);
    ck_assert_str_eq(part.s.min, "21");
    ck_assert_str_eq(part.s.max, "39");
    ck_assert_uint_eq(part.s.count, 10);
    opts = (brc_array_stats_opts){ sizeof(opts), NULL, "at.z" }; /* the field of that name */
    stats_with(&part, a, &opts);
    ck_assert_str_eq(part.s.max, "true");
    ck_assert_uint_eq(part.s.fill, 200);
    stats_with(&part, a, &opts); /* the rows of another field are not its own */
    ck_assert_uint_eq(part.s.fill, 200);
    static const struct {
        const char *field;
        int rc;
    } wrong[] = {
        { "y", BRC_EINVAL },    { "", BRC_EINVAL },     { "at.", BRC_EINVAL },
        { "at.y", BRC_EINVAL }, { "x.z", BRC_EINVAL },  { "at", BRC_EUNSUPPORTED },
        { "t", BRC_EUNSUPPORTED },
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        opts.field = wrong[i].field;
        FAILS(&t, wrong[i].rc, brc_array_stats(&r.s, NULL, a, &opts, &t.err));
    }
    brc_array_free(a);
    a = scenario_array(&t, "/g", "int8", 1, shape, chunk, NULL, NULL);
    opts.field = "x";
    FAILS(&t, BRC_EINVAL, brc_array_stats(&r.s, NULL, a, &opts, &t.err));
    brc_array_free(a);
    free(data);
}

/* The walk goes from row to row of the box, and passes the chunks beside it. */
TEST(a_part_of_a_wide_array_is_found)
{
    const uint64_t shape[] = { 64, 64, 64 }, chunk[] = { 4, 4, 4 };
    uint16_t *data = malloc(64 * 64 * 64 * sizeof(uint16_t));
    whole_result r;
    brc_sel sel = BRC_SEL_INIT;
    brc_array *a = scenario_array(&t, "/w", "uint16", 3, shape, chunk, NULL, NULL);
    for (int i = 0; i < 64 * 64 * 64; i++)
        data[i] = (uint16_t)(i / 4096 * 100 + i / 64 % 64);
    OK(&t, brc_array_write(a, NULL, data, 64 * 64 * 64 * sizeof(uint16_t), &t.err));
    OK(&t, brc_sel_parse(&sel, a, "[5:62:9,60:64,3]", &t.err));
    stats_of_part(&r, a, &sel);
    ck_assert_uint_eq(r.s.count, 7 * 4);
    ck_assert_str_eq(r.s.min, "560");
    ck_assert_str_eq(r.s.max, "5963");
    near_enough(r.s.mean, 3200 + 61.5L, 6000);
    OK(&t, brc_sel_parse(&sel, a, "[63,0,62:64]", &t.err));
    stats_of_part(&r, a, &sel);
    ck_assert_str_eq(r.s.min, "6300");
    ck_assert_uint_eq(r.s.count, 2);
    free(data);
    brc_array_free(a);
}

TEST(types_without_an_order_are_refused)
{
    const uint64_t shape[] = { 4 };
    brc_array_summary s = BRC_ARRAY_SUMMARY_INIT;
    brc_iter *bins;
    static const struct {
        const char *dtype, *says;
    } cases[] = {
        { "r24", "/odd: there are no statistics of the data type r24" },
        { "{\"name\":\"struct\",\"configuration\":{\"fields\":[{\"name\":\"x\",\"data_type\":"
          "\"int8\"}]}}",
          "/odd: its elements have fields, and there are only statistics of one of these" },
        { "{\"name\":\"fixed_length_utf32\",\"configuration\":{\"length_bytes\":8}}",
          "/odd: there are no statistics of the data type fixed_length_utf32" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        brc_array *a = scenario_array(&t, "/odd", cases[i].dtype, 1, shape, shape, NULL, NULL);
        FAILS(&t, BRC_EUNSUPPORTED, brc_array_stats(&s, &bins, a, NULL, &t.err));
        ck_assert_ptr_null(bins);
        ck_assert_ptr_nonnull(strstr(t.err.message, cases[i].says));
        brc_array_free(a);
        OK(&t, brc_node_remove(t.session, "/odd", &t.err));
    }
}

/* ---- the same with any number of threads, and uncommitted -------------------------------- */

TEST(threads_do_not_change_the_result)
{
    const uint64_t shape[] = { 200000 }, chunk[] = { 3001 };
    float *numbers = malloc(200000 * sizeof(float));
    uint64_t random = 3;
    whole_result r, again;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    for (int i = 0; i < 200000; i++)
        numbers[i] = (float)(scenario_random(&random) % 1000003) / 997;
    brc_array *a = scenario_array(&t, "/odd", "float32", 1, shape, chunk, NULL, NULL);
    OK(&t, brc_array_write(a, NULL, numbers, 200000 * sizeof(float), &t.err));
    stats_of(&r, a);
    brc_array_free(a);
    scenario_commit(&t, "floats");
    scenario_sql(&t, "DELETE FROM chunk_stats WHERE id<(SELECT avg(id) FROM chunk_stats)"
                     " OR form%3=0 OR checksum%2=0");
    scenario_close(&t);
    OK(&t, brc_pool_new(&opts.pool, 3, &t.err));
    scenario_open(&t, &opts, 0);
    stats_at(&again, "/odd");
    same_results(&r, &again);
    scenario_close(&t);
    brc_pool_free(opts.pool);
    scenario_open(&t, NULL, 0);
    free(numbers);
}
