#include "registry.h"

#include "../breccia_pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/buf.h"
#include "../base/json.h"
#include "../base/sized.h"
#include "prototypes.h"

static void named_free_all(brc_named_list *list);
static void named_take_back(brc_named_list *list, size_t plugin);

/* ==== registry ================================ */

/*
 * The registry: its entries, and the rules for adding to it.
 *
 * Invariant: a name means one specification for as long as the registry lives.
 * Entries are not replaced or removed, and every table is copied, so that a
 * plug-in may change its own copy later without any effect here.
 */

/* ---- looking up --------------------------------------------------------------------- */

/* Compares names. Each opening fills a registry with a hundred of them. */
static inline int equal_names(const char *a, const char *b)
{
    return *a == *b && strcmp(a, b) == 0;
}

static brc_codec_slot *registry_find_codec(const brc_registry *reg, const char *name)
{
    for (size_t i = 0; i < reg->ncodecs; i++)
        if (equal_names(reg->codecs[i]->entry.spec.name, name))
            return reg->codecs[i];
    for (size_t i = 0; i < reg->naliases; i++)
        if (equal_names(reg->aliases[i].name, name))
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

/* Says why an implementation is chosen for its memory, or is not. */
static const char *impl_reason(const brc_codec_entry *entry, const brc_impl_slot *slot,
                               const brc_codec_impl *chosen)
{
    if (!slot->usable)
        return slot->impl.why_not != NULL ? slot->impl.why_not : "cannot run here";
    if (entry->pinned == &slot->impl)
        return "pinned";
    if (chosen == &slot->impl)
        return "the highest rank";
    if (entry->pinned == chosen)
        return "another one is pinned";
    return slot->impl.rank < chosen->rank ? "a lower rank" : "the same rank, but added later";
}

const brc_codec_impl *brc_registry_impl(const brc_registry *reg, const brc_codec_entry *entry,
                                        int device)
{
    if (device != BRC_MEMORY_HOST && reg->nthere == 0)
        return NULL;
    if (entry->pinned != NULL && entry->pinned->memory == device)
        return entry->pinned;
    for (size_t i = 0; i < reg->nimpls; i++) {
        const brc_impl_slot *slot = reg->impls[i];
        if (slot->usable && slot->impl.memory == device &&
            equal_names(slot->impl.spec, entry->spec.name))
            return &slot->impl;
    }
    return NULL;
}

int brc_registry_each(const brc_registry *reg, size_t i, brc_codec_info *out)
{
    if (i >= reg->nimpls)
        return 0;
    const brc_impl_slot *slot = reg->impls[i];
    const brc_codec_entry *entry = brc_registry_codec(reg, slot->impl.spec);
    const brc_codec_impl *chosen = brc_registry_impl(reg, entry, slot->impl.memory);
    *out = (brc_codec_info){
        .name = slot->impl.spec,
        .kind = codec_kind_name(entry->spec.kind),
        .implementation = slot->impl.name,
        .rank = slot->impl.rank,
        .flags = (slot->usable ? BRC_IMPL_USABLE : 0) |
                 (chosen == &slot->impl ? BRC_IMPL_CHOSEN : 0) |
                 (entry->pinned == &slot->impl ? BRC_IMPL_PINNED : 0),
        .owner = brc_origin_name(&slot->origin),
        .device = (uint32_t)slot->impl.memory,
        .why = impl_reason(entry, slot, chosen),
        .cost = slot->impl.cost,
        .call_cost = slot->impl.call_cost,
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

/* Frees a string of a slot. The slot owns its strings; the tables declare them const for users. */
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
        return brc_fail(err, BRC_EEXISTS, "the codec \"%s\" is already registered: \"%s\" from %s",
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
    registry_free_text(slot->impl.why_not);
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
        return brc_fail(err, BRC_EEXISTS, "the codec \"%s\" is already registered: \"%s\" from %s",
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
    if (impl->memory != BRC_MEMORY_HOST && impl->memory != 1)
        return impl->decode_there != NULL
                   ? BRC_OK
                   : brc_fail(err, BRC_EINVAL,
                              "the implementation \"%s\" is for memory of device %d, and lacks its "
                              "decode_there function",
                              impl->name, impl->memory);
    if (impl->size < offsetof(brc_codec_impl, encode_batch) || impl->encode == NULL ||
        impl->decode == NULL)
        return brc_fail(err, BRC_EINVAL,
                        "the implementation \"%s\" lacks its encode or decode function",
                        impl->name);
    return BRC_OK;
}

static int impl_slot_new(brc_impl_slot **out, const brc_registry *reg, const brc_codec_slot *codec,
                         const brc_codec_impl *impl, brc_error *err)
{
    brc_impl_slot *slot = NULL;
    char *spec = NULL, *name = NULL, *why_not = NULL;
    int rc;

    BRC_GO(brc_new((void **)&slot, sizeof(*slot), err));
    BRC_GO(brc_dup(&spec, codec->entry.spec.name, err));
    BRC_GO(brc_dup(&name, impl->name, err));
    if (impl->why_not != NULL)
        BRC_GO(brc_dup(&why_not, impl->why_not, err));
    BRC_GO(brc_origin_make(&slot->origin, &reg->by, impl->owner, err));
    slot->impl = *impl;
    slot->impl.spec = spec;
    slot->impl.name = name;
    slot->impl.why_not = why_not;
    slot->impl.owner = slot->origin.owner;
    if (slot->impl.memory == 1) /* DLPack's number of the host */
        slot->impl.memory = BRC_MEMORY_HOST;
    slot->usable = impl->probe == NULL || impl->probe(impl->ctx) != 0;
    *out = slot;
    return BRC_OK;
done:
    free(spec);
    free(name);
    free(why_not);
    free(slot);
    return rc;
}

static int impl_goes_before(const brc_impl_slot *a, const brc_impl_slot *b)
{
    const int first = (uint8_t)*a->impl.spec - (uint8_t)*b->impl.spec;
    const int by_spec = first != 0 ? first : strcmp(a->impl.spec, b->impl.spec);

    return by_spec < 0 || (by_spec == 0 && a->impl.rank > b->impl.rank);
}

/* Chooses the pinned implementation, or else the first usable one in the order of the list: of
 * equal ranks the earlier one. */
static void registry_choose(const brc_registry *reg, brc_codec_entry *entry)
{
    entry->impl = brc_registry_impl(reg, entry, BRC_MEMORY_HOST);
}

static int registry_put_impl(brc_registry *reg, const brc_codec_impl *impl, brc_error *err)
{
    brc_impl_slot *slot = NULL;

    BRC_TRY(impl_check(reg, impl, err));
    brc_codec_slot *codec = registry_find_codec(reg, impl->spec);
    for (size_t i = 0; i < reg->nimpls; i++) {
        const brc_impl_slot *other = reg->impls[i];
        if (equal_names(other->impl.spec, codec->entry.spec.name) &&
            equal_names(other->impl.name, impl->name))
            return brc_fail(err, BRC_EEXISTS,
                            "the implementation \"%s\" of \"%s\" is already registered, by %s",
                            impl->name, impl->spec, brc_origin_words(&other->origin));
    }
    BRC_TRY(brc_grow_array((void **)&reg->impls, &reg->impls_cap, reg->nimpls + 1,
                           sizeof(*reg->impls), err));
    BRC_TRY(impl_slot_new(&slot, reg, codec, impl, err));
    size_t at = reg->nimpls++;
    for (; at > 0 && impl_goes_before(slot, reg->impls[at - 1]); at--)
        reg->impls[at] = reg->impls[at - 1];
    reg->impls[at] = slot;
    reg->nthere += slot->impl.memory != BRC_MEMORY_HOST;
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

int brc_registry_pin(brc_registry *reg, const char *codec, const char *implementation,
                     brc_error *err)
{
    if (reg == NULL || codec == NULL)
        return brc_fail(err, BRC_EINVAL, "a registry and a codec are needed");
    if (atomic_load(&reg->by.frozen))
        return brc_fail(err, BRC_EMISUSE,
                        "the registry is in use: choose implementations before the first "
                        "brc_open()");
    brc_codec_slot *slot = registry_find_codec(reg, codec);
    const brc_impl_slot *found = NULL;
    for (size_t i = 0; slot != NULL && implementation != NULL && i < reg->nimpls; i++)
        if (equal_names(reg->impls[i]->impl.spec, slot->entry.spec.name) &&
            equal_names(reg->impls[i]->impl.name, implementation))
            found = reg->impls[i];
    if (slot == NULL)
        return brc_fail(err, BRC_ENOTFOUND, "the codec \"%s\" is not known", codec);
    if (implementation != NULL && found == NULL)
        return brc_fail(err, BRC_ENOTFOUND, "the codec \"%s\" has no implementation \"%s\"", codec,
                        implementation);
    if (found != NULL && !found->usable)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "the implementation \"%s\" of \"%s\" cannot run here%s%s", implementation,
                        codec, found->impl.why_not != NULL ? ": " : "",
                        found->impl.why_not != NULL ? found->impl.why_not : "");
    slot->entry.pinned = found != NULL ? &found->impl : NULL;
    registry_choose(reg, &slot->entry);
    return BRC_OK;
}

int brc_registry_add_prototype(brc_registry *reg, const brc_buffer_prototype *prototype,
                               brc_error *err)
{
    if (reg == NULL || prototype == NULL)
        return brc_fail(err, BRC_EINVAL, "a registry and a buffer prototype are needed");
    return brc_prototype_add(&reg->prototypes, &reg->by, prototype, err);
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

static void registry_drop_impl(brc_registry *reg, brc_impl_slot *slot)
{
    brc_codec_slot *codec = registry_find_codec(reg, slot->impl.spec);
    if (codec->entry.pinned == &slot->impl)
        codec->entry.pinned = NULL;
    reg->nthere -= slot->impl.memory != BRC_MEMORY_HOST;
    impl_slot_free(slot);
}

/* Removes implementations before their specifications: the reverse of the order of adding. */
void brc_registry_take_back(brc_registry *reg, size_t plugin)
{
    size_t kept = 0;

    for (size_t i = 0; i < reg->nimpls; i++) {
        if (reg->impls[i]->origin.plugin == plugin)
            registry_drop_impl(reg, reg->impls[i]);
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
    named_take_back(&reg->backends, plugin);
    named_take_back(&reg->pipelines, plugin);
    brc_prototypes_take_back(&reg->prototypes, plugin);
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
    named_free_all(&reg->backends);
    named_free_all(&reg->pipelines);
    brc_prototypes_take_back(&reg->prototypes, 0);
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

/* Freezes the registry. This is the only change that users of a const registry make; `frozen` is
 * atomic because several repositories may be opened at once with one registry. */
void brc_registry_freeze(const brc_registry *reg)
{
    atomic_store(&((brc_registry *)(uintptr_t)reg)->by.frozen, 1);
}

/* ==== registry named ================================ */

/*
 * Backends and pipelines by name, and their specifications: {"name":...,"configuration":{...}}.
 *
 * Invariant: equal options of backends give equal text, in the full form that the backend itself
 * writes; so texts are compared, and an array's storage options have one form.
 */

/* ---- slots -------------------------------- */

static void named_free(brc_named_slot *slot)
{
    if (slot->destroy != NULL)
        slot->destroy(slot->ctx);
    free((void *)(uintptr_t)slot->name);
    free(slot->table);
    brc_origin_dispose(&slot->origin);
    free(slot);
}

static void named_free_all(brc_named_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        named_free(list->slots[i]);
    free(list->slots);
}

/* Removes what the plug-in has added. */
static void named_take_back(brc_named_list *list, size_t plugin)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->n; i++) {
        if (list->slots[i]->origin.plugin == plugin)
            named_free(list->slots[i]);
        else
            list->slots[kept++] = list->slots[i];
    }
    list->n = kept;
}

static brc_named_slot *named_find(const brc_named_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (equal_names(list->slots[i]->name, name))
            return list->slots[i];
    return NULL;
}

/* Fails if the name is not valid or taken, by what is in the list or by breccia's `own`. */
static int named_admit(const brc_registry *reg, const brc_named_list *list, const char *what,
                       const char *name, const char *own, brc_error *err)
{
    BRC_TRY(brc_registrar_admit(&reg->by, what, name, err));
    const brc_named_slot *taken = named_find(list, name);
    const int is_own = own != NULL && equal_names(name, own);
    return taken == NULL && !is_own
               ? BRC_OK
               : brc_fail(err, BRC_EEXISTS, "the %s \"%s\" is already registered, by %s", what,
                          name, is_own ? "breccia itself" : brc_origin_words(&taken->origin));
}

/* Adds a slot with a table of `size` bytes, which the caller fills in. */
static int named_slot(const brc_registry *reg, brc_named_list *list, const char *name,
                     const char *owner, size_t size, brc_named_slot **out, brc_error *err)
{
    brc_named_slot *slot = NULL;
    void *table = NULL;
    char *copy = NULL;
    int rc;
    BRC_TRY(brc_grow_array((void **)&list->slots, &list->cap, list->n + 1, sizeof(*list->slots),
                           err));
    BRC_GO(brc_new((void **)&slot, sizeof(*slot), err));
    BRC_GO(brc_new(&table, size, err));
    BRC_GO(brc_dup(&copy, name, err));
    BRC_GO(brc_origin_make(&slot->origin, &reg->by, owner, err));
    slot->name = copy;
    slot->table = table;
    list->slots[list->n++] = *out = slot;
    return BRC_OK;
done:
    free(copy);
    free(table);
    free(slot);
    return rc;
}

/* `first`: a known name that is not in the list; NULL: none. */
static int named_unknown(const brc_named_list *list, const char *what, const char *name,
                         const char *first, brc_error *err)
{
    brc_buf names = BRC_BUF_INIT;
    int rc = brc_buf_printf(&names, err, "%s", first != NULL ? first : "");
    for (size_t i = 0; i < list->n && rc == BRC_OK; i++)
        rc = brc_buf_printf(&names, err, "%s%s", names.len > 0 ? ", " : "", list->slots[i]->name);
    if (rc == BRC_OK)
        rc = brc_fail(err, BRC_EUNSUPPORTED,
                      "the %s \"%.80s\" is not known (known: %s); a plug-in may add it", what,
                      name, (const char *)names.data);
    brc_buf_dispose(&names);
    return rc;
}

int brc_spec_read(brc_json **out, const char *text, brc_error *err)
{
    const char *at = text + strspn(text, " \t\r\n");
    int rc = brc_json_parse(out, text, strlen(text), 0, strchr("{[\"", *at) != NULL ? err : NULL);
    if (rc != BRC_EINVAL || strchr("{[\"", *at) != NULL)
        return rc;
    *out = brc_json_new_string(text);
    return *out != NULL ? BRC_OK : brc_nomem(err);
}

int brc_spec_parse(const char *what, const brc_json *json, const char **name,
                    const brc_json **config, brc_error *err)
{
    static const char *const known[] = {"name", "configuration"};
    *config = NULL;
    if (brc_json_text(json, name) && **name != '\0')
        return BRC_OK;
    if (brc_json_kind(json) != BRC_JSON_OBJECT)
        return brc_fail(err, BRC_EINVAL, "a %s is a name, or an object with \"name\" and "
                                         "\"configuration\"",
                        what);
    BRC_TRY(brc_json_allow(json, known, 2, err));
    if (!brc_json_text(brc_json_member(json, "name"), name) || **name == '\0')
        return brc_fail(err, BRC_EINVAL, "a %s needs its \"name\", a string", what);
    *config = brc_json_member(json, "configuration");
    if (*config != NULL && brc_json_kind(*config) != BRC_JSON_OBJECT)
        return brc_fail(err, BRC_EINVAL, "the \"configuration\" of the %s \"%.80s\" must be "
                                         "an object",
                        what, *name);
    return BRC_OK;
}

/* ---- backends -------------------------------- */

static int registry_put_backend(brc_registry *reg, const brc_backend *b, brc_error *err)
{
    brc_named_slot *slot;
    BRC_TRY(named_admit(reg, &reg->backends, "backend", b->name, BRC_INLINE, err));
    if (b->size < offsetof(brc_backend, put) || b->check == NULL || b->open == NULL ||
        b->fetch == NULL)
        return brc_fail(err, BRC_EINVAL,
                        "the backend \"%s\" lacks its check, open or fetch function", b->name);
    BRC_TRY(named_slot(reg, &reg->backends, b->name, b->owner, sizeof(*b), &slot, err));
    brc_backend *own = slot->table;
    *own = *b;
    own->name = slot->name;
    own->owner = slot->origin.owner;
    slot->ctx = b->ctx;
    slot->destroy = b->destroy;
    return BRC_OK;
}

int brc_registry_add_backend(brc_registry *reg, const brc_backend *backend, brc_error *err)
{
    brc_backend copy;
    if (reg == NULL || backend == NULL)
        return brc_fail(err, BRC_EINVAL, "a registry and a backend are needed");
    brc_table_copy(&copy, sizeof(copy), backend, backend->size);
    int rc = registry_put_backend(reg, &copy, err);
    if (rc < 0 && copy.destroy != NULL)
        copy.destroy(copy.ctx);
    return rc;
}

const brc_backend *brc_registry_backend(const brc_registry *reg, const char *name)
{
    const brc_named_slot *slot = named_find(&reg->backends, name);
    return slot != NULL ? slot->table : NULL;
}

int brc_registry_each_backend(const brc_registry *reg, size_t i, brc_backend_info *out)
{
    if (i > reg->backends.n)
        return 0;
    *out = (brc_backend_info){.name = BRC_INLINE, .owner = "breccia"};
    if (i == 0)
        return 1;
    const brc_named_slot *slot = reg->backends.slots[i - 1];
    out->name = slot->name;
    out->flags = ((const brc_backend *)slot->table)->put == NULL ? BRC_BACKEND_INFO_READ_ONLY : 0;
    out->owner = brc_origin_name(&slot->origin);
    return 1;
}

int brc_backend_takes(const brc_registry *reg, const brc_json *spec, brc_error *err)
{
    const char *name;
    const brc_json *config;
    BRC_TRY(brc_spec_parse("backend", spec, &name, &config, err));
    const brc_backend *b = brc_registry_backend(reg, name);
    return b == NULL || b->put != NULL
               ? BRC_OK
               : brc_fail(err, BRC_EUNSUPPORTED,
                          "the backend \"%.80s\" is read-only, so new chunks cannot go there: "
                          "choose another",
                          name);
}

static int full_config(const brc_registry *reg, const char *name, const brc_json *config,
                       brc_buf *out, brc_error *err)
{
    if (equal_names(name, BRC_INLINE))
        return config != NULL ? brc_json_allow(config, NULL, 0, err) : BRC_OK;
    const brc_backend *b = brc_registry_backend(reg, name);
    return b != NULL ? b->check(b->ctx, config, out, err)
                     : named_unknown(&reg->backends, "backend", name, BRC_INLINE, err);
}

int brc_backend_full(const brc_registry *reg, const brc_json *json, brc_buf *out, brc_error *err)
{
    const char *name;
    const brc_json *config;
    brc_buf full = BRC_BUF_INIT;
    int rc;
    BRC_TRY(brc_spec_parse("backend", json, &name, &config, err));
    rc = full_config(reg, name, config, &full, err);
    if (rc < 0) {
        if (rc == BRC_EINVAL)
            brc_context(err, "the backend \"%.80s\"", name);
        goto done;
    }
    BRC_GO(brc_buf_text(out, "{\"name\":", err));
    BRC_GO(brc_json_quote(out, name, strlen(name), err));
    if (full.len > 0) {
        BRC_GO(brc_buf_text(out, ",\"configuration\":", err));
        BRC_GO(brc_buf_append(out, full.data, full.len, err));
    }
    rc = brc_buf_printf(out, err, "}");
done:
    brc_buf_dispose(&full);
    return rc;
}

/* ---- pipelines -------------------------------- */

static int registry_put_pipeline(brc_registry *reg, const brc_pipeline *p, brc_error *err)
{
    brc_named_slot *slot;
    BRC_TRY(named_admit(reg, &reg->pipelines, "pipeline", p->name, NULL, err));
    if (p->size < offsetof(brc_pipeline, destroy))
        return brc_fail(err, BRC_EINVAL, "the pipeline \"%s\" has a size that no version has",
                        p->name);
    BRC_TRY(brc_flags_check(p->flags, BRC_PIPELINE_CALLER, "a pipeline", err));
    BRC_TRY(named_slot(reg, &reg->pipelines, p->name, p->owner, sizeof(*p), &slot, err));
    brc_pipeline *own = slot->table;
    *own = *p;
    own->name = slot->name;
    own->owner = slot->origin.owner;
    slot->ctx = p->ctx;
    slot->destroy = p->destroy;
    return BRC_OK;
}

int brc_registry_add_pipeline(brc_registry *reg, const brc_pipeline *pipeline, brc_error *err)
{
    brc_pipeline copy;
    if (reg == NULL || pipeline == NULL)
        return brc_fail(err, BRC_EINVAL, "a registry and a pipeline are needed");
    brc_table_copy(&copy, sizeof(copy), pipeline, pipeline->size);
    int rc = registry_put_pipeline(reg, &copy, err);
    if (rc < 0 && copy.destroy != NULL)
        copy.destroy(copy.ctx);
    return rc;
}

int brc_registry_pipeline(const brc_pipeline **out, const brc_registry *reg, const char *name,
                          brc_error *err)
{
    const brc_named_slot *slot = named_find(&reg->pipelines, name);
    *out = slot != NULL ? slot->table : NULL;
    return slot != NULL ? BRC_OK : named_unknown(&reg->pipelines, "pipeline", name, NULL, err);
}

int brc_registry_each_pipeline(const brc_registry *reg, size_t i, brc_pipeline_info *out)
{
    if (i >= reg->pipelines.n)
        return 0;
    const brc_named_slot *slot = reg->pipelines.slots[i];
    *out = (brc_pipeline_info){.name = slot->name, .owner = brc_origin_name(&slot->origin)};
    return 1;
}
