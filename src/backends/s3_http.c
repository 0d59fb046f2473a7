/*
 * The client. A call of brc_s3_run() takes a lane, which is a set of connections (a multi handle of
 * libcurl) that no other call uses meanwhile, and drives its transfers until all requests are
 * done. A
 * transfer is one attempt at a request; a request may have two at once, if the first one is slow.
 *
 * Invariant: `lock` guards the list of lanes and the credentials, and is not held while anything
 * is sent.
 */
#include "s3_http.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "pack_file.h"

#if defined(__has_include) && !defined(BRC_STATIC)
#if __has_include(<curl/curl.h>)
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#if LIBCURL_VERSION_NUM >= 0x075500 /* 7.85: CURLOPT_PROTOCOLS_STR */
#define HAS_CURL
#endif
#endif
#endif

#ifndef HAS_CURL

int brc_s3_is_built(void)
{
    return 0;
}

int brc_s3_client_new(brc_s3_client **out, const brc_s3_config *config,
                      const brc_backend_host *host, brc_error *err)
{
    (void)config;
    (void)host;
    *out = NULL;
    return brc_fail(err, BRC_EUNSUPPORTED, "this breccia was built without libcurl");
}

void brc_s3_client_free(brc_s3_client *client)
{
    (void)client;
}

int brc_s3_run(brc_s3_client *client, size_t n, brc_s3_request *requests, brc_error *err)
{
    (void)client;
    (void)n;
    (void)requests;
    return brc_fail(err, BRC_EUNSUPPORTED, "this breccia was built without libcurl");
}

int brc_s3_failed(brc_s3_client *client, const brc_s3_request *request, brc_error *err)
{
    (void)client;
    (void)request;
    return brc_fail(err, BRC_EUNSUPPORTED, "this breccia was built without libcurl");
}

#else

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/random.h>
#include <time.h>
#include <zlib.h>

enum {
    IN_FLIGHT = 64,     /* of one call */
    ALL_IN_FLIGHT = 128, /* of all calls of a client; each call may have one all the same */
    CROWDED_MS = 10,    /* how soon a call tries again that had to wait for others */
    CONNECT_MS = 10000,
    PAUSE_MS = 100,     /* before the second attempt; doubled for each further one */
    PAUSE_MOST_MS = 5000,
    SLOW_MS = 1500,     /* a read that takes longer is sent a second time */
    SLOW_MIB_MS = 500,  /* and so much longer for each MiB */
    WAKE_MS = 100,      /* how often the host is asked whether to stop */
    ERROR_MOST = 65536, /* the longest answer that is not the object */
    HEADERS_MOST = 65536
};

/* The SHA-256 of nothing. */
#define EMPTY_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

/* The functions of libcurl that are used, each with its type. */
#define FUNCTIONS(F)                                                                               \
    F(version_info) F(easy_init) F(easy_cleanup) F(easy_reset) F(easy_setopt) F(easy_getinfo)      \
    F(easy_strerror) F(slist_append) F(slist_free_all) F(multi_init) F(multi_cleanup)              \
    F(multi_add_handle) F(multi_remove_handle) F(multi_perform) F(multi_poll) F(multi_info_read)   \
    F(multi_setopt)
#define DECLARE(name) __typeof__(&curl_##name) name;

typedef struct curl_api {
    FUNCTIONS(DECLARE)
} curl_api;

/* An attempt at a request. */
typedef struct transfer {
    CURL *easy;
    struct curl_slist *headers;
    brc_s3_request *request; /* NULL: the slot is free                          */
    const curl_api *curl;
    brc_s3_client *client;
    brc_buf got;
    int64_t since_ms;
    int is_too_long, is_out_of_memory, is_whole; /* is_whole: not the range alone */
    size_t header_bytes;
    int has_range;
    uint64_t range_from, range_end; /* of Content-Range: the end is behind the last byte */
    char region[32];
} transfer;

typedef struct lane {
    struct lane *next;
    CURLM *multi;
    transfer transfers[IN_FLIGHT];
} lane;

