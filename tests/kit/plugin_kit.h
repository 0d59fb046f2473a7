/* Where the plug-ins of the tests lie. */
#ifndef BRC_TESTS_PLUGIN_KIT_H
#define BRC_TESTS_PLUGIN_KIT_H

#include <stddef.h>

/* The path of the shared object that was built from tests/plugins/<name>.c. */
void plugin_path(char *out, size_t size, const char *name);

#endif
