import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { beforeTests } from '../support/harness/before-tests.ts';
import { renameTable } from '../support/harness/database-roles.ts';
import { startPortcullis } from '../support/harness.ts';
import { eventsOf, migrationsOf, newUser } from '../support/user-migrations/calls.ts';

const NOW = '2026-11-21T10:30:00.123Z';
const p = beforeTests(() => startPortcullis({ overrides: { nowMs: () => Date.parse(NOW) } }));
let migrate: Awaited<ReturnType<typeof migrationsOf>>;

beforeAll(async () => {
  migrate = await migrationsOf(p);
});

describe('a single migration', () => {
  it('4.6-01 2.8-01 2.8-02 2.8-03: returns 201 with the user, exactly as documented', async () => {
    const id = randomUUID();
    const answer = await migrate.one({
      wallet_address: `  0xABC${id.toUpperCase()} `,
      email: `Ann-${id}@Example.com`,
      external_id: `ext-${id}`,
      name: 'Ann',
      surname: 'Öz',
    });
    expect(answer.status).toBe(201);
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
    const userId = answer.json.id;
    expect(userId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-/);
    expect(answer.text).toBe(
      JSON.stringify({
        id: userId,
        external_id: `ext-${id}`,
        name: 'Ann',
        surname: 'Öz',
        email: `Ann-${id}@Example.com`,
        address: `0xabc${id}`,
        identity_number: '',
        kyc: null,
      }),
    );
  });

  it('2.8-02 4.6-04: absent and null texts are empty; an absent external id is null', async () => {
    const { wallet_address, email } = newUser();
    const answer = await migrate.one({ wallet_address, email, name: null, kyc_sent: null, external_id: null });
    expect(answer).toMatchObject({ status: 201, json: { external_id: null, name: '', surname: '', kyc: null } });
    const anonymous = await migrate.one({ ...newUser({ external_id: randomUUID() }), email: undefined });
    expect(anonymous).toMatchObject({ status: 201, json: { email: '' } });
  });

  it('2.8-04 D7-01 3-06 6-02: kyc_sent makes the user verified at the current time, without an event', async () => {
    const answer = await migrate.one(newUser({ kyc_sent: true }));
    expect(JSON.stringify(answer.json.kyc)).toBe(
      `{"is_verified":true,"token_sent":true,"token_sent_at":"${NOW}","token_tx_hash":null}`,
    );
    expect(await eventsOf(p, answer.json.id)).toEqual([]);
  });

  it('6-02 D7-08: without kyc_sent one event requests the KYC token, without name and email', async () => {
    const user = newUser({ external_id: randomUUID(), name: 'Nameless', surname: 'Person' });
    const { json } = await migrate.one(user);
    const events = await eventsOf(p, json.id);
    expect(events).toEqual([
      {
        id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
        event: 'user.kyc_token.requested',
        user_id: json.id,
        node_id: p.demo.node_id,
        wallet_address: user.wallet_address,
        external_id: user.external_id,
        occurred_at: NOW,
      },
    ]);
    expect(Object.keys(events[0] ?? {})).toEqual([
      'id',
      'event',
      'user_id',
      'node_id',
      'wallet_address',
      'external_id',
      'occurred_at',
    ]);
    expect(JSON.stringify(events)).not.toMatch(/Nameless|Person|example\.com/);
  });

  it.each([
    ['4.6-03 7.4-01: no identifier', { email: undefined }, 'missing_email_and_external_id'],
    ['7.4-01 D7-02: two empty identifiers', { email: '', external_id: '' }, 'missing_email_and_external_id'],
    ['7.4-01: two null identifiers', { email: null, external_id: null }, 'missing_email_and_external_id'],
  ])('%s: 400 with only the reason', async (_name, more, message) => {
    const answer = await migrate.one(newUser(more));
    expect(answer.status).toBe(400);
    expect(answer.text).toBe(JSON.stringify({ code: -1, domain: 0, message }));
  });

  it('7.4-02 7.4-03 7.4-04 D7-03 D7-04: a duplicate has the first reason that applies: email, external id, wallet', async () => {
    const id = randomUUID();
    const user = { wallet_address: `0x${id}`, email: `${id}@example.com`, external_id: `Ext-${id}` };
    await migrate.one(user);
    const other = { wallet_address: `0y${id}`, email: `o-${id}@example.com`, external_id: `other-${id}` };
    const reasons = [
      { ...user },
      { ...other, email: user.email.toUpperCase() },
      { ...user, email: other.email },
      { ...other, wallet_address: ` ${user.wallet_address.toUpperCase()}` },
    ];
    const answers = [];
    for (const again of reasons) answers.push((await migrate.one(again)).text);
    expect(answers).toEqual(
      ['duplicate_email', 'duplicate_email', 'duplicate_external_id', 'duplicate_wallet'].map((message) =>
        JSON.stringify({ code: -1, domain: 0, message }),
      ),
    );
    const exact = await migrate.one({ ...other, external_id: user.external_id.toUpperCase() });
    expect(exact.status).toBe(201);
  });

  it('D7-03: the same user on another node is a different user', async () => {
    const user = newUser({ external_id: randomUUID() });
    const elsewhere = await migrationsOf(p, await p.clientToken(p.demo.other_node.client));
    expect((await migrate.one(user)).status).toBe(201);
    expect((await elsewhere.one(user)).status).toBe(201);
  });

  it('7.4-05 7.5-03: a database error is a masked 500', async () => {
    await renameTable(p, 'outbox', 'outbox_away');
    try {
      for (const answer of [await migrate.one(newUser()), await migrate.many([newUser(), newUser()])]) {
        expect(answer.status).toBe(500);
        expect(answer.text).toBe('{"code":-1,"domain":0,"message":"internal_error"}');
      }
    } finally {
      await renameTable(p, 'outbox_away', 'outbox');
    }
  });
});
