/* Small writes hold no lock until they are stored. What others do meanwhile, to the same chunk, its
 * array or the draft, is not made to wait, and is not lost; nor is what is written. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../kit/lock_faults.h"
#include "../kit/hooked_kit.h"
#include "../kit/suite.h"

TEST_SUITE(partial_writes);

enum { EDGE = 256, ELEMENTS = 4 * EDGE };

static scenario first, second;
static hooked_parts parts;
static pthread_t thread;
static int what;

static void partial_start(void)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    static int32_t numbers[ELEMENTS];
    const uint64_t shape = ELEMENTS, chunk = EDGE;
    hooked_file_start(&first, &parts, 0);
    for (int i = 0; i < ELEMENTS; i++)
        numbers[i] = i;
    brc_array *a = scenario_array(&first, "/a", "int32", 1, &shape, &chunk, "0",
                                  "[" HOOKED_CODECS "]");
    OK(&first, brc_array_write(a, NULL, numbers, sizeof(numbers), &first.err));
    brc_array_free(a);
    scenario_commit(&first, "first");
    memcpy(second.file, first.file, sizeof(second.file));
    opts.registry = parts.reg;
    scenario_open(&second, &opts, 0);
}

static void partial_stop(void)
{
    scenario_close(&second);
    hooked_file_stop(&first, &parts);
}

static void write_part(scenario *t, const char *text, int32_t value)
{
    scenario_fill(t, t->session, "/a", text, &value);
}

static void *change_meanwhile(void *unused)
{
    const uint64_t longer = 2 * ELEMENTS;
    (void)unused;
    if (what == 0) {
        write_part(&second, "[128:640]", 7);
        return NULL;
    }
    brc_array *a = scenario_array_at(&second, second.session, "/a");
    OK(&second, what == 1 ? brc_array_set_codecs(a, "[" LITTLE "]", 1, &second.err)
                          : brc_array_resize(a, &longer, &second.err));
    brc_array_free(a);
    return NULL;
}

/* The other may come first or have to wait: it gets some time to come first. */
static void let_another_change(void *ctx)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 300000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    ck_assert_int_eq(pthread_create(&thread, NULL, change_meanwhile, NULL), 0);
    *(int *)ctx = pthread_timedjoin_np(thread, NULL, &until) != 0;
}

CASE("partial", .setup = partial_start, .teardown = partial_stop, .timeout = 120);

/* The first has read the chunk and has not stored it. */
LOOP(both_parts_are_there, 0, 3)
{
    static int32_t got[ELEMENTS];
    int is_running = 0;
    brc_sel sel = BRC_SEL_INIT;
    what = _i;
    hook_decode(let_another_change, &is_running, 1);
    write_part(&first, "[0:128]", 5);
    ck_assert_int_eq(hook_calls(), 1);
    if (is_running)
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
    brc_array *a = scenario_array_at(&first, first.session, "/a");
    OK(&first, brc_sel_parse(&sel, a, "[0:1024]", &first.err));
    OK(&first, brc_array_read(a, &sel, got, sizeof(got), &first.err));
    for (int i = 0; i < ELEMENTS; i++)
        ck_assert_int_eq(got[i], i < 128 ? 5 : what == 0 && i < 640 ? 7 : i);
    ck_assert_uint_eq(brc_array_describe(a)->shape[0], what == 2 ? 2 * ELEMENTS : ELEMENTS);
    brc_array_free(a);
    scenario_whole(&first);
}

/* ---- what the other does in the middle of a codec's work, without waiting -------------------- */

static int tries, refused;

/* A handle that does not wait. */
static void open_hasty(void)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    scenario_close(&second);
    opts.registry = parts.reg;
    opts.wait_ms = -1;
    scenario_open(&second, &opts, 0);
    tries = refused = 0;
}

static void recreate(const char *dtype)
{
    const uint64_t shape = ELEMENTS, chunk = EDGE / 2;
    OK(&second, brc_node_remove(second.session, "/a", &second.err));
    brc_array_free(scenario_array(&second, "/a", dtype, 1, &shape, &chunk, "3", "[" LITTLE "]"));
}

