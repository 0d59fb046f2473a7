/* The backends that breccia brings along, beside "inline". Each function adds one to the registry. Like the codecs,
 * they use nothing but the interface that plug-ins use. */
#ifndef BRC_BACKENDS_BACKENDS_H
#define BRC_BACKENDS_BACKENDS_H

#include "../breccia_backend.h"

/* Returns the result of a failed call to the caller. */
#define BRC_BACKEND_TRY(call)  \
    do {                       \
        int rc_try = (call);   \
        if (rc_try < 0)        \
            return rc_try;     \
    } while (0)

BRC_MUST_USE int brc_backend_external_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_backend_pack_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_backend_s3_register(brc_registry *reg, brc_error *err);

#endif
