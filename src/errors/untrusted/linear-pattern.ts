/** The longest source of a pattern, in UTF-16 units. */
const MAX_SOURCE = 4_096;
/** The most nodes of a pattern, with repetitions such as {1,3} written out. */
const MAX_NODES = 4_096;
const MAX_DEPTH = 64;
/** The most memory for failed attempts, in bytes. */
const MAX_MEMO_BYTES = 1 << 26;
/** Steps per character before the search starts to remember failures. Patterns of published tokenizers take three to ten. */
const FREE_STEPS = 64;

/** Thrown when {@link LinearPattern} refuses a pattern or a text; the message fits after "got". */
export class PatternRefused extends Error {}

/**
 * A regular expression of JavaScript with the flags `gu`, matched in time linear in the text. It is for untrusted patterns, which
 * could make `RegExp` run forever. It backtracks like `RegExp` and finds exactly the same matches, but it remembers each pair of
 * a place in the pattern and a place in the text that has failed, and does not try it again.
 *
 * Refuses back references, which cannot be matched in linear time, flags such as `(?i:`, and repetitions of something that can be
 * empty. Source: Davis, Servant and Lee 2021, "Using selective memoization to defeat regular expression denial of service".
 */
export class LinearPattern {
  readonly #program: Program;

  /**
   * @param source - source as `RegExp` takes it
   * @throws {PatternRefused} if `RegExp` refuses it, it is too long, or it uses an unsupported feature
   */
  constructor(source: string) {
    if (source.length > MAX_SOURCE)
      throw new PatternRefused(`a pattern of ${source.length} characters, where ${MAX_SOURCE} are the most`);
    try {
      new RegExp(source, "u");
    } catch (error) {
      throw new PatternRefused((error as Error).message);
    }
    this.#program = new Compiler().compile(new Parser(source).parse());
  }

  /** Whether a text has a match. */
  test(text: string): boolean {
    return new Search(this.#program, text).next(0) !== undefined;
  }

  /** Yields all matches from left to right, without overlap. */
  *matches(text: string): Generator<Match> {
    const search = new Search(this.#program, text);
    for (let from = 0; from <= text.length; ) {
      const match = search.next(from);
      if (match === undefined) return;
      yield match;
      from = match.end > match.begin ? match.end : match.end + widthAt(text, match.end);
    }
  }

  /** Cuts a text into its parts before, between and after the matches and the matches themselves, by turns. */
  cut(text: string): string[] {
    const parts: string[] = [];
    let from = 0;
    for (const { begin, end } of this.matches(text)) {
      parts.push(text.slice(from, begin), text.slice(begin, end));
      from = end;
    }
    parts.push(text.slice(from));
    return parts;
  }
}

/** The range of a match, in UTF-16 units; `end` is exclusive. */
export interface Match {
  readonly begin: number;
  readonly end: number;
}

type Node =
  | { readonly kind: "set"; readonly set: CharacterSet }
  | { readonly kind: "row"; readonly nodes: readonly Node[] }
  | { readonly kind: "either"; readonly nodes: readonly Node[] }
  | {
      readonly kind: "repeat";
      readonly node: Node;
      readonly least: number;
      readonly most: number;
      readonly isLazy: boolean;
    }
  | { readonly kind: "look"; readonly node: Node; readonly isBehind: boolean; readonly isNegative: boolean }
  | { readonly kind: "begin" | "end" | "boundary" | "inside" };

/** The characters that one class or escape matches. `RegExp` decides, once for each character. */
class CharacterSet {
  readonly #matcher: RegExp;
  /** For each character 0: not tested yet, 1: no, 2: yes. The first 256, and the others in pages of as many. */
  readonly #latin = new Uint8Array(256);
  readonly #pages = new Map<number, Uint8Array>();

  constructor(source: string) {
    this.#matcher = new RegExp(`^${source}$`, "u");
  }

  has(code: number): boolean {
    const page = code < 256 ? this.#latin : this.#pageOf(code >> 8);
    const known = page[code & 255] as number;
    return known === 0 ? this.#ask(page, code) : known === 2;
  }

  #pageOf(number: number): Uint8Array {
    const page = this.#pages.get(number) ?? new Uint8Array(256);
    this.#pages.set(number, page);
    return page;
  }

  #ask(page: Uint8Array, code: number): boolean {
    const isIn = this.#matcher.test(String.fromCodePoint(code));
    page[code & 255] = isIn ? 2 : 1;
    return isIn;
  }
}

