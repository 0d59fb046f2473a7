/*
 * From a name to a bound data type.
 *
 * Invariant: an open data type has one spelling: a bare string where it has no
 * configuration, else an object with its name and configuration.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "named.h"
#include "registry_slots.h"

struct open_dtype {
    brc_dtype type; /* first: what is handed out points here                     */
    const brc_dtype_slot *slot;
    char *json;
};

static int dtype_write_json(brc_buf *out, const char *name, const brc_json *config, brc_error *err)
{
    if (brc_json_count(config) == 0)
        return brc_json_quote(out, name, strlen(name), err);
    BRC_TRY(brc_buf_text(out, "{\"name\":", err));
    BRC_TRY(brc_json_quote(out, name, strlen(name), err));
    BRC_TRY(brc_buf_text(out, ",\"configuration\":", err));
    BRC_TRY(brc_json_write(out, config, err));
    return brc_buf_text(out, "}", err);
}

/* A plug-in's description is checked once, so that nobody below divides by it. */
static int dtype_check(const brc_dtype *type, const char *name, brc_error *err)
{
    int whole_units =
        type->swap_unit >= 1 && (type->item_size == 0 || type->item_size % type->swap_unit == 0);

    if (type->name == NULL || type->ops == NULL || type->ops->parse == NULL ||
        type->ops->print == NULL || !whole_units)
        return brc_fail(err, BRC_EINVAL,
                        "the data type \"%s\" is registered with an incomplete description", name);
    return BRC_OK;
}

static int dtype_bind(brc_dtype **out, const brc_dtype_slot *slot, const char *name,
                      const brc_json *config, brc_error *err)
{
    struct open_dtype *open = NULL;
    brc_buf json = BRC_BUF_INIT;
    int opened = 0, rc;

    BRC_GO(brc_new((void **)&open, sizeof(*open), err));
    open->slot = slot;
    open->type.size = sizeof(open->type);
    BRC_GO(slot->spec.open(slot->spec.ctx, &open->type, name, config, err));
    opened = 1;
    BRC_GO(dtype_check(&open->type, name, err));
    BRC_GO(dtype_write_json(&json, open->type.name, config, err));
    BRC_GO(brc_buf_take_text(&json, &open->json, err));
    open->type.json = open->json;
    *out = &open->type;
    return BRC_OK;
done:
    brc_buf_dispose(&json);
    if (opened)
        brc_dtype_free(&open->type);
    else
        free(open);
    return rc;
}

int brc_dtype_open(brc_dtype **out, const brc_registry *reg, const brc_json *json, brc_error *err)
{
    brc_named named;

    *out = NULL;
    int rc = brc_named_read(&named, json, err);
    if (rc < 0) {
        brc_context(err, "data type");
        return rc;
    }
    if (named.may_ignore)
        return brc_fail(err, BRC_EINVAL, "the data type \"%s\" cannot be one that may be ignored",
                        named.name);
    const brc_dtype_slot *slot = brc_registry_dtype(reg, named.name);
    if (slot == NULL)
        return brc_fail(err, BRC_EUNSUPPORTED, "the data type \"%s\" is not known to this build",
                        named.name);
    return dtype_bind(out, slot, named.name, named.config, err);
}

void brc_dtype_free(brc_dtype *type)
{
    if (type == NULL)
        return;
    struct open_dtype *open = (struct open_dtype *)type;
    const brc_dtype_spec *spec = &open->slot->spec;
    if (spec->close != NULL)
        spec->close(spec->ctx, type);
    free(open->json);
    free(open);
}

/* NumPy writes "|" for what has no byte order, but "<u1" is read as well. */
static int npy_is(const brc_dtype *type, const char *descr)
{
    return type->npy != NULL && strcmp(type->npy + 1, descr + 1) == 0 &&
           (descr[0] != '|' || type->swap_unit == 1);
}

/* NumPy's "|V3" is "r24": a family has no list that could be searched. */
static int npy_raw_name(char *out, size_t size, const char *descr)
{
    size_t digits = strspn(descr + 1 + (descr[1] == 'V'), "0123456789");

    if (descr[1] != 'V' || digits == 0 || digits > 9 || descr[2 + digits] != '\0')
        return 0;
    snprintf(out, size, "r%llu", 8 * strtoull(descr + 2, NULL, 10));
    return 1;
}

/* The type that this slot gives for the descr, or NULL in *out. */
static int npy_try_slot(brc_dtype **out, const brc_dtype_slot *slot, const char *descr,
                        brc_error *err)
{
    brc_dtype *type = NULL;
    brc_error why = BRC_ERROR_INIT;
    char raw[32];
    const char *name = slot->spec.name;

    *out = NULL;
    if (slot->spec.match != NULL) {
        if (!npy_raw_name(raw, sizeof(raw), descr) || !slot->spec.match(slot->spec.ctx, raw))
            return BRC_OK;
        name = raw;
    }
    int rc = dtype_bind(&type, slot, name, NULL, &why);
    if (rc == BRC_ENOMEM)
        return brc_fail(err, rc, "%s", why.message);
    if (rc < 0)
        return BRC_OK; /* it needs a configuration: no descr means it            */
    if (npy_is(type, descr))
        *out = type;
    else
        brc_dtype_free(type);
    return BRC_OK;
}

int brc_dtype_open_npy(brc_dtype **out, int *big, const brc_registry *reg, const char *descr,
                       brc_error *err)
{
    brc_dtype *found = NULL, *other = NULL;

    *out = NULL;
    *big = 0;
    if (descr[0] == '\0' || strchr("<>|=", descr[0]) == NULL)
        return brc_fail(err, BRC_EINVAL, "\"%s\" is not a NumPy data type such as \"<f4\"", descr);
    for (size_t i = 0; i < reg->ndtypes; i++) {
        int rc = npy_try_slot(&other, reg->dtypes[i], descr, err);
        if (rc == BRC_OK && other != NULL && found != NULL)
            rc = brc_fail(
                err, BRC_EAMBIGUOUS,
                "NumPy's \"%s\" may be the data type \"%s\" or \"%s\": name the one that is meant",
                descr, found->name, other->name);
        if (rc < 0) {
            brc_dtype_free(other);
            brc_dtype_free(found);
            return rc;
        }
        if (other != NULL)
            found = other;
    }
    if (found == NULL)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "NumPy's data type \"%s\" has no counterpart in this build", descr);
    int native_big = descr[0] == '=' && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    *big = found->swap_unit > 1 && (descr[0] == '>' || native_big);
    *out = found;
    return BRC_OK;
}
