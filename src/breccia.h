/*
 * breccia.h - versioned Zarr arrays in one SQLite file.
 *
 * Every function here follows these rules unless its own comment says otherwise.
 *
 *  Results    A function that can fail returns an int: BRC_OK (0) or a negative
 *             BRC_E* code.
 *  Errors     `err` is always the last parameter and may be NULL. The library
 *             reads only its `size`, writes it only on failure, and the caller
 *             does not clean it up. A call that fails changes nothing that the
 *             file shows. Data that a failed bulk write stored stays in the file
 *             until garbage collection removes it.
 *  Ownership  The caller owns an object that it gets through `T **out` and
 *             releases it with T's _free function. A returned `const T *` is
 *             borrowed from the object that it came from. On failure *out is NULL. Every
 *             *_free accepts NULL, and objects may be freed in any order.
 *  Lists      What there may be many of comes through an iterator (brc_iter). The
 *             comment of the function that makes one says what its items are,
 *             and brc_next() returns them one by one.
 *  Structures A structure that the caller allocates begins with its `size`:
 *             initialize it with BRC_*_INIT. In options, a zero field means "the
 *             default", and a NULL pointer means "all defaults".
 *  Threads    A repository and everything opened from it belong to one thread
 *             at a time. brc_reopen() gives another thread its own handle.
 *             Other threads may call only brc_reopen() and brc_interrupt(). A
 *             signal handler may call brc_interrupt() too.
 *  fork()     A handle works only in the process that opened it. In a child
 *             process every call fails with BRC_EMISUSE, and freeing the handle
 *             does not touch the file. A pool works in a child process, with
 *             threads of its own.
 *
 * breccia_types.h defines the structures and says how versions of them work together.
 *
 * Units: sizes are in bytes, shapes and selections in elements, times in microseconds
 * since 1970-01-01 UTC. Text is UTF-8. Element memory is in C order and native byte
 * order unless a function says otherwise.
 */
#ifndef BRECCIA_H
#define BRECCIA_H

#include "breccia_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- library ------------------------------------------------------------- */

/* Returns the version of the library, such as "0.1.0". */
BRC_API const char *brc_version(void);
/* Returns a few words that describe a result code. The text is static and never NULL. */
BRC_API const char *brc_strerror(int code);
/* Reads a time in microseconds since 1970 UTC: "2026-11-20", "2026-11-20T12:00[:00[.5]][Z|+01:00]"
 * (UTC without a zone; a date is its first moment), "@SECONDS" since 1970, or words: "now", "today"
 * (its first moment), "yesterday" and "last week" (so long before now), "monday" (the last one
 * before today, at this time of day), "2 days ago", "1 year 2 months ago". BRC_EINVAL for others. */
BRC_API BRC_MUST_USE int brc_time_parse(int64_t *us, const char *text, brc_error *err);
/* Releases the bytes of `buf` and clears its limit and flags; the empty buffer can be used again. */
BRC_API void brc_buf_dispose(brc_buf *buf);
/* Writes an id as 2 * (hash length) lower-case hexadecimal digits (32 for xxh128) and a NUL.
 * Returns `out`. */
BRC_API char *brc_oid_format(char out[65], const brc_oid *id);

/* Moves to the next item of an iterator. Returns 1 and sets the caller's pointer to the item;
 * returns 0 and sets it to NULL at the end, however often it is called there; or fails. The item is
 * valid until the iterator's next step. `item` is the address of a pointer to the type that the
 * function names which made the iterator; no other type may be used:
 *
 *     const brc_ref *ref;
 *     while ((rc = brc_next(refs, &ref, err)) > 0)
 *         puts(ref->name);
 */
BRC_API BRC_MUST_USE int brc_next(brc_iter *it, void *item, brc_error *err);
/* Releases an iterator. It may be freed before its end. */
BRC_API void brc_iter_free(brc_iter *it);

/* Makes a pool of `threads` threads in all, the caller's included. 0 means one per core. */
BRC_API BRC_MUST_USE int brc_pool_new(brc_pool **out, unsigned threads, brc_error *err);
BRC_API void brc_pool_free(brc_pool *pool);

/* Makes a registry, which starts with what this build contains. The functions of breccia_codec.h
 * add to it until the first brc_open() that uses it. The registry must outlive the repositories
 * that use it. */
BRC_API BRC_MUST_USE int brc_registry_new(brc_registry **out, brc_error *err);
BRC_API void brc_registry_free(brc_registry *reg);
/* Lists what a registry contains, or, if `reg` is NULL, what this build contains. `what` is one of
 * BRC_LIST_*; it also decides the type of the items. */
BRC_API BRC_MUST_USE int brc_registry_list(brc_iter **out, const brc_registry *reg, int what, brc_error *err);
/* Loads a plug-in: a shared object whose brc_plugin_init() adds to the registry (breccia_codec.h).
 * `path` must contain a "/". A plug-in runs with the rights of this process: load only plug-ins
 * that you trust, and never load a name taken from a repository. If loading fails, everything that
 * the plug-in added is removed again. The plug-in stays loaded until the registry is freed. Fails
 * with BRC_EMISUSE if the registry is in use. */
BRC_API BRC_MUST_USE int brc_registry_load(brc_registry *reg, const char *path, brc_error *err);
/* Chooses the implementation of a codec that runs wherever its memory can be used, in place of the one that the
 * registry would choose. NULL: ends that choice. Fails with BRC_ENOTFOUND if the codec has no implementation of this
 * name, with BRC_EUNSUPPORTED if the implementation cannot run here, and with BRC_EMISUSE if the registry is in use. */
BRC_API BRC_MUST_USE int brc_registry_pin(brc_registry *reg, const char *codec, const char *implementation, brc_error *err);

/* Lets nvCOMP decode chunks of zstd, lz4, gzip and zlib for CUDA devices, where that costs less than the host
 * (docs/BUFFERS.md). `library` is a path or a name of its shared object; NULL: libnvcomp.so.6, .5 or .4. nvCOMP does not
 * promise to withstand damaged chunks: use it for files that you trust. If it is not there, or another version, the call
 * fails with BRC_EUNSUPPORTED, lists say why, and the host decodes. Fails with BRC_EEXISTS if it was called before, and with
 * BRC_EMISUSE if the registry is in use. */
BRC_API BRC_MUST_USE int brc_registry_use_nvcomp(brc_registry *reg, const char *library, brc_error *err);

/* ---- repository ---------------------------------------------------------- */

/* Opens the repository in the file `path`, or creates it with BRC_OPEN_CREATE. `opts` may be
 * NULL. */
BRC_API BRC_MUST_USE int brc_open(breccia **out, const char *path, const brc_open_opts *opts, brc_error *err);
/* Opens another handle on the same file, for another thread. It has the same options except that it
 * has no progress function, and it shares the pool, the registry and the cached history. Any thread
 * may call brc_reopen() while `repo` works, but not while `repo` is being freed. The handles may be
 * freed in any order. Fails with BRC_ESTALE if another repository has replaced the file. */
BRC_API BRC_MUST_USE int brc_reopen(breccia **out, const breccia *repo, brc_error *err);
/* Closes a handle. brc_free() closes descriptors of the file, and brc_open() may do so too: call
 * neither while an SQLite connection of your own on that file is in a transaction, because the
 * transaction would lose its locks. */
BRC_API void brc_free(breccia *repo);
/* Fails with BRC_EINVAL if `file` is the repository or one of its journals, under any name or link,
 * or would become one of them. Call it before you open a file to write. On systems without locks of
 * open file descriptions (Linux has them), call it also before you open a file to read: closing a
 * descriptor of the repository there drops the locks that this process holds on it. The library
 * checks the files that it opens itself. */
BRC_API BRC_MUST_USE int brc_check_file(const char *repository, const char *file, brc_error *err);
/* If `on` is 1, stops the running call and every later call with BRC_EINTERRUPT. If it is 0, ends the
 * interruption, so that calls work again; that is allowed only after the interrupted call has
 * returned. Any thread may call it. */
BRC_API void brc_interrupt(breccia *repo, int on);
/* Chooses how the following calls of this handle run codecs. NULL: as the handle was opened. Fails with
 * BRC_EUNSUPPORTED if the pipeline's name is not known, with a message that lists the known names, and with BRC_EINVAL
 * for a wrong configuration; then nothing has changed. */
BRC_API BRC_MUST_USE int brc_pipeline_set(breccia *repo, const brc_pipeline_opts *opts, brc_error *err);
/* Counts commits, objects, chunks and bytes of the repository. */
BRC_API BRC_MUST_USE int brc_stat(breccia *repo, brc_stats *out, brc_error *err);
/* Collects garbage: removes every object that no branch, tag, uncommitted change, reader's pin or
 * entry in the window of the operation log (setting "window") reaches. It works in short
 * transactions while others read and write, and it also drops drafts of processes that have ended.
 * If `opts` is NULL, all options are 0. *out (`out` may be NULL) says what was removed, also after
 * a failure. If the call is interrupted, killed or stopped by a full disk, the next call continues
 * its work. Must not be called within a transaction.
 *
 * Fails with BRC_EBUSY if another collection is running. Fails with BRC_ECORRUPT, and removes
 * nothing, if something that is needed is damaged. Fails with BRC_ENOSPACE if not even a small step
 * fits on the disk; 1 MiB of free space is enough to finish. An error of a backend is returned
 * after everything else is done, and the next call tries again to drop the chunks that this call
 * could not drop. */
