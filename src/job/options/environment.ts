import type * as z from "zod";
import { nearestName, TroupeError } from "../../errors/index.ts";
import type { Given } from "./layers.ts";
import { type Option, optionsOf } from "./option.ts";
import { isWritable, readText } from "./texts.ts";

const PREFIX = "TROUPE_";

/** Environment variable that names an options file. */
export const FILE_VARIABLE = "TROUPE_CONFIG";

/** @returns the environment variable of an option: `TROUPE_CHECKPOINT_EVERY_STEPS` for `checkpoint.everySteps` */
function variableOf({ path }: Pick<Option, "path">): string {
  const words = path.map((name) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter}`));
  return PREFIX + words.join("_").toUpperCase();
}

/**
 * Reads options given by environment variables; others with the prefix, such as TROUPE_LIBTORCH, are ignored.
 * @throws {TroupeError} `OPTION` for a name that is close to an option's
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
    if (option !== undefined)
      return [{ path: option.path, value: readText(option, text), origin: "environment" as const, by }];
    checkIsOthers(by, [...options.keys()]);
    return [];
  });
}

function checkIsOthers(name: string, names: readonly string[]): void {
  const bare = (variable: string) => variable.slice(PREFIX.length);
  const near = nearestName(bare(name), names.map(bare));
  if (near === undefined) return;
  throw new TroupeError("OPTION", {
    where: "options",
    expected: "an environment variable that sets an option",
    got: name,
    hint: `did you mean ${PREFIX}${near}?`,
    fields: { option: name },
  });
}
