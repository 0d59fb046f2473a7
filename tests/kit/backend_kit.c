/* See backend_kit.h. */
#include "backend_kit.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/base/json.h"
#include "../../src/store/store.h"

enum { OBJECTS = 40, THREADS = 4, GUARD = 16, MAX_ALLOCATIONS = 200 };

/* Objects with random content; the kit is both who puts and who knows. */
typedef struct kit_object {
    brc_stored item;
    uint8_t *bytes, *room; /* what it is; where it is fetched, with guards around       */
} kit_object;

typedef struct kit_run {
    const backend_kit *kit;
    const brc_backend *b;
    brc_json *config; /* in full; NULL: none                                            */
    brc_backend_host host;
    char file[4096];
    kit_object objects[OBJECTS], absent[2];
    void *states[2]; /* that are open: a test that fails leaves them                      */
    size_t nstates;
    brc_buf texts[3];
    uint64_t random;
    brc_error err;
    char *why;
    size_t why_size;
} kit_run;

#define KEEP(r, condition, ...)                             \
    do {                                                    \
        if (!(condition)) {                                 \
            snprintf((r)->why, (r)->why_size, __VA_ARGS__); \
            return 1;                                       \
        }                                                   \
    } while (0)
#define GOES(r, call, what)                                                        \
    KEEP(r, (call) == BRC_OK, "%s: %s (seed %llu)", what, (r)->err.message,         \
         (unsigned long long)(r)->kit->seed)
#define HOLDS(call)       \
    do {                  \
        if ((call) != 0)  \
            return 1;     \
    } while (0)

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* ---- objects -------------------------------- */

static int object_make(kit_run *r, kit_object *o, size_t len)
{
    free(o->bytes);
    free(o->room);
    brc_stored_clear(&o->item);
    memset(o, 0, sizeof(*o));
    o->bytes = malloc(len + 1);
    o->room = malloc(len + 2 * GUARD);
    KEEP(r, o->bytes != NULL && o->room != NULL, "the kit is out of memory");
    for (size_t i = 0; i < len; i++)
        o->bytes[i] = (uint8_t)next_random(&r->random);
    o->item.size = sizeof(o->item);
    for (size_t i = 0; i < 16; i++)
        o->item.id.bytes[i] = (uint8_t)next_random(&r->random);
    o->item.sum = next_random(&r->random);
    o->item.len = len;
    o->item.data = o->bytes;
    return 0;
}

static int objects_make(kit_run *r)
{
    static const size_t lens[] = { 0, 1, 2, 100, 4096, 70000, (size_t)3 << 20 };
    for (int i = 0; i < OBJECTS; i++)
        HOLDS(object_make(r, &r->objects[i], (size_t)i < sizeof(lens) / sizeof(lens[0])
                                                 ? lens[i]
                                                 : next_random(&r->random) % 20000));
    /* the same object in two encodings: names that differ in the sum alone */
    r->objects[11].item.id = r->objects[10].item.id;
    return 0;
}

/* Ready to be fetched: what is there, and around it, is known not to be the content. */
static brc_stored *object_ask(kit_object *o)
{
    memset(o->room, 0xa5, (size_t)o->item.len + 2 * GUARD);
    o->item.into = o->room + GUARD;
    o->item.status = BRC_BACKEND_NOT_DONE;
    return &o->item;
}

static int object_came(kit_run *r, const kit_object *o)
{
    const size_t len = (size_t)o->item.len;
    KEEP(r, o->item.status == BRC_OK, "fetch() succeeds, but leaves a status of %d",
         o->item.status);
    KEEP(r, len == 0 || memcmp(o->item.into, o->bytes, len) == 0,
         "an object of %zu bytes is not what was put", len);
    for (int i = 0; i < GUARD; i++)
        KEEP(r, o->room[i] == 0xa5 && o->room[GUARD + len + (size_t)i] == 0xa5,
             "fetch() writes outside of an object's %zu bytes", len);
    return 0;
}

/* ---- states -------------------------------- */

static int never_stopped(void *ctx)
{
    (void)ctx;
    return 0;
}

