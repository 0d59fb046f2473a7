/*
 * The states of a disk after power was lost, computed from the log of a fault_vfs. Data that
 * was synced is there. Other data may be there, or not, or in part, sector by
 * sector; the folder's entries, likewise up to some point of their order.
 */
#ifndef BRC_TESTS_CRASH_SIM_H
#define BRC_TESTS_CRASH_SIM_H

#include "../../src/base/buf.h"
#include "../../src/breccia.h"
#include "fault_vfs.h"

typedef struct crash_inode {
    brc_buf synced;
    size_t *pending; /* operations since the last sync                           */
    size_t npending;
} crash_inode;

typedef struct crash_disk {
    const fault_vfs *v;
    size_t at;   /* operations that were done                                    */
    size_t acks; /* marks among them                                             */
    crash_inode *inodes;
    size_t ninodes;
    int now[LOG_FILES], synced[LOG_FILES]; /* each name's inode, or -1           */
    int entries[64][2]; /* changes of the folder since it was synced: name, inode */
    size_t nentries;
    brc_buf imagined[LOG_FILES], all; /* the last state: of each file, and all in one */
    int is_there[LOG_FILES];
} crash_disk;

enum { CRASH_DROPPED, CRASH_KEPT, CRASH_TORN }; /* and above: other seeds          */

void crash_disk_new(crash_disk *d, const fault_vfs *v);
void crash_disk_free(crash_disk *d);
/* Does one operation more; 0 at the end. */
int crash_disk_step(crash_disk *d);
/* A state; the id tells equal ones. */
brc_oid crash_disk_imagine(crash_disk *d, unsigned variant);
/* Writes the last one to `path`, its journal and its log, or removes them. */
void crash_disk_put(const crash_disk *d, const char *path);

#endif
