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

/* Other names that stored arrays use: of the drafts, of zarrita for what numcodecs
 * calls otherwise, and of zarrs before it took the registered names. */
#define ZARRS_URI "https://codec.zarrs.dev/"
static const struct {
    const char *name, *means;
} codec_aliases[] = {
    { "endian", "bytes" },
    { "zlib", "numcodecs.zlib" },
    { "lz4", "numcodecs.lz4" },
    { "zarrs.reshape", "reshape" },
    { ZARRS_URI "array_to_array/bitround", "bitround" },
    { ZARRS_URI "array_to_array/squeeze", "zarrs.squeeze" },
    { ZARRS_URI "array_to_array/reshape", "reshape" },
    { ZARRS_URI "array_to_bytes/vlen_v2", "zarrs.vlen_v2" },
    { ZARRS_URI "bytes_to_bytes/bz2", "numcodecs.bz2" },
    { ZARRS_URI "bytes_to_bytes/fletcher32", "numcodecs.fletcher32" },
};

static const char *codec_real_name(const char *name)
{
    for (size_t i = 0; i < sizeof(codec_aliases) / sizeof(codec_aliases[0]); i++)
        if (strcmp(codec_aliases[i].name, name) == 0)
            return codec_aliases[i].means;
    return name;
}

/* ---- looking up --------------------------------------------------------------------- */

static brc_codec_slot *registry_find_codec(const brc_registry *reg, const char *name)
{
    const char *real = codec_real_name(name);

    for (size_t i = 0; i < reg->ncodecs; i++)
        if (strcmp(reg->codecs[i]->entry.spec.name, real) == 0)
            return reg->codecs[i];
    return NULL;
}

const brc_codec_entry *brc_registry_codec(const brc_registry *reg, const char *name)
{
    const brc_codec_slot *slot = registry_find_codec(reg, name);

    return slot != NULL ? &slot->entry : NULL;
}

const brc_dtype_slot *brc_registry_dtype(const brc_registry *reg, const char *name)
{
    for (size_t i = 0; i < reg->ndtypes; i++)
        if (strcmp(reg->dtypes[i]->spec.name, name) == 0)
            return reg->dtypes[i];
    for (size_t i = 0; i < reg->ndtypes; i++) {
        const brc_dtype_spec *spec = &reg->dtypes[i]->spec;
        if (spec->match != NULL && spec->match(spec->ctx, name))
            return reg->dtypes[i];
    }
    return NULL;
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

static const char *listed_owner(const char *owner, int core)
{
    if (core)
        return "breccia";
    return owner != NULL ? owner : "a plug-in";
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
        .usable = slot->usable,
        .chosen = entry->impl == &slot->impl,
        .owner = listed_owner(slot->impl.owner, slot->core),
    };
    return 1;
}

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
    if (i >= reg->ndtypes)
        return 0;
    const brc_dtype_slot *slot = reg->dtypes[i];
    *out = (brc_dtype_info){
        .name = slot->spec.name,
        .kind = "",
        .is_family = slot->spec.match != NULL,
        .configured = 1,
        .owner = listed_owner(slot->spec.owner, slot->core),
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
    out->configured = 0;
    return 1;
}

/* ---- adding ------------------------------------------------------------------------- */

/* A caller built against an older header has a shorter table: what it lacks is
 * zero. What a newer one has more is not known here. */
static void registry_copy_table(void *dst, size_t dst_size, const void *src, size_t src_size)
{
    memset(dst, 0, dst_size);
    memcpy(dst, src, src_size < dst_size ? src_size : dst_size);
}

static const char *registry_owner(const char *owner, int core)
{
    if (core)
        return "breccia itself";
    return owner != NULL ? owner : "a plug-in";
}

static int registry_check_open(const brc_registry *reg, const char *what, const char *name,
                               brc_error *err)
{
    if (name == NULL || name[0] == '\0' || !brc_utf8_valid(name, strlen(name)))
        return brc_fail(err, BRC_EINVAL, "a %s needs a name, in UTF-8", what);
    if (atomic_load(&reg->frozen))
        return brc_fail(err, BRC_EMISUSE,
                        "the %s \"%s\" comes too late: the registry is in use; add to it before "
                        "the first brc_open()",
                        what, name);
    return BRC_OK;
}

/* A plug-in that does not say who it is, is known by its path. */
static int registry_dup_owner(char **out, const brc_registry *reg, const char *owner,
                              brc_error *err)
{
    *out = NULL;
    if (owner == NULL)
        owner = reg->loading;
    return owner != NULL ? brc_dup(out, owner, err) : BRC_OK;
}

