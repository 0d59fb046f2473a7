/*
 * Backends that are missing, damaged or full, that lie or die (tests/plugins/dirs.c), and files
 * that say wrong things about them; and that the kit for strangers finds what is wrong.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/base/json.h"
#include "../../src/codec/registry.h"
#include "../kit/backend_kit.h"
#include "../kit/dirs_kit.h"
#include "../kit/suite.h"

TEST_SUITE(backend);

/* ---- what may be missing -------------------------------- */

TEST(without_the_plug_in_all_but_the_values_is_there)
{
    int32_t got[N];
    dirs d;
    brc_iter *it;
    const brc_change *change;
    dirs_start(&d);
    brc_array *a = dirs_new(&d, "/a", DIR_A), *b = dirs_new(&d, "/b", NULL);
    dirs_put(&d, a, 3);
    dirs_put(&d, b, 1000);
    scenario_commit(&d.t, "both");
    brc_array_free(a);
    brc_array_free(b);
    dirs_close(&d);
    scenario_open(&d.t, NULL, 0);
    a = dirs_array(&d, d.t.session, "/a");
    ck_assert_str_eq(brc_array_describe(a)->backend_json, DIR_A);
    uint64_t chunks, bytes;
    OK(&d.t, brc_array_stat(&chunks, &bytes, a, &d.t.err));
    ck_assert_uint_eq(chunks, CHUNKS);
    FAILS(&d.t, BRC_EUNSUPPORTED, brc_array_read(a, NULL, got, sizeof(got), &d.t.err));
    dirs_say(&d, "org.example.dir");
    dirs_say(&d, "/a chunk (0)");
    dirs_values(got, 50);
    FAILS(&d.t, BRC_EUNSUPPORTED, brc_array_write(a, NULL, got, sizeof(got), &d.t.err));
    dirs_say(&d, "org.example.dir");
    /* from now on it can be written, and read where it was */
    OK(&d.t, brc_array_set_backend(a, NULL, &d.t.err));
    dirs_put_chunk(&d, a, 2, 8);
    ck_assert_int_eq(dirs_get_chunk(&d, a, 2), 8);
    b = dirs_array(&d, d.t.session, "/b");
    dirs_check(&d, b, 1000);
    OK(&d.t, brc_node_move(d.t.session, "/a", "/moved", 0, &d.t.err));
    scenario_commit(&d.t, "moved");
    OK(&d.t, brc_diff(&it, d.t.repo, "main~1", "main", NULL, &d.t.err));
    ck_assert_int_eq(brc_next(it, &change, &d.t.err), 1);
    ck_assert_uint_eq(change->chunks_changed, 1);
    brc_iter_free(it);
    finding f = dirs_fsck(&d);
    ck_assert_int_eq(f.n, 1);
    ck_assert_msg(strstr(f.text, "8 chunks were not checked") != NULL, "%s", f.text);
    brc_array_free(a);
    brc_array_free(b);
    scenario_close(&d.t);
    dirs_open(&d, 0);
    scenario_whole(&d.t);
    dirs_stop(&d);
}

LOOP(a_file_without_its_folder_says_so, 0, 2)
{
    char folder[256], away[256];
    int32_t got[N];
    dirs d;
    dirs_start(&d);
    brc_array *a = dirs_new(&d, "/a", _i ? DIR_A : HERE);
    dirs_put(&d, a, 3);
    scenario_commit(&d.t, "values");
    dirs_path(&d, folder, sizeof(folder), "a.chunks");
    dirs_path(&d, away, sizeof(away), "away");
    ck_assert_int_eq(rename(folder, away), 0);
    FAILS(&d.t, BRC_ECORRUPT, brc_array_read(a, NULL, got, sizeof(got), &d.t.err));
    dirs_say(&d, "there is no folder");
    dirs_say(&d, folder);
    dirs_say(&d, "/a chunk (0)");
    ck_assert_int_eq(rename(away, folder), 0);
    dirs_check(&d, a, 3);
    brc_array_free(a);
    dirs_stop(&d);
}

