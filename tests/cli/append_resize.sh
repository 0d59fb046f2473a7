# append and resize.
. "$CLI_TESTS/common.inc"

q init r.brc
q create r.brc /a --shape 0,2 --dtype int32 --chunks 2,2 --fill -1
i4 1 2 3 4 5 6 | npy three.npy '<i4' '(3, 2)'
i4 7 8 9 | npy column.npy '<i4' '(3, 1)'
t append r.brc /a --axis 0 --from three.npy
t append r.brc /a --axis 0 --from three.npy --json
t read r.brc /a
t resize r.brc /a --shape 3,2
t append r.brc /a --axis 1 --from column.npy
t read r.brc /a
t append r.brc /a --axis -1 --from column.npy
t append r.brc /a --axis 0 --from column.npy
t append r.brc /a --axis 2 --from column.npy
t append r.brc /a --axis x --from column.npy
t append r.brc /a --axis 0
t append r.brc /a --from missing.npy
t append r.brc /missing --from three.npy

echo '# what is cut off is gone'
t resize r.brc /a --shape 1,1 --json
t resize r.brc /a --shape 3,3
t read r.brc /a
t resize r.brc /a --shape 3
t resize r.brc /a
t resize r.brc /a --shape 3,many
t resize r.brc /a --shape 18446744073709551615,18446744073709551615
t resize r.brc /missing --shape 1
