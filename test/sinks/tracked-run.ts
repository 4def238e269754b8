// Tracks a run on the MLflow server at its first argument, with the folder at its second: each line of standard input is an event's kind
// and fields. The program that is killed.
import { createInterface } from "node:readline";
import { mlflowSink } from "../../src/tools/sinks/index.ts";
import { stamped } from "../events/samples.ts";

const [, , url = "", folder = ""] = process.argv;
const sink = mlflowSink({ url, folder, checkpoints: true, environment: {} });
for await (const line of createInterface({ input: process.stdin })) {
  const [kind, fields] = JSON.parse(line) as Parameters<typeof stamped>;
  sink.write(stamped(kind, fields));
}
