#include "meeting_codec.h"

#include <check.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#define PATIENCE_S 20
#define CALLER_NS 20000000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t came = PTHREAD_COND_INITIALIZER;
static struct {
    int expected, decoding, met, over, waiting;
    meeting_fn waits, comes;
    void *ctx;
    pthread_t caller;
} meeting;

void meeting_expect(int decoding, meeting_fn waits, meeting_fn comes, void *ctx)
{
    pthread_mutex_lock(&mutex);
    memset(&meeting, 0, sizeof(meeting));
    meeting.expected = 1;
    meeting.decoding = decoding;
    meeting.waits = waits;
    meeting.comes = comes;
    meeting.ctx = ctx;
    meeting.caller = pthread_self();
    pthread_mutex_unlock(&mutex);
}

int meeting_took_place(void)
{
    pthread_mutex_lock(&mutex);
    const int met = meeting.met;
    meeting.expected = 0;
    pthread_mutex_unlock(&mutex);
    return met;
}

/* The caller goes on soon: it hands out the work that others may come with. */
static void wait_for_another(int is_caller)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += is_caller ? 0 : PATIENCE_S;
    until.tv_nsec += is_caller ? CALLER_NS : 0;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    int rc = 0;
    meeting.waiting++;
    while (!meeting.met && !meeting.over && rc == 0)
        rc = pthread_cond_timedwait(&came, &mutex, &until);
    meeting.over |= rc != 0 && !is_caller;
    meeting.waiting--;
}

static void meet(int decoding, brc_span decoded)
{
    pthread_mutex_lock(&mutex);
    if (meeting.expected && meeting.decoding == decoding && !meeting.met && !meeting.over) {
        if (meeting.waiting > 0 && (meeting.comes == NULL || meeting.comes(meeting.ctx, decoded)))
            meeting.met = 1;
        else if (meeting.waits == NULL || meeting.waits(meeting.ctx, decoded))
            wait_for_another(pthread_equal(pthread_self(), meeting.caller));
        pthread_cond_broadcast(&came);
    }
    pthread_mutex_unlock(&mutex);
}

static void meeting_encodes(brc_span bytes)
{
    meet(0, bytes);
}

static void meeting_decodes(brc_span bytes)
{
    meet(1, bytes);
}

static brc_registry *meeting_registry(brc_error *err)
{
    static const watcher meets = {"https://breccia.example/meeting", meeting_encodes,
                                  meeting_decodes};
    return watched_registry(&meets, err);
}

void meeting_stage_start(meeting_stage *stage, size_t memory)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    scenario_folder(&stage->t);
    stage->reg = meeting_registry(&stage->t.err);
    ck_assert_ptr_nonnull(stage->reg);
    OK(&stage->t, brc_pool_new(&stage->pool, 3, &stage->t.err));
    opts.registry = stage->reg;
    opts.pool = stage->pool;
    opts.memory = memory;
    scenario_open(&stage->t, &opts, BRC_OPEN_CREATE);
}

void meeting_stage_stop(meeting_stage *stage)
{
    scenario_stop(&stage->t);
    brc_pool_free(stage->pool);
    brc_registry_free(stage->reg);
}
