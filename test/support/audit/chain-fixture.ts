import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { vi } from 'vitest';
import type { AuditRecord } from '../../../src/audit/audit-record.ts';
import { AuditChain, unchained } from '../../../src/audit/audit-record.ts';
import { AuditStore } from '../../../src/audit/audit-writer.ts';
import { AuditErasure } from '../../../src/audit/erasure.ts';
import { ChainKeeper } from '../../../src/audit/seals.ts';
import { AuditSpool } from '../../../src/audit/spool.ts';
import { type VerificationReport, verifyAudit } from '../../../src/audit/verification/verification.ts';
import type { Db } from '../../../src/platform/database/database.ts';
import { SEAL_KEY, sealsIn } from '../harness/audit-seals.ts';

/** The tenant of the records. */
export const NODE = 'aaaaaaaa-0000-4000-8000-000000000001';

/** A record with something in every column. */
export function auditRecord(more: Partial<AuditRecord> = {}): AuditRecord {
  return {
    ...{ at: new Date().toISOString(), id: randomUUID(), node_id: NODE, correlation_id: `c-${randomUUID()}` },
    ...{ method: 'POST', path: '/v1/users', query: 'a=1\t2', status_code: 200, elapsed: 1.25 },
    ...{
      headers: { host: 'a', accept: ['b', 'c'], 'x-correlation-id': 'ü' },
      remote_address: '::1',
      real_ip: '10.0.0.1',
    },
    ...{
      request_body: '{"email":"ann@example.com"}',
      request_bytes: 27,
      response_body: 'line\nline\\',
      response_bytes: 9,
    },
    ...{ is_api: true, aborted: false, subject: 'ü\t', client_id: 'c', operation: '/v1/users', noted_users: null },
    ...more,
  };
}

/** A process that writes audit records: its spool, its chain and what it seals. */
export interface AuditProcess {
  chain: string;
  /** Spools these records, or so many. */
  spool(records: number | readonly AuditRecord[]): void;
  /** Writes what is spooled to the database. */
  drain(): Promise<void>;
  checkpoint(): Promise<void>;
  /** Lets the database take what it has refused, or refuses again. */
  retry(): Promise<void>;
  /** Ends as a process that is asked to. */
  stop(): Promise<void>;
  /** Ends as a killed process: what is spooled is left to the next one on the folder. */
  kill(): void;
}

export function auditProcess(db: Db, dir: string, seals = sealsIn(db), startedMs?: number): AuditProcess {
  if (startedMs !== undefined) vi.spyOn(performance, 'now').mockReturnValueOnce(startedMs - performance.timeOrigin);
  const spool = AuditSpool.open({ dir, onDrained: (owner) => keeper.close(owner) });
  const chain = new AuditChain(spool.owner, spool);
  const keeper = new ChainKeeper({ db, seals, own: chain });
  const store = new AuditStore(db);
  const refused: Buffer[] = [];
  const refuse = (_error: unknown, line: Buffer) => void refused.push(line);
  const write = (lines: Buffer[]) => keeper.write(lines, (onGap) => store.insert(lines, refuse, refuse, onGap));
  return {
    chain: chain.id,
    spool(records) {
      const made = typeof records === 'number' ? Array.from({ length: records }, () => auditRecord()) : records;
      for (const record of made) chain.append(unchained(record));
    },
    async drain() {
      spool.adopt();
      await spool.drain(write, { batchSize: 7 });
    },
    checkpoint: () => keeper.checkpoint(),
    async retry() {
      const again = refused.splice(0);
      if (again.length > 0) await store.insert(again, refuse, refuse);
    },
    async stop() {
      await spool.drain(write, { batchSize: 7 });
      await keeper.close(spool.owner);
      spool.close();
    },
    kill() {
      spool.close();
      // A kill leaves the file of the lock, which is held no more.
      writeFileSync(join(dir, `${spool.owner}.lock`), '');
    },
  };
}

/** Adds a user to the tenant of the records, and returns the id. */
export async function addUser(db: Db): Promise<string> {
  const id = randomUUID();
  const door = db.unscoped('test');
  await door.raw((sql) => sql`insert into nodes (id, name) values (${NODE}, 'n') on conflict do nothing`);
  await door.run((k) => k.insertInto('users').values({ id, node_id: NODE, address: id }));
  return id;
}

/** Erases the audit records that have noted a user, as the erasure of a user does. */
export async function eraseNoted(db: Db, userId: string): Promise<number> {
  const erasure = new AuditErasure(db, sealsIn(db));
  await erasure.seal(userId);
  return erasure.erase(userId);
}

/** The call that erases every record that has noted a user, as SQL. */
export function eraseCall(userId: string): string {
  return `public.audit_erase('${userId}', array(select at from public.audit_records order by at, id),
    array(select id from public.audit_records order by at, id))`;
}

/** Verifies the audit of a database. */
export function verified(db: Db, more: Partial<Parameters<typeof verifyAudit>[0]> = {}): Promise<VerificationReport> {
  return verifyAudit({ db, keys: [SEAL_KEY], onProgress: () => undefined, ...more });
}
