"""Trains a served model from Python, with the standard library only.

    npx troupe serve examples/hello/job.ts --socket /tmp/model.sock &
    python3 examples/service/train.py /tmp/model.sock
"""

import json
import sys

from client import UnixConnection


class Model:
    """A model that `troupe serve` has opened. Each call returns its answer."""

    def __init__(self, path):
        self.connection = UnixConnection(path)

    def ask(self, call, **fields):
        self.connection.request("POST", f"/{call}", json.dumps(fields), {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        content = json.loads(answer.read())
        if answer.status >= 400:
            raise RuntimeError(content["message"])
        return content


# #region train
def main(path):
    model = Model(path)
    # The job's own data, by position.
    for step in range(60):
        answer = model.ask("accumulate/loss", batch={"split": "train", "position": 16 * step, "numSamples": 16})
        model.ask("step")
    print(f"loss {answer['lossNats']:.3f} after 60 steps")
    # Data of one's own: 32 bytes, and the byte that follows each.
    text = b"The cat sat on the mat. The dog r"
    batch = {"inputIds": [list(text[:-1])] * 4, "targets": [list(text[1:])] * 4}
    for _ in range(160):
        answer = model.ask("accumulate/loss", batch=batch)
        model.ask("step", lr=6e-3)
    print(f"loss {answer['lossNats']:.3f} on a sentence of one's own")
    (written,) = model.ask("generate", prompts=[list(b"The cat ")], maxNewTokens=16, temperature=0)["texts"]
    print("The cat " + written["text"])
    saved = model.ask("save")
    print(f"step {saved['step']} is durable in {saved['path']}")
# #endregion


if __name__ == "__main__":
    main(sys.argv[1])
