import { expect, it } from 'vitest';
import { startedFolder } from '../support/start/folders.ts';
import { killUnderLoad } from '../support/start/kills.ts';

const ROUNDS = { kills: 20, mostAnswers: 400 };

it('D1-01: twenty kills under load lose nothing that was acknowledged', { timeout: 300_000 }, async () => {
  await using folder = await startedFolder();
  const { losses, ...counts } = await killUnderLoad(folder.path, ROUNDS);
  expect(losses).toEqual({ published: [], rows: [], events: [], sequences: [], parked: [], audit: [] });
  process.stdout.write(`${JSON.stringify(counts)}\n`);
});
