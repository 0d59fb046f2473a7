# Chunks in a bucket: options and servers that are refused before anything is sent, and whose credentials a server
# gets. No server is asked here: tests/store/test_s3.c has one.
. "$CLI_TESTS/common.inc"

unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_PROFILE AWS_ENDPOINT_URL AWS_ENDPOINT_URL_S3 \
    AWS_SHARED_CREDENTIALS_FILE AWS_CONFIG_FILE
HOME=$PWD/home
export HOME
mkdir -p home/.aws
q init r.brc
breccia create r.brc /none --shape 4 --dtype int16 --backend s3 2>&1 | grep -q 'without libcurl' && exit 77

echo '# options'
t create r.brc /a --shape 4 --dtype int16 --backend s3
t create r.brc /a --shape 4 --dtype int16 --backend '{"name":"s3","configuration":{"bucket":"data","secret":"x"}}'
t create r.brc /a --shape 4 --dtype int16 --backend '{"name":"s3","configuration":{"bucket":"data","endpoint":"file:///etc"}}'
t create r.brc /a --shape 4 --dtype int16 --backend '{"name":"s3","configuration":{"bucket":"data","pack_bytes":1}}'
t create r.brc /a --shape 4 --dtype int16 --backend '{"name":"s3","configuration":{"bucket":"data","endpoint":"http://stranger.example:81/"}}'
t backend r.brc /a

echo '# a server that nobody has allowed'
t write r.brc /a --value 7
AWS_ACCESS_KEY_ID=key AWS_SECRET_ACCESS_KEY=secret t write r.brc /a --value 7
AWS_ENDPOINT_URL=http://other.example AWS_ACCESS_KEY_ID=key AWS_SECRET_ACCESS_KEY=secret t write r.brc /a --value 7

echo '# profiles belong to servers'
cat >home/.aws/config <<'C'
[default]
endpoint_url = http://other.example
[profile theirs]
s3 =
  endpoint_url = http://stranger.example:81
; endpoint_url = http://stranger.example:81
C
t write r.brc /a --value 7
cat >>home/.aws/config <<'C'
[profile lab]
endpoint_url = http://Stranger.example:81/
sso_session = us
C
t write r.brc /a --value 7
echo 'credential_process = exit 3' >>home/.aws/config
t write r.brc /a --value 7
AWS_ENDPOINT_URL=http://stranger.example:81 AWS_PROFILE=none t write r.brc /a --value 7
AWS_ENDPOINT_URL_S3=http://stranger.example:81/ AWS_PROFILE=lab t write r.brc /a --value 7
q fsck r.brc
