/*
 * The backend "pack": where packs lie, who may remove them, and what is said where one is cut,
 * missing, another repository's or a stranger's. Chunks have 32 bytes as they are stored.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../../src/base/hash.h"
#include "../../src/work/session.h"
#include "../kit/dirs_kit.h"
#include "../kit/process_kit.h"
#include "../kit/suite.h"

TEST_SUITE(pack);

#define PACK "{\"name\":\"pack\"}"
#define SMALL "{\"name\":\"pack\",\"configuration\":{\"pack_bytes\":1048576}}"
#define OPTION(name, value) \
    "{\"name\":\"pack\",\"configuration\":{\"" name "\":" value "}}"
#define LITTLE "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]"
#define FOLDER "test.brc.packs"

static dirs d;

static void pack_start(void)
{
    dirs_start(&d);
    scenario_no_window(&d.t);
    brc_array *a = dirs_new(&d, "/a", PACK);
    OK(&d.t, brc_array_set_codecs(a, LITTLE, 0, &d.t.err));
    dirs_put(&d, a, 3);
    brc_array_free(a);
    scenario_commit(&d.t, "first");
}

static void pack_stop(void)
{
    dirs_stop(&d);
}

/* ---- what is there -------------------------------- */

static const char *in_dir(const char *name)
{
    static char paths[4][300];
    static int last;
    char *path = paths[last++ % 4];
    dirs_path(&d, path, sizeof(paths[0]), name);
    return path;
}

/* How many packs a folder has: all of its files but "owner". */
static int packs_in(const char *folder)
{
    const int n = dirs_files(&d, folder, NULL);
    return n > 0 ? n - 1 : 0;
}

static int64_t places(void)
{
    return scenario_ask(&d.t, "SELECT count(*) FROM place");
}

/* The only pack, or the one whose name is smallest. */
static const char *one_pack(void)
{
    static char path[512];
    dirs_files(&d, FOLDER, path);
    return path;
}

static void check_a(int32_t first)
{
    brc_array *a = dirs_array(&d, d.t.session, "/a");
    dirs_check(&d, a, first);
    brc_array_free(a);
}

static int read_a(void)
{
    int32_t got[N];
    brc_array *a = dirs_array(&d, d.t.session, "/a");
    const int rc = brc_array_read(a, NULL, got, sizeof(got), &d.t.err);
    brc_array_free(a);
    return rc;
}

static void put_a(int32_t first)
{
    brc_array *a = dirs_array(&d, d.t.session, "/a");
    dirs_put(&d, a, first);
    brc_array_free(a);
    scenario_commit(&d.t, "again");
}

static brc_gc_report collect(void)
{
    brc_gc_report report = BRC_GC_REPORT_INIT;
    OK(&d.t, brc_gc(d.t.repo, NULL, &report, &d.t.err));
    return report;
}

/* Nothing but the last version of /a stays. */
static void forget_others(void)
{
    brc_expire_opts opts = BRC_EXPIRE_OPTS_INIT;
    brc_expire_report report = BRC_EXPIRE_REPORT_INIT;
    opts.keep_last = 1;
    OK(&d.t, brc_expire(&report, NULL, d.t.repo, &opts, &d.t.err));
}

/* ---- where packs lie -------------------------------- */

CASE("places", .setup = pack_start, .teardown = pack_stop);

TEST(a_pack_lies_beside_the_file)
{
    ck_assert_int_eq(packs_in(FOLDER), 1);
    ck_assert_int_eq((int)places(), 1);
    ck_assert_int_eq((int)dirs_chunks(&d, "%\"pack\"%"), CHUNKS);
    dirs_reopen(&d);
    check_a(3);
    ck_assert_int_eq(dirs_fsck(&d).n, 0);
}

static uint64_t number_at(const uint8_t *p)
{
    uint64_t n = 0;
    for (int i = 7; i >= 0; i--)
        n = n << 8 | p[i];
    return n;
}

