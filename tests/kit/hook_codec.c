#include "hook_codec.h"

#include <pthread.h>
#include <stddef.h>

#include "../../src/base/error.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
    hook_fn fn;
    void *ctx;
    int left, calls, is_inside;
    pthread_t inside;
} hook;

void hook_decode(hook_fn fn, void *ctx, int times)
{
    pthread_mutex_lock(&mutex);
    hook.fn = fn;
    hook.ctx = ctx;
    hook.left = times;
    hook.calls = 0;
    pthread_mutex_unlock(&mutex);
}

int hook_calls(void)
{
    pthread_mutex_lock(&mutex);
    const int calls = hook.calls;
    pthread_mutex_unlock(&mutex);
    return calls;
}

/* Another's decode() waits while the function runs, which the function's own must not. */
static void call_hook(void)
{
    static _Thread_local int is_mine;
    if (is_mine)
        return;
    pthread_mutex_lock(&mutex);
    if (hook.left > 0) {
        hook.left--;
        hook.calls++;
        is_mine = 1;
        hook.fn(hook.ctx);
        is_mine = 0;
    }
    pthread_mutex_unlock(&mutex);
}

static int hook_open(void *ctx, void **state, const brc_json *config, const brc_proto *in,
                     brc_proto *out, int *identity, brc_error *err)
{
    (void)ctx, (void)state, (void)config, (void)identity, (void)err;
    out->len = in->len == BRC_LEN_VARIES ? BRC_LEN_VARIES : in->len + 1;
    out->max_len = in->max_len + 1;
    return BRC_OK;
}

/* A row of zeros shrinks, so that what is encoded is worth while. */
static int hook_encode(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                       brc_error *err)
{
    (void)ctx, (void)state, (void)scratch;
    BRC_TRY(brc_buf_append(dst, src.data, src.len, err));
    return brc_buf_append(dst, "h", 1, err);
}

static int hook_decoded(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                        brc_error *err)
{
    (void)ctx, (void)state, (void)scratch;
    if (src.len == 0 || src.data[src.len - 1] != 'h')
        return brc_fail(err, BRC_ECORRUPT, "the last byte is not an h");
    call_hook();
    return brc_buf_append(dst, src.data, src.len - 1, err);
}

brc_registry *hook_registry(brc_error *err)
{
    const brc_codec_spec spec = {.size = sizeof(spec), .name = "https://breccia.example/hook",
                                 .kind = BRC_BYTES_TO_BYTES, .open = hook_open};
    const brc_codec_impl impl = {.size = sizeof(impl), .spec = spec.name, .name = "test",
                                 .encode = hook_encode, .decode = hook_decoded};
    brc_registry *reg;
    if (brc_registry_new(&reg, err) < 0)
        return NULL;
    if (brc_registry_add_codec(reg, &spec, err) < 0 || brc_registry_add_impl(reg, &impl, err) < 0) {
        brc_registry_free(reg);
        return NULL;
    }
    return reg;
}
