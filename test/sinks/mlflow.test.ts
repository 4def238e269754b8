import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it, onTestFinished, vi } from "vitest";
import type { TroupeEventBody } from "../../src/job/events/index.ts";
import { mlflowSink } from "../../src/tools/sinks/index.ts";
import { MlflowClient } from "../../src/tools/sinks/mlflow/client.ts";
import { Journal, type Metric } from "../../src/tools/sinks/mlflow/journal.ts";
import { samples, stamped } from "../events/samples.ts";
import { patience } from "../fixtures/patience.ts";
import { MlflowServer } from "./mlflow-server.ts";

const scratch = mkdtempSync(join(tmpdir(), "troupe-mlflow-"));
afterAll(() => rmSync(scratch, { recursive: true }));

async function openServer(): Promise<MlflowServer> {
  const server = new MlflowServer();
  await server.open();
  onTestFinished(() => server.close());
  return server;
}

const step = (number: number) => stamped("step.finished", { step: number, lossNats: 4 / number });

describe("the MLflow sink", () => {
  it("tracks settings, figures, the machine's, checkpoints and the end", async () => {
    const server = await openServer();
    const [folder, checkpoint] = [join(scratch, "a"), join(scratch, "a", "step-000002")];
    mkdirSync(checkpoint, { recursive: true });
    writeFileSync(join(checkpoint, "model.safetensors"), "weights");
    const environment = { MLFLOW_TRACKING_TOKEN: "secret", MLFLOW_EXPERIMENT_NAME: "sorting" };
    const sink = mlflowSink({ url: server.url, folder, checkpoints: true, environment });
    sink.write(stamped("run.started"));
    for (const number of [1, 2]) sink.write(step(number));
    sink.write(stamped("evaluation.finished", { step: 2, lossNats: Number.NaN }));
    sink.write(stamped("checkpoint.saved", { step: 2, path: checkpoint }));
    sink.write(stamped("run.finished", { steps: 2 }));
    await sink.close();
    expect([...server.experiments.keys()]).toEqual(["sorting"]);
    const [run] = [...server.runs.values()];
    expect(run?.info).toMatchObject({ status: "FINISHED", run_name: "a" });
    expect(run?.params.get("numRanks")).toBe(String(samples["run.started"].numRanks));
    const of = (key: string) =>
      run?.metrics.filter((metric) => metric.key === key).map((each) => [each.step, each.value]);
    expect(of("loss/train")).toEqual([
      [1, 4],
      [2, 2],
    ]);
    expect(of("loss/validation")).toEqual([[2, "NaN"]]);
    expect(of("system/cpu_utilization_percentage")).toHaveLength(1);
    expect(run?.tags.get("troupe.checkpoint")).toBe(checkpoint);
    expect([...server.files]).toEqual([
      ["0/run-0/artifacts/checkpoints/step-000002/model.safetensors", "weights"],
    ]);
    expect([...server.authorizations]).toEqual(["Bearer secret"]);
    expect(readFileSync(join(folder, "mlflow.jsonl"), "utf8")).not.toContain("secret");
  });

  it("sends a score whose name MLflow refuses under a name that it takes, and all figures with it", async () => {
    const server = await openServer();
    const sink = mlflowSink({ url: server.url, environment: {} });
    sink.write(stamped("run.started"));
    sink.write(
      stamped("evaluation.finished", { step: 1, lossNats: 2, metrics: { "hits@1": 0.5, "Übung 1": 1 } }),
    );
    await sink.close();
    const [run] = [...server.runs.values()];
    const values = Object.fromEntries((run?.metrics ?? []).map(({ key, value }) => [key, value]));
    expect(values).toMatchObject({
      "loss/validation": 2,
      "metrics_validation/hits_1": 0.5,
      "metrics_validation/Übung 1": 1,
    });
  });

  it("gives a server that was down, is busy, and loses answers, every figure once", async () => {
    const server = await openServer();
    const reported: TroupeEventBody[] = [];
    const sink = mlflowSink({ url: server.url, environment: { MLFLOW_TRACKING_PASSWORD: "secret" } });
    sink.attach?.((event) => reported.push(event));
    server.numLost = 4; // among them the answer to the new run
    sink.write(stamped("run.started"));
    const until = async (number: number) => {
      const run = [...server.runs.values()][0];
      await vi.waitFor(
        () => expect(run?.metrics.some((metric) => metric.step === number)).toBe(true),
        patience,
      );
    };
    sink.write(step(1));
    await vi.waitFor(() => expect(server.runs.size).toBe(1), patience);
    await until(1);
    await server.close();
    for (let number = 2; number <= 40; number++) {
      sink.write(step(number));
      await sleep(50);
    }
    server.busy = [503, 429, 500];
    await server.open();
    server.numLost = 2;
    await until(40);
    expect(server.busy).toEqual([]);
    sink.write(step(41));
    sink.write(stamped("run.finished", { steps: 41 }));
    await sink.close();
    expect(server.runs.size).toBe(1);
    const losses = [...server.runs.values()][0]?.metrics.filter(({ key }) => key === "loss/train") ?? [];
    expect(losses.map((metric) => metric.step)).toEqual(Array.from({ length: 41 }, (_, index) => index + 1));
    expect(new Set(reported.map(({ kind }) => kind))).toEqual(new Set(["output.failed", "output.resumed"]));
    expect(reported.at(-1)).toMatchObject({ kind: "output.resumed", numLost: 0 });
    expect(JSON.stringify(reported)).not.toContain("secret");
  });

  it("says that a server gives no answer", async () => {
    const sockets = new Set<Socket>();
    const silent = createServer((socket) => void sockets.add(socket)).listen(0, "127.0.0.1");
    await once(silent, "listening");
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy();
      silent.close();
    });
    const soon = AbortSignal.timeout(50);
    const timeout = vi.spyOn(AbortSignal, "timeout").mockReturnValue(soon);
    onTestFinished(() => timeout.mockRestore());
    const { port } = silent.address() as AddressInfo;
    const client = new MlflowClient(`http://127.0.0.1:${port}`, {});
    await expect(client.post("runs/create", {})).rejects.toThrow("it gave no answer within 10 s");
    expect(timeout).toHaveBeenCalledWith(10_000);
  });

  it("goes on in the run of its folder when the training is resumed, and beside other runs", async () => {
    const server = await openServer();
    const folders = ["b", "c"].map((name) => join(scratch, name));
    for (const folder of folders) mkdirSync(folder);
    const track = async (folder: string | undefined, firstStep: number) => {
      const sink = mlflowSink({ url: server.url, folder, environment: {} });
      sink.write(stamped("run.started", { firstStep }));
      sink.write(step(firstStep + 1));
      sink.write(stamped("run.failed"));
      await sink.close();
    };
    await Promise.all(folders.map((folder) => track(folder, 0)));
    await Promise.all(folders.map((folder) => track(folder, 1)));
    const steps = [...server.runs.values()].map(({ metrics, info }) => [
      info.status,
      metrics.filter(({ key }) => key === "loss/train").map((metric) => metric.step),
    ]);
    expect(steps).toEqual([
      ["FAILED", [1, 2]],
      ["FAILED", [1, 2]],
    ]);
  });

  it.each(["before it is begun", "when an answer is lost", "in the middle"] as const)(
    "gives a server that is down when the run is killed every figure once, after it is resumed: %s",
    async (moment) => {
      const server = await openServer();
      const folder = join(scratch, `killed ${moment}`);
      const checkpoint = join(folder, "step-000006");
      mkdirSync(checkpoint, { recursive: true });
      writeFileSync(join(checkpoint, "model.safetensors"), "weights");
      const options = { url: server.url, folder, checkpoints: true, environment: {} };
      const of = (key: string) =>
        [...server.runs.values()].map(({ metrics }) =>
          metrics.filter((metric) => metric.key === key).map((metric) => metric.step),
        );
      if (moment === "before it is begun") await server.close();
      const program = fileURLToPath(new URL("tracked-run.ts", import.meta.url));
      const child = spawn(process.execPath, [program, server.url, folder], {
        stdio: ["pipe", "inherit", "inherit"],
      });
      const tell = (...event: readonly [string, object?]) =>
        void child.stdin.write(`${JSON.stringify(event)}\n`);
      tell("run.started");
      if (moment === "when an answer is lost") {
        await vi.waitFor(
          () => expect([...server.runs.values()][0]?.params.size).toBeGreaterThan(0),
          patience,
        );
        server.numLost = Number.POSITIVE_INFINITY;
      }
      for (const number of [1, 2, 3]) tell("step.finished", { step: number });
      if (moment !== "before it is begun") {
        await vi.waitFor(() => expect(of("loss/train")).toEqual([[1, 2, 3]]), patience);
        await server.close();
        server.numLost = 0;
      }
      for (const number of [4, 5, 6, 7, 8]) tell("step.finished", { step: number });
      tell("checkpoint.saved", { step: 6, path: checkpoint });
      const file = join(folder, "mlflow.jsonl");
      await vi.waitFor(() => expect(readFileSync(file, "utf8")).toContain("model.safetensors"), patience);
      child.kill("SIGKILL");
      await once(child, "exit");
      appendFileSync(file, '{"metrics":[{"key":"loss'); // a line that the kill has cut
      await server.open();
      const sink = mlflowSink(options);
      sink.write(stamped("run.started", { firstStep: 6 }));
      for (const number of [7, 8, 9]) sink.write(step(number));
      sink.write(stamped("run.finished", { steps: 9 }));
      await sink.close();
      expect(of("loss/train")).toEqual([[1, 2, 3, 4, 5, 6, 7, 8, 9]]);
      const [run] = [...server.runs.values()];
      expect(run?.info.status).toBe("FINISHED");
      expect(run?.params.size).toBeGreaterThan(5);
      expect([...server.files.values()]).toEqual(["weights"]);
    },
    60_000,
  );

  it("gives both runs of a folder their figures where the server was down all the time", async () => {
    const server = await openServer();
    await server.close();
    const folder = join(scratch, "again");
    mkdirSync(folder);
    const program = fileURLToPath(new URL("tracked-run.ts", import.meta.url));
    for (const number of [1, 2]) {
      const child = spawn(process.execPath, [program, server.url, folder], {
        stdio: ["pipe", "inherit", "inherit"],
      });
      for (const event of [["run.started"], ["step.finished", { step: number, lossNats: number }]])
        child.stdin.write(`${JSON.stringify(event)}\n`);
      const file = join(folder, "mlflow.jsonl");
      await vi.waitFor(
        () => expect(readFileSync(file, "utf8")).toMatch(new RegExp(`"loss/train","value":${number},`)),
        patience,
      );
      child.kill("SIGKILL");
      await once(child, "exit");
    }
    await server.open();
    const sink = mlflowSink({ url: server.url, folder, environment: {} });
    sink.write(stamped("run.started", { firstStep: 2 }));
    sink.write(step(3));
    sink.write(stamped("run.finished", { steps: 3 }));
    await sink.close();
    const runs = [...server.runs.values()].map(({ info, metrics }) => [
      info.status,
      metrics.filter(({ key }) => key === "loss/train").map((metric) => metric.step),
    ]);
    expect(runs).toEqual([
      ["RUNNING", [1]],
      ["FINISHED", [2, 3]],
    ]);
  });

  it("keeps a short file although something always waits, and what waits is there when the run is resumed", () => {
    const [folder, url] = [join(scratch, "always"), "http://127.0.0.1:1"];
    mkdirSync(folder);
    const journal = new Journal(folder, url);
    const sizeBytes = () => statSync(join(folder, "mlflow.jsonl")).size;
    const figures = (step: number) =>
      ["loss", "rate", "norm"].map((key) => ({ key, value: 1, timestamp: 1_000, step }));
    const post = { kind: "post", path: "runs/set-tag", fields: { key: "a" } } as const;
    journal.begin(true);
    journal.belongsTo("run-7");
    journal.metrics(figures(1));
    let longest = 0;
    for (let step = 2; step <= 2_000; step++) {
      journal.ask(post);
      journal.metrics(figures(step));
      // The figures of a step, and the request behind them, in parts that are not those they came in.
      journal.sent(2);
      journal.done(2);
      journal.sent(2);
      journal.done(2);
      longest = Math.max(longest, sizeBytes());
    }
    expect(longest).toBeLessThan(1 << 17);
    journal.sent(1);
    const resumed = new Journal(folder, url);
    expect(resumed.run).toBe("run-7");
    expect(resumed.steps.get("norm")).toBe(2_000);
    expect(resumed.wasSent).toBe(true);
    const [first, ...others] = figures(2_000);
    expect(resumed.waiting).toEqual([{ metrics: [first] }, { metrics: others }]);
    // Another run begins after it: until it has, the file names the run of what waits.
    resumed.begin(true);
    resumed.metrics(Array.from({ length: 2_000 }, (_, step) => ({ ...figures(step)[0], step }) as Metric));
    resumed.done(1);
    const again = new Journal(folder, url);
    expect([again.run, again.wasSent, again.waiting[0]]).toEqual([
      "run-7",
      false,
      { metrics: expect.arrayContaining(others) },
    ]);
  });

  it("reports requests that are refused, and refuses an address with a password", async () => {
    const server = await openServer();
    const reported: TroupeEventBody[] = [];
    const sink = mlflowSink({ url: server.url, environment: { MLFLOW_RUN_ID: "gone" } });
    sink.attach?.((event) => reported.push(event));
    sink.write(stamped("run.started"));
    sink.write(step(1));
    await sink.close();
    expect(reported[0]).toMatchObject({ kind: "output.failed" });
    expect(reported.at(-1)).toMatchObject({
      kind: "output.failed",
      output: `the MLflow server at ${server.url}`,
    });
    expect(() => mlflowSink({ url: "http://me:word@host" })).toThrow(
      "[mlflow] expected the http:// or https:// address of a server, without a password, got one with a name or password",
    );
  });

  const python = process.env.TROUPE_PYTHON;
  const hasMlflow = (() => {
    try {
      if (python !== undefined) execFileSync(python, ["-c", "import mlflow"], { stdio: "ignore" });
      return python !== undefined;
    } catch {
      return false;
    }
  })();
  if (!hasMlflow)
    console.warn(
      "test/sinks/mlflow.test.ts: MLflow's own server is not tried (TROUPE_PYTHON without mlflow)",
    );

  it.skipIf(!hasMlflow)(
    "gives MLflow's own server every figure once, which is down for a minute",
    async () => {
      const folder = join(scratch, "real");
      const checkpoint = join(folder, "step-000030");
      mkdirSync(checkpoint, { recursive: true });
      writeFileSync(join(checkpoint, "model.safetensors"), "weights");
      const port = 5_000 + (process.pid % 1_000);
      const url = `http://127.0.0.1:${port}`;
      const ask = async (path: string) => (await fetch(`${url}/api/2.0/mlflow/${path}`)).json();
      const serve = async () => {
        const store = [
          "--backend-store-uri",
          `sqlite:///${folder}/mlflow.db`,
          "--artifacts-destination",
          `${folder}/artifacts`,
        ];
        const args = ["-m", "mlflow", "server", "--host", "127.0.0.1", "--port", `${port}`, ...store];
        const child = spawn(python as string, args, { stdio: "ignore", detached: true });
        await vi.waitFor(async () => expect((await fetch(`${url}/health`)).ok).toBe(true), patience);
        return () => process.kill(-(child.pid as number), "SIGKILL");
      };
      let stop = await serve();
      onTestFinished(() => {
        stop();
      });
      const options = { url, folder, checkpoints: true, environment: {} };
      const first = step(1);
      const at = (number: number) => ({ ...step(number), timeMs: first.timeMs + number });
      const sink = mlflowSink(options);
      sink.write(stamped("run.started"));
      sink.write(first);
      const journal = () => readFileSync(join(folder, "mlflow.jsonl"), "utf8");
      await vi.waitFor(() => expect(journal()).toContain('"run":'), patience);
      for (let number = 2; number <= 60; number++) {
        if (number === 5) stop(); // while requests are under way
        sink.write(at(number));
        if (number === 30) sink.write(stamped("checkpoint.saved", { step: 30, path: checkpoint }));
        await sleep(1_000);
      }
      stop = await serve();
      sink.write(stamped("run.failed"));
      await sink.close();
      const resumed = mlflowSink(options);
      resumed.write(stamped("run.started", { firstStep: 58 }));
      for (let number = 59; number <= 70; number++) resumed.write(at(number));
      resumed.write(stamped("run.finished"));
      await resumed.close();

      const [, id] = /"run":"(\w+)"/.exec(journal()) ?? [];
      const curve = encodeURIComponent("loss/train");
      const history = await ask(`metrics/get-history?run_id=${id}&metric_key=${curve}&max_results=1000`);
      const { metrics } = history as { metrics: { step: number; value: number }[] };
      const steps = metrics.map(({ step, value }) => [Number(step), value]);
      expect(steps.toSorted((one, other) => (one[0] as number) - (other[0] as number))).toEqual(
        Array.from({ length: 70 }, (_, index) => [index + 1, 4 / (index + 1)]),
      );
      const { run } = (await ask(`runs/get?run_id=${id}`)) as {
        run: { info: { status: string }; data: { params: { key: string; value: string }[] } };
      };
      expect(run.info.status).toBe("FINISHED");
      expect(run.data.params).toContainEqual({
        key: "numRanks",
        value: `${samples["run.started"].numRanks}`,
      });
      const { files } = (await ask(`artifacts/list?run_id=${id}&path=checkpoints/step-000030`)) as {
        files: { path: string; file_size: number }[];
      };
      expect(files).toMatchObject([{ path: "checkpoints/step-000030/model.safetensors" }]);
    },
    400_000,
  );
});
