/*
 * record.c - prints records.
 */
#include "record.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* ---- values ------------------------------ */

static int is_empty(const struct cli_field *field)
{
    static const brc_oid zero;
    const void *value = field->value;

    switch (field->type) {
    case CLI_TEXT:
        return !*(const char *const *)value;
    case CLI_UINT:
        return *(const uint64_t *)value == 0;
    case CLI_INT:
        return *(const int64_t *)value == 0;
    case CLI_FLAG:
        return *(const int *)value == 0;
    case CLI_ID:
        return memcmp(value, &zero, sizeof(zero)) == 0;
    case CLI_DIMS:
        return !((const struct cli_dims *)value)->dims;
    case CLI_TEXTS:
        return ((const struct cli_texts *)value)->n == 0;
    case CLI_IDS:
        return ((const struct cli_ids *)value)->n == 0;
    default:
        return 0;
    }
}

/* ---- JSON -------------------------------- */

static void json_text(struct cli *cli, const struct cli_field *field, const char *text)
{
    if (text && field->form == CLI_AS_JSON && (text[0] == '{' || text[0] == '['))
        cli_json_raw(cli, text, strlen(text));
    else
        cli_json_string(cli, text ? text : "");
}

static void json_int(struct cli *cli, const struct cli_field *field, int64_t value)
{
    char time[CLI_TIME_CAP];

    if (field->form == CLI_AS_TIME)
        cli_json_string(cli, cli_format_time(time, value));
    else
        cli_json_int(cli, value);
}

static void json_texts(struct cli *cli, const struct cli_field *field,
                       const struct cli_texts *list)
{
    if (field->form == CLI_AS_LINES)
        cli_json_open(cli, '[');
    else
        cli_json_open_line(cli, '[');
    for (size_t i = 0; i < list->n; i++)
        cli_json_string(cli, list->texts[i]);
    cli_json_close(cli, '[');
}

static void json_ids(struct cli *cli, const struct cli_ids *list)
{
    cli_json_open_line(cli, '[');
    for (size_t i = 0; i < list->n; i++)
        cli_json_id(cli, &list->ids[i]);
    cli_json_close(cli, '[');
}

static void json_value(struct cli *cli, const struct cli_field *field)
{
    const void *value = field->value;

    switch (field->type) {
    case CLI_TEXT:
        json_text(cli, field, *(const char *const *)value);
        break;
    case CLI_UINT:
        cli_json_uint(cli, *(const uint64_t *)value);
        break;
    case CLI_INT:
        json_int(cli, field, *(const int64_t *)value);
        break;
    case CLI_REAL:
        cli_json_double(cli, *(const double *)value);
        break;
    case CLI_FLAG:
        cli_json_bool(cli, !is_empty(field));
        break;
    case CLI_ID:
        cli_json_id(cli, is_empty(field) ? NULL : value);
        break;
    case CLI_DIMS:
        cli_json_dims(cli, ((const struct cli_dims *)value)->dims,
                      ((const struct cli_dims *)value)->ndim);
        break;
    case CLI_TEXTS:
        json_texts(cli, field, value);
        break;
    case CLI_IDS:
        json_ids(cli, value);
        break;
    case CLI_END:
        break;
    }
}

static void json_members(struct cli *cli, const struct cli_field *fields)
{
    for (const struct cli_field *f = fields; f->type != CLI_END; f++) {
        if (!f->json || (f->optional && is_empty(f)))
            continue;
        cli_json_key(cli, f->json);
        json_value(cli, f);
    }
}

/* ---- text -------------------------------- */

/* The value of a field as text, or NULL if the text of the record leaves the field out. */
struct cell {
    const char *value;
    enum cli_color color;
};

/* Measures first, so that n texts take O(n). */
const char *cli_joined(struct cli *cli, const struct cli_texts *list, const char *between)
{
    const char **texts = cli_alloc(cli, list->n, sizeof(*texts));
    size_t len = 1;
    char *out, *at;

    for (size_t i = 0; i < list->n; i++) {
        texts[i] = cli_escaped(cli, list->texts[i]);
        len += strlen(texts[i]) + strlen(between);
    }
    out = at = cli_alloc(cli, len, 1);
    for (size_t i = 0; i < list->n; i++) {
        if (i > 0)
            at = stpcpy(at, between);
        at = stpcpy(at, texts[i]);
    }
    return out;
}

