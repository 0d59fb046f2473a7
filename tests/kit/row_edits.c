/* See row_edits.h. */
#include "row_edits.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/hash.h"
#include "../../src/store/db.h"
#include "own_rows.h"
#include "reserved.h"
#include "sample_repo.h"
#include "seal.h"

#define ID 16
#define MAX_OBJECTS 512

#define MUST(condition)                                                       \
    ((condition) ? (void)0                                                    \
                 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition), abort()))

enum { MAX_COLUMNS = 16 };

/* Each with what a row is told from others by. */
static const struct {
    const char *name, *key;
} tables[ROW_TABLES] = {
    [ROW_META] = { "meta", "key" },
    [ROW_OBJECT] = { "object", "id" },
    [ROW_BLOBS] = { "blob", "seq" },
    [ROW_ENCODING] = { "encoding", "id" },
    [ROW_REF] = { "ref", "name" },
    [ROW_OPLOG] = { "oplog", "seq" },
    [ROW_DRAFT] = { "draft", "id" },
    [ROW_DRAFT_NODE] = { "draft_node", "node" },
    [ROW_DRAFT_CHUNK] = { "draft_chunk", "node, key" },
    [ROW_COMMIT_INFO] = { "commit_info", "id" },
    [ROW_SEQUENCE] = { "sqlite_sequence", "rowid" },
    [ROW_DRAFT_DOC] = { "draft_doc", "id, node" },
    [ROW_DRAFT_KEY] = { "draft_key", "draft, key" },
    [ROW_DRAFT_MOVE] = { "draft_move", "draft, path" },
    [ROW_CONFLICT] = { "conflict", "draft, path, member, key" },
    [ROW_DELTA] = { "delta", "id" },
    [ROW_BACKEND] = { "backend", "id" },
    [ROW_PLACE] = { "place", "seq" },
    [ROW_BOUNDARY] = { "boundary", "id" },
    [ROW_PIN] = { "pin", "id" },
    [ROW_GC] = { "gc", "run" },
    [ROW_GC_KEPT] = { "gc_kept", "run, id" },
    [ROW_NODE_TOTAL] = { "node_total", "id" },
    [ROW_ENCODED] = { "encoded", "id, encoding" },
    [ROW_REMOVED] = { "removed", "backend, place, name" },
};

typedef struct row_edit {
    unsigned op, table, column, value, row, at, cut, len;
    const uint8_t *bytes;
} row_edit;

typedef struct edit_db {
    sqlite3 *db;
    uint8_t secret[BRC_SECRET_LEN];
    int broken; /* checksums of rows stay as they are */
    char columns[ROW_TABLES][MAX_COLUMNS][24]; /* the names; after the last "" */
} edit_db;

/* ---- SQL -------------------------------- */

static sqlite3_stmt *prepare(const edit_db *e, const char *sql)
{
    sqlite3_stmt *st = NULL;
    if (sqlite3_prepare_v2(e->db, sql, -1, &st, NULL) != SQLITE_OK) {
        fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(e->db));
        abort();
    }
    return st;
}

/* Runs it to its end. What a constraint refuses is not done. */
static void finish(sqlite3_stmt *st)
{
    while (sqlite3_step(st) == SQLITE_ROW)
        ;
    sqlite3_finalize(st);
}

static void run_sql(const edit_db *e, const char *sql)
{
    finish(prepare(e, sql));
}

static unsigned count_rows(const edit_db *e, unsigned table)
{
    char sql[80];
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", tables[table].name);
    sqlite3_stmt *st = prepare(e, sql);
    unsigned n = sqlite3_step(st) == SQLITE_ROW ? (unsigned)sqlite3_column_int(st, 0) : 0;
    sqlite3_finalize(st);
    return n;
}

static void read_columns(edit_db *e, unsigned table)
{
    unsigned n = 0;
    sqlite3_stmt *st = prepare(e, "SELECT name FROM pragma_table_info(?1)");
    sqlite3_bind_text(st, 1, tables[table].name, -1, SQLITE_STATIC);
    while (sqlite3_step(st) == SQLITE_ROW) {
        MUST(n < MAX_COLUMNS - 1);
        snprintf(e->columns[table][n++], sizeof(e->columns[0][0]), "%s",
                 (const char *)sqlite3_column_text(st, 0));
    }
    sqlite3_finalize(st);
    MUST(n > 0);
}