BRC_API BRC_MUST_USE int brc_gc(breccia *repo, const brc_gc_opts *opts, brc_gc_report *out, brc_error *err);
/* Stores chunks again, in another backend or with other codecs. No commit, no id and no value changes. It works in short
 * transactions while others read and write; chunks that they write meanwhile may stay as they write them. An object is
 * always stored: the file names new bytes once they are durable. Then brc_gc() removes the old bytes, and gives free
 * pages of the file back. If the call is interrupted, killed or stopped by a full disk, the next call with the same
 * options continues its work.
 *
 * The codecs leave out arrays that they do not fit, chunks whose own codec is unknown here, and chunks in a backend that
 * can only be read unless they get another backend. A chunk that does not shrink by 3 % is stored unencoded. Without a
 * backend, codecs, a path and a time, the call puts rows of the file together that are not full, and small
 * packs of other backends. If `opts` is NULL, all options are 0. *out (`out` may be NULL) says what was done, also after a
 * failure. Must not be called within a transaction.
 *
 * Fails with BRC_EINVAL if the options are wrong, or the codecs fit no array; with BRC_EUNSUPPORTED for lossy codecs
 * and for a backend that can only be read; with BRC_ENOTFOUND if no version has the path. If objects cannot be read, all
 * others are stored again, and the call fails with the error of the first. With a time it needs about 50 bytes of memory
 * for each chunk that newer versions use, and for a dry run for each chunk. */
BRC_API BRC_MUST_USE int brc_repack(breccia *repo, const brc_repack_opts *opts, brc_repack_report *out, brc_error *err);
/* Copies the repository's file to `dest` while others read and write it. The copy is one consistent
 * state, uncommitted changes included. The call creates `dest`, or, if `dest` is an older backup of
 * the same repository, adds what is missing there. If the call fails, is interrupted or is killed,
 * an older backup stays as it was; a new backup cannot be opened, and the next call continues it.
 * Writers wait only for moments, and at the end for as long as it takes to compare the two indexes.
 * The call reads new objects back from the copy and decodes them. It does not copy chunks that lie
 * outside the file (setting "backend"). `out` may be NULL. Must not be called within a transaction.
 *
 * Fails with BRC_EEXISTS if `dest` is something else, or was changed since it was made.
 * BRC_ECORRUPT means that the copy was made but objects in it are damaged, usually because they are
 * damaged in the repository. */
BRC_API BRC_MUST_USE int brc_backup(brc_backup_report *out, breccia *repo, const char *dest, brc_error *err);
/* Thins history. Of the commits that branches and tags reach, it keeps those that branches, tags,
 * uncommitted changes or pins name, and those that a rule of *opts keeps. Each rule counts along
 * the first parents of each branch, independently of the other rules; a rule that is not used up at
 * the end of history also keeps the oldest commit. A commit that stays keeps its id. If its parents
 * have expired, the commit says so (BRC_PAST_EXPIRED), and log, blame, merge and the like continue
 * with the nearest kept ancestors. Expired commits stay in the file until brc_gc() finds them
 * outside the window of the operation log; until then brc_undo() and their ids still reach them.
 *
 * *decided (`decided` may be NULL) lists every commit that the call considered (brc_expired),
 * children first.
 * Fails with BRC_EINVAL if no rule is given. Must not be called within a transaction. An
 * interrupted call thins the history completely or not at all. */
BRC_API BRC_MUST_USE int brc_expire(brc_expire_report *out, brc_iter **decided, breccia *repo, const brc_expire_opts *opts,
                                    brc_error *err);
/* Computes how many bytes the arrays and commits hold that branches and tags reach. It is exact and
 * counts each object once. An array holds what any of these commits has at the array's path. *items
 * (`items` may be NULL) lists arrays by path, then commits, children first (brc_du_item). The call
 * needs about 200 bytes of memory for each object. */
BRC_API BRC_MUST_USE int brc_du(brc_du_report *out, brc_iter **items, breccia *repo, brc_error *err);
/* Says that files have moved in which chunks lie (BRC_XFER_EXTERNAL): every file at or beneath `from`
 * is now at the same place of `to`. Both are paths, absolute or from the current folder. The files
 * must be there with the same size. If the time of a file differs, as after a copy, all chunks in it
 * are read and their checksums compared. The names change in one transaction, or none does.
 * *places is the number of files, *compared the number of chunks that were read; both may be NULL.
 * Fails with BRC_ENOTFOUND if no chunks lie beneath `from`. */
BRC_API BRC_MUST_USE int brc_rebase_files(breccia *repo, const char *from, const char *to, uint64_t *places,
                                          uint64_t *compared, brc_error *err);
/* Lists the backends in which stored bytes of the repository lie (brc_backend_facts): the file itself, then the others
 * in the order in which they were first used. `flags` are BRC_BACKENDS_*. A backend that this build does not have, a
 * place that is missing and, with BRC_BACKENDS_CHECK, a place whose object cannot be read are faults of their item,
 * and not of the call. Without BRC_BACKENDS_QUICK the call reads all rows of objects, and
 * with it only where a place that is missing may have no object any more. */
BRC_API BRC_MUST_USE int brc_backends(brc_iter **out, breccia *repo, uint32_t flags, brc_error *err);
/* Tries whether a backend keeps what it promises, before anything relies on it, and calls each() for every promise: a
 * bucket must give back what it got, read ranges, list. `backend_json` is a name or a specification, as for an array.
 * Small things may be written to the backend, and are removed again; nothing is written to the repository's file.
 * A backend that has nothing to try, like the file itself, promises nothing here. Fails if the backend cannot be
 * asked. each() runs on the caller's thread. */
BRC_API BRC_MUST_USE int brc_prove_backend(breccia *repo, const char *backend_json, brc_promise_fn each, void *ctx,
                                           brc_error *err);
/* Reads everything in the file and reports each fault to `found`, and in a damaged file also to
 * `stands` which parts of each branch and tag are lost and which are intact. Both may be NULL, and a
 * result other than 0 stops the call. The result is BRC_OK even if there are faults. *checked
 * (`checked` may be NULL) is the number of objects read. */
BRC_API BRC_MUST_USE int brc_fsck(breccia *repo, uint32_t flags, int (*found)(void *ctx, const brc_damage *damage),
                                  int (*stands)(void *ctx, const brc_standing *one), void *ctx, uint64_t *checked,
                                  brc_error *err);
/* Checks everything as brc_fsck() does, and repairs what it can. Damaged and missing objects are
 * replaced by a good copy of the same id from `from`, another repository (NULL: objects are not
 * replaced). Derived rows are rebuilt. With BRC_REPAIR_DROP, damaged objects
 * without a good copy are removed. No id changes, and refs and uncommitted changes stay as they
 * are. *out (`out` may be NULL) counts what was repaired and what is still damaged. Must not be
 * called within a transaction. */
BRC_API BRC_MUST_USE int brc_repair(brc_repair_report *out, breccia *repo, breccia *from, uint32_t flags, brc_error *err);
/* Reads and changes the repository's settings. `name` is one of these:
 * - "journal": "rollback" (the default) or "wal".
 * - "window": see brc_gc().
 * - "codecs": a Zarr v3 codec list for new arrays that are made without one. A list that only
 *   changes bytes is put behind the codec that makes bytes of the array's type. The default is
 *   "chosen", by the type; types that the list does not fit also get that.
 * - "verify": "stored" (the default) compares stored bytes with their checksum; "full" also
 *   compares the decoded bytes with the chunk's id. A handle reads this setting when it is opened.
 * - "readback": "all" (the default), "sampled" or "none": see BRC_READBACK_ALL. A handle reads this
 *   setting when it is opened, and brc_open_opts.readback comes before it.
 * - "backend": the backend of new arrays that are made without one, imported arrays included, in
 *   the form that brc_array_set_backend() takes. The default is "inline". Each array records the
 *   setting as it is when the array is made, so a later change of the setting changes no array.
 *   Fails with BRC_EUNSUPPORTED if the backend is not known here.
 *
 * With "wal" the file is in SQLite's WAL mode from the first write until the last handle on it is
 * closed. Readers then do not wait for commits, nor commits for readers, and the files FILE-wal and
 * FILE-shm next to the repository belong to it. A call's changes are durable in either mode.
 * Setting "rollback" needs the file to itself: it fails with BRC_EBUSY if other handles do not go
 * away within the time to wait. Must not be called between brc_begin() and brc_end().
 *
 * A NULL `value` restores the default. brc_config_get() appends the value to `out` as text. */
