import type { BrowserContextOptions, Page } from 'playwright-core';
import { expect } from 'vitest';
import type { Demo } from '../../../src/app/demo/demo.ts';
import { beforeTests } from '../harness/before-tests.ts';
import { type OpenPage, openPage, theBrowser } from '../harness/browser.ts';
import { type Portcullis, startPortcullis } from '../harness.ts';
import { notification } from '../webhook/fixture.ts';

export const SOON = { interval: 80 };

/** What a person types to sign in, through a console client; without a username an API client signs in. */
export interface Credentials {
  client: Demo['client'];
  console_client_id?: string;
  supervisor?: Demo['supervisor'] | undefined;
}

/** Starts an instance with the console, and the browser meanwhile, before the tests of a file, and ends the instance after them. */
export function useConsole(
  start: () => Promise<Portcullis> = () => startPortcullis({ env: { CONSOLE: 'on' } }),
): Portcullis {
  return beforeTests(async () => {
    const starting = theBrowser();
    starting.catch(() => undefined);
    const p = await start();
    await starting;
    return p;
  });
}

/** Opens the console; nobody is signed in. */
export async function openConsole(p: Pick<Portcullis, 'url'>, options: BrowserContextOptions = {}): Promise<OpenPage> {
  const open = await openPage(p.url, '/console/', options);
  await open.page.getByRole('heading', { level: 1 }).waitFor();
  return open;
}

/** Fills in the form of the sign-in, and sends it. */
export async function tryToSignIn(page: Page, { client, supervisor, ...given }: Credentials): Promise<void> {
  const other = page.getByRole('button', { name: supervisor ? 'Sign in as a person' : 'Sign in as an API client' });
  if (await other.isVisible()) await other.click();
  const another = page.getByRole('button', { name: 'Use another client id' });
  if (await another.isVisible()) await another.click();
  const clientId = (supervisor && given.console_client_id) ?? client.client_id;
  await page.getByLabel('Client id', { exact: true }).fill(clientId);
  if (supervisor) {
    await page.getByLabel('Username').fill(supervisor.username);
    await page.getByLabel('Password').fill(supervisor.password);
  } else await page.getByLabel('Client secret').fill(client.client_secret);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
}

/** Signs in, by the demo's supervisor unless told otherwise, and resolves once a view is open. */
export async function signIn(page: Page, credentials: Credentials): Promise<void> {
  await tryToSignIn(page, credentials);
  await accountOf(page).waitFor({ state: 'attached' });
}

/** The button that opens the menu of the account: where it is, somebody is signed in. */
export function accountOf(page: Page) {
  return page.locator('.side .opener[aria-haspopup]');
}

/** Signs out, by the menu of the account. */
export async function signOut(page: Page): Promise<void> {
  await openAccount(page);
  await page.getByRole('button', { name: 'Sign out' }).click();
}

/** Opens the menu of the account, on a phone out of the navigation. */
export async function openAccount(page: Page): Promise<void> {
  if ((await page.locator('.menu:popover-open').count()) > 0) return;
  const account = accountOf(page);
  if (!(await account.isVisible())) await page.getByRole('button', { name: 'Menu' }).click();
  await account.click();
}

/** Changes the address to a place of the console, and resolves once the console has followed it: what is seen then is no earlier view. */
export async function moveTo(page: Page, place: string): Promise<void> {
  await page.evaluate(`new Promise((done) => {
    const before = location.href;
    addEventListener('hashchange', done, { once: true });
    location.hash = ${JSON.stringify(place)};
    if (location.href === before) done();
  }).then(() => undefined)`);
}

/** Goes to a place of the console, such as `#/accounts`, without a new document, and waits for its heading. */
export async function goTo(page: Page, place: string): Promise<void> {
  await moveTo(page, place);
  await viewIsThere(page);
}

async function viewIsThere(page: Page): Promise<void> {
  await page.getByRole('heading', { level: 1 }).waitFor();
  await expect.poll(() => page.locator('.loading, [aria-busy="true"]').count(), SOON).toBe(0);
}

