#include "merge_doc.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"

/* ---- values -------------------------------- */

int brc_json_is_unknown(const brc_json *value)
{
    return brc_json_kind(value) == BRC_JSON_OBJECT &&
           brc_json_member(value, BRC_UNKNOWN_MEMBER) != NULL;
}

int brc_json_has_unknown(const brc_json *value)
{
    if (brc_json_kind(value) != BRC_JSON_OBJECT)
        return 0;
    if (brc_json_is_unknown(value))
        return 1;
    for (const brc_json *v = brc_json_first(value); v != NULL; v = brc_json_next(v))
        if (brc_json_has_unknown(v))
            return 1;
    return 0;
}

int brc_json_new_unknown(brc_json **out, brc_error *err)
{
    static const char text[] = "{\"" BRC_UNKNOWN_MEMBER "\":null}";
    return brc_json_parse(out, text, sizeof(text) - 1, 0, err);
}

/* A number as its digits, without leading and trailing zeros, and a power of ten. */
typedef struct number_parts {
    int negative;
    const char *digits; /* may contain a point */
    size_t len;
    long long power;    /* of the last digit */
} number_parts;

static long long number_exponent(const char *at)
{
    enum { MOST = 100000000 };
    long long out = 0;
    int negative = *at == '-';
    for (at += *at == '-' || *at == '+'; *at >= '0' && *at <= '9'; at++)
        out = out < MOST ? out * 10 + (*at - '0') : MOST;
    return negative ? -out : out;
}

static void number_split(number_parts *out, const char *literal)
{
    memset(out, 0, sizeof(*out));
    out->negative = *literal == '-';
    literal += out->negative;
    size_t len = strcspn(literal, "eE");
    if (literal[len] != '\0')
        out->power = number_exponent(literal + len + 1);
    const char *point = memchr(literal, '.', len);
    if (point != NULL)
        out->power -= (long long)(literal + len - point - 1);
    while (len > 0 && (*literal == '0' || *literal == '.')) {
        literal++;
        len--;
    }
    while (len > 0 && (literal[len - 1] == '0' || literal[len - 1] == '.')) {
        out->power += literal[len - 1] == '0';
        len--;
    }
    out->digits = literal;
    out->len = len;
    if (len == 0) /* zero has no sign and no exponent */
        out->power = out->negative = 0;
}

static int numbers_same(const char *a, const char *b)
{
    number_parts x, y;
    size_t i = 0, j = 0;
    number_split(&x, a);
    number_split(&y, b);
    if (x.negative != y.negative || x.power != y.power)
        return 0;
    for (;;) {
        i += i < x.len && x.digits[i] == '.';
        j += j < y.len && y.digits[j] == '.';
        if (i == x.len || j == y.len)
            return i == x.len && j == y.len;
        if (x.digits[i++] != y.digits[j++])
            return 0;
    }
}

static int items_same(const brc_json *a, const brc_json *b)
{
    const brc_json *x = brc_json_first(a), *y = brc_json_first(b);
    while (x != NULL && y != NULL && brc_json_same(x, y)) {
        x = brc_json_next(x);
        y = brc_json_next(y);
    }
    return x == NULL && y == NULL;
}

static int members_same(const brc_json *a, const brc_json *b)
{
    if (brc_json_count(a) != brc_json_count(b))
        return 0;
    for (const brc_json *v = brc_json_first(a); v != NULL; v = brc_json_next(v))
        if (!brc_json_same(v, brc_json_member(b, brc_json_name(v))))
            return 0;
    return 1;
}

int brc_json_same(const brc_json *a, const brc_json *b)
{
    int kind = brc_json_kind(a);
    if (kind != brc_json_kind(b))
        return 0;
    if (kind == BRC_JSON_NUMBER)
        return numbers_same(brc_json_literal(a), brc_json_literal(b));
    if (kind != BRC_JSON_ARRAY && kind != BRC_JSON_OBJECT)
        return brc_json_equal(a, b);
    if (brc_json_equal(a, b))
        return 1;
    return kind == BRC_JSON_ARRAY ? items_same(a, b) : members_same(a, b);
}

