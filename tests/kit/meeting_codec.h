/*
 * A codec whose calls wait for each other, which shows that work is done at the same time without
 * measuring any.
 */
#ifndef BRC_TESTS_MEETING_CODEC_H
#define BRC_TESTS_MEETING_CODEC_H

#include "watched_codec.h"

#define MEETING_CODEC "{\"name\":\"https://breccia.example/meeting\"}"

/* A call waits while `waits` says so of its decoded bytes, for another call that `comes` says so of;
 * both NULL: every call for any other. That of the thread
 * of meeting_expect() does not wait long, since it has to give others their work. After some seconds nobody waits any more. */
typedef int (*meeting_fn)(void *ctx, brc_span decoded);

/* Of the calls from now on; decoding: of decode(), else of encode(). */
void meeting_expect(int decoding, meeting_fn waits, meeting_fn comes, void *ctx);
/* 1 if two have met since. */
int meeting_took_place(void);

/* Built-ins and this. */
brc_registry *meeting_registry(brc_error *err);

#endif
