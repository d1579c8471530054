import { findOnPath } from './commands.ts';

/** The first has no window to draw, and takes two thirds of the CPU. */
const NAMES = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'];

/** The path of the system's Chromium; throws where none of its names is on the PATH. */
export function findChromium(): string {
  const found = NAMES.map(findOnPath).find((path) => path !== undefined);
  if (found === undefined) {
    throw new Error(`none of ${NAMES.join(', ')} is on the PATH; Debian: apt-get install chromium-headless-shell`);
  }
  return found;
}
