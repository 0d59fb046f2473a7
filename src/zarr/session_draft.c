/*
 * Private drafts by their number, within one process, and by a token in all of a machine. A token
 * is the draft's number and the random part of its owner: who knows it has looked into the file, or
 * was told. The draft stays its owner's.
 *
 *   draft:NUMBER:HEX
 *
 * A name comes before the draft, and has the owner whole: whoever changes something first begins
 * it. FILE is a digest of the file's secret and of what follows.
 *
 *   draft:0:FILE:LENGTH:BRANCH OWNER, without the space
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/hash.h"
#include "../base/process.h"
#include "session_draft.h"

int brc_session_draft(int64_t *id, brc_session *s, brc_error *err)
{
    *id = 0;
    if (s->mode != BRC_SESSION_PRIVATE)
        return brc_fail(err, BRC_EMISUSE,
                        "this session has no draft of its own: open a private one");
    BRC_TRY(brc_session_begin(s, err));
    BRC_TRY(brc_session_end(s, BRC_OK, err));
    s->is_handed_out = 1;
    *id = s->draft.id;
    return BRC_OK;
}

/* Within one transaction, or a read. */
static int find_row_of(brc_store *store, int64_t id, brc_draft_row **rows, size_t *n,
                       const brc_draft_row **out, brc_error *err)
{
    *out = NULL;
    BRC_TRY(brc_draft_list(store, rows, n, err));
    for (size_t at = 0; at < *n && *out == NULL; at++)
        if ((*rows)[at].draft.id == id)
            *out = &(*rows)[at];
    return BRC_OK;
}

static int check_owner(const brc_draft_row *row, int has_token, brc_error *err)
{
    const long long id = (long long)row->draft.id;
    if (row->draft.kind != BRC_DRAFT_PRIVATE)
        return brc_fail(err, BRC_EMISUSE,
                        "draft %lld is what branch '%s' shares: open a session on the branch", id,
                        row->branch);
    if (brc_process_is_this(row->owner))
        return BRC_OK;
    const int state = brc_process_state(row->owner);
    if (state == BRC_PROCESS_DEAD)
        return brc_fail(err, BRC_EMISUSE,
                        "draft %lld is of process %lld, which has ended: adopt it first", id,
                        (long long)brc_process_id(row->owner));
    if (has_token)
        return BRC_OK;
    return brc_fail(err, BRC_EBUSY, "draft %lld belongs to another process, %lld", id,
                    (long long)brc_process_id(row->owner));
}

int brc_session_take(brc_session **out, breccia *repo, const brc_draft_row *row, brc_error *err)
{
    BRC_TRY(brc_session_of_draft(out, repo, row->branch, row->draft.id, err));
    int rc = brc_dup(&(*out)->owner, row->owner, err);
    (*out)->start = (*out)->draft;
    (*out)->is_handed_out = 1;
    if (rc < 0) {
        brc_session_unref(*out);
        *out = NULL;
    }
    return rc;
}

int brc_draft_open(brc_session **out, breccia *repo, int64_t id, brc_error *err)
{
    brc_draft_row *rows = NULL;
    const brc_draft_row *row;
    size_t n = 0;
    *out = NULL;
    BRC_TRY(brc_store_writable(repo->store, err));
    int rc = find_row_of(repo->store, id, &rows, &n, &row, err);
    if (rc == BRC_OK && row == NULL)
        rc = brc_fail(err, BRC_ENOTFOUND, "%s has no draft %lld", brc_store_path(repo->store),
                      (long long)id);
    if (rc == BRC_OK)
        rc = check_owner(row, 0, err);
    if (rc == BRC_OK)
        rc = brc_session_take(out, repo, row, err);
    brc_draft_rows_free(rows, n);
    return rc;
}

/* ---- tokens -------------------------------- */

static const char token_start[] = "draft:";

