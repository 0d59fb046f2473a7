/* What a driver asks of the run that it is in. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../base/node_path.h"
#include "../../base/pattern.h"
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

const char *brc_convert_plugins(const brc_convert *c)
{
    return c->plugins ? c->plugins : "";
}

int brc_convert_real_path(char **out, const brc_convert *c, brc_error *err)
{
    brc_buf path = BRC_BUF_INIT;
    int rc;
    if (!*c->door.real)
        return brc_dup(out, c->file, err);
    BRC_GO(brc_buf_text(&path, c->door.real, err));
    BRC_GO(brc_buf_text(&path, c->door.file + strlen(c->door.folder), err));
    rc = brc_buf_take_text(&path, out, err);
done:
    brc_buf_dispose(&path);
    return rc;
}

int brc_convert_reach(const brc_convert *c, const char *path, uint64_t *size)
{
    struct stat st;
    int fd = c->has_door ? brc_door_ask(path, O_RDONLY) : brc_door_open(&c->door, path);
    if (fd < 0)
        return fd;
    int code = fstat(fd, &st) < 0 ? -errno : 0;
    *size = code == 0 ? (uint64_t)st.st_size : 0;
    close(fd);
    return code;
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

int brc_convert_node_path(char **out, const brc_convert *c, const char *path, const char *name,
                          brc_error *err)
{
    brc_buf own = BRC_BUF_INIT;
    int rc;
    *out = NULL;
    BRC_GO(brc_name_escape(&own, name, strlen(name), c->names, err));
    BRC_GO(brc_buf_terminate(&own, err));
    rc = brc_node_join(out, path, (const char *)own.data, err);
done:
    brc_buf_dispose(&own);
    return rc;
}

int brc_convert_place_check(const char *label, const char *node, brc_error *err)
{
    size_t names = 0;
    for (const char *at = node; *at; at++)
        names += *at == '/';
    if (names > BRC_DEPTH_MAX)
        return brc_part_refuse(err, BRC_PART_SIZE, NULL, "%.200s is more than %d names deep", label,
                               BRC_DEPTH_MAX);
    if (strlen(node) > BRC_PATH_MAX)
        return brc_part_refuse(err, BRC_PART_SIZE, NULL,
                               "the path %.200s... has more than %d bytes", label, BRC_PATH_MAX);
    return BRC_OK;
}

const char *brc_convert_path(const brc_convert *c, const char *label)
{
    return label + strlen(c->file) + strlen(": ");
}

/* ---- what stays out ------------------------------------------------------------------ */

/* Said once, however much of the file it meets. */
static int meet_exclude(brc_convert *c, size_t i)
{
    if (!c->excluded[i])
        (void)fprintf(stderr, BRC_SAYS_EXCLUDED "%zu\n", i);
    c->excluded[i] = 1;
    return 1;
}

int brc_convert_is_excluded(brc_convert *c, const char *path)
{
    int is = c->phase == BRC_CONVERT_CHUNKS && brc_parts_have(&c->parts, path);
    for (size_t i = 0; i < c->nexclude; i++)
        if (brc_pattern_has_node(c->exclude[i], path, strlen(path)))
            is = meet_exclude(c, i);
    return is;
}

int brc_convert_lacks_attribute(brc_convert *c, const char *path, const char *name)
{
    int does = 0;
    for (size_t i = 0; i < c->nexclude; i++)
        if (brc_pattern_has_attribute(c->exclude[i], path, strlen(path), name))
            does = meet_exclude(c, i);
    return does;
}

/* ---- what cannot be kept ------------------------------------------------------------- */

static void say_part(const brc_convert *c, size_t listed)
{
    const brc_parts *parts = &c->parts;
    if (parts->listed > listed)
        (void)fprintf(stderr, BRC_SAYS_LEFT_OUT "%.*s\n", (int)(parts->json.len - parts->last),
                      (const char *)parts->json.data + parts->last);
}

void brc_convert_tell_more(const brc_convert *c)
{
    if (c->parts.n > c->parts.listed)
        (void)fprintf(stderr, BRC_SAYS_LEFT_OUT "%llu\n",
                      (unsigned long long)(c->parts.n - c->parts.listed));
}

/* In the second round attributes fail as in the first, and a node whose document is written cannot
 * be taken back: then it is too late, unless the import comes to nothing anyway. */
int brc_convert_settle(brc_convert *c, int rc, const char *path, const char *attribute,
                       brc_error *err)
{
    size_t listed = c->parts.listed;
    int is_late = c->phase == BRC_CONVERT_CHUNKS;

    if (rc != BRC_EUNSUPPORTED || (is_late && !attribute && c->skips))
        return rc;
    if (!is_late || !attribute)
        BRC_TRY(brc_parts_add(&c->parts, path, attribute, err, err));
    say_part(c, listed);
    return 1;
}

size_t brc_convert_nodes(const brc_convert *c)
{
    return c->nnodes;
}

const brc_node_out *brc_convert_node(const brc_convert *c, size_t i)
{
    return &c->nodes[i];
}
