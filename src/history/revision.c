/* Resolves the words that name commits: refs, ids and their prefixes, ~, ^, @{time}. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../base/alloc.h"
#include "commit.h"

#define MIN_PREFIX 4
#define HEX_DIGITS "0123456789abcdefABCDEF"

int brc_ref_name_check(const char *name, brc_error *err)
{
    size_t len = strlen(name);
    const char *why = NULL;
    if (len == 0 || len > 255)
        why = "it must have 1 to 255 bytes";
    else if (!brc_utf8_valid(name, len))
        why = "it is not valid UTF-8";
    else if (strcmp(name, "HEAD") == 0 || strcmp(name, "@") == 0)
        why = "HEAD and @ are the current branch's other names";
    else if (name[0] == '-' || name[0] == '/' || name[0] == '.' || name[len - 1] == '/' ||
             name[len - 1] == '.')
        why = "it begins with '-', '/' or '.', or ends with '/' or '.'";
    else if (strstr(name, "..") != NULL || strstr(name, "//") != NULL || strstr(name, "@{") != NULL)
        why = "it contains '..', '//' or '@{'";
    else if (name[strcspn(name, " ~^:?*[\\")] != '\0')
        why = "it contains one of ~ ^ : ? * [ \\ or a space";
    for (size_t i = 0; i < len && why == NULL; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
            why = "it contains a control character";
    return why == NULL
               ? BRC_OK
               : brc_fail(err, BRC_EINVAL, "'%.80s' cannot be the name of a branch or tag: %s",
                          name, why);
}

int brc_ref_full(char **out, const char *space, const char *name, brc_error *err)
{
    brc_buf buf = BRC_BUF_INIT;
    int rc = brc_buf_printf(&buf, err, "%s/%s", space, name);
    if (rc == BRC_OK)
        rc = brc_buf_take_text(&buf, out, err);
    brc_buf_dispose(&buf);
    return rc;
}

/* ---- revisions ---------------------------------------------------------------- */

static int rev_unknown(brc_store *store, const char *name, brc_error *err)
{
    return brc_fail(err, BRC_ENOTFOUND, "there is no branch, tag or commit '%.120s' in %s", name,
                    brc_store_path(store));
}

static int rev_unborn(const char *branch, brc_error *err)
{
    return brc_fail(err, BRC_ENOTFOUND, "branch '%s' has no commit yet: make one with 'commit'",
                    branch);
}

/* Finds a ref with that name; sets *found to 1 and *out to its commit. */
static int rev_ref(brc_store *store, const char *space, const char *name, int *found, brc_oid *out,
                   brc_error *err)
{
    char *full;
    int has = 0;
    brc_error ignored = BRC_ERROR_INIT;
    *found = 0;
    BRC_TRY(brc_ref_full(&full, space, name, err));
    int rc = brc_ref_get(store, full, &has, out, &ignored);
    free(full);
    if (rc == BRC_ENOTFOUND)
        return BRC_OK;
    if (rc < 0) {
        if (err != NULL)
            brc_error_copy(err, &ignored);
        return rc;
    }
    *found = 1;
    return has ? BRC_OK : rev_unborn(name, err);
}

/* Fails for a version that has expired, or that no longer had a name and was collected. `where`
 * adds details, or is "". */
static int rev_gone(brc_store *store, const brc_oid *id, const char *where, brc_error *err)
{
    char hex[65];
    return brc_fail(err, BRC_ENOTFOUND,
                    "%s: commit %.8s%s is no longer kept (expired, or without a name, and "
                    "collected): 'breccia log' lists the commits that are",
                    brc_store_path(store), brc_oid_format(hex, id), where);
}

typedef struct named_once {
    const char *prefix;
    size_t len;
    int found;
    brc_oid id; /* the last of these */
} named_once;

static int note_prefixed(void *ctx, const brc_oid *id, brc_error *err)
{
    char hex[65];
    named_once *named = ctx;
    (void)err;
    if (strncasecmp(brc_oid_format(hex, id), named->prefix, named->len) != 0)
        return BRC_OK;
    named->found = 1;
    named->id = *id;
    return BRC_OK;
}

/* Fails for a prefix that no commit in the file has: perhaps the operation log names a commit with
 * it. */
static int rev_missing(brc_store *store, const char *name, size_t digits, brc_error *err)
{
    named_once named = {.prefix = name, .len = digits};
    if (digits > 0)
        BRC_TRY(brc_store_each_id(store, BRC_IDS_IN_OPLOG, note_prefixed, &named, err));
    return named.found ? rev_gone(store, &named.id, "", err) : rev_unknown(store, name, err);
}

static int rev_prefix(brc_store *store, const char *name, brc_oid *out, brc_error *err)
{
    brc_oid found[2];
    size_t n = 0, len = strlen(name);
    const int is_hex = len >= MIN_PREFIX && strspn(name, HEX_DIGITS) == len;
    if (is_hex)
        BRC_TRY(brc_objects_by_prefix(store, BRC_KIND_COMMIT, name, found, &n, err));
    if (n == 0)
        return rev_missing(store, name, is_hex ? len : 0, err);
    if (n > 1)
        return brc_fail(err, BRC_EAMBIGUOUS,
                        "'%s' matches several commit ids: give more digits", name);
    *out = found[0];
    return BRC_OK;
}

int brc_rev_is_id(brc_store *store, const char *name, int *is, brc_oid *out, brc_error *err)
{
    brc_oid found[2];
    size_t n = 0, len = strlen(name);
    if (len == 2 * brc_store_id_len(store) && strspn(name, HEX_DIGITS) == len)
        BRC_TRY(brc_objects_by_prefix(store, BRC_KIND_COMMIT, name, found, &n, err));
    *is = n == 1;
    if (*is)
        *out = found[0];
    return BRC_OK;
}

