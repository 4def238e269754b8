/** Of V8's inspector: what it says of an object beside its properties. */
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
 * Has an error tell where a function is written: what is wrong with what it returned has passed none of its lines.
 * @param name - of the function, as people call it
 */
export function addDefinition(error: Error, call: object, name: string): void {
  const place = definitionOf(call);
  if (place === undefined) return;
  const [message = "", ...frames] = (error.stack ?? error.message).split(/\n(?= {4}at )/);
  error.stack = [message, `    at ${name} (${place})`, ...frames].join("\n");
}

/** @returns the file's URL with line and column, from 1; undefined where V8 does not tell */
function definitionOf(call: object): string | undefined {
  // Loaded where something went wrong, and only for that. No port is opened.
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
