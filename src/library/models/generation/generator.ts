import type { PagedText } from "../../../compute/nn/index.ts";
import { type Tensor, tensor } from "../../../compute/tensor/index.ts";
import { type AdjustText, chooseTokens, SampleStream } from "./drawing.ts";
import type { Ending } from "./ending.ts";
import { type GenerativeModel, startTokenOf } from "./generative-model.ts";
import type { Settled } from "./options.ts";
import { type IdentifiedToken, PagedTexts, type Source } from "./paged-texts.ts";

/** Maximum number of tokens in a pass, prompts and last tokens of texts together, unless more texts are written. */
const PASS_TOKENS = 1024;

/** A prompt whose samples have not all begun. */
interface OpenPrompt {
  readonly tokens: readonly number[];
  /** The tokens that its samples begin with: its own, or an encoder-decoder's first. */
  readonly begun: readonly number[];
  readonly index: number;
  /** Number of samples that have begun. */
  numBegun: number;
  /** All positions of the prompt but the last; undefined until the first sample has read it. */
  beginning: PagedText | undefined;
  /** The prompt of an encoder-decoder; undefined until the first sample has begun. */
  source: Source | undefined;
}

/** A sample under way. */
interface Sample {
  readonly prompt: OpenPrompt;
  readonly sample: number;
  /** The tokens that it begins with, then its own. */
  readonly tokens: number[];
  readonly logProbs: number[];
  readonly stream: SampleStream;
  text: PagedText;
  /** Index of the token at the text's position 0: above 0 where the text is longer than the context. */
  first: number;
}

/** The tokens that a sample has written. */
export interface WrittenSample {
  readonly prompt: number;
  readonly sample: number;
  readonly tokens: readonly number[];
  readonly logProbs: readonly number[];
}

/**
 * Continues prompts of any lengths, or replies to them, several samples each, with as many texts at a time as there are slots: when a
 * text ends, the next begins in its place. Each pass has one token of each text and parts of new prompts, without padding; a prompt is
 * read once, and its samples share its pages. Beyond the model's context the last positions are computed again for each token.
 */
export class Generator implements Disposable {
  readonly #isReply: boolean;
  readonly #options: Settled;
  readonly #ending: Ending;
  readonly #adjust: AdjustText | undefined;
  readonly #texts: PagedTexts;
  /** Prompts in order, until all of their samples have begun. */
  readonly #prompts: OpenPrompt[];
  #samples: Sample[] = [];

