/*
 * Shapes and regular grids. An extent of 0 makes an array empty, an array of
 * rank 0 has one element, and every product may exceed 64 bits.
 */
#include "shape.h"

#include <inttypes.h>
#include <string.h>

#include "../base/sized.h"

/* ==== shape ================================ */

int brc_shape_bytes(int ndim, const uint64_t *shape, uint64_t unit, uint64_t *out)
{
    uint64_t total = unit;
    int fits = 1, empty = unit == 0;
    for (int d = 0; d < ndim; d++) {
        empty |= shape[d] == 0;
        fits = fits && brc_mul_u64(total, shape[d], &total);
    }
    *out = empty ? 0 : total;
    return fits || empty;
}

uint64_t brc_shape_count(int ndim, const uint64_t *shape)
{
    uint64_t total;
    return brc_shape_bytes(ndim, shape, 1, &total) ? total : UINT64_MAX;
}

int brc_index_next(int ndim, uint64_t *index, const uint64_t *shape)
{
    for (int d = ndim - 1; d >= 0; d--) {
        if (index[d] + 1 < shape[d]) {
            index[d]++;
            return 1;
        }
        index[d] = 0;
    }
    return 0;
}

#define RANGE_CHUNK ((uint64_t)1 << 20)      /* bytes of a chunk, about   */
#define RANGE_CHUNK_MOST ((uint64_t)64 << 20) /* where no part divides a row */

/* Returns how many of `extent` rows of `row` bytes are a chunk: a divisor if they must be, and if
 * one is near. */
static uint64_t rows_in_chunk(uint64_t extent, uint64_t row, int must_divide)
{
    const uint64_t most = brc_at_least_one(RANGE_CHUNK / row);
    if (extent <= most)
        return extent;
    for (uint64_t n = most; n > most / 4; n--)
        if (extent % n == 0)
            return n;
    if (!must_divide)
        return most;
    if (extent <= RANGE_CHUNK_MOST / row)
        return extent;
    uint64_t n = most;
    while (extent % n != 0)
        n--;
    return n;
}

void brc_range_chunks(int ndim, const uint64_t *shape, uint64_t item, int fortran, uint64_t pieces,
                      uint64_t *chunk)
{
    uint64_t row = brc_at_least_one(item);
    int i = ndim - 1;
    for (int k = 0; k < ndim; k++)
        chunk[k] = 1;
    for (; i >= 0; i--) {
        const int axis = fortran ? ndim - 1 - i : i;
        const uint64_t extent = brc_at_least_one(shape[axis]);
        if (i == 0 && pieces > 1) /* chunks of more than a piece are not ranges */
            return;
        chunk[axis] = rows_in_chunk(extent, row, i > 0);
        if (chunk[axis] < extent)
            return;
        row = brc_mul_capped(row, extent);
        if (row > RANGE_CHUNK)
            return;
    }
}

void brc_strides_packed(int ndim, const uint64_t *shape, size_t item, int64_t *strides)
{
    /* unsigned: an array too large for memory has no use for its strides, but may ask */
    uint64_t stride = item;
    for (int d = ndim - 1; d >= 0; d--) {
        strides[d] = (int64_t)stride;
        stride *= shape[d];
    }
}

/* Returns how many of start, start + step, ... are below `end`. */
static uint64_t steps_below(uint64_t start, uint64_t step, uint64_t end)
{
    return start < end ? (end - start - 1) / step + 1 : 0;
}

int brc_overlap_of(brc_overlap *out, const brc_sel *sel, const uint64_t *shape,
                   const uint64_t *chunk, const uint64_t *index)
{
    uint64_t corner[BRC_MAX_NDIM];
    for (int d = 0; d < sel->ndim; d++)
        if (!brc_mul_u64(index[d], chunk[d], &corner[d]))
            corner[d] = shape[d];
    return brc_overlap_box(out, sel, shape, corner, chunk);
}

