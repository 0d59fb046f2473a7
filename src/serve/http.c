#include "http.h"

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../breccia_codec.h"
#include "respond.h"
#include "work.h"

/* Seconds that a client has for a request, once the connection is open or the last answer was
 * sent, and for an answer; to these come one for each SLOWEST bytes. */
enum { REQUEST_SECONDS = 40, ANSWER_SECONDS = 60, SLOWEST = 16384 };
/* Bodies up to COUNTED_FROM bytes wait in memory; of longer ones HELD_MOST bytes, each of at most
 * HELD_EACH. All others wait in files. */
enum { COUNTED_FROM = 16384, HELD_EACH = 4 << 20, HELD_MOST = 32 << 20 };
/* Bytes of an answer that the system takes before the client has room for them: otherwise it would
 * hold megabytes for each client that is slow. */
enum { UNSENT_MOST = 262144 };
/* Memory of a connection, and of it what headers may take. */
enum { CONNECTION_BYTES = 24576, HEADER_BYTES_MOST = 8192 };

/* A connection, while it is open. */
typedef struct line {
    struct line *next, **link;
    int socket;
    int64_t deadline; /* 0: none */
} line;

struct serve_http {
    serve_files *files;
    serve_http_opts opts;
    struct MHD_Daemon *daemon;
    serve_work *work;
    _Atomic size_t held;  /* bytes of the bodies that are being sent */
    pthread_mutex_t lock; /* of the lists, and of what `calls` have */
    pthread_cond_t ends;
    line *lines;
    struct call *running; /* what workers do */
    int is_stopping;
    pthread_t watcher;
    int has_watcher;
};

/* A request, from its first line until its answer was sent. */
typedef struct call {
    serve_job job; /* the first member */
    serve_http *http;
    struct MHD_Connection *connection;
    char *uri;
    int is_read;
    int is_options;
    int is_waiting;
    int is_done;    /* the reply is there */
    int is_counted; /* its body is, among those that are held */
    int body_file;  /* the body is in this file; -1: it is not */
    uint64_t body_len;
    serve_target target;
    serve_request request;
    serve_reply reply;
    serve_reader *reader; /* which works for it */
    int64_t deadline;
    struct call *next, **link; /* among those that workers do */
} call;

static int64_t seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec;
}

/* ---- connections -------------------------------- */

static void line_opens_or_closes(void *ctx, struct MHD_Connection *connection, void **own,
                                 enum MHD_ConnectionNotificationCode what)
{
    const int unsent = UNSENT_MOST;
    serve_http *http = ctx;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        line *l = calloc(1, sizeof(*l));
        *own = l;
        if (l == NULL)
            return;
        l->socket = info->connect_fd;
        (void)setsockopt(l->socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
        l->deadline = seconds_now() + REQUEST_SECONDS;
        pthread_mutex_lock(&http->lock);
        l->next = http->lines;
        l->link = &http->lines;
        if (l->next != NULL)
            l->next->link = &l->next;
        http->lines = l;
        pthread_mutex_unlock(&http->lock);
    } else if (*own != NULL) {
        line *l = *own;
        pthread_mutex_lock(&http->lock);
        *l->link = l->next;
        if (l->next != NULL)
            l->next->link = l->link;
        pthread_mutex_unlock(&http->lock);
        free(l);
    }
}

/* Sets by when the client must have done its part; 0: it waits for this side. */
static void set_deadline(serve_http *http, struct MHD_Connection *connection, int64_t seconds)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    line *l = info != NULL ? info->socket_context : NULL;
    if (l == NULL)
        return;
    pthread_mutex_lock(&http->lock);
    l->deadline = seconds != 0 ? seconds_now() + seconds : 0;
    pthread_mutex_unlock(&http->lock);
}

