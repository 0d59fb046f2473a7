#include "fsck_kit.h"

#include <check.h>

int fsck_finds_nothing(void *ctx, const brc_damage *damage)
{
    (void)ctx;
    ck_abort_msg("fsck: %s: %s", damage->kind, damage->message);
    return 0;
}

int fsck_counts(void *ctx, const brc_damage *damage)
{
    (void)damage;
    ++*(int *)ctx;
    return 0;
}
