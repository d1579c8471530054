import { callerAddress } from '../../lib/ip-address.ts';
import { KeyedMutex } from '../../lib/keyed-mutex.ts';
import { Refusal, serviceUnavailable } from '../../platform/errors.ts';
import type { ClientRecord } from '../identity/client-record.ts';
import type { Throttle } from '../limits/throttle.ts';
import type { AccessDirectory } from '../revocation/access-directory.ts';
import type { RefreshTokens } from '../tokens/refresh-tokens.ts';
import type { Revocations } from '../tokens/revocations.ts';
import type { TokenResponse } from '../tokens/token-issuer.ts';
import type { Grant } from './grants.ts';

interface ConsoleSessionsDependencies {
  directory: Pick<AccessDirectory, 'client'>;
  throttle: Pick<Throttle, 'requireAttemptsLeft' | 'failed'>;
  password: Pick<Grant, 'handle'>;
  refresh: Pick<Grant, 'handle'>;
  refreshTokens: Pick<RefreshTokens, 'claimsOf'>;
  revocations: Pick<Revocations, 'revokeFamily'>;
}

/**
 * Begins, renews and ends the sessions of supervisors in the console (docs/contract.md, D3-40). Its clients have no
 * secret, so that anyone may try passwords: failures are counted by address and username.
 */
export class ConsoleSessions {
  readonly #deps: ConsoleSessionsDependencies;
  readonly #attempts = new KeyedMutex({ maxWaiting: 64, refusal: serviceUnavailable });

  constructor(deps: ConsoleSessionsDependencies) {
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
  ): Promise<TokenResponse> {
    const { throttle, password: grant } = this.#deps;
    const address = callerAddress(realIp);
    // Each failure is counted before the next attempt from the address, so that concurrent ones get no more chances.
    return this.#attempts.run(address, async () => {
      await throttle.requireAttemptsLeft(address, 'console');
      const client = await this.#find(clientId);
      const granted = client && (await grant.handle({ grant_type: 'password', username, password }, client, address));
      if (granted) {
        await this.signOut(clientId, replaced);
        return granted.response;
      }
      await throttle.failed(address, 'console');
      throw new Refusal(client ? 'invalid_grant' : 'invalid_client');
    });
  }

  /**
   * Redeems the refresh token of a session. Several count as none, because a server on a sibling domain may have added
   * one.
   * @throws Refusal `invalid_client`, `invalid_grant`.
   */
  async renew(clientId: string, refreshTokens: readonly string[]): Promise<TokenResponse> {
    const client = await this.#find(clientId);
    const [token = '', ...others] = refreshTokens;
    const request = { grant_type: 'refresh_token', refresh_token: others.length === 0 ? token : '' } as const;
    const granted = client && (await this.#deps.refresh.handle(request, client));
    if (!granted) throw new Refusal(client ? 'invalid_grant' : 'invalid_client');
    return granted.response;
  }

  /** Ends the sessions of refresh tokens; ignores those that are not valid. */
  async signOut(clientId: string, tokens: readonly string[]): Promise<undefined> {
    const { refreshTokens, revocations } = this.#deps;
    const client = await this.#find(clientId);
    for (const token of tokens) {
      const claims = client && (await refreshTokens.claimsOf(token, client));
      if (claims) await revocations.revokeFamily(claims, client);
    }
  }

  async #find(clientId: string): Promise<ClientRecord | undefined> {
    const client = await this.#deps.directory.client(clientId);
    return client?.isConsole && client.active ? client : undefined;
  }
}
