# Sizes: no file over 1,200 lines, no line over 100 columns (140 in headers, whose
# declarations stay on one line), no tabs, no blanks at the end of a line. And no
# two files of one name: docs and error messages name a file without its folder.

function fault(line, text) { printf "%s:%d: %s\n", file, line, text }

function ends()
{
    if (file != "" && last > 1200)
        fault(last, last " lines, 1200 are allowed: which idea can move out?")
}

FNR == 1 {
    ends()
    file = FILENAME
    base = file
    sub(/.*\//, "", base)
    if (file !~ /^tests\//) {
        if (base in first)
            fault(1, "the name is taken by " first[base])
        else
            first[base] = file
    }
    limit = file ~ /\.h$/ ? 140 : 100
}

{
    last = FNR
    columns = $0
    gsub(/[\200-\277]/, "", columns) # the rest of a UTF-8 character
    if (length(columns) > limit)
        fault(FNR, length(columns) " columns, " limit " are allowed")
    if ($0 ~ /\t/)
        fault(FNR, "a tab")
    if ($0 ~ /[ \t\r]$/)
        fault(FNR, "blanks at the end of the line")
}

END { ends() }