static void reshape(uint64_t n)
{
    scenario_resize(&second, second.session, "/a", n);
}

static void set_codecs(const char *codecs)
{
    scenario_recode(&second, second.session, "/a", codecs, 0);
}

static void same_chunk(void)
{
    write_part(&second, "[128:256]", 7);
}

static void same_chunk_and_commit(void)
{
    same_chunk();
    scenario_commit(&second, "theirs");
}

static void other_codecs(void)
{
    set_codecs("[" LITTLE "]");
}

static void longer(void)
{
    reshape(2 * ELEMENTS);
}

static void an_attribute(void)
{
    OK(&second, brc_attrs_set(second.session, "/a", "unit", "\"K\"", &second.err));
}

static void another_array(void)
{
    recreate("int32");
}

static void a_write_discarded(void)
{
    OK(&second, brc_session_discard(second.session, &second.err));
}

static void the_array_gone(void)
{
    OK(&second, brc_node_remove(second.session, "/a", &second.err));
}

static void too_short(void)
{
    reshape(100);
}

static void another_type(void)
{
    recreate("int16");
}

/* first and last of what is written are 5; `middle` is what [128:256] then has, 0: its numbers. */
static const struct {
    void (*act)(void);
    int code; /* of the write that is in progress */
    int32_t middle, rest;
} meanwhile[] = {
    {same_chunk, BRC_OK, 7, 0},      {same_chunk_and_commit, BRC_OK, 7, 0},
    {other_codecs, BRC_OK, 0, 0},    {longer, BRC_OK, 0, 0},
    {an_attribute, BRC_OK, 0, 0},    {another_array, BRC_OK, 3, 3},
    {a_write_discarded, BRC_OK, 0, 0},
    {the_array_gone, BRC_ENOTFOUND, 0, 0},
    {too_short, BRC_EINVAL, 0, 0},   {another_type, BRC_EINVAL, 3, 3},
};
enum { MEANWHILE = sizeof(meanwhile) / sizeof(*meanwhile) };

static void act(void *ctx)
{
    (void)ctx;
    tries++;
    meanwhile[what].act();
}

static int write_first(const char *text, int32_t value)
{
    brc_sel sel = BRC_SEL_INIT;
    brc_buffer buffer = BRC_BUFFER_INIT;
    int32_t values[EDGE];
    for (int i = 0; i < EDGE; i++)
        values[i] = value;
    brc_array *a = scenario_array_at(&first, first.session, "/a");
    OK(&first, brc_sel_parse(&sel, a, text, &first.err));
    buffer.data = values;
    buffer.len = (size_t)brc_sel_count(&sel) * sizeof(*values);
    brc_io io = {.size = sizeof(io), .array = a, .sel = &sel, .buffer = &buffer};
    int rc = brc_write(&io, 1, &first.err);
    brc_array_free(a);
    return rc;
}

static void check_elements(const char *where, int32_t middle, int32_t rest)
{
    static int32_t got[2 * ELEMENTS];
    brc_array *a = scenario_array_at(&first, first.session, where);
    const uint64_t n = brc_array_describe(a)->shape[0];
    OK(&first, brc_array_read(a, NULL, got, (size_t)n * sizeof(*got), &first.err));
    for (int i = 0; i < ELEMENTS; i++)
        ck_assert_int_eq(got[i], i < 128  ? 5
                                 : i < 256 ? middle != 0 ? middle : i
                                           : rest != 0 ? rest : i);
    brc_array_free(a);
}

LOOP(others_are_not_made_to_wait, 0, 2 * MEANWHILE)
{
    what = _i % MEANWHILE;
    open_hasty();
    write_part(&second, "[900:901]", 900); /* there is a draft, and the array is in it */
    (_i < MEANWHILE ? hook_decode : hook_encode)(act, NULL, 1);
    int rc = write_first("[0:128]", 5);
    ck_assert_int_eq(tries, 1);
    ck_assert_msg(rc == meanwhile[what].code, "%d: %s", rc, first.err.message);
    if (rc == BRC_OK)
        check_elements("/a", meanwhile[what].middle, meanwhile[what].rest);
    else if (rc == BRC_ENOTFOUND)
        ck_assert_ptr_nonnull(strstr(first.err.message, "/a"));
    scenario_whole(&first);
}

