/* A backend that asks for credentials gets what the program decides. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/breccia_backend.h"
#include "../../cli/credentials.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(credentials);

/* ---- a backend that asks, and stores nothing -------------------------------- */

static int asking_check(void *ctx, const brc_json *config, brc_buf *full, brc_error *err)
{
    (void)ctx;
    (void)config;
    (void)full;
    (void)err;
    return BRC_OK;
}

static int asking_open(void *ctx, void **state, const brc_json *config,
                       const brc_backend_host *host, brc_error *err)
{
    const brc_server server = { .size = sizeof(server),
                                .kind = "example",
                                .endpoint = "https://example.org",
                                .bucket = "bucket",
                                .region = "north" };
    brc_credentials got;
    (void)ctx;
    (void)state;
    (void)config;
    memset(&got, 0x5a, sizeof(got));
    const int rc = host->credentials(host->ctx, &server, &got, err);
    if (rc < 0)
        return rc;
    return brc_fail(err, BRC_EIO, "the key is %s, the token %s", got.key, got.token);
}

static int asking_fetch(void *ctx, void *state, size_t n, brc_stored *const *items, brc_error *err)
{
    (void)ctx;
    (void)state;
    (void)n;
    (void)items;
    return brc_fail(err, BRC_EINTERNAL, "nothing is stored here");
}

static int asking_put(void *ctx, void *state, size_t n, brc_stored *const *items, brc_error *err)
{
    return asking_fetch(ctx, state, n, items, err);
}

/* ---- a program that decides -------------------------------- */

static int decide(void *ctx, const brc_server *server, brc_credentials *out, brc_error *err)
{
    const char *answer = ctx;
    ck_assert_str_eq(server->endpoint, "https://example.org");
    ck_assert_str_eq(server->bucket, "bucket");
    ck_assert_uint_eq(out->size, sizeof(*out));
    ck_assert_str_eq(out->key, "");
    if (strcmp(answer, "no") == 0)
        return brc_fail(err, BRC_EREADONLY, "never");
    if (strcmp(answer, "odd") == 0)
        return 7;
    snprintf(out->key, sizeof(out->key), "%s", answer);
    return BRC_OK;
}

static const struct {
    const char *answer;
    int rc;
    const char *say;
} answers[] = {
    { NULL, BRC_EUNSUPPORTED, "https://example.org" },
    { "no", BRC_EREADONLY, "never" },
    { "odd", BRC_EINTERRUPT, "https://example.org" },
    { "AKID", BRC_EIO, "the key is AKID, the token " },
};

static void write_asks(scenario *t, breccia *repo, int i)
{
    static const int32_t numbers[4] = { 1, 2, 3, 4 };
    static const uint64_t shape = 4;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_session *s;
    brc_array *a;
    spec.ndim = 1;
    spec.shape = spec.chunk = &shape;
    spec.dtype = "int32";
    spec.backend_json = "org.example.asks";
    OK(t, brc_session_open(&s, repo, NULL, BRC_SESSION_WRITE, &t->err));
    OK(t, brc_array_create(&a, s, "/a", &spec, &t->err));
    FAILS(t, answers[i].rc, brc_array_write(a, NULL, numbers, sizeof(numbers), &t->err));
    ck_assert_msg(strstr(t->err.message, answers[i].say) != NULL, "%s", t->err.message);
    brc_array_free(a);
    OK(t, brc_session_discard(s, &t->err));
    brc_session_free(s);
}

EACH(a_backend_gets_what_the_program_decides, answers)
{
    static const brc_backend asks = { .size = sizeof(asks),
                                      .name = "org.example.asks",
                                      .check = asking_check,
                                      .open = asking_open,
                                      .fetch = asking_fetch,
                                      .put = asking_put };
    scenario t;
    brc_registry *reg;
    breccia *other;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    memset(&t, 0, sizeof(t));
    scenario_folder(&t);
    OK(&t, brc_registry_new(&reg, &t.err));
    OK(&t, brc_registry_add_backend(reg, &asks, &t.err));
    opts.registry = reg;
    opts.credentials = answers[_i].answer != NULL ? decide : NULL;
    opts.credentials_ctx = (void *)(uintptr_t)answers[_i].answer;
    scenario_open(&t, &opts, BRC_OPEN_CREATE);
    write_asks(&t, t.repo, _i);
    OK(&t, brc_reopen(&other, t.repo, &t.err)); /* asks the same function */
    write_asks(&t, other, _i);
    brc_free(other);
    scenario_stop(&t);
    brc_registry_free(reg);
}

/* ---- which server -------------------------------- */

static const struct {
    const char *given, *for_s3, *for_all; /* NULL: not given, not set */
    uint32_t flags;
    int is;
} servers[] = {
    { NULL, NULL, NULL, BRC_SERVER_STANDARD, 1 },
    { NULL, NULL, NULL, 0, 0 },
    { NULL, NULL, "https://Example.org/", 0, 1 },
    { NULL, NULL, "https://example.com", BRC_SERVER_STANDARD, 0 },
    { NULL, "https://example.org", "https://example.com", 0, 1 },
    { NULL, "https://example.com", "https://example.org", 0, 0 },
    { "https://example.org//", "https://example.com", NULL, 0, 1 },
    { "https://example.com", "https://example.org", NULL, BRC_SERVER_STANDARD, 0 },
    { "https://example.org.example.com", NULL, NULL, 0, 0 },
    { "", NULL, NULL, BRC_SERVER_STANDARD, 0 },
};

static void set_or_not(const char *name, const char *value)
{
    ck_assert_int_eq(value != NULL ? setenv(name, value, 1) : unsetenv(name), 0);
}

EACH(credentials_belong_to_one_server, servers)
{
    const brc_server server = { .size = sizeof(server),
                                .endpoint = "https://example.org",
                                .flags = servers[_i].flags };
    set_or_not("AWS_ENDPOINT_URL_S3", servers[_i].for_s3);
    set_or_not("AWS_ENDPOINT_URL", servers[_i].for_all);
    ck_assert_int_eq(cli_is_chosen(&server, servers[_i].given), servers[_i].is);
    set_or_not("AWS_ENDPOINT_URL_S3", NULL);
    set_or_not("AWS_ENDPOINT_URL", NULL);
}
