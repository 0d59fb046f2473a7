/* The converters that were built with these tests. */
#ifndef BRC_TESTS_CONVERTERS_H
#define BRC_TESTS_CONVERTERS_H

/* Their folder, for brc_open_opts.libexec. */
const char *converters_folder(void);

#endif
