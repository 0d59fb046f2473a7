/* Reads that nobody has to wait for: while one decodes, hands over or stands between two steps,
 * another connection commits without waiting. And what such a read sees is one state. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../src/base/buf.h"
#include "../../src/work/session.h"
#include "../../src/zarr/transfer.h"
#include "../kit/hooked_kit.h"
#include "../kit/ios.h"
#include "../kit/suite.h"

TEST_SUITE(short_reads);

#define CODECS "[" HOOKED_CODECS "]"
#define SHARDED                                                                                  \
    "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[64],\"codecs\":" CODECS \
    ",\"index_codecs\":[" LITTLE ",{\"name\":\"crc32c\"}]}}]"

/* More than are looked up and fetched in one go. */
enum { CHUNKS = 1000, ELEMENTS = CHUNKS * 64 };

/* One reads, the other writes. */
typedef struct two_handles {
    scenario reader, writer;
    hooked_parts parts;
    int commits, what;
} two_handles;

static two_handles two;

/* The writer does not wait; where threads decode, the reader may hold the lock for a moment. */
static void open_both(unsigned threads)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    hooked_file_start(&two.reader, &two.parts, threads);
    memcpy(two.writer.file, two.reader.file, sizeof(two.writer.file));
    opts.registry = two.parts.reg;
    opts.wait_ms = threads > 0 ? 5000 : -1;
    scenario_open(&two.writer, &opts, 0);
}

static void two_start(void)
{
    memset(&two, 0, sizeof(two));
}

static void two_stop(void)
{
    scenario_close(&two.writer);
    hooked_file_stop(&two.reader, &two.parts);
}

static void write_all(scenario *t, const char *path, int32_t value)
{
    scenario_fill(t, t->session, path, NULL, &value);
}

/* Each chunk has other elements: the i-th has i everywhere. */
static void new_chunk_numbers(const char *path, const char *codecs)
{
    static int32_t data[ELEMENTS];
    const uint64_t shape = ELEMENTS, chunk = strcmp(codecs, SHARDED) == 0 ? ELEMENTS : 64;
    scenario *t = &two.reader;
    brc_array *a = scenario_array(t, path, "int32", 1, &shape, &chunk, "-1", codecs);
    for (int i = 0; i < ELEMENTS; i++)
        data[i] = i / 64;
    OK(t, brc_array_write(a, NULL, data, sizeof(data), &t->err));
    brc_array_free(a);
}

static void commit_one(void *ctx)
{
    (void)ctx;
    char text[16];
    snprintf(text, sizeof(text), "%d", two.commits++);
    OK(&two.writer, brc_attrs_set(two.writer.session, "/", "n", text, &two.writer.err));
    scenario_commit(&two.writer, "meanwhile");
}

static int commit_run(void *ctx, const void *data, size_t len)
{
    (void)data, (void)len;
    commit_one(ctx);
    return 0;
}

static int commit_progress(void *ctx, const char *phase, uint64_t done, uint64_t total)
{
    (void)phase, (void)done, (void)total;
    if (two.writer.session != NULL && two.commits < two.what)
        commit_one(ctx);
    return 0;
}

/* ---- nobody waits -------------------------------- */

static int32_t taken[ELEMENTS];

static void read_array(void)
{
    scenario *t = &two.reader;
    brc_array *a = scenario_array_at(t, t->session, "/a");
    OK(t, brc_array_read(a, NULL, taken, sizeof(taken), &t->err));
    for (int i = 0; i < ELEMENTS; i++)
        ck_assert_int_eq(taken[i], i / 64);
    brc_array_free(a);
}

static void read_elements(void)
{
    brc_buf out = BRC_BUF_INIT;
    scenario *t = &two.reader;
    brc_array *a = scenario_array_at(t, t->session, "/a");
    OK(t, io_elements(a, NULL, &out, &t->err));
    ck_assert_uint_eq(out.len, sizeof(taken));
    brc_buf_dispose(&out);
    brc_array_free(a);
}

