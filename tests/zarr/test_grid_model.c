/* Arrays over every kind of grid against plain memory: resized, written, appended to,
 * committed, and handed over by a writer that left its old chunks where they were. What
 * was cut off never comes back, and old commits stay what they were. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/json.h"
#include "../kit/exchange_kit.h"
#include "../kit/ios.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(grid_model);

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define ZSTD "{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":false}}"
#define CRC "{\"name\":\"crc32c\"}"
/* "%s" stands for the codec that makes bytes of the elements. */
#define TO_BYTES "%s"
#define SHARD(inner, codecs, where)                                                             \
    "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":" inner ",\"codecs\":["  \
    codecs "],\"index_codecs\":[" LITTLE "," CRC "],\"index_location\":\"" where "\"}}"
#define REGULAR(chunk) "{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":" chunk "}}"
#define EDGES(lists)                                                                            \
    "{\"name\":\"rectilinear\",\"configuration\":{\"kind\":\"inline\",\"chunk_shapes\":" lists "}}"

#define NO_END 99 /* no list of edges ends the axis                               */
#define LONGEST 13

static const struct {
    int ndim;
    const char *grid, *codecs;
    uint64_t end[3]; /* the sum of an axis' edges */
} layouts[] = {
    { 2, REGULAR("[3,4]"), TO_BYTES "," ZSTD, { NO_END, NO_END } },
    { 1, REGULAR("[5]"), TO_BYTES, { NO_END } },
    { 3, REGULAR("[2,3,2]"), TO_BYTES "," CRC, { NO_END, NO_END, NO_END } },
    { 2, REGULAR("[20,2]"), TO_BYTES, { NO_END, NO_END } },
    { 0, REGULAR("[]"), TO_BYTES, { 0 } },
    { 2, REGULAR("[6,4]"), SHARD("[3,2]", TO_BYTES "," ZSTD, "end"), { NO_END, NO_END } },
    { 2, REGULAR("[8,4]"), SHARD("[4,4]", SHARD("[2,2]", TO_BYTES, "end"), "start"),
      { NO_END, NO_END } },
    { 0, REGULAR("[]"), SHARD("[]", TO_BYTES, "end"), { 0 } },
    /* a shard with a codec behind it is one chunk */
    { 2, REGULAR("[4,6]"), SHARD("[2,3]", TO_BYTES, "start") "," CRC, { NO_END, NO_END } },
    { 2, EDGES("[[1,3,2,5],[4,1,[2,3]]]"), TO_BYTES "," ZSTD, { 11, 11 } },
    { 2, EDGES("[[2,5,1],3]"), TO_BYTES, { 8, NO_END } },
    { 1, EDGES("[[[1,12]]]"), TO_BYTES, { 12 } },
    { 2, EDGES("[[2,4,2],[2,6]]"), SHARD("[2,1]", TO_BYTES, "end"), { 8, 8 } },
};
#define LAYOUTS (sizeof(layouts) / sizeof(layouts[0]))

static const struct {
    const char *dtype, *fill, *to_bytes;
} kinds[] = {
    { "uint16", "7", LITTLE },
    { "string", "\"?\"", "{\"name\":\"vlen-utf8\"}" },
};

#define FILL 7
#define COMMITS 4

typedef struct grid_trial {
    exchange_kit kit;
    brc_array *a;
    size_t layout;
    int is_text;
    uint64_t random;
    model m; /* uint16; of texts, the number that stands in the text             */
    model then[COMMITS];
    brc_oid commits[COMMITS];
    size_t ncommits;
    unsigned exports;
} grid_trial;

#define MUST(x, call) ck_assert_msg((call) == BRC_OK, "%s", (x)->kit.err.message)

static uint64_t pick(grid_trial *x, uint64_t n)
{
    return scenario_below(&x->random, n);
}

/* ---- elements ----------------------------------------------------------------------- */

