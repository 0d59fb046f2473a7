/* Patterns of paths and of attributes. */
#include <string.h>

#include "../../src/base/pattern.h"
#include "../kit/suite.h"

TEST_SUITE(pattern);

static const struct {
    const char *pattern, *path;
    int has;
} nodes[] = {
    { "a", "a", 1 },          { "/a/", "/a", 1 },       { "a", "b", 0 },
    { "a", "a/b", 0 },        { "a/b", "/a/b", 1 },     { "*", "a", 1 },
    { "*", "a/b", 0 },        { "a*", "abc", 1 },       { "*c", "abc", 1 },
    { "a*c", "ac", 1 },       { "a*b*c", "axbxbxc", 1 }, { "a*b*c", "axbxcx", 0 },
    { "?", "a", 1 },          { "?", "\xc3\xa6", 1 },   { "?", "ab", 0 },
    { "??", "\xc3\xa6" "b", 1 }, { "[ab]", "b", 1 },    { "[!ab]", "b", 0 },
    { "[!ab]", "c", 1 },      { "[a-c]x", "bx", 1 },    { "[]]", "]", 1 },
    { "[", "[", 1 },          { "a[b", "a[b", 1 },      { "[\xc3\xa0-\xc3\xb0]", "\xc3\xa6", 1 },
    { "a[1]", "a[1]", 1 }, /* a path that is there names itself */
    { "a*", "a*", 1 },        { "**", "a", 1 },         { "**", "a/b/c", 1 },
    { "**/c", "c", 1 },       { "**/c", "a/b/c", 1 },   { "**/c", "a/b/cd", 0 },
    { "a/**", "a", 1 },       { "a/**", "a/b", 1 },     { "a/**/d", "a/b/c/d", 1 },
    { "a/**/d", "a/d", 1 },   { "a/**/d", "b/d", 0 },   { "**/b/**/d", "a/b/c/b/d", 1 },
    { "*/b", "a/b", 1 },      { "*/b", "b", 0 },        { "a/*/c", "a/b/c", 1 },
    { "a/*/c", "a/c", 0 },    { "", "a", 0 },           { "/", "a", 0 },
    { "/", "", 0 },           { "**", "", 0 },          { "a@b", "a@b", 1 },
    { "a@b", "a", 0 },        { "\xff*", "\xff" "a", 1 }, { "a\\*", "ab", 0 },
};

EACH(of_nodes, nodes)
{
    const char *path = nodes[_i].path;
    ck_assert_msg(brc_pattern_has_node(nodes[_i].pattern, path, strlen(path)) == nodes[_i].has,
                  "'%s' and '%s'", nodes[_i].pattern, path);
}

static const struct {
    const char *pattern, *path, *name;
    int has;
} attributes[] = {
    { "/t@units", "t", "units", 1 },   { "t@units", "/t", "units", 1 },
    { "t@units", "t", "unit", 0 },     { "t@units", "t/u", "units", 0 },
    { "@units", "", "units", 1 },      { "/@units", "/", "units", 1 },
    { "@units", "t", "units", 0 },     { "**@units", "", "units", 1 },
    { "**@units", "a/b", "units", 1 }, { "*@*", "a", "units", 1 },
    { "*@*", "a", "", 1 },             { "a@b@c", "a", "b@c", 1 },
    { "a@b@c", "a@b", "c", 1 },        { "a@b@c", "a@b@c", "", 0 },
    { "a@b/c", "a", "b/c", 1 },        { "a@b*", "a", "b/c", 1 },
    { "a@[x]", "a", "[x]", 1 },        { "a", "a", "a", 0 },
    { "a@", "a", "", 1 },              { "a@", "a", "b", 0 },
};

EACH(of_attributes, attributes)
{
    const char *path = attributes[_i].path;
    ck_assert_msg(brc_pattern_has_attribute(attributes[_i].pattern, path, strlen(path),
                                            attributes[_i].name) == attributes[_i].has,
                  "'%s' and '%s' '%s'", attributes[_i].pattern, path, attributes[_i].name);
}

/* Stars of both kinds do not multiply: these would take longer than anybody waits. */
TEST(many_stars)
{
    char pattern[4097], path[4097];
    for (size_t i = 0; i < 2048; i++) {
        memcpy(pattern + 2 * i, "*a", 2);
        memcpy(path + 2 * i, "aa", 2);
    }
    pattern[4094] = 'b';
    pattern[4095] = pattern[4096] = path[4096] = '\0';
    ck_assert_int_eq(brc_pattern_has_node(pattern, path, 4096), 0);
    for (size_t i = 0; i < 512; i++) {
        memcpy(pattern + 5 * i, "**/a/", 5);
        memcpy(path + 2 * i, "a/", 2);
    }
    memcpy(pattern + 2560, "b", 2);
    ck_assert_int_eq(brc_pattern_has_node(pattern, path, 1024), 0);
}
