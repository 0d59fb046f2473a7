/*
 * Objects in other backends that no row of the file ever named: a process is killed between a put
 * and its commit, and the next collection removes what it put, and nothing else. Nothing is taken
 * from a writer that is about to commit, from other repositories in the same folder, and from
 * people.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../kit/dirs_kit.h"
#include "../kit/plugin_kit.h"
#include "../kit/suite.h"

TEST_SUITE(gc_strays);

#define LITTLE "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]"

static dirs d;

/* ---- the plug-in's calls -------------------------------- */

static void *plugin;

/* From now on each call of "meets" and "met" is told to this function (tests/plugins/dirs.c). */
static void tell(void (*to)(const char *what))
{
    char path[4096];
    if (plugin == NULL) {
        plugin_path(path, sizeof(path), "dirs");
        plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        ck_assert_ptr_nonnull(plugin);
    }
    void (**hook)(const char *what) = dlsym(plugin, "dirs_meet");
    ck_assert_ptr_nonnull(hook);
    *hook = to;
}

/* ---- what is there -------------------------------- */

static int files(void)
{
    return dirs_files(&d, "a.chunks", NULL);
}

/* How many objects the file names there. */
static int named(void)
{
    return (int)scenario_ask(&d.t, "SELECT count(*) FROM object WHERE backend<>0");
}

static void collect(void)
{
    OK(&d.t, brc_gc(d.t.repo, NULL, NULL, &d.t.err));
}

/* The array that is committed before anything else, in this backend or, at first, in none. */
static void strays_start(const char *backend, int is_used)
{
    dirs_start(&d);
    scenario_no_window(&d.t);
    brc_array *a = dirs_new(&d, "/a", backend);
    OK(&d.t, brc_array_set_codecs(a, LITTLE, 0, &d.t.err));
    if (is_used)
        dirs_put(&d, a, 3);
    brc_array_free(a);
    scenario_commit(&d.t, "first");
}

static void strays_stop(void)
{
    scenario_whole(&d.t);
    tell(NULL);
    dirs_stop(&d);
}

static void make_strays(void)
{
    brc_array *a = dirs_array(&d, d.t.session, "/a");
    OK(&d.t, brc_begin(d.t.repo, &d.t.err));
    dirs_put(&d, a, 5000);
    OK(&d.t, brc_end(d.t.repo, 0, &d.t.err));
    brc_array_free(a);
}

/* ---- killed -------------------------------- */

enum { ALONE, IN_TRANSACTION, IN_BULK, BY_KEY, WAYS };

static void write_in_a_way(int way)
{
    brc_array *a = dirs_array(&d, d.t.session, "/a");
    int32_t chunk[CHUNK];
    if (way == IN_TRANSACTION)
        OK(&d.t, brc_begin(d.t.repo, &d.t.err));
    if (way == IN_BULK)
        OK(&d.t, brc_bulk_begin(d.t.session, &d.t.err));
    for (int i = 0; i < CHUNK; i++)
        chunk[i] = 70000 + i;
    if (way == BY_KEY)
        OK(&d.t, brc_key_set(d.t.session, "a/c/1", chunk, sizeof(chunk), 0, &d.t.err));
    else
        dirs_put(&d, a, 5000);
    raise(SIGKILL); /* it is still to be committed, or nothing has killed it */
}

static const char *fatal;

static void die_there(const char *what)
{
    if (strcmp(what, fatal) == 0)
        raise(SIGKILL);
}

/* A child does that, and is killed at this call. */
static void killed_at(const char *call, int way)
{
    int status;
    dirs_close(&d);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        dirs_open(&d, 0);
        fatal = call;
        tell(die_there);
        write_in_a_way(way);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
    dirs_open(&d, 0);
}

static const char *const meeting[] = {IN("meets", "a.chunks"), IN("met", "a.chunks")};
static const char *const calls[] = {"half", "done", "flush", "flushed", "commit"};
enum { CALLS = sizeof(calls) / sizeof(calls[0]), ALL_KILLS = 4 * WAYS * CALLS };

CASE("strays", .timeout = 60);