/* ... however often the other comes: in the end it is locked out for once. */
static void same_chunk_again(void *ctx)
{
    brc_sel sel = BRC_SEL_INIT;
    int32_t value = 1000 + tries++;
    brc_array *a = scenario_array_at(&second, second.session, "/a");
    OK(&second, brc_sel_parse(&sel, a, "[128:256]", &second.err));
    int rc = brc_array_fill(a, &sel, &value, &second.err);
    brc_array_free(a);
    if (rc == BRC_OK)
        *(int32_t *)ctx = value;
    else
        refused += rc == BRC_EBUSY;
}

static void codecs_again(void *ctx)
{
    char codecs[200];
    brc_array *a = scenario_array_at(&second, second.session, "/a");
    snprintf(codecs, sizeof(codecs),
             "[" LITTLE "," HOOK_CODEC ",{\"name\":\"zstd\",\"configuration\":{\"level\":%d,"
             "\"checksum\":false}}]", 2 + tries++ % 18);
    int rc = brc_array_set_codecs(a, codecs, 0, &second.err);
    brc_array_free(a);
    refused += rc == BRC_EBUSY;
    *(int32_t *)ctx = 0;
}

LOOP(a_busy_neighbour_cannot_keep_it_from_its_end, 0, 4)
{
    int32_t last = 0;
    open_hasty();
    (_i % 2 ? hook_encode : hook_decode)(_i < 2 ? same_chunk_again : codecs_again, &last, 1000);
    OK(&first, write_first("[0:128]", 5));
    ck_assert_int_ge(refused, 1);
    ck_assert_int_ge(tries, 4);
    ck_assert_int_le(tries, 16);
    hook_decode(NULL, NULL, 0);
    check_elements("/a", last, 0);
    scenario_whole(&first);
}

/* ---- twice -------------------------------- */

/* At which lock after the chunk was changed the array gets other codecs, how many locks there were,
 * and how often the codecs were set. */
typedef struct twice {
    int at, locks, is_armed, changed;
} twice;

/* The change of codecs may come too late, or be kept out. */
static int codecs_at_lock(void *ctx)
{
    twice *o = ctx;
    brc_array *a;
    if (!o->is_armed || o->locks++ != o->at)
        return 0;
    o->is_armed = 0; /* not at its own locks */
    if (brc_array_open(&a, second.session, "/a", NULL) == BRC_OK) {
        o->changed += brc_array_set_codecs(a, "[" LITTLE "]", 0, NULL) == BRC_OK;
        brc_array_free(a);
    }
    o->is_armed = 1;
    return 0;
}

static void chunk_then_codecs(void *ctx)
{
    int32_t last = 0;
    same_chunk_again(&last);
    ((twice *)ctx)->is_armed = 1;
}

/* The chunk is another, so it is made again. By then the array may have other codecs, and those of
 * before may be freed. */
TEST(an_array_that_changes_while_its_chunk_is_made_again)
{
    twice o = {.at = 0};
    do {
        open_hasty();
        o.locks = o.is_armed = 0;
        lock_faults_set(codecs_at_lock, &o);
        hook_decode(chunk_then_codecs, &o, 1);
        OK(&first, write_first("[0:128]", 5));
        lock_faults_set(NULL, NULL);
        ck_assert_int_ge(tries, 1);
        check_elements("/a", 1000, 0);
        OK(&first, brc_session_discard(first.session, &first.err));
    } while (o.locks > o.at++);
    ck_assert_int_gt(o.changed, 1);
    scenario_whole(&first);
}

/* ---- drafts of one's own -------------------------------- */

static int64_t mine;

