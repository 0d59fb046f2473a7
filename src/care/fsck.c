/* Checks every object by itself, on the pool; a damaged object does not stop the others. */
#include "fsck.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../flow/read.h"
#include "../store/bases.h"
#include "../tree/map.h"
#include "../work/fold.h"
#include "../work/open_plan.h"
#include "../work/session.h"

/* ==== check objects ================================ */

#define PAGE 1024

typedef struct object_checker {
    breccia *repo;
    int64_t behind;
    int no_decode;
    brc_faults *faults;
    brc_oid after;  /* the last row that was listed */
    uint64_t checked;
    uint64_t unreachable; /* number of chunks in backends that this build lacks   */
    brc_error lacks;      /* the error of the first of them                       */
    brc_object rows[PAGE];
} object_checker;

static int no_child(void *ctx, const brc_oid *id, brc_error *err)
{
    (void)ctx;
    (void)id;
    (void)err;
    return BRC_OK;
}

static int no_item(void *ctx, brc_span key, brc_span value, brc_error *err)
{
    (void)ctx;
    (void)key;
    (void)value;
    (void)err;
    return BRC_OK;
}

/* Checks the canonical bytes of an object. */
static int check_content(const object_checker *c, const brc_object *o, const uint8_t *data,
                         brc_error *err)
{
    brc_store *store = c->repo->store;
    size_t len = (size_t)o->size;
    brc_oid id = brc_hash_object(brc_store_hash(store), o->kind, data, len);
    if (brc_oid_cmp(&id, &o->id) != 0)
        return brc_fail(err, BRC_ECORRUPT, "its content does not match its id");
    if (brc_hash_guard(brc_store_secret(store), data, len) != o->guard)
        return brc_fail(err, BRC_ECORRUPT, "its guard does not match its content");
    if (o->kind == BRC_KIND_NODE)
        return brc_map_check_node((brc_span){data, len}, brc_store_id_len(store), no_child, no_item,
                                  NULL, err);
    if (o->kind == BRC_KIND_COMMIT) {
        brc_commit *commit;
        BRC_TRY(brc_commit_parse(&commit, &o->id, (brc_span){ data, len }, brc_store_id_len(store),
                                 err));
        brc_commit_free(commit);
    }
    return BRC_OK;
}

/* item->number says how much is checked. */
enum { CHECK_STORED, CHECK_ALL };

/* Returns 1 if the object's bytes can be read. */
static int is_reachable(object_checker *c, const brc_object *o)
{
    brc_error why = BRC_ERROR_INIT;
    brc_store_backend *b;
    if (brc_is_in_file(o->backend) ||
        brc_backend_use(c->repo->store, o->backend, &b, &why) != BRC_EUNSUPPORTED)
        return 1;
    if (c->unreachable++ == 0)
        c->lacks = why;
    return 0;
}

/* Reports all chunks in missing backends in one line: as far as this build can tell, they are not
 * damaged. */
static int report_unreachable(const object_checker *c, brc_error *err)
{
    brc_oid none;
    brc_error found = BRC_ERROR_INIT;
    if (c->unreachable == 0)
        return BRC_OK;
    memset(&none, 0, sizeof(none));
    (void)brc_fail(&found, BRC_EUNSUPPORTED,
                   "the stored bytes of %" PRIu64 " chunks were not checked: %s", c->unreachable,
                   c->lacks.message);
    return brc_faults_add(c->faults, &none, 0, 0, found.message, NULL, err);
}

/* Lists the next rows of the index. Rows that contradict themselves are reported at once. */
static int checker_list(void *ctx, brc_read_item *items, size_t cap, size_t *n, brc_error *err)
{
    object_checker *c = ctx;
    size_t rows;
    BRC_TRY(brc_objects_page(c->repo->store, &c->after, c->rows, cap < PAGE ? cap : PAGE, &rows,
                             err));
    for (size_t i = 0; i < rows; i++) {
        c->after = c->rows[i].id;
        if (c->behind > 0 && (!brc_is_in_file(c->rows[i].backend) || c->rows[i].place <= c->behind))
            continue;
        c->checked++;
        if (c->rows[i].found && is_reachable(c, &c->rows[i]))
            items[(*n)++].object = c->rows[i];
        else if (!c->rows[i].found)
            BRC_TRY(brc_faults_add(c->faults, &c->rows[i].id, c->rows[i].kind, 0,
                                   "its row in the index contradicts itself", NULL, err));
    }
    return rows > 0 ? BRC_READ_MORE : BRC_OK;
}

