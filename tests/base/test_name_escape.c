/* Names that no node may have, escaped: none is lost, and none becomes another. */
#include <stdlib.h>
#include <string.h>

#include "../../src/base/node_path.h"
#include "../kit/suite.h"

TEST_SUITE(name_escape);

static const char *const examples[][3] = {
    /* the file's, the node's, and back where a hierarchy cannot hold the first */
    { "a", "a", "a" },
    { "50%", "50%", "50%" },
    { "50%20off", "50%20off", "50%20off" },
    { "__categories", "%5F_categories", "__categories" },
    { "__", "%5F_", "__" },
    { "%5F_categories", "%255F_categories", "%5F_categories" },
    { "%255F_categories", "%25255F_categories", "%255F_categories" },
    { "a\nb", "a%0Ab", "a\nb" },
    { "100%\x7F", "100%25%7F", "100%\x7F" },
    { "a%0Ab", "a%250Ab", "a%0Ab" },
    { "a%0ab", "a%0ab", "a%0ab" },
    { "a%2Fb", "a%2Fb", "a%2Fb" },
    { "...", "%2E..", "..." },
    { "..", "%2E.", "%2E." },
    { ".", "%2E", "%2E" },
    { "", "%", "%" },
    { "%", "%", "%" },
    { "%2E", "%2E", "%2E" },
    { "zarr.json", "%7Aarr.json", "%7Aarr.json" },
    { "\xE9t\xE9", "%E9t%E9", "%E9t%E9" },
    { "a/b", "a%2Fb", "a%2Fb" },
};

CASE("all", .timeout = 300);

EACH(names_of_a_hierarchy_are_escaped_so, examples)
{
    const char *const *e = examples[_i];
    brc_buf node = BRC_BUF_INIT, back = BRC_BUF_INIT;
    ck_assert_int_eq(brc_name_escape(&node, e[0], strlen(e[0]), BRC_NAMES_FILES, NULL), BRC_OK);
    ck_assert_int_eq(brc_buf_terminate(&node, NULL), BRC_OK);
    ck_assert_str_eq((const char *)node.data, e[1]);
    ck_assert_int_eq(brc_name_unescape(&back, e[1], strlen(e[1]), BRC_NAMES_FILES, NULL), BRC_OK);
    ck_assert_int_eq(brc_buf_terminate(&back, NULL), BRC_OK);
    ck_assert_str_eq((const char *)back.data, e[2]);
    brc_buf_dispose(&node);
    brc_buf_dispose(&back);
}

/* The rules of the formats, said once more. */
static int format_has(const char *name, size_t len, int names)
{
    int dot = strcmp(name, ".") == 0, control = 0;
    unsigned char first = (unsigned char)name[0];
    for (size_t i = 0; i < len; i++)
        control |= (unsigned char)name[i] < 0x20;
    switch (names) {
    case BRC_NAMES_FILES:
        return len > 0 && !dot && strcmp(name, "..") != 0;
    case BRC_NAMES_HDF5:
        return len > 0 && !dot;
    case BRC_NAMES_NETCDF:
        return len > 0 && !control && first != '.' && first != '%';
    default:
        return 1;
    }
}

static int is_escape_free(const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)name[i] < 0x20)
            return 0;
    return brc_name_check(name, len, NULL) == BRC_OK;
}

typedef struct pair {
    char file[8], node[32];
} pair;

static int by_node(const void *a, const void *b)
{
    return strcmp(((const pair *)a)->node, ((const pair *)b)->node);
}

static void escape_one(char *to, size_t room, const char *from, int names, int back)
{
    brc_buf text = BRC_BUF_INIT;
    int rc = back ? brc_name_unescape(&text, from, strlen(from), names, NULL)
                  : brc_name_escape(&text, from, strlen(from), names, NULL);
    ck_assert_int_eq(rc, BRC_OK);
    ck_assert_uint_lt(text.len, room);
    if (text.len > 0)
        memcpy(to, text.data, text.len);
    to[text.len] = '\0';
    brc_buf_dispose(&text);
}

static const char alphabet[] = "_.%25EF\001a";
enum { LETTERS = sizeof(alphabet) - 1, LONGEST = 5 };

/* The number as a name; 0 at the end. */
static int name_at(char *name, size_t n)
{
    size_t len = 0, of_len = 1;
    while (n >= of_len) {
        n -= of_len;
        of_len *= LETTERS;
        if (++len > LONGEST)
            return 0;
    }
    for (size_t i = 0; i < len; i++, n /= LETTERS)
        name[i] = alphabet[n % LETTERS];
    name[len] = '\0';
    return 1;
}