/* A number as the array's element: its bits, or a text whose length depends on it. */
static void put_element(const grid_trial *x, brc_buf *out, uint16_t number)
{
    char text[64];
    uint32_t len;

    if (!x->is_text) {
        ck_assert_int_eq(brc_buf_append(out, &number, 2, NULL), BRC_OK);
        return;
    }
    if (number == FILL)
        snprintf(text, sizeof(text), "?");
    else
        snprintf(text, sizeof(text), "%0*u", 1 + number % 30, (unsigned)number);
    len = (uint32_t)strlen(text);
    ck_assert_int_eq(brc_buf_append(out, &len, 4, NULL), BRC_OK);
    ck_assert_int_eq(brc_buf_append(out, text, len, NULL), BRC_OK);
}

static brc_buf elements_of(const grid_trial *x, const uint8_t *numbers, uint64_t n)
{
    brc_buf out = BRC_BUF_INIT;

    for (uint64_t i = 0; i < n; i++) {
        uint16_t number;
        memcpy(&number, numbers + 2 * i, 2);
        put_element(x, &out, number);
    }
    return out;
}

/* Few different numbers, the fill value among them, so that chunks come to be equal. */
static uint8_t *some_numbers(grid_trial *x, uint64_t n)
{
    uint8_t *numbers = malloc(2 * (size_t)n + 1);
    uint64_t sorts = pick(x, 3) == 0 ? 1 : 40;

    ck_assert_ptr_nonnull(numbers);
    for (uint64_t i = 0; i < n; i++) {
        uint16_t number = (uint16_t)(FILL + pick(x, sorts));
        memcpy(numbers + 2 * i, &number, 2);
    }
    return numbers;
}

/* All elements of the array, as this session sees it, are the model's. */
static void check_elements(grid_trial *x, brc_array *a, const model *m)
{
    const brc_array_info *info = brc_array_describe(a);
    brc_buf got = BRC_BUF_INIT, want = elements_of(x, m->data, m->len / 2);

    ck_assert_int_eq(info->ndim, m->ndim);
    if (m->ndim > 0)
        ck_assert_mem_eq(info->shape, m->shape, sizeof(uint64_t) * (size_t)m->ndim);
    MUST(x, io_elements(a, NULL, &got, &x->kit.err));
    ck_assert_uint_eq(got.len, want.len);
    if (want.len > 0)
        ck_assert_mem_eq(got.data, want.data, want.len);
    brc_buf_dispose(&got);
    brc_buf_dispose(&want);
}

/* ---- steps -------------------------------------------------------------------------- */

static void open_array(grid_trial *x)
{
    brc_array_free(x->a);
    MUST(x, brc_array_open(&x->a, x->kit.session, "/a", &x->kit.err));
}

static void step_write(grid_trial *x)
{
    brc_sel sel = BRC_SEL_INIT;

    model_selection(&x->m, &x->random, &sel);
    uint64_t n = brc_sel_count(&sel);
    uint8_t *numbers = some_numbers(x, n);
    brc_buf data = elements_of(x, numbers, n);
    if (n > 0)
        MUST(x, brc_array_write(x->a, &sel, data.data, data.len, &x->kit.err));
    model_write(&x->m, &sel, numbers, NULL);
    brc_buf_dispose(&data);
    free(numbers);
}

static void step_fill(grid_trial *x)
{
    static const int64_t still[BRC_MAX_NDIM];
    brc_sel sel = BRC_SEL_INIT;
    uint16_t number = (uint16_t)(FILL + pick(x, 2));
    brc_buf element = BRC_BUF_INIT;

    model_selection(&x->m, &x->random, &sel);
    put_element(x, &element, number);
    MUST(x, brc_array_fill(x->a, &sel, element.data, &x->kit.err));
    model_write(&x->m, &sel, &number, still);
    brc_buf_dispose(&element);
}

