/*
 * table_in.c - values from CSV: single elements by their coordinates, and whole arrays.
 *
 * A field is read as `write --value` reads V; blanks around numbers do not count, and an empty
 * field is NaN if the type has it. The fields of a struct are columns.
 */
#include "table_in.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "../cli.h"
#include "../csv.h"
#include "../decode.h"
#include "new_array.h"
#include "write_decoded.h"

/* ==== elements ================================ */

/* How the fields of a row become an element of cli->array. */
struct row_type {
    size_t n;           /* columns of an element                             */
    const char **names; /* of the fields of a struct; NULL: it is not a struct */
    const char **empty; /* what an empty field of each is in JSON, or NULL   */
    const char *missing; /* what an empty field is, without a struct; or NULL */
    int is_text;
};

/* Returns the JSON of what a type has for a value that is missing; NULL: it has nothing. */
static const char *json_of_empty(const brc_json *type)
{
    const brc_json *named = brc_json_member(type, "name");
    const char *name;

    if (!brc_json_text(named ? named : type, &name))
        return NULL;
    return strstr(name, "float") ? "\"NaN\"" : strstr(name, "numpy.") == name ? "\"NaT\"" : NULL;
}

/* Reads the names of the fields from a data type. */
static int read_fields(struct cli *cli, const char *dtype, struct row_type *out)
{
    const brc_json *fields;
    brc_json *type;

    CLI_TRY(brc_json_parse(&type, dtype, strlen(dtype), 0, &cli->err));
    fields = brc_json_member(brc_json_member(type, "configuration"), "fields");
    if (fields) {
        out->n = 0;
        out->names = cli_alloc(cli, brc_json_count(fields), sizeof(*out->names));
        out->empty = cli_alloc(cli, brc_json_count(fields), sizeof(*out->empty));
        for (const brc_json *f = brc_json_first(fields); f; f = brc_json_next(f)) {
            const char *name = "";

            if (!brc_json_text(brc_json_member(f, "name"), &name))
                name = "";
            out->empty[out->n] = json_of_empty(brc_json_member(f, "data_type"));
            out->names[out->n++] = cli_text(cli, "%s", name);
        }
    }
    brc_json_free(type);
    return BRC_OK;
}

static int row_type_of(struct cli *cli, const char *dtype, struct row_type *out)
{
    *out = (struct row_type){ .n = 1,
                              .is_text = strcmp(dtype, "string") == 0 ||
                                         strstr(dtype, "fixed_length_utf32") != NULL,
                              .missing = strstr(dtype, "float")   ? "NaN"
                                         : strstr(dtype, "\"numpy.") ? "NaT"
                                                                     : NULL };
    return dtype[0] == '{' ? read_fields(cli, dtype, out) : BRC_OK;
}

static const char *without_blanks(struct cli *cli, const char *text)
{
    size_t len;

    text += strspn(text, " \t");
    len = strlen(text);
    while (len > 0 && (text[len - 1] == ' ' || text[len - 1] == '\t'))
        len--;
    return text[len] ? cli_text(cli, "%.*s", (int)len, text) : text;
}

static int is_one_of(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strcasecmp(text, *words) == 0)
            return 1;
    return 0;
}

static int is_not_finite(const char *text)
{
    static const char *const words[] = { "nan", "inf", "infinity", NULL };

    return is_one_of(text + (text[0] == '-' || text[0] == '+'), words);
}

static int is_true_or_false(const char *text)
{
    static const char *const words[] = { "true", "false", NULL };

    return is_one_of(text, words);
}

/* Returns whether the text is a number in JSON's form. */
static int is_json_number(const char *text)
{
    const char *digits = text + (text[0] == '-');
    size_t whole = strspn(digits, "0123456789"), part = 0;
    const char *at = digits + whole;

    if (whole == 0 || (whole > 1 && digits[0] == '0'))
        return 0;
    if (*at == '.') {
        part = strspn(at + 1, "0123456789");
        at += 1 + part;
        if (part == 0)
            return 0;
    }
    if (*at == 'e' || *at == 'E') {
        at += 1 + (at[1] == '-' || at[1] == '+');
        part = strspn(at, "0123456789");
        at += part;
        if (part == 0)
            return 0;
    }
    return *at == '\0';
}

