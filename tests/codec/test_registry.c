/* The registry: names, owners, freezing and choice. */
#include <stdlib.h>
#include <string.h>

#include "../../src/codec/chain.h"
#include "../../src/codec/registry.h"
#include "../kit/codec_kit.h"
#include "../kit/suite.h"

TEST_SUITE(registry);

static brc_registry *registry_now;
static brc_error registry_err;

static void registry_setup(void)
{
    ck_assert_int_eq(brc_registry_new(&registry_now, &registry_err), BRC_OK);
}

static void registry_teardown(void)
{
    brc_registry_free(registry_now);
}

/* ---- a codec that does nothing, and counts its end ---------------------------------- */

static int plain_open(void *ctx, void **state, const brc_json *config, const brc_proto *in,
                      brc_proto *out, int *identity, brc_error *err)
{
    (void)ctx;
    (void)config;
    (void)in;
    (void)out;
    (void)identity;
    (void)err;
    *state = NULL;
    return BRC_OK;
}

static int plain_convert(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                         brc_error *err)
{
    (void)ctx;
    (void)state;
    (void)scratch;
    return brc_buf_append(dst, src.data, src.len, err);
}

static void plain_destroy(void *ctx)
{
    ++*(int *)ctx;
}

static int plain_probe_no(void *ctx)
{
    (void)ctx;
    return 0;
}

static brc_codec_spec plain_spec(const char *name, const char *owner)
{
    return (brc_codec_spec){ .size = sizeof(brc_codec_spec),
                             .name = name,
                             .kind = BRC_BYTES_TO_BYTES,
                             .open = plain_open,
                             .owner = owner };
}

static brc_codec_impl plain_impl(const char *spec, const char *name, int rank)
{
    return (brc_codec_impl){ .size = sizeof(brc_codec_impl),
                             .spec = spec,
                             .name = name,
                             .rank = rank,
                             .encode = plain_convert,
                             .decode = plain_convert };
}

static int plain_dtype_open(void *ctx, brc_dtype *out, const char *name, const brc_json *config,
                            brc_error *err)
{
    brc_dtype *row = ctx;
    const char *json = out->json;

    (void)name;
    (void)config;
    (void)err;
    *out = *row;
    out->json = json;
    return BRC_OK;
}

static brc_dtype_spec plain_dtype(const char *name, brc_dtype *row)
{
    return (brc_dtype_spec){ .size = sizeof(brc_dtype_spec),
                             .name = name,
                             .ctx = row,
                             .open = plain_dtype_open,
                             .owner = "acme" };
}

static int registry_open_dtype(brc_dtype **out, const char *json)
{
    brc_json *value = NULL;

    ck_assert_int_eq(brc_json_parse(&value, json, strlen(json), 0, &registry_err), BRC_OK);
    int rc = brc_dtype_open(out, registry_now, value, NULL, &registry_err);
    brc_json_free(value);
    return rc;
}

static void registry_says(const char *text)
{
    ck_assert_msg(strstr(registry_err.message, text) != NULL, "\"%s\" lacks \"%s\"",
                  registry_err.message, text);
}

CASE("all", .setup = registry_setup, .teardown = registry_teardown, .timeout = UNTIMED);

/* ---- names -------------------------------------------------------------------------- */

TEST(D5_core_names_cannot_be_replaced)
{
    static const char *const codecs[] = { "bytes", "endian", "transpose", "gzip",
                                          "zstd",  "crc32c", "blosc" };
    static const char *const types[] = { "bool", "int8", "float64", "complex128", "r8", "r123456" };

    for (size_t i = 0; i < sizeof(codecs) / sizeof(codecs[0]); i++) {
        brc_codec_spec spec = plain_spec(codecs[i], "acme");
        ck_assert_int_eq(brc_registry_add_codec(registry_now, &spec, &registry_err), BRC_EEXISTS);
        registry_says("breccia itself");
    }
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        brc_dtype row = { .size = sizeof(row) };
        brc_dtype_spec spec = plain_dtype(types[i], &row);
        ck_assert_int_eq(brc_registry_add_dtype(registry_now, &spec, &registry_err), BRC_EEXISTS);
        registry_says("breccia itself");
    }
    brc_codec_impl impl = plain_impl("zstd", "libzstd", 99);
    ck_assert_int_eq(brc_registry_add_impl(registry_now, &impl, &registry_err), BRC_EEXISTS);
}

