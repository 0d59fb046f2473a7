#include "reach.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "commit.h"

typedef struct reached {
    brc_oid id; /* first: the tree's key */
    struct reached *next;
} reached;

struct brc_reach {
    brc_store *store;
    void *known; /* tsearch: every commit that was met */
    reached *first, *last, *due; /* the same in the order in which they were met; from `due`
                                    on, their parents have not been looked at */
};

int brc_reach_new(brc_reach **out, brc_store *store, brc_error *err)
{
    void *p;
    *out = NULL;
    BRC_TRY(brc_new(&p, sizeof(brc_reach), err));
    *out = p;
    (*out)->store = store;
    return BRC_OK;
}

static int reached_order(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(brc_oid));
}

void brc_reach_free(brc_reach *reach)
{
    if (reach == NULL)
        return;
    while (reach->first != NULL) {
        reached *c = reach->first;
        reach->first = c->next;
        tdelete(c, &reach->known, reached_order);
        free(c);
    }
    free(reach);
}

int brc_reach_from(brc_reach *reach, const brc_oid *tip, brc_error *err)
{
    void *p;
    if (tfind(tip, &reach->known, reached_order) != NULL)
        return BRC_OK;
    BRC_TRY(brc_new(&p, sizeof(reached), err));
    reached *c = p;
    c->id = *tip;
    if (tsearch(c, &reach->known, reached_order) == NULL) {
        free(c);
        return brc_nomem(err);
    }
    if (reach->last != NULL)
        reach->last->next = c;
    else
        reach->first = c;
    reach->last = c;
    if (reach->due == NULL)
        reach->due = c;
    return BRC_OK;
}

/* Meets the parents of the commit that is due. */
static int reach_step(brc_reach *reach, brc_error *err)
{
    brc_commit *c;
    BRC_TRY(brc_store_check_interrupt(reach->store, err));
    BRC_TRY(brc_commit_get(&c, reach->store, &reach->due->id, err));
    int rc = BRC_OK;
    for (size_t i = 0; i < c->nparents && rc == BRC_OK; i++)
        rc = brc_reach_from(reach, &c->parents[i], err);
    brc_commit_free(c);
    if (rc == BRC_OK)
        reach->due = reach->due->next;
    return rc;
}

int brc_reach_find(brc_reach *reach, const brc_oid *id, brc_error *err)
{
    while (tfind(id, &reach->known, reached_order) == NULL) {
        if (reach->due == NULL)
            return 0;
        BRC_TRY(reach_step(reach, err));
    }
    return 1;
}