/* Returns the field of a struct as JSON; `empty` is what an empty one stands for, or NULL. */
static const char *json_of_field(struct cli *cli, const char *text, const char *empty)
{
    const char *bare = without_blanks(cli, text), *plain = cli_plain_number(cli, bare);
    const char *digits = bare + (bare[0] == '-' || bare[0] == '+');

    if (is_json_number(plain))
        return plain;
    if (empty && !bare[0])
        return empty;
    if (is_true_or_false(bare))
        return bare[0] == 't' || bare[0] == 'T' ? "true" : "false";
    if (is_not_finite(bare))
        return digits[0] == 'n' || digits[0] == 'N' ? "\"NaN\""
               : bare[0] == '-'                     ? "\"-Infinity\""
                                                    : "\"Infinity\"";
    return bare[0] == '{' ? bare : cli_json_quoted(cli, text);
}

/* Returns the fields from `first` as one text, as brc_element_parse() takes it. */
static const char *text_of_element(const struct cli_csv *csv, const struct row_type *type,
                                   size_t first)
{
    struct cli *cli = csv->cli;
    const char *text = csv->fields[first], *out = "";

    for (size_t i = 0; type->names && i < type->n; i++)
        out = cli_text(cli, "%s%s%s:%s", out, i ? "," : "{", cli_json_quoted(cli, type->names[i]),
                       json_of_field(cli, csv->fields[first + i], type->empty[i]));
    if (type->names)
        return cli_text(cli, "%s}", out);
    if (type->is_text)
        return text[0] == '"' ? cli_json_quoted(cli, text) : text;
    return text[0] == '\0' && type->missing ? type->missing : text;
}

/* Appends the element that is stored for the value in a field; an empty one is missing. */
static int parse_decoded(const struct cli_csv *csv, size_t first, brc_buf *out)
{
    struct cli *cli = csv->cli;
    struct cli_block *before = cli_memory_mark(cli);
    const char *text = without_blanks(cli, csv->fields[first]);
    uint8_t element[sizeof(double)];
    brc_buf stored = BRC_BUF_INIT;
    struct cli_value value;
    int rc = cli_value_read(cli, cli->decoder, text[0] ? text : "nan", &value);

    if (rc >= 0)
        rc = cli_encode(cli, cli->decoder, &value, element);
    if (rc < 0)
        return cli_csv_fail(csv, rc, first, cli_text(cli, "%s", cli->err.message));
    rc = brc_element_format(&stored, cli->array, element, BRC_ELEMENT_JSON, &cli->err);
    if (rc >= 0)
        rc = brc_element_parse(out, cli->array, (const char *)stored.data, &cli->err);
    brc_buf_dispose(&stored);
    cli_memory_release(cli, before);
    return rc;
}

/* Appends the element of the fields from `first` on. */
static int parse_element(const struct cli_csv *csv, const struct row_type *type, size_t first,
                         brc_buf *out)
{
    static const char fill[] = "fill value "; /* what the library's message calls an element */
    struct cli *cli = csv->cli;
    struct cli_block *before = cli_memory_mark(cli);
    const char *text = text_of_element(csv, type, first), *plain = cli_plain_number(cli, text);
    const char *message = cli->err.message;
    int rc = brc_element_parse(out, cli->array, text, &cli->err);

    if (rc < 0 && plain != text && !type->names && !type->is_text)
        rc = brc_element_parse(out, cli->array, plain, &cli->err);
    if (rc < 0 && strncmp(message, fill, strlen(fill)) == 0)
        message += strlen(fill);
    if (rc < 0)
        return cli_csv_fail(csv, rc, first, cli_text(cli, "%s", message));
    cli_memory_release(cli, before);
    return BRC_OK;
}

static int wrong_fields(const struct cli_csv *csv, size_t expected)
{
    return cli_csv_fail(csv, BRC_EINVAL, SIZE_MAX,
                        cli_text(csv->cli, "the row has %s, not %llu",
                                 cli_count(csv->cli, csv->n, "field"),
                                 (unsigned long long)expected));
}

/* ==== points ================================ */

enum { POINTS_AT_ONCE = 1 << 16, VALUES_AT_ONCE = 16 << 20 };

struct points {
    struct cli_csv csv;
    struct row_type type;
    const brc_array_info *info;
    int axes[BRC_MAX_NDIM];      /* the axis of each column                   */
    const char **dimensions;     /* the names of the axes, each may be NULL   */
    int64_t *index[BRC_MAX_NDIM];
    brc_buf values;
    size_t n;                    /* points that are not written yet           */
};

