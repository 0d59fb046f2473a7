#include "external_kit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fsck_kit.h"
#include "suite.h"

/* ---- what may happen to a file -------------------------------- */

void external_set_time(const char *path, const struct stat *was, int seconds)
{
    const struct timespec times[] = { was->st_atim,
                                      { was->st_mtim.tv_sec + seconds, was->st_mtim.tv_nsec } };
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

void external_touch(const char *path, const struct stat *was)
{
    external_set_time(path, was, 100);
}

void external_cut(const char *path, const struct stat *was)
{
    ck_assert_int_eq(truncate(path, was->st_size - 1), 0);
    external_set_time(path, was, 0);
}

static void grow(const char *path, const struct stat *was)
{
    ck_assert_int_eq(truncate(path, was->st_size + 1), 0);
    external_set_time(path, was, -100);
}

void external_remove(const char *path, const struct stat *was)
{
    (void)was;
    ck_assert_int_eq(remove(path), 0);
}

/* Another file of the same size takes its place, maybe while it is open. */
static void replace(const char *path, const struct stat *was)
{
    external_remove(path, was);
    const int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, was->st_size), 0);
    close(fd);
    external_set_time(path, was, 1);
}

/* One byte is different, and nobody can see that. */
void external_poke(const char *path, const struct stat *was)
{
    uint8_t byte;
    const int fd = open(path, O_RDWR);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pread(fd, &byte, 1, was->st_size / 2), 1);
    byte ^= 1;
    ck_assert_int_eq(pwrite(fd, &byte, 1, was->st_size / 2), 1);
    close(fd);
    external_set_time(path, was, 0);
}

void external_to_fifo(const char *path, const struct stat *was)
{
    external_remove(path, was);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
}

static void to_folder(const char *path, const struct stat *was)
{
    external_remove(path, was);
    ck_assert_int_eq(mkdir(path, 0700), 0);
}

static void to_device(const char *path, const struct stat *was)
{
    external_remove(path, was);
    ck_assert_int_eq(symlink("/dev/zero", path), 0);
}

static void to_loop(const char *path, const struct stat *was)
{
    external_remove(path, was);
    ck_assert_int_eq(symlink(strrchr(path, '/') + 1, path), 0);
}

const external_hazard external_hazards[EXTERNAL_HAZARDS] = {
    { external_touch, "has changed since it was imported (its time is another)", "--rebase", 0, 0 },
    { external_cut, "has changed since it was imported (its size is another)",
      "put the old file back", 0, 0 },
    { grow, "has changed since it was imported (its size is another)", "import it again", 0, 0 },
    { replace, "has changed since it was imported (its time is another)", "put the old", 0, 0 },
    { external_poke, "do not match their checksum", "put the old ones back", 0, 0 },
    { external_remove, "there is no file", "--rebase", 1, 0 },
    { external_to_fifo, "is not a file any more", "put the file back", 0, 0 },
    { to_folder, "is not a file any more", "put the file back", 0, 0 },
    { to_device, "is not a file any more", "put the file back", 0, 0 },
    { to_loop, "cannot read", "Too many levels", 0, 1 },
};

/* ---- what is said of it -------------------------------- */

void external_said(exchange_kit *kit, const char *words)
{
    ck_assert_msg(strstr(kit->err.message, words) != NULL, "\"%s\" is not in \"%s\"", words,
                  kit->err.message);
}

int64_t external_lying(exchange_kit *kit)
{
    return scenario_ask(kit, "SELECT count(*) FROM object WHERE backend>0");
}

void external_look(exchange_kit *kit, uint32_t flags, const char *says)
{
    brc_iter *it;
    const brc_backend_facts *one;
    int faults = 0;
    OK(kit, brc_backends(&it, kit->repo, flags, &kit->err));
    while (brc_next(it, &one, &kit->err) == 1)
        for (size_t i = 0; i < one->nfaults; i++, faults++)
            ck_assert_msg(says != NULL && strstr(one->faults[i].why, says) != NULL, "%s",
                          one->faults[i].why);
    brc_iter_free(it);
    ck_assert_int_eq(faults, says != NULL);
}

typedef struct found {
    int n, missing, named, in_place;
    const char *says;
} found;

static int count_damage(void *ctx, const brc_damage *damage)
{
    found *f = ctx;
    f->n++;
    f->missing += (damage->flags & BRC_DAMAGE_MISSING) != 0;
    f->in_place += (damage->flags & BRC_DAMAGE_PLACE) != 0;
    f->named += strstr(damage->message, f->says) != NULL && damage->nused_by > 0;
    return 0;
}

static void check_file(exchange_kit *kit, const external_hazard *h)
{
    found f = { .says = h->says };
    uint64_t checked;
    if (h->is_io) /* ends the check */
        return;
    OK(kit, brc_fsck(kit->repo, 0, count_damage, NULL, &f, &checked, &kit->err));
    ck_assert_int_gt(f.n, 0);
    ck_assert_int_eq(f.named, f.n);
    ck_assert_int_eq(f.missing, h->missing ? f.n : 0);
    ck_assert_int_eq(f.in_place, h->happens == external_poke ? 0 : f.n);
}

void external_meets(exchange_kit *kit, const external_hazard *h, const char *name,
                    const char *named, int (*read)(void))
{
    const char *path = exchange_path(kit, name);
    brc_buf copy = exchange_read(path);
    struct stat was;
    ck_assert_int_eq(stat(path, &was), 0);
    h->happens(path, &was);
    for (int again = 0; again < 2; again++) {
        FAILS(kit, h->is_io ? BRC_EIO : BRC_ECORRUPT, read());
        external_said(kit, h->says);
        external_said(kit, h->remedy);
        external_said(kit, named);
        check_file(kit, h);
        scenario_reopen(kit);
    }
    if (remove(path) != 0)
        ck_assert_int_eq(h->missing, 1);
    exchange_file(kit, name, copy.data, copy.len);
    external_set_time(exchange_path(kit, name), &was, 0);
    OK(kit, read());
    scenario_whole(kit);
    brc_buf_dispose(&copy);
}

int external_rebase(exchange_kit *kit, const char *from, const char *to, uint64_t *moved,
                    uint64_t *compared)
{
    return brc_rebase_files(kit->repo, exchange_path(kit, from), exchange_path(kit, to), moved,
                            compared, &kit->err);
}