/* Along an axis: so many indexes in any order, with repetitions and from either end. */
static void some_positions(grid_trial *x, brc_at *at, int axis, uint64_t many)
{
    const uint64_t extent = x->m.shape[axis];

    at->count[axis] = extent > 0 ? many : 0;
    at->step[axis] = 1;
    int64_t *index = malloc(sizeof(int64_t) * (size_t)(at->count[axis] + 1));
    ck_assert_ptr_nonnull(index);
    for (uint64_t k = 0; k < at->count[axis]; k++)
        index[k] = (int64_t)pick(x, 2 * extent) - (int64_t)extent;
    at->index[axis] = index;
}

static brc_at some_places(grid_trial *x)
{
    brc_at at = BRC_AT_INIT;
    const uint64_t points = pick(x, 30);

    at.ndim = x->m.ndim;
    at.flags = x->m.ndim > 0 && pick(x, 2) ? BRC_AT_POINTS : 0;
    for (int i = 0; i < at.ndim; i++) {
        if (at.flags & BRC_AT_POINTS || pick(x, 2)) {
            some_positions(x, &at, i, at.flags & BRC_AT_POINTS ? points : pick(x, 6));
            continue;
        }
        at.start[i] = pick(x, x->m.shape[i] + 1);
        at.step[i] = 1 + pick(x, 4);
        at.count[i] = pick(x, (x->m.shape[i] - at.start[i] + at.step[i] - 1) / at.step[i] + 1);
    }
    if (at.flags & BRC_AT_POINTS) /* of an axis without elements there are none */
        for (int i = 0; i < at.ndim; i++)
            for (int k = 0; k < at.ndim; k++)
                at.count[i] = at.count[k] < at.count[i] ? at.count[k] : at.count[i];
    return at;
}

static void free_places(brc_at *at)
{
    for (int i = 0; i < at->ndim; i++)
        free((void *)(uintptr_t)at->index[i]);
}

static uint64_t how_many(const brc_at *at)
{
    uint64_t n = 1;

    for (int i = 0; i < at->ndim; i++)
        n = at->flags & BRC_AT_POINTS ? at->count[i] : n * at->count[i];
    return n;
}

/* Where the k-th selected element is in the model. */
static uint8_t *placed(const grid_trial *x, const brc_at *at, uint64_t k)
{
    uint64_t where[BRC_MAX_NDIM], offset = 0;

    for (int i = at->ndim - 1; i >= 0; i--) {
        const uint64_t j = at->flags & BRC_AT_POINTS ? k : k % at->count[i];
        k = at->flags & BRC_AT_POINTS ? k : k / at->count[i];
        where[i] = at->start[i] + j * at->step[i];
        if (at->index[i] != NULL)
            where[i] = (uint64_t)(at->index[i][j] + (at->index[i][j] < 0) * (int64_t)x->m.shape[i]);
    }
    for (int i = 0; i < at->ndim; i++)
        offset = offset * x->m.shape[i] + where[i];
    return x->m.data + 2 * offset;
}

static void step_take(grid_trial *x)
{
    brc_at at = some_places(x);
    const uint64_t n = how_many(&at);
    uint8_t *numbers = malloc(2 * (size_t)n + 1);
    brc_buf got = BRC_BUF_INIT;

    ck_assert_ptr_nonnull(numbers);
    for (uint64_t k = 0; k < n; k++)
        memcpy(numbers + 2 * k, placed(x, &at, k), 2);
    brc_buf want = elements_of(x, numbers, n);
    const brc_io io = {.size = sizeof(io), .array = x->a, .at = &at, .out = &got};
    MUST(x, brc_read(&io, 1, &x->kit.err));
    ck_assert_uint_eq(got.len, want.len);
    if (want.len > 0)
        ck_assert_mem_eq(got.data, want.data, want.len);
    brc_buf_dispose(&got);
    brc_buf_dispose(&want);
    free(numbers);
    free_places(&at);
}

