import { describe } from 'vitest';
import { findOnPath } from '../services/commands.ts';

/** What the pages tell their readers to have. */
const PROGRAMS = ['curl', 'jq', 'openssl'];

/**
 * A suite that follows pages. Where a program is missing that they use, it is reported as skipped with the reason; with
 * `CI=true` it runs and fails.
 */
export function describeFollowed(name: string, suite: () => void): void {
  const missing = PROGRAMS.filter((program) => findOnPath(program) === undefined);
  if (missing.length === 0 || process.env.CI === 'true') describe(name, suite);
  else describe.skip(`${name} [not on the PATH: ${missing.join(', ')}]`, suite);
}
