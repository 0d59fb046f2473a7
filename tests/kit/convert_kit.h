/* A converter run on a file in a process forked for that: what a damaged file does to it. Its
 * library is loaded once, so that thousands of runs take seconds. */
#ifndef BRC_TESTS_CONVERT_KIT_H
#define BRC_TESTS_CONVERT_KIT_H

#include "../../src/convert/lib/convert.h"

typedef struct convert_ending {
    int crashed;  /* the signal that ended it, or 0               */
    int endless;  /* it was the limit of processor time           */
    int status;   /* else its exit status                         */
    char says[2048]; /* what it said on standard error            */
    long mib;     /* the most memory that it had                  */
} convert_ending;

/* Imports the file; the stream goes nowhere. */
void convert_import(convert_ending *out, const brc_driver *driver, const char *file);
/* Fails the test unless the run ended well, with one sentence, or in a crash, and that within
 * the limits of time and memory: 1 if it ended well. `what` and `at` are for the message. */
int convert_check(const convert_ending *run, const char *what, size_t at);

/* Every length of a file, and every byte of it changed in one of four ways, `step` bytes apart:
 * each ends as convert_check() asks. */
typedef struct convert_damage {
    size_t good, refused, crashed;
} convert_damage;
void convert_flip_all(convert_damage *out, const brc_driver *driver, const char *dir, const uint8_t *data, size_t len, size_t step);
void convert_cut_all(convert_damage *out, const brc_driver *driver, const char *dir, const uint8_t *data, size_t len, size_t step);

#endif
