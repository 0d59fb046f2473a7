# Pictures as characters, lines in braille, and what has no picture.
. "$CLI_TESTS/common.inc"

q init r.brc
i4 0 1 2 3 4 5 6 7 8 9 10 11 | npy four.npy '<i4' '(3,4)'
q import r.brc four.npy /i
q create r.brc /f --shape 4,6 --dtype float32 --chunks 2,4 --fill NaN
q write r.brc /f '[1:3]' --value 1
q write r.brc /f '[1, 2]' --value 3
q write r.brc /f '[2, 1]' --value -2

echo '# read --image: the limits are those of what is shown'
t read r.brc /i --image
t read r.brc /i --image --limits 4:7
t read r.brc /i --image --limits 4:
t read r.brc /i --image --limits :
t read r.brc /i '[1]' --image
t read r.brc /i '[1:2, ::-1]' --image
t read r.brc /i '[1:2, ::2]' --image
t read r.brc /f --image
t read r.brc /f '[:, 1:4]' --image --cmap diverging
t read r.brc /f '[0:1]' --image
t read r.brc /f '[1:2, 3:]' --image

echo '# as little as is shown is read, and means are of floating-point numbers alone'
q create r.brc /wide --shape 2,1000 --dtype float64 --chunks 1,100
q write r.brc /wide '[0, 500:]' --value 4
q write r.brc /wide '[1, ::2]' --value 4
COLUMNS=10 t read r.brc /wide --image
COLUMNS=10 t read r.brc /wide '[:, ::500]' --image
q create r.brc /labels --shape 2,1000 --dtype uint16 --chunks 1,100
q write r.brc /labels '[0, 500:]' --value 4
q write r.brc /labels '[1, ::2]' --value 4
COLUMNS=10 t read r.brc /labels --image
q create r.brc /huge --shape 4611686018427387904,4611686018427387904 --dtype float32 --chunks 1000,1000
q write r.brc /huge '[4611686018427387903, 4611686018427387903]' --value 1
COLUMNS=8 LINES=8 t read r.brc /huge --image
COLUMNS=8 LINES=8 t read r.brc /huge '[::-1, 0:4]' --image

echo '# other types'
q create r.brc /b --shape 2,3 --dtype bool
q write r.brc /b '[0]' --value true
t read r.brc /b --image
t read r.brc /b '[0:1]' --image
q create r.brc /d --shape 1,3 --dtype 'datetime64[D]'
q write r.brc /d '[0, 0]' --value 2026-11-20
q write r.brc /d '[0, 1]' --value 2026-11-29
t read r.brc /d --image
q create r.brc /h --shape 1,4 --dtype float16
q write r.brc /h '[0, 1]' --value 0.5
q write r.brc /h '[0, 2]' --value Infinity
q write r.brc /h '[0, 3]' --value -Infinity
t read r.brc /h --image --limits 0:1
q create r.brc /e --shape 2,2 --dtype float8_e4m3
q write r.brc /e '[0]' --value 2
t read r.brc /e --image
q create r.brc /o --shape 1,3 --dtype '{"name":"zarrs.optional","configuration":{"name":"int16","configuration":{}}}' --fill null
q write r.brc /o '[0, 1]' --value '[7]'
q write r.brc /o '[0, 2]' --value '[9]'
t read r.brc /o --image
u1 0 0 0 255 255 255 255 0 0 0 255 0 | npy rgb.npy '|u1' '(2,2,3)'
q import r.brc rgb.npy /rgb
t read r.brc /rgb --image
t read r.brc /rgb --image --cmap grey
breccia read r.brc /i --image --cmap gray >gray
breccia read r.brc /i --image --cmap grey | cmp - gray

echo '# colours: 256, unless the terminal has more; --draw'
t read r.brc /i '[0:2, 0:2]' --image --color always | cat -v
COLORTERM=truecolor t read r.brc /f '[0:2, 1:3]' --image --color always | cat -v
COLORTERM=truecolor t read r.brc /i '[0:2, 0:2]' --image --draw blocks --cmap grey | cat -v
t read r.brc /i --image --draw text --color always

