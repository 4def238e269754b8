/** One public operator: the overloads behind one name. */
export interface Entry {
  /** As in torch or as renamed, not yet in camelCase. */
  readonly name: string;
  readonly namespace: "aten" | "troupe";
  /** "aten::add.Tensor": one, or the two between which the type of an argument decides. */
  readonly overloads: readonly string[];
  readonly description: string;
}

/** Reads operators.txt. Throws on a line it does not understand. */
export function readList(text: string): Entry[] {
  return text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .flatMap(readLine);
}

function readLine(line: string): Entry[] {
  const match = /^([\w=: ]+?)(?: \(([\w|]+)\))? - (.+)$/.exec(line);
  if (match === null) throw new Error(`operators.txt: not understood: ${line}`);
  const [, names = "", overloads = "", description = ""] = match;
  return names.split(" ").map((item) => {
    const namespace = item.startsWith("troupe::") ? "troupe" : "aten";
    const [name = "", operator = name] = item.replace("troupe::", "").split("=");
    const suffixes = overloads.split("|").map((overload) => (overload === "" ? "" : `.${overload}`));
    return {
      name,
      namespace,
      overloads: suffixes.map((suffix) => `${namespace}::${operator}${suffix}`),
      description: `${description}${namespace === "aten" && operator.endsWith("_") ? ", in place" : ""}.`,
    };
  });
}
