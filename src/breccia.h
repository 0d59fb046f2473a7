/*
 * breccia.h - versioned Zarr arrays in one SQLite file.
 *
 * These rules hold for every function here; only exceptions are documented.
 *
 *  Results    A function that can fail returns int: BRC_OK (0) or a negative
 *             BRC_E* code.  A *_next function returns 1 with an item, 0 at the
 *             end, or a negative code.
 *  Errors     `err`, always last, may be NULL.  It is written only on failure, of
 *             it only `size` is read, and it needs no clean-up.  A call that
 *             fails changes nothing that the file shows; what a bulk write had
 *             stored stays in it until it is collected.
 *  Ownership  What arrives through `T **out` is yours: release it with
 *             T's _free function.  What is returned as `const T *` is borrowed
 *             from the object it came from; an iterator's item until its next
 *             step.  On failure *out is NULL.  Every *_free accepts NULL, in
 *             any order.
 *  Structures What you allocate begins with its `size`: start from BRC_*_INIT.
 *             Options: a zero field means "the default", and a NULL pointer
 *             "all defaults".
 *  Threads    A repository and everything opened from it belong to one thread
 *             at a time.  brc_reopen() gives another thread its own handle.
 *             From elsewhere only brc_reopen(), brc_interrupt() and
 *             brc_interrupt_clear() may be called; brc_interrupt() also in a
 *             signal handler.
 *  fork()     A handle works in the process that opened it.  In a child every
 *             call fails with BRC_EMISUSE, and freeing leaves the file alone.
 *             A pool works there, with threads of its own.
 *
 * The structures, and how those of different versions go together, are in breccia_types.h.
 *
 * Units: sizes are bytes, shapes and selections are elements, times are
 * microseconds since 1970-01-01 UTC.  Text is UTF-8.  Element memory is C order
 * and native byte order unless a function says otherwise.
 */
#ifndef BRECCIA_H
#define BRECCIA_H

#include "breccia_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- library ------------------------------------------------------------- */

BRC_API const char *brc_version(void);
BRC_API int brc_version_number(void);
/* A few words for a code; never NULL. */
BRC_API const char *brc_strerror(int code);
BRC_API void brc_buf_dispose(brc_buf *buf);
/* Writes 2 * (hash length) lower-case hex digits: 32 for xxh128. */
BRC_API char *brc_oid_format(char out[65], const brc_oid *id);

/* `threads` threads in all, including the caller's; 0: one per core. */
BRC_API BRC_MUST_USE int brc_pool_new(brc_pool **out, unsigned threads, brc_error *err);
BRC_API void brc_pool_free(brc_pool *pool);

/* A registry starts with what this build contains; breccia_codec.h adds to it until
 * the first brc_open() that uses it. It must outlive the repositories that use it. */
BRC_API BRC_MUST_USE int brc_registry_new(brc_registry **out, brc_error *err);
BRC_API void brc_registry_free(brc_registry *reg);
/* Lists codecs and their implementations by name; reg NULL: this build's. */
BRC_API BRC_MUST_USE int brc_registry_codecs(brc_iter **out, const brc_registry *reg, brc_error *err);
BRC_API BRC_MUST_USE int brc_registry_codecs_next(brc_iter *it, const brc_codec_info **out, brc_error *err);
/* Lists backends, the file itself first. */
BRC_API BRC_MUST_USE int brc_registry_backends(brc_iter **out, const brc_registry *reg, brc_error *err);
BRC_API BRC_MUST_USE int brc_registry_backends_next(brc_iter *it, const brc_backend_info **out, brc_error *err);
/* Lists data types in the order in which they were added. */
BRC_API BRC_MUST_USE int brc_registry_dtypes(brc_iter **out, const brc_registry *reg, brc_error *err);
BRC_API BRC_MUST_USE int brc_registry_dtypes_next(brc_iter *it, const brc_dtype_info **out, brc_error *err);
/* Loads a plug-in: a shared object whose brc_plugin_init() adds to the registry
 * (breccia_codec.h). `path` must contain a "/". A plug-in runs with the rights of this
 * process: load only what you trust, and never a name taken from a repository. If
 * loading fails, everything that it had added is removed again. It stays loaded until
 * the registry is freed. BRC_EMISUSE: the registry is in use. */
BRC_API BRC_MUST_USE int brc_registry_load(brc_registry *reg, const char *path, brc_error *err);

/* ---- repository ---------------------------------------------------------- */

BRC_API BRC_MUST_USE int brc_open(breccia **out, const char *path, const brc_open_opts *opts, brc_error *err);
/* Another handle on the same file, for another thread, with the same options but without a
 * progress function. It shares the pool, the registry and what has been read of the history. May be
 * called from any thread while `repo` works, but not while it is freed; the handles are freed in
 * any order. BRC_ESTALE: the file was replaced by another repository. */
BRC_API BRC_MUST_USE int brc_reopen(breccia **out, const breccia *repo, brc_error *err);
/* It closes descriptors of the file, and an open may: do neither while an SQLite connection of
 * your own on that file is in a transaction, which would lose its locks. */
BRC_API void brc_free(breccia *repo);
/* BRC_EINVAL if `file` is the repository or one of its journals, under any name or
 * link, or would become one. Call it before you open a file to write, and on systems
 * without locks of open file descriptions (Linux has them) also to read: there closing a
 * descriptor of the repository drops the locks that this process holds on it. The
 * library checks the files that it opens itself. */
BRC_API BRC_MUST_USE int brc_check_file(const char *repository, const char *file, brc_error *err);
/* Stops the running call with BRC_EINTERRUPT, and every later one, until it is cleared. */
BRC_API void brc_interrupt(breccia *repo);
/* Ends an interruption: calls work again. From any thread, once the call that was to stop has
 * returned. */
BRC_API void brc_interrupt_clear(breccia *repo);
/* From now on calls on this handle report to `progress` (NULL: to nobody) in place of the function
 * that it was opened with. Not from within a call of that function. */
BRC_API void brc_progress_set(breccia *repo, brc_progress_fn progress, void *ctx);
/* Calls between these two report progress towards one total of `total` bytes (0: not
 * known). `phase` must live until the end. `rc` is the result of the calls. Pairs do not
 * nest. */
BRC_API void brc_progress_begin(breccia *repo, const char *phase, uint64_t total);
BRC_API void brc_progress_end(breccia *repo, int rc);
BRC_API BRC_MUST_USE int brc_stat(breccia *repo, brc_stats *out, brc_error *err);
/* Removes what no branch, tag, uncommitted change, reader's pin or entry in the window of the operation
 * log (setting "window") reaches, while others read and write, in short transactions. It drops
 * drafts of processes that are gone. opts NULL: all 0. What was removed is in *out (which may be
 * NULL) also where it fails. Interrupted, killed or stopped by a full disk, it is gone on with by the
 * next call. Not within a transaction. BRC_EBUSY: another collection runs. BRC_ECORRUPT: something
 * that is needed is damaged; then nothing is removed. BRC_ENOSPACE: not even a small step fits on
 * the disk; with 1 MiB of room it gets to its end. An error of a backend comes when all else is done: the next call
 * tries to drop there what this one could not. */