/* Ends connections of clients that are too slow, and work that takes too long. */
static void *watch(void *arg)
{
    serve_http *http = arg;
    pthread_mutex_lock(&http->lock);
    while (!http->is_stopping) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        const int64_t now = (int64_t)until.tv_sec;
        for (const line *l = http->lines; l != NULL; l = l->next)
            if (l->deadline != 0 && l->deadline < now)
                (void)shutdown(l->socket, SHUT_RDWR);
        for (call *c = http->running; c != NULL; c = c->next)
            if (c->reader != NULL && c->deadline < now)
                serve_reader_interrupt(c->reader);
        until.tv_sec++;
        (void)pthread_cond_timedwait(&http->ends, &http->lock, &until);
    }
    pthread_mutex_unlock(&http->lock);
    return NULL;
}

/* ---- answers -------------------------------- */

typedef struct header {
    const char *name, *value;
} header;

/* Every answer has them: a page of another origin may read what the token in the address opens,
 * and a browser that loads one thing does not tell others its address. */
static const header always[] = {
    { "Access-Control-Allow-Origin", "*" },
    { "Access-Control-Expose-Headers",
      "Accept-Ranges, Content-Encoding, Content-Length, Content-Location, Content-Range, "
      "ETag, Last-Modified, Location, Retry-After, X-Breccia-Commit, X-Dtype, X-Shape, X-Step" },
    { "Cross-Origin-Resource-Policy", "cross-origin" },
    { "Referrer-Policy", "no-referrer" },
    { "X-Content-Type-Options", "nosniff" },
};
static const char page_policy[] =
    "default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'self'";

static void add(struct MHD_Response *response, const char *name, const char *value)
{
    (void)MHD_add_response_header(response, name, value);
}

/* Adds the lines "Name: value\n" of an answer; `text` is changed. Returns whether one has the
 * name. */
static int add_lines(struct MHD_Response *response, char *text, const char *name)
{
    int has = 0;
    for (char *at = text; *at != '\0';) {
        char *end = at + strcspn(at, "\n"), *colon = memchr(at, ':', (size_t)(end - at));
        const int is_last = *end == '\0';
        *end = '\0';
        if (colon != NULL) {
            *colon = '\0';
            add(response, at, colon + 1 + strspn(colon + 1, " "));
            has |= strcmp(at, name) == 0;
        }
        at = is_last ? end : end + 1;
    }
    return has;
}

static void add_date(struct MHD_Response *response, const char *name, int64_t us)
{
    char text[64];
    const time_t seconds = (time_t)(us / 1000000);
    struct tm parts;
    if (us > 0 && gmtime_r(&seconds, &parts) != NULL &&
        strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &parts) > 0)
        add(response, name, text);
}

static void add_location(struct MHD_Response *response, const serve_reply *reply)
{
    char text[SERVE_MOST_URI * 3 + 256];
    const size_t len = reply->location.len;
    if (len == 0 || len >= sizeof(text))
        return;
    memcpy(text, reply->location.data, len);
    text[len] = '\0';
    add(response, reply->answer.status == 301 ? "Location" : "Content-Location", text);
}

static void add_range(struct MHD_Response *response, const serve_reply *reply)
{
    char text[128];
    const serve_answer *a = &reply->answer;
    if (reply->has_ranges)
        add(response, "Accept-Ranges", "bytes");
    if (a->status == 206)
        (void)snprintf(text, sizeof(text), "bytes %llu-%llu/%llu", (unsigned long long)reply->start,
                       (unsigned long long)(reply->start + reply->length - 1),
                       (unsigned long long)reply->whole);
    else if (a->status == 416)
        (void)snprintf(text, sizeof(text), "bytes */%llu", (unsigned long long)reply->whole);
    else
        return;
    add(response, "Content-Range", text);
}

