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

type Change = Claims | ((forge: Forge) => Claims);

/** A state that differs from a good token in its claims. */
function claiming(name: string, worth: Worth, change: Change, callers?: readonly Caller[]): TokenState {
  return {
    name,
    worth,
    ...(callers && { callers }),
    forge(forge, caller, scope) {
      const changes = typeof change === 'function' ? change(forge) : change;
      return signed(forge.p, forge.claims(caller, { scope, ...changes }), { secret: forge.secret(caller) });
    },
  };
}

/** A state that differs from a good token in its claims, by which it has ended. */
function ended(
  told: TokenState['told'],
  ...[name, change, callers]: [string, Change, (readonly Caller[])?]
): TokenState {
  return { ...claiming(name, 'bad', change, callers), ...(told && { told }) };
}

/** A state whose signature does not hold. */
function forged(name: string, write: (good: string, forge: Forge, caller: Caller) => string): TokenState {
  return { ...written(name, 'bad', write), isForged: true };
}

/** A state that differs from a good token in how it is signed or written. */
function written(
  name: string,
  worth: Worth,
  write: (good: string, forge: Forge, caller: Caller) => string,
): TokenState {
  return {
    name,
    worth,
    forge(forge, caller, scope) {
      const good = signed(forge.p, forge.claims(caller, { scope }), { secret: forge.secret(caller) });
      return write(good, forge, caller);
    },
  };
}

function signedBy(secret: string, token: string, forge: Forge): string {
  return signed(forge.p, payloadOf(token), { secret });
}

function withKey(kid: string) {
  return (token: string, forge: Forge, caller: Caller) =>
    signed(forge.p, payloadOf(token), { secret: forge.secret(caller), header: { kid } });
}

function by(other: Caller) {
  return (token: string, forge: Forge) => signedBy(forge.secret(other), token, forge);
}

const seconds = (forge: Forge, more: number) => Math.floor(forge.p.service.context.nowMs() / 1000) + more;
const USER: readonly Caller[] = ['login', 'api'];
const OTHERS: readonly Caller[] = ['legacy', 'discover'];

/** The states of a token that is shown, by decisions 2 and 3. */
export const STATES: readonly TokenState[] = [
  claiming('good', 'good', {}),
  claiming('valid since now', 'good', (forge) => ({ nbf: seconds(forge, 0) })),
  claiming('without exp', 'good', { exp: undefined }),
  claiming('of the same node in capitals', 'good', ({ p }) => ({ aud: p.demo.node_id.toUpperCase() })),
  claiming('of a known client', 'good', ({ p }) => ({ client_id: p.demo.client.client_id }), OTHERS),
  claiming('of a client that nobody knows', 'good', { client_id: randomUUID() }, OTHERS),
  written('of the secret before', 'good', (token, forge, caller) =>
    signedBy(forge.secret(caller, 'previous'), token, forge),
  ),
  {
    name: 'without its permission',
    worth: 'powerless',
    forge: (forge, caller) =>
      signed(forge.p, forge.claims(caller, { scope: 'nothing:read' }), { secret: forge.secret(caller) }),
  },
  {
    name: 'without a scope',
    worth: 'powerless',
    forge: (forge, caller) =>
      signed(forge.p, forge.claims(caller, { scope: undefined }), { secret: forge.secret(caller) }),
  },
  claiming('for a forgotten password', 'forgot_password', { token_use: 'forgot_password' }),
  ended('expired', 'expired', (forge) => ({ exp: seconds(forge, -1) })),
  ended('expired', 'expiring now', (forge) => ({ exp: seconds(forge, 0) })),
  claiming('not valid yet', 'bad', (forge) => ({ nbf: seconds(forge, 300) })),
  ended('expired', 'for a refresh, expired', (forge) => ({ token_use: 'refresh', exp: seconds(forge, -1) })),
  ended('refresh', 'for a refresh', { token_use: 'refresh' }),
  claiming('for nobody knows what', 'bad', { token_use: 'admin' }),
  claiming('that does not say what for', 'bad', { token_use: undefined }, USER),
  claiming('without sub', 'bad', { sub: undefined }),
  claiming('without aud', 'bad', { aud: undefined }),
  claiming('of a node that nobody knows', 'bad', { aud: randomUUID() }),
  claiming('of two nodes', 'bad', ({ p }) => ({ aud: [p.demo.node_id, p.demo.other_node.node_id] })),
  claiming("of another node than its client's", 'bad', ({ p }) => ({
    aud: p.demo.other_node.node_id,
    client_id: p.demo.client.client_id,
  })),
  ended('revoked', 'of a disabled client', (forge) => ({ client_id: forge.disabledClient })),
  claiming('of a client that is gone', 'bad', { client_id: randomUUID() }, USER),
  ended('revoked', 'of a session that is gone', { sid: randomUUID() }, ['login']),
  ended('revoked', 'without a session', { sid: undefined }, ['login']),
  {
    name: 'revoked',
    worth: 'bad',
    told: 'revoked',
    callers: USER,
    forge: ({ revoked }, caller) => (caller === 'login' ? revoked.login : revoked.api),
  },
  {
    ...written('of the discover secret', 'good', by('discover')),
    callers: ['login', 'api', 'legacy'],
    becomes: 'discover',
  },
  {
    ...written('of the legacy secret', 'good', by('legacy')),
    callers: ['login', 'api', 'discover'],
    becomes: 'legacy',
  },
  { ...written('of the user secret', 'bad', by('api')), callers: OTHERS, becomes: 'api' },
  forged('of the secret of nobody', (token, forge) => signedBy('x'.repeat(40), token, forge)),
  { ...forged('with an unknown key id', withKey('discover.0000000000000000')), callers: USER },
  { ...written('with an unknown key id', 'good', withKey('discover.0000000000000000')), callers: OTHERS },
  claiming('of one node in an array', 'bad', ({ p }) => ({ aud: [p.demo.node_id] }), USER),
  claiming('of one node in an array', 'good', ({ p }) => ({ aud: [p.demo.node_id] }), OTHERS),
  claiming('valid in half a minute', 'bad', (forge) => ({ nbf: seconds(forge, 30) }), USER),
  claiming('valid in half a minute', 'good', (forge) => ({ nbf: seconds(forge, 30) }), OTHERS),
  forged('with alg none', (token) => `${encoded({ alg: 'none' })}.${token.split('.')[1]}.`),
  forged('with alg HS512', (token, forge, caller) =>
    signed(forge.p, payloadOf(token), { secret: forge.secret(caller), header: { alg: 'HS512' }, hash: 'sha512' }),
  ),
  forged('cut short', (token) => token.slice(0, -1)),
  forged('without its signature', (token) => token.replace(/[^.]+$/, '')),
  forged('with padding', (token) => `${token}=`),
  forged('with claims of another', (token, forge, caller) => {
    const [head, , signature] = token.split('.');
    return `${head}.${encoded(forge.claims(caller, { sub: 'another' }))}.${signature}`;
  }),
];
