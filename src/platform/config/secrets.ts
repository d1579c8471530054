import { randomBytes } from 'node:crypto';
import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { z } from 'zod';
import { makeFolder, writeWhole } from '../../lib/files.ts';
import { StartError } from '../errors.ts';
import { type Config, ConfigError, type Env } from './config.ts';
import { needsSecrets, notWhole, PARTS, secretsPath } from './data-dir.ts';
import { signingKey } from './forms.ts';

/** A secret and the one that it is about to replace, which still verifies. */
export interface RotatingSecret {
  current: string;
  previous: string | undefined;
}

export type TokenClass = 'user' | 'discover' | 'legacy';

export interface Secrets {
  jwt: Record<TokenClass, RotatingSecret>;
  pepper: RotatingSecret;
  webhook: {
    username: string;
    password: RotatingSecret;
    /** The keys that may sign notifications: the one in force, then the previous one. Empty: none is set. */
    signingKeys: readonly Buffer[];
  };
}

const generatedSchema = z.object({
  jwtUser: z.string(),
  jwtDiscover: z.string(),
  jwtLegacy: z.string(),
  pepper: z.string(),
  webhookPassword: z.string(),
  /** That of the embedded database which is used with them, once there is one. */
  instanceId: z.string().optional(),
});

type Generated = z.output<typeof generatedSchema>;

/**
 * The secrets in force: from the environment, and outside production generated once into `DATA_DIR/secrets.json`
 * (mode 0600) where a variable is unset.
 * @throws ConfigError when that file cannot be read or written, StartError when it is damaged, or gone where it is needed.
 */
export function readSecrets(config: Config, env: Env): Secrets {
  const generated = config.production ? undefined : readGenerated(config.dataDir);
  return {
    jwt: {
      user: { current: env.JWT_SECRET_USER ?? generated?.jwtUser ?? '', previous: env.JWT_SECRET_USER_PREVIOUS },
      discover: {
        current: env.JWT_SECRET_DISCOVER ?? generated?.jwtDiscover ?? '',
        previous: env.JWT_SECRET_DISCOVER_PREVIOUS,
      },
      legacy: {
        current: env.JWT_SECRET_LEGACY ?? generated?.jwtLegacy ?? '',
        previous: env.JWT_SECRET_LEGACY_PREVIOUS,
      },
    },
    pepper: { current: env.SECRET_PEPPER ?? generated?.pepper ?? '', previous: env.SECRET_PEPPER_PREVIOUS },
    webhook: {
      username: env.WEBHOOK_USERNAME ?? 'chain-processor',
      password: {
        current: env.WEBHOOK_PASSWORD ?? generated?.webhookPassword ?? '',
        previous: env.WEBHOOK_PASSWORD_PREVIOUS,
      },
      signingKeys: signingKeys(env),
    },
  };
}

function signingKeys({ WEBHOOK_SIGNING_SECRET, WEBHOOK_SIGNING_SECRET_PREVIOUS }: Env): Buffer[] {
  return [WEBHOOK_SIGNING_SECRET, WEBHOOK_SIGNING_SECRET_PREVIOUS].flatMap((secret) => signingKey(secret ?? '') ?? []);
}

/** Which embedded database the generated secrets are for; undefined while there is none. Throws as `readSecrets`. */
export function instanceOfSecrets(dataDir: string): string | undefined {
  return readGenerated(dataDir).instanceId;
}

/** Says which embedded database the generated secrets are for, from now on. */
export function bindSecrets(dataDir: string, instanceId: string): void {
  writeWhole(secretsPath(dataDir), asText({ ...readGenerated(dataDir), instanceId }));
}

function readGenerated(dataDir: string): Generated {
  const path = secretsPath(dataDir);
  try {
    if (!existsSync(path)) {
      if (needsSecrets(dataDir)) throw notWhole(dataDir, `${PARTS.secrets} is gone`);
      writeGenerated(dataDir, path);
    }
    return generatedSchema.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch (error) {
    if (error instanceof StartError) throw error;
    if (error instanceof Error && 'code' in error) {
      throw new ConfigError([`DATA_DIR: ${dataDir} cannot be used (${error.code}); name a folder that can be written`]);
    }
    throw notWhole(dataDir, `${PARTS.secrets} is damaged`);
  }
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
  };
  makeFolder(dataDir);
  const unfinished = `${path}.${process.pid}`;
  writeFileSync(unfinished, asText(generated), { mode: 0o600 });
  try {
    // Unlike a rename this leaves what another process has put there meanwhile, and may already use.
    linkSync(unfinished, path);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  } finally {
    rmSync(unfinished, { force: true });
  }
}
