#!/bin/bash
# Dump the source to the store, read back what arrived there, and only then prune what is older than the retention.
#
# A backup is a folder of the store, named by the time it was begun and the pod that made it: its dumps; MANIFEST, with the
# server, the size of its databases and the rows of each table; and SHA256SUMS, which is written last. What has none is no backup: it was cut short, is never restored, and is removed a day later.
# Dumps are streamed: nothing but names and sums is kept in TMPDIR.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=images/backup/store.sh
. "$here/store.sh"

# Stream what the source dumps as FILE to the store, and note its sum.
upload() {
    local file=$1
    doing="dumping $file"
    mkfifo "$scratch/stream"
    sha256sum <"$scratch/stream" >"$scratch/sum" &
    dump "$file" | tee "$scratch/stream" | rclone rcat "$store/$name/$file"
    wait $!
    rm "$scratch/stream"
    printf '%s  %s\n' "$(cut -d ' ' -f 1 "$scratch/sum")" "$file" >>"$sums"
}

# Remove one backup, or what was to become one; it is no backup any more before its first dump goes.
remove() {
    local sums_there
    sums_there=$(rclone lsf --files-only --include /SHA256SUMS "$store/$1") || return
    if [ -n "$sums_there" ]; then
        rclone deletefile "$store/$1/SHA256SUMS" || return
    fi
    rclone purge "$store/$1" || return
    echo "removed $1"
}

# Remove what was begun before this backup and before the retention, and what was cut short more than a day ago.
prune() {
    local good folders each keep_from began_long_ago
    keep_from=$(date -u -d "@$(($(date +%s) - RETENTION_SECONDS))" +%Y%m%dT%H%M%SZ)
    began_long_ago=$(date -u -d '-1 day' +%Y%m%dT%H%M%SZ)
    good=$(backups) || return
    folders=$(rclone lsf --dirs-only "$store" | sed 's#/$##' | grep -E -x "$NAME") || return
    for each in $folders; do
        if [[ $each < $name ]] &&
            { [[ $each < $keep_from ]] || { [[ $each < $began_long_ago ]] && ! grep -q -x "$each" <<<"$good"; }; }; then
            remove "$each" || return
        fi
    done
}

: "${RETENTION_SECONDS:?}"
begun="${TMPDIR:-/tmp}/begun" # outlives the container, not the pod: another attempt goes on under the same name
if [ ! -s "$begun" ]; then
    pod=$(tr -c -d a-z0-9 <<<"${HOSTNAME##*-}")
    printf '%s-%s\n' "$(date -u +%Y%m%dT%H%M%SZ)" "${pod:-0}" >"$begun"
fi
name=$(<"$begun")
sums=$scratch/SHA256SUMS

doing="looking at the store"
good=$(backups)
if grep -q -x "$name" <<<"$good"; then
    echo "$name was complete before"
else
    doing="connecting to the database"
    connect
    files >"$scratch/files"
    [ -s "$scratch/files" ] || fail "there is no database that $SOURCE_USERNAME may see"
    : >"$sums"
    while IFS= read -r file; do
        upload "$file" </dev/null
    done <"$scratch/files"
    doing="measuring the databases"
    measure >"$scratch/manifest"
    verify "$name" <"$sums"
    doing="completing the backup"
    sed 's/^/rows\t/' "$scratch/rows" >>"$scratch/manifest"
    rclone rcat "$store/$name/MANIFEST" <"$scratch/manifest"
    printf '%s  MANIFEST\n' "$(sha256sum <"$scratch/manifest" | cut -d ' ' -f 1)" >>"$sums"
    rclone rcat "$store/$name/SHA256SUMS" <"$sums"
    rclone cat "$store/$name/SHA256SUMS" | cmp - "$sums"
fi

doing="measuring the backup"
server=$(rclone cat "$store/$name/MANIFEST" | sed -n -E 's/^server\t([a-z]+:[0-9.]+)$/\1/p')
bytes=$(rclone size --json "$store/$name" | sed -E 's/.*"bytes":([0-9]+).*/\1/')
warning=""
prune || warning=',"warning":"older backups were not pruned"'
rm "$begun"
echo "backup $name is complete and verified: $bytes bytes"
report '{"backup":"%s","bytes":%s,"server":"%s"%s}' "$name" "$bytes" "$server" "$warning"
