/*
 * commands.c - the commands in the order of the help page.
 */
#include "commands.h"

const struct cli_command *const cli_commands[] = {
    &cli_command_init,   &cli_command_create, &cli_command_group,  &cli_command_import,
    &cli_command_export, &cli_command_write,  &cli_command_append, &cli_command_resize,
    &cli_command_rm,     &cli_command_mv,     &cli_command_cp,     &cli_command_attrs,
    &cli_command_codecs, &cli_command_backend, &cli_command_ls,    &cli_command_info,
    &cli_command_read,   &cli_command_du,     &cli_command_ui,     &cli_command_serve,
    &cli_command_status, &cli_command_commit, &cli_command_log,
    &cli_command_show,   &cli_command_diff,   &cli_command_blame,  &cli_command_branch,
    &cli_command_tag,    &cli_command_switch, &cli_command_merge,  &cli_command_restore,
    &cli_command_rebase, &cli_command_pick,   &cli_command_revert, &cli_command_bisect,
    &cli_command_reset,  &cli_command_oplog,  &cli_command_undo,   &cli_command_drafts,
    &cli_command_config, &cli_command_backup, &cli_command_expire, &cli_command_fsck,
    &cli_command_gc,     &cli_command_repack, &cli_command_completion, &cli_command_help, NULL
};