static void read_stream(void)
{
    scenario *t = &two.reader;
    brc_array *a = scenario_array_at(t, t->session, "/a");
    OK(t, brc_array_stream(a, NULL, 0, commit_run, NULL, &t->err));
    brc_array_free(a);
}

/* Chunks that are stored in another encoding than the array's. */
static void read_key(void)
{
    static const char *const keys[] = {"k/c/0", "k/c/1", "k/c/2"};
    brc_buf out = BRC_BUF_INIT;
    for (int i = 0; i < 3; i++) {
        OK(&two.reader, brc_key_get(&out, two.reader.session, keys[i], NULL, NULL,
                                    &two.reader.err));
        ck_assert_uint_eq(out.len, 64 * sizeof(int32_t));
    }
    brc_buf_dispose(&out);
}

static void read_export(void)
{
    char file[160];
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    opts.format = "npy";
    snprintf(file, sizeof(file), "%s/out%d.npy", two.reader.dir, two.commits);
    OK(&two.reader, brc_export(two.reader.session, "/a", file, &opts, &two.reader.err));
    unlink(file);
}

static void read_diff(void)
{
    brc_iter *it;
    const brc_change *change;
    brc_diff_opts opts = BRC_DIFF_OPTS_INIT;
    int rc, changed = 0;
    opts.flags = BRC_DIFF_ELEMENTS;
    OK(&two.reader, brc_diff(&it, two.reader.repo, "old", "new", &opts, &two.reader.err));
    while ((rc = brc_next(it, &change, &two.reader.err)) > 0) {
        changed += change->elements_changed > 0;
        commit_one(NULL);
    }
    OK(&two.reader, rc);
    ck_assert_int_eq(changed, 2);
    brc_iter_free(it);
}

static void read_fsck(void)
{
    scenario_whole(&two.reader);
}

static const struct {
    const char *name;
    void (*run)(void);
} readings[] = {
    {"read", read_array},     {"read elements", read_elements}, {"stream", read_stream},
    {"export", read_export},  {"diff", read_diff},              {"fsck", read_fsck},
    {"key", read_key},
};
enum { READINGS = sizeof(readings) / sizeof(readings[0]) };

static void commit_three_versions(void)
{
    new_chunk_numbers("/a", CODECS);
    new_chunk_numbers("/s", SHARDED);
    scenario_commit(&two.reader, "first");
    OK(&two.reader, brc_ref_create(two.reader.repo, "old", NULL, NULL, BRC_REF_TAG,
                                   &two.reader.err));
    write_all(&two.reader, "/a", 7);
    write_all(&two.reader, "/s", 7);
    scenario_commit(&two.reader, "second");
    OK(&two.reader, brc_ref_create(two.reader.repo, "new", NULL, NULL, BRC_REF_TAG,
                                   &two.reader.err));
    new_chunk_numbers("/b", CODECS);
    OK(&two.reader, brc_node_remove(two.reader.session, "/a", &two.reader.err));
    OK(&two.reader, brc_node_remove(two.reader.session, "/s", &two.reader.err));
    new_chunk_numbers("/a", CODECS);
    new_chunk_numbers("/s", SHARDED);
    new_chunk_numbers("/k", CODECS);
    scenario_recode(&two.reader, two.reader.session, "/k", "[" LITTLE "]", 0);
    scenario_commit(&two.reader, "third");
}

CASE("locks", .setup = two_start, .teardown = two_stop, .timeout = 120);

/* One after the other, while the reader decodes its first chunks. */
LOOP(a_commit_does_not_wait_for_decoding, 0, 3 * READINGS)
{
    open_both((unsigned)_i / READINGS);
    commit_three_versions();
    hook_decode(commit_one, NULL, 3);
    readings[_i % READINGS].run();
    ck_assert_msg(hook_calls() == 3, "%s: %d calls", readings[_i % READINGS].name, hook_calls());
    ck_assert_int_ge(two.commits, 3);
}

