/*
 * The log. Commits are read in batches, each in one read transaction: a transaction for each
 * statement would cost more than the statement, and one transaction for all of them would keep
 * writers out while a user reads page after page. The commits of a batch are then returned one by
 * one.
 */
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/sized.h"
#include "../history/commit.h"
#include "../history/walk.h"
#include "../work/session.h"

/* The number of commits in a batch: few at first, so that the first page comes soon. */
enum { BATCH_FIRST = 16, BATCH_MOST = 512 };

/* A regular expression that a text must match. */
typedef struct log_pattern {
    regex_t regex;
    int is_set;
} log_pattern;

typedef struct log_filter {
    int64_t since, until;
    log_pattern author, message;
} log_filter;

typedef struct log_state {
    breccia *repo;
    brc_walk *walk;
    char *path;        /* NULL: every commit */
    brc_path_log *only; /* NULL: every commit */
    log_filter filter;
    int has_sel;
    brc_sel sel;       /* the elements of which a commit must change one */
    brc_commit *found[BATCH_MOST];
    char *places[BATCH_MOST]; /* the node's path in each of them */
    size_t n, at;
    size_t batch;
    brc_commit *given;
    char *given_place;
    int ended;      /* 0; 1 at the end; or an error: */
    brc_error why;
} log_state;

static void log_dispose(void *state)
{
    log_state *log = state;
    for (; log->at < log->n; log->at++) {
        brc_commit_free(log->found[log->at]);
        free(log->places[log->at]);
    }
    brc_commit_free(log->given);
    free(log->given_place);
    brc_path_log_free(log->only);
    if (log->filter.author.is_set)
        regfree(&log->filter.author.regex);
    if (log->filter.message.is_set)
        regfree(&log->filter.message.regex);
    brc_walk_free(log->walk);
    free(log->path);
    brc_store_walk_end(log->repo->store);
    brc_repo_unref(log->repo);
}

static int log_path(log_state *log, const char *path, brc_error *err)
{
    brc_buf normal = BRC_BUF_INIT;
    int rc = brc_path_normal(&normal, path, err);
    if (rc == BRC_OK)
        rc = brc_buf_take_text(&normal, &log->path, err);
    brc_buf_dispose(&normal);
    return rc;
}

/* Finds the tip that a log starts from. The log of a branch without a commit is empty. */
static int log_tip(breccia *repo, const char *rev, brc_oid *tip, brc_error *err)
{
    int has;
    char *full;
    memset(tip, 0, sizeof(*tip));
    if (rev != NULL)
        return brc_rev_resolve(repo->store, rev, tip, err);
    BRC_TRY(brc_head_get(repo->store, &rev, err));
    BRC_TRY(brc_ref_full(&full, "heads", rev, err));
    int rc = brc_ref_get(repo->store, full, &has, tip, err);
    free(full);
    return rc;
}

/* Starts a walk from `rev`, or through the commits of the range "A..B". */
static int log_walk_new(log_state *log, const char *rev, int full, brc_error *err)
{
    brc_store *store = log->repo->store;
    brc_oid tip, hidden;
    int rc, is_range = 0;
    char *from = NULL, *to = NULL;
    if (rev != NULL)
        BRC_TRY(brc_rev_range(rev, &is_range, &from, &to, err));
    BRC_GO(log_tip(log->repo, is_range ? to : rev, &tip, err));
    BRC_GO(brc_walk_new(&log->walk, store, &tip, err));
    if (log->path != NULL)
        BRC_GO(brc_path_log_new(&log->only, store, &tip, log->path, full, err));
    if (is_range) {
        BRC_GO(brc_rev_resolve(store, from, &hidden, err));
        BRC_GO(brc_walk_hide(log->walk, &hidden, err));
    }
done:
    free(from);
    free(to);
    return rc;
}

/* ---- filters -------------------------------- */

