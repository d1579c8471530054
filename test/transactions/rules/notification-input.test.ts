import { describe, expect, it } from 'vitest';
import { PoisonError } from '../../../src/events/bus/event-bus.ts';
import { notificationInput, parseDelivery } from '../../../src/features/transactions/notification.input.ts';
import { parseJson } from '../../../src/lib/json.ts';
import { issuesOf } from '../../../src/platform/errors.ts';

const REQUIRED = {
  id: 'tx-1',
  type: 1,
  status: 3,
  created_at: '2026-11-21T10:30:00Z',
  updated_at: '2026-11-21T11:30:00,25+01:00',
};

/** The notification of a body, or all that is wrong with it. */
function parsed(body: string) {
  const value = parseJson(body);
  const { success, data, error } = notificationInput.safeParse(value);
  return success ? { notification: data } : { issues: issuesOf(error, value) };
}

function parse(change: Record<string, unknown>) {
  return parsed(JSON.stringify({ ...REQUIRED, ...change }));
}

function parseWith(member: string, literal: string) {
  const body = JSON.stringify({ ...REQUIRED, [member]: 'HERE' }).replace('"HERE"', literal);
  return parsed(body);
}

describe('accepted notifications', () => {
  it('2.7-04, 2.7-05, 2.7-06, 2.7-07: optional members may be omitted, and times are kept as received', () => {
    expect(parse({})).toEqual({
      notification: {
        id: 'tx-1',
        type: 1,
        status: 3,
        transactionHash: '',
        contractAddress: '',
        gasUsed: 0n,
        error: null,
        createdAt: { text: '2026-11-21T10:30:00Z', seconds: 1795257000n, nanos: 0 },
        updatedAt: { text: '2026-11-21T11:30:00,25+01:00', seconds: 1795257000n, nanos: 250_000_000 },
      },
    });
  });

  it('D2-18: a null optional member counts as absent', () => {
    expect(parse({ transaction_hash: null, contract_address: null, gas_used: null, error: null })).toEqual(parse({}));
  });

  it('2.7-08: unknown members are ignored, whatever they contain', () => {
    expect(parse({ extra: 'a\0\uD834', id2: null, other: { deep: [1] } })).toEqual(parse({}));
    expect(parseWith('extra', '{"__proto__": 123456789012345678901, "a": 1e999}')).toEqual(parse({}));
    expect(parseWith('__proto__', '{"id": 3}')).toEqual(parse({}));
  });

  it.each([
    ['0', 0n],
    ['21000', 21_000n],
    ['9007199254740993', 9_007_199_254_740_993n],
    ['18446744073709551615', 18_446_744_073_709_551_615n],
    ['18446744073709551615.0', 18_446_744_073_709_551_615n],
    ['1e3', 1_000n],
  ])('2.7-05: gas_used %s is read exactly', (literal, gasUsed) => {
    expect(parseWith('gas_used', literal)).toMatchObject({ notification: { gasUsed } });
  });

  it.each(['1', '1.0', '10e-1', '100E-2'])('2.7-02, 2.7-03: type and status may be written %s', (literal) => {
    expect(parseWith('type', literal)).toMatchObject({ notification: { type: 1 } });
    expect(parseWith('status', literal)).toMatchObject({ notification: { status: 1 } });
  });

  it.each([-2147483648, -1, 0, 9999, 2147483647])('D6-01: the type code %i is accepted', (type) => {
    expect(parse({ type })).toMatchObject({ notification: { type } });
  });

  it.each([1, 2, 3, 4, 5])('3-01: status %i is accepted, with and without an error', (status) => {
    expect(parse({ status, error: 'reverted' })).toMatchObject({
      notification: { status, error: 'reverted' },
    });
    expect(parse({ status, error: '' })).toMatchObject({ notification: { status, error: '' } });
  });

  it.each(['a', 'x'.repeat(128), '𝄞'.repeat(128), ' ', '../..%2f?#'])('2.7-01: the id %j is accepted', (id) => {
    expect(parse({ id })).toMatchObject({ notification: { id } });
  });

  it('a byte order mark at the start of the body is ignored', () => {
    const body = Buffer.from(`\u{FEFF}${JSON.stringify(REQUIRED)}`);
    expect(parseDelivery({ body, correlationId: 'c' })).toMatchObject({ body, correlationId: 'c', ...parse({}) });
  });
});

