/*
 * cmd_write.c - write, append, resize: the elements of an array.
 */
#include "../cli.h"
#include "../variable.h"
#include "append_group.h"
#include "commands.h"
#include "print_array.h"
#include "table_in.h"
#include "write_decoded.h"

#include <string.h>

static const struct cli_option write_options[] = {
    { "value", 0, 1, "V", "one value for every element of SLICE" },
    { "from", 0, 1, "FILE.npy|-", "read the elements from this file; - is raw standard input" },
    { "csv", 0, 1, "FILE.csv|-", "write the values of rows \"coordinate,...,value\"" },
    { "decode", 0, 0, NULL, "store what values mean: times, scale_factor, missing values (CF)" },
    CLI_OPTIONS_END
};

/* ---- write -------------------------------------------------------------------- */

static int write_value(struct cli *cli, const brc_sel *sel, const char *text)
{
    brc_buf element = BRC_BUF_INIT;
    const void *encoded;
    static const char fill[] = "fill value "; /* what the library's message calls an element */
    int rc;

    if (cli_has(cli, "decode")) {
        CLI_TRY(cli_encoded_element(cli, text, &encoded));
        return brc_array_fill(cli->array, sel, encoded, &cli->err);
    }
    rc = brc_element_parse(&element, cli->array, text, &cli->err);
    if (rc < 0 && cli_plain_number(cli, text) != text)
        rc = brc_element_parse(&element, cli->array, cli_plain_number(cli, text), &cli->err);
    if (rc < 0 && strncmp(cli->err.message, fill, strlen(fill)) == 0)
        return cli_fail(cli, rc, "option --value: %s",
                        cli_text(cli, "%s", cli->err.message + strlen(fill)));
    if (rc >= 0)
        rc = brc_array_fill(cli->array, sel, element.data, &cli->err);
    brc_buf_dispose(&element);
    return rc;
}

/* Writes the value to each of the n selections: to all, or to none. */
static int write_value_to_all(struct cli *cli, const brc_sel *sels, size_t n, const char *value)
{
    int rc = BRC_OK;

    if (n == 1)
        return write_value(cli, sels, value);
    CLI_TRY(brc_bulk_begin(cli->session, &cli->err));
    for (size_t i = 0; i < n && rc >= 0; i++)
        rc = write_value(cli, &sels[i], value);
    return cli_end_bulk(cli, rc);
}

/* Reads the operands SLICE ..., of which `first` is the first, or NULL for the whole array. */
static int read_slices(struct cli *cli, const char *first, brc_sel **out, size_t *n)
{
    size_t given = cli->args.noperands - 2;

    *n = given ? given : 1;
    *out = cli_alloc(cli, *n, sizeof(**out));
    for (size_t i = 0; i < *n; i++) {
        (*out)[i] = (brc_sel)BRC_SEL_INIT;
        CLI_TRY(cli_select(cli, i ? cli_operand(cli, i + 2) : first, &(*out)[i]));
    }
    return BRC_OK;
}

static void say_written(struct cli *cli, const char *path, uint64_t written)
{
    cli_answer(cli, CLI_FIELDS({ "path", CLI_OF(path) }, { "elements", CLI_OF(written) }),
               "wrote %s of %s", cli_count(cli, written, "element"), cli_escaped(cli, path));
}

/* Writes the elements that the rows of --csv name. */
static int write_rows(struct cli *cli, const char *path, const char *file)
{
    uint64_t written;

    if (cli->args.noperands > 2)
        return cli_usage(cli, "--csv takes no SLICE: each row has coordinates");
    CLI_TRY(cli_open_edit(cli));
    CLI_TRY(cli_open_array(cli, path));
    CLI_TRY(cli_write_points(cli, file, &written));
    say_written(cli, path, written);
    return BRC_OK;
}

