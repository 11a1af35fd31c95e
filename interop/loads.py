"""The metrics of load reports: C-core, whose backend sends metrics with its answers, beside xds_client, which is told the same.

loads.py XDS_CLIENT DIR
"""

import json
import os
import subprocess
import sys
import threading
import time
from concurrent import futures

import grpc
from envoy.service.load_stats.v3 import lrs_pb2, lrs_pb2_grpc
from xds.data.orca.v3 import orca_load_report_pb2

from csds import CDS, EDS, LDS, RDS, Plane, check, cluster, endpoints, listener, route, until

# Of each call: what the backend says, and under which name a report has it.
CALLS = [{"cpu_utilization": 0.5, "mem_utilization": 0.25, "queue": 3.0}] * 6 + [{"queue": 1.5, "rate": 8.0}] * 4
FIELDS = ["cpu_utilization", "mem_utilization", "application_utilization"]


class Reports(lrs_pb2_grpc.LoadReportingServiceServicer):
    """Asks for the loads of all clusters, and sums what comes."""

    def __init__(self):
        self.lock, self.sums, self.count = threading.Lock(), {}, 0

    def StreamLoadStats(self, requests, context):
        for number, request in enumerate(requests):
            if number == 0:
                response = lrs_pb2.LoadStatsResponse(send_all_clusters=True)
                response.load_reporting_interval.seconds = 1
                yield response
            with self.lock:
                for stats in request.cluster_stats:
                    for of in stats.upstream_locality_stats:
                        self.count += of.total_successful_requests
                        self.add(of)

    def add(self, of):
        at = f"{of.locality.region}/{of.locality.zone}/{of.locality.sub_zone}"
        found = [(metric.metric_name, metric) for metric in of.load_metric_stats]
        found += [(name, getattr(of, name)) for name in FIELDS if of.HasField(name)]
        for name, metric in found:
            count, total = self.sums.get((at, name), (0, 0.0))
            count += metric.num_requests_finished_with_metric
            self.sums[(at, name)] = (count, total + metric.total_metric_value)

    def of(self):
        with self.lock:
            return self.count, dict(self.sums)


class Backend(grpc.GenericRpcHandler):
    """Answers each call with its metrics (gRFC A51)."""

    def __init__(self):
        self.calls = iter(CALLS)

    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(self.answer)

    def answer(self, request, context):
        report = orca_load_report_pb2.OrcaLoadReport()
        for name, value in next(self.calls).items():
            if name in FIELDS:
                setattr(report, name, value)
            else:
                report.named_metrics[name] = value
        context.set_trailing_metadata((("endpoint-load-metrics-bin", report.SerializeToString()),))
        return b""


def plane(port):
    made, reports = Plane(), Reports()
    lrs_pb2_grpc.add_LoadReportingServiceServicer_to_server(reports, made.server)
    name, of = cluster()
    of.lrs_server.self.SetInParent()
    of.lrs_report_endpoint_metrics.extend(["named_metrics.*", *FIELDS])
    made.say(LDS, "1", [listener("l1")])
    made.say(RDS, "1", [route()])
    made.say(CDS, "1", [(name, of)])
    made.say(EDS, "1", [endpoints(port)])
    return made, reports


def of_core():
    server = grpc.server(futures.ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers((Backend(),))
    made, reports = plane(server.add_insecure_port("127.0.0.1:0"))
    server.start()
    xds = {"server_uri": f"127.0.0.1:{made.port}", "channel_creds": [{"type": "insecure"}]}
    os.environ["GRPC_XDS_BOOTSTRAP_CONFIG"] = json.dumps({"xds_servers": [xds], "node": {"id": "n"}})
    os.environ["GRPC_EXPERIMENTAL_XDS_ORCA_LRS_PROPAGATION"] = "true"
    channel = grpc.insecure_channel("xds:///l1")
    call = channel.unary_unary("/interop.Backend/Name")
    for _ in CALLS:
        call(b"", wait_for_ready=True, timeout=20)
    return counted(reports, len(CALLS))


def counted(reports, count):
    until(lambda: None if reports.of()[0] >= count else f"{reports.of()} of {count} calls")
    time.sleep(1.5)  # none is reported twice
    return reports.of()[1]


def of_own(program, folder):
    made, reports = plane(1)
    arguments = [program, "--server", f"http://127.0.0.1:{made.port}", "--variant", "sotw", "--dialect", "grpc"]
    arguments += ["--node", "n", "--subscribe", "cds=c1", "--load-report", "--for", "60"]
    with open(os.path.join(folder, "loads.jsonl"), "w") as out:
        child = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=out, text=True)

    def say(line):
        child.stdin.write(line + "\n")
        child.stdin.flush()

    def asked():
        say("call c1 r// ok")
        return None if reports.of()[0] > 0 else "no report"

    try:
        until(asked)  # what is counted before it is asked for is not reported
        time.sleep(1.5)
        before = reports.of()[0]
        for call in CALLS:
            name = lambda metric: metric if metric in FIELDS else f"named_metrics.{metric}"
            # To C-core a report without a utilization is one of 0, because the message has no presence.
            metrics = {**dict.fromkeys(FIELDS, 0.0), **call}
            say(" ".join(["call c1 r// ok", *(f"{name(metric)}={value}" for metric, value in metrics.items())]))
        return counted(reports, before + len(CALLS))
    finally:
        child.kill()
        child.wait()


def main():
    core, own = of_core(), of_own(*sys.argv[1:])
    check(core and core == own, f"C-core says {core}\nxds_client {own}")
    print(f"equal: {core}", flush=True)


try:
    main()
except AssertionError as error:
    print(error, file=sys.stderr, flush=True)
    os._exit(1)
os._exit(0)  # without waiting for threads that read streams
