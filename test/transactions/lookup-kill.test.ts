import { randomUUID } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import { expect, it, vi } from 'vitest';
import { LookupStore } from '../../src/features/transactions/transactions.store.ts';
import { changesOf, notify, workerHere, workerProcess } from '../support/events/worker-fixture.ts';
import { listening } from '../support/gateway/forwarder.ts';
import { gatewayFile } from '../support/gateway/gateway-file.ts';
import { startOnRealServers } from '../support/harness.ts';
import { describeReal } from '../support/services/real.ts';

// One of the workers is a process.
const TIMEOUT_MS = 30_000;
/** An id is of the process that has taken it for the owner's time and ten seconds more. */
const LEASE_MS = TIMEOUT_MS + 10_000;

describeReal(['postgres', 'redis', 'kafka'], 'a worker killed during a lookup at the owner of a transaction', () => {
  it('D6-20: its id is not looked up until the lease ends; then another worker looks it up and applies the notification', async () => {
    const asked: { url: string | undefined; answer: ServerResponse }[] = [];
    const server = createServer((req, answer) => void asked.push({ url: req.url, answer }));
    const url = await listening(server);
    await using _server = { [Symbol.asyncDispose]: async () => void server.close().closeAllConnections() };
    await using file = await gatewayFile({}, [], { transactions_lookup: { url, timeout_ms: TIMEOUT_MS } });
    await using gateway = await startOnRealServers({ env: { PORTCULLIS_ROLE: 'gateway' } });
    const env = { GATEWAY_CONFIG: file.path };
    await using worker = await workerProcess(gateway, env);
    const id = randomUUID();
    expect(await notify(gateway, id, 3)).toBe(200);
    await vi.waitFor(() => expect(asked).toHaveLength(1));
    await worker.kill('SIGKILL');

    const { db } = gateway.service.context.database;
    const store = new LookupStore(db);
    const waiting = async () =>
      (await db.unscoped('test').run((k) => k.selectFrom('transaction_lookups').select('id'))).length;
    const claim = { limit: 8, nowMs: Date.now(), untilMs: Date.now() };
    expect([await waiting(), await store.claim(claim)]).toEqual([1, []]);

    const nowMs = () => Date.now() + LEASE_MS;
    await using _next = await workerHere(gateway, { env, overrides: { nowMs } });
    await vi.waitFor(() => expect(asked).toHaveLength(2));
    expect(asked.map((one) => one.url)).toEqual(Array(2).fill(`/${id}`));
    const found = { id, collection: 'token_transactions', type: 1, node_id: gateway.demo.node_id };
    asked[1]?.answer.end(JSON.stringify(found));
    await expect.poll(() => changesOf(gateway, id)).toEqual(['null 3']);
    expect(await waiting()).toBe(0);
    const door = db.unscoped('test');
    expect(await door.run((k) => k.selectFrom('parked_notifications').select('id'))).toEqual([]);
  });
});
