/*
 * Several workers on one file, and a model of what each of them may see. The model is in memory
 * that processes share. It has registers: each worker has its own, in every branch, and nobody else
 * writes them; but a register is one element of a chunk in which every worker has one, or one
 * attribute of a document in which every worker has one, or a group. A value is the number of the
 * step that wrote it, odd in a private draft, so that each is written once.
 *
 * Workers do not wait for each other. What was acknowledged before a call began and not replaced
 * before it ended must be seen; what was under way may be.
 */
#ifndef BRC_TESTS_MANY_MODEL_H
#define BRC_TESTS_MANY_MODEL_H

#include <stdatomic.h>
#include <sys/types.h>

#include "../../src/breccia.h"

enum {
    MANY_PROCESSES = 4,
    MANY_THREADS = 2,
    MANY_WORKERS = MANY_PROCESSES * MANY_THREADS,
    MANY_BRANCHES = 2,
    MANY_CHUNKS = 12,
    MANY_ATTRIBUTE = MANY_CHUNKS, /* "wN" of /a                           */
    MANY_GROUP,                   /* /nN and its attribute; 0: not there  */
    MANY_REGISTERS,
    MANY_COMMITS = 8192,
    MANY_LEFT = 256
};

/* The things that are counted: see many_things. */
enum {
    WROTE,
    COMMITTED,
    WAS_STALE,
    DISCARDED,
    WROTE_PRIVATE,
    COMMITTED_PRIVATE,
    WAS_STALE_PRIVATE,
    DISCARDED_PRIVATE,
    HANDED_OVER,
    WAS_NOT_HANDED_OVER,
    CLOSED,
    KILLED,
    ADOPTED,
    ADOPTED_OVER,
    ADOPTION_REFUSED,
    DROPPED,
    MANY_THINGS
};
extern const char *const many_things[MANY_THINGS];

typedef struct many_view {
    uint32_t value[MANY_WORKERS][MANY_REGISTERS];
} many_view;

/* A register in the shared draft of a branch. */
typedef struct many_register {
    _Atomic uint32_t acked, begun; /* the last value that was acknowledged, and that was begun */
    _Atomic uint32_t writes;
    _Atomic uint64_t when; /* the last acknowledged one began                          */
} many_register;

typedef struct many_branch {
    many_register shared[MANY_WORKERS][MANY_REGISTERS];
    /* commits and discards of the shared draft, and what is handed over to it */
    _Atomic uint64_t resets_begun, resets_done, last_reset;
    /* commits of private drafts: they make the shared one stale */
    _Atomic uint64_t moves_begun, moves_done, moves_known;
    _Atomic uint64_t hand_overs, hand_overs_done; /* they may make it stale too */
    _Atomic uint64_t commits_begun, commits_done;
    _Atomic uint32_t published[MANY_WORKERS]; /* no later private value of a worker is anywhere */
} many_branch;

/* The private draft of a worker over the version that its session goes on from. */
typedef struct many_private {
    int changed;   /* it has been written                              */
    int under_way; /* the call that may have changed it is not back    */
    int branch;
    many_view base, now;
    uint8_t mine[MANY_REGISTERS]; /* what it has written */
} many_private;

typedef struct many_commit {
    _Atomic int known;
    int branch;
    brc_oid id, parent;
    many_view view;
} many_commit;

typedef struct many_model {
    char file[128];
    pid_t judge; /* who may fail the test; others end with a message */
    uint64_t seed;
    _Atomic uint64_t clock;
    uint32_t stamps; /* all values up to here are of earlier rounds */
    many_branch branch[MANY_BRANCHES];
    many_private private[MANY_WORKERS][MANY_BRANCHES];
    _Atomic int commit_under_way[MANY_WORKERS];
    many_commit commits[MANY_COMMITS];
    _Atomic uint32_t ncommits;
    many_private left[MANY_LEFT]; /* drafts whose sessions are gone */
    _Atomic uint32_t nleft;
    _Atomic uint32_t done[MANY_THINGS];
} many_model;

extern const char *const many_branches[MANY_BRANCHES];

/* In shared memory, with a new file: an array and two branches, one commit. */
many_model *many_new(const char *file, uint64_t seed);
void many_free(many_model *m);

_Noreturn void many_fail(const many_model *m, const char *file, int line, const char *format, ...) BRC_PRINTF(4, 5);
#define MANY_TRUE(m, what, ...)                             \
    do {                                                    \
        if (!(what))                                        \
            many_fail((m), __FILE__, __LINE__, __VA_ARGS__); \
    } while (0)

/* All registers as a session sees them. */
void many_read(const many_model *m, brc_session *s, many_view *out);
void many_read_commit(const many_model *m, breccia *repo, const brc_oid *id, many_view *out);
/* Sets registers of a worker: elements of the chunks from `first` on, its attribute, its group. */
int many_write(brc_session *s, int worker, int first, int n, uint32_t value, brc_error *err);

/* An acknowledged commit. */
void many_note_commit(many_model *m, breccia *repo, int branch, const brc_oid *id, const many_view *view);
const many_commit *many_find_commit(const many_model *m, const brc_oid *id);
/* A draft with changes, or perhaps with some, whose session is gone. */
void many_note_left(many_model *m, const many_private *draft, int branch);

/* Nobody is at work: everything is as the model says, and what is not known (a call that was cut
 * off) becomes known. Drafts of the dead are adopted or dropped, and nothing is left uncommitted
 * that cannot be committed. */
void many_check(many_model *m, uint64_t *random);

#endif