/* Lists the records of a pack, as rows of objects would name them. */
static void index_pack(const char *path, brc_buf *out)
{
    enum { HEAD = 64 };
    brc_buf pack = BRC_BUF_INIT;
    OK(&d.t, brc_file_read(&pack, path, &d.t.err));
    out->len = 0;
    for (size_t at = HEAD; at + HEAD <= pack.len; at += 8) {
        const uint8_t *head = pack.data + at;
        brc_oid id;
        const uint64_t len = number_at(head + 8), sum = number_at(head + 16);
        memcpy(id.bytes, head + 24, sizeof(id.bytes));
        if (memcmp(head, "BRCr", 4) != 0 || brc_hash_bytes(head, 56) != number_at(head + 56) ||
            len > pack.len - at - HEAD ||
            brc_hash_stored(&id, 0, head + HEAD, (size_t)len) != sum)
            continue;
        for (size_t i = 0; i < brc_store_id_len(d.t.repo->store); i++)
            OK(&d.t, brc_buf_printf(out, &d.t.err, "%02X", id.bytes[i]));
        OK(&d.t, brc_buf_printf(out, &d.t.err, " %zu %llu %lld\n", at + HEAD,
                                (unsigned long long)len, (long long)(int64_t)sum));
    }
    OK(&d.t, brc_buf_terminate(out, &d.t.err));
    brc_buf_dispose(&pack);
}

/* Without the repository's file, and behind what a killed writer has left. */
TEST(a_pack_alone_says_what_is_in_it)
{
    brc_buf found = BRC_BUF_INIT, rows = BRC_BUF_INIT;
    char path[512];
    snprintf(path, sizeof(path), "%s", one_pack());
    const int fd = open(path, O_WRONLY | O_APPEND);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq((int)write(fd, "BRCr\0\0\0\0of a killed writer", 27), 27);
    close(fd);
    dirs_reopen(&d);
    put_a(500);
    ck_assert_int_eq(packs_in(FOLDER), 1);
    scenario_rows(&d.t,
                  "SELECT hex(id), offset, stored, checksum FROM object WHERE backend>0 ORDER BY"
                  " offset",
                  &rows);
    index_pack(path, &found);
    ck_assert_uint_gt(rows.len, (size_t)2 * CHUNKS * 32);
    ck_assert_str_eq((const char *)found.data, (const char *)rows.data);
    brc_buf_dispose(&found);
    brc_buf_dispose(&rows);
}

/* A writer goes on in a pack that has room, so many small commits do not make many packs. */
TEST(later_writers_go_on_in_a_pack_that_has_room)
{
    for (int i = 1; i <= 5; i++) {
        dirs_reopen(&d);
        put_a(100 * i);
    }
    ck_assert_int_eq(packs_in(FOLDER), 1);
    check_a(500);
}

TEST(writers_at_the_same_time_have_a_pack_each)
{
    put_a(50); /* this handle holds its pack */
    breccia *other = scenario_handle(&d.t, 1000);
    brc_session *s;
    OK(&d.t, brc_session_open(&s, other, NULL, BRC_SESSION_WRITE, &d.t.err));
    brc_array *a = dirs_array(&d, s, "/a");
    dirs_put(&d, a, 900);
    brc_array_free(a);
    brc_session_free(s);
    brc_free(other);
    ck_assert_int_eq(packs_in(FOLDER), 2);
    check_a(900);
    dirs_reopen(&d);
    check_a(900);
    ck_assert_int_eq(dirs_fsck(&d).n, 0);
}

TEST(a_full_pack_is_followed_by_another)
{
    static const uint64_t shape = 3 << 20, chunk = 1 << 19;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_array *a;
    uint8_t *data = malloc(shape), *got = malloc(shape);
    uint32_t random = 1;
    for (size_t i = 0; i < shape; i++)
        data[i] = (uint8_t)((random = random * 1664525 + 1013904223) >> 24);
    spec.ndim = 1;
    spec.shape = &shape;
    spec.chunk = &chunk;
    spec.dtype = "uint8";
    spec.backend_json = SMALL;
    OK(&d.t, brc_array_create(&a, d.t.session, "/large", &spec, &d.t.err));
    OK(&d.t, brc_array_write(a, NULL, data, shape, &d.t.err));
    OK(&d.t, brc_array_read(a, NULL, got, shape, &d.t.err));
    ck_assert_mem_eq(got, data, shape);
    brc_array_free(a);
    ck_assert_int_ge(packs_in(FOLDER), 3);
    dirs_reopen(&d);
    a = dirs_array(&d, d.t.session, "/large");
    memset(got, 0, shape);
    OK(&d.t, brc_array_read(a, NULL, got, shape, &d.t.err));
    ck_assert_mem_eq(got, data, shape);
    brc_array_free(a);
    free(data);
    free(got);
}

