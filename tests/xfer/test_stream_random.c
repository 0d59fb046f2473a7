/* Random hierarchies through a stream into another repository: types, codecs, chunks, shards,
 * fill values, attributes and names as they come, most chunks absent; the snapshot is the same.
 * STREAM_SEED and STREAM_TREES ask for others, and for more. And a stream of very many groups,
 * in little memory: STREAM_GROUPS of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../kit/converters.h"
#include "../kit/effort.h"
#include "../kit/exchange_kit.h"
#include "../kit/folder.h"
#include "../kit/hostile_kit.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"
#include "../kit/tar_kit.h"

TEST_SUITE(stream_random);

/* ---- a tree ---------------------------------------------------- */

static const struct {
    const char *dtype;
    size_t item; /* 0: a string */
    const char *fills[3];
} types[] = {
    { "bool", 1, { "true", "false", NULL } },
    { "int8", 1, { "-7", NULL, NULL } },
    { "uint16", 2, { "65535", "1", NULL } },
    { "int32", 4, { "-2147483648", NULL, NULL } },
    { "uint64", 8, { "18446744073709551615", NULL, NULL } },
    { "float16", 2, { "\"NaN\"", "0.5", NULL } },
    { "float32", 4, { "\"-Infinity\"", "\"0x7fc00001\"", NULL } },
    { "float64", 8, { "1e300", "-0.0", NULL } },
    { "complex64", 8, { "[1.0, \"NaN\"]", NULL, NULL } },
    { "{\"name\":\"numpy.datetime64\",\"configuration\":{\"unit\":\"s\",\"scale_factor\":10}}",
      8,
      { "\"NaT\"", "5", NULL } },
    { "{\"name\":\"null_terminated_bytes\",\"configuration\":{\"length_bytes\":3}}",
      3,
      { "\"YWIA\"", NULL, NULL } },
    { "string", 0, { "\"fill\"", "\"\"", NULL } },
};
#define N_TYPES (sizeof(types) / sizeof(types[0]))

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define BIG "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"
#define CRC "{\"name\":\"crc32c\"}"
#define ZSTD "{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":true}}"
#define GZIP "{\"name\":\"gzip\",\"configuration\":{\"level\":1}}"
static const char *const fixed_codecs[] = {
    NULL, "[" LITTLE "]", "[" BIG "]", "[" LITTLE "," CRC "]", "[" BIG "," ZSTD "]",
    "[" LITTLE "," GZIP "," CRC "]",
};
#define TEXT "{\"name\":\"vlen-utf8\"}"
static const char *const text_codecs[] = { NULL, "[" TEXT "]", "[" TEXT "," ZSTD "]",
                                           "[" TEXT "," GZIP "," CRC "]" };

static const char *const names[] = { "a",    "B",  "c",   "0",         "-1",      "x.y",
                                     "zarr", "c.", "caf\xc3\xa9", "with space", "a.tar", "1.0" };
static const char *const attributes[] = {
    NULL, "{}", "{\"units\":\"K\"}", "{\"a\":[1,2.50,null,{\"b\":\"\\u00e9\"}],\"c\":1e400}",
    "{\"long\":\"0123456789012345678901234567890123456789012345678901234567890123456789\"}",
};
#define PICK(list, random) (list)[scenario_below((random), sizeof(list) / sizeof((list)[0]))]

/* A name that is not taken under one of the groups. */
#define GROUPS_MOST 8
typedef struct tree {
    exchange_kit *kit;
    uint64_t *random;
    char groups[GROUPS_MOST][400];
    size_t ngroups;
} tree;

static void free_path(tree *t, char *out, size_t size)
{
    int kind = 1;
    while (kind != 0) {
        const char *above = t->groups[scenario_below(t->random, t->ngroups)];
        int n = snprintf(out, size, "%s/%s", above, PICK(names, t->random));
        ck_assert(n > 0 && (size_t)n < size);
        ck_assert_int_eq(brc_node_kind(&kind, t->kit->session, out, &t->kit->err), BRC_OK);
    }
}

