/* See folder.h. */
#include "folder.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* $BRC_TEST_TAG tells the folders of one suite's run from others', so that tests/all.sh can remove
 * what a killed test left. */
static int folder_in(char *out, size_t size, const char *parent)
{
    const char *tag = getenv("BRC_TEST_TAG");
    int n = snprintf(out, size, "%s/breccia-test-%s%sXXXXXX", parent, tag != NULL ? tag : "",
                     tag != NULL ? "-" : "");
    return n > 0 && (size_t)n < size && mkdtemp(out) != NULL;
}

void folder_make(char *out, size_t size, int where)
{
    const char *given = getenv("TMPDIR");
    if (given != NULL && given[0] != '\0' && folder_in(out, size, given))
        return;
    if (where == FOLDER_FAST && folder_in(out, size, "/dev/shm"))
        return;
    ck_assert_msg(folder_in(out, size, "/tmp"), "no folder in /tmp: %s", strerror(errno));
}
