#include "bases.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/hash.h"
#include "backend.h"
#include "db.h"

/* ==== reading ================================ */

/* Times that an object is looked up again whose base is gone: others may store it again meanwhile.
 * */
enum { BASES_TRIES = 8 };

static const brc_object *base_at(const brc_bases *b, size_t i)
{
    return (const brc_object *)b->objects + i;
}

/* Puts the names of both objects before an error of one that the first builds on. */
static int name_base(const brc_object *object, const brc_oid *base, int rc, brc_error *err)
{
    char hex[65], on[65];
    if (rc == BRC_ECORRUPT || rc == BRC_EUNSUPPORTED)
        brc_context(err, "object %s is a difference from object %s",
                    brc_oid_format(hex, &object->id), brc_oid_format(on, base));
    return rc;
}

static int too_deep(const brc_object *object, brc_error *err)
{
    char hex[65];
    return brc_fail(err, BRC_ECORRUPT,
                    "object %s is damaged: it is more than %d differences away from one that is "
                    "stored whole; run 'breccia fsck'",
                    brc_oid_format(hex, &object->id), BRC_DELTA_DEPTH_MOST);
}

/* Adds an object, which is looked up again if it has moved. */
static int add_base(brc_store *store, brc_bases *b, const brc_ahead *ahead, brc_object *o,
                    brc_buf *bytes, brc_error *err)
{
    const uint8_t *here = brc_ahead_find(ahead, o);
    bytes->len = 0;
    if (here != NULL)
        BRC_TRY(brc_buf_append(bytes, here, (size_t)o->stored, err));
    else
        BRC_TRY(brc_object_load(store, o, bytes, err));
    BRC_TRY(brc_object_verify(o, bytes->data, err));
    BRC_TRY(brc_buf_append(&b->stored, bytes->data, bytes->len, err));
    BRC_TRY(brc_grow_array(&b->objects, &b->cap, b->n + 1, sizeof(brc_object), err));
    ((brc_object *)b->objects)[b->n++] = *o;
    return BRC_OK;
}

/* Goes from the last object to its base. Returns 1 if there is no such object. */
static int next_base(brc_store *store, const brc_bases *b, brc_span stored, brc_object *o,
                     brc_error *err)
{
    brc_object base = {.kind = 0}, *one = &base;
    char hex[65];
    if (stored.len <= b->id_len)
        return brc_fail(err, BRC_ECORRUPT,
                        "object %s is damaged: its stored bytes are too few for a difference",
                        brc_oid_format(hex, &base_at(b, b->n - 1)->id));
    memcpy(base.id.bytes, stored.data, b->id_len);
    if (b->n > BRC_DELTA_DEPTH_MOST)
        return too_deep(base_at(b, 0), err);
    *o = base;
    const int rc = brc_objects_find(store, &one, 1, err);
    *o = base;
    return rc < 0 ? rc : !base.found || base.kind != BRC_KIND_CHUNK;
}

/* Returns 1 if there is no object `o`, which the one before builds on. */
static int load_all(brc_store *store, brc_bases *b, const brc_ahead *ahead, brc_object *o,
                    brc_error *err)
{
    brc_buf bytes = BRC_BUF_INIT;
    const brc_oid first = o->id;
    int rc = add_base(store, b, ahead, o, &bytes, err);
    while (rc == BRC_OK && brc_object_is_delta(base_at(b, b->n - 1))) {
        rc = next_base(store, b, (brc_span){bytes.data, bytes.len}, o, err);
        if (rc == BRC_OK)
            rc = add_base(store, b, ahead, o, &bytes, err);
        if (rc < 0 && brc_oid_cmp(&first, &o->id) != 0)
            (void)name_base(base_at(b, 0), &o->id, rc, err);
    }
    brc_buf_dispose(&bytes);
    if (rc == BRC_OK)
        rc = brc_encoding_chain(store, base_at(b, b->n - 1)->encoding, &b->chain, err);
    return rc;
}

/* Finds out why the base `gone` of an object is not there: stores 1 in *again if the object was
 * stored again meanwhile, so that it needs its base no more. */
static int base_gone(brc_store *store, brc_object *object, const brc_oid *gone, int *again,
                     brc_error *err)
{
    brc_object now = {.id = object->id}, *one = &now;
    BRC_TRY(brc_objects_find(store, &one, 1, err));
    if (!now.found)
        return brc_fail(err, BRC_ESTALE,
                        "its object was removed by a garbage collection during the read, because "
                        "nothing refers to it any more: open a version that still exists");
    *again = brc_object_place_order(&now, object) != 0 || now.checksum != object->checksum;
    *object = now;
    if (*again)
        return BRC_OK;
    (void)brc_object_missing(gone, err);
    return name_base(object, gone, BRC_ECORRUPT, err);
}