int brc_overlap_box(brc_overlap *out, const brc_sel *sel, const uint64_t *shape,
                    const uint64_t *corners, const uint64_t *chunk)
{
    int any = 1;
    out->whole = 1;
    for (int d = 0; d < sel->ndim; d++) {
        uint64_t end, step = sel->step[d] > 0 ? sel->step[d] : 1;
        uint64_t corner = corners[d] < shape[d] ? corners[d] : shape[d];
        end = shape[d] - corner < chunk[d] ? shape[d] : corner + chunk[d];
        uint64_t first = steps_below(sel->start[d], step, corner);
        uint64_t past = steps_below(sel->start[d], step, end);
        if (past > sel->count[d])
            past = sel->count[d];
        if (first >= past) {
            out->count[d] = out->in_sel[d] = out->in_chunk[d] = 0;
            any = 0;
        } else {
            out->count[d] = past - first;
            out->in_sel[d] = first;
            out->in_chunk[d] = sel->start[d] + first * step - corner;
        }
        out->whole &= out->count[d] == end - corner;
    }
    out->whole &= any;
    return any;
}

/* ==== cut ================================ */

/* Cutting selections into boxes, see shape.h. */

enum { CUT_FRESH, CUT_BEGUN, CUT_ENDED };

/* ---- extents -------------------------------- */

void brc_cut_grow(int ndim, const int *order, uint64_t *extent, const uint64_t *whole,
                  uint64_t bytes, uint64_t budget)
{
    for (int k = ndim; k-- > 0;) {
        const int i = order != NULL ? order[k] : k;
        const uint64_t n = brc_grid_extent(whole[i], brc_at_least_one(extent[i]));
        const uint64_t fit = brc_at_least_one(budget / brc_at_least_one(bytes));
        if (fit < n) {
            extent[i] *= fit;
            return;
        }
        bytes = brc_mul_capped(bytes, brc_at_least_one(n));
        extent[i] = whole[i];
    }
}

/* Estimates how many indices of the selection lie in one chunk. */
static uint64_t chunk_in_sel(const brc_sel *within, const uint64_t *chunk, int axis)
{
    return brc_at_least_one(chunk[axis] / brc_at_least_one(within->step[axis]));
}

static void cut_start(brc_cut *cut, const brc_sel *within, int fortran)
{
    const int ndim = within->ndim;
    memset(cut, 0, sizeof(*cut));
    cut->within = cut->sel = *within;
    for (int k = 0; k < ndim; k++) {
        cut->order[k] = fortran ? ndim - 1 - k : k;
        if (within->count[k] == 0)
            cut->state = CUT_ENDED;
    }
}

/* Makes boxes of several chunks end where chunks do. */
static void align_first(brc_cut *cut, const uint64_t *chunk)
{
    cut->most = cut->state == CUT_ENDED ? 0 : 1;
    for (int i = 0; i < cut->within.ndim; i++) {
        const uint64_t in_chunk = chunk_in_sel(&cut->within, chunk, i);
        const uint64_t extent = cut->extent[i], count = cut->within.count[i];
        cut->first[i] = extent;
        if (extent >= in_chunk && extent < count && cut->within.step[i] == 1)
            cut->first[i] -= cut->within.start[i] % in_chunk;
        cut->most = brc_mul_capped(cut->most, extent < count ? extent : count);
    }
}

/* Sets the extent of a cut along this axis, one index of which is `unit` bytes; 0 if the cut
 * must be along a faster one. */
static int cut_axis(brc_cut *cut, const uint64_t *chunk, int axis, uint64_t unit, uint64_t budget)
{
    const uint64_t count = cut->within.count[axis];
    const uint64_t in_chunk = chunk_in_sel(&cut->within, chunk, axis);
    const uint64_t row = brc_mul_capped(unit, in_chunk < count ? in_chunk : count);
    const uint64_t chunks = brc_at_least_one(budget / brc_mul_capped(unit, in_chunk));
    if (row <= budget)
        cut->extent[axis] = brc_mul_capped(chunks, in_chunk);
    else if (row / 4 < budget)
        cut->extent[axis] = in_chunk;
    else if (unit <= budget)
        cut->extent[axis] = budget / unit;
    else
        return 0;
    return 1;
}

void brc_cut_runs(brc_cut *out, const brc_sel *within, const uint64_t *chunk, size_t item,
                  int fortran, uint64_t budget)
{
    uint64_t unit[BRC_MAX_NDIM + 1];
    const int ndim = within->ndim;

    cut_start(out, within, fortran);
    unit[ndim] = item > 0 ? item : BRC_VARIABLE_BYTES;
    for (int k = ndim; k-- > 0;) {
        const int axis = out->order[k];
        out->extent[axis] = brc_at_least_one(within->count[axis]);
        unit[k] = brc_mul_capped(unit[k + 1], out->extent[axis]);
    }
    for (int k = 0; k < ndim && !cut_axis(out, chunk, out->order[k], unit[k + 1], budget); k++)
        out->extent[out->order[k]] = 1;
    align_first(out, chunk);
}

