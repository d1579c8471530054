import { beforeAll, expect, it } from 'vitest';
import { writeDemo } from '../../src/app/demo/demo.ts';
import { pagesToRun } from '../support/docs/plan.ts';
import { describeFollowed } from '../support/docs/programs.ts';
import { followed, type Reader } from '../support/docs/run-page.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { startPortcullis } from '../support/harness.ts';
import { SECRET } from '../support/webhook/signing.ts';

// Programs of their own, one after the other, on machines that are busy with other tests.
describeFollowed('commands of pages for the embedded instance', () => {
  const p = beforeTests(() => startPortcullis({ env: { WEBHOOK_SIGNING_SECRET: SECRET } }));
  let reader: Reader;

  beforeAll(async () => {
    const { host } = new URL(p.url);
    writeDemo(p.dataDir, p.demo, { baseUrl: p.url, webhook: p.service.context.secrets.webhook });
    const { client_id, client_secret } = p.demo.client;
    reader = {
      instead: { '127.0.0.1:4000': host },
      env: {
        CLIENT_ID: client_id,
        CLIENT_SECRET: client_secret,
        PORTCULLIS_SECRET: client_secret,
        WEBHOOK_SIGNING_SECRET: SECRET,
      },
      dataDir: p.dataDir,
    };
  });

  it.each(pagesToRun().embedded)('every command of %s does what the page says', async (page) => {
    expect(await followed(page, reader)).toEqual([]);
  });
});
