/*
 * The backend "s3": stored bytes in packs that are objects of a bucket (s3_http.h). Configuration:
 * see brc_s3_config; never credentials, for which the host is asked.
 *
 * put() collects records (pack_file.h) in memory; a pack that is full, or that flush() finds, is
 * sent as one object with a new random name. Objects never change. A place is
 * REPOSITORY/WRITER/PACK, the end of the object's key; before it comes the prefix of the
 * configuration.
 *
 * WRITER says which file's the pack is: a hash of the machine's name, of the file's path, inode and
 * time of birth, and of the configuration. A copy of the file, wherever it is, has another one. So
 * a file removes only packs that it has put itself, under the path that it still has and in this
 * backend, and nobody has to ask the server whose a pack is.
 *
 * Invariants: packs in `sealed` do not change any more, and stay there until they are sent;
 * everything in the state is used under `lock`, but the bytes of a pack with `is_busy` are read
 * without it.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <xxhash.h>

#include "backends.h"
#include "pack_file.h"
#include "s3_http.h"

#define HOUR_US ((int64_t)3600 * 1000000)

enum {
    SENT_AT_ONCE = 4,       /* packs in one call */
    SEALED_MOST = 2,        /* packs that wait before a put() helps to send them */
    PAGE_MOST = 4 << 20,    /* the longest page of a listing */
    LISTED_AT_ONCE = 1000
};

typedef struct s3_pack {
    struct s3_pack *next;
    uint64_t number; /* in the order in which packs were begun */
    int is_busy;     /* a thread is sending it */
    brc_buf bytes;
    char place[BRC_S3_PLACE_LEN + 1];
} s3_pack;

typedef struct s3_state {
    brc_s3_config config;
    const brc_backend_host *host;
    brc_s3_client *client;
    char folder[2 * BRC_S3_HEX + 3]; /* REPOSITORY/WRITER/                              */
    pthread_mutex_t lock;
    pthread_cond_t sent; /* a pack was sent, or could not be                           */
    s3_pack *out;        /* that is filled; NULL: none                                 */
    s3_pack *sealed;     /* that wait to be sent, or are being sent                    */
    uint64_t numbers;
    int is_readonly;
} s3_state;

/* ---- configuration, opening, closing -------------------------------- */

static int s3_check(void *ctx, const brc_json *config, brc_buf *full, brc_error *err)
{
    brc_s3_config c;
    (void)ctx;
    if (!brc_s3_is_built())
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "this breccia was built without libcurl: install it and build it again");
    BRC_BACKEND_TRY(brc_s3_config_read(&c, config, err));
    return brc_s3_config_write(&c, full, err);
}

/* Writes the name of this writer. */
static int name_writer(const brc_s3_config *config, const char *file, char out[BRC_S3_HEX + 1],
                       brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    struct utsname machine;
    struct statx at;
    char *path = realpath(file, NULL);
    memset(&at, 0, sizeof(at));
    if (uname(&machine) != 0)
        machine.nodename[0] = '\0';
    if (statx(AT_FDCWD, file, 0, STATX_INO | STATX_BTIME, &at) != 0 || !(at.stx_mask & STATX_BTIME))
        at.stx_btime.tv_sec = at.stx_btime.tv_nsec = 0;
    int rc = brc_buf_printf(&text, err, "%s\n%s\n%" PRIu64 "\n%" PRId64 ".%09" PRIu32 "\n",
                            machine.nodename, path != NULL ? path : file, (uint64_t)at.stx_ino,
                            (int64_t)at.stx_btime.tv_sec, (uint32_t)at.stx_btime.tv_nsec);
    if (rc == BRC_OK)
        rc = brc_s3_config_write(config, &text, err);
    if (rc == BRC_OK) {
        const XXH128_hash_t hash = XXH3_128bits(text.data, text.len);
        snprintf(out, BRC_S3_HEX + 1, "%016" PRIx64 "%016" PRIx64, (uint64_t)hash.high64,
                 (uint64_t)hash.low64);
    }
    free(path);
    brc_buf_dispose(&text);
    return rc;
}

