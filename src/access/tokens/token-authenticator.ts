import { createHash, createSecretKey, type KeyObject } from 'node:crypto';
import { decodeProtectedHeader } from 'jose/decode/protected_header';
import { JOSEError } from 'jose/errors';
import { compactVerify } from 'jose/jws/compact/verify';
import { BoundedMap } from '../../lib/bounded-map.ts';
import { parsedOrNone } from '../../lib/json.ts';
import { type RotatingSecret, secretsOf, type TokenClass } from '../../platform/config/secrets.ts';
import {
  anotherClass,
  InvalidTokenError,
  type Principal,
  refuseForgotPassword,
  type SignedToken,
} from '../identity/callers.ts';
import type { AccessDirectory } from '../revocation/access-cache.ts';
import type { Sessions } from '../revocation/sessions.ts';
import { normalizeClaims, principalFromClaims } from './claims.rules.ts';

/** The total length of the tokens that are cached, in characters; their claims take about as much memory again. */
export const CACHED_CHARACTERS = 16 * 1024 * 1024;
const MAX_TOKEN_CHARACTERS = 16 * 1024;
const COMPACT = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.([A-Za-z0-9_-]{43})$/;

/** Verifies the signatures of compact JWTs: HS256 only, in canonical form only. Verified tokens are cached. */
export class TokenVerifier {
  readonly #keys: JwtKeys;
  readonly #verified = new BoundedMap<string, SignedToken>(CACHED_CHARACTERS, { weightOf: (_, { length }) => length });

  constructor(keys: JwtKeys) {
    this.#keys = keys;
  }

  /**
   * Verifies a token of one of the accepted classes and returns its claims; the same object for the same token while it
   * is cached.
   * @throws InvalidTokenError when the class, algorithm, form or signature is another.
   */
  async verify(token: string, accepted: readonly TokenClass[]): Promise<SignedToken> {
    const known = this.#verified.get(token);
    return known ? requireAccepted(known, accepted) : this.#verifyNew(token, accepted);
  }

  /** Checks by the form and the key id of a token whether a key of the class may have signed it; computes no signature. */
  mayBeOf(tokenClass: TokenClass, token: string): boolean {
    const keyId = isCanonical(token) ? parsedOrNone(() => keyIdOf(token)) : undefined;
    return typeof keyId === 'string' && this.#keys.byKeyId.get(keyId)?.tokenClass === tokenClass;
  }

  async #verifyNew(token: string, accepted: readonly TokenClass[]): Promise<SignedToken> {
    if (!isCanonical(token)) throw new InvalidTokenError('malformed');
    for (const key of this.#candidates(token)) {
      const signed = await verifyWith(token, key);
      if (signed) {
        this.#verified.set(token, signed);
        return requireAccepted(signed, accepted);
      }
    }
    throw new InvalidTokenError('signature');
  }

  /** Returns the keys that may have signed a token. An unknown key id belongs to another issuer, or to none. */
  #candidates(token: string): JwtKey[] {
    const keyId = keyIdOf(token);
    const key = typeof keyId === 'string' ? this.#keys.byKeyId.get(keyId) : undefined;
    if (key) return [key];
    const all = [...this.#keys.byKeyId.values()];
    return keyId === undefined ? all : all.filter(({ tokenClass }) => tokenClass !== 'user');
  }
}

function requireAccepted(signed: SignedToken, accepted: readonly TokenClass[]): SignedToken {
  if (!accepted.includes(signed.tokenClass)) throw anotherClass(signed.tokenClass, accepted.join(' or '));
  return signed;
}

/**
 * Checks whether a token has a valid length and canonical form. 32 bytes in unpadded base64url end in one of 16
 * characters; the other 48 would be second spellings of the same bytes.
 */
function isCanonical(token: string): boolean {
  if (token.length > MAX_TOKEN_CHARACTERS) return false;
  const signature = COMPACT.exec(token)?.[1];
  return signature !== undefined && Buffer.from(signature, 'base64url').toString('base64url') === signature;
}

function keyIdOf(token: string): unknown {
  try {
    return decodeProtectedHeader(token).kid;
  } catch {
    throw new InvalidTokenError('malformed');
  }
}

