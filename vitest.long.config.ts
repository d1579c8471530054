import { defineConfig } from 'vitest/config';
import { common } from './vitest.config.ts';

const THOROUGH = [
  'test/alerts/rules.test.ts',
  'test/audit/verify-property.test.ts',
  'test/console/people.test.ts',
  'test/console/xss.test.ts',
  'test/gateway/hostile-paths.test.ts',
  'test/gateway/token-matrix.test.ts',
  'test/oauth/hostile-token.test.ts',
];

/** The guarantees in full: what is too long for `npm test`. */
export default defineConfig({
  ...common,
  test: {
    ...common.test,
    // The others try some of their cases in `npm test`, and all of them here.
    include: ['test/long/**/*.test.ts', ...THOROUGH],
    provide: { isThorough: true },
    globalSetup: ['test/services/global-setup.ts'],
    testTimeout: 900_000,
    hookTimeout: 300_000,
    fileParallelism: false,
  },
});
