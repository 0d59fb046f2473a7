/* How many elements differ between versions, where and by how much: against a plain
 * comparison of arrays in memory, over types, grids, fill values and shapes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/base/json.h"
#include "../../src/work/session.h"
#include "../../src/zarr/transfer.h"
#include "../kit/sanitized.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(element_diff);

#define BYTES "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define ZSTD "{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":false}}"

/* ---- one version of an array, in memory ------------------------------------------ */

#define VALUES 4
#define MAX_ELEMENTS 4096

static const struct {
    const char *dtype, *to_bytes;
    char how; /* i, u, f, b, t: how its numbers are read; -: it has none */
    const char *values[VALUES];
} kinds[] = {
    { "\"bool\"", BYTES, 'b', { "false", "true", "false", "true" } },
    { "\"int8\"", BYTES, 'i', { "0", "-128", "127", "5" } },
    { "\"uint8\"", BYTES, 'u', { "0", "255", "254", "7" } },
    { "\"int16\"", BYTES, 'i', { "0", "-32768", "32767", "-1" } },
    { "\"uint16\"", BYTES, 'u', { "0", "65535", "1", "300" } },
    { "\"int32\"", BYTES, 'i', { "0", "-2147483648", "2147483647", "-7" } },
    { "\"uint32\"", BYTES, 'u', { "0", "4294967295", "1", "70000" } },
    { "\"int64\"", BYTES, 'i',
      { "9223372036854775807", "9223372036854775806", "9223372036854775804",
        "9223372036854775800" } },
    { "\"uint64\"", BYTES, 'u',
      { "18446744073709551615", "18446744073709551614", "0", "9223372036854775808" } },
    { "\"float16\"", BYTES, 'f', { "0", "-1.5", "NaN", "0.25" } },
    { "\"float32\"", BYTES, 'f', { "0", "-0.0", "NaN", "1.5" } },
    { "\"float32\"", BYTES, 'f', { "0.5", "-Infinity", "NaN", "3" } },
    { "\"float64\"", BYTES, 'f', { "0", "1e300", "NaN", "-1" } },
    { "\"complex64\"", BYTES, 'c', { "[0, 0]", "[1, 0]", "[0, 1]", "[\"NaN\", 1]" } },
    { "\"complex128\"", BYTES, 'c', { "[0, 0]", "[1, 0]", "[0, 1]", "[2, 1]" } },
    { "\"r24\"", BYTES, '-', { "[0, 0, 0]", "[0, 0, 1]", "[1, 0, 0]", "[9, 9, 9]" } },
    { "{\"name\":\"numpy.datetime64\",\"configuration\":{\"unit\":\"ns\",\"scale_factor\":1}}",
      BYTES, 't',
      { "1600000000000000000", "1600000000000000001", "\"NaT\"", "1600000000000000005" } },
    { "\"string\"", "{\"name\":\"vlen-utf8\"}", '-', { "\"\"", "\"a\"", "\"b\"", "\"longer\"" } },
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

typedef struct version {
    uint64_t shape[BRC_MAX_NDIM];
    char grid[256], codecs[600];
    int fill;
    uint8_t values[MAX_ELEMENTS]; /* which of the kind's, in C order */
} version;

typedef struct trial {
    scenario t;
    uint64_t random;
    size_t kind;
    int ndim;
    version v[2];
} trial;

static uint64_t below(trial *x, uint64_t n)
{
    return scenario_below(&x->random, n);
}

static uint64_t count_of(int ndim, const uint64_t *shape)
{
    uint64_t n = 1;
    for (int i = 0; i < ndim; i++)
        n *= shape[i];
    return n;
}

static uint64_t place_of(int ndim, const uint64_t *shape, const uint64_t *at)
{
    uint64_t n = 0;
    for (int i = 0; i < ndim; i++)
        n = n * shape[i] + at[i];
    return n;
}

static int step(int ndim, const uint64_t *shape, uint64_t *at)
{
    for (int i = ndim - 1; i >= 0; i--) {
        if (++at[i] < shape[i])
            return 1;
        at[i] = 0;
    }
    return 0;
}

static size_t put(char *out, size_t len, size_t size, const char *text)
{
    len += (size_t)snprintf(out + len, size - len, "%s", text);
    ck_assert_uint_lt(len, size);
    return len;
}

/* Regular chunks, with or without shards around them, or edges of their own. */
static void random_grid(trial *x, version *v)
{
    char number[32], inner[128] = "", outer[128] = "", *list = v->grid;
    const size_t size = sizeof(v->grid);
    size_t in = 0, out = 0, len = 0;
    const int shards = below(x, 4) == 0, edges = !shards && x->ndim > 0 && below(x, 3) == 0;
    for (int i = 0; i < x->ndim; i++) {
        uint64_t chunk = 1 + below(x, 6);
        snprintf(number, sizeof(number), "%s%d", i > 0 ? "," : "", (int)chunk);
        in = put(inner, in, sizeof(inner), number);
        chunk *= 1 + below(x, 3);
        snprintf(number, sizeof(number), "%s%d", i > 0 ? "," : "", (int)chunk);
        out = put(outer, out, sizeof(outer), number);
    }
    if (edges) {
        len = put(list, len, size,
                  "{\"name\":\"rectilinear\",\"configuration\":{\"kind\":\"inline\","
                  "\"chunk_shapes\":[");
        for (int i = 0; i < x->ndim; i++) {
            len = put(list, len, size, i > 0 ? ",[" : "[");
            for (uint64_t sum = 0, edge; sum < v->shape[i] || sum == 0; sum += edge) {
                edge = 1 + below(x, 5);
                snprintf(number, sizeof(number), "%s%d", sum > 0 ? "," : "", (int)edge);
                len = put(list, len, size, number);
            }
            len = put(list, len, size, "]");
        }
        put(list, len, size, "]}}");
    } else {
        snprintf(v->grid, size, "{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[%s]}}",
                 shards ? outer : inner);
    }
    const char *chain = below(x, 2) == 0 ? "" : "," ZSTD;
    if (shards)
        snprintf(v->codecs, sizeof(v->codecs),
                 "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[%s],"
                 "\"codecs\":[%s%s],\"index_codecs\":[" BYTES "],\"index_location\":\"end\"}}]",
                 inner, kinds[x->kind].to_bytes, chain);
    else
        snprintf(v->codecs, sizeof(v->codecs), "[%s%s]", kinds[x->kind].to_bytes, chain);
}

static void random_box(trial *x, version *v)
{
    uint64_t at[BRC_MAX_NDIM] = { 0 }, start[BRC_MAX_NDIM], count[BRC_MAX_NDIM];
    for (int i = 0; i < x->ndim; i++) {
        if (v->shape[i] == 0)
            return;
        start[i] = below(x, v->shape[i]);
        count[i] = 1 + below(x, v->shape[i] - start[i]);
    }
    do {
        uint64_t place[BRC_MAX_NDIM];
        for (int i = 0; i < x->ndim; i++)
            place[i] = start[i] + at[i];
        v->values[place_of(x->ndim, v->shape, place)] = (uint8_t)below(x, VALUES);
    } while (step(x->ndim, count, at));
}

/* A second version of the first, more or less like it. */
static void random_versions(trial *x)
{
    version *a = &x->v[0], *b = &x->v[1];
    const int grid = below(x, 2) == 0, fill = below(x, 5) < 3, shape = below(x, 3) == 0;
    uint64_t at[BRC_MAX_NDIM] = { 0 };
    for (int i = 0; i < x->ndim; i++)
        a->shape[i] = below(x, 20) == 0 ? 0 : 1 + below(x, x->ndim > 2 ? 7 : 40);
    a->fill = (int)below(x, VALUES);
    random_grid(x, a);
    *b = *a;
    for (int i = 0; i < x->ndim && !shape; i++)
        if (below(x, 2) == 0)
            b->shape[i] = 1 + below(x, x->ndim > 2 ? 7 : 40);
    b->fill = fill ? a->fill : (int)below(x, VALUES);
    /* edges of their own hold the shape that they were made for */
    if (!grid || strstr(a->grid, "rectilinear") != NULL)
        random_grid(x, b);
    memset(a->values, a->fill, sizeof(a->values));
    memset(b->values, b->fill, sizeof(b->values));
    for (uint64_t i = below(x, 3); i > 0; i--)
        random_box(x, a);
    if (below(x, 4) > 0 && count_of(x->ndim, b->shape) > 0)
        do { /* what both hold is as it was */
            int both = 1;
            for (int i = 0; i < x->ndim; i++)
                both &= at[i] < a->shape[i];
            if (both)
                b->values[place_of(x->ndim, b->shape, at)] =
                    a->values[place_of(x->ndim, a->shape, at)];
        } while (step(x->ndim, b->shape, at));
    for (uint64_t i = below(x, 3); i > 0; i--)
        random_box(x, b);
}

static void store_version(trial *x, const version *v)
{
    scenario *t = &x->t;
    char doc[2048], dims[256] = "";
    size_t len = 0;
    brc_json *json;
    brc_array *a;
    brc_buf values[VALUES], data = BRC_BUF_INIT;
    for (int i = 0; i < x->ndim; i++)
        len += (size_t)snprintf(dims + len, sizeof(dims) - len, "%s%d", i > 0 ? "," : "",
                                (int)v->shape[i]);
    const char *fill = kinds[x->kind].values[v->fill];
    const int word = fill[0] == 'N' || fill[0] == 'I' || strcmp(fill, "-Infinity") == 0;
    len = (size_t)snprintf(doc, sizeof(doc),
                   "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[%s],\"data_type\":%s,"
                   "\"chunk_grid\":%s,\"chunk_key_encoding\":{\"name\":\"default\"},"
                   "\"fill_value\":%s%s%s,\"codecs\":%s}",
                   dims, kinds[x->kind].dtype, v->grid, word ? "\"" : "", fill, word ? "\"" : "",
                   v->codecs);
    ck_assert_uint_lt(len, sizeof(doc));
    OK(t, brc_json_parse(&json, doc, strlen(doc), 0, &t->err));
    ck_assert_msg(brc_array_create_doc(&a, t->session, "/a", json, &t->err) == BRC_OK, "%s: %s",
                  doc, t->err.message);
    for (int i = 0; i < VALUES; i++) {
        values[i] = (brc_buf)BRC_BUF_INIT;
        OK(t, brc_element_parse(&values[i], a, kinds[x->kind].values[i], &t->err));
    }
    const uint64_t n = count_of(x->ndim, v->shape);
    for (uint64_t i = 0; i < n; i++)
        OK(t, brc_buf_append(&data, values[v->values[i]].data, values[v->values[i]].len, &t->err));
    if (n > 0)
        OK(t, brc_array_write(a, NULL, data.data, data.len, &t->err));
    for (int i = 0; i < VALUES; i++)
        brc_buf_dispose(&values[i]);
    brc_buf_dispose(&data);
    brc_array_free(a);
    brc_json_free(json);
}

/* ---- what must be said ----------------------------------------------------------- */

static double value_apart(size_t kind, int p, int q)
{
    const char *x = kinds[kind].values[p], *y = kinds[kind].values[q];
    switch (kinds[kind].how) {
    case 'b': return strcmp(x, y) != 0;
    case 'u': {
        uint64_t a = strtoull(x, NULL, 10), b = strtoull(y, NULL, 10);
        return (double)(a > b ? a - b : b - a);
    }
    case 't':
        if (strcmp(x, "\"NaT\"") == 0 || strcmp(y, "\"NaT\"") == 0)
            return NAN;
        /* fall through */
    case 'i': {
        int64_t a = strtoll(x, NULL, 10), b = strtoll(y, NULL, 10);
        return (double)(a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a);
    }
    case 'f': return fabs(strtod(x, NULL) - strtod(y, NULL));
    default: return NAN;
    }
}

static brc_change expected_change(const trial *x)
{
    const version *a = &x->v[0], *b = &x->v[1];
    const int ndim = x->ndim;
    uint64_t at[BRC_MAX_NDIM] = { 0 }, both[BRC_MAX_NDIM];
    brc_change c;
    memset(&c, 0, sizeof(c));
    c.ndim = ndim;
    c.max_abs = strchr("-c", kinds[x->kind].how) != NULL ? NAN : 0;
    for (int i = 0; i < ndim; i++)
        both[i] = a->shape[i] < b->shape[i] ? a->shape[i] : b->shape[i];
    const uint64_t n = count_of(ndim, both);
    c.elements_added = count_of(ndim, b->shape) - n;
    c.elements_removed = count_of(ndim, a->shape) - n;
    if (n == 0)
        return c;
    do {
        const int p = a->values[place_of(ndim, a->shape, at)];
        const int q = b->values[place_of(ndim, b->shape, at)];
        if (p == q || strcmp(kinds[x->kind].values[p], kinds[x->kind].values[q]) == 0)
            continue;
        for (int i = 0; i < ndim; i++) {
            if (c.elements_changed == 0 || at[i] < c.first[i])
                c.first[i] = at[i];
            if (c.elements_changed == 0 || at[i] > c.last[i])
                c.last[i] = at[i];
        }
        c.elements_changed++;
        const double apart = value_apart(x->kind, p, q);
        if (apart > c.max_abs)
            c.max_abs = apart;
    } while (step(ndim, both, at));
    return c;
}

/* The one change of /a, or one that says nothing where there is none. */
static brc_change change_of(scenario *t)
{
    brc_diff_opts opts = BRC_DIFF_OPTS_INIT;
    brc_iter *it;
    const brc_change *given;
    brc_change c;
    memset(&c, 0, sizeof(c));
    opts.path = "/a";
    opts.flags = BRC_DIFF_ELEMENTS;
    OK(t, brc_diff(&it, t->repo, NULL, NULL, &opts, &t->err));
    int rc = brc_next(it, &given, &t->err);
    ck_assert_int_ge(rc, 0);
    if (rc > 0)
        c = *given;
    brc_iter_free(it);
    c.path = c.from = NULL;
    c.metadata = NULL;
    return c;
}

static void check_change(const trial *x, const char *how)
{
    const version *a = &x->v[0], *b = &x->v[1];
    char label[1024];
    brc_change want = expected_change(x);
    brc_change c = change_of((scenario *)&x->t);
    snprintf(label, sizeof(label), "%s, %s: %s, then %s", kinds[x->kind].dtype, how, a->grid,
             b->grid);
    if (c.what == 0) /* nothing differs, metadata neither */
        c.flags = BRC_CHANGE_ELEMENTS, c.ndim = x->ndim, c.max_abs = want.max_abs;
    ck_assert_msg(c.flags & BRC_CHANGE_ELEMENTS, "%s", label);
    ck_assert_msg(c.elements_why == NULL, "%s", label);
    ck_assert_int_eq(c.ndim, x->ndim);
    ck_assert_msg(c.elements_changed == want.elements_changed, "%s: %llu differ, not %llu", label,
                  (unsigned long long)c.elements_changed,
                  (unsigned long long)want.elements_changed);
    ck_assert_msg(c.elements_added == want.elements_added, "%s", label);
    ck_assert_msg(c.elements_removed == want.elements_removed, "%s", label);
    ck_assert_msg(memcmp(c.first, want.first, sizeof(c.first)) == 0, "%s", label);
    ck_assert_msg(memcmp(c.last, want.last, sizeof(c.last)) == 0, "%s", label);
    ck_assert_msg(isnan(want.max_abs) ? isnan(c.max_abs) : c.max_abs == want.max_abs,
                  "%s: by %.17g, not %.17g", label, c.max_abs, want.max_abs);
}

/* ---- which differ ---------------------------------------------------------------- */

/* The options of a comparison. */
typedef struct asked {
    brc_diff_opts opts;
    brc_sel sel;
} asked;

static double value_number(size_t kind, int p)
{
    const char *x = kinds[kind].values[p];
    if (kinds[kind].how == 'b')
        return strcmp(x, "true") == 0;
    return strcmp(x, "\"NaT\"") == 0 ? NAN : strtod(x, NULL);
}

/* The parts of a complex number; both are NaN if one is. */
static void value_parts(size_t kind, int p, double part[2])
{
    if (sscanf(kinds[kind].values[p], "[%lf, %lf]", &part[0], &part[1]) != 2)
        part[0] = part[1] = NAN;
}

static int complex_differ(const trial *x, const asked *q, int p, int r)
{
    double u[2], v[2];
    value_parts(x->kind, p, u);
    value_parts(x->kind, r, v);
    if (isnan(u[0]) || isnan(v[0]))
        return isnan(u[0]) != isnan(v[0]);
    return hypot(u[0] - v[0], u[1] - v[1]) > q->opts.atol + q->opts.rtol * hypot(v[0], v[1]);
}

static int does_differ(const trial *x, const asked *q, const uint64_t *at)
{
    const version *a = &x->v[0], *b = &x->v[1];
    const int p = a->values[place_of(x->ndim, a->shape, at)];
    const int r = b->values[place_of(x->ndim, b->shape, at)];
    for (int i = 0; i < x->ndim && q->opts.sel != NULL; i++) {
        const uint64_t from = q->sel.start[i], step_of = q->sel.step[i];
        if (at[i] < from || (at[i] - from) % step_of != 0 ||
            (at[i] - from) / step_of >= q->sel.count[i])
            return 0;
    }
    if (p == r || strcmp(kinds[x->kind].values[p], kinds[x->kind].values[r]) == 0)
        return 0;
    if (kinds[x->kind].how == '-' ||
        (!(q->opts.flags & BRC_DIFF_CLOSE) && q->opts.atol + q->opts.rtol == 0))
        return 1;
    if (kinds[x->kind].how == 'c')
        return complex_differ(x, q, p, r);
    const double u = value_number(x->kind, p), v = value_number(x->kind, r);
    if (isnan(u) && isnan(v))
        return 0;
    if (isinf(v) || isnan(u) || isnan(v)) /* infinities are close to nothing else */
        return 1;
    return !(value_apart(x->kind, p, r) <= q->opts.atol + q->opts.rtol * fabs(v));
}

static void ask(trial *x, asked *q, int with_sel)
{
    *q = (asked){ .opts = BRC_DIFF_OPTS_INIT, .sel = BRC_SEL_INIT };
    q->opts.path = "/a";
    q->opts.flags = BRC_DIFF_ELEMENTS | BRC_DIFF_CHUNKS | (below(x, 3) == 0 ? BRC_DIFF_CLOSE : 0);
    q->opts.values = 1 + below(x, below(x, 2) == 0 ? 5 : 3000);
    q->opts.atol = below(x, 2) == 0 ? 0 : 2.5;
    q->opts.rtol = below(x, 2) == 0 ? 0 : 0.25;
    q->sel.ndim = x->ndim;
    for (int i = 0; i < x->ndim; i++) {
        q->sel.start[i] = below(x, 10);
        q->sel.step[i] = 1 + below(x, 4);
        q->sel.count[i] = below(x, 12);
    }
    if (with_sel)
        q->opts.sel = &q->sel;
}

/* Tells whether the text of an element is that of the kind's value. */
static void check_element(const trial *x, const brc_change *c, const void *element, int value)
{
    brc_buf want = BRC_BUF_INIT;
    OK(&x->t, brc_element_parse(&want, c->array, kinds[x->kind].values[value],
                                &((trial *)x)->t.err));
    ck_assert_mem_eq(element, want.data, want.len);
    brc_buf_dispose(&want);
}

static int is_in_a_box(const brc_change *c, const uint64_t *at)
{
    for (size_t i = 0; i < c->nboxes; i++) {
        const uint64_t *first = c->boxes + 2 * i * (size_t)c->ndim, *last = first + c->ndim;
        int is = 1;
        for (int k = 0; k < c->ndim; k++)
            is &= at[k] >= first[k] && at[k] <= last[k];
        if (is)
            return 1;
    }
    return 0;
}

static void check_listed(const trial *x, const asked *q, const brc_change *c)
{
    const version *a = &x->v[0], *b = &x->v[1];
    uint64_t at[BRC_MAX_NDIM] = { 0 }, both[BRC_MAX_NDIM] = { 0 }, n = 0, numbers = 0, held = 0;
    double sum = 0, squares = 0;
    for (int i = 0; i < x->ndim; i++)
        both[i] = a->shape[i] < b->shape[i] ? a->shape[i] : b->shape[i];
    if (count_of(x->ndim, both) > 0)
        do {
            if (!does_differ(x, q, at))
                continue;
            const int p = a->values[place_of(x->ndim, a->shape, at)];
            const int r = b->values[place_of(x->ndim, b->shape, at)];
            const double apart = value_apart(x->kind, p, r);
            ck_assert(is_in_a_box(c, at));
            if (!isnan(apart)) {
                numbers++;
                sum += apart;
                squares += apart * apart;
            }
            if (n < q->opts.values) {
                ck_assert_uint_lt(n, c->nvalues);
                ck_assert_mem_eq(c->values[n].index, at, (size_t)x->ndim * sizeof(*at));
                check_element(x, c, c->values[n].before, p);
                check_element(x, c, c->values[n].now, r);
            }
            n++;
        } while (step(x->ndim, both, at));
    ck_assert_uint_eq(c->elements_changed, n);
    ck_assert_uint_eq(c->nvalues, n < q->opts.values ? n : q->opts.values);
    ck_assert_int_eq((c->flags & BRC_CHANGE_MORE) != 0, n > q->opts.values);
    ck_assert_int_eq(isnan(c->mean_abs), numbers == 0);
    ck_assert_int_eq(isnan(c->rms), numbers == 0);
    if (numbers > 0 && isfinite(squares)) {
        const double mean = sum / (double)numbers, rms = sqrt(squares / (double)numbers);
        ck_assert_msg(fabs(c->mean_abs - mean) <= 1e-12 * mean, "mean %.17g, not %.17g",
                      c->mean_abs, mean);
        ck_assert_msg(fabs(c->rms - rms) <= 1e-12 * rms, "RMS %.17g, not %.17g", c->rms, rms);
    }
    for (size_t i = 0; i < c->nchunks; i++)
        held += c->chunks[i * ((size_t)c->ndim + 1) + (size_t)c->ndim];
    ck_assert_uint_le(held, n);
    if (a->fill == b->fill && strcmp(a->grid, b->grid) == 0)
        ck_assert_uint_eq(held, n); /* only what is stored can differ */
}

static uint8_t *values_copied(scenario *t, const brc_diff_opts *opts, size_t *n)
{
    brc_iter *it;
    const brc_change *c;
    uint8_t *out = NULL;
    *n = 0;
    OK(t, brc_diff(&it, t->repo, NULL, NULL, opts, &t->err));
    if (brc_next(it, &c, &t->err) == 1 && c->nvalues > 0) {
        const size_t ndim = (size_t)brc_array_describe(c->array)->ndim;
        const size_t item = brc_array_describe(c->array)->item_size;
        const size_t each = ndim * sizeof(uint64_t) + 2 * item;
        out = malloc(c->nvalues * each + 1);
        for (*n = 0; *n < c->nvalues; ++*n) {
            uint8_t *at = out + *n * each;
            memcpy(at, c->values[*n].index, ndim * sizeof(uint64_t));
            memcpy(at + each - 2 * item, c->values[*n].before, item);
            memcpy(at + each - item, c->values[*n].now, item);
        }
        *n *= each;
    }
    brc_iter_free(it);
    return out;
}

/* Values without figures are the same, where chunks are cut the same. */
static void check_values_alone(trial *x)
{
    asked q;
    size_t n[2];
    uint8_t *found[2];
    if (strcmp(x->v[0].grid, x->v[1].grid) != 0)
        return;
    ask(x, &q, (int)below(x, 2));
    for (int i = 0; i < 2; i++) {
        found[i] = values_copied(&x->t, &q.opts, &n[i]);
        q.opts.flags &= ~(uint32_t)BRC_DIFF_ELEMENTS;
    }
    ck_assert_uint_eq(n[0], n[1]);
    if (n[0] > 0)
        ck_assert_mem_eq(found[0], found[1], n[0]);
    free(found[0]);
    free(found[1]);
}

/* The listed elements are those that a plain loop finds, whatever selection, tolerance and number
 * are asked for. */
static void check_values(trial *x)
{
    brc_iter *it;
    const brc_change *c;
    asked q;
    for (int way = 0; way < 3; way++) {
        ask(x, &q, way > 0);
        OK(&x->t, brc_diff(&it, x->t.repo, NULL, NULL, &q.opts, &x->t.err));
        if (brc_next(it, &c, &x->t.err) == 1)
            check_listed(x, &q, c);
        brc_iter_free(it);
    }
    check_values_alone(x);
}

typedef struct boxes_of_one_way {
    size_t n;
    uint64_t corners[2 * 8 * BRC_MAX_NDIM];
} boxes_of_one_way;

/* The boxes are those of the first way, however the elements are read. */
static void check_boxes(trial *x, boxes_of_one_way *first, int is_first)
{
    brc_diff_opts opts = BRC_DIFF_OPTS_INIT;
    brc_iter *it;
    const brc_change *c;
    opts.flags = BRC_DIFF_ELEMENTS;
    OK(&x->t, brc_diff(&it, x->t.repo, NULL, NULL, &opts, &x->t.err));
    if (brc_next(it, &c, &x->t.err) == 1) {
        const size_t len = 2 * c->nboxes * (size_t)c->ndim * sizeof(*c->boxes);
        ck_assert_uint_le(c->nboxes, 8);
        if (is_first) {
            first->n = c->nboxes;
            if (len > 0)
                memcpy(first->corners, c->boxes, len);
        }
        ck_assert_uint_eq(c->nboxes, first->n);
        if (len > 0)
            ck_assert_mem_eq(c->boxes, first->corners, len);
    }
    brc_iter_free(it);
}

/* With and without other threads, and with a budget that makes slabs of a few bytes. */
static void check_every_way(trial *x, brc_pool *pool)
{
    boxes_of_one_way boxes = { 0, { 0 } };
    scenario_close(&x->t);
    for (int way = 0; way < 4; way++) {
        brc_open_opts opts = BRC_OPEN_OPTS_INIT;
        opts.pool = way & 1 ? pool : NULL;
        scenario_open(&x->t, &opts, 0);
        if (way & 2)
            x->t.repo->pipe.memory = 64;
        check_change(x, way == 0 ? "alone" : way == 1 ? "4 threads" : way == 2 ? "tight" : "both");
        check_values(x);
        check_boxes(x, &boxes, way == 0);
        scenario_close(&x->t);
    }
    scenario_open(&x->t, NULL, 0);
}

/* ---- tests ----------------------------------------------------------------------- */

#define TRIALS 12

LOOP(f19_every_type_and_grid, 0, KINDS)
{
    static trial x;
    brc_pool *pool;
    memset(&x, 0, sizeof(x));
    x.kind = (size_t)_i;
    for (int i = 0; i < TRIALS; i++) {
        x.random = (uint64_t)(_i * 100 + i);
        scenario_start(&x.t);
        OK(&x.t, brc_pool_new(&pool, 4, &x.t.err));
        x.ndim = i % 5;
        random_versions(&x);
        store_version(&x, &x.v[0]);
        scenario_commit(&x.t, "one");
        OK(&x.t, brc_node_remove(x.t.session, "/a", &x.t.err));
        store_version(&x, &x.v[1]);
        check_every_way(&x, pool);
        scenario_stop(&x.t);
        brc_pool_free(pool);
    }
}

/* More pairs than one batch has, several jobs, and both ways round. */
LOOP(f19_many_chunks, 0, 2)
{
    static trial x;
    brc_pool *pool;
    memset(&x, 0, sizeof(x));
    scenario_start(&x.t);
    OK(&x.t, brc_pool_new(&pool, 4, &x.t.err));
    x.kind = 5;
    x.ndim = 2;
    x.random = 4;
    for (int side = 0; side < 2; side++) {
        version *v = &x.v[side];
        v->shape[0] = v->shape[1] = 60;
        snprintf(v->grid, sizeof(v->grid), "{\"name\":\"regular\",\"configuration\":{"
                                           "\"chunk_shape\":[%d,1]}}", _i == 0 ? 2 : 2 + side);
        snprintf(v->codecs, sizeof(v->codecs), "[" BYTES "]");
        for (int i = 0; i < 3600; i++)
            v->values[i] = (uint8_t)below(&x, VALUES);
        if (side == 1)
            OK(&x.t, brc_node_remove(x.t.session, "/a", &x.t.err));
        store_version(&x, v);
        if (side == 0)
            scenario_commit(&x.t, "one");
    }
    check_every_way(&x, pool);
    scenario_stop(&x.t);
    brc_pool_free(pool);
}

#define WIDE 1500

/* Slabs that are compared in parts, along the first axis that has an extent. */
TEST(f19_large_slabs)
{
    scenario t;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    const size_t n = (size_t)WIDE * WIDE;
    uint8_t *data = calloc(2, n);
    uint64_t shape[3] = { 1, WIDE, WIDE }, first[3] = { 0, WIDE, WIDE }, last[3] = { 0 };
    uint64_t changed = 0;
    uint64_t chunks[2][3] = { { 1, 400, 400 }, { 1, 300, WIDE } }, random = 5;
    int most = 0;
    ck_assert_ptr_nonnull(data);
    scenario_folder(&t);
    OK(&t, brc_pool_new(&opts.pool, 4, &t.err));
    scenario_open(&t, &opts, BRC_OPEN_CREATE);
    for (size_t i = 0; i < n; i++)
        data[i] = data[n + i] = (uint8_t)(i % 251);
    for (int i = 0; i < 300; i++) /* not in the outermost rows and columns */
        data[n + (7 + scenario_below(&random, WIDE - 20)) * WIDE + 9 +
             scenario_below(&random, WIDE - 20)] = (uint8_t)scenario_below(&random, 256);
    for (size_t i = 0; i < n; i++) {
        const uint64_t at[3] = { 0, i / WIDE, i % WIDE };
        const int apart = abs(data[i] - data[n + i]);
        most = apart > most ? apart : most;
        changed += apart > 0;
        for (int k = 0; k < 3 && apart > 0; k++) {
            first[k] = at[k] < first[k] ? at[k] : first[k];
            last[k] = at[k] > last[k] ? at[k] : last[k];
        }
    }
    for (int side = 0; side < 2; side++) {
        brc_array *a = scenario_array(&t, "/a", "uint8", 3, shape, chunks[side], NULL, NULL);
        OK(&t, brc_array_write(a, NULL, data + (size_t)side * n, n, &t.err));
        brc_array_free(a);
        if (side == 0) {
            scenario_commit(&t, "one");
            OK(&t, brc_node_remove(t.session, "/a", &t.err));
        }
    }
    brc_change c = change_of(&t);
    ck_assert_uint_eq(c.elements_changed, changed);
    ck_assert(c.max_abs == most);
    ck_assert_mem_eq(c.first, first, sizeof(first));
    ck_assert_mem_eq(c.last, last, sizeof(last));
    free(data);
    scenario_stop(&t);
    brc_pool_free(opts.pool);
}

static void elements_are(scenario *t, uint64_t changed, uint64_t added, uint64_t removed)
{
    brc_change c = change_of(t);
    ck_assert_int_eq((c.flags & BRC_CHANGE_ELEMENTS) != 0, 1);
    ck_assert_uint_eq(c.elements_changed, changed);
    ck_assert_uint_eq(c.elements_added, added);
    ck_assert_uint_eq(c.elements_removed, removed);
}

TEST(f14_elements_that_came_and_went)
{
    scenario t;
    int32_t more[3] = { 1, 2, 3 };
    uint64_t shape[2] = { 4, 10 }, chunk[2] = { 3, 3 };
    scenario_start(&t);
    scenario_numbers(&t, "/a", 10, 4, 1);
    elements_are(&t, 0, 10, 0); /* a new array */
    ck_assert(isnan(change_of(&t).max_abs));
    scenario_commit(&t, "one");
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    OK(&t, brc_array_append(a, 0, 3, more, sizeof(more), &t.err));
    elements_are(&t, 0, 3, 0);
    scenario_set_number(&t, "/a", 0, 99);
    elements_are(&t, 1, 3, 0);
    OK(&t, brc_array_resize(a, (uint64_t[]){ 0 }, &t.err));
    elements_are(&t, 0, 0, 10);
    brc_array_free(a);
    OK(&t, brc_node_remove(t.session, "/a", &t.err));
    elements_are(&t, 0, 0, 10);
    brc_array_free(scenario_array(&t, "/a", "int32", 2, shape, chunk, NULL, NULL));
    brc_change c = change_of(&t);
    ck_assert_int_eq((c.flags & BRC_CHANGE_ELEMENTS) != 0, 0);
    ck_assert_str_eq(c.elements_why, "the number of dimensions differs");
    scenario_commit(&t, "two");
    OK(&t, brc_array_open(&a, t.session, "/a", &t.err));
    OK(&t, brc_array_resize(a, (uint64_t[]){ 6, 7 }, &t.err)); /* one axis grows, one shrinks */
    elements_are(&t, 0, 14, 12);
    brc_array_free(a);
    scenario_stop(&t);
}

TEST(f14_more_elements_than_64_bits_count)
{
    scenario t;
    uint64_t shape[3] = { 4, 4, 4 }, large[3] = { 4, UINT64_C(1) << 40, UINT64_C(1) << 40 };
    scenario_start(&t);
    brc_array *a = scenario_array(&t, "/a", "uint8", 3, shape, (uint64_t[]){ 2, 2, 2 }, NULL, NULL);
    scenario_commit(&t, "one");
    OK(&t, brc_array_resize(a, large, &t.err));
    elements_are(&t, 0, UINT64_MAX, 0);
    large[1] = UINT64_C(1) << 20;
    OK(&t, brc_array_resize(a, large, &t.err));
    elements_are(&t, 0, (UINT64_C(1) << 62) - 64, 0);
    brc_array_free(a);
    scenario_stop(&t);
}

/* A huge array with a few chunks, of which the fill value or the chunks are others: what is
 * not stored is counted, not looked at. */
LOOP(f14_absent_chunks_of_another_fill_value, 0, 4)
{
    scenario t;
    const uint64_t shape[2] = { UINT64_C(1) << 31, UINT64_C(1) << 30 };
    const uint64_t chunk[2] = { 100, 100 }, other[2] = { 70, 130 };
    brc_sel sel = BRC_SEL_INIT;
    int16_t value = 9;
    scenario_start(&t);
    for (int side = 0; side < 2; side++) {
        brc_array *a = scenario_array(&t, "/a", "int16", 2, shape, _i & 1 && side ? other : chunk,
                                      _i & 2 && side ? "-3" : "4", NULL);
        OK(&t, brc_sel_parse(&sel, a, "[1000000:1000002, 0]", &t.err));
        OK(&t, brc_array_fill(a, &sel, &value, &t.err));
        OK(&t, brc_sel_parse(&sel, a, side ? "[0, 5]" : "[0, 6]", &t.err));
        OK(&t, brc_array_fill(a, &sel, &value, &t.err));
        brc_array_free(a);
        if (side == 0) {
            scenario_commit(&t, "one");
            OK(&t, brc_node_remove(t.session, "/a", &t.err));
        }
    }
    brc_change c = change_of(&t);
    ck_assert_int_eq((c.flags & BRC_CHANGE_ELEMENTS) != 0, 1);
    if (_i & 2) {
        ck_assert_uint_eq(c.elements_changed, (UINT64_C(1) << 61) - 2);
        ck_assert(c.max_abs == 12); /* 9 against -3, above 4 against -3 */
        ck_assert_uint_eq(c.first[0] + c.first[1], 0);
        ck_assert_uint_eq(c.last[0], shape[0] - 1);
        ck_assert_uint_eq(c.last[1], shape[1] - 1);
    } else {
        ck_assert_uint_eq(c.elements_changed, 2);
        ck_assert(c.max_abs == 5);
        ck_assert_uint_eq(c.first[1], 5);
        ck_assert_uint_eq(c.last[1], 6);
    }
    scenario_stop(&t);
}

/* ---- memory ---------------------------------------------------------------------- */

#define BIG ((size_t)32 << 20)

/* Bytes of this process' own memory. */
static rlim_t data_now(void)
{
    char line[256];
    unsigned long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f != NULL && fgets(line, sizeof(line), f) != NULL)
        if (sscanf(line, "VmData: %lu", &kib) == 1)
            break;
    if (f != NULL)
        fclose(f);
    return (rlim_t)kib * 1024;
}

