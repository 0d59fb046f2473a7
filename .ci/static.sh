#!/bin/sh
# Makes build/static/breccia: the command without converters, linked with nothing that is not in it.
#
# Debian has no static cJSON, libzip and snappy, and its static xxHash lacks the part that looks at the
# processor. Their sources come from the distribution, as it has them for this release, and only
# what is needed is compiled, into build/static/lib; nothing outside build/ changes. Ends with 77
# where the sources cannot be fetched. build/static/LICENCES has the terms of all that is linked in.
# The linker warns of dlopen in SQLite, which has it to load extensions: breccia loads none.
#
# `--check` also runs the command in a folder that has nothing else in it, as root of that folder.
set -eu

cd "$(dirname "$0")/.."
sh .ci/setup.sh --static
root=$(pwd)
out=$root/build/static
lib=$out/lib
source=$out/source
limit=6000000
cc=${CC:-cc}
flags='-O2 -w -ffunction-sections -fdata-sections -D_GNU_SOURCE'
mkdir -p "$lib" "$source"
fail() {
    echo "static: $*" >&2
    exit 1
}

# ---- what is missing --------------------------------------------------------

# has NAME FUNCTION: there is a static library of that name with that function.
has() {
    for archive in "$lib/lib$1.a" "$($cc -print-file-name="lib$1.a")"; do
        ! nm "$archive" 2>/dev/null | grep -q " T $2\$" || return 0
    done
    return 1
}

# The sources that this release of the distribution has, with what is known of its mirrors and proxies.
make_lists() {
    [ ! -f "$source/apt.conf" ] || return 0
    command -v apt-get >/dev/null 2>&1 || return 1
    mkdir -p "$source/lists" "$source/state/lists/partial" "$source/cache/archives/partial"
    find /etc/apt/sources.list /etc/apt/sources.list.d -name '*.list' 2>/dev/null |
        xargs -r sed -n 's/^deb /deb-src /p' >"$source/lists/all.list"
    find /etc/apt/sources.list.d -name '*.sources' 2>/dev/null |
        xargs -r -I @ sh -c 'sed "s/^Types:.*/Types: deb-src/" "$1"; echo' - @ >"$source/lists/all.sources"
    {
        apt-config dump | grep '^Acquire::'
        printf '%s "%s";\n' Dir::Etc::Main /dev/null Dir::Etc::Parts /dev/null \
            Dir::Etc::SourceList /dev/null Dir::Etc::SourceParts "$source/lists" \
            Dir::State::Lists "$source/state/lists" Dir::Cache "$source/cache"
        [ "$(id -u)" -ne 0 ] || echo 'APT::Sandbox::User "root";'
    } >"$source/apt.conf.new"
    # A source of somebody else may fail: what counts is whether the packages are found.
    APT_CONFIG=$source/apt.conf.new apt-get -q update >"$source/log" 2>&1 || :
    mv "$source/apt.conf.new" "$source/apt.conf"
}

# fetch PACKAGE: its source, with the distribution's changes, in $source/PACKAGE.
fetch() {
    [ ! -d "$source/$1" ] || return 0
    if ! make_lists || ! (cd "$source" &&
        APT_CONFIG=$source/apt.conf apt-get -q source --download-only "$1" >log 2>&1); then
        rm -f "$source/apt.conf"
        cat "$source/log" >&2 2>/dev/null || :
        echo "static: the source of $1 cannot be fetched" >&2
        exit 77
    fi
    rm -rf "$source/new"
    dpkg-source --no-check -x "$source/$1"_*.dsc "$source/new" >"$source/log" 2>&1 ||
        { cat "$source/log" >&2; fail "the source of $1 cannot be unpacked"; }
    mv "$source/new" "$source/$1"
    rm -f "$source/$1"_*
}

