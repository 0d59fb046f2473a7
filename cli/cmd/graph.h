/*
 * graph.h - the lines to the left of `log --graph`.
 *
 * Lanes stand side by side, each waiting for one commit. A commit takes its lane;
 * its first parent inherits it, further parents open lanes to the right; lanes
 * that wait for the same commit become one.
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

/* What stands in front of the commit's first line and of its other lines; moves
 * on to its parents. The connecting lines are printed by cli_graph_connect(). */
void cli_graph_enter(struct cli *cli, struct cli_graph *graph, const brc_commit *commit,
                     const char **first, const char **prefix);
void cli_graph_connect(struct cli *cli, struct cli_graph *graph, const brc_commit *commit);
void cli_graph_dispose(struct cli_graph *graph);

#endif
