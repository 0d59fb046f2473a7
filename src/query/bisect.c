/*
 * Bisection. Its state is a setting of the file, {"bad":ID,"good":[ID...],"skipped":[ID...]}, so it
 * survives the process. No ref moves, and uncommitted changes are not touched. Garbage collection
 * keeps these commits.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/json.h"
#include "../base/sized.h"
#include "../history/ancestry.h"
#include "../history/commit.h"
#include "../store/collect.h"
#include "../work/session.h"

#define BISECT_SETTING "bisect"

typedef struct bisect_call {
    breccia *repo;
    brc_store *store;
    brc_buf was; /* the setting; len 0: there is none */
    brc_buf now;
    brc_bisection known;
    brc_oid named; /* the version that the caller named */
    int has_named;
    brc_bisect_result result;
} bisect_call;

static void bisect_call_dispose(bisect_call *c)
{
    brc_buf_dispose(&c->was);
    brc_buf_dispose(&c->now);
    brc_bisection_dispose(&c->known);
}

/* ---- what is known -------------------------------- */

static int state_is_damaged(const bisect_call *c, brc_error *err)
{
    return brc_fail(err, BRC_ECORRUPT, "%s is damaged: the state of its bisection; 'bisect "
                                       "reset' drops it",
                    brc_store_path(c->store));
}

static int read_known_id(const bisect_call *c, const brc_json *value, brc_oid *out, brc_error *err)
{
    const char *hex;
    brc_oid found[2];
    size_t n;
    if (brc_json_kind(value) != BRC_JSON_STRING || !brc_json_text(value, &hex) ||
        strspn(hex, "0123456789abcdef") != strlen(hex) || strlen(hex) < 8)
        return state_is_damaged(c, err);
    BRC_TRY(brc_objects_by_prefix(c->store, BRC_KIND_COMMIT, hex, found, &n, err));
    if (n != 1)
        return brc_fail(err, BRC_ENOTFOUND, "commit %.8s of the bisection is not in %s any more: "
                                            "it was collected; 'bisect start' begins anew",
                        hex, brc_store_path(c->store));
    *out = found[0];
    return BRC_OK;
}

static int read_known_list(const bisect_call *c, const brc_json *list, brc_commit_set *out,
                           brc_error *err)
{
    if (list == NULL || brc_json_kind(list) != BRC_JSON_ARRAY)
        return state_is_damaged(c, err);
    for (const brc_json *i = brc_json_first(list); i != NULL; i = brc_json_next(i)) {
        brc_oid id;
        BRC_TRY(read_known_id(c, i, &id, err));
        BRC_TRY(brc_commit_set_add(out, &id, err));
    }
    return BRC_OK;
}

static int read_known_members(bisect_call *c, const brc_json *state, brc_error *err)
{
    if (brc_json_kind(state) != BRC_JSON_OBJECT)
        return state_is_damaged(c, err);
    const brc_json *bad = brc_json_member(state, "bad");
    c->known.has_bad = bad != NULL;
    if (bad != NULL)
        BRC_TRY(read_known_id(c, bad, &c->known.bad, err));
    BRC_TRY(read_known_list(c, brc_json_member(state, "good"), &c->known.good, err));
    return read_known_list(c, brc_json_member(state, "skipped"), &c->known.skipped, err);
}

static int read_known(bisect_call *c, brc_error *err)
{
    brc_json *state;
    int rc = brc_setting_find(c->store, BISECT_SETTING, &c->was, err);
    if (rc <= 0)
        return rc;
    if (brc_json_parse(&state, (const char *)c->was.data, strlen((const char *)c->was.data), 0,
                       NULL) < 0)
        return state_is_damaged(c, err);
    rc = read_known_members(c, state, err);
    brc_json_free(state);
    return rc;
}

static int print_known_list(brc_buf *out, const char *name, const brc_commit_set *set,
                            brc_error *err)
{
    char hex[65];
    BRC_TRY(brc_buf_printf(out, err, "\"%s\":[", name));
    for (size_t i = 0; i < set->n; i++)
        BRC_TRY(brc_buf_printf(out, err, "%s\"%s\"", i > 0 ? "," : "",
                               brc_oid_format(hex, &set->ids[i])));
    return brc_buf_text(out, "]", err);
}

static int print_known(bisect_call *c, brc_error *err)
{
    char hex[65];
    brc_buf *out = &c->now;
    BRC_TRY(brc_buf_text(out, "{", err));
    if (c->known.has_bad)
        BRC_TRY(brc_buf_printf(out, err, "\"bad\":\"%s\",", brc_oid_format(hex, &c->known.bad)));
    BRC_TRY(print_known_list(out, "good", &c->known.good, err));
    BRC_TRY(brc_buf_text(out, ",", err));
    BRC_TRY(print_known_list(out, "skipped", &c->known.skipped, err));
    BRC_TRY(brc_buf_text(out, "}", err));
    return brc_buf_terminate(out, err);
}

/* ---- what follows -------------------------------- */

static int look_next(bisect_call *c, brc_error *err)
{
    brc_bisect_result *r = &c->result;
    r->good = c->known.good.n;
    r->skipped = c->known.skipped.n;
    r->state = BRC_BISECT_WAITING;
    if (c->known.has_bad)
        r->flags |= BRC_BISECT_HAS_BAD;
    if (!c->known.has_bad || c->known.good.n == 0)
        return BRC_OK;
    return brc_bisect_next(&c->known, c->store, &r->state, &r->at, &r->left, err);
}