/* At each call, in each way, on workers and not, into an array that has chunks there and into one
 * whose backend was never put into. */
LOOP(what_a_killed_writer_put_goes, 0, ALL_KILLS)
{
    const int way = _i / CALLS % WAYS, is_used = _i / CALLS / WAYS % 2;
    strays_start(meeting[_i / CALLS / WAYS / 2], is_used);
    const int before = files();
    killed_at(calls[_i % CALLS], way);
    /* at "commit" the library has committed what is its own to commit */
    const int is_committed = strcmp(calls[_i % CALLS], "commit") == 0 &&
                             (way == ALONE || way == BY_KEY);
    ck_assert_int_ge(files(), before);
    collect();
    ck_assert_int_eq(files(), named());
    ck_assert_int_ge(files(), before);
    if (!is_committed)
        ck_assert_int_eq(files(), before);
    brc_array *a = dirs_array(&d, d.t.session, "/a");
    if (is_used && !is_committed)
        dirs_check(&d, a, 3);
    dirs_put(&d, a, 5000); /* the same once more: it is put again */
    dirs_check(&d, a, 5000);
    brc_array_free(a);
    strays_stop();
}

LOOP(a_pack_that_a_killed_writer_put_goes, 0, WAYS)
{
    strays_start(IN("packdies", "a.chunks"), 0);
    killed_at("flush", _i);
    ck_assert_int_ge(files(), 1);
    collect();
    ck_assert_int_eq(files(), 0);
    ck_assert_int_eq(named(), 0);
    strays_stop();
}

/* ... in the middle of a file: what its name begins with is the canonical name. One that is being
 * written stays. */
TEST(half_a_file_goes_when_its_writer_is_dead)
{
    char path[512], first[512];
    strays_start(DIR_A, 1);
    const int before = files();
    const pid_t child = fork();
    if (child == 0)
        _exit(0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    dirs_files(&d, "a.chunks", first);
    for (int lives = 0; lives < 2; lives++) {
        snprintf(path, sizeof(path), "%.480s.%ld-abc", first, (long)(lives ? getpid() : child));
        const int fd = open(path, O_WRONLY | O_CREAT, 0666);
        ck_assert_int_ge(fd, 0);
        close(fd);
    }
    ck_assert_int_eq(files(), before + 2);
    collect();
    ck_assert_int_eq(files(), before + 1);
    ck_assert_int_eq(access(path, F_OK), 0);
    strays_stop();
}

/* ---- undone -------------------------------- */

LOOP(what_an_undone_transaction_put_goes, 0, 2)
{
    strays_start(_i == 0 ? DIR_A : IN("packs", "a.chunks"), 1);
    const int before = files();
    make_strays();
    ck_assert_int_gt(files(), before);
    collect();
    ck_assert_int_eq(files(), before);
    brc_array *a = dirs_array(&d, d.t.session, "/a");
    dirs_check(&d, a, 3);
    brc_array_free(a);
    strays_stop();
}

/* ---- beside who is about to commit -------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int has_put, is_released;
static const char *awaited;

static void raise_flag(int *flag)
{
    pthread_mutex_lock(&lock);
    *flag = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void wait_for(const int *flag)
{
    pthread_mutex_lock(&lock);
    while (!*flag)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

/* A collection leaves the objects that were put after it began; these were put long before. */
static void make_old(void)
{
    char folder[256], path[520];
    const struct timespec then[2] = {{1000000000, 0}, {1000000000, 0}};
    dirs_path(&d, folder, sizeof(folder), "a.chunks");
    DIR *dir = opendir(folder);
    ck_assert_ptr_nonnull(dir);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        snprintf(path, sizeof(path), "%s/%.250s", folder, e->d_name);
        if (e->d_name[0] != '.')
            ck_assert_int_eq(utimensat(AT_FDCWD, path, then, 0), 0);
    }
    closedir(dir);
}

/* The writer waits behind that call, until the collection is through. */
static void hold_writer(const char *what)
{
    if (strcmp(what, awaited) != 0 || has_put)
        return;
    make_old();
    raise_flag(&has_put);
    wait_for(&is_released);
}

