/*
 * Chunks that nvCOMP decodes on a device which is there. Only where BRECCIA_TEST_NVCOMP names its
 * library, and there is CUDA's driver: for each codec and length of chunks, the elements that come
 * from the device are compared with those of the host. A line says how many chunks were decoded
 * there, and what both reads took. With LD_PRELOAD the driver may be that of tests/plugins/cuda.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/process.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(nvcomp_device);

CASE("device", .timeout = UNTIMED);

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define LEVEL(name, level) "{\"name\":\"" name "\",\"configuration\":{\"level\":" #level "}}"

static const struct device_codec {
    const char *name, *text;
} device_codecs[] = {
    {"zstd", LEVEL("zstd", 1)},
    {"zstd", "{\"name\":\"zstd\",\"configuration\":{\"level\":15,\"checksum\":true}}"},
    {"numcodecs.zstd", LEVEL("numcodecs.zstd", -3)},
    {"numcodecs.lz4", "{\"name\":\"numcodecs.lz4\"}"},
    {"gzip", LEVEL("gzip", 1)},
    {"gzip", LEVEL("gzip", 9)},
    {"numcodecs.gzip", LEVEL("numcodecs.gzip", 6)},
    {"numcodecs.zlib", LEVEL("numcodecs.zlib", 6)},
};

/* Counts that grow slowly, steps, noise of few bits, and whatever repeats after a while. */
static void fill(uint16_t *values, size_t n)
{
    uint64_t random = 7;
    for (size_t i = 0; i < n; i++) {
        const uint16_t noise = (uint16_t)(scenario_random(&random) & 15);
        const size_t part = i * 4 / n;
        values[i] = part == 0   ? (uint16_t)(i / 5)
                    : part == 1 ? (uint16_t)(i / 3000 * 257)
                    : part == 2 ? noise
                                : (uint16_t)(i % 1777 * 31);
    }
}

static void is_the_same(scenario *t, brc_array *a, const uint16_t *values, size_t bytes,
                        const char *what)
{
    brc_tensor_opts opts = BRC_TENSOR_OPTS_INIT;
    brc_buffer_stats stats = BRC_BUFFER_STATS_INIT;
    brc_tensor *there, *here;
    opts.prototype = "cuda";
    OK(t, brc_tensor_read(&there, a, &opts, &t->err)); /* the first use loads and starts things */
    brc_tensor_free(there);
    const int64_t start = brc_now_us();
    opts.prototype = "locked";
    OK(t, brc_tensor_read(&here, a, &opts, &t->err));
    const int64_t host = brc_now_us();
    opts.prototype = "cuda";
    opts.stats = &stats;
    OK(t, brc_tensor_read(&there, a, &opts, &t->err));
    const int64_t device = brc_now_us();
    ck_assert_msg(memcmp(brc_tensor_describe(here)->data, values, bytes) == 0, "%s here", what);
    brc_tensor_free(here);
    OK(t, brc_tensor_to_host(&here, there, NULL, NULL, &t->err));
    ck_assert_msg(memcmp(brc_tensor_describe(here)->data, values, bytes) == 0, "%s there", what);
    printf("%s: %d chunks there; %lld us into memory of the host, %lld us to the device\n", what,
           (int)stats.there, (long long)(host - start), (long long)(device - host));
    brc_tensor_free(here);
    brc_tensor_free(there);
}

EACH(a_device_gives_the_elements_that_the_host_gives, device_codecs)
{
    static const uint64_t chunks[] = {500, 32 << 10, 512 << 10, 3 << 20};
    enum { MOST = 24 << 20 };
    const char *library = getenv("BRECCIA_TEST_NVCOMP");
    const struct device_codec *codec = &device_codecs[_i];
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    brc_registry *reg;
    scenario t;
    char list[400];
    if (library == NULL)
        return;
    memset(&t, 0, sizeof(t));
    uint16_t *values = malloc(MOST * sizeof(*values));
    ck_assert_ptr_nonnull(values);
    OK(&t, brc_registry_new(&reg, &t.err));
    OK(&t, brc_registry_use_nvcomp(reg, library, &t.err));
    OK(&t, brc_registry_pin(reg, codec->name, "nvcomp", &t.err));
    scenario_folder(&t);
    opts.registry = reg;
    scenario_open(&t, &opts, BRC_OPEN_CREATE);
    snprintf(list, sizeof(list), "[" LITTLE ",%s]", codec->text);
    for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {
        const uint64_t n = chunks[i] * 100 < MOST ? chunks[i] * 100 : MOST;
        char what[500], path[8];
        snprintf(path, sizeof(path), "/a%d", (int)i);
        snprintf(what, sizeof(what), "%s, chunks of %d bytes", codec->text, (int)chunks[i] * 2);
        brc_array *a = scenario_array(&t, path, "uint16", 1, &n, &chunks[i], NULL, list);
        fill(values, n);
        OK(&t, brc_array_write(a, NULL, values, n * sizeof(*values), &t.err));
        is_the_same(&t, a, values, n * sizeof(*values), what);
        brc_array_free(a);
    }
    free(values);
    scenario_stop(&t);
    brc_registry_free(reg);
}
