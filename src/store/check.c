#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/process.h"
#include "bases.h"
#include "removed.h"

/* ==== check steps ================================ */

/* How long a statement runs before it gives way, and the most: the time doubles each time it is
 * begun again. Others wait for about that time. */
enum { PATIENCE_NS = 2500000, PATIENCE_MOST_NS = 40000000 };
/* How often a range, which is short, is begun again before it no longer gives way. */
enum { RANGE_TRIES = 8 };
/* The number of SQLite's instructions, and of page reads, between two checks for waiting
 * processes. */
enum { LOOK_STEPS = 2000, LOOK_READS = 16 };
/* The most bytes of lines that are held back until a statement ends. */
#define LINES_MOST ((size_t)1 << 20)

typedef struct check_run {
    brc_store *store;
    const brc_check_lines *lines;
    sqlite3_value *from[2], *next[2]; /* NULL: before the first row; after the last */
    int64_t since, patience;
    int gives_way, gave_way;
    unsigned reads;
    brc_buf held; /* each line ends with a zero                                            */
} check_run;

/* ---- giving way -------------------------------- */

static int check_gives_way(void *ctx)
{
    check_run *run = ctx;
    if (!run->gives_way || brc_monotonic_ns() - run->since < run->patience ||
        !brc_vfs_is_awaited(run->store->vfs))
        return 0;
    run->gave_way = 1;
    return 1;
}

/* Called for each page that is read, because SQLite may read many pages within one instruction. */
static void check_page_read(void *ctx)
{
    check_run *run = ctx;
    if (++run->reads % LOOK_READS == 0 && !run->gave_way && check_gives_way(run))
        sqlite3_interrupt(run->store->db);
}

/* Starts or ends the checks for waiting processes. In WAL mode nobody waits for readers. */
static void check_watch(check_run *run, int gives_way)
{
    brc_store *store = run->store;
    run->gives_way = gives_way && !brc_vfs_in_wal(store->vfs);
    run->gave_way = 0;
    run->since = brc_monotonic_ns();
    run->held.len = 0;
    sqlite3_progress_handler(store->db, LOOK_STEPS, run->gives_way ? check_gives_way : NULL, run);
    brc_vfs_watch(store->vfs, run->gives_way ? check_page_read : NULL, run);
}

static void check_unwatch(check_run *run)
{
    sqlite3_progress_handler(run->store->db, 0, NULL, NULL);
    brc_vfs_watch(run->store->vfs, NULL, NULL);
}

/* ---- one statement -------------------------------- */

/* Returns 1 if a line reports a lack of memory. SQLite's check goes on when memory runs out, and
 * reports the page as damaged: "Page 18: unable to get the page. error code=7", which is
 * SQLITE_NOMEM. */
static int is_out_of_memory(const char *line)
{
    static const char words[] = "unable to get the page. error code=";
    const char *at = strstr(line, words);
    return at != NULL && (strtol(at + strlen(words), NULL, 10) & 0xff) == SQLITE_NOMEM;
}

static int tell_held_lines(check_run *run, brc_error *err)
{
    const char *at = (const char *)run->held.data;
    size_t left = run->held.len;
    run->held.len = 0;
    for (size_t len; left > 0; at += len, left -= len) {
        len = strlen(at) + 1;
        if (run->lines->found(run->lines->ctx, at) != 0)
            return brc_fail(err, BRC_EINTERRUPT, "stopped on request");
    }
    return BRC_OK;
}

static int hold_row(check_run *run, sqlite3_stmt *st, brc_error *err)
{
    const char *line = (const char *)sqlite3_column_text(st, 0);
    if (line == NULL || strcmp(line, "ok") == 0)
        return BRC_OK;
    if (is_out_of_memory(line))
        return brc_nomem(err);
    if (run->held.len > LINES_MOST) { /* with so many faults, the statement goes on to its end */
        run->gives_way = 0;
        BRC_TRY(tell_held_lines(run, err));
    }
    return brc_buf_append(&run->held, line, strlen(line) + 1, err);
}

static int bind_from(check_run *run, sqlite3_stmt *st)
{
    for (int i = 0; i < 2 && sqlite3_bind_parameter_count(st) >= 3 + i; i++)
        if (run->from[i] != NULL)
            sqlite3_bind_value(st, 3 + i, run->from[i]);
        else
            sqlite3_bind_double(st, 3 + i, -HUGE_VAL); /* before all numbers, texts and bytes */
    return SQLITE_OK;
}

static int check_prepare(check_run *run, const char *sql, sqlite3_stmt **st, brc_error *err)
{
    brc_store *store = run->store;
    BRC_TRY(brc_read_resume(store, err));
    int rc = sqlite3_prepare_v2(store->db, sql, -1, st, NULL);
    if (rc != SQLITE_OK)
        return brc_fail_db(store, rc, "check it", err);
    sqlite3_bind_int64(*st, 1, (int64_t)store->id_len);
    sqlite3_bind_int64(*st, 2, BRC_SMALL_MOST);
    bind_from(run, *st);
    return BRC_OK;
}

/* Collects the statement's rows. Fails if the disk gave an error: SQLite's check goes on, and
 * reports the page, and everything that it misses because of it, as damaged. */
static int hold_rows(check_run *run, const char *sql, brc_error *err)
{
    sqlite3_stmt *st = NULL;
    const uint64_t unread = brc_vfs_unread(run->store->vfs);
    int rc = check_prepare(run, sql, &st, err);
    while (rc == BRC_OK && (rc = brc_step(run->store, st, err)) > 0)
        rc = hold_row(run, st, err);
    sqlite3_finalize(st);
    if (rc == BRC_OK && brc_vfs_unread(run->store->vfs) > unread)
        rc = brc_fail_db(run->store, SQLITE_IOERR_READ, "read the whole file", err);
    return rc < 0 ? rc : BRC_OK;
}

static void forget_key(sqlite3_value **key)
{
    for (int i = 0; i < 2; i++) {
        sqlite3_value_free(key[i]);
        key[i] = NULL;
    }
}

