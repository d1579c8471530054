import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AuditChain, unchained } from '../../src/audit/audit-chain.ts';
import type { AuditRecord } from '../../src/audit/audit-record.ts';
import { AuditStore } from '../../src/audit/audit-writer.ts';
import { ChainKeeper } from '../../src/audit/chain-keeper.ts';
import { AuditErasure, type FoundRecord } from '../../src/audit/erasure.ts';
import { AuditSpool } from '../../src/audit/spool.ts';
import { type VerificationReport, verifyAudit } from '../../src/audit/verification/verification.ts';
import type { Db } from '../../src/platform/database/database.ts';
import { SEAL_KEY, sealsIn } from '../harness/audit-seals.ts';

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
    ...{ is_api: true, aborted: false },
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

export function auditProcess(db: Db, dir: string, seals = sealsIn(db)): AuditProcess {
  const spool = AuditSpool.open({ dir, onDrained: (owner) => keeper.close(owner) });
  const chain = new AuditChain(spool.owner, spool);
  const onError = (error: unknown) => {
    throw error;
  };
  const keeper = new ChainKeeper({ db, seals, own: chain, onError });
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

/** Erases columns of the records that `which` chooses, by one seal. */
export async function eraseAll(
  db: Db,
  change: Partial<FoundRecord>,
  which: (row: FoundRecord) => boolean = () => true,
): Promise<void> {
  const found = await db.unscoped('test').run((k) => k.selectFrom('audit_records').selectAll());
  await new AuditErasure(db, sealsIn(db)).erase(found.filter(which), (row) => {
    const { path, query, correlation_id, headers, request_body, response_body } = { ...row, ...change };
    return { path, query, correlation_id, headers, request_body, response_body };
  });
}

/** Verifies the audit of a database. */
export function verified(db: Db, more: Partial<Parameters<typeof verifyAudit>[0]> = {}): Promise<VerificationReport> {
  return verifyAudit({ db, keys: [SEAL_KEY], onProgress: () => undefined, ...more });
}
