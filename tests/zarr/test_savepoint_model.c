/* Savepoints against a model: nodes in plain memory, and copies of them for each savepoint. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/buf.h"
#include "../kit/ios.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(savepoint_model);

enum { NODES_MOST = 64, LENGTH = 12, LEVELS = 5, LOOSE = 4, SAID = 16384 };

typedef struct model_node {
    char path[40];
    int kind, attr; /* attr 0: it has none */
    unsigned n;     /* elements            */
    int32_t v[LENGTH];
} model_node;

typedef struct model_tree {
    model_node nodes[NODES_MOST]; /* in no order */
    size_t n;
    int loose[LOOSE]; /* bytes under keys that are not nodes; 0: none */
} model_tree;

typedef struct model_save {
    model_tree tree;
    char name[4];
} model_save;

static scenario t;
static breccia *other_repo; /* of another handle, which reads what is shared */
static uint64_t seed;
static model_tree now, committed;
static model_save saves[LEVELS];
static size_t nsaves;
static int is_private;
static int64_t tells[16]; /* how often each was done */
static char said[SAID], expected[SAID];

static uint64_t below(uint64_t n)
{
    return scenario_below(&seed, n);
}

/* ---- the model -------------------------------- */

static model_node *node_at(model_tree *m, const char *path)
{
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->nodes[i].path, path) == 0)
            return &m->nodes[i];
    return NULL;
}

static int is_under(const char *path, const char *top)
{
    const size_t len = strlen(top);
    return strncmp(path, top, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

static void remove_at(model_tree *m, const char *path)
{
    for (size_t i = m->n; i-- > 0;)
        if (is_under(m->nodes[i].path, path))
            m->nodes[i] = m->nodes[--m->n];
}

static model_node *add_node(model_tree *m, const char *path, int kind)
{
    ck_assert_uint_lt(m->n, NODES_MOST);
    model_node *node = &m->nodes[m->n++];
    memset(node, 0, sizeof(*node));
    snprintf(node->path, sizeof(node->path), "%s", path);
    node->kind = kind;
    return node;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const model_node *)a)->path, ((const model_node *)b)->path);
}

static void say(char *out, const char *format, long long number)
{
    const size_t at = strlen(out);
    snprintf(out + at, SAID - at, format, number);
}

static void say_node(char *out, const char *path, int attr, const int32_t *v, unsigned n)
{
    const size_t at = strlen(out);
    snprintf(out + at, SAID - at, "\n%s %d", path, attr);
    for (unsigned i = 0; v != NULL && i < n; i++)
        say(out, i == 0 ? "=%lld" : ",%lld", v[i]);
}

static void describe_model(model_tree *m, char *out)
{
    out[0] = '\0';
    qsort(m->nodes, m->n, sizeof(m->nodes[0]), by_path);
    for (size_t i = 0; i < m->n; i++) {
        const model_node *node = &m->nodes[i];
        say_node(out, node->path, node->attr, node->kind == BRC_ARRAY ? node->v : NULL, node->n);
    }
    for (int i = 0; i < LOOSE; i++)
        say(out, "\n#%lld", m->loose[i]);
}

/* ---- the session -------------------------------- */

static int attr_of(brc_session *s, const char *path)
{
    brc_buf all = BRC_BUF_INIT;
    OK(&t, brc_attrs_get(&all, s, path, NULL, &t.err));
    const char *at = strstr((const char *)all.data, ":");
    const int value = at != NULL ? (int)strtol(at + 1, NULL, 10) : 0;
    brc_buf_dispose(&all);
    return value;
}

