import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { useMemoryFolder } from './test/services/memory-folder.ts';

useMemoryFolder();

export default defineConfig({
  // Vite would pick another build of graphql than Node does, and its schema would not be ours.
  resolve: { alias: [{ find: /^graphql$/, replacement: fileURLToPath(import.meta.resolve('graphql')) }] },
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/long/**'],
    globalSetup: ['test/services/global-setup.ts'],
    // Most of a test's time is waiting for servers, not computing.
    maxWorkers: 4,
    testTimeout: 20_000,
    hookTimeout: 60_000,
    execArgv: [
      // The embedded database lives too short in a test for its code to be worth optimising: a fifth less CPU.
      '--liftoff-only',
      '--disable-warning=TimeoutNegativeWarning',
      '--disable-warning=ExperimentalWarning',
    ],
  },
});
