import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type OpenPage, openPage, paste, startBrowser } from '../harness/browser.ts';
import { type Portcullis, startPortcullis } from '../harness.ts';
import { notify } from '../realtime/live.ts';
import { describeReal } from '../services/real.ts';

const SCREENSHOT = join(import.meta.dirname, '../../docs/graphiql.png');
const SOON = { interval: 20 };

let p: Portcullis;
let browser: Browser;

/** What a user reads where answers are shown; its lines are broken between words. */
async function shown(page: Page): Promise<string> {
  const text = await page.getByRole('region', { name: 'Result Window' }).innerText();
  return text.replaceAll(/\s+/g, ' ');
}

async function openGraphiql(): Promise<OpenPage> {
  const open = await openPage(browser, p.url, '/graphql');
  await open.page.getByRole('region', { name: 'Headers' }).getByText('"Bearer "').waitFor();
  return open;
}

/** Puts a token between the quotes that the page opens with. */
async function enterToken({ page }: OpenPage, token: string): Promise<void> {
  await page.getByRole('region', { name: 'Headers' }).getByText('"Bearer "').click();
  await page.keyboard.press('End');
  await page.keyboard.press('ArrowLeft');
  await paste(page, token);
}

/** The page's own document has two operations: its button lets one choose. */
async function run(page: Page, operation: string): Promise<void> {
  await page.getByRole('button', { name: 'Execute query' }).click();
  await page.getByRole('menuitem', { name: operation }).click();
}

/** The page asked this instance alone, broke no rule of its policy, and loaded no other document. */
function expectQuiet({ requests, complaints, loads }: OpenPage): void {
  const elsewhere = requests.filter(({ protocol, origin }) => protocol !== 'data:' && origin !== p.url);
  expect(elsewhere.map(String)).toEqual([]);
  expect(complaints).toEqual([]);
  expect(loads()).toBe(1);
}

async function takeScreenshot(page: Page): Promise<void> {
  await page.getByRole('region', { name: 'Headers' }).locator('.monaco-editor').last().click();
  await page.keyboard.press('ControlOrMeta+Home');
  await page.evaluate('document.activeElement.blur()');
  await page.mouse.move(0, 0);
  await page.screenshot({ path: SCREENSHOT });
}

describeReal('chromium', 'in a browser', () => {
  beforeAll(async () => {
    [p, browser] = await Promise.all([startPortcullis(), startBrowser()]);
  });
  afterAll(async () => {
    await browser?.close();
    await p?.[Symbol.asyncDispose]();
  });

  it('D2-16: GraphiQL opens without a token and says where to put one; with it, its query shows the accounts', async () => {
    await using open = await openGraphiql();
    const { page } = open;
    await expect.poll(() => shown(page), SOON).toContain('No token yet: put one under Headers');
    await enterToken(open, await p.clientToken());
    await run(page, 'Accounts');
    await expect.poll(() => shown(page), SOON).toContain('"totalCount": 25');
    expect(await shown(page)).toContain('"name": "Acme Treasury"');
    expectQuiet(open);
  });

  it('GraphiQL without a token says in the pane of the docs where one comes from', async () => {
    await using open = await openGraphiql();
    await open.page.getByRole('button', { name: 'Show Documentation Explorer' }).click();
    await open.page.locator('.graphiql-doc-explorer-error').waitFor();
    const told = "getComputedStyle(document.querySelector('.graphiql-doc-explorer-error'), '::after').content";
    expect(await open.page.evaluate(told)).toMatch(
      /put one under Headers. npm start prints .* POST \/v2\/oauth\/token/,
    );
  });

  it('a reload of GraphiQL keeps its tab and its token, which are gone with the browser’s tab', async () => {
    await using open = await openGraphiql();
    const { page } = open;
    const token = await p.clientToken();
    await enterToken(open, token);
    const kept = (storage: string) => page.evaluate<string>(`JSON.stringify(window.${storage})`);
    await expect.poll(async () => (await kept('sessionStorage')).split(token).length, SOON).toBeGreaterThan(2);
    const tabs = await page.getByRole('tab').count();
    await page.reload();
    await page.getByRole('region', { name: 'Headers' }).getByText(token.slice(0, 30)).waitFor();
    await run(page, 'Accounts');
    await expect.poll(() => shown(page), SOON).toContain('"totalCount": 25');
    expect(await page.getByRole('tab').count()).toBe(tabs);
    expect(await kept('localStorage')).toBe('{}');
    const other = await page.context().newPage();
    await other.goto(`${p.url}/graphql`);
    await other.getByRole('region', { name: 'Headers' }).getByText('"Bearer "').waitFor();
  });

  it('GraphiQL shows updates as they come, describes the schema, marks an unknown field, and stops a subscription', async () => {
    await using open = await openGraphiql();
    const { page } = open;
    await enterToken(open, await p.clientToken());
    await page.getByRole('button', { name: 'Show Documentation Explorer' }).click();
    const docs = page.locator('.graphiql-doc-explorer');
    await docs.getByRole('link', { name: 'Subscription' }).click();
    await docs.getByRole('link', { name: 'transactionUpdates' }).click();
    await expect.poll(() => docs.innerText(), SOON).toContain('Each change of the status of a transaction');

    await run(page, 'Updates');
    const id = p.demo.transactions.token_transactions;
    await notify(p, id, 2);
    await expect.poll(() => shown(page), SOON).toMatch(/"cursor": "1",.*"status": "IN_PROGRESS"/);
    await notify(p, id, 3, { updated_at: '2026-11-21T10:32:00Z' });
    await expect.poll(() => shown(page), SOON).toMatch(/"cursor": "2",.*"status": "DONE"/);
    if (process.env.UPDATE_SCREENSHOT === '1') await takeScreenshot(page);
    await page.getByRole('button', { name: 'Stop query' }).click();
    await page.getByRole('button', { name: 'Execute query' }).waitFor();

    const editor = page.getByRole('region', { name: 'Operation Editor' });
    expect(await editor.locator('.squiggly-error').count()).toBe(0);
    await editor.getByText('totalCount').click();
    await page.keyboard.press('End');
    await page.keyboard.type(' misspelt');
    await editor.locator('.squiggly-error').first().waitFor();
    expectQuiet(open);
  });

  it('GraphiQL shows the 401 of a wrong token in words that tell what to do', async () => {
    await using open = await openGraphiql();
    await enterToken(open, 'eyJhbGciOiJIUzI1NiJ9.e30.wrong');
    const told = '"message": "401 unauthorized: the token under Headers is unknown, or it has ended"';
    await expect.poll(() => shown(open.page), SOON).toContain(told);
    await run(open.page, 'Accounts');
    await expect.poll(() => shown(open.page), SOON).toContain(told);
    // The browser itself names each answer of such a status.
    expect(new Set(open.complaints)).toEqual(new Set([expect.stringContaining('status of 401')]));
  });

  it('D8-02 4.9-04: Swagger UI shows the operations and what they take', async () => {
    await using open = await openPage(browser, p.url, '/swagger/');
    const operation = open.page.locator('.opblock').filter({ hasText: '/v1/accounts' }).first();
    await operation.getByRole('button').first().click();
    await expect.poll(() => operation.innerText(), SOON).toContain('Parameters');
    expect(await open.page.locator('.opblock').count()).toBeGreaterThan(10);
    expectQuiet(open);
  });
});
