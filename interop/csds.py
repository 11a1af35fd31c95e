"""The status of clients (CSDS): a stub that asks, and C-core beside xds_client at one scripted control plane.

ask ADDR [SECONDS]              what a service says, as JSON, once it can be reached
compare XDS_CLIENT DIR          the dumps of C-core and of xds_client, item by item, in every status that both reach
errors, timers XDS_CLIENT DIR   the same with gRFC A88: errors of resources; what is kept, and what takes too long
view CONTROL_PLANE DIR          what control_plane says of a client that accepts, rejects and stalls
"""

import json
import os
import queue
import socket
import subprocess
import sys
import threading
import time
from concurrent import futures

import grpc
from envoy.admin.v3 import config_dump_shared_pb2
from envoy.config.cluster.v3 import cluster_pb2
from envoy.config.core.v3 import base_pb2
from envoy.config.endpoint.v3 import endpoint_pb2
from envoy.config.listener.v3 import api_listener_pb2, listener_pb2
from envoy.config.route.v3 import route_components_pb2, route_pb2
from envoy.extensions.filters.http.router.v3 import router_pb2
from envoy.extensions.filters.network.http_connection_manager.v3 import http_connection_manager_pb2
from envoy.service.discovery.v3 import ads_pb2, ads_pb2_grpc, discovery_pb2
from envoy.service.status.v3 import csds_pb2, csds_pb2_grpc
from google.protobuf import any_pb2
from google.rpc import status_pb2

TYPE = "type.googleapis.com/envoy.config."
LDS = TYPE + "listener.v3.Listener"
RDS = TYPE + "route.v3.RouteConfiguration"
CDS = TYPE + "cluster.v3.Cluster"
EDS = TYPE + "endpoint.v3.ClusterLoadAssignment"


def check(condition, message):
    if not condition:
        raise AssertionError(message)


def until(condition, seconds=10.0):
    """Waits until a condition, which returns None or what is wrong, holds."""
    end = time.monotonic() + seconds
    while True:
        wrong = condition()
        if wrong is None:
            return
        check(time.monotonic() < end, wrong)
        time.sleep(0.05)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


# What is asked and said.


def stub(address):
    return csds_pb2_grpc.ClientStatusDiscoveryServiceStub(grpc.insecure_channel(address))


def row(item):
    """An item in the words of the proto, with the presence of what differs."""
    shown = {
        "status": config_dump_shared_pb2.ClientResourceStatus.Name(item.client_status),
        "config_status": csds_pb2.ConfigStatus.Name(item.config_status),
        "version": item.version_info,
        "config": item.HasField("xds_config"),
        "updated": item.HasField("last_updated"),
        "static": item.is_static_resource,
    }
    if item.HasField("error_state"):
        error = item.error_state
        shown["error"] = {
            "details": bool(error.details),
            "version": error.version_info,
            "time": error.HasField("last_update_attempt"),
            "failed": error.HasField("failed_configuration"),
        }
    return shown


def rows(response):
    """The items of all clients: a resource that two channels want is in both, and the same."""
    found = {}
    for client in response.config:
        check(not client.xds_config, "the deprecated field is filled")
        for item in client.generic_xds_configs:
            found[(item.type_url, item.name)] = row(item)
            if item.HasField("xds_config"):
                check(item.xds_config.type_url == item.type_url, "another type in the Any")
    return found


# A control plane that does what a script says.


