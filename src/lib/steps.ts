/** One function of an array that is applied to an item: it changes the item, or throws to skip the remaining ones. */
export type Step<Item> = (item: Item) => void | Promise<void>;

/** Runs the steps for an item in order. A synchronous step costs no tick of the event loop. */
export async function runSteps<Item>(steps: readonly Step<Item>[], item: Item): Promise<void> {
  for (const step of steps) {
    const pending = step(item);
    if (pending) await pending;
  }
}
