/* Files and directories, inside a temporary directory. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../kit/folder.h"
#include "../kit/suite.h"

TEST_SUITE(file);

#define OK(expr) ck_assert_int_eq((expr), BRC_OK)

static char root[64];

static void make_root(void)
{
    folder_make(root, sizeof(root), FOLDER_DISK);
}

static void remove_root(void)
{
    brc_tree_remove(root);
    ck_assert_int_eq(brc_file_kind(root), 0);
}

static char *in_root(const char *name)
{
    char *path;
    OK(brc_path_join(&path, root, name, NULL));
    return path;
}

CASE("file", .setup = make_root, .teardown = remove_root);

TEST(written_files_read_back)
{
    static const size_t lens[] = { 0, 1, 70000, 5000000 };
    char *data = malloc(5000000);
    for (size_t i = 0; i < 5000000; i++)
        data[i] = (char)(i * 31 + i / 256);
    for (size_t k = 0; k < sizeof(lens) / sizeof(lens[0]); k++) {
        char name[32];
        snprintf(name, sizeof(name), "f%zu", k);
        char *path = in_root(name);
        brc_buf buf = BRC_BUF_INIT;
        OK(brc_file_write(path, data, lens[k], NULL));
        ck_assert_int_eq(brc_file_kind(path), 2);
        OK(brc_buf_text(&buf, "before", NULL));
        OK(brc_file_read(&buf, path, NULL));
        ck_assert_uint_eq(buf.len, lens[k] + 6);
        ck_assert_int_eq(memcmp(buf.data, "before", 6), 0);
        ck_assert_int_eq(memcmp(buf.data + 6, data, lens[k]), 0);
        brc_buf_dispose(&buf);
        free(path);
    }
    free(data);
}

TEST(files_are_never_overwritten)
{
    char *path = in_root("file");
    brc_error err = BRC_ERROR_INIT;
    brc_buf buf = BRC_BUF_INIT;
    OK(brc_file_write(path, "first", 5, &err));
    ck_assert_int_eq(brc_file_write(path, "second", 6, &err), BRC_EEXISTS);
    ck_assert_ptr_nonnull(strstr(err.message, path));
    ck_assert_int_eq(err.detail, EEXIST);
    OK(brc_file_read(&buf, path, &err));
    ck_assert_mem_eq(buf.data, "first", 5);
    brc_buf_dispose(&buf);
    free(path);
}

/* A file that could not be written whole is removed. */
TEST(f22_half_a_file_does_not_stay)
{
    static uint8_t data[100000];
    struct rlimit before, small;
    char *path = in_root("file");
    brc_error err = BRC_ERROR_INIT;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){ 50000, before.rlim_max };
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    int rc = brc_file_write(path, data, sizeof(data), &err);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    ck_assert_int_eq(rc, BRC_EIO);
    ck_assert_int_eq(err.detail, EFBIG);
    ck_assert_ptr_nonnull(strstr(err.message, path));
    ck_assert_int_eq(brc_file_kind(path), 0);
    free(path);
}

TEST(limits_hold_while_reading)
{
    char *path = in_root("file");
    brc_error err = BRC_ERROR_INIT;
    uint8_t memory[12];
    brc_buf buf = BRC_BUF_INIT, fixed = BRC_FIXED_BUF(memory, 12);
    fixed.len = 2;
    OK(brc_file_write(path, "0123456789", 10, &err));
    buf.limit = 10;
    OK(brc_file_read(&buf, path, &err));
    ck_assert_uint_eq(buf.len, 10);
    ck_assert_int_eq(brc_file_read(&buf, path, &err), BRC_ELIMIT);
    ck_assert_ptr_nonnull(strstr(err.message, path));
    ck_assert_uint_eq(buf.len, 10);
    brc_buf_dispose(&buf);
    OK(brc_file_read(&fixed, path, &err)); /* fits exactly */
    ck_assert_uint_eq(fixed.len, 12);
    fixed.len = 3;
    ck_assert_int_eq(brc_file_read(&fixed, path, &err), BRC_ELIMIT);
    ck_assert_uint_eq(fixed.len, 3);
    /* no size is known beforehand */
    buf.limit = 1000;
    ck_assert_int_eq(brc_file_read(&buf, "/dev/zero", &err), BRC_ELIMIT);
    ck_assert_uint_eq(buf.len, 0);
    ck_assert_uint_le(buf.cap, 1000);
    brc_buf_dispose(&buf);
    free(path);
}