static int rev_base(brc_store *store, const char *name, brc_oid *out, brc_error *err)
{
    int found;
    BRC_TRY(brc_rev_is_id(store, name, &found, out, err));
    if (found)
        return BRC_OK;
    if (strcmp(name, "HEAD") == 0 || strcmp(name, "@") == 0)
        BRC_TRY(brc_head_get(store, &name, err));
    BRC_TRY(rev_ref(store, "heads", name, &found, out, err));
    if (!found)
        BRC_TRY(rev_ref(store, "tags", name, &found, out, err));
    return found ? BRC_OK : rev_prefix(store, name, out, err);
}

/* Fails if a commit that the operation log names is gone. The log names commits longer than they
 * are kept. A commit to which the branch points now must exist: if it does not, that is damage,
 * which the reader of the commit reports. */
static int must_be_kept(brc_store *store, const char *full, const brc_oid *id, const char *time,
                        brc_error *err)
{
    brc_object object = {.id = *id}, *one = &object;
    brc_oid now;
    char where[200];
    int has = 0;
    BRC_TRY(brc_objects_find(store, &one, 1, err));
    if (object.found)
        return BRC_OK;
    if (brc_ref_get(store, full, &has, &now, NULL) == BRC_OK && has && brc_oid_cmp(&now, id) == 0)
        return BRC_OK;
    snprintf(where, sizeof(where), ", where '%.120s' was at %.40s,", full + strlen("heads/"), time);
    return rev_gone(store, id, where, err);
}

/* Resolves BRANCH@{TIME}; the part before "@{" has `len` bytes. */
static int rev_at_time(brc_store *store, const char *name, const char *time, brc_oid *out,
                       brc_error *err)
{
    int64_t us;
    char *full;
    if (*name == '\0' || strcmp(name, "HEAD") == 0)
        BRC_TRY(brc_head_get(store, &name, err));
    BRC_TRY(brc_time_parse(&us, time, err));
    BRC_TRY(brc_ref_full(&full, "heads", name, err));
    int rc = brc_ref_at(store, full, us, out, err);
    if (rc == BRC_OK)
        rc = must_be_kept(store, full, out, time, err);
    free(full);
    return rc;
}

static int rev_parent(brc_store *store, brc_oid *at, unsigned long which, const char *rev,
                      brc_error *err)
{
    brc_commit *c;
    if (which == 0)
        return BRC_OK;
    BRC_TRY(brc_commit_get(&c, store, at, err));
    int rc = BRC_OK;
    if (which <= c->nparents)
        *at = c->parents[which - 1];
    else
        rc = brc_fail(err, BRC_ENOTFOUND,
                      c->flags & BRC_PAST_EXPIRED
                          ? "'%.120s' is no longer kept (expired): 'breccia log' lists the commits "
                            "that are"
                          : "'%.120s' goes back beyond the first commit",
                      rev);
    brc_commit_free(c);
    return rc;
}

/* Follows the steps after the name: ~3, ^, ^2, in any number. */
static int rev_steps(brc_store *store, const char *at, const char *rev, brc_oid *out,
                     brc_error *err)
{
    while (*at != '\0') {
        char kind = *at++, *end = NULL;
        unsigned long n = 1;
        if (*at >= '0' && *at <= '9') {
            errno = 0;
            n = strtoul(at, &end, 10);
            if (errno != 0 || n > INT_MAX)
                return rev_unknown(store, rev, err);
            at = end;
        }
        if (kind == '^') {
            BRC_TRY(rev_parent(store, out, n, rev, err));
        } else if (kind == '~') {
            while (n-- > 0)
                BRC_TRY(rev_parent(store, out, 1, rev, err));
        } else {
            return rev_unknown(store, rev, err);
        }
    }
    return BRC_OK;
}

int brc_rev_resolve(brc_store *store, const char *rev, brc_oid *out, brc_error *err)
{
    brc_buf name = BRC_BUF_INIT;
    const char *time = strstr(rev, "@{"), *end = time != NULL ? strchr(time, '}') : NULL;
    size_t len = time != NULL ? (size_t)(time - rev) : strcspn(rev, "~^");
    int rc;
    memset(out, 0, sizeof(*out));
    BRC_GO(brc_buf_append(&name, rev, len, err));
    BRC_GO(brc_buf_byte(&name, 0, err));
    if (time != NULL) {
        if (end == NULL) {
            rc = rev_unknown(store, rev, err);
            goto done;
        }
        size_t at = name.len;
        BRC_GO(brc_buf_append(&name, time + 2, (size_t)(end - time - 2), err));
        BRC_GO(brc_buf_terminate(&name, err));
        BRC_GO(rev_at_time(store, (const char *)name.data, (const char *)name.data + at, out, err));
        BRC_GO(rev_steps(store, end + 1, rev, out, err));
    } else {
        BRC_GO(rev_base(store, (const char *)name.data, out, err));
        BRC_GO(rev_steps(store, rev + len, rev, out, err));
    }
done:
    brc_buf_dispose(&name);
    return rc;
}

int brc_rev_range(const char *rev, int *is_range, char **from, char **to, brc_error *err)
{
    const char *dots = strstr(rev, "..");
    *is_range = dots != NULL;
    *from = *to = NULL;
    if (dots == NULL)
        return BRC_OK;
    if (dots[2] == '.')
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "'%.120s': a range is written with two dots, A..B", rev);
    BRC_TRY(brc_dup_n(from, dots > rev ? rev : "HEAD", dots > rev ? (size_t)(dots - rev) : 4, err));
    int rc = brc_dup(to, dots[2] != '\0' ? dots + 2 : "HEAD", err);
    if (rc < 0) {
        free(*from);
        *from = NULL;
    }
    return rc;
}