static void add_headers(struct MHD_Response *response, serve_reply *reply)
{
    char text[128];
    serve_answer *a = &reply->answer;
    const int is_good = a->status == 200 || a->status == 206 || a->status == 304;
    for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
        add(response, always[i].name, always[i].value);
    if (a->type != NULL && a->status != 304)
        add(response, "Content-Type", a->type);
    if (is_good && a->etag[0] != '\0') {
        (void)snprintf(text, sizeof(text), "\"%s\"", a->etag);
        add(response, "ETag", text);
    }
    add(response, "Cache-Control",
        is_good && a->immutable ? "max-age=31536000, immutable" : "no-cache");
    if (a->commit[0] != '\0')
        add(response, "X-Breccia-Commit", a->commit);
    if (is_good)
        add_date(response, "Last-Modified", reply->modified_us);
    if (reply->retry_after > 0) {
        (void)snprintf(text, sizeof(text), "%d", reply->retry_after);
        add(response, "Retry-After", text);
    }
    add_location(response, reply);
    add_range(response, reply);
    if (!add_lines(response, a->headers, "Content-Security-Policy") && a->type != NULL &&
        strncmp(a->type, "text/html", 9) == 0)
        add(response, "Content-Security-Policy", page_policy);
}

/* A body in memory, while it is sent. */
typedef struct held_body {
    brc_buf bytes;
    serve_http *http; /* NULL: it is too short to be counted */
} held_body;

static void free_body(void *ctx)
{
    held_body *body = ctx;
    if (body->http != NULL)
        atomic_fetch_sub(&body->http->held, body->bytes.len);
    brc_buf_dispose(&body->bytes);
    free(body);
}

/* Opens a file that has no name. */
static int open_nameless(void)
{
    const char *tmp = getenv("TMPDIR");
    const char *folder = tmp != NULL && *tmp != '\0' ? tmp : "/var/tmp";
    char name[4096];
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 ||
        (size_t)snprintf(name, sizeof(name), "%s/breccia-XXXXXX", folder) >= sizeof(name))
        return fd;
    fd = mkostemp(name, O_CLOEXEC);
    if (fd >= 0)
        (void)unlink(name);
    return fd;
}

/* Moves a body into a file, from which it is sent. Clients that are slow do not fill the memory. */
static int spill_body(call *c)
{
    brc_buf *body = &c->reply.answer.body;
    int fd = open_nameless();
    for (size_t at = 0; fd >= 0 && at < body->len;) {
        const ssize_t n = write(fd, body->data + at, body->len - at);
        if (n > 0)
            at += (size_t)n;
        else if (n == 0 || errno != EINTR) {
            close(fd);
            fd = -1;
        }
    }
    if (fd < 0)
        return 0;
    c->body_file = fd;
    c->body_len = body->len;
    brc_buf_dispose(body);
    return 1;
}

/* Decides where the body waits until it is sent. It may take a while if the body is long. */
static void place_body(call *c)
{
    const size_t len = c->reply.answer.body.len;
    if (len <= COUNTED_FROM || c->request.is_head)
        return;
    if (len <= HELD_EACH && atomic_fetch_add(&c->http->held, len) + len <= HELD_MOST) {
        c->is_counted = 1;
        return;
    }
    if (len <= HELD_EACH)
        atomic_fetch_sub(&c->http->held, len);
    if (!spill_body(c))
        serve_reply_fail(&c->reply, 503, "the server has no room for more answers at once");
}

/* Stands for the body of an answer to HEAD, of which only the length is sent. */
static ssize_t no_bytes(void *ctx, uint64_t pos, char *buf, size_t max)
{
    (void)ctx;
    (void)pos;
    (void)buf;
    (void)max;
    return MHD_CONTENT_READER_END_WITH_ERROR;
}

