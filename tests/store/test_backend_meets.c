/*
 * Changes that others make to the file while a backend works: they need not wait for it, and
 * objects that they move meanwhile are found at their new place. "org.example.meets"
 * (tests/plugins/dirs.c), and "met", which workers call, say when they are called.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../kit/dirs_kit.h"
#include "../kit/plugin_kit.h"
#include "../kit/suite.h"

TEST_SUITE(backend_meets);

#define BIG "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]"
#define LITTLE "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]"
static const char *const meeting[] = { IN("meets", "a.chunks"), IN("met", "a.chunks") };

/* The call that is met, once, and the change that another handle makes then. */
static struct {
    dirs *d;
    const char *what;
    void (*act)(dirs *other);
    int times, wait_ms;
    pthread_mutex_t lock;
    void *so;
    void (**hook)(const char *what);
} met = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void on_meet(const char *what)
{
    pthread_mutex_lock(&met.lock);
    if (met.d != NULL && strcmp(what, met.what) == 0) {
        dirs other = *met.d;
        brc_open_opts opts = BRC_OPEN_OPTS_INIT;
        met.d = NULL; /* it may use the backend itself */
        met.times++;
        opts.registry = other.reg;
        opts.wait_ms = met.wait_ms;
        other.t.err = (brc_error)BRC_ERROR_INIT;
        pthread_mutex_unlock(&met.lock);
        scenario_open(&other.t, &opts, 0);
        met.act(&other);
        scenario_close(&other.t);
        return;
    }
    pthread_mutex_unlock(&met.lock);
}

static void meets_start(dirs *d)
{
    char path[4096];
    dirs_start(d);
    plugin_path(path, sizeof(path), "dirs");
    met.so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    ck_assert_ptr_nonnull(met.so);
    met.hook = dlsym(met.so, "dirs_meet");
    *met.hook = on_meet;
}

static void meets_stop(dirs *d)
{
    *met.hook = NULL;
    dlclose(met.so);
    dirs_stop(d);
}

/* From now on, at the next of these calls. Beside a worker's the caller's thread may look something
 * up; but it does not wait for the worker with a lock. */
enum { NOT_AT_ALL = -1, A_LITTLE = 5000 };

static void meet_at(dirs *d, const char *what, int wait_ms, void (*act)(dirs *other))
{
    met.what = what;
    met.wait_ms = wait_ms;
    met.act = act;
    met.times = 0;
    met.d = d;
}

/* ---- what is fetched moves -------------------------------- */

static void move_into_the_file(dirs *other)
{
    char folder[256];
    brc_array *a = dirs_array(other, other->t.session, "/a");
    OK(&other->t, brc_array_set_backend(a, INLINE, &other->t.err));
    OK(&other->t, brc_array_set_codecs(a, BIG, 1, &other->t.err));
    brc_array_free(a);
    dirs_path(other, folder, sizeof(folder), "a.chunks");
    brc_tree_remove(folder);
}

/* Under the same place, none, but with another sum in their names. */
static void encode_anew(dirs *other)
{
    char folder[256], old[CHUNKS][400];
    int n = 0;
    dirs_path(other, folder, sizeof(folder), "a.chunks");
    DIR *dir = opendir(folder);
    ck_assert_ptr_nonnull(dir);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;)
        if (e->d_name[0] != '.') {
            ck_assert_int_lt(n, CHUNKS);
            snprintf(old[n++], sizeof(old[0]), "%s/%.100s", folder, e->d_name);
        }
    closedir(dir);
    brc_array *a = dirs_array(other, other->t.session, "/a");
    OK(&other->t, brc_array_set_codecs(a, BIG, 1, &other->t.err));
    brc_array_free(a);
    while (n > 0)
        ck_assert_int_eq(unlink(old[--n]), 0);
}

