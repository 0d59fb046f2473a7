/*
 * array_stats.c - statistics of arrays, for `info --stats`.
 */
#include "array_stats.h"

#include <math.h>
#include <string.h>

#include "../cli.h"
#include "new_array.h"

enum { MOST_BAR = 40, LEAST_BAR = 10, LINE_COLUMNS = 79, NAME_MOST = 48 };
enum { MOST_VALUES = 20, MOST_SMALL = 64 }; /* that are listed; of types of one byte */

/* ---- which fields ------------------------------ */

struct field_list {
    const char **names; /* NULL alone: the elements have no fields */
    int *are_times;
    size_t n, cap;
};

static int is_time_type(const brc_json *type)
{
    const char *name;

    return brc_json_text(brc_json_member(type, "name"), &name) &&
           (strcmp(name, "numpy.datetime64") == 0 || strcmp(name, "numpy.timedelta64") == 0);
}

static const brc_json *fields_of_type(const brc_json *type)
{
    return brc_json_member(brc_json_member(type, "configuration"), "fields");
}

static void add_field_name(struct cli *cli, struct field_list *list, const char *name, int is_time)
{
    if (list->n == list->cap) {
        const size_t cap = 2 * list->cap + 8;
        const char **names = cli_alloc(cli, cap, sizeof(*names));
        int *are_times = cli_alloc(cli, cap, sizeof(*are_times));

        if (list->n > 0) {
            memcpy(names, list->names, list->n * sizeof(*names));
            memcpy(are_times, list->are_times, list->n * sizeof(*are_times));
        }
        *list = (struct field_list){ names, are_times, list->n, cap };
    }
    list->names[list->n] = name;
    list->are_times[list->n++] = is_time;
}

/* Lists the fields of a type, those of a field's own as "position.x". A field is written as
 * {"name": N, "data_type": T} or [N, T]. */
static void list_fields(struct cli *cli, struct field_list *list, const char *within,
                        const brc_json *type)
{
    for (const brc_json *f = brc_json_first(fields_of_type(type)); f; f = brc_json_next(f)) {
        const int is_pair = brc_json_kind(f) == BRC_JSON_ARRAY;
        const brc_json *of = is_pair ? brc_json_item(f, 1) : brc_json_member(f, "data_type");
        const char *name;

        if (!brc_json_text(is_pair ? brc_json_item(f, 0) : brc_json_member(f, "name"), &name))
            continue;
        name = cli_text(cli, "%s%s", within, name);
        if (fields_of_type(of))
            list_fields(cli, list, cli_text(cli, "%s.", name), of);
        else
            add_field_name(cli, list, name, is_time_type(of));
    }
}

/* Lists the fields of cli->array's elements, or NULL alone. */
static int fields_of_array(struct cli *cli, struct field_list *list)
{
    const char *dtype = brc_array_describe(cli->array)->dtype;
    brc_json *type;

    *list = (struct field_list){ NULL, NULL, 0, 0 };
    if (dtype[0] != '{') { /* a name alone */
        add_field_name(cli, list, NULL, 0);
        return BRC_OK;
    }
    CLI_TRY(brc_json_parse(&type, dtype, strlen(dtype), BRC_JSON_NAN, &cli->err));
    if (fields_of_type(type))
        list_fields(cli, list, "", type);
    else
        add_field_name(cli, list, NULL, is_time_type(type));
    brc_json_free(type);
    return BRC_OK;
}

/* ---- numbers ------------------------------ */

/* Finds a field's value in an element's JSON, by the name that list_fields() gives the field. */
static const brc_json *find_field(struct cli *cli, const brc_json *element, const char *within,
                                  const char *field)
{
    const brc_json *found = NULL;

    for (const brc_json *f = brc_json_first(element); f && !found; f = brc_json_next(f)) {
        const char *name = cli_text(cli, "%s%s", within, brc_json_name(f));

        if (brc_json_kind(f) == BRC_JSON_OBJECT)
            found = find_field(cli, f, cli_text(cli, "%s.", name), field);
        else if (strcmp(name, field) == 0)
            found = f;
    }
    return found;
}