TEST(D5_duplicates_name_the_first_owner)
{
    brc_codec_spec first = plain_spec("https://acme.example/rot13", "Acme Codecs 2.1");
    brc_codec_spec second = plain_spec("https://acme.example/rot13", "somebody else");

    ck_assert_int_eq(brc_registry_add_codec(registry_now, &first, &registry_err), BRC_OK);
    ck_assert_int_eq(brc_registry_add_codec(registry_now, &second, &registry_err), BRC_EEXISTS);
    registry_says("Acme Codecs 2.1");
}

TEST(D5_an_alias_is_read_and_not_written)
{
    static const char *const known[][2] = {
        { "endian", "bytes" },
        { "zlib", "numcodecs.zlib" },
        { "lz4", "numcodecs.lz4" },
        { "zarrs.reshape", "reshape" },
        { "https://codec.zarrs.dev/array_to_array/bitround", "bitround" },
        { "https://codec.zarrs.dev/array_to_array/squeeze", "zarrs.squeeze" },
        { "https://codec.zarrs.dev/array_to_array/reshape", "reshape" },
        { "https://codec.zarrs.dev/array_to_bytes/vlen_v2", "zarrs.vlen_v2" },
        { "https://codec.zarrs.dev/bytes_to_bytes/bz2", "numcodecs.bz2" },
        { "https://codec.zarrs.dev/bytes_to_bytes/fletcher32", "numcodecs.fletcher32" },
    };
    brc_codec_spec spec = plain_spec("acme.codec", "Acme");
    brc_codec_impl impl = plain_impl("acme.codec.old", "one", 0);
    char old[] = "acme.codec.old";

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        ck_assert_str_eq(brc_registry_codec(registry_now, known[i][0])->spec.name, known[i][1]);
    ck_assert_int_eq(brc_registry_add_alias(registry_now, old, "acme.codec", &registry_err),
                     BRC_ENOTFOUND);
    ck_assert_int_eq(brc_registry_add_codec(registry_now, &spec, &registry_err), BRC_OK);
    ck_assert_int_eq(brc_registry_add_alias(registry_now, old, "acme.codec", &registry_err),
                     BRC_OK);
    memset(old, 'x', sizeof(old) - 1);
    const brc_codec_entry *entry = brc_registry_codec(registry_now, "acme.codec.old");
    ck_assert_ptr_eq(entry, brc_registry_codec(registry_now, "acme.codec"));
    ck_assert_str_eq(entry->spec.name, "acme.codec");
    ck_assert_int_eq(brc_registry_add_impl(registry_now, &impl, &registry_err), BRC_OK);
    ck_assert_str_eq(entry->impl->spec, "acme.codec");
    ck_assert_int_eq(
        brc_registry_add_alias(registry_now, "acme.codec.old", "bytes", &registry_err),
        BRC_EEXISTS);
    registry_says("\"acme.codec\" from Acme");
    ck_assert_int_eq(brc_registry_add_alias(registry_now, "gzip", "acme.codec", &registry_err),
                     BRC_EEXISTS);
    registry_says("breccia itself");
    spec.name = "acme.codec.old";
    ck_assert_int_eq(brc_registry_add_codec(registry_now, &spec, &registry_err), BRC_EEXISTS);
    brc_registry_freeze(registry_now);
    ck_assert_int_eq(brc_registry_add_alias(registry_now, "late", "bytes", &registry_err),
                     BRC_EMISUSE);
}

