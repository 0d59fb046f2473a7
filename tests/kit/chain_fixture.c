/* See chain_fixture.h. */
#include "chain_fixture.h"

#include <check.h>
#include <string.h>

brc_registry *codecs_reg;
brc_scratch *codecs_scratch;
brc_dtype *codecs_type;
brc_chain *codecs_chain;
brc_error codecs_err;

void codecs_setup(void)
{
    ck_assert_int_eq(brc_registry_new(&codecs_reg, &codecs_err), BRC_OK);
    ck_assert_int_eq(brc_scratch_new(&codecs_scratch, &codecs_err), BRC_OK);
    codecs_type = NULL;
    codecs_chain = NULL;
}

void codecs_close(void)
{
    brc_chain_free(codecs_chain);
    brc_dtype_free(codecs_type);
    codecs_type = NULL;
    codecs_chain = NULL;
}

void codecs_teardown(void)
{
    codecs_close();
    brc_scratch_free(codecs_scratch);
    brc_registry_free(codecs_reg);
}

int codecs_try_open(const char *list, const char *dtype, int ndim, const uint64_t *shape)
{
    return codecs_try_open_filled(list, dtype, ndim, shape, NULL, 0);
}

int codecs_try_open_filled(const char *list, const char *dtype, int ndim, const uint64_t *shape,
                           const void *fill, size_t fill_len)
{
    brc_json *json = NULL, *name = NULL;

    codecs_close();
    if (dtype[0] == '{')
        ck_assert_int_eq(brc_json_parse(&name, dtype, strlen(dtype), 0, &codecs_err), BRC_OK);
    else
        name = brc_json_new_string(dtype);
    ck_assert_int_eq(brc_dtype_open(&codecs_type, codecs_reg, name, NULL, &codecs_err), BRC_OK);
    ck_assert_int_eq(brc_json_parse(&json, list, strlen(list), 0, &codecs_err), BRC_OK);
    int rc = brc_chain_open(&codecs_chain, codecs_reg, json, ndim, shape, codecs_type,
                            (brc_span){ fill, fill_len }, &codecs_err);
    brc_json_free(json);
    brc_json_free(name);
    return rc;
}

void codecs_open(const char *list, const char *dtype, int ndim, const uint64_t *shape)
{
    int rc = codecs_try_open(list, dtype, ndim, shape);

    ck_assert_msg(rc == BRC_OK, "%s: %s", list, codecs_err.message);
}

void codecs_open_filled(const char *list, const char *dtype, int ndim, const uint64_t *shape,
                        const void *fill, size_t fill_len)
{
    int rc = codecs_try_open_filled(list, dtype, ndim, shape, fill, fill_len);

    ck_assert_msg(rc == BRC_OK, "%s: %s", list, codecs_err.message);
}

/* A chain for n bytes. */
void codecs_open_bytes(const char *list, uint64_t n)
{
    codecs_open(list, "uint8", 1, &n);
}

int codecs_decode(const void *data, size_t len, brc_buf *out)
{
    out->len = 0;
    return brc_chain_decode(codecs_chain, codecs_scratch, (brc_span){ data, len }, NULL, out,
                            &codecs_err);
}

void codecs_encode(const void *data, size_t len, brc_buf *out)
{
    out->len = 0;
    int rc =
        brc_chain_encode(codecs_chain, codecs_scratch, (brc_span){ data, len }, out, &codecs_err);
    ck_assert_msg(rc == BRC_OK, "%s", codecs_err.message);
}

void codecs_expect_stored(const void *plain, size_t plain_len, const void *stored, size_t len)
{
    brc_buf out = BRC_BUF_INIT;

    codecs_encode(plain, plain_len, &out);
    ck_assert_uint_eq(out.len, len);
    if (len > 0)
        ck_assert_mem_eq(out.data, stored, len);
    brc_buf_dispose(&out);
    codecs_expect(stored, len, plain, plain_len);
}

void codecs_expect_unstorable(const void *plain, size_t plain_len, const char *says)
{
    brc_buf out = BRC_BUF_INIT;
    int rc = brc_chain_encode(codecs_chain, codecs_scratch, (brc_span){ plain, plain_len }, &out,
                              &codecs_err);

    ck_assert_int_eq(rc, BRC_EINVAL);
    ck_assert_msg(strstr(codecs_err.message, says) != NULL, "\"%s\" lacks \"%s\"",
                  codecs_err.message, says);
    brc_buf_dispose(&out);
}

void codecs_expect(const void *stored, size_t len, const void *plain, size_t plain_len)
{
    brc_buf out = BRC_BUF_INIT;
    int rc = codecs_decode(stored, len, &out);

    ck_assert_msg(rc == BRC_OK, "%s", codecs_err.message);
    ck_assert_uint_eq(out.len, plain_len);
    if (plain_len > 0)
        ck_assert_mem_eq(out.data, plain, plain_len);
    brc_buf_dispose(&out);
}

void codecs_expect_corrupt(const void *stored, size_t len, const char *says)
{
    brc_buf out = BRC_BUF_INIT;

    ck_assert_int_eq(codecs_decode(stored, len, &out), BRC_ECORRUPT);
    ck_assert_msg(strstr(codecs_err.message, says) != NULL, "\"%s\" lacks \"%s\"",
                  codecs_err.message, says);
    ck_assert_uint_eq(out.len, 0);
    brc_buf_dispose(&out);
}

void codecs_expect_refused(const char *list, int code, const char *says)
{
    uint64_t shape[2] = { 4, 6 };
    int rc = codecs_try_open(list, "int32", 2, shape);

    ck_assert_msg(rc == code, "%s: %d, %s", list, rc, rc < 0 ? codecs_err.message : "taken");
    ck_assert_msg(strstr(codecs_err.message, says) != NULL, "%s: \"%s\" lacks \"%s\"", list,
                  codecs_err.message, says);
}
