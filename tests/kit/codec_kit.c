/* The conformance test of a codec; see codec_kit.h. */
#include "codec_kit.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/codec/chain.h"
#include "../../src/nd/shape.h"

#define KIT_MAX_LEN ((uint64_t)1 << 16) /* bytes a chunk: enough for several blocks */
enum { KIT_GUARD = 32, KIT_FLIPS = 24, KIT_CUTS = 24 };

/* splitmix64: any seed will do. */
uint64_t codec_kit_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* One chunk's test: everything that is shared by its checks. */
struct kit_case {
    const codec_kit *kit;
    char *why;
    size_t why_size;
    uint64_t random;
    char shape[128];
    const brc_dtype *type;
    brc_chain *chain;
    brc_scratch *scratch;
    uint8_t *plain; /* len bytes                                                  */
    size_t len;
    brc_buf stored;
    uint8_t *place; /* len bytes and a guard, to decode into                      */
};

static int kit_fail(const struct kit_case *c, const char *format, ...) BRC_PRINTF(2, 3);

static int kit_fail(const struct kit_case *c, const char *format, ...)
{
    char what[300];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    snprintf(c->why, c->why_size, "%s, %s, shape (%s), seed %llu: %s", c->kit->codecs,
             c->type != NULL ? c->type->name : "-", c->shape, (unsigned long long)c->kit->seed,
             what);
    return 1;
}

/* Decodes from memory of exactly src.len bytes into memory of exactly c->len: what is
 * read or written outside is seen by sanitizers, and by the guard. */
static int kit_decode(struct kit_case *c, brc_chain *chain, brc_span src, brc_error *err,
                      int *guard_ok, size_t *got)
{
    uint8_t *copy = malloc(src.len > 0 ? src.len : 1);
    brc_buf dst = BRC_FIXED_BUF(c->place, c->len);

    if (src.len > 0)
        memcpy(copy, src.data, src.len);
    memset(c->place, 0xA5, c->len + KIT_GUARD);
    int rc = brc_chain_decode(chain, c->scratch, (brc_span){ copy, src.len }, NULL, &dst, err);
    free(copy);
    *guard_ok = dst.data == c->place && dst.cap == c->len;
    for (int i = 0; i < KIT_GUARD; i++)
        *guard_ok &= c->place[c->len + (size_t)i] == 0xA5;
    *got = dst.len;
    return rc;
}

/* c->place holds what was decoded: encoded and decoded again, it is the same. */
static int kit_check_once(struct kit_case *c)
{
    brc_error err = BRC_ERROR_INIT;
    brc_buf again = BRC_BUF_INIT, twice = BRC_BUF_INIT;
    int bad = 0;
    int rc = brc_chain_encode(c->chain, c->scratch, (brc_span){ c->place, c->len }, &again, &err);

    if (rc == BRC_OK)
        rc = brc_chain_decode(c->chain, c->scratch, (brc_span){ again.data, again.len }, NULL,
                              &twice, &err);
    if (rc < 0)
        bad = kit_fail(c, "what is decoded cannot be encoded again: %s", err.message);
    else if (twice.len != c->len || (!(c->kit->tame & KIT_DRIFTS) && c->len > 0 &&
                                     memcmp(twice.data, c->place, c->len) != 0))
        bad = kit_fail(c, "decoding twice is not the same as once");
    brc_buf_dispose(&again);
    brc_buf_dispose(&twice);
    return bad;
}

static int kit_check_round_trip(struct kit_case *c)
{
    brc_error err = BRC_ERROR_INIT;
    int guard_ok = 0;
    size_t got = 0;

    c->stored.len = 0;
    int rc =
        brc_chain_encode(c->chain, c->scratch, (brc_span){ c->plain, c->len }, &c->stored, &err);
    if (rc < 0)
        return kit_fail(c, "encoding fails: %s", err.message);
    if (c->stored.len > brc_chain_describe(c->chain)->encoded_max)
        return kit_fail(c, "%zu encoded bytes are more than the chain's %llu", c->stored.len,
                        (unsigned long long)brc_chain_describe(c->chain)->encoded_max);
    rc =
        kit_decode(c, c->chain, (brc_span){ c->stored.data, c->stored.len }, &err, &guard_ok, &got);
    if (rc < 0)
        return kit_fail(c, "decoding fails: %s", err.message);
    if (!guard_ok || got != c->len)
        return kit_fail(c, "decoding gives %zu bytes of %zu, or writes past them", got, c->len);
    if (brc_chain_is_lossy(c->chain))
        return kit_check_once(c);
    if (c->len > 0 && memcmp(c->place, c->plain, c->len) != 0)
        return kit_fail(c, "what is decoded is not what was encoded");
    return 0;
}

