/*
 * A file and what it must have (history_oracle.h), through two handles and four kinds of session:
 * what each branch shares, and a private one of each handle.
 */
#ifndef BRC_TESTS_HISTORY_WORLD_H
#define BRC_TESTS_HISTORY_WORLD_H

#include "../../src/breccia.h"
#include "history_oracle.h"

#define HM_BRANCHES 3 /* the last is made and deleted */
#define HM_SESSIONS (HM_BRANCHES + 2)
#define HM_TAGS 2
#define HM_HANDLES 2
#define HM_LOG 600
#define HM_NAMES 1024
#define HM_RARE 20 /* the first kind of history_rare.c */
#define HM_KINDS 26

/* An operation: all that it does follows from these numbers and from what was done before. */
typedef struct hm_op {
    uint8_t kind, a, b, c, d, kill; /* kill: 0, or it is done by a child that is killed */
} hm_op;

typedef struct hm_refs {
    int tip[HM_BRANCHES], tag[HM_TAGS], head; /* commits; -1: there is no such branch or tag */
} hm_refs;

typedef struct hm_draft {
    int changed, base, branch; /* base: the commit over which the changes lie */
    brc_session *session; /* of a private one */
    hm_snap snap;
} hm_draft;

typedef struct hm_world {
    char file[96], why[600];
    breccia *repo[HM_HANDLES];
    brc_error err;
    hm_graph g;
    hm_refs refs;
    hm_draft draft[HM_SESSIONS];
    hm_refs log[HM_LOG]; /* before each operation that can be taken back; then as it is */
    int nlog, ndone;
    int next_uid, step;
    int uid_of[HM_NAMES]; /* by name */
    int over; /* what was done has no rule for what comes after */
    uint64_t made, refused, unsure, killed, collected, expired, settled, deltas;
} hm_world;

/* All functions: 0, or -1 with w->why. */
#define HM_TRUE(w, what, ...) \
    do { \
        if (!(what)) \
            return hm_say((w), __VA_ARGS__); \
    } while (0)
#define HM_OK(w, call) HM_TRUE(w, (call) == BRC_OK, "%s: %s", #call, (w)->err.message)
#define HM_GO(call) \
    do { \
        if ((call) != 0) \
            return -1; \
    } while (0)

int hm_say(hm_world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *hm_branch(int i);
const char *hm_tag(int i);
/* Reads the content that the session has now. uids are 0. */
int hm_read(hm_world *w, brc_session *s, hm_snap *out);
/* A commit that the library has made, as a new one of the graph. `like`: what must be in it, or
 * NULL: whatever is. */
int hm_import(hm_world *w, const brc_oid *id, const hm_snap *like, int *out);
int hm_find(const hm_world *w, const brc_oid *id);
int hm_tip(hm_world *w, const char *rev, brc_oid *id);
char *hm_hex(const hm_world *w, int commit, char *hex);
/* Refs, the current branch, and what each session sees. */
int hm_check(hm_world *w, int all);
int hm_fsck(hm_world *w);
/* A new file with two arrays, and three branches. */
int hm_start(hm_world *w, const char *file);
void hm_stop(hm_world *w);
int hm_open(hm_world *w, int handle);
/* Updates what sessions see: a session without changes sees the branch as it is. */
void hm_follow(hm_world *w);
/* Notes what the refs were before an operation that has moved one. */
void hm_log(hm_world *w, const hm_refs *before);
/* Nothing can be undone or done again. */
void hm_forget_log(hm_world *w);
/* The library's form of `n` values: each is a row of HM_ROW bytes, of which the first HM_HEAD say
 * the value; the others are the same for all values but 0, which is the fill value. So chunks are
 * long enough to be stored as differences, and these are short. hm_values() fails if a row is not
 * that of a value. */
#define HM_HEAD 64
#define HM_ROW 512
void hm_rows(const int32_t *values, int n, uint8_t *rows);
int hm_values(hm_world *w, const uint8_t *rows, int n, int32_t *values);
/* history_ops.c */
/* Some elements of one array, of the session (NULL: none) and of what it must have. */
int hm_write(hm_world *w, brc_session *s, hm_snap *snap, hm_op op);
/* A process was killed: its change of what the branch shares is there, or it is not. */
int hm_met(hm_world *w, int branch, const hm_snap *after);
/* The session has changed something, maybe back to what it was. */
int hm_changed(hm_world *w, int session);
int hm_apply(hm_world *w, hm_op op);
const char *hm_op_name(hm_op op);
hm_op hm_random_op(uint64_t *random);
/* history_moves.c: merge, pick, revert, rebase */
int hm_history_op(hm_world *w, hm_op op);
int hm_discard_head(hm_world *w);
/* The current branch may have moved, to new commits in one line, whose contents are believed. */
int hm_settle_line(hm_world *w);
/* The commit that the operation merges. */
int hm_other(const hm_world *w, hm_op op);
int hm_in_child(hm_world *w, hm_op op, int (*act)(hm_world *w, breccia *repo, hm_op op));
/* One of some backends (a bucket among them) and one of some codecs; NULL: as they are where nobody says. */
void hm_storage(int number, const char **backend, const char **codecs);
/* history_rare.c: expire, amend, drafts of killed processes, chunks stored again */
int hm_rare_op(hm_world *w, hm_op op);
/* history_shrink.c: runs operations on a new file in a process of its own; 0, or 1 with why. */
int hm_run(const hm_op *ops, int n, char *why, int len, hm_world *totals);
int hm_shrink(hm_op *ops, int n, char *why, int len);

#endif
