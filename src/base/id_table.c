#include "id_table.h"

#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "hash.h"

/* A slot is an id and its value; one whose id is zero is free. */
static size_t slot_size(const brc_id_table *t)
{
    return sizeof(brc_oid) + (t->value_size + 7) / 8 * 8;
}

__extension__ typedef unsigned __int128 wide;

static uint64_t id_mix(uint64_t a, uint64_t b)
{
    wide product = (wide)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static size_t id_place(const brc_id_table *t, const brc_oid *id)
{
    uint64_t part[4];
    memcpy(part, id->bytes, sizeof(part));
    uint64_t h = id_mix(part[0] ^ t->seed[0], part[1] ^ t->seed[1]);
    h = id_mix(h ^ part[2] ^ t->seed[1], part[3] ^ t->seed[0]);
    return (size_t)h & (t->cap - 1);
}

/* The slot that holds the id, or the free one where it would be. */
static uint8_t *id_slot(const brc_id_table *t, const brc_oid *id)
{
    size_t size = slot_size(t), at = id_place(t, id);
    for (;;) {
        uint8_t *slot = (uint8_t *)t->slots + at * size;
        if (brc_oid_cmp((const brc_oid *)(void *)slot, id) == 0 ||
            brc_oid_is_zero((const brc_oid *)(void *)slot))
            return slot;
        at = (at + 1) & (t->cap - 1);
    }
}

void *brc_id_table_find(const brc_id_table *t, const brc_oid *id)
{
    if (t->n == 0)
        return NULL;
    uint8_t *slot = id_slot(t, id);
    return brc_oid_is_zero((const brc_oid *)(void *)slot) ? NULL : slot + sizeof(brc_oid);
}

static int id_table_grow(brc_id_table *t, brc_error *err)
{
    void *p;
    brc_id_table bigger = *t;
    size_t size = slot_size(t);
    bigger.cap = t->cap == 0 ? 64 : t->cap * 2;
    if (t->cap == 0) {
        BRC_TRY(brc_random(bigger.seed, sizeof(bigger.seed), err));
        bigger.seed[0] |= 1;
        bigger.seed[1] |= 1;
    }
    BRC_TRY(brc_new_array(&p, bigger.cap, size, err));
    bigger.slots = p;
    for (size_t i = 0; i < t->cap; i++) {
        const uint8_t *slot = (const uint8_t *)t->slots + i * size;
        if (!brc_oid_is_zero((const brc_oid *)(const void *)slot))
            memcpy(id_slot(&bigger, (const brc_oid *)(const void *)slot), slot, size);
    }
    free(t->slots);
    *t = bigger;
    return BRC_OK;
}

int brc_id_table_add(brc_id_table *t, const brc_oid *id, void **value, brc_error *err)
{
    if (t->max > 0 && t->n >= t->max) {
        memset(t->slots, 0, t->cap * slot_size(t));
        t->n = 0;
    }
    if ((t->n + 1) * 3 > t->cap * 2)
        BRC_TRY(id_table_grow(t, err));
    uint8_t *slot = id_slot(t, id);
    if (brc_oid_is_zero((const brc_oid *)(void *)slot)) {
        memcpy(slot, id, sizeof(*id));
        t->n++;
    }
    if (value != NULL)
        *value = slot + sizeof(brc_oid);
    return BRC_OK;
}

void brc_id_table_dispose(brc_id_table *t)
{
    free(t->slots);
    t->slots = NULL;
    t->n = t->cap = 0;
}
