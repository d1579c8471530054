import { generateKeyPairSync } from 'node:crypto';
import { AuditErasure } from '../../src/audit/erasure.ts';
import { AuditSeals } from '../../src/audit/seals.ts';
import type { Db } from '../../src/platform/database/database.ts';

const { privateKey } = generateKeyPairSync('ed25519');

/** Seals in a test's database, signed by a key of this process. */
export function sealsIn(db: Db, nowMs = Date.now): AuditSeals {
  const onError = (error: unknown) => {
    throw error;
  };
  return new AuditSeals({ db, nowMs, key: () => privateKey, onError });
}

export function auditErasureIn(db: Db): AuditErasure {
  return new AuditErasure(db, sealsIn(db));
}
