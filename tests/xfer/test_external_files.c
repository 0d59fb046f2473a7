/*
 * The backend "external", where the chunks of an array are a file each: all files are one place.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../kit/exchange_kit.h"
#include "../kit/fsck_kit.h"
#include "../kit/suite.h"
#include "../kit/versions.h"

TEST_SUITE(external_files);

/* An array of 6 x 5 chunks: the last of each row is cut, and one column of chunks is missing. */
enum { ROWS = 30, COLUMNS = 18, CHUNK_ROWS = 5, CHUNK_COLUMNS = 4, FILES = 6 * 4, MISSING = 2 };

static exchange_kit kit;
static brc_buf said; /* the warnings of the last import */
static int32_t want[ROWS * COLUMNS];

/* ---- sources -------------------------------- */

static const struct keys {
    int version;
    char separator;
} keys[] = { { 3, '/' }, { 3, '.' }, { 2, '.' }, { 2, '/' } };

static void key_of(char key[60], const struct keys *k, int row, int column)
{
    if (k->version == 3)
        snprintf(key, 60, "c%c%d%c%d", k->separator, row, k->separator, column);
    else
        snprintf(key, 60, "%d%c%d", row, k->separator, column);
}

static const char *file_of(const char *dir, const struct keys *k, int row, int column)
{
    char key[60], path[200];
    key_of(key, k, row, column);
    snprintf(path, sizeof(path), "%s/%s", dir, key);
    return exchange_path(&kit, path);
}

static void put_document(const char *dir, const struct keys *k)
{
    char path[200], text[600];
    snprintf(path, sizeof(path), "%s/%s", dir, k->version == 3 ? "zarr.json" : ".zarray");
    if (k->version == 3)
        snprintf(text, sizeof(text),
                 "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[%d,%d],\"data_type\":"
                 "\"int32\",\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{"
                 "\"chunk_shape\":[%d,%d]}},\"chunk_key_encoding\":{\"name\":\"default\","
                 "\"configuration\":{\"separator\":\"%c\"}},"
                 "\"fill_value\":9,\"codecs\":[{\"name\":\"bytes\","
                 "\"configuration\":{\"endian\":\"little\"}}]}",
                 ROWS, COLUMNS, CHUNK_ROWS, CHUNK_COLUMNS, k->separator);
    else
        snprintf(text, sizeof(text),
                 "{\"zarr_format\":2,\"shape\":[%d,%d],\"chunks\":[%d,%d],\"dtype\":\"<i4\","
                 "\"compressor\":null,\"filters\":null,\"fill_value\":9,\"order\":\"C\","
                 "\"dimension_separator\":\"%c\"}",
                 ROWS, COLUMNS, CHUNK_ROWS, CHUNK_COLUMNS, k->separator);
    exchange_text(&kit, path, text);
}

static void put_chunk(const char *dir, const struct keys *k, int row, int column, int plus)
{
    char key[60], path[200];
    int32_t data[CHUNK_ROWS * CHUNK_COLUMNS];
    for (int r = 0; r < CHUNK_ROWS; r++)
        for (int c = 0; c < CHUNK_COLUMNS; c++) {
            const int y = row * CHUNK_ROWS + r, x = column * CHUNK_COLUMNS + c;
            data[r * CHUNK_COLUMNS + c] = x < COLUMNS ? y * 1000 + x + plus : 9;
            if (x < COLUMNS)
                want[y * COLUMNS + x] = y * 1000 + x + plus;
        }
    key_of(key, k, row, column);
    snprintf(path, sizeof(path), "%s/%s", dir, key);
    if (exchange_exists(exchange_path(&kit, path)))
        ck_assert_int_eq(remove(exchange_path(&kit, path)), 0);
    exchange_file(&kit, path, data, sizeof(data));
}

static void put_array(const char *dir, const struct keys *k)
{
    for (int i = 0; i < ROWS * COLUMNS; i++)
        want[i] = 9;
    put_document(dir, k);
    for (int row = 0; row < ROWS / CHUNK_ROWS; row++)
        for (int column = 0; column < 5; column++)
            if (column != MISSING)
                put_chunk(dir, k, row, column, 0);
}

