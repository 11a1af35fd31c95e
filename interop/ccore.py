"""A gRPC client (C-core) that finds its servers by xDS, and two servers. Answers each line of standard input.

backends        the ports of the servers a and b
rpc TARGET      the name of the server that answers a call to xds:///TARGET
fail TARGET     a call that the server fails
connect TARGET  makes the channel look for its servers, without a call
close TARGET
"""

import sys
from concurrent import futures

import grpc

METHOD = "/interop.Backend/Name"
FAILS = "/interop.Backend/Fail"


class Backend(grpc.GenericRpcHandler):
    def __init__(self, name):
        self.name = name

    def service(self, details):
        if details.method == METHOD:
            return grpc.unary_unary_rpc_method_handler(lambda request, context: self.name)
        if details.method == FAILS:
            fail = lambda request, context: context.abort(grpc.StatusCode.INTERNAL, "as asked")
            return grpc.unary_unary_rpc_method_handler(fail)
        return None


def serve(name):
    server = grpc.server(futures.ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((Backend(name),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, port


servers = [serve(b"a"), serve(b"b")]
channels = {}


def answer(words):
    if words[0] == "backends":
        return " ".join(str(port) for _, port in servers)
    target = words[1]
    if words[0] == "close":
        channels.pop(target).close()
        return target
    if target not in channels:
        channels[target] = grpc.insecure_channel("xds:///" + target)
    if words[0] == "connect":
        channels[target].subscribe(lambda state: None, try_to_connect=True)
        return target
    method = FAILS if words[0] == "fail" else METHOD
    return channels[target].unary_unary(method)(b"", timeout=5).decode()


for line in sys.stdin:
    try:
        print("ok", answer(line.split()), flush=True)
    except grpc.RpcError as error:
        print("error", error.code(), " ".join(error.details().split()), flush=True)
