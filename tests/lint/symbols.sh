#!/bin/sh
# symbols.sh OBJECTS FILE.c...: holds symbols.awk to the objects of these sources in the folder
# OBJECTS. No folder: not all of them compile.
objects=$1
shift
if [ -z "$objects" ]; then
    echo 'symbols: not looked at, since a file does not compile without a warning: see the check warnings'
    exit
fi
(cd "$objects" && nm -A -g $(printf '%s\n' "$@" | sed 's/c$/o/')) |
    awk -v order="$order" -v standing=tests/lint/standing.txt -f "$here/symbols.awk" \
        $(find src -maxdepth 1 -name '*.h') $(find tests -name '*.[ch]') - | sort
