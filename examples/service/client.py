"""A client of `troupe checkpoint serve`, with Python's standard library only.

    troupe checkpoint serve --dir runs/mine --socket /tmp/troupe.sock &
    python3 client.py /tmp/troupe.sock
"""

import array
import http.client
import json
import socket
import sys
import threading
import urllib.parse


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self.path)


class Checkpoints:
    """Saves named tensors, whole or in slices, and reads them back. One for each thread."""

    def __init__(self, path=None, port=None, token=None):
        self.connection = UnixConnection(path) if path else http.client.HTTPConnection("127.0.0.1", port)
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}

    def put(self, step, name, dtype, shape, data, offset=None, slice_shape=None):
        """Hands over the bytes of a tensor, row-major and little-endian, or of the slice that begins at `offset`."""
        headers = {
            "Content-Type": "application/octet-stream",
            "Troupe-Dtype": dtype,
            "Troupe-Shape": ",".join(map(str, shape)),
        }
        if offset is not None:
            headers["Troupe-Offset"] = ",".join(map(str, offset))
            headers["Troupe-Slice-Shape"] = ",".join(map(str, slice_shape))
        self.ask("PUT", f"/checkpoints/{step}/tensors/{urllib.parse.quote(name, safe='')}", data, headers)

    def commit(self, step, metadata):
        """Returns once everything is on the disk and was read again; says where."""
        body = json.dumps({"metadata": metadata})
        return json.loads(self.ask("POST", f"/checkpoints/{step}/commit", body, {"Content-Type": "application/json"}))

    def read(self, step, name):
        """The bytes of a whole tensor."""
        return self.ask("GET", f"/checkpoints/{step}/tensors/{urllib.parse.quote(name, safe='')}")

    def ask(self, method, path, body=None, headers=None):
        self.connection.request(method, path, body, {**self.headers, **(headers or {})})
        answer = self.connection.getresponse()
        content = answer.read()
        if answer.status >= 400:
            raise RuntimeError(f"{method} {path}: {answer.status} {content.decode()}")
        return content


def main(path):
    rows, columns, step = 1000, 256, 100

    def worker(rank):
        """Each of two workers has half of the rows."""
        half = array.array("f", [rank + 1.0] * (rows // 2 * columns))
        Checkpoints(path).put(
            step, "linear.weight", "F32", (rows, columns), half.tobytes(), (rank * rows // 2, 0), (rows // 2, columns)
        )

    workers = [threading.Thread(target=worker, args=(rank,)) for rank in range(2)]
    for thread in workers:
        thread.start()
    for thread in workers:
        thread.join()
    checkpoints = Checkpoints(path)
    checkpoints.put(step, "linear.bias", "F32", (rows,), array.array("f", range(rows)).tobytes())
    saved = checkpoints.commit(step, {"loss": 0.25})
    weight = array.array("f", checkpoints.read(step, "linear.weight"))
    print(f"durable in {saved['path']}, verified: {saved['verified']}")
    print(f"read back {len(weight)} weights, the first {weight[0]}, the last {weight[-1]}")


if __name__ == "__main__":
    main(sys.argv[1])