BRC_API BRC_MUST_USE int brc_gc(breccia *repo, const brc_gc_opts *opts, brc_gc_report *out, brc_error *err);
/* Copies the repository's file to `dest` while others read and write it: one state of everything in it, uncommitted
 * changes too. `dest` is made; or it is an older backup of the same repository, which gets what it lacks. Where the call fails,
 * is interrupted or killed, an older backup stays what it was; a new one cannot be opened, and the next call goes on
 * with it. Writers are kept waiting for moments only, and at the end as long as comparing the two indexes takes. What is new is
 * read back from the copy and decoded. Chunks that lie outside of the file
 * (setting "backend") are not copied. *out may be NULL. Not within a transaction. BRC_EEXISTS: `dest` is something else, or was
 * changed since it was made. BRC_ECORRUPT: the copy was made, and objects in it are damaged, as a rule because they
 * are in the repository. */
BRC_API BRC_MUST_USE int brc_backup(brc_backup_report *out, breccia *repo, const char *dest, brc_error *err);
/* Thins history: of what branches and tags reach, those commits stay that branches, tags, uncommitted changes
 * or pins name, and those that a rule of *opts keeps. Rules count along the first parents of each branch, each by
 * itself; one that is not used up at the end keeps the oldest commit too. A commit that stays keeps its id;
 * where its parents have expired, reading it says so (BRC_PAST_EXPIRED), and log, blame, merge and the like
 * go on with the nearest ancestors that are kept. What has expired stays in the file until brc_gc() finds it outside
 * of the window of the operation log; as long, brc_undo() and an id by itself find it.
 * *decided (may be NULL) lists every commit that was looked at, children first. BRC_EINVAL: no rule was given. Not
 * within a transaction. Interrupted, history is thinned as a whole or not at all. */
BRC_API BRC_MUST_USE int brc_expire(brc_expire_report *out, brc_iter **decided, breccia *repo, const brc_expire_opts *opts,
                                    brc_error *err);
BRC_API BRC_MUST_USE int brc_expire_next(brc_iter *it, const brc_expired **out, brc_error *err);
/* What arrays and commits that branches and tags reach hold, exactly: each object once. An array holds what it has
 * in any of these commits at its path. *items (may be NULL) lists arrays by path, then commits, children first. It
 * remembers about 200 bytes for each object. */
BRC_API BRC_MUST_USE int brc_du(brc_du_report *out, brc_iter **items, breccia *repo, brc_error *err);
BRC_API BRC_MUST_USE int brc_du_next(brc_iter *it, const brc_du_item **out, brc_error *err);
/* Reads everything and reports each fault to `found`; the result is BRC_OK even if
 * there are faults.  *checked: how many objects were read. */
BRC_API BRC_MUST_USE int brc_fsck(breccia *repo, uint32_t flags, int (*found)(void *ctx, const brc_damage *damage),
                                  void *ctx, uint64_t *checked, brc_error *err);
/* The same, which in a damaged file also reports to `stands` (may be NULL) what of each branch and tag is lost and
 * what still stands. */
BRC_API BRC_MUST_USE int brc_fsck_standing(breccia *repo, uint32_t flags, int (*found)(void *ctx, const brc_damage *damage),
                                           int (*stands)(void *ctx, const brc_standing *one), void *ctx,
                                           uint64_t *checked, brc_error *err);
/* Checks everything as brc_fsck() does, and repairs what it finds: damaged and missing objects get a good copy from
 * `from`, another repository (NULL: there is none), whichever has an object of the same id there; derived rows are
 * made anew. With BRC_REPAIR_DROP damaged objects that have no copy go. No id changes, and refs and uncommitted
 * changes stay as they are. *out (may be NULL) says what was done and what is left. Not within a transaction. */
BRC_API BRC_MUST_USE int brc_repair(brc_repair_report *out, breccia *repo, breccia *from, uint32_t flags, brc_error *err);
/* Settings of the repository. `name`: "journal", which is "rollback" (the default) or "wal"; "window" (see
 * brc_gc()); "codecs", a Zarr v3 list that new arrays get whose maker names none, behind what makes bytes of
 * their type if it only changes bytes ("chosen" by the type is the default, and what types get that it does
 * not fit); "verify", which is "stored" (the default: stored bytes are compared with their checksum) or "full"
 * (what they decode to is also compared with the chunk's id, by handles that find it when they open); and
 * "backend", which new arrays get whose maker names none, also imported ones, as
 * brc_array_set_backend() takes it ("inline" is the default). It is recorded in each of them as it
 * was then: changing it changes no array. BRC_EUNSUPPORTED: the backend is not known here.
 *
 * With "wal" the file is in SQLite's WAL mode from a write on until the last handle on it is closed:
 * readers do not wait for commits then, nor commits for readers, and FILE-wal and FILE-shm, which lie
 * beside it, belong to it. What a call has done is durable either way. Only a handle that has the file alone
 * can set "rollback": else BRC_EBUSY after the time to wait. Not between brc_begin and brc_end.
 * `value` NULL: the default. `out` is text, which brc_config_get() appends. */
BRC_API BRC_MUST_USE int brc_config_get(brc_buf *out, breccia *repo, const char *name, brc_error *err);
BRC_API BRC_MUST_USE int brc_config_set(breccia *repo, const char *name, const char *value, brc_error *err);
/* Every call is durable when it returns.  Calls between begin and end are one
 * transaction instead, durable at the end; without BRC_END_KEEP it undoes them all.  Pairs nest.
 * From begin to end the file is locked for writing, whatever your program does in between: other
 * writers wait (brc_bulk_begin() locks it for moments only).  Readers go on with the state before,
 * and are waited for at the end.  If one stays longer than the time to wait, the end fails with
 * BRC_EBUSY and all is undone. */
BRC_API BRC_MUST_USE int brc_begin(breccia *repo, brc_error *err);
BRC_API BRC_MUST_USE int brc_end(breccia *repo, uint32_t flags, brc_error *err);

/* ---- history ------------------------------------------------------------- */

/* `rev`: a branch, a tag, HEAD, a commit id or a unique prefix of it of 4 or more digits,
 * or BRANCH@{TIME}; ~N and ^N may follow. */
BRC_API BRC_MUST_USE int brc_resolve(brc_oid *out, breccia *repo, const char *rev, brc_error *err);
/* The current branch's name, borrowed until the next call. */
BRC_API BRC_MUST_USE int brc_head(const char **branch, breccia *repo, brc_error *err);
/* Lists branches, then tags, by name. */
BRC_API BRC_MUST_USE int brc_refs(brc_iter **out, breccia *repo, brc_error *err);
BRC_API BRC_MUST_USE int brc_refs_next(brc_iter *it, const brc_ref **out, brc_error *err);
/* Makes a branch or a tag at `rev` (NULL: HEAD). A tag may have a message, or NULL. */
BRC_API BRC_MUST_USE int brc_branch_create(breccia *repo, const char *name, const char *rev, brc_error *err);
/* Without BRC_DELETE_FORCE, BRC_EMISUSE if no other branch or tag reaches its commit, or if it has
 * uncommitted changes. Its commits stay in the file until they are collected, and
 * NAME@{TIME} still finds them. What was uncommitted, or open as a merge, stays as a draft of nobody, for
 * brc_undo(), and so do private changes of processes that have ended. BRC_EBUSY where one that lives has
 * some. */
