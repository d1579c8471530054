import { findOnPath } from './commands.ts';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];

/** The path of the system's Chromium; throws where none of its names is on the PATH. */
export function findChromium(): string {
  const found = NAMES.map(findOnPath).find((path) => path !== undefined);
  if (found === undefined) {
    throw new Error(`none of ${NAMES.join(', ')} is on the PATH; Debian: apt-get install chromium`);
  }
  return found;
}