static int log_pattern_new(log_pattern *out, const char *text, const char *what, brc_error *err)
{
    char why[120];
    if (text == NULL)
        return BRC_OK;
    const int status = regcomp(&out->regex, text, REG_EXTENDED | REG_NOSUB | REG_NEWLINE);
    if (status == REG_ESPACE)
        return brc_nomem(err);
    if (status != 0) {
        regerror(status, &out->regex, why, sizeof(why));
        return brc_fail(err, BRC_EINVAL, "%s: '%.120s' is not a regular expression: %s", what, text,
                        why);
    }
    out->is_set = 1;
    return BRC_OK;
}

static int log_filter_new(log_filter *out, const brc_log_opts *o, brc_error *err)
{
    out->since = o->flags & BRC_LOG_SINCE ? o->since_us : INT64_MIN;
    out->until = o->flags & BRC_LOG_UNTIL ? o->until_us : INT64_MAX;
    BRC_TRY(log_pattern_new(&out->author, o->author, "author", err));
    return log_pattern_new(&out->message, o->message, "message", err);
}

static int log_pattern_fits(const log_pattern *p, const char *text)
{
    return !p->is_set || regexec(&p->regex, text, 0, NULL, 0) == 0;
}

static int log_filter_fits(const log_filter *f, const brc_commit *commit)
{
    return commit->time_us >= f->since && commit->time_us <= f->until &&
           log_pattern_fits(&f->author, commit->author) &&
           log_pattern_fits(&f->message, commit->message);
}

/* ---- batches -------------------------------- */

/* Returns 1 if the commit is to be returned, with a copy of the node's path in it. */
static int log_wants(log_state *log, const brc_commit *commit, char **place, brc_error *err)
{
    const char *path;
    *place = NULL;
    if (log->only == NULL)
        return log_filter_fits(&log->filter, commit);
    int wanted = brc_path_log_visit(log->only, commit, &path, err);
    if (wanted > 0 && !log_filter_fits(&log->filter, commit))
        return 0;
    return wanted > 0 && brc_dup(place, path, err) < 0 ? BRC_ENOMEM : wanted;
}

static int log_ends(const log_state *log)
{
    return log->only != NULL && brc_path_log_is_done(log->only);
}

/* Reads a batch, within a transaction. Returns 1 if there is more, or 0 at the end. */
static int log_look(log_state *log, brc_error *err)
{
    const brc_commit *commit;
    int rc = 1;
    log->n = log->at = 0;
    for (size_t i = 0; i < log->batch && rc > 0; i++) {
        rc = log_ends(log) ? 0 : brc_walk_next(log->walk, &commit, err);
        if (rc <= 0)
            break;
        int wanted = log_wants(log, commit, &log->places[log->n], err);
        if (wanted > 0)
            log->found[log->n++] = brc_walk_take(log->walk);
        else if (wanted < 0)
            rc = wanted;
    }
    if (rc == 0 && log->only != NULL && !brc_path_log_met(log->only))
        return brc_fail(err, BRC_ENOTFOUND, "%s: no commit here has a node %s",
                        brc_store_path(log->repo->store), log->path);
    return rc;
}

/* Fills the batch. A failure is reported only after the commits before it have been returned. */
static void log_fill(log_state *log)
{
    int rc = brc_store_begin_read(log->repo->store, &log->why);
    if (rc == BRC_OK) {
        rc = log_look(log, &log->why);
        brc_store_end_read(log->repo->store);
    }
    log->ended = rc > 0 ? 0 : rc == 0 ? 1 : rc;
    log->batch = log->batch * 2 < BATCH_MOST ? log->batch * 2 : BATCH_MOST;
}

/* ---- elements -------------------------------- */

/* Sets *differs to whether the commit has other values of the selected elements than one parent
 * (NULL: it has none), or values that cannot be compared. */