TEST(fsck_names_files_that_are_gone_or_damaged)
{
    char first[512], byte;
    int32_t got[N];
    finding f;
    dirs d;
    dirs_start(&d);
    brc_array *a = dirs_new(&d, "/a", DIR_A);
    dirs_put(&d, a, 3);
    scenario_commit(&d.t, "values");
    ck_assert_int_eq(dirs_files(&d, "a.chunks", first), CHUNKS);
    int fd = open(first, O_RDWR);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pread(fd, &byte, 1, 3), 1);
    byte ^= 4;
    ck_assert_int_eq(pwrite(fd, &byte, 1, 3), 1);
    f = dirs_fsck(&d);
    ck_assert_int_eq(f.n, 1);
    ck_assert_int_eq(f.missing, 0);
    ck_assert_msg(strstr(f.text, "checksum") != NULL && strstr(f.text, "/a chunk (") != NULL, "%s",
                  f.text);
    FAILS(&d.t, BRC_ECORRUPT, brc_array_read(a, NULL, got, sizeof(got), &d.t.err));
    ck_assert_int_eq(ftruncate(fd, 5), 0);
    close(fd);
    f = dirs_fsck(&d);
    ck_assert_int_eq(f.n, 1);
    ck_assert_msg(strstr(f.text, "5 bytes") != NULL, "%s", f.text);
    ck_assert_int_eq(unlink(first), 0);
    f = dirs_fsck(&d);
    ck_assert_int_eq(f.n, 1);
    ck_assert_int_eq(f.missing, 1);
    ck_assert_msg(strstr(f.text, first) != NULL && strstr(f.text, "/a chunk (") != NULL, "%s",
                  f.text);
    brc_array_free(a);
    dirs_stop(&d);
}

TEST(bytes_that_were_never_put_are_not_believed)
{
    int32_t got[N];
    dirs d;
    dirs_start(&d);
    brc_array *a = dirs_new(&d, "/a", "org.example.liar");
    dirs_put(&d, a, 3);
    FAILS(&d.t, BRC_ECORRUPT, brc_array_read(a, NULL, got, sizeof(got), &d.t.err));
    dirs_say(&d, "checksum");
    brc_array_free(a);
    dirs_stop(&d);
}

/* ---- failures on the way -------------------------------- */

TEST(what_is_discarded_leaves_only_garbage)
{
    dirs d;
    dirs_start(&d);
    brc_array *a = dirs_new(&d, "/a", DIR_A);
    scenario_commit(&d.t, "empty");
    dirs_put(&d, a, 3);
    ck_assert_int_eq(dirs_files(&d, "a.chunks", NULL), CHUNKS);
    OK(&d.t, brc_session_discard(d.t.session, &d.t.err));
    ck_assert_int_eq(scenario_clean(&d.t), 1);
    ck_assert_int_eq(dirs_get_chunk(&d, a, 0), 0);
    dirs_put(&d, a, 3);
    ck_assert_int_eq(dirs_files(&d, "a.chunks", NULL), CHUNKS);
    dirs_check(&d, a, 3);
    scenario_commit(&d.t, "again");
    scenario_whole(&d.t);
    brc_array_free(a);
    dirs_stop(&d);
}

