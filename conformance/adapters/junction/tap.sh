#!/bin/sh
# Runs junction-core as a client of this project's control plane, through the judging proxy, for half a minute: services come,
# change, go and come back, are looked up, and the control plane is started again. `tap.sh REPORT.json`, in an empty folder;
# control_plane, junction-driver and xds-conformance are in PATH.
set -u
report=$1
mkdir served

put() { # TYPE TYPE_URL RESOURCES: the resources of a type
    printf '{"versionInfo":"1","typeUrl":"%s","resources":[%s]}' "$2" "$3" >".$1.draft"
    mv ".$1.draft" "served/$1.json"
}

cluster() { # NAME SECONDS
    printf '{"@type":"%s","name":"%s.kit.svc.cluster.local:80","type":"EDS","connectTimeout":"%ss","edsClusterConfig":{"serviceName":"%s.kit.svc.cluster.local:80","edsConfig":{"ads":{},"resourceApiVersion":"V3"}}}' \
        "$clusters" "$1" "$2" "$1"
}

endpoints() { # NAME PORT
    printf '{"@type":"%s","clusterName":"%s.kit.svc.cluster.local:80","endpoints":[{"lbEndpoints":[{"endpoint":{"address":{"socketAddress":{"address":"127.0.0.1","portValue":%s}}}}]}]}' \
        "$assignments" "$1" "$2"
}

clusters=type.googleapis.com/envoy.config.cluster.v3.Cluster
assignments=type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
put cds $clusters "$(cluster web 1)"
put eds $assignments "$(endpoints web 8001)"

serve() {
    control_plane --listen 127.0.0.1:18742 --resources served >>control_plane.log 2>&1 &
    echo $! >plane
    sleep 1
}

end() {
    kill "$(cat plane)"
    rm plane
}

serve
xds-conformance --json "$report" tap --listen 127.0.0.1:18741 --upstream 127.0.0.1:18742 --record tap.jsonl \
    --about project=junction --about crate=junction-core --about version=0.3.2 &
tap=$!
sleep 1
{
    echo web
    sleep 3
    put eds $assignments "$(endpoints web 8002)"
    sleep 1
    put cds $clusters "$(cluster web 1),$(cluster db 1)"
    put eds $assignments "$(endpoints web 8002),$(endpoints db 8003)"
    sleep 1
    echo db
    echo late                                                      # does not exist yet
    sleep 4
    put cds $clusters "$(cluster web 2),$(cluster db 1),$(cluster late 1)"
    put eds $assignments "$(endpoints web 8004),$(endpoints db 8003),$(endpoints late 8005)"
    sleep 2
    put cds $clusters "$(cluster web 2)"
    put eds $assignments "$(endpoints web 8004)"
    sleep 2
    end
    sleep 1
    serve
    sleep 4
    put cds $clusters "$(cluster web 2),$(cluster db 2),{\"@type\":\"$clusters\",\"name\":\"no-port\"}" # rejected
    put eds $assignments "$(endpoints web 8007),$(endpoints db 8006)"
    sleep 2
    echo web
    echo db
    sleep 4
} | junction-driver 18741
kill -INT $tap
wait $tap
end
