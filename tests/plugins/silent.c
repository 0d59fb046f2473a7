/* A plug-in that fails without a word. */
#include "../../src/breccia_codec.h"

int brc_plugin_init(uint32_t abi, brc_registry *reg, brc_error *err)
{
    (void)abi;
    (void)reg;
    (void)err;
    return BRC_ENOMEM;
}
