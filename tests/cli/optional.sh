# zarrs.optional: elements that may be missing.
. "$CLI_TESTS/common.inc"

maybe() { echo "{\"name\":\"zarrs.optional\",\"configuration\":{\"name\":\"$1\",\"configuration\":{}}}"; }

q init r.brc
t create r.brc /n --shape 2,3 --dtype "$(maybe int16)"
t codecs r.brc /n
t read r.brc /n --json
t write r.brc /n '[0]' --value 5
t write r.brc /n '[1, 1]' --value '[-1]'
t read r.brc /n
t read r.brc /n --json
t read r.brc /n --format csv
breccia read r.brc /n '[1, 1]' --format raw | od -An -tx1
t write r.brc /n '[0]' --value red
commit r.brc first 10
t write r.brc /n '[0, 2]' --value null
t diff r.brc --elements
t resize r.brc /n --shape 1,2
t resize r.brc /n --shape 2,3
t read r.brc /n

t create r.brc /s --shape 4 --chunks 2 --shards 4 --dtype "$(maybe string)" --fill '["?"]'
t write r.brc /s '[1]' --value null
t write r.brc /s '[2]' --value ''
t read r.brc /s --json
t info r.brc /s --json | sed 's/.*"data_type"://; s/,"chunk_grid".*"fill_value"/ "fill_value"/; s/"configuration":{"chunk_shape.*//'

q export r.brc / out.zarr
q init again.brc
q import again.brc out.zarr /x
t read again.brc /x/s --json
t read again.brc /x/n --json

echo '# what cannot be said elsewhere'
t export r.brc /n n.npy
t export r.brc /n n2.zarr --format zarr2
t create r.brc /bad --shape 2 --dtype "$(maybe int16)" --codecs '[{"name":"bytes","configuration":{"endian":"little"}}]'
t create r.brc /bad --shape 2 --dtype "$(maybe nonesuch)"
t create r.brc /bad --shape 2 --dtype "$(maybe int16)" --fill red
t fsck r.brc
