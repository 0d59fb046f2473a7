#include "key_part.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "opaque.h"

/* ---- looking -------------------------------- */

static int open_opaque_part(brc_key_part *part, const brc_array *a, const uint64_t *index,
                            brc_error *err)
{
    BRC_TRY(brc_opaque_skip(brc_array_store(a), &a->meta, index, &part->object, &part->skip, err));
    part->how = part->skip > 0 ? BRC_PART_MARKED : BRC_PART_AS_IS;
    return BRC_OK;
}

/* How an object that was found becomes what the array's codecs say. */
static int open_part(brc_key_part *part, brc_array *a, const uint64_t *index, brc_error *err)
{
    brc_store *store = brc_array_store(a);
    uint64_t corner[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM];
    int64_t encoding = -1;
    part->skip = 0;
    part->form = NULL;
    part->chain = NULL;
    if (a->meta.opaque)
        return open_opaque_part(part, a, index, err);
    brc_grid_chunk(&a->meta.grid, index, corner, chunk);
    BRC_TRY(brc_meta_form(&a->meta, chunk, &part->form, err));
    part->how =
        brc_chain_is_identity(part->form->chain) ? BRC_PART_DECODED : BRC_PART_ENCODED;
    if (part->how == BRC_PART_ENCODED) {
        BRC_TRY(brc_encoding_find(store, part->form->spec, &encoding, err));
        if (part->object.encoding == encoding) {
            part->how = BRC_PART_AS_IS;
            return BRC_OK;
        }
    }
    BRC_TRY(brc_encoding_chain(store, part->object.encoding, &part->chain, err));
    if (part->object.encoding != 0 && part->chain == NULL)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "it was stored when its codecs were not known: import it again");
    return BRC_OK;
}

/* Lengths that the chain fixes, or that are those of what is stored. Where the length follows from
 * the codecs, so do the bytes: the id says which they are. */
static int know_part(brc_key_part *part, const brc_array *a, brc_error *err)
{
    brc_store *store = brc_array_store(a);
    int64_t encoding;
    part->is_known = 1;
    part->digest = 0;
    if (part->form == NULL) {
        part->len = part->object.stored - part->skip;
        part->digest = part->object.checksum;
        return BRC_OK;
    }
    part->len = part->how == BRC_PART_DECODED ? part->object.size
                                              : brc_chain_encoded_len(part->form->chain);
    if (part->len != BRC_LEN_VARIES)
        return BRC_OK;
    part->len = part->object.stored;
    part->digest = part->object.checksum;
    if (part->how == BRC_PART_AS_IS)
        return BRC_OK;
    BRC_TRY(brc_encoding_find(store, part->form->spec, &encoding, err));
    part->is_known = 0;
    if (encoding >= 0)
        BRC_TRY(brc_encoded_get(store, &part->object.id, encoding, &part->is_known, &part->len,
                                &part->digest, err));
    if (part->len > brc_chain_encoded_max(part->form->chain))
        part->is_known = 0; /* no encoder gives so much */
    return BRC_OK;
}

static int check_found(const brc_key_part *part, brc_error *err)
{
    if (part->object.found && part->object.kind == BRC_KIND_CHUNK)
        return BRC_OK;
    return brc_object_missing(&part->object.id, err);
}

static int open_parts(brc_array *a, brc_key_part *parts, size_t n, const uint64_t *indexes,
                      brc_error *err)
{
    for (size_t i = 0; i < n; i++) {
        const uint64_t *index = indexes + i * (size_t)a->meta.ndim;
        int rc = check_found(&parts[i], err);
        if (rc == BRC_OK)
            rc = open_part(&parts[i], a, index, err);
        if (rc == BRC_OK)
            rc = know_part(&parts[i], a, err);
        if (rc < 0) {
            brc_array_name_chunk(a, index, err);
            return rc;
        }
    }
    return BRC_OK;
}

