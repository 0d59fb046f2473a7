# --plugin: what is loaded and what is refused, with the codec that is the example of docs/EXTENDING.md.
. "$CLI_TESTS/common.inc"

plugin delta8

delta='[{"name":"bytes","configuration":{"endian":"little"}},{"name":"org.example.delta8","configuration":{"distance":2}},{"name":"zstd"}]'
echo '# the listing'
breccia codecs --list --plugin ./delta8.so | grep delta8 | tr -s ' '
breccia codecs --list --json --plugin=./delta8.so | grep -o '"name":"org.example.delta8"[^}]*'
breccia codecs --list | grep -c delta8

echo '# with the plug-in'
q init r.brc
t create r.brc /a --shape 1000 --dtype int16 --chunks 600 --codecs "$delta" --plugin ./delta8.so
awk 'BEGIN { for (i = 0; i < 1000; i++) printf "\\%03o\\%03o", i % 256, int(i / 256) }' >octal
printf "$(cat octal)" | npy a.npy '<i2' '(1000,)'
t write r.brc /a --from a.npy --plugin ./delta8.so
commit r.brc first 10
t --plugin ./delta8.so read r.brc /a '[596:604]'
t codecs r.brc /a --plugin ./delta8.so
q export r.brc / with.zarr --plugin ./delta8.so

echo '# without it'
t read r.brc /a '[:4]'
t ls r.brc
t write r.brc /a '[:4]' --value 1
t codecs r.brc /a
q branch r.brc side
q cp r.brc /a /b
t diff r.brc
commit r.brc copied 11
t log r.brc --oneline
t fsck r.brc
q rm r.brc /b
q export r.brc / without.zarr
diff -r with.zarr without.zarr && echo 'the same files'

echo '# imported without it, and again with it'
q init o.brc
q import o.brc without.zarr /o
t read o.brc /o/a '[:4]'
t read o.brc /o/a '[:4]' --plugin ./delta8.so
q export o.brc /o out.zarr --plugin ./delta8.so
diff -r without.zarr out.zarr && echo 'the same files'
q import o.brc out.zarr /again --plugin ./delta8.so
t read o.brc /again/a '[996:]' --plugin ./delta8.so

echo '# refused'
t read r.brc /a --plugin delta8.so
t read r.brc /a --plugin ./missing.so
t read r.brc /a --plugin ./a.npy
t read r.brc /a --plugin ./delta8.so --plugin ./delta8.so
t read r.brc /a --plugin
t codecs --types
echo 'int answer(void); int answer(void) { return 42; }' >other.c
$compiler -shared -fPIC other.c -o other.so
t codecs --list --plugin ./other.so

echo '# --types'
breccia codecs --list --types | awk '$1 == "float32" || $1 == "string" || $1 == "r<bits>"' | tr -s ' '
breccia codecs --list --types --json | grep -o '{"name":"\(int16\|r<bits>\)"[^}]*}'

echo '# pipelines that run the codecs, by name'
q init p.brc
q create p.brc /a --shape 8 --dtype int32
t write p.brc /a --value 3 --pipeline serial
t read p.brc /a '[:3]' --pipeline '{"name":"batched"}'
t read p.brc /a --pipeline cuda
t read p.brc /a --pipeline '{"name":"serial","configuration":{"threads":2}}'
