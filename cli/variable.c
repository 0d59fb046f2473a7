/*
 * variable.c - an array as a variable.
 */
#include "variable.h"

#include <string.h>

#include "cli.h"

int cli_variable_read(struct cli *cli, brc_session *session, const char *path,
                      struct cli_variable *out)
{
    const brc_json *names, *name;
    brc_buf text = BRC_BUF_INIT;
    int rc, i = 0;

    *out = (struct cli_variable){ .path = path };
    for (int axis = 0; axis < BRC_MAX_NDIM; axis++)
        out->dims[axis] = "";
    rc = brc_node_json(&text, session, path, &cli->err);
    if (rc >= 0)
        rc = brc_json_parse(&out->document, (const char *)text.data, text.len, BRC_JSON_NAN,
                            &cli->err);
    brc_buf_dispose(&text);
    CLI_TRY(rc);
    out->attributes = brc_json_member(out->document, "attributes");
    names = brc_json_member(out->document, "dimension_names");
    if (brc_json_kind(names) != BRC_JSON_ARRAY)
        names = brc_json_member(out->attributes, "_ARRAY_DIMENSIONS");
    if (brc_json_kind(names) != BRC_JSON_ARRAY ||
        brc_json_count(names) != brc_json_count(brc_json_member(out->document, "shape")))
        return BRC_OK;
    for (name = brc_json_first(names); name && i < BRC_MAX_NDIM; name = brc_json_next(name), i++)
        out->named |= brc_json_text(name, &out->dims[i]) && out->dims[i][0];
    return BRC_OK;
}

void cli_variable_free(struct cli_variable *variable)
{
    brc_json_free(variable->document);
    variable->document = NULL;
}

const char *cli_variable_text(const struct cli_variable *variable, const char *name)
{
    const char *text;

    return brc_json_text(brc_json_member(variable->attributes, name), &text) ? text : NULL;
}

int cli_variable_axis(const struct cli_variable *variable, int ndim, const char *name)
{
    for (int i = 0; i < ndim; i++)
        if (variable->dims[i][0] && strcmp(variable->dims[i], name) == 0)
            return i;
    return -1;
}

const char *cli_variable_dims(struct cli *cli, const struct cli_variable *variable, int ndim)
{
    const char *out = "";

    for (int i = 0; i < ndim; i++)
        out = cli_text(cli, "%s%s%s", out, i ? ", " : "",
                       variable->dims[i][0] ? variable->dims[i] : "?");
    return variable->named ? out : NULL;
}

/* Tells whether the node is an array with this dimension alone. */
static int is_coordinate_of(struct cli *cli, brc_session *session, const char *path,
                            const char *dim, int *is)
{
    struct cli_variable variable;
    int kind, rc;

    *is = 0;
    CLI_TRY(brc_node_kind(&kind, session, path, &cli->err));
    if (kind != BRC_ARRAY)
        return BRC_OK;
    rc = cli_variable_read(cli, session, path, &variable);
    if (rc >= 0)
        *is = brc_json_count(brc_json_member(variable.document, "shape")) == 1 &&
              strcmp(variable.dims[0], dim) == 0;
    cli_variable_free(&variable);
    return rc;
}

int cli_coordinate_path(struct cli *cli, brc_session *session, const char *path, const char *dim,
                        const char **out)
{
    size_t len = strlen(path);
    int is = 0;

    *out = NULL;
    if (dim[0] == '\0' || strchr(dim, '/') || strcmp(dim, ".") == 0 || strcmp(dim, "..") == 0)
        return BRC_OK;
    while (len > 0 && !is) {
        while (path[--len] != '/')
            continue;
        *out = cli_text(cli, "%.*s/%s", (int)len, path, dim);
        CLI_TRY(is_coordinate_of(cli, session, *out, dim, &is));
    }
    if (!is)
        *out = NULL;
    return BRC_OK;
}
