/* What a driver asks of the run that it is in. */
#include <stdio.h>
#include <string.h>

#include "../../base/node_path.h"
#include "../../xfer/foreign/protocol.h"
#include "convert_run.h"

const brc_registry *brc_convert_registry(const brc_convert *c)
{
    return c->registry;
}

const char *brc_convert_file(const brc_convert *c)
{
    return c->file;
}

int brc_convert_phase(const brc_convert *c)
{
    return c->phase;
}

int brc_convert_is_netcdf(brc_convert *c, brc_error *err)
{
    c->is_netcdf = 1;
    return brc_fail(err, BRC_EUNSUPPORTED, "%s was written as NetCDF-4", c->file);
}

int brc_convert_name_check(const char *label, const char *name, brc_error *err)
{
    int rc = brc_name_check(name, strlen(name), err);
    if (rc < 0)
        brc_context(err, "%s", label);
    return rc;
}

int brc_convert_is_excluded(const brc_convert *c, const char *path)
{
    path += strspn(path, "/");
    for (size_t i = 0; i < c->nexclude; i++)
        if (brc_path_is_same(path, strlen(path), c->exclude[i])) {
            if (c->phase == BRC_CONVERT_DOCS)
                (void)fprintf(stderr, BRC_SAYS_EXCLUDED "%s\n", path);
            return 1;
        }
    return 0;
}

size_t brc_convert_nodes(const brc_convert *c)
{
    return c->nnodes;
}

const brc_node_out *brc_convert_node(const brc_convert *c, size_t i)
{
    return &c->nodes[i];
}