static void give_away(void *ctx)
{
    brc_session *s;
    (void)ctx;
    tries++;
    OK(&second, scenario_draft_open(&s, second.repo, mine, &second.err));
    OK(&second, brc_session_hand_over(s, second.session, &second.err));
    brc_session_free(s);
}

/* A session whose draft is handed over by another in the middle of a write says so. */
TEST(a_draft_that_goes_meanwhile)
{
    open_hasty();
    brc_session_free(first.session);
    OK(&first, brc_session_open(&first.session, first.repo, NULL, BRC_SESSION_PRIVATE,
                                &first.err));
    OK(&first, write_first("[300:301]", 300));
    mine = scenario_draft(&first, first.session);
    hook_encode(give_away, NULL, 1);
    FAILS(&first, BRC_ESTALE, write_first("[0:128]", 5));
    ck_assert_int_eq(tries, 1);
    ck_assert_int_eq(scenario_number(&second, second.session, "/a", 300), 300);
    ck_assert_int_eq(scenario_number(&second, second.session, "/a", 0), 0); /* not 5 */
}

/* ---- contents that are stored already -------------------------------- */

static void forget_known(void *ctx)
{
    (void)ctx;
    tries++;
    scenario_sql(&second, "DELETE FROM object WHERE kind=1 AND size=1024 AND id NOT IN"
                          " (SELECT id FROM draft_chunk WHERE id IS NOT NULL)");
}

/* A chunk that is found stored may be collected before it is referred to: then it is stored after
 * all. The first chunk has contents that an uncommitted chunk had; the second's work lets the
 * other come. */
TEST(what_was_known_is_gone)
{
    int32_t got[2 * EDGE], values[2 * EDGE];
    brc_sel sel = BRC_SEL_INIT;
    const uint64_t shape = 2 * EDGE, chunk = EDGE;
    brc_array_free(scenario_array(&first, "/b", "int32", 1, &shape, &chunk, "0",
                                  "[" HOOKED_CODECS "]"));
    for (int i = 0; i < 2 * EDGE; i++)
        values[i] = i < EDGE ? 77 : 78;
    brc_array *a = scenario_array_at(&first, first.session, "/b");
    OK(&first, brc_sel_parse(&sel, a, "[0:256]", &first.err));
    OK(&first, brc_array_write(a, &sel, values, sizeof(values) / 2, &first.err));
    const int32_t zero = 0;
    OK(&first, brc_array_fill(a, NULL, &zero, &first.err));
    open_hasty();
    scenario_close(&second);
    hook_encode(forget_known, NULL, 1);
    OK(&first, brc_array_write(a, NULL, values, sizeof(values), &first.err));
    ck_assert_int_eq(tries, 1);
    OK(&first, brc_array_read(a, NULL, got, sizeof(got), &first.err));
    ck_assert_mem_eq(got, values, sizeof(got));
    brc_array_free(a);
}

static void a_part_of_the_first(void *ctx)
{
    const int32_t seven = 7;
    (void)ctx;
    tries++;
    scenario_fill(&second, second.session, "/b", "[200:201]", &seven);
}

/* The store keeps one of two equal chunks: here the one that is then encoded again and differs. */
TEST(the_first_of_two_equal_chunks_becomes_another)
{
    brc_array *b;
    brc_io io[2];
    brc_sel sel[2] = {BRC_SEL_INIT, BRC_SEL_INIT};
    brc_buffer buffer = BRC_BUFFER_INIT;
    int32_t values[128];
    const uint64_t shape = 2 * EDGE, chunk = EDGE;
    b = scenario_array(&first, "/b", "int32", 1, &shape, &chunk, "0",
                       "[" HOOKED_CODECS "]");
    for (int i = 0; i < 128; i++)
        values[i] = 5;
    buffer.data = values;
    buffer.len = sizeof(values);
    for (int i = 0; i < 2; i++) {
        OK(&first, brc_sel_parse(&sel[i], b, i == 0 ? "[0:128]" : "[256:384]", &first.err));
        io[i] = (brc_io){.size = sizeof(brc_io), .array = b, .sel = &sel[i], .buffer = &buffer};
    }
    open_hasty();
    hook_encode(a_part_of_the_first, NULL, 1);
    OK(&first, brc_write(io, 2, &first.err));
    ck_assert_int_eq(tries, 1);
    brc_array_free(b);
    ck_assert_int_eq(scenario_number(&first, first.session, "/b", 0), 5);
    ck_assert_int_eq(scenario_number(&first, first.session, "/b", 200), 7);
    ck_assert_int_eq(scenario_number(&first, first.session, "/b", 256), 5);
    ck_assert_int_eq(scenario_number(&first, first.session, "/b", 456), 0);
    scenario_whole(&first);
}