static void s3_close(void *ctx, void *state)
{
    s3_state *s = state;
    (void)ctx;
    if (s->out != NULL) {
        s->out->next = s->sealed;
        s->sealed = s->out;
    }
    while (s->sealed != NULL) { /* never flushed, so no row names its objects */
        s3_pack *next = s->sealed->next;
        brc_buf_dispose(&s->sealed->bytes);
        free(s->sealed);
        s->sealed = next;
    }
    brc_s3_client_free(s->client);
    pthread_cond_destroy(&s->sent);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static int s3_start(s3_state *s, const brc_json *config, brc_error *err)
{
    char writer[BRC_S3_HEX + 1];
    BRC_BACKEND_TRY(brc_s3_config_read(&s->config, config, err));
    if (strlen(s->host->id) != BRC_S3_HEX || s->host->file[0] == '\0')
        return brc_fail(err, BRC_EUNSUPPORTED, "a repository without a file has no packs");
    BRC_BACKEND_TRY(name_writer(&s->config, s->host->file, writer, err));
    snprintf(s->folder, sizeof(s->folder), "%s/%s/", s->host->id, writer);
    return brc_s3_client_new(&s->client, &s->config, s->host, err);
}

/* Connects to nothing: the calls that fetch and put do. */
static int s3_open(void *ctx, void **state, const brc_json *config, const brc_backend_host *host,
                   brc_error *err)
{
    s3_state *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->sent, NULL);
    s->host = host;
    s->is_readonly = (host->flags & BRC_BACKEND_READONLY) != 0;
    const int rc = s3_start(s, config, err);
    if (rc < 0)
        s3_close(ctx, s);
    else
        *state = s;
    return rc;
}

/* ---- packs that are filled -------------------------------- */

static int draw_place(const s3_state *s, char place[BRC_S3_PLACE_LEN + 1], brc_error *err)
{
    uint8_t random[BRC_S3_HEX / 2];
    const size_t at = strlen(s->folder);
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return brc_fail(err, BRC_EIO, "there are no random numbers");
    memcpy(place, s->folder, at);
    for (size_t i = 0; i < sizeof(random); i++)
        snprintf(place + at + 2 * i, 3, "%02x", random[i]);
    return BRC_OK;
}

