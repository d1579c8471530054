import { expect, it } from 'vitest';
import { readUnparsed } from '../../src/gateway/exchange/unparsed.ts';

function unparsed(field: string) {
  const rawPacket = Buffer.from(`GET / HTTP/1.1\r\nHost: x\r\nx-correlation-id:${field}\r\n\r\n`, 'latin1');
  return readUnparsed(Object.assign(new Error('invalid'), { code: 'HPE_INVALID_HEADER_TOKEN', rawPacket }), true);
}

it.each([
  [' \t abc \t', 'abc'],
  ['a  b', 'a  b'],
])('D1-05: the correlation id of a malformed request is read without the blanks around it: %j', (field, expected) => {
  expect(unparsed(field).correlationId).toBe(expected);
});

it('D6-26: blanks in a malformed request are read in linear time', () => {
  const blanks = ' '.repeat(16_000);
  for (const field of [`${blanks}\x01`, `a${blanks}b`, ' a'.repeat(8_000)])
    expect(unparsed(field).correlationId).toMatch(/^[0-9a-f-]{36}$/);
}, 2_000);
