/* A small repository, and the calls that the rig of faults lets fail. */
#ifndef TESTS_FAULT_ACTS_H
#define TESTS_FAULT_ACTS_H

#include "store_kit.h"

enum { FAULT_STACK = 32 }; /* rows of draft_node that may lie over each other */
#define FAULT_LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"

/* kit->file has four branches, a tag, three arrays, a group, something uncommitted on main (also a
 * document) and on deep (as many rows as may lie over each other), and private drafts of processes
 * that are dead: one on a branch without changes, and one over each of these. */
typedef struct fault_base {
    store_kit *kit;
    char work[128]; /* the copy that the calls work on       */
    char npy[128];  /* a file to import                      */
    int64_t left_draft, over_draft, deep_draft;
    int32_t numbers[160];
} fault_base;
void fault_base_make(fault_base *b, store_kit *kit, int wal);

typedef struct fault_handles fault_handles;
struct fault_handles {
    const fault_base *base;
    breccia *repo;
    brc_session *s;
    brc_array *a;
    brc_array *made;
    brc_session *private; /* opened by the first act that uses it */
    void (*ended)(const fault_handles *h); /* a transaction of an act that has several; or NULL */
};

/* The working copy of `base`, opened through this VFS (NULL: the default); wait_ms as in brc_open_opts. */
void fault_open(fault_handles *h, const fault_base *base, const char *vfs, int wait_ms);
void fault_close(fault_handles *h);

typedef struct fault_act {
    const char *name;
    int (*run)(fault_handles *h, brc_error *err);
    int changes; /* the file is another one afterwards */
    int batches; /* it is several transactions, and what they have stored stays; 2: and they change
                  * nothing that can be seen */
} fault_act;
extern const fault_act fault_acts[];
extern const int fault_nacts;

/* Savepoints, and what comes between them: a transaction each. */
extern int (*const fault_save_steps[])(fault_handles *h, brc_error *err);
extern const int fault_nsave_steps;

/* Commits the uncommitted changes of main, as one of the acts does. */
int fault_act_commit(fault_handles *h, brc_error *err);

#endif