static int log_differs(const log_state *log, const brc_oid *parent, int *differs, brc_error *err)
{
    brc_diff_opts opts = BRC_DIFF_OPTS_INIT;
    const brc_change *change;
    brc_iter *changes = NULL;
    char before[65], now[65];
    int rc;
    *differs = 0;
    opts.path = log->given->path;
    opts.flags = BRC_DIFF_ELEMENTS | BRC_DIFF_MOVED;
    opts.sel = &log->sel;
    BRC_TRY(brc_diff(&changes, log->repo, parent != NULL ? brc_oid_format(before, parent) : NULL,
                     brc_oid_format(now, &log->given->id), &opts, err));
    while ((rc = brc_next(changes, &change, err)) == 1)
        *differs |= change->elements_changed > 0 || change->elements_added > 0 ||
                    change->elements_removed > 0 || change->elements_why != NULL;
    brc_iter_free(changes);
    return rc;
}

/* Tells whether the commit changed a selected element. A merge did only if the values are not those
 * of one of its parents. */
static int log_changed(const log_state *log, brc_error *err)
{
    const brc_commit *commit = log->given;
    int differs = 1;
    if (!log->has_sel)
        return 1;
    if (commit->nparents == 0)
        BRC_TRY(log_differs(log, NULL, &differs, err));
    for (size_t i = 0; i < commit->nparents && differs; i++)
        BRC_TRY(log_differs(log, &commit->parents[i], &differs, err));
    return differs;
}

/* ---- one by one -------------------------------- */

static int log_next_one(log_state *log, const void **out, brc_error *err)
{
    brc_commit_free(log->given);
    free(log->given_place);
    log->given = NULL;
    log->given_place = NULL;
    while (log->at == log->n && log->ended == 0)
        log_fill(log);
    if (log->at < log->n) {
        BRC_TRY(brc_store_check_interrupt(log->repo->store, err));
        log->given_place = log->places[log->at];
        log->given = log->found[log->at++];
        log->given->path = log->given_place;
        *out = log->given;
        return 1;
    }
    if (log->ended < 0 && err != NULL)
        brc_error_copy(err, &log->why);
    return log->ended < 0 ? log->ended : 0;
}

static int log_next(void *state, const void **out, brc_error *err)
{
    log_state *log = state;
    int rc;
    while ((rc = log_next_one(log, out, err)) > 0) {
        const int changed = log_changed(log, err);
        if (changed != 0) /* or an error */
            return changed;
    }
    return rc;
}

static int log_sel(log_state *log, const brc_log_opts *o, brc_error *err)
{
    if (o->sel == NULL)
        return BRC_OK;
    if (o->path == NULL)
        return brc_fail(err, BRC_EINVAL, "a log of elements needs the path of their array");
    log->has_sel = 1;
    return brc_sized_in(&log->sel, sizeof(log->sel), sizeof(log->sel), o->sel, "brc_sel", err);
}

int brc_log(brc_iter **out, breccia *repo, const char *rev, const brc_log_opts *opts,
            brc_error *err)
{
    brc_log_opts o = BRC_LOG_OPTS_INIT;
    *out = NULL;
    if (opts != NULL)
        BRC_TRY(brc_sized_in(&o, sizeof(o), offsetof(brc_log_opts, reserved), opts, "brc_log_opts",
                             err));
    BRC_TRY(brc_flags_check(o.flags, BRC_LOG_FULL | BRC_LOG_SINCE | BRC_LOG_UNTIL, "brc_log_opts",
                            err));
    int rc;
    BRC_TRY(brc_iter_new(out, log_next, sizeof(log_state), log_dispose, err));
    log_state *log = brc_iter_state(*out);
    log->repo = brc_repo_ref(repo);
    brc_store_walk_begin(repo->store);
    log->batch = BATCH_FIRST;
    BRC_GO(log_filter_new(&log->filter, &o, err));
    BRC_GO(log_sel(log, &o, err));
    if (o.path != NULL)
        BRC_GO(log_path(log, o.path, err));
    BRC_GO(brc_store_begin_read(repo->store, err));
    rc = log_walk_new(log, rev, (o.flags & BRC_LOG_FULL) != 0, err);
    brc_store_end_read(repo->store);
done:
    if (rc < 0) {
        brc_iter_free(*out);
        *out = NULL;
    }
    return rc;
}

int brc_commit_read(brc_commit **out, breccia *repo, const brc_oid *id, brc_error *err)
{
    return brc_commit_need(out, repo->store, id, err);
}
