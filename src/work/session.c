#include "session.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/hash.h"
#include "../base/process.h"
#include "../base/sized.h"
#include "../history/commit.h"
#include "../store/cache.h"
#include "../store/collect.h"
#include "bulk_write.h"
#include "session_nodes.h"

static int session_by_name(brc_session **out, breccia *repo, const char *branch, const char *owner,
                           brc_error *err);

/* ==== repo ================================ */

breccia *brc_repo_ref(breccia *repo)
{
    repo->refs++;
    return repo;
}

void brc_repo_unref(breccia *repo)
{
    if (repo == NULL || --repo->refs > 0)
        return;
    brc_pipe_dispose(&repo->pipe);
    brc_store_close(repo->store);
    brc_shared_unref(repo->shared);
    free(repo->vfs);
    free(repo->pipeline_text);
    free(repo->libexec);
    free(repo->cache);
    free(repo->prototype);
    free(repo);
}

/* ---- transactions -------------------------------- */

int brc_begin(breccia *repo, brc_error *err)
{
    return brc_store_begin(repo->store, err);
}

int brc_end(breccia *repo, uint32_t flags, brc_error *err)
{
    BRC_TRY(brc_flags_check(flags, BRC_END_KEEP, "brc_end()", err));
    const int keep = (flags & BRC_END_KEEP) != 0;
    int rc = brc_store_end(repo->store, keep, err);
    if (!keep || rc < 0) /* sessions that have seen the change must read anew */
        repo->changes++;
    return rc;
}

int brc_end_with(breccia *repo, int rc, brc_error *err)
{
    int ended = brc_end(repo, rc >= 0 ? BRC_END_KEEP : 0, rc >= 0 ? err : NULL);
    return rc < 0 ? rc : ended;
}

/* ---- tasks -------------------------------- */

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

brc_task brc_task_begin(breccia *repo, const char *phase, uint64_t bytes)
{
    if (repo->task_depth++ == 0) {
        repo->task_phase = phase;
        repo->task_done = 0;
        repo->task_total = bytes;
        repo->task_limit = bytes > 0 ? bytes : UINT64_MAX;
    }
    brc_task task = {add_saturated(repo->task_done, bytes), repo->task_limit};
    if (task.end > task.limit)
        task.end = task.limit;
    if (bytes > 0)
        repo->task_limit = task.end;
    return task;
}

void brc_task_know(breccia *repo, uint64_t bytes)
{
    if (repo->task_depth != 1 || repo->task_total > 0 || repo->task_done > 0 || bytes == 0)
        return;
    repo->task_total = repo->task_limit = bytes;
}

static int task_tell(const breccia *repo)
{
    return repo->progress != NULL
               ? repo->progress(repo->progress_ctx, repo->task_phase, repo->task_done,
                                repo->task_total)
               : 0;
}

int brc_task_step(breccia *repo, uint64_t bytes, brc_error *err)
{
    BRC_TRY(brc_store_check_interrupt(repo->store, err));
    if (repo->task_depth == 0)
        return BRC_OK;
    uint64_t done = add_saturated(repo->task_done, bytes);
    repo->task_done = done < repo->task_limit ? done : repo->task_limit;
    if (task_tell(repo) == 0)
        return BRC_OK;
    return brc_fail(err, BRC_EINTERRUPT, "stopped on request; %s is as it was",
                    brc_store_path(repo->store));
}

void brc_task_end(breccia *repo, const brc_task *task, int rc)
{
    repo->task_limit = task->limit;
    if (rc >= 0 && repo->task_done < task->end)
        repo->task_done = task->end;
    if (--repo->task_depth == 0 && rc >= 0)
        (void)task_tell(repo); /* it is too late to stop */
}

/* ==== session draft ================================ */

/*
 * Private drafts: by number within one process, and by token on the whole machine. A token consists
 * of the draft's number and the random part of its owner: a process that knows the token has either
 * read the file or was given the token. The draft stays its owner's.
 *
 *   draft:NUMBER:HEX
 *
 * A name exists before the draft and has the whole owner: the process that first changes something
 * begins the draft. FILE is a digest of the file's secret and of the text that follows.
 *
 *   draft:0:FILE:LENGTH:BRANCH OWNER, without the space
 */

