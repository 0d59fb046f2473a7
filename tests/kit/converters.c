/* See converters.h. */
#include "converters.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../src/xfer/tar/tar.h"

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

size_t converter_refers(const char *name, const char *file, size_t *all)
{
    char command[1200];
    brc_error err = BRC_ERROR_INIT;
    brc_tar_member member;
    brc_tar_in *in;
    size_t n = 0;
    int rc;
    snprintf(command, sizeof(command), "'%s/%s' import '%s'", converters_folder(), name, file);
    FILE *stream = popen(command, "r");
    ck_assert_ptr_nonnull(stream);
    ck_assert_int_eq(brc_tar_in_open_fd(&in, fileno(stream), "it", &err), BRC_OK);
    *all = 0;
    while ((rc = brc_tar_next(in, &member, &err)) > 0) {
        n += member.refers != 0;
        *all += strstr(member.name, "zarr.json") == NULL;
    }
    ck_assert_msg(rc == 0, "%s", err.message);
    brc_tar_in_free(in);
    ck_assert_int_eq(pclose(stream), 0);
    return n;
}
