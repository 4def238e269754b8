import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, expect, it } from "vitest";
import { openCheckpoint } from "../../../src/entries/checkpoint.ts";
import type { TroupeEvent } from "../../../src/entries/index.ts";
import { lossesOf, runTiny, Workspace } from "../../fixtures/run-tiny.ts";

const struckJob = new URL("../../fixtures/jobs/struck.ts", import.meta.url);
const workspace = new Workspace();
afterAll(() => workspace[Symbol.dispose]());

/** A job of its own in a folder, with a module that it imports: what both say can be edited. */
function writeJob(folder: string) {
  mkdirSync(folder);
  const [job, times, strikes, data] = ["job.ts", "times.ts", "strikes", "text.txt"].map((name) =>
    join(folder, name),
  ) as [string, string, string, string];
  mkdirSync(strikes);
  writeFileSync(data, readFileSync(workspace.text));
  writeFileSync(times, "export const times = 1;\n");
  const text = `import struck from ${JSON.stringify(struckJob.href)};
import { times } from "./times.ts";
export default { ...struck, loss: (...given) => struck.loss(...given).mul(times) };
`;
  writeFileSync(job, text);
  return { job, times, strikes, data, text };
}

/** Does something once a step is made, and ends a rank at another. */
function disturbed(strikes: string, editAt: number, strikeAt: number, edit: () => void) {
  let [isEdited, isStruck] = [false, false];
  return (event: TroupeEvent): void => {
    if (event.kind !== "step.finished") return;
    if (event.step === editAt && !isEdited) {
      isEdited = true;
      edit();
    }
    if (event.step === strikeAt && !isStruck) {
      isStruck = true;
      writeFileSync(join(strikes, "rank-1"), "exit");
    }
  };
}

it.each([
  {
    name: "threads, the job and its module edited",
    options: {},
    pauseMs: 0,
    strikeAt: 4,
    edit: ({ job, times, text }: ReturnType<typeof writeJob>) => {
      writeFileSync(times, "export const times = 2;\n");
      writeFileSync(job, text.replace("mul(times)", "mul(3)"));
    },
  },
  {
    name: "processes with warm standbys, the job broken and its module gone",
    options: { placement: "process", warmStandby: true } as const,
    pauseMs: 250,
    strikeAt: 14,
    edit: ({ job, times }: ReturnType<typeof writeJob>) => {
      writeFileSync(job, "export default {{{");
      rmSync(times);
    },
  },
])("trains on by the text it began with, and its manifest names that: $name", async (given) => {
  const files = writeJob(workspace.path(given.name));
  const { job, strikes, data, text } = files;
  const options = { ranks: 2, zero: 3, steps: 17 };
  const checkpoint = { dir: workspace.path(`${given.name}-run`), everySteps: 3 };
  const outcome = await runTiny(
    workspace,
    { ...options, ...given.options, checkpoint },
    { data, strikes, pauseMs: given.pauseMs },
    pathToFileURL(job),
    disturbed(strikes, 2, given.strikeAt, () => given.edit(files)),
  );
  expect(outcome.error).toBeUndefined();
  expect(outcome.events.filter(({ kind }) => kind === "run.restored")).toHaveLength(1);
  expect(outcome.losses).toEqual(await lossesOf(workspace, options));
  await using saved = await openCheckpoint(checkpoint.dir);
  expect(saved.state).toMatchObject({
    step: 17,
    recipe: {
      job: {
        sha256: createHash("sha256").update(text).digest("hex"),
        imports: { "times.ts": createHash("sha256").update("export const times = 1;\n").digest("hex") },
      },
    },
  });
});

it("goes on after a death where the data was written again with the same bytes, and ends by its name where it is another", async () => {
  const { job, strikes, data } = writeJob(workspace.path("data"));
  const options = { ranks: 2, steps: 10 };
  const bytes = readFileSync(data);
  const train = (edit: () => void) =>
    runTiny(workspace, options, { data, strikes }, pathToFileURL(job), disturbed(strikes, 3, 4, edit));
  const same = await train(() => {
    rmSync(data);
    writeFileSync(data, bytes);
  });
  expect(same.error).toBeUndefined();
  expect(same.events.filter(({ kind }) => kind === "run.restored")).toHaveLength(1);
  expect(same.losses).toEqual(await lossesOf(workspace, options));

  const other = await train(() => writeFileSync(data, bytes.toString().replaceAll("times", "TIMES")));
  expect(other.error?.message).toContain(`[data] expected ${data} to stay as it was when the run began`);
  expect(other.error).toMatchObject({ code: "DATA_CHANGED" });
  expect(other.losses).toEqual(same.losses.slice(0, other.losses.length));
});