static int read_dimensions(struct points *p)
{
    struct cli *cli = p->csv.cli;
    const brc_json *names;
    brc_json *document = NULL;
    brc_buf text = BRC_BUF_INIT;
    int rc = brc_node_json(&text, cli->session, p->info->path, &cli->err);

    p->dimensions = cli_alloc(cli, BRC_MAX_NDIM, sizeof(*p->dimensions));
    if (rc >= 0)
        rc = brc_json_parse(&document, (const char *)text.data, text.len, BRC_JSON_NAN, &cli->err);
    names = brc_json_member(document, "dimension_names");
    for (int i = 0; i < p->info->ndim; i++) {
        const char *name;

        if (brc_json_text(brc_json_item(names, (size_t)i), &name))
            p->dimensions[i] = cli_text(cli, "%s", name);
    }
    brc_json_free(document);
    brc_buf_dispose(&text);
    return rc;
}

/* Reads a header: names of dimensions in any order, if the array has names. */
static int read_header(struct points *p)
{
    struct cli *cli = p->csv.cli;
    unsigned long long seen = 0;
    int named = 0;

    for (int i = 0; i < p->info->ndim; i++)
        named += p->dimensions[i] != NULL;
    for (int i = 0; named == p->info->ndim && i < p->info->ndim; i++) {
        const char *name = without_blanks(cli, p->csv.fields[i]);
        int axis = 0;

        while (axis < p->info->ndim && strcmp(p->dimensions[axis], name) != 0)
            axis++;
        if (axis == p->info->ndim || seen >> axis & 1)
            return cli_csv_fail(&p->csv, BRC_EINVAL, (size_t)i,
                                cli_text(cli, "%s is not a dimension of %s, or is there twice; "
                                              "the dimensions are %s", name, p->info->path,
                                         cli_joined(cli, &(struct cli_texts){
                                             p->dimensions, (size_t)p->info->ndim }, ", ")));
        seen |= 1ULL << axis;
        p->axes[i] = axis;
    }
    return BRC_OK;
}

/* Returns whether no coordinate of the row begins like a number. */
static int is_header(struct points *p)
{
    for (int i = 0; i < p->info->ndim; i++)
        if (strchr("0123456789.+-", without_blanks(p->csv.cli, p->csv.fields[i])[0]))
            return 0;
    return p->info->ndim > 0;
}

static int read_csv_coordinate(struct points *p, size_t column)
{
    struct cli *cli = p->csv.cli;
    const int axis = p->axes[column];
    const char *text = without_blanks(cli, p->csv.fields[column]);
    const int64_t extent = (int64_t)p->info->shape[axis];
    int64_t *to = &p->index[axis][p->n];

    if (!cli_read_i64(to, text))
        return cli_csv_fail(&p->csv, BRC_EINVAL, column,
                            cli_text(cli, "'%s' is not a whole number", text));
    if (*to < -extent || *to >= extent)
        return cli_csv_fail(&p->csv, BRC_EINVAL, column,
                            cli_text(cli, "%s is outside of axis %d, which has %s", text, axis,
                                     cli_count(cli, (uint64_t)extent, "element")));
    *to += *to < 0 ? extent : 0;
    return BRC_OK;
}

static int write_points(struct points *p)
{
    brc_buffer buffer = BRC_BUFFER_INIT;
    brc_at at = BRC_AT_INIT;
    brc_io io = BRC_IO_INIT;

    if (p->n == 0)
        return BRC_OK;
    buffer.data = p->values.data;
    buffer.len = p->values.len;
    at.ndim = p->info->ndim;
    at.flags = BRC_AT_POINTS;
    for (int i = 0; i < at.ndim; i++) {
        at.index[i] = p->index[i];
        at.count[i] = p->n;
    }
    io.array = p->csv.cli->array;
    io.buffer = &buffer;
    if (at.ndim > 0)
        io.at = &at;
    CLI_TRY(brc_write(&io, 1, &p->csv.cli->err));
    p->n = 0;
    p->values.len = 0;
    return BRC_OK;
}

static int read_point(struct points *p)
{
    struct cli_block *before = cli_memory_mark(p->csv.cli);
    const size_t ndim = (size_t)p->info->ndim;

    for (size_t i = 0; i < ndim; i++)
        CLI_TRY(read_csv_coordinate(p, i));
    if (ndim == 0) /* of several rows for the one element the later counts */
        p->n = p->values.len = 0;
    CLI_TRY(p->csv.cli->decoder ? parse_decoded(&p->csv, ndim, &p->values)
                                : parse_element(&p->csv, &p->type, ndim, &p->values));
    cli_memory_release(p->csv.cli, before);
    if (++p->n == POINTS_AT_ONCE || p->values.len > VALUES_AT_ONCE)
        return write_points(p);
    return BRC_OK;
}

