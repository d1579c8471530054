import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { useConsole } from '../support/console/console-page.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { type OpenPage, openPage, openTab, paste, takePicture } from '../support/harness/browser.ts';
import { thoroughly } from '../support/harness/in-turn.ts';
import { startEmbedded } from '../support/harness.ts';
import { notify } from '../support/realtime/live.ts';
import { describeReal } from '../support/services/real.ts';

const SOON = { interval: 80 };
const WRONG_TOKEN = '"message": "401 unauthorized: the token under Headers is unknown, or it has ended"';

// Swagger UI has the ids of the demo on an embedded database only.
const p = useConsole(startEmbedded);
let token: string;

/** What a user reads where answers are shown; its lines are broken between words. */
async function shown(page: Page): Promise<string> {
  const text = await page.getByRole('region', { name: 'Result Window' }).innerText();
  return text.replaceAll(/\s+/g, ' ');
}

async function openGraphiql(): Promise<OpenPage> {
  const open = await openPage(p.url, '/graphql');
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

/** The page asked this instance alone, broke no rule of its policy, and loaded no other document than it was told to. */
function expectQuiet({ requests, complaints, loads }: OpenPage, documents = 1): void {
  const elsewhere = requests.filter(({ protocol, origin }) => protocol !== 'data:' && origin !== p.url);
  expect(elsewhere.map(String)).toEqual([]);
  expect(complaints).toEqual([]);
  expect(loads()).toBe(documents);
}

/** Asks for a token in the dialog of Swagger UI, with the demo's client. */
async function authorize(page: Page, secret: string) {
  await page.getByRole('button', { name: 'Authorize' }).first().click();
  const dialog = page.locator('.modal-ux');
  const first = dialog.locator('.auth-container').first();
  await first.locator('#client_id_clientCredentials').fill(p.demo.client.client_id);
  await first.locator('#client_secret_clientCredentials').fill(secret);
  const answer = page.waitForResponse(`${p.url}/v2/oauth/token`);
  await first.locator('button.authorize').click();
  await answer;
  return dialog;
}

/** An operation of Swagger UI, open to be tried. */
async function opened(page: Page, operationId: string) {
  const operation = page.locator(`[id$="-${operationId}"]`);
  await operation.getByRole('button').first().click();
  await operation.getByRole('button', { name: 'Try it out' }).click();
  return operation;
}

async function toTheTop(page: Page): Promise<void> {
  await page.getByRole('region', { name: 'Headers' }).locator('.monaco-editor').last().click();
  await page.keyboard.press('ControlOrMeta+Home');
}

// Each page is closed before the other is opened: an editor is drawn for as long as it is open.
describeReal('chromium', 'GraphiQL in a browser', () => {
  const graphiql = beforeTests(openGraphiql);

  it('D2-16: GraphiQL opens without a token, says where to get and put one, and then shows the accounts', async () => {
    const { page } = graphiql;
    await expect.poll(() => shown(page), SOON).toContain('No token yet: put one under Headers');
    await page.getByRole('button', { name: 'Show Documentation Explorer' }).click();
    await page.locator('.graphiql-doc-explorer-error').waitFor();
    const told = "getComputedStyle(document.querySelector('.graphiql-doc-explorer-error'), '::after').content";
    expect(await page.evaluate(told)).toMatch(/put one under Headers. npm start prints .* POST \/v2\/oauth\/token/);
    await page.getByRole('button', { name: 'Hide Documentation Explorer' }).click();
    token = await p.clientToken();
    await enterToken(graphiql, token);
    await run(page, 'Accounts');
    await expect.poll(() => shown(page), SOON).toContain('"totalCount": 25');
    expect(await shown(page)).toContain('"name": "Acme Treasury"');
    expectQuiet(graphiql);
  });

  it('GraphiQL keeps its tab and its token over a reload, only in that browser tab; a 401 is explained in words', async () => {
    const { page } = graphiql;
    const kept = (storage: string) => page.evaluate<string>(`JSON.stringify(window.${storage})`);
    await expect.poll(async () => (await kept('sessionStorage')).split(token).length, SOON).toBeGreaterThan(2);
    const tabs = await page.getByRole('tab').count();
    await page.reload();
    await page.getByRole('region', { name: 'Headers' }).getByText(token.slice(0, 30)).waitFor();
    await run(page, 'Accounts');
    await expect.poll(() => shown(page), SOON).toContain('"totalCount": 25');
    expect(await page.getByRole('tab').count()).toBe(tabs);
    expect(await kept('localStorage')).toBe('{}');
    await toTheTop(page);
    for (const key of ['ArrowDown', 'End', 'ArrowLeft', 'x']) await page.keyboard.press(key);
    await expect.poll(() => shown(page), SOON).toContain(WRONG_TOKEN);
    await run(page, 'Accounts');
    await expect.poll(() => shown(page), SOON).toContain(WRONG_TOKEN);
    // The browser itself names each answer of such a status.
    expect(new Set(graphiql.complaints)).toEqual(new Set([expect.stringContaining('status of 401')]));
    await page.keyboard.press('Escape');
    await toTheTop(page);
    for (const key of ['ArrowDown', 'End', 'ArrowLeft', 'Backspace']) await page.keyboard.press(key);
    await run(page, 'Accounts');
    await expect.poll(() => shown(page), SOON).toContain('"totalCount": 25');
    graphiql.complaints.length = 0;
  });

  thoroughly('another browser tab does not have the token of GraphiQL', async () => {
    await using other = await openTab(graphiql.page.context(), `${p.url}/graphql`);
    await enterToken(other, 'eyJhbGciOiJIUzI1NiJ9.e30.wrong');
    await expect.poll(() => shown(other.page), SOON).toContain(WRONG_TOKEN);
  });

  it('GraphiQL shows live updates, documents the schema, marks an unknown field, and stops a subscription', async () => {
    const { page } = graphiql;
    await page.getByRole('button', { name: 'Show Documentation Explorer' }).click();
    const docs = page.locator('.graphiql-doc-explorer');
    await docs.getByRole('link', { name: 'Subscription' }).click();
    await docs.getByRole('link', { name: 'transactionUpdates' }).click();
    await expect.poll(() => docs.innerText(), SOON).toContain('Each change of a transaction');

    await run(page, 'Updates');
    const id = p.demo.transactions.token_transactions;
    await notify(p, id, 2);
    await expect.poll(() => shown(page), SOON).toMatch(/"cursor": "1",.*"status": "IN_PROGRESS"/);
    await notify(p, id, 3, { updated_at: '2026-11-21T10:32:00Z' });
    await expect.poll(() => shown(page), SOON).toMatch(/"cursor": "2",.*"status": "DONE"/);
    await toTheTop(page);
    await takePicture(page, 'graphiql');
    await page.getByRole('button', { name: 'Stop query' }).click();
    await page.getByRole('button', { name: 'Execute query' }).waitFor();

    const editor = page.getByRole('region', { name: 'Operation Editor' });
    expect(await editor.locator('.squiggly-error').count()).toBe(0);
    await editor.getByText('totalCount').click();
    await page.keyboard.press('End');
    await page.keyboard.type(' misspelt');
    await editor.locator('.squiggly-error').first().waitFor();
    expectQuiet(graphiql, 2);
  });
});

describeReal('chromium', 'Swagger UI in a browser', () => {
  /** Nobody has authorized, until the case that does. */
  const swagger = beforeTests(() => openPage(p.url, '/swagger'));

  it('D8-02: Swagger UI documents the limit headers once, folded, and no response repeats them', async () => {
    const { page } = swagger;
    const limits = page.locator('#limits');
    expect(await limits.innerText()).toBe('Every answer to a client with limits: X-Ratelimit-*, X-MonthlyLimit-*');
    await limits.locator('summary').click();
    expect(await limits.getByRole('cell', { name: /^X-(Ratelimit|MonthlyLimit)-/ }).count()).toBe(15);
    const issue = await opened(page, 'issueToken');
    expect(await issue.innerText()).toContain('WWW-Authenticate');
    expect(await page.getByText('X-Ratelimit-Limit-Hour').count()).toBe(1);
    expectQuiet(swagger);
  });

  it('D8-02: Authorize in Swagger UI shows what a client needs, folds other schemes, and is limited to an operation', async () => {
    const { page } = swagger;
    await page.getByRole('button', { name: 'Authorize' }).first().click();
    const dialog = page.locator('.modal-ux');
    const seen = () => dialog.locator('input:visible').count();
    const ofClient = await dialog.locator('.auth-container').first().locator('input:visible').count();
    expect([await seen(), await dialog.locator('details').count()]).toEqual([ofClient, 6]);
    await dialog.getByText('userToken, bearer').click();
    expect(await seen()).toBe(ofClient + 1);
    await dialog.locator('.close-modal').click();
    await page.locator('[id$="-notifyTransaction"] .authorization__btn').click();
    expect(await dialog.innerText()).toContain('The credentials of the chain processor.');
    expect([await seen(), await dialog.locator('details').count()]).toEqual([2, 0]);
    await dialog.locator('.close-modal').click();
  });

  it('D8-02 5.4-01: in Swagger UI a notification with wrong credentials shows its 401, without a browser prompt', async () => {
    const { page } = swagger;
    await page.locator('[id$="-notifyTransaction"] .authorization__btn').click();
    const [username, password] = await page.locator('.modal-ux input').all();
    await username?.fill('somebody');
    await password?.fill('wrong');
    await page.locator('.modal-ux button.authorize').click();
    await page.locator('.close-modal').click();
    const notification = await opened(page, 'notifyTransaction');
    const answer = page.waitForResponse((response) => response.request().method() === 'POST');
    await notification.getByRole('button', { name: 'Execute' }).click();
    expect((await answer).headers()).not.toHaveProperty('www-authenticate');
    await expect.poll(() => notification.locator('.live-responses-table').innerText(), SOON).toContain('401');
  });

  it('D8-02: in Swagger UI the client is first in Authorize, scopes are explained, and a wrong secret shows its error', async () => {
    const { page } = swagger;
    const dialog = await authorize(page, 'wrong');
    await expect
      .poll(() => dialog.locator('.errors').first().innerText(), SOON)
      .toContain('The client could not be authenticated');
    const first = dialog.locator('.auth-container').first();
    expect(await first.innerText()).toContain('clientCredentials');
    expect(await first.innerText()).toContain('Lists accounts.');
    await dialog.locator('.close-modal').click();
  });

  it('D8-02 4.9-04: /swagger leads to Swagger UI, which lists accounts once authorized', async () => {
    const { page } = swagger;
    await authorize(page, p.demo.client.client_secret);
    await page.getByRole('button', { name: 'Close' }).first().click();
    swagger.forget();
    expect(new URL(page.url()).pathname).toBe('/swagger/');
    const accounts = await opened(page, 'listAccounts');
    await accounts.getByRole('button', { name: 'Execute' }).click();
    await expect.poll(() => accounts.locator('.live-responses-table').innerText(), SOON).toContain('"total": 25');
    const headers = accounts.locator('.responses-inner > .responses-table tr', { hasText: 'A page of accounts' });
    expect(await headers.innerText()).toContain('X-Correlation-ID');
    expect(await page.locator('.opblock').count()).toBeGreaterThan(10);
    expectQuiet(swagger);
  });

  it('D8-02 4.2-01: Swagger UI fills the path from the demo and no optional header: executing twice creates two rules', async () => {
    const { page } = swagger;
    const rules = await opened(page, 'createWalletRule');
    const valuesOf = async (kind: string) =>
      Promise.all((await rules.locator(`.parameters ${kind}`).all()).map((field) => field.inputValue()));
    expect(await valuesOf('input')).toEqual([p.demo.wallet_id, '', '']);
    expect(await valuesOf('select')).toContain('');
    const made: (string | undefined)[] = [];
    for (const _time of ['first', 'second']) {
      const answer = page.waitForResponse(
        (response) => response.request().method() === 'POST' && response.url().endsWith('/rules'),
      );
      await rules.getByRole('button', { name: 'Execute' }).click();
      made.push((await answer).headers().location);
    }
    expect(made).toEqual([expect.stringContaining(p.demo.wallet_id), expect.stringContaining(p.demo.wallet_id)]);
    expect(new Set(made).size).toBe(2);
  });
});