int brc_cut_is_whole(const brc_cut *cut, const uint64_t *chunk)
{
    for (int i = 0; i < cut->within.ndim; i++)
        if (cut->extent[i] < cut->within.count[i] &&
            cut->extent[i] * cut->within.step[i] % chunk[i] != 0)
            return 0;
    return 1;
}

void brc_cut_chunks(brc_cut *out, const brc_sel *within, const uint64_t *chunk, size_t item,
                    uint64_t budget)
{
    uint64_t bytes = item > 0 ? item : BRC_VARIABLE_BYTES;

    cut_start(out, within, 0);
    for (int i = 0; i < within->ndim; i++) {
        const uint64_t in_chunk = chunk_in_sel(within, chunk, i);
        const uint64_t count = brc_at_least_one(within->count[i]);
        out->extent[i] = in_chunk < count ? in_chunk : count;
        bytes = brc_mul_capped(bytes, out->extent[i]);
    }
    brc_cut_grow(within->ndim, NULL, out->extent, within->count, bytes, budget);
    align_first(out, chunk);
}

/* ---- the walk -------------------------------- */

/* Moves to the start of the next box. Returns 0 after the last. */
static int step_on(brc_cut *cut)
{
    for (int k = cut->within.ndim; k-- > 0;) {
        const int i = cut->order[k];
        if (cut->within.count[i] - cut->at[i] > cut->sel.count[i]) {
            cut->at[i] += cut->sel.count[i];
            return 1;
        }
        cut->at[i] = 0;
    }
    return 0;
}

int brc_cut_next(brc_cut *cut)
{
    const brc_sel *w = &cut->within;
    if (cut->state == CUT_BEGUN && !step_on(cut))
        cut->state = CUT_ENDED;
    if (cut->state == CUT_ENDED)
        return 0;
    cut->state = CUT_BEGUN;
    cut->elements = 1;
    for (int i = 0; i < w->ndim; i++) {
        const uint64_t left = w->count[i] - cut->at[i];
        const uint64_t want = cut->at[i] == 0 ? cut->first[i] : cut->extent[i];
        cut->sel.start[i] = w->start[i] + cut->at[i] * w->step[i];
        cut->sel.count[i] = want < left ? want : left;
        cut->elements = brc_mul_capped(cut->elements, cut->sel.count[i]);
    }
    return 1;
}

void brc_cut_strides(const brc_cut *cut, size_t item, int64_t *strides)
{
    uint64_t stride = item;
    for (int k = cut->sel.ndim; k-- > 0;) {
        strides[cut->order[k]] = (int64_t)stride;
        stride *= cut->sel.count[cut->order[k]];
    }
}

/* ==== sel ================================ */

/*
 * Selections as Python writes them: "[0:10, :, ::2]".
 *
 *     text  = [ "[" ] [ item { "," item } [ "," ] ] [ "]" ]   or  "()"
 *     item  = "..." | integer | [ integer ] ":" [ integer ] [ ":" [ integer ] ]
 *
 * White space may stand between any two of these. Integers have any length:
 * those past 64 bits are clipped like every other bound of a slice.
 */

struct sel_number {
    uint64_t size; /* clipped to UINT64_MAX */
    int negative, given;
};

struct sel_reader {
    const char *at, *end;
    const uint64_t *shape;
    int ndim;
    brc_error *err;
};

static int is_sel_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void skip_sel_space(struct sel_reader *r)
{
    while (r->at < r->end && is_sel_space(*r->at))
        r->at++;
}

/* Reads the word if it comes next. */
static int take_sel_word(struct sel_reader *r, const char *word)
{
    size_t len = strlen(word);
    skip_sel_space(r);
    if ((size_t)(r->end - r->at) < len || memcmp(r->at, word, len) != 0)
        return 0;
    r->at += len;
    return 1;
}

static int sel_at_end(struct sel_reader *r)
{
    skip_sel_space(r);
    return r->at == r->end;
}

static int sel_grammar_error(const struct sel_reader *r, int axis)
{
    const char *stop = r->at;
    while (stop < r->end && *stop != ',' && stop - r->at < 40)
        stop++;
    return brc_fail(r->err, BRC_EINVAL,
                    "selection for axis %d: \"%.*s\" is not an integer, a slice "
                    "(start:stop:step) or \"...\"",
                    axis, (int)(stop - r->at), r->at);
}

