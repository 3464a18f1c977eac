# Frequent commands of this repository. `just` lists them; each also works without just.

_:
    @just --list --unsorted

# Runs everything that CI runs, in the same order.
ci:
    .ci/run

# Runs the service on this machine.
run *args:
    cargo run -- {{args}}

# Runs the tests.
test *args:
    cargo test {{args}}

# Tests the clients for Python and TypeScript.
clients:
    scripts/test-clients

# Runs the long fault tests and the long conversations. Takes minutes; use an idle machine.
chaos:
    cargo test --features chaos -- chaos

# Benchmarks the queue; one JSON line per scenario.
bench *scenarios:
    cargo bench --bench queue -- {{scenarios}}

# Benchmarks turns and sessions.
bench-turns *scenarios:
    cargo bench --bench turns -- {{scenarios}}

# Benchmarks the board, and tasks that wait for others.
bench-board *scenarios:
    cargo bench --bench board -- {{scenarios}}

# Benchmarks the HTTP API.
bench-http *scenarios:
    cargo bench --bench http -- {{scenarios}}

# Benchmarks the web console: its pages on a large database, open tabs, the reader of the feed.
bench-console *scenarios:
    cargo bench --bench console -- {{scenarios}}

# Benchmarks tools: calls over loopback, turns with several rounds of calls.
bench-tools *scenarios:
    cargo bench --bench tools -- {{scenarios}}

# Benchmarks computations in memory: plans of compactions.
bench-context *scenarios:
    cargo bench --bench context -- {{scenarios}}

# Checks formatting and lints as CI does.
lint:
    cargo fmt --check
    cargo clippy --all-targets --all-features -- -D warnings

# Rewrites `.sqlx` after a change of a query or a migration.
sqlx:
    scripts/sqlx-prepare

# Opens the documentation of the code, private items included.
doc:
    cargo doc --no-deps --document-private-items --open
