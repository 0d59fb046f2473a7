# codecs: printing, changing, listing.
. "$CLI_TESTS/common.inc"

q init r.brc
q create r.brc /a --shape 8 --dtype int16 --chunks 4 --compress none
q write r.brc /a '[:4]' --value 3
commit r.brc first 10
t codecs r.brc /a
t codecs r.brc /a --json
zstd='[{"name":"bytes","configuration":{"endian":"little"}},{"name":"zstd","configuration":{"level":3}}]'
t codecs r.brc /a "$zstd"
t codecs r.brc /a
t codecs r.brc /a --at HEAD
q write r.brc /a '[4:]' --value 4
t read r.brc /a
t diff r.brc
commit r.brc 'other codecs' 11
echo '[{"name":"bytes","configuration":{"endian":"big"}}]' >big.json
t codecs r.brc /a @big.json --rewrite --json
t read r.brc /a
t diff r.brc --exit-code
t diff r.brc --json

echo '# refused'
t codecs r.brc /a '[{"name":"nonesuch"}]'
t codecs r.brc /a '[{"name":"zstd","configuration":{"level":3}}]'
t codecs r.brc /a '{not json'
t codecs r.brc /a @missing.json
t codecs r.brc /a --rewrite
t codecs r.brc /a "$zstd" --at HEAD
t codecs r.brc /
t codecs r.brc /missing
t codecs r.brc
t codecs

echo '# --list'
breccia codecs --list | awk '{ print $1, $2 }' | sort -u | grep -v zfp # not in every build
breccia codecs r.brc --list --json | tr '{' '\n' | grep -c '"name":"\(bytes\|zstd\|gzip\|blosc\|crc32c\|transpose\)","kind":"[a-z]*->[a-z]*","implementation":"[^"]*","rank":[-0-9]*,"usable":true,"chosen":true,"pinned":false,"why":"the highest rank","device":0,"owner":"breccia"}'

echo '# --nvcomp'
breccia codecs --list --nvcomp ./libnvcomp.so.5 | grep 'nvcomp' | sort | sed -n '1p;$p'
breccia codecs --list --json --nvcomp ./libnvcomp.so.5 | tr '{' '\n' | grep -c '"implementation":"nvcomp".*"usable":false,"chosen":false.*"why":"there is no ./libnvcomp.so.5.*"device":2'
t codecs --list --nvcomp ./libnvcomp.so.5 --implementation zstd=nvcomp
t codecs r.brc /a --nvcomp ./libnvcomp.so.5

echo '# --implementation'
pinned() { breccia codecs --list "$@" | grep '^crc32c ' | grep -c "$what"; }
what='slicing-by-8 *a lower rank$\|sse4.2 *cannot run here$' pinned
what='slicing-by-8 *used, pinned$' pinned --implementation crc32c=slicing-by-8
breccia codecs --list --json --implementation crc32c=slicing-by-8 | tr '{' '\n' | grep -c '"slicing-by-8".*"chosen":true,"pinned":true,"why":"pinned"'
t create r.brc /sum --shape 8 --dtype int16 --codecs '[{"name":"bytes","configuration":{"endian":"little"}},"crc32c"]' --implementation crc32c=slicing-by-8
t write r.brc /sum --value 7 --implementation crc32c=slicing-by-8
t read r.brc /sum
t read r.brc /sum --implementation crc32c=none
t read r.brc /sum --implementation nonesuch=none
t read r.brc /sum --implementation crc32c

echo '# compressors alone: the rest of the list stays, also around inner chunks'
q create r.brc /plain --shape 8 --dtype int32 --codecs '[{"name":"transpose","configuration":{"order":[0]}},{"name":"bytes","configuration":{"endian":"big"}},{"name":"gzip","configuration":{"level":1}},"crc32c"]'
q create r.brc /shards --shape 64 --dtype int32 --chunks 8 --shards 32 --compress zstd:1
q create r.brc /texts --shape 4 --dtype string
for path in /plain /shards /texts; do
    t codecs r.brc $path --compress blosc:lz4:5:bitshuffle
    t codecs r.brc $path
    t codecs r.brc $path '["zstd"]' --quiet
    t codecs r.brc $path
    t codecs r.brc $path --compress none --quiet
    t codecs r.brc $path
    t codecs r.brc $path '[]' --quiet
done
t write r.brc /shards --value 5
t codecs r.brc /shards --compress zstd:9 --rewrite
t read r.brc /shards '[:3]'
t codecs r.brc /plain --compress lzma
t codecs r.brc /plain '["zstd"]' --compress zstd
t codecs r.brc /plain '["nosuch"]'
t codecs r.brc /plain --compress zstd --at HEAD
