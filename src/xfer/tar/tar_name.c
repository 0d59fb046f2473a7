/* Names of members, and the locale in which libarchive reads and writes them. */
#include <stdlib.h>
#include <string.h>

#include "../../base/utf8.h"
#include "tar_in.h"
#include "tar_lib.h"

static int part_is_ok(const char *part, size_t len)
{
    return len > 0 && !(len == 1 && part[0] == '.') &&
           !(len == 2 && part[0] == '.' && part[1] == '.');
}

int brc_tar_name_ok(const char *name)
{
    size_t len = strlen(name);
    if (len > BRC_TAR_NAME_MAX || !brc_utf8_valid(name, len))
        return 0;
    for (;;) {
        size_t part = strcspn(name, "/");
        if (!part_is_ok(name, part))
            return 0;
        if (name[part] == '\0')
            return 1;
        name += part + 1;
    }
}

void brc_tar_locale_init(brc_tar_locale *l)
{
    static const char *const names[] = { "C.UTF-8", "UTF-8", "en_US.UTF-8" };
    l->utf8 = l->before = (locale_t)0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && l->utf8 == (locale_t)0; i++)
        l->utf8 = newlocale(LC_CTYPE_MASK, names[i], (locale_t)0);
}

void brc_tar_locale_dispose(brc_tar_locale *l)
{
    if (l->utf8 != (locale_t)0)
        freelocale(l->utf8);
}

void brc_tar_locale_enter(brc_tar_locale *l)
{
    if (l->utf8 != (locale_t)0)
        l->before = uselocale(l->utf8);
}

void brc_tar_locale_leave(brc_tar_locale *l)
{
    if (l->utf8 != (locale_t)0)
        uselocale(l->before);
}
