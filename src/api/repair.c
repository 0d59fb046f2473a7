/* Repairing what fsck finds. */
#include "../history/good_copy.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/sized.h"
#include "../store/collect.h"
#include "../zarr/repo.h"

typedef struct lost_object {
    brc_oid id;
    int kind, missing;
} lost_object;

typedef struct lost_list {
    void *items; /* lost_object[] */
    size_t n, cap;
    int failed;
} lost_list;

/* The kinds of objects, as brc_damage has them. */
static int kind_of_text(const char *text)
{
    static const char *const kinds[] = {"chunk", "document", "node", "commit", "loose"};
    for (int i = 0; i < BRC_KIND_MAX; i++)
        if (strcmp(text, kinds[i]) == 0)
            return i + 1;
    return 0;
}

static int note_lost(void *ctx, const brc_damage *damage)
{
    lost_list *list = ctx;
    const int kind = kind_of_text(damage->kind);
    if (kind == 0 || brc_oid_is_zero(&damage->id))
        return 0;
    if (brc_grow_array(&list->items, &list->cap, list->n + 1, sizeof(lost_object), NULL) < 0) {
        list->failed = 1;
        return 1;
    }
    ((lost_object *)list->items)[list->n++] =
        (lost_object){damage->id, kind, (damage->flags & BRC_DAMAGE_MISSING) != 0};
    return 0;
}

static int find_lost(breccia *repo, lost_list *list, brc_error *err)
{
    list->n = 0;
    int rc = brc_fsck(repo, 0, note_lost, list, NULL, err);
    return list->failed ? brc_nomem(err) : rc;
}

/* Where a node or commit comes back, more may be missed that it leads to: so again, as long as
 * something was found. */
static int replace_lost(breccia *repo, breccia *from, lost_list *list, brc_repair_report *report,
                        brc_error *err)
{
    uint64_t before;
    do {
        before = report->replaced;
        for (size_t i = 0; from != NULL && i < list->n; i++) {
            const lost_object *lost = (const lost_object *)list->items + i;
            int good, copied;
            BRC_TRY(brc_repair_is_good(repo->store, &lost->id, lost->kind, &good, err));
            if (good)
                continue;
            BRC_TRY(brc_repair_copy(repo->store, from->store, &lost->id, lost->kind, &copied, err));
            report->replaced += copied != 0;
        }
        BRC_TRY(brc_repair_derived(repo->store, err));
        BRC_TRY(find_lost(repo, list, err));
    } while (report->replaced > before && list->n > 0);
    return BRC_OK;
}

/* An object may be named because of what uses it, or what was noted of it: then it stays. */
static int still_lost(breccia *repo, lost_list *list, brc_error *err)
{
    size_t n = 0;
    lost_object *items = list->items;
    for (size_t i = 0; i < list->n; i++) {
        int good = 1;
        if (!items[i].missing)
            BRC_TRY(brc_repair_is_good(repo->store, &items[i].id, items[i].kind, &good, err));
        if (!good)
            items[n++] = items[i];
    }
    list->n = n;
    return BRC_OK;
}

static int drop_lost(breccia *repo, const lost_list *list, brc_repair_report *report,
                     brc_error *err)
{
    BRC_TRY(brc_store_begin(repo->store, err));
    int rc = BRC_OK;
    uint64_t n = 0;
    for (size_t i = 0; i < list->n && rc == BRC_OK; i++) {
        rc = brc_object_drop(repo->store, &((const lost_object *)list->items)[i].id, err);
        n++;
    }
    int end = brc_store_end(repo->store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    rc = rc < 0 ? rc : end;
    report->dropped = rc == BRC_OK ? n : 0;
    return rc;
}

static int repair_work(breccia *repo, breccia *from, uint32_t flags, lost_list *list,
                       brc_repair_report *report, brc_error *err)
{
    BRC_TRY(find_lost(repo, list, err));
    BRC_TRY(replace_lost(repo, from, list, report, err));
    if (flags & BRC_REPAIR_DROP) {
        BRC_TRY(still_lost(repo, list, err));
        if (list->n > 0) {
            BRC_TRY(drop_lost(repo, list, report, err));
            BRC_TRY(brc_repair_derived(repo->store, err));
        }
        BRC_TRY(find_lost(repo, list, err));
    }
    for (size_t i = 0; i < list->n; i++)
        *(((const lost_object *)list->items)[i].missing ? &report->missing : &report->damaged) += 1;
    return BRC_OK;
}

int brc_repair(brc_repair_report *out, breccia *repo, breccia *from, uint32_t flags, brc_error *err)
{
    brc_repair_report report = BRC_REPAIR_REPORT_INIT;
    lost_list list = {0};
    BRC_TRY(brc_flags_check(flags, BRC_REPAIR_DROP, "brc_repair()", err));
    BRC_TRY(brc_store_writable(repo->store, err));
    if (brc_store_in_write(repo->store) || brc_store_in_bulk(repo->store))
        return brc_fail(err, BRC_EMISUSE, "nothing can be repaired within a transaction");
    int rc = repair_work(repo, from, flags, &list, &report, err);
    free(list.items);
    if (rc == BRC_OK && out != NULL)
        rc = brc_sized_out(out, &report, sizeof(report), sizeof(report), "brc_repair_report", err);
    return rc;
}
