import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Answer, usePortcullis } from '../support/harness.ts';
import { callOf, post } from '../support/mcp/agents.ts';
import { rows } from '../support/oauth/clients.ts';
import { apiClaims, signed } from '../support/oauth/jwt.ts';
import { autoTransfer, leaf, limit, literal, rulesOf } from '../support/wallet-rules/rules.ts';
import { newestOf, versionsOf } from '../support/wallet-rules/versions.ts';

const FORTY = '1234567890123456789012345678901234567890';

const p = usePortcullis();
let token: string;

beforeAll(async () => {
  token = await p.clientToken();
});

/** What a way of writing a rule sends: the id of the rule, if it is there already, and the correlation id. */
interface Sent {
  id: string;
  correlationId: string;
  by: string;
}

type Send = (sent: Sent) => Promise<Answer>;

const GRAPHQL_LIMIT =
  'name: "by GraphQL", type: "permissionless_transfer_limit", networkId: $id, networkCurrencyId: $id, permissionlessTransferLimitRule: {maxAmount: 1, timePeriod: "day", timePeriodValue: 1}';

/** Sends a rule by REST: a PUT to the rule, a POST to the rules of the wallet. */
function rest(
  method: 'POST' | 'PUT',
  headers: () => Record<string, string> = () => ({}),
  json: object = limit(),
): Send {
  return ({ id, correlationId, by }) =>
    p.call(method, `/v1/wallets/${p.demo.wallet_id}/rules${method === 'PUT' ? `/${id}` : ''}`, {
      ...{ token: by, json },
      headers: { 'x-target-server': 'wallet-rules', 'x-correlation-id': correlationId, ...headers() },
    });
}

function graphql(call: string): Send {
  return ({ id, correlationId, by }) => {
    const query = `mutation ($id: ID!, $wallet: ID!) { done: ${call} { __typename ... on WalletRule { id } } }`;
    const variables = { id: id || randomUUID(), wallet: p.demo.wallet_id };
    const used = Object.fromEntries(Object.entries(variables).filter(([name]) => call.includes(`$${name}`)));
    const declared = query.replace('$wallet: ID!', 'wallet' in used ? '$wallet: ID!' : '').replace(', )', ')');
    const headers = { 'x-correlation-id': correlationId };
    return p.call('POST', '/graphql', { token: by, headers, json: { query: declared, variables: used } });
  };
}

function tool(name: string, args: (id: string) => object): Send {
  return ({ id, correlationId }) =>
    post(p, p.demo.client.client_secret, callOf(name, args(id)), { headers: { 'x-correlation-id': correlationId } });
}

const wallet = () => ({ wallet_id: p.demo.wallet_id });
const CREATES: readonly (readonly [string, Send])[] = [
  ['POST', rest('POST')],
  ['POST with an Idempotency-Key', rest('POST', () => ({ 'idempotency-key': randomUUID() }))],
  ['createWalletRule', graphql(`createWalletRule(walletId: $wallet, input: {${GRAPHQL_LIMIT}})`)],
  ['create_wallet_rule', tool('create_wallet_rule', () => ({ ...wallet(), rule: autoTransfer() }))],
];

const CHANGES: readonly (readonly [string, Send])[] = [
  ['PUT with If-Match', rest('PUT', () => ({ 'if-match': '"1"' }))],
  ['PUT of what it is already', rest('PUT', undefined, { ...limit(), name: 'the same' })],
  [
    'replaceWalletRule',
    graphql(`replaceWalletRule(walletId: $wallet, id: $id, input: {${GRAPHQL_LIMIT}}, ifVersion: 1)`),
  ],
  ['setWalletRuleStatus', graphql('setWalletRuleStatus(id: $id, status: DISABLED)')],
  ['replace_wallet_rule', tool('replace_wallet_rule', (rule_id) => ({ rule_id, rule: autoTransfer() }))],
  ['replace_wallet_rule of a status', tool('replace_wallet_rule', (rule_id) => ({ rule_id, status: 'disabled' }))],
];

