// A thread that does by bare postMessage what the actors of this benchmark do: echo, count, ask and wait, or send.
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";

/** The work of such a thread. */
export interface RawJob {
  readonly role: "echo" | "count" | "send" | "wait";
  readonly port: MessagePort;
  /** Doorbell of the thread that blocks for an echo. */
  readonly bell?: SharedArrayBuffer;
}

const { role, port, bell } = workerData as RawJob;
const word = bell === undefined ? undefined : new Int32Array(bell);

if (role === "echo") {
  port.on("message", (message: unknown) => {
    port.postMessage(message);
    if (word === undefined) return;
    Atomics.add(word, 0, 1);
    Atomics.notify(word, 0);
  });
}

if (role === "count") {
  let numReceived = 0;
  let numExpected = 0;
  const report = (): void => {
    if (numExpected === 0 || numReceived < numExpected) return;
    parentPort?.postMessage(numReceived);
    numReceived = 0;
    numExpected = 0;
  };
  parentPort?.on("message", (count: number) => {
    numExpected = count;
    report();
  });
  port.on("message", () => {
    numReceived += 1;
    if (numReceived === numExpected) report();
  });
}

if (role === "send") {
  parentPort?.on("message", (count: number) => {
    for (let value = 0; value < count; value++) port.postMessage({ step: 7, block: "layers.3", value });
  });
}

if (role === "wait" && word !== undefined) {
  parentPort?.on("message", (count: number) => {
    const startMs = performance.now();
    for (let value = 0; value < count; value++) {
      const seen = Atomics.load(word, 0);
      port.postMessage({ step: 7, block: "layers.3", value });
      while (receiveMessageOnPort(port) === undefined) Atomics.wait(word, 0, seen, 1_000);
    }
    parentPort?.postMessage(((performance.now() - startMs) * 1_000) / count);
  });
}
