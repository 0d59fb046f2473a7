/*
 * The registry: what is in it, and the rules by which it is added to.
 *
 * Invariant: a name means one specification for as long as the registry lives.
 * Nothing is replaced or removed, and every table is copied, so that what a
 * plug-in does to its own copy later changes nothing here.
 */
#include "registry_slots.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "plugin_file.h"

/* ---- looking up --------------------------------------------------------------------- */

static brc_codec_slot *registry_find_codec(const brc_registry *reg, const char *name)
{
    for (size_t i = 0; i < reg->ncodecs; i++)
        if (strcmp(reg->codecs[i]->entry.spec.name, name) == 0)
            return reg->codecs[i];
    for (size_t i = 0; i < reg->naliases; i++)
        if (strcmp(reg->aliases[i].name, name) == 0)
            return reg->aliases[i].codec;
    return NULL;
}

const brc_codec_entry *brc_registry_codec(const brc_registry *reg, const char *name)
{
    const brc_codec_slot *slot = registry_find_codec(reg, name);

    return slot != NULL ? &slot->entry : NULL;
}

static const char *codec_kind_name(int kind)
{
    switch (kind) {
    case BRC_ARRAY_TO_ARRAY:
        return "array->array";
    case BRC_ARRAY_TO_BYTES:
        return "array->bytes";
    default:
        return "bytes->bytes";
    }
}

int brc_registry_each(const brc_registry *reg, size_t i, brc_codec_info *out)
{
    if (i >= reg->nimpls)
        return 0;
    const brc_impl_slot *slot = reg->impls[i];
    const brc_codec_entry *entry = brc_registry_codec(reg, slot->impl.spec);
    *out = (brc_codec_info){
        .name = slot->impl.spec,
        .kind = codec_kind_name(entry->spec.kind),
        .implementation = slot->impl.name,
        .rank = slot->impl.rank,
        .flags = (slot->usable ? BRC_IMPL_USABLE : 0) |
                 (entry->impl == &slot->impl ? BRC_IMPL_CHOSEN : 0),
        .owner = brc_origin_name(&slot->origin),
    };
    return 1;
}

/* ---- adding ------------------------------------------------------------------------- */

int brc_registry_add_dtype(brc_registry *reg, const brc_dtype_spec *spec, brc_error *err)
{
    if (reg == NULL || spec == NULL)
        return brc_fail(err, BRC_EINVAL, "a registry and a data type are needed");
    return brc_dtype_registry_add(&reg->dtypes, &reg->by, spec, err);
}

/* The strings of a slot are its own; the tables declare them const for their users. */
static void registry_free_text(const char *text)
{
    free((void *)(uintptr_t)text);
}

static void codec_slot_free(brc_codec_slot *slot)
{
    if (slot->entry.spec.destroy != NULL)
        slot->entry.spec.destroy(slot->entry.spec.ctx);
    registry_free_text(slot->entry.spec.name);
    brc_origin_dispose(&slot->origin);
    free(slot);
}

static int codec_spec_check(const brc_codec_spec *spec, brc_error *err)
{
    if (spec->size < offsetof(brc_codec_spec, close) || spec->open == NULL)
        return brc_fail(err, BRC_EINVAL, "the codec \"%s\" lacks its open function", spec->name);
    if (spec->kind < BRC_ARRAY_TO_ARRAY || spec->kind > BRC_BYTES_TO_BYTES)
        return brc_fail(err, BRC_EINVAL, "the codec \"%s\" has the unknown kind %d", spec->name,
                        spec->kind);
    return BRC_OK;
}

static int registry_put_codec(brc_registry *reg, const brc_codec_spec *spec, brc_error *err)
{
    brc_codec_slot *slot = NULL;
    char *name = NULL;
    int rc;

    BRC_TRY(brc_registrar_admit(&reg->by, "codec", spec->name, err));
    BRC_TRY(codec_spec_check(spec, err));
    const brc_codec_slot *taken = registry_find_codec(reg, spec->name);
    if (taken != NULL)
        return brc_fail(err, BRC_EEXISTS, "the codec \"%s\" is already there: \"%s\" from %s",
                        spec->name, taken->entry.spec.name,
                        brc_origin_words(&taken->origin));
    BRC_TRY(brc_grow_array((void **)&reg->codecs, &reg->codecs_cap, reg->ncodecs + 1,
                           sizeof(*reg->codecs), err));
    BRC_GO(brc_new((void **)&slot, sizeof(*slot), err));
    BRC_GO(brc_dup(&name, spec->name, err));
    BRC_GO(brc_origin_make(&slot->origin, &reg->by, spec->owner, err));
    slot->entry.spec = *spec;
    slot->entry.spec.name = name;
    slot->entry.spec.owner = slot->origin.owner;
    reg->codecs[reg->ncodecs++] = slot;
    return BRC_OK;
done:
    free(name);
    free(slot);
    return rc;
}