static int way_of_writer;

static void *writer(void *unused)
{
    (void)unused;
    int32_t chunk[CHUNK];
    brc_array *a = dirs_array(&d, d.t.session, "/a");
    for (int i = 0; i < CHUNK; i++)
        chunk[i] = 70000 + i;
    if (way_of_writer == IN_BULK)
        OK(&d.t, brc_bulk_begin(d.t.session, &d.t.err));
    if (way_of_writer == BY_KEY)
        OK(&d.t, brc_key_set(d.t.session, "a/c/1", chunk, sizeof(chunk), 0, &d.t.err));
    else
        dirs_put(&d, a, 5000);
    if (way_of_writer == IN_BULK)
        OK(&d.t, brc_bulk_end(d.t.session, BRC_END_KEEP, &d.t.err));
    brc_array_free(a);
    return NULL;
}

static pthread_t thread;

static void start_writer(void)
{
    ck_assert_int_eq(pthread_create(&thread, NULL, writer, NULL), 0);
    wait_for(&has_put);
}

/* The collection itself: behind its beginning, before it lists. */
static void start_writer_at_list(const char *what)
{
    if (strcmp(what, "list") == 0 && !has_put)
        start_writer();
    else if (strcmp(what, "list") != 0)
        hold_writer(what);
}

static void check_what_was_written(int way)
{
    brc_array *a = dirs_array(&d, d.t.session, "/a");
    if (way == BY_KEY)
        ck_assert_int_eq(dirs_get_chunk(&d, a, 1), 70000);
    else
        dirs_check(&d, a, 5000);
    brc_array_free(a);
    ck_assert_int_eq(dirs_fsck(&d).n, 0);
}

static const int lively[] = {ALONE, IN_BULK, BY_KEY};
static const char *const held[] = {"done", "flushed"};
enum { ALL_HELD = 3 * 2 * 2 };

/* `within`: the writer begins in the middle of the collection. */
static void beside_a_writer(int i, int within)
{
    dirs other;
    way_of_writer = lively[i % 3];
    awaited = held[i / 3 % 2];
    has_put = is_released = 0;
    strays_start(meeting[i / 6], 1);
    other = d;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.registry = d.reg;
    other.t.err = (brc_error)BRC_ERROR_INIT;
    scenario_open(&other.t, &opts, 0);
    tell(within ? start_writer_at_list : hold_writer);
    if (!within)
        start_writer();
    OK(&other.t, brc_gc(other.t.repo, NULL, NULL, &other.t.err));
    raise_flag(&is_released);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    scenario_close(&other.t);
    check_what_was_written(way_of_writer);
    collect();
    check_what_was_written(way_of_writer);
    ck_assert_int_eq(files(), named());
    strays_stop();
}

LOOP(a_collection_takes_nothing_from_who_is_about_to_commit, 0, ALL_HELD)
{
    beside_a_writer(_i, 0);
}

LOOP(nor_from_who_began_while_it_ran, 0, ALL_HELD)
{
    beside_a_writer(_i, 1);
}

/* ---- between the list and the drop -------------------------------- */

static int listed, by_another;

/* Somebody commits what has just been listed: into this file, or into another beside it. */
static void commit_what_is_listed(const char *what)
{
    dirs other = d;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    if (strcmp(what, "listed") != 0 || listed++ > 0)
        return;
    if (by_another)
        dirs_path(&d, other.t.file, sizeof(other.t.file), "other.brc");
    opts.registry = d.reg;
    other.t.err = (brc_error)BRC_ERROR_INIT;
    scenario_open(&other.t, &opts, by_another ? BRC_OPEN_CREATE : 0);
    brc_array *a = dirs_new(&other, "/now", meeting[0]);
    OK(&other.t, brc_array_set_codecs(a, LITTLE, 0, &other.t.err));
    dirs_put(&other, a, 5000);
    brc_array_free(a);
    scenario_commit(&other.t, "what was a stray");
    scenario_close(&other.t);
}

