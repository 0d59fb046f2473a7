/*
 * JSON values over cJSON: parsing, access and building.
 *
 * struct brc_json is a cJSON, and never one of type cJSON_Number: numbers are
 * marked strings (json.h). Recursion is bounded, because parsing bounds depth.
 */
#include "json.h"

#include <cjson/cJSON.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "sized.h"

/* ==== json ================================ */

static const cJSON *node_of(const brc_json *value)
{
    return (const cJSON *)value;
}

static cJSON *own_node(brc_json *value)
{
    return (cJSON *)value;
}

static int node_type(const brc_json *value)
{
    return value ? node_of(value)->type & 0xFF : cJSON_Invalid;
}

/* Returns the character after the mark; 0 if the value is not a marked string. */
static char mark_of(const brc_json *value)
{
    if (node_type(value) != cJSON_String)
        return 0;
    const char *text = node_of(value)->valuestring;
    return text[0] == BRC_JSON_MARK ? text[1] : 0;
}

/* ---- parsing ---------------------------------------------------------------- */

static int parse_json(brc_json **out, const char *text, size_t len, int nan, brc_error *err)
{
    brc_buf marked = BRC_BUF_INIT;
    int rc = BRC_OK;
    *out = NULL;
    BRC_GO(brc_json_lex(&marked, text, len, nan, err));
    BRC_GO(brc_buf_terminate(&marked, err));
    *out = (brc_json *)cJSON_ParseWithLength((const char *)marked.data, marked.len + 1);
    /* The text passed the strict pass, so only memory can be missing. */
    if (!*out)
        rc = brc_nomem(err);
done:
    brc_buf_dispose(&marked);
    return rc;
}

int brc_json_parse(brc_json **out, const char *text, size_t len, uint32_t flags, brc_error *err)
{
    *out = NULL;
    BRC_TRY(brc_flags_check(flags, BRC_JSON_NAN, "brc_json_parse()", err));
    return parse_json(out, text, len, flags != 0 ? BRC_JSON_NAN_ANYWHERE : BRC_JSON_NAN_NOWHERE,
                      err);
}

int brc_json_parse_document(brc_json **out, const char *text, size_t len, brc_error *err)
{
    return parse_json(out, text, len, BRC_JSON_NAN_IN_ATTRIBUTES, err);
}

void brc_json_free(brc_json *value)
{
    cJSON_Delete(own_node(value));
}

int brc_json_clone(brc_json **out, const brc_json *value, brc_error *err)
{
    *out = NULL;
    if (!value)
        return brc_fail(err, BRC_EMISUSE, "an absent JSON value cannot be copied");
    *out = (brc_json *)cJSON_Duplicate(node_of(value), 1);
    return *out ? BRC_OK : brc_nomem(err);
}

/* ---- access ------------------------------------------------------------------ */

int brc_json_kind(const brc_json *value)
{
    switch (node_type(value)) {
    case cJSON_NULL:
        return BRC_JSON_NULL;
    case cJSON_True:
    case cJSON_False:
        return BRC_JSON_BOOL;
    case cJSON_String:
        return mark_of(value) == BRC_JSON_MARK_NUMBER ? BRC_JSON_NUMBER : BRC_JSON_STRING;
    case cJSON_Array:
        return BRC_JSON_ARRAY;
    case cJSON_Object:
        return BRC_JSON_OBJECT;
    default:
        return BRC_JSON_ABSENT;
    }
}

const brc_json *brc_json_first(const brc_json *value)
{
    return value ? (const brc_json *)node_of(value)->child : NULL;
}

const brc_json *brc_json_next(const brc_json *item)
{
    return item ? (const brc_json *)node_of(item)->next : NULL;
}

const char *brc_json_name(const brc_json *member)
{
    return member ? node_of(member)->string : NULL;
}

int brc_json_name_is_valid(const char *name)
{
    for (const char *nul; (nul = strstr(name, BRC_JSON_NUL)); name = nul + strlen(BRC_JSON_NUL))
        if (!brc_utf8_valid(name, (size_t)(nul - name)))
            return 0;
    return brc_utf8_valid(name, strlen(name));
}

