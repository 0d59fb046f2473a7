/* Snapshots: entries, names and paths, and what differs between two of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/history/snapshot.h"
#include "../../src/history/tree_diff.h"
#include "../kit/store_kit.h"
#include "../kit/suite.h"

TEST_SUITE(tree_diff);

STORE_KIT_CHANGE_FIXTURE(kit, store_kit_start)
static const brc_oid empty;

#define OK(call) KIT_OK(&kit, call)
#define FAILS(code, words, call) KIT_FAILS(&kit, code, words, call)

/* ---- snapshots from a list of nodes ------------------------------------------------ */

#define GROUP "{\"zarr_format\":3,\"node_type\":\"group\"}"
#define GROUP_WITH(attrs) "{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":{" attrs "}}"
#define ARRAY_OF(codec, grid, attrs)                                                         \
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[8],\"data_type\":\"int8\","       \
    "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[" grid "]}},"  \
    "\"fill_value\":0,\"codecs\":[\"" codec "\"],\"attributes\":{" attrs "}}"
#define ARRAY ARRAY_OF("bytes", "1", "")

typedef struct tree_node {
    const char *path, *doc;
    const char *chunks; /* "0=1 5=2": index and which content; NULL: a group      */
    int storage;        /* which storage options; 0: none                         */
} tree_node;

static int edit_order(const void *a, const void *b)
{
    const brc_edit *x = a, *y = b;
    int order = memcmp(x->key, y->key, x->key_len < y->key_len ? x->key_len : y->key_len);
    return order != 0 ? order : (x->key_len > y->key_len) - (x->key_len < y->key_len);
}

static brc_oid chunk_map(const char *text)
{
    uint8_t keys[16][BRC_CHUNK_KEY_MAX];
    brc_oid ids[16], map;
    brc_edit edits[16];
    size_t n = 0;
    char *end;
    for (; *text != '\0'; text = end + (*end == ' ')) {
        uint64_t index = strtoull(text, &end, 10);
        ids[n] = store_kit_id((uint8_t)strtoul(end + 1, &end, 10));
        size_t len = brc_chunk_key_encode(keys[n], 1, &index);
        edits[n] = (brc_edit){ keys[n], len, ids[n].bytes, 16 };
        n++;
    }
    OK(brc_map_edit(kit.store, &empty, edits, n, &map, &kit.err));
    return map;
}

static brc_entry entry_of(const tree_node *nodes, size_t n, size_t self)
{
    uint8_t values[16][BRC_ENTRY_MAX];
    char keys[16][64];
    brc_edit edits[16];
    size_t children = 0, len = strcmp(nodes[self].path, "/") == 0 ? 0 : strlen(nodes[self].path);
    brc_entry entry = { .kind = nodes[self].chunks == NULL ? BRC_GROUP : BRC_ARRAY };
    OK(brc_store_put(kit.store, BRC_KIND_DOCUMENT, nodes[self].doc, strlen(nodes[self].doc),
                     &entry.doc, &kit.err));
    if (nodes[self].storage != 0)
        entry.storage = store_kit_id((uint8_t)nodes[self].storage);
    if (nodes[self].chunks != NULL) {
        entry.map = chunk_map(nodes[self].chunks);
        return entry;
    }
    for (size_t i = 0; i < n; i++) {
        const char *name = nodes[i].path + len + 1;
        if (i == self || strncmp(nodes[i].path, nodes[self].path, len) != 0 ||
            nodes[i].path[len] != '/' || strchr(name, '/') != NULL)
            continue;
        brc_entry child = entry_of(nodes, n, i);
        snprintf(keys[children], sizeof(keys[children]), "%s", name);
        edits[children] =
            (brc_edit){ (const uint8_t *)keys[children], strlen(name) + 1, values[children],
                        brc_entry_encode(values[children], &child, 16) };
        children++;
    }
    qsort(edits, children, sizeof(*edits), edit_order);
    OK(brc_map_edit(kit.store, &empty, edits, children, &entry.map, &kit.err));
    return entry;
}