static int bases_new(brc_store *store, brc_bases **out, brc_error *err)
{
    void *p;
    BRC_TRY(brc_new(&p, sizeof(brc_bases), err));
    *out = p;
    (*out)->id_len = brc_store_id_len(store);
    return BRC_OK;
}

static int load_with(brc_store *store, const brc_object *object, const brc_ahead *ahead,
                     brc_bases **out, brc_error *err)
{
    brc_object first = *object;
    *out = NULL;
    for (int tries = 0;; tries++) {
        int again = 0;
        brc_bases *b;
        brc_object at = first;
        BRC_TRY(bases_new(store, &b, err));
        int rc = load_all(store, b, ahead, &at, err);
        if (rc == BRC_OK) {
            *out = b;
            return rc;
        }
        if (b->n > 0)
            first = *base_at(b, 0);
        brc_bases_free(b);
        if (rc > 0)
            rc = base_gone(store, &first, &at.id, &again, err);
        if (rc < 0)
            return rc;
        if (!again || tries == BASES_TRIES)
            return brc_object_missing(&at.id, err);
    }
}

int brc_bases_load(brc_store *store, const brc_object *object, const brc_ahead *ahead,
                   brc_bases **out, brc_error *err)
{
    brc_ahead mine = BRC_AHEAD_INIT;
    *out = NULL;
    if (ahead != NULL)
        return load_with(store, object, ahead, out, err);
    int rc = brc_ahead_fetch(store, &mine, 1, &object, err);
    if (rc == BRC_OK)
        rc = load_with(store, object, &mine, out, err);
    brc_ahead_dispose(&mine);
    return rc;
}

void brc_bases_free(brc_bases *bases)
{
    if (bases == NULL)
        return;
    brc_buf_dispose(&bases->stored);
    brc_buf_dispose(&bases->content);
    free(bases->objects);
    free(bases);
}

int brc_bases_check(brc_store *store, const brc_bases *bases, brc_error *err)
{
    char hex[65], on[65];
    int found;
    brc_oid base;
    if (bases->n < 2)
        return BRC_OK;
    BRC_TRY(brc_delta_base(store, &base_at(bases, 0)->id, &found, &base, err));
    if (found && brc_oid_cmp(&base, &base_at(bases, 1)->id) == 0)
        return BRC_OK;
    return brc_fail(err, BRC_ECORRUPT,
                    "table delta does not say that object %s is a difference from object %s",
                    brc_oid_format(hex, &base_at(bases, 0)->id),
                    brc_oid_format(on, &base_at(bases, 1)->id));
}

brc_object brc_bases_view(const brc_bases *bases)
{
    brc_object view = *base_at(bases, 0);
    view.encoding = view.backend = view.place = 0;
    view.offset = view.digest = 0;
    view.stored = view.size;
    return view;
}

/* ---- decoding -------------------------------- */

/* Appends the content of the last object, which is stored whole. */
static int decode_last(const brc_bases *b, brc_scratch *scratch, brc_span stored, brc_buf *into,
                       brc_error *err)
{
    const size_t before = into->len;
    const brc_object *o = base_at(b, b->n - 1);
    if (b->chain == NULL) {
        if (o->encoding != 0)
            return brc_fail(err, BRC_EUNSUPPORTED,
                            "it was stored by a build that could not decode it");
        return brc_buf_append(into, stored.data, stored.len, err);
    }
    BRC_TRY(brc_chain_decode(b->chain, scratch, stored, NULL, into, err));
    return into->len - before == o->size
               ? BRC_OK
               : brc_fail(err, BRC_ECORRUPT, "it decodes to %zu bytes, not %llu",
                          into->len - before, (unsigned long long)o->size);
}

/* Decodes from the last object to the first, in two buffers in turns. */
static int decode_all(const brc_bases *b, brc_scratch *scratch, brc_buf two[2], brc_buf *into,
                      size_t *at, brc_error *err)
{
    size_t len, from = b->stored.len;
    for (*at = b->n; *at > 0;) {
        const brc_object *o = base_at(b, --*at);
        brc_buf *to = *at == 0 ? into : &two[*at % 2];
        const brc_buf *base = &two[(*at + 1) % 2];
        from -= (size_t)o->stored;
        const brc_span stored = {b->stored.data + from, (size_t)o->stored};
        if (to != into)
            to->len = 0;
        if (*at == b->n - 1) {
            BRC_TRY(decode_last(b, scratch, stored, to, err));
            continue;
        }
        if (!brc_to_size(o->size, &len))
            return brc_fail(err, BRC_ELIMIT, "it is too large for this machine");
        const brc_span frame = {stored.data + b->id_len, stored.len - b->id_len};
        BRC_TRY(brc_delta_decode(scratch, (brc_span){base->data, base->len}, frame, len, to, err));
    }
    return BRC_OK;
}

