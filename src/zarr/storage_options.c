/*
 * Where an array's new chunks go: its storage options, a document of its entry.
 *
 *     {"backend":{"name":...,"configuration":{...}}}
 *
 * The specification is in full form, so equal options are one document. The file itself is the
 * default: an array whose chunks go there has no storage options.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/buf.h"
#include "../base/json.h"
#include "array.h"

/* ---- reading -------------------------------- */

static int storage_damaged(const brc_array *a, brc_error *err)
{
    return brc_fail(err, BRC_ECORRUPT, "%s: its storage options are damaged; run 'breccia fsck'",
                    a->path);
}

/* The specification as it is written there. */
static int storage_spec(const brc_array *a, brc_span text, brc_buf *out, brc_error *err)
{
    const char *name;
    const brc_json *config, *spec;
    brc_json *doc;
    if (brc_json_parse(&doc, (const char *)text.data, text.len, NULL) < 0)
        return storage_damaged(a, err);
    spec = brc_json_member(doc, "backend");
    int rc = brc_backend_parse(spec, &name, &config, NULL);
    rc = rc < 0 ? storage_damaged(a, err) : brc_json_write(out, spec, err);
    brc_json_free(doc);
    return rc == BRC_OK ? brc_buf_terminate(out, err) : rc;
}

int brc_array_read_storage(brc_array *a, brc_error *err)
{
    brc_span text;
    brc_buf spec = BRC_BUF_INIT;
    char *found = NULL;
    int rc = BRC_OK;
    if (!brc_oid_is_zero(&a->entry.storage)) {
        BRC_TRY(brc_store_get(brc_array_store(a), BRC_KIND_DOCUMENT, &a->entry.storage, &text,
                              err));
        rc = storage_spec(a, text, &spec, err);
        if (rc == BRC_OK)
            rc = brc_buf_take_text(&spec, &found, err);
        brc_buf_dispose(&spec);
    }
    if (rc < 0)
        return rc;
    free(a->backend);
    free(a->full);
    a->full = NULL;
    a->backend = found;
    a->storage = a->entry.storage;
    a->info.backend_json = found != NULL ? found : BRC_INLINE_SPEC;
    return BRC_OK;
}

/* ---- writing -------------------------------- */

static int read_full(brc_array *a, brc_error *err)
{
    brc_json *spec;
    brc_buf full = BRC_BUF_INIT;
    BRC_TRY(brc_json_parse(&spec, a->backend, strlen(a->backend), err));
    int rc = brc_backend_full(a->session->repo->registry, spec, &full, err);
    if (rc == BRC_OK)
        rc = brc_buf_take_text(&full, &a->full, err);
    if (rc < 0)
        brc_context(err, "%s cannot be written here", a->path);
    brc_json_free(spec);
    brc_buf_dispose(&full);
    return rc;
}

typedef int (*number_fn)(brc_store *store, const char *spec, int64_t *id, brc_error *err);

static int backend_number(brc_array *a, number_fn number, int64_t *backend, brc_error *err)
{
    *backend = 0;
    if (a->backend == NULL)
        return BRC_OK;
    if (a->full == NULL)
        BRC_TRY(read_full(a, err));
    return number(brc_array_store(a), a->full, backend, err);
}

int brc_array_new_chunks(brc_array *a, int64_t *backend, brc_error *err)
{
    return backend_number(a, brc_backend_intern, backend, err);
}

int brc_array_find_backend(brc_array *a, int64_t *backend, brc_error *err)
{
    return backend_number(a, brc_backend_find, backend, err);
}