BRC_API BRC_MUST_USE int brc_branch_delete(breccia *repo, const char *name, uint32_t flags, brc_error *err);
BRC_API BRC_MUST_USE int brc_branch_rename(breccia *repo, const char *from, const char *to, brc_error *err);
BRC_API BRC_MUST_USE int brc_tag_create(breccia *repo, const char *name, const char *rev, const char *message, brc_error *err);
/* As brc_branch_delete(), for a tag. */
BRC_API BRC_MUST_USE int brc_tag_delete(breccia *repo, const char *name, uint32_t flags, brc_error *err);
BRC_API BRC_MUST_USE int brc_tag_rename(breccia *repo, const char *from, const char *to, brc_error *err);
/* Makes another branch the current one. BRC_ECONFLICT if the current one has
 * uncommitted changes; with BRC_SWITCH_DISCARD they are dropped. */
BRC_API BRC_MUST_USE int brc_switch(breccia *repo, const char *branch, uint32_t flags, brc_error *err);
/* Moves the current branch to `rev`; uncommitted changes stay, unless BRC_RESET_HARD. BRC_ESTALE
 * if the branch is not at `expect` (NULL: anywhere). */
BRC_API BRC_MUST_USE int brc_reset(breccia *repo, const char *rev, uint32_t flags, const brc_oid *expect, brc_error *err);
/* The same for the branch of a session that can be changed, and for its own changes: a private session's stay, or go, and
 * what others have not committed on the branch is left alone. `rev` is read as everywhere: HEAD is the current branch. */
BRC_API BRC_MUST_USE int brc_session_reset(brc_session *s, const char *rev, uint32_t flags, const brc_oid *expect, brc_error *err);

/* Lists changes of refs, the newest first. */
BRC_API BRC_MUST_USE int brc_oplog(brc_iter **out, breccia *repo, brc_error *err);
BRC_API BRC_MUST_USE int brc_oplog_next(brc_iter *it, const brc_op **out, brc_error *err);
/* Takes back the last operation: each ref is what it was before, and so is the current branch. Again: one further
 * back. BRC_UNDO_REDO: takes back the last undoing instead, until another operation comes between. Either is an
 * operation of its own, *operation (may be NULL). Not between brc_begin() and brc_end().
 * `expect`: the operation that is to be taken back, or restored; BRC_ESTALE if it would be another. 0: any.
 * BRC_EMISUSE: there is none. BRC_ESTALE: a ref is not where the operation left it; it is named, and nothing changes.
 * Uncommitted changes stay as they are: brc_drafts() says which lie over another commit than their branch's
 * now (BRC_DRAFT_STALE), and brc_session_commit() merges them. A branch that comes back has again what was uncommitted on it; one that
 * would go with uncommitted changes is BRC_ECONFLICT. */
BRC_API BRC_MUST_USE int brc_undo(int64_t *operation, breccia *repo, uint32_t flags, int64_t expect, brc_error *err);

BRC_API BRC_MUST_USE int brc_commit_read(brc_commit **out, breccia *repo, const brc_oid *id, brc_error *err);
BRC_API void brc_commit_free(brc_commit *commit);
/* Lists commits reachable from `rev` (NULL: HEAD), newest first, parents after their
 * children; for "A..B", those reachable from B but not from A. `opts` may be NULL. With a path, those
 * that changed this node or something under it, or moved it; before it was moved it is looked for under
 * the path that it had. Where a merge has the node as one of its parents has it, the others are left
 * out, but for BRC_LOG_FULL. If the node is in none of the commits, brc_log_next() fails with
 * BRC_ENOTFOUND. */
BRC_API BRC_MUST_USE int brc_log(brc_iter **out, breccia *repo, const char *rev, const brc_log_opts *opts, brc_error *err);
BRC_API BRC_MUST_USE int brc_log_next(brc_iter *it, const brc_commit **out, brc_error *err);
/* Where the commit that was given last has the node, or had it before it removed it; NULL without a path.
 * Valid until the next call. */
BRC_API const char *brc_log_path(brc_iter *it);
/* Lists nodes that differ, by path.  `b` NULL: the current branch with its uncommitted
 * changes; `a` NULL: what `b` is based on (its first parent, or the branch's tip).
 * BRC_ENOTFOUND if neither has opts->path. */
BRC_API BRC_MUST_USE int brc_diff(brc_iter **out, breccia *repo, const char *a, const char *b,
                                  const brc_diff_opts *opts, brc_error *err);
/* The same of what a session shows, also of a private one: from `a`, NULL: what it is based on, to its uncommitted changes. */
BRC_API BRC_MUST_USE int brc_session_diff(brc_iter **out, brc_session *s, const char *a, const brc_diff_opts *opts,
                                          brc_error *err);
BRC_API BRC_MUST_USE int brc_diff_next(brc_iter *it, const brc_change **out, brc_error *err);
/* Merges `rev` into the current branch: up to date, a fast-forward, or a commit with two parents, which
 * has what either side changed since they parted, node by node, member by member, chunk by chunk and
 * element by element. *conflicts (NULL: nobody asks) lists what cannot be decided: the branch is as it was then.
 * BRC_ECONFLICT if the branch has uncommitted changes or an open merge. Where the branch has moved meanwhile it is merged
 * anew; BRC_EBUSY if others were first each time until the time to wait was over. Not between brc_begin() and brc_end().
 *
 * With BRC_MERGE_KEEP a merge with conflicts stays open, as a draft: what is in conflict is there as the branch
 * has it, everything else is merged. Until it is committed or dropped, sessions on the branch (BRC_SESSION_VIEW,
 * _WRITE) read and change that draft, and brc_session_commit() on the branch is BRC_ECONFLICT. A branch has
 * one open merge at most. */
BRC_API BRC_MUST_USE int brc_merge(brc_merge_result *out, brc_iter **conflicts, breccia *repo, const char *rev,
                                   const brc_merge_opts *opts, brc_error *err);
/* Does what the commit `rev` changed, from its parent to it, again on the current branch, as a commit
 * with its message, author, time and meta. It is merged as brc_merge() does it, with that parent as the base;
 * *conflicts (NULL: nobody asks) lists what cannot be decided: then nothing has changed, or with BRC_PICK_KEEP it stays
 * open, as by BRC_MERGE_KEEP. BRC_EMISUSE for a merge without opts->mainline; BRC_ECONFLICT if the branch has
 * uncommitted changes or an open merge or the like. Where the branch moves meanwhile, and for BRC_EBUSY, see brc_merge().
 * Not between brc_begin() and brc_end(). */
BRC_API BRC_MUST_USE int brc_pick(brc_pick_result *out, brc_iter **conflicts, breccia *repo, const char *rev,
                                  const brc_pick_opts *opts, brc_error *err);
/* The same backwards: takes back what the commit changed. */
BRC_API BRC_MUST_USE int brc_revert(brc_pick_result *out, brc_iter **conflicts, breccia *repo, const char *rev,
                                    const brc_pick_opts *opts, brc_error *err);
/* Moves the current branch to `onto` with its own commits done again there: those that `onto` does not reach, the oldest
 * first, without merges, and without those whose change is there already. Each is picked as by brc_pick(), and keeps
 * message, author, time and meta: of the options only paths, sides and BRC_PICK_KEEP count. The branch moves once, at the
 * end; a conflict (out->at) stops it, and nothing has changed. With BRC_PICK_KEEP it stays open, as by BRC_MERGE_KEEP,
 * over what was made before, which no ref names: ours is that, theirs the commit. Errors are those of brc_pick(). */
