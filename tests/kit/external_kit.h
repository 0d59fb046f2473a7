/* Files in which chunks lie: what may happen to one, and what is then said of it. Everything fails the test that
 * called it. */
#ifndef BRC_TESTS_EXTERNAL_KIT_H
#define BRC_TESTS_EXTERNAL_KIT_H

#include <sys/stat.h>

#include "exchange_kit.h"

/* Something that happens to a file, which was `was` before. */
typedef void external_change(const char *path, const struct stat *was);
void external_set_time(const char *path, const struct stat *was, int seconds); /* so much later */
external_change external_touch, external_cut, external_poke, external_remove, external_to_fifo;

typedef struct external_hazard {
    external_change *happens;
    const char *says, *remedy;
    int missing; /* what fsck says of the chunks  */
    int is_io;   /* reading fails with BRC_EIO    */
} external_hazard;
enum { EXTERNAL_HAZARDS = 10 };
extern const external_hazard external_hazards[EXTERNAL_HAZARDS];

/* Checks that these words are in the last error. */
void external_said(exchange_kit *kit, const char *words);
/* Chunks that lie in files, and places of them. */
int64_t external_lying(exchange_kit *kit);
/* Looks at the places with these BRC_BACKENDS_* flags: finds one fault that says so, or (NULL) none. */
void external_look(exchange_kit *kit, uint32_t flags, const char *says);
/* The hazard happens to the file of this name in the folder: read() fails and names `named`, fsck finds only chunks
 * that the hazard has hit and that are used, at least one. Then the file comes back, and all is well. */
void external_meets(exchange_kit *kit, const external_hazard *h, const char *name, const char *named,
                    int (*read)(void));
/* brc_rebase_files() of names in the folder. */
int external_rebase(exchange_kit *kit, const char *from, const char *to, uint64_t *moved, uint64_t *compared);

#endif