static void store_the_same_chunk(void *ctx)
{
    (void)ctx;
    tries++;
    write_part(&second, "[256:512]", 5);
}

/* Others may store the contents that are being encoded: they are there once. */
TEST(what_was_new_is_there)
{
    open_hasty();
    hook_encode(store_the_same_chunk, NULL, 1);
    write_part(&first, "[0:256]", 5);
    ck_assert_int_eq(tries, 1);
    ck_assert_int_eq(scenario_ask(&first, "SELECT count(DISTINCT id) FROM draft_chunk"), 1);
    ck_assert_int_eq(scenario_ask(&first, "SELECT count(*) FROM draft_chunk"), 2);
    scenario_whole(&first);
}

/* ---- several regions, many chunks -------------------------------- */

/* Regions that meet in one chunk, and the other changes it too: the later region wins, and what
 * none has written is the other's. */
TEST(regions_that_meet_in_a_chunk)
{
    int32_t values[2][128];
    brc_io io[2];
    brc_sel sel[2] = {BRC_SEL_INIT, BRC_SEL_INIT};
    brc_buffer buffer[2] = {BRC_BUFFER_INIT, BRC_BUFFER_INIT};
    open_hasty();
    what = 0;
    brc_array *a = scenario_array_at(&first, first.session, "/a");
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 128; j++)
            values[i][j] = i == 0 ? 4 : 5;
        OK(&first, brc_sel_parse(&sel[i], a, i == 0 ? "[0:64]" : "[0:128]", &first.err));
        buffer[i].data = values[i];
        buffer[i].len = i == 0 ? 256 : 512;
        io[i] = (brc_io){.size = sizeof(brc_io), .array = a, .sel = &sel[i],
                         .buffer = &buffer[i]};
    }
    hook_decode(act, NULL, 1);
    OK(&first, brc_write(io, 2, &first.err));
    ck_assert_int_eq(tries, 1);
    brc_array_free(a);
    check_elements("/a", 7, 0);
    ck_assert_int_eq(scenario_ask(&first, "SELECT count(*) FROM draft"), 1);
    scenario_whole(&first);
}

enum { BIG = 1 << 20, BIGS = 20 };

static void a_byte_of_a_big_chunk(void *ctx)
{
    brc_sel sel = BRC_SEL_INIT;
    const uint8_t value = 9;
    char text[40];
    (void)ctx;
    tries++;
    brc_array *a = scenario_array_at(&second, second.session, "/big");
    snprintf(text, sizeof(text), "[%d:%d]", 3 * BIG + 10 + tries, 3 * BIG + 11 + tries);
    OK(&second, brc_sel_parse(&sel, a, text, &second.err));
    OK(&second, brc_array_fill(a, &sel, &value, &second.err));
    brc_array_free(a);
}

/* An element in each of many chunks is more than one batch: where others were in the way it is done
 * again as well, and no draft of it stays. */