static void describe_session(brc_session *s, char *out)
{
    brc_iter *it;
    const brc_node *node;
    int rc;
    out[0] = '\0';
    OK(&t, brc_list(&it, s, "/", BRC_LIST_RECURSE, &t.err));
    while ((rc = brc_next(it, &node, &t.err)) > 0) {
        int32_t v[LENGTH] = {0};
        unsigned n = 0;
        if (strcmp(node->path, "/") == 0)
            continue;
        if (node->kind == BRC_ARRAY) {
            brc_array *a = scenario_array_at(&t, s, node->path);
            n = (unsigned)brc_array_describe(a)->shape[0];
            ck_assert_uint_le(n, LENGTH);
            OK(&t, brc_array_read(a, NULL, v, 4 * n, &t.err));
            brc_array_free(a);
        }
        say_node(out, node->path, attr_of(s, node->path), node->kind == BRC_ARRAY ? v : NULL, n);
    }
    ck_assert_msg(rc == 0, "%s", t.err.message);
    brc_iter_free(it);
    for (int i = 0; i < LOOSE; i++) {
        char key[24];
        brc_buf value = BRC_BUF_INIT;
        snprintf(key, sizeof(key), "loose/%d", i);
        rc = brc_key_get(&value, s, key, NULL, NULL, &t.err);
        ck_assert_msg(rc == BRC_OK || rc == BRC_ENOTFOUND, "%s", t.err.message);
        say(out, "\n#%lld", rc == BRC_OK ? value.data[0] : 0);
        brc_buf_dispose(&value);
    }
}

static void compare(const char *where)
{
    describe_model(&now, expected);
    describe_session(t.session, said);
    ck_assert_msg(strcmp(said, expected) == 0, "%s:%s\nand not%s", where, said, expected);
    if (is_private)
        return;
    brc_session *other = scenario_session(&t, other_repo, NULL, BRC_SESSION_VIEW);
    describe_session(other, said);
    brc_session_free(other);
    ck_assert_msg(strcmp(said, expected) == 0, "%s, elsewhere:%s\nand not%s", where, said,
                  expected);
}

/* ---- steps -------------------------------- */

static const char *const paths[] = {"/a", "/b", "/g", "/g/a", "/g/b", "/h", "/h/k", "/h/k/a"};

static const char *any_path(void)
{
    return paths[below(sizeof(paths) / sizeof(paths[0]))];
}

/* A path whose parent is a group and that is free; NULL: this is none. */
static const char *free_path(void)
{
    char above[40];
    const char *path = any_path();
    snprintf(above, sizeof(above), "%.*s", (int)(strrchr(path, '/') - path), path);
    const model_node *parent = node_at(&now, above);
    if (node_at(&now, path) != NULL ||
        (above[0] != '\0' && (parent == NULL || parent->kind != BRC_GROUP)))
        return NULL;
    return path;
}

static void write_some(model_node *node, brc_array *a)
{
    brc_sel sel = BRC_SEL_INIT;
    int32_t values[LENGTH];
    sel_all(&sel, a);
    sel.start[0] = below(node->n);
    sel.count[0] = 1 + below(node->n - sel.start[0]);
    for (uint64_t i = 0; i < sel.count[0]; i++) /* 0 is the fill value: then chunks go */
        node->v[sel.start[0] + i] = values[i] = below(3) == 0 ? 0 : (int32_t)below(1000);
    OK(&t, brc_array_write(a, &sel, values, 4 * sel.count[0], &t.err));
}

static void change_array(model_node *node)
{
    static const char *const codecs[] = {
        "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]",
        "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},{\"name\":\"gzip\","
        "\"configuration\":{\"level\":1}}]",
        "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[1],\"codecs\":"
        "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}],\"index_codecs\":"
        "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]}}]"};
    brc_array *a = scenario_array_at(&t, t.session, node->path);
    const uint64_t what = below(8);
    if (what == 0) {
        const uint64_t n = 1 + below(LENGTH);
        OK(&t, brc_array_resize(a, &n, &t.err));
        for (uint64_t i = node->n; i < n; i++)
            node->v[i] = 0;
        node->n = (unsigned)n;
    } else if (what == 1) {
        OK(&t, brc_array_set_codecs(a, codecs[below(3)], 1, &t.err));
    } else {
        write_some(node, a);
    }
    brc_array_free(a);
}

static void make_node(const char *path)
{
    if (below(3) == 0) {
        OK(&t, brc_group_create(t.session, path, NULL, &t.err));
        add_node(&now, path, BRC_GROUP);
        return;
    }
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_array *a;
    uint64_t shape = 1 + below(LENGTH), chunk = 2;
    spec.dtype = "int32";
    spec.ndim = 1;
    spec.shape = &shape;
    spec.chunk = &chunk;
    OK(&t, brc_array_create(&a, t.session, path, &spec, &t.err));
    brc_array_free(a);
    add_node(&now, path, BRC_ARRAY)->n = (unsigned)shape;
}

