import { PortcullisError } from '@portcullis/client';
import { signal } from '@preact/signals';
import type { ViewerQuery } from './generated/graphql.ts';
import { continuedClient, forget, rememberedClient } from './remembered.ts';

export type Viewer = ViewerQuery['me'];

/** A person's sign-in by a console client, or that of an API client by its secret. */
export type Credentials = { clientId: string } & ({ username: string; password: string } | { clientSecret: string });

interface Session {
  clientId: string;
  /** Of an API client; a person's session is in a cookie that the page cannot read. */
  clientSecret: string | undefined;
}

type Tokens = { access: string; expiresAt: number };

/** The signed-in principal; undefined before sign-in and after the session ends. */
export const viewer = signal<Viewer | undefined>(undefined);
/** What the page of the sign-in has to say: why a session has ended. */
export const notice = signal('');

/** The greatest age of a token, in ms before its end, at which it is still sent. */
const SPARE_MS = 30_000;
const SESSION = '/console/session';

let session: Session | undefined;
let tokens: Tokens | undefined;
let renewing: Promise<string> | undefined;
/** Whose session the last one was. */
let last = '';

/** Returns the address of a path of the API, which the same server serves. */
export function addressOf(path: string): string {
  return new URL(`..${path}`, document.baseURI).href;
}

/** A session that has ended: it was revoked, or has expired. */
export class SessionEndedError extends Error {}

/** Takes the first tokens; refused credentials throw an error that says what to change. */
export async function signIn(credentials: Credentials): Promise<void> {
  const clientId = credentials.clientId.trim();
  const begun: Session = { clientId, clientSecret: 'clientSecret' in credentials ? credentials.clientSecret.trim() : undefined };
  const { username, password } = { username: '', password: '', ...credentials };
  tokens = isOfPerson(begun) ? await requestTokens('POST', SESSION, { client_id: clientId, username, password }) : await renewed(begun);
  session = begun;
  notice.value = '';
  if (!isOfPerson(begun)) return;
  rememberedClient.set(clientId);
  continuedClient.set(clientId);
}

/** Continues the session that this browser has from before a reload. Returns whether there is one; throws where the server cannot be asked. */
export async function resume(): Promise<boolean> {
  const clientId = continuedClient.get();
  if (clientId === '' || ![clientId, ''].includes(linkedClient())) return false;
  session = { clientId, clientSecret: undefined };
  return accessToken().then(
    () => true,
    (error: unknown) => {
      session = undefined;
      if (!(error instanceof Refused)) throw error;
      continuedClient.set('');
      return false;
    },
  );
}

/** The console client that the address names. */
export function linkedClient(): string {
  return new URLSearchParams(location.search).get('client') ?? '';
}

/** Returns what people learn of a console client before they sign in, the tenant and what locks a username; nothing where it cannot be had. */
export async function beforeSignIn(clientId: string): Promise<{ tenant_name?: string; login_lock?: { failures: number; seconds: number } }> {
  const response = await fetch(addressOf(`/console/tenants/${encodeURIComponent(clientId)}`)).catch(() => undefined);
  return response?.ok ? response.json() : {};
}

/** Whether a person is signed in, and not an API client. */
export function isPerson(): boolean {
  return session !== undefined && isOfPerson(session);
}

function isOfPerson({ clientSecret }: Session): boolean {
  return clientSecret === undefined;
}

/** Starts a session; another principal than before finds no data of the earlier one. */
export function startSession(me: Viewer): void {
  const who = JSON.stringify([me.nodeId, me.clientId, me.subject]);
  if (who !== last) forget();
  last = who;
  viewer.value = me;
}

/** Ends the session here, and at the server as far as it can be reached. For a reason, the person has not chosen to. */
export function signOut(reason = ''): void {
  const { access } = tokens ?? {};
  if (session && isOfPerson(session)) {
    if (continuedClient.get() === session.clientId) continuedClient.set('');
    const failed = () => {
      if (!session) notice.value += ' The server could not end your session. Sign in and out again, or it stays open for up to 30 minutes.';
    };
    void send('DELETE', SESSION, { client_id: session.clientId }).then(({ ok }) => ok || failed(), failed);
  } else if (session && access !== undefined && reason === '') {
    const body = { token: access, client_id: session.clientId, client_secret: session.clientSecret };
    void send('POST', '/v2/oauth/revoke', body).catch(() => undefined);
  }
  if (reason === '') forget();
  close(reason);
}