static int run_write(struct cli *cli)
{
    const char *path = cli_path(cli, cli_operand(cli, 1)), *slice = cli_operand(cli, 2);
    const char *value = cli_value(cli, "value"), *from = cli_value(cli, "from");
    const char *csv = cli_value(cli, "csv");
    uint64_t written = 0;
    brc_sel *sels;
    size_t n;

    if (!!value + !!from + !!csv != 1)
        return cli_usage(cli, "write needs one of --value V, --from FILE.npy, --from - or --csv "
                              "FILE.csv");
    if (csv)
        return write_rows(cli, path, csv);
    if (cli_nth_value(cli, "value", 1))
        return cli_usage(cli, "--value is there twice: all slices of one write get one value");
    if (from && cli->args.noperands > 3)
        return cli_usage(cli, "--from needs one SLICE; --value takes several");
    CLI_TRY(cli_open_edit(cli));
    CLI_TRY(cli_open_sliced(cli, &path, &slice));
    CLI_TRY(read_slices(cli, slice, &sels, &n));
    if (value)
        CLI_TRY(write_value_to_all(cli, sels, n, value));
    else if (cli_has(cli, "decode"))
        CLI_TRY(cli_load_decoded(cli, sels, from));
    else if (strcmp(from, "-") == 0)
        CLI_TRY(cli_stream_input(cli, sels));
    else
        CLI_TRY(brc_array_load_npy(cli->array, sels, -1, from, &cli->err));
    for (size_t i = 0; i < n; i++)
        written += brc_sel_count(&sels[i]);
    if (!cli_has(cli, "decode"))
        CLI_TRY(cli_note_packed(cli));
    say_written(cli, path, written);
    return BRC_OK;
}

const struct cli_command cli_command_write = {
    .name = "write",
    .group = "Making and filling",
    .summary = "write elements",
    .usage = "FILE PATH [SLICE ...] --value V [--decode]\n"
             "FILE PATH [SLICE] --from FILE.npy [--decode]\n"
             "FILE PATH [SLICE] --from - [--decode]\n"
             "FILE PATH --csv FILE.csv|- [--decode]",
    .details = "SLICE is the whole array if it is left out. Several slices get the value all, or\n"
               "none. FILE.npy must have the shape of the selection.\n"
               "--from - reads the selected elements in C order, little-endian and without\n"
               "gaps, and takes exactly as many bytes as they have.\n"
               "Each row of FILE.csv is the coordinates of an element and its value, as V; of a\n"
               "struct, a value for each field. A first row of names is a header: names of\n"
               "dimensions may stand in any order. All rows are written, or none; of two rows\n"
               "for one element the later counts.\n"
               "--decode is the reverse of read --decode: a date such as 2020-05-01T12:00, or\n"
               "datetime64 of a .npy file, becomes a number in the units of the array, numbers\n"
               "are packed by scale_factor and add_offset, and nan, or an empty field of\n"
               "FILE.csv, becomes _FillValue. With --from -, the elements are as read --decode\n"
               "--format raw writes them.",
    .examples = "breccia write climate.brc /t2m '[0:10, :, ::2]' --value NaN\n"
                "breccia write climate.brc /t2m '[3]' '[5, 0]' --value 280\n"
                "breccia write climate.brc /t2m '[-1]' --from june.npy\n"
                "breccia write climate.brc /t2m --csv fixes.csv\n"
                "breccia write climate.brc /era5/t '[time=0]' --value 281.4 --decode\n"
                "dd if=frames.raw bs=1M | breccia write video.brc /frames --from -",
    .options = write_options,
    .min_operands = 2,
    .max_operands = SIZE_MAX,
    .flags = CLI_POOL | CLI_PATH,
    .run = run_write,
};

/* ---- append, resize -------------------------------------------------------------- */

static const struct cli_option append_options[] = {
    { "axis", 0, 1, "N|NAME", "the axis that grows (0); -1 is the last one" },
    { "from", 0, 1, "FILE|-", "read the elements from this file; - is raw standard input" },
    { "value", 0, 1, "V", "one value for every new element" },
    { "count", 0, 1, "N", "with --value: by how much the axis grows (1)" },
    CLI_OPTIONS_END
};

