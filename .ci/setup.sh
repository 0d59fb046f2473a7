#!/bin/sh
# Installs what is missing to build breccia, and nothing where nothing is missing.
#
#   setup.sh            what `make` and `make test` need
#   setup.sh --lib      what the library and its converters need, and nothing for tests
#   setup.sh --lint     and what `make lint` needs
#   setup.sh --fuzz     what `make fuzz` needs
#   setup.sh --python   what the Python package and its tests need
#   setup.sh --package  what `make package` needs
#   setup.sh --static   what `make static` needs, which fetches more itself
#   setup.sh --dev      all of these, and valgrind, npm, shells and Chromium: all that .ci/run needs
#   setup.sh GROUP --say   installs nothing: names what is missing, and fails
#
# One line of the table is one thing to look for and the Debian package that has
# it; without an optional one (opt...) the build lacks a feature. Debian and its relatives install through apt, as root or with sudo; any
# other system is told what to install. A stamp of an earlier full look makes the
# next one cost a few milliseconds.
set -u

root=$(cd "$(dirname "$0")/.." && pwd)
group=${1:---build}
say=${2:-}
stamp=$root/build/.setup-ok$group

table='
--lib   command    make         make
--lib   command    gcc          gcc
--lib   command    pkg-config   pkg-config
--lib   header     stdio.h      libc6-dev
--lib   pkg        sqlite3      libsqlite3-dev
--lib   pkg        libzstd      libzstd-dev
--lib   pkg        libxxhash    libxxhash-dev
--lib   pkg        libcjson     libcjson-dev
--lib   pkg        zlib         zlib1g-dev
--lib   pkg        blosc        libblosc-dev
--lib   pkg        liblz4       liblz4-dev
--lib   pkg        liblzma      liblzma-dev
--lib   header     bzlib.h      libbz2-dev
--lib   pkg        libzip       libzip-dev
--lib   pkg        libarchive   libarchive-dev
--lib   pkg        netcdf       libnetcdf-dev
--lib   pkg        hdf5         libhdf5-dev
--lib   pkg        libseccomp   libseccomp-dev
--lib   optional   liblzf       liblzf-dev
--lib   optheader  zfp.h        libzfp-dev
--lib   optional   libcurl      libcurl4-openssl-dev
--lib   optional   libmicrohttpd libmicrohttpd-dev
--build pkg        check        check
--lint  command    clang        clang
--lint  command    g++          g++
--fuzz  command    clang        clang
--fuzz  fuzzer     clang        libclang-rt
--package command  dpkg-shlibdeps dpkg-dev
--static command   dpkg-source  dpkg-dev
--static command   g++          g++
--dev   command    valgrind     valgrind
--python command   python3      python3
--python python    ensurepip    python3-venv
--python pyheader  Python.h     python3-dev
--dev   command    gdb          gdb
--dev   command    npm          npm
--dev   command    zsh          zsh
--dev   command    fish         fish
--dev   optcommand chromium     chromium
--dev   optcommand gdal_translate gdal-bin
--dev   optcommand rclone       rclone
--dev   optcommand nginx        nginx-light
--dev   optcommand caddy        caddy
--dev   optcommand slowhttptest slowhttptest
'

# Sanitizers and libFuzzer are in a package with the version of clang in its name.
case ${CC:-} in *clang*) fuzz_cc=$CC ;; *) fuzz_cc=clang ;; esac
clang_runtime() {
    major=$("$fuzz_cc" -dumpversion 2>/dev/null | sed 's/[.].*//')
    [ -n "$major" ] || major=$(apt-cache depends clang 2>/dev/null | sed -n 's/.* clang-\([0-9]*\)$/\1/p' | head -n 1)
    echo "libclang-rt${major:+-$major}-dev"
}

# The compiler may be another one, named by CC: then gcc is not asked for.
present() {
    case $1 in
    command | optcommand) command -v "$2" ;;
    header | optheader) echo "#include <$2>" | "${CC:-cc}" -E - ;;
    pkg | optional) pkg-config --exists "$2" ;;
    python) python3 -c "import $2" ;;
    pyheader) test -f "$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))')/$2" ;;
    fuzzer) echo 'int LLVMFuzzerTestOneInput(const char *, long);
                  int LLVMFuzzerTestOneInput(const char *data, long len) { return !data && len; }' |
        "$fuzz_cc" -fsanitize=fuzzer,address,undefined -x c - -o /dev/null ;;
    esac >/dev/null 2>&1
}

wanted() {
    case $group in
    --lib) [ "$1" = --lib ] ;;
    --build | --python | --package | --static) [ "$1" = --lib ] || [ "$1" = "$group" ] ;;
    --lint | --fuzz) [ "$1" = --lib ] || [ "$1" = --build ] || [ "$1" = "$group" ] ;;
    --dev) : ;;
    *) echo "setup.sh: unknown option $group" >&2; exit 2 ;;
    esac
}

missing() {
    echo "$table" | while read -r in kind name package; do
        [ -n "$in" ] && wanted "$in" || continue
        [ "$name" = gcc ] && command -v "${CC:-cc}" >/dev/null 2>&1 && continue
        present "$kind" "$name" && continue
        case $kind in opt*) [ -z "${passed_over:-}" ] || continue ;; esac
        [ "$package" = libclang-rt ] && package=$(clang_runtime)
        echo "$package"
    done | sort -u | tr '\n' ' '
}

# Newer than this script, and pkg-config still finds every library: nothing to do.
if [ -n "$(find "$stamp" -newer "$0" 2>/dev/null)" ] &&
    pkg-config --exists $(echo "$table" | awk -v group="$group" '$2 == "pkg" &&
        ($1 == "--lib" || (group != "--lib" && group != "--python" && group != "--package" && group != "--static")) { print $3 }') 2>/dev/null; then
    exit 0
fi

command -v apt-get >/dev/null 2>&1 || passed_over=1
[ "$say" = --say ] && passed_over=1
packages=$(missing)
if [ -n "$packages" ]; then
    if [ "$say" = --say ]; then
        echo "setup: missing, by their Debian names: $packages" >&2
        exit 1
    fi
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "setup: missing, by their Debian names: $packages" >&2
        echo "setup: this is no Debian system: install them by hand, then run make again" >&2
        exit 1
    fi
    as_root=
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null 2>&1; then
            echo "setup: missing: $packages" >&2
            echo "setup: run as root: apt-get install $packages" >&2
            exit 1
        fi
        as_root=sudo
    fi
    echo "setup: installing $packages"
    $as_root apt-get -q update >/dev/null || echo "setup: the package lists may be old" >&2
    # shellcheck disable=SC2086
    $as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get -q -y --no-install-recommends install $packages >/dev/null || {
            echo "setup: apt could not install $packages" >&2
            exit 1
        }
    passed_over=1
    packages=$(missing)
    if [ -n "$packages" ]; then
        echo "setup: installed, and still not usable: $packages" >&2
        exit 1
    fi
fi
mkdir -p "$root/build" && : >"$stamp"
