import { type ExecutionArgs, parse, validateSubscriptionArgs } from 'graphql';
import { expect, it } from 'vitest';
import type { Principal } from '../../src/access/identity/callers.ts';
import { resultKeyOf } from '../../src/api/graphql/execution/shared-results.ts';
import type { SharedPrincipal } from '../../src/api/graphql/kit/resolvers.ts';
import { sharedPrincipalOf } from '../../src/api/graphql/runtime.ts';
import { graphqlSchema } from '../../src/app/graphql-schema.ts';

const schema = graphqlSchema();

const PRINCIPAL: Principal = {
  tokenClass: 'user',
  tokenUse: 'api',
  subject: 'somebody',
  nodeId: 'a',
  clientId: 'c',
  sessionId: undefined,
  tokenId: 't',
  familyId: undefined,
  issuedAt: undefined,
  permissions: new Set(['transactions:read', 'assets:read']),
  expiresAtMs: undefined,
};

const UPDATES = `subscription A($after: String, $filter: TransactionFilter) {
  transactionUpdates(after: $after, filter: $filter) { cursor }
}
subscription B { transactionUpdates { cursor } }`;

function keyOf(
  document: string,
  variableValues: Record<string, unknown> = {},
  { operationName, ...principal }: Partial<Principal> & { operationName?: string } = {},
): string {
  const args: ExecutionArgs = { schema, document: parse(document), variableValues };
  const named = document.includes('subscription A') ? { ...args, operationName: operationName ?? 'A' } : args;
  const validated = validateSubscriptionArgs(named);
  if (!('schema' in validated)) throw new Error(validated.map(({ message }) => message).join());
  return resultKeyOf(validated, sharedPrincipalOf({ ...PRINCIPAL, ...principal }));
}

const filter = { collection: 'OTC_TRANSACTIONS', type: 3 };

it.each<[name: string, key: () => string]>([
  ['another start cursor', () => keyOf(UPDATES, { after: '17', filter })],
  ['members in another order', () => keyOf(UPDATES, { filter: { type: 3, collection: 'OTC_TRANSACTIONS' } })],
  ['a variable that is not declared', () => keyOf(UPDATES, { filter, more: 1 })],
  [
    'permissions in another order',
    () => keyOf(UPDATES, { filter }, { permissions: new Set([...PRINCIPAL.permissions].reverse()) }),
  ],
  [
    'another login, client or token',
    () => keyOf(UPDATES, { filter }, { subject: 's', clientId: 'd', tokenId: 'u', sessionId: 'x', expiresAtMs: 1 }),
  ],
])('D6-10: %s shares the result', (_name, key) => {
  expect(key()).toBe(keyOf(UPDATES, { filter }));
});

it.each<[name: string, key: () => string]>([
  ['another filter', () => keyOf(UPDATES, { filter: { ...filter, type: 4 } })],
  ['no filter', () => keyOf(UPDATES)],
  ['another operation of the document', () => keyOf(UPDATES, { filter }, { operationName: 'B' })],
  ['another document', () => keyOf(UPDATES.replace('{ cursor }', '{ event }'), { filter })],
])('D6-10: %s has its own result', (_name, key) => {
  expect(key()).not.toBe(keyOf(UPDATES, { filter }));
});

/** Another value of each member that there is where events are answered. */
const OTHERS: { [Member in keyof SharedPrincipal]: SharedPrincipal[Member] } = {
  nodeId: 'b',
  tokenClass: 'legacy',
  tokenUse: 'login',
  permissions: new Set(['transactions:read']),
};

it('D6-10: other members of a principal are not available when events are executed', () => {
  expect(Object.keys(sharedPrincipalOf(PRINCIPAL)).sort()).toEqual(Object.keys(OTHERS).sort());
});

it.each(Object.entries(OTHERS))('D6-10: another %s has its own result', (member, other) => {
  expect(keyOf(UPDATES, { filter }, { [member]: other })).not.toBe(keyOf(UPDATES, { filter }));
});

it('D6-10: a start cursor that is also used elsewhere in the document has its own result', () => {
  const twice = `subscription ($after: String) {
    transactionUpdates(after: $after) { cursor transaction { events(after: $after) { edges { cursor } } } }
  }`;
  expect(keyOf(twice, { after: '1' })).not.toBe(keyOf(twice, { after: '2' }));
  const nested = `subscription ($after: String) {
    transactionUpdates { cursor transaction { events(after: $after) { edges { cursor } } } }
  }`;
  expect(keyOf(nested, { after: '1' })).not.toBe(keyOf(nested, { after: '2' }));
});
