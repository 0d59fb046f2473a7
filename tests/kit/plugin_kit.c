#include "plugin_kit.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Beside the test program, in plugins/. */
void plugin_path(char *out, size_t size, const char *name)
{
    char self[500];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

    ck_assert_int_gt(len, 0);
    self[len] = '\0';
    char *slash = strrchr(self, '/');
    ck_assert_ptr_nonnull(slash);
    *slash = '\0';
    ck_assert_int_lt(snprintf(out, size, "%s/plugins/%s.so", self, name), (int)size);
}