int brc_bases_decode(const brc_bases *bases, brc_scratch *scratch, brc_buf *into, brc_error *err)
{
    size_t at;
    brc_buf two[2] = {BRC_BUF_INIT, BRC_BUF_INIT};
    const int rc = decode_all(bases, scratch, two, into, &at, err);
    if (rc < 0 && at > 0)
        (void)name_base(base_at(bases, 0), &base_at(bases, at)->id, rc, err);
    brc_buf_dispose(&two[0]);
    brc_buf_dispose(&two[1]);
    return rc;
}

/* ==== storing ================================ */

int brc_delta_make(brc_scratch *scratch, const brc_oid *base, size_t id_len, brc_span base_content,
                   brc_span content, brc_buf *out, brc_error *err)
{
    BRC_TRY(brc_buf_append(out, base->bytes, id_len, err));
    return brc_delta_encode(scratch, base_content, content, out, err);
}

/* Encodes the content as the object is that all builds on, if it gives the content back. Stores 0
 * in *encoding if the content is to be stored as it is. */
static int whole_encode(brc_store *store, const brc_bases *b, brc_span content, brc_buf *out,
                        int64_t *encoding, brc_error *err)
{
    brc_buf again = BRC_BUF_INIT;
    const brc_object *last = base_at(b, b->n - 1);
    *encoding = 0;
    if (b->chain == NULL || last->size != content.len || brc_chain_is_lossy(b->chain))
        return BRC_OK;
    int rc = brc_chain_encode(b->chain, store->document_scratch, content, out, NULL);
    if (rc == BRC_OK)
        rc = brc_chain_decode(b->chain, store->document_scratch, (brc_span){out->data, out->len},
                              NULL, &again, NULL);
    if (rc == BRC_OK && out->len <= content.len - content.len / 100 * 3 &&
        again.len == content.len &&
        (content.len == 0 || memcmp(again.data, content.data, content.len) == 0))
        *encoding = last->encoding;
    brc_buf_dispose(&again);
    return rc == BRC_ENOMEM ? brc_nomem(err) : BRC_OK;
}

/* Checks the content against the id: what it builds on is about to go. */
static int whole_check(brc_store *store, const brc_object *o, brc_span content, brc_error *err)
{
    char hex[65];
    const brc_oid id = brc_hash_object(store->hash, o->kind, content.data, content.len);
    return brc_oid_cmp(&id, &o->id) == 0
               ? BRC_OK
               : brc_fail(err, BRC_ECORRUPT,
                          "object %s is damaged: its content does not match its id; run 'breccia "
                          "fsck'",
                          brc_oid_format(hex, &o->id));
}

/* Puts the bytes where the object lies, or into the file if nothing can be put there. */
static int whole_put(brc_store *store, brc_object *o, const brc_buf *bytes, brc_error *err)
{
    brc_stored at, *one = &at;
    brc_store_backend *b;
    BRC_TRY(brc_encoding_digest(store, o->encoding, &o->digest, err));
    o->stored = bytes->len;
    o->checksum = brc_hash_stored(&o->id, o->digest, bytes->data, bytes->len);
    BRC_TRY(brc_backend_use(store, o->backend, &b, err));
    if (!brc_backend_can_put(b)) {
        o->backend = 0;
        BRC_TRY(brc_backend_use(store, 0, &b, err));
    }
    brc_object_ask(o, &at);
    at.data = bytes->len > 0 ? bytes->data : (const uint8_t *)"";
    at.offset = 0;
    at.number = 0;
    int rc = brc_backend_put(b, 1, &one, err);
    if (rc == BRC_OK)
        rc = brc_object_replace(store, o, &at, err);
    brc_stored_clear(&at);
    return rc;
}

static int make_whole(brc_store *store, const brc_oid *id, brc_error *err)
{
    brc_object o = {.id = *id}, *one = &o;
    brc_buf encoded = BRC_BUF_INIT;
    brc_bases *b = NULL;
    int rc;
    BRC_GO(brc_objects_find(store, &one, 1, err));
    if (!o.found || !brc_object_is_delta(&o))
        return BRC_OK;
    if (store->document_scratch == NULL)
        BRC_GO(brc_scratch_new(&store->document_scratch, err));
    BRC_GO(brc_bases_load(store, &o, NULL, &b, err));
    BRC_GO(brc_bases_decode(b, store->document_scratch, &b->content, err));
    const brc_span content = {b->content.data, b->content.len};
    BRC_GO(whole_check(store, &o, content, err));
    BRC_GO(whole_encode(store, b, content, &encoded, &o.encoding, err));
    rc = whole_put(store, &o, o.encoding != 0 ? &encoded : &b->content, err);
done:
    brc_buf_dispose(&encoded);
    brc_bases_free(b);
    return rc;
}

int brc_delta_make_whole(brc_store *store, const brc_oid *id, brc_error *err)
{
    BRC_TRY(brc_store_begin(store, err));
    const int rc = make_whole(store, id, err);
    const int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}