BRC_API BRC_MUST_USE int brc_rebase(brc_pick_result *out, brc_iter **conflicts, breccia *repo, const char *onto,
                                    const brc_pick_opts *opts, brc_error *err);
/* Finds the commit that brought a change, by looking at few of those between a good and a bad version. `what`: BRC_BISECT_*;
 * `rev`: the version that is said to be good, bad or skipped (NULL: the one that was to be looked at, or HEAD), else NULL. What is
 * known stays in the file till BRC_BISECT_RESET; nothing else changes, and a collection keeps these commits. BRC_EMISUSE where there
 * is no bisection, or what is said contradicts what is known; BRC_ESTALE if another process was first. */
BRC_API BRC_MUST_USE int brc_bisect(brc_bisect_result *out, breccia *repo, int what, const char *rev, brc_error *err);
/* The current branch's open merge, cherry-pick, revert or rebase; out->draft 0: none. *conflicts (NULL: nobody asks) lists
 * all of it, also what is settled. A conflict is settled by hand as soon as its place is not what the merge left there: the member
 * has another value, the chunk was written, the node or something under it was changed. */
BRC_API BRC_MUST_USE int brc_merge_state(brc_open_state *out, brc_iter **conflicts, breccia *repo, brc_error *err);
/* Settles what is open at and under `paths` (npaths 0: everywhere) for a side: BRC_MERGE_OURS or _THEIRS. What was
 * settled before stays so. *settled: how many. BRC_ENOTFOUND: a path is in no conflict. BRC_EMISUSE if no merge is
 * open; BRC_ESTALE if others have changed it meanwhile. Not between brc_begin() and brc_end(). */
BRC_API BRC_MUST_USE int brc_merge_settle(uint64_t *settled, breccia *repo, uint32_t side, const char *const *paths, size_t npaths,
                                          brc_error *err);
/* Commits the open merge, with two parents: BRC_MERGE_MERGED. While something is open nothing changes: the result is
 * BRC_MERGE_CONFLICT, and *conflicts (NULL: nobody asks) lists what. Of `opts` message (NULL: the one with which it
 * began), author and time_us count. If the branch has moved since, what was settled is merged onto it: its tip is the first
 * parent then. With conflicts in that the result is BRC_MERGE_CONFLICT too, and another draft is open, over the tip: theirs is
 * what was settled. BRC_EMISUSE if no merge is open; BRC_ESTALE if others change it meanwhile. */
BRC_API BRC_MUST_USE int brc_merge_continue(brc_merge_result *out, brc_iter **conflicts, breccia *repo,
                                            const brc_merge_opts *opts, brc_error *err);
/* Ends an open cherry-pick or revert in the same way: BRC_PICK_COMMITTED, a commit with one parent and the author,
 * time, message and meta that it would have had without conflicts, but for those of `opts` that are given;
 * BRC_PICK_NOTHING, if nothing is left of the change; or BRC_PICK_CONFLICT. */
BRC_API BRC_MUST_USE int brc_pick_continue(brc_pick_result *out, brc_iter **conflicts, breccia *repo, const brc_pick_opts *opts,
                                           brc_error *err);
/* Goes on with an open rebase: what was settled becomes a commit as by brc_pick_continue(), or with BRC_REBASE_SKIP is left
 * out, settled or not, and the rest follows, with the sides that were given first. The result is that of brc_rebase(), with
 * all that was done since it began; at the next conflict it stays open as another draft, and till the end the branch stays
 * where it is. While something is open nothing changes: BRC_PICK_CONFLICT, with the same out->draft. What was committed on
 * the branch since it began comes behind the rest. BRC_EMISUSE if no rebase is open; BRC_ESTALE if the branch does not have
 * the commits any more that are rebased, or others settle meanwhile: it is kept. */
BRC_API BRC_MUST_USE int brc_rebase_continue(brc_pick_result *out, brc_iter **conflicts, breccia *repo, uint32_t flags,
                                             brc_error *err);
/* Drops the open merge, cherry-pick, revert or rebase, with what was written to settle it and what was made. BRC_EMISUSE if
 * none is open. */
BRC_API BRC_MUST_USE int brc_merge_abort(breccia *repo, brc_error *err);
/* Lists conflicts, by path. */
BRC_API BRC_MUST_USE int brc_conflicts_next(brc_iter *it, const brc_conflict **out, brc_error *err);
BRC_API void brc_iter_free(brc_iter *it);

/* ---- sessions and the hierarchy ------------------------------------------ */

/* `rev` NULL: the current branch. All modes but BRC_SESSION_AT need a branch; with BRC_SESSION_ANY_REV a tag, a
 * commit's id or the like is opened as by BRC_SESSION_AT, as brc_session_stat() says. BRC_SESSION_VIEW and
 * BRC_SESSION_WRITE show the uncommitted changes that the branch's users share, over the commit that they began at;
 * where the branch has moved since (BRC_DRAFT_STALE), what is new there is not shown. With BRC_SESSION_COMMITS it is
 * the branch's newest commit, always. What BRC_SESSION_AT shows stays readable as long as the session or an array of
 * it is there, also if others reset and delete what named it, expire it and collect garbage; on systems without locks
 * of open file descriptions (Linux has them) as long as a branch, a tag or the window of the operation log has it.
 * BRC_ESTALE: it was collected just now. The changes of a private session stay in the file when it is freed, and when
 * its process dies: brc_drafts(). Until its first change, and after a commit, a private session shows the branch as it
 * is now, and its changes begin there. With changes it goes along when the branch is renamed. */
BRC_API BRC_MUST_USE int brc_session_open(brc_session **out, breccia *repo, const char *rev, int mode, brc_error *err);
BRC_API void brc_session_free(brc_session *s);
/* The work of a private session is done: where nothing is uncommitted in it, its draft goes, and so does each child that changed
 * nothing and was not joined (BRC_ESTALE from then on). What holds changes stays in the file. brc_session_free() does so, too, if
 * it need not wait, where nobody was given a number, a token or a name of the session and what was written was taken back.
 * The session can be used further. BRC_EMISUSE for other sessions. */
BRC_API BRC_MUST_USE int brc_session_finish(brc_session *s, brc_error *err);
/* What it shows now. Of two sessions on one file for which this is the same, in any process and at any time, so is all
 * that they show. */
BRC_API BRC_MUST_USE int brc_session_stat(brc_session_info *out, brc_session *s, brc_error *err);
/* Makes the uncommitted changes a commit on the session's branch, and the session goes on
 * from it.  BRC_EMISUSE if there is nothing to commit. Where the branch has moved since the changes
 * began, they are merged onto its tip by the rules of brc_merge(), with that as the one parent (*out
 * is the tip itself where it has them all); BRC_ECONFLICT where they are in conflict with what is new
 * there. If others commit meanwhile, they are merged again, in the order in which those who commit to the branch
 * came, until the time to wait (brc_open_opts.wait_ms) is over: BRC_EBUSY. With BRC_COMMIT_NO_MERGE or _AMEND, and between
 * brc_begin() and brc_end(), a branch that has moved is BRC_ESTALE. Either way they are kept. */