static unsigned count_columns(const edit_db *e, unsigned table)
{
    unsigned n = 0;
    while (e->columns[table][n][0] != 0)
        n++;
    return n;
}

/* "(id)=(SELECT id FROM object ORDER BY id LIMIT 1 OFFSET ?9)" */
static void where_row(char *out, size_t size, unsigned table)
{
    const char *key = tables[table].key;
    snprintf(out, size, "(%s)=(SELECT %s FROM %s ORDER BY %s LIMIT 1 OFFSET ?9)", key, key,
             tables[table].name, key);
}

/* A cell as it is; NULL if there is no row. */
static sqlite3_value *read_cell(const edit_db *e, unsigned table, unsigned column, unsigned row)
{
    char sql[300], where[200];
    where_row(where, sizeof(where), table);
    snprintf(sql, sizeof(sql), "SELECT %s FROM %s WHERE %s", e->columns[table][column],
             tables[table].name, where);
    sqlite3_stmt *st = prepare(e, sql);
    sqlite3_bind_int64(st, 9, row);
    sqlite3_value *cell =
        sqlite3_step(st) == SQLITE_ROW ? sqlite3_value_dup(sqlite3_column_value(st, 0)) : NULL;
    sqlite3_finalize(st);
    return cell;
}

/* ---- values -------------------------------- */

static void bind_edge(sqlite3_stmt *st, unsigned which)
{
    static const int64_t edges[] = { -1, INT64_MAX, INT64_MIN, INT64_C(1) << 31, INT64_C(1) << 32,
                                     (INT64_C(1) << 32) + 1, (INT64_C(1) << 32) + 2, INT32_MAX,
                                     INT64_C(1) << 53, -2 };
    sqlite3_bind_int64(st, 1, edges[which % (sizeof(edges) / sizeof(edges[0]))]);
}

/* ?1 gets the edit's value. */
static void bind_edit_value(const edit_db *e, sqlite3_stmt *st, const row_edit *edit, unsigned rows)
{
    sqlite3_value *cell;
    switch (edit->value) {
    case ROW_SMALL:
        sqlite3_bind_int64(st, 1, edit->at);
        break;
    case ROW_EDGE:
        bind_edge(st, edit->at);
        break;
    case ROW_REAL:
        sqlite3_bind_double(st, 1, 0.5 + edit->at);
        break;
    case ROW_TEXT:
        sqlite3_bind_text(st, 1, (const char *)edit->bytes, (int)edit->len, SQLITE_TRANSIENT);
        break;
    case ROW_BLOB:
        sqlite3_bind_blob(st, 1, edit->bytes, (int)edit->len, SQLITE_TRANSIENT);
        break;
    case ROW_OTHER:
        cell = read_cell(e, edit->table, edit->column, edit->at % rows);
        if (cell != NULL)
            sqlite3_bind_value(st, 1, cell);
        sqlite3_value_free(cell);
        break;
    default:
        sqlite3_bind_null(st, 1);
    }
}

static brc_buf splice(const void *data, size_t len, const row_edit *edit)
{
    brc_buf out = BRC_BUF_INIT;
    size_t at = edit->at % (len + 1), cut = edit->cut < len - at ? edit->cut : len - at;
    const uint8_t *from = data;
    MUST(brc_buf_append(&out, len > 0 ? from : (const uint8_t *)"", at, NULL) == BRC_OK);
    MUST(brc_buf_append(&out, edit->len > 0 ? edit->bytes : (const uint8_t *)"", edit->len,
                        NULL) == BRC_OK);
    if (len - at - cut > 0)
        MUST(brc_buf_append(&out, from + at + cut, len - at - cut, NULL) == BRC_OK);
    MUST(brc_buf_terminate(&out, NULL) == BRC_OK);
    return out;
}

/* ---- cells and rows -------------------------------- */

