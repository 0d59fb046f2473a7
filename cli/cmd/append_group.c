/*
 * append_group.c - append to a group.
 *
 * First everything is compared: which arrays have the dimension on both sides, their data types,
 * other lengths and attributes, and the coordinates of the other dimensions. Then the arrays grow,
 * one after the other, in one change. Times that count from another date become the array's own.
 */
#include "append_group.h"

#include <stdlib.h>
#include <string.h>

#include "../cli.h"
#include "../decode.h"
#include "../scalar.h"
#include "../variable.h"
#include "source.h"

enum { COPIED_AT_ONCE = 32 << 20, VARIABLE_LENGTH = 1024 };

/* An array on one side. */
struct side {
    brc_session *session;
    const char *root;     /* the group                                         */
    const char *name;     /* what messages call the side                       */
    brc_array *array;
    const brc_array_info *info;
    struct cli_variable variable;
    int axis;             /* -1: the array does not have the dimension         */
};

struct grown {
    const char *inner; /* "t", "daily/t"                                       */
    uint64_t before;
};

struct appending {
    struct cli *cli;
    const char *dim;
    struct side to, from;
    struct grown *grown;
    size_t ngrown, cap;
    uint64_t length, count; /* of the dimension, and of what is appended       */
    const char *first;      /* the first array that has it                     */
    const char *dims[64];   /* other dimensions, if no array has it            */
    size_t ndims;
    int recodes; /* the open arrays count times in other units                 */
    struct cli_decoder times_to, times_from;
};

static void side_close(struct side *side)
{
    cli_variable_free(&side->variable);
    brc_array_free(side->array);
    side->array = NULL;
}

static const char *side_path(struct cli *cli, const struct side *side, const char *inner)
{
    return cli_text(cli, "%s/%s", side->root[1] ? side->root : "", inner);
}

static int side_open(struct appending *a, struct side *side, const char *inner)
{
    struct cli *cli = a->cli;
    const char *path = side_path(cli, side, inner);

    side_close(side);
    CLI_TRY(brc_array_open(&side->array, side->session, path, &cli->err));
    side->info = brc_array_describe(side->array);
    CLI_TRY(cli_variable_read(cli, side->session, path, &side->variable));
    side->axis = cli_variable_axis(&side->variable, side->info->ndim, a->dim);
    return BRC_OK;
}

/* ---- comparing -------------------------------- */

static const char *buf_words(struct cli *cli, const brc_buf *text)
{
    return text->len ? cli_text(cli, "%.*s", (int)text->len, (const char *)text->data) : "missing";
}

/* Fails unless an attribute that says what the elements mean is the same on both sides. */
static int check_attribute(struct appending *a, const char *inner, const char *name)
{
    struct cli *cli = a->cli;
    const brc_json *to = brc_json_member(a->to.variable.attributes, name);
    const brc_json *from = brc_json_member(a->from.variable.attributes, name);
    brc_buf texts[2] = { BRC_BUF_INIT, BRC_BUF_INIT };
    double numbers[2];
    int rc = BRC_OK, same = !to == !from;

    if (rc >= 0 && to)
        rc = brc_json_write(&texts[0], to, 0, &cli->err);
    if (rc >= 0 && from)
        rc = brc_json_write(&texts[1], from, 0, &cli->err);
    if (same && to && brc_json_double(to, &numbers[0]) && brc_json_double(from, &numbers[1]))
        same = numbers[0] == numbers[1];
    else if (same)
        same = texts[0].len == texts[1].len &&
               (texts[0].len == 0 || memcmp(texts[0].data, texts[1].data, texts[0].len) == 0);
    if (rc >= 0 && !same)
        rc = cli_fail(cli, BRC_EINVAL, "%s: the attribute %s of %s is %s there and %s here: make "
                      "both the same first", a->from.name, name, inner,
                      buf_words(cli, &texts[1]), buf_words(cli, &texts[0]));
    brc_buf_dispose(&texts[0]);
    brc_buf_dispose(&texts[1]);
    return rc;
}

/* Bounds of times have no units of their own, so their times stay as they are. */
static int has_times(const struct side *side)
{
    const char *units = cli_variable_text(&side->variable, "units");
    struct cli_time_units read;

    return units && !brc_json_member(side->variable.attributes, "bounds") &&
           !brc_json_member(side->variable.attributes, "climatology") &&
           cli_time_units_read(&read, units, cli_variable_text(&side->variable, "calendar")) > 0;
}

