#!/bin/sh
# warnings.sh SAID FILE...: the whole tree without a warning, with two compilers. The file SAID
# has what the first one said as it made the objects: it optimises, since some warnings come
# from that. clang reads alone.
said=$1
shift
flags="-std=c17 -D_GNU_SOURCE -Wall -Wextra -Wshadow -Wconversion -Wvla -Wstrict-prototypes
    -Wmissing-prototypes -Wpointer-arith -Werror -Ibuild/gen -Isrc $PKG_CFLAGS"

# `file:line:column: error: text` is kept.
faults() {
    sed -n "s/^\([^ :]*:[0-9]*\):[0-9]*: \(fatal error\|error\|warning\): /\1: $1: /p"
}

faults "${CC:-cc}" <"$said"
# A compiler that failed in another way must not pass.
[ ! -s "$said" ] || faults x <"$said" | grep -q . || sed 's/^/make objects: /' "$said"
# Few files a call, so that all cores work.
if command -v clang >/dev/null 2>&1; then
    printf '%s\n' "$@" | xargs -n 4 -P "$(nproc)" clang -fsyntax-only $flags 2>&1 | faults clang
fi