static int find_next(check_run *run, const char *sql, brc_error *err)
{
    sqlite3_stmt *st = NULL;
    int rc = check_prepare(run, sql, &st, err);
    forget_key(run->next);
    if (rc == BRC_OK)
        rc = brc_step(run->store, st, err);
    for (int i = 0; rc > 0 && i < sqlite3_column_count(st); i++) {
        run->next[i] = sqlite3_value_dup(sqlite3_column_value(st, i));
        if (run->next[i] == NULL)
            rc = brc_nomem(err);
    }
    sqlite3_finalize(st);
    return rc < 0 ? rc : BRC_OK;
}

/* Runs the statement in one read, so on one state of the file. Returns 1, or 0 if it gave way. */
static int check_once(check_run *run, const char *sql, const char *next, int gives_way,
                      brc_error *err)
{
    check_watch(run, gives_way);
    int rc = hold_rows(run, sql, err);
    if (rc == BRC_OK && next != NULL)
        rc = find_next(run, next, err);
    check_unwatch(run);
    brc_store_pause_read(run->store);
    if (!run->gave_way)
        return rc < 0 ? rc : 1;
    return brc_store_check_interrupt(run->store, err); /* the caller may have interrupted too */
}

/* Runs the statement up to `tries` times. `insists`: the last try does not give way. */
static int check_tries(check_run *run, const char *sql, const char *next, int tries, int insists,
                       brc_error *err)
{
    int rc = 0;
    brc_error gone = BRC_ERROR_INIT;
    run->patience = PATIENCE_NS;
    for (int i = 0; i < tries && rc == 0; i++) {
        rc = check_once(run, sql, next, !insists || i + 1 < tries, &gone);
        if (run->patience < PATIENCE_MOST_NS)
            run->patience *= 2;
    }
    if (rc < 0 && err != NULL)
        brc_error_copy(err, &gone);
    return rc > 0 && tell_held_lines(run, err) < 0 ? BRC_EINTERRUPT : rc;
}

int brc_check_run(brc_store *store, const char *sql, const char *next, const brc_check_lines *lines,
                  brc_error *err)
{
    check_run run = {.store = store, .lines = lines, .held = BRC_BUF_INIT};
    int rc;
    do {
        rc = check_tries(&run, sql, next, RANGE_TRIES, 1, err);
        forget_key(run.from);
        memcpy(run.from, run.next, sizeof(run.from));
        memset(run.next, 0, sizeof(run.next));
    } while (rc > 0 && run.from[0] != NULL);
    forget_key(run.from);
    brc_buf_dispose(&run.held);
    return rc < 0 ? rc : BRC_OK;
}

int brc_check_try(brc_store *store, const char *sql, int tries, const brc_check_lines *lines,
                  brc_error *err)
{
    check_run run = {.store = store, .lines = lines, .held = BRC_BUF_INIT};
    int rc = check_tries(&run, sql, NULL, tries, 0, err);
    brc_buf_dispose(&run.held);
    return rc;
}

/* ==== check places ================================ */

typedef struct taken {
    int64_t place, offset, end; /* the bytes of an object */
} taken;

/* The number of rows that one statement reads. */
enum { RANGE = 4096 };

typedef struct places {
    brc_store *store;
    taken *list;         /* of places from `from` to `to`, both included */
    size_t n, room, at_once;
    taken range[RANGE];  /* objects that were read and are not in the list yet */
    int64_t from, to;
    int doubtful;
} places;

