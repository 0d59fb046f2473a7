/* Attributes of a node, to be written: see netcdf_att.h. */
#include <string.h>

#include "../../base/json.h"
#include "netcdf_att.h"

/* Zarr v2's name for what NetCDF has as dimensions, and the notes themselves. */
static int is_ours(const char *name)
{
    return strcmp(name, "_ARRAY_DIMENSIONS") == 0 || strcmp(name, BRC_NETCDF_GROUP_NOTE) == 0;
}

/* Writes the bytes of a note where the attribute is still what they are in JSON; value
 * NULL: there is no such attribute. *done: whether it does. */
static int put_noted(int *done, brc_netcdf_atts_out *out, const char *name, const brc_json *entry,
                     const brc_json *value, brc_error *err)
{
    brc_netcdf_values values;
    brc_json *was = NULL;
    int has;

    *done = 0;
    BRC_TRY(brc_netcdf_note_values(&values, &has, entry, err));
    if (!has)
        return BRC_OK;
    int rc = brc_netcdf_att_json(&was, &out->of, name, &values, err);
    if (rc == BRC_OK && (was ? value && brc_json_equal(was, value) : !value)) {
        *done = 1;
        rc = out->put(out->ctx, name, &values, err);
    }
    brc_json_free(was);
    brc_netcdf_values_free(&values);
    return rc;
}

/* The two doubles of a complex _FillValue. */
static int put_pair(int *done, brc_netcdf_atts_out *out, const brc_json *value, brc_error *err)
{
    brc_netcdf_of number = { .type = NC_DOUBLE, .is_var = 1 };
    brc_netcdf_values part;
    double pair[2];

    *done = brc_json_kind(value) == BRC_JSON_ARRAY && brc_json_count(value) == 2;
    for (size_t i = 0; i < 2 && *done; i++) {
        BRC_TRY(brc_netcdf_att_values(&part, &number, BRC_NETCDF_FILL, brc_json_item(value, i),
                                      NC_DOUBLE, err));
        *done = part.type == NC_DOUBLE && part.n == 1;
        if (*done)
            memcpy(&pair[i], part.data, sizeof(pair[i]));
        brc_netcdf_values_free(&part);
    }
    brc_netcdf_values both = { NC_NAT, 2, pair, NULL };
    return *done ? out->put(out->ctx, BRC_NETCDF_FILL, &both, err) : BRC_OK;
}

static int put_one(brc_netcdf_atts_out *out, const char *name, const brc_json *entry,
                   const brc_json *value, brc_error *err)
{
    const char *type;
    int is_typed = brc_json_text(entry, &type);
    int is_fill = out->of.is_var && strcmp(name, BRC_NETCDF_FILL) == 0, done = 0;
    brc_netcdf_values values;

    if (is_fill)
        out->has_fill = 1;
    BRC_TRY(put_noted(&done, out, name, entry, value, err));
    if (!done && is_fill && out->of.is_complex)
        BRC_TRY(put_pair(&done, out, value, err));
    if (done)
        return BRC_OK;
    BRC_TRY(brc_netcdf_att_values(&values, &out->of, name, value,
                                  is_typed ? brc_netcdf_type_named(type) : NC_NAT, err));
    int rc = out->put(out->ctx, name, &values, err);
    brc_netcdf_values_free(&values);
    return rc;
}

/* What the note alone has. */
static int put_only_noted(brc_netcdf_atts_out *out, const char *name, const brc_json *entry,
                          brc_error *err)
{
    int is_fill = out->of.is_var && strcmp(name, BRC_NETCDF_FILL) == 0, done;

    if (is_fill && brc_json_is(brc_json_member(entry, "type"), "own")) {
        out->own_fill = out->has_fill = 1;
        return BRC_OK;
    }
    BRC_TRY(put_noted(&done, out, name, entry, NULL, err));
    if (is_fill && done)
        out->has_fill = 1;
    return BRC_OK;
}

static int each_att(brc_netcdf_atts_out *out, const brc_json *doc, brc_error *err)
{
    const brc_json *attrs = brc_json_member(doc, "attributes");
    const brc_json *notes = brc_netcdf_note_part(doc, "attributes");

    out->own_fill = out->has_fill = 0;
    for (const brc_json *v = brc_json_first(attrs); v; v = brc_json_next(v)) {
        const char *name = brc_json_own_name(v);
        if (strstr(name, BRC_JSON_NUL))
            return brc_fail(err, BRC_EUNSUPPORTED,
                            "the name of an attribute contains U+0000, which NetCDF has not: "
                            "rename or remove the attribute");
        if (!is_ours(name))
            BRC_TRY(put_one(out, name, brc_json_member(notes, name), v, err));
    }
    for (const brc_json *v = brc_json_first(notes); v; v = brc_json_next(v)) {
        const char *name = brc_json_own_name(v);
        if (!brc_json_member(attrs, name))
            BRC_TRY(put_only_noted(out, name, v, err));
    }
    return BRC_OK;
}

int brc_netcdf_each_att(brc_netcdf_atts_out *out, const brc_json *doc, brc_error *err)
{
    int rc = each_att(out, doc, err);
    if (rc < 0)
        brc_context(err, "%s", out->label);
    return rc;
}
