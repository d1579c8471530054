import { accessSync, constants } from 'node:fs';
import { dirname, join } from 'node:path';
import { findOnPath } from './commands.ts';

/** The path of the system's Prometheus; throws where it is not on the PATH, or its promtool does not stand beside it. */
export function findPrometheus(): string {
  const found = findOnPath('prometheus');
  if (found === undefined) throw new Error('no prometheus is on the PATH; Debian: apt-get install prometheus');
  accessSync(promtoolOf(found), constants.X_OK);
  return found;
}

/** The promtool of a Prometheus: packages and archives put both into one folder. */
export function promtoolOf(prometheus: string): string {
  return join(dirname(prometheus), 'promtool');
}
