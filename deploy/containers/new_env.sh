#!/bin/sh
# Writes .env beside docker-compose.yml: .env.example with a random value for each secret that it leaves empty.
#   sh deploy/containers/new_env.sh [FILE]
# An existing file is left alone: the databases in the volumes were made with its passwords.
set -eu
cd "$(dirname "$0")/../.."
target=${1:-.env}
if [ -e "$target" ]; then
    echo "$target exists already, and stays. To begin anew: docker compose down --volumes, and remove it." >&2
    exit 1
fi

random_hex() { # BYTES
    od -An -N"$1" -tx1 /dev/urandom | tr -d ' \n'
}

random_token() { # the form of the note service's tokens: an id of 8 bytes and a secret of 32
    secret=$(head -c 32 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=\n')
    echo "oncebox_$(random_hex 8)_$secret"
}

umask 077
while IFS= read -r line; do
    case $line in
        ONCEBOX_TOKEN=) line=$line$(random_token) ;;
        *_PASSWORD=) line=$line$(random_hex 24) ;;
    esac
    printf '%s\n' "$line"
done <.env.example >"$target.new"
mv "$target.new" "$target"
echo "$target holds new secrets. Next: docker compose up --detach --build" >&2
