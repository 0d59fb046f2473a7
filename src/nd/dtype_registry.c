/*
 * Data types by name, and the rules by which they are added.
 *
 * Invariant: a name means one specification for as long as the registry lives.
 * Nothing is replaced, and every table is copied, so that what a plug-in does to
 * its own copy later changes nothing here.
 */
#include "dtype_registry.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"

const brc_dtype_slot *brc_dtype_registry_find(const brc_dtype_registry *types, const char *name)
{
    for (size_t i = 0; i < types->n; i++)
        if (strcmp(types->slots[i]->spec.name, name) == 0)
            return types->slots[i];
    for (size_t i = 0; i < types->n; i++) {
        const brc_dtype_spec *spec = &types->slots[i]->spec;
        if (spec->match != NULL && spec->match(spec->ctx, name))
            return types->slots[i];
    }
    return NULL;
}

/* ---- adding ------------------------------------------------------------------------- */

static int dtype_slot_new(brc_dtype_slot **out, const brc_registrar *by, const brc_dtype_spec *spec,
                          brc_error *err)
{
    brc_dtype_slot *slot = NULL;
    char *name = NULL;
    int rc;

    BRC_GO(brc_new((void **)&slot, sizeof(*slot), err));
    BRC_GO(brc_dup(&name, spec->name, err));
    BRC_GO(brc_origin_make(&slot->origin, by, spec->owner, err));
    slot->spec = *spec;
    slot->spec.name = name;
    slot->spec.owner = slot->origin.owner;
    *out = slot;
    return BRC_OK;
done:
    free(name);
    free(slot);
    return rc;
}

static int dtype_put(brc_dtype_registry *types, const brc_registrar *by, const brc_dtype_spec *spec,
                     brc_error *err)
{
    BRC_TRY(brc_registrar_admit(by, "data type", spec->name, err));
    if (spec->size < offsetof(brc_dtype_spec, close) || spec->open == NULL)
        return brc_fail(err, BRC_EINVAL, "the data type \"%s\" lacks its open function",
                        spec->name);
    const brc_dtype_slot *taken = brc_dtype_registry_find(types, spec->name);
    if (taken != NULL)
        return brc_fail(err, BRC_EEXISTS, "the data type \"%s\" is already there: \"%s\" from %s",
                        spec->name, taken->spec.name, brc_origin_words(&taken->origin));
    BRC_TRY(brc_grow_array((void **)&types->slots, &types->cap, types->n + 1,
                           sizeof(*types->slots), err));
    BRC_TRY(dtype_slot_new(&types->slots[types->n], by, spec, err));
    types->n++;
    return BRC_OK;
}

int brc_dtype_registry_add(brc_dtype_registry *types, const brc_registrar *by,
                           const brc_dtype_spec *spec, brc_error *err)
{
    brc_dtype_spec copy;

    brc_table_copy(&copy, sizeof(copy), spec, spec->size);
    int rc = dtype_put(types, by, &copy, err);
    if (rc < 0 && copy.destroy != NULL)
        copy.destroy(copy.ctx);
    return rc;
}

/* ---- taking out --------------------------------------------------------------------- */

static void dtype_slot_free(brc_dtype_slot *slot)
{
    if (slot->spec.destroy != NULL)
        slot->spec.destroy(slot->spec.ctx);
    free((void *)(uintptr_t)slot->spec.name);
    brc_origin_dispose(&slot->origin);
    free(slot);
}

void brc_dtype_registry_take_back(brc_dtype_registry *types, size_t plugin)
{
    size_t kept = 0;

    for (size_t i = 0; i < types->n; i++) {
        if (types->slots[i]->origin.plugin == plugin)
            dtype_slot_free(types->slots[i]);
        else
            types->slots[kept++] = types->slots[i];
    }
    types->n = kept;
}

void brc_dtype_registry_dispose(brc_dtype_registry *types)
{
    for (size_t i = 0; i < types->n; i++)
        dtype_slot_free(types->slots[i]);
    free(types->slots);
    *types = (brc_dtype_registry){ NULL, 0, 0 };
}