/* More than a pipe holds, so that it comes in pieces. */
TEST(pipes_are_read_to_their_end)
{
    int ends[2];
    char path[64], *data = malloc(300000);
    memset(data, 'p', 300000);
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        size_t done = 0;
        while (done < 300000) {
            ssize_t n = write(ends[1], data + done, 300000 - done);
            if (n <= 0)
                break;
            done += (size_t)n;
        }
        _exit(0);
    }
    close(ends[1]);
    snprintf(path, sizeof(path), "/dev/fd/%d", ends[0]);
    brc_buf buf = BRC_BUF_INIT;
    OK(brc_file_read(&buf, path, NULL));
    ck_assert_uint_eq(buf.len, 300000);
    ck_assert_int_eq(memcmp(buf.data, data, 300000), 0);
    brc_buf_dispose(&buf);
    close(ends[0]);
    free(data);
}

TEST(what_is_not_there)
{
    char *path = in_root("nothing/at/all");
    brc_error err = BRC_ERROR_INIT;
    brc_buf buf = BRC_BUF_INIT;
    ck_assert_int_eq(brc_file_read(&buf, path, &err), BRC_ENOTFOUND);
    ck_assert_int_eq(brc_file_write(path, "x", 1, &err), BRC_ENOTFOUND);
    ck_assert_int_eq(brc_dir_make(path, &err), BRC_ENOTFOUND);
    ck_assert_int_eq(brc_file_kind(path), 0);
    ck_assert_int_eq(brc_file_read(&buf, root, &err), BRC_EIO);
    ck_assert_int_eq(err.detail, EISDIR);
    ck_assert_int_eq(brc_file_kind("/dev/null"), 3);
    brc_buf_dispose(&buf);
    free(path);
}

TEST(parents_are_made_below_the_root)
{
    brc_error err = BRC_ERROR_INIT;
    char *path = in_root("a/b/c/file"), *dir = in_root("a/b/c"), *file = in_root("plain");
    char *below = in_root("plain/x/y");
    OK(brc_dir_make_parents(path, strlen(root), &err));
    ck_assert_int_eq(brc_file_kind(dir), 1);
    ck_assert_int_eq(brc_file_kind(path), 0);
    OK(brc_dir_make_parents(path, strlen(root), &err));
    OK(brc_file_write(path, "x", 1, &err));
    ck_assert_int_eq(brc_dir_make(dir, &err), BRC_EEXISTS);
    OK(brc_file_write(file, "x", 1, &err));
    ck_assert_int_eq(brc_dir_make_parents(below, strlen(root), &err), BRC_EEXISTS);
    ck_assert_ptr_nonnull(strstr(err.message, file));
    free(path);
    free(dir);
    free(file);
    free(below);
    /* the root itself, and what lies above it, is not made */
    path = in_root("missing/x");
    ck_assert_int_eq(brc_dir_make_parents(path, strlen(path) - 2, &err), BRC_OK);
    ck_assert_int_eq(brc_dir_make_parents(path, strlen(root), &err), BRC_OK);
    brc_tree_remove(path);
    free(path);
    path = in_root("absent/x/y");
    ck_assert_int_eq(brc_dir_make_parents(path, strlen(path) - 4, &err), BRC_ENOTFOUND);
    free(path);
    path = in_root("absent");
    ck_assert_int_eq(brc_file_kind(path), 0);
    free(path);
}

static int collect_name(void *ctx, const char *name, brc_error *err)
{
    if (strcmp(name, "stop") == 0)
        return brc_fail(err, BRC_EINTERRUPT, "stopped");
    return brc_buf_printf(ctx, err, "%s ", name);
}