/* Elements of a box, one after the other in C order; 0 after the last one. */
static int kit_box_next(int ndim, const brc_box *box, uint64_t *at)
{
    for (int i = ndim - 1; i >= 0; i--) {
        if (++at[i] < box->count[i])
            return 1;
        at[i] = 0;
    }
    return 0;
}

static int kit_same_in_box(const struct kit_case *c, const uint8_t *whole, int ndim,
                           const uint64_t *shape, const brc_box *box)
{
    uint64_t at[BRC_MAX_NDIM] = { 0 };
    size_t item = c->type->item_size;

    do {
        size_t n = 0;
        for (int i = 0; i < ndim; i++)
            n = n * (size_t)shape[i] + (size_t)(box->start[i] + at[i]);
        if (memcmp(c->place + n * item, whole + n * item, item) != 0)
            return 0;
    } while (kit_box_next(ndim, box, at));
    return 1;
}

static void kit_pick_box(struct kit_case *c, int ndim, const uint64_t *shape, brc_box *box)
{
    for (int i = 0; i < ndim; i++) {
        box->start[i] = codec_kit_random(&c->random) % shape[i];
        box->count[i] = 1;
        if (codec_kit_random(&c->random) % 3 > 0) /* often one: an axis falls away then */
            box->count[i] += codec_kit_random(&c->random) % (shape[i] - box->start[i]);
    }
}

static int kit_decode_box(struct kit_case *c, const brc_box *box)
{
    brc_error err = BRC_ERROR_INIT;
    brc_buf dst = BRC_FIXED_BUF(c->place, c->len);

    memset(c->place, 0xA5, c->len);
    int rc = brc_chain_decode(c->chain, c->scratch, (brc_span){ c->stored.data, c->stored.len },
                              box, &dst, &err);
    if (rc < 0)
        return kit_fail(c, "decoding a box fails: %s", err.message);
    return dst.len == c->len ? 0 : kit_fail(c, "a box comes in %zu bytes of %zu", dst.len, c->len);
}

/* Follows kit_check_round_trip(), which has left the whole chunk. */
static int kit_check_boxes(struct kit_case *c, int ndim, const uint64_t *shape)
{
    brc_box box = BRC_BOX_INIT;
    int bad = 0;

    if (c->type->item_size == 0 || c->len == 0)
        return 0;
    uint8_t *whole = malloc(c->len);
    if (whole == NULL)
        return kit_fail(c, "no memory for the test itself");
    memcpy(whole, c->place, c->len);
    for (int i = 0; i < 8 && !bad; i++) {
        kit_pick_box(c, ndim, shape, &box);
        bad = kit_decode_box(c, &box);
        if (!bad && !kit_same_in_box(c, whole, ndim, shape, &box))
            bad = kit_fail(c, "a box has other elements than the whole chunk");
    }
    free(whole);
    return bad;
}

/* Hostile input either fails with a message or gives the right length. */
static int kit_check_hostile(struct kit_case *c, brc_span src, const char *how, size_t where)
{
    brc_error err = BRC_ERROR_INIT;
    int guard_ok = 0;
    size_t got = 0;
    int rc = kit_decode(c, c->chain, src, &err, &guard_ok, &got);

    if (!guard_ok)
        return kit_fail(c, "%s at %zu writes past the chunk", how, where);
    if (rc == BRC_OK && got != c->len && c->type->item_size > 0)
        return kit_fail(c, "%s at %zu gives %zu bytes without an error", how, where, got);
    if (rc == BRC_ELIMIT && c->type->item_size == 0) /* longer than the memory: fair */
        return 0;
    if (rc < 0 && (err.code != rc || err.message[0] == '\0'))
        return kit_fail(c, "%s at %zu fails without a message", how, where);
    if (rc < 0 && rc != BRC_ECORRUPT && rc != BRC_EUNSUPPORTED)
        return kit_fail(c, "%s at %zu fails with %s, not as corrupt: %s", how, where,
                        brc_strerror(rc), err.message);
    return 0;
}

