#include "hooked_kit.h"

#include <check.h>
#include <string.h>

#include "store_kit.h"

void hooked_file_start(scenario *t, hooked_parts *parts, unsigned threads)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    *parts = (hooked_parts){.reg = hook_registry(&t->err)};
    ck_assert_ptr_nonnull(parts->reg);
    if (threads > 0)
        OK(t, brc_pool_new(&parts->pool, threads, &t->err));
    scenario_folder(t);
    opts.registry = parts->reg;
    opts.pool = parts->pool;
    scenario_open(t, &opts, BRC_OPEN_CREATE);
}

void hooked_file_stop(scenario *t, hooked_parts *parts)
{
    hook_decode(NULL, NULL, 0);
    scenario_stop(t);
    brc_pool_free(parts->pool);
    brc_registry_free(parts->reg);
}

void hooked_count(void *ctx)
{
    ++*(int *)ctx;
}

static void open_second(hooked_kit *k)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    memcpy(k->second.file, k->first.file, sizeof(k->second.file));
    opts.registry = k->parts.reg;
    opts.wait_ms = -1;
    scenario_open(&k->second, &opts, 0);
}

void hooked_start(hooked_kit *k, uint64_t length, uint64_t chunk)
{
    hooked_file_start(&k->first, &k->parts, 0);
    k->array = scenario_array(&k->first, "/a", "int32", 1, &length, &chunk, "-1",
                              "[" HOOKED_CODECS "]");
    open_second(k);
}

void hooked_start_from(hooked_kit *k, const brc_buf *content)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    k->parts = (hooked_parts){.reg = hook_registry(&k->first.err)};
    ck_assert_ptr_nonnull(k->parts.reg);
    scenario_folder(&k->first);
    store_kit_put(k->first.file, content);
    opts.registry = k->parts.reg;
    scenario_open(&k->first, &opts, 0);
    OK(&k->first, brc_array_open(&k->array, k->first.session, "/a", &k->first.err));
    open_second(k);
}

void hooked_stop(hooked_kit *k)
{
    brc_array_free(k->array);
    scenario_close(&k->second);
    hooked_file_stop(&k->first, &k->parts);
}
