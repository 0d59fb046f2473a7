/*
 * The backend "external", where the chunks of an array are a file each: all files are one place.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kit/external_kit.h"
#include "../kit/sanitized.h"
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
    ck_assert_int_eq(external_lying(&kit), FILES);
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
    ck_assert_int_eq(external_lying(&kit), FILES + 1);
    ck_assert_int_eq(places(), 2);
    OK(&kit, read_all());
    /* what was replaced is gone, and the rest of the old version is not */
    brc_session *old = scenario_session(&kit, kit.repo, "main~1", BRC_SESSION_AT);
    memcpy(want, first, sizeof(want));
    FAILS(&kit, BRC_ECORRUPT, read_at(old));
    external_said(&kit, "in/c/3/4 has changed");
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

/* Puts the document of an array of n chunks of 64 int32; `more` follows the codec bytes. */
static void put_line_document(const char *dir, int n, const char *more)
{
    char path[100], text[600];
    snprintf(path, sizeof(path), "%s/zarr.json", dir);
    snprintf(text, sizeof(text),
             "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[%d],\"data_type\":\"int32\","
             "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[64]}},"
             "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":0,\"codecs\":[{"
             "\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}%s]}",
             n * 64, more);
    exchange_text(&kit, path, text);
}

/* A directory with n files of noise. */
static void many_files(const char *dir, int n, uint64_t *random)
{
    char path[100];
    int32_t data[64];
    put_line_document(dir, n, "");
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
    ck_assert_int_eq(external_lying(&kit), MANY + 10);
    ck_assert_int_le(file_bytes() - before, 100 * MANY);
}

/* Chunks whose gzip files are much longer than what they decode to: each has a long name inside. */
static void long_files(const char *dir, int n)
{
    enum { NAME = 2 << 20, HEAD = 10 };
    static uint8_t bytes[NAME + 4096];
    brc_buf member = BRC_BUF_INIT;
    char name[80];
    put_line_document(dir, n, ",{\"name\":\"gzip\",\"configuration\":{\"level\":1}}");
    for (int i = 0; i < n; i++) {
        const int32_t data[64] = { i + 1 };
        member.len = 0;
        exchange_gzip(&member, data, sizeof(data));
        memcpy(bytes, member.data, HEAD);
        bytes[3] = 8; /* the header has a name */
        memset(bytes + HEAD, 'n', NAME);
        bytes[HEAD + NAME] = '\0';
        memcpy(bytes + HEAD + NAME + 1, member.data + HEAD, member.len - HEAD);
        snprintf(name, sizeof(name), "%s/c/%d", dir, i);
        exchange_file(&kit, name, bytes, NAME + 1 + member.len);
    }
    brc_buf_dispose(&member);
}

/* The budget of memory counts the bytes of files, so they are read when their turn comes. */
TEST(long_chunk_files_are_read_one_by_one)
{
    enum { MANY = 96, MOST_KIB = 128 << 10 };
    struct rusage used;
    int status;
    long_files("in", MANY);
    scenario_close(&kit);
    const pid_t child = fork();
    if (child == 0) {
        brc_open_opts opts = BRC_OPEN_OPTS_INIT;
        opts.memory = 1 << 20;
        OK(&kit, brc_pool_new(&opts.pool, 2, &kit.err));
        scenario_open(&kit, &opts, 0);
        OK(&kit, lie("in", 0));
        _exit(external_lying(&kit) == MANY ? 0 : 1);
    }
    ck_assert_int_eq(wait4(child, &status, 0, &used), child);
    ck_assert_int_eq(status, 0);
    if (!KIT_SANITIZED)
        ck_assert_int_le(used.ru_maxrss, MOST_KIB);
    scenario_open(&kit, NULL, 0);
}

/* ---- files that change -------------------------------- */

CASE("files that change", .setup = files_start, .teardown = files_stop, .timeout = 60);

LOOP(a_file_that_changed_is_an_error_that_names_it, 0, EXTERNAL_HAZARDS)
{
    const external_hazard *h = &external_hazards[_i];
    const struct keys *k = &keys[_i % 4];
    char key[60], name[80];
    import_first("in", k);
    key_of(key, k, 4, 3);
    snprintf(name, sizeof(name), "in/%s", key);
    external_meets(&kit, h, name,
                   h->happens == external_poke ? "/e chunk (4,3)"
                   : h->missing                ? "the folder of its array"
                                               : name,
                   read_all);
}

EACH(a_folder_that_is_gone_is_seen_at_once, keys)
{
    import_first("data/in", &keys[_i]);
    external_look(&kit, BRC_BACKENDS_QUICK, NULL);
    external_look(&kit, BRC_BACKENDS_CHECK, NULL);
    ck_assert_int_eq(rename(exchange_path(&kit, "data"), exchange_path(&kit, "away")), 0);
    external_look(&kit, BRC_BACKENDS_QUICK, "there is no folder");
    external_look(&kit, BRC_BACKENDS_QUICK, "--rebase");
    exchange_text(&kit, "data/x", "x");
    exchange_text(&kit, "data/in", "not a folder");
    external_look(&kit, BRC_BACKENDS_QUICK, "there is no folder");
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
    external_said(&kit, hostile[_i].says);
}

/* ---- files that moved -------------------------------- */

static uint64_t moved, compared;
static struct stat was; /* a chunk file of the first directory */

static int rebase(const char *from, const char *to)
{
    return external_rebase(&kit, from, to, &moved, &compared);
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
            external_set_time(exchange_path(&kit, name), &was, is_older ? -50 : 50 + row);
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
    external_touch(path, &was);
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
    external_change *const happens[] = { external_remove, external_cut, external_poke,
                                         external_to_fifo };
    struct stat copy;
    const struct keys *k = &keys[_i];
    import_first("data/in", k);
    ck_assert_int_eq(stat(file_of("data/in", k, 0, 0), &was), 0);
    copy_files("data/in", "new/in", k, 0);
    const char *path = file_of("new/in", k, 2, 1);
    ck_assert_int_eq(stat(path, &copy), 0);
    happens[_i](path, &copy);
    ck_assert_int_lt(rebase("data", "new"), 0);
    external_said(&kit, says[_i]);
    ck_assert_int_eq(places_like("% data/%"), 1);
    OK(&kit, read_all());
    scenario_whole(&kit);
}
