/*
 * Parts of a source that an import cannot keep.
 *
 * The kind and the length of the remedy, which is the end of the message, travel in the error's
 * source and detail: callers in between may put words before the message, as brc_context() does.
 */
#include "part.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "json.h"

#define SOURCE "part"
#define LEAVE_OUT "leave it out with --exclude or --skip-unsupported"

static const char *const kind_names[] = {
    [BRC_PART_OTHER] = "part",      [BRC_PART_TYPE] = "data type",  [BRC_PART_VALUE] = "value",
    [BRC_PART_FILTER] = "filter",   [BRC_PART_STORAGE] = "storage", [BRC_PART_LINK] = "link",
    [BRC_PART_NAME] = "name",       [BRC_PART_SIZE] = "size",       [BRC_PART_OBJECT] = "object",
};
#define N_KINDS (sizeof(kind_names) / sizeof(kind_names[0]))

int brc_part_refuse(brc_error *err, brc_part_kind kind, const char *remedy, const char *why, ...)
{
    char text[sizeof(err->message)];
    va_list args;

    va_start(args, why);
    int n = vsnprintf(text, sizeof(text), why, args);
    va_end(args);
    if (n < 0)
        text[0] = '\0';
    if (!remedy)
        remedy = LEAVE_OUT;
    (void)brc_fail(err, BRC_EUNSUPPORTED, "%s: %s", text, remedy);
    brc_error_source(err, SOURCE, (int)kind | (int)(strlen(remedy) << 8));
    return BRC_EUNSUPPORTED;
}

/* ---- one part as JSON ---------------------------------------------------------------- */

/* Appends a name from a file: bytes that are not UTF-8 become '?'. */
static int put_clean(brc_buf *out, const char *text, brc_error *err)
{
    const uint8_t *at = (const uint8_t *)text;
    for (size_t left = strlen(text); left > 0;) {
        size_t step = brc_utf8_step(at, left);
        BRC_TRY(step ? brc_json_escape(out, (const char *)at, step, err)
                     : brc_buf_byte(out, '?', err));
        at += step ? step : 1;
        left -= step ? step : 1;
    }
    return BRC_OK;
}

static int put_member(brc_buf *out, const char *name, const char *value, brc_error *err)
{
    BRC_TRY(brc_buf_printf(out, err, "\"%s\":\"", name));
    BRC_TRY(put_clean(out, value, err));
    return brc_buf_byte(out, '"', err);
}

/* Returns the remedy at the end of the message, if it was not cut off. */
static const char *remedy_of(const brc_error *why, size_t *kind)
{
    size_t len = strlen(why->message), remedy = (size_t)why->detail >> 8;
    *kind = BRC_PART_OTHER;
    if (strcmp(why->source, SOURCE) != 0 || why->detail < 0)
        return LEAVE_OUT;
    *kind = (size_t)why->detail & 255;
    if (*kind >= N_KINDS)
        *kind = BRC_PART_OTHER;
    return remedy <= len && len + 1 < sizeof(why->message) ? why->message + len - remedy
                                                           : LEAVE_OUT;
}

static int write_part(brc_buf *out, const char *path, const char *attribute, const brc_error *why,
                      brc_error *err)
{
    size_t kind;
    const char *remedy = remedy_of(why, &kind);

    BRC_TRY(brc_buf_text(out, "{\"path\":\"/", err));
    BRC_TRY(put_clean(out, path + strspn(path, "/"), err));
    if (attribute)
        BRC_TRY(brc_buf_byte(out, '@', err));
    BRC_TRY(put_clean(out, attribute ? attribute : "", err));
    BRC_TRY(brc_buf_text(out, "\",", err));
    BRC_TRY(put_member(out, "kind", kind_names[kind], err));
    BRC_TRY(brc_buf_byte(out, ',', err));
    BRC_TRY(put_member(out, "message", why->message, err));
    BRC_TRY(brc_buf_byte(out, ',', err));
    BRC_TRY(put_member(out, "remedy", remedy, err));
    return brc_buf_byte(out, '}', err);
}

/* ---- the list ------------------------------------------------------------------------ */

static brc_oid id_of(const char *path, const char *attribute)
{
    brc_oid both[2];
    memset(both, 0, sizeof(both));
    path += strspn(path, "/");
    both[0] = brc_hash_object(BRC_HASH_XXH128, BRC_KIND_DOCUMENT, path, strlen(path));
    if (attribute)
        both[1] = brc_hash_object(BRC_HASH_XXH128, BRC_KIND_DOCUMENT, attribute, strlen(attribute));
    return brc_hash_object(BRC_HASH_XXH128, BRC_KIND_DOCUMENT, both, sizeof(both));
}