static int checker_passed(void *ctx, const brc_read_item *item, brc_error *err)
{
    const object_checker *c = ctx;
    return brc_task_step(c->repo, item != NULL ? item->object.size : 0, err);
}

/* Opens an object. Objects of a build with more codecs than this one are checked as far as
 * possible. */
static int checker_open(void *ctx, brc_read_item *item, brc_error *err)
{
    const object_checker *c = ctx;
    const brc_object *o = &item->object;
    brc_error why = BRC_ERROR_INIT;
    BRC_TRY(brc_object_check_plain(c->repo->store, o, err));
    if (item->bases != NULL)
        BRC_TRY(brc_bases_check(c->repo->store, item->bases, err));
    item->number = CHECK_STORED;
    if (!c->no_decode || o->kind != BRC_KIND_CHUNK) {
        int rc = brc_encoding_chain(c->repo->store, o->encoding, &item->chain, &why);
        if (rc < 0 && rc != BRC_EUNSUPPORTED) {
            if (err != NULL)
                brc_error_copy(err, &why);
            return rc;
        }
        item->number = rc == BRC_OK ? CHECK_ALL : CHECK_STORED;
    }
    if (item->number == CHECK_STORED) {
        item->len = (size_t)o->stored;
        return BRC_OK;
    }
    uint64_t len = item->chain != NULL ? brc_chain_describe(item->chain)->decoded_len : o->stored;
    item->varies = len == BRC_LEN_VARIES; /* then no memory is reserved for the claimed length */
    if (len != o->size && !item->varies)
        return brc_fail(err, BRC_ECORRUPT, "its encoding does not decode to its length");
    return BRC_OK;
}

static int checker_place(void *ctx, brc_read_item *item, const uint8_t *data, brc_scratch *scratch,
                         brc_error *err)
{
    (void)scratch;
    if (item->number != CHECK_ALL)
        return BRC_OK;
    if (item->len != item->object.size)
        return brc_fail(err, BRC_ECORRUPT, "it does not decode to the length that its row gives");
    return check_content(ctx, &item->object, data, err);
}

static int checker_failed(void *ctx, const brc_read_item *item, int rc, const brc_error *why,
                          brc_error *err)
{
    const object_checker *c = ctx;
    if (rc == BRC_ESTALE) /* it was removed after it was listed, which is not a fault */
        return BRC_OK;
    brc_fault *fault;
    const int in_place = strcmp(why->source, BRC_BACKEND_SOURCE) == 0;
    const int missing = in_place && why->detail == BRC_ENOTFOUND;
    BRC_TRY(brc_faults_add(c->faults, &item->object.id, item->object.kind, missing, why->message,
                           &fault, err));
    fault->in_place = in_place;
    return BRC_OK;
}

int brc_check_objects(breccia *repo, int64_t after, int no_decode, brc_faults *faults,
                      uint64_t *checked, brc_error *err)
{
    void *p;
    brc_stats stats = BRC_STATS_INIT;
    *checked = 0;
    BRC_TRY(brc_store_totals(repo->store, &stats, err));
    BRC_TRY(brc_new(&p, sizeof(object_checker), err));
    object_checker *c = p;
    c->repo = repo;
    c->behind = after;
    c->no_decode = no_decode;
    c->faults = faults;
    brc_read_ops ops = {.ctx = c,
                        .list = checker_list,
                        .open = checker_open,
                        .place = checker_place,
                        .passed = checker_passed,
                        .failed = checker_failed};
    brc_task task = brc_task_begin(repo, "check", stats.logical_bytes);
    int rc = brc_flow_read(&repo->pipe, repo->store, &ops, err);
    brc_task_end(repo, &task, rc);
    if (rc == BRC_OK)
        rc = report_unreachable(c, err);
    *checked = c->checked;
    free(c);
    return rc;
}

/* ==== check history ================================ */

/*
 * Checks from the refs down: every ref, commit, row of the operation log and uncommitted change. A
 * reference to a missing object is a fault, and each fault records who uses the object.
 */

