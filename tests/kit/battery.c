/* See battery.h. */
#include "battery.h"
#include "ios.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_REFS 32
#define MAX_NODES 300
#define MAX_COMMITS 50
#define MAX_KEYS 40
#define MAX_CHANGED 8 /* nodes that are changed */
#define ELEMENTS_MAX 4096 /* of an array that are read at once */

typedef struct battery_now {
    battery *out;
    breccia *repo;
    char revs[MAX_REFS][300];
    brc_oid ids[MAX_REFS];
    size_t nrevs, nids; /* the first nids of them are resolved, and differ */
    char *paths[MAX_NODES];
    int kinds[MAX_NODES];
    size_t npaths;
} battery_now;

/* ---- judging -------------------------------- */

/* The errors that a command may give on a file in which fsck finds no fault: that this build
 * cannot do it, that a limit stands in the way, that there is a decision to make, that the branch
 * is no longer where a draft has it, that what an argument names is not there. */
static int is_work(int rc)
{
    return rc >= 0 || rc == BRC_EUNSUPPORTED || rc == BRC_ELIMIT || rc == BRC_ECONFLICT ||
           rc == BRC_ENOTFOUND || rc == BRC_EEXISTS || rc == BRC_EMISUSE || rc == BRC_EAMBIGUOUS ||
           rc == BRC_EINVAL || rc == BRC_ESTALE;
}

/* Takes the result of a command; gives it back. */
static int did(battery_now *b, const char *command, const char *on, int rc, const brc_error *err)
{
    battery *out = b->out;
    const char *why = NULL;
    out->commands++;
    if (rc == BRC_EINTERNAL || rc == BRC_ENOMEM)
        why = "that is a bug";
    else if (rc == BRC_ECORRUPT && out->findings == 0)
        why = "fsck says that all is well";
    else if (rc == BRC_ECOLLISION && out->findings > 0)
        why = NULL; /* it says that fsck tells the one from the other */
    else if (!is_work(rc) && rc != BRC_ECORRUPT)
        why = "that is not a word for damage";
    if (why != NULL && out->broken[0] == '\0')
        snprintf(out->broken, sizeof(out->broken), "%s %.80s: %s, but %s", command, on,
                 err->message, why);
    return rc;
}

static int take_finding(void *ctx, const brc_damage *damage)
{
    battery *out = ctx;
    if (out->findings++ == 0)
        snprintf(out->finding, sizeof(out->finding), "%s: %.150s", damage->kind, damage->message);
    return 0;
}

static void ask_fsck(battery_now *b)
{
    brc_error err = BRC_ERROR_INIT;
    uint64_t checked;
    int rc = brc_fsck(b->repo, 0, take_finding, NULL, b->out, &checked, &err);
    if (rc < 0) /* that it cannot go on is a finding, but must not be all that it says */
        snprintf(b->out->broken, sizeof(b->out->broken), "fsck: %s", err.message);
}

/* ---- history -------------------------------- */

static void add_rev(battery_now *b, const char *rev)
{
    if (b->nrevs < MAX_REFS)
        snprintf(b->revs[b->nrevs++], sizeof(b->revs[0]), "%s", rev);
}

static void list_refs(battery_now *b)
{
    brc_error err = BRC_ERROR_INIT;
    brc_iter *it;
    const brc_ref *ref;
    int rc = did(b, "branch", "", brc_refs(&it, b->repo, &err), &err);
    while (rc >= 0 && (rc = did(b, "branch", "", brc_next(it, &ref, &err), &err)) > 0)
        if (!(ref->flags & BRC_REF_UNBORN))
            add_rev(b, ref->name);
    brc_iter_free(it);
    add_rev(b, "HEAD");
    add_rev(b, "HEAD~1");
    add_rev(b, "main@{2023-11-14T22:13:20.5Z}");
}

static void show_log(battery_now *b, const char *rev, const char *path)
{
    brc_error err = BRC_ERROR_INIT;
    const brc_commit *commit;
    brc_iter *it;
    const brc_log_opts opts = { .size = sizeof(opts), .path = path };
    int n = 0, rc = did(b, "log", rev, brc_log(&it, b->repo, rev, &opts, &err), &err);
    while (rc >= 0 && n++ < MAX_COMMITS &&
           (rc = did(b, "log", rev, brc_next(it, &commit, &err), &err)) > 0) {
        brc_commit *again;
        if (did(b, "show", rev, brc_commit_read(&again, b->repo, &commit->id, &err), &err) >= 0)
            brc_commit_free(again);
    }
    brc_iter_free(it);
}

static void show_diff(battery_now *b, const char *from, const char *to, uint32_t flags)
{
    brc_error err = BRC_ERROR_INIT;
    brc_diff_opts opts = BRC_DIFF_OPTS_INIT;
    const brc_change *change;
    brc_iter *it;
    const char *on = from != NULL ? from : "";
    opts.flags = flags;
    int rc = did(b, "diff", on, brc_diff(&it, b->repo, from, to, &opts, &err), &err);
    for (int n = 0; rc >= 0 && n < MAX_NODES; n++) {
        rc = did(b, "diff", on, brc_next(it, &change, &err), &err);
        if (rc <= 0)
            break;
    }
    brc_iter_free(it);
}

