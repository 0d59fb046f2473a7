/* See many_model.h. */
#include "many_model.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

const char *const many_branches[MANY_BRANCHES] = { "main", "side" };

const char *const many_things[MANY_THINGS] = {
    "written",          "committed",         "stale",        "discarded",
    "written privately", "committed privately", "stale privately", "discarded privately",
    "handed over",      "not handed over",   "closed",       "killed",
    "adopted",          "adopted over changes", "adoptions refused", "dropped",
};

void many_fail(const many_model *m, const char *file, int line, const char *format, ...)
{
    char text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (getpid() == m->judge)
        ck_abort_msg("%s:%d: seed %llu: %s", file, line, (unsigned long long)m->seed, text);
    fprintf(stderr, "%s:%d: seed %llu, process %d: %s\n", file, line, (unsigned long long)m->seed,
            (int)getpid(), text);
    _exit(1);
}

#define GOOD(m, err, call) MANY_TRUE((m), (call) == BRC_OK, "%s", (err)->message)

/* ---- the file ------------------------------------------------------------------------- */

static void make_file(many_model *m)
{
    brc_error err = BRC_ERROR_INIT;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_commit_opts commit = BRC_COMMIT_OPTS_INIT;
    uint64_t n = MANY_CHUNKS * MANY_WORKERS, chunk = MANY_WORKERS;
    breccia *repo;
    brc_session *s;
    brc_array *a;
    brc_oid id;
    opts.flags = BRC_OPEN_CREATE;
    spec.ndim = 1;
    spec.shape = &n;
    spec.chunk = &chunk;
    spec.dtype = "uint32";
    commit.message = "first";
    GOOD(m, &err, brc_open(&repo, m->file, &opts, &err));
    GOOD(m, &err, brc_session_open(&s, repo, NULL, BRC_SESSION_WRITE, &err));
    GOOD(m, &err, brc_array_create(&a, s, "/a", &spec, &err));
    GOOD(m, &err, brc_session_commit(&id, s, &commit, &err));
    for (int b = 1; b < MANY_BRANCHES; b++)
        GOOD(m, &err, brc_ref_create(repo, many_branches[b], NULL, NULL, 0, &err));
    many_note_commit(m, repo, 0, &id, &(many_view){ 0 });
    brc_array_free(a);
    brc_session_free(s);
    brc_free(repo);
}

many_model *many_new(const char *file, uint64_t seed)
{
    many_model *m = mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                         0);
    ck_assert_ptr_ne(m, MAP_FAILED);
    snprintf(m->file, sizeof(m->file), "%s", file);
    m->judge = getpid();
    m->seed = seed;
    m->clock = 1;
    for (int b = 0; b < MANY_BRANCHES; b++) /* none is 0 */
        m->branch[b].moves_begun = m->branch[b].moves_done = m->branch[b].moves_known = 1;
    make_file(m);
    return m;
}

void many_free(many_model *m)
{
    munmap(m, sizeof(*m));
}

/* ---- registers ------------------------------------------------------------------------ */

static uint32_t attribute(const many_model *m, brc_session *s, const char *path, const char *key)
{
    brc_error err = BRC_ERROR_INIT;
    brc_buf json = BRC_BUF_INIT;
    char text[32] = "";
    int rc = brc_attrs_get(&json, s, path, key, &err);
    MANY_TRUE(m, rc == BRC_OK || rc == BRC_ENOTFOUND, "%s", err.message);
    if (rc == BRC_OK && json.len < sizeof(text))
        memcpy(text, json.data, json.len);
    brc_buf_dispose(&json);
    return (uint32_t)strtoul(text, NULL, 10);
}

