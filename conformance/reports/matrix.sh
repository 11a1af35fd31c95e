#!/bin/sh
# Makes the page, the picture and the table of all reports in this folder.
set -eu
xds-conformance matrix --html matrix.html --svg matrix.svg --markdown matrix.md \
    xds-machine-server.json xds-machine-control_plane.json nebucloud-*.json quilkin-xds-*.json rime-xds-*.json \
    rust-control-plane-*.json node-control-plane-*.json \
    xds-machine-client.json xds-machine-xds_client.json envoy-*.json grpcio-*.json grpc-js-*.json tonic-*.json