class Plane(ads_pb2_grpc.AggregatedDiscoveryServiceServicer):
    def __init__(self):
        self.streams, self.lock, self.nonces = [], threading.Lock(), 0
        self.said = {}
        self.server = grpc.server(futures.ThreadPoolExecutor(16))
        ads_pb2_grpc.add_AggregatedDiscoveryServiceServicer_to_server(self, self.server)
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def StreamAggregatedResources(self, requests, context):
        out = queue.Queue()
        stream = {"out": out, "wanted": {}}
        with self.lock:
            self.streams.append(stream)
        context.add_callback(lambda: out.put(None))
        threading.Thread(target=self.read, args=(stream, requests), daemon=True).start()
        while (response := out.get()) is not None:
            yield response

    def read(self, stream, requests):
        try:
            for request in requests:
                with self.lock:
                    names = set(request.resource_names)
                    new = names - stream["wanted"].get(request.type_url, set())
                    stream["wanted"][request.type_url] = names
                    if new and request.type_url in self.said:
                        self.send(stream, request.type_url)
        except grpc.RpcError:
            pass

    def send(self, stream, type_url):
        version, resources, errors = self.said[type_url]
        self.nonces += 1
        response = discovery_pb2.DiscoveryResponse(version_info=version, type_url=type_url, nonce=str(self.nonces))
        for name, resource in resources:
            response.resources.add().Pack(wrapped(type_url, name, resource), "type.googleapis.com/")
        for name, code, message in errors:
            error = response.resource_errors.add()
            error.resource_name.name = name
            error.error_detail.CopyFrom(status_pb2.Status(code=code, message=message))
        stream["out"].put(response)

    def say(self, type_url, version, resources, errors=()):
        """Tells all that want the type, and those that come later."""
        with self.lock:
            self.said[type_url] = (version, resources, errors)
            for stream in self.streams:
                if stream["wanted"].get(type_url):
                    self.send(stream, type_url)


BROKEN = b"\xff\xff"


def wrapped(type_url, name, resource):
    body = any_pb2.Any(type_url=type_url)
    body.value = resource if isinstance(resource, bytes) else resource.SerializeToString()
    return discovery_pb2.Resource(name=name, resource=body)


def packed(message):
    into = any_pb2.Any()
    into.Pack(message)
    return into


def listener(name):
    router = http_connection_manager_pb2.HttpFilter(name="router", typed_config=packed(router_pb2.Router()))
    manager = http_connection_manager_pb2.HttpConnectionManager(http_filters=[router])
    manager.rds.route_config_name = "r1"
    manager.rds.config_source.ads.SetInParent()
    manager.rds.config_source.resource_api_version = 2
    return name, listener_pb2.Listener(
        name=name, api_listener=api_listener_pb2.ApiListener(api_listener=packed(manager))
    )


def route():
    host = route_components_pb2.VirtualHost(name="h", domains=["*"])
    one = host.routes.add()
    one.match.prefix = ""
    one.route.cluster = "c1"
    return "r1", route_pb2.RouteConfiguration(name="r1", virtual_hosts=[host])


def cluster():
    made = cluster_pb2.Cluster(name="c1", type=cluster_pb2.Cluster.EDS)
    made.eds_cluster_config.service_name = "e1"
    made.eds_cluster_config.eds_config.ads.SetInParent()
    return "c1", made


def endpoints(port):
    made = endpoint_pb2.ClusterLoadAssignment(cluster_name="e1")
    locality = made.endpoints.add()
    locality.load_balancing_weight.value = 1
    locality.locality.region = "r"
    address = locality.lb_endpoints.add().endpoint.address.socket_address
    address.address, address.port_value = "127.0.0.1", port
    return "e1", made


def dump_of_core():
    from grpc._cython import cygrpc

    return csds_pb2.ClientStatusResponse.FromString(cygrpc.dump_xds_configs())