/* Finds out whether the open arrays are times of one calendar in different units. */
static int compare_times(struct appending *a)
{
    struct cli *cli = a->cli;

    a->recodes = 0;
    if (a->to.axis < 0 || !has_times(&a->to) || !has_times(&a->from) ||
        strcmp(cli_variable_text(&a->to.variable, "units"),
               cli_variable_text(&a->from.variable, "units")) == 0)
        return BRC_OK;
    CLI_TRY(cli_decoder_read(cli, &a->to.variable, a->to.info, &a->times_to));
    CLI_TRY(cli_decoder_read(cli, &a->from.variable, a->from.info, &a->times_from));
    a->recodes = a->times_to.seen == CLI_TIME && a->times_from.seen == CLI_TIME &&
                 a->times_to.units.calendar == a->times_from.units.calendar;
    return BRC_OK;
}

static int check_meanings(struct appending *a, const char *inner)
{
    static const char *const names[] = { "units", "calendar", "scale_factor", "add_offset",
                                         "_FillValue", "missing_value", "_Unsigned" };

    CLI_TRY(compare_times(a));
    for (size_t i = a->recodes ? 2 : 0; i < sizeof(names) / sizeof(names[0]); i++)
        CLI_TRY(check_attribute(a, inner, names[i]));
    return BRC_OK;
}

/* Compares the open arrays of both sides, but not their elements. */
static int check_fits(struct appending *a, const char *inner)
{
    struct cli *cli = a->cli;
    const struct side *to = &a->to, *from = &a->from;

    if (strcmp(to->info->dtype, from->info->dtype) != 0)
        return cli_fail(cli, BRC_EINVAL, "%s: %s is %s there and %s here", from->name, inner,
                        from->info->dtype, to->info->dtype);
    for (int i = 0; i < to->info->ndim && to->info->ndim == from->info->ndim; i++)
        if (strcmp(to->variable.dims[i], from->variable.dims[i]) != 0)
            return cli_fail(cli, BRC_EINVAL, "%s: %s has the dimensions (%s) there and (%s) here",
                            from->name, inner,
                            cli_variable_dims(cli, &from->variable, from->info->ndim),
                            cli_variable_dims(cli, &to->variable, to->info->ndim));
    for (int i = 0; i < to->info->ndim; i++)
        if (to->info->ndim != from->info->ndim ||
            (i != to->axis && to->info->shape[i] != from->info->shape[i]))
            return cli_fail(cli, BRC_EINVAL, "%s: %s has shape (%s) there and (%s) here, which "
                            "may differ along %s alone", from->name, inner,
                            cli_dims_text(cli, from->info->shape, from->info->ndim),
                            cli_dims_text(cli, to->info->shape, to->info->ndim), a->dim);
    return check_meanings(a, inner);
}

/* Notes that the array grows; all must be as long as the first one. */
static int note_grown(struct appending *a, const char *inner)
{
    struct cli *cli = a->cli;
    uint64_t length = a->to.info->shape[a->to.axis], count = a->from.info->shape[a->from.axis];

    if (!a->first) {
        a->first = inner;
        a->length = length;
        a->count = count;
    }
    if (length != a->length || count != a->count)
        return cli_fail(cli, BRC_EINVAL,
                        "the dimension %s has length %llu in %s and length %llu in %s%s%s: make "
                        "them equal first, with append or resize", a->dim,
                        (unsigned long long)(length != a->length ? a->length : a->count), a->first,
                        (unsigned long long)(length != a->length ? length : count), inner,
                        length != a->length ? "" : " of ", length != a->length ? "" : a->from.name);
    a->grown = cli_grow(a->grown, a->ngrown, &a->cap, sizeof(*a->grown));
    a->grown[a->ngrown++] = (struct grown){ inner, length };
    return BRC_OK;
}

/* Reads the whole of a coordinate. */
static int read_coordinate_of(struct cli *cli, const struct side *side, brc_buf *out)
{
    brc_io io = BRC_IO_INIT;

    io.array = side->array;
    io.out = out;
    return brc_read(&io, 1, &cli->err);
}