/* Makes a response that takes the body over. */
static struct MHD_Response *make_response(call *c)
{
    serve_reply *reply = &c->reply;
    struct MHD_Response *response;
    if (c->request.is_head)
        return MHD_create_response_from_callback(reply->length, 1024, no_bytes, NULL, NULL);
    if (c->body_file >= 0) {
        response = MHD_create_response_from_fd64(c->body_len, c->body_file);
        if (response != NULL)
            c->body_file = -1;
        return response;
    }
    if (reply->answer.body.len == 0)
        return MHD_create_response_from_buffer(0, (void *)(uintptr_t) "", MHD_RESPMEM_PERSISTENT);
    held_body *body = malloc(sizeof(*body));
    if (body == NULL)
        return NULL;
    *body = (held_body){ reply->answer.body, c->is_counted ? c->http : NULL };
    response = MHD_create_response_from_buffer_with_free_callback_cls(
        body->bytes.len, body->bytes.data, free_body, body);
    if (response == NULL) {
        free(body);
        return NULL;
    }
    reply->answer.body = (brc_buf)BRC_BUF_INIT;
    c->is_counted = 0;
    return response;
}

static enum MHD_Result send_reply(call *c)
{
    serve_reply *reply = &c->reply;
    const uint64_t len = c->request.is_head  ? 0
                         : c->body_file >= 0 ? c->body_len
                                             : reply->answer.body.len;
    struct MHD_Response *response = make_response(c);
    if (response == NULL)
        return MHD_NO;
    add_headers(response, reply);
    set_deadline(c->http, c->connection, ANSWER_SECONDS + (int64_t)(len / SLOWEST));
    const enum MHD_Result queued =
        MHD_queue_response(c->connection, (unsigned)reply->answer.status, response);
    MHD_destroy_response(response);
    return queued;
}

static enum MHD_Result send_failure(call *c, int status, const char *text)
{
    serve_reply_fail(&c->reply, status, text);
    return send_reply(c);
}

/* Tells a browser that a page of another origin may ask. */
static enum MHD_Result send_options(call *c)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(0, (void *)(uintptr_t) "", MHD_RESPMEM_PERSISTENT);
    const char *private = MHD_lookup_connection_value(c->connection, MHD_HEADER_KIND,
                                                      "Access-Control-Request-Private-Network");
    if (response == NULL)
        return MHD_NO;
    for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
        add(response, always[i].name, always[i].value);
    add(response, "Allow", "GET, HEAD, OPTIONS");
    add(response, "Access-Control-Allow-Methods", "GET, HEAD, OPTIONS");
    add(response, "Access-Control-Allow-Headers", "Range, If-None-Match, If-Range, Cache-Control");
    add(response, "Access-Control-Max-Age", "86400");
    if (private != NULL && strcmp(private, "true") == 0)
        add(response, "Access-Control-Allow-Private-Network", "true");
    set_deadline(c->http, c->connection, ANSWER_SECONDS);
    const enum MHD_Result queued = MHD_queue_response(c->connection, MHD_HTTP_NO_CONTENT, response);
    MHD_destroy_response(response);
    return queued;
}

/* ---- work -------------------------------- */

static void note_reader(void *ctx, serve_reader *reader)
{
    call *c = ctx;
    pthread_mutex_lock(&c->http->lock);
    c->reader = reader;
    pthread_mutex_unlock(&c->http->lock);
}

static void run_call(serve_job *job)
{
    call *c = (call *)job;
    serve_http *http = c->http;
    pthread_mutex_lock(&http->lock);
    const int is_late = http->is_stopping;
    c->deadline = seconds_now() + http->opts.seconds;
    c->next = http->running;
    c->link = &http->running;
    if (c->next != NULL)
        c->next->link = &c->next;
    http->running = c;
    pthread_mutex_unlock(&http->lock);
    c->request.may_wait = 1;
    if (is_late)
        serve_reply_fail(&c->reply, 503, "the server ends");
    else
        (void)serve_respond(&c->reply, http->files, &c->request);
    place_body(c);
    pthread_mutex_lock(&http->lock);
    *c->link = c->next;
    if (c->next != NULL)
        c->next->link = c->link;
    pthread_mutex_unlock(&http->lock);
    c->is_done = 1;
    MHD_resume_connection(c->connection);
}

