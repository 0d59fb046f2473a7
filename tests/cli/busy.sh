# A second writer: status 5 once --wait is over; readers go on.
. "$CLI_TESTS/common.inc"

command -v sqlite3 >/dev/null 2>&1 || skip 'there is no sqlite3 to hold the lock with'
q init r.brc
q create r.brc /a --shape 4 --dtype int32
commit r.brc one 10

mkfifo lock
sqlite3 r.brc >held 2>&1 <lock &
holder=$!
exec 3>lock
echo 'BEGIN IMMEDIATE; SELECT 1;' >&3
tries=0
while [ ! -s held ] && [ $tries -lt 100 ]; do
    sleep 0.05
    tries=$((tries + 1))
done

t write r.brc /a --value 1 --wait 0
t write r.brc /a --value 1 --wait 0.1
t branch r.brc x --wait 0
t read r.brc /a --wait 0

echo 'ROLLBACK;' >&3
exec 3>&-
wait $holder
t write r.brc /a --value 1 --wait 0
t read r.brc /a
