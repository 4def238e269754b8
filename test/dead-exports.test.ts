import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
/** Folders whose imports are read; a name of src is a user's where an entry of the package exports it. */
const folders = ["src", "bench", "scripts", "examples", "bin", "test"];
const entries = join(root, "src", "entries");

/** A module by its text: what it exports, and what it takes of others. */
interface Source {
  readonly text: string;
  /** Names of the functions, classes and constants that it defines and exports. */
  readonly defines: ReadonlySet<string>;
  /** By the name that it passes on, where that comes from. */
  readonly passesOn: ReadonlyMap<string, Name>;
  /** Files of which it passes on all. */
  readonly passesOnAll: readonly string[];
  readonly imports: readonly Name[];
}

/** A name that a file exports; "*": all of them. */
interface Name {
  readonly file: string;
  readonly name: string;
}

const sources = new Map(
  folders
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map((file) =>
        join(root, folder, file),
      ),
    )
    .filter((file) => /(?<!\.d)\.(ts|mjs|js)$/.test(file))
    .map((file) => [file, read(file)] as const),
);

const inProduct = usedBy((file) => !isIn(file, "test"));
const inTests = usedBy((file) => isIn(file, "test"));
// Generated operators are exported whether they are used or not, and the page is a program of its own.
const own = [...sources].filter(
  ([file]) =>
    isIn(file, "src") &&
    !file.startsWith(entries) &&
    !file.includes(".generated.") &&
    !isIn(file, "src/job/dashboard/page"),
);

it("every function, class and constant that src exports is used by another file, or by its own and a test", () => {
  const dead = own.flatMap(([file, { text, defines }]) =>
    [...defines]
      .filter((name) => !inProduct.has(keyOf({ file, name })))
      .filter((name) => !inTests.has(keyOf({ file, name })) || !isUsedWithin(text, name))
      .map((name) => `${relative(root, file)} ${name}`),
  );
  expect(dead).toEqual([]);
});

// The kernel is a package of its own, whose index.ts is its users'.
const doors = own.filter(([file]) => !file.endsWith("src/runtime/index.ts"));

it("every function, class and constant that a room's index.ts passes on is imported through it", () => {
  const dead = doors.flatMap(([file, { passesOn, passesOnAll }]) =>
    [
      ...[...passesOn].filter(([, from]) => isValue(from)).map(([name]) => name),
      ...passesOnAll
        .filter((each) => !each.includes(".generated."))
        .flatMap((each) => [...(sources.get(each)?.defines ?? [])]),
    ]
      .filter((name) => !inProduct.has(keyOf({ file, name })) && !inTests.has(keyOf({ file, name })))
      .map((name) => `${relative(root, file)} ${name}`),
  );
  expect(dead).toEqual([]);
});

/** Names that some files take of others, with each file that passes them on, as {@link keyOf} writes them. */
function usedBy(takes: (file: string) => boolean): ReadonlySet<string> {
  const used = new Set<string>();
  for (const [file, { imports, passesOn, passesOnAll }] of sources) {
    if (!takes(file)) continue;
    const ofUsers = file.startsWith(entries)
      ? [...passesOn.values(), ...passesOnAll.map((each) => ({ file: each, name: "*" }))]
      : [];
    for (const name of [...imports, ...ofUsers]) for (const key of wayOf(name)) used.add(key);
  }
  return used;
}

/** A name, and where each file that passes it on has it from. */
function* wayOf({ file, name }: Name): Generator<string> {
  const source = sources.get(file);
  if (source === undefined) return;
  const { defines, passesOn, passesOnAll } = source;
  if (name === "*") {
    const passed = passesOnAll.flatMap((each) => [...(sources.get(each)?.defines ?? [])]);
    for (const each of [...defines, ...passesOn.keys(), ...passed]) yield* wayOf({ file, name: each });
    for (const each of passesOnAll) yield* wayOf({ file: each, name });
    return;
  }
  yield keyOf({ file, name });
  const from = passesOn.get(name);
  if (from !== undefined) yield* wayOf(from);
  else if (!defines.has(name)) for (const each of passesOnAll) yield* wayOf({ file: each, name });
}

/** Whether a name is of a function, class or constant, and of no type. */
function isValue({ file, name }: Name): boolean {
  const source = sources.get(file);
  const from = source?.passesOn.get(name);
  return source !== undefined && (source.defines.has(name) || (from !== undefined && isValue(from)));
}

function read(file: string): Source {
  const text = readFileSync(file, "utf8").replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");
  const at = (specifier = "") => (specifier.startsWith(".") ? resolve(dirname(file), specifier) : specifier);
  const found = (pattern: RegExp) => [...text.matchAll(pattern)].map(([, ...parts]) => parts);
  const listed = found(/^export (?:type )?\{([^}]*)\} from "([^"]+)"/gm).flatMap(([list, from]) =>
    namesIn(list).map(({ name, as }) => [as, { file: at(from), name }] as const),
  );
  const taken = [
    ...found(/^import (?:type )?(?:\w+, )?\{([^}]*)\} from "([^"]+)"/gm),
    ...found(/\{([^{}]*)\} = await import\(\s*"([^"]+)"/g),
    // bin/ finds the product where it is, in src or dist.
    ...found(/\{([^{}]*)\} = await import\(productModule\("([^"]+)"/g).map(([list, module]) => [
      list,
      relative(dirname(file), join(root, "src", `${module}.ts`)),
    ]),
  ].flatMap(([list, from]) => namesIn(list).map(({ name }) => ({ file: at(from), name })));
  const all = [
    ...found(/^(?:import|export) (?:type )?\* as \w+ from "([^"]+)"/gm),
    ...found(/(?<!\} = await )import\(\s*"([^"]+)"/g),
    ...found(/new URL\(\s*"(\.[^"]+)"/g),
  ].map(([from]) => ({ file: at(from), name: "*" }));
  const definition = /^export (?:abstract )?(?:async )?(?:function\*?|class|const|let) (\w+)/gm;
  return {
    text,
    defines: new Set(found(definition).map(([name = ""]) => name)),
    passesOn: new Map(listed),
    passesOnAll: found(/^export \* from "([^"]+)"/gm).map(([from]) => at(from)),
    imports: [...taken, ...all],
  };
}

/** `a, type b as c, d: e` */
function namesIn(list = ""): { readonly name: string; readonly as: string }[] {
  return list
    .split(",")
    .map((each) => each.trim().replace(/^type /, ""))
    .filter((each) => each !== "")
    .map((each) => {
      const [name = "", as = name] = each.split(/ as |: /);
      return { name, as };
    });
}

function isUsedWithin(text: string, name: string): boolean {
  return [...text.matchAll(new RegExp(`\\b${name}\\b`, "g"))].length > 1;
}

function isIn(file: string, folder: string): boolean {
  return file.startsWith(join(root, folder, "/"));
}

function keyOf({ file, name }: Name): string {
  return `${file} ${name}`;
}
