# For scripts that want a Postgres of their own, on a socket in a folder of theirs: they source this.
#
#   postgres_start FOLDER SETTINGS...   makes a cluster in FOLDER/data and starts it; sets `bin` to the folder of its programs
#   postgres_stop FOLDER                ends it at once: nothing of it is kept
# shellcheck shell=bash

postgres_start() {
  local work=$1; shift
  # A link in PATH (Debian, Homebrew) is followed: psql and pg_ctl lie where the binaries really are.
  bin=$(dirname "$(readlink -f "$(command -v initdb || true)")")
  [ -x "$bin/initdb" ] || bin=$(pg_config --bindir 2>/dev/null || true)
  # `ls` fails where one of the patterns matches nothing, which is no failure here.
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

# The server must not inherit the working directory: its user may not be allowed to enter it.
postgres_run() { (cd "$1" && shift && "${as_server[@]}" "$@"); }
