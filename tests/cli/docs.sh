# docs/CLI.md has every command's page, line by line.
. "$CLI_TESTS/common.inc"

page=$CLI_TESTS/../../docs/CLI.md
for command in $(breccia help | awk '/^  [a-z-]+ / && !/breccia/ { print $1 }'); do
    breccia help "$command" | sed '/^Options of every command:/,/^$/d' |
        while read -r line; do
            [ -z "$line" ] || grep -qF -- "$line" "$page" || echo "$command: not in docs/CLI.md: $line"
        done
done
breccia help | sed -n '/^Options of every command:/,/^$/p' | sed 1d | while read -r line; do
    [ -z "$line" ] || grep -qF -- "$line" "$page" || echo "not in docs/CLI.md: $line"
done
echo 'every line was looked for'
