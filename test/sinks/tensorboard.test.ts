import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { bytesField, floatField, message } from "../../src/library/protobuf.ts";
import { tensorBoardSink } from "../../src/tools/sinks/index.ts";
import {
  KnownScalar,
  record,
  summaryRecord,
  valueField,
  versionEvent,
} from "../../src/tools/sinks/tensorboard/summary.ts";
import { stamped } from "../events/samples.ts";
import { recordsOf, scalarsOf } from "./tensorboard-file.ts";

const timeMs = 1_700_000_000_000;
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

describe("the bytes of an event file", () => {
  // Computed beforehand; the checksums agree with those of TensorBoard's own Python code.
  test("are TensorBoard's for the version, and for a scalar as PyTorch's SummaryWriter writes it", () => {
    expect(hex(record(versionEvent(timeMs)))).toBe(
      "1800000000000000a37f4b220900000040fc54d9411a0d627261696e2e4576656e743a32eced8f9d",
    );
    expect(hex(summaryRecord(timeMs, 7, [new KnownScalar("loss").at(0.5)]))).toBe(
      "1a00000000000000129bd82d0900000040fc54d94110072a0d0a0b0a046c6f7373150000003f2c75eab7",
    );
  });
});

test("a scalar that the file knows has the bytes of any other, whatever it was before", () => {
  const known = new KnownScalar("time_ms/step");
  for (const value of [0.5, -1e30, Number.NaN, Number.POSITIVE_INFINITY, 0]) {
    const plain = message(bytesField(1, "time_ms/step"), floatField(2, value));
    expect(hex(known.at(value))).toBe(hex(Uint8Array.from(valueField(plain))));
  }
});

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "troupe-tensorboard-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Writes a little of everything. */
async function writeRun(logFolder: string): Promise<void> {
  const sink = tensorBoardSink(logFolder);
  sink.write(stamped("run.started"));
  for (const step of [1, 2, 3]) {
    sink.write(
      stamped("step.finished", {
        step,
        lossNats: 4 - step,
        gradientNorm: step === 1 ? Number.NaN : step,
        losses: { labels: 1 },
        metrics: { right: 0.25 },
      }),
    );
  }
  sink.write(stamped("evaluation.finished", { step: 3 }));
  sink.write(stamped("memory.measured", { step: 3 }));
  sink.write(stamped("histogram.measured", { step: 3 }));
  sink.write(stamped("text.generated", { step: 3, text: "const x = 1;\n# no heading" }));
  sink.write(stamped("actor.stalled"));
  sink.write(stamped("run.finished", { steps: 3 }));
  await sink.close();
}

describe("the TensorBoard sink", () => {
  test("has a curve for each named loss and score of each split, and the job's settings for the hparams page", async () => {
    const path = folder();
    await writeRun(path);
    const events = recordsOf(readFileSync(join(path, readdirSync(path)[0] as string)));
    const scalars = events.flatMap(scalarsOf);
    expect(scalars.filter(({ tag }) => tag === "loss/train")).toEqual([
      { step: 1, tag: "loss/train", value: 3 },
      { step: 2, tag: "loss/train", value: 2 },
      { step: 3, tag: "loss/train", value: 1 },
    ]);
    const tags = new Set(scalars.map(({ tag }) => tag));
    for (const tag of [
      "loss_train/labels",
      "metrics_train/right",
      "loss/validation",
      "loss_validation/auxiliary",
      "metrics_validation/accuracy",
      "speed/samples_per_second",
    ])
      expect(tags).toContain(tag);
    const settings = events
      .find((event) => event.includes("_hparams_/session_start_info"))
      ?.toString("latin1");
    for (const name of ["layers", "dropout", "shakespeare.txt", "job.seed"]) expect(settings).toContain(name);
  });

  test("begins each time a file of its own, with the version first, and every checksum right", async () => {
    const path = folder();
    await writeRun(path);
    const [first = ""] = readdirSync(path);
    const before = readFileSync(join(path, first));
    await writeRun(path);
    const names = readdirSync(path);
    expect(names).toHaveLength(2);
    for (const name of names) expect(name).toMatch(/^events\.out\.tfevents\.\d{10}\..+\.\d+\.\d+$/);
    expect(readFileSync(join(path, first))).toEqual(before);
    const [version, ...events] = recordsOf(before);
    expect(version?.includes("brain.Event:2")).toBe(true);
    // The stalled actor is nothing that TensorBoard shows.
    expect(events).toHaveLength(9);
  });

  test("refuses a folder that cannot be made, before anything is trained", () => {
    const path = join(folder(), "file");
    writeFileSync(path, "");
    expect(() => tensorBoardSink(join(path, "runs"))).toThrow(/ENOTDIR/);
  });

  const python = process.env.TROUPE_PYTHON;
  const hasTensorBoard = python !== undefined && spawnSync(python, ["-c", "import tensorboard"]).status === 0;

  test.skipIf(!hasTensorBoard)(
    "is read by TensorBoard's own reader (where TROUPE_PYTHON has it)",
    async () => {
      const path = folder();
      await writeRun(join(path, "run"));
      const { stdout, stderr } = spawnSync(
        python as string,
        [join(import.meta.dirname, "read-tensorboard.py"), path],
        {
          encoding: "utf8",
        },
      );
      expect(stderr.split("\n").filter((line) => /Error|Traceback/.test(line))).toEqual([]);
      const read = JSON.parse(stdout);
      expect(read.scalars["loss/train"]).toEqual([
        [1, 3],
        [2, 2],
        [3, 1],
      ]);
      expect(read.scalars["optimizer/gradient_norm"]).toEqual([
        [2, 2],
        [3, 3],
      ]);
      expect(read.scalars["memory/rank_1/optimizer_bytes"]).toEqual([[3, 34e6]]);
      expect(read.page).toEqual(read.scalars);
      // [left, right, count] of each bucket: the first begins at the smallest value.
      expect(read.histograms["gradients/transformer.h.0.attn.c_attn.weight"]).toEqual([
        [
          3,
          [
            [-1.5, 0, 1],
            [0, 1, 0],
            [1, 2, 2],
          ],
        ],
      ]);
      expect(read.texts.sample).toEqual([[3, "    const x = 1;\n    # no heading"]]);
      expect(read.texts.run[0][1]).toContain("| precision | fp32 |");
      expect(read.hparams).toMatchObject({ zero: 3, precision: "fp32", dp: 2, seed: 1337 });
      expect(read.hparams).toMatchObject({ layers: 4, dropout: 0.1, tied: true, "job.seed": 7 });
      expect(read.metrics).toMatchObject({ "loss/train": 1, "metrics_validation/accuracy": 0.5 });
      expect(read.status).toBe("STATUS_SUCCESS");
    },
  );
});
