/** Waits for `done`, at most this long. */
export async function within(milliseconds: number, done: Promise<unknown>): Promise<void> {
  const passed = Promise.withResolvers<void>();
  const timer = setTimeout(passed.resolve, milliseconds);
  await Promise.race([done, passed.promise]);
  clearTimeout(timer);
}
