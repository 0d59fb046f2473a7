/* See history_world.h. */
#include "history_world.h"
#include "scenario.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int hm_say(hm_world *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(w->why, sizeof(w->why), format, args);
    va_end(args);
    return -1;
}

const char *hm_branch(int i)
{
    static const char *const names[HM_BRANCHES] = {"main", "b", "c"};
    return names[i];
}

const char *hm_tag(int i)
{
    return i == 0 ? "v0" : "v1";
}

/* ---- reading -------------------------------------------------------------------------------- */

static int read_attr(hm_world *w, brc_session *s, const char *path, int k, int32_t *out)
{
    brc_buf json = {0};
    char key[16];
    snprintf(key, sizeof(key), "k%d", k);
    const int rc = brc_attrs_get(&json, s, path, key, &w->err);
    *out = 0;
    if (rc == BRC_OK)
        *out = (int32_t)strtol((const char *)json.data, NULL, 10);
    brc_buf_dispose(&json);
    HM_TRUE(w, rc == BRC_OK || rc == BRC_ENOTFOUND, "%s: %s", path, w->err.message);
    return 0;
}

/* Byte i of the row of a value from 1 to 3. No two heads have an equal byte, so a merge of bytes is
 * one of values. */
static uint8_t row_byte(int32_t value, int i)
{
    const uint32_t noise = (uint32_t)i * UINT32_C(2654435761) >> 24;
    return (uint8_t)(i < HM_HEAD ? (uint32_t)value << 6 | (noise & 0x3f) : noise);
}

void hm_rows(const int32_t *values, int n, uint8_t *rows)
{
    for (int i = 0; i < n * HM_ROW; i++)
        rows[i] = values[i / HM_ROW] == 0 ? 0 : row_byte(values[i / HM_ROW], i % HM_ROW);
}

/* Fill values may stay behind a head that a merge has taken from one side. */
int hm_values(hm_world *w, const uint8_t *rows, int n, int32_t *values)
{
    static const uint8_t none[HM_ROW];
    uint8_t row[HM_ROW];
    for (int i = 0; i < n; i++, rows += HM_ROW) {
        values[i] = rows[0] >> 6;
        hm_rows(&values[i], 1, row);
        const int has_tail = memcmp(rows + HM_HEAD, none, HM_ROW - HM_HEAD) != 0;
        HM_TRUE(w, memcmp(row, rows, has_tail ? HM_ROW : HM_HEAD) == 0,
                "element %d is half of another", i);
    }
    return 0;
}

static int read_node(hm_world *w, brc_session *s, const char *path, hm_node *out)
{
    brc_array *a;
    uint8_t rows[HM_LEN * HM_ROW];
    memset(out, 0, sizeof(*out));
    HM_TRUE(w, sscanf(path, "/n%d", &out->name) == 1, "a node %s", path);
    HM_OK(w, brc_array_open(&a, s, path, &w->err));
    out->len = (int)brc_array_describe(a)->shape[0];
    const int fits = out->len <= HM_LEN;
    const size_t bytes = (size_t)out->len * HM_ROW;
    const int rc = fits ? brc_array_read(a, NULL, rows, bytes, &w->err) : 0;
    brc_array_free(a);
    HM_TRUE(w, fits && rc == BRC_OK, "%s has %d elements: %s", path, out->len, w->err.message);
    HM_GO(hm_values(w, rows, out->len, out->value));
    for (int k = 0; k < HM_ATTRS; k++)
        HM_GO(read_attr(w, s, path, k, &out->attr[k]));
    return 0;
}

int hm_read(hm_world *w, brc_session *s, hm_snap *out)
{
    brc_iter *it;
    const brc_node *node;
    char path[HM_NODES][24];
    int rc;
    out->n = 0;
    HM_OK(w, brc_list(&it, s, "/", 0, &w->err));
    while ((rc = brc_next(it, &node, &w->err)) > 0 && out->n < HM_NODES)
        snprintf(path[out->n++], sizeof(path[0]), "%s", node->path);
    brc_iter_free(it);
    HM_TRUE(w, rc == 0, "a list of nodes: %s", w->err.message);
    for (int i = 0; i < out->n; i++)
        HM_GO(read_node(w, s, path[i], &out->node[i]));
    return 0;
}

/* ---- commits -------------------------------------------------------------------------------- */