LOOP(what_is_encoded_anew_while_it_is_fetched_has_another_name, 0, 2)
{
    dirs d;
    meets_start(&d);
    brc_array *a = dirs_new(&d, "/a", meeting[_i]);
    OK(&d.t, brc_array_set_codecs(a, LITTLE, 0, &d.t.err));
    dirs_put(&d, a, 700);
    ck_assert_int_eq(scenario_ask(&d.t, "SELECT max(stored)=32 AND min(stored)=32 FROM object"
                                        " WHERE kind=1"),
                     1);
    scenario_commit(&d.t, "little");
    meet_at(&d, "fetch", A_LITTLE, encode_anew);
    dirs_check(&d, a, 700);
    ck_assert_int_eq(met.times, 1);
    ck_assert_int_eq(scenario_ask(&d.t, "SELECT max(stored)=32 AND min(stored)=32 FROM object"
                                        " WHERE kind=1"),
                     1);
    brc_array_free(a);
    scenario_whole(&d.t);
    meets_stop(&d);
}

LOOP(what_moves_while_it_is_fetched_is_looked_up_once_more, 0, 4)
{
    dirs d;
    meets_start(&d);
    brc_array *a = dirs_new(&d, "/a", meeting[_i % 2]);
    dirs_put(&d, a, 700);
    scenario_commit(&d.t, "outside");
    meet_at(&d, "fetch", A_LITTLE, move_into_the_file);
    if (_i < 2)
        dirs_check(&d, a, 700);
    else
        ck_assert_int_eq(dirs_get_chunk(&d, a, 3), 700 + 3 * CHUNK);
    ck_assert_int_eq(met.times, 1);
    ck_assert_int_eq(dirs_chunks(&d, "inline"), CHUNKS);
    dirs_check(&d, a, 700);
    brc_array_free(a);
    scenario_whole(&d.t);
    meets_stop(&d);
}

static void lose_all(dirs *other)
{
    char folder[256];
    dirs_path(other, folder, sizeof(folder), "a.chunks");
    brc_tree_remove(folder);
    scenario_sql(&other->t, "DELETE FROM object WHERE kind=1");
}

LOOP(what_is_collected_while_it_is_fetched_is_one_clear_error, 0, 2)
{
    int32_t got[N];
    dirs d;
    meets_start(&d);
    brc_array *a = dirs_new(&d, "/a", meeting[_i]);
    dirs_put(&d, a, 700);
    meet_at(&d, "fetch", A_LITTLE, lose_all);
    FAILS(&d.t, BRC_ESTALE, brc_array_read(a, NULL, got, sizeof(got), &d.t.err));
    dirs_say(&d, "was removed by a garbage collection during the read");
    ck_assert_int_eq(met.times, 1);
    brc_array_free(a);
    meets_stop(&d);
}

/* ---- nobody waits for a backend -------------------------------- */

static void commit_something(dirs *other)
{
    OK(&other->t, brc_group_create(other->t.session, "/met", NULL, &other->t.err));
    scenario_commit(&other->t, "in the middle");
}

LOOP(others_commit_while_a_backend_works, 0, 6)
{
    static const char *const calls[] = { "put", "flush", "fetch" };
    const char *call = calls[_i / 2];
    dirs d;
    meets_start(&d);
    brc_array *a = dirs_new(&d, "/a", meeting[_i % 2]);
    dirs_put(&d, a, 5);
    scenario_commit(&d.t, "before");
    dirs_put(&d, a, 300); /* so that a new draft is none of what is looked at */
    meet_at(&d, call, _i % 2 ? A_LITTLE : NOT_AT_ALL, commit_something);
    if (strcmp(call, "fetch") == 0)
        dirs_check(&d, a, 300);
    else
        dirs_put(&d, a, 600);
    ck_assert_int_eq(met.times, 1);
    dirs_check(&d, a, strcmp(call, "fetch") == 0 ? 300 : 600);
    brc_array_free(a);
    dirs_reopen(&d);
    a = dirs_array(&d, d.t.session, "/a");
    dirs_check(&d, a, strcmp(call, "fetch") == 0 ? 300 : 600);
    brc_array_free(a);
    scenario_whole(&d.t);
    meets_stop(&d);
}