BRC_API BRC_MUST_USE int brc_config_get(brc_buf *out, breccia *repo, const char *name, brc_error *err);
BRC_API BRC_MUST_USE int brc_config_set(breccia *repo, const char *name, const char *value, brc_error *err);
/* Starts and ends a transaction. Outside of one, every call is durable when it returns. Calls
 * between brc_begin() and brc_end() are one transaction instead, which is durable when brc_end()
 * returns; without BRC_END_KEEP, brc_end() undoes them all. Pairs nest.
 *
 * The file is locked for writing from begin to end, whatever your program does in between, and
 * other writers wait (brc_bulk_begin() locks it only for moments). Readers continue with the state
 * before the transaction, and the end waits for them. If a reader stays longer than the time to
 * wait, the end fails with BRC_EBUSY and everything is undone. */
BRC_API BRC_MUST_USE int brc_begin(breccia *repo, brc_error *err);
BRC_API BRC_MUST_USE int brc_end(breccia *repo, uint32_t flags, brc_error *err);

/* ---- history ------------------------------------------------------------- */

/* Finds the commit that `rev` names: a branch, a tag, HEAD, a commit id, a unique prefix of an id
 * with at least 4 digits, or BRANCH@{TIME}. ~N and ^N may follow. */
BRC_API BRC_MUST_USE int brc_resolve(brc_oid *out, breccia *repo, const char *rev, brc_error *err);
/* Returns the current branch's name, which is borrowed until the next call. */
BRC_API BRC_MUST_USE int brc_head(const char **branch, breccia *repo, brc_error *err);
/* Lists branches, then tags, by name (brc_ref). */
BRC_API BRC_MUST_USE int brc_refs(brc_iter **out, breccia *repo, brc_error *err);
/* Makes a branch, or with BRC_REF_TAG a tag, at `rev` (NULL: HEAD). Only a tag has a `message`, which
 * may be NULL. */
BRC_API BRC_MUST_USE int brc_ref_create(breccia *repo, const char *name, const char *rev, const char *message,
                                        uint32_t flags, brc_error *err);
/* Deletes a branch, or with BRC_REF_TAG a tag. Without BRC_DELETE_FORCE it fails with BRC_EMISUSE if
 * no other branch or tag reaches the commit, or if the branch has uncommitted changes. The commits
 * stay in the file until garbage collection, and NAME@{TIME} still finds them. Uncommitted changes
 * and an open merge stay as a draft without an owner, for brc_undo(), and so do private changes of
 * processes that have ended. Fails with BRC_EBUSY if a running process has private changes on the
 * branch. */
BRC_API BRC_MUST_USE int brc_ref_delete(breccia *repo, const char *name, uint32_t flags, brc_error *err);
/* Gives a branch, or with BRC_REF_TAG a tag, another name. */
BRC_API BRC_MUST_USE int brc_ref_rename(breccia *repo, const char *from, const char *to, uint32_t flags, brc_error *err);
/* Makes another branch the current one. Fails with BRC_ECONFLICT if the current branch has
 * uncommitted changes. With BRC_SWITCH_CARRY they go along to a branch at the same commit that has
 * none, and with BRC_SWITCH_DISCARD they are dropped. */
BRC_API BRC_MUST_USE int brc_switch(breccia *repo, const char *branch, uint32_t flags, brc_error *err);
/* Moves a branch to `rev`: the current branch (`s` NULL), or that of a session that can be changed,
 * together with that session's own changes (then `repo` may be NULL). Uncommitted changes stay unless
 * BRC_RESET_HARD is given. A private session keeps or drops its own changes, and uncommitted changes
 * of others on the branch are not touched. In `rev`, HEAD is the current branch, as everywhere. Fails
 * with BRC_ESTALE if the branch is not at `expect` (NULL: anywhere). */
BRC_API BRC_MUST_USE int brc_reset(breccia *repo, brc_session *s, const char *rev, uint32_t flags, const brc_oid *expect,
                                   brc_error *err);

/* Lists changes of refs, newest first (brc_op). */
BRC_API BRC_MUST_USE int brc_oplog(brc_iter **out, breccia *repo, brc_error *err);
/* Lists the operations on uncommitted changes that brc_undo() can take back or restore, newest first
 * (brc_draft_op): those of sessions that keep a log (brc_session_log()). */
BRC_API BRC_MUST_USE int brc_draft_log(brc_iter **out, breccia *repo, brc_error *err);
/* Takes back the last operation: each ref, and the current branch, is again what it was before; or,
 * if a brc_draft_op came later, the uncommitted changes of its branch are. The
 * next call goes one operation further back. BRC_UNDO_REDO takes back the last undo instead; that
 * is possible until another operation follows. An undo or redo is an operation itself; *operation
 * (`operation` may be NULL) is its number, or, for a brc_draft_op, minus the `id` of that. Must not be called between
 * brc_begin() and brc_end().
 *
 * `expect` is the operation that the caller wants to take back or restore, 0 for any; the call
 * fails with BRC_ESTALE if it would be another. Fails with BRC_EMISUSE if there is no operation to
 * take back. Fails with BRC_ESTALE, names the ref and changes nothing if a ref is not where the
 * operation left it.
 *
 * Else uncommitted changes stay as they are: brc_drafts() marks those that are no longer based on their
 * branch's commit (BRC_DRAFT_STALE), and brc_session_commit() merges them. A branch that comes back
 * has its uncommitted changes again. Fails with BRC_ECONFLICT if the undo would remove a branch
 * that has uncommitted changes. With BRC_UNDO_DRY_RUN nothing changes, and *operation is the
 * operation that would be taken back or restored. A brc_draft_op is not taken back while a session has a savepoint open
 * in these changes (BRC_EBUSY). */
BRC_API BRC_MUST_USE int brc_undo(int64_t *operation, breccia *repo, uint32_t flags, int64_t expect, brc_error *err);

/* Reads a commit. Release it with brc_commit_free(). Fails with BRC_ENOTFOUND if the file does not
 * have the commit. */
BRC_API BRC_MUST_USE int brc_commit_read(brc_commit **out, breccia *repo, const brc_oid *id, brc_error *err);
BRC_API void brc_commit_free(brc_commit *commit);
/* Lists the commits (brc_commit) that are reachable from `rev` (NULL: HEAD), newest first and parents
 * after their children. "A..B" lists the commits reachable from B but not from A. `opts` may be NULL.
 * With a path, lists only commits that changed or moved this node or something under it; commits
 * before a move are searched under the path that the node had then. If a merge has the node exactly
 * as one of its parents has it, the other parents are not followed, except with BRC_LOG_FULL. If no
 * commit has the node, brc_next() fails with BRC_ENOTFOUND. */
BRC_API BRC_MUST_USE int brc_log(brc_iter **out, breccia *repo, const char *rev, const brc_log_opts *opts, brc_error *err);
/* Lists the nodes that differ between two versions (brc_change), by path. A NULL `b` is the current
 * branch with its uncommitted changes, or, with opts->session, what that session of `repo` shows,
 * which may be private, with its uncommitted changes (then `repo` may be NULL). A NULL `a` is what the other is based on: its
 * first parent, or the tip of its branch. Fails with BRC_ENOTFOUND if neither version has
 * opts->path. */
BRC_API BRC_MUST_USE int brc_diff(brc_iter **out, breccia *repo, const char *a, const char *b,
                                  const brc_diff_opts *opts, brc_error *err);
/* Merges `rev` into the current branch. The result is "up to date", a fast-forward, or a commit
 * with two parents. That commit has what either side changed since they diverged, merged node by
 * node, metadata member by member, chunk by chunk and element by element. *conflicts (`conflicts`
 * may be NULL) lists what cannot be decided, by path (brc_conflict); then the branch is unchanged.
 * Fails with BRC_ECONFLICT if the branch has uncommitted changes or an open merge. If the branch moves
 * meanwhile, the merge starts again; it fails with BRC_EBUSY if others were first each time until
 * the time to wait was over. Must not be called between brc_begin() and brc_end().
 *
 * With BRC_MERGE_KEEP, a merge with conflicts stays open as a draft: conflicting places are as the
 * branch has them, and everything else is merged. Until the merge is committed or dropped,
 * sessions on the branch (BRC_SESSION_VIEW, BRC_SESSION_WRITE) read and change that draft, and
 * brc_session_commit() on the branch fails with BRC_ECONFLICT. A branch has at most one open
 * merge. */
BRC_API BRC_MUST_USE int brc_merge(brc_merge_result *out, brc_iter **conflicts, breccia *repo, const char *rev,
                                   const brc_merge_opts *opts, brc_error *err);