TEST(a_file_and_its_folder_may_get_another_name)
{
    dirs_close(&d);
    ck_assert_int_eq(rename(d.t.file, in_dir("other.brc")), 0);
    ck_assert_int_eq(rename(in_dir(FOLDER), in_dir("other.brc.packs")), 0);
    snprintf(d.t.file, sizeof(d.t.file), "%s/other.brc", d.t.dir);
    dirs_open(&d, 0);
    check_a(3);
    put_a(70);
    ck_assert_int_eq(packs_in(FOLDER), 0);
    ck_assert_int_eq(packs_in("other.brc.packs"), 1); /* it goes on in the same pack */
    check_a(70);
}

/* Renamed alone, the file still finds its packs, and may remove them: its inode is the owner's. */
TEST(a_file_that_is_renamed_alone_keeps_its_packs)
{
    dirs_close(&d);
    ck_assert_int_eq(rename(d.t.file, in_dir("other.brc")), 0);
    snprintf(d.t.file, sizeof(d.t.file), "%s/other.brc", d.t.dir);
    dirs_open(&d, 0);
    check_a(3);
    put_a(70);
    forget_others();
    collect();
    check_a(70);
    dirs_close(&d);
    dirs_open(&d, 0);
    collect();
    ck_assert_int_eq(packs_in(FOLDER), 0);
    check_a(70);
}

TEST(a_file_without_its_folder_names_it)
{
    dirs_close(&d);
    ck_assert_int_eq(rename(in_dir(FOLDER), in_dir("elsewhere")), 0);
    dirs_open(&d, 0);
    ck_assert_int_eq(read_a(), BRC_ECORRUPT);
    dirs_say(&d, "there is no folder ");
    dirs_say(&d, "/" FOLDER ": it holds the chunks and belongs beside the repository's file");
    const finding f = dirs_fsck(&d);
    ck_assert_int_eq(f.missing, CHUNKS);
    ck_assert_ptr_nonnull(strstr(f.text, "/a"));
    dirs_close(&d);
    ck_assert_int_eq(rename(in_dir("elsewhere"), in_dir(FOLDER)), 0);
    dirs_open(&d, 0);
    check_a(3);
}

/* A backup is a copy of the file. Beside the file it reads the packs, and elsewhere it says what it
 * lacks, and how to bring that. */
TEST(a_backup_says_that_packs_are_left_out)
{
    OK(&d.t, brc_backup(NULL, d.t.repo, in_dir("beside.brc"), &d.t.err));
    ck_assert_int_eq(mkdir(in_dir("there"), 0777), 0);
    FAILS(&d.t, BRC_ECORRUPT, brc_backup(NULL, d.t.repo, in_dir("there/test.brc"), &d.t.err));
    dirs_say(&d, "was written, without 8 chunks that lie outside of ");
    dirs_say(&d, "there is no folder ");
    dirs_say(&d, "copy that too, or bring the chunks into the file with 'breccia repack");
}

/* ---- whose packs they are -------------------------------- */

static void copy_file(const char *to)
{
    char command[600];
    snprintf(command, sizeof(command), "cp '%s' '%s'", d.t.file, to);
    ck_assert_int_eq(system(command), 0);
}