/* Called under `lock`, as all functions of packs are. */
static int out_begin(s3_state *s, brc_error *err)
{
    uint8_t head[BRC_PACK_HEAD];
    s3_pack *out = calloc(1, sizeof(*out));
    if (out == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    brc_pack_head(head, s->host->id, s->config.pack_bytes);
    int rc = draw_place(s, out->place, err);
    if (rc == BRC_OK)
        rc = brc_buf_append(&out->bytes, head, sizeof(head), err);
    if (rc < 0) {
        brc_buf_dispose(&out->bytes);
        free(out);
        return rc;
    }
    out->number = ++s->numbers;
    s->out = out;
    return BRC_OK;
}

static void out_seal(s3_state *s)
{
    s3_pack **end = &s->sealed;
    if (s->out == NULL)
        return;
    while (*end != NULL)
        end = &(*end)->next;
    *end = s->out;
    s->out->next = NULL;
    s->out = NULL;
}

/* Returns the pack of a place that is still here, or NULL. */
static s3_pack *pack_here(const s3_state *s, const char *place)
{
    if (s->out != NULL && strcmp(s->out->place, place) == 0)
        return s->out;
    for (s3_pack *p = s->sealed; p != NULL; p = p->next)
        if (strcmp(p->place, place) == 0)
            return p;
    return NULL;
}

/* Takes a pack off the list, and frees it. */
static void pack_forget(s3_state *s, s3_pack *pack)
{
    s3_pack **at = &s->sealed;
    while (*at != NULL && *at != pack)
        at = &(*at)->next;
    if (*at != NULL)
        *at = pack->next;
    if (s->out == pack)
        s->out = NULL;
    brc_buf_dispose(&pack->bytes);
    free(pack);
}

/* ---- sending -------------------------------- */

/* Takes up to SENT_AT_ONCE packs that nobody is sending, up to this number. */
static size_t packs_take(s3_state *s, uint64_t last, s3_pack *packs[SENT_AT_ONCE])
{
    size_t n = 0;
    for (s3_pack *p = s->sealed; p != NULL && n < SENT_AT_ONCE; p = p->next)
        if (!p->is_busy && p->number <= last) {
            p->is_busy = 1;
            packs[n++] = p;
        }
    return n;
}

/* Looks whether a pack of which the server says that it is there is there: the answer to an earlier
 * attempt was lost. */
static int pack_is_there(s3_state *s, const s3_pack *pack, const char *key, brc_error *err)
{
    const uint64_t len = pack->bytes.len < 64 ? pack->bytes.len : 64;
    brc_s3_request q = { .method = "GET", .key = key, .from = pack->bytes.len - len, .len = len,
                         .most = len };
    int rc = brc_s3_run(s->client, 1, &q, err);
    if (rc == BRC_OK)
        rc = brc_s3_failed(s->client, &q, err);
    if (rc == BRC_OK && memcmp(q.answer.data, pack->bytes.data + q.from, (size_t)len) != 0)
        rc = brc_fail(err, BRC_EIO, "s3://%s/%s is there already, with other bytes",
                      s->config.bucket, key);
    brc_buf_dispose(&q.answer);
    return rc;
}

/* Sends packs, without the lock. Sets sent[] to whether each is in the bucket. */
static int packs_send(s3_state *s, size_t n, s3_pack *const *packs, int sent[SENT_AT_ONCE],
                      brc_error *err)
{
    brc_s3_request requests[SENT_AT_ONCE];
    char keys[SENT_AT_ONCE][BRC_S3_KEY_SIZE];
    memset(requests, 0, sizeof(requests));
    for (size_t i = 0; i < n; i++) {
        brc_s3_key(keys[i], &s->config, packs[i]->place);
        requests[i].method = "PUT";
        requests[i].key = keys[i];
        requests[i].body = packs[i]->bytes.data;
        requests[i].body_len = packs[i]->bytes.len;
        requests[i].most = 65536;
        requests[i].is_new = 1;
    }
    int rc = brc_s3_run(s->client, n, requests, err);
    for (size_t i = 0; i < n; i++) {
        brc_error *first = rc == BRC_OK ? err : NULL;
        int one = rc;
        if (requests[i].is_done)
            one = brc_s3_failed(s->client, &requests[i], first);
        if (one == BRC_OK && requests[i].http == 412)
            one = pack_is_there(s, packs[i], keys[i], first);
        sent[i] = one == BRC_OK;
        rc = rc == BRC_OK ? one : rc;
        brc_buf_dispose(&requests[i].answer);
    }
    return rc;
}

/* Sends what packs_take() took. Called under `lock`, which it leaves meanwhile. */
static int packs_move(s3_state *s, size_t n, s3_pack *const *packs, brc_error *err)
{
    int sent[SENT_AT_ONCE];
    pthread_mutex_unlock(&s->lock);
    const int rc = packs_send(s, n, packs, sent, err);
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < n; i++) {
        packs[i]->is_busy = 0;
        if (sent[i])
            pack_forget(s, packs[i]);
    }
    pthread_cond_broadcast(&s->sent);
    return rc;
}

/* Returns whether a pack up to this number is not sent yet. */
static int is_waiting(const s3_state *s, uint64_t last)
{
    for (const s3_pack *p = s->sealed; p != NULL; p = p->next)
        if (p->number <= last)
            return 1;
    return 0;
}

