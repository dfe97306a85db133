# MongoDB: one compressed archive, of a database or of all of them.
# shellcheck shell=bash

EXTENSION=.archive.gz
WHOLE=all-databases$EXTENSION
login=$scratch/login.yaml
server=(--host="$SOURCE_HOST" --port="$SOURCE_PORT" --username="$SOURCE_USERNAME" --config="$login"
    --authenticationDatabase="${SOURCE_AUTHENTICATION_DATABASE:-admin}")

connect() {
    (
        umask 077
        printf 'password: "%s"\n' "$(sed 's/[\\"]/\\&/g' <<<"$SOURCE_PASSWORD")" >"$login"
    )
}

files() {
    if [ -n "${SOURCE_DATABASE:-}" ]; then
        echo "$SOURCE_DATABASE$EXTENSION"
    else
        echo "$WHOLE"
    fi
}

dump() {
    mongodump "${server[@]}" --archive --gzip ${SOURCE_DATABASE:+--db="$SOURCE_DATABASE"}
}

# An archive is a header and each collection's metadata, then blocks: a collection's name and documents of it.
# Of a database that does not exist mongodump makes an archive without collections, and succeeds.
check() {
    # shellcheck disable=SC2016
    gzip -d -c | perl -e '
        use strict;
        binmode STDIN;
        my (%documents, %unfinished);

        sub fail {
            print STDERR "$_[0]\n";
            exit 1;
        }
        sub take {
            my ($length) = @_;
            my $got = read STDIN, my $bytes, $length;
            fail("the archive is cut short") unless $got == $length;
            return $bytes;
        }
        sub document {  # undef: the end of the block
            my $length = take(4);
            return undef if $length eq "\xff\xff\xff\xff";
            return take(unpack("L<", $length) - 4);
        }
        sub collection {
            my ($document) = @_;
            $document =~ /^\x02db\0.{4}([^\0]*)\0\x02collection\0.{4}([^\0]*)\0/s
                or fail("the archive is damaged");
            return "$1.$2";
        }

        fail("this is not an archive of mongodump") unless take(4) eq "\x6d\xe2\x99\x81";
        document();
        while (defined(my $metadata = document())) {
            $documents{collection($metadata)} = 0;
        }
        until (eof STDIN) {
            my $header = document();
            my $collection = collection($header);
            $documents{$collection}++ while defined document();
            $unfinished{$collection} = $header !~ /\x08EOF\0\x01/;
        }
        fail("the archive is cut short") if grep { $_ } values %unfinished;
        fail("there is nothing in it; does the server have the database?") unless %documents;
        print "$_\t$documents{$_}\n" for sort keys %documents;
    '
}

measure() {
    :
}

accepts() {
    :
}

# With --drop, users and roles of the archive would replace all that the server has, its own login among them.
# Without --stopOnError, documents that the server rejects are lost, and mongorestore succeeds.
restore() {
    local from=${database:-${1%"$EXTENSION"}} options=(--archive --gzip --drop --stopOnError --nsExclude='admin.system.*')
    if [ -n "$database" ] || [ "$1" != "$WHOLE" ]; then
        options+=(--nsInclude="$from.*" --nsFrom="$from.*" --nsTo="$2.*")
        if ! grep -q -F "$1"$'\t'"$from." "$scratch/rows"; then
            cat >/dev/null
            fail "there is no database $from in $name"
        fi
    fi
    mongorestore "${server[@]}" "${options[@]}"
}
