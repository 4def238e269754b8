import type * as z from "zod";
import { nearestName, TroupeError } from "../../errors/index.ts";
import type { Given } from "./layers.ts";
import { type Option, optionsOf } from "./option.ts";
import { isWritable, readText } from "./texts.ts";

const PREFIX = "TROUPE_";

/** The variable that names a file of options. */
export const FILE_VARIABLE = "TROUPE_CONFIG";

/** @returns the variable that gives an option: `TROUPE_CHECKPOINT_EVERY_STEPS` for `checkpoint.everySteps` */
function variableOf({ path }: Pick<Option, "path">): string {
  const words = path.map((name) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter}`));
  return PREFIX + words.join("_").toUpperCase();
}

/**
 * The options that the environment gives.
 * @throws {TroupeError} `OPTION` for a variable that is called nearly as one that gives an option; what else begins with the
 *   prefix says where things are, such as TROUPE_LIBTORCH
 */
export function environmentOptions(
  environment: Readonly<Record<string, string | undefined>>,
  schema: z.core.$ZodType,
): Given[] {
  const options = new Map(
    optionsOf(schema)
      .filter(isWritable)
      .map((option) => [variableOf(option), option]),
  );
  const ours = Object.entries(environment).filter(
    ([name]) => name.startsWith(PREFIX) && name !== FILE_VARIABLE,
  );
  return ours.flatMap(([by, text = ""]) => {
    const option = options.get(by);
    if (option !== undefined) {
      return [{ path: option.path, value: readText(option, text), origin: "environment" as const, by }];
    }
    checkIsOthers(by, [...options.keys()]);
    return [];
  });
}

function checkIsOthers(name: string, names: readonly string[]): void {
  const bare = (variable: string) => variable.slice(PREFIX.length);
  const near = nearestName(bare(name), names.map(bare));
  if (near === undefined) return;
  throw new TroupeError(
    "OPTION",
    {
      where: "options",
      expected: "a variable of the environment that gives an option",
      got: name,
      hint: `did you mean ${PREFIX}${near}?`,
    },
    { fields: { option: name } },
  );
}
