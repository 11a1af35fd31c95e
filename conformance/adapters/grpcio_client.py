"""A gRPC client (C-core, grpcio) that does nothing but resolve xds:///l1, for --induced reference."""

import time
import grpc

channel = grpc.insecure_channel("xds:///l1")
channel.subscribe(lambda state: None, try_to_connect=True)
while True:
    time.sleep(1)
