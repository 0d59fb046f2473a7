/*
 * The content that a file with history must have, in plain memory and by rules of its own: commits as whole
 * copies of small arrays, merge bases by sets of ancestors, a merge element by element. Nothing of
 * the library is used.
 */
#ifndef BRC_TESTS_HISTORY_ORACLE_H
#define BRC_TESTS_HISTORY_ORACLE_H

#include <stdint.h>

#define HM_NODES 40
#define HM_LEN 12
#define HM_ATTRS 2
#define HM_COMMITS 600
#define HM_UNKNOWN INT32_MIN /* an element of which merge bases say different things */

typedef struct hm_node {
    int uid, name; /* what it is, and where: a move keeps the first; the path is "/n" and the second */
    int len;
    int32_t value[HM_LEN]; /* 0 behind the end */
    int32_t attr[HM_ATTRS]; /* 0: there is none */
} hm_node;

typedef struct hm_snap {
    int n;
    hm_node node[HM_NODES];
} hm_snap;

typedef struct hm_commit {
    uint8_t id[32];
    int nparents, parent[2]; /* nearest ancestors, where others have expired */
    int is_cut;              /* they have */
    hm_snap snap;
} hm_commit;

typedef struct hm_graph {
    int n;
    hm_commit commit[HM_COMMITS];
} hm_graph;

/* HM_UNSURE: the oracle has no rule for it, and believes the library. */
enum { HM_CLEAN, HM_CONFLICT, HM_UNSURE };

/* -1: no such node. */
int hm_by_uid(const hm_snap *s, int uid);
int hm_by_name(const hm_snap *s, int name);
void hm_drop(hm_snap *s, int at);
/* The same paths with the same contents. */
int hm_same(const hm_snap *a, const hm_snap *b);
/* A node is not where it is in another of these. */
int hm_any_moved(const hm_snap *base, const hm_snap *ours, const hm_snap *theirs);
/* Returns whether a node of the base was removed in between and made again (see
 * history_oracle.c). */
int hm_came_back(const hm_graph *g, int tip, const hm_snap *base);
int hm_merge(hm_snap *out, const hm_snap *base, const hm_snap *ours, const hm_snap *theirs);
int hm_reaches(const hm_graph *g, int from, int to);
/* The base of two commits, made of several where they have several. */
int hm_base(hm_snap *out, const hm_graph *g, int a, int b, int depth);

#endif
