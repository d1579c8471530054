import { readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect } from 'vitest';
import { AuditRetention, setAuditRetention } from '../../../src/audit/audit-retention.ts';
import { sealsIn } from '../harness/audit-seals.ts';
import type { RealDatabase } from '../harness/databases.ts';
import { emptyFolder } from '../start/folders.ts';
import { type AuditProcess, addUser, auditProcess, auditRecord, eraseNoted, verified } from './chain-fixture.ts';

const DAY_MS = 24 * 3_600_000;
const RETENTION_DAYS = 20;
/** More than a whole month older than the retention, a little older, and young. */
const AGES_DAYS = [60, 21, 0];

const STEPS = [
  ...['spool', 'spool', 'drain', 'drain', 'checkpoint', 'stop', 'kill', 'kill twice', 'lose', 'damage', 'take over'],
  ...['erase', 'retain', 'refuse', 'retry'],
] as const;

interface Step {
  step: (typeof STEPS)[number];
  /** One of three processes, which starts with its first step and after its end. */
  process: number;
  /** How many records, or tenths of bytes, the step concerns. */
  count: number;
}

/** What happens to processes that write audit records. */
export const history: fc.Arbitrary<Step[]> = fc.array(
  fc.record({ step: fc.constantFrom(...STEPS), process: fc.nat(2), count: fc.integer({ min: 1, max: 9 }) }),
  { minLength: 4, maxLength: 16 },
);

const CONSTRAINT = 'check (status_code <> 418)';

/** Lives through a history, at whose end every chain is sealed, and expects that its verification holds on the way. */
export async function live(database: RealDatabase, steps: readonly Step[]): Promise<void> {
  await using folder = await emptyFolder();
  const raw = (statement: string) => database.db.unscoped('test').raw((sql) => sql<object>`${sql.raw(statement)}`);
  await raw('truncate audit_records, audit_seals');
  await setAuditRetention(database.db, RETENTION_DAYS);
  await raw('alter table audit_records drop constraint if exists no_teapot');
  const nowMs = Date.now();
  const old = new Date(nowMs - (AGES_DAYS[0] ?? 0) * DAY_MS).toISOString();
  await raw(`select audit_make_month('${old}'::timestamptz::date)`);
  const users = [await addUser(database.db), await addUser(database.db)];
  const notedBy = (index: number) => [null, [users[0] ?? ''], users][index % 3] ?? null;
  // Seals must not say that the old records are young ones.
  const seals = sealsIn(database.db, { nowMs: () => nowMs - 50 * DAY_MS });
  const running = new Map<number, AuditProcess>();
  const processOf = (place: number): AuditProcess => {
    const known = running.get(place) ?? auditProcess(database.db, folder.path, seals, nowMs - 90 * DAY_MS);
    running.set(place, known);
    return known;
  };
  const segmentsOf = ({ chain }: AuditProcess) =>
    readdirSync(folder.path)
      .filter((name) => name.startsWith(chain) && name.endsWith('.seg'))
      .map((name) => join(folder.path, name));
  for (const { step, process, count } of steps) {
    const one = processOf(process);
    if (step === 'spool') {
      const at = new Date(nowMs - (AGES_DAYS[count % 3] ?? 0) * DAY_MS).toISOString();
      one.spool(Array.from({ length: count }, (_, index) => auditRecord({ at, noted_users: notedBy(index) })));
    }
    if (step === 'refuse') {
      await raw(
        `alter table audit_records drop constraint if exists no_teapot, add constraint no_teapot ${CONSTRAINT} not valid`,
      );
      one.spool([auditRecord(), auditRecord({ status_code: 418 }), auditRecord({ status_code: 418 })]);
      await one.drain();
      await raw('alter table audit_records drop constraint no_teapot');
    }
    if (step === 'drain' || step === 'take over') await one.drain();
    if (step === 'checkpoint') await one.checkpoint();
    if (step === 'retry') await one.retry();
    if (step === 'stop') await one.stop();
    if (step === 'kill twice') {
      // What is written to the database is in the spool still.
      const left = segmentsOf(one).map((path) => [path, readFileSync(path)] as const);
      await one.drain();
      one.kill();
      for (const [path, bytes] of left) writeFileSync(path, bytes);
    }
    if (step === 'kill' || step === 'lose' || step === 'damage') one.kill();
    for (const path of segmentsOf(one)) {
      const bytes = readFileSync(path);
      if (step === 'lose') truncateSync(path, Math.floor((bytes.length * count) / 10));
      if (step === 'damage') writeFileSync(path, bytes.fill('x', Math.floor((bytes.length * count) / 10)));
    }
    if (step === 'erase') await eraseNoted(database.db, users[count % users.length] ?? '');
    if (step === 'retain') {
      // What a killed process has written and still has in its spool would come again: docs/operations/audit-chain.md.
      for (const each of running.values()) await each.drain();
      await new AuditRetention({
        ...{ db: database.db, seals: sealsIn(database.db), nowMs: () => nowMs, retentionDays: RETENTION_DAYS },
      }).enforce();
    }
    if (['stop', 'kill', 'kill twice', 'lose', 'damage'].includes(step)) running.delete(process);
    expect((await verified(database.db)).findings, `after ${step}`).toEqual([]);
  }
  const last = processOf(0);
  for (const one of running.values()) {
    one.spool(2);
    await one.drain();
    await one.checkpoint();
  }
  await last.stop();
  for (const one of running.values()) if (one !== last) await one.stop();
  expect((await verified(database.db)).findings, 'at the end').toEqual([]);
}