static enum MHD_Result begin_work(call *c)
{
    c->is_waiting = 1;
    c->job.run = run_call;
    set_deadline(c->http, c->connection, 0);
    MHD_suspend_connection(c->connection);
    if (serve_work_submit(c->http->work, &c->job))
        return MHD_YES;
    serve_reply_fail(&c->reply, 503, "the server has too much to do: ask again later");
    c->is_done = 1;
    MHD_resume_connection(c->connection);
    return MHD_YES;
}

/* ---- requests -------------------------------- */

static enum MHD_Result count_header(void *ctx, enum MHD_ValueKind kind, const char *name,
                                    const char *value)
{
    size_t *bytes = ctx;
    (void)kind;
    *bytes += strlen(name) + (value != NULL ? strlen(value) : 0) + 4;
    return MHD_YES;
}

static const char *header_of(call *c, const char *name)
{
    return MHD_lookup_connection_value(c->connection, MHD_HEADER_KIND, name);
}

/* Sends what is wrong with the request itself; returns 0 if nothing is. */
static int refuse_call(call *c, enum MHD_Result *sent)
{
    size_t bytes = 0;
    brc_error err = BRC_ERROR_INIT;
    const serve_http_opts *opts = &c->http->opts;
    (void)MHD_get_connection_values(c->connection, MHD_HEADER_KIND, count_header, &bytes);
    const char *host = header_of(c, "Host");
    if (bytes > HEADER_BYTES_MOST)
        *sent = send_failure(c, 431, "the request's headers are too long");
    else if (!opts->any_host && !serve_host_is_known(host, opts->hosts, opts->nhosts))
        *sent = send_failure(
            c, 421, "this server does not answer under this name: start it with --host NAME");
    else if (c->is_options)
        *sent = send_options(c);
    else if (serve_target_read(&c->target, c->uri, opts->token, &err) < 0)
        *sent = send_failure(c, err.code == BRC_ELIMIT ? 414 : 400, err.message);
    else
        return 0;
    return 1;
}

static void read_request(call *c)
{
    const serve_http_opts *opts = &c->http->opts;
    serve_request *q = &c->request;
    q->target = &c->target;
    q->uri = c->uri;
    q->range = header_of(c, "Range");
    q->if_none_match = header_of(c, "If-None-Match");
    q->if_range = header_of(c, "If-Range");
    q->token = opts->token;
    q->limits = (serve_limits){ opts->decoded, opts->decoded / 4096 + 1, opts->seconds, NULL };
    q->on_reader = note_reader;
    q->ctx = c;
}

static enum MHD_Result take_call(void *ctx, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *version, const char *upload,
                                 size_t *upload_len, void **own)
{
    call *c = *own;
    enum MHD_Result sent;
    (void)ctx;
    (void)url;
    (void)version;
    (void)upload;
    if (c == NULL)
        return MHD_NO;
    c->connection = connection;
    if (c->is_done)
        return send_reply(c);
    if (c->is_waiting)
        return MHD_YES;
    if (!c->is_read) { /* the headers are there, but a body may come */
        c->is_read = 1;
        c->request.is_head = strcmp(method, "HEAD") == 0;
        c->is_options = strcmp(method, "OPTIONS") == 0;
        return c->request.is_head || c->is_options || strcmp(method, "GET") == 0
                   ? MHD_YES
                   : send_failure(c, 405, "this server is only read: GET, HEAD and OPTIONS");
    }
    if (*upload_len != 0) {
        *upload_len = 0;
        return MHD_YES;
    }
    if (refuse_call(c, &sent))
        return sent;
    read_request(c);
    if (!serve_respond(&c->reply, c->http->files, &c->request))
        return begin_work(c);
    place_body(c);
    return send_reply(c);
}

/* Gets the request's target as it came. */
static void *begin_call(void *ctx, const char *uri, struct MHD_Connection *connection)
{
    call *c = calloc(1, sizeof(*c));
    (void)connection;
    if (c == NULL)
        return NULL;
    c->http = ctx;
    c->body_file = -1;
    c->uri = strdup(uri);
    if (c->uri != NULL)
        return c;
    free(c);
    return NULL;
}