void many_read(const many_model *m, brc_session *s, many_view *out)
{
    brc_error err = BRC_ERROR_INIT;
    uint32_t elements[MANY_CHUNKS][MANY_WORKERS];
    char name[16];
    brc_array *a;
    GOOD(m, &err, brc_array_open(&a, s, "/a", &err));
    GOOD(m, &err, brc_array_read(a, NULL, elements, sizeof(elements), &err));
    brc_array_free(a);
    for (int w = 0; w < MANY_WORKERS; w++) {
        for (int c = 0; c < MANY_CHUNKS; c++)
            out->value[w][c] = elements[c][w];
        snprintf(name, sizeof(name), "w%d", w);
        out->value[w][MANY_ATTRIBUTE] = attribute(m, s, "/a", name);
        snprintf(name, sizeof(name), "/n%d", w);
        out->value[w][MANY_GROUP] = attribute(m, s, name, "v");
    }
}

void many_read_commit(const many_model *m, breccia *repo, const brc_oid *id, many_view *out)
{
    brc_error err = BRC_ERROR_INIT;
    char hex[65];
    brc_session *s;
    GOOD(m, &err, brc_session_open(&s, repo, brc_oid_format(hex, id), BRC_SESSION_AT, &err));
    many_read(m, s, out);
    brc_session_free(s);
}

static int write_elements(brc_session *s, int worker, int first, int n, uint32_t value,
                          brc_error *err)
{
    brc_sel sel = BRC_SEL_INIT;
    uint32_t values[MANY_CHUNKS];
    brc_array *a;
    sel.ndim = 1;
    sel.step[0] = MANY_WORKERS;
    sel.start[0] = (uint64_t)(first * MANY_WORKERS + worker);
    sel.count[0] = (uint64_t)n;
    for (int i = 0; i < n; i++)
        values[i] = value;
    int rc = brc_array_open(&a, s, "/a", err);
    if (rc == BRC_OK)
        rc = brc_array_write(a, &sel, values, (size_t)n * sizeof(values[0]), err);
    brc_array_free(a);
    return rc;
}

int many_write(brc_session *s, int worker, int first, int n, uint32_t value, brc_error *err)
{
    char name[16], json[32];
    if (first < MANY_CHUNKS)
        return write_elements(s, worker, first, n, value, err);
    snprintf(json, sizeof(json), first == MANY_GROUP ? "{\"v\":%u}" : "%u", (unsigned)value);
    if (first == MANY_ATTRIBUTE) {
        snprintf(name, sizeof(name), "w%d", worker);
        return brc_attrs_set(s, "/a", name, json, err);
    }
    snprintf(name, sizeof(name), "/n%d", worker);
    return value == 0 ? brc_node_remove(s, name, err) : brc_group_create(s, name, json, err);
}

/* ---- what is known ---------------------------------------------------------------------- */

void many_note_commit(many_model *m, breccia *repo, int branch, const brc_oid *id,
                      const many_view *view)
{
    brc_error err = BRC_ERROR_INIT;
    brc_commit *commit;
    uint32_t at = atomic_fetch_add(&m->ncommits, 1);
    MANY_TRUE(m, at < MANY_COMMITS, "too many commits for the model");
    GOOD(m, &err, brc_commit_read(&commit, repo, id, &err));
    m->commits[at].branch = branch;
    m->commits[at].id = *id;
    if (commit->nparents > 0)
        m->commits[at].parent = commit->parents[0];
    m->commits[at].view = *view;
    brc_commit_free(commit);
    atomic_store(&m->commits[at].known, 1);
}

const many_commit *many_find_commit(const many_model *m, const brc_oid *id)
{
    for (uint32_t i = 0; i < m->ncommits; i++)
        if (m->commits[i].known && memcmp(&m->commits[i].id, id, sizeof(*id)) == 0)
            return &m->commits[i];
    return NULL;
}

void many_note_left(many_model *m, const many_private *draft, int branch)
{
    uint32_t at = atomic_fetch_add(&m->nleft, 1);
    MANY_TRUE(m, at < MANY_LEFT, "too many drafts for the model");
    m->left[at] = *draft;
    m->left[at].branch = branch;
}