/* Moved or copied, with all under it. */
static void transfer(const char *from, const char *to, int copy)
{
    const size_t n = now.n, len = strlen(from);
    if (is_under(to, from))
        return;
    OK(&t, copy ? brc_node_move(t.session, from, to, BRC_NODE_COPY, &t.err)
                : brc_node_move(t.session, from, to, 0, &t.err));
    for (size_t i = 0; i < n; i++)
        if (is_under(now.nodes[i].path, from)) {
            const model_node was = now.nodes[i];
            model_node *node = add_node(&now, to, was.kind);
            *node = was;
            snprintf(node->path, sizeof(node->path), "%.19s%.20s", to, was.path + len);
        }
    if (!copy)
        remove_at(&now, from);
}

static void restore(const char *path)
{
    char above[40];
    snprintf(above, sizeof(above), "%.*s", (int)(strrchr(path, '/') - path), path);
    if (node_at(&now, path) == NULL && node_at(&committed, path) == NULL)
        return;
    if (above[0] != '\0' && node_at(&now, above) == NULL) /* it would make groups */
        return;
    if (above[0] != '\0' && node_at(&now, above)->kind != BRC_GROUP)
        return;
    OK(&t, brc_node_restore(t.session, path, NULL, &t.err));
    remove_at(&now, path);
    for (size_t i = 0; i < committed.n; i++)
        if (is_under(committed.nodes[i].path, path))
            *add_node(&now, path, 0) = committed.nodes[i];
}

static void set_loose(void)
{
    const int i = (int)below(LOOSE);
    const uint8_t value = (uint8_t)(below(2) * (1 + below(200)));
    char key[16];
    snprintf(key, sizeof(key), "loose/%d", i);
    if (value == 0)
        OK(&t, brc_key_delete(t.session, key, 0, &t.err));
    else
        OK(&t, brc_key_set(t.session, key, &value, 1, 0, &t.err));
    now.loose[i] = value;
}

static void change_attr(model_node *node)
{
    char json[16];
    node->attr = 1 + (int)below(99);
    snprintf(json, sizeof(json), "%d", node->attr);
    OK(&t, brc_attrs_set(t.session, node->path, "n", json, &t.err));
}

/* One change of the hierarchy. */
static void change(void)
{
    const char *path = any_path(), *to = free_path();
    model_node *node = node_at(&now, path);
    const uint64_t what = below(20);
    if (what == 0)
        set_loose();
    else if (what == 1)
        restore(path);
    else if (node == NULL) {
        if (to != NULL)
            make_node(to);
    } else if (what == 2) {
        OK(&t, brc_node_remove(t.session, path, &t.err));
        remove_at(&now, path);
    } else if (what < 5 && to != NULL)
        transfer(path, to, what == 3);
    else if (what < 8)
        change_attr(node);
    else if (node->kind == BRC_ARRAY)
        change_array(node);
}

static void change_in_bulk(void)
{
    OK(&t, brc_bulk_begin(t.session, &t.err));
    const model_tree before = now;
    const int keep = below(4) > 0;
    for (int i = 0; i < 4; i++) {
        model_node *node = node_at(&now, any_path());
        if (node == NULL || node->kind != BRC_ARRAY)
            continue;
        brc_array *a = scenario_array_at(&t, t.session, node->path);
        write_some(node, a);
        brc_array_free(a);
    }
    OK(&t, brc_bulk_end(t.session, keep ? BRC_END_KEEP : 0, &t.err));
    if (!keep)
        now = before;
}

/* ---- savepoints -------------------------------- */

static void save(void)
{
    model_save *mark = &saves[nsaves];
    if (nsaves == LEVELS)
        return;
    snprintf(mark->name, sizeof(mark->name), "%c", (int)('x' + below(3)));
    OK(&t, brc_savepoint(t.session, BRC_SAVEPOINT_SET, mark->name, &t.err));
    mark->tree = now;
    nsaves++;
}

/* The innermost of a name, or of all. */
static void find_save(size_t *at, const char **name)
{
    *at = below(nsaves);
    *name = below(3) > 0 ? saves[*at].name : NULL;
    *at = nsaves - 1;
    while (*name != NULL && strcmp(saves[*at].name, *name) != 0)
        --*at;
}

