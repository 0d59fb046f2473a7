/* A scenario whose file knows the codec that meets, on a pool of three threads. */
#ifndef BRC_TESTS_MEETING_STAGE_H
#define BRC_TESTS_MEETING_STAGE_H

#include "meeting_codec.h"
#include "scenario.h"

typedef struct meeting_stage {
    scenario t;
    brc_registry *reg;
    brc_pool *pool;
} meeting_stage;

/* `memory`: of brc_open_opts. */
void meeting_stage_start(meeting_stage *stage, size_t memory);
void meeting_stage_stop(meeting_stage *stage);

#endif
