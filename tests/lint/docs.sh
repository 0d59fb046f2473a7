#!/bin/sh
# Paths between backticks in README.md and docs/ exist. `src/base/*.h` needs one
# match; a name with <...> or NAME in it stands for many and is not looked up.
for page in README.md docs/*.md docs/*/*.md; do
    [ -f "$page" ] || continue
    awk '{
        rest = $0
        while (match(rest, /`(src|schema|codecs|cli|tests|docs|\.ci)\/[^` ]*/)) {
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
