#!/bin/sh
# PostgreSQL's image runs this once, when its volume is empty: each party gets a database and a role of its own, and
# neither can connect to the other's. Passwords are read by psql itself, so that no command line shows them.
set -eu

party() { # NAME VARIABLE
    psql --quiet --set ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname postgres --set name="$1" <<SQL
\\getenv password $2
CREATE ROLE :"name" LOGIN PASSWORD :'password';
CREATE DATABASE :"name" OWNER :"name" ENCODING 'UTF8' TEMPLATE template0;
REVOKE CONNECT ON DATABASE :"name" FROM PUBLIC;
SQL
}

party oncebox ONCEBOX_DATABASE_PASSWORD
party notes ONCEBOX_NOTES_DATABASE_PASSWORD
