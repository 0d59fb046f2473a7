#!/bin/sh
# Paths between backticks in README.md and docs/ exist. `src/base/*.h` needs one
# match; a name with <...> or NAME in it stands for many and is not looked up.
# And each file of the code has one row in the tables of docs/ARCHITECTURE.md.
for page in README.md docs/*.md docs/*/*.md python/README.md; do
    [ -f "$page" ] || continue
    awk '{
        rest = $0
        while (match(rest, /`(src|schema|codecs|cli|tests|docs|python|\.ci)\/[^` ]*/)) {
            print FNR, substr(rest, RSTART + 1, RLENGTH - 1)
            rest = substr(rest, RSTART + RLENGTH)
        }
    }' "$page" | while read -r line path; do
        case $path in *'<'* | *NAME*) continue ;; esac
        path=${path%%[:#]*}
        for match in $path; do # a pattern unfolds
            [ -e "$match" ] || echo "$page:$line: there is no $path"
            break
        done
    done
done

map=docs/ARCHITECTURE.md
[ -f $map ] || exit 0
rows=$(mktemp) || exit 1
trap 'rm -f "$rows"' EXIT
sed -n 's/^| \(`[^|]*`\) |.*/\1/p' $map | tr ',' '\n' | tr -d '` ' | sort >"$rows"
{ find src codecs cli schema -type f -name '*.[chs]*'
    find python -type f \( -name '*.py' -o -name '*.sh' -o -name '*.toml' \) 2>/dev/null |
        grep -v '/build/\|/csource/\|/_made/'; } | sort | comm -13 "$rows" - |
    sed 's/$/:1: has no row in docs\/ARCHITECTURE.md/'
uniq -d "$rows" | while read -r path; do
    echo "$map:$(grep -nF "\`$path\`" $map | tail -n 1 | cut -d: -f1): $path has another row"
done
