import type { oas31 } from 'zod-openapi';
import { type HeaderNames, RATE_HEADERS } from '../../access/limits/limits.rules.ts';
import { RATE_WINDOWS } from '../../platform/cache/counts.rules.ts';

const count = { type: 'integer', minimum: 0 } as const;
const seconds = { type: 'integer', minimum: 1 } as const;

/** The response headers by name. */
export const headers: Record<string, oas31.HeaderObject> = {
  'X-Correlation-ID': {
    description: 'The correlation id of the request: the one that was sent, otherwise a UUID version 7.',
    required: true,
    schema: { type: 'string', maxLength: 1024 },
    example: '0193501f-2c1f-7c0a-9c4e-5b1f3a0d7e11',
  },
  'Retry-After': { description: 'Seconds to wait before the next attempt.', required: true, schema: seconds },
  ETag: {
    description: 'An entity tag: the version of a rule, or the digest of a document.',
    required: true,
    schema: { type: 'string' },
    example: '"1"',
  },
  Location: {
    description: 'The path of the rule.',
    required: true,
    schema: { type: 'string', format: 'uri-reference' },
  },
  Deprecation: {
    description: 'When the path became deprecated (RFC 9745).',
    schema: { type: 'string', pattern: '^@[0-9]+$' },
    example: '@1793491200',
  },
  Sunset: {
    description: 'When the path stops working (RFC 8594).',
    schema: { type: 'string' },
    example: 'Mon, 01 Nov 2027 00:00:00 GMT',
  },
  Link: {
    description: 'The path that replaces this one.',
    schema: { type: 'string' },
  },
  'Cache-Control': { description: 'Whether the response may be cached.', schema: { type: 'string' } },
  Allow: { description: 'The methods that the path supports.', schema: { type: 'string' } },
  'WWW-Authenticate': {
    description:
      'How to authenticate (RFC 9110 section 11.6.1), and why the token was rejected (RFC 6750 section 3.1). There is no `error` if the request had no token. `invalid_token` says whether a token with a valid signature has expired, was revoked or belongs to another class. `insufficient_scope` names the missing permissions.',
    schema: { type: 'string' },
    example: 'Bearer error="invalid_token", error_description="the token has expired"',
  },
  ...Object.fromEntries(RATE_HEADERS.flatMap(rateHeaders)),
  'X-MonthlyLimit-Limit': { description: "The client's quota of requests per calendar month (UTC).", schema: count },
  'X-MonthlyLimit-Remaining': { description: 'Requests that remain in this month.', schema: count },
  'X-MonthlyLimit-Reset': { description: 'Seconds until the next month.', schema: seconds },
};

function rateHeaders([limit, remaining, reset]: HeaderNames, index: number): [string, oas31.HeaderObject][] {
  const window = index === 0 ? 'the rate with the fewest requests left' : `the ${RATE_WINDOWS[index - 1]?.count}`;
  return [
    [limit, { description: `The maximum number of requests of the client: ${window}.`, schema: count }],
    [remaining, { description: `Requests that remain: ${window}.`, schema: count }],
    [reset, { description: `Seconds until the window restarts: ${window}.`, schema: seconds }],
  ];
}