static int kit_check_cuts(struct kit_case *c)
{
    size_t n = c->stored.len;

    for (size_t i = 0; i < KIT_CUTS && i < n; i++) {
        size_t cut = n <= KIT_CUTS      ? i
                     : i < KIT_CUTS / 2 ? i * 2
                                        : (size_t)(codec_kit_random(&c->random) % n);
        if (kit_check_hostile(c, (brc_span){ c->stored.data, cut }, "a cut", cut))
            return 1;
    }
    return 0;
}

static int kit_check_flips(struct kit_case *c)
{
    size_t n = c->stored.len;

    for (size_t i = 0; i < KIT_FLIPS && n > 0; i++) {
        /* Headers decide most: half of the flips hit the first 32 bytes. */
        size_t at = (size_t)(codec_kit_random(&c->random) % (i % 2 == 0 && n > 32 ? 32 : n));
        uint8_t old = c->stored.data[at];
        c->stored.data[at] = (uint8_t)(old ^ 1u << codec_kit_random(&c->random) % 8);
        int bad = kit_check_hostile(c, (brc_span){ c->stored.data, n }, "a flipped bit", at);
        c->stored.data[at] = old;
        if (bad)
            return 1;
    }
    return 0;
}

static int kit_check_noise(struct kit_case *c)
{
    uint8_t noise[96];

    for (size_t len = 0; len <= sizeof(noise); len += 12) {
        for (size_t i = 0; i < sizeof(noise); i++)
            noise[i] = (uint8_t)codec_kit_random(&c->random);
        if (kit_check_hostile(c, (brc_span){ noise, len }, "noise", len))
            return 1;
    }
    return 0;
}

static int kit_open_list(brc_chain **out, const codec_kit *kit, const char *text, size_t len,
                         int ndim, const uint64_t *shape, const brc_dtype *type, brc_error *err)
{
    brc_json *codecs = NULL;
    int rc = brc_json_parse(&codecs, text, len, 0, err);

    *out = NULL;
    if (rc == BRC_OK)
        rc = brc_chain_open(out, kit->reg, codecs, ndim, shape, type, (brc_span){ NULL, 0 }, err);
    brc_json_free(codecs);
    return rc;
}

static int kit_check_full_form(struct kit_case *c, int ndim, const uint64_t *shape)
{
    brc_buf text = BRC_BUF_INIT, again = BRC_BUF_INIT;
    brc_chain *twin = NULL;
    brc_error err = BRC_ERROR_INIT;
    int guard_ok = 0, bad = 0;
    size_t got = 0;

    if (brc_chain_write(c->chain, &text, &err) < 0 ||
        kit_open_list(&twin, c->kit, (const char *)text.data, text.len, ndim, shape, c->type,
                      &err) < 0 ||
        brc_chain_write(twin, &again, &err) < 0)
        bad = kit_fail(c, "the full form does not open: %s", err.message);
    else if (text.len != again.len || memcmp(text.data, again.data, text.len) != 0)
        bad = kit_fail(c, "the full form is not stable");
    else if (kit_decode(c, twin, (brc_span){ c->stored.data, c->stored.len }, &err, &guard_ok,
                        &got) < 0)
        bad = kit_fail(c, "the full form does not decode: %s", err.message);
    else if (!brc_chain_is_lossy(c->chain) && c->len > 0 && memcmp(c->place, c->plain, c->len) != 0)
        bad = kit_fail(c, "the full form decodes to something else");
    brc_chain_free(twin);
    brc_buf_dispose(&text);
    brc_buf_dispose(&again);
    return bad;
}

/* ---- out of memory ------------------------------------------------------------------ */

enum { KIT_MAX_ALLOCATIONS = 400 };

static int kit_open_list(brc_chain **out, const codec_kit *kit, const char *text, size_t len,
                         int ndim, const uint64_t *shape, const brc_dtype *type, brc_error *err);

