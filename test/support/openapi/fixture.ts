import { randomUUID } from 'node:crypto';
import { fakeNode } from '../gas-fee/node.ts';
import { type Portcullis, startPortcullis } from '../harness.ts';
import { addClient } from '../oauth/clients.ts';
import { basic } from '../webhook/fixture.ts';

export type Options = NonNullable<Parameters<Portcullis['call']>[2]>;

/** An instance with one of everything that calls need. */
export type OpenApiFixture = Awaited<ReturnType<typeof openApiFixture>>;

export async function openApiFixture() {
  const node = await fakeNode();
  const nowhere = 'http://127.0.0.1:1';
  const p = await startPortcullis({ env: { GAS_RPC_URLS: `${randomUUID()}=${node.url},${randomUUID()}=${nowhere}` } });
  const token = await p.clientToken();
  /** A call of a documented path; values stand in the place of its parameters. */
  const call = (method: string, path: string, values: Readonly<Record<string, string>> = {}, options: Options = {}) =>
    p.call(
      method,
      path.replaceAll(/\{(\w+)\}/g, (_match, name: string) => values[name] ?? 'x'),
      options,
    );
  const made = await call('POST', '/v1/wallets/{wallet_id}/rules', wallet(p), { token, json: limitRule(p) });
  return {
    p,
    /** Tokens: of a client with every permission, of one with none, of a supervisor. */
    token,
    poor: await p.clientToken(await addClient(p, { scopes: [] })),
    login: await p.loginToken(),
    /** A client with three requests an hour. */
    limited: await addClient(p, { requests_per_second: 100, requests_per_hour: 3, monthly_limit: 50 }),
    ruleId: made.headers.get('location')?.split('/').at(-1) ?? '',
    call,
    [Symbol.asyncDispose]: async () => {
      await p[Symbol.asyncDispose]();
      await node[Symbol.asyncDispose]();
    },
  };
}

/** A rule that can be stored. */
export function limitRule({ demo }: Portcullis, members: object = {}): object {
  return {
    name: 'Limit',
    type: 'permissionless_transfer_limit',
    network_id: demo.network_id,
    network_currency_id: demo.network_currency_id,
    permissionless_transfer_limit_rule: { max_amount: 5, time_period: 'day', time_period_value: 1 },
    ...members,
  };
}

/** A user that nobody has yet. */
export function user(members: object = {}): object {
  return { wallet_address: `0x${randomUUID()}`, external_id: randomUUID(), ...members };
}

/** The path parameters of the demo's wallet, and those of nothing. */
export function wallet({ demo }: Portcullis): { wallet_id: string } {
  return { wallet_id: demo.wallet_id };
}

export function nowhere() {
  return { wallet_id: randomUUID(), id: randomUUID(), network_id: randomUUID() };
}

/** A body as a form. */
export function form(members: Record<string, string>, headers: Record<string, string> = {}): Options {
  const type = { 'content-type': 'application/x-www-form-urlencoded' };
  return { body: new URLSearchParams(members).toString(), headers: { ...type, ...headers } };
}

/** A notification with the right credentials. */
export function hook({ webhook }: Portcullis, json: unknown): Options {
  return { json, headers: { authorization: basic(webhook.username, webhook.password) } };
}