const brc_json *brc_json_member(const brc_json *object, const char *name)
{
    if (node_type(object) != cJSON_Object)
        return NULL;
    for (const brc_json *m = brc_json_first(object); m; m = brc_json_next(m))
        if (strcmp(brc_json_name(m), name) == 0)
            return m;
    return NULL;
}

size_t brc_json_count(const brc_json *value)
{
    size_t n = 0;
    for (const brc_json *item = brc_json_first(value); item; item = brc_json_next(item))
        n++;
    return n;
}

const brc_json *brc_json_item(const brc_json *value, size_t i)
{
    const brc_json *item = brc_json_first(value);
    while (item && i-- > 0)
        item = brc_json_next(item);
    return item;
}

/* Returns the text after this mark; "" if the value does not have it. */
static const char *marked_text(const brc_json *value, char mark)
{
    return mark_of(value) == mark ? node_of(value)->valuestring + 2 : "";
}

int brc_json_text(const brc_json *value, const char **text)
{
    char mark = mark_of(value);
    int is_plain = node_type(value) == cJSON_String && mark == 0;
    *text = is_plain ? node_of(value)->valuestring : marked_text(value, BRC_JSON_MARK_TEXT);
    return is_plain || mark == BRC_JSON_MARK_TEXT;
}

int brc_json_is(const brc_json *value, const char *text)
{
    const char *own;
    return brc_json_text(value, &own) && strcmp(own, text) == 0;
}

int brc_json_choice(const brc_json *value, const char *const *texts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (brc_json_is(value, texts[i]))
            return (int)i;
    return -1;
}

const char *brc_json_literal(const brc_json *value)
{
    return marked_text(value, BRC_JSON_MARK_NUMBER);
}

const char *brc_json_escaped(const brc_json *value)
{
    return marked_text(value, BRC_JSON_MARK_RAW);
}

int brc_json_is_nan(const brc_json *value)
{
    const char *literal = brc_json_literal(value);
    literal += *literal == '-';
    return *literal == 'N' || *literal == 'I';
}

/* Returns 1 if the value is an integer literal whose magnitude fits into 64 bits. */
static int integer_literal(const brc_json *value, int *negative, uint64_t *magnitude)
{
    if (mark_of(value) != BRC_JSON_MARK_NUMBER)
        return 0;
    const char *p = node_of(value)->valuestring + 2;
    *negative = *p == '-';
    p += *negative;
    *magnitude = 0;
    for (; *p; p++) {
        if (*p < '0' || *p > '9' || !brc_mul_u64(*magnitude, 10, magnitude) ||
            !brc_add_u64(*magnitude, (uint64_t)(*p - '0'), magnitude))
            return 0;
    }
    return 1;
}

int brc_json_int(const brc_json *value, int64_t min, int64_t max, int64_t *out)
{
    int negative;
    uint64_t magnitude;
    if (!integer_literal(value, &negative, &magnitude))
        return 0;
    if (magnitude > (uint64_t)INT64_MAX + (negative ? 1 : 0))
        return 0;
    /* Negated as unsigned: INT64_MIN has no positive counterpart. */
    int64_t n = (int64_t)(negative ? ~magnitude + 1 : magnitude);
    if (n < min || n > max)
        return 0;
    *out = n;
    return 1;
}

int brc_json_uint(const brc_json *value, uint64_t max, uint64_t *out)
{
    int negative;
    uint64_t magnitude;
    if (!integer_literal(value, &negative, &magnitude) || (negative && magnitude != 0) ||
        magnitude > max)
        return 0;
    *out = magnitude;
    return 1;
}

int brc_json_double(const brc_json *value, double *out)
{
    if (mark_of(value) != BRC_JSON_MARK_NUMBER)
        return 0;
    /* The decimal point must not depend on the program's locale. */
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c == (locale_t)0)
        return 0;
    double number = strtod_l(node_of(value)->valuestring + 2, NULL, c);
    freelocale(c);
    if (!isfinite(number) && !brc_json_is_nan(value))
        return 0;
    *out = isnan(number) ? NAN : number; /* the bits of NaN must not depend on the C library */
    return 1;
}

