#include "serve_alarm.h"

#include <errno.h>
#include <string.h>

#include "../breccia_codec.h"

int64_t serve_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void *alarm_run(void *arg)
{
    serve_alarm *alarm = arg;

    pthread_mutex_lock(&alarm->lock);
    while (!alarm->done && !alarm->rang)
        if (pthread_cond_timedwait(&alarm->wake, &alarm->lock, &alarm->until) == ETIMEDOUT) {
            alarm->rang = 1;
            brc_interrupt(alarm->repo, 1);
        }
    pthread_mutex_unlock(&alarm->lock);
    return NULL;
}

int serve_alarm_begin(serve_alarm *alarm, breccia *repo, unsigned ms, brc_error *err)
{
    pthread_condattr_t attributes;

    memset(alarm, 0, sizeof(*alarm));
    alarm->repo = repo;
    clock_gettime(CLOCK_MONOTONIC, &alarm->until);
    alarm->until.tv_sec += (time_t)(ms / 1000);
    alarm->until.tv_nsec += (long)(ms % 1000) * 1000000;
    if (alarm->until.tv_nsec >= 1000000000) {
        alarm->until.tv_sec++;
        alarm->until.tv_nsec -= 1000000000;
    }
    pthread_mutex_init(&alarm->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&alarm->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    if (pthread_create(&alarm->thread, NULL, alarm_run, alarm) == 0) {
        alarm->runs = 1;
        return BRC_OK;
    }
    pthread_cond_destroy(&alarm->wake);
    pthread_mutex_destroy(&alarm->lock);
    return brc_fail(err, BRC_EBUSY, "the server has too many threads: ask again");
}

int serve_alarm_end(serve_alarm *alarm)
{
    if (!alarm->runs)
        return 0;
    pthread_mutex_lock(&alarm->lock);
    alarm->done = 1;
    pthread_cond_signal(&alarm->wake);
    pthread_mutex_unlock(&alarm->lock);
    pthread_join(alarm->thread, NULL);
    pthread_cond_destroy(&alarm->wake);
    pthread_mutex_destroy(&alarm->lock);
    if (alarm->rang)
        brc_interrupt(alarm->repo, 0);
    return alarm->rang;
}
