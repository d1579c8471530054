import { randomUUID } from 'node:crypto';
import type { Portcullis } from '../harness.ts';
import { addClient } from '../oauth/clients.ts';
import { apiClaims, encoded, signed } from '../oauth/jwt.ts';

/** Who a token was issued to; `login` and `api` are the two kinds of the user class. */
export const CALLERS = ['login', 'api', 'legacy', 'discover'] as const;
export type Caller = (typeof CALLERS)[number];

/** What a token is worth: everything; no permission; only a new password; nothing. */
export type Worth = 'good' | 'powerless' | 'forgot_password' | 'bad';

type Claims = Record<string, unknown>;

/** What tokens are made of. */
export interface Forge {
  p: Portcullis;
  secret(caller: Caller, which?: 'current' | 'previous'): string;
  claims(caller: Caller, changes?: Claims): Claims;
  disabledClient: string;
  /** Tokens that were good until they were revoked. */
  revoked: { login: string; api: string };
}

export interface TokenState {
  name: string;
  worth: Worth;
  callers?: readonly Caller[];
  /** Whose it is by its secret, which alone decides. */
  becomes?: Caller;
  /** What its holder is told where its class would do: that it has ended, or is a refresh token. */
  told?: 'expired' | 'revoked' | 'refresh';
  /** Its signature does not hold: nothing is told. */
  isForged?: true;
  /** The token, with this scope where it has one. */
  forge(forge: Forge, caller: Caller, scope: string): string;
}

const PREVIOUS = { user: 'p', discover: 'q', legacy: 'r' };

/** The variables of an instance whose secrets have been rotated. */
export const ROTATED = Object.fromEntries(
  Object.entries(PREVIOUS).map(([name, letter]) => [`JWT_SECRET_${name.toUpperCase()}_PREVIOUS`, letter.repeat(40)]),
);

/** Makes ready what tokens are forged from: a session, two revoked tokens, a client that is disabled. */
export async function tokenForge(p: Portcullis): Promise<Forge> {
  const login = payloadOf(await p.loginToken());
  const revoked = { login: await p.loginToken(), api: await p.clientToken() };
  for (const token of Object.values(revoked)) {
    await p.call('POST', '/v2/oauth/revoke', { json: { ...p.demo.client, token } });
  }
  const { client_id: disabledClient } = await addClient(p, { status: 'disabled' });
  const { jwt } = p.service.context.secrets;
  return {
    p,
    revoked,
    disabledClient,
    secret: (caller, which = 'current') => jwt[caller === 'login' || caller === 'api' ? 'user' : caller][which] ?? '',
    claims(caller, changes = {}) {
      if (caller === 'api') return apiClaims(p, changes);
      if (caller === 'login') return apiClaims(p, { sub: login.sub, sid: login.sid, token_use: 'login', ...changes });
      return apiClaims(p, { sub: caller, client_id: undefined, jti: undefined, token_use: undefined, ...changes });
    },
  };
}

function payloadOf(token: string): Claims {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
}

/** The same signature by another last letter, whose lowest bits mean nothing. */
function respelled(token: string): string {
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  return token.slice(0, -1) + letters[letters.indexOf(token.slice(-1)) + 1];
}

type Change = Claims | ((forge: Forge) => Claims);
type Write = (good: string, forge: Forge, caller: Caller) => string;

/** A state that differs from a good token in its claims. */
function claiming(name: string, worth: Worth, change: Change, more: Partial<TokenState> = {}): TokenState {
  return {
    ...{ name, worth, ...more },
    forge(forge, caller, scope) {
      const changes = typeof change === 'function' ? change(forge) : change;
      return signed(forge.p, forge.claims(caller, { scope, ...changes }), { secret: forge.secret(caller) });
    },
  };
}

/** A state that differs from a good token in how it is signed or written. */
function written(name: string, worth: Worth, write: Write, more: Partial<TokenState> = {}): TokenState {
  return {
    ...{ name, worth, ...more },
    forge: (forge, caller, scope) =>
      write(signed(forge.p, forge.claims(caller, { scope }), { secret: forge.secret(caller) }), forge, caller),
  };
}

const bySecret = (secretOf: (forge: Forge, caller: Caller) => string): Write =>
  function sign(token, forge, caller) {
    return signed(forge.p, payloadOf(token), { secret: secretOf(forge, caller) });
  };
const by = (other: Caller) => bySecret((forge) => forge.secret(other));
const seconds = (forge: Forge, more: number) => Math.floor(forge.p.service.context.nowMs() / 1000) + more;
const USER: readonly Caller[] = ['login', 'api'];
const OTHERS: readonly Caller[] = ['legacy', 'discover'];
const LOGIN: Partial<TokenState> = { callers: ['login'], told: 'revoked' };
const FORGED = { isForged: true } as const;

/**
 * The states of a token that is shown, by decisions 2 and 3: one for each way in which an endpoint judges it. Which claims and
 * signatures hold is proven in test/oauth/hostile-token.test.ts and foreign-tokens.test.ts.
 */
export const STATES: readonly TokenState[] = [
  claiming('good', 'good', {}),
  claiming('without exp', 'good', { exp: undefined }),
  written(
    'signed with the previous secret',
    'good',
    bySecret((forge, caller) => forge.secret(caller, 'previous')),
  ),
  claiming('without the permission', 'powerless', { scope: 'nothing:read' }),
  claiming('without a scope', 'powerless', { scope: undefined }),
  claiming('for a password reset', 'forgot_password', { token_use: 'forgot_password' }),
  claiming('expired', 'bad', (forge) => ({ exp: seconds(forge, -1) }), { told: 'expired' }),
  claiming('not valid yet', 'bad', (forge) => ({ nbf: seconds(forge, 300) })),
  claiming('for a refresh', 'bad', { token_use: 'refresh' }, { told: 'refresh' }),
  claiming('without sub', 'bad', { sub: undefined }),
  claiming('of an unknown node', 'bad', { aud: randomUUID() }),
  claiming('of a disabled client', 'bad', (forge) => ({ client_id: forge.disabledClient }), { told: 'revoked' }),
  claiming('of a deleted session', 'bad', { sid: randomUUID() }, LOGIN),
  claiming('without a session', 'bad', { sid: undefined }, LOGIN),
  written('revoked', 'bad', (_good, { revoked }, caller) => (caller === 'login' ? revoked.login : revoked.api), {
    ...{ told: 'revoked', callers: USER },
  }),
  written('signed with the discover secret', 'good', by('discover'), {
    ...{ callers: ['login', 'api', 'legacy'], becomes: 'discover' },
  }),
  written('signed with the legacy secret', 'good', by('legacy'), {
    ...{ callers: ['login', 'api', 'discover'], becomes: 'legacy' },
  }),
  written('signed with the user secret', 'bad', by('api'), { callers: OTHERS, becomes: 'api' }),
  written(
    'signed with an unknown secret',
    'bad',
    bySecret(() => 'x'.repeat(40)),
    FORGED,
  ),
  written('with alg none', 'bad', (token) => `${encoded({ alg: 'none' })}.${token.split('.')[1]}.`, FORGED),
  claiming('for a node other than that of its client', 'bad', (forge) => ({ aud: forge.p.demo.other_node.node_id }), {
    callers: USER,
  }),
  written('with a respelled signature', 'bad', respelled, FORGED),
  written('with a padded signature', 'bad', (token) => `${token}=`, FORGED),
  written('cut short', 'bad', (token) => token.slice(0, -1), FORGED),
];
