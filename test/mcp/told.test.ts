import { randomUUID } from 'node:crypto';
import { describe, expect, it, vi } from 'vitest';
import { PERMISSIONS, type Permission } from '../../src/access/identity/permissions.rules.ts';
import { TOOLS } from '../../src/app/tools.ts';
import { WalletRules } from '../../src/features/wallet-rules/wallet-rules.service.ts';
import { invalidInput, invalidRequest, notFound, Refusal } from '../../src/platform/errors.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { usePortcullis } from '../support/harness.ts';
import { callOf, connect, post, secretWith, type ToolAnswer } from '../support/mcp/agents.ts';
import { newUser } from '../support/user-migrations/calls.ts';
import { limit } from '../support/wallet-rules/rules.ts';

const ALL = [...TOOLS.values()];

const p = usePortcullis();
const agent = beforeTests(() => connect(p, p.demo.client.client_secret));

describe('what the server tells a model', () => {
  it('D8-06: initialize returns the name, the instructions, and that there are tools', () => {
    expect(agent.client.getServerVersion()).toMatchObject({ name: 'portcullis' });
    expect(agent.client.getServerCapabilities()).toEqual({ tools: {} });
    expect(agent.client.getInstructions()).toContain('next_cursor');
  });

  it('D8-06: every tool states its purpose, scope, input and output schemas, and whether it only reads', async () => {
    const tools = await agent.tools();
    expect(tools.map(({ name }) => name)).toEqual(ALL.map(({ name }) => name));
    for (const { name, description = '', inputSchema, outputSchema, annotations } of tools) {
      const scope = TOOLS.get(name)?.scope;
      expect(name).toMatch(/^(list|get|preview|create|replace|assign|migrate)_[a-z_]+$/);
      expect(description.length).toBeGreaterThan(40);
      expect(description).toContain(scope === undefined ? 'Needs no scope.' : `Needs the scope ${scope}.`);
      const isRead = /^(list|get|preview)_/.test(name);
      const output = isRead ? 'object' : undefined;
      expect([inputSchema.type, outputSchema?.type, annotations?.openWorldHint]).toEqual(['object', output, false]);
      expect([name, annotations?.readOnlyHint]).toEqual([name, isRead]);
      if (isRead) expect([name, scope?.endsWith(':read') ?? true]).toEqual([name, true]);
    }
    expect(tools.filter(({ inputSchema }) => (inputSchema.required ?? []).length === 0).length).toBeGreaterThan(5);
    expect(tools.filter(({ annotations }) => annotations?.destructiveHint).map(({ name }) => name)).toEqual([
      'replace_wallet_rule',
    ]);
  });

  it('D8-06: the tool list is small: at most 16 tools and 40 KB', async () => {
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    const { json, text } = await post(p, p.demo.client.client_secret, list);
    expect(json.result.tools.length).toBeLessThanOrEqual(16);
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(40 * 1024);
  });

  it('D8-06: every argument of a tool has a description or an enum', () => {
    const bare = ALL.flatMap(({ name, listed: { inputSchema } }) =>
      Object.entries(inputSchema.properties ?? {}).flatMap(([member, schema]) =>
        /description|enum/.test(Object.keys(Object(schema)).join()) ? [] : `${name}.${member}`,
      ),
    );
    expect(bare).toEqual([]);
  });

  it.each([...PERMISSIONS, undefined])(
    'D8-06: a client with the scope %s sees and may call only the tools of that scope',
    async (scope) => {
      const secret = await secretWith(p, scope === undefined ? [] : [scope]);
      const allowed = ALL.filter((tool) => tool.scope === undefined || tool.scope === scope).map(({ name }) => name);
      const { json } = await post(p, secret, { jsonrpc: '2.0', id: 1, method: 'tools/list' });
      expect(json.result.tools.map(({ name }: { name: string }) => name)).toEqual(allowed);
      expect(allowed).toContain('get_access');
      for (const { name, scope: needed = '' } of ALL.filter((tool) => !allowed.includes(tool.name))) {
        const { result } = (await post(p, secret, callOf(name))).json;
        expect([name, result.isError, result._meta.error.code]).toEqual([name, true, 'forbidden']);
        expect(result.content[0].text).toContain(needed);
      }
    },
  );
});

