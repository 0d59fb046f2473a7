/* Sets the file's journal mode (see journal_mode.c), and opens and closes stores. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backend.h"
#include "chunk_cache.h"
#include "db.h"
#include "direct.h"
#include "file_copy.h"
#include "file_lock.h"
#include "removed.h"
#include "vfs.h"

/* ==== journal setting ================================ */

/* Waits until nobody else has the file open in WAL mode. */
static int leave_and_wait(brc_store *store, brc_error *err)
{
    int rc = SQLITE_OK;
    for (int tries = 0; brc_vfs_in_wal(store->vfs); tries++) {
        rc = brc_journal_leave(store);
        if (rc != SQLITE_OK && ((rc & 0xff) != SQLITE_BUSY || !brc_db_busy(store, tries)))
            break;
    }
    if ((rc & 0xff) == SQLITE_BUSY)
        return brc_fail(err, BRC_EBUSY,
                        "%s is open elsewhere in WAL mode (waited %g s), and WAL mode ends only "
                        "when no other process has the file open: close it there, and try "
                        "again", store->path,
                        store->wait_ms / 1000.0);
    return rc == SQLITE_OK ? BRC_OK : brc_fail_db(store, rc, "end its WAL mode", err);
}

static int write_setting(brc_store *store, int wal, int *again, brc_error *err)
{
    store->asks_wal = 0; /* so that this transaction uses the rollback journal */
    BRC_TRY(brc_store_begin(store, err));
    *again = brc_vfs_in_wal(store->vfs);
    int rc = BRC_OK;
    if (!*again)
        rc = wal ? brc_meta_put(store, BRC_META_JOURNAL, "wal", 3, 1, err)
                 : brc_meta_remove(store, BRC_META_JOURNAL, err);
    int end = brc_store_end(store, rc == BRC_OK && !*again, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

int brc_journal_set(brc_store *store, int wal, brc_error *err)
{
    int now, again = 1;
    BRC_TRY(brc_store_writable(store, err));
    BRC_TRY(brc_journal_get(store, &now, err));
    if (wal && !now)
        BRC_TRY(brc_vfs_wal_in_the_way(store->vfs, err));
    while (now != wal && again) {
        BRC_TRY(leave_and_wait(store, err));
        BRC_TRY(write_setting(store, wal, &again, err));
    }
    store->asks_wal = wal;
    return BRC_OK;
}

uint64_t brc_store_log_bytes(const brc_store *store)
{
    return brc_vfs_log_bytes(store->vfs);
}

/* ==== open ================================ */

/* Opens a file, only with breccia's schema, and creates new files. */

#define NODE_CACHE_BYTES ((size_t)64 << 20)
#define DEFAULT_WAIT_MS 30000
#define DEFAULT_MAX_NODES 10000000

/* ---- opening -------------------------------- */

static int db_create_file(const char *path, brc_error *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return errno == EEXIST
                   ? brc_fail(err, BRC_EEXISTS, "%s exists already and was left as it is", path)
                   : brc_fail_os(err, errno, "cannot create", path);
    close(fd);
    return BRC_OK;
}

/* Begins the creation. The setting of auto_vacuum is written too, so it comes after BEGIN: others
 * see an empty file or a complete one. */
static int begin_making(brc_store *store, brc_error *err)
{
    BRC_TRY(brc_exec(store, "PRAGMA page_size=16384; BEGIN; PRAGMA auto_vacuum=INCREMENTAL", err));
    store->undo = 0;
    store->write_depth = 1;
    return BRC_OK;
}

static int store_make(brc_store *store, const char *hash, int64_t now_us, brc_error *err)
{
    BRC_TRY(brc_hash_by_name(&store->hash, hash != NULL ? hash : "xxh128", err));
    store->id_len = brc_hash_len(store->hash);
    BRC_TRY(brc_random(store->secret, sizeof(store->secret), err));
    BRC_TRY(brc_db_settle(store, err));
    BRC_TRY(begin_making(store, err));
    int rc = brc_schema_create(store, err);
    const char *name = brc_hash_name(store->hash);
    const char *needs = store->opens_unfinished ? BRC_FEATURE_UNFINISHED
                        : store->opens_cache    ? BRC_FEATURE_CHUNK_CACHE
                                                : "";
    if (rc == BRC_OK)
        rc = brc_meta_put(store, "hash", name, strlen(name), 1, err);
    if (rc == BRC_OK)
        rc = brc_meta_put(store, "secret", store->secret, sizeof(store->secret), 0, err);
    if (rc == BRC_OK)
        rc = brc_meta_put(store, "must-understand", needs, strlen(needs), 1, err);
    if (rc == BRC_OK)
        rc = brc_meta_put(store, "may-ignore", "", 0, 1, err);
    if (rc == BRC_OK)
        rc = brc_meta_put(store, "head", "main", 4, 1, err);
    if (rc == BRC_OK)
        rc = brc_ref_put(store, "heads/main", NULL, NULL, "branch", 0, NULL, now_us, err);
    int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

static int check_features(const brc_store *store, const brc_buf *needed, brc_error *err)
{
    const int is_cache = needed->len > 0 &&
                         strcmp((const char *)needed->data, BRC_FEATURE_CHUNK_CACHE) == 0;
    if (is_cache != store->opens_cache)
        return brc_fail(err, BRC_EFORMAT,
                        is_cache ? "%s is a cache of chunks on servers, not a repository: name the "
                                   "repository" : "%s is a repository, not a cache of chunks",
                        store->path);
    if (is_cache)
        return BRC_OK;
    if (needed->len == 0)
        return BRC_OK;
    if (strcmp((const char *)needed->data, BRC_FEATURE_UNFINISHED) != 0)
        return brc_fail(err, BRC_EFORMAT,
                        "%s needs features that this breccia lacks (%s): use a newer one",
                        store->path, (const char *)needed->data);
    if (store->opens_unfinished)
        return BRC_OK;
    return brc_fail(err, BRC_EFORMAT,
                    "%s is a backup that was not finished: run the same 'breccia backup' again, "
                    "which goes on where the last one stopped", store->path);
}

/* Refuses a file with bytes after its last page. A writer's new pages lie at the end of the file,
 * and the number in the header is written last. Without a journal that undoes a writer, only a
 * garbage collection leaves such bytes, and then its row exists: else the file was copied, from its
 * head to its end, while it was written. */
static int check_tail(brc_store *store, brc_error *err)
{
    int collects = 0;
    sqlite3_stmt *st;
    if ((brc_vfs_how(store->vfs) & BRC_VFS_NO_JOURNAL) || !brc_vfs_has_tail(store->vfs))
        return BRC_OK;
    BRC_TRY(brc_schema_has(store, "gc", &collects, err));
    if (collects) {
        BRC_TRY(brc_stmt(store, "SELECT 1 FROM gc WHERE run>0 LIMIT 1", &st, err));
        BRC_TRY(brc_ask_any(store, st, &collects, err));
    }
    if (collects)
        return BRC_OK;
    return brc_fail(err, BRC_ECORRUPT,
                    "%s is a copy that was made during a write, and parts of it are older than "
                    "others; copy the original with 'breccia backup', or read this copy as it is "
                    "with --no-recover", store->path);
}

static int load_settings(brc_store *store, brc_error *err)
{
    brc_buf value = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_schema_check(store, err));
    BRC_GO(brc_meta_get(store, "hash", &value, err));
    BRC_GO(brc_hash_by_name(&store->hash, (const char *)value.data, err));
    store->id_len = brc_hash_len(store->hash);
    value.len = 0;
    BRC_GO(brc_meta_get(store, "must-understand", &value, err));
    BRC_GO(check_features(store, &value, err));
    value.len = 0;
    BRC_GO(brc_meta_get(store, "secret", &value, err));
    if (value.len != sizeof(store->secret)) {
        rc = brc_fail(err, BRC_ECORRUPT, "%s is damaged: its secret has the wrong length",
                      store->path);
        goto done;
    }
    memcpy(store->secret, value.data, sizeof(store->secret));
    BRC_GO(check_tail(store, err));
    BRC_GO(brc_verify_get(store, &store->verifies_all, err));
    BRC_GO(brc_readback_get(store, &store->readback, err));
    BRC_GO(brc_journal_load(store, err));
    rc = brc_vfs_wish_seen(store->vfs, store->asks_wal, err);
    if (rc < 0) /* closing must leave the log as it is */
        sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
done:
    brc_buf_dispose(&value);
    return rc;
}

/* Loads everything in one read, because each read takes locks and checks the journal and the head
 * of the file. */
static int store_load(brc_store *store, brc_error *err)
{
    BRC_TRY(brc_store_begin_read(store, err));
    int rc = load_settings(store, err);
    brc_store_end_read(store);
    return rc < 0 ? rc : brc_db_settle(store, err);
}

/* Opens a connection that may write to play back the journal of a writer that ended in the middle:
 * a reader cannot. */
static int roll_back_left_journal(brc_store *store, int flags, brc_error *err)
{
    flags = (flags & ~SQLITE_OPEN_READONLY) | SQLITE_OPEN_READWRITE;
    BRC_TRY(brc_db_connect(store, flags, 0, err));
    BRC_TRY(brc_db_settle(store, err));
    int rc = sqlite3_exec(store->db, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL);
    if (rc != SQLITE_OK)
        return brc_fail_db(store, rc, "undo an unfinished write", err);
    brc_db_disconnect(store);
    return BRC_OK;
}

/* Brings the tables of a file up to date that an earlier build has made. A backup does that itself
 * in its copy. */
static int take_over_old_tables(brc_store *store, brc_error *err)
{
    if (store->readonly || store->opens_unfinished || !brc_schema_is_old(store))
        return BRC_OK;
    BRC_TRY(brc_store_begin(store, err));
    const int rc = brc_removed_take_over(store, err);
    const int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

static int store_connect(brc_store *store, const brc_open_opts *opts, int64_t now_us,
                         brc_error *err)
{
    int create = (opts->flags & BRC_OPEN_CREATE) != 0;
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
                (store->readonly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE);
    unsigned how = opts->flags & BRC_OPEN_NO_RECOVER ? BRC_VFS_NO_JOURNAL : 0;
    int rc = brc_db_connect(store, flags, how, err);
    if (rc == BRC_OK && create)
        return store_make(store, opts->hash, now_us, err);
    if (rc == BRC_OK)
        rc = store_load(store, err);
    if (rc == BRC_EREADONLY && store->readonly) {
        brc_db_disconnect(store);
        BRC_TRY(roll_back_left_journal(store, flags, err));
        BRC_TRY(brc_db_connect(store, flags, how, err));
        rc = store_load(store, err);
    }
    /* On read-only media there may be no locks. With a journal beside it the file may be
     * in the middle of a change, and is not read without locks. */
    if (rc == BRC_EIO && store->readonly && !brc_vfs_has_journal(store->vfs)) {
        brc_db_disconnect(store);
        BRC_TRY(brc_db_connect(store, flags, BRC_VFS_UNLOCKED, err));
        rc = store_load(store, err);
    }
    if (rc == BRC_OK && !store->readonly && sqlite3_db_readonly(store->db, "main") == 1)
        store->readonly = 1;
    return rc == BRC_OK ? take_over_old_tables(store, err) : rc;
}

/* Returns 1 if another process is creating the file: it takes SQLite's lock on the file at once,
 * and fills the file later. Does not look where locks belong to the process, because closing the
 * file would drop those of another thread. */
static int is_being_made(const char *path)
{
    brc_file_lock lock;
    int offered = 0, is_locked = 0;
    if (brc_file_lock_offered(&offered) != SQLITE_OK || !offered ||
        brc_file_lock_open(&lock, path, 0) != SQLITE_OK)
        return 0;
    (void)!brc_file_lock_reserved(&lock, &is_locked);
    brc_file_lock_close(&lock);
    return is_locked;
}

/* An empty file may belong to a process that is about to lock it. */
static int wait_for_maker(const char *path, int wait_ms, struct stat *st)
{
    enum { STEP_MS = 5, UNLOCKED_MS = 200 };
    const struct timespec step = {.tv_nsec = STEP_MS * 1000000};
    int rc = stat(path, st);
    for (int ms = 0; rc == 0 && S_ISREG(st->st_mode) && st->st_size == 0 && ms < wait_ms &&
                     (ms < UNLOCKED_MS || is_being_made(path));
         ms += STEP_MS) {
        nanosleep(&step, NULL);
        rc = stat(path, st);
    }
    return rc;
}

static int store_check_path(const char *path, int wait_ms, brc_error *err)
{
    struct stat st;
    if (wait_for_maker(path, wait_ms, &st) != 0)
        return errno == ENOENT
                   ? brc_fail(err, BRC_ENOTFOUND,
                              "%s does not exist: 'breccia init' makes a repository", path)
                   : brc_fail_os(err, errno, "cannot open", path);
    if (!S_ISREG(st.st_mode))
        return brc_fail(err, BRC_EFORMAT,
                        "%s is not a breccia repository: it is not a regular file", path);
    if (st.st_size == 0) /* SQLite would delete a journal beside it */
        return brc_fail(err, BRC_EFORMAT, BRC_NOT_A_REPOSITORY, path);
    return BRC_OK;
}

/* A new file has no journal yet: if there is one, it belongs to something else. */
static int store_check_journal(const brc_store *store, brc_error *err)
{
    if (brc_vfs_has_journal(store->vfs))
        return brc_fail(err, BRC_EEXISTS,
                        "%s was not created: %s-journal is in the way, left by an earlier file of "
                        "that name; move it away", store->path, store->path);
    return BRC_OK;
}

int brc_store_open(brc_store **out, const char *path, const brc_open_opts *opts,
                   const brc_registry *reg, int64_t now_us, brc_error *err)
{
    int rc, made = 0, is_ours = 0;
    void *p = NULL;
    brc_store *store = NULL;
    *out = NULL;
    brc_fork_guard();
    BRC_TRY(brc_new(&p, sizeof(*store), err));
    store = p;
    store->registry = reg;
    store->credentials = opts->credentials;
    store->credentials_ctx = opts->credentials_ctx;
    store->inline_backend =
        (brc_store_backend){.impl = &brc_inline_backend, .state = store, .store = store};
    store->process = getpid();
    store->opens_unfinished = (opts->flags & BRC_OPEN_UNFINISHED) != 0;
    store->opens_cache = (opts->flags & BRC_OPEN_CHUNK_CACHE) != 0;
    store->readonly = (opts->flags & (BRC_OPEN_READONLY | BRC_OPEN_NO_RECOVER)) != 0;
    store->readback = BRC_READBACK_ALL; /* of a new file */
    store->wait_ms = opts->wait_ms == 0 ? DEFAULT_WAIT_MS : opts->wait_ms < 0 ? 0 : opts->wait_ms;
    store->max_nodes = opts->max_nodes == 0 ? DEFAULT_MAX_NODES : opts->max_nodes;
    brc_cache_init(&store->cache, NODE_CACHE_BYTES);
    BRC_GO(brc_dup(&store->path, path, err));
    if (opts->flags & BRC_OPEN_CREATE) {
        BRC_GO(db_create_file(path, err));
        made = 1;
    } else {
        BRC_GO(store_check_path(path, store->wait_ms, err));
    }
    BRC_GO(brc_vfs_new(&store->vfs, path, opts->vfs, err));
    brc_journal_attach(store);
    if (made)
        BRC_GO(store_check_journal(store, err));
    is_ours = made;
    BRC_GO(store_connect(store, opts, now_us, err));
    store->is_open = 1;
    *out = store;
done:
    if (rc < 0 && store->db != NULL)
        brc_db_disconnect(store);
    if (rc < 0 && made)
        unlink(path);
    if (rc < 0 && is_ours)
        brc_vfs_remove_journal(store->vfs);
    if (rc < 0)
        brc_store_close(store);
    return rc;
}

void brc_store_close(brc_store *store)
{
    if (store == NULL)
        return;
    brc_pins_close(store);
    if (store->chunks.cache != NULL)
        store->chunks.free(store->chunks.cache);
    /* A child must not close the parent's connection: the parent's transaction would lose its
     * journal. */
    if (!brc_store_is_forked(store)) {
        if (store->write_depth > 0)
            brc_store_rollback(store);
        if (store->late_drafts.n > 0 && brc_store_try_begin(store))
            (void)!brc_store_end(store, 1, NULL);
        brc_backends_close(store);
        brc_journal_close(store);
        brc_vfs_free(store->vfs);
    } else {
        brc_vfs_leave(store->vfs);
    }
    brc_direct_dispose(store);
    brc_encoding_cache_dispose(&store->encodings);
    brc_cache_dispose(&store->cache);
    brc_scratch_free(store->document_scratch);
    brc_buf_dispose(&store->row.bytes);
    free(store->statements); /* for a child, which does not finalize the statements */
    free(store->left.rows);
    free(store->late_drafts.items);
    free(store->head);
    free(store->path);
    free(store);
}

/* ---- small things -------------------------------- */

void brc_store_share(brc_store *store, brc_shared *shared)
{
    store->shared = shared;
}

const char *brc_store_file(const brc_store *store)
{
    return brc_vfs_path(store->vfs);
}

const char *brc_store_path(const brc_store *store)
{
    return store->path;
}

void brc_store_checking(brc_store *store, int is_checked)
{
    store->is_checked = is_checked;
}

int brc_store_hash(const brc_store *store)
{
    return store->hash;
}

size_t brc_store_id_len(const brc_store *store)
{
    return store->id_len;
}

uint64_t brc_store_max_nodes(const brc_store *store)
{
    return store->max_nodes;
}

int brc_store_readonly(const brc_store *store)
{
    return store->readonly;
}

const uint8_t *brc_store_secret(const brc_store *store)
{
    return store->secret;
}