/* Returns the text of an element's JSON with another value for one field. */
static const char *with_field(struct cli *cli, const brc_json *element, const brc_json *field,
                              const char *json)
{
    const char *out = "{";

    if (element == field)
        return json;
    if (brc_json_kind(element) != BRC_JSON_OBJECT) {
        brc_buf text = BRC_BUF_INIT;

        out = brc_json_write(&text, element, 0, NULL) < 0
                  ? "null"
                  : cli_text(cli, "%.*s", (int)text.len, (const char *)text.data);
        brc_buf_dispose(&text);
        return out;
    }
    for (const brc_json *f = brc_json_first(element); f; f = brc_json_next(f))
        out = cli_text(cli, "%s%s%s:%s", out, out[1] ? "," : "",
                       cli_json_quoted(cli, brc_json_name(f)), with_field(cli, f, field, json));
    return cli_text(cli, "%s}", out);
}

/* Returns an element in which all bytes are zero, as JSON; NULL if there is no memory for it. */
static brc_json *zero_element(struct cli *cli)
{
    const void *zeros = cli_alloc(cli, brc_array_describe(cli->array)->item_size, 1);
    brc_buf text = BRC_BUF_INIT;
    brc_json *out = NULL;

    if (brc_element_format(&text, cli->array, zeros, BRC_ELEMENT_JSON, NULL) >= 0 &&
        brc_json_parse(&out, (const char *)text.data, text.len, BRC_JSON_NAN, NULL) < 0)
        out = NULL;
    brc_buf_dispose(&text);
    return out;
}

/* Returns an element's JSON in one of the forms of brc_element_format(); NULL if it is not one. */
static const char *whole_words(struct cli *cli, const char *json, int form)
{
    brc_buf element = BRC_BUF_INIT, text = BRC_BUF_INIT;
    const char *out = NULL;

    if (brc_element_parse(&element, cli->array, json, NULL) >= 0 &&
        brc_element_format(&text, cli->array, element.data, form, NULL) >= 0)
        out = cli_text(cli, "%.*s", (int)text.len, (const char *)text.data);
    brc_buf_dispose(&element);
    brc_buf_dispose(&text);
    return out;
}

/* Returns a count of a field of times as a date: in an element that has zeros elsewhere. */
static const char *field_time(struct cli *cli, const char *field, const char *json)
{
    brc_json *zero = zero_element(cli), *dated = NULL;
    const brc_json *at = find_field(cli, zero, "", field);
    const char *words = at ? whole_words(cli, with_field(cli, zero, at, json), BRC_ELEMENT_DATED)
                           : NULL;
    const char *text = "", *out = json;

    if (words && brc_json_parse(&dated, words, strlen(words), BRC_JSON_NAN, NULL) >= 0 &&
        brc_json_text(find_field(cli, dated, "", field), &text))
        out = cli_text(cli, "%s", text);
    brc_json_free(dated);
    brc_json_free(zero);
    return out;
}

/* Returns a JSON text of an element as people read it: a date where it is a count of days. Another
 * text, such as the mean of integers, stays as it is. */
static const char *as_element(struct cli *cli, const struct array_stats *stats, const char *json)
{
    const char *out = NULL;

    if (stats->field)
        return stats->is_time ? field_time(cli, stats->field, json) : json;
    if (stats->sums.of == BRC_STATS_VALUES)
        out = whole_words(cli, json, BRC_ELEMENT_TEXT);
    return out ? out : json;
}

static const char *mean_words(struct cli *cli, const struct array_stats *stats)
{
    if (stats->sums.min[0] == '\0')
        return NULL;
    if (stats->is_time)
        return as_element(cli, stats, stats->sums.mean_text);
    return cli_text(cli, "%.8g", stats->sums.mean);
}