/** For each column of a record one other value. */
export const OTHER_VALUES: Record<string, string> = {
  at: "at - interval '1 second'",
  id: 'gen_random_uuid()',
  node_id: 'null',
  correlation_id: "correlation_id || ' '",
  method: "method || 'x'",
  path: "path || '/'",
  query: "coalesce(query, '') || 'x'",
  status_code: 'status_code + 1',
  elapsed: 'elapsed + 0.5',
  headers: `headers || '{"x":"y"}'`,
  remote_address: "remote_address || '0'",
  real_ip: "real_ip || '0'",
  request_body: "coalesce(request_body, '') || ' '",
  request_bytes: 'request_bytes + 1',
  // An erased record has none already.
  response_body: "case when response_body is null then 'x' end",
  response_bytes: '-response_bytes - 1',
  is_api: 'not is_api',
  aborted: 'not aborted',
  chain_id: 'gen_random_uuid()',
  chain_index: 'chain_index + 1000',
  previous_hash: "sha256('x')",
  hash: "sha256('x')",
  salts: "sha256('x') || substring(sha256('y') from 1 for 16)",
  subject: "subject || 'x'",
  client_id: 'null',
  operation: "operation || 'x'",
  noted_users: "coalesce(noted_users, '{}') || 'aaaaaaaa-0000-4000-8000-000000000001'::uuid",
  digests: "array['a', 'b', 'c']",
};

// One that was refused and has come later may go again: docs/operations/audit-chain.md.
const RECORD =
  '(at, id) = (select at, id from audit_records where status_code <> 418 order by id offset mod($n, (select count(*) from audit_records where status_code <> 418)) limit 1)';
const SEAL = 'position = 1 + mod($n, (select max(position) from audit_seals))';

/** Ways to change what a history has left, of which each is a statement; `$n` chooses the record or the seal. */
const TAMPERINGS = [
  ...Object.entries(OTHER_VALUES).map(
    ([column, value]) => `update audit_records set ${column} = ${value} where ${RECORD}`,
  ),
  `delete from audit_records where ${RECORD}`,
  `delete from audit_records where chain_id = (select chain_id from audit_records where ${RECORD})`,
  'truncate audit_records',
  'truncate audit_seals',
  'update audit_records set chain_id = null',
  `insert into audit_records (at, id, node_id, correlation_id, method, path, status_code, elapsed, headers, remote_address,
     real_ip, request_bytes, response_bytes, is_api, chain_id, chain_index, previous_hash, hash, salts)
   select at, gen_random_uuid(), node_id, correlation_id, method, path, status_code, elapsed, headers, remote_address,
     real_ip, request_bytes, response_bytes, is_api, chain_id, chain_index, previous_hash, hash, salts
   from audit_records where ${RECORD}`,
  // The last one may go: docs/operations/audit-chain.md.
  'delete from audit_seals where position = 1 + mod($n, (select max(position) - 1 from audit_seals))',
  `update audit_seals set body = replace(body, '"at":"2', '"at":"3') where ${SEAL}`,
  `update audit_seals set signature = null where ${SEAL}`,
  `update audit_seals set chain_id = gen_random_uuid() where ${SEAL}`,
  `insert into audit_seals select position - 1000000, chain_id, kind, body, signature from audit_seals where ${SEAL}`,
  `insert into audit_seals select max + 1, chain_id, kind, body, signature
   from audit_seals, (select max(position) from audit_seals) last where ${SEAL}`,
];

export const tampering = fc.record({ statement: fc.constantFrom(...TAMPERINGS), n: fc.nat(1_000) });
