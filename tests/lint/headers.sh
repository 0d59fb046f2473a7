#!/bin/sh
# headers.sh HEADER...: every header compiles alone; a public one as C99, C17 and
# C++98, without extensions, with every compiler that there is.
cc=${CC:-cc}
strict='-Wall -Wextra -pedantic -Werror -fsyntax-only'

# One fault a line: the first line of what the compiler says.
alone() {
    as=$1
    shift
    said=$(echo "#include \"$header\"" | "$@" -I. - 2>&1) ||
        echo "$header:1: does not compile alone as $as: $(echo "$said" | grep -m 1 -E 'error|warning')"
}

for header in "$@"; do
    case $header in
    src/*/* | cli/* | codecs/*)
        alone C17 "$cc" -std=c17 -D_GNU_SOURCE -Wall -Wextra -Werror -fsyntax-only \
            $PKG_CFLAGS -Ibuild/gen -x c
        ;;
    *)
        for compiler in "$cc" clang; do
            command -v "$compiler" >/dev/null 2>&1 || continue
            for std in c99 c17; do
                alone "$std ($compiler)" "$compiler" -std=$std $strict -x c
            done
        done
        for compiler in g++ clang++; do
            command -v "$compiler" >/dev/null 2>&1 || continue
            alone "c++98 ($compiler)" "$compiler" -std=c++98 $strict -x c++
        done
        ;;
    esac
done