LOOP(a_backend_that_fails_stores_nothing, 0, 3)
{
    static const struct {
        const char *name, *words;
        int code;
    } bad[] = {
        { "org.example.full", "No space left", BRC_ENOSPACE }, /* at put()    */
        { "org.example.late", "No space left", BRC_ENOSPACE }, /* at flush()  */
        { "org.example.odd", "returned 7", BRC_EINTERNAL },
    };
    int32_t data[N];
    dirs d;
    dirs_start(&d);
    brc_array *a = dirs_new(&d, "/a", NULL);
    dirs_put(&d, a, 1);
    OK(&d.t, brc_array_set_backend(a, bad[_i].name, &d.t.err));
    scenario_commit(&d.t, "bad");
    dirs_values(data, 500);
    FAILS(&d.t, bad[_i].code, brc_array_write(a, NULL, data, sizeof(data), &d.t.err));
    dirs_say(&d, bad[_i].words);
    dirs_say(&d, bad[_i].name);
    ck_assert_int_eq(scenario_clean(&d.t), 1);
    dirs_check(&d, a, 1);
    OK(&d.t, brc_array_set_backend(a, DIR_A, &d.t.err));
    dirs_put(&d, a, 500);
    scenario_commit(&d.t, "good");
    dirs_check(&d, a, 500);
    scenario_whole(&d.t);
    brc_array_free(a);
    dirs_stop(&d);
}

LOOP(b25_a_read_only_backend_takes_no_array, 0, 2)
{
    static const char *const names[] = { "org.example.old", "external" };
    dirs d;
    dirs_start(&d);
    brc_array *a = dirs_new(&d, "/a", NULL);
    dirs_put(&d, a, 1);
    scenario_commit(&d.t, "first");
    FAILS(&d.t, BRC_EUNSUPPORTED, brc_array_set_backend(a, names[_i], &d.t.err));
    dirs_say(&d, "is read-only");
    dirs_say(&d, names[_i]);
    FAILS(&d.t, BRC_EUNSUPPORTED, brc_config_set(d.t.repo, "backend", names[_i], &d.t.err));
    ck_assert_int_eq(scenario_clean(&d.t), 1);
    dirs_put(&d, a, 500);
    dirs_check(&d, a, 500);
    scenario_whole(&d.t);
    brc_array_free(a);
    dirs_stop(&d);
}

/* In a transaction it is flushed at the end; of one that was undone nothing is left to flush. */
TEST(a_flush_that_fails_undoes_the_transaction)
{
    dirs d;
    dirs_start(&d);
    brc_array *a = dirs_new(&d, "/a", NULL);
    dirs_put(&d, a, 1);
    OK(&d.t, brc_array_set_backend(a, "org.example.late", &d.t.err));
    scenario_commit(&d.t, "late");
    for (int keep = 0; keep < 2; keep++) {
        OK(&d.t, brc_begin(d.t.repo, &d.t.err));
        dirs_put_chunk(&d, a, 3, 77);
        if (keep)
            FAILS(&d.t, BRC_ENOSPACE, brc_end(d.t.repo, BRC_END_KEEP, &d.t.err));
        else
            OK(&d.t, brc_end(d.t.repo, 0, &d.t.err));
        ck_assert_int_eq(scenario_clean(&d.t), 1);
        dirs_check(&d, a, 1);
        OK(&d.t, brc_attrs_set(d.t.session, "/", "n", keep ? "1" : "0", &d.t.err));
        scenario_commit(&d.t, "next");
    }
    scenario_whole(&d.t);
    brc_array_free(a);
    dirs_stop(&d);
}

/* A process commits with one backend, and dies with another when its chunks have been put and the
 * file does not name them yet. */
