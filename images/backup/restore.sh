#!/bin/bash
# Restore a backup into the source's server: /restore.sh [BACKUP | latest] [DATABASE [AS]]
#
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
fi
if [ -z "$name" ] || ! grep -q -x -F -e "$name" <<<"$good"; then
    fail "there is no complete backup ${1:-latest} in ${store#destination:}"
fi

doing="reading what is in $name"
rclone cat "$store/$name/SHA256SUMS" >"$scratch/SHA256SUMS"
while IFS= read -r line; do
    if [ "${line:66}" = MANIFEST ]; then
        continue
    fi
    if [ -z "$database" ] || [ "${line:66}" = "$database$EXTENSION" ]; then
        printf '%s\n' "$line"
    fi
done <"$scratch/SHA256SUMS" >"$scratch/wanted"
[ -s "$scratch/wanted" ] || fail "there is no database $database in $name"

doing="connecting to the database"
connect
verify "$name" <"$scratch/wanted"
while IFS= read -r line; do
    file=${line:66}
    doing="restoring $file"
    rclone cat "$store/$name/$file" </dev/null | restore "$file" "${as:-${file%"$EXTENSION"}}"
    echo "restored $file"
done <"$scratch/wanted"
report '{"restored":"%s"}' "$name"
