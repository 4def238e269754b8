import { exampleError, readText } from "./refusal.ts";

/** A sentence and its words' tags. */
export interface TaggedWords {
  readonly words: readonly string[];
  readonly tags: readonly string[];
}

/**
 * Reads the sentences of a CoNLL-U file: words and their universal parts of speech (columns 2 and 4). Skips words that
 * stand for several (`3-4`) and empty nodes (`8.1`).
 * @throws {TroupeError} `DATA_UNREADABLE`, `DATA_EXAMPLE` for a line without ten columns
 * @see https://universaldependencies.org/format.html
 */
export async function readConllu(path: string): Promise<TaggedWords[]> {
  const text = await readText(path);
  const sentences: TaggedWords[] = [];
  let words: string[] = [];
  let tags: string[] = [];
  const end = () => {
    if (words.length > 0) sentences.push({ words, tags });
    [words, tags] = [[], []];
  };
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line === "") end();
    if (line === "" || line.startsWith("#")) continue;
    const columns = line.split("\t");
    const [id = "", word, , tag] = columns;
    if (columns.length !== 10) throw exampleError(`${path}:${index + 1}`, "ten columns", columns.length);
    if (!/^\d+$/.test(id)) continue;
    words.push(word as string);
    tags.push(tag as string);
  }
  end();
  return sentences;
}
