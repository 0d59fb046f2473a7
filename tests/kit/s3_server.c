/* See s3_server.h. */
#include "s3_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS = 512, HEAD_MOST = 32768, PAGE = 3 };

typedef struct object {
    struct object *next; /* in the order of their keys */
    char key[600];
    char *data;
    size_t len;
} object;

struct s3_server {
    int listener;
    pthread_t thread;
    pthread_t threads[CONNECTIONS];
    int sockets[CONNECTIONS], has_ended[CONNECTIONS], n;
    int connections; /* how many came so far */
    pthread_mutex_t lock;
    pthread_cond_t came; /* a request came, or the server ends */
    int is_ending;
    char endpoint[64], code[64], region[32];
    object *objects, *kept;
    int requests, fail_from, fail_count, how;
    int delay_ms, waiting, waiting_most; /* requests that wait for their answer */
    int rounds; /* how often one began to wait and no other did */
};

typedef struct request {
    char head[HEAD_MOST];
    char method[16], key[600], query[2048];
    char *body;
    size_t len;
    long first, last; /* the range; first -1: none */
    int is_new;
} request;

typedef struct answer {
    int status, is_cut;
    char *body;
    size_t len;
    char headers[300];
} answer;

/* Benchmarks use the server too, which run in no test that could fail. */
static void server_must(int good, const char *what)
{
    if (!good) {
        fprintf(stderr, "the server of the tests fails: %s\n", what);
        abort();
    }
}

/* ---- objects -------------------------------- */

static object **object_at(s3_server *s, const char *key)
{
    object **at = &s->objects;
    while (*at != NULL && strcmp((*at)->key, key) < 0)
        at = &(*at)->next;
    return at;
}

static object *object_of(s3_server *s, const char *key)
{
    object *o = *object_at(s, key);
    return o != NULL && strcmp(o->key, key) == 0 ? o : NULL;
}

static void object_drop(s3_server *s, const char *key)
{
    object **at = object_at(s, key), *o = object_of(s, key);
    if (o == NULL)
        return;
    *at = o->next;
    free(o->data);
    free(o);
}

static void objects_free(object **objects)
{
    for (object *o = *objects, *next; o != NULL; o = next) {
        next = o->next;
        free(o->data);
        free(o);
    }
    *objects = NULL;
}

static void objects_copy(object **to, const object *from)
{
    objects_free(to);
    for (; from != NULL; from = from->next, to = &(*to)->next) {
        *to = calloc(1, sizeof(**to));
        memcpy((*to)->key, from->key, sizeof(from->key));
        (*to)->data = malloc(from->len + 1);
        memcpy((*to)->data, from->data, from->len);
        (*to)->len = from->len;
    }
}

static void object_put(s3_server *s, const char *key, const void *data, size_t len)
{
    object_drop(s, key);
    object **at = object_at(s, key), *o = calloc(1, sizeof(*o));
    snprintf(o->key, sizeof(o->key), "%s", key);
    o->data = malloc(len + 1);
    memcpy(o->data, data, len);
    o->len = len;
    o->next = *at;
    *at = o;
}

/* ---- answers -------------------------------- */

static void answer_text(answer *a, int status, const char *format, ...)
{
    va_list args;
    a->status = status;
    va_start(args, format);
    const int n = vasprintf(&a->body, format, args);
    va_end(args);
    a->len = n > 0 ? (size_t)n : 0;
}

static void answer_error(const s3_server *s, answer *a, int status, const char *code)
{
    answer_text(a, status,
                "<?xml version=\"1.0\"?>\n<Error><Code>%s</Code><Message>no</Message></Error>",
                s->code[0] ? s->code : code);
    if (s->region[0] != '\0')
        snprintf(a->headers, sizeof(a->headers), "x-amz-bucket-region: %s\r\n", s->region);
}

