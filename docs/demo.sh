#!/bin/sh
# demo.sh COMMAND: a walk through breccia. Every command is printed before it runs,
# so what this prints is the tutorial. The files stay in a folder demo beside
# COMMAND. Without DATA the data comes from the program of
# docs/demo/reaction_diffusion.c, which `make demo` puts there; with DATA=PATH it is
# imported from there: a Zarr v3 directory, .npy, .npz or IDX.
set -eu

command=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
work=$(dirname "$command")/demo
case ${DATA:-} in
'' | /*) data=${DATA:-} ;;
*) data=$PWD/$DATA ;;
esac
if [ -n "$data" ] && [ ! -e "$data" ]; then
    echo "demo: DATA=$DATA: there is no such file or folder" >&2
    exit 1
fi
PATH=$(dirname "$command"):$work:$PATH
export PATH
: "${BRECCIA_AUTHOR:=demo <demo@example.org>}"
export BRECCIA_AUTHOR
mkdir -p "$work"
cd "$work"
rm -rf demo.brc demo.zarr

say() {
    echo
    printf '# %s\n' "$@"
}
# Prints a command and runs it.
run() {
    printf '\n$ %s\n' "$1"
    eval "$1"
}
# A word as the shell reads it.
quoted() {
    case $1 in
    '' | *[!A-Za-z0-9_./,:-]*) printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")" ;;
    *) printf '%s' "$1" ;;
    esac
}

# ---- the data ------------------------------------------------------------------

if [ -z "$data" ]; then
    say 'A C program (docs/demo/reaction_diffusion.c) makes the repository, appends frame' \
        'after frame to two arrays and commits every 25 frames.'
    run 'reaction_diffusion demo.brc 60'
    say 'Asked for more, it goes on from the last frame that the file holds.'
    run 'reaction_diffusion demo.brc 100'
else
    say 'A repository is one file.'
    run 'breccia init demo.brc'
    run "breccia import demo.brc $(quoted "$data")"
    run 'breccia status demo.brc'
    run "breccia commit demo.brc -m 'as it came'"
fi
say 'What it holds: data type, shape, chunks, codecs, stored bytes.'
run 'breccia ls demo.brc -rl'

# ---- the array to be changed -----------------------------------------------------

# A member of the array's `info --json`, which is in $info: the first of that name.
info_word() { printf '%s' "$info" | grep -o "\"$1\":[^,}]*" | sed -n '1s/^[^:]*://p' | tr -d '"'; }
info_list() { printf '%s' "$info" | grep -o "\"$1\":\[[0-9,]*\]" | sed -n '1s/^[^[]*\[\(.*\)\]/\1/p'; }

# The first element of an array with this shape: [0, 0, 0].
first_element() { echo "$1" | awk -F, '{ s = "0"; for (i = 2; i <= NF; i++) s = s ", 0"; print "[" s "]" }'; }

# The last twentieth of the first axis, of all others the second quarter.
small_slice() {
    echo "$1" | awk -F, '{
        n = int($1 / 20); s = "-" (n > 0 ? n : 1) ":"
        for (i = 2; i <= NF; i++) {
            from = int($i / 4); to = int($i / 2)
            s = s ", " from ":" (to > from ? to : from + 1)
        }
        print "[" s "]"
    }'
}

# The corner to look at: the end of the first axis, a few elements of the others.
corner_slice() {
    echo "$1" | awk -F, '{
        s = NF == 1 ? "-8:" : "-1"
        for (i = 2; i <= NF; i++)
            s = s ", " (i < NF - 1 ? int($i * 3 / 8) : int($i * 3 / 8) ":" int($i * 3 / 8) + 4)
        print "[" s "]"
    }'
}

# Three values of a type: one of the first two is new wherever it is written, the
# third brings neither back.
three_values() {
    case $1 in
    bool) echo 'true false' ;;
    complex*) echo '[0,0] [1,-1] [77,7]' ;;
    r[0-9]*) echo "${1#r}" | awk '{
        for (i = 0; i < $1 / 8; i++) { a = a ",0"; b = b ",255"; c = c ",77" }
        print "[" substr(a, 2) "] [" substr(b, 2) "] [" substr(c, 2) "]" }' ;;
    *) echo '0 1 77' ;;
    esac
}

# Codecs that suit the type and are not what the array has: text $1, data type $2.
other_codecs() {
    bytes='{"name":"bytes","configuration":{"endian":"little"}}'
    case $2 in
    bool | int8 | uint8 | r[0-9]*) bytes='{"name":"bytes"}' ;;
    esac
    case $1 in
    *'"zstd"'*'"level":9'*) packer='{"name":"gzip","configuration":{"level":6}}' ;;
    *) packer='{"name":"zstd","configuration":{"level":9}}' ;;
    esac
    echo "[$bytes,$packer]"
}

# The first array that has elements and that this build can read.
path=
breccia ls demo.brc -r | grep -v '/$' >arrays.txt || :
while [ -z "$data" ] || read -r candidate; do
    [ -n "$data" ] || candidate=/gray_scott/v
    info=$(breccia info demo.brc "$candidate" --json)
    shape=$(info_list shape)
    if [ -n "$shape" ] &&
        breccia read demo.brc "$candidate" "$(first_element "$shape")" >/dev/null 2>&1; then
        path=$candidate
        break
    fi
    [ -n "$data" ] || break
done <arrays.txt
rm -f arrays.txt
if [ -z "$path" ]; then
    say 'No array here has a dimension, elements, and codecs that this build knows: the walk ends.' \
        "The files are in $work"
    exit 0
fi
type=$(info_word data_type)
word=$(quoted "$path")
part=$(quoted "$(small_slice "$shape")")
corner=$(quoted "$(corner_slice "$shape")")
codecs=$(other_codecs "$(breccia codecs demo.brc "$path")" "$type")
read -r value other third <<V
$(three_values "$type")
V

# ---- a branch --------------------------------------------------------------------

say "A corner of $path as it is now."
run "breccia read demo.brc $word $corner"
say 'A branch costs one row. What is written next goes there.'
run 'breccia switch demo.brc -c trial'
run "breccia write demo.brc $word $part --value $(quoted "$value")"
if breccia diff demo.brc --exit-code >/dev/null; then
    say 'That is what was there: nothing is changed yet.'
    value=$other
    run "breccia write demo.brc $word $part --value $(quoted "$value")"
fi
say 'New chunks of this branch get other codecs; the chunks that are there stay as they are.'
run "breccia codecs demo.brc $word '$codecs'"
run "breccia write demo.brc $word $corner --value $(quoted "${third:-$value}")"
say 'All this is uncommitted, and in the file: it outlasts the process.'
run 'breccia status demo.brc'
run "breccia commit demo.brc -m 'another end, other codecs'"
run "breccia read demo.brc $word $corner"

# ---- looking back ----------------------------------------------------------------

say 'History, and what differs between the branches: only what differs is visited.'
run 'breccia log demo.brc --graph --oneline'
run 'breccia diff demo.brc main trial --elements'
say 'Chunks that are equal are in the file once, whatever branches have them.'
run 'breccia info demo.brc'
run 'breccia ls demo.brc -rl'
say 'Back to main, where the values are as they were. A tag keeps a name for them.'
run 'breccia switch demo.brc main'
run "breccia read demo.brc $word $corner"
say 'What was done on the branch comes to main with a merge, down to the element.'
run 'breccia merge demo.brc trial --no-ff'
run 'breccia log demo.brc --graph --oneline'
run "breccia tag demo.brc v1 -m 'first release'"

# ---- keeping and leaving ---------------------------------------------------------

say 'Every object is hashed, every chunk decoded, every commit followed.'
run 'breccia fsck demo.brc'
say 'Out again: any version as a Zarr v3 directory that other programs read.'
run 'breccia export demo.brc demo.zarr --at v1'
run 'find demo.zarr -name zarr.json | LC_ALL=C sort | head -n 4'
run 'find demo.zarr -type f ! -name zarr.json | LC_ALL=C sort | head -n 4'
run "du -sh demo.brc demo.zarr | awk '{ print \$1, \$2 }'"

say "The files are in $work" \
    "Go on from here: breccia log $work/demo.brc; breccia help"