static size_t registry_plugin_now(const brc_registry *reg)
{
    return reg->loading != NULL ? reg->nplugins + 1 : 0;
}

/* The strings of a slot are its own; the tables declare them const for their users. */
static void registry_free_text(const char *text)
{
    free((void *)text);
}

static void dtype_slot_free(brc_dtype_slot *slot)
{
    if (slot->spec.destroy != NULL)
        slot->spec.destroy(slot->spec.ctx);
    registry_free_text(slot->spec.name);
    registry_free_text(slot->spec.owner);
    free(slot);
}

static int registry_put_dtype(brc_registry *reg, const brc_dtype_spec *spec, brc_error *err)
{
    brc_dtype_slot *slot = NULL;
    char *name = NULL, *owner = NULL;
    int rc;

    BRC_TRY(registry_check_open(reg, "data type", spec->name, err));
    if (spec->size < offsetof(brc_dtype_spec, close) || spec->open == NULL)
        return brc_fail(err, BRC_EINVAL, "the data type \"%s\" lacks its open function",
                        spec->name);
    const brc_dtype_slot *taken = brc_registry_dtype(reg, spec->name);
    if (taken != NULL)
        return brc_fail(err, BRC_EEXISTS, "the data type \"%s\" is already there: \"%s\" from %s",
                        spec->name, taken->spec.name,
                        registry_owner(taken->spec.owner, taken->core));
    BRC_TRY(brc_grow_array((void **)&reg->dtypes, &reg->dtypes_cap, reg->ndtypes + 1,
                           sizeof(*reg->dtypes), err));
    BRC_GO(brc_new((void **)&slot, sizeof(*slot), err));
    BRC_GO(brc_dup(&name, spec->name, err));
    BRC_GO(registry_dup_owner(&owner, reg, spec->owner, err));
    slot->spec = *spec;
    slot->spec.name = name;
    slot->spec.owner = owner;
    slot->core = reg->core;
    slot->plugin = registry_plugin_now(reg);
    reg->dtypes[reg->ndtypes++] = slot;
    return BRC_OK;
done:
    free(name);
    free(owner);
    free(slot);
    return rc;
}

int brc_registry_add_dtype(brc_registry *reg, const brc_dtype_spec *spec, brc_error *err)
{
    brc_dtype_spec copy;

    if (reg == NULL || spec == NULL)
        return brc_fail(err, BRC_EINVAL, "a registry and a data type are needed");
    registry_copy_table(&copy, sizeof(copy), spec, spec->size);
    int rc = registry_put_dtype(reg, &copy, err);
    if (rc < 0 && copy.destroy != NULL)
        copy.destroy(copy.ctx);
    return rc;
}

static void codec_slot_free(brc_codec_slot *slot)
{
    if (slot->entry.spec.destroy != NULL)
        slot->entry.spec.destroy(slot->entry.spec.ctx);
    registry_free_text(slot->entry.spec.name);
    registry_free_text(slot->entry.spec.owner);
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
    char *name = NULL, *owner = NULL;
    int rc;

    BRC_TRY(registry_check_open(reg, "codec", spec->name, err));
    BRC_TRY(codec_spec_check(spec, err));
    const brc_codec_slot *taken = registry_find_codec(reg, spec->name);
    if (taken != NULL)
        return brc_fail(err, BRC_EEXISTS, "the codec \"%s\" is already there: \"%s\" from %s",
                        spec->name, taken->entry.spec.name,
                        registry_owner(taken->entry.spec.owner, taken->core));
    BRC_TRY(brc_grow_array((void **)&reg->codecs, &reg->codecs_cap, reg->ncodecs + 1,
                           sizeof(*reg->codecs), err));
    BRC_GO(brc_new((void **)&slot, sizeof(*slot), err));
    BRC_GO(brc_dup(&name, spec->name, err));
    BRC_GO(registry_dup_owner(&owner, reg, spec->owner, err));
    slot->entry.spec = *spec;
    slot->entry.spec.name = name;
    slot->entry.spec.owner = owner;
    slot->core = reg->core;
    slot->plugin = registry_plugin_now(reg);
    reg->codecs[reg->ncodecs++] = slot;
    return BRC_OK;
done:
    free(name);
    free(owner);
    free(slot);
    return rc;
}