static int state_open(kit_run *r, uint32_t flags, void **state)
{
    r->host = (brc_backend_host){ .size = sizeof(r->host),
                                  .file = r->file,
                                  .flags = flags,
                                  .id = "00112233445566778899aabbccddeeff",
                                  .stopped = never_stopped,
                                  .credentials = r->kit->credentials };
    *state = NULL;
    GOES(r, r->b->open(r->b->ctx, state, r->config, &r->host, &r->err), "open()");
    r->states[r->nstates++] = *state;
    return 0;
}

/* The one that was opened last. */
static void state_close(kit_run *r)
{
    void *state = r->states[--r->nstates];
    if (r->b->close != NULL)
        r->b->close(r->b->ctx, state);
}

static int do_flush(kit_run *r, void *state, brc_error *err)
{
    return r->b->flush != NULL ? r->b->flush(r->b->ctx, state, err) : BRC_OK;
}

static int put_some(kit_run *r, void *state, size_t from, size_t n)
{
    brc_stored *items[OBJECTS];
    for (size_t i = 0; i < n; i++) {
        items[i] = &r->objects[from + i].item;
        brc_stored_clear(items[i]);
    }
    GOES(r, r->b->put(r->b->ctx, state, n, items, &r->err), "put()");
    return 0;
}

/* All from `from` on, last first, in calls of at most `most`. */
static int fetch_some(kit_run *r, void *state, size_t from, size_t most)
{
    brc_stored *items[OBJECTS];
    for (size_t at = OBJECTS; at > from;) {
        size_t n = 0, first;
        while (n < most && at > from)
            items[n++] = object_ask(&r->objects[--at]);
        GOES(r, r->b->fetch(r->b->ctx, state, n, items, &r->err), "fetch()");
        for (first = at; first < at + n; first++)
            HOLDS(object_came(r, &r->objects[first]));
    }
    return 0;
}

/* ---- the configuration -------------------------------- */

static int full_of(kit_run *r, const brc_json *config, brc_buf *out)
{
    GOES(r, r->b->check(r->b->ctx, config, out, &r->err), "check()");
    GOES(r, brc_buf_append(out, "", 1, &r->err), "the kit");
    out->len--;
    return 0;
}

static int test_config(kit_run *r)
{
    static const char odd[] = "{\"no such option of a backend\":1}";
    brc_buf *full = &r->texts[0], *again = &r->texts[1];
    brc_json *given = NULL, *wrong = NULL;
    if (r->kit->config != NULL)
        GOES(r, brc_json_parse(&given, r->kit->config, strlen(r->kit->config), 0, &r->err),
             "the configuration");
    int bad = full_of(r, given, full);
    brc_json_free(given);
    HOLDS(bad);
    if (full->len > 0) {
        GOES(r, brc_json_parse(&r->config, (const char *)full->data, full->len, 0, &r->err),
             "check() appends what is not JSON");
        KEEP(r, brc_json_kind(r->config) == BRC_JSON_OBJECT,
             "its full configuration is not an object");
    }
    HOLDS(full_of(r, r->config, again));
    KEEP(r,
         again->len == full->len &&
             (full->len == 0 || memcmp(again->data, full->data, full->len) == 0),
         "its full configuration has another full configuration");
    GOES(r, brc_json_parse(&wrong, odd, sizeof(odd) - 1, 0, &r->err), "the kit");
    int rc = r->b->check(r->b->ctx, wrong, &r->texts[2], &r->err);
    brc_json_free(wrong);
    KEEP(r, rc == BRC_EINVAL, "an option that it cannot know gives %d, not BRC_EINVAL", rc);
    KEEP(r, r->err.code == rc && r->err.message[0] != '\0', "check() fails without a sentence");
    return 0;
}

/* ---- one thread -------------------------------- */

static int test_round_trip(kit_run *r)
{
    void *state, *other;
    HOLDS(state_open(r, 0, &state));
    HOLDS(put_some(r, state, 0, 1));
    HOLDS(put_some(r, state, 1, OBJECTS - 1));
    HOLDS(fetch_some(r, state, 0, 1));
    GOES(r, do_flush(r, state, &r->err), "flush()");
    HOLDS(fetch_some(r, state, 0, OBJECTS));
    HOLDS(state_open(r, BRC_BACKEND_READONLY, &other)); /* beside the first */
    HOLDS(fetch_some(r, other, 0, 7));
    state_close(r);
    HOLDS(put_some(r, state, 0, OBJECTS)); /* once more */
    HOLDS(fetch_some(r, state, 0, OBJECTS));
    GOES(r, do_flush(r, state, &r->err), "flush()");
    state_close(r);
    HOLDS(state_open(r, BRC_BACKEND_READONLY, &state));
    HOLDS(fetch_some(r, state, 0, OBJECTS));
    state_close(r);
    return 0;
}

