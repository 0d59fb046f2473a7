/*
 * What a converter (src/convert) tells the program that started it: its exit status, and
 * on standard error one sentence, which is the error's message. Before it an import says
 * there, a line each:
 *
 *   excluded N         the option --exclude with this number, from 0, has met something
 *   left out OBJECT    a part of the file that it cannot keep, as brc_parts_write() has it
 *   left out N         and so many more, which it does not list
 *
 * With --skip-unsupported it goes on without these parts and ends well. Without, it ends with the
 * status of BRC_EUNSUPPORTED when it knows them all.
 */
#ifndef BRC_XFER_FOREIGN_PROTOCOL_H
#define BRC_XFER_FOREIGN_PROTOCOL_H

#include "../../base/error.h"

enum {
    BRC_STATUS_GOOD = 0,
    BRC_STATUS_ERROR = 64      /* and as much more as the code is below 0: 65 is BRC_EINVAL */
};

#define BRC_SAYS_EXCLUDED "excluded "
#define BRC_SAYS_LEFT_OUT "left out "

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
