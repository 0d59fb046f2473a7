/* The table of formats, and looking one up in it. */
#include "formats.h"

#include <string.h>

#include "xfer.h"

/* Sources are asked in this order: what a .zip holds decides before .npz takes it. */
static const brc_format *const formats[] = {
    &brc_format_zarr3,  &brc_format_zarr2,   &brc_format_zarr_zip,
    &brc_format_npy,    &brc_format_npz,     &brc_format_idx,
    &brc_format_netcdf, &brc_format_netcdf3, &brc_format_hdf5,
};

const brc_format *brc_format_at(size_t i)
{
    return i < sizeof(formats) / sizeof(formats[0]) ? formats[i] : NULL;
}

/* ---- lists for messages -------------------------------- */

typedef struct word_list {
    brc_buf text;
    size_t last; /* where the comma before the last word is; 0: there is none */
} word_list;

static int add_word(word_list *list, const char *word, brc_error *err)
{
    if (list->text.len > 0) {
        list->last = list->text.len;
        BRC_TRY(brc_buf_text(&list->text, ", ", err));
    }
    return brc_buf_text(&list->text, word, err);
}

/* "a, b" as "a and b" */
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
                                 : "%s is in no known format; %s files can be imported",
                  source->name, (const char *)known.data);
done:
    brc_buf_dispose(&known);
    return rc;
}

/* The ending of the last name in a path; NULL: none. */
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
