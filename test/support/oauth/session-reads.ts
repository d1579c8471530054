import { vi } from 'vitest';
import type { Db } from '../../../src/platform/database/database.ts';
import type { Portcullis } from '../harness.ts';

const REASON = 'sessions of all nodes';

/** Replaces the reads of sessions by `read`, which is given the real one, until mocks are restored. */
export function interceptSessionReads(db: Db, read: <Row>(real: () => Promise<Row[]>) => Promise<Row[]>) {
  const real = db.unscoped.bind(db);
  return vi.spyOn(db, 'unscoped').mockImplementation((reason) => {
    const unscoped = real(reason);
    return reason === REASON ? { ...unscoped, run: (build) => read(() => unscoped.run(build)) } : unscoped;
  });
}

/** Makes the reads of sessions fail until mocks are restored. */
export function failSessionReads({ service }: Portcullis): void {
  interceptSessionReads(service.context.database.db, () => Promise.reject(new Error('the connection is lost')));
}
