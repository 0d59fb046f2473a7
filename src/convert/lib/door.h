/*
 * The only way to a file for a process in the sandbox: it asks for one by its path, and a process
 * outside opens that and sends the descriptor.
 *
 * What is opened: the converter's own file; and of an import, for reading, regular files beneath
 * the folder of that file, by names without "..", links of the file system or hidden parts
 * (".ssh/id"), for the file names them and a stranger wrote it. All else is EACCES, whether it
 * is there or not.
 */
#ifndef BRC_CONVERT_LIB_DOOR_H
#define BRC_CONVERT_LIB_DOOR_H

#include "../../base/error.h"

/* Where the process in the sandbox asks: a number, for the handler of a signal gets no more. */
#define BRC_DOOR_FD 3
#define BRC_DOOR_PATH_MAX 4096

typedef struct brc_door {
    char file[BRC_DOOR_PATH_MAX];   /* without "." parts, as the two below      */
    char folder[BRC_DOOR_PATH_MAX]; /* of the file, with its "/"; "": the current one */
    char real[BRC_DOOR_PATH_MAX];   /* the same from the root; "": not known    */
    int writing;
} brc_door;

BRC_MUST_USE int brc_door_init(brc_door *door, const char *file, int writing, brc_error *err);

/*
 * Forks. In the new process, which is to enter the sandbox: 0. In the one that was there: 1 when
 * the new one has ended, which until then was served; *status as of waitpid(). What the two have
 * open as standard input and output is the new one's alone. The new one ends with the old one.
 */
BRC_MUST_USE int brc_door_keep(const brc_door *door, int *status, brc_error *err);
/* From within, also from a signal's handler: a new descriptor, or -errno. */
int brc_door_ask(const char *path, int flags);
/* The same rule in a process that has no door: a new descriptor to read from, or -errno. */
int brc_door_open(const brc_door *door, const char *path);

#endif
