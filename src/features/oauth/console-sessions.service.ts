import type { ClientRecord } from '../../access/identity/callers.ts';
import type { Throttle } from '../../access/limits/client-limits.ts';
import type { AccessDirectory } from '../../access/revocation/access-cache.ts';
import type { RefreshClaims } from '../../access/tokens/claims.rules.ts';
import type { RefreshTokens, Revocations } from '../../access/tokens/revocations.ts';
import type { TokenVerifier } from '../../access/tokens/token-authenticator.ts';
import { callerAddress } from '../../lib/ip-address.ts';
import { Semaphore } from '../../lib/semaphore.ts';
import { notFound, Refusal, serviceUnavailable } from '../../platform/errors.ts';
import { requestSignal } from '../../platform/held-memory.ts';
import type { Denied, Granted, Grants } from './token-endpoint.service.ts';

/** How many cookies of a request have their signatures checked: each may come from a server on a sibling domain. */
const MAX_COOKIES = 4;
/** What wrong cookies of an address are counted as, apart from its failed sign-ins. */
const COOKIES = 'console cookies';
/** How many sign-ins are checked at once, and how many wait: of all addresses together, since anyone may send them. */
export const MAX_SIGN_INS = 64;
export const MAX_WAITING_SIGN_INS = 64;

/** The refusal of a client that does not exist, is disabled, or is none of the console. */
const NO_CLIENT: Denied = { reason: 'no_console_client' };

/** A cookie with a refresh token that is valid. */
interface ConsoleCookie {
  token: string;
  claims: RefreshClaims;
}

/**
 * Begins, renews and ends the sessions of supervisors in the console (docs/contract.md, D3-40). Its clients have no
 * secret, so that anyone may try passwords: failures are counted by address and username.
 */
export class ConsoleSessions {
  readonly #deps;
  /** The sign-ins, one at a time for each address. */
  readonly #attempts = new Semaphore({
    permits: MAX_SIGN_INS,
    share: 1,
    maxWaiting: MAX_WAITING_SIGN_INS,
    refusal: serviceUnavailable,
    signalOf: requestSignal,
  });

  constructor(deps: {
    directory: Pick<AccessDirectory, 'client' | 'nodeName'>;
    throttle: Pick<Throttle, 'requireAttemptsLeft' | 'failed'>;
    grants: Pick<Grants, 'password' | 'refresh'>;
    verifier: Pick<TokenVerifier, 'mayBeOf'>;
    refreshTokens: Pick<RefreshTokens, 'claimsOf'>;
    revocations: Pick<Revocations, 'revokeFamily'>;
  }) {
    this.#deps = deps;
  }

  /**
   * Signs a supervisor in, and ends the sessions whose refresh tokens the browser has.
   * @throws Refusal `invalid_client`, `invalid_grant`, `rate_limit_exceeded` after twenty failures from the address
   * within a minute; `service_unavailable` when too many sign-ins wait.
   */
  signIn(
    { client_id: clientId, username, password }: Record<'client_id' | 'username' | 'password', string>,
    replaced: readonly string[],
    realIp: string,
  ): Promise<Granted> {
    const { throttle, grants } = this.#deps;
    const address = callerAddress(realIp);
    // Each failure is counted before the next attempt from the address, so that concurrent ones get no more chances.
    return this.#attempts.run(address, async () => {
      await throttle.requireAttemptsLeft(address, 'console');
      const client = await this.#find(clientId);
      const granted = client ? await grants.password({ username, password }, client, address) : NO_CLIENT;
      if ('reason' in granted) {
        await throttle.failed(address, 'console', granted.subject);
        throw new Refusal(client ? 'invalid_grant' : 'invalid_client', granted);
      }
      if (client) await this.#end(client, await this.#validAmong(replaced, client));
      return granted;
    });
  }

  /**
   * Redeems the refresh token of a session. Several valid ones count as none, because a server on a sibling domain may
   * have added one.
   * @throws Refusal `invalid_client`, `invalid_grant`; `rate_limit_exceeded` after twenty requests of the address within
   * a minute whose cookies were wrong.
   */
  async renew(clientId: string, cookies: readonly string[], realIp: string): Promise<Granted> {
    const client = await this.#find(clientId);
    const [valid, ...otherSessions] = client ? await this.#admitted(cookies, client, realIp) : [];
    const refresh_token = valid && otherSessions.length === 0 ? valid.token : '';
    const granted = client ? await this.#deps.grants.refresh({ refresh_token }, client) : NO_CLIENT;
    if ('reason' in granted) throw new Refusal(client ? 'invalid_grant' : 'invalid_client', granted);
    return granted;
  }

  /**
   * Ends the sessions of refresh tokens; ignores those that are not valid.
   * @throws Refusal `rate_limit_exceeded` as `renew` does.
   */
  async signOut(clientId: string, cookies: readonly string[], realIp: string): Promise<undefined> {
    const client = await this.#find(clientId);
    if (client) await this.#end(client, await this.#admitted(cookies, client, realIp));
  }

  /**
   * Returns the name of the tenant of a console client, for the page where people sign in.
   * @throws Refusal `not_found`; `rate_limit_exceeded` as `signIn` does, with which it counts unknown ids.
   */
  async tenantOf(clientId: string, realIp: string): Promise<string | undefined> {
    const { throttle, directory } = this.#deps;
    const address = callerAddress(realIp);
    await throttle.requireAttemptsLeft(address, 'console');
    const client = await this.#find(clientId);
    if (client) return directory.nodeName(client.nodeId);
    await throttle.failed(address, 'console');
    throw notFound('there is no console client with this id');
  }

  async #end(client: ClientRecord, sessions: readonly ConsoleCookie[]): Promise<void> {
    for (const { claims } of sessions) await this.#deps.revocations.revokeFamily(claims, client);
  }

  /** Returns the valid ones of an address's cookies, and counts a request that has only wrong ones. */
  async #admitted(cookies: readonly string[], client: ClientRecord, realIp: string): Promise<ConsoleCookie[]> {
    const { throttle, verifier } = this.#deps;
    if (!cookies.some((token) => verifier.mayBeOf('user', token))) return [];
    await throttle.requireAttemptsLeft(realIp, COOKIES);
    const valid = await this.#validAmong(cookies, client);
    if (valid.length === 0) await throttle.failed(realIp, COOKIES);
    return valid;
  }

  /**
   * Returns the cookies that are refresh tokens of the client. Of many with the id of a key, the first and the last are
   * looked at: browsers send cookies with the same path by age, after those with a longer path.
   */
  async #validAmong(cookies: readonly string[], client: ClientRecord): Promise<ConsoleCookie[]> {
    const signed = [...new Set(cookies)].filter((token) => this.#deps.verifier.mayBeOf('user', token));
    if (signed.length > MAX_COOKIES) signed.splice(MAX_COOKIES / 2, signed.length - MAX_COOKIES);
    const read = signed.map(async (token) => {
      const claims = await this.#deps.refreshTokens.claimsOf(token, client);
      return claims ? [{ token, claims }] : [];
    });
    return (await Promise.all(read)).flat();
  }

  async #find(clientId: string): Promise<ClientRecord | undefined> {
    const client = await this.#deps.directory.client(clientId);
    return client?.isConsole && client.active ? client : undefined;
  }
}