TEST(a_copy_reads_the_packs_and_never_removes_one)
{
    dirs_close(&d);
    copy_file(in_dir("copy.brc"));
    char file[sizeof(d.t.file)];
    snprintf(file, sizeof(file), "%s", d.t.file);
    snprintf(d.t.file, sizeof(d.t.file), "%s/copy.brc", d.t.dir);
    dirs_open(&d, 0);
    check_a(3);
    put_a(70);
    ck_assert_int_eq(packs_in("copy.brc.packs"), 1);
    forget_others();
    collect();
    collect();
    check_a(70);
    ck_assert_int_eq(packs_in(FOLDER), 1);
    dirs_close(&d);
    snprintf(d.t.file, sizeof(d.t.file), "%s", file);
    dirs_open(&d, 0);
    check_a(3);
    ck_assert_int_eq(dirs_fsck(&d).n, 0);
}

TEST(a_link_to_the_packs_of_another_file_is_only_read)
{
    char packs[300];
    snprintf(packs, sizeof(packs), "%s", in_dir(FOLDER));
    dirs_close(&d);
    ck_assert_int_eq(mkdir(in_dir("there"), 0777), 0);
    copy_file(in_dir("there/test.brc"));
    ck_assert_int_eq(symlink(packs, in_dir("there/" FOLDER)), 0);
    char file[sizeof(d.t.file)];
    snprintf(file, sizeof(file), "%s", d.t.file);
    snprintf(d.t.file, sizeof(d.t.file), "%s/there/test.brc", d.t.dir);
    dirs_open(&d, 0);
    check_a(3);
    brc_array *a = dirs_array(&d, d.t.session, "/a");
    int32_t data[N];
    dirs_values(data, 70);
    FAILS(&d.t, BRC_EEXISTS, brc_array_write(a, NULL, data, sizeof(data), &d.t.err));
    dirs_say(&d, "is a link to the packs of test.brc, which may remove them: remove the link");
    OK(&d.t, brc_array_set_backend(a, INLINE, &d.t.err));
    dirs_put(&d, a, 70);
    brc_array_free(a);
    scenario_commit(&d.t, "inline");
    forget_others();
    collect();
    dirs_close(&d);
    ck_assert_int_eq(packs_in(FOLDER), 1);
    snprintf(d.t.file, sizeof(d.t.file), "%s", file);
    dirs_open(&d, 0);
    check_a(3);
}

TEST(a_folder_of_another_repository_is_refused)
{
    dirs_close(&d);
    ck_assert_int_eq(unlink(d.t.file), 0);
    dirs_open(&d, BRC_OPEN_CREATE);
    brc_array *a = dirs_new(&d, "/b", PACK);
    int32_t data[N];
    dirs_values(data, 1);
    FAILS(&d.t, BRC_EEXISTS, brc_array_write(a, NULL, data, sizeof(data), &d.t.err));
    dirs_say(&d, FOLDER " has packs of another repository: move it away");
    brc_array_free(a);
    collect();
    ck_assert_int_eq(packs_in(FOLDER), 1);
}

/* ---- collections -------------------------------- */

TEST(a_collection_removes_whole_packs)
{
    brc_array *a = dirs_array(&d, d.t.session, "/a");
    OK(&d.t, brc_array_set_backend(a, INLINE, &d.t.err));
    dirs_put(&d, a, 70);
    brc_array_free(a);
    scenario_commit(&d.t, "inline");
    forget_others();
    collect();
    ck_assert_int_eq(packs_in(FOLDER), 0);
    ck_assert_int_eq((int)places(), 0);
    check_a(70);
    ck_assert_int_eq(dirs_fsck(&d).n, 0);
}

/* Three of four chunks go: the rest is put again elsewhere, and the pack goes. */
TEST(a_collection_writes_again_what_is_left_of_a_pack)
{
    char before[512];
    snprintf(before, sizeof(before), "%s", one_pack());
    dirs_reopen(&d);
    breccia *holder = scenario_handle(&d.t, 1000); /* holds nothing: it does not write */
    brc_array *a = dirs_array(&d, d.t.session, "/a");
    OK(&d.t, brc_array_set_backend(a, INLINE, &d.t.err));
    for (uint64_t i = 0; i < CHUNKS - 2; i++)
        dirs_put_chunk(&d, a, i, 7);
    brc_array_free(a);
    scenario_commit(&d.t, "less");
    forget_others();
    collect();
    brc_free(holder);
    ck_assert_int_ne(access(before, F_OK), 0);
    ck_assert_int_eq(packs_in(FOLDER), 1);
    a = dirs_array(&d, d.t.session, "/a");
    ck_assert_int_eq(dirs_get_chunk(&d, a, 0), 7);
    ck_assert_int_eq(dirs_get_chunk(&d, a, CHUNKS - 1), 3 + (CHUNKS - 1) * CHUNK);
    brc_array_free(a);
    ck_assert_int_eq(dirs_fsck(&d).n, 0);
}