/* The progress function may take its time. A key has none. */
LOOP(a_commit_does_not_wait_for_progress, 0, READINGS - 1)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    open_both(0);
    commit_three_versions();
    scenario_close(&two.reader);
    opts.registry = two.parts.reg;
    opts.progress = commit_progress;
    scenario_open(&two.reader, &opts, 0);
    two.what = 3;
    readings[_i].run();
    ck_assert_int_ge(two.commits, 3);
}

/* ---- iterators -------------------------------- */

TEST(a_commit_does_not_wait_between_two_steps)
{
    brc_iter *it;
    const brc_node *node;
    const char *key;
    const brc_commit *commit;
    int rc, steps = 0;
    scenario *t = &two.reader;
    open_both(0);
    commit_three_versions();
    OK(t, brc_log(&it, t->repo, NULL, NULL, &t->err));
    while ((rc = brc_next(it, &commit, &t->err)) > 0 && ++steps > 0)
        commit_one(NULL);
    OK(t, rc);
    brc_iter_free(it);
    OK(t, brc_list(&it, t->session, "/", BRC_LIST_RECURSE, &t->err));
    while ((rc = brc_next(it, &node, &t->err)) > 0 && ++steps > 0)
        commit_one(NULL);
    OK(t, rc);
    brc_iter_free(it);
    OK(t, brc_keys(&it, t->session, "a/", 0, &t->err));
    while ((rc = brc_next(it, &key, &t->err)) > 0 && ++steps > 0)
        if (steps % 50 == 0)
            commit_one(NULL);
    OK(t, rc);
    brc_iter_free(it);
    ck_assert_int_gt(steps, CHUNKS);
}

/* ---- what holds a lock -------------------------------- */

static void find_it_locked(void *ctx)
{
    scenario *w = &two.writer;
    int32_t one;
    (void)ctx;
    FAILS(w, BRC_EBUSY, brc_attrs_set(w->session, "/", "n", "1", &w->err));
    brc_array *b = scenario_array_at(w, w->session, "/b");
    brc_sel sel = BRC_SEL_INIT;
    OK(w, brc_sel_parse(&sel, b, "[0]", &w->err));
    OK(w, brc_array_read(b, &sel, &one, sizeof(one), &w->err));
    ck_assert_int_eq(one, 0);
    brc_array_free(b);
}

/* Also while a read decodes: other writers wait, readers see the state before. */
TEST(an_explicit_transaction_holds_its_lock)
{
    scenario *t = &two.reader;
    brc_array *b;
    open_both(0);
    new_chunk_numbers("/b", CODECS);
    OK(t, brc_array_open(&b, t->session, "/b", &t->err));
    OK(t, brc_begin(t->repo, &t->err));
    write_all(t, "/b", 5);
    hook_decode(find_it_locked, NULL, 1);
    OK(t, brc_array_read(b, NULL, taken, sizeof(taken), &t->err));
    ck_assert_int_eq(hook_calls(), 1);
    for (int i = 0; i < ELEMENTS; i++)
        ck_assert_int_eq(taken[i], 5);
    find_it_locked(NULL);
    OK(t, brc_end(t->repo, BRC_END_KEEP, &t->err));
    commit_one(NULL);
    brc_array_free(b);
}

/* ---- one state -------------------------------- */

static void write_meanwhile(void *ctx)
{
    (void)ctx;
    write_all(&two.writer, "/a", 1000 + two.commits);
    write_all(&two.writer, "/b", 1000 + two.commits++);
}

static int write_run(void *ctx, const void *data, size_t len)
{
    brc_buf *all = ctx;
    ck_assert_int_eq(brc_buf_append(all, data, len, NULL), BRC_OK);
    write_meanwhile(NULL);
    return 0;
}

