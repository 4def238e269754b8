import { wordsOf } from "./edit-distance.ts";

/**
 * The share of answers that equal a right one, ignoring case, articles and punctuation.
 * @param texts - the right answers to each question
 * @see Rajpurkar et al. 2016 §6, https://arxiv.org/abs/1606.05250
 */
export function exactMatch(guesses: readonly string[], texts: readonly (readonly string[])[]): number {
  return meanBest(guesses, texts, (guess, text) => Number(plain(guess).join(" ") === plain(text).join(" ")));
}

/** The mean F1 of the words that each answer shares with the closest right one. */
export function answerF1(guesses: readonly string[], texts: readonly (readonly string[])[]): number {
  return meanBest(guesses, texts, (guess, text) => {
    const [ours, theirs] = [plain(guess), plain(text)];
    if (ours.length === 0 || theirs.length === 0) return Number(ours.length === theirs.length);
    const left = [...theirs];
    const shared = ours.filter((word) => {
      const place = left.indexOf(word);
      if (place >= 0) left.splice(place, 1);
      return place >= 0;
    });
    return (2 * shared.length) / (ours.length + theirs.length);
  });
}

function meanBest(
  guesses: readonly string[],
  texts: readonly (readonly string[])[],
  worth: (guess: string, text: string) => number,
): number {
  const best = texts.map((right, index) =>
    Math.max(0, ...right.map((text) => worth(guesses[index] ?? "", text))),
  );
  return best.reduce((sum, value) => sum + value, 0) / Math.max(1, best.length);
}

function plain(text: string): string[] {
  const bare = text.toLowerCase().replaceAll(/[!-/:-@[-`{-~]/g, "");
  return wordsOf(bare.replaceAll(/\b(a|an|the)\b/g, " "));
}