static int set_has(const brc_commit_set *set, const brc_oid *id)
{
    for (size_t i = 0; i < set->n; i++)
        if (brc_oid_cmp(&set->ids[i], id) == 0)
            return 1;
    return 0;
}

static int said_before(const bisect_call *c, const char *was, brc_error *err)
{
    char hex[65];
    return brc_fail(err, BRC_EMISUSE, "%.8s is %s already: 'bisect start' begins anew",
                    brc_oid_format(hex, &c->named), was);
}

/* Finds the named version; without a name, it is the version that was to be tested. */
static int find_named(bisect_call *c, const char *rev, brc_error *err)
{
    c->has_named = 1;
    if (rev == NULL) {
        BRC_TRY(look_next(c, err));
        if (c->result.state == BRC_BISECT_NEXT || c->result.state == BRC_BISECT_FOUND) {
            c->named = c->result.at;
            return BRC_OK;
        }
    }
    BRC_TRY(brc_rev_resolve(c->store, rev != NULL ? rev : "HEAD", &c->named, err));
    brc_commit *there;
    BRC_TRY(brc_commit_need(&there, c->repo->store, &c->named, err));
    brc_commit_free(there);
    return BRC_OK;
}

static int learn(bisect_call *c, int what, const char *rev, brc_error *err)
{
    const brc_oid *id = &c->named;
    if (c->was.len == 0)
        return brc_fail(err, BRC_EMISUSE, "there is no bisection: 'bisect start' begins one");
    BRC_TRY(find_named(c, rev, err));
    if (what == BRC_BISECT_SKIP)
        return brc_commit_set_add(&c->known.skipped, id, err);
    if (what == BRC_BISECT_GOOD) {
        if (c->known.has_bad && brc_oid_cmp(&c->known.bad, id) == 0)
            return said_before(c, "bad", err);
        return brc_commit_set_add(&c->known.good, id, err);
    }
    if (set_has(&c->known.good, id))
        return said_before(c, "good", err);
    c->known.has_bad = 1;
    c->known.bad = *id;
    return BRC_OK;
}

/* Computes the new state and the next version to test. Must be called within a read. */
static int think(bisect_call *c, int what, const char *rev, brc_error *err)
{
    const brc_bisect_result none = BRC_BISECT_RESULT_INIT;
    if (what == BRC_BISECT_START || what == BRC_BISECT_RESET) {
        int rc = brc_setting_find(c->store, BISECT_SETTING, &c->was, err);
        BRC_TRY(rc);
    } else {
        BRC_TRY(read_known(c, err));
    }
    if (what == BRC_BISECT_GOOD || what == BRC_BISECT_BAD || what == BRC_BISECT_SKIP)
        BRC_TRY(learn(c, what, rev, err));
    c->result = none;
    if (what == BRC_BISECT_RESET || (what == BRC_BISECT_LOOK && c->was.len == 0))
        return BRC_OK; /* there is none */
    if (what != BRC_BISECT_LOOK)
        BRC_TRY(print_known(c, err));
    return look_next(c, err);
}

/* ---- the call -------------------------------- */

/* Fails if the state has changed meanwhile. */
static int keep_known(bisect_call *c, brc_error *err)
{
    brc_buf now = BRC_BUF_INIT;
    int rc = brc_setting_find(c->store, BISECT_SETTING, &now, err);
    const int same = now.len == c->was.len &&
                     (now.len == 0 || memcmp(now.data, c->was.data, now.len) == 0);
    brc_buf_dispose(&now);
    BRC_TRY(rc);
    if (!same)
        return brc_fail(err, BRC_ESTALE, "%s: another process has continued this bisection: ask "
                                         "for its status",
                        brc_store_path(c->store));
    if (c->has_named) {
        brc_commit *there;
        BRC_TRY(brc_commit_need(&there, c->repo->store, &c->named, err));
        brc_commit_free(there);
        BRC_TRY(brc_gc_keep_commit(c->store, &c->named, err));
    }
    return brc_setting_put(c->store, BISECT_SETTING,
                           c->now.len > 0 ? (const char *)c->now.data : NULL, err);
}

static int bisect_once(bisect_call *c, int what, const char *rev, brc_error *err)
{
    BRC_TRY(brc_store_begin_read(c->store, err));
    int rc = think(c, what, rev, err);
    brc_store_end_read(c->store);
    if (rc < 0 || what == BRC_BISECT_LOOK)
        return rc;
    BRC_TRY(brc_store_begin(c->store, err));
    rc = keep_known(c, err);
    c->repo->changes++;
    int end = brc_store_end(c->store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

int brc_bisect(brc_bisect_result *out, breccia *repo, int what, const char *rev, brc_error *err)
{
    bisect_call c = {.repo = repo, .store = repo->store};
    if (what < BRC_BISECT_LOOK || what > BRC_BISECT_RESET)
        return brc_fail(err, BRC_EINVAL, "brc_bisect() cannot do %d", what);
    if (rev != NULL && what != BRC_BISECT_GOOD && what != BRC_BISECT_BAD && what != BRC_BISECT_SKIP)
        return brc_fail(err, BRC_EINVAL, "only good, bad and skip take a version, which is "
                                         "'%.80s' here",
                        rev);
    if (brc_store_in_write(repo->store))
        return brc_fail(err, BRC_EMISUSE, "a bisection cannot be a part of a transaction");
    int rc = bisect_once(&c, what, rev, err);
    if (rc == BRC_OK)
        rc = brc_sized_out(out, &c.result, sizeof(c.result), offsetof(brc_bisect_result, skipped),
                           "brc_bisect_result", err);
    bisect_call_dispose(&c);
    return rc;
}