/* Everything from opening to decoding, with nothing kept from before. */
static int kit_whole_life(const struct kit_case *c, int ndim, const uint64_t *shape, brc_error *err)
{
    brc_buf stored = BRC_BUF_INIT, plain = BRC_BUF_INIT;
    brc_chain *chain = NULL;
    brc_scratch *scratch = NULL;
    int rc = kit_open_list(&chain, c->kit, c->kit->codecs, strlen(c->kit->codecs), ndim, shape,
                           c->type, err);

    if (rc == BRC_OK)
        rc = brc_scratch_new(&scratch, err);
    if (rc == BRC_OK)
        rc = brc_chain_encode(chain, scratch, (brc_span){ c->plain, c->len }, &stored, err);
    if (rc == BRC_OK)
        rc = brc_chain_decode(chain, scratch, (brc_span){ stored.data, stored.len }, NULL, &plain,
                              err);
    brc_buf_dispose(&stored);
    brc_buf_dispose(&plain);
    brc_scratch_free(scratch);
    brc_chain_free(chain);
    return rc;
}

static int kit_check_memory(struct kit_case *c, int ndim, const uint64_t *shape)
{
    for (long n = 0; c->kit->fail_after != NULL && n < KIT_MAX_ALLOCATIONS; n++) {
        brc_error err = BRC_ERROR_INIT;
        c->kit->fail_after(n);
        int rc = kit_whole_life(c, ndim, shape, &err);
        int failed = c->kit->fail_after(-1);
        if (rc < 0 && rc != BRC_ENOMEM)
            return kit_fail(c, "without memory for allocation %ld it fails with %s, not with "
                               "BRC_ENOMEM: %s",
                            n, brc_strerror(rc), err.message);
        if (rc < 0 && !failed)
            return kit_fail(c, "it says that memory is out, and it is not: %s", err.message);
        if (!failed)
            break;
    }
    return 0;
}

/* ---- another implementation --------------------------------------------------------- */

static int kit_check_pair(struct kit_case *c, const brc_chain *writer, const brc_chain *reader,
                          const char *who)
{
    brc_error err = BRC_ERROR_INIT;
    brc_buf plain = BRC_BUF_INIT;

    c->stored.len = 0;
    int rc = brc_chain_encode(writer, c->scratch, (brc_span){ c->plain, c->len }, &c->stored, &err);
    if (rc == BRC_OK)
        rc = brc_chain_decode(reader, c->scratch, (brc_span){ c->stored.data, c->stored.len }, NULL,
                              &plain, &err);
    int same = rc == BRC_OK && plain.len == c->len &&
               (brc_chain_is_lossy(c->chain) || c->len == 0 ||
                memcmp(plain.data, c->plain, c->len) == 0);
    brc_buf_dispose(&plain);
    return same ? 0 : kit_fail(c, "%s: %s", who, rc < 0 ? err.message : "other bytes come out");
}

static int kit_check_other(struct kit_case *c, int ndim, const uint64_t *shape)
{
    codec_kit kit = *c->kit;
    brc_error err = BRC_ERROR_INIT;
    brc_chain *other;

    if (kit.other == NULL)
        return 0;
    kit.reg = kit.other;
    if (kit_open_list(&other, &kit, kit.codecs, strlen(kit.codecs), ndim, shape, c->type, &err) < 0)
        return kit_fail(c, "the other implementation does not open: %s", err.message);
    int bad = kit_check_pair(c, c->chain, other, "the other implementation cannot read this one") ||
              kit_check_pair(c, other, c->chain, "this implementation cannot read the other one");
    brc_chain_free(other);
    return bad;
}

/* ---- two threads -------------------------------------------------------------------- */

struct kit_thread {
    const struct kit_case *c;
    int bad;
};

static int kit_thread_round(const struct kit_case *c, brc_scratch *scratch)
{
    brc_buf stored = BRC_BUF_INIT, plain = BRC_BUF_INIT;
    int bad =
        brc_chain_encode(c->chain, scratch, (brc_span){ c->plain, c->len }, &stored, NULL) < 0 ||
        brc_chain_decode(c->chain, scratch, (brc_span){ stored.data, stored.len }, NULL, &plain,
                         NULL) <
            0 ||
        plain.len != c->len ||
        (!brc_chain_is_lossy(c->chain) && c->len > 0 && memcmp(plain.data, c->plain, c->len) != 0);

    brc_buf_dispose(&stored);
    brc_buf_dispose(&plain);
    return bad;
}