/* Reads an optional number: `given` tells whether there is one. A sign alone is an error. */
static int read_sel_number(struct sel_reader *r, int axis, struct sel_number *out)
{
    *out = (struct sel_number){ 0, 0, 0 };
    skip_sel_space(r);
    const char *begin = r->at;
    if (take_sel_word(r, "-"))
        out->negative = 1;
    else
        take_sel_word(r, "+");
    skip_sel_space(r);
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
        out->given = 1;
        if (__builtin_mul_overflow(out->size, UINT64_C(10), &out->size) ||
            __builtin_add_overflow(out->size, (uint64_t)(*r->at - '0'), &out->size))
            out->size = UINT64_MAX;
    }
    if (out->size == 0)
        out->negative = 0;
    if (!out->given && r->at != begin) {
        r->at = begin;
        return sel_grammar_error(r, axis);
    }
    return BRC_OK;
}

/* Returns a slice's bound: a negative one counts from the end, and one outside is clipped. */
static uint64_t clip_sel_bound(const struct sel_number *bound, uint64_t extent, uint64_t otherwise)
{
    if (!bound->given)
        return otherwise;
    if (bound->negative)
        return bound->size < extent ? extent - bound->size : 0;
    return bound->size < extent ? bound->size : extent;
}

static int read_sel_slice(struct sel_reader *r, int axis, const struct sel_number *start,
                          brc_sel *out)
{
    struct sel_number stop, step = { 1, 0, 0 };
    uint64_t extent = r->shape[axis];
    BRC_TRY(read_sel_number(r, axis, &stop));
    if (take_sel_word(r, ":")) {
        BRC_TRY(read_sel_number(r, axis, &step));
        if (step.given && (step.negative || step.size == 0))
            return brc_fail(r->err, BRC_EINVAL,
                            "selection for axis %d: a step must be 1 or more, not %s%" PRIu64, axis,
                            step.negative ? "-" : "", step.size);
        if (!step.given)
            step.size = 1;
    }
    uint64_t first = clip_sel_bound(start, extent, 0), past = clip_sel_bound(&stop, extent, extent);
    out->start[axis] = first;
    out->step[axis] = step.size;
    out->count[axis] = first < past ? (past - first - 1) / step.size + 1 : 0;
    out->drop &= ~(UINT32_C(1) << axis);
    return BRC_OK;
}

static int set_sel_index(const struct sel_reader *r, int axis, const struct sel_number *index,
                         brc_sel *out)
{
    uint64_t extent = r->shape[axis];
    int inside = index->negative ? index->size <= extent : index->size < extent;
    if (!inside && index->size == UINT64_MAX)
        return brc_fail(r->err, BRC_EINVAL,
                        "index for axis %d is out of bounds: the extent is %" PRIu64, axis, extent);
    if (!inside)
        return brc_fail(r->err, BRC_EINVAL,
                        "index %s%" PRIu64 " is out of bounds for axis %d with extent %" PRIu64,
                        index->negative ? "-" : "", index->size, axis, extent);
    out->start[axis] = index->negative ? extent - index->size : index->size;
    out->step[axis] = 1;
    out->count[axis] = 1;
    out->drop |= UINT32_C(1) << axis;
    return BRC_OK;
}

static int read_sel_item(struct sel_reader *r, int axis, brc_sel *out)
{
    struct sel_number number;
    BRC_TRY(read_sel_number(r, axis, &number));
    if (take_sel_word(r, ":"))
        BRC_TRY(read_sel_slice(r, axis, &number, out));
    else if (number.given)
        BRC_TRY(set_sel_index(r, axis, &number, out));
    else
        return sel_grammar_error(r, axis);
    if (!sel_at_end(r) && *r->at != ',')
        return sel_grammar_error(r, axis);
    return BRC_OK;
}

static void set_sel_full(brc_sel *out, int axis, const uint64_t *shape)
{
    out->start[axis] = 0;
    out->step[axis] = 1;
    out->count[axis] = shape[axis];
    out->drop &= ~(UINT32_C(1) << axis);
}

