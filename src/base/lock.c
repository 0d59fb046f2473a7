#include "lock.h"

#include <pthread.h>
#include <stdlib.h>

#include "alloc.h"

struct brc_lock {
    pthread_mutex_t mutex;
};

int brc_lock_new(brc_lock **out, brc_error *err)
{
    void *p;
    *out = NULL;
    BRC_TRY(brc_new(&p, sizeof(brc_lock), err));
    brc_lock *lock = p;
    int errnum = pthread_mutex_init(&lock->mutex, NULL);
    if (errnum != 0) {
        free(lock);
        return brc_fail_os(err, errnum, "cannot make", "a lock");
    }
    *out = lock;
    return BRC_OK;
}

void brc_lock_free(brc_lock *lock)
{
    if (lock == NULL)
        return;
    pthread_mutex_destroy(&lock->mutex);
    free(lock);
}

void brc_lock_enter(brc_lock *lock)
{
    pthread_mutex_lock(&lock->mutex);
}

void brc_lock_leave(brc_lock *lock)
{
    pthread_mutex_unlock(&lock->mutex);
}

void brc_at_fork(void (*before)(void), void (*after)(void))
{
    (void)!pthread_atfork(before, after, after);
}
