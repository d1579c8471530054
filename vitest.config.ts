import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { PATIENCE_MS, TEST_DEADLINE_MS } from './test/support/harness/deadlines.ts';
import { cacheFolder } from './test/support/services/folders.ts';
import { useMemoryFolder } from './test/support/services/memory-folder.ts';

useMemoryFolder();
// What a process compiles of the packages is there for the next one: a quarter of the CPU of a run.
process.env.NODE_COMPILE_CACHE ??= join(cacheFolder(), 'compiled');

/** What waits for processes and servers most of its time, and lasts long. */
const WAITING =
  /test\/(?:alerts|architecture|console|faults|start|events|cli|cache|docs|health|realtime)\/|kills?\.test|clocks|failing|lookup-|replicas|session-ends|tracing-off|attacks|browser|cut\.test|database-roles|dead-connections|every-|generated-code|heap-weight|log-errors|peers|recorded-|redact|release-|two-gateways|uploads/;

/** What waits begins first, by turns with what computes: together they keep the cores busy, and neither is left for the end. */
class ByTurns extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const waiting = sorted.filter(({ moduleId }) => WAITING.test(moduleId));
    const others = sorted.filter(({ moduleId }) => !WAITING.test(moduleId));
    return [...waiting.flatMap((file, at) => [file, ...others.slice(at, at + 1)]), ...others.slice(waiting.length)];
  }
}

/** Files that replace a module, or that say in a comment why they need it: each has a process of its own. */
const APART = globSync('test/**/*.test.ts', { cwd: import.meta.dirname }).filter((file) =>
  /vi\.mock\(|^\/\/ In a process of its own/m.test(readFileSync(join(import.meta.dirname, file), 'utf8')),
);

/** What holds in all tests, those of test/long too. */
export const common = {
  // Vite would pick another build of graphql than Node does, and its schema would not be ours.
  resolve: { alias: [{ find: /^graphql$/, replacement: fileURLToPath(import.meta.resolve('graphql')) }] },
  test: {
    setupFiles: [fileURLToPath(import.meta.resolve('./test/support/harness/patience.ts'))],
    testTimeout: TEST_DEADLINE_MS,
    hookTimeout: TEST_DEADLINE_MS,
    expect: { poll: { timeout: PATIENCE_MS } },
    provide: { isThorough: false },
    execArgv: [
      // The embedded database lives too short in a test for its code to be worth optimising: a fifth less CPU.
      '--liftoff-only',
      // Most of what a test makes is garbage at once: a larger nursery is collected less often.
      '--min-semi-space-size=16',
      '--max-semi-space-size=64',
      '--disable-warning=TimeoutNegativeWarning',
      '--disable-warning=ExperimentalWarning',
    ],
  },
} satisfies TestProjectInlineConfiguration;

/**
 * A process of a quick run lives for minutes: the last stage of compiling, and threads that collect garbage, take more CPU
 * than they save, a sixth of all. So do collections of the whole heap that a small one begins with, and those in pauses:
 * another sixth.
 */
const SHORT_LIFE = ['--max-opt=2', '--single-threaded-gc', '--initial-old-space-size=1024', '--no-memory-reducer'];

function project(name: string, test: TestProjectInlineConfiguration['test']): TestProjectInlineConfiguration {
  return { ...common, test: { ...common.test, name, execArgv: [...common.test.execArgv, ...SHORT_LIFE], ...test } };
}

export default defineConfig({
  test: {
    // Once for both projects.
    globalSetup: ['test/support/services/global-setup.ts'],
    // Most of a test's time is waiting for servers, not computing.
    maxWorkers: 5,
    sequence: { sequencer: ByTurns },
    projects: [
      project('apart', { include: APART }),
      // They share processes, which have loaded the product once.
      project('sharing', {
        include: ['test/**/*.test.ts'],
        exclude: ['test/long/**', 'test/attacks/**', ...APART],
        isolate: false,
      }),
    ],
  },
});
