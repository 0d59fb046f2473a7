/*
 * Rows of statistics: the first byte names a data type, and the rest are two rows, as table
 * chunk_stats has them, with the length of the first in front.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/nd/summary.h"
#include "fuzz.h"

static const char *const summary_types[] = { "uint8", "int64", "uint64", "float32", "float64",
                                             "string" };
enum { SUMMARY_TYPES = sizeof(summary_types) / sizeof(summary_types[0]) };

static void check_summary(const brc_summary *s, const brc_summary_kind *kind)
{
    uint64_t sum = 0;
    brc_summary again;
    brc_buf packed = BRC_BUF_INIT;
    for (size_t i = 0; i < s->nbins; i++)
        sum += s->bins[i];
    FUZZ_TRUE(sum == s->n && s->n + s->nan + s->low + s->high == s->count, NULL);
    FUZZ_TRUE(brc_summary_pack(&packed, kind, s, NULL) == BRC_OK, NULL);
    FUZZ_TRUE(brc_summary_unpack(&again, kind, (brc_span){ packed.data, packed.len }, s->count),
              NULL);
    brc_buf_dispose(&packed);
    again = *s;
    brc_summary_coarsen(&again, 20);
    FUZZ_TRUE(again.nbins <= 20 && again.scale >= s->scale, NULL);
    (void)brc_summary_mean(s, kind);
}

/* Reads a row. Its own count says of how many elements it is, up to 2^40. */
static int read_row(brc_summary *out, const brc_summary_kind *kind, const uint8_t *data, size_t len)
{
    uint8_t *exact = fuzz_bytes(data, len);
    brc_reader r = brc_reader_of(exact, len);
    const uint64_t count = brc_read_varint(&r);
    const int read = count < UINT64_C(1) << 40 &&
                     brc_summary_unpack(out, kind, (brc_span){ exact, len }, count);
    free(exact);
    return read;
}

void fuzz_summary(const uint8_t *data, size_t len)
{
    brc_dtype *type;
    brc_summary_kind kind;
    brc_summary a, b;
    if (len < 2 || data[1] > len - 2)
        return;
    FUZZ_TRUE(brc_dtype_open(&type, fuzz_registry(), NULL, summary_types[data[0] % SUMMARY_TYPES],
                             NULL) == BRC_OK,
              NULL);
    FUZZ_TRUE(brc_summary_kind_of(&kind, type), NULL);
    const int first = read_row(&a, &kind, data + 2, data[1]);
    const int second = read_row(&b, &kind, data + 2 + data[1], len - 2 - data[1]);
    if (first)
        check_summary(&a, &kind);
    if (first && second) {
        brc_summary_merge(&a, &kind, &b);
        check_summary(&a, &kind);
    }
    brc_dtype_free(type);
}
