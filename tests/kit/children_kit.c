#include "children_kit.h"
#include "ios.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

brc_session *kit_private(scenario *t, const char *rev)
{
    brc_session *s = scenario_session(t, t->repo, rev, BRC_SESSION_PRIVATE);
    return s;
}

brc_session *kit_fork(scenario *t, brc_session *s)
{
    brc_session *child;
    OK(t, brc_session_fork(&child, s, &t->err));
    return child;
}

char *kit_token(scenario *t, brc_session *s)
{
    brc_buf token = BRC_BUF_INIT;
    OK(t, brc_session_token(&token, s, &t->err));
    char *text = strdup((const char *)token.data);
    ck_assert_ptr_nonnull(text);
    ck_assert_uint_eq(strlen(text), token.len);
    brc_buf_dispose(&token);
    return text;
}

int kit_fill(scenario *t, brc_session *s, const char *path, uint64_t from, uint64_t n,
             int32_t value)
{
    brc_array *a;
    brc_sel sel = BRC_SEL_INIT;
    int rc = brc_array_open(&a, s, path, &t->err);
    if (rc < 0)
        return rc;
    sel_all(&sel, a);
    sel.start[0] = from;
    sel.count[0] = n;
    rc = brc_array_fill(a, &sel, &value, &t->err);
    brc_array_free(a);
    return rc;
}

int kit_commit(scenario *t, brc_session *s, brc_oid *id)
{
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    opts.message = "children";
    return brc_session_commit(id, s, &opts, &t->err);
}

pid_t kit_worker(scenario *t, const char *token, kit_work work, void *ctx)
{
    const pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid > 0)
        return pid;
    scenario mine = {0};
    brc_session *s;
    memcpy(mine.file, t->file, sizeof(mine.file));
    mine.err = (brc_error)BRC_ERROR_INIT;
    int rc = scenario_connect(&mine.repo, mine.file, NULL, &mine.err);
    if (rc == BRC_OK)
        rc = brc_session_open(&s, mine.repo, token, BRC_SESSION_TOKEN, &mine.err);
    if (rc == BRC_OK) {
        rc = work(&mine, s, ctx);
        brc_session_free(s);
    }
    if (rc < 0)
        fprintf(stderr, "worker: %s\n", mine.err.message);
    brc_free(mine.repo);
    _exit(-rc & 127);
}

void kit_worker_ends(pid_t pid, int result)
{
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status), "the worker was killed by signal %d", WTERMSIG(status));
    ck_assert_int_eq(WEXITSTATUS(status), -result & 127);
}

const char *kit_drafts(scenario *t, breccia *repo)
{
    static const char *const owners[] = {"unknown", "alive", "dead"};
    static char text[600];
    int64_t ids[32];
    int n = 0, rc;
    brc_iter *it;
    const brc_draft *draft;
    text[0] = '\0';
    OK(t, brc_drafts(&it, repo, &t->err));
    while ((rc = brc_next(it, &draft, &t->err)) > 0) {
        const size_t at = strlen(text);
        int of = 0;
        for (int i = 0; i < n; i++)
            if ((draft->flags & BRC_DRAFT_CHILD) && ids[i] == draft->parent)
                of = i + 1;
        ids[n++] = draft->id;
        snprintf(text + at, sizeof(text) - at, "%d/%d %s%s; ", (int)draft->nodes, of,
                 draft->flags & BRC_DRAFT_OWNED ? owners[draft->owner] : "shared",
                 draft->owner_pid == getpid() ? " ours" : "");
    }
    ck_assert_msg(rc == 0, "%s", t->err.message);
    brc_iter_free(it);
    return text;
}
