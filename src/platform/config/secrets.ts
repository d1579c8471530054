import { createHmac, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';
import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { makeFolder, writeWhole } from '../../lib/files.ts';
import { StartError } from '../errors.ts';
import { type Config, ConfigError, type Env } from './config.ts';
import { ed25519Key, ed25519Keys, signingKey } from './variable-forms.ts';

/**
 * The names of the three parts of an embedded installation below `DATA_DIR`; one that is lost is never replaced by a
 * new one.
 */
export const PARTS = { secrets: 'secrets.json', demo: 'demo.json', cluster: 'postgres' } as const;

/** Returns the path of the generated secrets, `DATA_DIR/secrets.json`. */
function secretsPath(dataDir: string): string {
  return join(dataDir, PARTS.secrets);
}

/** Returns the path of `DATA_DIR/demo.json`, which describes the demo to scripts. */
export function demoPath(dataDir: string): string {
  return join(dataDir, PARTS.demo);
}

/** Returns the path of the embedded database's folder below `DATA_DIR`. */
export function embeddedClusterDir(dataDir: string): string {
  return join(dataDir, PARTS.cluster);
}

/**
 * Makes the error for a `DATA_DIR` that is incomplete or damaged; `what` names the part and says what happened to it.
 */
export function notWhole(dataDir: string, what: string): StartError {
  return new StartError(
    `DATA_DIR ${dataDir} is incomplete or damaged: ${what}. Restore it from a backup, or set another DATA_DIR`,
  );
}

/** A secret, and the previous one that it replaces in a rotation, which still verifies; undefined if there is none. */
export interface RotatingSecret {
  current: string;
  previous: string | undefined;
}

/** Returns the values of a secret that are accepted, the current one first. */
export function secretsOf({ current, previous }: RotatingSecret): string[] {
  return previous === undefined ? [current] : [current, previous];
}

/**
 * Returns digests of the values of each secret that all gateways must share, in the order of `secretsOf`. Each value has at
 * least 32 bytes, which no digest reveals.
 */
export function sharedDigests({ jwt, pepper }: Pick<Secrets, 'jwt' | 'pepper'>): Record<string, string[]> {
  const digestsOf = (secret: RotatingSecret) =>
    secretsOf(secret).map((value) =>
      createHmac('sha256', value).update('portcullis process').digest('hex').slice(0, 16),
    );
  return {
    JWT_SECRET_USER: digestsOf(jwt.user),
    JWT_SECRET_DISCOVER: digestsOf(jwt.discover),
    JWT_SECRET_LEGACY: digestsOf(jwt.legacy),
    SECRET_PEPPER: digestsOf(pepper),
  };
}

export type TokenClass = 'user' | 'discover' | 'legacy';

export interface Secrets {
  jwt: Record<TokenClass, RotatingSecret>;
  pepper: RotatingSecret;
  /** The keys of the audit's seals, the current one before former ones, which can be public; empty if none is set. */
  auditKeys: readonly KeyObject[];
  webhook: {
    username: string;
    password: RotatingSecret;
    /** The keys that may sign notifications, the current one before the previous one; empty if none is set. */
    signingKeys: readonly Buffer[];
  };
}

const generatedSchema = z.object({
  jwtUser: z.string(),
  jwtDiscover: z.string(),
  jwtLegacy: z.string(),
  pepper: z.string(),
  webhookPassword: z.string(),
  /** Ed25519, PKCS #8 in base64; a release without chains of audit records has generated none. */
  auditSigningKey: z.string().optional(),
  /** The system identifier of the embedded database that is used with these secrets; undefined until there is one. */
  instanceId: z.string().optional(),
});

type Generated = z.output<typeof generatedSchema>;

/**
 * Returns the secrets in force, from the environment. Outside production, those that are unset are generated once and
 * stored in `DATA_DIR/secrets.json` (mode 0600).
 * @throws ConfigError if that file cannot be read or written; StartError if it is damaged, or missing where an embedded
 * installation needs it.
 */
export function readSecrets(config: Config, env: Env): Secrets {
  const generated = config.production ? undefined : readGenerated(config.dataDir);
  const rotating = (
    name: `JWT_SECRET_${'USER' | 'DISCOVER' | 'LEGACY'}` | 'SECRET_PEPPER' | 'WEBHOOK_PASSWORD',
    own: keyof Generated,
  ): RotatingSecret => ({
    current: env[name] ?? generated?.[own] ?? '',
    previous: env[`${name}_PREVIOUS`],
  });
  return {
    jwt: {
      user: rotating('JWT_SECRET_USER', 'jwtUser'),
      discover: rotating('JWT_SECRET_DISCOVER', 'jwtDiscover'),
      legacy: rotating('JWT_SECRET_LEGACY', 'jwtLegacy'),
    },
    pepper: rotating('SECRET_PEPPER', 'pepper'),
    auditKeys: auditKeys(env, generated),
    webhook: {
      username: env.WEBHOOK_USERNAME ?? 'chain-processor',
      password: rotating('WEBHOOK_PASSWORD', 'webhookPassword'),
      signingKeys: [env.WEBHOOK_SIGNING_SECRET, env.WEBHOOK_SIGNING_SECRET_PREVIOUS].flatMap(
        (text) => signingKey(text ?? '') ?? [],
      ),
    },
  };
}

/**
 * Returns the keys of the audit's seals that this environment knows, and generates none, since a new one would know no
 * seal.
 */
export function knownAuditKeys(config: Config, env: Env): readonly KeyObject[] {
  const hasGenerated = !config.production && existsSync(secretsPath(config.dataDir));
  return auditKeys(env, hasGenerated ? readGenerated(config.dataDir) : undefined);
}

function auditKeys(env: Env, generated: Generated | undefined): KeyObject[] {
  const current = ed25519Key(env.AUDIT_SIGNING_KEY ?? generated?.auditSigningKey ?? '');
  return current ? [current, ...(ed25519Keys(env.AUDIT_SIGNING_KEY_PREVIOUS ?? '') ?? [])] : [];
}

/**
 * Returns the system identifier of the embedded database that the generated secrets are for; undefined if there is none
 * yet. Throws the same errors as `readSecrets`.
 */
export function instanceOfSecrets(dataDir: string): string | undefined {
  return readGenerated(dataDir).instanceId;
}

/** Records in the secrets' file which embedded database the generated secrets are for. */
export function bindSecrets(dataDir: string, instanceId: string): void {
  writeWhole(secretsPath(dataDir), asText({ ...readGenerated(dataDir), instanceId }));
}

function readGenerated(dataDir: string): Generated {
  const path = secretsPath(dataDir);
  try {
    if (!existsSync(path)) {
      // Both are useless without the secrets.
      const isNeeded = existsSync(embeddedClusterDir(dataDir)) || existsSync(demoPath(dataDir));
      if (isNeeded) throw notWhole(dataDir, `${PARTS.secrets} is missing`);
      writeGenerated(dataDir, path);
    }
    const generated = generatedSchema.parse(JSON.parse(readFileSync(path, 'utf8')));
    if (generated.auditSigningKey !== undefined) return generated;
    const completed = { ...generated, auditSigningKey: newSigningKey() };
    writeWhole(path, asText(completed));
    return completed;
  } catch (error) {
    if (error instanceof StartError) throw error;
    if (error instanceof Error && 'code' in error) {
      throw new ConfigError([`DATA_DIR: ${dataDir} cannot be used (${error.code}); set it to a writable folder`]);
    }
    throw notWhole(dataDir, `${PARTS.secrets} is damaged`);
  }
}

function newSigningKey(): string {
  const { privateKey } = generateKeyPairSync('ed25519');
  return privateKey.export({ type: 'pkcs8', format: 'der' }).toString('base64');
}

function asText(generated: Generated): string {
  return `${JSON.stringify(generated, null, 2)}\n`;
}

function writeGenerated(dataDir: string, path: string): void {
  const secret = () => randomBytes(32).toString('base64url');
  const generated: Generated = {
    jwtUser: secret(),
    jwtDiscover: secret(),
    jwtLegacy: secret(),
    pepper: secret(),
    webhookPassword: randomBytes(18).toString('base64url'),
    auditSigningKey: newSigningKey(),
  };
  makeFolder(dataDir);
  const unfinished = `${path}.${process.pid}`;
  writeFileSync(unfinished, asText(generated), { mode: 0o600 });
  try {
    // Unlike a rename, a link fails if another process has created the file meanwhile and may already use it.
    linkSync(unfinished, path);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  } finally {
    rmSync(unfinished, { force: true });
  }
}
