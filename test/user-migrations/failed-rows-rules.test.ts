import { expect, it } from 'vitest';
import {
  endRowOf,
  FAILED_ROW_BYTES,
  failedBytesOf,
  isTooMuch,
} from '../../src/features/user-migrations/user-migrations.service.ts';

const FAILED = {
  ...{ index: 1, email: null, external_id: null, user_id: null, noted_users: null },
  ...{ status: 'failed' as const, reason: null },
};

it.each([
  ['no rows', [], 0],
  ['a failed row without texts', [FAILED], FAILED_ROW_BYTES],
  ['its reason', [{ ...FAILED, reason: 'line 1: has 1 field, not 2' }], FAILED_ROW_BYTES + 26],
  ['what identified it', [{ ...FAILED, email: 'a@x.y', external_id: '42' }], FAILED_ROW_BYTES + 7],
  ['bytes, not characters', [{ ...FAILED, email: 'é\ufffd😀' }], FAILED_ROW_BYTES + 9],
  ['several', [FAILED, { ...FAILED, reason: 'why' }], 2 * FAILED_ROW_BYTES + 3],
  [
    'a row without an identifier',
    [{ ...FAILED, status: 'skipped' as const, reason: 'missing_email_and_external_id' }],
    FAILED_ROW_BYTES + 29,
  ],
  [
    'no other row',
    [
      { ...FAILED, status: 'created' as const, email: 'a@x.y' },
      { ...FAILED, status: 'skipped' as const, reason: 'duplicate_email' },
    ],
    0,
  ],
])('the size of failed rows counts what is stored: %s', (_name, records, bytes) => {
  expect(failedBytesOf(records)).toBe(bytes);
});

it.each([
  [1_000_000, 0, false],
  [1_000_001, 0, true],
  [1_000_000, 26_000, false],
  [1_000_001, 100_000, true],
  [1_000_010, 100_001, false],
  [1_000_011, 100_001, true],
  [10_737_418_240, 1_073_741_824, false],
  [10_737_418_241, 1_073_741_824, true],
])('whether %i bytes of failed rows for %i bytes read exceed the limit: %s', (failed, read, expected) => {
  expect(isTooMuch(failed, read)).toBe(expected);
});

it.each([
  [24, null, 'has a quote inside an unquoted field: enclose the field in quotes, and double each quote in it'],
  [24, 'u'.repeat(21), 'wallet_address must not be blank'],
  [28, '\ufffd'.repeat(25), 'wallet_address must not contain U+0000 or a lone surrogate'],
])(
  'a file in which each line of %i bytes fails for the longest reason stays within the limit, at any size',
  (bytes, email, fault) => {
    const rows = Math.floor(1_073_741_824 / bytes);
    const record = { ...FAILED, email, reason: `line ${rows}: ${fault}` };
    expect(isTooMuch(rows * failedBytesOf([record]), rows * bytes)).toBe(false);
  },
);

it('the row at which a migration stops has its number and the reason', () => {
  expect(endRowOf(7)).toEqual({
    ...FAILED,
    index: 7,
    reason:
      'line 7: the migration stopped here: its failed rows and rows without an identifier would take more than 10 times the bytes read of the file',
  });
});
