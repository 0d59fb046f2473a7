/*
 * Repairs a file: takes good copies of damaged objects from another file, and rebuilds derived
 * rows, and those that say which object is a difference from which.
 *
 * An object's id is the hash of its bytes, whatever their encoding, so an object with the same id
 * there is the one that was lost here. Every copy is hashed before it is trusted.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/hash.h"
#include "../base/sized.h"
#include "../history/commit.h"
#include "../store/collect.h"
#include "../store/bases.h"
#include "../store/delta_rebuild.h"
#include "../store/removed.h"
#include "../work/session.h"
#include "fsck.h"

/* ---- good copies -------------------------------- */

typedef struct good_copy {
    brc_object object; /* the object in `from`              */
    brc_buf stored;    /* its stored bytes                  */
    char *spec;        /* their encoding; NULL: none        */
    brc_buf decoded;   /* canonical bytes, if it has an encoding */
} good_copy;

static int copy_decode(good_copy *c, brc_store *from, brc_error *err)
{
    const brc_chain *chain;
    brc_scratch *scratch;
    const brc_span bytes = {c->stored.data, c->stored.len};
    BRC_TRY(brc_encoding_chain(from, c->object.encoding, &chain, err));
    if (chain == NULL)
        return brc_buf_append(&c->decoded, bytes.data, bytes.len, err);
    BRC_TRY(brc_scratch_new(&scratch, err));
    int rc = brc_chain_decode(chain, scratch, bytes, NULL, &c->decoded, err);
    brc_scratch_free(scratch);
    return rc;
}

/* Reads an object that is stored as a difference: the copy is stored whole and unencoded. */
static int copy_decode_delta(good_copy *c, brc_store *from, brc_error *err)
{
    brc_bases *bases;
    brc_scratch *scratch = NULL;
    BRC_TRY(brc_bases_load(from, &c->object, NULL, &bases, err));
    int rc = brc_scratch_new(&scratch, err);
    if (rc == BRC_OK)
        rc = brc_bases_decode(bases, scratch, &c->decoded, err);
    if (rc == BRC_OK)
        rc = brc_buf_append(&c->stored, c->decoded.data, c->decoded.len, err);
    brc_scratch_free(scratch);
    brc_bases_free(bases);
    return rc;
}

static int copy_load(good_copy *c, brc_store *from, brc_error *err)
{
    const char *spec;
    if (brc_object_is_delta(&c->object))
        return copy_decode_delta(c, from, err);
    BRC_TRY(brc_object_load(from, &c->object, &c->stored, err));
    BRC_TRY(brc_object_verify(&c->object, c->stored.data, err));
    BRC_TRY(brc_encoding_spec(from, c->object.encoding, &spec, err));
    if (spec != NULL)
        BRC_TRY(brc_dup(&c->spec, spec, err));
    return copy_decode(c, from, err);
}

/* Reads the object and hashes it. */
static int copy_read(good_copy *c, brc_store *from, int kind, brc_error *err)
{
    brc_object *one = &c->object;
    BRC_TRY(brc_objects_find(from, &one, 1, err));
    if (!c->object.found || c->object.kind != kind)
        return brc_fail(err, BRC_ENOTFOUND, "there is no such object");
    BRC_TRY(copy_load(c, from, err));
    const brc_oid id = brc_hash_object(brc_store_hash(from), kind, c->decoded.data,
                                       c->decoded.len);
    return brc_oid_cmp(&id, &c->object.id) == 0
               ? BRC_OK
               : brc_fail(err, BRC_ECORRUPT, "its content does not match its id");
}