static int test_absent(kit_run *r)
{
    void *state;
    kit_object *absent = r->absent, *there = &r->objects[9];
    HOLDS(object_make(r, &absent[0], 50));
    HOLDS(object_make(r, &absent[1], 0));
    absent[1].item.id = there->item.id; /* only the sum is another */
    HOLDS(state_open(r, 0, &state));
    brc_stored *items[] = { object_ask(&absent[0]), object_ask(there), object_ask(&absent[1]) };
    r->err = (brc_error)BRC_ERROR_INIT;
    int rc = r->b->fetch(r->b->ctx, state, 3, items, &r->err);
    KEEP(r, rc == BRC_ENOTFOUND, "what was never put gives %d, not BRC_ENOTFOUND", rc);
    KEEP(r, r->err.code == rc && r->err.message[0] != '\0', "fetch() fails without a sentence");
    KEEP(r, absent[0].item.status == BRC_ENOTFOUND && absent[1].item.status == BRC_ENOTFOUND,
         "what was never put has the status %d", absent[0].item.status);
    HOLDS(object_came(r, there));
    rc = r->b->fetch(r->b->ctx, state, 1, items, NULL);
    KEEP(r, rc == BRC_ENOTFOUND, "without an error to write, fetch() gives %d", rc);
    if (there->item.place != NULL) { /* where it ends, only its row says */
        state_close(r);
        return 0;
    }
    there->item.len--; /* a row that lies */
    items[0] = object_ask(there);
    rc = r->b->fetch(r->b->ctx, state, 1, items, &r->err);
    there->item.len++;
    KEEP(r, rc < 0, "an object of %llu bytes can be fetched as one of a byte less",
         (unsigned long long)there->item.len);
    state_close(r);
    return 0;
}

static int has_places(const kit_run *r)
{
    for (int i = 0; i < OBJECTS; i++)
        if (r->objects[i].item.place != NULL)
            return 1;
    return 0;
}

/* A place goes as a whole: with all that lies there, and nothing else. */
static int test_drop_place(kit_run *r)
{
    void *state;
    int gone = 0;
    HOLDS(state_open(r, 0, &state));
    HOLDS(put_some(r, state, 3, 1));
    brc_stored place = { .size = sizeof(place) }, *one = &place;
    KEEP(r, r->objects[3].item.place != NULL, "put() gives some objects places, and others none");
    place.place = r->objects[3].item.place;
    for (int pass = 0; pass < 2; pass++) { /* the second time it is gone */
        place.status = BRC_BACKEND_NOT_DONE;
        GOES(r, r->b->drop(r->b->ctx, state, 1, &one, &r->err), "drop() of a place");
        KEEP(r, place.status == BRC_OK, "drop() leaves a status of %d", place.status);
    }
    for (int i = 0; i < OBJECTS; i++) {
        kit_object *o = &r->objects[i];
        one = object_ask(o);
        int rc = r->b->fetch(r->b->ctx, state, 1, &one, &r->err);
        if (o->item.place != NULL && strcmp(o->item.place, place.place) == 0) {
            KEEP(r, rc == BRC_ENOTFOUND, "what was dropped gives %d, not BRC_ENOTFOUND", rc);
            gone++;
            continue;
        }
        KEEP(r, rc == BRC_OK, "drop() of a place removes what lies in another");
        HOLDS(object_came(r, o));
    }
    KEEP(r, gone > 0, "a place that was dropped is still there");
    HOLDS(put_some(r, state, 0, OBJECTS));
    HOLDS(fetch_some(r, state, 0, OBJECTS));
    state_close(r);
    return 0;
}

