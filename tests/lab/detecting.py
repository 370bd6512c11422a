"""A process that asks JAX's cluster detection about environments: JSON in, JSON out."""

import json
import os
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer


def main():
    cases = json.load(sys.stdin)
    os.environ |= {"JAX_PLATFORMS": "cpu", "JAX_FORCE_TPU_INIT": "1"}  # JAX believes that it has a TPU
    import jax  # noqa: F401

    os.environ.pop("TPU_SKIP_MDS_QUERY", None)  # it set that when it found no chip
    socket.gethostbyname = lambda host: "10.0.0.1"  # every host of a case has an address
    json.dump([answer(**case) for case in cases], sys.stdout)


def answer(env, given=(None, None, None, None), metadata=None):
    """What JAX finds in an environment: [coordinator, processes, process, its devices]."""
    from jax._src import clusters
    from jax._src.clusters import cloud_tpu_cluster, cluster

    before = dict(os.environ)
    serving = Metadata.of(metadata or {})
    on_tpu = metadata is not None or "TPU_WORKER_ID" in env
    cloud_tpu_cluster.running_in_cloud_tpu_vm = cluster.running_in_cloud_tpu_vm = on_tpu
    os.environ |= {**env, "GCE_METADATA_IP": f"127.0.0.1:{serving.server_port}", "no_proxy": "*"}
    try:
        return clusters.ClusterEnv.auto_detect_unset_distributed_params(*given, None, 300)
    except LookupError as missing:
        return f"no {missing}"
    finally:
        os.environ.clear()
        os.environ.update(before)
        serving.shutdown()


class Metadata(BaseHTTPRequestHandler):
    """The metadata server of a Cloud TPU host."""

    def do_GET(self):
        key = self.path.rsplit("/", 1)[-1]
        found = self.server.rows.get(key, "").encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(found)))
        self.end_headers()
        self.wfile.write(found)

    def log_message(self, *said):
        pass

    @classmethod
    def of(cls, rows):
        server = HTTPServer(("127.0.0.1", 0), cls)
        server.rows = rows
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server


if __name__ == "__main__":
    main()