static int copy_put(const good_copy *c, brc_store *store, brc_error *err)
{
    brc_object fresh = {.id = c->object.id, .kind = c->object.kind, .size = c->decoded.len,
                        .stored = c->stored.len};
    brc_store_backend *inside;
    brc_stored at, *one = &at;
    if (c->spec != NULL)
        BRC_TRY(brc_encoding_intern(store, c->spec, &fresh.encoding, err));
    BRC_TRY(brc_encoding_digest(store, fresh.encoding, &fresh.digest, err));
    fresh.checksum = brc_hash_stored(&fresh.id, fresh.digest, c->stored.data, c->stored.len);
    fresh.guard = brc_hash_guard(brc_store_secret(store), c->decoded.data, c->decoded.len);
    BRC_TRY(brc_object_drop(store, &fresh.id, err));
    BRC_TRY(brc_backend_use(store, 0, &inside, err));
    brc_object_ask(&fresh, &at);
    at.data = c->stored.data;
    BRC_TRY(brc_backend_put(inside, 1, &one, err));
    int rc = brc_object_record(store, &fresh, &at, err);
    brc_stored_clear(&at);
    return rc;
}

/* Replaces an object by the one that `from` has under this id, in a transaction of its own. *copied
 * is 0 if `from` has none of this kind, or a damaged one. */
static int repair_copy(brc_store *store, brc_store *from, const brc_oid *id, int kind, int *copied,
                    brc_error *err)
{
    good_copy c = {.object = {.id = *id}, .stored = BRC_BUF_INIT, .decoded = BRC_BUF_INIT};
    brc_error why = BRC_ERROR_INIT;
    *copied = 0;
    BRC_TRY(brc_store_begin_read(from, err));
    int rc = brc_store_hash(store) == brc_store_hash(from) ? copy_read(&c, from, kind, &why)
                                                            : BRC_ENOTFOUND;
    brc_store_end_read(from);
    if (rc == BRC_OK)
        rc = brc_store_begin(store, &why);
    if (rc == BRC_OK) {
        rc = copy_put(&c, store, &why);
        int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? &why : NULL);
        rc = rc < 0 ? rc : end;
        *copied = rc == BRC_OK;
    } else if (rc == BRC_ENOTFOUND || rc == BRC_ECORRUPT || rc == BRC_ESTALE ||
               rc == BRC_EUNSUPPORTED) {
        rc = BRC_OK; /* the copy is of no use */
    }
    if (rc < 0 && err != NULL)
        brc_error_copy(err, &why);
    free(c.spec);
    brc_buf_dispose(&c.stored);
    brc_buf_dispose(&c.decoded);
    return rc;
}

/* Checks whether the object can be read and matches its id. An object that only another build could
 * read counts as good. */
static int repair_is_good(brc_store *store, const brc_oid *id, int kind, int *good, brc_error *err)
{
    good_copy c = {.object = {.id = *id}, .stored = BRC_BUF_INIT, .decoded = BRC_BUF_INIT};
    brc_error why = BRC_ERROR_INIT;
    BRC_TRY(brc_store_begin_read(store, err));
    int rc = copy_read(&c, store, kind, &why);
    brc_store_end_read(store);
    *good = rc == BRC_OK || rc == BRC_EUNSUPPORTED;
    if (*good || rc == BRC_ENOTFOUND || rc == BRC_ECORRUPT || rc == BRC_ESTALE)
        rc = BRC_OK;
    if (rc < 0 && err != NULL)
        brc_error_copy(err, &why);
    free(c.spec);
    brc_buf_dispose(&c.stored);
    brc_buf_dispose(&c.decoded);
    return rc;
}

/* ---- derived rows -------------------------------- */

typedef struct commit_list {
    brc_store *store;
    void *ids; /* brc_oid[] */
    size_t n, cap;
    brc_id_table done;
} commit_list;

static int commit_push(void *ctx, const brc_oid *id, brc_error *err)
{
    commit_list *list = ctx;
    BRC_TRY(brc_grow_array(&list->ids, &list->cap, list->n + 1, sizeof(brc_oid), err));
    ((brc_oid *)list->ids)[list->n++] = *id;
    return BRC_OK;
}

/* Puts a commit's row if the rows of its parents exist; otherwise the parents come first. In a
 * circle, which only damage can make, one commit gets its row before its parents do. */