char *hm_hex(const hm_world *w, int commit, char *hex)
{
    brc_oid id;
    memcpy(&id, w->g.commit[commit].id, sizeof(id));
    return brc_oid_format(hex, &id);
}

int hm_tip(hm_world *w, const char *rev, brc_oid *id)
{
    HM_OK(w, brc_resolve(id, w->repo[0], rev, &w->err));
    return 0;
}

int hm_find(const hm_world *w, const brc_oid *id)
{
    for (int i = 0; i < w->g.n; i++)
        if (memcmp(w->g.commit[i].id, id, sizeof(*id)) == 0)
            return i;
    return -1;
}

/* No two nodes ever have one name, so the name says which it is. */
static void name_nodes(const hm_world *w, hm_snap *s)
{
    for (int i = 0; i < s->n; i++)
        s->node[i].uid = s->node[i].name < HM_NAMES ? w->uid_of[s->node[i].name] : 0;
}

static int read_commit(hm_world *w, const brc_oid *id, hm_commit *out)
{
    brc_commit *c;
    brc_session *s;
    char hex[65];
    HM_OK(w, brc_commit_read(&c, w->repo[0], id, &w->err));
    memcpy(out->id, id, sizeof(*id));
    out->nparents = (int)c->nparents;
    int known = c->nparents <= 2;
    for (size_t i = 0; i < c->nparents && known; i++) {
        out->parent[i] = hm_find(w, &c->parents[i]);
        known = out->parent[i] >= 0;
    }
    brc_commit_free(c);
    HM_TRUE(w, known, "commit %s has parents that nobody made", brc_oid_format(hex, id));
    HM_OK(w, brc_session_open(&s, w->repo[0], brc_oid_format(hex, id), BRC_SESSION_AT, &w->err));
    const int rc = hm_read(w, s, &out->snap);
    brc_session_free(s);
    return rc;
}

int hm_import(hm_world *w, const brc_oid *id, const hm_snap *like, int *out)
{
    HM_TRUE(w, w->g.n < HM_COMMITS, "too many commits");
    hm_commit *c = &w->g.commit[w->g.n];
    HM_GO(read_commit(w, id, c));
    if (like != NULL) {
        HM_TRUE(w, hm_same(like, &c->snap), "a new commit has not what it must have");
        c->snap = *like;
    } else {
        name_nodes(w, &c->snap);
    }
    *out = w->g.n++;
    return 0;
}

/* ---- checking ------------------------------------------------------------------------------- */

#define HM_REFS (HM_BRANCHES + HM_TAGS)

static int ref_commit(const hm_refs *refs, int i, const char **name)
{
    *name = i < HM_BRANCHES ? hm_branch(i) : hm_tag(i - HM_BRANCHES);
    if (i < HM_BRANCHES)
        return refs->tip[i];
    return refs->tag[i - HM_BRANCHES];
}

static int check_refs(hm_world *w, int handle)
{
    const char *name;
    brc_iter *it;
    const brc_ref *ref;
    int n = 0, want = 0, rc, good = 1;
    HM_OK(w, brc_refs(&it, w->repo[handle], &w->err));
    for (int i = 0; i < HM_REFS; i++)
        want += ref_commit(&w->refs, i, &name) >= 0;
    while ((rc = brc_next(it, &ref, &w->err)) > 0 && good) {
        int commit = -1;
        for (int i = 0; i < HM_REFS; i++) {
            const int there = ref_commit(&w->refs, i, &name);
            if (strcmp(ref->name, name) == 0)
                commit = there;
        }
        good = commit >= 0 && memcmp(w->g.commit[commit].id, &ref->id, sizeof(ref->id)) == 0;
        if (!good)
            hm_say(w, "%s is not where it must be", ref->name);
        n++;
    }
    brc_iter_free(it);
    HM_TRUE(w, rc >= 0, "refs: %s", w->err.message);
    if (!good)
        return -1;
    HM_TRUE(w, n == want, "%d refs, not %d", n, want);
    const char *head;
    HM_OK(w, brc_head(&head, w->repo[handle], &w->err));
    HM_TRUE(w, strcmp(head, hm_branch(w->refs.head)) == 0, "the current branch is %s", head);
    return 0;
}