/* The value of a query's parameter, with "%2F" as "/". */
static void parameter(const char *query, const char *name, char *out, size_t size)
{
    const char *at = strstr(query, name);
    size_t n = 0;
    for (at = at ? at + strlen(name) : ""; *at != '\0' && *at != '&' && n + 1 < size; at++) {
        const int is_slash = strncmp(at, "%2F", 3) == 0;
        out[n++] = is_slash ? '/' : *at;
        at += is_slash ? 2 : 0;
    }
    out[n] = '\0';
}

static void answer_list(const s3_server *s, answer *a, const request *q)
{
    char prefix[600], after[600];
    size_t size;
    int n = 0, more = 0;
    FILE *out = open_memstream(&a->body, &size);
    memcpy(prefix, "/box/", 6);
    memcpy(after, "/box/", 6);
    parameter(q->query, "&prefix=", prefix + 5, sizeof(prefix) - 5);
    parameter(q->query, "&start-after=", after + 5, sizeof(after) - 5);
    fprintf(out, "<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"x\">");
    for (const object *o = s->objects; o != NULL; o = o->next) {
        if (strncmp(o->key, prefix, strlen(prefix)) != 0 || strcmp(o->key, after) <= 0)
            continue;
        more = n >= PAGE;
        if (more)
            break;
        n++;
        fprintf(out, "<Contents><Key>%s</Key><LastModified>2026-11-29T12:00:00.000Z</LastModified>"
                     "<Size>%zu</Size></Contents>", o->key + 5, o->len);
    }
    fprintf(out, "<IsTruncated>%s</IsTruncated></ListBucketResult>", more ? "true" : "false");
    fclose(out);
    a->len = size;
    a->status = 200;
}

static void answer_get(s3_server *s, answer *a, const request *q, int how)
{
    const object *o = object_of(s, q->key);
    if (o == NULL) {
        answer_error(s, a, 404, "NoSuchKey");
        return;
    }
    long first = q->first, last = q->last;
    if (first < 0 || how == S3_WHOLE) {
        first = 0;
        last = (long)o->len - 1;
    }
    if (how == S3_OTHER) {
        first++;
        last++;
    }
    if (first >= (long)o->len) {
        answer_error(s, a, 416, "InvalidRange");
        return;
    }
    last = last < (long)o->len ? last : (long)o->len - 1;
    a->status = q->first < 0 || how == S3_WHOLE ? 200 : 206;
    a->len = (size_t)(last - first + 1);
    a->body = calloc(1, a->len + 100);
    memcpy(a->body, o->data + first, a->len);
    if (a->status == 206)
        snprintf(a->headers, sizeof(a->headers), "Content-Range: bytes %ld-%ld/%zu\r\n", first,
                 last, o->len);
    if (how == S3_LONG)
        a->len += 100;
}

static void answer_of(s3_server *s, answer *a, const request *q, int how)
{
    if (how >= S3_STATUS) {
        answer_error(s, a, how, "InternalError");
    } else if (strncmp(q->key, "/box", 4) != 0) {
        answer_error(s, a, 404, "NoSuchBucket");
    } else if (strcmp(q->method, "PUT") == 0 && q->is_new && how == S3_PLAIN) {
        answer_error(s, a, 501, "NotImplemented");
    } else if (strcmp(q->method, "PUT") == 0 && q->is_new && object_of(s, q->key)) {
        answer_error(s, a, 412, "PreconditionFailed");
    } else if (strcmp(q->method, "PUT") == 0) {
        object_put(s, q->key, q->body, q->len);
        answer_text(a, 200, "%s", "");
    } else if (strcmp(q->method, "DELETE") == 0) {
        object_drop(s, q->key);
        answer_text(a, 204, "%s", "");
    } else if (q->query[0] != '\0') {
        answer_list(s, a, q);
    } else {
        answer_get(s, a, q, how);
    }
    if (how == S3_WRONG)
        for (size_t i = 0; i < a->len; i += 7)
            a->body[i] ^= 0x20;
}

