# syntax=docker/dockerfile:1
#
# Two images from one build:
#   docker build --target service -t dalsegno .            API, scheduler, upkeep jobs; contains only the binary
#   docker build --target worker -t dalsegno-worker .      runs turns; contains the Claude Code CLI and the programs that its tools need
#
# Postgres is not included: set DATABASE_URL, or the variables of libpq (PGHOST, PGUSER, ...).

ARG RUST_VERSION=1.95
# The version measured in docs/reference/claude-cli.md.
ARG CLAUDE_VERSION=2.1.197

FROM rust:${RUST_VERSION}-trixie AS build
WORKDIR /build
COPY . .
# These images do not download Postgres, so the feature fetch-postgres is off.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/build/target \
    SQLX_OFFLINE=true cargo build --profile dist --locked --no-default-features \
      --package dalsegno --bin dalsegno --bin worker-turns --bin worker-upkeep \
 && mkdir -p /out && cp target/dist/dalsegno target/dist/worker-turns target/dist/worker-upkeep /out/

# The native program of the npm package, which runs without Node. npm verifies it with the digest of the registry.
FROM node:24-trixie-slim AS claude
ARG CLAUDE_VERSION
RUN npm install --prefix /claude --no-audit --no-fund --ignore-scripts "@anthropic-ai/claude-code@${CLAUDE_VERSION}" \
 && case "$(uname -m)" in x86_64) arch=x64 ;; aarch64) arch=arm64 ;; *) echo "no CLI for $(uname -m)" >&2; exit 1 ;; esac \
 && install -D "/claude/node_modules/@anthropic-ai/claude-code-linux-${arch}/claude" /out/claude \
 && /out/claude --version

FROM gcr.io/distroless/cc-debian13:nonroot AS service
COPY --from=build /out/dalsegno /usr/local/bin/dalsegno
COPY --chown=10001:10001 config /etc/dalsegno
# The service writes to one folder, /var/lib/dalsegno. With a read-only root, mount a volume or a tmpfs there.
WORKDIR /var/lib/dalsegno
# The working directory is not the folder that agents write to: the service would read a dalsegno.toml from there.
WORKDIR /
ENV DALSEGNO_SERVICE__DATA_DIR=/var/lib/dalsegno \
    DALSEGNO_AGENTS__FOLDER=/etc/dalsegno/agents \
    DALSEGNO_AGENTS__SKILLS_FOLDER=/etc/dalsegno/skills \
    DALSEGNO_AGENTS__NODES_FOLDER=/etc/dalsegno/nodes \
    DALSEGNO_FLOWS__FOLDER=/etc/dalsegno/flows \
    DALSEGNO_HTTP__LISTEN=0.0.0.0:7770 \
    DALSEGNO_WORKER__TURNS_SLOTS=0 \
    DALSEGNO_LOG__FORMAT=json
USER 10001:10001
EXPOSE 7770
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["dalsegno", "health", "--live"]
ENTRYPOINT ["dalsegno"]
CMD ["serve"]

FROM debian:trixie-slim AS worker
# Programs that the CLI's tools call, certificates, and an init: orphaned processes of tools become children of process 1.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends ca-certificates git ripgrep tini \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 10001 --user-group --no-create-home --home-dir /var/lib/dalsegno --shell /usr/sbin/nologin dalsegno \
 && install -d -o 10001 -g 10001 -m 0700 /var/lib/dalsegno
# A separate layer before the binaries: a new build of Dalsegno then transfers a few megabytes, not the CLI's two hundred.
COPY --from=claude /out/claude /usr/local/bin/claude
COPY --from=build /out/dalsegno /out/worker-turns /out/worker-upkeep /usr/local/bin/
COPY --chown=10001:10001 config /etc/dalsegno
WORKDIR /var/lib/dalsegno
# The working directory is not the folder that agents write to: the service would read a dalsegno.toml from there.
WORKDIR /
ENV DALSEGNO_SERVICE__DATA_DIR=/var/lib/dalsegno \
    DALSEGNO_AGENTS__FOLDER=/etc/dalsegno/agents \
    DALSEGNO_AGENTS__SKILLS_FOLDER=/etc/dalsegno/skills \
    DALSEGNO_AGENTS__NODES_FOLDER=/etc/dalsegno/nodes \
    DALSEGNO_FLOWS__FOLDER=/etc/dalsegno/flows \
    DALSEGNO_CLAUDE__PROGRAM=/usr/local/bin/claude \
    DALSEGNO_WORKER__LISTEN=0.0.0.0:7771 \
    DALSEGNO_LOG__FORMAT=json
USER 10001:10001
EXPOSE 7771
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["dalsegno", "health", "--worker", "--live"]
ENTRYPOINT ["tini", "--"]
CMD ["worker-turns"]
