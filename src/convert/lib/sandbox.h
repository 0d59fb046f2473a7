/*
 * What a converter may still do once it has opened its stream, and before it opens a file
 * that a stranger made:
 *
 *   limits     memory, open files, no core; an import writes no file
 *   Landlock   an import reads the one file; an export reads and writes in that file's folder
 *   seccomp    no network, no program, no process, no signal to others, no tracing; an import
 *              opens files for reading alone
 *
 * Landlock and seccomp are Linux's. A kernel or build without one of them is no error: then
 * the others hold. Where HDF5 has a folder of filters, that and the system's libraries may be
 * read too.
 */
#ifndef BRC_CONVERT_LIB_SANDBOX_H
#define BRC_CONVERT_LIB_SANDBOX_H

#include "../../base/error.h"

/* For the rest of the process, which has one thread. `file`: the one to read, or to make. */
BRC_MUST_USE int brc_sandbox_enter(const char *file, int writing, brc_error *err);

/* The parts, for sandbox.c alone. */
BRC_MUST_USE int brc_sandbox_paths(const char *file, int writing, brc_error *err);
BRC_MUST_USE int brc_sandbox_calls(int writing, brc_error *err);

#endif