int brc_registry_add_codec(brc_registry *reg, const brc_codec_spec *spec, brc_error *err)
{
    brc_codec_spec copy;

    if (reg == NULL || spec == NULL)
        return brc_fail(err, BRC_EINVAL, "a registry and a codec are needed");
    brc_table_copy(&copy, sizeof(copy), spec, spec->size);
    int rc = registry_put_codec(reg, &copy, err);
    if (rc < 0 && copy.destroy != NULL)
        copy.destroy(copy.ctx);
    return rc;
}

static void impl_slot_free(brc_impl_slot *slot)
{
    if (slot->impl.destroy != NULL)
        slot->impl.destroy(slot->impl.ctx);
    registry_free_text(slot->impl.spec);
    registry_free_text(slot->impl.name);
    brc_origin_dispose(&slot->origin);
    free(slot);
}

static int registry_put_alias(brc_registry *reg, const char *alias, const char *codec,
                              brc_error *err)
{
    BRC_TRY(brc_registrar_admit(&reg->by, "codec", alias, err));
    brc_codec_slot *slot = registry_find_codec(reg, codec);
    const brc_codec_slot *taken = registry_find_codec(reg, alias);
    if (slot == NULL)
        return brc_fail(err, BRC_ENOTFOUND,
                        "the name \"%s\" is for the codec \"%s\", which must be added first",
                        alias, codec);
    if (taken != NULL)
        return brc_fail(err, BRC_EEXISTS, "the codec \"%s\" is already there: \"%s\" from %s",
                        alias, taken->entry.spec.name, brc_origin_words(&taken->origin));
    BRC_TRY(brc_grow_array((void **)&reg->aliases, &reg->aliases_cap, reg->naliases + 1,
                           sizeof(*reg->aliases), err));
    brc_alias_slot *out = &reg->aliases[reg->naliases];
    out->codec = slot;
    BRC_TRY(brc_origin_make(&out->origin, &reg->by, NULL, err));
    int rc = brc_dup(&out->name, alias, err);
    if (rc < 0)
        brc_origin_dispose(&out->origin);
    else
        reg->naliases++;
    return rc;
}

int brc_registry_add_alias(brc_registry *reg, const char *alias, const char *codec, brc_error *err)
{
    if (reg == NULL || codec == NULL)
        return brc_fail(err, BRC_EINVAL, "a registry and a codec are needed");
    return registry_put_alias(reg, alias, codec, err);
}

static void alias_dispose(brc_alias_slot *alias)
{
    free(alias->name);
    brc_origin_dispose(&alias->origin);
}

static int impl_check(const brc_registry *reg, const brc_codec_impl *impl, brc_error *err)
{
    BRC_TRY(brc_registrar_admit(&reg->by, "codec implementation", impl->name, err));
    if (impl->spec == NULL || registry_find_codec(reg, impl->spec) == NULL)
        return brc_fail(
            err, BRC_ENOTFOUND,
            "the implementation \"%s\" is for the codec \"%s\", which must be added first",
            impl->name, impl->spec != NULL ? impl->spec : "");
    if (impl->size < offsetof(brc_codec_impl, encode_batch) || impl->encode == NULL ||
        impl->decode == NULL)
        return brc_fail(err, BRC_EINVAL,
                        "the implementation \"%s\" lacks its encode or decode function",
                        impl->name);
    if (impl->memory != BRC_MEMORY_HOST)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "the implementation \"%s\" needs memory of kind %d, which this build lacks",
                        impl->name, impl->memory);
    return BRC_OK;
}

static int impl_slot_new(brc_impl_slot **out, const brc_registry *reg, const brc_codec_slot *codec,
                         const brc_codec_impl *impl, brc_error *err)
{
    brc_impl_slot *slot = NULL;
    char *spec = NULL, *name = NULL;
    int rc;

    BRC_GO(brc_new((void **)&slot, sizeof(*slot), err));
    BRC_GO(brc_dup(&spec, codec->entry.spec.name, err));
    BRC_GO(brc_dup(&name, impl->name, err));
    BRC_GO(brc_origin_make(&slot->origin, &reg->by, impl->owner, err));
    slot->impl = *impl;
    slot->impl.spec = spec;
    slot->impl.name = name;
    slot->impl.owner = slot->origin.owner;
    slot->usable = impl->probe == NULL || impl->probe(impl->ctx) != 0;
    *out = slot;
    return BRC_OK;
done:
    free(spec);
    free(name);
    free(slot);
    return rc;
}

static int impl_goes_before(const brc_impl_slot *a, const brc_impl_slot *b)
{
    int by_spec = strcmp(a->impl.spec, b->impl.spec);

    return by_spec < 0 || (by_spec == 0 && a->impl.rank > b->impl.rank);
}

