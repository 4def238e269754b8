import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Words that a stranger would need a glossary for, and what to say instead. */
const retired: readonly (readonly [words: RegExp, instead: string])[] = [
  [/\b(whoever|whomever|whosoever|somebody|everybody)\b/gi, "name the caller, the rank, the user"],
  [/\bwhole\b(?! numbers?\b)/gi, "complete, gathered, all of"],
  [/\b(is|are|was|were|be|been|being|gets?) told\b(?! apart)/gi, "reported; X learns, hears, receives"],
  [/\b(meets?|met|meeting)\b/gi, "joins; rendezvous"],
  [/\b(born|births?)\b/gi, "started, start"],
  [/\banew\b/gi, "again"],
  [/\bso-many-th\b/gi, "every n-th"],
  [/\bsigns? of life\b/gi, "heartbeat"],
  [/\bnarrow (copy|copies|parameters?|weights?)\b/gi, "low-precision"],
  [/\b(understudy|keepers?|milestones?|shelters?|vessels?|whereabouts)\b/gi, "see section 15 of the design"],
  [/\b(walkedBackBy|passOn|ALL_BLOCKS|shelf|census)\b/g, "a name that says what it does"],
];

/** A comment starts with its subject: a clause that begins with one of these has lost it. */
const stiffBeginning = /^(What|Who|Whoever|Whose|Whom|Of) [a-z`{]/;

/** A doc comment that begins so leans on the one above it, which an editor does not show. */
const leaningBeginning = /^((Those|The same (for|of|in|on|with|before|as text)) |…)/;

/** Rooms that have not had their reading yet. A room that is clean must leave the list. */
const unread: readonly string[] = [];

interface Finding {
  readonly room: string;
  readonly text: string;
}

const files = globSync(
  [
    "{src,test,bench,examples,scripts}/**/*.{ts,mjs,js,html}",
    "native/**/*.{cc,h,cu}",
    "docs/**/*.md",
    "*.md",
  ],
  { cwd: root },
)
  .filter((path) => !/\.generated\.ts$|^test\/words\.test\.ts$|^test\/golden\/states\//.test(path))
  .toSorted();

describe("plain words", () => {
  const byRoom = Map.groupBy(files.flatMap(findings), ({ room }) => room);

  it.each([...new Set(files.map(roomOf))].filter((room) => !unread.includes(room)))("in %s", (room) => {
    expect((byRoom.get(room) ?? []).map(({ text }) => text)).toEqual([]);
  });

  it("keeps no room on the list that is clean", () => {
    expect(unread.filter((room) => !byRoom.has(room))).toEqual([]);
  });

  it("sees a retired word and a stiff beginning", () => {
    expect(proseOf("a.ts", '/** Of it. */ const a = "told";').map(({ words }) => words)).toEqual([
      "Of it.",
      "told",
    ]);
    expect(stiffBeginning.test("Of it.")).toBe(true);
    expect(["Those of it.", "The same for it.", "…"].every((words) => leaningBeginning.test(words))).toBe(
      true,
    );
  });
});

function findings(path: string): Finding[] {
  const room = roomOf(path);
  const text = readFileSync(join(root, path), "utf8");
  return proseOf(path, text).flatMap(({ words, line, isComment, isDoc = false }) => {
    const isStiff = (isComment && stiffBeginning.test(words)) || (isDoc && leaningBeginning.test(words));
    const stiff = isStiff ? [`begins with ${words.split(" ")[0]}`] : [];
    const old = retired.flatMap(([pattern, instead]) =>
      [...words.matchAll(pattern)].map(([word]) => `"${word}" (${instead})`),
    );
    return [...stiff, ...old].map((what) => ({ room, text: `${path}:${line} ${what}` }));
  });
}

interface Prose {
  readonly words: string;
  /** From 1. */
  readonly line: number;
  readonly isComment: boolean;
  readonly isDoc?: boolean;
}

/** Comments, and texts of more than one word; all of a page but code between backticks. */
function proseOf(path: string, text: string): Prose[] {
  const lineAt = (index: number) => text.slice(0, index).split("\n").length;
  if (/\.(md|html)$/.test(path)) {
    const prose = text.replace(/```[\s\S]*?```|`[^`\n]*`/g, (code) => code.replace(/[^\n]/g, " "));
    return prose.split("\n").map((words, index) => ({ words, line: index + 1, isComment: false }));
  }
  const pieces =
    /\/\*[\s\S]*?\*\/|(?:^[ \t]*\/\/[^\n]*\n?)+|(?<=[;,{}() \t])\/\/[^\n]*|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/gm;
  return [...text.matchAll(pieces)].flatMap(({ 0: piece, index }) => {
    const isComment = /^\s*\//.test(piece);
    if (!isComment && !/\s|^"\w+"$/.test(piece)) return [];
    const words = isComment
      ? piece.replace(/^\s*\/[*/]+|\*\/\s*$/g, "").replace(/\n\s*(\*|\/\/+)/g, "\n")
      : piece.slice(1, -1);
    return [{ words: words.trim(), line: lineAt(index), isComment, isDoc: piece.startsWith("/**") }];
  });
}

/** `src/compute/nn`, `src/actors`, `test/trainer`, `docs`. */
function roomOf(path: string): string {
  const folders = path.split("/").slice(0, -1);
  return folders.slice(0, folders[0] === "src" ? 3 : 2).join("/") || "the root";
}