/* The first of the nodes is the root. */
static brc_oid snapshot_of(const tree_node *nodes, size_t n)
{
    brc_oid out;
    brc_entry root = entry_of(nodes, n, 0);
    OK(brc_snapshot_put(kit.store, &root, &out, &kit.err));
    return out;
}
#define SNAPSHOT(...)                                      \
    snapshot_of((const tree_node[]){ __VA_ARGS__ },        \
                sizeof((tree_node[]){ __VA_ARGS__ }) / sizeof(tree_node))

/* Changes as text, one a line: "M /a<-/b", "C /a +1 -2 ~3 (/attributes/x)", with
 * "storage" or "rechunked" where that is so. */
static void diff_is(const brc_oid *a, const brc_oid *b, const char *path, const char *want)
{
    static const char letters[] = "?ARMC";
    brc_tree_diff diff;
    char text[2000] = "";
    OK(brc_tree_diff_run(&diff, kit.store, a, b, path, 0, NULL, &kit.err));
    for (size_t i = 0; i < diff.n; i++) {
        const brc_node_change *c = &diff.changes[i];
        size_t at = strlen(text);
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%c %s%s%s", letters[c->what], c->path,
                               c->from != NULL ? "<-" : "", c->from != NULL ? c->from : "");
        if (c->chunks_added + c->chunks_removed + c->chunks_changed > 0)
            at +=
                (size_t)snprintf(text + at, sizeof(text) - at, " +%d -%d ~%d", (int)c->chunks_added,
                                 (int)c->chunks_removed, (int)c->chunks_changed);
        for (size_t j = 0; j < c->nmetadata; j++)
            at += (size_t)snprintf(text + at, sizeof(text) - at, " (%s)", c->metadata[j]);
        snprintf(text + at, sizeof(text) - at, "%s%s\n", c->storage_only ? " storage" : "",
                 c->rechunked ? " rechunked" : "");
        ck_assert_int_eq(c->a.kind != 0, c->what != BRC_ADDED);
        ck_assert_int_eq(c->b.kind != 0, c->what != BRC_REMOVED);
    }
    brc_tree_diff_dispose(&diff);
    ck_assert_str_eq(text, want);
}

CASE("tree_diff", .setup = kit_start, .teardown = kit_stop);

/* ---- differences ------------------------------------------------------------- */

TEST(equal_snapshots_do_not_differ)
{
    brc_oid a = SNAPSHOT({ "/", GROUP, NULL, 0 }, { "/a", ARRAY, "0=1", 0 });
    brc_oid b = SNAPSHOT({ "/", GROUP, NULL, 0 }, { "/a", ARRAY, "0=1", 0 });
    brc_oid plain = SNAPSHOT({ "/", GROUP, NULL, 0 });
    ck_assert_int_eq(brc_oid_cmp(&a, &b), 0);
    diff_is(&a, &b, NULL, "");
    diff_is(&empty, &empty, NULL, "");
    diff_is(&empty, &plain, NULL, ""); /* the root group's document is the plain one */
    diff_is(&plain, &empty, NULL, "");
}

TEST(nodes_are_added_removed_and_changed)
{
    brc_oid a = SNAPSHOT({ "/", GROUP, NULL, 0 }, { "/same", ARRAY, "0=1 1=2", 0 },
                         { "/gone", ARRAY, "0=3 2=4", 0 }, { "/x", ARRAY, "0=5 1=6 2=7", 0 },
                         { "/g", GROUP, NULL, 0 }, { "/g/old", ARRAY, "", 0 });
    brc_oid b = SNAPSHOT({ "/", GROUP, NULL, 0 }, { "/same", ARRAY, "0=1 1=2", 0 },
                         { "/fresh", ARRAY, "4=8", 0 }, { "/x", ARRAY, "0=5 1=9 3=1 4=1", 0 },
                         { "/g", GROUP, NULL, 0 }, { "/g/more", GROUP_WITH("\"k\":1"), NULL, 0 },
                         { "/g/more/deep", ARRAY, "0=2", 0 });
    diff_is(&a, &b, NULL, "A /fresh +1 -0 ~0\nA /g/more\nA /g/more/deep +1 -0 ~0\nR /g/old\n"
                          "R /gone +0 -2 ~0\nC /x +2 -1 ~1\n");
    diff_is(&b, &a, NULL, "R /fresh +0 -1 ~0\nR /g/more\nR /g/more/deep +0 -1 ~0\nA /g/old\n"
                          "A /gone +2 -0 ~0\nC /x +1 -2 ~1\n");
    diff_is(&a, &b, "/x", "C /x +2 -1 ~1\n");
    diff_is(&a, &b, "/g/more", "A /g/more\nA /g/more/deep +1 -0 ~0\n");
    diff_is(&a, &b, "/nowhere/at/all", "");
    diff_is(&a, &b, "/same", "");
    diff_is(&empty, &b, "/g", "A /g\nA /g/more\nA /g/more/deep +1 -0 ~0\n");
}