def compare(program, folder, part):
    plane = Plane()
    features = ["resource_timer_is_transient_error"] if part == "timers" else []
    bootstrap = {
        "xds_servers": [
            {
                "server_uri": f"127.0.0.1:{plane.port}",
                "channel_creds": [{"type": "insecure"}],
                "server_features": ["xds_v3", *features],
            }
        ],
        "node": {"id": "n"},
    }
    os.environ["GRPC_XDS_BOOTSTRAP_CONFIG"] = json.dumps(bootstrap)
    plane.say(LDS, "1", [listener("l1")])
    plane.say(RDS, "1", [route()])
    plane.say(CDS, "1", [cluster()])
    plane.say(EDS, "1", [endpoints(1)])
    port = free_port()
    arguments = [program, "--server", f"http://127.0.0.1:{plane.port}", "--variant", "sotw", "--dialect", "grpc"]
    arguments += ["--node", "n", "--csds", f"127.0.0.1:{port}", "--for", "60"]
    if part == "timers":
        # The first is what C-core does by default since gRFC A88.
        arguments += ["--server-features", ",".join(["ignore_resource_deletion", *features])]
    for what in ["lds=l1,l2,l3", "rds=r1", "cds=c1", "eds=e1"]:
        arguments += ["--subscribe", what]
    with open(os.path.join(folder, "compared.jsonl"), "w") as out:
        child = subprocess.Popen(arguments, stdout=out)
    channels = [grpc.insecure_channel("xds:///" + name) for name in ["l1", "l2", "l3"]]
    for channel in channels:
        channel.subscribe(lambda _: None, try_to_connect=True)
    ours = stub(f"127.0.0.1:{port}")
    ask = lambda: rows(ours.FetchClientStatus(csds_pb2.ClientStatusRequest(), wait_for_ready=True, timeout=10))
    reached = set()

    def step(what, expected, of=None, seconds=10.0):
        """Waits until both have these statuses, and compares all of the items of these types."""

        def same():
            core, own = rows(dump_of_core()), ask()
            if of is not None:
                core = {key: value for key, value in core.items() if key[0] in of}
                own = {key: value for key, value in own.items() if key[0] in of}
            for name, status in expected.items():
                found = [value["status"] for (_, other), value in own.items() if other == name]
                if found != [status]:
                    return f"{what}: {name} is {found}, not {status}: {own}"
            if core != own:
                return f"{what}: C-core has {core}\nxds_client has {own}"
            reached.update((value["status"], value["config"]) for value in own.values())
            return None

        until(same, seconds)
        print(f"{what}: equal", flush=True)

    try:
        all_good = {"l1": "ACKED", "r1": "ACKED", "c1": "ACKED", "e1": "ACKED"}
        step("accepted, and asked for", {**all_good, "l2": "REQUESTED", "l3": "REQUESTED"})
        if part == "timers":
            plane.say(CDS, "2", [])
            step("deleted, and kept", {"c1": "DOES_NOT_EXIST", "e1": "ACKED"})
            check(("DOES_NOT_EXIST", True) in reached, "the cluster is not kept")
            plane.say(CDS, "3", [cluster()])
            step("back again", {"c1": "ACKED"})
            step("silence for too long", {"l2": "TIMEOUT", "l3": "TIMEOUT"}, seconds=45)
            plane.say(LDS, "2", [listener("l1"), listener("l2")])
            step("late, and good", {"l1": "ACKED", "l2": "ACKED"})
            return
        if part == "errors":
            plane.say(EDS, "2", [], [("e1", 14, "later")])
            step("an error of what is held", {"e1": "RECEIVED_ERROR"})
            plane.say(LDS, "2", [listener("l1")], [("l2", 14, "not yet")])
            step("an error of what is not held", {"l1": "ACKED", "l2": "RECEIVED_ERROR"})
            plane.say(EDS, "3", [endpoints(1)])
            step("the error is over", {"e1": "ACKED"})
            return
        plane.say(EDS, "2", [("e1", BROKEN)])
        step("rejected, and held", {"e1": "NACKED"})
        plane.say(EDS, "3", [endpoints(2)])
        step("accepted again", {"e1": "ACKED"})
        plane.say(LDS, "2", [listener("l1"), ("l3", BROKEN)])
        step("rejected, and not held, beside what is good", {"l1": "ACKED", "l3": "NACKED", "l2": "REQUESTED"})
        plane.say(LDS, "3", [listener("l1"), listener("l3")])
        step("unchanged, in a later response", {"l1": "ACKED", "l3": "ACKED"})
        plane.say(CDS, "2", [])
        step("deleted", {"c1": "DOES_NOT_EXIST"}, of=[CDS, LDS, RDS])
        step("missing for too long", {"l2": "DOES_NOT_EXIST"}, of=[CDS, LDS, RDS], seconds=20)
        node = ours.FetchClientStatus(csds_pb2.ClientStatusRequest(), timeout=10).config[0].node
        check(node.id == "n" and node.client_features, f"the node is {node}")
    finally:
        child.kill()
        child.wait()
        print("reached:", sorted(reached), flush=True)