/* ---- connections -------------------------------- */

static int send_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        const ssize_t n = send(fd, data, len, MSG_NOSIGNAL);
        if (n <= 0)
            return 0;
        data += n;
        len -= (size_t)n;
    }
    return 1;
}

/* Reads a request. Returns 0 at the end of the connection. */
static int request_read(int fd, request *q)
{
    size_t n = 0;
    char *end = NULL, *line;
    memset(q, 0, sizeof(*q));
    q->first = -1;
    while (end == NULL && n + 1 < sizeof(q->head)) { /* what follows the head stays in the socket */
        const size_t before = n > 3 ? n - 3 : 0;
        const ssize_t seen = recv(fd, q->head + n, sizeof(q->head) - 1 - n, MSG_PEEK);
        if (seen <= 0)
            return 0;
        end = memmem(q->head + before, n + (size_t)seen - before, "\r\n\r\n", 4);
        const size_t take = end != NULL ? (size_t)(end + 4 - q->head) - n : (size_t)seen;
        if (recv(fd, q->head + n, take, MSG_WAITALL) != (ssize_t)take)
            return 0;
        n += take;
    }
    q->head[n] = '\0';
    char target[2600] = "";
    if (sscanf(q->head, "%15s %2599s", q->method, target) != 2)
        return 0;
    snprintf(q->key, sizeof(q->key), "%.*s", (int)strcspn(target, "?"), target);
    if (strchr(target, '?') != NULL)
        snprintf(q->query, sizeof(q->query), "&%s", strchr(target, '?') + 1);
    if ((line = strcasestr(q->head, "\r\ncontent-length:")) != NULL)
        q->len = strtoul(line + 17, NULL, 10);
    if ((line = strcasestr(q->head, "\r\nrange: bytes=")) != NULL)
        sscanf(line + 15, "%ld-%ld", &q->first, &q->last);
    q->is_new = strcasestr(q->head, "\r\nif-none-match: *") != NULL;
    if (strcasestr(q->head, "\r\nexpect: 100") != NULL && !send_all(fd,
                                                                    "HTTP/1.1 100 "
                                                                    "Continue\r\n\r\n", 25))
        return 0;
    q->body = malloc(q->len + 1);
    for (n = 0; n < q->len;) {
        const ssize_t got = recv(fd, q->body + n, q->len - n, 0);
        if (got <= 0)
            return 0;
        n += (size_t)got;
    }
    return 1;
}

/* Counts the request, and returns how it goes wrong. */
static int request_fate(s3_server *s)
{
    const int number = s->requests++;
    const int is_bad = number >= s->fail_from && number - s->fail_from < s->fail_count;
    const int how = is_bad ? s->how : S3_FINE;
    pthread_cond_broadcast(&s->came);
    while (how == S3_SLOW && s->requests == number + 1 && !s->is_ending)
        pthread_cond_wait(&s->came, &s->lock);
    return how;
}

/* Waits as long as the answer takes on its way. */
static void request_wait(s3_server *s)
{
    const int ms = s->delay_ms;
    s->rounds += s->waiting == 0;
    s->waiting++;
    if (s->waiting > s->waiting_most)
        s->waiting_most = s->waiting;
    if (ms > 0) {
        pthread_mutex_unlock(&s->lock);
        nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000L }, NULL);
        pthread_mutex_lock(&s->lock);
    }
    s->waiting--;
}