/* Counts the items in the text, without an ellipsis and a comma at the end. */
static int count_sel_items(struct sel_reader r)
{
    int items = 0;
    while (!sel_at_end(&r)) {
        items += !take_sel_word(&r, "...");
        while (r.at < r.end && *r.at != ',')
            r.at++;
        if (r.at < r.end)
            r.at++;
        if (items > BRC_MAX_NDIM)
            break;
    }
    return items;
}

static int read_sel_items(struct sel_reader *r, brc_sel *out)
{
    int items = count_sel_items(*r), axis = 0, ellipses = 0;
    if (items > r->ndim)
        return brc_fail(r->err, BRC_EINVAL,
                        "too many indices: the array has %d dimension%s, the selection %s%d",
                        r->ndim, r->ndim == 1 ? "" : "s", items > BRC_MAX_NDIM ? "more than " : "",
                        items > BRC_MAX_NDIM ? BRC_MAX_NDIM : items);
    while (!sel_at_end(r)) {
        if (take_sel_word(r, "...")) {
            if (++ellipses > 1)
                return brc_fail(r->err, BRC_EINVAL, "a selection has one \"...\" at most");
            for (int full = r->ndim - items; full > 0; full--)
                set_sel_full(out, axis++, r->shape);
            if (!sel_at_end(r) && *r->at != ',')
                return sel_grammar_error(r, axis);
        } else {
            BRC_TRY(read_sel_item(r, axis++, out));
        }
        if (!sel_at_end(r))
            r->at++; /* the comma */
    }
    while (axis < r->ndim)
        set_sel_full(out, axis++, r->shape);
    return BRC_OK;
}

/* Removes this pair from around the text. Returns 1 if the pair was there. */
static int strip_sel_pair(struct sel_reader *r, char open, char close)
{
    skip_sel_space(r);
    while (r->end > r->at && is_sel_space(r->end[-1]))
        r->end--;
    if (r->end - r->at < 2 || r->at[0] != open || r->end[-1] != close)
        return 0;
    r->at++;
    r->end--;
    return 1;
}

void brc_sel_of_shape(brc_sel *out, int ndim, const uint64_t *shape)
{
    *out = (brc_sel)BRC_SEL_INIT;
    out->ndim = ndim;
    for (int i = 0; i < ndim; i++) {
        out->count[i] = shape[i];
        out->step[i] = 1;
    }
}

/* Refuses brackets that remain inside the selection, or that have no counterpart. */
static int check_sel_brackets(const struct sel_reader *r, const char *text, int has_pair)
{
    size_t opened = 0, closed = 0;
    for (const char *at = r->at; at < r->end; at++) {
        opened += *at == '[';
        closed += *at == ']';
    }
    if (opened == 0 && closed == 0)
        return BRC_OK;
    if (has_pair && opened != closed)
        return brc_fail(r->err, BRC_EINVAL,
                        "selection %.60s has more \"%s\" than \"%s\": write [0:5]", text,
                        opened > closed ? "[" : "]", opened > closed ? "]" : "[");
    if (has_pair)
        return brc_fail(r->err, BRC_EINVAL,
                        "selection %.60s has brackets inside: write [17, 512] for one element, "
                        "[0:10, 512] for a part; lists of indices are not supported",
                        text);
    return brc_fail(r->err, BRC_EINVAL, "selection %.60s: a bracket is missing; write [0:5]", text);
}

int brc_sel_read(brc_sel *out, int ndim, const uint64_t *shape, const char *text, brc_error *err)
{
    struct sel_reader r = { text, text + strlen(text), shape, ndim, err };
    *out = (brc_sel)BRC_SEL_INIT;
    out->ndim = ndim;
    int brackets = strip_sel_pair(&r, '[', ']');
    BRC_TRY(check_sel_brackets(&r, text, brackets));
    if (brackets && sel_at_end(&r) && ndim > 0)
        return brc_fail(err, BRC_EINVAL, "selection [] is empty: write [...] for the whole array");
    if (strip_sel_pair(&r, '(', ')') && !sel_at_end(&r))
        return brc_fail(err, BRC_EINVAL,
                        "a selection is written in square brackets, not in parentheses");
    return read_sel_items(&r, out);
}

