import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { common } from './vitest.config.ts';

/** Files that try some of their cases in `npm test`, and all of them here. */
const THOROUGH = globSync('test/**/*.test.ts', { cwd: import.meta.dirname }).filter((file) =>
  /inject\('isThorough'\)|harness\/in-turn\.ts/.test(readFileSync(join(import.meta.dirname, file), 'utf8')),
);

/** The guarantees in full: what is too long for `npm test`. */
export default defineConfig({
  ...common,
  test: {
    ...common.test,
    include: ['test/long/**/*.test.ts', 'test/attacks/**/*.test.ts', ...THOROUGH],
    provide: { isThorough: true },
    globalSetup: ['test/support/services/global-setup.ts'],
    testTimeout: 900_000,
    hookTimeout: 300_000,
    fileParallelism: false,
  },
});
