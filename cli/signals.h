/*
 * signals.h - SIGINT and SIGTERM stop what the repository does, and the command with it.
 */
#ifndef BRECCIA_CLI_SIGNALS_H
#define BRECCIA_CLI_SIGNALS_H

#include "../src/breccia.h"

/* At the start, once. */
void cli_signal_install(void);
/* The signal that asked to stop, or 0. */
int cli_signal(void);
/* The repository that a signal stops; NULL: a signal ends the process at once. */
void cli_signal_target(breccia *repo);
/* Until the next cli_signal_target() a signal is only remembered. */
void cli_signal_hold(void);

#endif
