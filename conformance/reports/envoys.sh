#!/bin/sh
# Runs the kit with Envoys as clients: a report for each version and bootstrap. The programs envoy-VERSION and
# xds-conformance are in PATH.
set -u
for version in ${VERSIONS:-1.40.0 1.39.3 1.38.3 1.37.0 1.36.4}; do
    for bootstrap in ${BOOTSTRAPS:-ads-sotw ads-delta sotw delta ads-sotw-unified ads-delta-unified}; do
        xds-conformance client --induced reference --envoy "$bootstrap" \
            --about project=Envoy --about version="$version" --about bootstrap="$bootstrap" \
            --about url=https://github.com/envoyproxy/envoy \
            --json "envoy-$version-$bootstrap.json" \
            -- "envoy-$version" -c '{envoy}' --use-dynamic-base-id --log-level off
    done
done
