/*
 * api_log.c - see api_log.h. Commits come out of a heap, the newest first; a parent never comes
 * before the child that led to it,
 * even if its clock was ahead.
 */
#include "api_log.h"

#include <stdlib.h>
#include <string.h>

#include "../breccia_codec.h"

enum {
    ROWS_MOST = 500,
    REFS_KEPT = 2000,
    FROM_MOST = 4096,     /* commits that a continued list begins with         */
    MESSAGE_MOST = 4096,  /* bytes of a message in a list                      */
    TOUCHED_MOST = 20,    /* paths that are named of a commit                  */
    TOUCHED_SUMMED = 1000, /* nodes whose bytes are added up                   */
    TOUCHED_IDS = 100     /* commits that are asked about at once              */
};

/* ---- what was seen, and what comes next -------------------------------- */

struct waiting {
    brc_commit *commit;
    int64_t key; /* its time, but less than that of the child that led to it   */
};

struct walk {
    serve_call *call;
    struct waiting *heap;
    size_t n, cap;
    brc_oid *seen; /* a hash table; zero: free                                 */
    size_t nseen, seen_cap;
    brc_oid lanes[SERVE_LANES_MOST];
    int nlanes;
};

static int oid_equal(const brc_oid *a, const brc_oid *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

static int walk_grow(void **array, size_t *cap, size_t need, size_t item, brc_error *err)
{
    size_t more = *cap ? 2 * *cap : 64;
    void *grown;

    if (need <= *cap)
        return BRC_OK;
    more = more < need ? need : more;
    grown = more > SIZE_MAX / item ? NULL : realloc(*array, more * item);
    if (!grown)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    *array = grown;
    *cap = more;
    return BRC_OK;
}

/* Returns the slot of the id in the table, or the free one where it belongs. */
static size_t seen_slot(const brc_oid *table, size_t cap, const brc_oid *id)
{
    static const brc_oid zero;
    uint64_t hash;

    memcpy(&hash, id->bytes, sizeof(hash));
    size_t at = (size_t)(hash % cap);
    while (!oid_equal(&table[at], &zero) && !oid_equal(&table[at], id))
        at = at + 1 < cap ? at + 1 : 0;
    return at;
}

static int seen_grow(struct walk *walk)
{
    static const brc_oid zero;
    size_t cap = walk->seen_cap ? 2 * walk->seen_cap : 1024;
    brc_oid *table = calloc(cap, sizeof(*table));

    if (!table)
        return brc_fail(walk->call->err, BRC_ENOMEM, "out of memory");
    for (size_t i = 0; i < walk->seen_cap; i++)
        if (!oid_equal(&walk->seen[i], &zero))
            table[seen_slot(table, cap, &walk->seen[i])] = walk->seen[i];
    free(walk->seen);
    walk->seen = table;
    walk->seen_cap = cap;
    return BRC_OK;
}

/* Returns 1 if the id is new, 0 if it was seen before, or an error. */
static int walk_see(struct walk *walk, const brc_oid *id)
{
    static const brc_oid zero;
    size_t at;

    if (2 * walk->nseen >= walk->seen_cap)
        SERVE_TRY(seen_grow(walk));
    at = seen_slot(walk->seen, walk->seen_cap, id);
    if (!oid_equal(&walk->seen[at], &zero))
        return 0;
    walk->seen[at] = *id;
    walk->nseen++;
    return 1;
}

static int is_later(const struct waiting *a, const struct waiting *b)
{
    return a->key != b->key ? a->key > b->key
                            : memcmp(&a->commit->id, &b->commit->id, sizeof(brc_oid)) > 0;
}

static void heap_swap(struct walk *walk, size_t a, size_t b)
{
    struct waiting kept = walk->heap[a];

    walk->heap[a] = walk->heap[b];
    walk->heap[b] = kept;
}

/* Adds a commit once. One that the file does not have, or not whole, is left out: the rest still
 * shows. */
static int walk_push(struct walk *walk, const brc_oid *id, int64_t before)
{
    brc_error own = BRC_ERROR_INIT;
    brc_commit *commit;
    void *heap = walk->heap;
    int is_new = walk_see(walk, id), rc;

    if (is_new <= 0)
        return is_new;
    rc = brc_commit_read(&commit, walk->call->repo, id, &own);
    if (rc == BRC_ENOTFOUND || rc == BRC_ECORRUPT)
        return BRC_OK;
    if (rc < 0)
        return brc_fail(walk->call->err, rc, "%s", own.message);
    rc = walk_grow(&heap, &walk->cap, walk->n + 1, sizeof(*walk->heap), walk->call->err);
    walk->heap = heap;
    if (rc < 0) {
        brc_commit_free(commit);
        return rc;
    }
    walk->heap[walk->n++] =
        (struct waiting){ commit, commit->time_us < before ? commit->time_us : before };
    for (size_t at = walk->n - 1; at > 0 && is_later(&walk->heap[at], &walk->heap[(at - 1) / 2]);
         at = (at - 1) / 2)
        heap_swap(walk, at, (at - 1) / 2);
    return BRC_OK;
}

static struct waiting take_newest(struct walk *walk)
{
    struct waiting first = walk->heap[0];

    walk->heap[0] = walk->heap[--walk->n];
    for (size_t at = 0, child; (child = 2 * at + 1) < walk->n; at = child) {
        if (child + 1 < walk->n && is_later(&walk->heap[child + 1], &walk->heap[child]))
            child++;
        if (!is_later(&walk->heap[child], &walk->heap[at]))
            break;
        heap_swap(walk, at, child);
    }
    return first;
}

static void walk_free(struct walk *walk)
{
    for (size_t i = 0; i < walk->n; i++)
        brc_commit_free(walk->heap[i].commit);
    free(walk->heap);
    free(walk->seen);
}

/* ---- lanes -------------------------------- */

static int lane_find(const brc_oid *lanes, int n, const brc_oid *id)
{
    int i = 0;

    while (i < n && !oid_equal(&lanes[i], id))
        i++;
    return i < n ? i : -1;
}

/* Puts the parents into the lanes in place of their child. */
static void lanes_replace(struct walk *walk, const brc_commit *commit, int at)
{
    int is_free = 1;

    for (size_t i = 0; i < commit->nparents; i++) {
        if (lane_find(walk->lanes, walk->nlanes, &commit->parents[i]) >= 0)
            continue;
        if (is_free)
            walk->lanes[at] = commit->parents[i];
        else if (walk->nlanes < SERVE_LANES_MOST)
            walk->lanes[walk->nlanes++] = commit->parents[i];
        is_free = 0;
    }
    if (!is_free)
        return;
    walk->nlanes--;
    memmove(&walk->lanes[at], &walk->lanes[at + 1],
            (size_t)(walk->nlanes - at) * sizeof(walk->lanes[0]));
}

static void row_add_edge(serve_row *row, int from, int to)
{
    if (to >= -1 && from >= -1)
        row->edges[row->nedges++] = (serve_edge){ from, to };
}

/* Draws the commit of the row into the lanes. */
static int row_draw(struct walk *walk, serve_row *row)
{
    const brc_commit *commit = row->commit;
    brc_oid before[SERVE_LANES_MOST];
    const int n = walk->nlanes, waited = lane_find(walk->lanes, n, &commit->id);
    int at = waited;

    row->edges = calloc((size_t)n + 1 + commit->nparents, sizeof(*row->edges));
    if (!row->edges)
        return brc_fail(walk->call->err, BRC_ENOMEM, "out of memory");
    memcpy(before, walk->lanes, (size_t)n * sizeof(before[0]));
    if (at < 0 && n == SERVE_LANES_MOST) {
        row->lane = n; /* beside all lanes, without lines */
        row->nlanes = n + 1;
        return BRC_OK;
    }
    if (at < 0) {
        at = walk->nlanes++;
        walk->lanes[at] = commit->id;
    }
    row->lane = at;
    row->nlanes = walk->nlanes;
    lanes_replace(walk, commit, at);
    if (walk->nlanes > row->nlanes)
        row->nlanes = walk->nlanes;
    for (int i = 0; i < n; i++) {
        int to = i == waited ? -1 : lane_find(walk->lanes, walk->nlanes, &before[i]);

        if (i == waited || to >= 0)
            row_add_edge(row, i, to);
    }
    for (size_t i = 0; i < commit->nparents; i++) {
        int to = lane_find(walk->lanes, walk->nlanes, &commit->parents[i]);

        if (to >= 0)
            row_add_edge(row, -1, to);
    }
    return BRC_OK;
}

/* ---- where a list begins -------------------------------- */

static int read_rows_refs(serve_rows *out, serve_call *call)
{
    const brc_ref *ref;
    size_t cap = 0;
    int rc;

    SERVE_TRY(brc_refs(&call->iter, call->repo, call->err));
    while ((rc = brc_next(call->iter, &ref, call->err)) == 1 && out->nrefs < REFS_KEPT) {
        void *refs = out->refs;

        if (ref->flags & BRC_REF_UNBORN)
            continue;
        SERVE_TRY(walk_grow(&refs, &cap, out->nrefs + 1, sizeof(*out->refs), call->err));
        out->refs = refs;
        out->refs[out->nrefs] = (serve_ref){ strdup(ref->name), ref->id, ref->flags };
        if (!out->refs[out->nrefs++].name)
            return brc_fail(call->err, BRC_ENOMEM, "out of memory");
    }
    serve_drop_iter(call);
    return rc < 0 ? rc : BRC_OK;
}

static int hex_value(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads the digits of an id up to the next separator or the end. */
static int read_hex_id(brc_oid *out, const char **at)
{
    size_t n = 0;

    memset(out, 0, sizeof(*out));
    for (; n < 2 * sizeof(out->bytes) && hex_value(**at) >= 0; ++*at, n++)
        out->bytes[n / 2] =
            (uint8_t)(out->bytes[n / 2] | hex_value(**at) << (n % 2 ? 0 : 4));
    if (n < 8 || n % 2 || (**at && **at != '.'))
        return 0;
    *at += **at == '.';
    return 1;
}

/* Continues a list: ids in lanes, and with a "~" those that no lane leads to yet. Such a text goes
 * into a URL as it is. */
static int walk_continue(struct walk *walk, const char *from)
{
    size_t n = 0;

    while (*from) {
        const int is_tip = *from == '~';
        brc_oid id;

        from += is_tip;
        if (n++ == FROM_MOST || !read_hex_id(&id, &from))
            return brc_fail(walk->call->err, BRC_EINVAL,
                            "from is not what a list of commits ended with");
        if (!is_tip && walk->nlanes < SERVE_LANES_MOST)
            walk->lanes[walk->nlanes++] = id;
        SERVE_TRY(walk_push(walk, &id, INT64_MAX));
    }
    return BRC_OK;
}

static int walk_begin(struct walk *walk, const serve_rows *rows)
{
    serve_call *call = walk->call;
    const char *from = serve_param(call, "from"), *branch = serve_param(call, "branch");
    brc_oid id;

    if (from)
        return walk_continue(walk, from);
    if (branch) {
        SERVE_TRY(brc_resolve(&id, call->repo, branch, call->err));
        return walk_push(walk, &id, INT64_MAX);
    }
    for (size_t i = 0; i < rows->nrefs; i++)
        SERVE_TRY(walk_push(walk, &rows->refs[i].id, INT64_MAX));
    return BRC_OK;
}

/* Writes what walk_continue() reads. */
static int walk_rest(struct walk *walk, char **out)
{
    brc_buf text = BRC_BUF_INIT;
    char digits[65];
    int rc = BRC_OK;

    for (int i = 0; i < walk->nlanes && rc >= 0; i++)
        rc = brc_buf_printf(&text, walk->call->err, "%s%s", text.len ? "." : "",
                            brc_oid_format(digits, &walk->lanes[i]));
    for (size_t i = 0; i < walk->n && rc >= 0 && i < FROM_MOST - SERVE_LANES_MOST; i++)
        if (lane_find(walk->lanes, walk->nlanes, &walk->heap[i].commit->id) < 0)
            rc = brc_buf_printf(&text, walk->call->err, "%s~%s", text.len ? "." : "",
                                brc_oid_format(digits, &walk->heap[i].commit->id));
    *out = rc >= 0 && walk->n > 0 && text.len > 0 ? strdup((const char *)text.data) : NULL;
    brc_buf_dispose(&text);
    return rc;
}

/* ---- rows -------------------------------- */

static int commit_matches(const brc_commit *commit, const serve_rows *rows, const char *filter)
{
    char id[65];

    if (!filter || strcasestr(commit->message, filter) || strcasestr(commit->author, filter) ||
        strncmp(brc_oid_format(id, &commit->id), filter, strlen(filter)) == 0)
        return 1;
    for (size_t i = 0; i < rows->nrefs; i++)
        if (oid_equal(&rows->refs[i].id, &commit->id) && strcasestr(rows->refs[i].name, filter))
            return 1;
    return 0;
}

static int walk_next(struct walk *walk, serve_rows *out, const char *filter)
{
    struct waiting next = take_newest(walk);
    serve_row row = { .commit = next.commit };
    int rc = row_draw(walk, &row);

    for (size_t i = 0; i < row.commit->nparents && rc >= 0; i++)
        rc = walk_push(walk, &row.commit->parents[i], next.key - 1);
    if (rc >= 0 && commit_matches(row.commit, out, filter)) {
        out->rows[out->n++] = row;
        return BRC_OK;
    }
    brc_commit_free(row.commit);
    free(row.edges);
    return rc;
}

int serve_rows_read(serve_rows *out, serve_call *call, uint64_t n)
{
    const char *filter = serve_param(call, "filter");
    struct walk walk = { .call = call };
    int rc;

    memset(out, 0, sizeof(*out));
    out->rows = calloc((size_t)n, sizeof(*out->rows));
    rc = out->rows ? read_rows_refs(out, call)
                   : brc_fail(call->err, BRC_ENOMEM, "out of memory");
    if (rc >= 0)
        rc = walk_begin(&walk, out);
    while (rc >= 0 && walk.n > 0 && out->n < n && serve_elapsed_ms(call) < SERVE_BUSY_MS)
        rc = walk_next(&walk, out, filter);
    if (rc >= 0)
        rc = walk_rest(&walk, &out->next);
    walk_free(&walk);
    return rc;
}

void serve_rows_free(serve_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++) {
        brc_commit_free(rows->rows[i].commit);
        free(rows->rows[i].edges);
    }
    for (size_t i = 0; i < rows->nrefs; i++)
        free(rows->refs[i].name);
    free(rows->rows);
    free(rows->refs);
    free(rows->next);
    memset(rows, 0, sizeof(*rows));
}

/* ---- as JSON -------------------------------- */

/* Writes the message, or its beginning. */
static void put_message_start(serve_json *json, const char *message)
{
    size_t len = strlen(message);
    char text[MESSAGE_MOST + 1];

    serve_json_bool(json, "cut", len > MESSAGE_MOST);
    if (len > MESSAGE_MOST) {
        len = MESSAGE_MOST;
        while (len > 0 && ((unsigned char)message[len] & 0xc0) == 0x80)
            len--;
    }
    memcpy(text, message, len);
    text[len] = '\0';
    serve_json_text(json, "message", text);
}

static void put_row_refs(serve_json *json, const serve_rows *rows, const brc_oid *id)
{
    serve_json_open(json, "refs", '[');
    for (size_t i = 0; i < rows->nrefs; i++) {
        if (!oid_equal(&rows->refs[i].id, id))
            continue;
        serve_json_open(json, NULL, '{');
        serve_json_text(json, "name", rows->refs[i].name);
        serve_json_bool(json, "tag", (rows->refs[i].flags & BRC_REF_TAG) != 0);
        serve_json_bool(json, "current", (rows->refs[i].flags & BRC_REF_CURRENT) != 0);
        serve_json_close(json, '}');
    }
    serve_json_close(json, ']');
}

static void put_row(serve_json *json, const serve_rows *rows, const serve_row *row)
{
    const brc_commit *commit = row->commit;

    serve_json_open(json, NULL, '{');
    serve_json_id(json, "id", &commit->id);
    serve_json_open(json, "parents", '[');
    for (size_t i = 0; i < commit->nparents; i++)
        serve_json_id(json, NULL, &commit->parents[i]);
    serve_json_close(json, ']');
    serve_json_text(json, "author", commit->author);
    serve_json_int(json, "time", commit->time_us);
    put_message_start(json, commit->message);
    if (commit->flags & BRC_PAST_EXPIRED)
        serve_json_bool(json, "past_expired", 1);
    put_row_refs(json, rows, &commit->id);
    serve_json_int(json, "lane", row->lane);
    serve_json_int(json, "lanes", row->nlanes);
    serve_json_open(json, "edges", '[');
    for (size_t i = 0; i < row->nedges; i++) {
        serve_json_open(json, NULL, '[');
        serve_json_int(json, NULL, row->edges[i].from);
        serve_json_int(json, NULL, row->edges[i].to);
        serve_json_close(json, ']');
    }
    serve_json_close(json, ']');
    serve_json_close(json, '}');
}

int serve_log(serve_call *call)
{
    serve_json *json = &call->json;
    uint64_t n = 200;
    serve_rows rows;
    int rc;

    SERVE_TRY(serve_open_version(call));
    serve_put_version(call);
    SERVE_TRY(serve_uint_param(call, "n", 1, ROWS_MOST, &n));
    rc = serve_rows_read(&rows, call, n);
    serve_json_open(json, "commits", '[');
    for (size_t i = 0; i < rows.n && rc >= 0; i++)
        put_row(json, &rows, &rows.rows[i]);
    serve_json_close(json, ']');
    serve_json_text(json, "next", rows.next);
    serve_rows_free(&rows);
    call->out->immutable = 0; /* branches move */
    return rc;
}

/* ---- what commits touched -------------------------------- */

int serve_touched_by(serve_call *call, const brc_commit *commit, uint64_t *n,
                     int (*each)(void *ctx, const brc_change *change), void *ctx)
{
    const brc_change *change;
    char id[65];
    int rc;

    *n = 0;
    SERVE_TRY(brc_diff(&call->iter, call->repo, NULL, brc_oid_format(id, &commit->id), NULL,
                       call->err));
    while ((rc = brc_next(call->iter, &change, call->err)) == 1) {
        ++*n;
        rc = each(ctx, change);
        if (rc < 0)
            break;
    }
    serve_drop_iter(call);
    return rc < 0 ? rc : BRC_OK;
}

struct touched {
    serve_call *call;
    const char *rev;
    brc_session *session; /* opened for the first array                        */
    uint64_t n, chunks, bytes;
};

/* Adds what the chunks of an array that are new take, by the mean of all its chunks: sizes of
 * single ones are not kept. */
static int add_bytes(struct touched *t, const brc_change *change, uint64_t fresh)
{
    uint64_t chunks, stored;
    brc_array *array;
    int rc;

    if (!t->session)
        SERVE_TRY(brc_session_open(&t->session, t->call->repo, t->rev, BRC_SESSION_AT,
                                   t->call->err));
    SERVE_TRY(brc_array_open(&array, t->session, change->path, t->call->err));
    rc = brc_array_stat(&chunks, &stored, array, t->call->err);
    brc_array_free(array);
    if (rc >= 0 && chunks > 0)
        t->bytes += fresh >= chunks ? stored
                                    : (uint64_t)((double)stored / (double)chunks * (double)fresh);
    return rc;
}

static int put_touched_path(void *ctx, const brc_change *change)
{
    const uint64_t fresh = change->chunks_added + change->chunks_changed;
    struct touched *t = ctx;

    if (t->n++ < TOUCHED_MOST)
        serve_json_text(&t->call->json, NULL, change->path);
    t->chunks += fresh;
    if (fresh == 0 || change->kind != BRC_ARRAY || change->what == BRC_REMOVED ||
        t->n > TOUCHED_SUMMED)
        return BRC_OK;
    return add_bytes(t, change, fresh);
}

static int put_touched(serve_call *call, const brc_commit *commit)
{
    char id[65];
    struct touched t = { .call = call, .rev = brc_oid_format(id, &commit->id) };
    uint64_t n;
    int rc;

    serve_json_open(&call->json, t.rev, '{');
    serve_json_open(&call->json, "paths", '[');
    rc = serve_touched_by(call, commit, &n, put_touched_path, &t);
    serve_json_close(&call->json, ']');
    brc_session_free(t.session);
    serve_json_uint(&call->json, "n", n);
    serve_json_uint(&call->json, "chunks", t.chunks);
    serve_json_uint(&call->json, "bytes", t.bytes);
    serve_json_close(&call->json, '}');
    return rc;
}

/* Answers for the commits of "ids", as many as the time allows. */
int serve_touched(serve_call *call)
{
    const char *at = serve_param(call, "ids");
    int rc = BRC_OK;

    serve_json_open(&call->json, "touched", '{');
    for (size_t i = 0; at && *at && i < TOUCHED_IDS && rc >= 0; i++) {
        brc_commit *commit;
        brc_oid id;

        if (i > 0 && serve_elapsed_ms(call) > SERVE_BUSY_MS)
            break;
        if (!read_hex_id(&id, &at))
            return brc_fail(call->err, BRC_EINVAL, "ids are ids of commits, separated by dots");
        SERVE_TRY(brc_commit_read(&commit, call->repo, &id, call->err));
        rc = put_touched(call, commit);
        brc_commit_free(commit);
    }
    serve_json_close(&call->json, '}');
    return rc;
}
