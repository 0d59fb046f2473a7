/*
 * From a name to a bound data type, and the list of all that there are.
 *
 * Invariant: an open data type has one spelling: a bare string where it has no
 * configuration, else an object with its name and configuration.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "dtype_registry.h"
#include "named.h"

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

/* Where the type's own form says all of it, it is taken: a configuration may have
 * several spellings. */
static int dtype_own_json(brc_buf *out, const brc_dtype *type, const brc_json *config,
                          brc_error *err)
{
    if (type->json != NULL)
        return brc_buf_text(out, type->json, err);
    return dtype_write_json(out, type->name, config, err);
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

int brc_dtype_bind(brc_dtype **out, const brc_registry *reg, const brc_dtype_slot *slot,
                   const char *name, const brc_json *config, brc_error *err)
{
    struct open_dtype *open = NULL;
    brc_buf json = BRC_BUF_INIT;
    int opened = 0, rc;

    BRC_GO(brc_new((void **)&open, sizeof(*open), err));
    open->slot = slot;
    open->type.size = sizeof(open->type);
    open->type.registry = reg;
    BRC_GO(slot->spec.open(slot->spec.ctx, &open->type, name, config, err));
    opened = 1;
    open->type.registry = reg;
    BRC_GO(dtype_check(&open->type, name, err));
    BRC_GO(dtype_own_json(&json, &open->type, config, err));
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
        return brc_fail(err, BRC_EINVAL,
                        "the data type \"%s\" cannot have \"must_understand\": false",
                        named.name);
    const brc_dtype_slot *slot = brc_dtype_registry_find(brc_dtypes_of(reg), named.name);
    if (slot == NULL)
        return brc_fail(err, BRC_EUNSUPPORTED, "the data type \"%s\" is not known to this build",
                        named.name);
    return brc_dtype_bind(out, reg, slot, named.name, named.config, err);
}

int brc_dtype_open_name(brc_dtype **out, const brc_registry *reg, const char *name, brc_error *err)
{
    const brc_dtype_slot *slot = brc_dtype_registry_find(brc_dtypes_of(reg), name);

    *out = NULL;
    if (slot == NULL)
        return brc_fail(err, BRC_EUNSUPPORTED, "the data type \"%s\" is not known to this build",
                        name);
    return brc_dtype_bind(out, reg, slot, name, NULL, err);
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

/* ---- the list ------------------------------------------------------------------------ */

static const char *dtype_class_name(int klass)
{
    static const char *const names[] = { "",       "bool",  "int",  "uint",   "float", "complex",
                                         "raw",    "string", "bytes", "time", "struct",
                                         "optional" };

    return klass > 0 && (size_t)klass < sizeof(names) / sizeof(names[0]) ? names[klass] : "";
}

/* A type that needs a configuration does not open by its name alone. */
int brc_registry_each_dtype(const brc_registry *reg, size_t i, brc_dtype **open,
                            brc_dtype_info *out, brc_error *err)
{
    *open = NULL;
    if (i >= brc_dtypes_of(reg)->n)
        return 0;
    const brc_dtype_slot *slot = brc_dtypes_of(reg)->slots[i];
    *out = (brc_dtype_info){
        .name = slot->spec.name,
        .kind = "",
        .flags = BRC_DTYPE_CONFIGURED | (slot->spec.match != NULL ? BRC_DTYPE_FAMILY : 0),
        .owner = brc_origin_name(&slot->origin),
    };
    int rc = slot->spec.match != NULL
                 ? BRC_EINVAL
                 : brc_dtype_bind(open, reg, slot, slot->spec.name, NULL, err);
    if (rc == BRC_ENOMEM)
        return rc;
    if (rc < 0)
        return 1;
    out->kind = dtype_class_name((*open)->klass);
    out->item_size = (*open)->item_size;
    out->npy = (*open)->npy;
    out->flags &= ~(uint32_t)BRC_DTYPE_CONFIGURED;
    return 1;
}
