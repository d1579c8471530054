import { type StatsListener, unwatchFile, watchFile } from 'node:fs';

const LOOK_EVERY_MS = 500;
/** An editor writes in several steps: they are mostly over by then. Shorter than the time between two looks. */
const SETTLED_MS = 200;

/**
 * Calls `onChange` soon after a file has changed, until it is disposed. It looks at the file instead of waiting for events,
 * which end with the inode: editors replace a file by renaming another one over it, and may leave it away in between.
 */
export function watchTable(path: string, onChange: () => void): Disposable {
  let settling: NodeJS.Timeout | undefined;
  const listener: StatsListener = () => {
    clearTimeout(settling);
    settling = setTimeout(onChange, SETTLED_MS).unref();
  };
  watchFile(path, { interval: LOOK_EVERY_MS, persistent: false }, listener);
  return {
    [Symbol.dispose]() {
      unwatchFile(path, listener);
      clearTimeout(settling);
    },
  };
}