/* ---- one version -------------------------------- */

static void list_nodes(battery_now *b, brc_session *s, const char *rev, int keep)
{
    brc_error err = BRC_ERROR_INIT;
    const brc_node *node;
    brc_iter *it;
    int rc = did(b, "ls -r", rev, brc_list(&it, s, "/", BRC_LIST_RECURSE, &err), &err);
    for (int n = 0; rc >= 0 && n < MAX_NODES; n++) {
        rc = did(b, "ls -r", rev, brc_next(it, &node, &err), &err);
        if (rc <= 0)
            break;
        brc_buf text = BRC_BUF_INIT;
        did(b, "ls", node->path, brc_node_json(&text, s, node->path, &err), &err);
        text.len = 0;
        did(b, "attrs", node->path, brc_attrs_get(&text, s, node->path, NULL, &err), &err);
        brc_buf_dispose(&text);
        if (keep && (b->paths[b->npaths] = strdup(node->path)) != NULL)
            b->kinds[b->npaths++] = node->kind;
        else if (node->kind == BRC_ARRAY)
            did(b, "ls", node->path, brc_node_kind(&rc, s, node->path, &err), &err);
        rc = 1;
    }
    brc_iter_free(it);
}

static void read_elements(battery_now *b, brc_session *s, const char *path)
{
    brc_error err = BRC_ERROR_INIT;
    brc_buf out = BRC_BUF_INIT;
    brc_array *a;
    brc_sel sel = BRC_SEL_INIT;
    uint64_t chunks, stored;
    if (did(b, "read", path, brc_array_open(&a, s, path, &err), &err) < 0)
        return;
    did(b, "info", path, brc_array_stat(&chunks, &stored, a, &err), &err);
    sel_all(&sel, a);
    for (int d = 0; d < sel.ndim && brc_sel_count(&sel) > ELEMENTS_MAX; d++)
        sel.count[d] = 1;
    did(b, "read", path, io_elements(a, &sel, &out, &err), &err);
    brc_buf_dispose(&out);
    brc_array_free(a);
}

static void read_keys(battery_now *b, brc_session *s)
{
    brc_error err = BRC_ERROR_INIT;
    const char *key;
    brc_iter *it;
    int rc = did(b, "export", "/", brc_keys(&it, s, "", 0, &err), &err);
    for (int n = 0; rc >= 0 && n < MAX_KEYS; n++) {
        brc_buf value = BRC_BUF_INIT;
        rc = did(b, "export", "/", brc_next(it, &key, &err), &err);
        if (rc <= 0)
            break;
        did(b, "export", key, brc_key_get(&value, s, key, NULL, NULL, &err), &err);
        brc_buf_dispose(&value);
    }
    brc_iter_free(it);
}

/* `rev` NULL: with the uncommitted changes. */
static void read_version(battery_now *b, const char *rev)
{
    brc_error err = BRC_ERROR_INIT;
    brc_session *s;
    const char *on = rev != NULL ? rev : "";
    int mode = rev != NULL ? BRC_SESSION_AT : BRC_SESSION_VIEW;
    if (did(b, "ls", on, brc_session_open(&s, b->repo, rev, mode, &err), &err) < 0)
        return;
    size_t before = b->npaths;
    list_nodes(b, s, on, rev == NULL);
    for (size_t i = before; i < b->npaths; i++)
        if (b->kinds[i] == BRC_ARRAY)
            read_elements(b, s, b->paths[i]);
    read_keys(b, s);
    brc_session_free(s);
}

/* ---- changes -------------------------------- */

static void change_node(battery_now *b, brc_session *s, size_t i)
{
    brc_error err = BRC_ERROR_INIT;
    const char *path = b->paths[i];
    char to[40];
    did(b, "attrs", path, brc_attrs_set(s, path, "battery", "[1]", &err), &err);
    snprintf(to, sizeof(to), "/battery/copy%zu", i);
    if (strcmp(path, "/") != 0 && i % 2 == 0)
        did(b, "cp", path, brc_node_move(s, path, to, BRC_NODE_COPY, &err), &err);
    if (i + 1 == MAX_CHANGED && strcmp(path, "/") != 0)
        did(b, "mv", path, brc_node_move(s, path, "/battery/moved", 0, &err), &err);
}