TEST(metadata_is_told_by_pointers)
{
    brc_oid a =
        SNAPSHOT({ "/", GROUP, NULL, 0 },
                 { "/x", ARRAY_OF("bytes", "1", "\"k\":1,\"a/b\":[1],\"same\":{\"z\":1},\"~\":0"),
                   "0=1", 0 });
    brc_oid b =
        SNAPSHOT({ "/", GROUP, NULL, 0 }, { "/x",
                                            ARRAY_OF("bytes", "1",
                                                     "\"same\":{\"z\":1},\"k\":1.0,\"a/b\":[1,2],"
                                                     "\"new\":null"),
                                            "0=1", 0 });
    brc_oid root = SNAPSHOT({ "/", GROUP_WITH("\"title\":\"t\""), NULL, 0 });
    brc_oid none = SNAPSHOT({ "/", GROUP_WITH(""), NULL, 0 });
    diff_is(&a, &b, NULL,
            "C /x (/attributes/k) (/attributes/a~1b) (/attributes/~0) (/attributes/new)\n");
    diff_is(&empty, &root, NULL, "C / (/attributes/title)\n");
    diff_is(&root, &none, NULL, "C / (/attributes/title)\n");
    diff_is(&empty, &none, NULL, ""); /* no attributes and empty ones are the same */
    diff_is(&none, &a, "/", "A /x +1 -0 ~0\n");
}

TEST(storage_alone_is_no_difference_of_data)
{
    brc_oid a = SNAPSHOT({ "/", GROUP, NULL, 0 }, { "/x", ARRAY, "0=1", 0 });
    brc_oid codec =
        SNAPSHOT({ "/", GROUP, NULL, 0 }, { "/x", ARRAY_OF("zstd", "1", ""), "0=1", 0 });
    brc_oid options = SNAPSHOT({ "/", GROUP, NULL, 0 }, { "/x", ARRAY, "0=1", 5 });
    brc_oid both = SNAPSHOT({ "/", GROUP, NULL, 0 }, { "/x", ARRAY_OF("zstd", "1", ""), "0=1", 6 });
    brc_oid attrs = SNAPSHOT({ "/", GROUP, NULL, 0 },
                             { "/x", ARRAY_OF("zstd", "1", "\"k\":1"), "0=1", 0 });
    brc_oid data = SNAPSHOT({ "/", GROUP, NULL, 0 }, { "/x", ARRAY_OF("zstd", "1", ""), "0=2", 0 });
    diff_is(&a, &codec, NULL, "C /x (/codecs) storage\n");
    diff_is(&a, &options, NULL, "C /x (/storage) storage\n");
    diff_is(&options, &both, NULL, "C /x (/codecs) (/storage) storage\n");
    diff_is(&a, &attrs, NULL, "C /x (/codecs) (/attributes/k)\n");
    diff_is(&a, &data, NULL, "C /x +0 -0 ~1 (/codecs)\n");
}

TEST(another_grid_is_other_chunks)
{
    brc_oid a = SNAPSHOT({ "/", GROUP, NULL, 0 }, { "/x", ARRAY, "0=1 1=2 2=3", 0 });
    brc_oid b =
        SNAPSHOT({ "/", GROUP, NULL, 0 }, { "/x", ARRAY_OF("bytes", "4", ""), "0=1 1=9", 0 });
    diff_is(&a, &b, NULL, "C /x +2 -3 ~0 (/chunk_grid) rechunked\n");
}