static int fail_coordinate(struct appending *a, const char *inner, const brc_buf *to,
                           const brc_buf *from)
{
    struct cli *cli = a->cli;
    brc_buf texts[2] = { BRC_BUF_INIT, BRC_BUF_INIT };
    size_t item = a->to.info->item_size, at = 0;
    int rc = BRC_OK;

    while (item && at + item < to->len && memcmp(to->data + at, from->data + at, item) == 0)
        at += item;
    if (item) {
        rc = brc_element_format(&texts[0], a->to.array, to->data + at, 0, &cli->err);
        if (rc >= 0)
            rc = brc_element_format(&texts[1], a->to.array, from->data + at, 0, &cli->err);
    }
    if (rc >= 0 && !item)
        rc = cli_fail(cli, BRC_EINVAL, "%s: the coordinate %s is another one there", a->from.name,
                      inner);
    else if (rc >= 0)
        rc = cli_fail(cli, BRC_EINVAL, "%s: the coordinate %s is another one there: element %zu is "
                      "%.*s there and %.*s here", a->from.name, inner, at / item,
                      (int)texts[1].len, (const char *)texts[1].data, (int)texts[0].len,
                      (const char *)texts[0].data);
    brc_buf_dispose(&texts[0]);
    brc_buf_dispose(&texts[1]);
    return rc;
}

/* Compares the open arrays, coordinates of another dimension, with their elements. */
static int check_coordinate(struct appending *a, const char *inner)
{
    struct cli *cli = a->cli;
    brc_buf to = BRC_BUF_INIT, from = BRC_BUF_INIT;
    int rc = check_fits(a, inner);

    if (rc >= 0)
        rc = read_coordinate_of(cli, &a->to, &to);
    if (rc >= 0)
        rc = read_coordinate_of(cli, &a->from, &from);
    if (rc >= 0 && (to.len != from.len || (to.len && memcmp(to.data, from.data, to.len) != 0)))
        rc = fail_coordinate(a, inner, &to, &from);
    brc_buf_dispose(&to);
    brc_buf_dispose(&from);
    return rc;
}

static int is_own_coordinate(const struct side *side, const char *inner)
{
    const char *slash = strrchr(inner, '/');

    return side->info->ndim == 1 && strcmp(side->variable.dims[0], slash ? slash + 1 : inner) == 0;
}

/* Notes whether an array of the group has the dimension. */
static int find_first(struct appending *a, const char *inner)
{
    if (a->first)
        return BRC_OK;
    CLI_TRY(side_open(a, &a->to, inner));
    a->first = a->to.axis >= 0 ? inner : NULL;
    return BRC_OK;
}

static int gather_dims(struct appending *a, const char *inner)
{
    CLI_TRY(side_open(a, &a->to, inner));
    for (int i = 0; i < a->to.info->ndim && a->to.variable.named; i++) {
        const char *name = a->to.variable.dims[i];
        size_t k = 0;

        while (k < a->ndims && strcmp(a->dims[k], name) != 0)
            k++;
        if (name[0] && k == a->ndims && k < sizeof(a->dims) / sizeof(a->dims[0]))
            a->dims[a->ndims++] = cli_text(a->cli, "%s", name);
    }
    return BRC_OK;
}

/* Looks at an array of the group. */
static int look_at(struct appending *a, const char *inner)
{
    struct cli *cli = a->cli;
    int kind;

    CLI_TRY(side_open(a, &a->to, inner));
    if (a->to.axis < 0 && !is_own_coordinate(&a->to, inner))
        return BRC_OK;
    CLI_TRY(brc_node_kind(&kind, a->from.session, side_path(cli, &a->from, inner), &cli->err));
    if (kind != BRC_ARRAY && a->to.axis < 0)
        return BRC_OK;
    if (kind != BRC_ARRAY)
        return cli_fail(cli, BRC_ENOTFOUND, "%s has no array %s, which has the dimension %s here",
                        a->from.name, inner, a->dim);
    CLI_TRY(side_open(a, &a->from, inner));
    if (a->to.axis < 0)
        return check_coordinate(a, inner);
    CLI_TRY(check_fits(a, inner));
    return note_grown(a, inner);
}

