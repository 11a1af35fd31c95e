#!/bin/sh
# Runs the kit with the peers that are no Envoy: a report for each. The programs are in PATH: README.md says which.
set -u
adapters=$(cd "$(dirname "$0")/../adapters" && pwd)

kit() { # NAME MODE OPTIONS.. -- COMMAND..
    name=$1
    shift
    [ -n "${ONLY:-}" ] && [ "$ONLY" != "$name" ] && return
    echo "== $name"
    xds-conformance "$@" | tail -1
}

kit xds-machine-server server --control stdio --about project=xds-machine --json xds-machine-server.json -- adapter
kit xds-machine-client client --about project=xds-machine --json xds-machine-client.json -- client_adapter '{port}' '{variant}'
kit nebucloud server --node kit --control stdio --about project=nebucloud-xds --about crate=xds-server \
    --about version=0.1.0 --json nebucloud-0.1.0.json -- nebucloud-adapter
# Never serves endpoints by name: see findings.md. The first run is of what else there is.
cd "${NODE_FOLDER:-.}" || exit 1
cp "$adapters"/*.js .
kit node-control-plane server --transport v2 --variants sotw --types cds --control stdio \
    --about project=@enmeshed/node-control-plane --about version=0.2.9 \
    --json "$OLDPWD/node-control-plane-0.2.9.json" -- node node-control-plane.js
kit grpc-js client --induced reference --variants sotw --about project=@grpc/grpc-js-xds --about version=1.14.1 \
    --json "$OLDPWD/grpc-js-xds-1.14.1.json" -- env 'GRPC_XDS_BOOTSTRAP={bootstrap}' node grpc-js-client.js
cd "$OLDPWD" || exit 1
kit grpcio client --induced reference --variants sotw --about project=grpc --about package=grpcio \
    --about version=1.85.1 --json grpcio-1.85.1.json \
    -- env 'GRPC_XDS_BOOTSTRAP={bootstrap}' python-grpcio ../adapters/grpcio_client.py
kit tonic-xds-client client --variants sotw --about project=tonic --about crate=xds-client --about version=0.1.0-alpha.4 \
    --json tonic-xds-client-0.1.0-alpha.4.json -- tonic-xds-client-adapter '{port}'
