/* The elements that a format's own library reads of a damaged file, to compare with the import. Such a
 * library may crash or find no end, so a child reads, and its parent compares: the sums of the
 * elements lie in memory that both see. */
#ifndef BRC_TESTS_REREAD_H
#define BRC_TESTS_REREAD_H

#include "exchange_kit.h"

enum { REREAD_MOST = 32, REREAD_BYTES = 1 << 20 }; /* arrays of a file, bytes of an array */

typedef struct reread_array {
    char path[256], dtype[16];
    uint64_t len, sum; /* the bytes as io_elements() gives them, and their XXH3 */
} reread_array;

/* Arrays of numbers, of texts of variable length and of lists of numbers; others, and larger ones,
 * are left out. */
typedef struct reread {
    int status; /* the caller's: of what the child did before, -1: it did not get to its end */
    uint32_t n;
    reread_array arrays[REREAD_MOST];
} reread;

reread *reread_new(void); /* shared with children */
void reread_free(reread *r);
void reread_clear(reread *r);

/* In the child. What the library cannot read is left out. */
void reread_hdf5(reread *r, const char *file);
void reread_netcdf(reread *r, const char *file);

/* Compares with the arrays below a path, and gives how many there were to compare: those with the
 * same path and data type. Fails the test, which `what` names, where elements differ. */
uint64_t reread_compare(const reread *r, exchange_kit *kit, const char *below, const char *what);

#endif
