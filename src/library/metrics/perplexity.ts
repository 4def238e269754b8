/** e^ of the mean loss: between how many tokens, all alike, the model is as unsure. */
export function perplexity(nats: number, numTokens: number): number {
  return Math.exp(nats / Math.max(1, numTokens));
}
