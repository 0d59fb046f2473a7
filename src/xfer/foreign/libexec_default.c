/* The folder of the converters: the only object file that depends on PREFIX. */
#include "foreign.h"
#include "libexec_path.h"

const char *brc_libexec_default(void)
{
    return BRC_LIBEXEC;
}
