import { randomInt } from 'node:crypto';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import type { Finding } from '../../../src/audit/verification/sealed.ts';
import { rows } from '../oauth/clients.ts';
import { startInstance } from '../start/process.ts';
import { verified } from './chain-fixture.ts';
import { type KillFixture, killFixture } from './kill-fixture.ts';
import { type Disagreements, Journal, type Recorded } from './kill-journal.ts';
import { type Load, startLoad } from './kill-load.ts';

interface KillOptions {
  /** Where the instance spools; all its lives share it. */
  spoolDir: string;
  /** How many answered requests there are to be, and how often the instance is killed until then. */
  answers: number;
  kills: number;
}

/** What happened, and where records and answers do not agree. */
export interface AuditReport {
  answered: number;
  /** Bytes in the spool after each kill, and at the end of each outage. */
  spooled: { killed: number[]; outage: number[] };
  disagreements: Disagreements;
  /** What `audit verify` finds at the end. */
  findings: readonly Finding[];
}

const LATER_MS = 25;

/**
 * Kills an instance with SIGKILL at random moments under load, once while PostgreSQL is out of reach, and starts it
 * again on the same spool; PostgreSQL is also away for a while in a life that goes on. After the last stop, which is in
 * order, compares the records with what the clients know.
 */
export async function killUnderAudit({ spoolDir, answers, kills }: KillOptions): Promise<AuditReport> {
  await using fixture = await killFixture(spoolDir);
  const before = new Set((await recordsOf(fixture)).map((record) => record.correlation_id));
  const journal = new Journal();
  const spooled = { killed: [] as number[], outage: [] as number[] };
  const perLife = Math.ceil(answers / (kills + 1));
  for (let life = 0; life <= kills; life += 1) {
    await using instance = await startInstance(fixture.env);
    const load = startLoad({ baseUrl: instance.baseUrl, credentials: fixture.credentials, journal });
    const answered = answersOf(journal);
    const isLast = life === kills;
    // The first life ends while PostgreSQL is away; the last one bears an outage.
    await answered(perLife / 3);
    if (life === 0 || isLast) fixture.database.set('cut');
    await answered(perLife / 3);
    if (isLast) spooled.outage.push(bytesIn(spoolDir));
    if (isLast) fixture.database.set('passing');
    await answered(perLife / 3);
    if (isLast) {
      await load.stop();
      await heard(instance.baseUrl, journal);
      expect((await instance.kill('SIGTERM')).code).toBe(0);
      journal.settle(Number.POSITIVE_INFINITY);
    } else {
      await kill(instance, load, journal);
      spooled.killed.push(bytesIn(spoolDir));
      fixture.database.set('passing');
    }
  }
  const records = (await recordsOf(fixture)).filter((record) => !before.has(record.correlation_id));
  // The keys of the chains are those of two installations here.
  const { findings } = await verified(fixture.p.service.context.database.db, { keys: [] });
  return { answered: journal.answered, spooled, disagreements: journal.compare(records), findings };
}

/** Connections are taken in their order: once these are answered, whoever has left before was heard. */
async function heard(baseUrl: string, journal: Journal): Promise<void> {
  for (let asked = 0; asked < 5; asked += 1) {
    const id = `last-${asked}`;
    const entry = journal.begin(id, 'a last question');
    const answer = await fetch(`${baseUrl}/health`, { headers: { connection: 'close', 'x-correlation-id': id } });
    await answer.text();
    journal.answer(entry, answer.status);
  }
}

async function kill(instance: { kill(signal: 'SIGKILL'): Promise<unknown> }, load: Load, journal: Journal) {
  await delay(randomInt(LATER_MS));
  const killedAtMs = performance.now();
  const stopped = load.stop();
  await instance.kill('SIGKILL');
  await stopped;
  journal.settle(killedAtMs);
}

/** Waits until so many more requests are answered. */
function answersOf(journal: Journal): (count: number) => Promise<void> {
  let enough = journal.answered;
  return async function answered(count) {
    enough += count;
    while (journal.answered < enough) await delay(2);
  };
}

async function recordsOf({ p }: KillFixture): Promise<Recorded[]> {
  while (p.service.context.spool.pendingBytes > 0) await delay(20);
  return rows(p).run((k) => k.selectFrom('audit_records').select(['correlation_id', 'status_code', 'aborted']));
}

function bytesIn(folder: string): number {
  return readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
}
