/* Memory that runs out on demand: for a program of its own, because it replaces malloc()
 * there. */
#ifndef BRC_TESTS_KIT_ALLOC_H
#define BRC_TESTS_KIT_ALLOC_H

/* As codec_kit's fail_after. */
int kit_alloc_fail_after(long n);
/* 0 if this build cannot do it: under a sanitizer, which has a malloc of its own. */
int kit_alloc_works(void);

#endif
