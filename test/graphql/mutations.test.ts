import { describe, expect, it } from 'vitest';
import { useFixture } from '../support/graphql/fixture.ts';
import { RegisterTransactionDocument, type RegisterTransactionInput } from './generated/graphql.ts';

const fixture = useFixture();

const INPUT: RegisterTransactionInput = { id: 'mint-1', collection: 'TOKEN_TRANSACTIONS', type: 1 };

async function register(input: RegisterTransactionInput, token = fixture.token) {
  return (await fixture.run(RegisterTransactionDocument, { input }, { token })).registerTransaction;
}

describe('registerTransaction', () => {
  it('DG-03: returns the transaction, also for a repeated registration', async () => {
    const registered = await register(INPUT);
    expect(registered).toMatchObject({
      __typename: 'Transaction',
      id: 'mint-1',
      typeName: 'CreateTokenization',
      status: null,
    });
    expect(await register(INPUT)).toEqual(registered);
  });

  it('D6-01: a type that is unknown in the collection is stored, returned and flagged', async () => {
    const known = await register({ id: 'known-type', collection: 'USER_TRANSACTIONS', type: 10 });
    expect(known).toMatchObject({ type: 10, typeFlagged: false });
    const unknown = await register({ id: 'unknown-type', collection: 'USER_TRANSACTIONS', type: 11 });
    expect(unknown).toMatchObject({ type: 11, typeName: null, typeFlagged: true });
  });

  it.each([
    ['an empty id', { ...INPUT, id: '' }, [['id']]],
    ['an id of 129 characters', { ...INPUT, id: 'x'.repeat(129) }, [['id']]],
    ['U+0000 in the id', { ...INPUT, id: 'a\0b' }, [['id']]],
    ['a lone surrogate in the id', { ...INPUT, id: 'a\ud800' }, [['id']]],
    ['an asset id that is not a UUID', { ...INPUT, assetId: 'gold' }, [['assetId']]],
    ['two invalid members', { ...INPUT, id: '', assetId: 'gold' }, [['id'], ['assetId']]],
  ])('DG-03: %s is a ValidationError that names the member', async (_name, input, paths) => {
    const result = await register(input);
    expect(result.__typename).toBe('ValidationError');
    const issues = 'issues' in result ? result.issues : [];
    expect(issues.map(({ path }) => path)).toEqual(paths);
    expect(issues.every(({ message }) => message !== '')).toBe(true);
  });

  it('DG-03: an id of 128 characters of any plane and a null asset are valid', async () => {
    const id = '🏦'.repeat(128);
    expect(await register({ ...INPUT, id, assetId: null })).toMatchObject({ __typename: 'Transaction', id });
  });

  it('DG-08: is answered whatever type is accepted, since it was executed', async () => {
    const document =
      'mutation { registerTransaction(input: {id: "a", collection: OTC_TRANSACTIONS, type: 1}) { __typename } }';
    const answer = await fixture.query(document, { headers: { accept: 'text/plain' } });
    expect([answer.status, answer.text]).toEqual([
      200,
      '{"data":{"registerTransaction":{"__typename":"Transaction"}}}',
    ]);
  });

  it('DG-03: a missing permission is reported before invalid input', async () => {
    const token = fixture.newToken({ permissions: ['transactions:read'] });
    const result = await register({ ...INPUT, id: '' }, token);
    expect(result).toMatchObject({ __typename: 'ForbiddenError', permission: 'transactions:write' });
  });
});