static int commit_row(commit_list *list, const brc_oid *id, brc_error *err)
{
    brc_commit *commit;
    void *value;
    brc_error why = BRC_ERROR_INIT;
    BRC_TRY(brc_id_table_add(&list->done, id, &value, err));
    uint8_t *state = value; /* 0 new, 1 waiting, 2 done */
    if (*state == 2) {
        list->n--;
        return BRC_OK;
    }
    const int waited = *state == 1;
    *state = waited ? 2 : 1;
    int rc = brc_commit_get(&commit, list->store, id, &why);
    if (rc < 0 || waited) {
        list->n--;
        if (rc == BRC_OK)
            rc = brc_commit_info_put(list->store, commit, err);
        else
            rc = rc == BRC_ENOMEM ? brc_nomem(err) : BRC_OK; /* fsck has reported it */
    }
    for (size_t i = 0; commit != NULL && !waited && i < commit->nparents && rc == BRC_OK; i++)
        if (brc_id_table_find(&list->done, &commit->parents[i]) == NULL)
            rc = commit_push(list, &commit->parents[i], err);
    brc_commit_free(commit);
    return rc;
}

static int derive_commits(brc_store *store, brc_error *err)
{
    commit_list all = {.store = store}, due = {.store = store, .done = BRC_ID_TABLE_INIT(1)};
    int rc = brc_store_each_id(store, BRC_IDS_OF_COMMITS, commit_push, &all, err);
    for (size_t i = 0; i < all.n && rc == BRC_OK; i++) {
        rc = commit_push(&due, (const brc_oid *)all.ids + i, err);
        while (due.n > 0 && rc == BRC_OK) {
            const brc_oid id = ((const brc_oid *)due.ids)[due.n - 1];
            rc = commit_row(&due, &id, err);
        }
    }
    free(all.ids);
    free(due.ids);
    brc_id_table_dispose(&due.done);
    return rc;
}

/* Drops all derived rows and rebuilds those of commits; the others are rebuilt when they are
 * needed. Rows of expired pasts whose commit does not exist are dropped too. One transaction. */
static int repair_derived(brc_store *store, brc_error *err)
{
    BRC_TRY(brc_store_begin(store, err));
    int rc = brc_derived_drop(store, err);
    if (rc == BRC_OK)
        rc = derive_commits(store, err);
    int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

/* ---- removed bytes -------------------------------- */

/* Makes the table of removed bytes anew. It stays as it is if the objects or blobs that it is made
 * from cannot be read. */
static int repair_removed(brc_store *store, brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    BRC_TRY(brc_store_begin(store, err));
    int rc = brc_removed_rebuild(store, &why);
    const int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? &why : NULL);
    rc = rc < 0 ? rc : end;
    if (rc < 0 && rc != BRC_ECORRUPT && err != NULL)
        brc_error_copy(err, &why);
    return rc == BRC_ECORRUPT ? BRC_OK : rc;
}

/* ---- what fsck finds -------------------------------- */

typedef struct lost_object {
    brc_oid id;
    int kind, missing;
} lost_object;

typedef struct lost_list {
    void *items; /* lost_object[] */
    size_t n, cap;
    int failed;
    int has_any;  /* anything is damaged                         */
    int has_rows; /* rows are damaged, or do not belong together */
} lost_list;

/* Returns the kind of an object from its name in brc_damage. */
static int kind_of_text(const char *text)
{
    static const char *const kinds[] = {"chunk", "document", "node", "commit", "loose"};
    for (int i = 0; i < BRC_KIND_MAX; i++)
        if (strcmp(text, kinds[i]) == 0)
            return i + 1;
    return 0;
}

static int note_lost(void *ctx, const brc_damage *damage)
{
    lost_list *list = ctx;
    const int kind = kind_of_text(damage->kind);
    list->has_any = 1;
    list->has_rows |= strcmp(damage->kind, "index") == 0;
    if (kind == 0 || brc_oid_is_zero(&damage->id))
        return 0;
    if (brc_grow_array(&list->items, &list->cap, list->n + 1, sizeof(lost_object), NULL) < 0) {
        list->failed = 1;
        return 1;
    }
    ((lost_object *)list->items)[list->n++] =
        (lost_object){damage->id, kind, (damage->flags & BRC_DAMAGE_MISSING) != 0};
    return 0;
}