/* Counts a part, and lists it if there is room: its JSON is the text after `from`. */
static void list_part(brc_parts *parts, size_t from, const char *message)
{
    if (parts->n++ == 0)
        snprintf(parts->first, sizeof(parts->first), "%s", message);
    if (parts->listed == BRC_PARTS_MOST || parts->json.len > BRC_PARTS_BYTES) {
        parts->json.len = from;
        return;
    }
    parts->last = from + (from > 0);
    parts->listed++;
}

static int append_part(brc_parts *parts, const char *path, const char *attribute,
                       const brc_error *why, brc_error *err)
{
    if (parts->json.len > 0)
        BRC_TRY(brc_buf_byte(&parts->json, ',', err));
    return write_part(&parts->json, path, attribute, why, err);
}

int brc_parts_add(brc_parts *parts, const char *path, const char *attribute, const brc_error *why,
                  brc_error *err)
{
    brc_error cause = *why; /* a copy, because `why` may be `err` */
    size_t from = parts->json.len;
    brc_oid id = id_of(path, attribute);
    void *value;

    if (brc_id_table_find(&parts->known, &id))
        return 0;
    if (parts->known.n == BRC_PARTS_COUNTED)
        return brc_fail(err, BRC_ELIMIT, "more than %d parts cannot be kept", BRC_PARTS_COUNTED);
    BRC_TRY(brc_id_table_add(&parts->known, &id, &value, err));
    int rc = append_part(parts, path, attribute, &cause, err);
    if (rc < 0) {
        parts->json.len = from;
        return rc;
    }
    list_part(parts, from, cause.message);
    return 1;
}

int brc_parts_have(const brc_parts *parts, const char *path)
{
    if (parts->known.n == 0)
        return 0;
    brc_oid id = id_of(path, NULL);
    return brc_id_table_find(&parts->known, &id) != NULL;
}

/* Returns 1 if the value is an object of four texts. */
static int is_part(const brc_json *json, const char **message)
{
    static const char *const names[] = { "path", "kind", "remedy", "message" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!brc_json_text(brc_json_member(json, names[i]), message))
            return 0;
    return brc_json_kind(json) == BRC_JSON_OBJECT && brc_json_count(json) == 4;
}

int brc_parts_add_json(brc_parts *parts, const char *text, size_t len, brc_error *err)
{
    size_t from = parts->json.len;
    const char *message;
    brc_json *json;

    int rc = brc_json_parse(&json, text, len, 0, NULL);
    if (rc < 0)
        return rc == BRC_ENOMEM ? brc_nomem(err) : BRC_OK;
    if (!is_part(json, &message))
        goto done;
    if (from > 0)
        BRC_GO(brc_buf_byte(&parts->json, ',', err));
    BRC_GO(brc_json_write(&parts->json, json, 0, err));
    list_part(parts, from, message);
done:
    brc_json_free(json);
    if (rc < 0)
        parts->json.len = from;
    return rc < 0 ? rc : BRC_OK;
}

void brc_parts_add_more(brc_parts *parts, uint64_t more)
{
    if (parts->n > 0 && more < UINT64_MAX - parts->n)
        parts->n += more;
}

int brc_parts_fail(const brc_parts *parts, const char *source, brc_error *err)
{
    if (parts->n == 1)
        return brc_fail(err, BRC_EUNSUPPORTED, "%s", parts->first);
    return brc_fail(err, BRC_EUNSUPPORTED,
                    "%.200s has %llu parts that cannot be kept (--skip-unsupported brings "
                    "everything else), the first: %s",
                    source, (unsigned long long)parts->n, parts->first);
}

int brc_parts_write(const brc_parts *parts, brc_buf *out, brc_error *err)
{
    unsigned long long more = parts->n - parts->listed;
    BRC_TRY(brc_buf_byte(out, '[', err));
    BRC_TRY(brc_buf_append(out, parts->json.data, parts->json.len, err));
    if (more > 0)
        BRC_TRY(brc_buf_printf(out, err,
                               "%s{\"path\":\"\",\"kind\":\"more\",\"message\":\"%llu more parts, "
                               "which are not listed\",\"remedy\":\"\"}",
                               parts->listed ? "," : "", more));
    return brc_buf_byte(out, ']', err);
}

void brc_parts_dispose(brc_parts *parts)
{
    brc_buf_dispose(&parts->json);
    brc_id_table_dispose(&parts->known);
    *parts = (brc_parts)BRC_PARTS_INIT;
}