static int write_all_points(struct points *p, uint64_t *n)
{
    const size_t expected = (size_t)p->info->ndim + p->type.n;
    int rc, first = 1;

    for (*n = 0; (rc = cli_csv_next(&p->csv)) > 0; first = 0) {
        if (p->csv.n != expected)
            return wrong_fields(&p->csv, expected);
        if (first && is_header(p)) {
            CLI_TRY(read_header(p));
        } else {
            CLI_TRY(read_point(p));
            (*n)++;
        }
    }
    CLI_TRY(rc);
    return write_points(p);
}

static int open_points(struct points *p, struct cli *cli, const char *file)
{
    p->info = brc_array_describe(cli->array);
    for (int i = 0; i < p->info->ndim; i++) {
        p->axes[i] = i;
        p->index[i] = cli_alloc(cli, POINTS_AT_ONCE, sizeof(*p->index[i]));
    }
    CLI_TRY(row_type_of(cli, p->info->dtype, &p->type));
    if (cli_has(cli, "decode"))
        CLI_TRY(cli_decoder_to_write(cli, &cli->decoder));
    CLI_TRY(cli_csv_open(&p->csv, cli, file));
    return read_dimensions(p);
}

int cli_write_points(struct cli *cli, const char *file, uint64_t *n)
{
    struct points p = { .values = BRC_BUF_INIT, .csv.fd = -1 };
    int rc = open_points(&p, cli, file);

    if (rc >= 0)
        rc = brc_bulk_begin(cli->session, &cli->err);
    if (rc >= 0)
        rc = cli_end_bulk(cli, write_all_points(&p, n));
    cli_csv_close(&p.csv);
    brc_buf_dispose(&p.values);
    return rc;
}

/* ==== tables ================================ */

struct table {
    struct cli_csv csv;
    struct row_type type;
    const char *header;  /* the names in the first row as JSON; NULL: there are none */
    uint64_t rows;
    size_t columns;
    const char *dtype;
    int has_negative, has_large, has_real, has_truth, has_empty, has_number;
    uint64_t shape[2];
    int ndim;
    size_t next;         /* the field to read                                */
    brc_buf element;
    size_t taken;        /* bytes of the element that were taken             */
};

/* Returns whether a field can be a value of any type but text. */
static int looks_like_value(struct cli *cli, const char *text)
{
    text = without_blanks(cli, text);
    return text[0] == '\0' || strchr("0123456789+-.({", text[0]) || is_not_finite(text) ||
           is_true_or_false(text) || strcasecmp(text, "nat") == 0;
}

/* Decides whether the first row is a header: by --header, or if one of its fields cannot be a
 * value. Every field can be a text. Of a struct, the header is the names of its fields. */
static int has_header(struct cli *cli, const struct table *t, int *is)
{
    const char *given = NULL;

    CLI_TRY(cli_choice_option(cli, "header", "yes|no", &given));
    *is = given ? strcmp(given, "yes") == 0 : t->type.names && t->csv.n == t->type.n;
    for (size_t i = 0; !given && i < t->csv.n; i++)
        if (t->type.names)
            *is &= i < t->type.n && strcmp(t->csv.fields[i], t->type.names[i]) == 0;
        else
            *is |= !t->type.is_text && !looks_like_value(cli, t->csv.fields[i]);
    return BRC_OK;
}

/* Keeps the first row as a list of JSON. Measures first, so that n names take O(n). The names must
 * be those of the fields of a struct. */
static int keep_header(struct table *t)
{
    struct cli *cli = t->csv.cli;
    const char **names = cli_alloc(cli, t->csv.n, sizeof(*names));
    size_t len = 3;
    char *at;

    for (size_t i = 0; i < t->csv.n; i++) {
        const char *name = t->csv.fields[i];

        if (t->type.names && i < t->type.n && strcmp(name, t->type.names[i]) != 0)
            return cli_csv_fail(&t->csv, BRC_EINVAL, i,
                                cli_text(cli, "the header says '%s', and the struct '%s'", name,
                                         t->type.names[i]));
        names[i] = cli_json_quoted(cli, name);
        len += strlen(names[i]) + 1;
    }
    at = cli_alloc(cli, len, 1);
    t->header = at;
    for (size_t i = 0; i < t->csv.n; i++)
        at = stpcpy(stpcpy(at, i ? "," : "["), names[i]);
    stpcpy(at, "]");
    return BRC_OK;
}

