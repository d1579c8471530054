import { expect, vi } from 'vitest';
import type { Portcullis } from '../harness.ts';
import { rows } from '../oauth/clients.ts';

/** The records of a correlation id, once the spool is empty: what is not among them then was never recorded. */
export async function recordsOf(p: Portcullis, correlationId: string) {
  const read = () =>
    rows(p).run((k) => k.selectFrom('audit_records').selectAll().where('correlation_id', '=', correlationId));
  return vi.waitFor(
    async () => {
      expect(p.service.context.spool.pendingBytes).toBe(0);
      const found = await read();
      expect(found).not.toEqual([]);
      return found;
    },
    { interval: 25 },
  );
}

/** The one record of a request. */
export async function recordOf(p: Portcullis, correlationId: string) {
  const [record, ...more] = await recordsOf(p, correlationId);
  expect(more).toEqual([]);
  if (!record) throw new Error('there is one');
  return record;
}