/* ---- what the repository has -------------------------------- */

static int lie(const char *source, uint32_t flags)
{
    return exchange_import(&kit, source, "/e", BRC_XFER_EXTERNAL | flags, &said);
}

static int64_t lying(void)
{
    return scenario_ask(&kit, "SELECT count(*) FROM object WHERE backend>0");
}

static int64_t places(void)
{
    return scenario_ask(&kit, "SELECT count(*) FROM place");
}

static int64_t places_like(const char *pattern)
{
    char sql[200];
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM place WHERE name LIKE '%s'", pattern);
    return scenario_ask(&kit, sql);
}

static int read_at(brc_session *s)
{
    int32_t got[ROWS * COLUMNS];
    brc_array *a = scenario_array_at(&kit, s, "/e");
    const int rc = brc_array_read(a, NULL, got, sizeof(got), &kit.err);
    brc_array_free(a);
    if (rc == BRC_OK)
        ck_assert_mem_eq(got, want, sizeof(got));
    return rc;
}

static int read_all(void)
{
    return read_at(kit.session);
}

static void check_said(const char *words)
{
    ck_assert_msg(strstr(kit.err.message, words) != NULL, "\"%s\" is not in \"%s\"", words,
                  kit.err.message);
}

static void import_first(const char *dir, const struct keys *k)
{
    put_array(dir, k);
    OK(&kit, lie(dir, 0));
    scenario_commit(&kit, "lies there");
    OK(&kit, read_all());
}

static void files_start(void)
{
    exchange_start(&kit);
    said = (brc_buf)BRC_BUF_INIT;
}

static void files_stop(void)
{
    brc_buf_dispose(&said);
    exchange_stop(&kit);
}

CASE("values", .setup = files_start, .teardown = files_stop, .timeout = 60);

EACH(all_files_are_one_place, keys)
{
    import_first("in", &keys[_i]);
    ck_assert_int_eq(lying(), FILES);
    ck_assert_int_eq(places(), 1);
    scenario_reopen(&kit);
    OK(&kit, read_all());
    scenario_whole(&kit);
    OK(&kit, exchange_import(&kit, "in", "/p", 0, &said));
    exchange_has(&kit, "/p", want, sizeof(want));
}

/* Two arrays of a hierarchy are two places, and one without dimensions is a file. */
TEST(each_array_is_a_place)
{
    exchange_text(&kit, "in/zarr.json",
                  "{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":{}}");
    put_array("in/one", &keys[0]);
    put_array("in/two", &keys[1]);
    put_chunk("in/two", &keys[1], 0, 0, 1); /* its content differs, else it lies in the first */
    exchange_text(&kit, "in/none/zarr.json",
                  "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[],\"data_type\":\"int32\","
                  "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[]}},"
                  "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":0,\"codecs\":[{"
                  "\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]}");
    exchange_file(&kit, "in/none/c", "abcd", 4);
    OK(&kit, lie("in", 0));
    scenario_commit(&kit, "all");
    ck_assert_int_eq(places(), 3);
    ck_assert_int_eq(places_like("[6,5]/ % in/one/c/"), 1);
    ck_assert_int_eq(places_like("[6,5]. % in/two/c."), 1);
    ck_assert_int_eq(places_like("4 % in/none/c"), 1);
    exchange_has(&kit, "/e/none", "abcd", 4);
    scenario_whole(&kit);
}