/* Returns " days" for datetime64[D], " of 10 us" for datetime64[10us]. */
static const char *time_unit(struct cli *cli, const struct array_stats *stats)
{
    static const char *const names[][2] = { { "Y", "years" }, { "M", "months" }, { "W", "weeks" },
                                            { "D", "days" },  { "h", "hours" },  { "m", "minutes" },
                                            { "s", "seconds" } };
    const char *type = cli_dtype_words(cli, brc_array_describe(cli->array)->dtype);
    const char *unit = stats->field ? NULL : strchr(type, '[');
    size_t len, digits;

    if (!unit)
        return " of the data type's units";
    len = strcspn(++unit, "]");
    digits = strspn(unit, "0123456789");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strlen(names[i][0]) == len && memcmp(names[i][0], unit, len) == 0)
            return cli_text(cli, " %s", names[i][1]);
    return cli_text(cli, digits ? " of %.*s %.*s" : "%.*s %.*s", (int)digits, unit,
                    (int)(len - digits), unit + digits);
}

static const char *std_words(struct cli *cli, const struct array_stats *stats)
{
    if (stats->sums.min[0] == '\0')
        return NULL;
    return cli_text(cli, "%.8g%s", stats->sums.std, stats->is_time ? time_unit(cli, stats) : "");
}

/* ---- JSON ------------------------------ */

static void put_stats_member(struct cli *cli, const char *key, const char *json)
{
    cli_json_key(cli, key);
    if (json[0] == '\0')
        json = "null";
    cli_json_token(cli, json, strlen(json));
}

static void put_real(struct cli *cli, const char *key, const brc_array_summary *stats, double v)
{
    cli_json_key(cli, key);
    if (stats->min[0] == '\0')
        cli_json_token(cli, "null", 4);
    else
        cli_json_double(cli, v);
}

static void put_numbers(struct cli *cli, const struct array_stats *of_what)
{
    static const char *const of[] = { "", "values", "magnitudes", "lengths" };
    const brc_array_summary *stats = &of_what->sums;

    if (of_what->field)
        put_stats_member(cli, "field", cli_json_quoted(cli, of_what->field));
    put_stats_member(cli, "of", cli_json_quoted(cli, of[stats->of]));
    put_stats_member(cli, "min", stats->min);
    put_stats_member(cli, "max", stats->max);
    if (of_what->is_time)
        put_stats_member(cli, "mean", stats->mean_text);
    else
        put_real(cli, "mean", stats, stats->mean);
    put_real(cli, "std", stats, stats->std);
    cli_json_key(cli, "count");
    cli_json_uint(cli, stats->count);
    cli_json_key(cli, "nan");
    cli_json_uint(cli, stats->nan);
    cli_json_key(cli, "infinite");
    cli_json_uint(cli, stats->infinite);
    cli_json_key(cli, "fill");
    cli_json_uint(cli, stats->fill);
}

/* ---- the histogram ------------------------------ */

/* Sums up one field, or the elements; fills in all but `field` and `is_time`. */
static int gather_one(struct cli *cli, const brc_sel *sel, struct array_stats *stats)
{
    const brc_array_stats_opts opts = { sizeof(opts), sel, stats->field };
    const brc_stats_bin *bin;
    size_t most;
    int rc = 0;

    stats->sums = (brc_array_summary)BRC_ARRAY_SUMMARY_INIT;
    CLI_TRY(brc_array_stats(&stats->sums, &cli->iter, cli->array, &opts, &cli->err));
    most = (size_t)stats->sums.nbins + (size_t)stats->sums.nvalues;
    stats->bins = cli_alloc(cli, most + 1, sizeof(*stats->bins));
    while (stats->n < most && (rc = brc_next(cli->iter, &bin, &cli->err)) == 1) {
        stats->bins[stats->n] = *bin;
        stats->bins[stats->n].from = cli_text(cli, "%s", bin->from);
        stats->bins[stats->n].to = bin->to ? cli_text(cli, "%s", bin->to) : NULL;
        stats->nbins += bin->to != NULL;
        stats->n++;
    }
    brc_iter_free(cli->iter);
    cli->iter = NULL;
    return rc < 0 ? rc : BRC_OK;
}