/* ---- merging -------------------------------- */

typedef struct doc_merge {
    const char *const *skip;
    brc_doc_clash_fn clash;
    void *ctx;
} doc_merge;

/* One member on three sides. */
typedef struct member_sides {
    const brc_json *base, *ours, *theirs;
} member_sides;

static int objects_merge(const doc_merge *m, const char *pointer, const member_sides *sides,
                         brc_json **out, brc_error *err);

static int is_object_or_none(const brc_json *value)
{
    int kind = brc_json_kind(value);
    return (kind == BRC_JSON_OBJECT && !brc_json_is_unknown(value)) || kind == BRC_JSON_ABSENT;
}

/* Says whether a member is merged in turn: all sides are objects. Missing attributes count as an
 * empty object. */
static int can_descend(const char *pointer, const member_sides *s)
{
    if (!is_object_or_none(s->base) || !is_object_or_none(s->ours) || !is_object_or_none(s->theirs))
        return 0;
    return strcmp(pointer, "/attributes") == 0 || (s->ours != NULL && s->theirs != NULL);
}

/* Chooses between two values that are equal by meaning: the one that differs in text from the base,
 * whichever side it comes from. */
static int take_same(const member_sides *s, const brc_json **out, brc_error *err)
{
    brc_buf ours = BRC_BUF_INIT, theirs = BRC_BUF_INIT;
    int rc = BRC_OK;
    *out = s->ours;
    if (brc_json_equal(s->ours, s->theirs))
        return BRC_OK;
    if (s->base != NULL && brc_json_equal(s->ours, s->base)) {
        *out = s->theirs;
        return BRC_OK;
    }
    if (s->base != NULL && brc_json_equal(s->theirs, s->base))
        return BRC_OK;
    BRC_GO(brc_json_write(&ours, s->ours, 0, err));
    BRC_GO(brc_json_write(&theirs, s->theirs, 0, err));
    const size_t least = ours.len < theirs.len ? ours.len : theirs.len;
    const int order = memcmp(ours.data, theirs.data, least);
    if (order < 0 || (order == 0 && ours.len < theirs.len))
        *out = s->theirs;
done:
    brc_buf_dispose(&ours);
    brc_buf_dispose(&theirs);
    return rc;
}

/* Merges one value. *out is NULL if the result does not have the member. */
static int value_merge(const doc_merge *m, const char *pointer, const member_sides *s,
                       brc_json **out, brc_error *err)
{
    const brc_json *taken = NULL;
    *out = NULL;
    if (brc_json_same(s->ours, s->theirs)) {
        if (s->ours != NULL)
            BRC_TRY(take_same(s, &taken, err));
    } else if (brc_json_same(s->ours, s->base)) {
        taken = s->theirs;
    } else if (brc_json_same(s->theirs, s->base)) {
        taken = s->ours;
    } else if (can_descend(pointer, s)) {
        return objects_merge(m, pointer, s, out, err);
    } else {
        const int takes = m->clash(m->ctx, pointer, s->base, s->ours, s->theirs, out, err);
        if (takes < 0 || *out != NULL)
            return takes < 0 ? takes : BRC_OK;
        taken = takes > 0 ? s->theirs : s->ours;
    }
    return taken != NULL ? brc_json_clone(out, taken, err) : BRC_OK;
}

static int is_skipped(const doc_merge *m, const char *pointer, const char *name)
{
    if (*pointer != '\0' || m->skip == NULL)
        return 0;
    for (size_t i = 0; m->skip[i] != NULL; i++)
        if (strcmp(m->skip[i], name) == 0)
            return 1;
    return 0;
}

