import { TroupeError } from "../../../errors/index.ts";

/**
 * Imports a package that only some data needs, which users install themselves.
 * @param load - the import, written out, so that bundlers see it
 * @throws {TroupeError} `DATA_PACKAGE` where it is not installed
 */
export async function optionalPackage<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (cause) {
    throw new TroupeError("DATA_PACKAGE", {
      where: "data",
      expected: `the package ${name}`,
      got: `"${(cause as Error).message.split("\n")[0]}"`,
      hint: `npm install ${name}`,
      fields: { name },
      cause,
    });
  }
}
