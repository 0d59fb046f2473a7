# The commands of docs/COMPARISON.md print what it says they print, and our files are as long as it says.
. "$CLI_TESTS/common.inc"

page=$CLI_TESTS/../../docs/COMPARISON.md

# The elements of tile0.npy: int16, 1024 x 1024, a slope with noise.
tile() {
    awk 'BEGIN {
        x = 42
        for (i = 0; i < 1024; i++)
            for (j = 0; j < 1024; j++) {
                x = (x * 16807) % 2147483647
                v = 2800 + int((i + j) / 8) + int(x / 65536) % 8
                printf "%c%c", v % 256, int(v / 256)
            }
    }'
}

# cell ROW COLUMN: a number of the page, without its commas.
cell() { grep "^| $1 |" "$page" | cut -d'|' -f"$2" | tr -d ' ,'; }

# near NAME PROMISED FILE: the length of FILE differs a little from one zstd or SQLite to another.
near() {
    awk -v name="$1" -v promised="$2" -v got="$(wc -c <"$3")" 'BEGIN {
        away = got - promised
        if (promised > 0 && away * away <= promised * promised / 400)
            print name " is as long as promised"
        else
            print name " has " got " bytes, and the page promises " promised
    }'
}

tile | npy tile0.npy '<i2' '(1024, 1024)'
q init sea.brc
q create sea.brc /lat --shape 4 --dtype float32 --dimension-names lat --attrs '{"units": "degrees_north"}'
for row in 0 1 2 3; do q write sea.brc /lat "[$row]" --value $((50 + row)); done
q create sea.brc /sst --shape 2,4,6 --dtype float32 --chunks 1,2,3 --fill NaN \
    --dimension-names time,lat,lon --attrs '{"units": "degC"}'
q write sea.brc /sst --value 15
transcript "$page"

echo '# the sizes'
for back in 10 9 8 7 6 5 4 3 2 1 0; do
    rm -f tile.npy
    q export tile.brc /tile tile.npy --at "HEAD~$back"
    q import files.brc tile.npy /tile --replace --chunks 128,128 --compress zstd:3 -m "version $back"
done
breccia info files.brc | grep -E '^(commits|chunks)'
q gc files.brc
near 'tile.brc' "$(cell 'breccia, after `gc`' 3)" tile.brc
near 'files.brc' "$(cell 'breccia, after `gc`' 4)" files.brc
near 'thin.brc' "$(cell 'breccia | `expire`, `gc --keep 0`' 5)" thin.brc
