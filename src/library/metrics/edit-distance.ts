/** The fewest insertions, deletions and substitutions that turn one list into another. */
export function editDistance<T>(from: readonly T[], to: readonly T[]): number {
  let row = Array.from({ length: to.length + 1 }, (_, place) => place);
  for (const [index, item] of from.entries()) {
    const next = [index + 1];
    for (const [place, wanted] of to.entries()) {
      const replaced = (row[place] as number) + Number(item !== wanted);
      next.push(Math.min(replaced, (row[place + 1] as number) + 1, (next[place] as number) + 1));
    }
    row = next;
  }
  return row[to.length] as number;
}

/** Word errors of all texts, divided by their number of words: 0 is perfect, and 1 may be exceeded. */
export function wordErrorRate(guesses: readonly string[], texts: readonly string[]): number {
  return errorRate(guesses.map(wordsOf), texts.map(wordsOf));
}

/** Character errors of all texts, divided by their number of characters (code points). */
export function characterErrorRate(guesses: readonly string[], texts: readonly string[]): number {
  return errorRate(
    guesses.map((guess) => [...guess]),
    texts.map((text) => [...text]),
  );
}

/** Words of a text, separated by white space. */
export function wordsOf(text: string): string[] {
  return text.split(/\s+/u).filter((word) => word !== "");
}

function errorRate(guesses: readonly (readonly string[])[], texts: readonly (readonly string[])[]): number {
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
  const errors = sum(texts.map((text, index) => editDistance(guesses[index] ?? [], text)));
  return errors / Math.max(1, sum(texts.map(({ length }) => length)));
}
