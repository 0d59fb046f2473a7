/* Errors inside the library. brc_fail() and brc_context() are in breccia_codec.h. */
#ifndef BRC_BASE_ERROR_H
#define BRC_BASE_ERROR_H

#include "../breccia_codec.h"

/* For a function with nothing to release. */
#define BRC_TRY(expr)             \
    do {                          \
        int try_rc_ = (expr);     \
        if (try_rc_ < 0)          \
            return try_rc_;       \
    } while (0)

/* For a function with `int rc` and one label `done:` that releases everything. */
#define BRC_GO(expr)   \
    do {               \
        rc = (expr);   \
        if (rc < 0)    \
            goto done; \
    } while (0)

int brc_nomem(brc_error *err);
/* Hands an error on to the caller, whose structure may have another size. err may be NULL. */
void brc_error_copy(brc_error *err, const brc_error *from);
/* Replaces the code of an error, for example if the fault is the file's and not the caller's. */
void brc_error_recode(brc_error *err, int code);
/* Sets the source of an error and the code there, after brc_fail(). */
void brc_error_source(brc_error *err, const char *source, int detail);
/* Fails with BRC_EIO (or BRC_ENOSPACE, BRC_ENOTFOUND, BRC_EEXISTS, as errno says) and the message
 * "<what> <path>: <strerror>", with errno in detail. */
int brc_fail_os(brc_error *err, int errnum, const char *what, const char *path);

#endif
