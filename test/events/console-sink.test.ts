import { afterEach, describe, expect, test, vi } from "vitest";
import { type ConsoleSinkOptions, consoleSink } from "../../src/job/events/sinks/console-sink.ts";
import { formatBytes, formatCount, formatDuration, printable } from "../../src/job/events/words/format.ts";
import { stamped } from "./samples.ts";

class Screen {
  readonly isTTY: boolean;
  readonly columns = 100;
  text = "";

  constructor(isTTY: boolean) {
    this.isTTY = isTTY;
  }

  write(text: string): void {
    this.text += text;
  }

  /** The visible lines, each as it was last drawn. */
  lines(): string[] {
    return this.text
      .split("\n")
      .map((line) => line.slice(line.lastIndexOf("\r\u001b[2K") + 1).replace("\u001b[2K", ""));
  }
}

function run(isTTY: boolean, options: ConsoleSinkOptions = {}) {
  const screen = new Screen(isTTY);
  let nowMs = 0;
  const sink = consoleSink({ stream: screen, clock: () => nowMs, live: isTTY, color: false, ...options });
  return {
    screen,
    sink,
    step(step: number, afterMs: number) {
      nowMs += afterMs;
      sink.write(stamped("step.finished", { step }));
    },
  };
}

afterEach(() => {
  vi.unstubAllEnvs();
});

describe("on a terminal", () => {
  test("one line tells step, loss, speed, overlap, memory and the time left", () => {
    const { screen, sink, step } = run(true);
    sink.write(stamped("run.started"));
    step(500, 0);
    expect(screen.lines()).toEqual([
      "examples/gpt/job.ts: 804k parameters, 2 ranks, ZeRO 3, fp32, seed 1337, to step 2000",
      "step  500/2000  loss 1.8123  23.5k tokens/s  overlap 93 %  412 MB  ETA 0:49",
    ]);
  });

  test("a run without token counts prints samples a second, and every figure of steps and evaluations by its name", () => {
    const { screen, sink } = run(true);
    const named = { losses: { labels: 1.8, auxiliary: 0.0123 }, metrics: { "right\u001b\n": 0.25 } };
    sink.write(stamped("step.finished", { tokensPerSecond: undefined, ...named }));
    sink.write(stamped("evaluation.finished"));
    const [evaluated, progress] = screen.lines();
    expect(evaluated).toBe(
      "held-out loss 1.9051 after step 500, labels 1.9, auxiliary 0.0051, accuracy 0.5, f1 0.25",
    );
    expect(progress).toContain("loss 1.8123, labels 1.8, auxiliary 0.0123, right␛  0.25  367 samples/s");
  });

  test("the line is redrawn at most ten times a second, and ends on the last step, above what the run came to", async () => {
    const { screen, sink, step } = run(true);
    sink.write(stamped("run.started"));
    for (let index = 1; index <= 1000; index++) step(index, 1);
    expect(screen.text.split("\u001b[2K").length - 1).toBeLessThanOrEqual(10);
    sink.write(stamped("run.finished", { steps: 1000 }));
    await sink.close();
    const [, progress, done, ...rest] = screen.lines();
    expect(progress).toContain("step 1000/2000");
    expect(done).toBe("done: 1000 steps in 1:23, last loss 1.7000");
    expect(rest).toEqual([""]);
  });

  test("other lines stand above it, and it is left standing at the end", async () => {
    const { screen, sink, step } = run(true);
    step(1, 0);
    sink.write(stamped("checkpoint.saved"));
    sink.write(stamped("actor.started"));
    step(2, 200);
    await sink.close();
    await sink.close();
    const lines = screen.lines();
    expect(lines.length).toBe(3);
    expect(lines[0]).toBe("saved runs/gpt/step-000500 (9.60 MB in 0.1 s)");
    expect(lines[1]).toContain("step 2  loss");
    expect(lines[2]).toBe("");
  });

  test("the line fits, so that it can be erased", () => {
    const screen = Object.assign(new Screen(true), { columns: 20 });
    const { step } = run(true, { stream: screen });
    step(1, 0);
    expect(screen.lines().at(-1)?.length).toBe(19);
  });

  test("failures are red unless NO_COLOR is set", () => {
    for (const [noColor, isRed] of [
      ["", true],
      ["1", false],
    ] as const) {
      vi.stubEnv("CI", "");
      vi.stubEnv("TERM", "xterm");
      vi.stubEnv("NO_COLOR", noColor);
      const screen = new Screen(true);
      consoleSink({ stream: screen }).write(stamped("run.failed"));
      expect(screen.text.startsWith("\u001b[31m")).toBe(isRed);
    }
  });

  test("nothing is redrawn where CI is set or the terminal is dumb", () => {
    for (const [name, value] of [
      ["CI", "true"],
      ["TERM", "dumb"],
    ] as const) {
      vi.stubEnv("CI", "");
      vi.stubEnv(name, value);
      const screen = new Screen(true);
      const sink = consoleSink({ stream: screen });
      sink.write(stamped("step.finished"));
      sink.write(stamped("run.failed"));
      expect(screen.text).not.toContain("\u001b");
      vi.unstubAllEnvs();
    }
  });
});

