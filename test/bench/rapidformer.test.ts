import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it, vi } from "vitest";
import { measureTables } from "../../bench/rapidformer/command.ts";
import { measureConvergence } from "../../bench/rapidformer/convergence.ts";
import { dimensions, sizes } from "../../bench/rapidformer/dimensions.ts";
import { KeptResults } from "../../bench/rapidformer/kept-results.ts";
import { measureRow } from "../../bench/rapidformer/measure.ts";
import { measurePeer } from "../../bench/rapidformer/peer.ts";
import { planRow } from "../../bench/rapidformer/plan-row.ts";
import { type BenchResult, markdownReport } from "../../bench/rapidformer/report.ts";
import { runBench } from "../../bench/rapidformer/run-bench.ts";

const named = (name: string) => dimensions.find((each) => each.name === name) as (typeof dimensions)[0];

describe("the benchmark of Rapidformer's tables", () => {
  const folder = mkdtempSync(join(tmpdir(), "troupe-test-"));
  afterAll(() => {
    vi.restoreAllMocks();
    rmSync(folder, { recursive: true, force: true });
  });

  it("has the rows of the original's four tables in their order, with what it prints of each", () => {
    const rows = dimensions.map(({ letter, rows }) => [letter, rows.length]);
    expect(rows).toEqual([
      ["A", 2],
      ["B", 8],
      ["C", 7],
      ["D", 4],
    ]);
    const printed = dimensions.flatMap((each) => each.rows.map(({ published }) => published));
    expect(printed.filter(({ instead }) => instead === "NA")).toHaveLength(2);
    expect(printed.filter(({ instead }) => instead === "OOM")).toHaveLength(1);
    const sum = printed.reduce((all, { megabytes = 0 }) => all + megabytes, 0);
    expect(sum).toBe(
      17025 +
        12698 +
        25061 +
        22077 +
        17113 +
        15709 +
        15693 +
        25061 +
        11300 +
        5673 +
        12375 +
        8141 +
        6211 +
        5673 +
        2112 +
        2127 +
        2430 +
        2289,
    );
  });

  it("measures a table in windows, refuses rows aloud, and writes pages with pictures", async () => {
    let out = "";
    vi.spyOn(process.stdout, "write").mockImplementation((text, done?: unknown) => {
      out += text;
      if (typeof done === "function") done();
      return true;
    });
    vi.spyOn(process.stderr, "write").mockImplementation(() => true);
    await measureTables({ dimension: ["graph"], convergence: 0, windowSteps: 1, json: true, out: folder });
    const result = JSON.parse(out) as BenchResult;
    const [plain, plainMixed, graph, mixed] = result.tables[0]?.rows ?? [];
    for (const row of [plain, plainMixed, graph, mixed]) {
      expect(row?.measured?.samplesPerSecond.mean).toBeGreaterThan(0);
      expect(row?.measured?.lossesNats).toHaveLength(8);
      expect(row?.measured?.peakBytes).toBeGreaterThan(1e6);
    }
    // The same sums by other kernels: what is last in float32 moves, and is no other number.
    const [composed = [], fused = []] = [plain, graph].map((row) => row?.measured?.lossesNats);
    expect(composed).not.toEqual(fused);
    expect(Math.max(...fused.map((loss, step) => Math.abs(loss - (composed[step] ?? 0))))).toBeLessThan(1e-4);
    // The same samples: half the bits move the first loss by little.
    const first = [graph, mixed].map((row) => row?.measured?.lossesNats[0] ?? 0);
    expect(Math.abs((first[0] ?? 0) - (first[1] ?? 1))).toBeLessThan(0.01);
    const markdown = readFileSync(join(folder, "report.md"), "utf8");
    expect(markdown).toContain("## Table D: Graph optimisation");
    expect(markdown).toContain("![Table D: Graph optimisation: BERT, fine-tuning](picture-1.svg)");
    expect(readFileSync(join(folder, "picture-1.svg"), "utf8")).toMatch(/^<svg .*<\/svg>$/s);
    const html = readFileSync(join(folder, "report.html"), "utf8");
    expect(html).toContain("<td>graph + mixed</td>");
    expect(html.match(/<svg /g)).toHaveLength(1);
    expect(html).not.toMatch(/https?:(?!\/\/www.w3.org\/2000\/svg)/);
    expect(markdownReport(result)).not.toContain("NaN");

    // A second run measures nothing of it again, and joins what it measures to it; a line cut short by a kill is none.
    const file = join(folder, "measured.jsonl");
    appendFileSync(file, '{"of":{"table":"C"');
    const reported: string[] = [];
    const again = await runBench({
      ...{ dimensions: ["convergence"], size: "small", windows: 5, stepsOfWindow: 1, convergenceSteps: 0 },
      ...{ kept: new KeptResults(file), tell: (line: string) => reported.push(line) },
    });
    expect([reported, again.tables]).toEqual([[], result.tables]);
    const others = {
      dimensions: [],
      size: "small",
      windows: 6,
      stepsOfWindow: 1,
      convergenceSteps: 0,
    } as const;
    const apart = await runBench({ ...others, kept: new KeptResults(file), tell: () => {} });
    expect(apart.tables).toEqual([]);
  });

  it("keeps what was measured, and measures only what was not", async () => {
    const file = join(folder, "kept.jsonl");
    let numMeasured = 0;
    const measure = async () => [++numMeasured];
    const first = new KeptResults(file);
    expect(await first.take({ row: "a" }, measure)).toEqual([1]);
    expect(await first.take({ row: "b" }, undefined)).toBeUndefined();
    const next = new KeptResults(file);
    expect(await next.take({ row: "a" }, measure)).toEqual([1]);
    expect(await next.take({ row: "b" }, measure)).toEqual([2]);
    expect(next.seconds).toBeGreaterThan(first.seconds);
    expect(readFileSync(file, "utf8").split("\n")).toHaveLength(3);
  });

  const python = process.env.TROUPE_PYTHON;
  it.skipIf(python === undefined)(
    "measures stock PyTorch beside: speed and memory of replicas, shards, split layers and stages (where TROUPE_PYTHON has it)",
    async () => {
      const rows = [...named("sharding").rows.slice(-1), ...named("parallel").rows.slice(5, 6)];
      for (const row of rows) {
        const peer = await measurePeer(python as string, "gpt", row, sizes.small.gpt, {
          windows: 5,
          stepsOfWindow: 1,
        });
        if ("none" in peer) throw new Error(peer.none);
        expect(peer.samplesPerSecond.mean).toBeGreaterThan(0);
        // Parameters of float32, their gradients and both moments, once over all ranks; and not many times that.
        const numParameters = 12 * 4 * 128 ** 2 + 1024 * 128;
        expect(peer.peakBytes).toBeGreaterThan(16 * numParameters);
        expect(peer.peakBytes).toBeLessThan(6 * 16 * numParameters);
      }
    },
  );

  it("measures both cells that the original leaves open, and foretells them with the rest", () => {
    const open = named("sharding").rows.filter(({ published }) => published.instead === "NA");
    for (const row of open) {
      expect(row.isRefused).toBeUndefined();
      const planned = planRow(row, sizes.small.gpt);
      const plain = planRow(named("sharding").rows[1] as (typeof open)[0], sizes.small.gpt);
      expect(planned.totalBytes).toBeLessThan(plain.totalBytes / 2);
      expect(planned.originalRankBytes).toBeLessThan(plain.originalRankBytes / 2);
    }
  });

  it("refuses more stages than there are ranks, which Megatron quietly takes away", async () => {
    const last = named("parallel").rows.at(-1) as (typeof dimensions)[0]["rows"][0];
    const { refusal, measured } = await measureRow(named("parallel"), last, sizes.small.gpt, {
      windows: 5,
      stepsOfWindow: 1,
    });
    expect(measured).toBeUndefined();
    expect(refusal).toMatch(/expected ranks in multiples of tp 4 × pp 4 = 16, got 4/);
  });

  it("compares what strategies learn, over three seeds, with one rank", async () => {
    const names = ["one rank", "ZeRO 3"];
    const [alone, split] = await measureConvergence({ steps: 3, names, tell: () => {} });
    expect(alone?.apart).toBe(0);
    expect(split?.lossesNats).toHaveLength(3);
    expect(split?.apart).toBeLessThan(1e-5);
    expect(alone?.last.deviation).toBeGreaterThan(0);
  });

  it("says why a peer cannot be measured", async () => {
    const { rows } = named("precision");
    const [row] = rows as [(typeof rows)[0]];
    const measured = measurePeer("/nowhere/python", "bert", row, sizes.small.bert, {
      windows: 5,
      stepsOfWindow: 1,
    });
    await expect(measured).rejects.toThrow("expected /nowhere/python to train with torch");
  });

  it.each([
    [{ windows: 4 }, "expected --windows of at least 5, got 4"],
    [{ convergence: -1 }, "expected --convergence of at least 0, got -1"],
    [{ dimension: ["graph", "weather"] }, "expected --dimension precision,"],
    [{ size: "huge" }, "got huge"],
  ])("refuses %j before anything is measured", async (flags, message) => {
    await expect(measureTables(flags)).rejects.toThrow(message);
  });
});
