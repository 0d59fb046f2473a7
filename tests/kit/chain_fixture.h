/*
 * A registry, a scratch and one chain at a time, for tests of codecs: a checked fixture of
 * Check, and what such tests have in common.
 */
#ifndef CHAIN_FIXTURE_H
#define CHAIN_FIXTURE_H

#include "../../src/codec/chain.h"

extern brc_registry *codecs_reg;
extern brc_scratch *codecs_scratch;
extern brc_dtype *codecs_type;
extern brc_chain *codecs_chain; /* the one that was opened last                  */
extern brc_error codecs_err;    /* of the call that failed last                  */

void codecs_setup(void);
void codecs_teardown(void);

void codecs_close(void);
int codecs_try_open(const char *list, const char *dtype, int ndim, const uint64_t *shape);
void codecs_open(const char *list, const char *dtype, int ndim, const uint64_t *shape);
/* The same with one element as the fill value. */
int codecs_try_open_filled(const char *list, const char *dtype, int ndim, const uint64_t *shape,
                           const void *fill, size_t fill_len);
void codecs_open_filled(const char *list, const char *dtype, int ndim, const uint64_t *shape,
                        const void *fill, size_t fill_len);
/* A chain for n elements of uint8. */
void codecs_open_bytes(const char *list, uint64_t n);

/* Both empty `out` first. */
int codecs_decode(const void *data, size_t len, brc_buf *out);
void codecs_encode(const void *data, size_t len, brc_buf *out);

void codecs_expect(const void *stored, size_t len, const void *plain, size_t plain_len);
/* The same, and that it is what encoding gives. */
void codecs_expect_stored(const void *plain, size_t plain_len, const void *stored, size_t len);
/* BRC_EINVAL when it is encoded, with a message that has `says` in it. */
void codecs_expect_unstorable(const void *plain, size_t plain_len, const char *says);
/* BRC_ECORRUPT with a message that has `says` in it. */
void codecs_expect_corrupt(const void *stored, size_t len, const char *says);
/* The list does not open for int32 and the shape (4, 6). */
void codecs_expect_refused(const char *list, int code, const char *says);

#endif