TEST(an_array_in_a_group_s_place_is_one_out_and_one_in)
{
    brc_oid a =
        SNAPSHOT({ "/", GROUP, NULL, 0 }, { "/x", GROUP, NULL, 0 }, { "/x/y", ARRAY, "0=1", 0 });
    brc_oid b = SNAPSHOT({ "/", GROUP, NULL, 0 }, { "/x", ARRAY, "0=2", 0 });
    diff_is(&a, &b, NULL, "R /x\nA /x +1 -0 ~0\nR /x/y +0 -1 ~0\n");
    diff_is(&b, &a, NULL, "R /x +0 -1 ~0\nA /x\nA /x/y +1 -0 ~0\n");
}

TEST(what_moved_is_told_once)
{
    brc_oid a =
        SNAPSHOT({ "/", GROUP, NULL, 0 }, { "/x", ARRAY, "0=1", 0 }, { "/g", GROUP, NULL, 0 },
                 { "/g/one", ARRAY, "0=2", 0 }, { "/g/two", ARRAY, "0=3", 0 });
    brc_oid renamed = SNAPSHOT({ "/", GROUP, NULL, 0 }, { "/a", ARRAY, "0=1", 0 },
                               { "/g", GROUP, NULL, 0 }, { "/g/one", ARRAY, "0=2", 0 },
                               { "/g/two", ARRAY, "0=3", 0 });
    brc_oid group =
        SNAPSHOT({ "/", GROUP, NULL, 0 }, { "/x", ARRAY, "0=1", 0 },
                 { "/new", GROUP_WITH("\"n\":1"), NULL, 0 }, { "/new/h", GROUP, NULL, 0 },
                 { "/new/h/one", ARRAY, "0=2", 0 }, { "/new/h/two", ARRAY, "0=3", 0 });
    brc_oid changed = SNAPSHOT({ "/", GROUP, NULL, 0 }, { "/z", ARRAY, "0=9", 0 },
                               { "/g", GROUP, NULL, 0 }, { "/g/one", ARRAY, "0=2", 0 },
                               { "/g/two", ARRAY, "0=3", 0 });
    brc_oid apart = SNAPSHOT({ "/", GROUP, NULL, 0 }, { "/x", ARRAY, "0=1", 0 },
                             { "/one", ARRAY, "0=2", 0 }, { "/two", ARRAY, "0=3", 0 });
    diff_is(&a, &renamed, NULL, "M /a<-/x\n");
    diff_is(&renamed, &a, NULL, "M /x<-/a\n");
    diff_is(&a, &group, NULL, "A /new\nM /new/h<-/g\n"); /* a subtree, into a new group */
    diff_is(&group, &a, NULL, "M /g<-/new/h\nR /new\n");
    diff_is(&a, &changed, NULL, "R /x +0 -1 ~0\nA /z +1 -0 ~0\n"); /* not the same in every bit */
    diff_is(&a, &apart, NULL, "R /g\nM /one<-/g/one\nM /two<-/g/two\n");
    diff_is(&apart, &a, NULL, "A /g\nM /g/one<-/one\nM /g/two<-/two\n");
    diff_is(&a, &renamed, "/x", "R /x +0 -1 ~0\n"); /* where only one place is looked at */
}

TEST(a_copy_is_an_addition)
{
    brc_oid a = SNAPSHOT({ "/", GROUP, NULL, 0 }, { "/x", ARRAY, "0=1", 0 });
    brc_oid b =
        SNAPSHOT({ "/", GROUP, NULL, 0 }, { "/x", ARRAY, "0=1", 0 }, { "/y", ARRAY, "0=1", 0 });
    brc_oid c =
        SNAPSHOT({ "/", GROUP, NULL, 0 }, { "/y", ARRAY, "0=1", 0 }, { "/z", ARRAY, "0=1", 0 });
    diff_is(&a, &b, NULL, "A /y +1 -0 ~0\n");
    diff_is(&b, &c, NULL, "M /z<-/x\n");
    diff_is(&a, &c, NULL, "M /y<-/x\nA /z +1 -0 ~0\n");
}

