/* Moves in the text of a commit, and what sets of them say of paths. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/history/commit.h"
#include "../../src/history/moves.h"
#include "../kit/store_kit.h"
#include "../kit/suite.h"

TEST_SUITE(move_set);

STORE_KIT_FIXTURE(kit)

#define OK(call) KIT_OK(&kit, call)
#define FAILS(code, words, call) KIT_FAILS(&kit, code, words, call)

/* "/to</from " once for each, in any order. */
static brc_move_set set_of(const char *text)
{
    brc_move_set set = {0};
    char *copy = strdup(text), *save = NULL;
    for (char *to = strtok_r(copy, " ", &save); to != NULL; to = strtok_r(NULL, " ", &save)) {
        char *from = strchr(to, '<');
        *from++ = '\0';
        OK(brc_move_set_add(&set, from, to, &kit.err));
    }
    OK(brc_move_set_seal(&set, &kit.err));
    free(copy);
    return set;
}

static void set_is(const brc_move_set *set, const char *want)
{
    brc_buf text = BRC_BUF_INIT;
    for (size_t i = 0; i < set->n; i++)
        OK(brc_buf_printf(&text, &kit.err, "%s<%s ", set->items[i].to, set->items[i].from));
    OK(brc_buf_terminate(&text, &kit.err));
    ck_assert_str_eq((const char *)text.data, want);
    brc_buf_dispose(&text);
}

/* ---- made again -------------------------------- */

#define NEW(path) path "<" path "/\x01"

static void joined_is(const char *older, const char *newer, const char *want)
{
    brc_move_set a = set_of(older), b = set_of(newer), out = {0};
    OK(brc_move_set_join(&out, &a, &b, &kit.err));
    set_is(&out, want);
    brc_move_set_dispose(&a);
    brc_move_set_dispose(&b);
    brc_move_set_dispose(&out);
}

CASE("moves", .setup = kit_start, .teardown = kit_stop);

TEST(a_node_that_was_made_again_is_new_wherever_it_goes)
{
    joined_is(NEW("/a"), "", NEW("/a") " ");
    joined_is(NEW("/a"), "/b</a", NEW("/b") " ");
    joined_is(NEW("/g"), "/y</g/x", NEW("/g") " " NEW("/y") " ");
    joined_is("/a</z", NEW("/a"), NEW("/a") " ");
    joined_is(NEW("/a"), NEW("/a"), NEW("/a") " ");
    joined_is(NEW("/g/a"), "/h</g", "/h</g " NEW("/h/a") " ");
}

TEST(a_node_that_was_made_again_is_new_backwards_too)
{
    brc_move_set set = set_of("/h</g " NEW("/h/a")), back = {0};
    OK(brc_move_set_turn(&back, &set, &kit.err));
    set_is(&back, "/g</h " NEW("/g/a") " ");
    brc_move_set_dispose(&set);
    brc_move_set_dispose(&back);
}

/* Their place is free to be a node's: the one that moved from there is believed. */
TEST(a_node_of_the_name_may_move)
{
    brc_move_set set = set_of(NEW("/g") " /y</g/\x01");
    set_is(&set, "/y</g/\x01 ");
    brc_move_set_dispose(&set);
}

/* ---- text -------------------------------- */

#define HEX "00112233445566778899aabbccddeeff"
#define TEXT(moves) "parent " HEX "\n" moves "author a\ntime 5\n\nm"

static int parse(const char *text, brc_commit **out)
{
    brc_oid id = store_kit_id(1);
    return brc_commit_parse(out, &id, (brc_span){ (const uint8_t *)text, strlen(text) }, 16,
                            &kit.err);
}

