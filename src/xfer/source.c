/* A file is known by its first bytes and a directory by what is in it; names only help to
 * name the node. */
#include "source.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/file.h"
#include "../base/json.h"
#include "xfer.h"

int brc_source_look(brc_source *out, const char *name, brc_error *err)
{
    brc_input *in = NULL;
    const uint8_t *head;
    int rc;

    memset(out, 0, sizeof(*out));
    out->name = name;
    int kind = brc_file_kind(name);
    if (kind == 0)
        return brc_fail(err, BRC_ENOTFOUND, "%s: there is no such file or directory", name);
    out->is_dir = kind == 1;
    if (out->is_dir)
        return BRC_OK;
    BRC_GO(brc_input_open(&in, name, err));
    BRC_GO(brc_input_peek(in, &head, &out->head_len, err));
    memcpy(out->head, head, out->head_len);
    out->is_gzip = in->size == BRC_LEN_VARIES;
done:
    brc_input_free(in);
    return rc;
}

/* ---- the node's name -------------------------------- */

/* The length without what the format puts at the end of its files' names. */
static size_t stem_of(const brc_format *f, const char *name, size_t len)
{
    for (const char *const *ending = f->endings; ending && *ending; ending++) {
        size_t n = brc_without_ending(name, len, *ending);
        if (n < len)
            return n;
    }
    return f->stem ? f->stem(name, len) : len;
}

static size_t base_length(const char *name, size_t len)
{
    const brc_format *f;
    len = brc_without_ending(name, len, ".gz");
    for (size_t i = 0; (f = brc_format_at(i)) != NULL; i++) {
        size_t n = stem_of(f, name, len);
        if (n < len)
            return n;
    }
    return len;
}

/* Zarr reserves "__" at the front and forbids names of periods alone; control
 * characters, backslashes and invalid UTF-8 make bad names anywhere. */
static void make_node_name(char *name)
{
    size_t len = strlen(name);
    int valid = brc_utf8_valid(name, len);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)name[i];
        if (c < 0x20 || c == 0x7F || c == '\\' || c == '/' || (!valid && c >= 0x80))
            name[i] = '-';
    }
    if (strspn(name, ".") == len)
        memset(name, '-', len);
    if (len >= 2 && memcmp(name, "__", 2) == 0)
        name[0] = name[1] = '-';
    if (!brc_name_is_safe(name, len))
        name[0] = '-';
}

static int name_node(char **out, const char *source, int any, brc_error *err)
{
    size_t end = strlen(source);
    while (end > 0 && source[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && source[start - 1] != '/')
        start--;
    if (start + strspn(source + start, ".") >= end)
        return brc_fail(err, BRC_EINVAL, "%s is not a name for a node: give the path to import "
                                         "into",
                        source);
    size_t len = base_length(source + start, end - start);
    if (any && len == end - start)
        len = brc_before_ending(source + start, len);
    BRC_TRY(brc_dup_n(out, source + start, len, err));
    make_node_name(*out);
    return BRC_OK;
}

int brc_source_name(char **out, const char *source, brc_error *err)
{
    return name_node(out, source, 0, err);
}

int brc_source_name_any(char **out, const char *source, brc_error *err)
{
    return name_node(out, source, 1, err);
}