struct brc_s3_client {
    curl_api curl;
    brc_s3_config config;
    const brc_backend_host *host;
    pthread_mutex_t lock;
    lane *lanes; /* that no call uses                                                */
    int has_credentials;
    uint64_t asked; /* how often the host was asked                                  */
    atomic_int in_flight;
    atomic_int takes_any_put; /* the server does not know If-None-Match                     */
    _Atomic int64_t heard_ms; /* when the server said something last; 0: never              */
    brc_credentials credentials;
};

/* A call of brc_s3_run(). */
typedef struct run {
    brc_s3_client *client;
    lane *lane;
    brc_credentials credentials;
    uint64_t asked;
    int is_renewed, running; /* running: attempts of this call */
    int64_t begun_ms;
    const brc_s3_request *gone; /* whose failure shows that the server is gone; NULL: it is not */
    size_t n, done;
    brc_s3_request *requests;
} run;

int brc_s3_is_built(void)
{
    return 1;
}

/* ---- libcurl -------------------------------- */

#define NAME(name) "curl_" #name,

/* libcurl has a global state, which the first handle makes. Since 7.84 several threads may do that
 * at once, so nobody has to call an init function; older ones are refused. */
static int curl_load(brc_s3_client *client, brc_error *err)
{
    static const char *const files[] = { "libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.4.dylib",
                                         NULL };
    static const char *const functions[] = { FUNCTIONS(NAME) NULL };
    const brc_library library = {
        .size = sizeof(library),
        .name = "libcurl",
        .use = "with which chunks are fetched from servers",
        .package = "libcurl4",
        .files = files,
        .functions = functions,
    };
    BRC_BACKEND_TRY(brc_library_load(&library, &client->curl, err));
    if (!(client->curl.version_info(CURLVERSION_NOW)->features & CURL_VERSION_THREADSAFE))
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "libcurl is too old, or was built without thread-safe initialization: "
                        "install libcurl 7.85 or newer");
    return BRC_OK;
}

/* ---- lanes -------------------------------- */

static void lane_free(const curl_api *curl, lane *l)
{
    for (int i = 0; i < IN_FLIGHT; i++) {
        if (l->transfers[i].easy != NULL)
            curl->easy_cleanup(l->transfers[i].easy);
        brc_buf_dispose(&l->transfers[i].got);
    }
    if (l->multi != NULL)
        curl->multi_cleanup(l->multi);
    free(l);
}

static lane *lane_take(brc_s3_client *client)
{
    pthread_mutex_lock(&client->lock);
    lane *l = client->lanes;
    if (l != NULL)
        client->lanes = l->next;
    pthread_mutex_unlock(&client->lock);
    if (l != NULL)
        return l;
    l = calloc(1, sizeof(*l));
    if (l == NULL)
        return NULL;
    l->multi = client->curl.multi_init();
    if (l->multi == NULL) {
        lane_free(&client->curl, l);
        return NULL;
    }
    client->curl.multi_setopt(l->multi, CURLMOPT_MAXCONNECTS, (long)IN_FLIGHT);
    return l;
}

static void lane_give(brc_s3_client *client, lane *l)
{
    pthread_mutex_lock(&client->lock);
    l->next = client->lanes;
    client->lanes = l;
    pthread_mutex_unlock(&client->lock);
}

/* ---- clients -------------------------------- */