int brc_registry_add_codec(brc_registry *reg, const brc_codec_spec *spec, brc_error *err)
{
    brc_codec_spec copy;

    if (reg == NULL || spec == NULL)
        return brc_fail(err, BRC_EINVAL, "a registry and a codec are needed");
    registry_copy_table(&copy, sizeof(copy), spec, spec->size);
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
    registry_free_text(slot->impl.owner);
    free(slot);
}

static int impl_check(const brc_registry *reg, const brc_codec_impl *impl, brc_error *err)
{
    BRC_TRY(registry_check_open(reg, "codec implementation", impl->name, err));
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
                        "the implementation \"%s\" wants memory of kind %d, which this build lacks",
                        impl->name, impl->memory);
    return BRC_OK;
}

static int impl_slot_new(brc_impl_slot **out, const brc_registry *reg, const brc_codec_impl *impl,
                         brc_error *err)
{
    brc_impl_slot *slot = NULL;
    char *spec = NULL, *name = NULL, *owner = NULL;
    int rc;

    BRC_GO(brc_new((void **)&slot, sizeof(*slot), err));
    BRC_GO(brc_dup(&spec, codec_real_name(impl->spec), err));
    BRC_GO(brc_dup(&name, impl->name, err));
    BRC_GO(registry_dup_owner(&owner, reg, impl->owner, err));
    slot->impl = *impl;
    slot->impl.spec = spec;
    slot->impl.name = name;
    slot->impl.owner = owner;
    slot->core = reg->core;
    slot->plugin = registry_plugin_now(reg);
    slot->usable = impl->probe == NULL || impl->probe(impl->ctx) != 0;
    *out = slot;
    return BRC_OK;
done:
    free(spec);
    free(name);
    free(owner);
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
                            impl->name, impl->spec, registry_owner(other->impl.owner, other->core));
    }
    BRC_TRY(brc_grow_array((void **)&reg->impls, &reg->impls_cap, reg->nimpls + 1,
                           sizeof(*reg->impls), err));
    BRC_TRY(impl_slot_new(&slot, reg, impl, err));
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
    registry_copy_table(&copy, sizeof(copy), impl, impl->size);
    int rc = registry_put_impl(reg, &copy, err);
    if (rc < 0 && copy.destroy != NULL)
        copy.destroy(copy.ctx);
    return rc;
}

/* ---- life --------------------------------------------------------------------------- */

int brc_registry_new(brc_registry **out, brc_error *err)
{
    brc_registry *reg = NULL;
    int rc;

    *out = NULL;
    BRC_GO(brc_new((void **)&reg, sizeof(*reg), err));
    atomic_init(&reg->frozen, 0);
    reg->core = 1;
    BRC_GO(brc_registry_add_builtins(reg, err));
    reg->core = 0;
    *out = reg;
    return BRC_OK;
done:
    brc_registry_free(reg);
    return rc;
}

/* Implementations go before their specifications, as they came after them. */
void brc_registry_take_back(brc_registry *reg, size_t plugin)
{
    size_t kept = 0;

    for (size_t i = 0; i < reg->nimpls; i++) {
        if (reg->impls[i]->plugin == plugin)
            impl_slot_free(reg->impls[i]);
        else
            reg->impls[kept++] = reg->impls[i];
    }
    reg->nimpls = kept;
    kept = 0;
    for (size_t i = 0; i < reg->ncodecs; i++) {
        if (reg->codecs[i]->plugin == plugin)
            codec_slot_free(reg->codecs[i]);
        else
            reg->codecs[kept++] = reg->codecs[i];
    }
    reg->ncodecs = kept;
    kept = 0;
    for (size_t i = 0; i < reg->ndtypes; i++) {
        if (reg->dtypes[i]->plugin == plugin)
            dtype_slot_free(reg->dtypes[i]);
        else
            reg->dtypes[kept++] = reg->dtypes[i];
    }
    reg->ndtypes = kept;
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
    for (size_t i = 0; i < reg->ndtypes; i++)
        dtype_slot_free(reg->dtypes[i]);
    free(reg->impls);
    free(reg->codecs);
    free(reg->dtypes);
    brc_registry_close_plugins(reg);
    free(reg);
}

/* Freezing is the one change that users of a const registry make: several
 * repositories may be opened at once with one registry, hence the atomic. */
void brc_registry_freeze(const brc_registry *reg)
{
    atomic_store(&((brc_registry *)(uintptr_t)reg)->frozen, 1);
}
