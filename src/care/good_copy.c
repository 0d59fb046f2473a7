#include "good_copy.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/hash.h"
#include "../store/collect.h"

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
    int rc = brc_chain_decode(chain, scratch, bytes, &c->decoded, err);
    brc_scratch_free(scratch);
    return rc;
}

/* Reads the object and hashes it. */
static int copy_read(good_copy *c, brc_store *from, int kind, brc_error *err)
{
    brc_object *one = &c->object;
    const char *spec;
    BRC_TRY(brc_objects_find(from, &one, 1, err));
    if (!c->object.found || c->object.kind != kind)
        return brc_fail(err, BRC_ENOTFOUND, "there is no such object");
    BRC_TRY(brc_object_load(from, &c->object, &c->stored, err));
    BRC_TRY(brc_object_verify(&c->object, c->stored.data, err));
    BRC_TRY(brc_encoding_spec(from, c->object.encoding, &spec, err));
    if (spec != NULL)
        BRC_TRY(brc_dup(&c->spec, spec, err));
    BRC_TRY(copy_decode(c, from, err));
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

int brc_repair_copy(brc_store *store, brc_store *from, const brc_oid *id, int kind, int *copied,
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

int brc_repair_is_good(brc_store *store, const brc_oid *id, int kind, int *good, brc_error *err)
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

int brc_repair_derived(brc_store *store, brc_error *err)
{
    BRC_TRY(brc_store_begin(store, err));
    int rc = brc_derived_drop(store, err);
    if (rc == BRC_OK)
        rc = derive_commits(store, err);
    int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}