int brc_json_bool(const brc_json *value, int *out)
{
    int type = node_type(value);
    if (type != cJSON_True && type != cJSON_False)
        return 0;
    *out = type == cJSON_True;
    return 1;
}

int brc_json_allow(const brc_json *object, const char *const *names, size_t n, brc_error *err)
{
    if (!object)
        return BRC_OK;
    if (node_type(object) != cJSON_Object)
        return brc_fail(err, BRC_EINVAL, "an object is expected");
    for (const brc_json *m = brc_json_first(object); m; m = brc_json_next(m)) {
        const char *name = brc_json_name(m);
        size_t i = 0;
        while (i < n && strcmp(name, names[i]) != 0)
            i++;
        if (i == n)
            return brc_fail(err, BRC_EINVAL, "member \"%s\" is not known here", name);
    }
    return BRC_OK;
}

/* ---- building ------------------------------------------------------------------ */

brc_json *brc_json_new_object(void)
{
    return (brc_json *)cJSON_CreateObject();
}

brc_json *brc_json_new_array(void)
{
    return (brc_json *)cJSON_CreateArray();
}

brc_json *brc_json_new_null(void)
{
    return (brc_json *)cJSON_CreateNull();
}

brc_json *brc_json_new_string(const char *text)
{
    if (text[0] != BRC_JSON_MARK)
        return (brc_json *)cJSON_CreateString(text);
    brc_buf marked = BRC_BUF_INIT;
    brc_json *out = NULL;
    int rc = brc_buf_printf(&marked, NULL, "%c%c%s", BRC_JSON_MARK, BRC_JSON_MARK_TEXT, text);
    if (rc == BRC_OK && brc_buf_terminate(&marked, NULL) == BRC_OK)
        out = (brc_json *)cJSON_CreateString((const char *)marked.data);
    brc_buf_dispose(&marked);
    return out;
}

brc_json *brc_json_new_number(const char *literal)
{
    brc_buf marked = BRC_BUF_INIT;
    brc_json *out = NULL;
    int rc = brc_buf_printf(&marked, NULL, "%c%c%s", BRC_JSON_MARK, BRC_JSON_MARK_NUMBER, literal);
    if (rc == BRC_OK && brc_buf_terminate(&marked, NULL) == BRC_OK)
        out = (brc_json *)cJSON_CreateString((const char *)marked.data);
    brc_buf_dispose(&marked);
    return out;
}

brc_json *brc_json_new_uint(uint64_t value)
{
    char text[32];
    snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    return brc_json_new_number(text);
}

/* Puts `value` where `old` is. */
static int replace_member(cJSON *object, const brc_json *old, cJSON *value, const char *name,
                          brc_error *err)
{
    size_t size = strlen(name) + 1;
    char *copy = cJSON_malloc(size);
    if (!copy)
        return brc_nomem(err);
    memcpy(copy, name, size);
    cJSON_free(value->string);
    value->string = copy;
    cJSON *place = object->child;
    while (place != node_of(old))
        place = place->next;
    if (!cJSON_ReplaceItemViaPointer(object, place, value))
        return brc_fail(err, BRC_EINTERNAL, "member \"%s\" could not be replaced", name);
    return BRC_OK;
}

static int check_set(const brc_json *object, const char *name, const brc_json *value,
                     brc_error *err)
{
    if (!object || !value)
        return brc_nomem(err);
    if (node_type(object) != cJSON_Object)
        return brc_fail(err, BRC_EMISUSE, "member \"%s\" set in a value that is not an object",
                        name);
    return BRC_OK;
}

int brc_json_add(brc_json *object, const char *name, brc_json *value, brc_error *err)
{
    int rc = check_set(object, name, value, err);
    if (rc == BRC_OK && !cJSON_AddItemToObject(own_node(object), name, own_node(value)))
        rc = brc_nomem(err);
    if (rc < 0)
        brc_json_free(value);
    return rc;
}

int brc_json_set(brc_json *object, const char *name, brc_json *value, brc_error *err)
{
    const brc_json *old = brc_json_member(object, name);
    if (!old)
        return brc_json_add(object, name, value, err);
    int rc = check_set(object, name, value, err);
    if (rc == BRC_OK)
        rc = replace_member(own_node(object), old, own_node(value), name, err);
    if (rc < 0)
        brc_json_free(value);
    return rc;
}

