import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { asOwner } from '../support/harness/database-roles.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';

it('D2-08: stopping a test instance fails when the instance has logged a token', async () => {
  const p = await startPortcullis();
  p.service.context.log.warn({ token: await p.clientToken() }, 'a slip');
  await expect(p[Symbol.asyncDispose]()).rejects.toThrow(/log: .*a slip/);
});

it.each([
  ['a token', (p: Portcullis) => p.clientToken()],
  ["a client's secret", async (p: Portcullis) => p.demo.client.client_secret],
  ['a key', async (p: Portcullis) => p.service.context.secrets.pepper.current],
])('D2-08: stopping a test instance fails when it has stored %s in an audit record', async (_what, secretOf) => {
  const p = await startPortcullis();
  await p.call('GET', '/health');
  await p.service.context.auditWriter.flush();
  const slip = { correlation_id: `slip-${randomUUID()}`, response_body: await secretOf(p) };
  await asOwner(p, (door) => door.run((k) => k.updateTable('audit_records').set(slip)));
  await expect(p[Symbol.asyncDispose]()).rejects.toThrow(/audit: .*slip-/);
});
