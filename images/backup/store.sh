# What backup.sh and restore.sh share: the store, and how they end.
#
# Secrets come by the environment, and leave it only for the environment or a file of a tool: never for its arguments.
# shellcheck shell=bash

export LC_ALL=C RCLONE_CONFIG=/dev/null RCLONE_LOG_LEVEL=ERROR
# A stream's length is not known before: a part must be large enough for all of them to hold it (10,000 parts of 64 MiB).
export RCLONE_S3_CHUNK_SIZE=${RCLONE_S3_CHUNK_SIZE:-64M} RCLONE_S3_UPLOAD_CONCURRENCY=${RCLONE_S3_UPLOAD_CONCURRENCY:-2}
export RCLONE_AZUREBLOB_CHUNK_SIZE=${RCLONE_AZUREBLOB_CHUNK_SIZE:-16M} RCLONE_AZUREBLOB_UPLOAD_CONCURRENCY=4

NAME='[0-9]{8}T[0-9]{6}Z-[a-z0-9]+'

: "${SOURCE_TYPE:?}" "${SOURCE_HOST:?}" "${SOURCE_PORT:?}" "${SOURCE_USERNAME:?}" "${SOURCE_PASSWORD:?}"
: "${DESTINATION_PATH:?}" "${RCLONE_CONFIG_DESTINATION_TYPE:?}"
store=destination:$DESTINATION_PATH
scratch=$(mktemp -d)
doing="starting"
remedy="" # for a full disk

# What a script does before its scratch space goes.
cleanup() { :; }

# All that is said on stderr goes there, and is kept for the last word.
exec 3>&2 2> >(tee "$scratch/errors" >&3)
listening=$!

end() {
    local status=$? said
    trap - EXIT
    cleanup || true
    exec 2>&3
    wait "$listening" || true
    if [ "$status" -ne 0 ]; then
        # rclone's and MongoDB's tools begin a line with the time
        sed -E 's#^[0-9]{4}/[0-9/]+ [0-9:]+ ##; s#^[0-9-]+T[0-9:.+-]+\t##; /^[[:space:]]/d; /^$/d' \
            "$scratch/errors" >"$scratch/lines"
        said=$(grep -i -E 'error|fatal|^failed: ' "$scratch/lines" | tail -n 1) ||
            said=$(tail -n 1 "$scratch/lines")
        said="failed while $doing: ${said:-exit code $status}"
        case $said in *"No space left on device"*) said+="$remedy" ;; esac
        echo "$said" >&2
        report '%s\n' "$said"
    fi
    rm -rf "$scratch"
    exit "$status"
}
trap end EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

# Leave word for who reads the pod's status.
report() {
    # shellcheck disable=SC2059
    printf "$@" >"${TERMINATION_LOG:-/dev/termination-log}" || true
}

fail() {
    echo "$1" >&2
    exit 1
}

# Print the names of all complete backups, the oldest first.
backups() {
    local status=0
    rclone lsf --recursive --max-depth 2 --files-only --include '/*/SHA256SUMS' "$store" \
        >"$scratch/found" 2>"$scratch/said" || status=$?
    if [ "$status" -ne 0 ] && [ "$status" -ne 3 ]; then # 3: there is nothing yet
        cat "$scratch/said" >&2
        return "$status"
    fi
    sed -n -E "s#^($NAME)/SHA256SUMS\$#\1#p" "$scratch/found" | sort
}

# Read files of a backup back, as listed on stdin with their sums; each must be whole, and what its source calls sound.
# Rows of its tables are counted on the way: FILE, table and number of rows, in the lines of $scratch/rows.
verify() {
    local sum file
    : >"$scratch/rows"
    while read -r sum file; do
        doing="verifying $file in the store"
        mkfifo "$scratch/stream"
        sha256sum <"$scratch/stream" >"$scratch/sum" &
        rclone cat "$store/$1/$file" </dev/null | tee -p "$scratch/stream" | check "$file" |
            while IFS= read -r line; do printf '%s\t%s\n' "$file" "$line"; done >>"$scratch/rows"
        wait $!
        rm "$scratch/stream"
        if [ "$(cut -d ' ' -f 1 "$scratch/sum")" != "$sum" ]; then
            fail "$1/$file is not what was dumped: its checksum differs"
        fi
    done
}

# The source defines: EXTENSION; WHOLE, where one file may have all databases;
# connect; files, which prints the files that a backup has; dump FILE to stdout;
# check FILE on stdin, which prints each table with the number of its rows; measure, which prints the server and its size;
# accepts SERVER, which fails if a dump of it cannot be restored;
# restore FILE on stdin into DATABASE.
[ -f "$here/sources/$SOURCE_TYPE.sh" ] || fail "there is no source of type $SOURCE_TYPE"
# shellcheck source=images/backup/sources/postgresql.sh
. "$here/sources/$SOURCE_TYPE.sh"