/* Refuses an array of the file that has the dimension, and that the group lacks. */
static int look_for_more(struct appending *a, const char *inner)
{
    struct cli *cli = a->cli;
    int kind;

    CLI_TRY(side_open(a, &a->from, inner));
    if (a->from.axis < 0)
        return BRC_OK;
    CLI_TRY(brc_node_kind(&kind, a->to.session, side_path(cli, &a->to, inner), &cli->err));
    if (kind != BRC_ARRAY)
        return cli_fail(cli, BRC_ENOTFOUND,
                        "%s has an array %s along %s, which %s lacks: import it first, or leave "
                        "it out of the file", a->from.name, inner, a->dim, a->to.root);
    CLI_TRY(side_open(a, &a->to, inner));
    if (a->to.axis < 0)
        return cli_fail(cli, BRC_EINVAL, "%s: %s has the dimension %s there, and here it has not",
                        a->from.name, inner, a->dim);
    return BRC_OK;
}

/* Calls `look` for each array under the group of a side. */
static int each_array(struct appending *a, const struct side *side,
                      int (*look)(struct appending *a, const char *inner))
{
    struct cli *cli = a->cli;
    size_t skip = strlen(side->root[1] ? side->root : "") + 1;
    const brc_node *node;
    brc_iter *it;
    int rc;

    CLI_TRY(brc_list(&it, side->session, side->root, BRC_LIST_RECURSE, &cli->err));
    while ((rc = brc_next(it, &node, &cli->err)) == 1) {
        if (node->kind == BRC_ARRAY)
            rc = look(a, cli_text(cli, "%s", node->path + skip));
        if (rc < 0)
            break;
    }
    brc_iter_free(it);
    return rc;
}

/* ---- copying -------------------------------- */

/* Returns the bytes of the selection, as far as they are known, and at most `most`. */
static uint64_t bytes_of(const brc_array_info *info, const brc_sel *sel, uint64_t most)
{
    uint64_t bytes = info->item_size ? info->item_size : VARIABLE_LENGTH;

    for (int i = 0; i < sel->ndim; i++)
        if (__builtin_mul_overflow(bytes, sel->count[i], &bytes) || bytes > most)
            return sel->count[i] == 0 ? 0 : most;
    return bytes;
}

/* Writes the times of the file as numbers of the array's units. */
static int recode_times(struct appending *a, brc_buf *bytes)
{
    struct cli *cli = a->cli;
    const size_t item = a->to.info->item_size;

    for (size_t at = 0; at + item <= bytes->len; at += item) {
        struct cli_value value;

        if (!cli_decode(&a->times_from, bytes->data + at, &value))
            return cli_fail(cli, BRC_EINVAL, "%s: %s has a time that is too far away to be counted "
                            "in other units", a->from.name, a->from.variable.path);
        CLI_TRY(cli_encode(cli, &a->times_to, &value, bytes->data + at));
    }
    return BRC_OK;
}

/* Copies a selection of the file, which is at most COPIED_AT_ONCE bytes or one element, to the
 * array, `shift` further along the axis. */
static int append_box(struct appending *a, const brc_sel *part, uint64_t shift)
{
    struct cli *cli = a->cli;
    brc_buf bytes = BRC_BUF_INIT;
    brc_sel to = *part;
    brc_io io = BRC_IO_INIT;
    int rc;

    to.start[a->to.axis] += shift;
    io.array = a->from.array;
    io.sel = part;
    io.out = &bytes;
    rc = brc_read(&io, 1, &cli->err);
    if (rc >= 0 && a->recodes)
        rc = recode_times(a, &bytes);
    if (rc >= 0)
        rc = brc_array_write(a->to.array, &to, bytes.data, bytes.len, &cli->err);
    brc_buf_dispose(&bytes);
    return rc;
}

/* Copies the selection in parts: halves of its first axis that is longer than 1, which end with a
 * chunk of the array where they can. */
static int copy_parts(struct appending *a, const brc_sel *sel, uint64_t shift)
{
    brc_sel half = *sel;
    uint64_t chunk, cut;
    int axis = 0;

    if (brc_sel_count(sel) == 0)
        return BRC_OK;
    while (axis < sel->ndim && sel->count[axis] == 1)
        axis++;
    if (axis == sel->ndim || bytes_of(a->to.info, sel, UINT64_MAX / 2) <= COPIED_AT_ONCE)
        return append_box(a, sel, shift);
    cut = sel->count[axis] / 2;
    chunk = a->to.info->chunk[axis];
    if (chunk > 0 && cut > chunk)
        cut -= (sel->start[axis] + (axis == a->to.axis ? shift : 0) + cut) % chunk;
    half.count[axis] = cut;
    CLI_TRY(copy_parts(a, &half, shift));
    half.start[axis] += cut;
    half.count[axis] = sel->count[axis] - cut;
    return copy_parts(a, &half, shift);
}