/* Applies the change between the commit `rev` and its parent to the current branch, as a commit
 * with the same message, author, time and meta. It is a merge as in brc_merge(), with that parent
 * as the base. With BRC_PICK_REVERT the change is taken back instead, and the base is the commit.
 * *conflicts (`conflicts` may be NULL) lists what cannot be decided; then nothing changes, or with
 * BRC_PICK_KEEP the cherry-pick stays open, as a merge does with BRC_MERGE_KEEP.
 * Fails with BRC_EMISUSE if `rev` is a merge and opts->mainline is 0. Fails with BRC_ECONFLICT if
 * the branch has uncommitted changes or an open merge, cherry-pick, revert or rebase. See
 * brc_merge() for a branch that moves meanwhile and for BRC_EBUSY. Must not be called between
 * brc_begin() and brc_end(). */
BRC_API BRC_MUST_USE int brc_pick(brc_pick_result *out, brc_iter **conflicts, breccia *repo, const char *rev,
                                  const brc_pick_opts *opts, brc_error *err);
/* Moves the current branch to `onto` and applies the branch's own commits again there, oldest
 * first: the commits that `onto` does not reach, except merges and commits whose change is already
 * there. Each commit is applied as by brc_pick() and keeps its message, author, time and meta; of
 * the options only paths, sides and BRC_PICK_KEEP count. The branch moves once, at the end. A
 * conflict (out->at) stops the rebase, and nothing changes. With BRC_PICK_KEEP the rebase stays
 * open instead, as a merge does with BRC_MERGE_KEEP, on top of the commits made so far, which no
 * ref names: "ours" is these commits, "theirs" is the commit in conflict. Fails as brc_pick()
 * does. */
BRC_API BRC_MUST_USE int brc_rebase(brc_pick_result *out, brc_iter **conflicts, breccia *repo, const char *onto,
                                    const brc_pick_opts *opts, brc_error *err);
/* Finds the commit that introduced a change by testing few of the versions between a good and a bad
 * one. `what` is one of BRC_BISECT_*. `rev` is the version that is good, bad or skipped (NULL: the
 * version that was to be tested, or HEAD), and NULL for every other `what`. The state of the
 * bisection stays in the file until BRC_BISECT_RESET, and garbage collection keeps its commits;
 * nothing else changes. Fails with BRC_EMISUSE if there is no bisection or if the new answer
 * contradicts an earlier one, and with BRC_ESTALE if another process was first. */
BRC_API BRC_MUST_USE int brc_bisect(brc_bisect_result *out, breccia *repo, int what, const char *rev, brc_error *err);
/* Describes the current branch's open merge, cherry-pick, revert or rebase; out->draft is 0 if
 * there is none. *conflicts (`conflicts` may be NULL) lists all its conflicts, the settled ones
 * included. A conflict counts as settled by hand as soon as its place differs from what the merge
 * left there: the metadata member has another value, the chunk was written, or the node or
 * something under it was changed. */
BRC_API BRC_MUST_USE int brc_merge_state(brc_open_state *out, brc_iter **conflicts, breccia *repo, brc_error *err);
/* Settles the open conflicts at and under `paths` (npaths 0: all conflicts) for one side,
 * BRC_MERGE_OURS or BRC_MERGE_THEIRS. Conflicts that were settled before keep their settlement.
 * *settled is the number of conflicts settled. Fails with BRC_ENOTFOUND if a path is in no
 * conflict, with BRC_EMISUSE if no merge is open, and with BRC_ESTALE if others have changed the
 * merge meanwhile. Must not be called between brc_begin() and brc_end(). */
BRC_API BRC_MUST_USE int brc_merge_settle(uint64_t *settled, breccia *repo, uint32_t side, const char *const *paths, size_t npaths,
                                          brc_error *err);
/* Goes on with the open merge, cherry-pick, revert or rebase. What is settled becomes a commit: of a merge with two
 * parents, and else with one parent and with the author, time, message and meta that it would have had without
 * conflicts. `opts` (may be NULL) gives another message, author and time_us, except for a rebase, which keeps those
 * of each commit. Nothing else of `opts` counts besides BRC_PICK_SKIP: a rebase leaves out the open commit, settled or
 * not. The remaining commits of a rebase follow, with the sides that it began with.
 *
 * The result is BRC_PICK_COMMITTED, or BRC_PICK_NOTHING if nothing is left of the change; of a rebase it is like that
 * of brc_rebase() and counts everything since the rebase began. While a conflict is open nothing changes: the result
 * is BRC_PICK_CONFLICT with the same out->draft, and *conflicts (`conflicts` may be NULL) lists the open conflicts.
 * At the next conflict of a rebase it is BRC_PICK_CONFLICT too, with another draft; the branch stays where it is until
 * the end.
 *
 * If the branch has moved meanwhile, a rebase also does the new commits, after the others. Everything else that is
 * settled is merged onto the branch's new tip, which becomes the first parent. If that has conflicts, the result is
 * BRC_PICK_CONFLICT, and another draft is open on the new tip, in which "theirs" is what was settled.
 *
 * Fails with BRC_EMISUSE if nothing is open, and with BRC_ESTALE, and keeps a rebase, if the branch no longer has the
 * commits that are rebased. If others change the open draft meanwhile, the call begins again with what they wrote;
 * BRC_EBUSY: they did so each time. Must not be called between brc_begin() and brc_end(). */
BRC_API BRC_MUST_USE int brc_continue(brc_pick_result *out, brc_iter **conflicts, breccia *repo, const brc_pick_opts *opts,
                                      brc_error *err);
/* Drops the open merge, cherry-pick, revert or rebase, together with the changes that were written
 * to settle it and the commits that it made. Fails with BRC_EMISUSE if none is open. */
BRC_API BRC_MUST_USE int brc_abort(breccia *repo, brc_error *err);

/* ---- sessions and the hierarchy ------------------------------------------ */

/* Opens a session on `rev` (NULL: the current branch). `mode` is BRC_SESSION_AT or one of the modes
 * that need a branch; with BRC_SESSION_ANY_REV, a tag, a commit id or another revision is opened as
 * by BRC_SESSION_AT, and brc_session_stat() says so.
 *
 * BRC_SESSION_VIEW and BRC_SESSION_WRITE show the uncommitted changes that the branch's users
 * share, on top of the commit where these changes began. If the branch has moved since
 * (BRC_DRAFT_STALE), they do not show its new commits. With BRC_SESSION_COMMITS the session always
 * shows the branch's newest commit.
 *
 * What a session of BRC_SESSION_AT shows stays readable as long as the session or one of its arrays
 * exists, even if others reset, delete or expire whatever named it and collect garbage. On systems
 * without locks of open file descriptions (Linux has them) it stays readable only as long as a
 * branch, a tag or the window of the operation log has it. Fails with BRC_ESTALE if the version was
 * collected just now.
 *
 * With BRC_SESSION_TOKEN, `rev` is a token or a name from brc_session_token() or brc_session_name(),
 * and the call opens another session on its draft. Each session sees what the others write, and
 * sessions that write at the same time behave like two that write a branch's shared changes. Fails
 * with BRC_EINVAL if the text is not a token, with BRC_ENOTFOUND if the token belongs to another
 * file, with BRC_ESTALE if the draft was joined, adopted, handed over or dropped, and with
 * BRC_EMISUSE if the draft's owner has ended (use brc_draft_adopt()). Instead of a token, `rev` may
 * be the number of a private draft of this process in decimal digits ("12", brc_draft.id); that
 * fails with BRC_EBUSY if the draft belongs to another process.
 *
 * The changes of a private session stay in the file when the session is freed and when its process
 * dies: see brc_drafts(). Before its first change and after a commit, a private session shows the
 * branch as it is now, and its changes begin there. A private session that has changes follows its
 * branch when the branch is renamed. */
BRC_API BRC_MUST_USE int brc_session_open(brc_session **out, breccia *repo, const char *rev, int mode, brc_error *err);
BRC_API void brc_session_free(brc_session *s);
/* Says what the session shows now. Two sessions on one file with equal answers show exactly the
 * same, in any process and at any time. */
BRC_API BRC_MUST_USE int brc_session_stat(brc_session_info *out, brc_session *s, brc_error *err);
/* Commits the uncommitted changes to the session's branch; the session continues from the new
 * commit. Fails with BRC_EMISUSE if there is nothing to commit.
 *
 * If the branch has moved since the changes began, they are merged onto its tip by the rules of
 * brc_merge(), and the tip becomes the only parent. If the tip already has all the changes, *out is
 * the tip. Fails with BRC_ECONFLICT if the changes conflict with the branch's new commits. If
 * others commit meanwhile, the changes are merged again; committers to one branch are served in the
 * order in which they came, until the time to wait (brc_open_opts.wait_ms) is over, and then the
 * call fails with BRC_EBUSY. With BRC_COMMIT_NO_MERGE or BRC_COMMIT_AMEND, and between brc_begin()
 * and brc_end(), a branch that has moved is BRC_ESTALE. A failed commit keeps the changes.
 *
 * `out` may be NULL. *opts->conflicts lists the conflicts (brc_conflict) with the branch as it is now, on which the
 * commit failed; "ours" is the branch, "theirs" the session. With BRC_COMMIT_DRY_RUN the call makes
 * no commit and returns BRC_OK, and the list has what would keep the changes from being committed;
 * it is empty if nothing does. Lists are not made between brc_begin() and brc_end(), where a dry
 * run is BRC_EMISUSE. */
