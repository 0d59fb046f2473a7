# Strings into chunks that are cut otherwise.
. "$CLI_TESTS/common.inc"

# words WORD...: packed elements.
words() {
    for word in "$@"; do
        i4 ${#word}
        printf %s "$word"
    done
}

q init r.brc
q create r.brc /s --shape 5,3 --chunks 2,2 --dtype string --fill none
words a bb ccc '' dddd none none e ff ggg h i none jjj k |
    breccia write r.brc /s --from - --quiet
t read r.brc /s
breccia read r.brc /s --format raw >want

# same NODE: it has the elements of /s.
same() {
    breccia read r.brc "$1" --format raw | cmp - want && echo "$1: the same elements"
    breccia info r.brc "$1" --json | sed 's/.*"chunk_shape":\(\[[^]]*\]\).*"chunks_stored":\([0-9]*\).*/\1 \2 stored/'
}

echo '# a Zarr directory'
q export r.brc /s s.zarr
for chunks in 1,1 5,3 3,2 2,3 7,1; do
    t import r.brc s.zarr /zarr/$chunks --chunks $chunks
    same /zarr/$chunks
done

echo '# HDF5'
q create r.brc /h/s --shape 5,3 --chunks 2,2 --dtype string --fill none
breccia write r.brc /h/s --from - --quiet <want
q export r.brc /h s.h5
for chunks in 1,1 5,3 3,2; do
    t import r.brc s.h5 /hdf5/$chunks --chunks $chunks
    same /hdf5/$chunks/s
done

echo '# stored anew'
shards='[{"name":"sharding_indexed","configuration":{"chunk_shape":[1,2],"codecs":[{"name":"vlen-utf8"}],"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}}]}}]'
t codecs r.brc /s "$shards" --rewrite
breccia read r.brc /s --format raw | cmp - want && echo 'the same elements'
t fsck r.brc
