import { describe, expect, it } from 'vitest';
import { versionsOf } from '../../src/features/wallet-rules/wallet-rules.rest.ts';

describe('If-Match', () => {
  it.each<[string | undefined, number[] | undefined]>([
    [undefined, undefined],
    ['*', undefined],
    [' * ', undefined],
    ['"1"', [1]],
    [',,"1",', [1]],
    ['"a,b" , "1"', [1]],
    ['"01", "1.0", "99999999999999999999", "4294967297"', []],
    ['"1","2" , "1"', [1, 2]],
    ['W/"1", "3"', [3]],
    ['"", "x", "0", "2147483647", "2147483648"', [2_147_483_647]],
    ['', []],
    [', ,', []],
    ['"\u00e9"', []],
  ])('D5-05: %s contains the versions %j', (header, versions) => {
    expect(versionsOf(header)).toEqual(versions);
  });

  it.each(['1', '"1', '1"', '"1""2"', '"1" "2"', '"1";', 'W/1', 'w/"1"', '*, "1"', '"1", *', '"a b"', '"\u0100"'])(
    'D5-05: %s is malformed',
    (header) => {
      expect(() => versionsOf(header)).toThrow('invalid_request');
    },
  );

  it('D5-05 D6-26: a long list with blanks is read in linear time', () => {
    for (const header of [`"1",${' '.repeat(150_000)}x`, `${' ,'.repeat(75_000)}x`])
      expect(() => versionsOf(header)).toThrow('invalid_request');
  }, 2_000);
});