BRC_API BRC_MUST_USE int brc_session_commit(brc_oid *out, brc_session *s, const brc_commit_opts *opts, brc_error *err);
/* Lists what keeps the changes from being committed onto the branch as it is now, with brc_conflicts_next():
 * nothing where there is no conflict. Ours is the branch, theirs the session. */
BRC_API BRC_MUST_USE int brc_session_conflicts(brc_iter **out, brc_session *s, brc_error *err);
/* *clean: 1 if there are no uncommitted changes. */
BRC_API BRC_MUST_USE int brc_session_clean(int *clean, brc_session *s, brc_error *err);
/* Uncommitted changes in the whole file, the oldest first: the shared ones of branches and
 * the private ones of sessions, also of processes that are gone. */
BRC_API BRC_MUST_USE int brc_drafts(brc_iter **out, breccia *repo, brc_error *err);
BRC_API BRC_MUST_USE int brc_drafts_next(brc_iter *it, const brc_draft **out, brc_error *err);
/* A private draft becomes part of what its branch shares: after a crash, say. BRC_EBUSY while the
 * process that owns it is alive. Where the branch has uncommitted changes, the draft is laid over
 * them: BRC_ECONFLICT if both changed one thing, BRC_ESTALE if they lie over two commits; then both
 * are as they were. Where it has none, and has moved since the draft began, the draft is merged onto its tip.
 * What is in conflict there is adopted as it is (BRC_DRAFT_STALE), and so it is between brc_begin() and brc_end():
 * brc_session_commit() merges it, and brc_session_conflicts() lists what is in the way. */
BRC_API BRC_MUST_USE int brc_draft_adopt(breccia *repo, int64_t id, brc_error *err);
/* Drops uncommitted changes; what they stored stays in the file until it is collected.
 * BRC_EBUSY while another process that owns them is alive. A session of this one that they were of is BRC_ESTALE
 * from then on; one by a name (brc_session_name()) has no changes then, and goes on from the branch. */
BRC_API BRC_MUST_USE int brc_draft_drop(breccia *repo, int64_t id, brc_error *err);
/* The changes of a private session become the changes of another of the same handle and branch,
 * under the rules of brc_draft_adopt(). `from` goes on from the branch as it is, without changes. No
 * chunk is copied, however many there are. */
BRC_API BRC_MUST_USE int brc_session_hand_over(brc_session *from, brc_session *to, brc_error *err);
/* The number of a private session's draft, which begins with it where there is none yet, and then
 * stays even without a change in it, until its process has ended and brc_draft_drop() takes it: for
 * brc_draft_open(). BRC_EMISUSE for other sessions. */
BRC_API BRC_MUST_USE int brc_session_draft(int64_t *id, brc_session *s, brc_error *err);
/* Another session on a private draft of this process, from any of its handles: each sees what the
 * others have changed. BRC_EBUSY: it belongs to another process, which is running, or may be;
 * BRC_EMISUSE: to one that has ended (brc_draft_adopt() takes it), or it is not private. */
BRC_API BRC_MUST_USE int brc_draft_open(brc_session **out, breccia *repo, int64_t id, brc_error *err);
/* Appends a text that names the private session's draft, with a NUL behind it, and its secret: whoever has it, in any
 * process of this machine that has the file open, opens another session on that draft. The draft is handed out by this
 * as by brc_session_draft(), and stays its owner's: a process that attached may end, also by SIGKILL, and takes
 * nothing with it. Whoever reads the file can read the secret; it keeps a number that is wrong from being taken
 * for another draft's. BRC_EMISUSE for other sessions. */
BRC_API BRC_MUST_USE int brc_session_token(brc_buf *out, brc_session *s, brc_error *err);
/* Appends a name for private sessions of this process on a branch (NULL: the current one), with a NUL behind it, which
 * brc_session_attach() takes as it takes a token. This writes nothing: whichever session of that name, in any process,
 * changes something first begins the draft. Where nothing is changed in it and it has no children, it goes with the
 * first of this process's sessions that is closed, and the others go on from the branch as it is. */
BRC_API BRC_MUST_USE int brc_session_name(brc_buf *out, breccia *repo, const char *branch, brc_error *err);
/* Another session on the draft that the token names: what one of them writes the others see, and two that write at
 * once are as two that write what a branch shares. BRC_EINVAL: this is no token; BRC_ENOTFOUND: it is of another file;
 * BRC_ESTALE: the draft was joined, adopted, handed over or dropped; BRC_EMISUSE: its owner has ended
 * (brc_draft_adopt() takes it). */
BRC_API BRC_MUST_USE int brc_session_attach(brc_session **out, breccia *repo, const char *token, brc_error *err);
/* A private session beside `s`, which begins with all that `s` shows, its uncommitted changes with it, and belongs to
 * the same process, whoever calls this. From then on neither sees what the other writes, nor what is new on the branch.
 * Other processes work in it with brc_session_token(); brc_session_join() brings back what they wrote. A child is
 * no commit by itself: brc_session_commit() is BRC_EMISUSE, brc_session_discard() makes it what it was when it began,
 * and brc_draft_drop() drops it, in the process that owns it. It may have children itself. Where it is not joined it ends with
 * its parent (brc_session_finish()), or, if it holds changes, stays (BRC_DRAFT_ORPHAN), and is a dead draft like others
 * when that process has ended. What is uncommitted in `s` is folded as by a commit, and no chunk is copied; the next
 * child costs a row unless more is written in between. Where `s` has savepoints it is folded each time. BRC_EMISUSE
 * where `s` is not private, in brc_bulk_begin() and in a transaction. */
BRC_API BRC_MUST_USE int brc_session_fork(brc_session **child, brc_session *s, brc_error *err);
/* Brings what the children of `s` with these tokens wrote into `s`: all of it, or nothing. They are merged by the
 * rules of brc_merge(), down to elements: base is what a child began with, ours is `s` with the children joined before,
 * theirs the child as it is in the file, whatever became of those that wrote it. The order of the tokens does not count, and
 * `s` may have changed since. Joined children are gone: a session on one is BRC_ESTALE from then on, and so is joining it
 * again. What cannot be decided is BRC_ECONFLICT, all are as they were, and *conflicts (NULL: nobody asks) lists it,
 * although the call fails: brc_conflict.draft is the child. `flags` are 0. BRC_EMISUSE: one is no child, or another
 * session's; `s` has a savepoint; in brc_bulk_begin() and in a transaction. For tokens errors are those of
 * brc_session_attach(); BRC_EINVAL also if one is given twice. BRC_EBUSY where others wrote until the time to wait was over.
 * What is new on the branch is the matter of the commit. */
BRC_API BRC_MUST_USE int brc_session_join(brc_iter **conflicts, brc_session *s, const char *const *tokens, size_t n,
                                          uint32_t flags, brc_error *err);
/* What the session writes between these two, and only that, is written in many short transactions:
 * readers and other writers get in between, and see nothing of it. It is there as a whole, and
 * durable, when brc_bulk_end() returns; without BRC_END_KEEP it is dropped. Imports, brc_array_load_stream(),
 * brc_array_load_npy() and large writes do the same by themselves. BRC_ECONFLICT if others have
 * meanwhile changed what it builds on (an array's form, a chunk that it changed in part): then it is
 * kept as a private draft (brc_drafts()). Nodes can be made, attributes set, arrays written and
 * grown; BRC_EMISUSE for what removes, moves, cuts, commits or sets keys, and for changes by another session of
 * this handle. Within brc_begin() it is a part of that transaction. Pairs nest. */