static void step_put(grid_trial *x)
{
    brc_at at = some_places(x);
    const uint64_t n = how_many(&at);
    uint8_t *numbers = some_numbers(x, n);
    brc_buf data = elements_of(x, numbers, n);
    brc_buffer src = BRC_BUFFER_INIT;

    src.data = data.data;
    src.len = data.len;
    MUST(x, io_place(x->a, &at, &src, &x->kit.err));
    for (uint64_t k = 0; k < n; k++)
        memcpy(placed(x, &at, k), numbers + 2 * k, 2);
    brc_buf_dispose(&data);
    free(numbers);
    free_places(&at);
}

static uint64_t some_extent(grid_trial *x)
{
    return pick(x, 9) == 0 ? 0 : 1 + pick(x, LONGEST);
}

/* Returns 1 if the grid has chunks for the shape. */
static int fits(const grid_trial *x, const uint64_t *shape)
{
    for (int i = 0; i < x->m.ndim; i++)
        if (layouts[x->layout].end[i] != NO_END && shape[i] > layouts[x->layout].end[i])
            return 0;
    return 1;
}

static void step_resize(grid_trial *x)
{
    uint64_t shape[BRC_MAX_NDIM] = { 0 };

    for (int i = 0; i < x->m.ndim; i++)
        shape[i] = pick(x, 3) == 0 ? x->m.shape[i] : some_extent(x);
    int rc = brc_array_resize(x->a, shape, &x->kit.err);
    if (fits(x, shape)) {
        ck_assert_msg(rc == BRC_OK, "%s", x->kit.err.message);
        model_resize(&x->m, shape);
    } else {
        ck_assert_int_eq(rc, BRC_EINVAL);
        ck_assert_ptr_nonnull(strstr(x->kit.err.message, "the edges of its chunks add up to"));
    }
}

static void step_append(grid_trial *x)
{
    if (x->m.ndim == 0)
        return;
    int axis = (int)pick(x, (uint64_t)x->m.ndim);
    uint64_t shape[BRC_MAX_NDIM], count = pick(x, 4), n = count;
    brc_sel sel = { .size = sizeof(brc_sel), .ndim = x->m.ndim };

    memcpy(shape, x->m.shape, sizeof(shape));
    for (int i = 0; i < x->m.ndim; i++) {
        sel.step[i] = 1;
        sel.count[i] = i == axis ? count : shape[i];
        n *= i == axis ? 1 : shape[i];
    }
    sel.start[axis] = shape[axis];
    shape[axis] += count;
    uint8_t *numbers = some_numbers(x, n);
    brc_buf data = elements_of(x, numbers, n);
    int rc = brc_array_append(x->a, axis, count, data.data, data.len, &x->kit.err);
    if (fits(x, shape)) {
        ck_assert_msg(rc == BRC_OK, "%s", x->kit.err.message);
        model_resize(&x->m, shape);
        model_write(&x->m, &sel, numbers, NULL);
    } else {
        ck_assert_int_eq(rc, BRC_EINVAL);
    }
    brc_buf_dispose(&data);
    free(numbers);
}

static void step_commit(grid_trial *x)
{
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    size_t at = x->ncommits % COMMITS;
    int clean;

    MUST(x, brc_session_clean(&clean, x->kit.session, &x->kit.err));
    if (clean)
        return;
    opts.message = "so far";
    MUST(x, brc_session_commit(&x->commits[at], x->kit.session, &opts, &x->kit.err));
    model_free(&x->then[at]);
    x->then[at] = x->m;
    x->then[at].data = malloc(x->m.len + 1);
    ck_assert_ptr_nonnull(x->then[at].data);
    if (x->m.len > 0)
        memcpy(x->then[at].data, x->m.data, x->m.len);
    x->ncommits++;
}

/* Another writer makes the array shorter: it changes the shape in zarr.json, and leaves
 * every chunk what it is, as the specification allows. */