/* A handle that is open while this one writes, so that each has a pack of its own. */
static void put_beside(const char *path, int32_t first)
{
    breccia *other = scenario_handle(&d.t, 1000);
    brc_session *s;
    OK(&d.t, brc_session_open(&s, other, NULL, BRC_SESSION_WRITE, &d.t.err));
    brc_array *a = dirs_new(&d, path, PACK);
    OK(&d.t, brc_array_set_codecs(a, LITTLE, 0, &d.t.err));
    dirs_put(&d, a, first);
    brc_array_free(a);
    a = dirs_array(&d, s, path);
    dirs_put(&d, a, first + 1000);
    brc_array_free(a);
    brc_session_free(s);
    brc_free(other);
}

static void check_rest(const char *path, int32_t first)
{
    brc_array *a = dirs_array(&d, d.t.session, path);
    ck_assert_int_eq(dirs_get_chunk(&d, a, 0), 7);
    for (int i = CHUNKS / 2 + 1; i < CHUNKS; i++)
        ck_assert_int_eq(dirs_get_chunk(&d, a, (uint64_t)i), first + i * CHUNK);
    brc_array_free(a);
}

/* Each is half free, and the rest of one may go where the rest of the other comes from. */
TEST(packs_that_are_half_free_at_the_same_time_lose_nothing)
{
    put_beside("/b", 5000);
    put_beside("/c", 9000);
    scenario_commit(&d.t, "more");
    ck_assert_int_ge(packs_in(FOLDER), 2);
    for (int i = 0; i < 3; i++) {
        brc_array *a = dirs_array(&d, d.t.session, i == 0 ? "/a" : i == 1 ? "/b" : "/c");
        OK(&d.t, brc_array_set_backend(a, INLINE, &d.t.err));
        for (uint64_t k = 0; k < CHUNKS / 2 + 1; k++)
            dirs_put_chunk(&d, a, k, 7);
        brc_array_free(a);
    }
    scenario_commit(&d.t, "less");
    forget_others();
    dirs_reopen(&d);
    for (int i = 0; i < 4; i++) {
        collect();
        ck_assert_int_eq(dirs_fsck(&d).n, 0);
    }
    ck_assert_int_le(packs_in(FOLDER), 2);
    check_rest("/a", 3);
    check_rest("/b", 6000);
    check_rest("/c", 10000);
}

/* Another handle may be adding to the pack. It stays, and goes when nobody holds it. */
TEST(a_pack_that_is_being_written_stays)
{
    dirs_reopen(&d);
    breccia *writer = scenario_handle(&d.t, 1000);
    brc_session *s;
    OK(&d.t, brc_session_open(&s, writer, NULL, BRC_SESSION_WRITE, &d.t.err));
    brc_array *a = dirs_array(&d, s, "/a");
    dirs_put(&d, a, 200); /* the writer holds the only pack */
    OK(&d.t, brc_array_set_backend(a, INLINE, &d.t.err));
    dirs_put(&d, a, 300);
    brc_array_free(a);
    scenario_commit(&d.t, "inline");
    forget_others();
    collect();
    ck_assert_int_eq(packs_in(FOLDER), 1);
    brc_session_free(s);
    brc_free(writer);
    collect();
    ck_assert_int_eq(packs_in(FOLDER), 0);
    check_a(300);
}

/* ---- loss of power -------------------------------- */

