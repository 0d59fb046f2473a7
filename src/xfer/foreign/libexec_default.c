/* Where the converters are: the one object that depends on PREFIX. */
#include "foreign.h"
#include "libexec_path.h"

const char *brc_libexec_default(void)
{
    return BRC_LIBEXEC;
}
