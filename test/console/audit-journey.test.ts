import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { beginAt, goTo, openConsole, SOON, signIn } from '../support/console/console-page.ts';
import { type OpenPage, startBrowser, takePicture } from '../support/harness/browser.ts';
import { type Portcullis, startEmbedded } from '../support/harness.ts';
import { describeReal } from '../support/services/real.ts';

/** The time between the looks for a record that is on its way, in ms. */
const LOOK_MS = 1_500;

let p: Portcullis;
let browser: Browser;
/** The page of the cases that have no clock of their own. */
let open: OpenPage;

const openAudit = (page: Page) =>
  page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Audit' }).click();

describeReal('chromium', 'audit records in the console', () => {
  beforeAll(async () => {
    [p, browser] = await Promise.all([startEmbedded(), startBrowser()]);
    open = await openConsole(browser, p);
  });
  afterAll(async () => {
    await browser?.close();
    await p?.[Symbol.asyncDispose]();
  });

  it('an error leads with one click to its audit record', async () => {
    const page = await beginAt(open, p.demo, '#/transactions');
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Migrations' }).click();
    await page.getByRole('link', { name: 'Import users' }).first().click();
    const bad = {
      name: 'bad.csv',
      mimeType: 'text/csv',
      buffer: Buffer.from('wallet_address,email,email\n0x1,a@x.y,b@x.y\n'),
    };
    await page.getByLabel('CSV file of users').setInputFiles(bad);
    await page.getByRole('button', { name: 'Import users' }).click();
    await page.getByRole('alert').getByRole('link', { name: 'Show its audit record' }).click();
    const response = page.getByRole('region', { name: 'Response body' });
    await response.waitFor();
    expect(await response.innerText()).toMatch(/\n {2}"data": \{\n {4}"result": \{/);
    expect(await page.getByText('POST /graphql').count()).toBe(1);
    await page.getByRole('button', { name: 'Copy' }).click();
    await page.getByText('Copied').waitFor();
    const copied = await page.evaluate<string>('navigator.clipboard.readText()');
    expect(new URL(page.url()).hash).toContain(copied);
    expect(open.complaints).toEqual([]);
  });

  it('secrets that a request and its response carried are masked, and nowhere in clear', async () => {
    const page = await beginAt(open, p.demo, '#/transactions');
    const password = 'correct-horse-battery';
    const query = `mutation ($client: ClientInput!, $supervisor: SupervisorInput!) {
      createClient(input: $client) { ... on CreatedClient { clientSecret } }
      createSupervisor(input: $supervisor) { ... on Supervisor { username } }
    }`;
    const client = { name: 'masked', grantTypes: ['CLIENT_CREDENTIALS'], scopes: ['users:read'] };
    const supervisor = { username: 'masked', password, role: 'viewer' };
    const answer = await p.call('POST', '/graphql', {
      json: { query, variables: { client, supervisor } },
      token: await p.clientToken(),
      headers: { 'x-correlation-id': 'carries-secrets' },
    });
    const { createClient, createSupervisor } = answer.json.data;
    expect(createSupervisor).toEqual({ username: expect.any(String) });
    await goTo(page, '#/audit?correlationId=carries-secrets');
    const body = async (title: string) => JSON.parse(await page.getByRole('region', { name: title }).innerText());
    await takePicture(page, 'console-audit', 1500);
    expect((await body('Request body')).variables.supervisor).toMatchObject({ password: '***', role: 'viewer' });
    expect((await body('Response body')).data.createClient).toEqual({ clientSecret: '***' });
    const text = await page.getByRole('main').innerText();
    expect(createClient.clientSecret).toMatch(/.{16}/);
    for (const secret of [password, createClient.clientSecret]) expect(text).not.toContain(secret);
  });

  it('a body is indented, each of its numbers with all of its digits, and left as it is where indents would bury it', async () => {
    const page = await beginAt(open, p.demo, '#/transactions');
    const authorization = `Bearer ${await p.clientToken()}`;
    const bodyOf = async (correlationId: string, variables: string) => {
      const headers = { 'x-correlation-id': correlationId, 'content-type': 'application/json', authorization };
      const body = `{"query":"{ me { nodeId } }","variables":${variables}}`;
      await fetch(`${p.url}/graphql`, { method: 'POST', headers, body });
      await goTo(page, `#/audit?correlationId=${correlationId}`);
      return page.getByRole('region', { name: 'Request body' }).innerText();
    };
    expect(await bodyOf('has-digits', '{"a":12345678901234567890.10,"b":[1e400,{}]}')).toContain(
      '\n    "a": 12345678901234567890.10,\n    "b": [\n      1e400,\n      {}\n',
    );
    // Its indents would be 30 MB.
    const deep = `${'['.repeat(500)}${'1,'.repeat(30_000)}1${']'.repeat(500)}`;
    expect(await bodyOf('is-deep', `{"a":${deep}}`)).toContain(deep);
  });

  it('a search stands in the address, and a row opens by the keyboard', async () => {
    const page = await beginAt(open, p.demo, '#/transactions');
    await openAudit(page);
    await page.getByLabel('Path').fill('/other');
    await page.getByRole('link', { name: 'Clear' }).click();
    expect(await page.getByLabel('Path').inputValue()).toBe('');
    await page.getByLabel('Path').fill('/graphql');
    await page.getByLabel('Status code').fill('200');
    await page.getByLabel('Method').selectOption('POST');
    await page.getByLabel('Received from').fill('2026-01-01T00:00:00');
    await page.getByRole('button', { name: 'Search' }).click();
    const table = page.getByRole('table', { name: 'Audit records' });
    await table.getByText('200').first().waitFor();
    const since = new URL(page.url()).hash.match(/since=([^&]*)/)?.[1] ?? '';
    expect(decodeURIComponent(since)).toBe(new Date('2026-01-01T00:00:00').toISOString());
    expect(await page.getByRole('navigation', { name: 'Pages of records' }).innerText()).toMatch(
      /^1 to \d+ of \d+ records/,
    );
    const asked = () => open.requests.filter(({ pathname }) => pathname === '/graphql').length;
    const before = asked();
    await page.getByRole('button', { name: 'Search' }).click();
    await expect.poll(asked, SOON).toBe(before + 1);
    await table.getByRole('button', { name: '/graphql' }).first().focus();
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: 'Audit record' });
    await dialog.getByRole('region', { name: 'Request body' }).waitFor();
    const text = await dialog.innerText();
    expect(text).toMatch(/"query": "[^"]*query /);
    await page.keyboard.press('Escape');
    await expect.poll(() => dialog.count()).toBe(0);
    await page.getByLabel('Status code').fill('418');
    await page.keyboard.press('Enter');
    await page.getByText('No request matches.').waitFor();
    expect(open.complaints).toEqual([]);
  });

  it('a record that is still on its way is looked for again', async () => {
    await using own = await openConsole(browser, p);
    const { page } = own;
    await page.clock.install();
    await signIn(page, p.demo);
    await openAudit(page);
    const json = { query: '{ me { nodeId } }' };
    await page.getByLabel('Correlation id').fill('comes-later');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByText('Records take a few seconds to arrive. Searching again').waitFor();
    await p.call('POST', '/graphql', {
      json,
      token: await p.clientToken(),
      headers: { 'x-correlation-id': 'comes-later' },
    });
    await page.getByText('POST /graphql').waitFor();
    await page.getByLabel('Correlation id').fill('never-comes');
    await page.getByRole('button', { name: 'Search' }).click();
    const again = page.getByRole('button', { name: 'Search again' });
    await expect
      .poll(async () => {
        await page.clock.fastForward(LOOK_MS);
        return again.count();
      }, SOON)
      .toBe(1);
    await page.getByText('No request of this tenant has this correlation id').waitFor();
  });
});