static int test_drop(kit_run *r)
{
    void *state;
    brc_stored *items[3] = { &r->objects[0].item, &r->objects[5].item, &r->objects[10].item };
    if (r->b->drop == NULL)
        return 0;
    if (has_places(r))
        return test_drop_place(r);
    HOLDS(state_open(r, 0, &state));
    for (int pass = 0; pass < 2; pass++) { /* the second time they are gone */
        GOES(r, r->b->drop(r->b->ctx, state, 3, items, &r->err), "drop()");
        for (int i = 0; i < 3; i++)
            KEEP(r, items[i]->status == BRC_OK, "drop() leaves a status of %d", items[i]->status);
    }
    for (int i = 0; i < 3; i++)
        items[i] = object_ask((kit_object *)(void *)items[i]);
    int rc = r->b->fetch(r->b->ctx, state, 3, items, &r->err);
    KEEP(r, rc == BRC_ENOTFOUND, "what was dropped gives %d, not BRC_ENOTFOUND", rc);
    HOLDS(fetch_some(r, state, 11, OBJECTS));
    for (int i = 0; i < 3; i++)
        HOLDS(put_some(r, state, (size_t)i * 5, 1));
    HOLDS(fetch_some(r, state, 0, OBJECTS));
    state_close(r);
    return 0;
}

/* ---- what is there -------------------------------- */

typedef struct kit_list {
    kit_run *r;
    void *state;
    int seen[OBJECTS], n;
} kit_list;

/* Removed as it is told of, as a collection of garbage does it. */
static int list_each(void *to, const brc_kept *kept, brc_error *err)
{
    kit_list *list = to;
    brc_stored item = { .size = sizeof(item), .status = BRC_BACKEND_NOT_DONE }, *one = &item;
    const int is_place = (kept->flags & BRC_KEPT_PLACE) != 0;
    list->n++;
    if (!is_place && !brc_stored_parse_name(&item, kept->name))
        return brc_fail(err, BRC_EINTERNAL, "list() gives \"%.80s\"", kept->name);
    if (is_place)
        item.place = kept->name;
    for (int i = 0; i < OBJECTS; i++) {
        const brc_stored *there = &list->r->objects[i].item;
        list->seen[i] |= is_place ? there->place != NULL && strcmp(there->place, kept->name) == 0
                                  : there->place == NULL && there->sum == item.sum &&
                                        brc_oid_cmp(&there->id, &item.id) == 0;
    }
    return list->r->b->drop != NULL ? list->r->b->drop(list->r->b->ctx, list->state, 1, &one, err)
                                    : BRC_OK;
}

static int list_stops(void *to, const brc_kept *kept, brc_error *err)
{
    (void)kept;
    ++*(int *)to;
    return brc_fail(err, BRC_EINTERRUPT, "stopped");
}

static int test_list(kit_run *r)
{
    kit_list list = { .r = r };
    int calls = 0;
    if (r->b->list == NULL)
        return 0;
    HOLDS(state_open(r, 0, &list.state));
    HOLDS(put_some(r, list.state, 0, OBJECTS));
    int rc = r->b->list(r->b->ctx, list.state, list_stops, &calls, &r->err);
    KEEP(r, rc == BRC_EINTERRUPT && calls == 1, "list() goes on where it is told to stop");
    GOES(r, r->b->list(r->b->ctx, list.state, list_each, &list, &r->err), "list()");
    for (int i = 0; i < OBJECTS; i++)
        KEEP(r, list.seen[i], "list() leaves out what is there");
    list.n = 0;
    GOES(r, r->b->list(r->b->ctx, list.state, list_each, &list, &r->err), "list()");
    KEEP(r, r->b->drop == NULL || list.n == 0, "list() gives %d that were dropped", list.n);
    state_close(r);
    return 0;
}

/* ---- many threads -------------------------------- */

typedef struct kit_thread {
    kit_run *run;
    void *state;
    pthread_t thread;
    char why[300];
    int bad;
} kit_thread;

static int thread_work(kit_run *mine, void *state)
{
    for (int i = 0; i < 3; i++) {
        HOLDS(objects_make(mine));
        HOLDS(put_some(mine, state, 0, OBJECTS));
        GOES(mine, do_flush(mine, state, &mine->err), "flush()");
        HOLDS(fetch_some(mine, state, 0, 9));
    }
    return 0;
}

static void objects_free(kit_run *r)
{
    for (int i = 0; i < OBJECTS + 2; i++) {
        kit_object *o = i < 2 ? &r->absent[i] : &r->objects[i - 2];
        free(o->bytes);
        free(o->room);
        brc_stored_clear(&o->item);
    }
}