TEST(D5_a_registered_table_is_a_copy)
{
    char name[] = "acme.codec";
    brc_codec_spec spec = plain_spec(name, NULL);
    brc_codec_impl impl = plain_impl(name, "one", 1);

    ck_assert_int_eq(brc_registry_add_codec(registry_now, &spec, &registry_err), BRC_OK);
    ck_assert_int_eq(brc_registry_add_impl(registry_now, &impl, &registry_err), BRC_OK);
    memset(name, 'x', sizeof(name) - 1);
    spec.open = NULL;
    impl.decode = NULL;
    const brc_codec_entry *entry = brc_registry_codec(registry_now, "acme.codec");
    ck_assert_ptr_nonnull(entry);
    ck_assert(entry->spec.open == plain_open);
    ck_assert(entry->impl->decode == plain_convert);
    ck_assert_str_eq(entry->impl->spec, "acme.codec");
}

TEST(D5_a_registry_in_use_is_frozen)
{
    brc_codec_spec spec = plain_spec("acme.late", NULL);
    brc_codec_impl impl = plain_impl("zstd", "late", 1);
    brc_dtype row = { .size = sizeof(row) };
    brc_dtype_spec type = plain_dtype("acme.late", &row);

    brc_registry_freeze(registry_now);
    ck_assert_int_eq(brc_registry_add_codec(registry_now, &spec, &registry_err), BRC_EMISUSE);
    registry_says("in use");
    ck_assert_int_eq(brc_registry_add_impl(registry_now, &impl, &registry_err), BRC_EMISUSE);
    ck_assert_int_eq(brc_registry_add_dtype(registry_now, &type, &registry_err), BRC_EMISUSE);
    ck_assert_ptr_null(brc_registry_codec(registry_now, "acme.late"));
}

TEST(destroy_is_called_once_whatever_happens)
{
    int ends = 0, type_ends = 0, impl_ends = 0;
    brc_codec_spec spec = plain_spec("acme.codec", NULL);
    brc_dtype_spec type = plain_dtype("acme.type", NULL);
    brc_codec_impl impl = plain_impl("acme.codec", "one", 1);

    spec.ctx = &ends;
    type.ctx = &type_ends;
    impl.ctx = &impl_ends;
    spec.destroy = type.destroy = impl.destroy = plain_destroy;
    ck_assert_int_eq(brc_registry_add_impl(registry_now, &impl, &registry_err), BRC_ENOTFOUND);
    ck_assert_int_eq(impl_ends, 1);
    ck_assert_int_eq(brc_registry_add_codec(registry_now, &spec, &registry_err), BRC_OK);
    ck_assert_int_eq(brc_registry_add_dtype(registry_now, &type, &registry_err), BRC_OK);
    ck_assert_int_eq(brc_registry_add_impl(registry_now, &impl, &registry_err), BRC_OK);
    ck_assert_int_eq(ends + type_ends + impl_ends, 1);
    ck_assert_int_eq(brc_registry_add_codec(registry_now, &spec, &registry_err), BRC_EEXISTS);
    ck_assert_int_eq(brc_registry_add_dtype(registry_now, &type, &registry_err), BRC_EEXISTS);
    ck_assert_int_eq(brc_registry_add_impl(registry_now, &impl, &registry_err), BRC_EEXISTS);
    ck_assert_int_eq(ends, 1);
    ck_assert_int_eq(type_ends, 1);
    ck_assert_int_eq(impl_ends, 2);
    brc_registry_free(registry_now);
    registry_now = NULL;
    ck_assert_int_eq(ends, 2);
    ck_assert_int_eq(type_ends, 2);
    ck_assert_int_eq(impl_ends, 3);
}

