#!/bin/sh
# Runs the kit with the peers that are no Envoy: a report for each, and for servers one of a minute of walks.
# The programs are in PATH: README.md says which.
set -u
reports=$(cd "$(dirname "$0")" && pwd)
adapters=$reports/../adapters
# Where walks leave the stories of what is wrong; the reports have them, too.
stories=$(mktemp -d)

kit() { # REPORT MODE OPTIONS.. -- COMMAND..
    report=$1
    shift
    [ -n "${ONLY:-}" ] && case ${report#walks/} in "$ONLY"*) ;; *) return ;; esac
    echo "== $report"
    xds-conformance --json "$reports/$report.json" "$@" | tail -1
}

server() { # REPORT OPTIONS.. -- COMMAND..
    name=$1
    shift
    kit "$name" server "$@"
    kit "walks/$name" walk server --seconds 60 --save "$stories" "$@"
}

cd "$reports" || exit 1
server xds-machine-server --about project=xds-machine --about program=examples/adapter --control stdio -- adapter
mkdir -p served
control_plane --listen 127.0.0.1:18731 --resources served >/dev/null 2>&1 &
plane=$!
sleep 1
server xds-machine-control_plane --about project=xds-machine --about program=control_plane \
    --features sotw,delta,per-type,ads-order,glob,vhds --control dir:served --address 127.0.0.1:18731
kill $plane
rm -r served
server nebucloud-0.1.0 --about project=nebucloud-xds --about crate=xds-server --about version=0.1.0 \
    --node kit --control stdio -- nebucloud-adapter
server quilkin-xds-0.10.1 --about project=quilkin --about crate=quilkin-xds --about version=0.10.1 \
    --variants delta --control stdio -- quilkin-adapter
server rime-xds-0.1.0 --about project=rime --about crate=rime-xds --about version=0.1.0 \
    --variants delta --control stdio -- rime-adapter
server rust-control-plane-0.1.2 --about project=rust-control-plane --about version=0.1.2 \
    --node kit --variants sotw --control stdio -- rust-control-plane-adapter

kit xds-machine-client client --about project=xds-machine --about program=examples/client_adapter \
    -- client_adapter '{port}' '{variant}'
kit xds-machine-xds_client client --induced reference --about project=xds-machine --about program=xds_client \
    -- xds_client --server 'http://127.0.0.1:{port}' --variant '{variant}' --subscribe lds --subscribe cds --follow
kit grpcio-1.85.1 client --induced reference --variants sotw --about project=grpc --about package=grpcio \
    --about version=1.85.1 -- env 'GRPC_XDS_BOOTSTRAP={bootstrap}' python-grpcio ../adapters/grpcio_client.py
kit tonic-xds-client-0.1.0-alpha.4 client --variants sotw --about project=tonic --about crate=xds-client \
    --about version=0.1.0-alpha.4 -- tonic-xds-client-adapter '{port}'

# grpc-js and the npm server load their packages from the folder that they are run in.
cd "${NODE_FOLDER:-.}" || exit 1
cp "$adapters"/*.js .
# Never serves endpoints by name: see findings.md. The run is of what else there is.
server node-control-plane-0.2.9 --about project=@enmeshed/node-control-plane --about version=0.2.9 \
    --transport v2 --variants sotw --types cds --control stdio -- node node-control-plane.js
kit grpc-js-xds-1.14.1 client --induced reference --variants sotw --about project=@grpc/grpc-js-xds \
    --about version=1.14.1 -- env 'GRPC_XDS_BOOTSTRAP={bootstrap}' node grpc-js-client.js