# pack NAME COMPILER... -- FILE...: compiles the files into the library.
pack() {
    name=$1
    shift
    objects=$out/objects/$name
    rm -rf "$objects"
    mkdir -p "$objects"
    compile=
    while [ "$1" != -- ]; do
        compile="$compile $1"
        shift
    done
    shift
    for file; do
        # shellcheck disable=SC2086
        $compile $flags -c "$file" -o "$objects/$(basename "$file").o" || fail "$file does not compile"
    done
    rm -f "$lib/lib$name.a"
    ar rcs "$lib/lib$name.a" "$objects"/*.o
}

make_cjson() {
    fetch cjson
    pack cjson "$cc" -- "$source/cjson/cJSON.c"
}

make_xxhash() {
    fetch xxhash
    case $(uname -m) in
    x86_64) pack xxhash "$cc" -O3 -- "$source/xxhash/xxhash.c" "$source/xxhash/xxh_x86dispatch.c" ;;
    *) pack xxhash "$cc" -O3 -- "$source/xxhash/xxhash.c" ;;
    esac
}

# Without what encrypts: breccia reads no encrypted entries.
make_zip() {
    fetch libzip
    {
        echo '#include <zipconf.h>'
        for name in FICLONERANGE FILENO FSEEKO FTELLO LIBBZ2 LIBLZMA LOCALTIME_R MKSTEMP SNPRINTF \
            STDBOOL_H STRCASECMP STRDUP STRINGS_H STRTOLL STRTOULL STRUCT_TM_TM_ZONE UNISTD_H DIRENT_H; do
            echo "#define HAVE_$name"
        done
        echo '#define SIZEOF_OFF_T __SIZEOF_LONG__'
        echo '#define SIZEOF_SIZE_T __SIZEOF_SIZE_T__'
        echo '#define PACKAGE "libzip"'
        echo '#define VERSION LIBZIP_VERSION'
    } >"$source/libzip/lib/config.h"
    # Makes the table as libzip's own build does: "#define ZIP_ER_SEEK 4 /* S Seek error */" becomes a text and a kind.
    awk '/^#define ZIP_ER_[A-Z0-9_]+ [0-9]+ +\/\* [NSZ] / {
            text = $0; sub(/.*\/\* [NSZ] /, "", text); sub(/ *\*\/.*/, "", text)
            kind = $5 == "N" ? "NONE" : $5 == "S" ? "SYS" : "ZLIB"
            texts = texts "    \"" text "\",\n"; kinds = kinds "    ZIP_ET_" kind ",\n"; n++
        }
        END {
            print "#include \"zipint.h\"\nconst char *const _zip_err_str[] = {\n" texts "};"
            print "const int _zip_nerr_str = " n ";\nconst int _zip_err_type[] = {\n" kinds "};"
        }' "$source/libzip/lib/zip.h" >"$source/libzip/lib/zip_err_str.c"
    pack zip "$cc" -DHAVE_CONFIG_H -I"$source/libzip/lib" -- $(find "$source/libzip/lib" -name '*.c' |
        grep -vE 'win32|uwp|_crypto_|winzip_aes' | sort)
}

make_snappy() {
    fetch snappy
    version=$(sed -n 's/^project(Snappy VERSION \([0-9.]*\).*/\1/p' "$source/snappy/CMakeLists.txt")
    sed -e 's/\${HAVE_SYS_UIO_H_01}/1/' -e "s/\${PROJECT_VERSION_MAJOR}/$(echo "$version" | cut -d . -f 1)/" \
        -e "s/\${PROJECT_VERSION_MINOR}/$(echo "$version" | cut -d . -f 2)/" \
        -e "s/\${PROJECT_VERSION_PATCH}/$(echo "$version" | cut -d . -f 3)/" \
        "$source/snappy/snappy-stubs-public.h.in" >"$source/snappy/snappy-stubs-public.h"
    pack snappy "${CXX:-g++}" -std=c++11 -fno-exceptions -fno-rtti -DNDEBUG -DHAVE_BUILTIN_CTZ=1 \
        -DHAVE_BUILTIN_EXPECT=1 -DHAVE_ATTRIBUTE_ALWAYS_INLINE=1 -DHAVE_SYS_UIO_H=1 -DHAVE_UNISTD_H=1 \
        -DSNAPPY_HAVE_SSSE3=0 -DSNAPPY_HAVE_BMI2=0 -I"$source/snappy" -- \
        "$source/snappy/snappy.cc" "$source/snappy/snappy-c.cc" \
        "$source/snappy/snappy-sinksource.cc" "$source/snappy/snappy-stubs-internal.cc"
}

case $(uname -m) in x86_64) hash=XXH3_64bits_withSeed_dispatch ;; *) hash=XXH3_64bits_withSeed ;; esac
has cjson cJSON_ParseWithLength || make_cjson
has zip zip_fopen_index || make_zip
has snappy snappy_uncompress || make_snappy
has xxhash "$hash" || make_xxhash
rm -rf "$source/lists" "$source/state" "$source/cache" "$source/apt.conf"
while read -r name function; do
    has "$name" "$function" || fail "there is no static library lib$name.a with $function"
done <<'L'
sqlite3 sqlite3_open_v2
zstd ZSTD_compressCCtx
z deflate
bz2 BZ2_bzCompress
lz4 LZ4_compress_default
lzma lzma_code
blosc blosc_compress_ctx
archive archive_read_new
L

# ---- the command ------------------------------------------------------------

${MAKE:-make} --no-print-directory MODE=static build/static/breccia
if readelf -lW "$out/breccia" | grep -q INTERP; then fail 'the command needs a loader: it is not static'; fi

# The terms of what is linked in, as the distribution's packages have them.
{
    cat LICENSE
    for package in cjson libzip snappy xxhash; do
        [ ! -d "$source/$package" ] || { printf '\n==== %s ====\n\n' "$package"; cat "$source/$package/debian/copyright"; }
    done
    for package in libsqlite3-dev libzstd-dev zlib1g-dev libbz2-dev liblz4-dev liblzma-dev libblosc-dev libarchive-dev \
        libc6-dev "libstdc++-$($cc -dumpversion)-dev"; do
        [ ! -f "/usr/share/doc/$package/copyright" ] ||
            { printf '\n==== %s ====\n\n' "$package"; cat "/usr/share/doc/$package/copyright"; }
    done
} >"$out/LICENCES"
size=$(wc -c <"$out/breccia")
echo "build/static/breccia: $size bytes"
[ "$size" -lt "$limit" ] || fail "the command has $size bytes, and must have less than $limit"