const NOTHING: readonly (readonly [string, Send])[] = [
  ['PUT with an If-Match of another version', rest('PUT', () => ({ 'if-match': '"9"' }))],
  ['PUT of an invalid rule', rest('PUT', undefined, {})],
  ['POST of an invalid rule', rest('POST', undefined, {})],
  ['setWalletRuleStatus to what it is', graphql('setWalletRuleStatus(id: $id, status: ACTIVE)')],
  [
    'replace_wallet_rule of another version',
    tool('replace_wallet_rule', (rule_id) => ({ rule_id, rule: limit(), if_version: 9 })),
  ],
];

const idOf = ({ headers, json }: Answer): string =>
  headers.get('location')?.split('/').at(-1) ?? json.data?.done.id ?? json.result.structuredContent.id;

const made = async (name = 'the same') => {
  const answer = await rulesOf(p, token).create(limit({ name }));
  return idOf(answer);
};

const countAll = async () => {
  const count = (table: 'wallet_rules' | 'wallet_rule_versions') =>
    rows(p).run((k) => k.selectFrom(table).select((eb) => eb.fn.countAll<string>().as('count')));
  return [await count('wallet_rules'), await count('wallet_rule_versions')].map(([row]) => Number(row?.count));
};

const database = () => p.service.context.database;

describe('a write of a wallet rule', () => {
  it.each(CREATES)('D5-09: a write by %s creates version 1, with its content and author', async (_way, send) => {
    const correlationId = randomUUID();
    const [rules = 0, versions = 0] = await countAll();
    const id = idOf(await send({ id: '', correlationId, by: token }));
    const { client_id } = p.demo.client;
    const author = { subject: client_id, client_id, correlation_id: correlationId };
    expect(await versionsOf(database(), id)).toEqual([{ ...(await newestOf(database(), id)), ...author, version: 1 }]);
    expect(await countAll()).toEqual([rules + 1, versions + 1]);
  });

  it.each(CHANGES)(
    'D5-09: a write by %s creates the next version, and leaves earlier ones unchanged',
    async (_way, send) => {
      const id = await made();
      const before = await versionsOf(database(), id);
      const correlationId = randomUUID();
      const { text } = await send({ id, correlationId, by: token });
      expect(text).not.toMatch(/error/i);
      const { client_id } = p.demo.client;
      const author = { subject: client_id, client_id, correlation_id: correlationId };
      const newest = { ...(await newestOf(database(), id)), ...author, version: 2 };
      expect(await versionsOf(database(), id)).toEqual([...before, newest]);
    },
  );

  it.each(NOTHING)('D5-09: %s creates no version', async (_way, send) => {
    const id = await made();
    const before = await countAll();
    await send({ id, correlationId: randomUUID(), by: token });
    expect(await countAll()).toEqual(before);
  });

  it('D5-09 D7-07: a write repeated with its idempotency key creates no second version', async () => {
    const key = randomUUID();
    const send = rest('POST', () => ({ 'idempotency-key': key }));
    const first = await send({ id: '', correlationId: 'first', by: token });
    const before = await countAll();
    const again = await send({ id: '', correlationId: 'again', by: token });
    expect(idOf(again)).toBe(idOf(first));
    expect(await countAll()).toEqual(before);
    expect(await versionsOf(database(), idOf(first))).toMatchObject([{ correlation_id: 'first' }]);
  });

  it('D5-09: a write that is rolled back leaves neither a rule nor a version', async () => {
    const { walletRules } = p.service.context;
    const before = await countAll();
    const author = { nodeId: p.demo.node_id, subject: 'x', clientId: undefined, correlationId: 'x' };
    const content = { ...limit(), type: 'auto_transfer', name: 'none' } as never;
    const work = database().db.transaction(async () => {
      const { id } = await walletRules.create(author, p.demo.wallet_id, content);
      await walletRules.setStatus(author, id, 'disabled');
      throw new Error('the work after it fails');
    });
    await expect(work).rejects.toThrow('the work after it fails');
    expect(await countAll()).toEqual(before);
  });
});