LOOP(more_than_a_batch_is_done_again, 0, 2)
{
    const uint64_t shape = (uint64_t)BIGS * BIG, chunk = BIG;
    static uint8_t ones[BIGS], got[BIGS];
    brc_array *a;
    brc_sel sel = BRC_SEL_INIT;
    const uint8_t two = 2;
    a = scenario_array(&first, "/big", "uint8", 1, &shape, &chunk, "0",
                       "[\"bytes\"," HOOK_CODEC "," ZSTD "]");
    OK(&first, brc_array_fill(a, NULL, &two, &first.err));
    scenario_commit(&first, "big");
    open_hasty();
    memset(ones, 1, sizeof(ones));
    OK(&first, brc_sel_parse(&sel, a, "[::1048576]", &first.err));
    hook_decode(a_byte_of_a_big_chunk, NULL, 1 + _i * 50);
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    if (_i > 0) { /* so often that it locks the other out, which waits for that */
        scenario_close(&second);
        opts.registry = parts.reg;
        scenario_open(&second, &opts, 0);
        hook_decode(a_byte_of_a_big_chunk, NULL, 2);
    }
    OK(&first, brc_array_write(a, &sel, ones, sizeof(ones), &first.err));
    ck_assert_int_ge(tries, 1);
    OK(&first, brc_array_read(a, &sel, got, sizeof(got), &first.err));
    ck_assert_mem_eq(got, ones, sizeof(got));
    OK(&first, brc_sel_parse(&sel, a, "[3145739:3145740]", &first.err));
    OK(&first, brc_array_read(a, &sel, got, 1, &first.err));
    ck_assert_int_eq(got[0], 9);
    ck_assert_int_eq(scenario_ask(&first, "SELECT count(*) FROM draft"), 1);
    brc_array_free(a);
    scenario_whole(&first);
}

/* ---- processes -------------------------------- */

enum { ROUNDS = 1500 };

/* Each writes its half of the first chunk; what it wrote last is there when it comes again. */
static int write_half(const char *file, int half)
{
    scenario t;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    brc_registry *own = hook_registry(&t.err);
    brc_array *a;
    brc_sel sel = BRC_SEL_INIT;
    int32_t values[EDGE / 2], got[EDGE / 2];
    opts.registry = own;
    if (own == NULL || scenario_connect(&t.repo, file, &opts, &t.err) < 0 ||
        brc_session_open(&t.session, t.repo, NULL, BRC_SESSION_WRITE, &t.err) < 0 ||
        brc_array_open(&a, t.session, "/a", &t.err) < 0 ||
        brc_sel_parse(&sel, a, half == 0 ? "[0:128]" : "[128:256]", &t.err) < 0)
        return 2;
    for (int32_t round = 1; round <= ROUNDS; round++) {
        for (int i = 0; i < EDGE / 2; i++)
            values[i] = round * 2 + half;
        if (brc_array_write(a, &sel, values, sizeof(values), &t.err) < 0 ||
            brc_array_read(a, &sel, got, sizeof(got), &t.err) < 0) {
            fprintf(stderr, "half %d, round %d: %s\n", half, round, t.err.message);
            return 3;
        }
        if (memcmp(got, values, sizeof(got)) != 0)
            return 4;
    }
    brc_array_free(a);
    brc_session_free(t.session);
    brc_free(t.repo);
    brc_registry_free(own);
    return 0;
}

TEST(two_processes_write_halves_of_a_chunk)
{
    pid_t children[2];
    int status;
    scenario_close(&second);
    scenario_close(&first);
    for (int half = 0; half < 2; half++) {
        children[half] = fork();
        ck_assert_int_ge(children[half], 0);
        if (children[half] == 0)
            _exit(write_half(first.file, half));
    }
    for (int half = 0; half < 2; half++) {
        ck_assert_int_eq(waitpid(children[half], &status, 0), children[half]);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "half %d: %x", half, status);
    }
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.registry = parts.reg;
    scenario_open(&first, &opts, 0);
    scenario_open(&second, &opts, 0);
    for (int half = 0; half < 2; half++)
        for (int i = 0; i < EDGE / 2; i++)
            ck_assert_int_eq(scenario_number(&first, first.session, "/a",
                                             (uint64_t)(half * EDGE / 2 + i)),
                             ROUNDS * 2 + half);
    scenario_whole(&first);
}
