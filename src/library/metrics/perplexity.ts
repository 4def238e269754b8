/** e to the mean loss: the number of equally likely tokens that would leave the model as uncertain. */
export function perplexity(nats: number, numTokens: number): number {
  return Math.exp(nats / Math.max(1, numTokens));
}
