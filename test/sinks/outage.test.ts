import { setTimeout as sleep } from "node:timers/promises";
import { expect, it, vi } from "vitest";
import { mlflowSink } from "../../src/tools/sinks/index.ts";
import { stamped } from "../events/samples.ts";
import { patience } from "../fixtures/patience.ts";
import { MlflowServer } from "./mlflow-server.ts";

it("MLflow's server, up, down for a minute and up, has every figure once", async () => {
  const server = new MlflowServer();
  await server.open();
  const sink = mlflowSink({ url: server.url, environment: {} });
  sink.write(stamped("run.started"));
  const numSteps = 650;
  for (let step = 1; step <= numSteps; step++) {
    if (step === 30) {
      await vi.waitFor(
        () => expect([...server.runs.values()][0]?.metrics.length).toBeGreaterThan(0),
        patience,
      );
      await server.close();
    }
    sink.write(stamped("step.finished", { step }));
    await sleep(100);
    if (step === 630) await server.open();
  }
  sink.write(stamped("run.finished"));
  await sink.close();
  await server.close();
  const [run] = [...server.runs.values()];
  const steps = run?.metrics.filter(({ key }) => key === "loss/train").map((metric) => metric.step);
  expect(steps).toEqual(Array.from({ length: numSteps }, (_, index) => index + 1));
  expect(run?.info.status).toBe("FINISHED");
  console.log(`${steps?.length} steps, ${run?.metrics.length} figures, each once`);
});
