# Functions for scripts that need a private Postgres on a socket in a folder of their own. Sourced, not run.
#
#   postgres_start FOLDER SETTINGS...   creates a cluster in FOLDER/data and starts it; sets `bin` to the folder of its programs
#   postgres_stop FOLDER                stops it immediately, because its data is not kept
# shellcheck shell=bash

postgres_start() {
  local work=$1; shift
  # Links in PATH are followed (Debian, Homebrew): psql and pg_ctl are beside the real binaries.
  bin=$(dirname "$(readlink -f "$(command -v initdb || true)")")
  [ -x "$bin/initdb" ] || bin=$(pg_config --bindir 2>/dev/null || true)
  # `ls` fails if one of the patterns matches nothing; that is expected.
  [ -x "$bin/initdb" ] || bin=$({ ls -d /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /opt/homebrew/opt/postgresql@*/bin 2>/dev/null || true; } | sort -V | tail -1)
  [ -x "$bin/initdb" ] || { echo "no PostgreSQL server binaries found: install PostgreSQL 14 to 18" >&2; return 1; }
  as_server=()
  if [ "$(id -u)" = 0 ]; then
    # Postgres refuses to run as root.
    local account
    account=$(id -un postgres 2>/dev/null || echo nobody)
    as_server=(setpriv "--reuid=$account" "--regid=$(id -g "$account")" --clear-groups)
    chown "$account" "$work"
  fi
  postgres_run "$work" "$bin/initdb" -D "$work/data" -U postgres -A trust --no-sync >/dev/null
  postgres_run "$work" "$bin/pg_ctl" -D "$work/data" -l "$work/log" -w -o "-k $work -c listen_addresses= $*" start >/dev/null
}

postgres_stop() {
  [ ! -e "$1/data/postmaster.pid" ] || postgres_run "$1" "$bin/pg_ctl" -D "$1/data" -m immediate stop >/dev/null 2>&1 || true
}

# Runs a command in another folder: the user of the server may not be allowed to enter the present one.
postgres_run() { (cd "$1" && shift && "${as_server[@]}" "$@"); }