static int write_chunk(void *ctx, const uint64_t *index, brc_span stored, brc_error *err)
{
    (void)index, (void)stored, (void)err;
    ++*(int *)ctx;
    write_meanwhile(NULL);
    return BRC_OK;
}

static void check_all(const int32_t *data, int is_uncommitted)
{
    for (int i = 0; i < ELEMENTS; i++)
        ck_assert_int_eq(data[i], is_uncommitted ? 5 : i / 64);
}

CASE("states", .setup = two_start, .teardown = two_stop, .timeout = 120);

/* _i 1, 3: there are uncommitted chunks before; 2, 3: a pool. */
LOOP(a_read_of_uncommitted_changes_sees_one_state, 0, 4)
{
    static int32_t other[ELEMENTS];
    brc_array *a, *b;
    scenario *t = &two.reader;
    open_both((unsigned)_i / 2 * 2);
    new_chunk_numbers("/a", CODECS);
    new_chunk_numbers("/b", CODECS);
    scenario_commit(t, "first");
    if (_i % 2)
        write_all(t, "/a", 5);
    if (_i % 2)
        write_all(t, "/b", 5);
    OK(t, brc_array_open(&a, t->session, "/a", &t->err));
    OK(t, brc_array_open(&b, t->session, "/b", &t->err));
    hook_decode(write_meanwhile, NULL, 2);
    const brc_io io[2] = {IO_OF(a, NULL, taken, sizeof(taken)),
                          IO_OF(b, NULL, other, sizeof(other))};
    OK(t, brc_read(io, 2, &t->err));
    ck_assert_int_eq(hook_calls(), 2);
    check_all(taken, _i % 2);
    check_all(other, _i % 2);
    OK(t, brc_array_read(a, NULL, taken, sizeof(taken), &t->err));
    for (int i = 0; i < ELEMENTS; i++)
        ck_assert_int_eq(taken[i], 1001);
    brc_array_free(a);
    brc_array_free(b);
}

/* So do a stream, an export and a shard, also where the hand-over writes. */
LOOP(a_stream_and_an_export_see_one_state, 0, 2)
{
    brc_array *a;
    brc_buf all = BRC_BUF_INIT;
    scenario *t = &two.reader;
    int chunks = 0;
    open_both(0);
    new_chunk_numbers("/a", _i ? SHARDED : CODECS);
    new_chunk_numbers("/b", CODECS);
    scenario_commit(t, "first");
    write_all(t, "/a", 5);
    OK(t, brc_array_open(&a, t->session, "/a", &t->err));
    hook_decode(write_meanwhile, NULL, 2);
    OK(t, brc_array_stream(a, NULL, 0, write_run, &all, &t->err));
    ck_assert_uint_eq(all.len, sizeof(taken));
    for (int i = 0; i < ELEMENTS; i++)
        ck_assert_int_eq(((int32_t *)(void *)all.data)[i], 5);
    brc_chunk_sink sink = {&chunks, write_chunk, 0};
    OK(t, brc_array_get_stored(a, &sink, &t->err));
    ck_assert_int_eq(chunks, _i ? 1 : CHUNKS);
    brc_buf_dispose(&all);
    brc_array_free(a);
}

/* Where there are more rows than it may remember, it says that they changed. */
TEST(too_many_chunks_to_remember)
{
    brc_array *a;
    int chunks = 0;
    scenario *t = &two.reader;
    open_both(0);
    two.reader.repo->pipe.memory = 65536;
    new_chunk_numbers("/a", CODECS);
    new_chunk_numbers("/b", CODECS);
    OK(t, brc_array_open(&a, t->session, "/a", &t->err));
    brc_chunk_sink sink = {&chunks, write_chunk, 0};
    FAILS(t, BRC_ESTALE, brc_array_get_stored(a, &sink, &t->err));
    ck_assert_ptr_nonnull(strstr(t->err.message, "commit first"));
    ck_assert_int_lt(chunks, CHUNKS);
    brc_array_free(a);
}