/* All names of five characters that matter: what a format can hold comes back as it was, no two
 * become one, and what is a node's name is the same after an export and an import. */
LOOP(no_name_is_lost_and_none_becomes_another, BRC_NAMES_KEYS, BRC_NAMES_NETCDF + 1)
{
    char name[8], back[40], again[64];
    pair *all = NULL;
    size_t n = 0, cap = 0, held = 0;
    for (size_t i = 0; name_at(name, i); i++) {
        if (n == cap) {
            cap = cap ? 2 * cap : 1024;
            all = realloc(all, cap * sizeof(*all));
            ck_assert_ptr_nonnull(all);
        }
        pair *p = &all[n];
        memcpy(p->file, name, strlen(name) + 1);
        escape_one(p->node, sizeof(p->node), name, _i, 0);
        ck_assert(is_escape_free(p->node, strlen(p->node)));
        if (format_has(name, strlen(name), _i)) {
            escape_one(back, sizeof(back), p->node, _i, 1);
            ck_assert_str_eq(back, name);
            held++;
            n++;
        }
        if (is_escape_free(name, strlen(name))) {
            escape_one(back, sizeof(back), name, _i, 1);
            escape_one(again, sizeof(again), back, _i, 0);
            ck_assert_str_eq(again, name);
        }
    }
    ck_assert_uint_gt(held, 28000);
    qsort(all, n, sizeof(*all), by_node);
    for (size_t i = 1; i < n; i++)
        ck_assert_msg(strcmp(all[i - 1].node, all[i].node) != 0, "'%s' and '%s' both become '%s'",
                      all[i - 1].file, all[i].file, all[i].node);
    free(all);
}

/* Characters stay whole, and so do escapes; names that differ at the end alone differ. */
TEST(a_name_that_is_too_long_is_cut_with_its_hash)
{
    static const char *const units[] = { "x", "\xC3\xA9", "\001", "%" };
    for (size_t u = 0; u < sizeof(units) / sizeof(units[0]); u++)
        for (size_t n = 80; n < 300; n++) {
            brc_buf name = BRC_BUF_INIT, one = BRC_BUF_INIT, two = BRC_BUF_INIT;
            for (size_t i = 0; i < n; i++)
                ck_assert_int_eq(brc_buf_text(&name, units[u], NULL), BRC_OK);
            ck_assert_int_eq(brc_buf_text(&name, "\x02!", NULL), BRC_OK);
            ck_assert_int_eq(
                brc_name_escape(&one, (const char *)name.data, name.len, BRC_NAMES_KEYS, NULL),
                BRC_OK);
            name.data[name.len - 1] = '?';
            ck_assert_int_eq(
                brc_name_escape(&two, (const char *)name.data, name.len, BRC_NAMES_KEYS, NULL),
                BRC_OK);
            ck_assert(is_escape_free((const char *)one.data, one.len));
            ck_assert(one.len != two.len || memcmp(one.data, two.data, one.len) != 0);
            brc_buf_dispose(&name);
            brc_buf_dispose(&one);
            brc_buf_dispose(&two);
        }
}

TEST(paths_are_escaped_part_by_part)
{
    char *text;
    ck_assert_int_eq(brc_path_escape(&text, "/g/", "a/__b/..", BRC_NAMES_KEYS, NULL), BRC_OK);
    ck_assert_str_eq(text, "/g/a/%5F_b/%2E.");
    free(text);
    ck_assert_int_eq(brc_path_escape(&text, "/", "a//", BRC_NAMES_KEYS, NULL), BRC_OK);
    ck_assert_str_eq(text, "/a/%/%");
    free(text);
    ck_assert_int_eq(brc_path_escape(&text, "/", "", BRC_NAMES_FILES, NULL), BRC_OK);
    ck_assert_str_eq(text, "/");
    free(text);
    ck_assert_int_eq(brc_path_unescape(&text, "a/%5F_b/%2E.", BRC_NAMES_KEYS, NULL), BRC_OK);
    ck_assert_str_eq(text, "a/__b/..");
    free(text);
    ck_assert_int_eq(brc_path_unescape(&text, "a/%5F_b/%2E.", BRC_NAMES_FILES, NULL), BRC_OK);
    ck_assert_str_eq(text, "a/__b/%2E.");
    free(text);
}
