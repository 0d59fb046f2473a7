/*
 * The sandbox limits a converter after it has opened its stream, and before it opens a file
 * that a stranger made:
 *
 *   limits     memory, open files, no core; an import writes no file
 *   seccomp    no network, no program, no process, no signal to others, no tracing, no memory that
 *              becomes code, no question about a path (stat, access, readlink, getcwd); files come
 *              through the door (door.h) alone: an import gets its own and those beneath its
 *              folder, an export the one that it makes
 *   Landlock   no file at all by itself; without a door an import reads the one file, and an
 *              export reads and writes in that file's folder
 *
 * Landlock and seccomp are features of Linux. If the kernel or the build lacks one of them, the
 * others still apply. The door needs seccomp and a machine whose registers this build knows
 * (x86-64 and 64-bit ARM); on others an import opens files for reading alone.
 */
#ifndef BRC_CONVERT_LIB_SANDBOX_H
#define BRC_CONVERT_LIB_SANDBOX_H

#include "../../base/error.h"

/* Returns whether files come through a door on this machine: then call brc_door_keep() first. */
int brc_sandbox_has_door(void);

/* Enters the sandbox for the rest of the process, which has one thread. `file`: the one to read or to make. */
BRC_MUST_USE int brc_sandbox_enter(const char *file, int writing, brc_error *err);

#endif