typedef struct history_check {
    brc_tree_check tree;
    brc_buf what; /* the version that is being checked */
} history_check;

/* ---- commits -------------------------------- */

/* Returns 1 if the commit is new; the zero id names none. */
static int commit_due(history_check *h, const brc_oid *id, brc_error *err)
{
    return brc_oid_is_zero(id) ? 0 : brc_closure_commit(h->tree.walk, id, err);
}

static int check_commit_info(history_check *h, const brc_commit *commit, brc_error *err)
{
    int same;
    BRC_TRY(brc_commit_info_check(h->tree.check.store, commit, &same, err));
    return same ? BRC_OK
                : brc_check_fault(&h->tree.check, &commit->id, BRC_KIND_COMMIT, "commit", "",
                                  "its derived row (commit_info) is missing or says "
                                  "something else",
                                  err);
}

static int use_commit(history_check *h, const char *from, const brc_oid *id, int *bad,
                      brc_error *err)
{
    char hex[65];
    h->tree.check.what = from;
    return brc_check_use(&h->tree.check, id, BRC_KIND_COMMIT, "commit", brc_oid_format(hex, id),
                         bad, err);
}

/* Checks a commit. A commit that cannot be read is a fault, and its history cannot be reached. */
static int step_commit(history_check *h, const char *from, const brc_oid *id, brc_error *err)
{
    int bad;
    BRC_TRY(brc_task_step(h->tree.check.repo, 0, err));
    BRC_TRY(use_commit(h, from, id, &bad, err));
    if (bad)
        brc_closure_skip(h->tree.walk);
    return BRC_OK;
}

static int step_version(history_check *h, const char *from, const brc_commit *commit,
                        brc_error *err)
{
    char hex[65];
    h->what.len = 0;
    BRC_TRY(brc_buf_printf(&h->what, err, "%s (%.8s)", from, brc_oid_format(hex, &commit->id)));
    h->tree.check.what = (const char *)h->what.data;
    return check_commit_info(h, commit, err);
}

/* Checks every commit that is due, with its contents. */
static int check_commits(history_check *h, const char *from, brc_error *err)
{
    brc_closure_step at;
    int rc;
    while ((rc = brc_tree_check_next(&h->tree, &at, err)) > 0) {
        rc = at.what == BRC_AT_COMMIT ? step_commit(h, from, &at.id, err)
                                      : step_version(h, from, at.commit, err);
        if (rc < 0)
            break;
    }
    if (rc < 0)
        brc_closure_drop(h->tree.walk); /* commits that are due are still checked */
    return rc;
}

/* ---- drafts -------------------------------- */

static int ref_fault(history_check *h, const char *name, const char *message, brc_error *err)
{
    brc_oid none;
    brc_fault *fault;
    memset(&none, 0, sizeof(none));
    BRC_TRY(brc_faults_add(h->tree.check.faults, &none, BRC_FAULT_REF, 0, message, &fault, err));
    return brc_fault_used_by(fault, name, err);
}

/* Turns an error into a fault if a command would fail with it; an error that stops fsck itself is
 * returned. */
static int as_fault(history_check *h, const char *name, int rc, const brc_error *found,
                    brc_error *err)
{
    if (rc == BRC_OK)
        return BRC_OK;
    if (rc != BRC_ENOMEM && rc != BRC_EIO && rc != BRC_EINTERRUPT && rc != BRC_EBUSY)
        return ref_fault(h, name, found->message, err);
    if (err != NULL)
        brc_error_copy(err, found);
    return rc;
}

static int check_draft_row(history_check *h, const brc_draft_node *row, brc_error *err)
{
    brc_entry entry;
    brc_draft_stack stack;
    int any;
    BRC_TRY(brc_path_is_normal(row->path, err));
    memset(&entry, 0, sizeof(entry));
    if (row->entry != NULL)
        BRC_TRY(brc_entry_decode(&entry, (brc_span){ row->entry, row->entry_len },
                                 brc_store_id_len(h->tree.check.store), err));
    BRC_TRY(brc_draft_stack_get(h->tree.check.store, row->node, &stack, err));
    BRC_TRY(brc_draft_chunk_any(h->tree.check.store, &stack, &any, err));
    if (any && entry.kind != BRC_ARRAY)
        return brc_fail(err, BRC_ECORRUPT, "%.200s has uncommitted chunks, but is not an array",
                        row->path);
    return entry.kind == 0
               ? BRC_OK
               : brc_tree_check_entry(&h->tree, row->path, &entry, row->node, err);
}