static void roll_back(void)
{
    size_t at;
    const char *name;
    if (nsaves == 0)
        return;
    find_save(&at, &name);
    OK(&t, brc_savepoint(t.session, BRC_SAVEPOINT_ROLLBACK, name, &t.err));
    now = saves[at].tree;
    nsaves = at + 1;
}

static void release(void)
{
    size_t at;
    const char *name;
    if (nsaves == 0)
        return;
    find_save(&at, &name);
    OK(&t, brc_savepoint(t.session, BRC_SAVEPOINT_RELEASE, name, &t.err));
    nsaves = at;
}

static void commit(void)
{
    brc_oid id;
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    opts.message = "some";
    opts.flags = BRC_COMMIT_ALLOW_EMPTY;
    for (int i = 0; i < LOOSE; i++)
        if (now.loose[i] != 0) {
            ck_assert_int_eq(brc_session_commit(&id, t.session, &opts, &t.err), BRC_ECONFLICT);
            return;
        }
    OK(&t, brc_session_commit(&id, t.session, &opts, &t.err));
    committed = now;
    nsaves = 0;
}

static void discard(void)
{
    OK(&t, brc_session_discard(t.session, &t.err));
    now = committed;
    nsaves = 0;
}

static void some_steps(int n);

/* A transaction, kept or undone, with savepoints in it. */
static void transact(void)
{
    static model_tree before;
    static model_save marks[LEVELS];
    const size_t n = nsaves;
    before = now;
    memcpy(marks, saves, sizeof(marks));
    const int keep = below(2) > 0;
    OK(&t, brc_begin(t.repo, &t.err));
    some_steps(1 + (int)below(8));
    OK(&t, brc_end(t.repo, keep ? BRC_END_KEEP : 0, &t.err));
    if (keep)
        return;
    now = before;
    memcpy(saves, marks, sizeof(marks));
    nsaves = n;
}

static void some_steps(int n)
{
    for (int i = 0; i < n; i++) {
        const uint64_t what = below(24);
        tells[what < 16 ? what : 15]++;
        if (what < 4)
            save();
        else if (what < 6)
            roll_back();
        else if (what == 6)
            release();
        else
            change();
    }
}

static void step(void)
{
    const uint64_t what = below(100);
    if (what == 0)
        commit();
    else if (what == 1)
        discard();
    else if (what < 5)
        transact();
    else if (what < 9)
        change_in_bulk();
    else
        some_steps(1);
}

static void collect(void)
{
    const brc_gc_opts opts = {.size = sizeof(opts), .flags = BRC_GC_EXPUNGE};
    OK(&t, brc_gc(t.repo, &opts, NULL, &t.err));
}

/* A session's changes stay when it is closed with savepoints open. */
static void open_again(void)
{
    int64_t draft = 0;
    if (is_private)
        draft = scenario_draft(&t, t.session);
    brc_session_free(t.session);
    OK(&t, is_private ? scenario_draft_open(&t.session, t.repo, draft, &t.err)
                      : brc_session_open(&t.session, t.repo, NULL, BRC_SESSION_WRITE, &t.err));
    nsaves = 0;
}

static void run_model(int private, uint64_t from, int steps)
{
    is_private = private;
    seed = from;
    if (private) {
        brc_session_free(t.session);
        OK(&t, brc_session_open(&t.session, t.repo, NULL, BRC_SESSION_PRIVATE, &t.err));
    }
    memset(&now, 0, sizeof(now));
    committed = now;
    nsaves = 0;
    for (int i = 0; i < steps; i++) {
        char where[64];
        step();
        snprintf(where, sizeof(where), "seed %llu, step %d", (unsigned long long)from, i);
        compare(where);
        if (below(40) == 0)
            scenario_whole(&t);
        if (below(150) == 0)
            open_again();
        if (below(100) == 0)
            collect();
    }
    scenario_whole(&t);
}

/* ---- the log of shared changes -------------------------------- */

/* Copies of the hierarchy before each of the last operations, and behind it. */
enum { OPERATIONS = 64 };
static struct {
    model_tree before, after;
    int undone;
} operations[OPERATIONS];
static int noperations;

