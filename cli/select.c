/*
 * select.c - slices by name and by coordinate.
 *
 * Names become positions, which the library reads. A coordinate is read as a whole, and decoded if
 * it is a time or packed: a label is a number, a date, or the text of an element. What lies between
 * two labels, in whatever order they are given, must lie together in the array, too.
 */
#include "select.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "decode.h"
#include "scalar.h"
#include "variable.h"

enum { COORDINATES_MOST = 1 << 28 };

/* ---- the parts of a slice -------------------------------- */

struct slice_part {
    const char *name, *value;
    int axis;
};

static char *trimmed(struct cli *cli, const char *text, size_t len)
{
    while (len > 0 && isspace((unsigned char)text[0])) {
        text++;
        len--;
    }
    while (len > 0 && isspace((unsigned char)text[len - 1]))
        len--;
    return cli_text(cli, "%.*s", (int)len, text);
}

/* Returns the length up to `end` or the end of the text; quotes hide what is between them. */
static size_t span_to(const char *text, char end)
{
    char quote = 0;
    size_t n = 0;

    for (; text[n] && (quote || text[n] != end); n++)
        quote = quote ? (text[n] == quote ? 0 : quote)
                      : (text[n] == '"' || text[n] == '\'' ? text[n] : 0);
    return n;
}

static int fail_name(struct cli *cli, const struct cli_variable *variable, int ndim,
                     const char *name)
{
    const char *dims = cli_variable_dims(cli, variable, ndim);
    char similar[300];

    if (!dims)
        return cli_fail(cli, BRC_EINVAL,
                        "the dimensions of %s have no names: write a slice such as [0:10, :]",
                        variable->path);
    cli_similar(similar, sizeof(similar), name, "", variable->dims, (size_t)ndim);
    return cli_fail(cli, BRC_EINVAL, "%s has no dimension '%s'; its dimensions are %s%s%s%s",
                    variable->path, name, dims, similar[0] ? ": did you mean " : "", similar,
                    similar[0] ? "?" : "");
}

/* Splits "time=0, lat=10:20". */
static int split_parts(struct cli *cli, const struct cli_variable *variable, int ndim,
                       const char *text, const char *form, struct slice_part *parts, int *n)
{
    uint32_t seen = 0;

    for (*n = 0; *text; text += *text == ',') {
        size_t len = span_to(text, ','), equals = span_to(text, '=');
        struct slice_part *part = &parts[*n];

        if (equals >= len && len == strlen(text) && !trimmed(cli, text, len)[0])
            break; /* a comma at the end */
        if (equals >= len)
            return cli_fail(cli, BRC_EINVAL, "the part '%s' of the slice has no name: write all "
                            "parts as in %s", trimmed(cli, text, len), form);
        part->name = trimmed(cli, text, equals);
        part->value = trimmed(cli, text + equals + 1, len - equals - 1);
        part->axis = cli_variable_axis(variable, ndim, part->name);
        if (part->axis < 0)
            return fail_name(cli, variable, ndim, part->name);
        if (seen >> part->axis & 1)
            return cli_fail(cli, BRC_EINVAL, "the slice names %s twice", part->name);
        if (!part->value[0])
            return cli_fail(cli, BRC_EINVAL, "the slice says %s=, and nothing behind it",
                            part->name);
        seen |= UINT32_C(1) << part->axis;
        ++*n;
        text += len;
    }
    return BRC_OK;
}

