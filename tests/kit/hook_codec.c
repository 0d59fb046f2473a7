#include "hook_codec.h"

#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
    hook_fn fn;
    void *ctx;
    int encoding, left, calls;
} hook;

static void hang(int encoding, hook_fn fn, void *ctx, int times)
{
    pthread_mutex_lock(&mutex);
    hook.encoding = encoding;
    hook.fn = fn;
    hook.ctx = ctx;
    hook.left = times;
    hook.calls = 0;
    pthread_mutex_unlock(&mutex);
}

void hook_decode(hook_fn fn, void *ctx, int times)
{
    hang(0, fn, ctx, times);
}

void hook_encode(hook_fn fn, void *ctx, int times)
{
    hang(1, fn, ctx, times);
}

int hook_calls(void)
{
    pthread_mutex_lock(&mutex);
    const int calls = hook.calls;
    pthread_mutex_unlock(&mutex);
    return calls;
}

/* Another thread's call waits while the function runs, which the function's own must not. */
static void call_hook(int encoding)
{
    static _Thread_local int is_mine;
    if (is_mine)
        return;
    pthread_mutex_lock(&mutex);
    if (hook.left > 0 && hook.encoding == encoding) {
        hook.left--;
        hook.calls++;
        is_mine = 1;
        hook.fn(hook.ctx);
        is_mine = 0;
    }
    pthread_mutex_unlock(&mutex);
}

static void hook_encodes(brc_span bytes)
{
    (void)bytes;
    call_hook(1);
}

static void hook_decodes(brc_span bytes)
{
    (void)bytes;
    call_hook(0);
}

brc_registry *hook_registry(brc_error *err)
{
    static const watcher hooked = {"https://breccia.example/hook", hook_encodes, hook_decodes};
    return watched_registry(&hooked, err);
}
