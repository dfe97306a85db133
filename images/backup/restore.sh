#!/bin/bash
# Restore a backup into the source's server: /restore.sh [BACKUP | TIME | latest] [DATABASE [AS]]
#
# TIME, such as 20261121T020000Z, is the newest backup that had begun by then. With RESTORE_INTO=empty a server that has
# data is refused, unless an earlier attempt of the same restore wrote it.
# All of the backup is read and verified before anything is written. With DATABASE only that one is restored, under the
# name AS where it is given. Without arguments the latest backup is restored as a whole.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=images/backup/store.sh
. "$here/store.sh"

name=${1:-latest} database=${2:-} as=${3:-}

doing="looking for backup $name"
good=$(backups)
if [ "$name" = latest ]; then
    name=$(tail -n 1 <<<"$good")
elif [[ $name =~ ^[0-9]{8}T[0-9]{6}Z$ ]]; then
    name=$(awk -v time="$name" 'substr($0, 1, 16) <= time { newest = $0 } END { print newest }' <<<"$good")
fi
if [ -z "$name" ] || ! grep -q -x -F -e "$name" <<<"$good"; then
    fail "there is no complete backup${1:+ $1} in ${store#destination:}"
fi

doing="reading what is in $name"
: >"$scratch/manifest"
rclone cat "$store/$name/SHA256SUMS" >"$scratch/SHA256SUMS"
while IFS= read -r line; do
    if [ "${line:66}" = MANIFEST ]; then
        rclone cat "$store/$name/MANIFEST" </dev/null >"$scratch/manifest"
        continue
    fi
    if [ -z "$database" ] || [ "${line:66}" = "$database$EXTENSION" ] || [ "${line:66}" = "${WHOLE:-}" ]; then
        printf '%s\n' "$line"
    fi
done <"$scratch/SHA256SUMS" >"$scratch/wanted"
[ -s "$scratch/wanted" ] || fail "there is no database $database in $name"

doing="connecting to the database"
connect
accepts "$(sed -n 's/^server\t//p' "$scratch/manifest")"
if [ "${RESTORE_INTO:-}" = empty ]; then
    doing="looking at what the server has"
    claim
fi
verify "$name" <"$scratch/wanted"
while IFS= read -r line; do
    file=${line:66}
    doing="restoring $file"
    rclone cat "$store/$name/$file" </dev/null | restore "$file" "${as:-${database:-${file%"$EXTENSION"}}}"
    echo "restored $file"
done <"$scratch/wanted"
if [ "${RESTORE_INTO:-}" = empty ]; then
    release
fi
report '{"restored":"%s"}' "$name"