static const char *joined_ids(struct cli *cli, const struct cli_ids *list)
{
    const char *out = "";

    for (size_t i = 0; i < list->n; i++)
        out = cli_text(cli, "%s%s%s", out, i > 0 ? " " : "", cli_short_id(cli, &list->ids[i]));
    return out;
}

static const char *uint_text(struct cli *cli, const struct cli_field *field, uint64_t value)
{
    char size[CLI_SIZE_CAP];

    if (field->noun)
        return cli_count(cli, value, field->noun);
    if (field->form == CLI_AS_SIZE)
        return cli_text(cli, "%s", cli_format_size(size, value));
    if (field->form == CLI_AS_BYTES && value < 1024)
        return cli_text(cli, "%" PRIu64 " bytes", value);
    if (field->form == CLI_AS_BYTES)
        return cli_text(cli, "%" PRIu64 " bytes (%s)", value, cli_format_size(size, value));
    return cli_text(cli, "%" PRIu64, value);
}

static const char *int_text(struct cli *cli, const struct cli_field *field, int64_t value)
{
    char time[CLI_TIME_CAP];

    return field->form == CLI_AS_TIME ? cli_text(cli, "%s", cli_format_time(time, value))
                                      : cli_text(cli, "%" PRId64, value);
}

static const char *value_text(struct cli *cli, const struct cli_field *field)
{
    const void *value = field->value;
    const struct cli_dims *dims = value;

    switch (field->type) {
    case CLI_TEXT:
        return (field->form == CLI_AS_SUBJECT ? cli_subject : cli_escaped)(
            cli, *(const char *const *)value);
    case CLI_UINT:
        return uint_text(cli, field, *(const uint64_t *)value);
    case CLI_INT:
        return int_text(cli, field, *(const int64_t *)value);
    case CLI_ID:
        return cli_short_id(cli, value);
    case CLI_DIMS:
        return cli_text(cli, "(%s)", cli_dims_text(cli, dims->dims, dims->ndim));
    case CLI_TEXTS:
        return cli_joined(cli, value, field->form == CLI_AS_LINES ? field->lead : ", ");
    case CLI_IDS:
        return joined_ids(cli, value);
    case CLI_FLAG:
        return field->lead;
    default:
        return "";
    }
}

static struct cell make_cell(struct cli *cli, const struct cli_field *field)
{
    const int number = field->type == CLI_UINT || field->type == CLI_INT;
    const int empty = is_empty(field) ||
                      (field->type == CLI_TEXT && !**(const char *const *)field->value);
    struct cell cell = { NULL, field->color };

    if (!field->lead)
        return cell;
    if (!empty || (number && !field->none && !field->optional))
        cell.value = value_text(cli, field);
    else
        cell.value = field->none;
    return cell;
}

static void put_value(struct cli *cli, const char *text, int width, enum cli_color color)
{
    const int columns = (int)cli_text_width(text);

    if (color != CLI_PLAIN)
        cli_color(cli, color);
    if (width < 0)
        cli_put_padded(cli, "", columns < -width ? (size_t)(-width - columns) : 0);
    cli_put_padded(cli, text, width > 0 ? (size_t)width : 0);
    if (color != CLI_PLAIN)
        cli_color_end(cli);
}

/* ---- lines that fit the terminal --------- */

enum { CUT_LEAST = 5, WRAP_LEAST = 24, WRAP_INDENT = 6 };

/* Returns the columns that a value takes with what stands around it. */
static size_t cell_width(const struct cli_field *field, const struct cell *cell, int is_last)
{
    size_t width = cli_text_width(cell->value), padded = (size_t)abs(field->width);

    if (padded > width && (!is_last || field->width < 0))
        width = padded;
    if (field->type != CLI_FLAG)
        width += cli_text_width(field->lead);
    return width + (field->tail ? cli_text_width(field->tail) : 0);
}

static size_t last_cell(const struct cell *cells, size_t n)
{
    while (n > 0 && !cells[n - 1].value)
        n--;
    return n;
}

