import { randomUUID } from 'node:crypto';
import type { Answer, Portcullis } from '../harness.ts';
import { rows } from '../oauth/clients.ts';

export const SINGLE = '/v2/users/migrate/with-wallet';
export const BULK = '/v2/users/migrate/with-wallet/bulk';

/** A user nobody has migrated yet. */
export function newUser(): { wallet_address: string; email: string };
export function newUser<More extends object>(more: More): { wallet_address: string; email: string } & More;
export function newUser(more: object = {}) {
  const id = randomUUID();
  return { wallet_address: `0x${id}`, email: `${id}@example.com`, ...more };
}

/** A caller of both routes, with a token of the demo client unless told otherwise. */
export async function migrationsOf(p: Portcullis, token?: string) {
  const bearer = token ?? (await p.clientToken());
  const call = (path: string, json: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
    p.call('POST', path, { token: bearer, json, headers });
  return {
    token: bearer,
    one: (user: unknown, headers?: Record<string, string>) => call(SINGLE, user, headers),
    many: (users: unknown, headers?: Record<string, string>) => call(BULK, { users }, headers),
    raw: (path: string, body: string | Buffer, headers: Record<string, string> = {}) =>
      p.call('POST', path, { token: bearer, body, headers: { 'content-type': 'application/json', ...headers } }),
  };
}

/** Events of a user: those that wait and those that the embedded bus has. */
export async function eventsOf(p: Portcullis, userId: string): Promise<Record<string, unknown>[]> {
  // In this order none is missed that is relayed meanwhile.
  const waiting = await rows(p).run((k) => k.selectFrom('outbox').select('payload').where('key', '=', userId));
  const relayed = await rows(p).run((k) => k.selectFrom('bus_messages').select('value').where('key', '=', userId));
  const texts = [
    ...waiting.map(({ payload }) => payload),
    ...relayed.map(({ value }) => Buffer.from(value ?? '').toString()),
  ];
  return [...new Set(texts)].map((text) => JSON.parse(text));
}
