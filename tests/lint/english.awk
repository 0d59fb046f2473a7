# Sentences that a pattern can refuse, in comments and messages: a comment that begins with a pronoun says
# nothing to a reader who has not read what comes before it, "is no X" is "is not a valid X", and "not this,
# but that" says first what is not so.

function fault(text) { printf "%s:%d: %s\n", FILENAME, FNR, text }

FNR == 1 { opens = there = 0 }

{
    text = $0
    if (text ~ /\/\*[ *]*(It|They|Those|These|What|Which|Whoever|Who|Such)[ ,:]/ ||
        (opens && text ~ /^ *\* (It|They|Those|These|What|Which|Whoever|Who|Such)[ ,:]/))
        fault("a comment begins with a pronoun: name its subject")
    opens = text ~ /^ *\/\*$/
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