static void set_cell(const edit_db *e, const row_edit *edit, unsigned rows)
{
    char sql[300], where[200];
    where_row(where, sizeof(where), edit->table);
    snprintf(sql, sizeof(sql), "UPDATE OR IGNORE %s SET %s=?1 WHERE %s", tables[edit->table].name,
             e->columns[edit->table][edit->column], where);
    sqlite3_stmt *st = prepare(e, sql);
    sqlite3_bind_int64(st, 9, edit->row % rows);
    bind_edit_value(e, st, edit, rows);
    finish(st);
}

static void splice_cell(const edit_db *e, const row_edit *edit, unsigned rows)
{
    row_edit set = *edit;
    sqlite3_value *cell = read_cell(e, edit->table, edit->column, edit->row % rows);
    int type = cell != NULL ? sqlite3_value_type(cell) : SQLITE_NULL;
    if (type != SQLITE_NULL) {
        const void *data = sqlite3_value_blob(cell);
        brc_buf out = splice(data, (size_t)sqlite3_value_bytes(cell), edit);
        set.value = type == SQLITE_BLOB ? ROW_BLOB : ROW_TEXT;
        set.bytes = out.data;
        set.len = (unsigned)out.len;
        set_cell(e, &set, rows);
        brc_buf_dispose(&out);
    }
    sqlite3_value_free(cell);
}

/* "id, kind, ?1, backend": the columns, one of them replaced; `other` in place of the rest
 * where it is not "". */
static void list_columns(const edit_db *e, const row_edit *edit, const char *other, char *out,
                         size_t size)
{
    size_t len = 0;
    unsigned n = count_columns(e, edit->table);
    for (unsigned i = 0; i < n && len < size; i++)
        len += (size_t)snprintf(out + len, size - len, "%s%s", i > 0 ? ", " : "",
                                i == edit->column ? "?1"
                                : other[0] != 0   ? other
                                                  : e->columns[edit->table][i]);
}

static void copy_row(const edit_db *e, const row_edit *edit, unsigned rows)
{
    char sql[800], where[200], columns[400] = "";
    list_columns(e, edit, "", columns, sizeof(columns));
    where_row(where, sizeof(where), edit->table);
    snprintf(sql, sizeof(sql), "INSERT OR IGNORE INTO %s SELECT %s FROM %s WHERE %s",
             tables[edit->table].name, columns, tables[edit->table].name, where);
    sqlite3_stmt *st = prepare(e, sql);
    sqlite3_bind_int64(st, 9, edit->row % rows);
    bind_edit_value(e, st, edit, rows);
    finish(st);
}

static void insert_row(const edit_db *e, const row_edit *edit, unsigned rows)
{
    char sql[600], columns[400] = "";
    list_columns(e, edit, "1", columns, sizeof(columns));
    snprintf(sql, sizeof(sql), "INSERT OR IGNORE INTO %s VALUES (%s)", tables[edit->table].name,
             columns);
    sqlite3_stmt *st = prepare(e, sql);
    bind_edit_value(e, st, edit, rows > 0 ? rows : 1);
    finish(st);
}

static void delete_row(const edit_db *e, const row_edit *edit, unsigned rows)
{
    char sql[300], where[200];
    where_row(where, sizeof(where), edit->table);
    snprintf(sql, sizeof(sql), "DELETE FROM %s WHERE %s", tables[edit->table].name, where);
    sqlite3_stmt *st = prepare(e, sql);
    sqlite3_bind_int64(st, 9, edit->row % rows);
    finish(st);
}

/* ---- objects, and what names them -------------------------------- */

typedef struct edit_object {
    uint8_t id[ID];
    int kind;
    int64_t encoding, blob;
    brc_buf data;
} edit_object;

typedef struct edit_objects {
    edit_object *all;
    size_t n;
} edit_objects;

static int read_object(sqlite3_stmt *st, edit_object *out)
{
    memset(out, 0, sizeof(*out));
    if (sqlite3_column_bytes(st, 0) != ID)
        return 0;
    memcpy(out->id, sqlite3_column_blob(st, 0), ID);
    out->kind = sqlite3_column_int(st, 1);
    out->encoding = sqlite3_column_int64(st, 2);
    out->blob = sqlite3_column_int64(st, 3);
    const void *data = sqlite3_column_blob(st, 4);
    MUST(brc_buf_append(&out->data, data != NULL ? data : "", (size_t)sqlite3_column_bytes(st, 4),
                        NULL) == BRC_OK);
    return 1;
}

