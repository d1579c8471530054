import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { AuditErasure } from '../../../src/audit/erasure.ts';
import { AuditSeals, type Seal } from '../../../src/audit/seals.ts';
import type { Db } from '../../../src/platform/database/database.ts';

export const { privateKey: SEAL_KEY } = generateKeyPairSync('ed25519');

/** Seals in a test's database, signed by a key of this process. */
export function sealsIn(
  db: Db,
  {
    key = SEAL_KEY,
    sink,
    nowMs = Date.now,
  }: { key?: KeyObject | null; sink?: (seal: Seal) => Promise<void>; nowMs?: () => number } = {},
): AuditSeals {
  const onError = (error: unknown) => {
    throw error;
  };
  return new AuditSeals({ db, nowMs, sink, key: () => key ?? undefined, onError });
}

export function auditErasureIn(db: Db): AuditErasure {
  return new AuditErasure(db, sealsIn(db));
}