/* Returns the number of cells up to the last one before the lines below the line, if it has any. */
static size_t last_on_line(const struct cli_field *fields, const struct cell *cells, size_t n)
{
    while (n > 0 && (!cells[n - 1].value || fields[n - 1].form == CLI_AS_LINES))
        n--;
    return n;
}

static size_t line_width(const struct cli_field *fields, const struct cell *cells, size_t n)
{
    size_t columns = 0;

    n = last_on_line(fields, cells, n);
    for (size_t i = 0; i < n; i++)
        if (cells[i].value && fields[i].narrow != CLI_WRAPPED)
            columns += cell_width(&fields[i], &cells[i], i + 1 == n);
    return columns;
}

static int can_cut(const struct cli_field *field)
{
    return field->narrow == CLI_CUT_END || field->narrow == CLI_CUT_START;
}

/* Returns the first bytes of `text` that take `width` columns. */
static size_t bytes_of_columns(const char *text, size_t width)
{
    size_t at = 0;

    for (; text[at]; at++)
        if (((unsigned char)text[at] & 0xc0) != 0x80 && width-- == 0)
            break;
    return at;
}

/* Returns the text in `width` columns. */
static const char *cut_text(struct cli *cli, const char *text, size_t width, enum cli_narrow narrow)
{
    size_t has = cli_text_width(text);

    if (has <= width)
        return text;
    if (narrow == CLI_CUT_START)
        return cli_text(cli, "...%s", text + bytes_of_columns(text, has - (width - 3)));
    return cli_text(cli, "%.*s...", (int)bytes_of_columns(text, width - 3), text);
}

/* Cuts values of a line whose columns are not those of other lines. */
static void fit_line(struct cli *cli, const struct cli_field *fields, struct cell *cells, size_t n)
{
    size_t columns = cli->out.columns, width = line_width(fields, cells, n);

    for (size_t i = n; i > 0 && columns > 0 && width > columns; i--) {
        struct cell *cell = &cells[i - 1];
        size_t has = cell->value ? cli_text_width(cell->value) : 0, less = width - columns;

        if (!can_cut(&fields[i - 1]) || has <= CUT_LEAST)
            continue;
        less = less < has - CUT_LEAST ? less : has - CUT_LEAST;
        cell->value = cut_text(cli, cell->value, has - less, fields[i - 1].narrow);
        width -= less;
    }
}

/* Prints a value in lines of `room` columns, broken at spaces, each with `indent` spaces before it
 * but the first. */
static void put_wrapped(struct cli *cli, const char *text, size_t room, size_t indent)
{
    while (cli_text_width(text) > room) {
        size_t most = bytes_of_columns(text, room), len = most;

        while (len > 0 && text[len] != ' ')
            len--;
        if (len == 0) /* one long word */
            len = most + strcspn(text + most, " ");
        cli_put(cli, text, len);
        text += len + (text[len] == ' ');
        if (!*text)
            return;
        cli_printf(cli, "\n%*s", (int)indent, "");
    }
    cli_puts(cli, text);
}

/* Prints the last value of a line behind `column` columns. */
static void put_last(struct cli *cli, const struct cli_field *field, struct cell cell,
                     size_t column)
{
    size_t columns = cli->out.columns, lead = cli_text_width(field->lead);

    if (column + lead + cli_text_width(cell.value) <= columns) {
        cli_puts(cli, field->lead);
        cli_puts(cli, cell.value);
    } else if (column + lead + WRAP_LEAST <= columns) {
        cli_puts(cli, field->lead);
        put_wrapped(cli, cell.value, columns - column - lead, column + lead);
    } else {
        cli_printf(cli, "\n%*s", WRAP_INDENT, "");
        put_wrapped(cli, cell.value, columns > 2 * WRAP_INDENT ? columns - WRAP_INDENT : columns,
                    WRAP_INDENT);
    }
}

static void put_cell(struct cli *cli, const struct cli_field *field, struct cell cell, int width)
{
    if (field->type != CLI_FLAG)
        cli_puts(cli, field->lead);
    put_value(cli, cell.value, width, cell.color);
    if (field->tail)
        cli_puts(cli, field->tail);
}