TEST(two_that_changed_places_are_two_changes)
{
    brc_oid a =
        SNAPSHOT({ "/", GROUP, NULL, 0 }, { "/x", ARRAY, "0=1", 0 }, { "/y", ARRAY, "0=2", 0 });
    brc_oid b =
        SNAPSHOT({ "/", GROUP, NULL, 0 }, { "/x", ARRAY, "0=2", 0 }, { "/y", ARRAY, "0=1", 0 });
    diff_is(&a, &b, NULL, "C /x +0 -0 ~1\nC /y +0 -0 ~1\n");
}

/* Documents of a stranger, which nobody checked: an error or a difference. */
TEST(strange_documents_do_no_harm)
{
    static const char *const docs[] = {
        "{}", "{\"attributes\":[1,2]}", "{\"attributes\":7}", "{\"attributes\":\"x\"}",
        "{\"attributes\":null}", "{\"attributes\":{\"a\":1}}", /* these are JSON objects */
        "[]", "[1,2]", "7", "\"x\"", "null", "[[1],{\"a\":2}]", "", "{", "\xff",
    };
    size_t n = sizeof(docs) / sizeof(docs[0]);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            brc_tree_diff diff;
            brc_oid a = SNAPSHOT({ "/", GROUP, NULL, 0 }, { "/x", docs[i], "0=1", 0 });
            brc_oid b = SNAPSHOT({ "/", GROUP, NULL, 0 }, { "/x", docs[j], "0=1", 0 });
            int rc = brc_tree_diff_run(&diff, kit.store, &a, &b, NULL, 0, NULL, &kit.err);
            ck_assert_msg(rc == (i == j || (i < 6 && j < 6) ? BRC_OK : BRC_ECORRUPT),
                          "%s and %s: %d %s", docs[i], docs[j], rc, kit.err.message);
            brc_tree_diff_dispose(&diff);
        }
    }
}

/* ---- entries, snapshots, paths ----------------------------------------------- */

TEST(entries_come_back_and_others_are_damage)
{
    for (int parts = 0; parts < 4; parts++) {
        uint8_t bytes[BRC_ENTRY_MAX + 1];
        brc_entry entry = { .kind = 1 + parts % 2, .doc = store_kit_id(1) }, back;
        if (parts & 1)
            entry.map = store_kit_id(2);
        if (parts & 2)
            entry.storage = store_kit_id(3);
        size_t len = brc_entry_encode(bytes, &entry, 16);
        ck_assert_uint_eq(len, 2 + 16 * (size_t)(1 + parts % 2 + parts / 2));
        OK(brc_entry_decode(&back, (brc_span){ bytes, len }, 16, &kit.err));
        ck_assert(brc_entry_equal(&entry, &back));
        back.storage = store_kit_id(9);
        ck_assert(!brc_entry_equal(&entry, &back));
        for (size_t cut = 0; cut <= len + 1; cut++)
            if (cut != len)
                FAILS(BRC_ECORRUPT, "entry is damaged",
                      brc_entry_decode(&back, (brc_span){ bytes, cut }, 16, &kit.err));
        bytes[0] = (uint8_t)(parts % 2 ? 0 : 3);
        FAILS(BRC_ECORRUPT, "entry is damaged",
              brc_entry_decode(&back, (brc_span){ bytes, len }, 16, &kit.err));
        bytes[0] = 1;
        bytes[1] = (uint8_t)(parts | 4);
        FAILS(BRC_ECORRUPT, "entry is damaged",
              brc_entry_decode(&back, (brc_span){ bytes, len }, 16, &kit.err));
    }
}