/* Checks the moves: each must be of a node that exists, from a node that the base has, and no two
 * may have the same node. */
static int check_moves(brc_session *s, brc_error *err)
{
    brc_store *store = s->repo->store;
    brc_move_set set = {0};
    brc_move *moves;
    brc_entry now, then;
    int64_t row;
    size_t n;
    BRC_TRY(brc_draft_move_list(store, s->draft.id, "/", &moves, &n, err));
    int rc = BRC_OK;
    for (size_t i = 0; i < n; i++) {
        BRC_GO(brc_session_find(s, moves[i].to, &now, &row, err));
        if (now.kind != 0 && *moves[i].from == '\0')
            continue;
        BRC_GO(brc_snapshot_find(store, &s->base, moves[i].from, &then, err));
        if (now.kind == 0 || then.kind == 0) {
            rc = brc_fail(err, BRC_ECORRUPT,
                          "the uncommitted move of %.200s is damaged: there is no such node, now "
                          "or in the commit before",
                          moves[i].to);
            goto done;
        }
        BRC_GO(brc_move_set_add(&set, moves[i].from, moves[i].to, err));
    }
    rc = brc_move_set_seal(&set, err);
done:
    brc_moves_free(moves, n);
    brc_move_set_dispose(&set);
    return rc;
}

/* Checks that the rows together make a version, as `status` and `commit` combine them. */
static int check_fold(history_check *h, const brc_draft_row *draft, brc_error *err)
{
    brc_session *s;
    brc_oid out;
    BRC_TRY(brc_session_of_draft(&s, h->tree.check.repo, draft->branch, draft->draft.id, err));
    brc_store_scratch_begin(h->tree.check.store);
    int rc = brc_session_fold(s, NULL, &out, err);
    brc_store_scratch_end(h->tree.check.store);
    if (rc == BRC_OK)
        rc = check_moves(s, err);
    brc_session_free(s);
    return rc;
}

static int check_plan_commits(brc_store *store, const brc_open_merge *merge, const brc_oid *ids,
                              size_t n, brc_error *err)
{
    brc_oid root;
    for (size_t i = 0; i < n; i++) {
        const int rc = brc_commit_root(store, &ids[i], &root, err);
        if (rc < 0) {
            brc_context(err, "the plan of draft %lld", (long long)merge->draft.id);
            return rc;
        }
    }
    return BRC_OK;
}

/* Checks the list of commits that a rebase has still to apply. */
static int check_plan_list(brc_store *store, const brc_open_merge *merge, brc_error *err)
{
    void *ids;
    size_t n;
    if (strcmp(brc_open_merge_op(merge), "rebase") != 0)
        return BRC_OK;
    if (brc_json_kind(brc_json_member(merge->plan, "todo")) != BRC_JSON_ARRAY)
        return brc_fail(err, BRC_ECORRUPT, "the plan of draft %lld does not list its commits",
                        (long long)merge->draft.id);
    BRC_TRY(brc_open_merge_ids(merge, "todo", &ids, &n, err));
    const int rc = check_plan_commits(store, merge, ids, n, err);
    free(ids);
    return rc;
}

/* Checks a plan: everything but a merge names the commit whose change is applied, and a rebase also
 * names its target. */
static int check_plan(brc_store *store, const brc_open_merge *merge, brc_error *err)
{
    static const char *const names[] = {"at", "onto", "base", "theirs"};
    const int is_rebase = strcmp(brc_open_merge_op(merge), "rebase") == 0;
    brc_oid id;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const int rc = brc_open_merge_id(merge, names[i], &id, err);
        if (rc < 0)
            return rc;
        if (rc == 0 && ((i == 0 && !merge->has_other) || (i == 1 && is_rebase)))
            return brc_fail(err, BRC_ECORRUPT, "the plan of draft %lld names no commit",
                            (long long)merge->draft.id);
        BRC_TRY(check_plan_commits(store, merge, &id, (size_t)rc, err));
    }
    return check_plan_list(store, merge, err);
}