TEST(a_killed_process_loses_nothing_that_was_acknowledged)
{
    dirs d;
    dirs_start(&d);
    dirs_close(&d);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        dirs_open(&d, 0);
        brc_array *a = dirs_new(&d, "/a", DIR_A);
        dirs_put(&d, a, 3);
        scenario_commit(&d.t, "acknowledged");
        OK(&d.t, brc_array_set_backend(a, IN("dies", "a.chunks"), &d.t.err));
        dirs_put(&d, a, 900);
        _exit(3);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(dirs_files(&d, "a.chunks", NULL), 2 * CHUNKS);
    dirs_open(&d, 0);
    brc_array *a = dirs_array(&d, d.t.session, "/a");
    dirs_check(&d, a, 3);
    ck_assert_str_eq(brc_array_describe(a)->backend_json, IN("dies", "a.chunks"));
    ck_assert_int_eq(dirs_chunks(&d, "%"), CHUNKS);
    scenario_whole(&d.t);
    /* what it left is as good as new */
    OK(&d.t, brc_array_set_backend(a, DIR_A, &d.t.err));
    dirs_put(&d, a, 900);
    dirs_check(&d, a, 900);
    ck_assert_int_eq(dirs_files(&d, "a.chunks", NULL), 2 * CHUNKS);
    scenario_commit(&d.t, "again");
    scenario_whole(&d.t);
    brc_array_free(a);
    dirs_stop(&d);
}

/* Removes the objects that no row names, and no others, as a collection of garbage does. */
typedef struct sweep {
    dirs *d;
    const brc_backend *b;
    void *state;
    int named, dropped;
} sweep;

static int sweep_one(void *to, const brc_kept *kept, brc_error *err)
{
    sweep *s = to;
    char sql[400], hex[65];
    brc_stored item = { .size = sizeof(item) }, *one = &item;
    if (kept->flags & BRC_KEPT_PLACE) {
        snprintf(sql, sizeof(sql), "SELECT count(*) FROM place WHERE name='%s'", kept->name);
        item.place = kept->name;
    } else {
        ck_assert_int_eq(brc_stored_parse_name(&item, kept->name), 1);
        snprintf(sql, sizeof(sql), "SELECT count(*) FROM object WHERE id=x'%s' AND checksum=%lld",
                 brc_oid_format(hex, &item.id), (long long)item.sum);
    }
    if (scenario_ask(&s->d->t, sql) > 0) {
        s->named++;
        return BRC_OK;
    }
    s->dropped++;
    return s->b->drop(s->b->ctx, s->state, 1, &one, err);
}

static int no_stop(void *ctx)
{
    (void)ctx;
    return 0;
}

static sweep sweep_all(dirs *d, const char *name, const char *config)
{
    sweep s = { .d = d, .b = brc_registry_backend(d->reg, name) };
    brc_json *json;
    brc_backend_host host = { .size = sizeof(host), .file = d->t.file, .stopped = no_stop };
    OK(&d->t, brc_json_parse(&json, config, strlen(config), 0, &d->t.err));
    OK(&d->t, s.b->open(s.b->ctx, &s.state, json, &host, &d->t.err));
    OK(&d->t, s.b->list(s.b->ctx, s.state, sweep_one, &s, &d->t.err));
    s.b->close(s.b->ctx, s.state);
    brc_json_free(json);
    return s;
}

LOOP(what_a_killed_process_leaves_can_be_found_and_dropped, 0, 2)
{
    static const char *const kinds[][3] = {
        { "org.example.dir", DIR_A, IN("dies", "a.chunks") },
        { "org.example.pack", IN("pack", "a.chunks"), IN("packdies", "a.chunks") },
    };
    int status;
    dirs d;
    dirs_start(&d);
    brc_array *a = dirs_new(&d, "/a", kinds[_i][1]);
    dirs_put(&d, a, 3);
    scenario_commit(&d.t, "kept");
    brc_array_free(a);
    const int before = dirs_files(&d, "a.chunks", NULL);
    dirs_close(&d);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        dirs_open(&d, 0);
        a = dirs_array(&d, d.t.session, "/a");
        OK(&d.t, brc_array_set_backend(a, kinds[_i][2], &d.t.err));
        dirs_put(&d, a, 900);
        _exit(3);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
    const int left = dirs_files(&d, "a.chunks", NULL) - before;
    ck_assert_int_gt(left, 0);
    dirs_open(&d, 0);
    sweep s = sweep_all(&d, kinds[_i][0], "{\"folder\":\"a.chunks\"}");
    ck_assert_int_eq(s.named, before);
    ck_assert_int_eq(s.dropped, left);
    ck_assert_int_eq(dirs_files(&d, "a.chunks", NULL), before);
    a = dirs_array(&d, d.t.session, "/a");
    dirs_check(&d, a, 3);
    brc_array_free(a);
    scenario_whole(&d.t);
    dirs_stop(&d);
}

