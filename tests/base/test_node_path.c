/* Lists of paths: what is in them, and what they cover. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/node_path.h"
#include "../kit/suite.h"

TEST_SUITE(node_path);

/* Says in the obvious way whether one of the paths is `path` or an ancestor of it. */
static int covers(const char *const *paths, size_t n, const char *path)
{
    for (size_t i = 0; i < n; i++) {
        const size_t len = strlen(paths[i]);
        if (paths[i][1] == '\0' ||
            (strncmp(path, paths[i], len) == 0 && (path[len] == '/' || path[len] == '\0')))
            return 1;
    }
    return 0;
}

static int has(const char *const *paths, size_t n, const char *path)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(path, paths[i]) == 0)
            return 1;
    return 0;
}

/* Names that are the start of others, and characters on both sides of '/'. */
static const char *const all[] = {"/",    "/a",   "/a!",   "/a!/b", "/a/b", "/a/b/c",
                                  "/a0",  "/aa",  "/aa/b", "/ab",   "/b",   "/b/a",
                                  "/b/a!", "/b/aa", "/a/bb", "/a/b!"};
enum { ALL = sizeof(all) / sizeof(all[0]) };

CASE("node_path", .timeout = 60);

TEST(lists_of_paths_say_what_a_look_at_each_says)
{
    for (unsigned set = 0; set < 1u << ALL; set += 7) {
        const char *list[ALL];
        size_t n = 0;
        for (int i = ALL; i-- > 0;)
            if (set >> i & 1)
                list[n++] = all[i];
        brc_paths_sort(list, n);
        for (int i = 0; i < ALL; i++) {
            ck_assert_int_eq(brc_paths_have(list, n, all[i], NULL), has(list, n, all[i]));
            ck_assert_int_eq(brc_paths_cover(list, n, all[i], NULL), covers(list, n, all[i]));
        }
    }
}

/* A merge with so many conflicts of nodes asks for each of them. */
TEST(ten_thousand_paths_are_not_looked_at_one_by_one)
{
    enum { N = 10000, LOG = 14 };
    static char text[N][16];
    static const char *list[N];
    size_t looks = 0, of_cover = 0;
    for (int i = 0; i < N; i++) {
        snprintf(text[i], sizeof(text[i]), "/g/n%d", (i * 7919) % N);
        list[i] = text[i];
    }
    brc_paths_sort(list, N);
    for (int i = 0; i < N; i++) {
        ck_assert(brc_paths_have(list, N, text[i], &looks));
        ck_assert(brc_paths_cover(list, N, text[i], &of_cover));
    }
    ck_assert_uint_gt(looks, 0);
    ck_assert_uint_le(looks, (size_t)N * LOG);
    ck_assert_uint_le(of_cover, (size_t)N * LOG * 3); /* "/", "/g" and itself */
}