BRC_API BRC_MUST_USE int brc_session_commit(brc_oid *out, brc_session *s, const brc_commit_opts *opts, brc_error *err);
/* Sets *clean to 1 if there are no uncommitted changes, else to 0. */
BRC_API BRC_MUST_USE int brc_session_clean(int *clean, brc_session *s, brc_error *err);
/* Lists the drafts of the whole file (brc_draft), oldest first: the shared uncommitted changes of branches and
 * the private ones of sessions, including those of processes that have ended. */
BRC_API BRC_MUST_USE int brc_drafts(brc_iter **out, breccia *repo, brc_error *err);
/* Makes a private draft part of its branch's shared uncommitted changes, for example after a crash.
 * Fails with BRC_EBUSY while the process that owns the draft is running.
 *
 * If the branch has uncommitted changes, the draft is merged with them, element by element and
 * attribute by attribute. This fails with BRC_ECONFLICT if both changed the same thing, and with
 * BRC_ESTALE if they are based on different commits; then both stay as they were. If the branch has no uncommitted changes but has moved
 * since the draft began, the draft is merged onto its tip. A draft that conflicts with the tip is
 * adopted as it is (BRC_DRAFT_STALE), and so is every draft between brc_begin() and brc_end();
 * brc_session_commit() merges it later, and BRC_COMMIT_DRY_RUN lists the conflicts. */
BRC_API BRC_MUST_USE int brc_draft_adopt(breccia *repo, int64_t id, brc_error *err);
/* Drops a draft. The chunks that it stored stay in the file until garbage collection. Fails with
 * BRC_EBUSY while another process that owns the draft is running. Sessions of this process on the
 * draft then fail with BRC_ESTALE; a session that was opened by a name (brc_session_name()) instead
 * loses its changes and continues from the branch. */
BRC_API BRC_MUST_USE int brc_draft_drop(breccia *repo, int64_t id, brc_error *err);
/* Gives the changes of one private session to another session of the same handle and branch, under
 * the rules of brc_draft_adopt(). `from` continues from the branch as it is, without changes. The
 * call copies no chunks, however many there are, unless both sessions have changed one chunk. */
BRC_API BRC_MUST_USE int brc_session_hand_over(brc_session *from, brc_session *to, brc_error *err);
/* Appends a token: a text that names the private session's draft and contains its secret, with a
 * NUL behind it. Anyone who has the token can open another session on that draft
 * (BRC_SESSION_TOKEN), in any process of this machine that has the file open. The call begins the
 * draft if there is none yet; the draft then stays, even without a change in it, until its process
 * has ended and brc_draft_drop() removes it. The draft still belongs to its owner: a process that
 * attached to it may end, even by SIGKILL, without taking anything with it. Anyone who can read the
 * file can read the secret, which only keeps a wrong number from being taken for another draft's.
 * Fails with BRC_EMISUSE for other sessions. */
BRC_API BRC_MUST_USE int brc_session_token(brc_buf *out, brc_session *s, brc_error *err);
/* Opens a child of the private session `s`: another private session that begins with everything
 * that `s` shows, uncommitted changes included. It belongs to the process that owns `s`, whoever
 * makes the call. From then on neither session sees what the other writes, nor new commits of the
 * branch. Other processes work in the child through brc_session_token(), and brc_session_join()
 * brings its changes back.
 *
 * A child cannot be committed by itself (brc_session_commit() fails with BRC_EMISUSE).
 * brc_session_discard() resets it to its beginning, and brc_draft_drop() drops it in the process
 * that owns it. A child may have children. A child that is not joined ends with its parent
 * (brc_session_finish()), or, if it has changes, stays as an orphan (BRC_DRAFT_ORPHAN), which is a
 * dead draft like others when the process has ended.
 *
 * The uncommitted changes of `s` are folded as by a commit, and no chunk is copied. A further child
 * costs one row unless something is written in between. While `s` has savepoints, every child folds
 * again. Fails with BRC_EMISUSE if `s` is not private, within brc_bulk_begin() and in a
 * transaction. */
BRC_API BRC_MUST_USE int brc_session_fork(brc_session **child, brc_session *s, brc_error *err);
/* Brings the changes of those children of `s` that the tokens name into `s`: all of them, or
 * nothing. They are merged by the rules of brc_merge(), down to elements. The base is what a child
 * began with, "ours" is `s` with the children joined before, and "theirs" is the child as the file
 * has it, even if its writers are gone. The order of the tokens does not matter, and `s` may have
 * changed since the fork. Joined children no longer exist: their sessions and a second join fail
 * with BRC_ESTALE. New commits of the branch are merged later, by the commit.
 *
 * If a conflict cannot be decided, the call fails with BRC_ECONFLICT, nothing changes, and
 * *conflicts (`conflicts` may be NULL) lists the conflicts although the call fails;
 * brc_conflict.draft is the child. `flags` must be 0. Fails with BRC_EMISUSE if a token names a
 * draft that is not a child of `s`, if `s` has a savepoint, within brc_bulk_begin() and in a
 * transaction. Fails like BRC_SESSION_TOKEN for bad tokens, and with BRC_EINVAL for a token that
 * is given twice. Fails with BRC_EBUSY if others kept writing until the time to wait was over. */
BRC_API BRC_MUST_USE int brc_session_join(brc_iter **conflicts, brc_session *s, const char *const *tokens, size_t n,
                                          uint32_t flags, brc_error *err);
/* Writes that the session makes between brc_bulk_begin() and brc_bulk_end(), and only those, are
 * stored in many short transactions: readers and other writers get in between and see none of them.
 * All writes become visible together, and durable, when brc_bulk_end() returns; without
 * BRC_END_KEEP they are dropped. Imports, brc_array_load_stream(), brc_array_load_npy() and large
 * writes do the same by themselves.
 *
 * brc_bulk_end() fails with BRC_ECONFLICT if others have meanwhile changed something that the
 * writes are based on (an array's metadata, or a chunk that the writes changed in part); the writes
 * are then kept as a private draft (brc_drafts()). In between, a session can make nodes, set
 * attributes, and write and grow arrays. Calls that remove, move, shrink, commit or set keys fail
 * with BRC_EMISUSE, and so do changes by another session of this handle. Within brc_begin() the
 * writes are part of that transaction. Pairs nest. */
BRC_API BRC_MUST_USE int brc_bulk_begin(brc_session *s, brc_error *err);
BRC_API BRC_MUST_USE int brc_bulk_end(brc_session *s, uint32_t flags, brc_error *err);
/* Savepoints are marks in a session's uncommitted changes to which the session can return. As in
 * SQL they nest, names may be used again, and the innermost savepoint of a name counts; NULL names
 * the innermost of all. A rollback restores everything uncommitted to its state at the savepoint,
 * which stays open, and ends the savepoints within it. A release ends the savepoint and those
 * within it, and keeps the changes. Each call is durable when it returns, copies no chunks, and
 * holds no lock afterwards: others who see the session's changes see its later writes too. Between
 * brc_begin() and brc_end() all this is part of that transaction. After a rollback, arrays and the
 * key view show the restored state.
 *
 * A savepoint is released when the session or its process ends, when the changes are committed,
 * discarded or handed over, and when others commit, reset or drop the changes; using it then fails
 * with BRC_ENOTFOUND. While a savepoint is open, a private session without changes stays at the
 * commit that it showed when the savepoint was made.
 *
 * If others share the session's changes they may continue to write. A rollback then fails with
 * BRC_ECONFLICT and takes nothing back, so that none of their writes is lost. Only one session at a
 * time can have savepoints in shared changes: the next one gets BRC_EBUSY. A session has at most 16
 * savepoints (BRC_ELIMIT). Fails with BRC_EMISUSE within brc_bulk_begin(). */
BRC_API BRC_MUST_USE int brc_savepoint(brc_session *s, int what, const char *name, brc_error *err);
/* Keeps a log of what this session changes: a session of mode BRC_SESSION_WRITE, whose changes all users of its branch
 * share. What it changes from now on, until the next call, is one operation, which brc_undo() takes back as a whole;
 * `text`, 1 to 200 bytes, says what it does ("rm /a"), and NULL ends it. The last operations of a branch are kept, 4 to 8
 * of them, until the changes are committed or dropped, a session without a log changes them, or brc_gc() finds them too
 * old. brc_draft_log() lists them. An open merge has no log. */
BRC_API BRC_MUST_USE int brc_session_log(brc_session *s, const char *text, brc_error *err);
/* Drops all uncommitted changes of this session. */
BRC_API BRC_MUST_USE int brc_session_discard(brc_session *s, brc_error *err);

/* Lists the children of a group (brc_node) by name, or with BRC_LIST_RECURSE the whole tree under a node, the
 * node itself first. The list does not show changes that are made while it is read; brc_end()
 * without BRC_END_KEEP ends a list that began in its transaction. Nodes are read one by one:
 * brc_next() fails if a node is damaged, and with BRC_ELIMIT past brc_open_opts.max_nodes. */
