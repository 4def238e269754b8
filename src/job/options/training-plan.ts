import * as z from "zod";
import { TroupeError, whatWasMeant } from "../../errors/index.ts";
import { cadence, number, oneOf, options, parted, text, toggle, whole } from "./kinds.ts";

const clipNorm = z.union(
  [
    number("> 0", (value) => value > 0),
    z.strictObject({ by: oneOf(["l2", "inf", "value"]), max: number("> 0", (value) => value > 0) }),
  ],
  { error: "a number > 0, or { by, max } with by l2, inf or value" },
);

const isShare = (value: number) => value > 0 && value < 1;

const rate = z.strictObject({ factor: number("between 0 and 1", isShare), patience: whole(1) });

/** Schema of the `training` of a job: the fields of `TrainingPlan`. */
// biome-ignore format: a table, with a row for each field
const trainingSchema = options({
  steps: whole(0).optional(),
  epochs: number("≥ 0", (value) => value >= 0).optional(),
  batchSize: whole(1),
  accumulation: whole(1).optional(),
  rampUp: z.strictObject({ start: whole(1), increment: whole(1), samples: whole(1) },
    { error: "{ start, increment, samples }, whole numbers" }).optional(),
  clipNorm: clipNorm.optional(),
  evaluateEverySteps: cadence().optional(),
  evaluationSamples: cadence().optional(),
  evaluationSplits: z.array(text("a name"), { error: "a list of names" }).optional(),
  best: z.strictObject({
    metric: text("the name of a metric").optional(),
    mode: oneOf(["min", "max"]).optional(),
    minDelta: number("≥ 0", (value) => value >= 0).optional(),
    patience: whole(1).optional(),
    keep: toggle().optional(),
    reduceRate: rate.optional(),
  }, { error: 'an object such as { metric: "loss", mode: "min", patience: 3, reduceRate: { factor: 0.5, patience: 2 } }' }).optional(),
  calculatePerTokenLoss: toggle().optional(),
  pretrained: text("a folder").optional(),
  companions: z.strictObject({ folder: text("a folder"), tokenizer: toggle().optional() },
    { error: "{ folder, tokenizer }" }).optional(),
}, "a plan such as { steps: 100, batchSize: 16 }");

/** Checks the `training` of a job. @throws {TroupeError} `JOB_INVALID` naming every invalid field, misspelled names first */
export function checkTraining(given: unknown): void {
  const where = "training";
  if (given instanceof Promise) {
    const expected = "the job's training to be a plan such as { steps: 100, batchSize: 16 }";
    throw new TroupeError("JOB_INVALID", { where, expected, got: "a promise", hint: "leave async out" });
  }
  const result = trainingSchema.safeParse(given);
  if (result.success) return;
  const issues = result.error.issues.toSorted((a, b) => Number(isMisspelled(b)) - Number(isMisspelled(a)));
  const [first, ...others] = issues.flatMap((issue) => mistakesOf(issue, given));
  if (first === undefined) throw new Error("zod refuses without an issue");
  const also = others.map(({ expected, got }) => `${expected}, got ${got}`).join("; also expected ");
  const hints = [...(first.hint ? [first.hint] : []), ...(also === "" ? [] : [`also expected ${also}`])];
  throw new TroupeError("JOB_INVALID", { where, ...first, hint: hints.join("; ") || undefined });
}

interface Mistake {
  readonly expected: string;
  readonly got: string;
  readonly hint?: string;
}

const isMisspelled = ({ code }: z.core.$ZodIssue) => code === "unrecognized_keys";

function mistakesOf(issue: z.core.$ZodIssue, given: unknown): Mistake[] {
  if (issue.code === "unrecognized_keys" && issue.path.length === 0)
    return issue.keys.map((key) => ({
      expected: "an option of the job's training",
      got: key,
      hint: whatWasMeant(key, Object.keys(trainingSchema.shape)),
    }));
  const [name] = issue.path;
  const value = name === undefined ? given : (given as Record<PropertyKey, unknown>)[name];
  const subject = name === undefined ? "the job's training" : String(name);
  return [{ expected: `${subject} to be ${parted(issue.message).expected}`, got: shown(value) }];
}

function shown(value: unknown): string {
  const isWritten = typeof value === "string" || (typeof value === "object" && value !== null);
  return isWritten ? JSON.stringify(value) : String(value);
}
