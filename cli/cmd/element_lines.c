/*
 * element_lines.c - elements that differ between versions, one by one.
 */
#include "element_lines.h"

#include "../cli.h"

#include <inttypes.h>
#include <string.h>

enum { TEXT_MOST = 200 }; /* bytes of one element in a line */

const char *cli_box_words(struct cli *cli, int ndim, const uint64_t *first, const uint64_t *last)
{
    const char *out = "[";

    for (int i = 0; i < ndim; i++) {
        const char *comma = i ? ", " : "";

        if (first[i] == last[i])
            out = cli_text(cli, "%s%s%" PRIu64, out, comma, first[i]);
        else
            out = cli_text(cli, "%s%s%" PRIu64 ":%" PRIu64, out, comma, first[i], last[i] + 1);
    }
    return cli_text(cli, "%s]", out);
}

/* Returns the element as text, a long one without its end. */
static const char *one_element_words(struct cli *cli, const brc_array *array, const void *element,
                                 brc_buf *text)
{
    size_t len;

    text->len = 0;
    if (brc_element_format(text, array, element, BRC_ELEMENT_QUOTED, &cli->err) < 0)
        return NULL;
    if (text->len <= TEXT_MOST)
        return cli_escaped_bytes(cli, (const char *)text->data, text->len);
    for (len = TEXT_MOST; len > 0 && (text->data[len] & 0xC0) == 0x80;)
        len--;
    return cli_text(cli, "%s...", cli_escaped_bytes(cli, (const char *)text->data, len));
}

/* Sets the words for each side. An element that a version does not have is "none". */
static int side_words(struct cli *cli, const struct cli_differing *list, const brc_differing *value,
                      const char *out[3], brc_buf *text)
{
    const void *const sides[] = { value->before, value->now, value->theirs };

    for (int i = 0; i < 3; i++) {
        out[i] = sides[i] ? one_element_words(cli, list->array, sides[i], text) : "none";
        if (!out[i])
            return cli->err.code;
    }
    return BRC_OK;
}

static int all_lines(struct cli *cli, const struct cli_differing *list, const char **lines,
                     brc_buf *text)
{
    const int ndim = brc_array_describe(list->array)->ndim;
    const char *words[3];

    for (size_t i = 0; i < list->n; i++) {
        const uint64_t *index = list->values[i].index;

        CLI_TRY(side_words(cli, list, &list->values[i], words, text));
        if (list->is_conflict)
            lines[i] = cli_text(cli, "%s base %s, ours %s, theirs %s",
                                cli_box_words(cli, ndim, index, index), words[0], words[1],
                                words[2]);
        else
            lines[i] = cli_text(cli, "%s %s \xe2\x86\x92 %s", /* an arrow */
                                cli_box_words(cli, ndim, index, index), words[0], words[1]);
    }
    return BRC_OK;
}

int cli_differing_lines(struct cli *cli, const struct cli_differing *list, struct cli_texts *out)
{
    const char **lines = cli_alloc(cli, list->n + 1, sizeof(*lines));
    brc_buf text = BRC_BUF_INIT;
    int rc = BRC_OK;

    *out = (struct cli_texts){ lines, list->n };
    if (list->n > 0)
        rc = all_lines(cli, list, lines, &text);
    if (list->more)
        lines[out->n++] = list->more;
    brc_buf_dispose(&text);
    return rc;
}

/* ---- JSON ------------------------------------------------------------------------ */

/* Returns the element as JSON text, or NULL after an error. */
static const char *element_json(struct cli *cli, const brc_array *array, const void *element,
                                brc_buf *text)
{
    if (!element)
        return "null";
    text->len = 0;
    if (brc_element_format(text, array, element, BRC_ELEMENT_JSON, &cli->err) < 0)
        return NULL;
    return cli_text(cli, "%.*s", (int)text->len, (const char *)text->data);
}

static const char *value_json(struct cli *cli, const struct cli_differing *list,
                              const brc_differing *value, brc_buf *text)
{
    const int ndim = brc_array_describe(list->array)->ndim;
    const char *index = cli_dims_text(cli, value->index, ndim);
    const char *before = element_json(cli, list->array, value->before, text);
    const char *now = before ? element_json(cli, list->array, value->now, text) : NULL;
    const char *theirs = now ? element_json(cli, list->array, value->theirs, text) : NULL;

    if (!theirs)
        return NULL;
    if (!list->is_conflict)
        return cli_text(cli, "{\"index\":[%s],\"old\":%s,\"new\":%s}", index, before, now);
    return cli_text(cli, "{\"index\":[%s],\"base\":%s,\"ours\":%s,\"theirs\":%s}", index, before,
                    now, theirs);
}

int cli_differing_json(struct cli *cli, const struct cli_differing *list, const char **out)
{
    const char **parts = cli_alloc(cli, list->n, sizeof(*parts));
    const struct cli_texts texts = { parts, list->n };
    brc_buf text = BRC_BUF_INIT;
    int rc = BRC_OK;

    for (size_t i = 0; rc >= 0 && i < list->n; i++) {
        parts[i] = value_json(cli, list, &list->values[i], &text);
        if (!parts[i])
            rc = cli->err.code;
    }
    if (rc >= 0)
        *out = cli_text(cli, "[%s]", cli_joined(cli, &texts, ","));
    brc_buf_dispose(&text);
    return rc;
}
