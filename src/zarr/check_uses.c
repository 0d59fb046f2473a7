/* Who uses which object: whether it is there, and what is wrong with it, reported with its user. */
#include "fsck.h"

#include <inttypes.h>

/* The fault of this id, which is created if the object is missing; NULL: there is
 * none. */
static int fault_of(const brc_check *c, const brc_oid *id, int kind, brc_fault **out,
                    brc_error *err)
{
    brc_object o = { .id = *id }, *one = &o;
    int there = 0;
    *out = brc_faults_find(c->faults, id);
    if (*out != NULL)
        return BRC_OK;
    BRC_TRY(brc_objects_find(c->store, &one, 1, err));
    if (!o.found && kind == BRC_KIND_DOCUMENT)
        BRC_TRY(brc_draft_doc_has(c->store, id, &there, err));
    if (there)
        return BRC_OK;
    if (!o.found)
        return brc_faults_add(c->faults, id, kind, 1, "something refers to it, but it is not "
                                                      "there", out, err);
    if (o.kind != kind)
        return brc_faults_add(c->faults, id, kind, 0, "it is used as an object of another kind",
                              out, err);
    return BRC_OK;
}

static int note_user(const brc_check *c, brc_fault *fault, const char *path, const char *part,
                     brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc = brc_buf_printf(&text, err, "%s: %s%s%s", c->what, path, *part ? " " : "", part);
    if (rc == BRC_OK)
        rc = brc_fault_used_by(fault, (const char *)text.data, err);
    brc_buf_dispose(&text);
    return rc;
}

int brc_check_use(const brc_check *c, const brc_oid *id, int kind, const char *path,
                  const char *part, int *bad, brc_error *err)
{
    brc_fault *fault;
    BRC_TRY(fault_of(c, id, kind, &fault, err));
    *bad = fault != NULL;
    return fault != NULL ? note_user(c, fault, path, part, err) : BRC_OK;
}

int brc_check_fault(const brc_check *c, const brc_oid *id, int kind, const char *path,
                    const char *part, const char *message, brc_error *err)
{
    brc_fault *fault = brc_faults_find(c->faults, id);
    if (fault == NULL)
        BRC_TRY(brc_faults_add(c->faults, id, kind, 0, message, &fault, err));
    return note_user(c, fault, path, part, err);
}

static int chunk_name(brc_buf *out, int ndim, const uint64_t *index, brc_error *err)
{
    out->len = 0;
    BRC_TRY(brc_buf_text(out, "chunk (", err));
    for (int i = 0; i < ndim; i++)
        BRC_TRY(brc_buf_printf(out, err, "%s%" PRIu64, i > 0 ? "," : "", index[i]));
    BRC_TRY(brc_buf_text(out, ")", err));
    return brc_buf_terminate(out, err);
}

int brc_check_chunk_use(const brc_check *c, const char *path, const brc_chunk_check *chunk,
                        int *bad, brc_error *err)
{
    brc_buf part = BRC_BUF_INIT;
    int rc = BRC_OK;
    *bad = 0;
    if (chunk->looked_up && chunk->fault == NULL)
        return BRC_OK;
    BRC_GO(chunk_name(&part, chunk->ndim, chunk->index, err));
    const char *name = (const char *)part.data;
    if (!chunk->looked_up) {
        rc = brc_check_use(c, &chunk->object.id, BRC_KIND_CHUNK, path, name, bad, err);
    } else {
        *bad = 1;
        rc = brc_check_fault(c, &chunk->object.id, BRC_KIND_CHUNK, path, name,
                             chunk->fault->message, err);
    }
done:
    brc_buf_dispose(&part);
    return rc;
}
