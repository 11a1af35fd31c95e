#!/bin/sh
# Makes the page, the picture and the table of all reports in this folder.
set -eu
xds-conformance matrix --html matrix.html --svg matrix.svg --markdown matrix.md \
    xds-machine-server.json nebucloud-*.json node-control-plane-*.json \
    xds-machine-client.json envoy-*.json grpcio-*.json grpc-js-*.json tonic-*.json
