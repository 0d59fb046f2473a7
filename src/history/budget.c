#include "budget.h"

#include <inttypes.h>

brc_budget brc_budget_of(const brc_store *store)
{
    return (brc_budget){ .max = brc_store_max_nodes(store) };
}

int brc_budget_take(brc_budget *budget, brc_error *err)
{
    if (budget->used == budget->max)
        return brc_fail(err, BRC_ELIMIT,
                        "more than %" PRIu64 " nodes to visit, which is the limit: a larger "
                        "--max-nodes (brc_open_opts.max_nodes) raises it",
                        budget->max);
    budget->used++;
    return BRC_OK;
}
