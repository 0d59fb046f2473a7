/*
 * signals.c - SIGINT and SIGTERM stop what the repository does, and the command with it.
 */
#include "signals.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

/* A signal handler can only reach globals. */
static volatile sig_atomic_t caught_signal;
static volatile sig_atomic_t signals_held;
static breccia *volatile signal_target;

static void stop_on_signal(int number)
{
    caught_signal = number;
    if (signal_target)
        brc_interrupt(signal_target);
    else if (!signals_held)
        _exit(128 + number);
}

int cli_signal(void)
{
    return caught_signal;
}

void cli_signal_target(breccia *repo)
{
    signal_target = repo;
    signals_held = 0;
    if (caught_signal && repo)
        brc_interrupt(repo);
}

void cli_signal_hold(void)
{
    signals_held = 1;
    signal_target = NULL;
}

/* A shell starts background jobs with SIGINT ignored, and so it stays. */
static void handle_unless_ignored(int number, const struct sigaction *action)
{
    struct sigaction now;

    if (sigaction(number, NULL, &now) == 0 && now.sa_handler != SIG_IGN)
        sigaction(number, action, NULL);
}

void cli_signal_install(void)
{
    struct sigaction action;

    memset(&action, 0, sizeof(action));
    sigemptyset(&action.sa_mask);
    action.sa_handler = stop_on_signal; /* without SA_RESTART: a wait for input ends */
    handle_unless_ignored(SIGINT, &action);
    handle_unless_ignored(SIGTERM, &action);
    action.sa_handler = SIG_IGN; /* a write to a closed pipe fails instead */
    sigaction(SIGPIPE, &action, NULL);
    sigaction(SIGXFSZ, &action, NULL); /* and so does one beyond a file size limit */
}