static void shorten_document(grid_trial *x, const char *name, const uint64_t *shape)
{
    brc_json *doc, *list = brc_json_new_array();
    brc_buf text = exchange_read(name);

    ck_assert_int_eq(brc_json_parse(&doc, (const char *)text.data, text.len, 0,
                                    &x->kit.err), BRC_OK);
    for (int i = 0; i < x->m.ndim; i++)
        ck_assert_int_eq(brc_json_push(list, brc_json_new_uint(shape[i]), NULL), BRC_OK);
    ck_assert_int_eq(brc_json_set(doc, "shape", list, NULL), BRC_OK);
    text.len = 0;
    ck_assert_int_eq(brc_json_write(&text, doc, 0, NULL), BRC_OK);
    ck_assert_int_eq(remove(name), 0);
    FILE *file = fopen(name, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text.data, 1, text.len, file), text.len);
    ck_assert_int_eq(fclose(file), 0);
    brc_json_free(doc);
    brc_buf_dispose(&text);
}

static void step_hand_over(grid_trial *x)
{
    char dir[32], document[48];
    uint64_t shape[BRC_MAX_NDIM] = { 0 };

    snprintf(dir, sizeof(dir), "out%u", x->exports++);
    snprintf(document, sizeof(document), "%s/zarr.json", dir);
    for (int i = 0; i < x->m.ndim; i++)
        shape[i] = pick(x, 2) == 0 ? x->m.shape[i] : pick(x, x->m.shape[i] + 1);
    MUST(x, brc_export(x->kit.session, "/a", exchange_path(&x->kit, dir), NULL, &x->kit.err));
    shorten_document(x, exchange_path(&x->kit, document), shape);
    MUST(x, brc_node_remove(x->kit.session, "/a", &x->kit.err));
    MUST(x, brc_import(x->kit.session, exchange_path(&x->kit, dir), "/a", NULL, &x->kit.err));
    open_array(x);
    model_resize(&x->m, shape);
}

/* ---- trials ------------------------------------------------------------------------- */

static void new_array_of_layout(grid_trial *x)
{
    char document[4096], codecs[2048], shape[64] = "";
    const char *to_bytes = kinds[x->is_text].to_bytes;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;

    snprintf(codecs, sizeof(codecs), "%.*s%s%s",
             (int)(strstr(layouts[x->layout].codecs, TO_BYTES) - layouts[x->layout].codecs),
             layouts[x->layout].codecs, to_bytes, strstr(layouts[x->layout].codecs, TO_BYTES) + 2);
    for (int i = 0; i < x->m.ndim; i++)
        snprintf(shape + strlen(shape), sizeof(shape) - strlen(shape), "%s%llu", i > 0 ? "," : "",
                 (unsigned long long)x->m.shape[i]);
    snprintf(document, sizeof(document),
             "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[%s],\"data_type\":\"%s\","
             "\"chunk_grid\":%s,\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":%s,"
             "\"codecs\":[%s]}",
             shape, kinds[x->is_text].dtype, layouts[x->layout].grid, kinds[x->is_text].fill,
             codecs);
    spec.metadata_json = document;
    MUST(x, brc_array_create(&x->a, x->kit.session, "/a", &spec, &x->kit.err));
}

static void trial_begin(grid_trial *x, size_t i)
{
    static const uint16_t fill = FILL;
    uint64_t shape[BRC_MAX_NDIM] = { 0 };

    memset(x, 0, sizeof(*x));
    x->layout = i % LAYOUTS;
    x->is_text = i / LAYOUTS % 2 != 0;
    x->random = 1000 + i;
    x->m.ndim = layouts[x->layout].ndim;
    for (int d = 0; d < x->m.ndim; d++) {
        uint64_t end = layouts[x->layout].end[d];
        shape[d] = some_extent(x);
        shape[d] = end != NO_END && shape[d] > end ? end : shape[d];
    }
    model_new(&x->m, x->m.ndim, shape, 2, &fill);
    exchange_start(&x->kit);
    new_array_of_layout(x);
}