TEST(paths_lead_to_entries)
{
    brc_oid root = SNAPSHOT({ "/", GROUP, NULL, 0 }, { "/a", GROUP, NULL, 0 },
                            { "/a/b", ARRAY, "0=1", 0 }, { "/ab", ARRAY, "", 0 });
    brc_entry e, group;
    brc_span text;
    OK(brc_snapshot_find(kit.store, &root, "/", &e, &kit.err));
    ck_assert_int_eq(e.kind, BRC_GROUP);
    OK(brc_snapshot_find(kit.store, &root, "/a/b", &e, &kit.err));
    ck_assert_int_eq(e.kind, BRC_ARRAY);
    OK(brc_entry_text(kit.store, &e, &text, &kit.err));
    ck_assert_uint_eq(text.len, strlen(ARRAY));
    OK(brc_snapshot_find(kit.store, &root, "/a", &group, &kit.err));
    OK(brc_entry_find(kit.store, &group, "b", &e, &kit.err));
    ck_assert_int_eq(e.kind, BRC_ARRAY);
    OK(brc_entry_find(kit.store, &group, "", &e, &kit.err));
    ck_assert(brc_entry_equal(&e, &group));
    static const char *const nowhere[] = { "/b", "/a/c", "/a/b/c", "/a/b/0", "/A", "/ab/x" };
    for (size_t i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++) {
        OK(brc_snapshot_find(kit.store, &root, nowhere[i], &e, &kit.err));
        ck_assert_int_eq(e.kind, 0);
    }
    OK(brc_snapshot_find(kit.store, &empty, "/", &e, &kit.err)); /* the empty snapshot */
    ck_assert_int_eq(e.kind, BRC_GROUP);
    OK(brc_entry_text(kit.store, &e, &text, &kit.err));
    ck_assert_uint_eq(text.len, strlen(GROUP));
    ck_assert_mem_eq(text.data, GROUP, text.len);
    OK(brc_snapshot_find(kit.store, &empty, "/a", &e, &kit.err));
    ck_assert_int_eq(e.kind, 0);
    /* a map that does not belong to a snapshot: it has no root node */
    OK(brc_snapshot_find(kit.store, &root, "/a", &group, &kit.err));
    FAILS(BRC_ECORRUPT, "no root node",
          brc_snapshot_find(kit.store, &group.map, "/", &e, &kit.err));
}

TEST(names_and_paths_by_one_rule)
{
    static const struct {
        const char *path, *normal; /* NULL: refused */
    } paths[] = {
        { "", "/" },          { "/", "/" },           { "a", "/a" },       { "/a", "/a" },
        { "/a/", "/a" },      { "a/b/", "/a/b" },     { "/a/b", "/a/b" },  { "/.a/..b", "/.a/..b" },
        { "/a b/%2F", "/a b/%2F" }, { "/_x/a__", "/_x/a__" }, { "/\xc3\xa4", "/\xc3\xa4" },
        { "/c/0", "/c/0" },   { "/zarr.jso", "/zarr.jso" },   { "//", NULL },      { "//a", NULL },
        { "/a//b", NULL },    { "/a//", NULL },       { ".", NULL },       { "..", NULL },
        { "/a/../b", NULL },  { "/...", NULL },       { "/__x", NULL },    { "/a/zarr.json", NULL },
        { "/\xff", NULL },    { "/a\xc3", NULL },
    };
    brc_buf out = BRC_BUF_INIT;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        int rc = brc_path_normal(&out, paths[i].path, &kit.err);
        ck_assert_msg(rc == (paths[i].normal != NULL ? BRC_OK : BRC_EINVAL), "%s: %d",
                      paths[i].path, rc);
        if (paths[i].normal != NULL)
            ck_assert_str_eq((const char *)out.data, paths[i].normal);
    }
    char name[300], deep[200];
    memset(name, 'n', sizeof(name));
    OK(brc_name_check(name, 255, &kit.err));
    FAILS(BRC_ELIMIT, "255", brc_name_check(name, 256, &kit.err));
    ck_assert_int_eq(brc_name_check("a\0b", 3, &kit.err), BRC_EINVAL);
    ck_assert_int_eq(brc_name_check("", 0, &kit.err), BRC_EINVAL);
    for (int i = 0; i < 65; i++)
        memcpy(deep + 2 * i, "/d", 3);
    FAILS(BRC_ELIMIT, "64", brc_path_normal(&out, deep, &kit.err));
    OK(brc_path_normal(&out, deep + 2, &kit.err));
    brc_buf_dispose(&out);
}
