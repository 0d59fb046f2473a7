/*
 * graph.c - lanes of the commit graph.
 */
#include "graph.h"

#include "../cli.h"
#include "history.h"

#include <stdlib.h>
#include <string.h>

static size_t lane_of(const struct cli_graph *graph, const brc_oid *id)
{
    size_t i = 0;

    while (i < graph->n && !cli_same_id(&graph->lanes[i], id))
        i++;
    return i;
}

static void insert_lane(struct cli_graph *graph, size_t at, const brc_oid *id)
{
    graph->lanes = cli_grow(graph->lanes, graph->n, &graph->cap, sizeof(*graph->lanes));
    memmove(graph->lanes + at + 1, graph->lanes + at, (graph->n - at) * sizeof(*graph->lanes));
    graph->lanes[at] = *id;
    graph->n++;
}

static void remove_lane(struct cli_graph *graph, size_t at)
{
    memmove(graph->lanes + at, graph->lanes + at + 1,
            (graph->n - at - 1) * sizeof(*graph->lanes));
    graph->n--;
}

/* A blank line to draw on, with two columns for each lane. */
static char *blank_line(struct cli *cli, size_t lanes)
{
    char *line = cli_alloc(cli, 2 * lanes + 2, 1);

    memset(line, ' ', 2 * lanes + 1);
    return line;
}

static void put_line(struct cli *cli, char *line)
{
    size_t len = strlen(line);

    while (len > 0 && line[len - 1] == ' ')
        len--;
    cli_put(cli, line, len);
    cli_puts(cli, "\n");
}

void cli_graph_enter(struct cli *cli, struct cli_graph *graph, const brc_commit *commit,
                     const char **first, const char **prefix)
{
    size_t at = lane_of(graph, &commit->id);
    char *star, *bars;

    if (at == graph->n)
        insert_lane(graph, at, &commit->id);
    star = blank_line(cli, graph->n);
    for (size_t i = 0; i < graph->n; i++)
        star[2 * i] = i == at ? '*' : '|';
    star[2 * graph->n] = '\0';
    bars = blank_line(cli, graph->n);
    for (size_t i = 0; i < graph->n; i++)
        bars[2 * i] = i == at && commit->nparents == 0 ? ' ' : '|';
    bars[2 * graph->n] = '\0';
    *first = star;
    *prefix = bars;
}

/* |\    a lane opens at `at`; those after it move to the right */
static void draw_opening(struct cli *cli, const struct cli_graph *graph, size_t at)
{
    char *line = blank_line(cli, graph->n);

    for (size_t i = 0; i < graph->n; i++) {
        if (i < at)
            line[2 * i] = '|';
        else
            line[2 * i - 1] = '\\';
    }
    put_line(cli, line);
}

/* |_|/    the lane at `from` joins that at `to`, or (to == from) just ends; those after
 * it move to the left */
static void draw_closing(struct cli *cli, const struct cli_graph *graph, size_t to, size_t from)
{
    char *line = blank_line(cli, graph->n);

    for (size_t i = 0; i < graph->n; i++) {
        if (i < from)
            line[2 * i] = '|';
        else if (i > from || to < from)
            line[2 * i - 1] = '/';
        if (i > to && i < from)
            line[2 * i - 1] = '_';
    }
    put_line(cli, line);
}

/* Lanes that wait for the same commit join the leftmost of them. */
static void close_equal_lanes(struct cli *cli, struct cli_graph *graph)
{
    for (size_t from = 1; from < graph->n; from++) {
        size_t to = lane_of(graph, &graph->lanes[from]);

        if (to == from)
            continue;
        draw_closing(cli, graph, to, from);
        remove_lane(graph, from--);
    }
}

void cli_graph_connect(struct cli *cli, struct cli_graph *graph, const brc_commit *commit)
{
    size_t at = lane_of(graph, &commit->id);

    if (at == graph->n)
        return;
    if (commit->nparents == 0) {
        if (at + 1 < graph->n)
            draw_closing(cli, graph, at, at);
        remove_lane(graph, at);
        return;
    }
    graph->lanes[at] = commit->parents[0];
    for (size_t i = 1; i < commit->nparents; i++) {
        insert_lane(graph, at + i, &commit->parents[i]);
        draw_opening(cli, graph, at + i);
    }
    close_equal_lanes(cli, graph);
}

void cli_graph_dispose(struct cli_graph *graph)
{
    free(graph->lanes);
    graph->lanes = NULL;
    graph->n = graph->cap = 0;
}
