#include "meeting_codec.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "../../src/base/error.h"

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

static int meeting_open(void *ctx, void **state, const brc_json *config, const brc_proto *in,
                        brc_proto *out, int *identity, brc_error *err)
{
    (void)ctx, (void)state, (void)config, (void)identity, (void)err;
    out->len = in->len == BRC_LEN_VARIES ? BRC_LEN_VARIES : in->len + 1;
    out->max_len = in->max_len + 1;
    return BRC_OK;
}

static int meeting_encode(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                          brc_error *err)
{
    (void)ctx, (void)state, (void)scratch;
    meet(0, src);
    BRC_TRY(brc_buf_append(dst, src.data, src.len, err));
    return brc_buf_append(dst, "m", 1, err);
}

static int meeting_decode(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                          brc_error *err)
{
    (void)ctx, (void)state, (void)scratch;
    if (src.len == 0 || src.data[src.len - 1] != 'm')
        return brc_fail(err, BRC_ECORRUPT, "the last byte is not an m");
    src.len--;
    meet(1, src);
    return brc_buf_append(dst, src.data, src.len, err);
}

brc_registry *meeting_registry(brc_error *err)
{
    const brc_codec_spec spec = {.size = sizeof(spec), .name = "https://breccia.example/meeting",
                                 .kind = BRC_BYTES_TO_BYTES, .open = meeting_open};
    const brc_codec_impl impl = {.size = sizeof(impl), .spec = spec.name, .name = "test",
                                 .encode = meeting_encode, .decode = meeting_decode};
    brc_registry *reg;
    if (brc_registry_new(&reg, err) < 0)
        return NULL;
    if (brc_registry_add_codec(reg, &spec, err) < 0 || brc_registry_add_impl(reg, &impl, err) < 0) {
        brc_registry_free(reg);
        return NULL;
    }
    return reg;
}