/* ---- a hostile file -------------------------------- */

LOOP(a_damaged_row_of_a_backend_is_found, 0, 8)
{
    static const struct {
        const char *sql, *words, *fsck;
    } bad[] = {
        { "UPDATE backend SET spec='{\"name\":\"org.example.here\"}'", "checksum", "backend 1" },
        { "DELETE FROM backend", "backend 1 is missing", "which has no row" },
        { "DROP TABLE backend", "backend 1 is missing", "which has no row" },
        { "UPDATE backend SET spec='}{', checksum=row_sum('backend', id, '}{')", "not JSON",
          "JSON" },
        { "UPDATE backend SET spec='{\"name\":\"inline\"}',"
          " checksum=row_sum('backend', id, '{\"name\":\"inline\"}')",
          "its own backend", "its own backend" },
        { "UPDATE backend SET spec='" IN("dir", "../x") "', checksum=row_sum('backend', id, '" IN(
              "dir", "../x") "')",
          "folder", "folder" },
        { "UPDATE object SET backend=-1 WHERE kind=1", "contradicts itself", "contradicts itself" },
        { "UPDATE object SET backend=1 WHERE kind=2", "contradicts itself", "contradicts itself" },
    };
    int32_t got[N];
    brc_array *a;
    finding f;
    dirs d;
    dirs_start(&d);
    a = dirs_new(&d, "/a", DIR_A);
    dirs_put(&d, a, 3);
    scenario_commit(&d.t, "values");
    brc_array_free(a);
    dirs_close(&d);
    scenario_sql(&d.t, bad[_i].sql);
    dirs_open(&d, 0);
    int rc = brc_array_open(&a, d.t.session, "/a", &d.t.err);
    if (rc == BRC_OK)
        rc = brc_array_read(a, NULL, got, sizeof(got), &d.t.err);
    ck_assert_int_eq(rc, BRC_ECORRUPT);
    dirs_say(&d, bad[_i].words);
    f = dirs_fsck(&d);
    ck_assert_msg(strstr(f.text, bad[_i].fsck) != NULL, "%s", f.text);
    brc_array_free(a);
    dirs_stop(&d);
}

