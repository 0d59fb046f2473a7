/*
 * Locks of open file descriptions that fail, in the whole test program: it has an fcntl() of its
 * own in front of the system's.
 */
#ifndef BRC_TESTS_LOCK_FAULTS_H
#define BRC_TESTS_LOCK_FAULTS_H

/* Each one that is taken or asked for, and not those that are given back, fails with the error
 * that is_due answers; 0: it does not. NULL: none fails. */
void lock_faults_set(int (*is_due)(void *ctx), void *ctx);

#endif
