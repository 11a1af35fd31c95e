#!/bin/sh
# Plays all stories over and over, and walks, with this project's own programs over sockets: nothing may fail. With
# xds-conformance, adapter and client_adapter in PATH: ./robustness.sh > robustness.txt (half an hour; RUNS and WALKS choose).
set -u
one() { # NAME OPTIONS.. -- COMMAND..: the last line, and the load of the machine
    name=$1
    shift
    echo "$name: $(xds-conformance "$@" | tail -1); load $(cut -d' ' -f1 /proc/loadavg)"
}
for run in $(seq "${RUNS:-30}"); do
    one "server $run" server --strict --control stdio -- adapter
done &
for run in $(seq "${RUNS:-30}"); do
    one "client $run" client --strict -- client_adapter '{port}' '{variant}'
done &
walks=${WALKS:-400} # of both variants
one "$walks walks with the server" walk server --seed 1 --walks "$walks" --seconds 1500 --control stdio -- adapter
one "$walks walks with the client" walk client --seed 1 --walks "$walks" --seconds 1500 -- client_adapter '{port}' '{variant}'
one "short walks with the server" walk server --exhaustive 3 --seconds 600 --control stdio -- adapter
one "short walks with the client" walk client --exhaustive 3 --seconds 600 -- client_adapter '{port}' '{variant}'
wait