#define SUM " checksum=row_sum('place', seq, "
LOOP(a_damaged_place_is_found, 0, 21)
{
    static const struct {
        const char *sql, *words, *fsck;
    } bad[] = {
        { "UPDATE object SET offset=-1 WHERE kind=1", "wrong size", "contradicts itself" },
        { "UPDATE object SET offset=9223372036854775807 WHERE kind=1", "contradicts itself",
          "contradicts itself" },
        { "UPDATE object SET offset=1<<40 WHERE kind=1", "ends before", "ends before" },
        { "UPDATE object SET offset=offset-1 WHERE kind=1 AND offset>0", "checksum", "checksum" },
        { "UPDATE object SET place=-1 WHERE kind=1", "contradicts itself", "contradicts itself" },
        { "UPDATE object SET place=0 WHERE kind=1 AND offset>0", "contradicts itself",
          "contradicts itself" },
        { "UPDATE object SET place=0, offset=0 WHERE kind=1", "no place", "no place" },
        { "UPDATE object SET place=1.5 WHERE kind=1", "contradicts itself", "contradicts itself" },
        { "UPDATE object SET place=77 WHERE kind=1", "has no place 77", "which has no row" },
        { "UPDATE object SET stored=2000000000, encoding=7 WHERE kind=1", "", "" },
        { "DELETE FROM place", "has no place 1", "which has no row" },
        { "DROP TABLE place", "has no place 1", "which has no row" },
        { "DROP TABLE backend", "backend 1 is missing", "place 1 has no backend" },
        { "UPDATE place SET backend=2," SUM "2, name, size, facts)", "has no place 1", "place 1" },
        { "UPDATE place SET name='other'", "checksum", "place 1" },
        { "UPDATE place SET name='../a.chunks/x'," SUM "backend, '../a.chunks/x', size, facts)",
          "not the name of a pack", "not the name of a pack" },
        { "UPDATE place SET name=x'6100'," SUM "backend, x'6100', size, facts)", "not text",
          "place 1" },
        { "UPDATE place SET name='a'||char(0)||'b'," SUM "backend, 'a'||char(0)||'b', size, facts)",
          "not text", "place 1" },
        { "UPDATE place SET name=''," SUM "backend, '', size, facts)", "is not valid", "place 1" },
        { "UPDATE place SET name=hex(zeroblob(3000)),"
          SUM "backend, hex(zeroblob(3000)), size, facts)", "is not valid", "place 1" },
        { "UPDATE place SET name=CAST(x'ff61' AS TEXT)," SUM
          "backend, CAST(x'ff61' AS TEXT), size, facts)", "is not valid", "is not valid" },
    };
    int32_t got[N];
    brc_array *a;
    finding f;
    dirs d;
    ck_assert_int_lt(_i, (int)(sizeof(bad) / sizeof(bad[0])));
    dirs_start(&d);
    a = dirs_new(&d, "/a", IN("packs", "a.chunks"));
    dirs_put(&d, a, 3);
    scenario_commit(&d.t, "values");
    brc_array_free(a);
    dirs_close(&d);
    scenario_sql(&d.t, bad[_i].sql);
    dirs_open(&d, 0);
    OK(&d.t, brc_array_open(&a, d.t.session, "/a", &d.t.err));
    FAILS(&d.t, BRC_ECORRUPT, brc_array_read(a, NULL, got, sizeof(got), &d.t.err));
    dirs_say(&d, bad[_i].words);
    f = dirs_fsck(&d);
    ck_assert_int_gt(f.n, 0);
    ck_assert_msg(strstr(f.text, bad[_i].fsck) != NULL, "%s", f.text);
    brc_array_free(a);
    dirs_stop(&d);
}

LOOP(canonical_names_are_read_as_they_are_written, 0, 2)
{
    static const char *const wrong[] = {
        "",
        "-",
        "0123456789abcdef0123456789abcdef",
        "0123456789abcdef0123456789abcdef-",
        "0123456789abcdef0123456789abcdef-0123456789abcde",
        "0123456789abcdef0123456789abcdef-0123456789abcdef0",
        "0123456789abcdef0123456789abcdef-0123456789ABCDEF",
        "0123456789abcdef0123456789abcdeF-0123456789abcdef",
        "0123456789abcdef0123456789abcde-0123456789abcdef",
        "0123456789abcdef0123456789abcdef-0123456789abcdef.7-1",
        "0123456789abcdef0123456789abcdef00000000000000000000000000000000-0123456789abcdef",
        "0123456789abcdef0123456789abcdef0000000000000000000000000000000001-0123456789abcdef",
    };
    char name[BRC_STORED_NAME_SIZE];
    brc_stored item = { .size = sizeof(item), .sum = UINT64_C(0x00fedcba98765432) }, back = item;
    for (int i = 0; i < 32; i++) {
        item.id.bytes[i] = (uint8_t)(i < 16 || _i ? 17 * i + 1 : 0);
        back.sum = 0;
    }
    ck_assert_int_eq(brc_stored_parse_name(&back, brc_stored_name(name, &item)), 1);
    ck_assert_mem_eq(&back.id, &item.id, sizeof(item.id));
    ck_assert_uint_eq(back.sum, item.sum);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_assert_msg(brc_stored_parse_name(&back, wrong[i]) == 0, "%s", wrong[i]);
    ck_assert_mem_eq(&back.id, &item.id, sizeof(item.id));
}

