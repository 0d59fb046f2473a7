# Help topics, and that what they say is so.
. "$CLI_TESTS/common.inc"

t help slices
t help versions
breccia help codecs | sed -n '/^breccia help codecs/,$p'
breccia help codecs | head -n 1
t help slices --man
for topic in slices versions codecs; do
    breccia help $topic | awk -v topic=$topic 'length > 80 { print topic ": " length " columns: " $0 }'
done

echo '# slices'
q init r.brc
q create r.brc /a --shape 12,2 --dtype int8
for n in 0 1 2 3 4 5 6 7 8 9 10 11; do q write r.brc /a "[$n, :]" --value $n; done
for slice in '[5]' '[-1]' '[0:10, 0]' '[::2, 0]' '[..., 0]' '5, 1' '[8:99, 0]' '[99]'; do
    t read r.brc /a "$slice"
done

echo '# versions'
commit r.brc one 10
q tag r.brc v1.0
q write r.brc /a --value 0
commit r.brc two 11
q branch r.brc side v1.0
for rev in v1.0 HEAD~1 side HEAD; do
    breccia read r.brc /a '[5, 0]' --at "$rev"
    breccia read "r.brc@$rev" /a '[5, 0]'
done
breccia log r.brc v1.0..main --oneline | wc -l

echo '# codecs'
for compress in zstd zstd:9 blosc gzip:5 none; do
    q create r.brc "/$compress" --shape 4 --dtype int16 --compress $compress
done
q codecs r.brc /none '["zstd"]'
q create r.brc /both --shape 4 --dtype int16 --codecs '[{"name": "bytes", "configuration": {"endian": "little"}},
    {"name": "zstd", "configuration": {"level": 3}}]'
t codecs r.brc /none
q config r.brc codecs '["zstd"]'
q create r.brc /text --shape 4 --dtype string
t codecs r.brc /text
t codecs r.brc /both
