import { checkField, type Family, type FamilyFormats, families, familyOf } from "../models/index.ts";

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
  const types = familiesWith(program).map(({ modelType }) => modelType);
  const expected = `one of ${types.join(", ")}`;
  checkField(where, "model_type", load !== undefined, expected, config.model_type, configHint);
  return (await (load as NonNullable<typeof load>)()).default;
}

/** Advice where a model has no config.json, or another program's. */
export const configHint = "give the model's Hugging Face config.json";

/** The first of a config.json's architectures; empty if there are none. */
export function architectureOf({ architectures: names }: Readonly<Record<string, unknown>>): string {
  const [first] = Array.isArray(names) ? (names as readonly unknown[]) : [];
  return typeof first === "string" ? first : "";
}
