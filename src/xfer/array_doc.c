/* Documents with other chunks and codecs. */
#include "array_doc.h"

#include <string.h>

#include "../zarr/meta.h"
#include "../zarr/transfer.h"
#include "xfer.h"

static int put_parsed(brc_json *doc, const char *member, const char *text, size_t len,
                      brc_error *err)
{
    brc_json *value;
    int rc = brc_json_parse(&value, text, len, err);
    if (rc < 0) {
        brc_context(err, "%s", member);
        return rc;
    }
    return brc_json_set(doc, member, value, err);
}

/* Those of a new array of this type. */
static int put_default_codecs(brc_json *doc, brc_session *s, brc_error *err)
{
    const brc_json *name = brc_json_member(doc, "data_type");
    brc_dtype *type = NULL;
    brc_buf text = BRC_BUF_INIT, dtype = BRC_BUF_INIT;
    int rc;

    BRC_GO(brc_dtype_open(&type, brc_session_registry(s), name, err));
    BRC_GO(brc_json_write(&dtype, name, err));
    BRC_GO(brc_buf_terminate(&dtype, err));
    BRC_GO(brc_session_default_codecs(&text, s, (const char *)dtype.data, err));
    if (text.len == 0)
        BRC_GO(brc_meta_default_codecs(&text, type, err));
    rc = put_parsed(doc, "codecs", (const char *)text.data, text.len, err);
done:
    brc_dtype_free(type);
    brc_buf_dispose(&dtype);
    brc_buf_dispose(&text);
    return rc;
}

/* In full, as a new array has them. */
static int complete_fresh(brc_json *doc, const brc_registry *reg, brc_error *err)
{
    brc_meta meta;
    BRC_TRY(brc_meta_open(&meta, reg, doc, err));
    int rc = brc_meta_must_encode(&meta, err);
    if (rc == BRC_OK)
        rc = brc_meta_set_codecs(doc, &meta, meta.codecs_json, 1, err);
    brc_meta_dispose(&meta);
    return rc;
}

static int change_document(brc_json *doc, brc_session *s, const char *path,
                           const brc_xfer_opts *opts, int fresh, brc_error *err)
{
    size_t ndim = brc_json_count(brc_json_member(doc, "shape"));
    if (opts->chunk && (opts->nchunk < 0 || (size_t)opts->nchunk != ndim))
        return brc_fail(err, BRC_EINVAL, "%s has %zu axes, the chunk shape %d", path, ndim,
                        opts->nchunk);
    if (opts->chunk)
        BRC_TRY(brc_meta_set_chunks(doc, opts->nchunk, opts->chunk, err));
    if (opts->codecs_json)
        BRC_TRY(put_parsed(doc, "codecs", opts->codecs_json, strlen(opts->codecs_json), err));
    else if (fresh)
        BRC_TRY(put_default_codecs(doc, s, err));
    return fresh ? complete_fresh(doc, brc_session_registry(s), err) : BRC_OK;
}

/* Chunks must be decodable as they are and encodable as they will be, which is said before there is
 * a node. */
static int check_recoding(const brc_json *doc, const brc_json *changed, const brc_registry *reg,
                          brc_error *err)
{
    brc_meta from, to = { 0 };
    int rc;
    BRC_TRY(brc_meta_open(&from, reg, doc, err));
    BRC_GO(brc_meta_must_decode(&from, err));
    BRC_GO(brc_meta_open(&to, reg, changed, err));
    BRC_GO(brc_meta_must_encode(&to, err));
done:
    brc_meta_dispose(&to);
    brc_meta_dispose(&from);
    return rc;
}

int brc_array_doc_changed(brc_json **out, brc_session *s, const brc_json *doc,
                          const char *path, const brc_xfer_opts *opts, int fresh, brc_error *err)
{
    *out = NULL;
    BRC_TRY(brc_json_clone(out, doc, err));
    int rc = change_document(*out, s, path, opts, fresh, err);
    if (rc == BRC_OK)
        rc = check_recoding(doc, *out, brc_session_registry(s), err);
    if (rc < 0) {
        brc_json_free(*out);
        *out = NULL;
    }
    return rc;
}

int brc_add_doc_bytes(uint64_t *sum, const brc_registry *reg, const brc_json *doc, brc_error *err)
{
    const brc_json *shape = brc_json_member(doc, "shape");
    uint64_t extent[BRC_MAX_NDIM];
    brc_dtype *type = NULL;
    size_t ndim = brc_json_count(shape), item = 1;

    if (ndim > BRC_MAX_NDIM)
        return BRC_OK;
    for (size_t i = 0; i < ndim; i++)
        if (!brc_json_uint(brc_json_item(shape, i), UINT64_MAX, &extent[i]))
            return BRC_OK;
    int rc = brc_dtype_open(&type, reg, brc_json_member(doc, "data_type"), err);
    if (rc == BRC_OK)
        item = type->item_size;
    brc_dtype_free(type);
    brc_add_array_bytes(sum, (int)ndim, extent, item);
    return rc == BRC_ENOMEM ? rc : BRC_OK;
}
