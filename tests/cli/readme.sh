# The commands of README.md print what it says they print.
. "$CLI_TESTS/common.inc"

page=$CLI_TESTS/../../README.md
# Blocks of one kind, with an empty line in between.
block() { sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/{s/^\`\`\`$1\$//;/^\`\`\`\$/d;p}" "$page" | sed 1d; }
same_ids() { sed 's/\b[0-9a-f]\{8\}\b/IDENTITY/g'; }

# The reader's file: a year of temperatures, each 16 days a degree warmer.
q init seed.brc
q create seed.brc /t2m --shape 365,90,180 --dtype float32
for first in $(seq 0 16 364); do
    last=$((first + 16 < 365 ? first + 16 : 365))
    q write seed.brc /t2m "[$first:$last]" --value $((250 + first / 16))
done
q export seed.brc /t2m t2m.npy

block sh >first.sh
echo "$(wc -l <first.sh) commands"
sh -e first.sh >first.out || echo "they end with $?"

# Its last command is the transcript's first.
block console | sed -n 's/^\$ //p' | while read -r line; do
    printf '\n$ %s\n' "$line"
    eval "$line"
done | sed 1d | same_ids >printed
block console | same_ids >promised
diff promised printed && echo "$(grep -c '^\$' printed) commands print what README.md promises"
[ "$(sed -n 2p printed)" = "$(tail -n 1 first.out)" ] || cat first.out
