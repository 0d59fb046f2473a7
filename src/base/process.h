/*
 * Who owns something that outlives a process: which process of which machine, as JSON.
 *
 *   {"machine":ID,"pid_namespace":N,"boot":ID,"pid":N,"start":N,"token":HEX}
 *
 * Process ids are used again, so the time of the start counts too; both mean something in one
 * process namespace of one machine alone, until it is booted again. The token is random: a
 * restored virtual machine has the rest twice. What a system does not tell is left out.
 */
#ifndef BRC_BASE_PROCESS_H
#define BRC_BASE_PROCESS_H

#include <stdint.h>

#include "buf.h"

/* ---- clock -------------------------------- */

/* The time. */

/* Microseconds since 1970-01-01 UTC. */
int64_t brc_now_us(void);
/* Nanoseconds since some moment, for how long something takes. */
int64_t brc_monotonic_ns(void);

/* ---- process -------------------------------- */

/* This process, with a new token. */
BRC_MUST_USE int brc_process_describe(brc_buf *out, brc_error *err);

enum { BRC_PROCESS_UNKNOWN = 0, BRC_PROCESS_ALIVE = 1, BRC_PROCESS_DEAD = 2 };
/* Whether the process that described itself so is still there. It is dead only where that is
 * certain: it ran on this machine, before it was booted or in this namespace. */
int brc_process_state(const char *owner);
/* Whether it is this process. */
int brc_process_is_this(const char *owner);
/* Its process id, 0 where that is not known. */
int64_t brc_process_id(const char *owner);
/* The same process as in `owner`, with a new token: of something else that it owns. */
BRC_MUST_USE int brc_process_describe_as(brc_buf *out, const char *owner, brc_error *err);
/* 1 and its token, hexadecimal; 0 where it has none. BRC_ECORRUPT: that is no description. */
#define BRC_PROCESS_TOKEN 32
BRC_MUST_USE int brc_process_token(char out[BRC_PROCESS_TOKEN + 1], const char *owner, brc_error *err);

#endif