TEST(a_commit_s_moves_come_back)
{
    brc_oid parent = store_kit_id(2);
    brc_commit c = { .author = "a", .message = "move /x /y\n", .time_us = 1, .parents = &parent,
                     .nparents = 1 }, *got;
    brc_move_set set = {0};
    OK(brc_move_set_add(&set, "/a b", "/z", &kit.err));
    OK(brc_move_set_add(&set, "/%\n\x01\x7f/\xc3\xa4", "/c d/e", &kit.err));
    OK(brc_move_set_add(&set, "/z", "/a b", &kit.err));
    OK(brc_move_set_seal(&set, &kit.err));
    OK(brc_store_begin(kit.store, &kit.err));
    OK(brc_commit_put(kit.store, &c, &set, &kit.err));
    OK(brc_store_end(kit.store, 1, &kit.err));
    store_kit_reopen(&kit);
    brc_span text;
    OK(brc_store_get(kit.store, BRC_KIND_COMMIT, &c.id, &text, &kit.err));
    static const char lines[] = "\nmove /z /a%20b\nmove /%25%0A%01%7F/\xc3\xa4 /c%20d/e\n"
                                "move /a%20b /z\nauthor";
    ck_assert_ptr_nonnull(memmem(text.data, text.len, lines, sizeof(lines) - 1));
    OK(brc_commit_get(&got, kit.store, &c.id, &kit.err));
    set_is(brc_commit_moves(got), "/a b</z /c d/e</%\n\x01\x7f/\xc3\xa4 /z</a b ");
    ck_assert_str_eq(got->message, c.message);
    brc_commit_free(got);
    OK(parse(TEXT(""), &got));
    ck_assert_uint_eq(brc_commit_moves(got)->n, 0);
    brc_commit_free(got);
    brc_move_set_dispose(&set);
}

static const struct {
    const char *text;
    int good;
} texts[] = {
    { TEXT("move /a /b\n"), 1 },
    { TEXT("move /a /a\n"), 1 }, /* where a node above it moved */
    { TEXT("move /b /a\nmove /a /b\n"), 1 },
    { TEXT("move /a /b\nmove /c /b-\nmove /d /b/x\n"), 1 }, /* by bytes */
    { TEXT("move /c /b-\nmove /d /b/x\nmove /e /b\n"), 0 },
    { TEXT("move /a /b\nmove /c /b\n"), 0 },
    { TEXT("move /a /b\nmove /a /c\n"), 0 },
    { TEXT("move /a\n"), 0 },
    { TEXT("move /a \n"), 0 },
    { TEXT("move  /a\n"), 0 },
    { TEXT("move /a /b \n"), 0 },
    { TEXT("move /a /b c\n"), 0 },
    { TEXT("move /a /b\r\n"), 0 },
    { TEXT("move /a\t/b\n"), 0 },
    { TEXT("move / /b\n"), 0 },
    { TEXT("move /a /\n"), 0 },
    { TEXT("move a /b\n"), 0 },
    { TEXT("move /a /b/\n"), 0 },
    { TEXT("move /a /b//c\n"), 0 },
    { TEXT("move /a /..\n"), 0 },
    { TEXT("move /a /zarr.json\n"), 0 },
    { TEXT("move /a /b%20\n"), 1 },
    { TEXT("move /a /b%41\n"), 0 }, /* another way to write /bA */
    { TEXT("move /a /b%0a\n"), 0 },
    { TEXT("move /a /b%00\n"), 0 },
    { TEXT("move /a /b%2\n"), 0 },
    { TEXT("move /a /b%\n"), 0 },
    { TEXT("move /a /b%2F\n"), 0 },
    { "move /a /b\nauthor a\ntime 5\n\nm", 0 }, /* from which parent? */
    { "move /a /b\nparent " HEX "\nauthor a\ntime 5\n\nm", 0 },
    { "parent " HEX "\nauthor a\nmove /a /b\ntime 5\n\nm", 0 },
};

TEST(moves_that_have_another_form_are_damage)
{
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        brc_commit *c = NULL;
        int rc = parse(texts[i].text, &c);
        ck_assert_msg(rc == (texts[i].good ? BRC_OK : BRC_ECORRUPT), "%s: %d", texts[i].text, rc);
        ck_assert_ptr_eq(texts[i].good ? NULL : c, NULL);
        brc_commit_free(c);
    }
}

