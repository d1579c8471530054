import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { StartError } from '../errors.ts';

/** What makes an embedded instance, as it is named below `DATA_DIR`: none of the three is ever made over another. */
export const PARTS = { secrets: 'secrets.json', demo: 'demo.json', cluster: 'postgres' } as const;

/** `DATA_DIR/secrets.json`. */
export function secretsPath(dataDir: string): string {
  return join(dataDir, PARTS.secrets);
}

/** `DATA_DIR/demo.json`, which scripts read. */
export function demoPath(dataDir: string): string {
  return join(dataDir, PARTS.demo);
}

/** The folder of the embedded cluster below `DATA_DIR`. */
export function embeddedClusterDir(dataDir: string): string {
  return join(dataDir, PARTS.cluster);
}

/** Whether a folder has rows of an embedded instance, or the credentials of a demo, which are of no use without secrets. */
export function needsSecrets(dataDir: string): boolean {
  return existsSync(embeddedClusterDir(dataDir)) || existsSync(demoPath(dataDir));
}

/** A `DATA_DIR` that lacks something: `what` names the part, and what has become of it. */
export function notWhole(dataDir: string, what: string): StartError {
  return new StartError(`DATA_DIR ${dataDir} is not whole: ${what}: put back what it was, or name another DATA_DIR`);
}
