import { TroupeError } from "../../errors/index.ts";
import { type Family, type FamilyFormats, families, familyOf } from "../models/index.ts";

type Form<Program extends keyof FamilyFormats> = Awaited<
  ReturnType<NonNullable<FamilyFormats[Program]>>
>["default"];

/** The families that both a program and this library have. */
export function familiesWith(program: keyof FamilyFormats): Family[] {
  return families().filter(({ formats }) => formats?.[program] !== undefined);
}

/**
 * Maps the model of a Hugging Face config.json to a program's format.
 * @param where - for the error
 * @throws {TroupeError} `MODEL_CONFIG` for a family that either lacks
 */
export async function formOf<Program extends keyof FamilyFormats>(
  program: Program,
  where: string,
  config: Readonly<Record<string, unknown>>,
): Promise<Form<Program>> {
  const load = familyOf(config)?.formats?.[program] as
    | (() => Promise<{ default: Form<Program> }>)
    | undefined;
  if (load !== undefined) return (await load()).default;
  const types = familiesWith(program).map(({ modelType }) => modelType);
  const got = config.model_type;
  throw new TroupeError("MODEL_CONFIG", {
    where,
    expected: `model_type to be one of ${types.join(", ")}`,
    got: JSON.stringify(got) ?? "none",
    hint: "give the model's Hugging Face config.json",
    fields: { field: "model_type", got },
  });
}

/** The first of a config.json's architectures; empty if there are none. */
export function architectureOf({ architectures: names }: Readonly<Record<string, unknown>>): string {
  const [first] = Array.isArray(names) ? (names as readonly unknown[]) : [];
  return typeof first === "string" ? first : "";
}
