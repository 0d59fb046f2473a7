/*
 * table_out.c - arrays as CSV: rows, and tables with a header.
 */
#include "table_out.h"

#include <string.h>
#include <sys/stat.h>

#include "../cli.h"
#include "../decode.h"
#include "../scalar.h"
#include "print_array.h"

/* ==== a row for each element ================================ */

struct rows {
    struct cli *cli;
    const brc_array_info *info;
    const brc_sel *sel;
    int coordinates;              /* columns before the values, one for each axis */
    int is_struct;
    uint64_t index[BRC_MAX_NDIM]; /* of the next element in the selection    */
    uint64_t next;
    brc_buf text;
};

static void put_coordinates(const struct rows *r)
{
    for (int i = 0; i < r->info->ndim; i++)
        cli_printf(r->cli, "%llu,",
                   (unsigned long long)(r->sel->start[i] + r->index[i] * r->sel->step[i]));
}

static void step_coordinates(struct rows *r)
{
    for (int i = r->info->ndim - 1; i >= 0; i--) {
        if (++r->index[i] < r->sel->count[i])
            return;
        r->index[i] = 0;
    }
}

/* Writes the value of a field of a struct. */
static int put_field_value(struct cli *cli, const brc_json *value)
{
    brc_buf json = BRC_BUF_INIT;
    const char *text;
    int rc = BRC_OK;

    if (brc_json_text(value, &text)) {
        cli_put_csv_field(cli, text, strlen(text));
    } else {
        rc = brc_json_write(&json, value, 0, &cli->err);
        if (rc >= 0)
            cli_put_csv_field(cli, (const char *)json.data, json.len);
    }
    brc_buf_dispose(&json);
    return rc;
}

static int put_struct(struct rows *r)
{
    struct cli *cli = r->cli;
    brc_json *element;
    int rc = BRC_OK;

    CLI_TRY(brc_json_parse(&element, (const char *)r->text.data, r->text.len, 0, &cli->err));
    for (const brc_json *f = brc_json_first(element); f && rc >= 0; f = brc_json_next(f)) {
        if (f != brc_json_first(element))
            cli_puts(cli, ",");
        rc = put_field_value(cli, f);
    }
    brc_json_free(element);
    return rc;
}

static int put_decoded(struct rows *r, const uint8_t *element)
{
    struct cli *cli = r->cli;
    char text[CLI_MOMENT_CAP];

    CLI_TRY(cli_decode_text(cli, cli->decoder, element, BRC_ELEMENT_TEXT, text));
    put_coordinates(r);
    cli_put_csv_field(cli, text, strlen(text));
    cli_puts(cli, "\n");
    step_coordinates(r);
    return BRC_OK;
}

static int put_row_of(struct rows *r, const uint8_t *element)
{
    struct cli *cli = r->cli;

    if (cli->decoder) /* a table of decoded elements has coordinates */
        return put_decoded(r, element);
    r->text.len = 0;
    CLI_TRY(brc_element_format(&r->text, cli->array, element,
                               r->is_struct ? BRC_ELEMENT_DATED : BRC_ELEMENT_TEXT, &cli->err));
    if (r->coordinates)
        put_coordinates(r);
    if (r->is_struct)
        CLI_TRY(put_struct(r));
    else if (r->text.len > 0 || r->coordinates)
        cli_put_csv_field(cli, (const char *)r->text.data, r->text.len);
    else
        cli_puts(cli, "\"\""); /* readers pass over empty lines */
    cli_puts(cli, "\n");
    step_coordinates(r);
    return BRC_OK;
}

static int put_rows_of_run(void *ctx, const void *data, size_t len)
{
    enum { LOOKED_EVERY = 1024 };
    struct rows *r = ctx;
    const uint8_t *at = data, *end = at + len;

    for (; at < end; at += cli_element_len(r->info, at)) {
        if (r->next++ % LOOKED_EVERY == 0)
            CLI_TRY(cli_out_check(r->cli));
        CLI_TRY(put_row_of(r, at));
    }
    return cli_out_check(r->cli);
}

/* ---- the header -------------------------------- */

static void put_names(struct cli *cli, const brc_json *list, const char *member)
{
    for (const brc_json *one = brc_json_first(list); one; one = brc_json_next(one)) {
        const char *name = "";

        if (!brc_json_text(member ? brc_json_member(one, member) : one, &name))
            name = "";
        if (one != brc_json_first(list))
            cli_puts(cli, ",");
        cli_put_csv_field(cli, name, strlen(name));
    }
}