describe('rejected notifications', () => {
  const integer = (range: string) => `must be an integer from ${range}`;
  const type = integer('-2147483648 to 2147483647');
  const gas = integer('0 to 18446744073709551615');
  const status = 'must be 1 (Started), 2 (InProgress), 3 (Done), 4 (Error) or 5 (PendingReceipt)';
  const instant = 'must be an ISO 8601 date and time such as 2026-11-21T10:30:00Z';
  const characters = 'must not contain U+0000 or a lone surrogate';

  it.each<[string, string, string]>([
    ['id', '""', 'must have 1 to 128 characters'],
    ['id', `"${'x'.repeat(129)}"`, 'must have 1 to 128 characters'],
    ['id', '1', 'must be a string'],
    ['id', '"a\\u0000"', characters],
    ['id', '"\\ud834"', characters],
    ['type', '1.5', type],
    ['type', '"1"', type],
    ['type', 'true', type],
    ['type', '2147483648', type],
    ['type', '-2147483649', type],
    ['type', '1e400', type],
    ['status', '0', status],
    ['status', '6', status],
    ['status', '2.5', status],
    ['status', '"3"', status],
    ['status', '[3]', status],
    ['transaction_hash', '1', 'must be a string'],
    ['transaction_hash', '"\\u0000"', characters],
    ['contract_address', '{}', 'must be a string'],
    ['contract_address', '"\\udd1e"', characters],
    ['gas_used', '-1', gas],
    ['gas_used', '18446744073709551616', gas],
    ['gas_used', '1.5', gas],
    ['gas_used', '"21000"', gas],
    ['gas_used', '1e1000000000', gas],
    ['error', '{"code": 1}', 'must be a string'],
    ['error', '"\\u0000"', characters],
    ['created_at', '1795257000', instant],
    ['created_at', '"2026-11-21"', instant],
    ['updated_at', '"2026-02-29T10:30:00Z"', instant],
    ['updated_at', '""', instant],
  ])('4.5-02, D2-13: %s %s is rejected: %s', (path, literal, message) => {
    expect(parseWith(path, literal)).toEqual({ issues: [{ path, message }] });
  });

  it.each(['id', 'type', 'status', 'created_at', 'updated_at'])(
    '2.7-01, 2.7-02, 2.7-03, 2.7-07: %s is required, and null counts as absent',
    (path) => {
      for (const absent of [null, undefined]) {
        const message = expect.stringMatching(/^is required: /);
        expect(parse({ [path]: absent })).toEqual({ issues: [{ path, message }] });
      }
    },
  );

  it('D2-13: all errors are reported at once, in the order of the specification', () => {
    const { issues } = parse({ error: 1, gas_used: -1, id: '', updated_at: 'now' });
    expect(issues?.map(({ path }) => path)).toEqual(['id', 'gas_used', 'error', 'updated_at']);
  });

  it.each<[string, Uint8Array | string, string]>([
    ['empty', '', 'must be JSON, but is empty'],
    ['truncated', '{"id":', 'must be JSON, but is malformed at line 1 column 7'],
    ['not JSON', '{"secret-in-body",}', 'must be JSON, but is malformed at line 1 column 18'],
    ['not UTF-8', Buffer.from([0x22, 0xff, 0x22]), 'must be in UTF-8'],
    ['an array', '[]', 'must be an object'],
    ['null', 'null', 'must be an object'],
    ['a text', '"id"', 'must be an object'],
  ])('4.5-02: a body that is %s is rejected as a whole', (_, body, message) => {
    expect(() => parseDelivery({ body: Buffer.from(body), correlationId: 'c' })).toThrow(
      new PoisonError(`not a notification: ${message}`),
    );
  });
});
