import { TroupeError } from "../../errors/index.ts";

/**
 * Makes `process.exit` throw from now on, so that code in an actor cannot end its thread without an error.
 * @param host - the `process` object of an actor's thread
 * @returns the original `exit`
 */
export function refuseExit(host: Pick<NodeJS.Process, "exit" | "once">): NodeJS.Process["exit"] {
  const exit = host.exit.bind(host);
  // Node itself ends the thread by this function when an error is caught nowhere.
  host.once("uncaughtExceptionMonitor", () => {
    host.exit = exit;
  });
  host.exit = (code) => {
    throw new TroupeError("ACTOR_EXIT", {
      where: "process.exit",
      expected: "code that an actor runs to return or to throw",
      got: `process.exit(${code ?? ""})`,
      hint: "to end the run, throw an error",
      fields: { code },
    });
  };
  return exit;
}
