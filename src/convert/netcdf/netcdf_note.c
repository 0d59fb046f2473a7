/* What NetCDF says and Zarr does not, as a member of zarr.json: see netcdf_att.h. */
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/json.h"
#include "../../nd/bytes_json.h"
#include "netcdf_att.h"

/* *part: the member of the note, made where it is not there. */
static int note_part(brc_json **part, brc_json **note, const char *name, brc_error *err)
{
    if (!*note)
        *note = brc_json_new_object();
    if (!*note)
        return brc_nomem(err);
    if (!brc_json_member(*note, name))
        BRC_TRY(brc_json_set(*note, name, brc_json_new_object(), err));
    *part = (brc_json *)(uintptr_t)brc_json_member(*note, name); /* the note is ours */
    return BRC_OK;
}

int brc_netcdf_note_att(brc_json **note, const char *name, brc_json *entry, brc_error *err)
{
    brc_json *part = NULL;
    int rc = note_part(&part, note, "attributes", err);
    if (rc < 0) {
        brc_json_free(entry);
        return rc;
    }
    return brc_json_set(part, name, entry, err);
}

int brc_netcdf_note_dim(brc_json **note, const char *name, uint64_t length, int unlimited,
                        brc_error *err)
{
    static const char yes[] = "{\"unlimited\":true}";
    brc_json *part = NULL, *dim = NULL;

    BRC_TRY(note_part(&part, note, "dimensions", err));
    if (unlimited)
        BRC_TRY(brc_json_parse(&dim, yes, strlen(yes), err));
    else
        dim = brc_json_new_object();
    if (!dim)
        return brc_nomem(err);
    int rc = brc_json_set(dim, "length", brc_json_new_uint(length), err);
    if (rc < 0) {
        brc_json_free(dim);
        return rc;
    }
    return brc_json_set(part, name, dim, err);
}

const brc_json *brc_netcdf_note_part(const brc_json *doc, const char *part)
{
    const brc_json *attrs = brc_json_member(doc, "attributes");
    const brc_json *note = brc_json_member(doc, BRC_NETCDF_NOTE);
    const brc_json *found =
        brc_json_member(note ? note : brc_json_member(attrs, BRC_NETCDF_GROUP_NOTE), part);
    return brc_json_kind(found) == BRC_JSON_OBJECT ? found : NULL;
}

int brc_netcdf_note_values(brc_netcdf_values *out, int *has, const brc_json *entry, brc_error *err)
{
    const char *type, *text;
    int is_typed = brc_json_text(brc_json_member(entry, "type"), &type);
    int has_text = brc_json_text(brc_json_member(entry, "base64"), &text);
    brc_buf bytes = BRC_BUF_INIT;

    *has = 0;
    memset(out, 0, sizeof(*out));
    out->type = is_typed ? brc_netcdf_type_named(type) : NC_NAT;
    size_t size = out->type == NC_STRING ? 0 : brc_netcdf_atomic_size(out->type);
    if (!has_text || size == 0)
        return BRC_OK;
    int rc = brc_base64_read(&bytes, text, NULL);
    if (rc == BRC_OK && bytes.len % size == 0)
        rc = brc_buf_reserve(&bytes, 1, err); /* so that there is memory for none, too */
    if (rc < 0 || bytes.len % size != 0) {
        brc_buf_dispose(&bytes);
        return rc == BRC_ENOMEM ? brc_nomem(err) : BRC_OK; /* damaged: there is no note */
    }
    out->n = bytes.len / size;
    out->data = bytes.data;
    *has = 1;
    return BRC_OK;
}
