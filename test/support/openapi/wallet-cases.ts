import { randomUUID } from 'node:crypto';
import type { Tries, Values } from './cases.ts';
import { limitRule, nowhere, type OpenApiStand, type Options, wallet } from './stand.ts';

const key = { 'idempotency-key': randomUUID() };
const tooLong = { name: 'x'.repeat(1_100_000) };

/** A rule, with members of its own and headers. */
function rule(members: object = {}, headers: Record<string, string> = {}) {
  return ({ p, token }: OpenApiStand): Options => ({ token, json: limitRule(p, members), headers });
}

function noIds(): Values {
  return { wallet_id: 'x', id: 'x', network_id: 'x' };
}

function network({ p }: OpenApiStand): Values {
  return { ...wallet(p), network_id: p.demo.second_network_id };
}

/** Calls of the routes of wallets. */
export const walletCases: readonly Tries[] = [
  {
    method: 'POST',
    path: '/v1/wallets/{wallet_id}/rules',
    values: ({ p }) => wallet(p),
    tries: [
      ['a rule', 201, rule()],
      ['a rule under a key', 201, rule({}, key)],
      ['another under it', 409, rule({ name: 'Other' }, key)],
      ['an invalid rule', 400, rule({ type: 'x' })],
      ['an id that is none', 400, rule(), noIds],
      ['no token', 401],
      ['no permission', 403, ({ poor }) => ({ token: poor })],
      ['no such wallet', 404, rule(), nowhere],
      ['too long', 413, rule(tooLong)],
    ],
  },
  {
    method: 'PUT',
    path: '/v1/wallets/{wallet_id}/rules/{id}',
    values: ({ p, ruleId }) => ({ ...wallet(p), id: ruleId }),
    tries: [
      ['any version', 200, rule({}, { 'if-match': '*' })],
      ['a malformed If-Match', 400, rule({}, { 'if-match': '1' })],
      ['no token', 401],
      ['no permission', 403, ({ poor }) => ({ token: poor })],
      ['no such rule', 404, rule(), nowhere],
      ['another version', 412, rule({}, { 'if-match': '"999"' })],
      ['too long', 413, rule(tooLong)],
    ],
  },
  {
    method: 'POST',
    path: '/v1/wallets/{wallet_id}/networks/{network_id}',
    values: network,
    tries: [
      ['a network', 204, ({ token }) => ({ token })],
      [
        'of another chain',
        400,
        ({ token }) => ({ token }),
        ({ p }) => ({ ...wallet(p), network_id: p.demo.other_chain_network_id }),
      ],
      ['no token', 401],
      ['no permission', 403, ({ poor }) => ({ token: poor })],
      ['no such network', 404, ({ token }) => ({ token }), ({ p }) => ({ ...nowhere(), ...wallet(p) })],
    ],
  },
];