int brc_s3_client_new(brc_s3_client **out, const brc_s3_config *config,
                      const brc_backend_host *host, brc_error *err)
{
    brc_s3_client *client = calloc(1, sizeof(*client));
    *out = NULL;
    if (client == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    pthread_mutex_init(&client->lock, NULL);
    client->config = *config;
    client->host = host;
    const int rc = curl_load(client, err);
    if (rc < 0)
        brc_s3_client_free(client);
    else
        *out = client;
    return rc;
}

void brc_s3_client_free(brc_s3_client *client)
{
    if (client == NULL)
        return;
    while (client->lanes != NULL) {
        lane *next = client->lanes->next;
        lane_free(&client->curl, client->lanes);
        client->lanes = next;
    }
    pthread_mutex_destroy(&client->lock);
    explicit_bzero(&client->credentials, sizeof(client->credentials));
    free(client);
}

/* Takes the credentials that the host gave. Asks it if it was not asked yet, or not since the call
 * `renew`. */
static int credentials_take(run *r, uint64_t renew, brc_error *err)
{
    brc_s3_client *client = r->client;
    const brc_s3_config *config = &client->config;
    const brc_server server = { .size = sizeof(server),
                                .kind = "s3",
                                .endpoint = config->endpoint,
                                .bucket = config->bucket,
                                .region = config->region,
                                .flags = config->is_standard ? BRC_SERVER_STANDARD : 0 };
    int rc = BRC_OK;
    pthread_mutex_lock(&client->lock);
    if (!client->has_credentials || (renew != 0 && client->asked == renew)) {
        client->has_credentials = 0;
        if (client->host->size <= offsetof(brc_backend_host, credentials) ||
            client->host->credentials == NULL)
            rc = brc_fail(err, BRC_EUNSUPPORTED, "this program does not connect to servers");
        else
            rc = client->host->credentials(client->host->ctx, &server, &client->credentials, err);
        client->has_credentials = rc == BRC_OK;
        client->asked++;
    }
    r->credentials = client->credentials;
    r->asked = client->asked;
    pthread_mutex_unlock(&client->lock);
    return rc;
}

/* ---- what comes -------------------------------- */

static int64_t clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Takes bytes of an answer; an answer that is longer than any good one is cut off. */
static size_t answer_body(char *data, size_t size, size_t n, void *to)
{
    transfer *t = to;
    long http = 0;
    const size_t len = size * n;
    t->client->heard_ms = clock_ms();
    t->curl->easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &http);
    t->is_whole = http == 200 && t->request->len > 0;
    if (t->is_whole)
        return 0;
    const uint64_t most = http >= 200 && http < 300 ? t->request->most : ERROR_MOST;
    if (len > most || t->got.len > most - len) {
        t->is_too_long = 1;
        return http >= 200 && http < 300 ? 0 : len; /* the beginning of an error is enough */
    }
    if (brc_buf_append(&t->got, data, len, NULL) < 0) {
        t->is_out_of_memory = 1;
        return 0;
    }
    return len;
}

/* Reads "bytes 5-9/100". */
static void answer_range(transfer *t, const char *text)
{
    uint64_t first, last;
    if (sscanf(text, " bytes %18" SCNu64 "-%18" SCNu64 "/", &first, &last) != 2 || last < first)
        return;
    t->has_range = 1;
    t->range_from = first;
    t->range_end = last + 1;
}

static size_t answer_header(char *data, size_t size, size_t n, void *to)
{
    transfer *t = to;
    char line[200];
    const size_t len = size * n;
    t->header_bytes += len;
    t->client->heard_ms = clock_ms();
    if (t->header_bytes > HEADERS_MOST) {
        t->is_too_long = 1;
        return 0;
    }
    if (len >= sizeof(line))
        return len;
    memcpy(line, data, len);
    line[len] = '\0';
    if (strncasecmp(line, "content-range:", 14) == 0)
        answer_range(t, line + 14);
    else if (strncasecmp(line, "x-amz-bucket-region:", 20) == 0 &&
             sscanf(line + 20, " %31[a-z0-9-]", t->region) != 1)
        t->region[0] = '\0';
    return len;
}

/* ---- what is sent -------------------------------- */

static int header_add(transfer *t, const char *name, const char *value)
{
    char line[8300];
    snprintf(line, sizeof(line), "%s: %s", name, value);
    struct curl_slist *longer = t->curl->slist_append(t->headers, line);
    if (longer != NULL)
        t->headers = longer;
    return longer != NULL;
}

/* Adds the CRC-32 of the body, by which the server notices bytes that changed on the way. The
 * protocol wants four
 * bytes, the highest first, in base 64. */
static int checksum_add(transfer *t)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint64_t sum = crc32_z(0, t->request->body, (size_t)t->request->body_len);
    char text[9];
    for (int i = 0; i < 6; i++)
        text[i] = digits[(sum << 4 >> (30 - 6 * i)) & 63];
    memcpy(text + 6, "==", 3);
    return header_add(t, "x-amz-checksum-crc32", text);
}

/* Sets the headers and the signature. Returns 0 without memory. libcurl signs the headers; before
 * 8.0
 * it does not add the checksum of the contents, which many servers want. */
