#!/bin/bash
# Restore the newest backup into a server that only this pod has, and compare what is there with what was dumped.
#
# Every file is read and its sum verified, the server starts, each database opens, each table has the rows that MANIFEST
# says, and each query of the user's returns true. The source and other backups are neither read nor written.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
: "${DRILL_DATA:?}"
SOURCE_HOST=127.0.0.1 SOURCE_PORT=${DRILL_PORT:-54329} SOURCE_USERNAME=gatewright_drill
SOURCE_PASSWORD=$(od -A n -N 16 -t x1 /dev/urandom | tr -d ' \n')
unset SOURCE_DATABASE
export SOURCE_HOST SOURCE_PORT SOURCE_USERNAME SOURCE_PASSWORD
export PATH=$here:$PATH # rclone is there
if [ -f "$here/ca-certificates.crt" ]; then # the server's image may have none
    export SSL_CERT_FILE=$here/ca-certificates.crt
fi
# shellcheck source=images/backup/store.sh
. "$here/store.sh"
# shellcheck source=images/backup/servers/postgresql.sh
. "$here/servers/$SOURCE_TYPE.sh"
remedy="; raise spec.drill.storage"

started=""
cleanup() {
    if [ -n "$started" ]; then
        kill -s "$STOP" "$started" 2>/dev/null && wait "$started"
    fi
}

doing="looking for the newest backup"
name=$(backups | tail -n 1)
[ -n "$name" ] || fail "there is no complete backup in ${store#destination:}"

doing="reading what is in $name"
rclone cat "$store/$name/SHA256SUMS" >"$scratch/sums"
: >"$scratch/manifest"
if grep -q '  MANIFEST$' "$scratch/sums"; then # older backups have none
    rclone cat "$store/$name/MANIFEST" >"$scratch/manifest"
fi
needed=$(awk -F '\t' '$1 == "size" { bytes += $3 } END { printf "%.0f", bytes }' "$scratch/manifest")
room=$(df --block-size=1 --output=avail "$DRILL_DATA" | tail -n 1 | tr -d ' ')
if [ "$needed" -gt "$room" ]; then
    fail "the databases had $needed bytes, and the volume has room for $room$remedy"
fi

doing="starting a server"
find "$DRILL_DATA" -mindepth 1 -delete # of an earlier attempt
start "$DRILL_DATA"

doing="restoring $name"
if ! TERMINATION_LOG=$scratch/word "$here/restore.sh" "$name"; then
    fail "$(sed 's/^failed while //' "$scratch/word")"
fi

doing="connecting to the restored server"
connect
while IFS= read -r line; do
    case ${line:66} in *"$EXTENSION") printf '%s\n' "${line:66}" ;; esac
done <"$scratch/sums" >"$scratch/files"
databases=0
: >"$scratch/there"
while IFS= read -r file; do
    doing="opening the database ${file%"$EXTENSION"}"
    count "${file%"$EXTENSION"}" </dev/null >"$scratch/tables"
    while IFS= read -r line; do printf 'rows\t%s\t%s\n' "$file" "$line"; done <"$scratch/tables" >>"$scratch/there"
    databases=$((databases + 1))
done <"$scratch/files"

doing="comparing the rows with $name/MANIFEST"
# Tables of extensions may have more rows than were dumped.
awk -F '\t' '
    $1 != "rows" { next }
    FILENAME == ARGV[1] { there[$2 FS $3] = $4; next }
    !(($2 FS $3) in there) { print "table " $3 " of " $2 " is missing"; exit }
    there[$2 FS $3] + 0 < $4 + 0 { print "table " $3 " of " $2 " has " there[$2 FS $3] " rows instead of " $4; exit }
' "$scratch/there" "$scratch/manifest" >"$scratch/difference"
[ ! -s "$scratch/difference" ] || fail "$(<"$scratch/difference")"

at=0
while query_name=DRILL_QUERY_$at && [ -n "${!query_name:-}" ]; do
    database_name=DRILL_DATABASE_$at
    doing="asking spec.drill.queries[$at]"
    answer=$(ask "${!database_name}" "${!query_name}")
    case $answer in
        t | true | 1) ;;
        *) fail "it returned \"$(head -c 200 <<<"$answer")\" instead of true" ;;
    esac
    at=$((at + 1))
done

read -r tables rows < <(awk -F '\t' '{ rows += $4 } END { printf "%d %.0f\n", NR, rows }' "$scratch/there")
echo "backup $name is restorable: $databases databases, $tables tables, $rows rows, $at queries"
report '{"verified":"%s","databases":%s,"tables":%s,"rows":%s}' "$name" "$databases" "$tables" "$rows"
