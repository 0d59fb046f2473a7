/*
 * changes.h - the nodes that differ between two versions, as status, show and diff
 * print them.
 */
#ifndef BRECCIA_CLI_CHANGES_H
#define BRECCIA_CLI_CHANGES_H

#include "../../src/breccia.h"

#include <stdint.h>

struct cli;

struct cli_changes {
    const char *a, *b;  /* as brc_diff() takes them                           */
    const char *path;   /* only this node and all under it, or NULL           */
    const char *title;  /* a line before the first change, or NULL             */
    int elements, stat, silent; /* silent: no text                            */
    int chunks;         /* with elements: list the chunks that hold them      */
    uint64_t values;    /* the most elements to show of each array            */
    int follow;         /* the node at `path` to where it was, and elements that one version lacks */
    int values_asked;   /* fail if these cannot be read                       */
    int close;          /* numbers count as equal within atol and rtol        */
    double atol, rtol;
    const brc_sel *sel; /* only these elements; NULL: all                     */
    uint64_t nodes;     /* result: how many are listed                        */
    uint64_t differing; /* result: how many have other values or metadata     */
};

/* Prints the changes: the member "nodes" in JSON, a list in text. */
int cli_put_changes(struct cli *cli, struct cli_changes *changes);

#endif