int brc_key_parts_look(brc_array *a, brc_key_part *parts, size_t n, const uint64_t *indexes,
                       brc_error *err)
{
    void *p = NULL;
    brc_object *one;
    if (n == 1) {
        one = &parts[0].object;
        BRC_TRY(brc_objects_find(brc_array_store(a), &one, 1, err));
        return open_parts(a, parts, 1, indexes, err);
    }
    BRC_TRY(brc_new_array(&p, n, sizeof(brc_object *), err));
    brc_object **objects = p;
    for (size_t i = 0; i < n; i++)
        objects[i] = &parts[i].object;
    int rc = brc_objects_find(brc_array_store(a), objects, n, err);
    free(p);
    return rc < 0 ? rc : open_parts(a, parts, n, indexes, err);
}

/* ---- fetching and finishing -------------------------------- */

int brc_key_part_fetch(const brc_array *a, const brc_key_part *part, brc_buf *stored,
                       brc_error *err)
{
    size_t len;
    if (!brc_to_size(part->object.stored, &len))
        return brc_fail(err, BRC_ELIMIT, "a chunk is too large for this machine's memory");
    BRC_TRY(brc_buf_reserve(stored, len > 0 ? len : 1, err));
    BRC_TRY(brc_object_fetch(brc_array_store(a), &part->object, stored->data + stored->len, err));
    stored->len += len;
    return BRC_OK;
}

/* Chains exist that lose more each time, "bitround" and "packbits" with a first bit say:
 * what another array's bytes gave cannot be passed off as what such a chain gives. */
static int encoded_check(const brc_chain *chain, brc_scratch *scratch, brc_span decoded,
                         brc_span encoded, brc_error *err)
{
    brc_buf again = BRC_BUF_INIT;
    int rc = brc_chain_decode(chain, scratch, encoded, &again, err);
    if (rc == BRC_OK && (again.len != decoded.len ||
                         (again.len > 0 && memcmp(again.data, decoded.data, again.len) != 0)))
        rc = brc_fail(err, BRC_EUNSUPPORTED,
                      "it is stored in another encoding, and the array's codecs, which lose "
                      "something each time, do not give its elements back");
    brc_buf_dispose(&again);
    return rc;
}

/* What a form's chain makes of canonical bytes, in `out`, which is empty; on any thread. One that
 * loses something each time is refused where it does not give them back. */
static int form_encode(const brc_form *form, brc_span canonical, brc_scratch *scratch, brc_buf *out,
                       brc_error *err)
{
    BRC_TRY(brc_chain_encode(form->chain, scratch, canonical, out, err));
    if (!brc_chain_is_lossy(form->chain))
        return BRC_OK;
    return encoded_check(form->chain, scratch, canonical, (brc_span){out->data, out->len}, err);
}

/* The stored bytes decoded; *canonical points to them, or into `room`. */
static int part_decode(const brc_key_part *part, brc_scratch *scratch, brc_span stored,
                       brc_buf *room, brc_span *canonical, brc_error *err)
{
    *canonical = stored;
    if (part->chain == NULL)
        return BRC_OK;
    BRC_TRY(brc_chain_decode(part->chain, scratch, stored, room, err));
    if (room->len != part->object.size)
        return brc_fail(err, BRC_ECORRUPT, "it decodes to %zu bytes, not %llu; run 'breccia fsck'",
                        room->len, (unsigned long long)part->object.size);
    *canonical = (brc_span){room->data, room->len};
    return BRC_OK;
}

static int transcode_part(const brc_array *a, const brc_key_part *part, brc_span stored,
                          brc_buf *out, brc_error *err)
{
    brc_scratch *scratch;
    brc_span canonical;
    brc_buf room = BRC_BUF_INIT, encoded = BRC_BUF_INIT;
    brc_pipe *pipe = &a->session->repo->pipe;
    int rc;
    BRC_GO(brc_pipe_scratch(pipe, brc_pipe_caller(pipe), &scratch, err));
    BRC_GO(part_decode(part, scratch, stored, &room, &canonical, err));
    if (part->how == BRC_PART_ENCODED) {
        BRC_GO(form_encode(part->form, canonical, scratch, &encoded, err));
        canonical = (brc_span){encoded.data, encoded.len};
    }
    if (canonical.len > 0)
        rc = brc_buf_append(out, canonical.data, canonical.len, err);
done:
    brc_buf_dispose(&room);
    brc_buf_dispose(&encoded);
    return rc;
}

