#include "prototypes.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/buf.h"

/* ---- life -------------------------------- */

static void prototype_end(brc_prototype *p)
{
    const brc_buffer_prototype *t = &p->table;
    void *plugin = p->plugin;
    for (size_t i = 0; i < p->nspare; i++)
        free(p->spare[i]);
    if (p->is_open && t->close != NULL)
        t->close(t->ctx, p->state);
    if (t->destroy != NULL)
        t->destroy(t->ctx);
    free((void *)(uintptr_t)t->name);
    free((void *)(uintptr_t)t->staging);
    brc_origin_dispose(&p->origin);
    brc_lock_free(p->lock);
    free(p);
    if (plugin != NULL) /* last: until here its functions were called */
        brc_plugin_file_close(plugin);
}

void brc_prototype_release(brc_prototype *p)
{
    if (p != NULL && atomic_fetch_sub(&p->refs, 1) == 1)
        prototype_end(p);
}

void brc_prototypes_take_back(brc_prototype_list *list, size_t plugin)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->n; i++) {
        if (plugin == 0 || list->slots[i]->origin.plugin == plugin)
            brc_prototype_release(list->slots[i]);
        else
            list->slots[kept++] = list->slots[i];
    }
    list->n = kept;
    if (kept > 0)
        return;
    free(list->slots);
    *list = (brc_prototype_list){NULL, 0, 0};
}

/* ---- adding -------------------------------- */

static brc_prototype *prototype_find(const brc_prototype_list *list, const char *name, size_t len)
{
    for (size_t i = 0; i < list->n; i++) {
        const char *known = list->slots[i]->table.name;
        if (strlen(known) == len && memcmp(known, name, len) == 0)
            return list->slots[i];
    }
    return NULL;
}

static int prototype_admit(const brc_prototype_list *list, const brc_registrar *by,
                           const brc_buffer_prototype *t, brc_error *err)
{
    BRC_TRY(brc_registrar_admit(by, "buffer prototype", t->name, err));
    if (strchr(t->name, ':') != NULL)
        return brc_fail(err, BRC_EINVAL, "the buffer prototype \"%s\" has a colon in its name",
                        t->name);
    if (t->size < offsetof(brc_buffer_prototype, from_host) || t->alloc == NULL || t->free == NULL)
        return brc_fail(err, BRC_EINVAL,
                        "the buffer prototype \"%s\" lacks its alloc or free function", t->name);
    if (!(t->flags & BRC_PROTOTYPE_HOST) && (t->from_host == NULL || t->to_host == NULL))
        return brc_fail(err, BRC_EINVAL,
                        "the buffer prototype \"%s\" lacks its from_host or to_host function",
                        t->name);
    if ((t->record == NULL) != (t->wait == NULL))
        return brc_fail(err, BRC_EINVAL,
                        "the buffer prototype \"%s\" has only one of record and wait", t->name);
    const brc_prototype *taken = prototype_find(list, t->name, strlen(t->name));
    return taken == NULL ? BRC_OK
                         : brc_fail(err, BRC_EEXISTS,
                                    "the buffer prototype \"%s\" is already registered, by %s",
                                    t->name, brc_origin_words(&taken->origin));
}

static int prototype_put(brc_prototype_list *list, const brc_registrar *by,
                         const brc_buffer_prototype *t, brc_error *err)
{
    void *made = NULL;
    char *name = NULL, *staging = NULL;
    brc_plugin_entry *entry;
    int rc;
    BRC_TRY(prototype_admit(list, by, t, err));
    BRC_TRY(brc_grow_array((void **)&list->slots, &list->cap, list->n + 1, sizeof(*list->slots),
                           err));
    BRC_TRY(brc_new(&made, sizeof(brc_prototype), err));
    brc_prototype *p = made;
    BRC_GO(brc_lock_new(&p->lock, err));
    BRC_GO(brc_dup(&name, t->name, err));
    if (t->staging != NULL)
        BRC_GO(brc_dup(&staging, t->staging, err));
    if (by->loading != NULL) /* the memory may be there longer than the registry */
        BRC_GO(brc_plugin_file_open(&p->plugin, &entry, by->loading, err));
    BRC_GO(brc_origin_make(&p->origin, by, t->owner, err));
    p->table = *t;
    p->table.name = name;
    p->table.staging = staging;
    p->table.owner = p->origin.owner;
    atomic_init(&p->refs, 1);
    list->slots[list->n++] = p;
    return BRC_OK;
done:
    if (p->plugin != NULL)
        brc_plugin_file_close(p->plugin);
    brc_lock_free(p->lock);
    free(staging);
    free(name);
    free(made);
    return rc;
}

int brc_prototype_add(brc_prototype_list *list, const brc_registrar *by,
                      const brc_buffer_prototype *given, brc_error *err)
{
    brc_buffer_prototype copy;
    brc_table_copy(&copy, sizeof(copy), given, given->size);
    int rc = prototype_put(list, by, &copy, err);
    if (rc < 0 && copy.destroy != NULL)
        copy.destroy(copy.ctx);
    return rc;
}

