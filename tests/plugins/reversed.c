/* A plug-in that adds a pipeline: it runs each batch on a thread of its own, one chunk at a time,
 * the last one first. */
#include <pthread.h>
#include <stdatomic.h>

#include "../../src/breccia_pipeline.h"

/* How many batches it ran, of more than one chunk, and how many states are open. */
BRC_API extern atomic_uint reversed_batches, reversed_together, reversed_open;
atomic_uint reversed_batches, reversed_together, reversed_open;

typedef struct reversed_work {
    const brc_batch *batch;
    int decodes, rc;
    size_t failed;
    brc_error *err;
} reversed_work;

static void *reversed_main(void *arg)
{
    reversed_work *w = arg;
    brc_scratch *scratch;
    w->rc = brc_scratch_new(&scratch, w->err);
    for (size_t i = w->batch->n; w->rc == BRC_OK && i-- > 0;) {
        brc_batch one = *w->batch;
        if (one.src[i].data == NULL)
            continue;
        one.scratch = scratch;
        one.n = 1;
        one.src += i;
        one.dst += i;
        w->rc = w->decodes ? brc_batch_decode(&one, NULL, w->err)
                           : brc_batch_encode(&one, NULL, w->err);
        w->failed = i;
    }
    brc_scratch_free(scratch);
    return NULL;
}

static int reversed_run(const brc_batch *batch, int decodes, size_t *failed, brc_error *err)
{
    reversed_work w = { batch, decodes, BRC_OK, 0, err };
    pthread_t thread;
    reversed_batches++;
    reversed_together += batch->n > 1;
    if (pthread_create(&thread, NULL, reversed_main, &w) != 0)
        return brc_fail(err, BRC_ENOMEM, "no thread can be started");
    pthread_join(thread, NULL);
    *failed = w.failed;
    return w.rc;
}

static int reversed_decode(void *ctx, void *state, const brc_batch *batch, size_t *failed,
                           brc_error *err)
{
    (void)ctx;
    (void)state;
    return reversed_run(batch, 1, failed, err);
}

static int reversed_encode(void *ctx, void *state, const brc_batch *batch, size_t *failed,
                           brc_error *err)
{
    (void)ctx;
    (void)state;
    return reversed_run(batch, 0, failed, err);
}

static int reversed_state(void *ctx, void **state, const brc_json *config, brc_error *err)
{
    static const char *const options[] = { "depth" };
    uint64_t depth = 0;
    (void)ctx;
    if (config != NULL) {
        int rc = brc_json_allow(config, options, 1, err);
        if (rc < 0)
            return rc;
        if (!brc_json_uint(brc_json_member(config, "depth"), 9, &depth))
            return brc_fail(err, BRC_EINVAL, "\"depth\" must be a number from 0 to 9");
    }
    reversed_open++;
    *state = &reversed_open;
    return BRC_OK;
}

static void reversed_close(void *ctx, void *state)
{
    (void)ctx;
    (*(atomic_uint *)state)--;
}

int brc_plugin_init(uint32_t abi, brc_registry *reg, brc_error *err)
{
    const brc_pipeline pipeline = {
        .size = sizeof(pipeline),
        .name = "org.example.reversed",
        .open = reversed_state,
        .close = reversed_close,
        .decode = reversed_decode,
        .encode = reversed_encode,
    };
    int rc = BRC_PLUGIN_CHECK(abi, err);
    return rc < 0 ? rc : brc_registry_add_pipeline(reg, &pipeline, err);
}
