# Holds banned.txt (-v table=FILE).

BEGIN {
    while ((getline line < table) > 0) {
        if (line ~ /^(#|$)/)
            continue
        n = split(line, word, " ")
        if (word[1] == "allow") {
            allowed[word[2], word[3]] = 1
            continue
        }
        instead = ""
        for (i = 4; i <= n; i++)
            instead = instead " " word[i]
        ban[word[2], word[3]] = substr(instead, 2)
    }
    close(table)
}

function fault(text) { printf "%s:%d: %s\n", FILENAME, FNR, text }

# Is NAME, as it stands in the table, banned in this file?
function is_banned(name)
{
    if (("everywhere", name) in ban)
        return ban["everywhere", name]
    if (FILENAME !~ /^(src|codecs)\//)
        return ""
    match(FILENAME, /^[a-z]+\/([a-z]+\/)?/)
    if ((substr(FILENAME, 1, RLENGTH), name) in allowed)
        return ""
    return (("library", name) in ban) ? ban["library", name] : ""
}

{
    rest = strip($0)
    while (match(rest, /[A-Za-z_][A-Za-z0-9_]*/)) {
        is_member = RSTART > 1 && index(".>", substr(rest, RSTART - 1, 1)) > 0
        name = substr(rest, RSTART, RLENGTH)
        rest = substr(rest, RSTART + RLENGTH)
        if (is_member)
            continue
        instead = is_banned(name)
        if (instead == "" && rest ~ /^[ \t]*\(/)
            instead = is_banned(name "(")
        if (instead != "")
            fault(name " is banned here; instead: " instead)
    }
}