TEST(shorter_and_incomplete_tables_are_judged)
{
    /* a table of an older header ends before write_config: what it lacks is zero */
    brc_codec_spec spec = plain_spec("acme.old", NULL);
    spec.size = offsetof(brc_codec_spec, write_config);
    spec.write_config = (int (*)(void *, const void *, brc_buf *, brc_error *))(uintptr_t)1;
    ck_assert_int_eq(brc_registry_add_codec(registry_now, &spec, &registry_err), BRC_OK);
    ck_assert(brc_registry_codec(registry_now, "acme.old")->spec.write_config == NULL);
    spec = plain_spec("acme.bad", NULL);
    spec.open = NULL;
    ck_assert_int_eq(brc_registry_add_codec(registry_now, &spec, &registry_err), BRC_EINVAL);
    spec = plain_spec("acme.bad", NULL);
    spec.kind = 4;
    ck_assert_int_eq(brc_registry_add_codec(registry_now, &spec, &registry_err), BRC_EINVAL);
    spec = plain_spec("", NULL);
    ck_assert_int_eq(brc_registry_add_codec(registry_now, &spec, &registry_err), BRC_EINVAL);
    brc_codec_impl impl = plain_impl("acme.old", "x", 0);
    impl.decode = NULL;
    ck_assert_int_eq(brc_registry_add_impl(registry_now, &impl, &registry_err), BRC_EINVAL);
    impl = plain_impl("acme.old", "x", 0);
    impl.memory = 7;
    ck_assert_int_eq(brc_registry_add_impl(registry_now, &impl, &registry_err), BRC_EINVAL);
    ck_assert_int_eq(brc_registry_add_impl(NULL, &impl, &registry_err), BRC_EINVAL);
}

/* ---- choice ------------------------------------------------------------------------- */

static const char *registry_chosen(const char *codec)
{
    const brc_codec_entry *entry = brc_registry_codec(registry_now, codec);

    return entry != NULL && entry->impl != NULL ? entry->impl->name : "none";
}

TEST(M4_rank_and_probe_choose)
{
    brc_codec_spec spec = plain_spec("acme.codec", NULL);
    brc_codec_impl never = plain_impl("acme.codec", "gpu", 100),
                   slow = plain_impl("acme.codec", "slow", 0);
    brc_codec_impl fast = plain_impl("acme.codec", "fast", 5),
                   twin = plain_impl("acme.codec", "afast", 5);
    uint64_t n = 4;
    brc_chain *chain = NULL;
    brc_dtype *type = NULL;
    brc_json *list = NULL;

    never.probe = plain_probe_no;
    ck_assert_int_eq(brc_registry_add_codec(registry_now, &spec, &registry_err), BRC_OK);
    ck_assert_str_eq(registry_chosen("acme.codec"), "none");
    ck_assert_int_eq(brc_registry_add_impl(registry_now, &never, &registry_err), BRC_OK);
    ck_assert_str_eq(registry_chosen("acme.codec"), "none");
    ck_assert_int_eq(registry_open_dtype(&type, "\"int8\""), BRC_OK);
    ck_assert_int_eq(brc_json_parse(&list, "[\"bytes\",\"acme.codec\"]", 22, 0, &registry_err),
                     BRC_OK);
    ck_assert_int_eq(brc_chain_open(&chain, registry_now, list, 1, &n, type, (brc_span){ NULL, 0 },
                                    &registry_err),
                     BRC_EUNSUPPORTED);
    registry_says("no implementation of \"acme.codec\" can run");
    ck_assert_int_eq(brc_registry_add_impl(registry_now, &slow, &registry_err), BRC_OK);
    ck_assert_str_eq(registry_chosen("acme.codec"), "slow");
    ck_assert_int_eq(brc_registry_add_impl(registry_now, &fast, &registry_err), BRC_OK);
    ck_assert_str_eq(registry_chosen("acme.codec"), "fast");
    /* of equal ranks the earlier one stays, whatever the names are */
    ck_assert_int_eq(brc_registry_add_impl(registry_now, &twin, &registry_err), BRC_OK);
    ck_assert_str_eq(registry_chosen("acme.codec"), "fast");
    brc_json_free(list);
    brc_dtype_free(type);
}