static int find_lost(breccia *repo, lost_list *list, brc_error *err)
{
    list->n = 0;
    list->has_any = list->has_rows = 0;
    int rc = brc_fsck(repo, 0, note_lost, NULL, list, NULL, err);
    return list->failed ? brc_nomem(err) : rc;
}

/* Replaces lost objects. A node or commit that is restored may lead to more missing objects, so
 * this repeats as long as something was found. */
static int replace_lost(breccia *repo, breccia *from, lost_list *list, brc_repair_report *report,
                        brc_error *err)
{
    uint64_t before;
    do {
        before = report->replaced;
        for (size_t i = 0; from != NULL && i < list->n; i++) {
            const lost_object *lost = (const lost_object *)list->items + i;
            int good, copied;
            BRC_TRY(repair_is_good(repo->store, &lost->id, lost->kind, &good, err));
            if (good)
                continue;
            BRC_TRY(repair_copy(repo->store, from->store, &lost->id, lost->kind, &copied, err));
            report->replaced += copied != 0;
        }
        BRC_TRY(repair_derived(repo->store, err));
        BRC_TRY(find_lost(repo, list, err));
    } while (report->replaced > before && list->n > 0);
    return BRC_OK;
}

/* Removes objects from the list that are good now: an object may be named only because of its
 * users, or because of an earlier finding. */
static int still_lost(breccia *repo, lost_list *list, brc_error *err)
{
    size_t n = 0;
    lost_object *items = list->items;
    for (size_t i = 0; i < list->n; i++) {
        int good = 1;
        if (!items[i].missing)
            BRC_TRY(repair_is_good(repo->store, &items[i].id, items[i].kind, &good, err));
        if (!good)
            items[n++] = items[i];
    }
    list->n = n;
    return BRC_OK;
}

static int drop_lost(breccia *repo, const lost_list *list, brc_repair_report *report,
                     brc_error *err)
{
    BRC_TRY(brc_store_begin(repo->store, err));
    int rc = BRC_OK;
    uint64_t n = 0;
    for (size_t i = 0; i < list->n && rc == BRC_OK; i++) {
        rc = brc_object_drop(repo->store, &((const lost_object *)list->items)[i].id, err);
        n++;
    }
    int end = brc_store_end(repo->store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    rc = rc < 0 ? rc : end;
    report->dropped = rc == BRC_OK ? n : 0;
    return rc;
}

static int repair_work(breccia *repo, breccia *from, uint32_t flags, lost_list *list,
                       brc_repair_report *report, brc_error *err)
{
    BRC_TRY(find_lost(repo, list, err));
    if (list->has_rows)
        BRC_TRY(repair_removed(repo->store, err));
    if (list->has_any) /* a chunk is reported if the table says something else than its bytes */
        BRC_TRY(brc_deltas_rebuild(repo->store, err));
    BRC_TRY(replace_lost(repo, from, list, report, err));
    if (flags & BRC_REPAIR_DROP) {
        BRC_TRY(still_lost(repo, list, err));
        if (list->n > 0) {
            BRC_TRY(drop_lost(repo, list, report, err));
            BRC_TRY(repair_derived(repo->store, err));
        }
        BRC_TRY(find_lost(repo, list, err));
    }
    for (size_t i = 0; i < list->n; i++)
        *(((const lost_object *)list->items)[i].missing ? &report->missing : &report->damaged) += 1;
    return BRC_OK;
}

int brc_repair(brc_repair_report *out, breccia *repo, breccia *from, uint32_t flags, brc_error *err)
{
    brc_repair_report report = BRC_REPAIR_REPORT_INIT;
    lost_list list = {0};
    BRC_TRY(brc_flags_check(flags, BRC_REPAIR_DROP, "brc_repair()", err));
    BRC_TRY(brc_store_writable(repo->store, err));
    if (brc_store_in_write(repo->store) || brc_store_in_bulk(repo->store))
        return brc_fail(err, BRC_EMISUSE, "nothing can be repaired within a transaction");
    int rc = repair_work(repo, from, flags, &list, &report, err);
    free(list.items);
    if (rc == BRC_OK && out != NULL)
        rc = brc_sized_out(out, &report, sizeof(report), sizeof(report), "brc_repair_report", err);
    return rc;
}
