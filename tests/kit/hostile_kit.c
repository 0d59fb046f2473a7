#include "hostile_kit.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sanitized.h"

static brc_oid hostile_doc(store_kit *k, const char *text)
{
    brc_oid id;
    KIT_OK(k, brc_store_put(k->store, BRC_KIND_DOCUMENT, text, strlen(text), &id, &k->err));
    return id;
}

static brc_oid hostile_map(store_kit *k, const char *const *names, const brc_entry *entries,
                           size_t n)
{
    brc_edit edits[4];
    uint8_t values[4][BRC_ENTRY_MAX];
    brc_oid none = { { 0 } }, map;
    ck_assert_uint_le(n, 4);
    for (size_t i = 0; i < n; i++)
        edits[i] = (brc_edit){ (const uint8_t *)names[i], strlen(names[i]) + 1, values[i],
                               brc_entry_encode(values[i], &entries[i], 16) };
    KIT_OK(k, brc_map_edit(k->store, &none, edits, n, &map, &k->err));
    return map;
}

brc_entry hostile_group(store_kit *k, const char *const *names, const brc_entry *entries, size_t n)
{
    brc_entry group;
    memset(&group, 0, sizeof(group));
    group.kind = BRC_GROUP;
    group.doc = hostile_doc(k, "{\"zarr_format\":3,\"node_type\":\"group\"}");
    if (n > 0)
        group.map = hostile_map(k, names, entries, n);
    return group;
}

brc_entry hostile_array(store_kit *k)
{
    brc_entry array;
    brc_oid none = { { 0 } }, chunk;
    uint8_t key[BRC_CHUNK_KEY_MAX];
    uint64_t index = 5;
    brc_edit edit = { key, brc_chunk_key_encode(key, 1, &index), chunk.bytes, 16 };
    memset(&array, 0, sizeof(array));
    array.kind = BRC_ARRAY;
    array.doc = hostile_doc(k, "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[32],"
                               "\"data_type\":\"uint8\",\"chunk_grid\":{\"name\":\"regular\","
                               "\"configuration\":{\"chunk_shape\":[4]}},\"chunk_key_encoding\":"
                               "{\"name\":\"default\"},\"fill_value\":0,\"codecs\":"
                               "[{\"name\":\"bytes\"}]}");
    KIT_OK(k, brc_store_put(k->store, BRC_KIND_CHUNK, "1234", 4, &chunk, &k->err));
    KIT_OK(k, brc_map_edit(k->store, &none, &edit, 1, &array.map, &k->err));
    return array;
}

brc_entry hostile_nest(store_kit *k, int depth)
{
    static const char *const name[] = { "a" };
    brc_entry group = hostile_group(k, NULL, NULL, 0);
    for (int i = 0; i < depth; i++)
        group = hostile_group(k, name, &group, 1);
    return group;
}

brc_entry hostile_shared(store_kit *k, int levels, const brc_entry *inside)
{
    static const char *const names[] = { "a", "b" };
    brc_entry group = *inside;
    for (int i = 0; i < levels; i++) {
        brc_entry twice[2] = { group, group };
        group = hostile_group(k, names, twice, 2);
    }
    return group;
}

void hostile_begin(store_kit *k)
{
    KIT_OK(k, brc_store_begin(k->store, &k->err));
}

void hostile_commit(store_kit *k, const brc_entry *root)
{
    brc_commit empty = { .author = "Eve", .message = "", .meta_json = "{}", .time_us = 1 };
    brc_commit commit = empty;
    KIT_OK(k, brc_commit_put(k->store, &empty, NULL, &k->err));
    KIT_OK(k, brc_snapshot_put(k->store, root, &commit.root, &k->err));
    commit.parents = &empty.id;
    commit.nparents = 1;
    KIT_OK(k, brc_commit_put(k->store, &commit, NULL, &k->err));
    KIT_OK(k, brc_ref_put(k->store, "heads/main", &commit.id, NULL, "commit", 0, NULL, 1, &k->err));
    KIT_OK(k, brc_store_end(k->store, 1, &k->err));
}

static void confine(void)
{
    struct rlimit stack = { 256 << 10, 256 << 10 }, seconds = { 60, 60 };
    struct rlimit memory = { (rlim_t)1 << 29, (rlim_t)1 << 29 };
    setrlimit(RLIMIT_CPU, &seconds);
#if !KIT_SANITIZED /* which reserve address space without end, and stack in each frame */
    setrlimit(RLIMIT_STACK, &stack);
    setrlimit(RLIMIT_AS, &memory);
#else
    (void)stack;
    (void)memory;
#endif
}

int hostile_confined(void (*body)(void *ctx), void *ctx)
{
    int status;
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        confine();
        body(ctx);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