/* The pack that was written last, and what of it is not synced yet. */
typedef struct unsynced {
    char pack[512];
    int is_pack, is_folder; /* its bytes, and its name in the folder */
    int packs, files;       /* how often a pack, and then the repository's file, was written */
} unsynced;

static int ends_in(const char *path, const char *end)
{
    const size_t len = strlen(path), n = strlen(end);
    return len >= n && strcmp(path + len - n, end) == 0;
}

static void note_call(void *to, long call, const char *path)
{
    unsynced *u = to;
    const int is_sync = call == SYS_fsync || call == SYS_fdatasync;
    if (ends_in(path, ".pack") && !is_sync) {
        u->is_folder |= strcmp(u->pack, path) != 0;
        u->is_pack = 1;
        u->packs++;
        snprintf(u->pack, sizeof(u->pack), "%s", path);
    } else if (ends_in(path, ".pack")) {
        u->is_pack = 0;
    } else if (ends_in(path, FOLDER) && is_sync) {
        u->is_folder = 0;
    } else if (ends_in(path, "test.brc") && !is_sync) { /* a transaction ends */
        u->files += u->packs > 0;
        ck_assert_msg(!u->is_pack, "the rows come before the bytes in the pack are synced");
        ck_assert_msg(!u->is_folder, "the rows come before the name of the pack is synced");
    }
}

static int put_uncommitted(void *ctx)
{
    dirs_open(&d, 0);
    brc_array *a = dirs_array(&d, d.t.session, "/a");
    dirs_put(&d, a, 700);
    brc_array_free(a);
    if (ctx != NULL)
        scenario_commit(&d.t, "watched");
    dirs_close(&d);
    return 0;
}

static int move_into_packs(void *ctx)
{
    brc_repack_opts opts = BRC_REPACK_OPTS_INIT;
    opts.backend_json = SMALL;
    (void)ctx;
    dirs_open(&d, 0);
    OK(&d.t, brc_repack(d.t.repo, &opts, NULL, &d.t.err));
    dirs_close(&d);
    return 0;
}

/* A draft's rows, a commit's, and those of a repack. */
LOOP(a_pack_is_synced_before_rows_name_what_is_in_it, 0, 3)
{
    unsynced u = { .pack = "" };
    dirs_close(&d);
    process_watch(_i < 2 ? put_uncommitted : move_into_packs, _i == 1 ? &u : NULL, note_call, &u);
    ck_assert_int_gt(u.packs, 0);
    ck_assert_int_gt(u.files, 0);
    dirs_open(&d, 0);
    if (_i == 1)
        check_a(700);
}

/* ---- damage and strangers -------------------------------- */

static void shorten(const char *path, off_t len)
{
    ck_assert_int_eq(truncate(path, len), 0);
}

/* Cut at every byte, a pack gives what it still has, and says where it ends. */
TEST(a_pack_that_is_cut_says_so)
{
    struct stat file;
    char path[512];
    snprintf(path, sizeof(path), "%s", one_pack());
    ck_assert_int_eq(stat(path, &file), 0);
    const int64_t last =
        scenario_ask(&d.t, "SELECT max(offset+stored) FROM object WHERE backend<>0");
    ck_assert_int_ge((int)file.st_size, (int)last);
    for (off_t len = last - 1; len >= 0; len--) {
        dirs_close(&d);
        shorten(path, len);
        dirs_open(&d, 0);
        ck_assert_int_eq(read_a(), BRC_ECORRUPT);
        ck_assert_msg(strstr(d.t.err.message, "is cut off: it ends before byte ") != NULL ||
                          strstr(d.t.err.message, "is not a pack of this repository") != NULL,
                      "%d: %s", (int)len, d.t.err.message);
        ck_assert_ptr_nonnull(strstr(d.t.err.message, ".pack"));
        dirs_say(&d, "put a whole copy of it back");
    }
    const finding f = dirs_fsck(&d);
    ck_assert_int_eq(f.n, CHUNKS);
    ck_assert_ptr_nonnull(strstr(f.text, "/a"));
}