TEST(M4_the_listing_shows_who_was_chosen)
{
    brc_codec_info info, before = { .name = "" };
    size_t n = 0, names = 0, chosen = 0, crc = 0;
    brc_codec_impl never = plain_impl("zstd", "gpu", 100);

    never.probe = plain_probe_no;
    ck_assert_int_eq(brc_registry_add_impl(registry_now, &never, &registry_err), BRC_OK);
    for (; brc_registry_each(registry_now, n, &info); n++) {
        int by_name = strcmp(before.name, info.name);
        ck_assert_msg(by_name < 0 || (by_name == 0 && before.rank >= info.rank), "%s after %s",
                      info.name, before.name);
        names += by_name < 0;
        int is_chosen = (info.flags & BRC_IMPL_CHOSEN) != 0;
        chosen += (size_t)is_chosen;
        ck_assert(!is_chosen || (info.flags & BRC_IMPL_USABLE));
        if (strcmp(info.name, "crc32c") == 0)
            crc++;
        ck_assert(is_chosen == (strcmp(info.why, "the highest rank") == 0));
        ck_assert_uint_eq(info.device, BRC_MEMORY_HOST);
        if (strcmp(info.implementation, "gpu") == 0) {
            ck_assert(info.flags == 0 && info.rank == 100);
            ck_assert_str_eq(info.why, "cannot run here");
        }
        if (strcmp(info.name, "transpose") == 0)
            ck_assert_str_eq(info.kind, "array->array");
        if (strcmp(info.name, "bytes") == 0)
            ck_assert_str_eq(info.kind, "array->bytes");
        if (strcmp(info.implementation, "libzstd") == 0)
            ck_assert(is_chosen && strcmp(info.kind, "bytes->bytes") == 0);
        before = info;
    }
    ck_assert_uint_ge(n, 7);
    ck_assert_uint_eq(chosen, names); /* each has one                             */
    ck_assert_uint_ge(crc, 1);
    ck_assert_int_eq(brc_registry_each(registry_now, n, &info), 0);
}

/* Returns what the listing says of an implementation of acme.codec. */
static const brc_codec_info *registry_info(const char *implementation)
{
    static brc_codec_info info;
    for (size_t i = 0; brc_registry_each(registry_now, i, &info); i++)
        if (strcmp(info.implementation, implementation) == 0)
            return &info;
    ck_abort_msg("%s is not listed", implementation);
    return NULL;
}

static int never_there(void *ctx, const void *state, void *scratch, const brc_there *there,
                       size_t n, const brc_span *src, brc_buf *const *dst, int *status,
                       brc_error *err)
{
    (void)ctx, (void)state, (void)scratch, (void)there, (void)n, (void)src, (void)dst, (void)status;
    return brc_fail(err, BRC_EINTERNAL, "nobody calls it");
}

TEST(M4_a_pinned_implementation_runs)
{
    brc_codec_spec spec = plain_spec("acme.codec", NULL);
    brc_codec_impl never = plain_impl("acme.codec", "never", 100),
                   slow = plain_impl("acme.codec", "slow", 0),
                   fast = plain_impl("acme.codec", "fast", 5),
                   twin = plain_impl("acme.codec", "twin", 5);
    never.probe = plain_probe_no;
    ck_assert_int_eq(brc_registry_add_codec(registry_now, &spec, &registry_err), BRC_OK);
    ck_assert_int_eq(brc_registry_add_impl(registry_now, &never, &registry_err), BRC_OK);
    ck_assert_int_eq(brc_registry_add_impl(registry_now, &slow, &registry_err), BRC_OK);
    ck_assert_int_eq(brc_registry_add_impl(registry_now, &fast, &registry_err), BRC_OK);
    ck_assert_int_eq(brc_registry_add_impl(registry_now, &twin, &registry_err), BRC_OK);
    ck_assert_str_eq(registry_info("slow")->why, "a lower rank");
    ck_assert_str_eq(registry_info("twin")->why, "the same rank, but added later");
    ck_assert_int_eq(brc_registry_pin(registry_now, "acme.codec", "slow", &registry_err), BRC_OK);
    ck_assert_str_eq(registry_chosen("acme.codec"), "slow");
    ck_assert_str_eq(registry_info("slow")->why, "pinned");
    ck_assert_int_eq(registry_info("slow")->flags,
                     BRC_IMPL_USABLE | BRC_IMPL_CHOSEN | BRC_IMPL_PINNED);
    ck_assert_str_eq(registry_info("fast")->why, "another one is pinned");
    ck_assert_int_eq(registry_info("fast")->flags, BRC_IMPL_USABLE);
    ck_assert_int_eq(brc_registry_pin(registry_now, "acme.codec", NULL, &registry_err), BRC_OK);
    ck_assert_str_eq(registry_chosen("acme.codec"), "fast");
    ck_assert_int_eq(brc_registry_pin(registry_now, "acme.none", "slow", &registry_err),
                     BRC_ENOTFOUND);
    registry_says("\"acme.none\" is not known");
    ck_assert_int_eq(brc_registry_pin(registry_now, "acme.codec", "other", &registry_err),
                     BRC_ENOTFOUND);
    registry_says("has no implementation \"other\"");
    ck_assert_int_eq(brc_registry_pin(registry_now, "acme.codec", "never", &registry_err),
                     BRC_EUNSUPPORTED);
    registry_says("cannot run here");
    char why[] = "it has no wings";
    never.name = "penguin";
    never.why_not = why;
    ck_assert_int_eq(brc_registry_add_impl(registry_now, &never, &registry_err), BRC_OK);
    memset(why, 'x', sizeof(why) - 1); /* it was copied */
    ck_assert_str_eq(registry_info("penguin")->why, "it has no wings");
    ck_assert_int_eq(brc_registry_pin(registry_now, "acme.codec", "penguin", &registry_err),
                     BRC_EUNSUPPORTED);
    registry_says("cannot run here: it has no wings");
    brc_registry_freeze(registry_now);
    ck_assert_int_eq(brc_registry_pin(registry_now, "acme.codec", "slow", &registry_err),
                     BRC_EMISUSE);
    registry_says("before the first brc_open()");
}