static void *kit_thread_run(void *opaque)
{
    struct kit_thread *self = opaque;
    brc_scratch *scratch = NULL;

    self->bad = brc_scratch_new(&scratch, NULL) < 0;
    for (int i = 0; i < 8 && !self->bad; i++)
        self->bad = kit_thread_round(self->c, scratch);
    brc_scratch_free(scratch);
    return NULL;
}

static int kit_check_threads(struct kit_case *c)
{
    struct kit_thread threads[2] = { { c, 0 }, { c, 0 } };
    pthread_t other;

    if (pthread_create(&other, NULL, kit_thread_run, &threads[0]) != 0)
        return kit_fail(c, "no second thread can be started");
    kit_thread_run(&threads[1]);
    pthread_join(other, NULL);
    if (threads[0].bad || threads[1].bad)
        return kit_fail(c, "two threads at once disturb each other");
    return 0;
}

/* ---- cases -------------------------------------------------------------------------- */

/* Elements like those of real arrays: one value, ramps, smooth numbers, noise. */
static void kit_fill(struct kit_case *c, int pattern)
{
    for (size_t i = 0; i < c->len; i++) {
        switch (pattern % 4) {
        case 0:
            c->plain[i] = 0;
            break;
        case 1:
            c->plain[i] = (uint8_t)(i / 7);
            break;
        case 2:
            c->plain[i] = i % 4 == 0 ? (uint8_t)codec_kit_random(&c->random) : (uint8_t)(i % 4);
            break;
        default:
            c->plain[i] = (uint8_t)codec_kit_random(&c->random);
        }
    }
}

static void kit_halve(struct kit_case *c)
{
    size_t item = c->type->item_size;

    if (c->type->klass != BRC_CLASS_UINT || item < 4)
        return;
    for (size_t i = item - 1; i < c->len; i += item)
        c->plain[i] &= 0x7F;
}

/* Eighths up to 250, of both signs. */
static void kit_tame(struct kit_case *c)
{
    size_t item = c->type->item_size;

    for (size_t at = 0; at < c->len; at += item) {
        double number = (double)(int)(codec_kit_random(&c->random) % 4001) / 8 - 250;
        float small = (float)number;
        memcpy(c->plain + at, item == 8 ? (void *)&number : (void *)&small, item);
    }
}

/* A text that may be missing: one of three is, else a mark comes first. */
static uint8_t kit_make_optional(uint8_t *letters, uint8_t len, uint64_t random)
{
    memmove(letters + 5, letters + 4, 2u * len);
    letters[4] = 1;
    letters[0] = random % 3 == 0 ? 0 : (uint8_t)(2 * len + 1);
    return len;
}

/* Elements of variable length: short texts, some with letters of two bytes. */
static int kit_make_texts(struct kit_case *c, int pattern, int ndim, const uint64_t *shape)
{
    brc_buf out = BRC_BUF_INIT;
    uint64_t n = 1;
    int rc = brc_buf_reserve(&out, 1, NULL);

    for (int i = 0; i < ndim; i++)
        n *= shape[i];
    for (uint64_t i = 0; i < n && rc == BRC_OK; i++) {
        uint8_t letters[17] = { 0 };
        uint64_t random = codec_kit_random(&c->random);
        uint8_t len = pattern % 4 == 0 ? 0 : (uint8_t)(random % 7 * (random >> 32) % 7);
        for (uint8_t k = 0; k < len; k++) {
            letters[4 + 2 * k] = pattern % 4 == 1 ? 0xC3 : 'a';
            letters[5 + 2 * k] = (uint8_t)(pattern % 4 == 1 ? 0xA0u + k : 'b' + random % 5);
        }
        letters[0] = (uint8_t)(2 * len);
        if (c->type->klass == BRC_CLASS_OPTIONAL)
            len = kit_make_optional(letters, len, random);
        rc = brc_buf_append(&out, letters, 4u + letters[0], NULL);
    }
    c->plain = out.data;
    c->len = out.len;
    return rc == BRC_OK ? 0 : kit_fail(c, "no memory for the test itself");
}