/* A box in it gets values, so that some chunks are whole, some cut and most are absent. */
static void write_box(tree *t, brc_array *a, size_t type, const brc_array_spec *spec)
{
    brc_buf data = BRC_BUF_INIT;
    brc_sel sel = { .size = sizeof(brc_sel), .ndim = spec->ndim };
    uint64_t n = 1;
    for (int i = 0; i < spec->ndim; i++) {
        if (spec->shape[i] == 0)
            return;
        sel.start[i] = scenario_below(t->random, spec->shape[i]);
        sel.count[i] = 1 + scenario_below(t->random, spec->shape[i] - sel.start[i]);
        sel.step[i] = 1;
        n *= sel.count[i];
    }
    for (uint64_t i = 0; i < n; i++) {
        uint64_t bits = scenario_random(t->random), len = types[type].item;
        uint8_t text[4] = { (uint8_t)(bits % 5), 0, 0, 0 };
        if (len == 0) {
            ck_assert_int_eq(brc_buf_append(&data, text, 4, NULL), BRC_OK);
            ck_assert_int_eq(brc_buf_append(&data, "abcde", bits % 5, NULL), BRC_OK);
            continue;
        }
        if (type == 0)
            bits &= 1;
        ck_assert_int_eq(brc_buf_append(&data, &bits, len, NULL), BRC_OK);
    }
    int rc = brc_array_write(a, &sel, data.data, data.len, &t->kit->err);
    ck_assert_msg(rc == BRC_OK, "%s", t->kit->err.message);
    brc_buf_dispose(&data);
}

static void put_array(tree *t)
{
    char path[512];
    uint64_t shape[3], chunk[3], shard[3];
    size_t type = scenario_below(t->random, N_TYPES);
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_array *a;

    free_path(t, path, sizeof(path));
    spec.ndim = (int)scenario_below(t->random, 4);
    for (int i = 0; i < spec.ndim; i++) {
        shape[i] = scenario_below(t->random, 12);
        chunk[i] = 1 + scenario_below(t->random, 4);
        shard[i] = chunk[i] * (1 + scenario_below(t->random, 3));
    }
    spec.shape = shape;
    spec.chunk = chunk;
    spec.dtype = types[type].dtype;
    spec.fill = PICK(types[type].fills, t->random);
    spec.attrs_json = PICK(attributes, t->random);
    spec.codecs_json =
        types[type].item ? PICK(fixed_codecs, t->random) : PICK(text_codecs, t->random);
    if (spec.ndim > 0 && scenario_below(t->random, 3) == 0)
        spec.shard = shard;
    if (scenario_below(t->random, 4) == 0)
        spec.chunk_key_encoding = "v2";
    int rc = brc_array_create(&a, t->kit->session, path, &spec, &t->kit->err);
    ck_assert_msg(rc == BRC_OK, "%s: %s", path, t->kit->err.message);
    for (uint64_t i = scenario_below(t->random, 3); i > 0; i--)
        write_box(t, a, type, &spec);
    brc_array_free(a);
}

static void put_group(tree *t)
{
    char path[400];
    if (t->ngroups == GROUPS_MOST)
        return;
    free_path(t, path, sizeof(path));
    int rc = brc_group_create(t->kit->session, path, PICK(attributes, t->random), &t->kit->err);
    ck_assert_msg(rc == BRC_OK, "%s: %s", path, t->kit->err.message);
    memcpy(t->groups[t->ngroups++], path, sizeof(path));
}

static void put_random_tree(exchange_kit *kit, uint64_t *random)
{
    tree t = { .kit = kit, .random = random, .ngroups = 1 };
    for (uint64_t i = 2 + scenario_below(random, 12); i > 0; i--)
        scenario_below(random, 3) == 0 ? put_group(&t) : put_array(&t);
}

/* ---- through a stream ------------------------------------------ */

/* The root of a commit of all that is there. */
static brc_oid commit_all(exchange_kit *kit)
{
    brc_commit *commit;
    brc_oid id;
    int rc = scenario_commit_of(kit, kit->session, "all", &id);
    ck_assert_msg(rc == BRC_OK, "%s", kit->err.message);
    ck_assert_int_eq(brc_commit_read(&commit, kit->repo, &id, &kit->err), BRC_OK);
    id = commit->root;
    brc_commit_free(commit);
    return id;
}

static void start_fast(exchange_kit *kit)
{
    exchange_folder_in(kit, FOLDER_FAST);
    exchange_open(kit, converters_folder());
}