static int transfer_sign(const run *r, transfer *t)
{
    const brc_credentials *c = &r->credentials;
    char provider[64];
    int good = 1;
    if (t->request->body != NULL)
        good &= header_add(t, "Content-Type", "application/octet-stream") && checksum_add(t);
    if (t->request->is_new && !r->client->takes_any_put)
        good &= header_add(t, "If-None-Match", "*");
    if (c->key[0] != '\0') {
        if (c->token[0] != '\0')
            good &= header_add(t, "x-amz-security-token", c->token);
        good &= header_add(t, "x-amz-content-sha256",
                           t->request->body != NULL ? "UNSIGNED-PAYLOAD" : EMPTY_SHA256);
        snprintf(provider, sizeof(provider), "aws:amz:%s:s3", r->client->config.region);
        good &= t->curl->easy_setopt(t->easy, CURLOPT_AWS_SIGV4, provider) == CURLE_OK &&
                t->curl->easy_setopt(t->easy, CURLOPT_USERNAME, c->key) == CURLE_OK &&
                t->curl->easy_setopt(t->easy, CURLOPT_PASSWORD, c->secret) == CURLE_OK;
    }
    if (t->headers != NULL)
        t->curl->easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers);
    return good;
}

/* Says what to send. A body is given as that of a POST with another verb, so that libcurl takes it
 * from memory. */
static void transfer_method(const transfer *t)
{
    const brc_s3_request *q = t->request;
    char range[48];
    const CURLoption verb = CURLOPT_CUSTOMREQUEST;
    if (q->body != NULL) {
        t->curl->easy_setopt(t->easy, CURLOPT_POST, 1L);
        t->curl->easy_setopt(t->easy, CURLOPT_POSTFIELDS, q->body);
        t->curl->easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body_len);
        t->curl->easy_setopt(t->easy, CURLOPT_EXPECT_100_TIMEOUT_MS,
                             q->body_len >= 1048576 ? 1000L : 1L);
    }
    if (strcmp(q->method, "GET") != 0)
        t->curl->easy_setopt(t->easy, verb, q->method);
    if (q->len > 0) {
        snprintf(range, sizeof(range), "%" PRIu64 "-%" PRIu64, q->from, q->from + q->len - 1);
        t->curl->easy_setopt(t->easy, CURLOPT_RANGE, range);
    }
}

