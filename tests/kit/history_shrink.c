/* Runs lists of operations, each in a process of its own, and makes one that fails shorter. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "folder.h"
#include "history_world.h"

static int run_here(hm_world *w, const hm_op *ops, int n, const char *file)
{
    HM_GO(hm_start(w, file));
    for (int i = 0; i < n; i++) {
        HM_GO(hm_apply(w, ops[i]));
        HM_GO(hm_check(w, i % 8 == 0 || i + 1 == n));
        HM_GO(hm_fsck(w));
    }
    return 0;
}

int hm_run(const hm_op *ops, int n, char *why, int len, hm_world *totals)
{
    char dir[64], file[96];
    int status;
    hm_world *w = mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (w == MAP_FAILED)
        return -1;
    folder_make(dir, sizeof(dir), FOLDER_FAST);
    snprintf(file, sizeof(file), "%s/h.brc", dir);
    const pid_t child = fork();
    if (child == 0) {
        const int rc = run_here(w, ops, n, file);
        hm_stop(w);
        _exit(rc != 0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        status = -1;
    const int failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    if (failed)
        snprintf(why, (size_t)len, "step %d (%s): %.300s", w->step,
                 w->step > 0 ? hm_op_name(ops[w->step - 1]) : "the beginning",
                 WIFEXITED(status) && w->why[0] ? w->why : "the process has died");
    totals->made += w->made;
    totals->refused += w->refused;
    totals->unsure += w->unsure;
    totals->killed += w->killed;
    totals->collected += w->collected;
    totals->expired += w->expired;
    totals->settled += w->settled;
    totals->deltas += w->deltas;
    brc_tree_remove(dir);
    munmap(w, sizeof(*w));
    return failed;
}

/* Returns whether two messages report one fault, ignoring the step and the numbers in them: a
 * shorter sequence could end in another fault. */
static int is_same_fault(const char *a, const char *b)
{
    a = strchr(a, ')') != NULL ? strchr(a, ')') : a;
    b = strchr(b, ')') != NULL ? strchr(b, ')') : b;
    for (;;) {
        a += strspn(a, "0123456789");
        b += strspn(b, "0123456789");
        if (*a != *b || *a == '\0')
            return *a == *b;
        a++;
        b++;
    }
}

/* Leaves out parts, halves first, as long as the rest still fails in the same way. */
int hm_shrink(hm_op *ops, int n, char *why, int len)
{
    static hm_world totals;
    char now[500];
    hm_op *less = malloc((size_t)n * sizeof(*less));
    if (less == NULL)
        return n;
    for (int part = n / 2; part > 0; part /= 2)
        for (int at = 0; at < n;) {
            const int cut = part < n - at ? part : n - at;
            memcpy(less, ops, (size_t)at * sizeof(*ops));
            memcpy(less + at, ops + at + cut, (size_t)(n - at - cut) * sizeof(*ops));
            if (hm_run(less, n - cut, now, sizeof(now), &totals) == 1 && is_same_fault(now, why)) {
                n -= cut;
                memcpy(ops, less, (size_t)n * sizeof(*ops));
            } else {
                at += cut;
            }
        }
    hm_run(ops, n, why, len, &totals);
    free(less);
    return n;
}