/* Versions of a directory in which one file became another. */
TEST(a_new_version_has_a_place_for_what_is_new)
{
    int32_t first[ROWS * COLUMNS], second[ROWS * COLUMNS];
    struct stat st;
    const struct keys *k = &keys[0];
    import_first("in", k);
    memcpy(first, want, sizeof(first));
    ck_assert_int_eq(stat(file_of("in", k, 0, 0), &st), 0);
    put_chunk("in", k, 3, 4, 50000);
    st.st_mtim.tv_sec += 5;
    const struct timespec times[] = { st.st_atim, st.st_mtim };
    ck_assert_int_eq(utimensat(AT_FDCWD, file_of("in", k, 3, 4), times, 0), 0);
    memcpy(second, want, sizeof(second));
    OK(&kit, lie("in", BRC_XFER_REPLACE));
    scenario_commit(&kit, "the next");
    ck_assert_int_eq(lying(), FILES + 1);
    ck_assert_int_eq(places(), 2);
    OK(&kit, read_all());
    /* what was replaced is gone, and the rest of the old version is not */
    brc_session *old = scenario_session(&kit, kit.repo, "main~1", BRC_SESSION_AT);
    memcpy(want, first, sizeof(want));
    FAILS(&kit, BRC_ECORRUPT, read_at(old));
    check_said("in/c/3/4 has changed");
    int32_t row[COLUMNS];
    brc_array *a = scenario_array_at(&kit, old, "/e");
    brc_sel sel = BRC_SEL_INIT;
    OK(&kit, brc_sel_parse(&sel, a, "[7]", &kit.err));
    OK(&kit, brc_array_read(a, &sel, row, sizeof(row), &kit.err));
    ck_assert_mem_eq(row, first + 7 * COLUMNS, sizeof(row));
    brc_array_free(a);
    brc_session_free(old);
}

/* The repository lies in the directory of the array. */
TEST(a_stem_may_be_empty)
{
    put_array(".", &keys[3]);
    OK(&kit, lie("", 0));
    scenario_commit(&kit, "all");
    OK(&kit, read_all());
    ck_assert_int_eq(places_like("[6,5]/ % "), 1);
    scenario_whole(&kit);
}

/* ---- what it costs -------------------------------- */

static int64_t file_bytes(void)
{
    struct stat st;
    ck_assert_int_eq(stat(kit.file, &st), 0);
    return st.st_size;
}

/* A directory with n files of noise. */
static void many_files(const char *dir, int n, uint64_t *random)
{
    char path[100], text[500];
    int32_t data[64];
    snprintf(path, sizeof(path), "%s/zarr.json", dir);
    snprintf(text, sizeof(text),
             "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[%d],\"data_type\":\"int32\","
             "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[64]}},"
             "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":0,\"codecs\":[{"
             "\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]}",
             n * 64);
    exchange_text(&kit, path, text);
    for (int i = 0; i < n; i++) {
        for (size_t j = 0; j < 64; j++)
            data[j] = (int32_t)(scenario_random(random) >> 32);
        snprintf(path, sizeof(path), "%s/c/%d", dir, i);
        exchange_file(&kit, path, data, sizeof(data));
    }
}

TEST(a_file_costs_at_most_100_bytes)
{
    enum { MANY = 3000 };
    uint64_t random = 4;
    many_files("few", 10, &random); /* then there are tables, and pages of them */
    many_files("many", MANY, &random);
    OK(&kit, exchange_import(&kit, "few", "/first", BRC_XFER_EXTERNAL, &said));
    scenario_commit(&kit, "first");
    const int64_t before = file_bytes();
    OK(&kit, exchange_import(&kit, "many", "/e", BRC_XFER_EXTERNAL, &said));
    scenario_commit(&kit, "second");
    ck_assert_int_eq(lying(), MANY + 10);
    ck_assert_int_le(file_bytes() - before, 100 * MANY);
}

/* ---- files that change -------------------------------- */

static struct stat was;

static void set_time(const char *path, int seconds)
{
    const struct timespec times[] = { was.st_atim,
                                      { was.st_mtim.tv_sec + seconds, was.st_mtim.tv_nsec } };
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void change_touch(const char *path)
{
    set_time(path, 100);
}
static void change_cut(const char *path)
{
    ck_assert_int_eq(truncate(path, was.st_size - 1), 0);
    set_time(path, 0);
}
static void change_grow(const char *path)
{
    ck_assert_int_eq(truncate(path, was.st_size + 1), 0);
    set_time(path, -100);
}
/* One byte is different, and nobody can see that. */
static void change_poke(const char *path)
{
    const int fd = open(path, O_RDWR);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, "\x77", 1, 4), 1);
    close(fd);
    set_time(path, 0);
}
static void change_remove(const char *path)
{
    ck_assert_int_eq(remove(path), 0);
}
static void change_to_fifo(const char *path)
{
    change_remove(path);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
}
static void change_to_folder(const char *path)
{
    change_remove(path);
    ck_assert_int_eq(mkdir(path, 0700), 0);
}
static void change_to_device(const char *path)
{
    change_remove(path);
    ck_assert_int_eq(symlink("/dev/zero", path), 0);
}

