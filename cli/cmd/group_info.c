/*
 * group_info.c - what a group has, in the manner of `ncdump -h`.
 */
#include "group_info.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../cli.h"
#include "../decode.h"
#include "../variable.h"
#include "new_array.h"

enum { ATTRIBUTE_MOST = 300 }; /* bytes of an attribute that are shown as text */

struct group_array {
    struct cli_variable variable;
    const char *name, *dtype;
    uint64_t shape[BRC_MAX_NDIM];
    int ndim;
};

struct group_dim {
    const char *name;
    uint64_t length;
    const char *others; /* other lengths that it has, and where                */
};

struct group_info {
    struct group_array *arrays;
    size_t narrays, arrays_cap;
    struct group_dim *dims;
    size_t ndims, dims_cap;
    const char **groups;
    size_t ngroups, groups_cap;
};

static void group_info_free(struct group_info *info)
{
    for (size_t i = 0; i < info->narrays; i++)
        cli_variable_free(&info->arrays[i].variable);
    free(info->arrays);
    free(info->dims);
    free(info->groups);
}

/* ---- gathering -------------------------------- */

static void note_dim(struct cli *cli, struct group_info *info, const struct group_array *array,
                    int axis)
{
    const char *name = array->variable.dims[axis];
    uint64_t length = array->shape[axis];
    struct group_dim *dim;

    if (!name[0])
        return;
    for (size_t i = 0; i < info->ndims; i++) {
        dim = &info->dims[i];
        if (strcmp(dim->name, name) != 0)
            continue;
        if (dim->length != length)
            dim->others = cli_text(cli, "%s, but %llu in %s", dim->others ? dim->others : "",
                                   (unsigned long long)length, array->name);
        return;
    }
    info->dims = cli_grow(info->dims, info->ndims, &info->dims_cap, sizeof(*info->dims));
    info->dims[info->ndims++] = (struct group_dim){ .name = name, .length = length };
}

/* Returns the data type for people. */
static const char *dtype_words(struct cli *cli, const brc_json *dtype)
{
    brc_buf text = BRC_BUF_INIT;
    const char *name, *words;

    if (brc_json_text(dtype, &name))
        return cli_dtype_words(cli, cli_text(cli, "%s", name));
    if (brc_json_write(&text, dtype, 0, &cli->err) < 0)
        return "?";
    words = cli_dtype_words(cli, cli_text(cli, "%.*s", (int)text.len, (const char *)text.data));
    brc_buf_dispose(&text);
    return words;
}

static int note_array(struct cli *cli, struct group_info *info, const char *path)
{
    struct group_array *array;
    const brc_json *length;

    info->arrays = cli_grow(info->arrays, info->narrays, &info->arrays_cap, sizeof(*array));
    array = &info->arrays[info->narrays++];
    memset(array, 0, sizeof(*array));
    array->name = cli_text(cli, "%s", strrchr(path, '/') + 1);
    CLI_TRY(cli_variable_read(cli, cli->session, cli_text(cli, "%s", path), &array->variable));
    array->dtype = dtype_words(cli, brc_json_member(array->variable.document, "data_type"));
    length = brc_json_first(brc_json_member(array->variable.document, "shape"));
    for (; length && array->ndim < BRC_MAX_NDIM; length = brc_json_next(length))
        if (!brc_json_uint(length, UINT64_MAX, &array->shape[array->ndim++]))
            return cli_fail(cli, BRC_ECORRUPT, "%s: its shape cannot be read", path);
    return BRC_OK;
}

static int gather_group(struct cli *cli, const char *path, struct group_info *info)
{
    const brc_node *node;
    int rc;

    CLI_TRY(brc_list(&cli->iter, cli->session, path, 0, &cli->err));
    while ((rc = brc_next(cli->iter, &node, &cli->err)) == 1) {
        if (node->kind == BRC_ARRAY) {
            CLI_TRY(note_array(cli, info, node->path));
            continue;
        }
        info->groups = cli_grow(info->groups, info->ngroups, &info->groups_cap,
                                sizeof(*info->groups));
        info->groups[info->ngroups++] = cli_text(cli, "%s", strrchr(node->path, '/') + 1);
    }
    for (size_t i = 0; i < info->narrays; i++) /* coordinates say how long a dimension is */
        if (info->arrays[i].ndim == 1 &&
            strcmp(info->arrays[i].variable.dims[0], info->arrays[i].name) == 0)
            note_dim(cli, info, &info->arrays[i], 0);
    for (size_t i = 0; i < info->narrays; i++)
        for (int axis = 0; axis < info->arrays[i].ndim; axis++)
            note_dim(cli, info, &info->arrays[i], axis);
    return rc;
}

/* ---- text -------------------------------- */

/* Returns the number in _FillValue that xarray wrote as base64, or NULL if the attribute is
 * another one. */
static const char *fill_number(struct cli *cli, const brc_json *attribute)
{
    char number[CLI_DOUBLE_CAP];
    const char *text;
    double real;

    if (strcmp(brc_json_name(attribute), "_FillValue") != 0 || !brc_json_text(attribute, &text) ||
        !cli_base64_double(text, &real))
        return NULL;
    if (isnan(real))
        return "NaN";
    cli_format_double(number, real);
    return cli_text(cli, "%s", number);
}