describe('the author of a version', () => {
  const send = rest('POST');

  it('D5-09: the author of a version is the supervisor of a login, with the client', async () => {
    const by = await p.loginToken();
    const { sub } = JSON.parse(Buffer.from(by.split('.')[1] ?? '', 'base64url').toString());
    const id = idOf(await send({ id: '', correlationId: 'of a login', by }));
    expect(sub).not.toBe(p.demo.client.client_id);
    expect(await versionsOf(database(), id)).toMatchObject([{ subject: sub, client_id: p.demo.client.client_id }]);
  });

  it('D5-09: the author of a version is the subject of a legacy token, without a client if the token names none', async () => {
    const { current } = p.service.context.secrets.jwt.legacy;
    const claims = { sub: 'old/Ünit 7', client_id: undefined, token_use: undefined, scope: 'wallet-rules:write' };
    const by = signed(p, apiClaims(p, claims), { secret: current });
    const id = idOf(await send({ id: '', correlationId: 'of a legacy token', by }));
    expect(await versionsOf(database(), id)).toMatchObject([{ subject: 'old/Ünit 7', client_id: null }]);
  });

  it('D5-09 D2-06: a version has the correlation id of the audit record, with a token in it replaced', async () => {
    const id = idOf(await send({ id: '', correlationId: token, by: token }));
    const [version] = await versionsOf(database(), id);
    expect(version?.correlation_id).toMatch(/^jwt:[0-9a-f]{16}$/);
    await p.service.context.auditWriter.flush();
    const records = await rows(p).run((k) =>
      k
        .selectFrom('audit_records')
        .select('method')
        .where('correlation_id', '=', version?.correlation_id ?? ''),
    );
    expect(records).toEqual([{ method: 'POST' }]);
  });
});

describe('the reason for a version', () => {
  const REASON = 'The treasury asked for it: "ticket 7" 😀';
  const reasonsOf = async (id: string) => (await versionsOf(database(), id)).map(({ reason }) => reason);

  it('D8-13: a version keeps the reason that its author gave, by GraphQL and by MCP; without one it has none', async () => {
    const id = await made();
    const changes = [
      graphql(
        `replaceWalletRule(walletId: $wallet, id: $id, input: {${GRAPHQL_LIMIT}}, reason: ${JSON.stringify(REASON)})`,
      ),
      graphql(`setWalletRuleStatus(id: $id, status: DISABLED, reason: ${JSON.stringify(REASON)})`),
      tool('replace_wallet_rule', (rule_id) => ({ rule_id, rule: autoTransfer(), reason: REASON })),
      tool('replace_wallet_rule', (rule_id) => ({ rule_id, status: 'active', reason: REASON })),
      rest('PUT'),
      graphql('setWalletRuleStatus(id: $id, status: DISABLED, reason: null)'),
    ];
    for (const send of changes) expect((await send({ id, correlationId: 'of-reasons', by: token })).status).toBe(200);
    const expected = [null, REASON, REASON, REASON, REASON, null, null];
    expect(await reasonsOf(id)).toEqual(expected);

    const query = `{ walletRuleVersions(ruleId: "${id}") { edges { node { reason } } } }`;
    const { json } = await p.call('POST', '/graphql', { token, json: { query } });
    const listed = json.data.walletRuleVersions.edges.map(({ node }: { node: { reason: string } }) => node.reason);
    expect(listed).toEqual(expected.toReversed());
    const call = callOf('get_wallet_rule', { rule_id: id, versions: 20 });
    const { versions } = (await post(p, p.demo.client.client_secret, call)).json.result.structuredContent;
    expect(versions.data.map(({ reason }: { reason: string }) => reason)).toEqual(expected.toReversed());
  });

  it('D8-13: an older version is restored by a replacement with its content and a reason', async () => {
    const id = await made('before');
    await rulesOf(p, token).replace(id, limit({ name: 'after' }));
    const [first] = await versionsOf(database(), id);
    const input = GRAPHQL_LIMIT.replace('by GraphQL', 'before').replaceAll('$id', JSON.stringify(first?.network_id));
    const restore = graphql(`replaceWalletRule(walletId: $wallet, id: $id, input: {${input}}, reason: "as it was")`);
    await restore({ id, correlationId: 'of-restoring', by: token });
    const versions = await versionsOf(database(), id);
    expect(versions.map(({ name, reason }) => [name, reason])).toEqual([
      ['before', null],
      ['after', null],
      ['before', 'as it was'],
    ]);
  });
});

