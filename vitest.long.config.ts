import { defineConfig } from 'vitest/config';
import base from './vitest.config.ts';

/** The guarantees in full: what is too long for `npm test`. */
export default defineConfig({
  ...base,
  test: {
    ...base.test,
    include: ['test/long/**/*.test.ts'],
    exclude: [],
    testTimeout: 900_000,
    hookTimeout: 300_000,
    fileParallelism: false,
  },
});