/* Notes which numbers there are, for the type of the array. */
static int survey_field(struct table *t, size_t i)
{
    struct cli *cli = t->csv.cli;
    const char *text = without_blanks(cli, t->csv.fields[i]), *plain = cli_plain_number(cli, text);

    if (text[0] == '\0') {
        t->has_empty = 1;
    } else if (is_true_or_false(text)) {
        t->has_truth = 1;
    } else if (is_json_number(plain)) {
        uint64_t size;
        int64_t number;

        t->has_number = 1;
        t->has_negative |= plain[0] == '-';
        if (!cli_read_i64(&number, plain)) {
            t->has_large |= cli_read_u64(&size, plain);
            t->has_real |= !cli_read_u64(&size, plain);
        }
    } else if (is_not_finite(text)) {
        t->has_number = t->has_real = 1;
    } else {
        return cli_csv_fail(&t->csv, BRC_EINVAL, i,
                            cli_text(cli, "'%s' is not a number: give --dtype, as in --dtype "
                                     "string",
                                     cli_escaped(cli, text)));
    }
    return BRC_OK;
}

static int survey_row(struct table *t, int infers)
{
    struct cli_block *before = cli_memory_mark(t->csv.cli);

    if (t->csv.n != t->columns)
        return wrong_fields(&t->csv, t->columns);
    for (size_t i = 0; infers && i < t->csv.n; i++)
        CLI_TRY(survey_field(t, i));
    cli_memory_release(t->csv.cli, before);
    t->rows++;
    return BRC_OK;
}

/* Reads the whole table once. */
static int survey_table(struct table *t)
{
    const int infers = !cli_has(t->csv.cli, "dtype");
    int rc = cli_csv_next(&t->csv), is;

    CLI_TRY(rc);
    t->columns = t->csv.n;
    if (rc > 0) {
        CLI_TRY(has_header(t->csv.cli, t, &is));
        if (is) {
            CLI_TRY(keep_header(t));
            rc = cli_csv_next(&t->csv);
        }
    }
    for (; rc > 0; rc = cli_csv_next(&t->csv))
        CLI_TRY(survey_row(t, infers));
    CLI_TRY(rc);
    if (t->rows == 0)
        return cli_fail(t->csv.cli, BRC_EINVAL, "%s has no values: 'breccia create' makes an empty "
                                                "array", t->csv.name);
    return BRC_OK;
}

/* Chooses the type of numbers that were surveyed. */
static int infer_dtype(struct table *t)
{
    if (t->has_truth && (t->has_number || t->has_empty))
        return cli_fail(t->csv.cli, BRC_EINVAL,
                        "%s has numbers, or empty fields, and true or false: give --dtype",
                        t->csv.name);
    t->dtype = t->has_truth                                        ? "bool"
               : t->has_real || t->has_empty || !t->has_number     ? "float64"
               : t->has_large && t->has_negative                   ? "float64"
               : t->has_large                                      ? "uint64"
                                                                   : "int64";
    return BRC_OK;
}

static int choose_shape(struct table *t)
{
    if (t->type.names && t->columns != t->type.n)
        return cli_fail(t->csv.cli, BRC_EINVAL, "%s has %s, and the struct %s", t->csv.name,
                        cli_count(t->csv.cli, t->columns, "column"),
                        cli_count(t->csv.cli, t->type.n, "field"));
    t->ndim = 1;
    t->shape[0] = t->rows;
    if (t->type.names || t->columns == 1)
        return BRC_OK;
    if (t->rows == 1 && !t->header) {
        t->shape[0] = t->columns;
        return BRC_OK;
    }
    t->ndim = 2;
    t->shape[1] = t->columns;
    return BRC_OK;
}

/* ---- the array -------------------------------- */

/* Reads the next element of the table; leaves an empty one at the end. */
static int next_element(struct table *t)
{
    int rc;

    t->element.len = t->taken = 0;
    if (t->next >= t->csv.n) {
        rc = cli_csv_next(&t->csv);
        if (rc <= 0)
            return rc;
        if (t->csv.n != t->columns) /* others have changed the file meanwhile */
            return wrong_fields(&t->csv, t->columns);
        t->next = 0;
    }
    CLI_TRY(parse_element(&t->csv, &t->type, t->next, &t->element));
    t->next += t->type.n;
    return BRC_OK;
}