/* Answers a request. Returns 0 if the connection ends. */
static int request_answer(s3_server *s, int fd, const request *q)
{
    char head[700];
    answer a = { 0 };
    pthread_mutex_lock(&s->lock);
    const int how = request_fate(s);
    request_wait(s);
    if (how != S3_CLOSED)
        answer_of(s, &a, q, how);
    pthread_mutex_unlock(&s->lock);
    int good = how != S3_CLOSED && how != S3_LOST;
    if (good) {
        const int n = snprintf(head, sizeof(head),
                               "HTTP/1.1 %d X\r\n%sContent-Length: %zu\r\n\r\n", a.status,
                               a.headers, a.len);
        good = how == S3_CUT && a.len == 0 ? send_all(fd, head, 12) && 0 : send_all(fd, head,
                                                                                    (size_t)n);
        good = good && send_all(fd, a.body, how == S3_CUT ? a.len / 2 : a.len) && how != S3_CUT;
    }
    free(a.body);
    return good;
}

typedef struct connection {
    s3_server *server;
    int fd, number;
} connection;

static void *connection_main(void *arg)
{
    connection c = *(connection *)arg;
    request *q = malloc(sizeof(*q));
    int good = 1;
    free(arg);
    while (good && (good = request_read(c.fd, q)) != 0) {
        good = request_answer(c.server, c.fd, q);
        free(q->body);
        q->body = NULL;
    }
    free(q->body);
    free(q);
    shutdown(c.fd, SHUT_RDWR);
    pthread_mutex_lock(&c.server->lock);
    c.server->has_ended[c.number] = 1;
    pthread_mutex_unlock(&c.server->lock);
    return NULL;
}

/* Returns the number of a connection that has ended, or of one that nobody has used yet. */
static int connection_number(s3_server *s)
{
    int i = 0;
    while (i < s->n && !s->has_ended[i])
        i++;
    server_must(i < CONNECTIONS, "taking one more connection");
    if (i == s->n) {
        s->n++;
        return i;
    }
    pthread_join(s->threads[i], NULL);
    close(s->sockets[i]);
    s->has_ended[i] = 0;
    return i;
}

static void *listener_main(void *arg)
{
    s3_server *s = arg;
    const int yes = 1;
    for (;;) {
        const int fd = accept(s->listener, NULL, NULL);
        if (fd < 0)
            return NULL;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
        connection *c = malloc(sizeof(*c));
        pthread_mutex_lock(&s->lock);
        const int i = connection_number(s);
        *c = (connection){ s, fd, i };
        s->connections++;
        s->sockets[i] = fd;
        server_must(pthread_create(&s->threads[i], NULL, connection_main, c) == 0,
                    "starting a thread");
        pthread_mutex_unlock(&s->lock);
    }
}

/* ---- the server -------------------------------- */

s3_server *s3_server_start(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof(at);
    s3_server *s = calloc(1, sizeof(*s));
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->came, NULL);
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    server_must(bind(s->listener, (struct sockaddr *)&at, sizeof(at)) == 0, "listening");
    server_must(listen(s->listener, CONNECTIONS) == 0, "listening");
    server_must(getsockname(s->listener, (struct sockaddr *)&at, &len) == 0, "listening");
    snprintf(s->endpoint, sizeof(s->endpoint), "http://127.0.0.1:%d", ntohs(at.sin_port));
    server_must(pthread_create(&s->thread, NULL, listener_main, s) == 0, "starting a thread");
    return s;
}