CASE("streams", .timeout = 600);

TEST(the_same_snapshot)
{
    const uint64_t seed = effort_number("STREAM_SEED", 1);
    const uint64_t trees = effort_number("STREAM_TREES", 40 / effort_step(1, 8));
    for (uint64_t i = 0; i < trees; i++) {
        uint64_t random = seed * 1000003 + i;
        exchange_kit from, to;
        start_fast(&from);
        start_fast(&to);
        put_random_tree(&from, &random);
        brc_oid one = commit_all(&from);
        FILE *f = fopen(exchange_path(&from, "stream"), "w+");
        ck_assert_ptr_nonnull(f);
        int rc = exchange_stream_out(from.session, NULL, fileno(f), NULL, &from.err);
        ck_assert_msg(rc == BRC_OK, "tree %llu: %s", (unsigned long long)i, from.err.message);
        ck_assert_int_eq(lseek(fileno(f), 0, SEEK_SET), 0);
        rc = exchange_stream_in(to.session, fileno(f), NULL, NULL, &to.err);
        ck_assert_msg(rc == BRC_OK, "tree %llu: %s", (unsigned long long)i, to.err.message);
        (void)fclose(f);
        brc_oid other = commit_all(&to);
        ck_assert_msg(memcmp(&one, &other, sizeof(one)) == 0, "tree %llu of seed %llu is another",
                      (unsigned long long)i, (unsigned long long)seed);
        exchange_stop(&from);
        exchange_stop(&to);
    }
}

/* ---- very many groups ------------------------------------------ */

#define GROUP "{\"zarr_format\":3,\"node_type\":\"group\"}"

static void write_groups(int fd, uint64_t n)
{
    brc_buf tar = BRC_BUF_INIT;
    char name[64];
    tar_kit_file(&tar, "zarr.json", GROUP);
    for (uint64_t i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "g%llu/zarr.json", (unsigned long long)i);
        tar_kit_file(&tar, name, GROUP);
        if (tar.len > (1 << 20)) {
            ck_assert_int_eq(write(fd, tar.data, tar.len), (ssize_t)tar.len);
            tar.len = 0;
        }
    }
    tar_kit_end(&tar);
    ck_assert_int_eq(write(fd, tar.data, tar.len), (ssize_t)tar.len);
    brc_buf_dispose(&tar);
}

typedef struct many_groups {
    char file[64];
    int fd;
    uint64_t n;
} many_groups;

static void import_groups(void *ctx)
{
    many_groups *m = ctx;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    brc_error err = BRC_ERROR_INIT;
    brc_session *session;
    breccia *repo;
    brc_iter *it;
    const brc_node *node;
    uint64_t n = 0;
    opts.flags = BRC_OPEN_CREATE;
    if (brc_open(&repo, m->file, &opts, &err) < 0 ||
        brc_session_open(&session, repo, NULL, BRC_SESSION_WRITE, &err) < 0 ||
        exchange_stream_in(session, m->fd, "/in", NULL, &err) < 0 ||
        brc_list(&it, session, "/in", 0, &err) < 0) {
        fprintf(stderr, "%llu groups: %s\n", (unsigned long long)m->n, err.message);
        _exit(2);
    }
    while (brc_next(it, &node, &err) > 0)
        n++;
    brc_iter_free(it);
    brc_session_free(session);
    brc_free(repo);
    if (n != m->n)
        _exit(3);
}

/* Within 512 MiB of address space and a minute of processor time. */
TEST(groups_without_end)
{
    many_groups m = { .n = effort_number("STREAM_GROUPS", 20000 / effort_step(4, 4)) };
    exchange_kit kit;
    exchange_folder_start(&kit);
    FILE *f = fopen(exchange_path(&kit, "stream"), "w+");
    ck_assert_ptr_nonnull(f);
    m.fd = fileno(f);
    write_groups(m.fd, m.n);
    ck_assert_int_eq(lseek(m.fd, 0, SEEK_SET), 0);
    int len = snprintf(m.file, sizeof(m.file), "%s/x", kit.dir);
    ck_assert(len > 0 && (size_t)len < sizeof(m.file));
    ck_assert_int_eq(hostile_confined(import_groups, &m), 0);
    (void)fclose(f);
    exchange_stop(&kit);
}