static edit_objects read_objects(const edit_db *e)
{
    edit_objects out = { calloc(MAX_OBJECTS, sizeof(*out.all)), 0 };
    MUST(out.all != NULL);
    MUST(own_rows(e->db) == SQLITE_OK); /* what is edited is one object's, whatever its length */
    sqlite3_stmt *st = prepare(e, "SELECT o.id, o.kind, o.encoding, o.place, b.data FROM object o"
                                  " JOIN blob b ON b.seq=o.place ORDER BY o.kind DESC, o.id");
    while (out.n < MAX_OBJECTS && sqlite3_step(st) == SQLITE_ROW)
        out.n += (size_t)read_object(st, &out.all[out.n]);
    sqlite3_finalize(st);
    return out;
}

static void free_objects(edit_objects *objects)
{
    for (size_t i = 0; i < objects->n; i++)
        brc_buf_dispose(&objects->all[i].data);
    free(objects->all);
}

static uint64_t digest_of(const edit_db *e, int64_t encoding)
{
    uint64_t digest = 0;
    sqlite3_stmt *st = prepare(e, "SELECT spec FROM encoding WHERE id=?1");
    sqlite3_bind_int64(st, 1, encoding);
    if (encoding != 0 && sqlite3_step(st) == SQLITE_ROW && sqlite3_column_text(st, 0) != NULL)
        digest = brc_hash_encoding((const char *)sqlite3_column_text(st, 0));
    sqlite3_finalize(st);
    return digest;
}

/* The row and the bytes of an object that had the id `old` until now. */
static void write_object(const edit_db *e, const uint8_t *old, const edit_object *o)
{
    brc_oid id = { { 0 } };
    memcpy(id.bytes, o->id, ID);
    const uint8_t *data = o->data.len > 0 ? o->data.data : (const uint8_t *)"";
    sqlite3_stmt *st = prepare(e, "UPDATE blob SET data=?1 WHERE seq=?2");
    sqlite3_bind_blob(st, 1, data, (int)o->data.len, SQLITE_STATIC);
    sqlite3_bind_int64(st, 2, o->blob);
    finish(st);
    st = prepare(e, "UPDATE OR IGNORE object SET id=?1, stored=?2, checksum=?3,"
                    " size=CASE encoding WHEN 0 THEN ?2 ELSE size END,"
                    " guard=CASE encoding WHEN 0 THEN ?4 ELSE guard END WHERE id=?5");
    sqlite3_bind_blob(st, 1, o->id, ID, SQLITE_STATIC);
    sqlite3_bind_int64(st, 2, (int64_t)o->data.len);
    sqlite3_bind_int64(st, 3, (int64_t)brc_hash_stored(&id, digest_of(e, o->encoding), data,
                                                       o->data.len));
    sqlite3_bind_int64(st, 4, (int64_t)brc_hash_guard(e->secret, data, o->data.len));
    sqlite3_bind_blob(st, 5, old, ID, SQLITE_STATIC);
    finish(st);
}

static void hex_of(char out[2 * ID + 1], const uint8_t *id)
{
    for (int i = 0; i < ID; i++)
        snprintf(out + 2 * i, 3, "%02x", id[i]);
}

/* Puts `to` where `from` stands in the bytes; how often. Both have n bytes. */
static int replace_bytes(uint8_t *data, size_t len, const void *from, const void *to, size_t n)
{
    int found = 0;
    for (size_t i = 0; i + n <= len; i++) {
        if (memcmp(data + i, from, n) == 0) {
            memcpy(data + i, to, n);
            found++;
        }
    }
    return found;
}

