/* See converters.h. */
#include "converters.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* "build/tests/run" has "build/libexec/breccia" */
const char *converters_folder(void)
{
    static char folder[4096];
    char self[3000];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    ck_assert_int_gt(n, 0);
    self[n] = '\0';
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(self, '/');
        ck_assert_ptr_nonnull(slash);
        *slash = '\0';
    }
    snprintf(folder, sizeof(folder), "%s/libexec/breccia", self);
    return folder;
}
