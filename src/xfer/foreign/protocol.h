/*
 * What a converter (src/convert) tells the program that started it: its exit status, and
 * on standard error one sentence, which is the error's message. An import that
 * ends well says there "excluded PATH", a line for each node of the file that was left out.
 */
#ifndef BRC_XFER_FOREIGN_PROTOCOL_H
#define BRC_XFER_FOREIGN_PROTOCOL_H

#include "../../base/error.h"

enum {
    BRC_STATUS_GOOD = 0,
    BRC_STATUS_IS_NETCDF = 63, /* of an import of HDF5: this was written as NetCDF-4. Nothing
                                  else has been written, on neither stream              */
    BRC_STATUS_ERROR = 64      /* and as much more as the code is below 0: 65 is BRC_EINVAL */
};

/* How a line of an import begins: the path of a node that was left out, as it was asked for. */
#define BRC_SAYS_EXCLUDED "excluded "

/* In the stream of an import, beside an array's chunks ("a/elements") and in place of them: all
 * elements in C order, as the codec `bytes` has them, by reference (BRC_TAR_RANGE) into the file. */
#define BRC_STREAM_ELEMENTS "elements"

/* In an array's document of an export's stream: {"must_understand": false, "codecs": [...]},
 * its codecs in the repository. */
#define BRC_EXPORT_NOTE "breccia_export"

static inline int brc_status_of_code(int code)
{
    return code < 0 && code >= BRC_ECOLLISION ? BRC_STATUS_ERROR - code : BRC_STATUS_ERROR - BRC_EINTERNAL;
}

/* 0 if the status is none that says a code: a program that knows nothing of this. */
static inline int brc_code_of_status(int status)
{
    int code = BRC_STATUS_ERROR - status;
    return code < 0 && code >= BRC_ECOLLISION ? code : 0;
}

#endif
