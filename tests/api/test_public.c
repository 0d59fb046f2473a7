/* Public functions that no other test calls: as a program, or a plug-in, uses them. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../src/breccia_codec.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(public);

SCENARIO_FIXTURE(t)

CASE("public", .setup = t_start, .teardown = t_stop);

TEST(the_version_is_that_of_the_headers)
{
    char want[40];
    snprintf(want, sizeof(want), "%d.%d.%d", BRC_VERSION_MAJOR, BRC_VERSION_MINOR,
             BRC_VERSION_PATCH);
    ck_assert_str_eq(brc_version(), want);
}

/* A program asks before it opens a file to write. */
TEST(the_repository_is_not_written_by_accident)
{
    char other[120];
    FAILS(&t, BRC_EINVAL, brc_check_file(t.file, t.file, &t.err));
    snprintf(other, sizeof(other), "%s-journal", t.file); /* does not exist yet */
    FAILS(&t, BRC_EINVAL, brc_check_file(t.file, other, &t.err));
    snprintf(other, sizeof(other), "%s/link", t.dir);
    ck_assert_int_eq(symlink(t.file, other), 0);
    FAILS(&t, BRC_EINVAL, brc_check_file(t.file, other, &t.err));
    snprintf(other, sizeof(other), "%s/hard", t.dir);
    ck_assert_int_eq(link(t.file, other), 0);
    FAILS(&t, BRC_EINVAL, brc_check_file(t.file, other, &t.err));
    ck_assert_int_eq(unlink(other), 0);
    OK(&t, brc_check_file(t.file, other, &t.err));
}

/* Elements that go through a chain come back, and their length is that of the chain's shape. */
static void comes_back(const brc_chain *chain, size_t len)
{
    static const uint8_t elements[40] = {1, 2, 3, 4, 5};
    brc_scratch *scratch;
    brc_buf stored = BRC_BUF_INIT, back = BRC_BUF_INIT;
    OK(&t, brc_scratch_new(&scratch, &t.err));
    ck_assert_uint_eq(brc_chain_describe(chain)->decoded_len, len);
    OK(&t, brc_chain_encode(chain, scratch, (brc_span){elements, len}, &stored, &t.err));
    OK(&t, brc_chain_decode(chain, scratch, (brc_span){stored.data, stored.len}, NULL, &back,
                            &t.err));
    ck_assert_uint_eq(back.len, len);
    ck_assert_mem_eq(back.data, elements, len);
    brc_buf_dispose(&stored);
    brc_buf_dispose(&back);
    brc_scratch_free(scratch);
}

/* For a codec that holds a chain, and meets chunks of another length. */
TEST(a_chain_is_bound_to_another_shape)
{
    static const char list[] = "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]";
    const uint64_t four = 4, ten = 10;
    brc_registry *registry;
    brc_dtype *type;
    brc_json *codecs;
    brc_chain *chain, *longer;
    OK(&t, brc_registry_new(&registry, &t.err));
    OK(&t, brc_dtype_open(&type, registry, NULL, "int32", &t.err));
    OK(&t, brc_json_parse(&codecs, list, strlen(list), 0, &t.err));
    OK(&t, brc_chain_open(&chain, registry, codecs, 1, &four, type, (brc_span){NULL, 0}, &t.err));
    comes_back(chain, 16);
    OK(&t, brc_chain_open_like(&longer, chain, 1, &ten, &t.err));
    brc_chain_free(chain); /* need not outlive the other */
    comes_back(longer, 40);
    brc_chain_free(longer);
    brc_json_free(codecs);
    brc_dtype_free(type);
    brc_registry_free(registry);
}
