#!/bin/sh
# warnings.sh FILE...: the whole tree without a warning, with two compilers. The first
# one optimises, since some warnings come from that; clang reads alone.
[ $# -gt 0 ] || exit 0
flags="-std=c17 -D_GNU_SOURCE -Wall -Wextra -Wshadow -Wconversion -Wvla -Wstrict-prototypes
    -Wmissing-prototypes -Wpointer-arith -Werror -Ibuild/gen $PKG_CFLAGS"
files=$(printf '%s\n' "$@")

# Few files a call, so that all cores work; `file:line:column: error: text` is kept.
look() { # FILES-A-CALL COMPILER FLAG...
    each=$1
    shift
    echo "$files" | xargs -n "$each" -P "$(getconf _NPROCESSORS_ONLN)" "$@" $flags 2>&1 |
        sed -n "s/^\([^ :]*:[0-9]*\):[0-9]*: \(fatal error\|error\|warning\): /\1: $1: /p"
}

look 1 "${CC:-cc}" -O2 -S -o /dev/null
if command -v clang >/dev/null 2>&1; then
    look 4 clang -fsyntax-only
fi
