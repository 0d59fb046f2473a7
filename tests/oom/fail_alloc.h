/* The program's allocator: counts, and fails where it is told to. */
#ifndef BRC_TESTS_FAIL_ALLOC_H
#define BRC_TESTS_FAIL_ALLOC_H

/* The n-th allocation from now on fails (1: the next), and with `forever` every one
 * after it. */
void fail_alloc_start(long n, int forever);
/* Stops failing; how many did. */
long fail_alloc_stop(void);
/* The code that asked for the first of those. */
const void *fail_alloc_asker(void);
/* Allocations that were not released yet. */
long fail_alloc_live(void);

#endif
