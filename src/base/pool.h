/*
 * A pool of worker threads. A group is a set of jobs that one caller waits for;
 * the caller works too, so a pool of one thread has no threads of its own and a
 * job then runs inside brc_group_wait() and friends. Jobs never touch SQLite and
 * never wait for other jobs.
 *
 * A group belongs to one thread. Groups of several threads may share a pool: each
 * of those threads runs jobs of its own group only, so within a group the group's
 * caller and each of the pool's threads have different worker indexes. The callers of
 * different groups have the same index, so scratch belongs to a group.
 */
#ifndef BRC_BASE_POOL_H
#define BRC_BASE_POOL_H

#include "error.h"

/* ---- lock -------------------------------- */

/* A lock between threads, and callbacks around fork(). */

typedef struct brc_lock brc_lock;

BRC_MUST_USE int brc_lock_new(brc_lock **out, brc_error *err);
void brc_lock_free(brc_lock *lock); /* NULL is accepted */
void brc_lock_enter(brc_lock *lock);
void brc_lock_leave(brc_lock *lock);

/* Makes `before` run before every fork() of this process and its children, and `after` run after it,
 * in both processes. */
void brc_at_fork(void (*before)(void), void (*after)(void));

/* ---- pool -------------------------------- */

typedef struct brc_group brc_group;
typedef struct brc_job brc_job;

/* A job, embedded in the caller's own structure, which must live until the job is done. */
struct brc_job {
    void (*run)(brc_job *job, unsigned worker); /* worker < brc_pool_threads()    */
    brc_group *group;
    brc_job *next;
    int state; /* the pool's own */
};

unsigned brc_pool_threads(const brc_pool *pool); /* NULL: 1 */

/* Makes a group. pool NULL: everything runs on the caller's thread. */
BRC_MUST_USE int brc_group_new(brc_group **out, brc_pool *pool, brc_error *err);
/* Waits for the group's jobs, then frees the group. */
void brc_group_free(brc_group *group);
/* Submits a job. The jobs of all of a pool's groups start in the order in which they are submitted. A
 * job that is done may be submitted again. */
void brc_group_submit(brc_group *group, brc_job *job);
/* Waits until this job is done; meanwhile runs the group's jobs that have not started, or sleeps. */
void brc_group_wait(brc_group *group, brc_job *job);
void brc_group_wait_all(brc_group *group);
/* Returns 1 if the job, which was submitted, is done. Does not wait. */
int brc_group_is_done(brc_group *group, const brc_job *job);
/* Returns the caller's own worker index, which no other thread of this group has. */
unsigned brc_group_caller(const brc_group *group);

#endif