/** Ends the session in this tab alone. */
function close(reason: string): SessionEndedError {
  session = undefined;
  tokens = undefined;
  renewing = undefined;
  viewer.value = undefined;
  notice.value = reason;
  return new SessionEndedError(reason);
}

/** Returns a token for the next request, another one where the last was refused. Throws `SessionEndedError` where there is none any more. */
export async function accessToken(isRefused = false): Promise<string> {
  if (!session) throw new SessionEndedError('You are signed out.');
  if (tokens && !isRefused && tokens.expiresAt - SPARE_MS > Date.now()) return tokens.access;
  renewing ??= renew(session).finally(() => {
    renewing = undefined;
  });
  return renewing;
}

async function renew(by: Session): Promise<string> {
  try {
    const taken = await renewed(by);
    if (session !== by) throw new SessionEndedError('You are signed out.');
    // Another tab may have signed somebody else in, whose cookie this is now.
    if (viewer.value && subjectOf(taken) !== viewer.value.subject) throw close('Somebody else has signed in with this browser. Sign in again to continue.');
    tokens = taken;
    return taken.access;
  } catch (error) {
    if (error instanceof Refused && session === by && viewer.value) end();
    throw error;
  }
}

function renewed({ clientId, clientSecret }: Session): Promise<Tokens> {
  const client = { client_id: clientId };
  // Tabs share the cookie, which can be redeemed once: each waits for the cookie of the one before.
  if (clientSecret === undefined) return alone(() => requestTokens('POST', `${SESSION}/renew`, client));
  return requestTokens('POST', '/v2/oauth/token', { ...client, grant_type: 'client_credentials', client_secret: clientSecret });
}

function subjectOf({ access }: Tokens): string {
  const [, claims = ''] = access.split('.');
  return JSON.parse(atob(claims.replaceAll('-', '+').replaceAll('_', '/'))).sub;
}

async function alone<Result>(work: () => Promise<Result>): Promise<Result> {
  // Only pages over https, and those of this machine, have locks.
  const { locks } = navigator as Partial<Navigator>;
  return locks ? locks.request('portcullis.session', work) : work();
}

/** Ends the session because the server takes its tokens no more. */
export function end(): SessionEndedError {
  signOut('Your session was revoked or has expired. Sign in again to continue.');
  return new SessionEndedError(notice.value);
}

// Another tab has signed out, or in through another client; a page that the browser keeps for Back learns it when it is shown again.
const check = () => isPerson() && continuedClient.get() !== session?.clientId && end();
continuedClient.onChanged(check);
addEventListener('pageshow', ({ persisted }) => persisted && !check() && accessToken(true).catch(() => undefined));

class Refused extends Error {}

/** What a refusal means, by the error code of OAuth or the status. */
const REFUSALS: Readonly<Record<string, string>> = {
  invalid_client: 'This client id is not one of a console. Ask your administrator for the link.',
  invalid_grant: 'The username or the password is wrong.',
  400: 'The client id must be a UUID, as in the link to the console.',
  401: 'The client id or its secret is wrong.',
  403: 'This client may not sign in this way, or not from this address.',
  429: 'Too many attempts. Wait a minute, then try again.',
  503: 'The server is not ready. Try again later.',
};

async function requestTokens(method: string, path: string, body: { client_id: string; [name: string]: string }): Promise<Tokens> {
  const response = await send(method, path, body);
  const answer = await response.json().catch(() => ({}));
  const { status } = response;
  if (!response.ok) {
    const lock = path === SESSION && answer.error === 'invalid_grant' && (await beforeSignIn(body.client_id)).login_lock;
    const rule = lock ? ` After ${lock.failures} attempts, wait ${lock.seconds / 60} minutes or ask an administrator to unlock you.` : '';
    const reason = `${REFUSALS[answer.error] ?? REFUSALS[status] ?? `The server returned HTTP status ${status}.`}${rule}`;
    throw status < 500 && status !== 429 ? new Refused(reason) : new PortcullisError(reason, { status, code: 'no_token' });
  }
  return { access: answer.access_token, expiresAt: Date.now() + answer.expires_in * 1000 };
}

/** Sends a request that outlives the page: a reload must not lose the cookie of its answer. */
function send(method: string, path: string, body: object): Promise<Response> {
  return fetch(addressOf(path), { method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body), keepalive: true });
}