/* In a process of its own: the diff with so much more memory; what it counts, or -1. */
static int64_t diff_within(scenario *t, unsigned threads, size_t budget, rlim_t more)
{
    int64_t result = -1;
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        brc_open_opts opts = BRC_OPEN_OPTS_INIT;
        brc_diff_opts diff = BRC_DIFF_OPTS_INIT;
        brc_iter *it;
        const brc_change *c;
        opts.memory = budget;
        if (brc_pool_new(&opts.pool, threads, NULL) == BRC_OK &&
            scenario_connect(&t->repo, t->file, &opts, NULL) == BRC_OK) {
            struct rlimit limit = { data_now() + more, RLIM_INFINITY };
            diff.flags = BRC_DIFF_ELEMENTS;
            setrlimit(RLIMIT_DATA, &limit);
            if (brc_diff(&it, t->repo, "HEAD~1", "HEAD", &diff, &t->err) == BRC_OK &&
                brc_next(it, &c, NULL) == 1)
                result = (int64_t)c->elements_changed;
            else
                fprintf(stderr, "%s\n", t->err.message);
        }
        _exit(write(ends[1], &result, sizeof(result)) != sizeof(result));
    }
    ck_assert_int_gt(child, 0);
    close(ends[1]);
    ck_assert_int_eq(read(ends[0], &result, sizeof(result)), sizeof(result));
    close(ends[0]);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    return result;
}

