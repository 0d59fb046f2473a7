/* Processes by /proc. */
#include "process_kit.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int is_gone(pid_t pid)
{
    char path[64], text[256] = "";
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    if (!f)
        return 1;
    if (!fgets(text, sizeof(text), f))
        text[0] = '\0';
    fclose(f);
    const char *state = strrchr(text, ')');
    return !state || state[2] == 'Z' || state[2] == 'X';
}

void process_must_go(pid_t pid)
{
    ck_assert_int_gt(pid, 1);
    for (int i = 0; i < 3000 && !is_gone(pid); i++)
        usleep(10000);
    ck_assert_msg(is_gone(pid), "process %d still runs", (int)pid);
}
