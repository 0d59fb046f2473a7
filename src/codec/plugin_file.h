/* The shared object that a plug-in is. */
#ifndef BRC_CODEC_PLUGIN_FILE_H
#define BRC_CODEC_PLUGIN_FILE_H

#include "../breccia_codec.h"

typedef int brc_plugin_entry(uint32_t abi, brc_registry *reg, brc_error *err);

/* May it be loaded by this path, and is it a file? */
BRC_MUST_USE int brc_plugin_file_check(const char *path, brc_error *err);
/* Its code may run from here on. *entry is its brc_plugin_init(). */
BRC_MUST_USE int brc_plugin_file_open(void **handle, brc_plugin_entry **entry, const char *path, brc_error *err);
void brc_plugin_file_close(void *handle);

#endif
