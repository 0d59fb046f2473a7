# A rewrite that is killed leaves a draft of which nothing can be used; it says so, and is dropped.
. "$CLI_TESTS/common.inc"

# Times and process ids differ.
d() {
    echo "$ breccia drafts $*"
    breccia drafts "$@" 2>&1 |
        sed 's/[0-9]\{4\}-[0-9-]*T[0-9:.]*Z/TIME/; s/process [0-9]*/process N/; s/"pid":[0-9]*/"pid":N/'
}

q init r.brc
q create r.brc /a --shape 64,1048576 --dtype uint8 --chunks 1,262144 --compress none
head -c 67108864 /dev/urandom >bytes
q write r.brc /a --from - <bytes
commit r.brc one 10
breccia codecs r.brc /a '[{"name":"sharding_indexed","configuration":{"chunk_shape":[1,65536],
    "codecs":["bytes",{"name":"zstd","configuration":{"level":22,"checksum":false}}],
    "index_codecs":[{"name":"bytes","configuration":{"endian":"little"}}]}}]' --rewrite >log 2>&1 &
pid=$!
until breccia drafts r.brc 2>&1 | grep -q rewrite; do
    kill -0 $pid 2>/dev/null || { echo 'it came to its end'; cat log; break; }
done
kill -KILL $pid
wait $pid 2>/dev/null
d r.brc
d r.brc --json
t drafts r.brc --adopt 5
t status r.brc
t fsck r.brc --quiet
t drafts r.brc --drop 5
t drafts r.brc
breccia read r.brc /a --format raw 2>&1 | cmp - bytes && echo 'the array is as it was'