static int kit_make_plain(struct kit_case *c, int round, int ndim, const uint64_t *shape)
{
    if (c->type->item_size == 0)
        return kit_make_texts(c, round, ndim, shape);
    c->len = (size_t)brc_chain_describe(c->chain)->decoded_len;
    c->plain = malloc(c->len + 1);
    if (c->plain == NULL)
        return kit_fail(c, "no memory for the test itself");
    kit_fill(c, round);
    if (c->kit->tame & KIT_TAME)
        kit_tame(c);
    if (c->kit->tame & KIT_HALF)
        kit_halve(c);
    brc_dtype_normalize(c->type, c->plain, c->len / c->type->item_size);
    for (size_t i = 0; i < c->len && c->type->klass == BRC_CLASS_BOOL; i++)
        c->plain[i] &= 1;
    return 0;
}

static int kit_pick_shape(struct kit_case *c, int round, uint64_t *shape)
{
    const codec_kit *kit = c->kit;
    int ndim = kit->ndim >= 0 ? kit->ndim : (int)((uint64_t)round % 5);
    uint64_t room = KIT_MAX_LEN / (c->type->item_size > 0 ? c->type->item_size : 16);
    size_t at = 0;

    for (int i = 0; i < ndim; i++) {
        uint64_t most = round % 3 == 0 ? 9 : 70;
        most = most < room ? most : room > 0 ? room : 1;
        shape[i] = 1 + codec_kit_random(&c->random) % most;
        room /= shape[i];
    }
    if (ndim > 0 && round == 3)
        shape[0] = 0;
    c->shape[0] = '\0';
    for (int i = 0; i < ndim && at < sizeof(c->shape) - 24; i++)
        at += (size_t)snprintf(c->shape + at, sizeof(c->shape) - at, "%s%llu", i > 0 ? "," : "",
                               (unsigned long long)shape[i]);
    return ndim;
}

static int kit_run_checks(struct kit_case *c, int round, int ndim, const uint64_t *shape)
{
    if (kit_make_plain(c, round, ndim, shape))
        return 1;
    c->place = malloc(c->len + KIT_GUARD);
    if (c->place == NULL)
        return kit_fail(c, "no memory for the test itself");
    return kit_check_round_trip(c) || kit_check_boxes(c, ndim, shape) ||
           kit_check_full_form(c, ndim, shape) || kit_check_cuts(c) ||
           kit_check_flips(c) || kit_check_noise(c) || kit_check_round_trip(c) ||
           kit_check_other(c, ndim, shape) ||
           (round == 1 && (kit_check_threads(c) || kit_check_memory(c, ndim, shape)));
}

static int kit_is_tame(const brc_dtype *type)
{
    return strcmp(type->name, "float32") == 0 || strcmp(type->name, "float64") == 0 ||
           strcmp(type->name, "string") == 0;
}

static int kit_run_shape(struct kit_case *c, int round, int *taken)
{
    uint64_t shape[BRC_MAX_NDIM] = { 0 };
    brc_error err = BRC_ERROR_INIT;
    int ndim = kit_pick_shape(c, round, shape);
    int rc = kit_open_list(&c->chain, c->kit, c->kit->codecs, strlen(c->kit->codecs), ndim, shape,
                           c->type, &err);

    if (rc == BRC_EINVAL || rc == BRC_EUNSUPPORTED) {
        if (*taken == 0)
            kit_fail(c, "%s", err.message);
        return 0;
    }
    if (rc < 0)
        return kit_fail(c, "%s", err.message);
    *taken += 1;
    int bad = kit_run_checks(c, round, ndim, shape);
    free(c->plain);
    free(c->place);
    brc_chain_free(c->chain);
    c->plain = c->place = NULL;
    return bad;
}

#define KIT_OPTIONAL(inner) "{\"name\":\"zarrs.optional\",\"configuration\":" inner "}"

