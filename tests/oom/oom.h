/* A scenario: calls of the public API, one a step, on a copy of one prepared file. */
#ifndef BRC_TESTS_OOM_H
#define BRC_TESTS_OOM_H

#include "../../src/breccia.h"

typedef struct oom_state {
    char dir[64];
    char file[96];        /* the repository                      */
    char npy[96];         /* a file to import                    */
    char out[96];         /* a place to export to                */
    unsigned threads;     /* of a pool; 0: none                  */
    brc_pool *pool;
    breccia *repo;
    brc_session *session; /* the current branch, to write        */
    brc_array *array;
} oom_state;

typedef int (*oom_step)(oom_state *s, brc_error *err);

typedef struct oom_scenario {
    const char *name;
    int starts_without_file;
    unsigned threads;
    const oom_step *steps; /* up to a NULL */
} oom_scenario;

extern const oom_scenario *const oom_scenarios[]; /* up to a NULL */

/* Makes the file that the scenarios start from, and the one to import. */
int oom_prepare(oom_state *s, brc_error *err);
/* Releases what the steps left open. */
void oom_close(oom_state *s);

#endif