static void print_shape(struct cli *cli, const char *path)
{
    const brc_array_info *info = brc_array_describe(cli->array);

    cli_answer(cli,
               CLI_FIELDS({ "path", CLI_OF(path) },
                          { "shape", CLI_DIMS_OF(info->shape, info->ndim) }),
               "%s has shape (%s)", cli_escaped(cli, path),
               cli_dims_text(cli, info->shape, info->ndim));
}

/* Sets *axis to the number of the dimension of that name. */
static int axis_named(struct cli *cli, const char *path, const char *name, int *axis)
{
    struct cli_variable variable;
    int rc = cli_variable_read(cli, cli->session, path, &variable);

    *axis = cli_variable_axis(&variable, brc_array_describe(cli->array)->ndim, name);
    cli_variable_free(&variable);
    if (rc >= 0 && *axis < 0)
        return cli_fail(cli, BRC_ENOTFOUND, "option --axis: %s has no dimension '%s'", path, name);
    return rc;
}

/* Reads --axis, a number or the name of a dimension. */
static int axis_option(struct cli *cli, const char *path, int *axis)
{
    const char *text = cli_value(cli, "axis");
    int ndim = brc_array_describe(cli->array)->ndim;
    int64_t number = 0;

    if (text && !cli_read_i64(&number, text))
        return axis_named(cli, path, text, axis);
    if (number >= ndim || number < -ndim)
        return cli_fail(cli, BRC_EINVAL, "option --axis: %s has no axis %lld; it has %s", path,
                        (long long)number, cli_count(cli, (uint64_t)ndim, "dimension"));
    *axis = (int)(number < 0 ? number + ndim : number);
    return BRC_OK;
}

/* Grows the axis by `count`, and writes the value to the new elements. */
static int append_value(struct cli *cli, int axis, uint64_t count, const char *value)
{
    const brc_array_info *info = brc_array_describe(cli->array);
    uint64_t shape[BRC_MAX_NDIM], before = info->shape[axis];
    brc_sel sel = BRC_SEL_INIT;

    memcpy(shape, info->shape, (size_t)info->ndim * sizeof(shape[0]));
    if (__builtin_add_overflow(before, count, &shape[axis]))
        return cli_fail(cli, BRC_ELIMIT, "option --count: the array would be too long");
    CLI_TRY(brc_array_resize(cli->array, shape, &cli->err));
    CLI_TRY(cli_select(cli, NULL, &sel));
    sel.start[axis] = before;
    sel.count[axis] = count;
    return write_value(cli, &sel, value);
}

static int append_elements(struct cli *cli, int axis, const char *from, const char *value)
{
    uint64_t count = 1;
    int rc;

    if (from && strcmp(from, "-") == 0)
        return cli_append_input(cli, axis);
    if (from)
        return brc_array_load_npy(cli->array, NULL, axis, from, &cli->err);
    CLI_TRY(cli_uint_option(cli, "count", 0, INT64_MAX, &count));
    CLI_TRY(brc_bulk_begin(cli->session, &cli->err)); /* both, or neither */
    rc = append_value(cli, axis, count, value);
    return cli_end_bulk(cli, rc);
}

static int append_to_group(struct cli *cli, const char *path, const char *from)
{
    const char *axis = cli_value(cli, "axis");
    int64_t number;

    if (!from || strcmp(from, "-") == 0)
        return cli_usage(cli, "%s is a group, which needs --from FILE", path);
    if (!axis || cli_read_i64(&number, axis))
        return cli_usage(cli, "%s is a group, which needs the name of a dimension: --axis NAME",
                         path);
    return cli_append_group(cli, path, axis, from);
}