/* The first usable one in the listing's order: equal ranks keep the earlier one. */
static void registry_choose(brc_registry *reg, brc_codec_entry *entry)
{
    entry->impl = NULL;
    for (size_t i = 0; i < reg->nimpls && entry->impl == NULL; i++)
        if (reg->impls[i]->usable && strcmp(reg->impls[i]->impl.spec, entry->spec.name) == 0)
            entry->impl = &reg->impls[i]->impl;
}

static int registry_put_impl(brc_registry *reg, const brc_codec_impl *impl, brc_error *err)
{
    brc_impl_slot *slot = NULL;

    BRC_TRY(impl_check(reg, impl, err));
    brc_codec_slot *codec = registry_find_codec(reg, impl->spec);
    for (size_t i = 0; i < reg->nimpls; i++) {
        const brc_impl_slot *other = reg->impls[i];
        if (strcmp(other->impl.spec, codec->entry.spec.name) == 0 &&
            strcmp(other->impl.name, impl->name) == 0)
            return brc_fail(err, BRC_EEXISTS,
                            "the implementation \"%s\" of \"%s\" is already there, from %s",
                            impl->name, impl->spec, brc_origin_words(&other->origin));
    }
    BRC_TRY(brc_grow_array((void **)&reg->impls, &reg->impls_cap, reg->nimpls + 1,
                           sizeof(*reg->impls), err));
    BRC_TRY(impl_slot_new(&slot, reg, codec, impl, err));
    size_t at = reg->nimpls++;
    for (; at > 0 && impl_goes_before(slot, reg->impls[at - 1]); at--)
        reg->impls[at] = reg->impls[at - 1];
    reg->impls[at] = slot;
    registry_choose(reg, &codec->entry);
    return BRC_OK;
}

int brc_registry_add_impl(brc_registry *reg, const brc_codec_impl *impl, brc_error *err)
{
    brc_codec_impl copy;

    if (reg == NULL || impl == NULL)
        return brc_fail(err, BRC_EINVAL, "a registry and an implementation are needed");
    brc_table_copy(&copy, sizeof(copy), impl, impl->size);
    int rc = registry_put_impl(reg, &copy, err);
    if (rc < 0 && copy.destroy != NULL)
        copy.destroy(copy.ctx);
    return rc;
}

/* ---- life --------------------------------------------------------------------------- */

int brc_registry_new_empty(brc_registry **out, brc_error *err)
{
    brc_registry *reg = NULL;

    BRC_TRY(brc_new((void **)&reg, sizeof(*reg), err));
    atomic_init(&reg->by.frozen, 0);
    *out = reg;
    return BRC_OK;
}

/* Implementations go before their specifications, as they came after them. */
void brc_registry_take_back(brc_registry *reg, size_t plugin)
{
    size_t kept = 0;

    for (size_t i = 0; i < reg->nimpls; i++) {
        if (reg->impls[i]->origin.plugin == plugin)
            impl_slot_free(reg->impls[i]);
        else
            reg->impls[kept++] = reg->impls[i];
    }
    reg->nimpls = kept;
    kept = 0;
    for (size_t i = 0; i < reg->naliases; i++) {
        if (reg->aliases[i].origin.plugin == plugin)
            alias_dispose(&reg->aliases[i]);
        else
            reg->aliases[kept++] = reg->aliases[i];
    }
    reg->naliases = kept;
    kept = 0;
    for (size_t i = 0; i < reg->ncodecs; i++) {
        if (reg->codecs[i]->origin.plugin == plugin)
            codec_slot_free(reg->codecs[i]);
        else
            reg->codecs[kept++] = reg->codecs[i];
    }
    reg->ncodecs = kept;
    brc_dtype_registry_take_back(&reg->dtypes, plugin);
    brc_registry_take_back_backends(reg, plugin);
    for (size_t i = 0; i < reg->ncodecs; i++)
        registry_choose(reg, &reg->codecs[i]->entry);
}

void brc_registry_free(brc_registry *reg)
{
    if (reg == NULL)
        return;
    for (size_t i = 0; i < reg->nimpls; i++)
        impl_slot_free(reg->impls[i]);
    for (size_t i = 0; i < reg->ncodecs; i++)
        codec_slot_free(reg->codecs[i]);
    brc_dtype_registry_dispose(&reg->dtypes);
    brc_registry_free_backends(reg);
    for (size_t i = 0; i < reg->naliases; i++)
        alias_dispose(&reg->aliases[i]);
    free(reg->impls);
    free(reg->aliases);
    free(reg->codecs);
    while (reg->nplugins > 0) /* last: until here their functions were called */
        brc_plugin_file_close(reg->plugins[--reg->nplugins]);
    free(reg->plugins);
    free(reg);
}

/* Freezing is the one change that users of a const registry make: several
 * repositories may be opened at once with one registry, hence the atomic. */
void brc_registry_freeze(const brc_registry *reg)
{
    atomic_store(&((brc_registry *)(uintptr_t)reg)->by.frozen, 1);
}