/* Checks the entries that conflicts of an open merge keep; their places are checked with the
 * rows. */
static int check_conflicts(const history_check *h, const brc_draft_head *draft, brc_error *err)
{
    brc_store *store = h->tree.check.store;
    brc_open_merge merge;
    brc_entry entry;
    BRC_TRY(brc_open_merge_rows(&merge, store, draft, err));
    int rc = check_plan(store, &merge, err);
    for (size_t i = 0; i < merge.conflicts.n && rc == BRC_OK; i++) {
        const brc_clash *clash = &merge.conflicts.items[i];
        const brc_buf *sides[] = {&clash->base, &clash->ours, &clash->theirs};
        for (size_t k = 0; *clash->member == '\0' && k < 3 && rc == BRC_OK; k++)
            if (sides[k]->len > 0)
                rc = brc_entry_decode(&entry, (brc_span){sides[k]->data, sides[k]->len},
                                      brc_store_id_len(store), err);
        if (rc < 0)
            brc_context(err, "a conflict at %.200s", clash->path);
    }
    brc_open_merge_dispose(&merge);
    return rc;
}

/* Checks the rows of nodes that a savepoint keeps, which are not a version by themselves. */
static int check_save(history_check *h, int64_t save, brc_error *err)
{
    brc_draft_node *rows;
    size_t n;
    brc_error found = BRC_ERROR_INIT;
    BRC_TRY(brc_draft_node_list(h->tree.check.store, save, "/", 1, &rows, &n, err));
    int rc = BRC_OK;
    for (size_t i = 0; i < n && rc == BRC_OK; i++) {
        const int row = check_draft_row(h, &rows[i], &found);
        rc = as_fault(h, h->tree.check.what, row, &found, err);
    }
    brc_draft_nodes_free(rows, n);
    return rc;
}

static int check_saves(history_check *h, int64_t draft, brc_error *err)
{
    brc_draft_row *saves;
    size_t n;
    brc_error found = BRC_ERROR_INIT;
    int rc = brc_draft_list(h->tree.check.store, BRC_DRAFTS_SAVES, draft, &saves, &n, &found);
    if (rc < 0)
        return as_fault(h, h->tree.check.what, rc, &found, err);
    for (size_t i = 0; i < n && rc == BRC_OK; i++)
        rc = check_save(h, saves[i].draft.id, err);
    brc_draft_rows_free(saves, n);
    return rc;
}

static int check_draft_rows(history_check *h, const brc_draft_row *draft, brc_error *err)
{
    int rc;
    brc_oid root;
    brc_draft_node *rows = NULL;
    size_t n = 0;
    brc_error found = BRC_ERROR_INIT;
    if (draft->draft.has_base) { /* the commit is checked where a ref reaches it */
        rc = brc_commit_root(h->tree.check.store, &draft->draft.base, &root, &found);
        BRC_TRY(as_fault(h, h->tree.check.what, rc, &found, err));
        if (rc == BRC_OK && !brc_oid_is_zero(&root))
            BRC_TRY(brc_tree_check_snapshot(&h->tree, &root, err));
    }
    BRC_GO(brc_draft_node_list(h->tree.check.store, draft->draft.id, "/", 1, &rows, &n, err));
    for (size_t i = 0; i < n; i++) {
        rc = check_draft_row(h, &rows[i], &found);
        BRC_GO(as_fault(h, h->tree.check.what, rc, &found, err));
    }
    if (brc_draft_row_is_merge(draft)) {
        rc = check_conflicts(h, &draft->draft, &found);
        BRC_GO(as_fault(h, h->tree.check.what, rc, &found, err));
    }
    BRC_GO(check_saves(h, draft->draft.id, err));
    rc = as_fault(h, h->tree.check.what, check_fold(h, draft, &found), &found, err);
done:
    brc_draft_nodes_free(rows, n);
    return rc;
}

static int check_draft(history_check *h, const brc_draft_row *draft, brc_error *err)
{
    brc_buf what = BRC_BUF_INIT;
    int rc;
    BRC_GO(draft->draft.kind == BRC_DRAFT_SHARED
               ? brc_buf_printf(&what, err, "%s (uncommitted)", draft->branch)
               : brc_buf_printf(&what, err, "%s (uncommitted, draft %lld)", draft->branch,
                                (long long)draft->draft.id));
    h->tree.check.what = (const char *)what.data;
    rc = check_draft_rows(h, draft, err);
done:
    brc_buf_dispose(&what);
    return rc;
}

