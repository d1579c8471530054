import { expect, it, vi } from 'vitest';
import { scrape } from '../support/observability/scrape.ts';
import { startedFolder } from '../support/start/folders.ts';
import { startInstance } from '../support/start/process.ts';

const MIB = 1024 * 1024;

it('D1-03: a process gives back the memory of its start as soon as it rests', async () => {
  await using folder = await startedFolder();
  // As large as the image has it, so that V8 gives none of it back by itself.
  await using instance = await startInstance({ DATA_DIR: folder.path }, ['--liftoff-only', '--min-semi-space-size=16']);
  const youngMb = async () => {
    const { value } = await scrape(instance);
    return (value('nodejs_heap_space_size_total_bytes', { space: 'new' }) ?? Number.NaN) / MIB;
  };
  // Less often than a process must have rested: on a busy machine it would never rest between these requests.
  await vi.waitFor(async () => expect(await youngMb()).toBeLessThan(4), { interval: 5_500 });
});