int brc_json_push(brc_json *array, brc_json *value, brc_error *err)
{
    int rc = BRC_OK;
    if (!array || !value)
        BRC_GO(brc_nomem(err));
    if (node_type(array) != cJSON_Array)
        BRC_GO(brc_fail(err, BRC_EMISUSE, "an item added to a value that is not an array"));
    if (!cJSON_AddItemToArray(own_node(array), own_node(value)))
        BRC_GO(brc_nomem(err));
    return BRC_OK;
done:
    brc_json_free(value);
    return rc;
}

void brc_json_remove(brc_json *object, const char *name)
{
    if (node_type(object) == cJSON_Object)
        cJSON_DeleteItemFromObjectCaseSensitive(own_node(object), name);
}

int brc_json_replace(brc_json *place, brc_json *value, brc_error *err)
{
    if (!place || !value) {
        brc_json_free(value);
        return brc_nomem(err);
    }
    cJSON *to = own_node(place), *from = own_node(value);
    cJSON_Delete(to->child);
    cJSON_free(to->valuestring);
    to->type = from->type;
    to->child = from->child;
    to->valuestring = from->valuestring;
    from->child = NULL;
    from->valuestring = NULL;
    cJSON_Delete(from);
    return BRC_OK;
}

void brc_json_nan_to_text(brc_json *value)
{
    for (cJSON *item = value ? own_node(value)->child : NULL; item; item = item->next)
        brc_json_nan_to_text((brc_json *)item);
    if (!brc_json_is_nan(value))
        return;
    char *text = own_node(value)->valuestring;
    memmove(text, text + 2, strlen(text) - 1);
}

/* ---- members by name ------------------------------------------------------------ */

static int compare_members(const void *a, const void *b)
{
    return strcmp((*(const cJSON *const *)a)->string, (*(const cJSON *const *)b)->string);
}

int brc_json_index_make(brc_json_index *out, const brc_json *object, brc_error *err)
{
    void *list;
    *out = (brc_json_index){NULL, 0};
    size_t n = node_type(object) == cJSON_Object ? brc_json_count(object) : 0;
    BRC_TRY(brc_new_array(&list, n, sizeof(brc_json *), err));
    out->members = list;
    for (const brc_json *m = brc_json_first(object); out->n < n; m = brc_json_next(m))
        out->members[out->n++] = m;
    if (n > 1)
        qsort(list, n, sizeof(brc_json *), compare_members);
    return BRC_OK;
}

const brc_json *brc_json_index_find(const brc_json_index *index, const char *name)
{
    size_t lo = 0, hi = index->n;
    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;
        int order = strcmp(brc_json_name(index->members[middle]), name);
        if (order == 0)
            return index->members[middle];
        if (order < 0)
            lo = middle + 1;
        else
            hi = middle;
    }
    return NULL;
}

void brc_json_index_dispose(brc_json_index *index)
{
    free(index->members);
    *index = (brc_json_index){NULL, 0};
}

/* ---- equality ------------------------------------------------------------------- */

/* Compares objects by looking up each member in the other: slow, but without memory. */
static int equal_by_lookup(const brc_json *a, const brc_json *b)
{
    for (const brc_json *m = brc_json_first(a); m; m = brc_json_next(m))
        if (!brc_json_equal(m, brc_json_member(b, brc_json_name(m))))
            return 0;
    return 1;
}

static int equal_objects(const brc_json *a, const brc_json *b)
{
    size_t n = brc_json_count(a);
    if (n != brc_json_count(b))
        return 0;
    if (n <= 8)
        return equal_by_lookup(a, b);
    brc_json_index x, y = {NULL, 0};
    int equal = 1;
    if (brc_json_index_make(&x, a, NULL) < 0 || brc_json_index_make(&y, b, NULL) < 0)
        equal = equal_by_lookup(a, b);
    for (size_t i = 0; y.members && equal && i < n; i++)
        equal = strcmp(brc_json_name(x.members[i]), brc_json_name(y.members[i])) == 0 &&
                brc_json_equal(x.members[i], y.members[i]);
    brc_json_index_dispose(&x);
    brc_json_index_dispose(&y);
    return equal;
}