/* Checks a draft as it is now, in one state; others may have dropped or committed it since it was
 * listed. */
static int check_draft_now(history_check *h, brc_draft_row *row, brc_error *err)
{
    brc_store *store = h->tree.check.store;
    brc_draft_head now;
    brc_store_pause_read(store);
    brc_store_hold_read(store, 1);
    int rc = brc_draft_get(store, row->draft.id, &now, err);
    if (rc == BRC_OK && now.id != 0) {
        row->draft = now;
        rc = check_draft(h, row, err);
    }
    brc_store_hold_read(store, 0);
    return rc;
}

static int check_drafts(history_check *h, brc_error *err)
{
    brc_draft_row *rows;
    size_t n;
    brc_error found = BRC_ERROR_INIT;
    int rc = brc_draft_list(h->tree.check.store, BRC_DRAFTS_ALL, 0, &rows, &n, &found);
    if (rc < 0)
        return as_fault(h, "the uncommitted changes", rc, &found, err);
    for (size_t i = 0; i < n && rc == BRC_OK; i++)
        rc = check_draft_now(h, &rows[i], err);
    brc_draft_rows_free(rows, n);
    return rc;
}

/* ---- refs -------------------------------- */

static int check_ref(history_check *h, const brc_ref_row *row, brc_error *err)
{
    brc_error found = BRC_ERROR_INIT;
    int is_branch = strncmp(row->name, "heads/", 6) == 0;
    int is_tag = strncmp(row->name, "tags/", 5) == 0;
    const char *slash = strchr(row->name, '/'), *name = slash != NULL ? slash + 1 : row->name;
    if (!is_branch && !is_tag)
        BRC_TRY(ref_fault(h, row->name, "it is neither a branch nor a tag", err));
    else
        BRC_TRY(as_fault(h, row->name, brc_ref_name_check(name, &found), &found, err));
    if (!brc_utf8_valid(row->message, strlen(row->message)))
        BRC_TRY(ref_fault(h, row->name, "its message is not valid UTF-8", err));
    if (row->has_target) {
        int bad, is_new = commit_due(h, &row->target, err);
        BRC_TRY(is_new);
        if (!is_new && brc_faults_find(h->tree.check.faults, &row->target) != NULL)
            BRC_TRY(use_commit(h, name, &row->target, &bad, err)); /* so that it is reported too */
        BRC_TRY(check_commits(h, name, err));
    }
    return BRC_OK;
}

static int check_head(history_check *h, const brc_ref_row *rows, size_t n, brc_error *err)
{
    const char *head;
    brc_error found = BRC_ERROR_INIT;
    int rc = brc_head_get(h->tree.check.store, &head, &found);
    if (rc < 0)
        return as_fault(h, "HEAD", rc, &found, err);
    for (size_t i = 0; i < n; i++)
        if (strncmp(rows[i].name, "heads/", 6) == 0 && strcmp(rows[i].name + 6, head) == 0)
            return BRC_OK;
    return ref_fault(h, head, "it is the current branch, but there is no such branch", err);
}

static int check_refs(history_check *h, brc_error *err)
{
    brc_ref_row *rows;
    size_t n;
    BRC_TRY(brc_ref_list(h->tree.check.store, "", &rows, &n, err));
    int rc = check_head(h, rows, n, err);
    for (size_t i = 0; i < n && rc == BRC_OK; i++)
        rc = check_ref(h, &rows[i], err);
    brc_ref_rows_free(rows, n);
    return rc;
}

/* ---- the whole -------------------------------- */

static int due_id(void *ctx, const brc_oid *id, brc_error *err)
{
    int rc = commit_due(ctx, id, err);
    return rc < 0 ? rc : BRC_OK;
}

/* Adds a commit that the log names. It may have been collected or have expired, which is not
 * damage. */
static int due_if_there(void *ctx, const brc_oid *id, brc_error *err)
{
    const history_check *h = ctx;
    brc_object o = {.id = *id}, *one = &o;
    if (brc_oid_is_zero(id) || brc_objects_find(h->tree.check.store, &one, 1, NULL) < 0 ||
        o.found)
        return due_id(ctx, id, err);
    return BRC_OK;
}

