import { randomUUID } from 'node:crypto';
import type { Answer, Portcullis } from '../harness.ts';

type Members = Record<string, unknown>;

/** A JSON literal that `JSON.stringify` writes as it is: more digits than a double has. */
export function literal(text: string): unknown {
  return (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(text);
}

/** A good leaf of a condition tree. */
export function leaf(changes: Members = {}): Members {
  return { field: 'balance.available', op: 'lt', value: 100, network_currency_id: randomUUID(), ...changes };
}

/** A good automatic transfer; an undefined member is left out. */
export function autoTransfer(changes: Members = {}, own: Members = {}): Members {
  return {
    name: 'Top up',
    type: 'auto_transfer',
    network_id: randomUUID(),
    network_currency_id: randomUUID(),
    auto_transfer_rule: { type: 'auto', rule_logic: leaf(), amount: 50, target_wallet_id: randomUUID(), ...own },
    ...changes,
  };
}

/** A good limit; an undefined member is left out. */
export function limit(changes: Members = {}, own: Members = {}): Members {
  return {
    name: 'Daily limit',
    type: 'permissionless_transfer_limit',
    network_id: randomUUID(),
    network_currency_id: randomUUID(),
    permissionless_transfer_limit_rule: { max_amount: 1_000, time_period: 'day', time_period_value: 1, ...own },
    ...changes,
  };
}

/** A condition tree of so many levels, a leaf being one. */
export function nested(levels: number): Members {
  return levels <= 1 ? leaf() : { not: nested(levels - 1) };
}

/** Calls the routes of wallet rules. */
export function rulesOf(p: Portcullis, token: string) {
  const headers = { 'x-target-server': 'wallet-rules' };
  const create = (json: unknown, walletId: string = p.demo.wallet_id): Promise<Answer> =>
    p.call('POST', `/v1/wallets/${walletId}/rules`, { token, headers, json });
  const replace = (id: string, json: unknown, more: { walletId?: string; ifMatch?: string } = {}): Promise<Answer> =>
    p.call('PUT', `/v1/wallets/${more.walletId ?? p.demo.wallet_id}/rules/${id}`, {
      token,
      headers: { ...headers, ...(more.ifMatch === undefined ? {} : { 'if-match': more.ifMatch }) },
      json,
    });
  return {
    create,
    replace,
    /** Creates a rule and gives its id. */
    created: async (json: unknown = limit()): Promise<string> => {
      const { status, headers: answered, text } = await create(json);
      if (status !== 201) throw new Error(`not created: ${status} ${text}`);
      return answered.get('location')?.split('/').at(-1) ?? '';
    },
  };
}
