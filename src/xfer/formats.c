/* Finds the format of a source: a file is known by its first bytes and a directory by its content;
 * the source's name only helps to name the node. */
#include "formats.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/file.h"
#include "../base/json.h"
#include "xfer.h"

/* ==== source ================================ */

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

/* Returns the length of the name without the text that the format puts at the end of its files'
 * names. */
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

/* Makes the name valid. Zarr reserves "__" at the front and forbids names that consist of periods;
 * control characters, backslashes and invalid UTF-8 are bad in any name. */
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

/* ==== formats ================================ */

/* The table of formats, and its look-ups. */

/* Sources are asked in this order: a .zip's content is examined before .npz takes the file. */
static const brc_format *const formats[] = {
    &brc_format_zarr3,  &brc_format_zarr2,   &brc_format_zarr_zip,
    &brc_format_npy,    &brc_format_npz,     &brc_format_idx,
    &brc_format_netcdf, &brc_format_netcdf3, &brc_format_hdf5, &brc_format_kerchunk,
};

const brc_format *brc_format_at(size_t i)
{
    return i < sizeof(formats) / sizeof(formats[0]) ? formats[i] : NULL;
}

/* ---- lists for messages -------------------------------- */

typedef struct word_list {
    brc_buf text;
    size_t last; /* the offset of the comma before the last word; 0: there is none */
} word_list;

static int add_word(word_list *list, const char *word, brc_error *err)
{
    if (list->text.len > 0) {
        list->last = list->text.len;
        BRC_TRY(brc_buf_text(&list->text, ", ", err));
    }
    return brc_buf_text(&list->text, word, err);
}

/* Turns "a, b" into "a and b". */
static int end_words(brc_buf *out, const word_list *list, brc_error *err)
{
    const char *text = (const char *)list->text.data;
    if (list->last > 0)
        BRC_TRY(brc_buf_printf(out, err, "%.*s and %.*s", (int)list->last, text,
                               (int)(list->text.len - list->last - 2), text + list->last + 2));
    else
        BRC_TRY(brc_buf_append(out, text, list->text.len, err));
    return brc_buf_terminate(out, err);
}

static int add_endings(word_list *list, const brc_format *f, brc_error *err)
{
    for (const char *const *ending = f->endings; f->export && ending && *ending; ending++) {
        BRC_TRY(add_word(list, *ending, err));
        if (f->is_directory)
            BRC_TRY(brc_buf_text(&list->text, " or none (a directory)", err));
    }
    return BRC_OK;
}

enum { LIST_SOURCES, LIST_NAMES, LIST_ENDINGS };

static int list_formats(brc_buf *out, int what, brc_error *err)
{
    word_list list = { BRC_BUF_INIT, 0 };
    const brc_format *f;
    int rc = BRC_OK;

    for (size_t i = 0; (f = brc_format_at(i)) != NULL; i++) {
        const char *word = what == LIST_SOURCES ? f->source_text : f->name;
        if (what == LIST_ENDINGS)
            BRC_GO(add_endings(&list, f, err));
        else if (word)
            BRC_GO(add_word(&list, word, err));
    }
    BRC_GO(end_words(out, &list, err));
done:
    brc_buf_dispose(&list.text);
    return rc;
}

/* ---- looking up -------------------------------- */

int brc_format_of_source(const brc_format **out, const brc_source *source, brc_error *err)
{
    brc_buf known = BRC_BUF_INIT;
    const brc_format *f;
    int is = 0, rc;

    *out = NULL;
    for (size_t i = 0; (f = brc_format_at(i)) != NULL; i++) {
        if (f->probe)
            BRC_TRY(f->probe(&is, source, err));
        if (is) {
            *out = f;
            return BRC_OK;
        }
    }
    BRC_GO(list_formats(&known, LIST_SOURCES, err));
    rc = brc_fail(err, BRC_EUNSUPPORTED,
                  source->is_dir ? "the directory %s has no zarr.json; %s files can be imported"
                                 : "%s is not in a known format; %s files can be imported",
                  source->name, (const char *)known.data);
done:
    brc_buf_dispose(&known);
    return rc;
}

/* Returns the ending of the last name in a path; NULL: none. */
static const char *ending_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t len = strlen(base), before = brc_before_ending(base, len);
    return before < len ? base + before : NULL;
}

static int has_one_of(const char *const *endings, const char *dest)
{
    for (; endings && *endings; endings++)
        if (brc_has_ending(dest, *endings))
            return 1;
    return 0;
}

int brc_format_of_dest(const brc_format **out, const char *dest, const char *name, brc_error *err)
{
    const char *ending = ending_of(dest);
    brc_buf known = BRC_BUF_INIT;
    const brc_format *f;
    int rc;

    *out = NULL;
    for (size_t i = 0; (f = brc_format_at(i)) != NULL; i++) {
        if (f->export && (name     ? f->name && strcmp(f->name, name) == 0
                          : ending ? has_one_of(f->endings, dest)
                                   : f->is_directory)) {
            *out = f;
            return BRC_OK;
        }
    }
    BRC_GO(list_formats(&known, name ? LIST_NAMES : LIST_ENDINGS, err));
    rc = name ? brc_fail(err, BRC_EINVAL, "there is no format %s: %s can be written", name,
                         (const char *)known.data)
              : brc_fail(err, BRC_EINVAL,
                         "%s: no format has the ending %s; the endings are %s; if you name a "
                         "format, any ending will do",
                         dest, ending, (const char *)known.data);
done:
    brc_buf_dispose(&known);
    return rc;
}
