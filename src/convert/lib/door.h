/*
 * The only way to files for a process in the sandbox: it sends a path to a process outside, which opens the file and
 * sends the descriptor back.
 *
 * The door opens the converter's own file. For an import it also opens regular files beneath the folder of that file
 * for reading, by names without "..", symbolic links or hidden parts (".ssh/id"), because the file names them, and a
 * stranger wrote the file. Everything else is EACCES, whether it exists or not.
 */
#ifndef BRC_CONVERT_LIB_DOOR_H
#define BRC_CONVERT_LIB_DOOR_H

#include "../../base/error.h"

/* The descriptor on which the process in the sandbox asks: a constant, because the handler of a signal gets no
 * arguments of ours. */
#define BRC_DOOR_FD 3
#define BRC_DOOR_PATH_MAX 4096

typedef struct brc_door {
    char file[BRC_DOOR_PATH_MAX];   /* all three without "." parts */
    char folder[BRC_DOOR_PATH_MAX]; /* the file's folder, with its "/"; "": the current folder */
    char real[BRC_DOOR_PATH_MAX];   /* the folder's path from the root; "": not known */
    int writing;
} brc_door;

BRC_MUST_USE int brc_door_init(brc_door *door, const char *file, int writing, brc_error *err);

/*
 * Forks. Returns 0 in the new process, which will enter the sandbox. In the old process, serves the new one until it
 * ends, and then returns 1, with *status from waitpid(). Only the new process keeps standard input and output. It
 * ends with the old one.
 */
BRC_MUST_USE int brc_door_keep(const brc_door *door, int *status, brc_error *err);
/* Asks for a file, from inside the sandbox, also from a signal's handler. Returns a new descriptor, or -errno. */
int brc_door_ask(const char *path, int flags);
/* Opens a file for reading by the same rule, in a process without a door. Returns a new descriptor, or -errno. */
int brc_door_open(const brc_door *door, const char *path);

#endif
