/*
 * graph.h - the lines to the left of `log --graph`.
 *
 * There is one lane for each commit that is still to come. A commit takes its lane; its
 * first parent inherits it, other parents open lanes to the right, and lanes that wait
 * for the same commit become one.
 */
#ifndef BRECCIA_CLI_GRAPH_H
#define BRECCIA_CLI_GRAPH_H

#include "../../src/breccia.h"

#include <stddef.h>

struct cli;

struct cli_graph {
    brc_oid *lanes;
    size_t n, cap;
};

/* What to print before the first line of a commit, and before its other lines. */
void cli_graph_enter(struct cli *cli, struct cli_graph *graph, const brc_commit *commit,
                     const char **first, const char **prefix);
/* Moves on to its parents and prints the connecting lines. */
void cli_graph_connect(struct cli *cli, struct cli_graph *graph, const brc_commit *commit);
void cli_graph_dispose(struct cli_graph *graph);

#endif