static int check_session(hm_world *w, int i, int handle)
{
    hm_snap now;
    hm_draft *d = &w->draft[i];
    if (i < HM_BRANCHES) {
        brc_session *s;
        if (w->refs.tip[i] < 0)
            return 0;
        HM_OK(w, brc_session_open(&s, w->repo[handle], hm_branch(i), BRC_SESSION_VIEW, &w->err));
        const int rc = hm_read(w, s, &now);
        brc_session_free(s);
        HM_GO(rc);
    } else if (d->session != NULL) {
        HM_GO(hm_read(w, d->session, &now));
    } else {
        return 0;
    }
    HM_TRUE(w, hm_same(&now, &d->snap), "session %d (%s) does not see what it must", i,
            hm_branch(d->branch));
    return 0;
}

int hm_check(hm_world *w, int all)
{
    for (int i = 0; i < HM_SESSIONS; i++)
        if (all || i == w->step % HM_SESSIONS)
            HM_GO(check_session(w, i, w->step % HM_HANDLES));
    return check_refs(w, w->step % HM_HANDLES);
}

static int note_damage(void *ctx, const brc_damage *damage)
{
    hm_world *w = ctx;
    hm_say(w, "fsck: %s: %s", damage->kind, damage->message);
    return 1;
}

int hm_fsck(hm_world *w)
{
    uint64_t checked;
    w->why[0] = '\0';
    const int rc = brc_fsck(w->repo[0], 0, note_damage, NULL, w, &checked, &w->err);
    if (w->why[0] != '\0')
        return -1;
    HM_TRUE(w, rc == BRC_OK, "fsck: %s", w->err.message);
    return 0;
}

/* ---- beginning and end ---------------------------------------------------------------------- */

int hm_open(hm_world *w, int handle)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    HM_OK(w, scenario_connect(&w->repo[handle], w->file, &opts, &w->err));
    return 0;
}

void hm_follow(hm_world *w)
{
    for (int i = 0; i < HM_SESSIONS; i++) {
        hm_draft *d = &w->draft[i];
        if (i < HM_BRANCHES)
            d->branch = i;
        if (d->changed || w->refs.tip[d->branch] < 0)
            continue;
        d->base = w->refs.tip[d->branch];
        d->snap = w->g.commit[d->base].snap;
    }
}

void hm_log(hm_world *w, const hm_refs *before)
{
    if (w->ndone == HM_LOG - 1)
        return;
    w->log[w->ndone++] = *before;
    w->log[w->ndone] = w->refs;
    w->nlog = w->ndone;
}

void hm_forget_log(hm_world *w)
{
    w->log[0] = w->refs;
    w->nlog = w->ndone = 0;
}

int hm_start(hm_world *w, const char *file)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    brc_commit_opts first = BRC_COMMIT_OPTS_INIT;
    brc_session *s;
    brc_oid id;
    hm_snap none = {0};
    char bucket[300];
    memset(w, 0, sizeof(*w));
    scenario_bucket(bucket, "soak"); /* from the first handle on, all know its server */
    snprintf(w->file, sizeof(w->file), "%s", file);
    w->next_uid = 1;
    opts.flags = BRC_OPEN_CREATE;
    HM_OK(w, scenario_connect(&w->repo[0], w->file, &opts, &w->err));
    HM_OK(w, brc_session_open(&s, w->repo[0], NULL, BRC_SESSION_WRITE, &w->err));
    HM_OK(w, brc_attrs_set(s, "/", "first", "1", &w->err));
    first.message = "first";
    HM_OK(w, brc_session_commit(&id, s, &first, &w->err));
    brc_session_free(s);
    int commit;
    HM_GO(hm_import(w, &id, &none, &commit));
    HM_OK(w, brc_ref_create(w->repo[0], "b", NULL, NULL, 0, &w->err));
    HM_OK(w, brc_ref_create(w->repo[0], "c", NULL, NULL, 0, &w->err));
    memset(&w->refs, 0, sizeof(w->refs));
    w->refs.tag[0] = w->refs.tag[1] = -1;
    w->log[0] = w->refs;
    hm_follow(w);
    return hm_open(w, 1);
}

void hm_stop(hm_world *w)
{
    for (int i = 0; i < HM_SESSIONS; i++)
        brc_session_free(w->draft[i].session);
    for (int h = 0; h < HM_HANDLES; h++)
        brc_free(w->repo[h]);
}
