/*
 * Backends by name, and their specifications: {"name":...,"configuration":{...}}.
 *
 * Invariant: equal options give equal text, in the full form that the backend itself writes; so
 * texts are compared, and an array's storage options have one form.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/buf.h"
#include "../base/json.h"
#include "../base/json_escape.h"
#include "registry_slots.h"

/* ---- adding -------------------------------- */

static void backend_slot_free(brc_backend_slot *slot)
{
    if (slot->backend.destroy != NULL)
        slot->backend.destroy(slot->backend.ctx);
    free((void *)(uintptr_t)slot->backend.name);
    brc_origin_dispose(&slot->origin);
    free(slot);
}

static int backend_admit(const brc_registry *reg, const brc_backend *b, brc_error *err)
{
    BRC_TRY(brc_registrar_admit(&reg->by, "backend", b->name, err));
    if (b->size < offsetof(brc_backend, put) || b->check == NULL || b->open == NULL ||
        b->fetch == NULL)
        return brc_fail(err, BRC_EINVAL,
                        "the backend \"%s\" lacks its check, open or fetch function", b->name);
    if (strcmp(b->name, BRC_INLINE) == 0)
        return brc_fail(err, BRC_EEXISTS,
                        "the backend \"%s\" is already there, from breccia itself", b->name);
    for (size_t i = 0; i < reg->nbackends; i++)
        if (strcmp(reg->backends[i]->backend.name, b->name) == 0)
            return brc_fail(err, BRC_EEXISTS, "the backend \"%s\" is already there, from %s",
                            b->name, brc_origin_words(&reg->backends[i]->origin));
    return BRC_OK;
}

static int registry_put_backend(brc_registry *reg, const brc_backend *b, brc_error *err)
{
    brc_backend_slot *slot = NULL;
    char *name = NULL;
    int rc;
    BRC_TRY(backend_admit(reg, b, err));
    BRC_TRY(brc_grow_array((void **)&reg->backends, &reg->backends_cap, reg->nbackends + 1,
                           sizeof(*reg->backends), err));
    BRC_GO(brc_new((void **)&slot, sizeof(*slot), err));
    BRC_GO(brc_dup(&name, b->name, err));
    BRC_GO(brc_origin_make(&slot->origin, &reg->by, b->owner, err));
    slot->backend = *b;
    slot->backend.name = name;
    slot->backend.owner = slot->origin.owner;
    reg->backends[reg->nbackends++] = slot;
    return BRC_OK;
done:
    free(name);
    free(slot);
    return rc;
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

void brc_registry_take_back_backends(brc_registry *reg, size_t plugin)
{
    size_t kept = 0;
    for (size_t i = 0; i < reg->nbackends; i++) {
        if (reg->backends[i]->origin.plugin == plugin)
            backend_slot_free(reg->backends[i]);
        else
            reg->backends[kept++] = reg->backends[i];
    }
    reg->nbackends = kept;
}

void brc_registry_free_backends(brc_registry *reg)
{
    for (size_t i = 0; i < reg->nbackends; i++)
        backend_slot_free(reg->backends[i]);
    free(reg->backends);
}

/* ---- looking up -------------------------------- */

const brc_backend *brc_registry_backend(const brc_registry *reg, const char *name)
{
    for (size_t i = 0; i < reg->nbackends; i++)
        if (strcmp(reg->backends[i]->backend.name, name) == 0)
            return &reg->backends[i]->backend;
    return NULL;
}

int brc_registry_each_backend(const brc_registry *reg, size_t i, brc_backend_info *out)
{
    if (i > reg->nbackends)
        return 0;
    *out = (brc_backend_info){.name = BRC_INLINE, .owner = "breccia"};
    if (i == 0)
        return 1;
    const brc_backend_slot *slot = reg->backends[i - 1];
    out->name = slot->backend.name;
    out->flags = slot->backend.put == NULL ? BRC_BACKEND_INFO_READ_ONLY : 0;
    out->owner = brc_origin_name(&slot->origin);
    return 1;
}

static int backend_unknown(const brc_registry *reg, const char *name, brc_error *err)
{
    brc_buf names = BRC_BUF_INIT;
    int rc = brc_buf_printf(&names, err, "%s", BRC_INLINE);
    for (size_t i = 0; i < reg->nbackends && rc == BRC_OK; i++)
        rc = brc_buf_printf(&names, err, ", %s", reg->backends[i]->backend.name);
    if (rc == BRC_OK)
        rc = brc_fail(err, BRC_EUNSUPPORTED,
                      "the backend \"%.80s\" is not known here (what is: %s); a plug-in may add it",
                      name, (const char *)names.data);
    brc_buf_dispose(&names);
    return rc;
}

/* ---- specifications -------------------------------- */

int brc_backend_parse(const brc_json *json, const char **name, const brc_json **config,
                      brc_error *err)
{
    static const char *const known[] = {"name", "configuration"};
    *config = NULL;
    if (brc_json_text(json, name) && **name != '\0')
        return BRC_OK;
    if (brc_json_kind(json) != BRC_JSON_OBJECT)
        return brc_fail(err, BRC_EINVAL, "a backend is a name, or an object with \"name\" and "
                                         "\"configuration\"");
    BRC_TRY(brc_json_allow(json, known, 2, err));
    if (!brc_json_text(brc_json_member(json, "name"), name) || **name == '\0')
        return brc_fail(err, BRC_EINVAL, "a backend needs its \"name\", a string");
    *config = brc_json_member(json, "configuration");
    if (*config != NULL && brc_json_kind(*config) != BRC_JSON_OBJECT)
        return brc_fail(err, BRC_EINVAL, "the \"configuration\" of the backend \"%.80s\" must be "
                                         "an object",
                        *name);
    return BRC_OK;
}

static int full_config(const brc_registry *reg, const char *name, const brc_json *config,
                       brc_buf *out, brc_error *err)
{
    if (strcmp(name, BRC_INLINE) == 0)
        return config != NULL ? brc_json_allow(config, NULL, 0, err) : BRC_OK;
    const brc_backend *b = brc_registry_backend(reg, name);
    return b != NULL ? b->check(b->ctx, config, out, err) : backend_unknown(reg, name, err);
}

int brc_backend_full(const brc_registry *reg, const brc_json *json, brc_buf *out, brc_error *err)
{
    const char *name;
    const brc_json *config;
    brc_buf full = BRC_BUF_INIT;
    int rc;
    BRC_TRY(brc_backend_parse(json, &name, &config, err));
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
