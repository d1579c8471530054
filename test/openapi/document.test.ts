import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { validate } from '@readme/openapi-parser';
import { describe, expect, it } from 'vitest';
import { DOCUMENTED, openApiDocument, printedOpenApi } from '../../scripts/openapi.ts';
import { ROUTES } from '../../src/app/routes.ts';
import {
  clientBesideBasicInput,
  clientInput,
  parseForm,
  parseTokenRequest,
  tokenInput,
} from '../../src/features/oauth/token-request.input.ts';
import { notificationInput } from '../../src/features/transactions/notification.input.ts';
import { migrateUserInput, migrateUsersInput } from '../../src/features/user-migrations/migration.input.ts';
import { evaluateRule } from '../../src/features/wallet-rules/evaluate.rules.ts';
import { walletRuleInput } from '../../src/features/wallet-rules/wallet-rule.input.ts';
import { readGatewayConfig } from '../../src/gateway/endpoints/gateway-config.ts';
import { committed, document, faultsOf, followed, operations } from '../support/openapi/described.ts';

const config = readGatewayConfig(join(import.meta.dirname, '../../gateway.yaml'));

/** What OpenAPI has no words for, or what is described elsewhere: preflights, GraphQL, and where the document itself is. */
const UNDESCRIBED = new Set(['**', ...ROUTES.filter(({ operation }) => !operation).map(({ path }) => path)]);

interface Example {
  name: string;
  value: unknown;
  /** Of the media type, or of what else the example is of. */
  at: readonly string[];
}

/** The examples of what has them: `example`, or `examples` by name. */
function examplesAt(at: readonly string[]): Example[] {
  const { value } = followed(at);
  const named = Object.entries((value.examples ?? {}) as Record<string, { value: unknown }>);
  const single = 'example' in value ? [{ name: at.join(' '), value: value.example, at }] : [];
  return [...single, ...named.map(([name, example]) => ({ name: [...at, name].join(' '), value: example.value, at }))];
}

function contentsAt(at: readonly string[]): (readonly string[])[] {
  const { value, at: there } = followed(at);
  return Object.keys(value.content ?? {}).map((type) => [...there, 'content', type]);
}

const requests = operations
  .filter(({ operation }) => operation.requestBody)
  .flatMap(({ at }) => contentsAt([...at, 'requestBody']).flatMap(examplesAt));
const responses = operations.flatMap(({ at, operation }) =>
  Object.keys(operation.responses ?? {}).flatMap((status) =>
    contentsAt([...at, 'responses', status]).flatMap(examplesAt),
  ),
);
const parts = Object.entries(document.components ?? {}).flatMap(([kind, components]) =>
  ['parameters', 'headers'].includes(kind)
    ? Object.keys(components).flatMap((name) => examplesAt(['components', kind, name]))
    : [],
);

/** Reads a request's body as its handler does. */
const READERS: Readonly<Record<string, (body: unknown) => boolean>> = {
  issueToken: (body) => parseTokenRequest(body) !== undefined && isOfClient(body),
  revokeToken: (body) => tokenInput.safeParse(body).success && isOfClient(body),
  introspectToken: (body) => tokenInput.safeParse(body).success && isOfClient(body),
  createWalletRule: (body) => walletRuleInput.safeParse(body).success,
  replaceWalletRule: (body) => walletRuleInput.safeParse(body).success,
  notifyTransaction: (body) => notificationInput.safeParse(body).success,
  notifyTransactionByAlias: (body) => notificationInput.safeParse(body).success,
  migrateUser: (body) => migrateUserInput.safeParse(body).success,
  migrateUsers: (body) => migrateUsersInput.safeParse(body).success,
};

function isOfClient(body: unknown): boolean {
  return clientInput.safeParse(body).success || clientBesideBasicInput.safeParse(body).success;
}

