/*
 * libexec.c - finds the converters that belong to this program: in a build tree, beside the
 * program; where an installation was moved as a whole, under its new prefix.
 */
#include "cli.h"

#include <string.h>
#include <unistd.h>

const char *cli_libexec(struct cli *cli)
{
    static const char *const places[] = { "libexec/breccia", "../libexec/breccia" };
    char self[4096];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self));

    while (len > 0 && (size_t)len < sizeof(self) && self[len - 1] != '/')
        len--;
    for (size_t i = 0; len > 0 && i < sizeof(places) / sizeof(places[0]); i++) {
        const char *folder = cli_text(cli, "%.*s%s", (int)len, self, places[i]);
        if (access(folder, X_OK) == 0)
            return folder;
    }
    return NULL;
}