static int taken_order(const void *a, const void *b)
{
    const taken *x = a, *y = b;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* ---- objects -------------------------------- */

/* Leaves half of the places for later. More objects in one place than memory holds are a fault, or
 * so rare that one statement may check them. */
static void leave_half(places *p)
{
    qsort(p->list, p->n, sizeof(*p->list), taken_order);
    size_t keep = p->n / 2;
    while (keep > 0 && p->list[keep - 1].place == p->list[keep].place)
        keep--;
    if (keep == 0) {
        p->doubtful = 1;
        return;
    }
    p->n = keep;
    p->to = p->list[keep - 1].place;
}

static size_t read_object(places *p, sqlite3_stmt *st, size_t n)
{
    taken *t = &p->range[n];
    t->place = sqlite3_column_int64(st, 1);
    t->offset = sqlite3_column_int64(st, 2);
    const int64_t stored = sqlite3_column_int64(st, 3);
    if (t->place < p->from || t->place > p->to)
        return n;
    if (t->offset < 0 || stored < 0 || t->offset > INT64_MAX - stored) {
        p->doubtful = 1;
        return n;
    }
    t->end = t->offset + stored;
    return n + 1;
}

/* Adds objects to the list. Called while the read is paused: sorting a full list takes longer than
 * the lock may be held. */
static int take_objects(places *p, size_t n, brc_error *err)
{
    const size_t most = p->n + n < p->at_once ? p->n + n : p->at_once;
    BRC_TRY(brc_grow_array((void **)&p->list, &p->room, most, sizeof(*p->list), err));
    for (size_t i = 0; i < n && !p->doubtful; i++) {
        if (p->n == p->at_once)
            leave_half(p);
        if (!p->doubtful && p->range[i].place <= p->to)
            p->list[p->n++] = p->range[i];
    }
    return BRC_OK;
}

/* Reads a range of rows after *last, which becomes its end. Returns 0 if there are no more. */
static int read_objects(places *p, sqlite3_value **last, brc_error *err)
{
    brc_store *store = p->store;
    sqlite3_stmt *st;
    size_t found = 0;
    int rc, n = 0;
    BRC_TRY(brc_read_resume(store, err));
    BRC_TRY(brc_stmt(store,
                     "SELECT id, place, offset, stored, backend=0 AND typeof(place)='integer'"
                     " AND typeof(offset)='integer' AND typeof(stored)='integer'"
                     " FROM object WHERE id>?1 ORDER BY id LIMIT 4096",
                     &st, err));
    if (*last == NULL) /* before all numbers, texts and bytes */
        sqlite3_bind_double(st, 1, -HUGE_VAL);
    else if (sqlite3_bind_value(st, 1, *last) != SQLITE_OK)
        return brc_nomem(err);
    while ((rc = brc_step(store, st, err)) > 0) {
        if (sqlite3_column_int(st, 4))
            found = read_object(p, st, found);
        if (++n == RANGE) {
            sqlite3_value_free(*last);
            *last = sqlite3_value_dup(sqlite3_column_value(st, 0));
            if (*last == NULL)
                rc = brc_nomem(err);
            break;
        }
    }
    sqlite3_reset(st);
    brc_store_pause_read(store);
    BRC_TRY(rc < 0 ? rc : brc_store_check_interrupt(store, err));
    BRC_TRY(take_objects(p, found, err));
    return n == RANGE && !p->doubtful;
}

static int read_all_objects(places *p, brc_error *err)
{
    sqlite3_value *last = NULL;
    int rc;
    p->n = 0;
    p->to = INT64_MAX;
    while ((rc = read_objects(p, &last, err)) > 0)
        ;
    sqlite3_value_free(last);
    if (p->n > 0)
        qsort(p->list, p->n, sizeof(*p->list), taken_order);
    return rc;
}

static void find_overlaps(places *p)
{
    for (size_t i = 1; i < p->n; i++) {
        const taken *before = &p->list[i - 1];
        taken *t = &p->list[i];
        if (t->place != before->place)
            continue;
        p->doubtful |= t->offset < before->end && t->end > t->offset;
        if (t->end < before->end) /* the next objects are compared with the longer one */
            t->end = before->end;
    }
}

/* ---- blobs -------------------------------- */

/* Returns 1 if bytes of the blob belong to no object and are not free, or are free and belong to
 * objects. */
static int is_doubtful(const places *p, size_t *at, sqlite3_stmt *blob)
{
    const int64_t seq = sqlite3_column_int64(blob, 0), len = sqlite3_column_int64(blob, 1);
    const int64_t removed = sqlite3_column_int64(blob, 2);
    int64_t used = 0;
    int has_object = 0;
    for (; *at < p->n && p->list[*at].place <= seq; ++*at) {
        const taken *t = &p->list[*at];
        if (t->place == seq && t->end - t->offset <= len)
            used = used < len ? used + (t->end - t->offset) : used;
        has_object |= t->place == seq;
    }
    return (len > 0 && !has_object && removed != len) || (removed > 0 && removed > len - used);
}

/* Reads a range of blobs from *seq on, and checks them; `at` is the position in the list. */
static int read_blobs(places *p, int64_t *seq, size_t *at, brc_error *err)
{
    brc_store *store = p->store;
    sqlite3_stmt *st;
    int rc, n = 0;
    BRC_TRY(brc_read_resume(store, err));
    BRC_TRY(brc_stmt(store,
                     "SELECT b.seq, length(b.data), coalesce(r.bytes, 0) FROM blob b"
                     " LEFT JOIN removed r ON r.backend=0 AND r.place=b.seq AND r.name=''"
                     " WHERE b.seq BETWEEN ?1 AND ?2 ORDER BY b.seq LIMIT 4096",
                     &st, err));
    sqlite3_bind_int64(st, 1, *seq);
    sqlite3_bind_int64(st, 2, p->to);
    while ((rc = brc_step(store, st, err)) > 0) {
        *seq = sqlite3_column_int64(st, 0);
        n++;
        p->doubtful |= is_doubtful(p, at, st);
    }
    sqlite3_reset(st);
    brc_store_pause_read(store);
    BRC_TRY(rc < 0 ? rc : brc_store_check_interrupt(store, err));
    const int more = n == RANGE && *seq < p->to && !p->doubtful;
    *seq += more;
    return more;
}

static int check_a_part(places *p, brc_error *err)
{
    int64_t seq = p->from;
    size_t at = 0;
    int rc;
    BRC_TRY(read_all_objects(p, err));
    find_overlaps(p);
    while (!p->doubtful && (rc = read_blobs(p, &seq, &at, err)) != 0)
        BRC_TRY(rc);
    return BRC_OK;
}

int brc_check_places(brc_store *store, size_t at_once, int *doubtful, brc_error *err)
{
    void *made;
    BRC_TRY(brc_new(&made, sizeof(places), err));
    places *p = made;
    p->store = store;
    p->at_once = at_once;
    p->from = INT64_MIN;
    p->to = INT64_MAX;
    int rc = check_a_part(p, err);
    while (rc == BRC_OK && !p->doubtful && p->to < INT64_MAX) {
        p->from = p->to + 1;
        rc = check_a_part(p, err);
    }
    *doubtful = p->doubtful;
    free(p->list);
    free(p);
    return rc;
}

/* ==== check ================================ */

/* Checks the file below the objects: SQLite's own structures, and the form of every
 * row. A column in SQLite keeps a value of any type. */

#define BAD_ID(column) \
    "(typeof(" column ")<>'blob' OR length(" column ")<>?1 OR " column "=zeroblob(?1))"
#define BAD_ID_OR_NULL(column) "(" column " IS NOT NULL AND " BAD_ID(column) ")"
#define BAD_TEXT(column) "(typeof(" column ")<>'text' OR instr(CAST(" column " AS BLOB), x'00')>0)"

#define SAYS_IT_HAS_NOT                                                                           \
    "SELECT 'the uncommitted changes of ' || quote(substr(branch,1,80)) || ' (draft ' || id || ')" \
    " have rows that the row of their draft does not list' FROM draft d WHERE"

/* The statements that give one line for each fault; ?1 is the length of an id, ?2
 * BRC_SMALL_MOST. */
static const struct {
    const char *sql, *next; /* `next` NULL: the statement does not go by ranges, and gives way */
} row_checks[] = {
    {"SELECT 'the setting ' || quote(substr(key,1,40)) || ' is not text, or does not match its"
    " checksum' FROM meta WHERE typeof(key)<>'text' OR (key<>'secret' AND typeof(value)<>'text')"
    " OR checksum IS NOT row_sum('meta', key, value)",
     NULL},

    {"SELECT 'the setting ' || column1 || ' is missing' FROM (VALUES ('head'), ('may-ignore'))"
    " WHERE column1 NOT IN (SELECT key FROM meta)",
     NULL},

    {"SELECT 'an object has ' || quote(substr(id,1,40)) || ' in place of an id' FROM object"
    " WHERE " BAD_ID("id")
    " AND " BRC_RANGE("object", "id"),
     BRC_RANGE_NEXT("object", "id")},

    {"SELECT 'blob ' || seq || ' holds ' || typeof(data) || ' in place of bytes' FROM blob"
    " WHERE typeof(data)<>'blob' AND " BRC_RANGE("blob", "seq"),
     BRC_RANGE_NEXT("blob", "seq")},

    {"SELECT 'the row about removed bytes of blob ' || quote(place) || ' is damaged' FROM "
     BRC_ROWS2("removed", "backend", "place") " r"
    " WHERE backend=0 AND (typeof(bytes)<>'integer' OR bytes<1 OR name<>'' OR state<>1"
    " OR typeof(since_us)<>'integer' OR due_us<>0 OR NOT EXISTS (SELECT 1 FROM blob b"
    " WHERE b.seq=r.place AND length(b.data)=r.total) OR checksum IS NOT " BRC_REMOVED_SUM ")",
     BRC_ROWS2_NEXT("removed", "backend", "place")},

    {"SELECT 'the row about removed bytes of place ' || quote(place) || ' of backend ' || "
    "quote(backend) || ' is damaged' FROM removed WHERE backend<>0 AND " BRC_REMOVED_BAD,
     NULL},

    /* A large object is dropped with its row. */
    {"SELECT 'blob ' || b.seq || ' holds more or less than its large object' FROM object o"
    " JOIN blob b ON b.seq=o.place WHERE o." BRC_RANGE("object", "id")
    " AND o.backend=0 AND typeof(o.stored)='integer'"
    " AND o.stored>?2 AND (o.offset IS NOT 0 OR length(b.data)<>o.stored)",
     BRC_RANGE_NEXT("object", "id")},

    {"SELECT 'the numbers of ' || quote(substr(name,1,40)) || ' are damaged' FROM sqlite_sequence"
    " WHERE typeof(seq)<>'integer' OR seq<0 OR seq>=9223372036854775806"
    " UNION ALL SELECT 'a row has the last number of all, ' || column1 FROM (VALUES"
    " ((SELECT max(seq) FROM blob)), ((SELECT max(seq) FROM oplog)), ((SELECT max(id) FROM draft)),"
    " ((SELECT max(node) FROM draft_node))) WHERE column1>=9223372036854775806",
     NULL},

    {"SELECT 'encoding ' || id || ' is not a numbered text' FROM encoding"
    " WHERE id<1 OR " BAD_TEXT("spec"),
     NULL},

    {"SELECT 'the ref ' || quote(substr(name,1,80)) || ' has an invalid name, target or message, or"
    " does not match its checksum' FROM ref WHERE " BRC_RANGE("ref", "name")
    " AND (" BAD_TEXT("name")
    " OR (target IS NULL AND name NOT LIKE 'heads/%') OR " BAD_ID_OR_NULL("target")
    " OR typeof(message) NOT IN ('null','text') OR instr(CAST(message AS BLOB), x'00')>0"
    " OR checksum IS NOT row_sum('ref', name, target, message))",
     BRC_RANGE_NEXT("ref", "name")},

    {"SELECT 'row ' || seq || ' of the operation log is damaged' FROM oplog"
    " WHERE " BRC_RANGE("oplog", "seq")
    " AND (typeof(time_us)<>'integer' OR typeof(name)<>'text' OR op NOT IN"
    " ('branch','tag','commit','amend','reset','rename','delete','switch','merge','rebase',"
    "'pick','revert','undo','redo') OR " BAD_ID_OR_NULL("old")
    " OR " BAD_ID_OR_NULL("new") " OR checksum IS NOT row_sum('oplog', seq, time_us, op, name,"
    " old, new, first, undoes, restores, draft))",
     BRC_RANGE_NEXT("oplog", "seq")},

    {"SELECT 'the uncommitted changes of ' || quote(substr(branch,1,80)) || ' (draft ' || id || ')"
    " have no branch, an invalid base, or do not match their checksum' FROM draft"
    " WHERE " BAD_TEXT("branch") " OR kind NOT IN (1,2,3) OR state NOT IN (1,2,3)"
    " OR (state=2 AND kind<>2) OR (state=3 AND (kind<>1 OR parts<>0))"
    " OR typeof(parts)<>'integer' OR parts NOT BETWEEN 0 AND 31 OR typeof(changes)<>'integer'"
    " OR (state<>2 AND 'heads/' || branch NOT IN (SELECT name FROM ref)"
    /* The branch may have been deleted with -D, which keeps its draft. */
    " AND NOT (kind=2 AND owner IS NULL AND id IN (SELECT draft FROM oplog)))"
    " OR " BAD_ID_OR_NULL("base") " OR " BAD_ID_OR_NULL("tip") " OR " BAD_ID_OR_NULL("other")
    " OR (tip IS NOT NULL AND NOT EXISTS (SELECT 1 FROM object o WHERE o.id=tip AND o.kind=4))"
    " OR (other IS NOT NULL AND NOT EXISTS (SELECT 1 FROM object o WHERE o.id=other AND o.kind=4))"
    /* A savepoint's parent must be a draft that exists and is not itself a savepoint. */
    " OR (parent IS NOT NULL AND state<>2 AND (kind<>2 OR typeof(parent)<>'integer'))"
    " OR (state=1 AND " BRC_IS_SAVE " AND parent NOT IN"
    " (SELECT id FROM draft WHERE state=1 AND NOT " BRC_IS_SAVE "))"
    " OR checksum IS NOT row_sum('draft', id, kind, state, branch,"
    " base, tip, other, plan, owner, parent, time_us, changes, parts)",
     NULL},

    /* Readers do not look for rows of a part that the draft's `parts` lacks. */
    {SAYS_IT_HAS_NOT
    " (d.parts&4=0 AND EXISTS (SELECT 1 FROM draft_node n JOIN draft_doc c"
    " ON c.id=substr(n.entry,3,?1) AND c.node=n.node WHERE n.draft=d.id)) OR"
    " (d.parts&8=0 AND d.id IN (SELECT parent FROM draft WHERE state=1 AND " BRC_IS_SAVE
    " AND NOT " BRC_IS_POINT ")) OR"
    " (d.parts&16=0 AND d.id IN (SELECT parent FROM draft WHERE state=1 AND " BRC_IS_POINT ")) OR"
    " (d.state=3 AND EXISTS (SELECT 1 FROM draft_node n WHERE n.draft=d.id))",
     NULL},

    {"SELECT 'row ' || node || ' of the uncommitted nodes (' || quote(substr(path,1,80)) ||"
    " ') is damaged, or belongs to no draft' FROM draft_node"
    /* The last row may belong to no draft: it stays so that its number is not used again. */
    " WHERE (draft=0 AND (path IS NOT NULL OR below IS NOT NULL OR entry IS NOT NULL"
    " OR node IN (SELECT node FROM draft_chunk)))"
    " OR draft NOT IN (SELECT id FROM draft UNION ALL SELECT 0)"
    " OR (path IS NOT NULL AND " BAD_TEXT("path") ")"
    /* Every row without a path lies below one row that has a path, and only below that row, unless
     * its draft was dropped; but rows of savepoints may lie on rows of others. */
    " OR (draft NOT IN (SELECT id FROM draft WHERE state=2 UNION ALL SELECT 0) AND ("
    "(path IS NULL AND node NOT IN (WITH RECURSIVE lower(node) AS (SELECT below FROM draft_node"
    " WHERE path IS NOT NULL AND below IS NOT NULL UNION SELECT d.below FROM draft_node d"
    " JOIN lower ON d.node=lower.node WHERE d.below IS NOT NULL) SELECT node FROM lower))"
    " OR (below IS NOT NULL AND (typeof(below)<>'integer' OR NOT EXISTS (SELECT 1 FROM draft_node b"
    " WHERE b.node=draft_node.below AND b.path IS NULL AND (b.draft=draft_node.draft"
    " OR draft_node.draft IN (SELECT id FROM draft WHERE " BRC_IS_SAVE ")))"
    " OR below IN (SELECT below FROM draft_node WHERE draft NOT IN (SELECT id FROM draft WHERE"
    " " BRC_IS_SAVE ") GROUP BY below HAVING count(*)>1)))))"
    " OR typeof(entry) NOT IN ('null','blob') OR typeof(level)<>'integer'"
    " OR checksum IS NOT row_sum('draft_node', node, draft, path, below, level, entry)",
     NULL},

    {"SELECT 'a savepoint (draft ' || s.id || ') has ' || quote(substr(x.path,1,80)) ||"
    " ' as it was, and it is that still' FROM draft s CROSS JOIN draft_node x ON x.draft=s.id"
    " CROSS JOIN draft_node n ON n.draft=s.parent AND n.path=x.path"
    " WHERE s.state=1 AND s.id IN (SELECT id FROM draft WHERE " BRC_IS_SAVE " AND parts&16=0)"
    " AND (n.level<s.id OR x.level>=s.id)",
     NULL},

    {"SELECT 'an uncommitted chunk of node ' || quote(substr(node,1,40)) || ' is damaged, or"
    " belongs to no node' FROM "
     BRC_ROWS2("draft_chunk", "node", "key") " draft_chunk"
    " WHERE (node NOT IN (SELECT node FROM draft_node)"
    " OR typeof(key)<>'blob' OR (id IS NOT NULL AND (typeof(id)<>'blob' OR length(id)<>?1))"
    " OR checksum IS NOT row_sum('draft_chunk', node, key, id))",
     BRC_ROWS2_NEXT("draft_chunk", "node", "key")},

    /* The walk through the draft checks the document's text. */
    {"SELECT 'an uncommitted document of node ' || quote(substr(d.node,1,40)) || ' is damaged, or"
    " is not that of the node' FROM "
     BRC_ROWS2("draft_doc", "id", "node") " d"
    " WHERE (" BAD_ID("d.id")
    " OR typeof(d.encoding)<>'integer' OR d.encoding<0 OR typeof(d.data)<>'blob'"
    " OR NOT EXISTS (SELECT 1 FROM draft_node n WHERE n.node=d.node"
    " AND substr(n.entry,3,?1)=d.id))",
     BRC_ROWS2_NEXT("draft_doc", "id", "node")},

    {"SELECT 'the derived row of ' || quote(substr(id,1,40)) || ' does not belong to a commit'"
    " FROM commit_info"
    " WHERE " BRC_RANGE("commit_info", "id") " AND (typeof(id)<>'blob' OR NOT EXISTS (SELECT 1"
    " FROM object o WHERE o.id=commit_info.id AND o.kind=4))",
     BRC_RANGE_NEXT("commit_info", "id")},

    /* The walk through the nodes checks the totals themselves; nobody reads the totals of a node
     * that is gone. */
    {"SELECT 'the totals of ' || quote(substr(id,1,40)) || ' do not belong to a map node, or are"
    " not numbers' FROM node_total WHERE " BRC_RANGE("node_total", "id")
    " AND (typeof(id)<>'blob' OR EXISTS (SELECT 1"
    " FROM object o WHERE o.id=node_total.id AND o.kind<>3)"
    " OR typeof(arrays)<>'integer' OR arrays<0 OR typeof(groups)<>'integer'"
    " OR groups<0 OR typeof(chunks)<>'integer' OR chunks<0 OR typeof(size)<>'integer' OR size<0"
    " OR typeof(stored)<>'integer' OR stored<0)",
     BRC_RANGE_NEXT("node_total", "id")},
};

/* Statements that check within one state of the file what brc_check_places() found doubtful. */
static const char *const place_checks[] = {
    /* An empty row stays so that its number is not used again. Bytes of a bulk write that has not
     * yet written their objects, or was killed before, count as left. */
    "SELECT count(*) || ' of the stored blobs belong to no object; the first is ' || min(seq)"
    " FROM blob WHERE seq NOT IN (SELECT place FROM object WHERE backend=0) AND length(data)>0"
    " AND NOT EXISTS (SELECT 1 FROM removed r WHERE r.backend=0 AND r.place=blob.seq"
    " AND r.bytes=length(data)) HAVING count(*)>0",

    /* If another object left the row, it would go with the objects that are in it. */
    "SELECT 'bytes of blob ' || r.place || ' count as removed, but objects lie in them' FROM "
    "removed r JOIN blob b ON b.seq=r.place JOIN (SELECT place, CAST(total(stored) AS INTEGER) AS "
    "used FROM object WHERE backend=0 AND typeof(stored)='integer' AND stored>0 GROUP BY place) o "
    "ON o.place=r.place WHERE r.backend=0 AND r.bytes>length(b.data)-o.used",

    /* Each object begins where the one before ends, or later. */
    "SELECT 'blob ' || place || ' holds two objects in the same bytes, at ' || offset FROM"
    " (SELECT place, offset, max(offset+stored) OVER (PARTITION BY place ORDER BY offset,"
    " offset+stored ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS taken FROM object"
    " WHERE backend=0 AND stored>0 AND typeof(offset)='integer' AND typeof(stored)='integer')"
    " WHERE offset<taken",
};

/* Tables of schema/reserved.sql, which most files lack. */
static const struct {
    const char *there, *sql, *next;
} reserved_checks[] = {
    { "SELECT '' FROM sqlite_schema WHERE name='delta'",
      "SELECT 'a row of table delta is damaged, or names an object that is stored whole: ' ||"
      " quote(id) FROM delta d WHERE " BAD_ID("id") " OR " BAD_ID("base")
      " OR id IS base OR NOT EXISTS (SELECT 1 FROM object o JOIN encoding e ON e.id=o.encoding"
      " WHERE o.id=d.id AND e.spec='" BRC_DELTA_SPEC "')",
      NULL },
    { "SELECT '' FROM sqlite_schema WHERE name='delta'",
      "SELECT 'object ' || lower(hex(id)) || ' is a difference from object ' || lower(hex(base)) ||"
      " ', which is missing' FROM delta d WHERE NOT EXISTS (SELECT 1 FROM object o WHERE"
      " o.id=d.base)",
      NULL },
    { "SELECT '' FROM sqlite_schema WHERE name='conflict'",
      "SELECT 'a conflict at ' || quote(substr(path,1,80)) || ' is damaged, or belongs to no merge'"
      " FROM conflict c WHERE " BAD_TEXT("path") " OR typeof(member)<>'text' OR typeof(key)<>'blob'"
      " OR state NOT IN (0,1,2,3) OR NOT EXISTS (SELECT 1 FROM draft d WHERE d.id=c.draft AND"
      " (d.kind=3 OR d.state=2 OR d.kind=2 AND d.owner IS NULL AND d.plan IS NOT NULL))"
      " OR typeof(base) NOT IN ('null','blob')"
      " OR typeof(ours) NOT IN ('null','blob') OR typeof(theirs) NOT IN ('null','blob')"
      " OR substr(path,1,1)<>'/' OR (length(key)>0 AND member<>'chunk')"
      " OR NOT (member IN ('','place','chunk') OR substr(member,1,1)='/')"
      " OR (member IN ('chunk','/storage') AND"
      " (ours IS NOT NULL AND NOT EXISTS (SELECT 1 FROM object o WHERE o.id=c.ours)"
      " OR theirs IS NOT NULL AND NOT EXISTS (SELECT 1 FROM object o WHERE o.id=c.theirs)"
      /* Several bases were merged in memory: then the row says only that a base existed. */
      " OR length(base)>0 AND NOT EXISTS (SELECT 1 FROM object o WHERE o.id=c.base)))"
      " OR checksum IS NOT row_sum('conflict', draft, path, member, key, base, ours, theirs,"
      " state)", NULL },
    { "SELECT '' FROM sqlite_schema WHERE name='draft_move'",
      SAYS_IT_HAS_NOT " d.parts&2=0 AND EXISTS (SELECT 1 FROM draft_move m WHERE m.draft=d.id)",
      NULL },
    { "SELECT '' FROM sqlite_schema WHERE name='draft_move'",
      "SELECT 'the uncommitted move of ' || quote(substr(path,1,80)) || ' is damaged, or belongs"
      " to no draft' FROM "
      BRC_ROWS2("draft_move", "draft", "path") " draft_move"
      " WHERE (draft NOT IN (SELECT id FROM draft)"
      " OR " BAD_TEXT("path") " OR " BAD_TEXT("source")
      " OR source='/' OR path='/' OR substr(path,1,1)<>'/'"
      " OR checksum IS NOT row_sum('draft_move', draft, path, source))",
      BRC_ROWS2_NEXT("draft_move", "draft", "path") },
    { "SELECT '' FROM sqlite_schema WHERE name='draft_key'",
      SAYS_IT_HAS_NOT " d.parts&1=0 AND EXISTS (SELECT 1 FROM draft_key k WHERE k.draft=d.id)",
      NULL },
    { "SELECT '' FROM sqlite_schema WHERE name='draft_key'",
      "SELECT 'the uncommitted key ' || quote(substr(key,1,80)) || ' is damaged, belongs to no "
      "draft, or its bytes are missing' FROM "
      BRC_ROWS2("draft_key", "draft", "key") " draft_key"
      " WHERE (draft NOT IN (SELECT id FROM draft)"
      " OR " BAD_TEXT("key") " OR key='' OR (id IS NULL AND key<>'zarr.json'"
      " AND substr(key,-10)<>'/zarr.json') OR " BAD_ID_OR_NULL("id")
      " OR (id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM object o WHERE o.id=draft_key.id"
      " AND o.kind=5))"
      " OR checksum IS NOT row_sum('draft_key', draft, key, id))",
      BRC_ROWS2_NEXT("draft_key", "draft", "key") },
    { "SELECT '' FROM draft WHERE kind=3 AND state=1",
      "SELECT 'branch ' || quote(substr(branch,1,80)) || ' has ' || count(*) || ' open merges'"
      " FROM draft WHERE kind=3 AND state=1 GROUP BY branch HAVING count(*)>1", NULL },
    { "SELECT '' FROM sqlite_schema WHERE name='boundary'",
      "SELECT 'the row that replaces the expired parents of ' || quote(substr(id,1,40)) || ' is "
      "damaged, or it is not a commit' FROM boundary WHERE " BAD_ID("id")
      " OR typeof(parents)<>'blob' OR length(parents)%?1<>0 OR typeof(moves)<>'text'"
      " OR NOT EXISTS (SELECT 1 FROM object o WHERE o.id=boundary.id AND o.kind=4)"
      " OR checksum IS NOT row_sum('boundary', id, parents, moves)",
      NULL },
    { "SELECT '' FROM sqlite_schema WHERE name='pin'",
      "SELECT 'pin ' || id || ' does not match its checksum' FROM pin"
      " WHERE checksum IS NOT row_sum('pin', id, target, owner, time_us)",
      NULL },
    { "SELECT '' FROM sqlite_schema WHERE name='gc'",
      "SELECT 'collection of garbage ' || run || ' does not match its checksum, or has no such"
      " phase'"
      " FROM gc WHERE phase NOT IN (1,2)"
      " OR checksum IS NOT row_sum('gc', run, owner, phase, position, time_us)",
      NULL },
    { "SELECT '' FROM sqlite_schema WHERE name='backend'",
      "SELECT 'backend ' || id || ' is not a numbered text, or does not match its checksum'"
      " FROM backend WHERE id<1 OR " BAD_TEXT("spec")
      " OR checksum IS NOT row_sum('backend', id, spec)",
      NULL },
#define IN_NO_BACKEND                                                                            \
    "SELECT count(*) || ' objects lie in the backend ' || quote(backend) || ', which has no row'" \
    " FROM object WHERE " BRC_RANGE("object", "id") " AND backend<>0"
    { "SELECT '' FROM sqlite_schema WHERE name='backend'",
      IN_NO_BACKEND " AND backend NOT IN (SELECT id FROM backend) GROUP BY backend",
      BRC_RANGE_NEXT("object", "id") },
    { "SELECT '' WHERE NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE name='backend')",
      IN_NO_BACKEND " GROUP BY backend",
      BRC_RANGE_NEXT("object", "id") },
#undef IN_NO_BACKEND
#define IN_NO_PLACE                                                                              \
    "SELECT count(*) || ' objects lie in place ' || quote(place) || ' of backend ' ||"           \
    " quote(backend) || ', which has no row' FROM object o WHERE backend<>0 AND place<>0"
#define BY_PLACE " GROUP BY backend, place"
    { "SELECT '' FROM sqlite_schema WHERE name='place'",
      IN_NO_PLACE " AND NOT EXISTS (SELECT 1 FROM place p WHERE p.seq=o.place"
      " AND p.backend=o.backend)" BY_PLACE,
      BRC_RANGE_NEXT("object", "id") },
    { "SELECT '' WHERE NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE name='place')",
      IN_NO_PLACE BY_PLACE,
      BRC_RANGE_NEXT("object", "id") },
#undef IN_NO_PLACE
#undef BY_PLACE
    { "SELECT '' FROM sqlite_schema WHERE name='place'",
      "SELECT 'place ' || seq || ' has a wrong number, a name that is not valid, or does not match "
      "its checksum' FROM place WHERE seq NOT BETWEEN 1 AND 9223372036854775805 "
      "OR " BAD_TEXT("name") " OR length(CAST(name AS BLOB)) NOT BETWEEN 1 AND 4096"
      " OR checksum IS NOT row_sum('place', seq, backend, name, size, facts)",
      NULL },
    { "SELECT '' WHERE (SELECT count(*) FROM sqlite_schema WHERE name IN ('place','backend'))=2",
      "SELECT 'place ' || seq || ' has no backend' FROM place WHERE backend NOT IN"
      " (SELECT id FROM backend)",
      NULL },
    { "SELECT '' FROM sqlite_schema WHERE name='place' AND NOT EXISTS (SELECT 1 FROM sqlite_schema"
      " WHERE name='backend')",
      "SELECT 'place ' || seq || ' has no backend' FROM place", NULL },
    { "SELECT '' FROM sqlite_schema WHERE name='backend'",
      "SELECT 'removed bytes are noted for backend ' || quote(r.backend) || ', which has no row' "
      "FROM removed r WHERE r.backend<>0 AND r.backend NOT IN (SELECT id FROM backend)",
      NULL },
    { "SELECT '' FROM sqlite_schema WHERE name='place'",
      "SELECT 'what is left in place ' || quote(r.place) || ' of backend ' || quote(r.backend) ||"
      " ' has no row there' FROM removed r WHERE r.place<>0 AND r.backend<>0"
      " AND NOT EXISTS (SELECT 1 FROM place p WHERE p.seq=r.place AND p.backend=r.backend)",
      NULL },
    { "SELECT '' FROM sqlite_schema WHERE name='encoded'",
      "SELECT 'the length of ' || quote(substr(id,1,40)) || ' in encoding ' || quote(encoding) ||"
      " ' is damaged; asked for again, it is right' FROM "
      BRC_ROWS2("encoded", "id", "encoding") " encoded"
      " WHERE (typeof(id)<>'blob'"
      " OR checksum IS NOT row_sum('encoded', id, encoding, length, digest))",
      BRC_ROWS2_NEXT("encoded", "id", "encoding") },
    { "SELECT '' FROM sqlite_schema WHERE name='chunk_stats'",
      "SELECT 'the statistics of chunk ' || quote(substr(id,1,40)) || ' are damaged; asked for"
      " again, they are right' FROM " BRC_ROWS2("chunk_stats", "id", "form") " chunk_stats"
      " WHERE (typeof(id)<>'blob'"
      " OR checksum IS NOT row_sum('chunk_stats', id, form, summary))",
      BRC_ROWS2_NEXT("chunk_stats", "id", "form") },
};

/* How often a check is begun again: of the whole file, and then of each table by itself. */
enum { FILE_TRIES = 4, TABLE_TRIES = 16 };

/* SQLite's check of a table's pages, if the table does not change meanwhile. */
#define TABLE(name) { NULL, "PRAGMA integrity_check('" name "')" }
#define RESERVED(name) { name, "PRAGMA integrity_check('" name "')" }
static const struct {
    const char *reserved, *sql; /* `reserved`: the file may lack this table */
} table_checks[] = {
    TABLE("meta"),       TABLE("object"),      TABLE("blob"),      TABLE("removed"),
    TABLE("encoding"),   TABLE("ref"),         TABLE("oplog"),     TABLE("draft"),
    TABLE("draft_node"), TABLE("draft_chunk"), TABLE("draft_doc"), TABLE("commit_info"),
    TABLE("node_total"), RESERVED("draft_key"), RESERVED("draft_move"), RESERVED("delta"),
    RESERVED("backend"), RESERVED("place"),    RESERVED("boundary"), RESERVED("conflict"),
    RESERVED("pin"),     RESERVED("gc"),       RESERVED("gc_kept"), RESERVED("encoded"),
    RESERVED("chunk_stats"),
};
#undef TABLE
#undef RESERVED

int brc_store_check_file(brc_store *store, int (*found)(void *ctx, const char *line), void *ctx,
                         brc_error *err)
{
    const brc_check_lines lines = {found, ctx};
    int rc = brc_check_try(store, "PRAGMA integrity_check(20)", FILE_TRIES, &lines, err);
    if (rc != 0)
        return rc < 0 ? rc : BRC_OK;
    for (size_t i = 0; i < sizeof(table_checks) / sizeof(table_checks[0]) && rc >= 0; i++) {
        int there = 1;
        if (table_checks[i].reserved != NULL)
            BRC_TRY(brc_schema_has(store, table_checks[i].reserved, &there, err));
        if (there)
            rc = brc_check_try(store, table_checks[i].sql, TABLE_TRIES, &lines, err);
    }
    return rc < 0 ? rc : BRC_OK;
}

static int note_there(void *ctx, const char *line)
{
    (void)line;
    *(int *)ctx = 1;
    return 0;
}

int brc_store_check_rows(brc_store *store, int (*found)(void *ctx, const char *line), void *ctx,
                         brc_error *err)
{
    const brc_check_lines lines = {found, ctx};
    int doubtful;
    BRC_TRY(brc_removed_there(store, err));
    for (size_t i = 0; i < sizeof(row_checks) / sizeof(row_checks[0]); i++)
        BRC_TRY(brc_check_run(store, row_checks[i].sql, row_checks[i].next, &lines, err));
    BRC_TRY(brc_check_places(store, BRC_PLACES_AT_ONCE, &doubtful, err));
    for (size_t i = 0; doubtful && i < sizeof(place_checks) / sizeof(place_checks[0]); i++)
        BRC_TRY(brc_check_run(store, place_checks[i], NULL, &lines, err));
    for (size_t i = 0; i < sizeof(reserved_checks) / sizeof(reserved_checks[0]); i++) {
        int is_there = 0;
        const brc_check_lines there = {note_there, &is_there};
        BRC_TRY(brc_check_run(store, reserved_checks[i].there, NULL, &there, err));
        if (is_there)
            BRC_TRY(brc_check_run(store, reserved_checks[i].sql, reserved_checks[i].next, &lines,
                                  err));
    }
    return BRC_OK;
}

enum { IDS_AT_ONCE = 256, ROWS_AT_ONCE = 4096 };

/* Calls each() with the commits among some rows after *last, which becomes the last of these rows,
 * when the statement has ended. Returns 0 if there are no more rows. */
static int each_of_some(brc_store *store, sqlite3_value **last,
                        int (*each)(void *ctx, const brc_oid *id, brc_error *err), void *ctx,
                        brc_error *err)
{
    sqlite3_stmt *st;
    brc_oid ids[IDS_AT_ONCE];
    int rc, n = 0, rows = 0;
    BRC_TRY(brc_read_resume(store, err));
    BRC_TRY(brc_stmt(store, "SELECT id, kind FROM object WHERE id>?1 ORDER BY id LIMIT 4096", &st,
                     err));
    if (*last == NULL) /* before all numbers, texts and bytes */
        sqlite3_bind_double(st, 1, -HUGE_VAL);
    else if (sqlite3_bind_value(st, 1, *last) != SQLITE_OK)
        return brc_nomem(err);
    while ((rc = brc_step(store, st, err)) > 0) {
        /* the check of rows reports a damaged id */
        if (sqlite3_column_int(st, 1) == BRC_KIND_COMMIT &&
            brc_column_id(store, st, 0, &ids[n], NULL) >= 0)
            n++;
        if (++rows < ROWS_AT_ONCE && n < IDS_AT_ONCE)
            continue;
        sqlite3_value_free(*last);
        *last = sqlite3_value_dup(sqlite3_column_value(st, 0));
        rc = *last != NULL ? 1 : brc_nomem(err);
        break;
    }
    sqlite3_reset(st);
    for (int i = 0; i < n && rc >= 0; i++) {
        const int told = each(ctx, &ids[i], err);
        rc = told < 0 ? told : rc;
    }
    return rc;
}

static int each_commit(brc_store *store, int (*each)(void *ctx, const brc_oid *id, brc_error *err),
                       void *ctx, brc_error *err)
{
    sqlite3_value *last = NULL;
    int rc;
    while ((rc = each_of_some(store, &last, each, ctx, err)) > 0)
        brc_store_breathe(store);
    sqlite3_value_free(last);
    return rc;
}

static int each_in_oplog(brc_store *store,
                         int (*each)(void *ctx, const brc_oid *id, brc_error *err), void *ctx,
                         brc_error *err)
{
    sqlite3_stmt *st = NULL;
    brc_oid id;
    BRC_TRY(brc_read_resume(store, err));
    int rc = sqlite3_prepare_v2(store->db,
                                "SELECT old FROM oplog WHERE old IS NOT NULL"
                                " UNION SELECT new FROM oplog WHERE new IS NOT NULL",
                                -1, &st, NULL);
    if (rc != SQLITE_OK)
        return brc_fail_db(store, rc, "check it", err);
    while ((rc = brc_step(store, st, err)) > 0) {
        if (brc_column_id(store, st, 0, &id, NULL) < 0)
            continue; /* the check of rows reports this fault */
        rc = each(ctx, &id, err);
        if (rc < 0)
            break;
    }
    sqlite3_finalize(st);
    return rc < 0 ? rc : BRC_OK;
}

int brc_store_each_id(brc_store *store, int what,
                      int (*each)(void *ctx, const brc_oid *id, brc_error *err), void *ctx,
                      brc_error *err)
{
    return what == BRC_IDS_OF_COMMITS ? each_commit(store, each, ctx, err)
                                      : each_in_oplog(store, each, ctx, err);
}

int brc_store_each_encoding(brc_store *store,
                            int (*each)(void *ctx, int64_t encoding, brc_error *err), void *ctx,
                            brc_error *err)
{
    sqlite3_stmt *st = NULL;
    BRC_TRY(brc_read_resume(store, err));
    int rc = sqlite3_prepare_v2(store->db, "SELECT id FROM encoding ORDER BY id", -1, &st, NULL);
    if (rc != SQLITE_OK)
        return brc_fail_db(store, rc, "check it", err);
    while ((rc = brc_step(store, st, err)) > 0) {
        rc = each(ctx, sqlite3_column_int64(st, 0), err);
        if (rc < 0)
            break;
    }
    sqlite3_finalize(st);
    return rc < 0 ? rc : BRC_OK;
}