# The service itself.


def service(ours, address):
    """What holds of any service of ours."""
    fetch = lambda **fields: ours.FetchClientStatus(csds_pb2.ClientStatusRequest(**fields), timeout=10)
    whole, bare = fetch(), fetch(exclude_resource_contents=True)
    for client in whole.config:
        for item in client.generic_xds_configs:
            item.ClearField("xds_config")
    check(whole == bare, "without contents, something else differs")
    requests = queue.Queue()
    responses = ours.StreamClientStatus(iter(requests.get, None), timeout=10)
    for _ in range(2):
        requests.put(csds_pb2.ClientStatusRequest(exclude_resource_contents=True))
        check(next(responses) == bare, "a stream says something else")
    requests.put(None)
    check(next(responses, None) is None, "a third response to two requests")
    check(responses.code() == grpc.StatusCode.OK, f"the stream ended with {responses.code()}")
    old = grpc.insecure_channel(address).unary_unary("/envoy.service.status.v2.ClientStatusDiscoveryService/FetchClientStatus")
    check(code(lambda: old(b"", timeout=10)) == grpc.StatusCode.UNIMPLEMENTED, "there is no v2")


def code(call):
    try:
        call()
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


def view(program, client, folder):
    resources = os.path.join(folder, "resources")
    os.makedirs(resources, exist_ok=True)

    def write(clusters):
        text = json.dumps({"resources": [{"@type": CDS, "name": name, "connect_timeout": t} for name, t in clusters]})
        path = os.path.join(folder, "next.json")
        with open(path, "w") as out:
            out.write(text)
        os.rename(path, os.path.join(resources, "clusters.json"))

    write([("a", "1s"), ("b", "1s")])
    port = free_port()
    plane = subprocess.Popen(
        [program, "--listen", f"127.0.0.1:{port}", "--resources", resources, "--log", "json"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    try:
        ours = stub(f"127.0.0.1:{port}")
        empty = ours.FetchClientStatus(csds_pb2.ClientStatusRequest(), wait_for_ready=True, timeout=10)
        check(not empty.config, "nobody is connected")
        channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        requests = queue.Queue()
        responses = ads_pb2_grpc.AggregatedDiscoveryServiceStub(channel).DeltaAggregatedResources(
            iter(requests.get, None)
        )
        node = base_pb2.Node(id="edge-1", cluster="edge")
        node.metadata["zone"] = "z1"
        requests.put(
            discovery_pb2.DeltaDiscoveryRequest(node=node, type_url=CDS, resource_names_subscribe=["a", "b", "none"])
        )
        last = next(responses)

        def has(expected, **fields):
            def same():
                response = ours.FetchClientStatus(csds_pb2.ClientStatusRequest(**fields), timeout=10)
                found = {
                    (client.node.id, item.name): csds_pb2.ConfigStatus.Name(item.config_status)
                    for client in response.config for item in client.generic_xds_configs
                }
                return None if found == expected else f"{found}, not {expected}"

            until(same)

        def answer(error=None):
            request = discovery_pb2.DeltaDiscoveryRequest(type_url=CDS, response_nonce=last.nonce)
            if error:
                request.error_detail.message, request.error_detail.code = error, 3
            requests.put(request)

        of = lambda a, b: {("edge-1", "a"): a, ("edge-1", "b"): b, ("edge-1", "none"): "NOT_SENT"}
        has({**of("STALE", "STALE"), ("edge-1", "none"): "STALE"})
        answer()
        has(of("SYNCED", "SYNCED"))
        write([("a", "1s"), ("b", "2s")])
        last = next(responses)
        has(of("SYNCED", "STALE"))
        write([("a", "2s"), ("b", "2s")])
        has(of("STALE", "STALE"))
        answer("b is bad")
        last = next(responses)
        has(of("STALE", "ERROR"))
        answer()
        has(of("SYNCED", "ERROR"))
        response = ours.FetchClientStatus(csds_pb2.ClientStatusRequest(), timeout=10)
        items = {item.name: item for item in response.config[0].generic_xds_configs}
        check(items["b"].error_state.details == "b is bad", f"the words are {items['b'].error_state}")
        check(items["a"].version_info == last.resources[0].version, "the version is that of the resource")
        check(items["a"].xds_config == last.resources[0].resource, "the content is that of the resource")
        check(response.config[0].node == node, "the node is that of the request")
        matcher = csds_pb2.ClientStatusRequest
        for good, other in [("exact", "edge-2"), ("prefix", "in"), ("suffix", "2"), ("contains", "x")]:
            text = {"exact": "edge-1", "prefix": "ed", "suffix": "-1", "contains": "ge"}[good]
            has(of("SYNCED", "ERROR"), node_matchers=[{"node_id": {good: text.upper(), "ignore_case": True}}])
            has({}, node_matchers=[{"node_id": {good: other}}])
        has(of("SYNCED", "ERROR"), node_matchers=[{"node_id": {"safe_regex": {"regex": "edge-[0-9]"}}}])
        has({}, node_matchers=[{"node_id": {"safe_regex": {"regex": "edge"}}}])
        zone = lambda value: {"path": [{"key": "zone"}], "value": {"string_match": {"exact": value}}}
        has(of("SYNCED", "ERROR"), node_matchers=[{"node_metadatas": [zone("z1")]}])
        has({}, node_matchers=[{"node_id": {"exact": "edge-1"}, "node_metadatas": [zone("z2")]}])
        bad = matcher(node_matchers=[{"node_id": {"safe_regex": {"regex": "("}}}])
        check(code(lambda: ours.FetchClientStatus(bad, timeout=10)) == grpc.StatusCode.INVALID_ARGUMENT, "a bad regex")
        service(ours, f"127.0.0.1:{port}")
        requests.put(None)
        has({})
        print("the view: as expected", flush=True)
    finally:
        plane.kill()
        plane.wait()


def of_client(control_plane, program, folder):
    """The service of xds_client."""
    port = free_port()
    child = subprocess.Popen(
        [program, "--server", f"http://127.0.0.1:{free_port()}", "--variant", "delta", "--subscribe", "cds=a"]
        + ["--csds", f"127.0.0.1:{port}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    try:
        ours = stub(f"127.0.0.1:{port}")
        response = ours.FetchClientStatus(csds_pb2.ClientStatusRequest(), wait_for_ready=True, timeout=10)
        check([value["status"] for value in rows(response).values()] == ["REQUESTED"], f"{response}")
        service(ours, f"127.0.0.1:{port}")
        matched = csds_pb2.ClientStatusRequest(node_matchers=[{"node_id": {"exact": "n"}}])
        check(code(lambda: ours.FetchClientStatus(matched)) == grpc.StatusCode.INVALID_ARGUMENT, "a matcher is taken")
        print("the service of xds_client: as expected", flush=True)
    finally:
        child.kill()
        child.wait()


def main():
    what, arguments = sys.argv[1], sys.argv[2:]
    if what == "ask":
        print(stub(arguments[0]).FetchClientStatus(csds_pb2.ClientStatusRequest(), wait_for_ready=True, timeout=10))
    elif what in ("compare", "errors", "timers"):
        if what != "compare":
            os.environ["GRPC_EXPERIMENTAL_XDS_DATA_ERROR_HANDLING"] = "true"
        compare(arguments[0], arguments[1], what)
    elif what == "view":
        view(*arguments)
    elif what == "client":
        of_client(*arguments)
    os._exit(0)  # without waiting for threads that read streams


if __name__ == "__main__":
    try:
        main()
    except AssertionError as error:
        print(error, file=sys.stderr, flush=True)
        os._exit(1)
