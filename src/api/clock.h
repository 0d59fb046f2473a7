/* The time: this layer alone asks the system for it. */
#ifndef BRC_API_CLOCK_H
#define BRC_API_CLOCK_H

#include <stdint.h>

/* Microseconds since 1970-01-01 UTC. */
int64_t brc_now_us(void);

#endif
