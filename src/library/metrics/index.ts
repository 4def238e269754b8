/** Metrics of predictions: numbers computed from plain lists, in the order of the samples. */

export { answerF1, exactMatch } from "./answers.ts";
export * from "./classification.ts";
export { pearson, spearman } from "./correlation.ts";
export { characterErrorRate, editDistance, wordErrorRate, wordsOf } from "./edit-distance.ts";
export { entityF1 } from "./entities.ts";