static int s3_flush(void *ctx, void *state, brc_error *err)
{
    s3_state *s = state;
    s3_pack *packs[SENT_AT_ONCE];
    int rc = BRC_OK;
    (void)ctx;
    pthread_mutex_lock(&s->lock);
    out_seal(s);
    const uint64_t last = s->numbers;
    while (rc == BRC_OK && is_waiting(s, last)) {
        const size_t n = packs_take(s, last, packs);
        if (n > 0)
            rc = packs_move(s, n, packs, err);
        else /* others are sending the rest */
            pthread_cond_wait(&s->sent, &s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}

/* ---- putting -------------------------------- */

static int puts_room(size_t n, brc_stored *const *items, uint64_t *room, brc_error *err)
{
    *room = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t one = brc_pack_room(items[i]->len);
        if (one == 0 || *room > ((uint64_t)5 << 30) - one) /* the protocol's limit */
            return brc_fail(err, BRC_ELIMIT,
                            "chunks of together more than 5 GiB do not fit into an object");
        *room += one;
    }
    return BRC_OK;
}

/* A pack that is almost full may get longer than its configuration says, so that a batch of as many
 * bytes does not leave its last object in a pack alone. */
static uint64_t pack_most(const s3_state *s)
{
    return s->config.pack_bytes + s->config.pack_bytes / 8;
}

/* Appends the records of the objects to the pack, and tells where they are. */
static int out_append(s3_state *s, size_t n, brc_stored *const *items, uint64_t room,
                      brc_error *err)
{
    const char *leaves = n > 0 && items[0]->size > offsetof(brc_stored,
                                                            leaves) ? items[0]->leaves : NULL;
    if (s->out != NULL && s->out->bytes.len > BRC_PACK_HEAD &&
        (s->out->bytes.len + room > pack_most(s) ||
         (leaves != NULL && strcmp(leaves, s->out->place) == 0)))
        out_seal(s);
    if (s->out == NULL)
        BRC_BACKEND_TRY(out_begin(s, err));
    s3_pack *out = s->out;
    BRC_BACKEND_TRY(brc_buf_reserve(&out->bytes, (size_t)room, err));
    for (size_t i = 0; i < n; i++) {
        const uint64_t at = out->bytes.len;
        BRC_BACKEND_TRY(brc_stored_put_at(items[i], out->place, at + BRC_PACK_RECORD, err));
        brc_pack_record(out->bytes.data + at, items[i]);
        out->bytes.len += (size_t)brc_pack_room(items[i]->len);
    }
    if (out->bytes.len >= s->config.pack_bytes)
        out_seal(s);
    return BRC_OK;
}

/* Sends packs if too many wait: memory is bounded, and sending goes on while others encode. */
static int help_send(s3_state *s, brc_error *err)
{
    s3_pack *packs[SENT_AT_ONCE];
    size_t waiting = 0;
    for (const s3_pack *p = s->sealed; p != NULL; p = p->next)
        waiting += !p->is_busy;
    if (waiting < SEALED_MOST)
        return BRC_OK;
    return packs_move(s, packs_take(s, s->numbers, packs), packs, err);
}

/* The objects of a call that fails may lie in a pack that is sent later: they are garbage. */
static int s3_put(void *ctx, void *state, size_t n, brc_stored *const *items, brc_error *err)
{
    s3_state *s = state;
    uint64_t room;
    (void)ctx;
    if (s->is_readonly)
        return brc_fail(err, BRC_EMISUSE, "the repository is open for reading");
    BRC_BACKEND_TRY(puts_room(n, items, &room, err));
    pthread_mutex_lock(&s->lock);
    int rc = out_append(s, n, items, room, err);
    if (rc == BRC_OK)
        rc = help_send(s, err);
    pthread_mutex_unlock(&s->lock);
    return rc;
}

/* ---- fetching -------------------------------- */

/* Copies an object from a pack that is still here. Returns 0 if it is not here. */
static int fetch_here(s3_state *s, brc_stored *item)
{
    pthread_mutex_lock(&s->lock);
    const s3_pack *pack = pack_here(s, item->place);
    if (pack != NULL && item->offset <= pack->bytes.len &&
        item->len <= pack->bytes.len - item->offset) {
        if (item->len > 0)
            memcpy(item->into, pack->bytes.data + item->offset, (size_t)item->len);
        item->status = BRC_OK;
    } else if (pack != NULL) {
        item->status = BRC_ECORRUPT;
    }
    pthread_mutex_unlock(&s->lock);
    return pack != NULL;
}

/* Looks what has to be asked for, and answers the rest. Returns whether to ask. */
static int fetch_look(s3_state *s, brc_stored *item, brc_error *err)
{
    if (item->place == NULL) {
        item->status = brc_fail(err, BRC_ENOTFOUND, "an object lies in no pack");
        return 0;
    }
    if (!brc_s3_is_place(item->place, s->host->id) || item->len > INT64_MAX ||
        item->offset > INT64_MAX - item->len) {
        item->status = brc_fail(err, BRC_EINVAL,
                                "\"%.100s\" is not the name of a pack of this repository",
                                item->place);
        return 0;
    }
    if (fetch_here(s, item)) {
        if (item->status < 0)
            (void)brc_fail(err, item->status, "the pack %s ends before the object", item->place);
        return 0;
    }
    if (item->len == 0)
        item->status = BRC_OK;
    return item->len > 0;
}

static int by_offset(const void *a, const void *b)
{
    const brc_stored *x = *(brc_stored *const *)a, *y = *(brc_stored *const *)b;
    const int names = strcmp(x->place, y->place);
    return names != 0 ? names : x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Requests for objects, and what each is for. */
typedef struct s3_fetch {
    brc_s3_request *requests;
    char (*keys)[BRC_S3_KEY_SIZE];
    size_t *counts; /* objects of the request                                        */
    size_t n;
} s3_fetch;

static int fetch_new(s3_fetch *f, size_t n, brc_error *err)
{
    f->n = 0;
    f->requests = calloc(n, sizeof(*f->requests));
    f->keys = calloc(n, sizeof(*f->keys));
    f->counts = calloc(n, sizeof(*f->counts));
    return f->requests != NULL && f->keys != NULL && f->counts != NULL
               ? BRC_OK
               : brc_fail(err, BRC_ENOMEM, "out of memory");
}

static void fetch_free(s3_fetch *f)
{
    for (size_t i = 0; i < f->n; i++)
        brc_buf_dispose(&f->requests[i].answer);
    free(f->requests);
    free(f->keys);
    free(f->counts);
}

/* Plans the requests for n sorted objects; `joins` 0: one for each. */
static void fetch_plan(const s3_state *s, s3_fetch *f, size_t n, brc_stored *const *items,
                       int joins)
{
    for (size_t i = 0; i < n; f->n++) {
        brc_s3_request *q = &f->requests[f->n];
        uint64_t end = items[i]->offset + items[i]->len;
        f->counts[f->n] =
            joins ? brc_s3_join(n - i, items + i, s->host->gap, s->host->range, &end) : 1;
        brc_s3_key(f->keys[f->n], &s->config, items[i]->place);
        q->method = "GET";
        q->key = f->keys[f->n];
        q->from = items[i]->offset;
        q->len = q->most = end - q->from;
        i += f->counts[f->n];
    }
}

/* Gives the objects of a request their bytes, or the error. */
static int fetch_give(const s3_state *s, brc_s3_request *q, size_t n, brc_stored *const *items,
                      brc_error *err)
{
    const int rc = brc_s3_failed(s->client, q, err);
    for (size_t i = 0; i < n; i++) {
        items[i]->status = rc;
        if (rc == BRC_OK)
            memcpy(items[i]->into, q->answer.data + (items[i]->offset - q->from),
                   (size_t)items[i]->len);
    }
    return rc;
}

/* Fetches n sorted objects. Objects that cannot be read together, because one of them lies where
 * there is nothing, are asked for one by one. */
static int fetch_asked(s3_state *s, size_t n, brc_stored *const *items, int joins, brc_error *err)
{
    s3_fetch f;
    int result = fetch_new(&f, n, err);
    if (result == BRC_OK) {
        fetch_plan(s, &f, n, items, joins);
        result = brc_s3_run(s->client, f.n, f.requests, err);
    }
    if (result < 0)
        for (size_t i = 0; i < n; i++)
            items[i]->status = result;
    for (size_t i = 0, at = 0; i < f.n && result != BRC_ENOMEM && result != BRC_EINTERRUPT; i++) {
        brc_error *first = result == BRC_OK ? err : NULL;
        int rc = result;
        if (f.requests[i].is_done)
            rc = fetch_give(s, &f.requests[i], f.counts[i], items + at, first);
        if (rc == BRC_ECORRUPT && f.counts[i] > 1)
            rc = fetch_asked(s, f.counts[i], items + at, 0, first);
        at += f.counts[i];
        result = result == BRC_OK ? rc : result;
    }
    fetch_free(&f);
    return result;
}

static int s3_fetch_items(void *ctx, void *state, size_t n, brc_stored *const *items,
                          brc_error *err)
{
    brc_stored **asked = calloc(n, sizeof(brc_stored *));
    size_t nasked = 0;
    int result = BRC_OK, rc = BRC_OK;
    (void)ctx;
    if (asked == NULL && n > 0)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    for (size_t i = 0; i < n; i++) {
        if (fetch_look(state, items[i], result == BRC_OK ? err : NULL))
            asked[nasked++] = items[i];
        else if (result == BRC_OK)
            result = items[i]->status;
    }
    if (nasked > 0) {
        qsort(asked, nasked, sizeof(brc_stored *), by_offset);
        rc = fetch_asked(state, nasked, asked, 1, result == BRC_OK ? err : NULL);
    }
    free(asked);
    return result == BRC_OK ? rc : result;
}

/* ---- dropping -------------------------------- */

/* Looks whether this file may remove a pack. One that is still here is removed at once. */
static int drop_look(s3_state *s, brc_stored *item)
{
    int is_here;
    item->status = BRC_OK;
    if (item->place == NULL || !brc_s3_is_place(item->place, s->host->id) ||
        strncmp(item->place, s->folder, strlen(s->folder)) != 0)
        return 0; /* a copy's, or the original's, of which this is a copy: it stays */
    pthread_mutex_lock(&s->lock);
    s3_pack *pack = pack_here(s, item->place);
    is_here = pack != NULL;
    if (is_here && !pack->is_busy)
        pack_forget(s, pack);
    pthread_mutex_unlock(&s->lock);
    return !is_here;
}

static int s3_drop(void *ctx, void *state, size_t n, brc_stored *const *items, brc_error *err)
{
    s3_state *s = state;
    s3_fetch f;
    size_t at = 0;
    int result;
    (void)ctx;
    result = fetch_new(&f, n + 1, err);
    for (size_t i = 0; i < n && result == BRC_OK; i++) {
        if (!drop_look(s, items[i]))
            continue;
        items[i]->status = BRC_BACKEND_NOT_DONE;
        brc_s3_key(f.keys[f.n], &s->config, items[i]->place);
        f.requests[f.n].method = "DELETE";
        f.requests[f.n].key = f.keys[f.n];
        f.requests[f.n++].most = 65536;
    }
    if (result == BRC_OK)
        result = brc_s3_run(s->client, f.n, f.requests, err);
    for (size_t i = 0; i < n && at < f.n; i++) {
        if (items[i]->status != BRC_BACKEND_NOT_DONE)
            continue;
        const brc_s3_request *q = &f.requests[at++];
        items[i]->status = q->is_done ? brc_s3_failed(s->client, q, result == BRC_OK ? err : NULL)
                                      : result;
        result = result == BRC_OK ? items[i]->status : result;
    }
    fetch_free(&f);
    return result;
}

/* ---- listing -------------------------------- */

/* Writes the query for the next page; all its characters are those of names, but for "/". */
static void page_query(const s3_state *s, const char *last, char *out, size_t size)
{
    char prefix[BRC_S3_KEY_SIZE], escaped[2][2 * BRC_S3_KEY_SIZE];
    const char *names[2] = { s->folder, last };
    for (int i = 0; i < 2; i++) {
        size_t n = 0;
        brc_s3_key(prefix, &s->config, names[i]);
        for (const char *c = prefix; *c != '\0' && names[i][0] != '\0'; c++)
            n += (size_t)snprintf(escaped[i] + n, 4, *c == '/' ? "%%2F" : "%c", *c);
        escaped[i][n] = '\0';
    }
    snprintf(out, size, "list-type=2&max-keys=%d&prefix=%s%s%s", LISTED_AT_ONCE, escaped[0],
             escaped[1][0] ? "&start-after=" : "", escaped[1]);
}

static int list_page(s3_state *s, char last[BRC_S3_PLACE_LEN + 1], int *more,
                     int (*each)(void *to, const brc_kept *kept, brc_error *err), void *to,
                     brc_error *err)
{
    char query[5 * BRC_S3_KEY_SIZE], folder[BRC_S3_KEY_SIZE];
    brc_s3_request q = { .method = "GET", .key = "", .query = query, .most = PAGE_MOST };
    page_query(s, last, query, sizeof(query));
    brc_s3_key(folder, &s->config, s->folder);
    int rc = brc_s3_run(s->client, 1, &q, err);
    if (rc == BRC_OK)
        rc = brc_s3_failed(s->client, &q, err);
    if (rc == BRC_OK)
        rc = brc_s3_page((const char *)q.answer.data, q.answer.len, folder, s->host->id, each, to,
                         more, last, err);
    brc_buf_dispose(&q.answer);
    return rc;
}

/* Sends first what was put and not sent yet, because that is stored as well. */
static int s3_list(void *ctx, void *state,
                   int (*each)(void *to, const brc_kept *kept, brc_error *err), void *to,
                   brc_error *err)
{
    s3_state *s = state;
    char last[BRC_S3_PLACE_LEN + 1] = "";
    int more = 1, rc = s3_flush(ctx, state, err);
    while (rc == BRC_OK && more)
        rc = list_page(s, last, &more, each, to, err);
    return rc;
}

/* ---- what the server promises -------------------------------- */

typedef struct probe {
    s3_state *s;
    char place[BRC_S3_PLACE_LEN + 1], key[BRC_S3_KEY_SIZE];
    brc_promise_fn each;
    void *to;
} probe;

static const char probe_text[] = "breccia asks what this server promises";

static int probe_send(const probe *p, brc_s3_request *q, brc_error *err)
{
    q->key = p->key;
    q->most = 65536;
    return brc_s3_run(p->s->client, 1, q, err);
}

/* Reports a promise: that a request succeeds, and with these bytes if `want` is not NULL. */
static int probe_asks(const probe *p, const char *promise, brc_s3_request *q, const char *want,
                      brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    int rc = probe_send(p, q, err);
    if (rc == BRC_OK) {
        int holds = brc_s3_failed(p->s->client, q, &why) == BRC_OK;
        if (holds && want != NULL &&
            (q->answer.len != strlen(want) || memcmp(q->answer.data, want, strlen(want)) != 0)) {
            holds = 0;
            (void)brc_fail(&why, BRC_EIO, "other bytes came back");
        }
        rc = p->each(p->to, promise, holds, holds ? "" : why.message, err);
    }
    brc_buf_dispose(&q->answer);
    return rc;
}

/* Writes the object again, with other bytes, which must fail. */
static int probe_twice(const probe *p, brc_error *err)
{
    char seen[80] = "";
    brc_s3_request q = { .method = "PUT", .body = (const uint8_t *)"other", .body_len = 5,
                         .is_new = 1 };
    const int rc = probe_send(p, &q, err);
    brc_buf_dispose(&q.answer);
    if (rc < 0)
        return rc;
    const int holds = q.http == 412;
    if (!holds)
        snprintf(seen, sizeof(seen),
                 "it answered %ld; names are random, so packs are safe without it", q.http);
    return p->each(p->to, "refuses to write an object twice", holds, seen, err);
}

static int probe_seen(void *to, const brc_kept *kept, brc_error *err)
{
    probe *p = to;
    (void)err;
    if (strcmp(kept->name, p->place) == 0)
        p->place[0] = '\0';
    return BRC_OK;
}

/* Reports whether the list has the object, as it must or must not. */
static int probe_list(const probe *p, const char *promise, int is_there, brc_error *err)
{
    probe copy = *p;
    BRC_BACKEND_TRY(s3_list(NULL, p->s, probe_seen, &copy, err));
    const int holds = (copy.place[0] == '\0') == is_there;
    return p->each(p->to, promise, holds, holds ? "" : "the list is another", err);
}

static int probe_all(const probe *p, brc_error *err)
{
    brc_s3_request whole = { .method = "GET" }, part = { .method = "GET", .from = 8, .len = 4 };
    BRC_BACKEND_TRY(probe_asks(p, "reads what was written", &whole, probe_text, err));
    BRC_BACKEND_TRY(probe_asks(p, "reads ranges", &part, "asks", err));
    BRC_BACKEND_TRY(probe_twice(p, err));
    return probe_list(p, "lists what was just written", 1, err);
}

static int s3_prove(void *ctx, void *state, brc_promise_fn each, void *to, brc_error *err)
{
    probe p = { .s = state, .each = each, .to = to };
    brc_s3_request made = { .method = "PUT", .body = (const uint8_t *)probe_text,
                            .body_len = sizeof(probe_text) - 1, .is_new = 1 };
    brc_s3_request gone = { .method = "DELETE" };
    (void)ctx;
    BRC_BACKEND_TRY(draw_place(p.s, p.place, err));
    brc_s3_key(p.key, &p.s->config, p.place);
    int rc = probe_send(&p, &made, err);
    if (rc == BRC_OK)
        rc = brc_s3_failed(p.s->client, &made, err); /* without this there is nothing to try */
    brc_buf_dispose(&made.answer);
    if (rc < 0)
        return rc;
    rc = each(to, "stores an object", 1, "", err);
    if (rc == BRC_OK)
        rc = probe_all(&p, err);
    const int removed = probe_asks(&p, "removes an object", &gone, NULL, rc == BRC_OK ? err : NULL);
    if (rc == BRC_OK)
        rc = removed;
    return rc == BRC_OK ? probe_list(&p, "lists nothing that was removed", 0, err) : rc;
}

int brc_backend_s3_register(brc_registry *reg, brc_error *err)
{
    static const brc_backend s3 = {
        .size = sizeof(s3),
        .name = "s3",
        .flags = BRC_BACKEND_ON_WORKERS | BRC_BACKEND_PACKS | BRC_BACKEND_FAR,
        .check = s3_check,
        .open = s3_open,
        .close = s3_close,
        .fetch = s3_fetch_items,
        .put = s3_put,
        .flush = s3_flush,
        .drop = s3_drop,
        .list = s3_list,
        .hold_us = HOUR_US,
        .prove = s3_prove,
    };
    return brc_registry_add_backend(reg, &s3, err);
}
