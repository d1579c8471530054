import { vi } from 'vitest';
import { PATIENCE_MS } from './deadlines.ts';

// A worker that is shared by several files comes here once for each of them.
if (vi.waitFor.name !== 'waitPatiently') {
  const { waitFor } = vi;
  vi.waitFor = function waitPatiently(check, options) {
    const given = typeof options === 'number' ? { timeout: options } : options;
    return waitFor(check, { timeout: PATIENCE_MS, ...given });
  };
}
