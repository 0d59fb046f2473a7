/*
 * cmd_write.c - write, append, resize: the elements of an array.
 */
#include "../cli.h"
#include "commands.h"
#include "print_array.h"

#include <string.h>

static const struct cli_option write_options[] = {
    { "value", 0, 1, "V", "one value for every element of SLICE" },
    { "from", 0, 1, "FILE.npy|-", "read the elements from this file; - is raw standard input" },
    CLI_OPTIONS_END
};

/* ---- write -------------------------------------------------------------------- */

static int write_value(struct cli *cli, const brc_sel *sel, const char *text)
{
    brc_buf element = BRC_BUF_INIT;
    static const char fill[] = "fill value "; /* what the library's message calls an element */
    int rc = brc_element_parse(&element, cli->array, text, &cli->err);

    if (rc < 0 && strncmp(cli->err.message, fill, strlen(fill)) == 0)
        return cli_fail(cli, rc, "option --value: %s",
                        cli_text(cli, "%s", cli->err.message + strlen(fill)));
    if (rc >= 0)
        rc = brc_array_fill(cli->array, sel, element.data, &cli->err);
    brc_buf_dispose(&element);
    return rc;
}

static int run_write(struct cli *cli)
{
    const char *path = cli_path(cli, cli_operand(cli, 1)), *slice = cli_operand(cli, 2);
    const char *value = cli_value(cli, "value"), *from = cli_value(cli, "from");
    brc_sel sel = BRC_SEL_INIT;

    if (!value == !from)
        return cli_usage(cli, "write needs one of --value V, --from FILE.npy or --from -");
    CLI_TRY(cli_open_edit(cli));
    CLI_TRY(cli_open_array(cli, path));
    CLI_TRY(cli_select(cli, slice, &sel));
    if (value)
        CLI_TRY(write_value(cli, &sel, value));
    else if (strcmp(from, "-") == 0)
        CLI_TRY(cli_stream_input(cli, &sel));
    else
        CLI_TRY(brc_array_load_npy(cli->array, &sel, -1, from, &cli->err));
    cli_answer(cli,
               CLI_FIELDS({ "path", CLI_OF(path) }, { "elements", CLI_OF(brc_sel_count(&sel)) }),
               "wrote %s of %s", cli_count(cli, brc_sel_count(&sel), "element"),
               cli_escaped(cli, path));
    return BRC_OK;
}

const struct cli_command cli_command_write = {
    .name = "write",
    .group = "Making and filling",
    .summary = "write elements",
    .usage = "FILE PATH [SLICE] --value V\n"
             "FILE PATH [SLICE] --from FILE.npy\n"
             "FILE PATH [SLICE] --from -",
    .details = "SLICE is the whole array if it is left out. FILE.npy must have the shape of the\n"
               "selection.\n"
               "--from - reads the selected elements in C order, little-endian and without\n"
               "gaps, and takes exactly as many bytes as they have.",
    .examples = "breccia write climate.brc /t2m '[0:10, :, ::2]' --value NaN\n"
                "breccia write climate.brc /t2m '[-1]' --from june.npy\n"
                "dd if=frames.raw bs=1M | breccia write video.brc /frames --from -",
    .options = write_options,
    .min_operands = 2,
    .max_operands = 3,
    .flags = CLI_POOL | CLI_PATH,
    .run = run_write,
};

/* ---- append, resize -------------------------------------------------------------- */

static const struct cli_option append_options[] = {
    { "axis", 0, 1, "N", "the axis that grows (0); -1 is the last one" },
    { "from", 0, 1, "FILE.npy", "read the elements from this file" },
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

static int run_append(struct cli *cli)
{
    const char *path = cli_path(cli, cli_operand(cli, 1)), *from = cli_value(cli, "from");
    const char *text = cli_value(cli, "axis");
    int64_t axis = 0;
    int ndim;

    if (!from)
        return cli_usage(cli, "append needs --from FILE.npy");
    if (text && (!cli_read_i64(&axis, text) || axis < -BRC_MAX_NDIM || axis >= BRC_MAX_NDIM))
        return cli_usage(cli, "option --axis: '%s' is not the number of an axis", text);
    CLI_TRY(cli_open_edit(cli));
    CLI_TRY(cli_open_array(cli, path));
    ndim = brc_array_describe(cli->array)->ndim;
    if (axis >= ndim || axis < -ndim)
        return cli_fail(cli, BRC_EINVAL,
                        "option --axis: %s has no axis %lld; the number of its dimensions is %d",
                        path, (long long)axis, ndim);
    CLI_TRY(brc_array_load_npy(cli->array, NULL, (int)(axis < 0 ? axis + ndim : axis), from,
                               &cli->err));
    print_shape(cli, path);
    return BRC_OK;
}

const struct cli_command cli_command_append = {
    .name = "append",
    .group = "Making and filling",
    .summary = "grow an array and write the new elements",
    .usage = "FILE PATH --axis N --from FILE.npy",
    .details = "FILE.npy must be as long as the array along every other axis.",
    .examples = "breccia append climate.brc /t2m --axis 0 --from july.npy",
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
        return cli_fail(cli, BRC_EINVAL, "option --shape: %s has %d dimensions, not %d", path, has,
                        ndim);
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
    .examples = "breccia resize climate.brc /t2m --shape 240,241,480",
    .options = resize_options,
    .min_operands = 2,
    .max_operands = 2,
    .flags = CLI_POOL | CLI_PATH,
    .run = run_resize,
};
