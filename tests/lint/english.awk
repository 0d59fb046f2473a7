# Sentences that a pattern can refuse, in comments and messages: a comment that begins with a pronoun says
# nothing to a reader who has not read what comes before it, "is no X" is "is not a valid X", and "not this,
# but that" says first what is not so. A comment does not begin with a clause ("Whether it is there"), with
# "Of", "As" or "That", or with a name and a colon: it says what a function returns. Comments of scripts
# begin with # or """; in tests/mutants/*.txt each `why` is one.

function fault(text) { printf "%s:%d: %s\n", FILENAME, FNR, text }

# The words of a comment that begins on this line, or "".
function first_words(line)
{
    if (FILENAME ~ /\.[ch]$/) {
        if (opens && line ~ /^ *\* /)
            return substr(line, index(line, "* ") + 2)
        return match(line, /\/\*[*]* */) ? substr(line, RSTART + RLENGTH) : ""
    }
    if (FILENAME ~ /\.txt$/ && match(line, /^ *why +/))
        return toupper(substr(line, RLENGTH + 1, 1)) substr(line, RLENGTH + 2)
    if (match(line, /^ *"""/) || (!goes_on && match(line, /^ *# /)))
        return substr(line, RLENGTH + 1)
    return ""
}

FNR == 1 { opens = goes_on = there = 0 }

{
    text = $0
    first = first_words(text)
    if (first ~ /^(It|They|Those|These|What|Which|Whoever|Who|Such)[ ,:]/)
        fault("a comment begins with a pronoun: name its subject")
    if (text !~ /[;,{})] *\/\*/ && first ~ /^(Whether|As|Of|That|Likewise|Else|None|Said|1 and|1 if|\*[a-z_]+( [01])?:)( |$)/)
        fault("a comment lacks its verb: \"Returns whether\", \"Sets *out to\"")
    opens = text ~ /^ *\/\*$/
    goes_on = text ~ /^ *#/
    if (there)
        sub(/(is|are) no /, "", text)
    there = text ~ /[Tt]here$/
    gsub(/[Tt]here (is|are) no /, "", text)
    gsub(/(is|are) no (longer|more) ?/, "", text)
    if (text ~ /(^|[^A-Za-z])(is|are) no [a-z]/)
        fault("\"is no\": say \"is not a\", or what is wrong")
    if (text ~ /(^|[^A-Za-z])not [a-z ]+, but /)
        fault("\"not ... but\": say what is so")
}
