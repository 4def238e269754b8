import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import * as z from "zod";
import { readLaunch } from "../../src/actors/launch/index.ts";
import { commandSchema, optionsOf, readCommand } from "../../src/job/options/index.ts";

// Of Kubernetes' batch/v1 Job and v1 Service, and of Kubeflow's PyTorchJob v1, the fields that ours use: any other is refused.
const container = z.strictObject({
  name: z.string(),
  image: z.string(),
  command: z.array(z.string()),
  args: z.array(z.string()),
  env: z.array(z.strictObject({ name: z.string(), value: z.string() })).optional(),
  volumeMounts: z.array(z.strictObject({ name: z.string(), mountPath: z.string() })),
});
const template = z.strictObject({
  spec: z.strictObject({
    subdomain: z.string().optional(),
    restartPolicy: z.enum(["OnFailure", "Never"]).optional(),
    terminationGracePeriodSeconds: z.int(),
    containers: z.array(container).length(1),
    volumes: z.array(
      z.strictObject({ name: z.string(), persistentVolumeClaim: z.strictObject({ claimName: z.string() }) }),
    ),
  }),
});
const metadata = z.strictObject({ name: z.string() });
const indexedJob = z.strictObject({
  apiVersion: z.literal("v1"),
  kind: z.literal("List"),
  items: z.tuple([
    z.strictObject({
      apiVersion: z.literal("v1"),
      kind: z.literal("Service"),
      metadata,
      spec: z.strictObject({
        clusterIP: z.literal("None"),
        selector: z.strictObject({ "job-name": z.string() }),
      }),
    }),
    z.strictObject({
      apiVersion: z.literal("batch/v1"),
      kind: z.literal("Job"),
      metadata,
      spec: z.strictObject({
        completionMode: z.literal("Indexed"),
        completions: z.int(),
        parallelism: z.int(),
        backoffLimit: z.int(),
        template,
      }),
    }),
  ]),
});
const replicas = z.strictObject({
  replicas: z.int(),
  restartPolicy: z.enum(["OnFailure", "Never"]),
  template,
});
const pytorchJob = z.strictObject({
  apiVersion: z.literal("kubeflow.org/v1"),
  kind: z.literal("PyTorchJob"),
  metadata,
  spec: z.strictObject({ pytorchReplicaSpecs: z.strictObject({ Master: replicas, Worker: replicas }) }),
});

it("the manifest of an indexed Job is one, its pods find host 0 by name, and each knows its place", () => {
  const [service, job] = indexedJob.parse(manifest("kubernetes-indexed-job.json")).items;
  const { completions, parallelism, template } = job.spec;
  const [container] = template.spec.containers;
  const env = Object.fromEntries(container?.env?.map(({ name, value }) => [name, value]) ?? []);
  // All run at once, or none gets anywhere.
  expect(parallelism).toBe(completions);
  expect(service.spec.selector["job-name"]).toBe(job.metadata.name);
  expect(template.spec.subdomain).toBe(service.metadata.name);
  for (let index = 0; index < completions; index++) {
    expect(readLaunch({ ...env, JOB_COMPLETION_INDEX: `${index}` })).toMatchObject({
      by: "Kubernetes",
      rank: index,
      size: completions,
      master: { host: `${job.metadata.name}-0.${service.metadata.name}`, port: 29_500 },
    });
  }
  expectTyped(container?.args ?? []);
});

it("the manifest of a PyTorchJob is one, whose operator knows the container", () => {
  const { Master, Worker } = pytorchJob.parse(manifest("kubeflow-pytorchjob.json")).spec.pytorchReplicaSpecs;
  expect(Master.replicas).toBe(1);
  for (const { template } of [Master, Worker]) {
    const [container] = template.spec.containers;
    expect(container).toMatchObject({ name: "pytorch", command: ["troupe", "run", "/job/job.ts"] });
    expectTyped(container?.args ?? []);
  }
});

it.each(["slurm.sbatch", "torchrun.sh"])("%s types options that there are", (name) => {
  const [, typed = ""] = /troupe run job\.ts (.*)/.exec(text(name)) ?? [];
  expectTyped(typed.split(" "));
});

/** Every flag is an option of the schema, and its value one that it takes. */
function expectTyped(args: readonly string[]): void {
  const byFlag = new Map(optionsOf(commandSchema).map((option) => [option.flag.split(" ")[0], option]));
  const given = args.flatMap((flag, index) => {
    if (!flag.startsWith("--")) return [];
    const option = byFlag.get(flag);
    expect(option, flag).toBeDefined();
    const said = args[index + 1] ?? "";
    const value = /^\d+$/.test(said) ? Number(said) : said;
    return [{ path: option?.path ?? [], value, origin: "flag" as const, by: flag }];
  });
  expect(given.length).toBeGreaterThan(1);
  readCommand(given);
}

function manifest(name: string): unknown {
  return JSON.parse(text(name));
}

function text(name: string): string {
  return readFileSync(new URL(`../../examples/launch/${name}`, import.meta.url), "utf8");
}
