# The commands of README.md print what it says they print.
. "$CLI_TESTS/common.inc"

page=$CLI_TESTS/../../README.md
# The reader's file: a year of temperatures, each 16 days a degree warmer.
q init seed.brc
q create seed.brc /t2m --shape 365,90,180 --dtype float32
for first in $(seq 0 16 364); do
    last=$((first + 16 < 365 ? first + 16 : 365))
    q write seed.brc /t2m "[$first:$last]" --value $((250 + first / 16))
done
q export seed.brc /t2m t2m.npy

block "$page" sh >first.sh
echo "$(wc -l <first.sh) commands"
sh -e first.sh >first.out || echo "they end with $?"

# Its last command is the transcript's first.
transcript "$page"
[ "$(sed -n 2p printed)" = "$(tail -n 1 first.out)" ] || cat first.out
