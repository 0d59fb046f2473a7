/* Processes by /proc. */
#include "process_kit.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
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

int process_survives(int (*work)(void *ctx), void *ctx)
{
    int status;
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        _exit(work(ctx) != 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) {
        ck_assert_int_eq(WTERMSIG(status), SIGKILL);
        return 0;
    }
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    return 1;
}