static int select_by_name(struct cli *cli, const struct cli_variable *variable, brc_array *array,
                          const char *text, brc_sel *out)
{
    int ndim = brc_array_describe(array)->ndim, n;
    struct slice_part parts[BRC_MAX_NDIM];
    const char *values[BRC_MAX_NDIM], *plain = "";

    CLI_TRY(split_parts(cli, variable, ndim, text, "[time=0, lat=10:20]", parts, &n));
    for (int i = 0; i < ndim; i++)
        values[i] = ":";
    for (int i = 0; i < n; i++) {
        if (strpbrk(parts[i].value, "[],."))
            return cli_fail(cli, BRC_EINVAL,
                            "%s=%s is not a position: write [%s=0:10], or by value {%s=%s}",
                            parts[i].name, parts[i].value, parts[i].name, parts[i].name,
                            parts[i].value);
        values[parts[i].axis] = parts[i].value;
    }
    for (int i = 0; i < ndim; i++)
        plain = cli_text(cli, "%s%s%s", plain, i ? "," : "", values[i]);
    return brc_sel_parse(out, array, plain, &cli->err);
}

/* ---- coordinates -------------------------------- */

/* The values of a coordinate. */
struct labels {
    const char *path, *name;
    uint64_t n;
    struct cli_decoder decoder;
    struct cli_value *values; /* NULL: the elements are texts                  */
    const char **texts;
    int64_t finest;           /* times: each is a multiple of so many nanoseconds of its day */
};

/* The values that a part of a slice asks for. */
struct wanted {
    const char *from, *to; /* "": the end of the array; `to` is NULL for a single value */
    uint64_t step;
};

static void find_finest(struct labels *labels)
{
    static const int64_t units[] = { INT64_C(86400000000000), INT64_C(3600000000000),
                                     INT64_C(60000000000), 1000000000, 1 };
    size_t unit = 0;

    for (uint64_t i = 0; i < labels->n; i++)
        while (!labels->values[i].is_missing && labels->values[i].moment.ns % units[unit] != 0)
            unit++;
    labels->finest = units[unit];
}

static int decode_labels(struct cli *cli, struct labels *labels, const uint8_t *bytes)
{
    labels->values = cli_regrow(NULL, labels->n + 1, sizeof(*labels->values));
    for (uint64_t i = 0; i < labels->n; i++)
        if (!cli_decode(&labels->decoder, bytes + i * labels->decoder.item, &labels->values[i]))
            return cli_fail(cli, BRC_EINVAL, "%s has a time that is too far away to be decoded",
                            labels->path);
    if (labels->decoder.seen == CLI_TIME)
        find_finest(labels);
    return BRC_OK;
}

static int format_labels(struct cli *cli, brc_array *array, struct labels *labels,
                         const brc_buf *bytes)
{
    const uint8_t *at = bytes->data;
    brc_buf text = BRC_BUF_INIT;
    int rc = BRC_OK;

    labels->texts = cli_alloc(cli, labels->n + 1, sizeof(*labels->texts));
    for (uint64_t i = 0; i < labels->n && rc >= 0; i++) {
        text.len = 0;
        rc = brc_element_format(&text, array, at, BRC_ELEMENT_TEXT, &cli->err);
        labels->texts[i] = cli_text(cli, "%.*s", (int)text.len, (const char *)text.data);
        at += cli_element_len(brc_array_describe(array), at);
    }
    brc_buf_dispose(&text);
    return rc;
}

static int load_values_of(struct cli *cli, brc_array *array, struct labels *labels)
{
    brc_buf bytes = BRC_BUF_INIT;
    brc_io io = BRC_IO_INIT;
    int rc;

    io.array = array;
    io.out = &bytes;
    rc = brc_read(&io, 1, &cli->err);
    if (rc >= 0 && labels->decoder.stored != CLI_NO_NUMBER)
        rc = decode_labels(cli, labels, bytes.data);
    else if (rc >= 0)
        rc = format_labels(cli, array, labels, &bytes);
    brc_buf_dispose(&bytes);
    return rc;
}

/* Opens and reads the coordinate of a dimension of this extent. */
static int load_labels(struct cli *cli, brc_session *session, const char *path, uint64_t extent,
                       struct labels *labels)
{
    struct cli_variable variable = { .path = NULL };
    brc_array *array = NULL;
    int rc;

