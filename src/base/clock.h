/* The time. */
#ifndef BRC_BASE_CLOCK_H
#define BRC_BASE_CLOCK_H

#include <stdint.h>

/* Microseconds since 1970-01-01 UTC. */
int64_t brc_now_us(void);
/* Nanoseconds since some moment, for how long something takes. */
int64_t brc_monotonic_ns(void);

#endif
