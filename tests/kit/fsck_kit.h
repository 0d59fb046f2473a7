/* The function that tests give to brc_fsck() to report faults. */
#ifndef BRC_TESTS_FSCK_KIT_H
#define BRC_TESTS_FSCK_KIT_H

#include "../../src/breccia.h"

/* Any fault fails the test. */
int fsck_finds_nothing(void *ctx, const brc_damage *damage);
/* ctx is an int, which gets one more for each fault. */
int fsck_counts(void *ctx, const brc_damage *damage);

#endif
