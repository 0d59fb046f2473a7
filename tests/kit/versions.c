#include "fsck_kit.h"
#include "versions.h"

#include <check.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void scenario_be_on(scenario *t, const char *branch)
{
    brc_session_free(t->session);
    t->session = NULL;
    OK(t, brc_switch(t->repo, branch, BRC_SWITCH_DISCARD, &t->err));
    OK(t, brc_session_open(&t->session, t->repo, NULL, BRC_SESSION_WRITE, &t->err));
}

void scenario_look_again(scenario *t)
{
    scenario_whole(t);
    scenario_reopen(t);
}

brc_oid scenario_id(scenario *t, const char *rev)
{
    brc_oid id;
    OK(t, brc_resolve(&id, t->repo, rev, &t->err));
    return id;
}

brc_oid scenario_root(scenario *t, const char *rev)
{
    brc_commit *c = scenario_commit_at(t, rev);
    const brc_oid root = c->root;
    brc_commit_free(c);
    return root;
}

int scenario_same(brc_oid a, brc_oid b)
{
    return memcmp(&a, &b, sizeof(a)) == 0;
}

brc_commit *scenario_commit_at(scenario *t, const char *rev)
{
    brc_commit *c;
    const brc_oid id = scenario_id(t, rev);
    OK(t, brc_commit_read(&c, t->repo, &id, &t->err));
    return c;
}

int scenario_has_commit(scenario *t, const brc_oid *id)
{
    brc_commit *c;
    const int rc = brc_commit_read(&c, t->repo, id, &t->err);
    brc_commit_free(c);
    return rc == BRC_OK;
}

uint64_t scenario_collect(scenario *t, uint32_t flags)
{
    brc_gc_opts opts = BRC_GC_OPTS_INIT;
    brc_gc_report report = BRC_GC_REPORT_INIT;
    opts.flags = flags;
    OK(t, brc_gc(t->repo, &opts, &report, &t->err));
    return report.objects_removed;
}

void scenario_collect_held(scenario *t)
{
    scenario_collect(t, 0);
    scenario_sql(t,
                 "UPDATE removed SET due_us=1, checksum=row_sum('removed', backend, place, name, "
                 "bytes, total, state, since_us, 1) WHERE due_us>0");
    scenario_collect(t, 0);
}

int scenario_merge(scenario *t, const char *rev, uint32_t flags)
{
    brc_merge_opts opts = BRC_MERGE_OPTS_INIT;
    brc_merge_result r = BRC_MERGE_RESULT_INIT;
    opts.flags = flags;
    OK(t, brc_merge(&r, NULL, t->repo, rev, &opts, &t->err));
    return r.result;
}

uint64_t scenario_conflicts(scenario *t)
{
    brc_open_state state = BRC_OPEN_STATE_INIT;
    OK(t, brc_merge_state(&state, NULL, t->repo, &t->err));
    return state.open;
}

uint64_t scenario_settle(scenario *t, uint32_t side)
{
    uint64_t n;
    OK(t, brc_merge_settle(&n, t->repo, side, NULL, 0, &t->err));
    return n;
}

int scenario_faults(scenario *t)
{
    int n = 0;
    uint64_t checked;
    (void)!brc_fsck(t->repo, 0, fsck_counts, NULL, &n, &checked, &t->err);
    return n;
}

brc_oid scenario_elsewhere(scenario *t, const char *branch, void (*change)(scenario *t))
{
    brc_session *here = t->session;
    OK(t, brc_session_open(&t->session, t->repo, branch, BRC_SESSION_PRIVATE, &t->err));
    change(t);
    const brc_oid id = scenario_commit(t, "elsewhere");
    brc_session_free(t->session);
    t->session = here;
    return id;
}

static int child_status(scenario *t, int (*run)(breccia *repo), int killed)
{
    breccia *repo;
    int status;
    scenario_close(t);
    const pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        int rc = scenario_connect(&repo, t->file, NULL, NULL);
        if (rc == BRC_OK)
            rc = run(repo);
        if (killed && rc == BRC_OK)
            (void)!raise(SIGKILL);
        _exit(rc != BRC_OK);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    scenario_open(t, NULL, 0);
    scenario_whole(t);
    return status;
}

void scenario_in_child(scenario *t, int (*run)(breccia *repo))
{
    const int status = child_status(t, run, 0);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

void scenario_in_killed_child(scenario *t, int (*run)(breccia *repo))
{
    const int status = child_status(t, run, 1);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

brc_pick_result scenario_pick(scenario *t, const char *rev, uint32_t flags)
{
    brc_pick_opts opts = BRC_PICK_OPTS_INIT;
    brc_pick_result result = BRC_PICK_RESULT_INIT;
    opts.flags = flags;
    OK(t, brc_pick(&result, NULL, t->repo, rev, &opts, &t->err));
    return result;
}

int begin_merge_of_side(breccia *repo)
{
    brc_merge_opts opts = BRC_MERGE_OPTS_INIT;
    brc_merge_result r = BRC_MERGE_RESULT_INIT;
    opts.flags = BRC_MERGE_KEEP;
    return brc_merge(&r, NULL, repo, "side", &opts, NULL);
}

int begin_pick_of_side(breccia *repo)
{
    brc_pick_opts opts = BRC_PICK_OPTS_INIT;
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    opts.flags = BRC_PICK_KEEP;
    return brc_pick(&r, NULL, repo, "side", &opts, NULL);
}

int other_collects(breccia *repo)
{
    return brc_gc(repo, NULL, NULL, NULL) == BRC_OK;
}

int other_resets_side(breccia *repo)
{
    return brc_reset(repo, NULL, "side~1", BRC_RESET_HARD, NULL, NULL) == BRC_OK;
}

static int other_acts(void *ctx, const char *phase, uint64_t done, uint64_t total)
{
    other_handle *o = ctx;
    (void)phase, (void)done, (void)total;
    if (o->repo != NULL && o->done < o->most)
        o->done += o->act(o->repo);
    return 0;
}

void other_begins(scenario *t, other_handle *o)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    scenario_no_window(t);
    scenario_close(t);
    opts.progress = other_acts;
    opts.progress_ctx = o;
    scenario_open(t, &opts, 0);
    o->repo = scenario_handle(t, 1);
}

void other_ends(other_handle *o)
{
    brc_free(o->repo);
    o->repo = NULL;
    ck_assert_int_gt(o->done, 0);
}
