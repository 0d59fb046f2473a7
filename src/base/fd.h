/* File descriptors: reads and writes that go on after a signal, and never a SIGPIPE. */
#ifndef BRC_BASE_FD_H
#define BRC_BASE_FD_H

#include "error.h"

/* Some bytes, at most cap; *n 0 at the end. `name`: for messages, here and below. */
BRC_MUST_USE int brc_fd_read(int fd, void *to, size_t cap, size_t *n, const char *name, brc_error *err);
/* All bytes. A reader that has gone away is an error, BRC_EIO with EPIPE in its
 * detail, and not a signal, whatever the process does about SIGPIPE. */
BRC_MUST_USE int brc_fd_write(int fd, const void *from, size_t len, const char *name, brc_error *err);
/* Exactly len bytes of a regular file at this offset. A file that ends before has become shorter:
 * BRC_EINVAL says so. */
BRC_MUST_USE int brc_fd_read_at(int fd, void *to, size_t len, uint64_t at, const char *name, brc_error *err);
/* All bytes, to this offset. */
BRC_MUST_USE int brc_fd_write_at(int fd, const void *from, size_t len, uint64_t at, const char *name, brc_error *err);
/* One write(2), of some of the bytes and without a signal too; returns what write(2)
 * does. */
ptrdiff_t brc_fd_write_some(int fd, const void *from, size_t len);

#endif