int gather_array_stats(struct cli *cli, const brc_sel *sel, struct array_stats_list *out)
{
    struct field_list fields;

    CLI_TRY(fields_of_array(cli, &fields));
    *out = (struct array_stats_list){ cli_alloc(cli, fields.n + 1, sizeof(*out->all)), 0 };
    for (size_t i = 0; i < fields.n; i++) {
        struct array_stats *one = &out->all[out->n];

        *one = (struct array_stats){ .field = fields.names[i], .is_time = fields.are_times[i] };
        const int rc = gather_one(cli, sel, one);
        if (rc == BRC_EUNSUPPORTED && one->field)
            continue;
        CLI_TRY(rc);
        out->n++;
    }
    if (out->n == 0)
        return cli_fail(cli, BRC_EUNSUPPORTED, "%s: there are no statistics of any of its fields",
                        brc_array_describe(cli->array)->path);
    return BRC_OK;
}

static void put_histogram(struct cli *cli, const struct array_stats *stats)
{
    cli_json_key(cli, "histogram");
    cli_json_open(cli, '{');
    cli_json_key(cli, "edges");
    cli_json_open_line(cli, '[');
    for (size_t i = 0; i < stats->nbins; i++)
        cli_json_token(cli, stats->bins[i].from, strlen(stats->bins[i].from));
    if (stats->nbins > 0)
        cli_json_token(cli, stats->bins[stats->nbins - 1].to,
                       strlen(stats->bins[stats->nbins - 1].to));
    cli_json_close(cli, ']');
    cli_json_key(cli, "counts");
    cli_json_open_line(cli, '[');
    for (size_t i = 0; i < stats->nbins; i++)
        cli_json_uint(cli, stats->bins[i].count);
    cli_json_close(cli, ']');
    cli_json_close(cli, '}');
}

static void put_stats_values(struct cli *cli, const struct array_stats *stats)
{
    if (stats->n == stats->nbins)
        return;
    cli_json_key(cli, "values");
    cli_json_open(cli, '[');
    for (size_t i = stats->nbins; i < stats->n; i++) {
        cli_json_open_line(cli, '{');
        put_stats_member(cli, "value", stats->bins[i].from);
        cli_json_key(cli, "count");
        cli_json_uint(cli, stats->bins[i].count);
        cli_json_close(cli, '}');
    }
    cli_json_close(cli, ']');
}

/* Returns the text in front of a bar: a value, or where a bin begins and ends. */
static const char *bar_label(struct cli *cli, const struct array_stats *stats,
                             const brc_stats_bin *bin)
{
    const char *from = as_element(cli, stats, bin->from);

    if (stats->nbins == 1 && strcmp(stats->sums.min, stats->sums.max) == 0)
        return as_element(cli, stats, stats->sums.min); /* one value has no width */
    return bin->to ? cli_text(cli, "%s to %s", from, as_element(cli, stats, bin->to)) : from;
}

/* Prints labels, counts on the right, and bars whose lengths are in proportion. */
static void draw_bars(struct cli *cli, const struct array_stats *stats, const brc_stats_bin *bins,
                      size_t n)
{
    const char **labels = cli_alloc(cli, n + 1, sizeof(*labels));
    int width = 0, digits = 0;
    uint64_t most = 1;

    for (size_t i = 0; i < n; i++) {
        const char *count = cli_text(cli, "%llu", (unsigned long long)bins[i].count);

        labels[i] = bar_label(cli, stats, &bins[i]);
        width = (int)strlen(labels[i]) > width ? (int)strlen(labels[i]) : width;
        digits = (int)strlen(count) > digits ? (int)strlen(count) : digits;
        most = bins[i].count > most ? bins[i].count : most;
    }
    int columns = cli->out.columns > 0 ? (int)cli->out.columns : LINE_COLUMNS;
    int room = columns - width - digits - 6;
    room = room > MOST_BAR ? MOST_BAR : room < LEAST_BAR ? LEAST_BAR : room;
    for (size_t i = 0; i < n; i++) {
        const double share = (double)bins[i].count / (double)most;
        int bar = (int)(share * room + 0.5);

        bar = bar == 0 && bins[i].count > 0 ? 1 : bar;
        cli_printf(cli, "  %*s  %*llu%s%.*s\n", width, labels[i], digits,
                   (unsigned long long)bins[i].count, bar > 0 ? "  " : "", bar,
                   "########################################");
    }
}

