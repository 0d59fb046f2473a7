# attrs.
. "$CLI_TESTS/common.inc"

q init r.brc
q create r.brc /a --shape 2 --dtype int8 --attrs '{"units": "K"}'
t attrs r.brc /a
t attrs r.brc /a --json
t attrs r.brc a units
t attrs r.brc /a nothing
t attrs r.brc /a long_name='"air temperature"' range='[180, 340]' big=12345678901234567890
t attrs r.brc /a
t attrs r.brc /a big
t attrs r.brc /a units='"C"' --unset range --unset long_name --json
t attrs r.brc /a
echo '{"nested": {"deep": [1, 2.50, "\u00e9"]}}' >value.json
t attrs r.brc /a history=@value.json
t attrs r.brc /a history
t attrs r.brc / title='"root"'
t attrs r.brc /

echo '# refused, and then nothing changed'
keep r.brc
t attrs r.brc /a units=K
t attrs r.brc /a x=1 units=K
t attrs r.brc /a x=1 --unset no_such_key
t attrs r.brc /a x=nan
t attrs r.brc /a =1
t attrs r.brc /a units x=1
t attrs r.brc /a units more
t attrs r.brc /a history=@missing.json
t attrs r.brc /missing
t attrs r.brc /missing x=1
t attrs r.brc /a x
unchanged r.brc

echo '# a version'
commit r.brc first 10
q attrs r.brc /a units='"F"'
t attrs r.brc /a units
t attrs r.brc /a units --at main
t attrs r.brc /a units='"X"' --at main
echo '# numbers for which JSON has no text, and texts that look like them'
t attrs r.brc /a missing_value=NaN range='[-Infinity, Infinity]' word='"NaN"' nested='{"a": [NaN]}'
t attrs r.brc /a missing_value
t attrs r.brc /a range --json
t attrs r.brc /a
t create r.brc /nan --shape 2 --dtype float32 --attrs '{"missing_value": NaN}'
t attrs r.brc /nan
t commit r.brc -m 'not for messages' --meta x=NaN
t create r.brc /bad --metadata '{"zarr_format":3,"node_type":"group","x":{"must_understand":false,"a":NaN}}'
