#!/bin/sh
# wheel_sources.sh FOLDER PYTHON: sources of what a wheel brings newer than Debian 12 has it, fetched with npm and
# pip, of known digests: FOLDER/sqlite/sqlite3.c, and FOLDER/zstd, which is the folder lib of zstd. docs/decisions/0039
# says why. Nothing is fetched twice. Exit 77: they could not be had.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
folder=$1
python=$2

# Packages that carry the sources of SQLite (3.53.2, in one file) and of zstd (1.5.7).
sqlite=better-sqlite3@12.11.1
sqlite_digest=ebf0ed75a7a59dbcb3b24bbd014ef49d9f15bc328e4adcbf516f2a8fadfa2835
zstd=1.5.7.2
zstd_digest=6d8684c69009be49e1b18ec251a5eb0d7e24f93624990a8a124a1da66a92fc8a

cannot() {
    echo "wheel: $1; SYSTEM=1 makes a wheel of what this system has" >&2
    exit 77
}

# unpack ARCHIVE DIGEST PATH NAME: the files of a folder in the archive, as FOLDER/NAME.
unpack() {
    echo "$2  $1" | sha256sum --check --quiet - >/dev/null 2>&1 || cannot "$1 is not what was expected"
    mkdir "$folder/new/$4"
    tar -xzf "$1" -C "$folder/new/$4" --strip-components="$(echo "$3" | tr -cd / | wc -c)" "${3%/}"
    mv "$folder/new/$4" "$folder/$4"
}

if cmp -s "$here/wheel_sources.sh" "$folder/made-from"; then
    exit 0
fi
command -v npm >/dev/null || cannot 'there is no npm'
rm -rf "$folder"
mkdir -p "$folder/new"
(cd "$folder/new" && npm pack --silent "$sqlite") >/dev/null || cannot 'npm could not fetch SQLite'
unpack "$folder"/new/better-sqlite3-*.tgz "$sqlite_digest" package/deps/sqlite3/ sqlite
echo "zstd==$zstd --hash=sha256:$zstd_digest" >"$folder/new/wanted" # pip runs what is in it
"$python" -m pip -q --disable-pip-version-check download --no-deps --no-binary zstd -d "$folder/new" \
    -r "$folder/new/wanted" || cannot 'pip could not fetch zstd'
unpack "$folder/new/zstd-$zstd.tar.gz" "$zstd_digest" "zstd-$zstd/zstd/lib/" zstd
rm -rf "$folder/new"
cp "$here/wheel_sources.sh" "$folder/made-from"