BRC_API BRC_MUST_USE int brc_list(brc_iter **out, brc_session *s, const char *path, uint32_t flags, brc_error *err);
/* Sets *kind to BRC_GROUP or BRC_ARRAY, or to 0 if the node does not exist. */
BRC_API BRC_MUST_USE int brc_node_kind(int *kind, brc_session *s, const char *path, brc_error *err);
/* Appends the node's zarr.json. */
BRC_API BRC_MUST_USE int brc_node_json(brc_buf *out, brc_session *s, const char *path, brc_error *err);
/* Appends the attribute `key`, or all attributes (NULL), as JSON. */
BRC_API BRC_MUST_USE int brc_attrs_get(brc_buf *out, brc_session *s, const char *path, const char *key, brc_error *err);
/* Sets the attribute `key` to a JSON text, or removes it (`json` NULL). */
BRC_API BRC_MUST_USE int brc_attrs_set(brc_session *s, const char *path, const char *key, const char *json, brc_error *err);
/* Makes a group, and the groups above it that are missing. `attrs_json` may be NULL. */
BRC_API BRC_MUST_USE int brc_group_create(brc_session *s, const char *path, const char *attrs_json, brc_error *err);
/* Removes a node with everything under it. The root cannot be removed (BRC_EINVAL). */
BRC_API BRC_MUST_USE int brc_node_remove(brc_session *s, const char *path, brc_error *err);
/* Moves a node with everything under it, or with BRC_NODE_COPY copies it. Neither copies chunks. */
BRC_API BRC_MUST_USE int brc_node_move(brc_session *s, const char *from, const char *to, uint32_t flags, brc_error *err);
/* Restores `path` and everything under it to `rev` (NULL: the branch's tip). If the node did not
 * exist there, it is removed. */
BRC_API BRC_MUST_USE int brc_node_restore(brc_session *s, const char *path, const char *rev, brc_error *err);

/* ---- arrays --------------------------------------------------------------- */

/* Makes an array, and the groups above it that are missing. */
BRC_API BRC_MUST_USE int brc_array_create(brc_array **out, brc_session *s, const char *path, const brc_array_spec *spec, brc_error *err);
/* Opens an array. Fails with BRC_ENOTFOUND if no node is at `path`, and with BRC_EINVAL if a group is. */
BRC_API BRC_MUST_USE int brc_array_open(brc_array **out, brc_session *s, const char *path, brc_error *err);
BRC_API void brc_array_free(brc_array *a);
/* Returns a description of the array, which is valid until the array is changed or freed. If a
 * change fails, the description is the one before the change. */
BRC_API const brc_array_info *brc_array_describe(const brc_array *a);
/* Returns how many chunks are stored, and how many bytes they take as stored. */
BRC_API BRC_MUST_USE int brc_array_stat(uint64_t *chunks, uint64_t *stored_bytes, brc_array *a, brc_error *err);
/* Sums up the elements, or those that `opts` (may be NULL) selects: their number, the least and the
 * greatest, mean and standard deviation, and a histogram. `bins` (NULL: not wanted) lists first the
 * histogram's bins (brc_stats_bin), then, if out->nvalues is not 0, the different values in order with
 * how often each is there; free it with brc_iter_free().
 *
 * NaN counts as an element and as nothing else; infinite elements are not in the histogram. Elements
 * that were never written count with the fill value. Bins are a power of two wide, begin at
 * multiples of that, and their counts are exact; there are at most 20. The values are listed for
 * integers and booleans that lie within 256 of each other.
 *
 * Every chunk with a selected element is decoded, on the pool and within the budget of memory, but what a whole
 * chunk comes to is kept in the file, if that can be written at once: then the next call reads only the chunks that
 * its selection cuts. Results do not depend on the number of threads, nor on what was kept. Fails with BRC_EINVAL
 * if there are no such elements or no such field, and with BRC_EUNSUPPORTED if the type has fields and none is named,
 * or if it is not one of numbers, times, texts or bytes of variable length. */
BRC_API BRC_MUST_USE int brc_array_stats(brc_array_summary *out, brc_iter **bins, brc_array *a,
                                         const brc_array_stats_opts *opts, brc_error *err);
/* Changes the array's shape. Elements that are cut off are lost: if the array grows again, they
 * have the fill value. The change is all or nothing; cutting a large array takes many short
 * transactions, except between brc_begin() and brc_end(). */
BRC_API BRC_MUST_USE int brc_array_resize(brc_array *a, const uint64_t *shape, brc_error *err);
/* Grows `axis` by `count` and writes packed elements into the new part: both, or neither. */
BRC_API BRC_MUST_USE int brc_array_append(brc_array *a, int axis, uint64_t count, const void *data, size_t len, brc_error *err);
/* Sets the Zarr v3 codec list for chunks that are written from now on. A list of compressors alone
 * (bytes->bytes codecs, or none) replaces the compressors of the present list, in shards those of
 * the inner chunks. Stored chunks keep their
 * encoding, unless `rewrite` is 1: then every chunk is stored again in many short transactions, of
 * which the last one changes the array. If a rewrite fails or is killed, the array stays as it was;
 * the next rewrite skips the chunks that are done, unless the chunk shape changes. Between
 * brc_begin() and brc_end() a rewrite is one transaction. */
BRC_API BRC_MUST_USE int brc_array_set_codecs(brc_array *a, const char *codecs_json, int rewrite, brc_error *err);
/* Sets the backend for chunks that are written from now on. Stored chunks stay where they are.
 * `backend_json` is a name or {"name":...,"configuration":{...}}, like brc_array_info.backend_json;
 * options that are left out get the backend's default. NULL or "inline" is the file itself. Fails
 * with BRC_EUNSUPPORTED if the backend is not known here (breccia_backend.h), and with BRC_EINVAL
 * if its configuration is wrong. */
BRC_API BRC_MUST_USE int brc_array_set_backend(brc_array *a, const char *backend_json, brc_error *err);
/* Reads or writes the selected elements (`sel` NULL: the whole array), packed in C order and native
 * byte order. An element of variable length is its length in bytes, as a little-endian uint32, and
 * the bytes. Write such elements in this form; brc_read() reads them (brc_io.out). */
BRC_API BRC_MUST_USE int brc_array_read(brc_array *a, const brc_sel *sel, void *dst, size_t len, brc_error *err);
BRC_API BRC_MUST_USE int brc_array_write(brc_array *a, const brc_sel *sel, const void *src, size_t len, brc_error *err);
/* Does n reads, or n writes in one transaction: of boxes or positions, from and to memory of any
 * layout, and reads of every data type (brc_io). They may be of several arrays of one repository.
 *
 * The reads show one state of the arrays. Consecutive reads that need the same chunks decode each
 * chunk once, so list rows in their order. If writes overlap, or several elements are written to one
 * position, the later one stays, in the order of the items and in C order. Each chunk of one item is
 * decoded, and stored, once, in whatever order its positions come. Fails with BRC_EINVAL if a
 * position is outside the array. */
BRC_API BRC_MUST_USE int brc_read(const brc_io *io, size_t n, brc_error *err);
BRC_API BRC_MUST_USE int brc_write(const brc_io *io, size_t n, brc_error *err);
/* Passes the selected elements (NULL: the whole array), in the form that brc_array_write()
 * takes, to `put` run by run in C order, for selections that are larger than memory. A run has at most 64
 * MiB, or up to four times as much if that is a row of chunks; elements of variable length count as
 * 1 KiB each. `put` is called on the caller's thread and may use the library, but must not keep
 * `data`; a result other than 0 stops the call with BRC_EINTERRUPT. The elements are those of the
 * array when the call began, whatever others change meanwhile, and the call does not block others.
 * Fails with BRC_ESTALE if others changed more uncommitted chunks than a quarter of the memory
 * budget can remember. With BRC_STREAM_NPY the bytes are those of a .npy file with the selected
 * elements, piece by piece. */
BRC_API BRC_MUST_USE int brc_array_stream(brc_array *a, const brc_sel *sel, uint32_t flags,
                                          int (*put)(void *ctx, const void *data, size_t len), void *ctx, brc_error *err);
/* Writes the bytes that brc_array_stream() passes on into the open file `fd`, from its offset on, and
 * leaves the offset behind them: a regular file by several threads, while the next run is read.
 * `name` is the file's name in messages. Does not sync. Whatever was written stays after a failure. */
BRC_API BRC_MUST_USE int brc_array_save(brc_array *a, const brc_sel *sel, uint32_t flags, int fd, const char *name,
                                        brc_error *err);
