/* See drafts_kit.h. */
#include "drafts_kit.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const char *drafts_list(scenario *t, breccia *repo)
{
    static const char *const owners[] = { "unknown", "alive", "dead" };
    static char text[400];
    brc_iter *it;
    const brc_draft *draft;
    int rc;
    text[0] = '\0';
    OK(t, brc_drafts(&it, repo, &t->err));
    while ((rc = brc_next(it, &draft, &t->err)) > 0) {
        size_t at = strlen(text);
        snprintf(text + at, sizeof(text) - at, "%s %s%s%s %d; ", draft->branch,
                 draft->flags & BRC_DRAFT_OWNED ? owners[draft->owner] : "shared",
                 draft->flags & BRC_DRAFT_STALE ? " stale" : "",
                 draft->owner_pid == getpid() ? " ours" : "", (int)draft->nodes);
    }
    ck_assert_msg(rc == 0, "%s", t->err.message);
    brc_iter_free(it);
    return text;
}

int64_t drafts_last(scenario *t, breccia *repo)
{
    brc_iter *it;
    const brc_draft *draft;
    int64_t id = 0;
    OK(t, brc_drafts(&it, repo, &t->err));
    while (brc_next(it, &draft, &t->err) > 0)
        id = draft->id;
    brc_iter_free(it);
    return id;
}

void drafts_leave(scenario *t, int32_t value)
{
    fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        breccia *repo;
        brc_session *s;
        if (scenario_connect(&repo, t->file, NULL, &t->err) < 0 ||
            brc_session_open(&s, repo, NULL, BRC_SESSION_PRIVATE, &t->err) < 0)
            _exit(1);
        scenario_put(t, s, "/a", 0, value);
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

int64_t drafts_leave_behind(scenario *t, int32_t value, uint64_t where)
{
    brc_oid id;
    scenario_close(t);
    drafts_leave(t, value);
    scenario_open(t, NULL, 0);
    scenario_put(t, t->session, "/a", where, 99);
    OK(t, scenario_commit_of(t, t->session, "theirs", &id));
    ck_assert_str_eq(drafts_list(t, t->repo), "main dead stale 1; ");
    return drafts_last(t, t->repo);
}
