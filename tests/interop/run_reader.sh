#!/bin/sh
# run_reader.sh COMMAND: makes repositories with the command and compares what it
# reads from them with what tests/interop/reader.py reads. setup.sh makes the Python
# environment, beside COMMAND.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$(dirname "$1")" && pwd)
breccia=$build/$(basename "$1")
python=$build/interop-venv/bin/python
plugin=$build/tests/plugins/dirs.so # backends: docs/extending/dirstore.c, tests/plugins/packs.h
sh "$here/setup.sh" "$build"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
compared=0
failed=0

# The files ours and theirs: of WHAT.
same() {
    compared=$((compared + 1))
    cmp ours theirs && return
    echo "$1: the two readers differ" >&2
    failed=$((failed + 1))
}
# Every array of a version (none: the current branch with what is uncommitted).
compare() {
    "$breccia" ls "$1" -r ${2:+--at "$2"} >nodes
    sed -e 's:\(.\)/$:\1:' nodes | LC_ALL=C sort >ours
    "$python" "$here/reader.py" "$1" ls ${2:+"$2"} | sed 's/ .*//' | LC_ALL=C sort >theirs
    same "$1 ${2:-} ls"
    grep -v '/$' nodes >arrays || :
    while read -r path; do
        "$breccia" read "$1" "$path" --format raw ${2:+--at "$2"} --plugin "$plugin" >ours
        "$python" "$here/reader.py" "$1" read "$path" ${2:+"$2"} >theirs || :
        same "$1 ${2:-} $path"
    done <arrays
}
# Attributes that make a document long enough to be compressed: FILE's node, and a number.
attributes() {
    "$breccia" attrs maps.brc "$1" $(awk -v n="$2" 'BEGIN { for (i = 0; i < 60; i++)
        printf "attribute%d=\"the-same-text-in-all-of-them-%d\" ", i, n }') -q
}
# Bytes that compress neither too well nor too badly: numbers, as text.
numbers() { awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++) printf "%08d", (i * i) % 99991 }'; }

# Every codec and data type, chunks that cover the shape in part.
"$breccia" init types.brc -q
for codec in none gzip:6 zstd:3 blosc; do
    for type in bool int8 uint16 int32 uint64 float16 float32 float64 complex64 complex128 r24; do
        case $type in
        complex128) size=16 ;; *8 | bool) size=1 ;; *16) size=2 ;; r24) size=3 ;; *32) size=4 ;; *) size=8 ;;
        esac
        path=/$(echo "$codec" | tr -d :)/$type
        "$breccia" create types.brc "$path" --shape 21,10,3 --chunks 8,4,3 --dtype $type --compress $codec -q
        case $type in
        bool) "$breccia" write types.brc "$path" '[3:19, 1:, 1]' --value true -q ;;
        *) numbers $((630 * size / 8 + 1)) | head -c $((630 * size)) | "$breccia" write types.brc "$path" --from - -q ;;
        esac
    done
done
"$breccia" create types.brc /big --shape 50,9 --dtype float32 --fill NaN -q --codecs \
    '[{"name":"bytes","configuration":{"endian":"big"}},{"name":"gzip","configuration":{"level":1}},{"name":"crc32c"}]'
"$breccia" write types.brc /big '[3:40:2, ::2]' --value -1.5 -q
"$breccia" create types.brc /point --shape '' --dtype int64 --fill -3 -q
"$breccia" create types.brc /nothing --shape 0,4 --dtype int16 -q
compare types.brc
"$breccia" commit types.brc -m types -q
compare types.brc main

