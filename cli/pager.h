/*
 * pager.h - long output on a terminal goes through a pager, as in git.
 */
#ifndef BRC_CLI_PAGER_H
#define BRC_CLI_PAGER_H

#include <sys/types.h>

struct cli;

struct cli_pager {
    const char *program; /* NULL: none                                        */
    void (*start)(struct cli *cli); /* called before the first output; NULL: nothing is to start */
    pid_t pid;           /* 0: none runs                                      */
    int fd;              /* where it reads from                               */
    int has_errors;      /* it reads standard error too                       */
};

/* Chooses the pager of a command that has CLI_PAGED: BRECCIA_PAGER, the user's setting, PAGER, or less. The pager starts
 * with the first bytes of output. */
int cli_pager_choose(struct cli *cli);
/* Waits until the user leaves the pager. Returns whether there was one. */
int cli_pager_end(const struct cli_pager *pager);

#endif
