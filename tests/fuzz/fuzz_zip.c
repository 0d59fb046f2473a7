/* A zip archive's directory, which is read before libzip sees the archive. */
#include "fuzz.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "../../src/xfer/tree_names.h"
#include "../../src/xfer/zip.h"

static void check_order(const brc_zip_dir *dir)
{
    for (size_t i = 1; i < dir->n; i++) {
        const brc_zip_entry *a = &dir->entries[i - 1], *b = &dir->entries[i];
        FUZZ_TRUE(brc_tree_name_compare(a->name, a->name_len, b->name, b->name_len) < 0, NULL);
    }
}

void fuzz_zip(const uint8_t *data, size_t len)
{
    brc_error err = BRC_ERROR_INIT;
    brc_zip_dir dir;
    const char *file = fuzz_file("in.zip", data, len);
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    FUZZ_TRUE(fd >= 0, NULL);
    int rc = brc_zip_dir_read(&dir, fd, len, file, &err);
    FUZZ_TRUE(rc == BRC_OK || rc == BRC_EINVAL || rc == BRC_ELIMIT || rc == BRC_EUNSUPPORTED, &err);
    if (rc == BRC_OK) {
        if (brc_zip_dir_check(&dir, file, &err) == BRC_OK &&
            brc_zip_dir_sort(&dir, file, NULL, NULL, &err) == BRC_OK)
            check_order(&dir);
        brc_zip_dir_dispose(&dir);
    }
    close(fd);
}
