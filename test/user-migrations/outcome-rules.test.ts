import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  faultOf,
  type JudgedRow,
  outcomesOf,
  type RowOutcome,
} from '../../src/features/user-migrations/migration-outcome.rules.ts';
import { isLonger } from '../../src/lib/input.ts';

const FREE = { email: false, externalId: false, address: false };

function row(
  [emailKey, externalId, address]: [string | undefined, string | undefined, string],
  more: Partial<JudgedRow> = {},
): JudgedRow {
  return { identity: { emailKey, externalId, address }, taken: FREE, owners: [], fault: undefined, ...more };
}

const created: RowOutcome = { status: 'created' };
const skipped = (reason: string) => ({ status: 'skipped', reason });

describe('the outcome of a row', () => {
  it.each<[string, JudgedRow[], unknown[]]>([
    ['an email and a wallet', [row(['a', undefined, 'w'])], [created]],
    ['an external id and a wallet', [row([undefined, 'x', 'w'])], [created]],
    ['no identifier', [row([undefined, undefined, 'w'])], [skipped('missing_email_and_external_id')]],
    [
      'no identifier, everything taken and a fault',
      [row([undefined, undefined, 'w'], { taken: { email: true, externalId: true, address: true }, fault: 'f' })],
      [skipped('missing_email_and_external_id')],
    ],
    [
      'a fault',
      [row(['a', 'x', 'w'], { taken: { ...FREE, email: true }, fault: 'f' })],
      [{ status: 'failed', reason: 'f' }],
    ],
    [
      'everything taken',
      [row(['a', 'x', 'w'], { taken: { email: true, externalId: true, address: true } })],
      [skipped('duplicate_email')],
    ],
    [
      'external id and wallet taken',
      [row(['a', 'x', 'w'], { taken: { email: false, externalId: true, address: true } })],
      [skipped('duplicate_external_id')],
    ],
    ['the wallet taken', [row(['a', 'x', 'w'], { taken: { ...FREE, address: true } })], [skipped('duplicate_wallet')]],
    ['the same row twice', [row(['a', 'x', 'w']), row(['a', 'x', 'w'])], [created, skipped('duplicate_email')]],
    [
      'the external id of an earlier row',
      [row(['a', 'x', 'w']), row(['b', 'x', 'v'])],
      [created, skipped('duplicate_external_id')],
    ],
    [
      'the wallet of an earlier row',
      [row(['a', 'x', 'w']), row(['b', 'y', 'w'])],
      [created, skipped('duplicate_wallet')],
    ],
    [
      'the email of a skipped row, which created no user',
      [row(['a', 'x', 'w'], { taken: { ...FREE, address: true } }), row(['a', 'x', 'v'])],
      [skipped('duplicate_wallet'), created],
    ],
    [
      'the email of a failed row, which created no user',
      [row(['a', 'x', 'w'], { fault: 'f' }), row(['a', 'x', 'w'])],
      [{ status: 'failed', reason: 'f' }, created],
    ],
    ['an email equal to an external id', [row(['a', undefined, 'w']), row([undefined, 'a', 'v'])], [created, created]],
  ])('7.5-02 D7-04: %s', (_name, given, expected) => {
    expect(outcomesOf(given)).toEqual(expected);
  });

  it('D7-04: created rows share no identifier, and a skipped row shares the one its reason names', () => {
    const name = fc.constantFrom(undefined, 'a', 'b', 'c');
    const judged = fc
      .record({ emailKey: name, externalId: name, address: fc.constantFrom('u', 'v', 'w') })
      .map((identity): JudgedRow => ({ identity, taken: FREE, owners: [], fault: undefined }));
    fc.assert(
      fc.property(fc.array(judged, { maxLength: 12 }), (given) => {
        const seen: JudgedRow[] = [];
        outcomesOf(given).forEach((outcome, index) => {
          const it = given[index];
          if (!it) return;
          const shares = (key: 'emailKey' | 'externalId' | 'address') =>
            it.identity[key] !== undefined && seen.some(({ identity }) => identity[key] === it.identity[key]);
          const expected =
            it.identity.emailKey === undefined && it.identity.externalId === undefined
              ? 'missing_email_and_external_id'
              : shares('emailKey')
                ? 'duplicate_email'
                : shares('externalId')
                  ? 'duplicate_external_id'
                  : shares('address')
                    ? 'duplicate_wallet'
                    : undefined;
          expect(outcome).toEqual(expected === undefined ? created : skipped(expected));
          if (expected === undefined) seen.push(it);
        });
      }),
    );
  });
});

describe('values of a row that cannot be stored', () => {
  const good = { wallet_address: 'w', email: 'a@b.c' };
  it.each([
    ['an email with U+0000', { email: 'a\0' }, 'email contains U+0000 or a lone surrogate'],
    [
      'an external id with a lone surrogate',
      { external_id: '\ud800' },
      'external_id contains U+0000 or a lone surrogate',
    ],
    ['a name with U+0000', { name: '\0' }, 'name contains U+0000 or a lone surrogate'],
    ['a surname with a lone surrogate', { surname: 'x\udc00' }, 'surname contains U+0000 or a lone surrogate'],
    ['a wallet of 129 characters', { wallet_address: 'w'.repeat(129) }, 'wallet_address has more than 128 characters'],
    ['an email of 513 characters', { email: 'e'.repeat(513) }, 'email has more than 512 characters'],
    ['an external id of 513 characters', { external_id: 'é'.repeat(513) }, 'external_id has more than 512 characters'],
    ['nothing', {}, undefined],
    ['a wallet of 128 characters beyond the basic plane', { wallet_address: '😀'.repeat(128) }, undefined],
    ['a long name', { name: '😀'.repeat(1_024), surname: 'n'.repeat(1_024) }, undefined],
    ['a name of 1,025 characters', { name: 'n'.repeat(1_025) }, 'name has more than 1024 characters'],
    ['a surname of 1,025 characters', { surname: '😀'.repeat(1_025) }, 'surname has more than 1024 characters'],
  ])('D7-02 D2-22: %s', (_name, more, fault) => {
    expect(faultOf({ ...good, ...more })).toBe(fault);
  });

  it('D7-02: lengths count characters, not UTF-16 units', () => {
    expect([
      isLonger('😀😀', 2),
      isLonger('😀😀😀', 2),
      isLonger('ab', 2),
      isLonger('abc', 2),
      isLonger('', 0),
    ]).toEqual([false, true, false, true, false]);
  });
});
