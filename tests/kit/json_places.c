/* Writes a document once for each place and change; see json_places.h. */
#include "json_places.h"

#include <check.h>
#include <string.h>

/* The texts that replace a value; %: the value's own text, for strings alone. */
static const char *const changes[] = {
    "\"%\\u0000\"", "\"\\u0000%\"", "\"\\u0000\"", "\"x\"", "7",
    "-1.5e300",     "null",         "true",        "[]",    "{}",
};
enum { N_NUL = 3, N_CHANGES = sizeof(changes) / sizeof(changes[0]) };

typedef struct place_writer {
    brc_buf text, pointer;
    size_t at, target; /* places so far, and the one that is changed       */
    int change;        /* of a value; N_CHANGES: of the name before it     */
    int found, skip;   /* the target was met; it has not this change       */
} place_writer;

static void put_text(brc_buf *out, const char *text)
{
    ck_assert_int_eq(brc_buf_text(out, text, NULL), BRC_OK);
}

static void put_change(place_writer *w, const brc_json *value)
{
    const char *form = changes[w->change], *own;
    const char *place = strchr(form, '%');
    int is_text = brc_json_text(value, &own);

    w->skip = w->change < N_NUL && !is_text;
    if (!place || w->skip) {
        put_text(&w->text, form);
        return;
    }
    brc_buf quoted = BRC_BUF_INIT;
    ck_assert_int_eq(brc_json_quote(&quoted, own, strlen(own), NULL), BRC_OK);
    ck_assert_int_eq(brc_buf_append(&w->text, form, (size_t)(place - form), NULL), BRC_OK);
    ck_assert_int_eq(brc_buf_append(&w->text, quoted.data + 1, quoted.len - 2, NULL), BRC_OK);
    put_text(&w->text, place + 1);
    brc_buf_dispose(&quoted);
}

static void put_place(place_writer *w, const brc_json *value);

static void put_name(place_writer *w, const char *name, int is_target)
{
    ck_assert_int_eq(brc_json_quote(&w->text, name, strlen(name), NULL), BRC_OK);
    if (is_target) {
        w->text.len--;
        put_text(&w->text, "\\u0000\"");
    }
    put_text(&w->text, ":");
}

static void put_items(place_writer *w, const brc_json *value)
{
    int is_object = brc_json_kind(value) == BRC_JSON_OBJECT;
    size_t i = 0, len = w->pointer.len;

    put_text(&w->text, is_object ? "{" : "[");
    for (const brc_json *item = brc_json_first(value); item; item = brc_json_next(item), i++) {
        const char *name = brc_json_name(item);
        int is_target = w->at == w->target && w->change == N_CHANGES;
        if (i > 0)
            put_text(&w->text, ",");
        if (!w->found && is_object)
            ck_assert_int_eq(brc_json_pointer_step(&w->pointer, name, NULL), BRC_OK);
        else if (!w->found)
            ck_assert_int_eq(brc_buf_printf(&w->pointer, NULL, "/%zu", i), BRC_OK);
        if (is_object)
            put_name(w, name, is_target);
        w->skip |= is_target && !is_object;
        put_place(w, item);
        if (!w->found)
            w->pointer.len = len;
    }
    put_text(&w->text, is_object ? "}" : "]");
}

static void put_place(place_writer *w, const brc_json *value)
{
    int kind = brc_json_kind(value), is_target = w->at++ == w->target;

    w->found |= is_target;
    if (is_target && w->change < N_CHANGES)
        put_change(w, value);
    else if (kind == BRC_JSON_OBJECT || kind == BRC_JSON_ARRAY)
        put_items(w, value);
    else
        ck_assert_int_eq(brc_json_write(&w->text, value, 0, NULL), BRC_OK);
}

size_t json_places_each(const brc_json *doc, json_place_fn fn, void *ctx)
{
    size_t n = 0;
    for (size_t target = 0, found = 1; found; target++) {
        found = 0;
        for (int change = 0; change <= N_CHANGES; change++) {
            place_writer w = { .target = target, .change = change };
            w.skip = target == 0 && change == N_CHANGES;
            put_place(&w, doc);
            found |= (size_t)w.found;
            ck_assert_int_eq(brc_buf_terminate(&w.text, NULL), BRC_OK);
            ck_assert_int_eq(brc_buf_terminate(&w.pointer, NULL), BRC_OK);
            if (w.found && !w.skip) {
                json_place place = { (const char *)w.text.data, w.text.len,
                                     (const char *)w.pointer.data, change < N_NUL,
                                     change == N_CHANGES };
                fn(ctx, &place);
                n++;
            }
            brc_buf_dispose(&w.text);
            brc_buf_dispose(&w.pointer);
        }
    }
    return n;
}