/* The environment of the process has no say: no proxy, no .netrc, no redirection. */
static void transfer_limits(const transfer *t)
{
    const curl_api *curl = t->curl;
    curl->easy_setopt(t->easy, CURLOPT_NOSIGNAL, 1L);
    curl->easy_setopt(t->easy, CURLOPT_PROXY, "");
    curl->easy_setopt(t->easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl->easy_setopt(t->easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl->easy_setopt(t->easy, CURLOPT_PATH_AS_IS, 1L);
    curl->easy_setopt(t->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl->easy_setopt(t->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    curl->easy_setopt(t->easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl->easy_setopt(t->easy, CURLOPT_LOW_SPEED_TIME, (long)t->client->config.idle_s);
    curl->easy_setopt(t->easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl->easy_setopt(t->easy, CURLOPT_USERAGENT, "breccia");
    curl->easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, answer_body);
    curl->easy_setopt(t->easy, CURLOPT_WRITEDATA, (void *)(uintptr_t)t);
    curl->easy_setopt(t->easy, CURLOPT_HEADERFUNCTION, answer_header);
    curl->easy_setopt(t->easy, CURLOPT_HEADERDATA, (void *)(uintptr_t)t);
    curl->easy_setopt(t->easy, CURLOPT_PRIVATE, (void *)(uintptr_t)t);
}

static void transfer_end(run *r, transfer *t)
{
    r->running--;
    r->client->in_flight--;
    t->curl->multi_remove_handle(r->lane->multi, t->easy);
    t->curl->easy_reset(t->easy); /* keeps its connections, forgets the secret */
    if (t->headers != NULL)
        t->curl->slist_free_all(t->headers);
    t->headers = NULL;
    t->request->running--;
    t->request = NULL;
}

/* Begins an attempt. Returns 0 without memory. */
static int transfer_begin(run *r, transfer *t, brc_s3_request *q)
{
    char url[BRC_S3_URL_SIZE];
    t->curl = &r->client->curl;
    t->client = r->client;
    if (t->easy == NULL)
        t->easy = t->curl->easy_init();
    if (t->easy == NULL)
        return 0;
    t->request = q;
    t->got.len = t->header_bytes = 0;
    t->is_too_long = t->is_out_of_memory = t->is_whole = t->has_range = 0;
    t->region[0] = '\0';
    t->since_ms = clock_ms();
    q->running++;
    r->running++;
    r->client->in_flight++;
    brc_s3_url(url, &r->client->config, q->key, q->query);
    transfer_limits(t);
    transfer_method(t);
    if (t->curl->easy_setopt(t->easy, CURLOPT_URL, url) == CURLE_OK && transfer_sign(r, t) &&
        t->curl->multi_add_handle(r->lane->multi, t->easy) == CURLM_OK)
        return 1;
    transfer_end(r, t);
    return 0;
}

/* ---- what an answer means -------------------------------- */

enum { GOOD, AGAIN, RENEW, PLAIN_PUT, FINAL };

static int is_passing(int curl)
{
    return curl != CURLE_PEER_FAILED_VERIFICATION && curl != CURLE_SSL_CACERT_BADFILE &&
           curl != CURLE_URL_MALFORMAT && curl != CURLE_UNSUPPORTED_PROTOCOL &&
           curl != CURLE_OUT_OF_MEMORY;
}

/* Looks whether the answer is the range that was asked for. */
static int judge_range(const transfer *t, brc_s3_request *q)
{
    if (q->http != 206 || !t->has_range)
        return FINAL; /* the server reads no ranges */
    if (t->range_from != q->from || t->range_end > q->from + q->len)
        return AGAIN;
    q->is_cut = t->range_end < q->from + q->len;
    if (q->is_cut)
        return FINAL;
    return t->got.len == q->len ? GOOD : AGAIN;
}

static int judge_status(const run *r, const transfer *t, brc_s3_request *q)
{
    static const char *const expired[] = { "ExpiredToken", "RequestExpired",
                                           "TokenRefreshRequired" };
    if (q->http >= 200 && q->http < 300)
        return q->len > 0 ? judge_range(t, q) : GOOD;
    if (q->http == 416) {
        q->is_cut = 1;
        return FINAL;
    }
    for (size_t i = 0; i < sizeof(expired) / sizeof(expired[0]); i++)
        if (strcmp(q->code, expired[i]) == 0)
            return r->is_renewed ? FINAL : RENEW;
    if (q->http == 501 && q->is_new && !r->client->takes_any_put)
        return PLAIN_PUT;
    if (q->http == 412 && q->is_new)
        return GOOD;
    if (strcmp(q->method, "DELETE") == 0 && q->http == 404 && strcmp(q->code, "NoSuchBucket") != 0)
        return GOOD;
    return q->http == 500 || q->http == 502 || q->http == 503 || q->http == 504 || q->http == 408 ||
                   q->http == 409 || q->http == 429 || strcmp(q->code, "RequestTimeout") == 0
               ? AGAIN
               : FINAL;
}

static int judge_answer(const run *r, const transfer *t, int curl)
{
    brc_s3_request *q = t->request;
    const char *text = (const char *)t->got.data;
    q->curl = t->is_out_of_memory ? CURLE_OUT_OF_MEMORY : t->is_whole ? CURLE_OK : curl;
    q->http = 0;
    q->code[0] = '\0';
    if (q->curl != CURLE_OK)
        return t->is_too_long || is_passing(q->curl) ? AGAIN : FINAL;
    t->curl->easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &q->http);
    snprintf(q->region, sizeof(q->region), "%s", t->region);
    if (q->http >= 300) {
        brc_s3_element(q->code, sizeof(q->code), "Code", text, t->got.len);
        if (q->region[0] == '\0')
            brc_s3_element(q->region, sizeof(q->region), "Region", text, t->got.len);
    }
    return judge_status(r, t, q);
}

/* ---- driving -------------------------------- */

/* Returns a pause of random length, so that clients that failed together do not come back
 * together. */
static int64_t pause_of(int tries)
{
    int64_t ms = PAUSE_MS;
    uint32_t random = 0;
    for (int i = 1; i < tries && ms < PAUSE_MOST_MS; i++)
        ms *= 2;
    if (ms > PAUSE_MOST_MS)
        ms = PAUSE_MOST_MS;
    if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random))
        random = 0;
    return ms / 2 + (int64_t)(random % (uint32_t)ms);
}

static void request_done(run *r, brc_s3_request *q)
{
    q->is_done = 1;
    r->done++;
    for (int i = 0; i < IN_FLIGHT; i++) /* the other attempt is not needed */
        if (r->lane->transfers[i].request == q)
            transfer_end(r, &r->lane->transfers[i]);
}

/* Returns whether the server, for which the request has waited in vain more than once, has said
 * nothing to anybody since this call began, for longer than one attempt waits. */
static int is_silent(const run *r, const brc_s3_request *q)
{
    const int64_t heard = r->client->heard_ms, since = heard > r->begun_ms ? heard : r->begun_ms;
    return q->curl == CURLE_OPERATION_TIMEDOUT && q->tries > 1 &&
           clock_ms() - since >= r->client->config.idle_s * INT64_C(1500);
}

/* Takes the end of an attempt. */
static int transfer_done(run *r, transfer *t, int curl, brc_error *err)
{
    brc_s3_request *q = t->request;
    const int verdict = judge_answer(r, t, curl);
    if (verdict == GOOD || verdict == FINAL) {
        const brc_buf got = t->got;
        t->got = q->answer;
        q->answer = got;
    }
    transfer_end(r, t);
    if (verdict != AGAIN)
        r->gone = NULL;
    else if (is_silent(r, q))
        r->gone = q;
    if (verdict == GOOD || verdict == FINAL || (verdict == AGAIN && q->tries >= BRC_S3_TRIES)) {
        if (verdict == AGAIN && q->running > 0)
            return BRC_OK; /* the other attempt may still succeed */
        request_done(r, q);
        return BRC_OK;
    }
    q->due_ms = clock_ms();
    if (verdict == AGAIN)
        q->due_ms += pause_of(q->tries);
    if (verdict == PLAIN_PUT)
        r->client->takes_any_put = 1;
    if (verdict == RENEW) {
        r->is_renewed = 1;
        BRC_BACKEND_TRY(credentials_take(r, r->asked, err));
    }
    return BRC_OK;
}

/* Returns whether others leave this call room for another attempt. */
static int call_has_room(const run *r)
{
    return r->running == 0 || r->client->in_flight < ALL_IN_FLIGHT;
}

static transfer *slot_free(const run *r)
{
    for (int i = 0; i < IN_FLIGHT; i++)
        if (r->lane->transfers[i].request == NULL)
            return &r->lane->transfers[i];
    return NULL;
}

/* Begins the requests whose time has come. Lowers *wait to the time until the next one. */
static int begin_due(run *r, int64_t *wait, brc_error *err)
{
    const int64_t now = clock_ms();
    for (size_t i = 0; i < r->n; i++) {
        brc_s3_request *q = &r->requests[i];
        if (q->is_done || q->running > 0)
            continue;
        if (r->gone != NULL) {
            q->curl = r->gone->curl;
            q->tries = r->gone->tries;
            request_done(r, q);
            continue;
        }
        if (q->due_ms > now) {
            *wait = q->due_ms - now < *wait ? q->due_ms - now : *wait;
            continue;
        }
        transfer *t = slot_free(r);
        if (t == NULL)
            return BRC_OK;
        if (!call_has_room(r)) {
            *wait = CROWDED_MS;
            return BRC_OK;
        }
        q->tries++;
        if (!transfer_begin(r, t, q))
            return brc_fail(err, BRC_ENOMEM, "out of memory");
    }
    return BRC_OK;
}

/* Sends slow reads a second time, on other connections. Without a free slot, or memory, all stays
 * as it is. */
static void hedge_slow(run *r)
{
    const int64_t now = clock_ms();
    for (int i = 0; i < IN_FLIGHT; i++) {
        const transfer *slow = &r->lane->transfers[i];
        brc_s3_request *q = slow->request;
        if (q == NULL || q->is_hedged || q->body != NULL || strcmp(q->method, "GET") != 0 ||
            now - slow->since_ms < SLOW_MS + (int64_t)(q->len >> 20) * SLOW_MIB_MS)
            continue;
        transfer *t = slot_free(r);
        if (t == NULL || !call_has_room(r))
            return;
        q->is_hedged = 1;
        (void)!transfer_begin(r, t, q);
    }
}

static int take_messages(run *r, brc_error *err)
{
    const curl_api *curl = &r->client->curl;
    CURLMsg *message;
    int left;
    while ((message = curl->multi_info_read(r->lane->multi, &left)) != NULL) {
        void *private = NULL;
        const int result = (int)message->data.result;
        if (message->msg != CURLMSG_DONE)
            continue;
        curl->easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private);
        transfer *t = private;
        if (t != NULL && t->request != NULL)
            BRC_BACKEND_TRY(transfer_done(r, t, result, err));
    }
    return BRC_OK;
}

static int drive(run *r, brc_error *err)
{
    const brc_backend_host *host = r->client->host;
    const curl_api *curl = &r->client->curl;
    while (r->done < r->n) {
        int running;
        int64_t wait = WAKE_MS;
        if (host->stopped != NULL && host->stopped(host->ctx))
            return brc_fail(err, BRC_EINTERRUPT, "stopped");
        BRC_BACKEND_TRY(begin_due(r, &wait, err));
        hedge_slow(r);
        if (curl->multi_perform(r->lane->multi, &running) != CURLM_OK)
            return brc_fail(err, BRC_EIO, "libcurl fails");
        const size_t done = r->done;
        BRC_BACKEND_TRY(take_messages(r, err));
        if (r->done == done && r->done < r->n)
            curl->multi_poll(r->lane->multi, NULL, 0, (int)wait, NULL);
    }
    return BRC_OK;
}

int brc_s3_run(brc_s3_client *client, size_t n, brc_s3_request *requests, brc_error *err)
{
    run r = { .client = client, .n = n, .requests = requests, .begun_ms = clock_ms() };
    if (n == 0)
        return BRC_OK;
    BRC_BACKEND_TRY(credentials_take(&r, 0, err));
    r.lane = lane_take(client);
    int rc = r.lane != NULL ? drive(&r, err) : brc_fail(err, BRC_ENOMEM, "out of memory");
    if (r.lane != NULL) {
        for (int i = 0; i < IN_FLIGHT; i++)
            if (r.lane->transfers[i].request != NULL)
                transfer_end(&r, &r.lane->transfers[i]);
        lane_give(client, r.lane);
    }
    explicit_bzero(&r.credentials, sizeof(r.credentials));
    return rc;
}

/* ---- what went wrong, in words -------------------------------- */

/* Says why there was no answer. */
static int failed_answer(const brc_s3_client *client, const brc_s3_request *q, brc_error *err)
{
    const char *endpoint = client->config.endpoint;
    switch (q->curl) {
    case CURLE_OUT_OF_MEMORY:
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    case CURLE_COULDNT_RESOLVE_HOST:
        return brc_fail(err, BRC_EIO,
                        "the server %s is not known: check the network, and the backend's "
                        "\"endpoint\" and \"region\"",
                        endpoint);
    case CURLE_COULDNT_CONNECT:
        return brc_fail(err, BRC_EIO,
                        "the server %s does not take connections: check that it runs, and the "
                        "backend's \"endpoint\"",
                        endpoint);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
        return brc_fail(err, BRC_EIO,
                        "the certificate of %s is not trusted: install the authority's "
                        "certificate on this machine",
                        endpoint);
    case CURLE_OPERATION_TIMEDOUT:
        return brc_fail(err, BRC_EIO, "the server %s did not answer in time, %d times: try again",
                        endpoint, q->tries);
    case CURLE_WRITE_ERROR:
        return brc_fail(err, BRC_EIO, "the server %s sends more than was asked for", endpoint);
    default:
        return brc_fail(err, BRC_EIO, "the server %s failed %d times (%s): try again", endpoint,
                        q->tries, client->curl.easy_strerror((CURLcode)q->curl));
    }
}

static int failed_permission(brc_s3_client *client, const brc_s3_request *q, brc_error *err)
{
    const char *endpoint = client->config.endpoint;
    char key[sizeof(client->credentials.key)];
    pthread_mutex_lock(&client->lock);
    memcpy(key, client->credentials.key, sizeof(key));
    pthread_mutex_unlock(&client->lock);
    if (key[0] == '\0')
        return brc_fail(err, BRC_EIO,
                        "the server %s wants credentials (%s): set AWS_ACCESS_KEY_ID and "
                        "AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
                        endpoint, q->code);
    if (strcmp(q->code, "RequestTimeTooSkewed") == 0)
        return brc_fail(err, BRC_EIO,
                        "the clocks of this machine and of %s differ too much: set the clock",
                        endpoint);
    if (strcmp(q->code, "SignatureDoesNotMatch") == 0 || strcmp(q->code, "InvalidAccessKeyId") == 0)
        return brc_fail(err, BRC_EIO,
                        "the server %s does not know the access key %s with this secret (%s): "
                        "check both",
                        endpoint, key, q->code);
    return brc_fail(err, BRC_EIO,
                    "the server %s does not let the access key %s do this (%s): give it the right "
                    "to read, write, list and delete below the prefix",
                    endpoint, key, q->code[0] ? q->code : "403");
}

/* Says what the answer was. */
static int failed_status(brc_s3_client *client, const brc_s3_request *q, brc_error *err)
{
    const brc_s3_config *config = &client->config;
    const int is_missing = q->http == 404;
    if (q->is_cut)
        return brc_fail(err, BRC_ECORRUPT, "the object is cut off: it ends before byte %" PRIu64
                        ": " BRC_PACK_REMEDY,
                        q->from + q->len);
    if (q->http >= 200 && q->http < 300)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "the server %s does not answer with the range that was asked for: the "
                        "backend needs a server that does",
                        config->endpoint);
    if (strcmp(q->code, "NoSuchBucket") == 0 || (is_missing && q->key[0] == '\0'))
        return brc_fail(err, BRC_ENOTFOUND,
                        "%s has no bucket \"%s\": make it, or give the right name",
                        config->endpoint, config->bucket);
    if (is_missing)
        return brc_fail(err, BRC_ENOTFOUND, "the object is missing: " BRC_PACK_REMEDY);
    if (q->http == 301 || q->http == 307 || strcmp(q->code, "AuthorizationHeaderMalformed") == 0)
        return brc_fail(err, BRC_EINVAL,
                        "the bucket is not in the region %s%s%s: change the backend's \"region\"",
                        config->region, q->region[0] ? " but in " : "", q->region);
    if (q->http == 401 || q->http == 403)
        return failed_permission(client, q, err);
    if (q->http == 507 || strcmp(q->code, "QuotaExceeded") == 0)
        return brc_fail(err, BRC_ENOSPACE, "the bucket is full");
    return brc_fail(err, BRC_EIO, "the server %s answered %ld%s%s%s, %d times: try again later",
                    config->endpoint, q->http, q->code[0] ? " (" : "", q->code,
                    q->code[0] ? ")" : "", q->tries);
}

int brc_s3_failed(brc_s3_client *client, const brc_s3_request *q, brc_error *err)
{
    const int is_put_before = q->is_new && q->http == 412;
    const int is_gone = strcmp(q->method, "DELETE") == 0 && q->http == 404 &&
                        strcmp(q->code, "NoSuchBucket") != 0;
    int rc;
    if (q->curl == CURLE_OK && !q->is_cut &&
        ((q->http >= 200 && q->http < 300 && (q->len == 0 || (q->http == 206 &&
                                                              q->answer.len == q->len))) ||
         is_put_before || is_gone))
        return BRC_OK;
    rc = q->curl != CURLE_OK ? failed_answer(client, q, err) : failed_status(client, q, err);
    brc_context(err, "s3://%s%s%s", client->config.bucket, q->key[0] ? "/" : "", q->key);
    return rc;
}

#endif