/* Checks commits that BRANCH@{TIME} or their own ids name, but that refs may not reach now. */
static int check_others(history_check *h, brc_error *err)
{
    BRC_TRY(brc_store_each_id(h->tree.check.store, BRC_IDS_IN_OPLOG, due_if_there, h, err));
    BRC_TRY(check_commits(h, "the operation log", err));
    BRC_TRY(brc_store_each_id(h->tree.check.store, BRC_IDS_OF_COMMITS, due_id, h, err));
    return check_commits(h, "no ref", err);
}

static int check_encoding(void *ctx, int64_t encoding, brc_error *err)
{
    history_check *h = ctx;
    const brc_chain *chain;
    brc_error found = BRC_ERROR_INIT;
    int rc = brc_encoding_chain(h->tree.check.store, encoding, &chain, &found);
    if (rc == BRC_ECORRUPT || rc == BRC_ELIMIT)
        return brc_faults_add_file(h->tree.check.faults, found.message, err);
    if (rc < 0 && rc != BRC_EUNSUPPORTED && err != NULL)
        brc_error_copy(err, &found);
    return rc == BRC_EUNSUPPORTED ? BRC_OK : rc;
}

/* Checks everything that refs, the operation log and drafts reach, and every commit: adds missing
 * objects, and records who uses which object. */
static int check_history(breccia *repo, int no_decode, brc_faults *faults, brc_error *err)
{
    history_check h = { .what = BRC_BUF_INIT };
    brc_error found = BRC_ERROR_INIT;
    int rc;
    BRC_GO(brc_tree_check_new(&h.tree, repo, no_decode, faults, err));
    BRC_GO(brc_store_each_encoding(repo->store, check_encoding, &h, err));
    rc = check_refs(&h, &found);
    BRC_GO(as_fault(&h, "refs", rc, &found, err)); /* the list of refs itself may be damaged */
    BRC_GO(check_drafts(&h, err));
    rc = check_others(&h, err);
done:
    brc_tree_check_dispose(&h.tree);
    brc_buf_dispose(&h.what);
    return rc;
}

/* ==== brc_fsck ================================ */

/* Checks the whole file and reports the faults. */

typedef struct fsck_report {
    int (*found)(void *ctx, const brc_damage *damage);
    void *ctx;
    int (*stands)(void *ctx, const brc_standing *one); /* NULL: the caller does not want it */
} fsck_report;

static int tell(const fsck_report *report, const brc_damage *damage, brc_error *err)
{
    if (report->found != NULL && report->found(report->ctx, damage) != 0)
        return brc_fail(err, BRC_EINTERRUPT, "stopped on request");
    return BRC_OK;
}

/* The number of bytes of lines that are held back while the file is locked. */
#define HELD_BYTES ((size_t)1 << 20)

typedef struct held_lines {
    const fsck_report *report;
    brc_buf text; /* each line ends with a NUL */
    int rc;       /* the reason why no further line is taken */
} held_lines;

static int tell_held(held_lines *held, brc_error *err)
{
    int rc = BRC_OK;
    const char *at = (const char *)held->text.data;
    for (size_t left = held->text.len; left > 0 && rc == BRC_OK;) {
        const brc_damage damage = {.kind = "index", .message = at};
        const size_t len = strlen(at) + 1;
        rc = tell(held->report, &damage, err);
        at += len;
        left -= len;
    }
    held->text.len = 0;
    return rc;
}

static int hold_line(void *ctx, const char *line)
{
    held_lines *held = ctx;
    if (held->text.len > HELD_BYTES)
        held->rc = tell_held(held, NULL);
    if (held->rc == BRC_OK)
        held->rc = brc_buf_append(&held->text, line, strlen(line) + 1, NULL);
    return held->rc < 0;
}

typedef int (*line_check_fn)(brc_store *store, int (*found)(void *ctx, const char *line), void *ctx,
                             brc_error *err);

static int check_lines(breccia *repo, line_check_fn check, const fsck_report *report,
                       brc_error *err)
{
    held_lines held = {.report = report, .text = BRC_BUF_INIT};
    int rc = check(repo->store, hold_line, &held, err);
    brc_store_pause_read(repo->store);
    if (held.rc == BRC_ENOMEM)
        rc = brc_nomem(err);
    const int told = tell_held(&held, rc == BRC_OK ? err : NULL);
    brc_buf_dispose(&held.text);
    return rc < 0 ? rc : told;
}