/* A sanitizer's own memory is in no measure. */
enum { MEMORY_IS_OURS = !KIT_SANITIZED };

/* A pair of chunks takes its stored bytes and its elements, and no more; however many there
 * are, and whatever the budget: each is larger, so that they go one at a time. */
LOOP(f19_memory_of_large_chunks, 0, MEMORY_IS_OURS ? 2 : 0)
{
    scenario t;
    const uint64_t shape[1] = { 3 * BIG };
    const uint64_t chunk[1] = { BIG }, other[1] = { BIG + BIG / 2 };
    uint8_t *data = malloc(3 * BIG);
    uint64_t random = 8;
    ck_assert_ptr_nonnull(data);
    scenario_start(&t);
    brc_array *a = scenario_array(&t, "/a", "uint8", 1, shape, chunk, NULL, "[" BYTES "," ZSTD "]");
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < 3 * BIG; i += 4096)
            memset(data + i, (int)scenario_below(&random, 250), 4096);
        memset(data, side, 100);
        if (side == 1 && _i == 1) {
            brc_array_free(a);
            OK(&t, brc_node_remove(t.session, "/a", &t.err));
            a = scenario_array(&t, "/a", "uint8", 1, shape, other, NULL, "[" BYTES "," ZSTD "]");
        }
        OK(&t, brc_array_write(a, NULL, data, 3 * BIG, &t.err));
        scenario_commit(&t, "a version");
    }
    brc_array_free(a);
    free(data);
    scenario_close(&t);
    /* of other chunks: a slab of either side as large as one, and one that is decoded */
    const rlim_t room = _i == 0 ? 2 * BIG + BIG / 2 : 5 * BIG;
    int64_t one = diff_within(&t, 1, 1, room), four = diff_within(&t, 4, 1, room);
    ck_assert_int_gt(one, (int64_t)(2 * BIG));
    ck_assert_int_eq(one, four);
    ck_assert_int_eq(diff_within(&t, 1, 1, BIG / 2), -1); /* the limit holds */
    scenario_open(&t, NULL, 0);
    scenario_stop(&t);
}