static void draw_histogram(struct cli *cli, const struct array_stats *stats)
{
    const size_t nvalues = stats->n - stats->nbins;
    const int is_small = brc_array_describe(cli->array)->item_size == 1;

    if (stats->nbins == 0)
        return;
    cli_puts(cli, "\n");
    if (nvalues > 0 && nvalues <= (is_small ? MOST_SMALL : MOST_VALUES))
        draw_bars(cli, stats, stats->bins + stats->nbins, nvalues);
    else
        draw_bars(cli, stats, stats->bins, stats->nbins);
}

/* ---- one array ------------------------------ */

static void put_stats_lines(struct cli *cli, const struct array_stats *of_what, int width)
{
    static const char *const of[] = { "", NULL, "magnitudes of the elements",
                                      "lengths of the elements in bytes" };
    const brc_array_summary *stats = &of_what->sums;
    const char *min = stats->min[0] ? as_element(cli, of_what, stats->min) : NULL;
    const char *max = stats->max[0] ? as_element(cli, of_what, stats->max) : NULL;
    const char *mean = mean_words(cli, of_what), *std = std_words(cli, of_what);

    cli_put_lines(cli,
                  CLI_FIELDS({ NULL, CLI_OF(of_what->field), .lead = "field" },
                             { NULL, CLI_OF(stats->count), .lead = "elements" },
                             { NULL, CLI_OF(stats->nan), .lead = "nan", .optional = 1 },
                             { NULL, CLI_OF(stats->infinite), .lead = "infinite", .optional = 1 },
                             { NULL, CLI_OF(stats->fill), .lead = "fill" },
                             { NULL, CLI_OF(of[stats->of]), .lead = "of" },
                             { NULL, CLI_OF(min), .lead = "min" },
                             { NULL, CLI_OF(max), .lead = "max" },
                             { NULL, CLI_OF(mean), .lead = "mean" },
                             { NULL, CLI_OF(std), .lead = "std" },
                             { NULL, CLI_OF(stats->nvalues), .lead = "values", .optional = 1 }),
                  "", width, CLI_DIM);
}

/* Prints the members of the open object. */
static void put_stats_json(struct cli *cli, const struct array_stats *stats)
{
    put_numbers(cli, stats);
    put_histogram(cli, stats);
    put_stats_values(cli, stats);
}

static void put_fields_json(struct cli *cli, const struct array_stats_list *list)
{
    cli_json_key(cli, "fields");
    cli_json_open(cli, '[');
    for (size_t i = 0; i < list->n; i++) {
        cli_json_open(cli, '{');
        put_stats_json(cli, &list->all[i]);
        cli_json_close(cli, '}');
    }
    cli_json_close(cli, ']');
}

void print_array_stats(struct cli *cli, const struct array_stats_list *list, int width)
{
    for (size_t i = 0; i < list->n && !cli->json; i++) {
        if (list->all[i].field)
            cli_puts(cli, "\n");
        put_stats_lines(cli, &list->all[i], width);
        draw_histogram(cli, &list->all[i]);
    }
    if (!cli->json)
        return;
    cli_json_key(cli, "stats");
    cli_json_open(cli, '{');
    if (list->all[0].field)
        put_fields_json(cli, list);
    else
        put_stats_json(cli, &list->all[0]);
    cli_json_close(cli, '}');
}

/* ---- all arrays of a group ------------------------------ */