    CLI_TRY(cli_coordinate_path(cli, session, path, labels->name, &labels->path));
    if (!labels->path)
        return cli_fail(cli, BRC_ENOTFOUND, "%s has no coordinate %s, an array of that name along "
                        "that dimension: select by position, [%s=0]", path, labels->name,
                        labels->name);
    rc = brc_array_open(&array, session, labels->path, &cli->err);
    if (rc >= 0 && brc_array_describe(array)->shape[0] != extent)
        rc = cli_fail(cli, BRC_EINVAL, "%s has length %llu, and the dimension %s of %s has length "
                      "%llu: select by position, [%s=0]", labels->path,
                      (unsigned long long)brc_array_describe(array)->shape[0], labels->name, path,
                      (unsigned long long)extent, labels->name);
    if (rc >= 0 && extent > COORDINATES_MOST)
        rc = cli_fail(cli, BRC_ELIMIT, "%s has more than 2^28 values: select by position, [%s=0]",
                      labels->path, labels->name);
    labels->n = extent;
    if (rc >= 0)
        rc = cli_variable_read(cli, session, labels->path, &variable);
    if (rc >= 0)
        rc = cli_decoder_read(cli, &variable, brc_array_describe(array), &labels->decoder);
    if (rc >= 0)
        rc = load_values_of(cli, array, labels);
    cli_variable_free(&variable);
    brc_array_free(array);
    return rc;
}

/* ---- what the words of a slice mean -------------------------------- */

/* A label as a range of values, both ends included; of times, `to` is excluded. */
struct label {
    long double number;
    struct cli_moment from, to;
    const char *text;
};

static int is_label(const struct labels *labels, const char *text, struct label *out)
{
    int64_t ns;
    char *end;

    out->text = text;
    if (labels->texts)
        return 1;
    if (labels->decoder.seen == CLI_TIME)
        return cli_moment_read(&out->from, &out->to, labels->decoder.units.calendar, text);
    if (labels->decoder.seen == CLI_SPAN) {
        if (!cli_span_read(&ns, labels->decoder.units.unit, text))
            return 0;
        out->number = (long double)ns;
        return 1;
    }
    out->number = strtold(text, &end);
    if (end == text || *end || isnan(out->number))
        return 0;
    if (labels->decoder.seen == CLI_F32 || labels->decoder.seen == CLI_F16)
        out->number = strtof(text, NULL);
    else if (labels->decoder.seen == CLI_F64)
        out->number = strtod(text, NULL);
    return 1;
}

static int is_end(const struct labels *labels, const char *text)
{
    struct label label;

    return !text[0] || is_label(labels, text, &label);
}

/* Splits "FROM:TO" where both sides are labels: dates have colons of their own. */
static int split_range(struct cli *cli, const struct labels *labels, const char *text,
                       struct wanted *out)
{
    for (size_t at = span_to(text, ':'); text[at]; at += 1 + span_to(text + at + 1, ':')) {
        out->from = cli_unquoted(cli, trimmed(cli, text, at));
        out->to = cli_unquoted(cli, trimmed(cli, text + at + 1, strlen(text + at + 1)));
        if (is_end(labels, out->from) && is_end(labels, out->to))
            return 1;
    }
    return 0;
}

/* Splits what a part asks for: VALUE, FROM:TO or FROM:TO:STEP. */
static int split_wanted(struct cli *cli, const struct labels *labels, const char *text,
                        struct wanted *out)
{
    const char *colon = strrchr(text, ':');
    int is_single = labels->texts ? text[span_to(text, ':')] == '\0'
                                  : is_end(labels, cli_unquoted(cli, text));