/* Families and types that need a configuration. */
static const struct {
    const char *name, *json;
} kit_configured[] = {
    { "r<bits>", "\"r24\"" },
    { "fixed_length_utf32",
      "{\"name\":\"fixed_length_utf32\",\"configuration\":{\"length_bytes\":12}}" },
    { "null_terminated_bytes",
      "{\"name\":\"null_terminated_bytes\",\"configuration\":{\"length_bytes\":5}}" },
    { "raw_bytes", "{\"name\":\"raw_bytes\",\"configuration\":{\"length_bytes\":7}}" },
    { "numpy.datetime64", "{\"name\":\"numpy.datetime64\",\"configuration\":"
                          "{\"unit\":\"ns\",\"scale_factor\":1}}" },
    { "numpy.timedelta64", "{\"name\":\"numpy.timedelta64\",\"configuration\":"
                           "{\"unit\":\"s\",\"scale_factor\":10}}" },
    { "struct", "{\"name\":\"struct\",\"configuration\":{\"fields\":["
                "{\"name\":\"a\",\"data_type\":\"int32\"},{\"name\":\"b\",\"data_type\":\"int4\"},"
                "{\"name\":\"c\",\"data_type\":\"complex128\"}]}}" },
    { "structured", "{\"name\":\"structured\",\"configuration\":{\"fields\":["
                    "[\"a\",\"int16\"],[\"b\",\"uint8\"]]}}" },
    { "zarrs.optional", KIT_OPTIONAL("{\"name\":\"int32\"}") },
    { "zarrs.optional", KIT_OPTIONAL(KIT_OPTIONAL("{\"name\":\"complex64\"}")) },
    { "zarrs.optional", KIT_OPTIONAL("{\"name\":\"string\"}") },
};

/* text: what zarr.json has, or NULL: the name alone. */
static int kit_run_dtype(struct kit_case *c, const char *name, const char *text, int *taken)
{
    brc_json *json = NULL;
    brc_dtype *type = NULL;
    brc_error err = BRC_ERROR_INIT;
    int rc = BRC_OK, bad = 0;

    if (text == NULL)
        json = brc_json_new_string(name);
    else
        rc = brc_json_parse(&json, text, strlen(text), 0, &err);
    if (rc == BRC_OK)
        rc = brc_dtype_open(&type, c->kit->reg, json, NULL, &err);

    brc_json_free(json);
    if (rc < 0)
        return kit_fail(c, "the data type %s does not open: %s", name, err.message);
    c->type = type;
    int rounds = c->kit->rounds > 0 ? c->kit->rounds : 4;
    if ((c->kit->tame & KIT_TAME) && !kit_is_tame(type))
        rounds = 0;
    for (int round = 0; round < rounds && !bad; round++)
        bad = kit_run_shape(c, round, taken);
    c->type = NULL;
    brc_dtype_free(type);
    return bad;
}

const char *codec_kit_configured(const char *type, size_t i)
{
    for (size_t k = 0; k < sizeof(kit_configured) / sizeof(kit_configured[0]); k++)
        if (strcmp(kit_configured[k].name, type) == 0 && i-- == 0)
            return kit_configured[k].json;
    return NULL;
}

/* Every configuration of the type that is known here. */
static int kit_run_configured(struct kit_case *c, const char *name, int *taken)
{
    const char *json;
    int bad = 0;

    for (size_t i = 0; !bad && (json = codec_kit_configured(name, i)) != NULL; i++)
        bad = kit_run_dtype(c, name, json, taken);
    return bad;
}

/* Every data type of the registry, but for those whose configuration is not known here. */
static int kit_run_types(struct kit_case *c, int *taken)
{
    brc_iter *it = NULL;
    const brc_dtype_info *info;
    int bad = brc_registry_list(&it, c->kit->reg, BRC_LIST_DTYPES, NULL) < 0;

    while (!bad && brc_next(it, &info, NULL) == 1)
        bad = (info->flags & BRC_DTYPE_CONFIGURED) ? kit_run_configured(c, info->name, taken)
                              : kit_run_dtype(c, info->name, NULL, taken);
    brc_iter_free(it);
    return bad;
}

int codec_kit_run(const codec_kit *kit, char *why, size_t why_size)
{
    struct kit_case c = { .kit = kit, .why = why, .why_size = why_size, .random = kit->seed };
    int taken = 0, bad = brc_scratch_new(&c.scratch, NULL) < 0;

    bad = bad || kit_run_types(&c, &taken);
    brc_scratch_free(c.scratch);
    brc_buf_dispose(&c.stored);
    return bad || taken == 0;
}
