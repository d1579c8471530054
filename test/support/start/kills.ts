import { randomInt, randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Demo } from '../../../src/app/demo/demo.ts';
import { openDatabase } from '../../../src/platform/database/database.ts';
import { startPortcullis } from '../harness.ts';
import { mirrorOn } from '../transactions/stand.ts';
import { type Journal, loadUntilDeath, newJournal } from './load.ts';
import { countLosses, type Losses } from './losses.ts';
import { startInstance } from './process.ts';

const REGISTERED = 100;
const LATER_MS = 25;

/** What the rounds did, and what of it is not as it should be. */
export interface KillReport {
  kills: number;
  acknowledged: number;
  answered: number;
  losses: Losses;
}

interface KillOptions {
  kills: number;
  /** A kill comes after an acknowledgement and a random number of answers below this one, and a random moment later. */
  mostAnswers: number;
}

/**
 * Kills an instance with SIGKILL at random moments under load, starts it again on the same `DATA_DIR`, and after the
 * last time compares its rows with what was acknowledged and answered.
 */
export async function killUnderLoad(dataDir: string, { kills, mostAnswers }: KillOptions): Promise<KillReport> {
  const journal = newJournal();
  const { demo, webhook, registered } = await prepare(dataDir);
  for (let kill = 0; kill < kills; kill += 1) {
    await using instance = await startInstance({ DATA_DIR: dataDir });
    const load = loadUntilDeath({ instance, demo, webhook, registered, journal });
    const enough = journal.answered.size + randomInt(mostAnswers);
    while (journal.answered.size < enough || acknowledgedIn(journal) < kill + 2) await delay(1);
    await delay(randomInt(LATER_MS));
    await instance.kill('SIGKILL');
    await load;
  }
  const losses = await lossesAfterRestart(dataDir, journal, registered);
  return { kills, acknowledged: acknowledgedIn(journal), answered: journal.answered.size, losses };
}

function acknowledgedIn({ notifications }: Journal): number {
  return notifications.filter(({ isAcknowledged }) => isAcknowledged).length;
}

/** The credentials of an instance that was started before, and transactions that it has registered. */
export async function prepare(dataDir: string): Promise<{
  demo: Demo;
  webhook: { username: string; password: string };
  registered: string[];
}> {
  const { webhook, ...demo } = JSON.parse(await readFile(join(dataDir, 'demo.json'), 'utf8'));
  await using database = await openDatabase({ dataDir: join(dataDir, 'postgres') });
  const registered = Array.from({ length: REGISTERED }, () => randomUUID());
  const plain = { nodeId: demo.node_id, collection: 'token_transactions', type: 1, assetId: null } as const;
  await mirrorOn(database.db).registerAllByOwner(registered.map((id) => ({ id, ...plain })));
  return { demo, webhook, registered };
}

/** Starts an instance once more, which applies what is left and writes the audit records, and compares. */
export async function lossesAfterRestart(
  dataDir: string,
  journal: Journal,
  registered: string[],
  env: Record<string, string> = {},
): Promise<Losses> {
  await using portcullis = await startPortcullis({ dataDir, env });
  const { auditWriter, database } = portcullis.service.context;
  const door = database.db.unscoped('a test waits for every group');
  for (;;) {
    const [left] = await door.raw(
      (sql) => sql<{ count: number }>`
        select count(*)::int as count from bus_messages join bus_offsets using (topic)
        where bus_messages.position > bus_offsets.position`,
    );
    if (left?.count === 0) break;
    await delay(20);
  }
  await auditWriter.flush();
  return await countLosses(database.db, journal, registered);
}