static int get_table_bytes(void *ctx, void *dst, size_t len, size_t *got)
{
    struct table *t = ctx;

    for (*got = 0; *got < len;) {
        size_t n = t->element.len - t->taken;

        if (n == 0) {
            CLI_TRY(next_element(t));
            n = t->element.len;
        }
        if (n == 0)
            break;
        n = n < len - *got ? n : len - *got;
        memcpy((char *)dst + *got, t->element.data + t->taken, n);
        t->taken += n;
        *got += n;
    }
    return BRC_OK;
}

/* Opens the array that is there with the shape of the table, or makes a new one. */
static int place_table(struct table *t, const char *path, const brc_xfer_opts *opts)
{
    struct cli *cli = t->csv.cli;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    const brc_array_info *info;
    int kind = 0;

    CLI_TRY(brc_node_kind(&kind, cli->session, path, &cli->err));
    if (kind == BRC_ARRAY && opts->flags & BRC_XFER_REPLACE) {
        CLI_TRY(cli_open_array(cli, path));
        info = brc_array_describe(cli->array);
        if (info->ndim == t->ndim && strcmp(info->dtype, t->dtype) == 0)
            return brc_array_resize(cli->array, t->shape, &cli->err);
    }
    if (kind != 0 && opts->flags & BRC_XFER_REPLACE)
        CLI_TRY(brc_node_remove(cli->session, path, &cli->err));
    spec.ndim = t->ndim;
    spec.shape = t->shape;
    spec.dtype = t->dtype;
    if (opts->chunk && opts->nchunk != t->ndim)
        return cli_fail(cli, BRC_EINVAL, "option --chunks: %s has %s, the chunk shape %d",
                        t->csv.name, cli_count(cli, (uint64_t)t->ndim, "dimension"), opts->nchunk);
    spec.chunk = opts->chunk;
    CLI_TRY(cli_codecs_option(cli, t->dtype, &spec.codecs_json));
    brc_array_free(cli->array);
    cli->array = NULL;
    return brc_array_create(&cli->array, cli->session, path, &spec, &cli->err);
}

static int load_table(struct table *t, const char *path, const brc_xfer_opts *opts)
{
    struct cli *cli = t->csv.cli;
    brc_error err = BRC_ERROR_INIT;

    CLI_TRY(place_table(t, path, opts));
    CLI_TRY(row_type_of(cli, brc_array_describe(cli->array)->dtype, &t->type));
    CLI_TRY(cli_csv_rewind(&t->csv));
    if (t->header)
        CLI_TRY(cli_csv_next(&t->csv));
    t->next = t->csv.n; /* the header is read, or nothing is */
    CLI_TRY(cli_called(cli, brc_array_load_stream(cli->array, NULL, get_table_bytes, t, &err),
                       &err));
    if (t->header && !t->type.names)
        return brc_attrs_set(cli->session, path, "columns", t->header, &cli->err);
    return BRC_OK;
}

static int read_table(struct table *t, struct cli *cli, const char *file)
{
    if (cli_has(cli, "dtype")) {
        CLI_TRY(cli_dtype_option(cli, &t->dtype));
        CLI_TRY(row_type_of(cli, t->dtype, &t->type));
    }
    CLI_TRY(cli_csv_open(&t->csv, cli, file));
    CLI_TRY(cli_csv_rewind(&t->csv));
    CLI_TRY(survey_table(t));
    if (!t->dtype)
        CLI_TRY(infer_dtype(t));
    return choose_shape(t);
}

int cli_is_csv(const char *name)
{
    size_t len = strlen(name);

    return len > 4 && strcasecmp(name + len - 4, ".csv") == 0;
}

int cli_import_csv(struct cli *cli, const char *file, const char *path, const brc_xfer_opts *opts)
{
    struct table t = { .type.n = 1, .element = BRC_BUF_INIT, .csv.fd = -1 };
    int rc = read_table(&t, cli, file);

    if (rc >= 0)
        rc = load_table(&t, path, opts);
    cli_csv_close(&t.csv);
    brc_buf_dispose(&t.element);
    brc_array_free(cli->array);
    cli->array = NULL;
    return rc;
}