  constructor(
    model: GenerativeModel,
    prompts: readonly (readonly number[])[],
    { options, ending, adjust }: { options: Settled; ending: Ending; adjust: AdjustText | undefined },
  ) {
    const start = startTokenOf(model);
    this.#isReply = start !== undefined;
    this.#options = options;
    this.#ending = ending;
    this.#adjust = adjust;
    this.#prompts = prompts.map((tokens, index) => {
      const begun = start === undefined ? tokens : [start];
      return { tokens, begun, index, numBegun: 0, beginning: undefined, source: undefined };
    });
    const mostTexts = Math.min(options.slots, prompts.length * options.samples);
    this.#texts = new PagedTexts(model, prompts, { mostTexts, maxNewTokens: options.maxNewTokens });
  }

  /** Whether there is nothing left to write. */
  get isDone(): boolean {
    return this.#prompts.length === 0 && this.#samples.length === 0;
  }

  /** Memory of keys and values, and the positions of the texts under way that need it, a shared beginning once. */
  get used(): { readonly bytes: number; readonly numPositions: number } {
    const prompts = new Set(this.#samples.map(({ prompt }) => prompt));
    for (const prompt of this.#prompts) if (prompt.beginning ?? prompt.source) prompts.add(prompt);
    const shared = [...prompts].reduce((sum, { tokens }) => sum + tokens.length, 0);
    const own = this.#samples.map(({ text, prompt }) =>
      Math.max(0, text.length - (this.#isReply ? 0 : prompt.tokens.length)),
    );
    return { bytes: this.#texts.bytes, numPositions: own.reduce((sum, length) => sum + length, shared) };
  }

  /** Makes one pass. Returns the samples that ended with it. */
  step(): WrittenSample[] {
    this.#begin();
    const { tokens, ending } = this.#nextTokens();
    const logits = this.#texts.pass(tokens, Math.max(1, ending.length));
    try {
      const rows = [...ending.keys()];
      const writing = [...ending];
      for (const [row, sample] of ending.entries())
        for (const other of this.#beginOthers(sample)) {
          rows.push(row);
          writing.push(other);
        }
      const ended = writing.length === 0 ? [] : this.#write(logits, rows, writing);
      this.#samples = this.#samples.filter((sample) => !ended.includes(sample));
      for (const { text } of ended) this.#texts.release(text);
      return ended.map(({ prompt, sample, tokens: all, logProbs }) => ({
        prompt: prompt.index,
        sample,
        tokens: all.slice(prompt.begun.length),
        logProbs,
      }));
    } finally {
      logits.dispose();
    }
  }

  [Symbol.dispose](): void {
    this.#texts[Symbol.dispose]();
  }

  /** Begins samples in the free slots. */
  #begin(): void {
    const { slots, samples } = this.#options;
    for (const prompt of [...this.#prompts]) {
      if (this.#samples.length >= slots) return;
      if (this.#isReply) {
        if (prompt.source === undefined && !this.#hasRoomFor(prompt)) return;
        // Each has a first token of its own: a page that they share would have that one alone.
        prompt.source ??= this.#texts.read(prompt.tokens);
        const { source } = prompt;
        while (prompt.numBegun < samples && this.#samples.length < slots)
          this.#add(prompt, this.#texts.open(source));
      } else if (prompt.beginning !== undefined) {
        while (prompt.beginning !== undefined && this.#samples.length < slots)
          this.#add(prompt, this.#texts.share(prompt.beginning, prompt.tokens.length - 1));
      } else if (prompt.numBegun === 0) {
        // The other samples of prompts that are being read begin at once when these are.
        const promised = this.#prompts.filter(({ numBegun, beginning }) => numBegun > 0 && !beginning).length;
        if (this.#samples.length + promised * (samples - 1) >= slots) return;
        this.#add(prompt, this.#texts.open());
      }
    }
  }

  /** Whether the next pass has room for a prompt that the encoder reads: it reads all of it at once. */
  #hasRoomFor({ tokens }: OpenPrompt): boolean {
    const { numFresh } = this.#texts;
    return numFresh === 0 || numFresh + tokens.length <= PASS_TOKENS;
  }

  /** Begins the other samples of a prompt that its first has read, in the free slots; they draw from the same logits. */
  #beginOthers({ prompt, text }: Sample): Sample[] {
    const { slots, samples } = this.#options;
    const isShared = !this.#isReply && samples > 1;
    if (!isShared || prompt.numBegun !== 1 || prompt.beginning !== undefined) return [];
    const others: Sample[] = [];
    while (prompt.numBegun < samples && this.#samples.length < slots)
      others.push(this.#add(prompt, this.#texts.share(text, text.length)));
    if (prompt.numBegun < samples) prompt.beginning = this.#texts.share(text, prompt.tokens.length - 1);
    return others;
  }

  #add(prompt: OpenPrompt, text: PagedText): Sample {
    const { seed, firstPrompt, samples } = this.#options;
    const sample = prompt.numBegun++;
    const stream = new SampleStream(seed, firstPrompt + prompt.index, sample);
    const added = { prompt, sample, tokens: [...prompt.begun], logProbs: [], stream, text, first: 0 };
    this.#samples.push(added);
    if (prompt.numBegun === samples) {
      this.#prompts.splice(this.#prompts.indexOf(prompt), 1);
      if (prompt.beginning !== undefined) this.#texts.release(prompt.beginning);
      if (prompt.source !== undefined) this.#texts.leave(prompt.source);
      prompt.beginning = undefined;
    }
    return added;
  }

  /** The tokens of the next pass: those whose logits are wanted, the last of `ending`, come last. */
  #nextTokens(): { tokens: IdentifiedToken[]; ending: Sample[] } {
    const { maxPositions } = this.#texts;
    for (const sample of this.#samples) {
      if (sample.tokens.length - sample.first <= maxPositions) continue;
      sample.text = this.#texts.restart(sample.text);
      sample.first = sample.tokens.length - maxPositions;
    }
    const restOf = ({ tokens, first, text }: Sample) => tokens.length - first - text.length;
    const continued = this.#samples.filter((sample) => restOf(sample) === 1);
    const others = this.#samples.filter((sample) => restOf(sample) > 1);
    let room = Math.max(PASS_TOKENS, continued.length);
    const [before, last]: [IdentifiedToken[], IdentifiedToken[]] = [[], []];
    const ending: Sample[] = [];
    for (const sample of [...continued, ...others]) {
      const { text, tokens, first } = sample;
      const rest = restOf(sample);
      const count = Math.min(rest, room);
      const begin = text.length;
      if (count === 0) break;
      room -= count;
      this.#texts.grow(text, count);
      for (let position = begin; position < begin + count; position++) {
        const isLast = position === begin + rest - 1;
        (isLast ? last : before).push({ text, position, id: tokens[first + position] as number });
        if (isLast) ending.push(sample);
      }
    }
    return { tokens: [...before, ...last], ending };
  }

  /** Adds a token to each sample. @param rows - its row of the logits @returns the samples that end */
  #write(logits: Tensor, rows: readonly number[], writing: readonly Sample[]): Sample[] {
    const options = this.#options;
    const adjust = this.#adjust;
    const uniforms = writing.map(({ stream, logProbs }) => stream.at(logProbs.length));
    const own =
      rows.length === logits.shape[0] ? logits : logits.indexSelect(0, tensor([...rows], { dtype: "int64" }));
    const { tokens, logProbs } = chooseTokens(
      own,
      uniforms,
      options,
      adjust &&
        ((row, place) => {
          const { tokens: text, logProbs: written } = writing[place] as Sample;
          adjust(row, text, written.length);
        }),
    );
    return writing.filter((sample, place) => {
      const token = tokens[place] as number;
      sample.tokens.push(token);
      sample.logProbs.push(logProbs[place] as number);
      options.onToken?.({
        prompt: sample.prompt.index,
        sample: sample.sample,
        token,
        logProb: logProbs[place] as number,
      });
      const written = sample.tokens.slice(sample.prompt.begun.length);
      return written.length === options.maxNewTokens || this.#ending.isReached(written);
    });
  }
}
