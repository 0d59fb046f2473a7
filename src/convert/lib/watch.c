/* The clock of a converter, see watch.h. */
#include "watch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../xfer/foreign/protocol.h"

/* The library is in the middle of something: nothing but these two calls is safe. */
static void give_up(int sig, siginfo_t *info, void *context)
{
    const brc_watch *w = info->si_value.sival_ptr;
    (void)sig;
    (void)context;
    ssize_t told = write(STDERR_FILENO, w->sentence, strlen(w->sentence));
    (void)told;
    _exit(BRC_STATUS_ERROR - BRC_ELIMIT);
}

int brc_watch_start(brc_watch *w, const char *file, int seconds, brc_error *err)
{
    struct sigaction action;
    struct sigevent event;

    memset(w, 0, sizeof(*w));
    memset(&action, 0, sizeof(action));
    memset(&event, 0, sizeof(event));
    w->seconds = seconds;
    (void)snprintf(w->sentence, sizeof(w->sentence),
                   "%.400s: no progress in %d s of processor time: the file is damaged\n", file,
                   seconds);
    action.sa_sigaction = give_up;
    action.sa_flags = SA_SIGINFO;
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGPROF;
    event.sigev_value.sival_ptr = w;
    if (sigaction(SIGPROF, &action, NULL) < 0 ||
        timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &w->timer) < 0)
        return brc_fail_os(err, errno, "cannot watch", "this process");
    w->started = 1;
    brc_watch_step(w);
    return BRC_OK;
}

void brc_watch_step(brc_watch *w)
{
    struct itimerspec due = { .it_value = { .tv_sec = w->seconds } };
    if (w->started)
        (void)timer_settime(w->timer, 0, &due, NULL);
}
