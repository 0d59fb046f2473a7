# strip(line): the line with comments taken out and literals emptied. Lines of one
# file must come in order; a comment may run over several.

FNR == 1 { in_comment = 0 }

function strip(s,    out, c, two, end, quoted)
{
    out = ""
    while (s != "") {
        if (in_comment) {
            end = index(s, "*/")
            if (end == 0)
                return out
            s = substr(s, end + 2)
            in_comment = 0
            out = out " "
            continue
        }
        if (!match(s, /["'\/]/))
            return out s
        out = out substr(s, 1, RSTART - 1)
        s = substr(s, RSTART)
        c = substr(s, 1, 1)
        two = substr(s, 1, 2)
        if (two == "//")
            return out
        if (two == "/*") {
            in_comment = 1
            s = substr(s, 3)
        } else if (c == "/") {
            out = out c
            s = substr(s, 2)
        } else {
            out = out c c
            s = substr(s, 2)
            while (s != "" && (quoted = substr(s, 1, 1)) != c)
                s = substr(s, quoted == "\\" ? 3 : 2)
            s = substr(s, 2)
        }
    }
    return out
}
