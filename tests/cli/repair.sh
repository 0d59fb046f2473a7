# fsck --repair: damaged bytes get good copies, or go.
. "$CLI_TESTS/common.inc"

# spoil FILE TEXT: one byte of it is another one.
spoil() {
    at=$(LC_ALL=C grep -abo "$2" "$1" | head -n 1 | cut -d : -f 1)
    [ -n "$at" ] || { echo "$2 was NOT FOUND in the file"; exit 0; }
    printf '#' | dd of="$1" bs=1 seek=$((at + 5)) conv=notrunc 2>/dev/null
}
no_count() { sed 's/^[0-9]* objects/N objects/; s/"objects_checked":[0-9]*/"objects_checked":N/'; }

q init r.brc
q create r.brc /a --shape 64 --dtype uint8 --chunks 32 --compress none
awk 'BEGIN { for (i = 0; i < 32; i++) printf "Q"; for (i = 0; i < 32; i++) printf "Z" }' |
    breccia write r.brc /a --from - --quiet
commit r.brc one 10
q create r.brc /b --shape 32 --dtype uint8 --chunks 32 --compress none
awk 'BEGIN { for (i = 0; i < 32; i++) printf "W" }' | breccia write r.brc /b --from - --quiet
commit r.brc two 11
cp r.brc good.brc
q export r.brc copy.zarr
t fsck r.brc --from good.brc
t fsck r.brc --repair | no_count

spoil r.brc QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ
spoil r.brc WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW
cp r.brc bad.brc
echo '# good copies'
t fsck r.brc --repair --from good.brc | no_count
t read r.brc /a '[0:4]' --json
t fsck r.brc | no_count
echo '# and of a Zarr directory'
cp bad.brc r.brc
t fsck r.brc --repair --from copy.zarr | no_count
t read r.brc /b '[0:4]' --json
t fsck r.brc | no_count
echo '# nobody can be asked'
cp bad.brc r.brc
t fsck r.brc --repair </dev/null | no_count
t fsck r.brc --repair --yes | no_count
t fsck r.brc --json | no_count
t read r.brc /a '[32:36]' --json
t read r.brc /b '[0:4]' --json
echo '# the same content comes back, and is there in each version'
awk 'BEGIN { for (i = 0; i < 32; i++) printf "W" }' | breccia write r.brc /b --from - --quiet
t read r.brc /b '[0:4]' --json --at HEAD
t fsck r.brc --repair --from none.brc
t fsck r.brc --repair --from good.brc | no_count