    *out = (struct wanted){ .from = cli_unquoted(cli, text), .step = 1 };
    if (is_single || split_range(cli, labels, text, out))
        return BRC_OK;
    if (colon && cli_read_u64(&out->step, trimmed(cli, colon + 1, strlen(colon + 1))) &&
        out->step > 0 && split_range(cli, labels, trimmed(cli, text, (size_t)(colon - text)), out))
        return BRC_OK;
    return cli_fail(cli, BRC_EINVAL, "%s=%s: %s has %s; write {%s=VALUE} or {%s=FROM:TO}",
                    labels->name, text, labels->path,
                    labels->decoder.seen == CLI_TIME   ? "dates, such as 2020-05-01T12:00"
                    : labels->decoder.seen == CLI_SPAN ? "durations, such as 36h"
                                                       : "numbers",
                    labels->name, labels->name);
}

/* ---- finding values -------------------------------- */

static int compare_numbers(long double a, long double b)
{
    return (a > b) - (a < b);
}

/* Compares value number `i` with a label: 0 if it is the label's, which is a time of its length. */
static int compare_label(const struct labels *labels, uint64_t i, const struct label *label)
{
    const struct cli_value *value = &labels->values[i];

    if (labels->decoder.seen != CLI_TIME)
        return compare_numbers(value->number, label->number);
    if (cli_moment_compare(&value->moment, &label->from) < 0)
        return -1;
    return cli_moment_compare(&value->moment, &label->to) >= 0;
}

/* Compares two labels by where they begin. */
static int compare_ends(const struct labels *labels, const struct label *a, const struct label *b)
{
    return labels->decoder.seen == CLI_TIME ? cli_moment_compare(&a->from, &b->from)
                                            : compare_numbers(a->number, b->number);
}

static int is_descending(const struct labels *labels)
{
    const struct cli_value *first = NULL, *last = NULL;

    for (uint64_t i = 0; i < labels->n; i++)
        if (!labels->values[i].is_missing) {
            first = first ? first : &labels->values[i];
            last = &labels->values[i];
        }
    if (!first)
        return 0;
    return labels->decoder.seen == CLI_TIME ? cli_moment_compare(&last->moment, &first->moment) < 0
                                            : last->number < first->number;
}

/* The positions that were found. */
struct found {
    uint64_t first, last, n;
};

static void add_found(struct found *found, uint64_t i)
{
    if (found->n++ == 0)
        found->first = i;
    found->last = i;
}

/* Finds the values from `low` to `high`, where NULL stands for the end. */
static void find_between(const struct labels *labels, const struct label *low,
                         const struct label *high, struct found *found)
{
    for (uint64_t i = 0; i < labels->n; i++)
        if (!labels->values[i].is_missing && (!low || compare_label(labels, i, low) >= 0) &&
            (!high || compare_label(labels, i, high) <= 0))
            add_found(found, i);
}

static void find_text(const struct labels *labels, const char *text, struct found *found)
{
    for (uint64_t i = 0; i < labels->n; i++)
        if (strcmp(labels->texts[i], text) == 0)
            add_found(found, i);
}

static const char *value_words(struct cli *cli, const struct labels *labels, int64_t i)
{
    char text[CLI_MOMENT_CAP];

    return cli_text(cli, "%s", cli_value_text(&labels->decoder, &labels->values[i], text));
}

/* Returns the words for the values next to a label: "; the nearest are 45.0 and 45.25". */
static const char *nearest(struct cli *cli, const struct labels *labels, const struct label *label)
{
    int64_t below = -1, above = -1;

    for (uint64_t i = 0; i < labels->n; i++) {
        int order = compare_label(labels, i, label);
        struct label best = { 0 };
        int64_t *side = order < 0 ? &below : &above;

        if (labels->values[i].is_missing)
            continue;
        if (*side >= 0) {
            best.number = labels->values[*side].number;
            best.from = best.to = labels->values[*side].moment;
            order = compare_label(labels, i, &best);
            if (side == &below ? order < 0 : order >= 0)
                continue;
        }
        *side = (int64_t)i;
    }
    if (below < 0 && above < 0)
        return "; it has no values";
    if (below >= 0 && above >= 0)
        return cli_text(cli, "; the nearest are %s and %s", value_words(cli, labels, below),
                        value_words(cli, labels, above));
    return cli_text(cli, "; the nearest is %s",
                    value_words(cli, labels, below >= 0 ? below : above));
}

