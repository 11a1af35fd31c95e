"""A small xDS client in Python, and its adapter: xds-conformance client -- python python_client.py {port} {variant}

Needs grpcio and xds-protos.
"""

import json
import queue
import sys
import threading
import time

import grpc
from envoy.service.discovery.v3 import discovery_pb2 as pb

PORT, VARIANT = sys.argv[1], sys.argv[2]
DELTA = VARIANT == "delta"
SERVICE = "/envoy.service.discovery.v3.AggregatedDiscoveryService/"
METHOD = SERVICE + ("DeltaAggregatedResources" if DELTA else "StreamAggregatedResources")
REQUEST, RESPONSE = (
    (pb.DeltaDiscoveryRequest, pb.DeltaDiscoveryResponse) if DELTA else (pb.DiscoveryRequest, pb.DiscoveryResponse)
)
FULL = {"type.googleapis.com/envoy.config." + of for of in ("cluster.v3.Cluster", "listener.v3.Listener")}
TIMEOUT = 15

lock = threading.RLock()
types = {}  # type URL -> Type, in the order of the first subscription
requests = None  # the queue of the stream that is open


def say(**line):
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


class Type:
    def __init__(self):
        self.names, self.held, self.absent = set(), {}, set()
        self.version = self.nonce = ""
        self.asked = self.named = False
        self.deadlines = {}


def send(url, node=False, **fields):
    request = REQUEST(type_url=url, **fields)
    if node:
        request.node.id = "python"
        request.node.client_features.append("xds.config.resource-in-sotw")
    requests.put(request)


def wait_for(of, names):
    """Starts the time-outs of what was asked for."""
    for name in names:
        if name not in of.held and name != "*":
            of.deadlines[name] = time.monotonic() + TIMEOUT


def ask(url, of, error=None, node=False):
    """Sends the state of a SotW type."""
    of.asked = True
    of.named |= bool(of.names - {"*"})
    names = [] if of.names == {"*"} and not of.named else sorted(of.names)
    fields = {"error_detail": error} if error else {}
    send(url, node, resource_names=names, version_info=of.version, response_nonce=of.nonce, **fields)
    wait_for(of, of.names - set(of.deadlines))


def start(url, of, node):
    """Sends the first request of a type on a stream."""
    if not DELTA:
        return ask(url, of, node=node)
    of.asked = True
    names = [] if of.names == {"*"} else sorted(of.names)
    send(url, node, resource_names_subscribe=names, initial_resource_versions=of.held)
    wait_for(of, of.names)


def tell(op):
    url, names = op["type"], set(op["names"])
    of = types.setdefault(url, Type())
    if op["op"] == "subscribe":
        new = names - of.names
        of.names |= names
    else:
        new = names & of.names
        of.names -= names
        for name in [name for name in of.held if name not in of.names and "*" not in of.names]:
            del of.held[name]
        for name in names:
            of.deadlines.pop(name, None)
    if requests is None or not new:
        return
    if not of.asked:
        if of.names:
            start(url, of, not any(other.asked for other in types.values()))
    elif not DELTA:
        ask(url, of)
    elif op["op"] == "subscribe":
        send(url, resource_names_subscribe=sorted(new))
        wait_for(of, new)
    else:
        send(url, resource_names_unsubscribe=sorted(new))


def varint(body, at):
    value = shift = 0
    while True:
        byte = body[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return value, at


def name_of(body):
    """Returns the name of a resource, after a look at all of it."""
    at, name = 0, None
    while at < len(body):
        key, at = varint(body, at)
        size = {1: 8, 5: 4}.get(key & 7)
        if key & 7 == 0:
            _, at = varint(body, at)
            continue
        if key & 7 == 2:
            size, at = varint(body, at)
        if size is None or at + size > len(body):
            raise ValueError("not a message")
        if key == 10:
            name = body[at : at + size].decode()
        at += size
    return name


def resources_of(response):
    """Returns names, versions and contents."""
    for resource in response.resources:
        if DELTA:
            yield resource.name, resource.version, resource.resource
        elif resource.type_url.endswith("service.discovery.v3.Resource"):
            inner = pb.Resource()
            resource.Unpack(inner)
            yield inner.name, response.version_info, inner.resource
        else:
            yield None, response.version_info, resource


def take(response):
    url = response.type_url
    of = types.get(url)
    if of is None or not of.asked:
        return
    good, faults, seen = {}, [], set()
    for name, version, content in resources_of(response):
        try:
            if content.type_url != url:
                raise ValueError("another type")
            if name is None or name in of.names or "*" in of.names:
                name = name_of(content.value) if name is None else (name_of(content.value), name)[1]
            if name in seen:
                raise ValueError("twice")
            seen.add(name)
            good[name] = version
        except (ValueError, IndexError) as error:
            faults.append(f"{name}: {error}")
    wanted = {name: version for name, version in good.items() if name in of.names or "*" in of.names}
    removed = []
    if DELTA:
        removed = [name for name in response.removed_resources if name in of.held]
        for name in response.removed_resources:
            if name in of.names and name not in of.held:
                say(event="missing", type=url, name=name)
    elif url in FULL and not faults:
        removed = [name for name in of.held if name not in good]
    for name in removed:
        del of.held[name]
    for name in set(wanted) | set(removed) | set(response.removed_resources if DELTA else ()):
        of.deadlines.pop(name, None)
    if not faults or DELTA:
        of.held.update(wanted)
        if wanted or removed:
            say(event="apply", type=url, names=sorted(wanted), removed=removed)
    error = {"code": 3, "message": "; ".join(faults)} if faults else None
    if DELTA:
        fields = {"error_detail": error} if error else {}
        return send(url, response_nonce=response.nonce, **fields)
    of.nonce = response.nonce
    of.version = of.version if error else response.version_info
    ask(url, of, error)


def run():
    """Keeps a stream open."""
    global requests
    while True:
        with grpc.insecure_channel(f"127.0.0.1:{PORT}") as channel:
            call = channel.stream_stream(METHOD, REQUEST.SerializeToString, RESPONSE.FromString)
            with lock:
                requests = queue.Queue()
                for of in types.values():
                    of.asked = of.named = False
                    of.nonce = ""
                    of.deadlines.clear()
                wanted = [(url, of) for url, of in types.items() if of.names]
                for at, (url, of) in enumerate(wanted):
                    start(url, of, at == 0)
                stream = call(iter(requests.get, None))
            try:
                for response in stream:
                    with lock:
                        take(response)
            except grpc.RpcError as error:
                print(error.code(), file=sys.stderr)
            with lock:
                requests.put(None)
                requests = None
                for of in types.values():
                    of.deadlines.clear()
        time.sleep(0.3)


def watch():
    """Says what was not sent in time."""
    while True:
        time.sleep(0.1)
        with lock:
            for url, of in types.items():
                for name in [name for name, due in of.deadlines.items() if due < time.monotonic()]:
                    del of.deadlines[name]
                    say(event="missing", type=url, name=name)


say(ready={"features": [VARIANT, "wildcard", "names", "ondemand"]})
for thread in (run, watch):
    threading.Thread(target=thread, daemon=True).start()
for line in sys.stdin:
    with lock:
        tell(json.loads(line))
        say()