/* Begins the draft, if there is none yet. It stays from now on. */
static int give_number(brc_session *s, brc_error *err)
{
    if (s->mode != BRC_SESSION_PRIVATE)
        return brc_fail(err, BRC_EMISUSE,
                        "this session has no draft of its own: open a private one");
    BRC_TRY(brc_session_begin(s, err));
    BRC_TRY(brc_session_end(s, BRC_OK, err));
    s->is_handed_out = 1;
    return BRC_OK;
}

/* Finds a row. Call within one transaction, or a read. */
static int find_row_of(brc_store *store, int64_t id, brc_draft_row **rows, size_t *n,
                       const brc_draft_row **out, brc_error *err)
{
    *out = NULL;
    BRC_TRY(brc_draft_list(store, BRC_DRAFTS_ALL, 0, rows, n, err));
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
                        "draft %lld is shared on branch '%s': open a session on the branch", id,
                        row->branch);
    if (brc_process_is_this(row->owner))
        return BRC_OK;
    const int state = brc_process_state(row->owner);
    if (state == BRC_PROCESS_DEAD)
        return brc_fail(err, BRC_EMISUSE,
                        "draft %lld belongs to process %lld, which has ended: adopt it first", id,
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

/* Opens a draft of this process by its number. */
static int open_number(brc_session **out, breccia *repo, int64_t id, brc_error *err)
{
    brc_draft_row *rows = NULL;
    const brc_draft_row *row;
    size_t n = 0;
    int rc = find_row_of(repo->store, id, &rows, &n, &row, err);
    if (rc == BRC_OK && row == NULL)
        rc = brc_fail(err, BRC_ENOTFOUND, "there is no draft %lld in %s", (long long)id,
                      brc_store_path(repo->store));
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
    BRC_TRY(give_number(s, err));
    const int64_t id = s->draft.id;
    int rc = find_row_of(s->repo->store, id, &rows, &n, &row, err);
    const int has = rc == BRC_OK && row != NULL ? brc_process_token(secret, row->owner, err) : rc;
    if (has == 0)
        rc = brc_fail(err, BRC_ESTALE, "draft %lld no longer belongs to this session",
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

/* Parses a name without its start. *branch stays NULL if the name is not valid. */
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

/* Reads a number up to the first other character; -1 for a number that is too large. */
static int64_t number_parse(const char **at)
{
    int64_t id = 0;
    for (; **at >= '0' && **at <= '9'; ++*at)
        id = id >= 0 && id <= (INT64_MAX - 9) / 10 ? id * 10 + (**at - '0') : -1;
    return id;
}

/* Parses a token of any origin: the right number of hexadecimal digits, and nothing after them. */
static int token_parse(const char *token, int64_t *id, const char **secret, brc_error *err)
{
    const size_t start = sizeof(token_start) - 1;
    const char *at = token != NULL && strncmp(token, token_start, start) == 0 ? token + start : "";
    *id = number_parse(&at);
    if (*id > 0 && token[start] != '0' && *at == ':' &&
        strspn(at + 1, "0123456789abcdef") == BRC_PROCESS_TOKEN &&
        at[1 + BRC_PROCESS_TOKEN] == '\0') {
        *secret = at + 1;
        return BRC_OK;
    }
    return brc_fail(err, BRC_EINVAL, "this is not a valid token of a session's draft: "
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
    return brc_fail(err, BRC_ENOTFOUND,
                    "there is no draft %lld in %s: the token is of another file", (long long)id,
                    brc_store_path(store));
}

int brc_token_find(const brc_draft_row **out, brc_store *store, const char *token,
                   const brc_draft_row *rows, size_t n, brc_error *err)
{
    char own[BRC_PROCESS_TOKEN + 1];
    const char *secret = "";
    int64_t id;
    *out = NULL;
    if (is_name(token))
        return brc_fail(err, BRC_EMISUSE,
                        "this names a session that is not a child of another session");
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
                    "%s: draft %lld does not match this token: its changes were adopted or "
                    "handed over, or the token is of another file",
                    brc_store_path(store), (long long)id);
}

static int attach_by_name(brc_session **out, breccia *repo, const char *name, brc_error *err)
{
    char file[FILE_LEN + 1], *branch = NULL;
    const char *owner = NULL;
    int rc = name_parse(name, &branch, &owner, err);
    if (rc == BRC_OK && branch == NULL)
        return brc_fail(err, BRC_EINVAL, "this is not a valid name of a session: "
                                         "brc_session_name() gives one");
    if (rc == BRC_OK)
        file_digest(file, repo->store, name + FILE_LEN);
    if (rc == BRC_OK && strncmp(name, file, FILE_LEN) != 0)
        rc = brc_fail(err, BRC_ENOTFOUND, "%s is not the file of this session",
                      brc_store_path(repo->store));
    const int is_own = rc == BRC_OK && brc_process_is_this(owner);
    if (rc == BRC_OK && !is_own && brc_process_state(owner) == BRC_PROCESS_DEAD)
        rc = brc_fail(err, BRC_EMISUSE,
                      "this session belongs to process %lld, which has ended: adopt its "
                      "changes, if there are any",
                      (long long)brc_process_id(owner));
    if (rc == BRC_OK)
        rc = session_by_name(out, repo, branch, owner, err);
    if (rc == BRC_OK)
        (*out)->is_elsewhere = !is_own;
    free(branch);
    return rc;
}

static int open_token(brc_session **out, breccia *repo, const char *token, brc_error *err)
{
    brc_draft_row *rows = NULL;
    const brc_draft_row *row;
    size_t n = 0;
    *out = NULL;
    BRC_TRY(brc_store_writable(repo->store, err));
    const char *end = token != NULL ? token : "";
    const int64_t id = number_parse(&end);
    if (id > 0 && *end == '\0')
        return open_number(out, repo, id, err);
    if (token != NULL && strncmp(token, name_start, sizeof(name_start) - 1) == 0)
        return attach_by_name(out, repo, token + sizeof(name_start) - 1, err);
    int rc = brc_draft_list(repo->store, BRC_DRAFTS_ALL, 0, &rows, &n, err);
    if (rc == BRC_OK)
        rc = brc_token_find(&row, repo->store, token, rows, n, err);
    if (rc == BRC_OK)
        rc = check_owner(row, 1, err);
    if (rc == BRC_OK)
        rc = brc_session_take(out, repo, row, err);
    brc_draft_rows_free(rows, n);
    return rc;
}

/* ==== session ================================ */

brc_session *brc_session_ref(brc_session *s)
{
    s->refs++;
    return s;
}

/* Drops the session's empty draft, which nobody needs, as soon as the lock is free. */
static void drop_empty(brc_session *s)
{
    if (s->owner != NULL && s->draft.id != 0 && !s->is_handed_out && !s->is_elsewhere)
        brc_draft_drop_soon(s->repo->store, s->draft.id,
                            s->is_named ? BRC_DROP_EMPTY : BRC_DROP_END);
}

void brc_session_unref(brc_session *s)
{
    if (s == NULL || --s->refs > 0)
        return;
    if (s->bulk != NULL)
        s->bulk->drop(s);
    if (s->keys != NULL)
        s->keys_free(s->keys);
    if (s->saver != NULL)
        s->saves_end(s);
    drop_empty(s);
    if (!brc_oid_is_zero(&s->pinned))
        brc_pin_let_go(s->repo->store, &s->pinned);
    brc_repo_unref(s->repo);
    free(s->branch);
    free(s->owner);
    free(s->saver);
    free(s->log);
    free(s);
}

void brc_session_free(brc_session *s)
{
    brc_session_unref(s);
}

breccia *brc_session_repo(const brc_session *s)
{
    return s->repo;
}

const brc_registry *brc_session_registry(const brc_session *s)
{
    return s->repo->registry;
}

/* ---- opening -------------------------------- */

static int session_branch(brc_session *s, const char *rev, brc_error *err)
{
    int has;
    brc_oid target;
    char *full;
    if (rev == NULL || strcmp(rev, "HEAD") == 0)
        BRC_TRY(brc_head_get(s->repo->store, &rev, err));
    BRC_TRY(brc_dup(&s->branch, rev, err));
    BRC_TRY(brc_ref_full(&full, "heads", s->branch, err));
    int rc = brc_ref_get(s->repo->store, full, &has, &target, err);
    free(full);
    return rc;
}

int brc_session_tip(brc_session *s, int *has, brc_oid *commit, brc_oid *root, brc_error *err)
{
    char *full;
    memset(root, 0, sizeof(*root));
    BRC_TRY(brc_ref_full(&full, "heads", s->branch, err));
    int rc = brc_ref_get(s->repo->store, full, has, commit, err);
    free(full);
    if (rc == BRC_OK && *has)
        rc = brc_commit_root(s->repo->store, commit, root, err);
    return rc;
}

/* Reads the branch as it is, without uncommitted changes. */
static int read_tip(brc_session *s, brc_draft_head *out, brc_oid *root, brc_error *err)
{
    memset(out, 0, sizeof(*out));
    BRC_TRY(brc_session_tip(s, &out->has_base, &out->base, root, err));
    out->has_tip = out->has_base;
    out->tip = out->base;
    return BRC_OK;
}

static int draft_root(brc_session *s, brc_error *err)
{
    memset(&s->base, 0, sizeof(s->base));
    return s->draft.has_base ? brc_commit_root(s->repo->store, &s->draft.base, &s->base, err)
                             : BRC_OK;
}

static int sync_shared(brc_session *s, brc_error *err)
{
    if (s->shows_commits)
        return read_tip(s, &s->draft, &s->base, err);
    BRC_TRY(brc_draft_shared(s->repo->store, s->branch, &s->draft, err));
    return s->draft.id != 0 ? draft_root(s, err) : read_tip(s, &s->draft, &s->base, err);
}

/* Keeps following the branch if the branch was renamed. */
static int sync_branch(brc_session *s, brc_error *err)
{
    char *branch;
    BRC_TRY(brc_draft_branch(s->repo->store, s->draft.id, &branch, err));
    free(s->branch);
    s->branch = branch;
    return BRC_OK;
}

/* Updates a session without changes to the branch as it is now, on which its first change will
 * build. Three things stay over the session as it was: the finished part of a bulk write, the state
 * that a savepoint restores, and a child, which stays over the state of its parent. */
static int sync_clean(brc_session *s, brc_error *err)
{
    int unused;
    brc_draft_head tip;
    brc_oid root;
    if (s->owner == NULL || s->bulk != NULL || s->draft.saves || s->draft.parent != 0)
        return BRC_OK;
    BRC_TRY(brc_draft_is_unused(s->repo->store, &s->draft, &unused, err));
    if (!unused)
        return BRC_OK;
    BRC_TRY(read_tip(s, &tip, &root, err));
    s->draft.has_base = s->draft.has_tip = tip.has_tip;
    s->draft.base = s->draft.tip = tip.tip;
    return BRC_OK;
}

/* Finds the draft by its number, or by its owner if another session of that name may have begun
 * it. */
static int find_private(brc_session *s, brc_draft_head *found, brc_error *err)
{
    memset(found, 0, sizeof(*found));
    if (s->draft.id != 0)
        BRC_TRY(brc_draft_get(s->repo->store, s->draft.id, found, err));
    if (found->id == 0 && s->is_named)
        BRC_TRY(brc_draft_of_owner(s->repo->store, s->owner, found, err));
    return BRC_OK;
}

/* Tells whether the row is gone because the last commit or another session of that name dropped the
 * empty draft. */
static int is_begun_anew(const brc_session *s, const brc_draft_head *found)
{
    if (found->id == 0 && s->is_resting)
        return 1;
    return s->is_named && found->id == 0 && s->bulk == NULL && !s->draft.saves &&
           s->draft.parent == 0 && brc_process_state(s->owner) != BRC_PROCESS_DEAD;
}

int brc_session_rest(brc_session *s, const brc_oid *commit, brc_error *err)
{
    BRC_TRY(brc_draft_advance(s->repo->store, s->draft.id, commit, err));
    s->is_resting = !s->is_handed_out;
    if (s->is_resting)
        brc_draft_drop_late(s->repo->store, s->draft.id, BRC_DROP_EMPTY);
    return BRC_OK;
}

/* Handles a row that is gone: either the transaction that made the row was undone, or another
 * session has taken the draft. */
static int sync_private(brc_session *s, brc_error *err)
{
    brc_draft_head found;
    BRC_TRY(find_private(s, &found, err));
    if (found.id != 0 && found.kind == BRC_DRAFT_PRIVATE) {
        s->draft = found;
        BRC_TRY(sync_branch(s, err));
    } else if (s->draft.id == 0) {
        ; /* the draft has no changes */
    } else if (is_begun_anew(s, &found)) {
        memset(&s->draft, 0, sizeof(s->draft));
    } else if (s->is_new && brc_store_undone(s->repo->store) != s->made_at) {
        s->draft = s->start;
    } else {
        return brc_fail(err, BRC_ESTALE,
                        "the uncommitted changes of this session (draft %lld) were adopted or "
                        "dropped by another session: open another session",
                        (long long)s->draft.id);
    }
    BRC_TRY(sync_clean(s, err));
    return draft_root(s, err);
}

int brc_session_follow(brc_session *s, brc_error *err)
{
    uint64_t version;
    if (s->mode == BRC_SESSION_AT)
        return BRC_OK;
    BRC_TRY(brc_store_version(s->repo->store, &version, err));
    if (s->is_read && version == s->version && s->changes == s->repo->changes)
        return BRC_OK;
    if (s->mode == BRC_SESSION_PRIVATE)
        BRC_TRY(sync_private(s, err));
    else
        BRC_TRY(sync_shared(s, err));
    s->version = version;
    s->changes = s->repo->changes;
    s->is_read = 1;
    return BRC_OK;
}

/* Makes a session without reading anything; branch NULL: none yet. */
static int new_session(brc_session **out, breccia *repo, int mode, const char *branch,
                       brc_error *err)
{
    void *p;
    BRC_TRY(brc_new(&p, sizeof(brc_session), err));
    brc_session *s = *out = p;
    s->refs = 1;
    s->mode = mode;
    s->repo = brc_repo_ref(repo);
    return branch != NULL ? brc_dup(&s->branch, branch, err) : BRC_OK;
}

/* Returns the session to the caller, or frees it after a failure. */
static int session_made(brc_session **out, brc_session *s, int rc)
{
    if (rc < 0)
        brc_session_unref(s);
    else
        *out = s;
    return rc;
}

/* Makes the session show a draft, to read it. */
static int session_of_draft(brc_session *s, int64_t draft, brc_error *err)
{
    BRC_TRY(brc_draft_get(s->repo->store, draft, &s->draft, err));
    if (s->draft.id == 0)
        return brc_fail(err, BRC_ENOTFOUND, "there is no draft %lld", (long long)draft);
    return draft_root(s, err);
}

int brc_session_of_draft(brc_session **out, breccia *repo, const char *branch, int64_t draft,
                           brc_error *err)
{
    brc_session *s = NULL;
    int rc;
    *out = NULL;
    BRC_GO(new_session(&s, repo, BRC_SESSION_PRIVATE, branch, err));
    BRC_GO(brc_store_begin_read(repo->store, err));
    rc = session_of_draft(s, draft, err);
    brc_store_end_read(repo->store);
done:
    return session_made(out, s, rc);
}

int brc_session_detach(brc_session *s, brc_error *err)
{
    brc_oid root;
    s->is_read = 0;
    BRC_TRY(read_tip(s, &s->start, &root, err));
    s->draft = s->start;
    s->base = root;
    return BRC_OK;
}

static int start_private(brc_session *s, brc_error *err)
{
    brc_buf owner = BRC_BUF_INIT;
    int rc;
    BRC_GO(read_tip(s, &s->start, &s->base, err));
    s->draft = s->start;
    BRC_GO(brc_process_describe(&owner, err));
    rc = brc_buf_take_text(&owner, &s->owner, err);
done:
    brc_buf_dispose(&owner);
    return rc;
}

int brc_session_begin_beside(brc_session *s, const brc_draft_head *fork, int64_t *draft,
                             brc_error *err)
{
    brc_buf owner = BRC_BUF_INIT;
    brc_draft_row row = {.draft = *fork, .branch = s->branch};
    char *text = NULL;
    int rc;
    BRC_GO(brc_process_describe(&owner, err));
    BRC_GO(brc_buf_take_text(&owner, &text, err));
    row.owner = text;
    row.draft.kind = BRC_DRAFT_PRIVATE;
    row.draft.time_us = brc_now_us();
    rc = brc_draft_start(s->repo->store, &row, draft, err);
done:
    brc_buf_dispose(&owner);
    free(text);
    return rc;
}

static int find_by_name(brc_session *s, brc_error *err)
{
    BRC_TRY(brc_draft_of_owner(s->repo->store, s->owner, &s->draft, err));
    if (s->draft.id == 0)
        BRC_TRY(read_tip(s, &s->draft, &s->base, err));
    s->start = s->draft;
    return brc_session_follow(s, err);
}

/* Opens the private session that a name of brc_session_name() means. */
static int session_by_name(brc_session **out, breccia *repo, const char *branch,
                           const char *owner, brc_error *err)
{
    brc_session *s = NULL;
    int rc;
    *out = NULL;
    BRC_GO(new_session(&s, repo, BRC_SESSION_PRIVATE, branch, err));
    s->is_named = 1;
    BRC_GO(brc_dup(&s->owner, owner, err));
    BRC_GO(brc_store_begin_read(repo->store, err));
    rc = find_by_name(s, err);
    brc_store_end_read(repo->store);
done:
    return session_made(out, s, rc);
}

/* Keeps the commit as long as the session is open, even if every branch that reaches the commit
 * goes. */
static int pin_version(brc_session *s, brc_error *err)
{
    if (brc_oid_is_zero(&s->draft.base))
        return BRC_OK;
    BRC_TRY(brc_pin_take(s->repo->store, &s->draft.base, err));
    s->pinned = s->draft.base;
    return BRC_OK;
}

static int open_version(brc_session *s, const char *rev, brc_error *err)
{
    s->mode = BRC_SESSION_AT;
    BRC_TRY(brc_rev_resolve(s->repo->store, rev != NULL ? rev : "HEAD", &s->draft.base, err));
    s->draft.has_base = 1;
    return brc_commit_root(s->repo->store, &s->draft.base, &s->base, err);
}

static int open_branch(brc_session *s, const char *rev, int any, brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    int rc = session_branch(s, rev, &why);
    if (any && (rc == BRC_ENOTFOUND || rc == BRC_EINVAL)) {
        free(s->branch);
        s->branch = NULL;
        return open_version(s, rev, err);
    }
    if (rc < 0 && err != NULL)
        brc_error_copy(err, &why);
    if (rc == BRC_OK && s->mode == BRC_SESSION_PRIVATE)
        rc = start_private(s, err);
    return rc < 0 ? rc : brc_session_follow(s, err);
}

int brc_session_open(brc_session **out, breccia *repo, const char *rev, int mode, brc_error *err)
{
    brc_session *s = NULL;
    int rc;
    const int any = (mode & BRC_SESSION_ANY_REV) != 0, commits = (mode & BRC_SESSION_COMMITS) != 0;
    const int given = mode;
    *out = NULL;
    if (mode == BRC_SESSION_TOKEN)
        return open_token(out, repo, rev, err);
    mode &= ~(BRC_SESSION_ANY_REV | BRC_SESSION_COMMITS);
    if (mode < BRC_SESSION_AT || mode > BRC_SESSION_PRIVATE ||
        (any && mode != BRC_SESSION_VIEW && mode != BRC_SESSION_WRITE) ||
        (commits && mode != BRC_SESSION_VIEW))
        return brc_fail(err, BRC_EINVAL, "%d is not a valid session mode", given);
    if (mode >= BRC_SESSION_WRITE)
        BRC_TRY(brc_store_writable(repo->store, err));
    BRC_GO(new_session(&s, repo, mode, NULL, err));
    s->shows_commits = commits;
    BRC_GO(brc_store_begin_read(repo->store, err));
    rc = mode == BRC_SESSION_AT ? open_version(s, rev, err) : open_branch(s, rev, any, err);
    brc_store_end_read(repo->store);
    if (rc == BRC_OK && s->mode == BRC_SESSION_AT)
        rc = pin_version(s, err);
done:
    return session_made(out, s, rc);
}

int brc_session_stat(brc_session_info *out, brc_session *s, brc_error *err)
{
    brc_session_info own = BRC_SESSION_INFO_INIT;
    BRC_TRY(brc_session_begin_read(s, err));
    own.mode = s->mode;
    own.has_commit = s->draft.has_base;
    if (own.has_commit)
        own.commit = s->draft.base;
    own.draft = s->draft.id;
    own.changes = s->draft.id != 0 ? s->draft.changes : 0;
    brc_session_end_read(s);
    return brc_sized_out(out, &own, sizeof(own), sizeof(own), "brc_session_info", err);
}

/* ---- the log of shared changes -------------------------------- */

int brc_session_log(brc_session *s, const char *text, brc_error *err)
{
    enum { TEXT_MOST = 200 };
    char *copy = NULL;
    BRC_TRY(brc_session_can_change(s, err));
    if (s->mode != BRC_SESSION_WRITE)
        return brc_fail(err, BRC_EMISUSE, "only changes that a branch's users share have a log: "
                                          "undo works on them");
    if (text != NULL) {
        const size_t len = strlen(text);
        if (len == 0 || len > TEXT_MOST || !brc_utf8_valid(text, len))
            return brc_fail(err, BRC_EINVAL, "what an operation does is said in 1 to %d bytes of "
                                             "UTF-8",
                            TEXT_MOST);
        BRC_TRY(brc_dup(&copy, text, err));
    }
    free(s->log);
    s->log = copy;
    s->log_is_new = 1;
    s->logged = 0;
    return BRC_OK;
}

static brc_draft_logging logging_of(const brc_session *s)
{
    return (brc_draft_logging){s->branch, s->log, s->log_is_new};
}

/* Enters the operation in the draft's log before its first change, and after changes of others. An
 * open merge has no log: what is settled in it is not in its rows alone. */
static int log_change(brc_session *s, brc_error *err)
{
    const brc_draft_logging op = logging_of(s);
    const int logs = s->log != NULL && s->draft.kind == BRC_DRAFT_SHARED;
    if (logs && s->logged > 0 && s->logged == s->draft.changes &&
        s->logged_at == brc_store_undone(s->repo->store))
        return BRC_OK;
    BRC_TRY(brc_draft_log_change(s->repo->store, &s->draft, s->saver, logs ? &op : NULL, err));
    s->draft.logs = logs;
    s->log_is_new = 0;
    s->changes = ++s->repo->changes; /* arrays look whether their rows may still be changed */
    s->logged = s->draft.changes;
    s->logged_at = brc_store_undone(s->repo->store);
    return BRC_OK;
}

int brc_session_log_whole(brc_session *s, brc_error *err)
{
    const brc_draft_logging op = logging_of(s);
    brc_draft_head draft;
    if (s->log == NULL || s->mode != BRC_SESSION_WRITE)
        return BRC_OK;
    BRC_TRY(brc_draft_shared(s->repo->store, s->branch, &draft, err));
    BRC_TRY(brc_draft_log_whole(s->repo->store, &draft, &op, err));
    s->log_is_new = 0;
    s->logged = 0;
    return BRC_OK;
}

/* ---- transactions -------------------------------- */

static int start_draft(brc_session *s, brc_error *err)
{
    brc_draft_row row = {.draft = s->draft, .branch = s->branch, .owner = s->owner};
    int64_t id;
    if (s->is_named && brc_process_state(s->owner) == BRC_PROCESS_DEAD)
        return brc_fail(err, BRC_ESTALE,
                        "the process that began this session has ended: open another session");
    if (s->mode == BRC_SESSION_PRIVATE && !s->has_swept)
        BRC_TRY(brc_drafts_drop_unused(s->repo->store, err));
    s->has_swept = 1;
    s->is_resting = 0;
    row.draft.kind = s->mode == BRC_SESSION_PRIVATE ? BRC_DRAFT_PRIVATE : BRC_DRAFT_SHARED;
    row.draft.time_us = brc_now_us();
    BRC_TRY(brc_draft_start(s->repo->store, &row, &id, err));
    s->draft.id = id; /* not before: the draft may have failed after its row got a number */
    s->draft.kind = row.draft.kind;
    s->is_new = 1;
    s->made_at = brc_store_undone(s->repo->store);
    const int rc = s->log != NULL ? log_change(s, err) : BRC_OK;
    s->logged = 0; /* the row may be an older one, which has been changed more often */
    return rc;
}

int brc_session_can_change(const brc_session *s, brc_error *err)
{
    if (s->mode >= BRC_SESSION_WRITE && (s->mode != BRC_SESSION_PRIVATE || s->owner != NULL))
        return BRC_OK;
    return brc_fail(err, BRC_EREADONLY, "this session cannot be changed: it was opened to read");
}

static int begin_write(brc_session *s, brc_error *err)
{
    brc_store *store = s->repo->store;
    if (s->bulk == NULL)
        return brc_store_begin(store, err);
    const int before = brc_store_bulk_admit(store, 1);
    int rc = brc_store_begin(store, err);
    (void)brc_store_bulk_admit(store, before);
    return rc;
}

/* Marks the draft as changed. A draft without changes may have followed its branch until now.
 * Savepoints of others learn of the change. */
static int touch_draft(brc_session *s, brc_error *err)
{
    brc_draft_head found;
    brc_store *store = s->repo->store;
    s->is_resting = 0;
    if (s->mode == BRC_SESSION_PRIVATE) {
        BRC_TRY(brc_draft_get(store, s->draft.id, &found, err));
        if (!brc_draft_same_version(&found, &s->draft))
            BRC_TRY(brc_draft_advance(store, s->draft.id, s->draft.has_tip ? &s->draft.tip : NULL,
                                      err));
    }
    if (s->draft.saves || s->draft.logs || s->log != NULL)
        BRC_TRY(log_change(s, err));
    s->logged = s->logged == s->draft.changes ? s->logged + 1 : 0;
    return brc_draft_touch(store, s->draft.id, err);
}

int brc_session_begin(brc_session *s, brc_error *err)
{
    brc_store *store = s->repo->store;
    BRC_TRY(brc_session_can_change(s, err));
    BRC_TRY(begin_write(s, err));
    int rc = brc_session_follow(s, err);
    if (rc == BRC_OK && s->bulk != NULL)
        rc = s->bulk->start(s, err);
    else if (rc == BRC_OK)
        rc = s->draft.id != 0 ? touch_draft(s, err) : start_draft(s, err);
    if (rc < 0) {
        s->is_read = 0;
        (void)!brc_store_end(store, 0, NULL);
    }
    return rc;
}

int brc_session_end(brc_session *s, int rc, brc_error *err)
{
    s->repo->changes++;
    if (rc < 0) {
        (void)!brc_store_end(s->repo->store, 0, NULL);
        return rc;
    }
    rc = brc_store_end(s->repo->store, 1, err);
    if (rc == BRC_OK && s->bulk != NULL && !brc_store_in_write(s->repo->store))
        return s->bulk->rest(s, err);
    if (rc == BRC_OK && !brc_store_in_write(s->repo->store))
        s->is_new = 0;
    return rc;
}

void brc_session_changed(brc_session *s, int rc)
{
    if (rc < 0) {
        s->repo->changes++;
        s->is_read = 0;
    } else if (rc == BRC_OK) {
        s->is_new = 0;
    }
}

int brc_session_begin_read(brc_session *s, brc_error *err)
{
    BRC_TRY(brc_store_begin_read(s->repo->store, err));
    int rc = brc_session_follow(s, err);
    if (rc < 0)
        brc_store_end_read(s->repo->store);
    return rc;
}

void brc_session_end_read(brc_session *s)
{
    brc_store_end_read(s->repo->store);
}
