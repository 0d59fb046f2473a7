/* The converters that were built with these tests. */
#ifndef BRC_TESTS_CONVERTERS_H
#define BRC_TESTS_CONVERTERS_H

#include <stddef.h>

/* Their folder, for brc_open_opts.libexec. */
const char *converters_folder(void);

/* How many members of the stream that a converter ("hdf5") makes of the file refer to it; *all: of
 * those that are not documents. Fails the test where it fails. */
size_t converter_refers(const char *name, const char *file, size_t *all);

#endif