/* Its batches are transactions of their own, and a backend works between them. */
LOOP(others_commit_while_a_backend_works_in_a_bulk_write, 0, 4)
{
    static const char *const calls[] = { "put", "flush" };
    dirs d;
    meets_start(&d);
    brc_array *a = dirs_new(&d, "/a", meeting[_i % 2]);
    dirs_put(&d, a, 5);
    scenario_commit(&d.t, "before");
    OK(&d.t, brc_bulk_begin(d.t.session, &d.t.err));
    meet_at(&d, calls[_i / 2], _i % 2 ? A_LITTLE : NOT_AT_ALL, commit_something);
    dirs_put(&d, a, 600);
    ck_assert_int_eq(met.times, 1);
    OK(&d.t, brc_bulk_end(d.t.session, BRC_END_KEEP, &d.t.err));
    dirs_check(&d, a, 600);
    brc_array_free(a);
    scenario_whole(&d.t);
    meets_stop(&d);
}

/* One chunk of many is changed in part: the old one is fetched, the new one put. */
LOOP(a_write_in_part_keeps_nobody_waiting, 0, 6)
{
    static const char *const calls[] = { "fetch", "put", "flush" };
    int32_t value = -4;
    brc_sel sel = BRC_SEL_INIT;
    dirs d;
    meets_start(&d);
    brc_array *a = dirs_new(&d, "/a", meeting[_i % 2]);
    dirs_put(&d, a, 5);
    scenario_commit(&d.t, "before");
    meet_at(&d, calls[_i / 2], _i % 2 ? A_LITTLE : NOT_AT_ALL, commit_something);
    sel.ndim = 1;
    sel.start[0] = 3;
    sel.count[0] = sel.step[0] = 1;
    OK(&d.t, brc_array_write(a, &sel, &value, sizeof(value), &d.t.err));
    ck_assert_int_eq(met.times, 1);
    OK(&d.t, brc_array_read(a, &sel, &value, sizeof(value), &d.t.err));
    ck_assert_int_eq(value, -4);
    ck_assert_int_eq(dirs_get_chunk(&d, a, 0), 5);
    brc_array_free(a);
    scenario_whole(&d.t);
    meets_stop(&d);
}

/* A client of the key view: one key, and several at once, of which two have equal bytes. */
LOOP(setting_keys_keeps_nobody_waiting, 0, 8)
{
    static const char *const calls[] = { "put", "flush" };
    static const char *const keys[] = { "a/c/0", "a/c/1", "a/c/2" };
    int32_t chunk[3][CHUNK];
    const void *data[3];
    size_t lens[3];
    const size_t n = _i / 4 ? 3 : 1;
    dirs d;
    meets_start(&d);
    brc_array *a = dirs_new(&d, "/a", meeting[_i % 2]);
    OK(&d.t, brc_array_set_codecs(a, LITTLE, 0, &d.t.err));
    dirs_put(&d, a, 5);
    scenario_commit(&d.t, "before");
    dirs_put(&d, a, 300);
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < CHUNK; k++)
            chunk[i][k] = i == 2 ? k : -i * CHUNK + 100 * k - 7;
        data[i] = i == 1 && n > 1 ? chunk[0] : chunk[i];
        lens[i] = sizeof(chunk[i]);
    }
    meet_at(&d, calls[_i / 2 % 2], NOT_AT_ALL, commit_something);
    OK(&d.t, brc_key_set_many(d.t.session, keys, data, lens, n, &d.t.err));
    ck_assert_int_eq(met.times, 1);
    ck_assert_int_eq(dirs_get_chunk(&d, a, 0), -7);
    ck_assert_int_eq(dirs_get_chunk(&d, a, 1), n > 1 ? -7 : 300 + CHUNK);
    ck_assert_int_eq(dirs_get_chunk(&d, a, 2), n > 1 ? 0 : 300 + 2 * CHUNK);
    brc_array_free(a);
    scenario_whole(&d.t);
    meets_stop(&d);
}