static void end_call(void *ctx, struct MHD_Connection *connection, void **own,
                     enum MHD_RequestTerminationCode why)
{
    call *c = *own;
    (void)why;
    if (c == NULL)
        return;
    set_deadline(ctx, connection, REQUEST_SECONDS);
    if (c->is_counted)
        atomic_fetch_sub(&c->http->held, c->reply.answer.body.len);
    if (c->body_file >= 0)
        close(c->body_file);
    serve_target_dispose(&c->target);
    serve_reply_dispose(&c->reply);
    free(c->uri);
    free(c);
    *own = NULL;
}

/* Paths stay as they came: route.c decodes them. */
static size_t leave_escaped(void *ctx, struct MHD_Connection *connection, char *text)
{
    (void)ctx;
    (void)connection;
    return strlen(text);
}

static void log_nothing(void *ctx, const char *format, va_list args)
{
    (void)ctx;
    (void)format;
    (void)args;
}

/* ---- beginning and end -------------------------------- */

static int start_daemon(serve_http *http, brc_error *err)
{
    const serve_http_opts *o = &http->opts;
    http->daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL,
        take_call, http, MHD_OPTION_EXTERNAL_LOGGER, log_nothing, NULL, MHD_OPTION_LISTEN_SOCKET,
        o->socket, MHD_OPTION_THREAD_POOL_SIZE, o->threads, MHD_OPTION_CONNECTION_LIMIT,
        o->connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)(ANSWER_SECONDS + REQUEST_SECONDS),
        MHD_OPTION_URI_LOG_CALLBACK, begin_call, http, MHD_OPTION_NOTIFY_COMPLETED, end_call, http,
        MHD_OPTION_NOTIFY_CONNECTION, line_opens_or_closes, http, MHD_OPTION_UNESCAPE_CALLBACK,
        leave_escaped, NULL, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
    return http->daemon != NULL ? BRC_OK
                                : brc_fail(err, BRC_EIO, "the server for HTTP cannot start");
}

static int start_watcher(serve_http *http, brc_error *err)
{
    const int failed = pthread_create(&http->watcher, NULL, watch, http);
    http->has_watcher = failed == 0;
    return failed == 0 ? BRC_OK
                       : brc_fail(err, BRC_EIO, "cannot start a thread: %s", strerror(failed));
}

int serve_http_start(serve_http **out, serve_files *files, const serve_http_opts *opts,
                     brc_error *err)
{
    serve_http *http = calloc(1, sizeof(*http));
    pthread_condattr_t clock;
    *out = NULL;
    if (http == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    http->files = files;
    http->opts = *opts;
    pthread_mutex_init(&http->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&http->ends, &clock);
    pthread_condattr_destroy(&clock);
    int rc = serve_work_new(&http->work, opts->workers, opts->queue, err);
    if (rc == BRC_OK)
        rc = start_watcher(http, err);
    if (rc == BRC_OK)
        rc = start_daemon(http, err);
    if (rc == BRC_OK)
        *out = http;
    else
        serve_http_stop(http);
    return rc;
}

void serve_http_stop(serve_http *http)
{
    if (http == NULL)
        return;
    if (http->daemon != NULL)
        (void)MHD_quiesce_daemon(http->daemon);
    pthread_mutex_lock(&http->lock);
    http->is_stopping = 1;
    pthread_cond_broadcast(&http->ends);
    for (call *c = http->running; c != NULL; c = c->next)
        if (c->reader != NULL)
            serve_reader_interrupt(c->reader);
    pthread_mutex_unlock(&http->lock);
    if (http->work != NULL)
        serve_work_close(http->work); /* resumes every connection that sleeps */
    if (http->daemon != NULL)
        MHD_stop_daemon(http->daemon);
    if (http->has_watcher)
        (void)pthread_join(http->watcher, NULL);
    serve_work_free(http->work);
    pthread_cond_destroy(&http->ends);
    pthread_mutex_destroy(&http->lock);
    free(http);
}