int brc_session_token(brc_buf *out, brc_session *s, brc_error *err)
{
    char secret[BRC_PROCESS_TOKEN + 1];
    brc_draft_row *rows = NULL;
    const brc_draft_row *row;
    size_t n = 0;
    int64_t id;
    BRC_TRY(brc_session_draft(&id, s, err));
    int rc = find_row_of(s->repo->store, id, &rows, &n, &row, err);
    const int has = rc == BRC_OK && row != NULL ? brc_process_token(secret, row->owner, err) : rc;
    if (has == 0)
        rc = brc_fail(err, BRC_ESTALE, "draft %lld is not this session's any more",
                      (long long)id);
    rc = has < 0 ? has : rc;
    if (rc == BRC_OK)
        rc = brc_buf_printf(out, err, "%s%lld:%s", token_start, (long long)id, secret);
    if (rc == BRC_OK)
        rc = brc_buf_terminate(out, err);
    brc_draft_rows_free(rows, n);
    return rc;
}

/* ---- names -------------------------------- */

static const char name_start[] = "draft:0:";
enum { FILE_DIGITS = 16, FILE_LEN = FILE_DIGITS + 1 };

static void file_digest(char out[FILE_LEN + 1], const brc_store *store, const char *rest)
{
    const uint64_t file = brc_hash_bytes(brc_store_secret(store), BRC_SECRET_LEN);
    snprintf(out, FILE_LEN + 1, "%016" PRIx64 ":", file ^ brc_hash_bytes(rest, strlen(rest)));
}

static int find_branch(brc_store *store, const char **branch, brc_error *err)
{
    char *full;
    int has;
    brc_oid tip;
    if (*branch == NULL || strcmp(*branch, "HEAD") == 0)
        BRC_TRY(brc_head_get(store, branch, err));
    BRC_TRY(brc_ref_full(&full, "heads", *branch, err));
    int rc = brc_ref_get(store, full, &has, &tip, err);
    free(full);
    return rc;
}

int brc_session_name(brc_buf *out, breccia *repo, const char *branch, brc_error *err)
{
    char file[FILE_LEN + 1];
    brc_buf rest = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_store_writable(repo->store, err));
    BRC_GO(find_branch(repo->store, &branch, err));
    BRC_GO(brc_buf_printf(&rest, err, "%zu:%s", strlen(branch), branch));
    BRC_GO(brc_process_describe(&rest, err));
    BRC_GO(brc_buf_terminate(&rest, err));
    file_digest(file, repo->store, (const char *)rest.data);
    BRC_GO(brc_buf_printf(out, err, "%s%s%s", name_start, file, (const char *)rest.data));
    rc = brc_buf_terminate(out, err);
done:
    brc_buf_dispose(&rest);
    return rc;
}

/* *branch stays NULL where it is none; `name` without its start. */
static int name_parse(const char *name, char **branch, const char **owner, brc_error *err)
{
    char secret[BRC_PROCESS_TOKEN + 1];
    const char *at = name + FILE_LEN;
    size_t len = 0;
    if (strspn(name, "0123456789abcdef") != FILE_DIGITS || name[FILE_DIGITS] != ':')
        return BRC_OK;
    for (; *at >= '0' && *at <= '9' && len < 100000; at++)
        len = len * 10 + (size_t)(*at - '0');
    if (*at != ':' || len == 0 || strnlen(at + 1, len + 1) <= len)
        return BRC_OK;
    *owner = at + 1 + len;
    return brc_process_token(secret, *owner, NULL) > 0 ? brc_dup_n(branch, at + 1, len, err)
                                                       : BRC_OK;
}

static int is_name(const char *token)
{
    char *branch = NULL;
    const char *owner;
    const size_t len = sizeof(name_start) - 1;
    if (token == NULL || strncmp(token, name_start, len) != 0)
        return 0;
    (void)!name_parse(token + len, &branch, &owner, NULL);
    const int is = branch != NULL;
    free(branch);
    return is;
}

/* ---- finding a draft by its token -------------------------------- */

/* Whatever stands there: hexadecimal digits of the right number, and nothing behind them. */
static int token_parse(const char *token, int64_t *id, const char **secret, brc_error *err)
{
    const size_t start = sizeof(token_start) - 1;
    const char *at = token;
    *id = 0;
    if (at != NULL && strncmp(at, token_start, start) == 0)
        for (at += start; *at >= '0' && *at <= '9' && *id <= (INT64_MAX - 9) / 10; at++)
            *id = *id * 10 + (*at - '0');
    if (*id > 0 && token[start] != '0' && *at == ':' &&
        strspn(at + 1, "0123456789abcdef") == BRC_PROCESS_TOKEN &&
        at[1 + BRC_PROCESS_TOKEN] == '\0') {
        *secret = at + 1;
        return BRC_OK;
    }
    return brc_fail(err, BRC_EINVAL, "this is no token of a session's draft: "
                                     "brc_session_token() gives one");
}