int brc_json_equal(const brc_json *a, const brc_json *b)
{
    int type = node_type(a);
    if (type != node_type(b))
        return 0;
    if (type == cJSON_Object)
        return equal_objects(a, b);
    if (type == cJSON_String)
        return strcmp(node_of(a)->valuestring, node_of(b)->valuestring) == 0;
    const brc_json *x = brc_json_first(a), *y = brc_json_first(b);
    while (x && y && brc_json_equal(x, y)) {
        x = brc_json_next(x);
        y = brc_json_next(y);
    }
    return !x && !y;
}

/* ==== json write ================================ */

/*
 * JSON text from values: compact, and indented for people.
 *
 * Number literals are written as they were read.
 */

#define INDENT "  "

/* `level`: the level of indentation; -1: compact, on one line. */
static int json_line_break(brc_buf *out, int level, brc_error *err)
{
    if (level < 0)
        return BRC_OK;
    BRC_TRY(brc_buf_byte(out, '\n', err));
    for (int i = 0; i < level; i++)
        BRC_TRY(brc_buf_text(out, INDENT, err));
    return BRC_OK;
}

static int write_json_string(brc_buf *out, const brc_json *value, brc_error *err)
{
    const char *text;
    if (brc_json_text(value, &text))
        return brc_json_quote(out, text, strlen(text), err);
    BRC_TRY(brc_buf_byte(out, '"', err));
    BRC_TRY(brc_buf_text(out, brc_json_escaped(value), err));
    return brc_buf_byte(out, '"', err);
}

static int write_json_value(brc_buf *out, const brc_json *value, int level, brc_error *err);

static int write_json_items(brc_buf *out, const brc_json *value, int level, brc_error *err)
{
    int is_object = brc_json_kind(value) == BRC_JSON_OBJECT;
    int inner = level < 0 ? level : level + 1;
    const brc_json *item = brc_json_first(value);
    if (!item)
        return brc_buf_text(out, is_object ? "{}" : "[]", err);
    BRC_TRY(brc_buf_text(out, is_object ? "{" : "[", err));
    for (; item; item = brc_json_next(item)) {
        BRC_TRY(json_line_break(out, inner, err));
        if (is_object) {
            const char *name = brc_json_name(item);
            BRC_TRY(brc_json_quote(out, name, strlen(name), err));
            BRC_TRY(brc_buf_text(out, level < 0 ? ":" : ": ", err));
        }
        BRC_TRY(write_json_value(out, item, inner, err));
        if (brc_json_next(item))
            BRC_TRY(brc_buf_text(out, ",", err));
    }
    BRC_TRY(json_line_break(out, level, err));
    return brc_buf_text(out, is_object ? "}" : "]", err);
}

static int write_json_value(brc_buf *out, const brc_json *value, int level, brc_error *err)
{
    int truth = 0;
    switch (brc_json_kind(value)) {
    case BRC_JSON_NULL:
        return brc_buf_text(out, "null", err);
    case BRC_JSON_BOOL:
        brc_json_bool(value, &truth);
        return brc_buf_text(out, truth ? "true" : "false", err);
    case BRC_JSON_NUMBER:
        return brc_buf_text(out, brc_json_literal(value), err);
    case BRC_JSON_STRING:
        return write_json_string(out, value, err);
    case BRC_JSON_ARRAY:
    case BRC_JSON_OBJECT:
        return write_json_items(out, value, level, err);
    default:
        return brc_fail(err, BRC_EMISUSE, "an absent JSON value cannot be written");
    }
}

int brc_json_write(brc_buf *out, const brc_json *value, uint32_t flags, brc_error *err)
{
    size_t len = out->len;
    BRC_TRY(brc_flags_check(flags, BRC_JSON_PRETTY, "brc_json_write()", err));
    int rc = write_json_value(out, value, flags != 0 ? 0 : -1, err);
    if (rc < 0)
        out->len = len;
    return rc;
}

