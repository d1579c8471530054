import { PortcullisError } from '@portcullis/client';
import { signal } from '@preact/signals';
import type { ViewerQuery } from './generated/graphql.ts';
import { forget } from './remembered.ts';

export type Viewer = ViewerQuery['me'];

/** The credentials of a sign-in; without a username the client signs in for itself. */
export interface Credentials {
  clientId: string;
  clientSecret: string;
  username: string;
  password: string;
}

interface Tokens {
  access: string;
  /** In ms since 1970. */
  expiresAt: number;
  refresh: string | undefined;
}

/** The signed-in principal; undefined before sign-in and after the session ends. */
export const viewer = signal<Viewer | undefined>(undefined);
/** What the page of the sign-in has to say: why a session has ended. */
export const notice = signal('');

/** The greatest age of a token, in ms before its end, at which it is still sent. */
const SPARE_MS = 30_000;

// Nothing of this is stored: a reload signs out.
let client: Omit<Credentials, 'password'> | undefined;
let tokens: Tokens | undefined;
let renewing: Promise<string> | undefined;
/** Whose session the last one was. */
let last = '';

/** Returns the address of a path of the API, which the same server serves. */
export function addressOf(path: string): string {
  return new URL(`..${path}`, document.baseURI).href;
}

/** A session that has ended: it was revoked, or has expired. */
export class Ended extends Error {}

/**
 * Takes the first tokens.
 * @throws Error that says what to change, for credentials that are refused.
 */
export async function signIn({ clientId, clientSecret, username, password }: Credentials): Promise<void> {
  const given = { clientId: clientId.trim(), clientSecret: clientSecret.trim(), username };
  tokens = await take(given, username === '' ? { grant_type: 'client_credentials' } : { grant_type: 'password', username, password });
  client = given;
  notice.value = '';
}

/** Starts a session; another principal than before finds no data of the earlier one. */
export function letIn(me: Viewer): void {
  const who = JSON.stringify([me.nodeId, me.clientId, me.subject]);
  if (who !== last) forget();
  last = who;
  viewer.value = me;
}

/** Ends the session here, and at the server as far as it can be reached. For a reason, the person has not chosen to. */
export function signOut(reason = ''): void {
  const { access, refresh } = tokens ?? {};
  for (const token of [refresh, access]) {
    if (!client || token === undefined || reason !== '') continue;
    const body = { token, client_id: client.clientId, client_secret: client.clientSecret };
    void send('/v2/oauth/revoke', body, true).catch(() => undefined);
  }
  client = undefined;
  tokens = undefined;
  renewing = undefined;
  if (reason === '') forget();
  viewer.value = undefined;
  notice.value = reason;
}

/**
 * Returns a token that is good for the next request.
 * @param isRefused whether the last one was refused, so that another one is taken
 * @throws Ended when there is none any more.
 */
export async function accessToken(isRefused = false): Promise<string> {
  if (!tokens || !client) throw new Ended('You are signed out.');
  if (!isRefused && tokens.expiresAt - SPARE_MS > Date.now()) return tokens.access;
  renewing ??= renew(client, tokens.refresh).finally(() => {
    renewing = undefined;
  });
  return renewing;
}

async function renew(by: NonNullable<typeof client>, refresh: string | undefined): Promise<string> {
  try {
    // A client's refresh token expires together with its access token.
    const taken = await take(by, by.username === '' ? { grant_type: 'client_credentials' } : { grant_type: 'refresh_token', refresh_token: refresh ?? '' });
    if (client !== by) throw new Ended('You are signed out.');
    tokens = taken;
    return taken.access;
  } catch (error) {
    if (error instanceof Refused && client === by) end();
    throw error;
  }
}

/** Ends the session because the server takes its tokens no more. */
export function end(): Ended {
  signOut('Your session was revoked or has expired. Sign in again to continue.');
  return new Ended(notice.value);
}

class Refused extends Error {}

/** What a status means where the answer does not say it in words. */
const REFUSALS: Readonly<Record<number, string>> = {
  401: 'The client id, its secret, the username or the password is wrong.',
  403: 'This client may not sign in this way, or not from this address.',
  429: 'Too many attempts. Wait a while, then try again.',
  503: 'The server is not ready. Try again later.',
};

async function take(by: NonNullable<typeof client>, grant: Record<string, string>): Promise<Tokens> {
  const body = { ...grant, client_id: by.clientId, client_secret: by.clientSecret };
  const response = await send('/v2/oauth/token', body, false);
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) {
    const reason = answer.error_description ?? REFUSALS[response.status] ?? `The server returned HTTP status ${response.status}.`;
    const { status } = response;
    throw status < 500 && status !== 429 ? new Refused(String(reason)) : new PortcullisError(String(reason), { status, code: 'no_token' });
  }
  return { access: answer.access_token, expiresAt: Date.now() + answer.expires_in * 1000, refresh: answer.refresh_token };
}

function send(path: string, body: object, keepalive: boolean): Promise<Response> {
  const headers = { 'content-type': 'application/json' };
  return fetch(addressOf(path), { method: 'POST', headers, body: JSON.stringify(body), keepalive });
}