LOOP(what_gets_a_name_after_it_was_listed_stays, 0, 2)
{
    strays_start(meeting[0], 1);
    make_strays();
    by_another = _i;
    listed = 0;
    tell(commit_what_is_listed);
    collect();
    ck_assert_int_ge(listed, 1);
    tell(NULL);
    if (by_another)
        dirs_path(&d, d.t.file, sizeof(d.t.file), "other.brc");
    dirs_reopen(&d);
    brc_array *a = dirs_array(&d, d.t.session, "/now");
    dirs_check(&d, a, 5000);
    brc_array_free(a);
    strays_stop();
}

/* ---- other repositories, and people -------------------------------- */

static void copy_file(const char *to)
{
    char buf[4096];
    ssize_t n;
    const int in = open(d.t.file, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_EXCL, 0666);
    ck_assert(in >= 0 && out >= 0);
    while ((n = read(in, buf, sizeof(buf))) > 0)
        ck_assert_int_eq(write(out, buf, (size_t)n), n);
    close(in);
    close(out);
}

/* A copy of the file, or another repository, uses the same folder, and has put what the first one
 * does not know. */
LOOP(where_others_have_put_something_all_stays, 0, 4)
{
    dirs other;
    char path[512];
    const char *const backend = _i / 2 == 0 ? DIR_A : IN("packs", "a.chunks");
    strays_start(backend, 1);
    dirs_path(&d, path, sizeof(path), "other.brc");
    if (_i % 2 == 0) {
        dirs_close(&d);
        copy_file(path);
        dirs_open(&d, 0);
    }
    other = d;
    ck_assert_int_lt(snprintf(other.t.file, sizeof(other.t.file), "%s", path), 96);
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.registry = d.reg;
    scenario_open(&other.t, &opts, _i % 2 == 0 ? 0 : BRC_OPEN_CREATE);
    brc_array *theirs = dirs_new(&other, "/theirs", backend);
    dirs_put(&other, theirs, 900);
    scenario_commit(&other.t, "theirs");
    make_strays();
    const int before = files();
    collect();
    ck_assert_int_eq(files(), before);
    dirs_check(&other, theirs, 900);
    ck_assert_int_eq(dirs_fsck(&other).n, 0);
    OK(&other.t, brc_gc(other.t.repo, NULL, NULL, &other.t.err));
    ck_assert_int_eq(files(), before);
    brc_array_free(theirs);
    scenario_close(&other.t);
    strays_stop();
}

static void make_plain_file(const char *name)
{
    char path[512];
    dirs_path(&d, path, sizeof(path), name);
    const int fd = open(path, O_WRONLY | O_CREAT, 0666);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

/* Two backends of one file in one folder: each knows its own chunks alone. */
TEST(where_another_backend_puts_too_all_stays)
{
    strays_start(DIR_A, 1);
    brc_array *b = dirs_new(&d, "/b", HERE);
    dirs_put(&d, b, 900);
    scenario_commit(&d.t, "another");
    make_strays();
    const int before = files();
    collect();
    ck_assert_int_eq(files(), before);
    dirs_check(&d, b, 900);
    brc_array_free(b);
    strays_stop();
}

TEST(what_people_put_there_stays)
{
    strays_start(DIR_A, 1);
    const int before = files();
    make_plain_file("a.chunks/README.md");
    make_plain_file("a.chunks/other.1-2");
    make_strays();
    collect();
    ck_assert_int_eq(files(), before + 2);
    strays_stop();
}

/* Nobody knows whose it is: an earlier version kept no list of users. */
TEST(what_was_in_the_folder_before_stays)
{
    char path[512];
    dirs_start(&d);
    dirs_path(&d, path, sizeof(path), "a.chunks");
    ck_assert_int_eq(mkdir(path, 0777), 0);
    make_plain_file("a.chunks/00112233445566778899aabbccddeeff-0123456789abcdef");
    brc_array *a = dirs_new(&d, "/a", DIR_A);
    dirs_put(&d, a, 3);
    brc_array_free(a);
    scenario_commit(&d.t, "first");
    make_strays();
    const int before = files();
    collect();
    ck_assert_int_eq(files(), before);
    strays_stop();
}