/* ---- looking up -------------------------------- */

static int prototype_unknown(const brc_registry *reg, const char *name, brc_error *err)
{
    brc_buf names = BRC_BUF_INIT;
    int rc = BRC_OK;
    for (size_t i = 0; i < reg->prototypes.n && rc == BRC_OK; i++)
        rc = brc_buf_printf(&names, err, "%s%s", i > 0 ? ", " : "",
                            reg->prototypes.slots[i]->table.name);
    if (rc == BRC_OK)
        rc = brc_fail(err, BRC_EUNSUPPORTED,
                      "the buffer prototype \"%.80s\" is not known (known: %s); a plug-in may add "
                      "it",
                      name, names.data != NULL ? (const char *)names.data : "none");
    brc_buf_dispose(&names);
    return rc;
}

/* Reads "NAME" or "NAME:NUMBER". */
static int prototype_named(brc_prototype **out, uint32_t *device_id, const brc_registry *reg,
                           const char *name, brc_error *err)
{
    enum { MOST_DEVICES = 65536 };
    if (name == NULL)
        name = "host";
    const size_t len = strcspn(name, ":");
    *device_id = 0;
    *out = prototype_find(&reg->prototypes, name, len);
    if (*out == NULL)
        return prototype_unknown(reg, name, err);
    if (name[len] == '\0')
        return BRC_OK;
    for (const char *at = name + len + 1; *at != '\0' || at == name + len + 1; at++) {
        if (*at < '0' || *at > '9' || *device_id >= MOST_DEVICES)
            return brc_fail(err, BRC_EINVAL,
                            "\"%.80s\" does not name a device: after the colon comes its number",
                            name);
        *device_id = *device_id * 10 + (uint32_t)(*at - '0');
    }
    return BRC_OK;
}

static int prototype_open(brc_prototype *p, brc_error *err)
{
    int rc = BRC_OK;
    brc_lock_enter(p->lock);
    if (!p->is_open && p->table.open != NULL)
        rc = p->table.open(p->table.ctx, &p->state, err);
    p->is_open |= rc == BRC_OK;
    brc_lock_leave(p->lock);
    if (rc < 0)
        return rc;
    atomic_fetch_add(&p->refs, 1);
    return BRC_OK;
}

int brc_prototype_use(brc_prototype **out, uint32_t *device_id, const brc_registry *reg,
                      const char *name, brc_error *err)
{
    BRC_TRY(prototype_named(out, device_id, reg, name, err));
    return prototype_open(*out, err);
}

int brc_prototype_check(const brc_registry *reg, const char *name, brc_error *err)
{
    brc_prototype *found;
    uint32_t device_id;
    return prototype_named(&found, &device_id, reg, name, err);
}

static brc_prototype *prototype_with(const brc_registry *reg, uint32_t device)
{
    for (size_t i = 0; i < reg->prototypes.n; i++)
        if (reg->prototypes.slots[i]->table.device == device)
            return reg->prototypes.slots[i];
    return NULL;
}

int brc_prototype_of_device(brc_prototype **out, const brc_registry *reg, uint32_t device,
                            brc_error *err)
{
    *out = prototype_with(reg, device);
    return *out != NULL ? prototype_open(*out, err)
                        : brc_fail(err, BRC_EUNSUPPORTED,
                                   "no buffer prototype copies memory of device %u: a plug-in may "
                                   "add one, or copy the elements to host memory first",
                                   (unsigned)device);
}

int brc_prototype_is_host(const brc_registry *reg, uint32_t device)
{
    const brc_prototype *p = prototype_with(reg, device);
    return p != NULL && (p->table.flags & BRC_PROTOTYPE_HOST);
}

int brc_registry_each_prototype(const brc_registry *reg, size_t i, brc_prototype_info *out)
{
    if (i >= reg->prototypes.n)
        return 0;
    const brc_prototype *p = reg->prototypes.slots[i];
    *out = (brc_prototype_info){p->table.name, p->table.device, brc_origin_name(&p->origin)};
    return 1;
}

/* ---- memory -------------------------------- */

int brc_prototype_alloc(brc_prototype *p, brc_block *out, size_t len, uint32_t device_id,
                        uint32_t flags, void *stream, brc_buffer_stats *stats, brc_error *err)
{
    *out = (brc_block){
        .size = sizeof(*out), .device = p->table.device, .device_id = device_id};
    int rc = p->table.alloc(p->table.ctx, p->state, len, flags, stream, out, err);
    if (rc < 0) {
        brc_context(err, "the buffer prototype \"%s\"", p->table.name);
        return rc;
    }
    if (stats == NULL)
        return BRC_OK;
    stats->blocks++;
    stats->allocations += (out->flags & BRC_BLOCK_NEW) != 0;
    stats->spilled += (out->flags & BRC_BLOCK_SPILLED) != 0;
    return BRC_OK;
}

void brc_prototype_free(brc_prototype *p, const brc_block *block)
{
    p->table.free(p->table.ctx, p->state, block);
}