static int run_append(struct cli *cli)
{
    const char *path = cli_path(cli, cli_operand(cli, 1));
    const char *from = cli_value(cli, "from"), *value = cli_value(cli, "value");
    int axis = 0, kind;

    if (!from == !value)
        return cli_usage(cli, "append needs one of --from FILE.npy, --from - or --value V");
    if (cli_has(cli, "count") && !value)
        return cli_usage(cli, "--count goes with --value");
    CLI_TRY(cli_open_edit(cli));
    CLI_TRY(brc_node_kind(&kind, cli->session, path, &cli->err));
    if (kind == BRC_GROUP)
        return append_to_group(cli, path, from);
    CLI_TRY(cli_open_array(cli, path));
    CLI_TRY(axis_option(cli, path, &axis));
    CLI_TRY(append_elements(cli, axis, from, value));
    print_shape(cli, path);
    return BRC_OK;
}

const struct cli_command cli_command_append = {
    .name = "append",
    .group = "Making and filling",
    .summary = "grow an array, or the arrays of a group, by new elements",
    .usage = "FILE PATH [--axis N|NAME] --from FILE.npy\n"
             "FILE PATH [--axis N|NAME] --from -\n"
             "FILE PATH [--axis N|NAME] --value V [--count N]\n"
             "FILE GROUP --axis NAME --from next.nc",
    .details = "FILE.npy must be as long as the array along every other axis. --from - reads\n"
               "elements in C order, little-endian and without gaps, to the end of the input,\n"
               "which must fill whole steps of the axis.\n"
               "Of a GROUP, every array that has the dimension NAME grows by what the array of\n"
               "that name has in the file, which is whatever 'import' reads, or a repository:\n"
               "all grow, or none. What does not fit is refused: a missing array, another data\n"
               "type, other lengths or coordinates, other units or packing. Only times may count\n"
               "from another date, or in other units: they become times in those of the array.",
    .examples = "breccia append climate.brc /t2m --axis 0 --from july.npy\n"
                "breccia append climate.brc /era5/t --axis time --value NaN --count 2\n"
                "breccia append climate.brc /era5 --axis time --from next.zarr",
    .options = append_options,
    .min_operands = 2,
    .max_operands = 2,
    .flags = CLI_POOL | CLI_PATH,
    .run = run_append,
};

static const struct cli_option resize_options[] = {
    { "shape", 0, 1, "N,N,...", "the new extent of each dimension" },
    CLI_OPTIONS_END
};

static int run_resize(struct cli *cli)
{
    const char *path = cli_path(cli, cli_operand(cli, 1));
    uint64_t shape[BRC_MAX_NDIM];
    int ndim, has;

    if (!cli_has(cli, "shape"))
        return cli_usage(cli, "resize needs --shape N,N,...");
    CLI_TRY(cli_dims_option(cli, "shape", shape, &ndim));
    CLI_TRY(cli_open_edit(cli));
    CLI_TRY(cli_open_array(cli, path));
    has = brc_array_describe(cli->array)->ndim;
    if (ndim != has)
        return cli_fail(cli, BRC_EINVAL, "option --shape: %s has %s, not %d", path,
                        cli_count(cli, (uint64_t)has, "dimension"), ndim);
    CLI_TRY(brc_array_resize(cli->array, shape, &cli->err));
    print_shape(cli, path);
    return BRC_OK;
}

const struct cli_command cli_command_resize = {
    .name = "resize",
    .group = "Making and filling",
    .summary = "change an array's shape",
    .usage = "FILE PATH --shape N,N,...",
    .details = "Elements that are cut off are lost: growing the array again shows the fill\n"
               "value.",
    .examples = "breccia resize climate.brc /t2m --shape 240,241,480\n"
                "breccia resize climate.brc /era5/t --shape 8,6",
    .options = resize_options,
    .min_operands = 2,
    .max_operands = 2,
    .flags = CLI_POOL | CLI_PATH,
    .run = run_resize,
};
