/*
 * A backend that packs: what one put() gets becomes one file, in which its objects lie one behind the
 * other. Where each begins, its row says: nothing here looks anything up. Like the others in dirs.c
 * it is made of the functions of docs/extending/dirstore.c, whose configuration it has.
 *
 * What is where: the `stored` bytes of an object begin at `offset` of the file FOLDER/NAME, NAME the
 * name of its place.
 */

/* Random, so that nobody else has ever given it. */
static int pack_name(char out[40], brc_error *err)
{
    uint8_t bytes[16];
    size_t i;
    int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC), all;

    if (fd < 0)
        return brc_fail(err, BRC_EIO, "there is no randomness: %s", strerror(errno));
    all = read_all(fd, bytes, sizeof(bytes));
    close(fd);
    if (all != 1)
        return brc_fail(err, BRC_EIO, "there is no randomness");
    for (i = 0; i < sizeof(bytes); i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    memcpy(out + 32, ".pack", 6);
    return BRC_OK;
}

static int pack_write(int fd, size_t n, brc_stored *const *items)
{
    size_t i;

    for (i = 0; i < n; i++)
        if (write_all(fd, items[i]->data, items[i]->len) != 0)
            return -1;
    return fsync(fd);
}

static int pack_put(void *ctx, void *state, size_t n, brc_stored *const *items, brc_error *err)
{
    const struct dir *dir = state;
    char name[40], path[PATH_SIZE];
    uint64_t offset = 0;
    size_t i;
    int fd, why = 0, rc = pack_name(name, err);

    (void)ctx;
    if (rc == BRC_OK)
        rc = join(path, dir->folder, name, err);
    if (rc < 0)
        return rc;
    rc = become_a_user(dir, err);
    if (rc < 0)
        return rc;
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return file_failed(dir, "write", path, errno, err);
    if (pack_write(fd, n, items) != 0)
        why = errno;
    if (close(fd) != 0 && why == 0)
        why = errno;
    for (i = 0; i < n && why == 0 && rc == BRC_OK; i++) {
        rc = brc_stored_put_at(items[i], name, offset, err);
        offset += items[i]->len;
    }
    return why != 0 ? file_failed(dir, "write", path, why, err) : rc;
}

/* The row may be hostile: it names a file in the folder, and a part of it. */
static int pack_fetch_one(const struct dir *dir, const brc_stored *item, brc_error *err)
{
    char path[PATH_SIZE];
    struct stat file;
    int all, fd, rc;

    if (item->place == NULL)
        return brc_fail(err, BRC_ENOTFOUND, "it has no place in a pack");
    if (!is_plain_name(item->place))
        return brc_fail(err, BRC_ECORRUPT, "\"%.80s\" is not the name of a pack", item->place);
    rc = join(path, dir->folder, item->place, err);
    if (rc < 0)
        return rc;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return file_failed(dir, "read", path, errno, err);
    if (fstat(fd, &file) != 0)
        rc = file_failed(dir, "read", path, errno, err);
    else if (!S_ISREG(file.st_mode) || (uint64_t)file.st_size < item->offset ||
             (uint64_t)file.st_size - item->offset < item->len)
        rc = brc_fail(err, BRC_ECORRUPT, "%s ends before byte %llu + %llu", path,
                      (unsigned long long)item->offset, (unsigned long long)item->len);
    else if (lseek(fd, (off_t)item->offset, SEEK_SET) < 0 ||
             (all = read_all(fd, item->into, item->len)) < 0)
        rc = file_failed(dir, "read", path, errno, err);
    else if (all == 0)
        rc = brc_fail(err, BRC_ECORRUPT, "%s became shorter", path);
    close(fd);
    return rc;
}

static int pack_fetch(void *ctx, void *state, size_t n, brc_stored *const *items, brc_error *err)
{
    int result = BRC_OK;
    size_t i;

    (void)ctx;
    for (i = 0; i < n; i++) {
        items[i]->status = pack_fetch_one(state, items[i], result == BRC_OK ? err : NULL);
        if (result == BRC_OK)
            result = items[i]->status;
    }
    return result;
}

/* ---- listing -------------------------------- */

struct pack_list {
    int (*each)(void *to, const brc_kept *kept, brc_error *err);
    void *to;
    int is_own;
};

static int pack_each(void *ctx, const brc_kept *kept, brc_error *err)
{
    const struct pack_list *list = ctx;
    brc_kept pack = *kept;
    size_t len = strlen(kept->name);

    if (list->is_own && len > 5 && strcmp(kept->name + len - 5, ".pack") == 0)
        pack.flags |= BRC_KEPT_OWN;
    return list->each(list->to, &pack, err);
}

static int pack_list(void *ctx, void *state,
                     int (*each)(void *to, const brc_kept *kept, brc_error *err), void *to,
                     brc_error *err)
{
    struct pack_list list = { each, to, 0 };
    int users;

    list.is_own = is_only_user(state, &users);
    if (list.is_own)
        close(users);
    return dir_list(ctx, state, pack_each, &list, err);
}