# ---- the check --------------------------------------------------------------

[ "${1:-}" = --check ] || exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
jail=$work/jail
mkdir -p "$jail/v3.zarr/a/c/0"
cp "$out/breccia" "$jail"
chroot=$(command -v chroot || echo /usr/sbin/chroot)
if [ "$(id -u)" -eq 0 ]; then enter=; else enter='unshare -r'; fi
breccia() {
    env -i $enter "$chroot" "$jail" /breccia "$@"
}
# says COMMAND...: what is read from standard input is what it prints.
says() {
    breccia "$@" >"$work/got" 2>&1 || { cat "$work/got" >&2; fail "breccia $* failed"; }
    cat >"$work/want"
    diff "$work/want" "$work/got" >&2 || fail "breccia $* printed something else (>) than it must (<)"
}

header="{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }"
printf '\223NUMPY\001\000\166\000%-117s\n\007\010\011' "$header" >"$jail/b.npy"
echo '{"zarr_format":3,"node_type":"group"}' >"$jail/v3.zarr/zarr.json"
cat >"$jail/v3.zarr/a/zarr.json" <<'J'
{"zarr_format":3,"node_type":"array","shape":[2,2],"data_type":"uint8","fill_value":0,
"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2,2]}},
"chunk_key_encoding":{"name":"default"},"codecs":[{"name":"bytes"}]}
J
printf '\001\002\003\004' >"$jail/v3.zarr/a/c/0/0"

breccia init r.brc --quiet
breccia create r.brc /n --shape 1000 --dtype int32 --chunks 100 --quiet
breccia write r.brc /n '[10:20]' --value 5 --quiet
breccia import r.brc v3.zarr /z --quiet
breccia import r.brc b.npy /b --quiet
breccia commit r.brc -m first --author 'A <a@b>' --quiet
says read r.brc /n '[8:12]' <<'W'
[0 0 5 5]
W
says read r.brc /z/a <<'W'
[[1 2]
 [3 4]]
W
says read r.brc /b <<'W'
[7 8 9]
W
# The author is the user of the folder's own list.
mkdir "$jail/etc"
printf '%s:/:/bin/sh\n' bob:x:7:7: ada:x:0:0: >"$jail/etc/passwd"
breccia write r.brc /n '[10]' --value 6 --quiet
says diff r.brc --values 1 <<'W'
  changed  /n  chunks: 1 changed; 1 element differs in [10], by at most 1
      [10] 5 → 6
W
breccia commit r.brc -m second --quiet
breccia log r.brc | grep -q '^Author: *ada <ada@' || fail 'the author is not the user'
# Each library that encodes, there and back; in a zip archive and a tar stream too.
while read -r name codecs; do
    breccia create r.brc "/c/$name" --shape 1000 --dtype uint8 --chunks 100 --codecs "$codecs" --quiet ||
        fail "there is no $name"
    breccia write r.brc "/c/$name" '[:]' --value 77 --quiet
    says read r.brc "/c/$name" '[998:]' <<'W'
[77 77]
W
done <<'L'
zstd ["bytes","zstd"]
gzip ["bytes","gzip"]
lz4 ["bytes","numcodecs.lz4"]
bz2 ["bytes","numcodecs.bz2"]
lzma ["bytes","numcodecs.lzma"]
blosc ["bytes","blosc"]
snappy ["bytes",{"name":"blosc","configuration":{"cname":"snappy","clevel":5,"shuffle":"shuffle","typesize":1,"blocksize":0}}]
L
breccia commit r.brc -m third --quiet
breccia export r.brc /c c.zip --quiet
breccia import r.brc c.zip /from_zip --quiet
breccia export r.brc - --quiet >"$work/stream"
breccia import r.brc - /from_tar --quiet <"$work/stream"
for copy in from_zip from_tar/c; do
    says read r.brc "/$copy/snappy" '[998:]' <<'W'
[77 77]
W
done
breccia reset r.brc --hard --quiet
if breccia read r.brc /n --plugin ./breccia >"$work/got" 2>&1; then fail 'a plug-in was loaded'; fi
grep -q 'this breccia is linked statically and takes no plug-ins' "$work/got" ||
    { cat "$work/got" >&2; fail 'what is said of a plug-in is not the reason'; }
if breccia export r.brc /n n.h5 >"$work/got" 2>&1; then fail 'HDF5 was written without a converter'; fi
breccia gc r.brc --quiet
breccia fsck r.brc >"$work/got" || { cat "$work/got" >&2; fail 'fsck found faults'; }
cat "$work/got"
echo 'static check: passed'
