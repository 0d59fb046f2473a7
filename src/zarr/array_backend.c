/* Where an array's new chunks go, given or by the repository's default: storage_options.c says
 * what is stored. */
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

int brc_backend_of_text(const brc_registry *reg, const char *text, brc_buf *full, brc_error *err)
{
    brc_json *spec;
    BRC_TRY(backend_read_text(&spec, text, err));
    int rc = brc_backend_full(reg, spec, full, err);
    brc_json_free(spec);
    return rc < 0 ? rc : brc_buf_terminate(full, err);
}

/* The backend gets its number before anything is put there: so a collection of garbage knows of it,
 * whatever becomes of who puts. */
static int storage_put(brc_store *store, const brc_buf *full, brc_oid *id, brc_error *err)
{
    brc_buf doc = BRC_BUF_INIT;
    int64_t number;
    memset(id, 0, sizeof(*id));
    if (strcmp((const char *)full->data, BRC_INLINE_SPEC) == 0)
        return BRC_OK;
    BRC_TRY(brc_backend_intern(store, (const char *)full->data, &number, err));
    int rc = brc_buf_text(&doc, "{\"backend\":", err);
    if (rc == BRC_OK)
        rc = brc_buf_append(&doc, full->data, full->len, err);
    if (rc == BRC_OK)
        rc = brc_buf_text(&doc, "}", err);
    if (rc == BRC_OK)
        rc = brc_store_put(store, BRC_KIND_DOCUMENT, doc.data, doc.len, id, err);
    brc_buf_dispose(&doc);
    return rc;
}

/* What the array has is of the file, and was right when it was set. */
int brc_entry_take_default(brc_session *s, brc_entry *entry, brc_error *err)
{
    const breccia *repo = s->repo;
    brc_buf text = BRC_BUF_INIT, full = BRC_BUF_INIT;
    int rc = brc_setting_find(repo->store, BRC_SETTING_BACKEND, &text, err);
    if (rc <= 0)
        goto done;
    rc = brc_backend_of_text(repo->registry, (const char *)text.data, &full, err);
    if (rc == BRC_EINVAL) {
        rc = BRC_ECORRUPT;
        brc_error_recode(err, rc);
    }
    if (rc < 0)
        brc_context(err, "the default of new arrays ('breccia config FILE backend')");
    else
        rc = storage_put(repo->store, &full, &entry->storage, err);
done:
    brc_buf_dispose(&text);
    brc_buf_dispose(&full);
    return rc;
}

static int change_backend(brc_array *a, const brc_buf *full, brc_error *err)
{
    brc_entry entry = a->entry;
    BRC_TRY(storage_put(brc_array_store(a), full, &entry.storage, err));
    BRC_TRY(brc_session_put(a->session, a->path, &entry, &a->row, err));
    return brc_array_sync(a, err);
}

int brc_array_set_backend(brc_array *a, const char *backend_json, brc_error *err)
{
    brc_buf full = BRC_BUF_INIT;
    if (backend_json == NULL)
        backend_json = BRC_INLINE;
    int rc = brc_backend_of_text(a->session->repo->registry, backend_json, &full, err);
    if (rc == BRC_OK)
        rc = brc_array_begin(a, err);
    if (rc == BRC_OK)
        rc = brc_array_end(a, change_backend(a, &full, err), err);
    brc_buf_dispose(&full);
    if (rc < 0)
        brc_context(err, "%s", a->path);
    return rc;
}