BRC_API BRC_MUST_USE int brc_bulk_begin(brc_session *s, brc_error *err);
BRC_API BRC_MUST_USE int brc_bulk_end(brc_session *s, uint32_t flags, brc_error *err);
/* Savepoints: marks in a session's uncommitted changes that it can go back to. As in SQL they nest, names may
 * be used again, and the innermost of a name counts; NULL: the innermost of all. Rolling back makes everything
 * uncommitted what it was when the savepoint was made; that stays open, and those within it end. A release ends it and
 * those within it, and what was written stays. Each call is durable when it returns, makes no copy of chunks, and
 * holds no lock afterwards: what the session writes meanwhile is there for whoever sees its changes, and between
 * brc_begin() and brc_end() all this is a part of that transaction. Arrays and the key view go on as the file is then.
 *
 * A savepoint ends, as if it were released, with the session and its process, and when the changes are committed,
 * discarded or handed over, or others commit, reset or drop them: BRC_ENOTFOUND from then on. While one is open a
 * private session without a change stays at the commit that it showed then. In changes that others share they
 * may go on writing; then a rollback is BRC_ECONFLICT and takes nothing back, so that nothing of theirs is lost. One
 * session at a time has savepoints there: BRC_EBUSY for the next. A session has 16 at most (BRC_ELIMIT). BRC_EMISUSE
 * within brc_bulk_begin(). */
BRC_API BRC_MUST_USE int brc_savepoint(brc_session *s, const char *name, brc_error *err);
BRC_API BRC_MUST_USE int brc_savepoint_rollback(brc_session *s, const char *name, brc_error *err);
BRC_API BRC_MUST_USE int brc_savepoint_release(brc_session *s, const char *name, brc_error *err);
/* Drops every uncommitted change of this session. */
BRC_API BRC_MUST_USE int brc_session_discard(brc_session *s, brc_error *err);

/* Lists the children of a group by name, or with BRC_LIST_RECURSE the whole tree under a node,
 * the node itself first.  Changes made while the list is read do not show in it; but
 * brc_end() without BRC_END_KEEP ends a list that began in its transaction.  Nodes are read one by
 * one: brc_list_next() fails if one is damaged, and with BRC_ELIMIT past
 * brc_open_opts.max_nodes. */
BRC_API BRC_MUST_USE int brc_list(brc_iter **out, brc_session *s, const char *path, uint32_t flags, brc_error *err);
BRC_API BRC_MUST_USE int brc_list_next(brc_iter *it, const brc_node **out, brc_error *err);
/* *kind: BRC_GROUP or BRC_ARRAY, or 0 if there is no such node. */
BRC_API BRC_MUST_USE int brc_node_kind(int *kind, brc_session *s, const char *path, brc_error *err);
/* The node's zarr.json. */
BRC_API BRC_MUST_USE int brc_node_json(brc_buf *out, brc_session *s, const char *path, brc_error *err);
/* The attribute at `key`, or all (NULL), as JSON. */
BRC_API BRC_MUST_USE int brc_attrs_get(brc_buf *out, brc_session *s, const char *path, const char *key, brc_error *err);
/* Sets `key` to a JSON text, or removes it (`json` NULL). */
BRC_API BRC_MUST_USE int brc_attrs_set(brc_session *s, const char *path, const char *key, const char *json, brc_error *err);
BRC_API BRC_MUST_USE int brc_group_create(brc_session *s, const char *path, const char *attrs_json, brc_error *err);
BRC_API BRC_MUST_USE int brc_node_remove(brc_session *s, const char *path, brc_error *err);
BRC_API BRC_MUST_USE int brc_node_move(brc_session *s, const char *from, const char *to, brc_error *err);
BRC_API BRC_MUST_USE int brc_node_copy(brc_session *s, const char *from, const char *to, brc_error *err);
/* Makes `path` and all under it what they were at `rev` (NULL: the branch's tip); a node
 * that did not exist is removed. */
BRC_API BRC_MUST_USE int brc_node_restore(brc_session *s, const char *path, const char *rev, brc_error *err);

/* ---- arrays --------------------------------------------------------------- */

/* Missing parent groups are made. */
BRC_API BRC_MUST_USE int brc_array_create(brc_array **out, brc_session *s, const char *path, const brc_array_spec *spec, brc_error *err);
BRC_API BRC_MUST_USE int brc_array_open(brc_array **out, brc_session *s, const char *path, brc_error *err);
BRC_API void brc_array_free(brc_array *a);
/* Valid until the array is changed or freed. If a change fails, it is what it was
 * before. */
BRC_API const brc_array_info *brc_array_describe(const brc_array *a);
/* Brings the description up to date with what others did, as every call that reads elements does. */
BRC_API BRC_MUST_USE int brc_array_refresh(brc_array *a, brc_error *err);
/* How many chunks are stored, and how many bytes they take as stored. */
BRC_API BRC_MUST_USE int brc_array_stat(uint64_t *chunks, uint64_t *stored_bytes, brc_array *a, brc_error *err);
/* Elements that are cut off are lost: growing again shows the fill value. All or nothing; a large array is cut in many
 * short transactions, unless between brc_begin() and brc_end(). */
BRC_API BRC_MUST_USE int brc_array_resize(brc_array *a, const uint64_t *shape, brc_error *err);
/* Grows `axis` by `count` and writes packed elements there: both or neither. */
BRC_API BRC_MUST_USE int brc_array_append(brc_array *a, int axis, uint64_t count, const void *data, size_t len, brc_error *err);
/* A Zarr v3 codec list for chunks written from now on; stored ones keep theirs,
 * unless `rewrite`. Then every chunk is stored anew in many short transactions, and the last one changes
 * the array. If it fails or is killed, the array is as it was; begun again it passes over the chunks that are
 * done, unless they get another shape. Between brc_begin() and brc_end() it is one transaction. */
BRC_API BRC_MUST_USE int brc_array_set_codecs(brc_array *a, const char *codecs_json, int rewrite, brc_error *err);
/* Where chunks written from now on go; stored ones stay where they are. `backend_json` is a name, or
 * {"name":...,"configuration":{...}}, as brc_array_info.backend_json has it; what is left out gets
 * the backend's own default. NULL, or "inline": the file itself. BRC_EUNSUPPORTED: the backend is
 * not known here (breccia_backend.h); BRC_EINVAL: its configuration is wrong. */
BRC_API BRC_MUST_USE int brc_array_set_backend(brc_array *a, const char *backend_json, brc_error *err);
/* Packed elements, C order, native byte order; `sel` NULL: the whole array.
 * An element of variable length is its length in bytes, as a little-endian uint32, and
 * the bytes. Write such elements in this form; read them with brc_array_read_elements(). */