/* Columns with ids, or with bytes that ids are in. */
static void rename_in_rows(const edit_db *e, const uint8_t *old, const uint8_t *now)
{
    static const char *const whole[] = {
        "UPDATE ref SET target=?2 WHERE target=?1", "UPDATE oplog SET old=?2 WHERE old=?1",
        "UPDATE oplog SET new=?2 WHERE new=?1", "UPDATE draft SET base=?2 WHERE base=?1",
        "UPDATE draft SET tip=?2 WHERE tip=?1", "UPDATE draft SET other=?2 WHERE other=?1",
        "UPDATE draft_chunk SET id=?2 WHERE id=?1",
        "UPDATE OR IGNORE commit_info SET id=?2 WHERE id=?1",
        "UPDATE commit_info SET parents=replace(parents, lower(hex(?1)), lower(hex(?2)))"
    };
    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
        sqlite3_stmt *st = prepare(e, whole[i]);
        sqlite3_bind_blob(st, 1, old, ID, SQLITE_STATIC);
        sqlite3_bind_blob(st, 2, now, ID, SQLITE_STATIC);
        finish(st);
    }
    sqlite3_stmt *st = prepare(e, "SELECT node, entry FROM draft_node");
    while (sqlite3_step(st) == SQLITE_ROW) {
        brc_buf entry = BRC_BUF_INIT;
        const void *data = sqlite3_column_blob(st, 1);
        MUST(brc_buf_append(&entry, data != NULL ? data : "",
                            (size_t)sqlite3_column_bytes(st, 1), NULL) == BRC_OK);
        if (entry.len > 0 && replace_bytes(entry.data, entry.len, old, now, ID) > 0) {
            sqlite3_stmt *put = prepare(e, "UPDATE draft_node SET entry=?1 WHERE node=?2");
            sqlite3_bind_blob(put, 1, entry.data, (int)entry.len, SQLITE_STATIC);
            sqlite3_bind_int64(put, 2, sqlite3_column_int64(st, 0));
            finish(put);
        }
        brc_buf_dispose(&entry);
    }
    sqlite3_finalize(st);
}

/* objects->all[which] has new content: it and all above it are written. Parents have
 * their ids from their content, so there is no cycle; `left` bounds the work all the
 * same. */
static void rehash(const edit_db *e, edit_objects *objects, size_t which, int *left)
{
    edit_object *o = &objects->all[which];
    uint8_t old[ID];
    char old_hex[2 * ID + 1], new_hex[2 * ID + 1];
    memcpy(old, o->id, ID);
    const uint8_t *data = o->data.len > 0 ? o->data.data : (const uint8_t *)"";
    brc_oid id = brc_hash_object(BRC_HASH_XXH128, o->kind, data, o->data.len);
    memcpy(o->id, id.bytes, ID);
    write_object(e, old, o);
    rename_in_rows(e, old, o->id);
    hex_of(old_hex, old);
    hex_of(new_hex, o->id);
    for (size_t i = 0; i < objects->n && --*left > 0; i++) {
        edit_object *up = &objects->all[i];
        int found = 0;
        if (up->kind == BRC_KIND_NODE && up->encoding == 0)
            found = replace_bytes(up->data.data, up->data.len, old, o->id, ID);
        else if (up->kind == BRC_KIND_COMMIT && up->encoding == 0)
            found = replace_bytes(up->data.data, up->data.len, old_hex, new_hex, 2 * ID);
        if (found > 0)
            rehash(e, objects, i, left);
    }
}

static void edit_content(const edit_db *e, const row_edit *edit)
{
    edit_objects objects = read_objects(e);
    int left = 20000;
    if (objects.n > 0) {
        size_t which = edit->row % objects.n;
        edit_object *o = &objects.all[which];
        brc_buf now = splice(o->data.data, o->data.len, edit);
        brc_buf_dispose(&o->data);
        o->data = now;
        if (o->encoding == 0)
            rehash(e, &objects, which, &left);
        else
            write_object(e, o->id, o);
    }
    free_objects(&objects);
}

static void edit_spec(const edit_db *e, const row_edit *edit)
{
    row_edit splice_it = *edit;
    unsigned rows = count_rows(e, ROW_ENCODING);
    if (rows == 0)
        return;
    splice_it.table = ROW_ENCODING;
    splice_it.column = 1;
    splice_cell(e, &splice_it, rows);
    edit_objects objects = read_objects(e);
    for (size_t i = 0; i < objects.n; i++)
        if (objects.all[i].encoding != 0)
            write_object(e, objects.all[i].id, &objects.all[i]);
    free_objects(&objects);
}

