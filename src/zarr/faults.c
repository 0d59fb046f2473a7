/* What fsck has found, by id. */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "fsck.h"

void brc_faults_dispose(brc_faults *faults)
{
    brc_fault *items = faults->items;
    for (size_t i = 0; i < faults->n; i++) {
        for (size_t j = 0; j < items[i].nused_by; j++)
            free(((char **)items[i].used_by)[j]);
        free(items[i].used_by);
        free(items[i].message);
    }
    free(items);
    brc_id_table_dispose(&faults->by_id);
    faults->items = NULL;
    faults->n = faults->cap = 0;
}

brc_fault *brc_faults_find(const brc_faults *faults, const brc_oid *id)
{
    const size_t *at = brc_oid_is_zero(id) ? NULL : brc_id_table_find(&faults->by_id, id);
    return at != NULL ? &((brc_fault *)faults->items)[*at] : NULL;
}

int brc_faults_add(brc_faults *faults, const brc_oid *id, int kind, int missing,
                   const char *message, brc_fault **out, brc_error *err)
{
    void *value;
    size_t known = faults->by_id.n;
    BRC_TRY(brc_grow_array(&faults->items, &faults->cap, faults->n + 1, sizeof(brc_fault), err));
    brc_fault *f = &((brc_fault *)faults->items)[faults->n];
    memset(f, 0, sizeof(*f));
    f->id = *id;
    f->kind = kind;
    f->missing = missing;
    if (!brc_oid_is_zero(id)) {
        BRC_TRY(brc_id_table_add(&faults->by_id, id, &value, err));
        if (faults->by_id.n > known)
            *(size_t *)value = faults->n;
    }
    const char *advice = strstr(message, "; run 'breccia fsck'"); /* which this is */
    BRC_TRY(advice != NULL ? brc_dup_n(&f->message, message, (size_t)(advice - message), err)
                           : brc_dup(&f->message, message, err));
    faults->n++;
    if (out != NULL)
        *out = f;
    return BRC_OK;
}

int brc_faults_add_file(brc_faults *faults, const char *message, brc_error *err)
{
    brc_oid none;
    memset(&none, 0, sizeof(none));
    return brc_faults_add(faults, &none, 0, 0, message, NULL, err);
}

int brc_fault_used_by(brc_fault *fault, const char *text, brc_error *err)
{
    char *copy;
    if (fault->nused_by > BRC_FAULT_USERS)
        return BRC_OK;
    if (fault->nused_by == BRC_FAULT_USERS)
        text = "and more";
    for (size_t i = 0; i < fault->nused_by; i++)
        if (strcmp(((char **)fault->used_by)[i], text) == 0)
            return BRC_OK;
    BRC_TRY(brc_grow_array(&fault->used_by, &fault->used_by_cap, fault->nused_by + 1,
                           sizeof(char *), err));
    BRC_TRY(brc_dup(&copy, text, err));
    ((char **)fault->used_by)[fault->nused_by++] = copy;
    return BRC_OK;
}
