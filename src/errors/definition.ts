/** An internal property of an object, as V8's inspector reports it. */
interface InternalProperty {
  readonly name: string;
  readonly value?: { readonly value?: unknown };
}

interface FunctionLocation {
  readonly scriptId: string;
  /** From 0, as the column. */
  readonly lineNumber: number;
  readonly columnNumber: number;
}

/**
 * Adds the place where a function is defined to an error's stack: an error about the function's result has none of its lines.
 * @param name - name of the function, for the added line
 */
export function addDefinition(error: Error, call: object, name: string): void {
  const place = definitionOf(call);
  if (place === undefined) return;
  const [message = "", ...frames] = (error.stack ?? error.message).split(/\n(?= {4}at )/);
  error.stack = [message, `    at ${name} (${place})`, ...frames].join("\n");
}

/** @returns the file's URL with line and column, from 1; undefined where V8 does not know them */
function definitionOf(call: object): string | undefined {
  // Loaded only when something went wrong. No port is opened.
  const inspector = process.getBuiltinModule("node:inspector");
  const session = new inspector.Session();
  const held = Symbol.for("troupe.definition");
  const room = globalThis as { [held]?: object };
  try {
    session.connect();
    room[held] = call;
    let location: FunctionLocation | undefined;
    session.post(
      "Runtime.evaluate",
      { expression: 'globalThis[Symbol.for("troupe.definition")]' },
      (_, found) => {
        const { objectId } = found?.result ?? {};
        if (objectId === undefined) return;
        session.post("Runtime.getProperties", { objectId, ownProperties: true }, (__, properties) => {
          const internal = (properties?.internalProperties ?? []) as readonly InternalProperty[];
          location = internal.find(({ name }) => name === "[[FunctionLocation]]")?.value
            ?.value as typeof location;
        });
      },
    );
    let url = "";
    session.on("Debugger.scriptParsed", ({ params }) => {
      if (params.scriptId === location?.scriptId) ({ url } = params);
    });
    session.post("Debugger.enable");
    if (location === undefined || url === "") return undefined;
    return `${url}:${location.lineNumber + 1}:${location.columnNumber + 1}`;
  } catch {
    return undefined; // a Node that was built without it
  } finally {
    delete room[held];
    session.disconnect();
  }
}