/* Prints the cells of a line. With `trims`, the last value is not padded. */
static void put_cells(struct cli *cli, const struct cli_field *fields, const struct cell *cells,
                      size_t n, int trims)
{
    size_t end = last_cell(cells, n), column = line_width(fields, cells, n);
    size_t last = last_on_line(fields, cells, n);

    for (size_t i = 0; i < end; i++) {
        const int is_last = i + 1 == last;

        if (cells[i].value && is_last && fields[i].narrow == CLI_WRAPPED && cli->out.columns > 0)
            put_last(cli, &fields[i], cells[i], column);
        else if (cells[i].value)
            put_cell(cli, &fields[i], cells[i],
                     trims && is_last && fields[i].width > 0 ? 0 : fields[i].width);
    }
}

static size_t count_fields(const struct cli_field *fields)
{
    size_t n = 0;

    while (fields[n].type != CLI_END)
        n++;
    return n;
}

static void put_line_of(struct cli *cli, const struct cli_field *fields)
{
    struct cli_block *before = cli_memory_mark(cli);
    size_t n = count_fields(fields);
    struct cell *cells = cli_alloc(cli, n, sizeof(*cells));

    for (size_t i = 0; i < n; i++)
        cells[i] = make_cell(cli, &fields[i]);
    fit_line(cli, fields, cells, n);
    put_cells(cli, fields, cells, n, 0);
    if (last_cell(cells, n) > 0)
        cli_puts(cli, "\n");
    cli_memory_release(cli, before);
}

/* ---- printing ---------------------------- */

void cli_begin(struct cli *cli, const char *key, char bracket)
{
    if (!cli->json)
        return;
    if (key)
        cli_json_key(cli, key);
    cli_json_open(cli, bracket);
    if (bracket == '{' && cli->doc.depth == 1)
        cli_json_schema(cli);
}

void cli_finish(struct cli *cli, char bracket)
{
    if (cli->json)
        cli_json_close(cli, bracket);
}

void cli_put_members(struct cli *cli, const struct cli_field *fields)
{
    (cli->json ? json_members : put_line_of)(cli, fields);
}

void cli_put_record(struct cli *cli, const struct cli_field *fields)
{
    cli_begin(cli, NULL, '{');
    cli_put_members(cli, fields);
    cli_finish(cli, '{');
}

void cli_put_lines(struct cli *cli, const struct cli_field *fields, const char *prefix, int width,
                   enum cli_color color)
{
    if (cli->json) {
        json_members(cli, fields);
        return;
    }
    for (const struct cli_field *f = fields; f->type != CLI_END; f++) {
        struct cell cell = make_cell(cli, f);

        if (!cell.value)
            continue;
        cli_puts(cli, prefix);
        put_value(cli, f->lead, width, color);
        put_value(cli, cell.value, 0, cell.color);
        cli_puts(cli, "\n");
    }
}

void cli_answer(struct cli *cli, const struct cli_field *fields, const char *format, ...)
{
    va_list args;

    if (cli->json) {
        cli_put_record(cli, fields);
        return;
    }
    va_start(args, format);
    cli_vsay(cli, format, args);
    va_end(args);
}

/* ---- lists ------------------------------- */

/* A record that is printed at the end of its list: a cell for each field. */
struct cli_row {
    struct cli_row *next;
    struct cell cells[];
};

static int is_fitted(const struct cli_field *field)
{
    return field->width == CLI_FIT || field->width == -CLI_FIT;
}

void cli_list_begin(struct cli *cli, struct cli_list *list, const char *key, int flags)
{
    *list = (struct cli_list){ .flags = flags, .before = cli_memory_mark(cli) };
    list->last = &list->first;
    cli_begin(cli, key, '[');
}

/* A column keeps the first field that has text. */
static void keep_row(struct cli *cli, struct cli_list *list, const struct cli_field *fields,
                     size_t n)
{
    struct cli_row *row = cli_alloc(cli, 1, sizeof(*row) + n * sizeof(*row->cells));

    if (!list->columns)
        list->columns = cli_alloc(cli, n, sizeof(*list->columns));
    list->ncolumns = n;
    for (size_t i = 0; i < n; i++) {
        row->cells[i] = make_cell(cli, &fields[i]);
        if (!list->columns[i].lead)
            list->columns[i] = fields[i];
    }
    *list->last = row;
    list->last = &row->next;
}

