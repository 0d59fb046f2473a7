/* A plug-in of another day: it was built with other headers. */
#include "../../src/breccia_codec.h"

#undef BRC_PLUGIN_ABI
#define BRC_PLUGIN_ABI 77

int brc_plugin_init(uint32_t abi, brc_registry *reg, brc_error *err)
{
    (void)reg;
    return BRC_PLUGIN_CHECK(abi, err);
}
