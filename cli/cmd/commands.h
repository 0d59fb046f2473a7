/*
 * commands.h - the table of commands.
 *
 * Each command is a constant structure, next to the function that runs the command; the
 * table in commands.c lists the commands in the order of the help page.
 */
#ifndef BRECCIA_CLI_COMMANDS_H
#define BRECCIA_CLI_COMMANDS_H

#include "../options.h"

extern const struct cli_command cli_command_init, cli_command_create, cli_command_group;
extern const struct cli_command cli_command_import, cli_command_export;
extern const struct cli_command cli_command_write, cli_command_append, cli_command_resize;
extern const struct cli_command cli_command_rm, cli_command_mv, cli_command_cp;
extern const struct cli_command cli_command_attrs, cli_command_codecs, cli_command_backend;
extern const struct cli_command cli_command_ls, cli_command_info, cli_command_read, cli_command_du;
extern const struct cli_command cli_command_status, cli_command_commit, cli_command_log;
extern const struct cli_command cli_command_show, cli_command_diff;
extern const struct cli_command cli_command_branch, cli_command_tag, cli_command_switch, cli_command_drafts, cli_command_config;
extern const struct cli_command cli_command_bisect, cli_command_rebase, cli_command_pick, cli_command_revert;
extern const struct cli_command cli_command_merge, cli_command_restore, cli_command_reset;
extern const struct cli_command cli_command_oplog, cli_command_undo, cli_command_blame;
extern const struct cli_command cli_command_serve, cli_command_ui;
extern const struct cli_command cli_command_backup, cli_command_expire, cli_command_fsck, cli_command_gc,
    cli_command_repack;
extern const struct cli_command cli_command_completion, cli_command_help;

/* Returns the settings of a repository, ended by NULL. */
const char *const *cli_config_keys(void);

/* All commands, ended by NULL. */
extern const struct cli_command *const cli_commands[];

#endif
