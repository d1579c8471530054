import { describe } from 'vitest';
import { whyNoAnvil } from './anvil.ts';

/** A suite that needs a real node. Where there is none it is skipped under its name with the reason; with CI=true it fails. */
export function describeAnvil(name: string, suite: () => void): void {
  const reason = whyNoAnvil();
  if (reason === undefined) describe(name, suite);
  else if (process.env.CI === 'true') throw new Error(`CI=true, and ${reason}`);
  else describe.skip(`${name} [${reason}]`, suite);
}
