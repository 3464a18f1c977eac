# The habits of this repository. `just` alone lists them; each is one line that also works without just.

_:
    @just --list --unsorted

# Everything CI runs, in its order.
ci:
    .ci/run

# The service on this machine.
run *args:
    cargo run -- {{args}}

# All tests of the normal run.
test *args:
    cargo test {{args}}

# The long forms of the fault tests and of the long conversations; minutes, and better on a quiet machine.
chaos:
    cargo test --features chaos -- chaos

# The figures of the queue, one JSON line per scenario.
bench *scenarios:
    cargo bench --bench queue -- {{scenarios}}

# The figures of turns and sessions.
bench-turns *scenarios:
    cargo bench --bench turns -- {{scenarios}}

# The figures of the board, and of tasks that come together again.
bench-board *scenarios:
    cargo bench --bench board -- {{scenarios}}

# The figures of the HTTP API.
bench-http *scenarios:
    cargo bench --bench http -- {{scenarios}}

# The figures of the tools: calls over loopback, turns with rounds of them.
bench-tools *scenarios:
    cargo bench --bench tools -- {{scenarios}}

# The figures of what is computed in memory: plans of compactions.
bench-context *scenarios:
    cargo bench --bench context -- {{scenarios}}

# Formatting and lints, as CI wants them.
lint:
    cargo fmt --check
    cargo clippy --all-targets --all-features -- -D warnings

# Rewrite `.sqlx` after a change of a query or a migration.
sqlx:
    scripts/sqlx-prepare

# The API documentation, private items too.
doc:
    cargo doc --no-deps --document-private-items --open
