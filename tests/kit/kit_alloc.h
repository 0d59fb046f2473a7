/* Memory that runs out on demand: for a program of its own, because it replaces malloc()
 * there. */
#ifndef BRC_TESTS_KIT_ALLOC_H
#define BRC_TESTS_KIT_ALLOC_H

/* Makes the n-th allocation from now fail; see fail_after in codec_kit.h. */
int kit_alloc_fail_after(long n);
/* Returns 0 if this build cannot make allocations fail: a sanitizer has a malloc of its own. */
int kit_alloc_works(void);

#endif
