#include "meeting_stage.h"

#include <check.h>

void meeting_stage_start(meeting_stage *stage, size_t memory)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    scenario_folder(&stage->t);
    stage->reg = meeting_registry(&stage->t.err);
    ck_assert_ptr_nonnull(stage->reg);
    OK(&stage->t, brc_pool_new(&stage->pool, 3, &stage->t.err));
    opts.registry = stage->reg;
    opts.pool = stage->pool;
    opts.memory = memory;
    scenario_open(&stage->t, &opts, BRC_OPEN_CREATE);
}

void meeting_stage_stop(meeting_stage *stage)
{
    scenario_stop(&stage->t);
    brc_pool_free(stage->pool);
    brc_registry_free(stage->reg);
}