static int show_attributes(struct cli *cli, const brc_json *attributes, const char *indent)
{
    brc_buf text = BRC_BUF_INIT;
    int rc = BRC_OK;

    for (const brc_json *one = brc_json_first(attributes); one && rc >= 0;
         one = brc_json_next(one)) {
        text.len = 0;
        rc = brc_json_write(&text, one, 0, &cli->err);
        if (rc < 0)
            break;
        const char *number = fill_number(cli, one);
        const size_t most = text.len > ATTRIBUTE_MOST ? ATTRIBUTE_MOST : text.len;
        cli_printf(cli, "%s%s = %s%s\n", indent, cli_escaped(cli, brc_json_name(one)),
                   number ? number : cli_escaped_bytes(cli, (const char *)text.data, most),
                   most < text.len ? " ..." : "");
    }
    brc_buf_dispose(&text);
    return rc;
}

/* Returns "time, lat", with the length in place of a name that is not there. */
static const char *axes_text(struct cli *cli, const struct group_array *array)
{
    const char *out = "";

    for (int i = 0; i < array->ndim; i++)
        out = array->variable.dims[i][0]
                  ? cli_text(cli, "%s%s%s", out, i ? ", " : "",
                             cli_escaped(cli, array->variable.dims[i]))
                  : cli_text(cli, "%s%s%llu", out, i ? ", " : "",
                             (unsigned long long)array->shape[i]);
    return out;
}

static void put_heading(struct cli *cli, const char *text)
{
    cli_color(cli, CLI_DIM);
    cli_puts(cli, text);
    cli_color_end(cli);
    cli_puts(cli, "\n");
}

static int put_group_text(struct cli *cli, const struct group_info *info,
                          const brc_json *attributes)
{
    if (info->ndims > 0)
        put_heading(cli, "dimensions:");
    for (size_t i = 0; i < info->ndims; i++)
        cli_printf(cli, "    %s = %llu%s\n", cli_escaped(cli, info->dims[i].name),
                   (unsigned long long)info->dims[i].length,
                   info->dims[i].others ? cli_escaped(cli, info->dims[i].others) : "");
    if (info->narrays > 0)
        put_heading(cli, "variables:");
    for (size_t i = 0; i < info->narrays; i++) {
        const struct group_array *array = &info->arrays[i];

        cli_printf(cli, "    %s %s(%s)\n", cli_escaped(cli, array->dtype),
                   cli_escaped(cli, array->name), axes_text(cli, array));
        CLI_TRY(show_attributes(cli, array->variable.attributes, "        "));
        CLI_TRY(cli_out_check(cli));
    }
    if (info->ngroups > 0)
        put_heading(cli, "groups:");
    for (size_t i = 0; i < info->ngroups; i++)
        cli_printf(cli, "    %s/\n", cli_escaped(cli, info->groups[i]));
    if (brc_json_count(attributes) > 0)
        put_heading(cli, "attributes:");
    return show_attributes(cli, attributes, "    ");
}

/* ---- JSON -------------------------------- */

static int put_array_record(struct cli *cli, const struct group_array *array)
{
    const char *units = cli_variable_text(&array->variable, "units");
    brc_buf dtype = BRC_BUF_INIT, attributes = BRC_BUF_INIT;
    int rc = brc_json_write(&dtype, brc_json_member(array->variable.document, "data_type"), 0,
                            &cli->err);

    if (rc >= 0 && array->variable.attributes)
        rc = brc_json_write(&attributes, array->variable.attributes, 0, &cli->err);
    if (rc >= 0) {
        cli_json_open(cli, '{');
        cli_put_members(cli, CLI_FIELDS({ "name", CLI_OF(array->name) }));
        cli_json_key(cli, "data_type");
        cli_json_raw(cli, (const char *)dtype.data, dtype.len);
        cli_json_key(cli, "dimensions");
        cli_json_open_line(cli, '[');
        for (int i = 0; i < array->ndim; i++)
            if (array->variable.dims[i][0])
                cli_json_string(cli, array->variable.dims[i]);
            else
                cli_json_raw(cli, "null", 4);
        cli_json_close(cli, '[');
        cli_put_members(cli, CLI_FIELDS({ "shape", CLI_DIMS_OF(array->shape, array->ndim) },
                                        { "units", CLI_OF(units), .optional = 1 }));
        cli_json_key(cli, "attributes");
        cli_json_raw(cli, attributes.len ? (const char *)attributes.data : "{}",
                     attributes.len ? attributes.len : 2);
        cli_json_close(cli, '{');
    }
    brc_buf_dispose(&dtype);
    brc_buf_dispose(&attributes);
    return rc;
}

static int put_group_json(struct cli *cli, const struct group_info *info)
{
    struct cli_texts groups = { info->groups, info->ngroups };

    cli_begin(cli, "dimensions", '{');
    for (size_t i = 0; i < info->ndims; i++) {
        cli_json_key(cli, info->dims[i].name);
        cli_json_uint(cli, info->dims[i].length);
    }
    cli_finish(cli, '{');
    cli_begin(cli, "variables", '[');
    for (size_t i = 0; i < info->narrays; i++)
        CLI_TRY(put_array_record(cli, &info->arrays[i]));
    cli_finish(cli, '[');
    cli_put_members(cli, CLI_FIELDS({ "groups", CLI_OF(groups) }));
    return BRC_OK;
}

int print_group_info(struct cli *cli, const char *path, const char *json)
{
    struct group_info info = { .arrays = NULL };
    brc_json *document = NULL;
    int rc = brc_json_parse(&document, json, strlen(json), BRC_JSON_NAN, &cli->err);

    if (rc >= 0)
        rc = gather_group(cli, path, &info);
    if (rc >= 0)
        rc = cli->json ? put_group_json(cli, &info)
                       : put_group_text(cli, &info, brc_json_member(document, "attributes"));
    brc_json_free(document);
    group_info_free(&info);
    return rc;
}