int brc_sel_check(const brc_sel *sel, int ndim, const uint64_t *shape, brc_error *err)
{
    BRC_TRY(brc_sized_check(sel->size, sizeof(*sel), "brc_sel", err));
    if (sel->ndim != ndim)
        return brc_fail(err, BRC_EINVAL, "the selection has %d dimension%s, the array %d",
                        sel->ndim, sel->ndim == 1 ? "" : "s", ndim);
    for (int d = 0; d < ndim; d++) {
        if (sel->step[d] == 0)
            return brc_fail(err, BRC_EINVAL,
                            "selection for axis %d: a step must be 1 or more, not 0", d);
        if ((sel->drop >> d & 1) && sel->count[d] != 1)
            return brc_fail(err, BRC_EINVAL,
                            "selection for axis %d: a dropped axis has 1 element, not %" PRIu64, d,
                            sel->count[d]);
        if (sel->count[d] == 0)
            continue;
        if (sel->start[d] >= shape[d] ||
            sel->count[d] - 1 > (shape[d] - 1 - sel->start[d]) / sel->step[d])
            return brc_fail(err, BRC_EINVAL,
                            "selection for axis %d leaves the array: its extent is %" PRIu64, d,
                            shape[d]);
    }
    return BRC_OK;
}

/* ==== memory ================================ */

/*
 * Checks that every selected element lies inside a caller's memory.
 *
 * Invariant: offsets are counted in bytes from the memory's start, as unsigned 64-bit numbers
 * that never wrap; no pointer is formed before all of them are known to lie within the memory.
 */

int brc_memory_of(brc_memory *out, const brc_buffer *given, int way, brc_error *err)
{
    brc_buffer b;
    BRC_TRY(brc_sized_in(&b, sizeof(b), offsetof(brc_buffer, device_id), given, "brc_buffer", err));
    BRC_TRY(brc_flags_check(b.flags, BRC_BUFFER_READONLY, "brc_buffer", err));
    if (way == BRC_MEMORY_OUT && (b.flags & BRC_BUFFER_READONLY))
        return brc_fail(err, BRC_EINVAL, "the buffer is read-only: nothing can be read into it");
    if (b.offset > b.len || (b.data == NULL && b.len > 0))
        return brc_fail(err, BRC_EINVAL,
                        "the buffer begins at byte %zu of memory with %zu bytes", b.offset,
                        b.data != NULL ? b.len : 0);
    *out = (brc_memory){b.data == NULL ? NULL : (uint8_t *)b.data + b.offset, b.len - b.offset,
                        b.strides, b.offset, b.device, b.device_id, b.prototype,
                        b.stream};
    return BRC_OK;
}

/* Extends the touched range by count - 1 strides; `item` bytes follow `high`. */
static int stretch(uint64_t *low, uint64_t *high, uint64_t count, int64_t stride)
{
    uint64_t step = stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride, span;
    if (!brc_mul_u64(count - 1, step, &span))
        return 0;
    if (stride >= 0)
        return brc_add_u64(*high, span, high);
    if (span > *low)
        return 0;
    *low -= span;
    return 1;
}

static int strided_fits(const brc_buffer *given, int ndim, const uint64_t *count, size_t item,
                        int way, brc_error *err)
{
    uint64_t low = given->offset, high = given->offset, end;
    for (int i = 0; i < ndim; i++)
        if (count[i] == 0)
            return BRC_OK;
    for (int i = 0; i < ndim; i++) {
        if (way == BRC_MEMORY_OUT && count[i] > 1 && given->strides[i] == 0)
            return brc_fail(err, BRC_EINVAL,
                            "stride 0 for axis %d: the elements read would share one place", i);
        if (!stretch(&low, &high, count[i], given->strides[i]))
            return brc_fail(err, BRC_EINVAL,
                            "the strides leave the buffer's %zu bytes along axis %d", given->len,
                            i);
    }
    if (!brc_add_u64(high, item, &end) || end > given->len)
        return brc_fail(err, BRC_EINVAL, "the strides leave the buffer's %zu bytes", given->len);
    return BRC_OK;
}

int brc_memory_fits(const brc_buffer *given, int ndim, const uint64_t *count, size_t item, int way,
                    brc_error *err)
{
    uint64_t want;
    if (given->strides != NULL)
        return strided_fits(given, ndim, count, item, way, err);
    if (!brc_shape_bytes(ndim, count, item, &want))
        return brc_fail(err, BRC_ELIMIT, "the selection has more than 2^64 bytes");
    if (want == given->len - given->offset)
        return BRC_OK;
    return brc_fail(err, BRC_EINVAL, "the selection has %llu bytes, but the memory has %zu",
                    (unsigned long long)want, given->len - given->offset);
}
