/* Changing where an array's new chunks go: storage_options.c says what is stored. */
#include <string.h>

#include "../base/alloc.h"
#include "../base/buf.h"
#include "../base/json.h"
#include "array.h"

/* JSON, or a bare name. */
static int backend_read_text(brc_json **out, const char *text, brc_error *err)
{
    const char *at = text + strspn(text, " \t\r\n");
    int rc = brc_json_parse(out, text, strlen(text), strchr("{[\"", *at) != NULL ? err : NULL);
    if (rc != BRC_EINVAL || strchr("{[\"", *at) != NULL)
        return rc;
    *out = brc_json_new_string(text);
    return *out != NULL ? BRC_OK : brc_nomem(err);
}

static int storage_put(brc_array *a, const brc_buf *full, brc_oid *id, brc_error *err)
{
    brc_buf doc = BRC_BUF_INIT;
    memset(id, 0, sizeof(*id));
    if (full->len == strlen(BRC_INLINE_SPEC) && memcmp(full->data, BRC_INLINE_SPEC, full->len) == 0)
        return BRC_OK;
    int rc = brc_buf_text(&doc, "{\"backend\":", err);
    if (rc == BRC_OK)
        rc = brc_buf_append(&doc, full->data, full->len, err);
    if (rc == BRC_OK)
        rc = brc_buf_text(&doc, "}", err);
    if (rc == BRC_OK)
        rc = brc_store_put(brc_array_store(a), BRC_KIND_DOCUMENT, doc.data, doc.len, id, err);
    brc_buf_dispose(&doc);
    return rc;
}

static int change_backend(brc_array *a, const brc_json *spec, brc_error *err)
{
    brc_buf full = BRC_BUF_INIT;
    brc_entry entry = a->entry;
    int rc;
    BRC_GO(brc_backend_full(a->session->repo->registry, spec, &full, err));
    BRC_GO(storage_put(a, &full, &entry.storage, err));
    BRC_GO(brc_session_put(a->session, a->path, &entry, &a->row, err));
    rc = brc_array_sync(a, err);
done:
    brc_buf_dispose(&full);
    return rc;
}

int brc_array_set_backend(brc_array *a, const char *backend_json, brc_error *err)
{
    brc_json *spec;
    if (backend_json == NULL)
        backend_json = BRC_INLINE;
    BRC_TRY(backend_read_text(&spec, backend_json, err));
    int rc = brc_array_begin(a, err);
    if (rc == BRC_OK)
        rc = brc_array_end(a, change_backend(a, spec, err), err);
    brc_json_free(spec);
    if (rc < 0)
        brc_context(err, "%s", a->path);
    return rc;
}