/** Parses a source that `RegExp` has accepted with the flag `u`, so that syntax errors need no check here. */
class Parser {
  readonly #source: string;
  readonly #sets = new Map<string, CharacterSet>();
  #at = 0;
  #depth = 0;

  constructor(source: string) {
    this.#source = source;
  }

  parse(): Node {
    return this.#either();
  }

  #either(): Node {
    if (++this.#depth > MAX_DEPTH) throw new PatternRefused(`a pattern nested more than ${MAX_DEPTH} deep`);
    const nodes = [this.#row()];
    while (this.#take("|")) nodes.push(this.#row());
    this.#depth--;
    return nodes.length === 1 ? (nodes[0] as Node) : { kind: "either", nodes };
  }

  #row(): Node {
    const nodes: Node[] = [];
    while (this.#at < this.#source.length && !"|)".includes(this.#source.charAt(this.#at)))
      nodes.push(this.#repeated(this.#term()));
    return nodes.length === 1 ? (nodes[0] as Node) : { kind: "row", nodes };
  }

  #repeated(node: Node): Node {
    const [text, sign = "", least, comma, most] = this.#match(/([*+?]|\{(\d+)(,)?(\d+)?\})\??/y) ?? [];
    if (text === undefined) return node;
    const isLazy = text.length > sign.length;
    const counted =
      comma === undefined ? Number(least) : most === undefined ? Number.POSITIVE_INFINITY : Number(most);
    const bounds: Readonly<Record<string, readonly [number, number]>> = {
      "*": [0, Number.POSITIVE_INFINITY],
      "+": [1, Number.POSITIVE_INFINITY],
      "?": [0, 1],
    };
    const [from, to] = bounds[sign.charAt(0)] ?? [Number(least), counted];
    return { kind: "repeat", node, least: from, most: to, isLazy };
  }

  #term(): Node {
    const group = this.#match(/\((\?<?[=!]|\?:|\?<[^>=!]*>|(?!\?))/y);
    if (group !== undefined) {
      const node = this.#either();
      this.#take(")");
      const [, mark = ""] = group;
      if (!/[=!]$/.test(mark)) return node;
      return { kind: "look", node, isBehind: mark.includes("<"), isNegative: mark.endsWith("!") };
    }
    if (this.#source.startsWith("(", this.#at)) throw this.#unknown(/\(\?[^:)]*:?/y);
    if (this.#take("^")) return { kind: "begin" };
    if (this.#take("$")) return { kind: "end" };
    if (this.#take("\\b")) return { kind: "boundary" };
    if (this.#take("\\B")) return { kind: "inside" };
    if (/\\[1-9k]/y.test(this.#source.slice(this.#at, this.#at + 2))) throw this.#unknown(/\\./y);
    const [set] =
      this.#match(/\[(?:\\[\s\S]|[^\]\\])*\]/y) ??
      this.#match(/\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}/y) ??
      this.#match(/\\(?:[pPu]\{[^}]*\}|u[\da-fA-F]{4}|x[\da-fA-F]{2}|c[a-zA-Z]|[\s\S])/uy) ??
      (this.#match(/[\s\S]/uy) as RegExpExecArray);
    return { kind: "set", set: this.#setOf(set) };
  }

  #setOf(source: string): CharacterSet {
    let set = this.#sets.get(source);
    if (set === undefined) {
      set = new CharacterSet(source);
      this.#sets.set(source, set);
    }
    return set;
  }

  #take(sign: string): boolean {
    if (!this.#source.startsWith(sign, this.#at)) return false;
    this.#at += sign.length;
    return true;
  }

  #match(matcher: RegExp): RegExpExecArray | undefined {
    matcher.lastIndex = this.#at;
    const match = matcher.exec(this.#source);
    if (match !== null) this.#at = matcher.lastIndex;
    return match ?? undefined;
  }

  #unknown(matcher: RegExp): PatternRefused {
    const [what = ""] = this.#match(matcher) ?? [];
    return new PatternRefused(
      `${JSON.stringify(what)} in a pattern, which is not matched in linear time here`,
    );
  }
}

/** Numbers of the kinds of steps. */
const [SET, SET_BACK, SPLIT, JUMP, MATCHED, LOOK, NOT, BEGIN, END, BOUNDARY, INSIDE, RUN] = [
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
] as const;

/** A compiled pattern: for each step its kind and two numbers, mostly of the steps that come next. */
interface Program {
  readonly ops: Uint8Array;
  readonly first: Int32Array;
  readonly second: Int32Array;
  readonly sets: readonly CharacterSet[];
  /** Index of a step's failures in the memo; −1 if they are not remembered. */
  readonly memos: Int32Array;
  readonly numMemos: number;
}

class Compiler {
  readonly #ops: number[] = [];
  readonly #first: number[] = [];
  readonly #second: number[] = [];
  readonly #sets: CharacterSet[] = [];
  readonly #joins = new Set<number>();

  compile(node: Node): Program {
    this.#node(node, false);
    this.#step(MATCHED);
    const memos = new Int32Array(this.#ops.length).fill(-1);
    for (const [index, join] of [...this.#joins].entries()) memos[join] = index;
    return {
      ops: Uint8Array.from(this.#ops),
      first: Int32Array.from(this.#first),
      second: Int32Array.from(this.#second),
      sets: this.#sets,
      memos,
      numMemos: this.#joins.size,
    };
  }

  #step(op: number, first = 0): number {
    if (this.#ops.length >= MAX_NODES)
      throw new PatternRefused(`a pattern of more than ${MAX_NODES} steps, its repetitions written out`);
    this.#ops.push(op);
    this.#first.push(first);
    this.#second.push(0);
    return this.#ops.length - 1;
  }

  #node(node: Node, isBack: boolean): void {
    switch (node.kind) {
      case "set":
        this.#sets.push(node.set);
        this.#step(isBack ? SET_BACK : SET, this.#sets.length - 1);
        return;
      case "row":
        for (const each of isBack ? node.nodes.toReversed() : node.nodes) this.#node(each, isBack);
        return;
      case "either":
        this.#either(node.nodes, isBack);
        return;
      case "repeat":
        this.#repeat(node, isBack);
        return;
      case "look": {
        const look = this.#step(node.isNegative ? NOT : LOOK);
        this.#node(node.node, node.isBehind);
        this.#step(MATCHED);
        this.#first[look] = look + 1;
        this.#second[look] = this.#ops.length;
        return;
      }
      default:
        this.#step({ begin: BEGIN, end: END, boundary: BOUNDARY, inside: INSIDE }[node.kind]);
    }
  }

  #either(nodes: readonly Node[], isBack: boolean): void {
    const ends: number[] = [];
    for (const [index, node] of nodes.entries()) {
      const isLast = index === nodes.length - 1;
      const split = isLast ? -1 : this.#step(SPLIT, this.#ops.length + 1);
      this.#node(node, isBack);
      if (isLast) break;
      ends.push(this.#step(JUMP));
      this.#second[split] = this.#ops.length;
    }
    for (const end of ends) this.#first[end] = this.#ops.length;
    this.#joins.add(this.#ops.length);
  }

  #repeat({ node, least, most, isLazy }: Node & { kind: "repeat" }, isBack: boolean): void {
    // Whether an empty round counts depends on where it began, which would have to be remembered too.
    if (canBeEmpty(node)) throw new PatternRefused("a repetition of what can be empty, such as (a*)*");
    for (let count = 0; count < least; count++) this.#node(node, isBack);
    if (most === Number.POSITIVE_INFINITY) {
      this.#joins.add(this.#ops.length);
      // A greedy run of one set is taken at once, as long as nothing has to be remembered.
      if (node.kind === "set" && !isLazy && !isBack) {
        this.#sets.push(node.set);
        const run = this.#step(RUN, this.#sets.length - 1);
        this.#second[run] = this.#ops.length;
        this.#joins.add(this.#ops.length);
        return;
      }
      const head = this.#step(SPLIT);
      this.#node(node, isBack);
      this.#step(JUMP, head);
      this.#branch(head, isLazy);
      return;
    }
    const splits: number[] = [];
    for (let count = least; count < most; count++) {
      splits.push(this.#step(SPLIT));
      this.#node(node, isBack);
    }
    for (const split of splits) this.#branch(split, isLazy);
    if (splits.length > 0) this.#joins.add(this.#ops.length);
  }

  /** Fills in the two ways of a split, one right after it and one at the present end of the steps, in the order of trying. */
  #branch(split: number, isLazy: boolean): void {
    this.#first[split] = isLazy ? this.#ops.length : split + 1;
    this.#second[split] = isLazy ? split + 1 : this.#ops.length;
  }
}

function canBeEmpty(node: Node): boolean {
  switch (node.kind) {
    case "set":
      return false;
    case "row":
      return node.nodes.every(canBeEmpty);
    case "either":
      return node.nodes.some(canBeEmpty);
    case "repeat":
      return node.least === 0 || canBeEmpty(node.node);
    default:
      return true;
  }
}

/** Memo of a step at a place of the text. 0: not tried, FAILED: tried without a match yet, LED: led to a match. */
const [FAILED, LED] = [1, 2];

/** The search for matches in one text. */
class Search {
  readonly #program: Program;
  readonly #text: string;
  #memo: Uint8Array | undefined;
  #freeSteps: number;

  constructor(program: Program, text: string) {
    this.#program = program;
    this.#text = text;
    this.#freeSteps = FREE_STEPS * (text.length + 64);
  }

  /** Finds the first match that begins at `from` or later. */
  next(from: number): Match | undefined {
    for (let begin = from; begin <= this.#text.length; begin += widthAt(this.#text, begin)) {
      let end = this.#run(0, begin, false);
      if (end === INTERRUPTED) {
        this.#remember();
        end = this.#run(0, begin, false);
      }
      if (end >= 0) return { begin, end };
    }
    return undefined;
  }

  #remember(): void {
    const size = this.#program.numMemos * (this.#text.length + 1);
    if (size > MAX_MEMO_BYTES)
      throw new PatternRefused(
        `a pattern that tries ${this.#program.numMemos} ways in a text of ${this.#text.length} characters`,
      );
    this.#memo = new Uint8Array(size);
    this.#freeSteps = Number.POSITIVE_INFINITY;
  }

  /** Returns the end of the match that begins at a step and a place, {@link NONE} or {@link INTERRUPTED}. */
  #run(firstStep: number, firstPlace: number, isLook: boolean): number {
    const { ops, first, second, sets, memos } = this.#program;
    const text = this.#text;
    const memo = this.#memo;
    const width = text.length + 1;
    // Attempts still to be made: a step, a place, and how much of the trail leads there. A run of one set is tried from its end
    // back to its beginning, which is the fourth number; −1 if there is no run.
    const todo: number[] = [];
    const trail: number[] = [];
    let [step, place] = [firstStep, firstPlace];
    let steps = 0;
    for (;;) {
      let hasFailed = false;
      const known = memo === undefined ? -1 : (memos[step] as number);
      if (known >= 0 && memo !== undefined) {
        const key = known * width + place;
        const state = memo[key] as number;
        if (state === LED && isLook) return this.#led(trail, place);
        if (state !== 0) hasFailed = true;
        else {
          memo[key] = FAILED;
          trail.push(key);
        }
      }
      steps++;
      // Where a step fails, its next step and place do not matter.
      if (!hasFailed)
        switch (ops[step]) {
          case SET: {
            const code = text.codePointAt(place);
            hasFailed = !holds(sets[first[step] as number], code);
            place += (code ?? 0) > 0xffff ? 2 : 1;
            step++;
            break;
          }
          case SET_BACK: {
            const before = place - widthBefore(text, place);
            hasFailed = place === 0 || !holds(sets[first[step] as number], text.codePointAt(before));
            place = before;
            step++;
            break;
          }
          case RUN: {
            const set = sets[first[step] as number] as CharacterSet;
            if (memo !== undefined) {
              // One character at a time, so that this step is remembered at each place.
              const code = text.codePointAt(place);
              if (code === undefined || !set.has(code)) step = second[step] as number;
              else {
                todo.push(second[step] as number, place, trail.length, -1);
                place += code > 0xffff ? 2 : 1;
              }
              break;
            }
            const begin = place;
            let code = text.codePointAt(place);
            for (; code !== undefined && set.has(code); code = text.codePointAt(place)) {
              place += code > 0xffff ? 2 : 1;
              steps++;
            }
            step = second[step] as number;
            if (place > begin) todo.push(step, place, trail.length, begin);
            break;
          }
          case SPLIT: {
            const tried = first[step] as number;
            // Most ways fail at their first character: do not begin those.
            const isFutile =
              ops[tried] === SET && !holds(sets[first[tried] as number], text.codePointAt(place));
            if (!isFutile) todo.push(second[step] as number, place, trail.length, -1);
            step = isFutile ? (second[step] as number) : tried;
            break;
          }
          case JUMP:
            step = first[step] as number;
            break;
          case LOOK:
          case NOT: {
            const end = this.#run(first[step] as number, place, true);
            if (end === INTERRUPTED) return INTERRUPTED;
            hasFailed = end >= 0 !== (ops[step] === LOOK);
            step = second[step] as number;
            break;
          }
          case BEGIN:
            hasFailed = place !== 0;
            step++;
            break;
          case END:
            hasFailed = place !== text.length;
            step++;
            break;
          case BOUNDARY:
          case INSIDE:
            hasFailed = (isWordAt(text, place - 1) !== isWordAt(text, place)) !== (ops[step] === BOUNDARY);
            step++;
            break;
          default:
            this.#freeSteps -= steps;
            if (isLook) return this.#led(trail, place);
            // The trail has not failed: another search may come this way.
            if (memo !== undefined) for (const key of trail) memo[key] = 0;
            return place;
        }
      if (!hasFailed) continue;
      if (todo.length === 0) {
        this.#freeSteps -= steps;
        return NONE;
      }
      if (memo === undefined && steps > this.#freeSteps) return INTERRUPTED;
      const begin = todo.pop() as number;
      const trailLength = todo.pop() as number;
      trail.length = trailLength;
      place = todo.pop() as number;
      step = todo.pop() as number;
      if (begin < 0) continue;
      place -= widthBefore(text, place);
      if (place > begin) todo.push(step, place, trailLength, begin);
    }
  }

  /** Remembers a trail that led to a match. It will lead there again, because a lookaround asks only whether there is a match. */
  #led(trail: readonly number[], place: number): number {
    if (this.#memo !== undefined) for (const key of trail) this.#memo[key] = LED;
    return place;
  }
}

const [NONE, INTERRUPTED] = [-1, -2];

function holds(set: CharacterSet | undefined, code: number | undefined): boolean {
  return code !== undefined && set?.has(code) === true;
}

/** Number of UTF-16 units of the character at a place. */
const widthAt = (text: string, place: number): number => ((text.codePointAt(place) ?? 0) > 0xffff ? 2 : 1);

function widthBefore(text: string, place: number): number {
  return place >= 2 && (text.codePointAt(place - 2) ?? 0) > 0xffff ? 2 : 1;
}

const isWordAt = (text: string, place: number): boolean => /^\w$/.test(text.charAt(place));
