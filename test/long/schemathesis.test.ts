import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { operations } from '../support/openapi/described.ts';
import { type OpenApiFixture, openApiFixture } from '../support/openapi/fixture.ts';
import { cached } from '../support/services/cache.ts';
import { runCommand } from '../support/services/commands.ts';
import { describeReal, serviceAddress } from '../support/services/real.ts';

const FOLDER = join(import.meta.dirname, '../openapi/schemathesis');
const REQUIREMENTS = join(FOLDER, 'requirements.txt');
const AT_MOST_MS = 3 * 3_600_000;

let fixture: OpenApiFixture;

/** The folder with schemathesis and what it needs, installed the first time. */
async function packages(python: string): Promise<string> {
  const pinned = createHash('sha256').update(await readFile(REQUIREMENTS));
  return cached(`schemathesis-${pinned.digest('hex').slice(0, 16)}`, async (temporary) => {
    const to = join(temporary, 'packages');
    const wheels = ['--only-binary', ':all:', '--target', to];
    await runCommand(python, ['-m', 'pip', 'install', '-q', ...wheels, '-r', REQUIREMENTS]);
    return to;
  });
}

describeReal('python', 'schemathesis', () => {
  beforeAll(async () => {
    fixture = await openApiFixture();
  });
  afterAll(() => fixture?.[Symbol.asyncDispose]());

  it(
    'D8-02 D2-13: the service accepts what the document says: a thousand cases per operation, and sequences of calls',
    async () => {
      const { demo, url, webhook } = fixture.p;
      const python = serviceAddress('python');
      const env = {
        ...process.env,
        PYTHONPATH: await packages(python),
        PYTHONDONTWRITEBYTECODE: '1',
        TOKEN: fixture.token,
        CLIENT_ID: demo.client.client_id,
        CLIENT_SECRET: demo.client.client_secret,
        WEBHOOK_USERNAME: webhook.username,
        WEBHOOK_PASSWORD: webhook.password,
        WALLET: demo.wallet_id,
        SECOND_NETWORK: demo.second_network_id,
        RULE: fixture.ruleId,
        ASSET: demo.asset_id,
      };
      const options = ['--config-file', 'schemathesis.toml', 'run', `${url}/swagger/openapi.json`];
      const args = ['-m', 'schemathesis.cli', ...options];
      const report = await runCommand(python, args, { cwd: FOLDER, env, timeoutMs: AT_MOST_MS });
      expect(report).toMatch(new RegExp(`Tested:\\s+${operations.length}\\b`));
    },
    AT_MOST_MS,
  );
});