async function verifyWith(token: string, key: JwtKey): Promise<SignedToken | undefined> {
  try {
    const { payload } = await compactVerify(token, key.key, { algorithms: ['HS256'] });
    const claims: unknown = JSON.parse(Buffer.from(payload).toString('utf8'));
    if (typeof claims !== 'object' || claims === null || Array.isArray(claims)) return undefined;
    const { tokenClass } = key;
    return { tokenClass, claims: tokenClass === 'user' ? { ...claims } : normalizeClaims({ ...claims }) };
  } catch (error) {
    if (error instanceof JOSEError || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/**
 * Authenticates access tokens from any interface (RFC 9068 section 4): first the signature, then the claims with their
 * tenant and client, then the session. Each step is a method and throws an InvalidTokenError with the
 * reason.
 */
export class TokenAuthenticator {
  readonly #deps;
  /**
   * Principals by verified token. The verifier returns the same object for the same token, so that its claims are read
   * once.
   */
  readonly #principals = new WeakMap<SignedToken, Principal>();

  constructor(deps: {
    verifier: Pick<TokenVerifier, 'verify'>;
    directory: Pick<AccessDirectory, 'admits' | 'client'>;
    sessions: Pick<Sessions, 'isLive'>;
    nowMs(): number;
  }) {
    this.#deps = deps;
  }

  /**
   * Runs all steps for a token of one of the accepted classes, which opens an interface without a list of permissions,
   * and returns its principal.
   * @throws InvalidTokenError when a step refuses the token, or it only serves to set a new password.
   */
  async authenticate(token: string, accepted: readonly TokenClass[]): Promise<Principal> {
    const principal = await this.checkClaims(await this.checkSignature(token, accepted));
    await this.checkSession(principal);
    refuseForgotPassword(principal);
    return principal;
  }

  /**
   * Checks that a token that was valid still is: not expired, its tenant and client admitted, its session live.
   * @throws InvalidTokenError when it is not.
   */
  async check(principal: Principal): Promise<void> {
    await this.checkSession(await this.#admitted(principal));
  }

  /**
   * Checks that a token that was accepted a few minutes ago has not been revoked since; it may have expired. Does not
   * read the session. `isReading` as in `DenyList.allows`.
   */
  async recheck(principal: Principal, isReading?: boolean): Promise<void> {
    if (!(await this.#deps.directory.admits(principal, isReading))) await this.#refuse(principal);
  }

  /** Verifies the signature of a token of one of the accepted classes and returns its claims. */
  checkSignature(token: string, accepted: readonly TokenClass[]): Promise<SignedToken> {
    return this.#deps.verifier.verify(token, accepted);
  }

  /**
   * Returns the principal that the claims name; its tenant and client must exist, and the token must not be revoked.
   */
  async checkClaims(token: SignedToken): Promise<Principal> {
    return this.#admitted(this.principalOf(token));
  }

  /** Returns the principal that the claims name, without checking its tenant and client. */
  principalOf(token: SignedToken): Principal {
    return this.#principals.getOrInsertComputed(token, ({ tokenClass, claims }) =>
      principalFromClaims(tokenClass, claims, this.#deps.nowMs()),
    );
  }

  /**
   * Checks that the session of a login is live. API and forgot-password tokens have no session.
   */
  async checkSession(principal: Principal): Promise<void> {
    const isLogin = principal.tokenUse === 'login';
    if (isLogin && !(await this.#deps.sessions.isLive(principal))) throw new InvalidTokenError('revoked');
  }

  async #admitted(principal: Principal): Promise<Principal> {
    const { directory, nowMs } = this.#deps;
    if (principal.expiresAtMs !== undefined && principal.expiresAtMs <= nowMs()) throw new InvalidTokenError('expired');
    return (await directory.admits(principal)) ? principal : this.#refuse(principal);
  }

  /**
   * Throws the error for a token that is not admitted: when its client belongs to its tenant, it was valid before and
   * has been revoked; otherwise its tenant is unknown or another client's, or its client is unknown.
   */
  async #refuse({ tokenClass, clientId, nodeId }: Principal): Promise<never> {
    const client = clientId === undefined ? undefined : await this.#deps.directory.client(clientId);
    if (client?.nodeId === nodeId) throw new InvalidTokenError('revoked');
    const isOfNoClient = tokenClass === 'user' && clientId !== undefined && !client;
    throw new InvalidTokenError(isOfNoClient ? 'not_admitted' : 'audience');
  }
}

/** A key of a token class. `keyId` identifies class and key, so that verification needs to try no other. */
interface JwtKey {
  keyId: string;
  tokenClass: TokenClass;
  /** The key in the form in which jose verifies signatures. */
  key: CryptoKey;
  /** The key in the form in which `node:crypto` signs. */
  secret: KeyObject;
}

/** The imported keys. */
export interface JwtKeys {
  /** The key that signs; services issue only user tokens. */
  signing: JwtKey;
  /** The keys that verify, by key id: the current and the previous one of each class. */
  byKeyId: ReadonlyMap<string, JwtKey>;
}

/** Imports the secrets as HMAC-SHA256 keys; the bytes of a key are the UTF-8 text of the secret. */
export async function importJwtKeys(secrets: Record<TokenClass, RotatingSecret>): Promise<JwtKeys> {
  const imported = (['user', 'discover', 'legacy'] as const).flatMap((tokenClass) =>
    secretsOf(secrets[tokenClass]).map((secret) => importKey(tokenClass, secret)),
  );
  const [signing, ...otherKeys] = await Promise.all(imported);
  if (!signing) throw new Error('the class user has a key');
  return { signing, byKeyId: new Map([signing, ...otherKeys].map((key) => [key.keyId, key])) };
}

async function importKey(tokenClass: TokenClass, secret: string): Promise<JwtKey> {
  const bytes = Buffer.from(secret, 'utf8');
  const hash = createHash('sha256').update('portcullis key id').update(bytes).digest('hex').slice(0, 16);
  const key = await crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign', 'verify']);
  return { keyId: `${tokenClass}.${hash}`, tokenClass, key, secret: createSecretKey(bytes) };
}