TEST(M4_each_memory_has_its_own_choice)
{
    brc_codec_spec spec = plain_spec("acme.codec", NULL);
    brc_codec_impl host = plain_impl("acme.codec", "host", 0);
    brc_codec_impl there = {.size = sizeof(there), .spec = "acme.codec", .name = "there", .rank = 9,
                            .memory = 12};
    brc_codec_impl more = {.size = sizeof(more), .spec = "acme.codec", .name = "more", .rank = 10,
                           .memory = 12, .decode_there = never_there, .cost = 7, .call_cost = 8};
    ck_assert_int_eq(brc_registry_add_codec(registry_now, &spec, &registry_err), BRC_OK);
    ck_assert_int_eq(brc_registry_add_impl(registry_now, &there, &registry_err), BRC_EINVAL);
    registry_says("lacks its decode_there function");
    there.decode_there = never_there;
    ck_assert_int_eq(brc_registry_add_impl(registry_now, &there, &registry_err), BRC_OK);
    ck_assert_str_eq(registry_chosen("acme.codec"), "none"); /* the host cannot run it */
    ck_assert_int_eq(brc_registry_add_impl(registry_now, &host, &registry_err), BRC_OK);
    ck_assert_str_eq(registry_chosen("acme.codec"), "host");
    ck_assert(registry_info("there")->flags & BRC_IMPL_CHOSEN);
    ck_assert_int_eq(brc_registry_add_impl(registry_now, &more, &registry_err), BRC_OK);
    ck_assert_str_eq(registry_chosen("acme.codec"), "host");
    ck_assert_str_eq(registry_info("there")->why, "a lower rank");
    ck_assert_uint_eq(registry_info("more")->device, 12);
    ck_assert_uint_eq(registry_info("more")->cost, 7);
    ck_assert_uint_eq(registry_info("more")->call_cost, 8);
    /* pinned for the device, the host's choice stays */
    ck_assert_int_eq(brc_registry_pin(registry_now, "acme.codec", "there", &registry_err), BRC_OK);
    ck_assert_str_eq(registry_info("there")->why, "pinned");
    ck_assert_str_eq(registry_info("more")->why, "another one is pinned");
    ck_assert_str_eq(registry_chosen("acme.codec"), "host");
}

