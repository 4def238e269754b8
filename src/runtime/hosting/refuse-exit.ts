import { TroupeError } from "../../errors/index.ts";

/** Makes `process.exit` of an actor's thread throw from now on: no code ends it without an error. @returns the original */
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
