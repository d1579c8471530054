import { readFile } from 'node:fs/promises';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { beginAt, openConsole, SOON, signIn, signOut } from '../support/console/console-page.ts';
import { type OpenPage, startBrowser, takePicture } from '../support/harness/browser.ts';
import { type Portcullis, startEmbedded } from '../support/harness.ts';
import { describeReal } from '../support/services/real.ts';

const MARK = '\ufeff';
const HEADER = 'wallet_address,email,name\r\n';
const BLANK_WALLET = ' ,blank@x.y,"Ann, B."\r\n';
const TOO_MANY = '"0xa3","c@x.y","x","y"\r\n';
const STRAY = '0xa4,d@x.y,Da"na\n';
const BAD_LINES = [BLANK_WALLET, TOO_MANY, STRAY];
/** Good rows around the bad ones, one over two lines, an empty line, and one row that is skipped. */
const FILE = [
  MARK,
  HEADER,
  '0xa1,a@x.y,"Two\r\nlines"\r\n\r\n',
  BLANK_WALLET,
  '0xa5,e@x.y,Zoë\n',
  TOO_MANY,
  '0xa6,,Nobody\r\n',
  STRAY,
].join('');
const LONGER = `wallet_address,email\n${Array.from({ length: 1_000 }, (_, at) => `0xb${at},b${at}@x.y\n`).join('')}`;

let p: Portcullis;
let browser: Browser;
/** The page of all cases. */
let open: OpenPage;

/** Drops a file onto the page, as a person drags it there. */
async function drop(page: Page, name: string, text: string): Promise<void> {
  const transfer = await page.evaluateHandle(
    `(() => { const given = new DataTransfer(); given.items.add(new File([${JSON.stringify(text)}], ${JSON.stringify(name)}, { type: 'text/csv' })); return given; })()`,
  );
  const target = page.getByRole('heading', { name: 'User migrations', level: 1 });
  await target.dispatchEvent('dragover', { dataTransfer: transfer });
  await target.dispatchEvent('drop', { dataTransfer: transfer });
}

async function openMigrations(page: Page): Promise<void> {
  await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Migrations' }).click();
  await page.getByRole('heading', { name: 'User migrations', level: 1 }).waitFor();
}

const start = (page: Page) => page.getByRole('button', { name: 'Start the migration' }).click();

describeReal('chromium', 'user migrations in the console', () => {
  beforeAll(async () => {
    [p, browser] = await Promise.all([startEmbedded(), startBrowser()]);
    open = await openConsole(browser, p);
  });
  afterAll(async () => {
    await browser?.close();
    await p?.[Symbol.asyncDispose]();
  });

  it('a CSV that is dropped is migrated, and its failed rows come back as a file, byte for byte', async () => {
    const page = await beginAt(open, p.demo, '#/migrations');
    await drop(page, 'users.csv', FILE);
    await page.getByText(`users.csv, ${Buffer.byteLength(FILE)} bytes`).waitFor();
    const held = Promise.withResolvers<void>();
    await page.route('**/graphql', (route) => held.promise.then(() => route.continue()), { times: 1 });
    await start(page);
    await page.getByText('Sending users.csv').waitFor();
    await drop(page, 'others.csv', HEADER);
    await page.getByText('Sending users.csv').waitFor();
    held.resolve();
    await page.getByText('6 of 6 rows with an outcome').waitFor();
    await page.getByRole('button', { name: 'Show failed and skipped only' }).click();
    const rows = page.getByRole('table', { name: 'Rows' });
    await expect.poll(() => rows.getByRole('row').count(), SOON).toBe(1 + BAD_LINES.length + 1);
    const text = await rows.innerText();
    await takePicture(page, 'console-migration');
    expect(text).toContain('missing_email_and_external_id');
    for (const reason of ['line 2: wallet_address must not be blank', 'line 4: has 4 fields, not 3', 'line 6: has a'])
      expect(text).toContain(reason);
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download the failed rows as CSV' }).click(),
    ]);
    expect(download.suggestedFilename()).toBe('users-failed-rows.csv');
    expect(await readFile(await download.path(), 'utf8')).toBe(MARK + HEADER + BAD_LINES.join(''));
    await page.getByText('users-failed-rows.csv has 3 failed rows').waitFor();

    // Another session knows the migration, and not the file.
    await signOut(page);
    await signIn(page, p.demo);
    await openMigrations(page);
    await page.getByRole('table', { name: 'User migrations' }).getByRole('link').first().click();
    await page.getByText('can be downloaded only in the session').waitFor();
    expect(await page.getByRole('button', { name: 'Download the failed rows as CSV' }).count()).toBe(0);
    expect(open.complaints).toEqual([]);
  });

  it('a file that is no CSV of users is refused with what to change', async () => {
    const page = await beginAt(open, p.demo, '#/migrations');
    const input = page.getByLabel('CSV file of users');
    await input.setInputFiles({ name: 'sizes.csv', mimeType: 'text/csv', buffer: Buffer.from('colour,size\nred,1\n') });
    await start(page);
    await page.getByRole('alert').getByText('unknown column').first().waitFor();
    expect(open.complaints).toEqual([]);
  });

  it('a stream that is cut goes on with the progress of that moment; what is cancelled stays so', async () => {
    const page = await beginAt(open, p.demo, '#/migrations');
    const list = page.getByRole('table', { name: 'User migrations' });
    const before = await list.getByRole('link').count();
    // Nobody works at it before it is cancelled.
    await p.service.context.migrationJobs.stop();
    await page
      .getByLabel('CSV file of users')
      .setInputFiles({ name: 'longer.csv', mimeType: 'text/csv', buffer: Buffer.from(LONGER) });
    let cuts = 0;
    await page.route('**/graphql', (route) => {
      const isCut = cuts < 1 && (route.request().postData() ?? '').includes('subscription MigrationProgress');
      if (!isCut) return route.fallback();
      cuts += 1;
      return route.abort('connectionreset');
    });
    await page.getByRole('button', { name: 'Start the migration' }).focus();
    await page.keyboard.press('Enter');
    await page.getByText('Reconnected. The progress is up to date').waitFor();
    await page.getByText('0 of 1,000 rows with an outcome').waitFor();
    await page.getByRole('button', { name: 'Cancel the migration' }).click();
    const dialog = page.getByRole('dialog', { name: 'Cancel this migration?' });
    await dialog.getByText('Users already created are kept').waitFor();
    await dialog.getByRole('button', { name: 'Cancel the migration' }).click();
    p.service.context.migrationJobs.start();
    await page.getByText('It was cancelled: the users created so far are kept').waitFor();
    expect(await page.getByRole('button', { name: 'Cancel the migration' }).count()).toBe(0);
    expect(cuts).toBe(1);
    await openMigrations(page);
    await list.getByText('Cancelled').waitFor();
    expect(await list.getByRole('link').count()).toBe(before + 1);
  });
});