/* ---- programs -------------------------------- */

static int read_edit(brc_reader *r, row_edit *out)
{
    const uint8_t *head = brc_read_bytes(r, ROW_EDIT_HEAD);
    if (head == NULL)
        return 0;
    out->op = head[0] % ROW_OPS;
    out->table = head[1] % ROW_TABLES;
    out->column = head[2];
    out->value = head[3] % ROW_VALUES;
    out->row = (unsigned)(head[4] | head[5] << 8);
    out->at = (unsigned)(head[6] | head[7] << 8);
    out->cut = head[8];
    out->len = head[9] < brc_reader_left(r) ? head[9] : (unsigned)brc_reader_left(r);
    out->bytes = brc_read_bytes(r, out->len);
    return 1;
}

static void do_edit(edit_db *e, row_edit *edit)
{
    unsigned rows = count_rows(e, edit->table);
    edit->column %= count_columns(e, edit->table);
    if (edit->op == ROW_CONTENT)
        edit_content(e, edit);
    else if (edit->op == ROW_SPEC)
        edit_spec(e, edit);
    else if (edit->op == ROW_INSERT)
        insert_row(e, edit, rows);
    else if (edit->op == ROW_BROKEN)
        e->broken = 1;
    else if (rows == 0)
        return;
    else if (edit->op == ROW_SET)
        set_cell(e, edit, rows);
    else if (edit->op == ROW_SPLICE)
        splice_cell(e, edit, rows);
    else if (edit->op == ROW_COPY)
        copy_row(e, edit, rows);
    else
        delete_row(e, edit, rows);
}

static void connect_to(edit_db *e, const char *path)
{
    MUST(sqlite3_open(path, &e->db) == SQLITE_OK && brc_row_sum_register(e->db) == SQLITE_OK);
    sqlite3_db_config(e->db, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL);
    run_sql(e, "PRAGMA journal_mode=OFF");
    run_sql(e, "PRAGMA synchronous=OFF");
    MUST(reserved_make_all(e->db) == SQLITE_OK); /* a file may have them */
    for (unsigned i = 0; i < ROW_TABLES; i++)
        read_columns(e, i);
}

/* NOT NULL in the tables' text, or without it: an enemy's SQLite need not look at it. */
static void relax(const edit_db *e, int relaxed)
{
    run_sql(e, "PRAGMA writable_schema=ON");
    run_sql(e, relaxed ? "UPDATE sqlite_schema SET sql=replace(sql, ' NOT NULL', ' /*T NULL*/')"
                       : "UPDATE sqlite_schema SET sql=replace(sql, ' /*T NULL*/', ' NOT NULL')");
    run_sql(e, "PRAGMA writable_schema=OFF");
}

void row_edits_apply(const char *path, const uint8_t *program, size_t len)
{
    edit_db e = { 0 };
    row_edit edit;
    brc_reader r = brc_reader_of(program, len);
    connect_to(&e, path);
    sqlite3_stmt *st = prepare(&e, "SELECT value FROM meta WHERE key='secret'");
    MUST(sqlite3_step(st) == SQLITE_ROW && sqlite3_column_bytes(st, 0) == BRC_SECRET_LEN);
    memcpy(e.secret, sqlite3_column_blob(st, 0), BRC_SECRET_LEN);
    sqlite3_finalize(st);
    run_sql(&e, "BEGIN");
    for (int i = 0; i < ROW_EDITS_MAX && read_edit(&r, &edit); i++)
        do_edit(&e, &edit);
    if (!e.broken)
        MUST(sqlite3_exec(e.db, SEAL_ALL, NULL, NULL, NULL) == SQLITE_OK);
    relax(&e, 0);
    run_sql(&e, "COMMIT");
    sqlite3_close(e.db);
}

/* ---- programs by chance -------------------------------- */