describe("elsewhere", () => {
  test("a line is written every five seconds, and for the last step", async () => {
    const { screen, sink, step } = run(false);
    for (let index = 1; index <= 100; index++) step(index, 99);
    sink.write(stamped("run.finished"));
    await sink.close();
    const steps = screen.lines().flatMap((line) => /^step (\d+)/.exec(line)?.[1] ?? []);
    expect(steps).toEqual(["1", "52", "100"]);
    expect(screen.text).not.toContain("\u001b");
    expect(screen.text.endsWith("\n")).toBe(true);
  });

  test("of anomalies that are only reported one a minute is shown, with how many were not; of those that change a run each", () => {
    const { screen, sink, step } = run(false);
    const spike = { anomaly: "loss-spike", action: "told", value: 2, limit: 1 } as const;
    for (let index = 1; index <= 200; index++) {
      sink.write(stamped("anomaly.detected", { ...spike, step: index }));
      step(index, 500);
    }
    sink.write(stamped("anomaly.detected", { ...spike, step: 201, action: "skipped" }));
    const lines = screen.lines().filter((line) => line.includes("loss-spike"));
    expect(lines).toEqual([
      "step 1: loss-spike, 2 where 1 is the limit: training goes on",
      "step 121: loss-spike, 2 where 1 is the limit: training goes on (and 119 more since the last one shown)",
      "step 201: loss-spike, 2 where 1 is the limit: skipped",
    ]);
  });

  test("a loss of NaN is printed without a limit, as there is none", () => {
    const { screen, sink } = run(false);
    const wrong = {
      anomaly: "loss-not-finite",
      value: Number.NaN,
      limit: Number.MAX_VALUE,
      action: "stopped",
    } as const;
    sink.write(stamped("anomaly.detected", { ...wrong, step: 3 }));
    expect(screen.text).toBe("step 3: loss-not-finite, NaN: stopped\n");
  });

  test("text from a model cannot steer the terminal", () => {
    const { screen, sink } = run(false);
    sink.write(stamped("text.generated"));
    expect(screen.text).toBe("text after step 2000:\ndeclare function\n␛[2Jevil\n");
  });
});

describe("figures", () => {
  test.each([
    [0, "0"],
    [999, "999"],
    [1234, "1.23k"],
    [23_456.7, "23.5k"],
    [999_999, "1.00M"],
    [124e6, "124M"],
    [0.5, "0.50"],
    [Number.NaN, "?"],
  ])("%d is written %s", (count, text) => expect(formatCount(count)).toBe(text));

  test("bytes and durations have their units", () => {
    expect([formatBytes(512), formatBytes(1_288_490_188)]).toEqual(["512 B", "1.29 GB"]);
    expect([formatDuration(0), formatDuration(59_999), formatDuration(3_723_000)]).toEqual([
      "0:00",
      "1:00",
      "1:02:03",
    ]);
    expect(formatDuration(Number.POSITIVE_INFINITY)).toBe("?");
  });

  test("control characters become visible, line breaks and tabs stay", () => {
    expect(printable("a\tb\n\u0007\u009b")).toBe("a\tb\n␇\uFFFD");
  });
});
