/* Matching without recursion per character: the work is at most the product of the lengths, and for
 * '**' the product of the numbers of names besides. */
#include "pattern.h"

#include <string.h>

#include "node_path.h"
#include "buf.h"

typedef struct piece {
    const char *at;
    size_t len;
} piece;

/* Returns the bytes of the first character; a byte that is not UTF-8 is a character. */
static size_t character(piece of)
{
    size_t step = brc_utf8_step((const uint8_t *)of.at, of.len);
    return step ? step : 1;
}

static uint32_t code_of(const char *at, size_t len)
{
    uint32_t code = (uint8_t)at[0];
    if (len > 1) {
        code &= 0xFFU >> (len + 1);
        for (size_t i = 1; i < len; i++)
            code = code << 6 | ((uint8_t)at[i] & 0x3FU);
    }
    return code;
}

static void advance(piece *of, size_t n)
{
    of->at += n;
    of->len -= n;
}

static uint32_t take_code(piece *of)
{
    size_t len = character(*of);
    uint32_t code = code_of(of->at, len);
    advance(of, len);
    return code;
}

/* Returns the length of the set "[...]" at the front; 0 without a ']': '[' stands for itself. */
static size_t class_length(piece pattern)
{
    size_t i = 1;
    if (i < pattern.len && pattern.at[i] == '!')
        i++;
    if (i < pattern.len && pattern.at[i] == ']')
        i++;
    while (i < pattern.len && pattern.at[i] != ']')
        i++;
    return i < pattern.len ? i + 1 : 0;
}

/* Returns whether the set has the character. `set` is the text between the brackets. */
static int class_has(piece set, uint32_t code)
{
    int negated = set.len > 0 && *set.at == '!', has = 0;
    if (negated)
        advance(&set, 1);
    while (set.len > 0) {
        uint32_t from = take_code(&set), to = from;
        if (set.len > 1 && *set.at == '-') {
            advance(&set, 1);
            to = take_code(&set);
        }
        has |= code >= from && code <= to;
    }
    return has != negated;
}

/* Matches one character of the text with a place of the pattern other than '*'; both advance. */
static int match_one(piece *pattern, piece *text)
{
    if (*pattern->at == '?') {
        advance(pattern, 1);
        advance(text, character(*text));
        return 1;
    }
    size_t set = *pattern->at == '[' ? class_length(*pattern) : 0;
    if (set > 0) {
        piece inside = { pattern->at + 1, set - 2 };
        advance(pattern, set);
        return class_has(inside, take_code(text));
    }
    if (*pattern->at != *text->at)
        return 0;
    advance(pattern, 1);
    advance(text, 1);
    return 1;
}

/* Matches a name. The last '*' takes one character more each time that the rest does not match. */
static int match_name(piece pattern, piece text)
{
    piece behind_star = { NULL, 0 }, from = text;
    for (;;) {
        if (pattern.len > 0 && *pattern.at == '*') {
            advance(&pattern, 1);
            behind_star = pattern;
            from = text;
        } else if (text.len == 0 && pattern.len == 0) {
            return 1;
        } else if (text.len == 0 || pattern.len == 0 || !match_one(&pattern, &text)) {
            if (!behind_star.at || from.len == 0)
                return 0;
            advance(&from, character(from));
            pattern = behind_star;
            text = from;
        }
    }
}

/* Takes the first name off a path, which goes on after the slash. */
static piece take_step(piece *path)
{
    const char *slash = memchr(path->at, '/', path->len);
    piece name = { path->at, slash ? (size_t)(slash - path->at) : path->len };
    advance(path, name.len + (slash != NULL));
    return name;
}

/* Matches a path, with names in the place of characters and '**' in that of '*'. */
static int match_path(piece pattern, piece path)
{
    piece behind_stars = { NULL, 0 }, from = path;
    for (;;) {
        piece rest = pattern, name = take_step(&rest);
        if (name.len == 2 && memcmp(name.at, "**", 2) == 0) {
            pattern = behind_stars = rest;
            from = path;
            continue;
        }
        if (path.len == 0 && pattern.len == 0)
            return 1;
        if (path.len > 0 && pattern.len > 0 && match_name(name, take_step(&path))) {
            pattern = rest;
            continue;
        }
        if (!behind_stars.at || from.len == 0)
            return 0;
        (void)take_step(&from);
        pattern = behind_stars;
        path = from;
    }
}

static piece without_slashes(const char *at, size_t len)
{
    piece out = { at, len };
    while (out.len > 0 && *out.at == '/')
        advance(&out, 1);
    while (out.len > 0 && out.at[out.len - 1] == '/')
        out.len--;
    return out;
}

int brc_pattern_has_node(const char *pattern, const char *path, size_t len)
{
    piece node = without_slashes(path, len);
    if (brc_path_is_same(path, len, pattern))
        return 1;
    return node.len > 0 && match_path(without_slashes(pattern, strlen(pattern)), node);
}

static int is_attribute(piece node, piece attribute, piece path, const char *name)
{
    piece text = { name, strlen(name) };
    int same_node = node.len == path.len && memcmp(node.at, path.at, node.len) == 0;
    int same_name = attribute.len == text.len && memcmp(attribute.at, name, text.len) == 0;
    return (same_node || match_path(node, path)) && (same_name || match_name(attribute, text));
}

int brc_pattern_has_attribute(const char *pattern, const char *path, size_t len, const char *name)
{
    piece node = without_slashes(path, len);
    for (const char *at = strchr(pattern, '@'); at; at = strchr(at + 1, '@')) {
        piece of = without_slashes(pattern, (size_t)(at - pattern));
        if (is_attribute(of, (piece){ at + 1, strlen(at + 1) }, node, name))
            return 1;
    }
    return 0;
}
