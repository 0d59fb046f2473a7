# Chunks are stored elsewhere, encoded otherwise and closer together; what lies where, and what is missing.
. "$CLI_TESTS/common.inc"

# Names of packs and paths differ.
p() {
    echo "\$ breccia $*"
    breccia "$@" 2>&1 | sed 's,[0-9a-f]\{32\}\.pack,PACK,g; s,/[^ ]*/r.brc,DIR/r.brc,g'
}

little='{"name":"bytes","configuration":{"endian":"little"}}'
q init r.brc
q create r.brc /a --shape 64 --dtype int32 --chunks 8 --codecs "[$little]"
for n in 1 2 3; do
    q write r.brc /a "[$n:60]" --value $n
    commit r.brc "number $n" 1$n
done
q write r.brc /a '[0]' --value 9
breccia log r.brc --json >ids

echo '# what lies where'
t backend r.brc
t backend r.brc --json
t repack r.brc --backend pack --dry-run
ls
t repack r.brc --backend pack
p backend r.brc
p backend r.brc --check --json
t repack r.brc --backend pack
t info r.brc
breccia info r.brc --json | grep -o '"outside[^,]*'
breccia du r.brc | tail -n 2
t repack r.brc --backend inline --older-than '2000-01-01'
breccia read r.brc /a --format raw >there

echo '# without the packs'
mv r.brc.packs away
p backend r.brc
p backend r.brc --check --json
p status r.brc
p status r.brc --json
p repack r.brc --backend inline
mv away r.brc.packs
t status r.brc

echo '# one file again'
t repack r.brc --backend inline
t gc r.brc --keep 0
rm -r r.brc.packs
t backend r.brc --check
t fsck r.brc
breccia read r.brc /a --format raw | cmp - there && echo 'the same values'
breccia log r.brc --json | cmp - ids && echo 'the same commits'

echo '# other codecs'
t repack r.brc --codecs '["zstd"]' --array /a --dry-run
t repack r.brc --codecs '["zstd"]' --array /a --json
t repack r.brc --codecs '["zstd"]' --array /a
t read r.brc /a '[0:4]'

echo '# differences'
q init d.brc
q create d.brc /a --shape 8192 --dtype int32 --chunks 4096 --codecs "[$little]"
for n in 1 2 3; do
    q write d.brc /a "[0:8192]" --value 7
    q write d.brc /a "[$n:8000:97]" --value $n
    commit d.brc "number $n" 1$n
done
breccia read d.brc /a --at main~2 --format raw >there
t repack d.brc --delta --dry-run
t repack d.brc --delta --depth 1
t repack d.brc --delta --json
t repack d.brc --delta
t info d.brc | grep deltas
breccia info d.brc --json | grep -o '"delta[^,]*'
breccia read d.brc /a --at main~2 --format raw | cmp - there && echo 'the same values'
t fsck d.brc
t repack d.brc --delta --depth 0 --array /a
t repack d.brc --depth 2
t repack d.brc --delta --depth 65
t repack d.brc --delta --backend pack

echo '# full rows'
t repack r.brc --dry-run
t repack r.brc
t repack r.brc
t fsck r.brc

echo '# refused'
t repack r.brc --array /a
t repack r.brc --older-than yesterday
breccia repack r.brc --backend none 2>&1 | sed 's/known: [^)]*/known: SOME/'
t repack r.brc --backend '{"name":"pack","configuration":{"pack_bytes":1}}'
t repack r.brc --codecs '["none"]'
t repack r.brc --codecs '[zstd'
t repack r.brc --codecs '["zstd"]' --array /none
t repack r.brc --codecs '["zstd"]' --older-than whenever
t backend r.brc --at main
t backend r.brc /a --check
chmod a-w r.brc
[ -w r.brc ] || t repack r.brc --backend pack