static int fail_not_found(struct cli *cli, const struct labels *labels, const char *what,
                          const struct label *label)
{
    char similar[300];

    if (!labels->texts)
        return cli_fail(cli, BRC_ENOTFOUND, "%s has no value %s%s", labels->path, what,
                        nearest(cli, labels, label));
    cli_similar(similar, sizeof(similar), what, "", labels->texts, (size_t)labels->n);
    return cli_fail(cli, BRC_ENOTFOUND, "%s has no value %s%s%s%s", labels->path, what,
                    similar[0] ? ": did you mean " : "", cli_escaped(cli, similar),
                    similar[0] ? "?" : "");
}

/* Finds a value, or, of a date that is less exact than the times are, all times in it: then
 * *is_period is set. */
static int find_single(struct cli *cli, const struct labels *labels, const char *text,
                       struct found *found, int *is_period)
{
    struct label label = { 0 }, exact;

    *is_period = 0;
    (void)is_label(labels, text, &label);
    if (labels->texts)
        find_text(labels, text, found);
    else if (labels->decoder.seen == CLI_TIME) {
        *is_period = label.to.day - label.from.day > 1 ||
                     (label.to.day - label.from.day) * INT64_C(86400000000000) + label.to.ns -
                             label.from.ns > labels->finest;
        exact = label;
        exact.to = exact.from;
        exact.to.ns++; /* never beyond the day: the fraction of a day is less than a day */
        find_between(labels, *is_period ? &label : &exact, *is_period ? &label : &exact, found);
    } else {
        find_between(labels, &label, &label, found);
    }
    return found->n ? BRC_OK : fail_not_found(cli, labels, text, &label);
}

static int find_text_range(struct cli *cli, const struct labels *labels,
                           const struct wanted *wanted, struct found *found)
{
    const char *ends[] = { wanted->from, wanted->to };
    uint64_t at[] = { 0, labels->n - 1 };

    for (int i = 0; i < 2; i++) {
        struct found one = { 0, 0, 0 };

        if (!ends[i][0])
            continue;
        find_text(labels, ends[i], &one);
        if (!one.n)
            return fail_not_found(cli, labels, ends[i], NULL);
        at[i] = i == 0 ? one.first : one.last;
    }
    found->first = at[0] < at[1] ? at[0] : at[1];
    found->last = at[0] < at[1] ? at[1] : at[0];
    found->n = found->last - found->first + 1;
    return BRC_OK;
}

static int find_range(struct cli *cli, const struct labels *labels, const struct wanted *wanted,
                      struct found *found)
{
    struct label from = { 0 }, to = { 0 };
    struct label *low = wanted->from[0] ? &from : NULL, *high = wanted->to[0] ? &to : NULL, *other;

    if (low)
        (void)is_label(labels, wanted->from, low);
    if (high)
        (void)is_label(labels, wanted->to, high);
    if (low && high ? compare_ends(labels, low, high) > 0 : is_descending(labels)) {
        other = low;
        low = high;
        high = other;
    }
    find_between(labels, low, high, found);
    return found->n ? BRC_OK
                    : fail_not_found(cli, labels,
                                     cli_text(cli, "in %s:%s", wanted->from, wanted->to),
                                     low ? low : high);
}

static int select_found(struct cli *cli, const struct labels *labels, const char *text,
                        const struct found *found, uint64_t step, int axis, brc_sel *out)
{
    if (found->last - found->first + 1 != found->n)
        return cli_fail(cli, BRC_EINVAL,
                        "the values %s of %s do not lie together, so they are not one slice: "
                        "select by position, [%s=0:10]", text, labels->path, labels->name);
    out->start[axis] = found->first;
    out->step[axis] = step;
    out->count[axis] = (found->n - 1) / step + 1;
    return BRC_OK;
}