static int member_merge(const doc_merge *m, const char *pointer, const char *name,
                        const member_sides *s, brc_json *into, brc_error *err)
{
    brc_buf at = BRC_BUF_INIT;
    brc_json *value = NULL;
    int rc;
    if (is_skipped(m, pointer, name)) {
        if (s->ours != NULL)
            BRC_GO(brc_json_clone(&value, s->ours, err));
    } else {
        BRC_GO(brc_buf_text(&at, pointer, err));
        BRC_GO(brc_json_pointer_step(&at, name, err));
        BRC_GO(brc_buf_terminate(&at, err));
        BRC_GO(value_merge(m, (const char *)at.data, s, &value, err));
    }
    rc = BRC_OK;
    if (value != NULL && !(strcmp(name, "attributes") == 0 && *pointer == '\0' &&
                           brc_json_count(value) == 0 && s->ours != s->theirs &&
                           (s->ours == NULL || s->theirs == NULL)))
        rc = brc_json_add(into, name, value, err);
    else
        brc_json_free(value);
done:
    brc_buf_dispose(&at);
    return rc;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

typedef struct side_indexes {
    brc_json_index base, ours, theirs;
} side_indexes;

/* Lists the names that the base does not have, each once. */
static int names_added(const side_indexes *in, const member_sides *s, const char ***out, size_t *n,
                       brc_error *err)
{
    const brc_json *sides[] = {s->ours, s->theirs};
    void *p;
    size_t kept = 0;
    *n = 0;
    BRC_TRY(brc_new_array(&p, brc_json_count(s->ours) + brc_json_count(s->theirs) + 1,
                          sizeof(char *), err));
    const char **names = p;
    for (size_t i = 0; i < 2; i++)
        for (const brc_json *v = brc_json_first(sides[i]); v != NULL; v = brc_json_next(v))
            if (brc_json_index_find(&in->base, brc_json_name(v)) == NULL)
                names[(*n)++] = brc_json_name(v);
    if (*n > 1)
        qsort((void *)names, *n, sizeof(*names), by_name);
    for (size_t i = 0; i < *n; i++)
        if (i == 0 || strcmp(names[i], names[kept - 1]) != 0)
            names[kept++] = names[i];
    *n = kept;
    *out = names;
    return BRC_OK;
}

static int members_merge(const doc_merge *m, const char *pointer, const member_sides *s,
                         const side_indexes *in, brc_json *into, brc_error *err)
{
    const char **names;
    size_t n;
    const brc_json *unknown = brc_json_is_unknown(s->base) ? s->base : NULL;
    for (const brc_json *v = unknown == NULL ? brc_json_first(s->base) : NULL; v != NULL;
         v = brc_json_next(v)) {
        const char *name = brc_json_name(v);
        const member_sides of = {v, brc_json_index_find(&in->ours, name),
                                 brc_json_index_find(&in->theirs, name)};
        BRC_TRY(member_merge(m, pointer, name, &of, into, err));
    }
    BRC_TRY(names_added(in, s, &names, &n, err));
    int rc = BRC_OK;
    for (size_t i = 0; i < n && rc == BRC_OK; i++) {
        const member_sides of = {unknown, brc_json_index_find(&in->ours, names[i]),
                                 brc_json_index_find(&in->theirs, names[i])};
        rc = member_merge(m, pointer, names[i], &of, into, err);
    }
    free((void *)names);
    return rc;
}

static int objects_merge(const doc_merge *m, const char *pointer, const member_sides *s,
                         brc_json **out, brc_error *err)
{
    side_indexes in = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
    int rc;
    *out = brc_json_new_object();
    if (*out == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    BRC_GO(brc_json_index_make(&in.base, s->base, err));
    BRC_GO(brc_json_index_make(&in.ours, s->ours, err));
    BRC_GO(brc_json_index_make(&in.theirs, s->theirs, err));
    rc = members_merge(m, pointer, s, &in, *out, err);
done:
    brc_json_index_dispose(&in.base);
    brc_json_index_dispose(&in.ours);
    brc_json_index_dispose(&in.theirs);
    if (rc < 0) {
        brc_json_free(*out);
        *out = NULL;
    }
    return rc;
}

int brc_doc_merge(brc_json **out, const brc_json *base, const brc_json *ours,
                  const brc_json *theirs, const char *const *skip, brc_doc_clash_fn clash,
                  void *ctx, brc_error *err)
{
    const doc_merge m = {skip, clash, ctx};
    const member_sides sides = {base, ours, theirs};
    return objects_merge(&m, "", &sides, out, err);
}