/* Every implementation that can run here gives the bytes that the first one gives. */
TEST(M4_implementations_of_crc32c_agree)
{
    const brc_codec_impl *first = NULL;
    uint8_t data[300];
    uint64_t random = 9;
    size_t compared = 0;

    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)codec_kit_random(&random);
    for (size_t i = 0; i < registry_now->nimpls; i++) {
        const brc_codec_impl *impl = &registry_now->impls[i]->impl;
        if (strcmp(impl->spec, "crc32c") != 0 || !registry_now->impls[i]->usable)
            continue;
        first = first != NULL ? first : impl;
        for (size_t len = 0; len < sizeof(data); len++) {
            brc_buf a = BRC_BUF_INIT, b = BRC_BUF_INIT, back = BRC_BUF_INIT;
            brc_span src = { data + len % 8, len - len % 8 }; /* every alignment */
            ck_assert_int_eq(first->encode(NULL, NULL, NULL, src, &a, &registry_err), BRC_OK);
            ck_assert_int_eq(impl->encode(NULL, NULL, NULL, src, &b, &registry_err), BRC_OK);
            ck_assert_uint_eq(a.len, src.len + 4);
            ck_assert_uint_eq(b.len, src.len + 4);
            ck_assert_mem_eq(a.data, b.data, a.len);
            brc_span stored = { b.data, b.len };
            ck_assert_int_eq(impl->decode(NULL, NULL, NULL, stored, &back, &registry_err), BRC_OK);
            ck_assert_uint_eq(back.len, src.len);
            b.data[len % b.len] ^= 0x10;
            ck_assert_int_eq(impl->decode(NULL, NULL, NULL, stored, &back, NULL), BRC_ECORRUPT);
            brc_buf_dispose(&a);
            brc_buf_dispose(&b);
            brc_buf_dispose(&back);
        }
        compared++;
    }
    ck_assert_uint_ge(compared, 1);
}

/* ---- what a codec is given -------------------------------- */

static int strict_convert(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                          brc_error *err)
{
    if (src.data == NULL)
        return brc_fail(err, BRC_EINTERNAL, "it was given NULL");
    return plain_convert(ctx, state, scratch, src, dst, err);
}

/* The offset 0 from NULL is undefined, and easily written in a codec. */
TEST(f23_a_codec_is_never_given_null)
{
    static const char text[] =
        "[{\"name\":\"bytes\"},{\"name\":\"acme.codec\"},{\"name\":\"acme.codec\"}]";
    brc_codec_spec spec = plain_spec("acme.codec", NULL);
    brc_codec_impl impl = plain_impl("acme.codec", "strict", 1);
    const uint64_t none = 0;
    brc_buf out = BRC_BUF_INIT;
    brc_chain *chain;
    brc_dtype *type;
    brc_json *list;
    brc_scratch *scratch;

    impl.encode = impl.decode = strict_convert;
    ck_assert_int_eq(brc_registry_add_codec(registry_now, &spec, &registry_err), BRC_OK);
    ck_assert_int_eq(brc_registry_add_impl(registry_now, &impl, &registry_err), BRC_OK);
    ck_assert_int_eq(registry_open_dtype(&type, "\"uint8\""), BRC_OK);
    ck_assert_int_eq(brc_json_parse(&list, text, sizeof(text) - 1, 0, &registry_err), BRC_OK);
    ck_assert_int_eq(brc_chain_open(&chain, registry_now, list, 1, &none, type,
                                    (brc_span){ NULL, 0 }, &registry_err), BRC_OK);
    ck_assert_int_eq(brc_scratch_new(&scratch, &registry_err), BRC_OK);
    for (int way = 0; way < 2; way++) {
        int rc = way == 0
                     ? brc_chain_encode(chain, scratch, (brc_span){ NULL, 0 }, &out, &registry_err)
                     : brc_chain_decode(chain, scratch, (brc_span){ NULL, 0 }, NULL, &out,
                                        &registry_err);
        ck_assert_msg(rc == BRC_OK, "%s", registry_err.message);
        ck_assert_uint_eq(out.len, 0);
    }
    brc_buf_dispose(&out);
    brc_scratch_free(scratch);
    brc_chain_free(chain);
    brc_json_free(list);
    brc_dtype_free(type);
}