describe('rejected tool calls', () => {
  it.each<[name: string, args: object, issues: string[]]>([
    ['get_wallet_rule', {}, ['rule_id']],
    ['list_accounts', { account_id: 'Acme' }, ['account_id']],
    ['list_accounts', { limit: 0 }, ['limit']],
    ['list_accounts', { limit: 101 }, ['limit']],
    ['list_accounts', { limit: '5' }, ['limit']],
    ['list_accounts', { cursor: 'AAAA' }, ['cursor']],
    ['list_accounts', { search: 'a\u0000b' }, ['search']],
    ['list_accounts', { page: 2, first: 3 }, ['page', 'first']],
    ['list_transactions', { status: 'done', updated_since: 'yesterday' }, ['status', 'updated_since']],
    ['create_wallet_rule', { rule: {} }, ['wallet_id', 'rule.name', 'rule.type']],
    ['migrate_users', { users: [{ wallet_address: ' ' }] }, ['users[0].wallet_address']],
    ['migrate_users', { users: [{ ...newUser(), kycSent: true }] }, ['users[0].kycSent']],
    [
      'create_wallet_rule',
      { wallet_id: randomUUID(), rule: { ...limit(), status: 'disabled', sign_and_approve: {} } },
      ['rule.status', 'rule.sign_and_approve'],
    ],
    ['migrate_users', { users: [], idempotency_key: 'ü' }, ['users', 'idempotency_key']],
    ['replace_wallet_rule', { rule_id: randomUUID() }, ['rule']],
    ['replace_wallet_rule', { rule_id: randomUUID(), rule: limit(), status: 'active' }, ['rule']],
    ['replace_wallet_rule', { rule_id: randomUUID(), status: 'active', if_version: 1 }, ['rule']],
  ])('D2-13 D8-06: %s(%j) names each invalid argument', async (name, args, issues) => {
    const { error, text } = await agent.call(name, { ...args });
    expect(error?.code).toBe('invalid_arguments');
    expect(error?.issues?.map(({ path }) => path)).toEqual(expect.arrayContaining(issues));
    for (const { path, message } of error?.issues ?? []) expect(text).toContain(`- ${path}: ${message}`);
  });

  it('D2-18 D8-06: a null argument counts as absent', async () => {
    expect((await agent.call('list_accounts', { limit: null, cursor: null })).given.data).toHaveLength(20);
  });

  it('D8-06: replace_wallet_rule accepts a rule as get_wallet_rule returns it', async () => {
    const { given: created } = await agent.call('create_wallet_rule', { wallet_id: p.demo.wallet_id, rule: limit() });
    const { given } = await agent.call('get_wallet_rule', { rule_id: created.id });
    const replaced = await agent.call('replace_wallet_rule', {
      rule_id: created.id,
      rule: { ...given.rule, name: 'Next' },
    });
    expect(replaced.given).toMatchObject({ name: 'Next', version: 2 });
  });

  it('D8-06: list_networks names the currencies that a rule can use', async () => {
    const { network_id, network_currency_id: id, wallet_id } = p.demo;
    for (const args of [{}, { wallet_id }]) {
      const { data } = (await agent.call('list_networks', args)).given;
      const network = data.find((one: { id: string }) => one.id === network_id);
      expect(network.currencies).toEqual([{ id, symbol: 'EURC' }]);
    }
  });

  it('DG-12 D8-06: a cursor is valid only for its own list', async () => {
    const { next_cursor: cursor } = (await agent.call('list_accounts', { limit: 1 })).given;
    expect((await agent.call('list_wallets', { cursor })).error?.issues).toEqual([
      expect.objectContaining({ path: 'cursor' }),
    ]);
  });

  it('D7-06 D7-07 D7-14 D8-06: a repeated key returns the first result; with other arguments it is a conflict', async () => {
    const idempotency_key = randomUUID();
    const users = [newUser()];
    const first = await agent.call('migrate_users', { users, idempotency_key });
    expect(first.given).toMatchObject({ success: 1 });
    expect(await agent.call('migrate_users', { users, idempotency_key })).toEqual(first);
    const other = await agent.call('migrate_users', { users: [newUser()], idempotency_key });
    expect(other.error?.code).toBe('idempotency_conflict');
    const wallet_id = randomUUID();
    const rule = { wallet_id, rule: limit(), idempotency_key: randomUUID() };
    expect((await agent.call('create_wallet_rule', rule)).error?.code).toBe('not_found');
    // A refusal leaves its key free, also for other arguments.
    const good = { ...rule, wallet_id: p.demo.wallet_id };
    const made = await Promise.all([1, 2, 3].map(() => agent.call('create_wallet_rule', good)));
    expect(new Set(made.map(({ given }) => given.id)).size).toBe(1);
    // What does not hold leaves its key free.
    const key = randomUUID();
    expect((await agent.call('create_wallet_rule', { ...good, rule: {}, idempotency_key: key })).error).toBeDefined();
    expect((await agent.call('create_wallet_rule', { ...good, idempotency_key: key })).error).toBeUndefined();
  });

  it.each<[name: string, error: Error, code: string]>([
    ['not_found', notFound(), 'not_found'],
    ['forbidden', new Refusal('forbidden', { permission: 'x', message: 'not for you' }), 'forbidden'],
    ['a failed precondition', new Refusal('precondition_failed', { message: 'has moved on' }), 'precondition_failed'],
    ['an invalid argument', invalidInput('rule.name', 'no'), 'invalid_arguments'],
    ['an error without a tool code', invalidRequest([{ path: 'rule', message: 'no' }]), 'internal_error'],
    ['a server error', new Error('broken'), 'internal_error'],
  ])(
    'D7-14 D8-06: %s is reported the same with and without a key, and the key is not used up',
    async (_name, error, code) => {
      const create = vi.spyOn(WalletRules.prototype, 'create').mockRejectedValue(error);
      try {
        const call = { wallet_id: p.demo.wallet_id, rule: limit() };
        const without = withoutNewIds(await agent.call('create_wallet_rule', call));
        expect(without.error?.code).toBe(code);
        const keyed = { ...call, idempotency_key: randomUUID() };
        for (const _again of [1, 2])
          expect(withoutNewIds(await agent.call('create_wallet_rule', keyed))).toEqual(without);
        expect(create).toHaveBeenCalledTimes(3);
      } finally {
        create.mockRestore();
      }
    },
  );

  it('D8-06: an unknown tool is a protocol error', async () => {
    await expect(agent.client.callTool({ name: 'list_secrets', arguments: {} })).rejects.toMatchObject({
      code: -32_602,
      message: expect.stringContaining('list_secrets'),
    });
  });
});

/** The correlation id of a fault is new each time. */
function withoutNewIds({ text, ...answer }: ToolAnswer): ToolAnswer {
  return { ...answer, text: text.replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/, 'ID') };
}

it('D8-06: there are no tools to administer, register or delete', () => {
  const used = new Set(ALL.map(({ scope }) => scope));
  const unused: Permission[] = PERMISSIONS.filter((permission) => !used.has(permission));
  expect(unused).toEqual(['users:erase', 'transactions:write', 'tokens:read', 'clients:manage', 'audit:read']);
});
