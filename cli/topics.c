/*
 * topics.c - help pages about what several commands have in common.
 */
#include "topics.h"

#include <stddef.h>

static const char slices_text[] =
    "A slice names elements of an array, as in Python and NumPy. Quote it: shells\n"
    "read brackets too. The brackets may be left out. A slice in brackets may also\n"
    "follow its path at once, as '/t2m[0:10]'.\n"
    "\n"
    "  '[5]'            the sixth element, or row; -1 is the last one\n"
    "  '[0:10]'         the first ten\n"
    "  '[::2]'          every second one\n"
    "  '[0:10, :, 3]'   one part for each dimension; missing ones are whole\n"
    "  '[..., 0]'       as many whole dimensions as there are before the last\n"
    "\n"
    "By the names of dimensions, and by the values of their coordinates:\n"
    "\n"
    "  '[time=0, lat=10:20]'            dimensions that are not named are whole\n"
    "  '{time=2020-05-01, lat=30:60}'   both ends belong to the slice, in either order\n"
    "  '{time=2020-05:2020-06}'         two months; dates as CF's units say them\n"
    "  '{lead=36h:2D}'                  elapsed time\n"
    "\n"
    "In braces, the values are those of the array that has the dimension's name, in\n"
    "the same group or above. A value that is not there is an error that names the\n"
    "nearest ones; '{lat=30:}' goes to the end of the array, and '{lat=30:60:2}' takes\n"
    "every second one.\n"
    "\n"
    "A step is 1 or more. A slice may end behind the array; an integer may not lie\n"
    "outside. 'write' takes several slices, which get the same value.\n";

static const char versions_text[] =
    "REV names a version, wherever a command reads one:\n"
    "\n"
    "  main, v1.0              a branch or a tag\n"
    "  HEAD                    the current branch's newest commit\n"
    "  5a62, 5a62f0...         a commit by its id, or by 4 digits or more of it\n"
    "  main~2                  two commits before; main^2 is a merge's second parent\n"
    "  'main@{2026-11-20}'     where the branch was then\n"
    "  'main@{2 days ago}'     a time in words: yesterday, monday, 1 month ago\n"
    "\n"
    "'--at REV' reads that version of FILE, and so does FILE@REV. Without a version\n"
    "you see the current branch with its uncommitted changes. 'diff FILE A B'\n"
    "compares two versions, 'diff FILE' the newest commit with what is uncommitted.\n"
    "'log FILE A..B' lists the commits of B that A does not have.\n"
    "\n"
    "'undo' takes back the last command that changed something, 'oplog' lists them.\n"
    "'restore FILE PATH --from REV' brings back a node, and 'revert' undoes a commit\n"
    "by another one.\n";

static const char codecs_text[] =
    "An array's codecs say how its chunks are encoded: a list in JSON, as in\n"
    "zarr.json, from elements to bytes.\n"
    "\n"
    "  --compress zstd          Zstandard; zstd:9 sets the level\n"
    "  --compress blosc         Blosc with shuffle, for numbers that change smoothly\n"
    "  --compress gzip:5\n"
    "  --compress none\n"
    "  --codecs '[{\"name\": \"bytes\", \"configuration\": {\"endian\": \"little\"}},\n"
    "             {\"name\": \"zstd\", \"configuration\": {\"level\": 3}}]'\n"
    "\n"
    "Without either, the data type decides. 'codecs FILE PATH JSON' changes the\n"
    "codecs on this branch: chunks that are there keep their encoding and stay\n"
    "readable, and versions that differ only in encoding have no difference. 'codecs\n"
    "FILE PATH JSON --rewrite' encodes the old chunks too. 'codecs --list' names what\n"
    "there is, and 'config FILE codecs JSON' sets what new arrays get. Both take a\n"
    "list like '[\"zstd\"]' too, and keep what turns elements into bytes.\n";

static const struct cli_topic topics[] = {
    { "slices", "how parts of arrays are written", slices_text },
    { "versions", "how versions are named", versions_text },
    { "codecs", "how chunks are encoded", codecs_text },
    { NULL, NULL, NULL },
};

const struct cli_topic *cli_topics(void)
{
    return topics;
}
