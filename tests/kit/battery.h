/*
 * The rule between fsck and the commands: if fsck finds nothing, every command works; if a
 * command says that the file is damaged, fsck says what is. The battery asks fsck, then
 * does what each command does, and says where the rule does not hold.
 */
#ifndef BRC_TESTS_BATTERY_H
#define BRC_TESTS_BATTERY_H

#include "../../src/breccia.h"

typedef struct battery {
    int opened;          /* 0: brc_open() refused the file; the rest is empty         */
    uint64_t findings;   /* of fsck                                                  */
    char finding[200];   /* the first                                                */
    uint64_t commands;   /* that were done                                           */
    char broken[800];    /* where the rule does not hold: "" or a sentence           */
} battery;

/* Reads first, then changes and commits; the file at `path` is different afterwards. */
void battery_run(battery *out, const char *path, const brc_registry *reg);

#endif
