/*
 * A codec whose calls wait for each other, which shows that work is done at the same time without
 * measuring any.
 */
#ifndef BRC_TESTS_MEETING_CODEC_H
#define BRC_TESTS_MEETING_CODEC_H

#include "scenario.h"
#include "watched_codec.h"

#define MEETING_CODEC "{\"name\":\"https://breccia.example/meeting\"}"

/* A call whose decoded bytes `waits` accepts waits for another call, whose bytes `comes` accepts;
 * if both are NULL, every call waits for any other. The thread of meeting_expect() does not wait
 * long, since it has to give other threads their work. After some seconds no call waits any
 * longer. */
typedef int (*meeting_fn)(void *ctx, brc_span decoded);

/* Sets the rule for all calls from now on: those of decode() if `decoding`, else those of
 * encode(). */
void meeting_expect(int decoding, meeting_fn waits, meeting_fn comes, void *ctx);
/* Returns 1 if two calls have met since. */
int meeting_took_place(void);

/* A scenario whose file knows the codec, on a pool of three threads. */
typedef struct meeting_stage {
    scenario t;
    brc_registry *reg;
    brc_pool *pool;
} meeting_stage;

/* `memory`: of brc_open_opts. */
void meeting_stage_start(meeting_stage *stage, size_t memory);
void meeting_stage_stop(meeting_stage *stage);

#endif
