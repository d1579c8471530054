import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { REQUESTS_PER_SECOND } from './peer.ts';

/** Judges a bearer token (HS256, not yet expired) and counts its client's requests of the second: the least that can be. */
export function judge(signingSecret: string): (req: IncomingMessage) => 200 | 401 | 429 {
  const counts = new Map<string, number>();
  let second = 0;

  return ({ headers }) => {
    const [, head, payload, signature] = /^Bearer ([^.]+)\.([^.]+)\.([^.]+)$/.exec(headers.authorization ?? '') ?? [];
    const expected = createHmac('sha256', signingSecret).update(`${head}.${payload}`).digest();
    const given = Buffer.from(signature ?? '', 'base64url');
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return 401;
    const claims = JSON.parse(Buffer.from(payload ?? '', 'base64url').toString());
    const now = Math.floor(Date.now() / 1000);
    if (typeof claims.exp !== 'number' || claims.exp <= now) return 401;
    if (now !== second) counts.clear();
    second = now;
    const count = (counts.get(claims.client_id) ?? 0) + 1;
    counts.set(claims.client_id, count);
    return count > REQUESTS_PER_SECOND ? 429 : 200;
  };
}
