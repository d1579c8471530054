import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { recordOf } from '../support/audit/records.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import type { Portcullis } from '../support/harness.ts';
import { callOf, connect, post, secretWith } from '../support/mcp/agents.ts';
import { type AgentFixture, agentFixture, PING } from '../support/mcp/fixture.ts';
import { scrape } from '../support/observability/scrape.ts';

const fixture = beforeTests(agentFixture);
let p: Portcullis;
let secret: string;
let faults: AgentFixture['faults'];

beforeAll(async () => {
  ({ p, secret, faults } = fixture);
});

describe('the audit record of an MCP call', () => {
  it('D2-06 D2-07 D2-08 1-05 D8-06: contains the message, its result and the node, and no secret', async () => {
    const id = randomUUID();
    const message = callOf('list_users', { search: '{"password":"hunter2","name":"kept"}', limit: 1 });
    const answer = await post(p, secret, message, { headers: { 'x-correlation-id': id } });
    expect(answer.headers.get('x-correlation-id')).toBe(id);
    const record = await recordOf(p, id);
    expect(record).toMatchObject({
      method: 'POST',
      path: '/v2/mcp',
      status_code: 200,
      node_id: p.demo.node_id,
      is_api: true,
    });
    expect(record.request_body).toContain('"search":"***"');
    expect(record.response_body).toContain('structuredContent');
    expect(record.headers).toMatchObject({ authorization: '***' });
    expect(JSON.stringify(record)).not.toMatch(/hunter2/);
    expect(JSON.stringify(record)).not.toContain(secret);
  });

  it('D2-08 D8-06: contains no secret from JSON inside the text of a result', async () => {
    const [id, name] = [randomUUID(), `{"client_secret":"${randomUUID()}"}`];
    const user = { wallet_address: `0x${randomUUID()}`, external_id: randomUUID(), name };
    await post(p, secret, callOf('migrate_users', { users: [user] }));
    const call = callOf('list_users', { search: user.external_id });
    const { json } = await post(p, secret, call, { headers: { 'x-correlation-id': id } });
    expect(json.result.structuredContent.data[0].name).toBe(name);
    const record = await recordOf(p, id);
    expect(JSON.stringify(record)).not.toContain(name.slice(18, -2));
    expect(record.response_body).toContain(user.external_id);
  });

  it('D2-07: has no node when the secret was rejected', async () => {
    const id = randomUUID();
    await post(p, 'nobody', PING, { headers: { 'x-correlation-id': id, 'x-forwarded-for': '203.0.113.9' } });
    expect(await recordOf(p, id)).toMatchObject({ status_code: 401, node_id: null, request_body: null });
  });

  it('D2-12 D8-06: a server error is logged once, and the client gets only the correlation id', async () => {
    const { gasFees } = p.service.context;
    const broken = vi.spyOn(gasFees, 'list').mockRejectedValue(new Error('select * from secrets'));
    const id = randomUUID();
    const { status, json } = await post(p, secret, callOf('list_gas_fees'), { headers: { 'x-correlation-id': id } });
    broken.mockRestore();
    expect([status, json.result.isError, json.result._meta.error]).toEqual([200, true, { code: 'internal_error' }]);
    expect(json.result.content[0].text).toContain(id);
    expect(JSON.stringify(json)).not.toContain('select');
    expect(faults).toEqual([
      { fields: expect.objectContaining({ correlation_id: id, tool: 'list_gas_fees' }), message: 'tool failed' },
    ]);
  });

  it.each<[string, () => Promise<unknown>, string]>([
    ['that succeeds', () => post(p, secret, callOf('get_access')), 'ok'],
    ['that is rejected', () => post(p, secret, callOf('get_wallet_rule')), 'error'],
    ['of an unknown tool', () => post(p, secret, callOf('list_secrets')), 'error'],
    [
      'that hits a server error',
      async () => {
        const broken = vi.spyOn(p.service.context.gasFees, 'list').mockRejectedValue(new Error('broken'));
        await post(p, secret, callOf('list_gas_fees'));
        broken.mockRestore();
        faults.length = 0;
      },
      'failed',
    ],
  ])('a call %s is counted by outcome, although its HTTP status is 200', async (_what, ask, outcome) => {
    const counts = async () => {
      const { samples } = await scrape(p.service);
      const calls = samples.filter(({ name }) => name === 'portcullis_tool_calls_total');
      return new Map(calls.map(({ labels, value }) => [labels.outcome, value]));
    };
    const before = await counts();
    expect([...before.keys()]).toEqual(['ok', 'error', 'failed']);
    await ask();
    expect(await counts()).toEqual(new Map([...before]).set(outcome, (before.get(outcome) ?? 0) + 1));
  });

  it('4.9-06 D8-06: each of many concurrent messages gets its own response, for its own client', async () => {
    const secrets = await Promise.all([1, 2, 3].map(() => secretWith(p, ['accounts:read'])));
    const asked = Array.from({ length: 60 }, (_, at) => ({ at, message: { ...callOf('get_access'), id: at } }));
    const answers = await Promise.all(asked.map(({ at, message }) => post(p, secrets[at % 3], message)));
    expect(answers.map(({ json }) => json.id)).toEqual(asked.map(({ at }) => at));
    const clients = answers.map(({ json }) => json.result.structuredContent.client_id);
    expect(new Set(clients).size).toBe(3);
    for (const [at, client] of clients.entries()) expect(client).toBe(clients[at % 3]);
  });

  it('4.9-06: the official client reports an authentication error when its secret is wrong', async () => {
    const headers = { 'X-Forwarded-For': '203.0.113.10' };
    await expect(connect(p, 'nobody', headers)).rejects.toMatchObject({ code: 'CLIENT_HTTP_AUTHENTICATION' });
  });
});
