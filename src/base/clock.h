/* The time. */
#ifndef BRC_BASE_CLOCK_H
#define BRC_BASE_CLOCK_H

#include <stdint.h>

/* Microseconds since 1970-01-01 UTC. */
int64_t brc_now_us(void);

#endif
