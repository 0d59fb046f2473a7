#!/bin/sh
# symbols.sh FILE.c...: holds symbols.awk to the objects of these sources. OBJECTS is
# the folder where they are; without it make builds them and says where.
[ $# -gt 0 ] || exit 0
objects=${OBJECTS:-$(make -s --no-print-directory objects | tail -n 1)}
(cd "$objects" && nm -A -g $(printf '%s\n' "$@" | sed 's/c$/o/')) |
    awk -v order="$order" -v standing=tests/lint/standing.txt -f "$here/symbols.awk" \
        $(find src -maxdepth 1 -name '*.h') $(find tests -name '*.[ch]') - | sort
