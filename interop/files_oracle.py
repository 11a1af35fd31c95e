"""What Envoy makes of files: each file of a recording is given to a real Envoy, and its result is recorded again.

files_oracle.py ENVOY RECORDING

An entry of the recording is {"SUFFIX: NAME": {"file": TEXT}}, where SUFFIX is `yaml` or `json`. `result` becomes the
counter of Envoy's CDS that the file increased, `success`, `failure` or `rejected`, or `crash`; `clusters` are those
that Envoy has after a success. A new entry needs no more than its file.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request

RESULTS = ["success", "failure", "rejected"]
EMPTY = '{"resources": []}'
BOOTSTRAP = """
node: {{id: files, cluster: files}}
admin: {{address: {{socket_address: {{address: 127.0.0.1, port_value: 0}}}}}}
dynamic_resources: {{cds_config: {{resource_api_version: V3, path_config_source: {{path: {path}}}}}}}
"""


def until(what, seen, seconds=60):
    """Returns the first value of `seen()` that is true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if value := seen():
                return value
        except OSError:
            pass  # not up yet
        time.sleep(0.01)
    raise TimeoutError(what)


class Envoy:
    """An Envoy whose clusters are in one file."""

    def __init__(self, binary, folder, suffix):
        self.file, self.moved = os.path.join(folder, "cds." + suffix), os.path.join(folder, ".new")
        self.admin, bootstrap = os.path.join(folder, "admin"), os.path.join(folder, "envoy.yaml")
        with open(bootstrap, "w") as out:
            out.write(BOOTSTRAP.format(path=self.file))
        self.command = [binary, "-c", bootstrap, "--concurrency", "1", "-l", "off", "--use-dynamic-base-id"]
        self.command += ["--admin-address-path", self.admin]
        self.process = None

    def start(self):
        self.put(EMPTY)
        if os.path.exists(self.admin):
            os.remove(self.admin)
        self.process = subprocess.Popen(self.command)

        def started():
            if self.process.poll() is not None:
                raise ValueError("Envoy ended at its start")
            return os.path.exists(self.admin) and self.counters()["success"]

        until("Envoy starts", started)

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()

    def get(self, path):
        with open(self.admin) as address:
            url = "http://" + address.read() + path
        return json.load(urllib.request.urlopen(url, timeout=10))

    def counters(self):
        stats = self.get("/stats?format=json&filter=cluster_manager.cds.update")["stats"]
        values = {stat["name"].rsplit("update_")[-1]: stat["value"] for stat in stats if "value" in stat}
        return {result: values.get(result, 0) for result in RESULTS}

    def put(self, text):
        """Moves a file into place, which is what Envoy watches for."""
        with open(self.moved, "wb") as out:
            out.write(text.encode())
        os.rename(self.moved, self.file)

    def read(self, text):
        """Returns the counter that a file increases, or None if Envoy ended."""
        before = self.counters()
        self.put(text)

        def increased():
            if self.process.poll() is not None:
                return ["crash"]
            after = self.counters()
            return [result for result in RESULTS if after[result] > before[result]]

        return until(f"Envoy reads {text!r}", increased)[0]

    def record(self, text):
        """Returns what Envoy makes of a file, and has it forget the file."""
        entry = {"result": self.read(text)}
        if entry["result"] == "success":
            dump = self.get("/config_dump?resource=dynamic_active_clusters")
            entry["clusters"] = [config["cluster"] for config in dump.get("configs", [])]
        if entry["result"] == "crash":
            self.start()
        elif self.read(EMPTY) != "success":
            raise ValueError(f"no empty file after {text!r}")
        return {**entry, "file": text}


def main():
    binary, recording = sys.argv[1:]
    with open(recording) as file:
        before = json.load(file)
    after = {}
    for suffix in ["json", "yaml"]:
        with tempfile.TemporaryDirectory() as folder:
            envoy = Envoy(binary, folder, suffix)
            try:
                envoy.start()
                for name in before:
                    if name.split(":")[0] == suffix:
                        entry = envoy.record(before[name]["file"])
                        # Envoy writes the keys of a map in any order: what is equal stays as it was.
                        after[name] = before[name] if entry == before[name] else entry
            finally:
                envoy.stop()
    lines = [f"{json.dumps(name)}: {json.dumps(after[name], separators=(',', ':'))}" for name in sorted(after)]
    with open(recording, "w") as out:
        out.write("{\n" + ",\n".join(lines) + "\n}\n")
    changed = [name for name in sorted(before) if before[name] != after.get(name)]
    print(f"{len(after)} files, {len(changed)} of them with another result", *changed, sep="\n")


main()