static const struct hazard {
    void (*happens)(const char *path);
    const char *says, *remedy;
    int missing; /* what fsck says of it */
} hazards[] = {
    { change_touch, "has changed since it was imported (its time is another)", "--rebase", 0 },
    { change_cut, "has changed since it was imported (its size is another)", "put the old", 0 },
    { change_grow, "has changed since it was imported (its size is another)", "import it", 0 },
    { change_poke, "do not match their checksum", "put the old ones back", 0 },
    { change_remove, "there is no file", "the folder of its array", 1 },
    { change_to_fifo, "is not a file any more", "put the file back", 0 },
    { change_to_folder, "is not a file any more", "put the file back", 0 },
    { change_to_device, "is not a file any more", "put the file back", 0 },
};

/* fsck finds one chunk, and says this of it. */
typedef struct found {
    int n, missing, named;
    const char *says;
} found;

static int count_damage(void *ctx, const brc_damage *damage)
{
    found *f = ctx;
    f->n++;
    f->missing += (damage->flags & BRC_DAMAGE_MISSING) != 0;
    f->named += strstr(damage->message, f->says) != NULL && damage->nused_by > 0;
    return 0;
}

CASE("files that change", .setup = files_start, .teardown = files_stop, .timeout = 60);

EACH(a_file_that_changed_is_an_error_that_names_it, hazards)
{
    const struct hazard *h = &hazards[_i];
    const struct keys *k = &keys[_i % 4];
    char key[60];
    uint64_t checked;
    import_first("in", k);
    const char *path = file_of("in", k, 4, 3);
    key_of(key, k, 4, 3);
    brc_buf copy = exchange_read(path);
    ck_assert_int_eq(stat(path, &was), 0);
    h->happens(path);
    for (int again = 0; again < 2; again++) {
        found f = { .says = h->says };
        FAILS(&kit, BRC_ECORRUPT, read_all());
        check_said(h->says);
        check_said(h->remedy);
        check_said(h->happens != change_poke ? key : "/e chunk (4,3)");
        OK(&kit, brc_fsck(kit.repo, 0, count_damage, NULL, &f, &checked, &kit.err));
        ck_assert_int_eq(f.n, 1);
        ck_assert_int_eq(f.named, 1);
        ck_assert_int_eq(f.missing, h->missing);
        scenario_reopen(&kit);
    }
    if (remove(path) != 0)
        ck_assert_int_eq(h->missing, 1);
    char name[80];
    snprintf(name, sizeof(name), "in/%s", key);
    exchange_file(&kit, name, copy.data, copy.len);
    set_time(path, 0);
    OK(&kit, read_all());
    scenario_whole(&kit);
    brc_buf_dispose(&copy);
}

/* A look at the places reads nothing; it finds one fault that says so, or (NULL) none. */
static void look_says(uint32_t flags, const char *says)
{
    brc_iter *it;
    const brc_backend_facts *one;
    int faults = 0;
    OK(&kit, brc_backends(&it, kit.repo, flags, &kit.err));
    while (brc_next(it, &one, &kit.err) == 1)
        for (size_t i = 0; i < one->nfaults; i++, faults++)
            ck_assert_msg(says != NULL && strstr(one->faults[i].why, says) != NULL, "%s",
                          one->faults[i].why);
    brc_iter_free(it);
    ck_assert_int_eq(faults, says != NULL);
}

