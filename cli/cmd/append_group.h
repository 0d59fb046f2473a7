/*
 * append_group.h - append to a group: every array that has the dimension grows by what another file has.
 */
#ifndef BRC_CLI_CMD_APPEND_GROUP_H
#define BRC_CLI_CMD_APPEND_GROUP_H

struct cli;

/* Appends the file `from` to all arrays of the group that have the dimension, or fails and changes nothing. */
int cli_append_group(struct cli *cli, const char *path, const char *dim, const char *from);

#endif
