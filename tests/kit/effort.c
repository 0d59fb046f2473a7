/* See effort.h. */
#include "effort.h"

#include <stdlib.h>
#include <string.h>

#include "sanitized.h"

int effort_is_long(void)
{
    const char *text = getenv("BRECCIA_LONG");
    return text != NULL && text[0] != '\0' && strcmp(text, "0") != 0;
}

uint64_t effort_step(uint64_t test, uint64_t sanitized)
{
    if (effort_is_long())
        return 1;
    return KIT_SANITIZED ? sanitized : test;
}

uint64_t effort_number(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);
    return text != NULL && text[0] != '\0' ? strtoull(text, NULL, 10) : otherwise;
}
