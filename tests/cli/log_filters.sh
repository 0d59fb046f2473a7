# log: commits by time, author and message, and what they changed; times as people say them.
. "$CLI_TESTS/common.inc"

by() { # TEXT AUTHOR DATE
    q write r.brc /a "[$n]" --value 1
    q commit r.brc -m "$1" --author "$2" --date "$3"
    n=$((n + 1))
}

n=0
q init r.brc
q create r.brc /a --shape 8 --dtype int8 --chunks 4
by 'first try' 'Ada <ada@example.org>' 2026-01-31T12:00:00Z
by 'fix: the mean' 'Ben <ben@example.org>' 2026-02-28T12:00:00Z
by 'fix: units

The unit was degC.' 'Ada <ada@example.org>' 2026-03-01T23:59:59.999999Z
by 'second try' 'Ada Two <ada2@example.org>' 2026-03-02T00:00:00Z

echo '# by time'
t log r.brc --oneline --since 2026-02-28
t log r.brc --oneline --since 2026-02-28T12:00:00.000001Z
t log r.brc --oneline --until 2026-03-01
t log r.brc --oneline --until 2026-03-01T12:00
t log r.brc --oneline --since 2026-02-28 --until 2026-03-01
t log r.brc --oneline --since @1772366400
t log r.brc --oneline --until '100 years ago'
t log r.brc --oneline --since '100 years ago' -n 1
t log r.brc --since soon
t log r.brc --until '2 fortnights ago'

echo '# by author and message'
t log r.brc --oneline --author Ada
t log r.brc --oneline --author '^Ada <'
t log r.brc --oneline --author 'ben@'
t log r.brc --oneline --grep '^fix'
t log r.brc --oneline --grep 'degC'
t log r.brc --oneline --grep '^The unit'
t log r.brc --oneline --grep 'try|mean' --author Ada
t log r.brc --oneline --grep nothing
t log r.brc --oneline --author Ada -n 1
t log r.brc /a --oneline --author Ben
t log r.brc HEAD~3..HEAD --oneline --grep try
t log r.brc --grep '('
t log r.brc --graph --oneline --author Ada
t log r.brc --json --author Ben

echo '# what each changed'
t log r.brc --stat -n 2
t log r.brc --oneline --stat -n 2
t log r.brc /a --stat -n 1
t log r.brc --stat --json -n 1
t log r.brc --stat --graph

echo '# times in words'
q init now.brc
q create now.brc /a --shape 8 --dtype int8
q commit now.brc -m old --date '1 month ago'
q write now.brc /a --value 1
q commit now.brc -m yesterday --date yesterday
q write now.brc /a --value 2
q commit now.brc -m now
t log now.brc --oneline --since '2 weeks ago'
t log now.brc --oneline --since '25 hours ago' --until '1.hour.ago'
t log now.brc --oneline --until 'last week'
t log now.brc --oneline --since '1 minute ago'
t read now.brc /a '[0]' --at 'main@{now}'
t read now.brc /a '[0]' --at 'main@{yesterday}'
t read 'now.brc@main@{0 seconds ago}' /a '[0]'
t commit now.brc -m x --date 'the day before'

echo '# times of a day'
for hour in 08:15:00 10:30:00; do
    q write now.brc /a --value 1${hour%%:*}
    q commit now.brc -m "today at $hour" --date "$(date -u +%Y-%m-%d)T$hour"
    q write now.brc /a --value -1${hour%%:*}
    q commit now.brc -m "yesterday at $hour" --date "$(date -u -d yesterday +%Y-%m-%d)T$hour"
done
t log now.brc --oneline --grep today --until 10:29
t log now.brc --oneline --grep today --since 08:16 --until 10:30:00
t log now.brc --oneline --grep 'yesterday at' --since 'yesterday 08:15' --until 'yesterday 10:29:59'
t log now.brc --oneline --grep 'yesterday at' --since '2 days ago' --until '1 day ago 08:15'
for time in '3 days hence' '25:00' 'monday 10:60' 'yesterday at' ago '3'; do
    t log now.brc --since "$time"
done