BRC_API BRC_MUST_USE int brc_array_read(brc_array *a, const brc_sel *sel, void *dst, size_t len, brc_error *err);
BRC_API BRC_MUST_USE int brc_array_write(brc_array *a, const brc_sel *sel, const void *src, size_t len, brc_error *err);
/* Appends the selected elements to `out`, whatever their type. */
BRC_API BRC_MUST_USE int brc_array_read_elements(brc_array *a, const brc_sel *sel, brc_buf *out, brc_error *err);
/* The selected elements (NULL: of the whole array) as brc_array_read_elements() appends them, run by
 * run in C order, for selections that are larger than memory. A run has at most 64 MiB, or up to four
 * times as much where that is a row of chunks; elements of variable length count as 1 KiB each.
 * `put` is called on the caller's thread, may use the library and must not keep `data`; a result
 * other than 0 stops with BRC_EINTERRUPT. What comes is the array as it was when the call began,
 * whoever changes it in the meantime, and nobody is kept from that. BRC_ESTALE: uncommitted chunks
 * changed that were more than a quarter of the memory budget can remember. */
BRC_API BRC_MUST_USE int brc_array_stream(brc_array *a, const brc_sel *sel,
                                          int (*put)(void *ctx, const void *data, size_t len), void *ctx, brc_error *err);
/* Writes the selected elements (NULL: of the whole array), which `get` gives in C order as
 * brc_array_write() takes them, for selections that are larger than memory. `get` writes the next
 * bytes to `dst` and their number to *got, which is less than `len` only at the end of the source; a
 * result other than 0 stops with BRC_EINTERRUPT. It is called on the caller's thread and must not use
 * the repository. The source must end with the last selected element (else BRC_EINVAL). A
 * selection of up to 64 MiB is read whole before anything is written; a larger one is written as
 * between brc_bulk_begin() and brc_bulk_end(). After a failure nothing of it is there. */
BRC_API BRC_MUST_USE int brc_array_load_stream(brc_array *a, const brc_sel *sel,
                                               int (*get)(void *ctx, void *dst, size_t len, size_t *got), void *ctx,
                                               brc_error *err);
/* Writes one element everywhere in the selection. */
BRC_API BRC_MUST_USE int brc_array_fill(brc_array *a, const brc_sel *sel, const void *element, brc_error *err);
/* n reads, or n writes in one transaction, possibly of several arrays of one
 * repository. If writes overlap, the later one wins. Reads that follow each other and meet the same
 * chunks decode each once: list rows in their order. */
BRC_API BRC_MUST_USE int brc_read_batch(const brc_io *io, size_t n, brc_error *err);
BRC_API BRC_MUST_USE int brc_write_batch(const brc_io *io, size_t n, brc_error *err);
/* Elements by their positions (brc_at): into `dst`, or from `src` in one transaction. Each chunk is decoded, and stored,
 * once, in whatever order its elements are named. Of what is put to one place several times the last in C order stays. BRC_EINVAL
 * where a position is outside of the array. */
BRC_API BRC_MUST_USE int brc_array_take(brc_array *a, const brc_at *at, const brc_buffer *dst, brc_error *err);
BRC_API BRC_MUST_USE int brc_array_put(brc_array *a, const brc_at *at, const brc_buffer *src, brc_error *err);
/* Appends what brc_array_take() would read, whatever the elements' type, as brc_array_read_elements() does. */
BRC_API BRC_MUST_USE int brc_array_take_elements(brc_array *a, const brc_at *at, brc_buf *out, brc_error *err);
/* Makes the region of `sel` what it was at `rev` (NULL: the branch's tip). */
BRC_API BRC_MUST_USE int brc_array_restore(brc_array *a, const brc_sel *sel, const char *rev, brc_error *err);

/* Lists the stored chunks that the selection meets (NULL: all), in row-major order, each with the commit that
 * changed it last; with BRC_BLAME_ELEMENTS all selected elements, in runs along the last axis, up to 2^26 of
 * them. A moved array is followed where commits say that it moved. What a merge took from a parent is that parent's. The
 * array must be of a session of BRC_SESSION_AT. A chunk counts as changed when its content did, an
 * element also when the array got another fill value, or grew to hold it. */
BRC_API BRC_MUST_USE int brc_blame(brc_iter **out, brc_array *a, const brc_sel *sel, uint32_t flags, brc_error *err);
BRC_API BRC_MUST_USE int brc_blame_next(brc_iter *it, const brc_blamed **out, brc_error *err);

/* Reads Python's slicing for this array's shape: negative indices count from the
 * end, slices are clipped, "..." stands for the axes left out. */
BRC_API BRC_MUST_USE int brc_sel_parse(brc_sel *out, const brc_array *a, const char *text, brc_error *err);
/* Selects the whole array. */
BRC_API void brc_sel_all(brc_sel *out, const brc_array *a);
/* How many elements are selected. */
BRC_API uint64_t brc_sel_count(const brc_sel *sel);

/* Appends one element of the array's data type, read from text as people write it
 * ("1.5", "NaN", "true", "[1, 2]"), or in any of the forms of brc_element_format(). */
BRC_API BRC_MUST_USE int brc_element_parse(brc_buf *out, const brc_array *a, const char *text, brc_error *err);
enum {
    BRC_ELEMENT_TEXT = 0,  /* as people read it: a text is that text */
    BRC_ELEMENT_JSON = 1,
    BRC_ELEMENT_QUOTED = 2 /* the same as TEXT, but strings and bytes in quotes and with escapes, as Python writes them */
};
/* Appends one element in a form: BRC_ELEMENT_*. */
BRC_API BRC_MUST_USE int brc_element_format(brc_buf *out, const brc_array *a, const void *element, int form, brc_error *err);
/* Saves the selected elements as a .npy file. */
BRC_API BRC_MUST_USE int brc_array_save_npy(brc_array *a, const brc_sel *sel, const char *file, brc_error *err);
/* Passes the same bytes to `put`, piece by piece; a result other than 0 stops with
 * BRC_EINTERRUPT. */
BRC_API BRC_MUST_USE int brc_array_stream_npy(brc_array *a, const brc_sel *sel,
                                              int (*put)(void *ctx, const void *data, size_t len), void *ctx, brc_error *err);
/* Writes a .npy file into the selection, whose shape it must have; with `axis` >= 0 appends
 * along that axis instead, and `sel` is not used. */
BRC_API BRC_MUST_USE int brc_array_load_npy(brc_array *a, const brc_sel *sel, int axis, const char *file, brc_error *err);

/* ---- the Zarr store view: what a Zarr directory would hold ---------------- */

/* A key is "a/zarr.json", "a/c/0/1" ...: names with '/' between them, none of them empty, "." or
 * "..", of at most 5,120 bytes in all. A chunk's value is its bytes as the array's codecs
 * encode them, whatever encoding it is stored in; a shard is put together from its chunks, in the
 * grid's order and without gaps. Calls see one state of the hierarchy. */

/* The bytes at a key; BRC_ENOTFOUND if there are none. */
BRC_API BRC_MUST_USE int brc_key_get(brc_buf *out, brc_session *s, const char *key, brc_error *err);
/* The same in part: NULL or BRC_RANGE_ALL is everything. A range that goes past the end stops there,
 * and one that begins there is empty. Of a shard only the chunks are read that the range meets.
 * `info` (may be NULL) is that of the whole value. */
BRC_API BRC_MUST_USE int brc_key_get_range(brc_buf *out, brc_session *s, const char *key, const brc_key_range *range,
                                           brc_key_info *info, brc_error *err);
