/* See dirs_kit.h. */
#include "dirs_kit.h"

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "../../src/base/file.h"
#include "plugin_kit.h"

#define PACK(bytes) "{\"name\":\"pack\",\"configuration\":{\"pack_bytes\":" bytes "}}"

/* The bucket, whose server has another address each time. */
static char bucket_texts[5][300];

const family families[FAMILIES] = {
    { "org.example.dir", "org.example.dir", IN("dir", "chunks"), DIR_A, DIR_B,
      " { \"configuration\" : {\"folder\":\"a.chunks\"}, \"name\":\"org.example.dir\"}",
      IN("dir", "a/b"), "folder" },
    { "org.example.packs", "org.example.packs", IN("packs", "chunks"), IN("packs", "a.chunks"),
      IN("packs", "b.chunks"),
      "{\"configuration\":{ \"folder\":\"a.chunks\" },\"name\" : \"org.example.packs\" }",
      IN("packs", ".."), "folder" },
    { "pack", "pack", PACK("268435456"), PACK("4194304"), PACK("1048576"),
      "{ \"configuration\":{\"pack_bytes\" :4194304},\n\"name\":\"pack\" }", PACK("-1"),
      "pack_bytes" },
    { "s3", bucket_texts[0], bucket_texts[1], bucket_texts[2], bucket_texts[3], bucket_texts[4],
      "{\"name\":\"s3\",\"configuration\":{\"bucket\":\"No Name\"}}", "bucket" },
};

/* ---- the bucket -------------------------------- */

static s3_server *server;
static int server_users;

static void bucket_text(int i, const char *prefix, const char *bytes)
{
    snprintf(bucket_texts[i], sizeof(bucket_texts[i]),
             "{\"name\":\"s3\",\"configuration\":{\"endpoint\":\"%s\",\"bucket\":\"box\","
             "\"prefix\":\"%s\",\"region\":\"us-east-1\",\"path_style\":true,\"pack_bytes\":%s}}",
             s3_server_endpoint(server), prefix, bytes);
}

static void bucket_start(void)
{
    if (server_users++ > 0)
        return;
    server = s3_server_start();
    snprintf(bucket_texts[0], sizeof(bucket_texts[0]),
             "{\"name\":\"s3\",\"configuration\":{\"endpoint\":\"%s\",\"bucket\":\"box\"}}",
             s3_server_endpoint(server));
    bucket_text(1, "", "33554432");
    bucket_text(2, "a", "33554432");
    bucket_text(3, "b", "1048576");
    snprintf(bucket_texts[4], sizeof(bucket_texts[4]),
             "{ \"configuration\" :{\"prefix\":\"a/\", \"bucket\":\"box\",\"endpoint\":\"%s/\"},"
             "\n\"name\":\"s3\"}",
             s3_server_endpoint(server));
}

static void bucket_stop(void)
{
    if (--server_users > 0)
        return;
    s3_server_stop(server);
    server = NULL;
}

s3_server *dirs_server(void)
{
    return server;
}

/* ---- a repository that knows the plug-in -------------------------------- */

void dirs_open(dirs *d, uint32_t flags)
{
    char path[4096];
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    plugin_path(path, sizeof(path), "dirs");
    OK(&d->t, brc_registry_new(&d->reg, &d->t.err));
    OK(&d->t, brc_registry_load(d->reg, path, &d->t.err));
    OK(&d->t, brc_pool_new(&d->pool, 4, &d->t.err));
    opts.registry = d->reg;
    opts.pool = d->pool;
    opts.credentials = scenario_give;
    scenario_open(&d->t, &opts, flags);
}

void dirs_close(dirs *d)
{
    scenario_close(&d->t);
    brc_registry_free(d->reg);
    brc_pool_free(d->pool);
    d->reg = NULL;
    d->pool = NULL;
}

void dirs_start(dirs *d)
{
    memset(d, 0, sizeof(*d));
    scenario_folder(&d->t);
    bucket_start();
    dirs_open(d, BRC_OPEN_CREATE);
}

void dirs_reopen(dirs *d)
{
    dirs_close(d);
    dirs_open(d, 0);
}

void dirs_stop(dirs *d)
{
    dirs_close(d);
    brc_tree_remove(d->t.dir);
    bucket_stop();
}

brc_array *dirs_new(dirs *d, const char *path, const char *backend)
{
    static const uint64_t shape = N, chunk = CHUNK;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_array *a;
    spec.ndim = 1;
    spec.shape = &shape;
    spec.chunk = &chunk;
    spec.dtype = "int32";
    spec.backend_json = backend;
    OK(&d->t, brc_array_create(&a, d->t.session, path, &spec, &d->t.err));
    return a;
}

brc_array *dirs_array(dirs *d, brc_session *s, const char *path)
{
    brc_array *a = scenario_array_at(&d->t, s, path);
    return a;
}

void dirs_values(int32_t out[N], int32_t first)
{
    for (int i = 0; i < N; i++)
        out[i] = first + i;
}

void dirs_put(dirs *d, brc_array *a, int32_t first)
{
    int32_t data[N];
    dirs_values(data, first);
    OK(&d->t, brc_array_write(a, NULL, data, sizeof(data), &d->t.err));
}

