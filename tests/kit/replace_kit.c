#include "replace_kit.h"

#include <check.h>
#include <stdlib.h>

#include "store_kit.h"

static brc_buf base;

void replace_make_base(void)
{
    static int32_t numbers[LENGTH];
    hooked_kit k;
    hooked_start(&k, LENGTH, CHUNK);
    for (int i = 0; i < LENGTH; i++)
        numbers[i] = i;
    scenario_commit(&k.first, "empty");
    OK(&k.first, brc_array_write(k.array, NULL, numbers, sizeof(numbers), &k.first.err));
    scenario_close(&k.second);
    brc_array_free(k.array);
    k.array = NULL;
    scenario_close(&k.first);
    base = store_kit_read(k.first.file);
    hooked_stop(&k);
}

void replace_drop_base(void)
{
    brc_buf_dispose(&base);
}

void replace_start(hooked_kit *k)
{
    hooked_start_from(k, &base);
}

void replace_begin_as(hooked_kit *k, int uncommitted)
{
    if (!uncommitted)
        scenario_commit(&k->first, "first");
    else
        scenario_set_number(&k->first, "/a", 40, 40); /* its row lies over the others */
}

int replace_change(hooked_kit *k, int cuts)
{
    const uint64_t shape = SHORT;
    return cuts ? brc_array_resize(k->array, &shape, &k->first.err)
                : brc_array_set_codecs(k->array, SHARDS, 1, &k->first.err);
}

void replace_check_elements(scenario *t, uint64_t length, int32_t seven)
{
    brc_array *a = scenario_array_at(t, t->session, "/a");
    ck_assert_uint_eq(brc_array_describe(a)->shape[0], length);
    int32_t *got = malloc((size_t)length * sizeof(*got));
    ck_assert_ptr_nonnull(got);
    OK(t, brc_array_read(a, NULL, got, (size_t)length * sizeof(*got), &t->err));
    for (int32_t i = 0; i < (int32_t)length; i++) /* an assertion of each would take seconds */
        if (got[i] != (i == seven ? 7 : i))
            ck_abort_msg("element %d is %d", i, got[i]);
    free(got);
    brc_array_free(a);
}

uint64_t replace_chunk_length(hooked_kit *k)
{
    brc_array *a = scenario_array_at(&k->first, k->first.session, "/a");
    const uint64_t length = brc_array_describe(a)->chunk[0];
    brc_array_free(a);
    return length;
}

void replace_check_drafts(hooked_kit *k)
{
    char tree[64];
    ck_assert_int_eq(scenario_ask(&k->first, "SELECT count(*) FROM draft WHERE state=1 AND kind=2"),
                     0);
    scenario_tree(&k->first, k->first.session, "/", 1, tree, sizeof(tree));
    ck_assert_str_eq(tree, "/ /a* ");
    scenario_whole(&k->first);
}