TEST(names_of_backends_are_kept)
{
    brc_backend like = { .size = sizeof(like) };
    brc_registry *reg;
    dirs d;
    dirs_start(&d);
    OK(&d.t, brc_registry_new(&reg, &d.t.err));
    like.name = "org.example.x";
    FAILS(&d.t, BRC_EINVAL, brc_registry_add_backend(reg, &like, &d.t.err));
    dirs_say(&d, "fetch");
    FAILS(&d.t, BRC_EMISUSE, brc_registry_add_backend(d.reg, &like, &d.t.err));
    brc_registry_free(reg);
    dirs_stop(&d);
}

LOOP(the_kit_finds_what_is_wrong, 0, 10)
{
    static const struct {
        const char *name, *words;
    } kinds[] = {
        { "org.example.dir", NULL },
        { "org.example.here", NULL },
        { "org.example.pack", NULL },
        { "org.example.packs", NULL },
        { "org.example.old", NULL }, /* it cannot be written: only its configuration is tried */
        { "org.example.liar", "is not what was put" },
        { "org.example.full", "put()" },
        { "org.example.late", "flush()" },
        { "org.example.odd", "flush()" },
        { "pack", NULL },
    };
    char why[700] = "";
    dirs d;
    dirs_start(&d);
    backend_kit kit = { .backend = brc_registry_backend(d.reg, kinds[_i].name),
                        .folder = d.t.dir,
                        .seed = 5 };
    ck_assert_ptr_nonnull(kit.backend);
    int bad = backend_kit_run(&kit, why, sizeof(why));
    ck_assert_msg(bad == (kinds[_i].words != NULL), "%s", why);
    if (bad)
        ck_assert_msg(strstr(why, kinds[_i].words) != NULL, "%s", why);
    dirs_stop(&d);
}

TEST(backends_are_listed)
{
    brc_iter *it;
    const brc_backend_info *info;
    dirs d;
    dirs_start(&d);
    OK(&d.t, brc_registry_list(&it, d.reg, BRC_LIST_BACKENDS, &d.t.err));
    ck_assert_int_eq(brc_next(it, &info, &d.t.err), 1);
    ck_assert_str_eq(info->name, "inline");
    ck_assert_str_eq(info->owner, "breccia");
    ck_assert_int_eq(brc_next(it, &info, &d.t.err), 1);
    ck_assert_str_eq(info->name, "pack");
    ck_assert_str_eq(info->owner, "breccia");
    ck_assert_int_eq(brc_next(it, &info, &d.t.err), 1);
    ck_assert_str_eq(info->name, "external");
    ck_assert_str_eq(info->owner, "breccia");
    ck_assert_uint_eq(info->flags, BRC_BACKEND_INFO_READ_ONLY);
    ck_assert_int_eq(brc_next(it, &info, &d.t.err), 1);
    ck_assert_str_eq(info->name, "s3");
    ck_assert_str_eq(info->owner, "breccia");
    ck_assert_uint_eq(info->flags, 0);
    ck_assert_int_eq(brc_next(it, &info, &d.t.err), 1);
    ck_assert_str_eq(info->name, "org.example.dir");
    ck_assert_str_eq(info->owner, "dirstore 1.0");
    ck_assert_uint_eq(info->flags, 0);
    uint32_t flags = 0;
    int rc;
    while ((rc = brc_next(it, &info, &d.t.err)) == 1)
        flags = strcmp(info->name, "org.example.old") == 0 ? info->flags : flags;
    ck_assert_int_eq(rc, 0);
    ck_assert_uint_eq(flags, BRC_BACKEND_INFO_READ_ONLY);
    brc_iter_free(it);
    dirs_stop(&d);
}