describe('the OpenAPI document', () => {
  it('4.9-04 D8-02: is valid OpenAPI 3.1', async () => {
    expect(document.openapi).toBe('3.1.0');
    expect(await validate(structuredClone(document) as Parameters<typeof validate>[0])).toMatchObject({ valid: true });
  });

  it('D8-02: the committed file equals what the schemas and the endpoints generate (npm run schema)', () => {
    expect(printedOpenApi(config, DOCUMENTED) === committed).toBe(true);
    expect(committed).toMatch(/\}\n$/);
  });

  it('D8-02: has exactly the endpoints of the gateway, with their methods', () => {
    const registered = config.endpoints
      .filter(({ path }) => !UNDESCRIBED.has(path))
      .flatMap(({ methods, path }) => methods.map((method) => `${method} ${path.replace('/**', '/{path}')}`));
    expect(operations.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(registered.sort());
    expect([...UNDESCRIBED].every((path) => config.endpoints.some((endpoint) => endpoint.path === path))).toBe(true);
  });

  it('D8-02: generation fails for an endpoint without a description, and for a description without an endpoint', () => {
    const [first] = config.endpoints;
    if (!first) throw new Error('there are endpoints');
    const more = { ...first, path: '/v1/undescribed' };
    expect(() => openApiDocument({ ...config, endpoints: [...config.endpoints, more] }, DOCUMENTED)).toThrow(
      '/v1/undescribed',
    );
    expect(() => openApiDocument({ ...config, endpoints: config.endpoints.slice(1) }, DOCUMENTED)).toThrow(first.path);
  });

  it('D8-02: each operation has a unique id, a described tag, and the token types it accepts', () => {
    const ids = operations.map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    const tags = new Set(document.tags?.map(({ name }) => name));
    const protectedPaths = new Set(config.endpoints.flatMap((e) => (e.visibility === 'protected' ? [e.path] : [])));
    for (const { path, operation } of operations) {
      expect(operation.tags?.every((tag) => tags.has(tag))).toBe(true);
      const schemes = operation.security?.flatMap((requirement) => Object.keys(requirement));
      if (protectedPaths.has(path)) expect(schemes).toEqual(['oauth2', 'userToken', 'legacyToken']);
      else if (path.startsWith('/v2/mcp')) expect(schemes).toEqual(['clientSecret', 'oauth2', 'userToken']);
      else expect(schemes).not.toContain('userToken');
    }
  });

  it.each([
    ['notifyTransaction', [200, 400, 401, 404, 500]],
    ['notifyTransactionByAlias', [200, 400, 401, 404, 500]],
    ['migrateUser', [201, 400, 401, 403, 404, 409, 429, 500]],
    ['migrateUsers', [200, 400, 401, 403, 404, 409, 429, 500]],
  ])('D8-02: the statuses of %s are a closed list, without 413 and 503', (id, statuses) => {
    const found = operations.find(({ operation }) => operation.operationId === id);
    expect(Object.keys(found?.operation.responses ?? {}).map(Number)).toEqual(statuses);
  });

  it('D8-02: has no negative or empty constants, which code generators do not support', () => {
    expect(committed).not.toMatch(/"const": (?:-|"")/);
    const envelope = JSON.parse(committed).components.responses.NotFound.content['application/json'].schema;
    expect(envelope.properties.code).toEqual({ type: 'integer', enum: [-1] });
  });

  it('D8-02: each discriminator maps its values to its alternative schemas, by full references', () => {
    interface Alternatives {
      discriminator?: { propertyName: string; mapping: Record<string, string> };
      oneOf?: { $ref: string }[];
    }
    const schemas: Record<string, Alternatives> = JSON.parse(committed).components.schemas;
    const discriminated = Object.entries(schemas).filter(([, { discriminator }]) => discriminator !== undefined);
    expect(discriminated.map(([name]) => name)).toContain('TokenRequest');
    for (const [
      ,
      { discriminator: { propertyName, mapping } = { propertyName: '', mapping: {} }, oneOf = [] },
    ] of discriminated) {
      expect(Object.values(mapping)).toEqual(oneOf.map(({ $ref }) => $ref));
      for (const [value, ref] of Object.entries(mapping)) {
        const [, name = ''] = /^#\/components\/schemas\/([A-Za-z]+)$/.exec(ref) ?? [];
        expect(schemas[name]).toMatchObject({ properties: { [propertyName]: { const: value } } });
      }
    }
  });

  it('D8-02: has the minimum, maximum and default of each limit in force', () => {
    const parameters = operations.find(({ path }) => path === '/v1/accounts')?.operation.parameters ?? [];
    expect(parameters.slice(0, 2)).toMatchObject([
      { name: 'page', schema: { minimum: 1, maximum: Number.MAX_SAFE_INTEGER, default: 1 } },
      { name: 'limit', schema: { minimum: 1, maximum: 100, default: 10 } },
    ]);
    expect(committed).toContain('"maximum": 18446744073709551615');
  });
});

describe('examples in the OpenAPI document', () => {
  it('D8-02: every request, and every response with its own body, has an example', () => {
    expect(new Set(requests.map(({ at }) => at[1])).size).toBe(
      new Set(operations.filter((o) => o.operation.requestBody).map((o) => o.path)).size,
    );
    expect(responses.length).toBeGreaterThan(50);
  });

  it.each([...requests, ...responses, ...parts])('D8-02: $name is valid', ({ value, at }) => {
    expect(faultsOf(value, [...at, 'schema'])).toEqual([]);
  });

  it('2.6-09: examples of conditions fire in a preview, with the fields named by GraphQL, MCP and the quickstart', () => {
    const fields = ['target.balance', 'source.balance'];
    const rules = requests
      .map(({ value }) => walletRuleInput.safeParse(value).data)
      .filter((rule) => rule !== undefined);
    const conditional = rules.filter(({ type }) => type === 'auto_transfer');
    expect(conditional.length).toBeGreaterThan(1);
    for (const rule of conditional) {
      const { network_currency_id } = rule;
      const balances = fields.map((field) => ({ field, network_currency_id, value: '40' }));
      const at = { seconds: 0n, nanos: 0 };
      expect(evaluateRule(rule, { balances, transfers: undefined, at })).toMatchObject({ fires: true });
    }
    for (const file of ['schema/schema.graphql', 'schema/tools.json', 'docs/quickstart/integrator.md']) {
      const text = readFileSync(join(import.meta.dirname, '../..', file), 'utf8');
      const named = text.match(/\b(?:\w+\.balance|balance\.\w+)\b/g) ?? [];
      expect([file, named.length > 0, named.filter((field) => !fields.includes(field))]).toEqual([file, true, []]);
    }
  });

  it('D8-02: examples of requests are accepted by the handlers, as a form too', () => {
    for (const { name, value, at } of requests) {
      const id = operations.find(({ path, method }) => path === at[1] && method.toLowerCase() === at[2])?.operation
        .operationId;
      const read = READERS[id ?? ''];
      if (at[1]?.startsWith('/v2/mcp')) continue;
      const isForm = at.at(-1) === 'application/x-www-form-urlencoded';
      const body = isForm
        ? parseForm(Buffer.from(new URLSearchParams(value as Record<string, string>).toString()))
        : value;
      expect([name, read?.(body)]).toEqual([name, true]);
    }
  });
});
