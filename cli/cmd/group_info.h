/*
 * group_info.h - what a group has, in the manner of `ncdump -h`.
 */
#ifndef BRC_CLI_CMD_GROUP_INFO_H
#define BRC_CLI_CMD_GROUP_INFO_H

struct cli;

/* Prints dimensions, variables with their attributes, groups and attributes: as text, or as members of the open JSON
 * object. `json` is the document of the group. */
int print_group_info(struct cli *cli, const char *path, const char *json);

#endif