static uint64_t edit_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* Bytes that mean something somewhere. */
static size_t random_bytes(uint8_t out[32], uint64_t *random)
{
    static const char *const words[] = { "..", "a/b", "zarr.json", "", "main", "heads/x", "null",
                                         "[]", "-1", "\xff", "\x80\x01", "parent ", "root ",
                                         "9223372036854775807", "uint8", "bytes", "{}" };
    if (edit_random(random) % 2 == 0) {
        const char *word = words[edit_random(random) % (sizeof(words) / sizeof(words[0]))];
        memcpy(out, word, strlen(word));
        return strlen(word);
    }
    size_t n = (size_t)(edit_random(random) % 4);
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)edit_random(random);
    return n;
}

static size_t random_edit(uint8_t out[ROW_EDIT_HEAD + 32], uint64_t *random)
{
    for (size_t i = 0; i < ROW_EDIT_HEAD; i++)
        out[i] = (uint8_t)edit_random(random);
    out[0] %= ROW_OPS;
    if (out[0] == ROW_BROKEN && edit_random(random) % 4 > 0)
        out[0] = ROW_SET;
    /* mostly tables that have rows: those before ROW_DRAFT_DOC */
    out[1] = (uint8_t)(out[1] % (edit_random(random) % 8 > 0 ? ROW_DRAFT_DOC : ROW_TABLES));
    out[3] %= ROW_VALUES;
    out[5] = 0; /* of rows there are few, and most cells are short */
    out[7] = edit_random(random) % 8 == 0 ? out[7] : 0;
    out[8] = (uint8_t)(out[8] % 8 == 0 ? out[8] : out[8] % 4);
    out[9] = (uint8_t)random_bytes(out + ROW_EDIT_HEAD, random);
    return (size_t)ROW_EDIT_HEAD + out[9];
}

/* Where the edits begin; their end is the last of n + 1. */
static size_t find_edits(const uint8_t *program, size_t len, size_t starts[ROW_EDITS_MAX + 1])
{
    brc_reader r = brc_reader_of(program, len);
    row_edit edit;
    size_t n = 0;
    starts[0] = 0;
    while (n < ROW_EDITS_MAX && read_edit(&r, &edit))
        starts[++n] = len - brc_reader_left(&r);
    return n;
}

size_t row_edits_mutate(uint8_t *program, size_t len, size_t max, uint64_t *random)
{
    size_t starts[ROW_EDITS_MAX + 1], n = find_edits(program, len, starts);
    size_t which = n > 0 ? (size_t)(edit_random(random) % n) : 0;
    uint8_t fresh[ROW_EDIT_HEAD + 32];
    size_t add = random_edit(fresh, random);
    uint64_t how = edit_random(random) % 8;

    if (n > 1 && how == 0) { /* one less */
        memmove(program + starts[which], program + starts[which + 1], len - starts[which + 1]);
        return len - (starts[which + 1] - starts[which]);
    }
    if (n > 0 && how < 5) { /* one field of one: mostly the place */
        static const uint8_t fields[] = { 0, 1, 2, 3, 4, 4, 4, 6, 6, 6, 8, 6 };
        size_t field = fields[edit_random(random) % sizeof(fields)];
        program[starts[which] + field] = fresh[field];
        return len;
    }
    if (n == ROW_EDITS_MAX || starts[n] + add > max)
        return len;
    memcpy(program + starts[n], fresh, add);
    return starts[n] + add;
}

/* ---- the repository -------------------------------- */

brc_buf row_edits_base(const char *scratch)
{
    edit_db e = { 0 };
    brc_buf out = BRC_BUF_INIT;
    uint8_t piece[4096];
    size_t n;
    remove(scratch);
    sample_repo_make(scratch);
    connect_to(&e, scratch);
    /* small pages: a small file */
    run_sql(&e, "PRAGMA page_size=1024");
    run_sql(&e, "VACUUM");
    relax(&e, 1);
    sqlite3_close(e.db);
    FILE *f = fopen(scratch, "rb");
    MUST(f != NULL);
    while ((n = fread(piece, 1, sizeof(piece), f)) > 0)
        MUST(brc_buf_append(&out, piece, n, NULL) == BRC_OK);
    fclose(f);
    remove(scratch);
    return out;
}