/* Writes the names of the axes: "axis0" for one without a name. */
static void put_axis_names(struct rows *r, const brc_json *document)
{
    const brc_json *names = brc_json_member(document, "dimension_names");

    for (int i = 0; i < r->info->ndim; i++) {
        const char *name;

        if (!brc_json_text(brc_json_item(names, (size_t)i), &name))
            name = cli_text(r->cli, "axis%d", i);
        cli_put_csv_field(r->cli, name, strlen(name));
        cli_puts(r->cli, ",");
    }
}

static const brc_json *struct_fields(const brc_json *document)
{
    return brc_json_member(brc_json_member(brc_json_member(document, "data_type"),
                                           "configuration"), "fields");
}

/* Writes the header. `columns` is the name of the value, or NULL. */
static void put_table_header(struct rows *r, const brc_json *document, const brc_json *columns)
{
    const brc_json *fields = struct_fields(document);

    if (r->coordinates)
        put_axis_names(r, document);
    if (fields)
        put_names(r->cli, fields, "name");
    else if (columns)
        put_names(r->cli, columns, NULL);
    else
        cli_puts(r->cli, "value");
    cli_puts(r->cli, "\n");
}

static int put_table_rows(struct rows *r)
{
    brc_error err = BRC_ERROR_INIT;
    int rc = brc_array_stream(r->cli->array, r->sel, 0, put_rows_of_run, r, &err);

    brc_buf_dispose(&r->text);
    return cli_called(r->cli, rc, &err);
}

/* ==== what an array becomes ================================ */

/* Returns the attribute "columns" if it is a name for each column of the whole array. */
static const brc_json *fitting_columns(const brc_json *document, const brc_array_info *info)
{
    const brc_json *columns = brc_json_member(brc_json_member(document, "attributes"), "columns");
    const char *name;

    if (brc_json_kind(columns) != BRC_JSON_ARRAY || info->ndim < 1 || info->ndim > 2 ||
        brc_json_count(columns) != (info->ndim == 2 ? info->shape[1] : 1))
        return NULL;
    for (const brc_json *one = brc_json_first(columns); one; one = brc_json_next(one))
        if (!brc_json_text(one, &name))
            return NULL;
    return columns;
}

static int put_with(struct cli *cli, const brc_sel *sel, const brc_json *document, int has_columns)
{
    const brc_array_info *info = brc_array_describe(cli->array);
    const brc_json *columns = has_columns ? fitting_columns(document, info) : NULL;
    struct rows r = { .cli = cli, .info = info, .sel = sel, .text = BRC_BUF_INIT,
                      .is_struct = struct_fields(document) != NULL };

    r.coordinates = cli_has(cli, "coordinates") || (r.is_struct && info->ndim > 1);
    if (r.is_struct || r.coordinates || (columns && info->ndim == 1)) {
        put_table_header(&r, document, columns);
        return brc_sel_count(sel) > 0 ? put_table_rows(&r) : BRC_OK;
    }
    if (columns) {
        put_names(cli, columns, NULL);
        cli_puts(cli, "\n");
    }
    return cli_stream_csv(cli, sel);
}

static int put_csv(struct cli *cli, const brc_sel *sel, int has_columns)
{
    const char *path = brc_array_describe(cli->array)->path;
    brc_json *document = NULL;
    brc_buf text = BRC_BUF_INIT;
    int rc = brc_node_json(&text, cli->session, path, &cli->err);

    if (rc >= 0)
        rc = brc_json_parse(&document, (const char *)text.data, text.len, BRC_JSON_NAN, &cli->err);
    if (rc >= 0)
        rc = put_with(cli, sel, document, has_columns);
    brc_json_free(document);
    brc_buf_dispose(&text);
    return rc;
}

int cli_put_csv(struct cli *cli, const brc_sel *sel)
{
    return put_csv(cli, sel, 0);
}

static int put_whole_csv(struct cli *cli, const void *ctx)
{
    return put_csv(cli, ctx, 1);
}

int cli_export_csv(struct cli *cli, const char *dest)
{
    const brc_array_info *info = brc_array_describe(cli->array);
    brc_sel all = BRC_SEL_INIT;
    struct stat status;
    int rc;

    if (!(info->flags & BRC_ARRAY_READABLE))
        return cli_fail(cli, BRC_EUNSUPPORTED, "%s cannot be read: %s", info->path, info->why);
    if (lstat(dest, &status) == 0 && (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)))
        return cli_fail(cli, BRC_EEXISTS, "%s already exists: remove it or choose another name",
                        dest);
    CLI_TRY(cli_select(cli, NULL, &all));
    cli_progress_total(cli, &all);
    rc = cli_to_file(cli, dest, put_whole_csv, &all);
    brc_progress_end(cli->repo, rc);
    return rc;
}