echo '# read --plot'
q create r.brc /line --shape 9 --dtype float32
for i in 0 1 2 3 4 5 7 8; do q write r.brc /line "[$i]" --value $((i * i)); done
q write r.brc /line '[6]' --value NaN
COLUMNS=40 LINES=12 t read r.brc /line --plot
COLUMNS=40 LINES=12 t read r.brc /line '[2:8:2]' --plot --limits :100
COLUMNS=40 LINES=10 t read r.brc /line --plot --draw text
COLUMNS=40 LINES=10 t read r.brc /wide '[1]' --plot --draw text
COLUMNS=30 LINES=8 t read r.brc /huge '[4611686018427387903]' --plot
COLUMNS=40 LINES=10 t read r.brc /d '[0]' --plot --draw text
COLUMNS=40 LINES=10 t read r.brc /f '[0]' --plot

echo '# what cannot be drawn'
q create r.brc /c --shape 2,2 --dtype complex64
q create r.brc /s --shape 2,2 --dtype string
q create r.brc /u --shape 2,2 --dtype U3
q create r.brc /none --shape 0,5 --dtype int8
q create r.brc /deep --shape 2,3,4,5 --dtype int8
q create r.brc /one --shape '' --dtype int8
for path in /c /s /u /none /deep /one /line /nonesuch; do t read r.brc "$path" --image; done
for path in /c /i /deep /none /one; do t read r.brc "$path" --plot; done
t read r.brc /c -o c.png
t read r.brc /huge -o huge.png
t read r.brc /i --image --plot
t read r.brc /i --image --json
t read r.brc /i --image --format csv
t read r.brc /i --image -o i.npy
t read r.brc /i '[0]' --plot -o i.png
t read r.brc /i --cmap grey
t read r.brc /i --image --cmap red
t read r.brc /i --image --draw ascii
t read r.brc /i '[0]' --plot --cmap grey
for limits in '' 1 1:x 2:1 1:1 nan:1 'a:b' '0:1:2' ' 0:1' 1e999:; do t read r.brc /i --image --limits "$limits"; done
ls *.png 2>/dev/null

echo '# diff --image'
commit r.brc first 10
q write r.brc /i '[0, 1]' --value 9
q write r.brc /f '[1, 5]' --value -1
q write r.brc /f '[3, 0]' --value 2
q create r.brc /new --shape 2,2 --dtype int8
q resize r.brc /d --shape 2,3
q rm r.brc /b
t diff r.brc --image -- /i
COLUMNS=60 t diff r.brc --image -- /f
t diff r.brc --image -- /f '[1]'
t diff r.brc --image --limits 0:1 -- /f '[1:3, 1:4]'
commit r.brc second 11
t diff r.brc HEAD~1 HEAD --image -- /new
t diff r.brc HEAD~1 HEAD --image -- /b
t diff r.brc HEAD~1 HEAD --image -- /d
t diff r.brc HEAD~1..HEAD --image -- /wide '[:, ::250]'
t diff r.brc HEAD~1 HEAD --image -- /rgb
q group r.brc /group
q mv r.brc /i /group/i
commit r.brc third 12
q mv r.brc /group /moved
q write r.brc /moved/i '[2, 3]' --value 0
t diff r.brc HEAD~1 HEAD --image -- /group/i
t diff r.brc --image -- /moved/i
t diff r.brc HEAD HEAD~1 --image -- /i '[0:1]'
q rm r.brc /f
q create r.brc /f --shape 4,6,3 --dtype uint8
t diff r.brc HEAD --image -- /f
t diff r.brc HEAD~2 HEAD~1 --image -o d.png -- /d
t diff r.brc HEAD~2 HEAD~1 --image -o d.png -- /new
t diff r.brc HEAD~1 HEAD --image -- /nonesuch
t diff r.brc HEAD~1 HEAD --image -- /group
t diff r.brc HEAD~1 HEAD --image -- /c
t diff r.brc --image
t diff r.brc --image -- /i '[0]' 1
t diff r.brc --image --elements -- /i
t diff r.brc --image --json -- /i
t diff r.brc --cmap grey -- /i
t diff r.brc -- /i '[0]'