static void write_element(battery_now *b, brc_session *s, const char *path)
{
    brc_error err = BRC_ERROR_INIT;
    static const uint8_t zero[4096];
    brc_array *a;
    brc_sel sel = BRC_SEL_INIT;
    if (did(b, "write", path, brc_array_open(&a, s, path, &err), &err) < 0)
        return;
    const brc_array_info *info = brc_array_describe(a);
    sel_all(&sel, a);
    for (int d = 0; d < sel.ndim; d++)
        sel.count[d] = sel.count[d] > 0;
    if (info->item_size > 0 && info->item_size < sizeof(zero) &&
        brc_sel_count(&sel) <= ELEMENTS_MAX)
        did(b, "write", path, brc_array_fill(a, &sel, zero, &err), &err);
    brc_array_free(a);
}

static void change(battery_now *b)
{
    brc_error err = BRC_ERROR_INIT;
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_session *s;
    brc_oid id;
    int clean;
    if (did(b, "write", "", brc_session_open(&s, b->repo, NULL, BRC_SESSION_WRITE, &err), &err) < 0)
        return;
    did(b, "status", "", brc_session_clean(&clean, s, &err), &err);
    for (size_t i = 0; i < b->npaths; i++)
        if (b->kinds[i] == BRC_ARRAY)
            write_element(b, s, b->paths[i]);
    for (size_t i = 0; i < b->npaths && i < MAX_CHANGED; i++)
        change_node(b, s, i);
    did(b, "group", "/battery/g", brc_group_create(s, "/battery/g", NULL, &err), &err);
    show_diff(b, NULL, NULL, BRC_DIFF_ELEMENTS);
    opts.message = "battery";
    opts.time_us = INT64_C(1700000009000000);
    did(b, "commit", "", brc_session_commit(&id, s, &opts, &err), &err);
    if (b->npaths > 1)
        did(b, "rm", b->paths[1], brc_node_remove(s, b->paths[1], &err), &err);
    did(b, "restore", "/", brc_node_restore(s, "/", NULL, &err), &err);
    brc_session_free(s);
}

static void change_refs(battery_now *b)
{
    brc_error err = BRC_ERROR_INIT;
    did(b, "branch", "battery", brc_ref_create(b->repo, "battery", NULL, NULL, 0, &err), &err);
    did(b, "tag", "battery", brc_ref_create(b->repo, "battery-1", NULL, "m", BRC_REF_TAG,
                                            &err), &err);
    did(b, "switch", "battery", brc_switch(b->repo, "battery", BRC_SWITCH_DISCARD, &err), &err);
    did(b, "reset", "HEAD~1", brc_reset(b->repo, NULL, "HEAD~1", BRC_RESET_HARD, NULL, &err), &err);
    did(b, "tag -d", "battery", brc_ref_delete(b->repo, "battery-1", BRC_REF_TAG | BRC_DELETE_FORCE,
                                               &err), &err);
}

/* ---- all of it -------------------------------- */

/* Several revisions are one commit, which is read once. */
static void keep_commit(battery_now *b, size_t rev, const brc_oid *id)
{
    for (size_t i = 0; i < b->nids; i++)
        if (memcmp(&b->ids[i], id, sizeof(*id)) == 0)
            return;
    b->ids[b->nids] = *id;
    if (rev != b->nids)
        memcpy(b->revs[b->nids], b->revs[rev], sizeof(b->revs[rev]));
    b->nids++;
}

static void read_history(battery_now *b)
{
    brc_error err = BRC_ERROR_INIT;
    brc_stats stats = BRC_STATS_INIT;
    brc_oid id;
    const char *head;
    did(b, "info", "", brc_stat(b->repo, &stats, &err), &err);
    did(b, "status", "", brc_head(&head, b->repo, &err), &err);
    list_refs(b);
    for (size_t i = 0; i < b->nrevs; i++)
        if (did(b, "show", b->revs[i], brc_resolve(&id, b->repo, b->revs[i], &err), &err) >= 0)
            keep_commit(b, i, &id);
    show_log(b, NULL, "/many");
    read_version(b, NULL);
    for (size_t i = 0; i < b->nids; i++) {
        show_log(b, b->revs[i], NULL);
        read_version(b, b->revs[i]);
    }
    show_diff(b, NULL, NULL, BRC_DIFF_ELEMENTS);
    show_diff(b, "HEAD~1", "HEAD", BRC_DIFF_ELEMENTS);
    show_diff(b, "HEAD", "HEAD~1", 0);
}

void battery_run(battery *out, const char *path, const brc_registry *reg)
{
    brc_error err = BRC_ERROR_INIT;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    battery_now b = { .out = out };
    memset(out, 0, sizeof(*out));
    opts.registry = reg;
    if (brc_open(&b.repo, path, &opts, &err) < 0)
        return;
    out->opened = 1;
    ask_fsck(&b);
    read_history(&b);
    change(&b);
    change_refs(&b);
    int well = out->findings == 0;
    if (well && out->broken[0] == '\0') {
        ask_fsck(&b);
        if (out->findings > 0)
            snprintf(out->broken, sizeof(out->broken), "changes made it damaged: %s", out->finding);
    }
    for (size_t i = 0; i < b.npaths; i++)
        free(b.paths[i]);
    brc_free(b.repo);
}
