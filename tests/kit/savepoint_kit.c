#include "savepoint_kit.h"

#include <check.h>

void sp_start(scenario *t)
{
    scenario_start(t);
    scenario_numbers(t, "/a", 8, 2, 0);
    OK(t, brc_group_create(t->session, "/g", NULL, &t->err));
    scenario_numbers(t, "/g/b", 8, 2, 100);
    scenario_commit(t, "first");
    scenario_numbers(t, "/n", 8, 2, 200);
    scenario_set_number(t, "/a", 0, 70);
}

void sp_stop(scenario *t)
{
    scenario_whole(t);
    scenario_stop(t);
}

void sp_make_private(scenario *t)
{
    brc_session_free(t->session);
    OK(t, brc_session_open(&t->session, t->repo, NULL, BRC_SESSION_PRIVATE, &t->err));
}

int32_t sp_number(scenario *t, const char *path, uint64_t i)
{
    return scenario_number(t, t->session, path, i);
}

void sp_save(scenario *t, const char *name)
{
    OK(t, brc_savepoint(t->session, BRC_SAVEPOINT_SET, name, &t->err));
}

void sp_back(scenario *t, const char *name)
{
    OK(t, brc_savepoint(t->session, BRC_SAVEPOINT_ROLLBACK, name, &t->err));
}

void sp_release(scenario *t, const char *name)
{
    OK(t, brc_savepoint(t->session, BRC_SAVEPOINT_RELEASE, name, &t->err));
}
