import { globSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = join(root, "src", "entries");
/** An entry as users import it: "troupe" for index, "troupe/nn" for nn. */
const nameOf = (entry: string) => (entry === "index" ? "troupe" : `troupe/${entry}`);
const entries = readdirSync(folder)
  .filter((file) => file.endsWith(".js"))
  .map((file) => file.slice(0, -".js".length));

interface Exported {
  readonly name: string;
  readonly isType: boolean;
  /** The room that it is exported of, as a path from the entry. */
  readonly from: string;
}

/** The names that the source of an entry lists. */
function listOf(entry: string): Exported[] {
  const text = readFileSync(join(folder, `${entry}.ts`), "utf8");
  return [...text.matchAll(/export (type )?\{([^}]*)\} from "([^"]+)"/g)].flatMap(
    ([, allTypes, names = "", from = ""]) =>
      namesIn(names).map(({ name, isType }) => ({ name, isType: isType || allTypes !== undefined, from })),
  );
}

/** The names between the braces of an import or export, without what they are called there. */
function namesIn(braces: string): { readonly name: string; readonly isType: boolean }[] {
  return braces
    .split(",")
    .map((each) => each.trim())
    .filter((each) => each !== "")
    .map((each) => ({
      name: each.replace(/^type /, "").replace(/ as .*/, ""),
      isType: each.startsWith("type "),
    }));
}

const lists = new Map(entries.map((entry) => [nameOf(entry), listOf(entry)]));
const modules = new Map(
  await Promise.all(
    entries.map(async (entry) => {
      const url = new URL(`../src/entries/${entry}.ts`, import.meta.url).href;
      return [nameOf(entry), (await import(url)) as Readonly<Record<string, unknown>>] as const;
    }),
  ),
);

/** Names that TypeScript's own libraries declare for every file, a browser's too. */
function globalNames(): Set<string> {
  const files = globSync("node_modules/@typescript/*/lib/lib.*.d.ts", { cwd: root });
  const declared = /^(?:declare (?:var|let|const|function|class|namespace)|interface|type) (\w+)/gm;
  const texts = files.map((file) => readFileSync(join(root, file), "utf8"));
  return new Set(texts.flatMap((text) => [...text.matchAll(declared)].map(([, name = ""]) => name)));
}

describe("the package's entries", () => {
  // A new public name is a line of a list; `npx vitest run test/entries.test.ts -u` writes it.
  it.each(entries)("%s exports what its list names", async (entry) => {
    const list = lists.get(nameOf(entry)) ?? [];
    const values = list.filter(({ isType }) => !isType).map(({ name }) => name);
    expect(Object.keys(modules.get(nameOf(entry)) ?? {})).toEqual(values.toSorted());
    const lines = list.map(({ name, isType }) => (isType ? `type ${name}` : name));
    const sorted = lines.toSorted((a, b) => (a.replace("type ", "") < b.replace("type ", "") ? -1 : 1));
    await expect(`${sorted.join("\n")}\n`).toMatchFileSnapshot(`entries/${entry}.txt`);
  });

  it("are explicit: none exports all of another module", () => {
    const open = globSync("*.ts", { cwd: folder }).filter((file) =>
      /export \*/.test(readFileSync(join(folder, file), "utf8")),
    );
    expect(open).toEqual([]);
  });

  it("are at most 80 values at the root", () => {
    expect(Object.keys(modules.get("troupe") ?? {}).length).toBeLessThanOrEqual(80);
  });

  it("hide no global of Node or of TypeScript's libraries", () => {
    const globals = globalNames();
    expect(globals).toContain("Generator");
    const hiding = [...lists].flatMap(([entry, list]) =>
      list
        .filter(({ name }) => globals.has(name) || name in globalThis)
        .map(({ name }) => `${entry}: ${name}`),
    );
    expect(hiding).toEqual([]);
  });

  it("mean one thing by a name, in whichever entry it is", () => {
    const meanings = new Map<
      string,
      { readonly from: string; readonly value: unknown; readonly entry: string }
    >();
    const differing: string[] = [];
    for (const [entry, list] of lists) {
      for (const { name, from } of list) {
        const value = modules.get(entry)?.[name];
        const known = meanings.get(name) ?? { from, value, entry };
        if (known.from !== from || known.value !== value) differing.push(`${name}: ${known.entry}, ${entry}`);
        meanings.set(name, known);
      }
    }
    expect(differing).toEqual([]);
  });

  it("have every name that an example, a page of docs or the README imports", () => {
    const files = globSync(["*.md", "docs/**/*.md", "examples/**/*.{ts,md}"], { cwd: root });
    const imports = files.flatMap((file) =>
      [
        ...readFileSync(join(root, file), "utf8").matchAll(
          /import (?:type )?\{([^}]*)\} from "(troupe[^"]*)"/g,
        ),
      ].map(([, names = "", entry = ""]) => ({ file, entry, names: namesIn(names) })),
    );
    expect(imports.length).toBeGreaterThan(15);
    const missing = imports.flatMap(({ file, entry, names }) => {
      const known = new Set((lists.get(entry) ?? []).map(({ name }) => name));
      return names.filter(({ name }) => !known.has(name)).map(({ name }) => `${file}: ${name} of ${entry}`);
    });
    expect(missing).toEqual([]);
  });

  it("have every name that the page of moved names gives, and none that it calls internal", () => {
    const page = readFileSync(join(root, "docs", "reference", "migration.md"), "utf8");
    const internal = page.slice(page.indexOf("## Internal"));
    const named = (text: string) => [...text.matchAll(/`([\w.]+)`/g)].map(([, name = ""]) => name);
    const names = (entry: string) => new Set((lists.get(entry) ?? []).map(({ name }) => name));
    const moved = [...page.matchAll(/^\| `(troupe\/\w+)` +\|(.*)$/gm)];
    const renamed = [...page.matchAll(/^\| `\w+` +\| `(?:init\.)?(\w+)` of `(troupe\/\w+)` +\|$/gm)];
    expect([moved.length > 8, renamed.length > 5]).toEqual([true, true]);
    const lost = [
      ...moved.flatMap(([, entry = "", row = ""]) => named(row).filter((name) => !names(entry).has(name))),
      ...renamed.flatMap(([, name = "", entry = ""]) => {
        const inside = modules.get(entry)?.init as object | undefined;
        return names(entry).has(name) || Object.hasOwn(inside ?? {}, name) ? [] : [`${name} of ${entry}`];
      }),
    ];
    expect(lost).toEqual([]);
    const open = [...lists.keys()].flatMap((entry) => [...names(entry)]);
    expect(named(internal).filter((name) => open.includes(name))).toEqual([]);
  });
});