/* Goes on so many times. */
static int check_left(void *ctx, brc_error *err)
{
    return --*(int *)ctx >= 0 ? BRC_OK : brc_fail(err, BRC_EINTERRUPT, "enough");
}

static int count_found(void *ctx, const char *name, brc_error *err)
{
    (void)name;
    (void)err;
    ++*(size_t *)ctx;
    return BRC_OK;
}

TEST(f15_large_directories_can_be_left)
{
    enum { FILES = 5000 };
    brc_error err = BRC_ERROR_INIT;
    int left = 3;
    brc_dir_check check = { check_left, &left };
    size_t n = 0;
    for (int i = 0; i < FILES; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%d", i);
        char *path = in_root(name);
        OK(brc_file_write(path, NULL, 0, &err));
        free(path);
    }
    ck_assert_int_eq(brc_dir_each_checked(root, count_found, &n, &check, &err), BRC_EINTERRUPT);
    ck_assert_uint_eq(n, 0); /* while the names are collected */
    left = 6;
    ck_assert_int_eq(brc_dir_each_checked(root, count_found, &n, &check, &err), BRC_EINTERRUPT);
    ck_assert_uint_gt(n, 1000); /* while they are gone through */
    ck_assert_uint_lt(n, 4000);
    n = 0;
    left = 100;
    OK(brc_dir_each_checked(root, count_found, &n, &check, &err));
    ck_assert_uint_eq(n, FILES);
    ck_assert_int_le(left, 100 - 2 * (FILES / 1024));
}

TEST(directories_are_listed_in_order)
{
    static const char *const names[] = { "b", "a", "10", "9", ".hidden", "sub" };
    brc_error err = BRC_ERROR_INIT;
    brc_buf buf = BRC_BUF_INIT;
    OK(brc_dir_each(root, collect_name, &buf, &err));
    ck_assert_uint_eq(buf.len, 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char *path = in_root(names[i]);
        OK(i == 5 ? brc_dir_make(path, &err) : brc_file_write(path, NULL, 0, &err));
        free(path);
    }
    OK(brc_dir_each(root, collect_name, &buf, &err));
    OK(brc_buf_terminate(&buf, &err));
    ck_assert_str_eq((char *)buf.data, ".hidden 10 9 a b sub ");
    char *path = in_root("stop");
    OK(brc_file_write(path, NULL, 0, &err));
    buf.len = 0;
    ck_assert_int_eq(brc_dir_each(root, collect_name, &buf, &err), BRC_EINTERRUPT);
    ck_assert_str_eq(err.message, "stopped");
    ck_assert_uint_eq(buf.len, strlen(".hidden 10 9 a b "));
    ck_assert_int_eq(brc_dir_each(path, collect_name, &buf, &err), BRC_ENOTFOUND);
    free(path);
    brc_buf_dispose(&buf);
}

TEST(trees_are_removed_but_not_what_links_name)
{
    char *outside = in_root("outside"), *inside = in_root("outside/kept");
    char *tree = in_root("tree"), *sub = in_root("tree/sub"), *link = in_root("tree/sub/link");
    char *file = in_root("tree/sub/file");
    OK(brc_dir_make(outside, NULL));
    OK(brc_file_write(inside, "x", 1, NULL));
    OK(brc_dir_make_parents(file, strlen(root), NULL));
    OK(brc_file_write(file, "x", 1, NULL));
    ck_assert_int_eq(symlink(outside, link), 0);
    brc_tree_remove(tree);
    ck_assert_int_eq(brc_file_kind(tree), 0);
    ck_assert_int_eq(brc_file_kind(inside), 2);
    brc_tree_remove(tree); /* nothing there: nothing happens */
    free(outside);
    free(inside);
    free(tree);
    free(sub);
    free(link);
    free(file);
}

TEST(paths_are_joined_with_one_slash)
{
    static const char *const cases[][3] = {
        { "a", "b", "a/b" }, { "a/", "b", "a/b" }, { "/", "b", "/b" }, { "", "b", "b" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *path;
        OK(brc_path_join(&path, cases[i][0], cases[i][1], NULL));
        ck_assert_str_eq(path, cases[i][2]);
        free(path);
    }
}
