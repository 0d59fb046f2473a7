/*
 * The protocol between a converter (src/convert) and the program that started it: the converter's exit
 * status, and on standard error one sentence, which is the error's message. Before the sentence an
 * import writes these lines:
 *
 *   excluded N         the option --exclude with this number, from 0, has met something
 *   left out OBJECT    a part of the file that it cannot keep, as brc_parts_write() has it
 *   left out N         and so many more, which it does not list
 *
 * With --skip-unsupported the converter goes on without these parts and succeeds. Without the option
 * it ends with the status of BRC_EUNSUPPORTED when it knows all of them.
 */
#ifndef BRC_XFER_FOREIGN_PROTOCOL_H
#define BRC_XFER_FOREIGN_PROTOCOL_H

#include "../../base/error.h"

enum {
    BRC_STATUS_GOOD = 0,
    BRC_STATUS_ERROR = 64      /* plus the code's absolute value: 65 is BRC_EINVAL */
};

#define BRC_SAYS_EXCLUDED "excluded "
#define BRC_SAYS_LEFT_OUT "left out "

/* A member in the stream of an import, beside an array's chunks ("a/elements") and instead of them: all elements in
 * C order, as the codec `bytes` has them, by reference (BRC_TAR_RANGE) into the file. */
#define BRC_STREAM_ELEMENTS "elements"

/* A member of an array's document in the stream of an export: {"must_understand": false, "codecs": [...]}, the
 * array's codecs in the repository. */
#define BRC_EXPORT_NOTE "breccia_export"

static inline int brc_status_of_code(int code)
{
    return code < 0 && code >= BRC_ECOLLISION ? BRC_STATUS_ERROR - code : BRC_STATUS_ERROR - BRC_EINTERNAL;
}

/* Returns 0 if the status stands for no code: the program does not follow this protocol. */
static inline int brc_code_of_status(int status)
{
    int code = BRC_STATUS_ERROR - status;
    return code < 0 && code >= BRC_ECOLLISION ? code : 0;
}

#endif