void s3_server_stop(s3_server *s)
{
    shutdown(s->listener, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->listener);
    pthread_mutex_lock(&s->lock);
    s->is_ending = 1;
    pthread_cond_broadcast(&s->came);
    for (int i = 0; i < s->n; i++)
        shutdown(s->sockets[i], SHUT_RDWR);
    pthread_mutex_unlock(&s->lock);
    for (int i = 0; i < s->n; i++) {
        pthread_join(s->threads[i], NULL);
        close(s->sockets[i]);
    }
    objects_free(&s->objects);
    objects_free(&s->kept);
    pthread_cond_destroy(&s->came);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

const char *s3_server_endpoint(const s3_server *s)
{
    return s->endpoint;
}

void s3_server_fail(s3_server *s, int n, int count, int how)
{
    pthread_mutex_lock(&s->lock);
    s->fail_from = s->requests + n;
    s->fail_count = count;
    s->how = how;
    pthread_mutex_unlock(&s->lock);
}

void s3_server_code(s3_server *s, const char *code, const char *region)
{
    pthread_mutex_lock(&s->lock);
    snprintf(s->code, sizeof(s->code), "%s", code);
    snprintf(s->region, sizeof(s->region), "%s", region);
    pthread_mutex_unlock(&s->lock);
}

void s3_server_delay(s3_server *s, int ms)
{
    pthread_mutex_lock(&s->lock);
    s->delay_ms = ms;
    s->waiting_most = s->rounds = 0;
    pthread_mutex_unlock(&s->lock);
}

int s3_server_rounds(s3_server *s)
{
    pthread_mutex_lock(&s->lock);
    const int n = s->rounds;
    pthread_mutex_unlock(&s->lock);
    return n;
}

int s3_server_at_once(s3_server *s)
{
    pthread_mutex_lock(&s->lock);
    const int n = s->waiting_most;
    pthread_mutex_unlock(&s->lock);
    return n;
}

int s3_server_requests(s3_server *s)
{
    pthread_mutex_lock(&s->lock);
    const int n = s->requests;
    pthread_mutex_unlock(&s->lock);
    return n;
}

int s3_server_connections(s3_server *s)
{
    pthread_mutex_lock(&s->lock);
    const int n = s->connections;
    pthread_mutex_unlock(&s->lock);
    return n;
}

int s3_server_objects(s3_server *s, const char *prefix)
{
    int n = 0;
    pthread_mutex_lock(&s->lock);
    for (const object *o = s->objects; o != NULL; o = o->next)
        n += strncmp(o->key, prefix, strlen(prefix)) == 0;
    pthread_mutex_unlock(&s->lock);
    return n;
}

int s3_server_words(s3_server *s, const char word[8])
{
    int n = 0;
    pthread_mutex_lock(&s->lock);
    for (const object *o = s->objects; o != NULL; o = o->next)
        for (size_t at = 0; at + 8 <= o->len; at += 8)
            n += memcmp(o->data + at, word, 8) == 0;
    pthread_mutex_unlock(&s->lock);
    return n;
}

void s3_server_keep(s3_server *s)
{
    pthread_mutex_lock(&s->lock);
    objects_copy(&s->kept, s->objects);
    pthread_mutex_unlock(&s->lock);
}

void s3_server_restore(s3_server *s)
{
    pthread_mutex_lock(&s->lock);
    objects_copy(&s->objects, s->kept);
    pthread_mutex_unlock(&s->lock);
}

void s3_server_put(s3_server *s, const char *key, const void *data, size_t len)
{
    pthread_mutex_lock(&s->lock);
    object_put(s, key, data, len);
    pthread_mutex_unlock(&s->lock);
}

const char *s3_server_object(s3_server *s, int n)
{
    pthread_mutex_lock(&s->lock);
    const object *o = s->objects;
    while (o != NULL && n-- > 0)
        o = o->next;
    pthread_mutex_unlock(&s->lock);
    return o != NULL ? o->key : "";
}

size_t s3_server_bytes(s3_server *s, int n)
{
    pthread_mutex_lock(&s->lock);
    const object *o = s->objects;
    while (o != NULL && n-- > 0)
        o = o->next;
    const size_t len = o != NULL ? o->len : 0;
    pthread_mutex_unlock(&s->lock);
    return len;
}

void s3_server_damage(s3_server *s, const char *key, long cut)
{
    pthread_mutex_lock(&s->lock);
    object *o = object_of(s, key);
    server_must(o != NULL, "finding an object");
    if (cut < 0)
        object_drop(s, key);
    else if (cut > 0)
        o->len = (size_t)cut;
    else
        o->data[o->len / 2] ^= 1;
    pthread_mutex_unlock(&s->lock);
}
