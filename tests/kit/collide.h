/* Two inputs with one XXH3-128, made by arithmetic: what somebody would send who wants
 * one chunk taken for another. */
#ifndef BRC_TESTS_COLLIDE_H
#define BRC_TESTS_COLLIDE_H

#include "../../src/base/hash.h"

/* Different bytes with one id as objects of this kind. `len` is 32, or above 240. The
 * guards under a random secret differ. */
void collide_pair(int kind, uint8_t *a, uint8_t *b, size_t len);
/* The secret under which the guards of such a pair are equal too: then nothing but the
 * bytes tells them apart. */
void collide_secret(int kind, uint8_t secret[BRC_SECRET_LEN]);

#endif
