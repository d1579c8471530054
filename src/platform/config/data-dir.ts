import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { StartError } from '../errors.ts';

/**
 * The names of the three parts of an embedded installation below `DATA_DIR`; one that is lost is never replaced by a
 * new one.
 */
export const PARTS = { secrets: 'secrets.json', demo: 'demo.json', cluster: 'postgres' } as const;

/** Returns the path of the generated secrets, `DATA_DIR/secrets.json`. */
export function secretsPath(dataDir: string): string {
  return join(dataDir, PARTS.secrets);
}

/** Returns the path of `DATA_DIR/demo.json`, which describes the demo to scripts. */
export function demoPath(dataDir: string): string {
  return join(dataDir, PARTS.demo);
}

/** Returns the path of the embedded database's folder below `DATA_DIR`. */
export function embeddedClusterDir(dataDir: string): string {
  return join(dataDir, PARTS.cluster);
}

/**
 * Checks whether a `DATA_DIR` has an embedded database or the credentials of a demo, both useless without the secrets.
 */
export function needsSecrets(dataDir: string): boolean {
  return existsSync(embeddedClusterDir(dataDir)) || existsSync(demoPath(dataDir));
}

/**
 * Makes the error for a `DATA_DIR` that is incomplete or damaged; `what` names the part and says what happened to it.
 */
export function notWhole(dataDir: string, what: string): StartError {
  return new StartError(
    `DATA_DIR ${dataDir} is incomplete or damaged: ${what}. Restore it from a backup, or set another DATA_DIR`,
  );
}
