import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/long/**'],
    globalSetup: ['test/services/global-setup.ts'],
    testTimeout: 20_000,
    hookTimeout: 60_000,
    execArgv: ['--disable-warning=TimeoutNegativeWarning', '--disable-warning=ExperimentalWarning'],
  },
});