static void *thread_main(void *arg)
{
    kit_thread *t = arg;
    kit_run *mine = calloc(1, sizeof(*mine));
    if (mine == NULL)
        return NULL;
    mine->kit = t->run->kit;
    mine->b = t->run->b;
    mine->random = t->run->kit->seed + (uint64_t)(uintptr_t)t; /* objects of its own */
    mine->why = t->why;
    mine->why_size = sizeof(t->why);
    t->bad = thread_work(mine, t->state);
    objects_free(mine);
    free(mine);
    return NULL;
}

static int test_threads(kit_run *r)
{
    void *state;
    kit_thread threads[THREADS];
    if (!(r->b->flags & BRC_BACKEND_ON_WORKERS))
        return 0;
    HOLDS(state_open(r, 0, &state));
    for (int i = 0; i < THREADS; i++) {
        threads[i] = (kit_thread){ .run = r, .state = state, .bad = 1 };
        snprintf(threads[i].why, sizeof(threads[i].why), "the thread had no memory");
        KEEP(r, pthread_create(&threads[i].thread, NULL, thread_main, &threads[i]) == 0,
             "there is no thread");
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i].thread, NULL);
    for (int i = 0; i < THREADS; i++)
        KEEP(r, !threads[i].bad, "with %d threads at once: %s", THREADS, threads[i].why);
    state_close(r);
    return 0;
}

/* ---- a crash, and no memory -------------------------------- */

/* Where things lie, as a row would say: from the process that put them, through a pipe. */
typedef struct kit_row {
    char place[200]; /* empty: none */
    uint64_t offset;
} kit_row;

static int rows_tell(const kit_run *r, int fd)
{
    for (int i = 0; i < OBJECTS; i++) {
        const brc_stored *item = &r->objects[i].item;
        kit_row row = { .offset = item->offset };
        snprintf(row.place, sizeof(row.place), "%s", item->place != NULL ? item->place : "");
        if (write(fd, &row, sizeof(row)) != (ssize_t)sizeof(row))
            return 1;
    }
    return 0;
}

static int rows_hear(kit_run *r, int fd)
{
    for (int i = 0; i < OBJECTS; i++) {
        brc_stored *item = &r->objects[i].item;
        kit_row row;
        brc_stored_clear(item);
        KEEP(r, read(fd, &row, sizeof(row)) == (ssize_t)sizeof(row),
             "put() or flush() fails in a process of its own");
        if (row.place[0] != '\0')
            GOES(r, brc_stored_put_at(item, row.place, row.offset, &r->err), "the kit");
    }
    return 0;
}

static int test_killed(kit_run *r)
{
    void *state;
    int status, ends[2];
    HOLDS(objects_make(r));
    KEEP(r, pipe(ends) == 0, "there is no pipe");
    pid_t child = fork();
    KEEP(r, child >= 0, "there is no process");
    if (child == 0) {
        if (state_open(r, 0, &state) != 0 || put_some(r, state, 0, OBJECTS) != 0 ||
            do_flush(r, state, NULL) != BRC_OK || rows_tell(r, ends[1]) != 0)
            _exit(1);
        raise(SIGKILL);
    }
    close(ends[1]);
    int bad = rows_hear(r, ends[0]);
    close(ends[0]);
    waitpid(child, &status, 0);
    HOLDS(bad);
    KEEP(r, WIFSIGNALED(status), "put() or flush() fails in a process of its own");
    HOLDS(state_open(r, 0, &state));
    HOLDS(fetch_some(r, state, 0, OBJECTS));
    state_close(r);
    return 0;
}

/* Everything that a repository does with it, in one go; the first failure ends it. */
static int one_life(kit_run *r)
{
    void *state = NULL;
    brc_buf full = BRC_BUF_INIT;
    brc_stored *items[] = { &r->objects[8].item, &r->objects[9].item };
    int rc = r->b->check(r->b->ctx, r->config, &full, &r->err);
    brc_buf_dispose(&full);
    if (rc == BRC_OK)
        rc = r->b->open(r->b->ctx, &state, r->config, &r->host, &r->err);
    if (rc < 0)
        return rc;
    brc_stored_clear(items[0]);
    brc_stored_clear(items[1]);
    rc = r->b->put(r->b->ctx, state, 2, items, &r->err);
    if (rc == BRC_OK)
        rc = do_flush(r, state, &r->err);
    object_ask(&r->objects[8]);
    object_ask(&r->objects[9]);
    if (rc == BRC_OK)
        rc = r->b->fetch(r->b->ctx, state, 2, items, &r->err);
    if (r->b->close != NULL)
        r->b->close(r->b->ctx, state);
    return rc;
}

