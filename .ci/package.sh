#!/bin/sh
# Makes Debian packages of what `make install` installs, in build/deb:
#
#   libbreccia0     the shared library
#   libbreccia-dev  headers, the static library, breccia.pc
#   breccia         the command, its converters, manual pages and completion
#
# What they depend on is what their programs are linked with. `--check` also asks apt whether they
# can be installed here, and runs what is in them.
set -eu

cd "$(dirname "$0")/.."
sh .ci/setup.sh --package
root=$(pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=$root/build/deb
version=$(awk '$2 ~ /^BRC_VERSION_(MAJOR|MINOR|PATCH)$/ { v = v (v == "" ? "" : ".") $3 } END { print v }' src/breccia_types.h)
architecture=$(dpkg --print-architecture)
fail() {
    echo "package: $*" >&2
    exit 1
}

${MAKE:-make} --no-print-directory install DESTDIR="$work/all" PREFIX=/usr >"$work/log" 2>&1 ||
    { cat "$work/log" >&2; fail 'make install failed'; }
rm -rf "$out"
mkdir -p "$out" "$work/debian"

# move PACKAGE PATH...: takes files from what was installed.
move() {
    package=$1
    shift
    (cd "$work/all" && find $* ! -type d) | while read -r file; do
        mkdir -p "$work/$package/$(dirname "$file")"
        mv "$work/all/$file" "$work/$package/$file"
    done
}
move libbreccia0 usr/lib/libbreccia.so.*
move libbreccia-dev usr/lib usr/include
move breccia usr
for package in libbreccia0 libbreccia-dev breccia; do
    install -D -m 644 LICENSE "$work/$package/usr/share/doc/$package/copyright"
done
find "$work/breccia/usr/share/man" -name '*.1' -exec gzip -9n {} +
strip --strip-unneeded "$work"/libbreccia0/usr/lib/libbreccia.so.*.* "$work"/breccia/usr/bin/breccia \
    "$work"/breccia/usr/libexec/breccia/*
multiarch=usr/lib/$(${CC:-cc} -print-multiarch)
for package in libbreccia0 libbreccia-dev; do
    mkdir -p "$work/$package/$multiarch"
    find "$work/$package/usr/lib" -mindepth 1 -maxdepth 1 ! -name "${multiarch##*/}" -exec mv {} "$work/$package/$multiarch" \;
done
sed -i "s|^libdir=.*|libdir=/$multiarch|" "$work/libbreccia-dev/$multiarch/pkgconfig/breccia.pc"

# The libraries that files are linked with, as packages.
needs() {
    printf 'Source: breccia\n\nPackage: breccia\nArchitecture: any\n' >"$work/debian/control"
    (cd "$work" && dpkg-shlibdeps -O "$@" 2>"$work/log") | sed 's/^shlibs:Depends=//' ||
        { cat "$work/log" >&2; fail "what $* needs is not known"; }
}

# pack PACKAGE SECTION DEPENDS SUMMARY [RECOMMENDS]
pack() {
    mkdir -p "$work/$1/DEBIAN"
    cat >"$work/$1/DEBIAN/control" <<C
Package: $1
Version: $version
Architecture: $architecture
Section: $2
Priority: optional
Maintainer: the breccia authors <breccia@localhost>
Installed-Size: $(du -sk "$work/$1/usr" | cut -f 1)
Depends: $3${5:+
Recommends: $5}
Description: $4
 breccia keeps versioned Zarr arrays, content-addressed, in one SQLite file.
C
    find "$work/$1" -type d -exec chmod 755 {} +
    dpkg-deb --build --root-owner-group "$work/$1" "$out/${1}_${version}_$architecture.deb" >/dev/null
}
printf 'activate-noawait ldconfig\n' >"$work/triggers"
# Loaded when a chunk lies in a bucket, or is encoded by zfp.
late='libcurl4 | libcurl4t64 | libcurl3-gnutls, libzfp1'
install -D -m 644 "$work/triggers" "$work/libbreccia0/DEBIAN/triggers"
pack libbreccia0 libs "$(needs "$work"/libbreccia0/"$multiarch"/libbreccia.so.*.*)" 'versioned Zarr arrays in one file: the library' \
    "$late"
pack libbreccia-dev libdevel "libbreccia0 (= $version)" 'versioned Zarr arrays in one file: to build programs'
pack breccia science "$(needs "$work"/breccia/usr/bin/breccia "$work"/breccia/usr/libexec/breccia/*)" \
    'versioned Zarr arrays in one file: the command' "$late"
ls "$out"

[ "${1:-}" = --check ] || exit 0
apt-get -q --simulate install "$out"/*.deb >"$work/log" 2>&1 || { cat "$work/log"; fail 'apt would not install them'; }
for package in "$out"/*.deb; do
    dpkg-deb -x "$package" "$work/system"
done
cd "$work"
system=$work/system/usr
"$system/bin/breccia" init a.brc --quiet
"$system/bin/breccia" create a.brc /a --shape 4 --dtype int16 --quiet
"$system/bin/breccia" export a.brc a.h5 --quiet || fail 'the converters do not work'
"$system/bin/breccia" commit a.brc -m a --quiet
timeout 20 "$system/bin/breccia" serve a.brc --watch-stdin </dev/null | grep -q '^http://127.0.0.1:' || fail 'the server does not work'
printf '#include <breccia.h>\n#include <stdio.h>\nint main(void) { puts(brc_version()); return 0; }\n' >user.c
"${CC:-cc}" -I"$system/include" user.c -o user -L"$work/system/$multiarch" -lbreccia
[ "$(LD_LIBRARY_PATH=$work/system/$multiarch ./user)" = "$version" ] || fail 'the library does not work'
[ -f "$system/share/man/man1/breccia-log.1.gz" ] || fail 'there is no manual page'
echo 'package check: passed'
