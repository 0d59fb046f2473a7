/*
 * How much a test does of what it could do for as long as somebody likes: random inputs, moments to
 * be killed at, bytes to damage. `make test` and the sanitizers take a sample; `make test-long`
 * (BRECCIA_LONG=1) takes all of it, in the suites that are a LONG_SUITE.
 */
#ifndef BRC_TESTS_EFFORT_H
#define BRC_TESTS_EFFORT_H

#include <stdint.h>

/* BRECCIA_LONG is set, and not to nothing or 0. */
int effort_is_long(void);

/* Every so many are tried: all in the long form, else one of `test` in `make test` and one of
 * `sanitized` under a sanitizer. */
uint64_t effort_step(uint64_t test, uint64_t sanitized);

/* The number in an environment variable, or the other where that is not set. */
uint64_t effort_number(const char *variable, uint64_t otherwise);

#endif