TEST(paths_of_moves_have_limits)
{
    brc_commit *c;
    brc_buf text = BRC_BUF_INIT;
    for (int deep = 0; deep < 2; deep++) {
        text.len = 0;
        OK(brc_buf_text(&text, "parent " HEX "\nmove /a ", &kit.err));
        for (int i = 0; i < BRC_DEPTH_MAX + deep; i++)
            OK(brc_buf_text(&text, "/n", &kit.err));
        OK(brc_buf_text(&text, "\nauthor a\ntime 5\n\nm", &kit.err));
        OK(brc_buf_terminate(&text, &kit.err));
        ck_assert_int_eq(parse((const char *)text.data, &c), deep ? BRC_ECORRUPT : BRC_OK);
        brc_commit_free(c);
    }
    brc_buf_dispose(&text);
}

/* ---- sets -------------------------------- */

static void origin_is(const brc_move_set *set, const char *path, const char *want)
{
    brc_buf out = BRC_BUF_INIT;
    int has;
    OK(brc_move_origin(&out, &has, set, path, &kit.err));
    ck_assert_str_eq(has ? (const char *)out.data : "", want);
    brc_buf_dispose(&out);
}

TEST(a_path_comes_from_one_place)
{
    brc_move_set set = set_of("/h</g /y</g/x /h/n</m /m</h");
    origin_is(&set, "/h", "/g");
    origin_is(&set, "/h/z", "/g/z");
    origin_is(&set, "/h/x", ""); /* that is /y now */
    origin_is(&set, "/y/1", "/g/x/1");
    origin_is(&set, "/g", "");
    origin_is(&set, "/g/x", "");
    origin_is(&set, "/h/n/1", "/m/1");
    origin_is(&set, "/m/1", "/h/1");
    origin_is(&set, "/hh", "/hh");
    origin_is(&set, "/", "/");
    brc_move_set_dispose(&set);
}

TEST(sets_are_joined)
{
    static const struct {
        const char *older, *newer, *joined;
    } cases[] = {
        { "/b</a", "/c</b", "/c</a " },
        { "/b</a", "/a</b", "/a</a " }, /* reduce drops it */
        { "/b</a", "/z</y", "/b</a /z</y " },
        { "/h</g", "/x</h/x", "/h</g /x</g/x " },
        { "/h/x</y", "/k</h", "/k</h /k/x</y " },
        { "/b</a /a</b", "/b</a /a</b", "/a</a /b</b " },
        { "", "/b</a", "/b</a " },
        { "/b</a", "", "/b</a " },
        { "/h</g", "/g/q</h/q", "/g/q</g/q /h</g " },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        brc_move_set older = set_of(cases[i].older), newer = set_of(cases[i].newer), out = {0};
        OK(brc_move_set_join(&out, &older, &newer, &kit.err));
        set_is(&out, cases[i].joined);
        brc_move_set_dispose(&older);
        brc_move_set_dispose(&newer);
        brc_move_set_dispose(&out);
    }
}

TEST(two_moves_of_one_node_are_refused)
{
    brc_move_set set = {0};
    OK(brc_move_set_add(&set, "/a", "/b", &kit.err));
    OK(brc_move_set_add(&set, "/a", "/c", &kit.err));
    FAILS(BRC_ECORRUPT, "/a has moved twice", brc_move_set_seal(&set, &kit.err));
    brc_move_set_dispose(&set);
    OK(brc_move_set_add(&set, "/a", "/c", &kit.err));
    OK(brc_move_set_add(&set, "/b", "/c", &kit.err));
    FAILS(BRC_ECORRUPT, "moved to /c", brc_move_set_seal(&set, &kit.err));
    brc_move_set_dispose(&set);
}