void dirs_check(dirs *d, brc_array *a, int32_t first)
{
    int32_t want[N], got[N];
    dirs_values(want, first);
    OK(&d->t, brc_array_read(a, NULL, got, sizeof(got), &d->t.err));
    ck_assert_mem_eq(got, want, sizeof(got));
}

/* One chunk gets this value. */
void dirs_put_chunk(dirs *d, brc_array *a, uint64_t i, int32_t value)
{
    brc_sel sel = BRC_SEL_INIT;
    sel.ndim = 1;
    sel.start[0] = i * CHUNK;
    sel.count[0] = CHUNK;
    sel.step[0] = 1;
    OK(&d->t, brc_array_fill(a, &sel, &value, &d->t.err));
}

int32_t dirs_get_chunk(dirs *d, brc_array *a, uint64_t i)
{
    brc_sel sel = BRC_SEL_INIT;
    sel.ndim = 1;
    sel.start[0] = i * CHUNK;
    sel.count[0] = sel.step[0] = 1;
    int32_t value = -1;
    OK(&d->t, brc_array_read(a, &sel, &value, sizeof(value), &d->t.err));
    return value;
}

void dirs_say(dirs *d, const char *words)
{
    ck_assert_msg(strstr(d->t.err.message, words) != NULL, "\"%s\" is not in \"%s\"", words,
                  d->t.err.message);
}

/* ---- what is in the folder -------------------------------- */

void dirs_path(const dirs *d, char *out, size_t size, const char *name)
{
    ck_assert_int_lt(snprintf(out, size, "%s/%s", d->t.dir, name), (int)size);
}

/* How many files; `first` gets the path of the one whose name is smallest. */
int dirs_files(const dirs *d, const char *folder, char first[512])
{
    char path[256], least[256] = "";
    int n = 0;
    dirs_path(d, path, sizeof(path), folder);
    DIR *dir = opendir(path);
    if (dir == NULL)
        return 0;
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        if (e->d_name[0] == '.')
            continue;
        n++;
        if (least[0] == '\0' || strcmp(e->d_name, least) < 0)
            snprintf(least, sizeof(least), "%s", e->d_name);
    }
    closedir(dir);
    if (first != NULL)
        snprintf(first, 512, "%s/%s", path, least);
    return n;
}

/* Counts the records of a pack of ours by the bytes that begin one (src/backends/pack_file.h). */
static int records_in(const char *path)
{
    uint8_t word[8];
    int n = 0;
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    while (fread(word, 1, sizeof(word), f) == sizeof(word))
        n += memcmp(word, "BRCr\0\0\0", sizeof(word)) == 0;
    fclose(f);
    return n;
}

static int records(const dirs *d)
{
    char folder[256], path[640];
    int n = 0;
    dirs_path(d, folder, sizeof(folder), "test.brc.packs");
    DIR *dir = opendir(folder);
    for (const struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
        snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        if (strstr(e->d_name, ".pack") != NULL)
            n += records_in(path);
    }
    if (dir != NULL)
        closedir(dir);
    return n;
}

void dirs_hold(const dirs *d, const family *f, int n)
{
    if (strcmp(f->name, "org.example.dir") == 0)
        ck_assert_int_eq(dirs_files(d, "a.chunks", NULL) + dirs_files(d, "b.chunks", NULL), n);
    else if (strcmp(f->name, "pack") == 0)
        ck_assert_int_eq(records(d), n);
    else if (strcmp(f->name, "s3") == 0)
        ck_assert_int_eq(s3_server_words(server, "BRCr\0\0\0"), n);
    else if (n == 0)
        ck_assert_int_eq(dirs_files(d, "b.chunks", NULL), 0);
    else /* several objects a file */
        ck_assert_int_gt(dirs_files(d, "a.chunks", NULL) + dirs_files(d, "b.chunks", NULL), 0);
}

int64_t dirs_chunks(dirs *d, const char *pattern)
{
    char sql[600];
    snprintf(sql, sizeof(sql),
             "SELECT count(*) FROM object o LEFT JOIN backend b ON b.id=o.backend WHERE o.kind=1"
             " AND coalesce(b.spec,'inline') LIKE '%s'",
             pattern);
    return scenario_ask(&d->t, sql);
}

void dirs_rows(dirs *d, brc_buf *out)
{
    scenario_rows(&d->t, "SELECT hex(id), encoding, backend, place, offset, stored, checksum FROM"
                         " object WHERE kind=1 ORDER BY id",
                  out);
}

/* ---- what fsck says -------------------------------- */


static int keep_finding(void *ctx, const brc_damage *damage)
{
    finding *f = ctx;
    size_t at = strlen(f->text);
    f->n++;
    f->missing += (damage->flags & BRC_DAMAGE_MISSING) != 0;
    snprintf(f->text + at, sizeof(f->text) - at, "%s; used by %s\n", damage->message,
             damage->nused_by > 0 ? damage->used_by[0] : "nobody");
    return 0;
}

finding dirs_fsck(dirs *d)
{
    uint64_t checked;
    finding f;
    memset(&f, 0, sizeof(f));
    int rc = brc_fsck(d->t.repo, 0, keep_finding, NULL, &f, &checked, &d->t.err);
    ck_assert_msg(rc >= 0 || rc == BRC_ECORRUPT, "%s", d->t.err.message);
    return f;
}
