/*
 * serve_alarm.h - a clock that interrupts a handle when its time is over.
 */
#ifndef BRC_SERVE_ALARM_H
#define BRC_SERVE_ALARM_H

#include <pthread.h>
#include <time.h>

#include "../breccia.h"

typedef struct serve_alarm {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct timespec until;
    breccia *repo;
    int done, rang, runs;
} serve_alarm;

BRC_MUST_USE int serve_alarm_begin(serve_alarm *alarm, breccia *repo, unsigned ms, brc_error *err);
/* Returns whether the time was over; then the handle works again. */
int serve_alarm_end(serve_alarm *alarm);
/* Returns milliseconds of a clock that only goes forward. */
int64_t serve_now_ms(void);

#endif