static int no_such_draft(brc_store *store, int64_t id, brc_error *err)
{
    int was;
    BRC_TRY(brc_draft_was(store, id, &was, err));
    if (was)
        return brc_fail(err, BRC_ESTALE,
                        "%s: draft %lld is gone: it was joined, adopted, handed over or dropped",
                        brc_store_path(store), (long long)id);
    return brc_fail(err, BRC_ENOTFOUND, "%s has no draft %lld: the token is of another file",
                    brc_store_path(store), (long long)id);
}

int brc_token_find(const brc_draft_row **out, brc_store *store, const char *token,
                   const brc_draft_row *rows, size_t n, brc_error *err)
{
    char own[BRC_PROCESS_TOKEN + 1];
    const char *secret = "";
    int64_t id;
    *out = NULL;
    if (is_name(token))
        return brc_fail(err, BRC_EMISUSE, "this is the name of a session that is no other's child");
    BRC_TRY(token_parse(token, &id, &secret, err));
    for (size_t at = 0; at < n; at++)
        if (rows[at].draft.id == id)
            *out = &rows[at];
    if (*out == NULL)
        return no_such_draft(store, id, err);
    const int has = (*out)->draft.kind == BRC_DRAFT_PRIVATE && (*out)->owner[0] != '\0'
                        ? brc_process_token(own, (*out)->owner, err) : 0;
    if (has > 0 && memcmp(own, secret, BRC_PROCESS_TOKEN) == 0)
        return BRC_OK;
    *out = NULL;
    if (has < 0)
        return has;
    return brc_fail(err, BRC_ESTALE,
                    "%s: draft %lld is not the one of this token: its changes were adopted or "
                    "handed over, or the token is of another file",
                    brc_store_path(store), (long long)id);
}

static int attach_by_name(brc_session **out, breccia *repo, const char *name, brc_error *err)
{
    char file[FILE_LEN + 1], *branch = NULL;
    const char *owner = NULL;
    int rc = name_parse(name, &branch, &owner, err);
    if (rc == BRC_OK && branch == NULL)
        return brc_fail(err, BRC_EINVAL, "this is no name of a session: brc_session_name() gives "
                                         "one");
    if (rc == BRC_OK)
        file_digest(file, repo->store, name + FILE_LEN);
    if (rc == BRC_OK && strncmp(name, file, FILE_LEN) != 0)
        rc = brc_fail(err, BRC_ENOTFOUND, "%s is not the file that this session is of",
                      brc_store_path(repo->store));
    const int is_own = rc == BRC_OK && brc_process_is_this(owner);
    if (rc == BRC_OK && !is_own && brc_process_state(owner) == BRC_PROCESS_DEAD)
        rc = brc_fail(err, BRC_EMISUSE,
                      "this session is of process %lld, which has ended: adopt its changes, if "
                      "there are any",
                      (long long)brc_process_id(owner));
    if (rc == BRC_OK)
        rc = brc_session_by_name(out, repo, branch, owner, err);
    if (rc == BRC_OK)
        (*out)->is_elsewhere = !is_own;
    free(branch);
    return rc;
}

int brc_session_attach(brc_session **out, breccia *repo, const char *token, brc_error *err)
{
    brc_draft_row *rows = NULL;
    const brc_draft_row *row;
    size_t n = 0;
    *out = NULL;
    BRC_TRY(brc_store_writable(repo->store, err));
    if (token != NULL && strncmp(token, name_start, sizeof(name_start) - 1) == 0)
        return attach_by_name(out, repo, token + sizeof(name_start) - 1, err);
    int rc = brc_draft_list(repo->store, &rows, &n, err);
    if (rc == BRC_OK)
        rc = brc_token_find(&row, repo->store, token, rows, n, err);
    if (rc == BRC_OK)
        rc = check_owner(row, 1, err);
    if (rc == BRC_OK)
        rc = brc_session_take(out, repo, row, err);
    brc_draft_rows_free(rows, n);
    return rc;
}