# Maps of several levels, branches, what is uncommitted, codecs that change.
"$breccia" init maps.brc -q
"$breccia" create maps.brc /many/dense --shape 40000 --chunks 1 --dtype uint8 --compress none -q
numbers 5000 | "$breccia" write maps.brc /many/dense --from - -q
"$breccia" create maps.brc /many/grid --shape 60,70,8 --chunks 2,3,1 --dtype int16 --compress zstd -q
numbers 8400 | "$breccia" write maps.brc /many/grid --from - -q
"$breccia" commit maps.brc -m one -q
"$breccia" tag maps.brc v1 -q
"$breccia" switch maps.brc -c other -q
"$breccia" codecs maps.brc /many/grid '[{"name":"bytes","configuration":{"endian":"big"}},{"name":"gzip","configuration":{"level":9}}]' -q
"$breccia" write maps.brc /many/grid '[5:50, ::4]' --value 7 -q
"$breccia" resize maps.brc /many/dense --shape 30001 -q
"$breccia" cp maps.brc /many/grid /copy -q
attributes /copy 1
attributes /many 2
"$breccia" commit maps.brc -m two -q
"$breccia" mv maps.brc /many/dense /dense -q
"$breccia" write maps.brc /dense '[77:20000:3]' --value 0 -q
"$breccia" write maps.brc /copy '[1]' --value 0 -q
"$breccia" rm maps.brc /many/grid -q
attributes /copy 3 # uncommitted
# Chunks outside of the file: by their names, and in packs. The last one this reader does not know.
for backend in dir pack here; do
    "$breccia" create maps.brc "/$backend" --shape 900 --chunks 30 --dtype int16 -q --plugin "$plugin" \
        --backend "{\"name\":\"org.example.$backend\",\"configuration\":{\"folder\":\"$backend.chunks\"}}"
done
for backend in dir pack; do
    numbers 225 | tr 0-9 "$(echo "$backend" | cut -c 1-3)0-6" | "$breccia" write maps.brc "/$backend" --from - -q --plugin "$plugin"
done
# Keys that are not nodes or chunks yet, and documents that were deleted; chunks beyond an array's grid.
BRECCIA_LIB=$build/libbreccia.so "$python" -B "$here/loose_keys.py" maps.brc >ours
"$python" "$here/reader.py" maps.brc keys >theirs
same 'maps.brc keys'
"$breccia" status maps.brc --json >status.json
"$python" -c 'import json; print(*json.load(open("status.json"))["keys"], sep="\n")' >ours
awk '$NF != "hidden" { sub(/ [^ ]*$/, ""); print }' theirs >keys && mv keys theirs
same 'maps.brc status'
for rev in '' v1 main other; do compare maps.brc "$rev"; done
[ "$("$python" "$here/reader.py" maps.brc unknown)" = '' ] || { echo "it should know all backends" >&2; exit 1; }
cp maps.brc strange.brc
"$breccia" write strange.brc /here '[60:90]' --value 5 -q --plugin "$plugin"
"$python" "$here/reader.py" strange.brc unknown | sed 's/[0-9a-f]\{32\}/ID/g;s/-[0-9a-f]\{16\}/-SUM/' >theirs
echo 'chunk ID lies in the backend "org.example.here", which this reader does not know: ID-SUM, 60 bytes' >ours
same 'strange.brc unknown'
"$python" "$here/reader_rows.py" maps.brc

# Versions that are stored as differences of each other, several deep, of chunks of every size and codec, in a pack too.
"$breccia" init deltas.brc -q
for codec in none gzip:6 zstd:3 blosc; do
    path=/$(echo "$codec" | tr -d :)
    "$breccia" create deltas.brc "$path" --shape 30000 --chunks 7000 --dtype int32 --compress "$codec" -q
    numbers 15000 | "$breccia" write deltas.brc "$path" --from - -q
done
"$breccia" create deltas.brc /pack --shape 30000 --chunks 7000 --dtype int32 -q --plugin "$plugin" \
    --backend '{"name":"org.example.pack","configuration":{"folder":"deltas.chunks"}}'
numbers 15000 | "$breccia" write deltas.brc /pack --from - -q --plugin "$plugin"
for version in 1 2 3 4 5 6; do
    for path in none gzip6 zstd3 blosc pack; do
        "$breccia" write deltas.brc "/$path" "[$version:30000:997]" --value "$version" -q --plugin "$plugin"
    done
    "$breccia" commit deltas.brc -m "$version" -q
    "$breccia" tag deltas.brc "v$version" -q
    [ "$version" != 4 ] || "$breccia" repack deltas.brc --delta --depth 2 -q --plugin "$plugin"
done
"$breccia" repack deltas.brc --delta -q --plugin "$plugin"
"$breccia" info deltas.brc | grep -q 'differences' || { echo "nothing became a difference" >&2; exit 1; }
for rev in v1 v2 v3 v4 v5 v6; do compare deltas.brc $rev; done

echo "$compared compared, $failed differ"
[ "$failed" -eq 0 ]
