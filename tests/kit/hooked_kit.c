#include "hooked_kit.h"

#include <check.h>
#include <string.h>

void hooked_start(hooked_kit *k, uint64_t length, uint64_t chunk)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    scenario_folder(&k->first);
    k->reg = hook_registry(&k->first.err);
    ck_assert_ptr_nonnull(k->reg);
    opts.registry = k->reg;
    scenario_open(&k->first, &opts, BRC_OPEN_CREATE);
    k->array = scenario_array(&k->first, "/a", "int32", 1, &length, &chunk, "-1",
                              "[" HOOKED_CODECS "]");
    memcpy(k->second.file, k->first.file, sizeof(k->second.file));
    opts.wait_ms = -1;
    scenario_open(&k->second, &opts, 0);
}

void hooked_stop(hooked_kit *k)
{
    hook_decode(NULL, NULL, 0);
    hook_encode(NULL, NULL, 0);
    brc_array_free(k->array);
    scenario_close(&k->second);
    scenario_stop(&k->first);
    brc_registry_free(k->reg);
}
