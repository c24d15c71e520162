# The host as an image: built from this folder, run as a user without rights, on a read-only root file system, without a
# shell. compose.yaml runs it beside PostgreSQL; docs/operations.md, "Container", has the reasons.

FROM rust:1.95.0-slim-bookworm AS build
WORKDIR /src
# For the downloads' TLS at run time, and to compile SQLite and the TLS library.
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates gcc libc6-dev
COPY . .
RUN cargo build --release --locked -p kandev-host && strip -o /kandev-host target/release/kandev-host
RUN mkdir -m 0700 /home-of-host

# Plugins are processes in the same container: the base has the C library that most of them need.
FROM debian:bookworm-20251229-slim
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /kandev-host /usr/local/bin/kandev-host
# A new volume takes owner and mode from here.
COPY --from=build --chown=10001:10001 /home-of-host /var/lib/kandev
USER 10001:10001
WORKDIR /var/lib/kandev
ENV KANDEV_HOME=/var/lib/kandev \
    KANDEV_LISTEN=0.0.0.0:38429 \
    KANDEV_LOG_FORMAT=json \
    HOME=/var/lib/kandev \
    TMPDIR=/tmp \
    XDG_RUNTIME_DIR=/run/kandev
VOLUME ["/var/lib/kandev"]
EXPOSE 38429
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=10s --start-period=60s --retries=3 CMD ["/usr/local/bin/kandev-host", "health", "--timeout", "8"]
ENTRYPOINT ["/usr/local/bin/kandev-host"]
CMD ["serve"]