void brc_key_part_measure(brc_key_part *part, brc_span bytes)
{
    part->is_known = 1;
    if (part->how != BRC_PART_ENCODED ||
        brc_chain_encoded_len(part->form->chain) != BRC_LEN_VARIES)
        return;
    part->len = bytes.len;
    part->digest = brc_hash_stored(&part->object.id, brc_hash_encoding(part->form->spec),
                                   bytes.data, bytes.len);
}

int brc_key_part_passes(const brc_key_part *part)
{
    return part->how <= BRC_PART_MARKED || (part->how == BRC_PART_DECODED && part->chain == NULL);
}

int brc_key_part_check(const brc_key_part *part, brc_buf *stored, brc_error *err)
{
    const size_t len = (size_t)part->object.stored;
    uint8_t *bytes = stored->data + (stored->len - len);
    BRC_TRY(brc_object_verify(&part->object, bytes, err));
    if (part->how != BRC_PART_MARKED)
        return BRC_OK;
    BRC_TRY(brc_opaque_check(bytes, err));
    memmove(bytes, bytes + part->skip, len - part->skip);
    stored->len -= part->skip;
    return BRC_OK;
}

int brc_key_part_transcode(const brc_array *a, brc_key_part *part, const brc_buf *stored,
                           brc_buf *out, brc_error *err)
{
    const size_t start = out->len, len = (size_t)part->object.stored;
    const brc_span bytes = {stored->data + (stored->len - len), len};
    BRC_TRY(brc_object_verify(&part->object, bytes.data, err));
    BRC_TRY(transcode_part(a, part, bytes, out, err));
    brc_key_part_measure(part, (brc_span){out->data + start, out->len - start});
    return BRC_OK;
}

/* ---- many, through a flow -------------------------------- */

int brc_key_part_item(brc_read_item *item, brc_array *a, const uint64_t *index, brc_error *err)
{
    brc_key_part part = {.object = item->object};
    BRC_TRY(open_part(&part, a, index, err));
    item->owner = part.form;
    item->how = part.how;
    item->skip = part.skip;
    item->chain = part.chain;
    if (part.how <= BRC_PART_MARKED)
        item->len = (size_t)item->object.stored - part.skip;
    else
        item->varies = brc_meta_is_variable(&a->meta);
    return BRC_OK;
}

int brc_key_part_place(brc_read_item *item, const uint8_t *data, brc_scratch *scratch,
                       brc_error *err)
{
    item->out = (brc_span){data, item->len};
    if (item->how == BRC_PART_AS_IS)
        return BRC_OK;
    if (item->how == BRC_PART_MARKED)
        return brc_opaque_check(data - item->skip, err);
    if (item->how == BRC_PART_ENCODED)
        BRC_TRY(form_encode(item->owner, (brc_span){data, item->len}, scratch, item->result, err));
    else if (item->chain != NULL)
        BRC_TRY(brc_buf_append(item->result, data, item->len, err));
    else
        return BRC_OK;
    item->out = (brc_span){item->result->data, item->result->len};
    return BRC_OK;
}

/* ---- what is remembered -------------------------------- */

void brc_key_parts_remember(const brc_array *a, const brc_key_part *const *parts, size_t n)
{
    brc_store *store = brc_array_store(a);
    int64_t encoding;
    int rc = BRC_OK;
    if (n == 0 || !brc_store_try_begin(store))
        return;
    for (size_t i = 0; i < n && rc == BRC_OK; i++) {
        const brc_key_part *part = parts[i];
        if (part->how != BRC_PART_ENCODED || part->form == NULL)
            continue;
        rc = brc_encoding_intern(store, part->form->spec, &encoding, NULL);
        if (rc == BRC_OK)
            rc = brc_encoded_put(store, &part->object.id, encoding, part->len, part->digest, NULL);
    }
    (void)!brc_store_end(store, rc == BRC_OK, NULL);
}
