import type { Command } from "commander";
import { jobUrlOf, Runtime } from "../../actors/trainer/index.ts";
import { hasTileProducts } from "../../compute/tensor/index.ts";
import type { EventOf } from "../../job/events/index.ts";
import { readCommand } from "../../job/options/index.ts";
import { print, usage } from "./flags.ts";
import { type ConfigFlags, configFlag, givenAround, settingFlag } from "./run.ts";

/** One step is checked for lost gradients, and two are recorded. */
const STEPS = 3;

interface InspectFlags extends ConfigFlags {
  readonly graph: boolean;
}

/** Adds `troupe inspect --graph JOB`. */
export function addInspectCommand(program: Command): void {
  program
    .command("inspect")
    .description("show what a run computes: trains three steps, and saves nothing")
    .argument("<job>", "path of the job's module")
    .option("--graph", "the programs that its blocks become, operator by operator", false)
    .addOption(configFlag())
    .addOption(settingFlag())
    .action(inspect);
}

async function inspect(job: string, flags: InspectFlags): Promise<void> {
  if (!flags.graph) throw usage("--graph", "nothing to show", "troupe inspect --graph JOB");
  const { runtime: asked, set } = readCommand(givenAround(flags));
  const { checkpoint: _checkpoint, resume: _resume, ...kept } = asked;
  const graph = asked.graph === "fast" ? "fast" : "exact";
  await using runtime = await Runtime.spawn({ ...kept, steps: STEPS, graph, signals: true });
  const texts: string[] = [];
  if (graph === "fast" && !hasTileProducts())
    texts.push("products are as in exact here: this processor multiplies no bfloat16 tiles");
  runtime.on("block.recorded", (event) => {
    texts.push(textOf(event));
  });
  runtime.on("block.unrecorded", ({ block, reason, line }) => {
    texts.push(`${block} is no program: ${reason}${line === undefined ? "" : ` (${line})`}`);
  });
  await runtime.run(jobUrlOf(job), set);
  print(texts.length === 0 ? "the job has no blocks: a ModuleList of layers makes them" : texts.join("\n\n"));
}

/** A program with its operators; blocks with the same one are shown once. */
function textOf({ block, forward, backward, uncaptured }: EventOf<"block.recorded">): string {
  const half = (name: string, { numIssued, operators }: typeof forward) => [
    `${block}, ${name}: ${operators.length} operators, of ${numIssued} that are issued without a program`,
    ...operators.map((operator) => `  ${operator}`),
  ];
  // Evaluation computes forward alone.
  const behind = backward.numIssued === 0 ? [] : half("backward", backward);
  const singly = uncaptured === undefined ? [] : [`${block} is no graph of its device: ${uncaptured}`];
  return [...half("forward", forward), ...behind, ...singly].join("\n");
}