TEST(a_pack_with_other_bytes_is_never_believed)
{
    char path[512];
    snprintf(path, sizeof(path), "%s", one_pack());
    const int64_t at = scenario_ask(&d.t, "SELECT min(offset) FROM object WHERE backend<>0");
    dirs_close(&d);
    const int fd = open(path, O_RDWR);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq((int)pwrite(fd, "\xff\xfe", 2, (off_t)at), 2);
    close(fd);
    dirs_open(&d, 0);
    ck_assert_int_eq(read_a(), BRC_ECORRUPT);
    ck_assert_int_eq(dirs_fsck(&d).n, 1);
}

TEST(a_missing_pack_is_named)
{
    char path[512];
    snprintf(path, sizeof(path), "%s", one_pack());
    dirs_close(&d);
    ck_assert_int_eq(unlink(path), 0);
    dirs_open(&d, 0);
    ck_assert_int_eq(read_a(), BRC_ECORRUPT);
    dirs_say(&d, "the pack ");
    dirs_say(&d, strrchr(path, '/'));
    dirs_say(&d, " is missing: put a whole copy of it back");
}

/* A file may come from a stranger: the names in it lead nowhere but into folders of packs. */
LOOP(names_of_places_lead_nowhere_else, 0, 6)
{
    static const char *const names[] = {
        "/etc/passwd",
        "../x.packs/00112233445566778899aabbccddeeff.pack",
        "a/b.packs/00112233445566778899aabbccddeeff.pack",
        FOLDER "/00112233445566778899aabbccddeeff.pack/x",
        FOLDER "/../../../../etc/passwd",
        "other/00112233445566778899aabbccddeeff.pack",
    };
    char sql[300];
    snprintf(sql, sizeof(sql),
             "UPDATE place SET name='%s', checksum=row_sum('place', seq, backend, '%s', NULL,"
             " NULL)",
             names[_i], names[_i]);
    scenario_sql_shared(&d.t, sql);
    dirs_reopen(&d);
    ck_assert_int_lt(read_a(), 0);
    dirs_say(&d, "is not the name of a pack");
}

/* ---- writers that fail -------------------------------- */

TEST(a_full_disk_leaves_no_bytes_behind)
{
    struct stat before, after;
    struct rlimit was, little;
    char path[512];
    snprintf(path, sizeof(path), "%s", one_pack());
    ck_assert_int_eq(stat(path, &before), 0);
    dirs_reopen(&d);
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &was), 0);
    little = was;
    little.rlim_cur = (rlim_t)before.st_size + 100;
    brc_array *a = dirs_array(&d, d.t.session, "/a");
    int32_t data[N];
    dirs_values(data, 70);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &little), 0);
    const int rc = brc_array_write(a, NULL, data, sizeof(data), &d.t.err);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &was), 0);
    ck_assert_int_lt(rc, 0);
    dirs_say(&d, "cannot write ");
    dirs_check(&d, a, 3);
    dirs_put(&d, a, 71); /* the next one goes on where this one began */
    dirs_check(&d, a, 71);
    brc_array_free(a);
    ck_assert_int_eq(stat(path, &after), 0);
    ck_assert_int_le((int)after.st_size, (int)before.st_size * 2);
    ck_assert_int_eq(dirs_fsck(&d).n, 0);
}

CASE("options", .setup = pack_start, .teardown = pack_stop);

TEST(options_are_checked_at_the_call)
{
    static const struct {
        const char *json, *words;
    } wrong[] = {
        { OPTION("pack_bytes", "1"), "must be a number from 1048576" },
        { OPTION("pack_bytes", "\"x\""), "must be a number from" },
        { OPTION("folder", "\"x\""), "folder" },
    };
    brc_array *a = dirs_array(&d, d.t.session, "/a");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        FAILS(&d.t, BRC_EINVAL, brc_array_set_backend(a, wrong[i].json, &d.t.err));
        dirs_say(&d, wrong[i].words);
    }
    ck_assert_int_eq((int)scenario_ask(&d.t, "SELECT count(*) FROM backend WHERE spec="
                                             "'{\"name\":\"pack\",\"configuration\":"
                                             "{\"pack_bytes\":268435456}}'"),
                     1);
    brc_array_free(a);
}
