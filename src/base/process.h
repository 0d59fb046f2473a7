/*
 * The description of a process that owns something in a file, as JSON:
 *
 *   {"machine":ID,"pid_namespace":N,"boot":ID,"pid":N,"start":N,"token":HEX}
 *
 * Systems reuse process ids, so the time of the start counts too; both are valid only in one
 * process namespace of one machine, until the next boot. The token is random, because a copy of a
 * virtual machine repeats the other fields. Fields that the system does not provide are left out.
 */
#ifndef BRC_BASE_PROCESS_H
#define BRC_BASE_PROCESS_H

#include <stdint.h>

#include "buf.h"

/* ---- clock -------------------------------- */

/* The time. */

/* Microseconds since 1970-01-01 UTC. */
int64_t brc_now_us(void);
/* Nanoseconds since an arbitrary moment, to measure durations. */
int64_t brc_monotonic_ns(void);

/* ---- process -------------------------------- */

/* Appends the description of this process, with a new token. */
BRC_MUST_USE int brc_process_describe(brc_buf *out, brc_error *err);

enum { BRC_PROCESS_UNKNOWN = 0, BRC_PROCESS_ALIVE = 1, BRC_PROCESS_DEAD = 2 };
/* Returns whether the process of a description is alive. A process counts as dead only if that is
 * certain: it ran on this machine, before the last boot or in this namespace. */
int brc_process_state(const char *owner);
/* Returns whether the description is that of this process. */
int brc_process_is_this(const char *owner);
/* Returns the process id of a description, or 0 if it is not known. */
int64_t brc_process_id(const char *owner);
/* Appends the description `owner` with a new token, for another draft that the process owns. */
BRC_MUST_USE int brc_process_describe_as(brc_buf *out, const char *owner, brc_error *err);
/* Returns 1 with the hexadecimal token of a description, or 0 if it has none. BRC_ECORRUPT if `owner` is not a
 * valid description. */
#define BRC_PROCESS_TOKEN 32
BRC_MUST_USE int brc_process_token(char out[BRC_PROCESS_TOKEN + 1], const char *owner, brc_error *err);

#endif