/* n keys (they may repeat), each with its range (`ranges` NULL: all of each), into out[0] to
 * out[n-1]. found[i]: 1, or 0 where there is no such key, which is no failure; all 0 if the call fails. */
BRC_API BRC_MUST_USE int brc_key_get_many(brc_buf *out, uint8_t *found, brc_session *s, const char *const *keys,
                                          const brc_key_range *ranges, size_t n, brc_error *err);
/* Whether there is such a key. */
BRC_API BRC_MUST_USE int brc_key_exists(int *exists, brc_session *s, const char *key, brc_error *err);
/* Where the chunks are (of sharded arrays: the shards) that n keys of one array name: the array's path is appended to
 * `path` without a NUL, and `index` gets n * ndim numbers. there[i] (NULL: nothing): 1 where something is stored.
 * BRC_ENOTFOUND for a key that is not a chunk's, BRC_EINVAL where the array has not `ndim` dimensions or there are several. */
BRC_API BRC_MUST_USE int brc_key_places(brc_buf *path, uint64_t *index, uint8_t *there, brc_session *s, const char *const *keys,
                                        size_t n, int ndim, brc_error *err);
/* How many bytes a key has, and their tag. BRC_ENOTFOUND if there are none. No chunk is read for it
 * that is stored in the array's encoding, or that was asked for before. */
BRC_API BRC_MUST_USE int brc_key_stat(brc_key_info *out, brc_session *s, const char *key, brc_error *err);

/* Sets a key, whatever a directory would take. "a/zarr.json" makes the node /a or changes it; a chunk
 * or a shard is decoded by the array's codecs, and its bytes are kept. Bytes that are no node or
 * chunk yet (a chunk before its array, one that does not decode, any other name) are kept as they
 * are and become what they are as soon as a document says so; brc_session_commit() refuses what is
 * left, and names it (BRC_ECONFLICT).
 * A document with a smaller shape cuts chunks and shards as brc_array_resize() does. As in a directory, what is
 * set beyond the edge stays, and a chunk that is all fill value is there once it was set. An array's new codecs do
 * not change what its chunks hold. Chunks to which a new document gives another form or another key keep their
 * bytes.
 * Each call is one transaction: between brc_begin() and brc_end(), and in brc_key_set_many(), many
 * are one. */
BRC_API BRC_MUST_USE int brc_key_set(brc_session *s, const char *key, const void *data, size_t len, brc_error *err);
/* The same where there is no such key. *set: 1, or 0 where there is one, which stays. */
BRC_API BRC_MUST_USE int brc_key_set_new(int *set, brc_session *s, const char *key, const void *data, size_t len,
                                         brc_error *err);
/* n keys, one after the other. All or none. A key whose data[i] is NULL is deleted. */
BRC_API BRC_MUST_USE int brc_key_set_many(brc_session *s, const char *const *keys, const void *const *data,
                                          const size_t *lens, size_t n, brc_error *err);
/* Deletes a key; one that there is not is no failure. Without its document a node is still there for
 * the keys of what is in it. */
BRC_API BRC_MUST_USE int brc_key_delete(brc_session *s, const char *key, brc_error *err);
/* Deletes every key that begins with the text: "a/" those of the directory a, "" all. */
BRC_API BRC_MUST_USE int brc_key_delete_prefix(brc_session *s, const char *prefix, brc_error *err);

/* Lists the keys under a node's path, in no promised order and node by node: changes made
 * in the meantime may or may not show. */
BRC_API BRC_MUST_USE int brc_keys(brc_iter **out, brc_session *s, const char *path, brc_error *err);
/* The same for the keys that begin with a text: "" all, "a/" those in the directory a, "a" also
 * that of a file "ab". */
BRC_API BRC_MUST_USE int brc_keys_prefix(brc_iter **out, brc_session *s, const char *prefix, brc_error *err);
/* The same for keys of uncommitted bytes that are no node or chunk yet, which brc_session_commit() refuses
 * if they are none by then; in the order of their bytes. */
BRC_API BRC_MUST_USE int brc_keys_loose(brc_iter **out, brc_session *s, brc_error *err);
BRC_API BRC_MUST_USE int brc_keys_next(brc_iter *it, const char **key, brc_error *err);
/* Lists what a directory of keys ("" the topmost, "a" or "a/") has in it, each name once. A directory
 * that there is not is empty. */
BRC_API BRC_MUST_USE int brc_keys_dir(brc_iter **out, brc_session *s, const char *dir, brc_error *err);
/* *name is borrowed until the next step. *is_dir: keys begin with it and a '/'. There may be
 * a key and a directory of one name, which then come as two. */
BRC_API BRC_MUST_USE int brc_keys_dir_next(brc_iter *it, const char **name, int *is_dir, brc_error *err);
/* *empty: 1 if no key is in the directory or further down. */
BRC_API BRC_MUST_USE int brc_keys_empty(int *empty, brc_session *s, const char *dir, brc_error *err);
/* How many bytes the keys have that begin with a text, as brc_key_stat() has them, key by key: changes made in the
 * meantime may or may not count. */
BRC_API BRC_MUST_USE int brc_keys_size(uint64_t *bytes, brc_session *s, const char *prefix, brc_error *err);

/* ---- exchange -------------------------------------------------------------- */

/* Imports a Zarr directory or .zip (v3 or v2), or a .npy, .npz, IDX, NetCDF or HDF5 file,
 * as the node `path` (NULL: named after the source). All or nothing. */
BRC_API BRC_MUST_USE int brc_import(brc_session *s, const char *source, const char *path, const brc_xfer_opts *opts, brc_error *err);
/* Imports a Zarr v3 hierarchy that comes as a tar stream (docs/STREAM.md) on the descriptor
 * `fd`, which is read to its end and stays open. path NULL: a group becomes the root if that
 * is empty; otherwise a path is needed. All or nothing. */
BRC_API BRC_MUST_USE int brc_import_stream(brc_session *s, int fd, const char *path, const brc_xfer_opts *opts, brc_error *err);
/* How many decoded bytes an import of the source will bring, according to its documents and
 * headers, for brc_progress_begin() around several imports. Excluded nodes do not count. 0 if
 * `opts` names a command (`with`). */
BRC_API BRC_MUST_USE int brc_import_bytes(uint64_t *bytes, brc_session *s, const char *source, const brc_xfer_opts *opts, brc_error *err);
/* Writes the node `path` as a Zarr directory or .zip, .npy, .npz, NetCDF (.nc) or HDF5
 * (.h5), by dest's ending and the format ("zarr3", "zarr2", "zip", "npy", "npz",
 * "netcdf", "netcdf3", "hdf5"). An existing dest is refused. */
BRC_API BRC_MUST_USE int brc_export(brc_session *s, const char *path, const char *dest, const brc_xfer_opts *opts, brc_error *err);
/* Writes the node `path` (NULL: the root) to the descriptor `fd`, which stays open, as the
 * stream that brc_import_stream() reads. Chunks have the arrays' codecs. A reader that goes
 * away is BRC_EIO; there is no SIGPIPE. A stream that fails is left without its end, so that
 * no reader takes it for complete. No field of `opts` applies to a stream. */
BRC_API BRC_MUST_USE int brc_export_stream(brc_session *s, const char *path, int fd, const brc_xfer_opts *opts, brc_error *err);

#ifdef __cplusplus
}
#endif
#endif /* BRECCIA_H */