static int grid_damage(void *ctx, const brc_damage *damage)
{
    snprintf(ctx, 200, "%s", damage->message);
    return 0;
}

/* Old commits are what they were, and nothing is damaged. */
static void trial_end(grid_trial *x)
{
    char hex[65], found[200] = "";
    uint64_t checked;
    size_t n = x->ncommits < COMMITS ? x->ncommits : COMMITS;

    for (size_t i = 0; i < n; i++) {
        brc_session *s;
        brc_array *a;
        brc_oid_format(hex, &x->commits[i]);
        MUST(x, brc_session_open(&s, x->kit.repo, hex, BRC_SESSION_AT, &x->kit.err));
        MUST(x, brc_array_open(&a, s, "/a", &x->kit.err));
        check_elements(x, a, &x->then[i]);
        brc_array_free(a);
        brc_session_free(s);
        model_free(&x->then[i]);
    }
    MUST(x, brc_fsck(x->kit.repo, 0, grid_damage, NULL, found, &checked, &x->kit.err));
    ck_assert_str_eq(found, "");
    brc_array_free(x->a);
    model_free(&x->m);
    exchange_stop(&x->kit);
}

CASE("arrays", .timeout = 60);

LOOP(trap61_an_array_over_any_grid_is_like_plain_memory, 0, 4 * (int)LAYOUTS)
{
    grid_trial x;

    trial_begin(&x, (size_t)_i);
    for (int step = 0; step < 30; step++) {
        switch (pick(&x, 12)) {
        case 0: case 1: case 2: step_resize(&x); break;
        case 3: step_append(&x); break;
        case 4: step_commit(&x); break;
        case 5: step_fill(&x); break;
        case 6: step_hand_over(&x); break;
        case 7: case 8: step_put(&x); break;
        default: step_write(&x); break;
        }
        check_elements(&x, x.a, &x.m);
        step_take(&x);
    }
    trial_end(&x);
}

/* The longest way there and back: to nothing, and beyond every edge. */
LOOP(trap61_what_was_cut_off_does_not_come_back, 0, 2 * (int)LAYOUTS)
{
    grid_trial x;
    uint64_t full[BRC_MAX_NDIM] = { 0 }, none[BRC_MAX_NDIM] = { 0 };

    trial_begin(&x, (size_t)_i);
    for (int d = 0; d < x.m.ndim; d++)
        full[d] = layouts[x.layout].end[d] == NO_END ? 9 : layouts[x.layout].end[d];
    for (int cut = 0; cut < 4 && x.m.ndim > 0; cut++) {
        static const uint16_t other = 300;
        static const int64_t still[BRC_MAX_NDIM];
        brc_buf element = BRC_BUF_INIT;
        brc_sel all = { .size = sizeof(brc_sel), .ndim = x.m.ndim };
        uint64_t shape[BRC_MAX_NDIM];

        MUST(&x, brc_array_resize(x.a, full, &x.kit.err));
        model_resize(&x.m, full);
        check_elements(&x, x.a, &x.m);
        put_element(&x, &element, other);
        MUST(&x, brc_array_fill(x.a, NULL, element.data, &x.kit.err));
        brc_buf_dispose(&element);
        for (int d = 0; d < x.m.ndim; d++) {
            all.count[d] = full[d];
            all.step[d] = 1;
            shape[d] = cut == 0 ? none[d] : full[d] * (uint64_t)cut / 4;
        }
        model_write(&x.m, &all, &other, still);
        MUST(&x, brc_array_resize(x.a, shape, &x.kit.err));
        model_resize(&x.m, shape);
        check_elements(&x, x.a, &x.m);
        if (cut == 2)
            step_commit(&x);
        MUST(&x, brc_array_resize(x.a, full, &x.kit.err));
        model_resize(&x.m, full);
        check_elements(&x, x.a, &x.m);
        MUST(&x, brc_array_resize(x.a, none, &x.kit.err));
        model_resize(&x.m, none);
    }
    trial_end(&x);
}