describe('the content of a version', () => {
  const own = {
    rule_logic: {
      and: [leaf({ op: '<', value: literal(`-${FORTY}.${FORTY.slice(0, 20)}`) }), { not: leaf({ op: 'eq' }) }],
    },
    amount: literal(`0.${FORTY}`),
  };
  const other = { max_amount: literal(FORTY), time_period: 'week', time_period_value: 2 };
  const whole = () =>
    autoTransfer(
      {
        priority: 7,
        sign_and_approve_rule: { mandatory_user_id: randomUUID(), min_priority: 9, max_priority: 3, min_user_count: 2 },
        permissionless_transfer_limit_rule: other,
      },
      own,
    );

  const BODIES = [
    ['an automatic transfer with everything', whole],
    ['an automatic transfer with no more than it needs', () => autoTransfer()],
    ['a limit', () => limit({}, { max_amount: literal(FORTY) })],
  ] as const;

  const historyOf = async (ruleId: string) => {
    const query = `{ walletRule(id: "${ruleId}") { versions { edges { node { version rule status deleted subject clientId correlationId at } } } } }`;
    return p.call('POST', '/graphql', { token, json: { query } });
  };

  it.each(BODIES)(
    'D5-09 D5-03: the content of %s is a REST body with every digit, which restores the rule',
    async (_name, body) => {
      const rules = rulesOf(p, token);
      const id = await rules.created(body());
      await rules.replace(id, limit({ name: 'in between' }));
      const { text } = await historyOf(id);
      const sent = /"rule":(\{.*\}),"status":"ACTIVE","deleted":false[^[]*$/.exec(
        text.slice(text.indexOf('"version":1')),
      )?.[1];
      const headers = { 'x-target-server': 'wallet-rules', 'content-type': 'application/json' };
      const path = `/v1/wallets/${p.demo.wallet_id}/rules/${id}`;
      const put = await p.call('PUT', path, { token, headers, body: sent ?? '' });
      expect([put.status, put.headers.get('etag')]).toEqual([200, '"3"']);
      const [first, , third] = await versionsOf(database(), id);
      const content = ({ version: _v, at: _at, subject: _s, correlation_id: _c, ...kept }: NonNullable<typeof first>) =>
        kept;
      expect(third && content(third)).toEqual(first && content(first));
    },
  );

  it('D5-09: versions are the same over GraphQL and MCP, newest first, each with its author', async () => {
    const rules = rulesOf(p, token);
    const id = await rules.created(whole());
    await rules.replace(id, limit({ name: 'second' }));
    await p.service.context.walletRules.setStatus(
      { nodeId: p.demo.node_id, subject: 'whoever', clientId: undefined, correlationId: 'third' },
      id,
      'disabled',
    );
    const stored = (await versionsOf(database(), id)).toReversed();
    const { json } = await historyOf(id);
    const nodes = json.data.walletRule.versions.edges.map(({ node }: { node: object }) => node);
    const utc = (at: string) => new Date(at.replace(/(\.\d{3})\d*\+00$/, '$1Z')).toISOString();
    expect(nodes).toMatchObject(
      stored.map((row) => ({
        ...{ version: row.version, status: row.status.toUpperCase(), deleted: false },
        ...{ subject: row.subject, clientId: row.client_id, correlationId: row.correlation_id, at: utc(row.at) },
        rule: { name: row.name, type: row.type, network_id: row.network_id },
      })),
    );
    expect(nodes.map(({ version }: { version: number }) => version)).toEqual([3, 2, 1]);
    const { structuredContent } = (
      await post(p, p.demo.client.client_secret, callOf('get_wallet_rule', { rule_id: id, versions: 20 }))
    ).json.result;
    expect(structuredContent.versions.data).toEqual(
      stored.map(({ node_id: _node, rule_id: _rule, wallet_id: _wallet, at, ...row }) => ({ ...row, at: utc(at) })),
    );
  });

  it('D5-09 D8-06: versions are listed by the MCP tool in pages, like every list', async () => {
    const rules = rulesOf(p, token);
    const id = await rules.created();
    for (let version = 2; version <= 7; version += 1) await rules.replace(id, limit({ name: `number ${version}` }));
    const walked: number[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const args = { rule_id: id, versions: 3, ...(cursor && { cursor }) };
      const { json } = await post(p, p.demo.client.client_secret, callOf('get_wallet_rule', args));
      const { data, next_cursor } = json.result.structuredContent.versions;
      walked.push(...data.map(({ version }: { version: number }) => version));
      cursor = next_cursor;
    }
    expect(walked).toEqual([7, 6, 5, 4, 3, 2, 1]);
  });
});

describe('a rule deleted with its wallet', () => {
  it('D5-09 D1-10: a rule deleted with its wallet keeps its history, whose newest version is marked as deleted', async () => {
    const walletId = randomUUID();
    const { reference } = p.service.context;
    const now = new Date().toISOString();
    const [wallet] = await rows(p).run((k) => k.selectFrom('wallets').selectAll().where('id', '=', p.demo.wallet_id));
    const { account_id, chain_id, node_id } = wallet ?? { account_id: '', chain_id: '', node_id: '' };
    const row = { node_id, account_id, chain_id, created_at: now, updated_at: now };
    await reference.apply([{ kind: 'wallets', id: walletId, version: 1n, row }]);
    const rules = rulesOf(p, token);
    const id = idOf(await rules.create(limit({ name: 'to the end' }), walletId));
    await rules.replace(id, limit({ name: 'the last' }), { walletId });
    await reference.apply([{ kind: 'wallets', id: walletId, version: undefined, row: undefined }]);

    expect(await newestOf(database(), id)).toBeUndefined();
    const [first, second, end, ...more] = await versionsOf(database(), id);
    expect(more).toEqual([]);
    expect([first?.name, second?.name]).toEqual(['to the end', 'the last']);
    const unknown = { subject: null, client_id: null, correlation_id: null };
    expect(end).toEqual({ ...second, ...unknown, version: 3, deleted: true, at: end?.at });

    const node = '{ edges { node { version deleted subject clientId correlationId rule } } }';
    const query = `{ walletRule(id: "${id}") { id } walletRuleVersions(ruleId: "${id}", first: 1) ${node} }`;
    const { json } = await p.call('POST', '/graphql', { token, json: { query } });
    expect(json.data.walletRule).toBeNull();
    const { rule, ...told } = json.data.walletRuleVersions.edges[0].node;
    expect(told).toEqual({ version: 3, deleted: true, subject: '', clientId: null, correlationId: null });
    expect(rule.name).toBe('the last');
    const call = callOf('get_wallet_rule', { rule_id: id, versions: 20 });
    const listed = (await post(p, p.demo.client.client_secret, call)).json.result.structuredContent.versions.data;
    expect(listed.map(({ version, deleted }: { version: number; deleted: boolean }) => [version, deleted])).toEqual([
      [3, true],
      [2, false],
      [1, false],
    ]);
  });
});

describe('a rule with a text instead of a decimal', () => {
  it('a rule with a text instead of a decimal is returned with that text, and so are its versions', async () => {
    const id = idOf(await rulesOf(p, token).create(autoTransfer()));
    const leafOf = { field: 'balance', op: 'lt' as const, value: 'many', network_currency_id: id };
    const rule_logic = { not: leafOf };
    const auto_transfer_rule = { type: 'auto' as const, rule_logic, amount: '50', target_wallet_id: id };
    await rows(p).run((k) =>
      k.updateTable('wallet_rules').set({ auto_transfer_rule, version: 2 }).where('id', '=', id),
    );
    const query = `{ walletRule(id: "${id}") { autoTransferRule { ruleLogic } } walletRuleVersions(ruleId: "${id}", first: 1) { edges { node { rule } } } }`;
    const { json } = await p.call('POST', '/graphql', { token, json: { query } });
    expect(json.errors).toBeUndefined();
    expect(json.data.walletRule.autoTransferRule.ruleLogic).toEqual(rule_logic);
    const [{ node }] = json.data.walletRuleVersions.edges;
    expect(node.rule.auto_transfer_rule).toEqual({ ...auto_transfer_rule, amount: 50 });
  });
});