/** Begins a case in a page that others share: signs in where nobody is, and makes the view of a place anew. */
export async function beginAt(open: OpenPage, credentials: Credentials, place: string): Promise<Page> {
  const { page } = open;
  await page.unrouteAll();
  if ((await accountOf(page).count()) === 0) await signIn(page, credentials);
  await moveTo(page, '#/nothing');
  await page.getByRole('heading', { name: 'Page not found' }).waitFor();
  open.forget();
  await moveTo(page, place);
  await page.getByRole('heading', { name: 'Page not found' }).waitFor({ state: 'detached' });
  await viewIsThere(page);
  return page;
}

/** Begins a case in a page that others share, where nobody is to be signed in. */
export async function beginSignedOut(open: OpenPage): Promise<Page> {
  const { page } = open;
  await page.unrouteAll();
  if ((await accountOf(page).count()) > 0) await signOut(page);
  await page.getByRole('heading', { name: 'Sign in to Portcullis' }).waitFor();
  open.forget();
  return page;
}

/** The ids in the rows of the view's tables, in full. */
export function idsOf(page: Page): Promise<string[]> {
  return page.locator('tbody .id').evaluateAll((all) => all.map((each) => each.getAttribute('title') ?? ''));
}

/** The text of the view, its lines joined. */
export async function shown(page: Page, selector = 'main'): Promise<string> {
  return (await page.locator(selector).innerText()).replaceAll(/\s+/g, ' ');
}

/**
 * Waits until the list of transactions has received this many updates from its stream. Before that it already has those
 * transactions, in another order.
 */
export async function waitForUpdates(page: Page, updates: number): Promise<void> {
  await expect.poll(() => shown(page, '.link'), SOON).toContain(`Live ${updates} updates since this view was opened`);
}

/** Checks that the page asked this origin alone, put nothing into an address, broke no rule of its policy, and loaded no other document than it was told to. */
export function expectQuiet({ requests, complaints, loads }: OpenPage, origin: string, documents = 1): void {
  expect(requests.filter((url) => url.origin !== origin || url.search !== '').map(String)).toEqual([]);
  expect(complaints).toEqual([]);
  expect(loads()).toBe(documents);
}

/** What holds of a view under test: where it is, and what is waited for. */
export interface View {
  name: string;
  place: (demo: Demo) => string;
}

/** The views of the console, with something in each. */
export const VIEWS: readonly View[] = [
  { name: 'the overview', place: () => '#/overview' },
  { name: 'transactions', place: () => '#/transactions' },
  { name: 'a transaction', place: ({ transactions }) => `#/transactions/${transactions.otc_transactions}` },
  { name: 'accounts', place: () => '#/accounts' },
  { name: 'an account', place: ({ account_id: id }) => `#/accounts/${id}` },
  { name: 'a wallet', place: ({ wallet_id: id }) => `#/wallets/${id}` },
  { name: 'users', place: () => '#/users' },
  { name: 'rules', place: () => '#/rules' },
  { name: 'a new rule', place: ({ wallet_id: id }) => `#/wallets/${id}/rules/new` },
  { name: 'networks', place: () => '#/networks' },
  { name: 'assets', place: () => '#/assets' },
  { name: 'gas fees', place: () => '#/gas-fees' },
  { name: 'migrations', place: () => '#/migrations' },
  { name: 'an import', place: () => '#/migrations/new' },
  { name: 'clients', place: () => '#/clients' },
  { name: 'supervisors', place: () => '#/supervisors' },
  { name: 'the own password', place: () => '#/profile' },
  { name: 'audit records', place: () => '#/audit' },
  { name: 'no view', place: () => '#/nothing' },
];

/** Applies a notification about a transaction, as the worker does with one that has come. */
export async function applied({ service }: Portcullis, id: string, status: number, more: object = {}): Promise<void> {
  const body = Buffer.from(JSON.stringify(notification({ id, status, ...more })));
  await service.context.transactions.applyBatch('transactions.user', [{ body, correlationId: `of-${id}-${status}` }]);
}
