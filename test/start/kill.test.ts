import { randomInt } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, inject, it } from 'vitest';
import { demoSchema, readDemo } from '../../src/app/demo/demo.ts';
import { Journal } from '../support/audit/kill-journal.ts';
import { scratchDatabase } from '../support/harness/databases.ts';
import { startPortcullis } from '../support/harness.ts';
import { emptyFolder, startedFolder } from '../support/start/folders.ts';
import { killUnderLoad, lossesIn, NO_LOSSES } from '../support/start/kills.ts';
import { spawnInstance } from '../support/start/process.ts';

const ROUNDS = inject('isThorough') ? { kills: 20, mostAnswers: 400 } : { kills: 1, mostAnswers: 100 };

it('D1-01: kill -9 under load loses nothing acknowledged and adds nothing', async () => {
  await using folder = await startedFolder();
  const report = await killUnderLoad(folder.path, ROUNDS);
  expect(report.losses).toEqual(NO_LOSSES);
  expect(report.acknowledged).toBeGreaterThan(ROUNDS.kills);
});

it('the comparison of this test detects missing data', async () => {
  await using database = await scratchDatabase();
  const requests = new Journal();
  requests.answer(requests.begin('killed-asked', 'a request'), 200);
  requests.begin('killed-cut', 'a request');
  const notifications = ['lost', 'stranger-1'].map((id) => ({
    correlationId: id,
    id,
    status: 1,
    isAcknowledged: true,
  }));
  const { audit, ...losses } = await lossesIn(database.db, { notifications, requests });
  expect(losses).toEqual({
    published: ['lost: undefined', 'stranger-1: undefined'],
    changes: ['lost'],
    parked: ['stranger-1'],
    sequences: [],
  });
  expect(audit).toMatchObject({ lost: [expect.stringMatching(/^killed-asked /)], twice: [], invented: [] });
});

/** The steps at which a first start is killed: in a quick run one of four, another one at each, and the last. */
const STEPS_EVERY = inject('isThorough') ? 1 : 4;
const FIRST_STEP = randomInt(STEPS_EVERY);

it('D1-01: a first start that is killed at any step is completed by the next start', async () => {
  await using folder = await emptyFolder();
  const { path } = folder;
  const isUnfinished = async () => (await readdir(path)).some((name) => name.startsWith('postgres.unfinished-'));
  const steps: (() => Promise<boolean>)[] = [
    async () => existsSync(join(path, 'secrets.json')),
    isUnfinished,
    async () => existsSync(join(path, 'postgres')),
    async () => existsSync(join(path, 'demo.json')),
  ];
  for (const reached of steps.filter((_, at) => at % STEPS_EVERY === FIRST_STEP || at === steps.length - 1)) {
    await using instance = spawnInstance({ DATA_DIR: path });
    while (!(await reached())) await delay(2);
    await instance.kill('SIGKILL');
  }
  const demo = readDemo(path);
  await using p = await startPortcullis({ dataDir: path });
  expect(readDemo(path)).toEqual(demo);
  const { node_id: nodeId, client } = demoSchema.parse(demo);
  expect(await p.clientToken(client)).toMatch(/^ey/);
  expect(await isUnfinished()).toBe(false);
  const accounts = await p.service.context.database.db
    .forNode(nodeId)
    .run((k) => k.selectFrom('accounts').select('id'));
  expect(accounts).toHaveLength(27);
});