static int grow_array(struct appending *a, const struct grown *grown)
{
    struct cli *cli = a->cli;
    uint64_t shape[BRC_MAX_NDIM];
    brc_sel all = BRC_SEL_INIT;

    CLI_TRY(side_open(a, &a->to, grown->inner));
    CLI_TRY(side_open(a, &a->from, grown->inner));
    memcpy(shape, a->to.info->shape, (size_t)a->to.info->ndim * sizeof(shape[0]));
    if (__builtin_add_overflow(grown->before, a->count, &shape[a->to.axis]))
        return cli_fail(cli, BRC_ELIMIT, "%s would be too long", grown->inner);
    CLI_TRY(compare_times(a));
    CLI_TRY(brc_array_resize(a->to.array, shape, &cli->err));
    CLI_TRY(brc_sel_parse(&all, a->from.array, NULL, &cli->err));
    return copy_parts(a, &all, grown->before);
}

static int grow_all(struct appending *a)
{
    struct cli *cli = a->cli;
    int rc = BRC_OK;

    CLI_TRY(brc_bulk_begin(cli->session, &cli->err));
    for (size_t i = 0; i < a->ngrown && rc >= 0; i++)
        rc = grow_array(a, &a->grown[i]);
    side_close(&a->to);
    return cli_end_bulk(cli, rc);
}

static int fail_axis(struct appending *a, const char *path)
{
    char similar[300];

    CLI_TRY(each_array(a, &a->to, gather_dims));
    cli_similar(similar, sizeof(similar), a->dim, "", a->dims, a->ndims);
    return cli_fail(a->cli, BRC_ENOTFOUND,
                    "option --axis: no array of %s has a dimension '%s'%s%s%s", path, a->dim,
                    similar[0] ? "; did you mean " : "", similar,
                    similar[0] ? "?" : "");
}

static int append_source(struct appending *a, const char *path)
{
    struct cli *cli = a->cli;
    const char **names;

    CLI_TRY(each_array(a, &a->to, find_first));
    if (!a->first)
        return fail_axis(a, path);
    a->first = NULL;
    CLI_TRY(each_array(a, &a->to, look_at));
    CLI_TRY(each_array(a, &a->from, look_for_more));
    CLI_TRY(grow_all(a));
    cli_done(cli);
    names = cli_alloc(cli, a->ngrown, sizeof(*names));
    for (size_t i = 0; i < a->ngrown; i++)
        names[i] = a->grown[i].inner;
    cli_answer(cli,
               CLI_FIELDS({ "path", CLI_OF(path) }, { "axis", CLI_OF(a->dim) },
                          { "count", CLI_OF(a->count) },
                          { "length", CLI_OF((uint64_t)(a->length + a->count)) },
                          { "arrays", CLI_OF(((struct cli_texts){ names, a->ngrown })) }),
               "appended %llu of %s to %s of %s: %s is %llu long now",
               (unsigned long long)a->count, cli_escaped(cli, a->dim),
               cli_count(cli, a->ngrown, "array"), cli_escaped(cli, path),
               cli_escaped(cli, a->dim), (unsigned long long)(a->length + a->count));
    return BRC_OK;
}

int cli_append_group(struct cli *cli, const char *path, const char *dim, const char *from)
{
    struct appending a = { .cli = cli, .dim = dim };
    struct cli_source source;
    int rc = cli_source_open(cli, from, &source), kind = 0;

    a.to.session = cli->session;
    a.to.root = a.to.name = path;
    a.from.session = source.session;
    a.from.root = source.root;
    a.from.name = source.name;
    if (rc >= 0)
        rc = brc_node_kind(&kind, source.session, source.root, &cli->err);
    if (rc >= 0 && kind != BRC_GROUP)
        rc = cli_fail(cli, BRC_EINVAL, "%s has a single array, and %s is a group: append to one of "
                      "its arrays", from, path);
    if (rc >= 0)
        rc = append_source(&a, path);
    side_close(&a.to);
    side_close(&a.from);
    free(a.grown);
    cli_source_close(cli, &source);
    return rc;
}