/* One operation: some changes, or a transaction or bulk write of them. */
static void log_operation(void)
{
    char text[16];
    const int at = noperations++;
    snprintf(text, sizeof(text), "%d", at);
    OK(&t, brc_session_log(t.session, text, &t.err));
    operations[at % OPERATIONS].before = now;
    operations[at % OPERATIONS].undone = 0;
    for (uint64_t i = below(3) + 1; i > 0; i--)
        if (below(8) == 0)
            change_in_bulk();
        else
            change();
    operations[at % OPERATIONS].after = now;
}

/* Finds the operation that has a number of brc_undo(). */
static int operation_of(int64_t id)
{
    const brc_draft_op *op;
    brc_iter *it;
    int rc, found = -1;
    OK(&t, brc_draft_log(&it, t.repo, &t.err));
    while ((rc = brc_next(it, &op, &t.err)) > 0)
        if (op->id == -id)
            found = (int)strtol(op->text, NULL, 10);
    brc_iter_free(it);
    ck_assert_int_eq(rc, 0);
    ck_assert_int_ge(found, 0);
    return found;
}

static int is_equal(model_tree *a, model_tree *b)
{
    describe_model(a, expected);
    describe_model(b, said);
    return strcmp(expected, said) == 0;
}

/* Takes back what comes next, or does it again. An operation that is passed over in between has
 * changed nothing. */
static void go_along_the_log(int redo)
{
    const uint32_t flags = redo ? BRC_UNDO_REDO : 0;
    int64_t id, made;
    const int rc = brc_undo(&id, t.repo, flags | BRC_UNDO_DRY_RUN, 0, &t.err);
    if (rc == BRC_EMISUSE || (rc == BRC_OK && id > 0))
        return;
    ck_assert_msg(rc == BRC_OK, "%s", t.err.message);
    const int at = operation_of(id);
    OK(&t, brc_undo(&made, t.repo, flags, id, &t.err));
    ck_assert_int_eq(made, id);
    if (!redo)
        for (int i = at + 1; i < noperations; i++)
            ck_assert(operations[i % OPERATIONS].undone ||
                      is_equal(&operations[i % OPERATIONS].before,
                               &operations[i % OPERATIONS].after));
    now = redo ? operations[at % OPERATIONS].after : operations[at % OPERATIONS].before;
    operations[at % OPERATIONS].undone = !redo;
}

static void log_step(void)
{
    const uint64_t what = below(100);
    if (what < 30 || what >= 98) {
        go_along_the_log(0);
    } else if (what < 50) {
        go_along_the_log(1);
    } else if (what == 97) {
        OK(&t, brc_session_log(t.session, "commit", &t.err));
        commit();
    } else {
        log_operation();
    }
}

static void run_log(uint64_t from, int steps)
{
    is_private = 0;
    seed = from;
    memset(&now, 0, sizeof(now));
    committed = now;
    nsaves = 0;
    noperations = 0;
    for (int i = 0; i < steps; i++) {
        char where[64];
        log_step();
        snprintf(where, sizeof(where), "log, seed %llu, step %d", (unsigned long long)from, i);
        compare(where);
        if (below(20) == 0)
            scenario_whole(&t);
        if (below(100) == 0)
            collect();
    }
    scenario_whole(&t);
}

static void savepoint_model_setup(void)
{
    scenario_start(&t);
    OK(&t, brc_reopen(&other_repo, t.repo, &t.err));
}

static void savepoint_model_teardown(void)
{
    brc_free(other_repo);
    scenario_stop(&t);
}

/* BRC_SEED and BRC_STEPS try others. */
static uint64_t given(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

CASE("model", .setup = savepoint_model_setup, .teardown = savepoint_model_teardown, .timeout = 300);

LOOP(random_changes_and_savepoints_are_as_in_a_model, 0, 6)
{
    const uint64_t from = given("BRC_SEED", 1) + (uint64_t)_i;
    printf("savepoint_model: seed %llu, %s\n", (unsigned long long)from,
           _i % 2 ? "private" : "shared");
    run_model(_i % 2, from, (int)given("BRC_STEPS", 400));
}

LOOP(random_operations_are_taken_back_and_done_again_as_in_a_model, 0, 6)
{
    const uint64_t from = given("BRC_SEED", 101) + (uint64_t)_i;
    printf("savepoint_model: log, seed %llu\n", (unsigned long long)from);
    run_log(from, (int)given("BRC_STEPS", 200));
}