static int select_labels(struct cli *cli, const struct labels *labels,
                         const struct slice_part *part, brc_sel *out)
{
    struct found found = { 0, 0, 0 };
    struct wanted wanted;
    int is_period = 0;

    if (strcmp(part->value, ":") == 0)
        return BRC_OK;
    if (labels->n == 0)
        return cli_fail(cli, BRC_ENOTFOUND, "%s has no values", labels->path);
    CLI_TRY(split_wanted(cli, labels, part->value, &wanted));
    if (!wanted.to)
        CLI_TRY(find_single(cli, labels, wanted.from, &found, &is_period));
    else if (labels->texts)
        CLI_TRY(find_text_range(cli, labels, &wanted, &found));
    else
        CLI_TRY(find_range(cli, labels, &wanted, &found));
    if (!wanted.to && !is_period && found.n == 1)
        out->drop |= UINT32_C(1) << part->axis;
    return select_found(cli, labels, part->value, &found, wanted.step, part->axis, out);
}

static int select_by_value(struct cli *cli, brc_session *session,
                           const struct cli_variable *variable, brc_array *array, const char *text,
                           brc_sel *out)
{
    const brc_array_info *info = brc_array_describe(array);
    struct slice_part parts[BRC_MAX_NDIM];
    int n, rc;

    CLI_TRY(split_parts(cli, variable, info->ndim, text, "{time=2020-05-01, lat=30:60}", parts,
                        &n));
    CLI_TRY(brc_sel_parse(out, array, NULL, &cli->err));
    for (int i = 0; i < n; i++) {
        struct labels labels = { .name = parts[i].name };

        rc = load_labels(cli, session, variable->path, info->shape[parts[i].axis], &labels);
        if (rc >= 0)
            rc = select_labels(cli, &labels, &parts[i], out);
        free(labels.values);
        CLI_TRY(rc);
    }
    return BRC_OK;
}

/* ---- slices -------------------------------- */

/* Returns what is between the brackets, or NULL if the text has no such pair around it. */
static const char *within_pair(struct cli *cli, const char *text, char open, char close)
{
    const char *slice = trimmed(cli, text, strlen(text));
    size_t len = strlen(slice);

    if (len < 2 || slice[0] != open || slice[len - 1] != close)
        return NULL;
    return trimmed(cli, slice + 1, len - 2);
}

int cli_select_in(struct cli *cli, brc_session *session, brc_array *array, const char *slice,
                  brc_sel *out)
{
    const char *values = slice ? within_pair(cli, slice, '{', '}') : NULL, *names;
    struct cli_variable variable;
    int rc;

    if (!slice || (!values && !strchr(slice, '=')))
        return brc_sel_parse(out, array, slice, &cli->err);
    names = within_pair(cli, slice, '[', ']');
    if (!names && !values && strchr("[{", slice[strspn(slice, " ")]))
        return cli_fail(cli, BRC_EINVAL, "selection %.60s: a bracket is missing; write [time=0] by "
                        "position, {time=VALUE} by value", slice);
    rc = cli_variable_read(cli, session, brc_array_describe(array)->path, &variable);
    if (rc >= 0 && values)
        rc = select_by_value(cli, session, &variable, array, values, out);
    else if (rc >= 0)
        rc = select_by_name(cli, &variable, array, names ? names : slice, out);
    cli_variable_free(&variable);
    return rc;
}

int cli_split_slice(struct cli *cli, const char **path, const char **slice)
{
    const char *bracket = strpbrk(*path, "[{");
    int kind;

    *slice = NULL;
    if (!bracket)
        return BRC_OK;
    CLI_TRY(brc_node_kind(&kind, cli->session, *path, &cli->err));
    if (kind != 0)
        return BRC_OK;
    *slice = bracket;
    *path = cli_text(cli, "%.*s", (int)(bracket - *path), *path);
    return BRC_OK;
}
