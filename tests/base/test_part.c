/* Lists of what an import cannot keep. */
#include <stdio.h>
#include <string.h>

#include "../../src/base/json.h"
#include "../../src/base/part.h"
#include "../kit/suite.h"

TEST_SUITE(part);

static brc_json *list_of(const brc_parts *parts)
{
    brc_buf text = BRC_BUF_INIT;
    brc_json *list;
    ck_assert_int_eq(brc_parts_write(parts, &text, NULL), BRC_OK);
    ck_assert_int_eq(brc_json_parse(&list, (char *)text.data, text.len, 0, NULL), BRC_OK);
    brc_buf_dispose(&text);
    return list;
}

static void has(const brc_json *part, const char *member, const char *expected)
{
    const char *text = "";
    ck_assert(brc_json_text(brc_json_member(part, member), &text));
    ck_assert_str_eq(text, expected);
}

TEST(kinds_and_remedies)
{
    brc_parts parts = BRC_PARTS_INIT;
    brc_error err = BRC_ERROR_INIT;
    char long_name[600];

    ck_assert_int_eq(brc_part_refuse(&err, BRC_PART_LINK, "cut it", "x: /a leads %s", "away"),
                     BRC_EUNSUPPORTED);
    ck_assert_str_eq(err.message, "x: /a leads away: cut it");
    brc_context(&err, "above");
    ck_assert_int_eq(brc_parts_add(&parts, "/a", NULL, &err, &err), 1);
    (void)brc_fail(&err, BRC_EUNSUPPORTED, "/b is odd");
    ck_assert_int_eq(brc_parts_add(&parts, "b", "at\"t\n\xff", &err, &err), 1);
    (void)brc_part_refuse(&err, BRC_PART_TYPE, NULL, "c");
    ck_assert_int_eq(brc_parts_add(&parts, "c", NULL, &err, &err), 1);
    memset(long_name, 'n', sizeof(long_name)); /* the remedy is cut off */
    long_name[sizeof(long_name) - 1] = '\0';
    (void)brc_part_refuse(&err, BRC_PART_SIZE, "shorten it", "%s", long_name);
    ck_assert_int_eq(brc_parts_add(&parts, "d", NULL, &err, &err), 1);

    brc_json *list = list_of(&parts);
    ck_assert_uint_eq(brc_json_count(list), 4);
    has(brc_json_item(list, 0), "path", "/a");
    has(brc_json_item(list, 0), "kind", "link");
    has(brc_json_item(list, 0), "message", "above: x: /a leads away: cut it");
    has(brc_json_item(list, 0), "remedy", "cut it");
    has(brc_json_item(list, 1), "path", "/b@at\"t\n?");
    has(brc_json_item(list, 1), "kind", "part");
    has(brc_json_item(list, 1), "message", "/b is odd");
    has(brc_json_item(list, 2), "kind", "data type");
    has(brc_json_item(list, 2), "remedy", "leave it out with --exclude or --skip-unsupported");
    has(brc_json_item(list, 3), "kind", "size");
    has(brc_json_item(list, 3), "remedy", "leave it out with --exclude or --skip-unsupported");
    brc_json_free(list);
    ck_assert_int_eq(brc_parts_fail(&parts, "x.h5", &err), BRC_EUNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "x.h5 has 4 parts that cannot be kept"));
    ck_assert_ptr_nonnull(strstr(err.message, "leads away"));
    brc_parts_dispose(&parts);
}

/* A part counts once, and a node is another part than its attributes. */
TEST(known_parts)
{
    brc_parts parts = BRC_PARTS_INIT;
    brc_error err = BRC_ERROR_INIT;
    (void)brc_fail(&err, BRC_EUNSUPPORTED, "the only one");
    ck_assert_int_eq(brc_parts_have(&parts, "/a"), 0);
    ck_assert_int_eq(brc_parts_add(&parts, "/a", "b", &err, &err), 1);
    ck_assert_int_eq(brc_parts_have(&parts, "/a"), 0);
    ck_assert_int_eq(brc_parts_fail(&parts, "x.h5", &err), BRC_EUNSUPPORTED);
    ck_assert_str_eq(err.message, "the only one");
    ck_assert_int_eq(brc_parts_add(&parts, "a", "b", &err, &err), 0);
    ck_assert_int_eq(brc_parts_add(&parts, "a", NULL, &err, &err), 1);
    ck_assert_int_eq(brc_parts_have(&parts, "/a"), 1);
    ck_assert_int_eq(brc_parts_have(&parts, "a"), 1);
    ck_assert_int_eq(brc_parts_have(&parts, "a@b"), 0);
    ck_assert_uint_eq(parts.n, 2);
    brc_parts_dispose(&parts);
}

/* However many there are, and however long: what is listed stays small, and all are counted. */
static void add_many(size_t name_length, size_t least, size_t most)
{
    brc_parts parts = BRC_PARTS_INIT;
    brc_error err = BRC_ERROR_INIT;
    static char path[5000];
    memset(path, 'n', name_length);
    (void)brc_fail(&err, BRC_EUNSUPPORTED, "no");
    for (int i = 0; i < 3000; i++) {
        snprintf(path + name_length, sizeof(path) - name_length, "%d", i);
        ck_assert_int_eq(brc_parts_add(&parts, path, NULL, &err, &err), 1);
    }
    ck_assert_uint_eq(parts.n, 3000);
    ck_assert_uint_ge(parts.listed, least);
    ck_assert_uint_le(parts.listed, most);
    ck_assert_uint_lt(parts.json.len, BRC_PARTS_BYTES + 20000);
    brc_json *list = list_of(&parts);
    ck_assert_uint_eq(brc_json_count(list), parts.listed + 1);
    const brc_json *last = brc_json_item(list, parts.listed);
    has(last, "kind", "more");
    char says[100];
    snprintf(says, sizeof(says), "%zu more parts, which are not listed", 3000 - parts.listed);
    has(last, "message", says);
    brc_json_free(list);
    ck_assert_int_eq(brc_parts_have(&parts, path), 1);
    brc_parts_dispose(&parts);
}

TEST(bounded)
{
    add_many(0, BRC_PARTS_MOST, BRC_PARTS_MOST);
    add_many(4900, 200, 220);
}