/* Writes the selected elements (NULL: the whole array) from `get`, which gives them in C order and
 * in the form of brc_array_write(), for selections that are larger than memory. `get` writes the
 * next bytes to `dst` and their number to *got, which is less than `len` only at the end of the
 * source; a result other than 0 stops the call with BRC_EINTERRUPT. `get` is called on the caller's
 * thread and must not use the repository. The source must end with the last selected element, else
 * the call fails with BRC_EINVAL. A selection of up to 64 MiB is read completely before anything is
 * written; a larger one is written as between brc_bulk_begin() and brc_bulk_end(). After a failure
 * nothing is written. */
BRC_API BRC_MUST_USE int brc_array_load_stream(brc_array *a, const brc_sel *sel,
                                               int (*get)(void *ctx, void *dst, size_t len, size_t *got), void *ctx,
                                               brc_error *err);
/* Writes one element to every position of the selection. */
BRC_API BRC_MUST_USE int brc_array_fill(brc_array *a, const brc_sel *sel, const void *element, brc_error *err);
/* Restores the selected region to `rev` (NULL: the branch's tip). */
BRC_API BRC_MUST_USE int brc_array_restore(brc_array *a, const brc_sel *sel, const char *rev, brc_error *err);

/* Lists the stored chunks that the selection (NULL: the whole array) touches, in row-major order
 * (brc_blamed), each with the commit that changed it last. With BRC_BLAME_ELEMENTS lists all selected elements,
 * at most 2^26, in runs along the last axis. The array's moves are followed where commits record
 * them. Anything that a merge took from a parent is attributed to that parent's history. The array
 * must belong to a session of BRC_SESSION_AT. A chunk counts as changed when its content changed.
 * An element counts as changed also when the array got another fill value, or grew to include the
 * element. */
BRC_API BRC_MUST_USE int brc_blame(brc_iter **out, brc_array *a, const brc_sel *sel, uint32_t flags, brc_error *err);

/* Reads a selection in Python's slicing syntax for this array's shape: negative indices count from
 * the end, slices are clipped, and "..." stands for the remaining axes. NULL selects the whole array. */
BRC_API BRC_MUST_USE int brc_sel_parse(brc_sel *out, const brc_array *a, const char *text, brc_error *err);
/* Returns how many elements are selected. */
BRC_API uint64_t brc_sel_count(const brc_sel *sel);

/* Writes a .npy file into the selection, which must have the file's shape. With `axis` >= 0,
 * appends the file along that axis instead, and ignores `sel`. */
BRC_API BRC_MUST_USE int brc_array_load_npy(brc_array *a, const brc_sel *sel, int axis, const char *file, brc_error *err);

/* ---- tensors: elements in memory of any kind ------------------------------- */

/* Names the buffer prototype of tensors that are read from this handle of the array ("pool", "cuda:1"); NULL: that of
 * the repository (brc_open_opts). A call may name another. Nothing is stored. Fails with BRC_EUNSUPPORTED if
 * the registry has no prototype of this name; whether the machine has such memory, only a read tells. */
BRC_API BRC_MUST_USE int brc_array_set_prototype(brc_array *a, const char *name, brc_error *err);
/* Reads elements of a fixed size into new memory, which the buffer prototype of the call, of the array or of the
 * repository allocates, in C order; `opts` NULL: all defaults. The elements are there, for every stream, when
 * the call returns. docs/BUFFERS.md says what is copied. Fails with BRC_EUNSUPPORTED if the prototype is not known
 * or the machine has no such memory, and with BRC_ENOMEM if there is no room. */
BRC_API BRC_MUST_USE int brc_tensor_read(brc_tensor **out, brc_array *a, const brc_tensor_opts *opts, brc_error *err);
/* Writes a tensor of the array's data type and of the shape of the selection. The tensor may be memory of any device
 * that a prototype of the registry copies; of opts->prototype only that is used. It is only read, and what it has in
 * the order of opts->stream. */
BRC_API BRC_MUST_USE int brc_tensor_write(brc_array *a, const brc_tensor *t, const brc_tensor_opts *opts, brc_error *err);
BRC_API const brc_tensor_info *brc_tensor_describe(const brc_tensor *t);
/* Returns the tensor itself, counted once more, if the processor reaches it; else a copy in the host's memory. */
BRC_API BRC_MUST_USE int brc_tensor_to_host(brc_tensor **out, brc_tensor *t, void *stream, brc_buffer_stats *stats,
                                            brc_error *err);
/* Drops one reference. Any thread may do so, also after the repository has been freed. */
BRC_API void brc_tensor_free(brc_tensor *t);

/* Gives the tensor out as DLPack has it, without a copy: a DLManagedTensorVersioned of version 1, or with
 * BRC_DLPACK_OLD a DLManagedTensor. Its deleter drops a reference to the tensor, on any thread and at any time.
 * BRC_EUNSUPPORTED: DLPack has no name for the data type. */
BRC_API BRC_MUST_USE int brc_tensor_to_dlpack(void **out, brc_tensor *t, uint32_t flags, brc_error *err);
/* Makes a tensor of such a structure, without a copy, and takes it over: brc_tensor_free() calls its deleter. After a
 * failure it still is the caller's. */
BRC_API BRC_MUST_USE int brc_tensor_of_dlpack(brc_tensor **out, void *managed, uint32_t flags, brc_error *err);

/* Reads a box of elements in the form of Arrow's C data interface: numbers and times as they are in memory, texts and
 * bytes with offsets of 64 bits, optional elements and times that are none as nulls. The first axis is the array, and
 * further axes are lists of fixed length in it; a single element is an array of one. `array` or `schema` may be NULL.
 * Numbers stay where they were read, in memory of the prototype, which must be the host's. release() may be called on
 * any thread, also after the repository was freed. BRC_EUNSUPPORTED: Arrow has no such data type. */
BRC_API BRC_MUST_USE int brc_arrow_read(struct ArrowArray *array, struct ArrowSchema *schema, brc_array *a,
                                        const brc_tensor_opts *opts, brc_error *err);
/* Makes a stream of tables with one column, named after the array, of rows along the first axis: whole chunks, about 1
 * MiB. The elements are those of the array when the call began. Each step reads, and so is a call on the array's
 * repository; with BRC_READ_NOW everything is read at once, and the stream may go to other threads. */
BRC_API BRC_MUST_USE int brc_arrow_stream(struct ArrowArrayStream *out, brc_array *a, const brc_tensor_opts *opts,
                                          brc_error *err);
/* Writes an Arrow array of the selection's shape (lists of fixed length for all axes after the first) and of the
 * array's data type. Texts and bytes may have offsets of 32 or 64 bits. The caller still has to release both. */
BRC_API BRC_MUST_USE int brc_arrow_write(brc_array *a, const struct ArrowSchema *schema, const struct ArrowArray *array,
                                         const brc_tensor_opts *opts, brc_error *err);

/* ---- the Zarr store view: what a Zarr directory would hold ---------------- */

/* A key is "a/zarr.json", "a/c/0/1" and the like: names joined by "/", none of them empty, "." or
 * "..", at most 5,120 bytes in all. The value of a chunk's key is the chunk's bytes as the array's
 * codecs encode them, whatever encoding it is stored in. A shard is assembled from its chunks, in
 * the order of the grid and without gaps. Each call sees one state of the hierarchy. */

/* Appends a key's value, or the part of it that `range` names (NULL or BRC_RANGE_ALL: the whole
 * value). A range that extends past the end stops there, and a range that begins at or past the end
 * is empty. Of a shard, only the chunks that the range touches are read. `info` (may be NULL)
 * describes the whole value. Fails with BRC_ENOTFOUND if the key does not exist.
 *
 * With `out` NULL the call only describes the value, and reads no chunk that is stored in the
 * array's encoding or that was asked for before. With `info` NULL as well it only says whether the
 * key exists, and reads no chunk at all. */
BRC_API BRC_MUST_USE int brc_key_get(brc_buf *out, brc_session *s, const char *key, const brc_key_range *range,
                                     brc_key_info *info, brc_error *err);
/* Bounds what each later call of brc_key_get() on this session may cost; `limits` NULL: nothing is bounded. A call that would
 * cost more reads no chunk and fails with BRC_ELIMIT. */
BRC_API BRC_MUST_USE int brc_key_limit(brc_session *s, const brc_key_limits *limits, brc_error *err);
/* Reads n keys, which may repeat, each with its range (`ranges` NULL: the whole values), into
 * out[0] to out[n-1]. found[i] is 1, or 0 if the key does not exist, which is not an error. If the
 * call fails, all are 0. */
BRC_API BRC_MUST_USE int brc_key_get_many(brc_buf *out, uint8_t *found, brc_session *s, const char *const *keys,
                                          const brc_key_range *ranges, size_t n, brc_error *err);