/* A line of the table, whose columns are as wide as they need to be. */
static int put_stats_row(struct cli *cli, struct cli_list *list, const char *path,
                         const char *const cells[6])
{
    return cli_list_put(
        cli, list,
        CLI_FIELDS({ NULL, CLI_OF(path), .lead = "", .none = "", .width = CLI_FIT,
                     .most = NAME_MOST, .narrow = CLI_CUT_START },
                   { NULL, CLI_OF(cells[0]), .lead = "  ", .none = "", .width = -CLI_FIT },
                   { NULL, CLI_OF(cells[1]), .lead = "  ", .none = "", .width = -CLI_FIT },
                   { NULL, CLI_OF(cells[2]), .lead = "  ", .none = "", .width = -CLI_FIT },
                   { NULL, CLI_OF(cells[3]), .lead = "  ", .none = "", .width = -CLI_FIT,
                     .narrow = CLI_LEFT_OUT },
                   { NULL, CLI_OF(cells[4]), .lead = "  ", .none = "", .width = -CLI_FIT,
                     .narrow = CLI_LEFT_OUT },
                   { NULL, CLI_OF(cells[5]), .lead = "  ", .none = "", .width = -CLI_FIT,
                     .narrow = CLI_LEFT_OUT }));
}

static int put_stats_of(struct cli *cli, struct cli_list *list, const char *path,
                        struct array_stats *stats)
{
    const brc_array_stats_opts opts = { sizeof(opts), NULL, stats->field };
    const char *cells[6] = { "-", "-", "-", "-", "-", "-" };
    const char *name = stats->field ? cli_text(cli, "%s.%s", path, stats->field) : path;

    stats->sums = (brc_array_summary)BRC_ARRAY_SUMMARY_INIT;
    const int rc = brc_array_stats(&stats->sums, NULL, cli->array, &opts, &cli->err);
    if (rc == BRC_EUNSUPPORTED)
        return cli->json ? BRC_OK : put_stats_row(cli, list, name, cells);
    CLI_TRY(rc);
    if (cli->json) {
        cli_json_open_line(cli, '{');
        put_stats_member(cli, "path", cli_json_quoted(cli, path));
        put_numbers(cli, stats);
        cli_json_close(cli, '}');
        return BRC_OK;
    }
    if (stats->sums.min[0]) {
        cells[0] = as_element(cli, stats, stats->sums.min);
        cells[1] = as_element(cli, stats, stats->sums.max);
        cells[2] = mean_words(cli, stats);
        cells[3] = cli_text(cli, "%.8g", stats->sums.std);
    }
    cells[4] = cli_text(cli, "%llu", (unsigned long long)stats->sums.nan);
    cells[5] = cli_text(cli, "%llu", (unsigned long long)stats->sums.count);
    return put_stats_row(cli, list, name, cells);
}

static int put_stats_of_array(struct cli *cli, struct cli_list *list, const char *path)
{
    struct field_list fields;

    CLI_TRY(cli_open_array(cli, path));
    CLI_TRY(fields_of_array(cli, &fields));
    for (size_t i = 0; i < fields.n; i++) {
        struct array_stats one = { .field = fields.names[i], .is_time = fields.are_times[i] };

        CLI_TRY(put_stats_of(cli, list, path, &one));
    }
    return BRC_OK;
}

static int put_stats_below(struct cli *cli, struct cli_list *list, const char *path)
{
    static const char *const heads[6] = { "min", "max", "mean", "std", "nan", "elements" };
    const brc_node *node;
    size_t n = 0;
    int rc;

    CLI_TRY(brc_list(&cli->iter, cli->session, path, BRC_LIST_RECURSE, &cli->err));
    while ((rc = brc_next(cli->iter, &node, &cli->err)) == 1) {
        if (node->kind != BRC_ARRAY)
            continue;
        if (n++ == 0 && !cli->json)
            CLI_TRY(put_stats_row(cli, list, "", heads));
        CLI_TRY(put_stats_of_array(cli, list, cli_text(cli, "%s", node->path)));
    }
    return rc;
}

int print_group_stats(struct cli *cli, const char *path)
{
    struct cli_list list;
    int rc;

    if (!cli->json)
        cli_puts(cli, "\n");
    cli_list_begin(cli, &list, "stats", 0);
    rc = put_stats_below(cli, &list, path);
    return cli_list_end(cli, &list, rc);
}
