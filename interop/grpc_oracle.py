"""C-core as an oracle: plays cases to real gRPC channels, and says what each did.

One process is the ADS server, the backends and the client. The first line of output has the ports of the backends.
Then each line of standard input is a case, and each line of output an answer, in any order:

{"id", "authority", "quiet", "slow", "paths", "steps": [{"changes": [[TYPE, NAME, BASE64 or null, ALWAYS]], "wait"}]}
{"id", "steps": [{"names": {TYPE: [NAME]}, "nacks": [[TYPE, [NAME], TEXT]], "calls": [TEXT]}]}

A step changes resources, sends one response for each type that has a change among the names asked for, and waits until
the client is quiet; `wait` is for the resource timer of C-core, which is 15 s and can't be changed. ALWAYS is for a
resource that is sent though nobody asks for its name. The channel's target is xds:///ID.
"""

import asyncio
import base64
import json
import os
import sys

import grpc
from envoy.service.discovery.v3 import discovery_pb2

PREFIX = "type.googleapis.com/envoy.config."
URLS = {
    "lds": PREFIX + "listener.v3.Listener",
    "rds": PREFIX + "route.v3.RouteConfiguration",
    "cds": PREFIX + "cluster.v3.Cluster",
    "eds": PREFIX + "endpoint.v3.ClusterLoadAssignment",
}
TYPES = {url: short for short, url in URLS.items()}
# The types of which a response has all resources: what it lacks is gone.
FULL = {"lds", "cds"}
ADS = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"
TIMER = 15.0
BACKENDS = 6
# The number of cases that are played at once.
AT_ONCE = int(os.environ.get("ORACLE_AT_ONCE", "24"))

plays = {}


class Play:
    """The server's side of a case."""

    def __init__(self, case):
        self.case, self.held, self.always = case, {short: {} for short in URLS}, set()
        self.out, self.wanted = asyncio.Queue(), {short: [] for short in URLS}
        self.sent, self.count, self.nacks = {}, 0, []
        self.last = asyncio.get_running_loop().time()
        self.given = set()

    def request(self, request):
        short = TYPES.get(request.type_url)
        if short is None:
            return
        self.last = asyncio.get_running_loop().time()
        if request.HasField("error_detail"):
            names = self.sent.get(request.response_nonce, (short, []))[1]
            self.nacks.append([short, names, request.error_detail.message])
        names = sorted(set(request.resource_names))
        new = set(names) - set(self.wanted[short])
        self.wanted[short] = names
        if new & self.held[short].keys():
            self.send(short)

    def send(self, short):
        names = [n for n in self.held[short] if n in self.wanted[short] or (short, n) in self.always]
        if not names and not (short in FULL and short in self.given):
            return
        self.given.add(short)
        self.count += 1
        nonce = str(self.count)
        response = discovery_pb2.DiscoveryResponse(version_info=nonce, nonce=nonce, type_url=URLS[short])
        for name in names:
            response.resources.add(type_url=URLS[short], value=self.held[short][name])
        self.sent[nonce] = (short, names)
        self.last = asyncio.get_running_loop().time()
        self.out.put_nowait(response)

    def step(self, changes):
        touched = []
        for short, name, body, always in changes:
            if body is None:
                self.held[short].pop(name, None)
            else:
                self.held[short][name] = base64.b64decode(body)
            if always:
                self.always.add((short, name))
            if short not in touched and (always or name in self.wanted[short]):
                touched.append(short)
        for short in touched:
            self.send(short)

    async def quiet(self):
        loop = asyncio.get_running_loop()
        self.last = loop.time()
        while (left := self.last + self.case["quiet"] - loop.time()) > 0:
            await asyncio.sleep(left)


async def ads(requests, context):
    play = None
    reader = None
    try:
        first = await anext(requests)
        play = plays.get(first.resource_names[0]) if first.resource_names else None
        if play is None:
            return
        play.request(first)

        async def read():
            async for request in requests:
                play.request(request)

        reader = asyncio.create_task(read())
        while True:
            yield await play.out.get()
    finally:
        if reader:
            reader.cancel()


class Backend(grpc.GenericRpcHandler):
    def __init__(self, name):
        async def answer(request, context):
            return name

        self.handler = grpc.unary_unary_rpc_method_handler(answer)

    def service(self, details):
        return self.handler


class Control(grpc.GenericRpcHandler):
    def service(self, details):
        if details.method != ADS:
            return None
        return grpc.stream_stream_rpc_method_handler(
            ads, discovery_pb2.DiscoveryRequest.FromString, discovery_pb2.DiscoveryResponse.SerializeToString
        )


async def call(channel, path, seconds):
    try:
        return "ok " + (await channel.unary_unary(path)(b"", timeout=seconds)).decode()
    except grpc.aio.AioRpcError as error:
        return f"{error.code().name} " + " ".join((error.details() or "").split())


async def play_case(case):
    play = plays[case["id"]] = Play(case)
    options = [("grpc.default_authority", case["authority"]), ("grpc.use_local_subchannel_pool", 1)]
    options += [("grpc.enable_http_proxy", 0), ("grpc.initial_reconnect_backoff_ms", 200)]
    channel = grpc.aio.insecure_channel("xds:///" + case["id"], options=options)
    steps = []
    try:
        for step in case["steps"]:
            begin = asyncio.get_running_loop().time()
            play.nacks = []
            play.step(step["changes"])
            channel.get_state(try_to_connect=True)
            await play.quiet()
            if step["wait"]:
                await asyncio.sleep(max(0, begin + TIMER + 1.5 - asyncio.get_running_loop().time()))
                await play.quiet()
            calls = await asyncio.gather(*[call(channel, path, case["slow"]) for path in case["paths"]])
            names = {short: names for short, names in play.wanted.items()}
            steps.append({"names": names, "nacks": play.nacks, "calls": calls})
    finally:
        await channel.close()
        del plays[case["id"]]
    say({"id": case["id"], "steps": steps})


def say(value):
    sys.stdout.write(json.dumps(value, separators=(",", ":")) + "\n")
    sys.stdout.flush()


async def main():
    servers, ports = [], []
    for number in range(BACKENDS):
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((Backend(str(number).encode()),))
        ports.append(server.add_insecure_port("127.0.0.1:0"))
        servers.append(server)
    control = grpc.aio.server()
    control.add_generic_rpc_handlers((Control(),))
    port = control.add_insecure_port("127.0.0.1:0")
    for server in [*servers, control]:
        await server.start()
    bootstrap = {
        "xds_servers": [{"server_uri": f"127.0.0.1:{port}", "channel_creds": [{"type": "insecure"}]}],
        "node": {"id": "oracle"},
        "authorities": {"known": {}},
    }
    os.environ["GRPC_XDS_BOOTSTRAP_CONFIG"] = json.dumps(bootstrap)
    say({"backends": ports})
    loop, turns, tasks = asyncio.get_running_loop(), asyncio.Semaphore(AT_ONCE), set()

    async def one(case):
        # A case that waits for timers costs nothing meanwhile, so it takes no turn.
        if any(step["wait"] for step in case["steps"]):
            await play_case(case)
        else:
            async with turns:
                await play_case(case)

    while line := await loop.run_in_executor(None, sys.stdin.readline):
        task = asyncio.create_task(one(json.loads(line)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    if tasks:
        await asyncio.wait(tasks)


asyncio.run(main())
os._exit(0)  # without waiting for what C-core still closes
