import { defineConfig } from 'vitest/config';
import { common } from './vitest.config.ts';

/** The guarantees in full: what is too long for `npm test`. */
export default defineConfig({
  ...common,
  test: {
    ...common.test,
    include: ['test/long/**/*.test.ts'],
    globalSetup: ['test/services/global-setup.ts'],
    testTimeout: 900_000,
    hookTimeout: 300_000,
    fileParallelism: false,
  },
});