EACH(a_folder_that_is_gone_is_seen_at_once, keys)
{
    import_first("data/in", &keys[_i]);
    look_says(BRC_BACKENDS_QUICK, NULL);
    look_says(BRC_BACKENDS_CHECK, NULL);
    ck_assert_int_eq(rename(exchange_path(&kit, "data"), exchange_path(&kit, "away")), 0);
    look_says(BRC_BACKENDS_QUICK, "there is no folder");
    look_says(BRC_BACKENDS_QUICK, "--rebase");
    exchange_text(&kit, "data/x", "x");
    exchange_text(&kit, "data/in", "not a folder");
    look_says(BRC_BACKENDS_QUICK, "there is no folder");
}

/* ---- what a stranger's file says -------------------------------- */

static const struct {
    const char *name; /* NULL: the name stays */
    const char *sql, *says;
} hostile[] = {
    { "[", NULL, "is not the name of a file" },
    { "[]/ 5 in/c/", NULL, "is not the name of a file" },
    { "[6]", NULL, "is not the name of a file" },
    { "[6,5]x 5 in/c/", NULL, "is not the name of a file" },
    { "[6,5] 5 in/c/", NULL, "is not the name of a file" },
    { "[6,5/ 5 in/c/", NULL, "is not the name of a file" },
    { "[6;5]/ 5 in/c/", NULL, "is not the name of a file" },
    { "[6,0]/ 5 in/c/", NULL, "is not the name of a file" },
    { "[6,05]/ 5 in/c/", NULL, "is not the name of a file" },
    { "[6,-5]/ 5 in/c/", NULL, "is not the name of a file" },
    { "[6,5,]/ 5 in/c/", NULL, "is not the name of a file" },
    { "[4294967296,4294967296]/ 5 in/c/", NULL, "is not the name of a file" },
    { "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]/ 5 in/c/", NULL,
      "is not the name of a file" },
    { "[6,5]/ 5in/c/", NULL, "is not the name of a file" },
    { "[6,5]/ 05 in/c/", NULL, "is not the name of a file" },
    { "[6,5]/ 5 ", NULL, "has changed since" }, /* the folder itself: there is a file 0/0 */
    { "[6,5]/ 5 ../c/", NULL, "is not the name of a file" },
    { "[6,5]/ 5 in/../c/", NULL, "is not the name of a file" },
    { "[6,5]/ 5 in/./c/", NULL, "is not the name of a file" },
    { "[6,5]/ 5 in//", NULL, "is not the name of a file" },
    { "[6,5]/ 5 /dev/", NULL, "there is no file" },
    { "[6,5]/ 5 in/c/", NULL, "has changed since" },
    { "[2,2]/ 9223372036854775807 in/c/", NULL, "is not a grid with a file number" },
    { NULL, "UPDATE object SET offset=30 WHERE backend>0", "is not a grid with a file number" },
    { NULL, "UPDATE object SET offset=2 WHERE backend>0", "there is no file" },
    { NULL, "UPDATE object SET offset=offset/5*5+(offset+1)%5 WHERE backend>0", "" },
    { NULL, "UPDATE object SET stored=stored-1 WHERE backend>0", "" },
};

CASE("strangers", .setup = files_start, .teardown = files_stop, .timeout = 60);

EACH(names_of_a_stranger, hostile)
{
    char sql[500];
    const char *name = hostile[_i].name;
    import_first("in", &keys[0]);
    exchange_text(&kit, "0/0", "not a chunk");
    scenario_close(&kit);
    snprintf(sql, sizeof(sql),
             "UPDATE place SET name='%s',"
             " checksum=row_sum('place', seq, backend, '%s', size, facts)",
             name != NULL ? name : "", name != NULL ? name : "");
    scenario_sql(&kit, name != NULL ? sql : hostile[_i].sql);
    scenario_open(&kit, NULL, 0);
    FAILS(&kit, BRC_ECORRUPT, read_all());
    check_said(hostile[_i].says);
}

/* ---- files that moved -------------------------------- */

static uint64_t moved, compared;

static int rebase(const char *from, const char *to)
{
    return brc_rebase_files(kit.repo, exchange_path(&kit, from), exchange_path(&kit, to), &moved,
                            &compared, &kit.err);
}