static const char *fault_kind(int kind)
{
    static const char *const kinds[] = {"index",  "chunk", "document", "node",
                                        "commit", "loose", "ref"};
    return kind >= 0 && kind < (int)(sizeof(kinds) / sizeof(kinds[0])) ? kinds[kind] : kinds[0];
}

static int tell_faults(const fsck_report *report, const brc_faults *faults, brc_error *err)
{
    for (size_t i = 0; i < faults->n; i++) {
        const brc_fault *f = &((const brc_fault *)faults->items)[i];
        const uint32_t flags = (f->missing ? BRC_DAMAGE_MISSING : 0) |
                               (f->in_place ? BRC_DAMAGE_PLACE : 0);
        brc_damage damage = {f->id, fault_kind(f->kind), flags,
                             (const char *const *)f->used_by, f->nused_by, f->message};
        BRC_TRY(tell(report, &damage, err));
    }
    return BRC_OK;
}

/* Ends a step. A step that damage has stopped is a finding too. */
static int end_step(int rc, brc_faults *faults, const brc_error *found, brc_error *err)
{
    if (rc == BRC_ECORRUPT)
        return brc_faults_add_file(faults, found->message, err);
    if (rc < 0 && err != NULL)
        brc_error_copy(err, found);
    return rc;
}

static int run_steps(breccia *repo, int no_decode, fsck_report *report, brc_faults *faults,
                     uint64_t *checked, brc_error *err)
{
    brc_error found = BRC_ERROR_INIT;
    int rc = check_lines(repo, brc_store_check_file, report, &found);
    BRC_TRY(end_step(rc, faults, &found, err));
    rc = check_lines(repo, brc_store_check_rows, report, &found);
    BRC_TRY(end_step(rc, faults, &found, err));
    rc = brc_check_objects(repo, 0, no_decode, faults, checked, &found);
    BRC_TRY(end_step(rc, faults, &found, err));
    rc = check_history(repo, no_decode, faults, &found);
    return end_step(rc, faults, &found, err);
}

static int tell_standing(breccia *repo, const fsck_report *report, const brc_faults *faults,
                         brc_error *err)
{
    BRC_TRY(brc_store_begin_read(repo->store, err));
    int rc = brc_standing_tell(repo->store, faults, report->stands, report->ctx, err);
    brc_store_end_read(repo->store);
    return rc;
}

static int check_repo(breccia *repo, uint32_t flags, const fsck_report *report, uint64_t *checked,
                      brc_error *err)
{
    brc_faults faults = BRC_FAULTS_INIT;
    fsck_report told = *report;
    brc_stats stats = BRC_STATS_INIT;
    BRC_TRY(brc_store_begin_read(repo->store, err));
    if (brc_store_totals(repo->store, &stats, NULL) < 0)
        stats.logical_bytes = 0; /* progress then has no total */
    brc_task task = brc_task_begin(repo, "check", stats.logical_bytes);
    int rc = run_steps(repo, (flags & BRC_FSCK_NO_DECODE) != 0, &told, &faults, checked, err);
    brc_store_end_read(repo->store);
    brc_task_end(repo, &task, rc);
    if (rc == BRC_OK)
        rc = tell_faults(report, &faults, err);
    if (rc == BRC_OK && report->stands != NULL && faults.n > 0)
        rc = tell_standing(repo, report, &faults, err);
    brc_faults_dispose(&faults);
    return rc;
}

int brc_fsck(breccia *repo, uint32_t flags, int (*found)(void *ctx, const brc_damage *damage),
             int (*stands)(void *ctx, const brc_standing *one), void *ctx, uint64_t *checked,
             brc_error *err)
{
    fsck_report report = {found, ctx, stands};
    uint64_t n = 0;
    brc_store_checking(repo->store, 1);
    brc_store_walk_begin(repo->store);
    int rc = check_repo(repo, flags, &report, &n, err);
    brc_store_walk_end(repo->store);
    brc_store_checking(repo->store, 0);
    if (checked != NULL)
        *checked = n;
    return rc;
}
