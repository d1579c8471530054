/** One of several steps for an item: adds to it, or ends the rest by throwing. */
export type Step<Item> = (item: Item) => void | Promise<void>;

/** Runs the steps for an item, one after another; a synchronous one costs no tick of the event loop. */
export async function runSteps<Item>(steps: readonly Step<Item>[], item: Item): Promise<void> {
  for (const step of steps) {
    const pending = step(item);
    if (pending) await pending;
  }
}