/* Copies the chunk files; they get the time of now, or one from before. */
static void copy_files(const char *from, const char *to, const struct keys *k, int is_older)
{
    char key[60], name[200];
    for (int row = 0; row < ROWS / CHUNK_ROWS; row++)
        for (int column = 0; column < 5; column++) {
            if (column == MISSING)
                continue;
            brc_buf bytes = exchange_read(file_of(from, k, row, column));
            key_of(key, k, row, column);
            snprintf(name, sizeof(name), "%s/%s", to, key);
            exchange_file(&kit, name, bytes.data, bytes.len);
            set_time(exchange_path(&kit, name), is_older ? -50 : 50 + row);
            brc_buf_dispose(&bytes);
        }
}

CASE("files that moved", .setup = files_start, .teardown = files_stop, .timeout = 60);

EACH(a_folder_that_moved, keys)
{
    const struct keys *k = &keys[_i];
    import_first("data/in", k);
    ck_assert_int_eq(rename(exchange_path(&kit, "data"), exchange_path(&kit, "new")), 0);
    FAILS(&kit, BRC_ECORRUPT, read_all());
    OK(&kit, rebase("data", "new"));
    ck_assert_uint_eq(moved, FILES);
    ck_assert_uint_eq(compared, 0);
    OK(&kit, read_all());
    ck_assert_int_eq(rename(exchange_path(&kit, "new/in"), exchange_path(&kit, "b")), 0);
    OK(&kit, rebase("new/in", "b"));
    ck_assert_uint_eq(moved, FILES);
    OK(&kit, read_all());
    if (k->version == 3 && k->separator == '/') {
        ck_assert_int_eq(rename(exchange_path(&kit, "b/c"), exchange_path(&kit, "d")), 0);
        OK(&kit, rebase("b/c/", "d"));
        OK(&kit, read_all());
    }
    scenario_whole(&kit);
    FAILS(&kit, BRC_ENOTFOUND, rebase("b/in", "new"));
    ck_assert_int_eq(places(), 1);
}

EACH(a_copy_with_later_times_is_compared, keys)
{
    const struct keys *k = &keys[_i];
    import_first("data/in", k);
    ck_assert_int_eq(stat(file_of("data/in", k, 0, 0), &was), 0);
    copy_files("data/in", "new/in", k, 0);
    OK(&kit, rebase("data", "new"));
    ck_assert_uint_eq(moved, FILES);
    ck_assert_uint_eq(compared, FILES);
    OK(&kit, read_all());
    OK(&kit, rebase("new", "new"));
    ck_assert_uint_eq(compared, 0);
    scenario_whole(&kit);
    /* times that are not later need no comparison: each read compares the checksum */
    copy_files("new/in", "old/in", k, 1);
    OK(&kit, rebase("new", "old"));
    ck_assert_uint_eq(compared, 0);
    OK(&kit, read_all());
}

TEST(a_file_that_was_only_touched)
{
    import_first("data/in", &keys[0]);
    const char *path = file_of("data/in", &keys[0], 5, 4);
    ck_assert_int_eq(stat(path, &was), 0);
    change_touch(path);
    FAILS(&kit, BRC_ECORRUPT, read_all());
    OK(&kit, rebase("data/in", "data/in"));
    ck_assert_uint_eq(compared, FILES);
    OK(&kit, read_all());
    scenario_whole(&kit);
}

/* Nothing changes if one file is missing, has another size or other bytes, or is a pipe. */
LOOP(all_files_must_be_there, 0, 4)
{
    static const char *const says[] = { "cannot open", "the file is another",
                                        "do not match their checksum", "is not a regular file" };
    static void (*const happens[])(const char *path) = { change_remove, change_cut, change_poke,
                                                         change_to_fifo };
    const struct keys *k = &keys[_i];
    import_first("data/in", k);
    ck_assert_int_eq(stat(file_of("data/in", k, 0, 0), &was), 0);
    copy_files("data/in", "new/in", k, 0);
    happens[_i](file_of("new/in", k, 2, 1));
    ck_assert_int_lt(rebase("data", "new"), 0);
    check_said(says[_i]);
    ck_assert_int_eq(places_like("% data/%"), 1);
    OK(&kit, read_all());
    scenario_whole(&kit);
}
