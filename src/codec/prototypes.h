/*
 * Buffer prototypes of a registry, at work: found by name or device, opened at their first use, and
 * kept as long as the registry or any memory of theirs is there.
 */
#ifndef BRC_CODEC_PROTOTYPES_H
#define BRC_CODEC_PROTOTYPES_H

#include <stdatomic.h>

#include "../base/pool.h"
#include "../breccia_buffer.h"
#include "registry.h"

#define BRC_SPARE_MAX 16

typedef struct brc_prototype {
    brc_buffer_prototype table; /* the slot owns its strings                    */
    brc_origin origin;
    atomic_size_t refs; /* the registry, and whoever uses it                     */
    brc_lock *lock;     /* of what follows                                      */
    int is_open;
    void *state;
    void *plugin;       /* the handle that keeps a plug-in loaded; NULL: none   */
    void *spare[BRC_SPARE_MAX]; /* memory of one size, for whoever uses it: free(3) releases it */
    size_t nspare;
} brc_prototype;

BRC_MUST_USE int brc_prototype_add(brc_prototype_list *list, const brc_registrar *by, const brc_buffer_prototype *given,
                                   brc_error *err);
/* Removes those that the plug-in of this number has added; 0: all. */
void brc_prototypes_take_back(brc_prototype_list *list, size_t plugin);

/* Finds the prototype of a name ("cuda", "cuda:1"; NULL: "host"), opens it and adds a reference. *device_id is the
 * number in the name, or 0. BRC_EUNSUPPORTED: the name is not known, or the machine has no such memory. */
BRC_MUST_USE int brc_prototype_use(brc_prototype **out, uint32_t *device_id, const brc_registry *reg, const char *name,
                                   brc_error *err);
/* Finds the first prototype that has a device, likewise. */
BRC_MUST_USE int brc_prototype_of_device(brc_prototype **out, const brc_registry *reg, uint32_t device, brc_error *err);
/* Checks a name without opening the prototype. */
BRC_MUST_USE int brc_prototype_check(const brc_registry *reg, const char *name, brc_error *err);
int brc_prototype_is_host(const brc_registry *reg, uint32_t device);
/* Returns 1 if the processor may read and write all memory of the device. 1 is DLPack's number of the host. */
static inline int brc_device_is_host(const brc_registry *reg, uint32_t device)
{
    return device == BRC_MEMORY_HOST || device == 1 || brc_prototype_is_host(reg, device);
}
void brc_prototype_release(brc_prototype *p);

/* Allocates, and counts that if `stats` is not NULL. */
BRC_MUST_USE int brc_prototype_alloc(brc_prototype *p, brc_block *out, size_t len, uint32_t device_id, uint32_t flags,
                                     void *stream, brc_buffer_stats *stats, brc_error *err);
void brc_prototype_free(brc_prototype *p, const brc_block *block);

/* Describes the i-th prototype, for listing. Returns 0 past the end. */
int brc_registry_each_prototype(const brc_registry *reg, size_t i, brc_prototype_info *out);

#endif