/* Sets a key; it takes every key and value that a directory would take. "a/zarr.json" makes or
 * changes the node /a. A chunk or a shard is decoded by the array's codecs, and its bytes are kept.
 * Bytes that are not a node or chunk yet (a chunk before its array, a chunk that does not decode,
 * any other name) are kept as they are, and become a chunk as soon as a document makes them one.
 * brc_session_commit() refuses the keys that remain and names them (BRC_ECONFLICT).
 *
 * A document with a smaller shape cuts chunks and shards as brc_array_resize() does. As in a
 * directory, data that is set beyond the array's edge stays, and a chunk of only fill values exists
 * once it was set. New codecs of an array do not change what its chunks hold. Chunks that get
 * another form or another key by a new document keep their bytes.
 *
 * With BRC_KEY_NEW the call fails with BRC_EEXISTS, and changes nothing, if the key exists. Each call
 * is one transaction. Between brc_begin() and brc_end(), and in brc_key_set_many(), many keys are set
 * in one. */
BRC_API BRC_MUST_USE int brc_key_set(brc_session *s, const char *key, const void *data, size_t len, uint32_t flags,
                                     brc_error *err);
/* Sets n keys in order: all of them or none. A key whose data[i] is NULL is deleted. */
BRC_API BRC_MUST_USE int brc_key_set_many(brc_session *s, const char *const *keys, const void *const *data,
                                          const size_t *lens, size_t n, brc_error *err);
/* Deletes a key, or with BRC_KEY_PREFIX every key that begins with the text: "a/" is the contents of
 * the directory a, "" is everything. A key that does not exist is not an error. A node without its
 * document still exists for the keys under it. */
BRC_API BRC_MUST_USE int brc_key_delete(brc_session *s, const char *key, uint32_t flags, brc_error *err);

/* Lists the keys (const char) that begin with a text, in no particular order: "" is all keys, "a/"
 * those in the directory a, and "a" also a file "ab". Changes that are made meanwhile may or may not
 * show.
 *
 * With BRC_KEYS_DIR the text names a directory of keys ("" is the top, "a" and "a/" are the same),
 * and the list has the names in it, each once: a name with a "/" behind it is a directory, in which
 * there are keys. A key and a directory may have the same name; they are two items. A directory that
 * does not exist is empty.
 *
 * With BRC_KEYS_LOOSE the list has only keys whose uncommitted bytes are not a node or chunk yet,
 * sorted by bytes. brc_session_commit() refuses them as long as they are not. */
BRC_API BRC_MUST_USE int brc_keys(brc_iter **out, brc_session *s, const char *prefix, uint32_t flags, brc_error *err);

/* Appends what a Zarr v2 directory would have for the node, as an export of version 2 does: its .zarray or .zgroup to
 * `out`, and its .zattrs to `attrs`, which is empty if there would be none. The bytes of chunks are the same in both versions; their
 * keys are their indexes, with the "dimension_separator" of the .zarray between them. Fails with BRC_EUNSUPPORTED if
 * version 2 cannot express the array. */
BRC_API BRC_MUST_USE int brc_node_json_v2(brc_buf *out, brc_buf *attrs, brc_session *s, const char *path, brc_error *err);
/* Appends the key of a chunk, or of a shard, of the array, without the array's path: "c/0/1". */
BRC_API BRC_MUST_USE int brc_chunk_key(brc_buf *out, const brc_array *a, const uint64_t *index, brc_error *err);

/* ---- exchange -------------------------------------------------------------- */

/* Imports a Zarr directory or .zip (v3 or v2), or a .npy, .npz, IDX, NetCDF or HDF5 file, as the
 * node `path` (NULL: named after the source). All or nothing.
 *
 * With BRC_XFER_STREAM, `source` is NULL, and a Zarr v3 hierarchy arrives as a tar stream
 * (docs/STREAM.md) on the descriptor opts->fd, which is read to its end and stays open. If `path` is
 * NULL, a group becomes the root if the root is empty; otherwise a path is needed. */
BRC_API BRC_MUST_USE int brc_import(brc_session *s, const char *source, const char *path, const brc_xfer_opts *opts, brc_error *err);
/* Writes the node `path` (NULL: the root) as a Zarr directory or .zip, .npy, .npz, NetCDF (.nc) or
 * HDF5 (.h5) file. The ending of `dest` and the format ("zarr3", "zarr2", "zip", "npy", "npz",
 * "netcdf", "netcdf3", "hdf5") decide. Fails if `dest` exists.
 *
 * With BRC_XFER_STREAM, `dest` is NULL, and the node goes to the descriptor opts->fd, which stays
 * open, as the stream that brc_import() reads. Chunks are encoded by the arrays' codecs. If the
 * reader goes away, the call fails with BRC_EIO and raises no SIGPIPE. A stream that fails is left
 * without its end, so that no reader takes it for complete. */
BRC_API BRC_MUST_USE int brc_export(brc_session *s, const char *path, const char *dest, const brc_xfer_opts *opts, brc_error *err);

/* ---- for the command --------------------------------------------------------- */

/* Only the command needs these functions: it shows one bar for several imports, and reads and
 * prints single elements. */

/* Calls between brc_progress_begin() and brc_progress_end() report progress towards one total of
 * `total` bytes (0: not known). `phase` must stay valid until the end. `rc` is the result of the
 * calls. Pairs do not nest. */
BRC_API void brc_progress_begin(breccia *repo, const char *phase, uint64_t total);
BRC_API void brc_progress_end(breccia *repo, int rc);

/* Computes how many decoded bytes an import of the source will bring, from its documents and
 * headers, for brc_progress_begin() around several imports. Excluded nodes do not count. *bytes is
 * 0 if `opts` names a command (`with`). */
BRC_API BRC_MUST_USE int brc_import_bytes(uint64_t *bytes, brc_session *s, const char *source, const brc_xfer_opts *opts, brc_error *err);

/* Appends one element of the array's data type, read from text as people write it ("1.5", "NaN",
 * "true", "[1, 2]") or from any form that brc_element_format() writes. */
BRC_API BRC_MUST_USE int brc_element_parse(brc_buf *out, const brc_array *a, const char *text, brc_error *err);
enum {
    BRC_ELEMENT_TEXT = 0,  /* for people; a string is written as it is */
    BRC_ELEMENT_JSON = 1,
    BRC_ELEMENT_QUOTED = 2, /* like TEXT, but strings and bytes are quoted and escaped as in Python */
    BRC_ELEMENT_DATED = 3   /* like JSON, but times, also those in fields, are strings as in TEXT */
};
/* Appends one element as text in one of the forms BRC_ELEMENT_*. */
BRC_API BRC_MUST_USE int brc_element_format(brc_buf *out, const brc_array *a, const void *element, int form, brc_error *err);

/* ---- for the Python package ------------------------------------------------- */

/* Only the Python package, or another binding, needs these functions: its objects live as long as
 * its garbage collector lets them, and Zarr's Python library asks about many keys at once. */

/* Makes later calls on this handle report to `progress` instead of the function that the handle was
 * opened with. NULL turns reports off. A progress function must not call it. */
BRC_API void brc_progress_set(breccia *repo, brc_progress_fn progress, void *ctx);

/* Says that the work of a private session is done. If the session has no uncommitted changes, its
 * draft is dropped, and so is each child that changed nothing and was not joined; these children
 * then fail with BRC_ESTALE. Drafts with changes stay in the file. The session can still be used
 * afterwards. Fails with BRC_EMISUSE for other sessions.
 *
 * brc_session_free() does the same, if it need not wait, for a session of which nobody got a
 * number, a token or a name and whose changes were all taken back. */
BRC_API BRC_MUST_USE int brc_session_finish(brc_session *s, brc_error *err);

/* Appends a name for private sessions of this process on a branch (NULL: the current one), with a
 * NUL behind it. BRC_SESSION_TOKEN takes it like a token. The call writes nothing: the first
 * session of that name that changes something, in any process, begins the draft. If nothing was
 * changed in the draft and it has no children, it ends with the first of this process's sessions
 * that is closed, and the other sessions continue from the branch as it is. */
BRC_API BRC_MUST_USE int brc_session_name(brc_buf *out, breccia *repo, const char *branch, brc_error *err);

/* Brings the description up to date with changes that others made, as every call that reads
 * elements does. */
BRC_API BRC_MUST_USE int brc_array_refresh(brc_array *a, brc_error *err);

/* Locates the chunks (of sharded arrays: the shards) that n keys of one array name. The array's
 * path is appended to `path` without a NUL, and `index` gets n * ndim numbers. there[i] (`there`
 * may be NULL) is 1 if the chunk is stored, else 0. Fails with BRC_ENOTFOUND if a key is not a
 * chunk's, and with BRC_EINVAL if the array does not have `ndim` dimensions or the keys are of
 * several arrays. */
BRC_API BRC_MUST_USE int brc_key_places(brc_buf *path, uint64_t *index, uint8_t *there, brc_session *s, const char *const *keys,
                                        size_t n, int ndim, brc_error *err);

/* Adds up the lengths of the values whose keys begin with a text, as brc_key_get() reports them,
 * key by key. Changes that are made meanwhile may or may not count. */
BRC_API BRC_MUST_USE int brc_keys_size(uint64_t *bytes, brc_session *s, const char *prefix, brc_error *err);

#ifdef __cplusplus
}
#endif
#endif /* BRECCIA_H */