static void put_listed(struct cli *cli, struct cli_list *list, const struct cli_field *fields)
{
    size_t n = count_fields(fields);
    int fits = 0;

    for (size_t i = 0; i < n; i++)
        fits |= is_fitted(&fields[i]);
    if (cli->json && list->flags & CLI_ON_LINE) {
        cli_json_open_line(cli, '{');
        json_members(cli, fields);
        cli_json_close(cli, '{');
    } else if (cli->json || !fits) {
        cli_put_record(cli, fields);
    } else {
        keep_row(cli, list, fields, n);
    }
}

int cli_list_put(struct cli *cli, struct cli_list *list, const struct cli_field *fields)
{
    list->n++;
    if (cli->json || !cli->quiet || !(list->flags & CLI_SAID))
        put_listed(cli, list, fields);
    if (!list->first)
        cli_memory_release(cli, list->before);
    return cli_out_check(cli);
}

/* Gives a column the width of its widest value. */
static void fit_column(struct cli_list *list, size_t i)
{
    struct cli_field *column = &list->columns[i];
    size_t width = 0;

    for (const struct cli_row *row = list->first; row; row = row->next) {
        size_t n = row->cells[i].value ? cli_text_width(row->cells[i].value) : 0;

        width = n > width && (column->most == 0 || n <= column->most) ? n : width;
    }
    column->width = column->width < 0 ? -(int)width : (int)width;
}

static size_t widest_line(const struct cli_list *list)
{
    size_t widest = 0;

    for (const struct cli_row *row = list->first; row; row = row->next) {
        size_t width = line_width(list->columns, row->cells, list->ncolumns);

        widest = width > widest ? width : widest;
    }
    return widest;
}

/* Leaves out columns that can be spared, the last one first, until the widest line fits. */
static void leave_out_columns(struct cli *cli, struct cli_list *list)
{
    for (size_t i = list->ncolumns; i > 0 && widest_line(list) > cli->out.columns; i--)
        for (struct cli_row *row = list->first; row; row = row->next)
            if (list->columns[i - 1].narrow == CLI_LEFT_OUT)
                row->cells[i - 1].value = NULL;
}

/* Makes columns narrower, the last that can be cut first, until the widest line fits. */
static void fit_list(struct cli *cli, struct cli_list *list)
{
    size_t widest;

    leave_out_columns(cli, list);
    widest = widest_line(list);
    for (size_t i = list->ncolumns; i > 0 && widest > cli->out.columns; i--) {
        struct cli_field *column = &list->columns[i - 1];
        size_t has = 0, less = widest - cli->out.columns;

        for (const struct cli_row *row = list->first; row && can_cut(column); row = row->next) {
            size_t n = row->cells[i - 1].value ? cli_text_width(row->cells[i - 1].value) : 0;

            has = n > has ? n : has;
        }
        if (has <= CUT_LEAST)
            continue;
        less = less < has - CUT_LEAST ? less : has - CUT_LEAST;
        column->width = (int)(has - less);
        widest -= less;
        for (struct cli_row *row = list->first; row; row = row->next)
            if (row->cells[i - 1].value &&
                line_width(list->columns, row->cells, list->ncolumns) > cli->out.columns)
                row->cells[i - 1].value = cut_text(cli, row->cells[i - 1].value, has - less,
                                                   column->narrow);
    }
}

int cli_list_end(struct cli *cli, struct cli_list *list, int rc)
{
    if (rc < 0)
        return rc;
    cli_finish(cli, '[');
    for (size_t i = 0; i < list->ncolumns; i++)
        if (is_fitted(&list->columns[i]))
            fit_column(list, i);
    if (cli->out.columns > 0)
        fit_list(cli, list);
    for (const struct cli_row *row = list->first; row; row = row->next) {
        put_cells(cli, list->columns, row->cells, list->ncolumns, 1);
        cli_puts(cli, "\n");
    }
    return rc;
}
