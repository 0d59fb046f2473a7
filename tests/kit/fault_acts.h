/* A small repository, and the calls that the rig of faults lets fail. */
#ifndef TESTS_FAULT_ACTS_H
#define TESTS_FAULT_ACTS_H

#include "store_kit.h"

/* kit->file has two branches, a tag, two arrays, a group, something uncommitted on main, and a
 * private draft of a process that is dead. */
typedef struct fault_base {
    store_kit *kit;
    char work[128]; /* the copy that the calls work on       */
    char npy[128];  /* a file to import                      */
    int64_t left_draft;
    int32_t numbers[160];
} fault_base;
void fault_base_make(fault_base *b, store_kit *kit);

typedef struct fault_handles {
    const fault_base *base;
    breccia *repo;
    brc_session *s;
    brc_array *a;
    brc_array *made;
    brc_session *private; /* opened by the first act that uses it */
} fault_handles;

typedef struct fault_act {
    const char *name;
    int (*run)(fault_handles *h, brc_error *err);
    int changes; /* the file is another one afterwards */
} fault_act;
extern const fault_act fault_acts[];
extern const int fault_nacts;

/* As one of them does it: commits what is uncommitted on main. */
int fault_act_commit(fault_handles *h, brc_error *err);

#endif
