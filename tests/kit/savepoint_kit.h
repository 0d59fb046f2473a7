/* A repository for tests of savepoints, and the calls that they make all the time, which must succeed. */
#ifndef BRC_TESTS_SAVEPOINT_KIT_H
#define BRC_TESTS_SAVEPOINT_KIT_H

#include "scenario.h"

/* /a has 8 numbers in chunks of 2, /g/b as many, both committed; /n and one of /a are not. */
void sp_start(scenario *t);
/* Nothing is damaged at the end. */
void sp_stop(scenario *t);
/* The session becomes a private one. */
void sp_make_private(scenario *t);

int32_t sp_number(scenario *t, const char *path, uint64_t i);
void sp_save(scenario *t, const char *name);
void sp_back(scenario *t, const char *name);
void sp_release(scenario *t, const char *name);

#endif