static int test_no_memory(kit_run *r)
{
    for (long n = 0; r->kit->fail_after != NULL && n < MAX_ALLOCATIONS; n++) {
        r->kit->fail_after(n);
        int rc = one_life(r);
        int failed = r->kit->fail_after(-1);
        if (!failed) {
            KEEP(r, rc == BRC_OK, "%s", r->err.message);
            return 0;
        }
        KEEP(r, rc == BRC_OK || rc == BRC_ENOMEM,
             "without memory (allocation %ld) it gives %d: %s", n, rc, r->err.message);
    }
    return 0;
}

/* ---- what is one file's alone -------------------------------- */

/* Drops what list() says to be this file's own. */
static int own_each(void *to, const brc_kept *kept, brc_error *err)
{
    kit_list *list = to;
    brc_stored item = { .size = sizeof(item),
                        .status = BRC_BACKEND_NOT_DONE,
                        .flags = BRC_STORED_OWN },
               *one = &item;
    (void)err;
    if (!(kept->flags & BRC_KEPT_OWN))
        return BRC_OK;
    if (kept->flags & BRC_KEPT_PLACE)
        item.place = kept->name;
    else if (!brc_stored_parse_name(&item, kept->name))
        return BRC_OK;
    list->n++;
    return list->r->b->drop(list->r->b->ctx, list->state, 1, &one, err);
}

/* Another repository's file in the same folder puts the same, and keeps it. */
static int test_own(kit_run *r)
{
    kit_list list = { .r = r };
    void *theirs;
    const size_t len = strlen(r->file);
    if (r->b->list == NULL || r->b->drop == NULL)
        return 0;
    HOLDS(state_open(r, 0, &list.state));
    HOLDS(put_some(r, list.state, 0, OBJECTS));
    r->file[len] = '2'; /* there is room for it */
    r->file[len + 1] = '\0';
    HOLDS(state_open(r, 0, &theirs));
    HOLDS(put_some(r, theirs, 0, OBJECTS));
    GOES(r, do_flush(r, theirs, &r->err), "flush()");
    r->file[len] = '\0';
    GOES(r, r->b->list(r->b->ctx, list.state, own_each, &list, &r->err), "list()");
    for (int i = 0; i < OBJECTS; i++) {
        brc_stored *one = object_ask(&r->objects[i]);
        KEEP(r, r->b->fetch(r->b->ctx, theirs, 1, &one, &r->err) == BRC_OK,
             "list() calls its own what another repository has put there too");
    }
    state_close(r);
    state_close(r);
    return 0;
}

/* ---- all of it -------------------------------- */

static int test_written(kit_run *r)
{
    HOLDS(objects_make(r));
    HOLDS(test_round_trip(r));
    HOLDS(test_absent(r));
    HOLDS(test_drop(r));
    HOLDS(test_threads(r));
    HOLDS(test_killed(r));
    HOLDS(test_no_memory(r));
    HOLDS(test_list(r));
    return test_own(r);
}

int backend_kit_run(const backend_kit *kit, char *why, size_t why_size)
{
    kit_run *r = calloc(1, sizeof(*r));
    if (r == NULL)
        return 1;
    r->kit = kit;
    r->b = kit->backend;
    r->random = kit->seed;
    r->why = why;
    r->why_size = why_size;
    snprintf(r->file, sizeof(r->file) - 1, "%s/kit.brc", kit->folder);
    int bad = test_config(r);
    if (!bad && r->b->put != NULL)
        bad = test_written(r);
    while (r->nstates > 0)
        state_close(r);
    brc_json_free(r->config);
    for (int i = 0; i < 3; i++)
        brc_buf_dispose(&r->texts[i]);
    objects_free(r);
    free(r);
    return bad;
}
